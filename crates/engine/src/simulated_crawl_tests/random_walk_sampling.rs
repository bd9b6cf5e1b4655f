//! Tests of random walks in virtual time. Each walk is compared with one that the test computes
//! itself.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crawl_archive::rows::{PageRow, RandomWalkStep};
use crawl_fetcher::{Exchange, ExchangeFailure};
use crawl_frontier::{Frontier as _, MemoryFrontier, UnsettledUrl};
use crawl_sample::{SampleMethod, WalkDesign};
use crawl_scheduler::{SnapshotCompleteness, Tick};
use crawl_weburl::{CanonicalUrl, canonicalize};

use super::scripted_servers::{answer, moved, page, rows};
use super::{SimulatedRunSettings, SimulatedServers, SimulationResult, config, drawn, play_run};
use crate::config::Config;
use crate::messages::RequestJob;
use crate::revisit::visit::Round;
use crate::sampling::SampleState;
use crate::summary::EndReason;

const PAGES: u64 = 40;
const SEEDS: [&str; 2] = ["http://a.example/p0", "http://b.example/p1"];

/// Two hosts whose pages link to each other. `pace` determines how long their answers take.
struct LinkedHosts {
    pace: u64,
}

/// The destinations of a page: the page's links, the target of its redirect, or none (with the
/// reason).
enum ExpectedDestinations {
    Links(Vec<String>),
    Redirect(String),
    Nothing(&'static str),
}

fn number(url: &CanonicalUrl) -> Option<u64> {
    url.path().strip_prefix("/p")?.parse().ok()
}

/// The query of URLs that look like actions.
const ACTION: &str = "?action=delete";

fn at(host: &str, number: u64) -> String {
    let number = number % PAGES;
    let query = if number % 20 == 18 { ACTION } else { "" };
    format!("http://{host}/p{number}{query}")
}

fn leads(url: &str) -> ExpectedDestinations {
    let url = canonicalize(None, url).unwrap();
    let number = number(&url).unwrap();
    match number % 10 {
        3 => ExpectedDestinations::Nothing("no page"),
        4 => ExpectedDestinations::Redirect(at(url.host(), number + 1)),
        6 => ExpectedDestinations::Nothing("no links"),
        7 => ExpectedDestinations::Nothing("excluded"),
        _ => {
            let host = url.host();
            let link = |link: u64| {
                let draw = drawn(
                    5,
                    &[
                        host.len() as u64 + u64::from(host.as_bytes()[0]),
                        number,
                        link,
                    ],
                );
                let to = ["a.example", "b.example"][(draw % 2) as usize];
                at(to, draw / 7)
            };
            let links: BTreeSet<_> = (0..5).map(link).collect();
            ExpectedDestinations::Links(links.into_iter().collect())
        }
    }
}

impl SimulatedServers for LinkedHosts {
    fn exchange(&mut self, job: &RequestJob, now: Tick) -> Result<Exchange, ExchangeFailure> {
        let url = job.url();
        let reply = match number(url) {
            None => answer(
                200,
                "User-agent: *\nDisallow: /p7\nDisallow: /p17\nDisallow: /p27\nDisallow: /p37\n",
            ),
            Some(number) => match leads(url.as_str()) {
                ExpectedDestinations::Links(links) => {
                    let barred = at(url.host(), number + 11);
                    let links = links.iter().rev().map(|to| format!("<a href={to}>x</a>"));
                    let links = links.chain([format!("<a rel=nofollow href={barred}>x</a>")]);
                    // Each link occurs twice, as is common on real pages.
                    page(&links.collect::<String>().repeat(2))
                }
                ExpectedDestinations::Redirect(to) => moved(&to),
                ExpectedDestinations::Nothing("no links") => page("nothing"),
                ExpectedDestinations::Nothing(_) => answer(404, "<a href=/p0>x</a>"),
            },
        };
        let takes = drawn(
            self.pace,
            &[number(url).unwrap_or(99), url.host().len() as u64],
        ) % 3_000;
        reply.taking(Duration::from_millis(takes)).result(url, now)
    }

    fn is_overtaking(&self) -> bool {
        self.pace == 2
    }
}

fn design() -> WalkDesign {
    WalkDesign {
        walkers: 3,
        steps: 60,
        restart: 0.1,
        seed: "press 2026".to_owned(),
    }
}

/// Runs a crawl over a frontier that earlier runs may have used. The rows are added to `dir`.
fn run(
    frontier: &Arc<MemoryFrontier>,
    dir: &Path,
    pace: u64,
    change: impl FnOnce(&mut Config),
) -> SimulationResult {
    let mut config = config(dir);
    config.seeds = SEEDS.map(|url| canonicalize(None, url).unwrap()).into();
    config.sitemaps = false;
    config.sample = Some(SampleMethod::Walk(design()));
    change(&mut config);
    let run = SimulatedRunSettings {
        config,
        frontier: Arc::clone(frontier),
        seed: pace,
        round: Round::first(0),
        page_takes: Duration::ZERO,
        earlier: &mut |coordinator| {
            coordinator.restore(SnapshotCompleteness::Complete).unwrap();
        },
    };
    play_run(run, &mut |_, _| Vec::new(), &mut LinkedHosts { pace })
}

/// Returns the steps in the rows of `dir`, ordered by walker and step.
fn steps(dir: &Path) -> Vec<RandomWalkStep> {
    let mut steps = rows::<RandomWalkStep>(dir, "walk.jsonl");
    steps.sort_by_key(|row| (row.walker, row.step));
    steps
}

/// Computes the steps of the walk as the documentation describes them.
fn expected() -> Vec<RandomWalkStep> {
    let design = design();
    let mut steps = Vec::new();
    for walker in 1..=design.walkers {
        let mut at: Option<String> = None;
        for step in 1..=design.steps {
            let row = |how: &str, why: Option<&str>, url: &str, from: &Option<String>, links| {
                RandomWalkStep {
                    walker,
                    step,
                    how: how.to_owned(),
                    why: why.map(str::to_owned),
                    url: url.to_owned(),
                    from: from.clone(),
                    links,
                }
            };
            let seed = SEEDS[design.start(walker, step, SEEDS.len())];
            let mut next = match at.as_deref().map(leads) {
                None => row("start", None, seed, &at, None),
                Some(ExpectedDestinations::Links(links)) => {
                    match design.link(walker, step, links.len()) {
                        Some(link) => {
                            row("link", None, &links[link], &at, Some(links.len() as u64))
                        }
                        None => row(
                            "restart",
                            Some("chance"),
                            seed,
                            &at,
                            Some(links.len() as u64),
                        ),
                    }
                }
                // An error page has no links, so the walk restarts. The row gives only the error as
                // the reason.
                Some(ExpectedDestinations::Nothing(why)) => {
                    row("restart", Some(why), seed, &at, Some(0))
                }
                Some(ExpectedDestinations::Redirect(_)) => unreachable!("it was followed"),
            };
            loop {
                at = Some(next.url.clone());
                steps.push(next);
                match leads(at.as_deref().unwrap()) {
                    ExpectedDestinations::Redirect(to) => {
                        next = row("redirect", None, &to, &at, None);
                    }
                    _ => break,
                }
            }
        }
    }
    steps
}

fn requested_urls(played: &SimulationResult) -> Vec<String> {
    let pages = played.requests.iter().filter(|row| row.purpose != "robots");
    pages.map(|row| row.url.clone()).collect()
}

#[test]
fn a_walk_does_not_depend_on_the_order_of_answers() {
    let expected = expected();
    let how = |how: &str| expected.iter().filter(|row| row.how == how).count();
    assert!(how("redirect") > 3 && how("restart") > 20 && how("link") > 60);
    let mut orders = BTreeSet::new();
    for pace in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        let frontier = Arc::new(MemoryFrontier::new());
        let played = run(&frontier, dir.path(), pace, |_| {});
        assert_eq!(played.ended, EndReason::Finished);
        assert_eq!(steps(dir.path()), expected);
        let mut urls = requested_urls(&played);
        orders.insert(urls.clone());
        let times = urls.len();
        urls.sort_unstable();
        urls.dedup();
        assert_eq!(urls.len(), times, "a page is asked for twice");
        // The fetched URLs are exactly those that walkers reached and that robots.txt allows.
        let came_to: BTreeSet<_> = expected
            .iter()
            .filter(|row| !matches!(leads(&row.url), ExpectedDestinations::Nothing("excluded")))
            .map(|row| row.url.clone())
            .collect();
        assert_eq!(urls, came_to.iter().cloned().collect::<Vec<_>>());
        let pages = rows::<PageRow>(dir.path(), "pages.jsonl");
        assert_eq!(pages.len(), came_to.len());
        for row in pages {
            let sample = row.sample.unwrap();
            assert_eq!((&*sample.how, sample.probability), ("walk", None));
            assert!(sample.unknown.is_some());
        }
        let mut aside = 0;
        let count = &mut |waiting: UnsettledUrl<'_>| {
            assert!(!came_to.contains(waiting.url.as_str()), "{}", waiting.url);
            aside += 1;
            ControlFlow::Continue(())
        };
        frontier.each_deferred(count).unwrap();
        assert!(aside > 0 && frontier.counts().pending == 0);
    }
    assert!(orders.len() > 1, "the answers came in one order");
}

#[test]
fn an_interrupted_walk_continues_unchanged() {
    let expected = expected();
    for seconds in [1, 2, 5, 11, 30, 47] {
        let mut frontier = Arc::new(MemoryFrontier::new());
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let played = run(&frontier, first.path(), 1, |config| {
            config.budgets.max_time = Some(Duration::from_secs(seconds));
        });
        assert_eq!(played.ended, EndReason::Budget("max-time"), "{seconds}");
        frontier = Arc::new(Arc::try_unwrap(frontier).unwrap().restarted());
        // The seeds that a later run adds do not join the walk.
        let again = run(&frontier, second.path(), 2, |config| {
            config.seeds.truncate(1);
        });
        assert_eq!(again.ended, EndReason::Finished);
        let mut both = steps(first.path());
        both.extend(steps(second.path()));
        both.sort_by_key(|row| (row.walker, row.step));
        assert_eq!(both, expected, "{seconds}");
        let settled: Vec<_> = rows::<PageRow>(first.path(), "pages.jsonl")
            .into_iter()
            .map(|row| row.url)
            .collect();
        assert!(
            requested_urls(&again)
                .iter()
                .all(|url| !settled.contains(url))
        );
        let mut config = config(second.path());
        config.sample = Some(SampleMethod::Walk(WalkDesign {
            seed: "another".to_owned(),
            ..design()
        }));
        assert!(SampleState::open(&config, &*frontier).is_err());
    }
}

#[test]
fn a_page_beyond_a_lower_depth_limit_ends_no_walk() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut frontier = Arc::new(MemoryFrontier::new());
    let played = run(&frontier, first.path(), 1, |config| {
        config.budgets.max_time = Some(Duration::from_secs(5));
    });
    assert_eq!(played.ended, EndReason::Budget("max-time"));
    frontier = Arc::new(Arc::try_unwrap(frontier).unwrap().restarted());
    let again = run(&frontier, second.path(), 2, |config| {
        config.scope.max_depth = Some(0);
    });
    assert_eq!(again.ended, EndReason::Finished);
    assert!(
        requested_urls(&again)
            .iter()
            .all(|url| SEEDS.contains(&&**url))
    );
    let mut last = steps(second.path());
    last.retain(|row| row.step == design().steps);
    let ended: BTreeSet<u32> = last.iter().map(|row| row.walker).collect();
    assert_eq!(ended, BTreeSet::from([1, 2, 3]));
}

#[test]
fn a_walk_ends_if_all_its_seeds_are_excluded() {
    let dir = tempfile::tempdir().unwrap();
    let frontier = Arc::new(MemoryFrontier::new());
    let played = run(&frontier, dir.path(), 0, |config| {
        config.seeds = vec![canonicalize(None, "http://a.example/p7").unwrap()];
    });
    assert_eq!(
        (played.ended.clone(), requested_urls(&played)),
        (EndReason::Finished, Vec::new())
    );
    let steps = steps(dir.path());
    assert_eq!(steps.len(), 3 * 60);
    let is_restart = |row: &&RandomWalkStep| row.why.as_deref() == Some("excluded");
    assert_eq!(steps.iter().filter(is_restart).count(), 3 * 59);
}

#[test]
fn a_resumed_walk_that_skips_actions_ends() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut frontier = Arc::new(MemoryFrontier::new());
    let played = run(&frontier, first.path(), 1, |config| {
        config.budgets.max_time = Some(Duration::from_secs(60));
    });
    assert_eq!(played.ended, EndReason::Budget("max-time"));
    frontier = Arc::new(Arc::try_unwrap(frontier).unwrap().restarted());
    let again = run(&frontier, second.path(), 2, |config| {
        config.traps.skip_actions = true;
    });
    assert_eq!(again.ended, EndReason::Finished);
    let is_action = |url: &String| url.ends_with(ACTION);
    assert!(requested_urls(&played).iter().any(is_action));
    assert!(!requested_urls(&again).iter().any(is_action));
}
