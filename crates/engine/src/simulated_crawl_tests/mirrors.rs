//! Tests of a host that serves the same pages as another host.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use crawl_fetcher::{Exchange, ExchangeFailure};
use crawl_frontier::{Frontier as _, MemoryFrontier, UnsettledUrl};
use crawl_scheduler::Tick;
use crawl_scope::ScopeMode;
use crawl_weburl::canonicalize;

use super::scripted_servers::{answer, page};
use super::{SimulatedRunSettings, SimulatedServers, config, drawn, play_run};
use crate::config::TrapAvoidance;
use crate::messages::RequestJob;
use crate::revisit::visit::Round;
use crate::summary::EndReason;

/// The number of pages that show that one host mirrors the other.
const PAGES: u64 = 12;
/// The number of further pages, which one of the hosts doesn't serve in some tests.
const DOCS: usize = 9;

/// Two hosts with the same pages. `a.example` counts as the mirror, because its first pages arrive
/// later.
struct MirroredHosts {
    /// The status of the pages under `/docs/` of `b.example`. Their answers take a minute.
    copies: u16,
}

impl SimulatedServers for MirroredHosts {
    fn exchange(&mut self, job: &RequestJob, now: Tick) -> Result<Exchange, ExchangeFailure> {
        let url = job.request().url;
        let path = url.path();
        let words: Vec<String> = (0..60)
            .map(|word| drawn(path.bytes().map(u64::from).sum(), &[word]).to_string())
            .collect();
        let html = page(&words.join(" "));
        let (is_mirror, is_of_docs) = (url.host() == "a.example", path.starts_with("/docs/"));
        let answer = match path {
            "/" => {
                let pages = (0..PAGES).map(|page| format!("<a href=/{page}>x</a>"));
                let docs = (0..DOCS).map(|page| format!("<a href=/docs/{page}>x</a>"));
                page(&pages.chain(docs).collect::<String>())
            }
            "/robots.txt" | "/sitemap.xml" => answer(404, ""),
            _ if is_of_docs && !is_mirror && self.copies != 200 => answer(self.copies, ""),
            _ => html,
        };
        let takes = match (is_mirror, is_of_docs) {
            (true, _) => Duration::from_millis(500),
            (false, false) => Duration::from_millis(50),
            (false, true) => Duration::from_secs(60),
        };
        answer.taking(takes).result(&url, now)
    }
}

#[test]
fn a_page_of_a_mirror_is_deferred_only_if_its_copy_is_fetched() {
    for (copies, fetched) in [(200, 0), (404, DOCS), (500, DOCS)] {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(dir.path());
        config.seeds = ["a", "b"]
            .map(|host| canonicalize(None, &format!("http://{host}.example/")).unwrap())
            .to_vec();
        config.scope.mode = ScopeMode::Host;
        config.traps = TrapAvoidance::default();
        let frontier = Arc::new(MemoryFrontier::new());
        let run = SimulatedRunSettings {
            config,
            frontier: Arc::clone(&frontier),
            seed: 1,
            round: Round::first(0),
            page_takes: Duration::ZERO,
            earlier: &mut |_| {},
        };
        let mut hosts = MirroredHosts { copies };
        let played = play_run(run, &mut |_, _| Vec::new(), &mut hosts);
        assert_eq!(played.ended, EndReason::Finished);
        let of_mirror = played.requests.iter();
        let of_mirror = of_mirror.filter(|row| row.url.starts_with("http://a.example/docs/"));
        let mut deferred = 0;
        let mut count = |waiting: UnsettledUrl<'_>| {
            deferred += usize::from(waiting.url.path().starts_with("/docs/"));
            ControlFlow::Continue(())
        };
        frontier.each_deferred(&mut count).unwrap();
        assert_eq!(
            (of_mirror.count(), deferred),
            (fetched, DOCS - fetched),
            "{copies}"
        );
    }
}
