//! Tests that crawl small sites page by page, as an engine would do.

use std::collections::{BTreeMap, BTreeSet};

use crawl_weburl::{CanonicalUrl, SpellingStepPolicies, canonicalize};
use expect_test::{Expect, expect};

use super::{AnswerEvidence, PageEvidence, PageFingerprint, TrapDetector, UrlDisposition};

mod observed_pages;

/// A site. Returns its response at a path: a page, a redirect (`-> PATH`), or `None` if there is no
/// page.
type Site<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The result of a finished crawl.
#[derive(Debug, PartialEq)]
struct Crawled {
    fetched: Vec<String>,
    rules: BTreeMap<String, String>,
}

impl Crawled {
    fn fetched_in(&self, prefix: &str) -> usize {
        self.fetched
            .iter()
            .filter(|path| path.starts_with(prefix))
            .count()
    }

    /// Returns the rule of each deferral, without the URLs given as evidence.
    fn rules(&self) -> String {
        let rules = self
            .rules
            .values()
            .map(|rule| rule.split("; such").next().unwrap());
        let rules: BTreeSet<&str> = rules.collect();
        rules.into_iter().collect::<Vec<_>>().join("\n")
    }
}

/// Crawls a site twice: once with the detector comparing each page's words with the known words of
/// its host, and once with the caller doing so before `observe`. Checks that both crawls are equal.
fn crawl(most: usize, site: Site<'_>) -> Crawled {
    let plain = crawl_by(most, site, &|_, _, _, _| {});
    let compared = crawl_by(most, site, &|traps, at, level, gist| {
        if let Some(words) = traps.words_to_compare(at, level, gist) {
            words.compare(gist);
        }
    });
    assert_eq!(plain, compared);
    plain
}

/// Maximum number of consecutive redirects that the crawls follow.
const MAX_REDIRECTS: u8 = 5;

/// Work that is done on a page before the page is observed.
type Prepare<'a> = &'a dyn Fn(&TrapDetector, &CanonicalUrl, u8, &mut PageFingerprint);

fn crawl_by(most: usize, site: Site<'_>, prepare: Prepare<'_>) -> Crawled {
    let mut traps = TrapDetector::new(SpellingStepPolicies::default(), true);
    let url = |path: &str| canonicalize(None, &format!("http://a.example{path}")).unwrap();
    // The queue holds level, depth, number and URL. For each URL, `seen` holds the page that
    // contains the URL and the number of redirects that led to the URL.
    let mut queue = BTreeSet::from([(0_u8, 0_u32, 0_usize, url("/"))]);
    let mut seen: BTreeMap<CanonicalUrl, (Option<CanonicalUrl>, u8)> = BTreeMap::new();
    seen.insert(url("/"), (None, 0));
    let mut over = Crawled {
        fetched: Vec::new(),
        rules: BTreeMap::new(),
    };
    let mut turn = 0;
    while let Some((level, depth, _, at)) = queue.pop_first() {
        let (via, redirects) = seen[&at].clone();
        let path = at.path_and_query().to_owned();
        turn += 1;
        match traps.disposition(&at, via.as_ref(), level) {
            UrlDisposition::Fetch => {}
            UrlDisposition::Later(level) => {
                queue.insert((level, depth, turn, at));
                continue;
            }
            UrlDisposition::Defer(rule)
            | UrlDisposition::SameAs(_, rule)
            | UrlDisposition::Mirror(_, rule) => {
                over.rules.insert(path, rule);
                continue;
            }
        }
        over.fetched.push(path.clone());
        assert!(over.fetched.len() <= most, "{:#?}", over.fetched);
        let html = site(&path);
        let (mut gist, to);
        let answer = match &html {
            None => AnswerEvidence::Nothing,
            Some(html) => match html.strip_prefix("-> ") {
                Some(target) => {
                    to = url(target);
                    match redirects < MAX_REDIRECTS {
                        true => AnswerEvidence::Nothing,
                        false => AnswerEvidence::CutRedirect(&to),
                    }
                }
                None => {
                    gist = PageFingerprint::of_markup(html, &at);
                    prepare(&traps, &at, level, &mut gist);
                    AnswerEvidence::Text(&gist)
                }
            },
        };
        let visit = PageEvidence {
            url: &at,
            level,
            answer,
        };
        let judgement = traps.observe(&visit);
        let html = html.unwrap_or_default();
        let (redirects, links): (u8, Vec<&str>) = match html.strip_prefix("-> ") {
            Some(target) => (redirects + 1, vec![target]),
            None => (
                0,
                html.split("href='")
                    .skip(1)
                    .map(|rest| rest.split('\'').next().unwrap())
                    .collect(),
            ),
        };
        let mut new = Vec::new();
        for link in links {
            let link = canonicalize(Some(&at), link).unwrap();
            if seen.contains_key(&link) {
                continue;
            }
            seen.insert(link.clone(), (Some(at.clone()), redirects));
            turn += 1;
            if redirects <= MAX_REDIRECTS {
                queue.insert((judgement.level, depth + 1, turn, link.clone()));
            }
            new.push(link);
        }
        if judgement.is_barren {
            traps.record_children(&visit, new.iter());
        }
    }
    over
}

/// Returns this many words that no other page has.
fn prose(of: &str, words: usize) -> String {
    let mut state = super::stable_hash::of(of.as_bytes());
    let mut text = String::new();
    for _ in 0..words {
        state = super::stable_hash::mix(state, 7);
        let letters = (0..6).map(|n| char::from(b'a' + (state >> (n * 8)) as u8 % 26));
        text.extend(letters);
        text.push(' ');
    }
    text
}

fn link(to: &str) -> String {
    format!("<a href='{to}'>on</a> ")
}

fn home(links: &[&str]) -> String {
    let links: String = links.iter().map(|to| link(to)).collect();
    format!("<h1>{}</h1>{links}", prose("home", 60))
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "expectations are written in place"
)]
fn check(most: usize, site: Site<'_>, expect: Expect) {
    let over = crawl(most, site);
    expect.assert_eq(&format!("{} fetched\n{}", over.fetched.len(), over.rules()));
}

#[test]
fn a_calendar_of_empty_months_ends() {
    check(
        8,
        &|path| {
            let Some(month) = path.strip_prefix("/cal/") else {
                return Some(home(&["/cal/2026/6"]));
            };
            let (year, month) = month.split_once('/')?;
            let months = year.parse::<u32>().ok()? * 12 + month.parse::<u32>().ok()? - 1;
            let at = |months: u32| link(&format!("/cal/{}/{}", months / 12, months % 12 + 1));
            let days: String = (1..=31).map(|day| format!("<td>{day}</td>")).collect();
            Some(format!(
                "<title>Events in {month} {year}</title>{days} Nothing is planned for this month. \
             Our events are free. {} {}",
                at(months - 1),
                at(months + 1)
            ))
        },
        expect![[r#"
        5 fetched
        calendar /cal/#/#: 4 fetched, 1 with something new, none of the last 3; 3 more URLs first found on those 3"#]],
    );
}

#[test]
fn a_calendar_with_events_does_not_end() {
    let over = crawl(200, &|path| {
        let Some(month) = path.strip_prefix("/cal/2026-") else {
            return Some(home(&["/cal/2026-01"]));
        };
        let next: u32 = month.parse::<u32>().ok()? + 1;
        let on = if next > 12 {
            String::new()
        } else {
            link(&format!("/cal/2026-{next:02}"))
        };
        Some(format!(
            "<title>Events in {month}</title>{} {on}",
            prose(path, 20)
        ))
    });
    assert_eq!((over.fetched_in("/cal/"), over.rules.len()), (12, 0));
}

#[test]
fn growing_paths_end() {
    check(
        8,
        &|path| match path {
            "/" => Some(home(&["/maze/"])),
            _ => Some(format!(
                "<h1>{}</h1>{}{}",
                prose("maze", 40),
                link("left/"),
                link("right/")
            )),
        },
        expect![[r#"
            5 fetched
            repeated-path /maze/(left)+/: 4 pages have the same text, 1 in a row found on each other; 6 more URLs first found on them"#]],
    );
}

#[test]
fn session_ids_in_paths_end() {
    let real = |n: &str| format!("<p>{}</p>", prose(&format!("page{n}"), 50));
    let over = crawl(40, &|path| {
        let sid = super::stable_hash::of(path.as_bytes());
        match path {
            "/" => Some(home(
                &(0..20)
                    .map(|n| format!("/p{n}"))
                    .collect::<Vec<_>>()
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>(),
            )),
            _ => {
                let n = path.rsplit_once("/p")?.1;
                let next = n.parse::<u32>().ok()? % 20 + 1;
                let plain = if path.starts_with("/s/") {
                    String::new()
                } else {
                    link(&format!("/p{}", next % 20))
                };
                Some(format!(
                    "{}{plain}{}{}",
                    real(n),
                    link(&format!("/s/{sid:016x}/p{n}")),
                    link(&format!("/s/{:016x}/p{}", !sid, next % 20))
                ))
            }
        }
    });
    assert_eq!(over.fetched_in("/p"), 20);
    expect![[r#"
        4 in sessions
        session-ids /s/~/*: 3 fetched, 0 with something new, none of the last 3; 6 more URLs first found on those 3"#]].assert_eq(&format!(
        "{} in sessions\n{}",
        over.fetched_in("/s/"),
        over.rules()
    ));
}

#[test]
fn selections_of_the_same_items_end() {
    check(
        12,
        &|path| {
            let things: Vec<String> = (0..12).map(|n| prose(&format!("thing{n}"), 12)).collect();
            let Some(chosen) = path.strip_prefix("/shop") else {
                return Some(home(&["/shop"]));
            };
            let chosen = chosen.trim_start_matches('?');
            let shown: String = things
                .iter()
                .enumerate()
                .filter(|(n, _)| {
                    !super::stable_hash::of(format!("{chosen}{n}").as_bytes()).is_multiple_of(3)
                        || chosen.is_empty()
                })
                .map(|(_, text)| format!("<li>{text}</li>"))
                .collect();
            let further = [
                "color=red",
                "color=blue",
                "size=m",
                "size=l",
                "brand=x",
                "brand=y",
            ];
            let links = further
                .iter()
                .filter(|more| !chosen.contains(**more))
                .map(|more| {
                    link(&format!(
                        "/shop?{}",
                        [chosen, more].join("&").trim_start_matches('&')
                    ))
                });
            Some(format!(
                "<title>Shop</title>{shown}{}",
                links.collect::<String>()
            ))
        },
        expect![[r#"
            9 fetched
            facets /shop?: 4 fetched, 1 with something new, none of the last 3; 15 more URLs first found on those 3"#]],
    );
}

/// Three links of the first page, and many links of a page far from the first, lead to endless
/// chains of redirects.
#[test]
fn endless_redirects_end() {
    let links: Vec<String> = (4..50).map(|n| format!("/go/{n}00")).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    check(
        40,
        &|path| match path.strip_prefix("/go/") {
            Some(n) => Some(format!("-> /go/{}", n.parse::<u32>().ok()? + 1)),
            None if path == "/" => Some(home(&["/go/100", "/go/200", "/go/300", "/a"])),
            None if path.len() == 9 => Some(prose(path, 30) + &home(&links)),
            None => Some(prose(path, 30) + &link(&format!("{path}a"))),
        },
        expect![[r#"
            27 fetched
            redirects /go/#: 3 fetched, 0 with something new, none of the last 3; 3 more URLs first found on those 3"#]],
    );
}

#[test]
fn a_chain_of_redirects_is_followed_up_to_the_limit() {
    let end = MAX_REDIRECTS.to_string();
    let site = |path: &str| match path.strip_prefix("/hop/") {
        None => Some(home(&["/hop/0"])),
        Some(n) if *n == end => Some(prose("the end of the chain", 30)),
        Some(n) => Some(format!("-> /hop/{}", n.parse::<u8>().ok()? + 1)),
    };
    let over = crawl(20, &site);
    assert_eq!(over.fetched.last(), Some(&format!("/hop/{end}")));
    assert!(over.rules.is_empty(), "{:?}", over.rules);
}

#[test]
fn soft_404_pages_end() {
    check(
        12,
        &|path| match path {
            "/" => Some(home(&["/lost/amber"])),
            _ => {
                let name = |n: u64| prose(&format!("{path}{n}"), 1).trim().to_owned();
                Some(format!(
                    "<h1>Sorry</h1> There is nothing at {path}. Try {}{}",
                    link(&name(1)),
                    link(&name(2))
                ))
            }
        },
        expect![[r#"
            5 fetched
            soft-404 /lost/*: 4 fetched, 1 with something new, none of the last 3; 6 more URLs first found on those 3"#]],
    );
}

#[test]
fn a_series_of_pictures_is_not_a_trap() {
    let over = crawl(200, &|path| {
        let Some(n) = path.strip_prefix("/photo/") else {
            return Some(home(&["/photo/1"]));
        };
        let n: u32 = n.parse().ok()?;
        let next = if n < 60 {
            link(&format!("/photo/{}", n + 1))
        } else {
            String::new()
        };
        Some(format!("Photo {n} of 60 <img src=/i/{n}.jpg> next {next}"))
    });
    assert_eq!((over.fetched_in("/photo/"), over.rules.len()), (60, 0));
}

#[test]
fn stubs_that_lead_to_real_pages_are_not_a_trap() {
    let over = crawl(200, &|path| {
        if path == "/" {
            let stubs: Vec<String> = (0..40).map(|n| format!("/old/{n}")).collect();
            return Some(home(&stubs.iter().map(String::as_str).collect::<Vec<_>>()));
        }
        match path.strip_prefix("/old/") {
            Some(n) => Some(format!(
                "This page has moved. {}",
                link(&format!("/new/{n}"))
            )),
            None => Some(prose(path, 30)),
        }
    });
    assert_eq!((over.fetched.len(), over.rules.len()), (81, 0));
}

#[test]
fn near_duplicates_alone_defer_nothing() {
    let over = crawl(400, &|path| {
        if path == "/" {
            let pages: Vec<String> = (0..150).map(|n| format!("/item?id={n}")).collect();
            return Some(home(&pages.iter().map(String::as_str).collect::<Vec<_>>()));
        }
        Some(format!(
            "<h1>Item</h1>{} {}",
            prose("all alike", 80),
            link("/")
        ))
    });
    assert_eq!((over.fetched.len(), over.rules.len()), (151, 0));
}

#[test]
fn a_deferred_kind_is_revived_by_something_new() {
    let mut traps = TrapDetector::new(SpellingStepPolicies::default(), true);
    let url = |n: u32| {
        canonicalize(
            None,
            &format!("http://a.example/cal/{}/{}", 1990 + n / 12, n % 12 + 1),
        )
        .unwrap()
    };
    let visit = |traps: &mut TrapDetector, n: u32, text: &str| {
        let (at, next) = (url(n), url(n + 1));
        let gist = PageFingerprint::of_markup(text, &at);
        let visit = PageEvidence {
            url: &at,
            level: 1,
            answer: AnswerEvidence::Text(&gist),
        };
        let judgement = traps.observe(&visit);
        (
            judgement,
            judgement.is_barren && traps.record_children(&visit, [&next].into_iter()),
        )
    };
    let empty = "Nothing is planned for this month, come back another time";
    let deferred: Vec<bool> = (0..4).map(|n| visit(&mut traps, n, empty).1).collect();
    assert_eq!(deferred, [false, false, false, true]);
    let probe = (5..)
        .find(|n| traps.disposition(&url(*n), None, 1) == UrlDisposition::Fetch)
        .unwrap();
    assert_eq!(probe, 5 + 127, "the 128th is asked for");
    assert!(matches!(
        traps.disposition(&url(999), None, 1),
        UrlDisposition::Defer(_)
    ));
    // The stored state restores a detector that decides as before.
    let stored = traps.stored().unwrap();
    assert_eq!(traps.stored(), None);
    let mut started = TrapDetector::new(SpellingStepPolicies::default(), true);
    started.restore(&stored);
    assert_eq!(
        started.standing(&url(999), None, 1),
        traps.standing(&url(999), None, 1)
    );
    started.restore(b"nonsense\n\t\t");
    started.restore(b"parked 2\nnonsense\n\t\t");
    let (judgement, _) = visit(&mut traps, probe, &prose("a concert", 30));
    assert!(judgement.traps_changed && !judgement.is_barren);
    assert_eq!(traps.standing(&url(999), None, 1), UrlDisposition::Fetch);
    // After a wrong deferral, a trap needs twice as many pages.
    let again: Vec<bool> = (200..208).map(|n| visit(&mut traps, n, empty).1).collect();
    assert_eq!(again.iter().position(|deferred| *deferred), Some(5));
}

#[test]
fn without_defers_nothing_is_delayed_or_deferred() {
    let mut traps = TrapDetector::new(SpellingStepPolicies::default(), false);
    for n in 0..50 {
        let url = |n: u32| canonicalize(None, &format!("http://a.example/cal/2031/{n}")).unwrap();
        let at = url(n);
        let gist = PageFingerprint::of_markup("Nothing is planned for this month", &at);
        let visit = PageEvidence {
            url: &at,
            level: 0,
            answer: AnswerEvidence::Text(&gist),
        };
        let judgement = traps.observe(&visit);
        assert_eq!((judgement.level, judgement.is_barren), (0, false));
        assert_eq!(
            traps.disposition(&url(n + 1), None, 0),
            UrlDisposition::Fetch
        );
        assert!(!traps.needs_care(&url(n + 1), 0));
    }
}

#[test]
fn plain_pages_end_after_24_in_a_row_without_anything_new() {
    let text = prose("home", 100);
    let words: Vec<&str> = text.split(' ').collect();
    let over = crawl(60, &|path| {
        let Some(n) = path.strip_prefix("/x/p") else {
            return Some(format!("{text}<a href='/x/p0'></a>"));
        };
        let n: usize = n.parse().ok()?;
        let text_part = words[n..n + 40].join(" ");
        Some(format!("{text_part}<a href='/x/p{}'></a>", n + 1))
    });
    assert_eq!(over.fetched_in("/x/"), 24);
    let rules = over.rules();
    assert!(rules.starts_with("endless /x/*: 24 fetched"), "{rules}");
    let examples = "; such as http://a.example/x/p0 http://a.example/x/p1";
    assert!(over.rules.values().all(|rule| rule.ends_with(examples)));
}

/// Returns a site of short entries. Each entry is linked only from the entry before.
fn dictionary(entries: usize) -> impl Fn(&str) -> Option<String> {
    let word = |n: usize| prose(&format!("word {n}"), 1).trim().to_owned();
    let words: Vec<_> = (0..=entries).map(word).collect();
    move |path| {
        let Some(at) = path.strip_prefix("/entry/") else {
            return Some(home(&[&format!("/entry/{}", words[0])]));
        };
        let n = words.iter().position(|word| word == at)?;
        let next = words.get(n + 1)?;
        Some(format!(
            "<title>{at}</title><p>{at}: noun. See also <a href='/entry/{next}'>{next}</a>"
        ))
    }
}

#[test]
fn a_dictionary_of_short_entries_is_read_to_the_end() {
    let over = crawl(100, &dictionary(60));
    assert_eq!(over.rules(), "");
    assert_eq!(over.fetched_in("/entry/"), 61);
}

#[test]
fn an_endless_chain_of_equal_pages_in_fresh_folders_ends() {
    let over = crawl(300, &|path| {
        let next = super::stable_hash::of(path.as_bytes()) as u32;
        Some(format!(
            "{} {}",
            prose("same", 60),
            link(&format!("/{next:08x}/a"))
        ))
    });
    assert!(over.fetched_in("/") < 60, "{}", over.fetched_in("/"));
    let rules = over.rules();
    assert!(rules.contains("pages have the same text"), "{rules}");
}

#[test]
fn an_endless_chain_of_entries_ends_after_192() {
    let over = crawl(300, &dictionary(1_000));
    assert_eq!(over.fetched_in("/entry/"), 192);
    let rules = over.rules();
    assert!(
        rules.starts_with("endless /entry/*: 192 fetched"),
        "{rules}"
    );
}
