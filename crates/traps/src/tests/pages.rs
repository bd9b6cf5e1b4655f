//! Single pages, and what is known of their host after them.

use crawl_weburl::{HostKey, SpellingRules, canonicalize};

use super::prose;
use crate::{
    Disposition, MAX_LEVEL, PageAnswer, PageEvidence, PageFingerprint, Traps, stable_hash,
};

/// A page of a host, and whether what was met on it first was enough.
fn visited(traps: &mut Traps, path: &str, level: u8, text: &str, new: &[&str]) -> bool {
    let url = |path: &str| canonicalize(None, &format!("http://a.example{path}")).unwrap();
    let at = url(path);
    let gist = PageFingerprint::of_markup(text, &at);
    let visit = PageEvidence {
        url: &at,
        level,
        answer: PageAnswer::Text(&gist),
    };
    traps.observe(&visit);
    let new: Vec<_> = new.iter().map(|path| url(path)).collect();
    traps.record_children(&visit, new.iter())
}

#[test]
fn ours_a_text_ends_what_it_leads_to_from_its_third_page_on() {
    let sorry = "Sorry, nothing is here, go on with another page of this site";
    let host = HostKey::parse("a.example").unwrap();
    let check = |second: u8, third: u8, new: &[&str], looks: &str, enough: bool| {
        let mut traps = Traps::new(SpellingRules::default(), true);
        let path = |folder: &str| format!("/{folder}/lost{looks}");
        visited(&mut traps, &path("a"), 0, sorry, &[]);
        assert!(!visited(
            &mut traps,
            &path("b"),
            second,
            sorry,
            &["/1", "/2"]
        ));
        assert!(!traps.knows_of(&host));
        let found = visited(&mut traps, &path("c"), third, sorry, new);
        assert_eq!((found, traps.knows_of(&host)), (enough, enough));
        let met_on = canonicalize(None, &format!("http://a.example{}", path("b"))).unwrap();
        let next = canonicalize(None, "http://a.example/1").unwrap();
        let next = traps.standing(&next, Some(&met_on), 1);
        assert_eq!(matches!(next, Disposition::Defer(_)), enough, "{next:?}");
    };
    check(1, 2, &["/3"], "", true);
    check(1, 1, &["/3"], "", false);
    check(1, 2, &[], "", false);
    // With the looks of a kind that never ends one in a row is enough.
    check(1, 1, &["/3"], "?a=1", true);
    check(0, 0, &["/3"], "?a=1", false);
}

#[test]
fn ours_a_host_is_known_of_once_a_spelling_of_its_pages_is_learned() {
    let host = HostKey::parse("a.example").unwrap();
    for defers in [false, true] {
        let mut traps = Traps::new(SpellingRules::default(), defers);
        let known: Vec<_> = (1..=3)
            .map(|n| {
                let text = prose(&n.to_string(), 60);
                visited(&mut traps, &format!("/{n}/"), 0, &text, &[]);
                visited(&mut traps, &format!("/{n}/index.html"), 0, &text, &[]);
                (traps.knows_of(&host), traps.knows_of_none())
            })
            .collect();
        // Pages were compared from the first pair on, and a rule is in force after the third.
        assert_eq!(
            known,
            [(false, false), (false, false), (true, false)],
            "{defers}"
        );
    }
}

#[test]
fn ours_care_is_taken_of_what_may_not_end_until_it_brought_six_pages() {
    let url = |path: &str| canonicalize(None, &format!("http://a.example{path}")).unwrap();
    let mut traps = Traps::new(SpellingRules::default(), true);
    assert!(traps.needs_care(&url("/list?page=9"), 0));
    assert!(!traps.needs_care(&url("/about"), 0));
    assert!(!traps.needs_care(&url("/about"), 1));
    for page in 0..6 {
        assert!(traps.needs_care(&url("/list?page=9"), 0), "{page}");
        let path = format!("/list?page={page}");
        visited(&mut traps, &path, 0, &prose(&path, 30), &[]);
    }
    assert!(!traps.needs_care(&url("/list?page=9"), 0));
    assert!(traps.needs_care(&url("/list?page=9"), 1));
}

/// Readers compare pages in another order than that in which they are told of.
#[test]
fn ours_of_two_pages_with_one_text_the_one_that_is_told_of_first_says_something_new() {
    let mut traps = Traps::new(SpellingRules::default(), true);
    visited(&mut traps, "/", 0, &prose("home", 50), &[]);
    let url = |path: &str| canonicalize(None, &format!("http://a.example{path}")).unwrap();
    let urls = [url("/list?a=1"), url("/list?a=2")];
    let pages = urls.map(|at| {
        let mut fingerprint = PageFingerprint::of_markup(&prose("both", 60), &at);
        let words = traps.words_to_compare(&at, 0, &fingerprint).unwrap();
        words.compare(&mut fingerprint);
        (at, fingerprint)
    });
    let is_barren = pages.iter().rev().map(|(at, fingerprint)| {
        let answer = PageAnswer::Text(fingerprint);
        let visit = PageEvidence {
            url: at,
            level: 0,
            answer,
        };
        traps.observe(&visit).is_barren
    });
    assert_eq!(is_barren.collect::<Vec<_>>(), [false, true]);
}

#[test]
fn ours_a_host_weighs_what_is_known_of_it() {
    let mut traps = Traps::new(SpellingRules::default(), true);
    visited(&mut traps, "/", 0, &prose("home", 50), &[]);
    let one = traps.hosts.weigh();
    assert!((2_500..5_000).contains(&one), "{one}");
    for page in 0..100 {
        let path = format!("/list?page={page}");
        visited(&mut traps, &path, 0, &prose(&path, 200), &[]);
    }
    // 100 texts, pages and fingerprints, two more templates, a table of 20,000 shingles.
    let many = traps.hosts.weigh();
    assert!((70_000..140_000).contains(&many), "{many}");
}

#[test]
fn ours_of_plain_pages_that_bring_something_one_in_eight_is_looked_at_word_for_word() {
    let mut traps = Traps::new(SpellingRules::default(), true);
    let prose_of = |page: u32| prose(&format!("page {page}"), 200);
    for page in 0..64 {
        visited(&mut traps, &format!("/{page}/a/"), 0, &prose_of(page), &[]);
    }
    let weight = traps.hosts.weigh();
    assert!(weight < 50_000, "{weight}");
    // Pages that say what the first said and a word more: they pass for new until one of them is
    // looked at, and what comes behind it is looked at.
    let is_chosen = |page: u32| {
        let url = format!("http://a.example/{page}/a/");
        stable_hash::of(url.as_bytes()).is_multiple_of(8)
    };
    let chosen = (65..).find(|page| is_chosen(*page)).unwrap();
    let (mut levels, mut expected) = (Vec::new(), Vec::new());
    for page in (64..chosen + 3).filter(|page| *page >= chosen || !is_chosen(*page)) {
        let again = format!("{} more{page}", prose_of(0));
        let at = canonicalize(None, &format!("http://a.example/{page}/a/")).unwrap();
        let gist = PageFingerprint::of_markup(&again, &at);
        let visit = PageEvidence {
            url: &at,
            level: 0,
            answer: PageAnswer::Text(&gist),
        };
        levels.push(traps.observe(&visit).level);
        expected.push(u8::from(page >= chosen));
    }
    assert_eq!(levels, expected);
    let chosen = (0..8_000).filter(|page| is_chosen(*page)).count();
    assert!((900..1_100).contains(&chosen), "{chosen}");
}

#[test]
fn ours_the_level_rises_with_pages_that_say_nothing_new() {
    let url = |path: &str| canonicalize(None, path).unwrap();
    let at = url("http://a.example/go/1");
    let said = PageFingerprint::of_markup(&prose("said", 30), &at);
    let new = PageFingerprint::of_markup(&prose("new", 30), &at);
    let [on, elsewhere, same, away] = [
        "http://a.example/go/2",
        "http://a.example/x/go/2",
        "https://a.example/go/1",
        "http://b.example/go/2",
    ]
    .map(url);
    for (answer, level, expected) in [
        (PageAnswer::Text(&new), 7, (0, false)),
        (PageAnswer::Text(&said), 0, (1, true)),
        (PageAnswer::Text(&said), 7, (8, true)),
        (PageAnswer::Text(&said), MAX_LEVEL, (MAX_LEVEL, true)),
        (PageAnswer::Other, 7, (0, false)),
        (PageAnswer::Nothing, 7, (7, false)),
        // A redirect leads on within its kind, or it tells nothing.
        (PageAnswer::Redirect(&on, 0), 7, (7, true)),
        (PageAnswer::Redirect(&on, 1), 7, (8, true)),
        (PageAnswer::Redirect(&at, 1), 7, (7, false)),
        (PageAnswer::Redirect(&elsewhere, 1), 7, (7, false)),
        (PageAnswer::Redirect(&same, 1), 7, (7, false)),
        (PageAnswer::Redirect(&away, 1), 7, (7, false)),
    ] {
        let mut traps = Traps::new(SpellingRules::default(), true);
        visited(&mut traps, "/said", 0, &prose("said", 30), &[]);
        let opinion = traps.observe(&PageEvidence {
            url: &at,
            level,
            answer,
        });
        let found = (opinion.level, opinion.is_barren);
        assert_eq!(found, expected, "{answer:?}");
        assert!(!opinion.has_turned);
    }
}

#[test]
fn ours_a_text_is_named_by_the_looks_of_its_urls() {
    let sorry = "Sorry, nothing is here, go on with another page of this site";
    for (looks, name) in [
        ("", "soft-404 "),
        ("/2031/5", "calendar "),
        ("/8f3a91c0d4e75b26", "session-ids "),
        ("/x/x/2031/5", "repeated-path "),
    ] {
        let mut traps = Traps::new(SpellingRules::default(), true);
        let path = |folder: &str| format!("/{folder}{looks}/lost");
        for (level, folder) in (0..).zip(["a", "b", "c"]) {
            visited(&mut traps, &path(folder), level, sorry, &["/1", "/2"]);
        }
        let url = |path: &str| canonicalize(None, &format!("http://a.example{path}")).unwrap();
        let next = traps.standing(&url("/1"), Some(&url(&path("b"))), 1);
        let Disposition::Defer(rule) = next else {
            panic!("{looks}: {next:?}");
        };
        assert!(rule.starts_with(name), "{rule}");
        let counts = ": 3 pages said the same, 2 in a row found on each other; 6 more";
        assert!(rule.contains(counts), "{rule}");
    }
}
