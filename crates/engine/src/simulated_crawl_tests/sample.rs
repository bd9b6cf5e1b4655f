//! Tests of samples in virtual time: which pages are drawn and fetched, and the rows of these
//! pages.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crawl_archive::rows::PageRow;
use crawl_fetcher::{Exchange, ExchangeFailure};
use crawl_frontier::{Frontier as _, MemoryFrontier, UnsettledUrl};
use crawl_sample::{SampleDesign, SampleMethod, rank};
use crawl_scheduler::Tick;
use crawl_weburl::canonicalize;

use super::scripted_servers::{answer, moved, page, rows};
use super::{SimulatedRunSettings, SimulatedServers, SimulationResult, config, play_run};
use crate::config::Config;
use crate::messages::RequestJob;
use crate::revisit::visit::Round;
use crate::sampling::SampleState;
use crate::summary::EndReason;

/// A host whose sitemap lists ten pages. Each page links to the next one and to an unlisted page.
/// The third page is gone, the fifth redirects to the sixth (which is listed), and the seventh
/// redirects to an unlisted page.
struct TenPageHost;

impl SimulatedServers for TenPageHost {
    fn exchange(&mut self, job: &RequestJob, now: Tick) -> Result<Exchange, ExchangeFailure> {
        let url = job.url();
        let reply = match url.path_and_query() {
            "/robots.txt" => answer(200, "User-agent: *\nDisallow: /p9\n"),
            "/sitemap.xml" => {
                let each = (0..10).map(|page| format!("<url><loc>{}</loc></url>", listed(page)));
                let body = format!("<urlset>{}</urlset>", each.collect::<String>());
                answer(200, &body).with("content-type", "application/xml")
            }
            "/" => page("<a href=/linked>x</a>"),
            "/p3" => answer(404, ""),
            "/p5" => moved("/p6"),
            "/p7" => moved("/unlisted"),
            path => {
                let next = path
                    .strip_prefix("/p")
                    .and_then(|page| page.parse::<u32>().ok());
                let next = next.unwrap_or(0) + 1;
                page(&format!(
                    "<a href=/p{next}>next</a><a href=/of-a-page>x</a>"
                ))
            }
        };
        reply.result(url, now)
    }
}

fn listed(page: u32) -> String {
    format!("http://a.example/p{page}")
}

/// Runs a crawl over a frontier that earlier runs may have used. The rows are added to `dir`.
fn run(
    frontier: &Arc<MemoryFrontier>,
    dir: &Path,
    servers: &mut dyn SimulatedServers,
    change: impl FnOnce(&mut Config),
) -> SimulationResult {
    let mut config = config(dir);
    config.seeds = vec![canonicalize(None, "http://a.example/").unwrap()];
    config.max_sitemap_urls = None;
    change(&mut config);
    let run = SimulatedRunSettings {
        config,
        frontier: Arc::clone(frontier),
        seed: 1,
        round: Round::first(0),
        page_takes: Duration::ZERO,
        earlier: &mut |_| {},
    };
    play_run(run, &mut |_, _| Vec::new(), servers)
}

fn design(pages: usize, frame_depth: u32, seed: &str) -> SampleMethod {
    SampleMethod::Draw(SampleDesign {
        pages,
        seed: seed.to_owned(),
        frame_depth,
        ..SampleDesign::default()
    })
}

/// Returns the path of each fetched page and, according to its row, why it is in the sample.
fn sampled(dir: &Path) -> BTreeMap<String, String> {
    let rows = rows::<PageRow>(dir, "pages.jsonl");
    let pages = rows
        .into_iter()
        .filter(|row| !row.url.ends_with(".xml"))
        .map(|row| {
            let sample = row.sample.unwrap();
            let probability = sample
                .probability
                .map_or("unknown".to_owned(), |probability| probability.to_string());
            let of = sample
                .of
                .map(|of| format!(" {}/{of}", sample.drawn.unwrap()));
            let inclusion = format!("{}{} {probability}", sample.how, of.unwrap_or_default());
            (row.url.replace("http://a.example", ""), inclusion)
        });
    pages.collect()
}

#[test]
fn the_pages_of_least_rank_are_fetched_and_none_of_their_links() {
    // The sample of each random seed contains a redirect. With the random seed 12 the redirect's
    // target is not drawn, with 8 it is drawn too, and with 5 it is outside the sampling frame.
    for (seed, leads_to) in [("12", "/p6"), ("8", "/p6"), ("5", "/unlisted")] {
        let dir = tempfile::tempdir().unwrap();
        let sample = design(4, 0, seed);
        let frontier = Arc::new(MemoryFrontier::new());
        let played = run(&frontier, dir.path(), &mut TenPageHost, |config| {
            config.sample = Some(sample);
        });
        assert_eq!(played.ended, EndReason::Finished);
        // The sampling frame contains the seed and nine listed pages. robots.txt excludes the tenth
        // listed page.
        let frame = (0..9).map(listed).chain(["http://a.example/".to_owned()]);
        let mut frame: Vec<_> = frame.collect();
        frame.sort_by_key(|url| rank(seed, url));
        let drawn: BTreeSet<_> = frame[..4].iter().cloned().collect();
        let path = |url: &String| url.replace("http://a.example", "");
        let mut expected: BTreeMap<_, _> = drawn
            .iter()
            .map(|url| (path(url), "drawn 4/10 0.4".to_owned()))
            .collect();
        if !drawn.contains(&format!("http://a.example{leads_to}")) {
            expected.insert(leads_to.to_owned(), "redirect unknown".to_owned());
        }
        let pages = sampled(dir.path());
        assert!(pages.contains_key(leads_to), "another seed is to be chosen");
        assert_eq!(pages, expected);
        let mut aside = BTreeMap::new();
        let show = &mut |waiting: UnsettledUrl<'_>| {
            let rule = waiting.exclusion.unwrap().rule.clone();
            aside.insert(path(&waiting.url.to_string()), rule.unwrap());
            ControlFlow::Continue(())
        };
        frontier.each_deferred(show).unwrap();
        let mut undrawn: BTreeMap<_, _> = frame[4..]
            .iter()
            .map(|url| (path(url), "not drawn".to_owned()))
            .collect();
        undrawn.remove(leads_to);
        undrawn.insert("/of-a-page".to_owned(), "found after the draw".to_owned());
        if drawn.contains("http://a.example/") {
            undrawn.insert("/linked".to_owned(), "found after the draw".to_owned());
        }
        assert_eq!(aside, undrawn);
    }
}

#[test]
fn pages_read_for_the_frame_have_probability_1() {
    let dir = tempfile::tempdir().unwrap();
    run(&Arc::default(), dir.path(), &mut TenPageHost, |config| {
        config.sample = Some(design(100, 1, "1"));
    });
    let pages = sampled(dir.path());
    assert_eq!(pages["/"], "frame 1");
    // The links of the seed belong to the sampling frame, but the links of drawn pages do not.
    assert_eq!(pages["/linked"], "drawn 10/10 1");
    assert_eq!(pages["/unlisted"], "redirect unknown");
    assert!(!pages.contains_key("/of-a-page"));
}

#[test]
fn an_interrupted_crawl_draws_the_same_sample() {
    let whole = tempfile::tempdir().unwrap();
    let sample = || Some(design(4, 0, "5"));
    run(&Arc::default(), whole.path(), &mut TenPageHost, |config| {
        config.sample = sample();
    });
    let whole = sampled(whole.path());
    // The run is interrupted before the draw, right after it, or between the drawn pages.
    for seconds in [1, 2, 3, 5] {
        let dir = tempfile::tempdir().unwrap();
        let mut frontier = Arc::new(MemoryFrontier::new());
        let played = run(&frontier, dir.path(), &mut TenPageHost, |config| {
            config.sample = sample();
            config.budgets.max_time = Some(Duration::from_secs(seconds));
        });
        assert_eq!(played.ended, EndReason::Budget("max-time"), "{seconds}");
        frontier = Arc::new(Arc::try_unwrap(frontier).unwrap().restarted());
        let again = tempfile::tempdir().unwrap();
        run(&frontier, again.path(), &mut TenPageHost, |config| {
            config.sample = sample();
        });
        let mut both = sampled(dir.path());
        for (path, told) in sampled(again.path()) {
            assert_eq!(both.insert(path, told), None, "a page is settled twice");
        }
        assert_eq!(both, whole, "{seconds}");
        // A third run has nothing left to request. A run with another design of the sample is
        // refused.
        let third = tempfile::tempdir().unwrap();
        let played = run(&frontier, third.path(), &mut TenPageHost, |config| {
            config.sample = sample();
        });
        assert_eq!(played.requests, []);
        let mut config = config(third.path());
        config.sample = Some(design(4, 0, "6"));
        assert!(SampleState::open(&config, &*frontier).is_err());
    }
}

#[test]
fn nothing_is_drawn_while_a_budget_holds_a_host_back() {
    let frontier = Arc::new(MemoryFrontier::new());
    let seeds = [
        "http://a.example/",
        "http://b.example/",
        "http://b.example/p0",
    ];
    let change = |config: &mut Config| {
        config.seeds = seeds.map(|url| canonicalize(None, url).unwrap()).into();
        config.sample = Some(design(2, 1, "5"));
    };
    let strata = |dir: &Path| -> BTreeSet<String> {
        let rows = rows::<PageRow>(dir, "pages.jsonl").into_iter();
        rows.filter_map(|row| row.sample?.stratum).collect()
    };
    let dir = tempfile::tempdir().unwrap();
    let played = run(&frontier, dir.path(), &mut TenPageHost, |config| {
        change(config);
        config.budgets.per_host.max_pages = Some(2);
    });
    assert_eq!(played.ended, EndReason::Budget("max-pages-per-host"));
    assert_eq!(frontier.meta("sample").unwrap(), None);
    assert_eq!(strata(dir.path()), BTreeSet::new());
    let frontier = Arc::new(Arc::try_unwrap(frontier).unwrap().restarted());
    let again = tempfile::tempdir().unwrap();
    run(&frontier, again.path(), &mut TenPageHost, change);
    let both = ["a.example", "b.example"].map(str::to_owned);
    assert_eq!(strata(again.path()), both.into());
}

#[test]
fn nothing_is_drawn_from_an_empty_frame() {
    let dir = tempfile::tempdir().unwrap();
    let frontier = Arc::new(MemoryFrontier::new());
    struct Gone;
    impl SimulatedServers for Gone {
        fn exchange(&mut self, job: &RequestJob, now: Tick) -> Result<Exchange, ExchangeFailure> {
            answer(404, "").result(job.url(), now)
        }
    }
    let sample = || Some(design(4, 1, "5"));
    run(&frontier, dir.path(), &mut Gone, |config| {
        config.sample = sample();
    });
    assert_eq!(frontier.meta("sample").unwrap(), None);
    assert_eq!(sampled(dir.path())["/"], "frame 1");
}
