//! Tests of commits, replaced pages, and facts that depend on all pages.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crawl_index::{
    AnswerLookUp, CommitOutcome, CrossPageUpdateCounts, EntryVisitor, IndexError, IndexLogEntry,
    IndexSearcher, IndexWriter, IndexedPage, PendingEntriesFile, PendingEntrySource,
    RecordedAnswer, SearchOptions,
};

use crate::support::{NOTE, anchor, found, indexed, page, search, write};

#[test]
fn the_last_put_of_a_page_wins() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &[page("http://a.example/", "Old", "old words")]);
    write(dir.path(), &[page("http://a.example/", "New", "new words")]);
    let index = IndexSearcher::open(dir.path()).unwrap();
    assert_eq!(found(&index, "words"), "/");
    assert_eq!(found(&index, "old"), "");
    assert_eq!(index.stats().unwrap().pages, 1);
}

#[test]
fn a_search_sees_each_commit_and_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = IndexWriter::open(dir.path()).unwrap();
    writer.commit("0").unwrap();
    let index = IndexSearcher::open(dir.path()).unwrap();
    assert_eq!(found(&index, "tea"), "");
    writer
        .put(&page("http://a.example/1", "Tea", "one"))
        .unwrap();
    assert_eq!(found(&index, "tea"), "");
    writer.commit("1").unwrap();
    assert_eq!(found(&index, "tea"), "/1");
    writer.drop_url("http://a.example/1");
    writer.commit("2").unwrap();
    assert_eq!(found(&index, "tea"), "");
    assert_eq!(index.page("http://a.example/1").unwrap(), None);
}

/// Checks that a reader can open an index while each commit deletes files of the previous one.
/// Opening takes long, because there are many files.
#[test]
fn an_index_can_be_opened_while_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = IndexWriter::open(dir.path()).unwrap();
    for n in 0..8 {
        let text: String = (0..100_000).map(|word| format!("w{n}x{word} ")).collect();
        let url = format!("http://a.example/long/{n}");
        writer.put(&page(&url, "Long", &text)).unwrap();
    }
    writer.commit(NOTE).unwrap();
    let short = page("http://a.example/short", "Tea", "short");
    let mut commit = || {
        writer.put(&short).unwrap();
        writer.commit(NOTE).unwrap();
    };
    commit();
    let is_over = AtomicBool::new(false);
    thread::scope(|threads| {
        let written = threads.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                commit();
            }
        });
        let opened: Vec<_> = (0..20).map(|_| IndexSearcher::open(dir.path())).collect();
        is_over.store(true, Ordering::Relaxed);
        written.join().unwrap();
        for index in opened {
            assert_eq!(found(&index.unwrap(), "tea"), "/short");
        }
    });
}

#[test]
fn uncommitted_changes_are_lost_in_a_crash_and_the_note_shows_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = IndexWriter::open(dir.path()).unwrap();
    assert_eq!(writer.note(), None);
    writer
        .put(&page("http://a.example/1", "Tea", "one"))
        .unwrap();
    writer.commit("up to 1").unwrap();
    writer
        .put(&page("http://a.example/2", "Tea", "two"))
        .unwrap();
    drop(writer);
    let writer = IndexWriter::open(dir.path()).unwrap();
    assert_eq!(writer.note(), Some("up to 1"));
    let index = IndexSearcher::open(dir.path()).unwrap();
    assert_eq!(found(&index, "tea"), "/1");
}

#[test]
fn a_page_is_committed_with_all_its_words_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let is_over_in_writer = Arc::clone(&is_over);
    let is_stopped = Arc::new(move || is_over_in_writer.load(Ordering::Relaxed));
    let writer = IndexWriter::open_unless(dir.path(), is_stopped).unwrap();
    let mut writer = writer.unwrap();
    let one = page("http://a.example/1", "Tea", "one");
    writer.put(&one).unwrap();
    assert_eq!(writer.commit("up to 1").unwrap(), CommitOutcome::Done);
    is_over.store(true, Ordering::Relaxed);
    writer.drop_url("http://a.example/1");
    writer
        .put(&page("http://a.example/2", "Tea", &"cup ".repeat(100_000)))
        .unwrap();
    assert_eq!(writer.commit("up to 2").unwrap(), CommitOutcome::Stopped);
    assert_eq!(writer.note(), Some("up to 1"));
    drop(writer);
    let writer = IndexWriter::open(dir.path()).unwrap();
    assert_eq!(writer.note(), Some("up to 1"));
    let index = IndexSearcher::open(dir.path()).unwrap();
    assert_eq!(found(&index, "tea"), "/1");
}

#[test]
fn an_index_that_takes_the_place_of_another_is_seen() {
    let (dir, beside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (here, there) = (dir.path().join("index"), beside.path().join("index"));
    write(&here, &[page("http://a.example/old", "Tea", "one")]);
    write(&there, &[page("http://a.example/new", "Tea", "two")]);
    let index = IndexSearcher::open(&here).unwrap();
    assert_eq!(found(&index, "tea"), "/old");
    std::fs::rename(&here, dir.path().join("gone")).unwrap();
    assert_eq!(found(&index, "tea"), "/old");
    std::fs::rename(&there, &here).unwrap();
    assert_eq!(found(&index, "tea"), "/new");
}

#[test]
fn pages_with_the_same_text_are_found_once() {
    let same = |url: &str| page(url, "Tea", "The very same words.");
    let dir = tempfile::tempdir().unwrap();
    let mut writer = IndexWriter::open(dir.path()).unwrap();
    for url in ["http://a.example/tea?print=1", "http://a.example/tea"] {
        writer.put(&same(url)).unwrap();
    }
    writer.commit(NOTE).unwrap();
    let index = IndexSearcher::open(dir.path()).unwrap();
    // Duplicates are not marked before the end of the run, but a search shows only one of them.
    assert_eq!(search(&index, "very same").results.len(), 1);
    let done = writer.reconcile(NOTE, 0).unwrap();
    assert_eq!((done.pages, done.duplicates), (1, 1));
    assert_eq!(found(&index, "very same"), "/tea");
    assert_eq!(index.page("http://a.example/tea?print=1").unwrap(), None);
    assert_eq!(index.stats().unwrap().duplicates, 1);

    // When the page is removed, the other page with the same text takes its place.
    writer.drop_url("http://a.example/tea");
    let done = writer.reconcile(NOTE, 0).unwrap();
    assert_eq!((done.pages, done.duplicates), (1, 0));
    assert_eq!(found(&index, "very same"), "/tea?print=1");
}

#[test]
fn facts_of_all_pages_are_committed_together_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = IndexWriter::open(dir.path()).unwrap();
    for n in 0..10 {
        let url = format!("http://a.example/tea?{n}");
        writer
            .put(&page(&url, "Tea", "The very same words."))
            .unwrap();
    }
    // Reconciling reads each page twice. Stop it before the 15th read.
    let reads = std::cell::Cell::new(0);
    let is_stopped = || reads.replace(reads.get() + 1) == 14;
    let done = writer.reconcile_unless(NOTE, 0, &is_stopped).unwrap();
    assert_eq!((done, reads.get()), (None, 15));
    drop(writer);
    let index = IndexSearcher::open(dir.path()).unwrap();
    assert_eq!(index.stats().unwrap().duplicates, 0);
    let mut writer = IndexWriter::open(dir.path()).unwrap();
    let done = writer.reconcile(NOTE, 0).unwrap();
    assert_eq!((done.pages, done.duplicates), (1, 9));
}

#[test]
fn pages_without_text_are_not_the_same() {
    let (_dir, index) = indexed(&[
        page("http://a.example/1", "Untitled", ""),
        page("http://a.example/2", "Untitled", " "),
    ]);
    assert_eq!(found(&index, "untitled"), "/1 /2");
}

#[test]
fn pages_are_not_shown_after_their_time() {
    let sale = IndexedPage {
        until: Some(1000),
        ..page("http://a.example/sale", "Sale", "Tea for less.")
    };
    let dir = tempfile::tempdir().unwrap();
    let mut writer = IndexWriter::open(dir.path()).unwrap();
    writer.put(&sale).unwrap();
    writer
        .put(&page("http://a.example/tea", "Tea", "Tea."))
        .unwrap();
    writer.reconcile(NOTE, 999).unwrap();
    let index = IndexSearcher::open(dir.path()).unwrap();
    let count = |now| {
        let options = SearchOptions {
            now,
            ..SearchOptions::default()
        };
        index.search("tea", &options).unwrap().total
    };
    assert_eq!((count(999), count(1000)), (2, 1));
    assert_eq!(writer.reconcile(NOTE, 1000).unwrap().expired, 1);
    assert_eq!(count(0), 1);
}

#[test]
fn a_name_that_many_pages_share_names_none() {
    let mut pages: Vec<_> = (0..20)
        .map(|n| IndexedPage {
            links: vec![
                anchor(&format!("http://a.example/{}", (n + 1) % 20), "Next"),
                anchor("http://a.example/7", "Seventh heaven"),
            ],
            ..page(
                &format!("http://a.example/{n}"),
                "Page",
                &format!("number {n}"),
            )
        })
        .collect();
    pages[7].links.clear();
    let (_dir, index) = indexed(&pages);
    let seventh = index.page("http://a.example/7").unwrap().unwrap();
    assert_eq!(seventh.anchors, ["Seventh heaven"]);
    assert_eq!(seventh.linked_from, 19);
}

#[test]
fn reconciling_twice_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let pages = [
        IndexedPage {
            links: vec![anchor("http://a.example/2", "two")],
            ..page("http://a.example/1", "One", "first")
        },
        page("http://a.example/2", "Two", "second"),
        page("http://a.example/2b", "Two", "second"),
    ];
    write(dir.path(), &pages);
    let mut writer = IndexWriter::open(dir.path()).unwrap();
    assert_eq!(writer.reconcile(NOTE, 0).unwrap().rewritten, 0);
}

#[test]
fn only_the_last_pending_entry_of_each_url_counts() {
    let url = |name: &str| format!("http://a.example/{name}");
    let put = |name: &str, text: &str, links: &[(&str, &str)]| {
        let links = links.iter().map(|(to, text)| anchor(&url(to), text));
        IndexLogEntry::Put(Box::new(IndexedPage {
            links: links.collect(),
            ..page(&url(name), name, text)
        }))
    };
    let over = IndexLogEntry::Put(Box::new(IndexedPage {
        until: Some(9),
        ..page(&url("over"), "over", "Over.")
    }));
    let drop = |name: &str| IndexLogEntry::Drop {
        url: url(name),
        why: "noindex".to_owned(),
    };
    let dir = tempfile::tempdir().unwrap();
    let mut writer = IndexWriter::open(dir.path()).unwrap();
    let before = [
        put("tea", "Tea.", &[]),
        put("old", "Before.", &[("tea", "brew")]),
        put("gone", "Gone.", &[("tea", "leaf")]),
    ];
    for entry in &before {
        writer.apply(entry).unwrap();
    }
    writer.reconcile(NOTE, 0).unwrap();
    let waiting = [
        put("new", "New.", &[("tea", "cup")]),
        put("old", "After.", &[("tea", "pot")]),
        put("back", "Back.", &[("tea", "sip")]),
        drop("back"),
        drop("gone"),
        over,
        put("twin", "New.", &[]),
        put("twin", "Tea.", &[]),
    ];
    let mut file = PendingEntriesFile::new(dir.path()).unwrap();
    for entry in &waiting {
        file.push(entry).unwrap();
    }
    file.flush().unwrap();
    let mut writer = writer.with_all_processors(NOTE).unwrap().unwrap();
    let done = writer
        .reconcile_with(&file, &no_answers, "read", 10, &|| false)
        .unwrap();
    let done = done.unwrap();
    assert_eq!((done.pages, done.duplicates, done.expired), (4, 0, 1));
    assert_eq!(writer.note(), Some("read"));
    let index = IndexSearcher::open(dir.path()).unwrap();
    let mut pages = Vec::new();
    index
        .each_page(|page| {
            pages.push((page.title, page.text, page.anchors.join(" ")));
            Ok::<(), IndexError>(())
        })
        .unwrap();
    pages.sort();
    let row = |title: &str, text: &str, names: &str| {
        let [title, text, names] = [title, text, names].map(str::to_owned);
        (title, text, names)
    };
    let expected = [
        row("new", "New.", ""),
        row("old", "After.", ""),
        row("tea", "Tea.", "cup pot"),
        row("twin", "Tea.", ""),
    ];
    assert_eq!(pages, expected);
}

/// Applies entries in a later run to an index of twenty pages. Returns the URLs that remain and the
/// report.
fn after(entries: &[IndexLogEntry], is_pending: bool) -> (Vec<String>, CrossPageUpdateCounts) {
    let (pages, done) = after_with(entries, is_pending, &no_answers);
    (pages.into_iter().map(|page| page.url).collect(), done)
}

/// Does the same as [`after`], with `answers` as the recorded answers of URLs. Returns the pages
/// that remain, ordered by URL, and the report.
fn after_with(
    entries: &[IndexLogEntry],
    is_pending: bool,
    answers: &AnswerLookUp<'_>,
) -> (Vec<IndexedPage>, CrossPageUpdateCounts) {
    let dir = tempfile::tempdir().unwrap();
    let url = |n: usize| format!("http://a.example/{n:02}");
    let pages: Vec<_> = (0..20)
        .map(|n| page(&url(n), "Tea", &format!("Tea {n}")))
        .collect();
    write(dir.path(), &pages);
    let mut writer = IndexWriter::open(dir.path()).unwrap();
    let done = match is_pending {
        true => writer
            .reconcile_with(&Listed(entries), answers, "next", 0, &|| false)
            .unwrap(),
        false => {
            entries
                .iter()
                .for_each(|entry| writer.apply(entry).unwrap());
            // Commit in between. `reconcile` must still know which pages the entries marked.
            writer.commit("half").unwrap();
            writer
                .reconcile_with(&(), answers, "next", 0, &|| false)
                .unwrap()
        }
    };
    writer.close().unwrap();
    let mut pages = Vec::new();
    let index = IndexSearcher::open(dir.path()).unwrap();
    let each = index.each_page(|page| -> Result<(), IndexError> {
        pages.push(page);
        Ok(())
    });
    each.unwrap();
    pages.sort_by(|a, b| a.url.cmp(&b.url));
    (pages, done.unwrap())
}

/// Returns an entry for a page that names another page of the site as canonical.
fn named(n: usize, canonical: &str) -> IndexLogEntry {
    let canonical = format!("http://a.example/{canonical}");
    let url = format!("http://a.example/{n:02}");
    IndexLogEntry::Put(Box::new(IndexedPage {
        same_as: Some(canonical.clone()),
        gives_way_to: Some(canonical),
        ..page(&url, "Tea", &format!("Tea {n}"))
    }))
}

struct Listed<'a>(&'a [IndexLogEntry]);

impl PendingEntrySource for Listed<'_> {
    fn each(&self, visit: &mut EntryVisitor<'_>) -> Result<ControlFlow<()>, IndexError> {
        for entry in self.0 {
            if visit(entry.clone())?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

#[test]
fn an_index_never_loses_many_pages_for_doubtful_reasons() {
    let drop = |n: usize, why: &str| IndexLogEntry::Drop {
        url: format!("http://a.example/{n:02}"),
        why: why.to_owned(),
    };
    for is_pending in [true, false] {
        // The reason is not doubtful, so all of these pages are removed.
        let removed: Vec<_> = (0..10).map(|n| drop(n, "gone")).collect();
        assert_eq!(after(&removed, is_pending).0.len(), 10);
        // Up to a tenth of the pages may be removed for doubtful reasons.
        let two = [
            drop(0, "soft_404"),
            drop(1, "redirect: http://a.example/login"),
        ];
        let (urls, done) = after(&two, is_pending);
        assert_eq!((urls.len(), done.left, done.kept.len()), (18, 2, 0));
        // If more than a tenth of the pages would be removed for doubtful reasons, no page is
        // removed.
        let three = [
            drop(0, "soft_404"),
            drop(1, "redirect: http://a.example/login"),
            drop(2, "no_page"),
        ];
        let (urls, done) = after(&three, is_pending);
        assert_eq!((urls.len(), done.left), (20, 0));
        let kept_reasons: Vec<_> = done.kept.into_iter().collect();
        let each = |name: &str| (name.to_owned(), 1);
        assert_eq!(
            kept_reasons,
            [each("no_page"), each("redirect"), each("soft_404")]
        );
        // Pages that can be found under another URL don't count as lost. Two pages that name each
        // other as canonical do.
        let moved: Vec<_> = (0..9)
            .map(|n| drop(n, &format!("redirect: http://a.example/{}", 10 + n)))
            .collect();
        let (urls, done) = after(&moved, is_pending);
        assert_eq!((urls.len(), done.left, done.kept.len()), (11, 9, 0));
        let crossed = [named(0, "01"), named(1, "00"), named(2, "02x")];
        assert_eq!(after(&crossed, is_pending).0.len(), 20);
        // If two pages name each other as canonical, one of the pages stays.
        let (urls, done) = after(&crossed[..2], is_pending);
        assert_eq!((urls.len(), done.gave_way), (19, 1));
        assert!(urls.contains(&"http://a.example/00".to_owned()));
        // A page whose canonical URL leads nowhere stays under its own URL.
        let (urls, done) = after(&crossed[2..], is_pending);
        assert_eq!((urls.len(), done.gave_way), (20, 0));
        // Many pages may be replaced by existing canonical pages, because nothing is lost.
        let many: Vec<_> = (0..9).map(|n| named(n, &(10 + n).to_string())).collect();
        let (urls, done) = after(&many, is_pending);
        assert_eq!((urls.len(), done.gave_way, done.kept.len()), (11, 9, 0));
        // Pages that never existed are not counted.
        let unknown_pages: Vec<_> = (30..60).map(|n| drop(n, "soft_404")).collect();
        let (urls, done) = after(&unknown_pages, is_pending);
        assert_eq!((urls.len(), done.left, done.kept.len()), (20, 0, 0));
        // Adding a removed page again makes it an ordinary page.
        let back = IndexLogEntry::Put(Box::new(page("http://a.example/00", "Tea", "Tea again")));
        let (urls, done) = after(
            &[drop(0, "empty"), drop(1, "empty"), drop(2, "empty"), back],
            is_pending,
        );
        assert_eq!(
            (urls.len(), done.left, done.kept.len()),
            (18, 2, 0),
            "{is_pending}"
        );
    }
}

/// A maintenance page in place of all others, or a template that names the home page as canonical
/// everywhere, takes no more pages out of the index than other doubtful reasons.
#[test]
fn many_pages_do_not_give_way_to_the_same_text() {
    let url = |name: &str| format!("http://a.example/{name}");
    let redirect = |n: usize, to: &str| IndexLogEntry::Drop {
        url: url(&format!("{n:02}")),
        why: format!("redirect: {}", url(to)),
    };
    let put = |name: &str, text: &str| IndexLogEntry::Put(Box::new(page(&url(name), "Tea", text)));
    let sorry = |n: usize| put(&format!("sorry?from={n}"), "We are back soon");
    for is_pending in [true, false] {
        let check = |entries: Vec<IndexLogEntry>, expected: (usize, u64, u64)| {
            let (urls, done) = after(&entries, is_pending);
            let kept_count = done.kept.values().sum::<u64>();
            let counts = (urls.len(), kept_count, done.gave_way);
            assert_eq!(counts, expected, "{is_pending} {:?}", entries[0]);
        };
        check((0..9).map(|n| redirect(n, "19")).collect(), (20, 9, 0));
        check((0..9).map(|n| named(n, "19")).collect(), (20, 9, 0));
        // A few pages may move to the same page.
        check((0..4).map(|n| redirect(n, "19")).collect(), (16, 0, 0));
        // Pages with the same text count as one target.
        let each = (0..9).flat_map(|n| [sorry(n), redirect(n, &format!("sorry?from={n}"))]);
        check(each.collect(), (21, 9, 0));
    }
    // Nothing is lost if the canonical page has the text of the page.
    let dir = tempfile::tempdir().unwrap();
    let variants = (0..20).map(|n| page(&url(&format!("{n:02}")), "Tea", "Tea"));
    write(dir.path(), &variants.collect::<Vec<_>>());
    let mut writer = IndexWriter::open(dir.path()).unwrap();
    let entries: Vec<_> = (0..9).map(|n| named(n, "19")).collect();
    let done = writer.reconcile_with(&Listed(&entries), &no_answers, "next", 0, &|| false);
    let done = done.unwrap().unwrap();
    assert_eq!((done.gave_way, done.kept.len()), (9, 0));
}

#[test]
fn a_page_that_redirects_to_a_login_stays_as_it_was() {
    let answers = |urls: &BTreeSet<String>| {
        let hop = RecordedAnswer::Redirect("http://b.example/login".to_owned());
        let all = [
            ("http://b.example/hop", hop),
            ("http://b.example/login", RecordedAnswer::InPlace),
        ];
        let all = all.map(|(url, answer)| (url.to_owned(), answer));
        Ok(all
            .into_iter()
            .filter(|(url, _)| urls.contains(url))
            .collect())
    };
    let drop = |n: usize, to: &str| IndexLogEntry::Drop {
        url: format!("http://a.example/{n:02}"),
        why: format!("redirect: http://b.example/{to}"),
    };
    let entries = [
        drop(0, "login"),
        drop(1, "hop"),
        drop(2, "hop"),
        drop(3, "elsewhere"),
    ];
    for is_pending in [true, false] {
        let (pages, done) = after_with(&entries, is_pending, &answers);
        assert_eq!((pages.len(), done.pages, done.left), (19, 19, 1));
        assert!(pages.iter().all(|page| page.leaving.is_none()));
        // The report doesn't list the pages that redirect to a login as kept for a doubtful reason.
        assert!(done.kept.is_empty());
        assert_eq!(done.kept_anew, [("redirect".to_owned(), 3)].into());
    }
}

#[test]
fn a_page_yields_while_its_canonical_page_exists() {
    let dir = tempfile::tempdir().unwrap();
    let redirects = |urls: &BTreeSet<String>| {
        let to = (
            "http://a.example/hop".to_owned(),
            "http://a.example/09".to_owned(),
        );
        let redirect = urls.contains(&to.0).then_some(to);
        let redirect = redirect.map(|(from, to)| (from, RecordedAnswer::Redirect(to)));
        Ok(HashMap::from_iter(redirect))
    };
    let target = page("http://a.example/09", "Target", "Nine");
    let drop_entry = |url: &str| IndexLogEntry::Drop {
        url: url.to_owned(),
        why: "gone".to_owned(),
    };
    for (step, entry, expected) in [
        ("alone", named(1, "hop"), "/01"),
        ("target", IndexLogEntry::Put(Box::new(target)), "/09"),
        (
            "unrelated",
            IndexLogEntry::Put(Box::new(page("http://a.example/x", "X", "X"))),
            "/09",
        ),
        ("target gone", drop_entry("http://a.example/09"), "/01"),
        ("gone", drop_entry("http://a.example/01"), ""),
    ] {
        let mut writer = IndexWriter::open(dir.path()).unwrap();
        writer.apply(&entry).unwrap();
        writer.commit("half").unwrap();
        writer
            .reconcile_with(&(), &redirects, step, 0, &|| false)
            .unwrap();
        writer.close().unwrap();
        let index = IndexSearcher::open(dir.path()).unwrap();
        let both = format!("{}{}", found(&index, "tea"), found(&index, "target"));
        assert_eq!(both, expected, "{step}");
    }
}

/// A page whose canonical URL leads nowhere is indexed under its own URL, until it redirects.
#[test]
fn a_redirect_removes_a_page_that_was_indexed_without_its_canonical_page() {
    let url = |page: &str| format!("http://a.example/{page}");
    let redirects = |urls: &BTreeSet<String>| {
        let redirect = urls.contains(&url("01")).then(|| (url("01"), url("09")));
        let redirect = redirect.map(|(from, to)| (from, RecordedAnswer::Redirect(to)));
        Ok(HashMap::from_iter(redirect))
    };
    for is_pending in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = IndexWriter::open(dir.path()).unwrap();
        let target = page(&url("09"), "Target", "Nine");
        let fillers = (10..40).map(|n| page(&url(&n.to_string()), "Other", "Filler"));
        let fillers = fillers.map(|page| IndexLogEntry::Put(Box::new(page)));
        let pages = [
            named(1, "missing"),
            named(2, "01"),
            IndexLogEntry::Put(Box::new(target)),
        ];
        for entry in pages.into_iter().chain(fillers) {
            writer.apply(&entry).unwrap();
        }
        writer.commit("pages").unwrap();
        let mut reconcile = |entries: &[IndexLogEntry], note: &str| {
            let entries = Listed(entries);
            let done = writer.reconcile_with(&entries, &redirects, note, 0, &|| false);
            done.unwrap().unwrap()
        };
        assert_eq!(reconcile(&[], "first").gave_way, 1);
        let index = IndexSearcher::open(dir.path()).unwrap();
        assert_eq!(found(&index, "tea"), "/01");
        let moved = IndexLogEntry::Drop {
            url: url("01"),
            why: format!("redirect: {}", url("09")),
        };
        let done = match is_pending {
            true => reconcile(&[moved], "second"),
            false => {
                writer.apply(&moved).unwrap();
                writer.commit("half").unwrap();
                let done = writer.reconcile_with(&(), &redirects, "second", 0, &|| false);
                done.unwrap().unwrap()
            }
        };
        // The page that named the redirecting page as canonical is replaced by the redirect's
        // target.
        assert_eq!((done.left, done.gave_way), (1, 1), "{is_pending}");
        writer.close().unwrap();
        let index = IndexSearcher::open(dir.path()).unwrap();
        assert_eq!(found(&index, "tea"), "", "{is_pending}");
    }
}

fn no_answers(_urls: &BTreeSet<String>) -> Result<HashMap<String, RecordedAnswer>, IndexError> {
    Ok(HashMap::new())
}
