//! Tests of an operator who steers a crawl in virtual time.

use std::sync::Arc;
use std::time::Duration;

use crawl_archive::rows::RequestRow;
use crawl_frontier::MemoryFrontier;
use crawl_scheduler::Tick;
use crawl_weburl::{CanonicalUrl, HostKey, canonicalize};
use expect_test::expect;

use super::{HOSTS, PAGES, START, SimulationResult, config, play};
use crate::config::Config;
use crate::control::{CommandAnswer, CommandRefusal, CrawlCommand};
use crate::revisit::visit::Round;
use crate::summary::{EndReason, UnfetchableHost};

const SEED: u64 = 3;
const HOUR: Duration = Duration::from_secs(3600);

fn host(number: u64) -> HostKey {
    HostKey::parse(&format!("h{number}.example")).unwrap()
}

fn url(text: &str) -> CanonicalUrl {
    canonicalize(None, text).unwrap()
}

/// Runs a crawl that this operator steers, after changing the configuration with `change`.
fn steered(
    change: impl FnOnce(&mut Config),
    mut person: impl FnMut(Tick, &[RequestRow]) -> Vec<CrawlCommand>,
) -> SimulationResult {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    change(&mut config);
    play(
        config,
        Arc::new(MemoryFrontier::new()),
        SEED,
        Round::first(0),
        &mut person,
    )
}

/// Returns an operator who sends each command once its number of requests have ended.
fn after(
    mut script: Vec<(usize, CrawlCommand)>,
) -> impl FnMut(Tick, &[RequestRow]) -> Vec<CrawlCommand> {
    move |_, requests| {
        let due = script
            .iter()
            .take_while(|(count, _)| *count <= requests.len());
        let due = due.count();
        script.drain(..due).map(|(_, command)| command).collect()
    }
}

fn starts_within(requests: &[RequestRow], from: Tick, until: Tick) -> usize {
    let within = from.as_millis() + 1..until.as_millis();
    requests
        .iter()
        .filter(|row| within.contains(&row.start))
        .count()
}

#[test]
fn a_paused_crawl_sends_nothing_and_does_not_end() {
    let (mut from, mut until) = (None, None);
    let person = |now: Tick, requests: &[RequestRow]| match (from, until) {
        (None, _) if requests.len() >= 100 => {
            from = Some(now);
            // A repeated command changes nothing.
            vec![
                CrawlCommand::Pause,
                CrawlCommand::Pause,
                CrawlCommand::State,
            ]
        }
        (Some(since), None) if now.since(since) >= 5 * HOUR => {
            until = Some(now);
            vec![
                CrawlCommand::State,
                CrawlCommand::Resume,
                CrawlCommand::Resume,
            ]
        }
        _ => Vec::new(),
    };
    // The pause is longer than the run's time limit, so the run can only finish if pauses don't
    // count.
    let played = steered(|config| config.budgets.max_time = Some(4 * HOUR), person);
    assert_eq!(played.ended, EndReason::Finished);
    assert_eq!(played.totals.pages, HOSTS * PAGES);
    let (from, until) = (from.unwrap(), until.unwrap());
    assert_eq!(starts_within(&played.requests, from, until), 0);
    let states = played.answers.iter().filter_map(|answer| match answer {
        Ok(CommandAnswer::State(live)) => Some(&live.progress),
        _ => None,
    });
    let shown: Vec<_> = states
        .map(|now| (now.phase, now.is_paused, now.in_flight > 0))
        .collect();
    expect![[r"
        [
            (
                Paused,
                true,
                true,
            ),
            (
                Paused,
                true,
                false,
            ),
        ]
    "]]
    .assert_debug_eq(&shown);
}

#[test]
fn max_time_does_not_count_pauses() {
    let time = Duration::from_secs(200);
    let (mut paused, mut resumed) = (None, None);
    let person = |now: Tick, _: &[RequestRow]| match (paused, resumed) {
        (None, _) if now.since(START) > time / 2 => {
            paused = Some(now);
            vec![CrawlCommand::Pause]
        }
        (Some(since), None) if now.since(since) > HOUR => {
            resumed = Some(now);
            vec![CrawlCommand::Resume]
        }
        _ => Vec::new(),
    };
    let played = steered(|config| config.budgets.max_time = Some(time), person);
    assert_eq!(played.ended, EndReason::Budget("max-time"));
    let resumed = resumed.unwrap().as_millis();
    let later = played.requests.iter().filter(|row| row.start >= resumed);
    assert!(later.count() > 50, "half of the time was left");
}

#[test]
fn a_parked_host_is_not_fetched_in_this_run_and_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let frontier = Arc::new(MemoryFrontier::new());
    let mut parked_at = None;
    let mut person = |now: Tick, requests: &[RequestRow]| {
        let is_requested = requests.iter().any(|row| row.host == "h3.example");
        match parked_at {
            None if is_requested => {
                parked_at = Some(now);
                vec![CrawlCommand::Park(host(3)), CrawlCommand::State]
            }
            _ => Vec::new(),
        }
    };
    let first = play(
        config(dir.path()),
        Arc::clone(&frontier),
        SEED,
        Round::first(0),
        &mut person,
    );
    let named = vec![UnfetchableHost {
        host: host(3),
        why: "it is parked".to_owned(),
        next_try: None,
        is_tried_at_start: false,
    }];
    assert_eq!(first.ended, EndReason::NoFetchableHost(named.clone()));
    let at = parked_at.unwrap().as_millis();
    let of_host = |played: &SimulationResult, since: u64| {
        let mut rows = played.requests.iter();
        rows.any(|row| row.host == "h3.example" && row.start > since)
    };
    assert!(!of_host(&first, at));
    let Ok(CommandAnswer::State(live)) = &first.answers[1] else {
        panic!("{:?}", first.answers)
    };
    assert_eq!(live.parked, [host(3)]);

    // In the next run, only the parked host has pages left, and they are not fetched.
    let mut nobody = |_: Tick, _: &[RequestRow]| Vec::new();
    let second = play(
        config(dir.path()),
        Arc::clone(&frontier),
        SEED,
        Round::first(0),
        &mut nobody,
    );
    assert_eq!(second.ended, EndReason::NoFetchableHost(named));
    assert!(second.requests.is_empty());
}

#[test]
fn an_unparked_host_is_fetched_again() {
    let took_back = 400;
    let played = steered(
        |_| {},
        after(vec![
            (20, CrawlCommand::Park(host(3))),
            (20, CrawlCommand::Park(host(3))),
            (took_back, CrawlCommand::Unpark(host(3))),
            (took_back, CrawlCommand::Unpark(host(3))),
        ]),
    );
    assert_eq!(played.ended, EndReason::Finished);
    assert_eq!(played.totals.pages, HOSTS * PAGES);
    let before = &played.requests[20 + 16..took_back];
    assert!(before.iter().all(|row| row.host != "h3.example"));
    let [one, other, back, again] = &played.answers[..] else {
        panic!("{:?}", played.answers)
    };
    for done in [one, other, back] {
        assert!(matches!(done, Ok(CommandAnswer::Done)), "{done:?}");
    }
    assert_eq!(
        *again.as_ref().unwrap_err(),
        CommandRefusal::NotParked(host(3))
    );
}

/// Returns the smallest gap of each host, counting only requests that began at or after `from`.
fn least_gaps(requests: &[RequestRow], from: u64) -> Vec<u64> {
    let gap = |host: u64| {
        let host = format!("h{host}.example");
        let rows = requests.iter().filter(|row| row.host == host);
        let rows: Vec<_> = rows.filter(|row| row.start >= from).collect();
        let gaps = rows.windows(2).map(|two| two[1].start - two[0].end);
        gaps.min()
    };
    (0..HOSTS).filter_map(gap).collect()
}

#[test]
fn a_delay_holds_for_one_host_or_for_all_and_undercuts_no_robots_txt() {
    let delay = |host: Option<HostKey>, delay: u64| CrawlCommand::Delay {
        host,
        delay: Duration::from_millis(delay),
    };
    let mut from = 0;
    let mut script = after(vec![
        (60, delay(None, 5_000)),
        (60, delay(Some(host(1)), 9_000)),
    ]);
    let played = steered(
        |_| {},
        |now, requests| {
            let commands = script(now, requests);
            if !commands.is_empty() {
                from = now.as_millis();
            }
            commands
        },
    );
    let gaps = least_gaps(&played.requests, from);
    assert!(
        gaps.len() > 20 && gaps.iter().all(|gap| *gap >= 5_000),
        "{gaps:?}"
    );
    assert!(
        least_gaps(&played.requests, 0)
            .iter()
            .any(|gap| *gap < 5_000)
    );
    let mut of_one = played.requests.clone();
    of_one.retain(|row| row.host == "h1.example");
    assert!(least_gaps(&of_one, from)[0] >= 9_000);

    // Hosts that the operator is responsible for may have a delay of zero. A delay that the host
    // itself sets still applies.
    let played = steered(
        |config| {
            config.own_site = true;
            config.politeness.delay_factor = 0.0;
        },
        after(vec![(0, delay(None, 0))]),
    );
    let gap_of = |why: &str| {
        let rows = played.requests.iter().filter(|row| row.why == why);
        rows.map(|row| row.gap_asked)
            .collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(
        gap_of("crawl-delay").into_iter().collect::<Vec<_>>(),
        [3_000]
    );
    assert_eq!(
        gap_of("request-rate").into_iter().collect::<Vec<_>>(),
        [2_000]
    );
    assert!(played.requests.iter().any(|row| row.gap_asked == 0));
}

#[test]
fn an_added_url_is_fetched_as_a_seed() {
    let added = "http://h77.example/p1";
    let played = steered(
        |_| {},
        after(vec![(30, CrawlCommand::Add(added.to_owned()))]),
    );
    assert!(matches!(played.answers[0], Ok(CommandAnswer::Done)));
    assert_eq!(played.totals.pages, (HOSTS + 1) * PAGES);
    let first = |purpose: &str| {
        let mut rows = played.requests.iter();
        let row = rows.find(|row| row.host == "h77.example" && row.purpose == purpose);
        row.unwrap().start
    };
    assert!(
        first("robots") < first("page"),
        "its robots.txt comes first"
    );
}

#[test]
fn an_added_page_of_an_earlier_round_is_visited_again() {
    let dir = tempfile::tempdir().unwrap();
    let frontier = Arc::new(MemoryFrontier::new());
    let added = "http://h5.example/p7";
    let run = |round: Round, commands: Vec<CrawlCommand>| {
        let commands = commands.into_iter().map(|command| (0, command));
        let mut person = after(commands.collect());
        let frontier = Arc::clone(&frontier);
        play(config(dir.path()), frontier, SEED, round, &mut person)
    };
    run(Round::first(0), Vec::new());
    let began = u32::try_from(START.as_millis() / 1000).unwrap() + 1_000_000;
    let second = Round::first(0).next(began, crate::crawl_totals::CrawlTotals::default());
    let add = || CrawlCommand::Add(added.to_owned());
    let played = run(second, vec![add()]);
    assert!(matches!(played.answers[..], [Ok(CommandAnswer::Done)]));
    let pages = played.requests.iter().filter(|row| row.purpose == "page");
    assert_eq!(
        pages.map(|row| row.url.as_str()).collect::<Vec<_>>(),
        [added]
    );
    let again = run(second, vec![add()]);
    let refused = again.answers[0].as_ref().unwrap_err();
    assert_eq!(*refused, CommandRefusal::Visited { url: url(added) });
}

#[test]
fn impossible_commands_are_refused_with_a_reason() {
    let add = |url: &str| CrawlCommand::Add(url.to_owned());
    let commands = vec![
        add("mailto:a@example.org"),
        add("not a url"),
        add("http://0.0.0.0/"),
        add("http://me:s3cret@h1.example/p1"),
        add("http://127.0.0.1:9/"),
        add("http://[::1]/"),
        add("http://localhost/"),
        add("http://h1.example/private/x"),
        add("http://h0.example/p1"),
        add("http://h0.example/p0"),
        CrawlCommand::Park(HostKey::parse("never.example").unwrap()),
        CrawlCommand::Unpark(host(1)),
        CrawlCommand::Delay {
            host: Some(HostKey::parse("never.example").unwrap()),
            delay: HOUR,
        },
        CrawlCommand::Delay {
            host: Some(host(1)),
            delay: Duration::from_millis(199),
        },
        CrawlCommand::Delay {
            host: None,
            delay: Duration::ZERO,
        },
    ];
    let script = commands.into_iter().map(|command| (500, command)).collect();
    let played = steered(
        |config| config.scope.exclude = vec!["/private/".to_owned()],
        after(script),
    );
    let mut shown = String::new();
    for answer in &played.answers {
        let refused = answer.as_ref().unwrap_err();
        assert!(!refused.hint().is_empty());
        shown += &format!("{refused}\n");
    }
    expect![[r#"
        unusable URL `mailto:a@example.org`: scheme `mailto` is not http or https
        unusable URL `not a url`: not a URL: relative URL without a base
        unusable URL `http://0.0.0.0/`: it names an address where no server can be
        the URL `http://..@HOST/` contains a user name or password
        http://127.0.0.1:9/ is in a private range
        http://[::1]/ is in a private range
        http://localhost/ is in a private range
        out of scope: http://HOST/private/x (exclude /private/)
        http://h0.example/p1 was visited in this round
        http://h0.example/p0 was excluded before: robots: Disallow: /p0 (line 2)
        unknown host `never.example`
        HOST is not parked
        unknown host `never.example`
        delay 199ms is under 200ms, and HOST is not on loopback or in a private range
        delay 0ms is under 200ms, and h0.example is not on loopback or in a private range
    "#]]
    .assert_eq(&shown.replace(url("http://h1.example/").host(), "HOST"));
    assert_eq!(played.ended, EndReason::Finished);
    assert_eq!(played.totals.pages, HOSTS * PAGES);
}
