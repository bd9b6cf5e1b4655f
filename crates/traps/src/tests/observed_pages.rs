//! Tests that observe single pages and check what is then known about the pages' host.

use crawl_weburl::{HostKey, SpellingStepPolicies, canonicalize};

use super::prose;
use crate::{
    AnswerEvidence, MAX_LEVEL, PageEvidence, PageFingerprint, TrapDetector, UrlDisposition,
    stable_hash,
};

/// Observes a page of a host, and the URLs first found on it. Returns whether the observation
/// defers a kind of URLs that was not deferred before.
fn visited(traps: &mut TrapDetector, path: &str, level: u8, text: &str, new: &[&str]) -> bool {
    let url = |path: &str| canonicalize(None, &format!("http://a.example{path}")).unwrap();
    let at = url(path);
    let gist = PageFingerprint::of_markup(text, &at);
    let visit = PageEvidence {
        url: &at,
        level,
        answer: AnswerEvidence::Text(&gist),
    };
    traps.observe(&visit);
    let new: Vec<_> = new.iter().map(|path| url(path)).collect();
    traps.record_children(&visit, new.iter())
}

#[test]
fn a_repeated_text_defers_its_links_from_the_third_page_on() {
    let sorry = "Sorry, nothing is here, go on with another page of this site";
    let host = HostKey::parse("a.example").unwrap();
    let check = |second: u8, third: u8, new: &[&str], looks: &str, enough: bool| {
        let mut traps = TrapDetector::new(SpellingStepPolicies::default(), true);
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
        let is_deferred = visited(&mut traps, &path("c"), third, sorry, new);
        assert_eq!((is_deferred, traps.knows_of(&host)), (enough, enough));
        let via = canonicalize(None, &format!("http://a.example{}", path("b"))).unwrap();
        let next = canonicalize(None, "http://a.example/1").unwrap();
        let next = traps.standing(&next, Some(&via), 1);
        assert_eq!(matches!(next, UrlDisposition::Defer(_)), enough, "{next:?}");
    };
    check(1, 2, &["/3"], "", true);
    check(1, 1, &["/3"], "", false);
    check(1, 2, &[], "", false);
    // With trap signs, a level of 1 (one page with nothing new on the way) is enough.
    check(1, 1, &["/3"], "?a=1", true);
    check(0, 0, &["/3"], "?a=1", false);
}

#[test]
fn a_host_is_known_once_a_spelling_is_learned() {
    let host = HostKey::parse("a.example").unwrap();
    for defers in [false, true] {
        let mut traps = TrapDetector::new(SpellingStepPolicies::default(), defers);
        let states: Vec<_> = (1..=3)
            .map(|n| {
                let text = prose(&n.to_string(), 60);
                visited(&mut traps, &format!("/{n}/"), 0, &text, &[]);
                visited(&mut traps, &format!("/{n}/index.html"), 0, &text, &[]);
                (traps.knows_of(&host), traps.knows_of_none())
            })
            .collect();
        // The first pair of pages already makes spellings possible, but a rule is in force only
        // after the third pair.
        assert_eq!(
            states,
            [(false, false), (false, false), (true, false)],
            "{defers}"
        );
    }
}

#[test]
fn urls_with_trap_signs_need_care_until_six_pages_are_new() {
    let url = |path: &str| canonicalize(None, &format!("http://a.example{path}")).unwrap();
    let mut traps = TrapDetector::new(SpellingStepPolicies::default(), true);
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

/// Threads may compare pages in a different order than pages are observed.
#[test]
fn the_first_observed_of_two_equal_pages_is_new() {
    let mut traps = TrapDetector::new(SpellingStepPolicies::default(), true);
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
        let answer = AnswerEvidence::Text(fingerprint);
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
fn the_weight_of_a_host_grows_with_its_pages() {
    let mut traps = TrapDetector::new(SpellingStepPolicies::default(), true);
    visited(&mut traps, "/", 0, &prose("home", 50), &[]);
    let one = traps.hosts.weigh();
    assert!((2_500..5_000).contains(&one), "{one}");
    for page in 0..100 {
        let path = format!("/list?page={page}");
        visited(&mut traps, &path, 0, &prose(&path, 200), &[]);
    }
    // Expected memory: 100 texts, 100 pages with fingerprints, two more templates, and a table of
    // 20,000 shingles.
    let many = traps.hosts.weigh();
    assert!((70_000..140_000).contains(&many), "{many}");
}

#[test]
fn one_in_eight_proven_pages_is_compared_word_by_word() {
    let mut traps = TrapDetector::new(SpellingStepPolicies::default(), true);
    let prose_of = |page: u32| prose(&format!("page {page}"), 200);
    for page in 0..64 {
        visited(&mut traps, &format!("/{page}/a/"), 0, &prose_of(page), &[]);
    }
    let weight = traps.hosts.weigh();
    assert!(weight < 50_000, "{weight}");
    // Each of the following pages repeats the first page and adds one word. Such pages count as new
    // until one of them is chosen for a comparison. From then on, every page is compared.
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
            answer: AnswerEvidence::Text(&gist),
        };
        levels.push(traps.observe(&visit).level);
        expected.push(u8::from(page >= chosen));
    }
    assert_eq!(levels, expected);
    let chosen = (0..8_000).filter(|page| is_chosen(*page)).count();
    assert!((900..1_100).contains(&chosen), "{chosen}");
}

#[test]
fn the_level_rises_with_pages_without_anything_new() {
    let url = |path: &str| canonicalize(None, path).unwrap();
    let at = url("http://a.example/go/1");
    let known_page = PageFingerprint::of_markup(&prose("said", 30), &at);
    let new = PageFingerprint::of_markup(&prose("new", 30), &at);
    let [on, elsewhere, same, away] = [
        "http://a.example/go/2",
        "http://a.example/x/go/2",
        "https://a.example/go/1",
        "http://b.example/go/2",
    ]
    .map(url);
    for (answer, level, expected) in [
        (AnswerEvidence::Text(&new), 7, (0, false)),
        (AnswerEvidence::Text(&known_page), 0, (1, true)),
        (AnswerEvidence::Text(&known_page), 7, (8, true)),
        (
            AnswerEvidence::Text(&known_page),
            MAX_LEVEL,
            (MAX_LEVEL, true),
        ),
        (AnswerEvidence::Other, 7, (0, false)),
        (AnswerEvidence::Nothing, 7, (7, false)),
        // A cut redirect raises the level (number of consecutive pages with nothing new) only if it
        // leads to a URL of the same kind.
        (AnswerEvidence::CutRedirect(&on), 7, (8, true)),
        (AnswerEvidence::CutRedirect(&at), 7, (7, false)),
        (AnswerEvidence::CutRedirect(&elsewhere), 7, (7, false)),
        (AnswerEvidence::CutRedirect(&same), 7, (7, false)),
        (AnswerEvidence::CutRedirect(&away), 7, (7, false)),
    ] {
        let mut traps = TrapDetector::new(SpellingStepPolicies::default(), true);
        visited(&mut traps, "/said", 0, &prose("said", 30), &[]);
        let judgement = traps.observe(&PageEvidence {
            url: &at,
            level,
            answer,
        });
        let actual = (judgement.level, judgement.is_barren);
        assert_eq!(actual, expected, "{answer:?}");
        assert!(!judgement.traps_changed);
    }
}

#[test]
fn a_repeated_text_is_named_by_its_trap_signs() {
    let sorry = "Sorry, nothing is here, go on with another page of this site";
    for (looks, name) in [
        ("", "soft-404 "),
        ("/2031/5", "calendar "),
        ("/8f3a91c0d4e75b26", "session-ids "),
        ("/x/x/2031/5", "repeated-path "),
    ] {
        let mut traps = TrapDetector::new(SpellingStepPolicies::default(), true);
        let path = |folder: &str| format!("/{folder}{looks}/lost");
        for (level, folder) in (0..).zip(["a", "b", "c"]) {
            visited(&mut traps, &path(folder), level, sorry, &["/1", "/2"]);
        }
        let url = |path: &str| canonicalize(None, &format!("http://a.example{path}")).unwrap();
        let next = traps.standing(&url("/1"), Some(&url(&path("b"))), 1);
        let UrlDisposition::Defer(rule) = next else {
            panic!("{looks}: {next:?}");
        };
        assert!(rule.starts_with(name), "{rule}");
        let counts = ": 3 pages have the same text, 2 in a row found on each other; 6 more";
        assert!(rule.contains(counts), "{rule}");
    }
}
