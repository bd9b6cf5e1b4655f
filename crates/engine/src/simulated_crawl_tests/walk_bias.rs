//! Measures the bias of page shares in a random walk. Many crawls walk through one known web, each
//! with another random seed. Their shares are compared with those computed from the walk's rules.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crawl_archive::rows::{PageRow, RandomWalkStep};
use crawl_fetcher::{Exchange, ExchangeFailure};
use crawl_frontier::MemoryFrontier;
use crawl_sample::{SampleMethod, WalkDesign};
use crawl_scheduler::Tick;
use crawl_weburl::canonicalize;

use super::scripted_servers::{answer, page, rows};
use super::{SimulatedRunSettings, SimulatedServers, config, drawn, play_run};
use crate::messages::RequestJob;
use crate::revisit::visit::Round;
use crate::summary::EndReason;

const PAGES: usize = 1_000;
/// Pages with numbers below this are popular. Every second link leads to a popular page, and so do
/// some of the other links by chance.
const POPULAR: usize = 200;
const STARTS: [usize; 2] = [3, 500];

/// The links of each page of a host, without repetitions.
struct HostLinkGraph(Vec<BTreeSet<usize>>);

impl HostLinkGraph {
    fn new() -> HostLinkGraph {
        let page = |from: usize| {
            let link = |link: u64| {
                let draw = drawn(drawn(7, &[from as u64, link]), &[link]);
                let among = if link.is_multiple_of(2) {
                    POPULAR
                } else {
                    PAGES
                };
                ((u128::from(draw) * among as u128) >> 64) as usize
            };
            (0..5).map(link).filter(|to| *to != from).collect()
        };
        HostLinkGraph((0..PAGES).map(page).collect())
    }

    /// Returns the probability that a walker is at a popular page, averaged over all steps of the
    /// walk.
    fn expected(&self, design: &WalkDesign) -> f64 {
        let starts = |from: f64| STARTS.map(|start| (start, from / STARTS.len() as f64));
        let mut at = vec![0.0; PAGES];
        for (start, share) in starts(1.0) {
            at[start] += share;
        }
        let mut sum = 0.0;
        for _ in 0..design.steps {
            sum += at[..POPULAR].iter().sum::<f64>();
            let mut next = vec![0.0; PAGES];
            for (start, share) in starts(design.restart) {
                next[start] += share;
            }
            for (links, share) in self.0.iter().zip(&at) {
                for to in links {
                    next[*to] += (1.0 - design.restart) * share / links.len() as f64;
                }
            }
            at = next;
        }
        sum / design.steps as f64
    }
}

fn url(number: usize) -> String {
    format!("http://a.example/p{number}")
}

fn number(url: &str) -> Option<usize> {
    url.split_once("/p")?.1.parse().ok()
}

impl SimulatedServers for &HostLinkGraph {
    fn exchange(&mut self, job: &RequestJob, now: Tick) -> Result<Exchange, ExchangeFailure> {
        let url = job.url();
        let reply = match number(url.path()) {
            Some(number) => {
                let links = self.0[number].iter();
                let links = links.map(|to| format!("<a href=/p{to}>x</a>"));
                page(&links.collect::<String>())
            }
            None => answer(404, ""),
        };
        reply.result(url, now)
    }
}

/// Returns the share of popular pages in the rows of one crawl: by steps, and by distinct pages.
/// The third number is the number of distinct pages.
fn shares(graph: &HostLinkGraph, design: WalkDesign) -> [f64; 3] {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.seeds = STARTS
        .map(|start| canonicalize(None, &url(start)).unwrap())
        .into();
    config.sitemaps = false;
    let steps = design.steps * u64::from(design.walkers);
    config.sample = Some(SampleMethod::Walk(design));
    let run = SimulatedRunSettings {
        config,
        frontier: Arc::new(MemoryFrontier::new()),
        seed: 1,
        round: Round::first(0),
        page_takes: Duration::ZERO,
        earlier: &mut |_| {},
    };
    let played = play_run(run, &mut |_, _| Vec::new(), &mut &*graph);
    assert_eq!(played.ended, EndReason::Finished);
    let share = |urls: &[String]| {
        let is_popular = |url: &&String| number(url).unwrap() < POPULAR;
        urls.iter().filter(is_popular).count() as f64 / urls.len() as f64
    };
    let walk = rows::<RandomWalkStep>(dir.path(), "walk.jsonl").into_iter();
    let walk: Vec<_> = walk.map(|row| row.url).collect();
    assert_eq!(walk.len() as u64, steps);
    let pages = rows::<PageRow>(dir.path(), "pages.jsonl").into_iter();
    let pages: Vec<_> = pages.map(|row| row.url).collect();
    [share(&walk), share(&pages), pages.len() as f64]
}

/// Returns the mean of the values, the standard error of the mean, the minimum and the maximum.
fn statistics(values: &[f64]) -> (f64, f64, f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    let error = (squares.sum::<f64>() / (count - 1.0) / count).sqrt();
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    let max = values.iter().copied().fold(0.0, f64::max);
    (mean, error, min, max)
}

/// Checks two estimates of the share of popular pages, over many crawls. The share by steps must
/// have no bias besides that of the walk itself. The share by distinct pages must be between the
/// share by steps and the truth. The bounds are four standard errors, which chance exceeds once in
/// 16,000.
fn check(crawls: u32) {
    let graph = HostLinkGraph::new();
    let design = |crawl: u32| WalkDesign {
        seed: format!("crawl {crawl}"),
        ..WalkDesign::default()
    };
    let (truth, expected) = (POPULAR as f64 / PAGES as f64, graph.expected(&design(0)));
    let all_shares: Vec<_> = (0..crawls)
        .map(|crawl| shares(&graph, design(crawl)))
        .collect();
    let [by_steps, by_pages, pages] = [0, 1, 2].map(|place| {
        statistics(
            &all_shares
                .iter()
                .map(|crawl| crawl[place])
                .collect::<Vec<_>>(),
        )
    });
    println!("{crawls} crawls, mean, standard error, least and most; the truth is {truth}");
    println!("by steps {by_steps:.4?}, expected {expected:.4}");
    println!("by pages {by_pages:.4?} of {pages:.1?}");
    let is_expected = (by_steps.0 - expected).abs() < 4.0 * by_steps.1;
    let is_biased = by_pages.0 - truth > 4.0 * by_pages.1;
    let is_nearer = all_shares.iter().all(|[steps, pages, _]| pages < steps);
    assert!(is_expected && is_biased && is_nearer);
}

#[test]
fn the_bias_of_a_walk_is_that_of_its_steps() {
    check(6);
}

#[test]
#[ignore = "takes minutes: its numbers stand in docs/sampling.md"]
fn the_bias_of_a_walk_is_that_of_its_steps_in_ten_times_100_crawls() {
    check(1_000);
}
