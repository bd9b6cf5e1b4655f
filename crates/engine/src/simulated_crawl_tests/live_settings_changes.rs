//! Tests of rules that are changed while a simulated crawl runs.

use std::sync::Arc;
use std::time::Duration;

use crawl_archive::rows::RequestRow;
use crawl_frontier::{Frontier as _, KnownState, MemoryFrontier, Reason};
use crawl_scheduler::{Politeness, Tick};
use crawl_weburl::{HostPatternMap, canonicalize};

use super::{HOSTS, PAGES, SimulationResult, config, play};
use crate::config::{Config, CrawlBudgets, HostBudget, HostGroupBudget};
use crate::control::{AdjustableRules, CommandAnswer, CommandRefusal, CrawlCommand};
use crate::revisit::visit::Round;
use crate::summary::EndReason;

const SEED: u64 = 7;
const SECOND: Duration = Duration::from_secs(1);

fn rules(delay: Duration, exclude: &[&str], hosts: &[&str]) -> AdjustableRules {
    let mut exclude_hosts = HostPatternMap::default();
    for host in hosts {
        exclude_hosts.insert(host, ()).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    AdjustableRules {
        politeness: Politeness {
            delay,
            ..config(dir.path()).politeness
        },
        budgets: CrawlBudgets::default(),
        include: Vec::new(),
        exclude: exclude.iter().map(|&re| re.to_owned()).collect(),
        exclude_hosts,
        shared_settings: None,
        config_text: String::new(),
        audited: serde_json::Map::new(),
    }
}

fn played(
    frontier: &Arc<MemoryFrontier>,
    script: &[(usize, AdjustableRules)],
) -> (SimulationResult, Vec<u64>) {
    played_within(CrawlBudgets::default(), frontier, script)
}

/// Runs a crawl. Sends the rules of each entry of `script` once the entry's number of requests have
/// ended. Returns the result and the times of the changes.
fn played_within(
    budgets: CrawlBudgets,
    frontier: &Arc<MemoryFrontier>,
    script: &[(usize, AdjustableRules)],
) -> (SimulationResult, Vec<u64>) {
    let dir = tempfile::tempdir().unwrap();
    let (mut left, mut moments) = (script.iter(), Vec::new());
    let mut next = left.next();
    let mut person = |now: Tick, requests: &[RequestRow]| match next {
        Some((count, rules)) if *count <= requests.len() => {
            next = left.next();
            moments.push(now.as_millis());
            vec![CrawlCommand::Rules(Box::new(rules.clone()))]
        }
        _ => Vec::new(),
    };
    let frontier = Arc::clone(frontier);
    let config = Config {
        budgets,
        ..config(dir.path())
    };
    let played = play(config, frontier, SEED, Round::first(0), &mut person);
    (played, moments)
}

/// Returns the gaps before requests that began between `from` and `until`, ordered by host.
fn gaps(requests: &[RequestRow], from: u64, until: u64) -> Vec<u64> {
    let mut gaps = Vec::new();
    for host in 0..HOSTS {
        let host = format!("h{host}.example");
        let rows: Vec<_> = requests.iter().filter(|row| row.host == host).collect();
        let pairs = rows.windows(2);
        let within = pairs.filter(|two| (from..until).contains(&two[1].start));
        gaps.extend(within.map(|two| two[1].start - two[0].end));
    }
    gaps
}

#[test]
fn new_exclusions_apply_to_pending_urls_and_longer_delays_at_once() {
    let frontier = Arc::new(MemoryFrontier::new());
    let new = rules(5 * SECOND, &["/p7$"], &["h3.example"]);
    let (played, moments) = played(&frontier, &[(200, new)]);
    assert_eq!(played.ended, EndReason::Finished);
    assert!(matches!(played.answers[..], [Ok(CommandAnswer::Done)]));
    let from = moments[0];
    let later: Vec<_> = played
        .requests
        .iter()
        .filter(|row| row.start > from)
        .collect();
    assert!(later.len() > 100);
    for row in &later {
        // The excluded host gets no request at all, not even for its robots.txt.
        assert_ne!(row.host, "h3.example", "{row:?}");
        assert!(!row.url.ends_with("/p7"), "{row:?}");
    }
    let gaps = gaps(&played.requests, from + 1, u64::MAX);
    assert!(gaps.len() > 100 && gaps.iter().all(|gap| *gap >= 5_000));
    let state = |url: &str| {
        let record = frontier.known(&canonicalize(None, url).unwrap()).unwrap();
        record.map(|record| record.state)
    };
    let is_requested = |url: &str| played.requests.iter().any(|row| row.url == url);
    let excluded = (0..HOSTS).filter(|host| {
        let url = format!("http://h{host}.example/p7");
        let exclusion = match state(&url) {
            Some(KnownState::Excluded(exclusion)) => exclusion,
            Some(_) => {
                assert!(is_requested(&url));
                return false;
            }
            // The URL is unknown: neither a page fetched before the change nor one fetched later
            // links to it.
            None => return false,
        };
        let rule = match host {
            3 => "exclude-host h3.example",
            _ => "exclude /p7$",
        };
        assert_eq!(
            (exclusion.reason, exclusion.rule.as_deref()),
            (Reason::Scope, Some(rule))
        );
        true
    });
    assert!(excluded.count() > HOSTS as usize / 2);
    let [row] = &played.rereads[..] else {
        panic!("{:?}", played.rereads)
    };
    let reread = row.reread.as_ref().unwrap();
    assert_eq!(reread.added, ["exclude /p7$", "exclude-host h3.example"]);
    assert!(reread.removed.is_empty());
}

#[test]
fn a_shorter_delay_does_not_cut_the_current_gap_and_exclusions_stay() {
    let frontier = Arc::new(MemoryFrontier::new());
    let slower = rules(20 * SECOND, &[], &["h3.example"]);
    let quicker = rules(SECOND, &[], &[]);
    let (played, moments) = played(&frontier, &[(100, slower), (300, quicker)]);
    assert_eq!(played.ended, EndReason::Finished);
    let [slow, quick] = moments[..] else {
        panic!("{moments:?}")
    };
    let mut of_host = played
        .requests
        .iter()
        .filter(|row| row.host == "h3.example");
    assert!(of_host.all(|row| row.start <= slow || row.start >= quick));
    let mut promised = 0;
    for host in 0..HOSTS {
        let host = format!("h{host}.example");
        let rows: Vec<_> = played
            .requests
            .iter()
            .filter(|row| row.host == host)
            .collect();
        for two in rows.windows(2) {
            let gap = two[1].start - two[0].end;
            let least = match two[0].end > slow && two[0].end < quick {
                true => 20_000,
                false => 1_000,
            };
            assert!(gap >= least, "{gap} {two:?}");
            promised += u32::from(least == 20_000 && two[1].start > quick);
        }
    }
    assert!(promised > 10, "{promised}");
    assert!(played.totals.pages < HOSTS * PAGES);
    assert_eq!(played.rereads.len(), 2);
    let reread = played.rereads[1].reread.as_ref().unwrap();
    let removed = ["exclude-host h3.example".to_owned()];
    assert_eq!(*reread.removed, removed);
}

#[test]
fn unreadable_rules_change_nothing() {
    let frontier = Arc::new(MemoryFrontier::new());
    let (played, _) = played(&frontier, &[(100, rules(9 * SECOND, &["("], &[]))]);
    assert_eq!(played.ended, EndReason::Finished);
    assert_eq!(played.totals.pages, HOSTS * PAGES);
    assert!(matches!(
        played.answers[..],
        [Err(CommandRefusal::BadPattern(_))]
    ));
    assert!(played.rereads.is_empty());
    assert!(
        gaps(&played.requests, 0, u64::MAX)
            .iter()
            .any(|gap| *gap < 3_000)
    );
}

/// Returns the rules of [`config`] with these budgets.
fn with_budgets(budgets: CrawlBudgets) -> AdjustableRules {
    AdjustableRules {
        budgets,
        ..rules(
            config(tempfile::tempdir().unwrap().path()).politeness.delay,
            &[],
            &[],
        )
    }
}

fn per_host(max_pages: u64) -> CrawlBudgets {
    CrawlBudgets {
        per_host: HostBudget {
            max_pages: Some(max_pages),
            ..HostBudget::default()
        },
        ..CrawlBudgets::default()
    }
}

/// Returns whether a request fetched a page. A request answered 503 does not count, since it is
/// retried.
fn is_page(row: &RequestRow) -> bool {
    row.purpose == "page" && row.status == Some(200)
}

/// Returns the number of pages that were fetched from these hosts.
fn pages_of(played: &SimulationResult, hosts: std::ops::Range<u64>) -> u64 {
    let names: Vec<_> = hosts.map(|host| format!("h{host}.example")).collect();
    let pages = played.requests.iter().filter(|row| is_page(row));
    pages.filter(|row| names.contains(&row.host)).count() as u64
}

#[test]
fn a_raised_budget_reopens_full_hosts() {
    let frontier = Arc::new(MemoryFrontier::new());
    let (whole, _) = played(&frontier, &[]);
    let frontier = Arc::new(MemoryFrontier::new());
    let (held, _) = played_within(per_host(2), &frontier, &[]);
    assert_eq!(held.ended, EndReason::Budget("max-pages-per-host"));
    // The budgets are raised when the first hosts have already spent theirs.
    let frontier = Arc::new(MemoryFrontier::new());
    let more = [
        (60, with_budgets(per_host(5))),
        (200, with_budgets(CrawlBudgets::default())),
    ];
    let (played, moments) = played_within(per_host(2), &frontier, &more);
    assert_eq!((moments.len(), &played.ended), (2, &EndReason::Finished));
    assert_eq!(played.totals.pages, whole.totals.pages);
    assert_eq!(frontier.counts().pending, 0);
    let last = moments[1];
    for host in 0..HOSTS {
        let host = format!("h{host}.example");
        let early = played
            .requests
            .iter()
            .filter(|row| row.host == host && is_page(row) && row.start < last);
        assert!(early.count() <= 5, "{host}");
    }
}

#[test]
fn earlier_requests_count_against_new_budgets() {
    let group = |name: &str, max_pages: u64| {
        Arc::new(HostGroupBudget {
            name: name.to_owned(),
            max_pages: Some(max_pages),
            ..HostGroupBudget::default()
        })
    };
    let budgets = |hosts: std::ops::Range<u64>, max_pages: u64| {
        let mut budgets = CrawlBudgets::default();
        let group = group("some", max_pages);
        for host in hosts {
            let name = format!("h{host}.example");
            budgets.groups.insert(&name, Arc::clone(&group)).unwrap();
        }
        budgets
    };
    // Few hosts fit in memory, so most of the spent budgets are read back from the frontier.
    for (at, hosts, max_pages) in [(150, 10..30, 70), (300, 0..60, 400), (500, 5..8, 30)] {
        let frontier = Arc::new(MemoryFrontier::new());
        let new = with_budgets(budgets(hosts.clone(), max_pages));
        let (played, moments) = played(&frontier, &[(at, new)]);
        let before = played.requests.iter().filter(|row| row.end <= moments[0]);
        let before = before.filter(|row| is_page(row)).count() as u64;
        assert!(before > 20, "{before}");
        assert_eq!(pages_of(&played, hosts.clone()), max_pages, "{hosts:?}");
        assert_eq!(
            played.ended,
            EndReason::TableBudget("max-pages of group some".to_owned())
        );
        // Hosts outside the group are crawled completely.
        let unlimited = (0..HOSTS).filter(|host| !hosts.contains(host));
        for host in unlimited {
            assert_eq!(pages_of(&played, host..host + 1), PAGES, "h{host}");
        }
    }
    // A budget of the whole crawl, lowered during the run, ends the crawl.
    let frontier = Arc::new(MemoryFrontier::new());
    let new = with_budgets(CrawlBudgets {
        max_pages: Some(240),
        ..CrawlBudgets::default()
    });
    let (played, _) = played(&frontier, &[(200, new)]);
    assert_eq!(played.ended, EndReason::Budget("max-pages"));
    assert_eq!(played.totals.pages, 240);
}
