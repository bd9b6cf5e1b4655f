//! Compares a plan (an estimate of a crawl's cost) with the crawl that follows. Sites of the test
//! web give their real answers, but time is virtual.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crawl_fetcher::{Exchange, ExchangeFailure};
use crawl_frontier::MemoryFrontier;
use crawl_records::{BoundedEstimate, HostReport, PlanSettings};
use crawl_sample::{SampleDesign, SampleMethod};
use crawl_scheduler::Tick;
use crawl_testweb::{HttpAnswer as WebAnswer, LinkMix, TestWeb};
use crawl_weburl::canonicalize;
use tempfile::TempDir;

use super::scripted_servers::{SimulatedAnswer, answer};
use super::{
    START, SimulatedRunSettings, SimulatedServers, SimulationResult, config, drawn, play_run,
};
use crate::config::{Config, RunMode};
use crate::messages::RequestJob;
use crate::revisit::visit::Round;

const SITES: u32 = 25;

/// The sites of a test web. Each site has a typical response time.
struct PlannedSites<'w>(&'w TestWeb);

impl SimulatedServers for PlannedSites<'_> {
    fn exchange(&mut self, job: &RequestJob, now: Tick) -> Result<Exchange, ExchangeFailure> {
        let url = job.request().url;
        let mut hosts = 0..self.0.hosts();
        let host = hosts.find(|host| url.as_str().contains(self.0.authority(*host)));
        let host = host.unwrap();
        let millis = 100 + 100 * u64::from(host % 7);
        let more = drawn(7, &[u64::from(host), now.as_micros()]) % (millis / 5);
        let takes = Duration::from_millis(millis + more);
        let answer = get(self.0, host, url.path_and_query()).taking(takes);
        answer.result(&url, now)
    }
}

/// Sends one GET request on a new connection.
fn get(web: &TestWeb, host: u32, path: &str) -> SimulatedAnswer {
    let mut stream = TcpStream::connect(web.address(host)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_mins(2)))
        .unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    let kind = fields.find(|(name, _)| *name == "content-type");
    answer(status, body).with("content-type", kind.map_or("text/html", |(_, kind)| kind))
}

/// Starts sites of many sizes, each with a complete sitemap. Every fifth site sets a crawl delay.
fn web() -> TestWeb {
    let web = TestWeb::builder().seed(16).hosts(SITES).pages(40);
    let web = web.mix(LinkMix::plain()).gzip(false).start();
    for host in (0..SITES).step_by(5) {
        let sitemap = web.url(host, "/sitemap.xml");
        let rules = format!(
            "User-agent: *\nCrawl-delay: {}\nDisallow: /private/\nSitemap: {sitemap}\n",
            2 + host % 3
        );
        web.script(host, "/robots.txt", WebAnswer::text(&rules));
    }
    web
}

/// Runs a crawl over all sites, and returns its directory.
fn run(web: &TestWeb, change: impl FnOnce(&mut Config)) -> (TempDir, SimulationResult) {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    let roots = (0..web.hosts()).map(|host| canonicalize(None, &web.url(host, "/")).unwrap());
    config.seeds = roots.collect();
    config.politeness.per_address = 64;
    change(&mut config);
    let run = SimulatedRunSettings {
        config,
        frontier: Arc::new(MemoryFrontier::new()),
        seed: 1,
        round: Round::first(0),
        page_takes: Duration::ZERO,
        earlier: &mut |_| {},
    };
    let played = play_run(run, &mut |_, _| Vec::new(), &mut PlannedSites(web));
    let rows = played.requests.iter();
    let rows: String = rows
        .map(|row| serde_json::to_string(row).unwrap() + "\n")
        .collect();
    fs::write(dir.path().join("requests.jsonl"), rows).unwrap();
    (dir, played)
}

fn plan_of(web: &TestWeb, earlier: Option<&Path>) -> crawl_records::CostPlan {
    let (dir, played) = run(web, |config| config.extent = RunMode::Plan);
    let purposes = played.requests.iter().map(|row| row.purpose.as_str());
    for purpose in purposes {
        assert!(matches!(purpose, "robots" | "sitemap"), "{purpose}");
    }
    let settings = PlanSettings {
        delay_ms: 1000,
        ..PlanSettings::default()
    };
    crawl_records::plan(dir.path(), earlier, &settings).unwrap()
}

/// Returns, for each host, the seconds from the start of its first request to the end of its last.
fn seconds_by_host(played: &SimulationResult) -> BTreeMap<&str, f64> {
    let mut times: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for row in &played.requests {
        let (first, last) = times.entry(&row.host).or_insert((row.start, row.end));
        (*first, *last) = ((*first).min(row.start), (*last).max(row.end));
    }
    let seconds = times.into_iter();
    seconds
        .map(|(host, (first, last))| (host, (last - first) as f64 / 1000.0))
        .collect()
}

fn near(estimate: &BoundedEstimate, truth: f64, what: &str) {
    let expected = estimate.expected.unwrap();
    let off = (expected / truth - 1.0).abs();
    assert!(off < 0.1, "{what}: {expected} expected, {truth} in truth");
}

/// Runs a crawl that draws this many pages of each site at random. Returns its directory.
fn pilot(web: &TestWeb, pages: usize) -> TempDir {
    let (pilot, _) = run(web, |config| {
        config.sample = Some(SampleMethod::Draw(SampleDesign {
            pages,
            ..SampleDesign::default()
        }));
    });
    pilot
}

/// Counts the sites for which the plan gives a single number of bytes. Checks that each number is
/// within a tenth of the bytes that the site sent. If the plan gives a range instead, checks that
/// the range contains the bytes sent and that its reason is given.
fn sites_with_a_number(
    plan: &crawl_records::CostPlan,
    truth: &BTreeMap<&str, &HostReport>,
) -> usize {
    assert_eq!(plan.hosts.len(), SITES as usize);
    let mut numbered = 0;
    for host in &plan.hosts {
        let sent = truth[host.host.as_str()].bytes as f64;
        let bytes = &host.bytes;
        if bytes.expected.is_some() {
            numbered += 1;
            near(bytes, sent, &host.host);
            continue;
        }
        assert!(bytes.why.contains("an estimate within 10 % takes"));
        let is_in = bytes.least <= sent && sent <= bytes.most.unwrap();
        assert!(is_in, "{}: {sent} is not in {bytes:?}", host.host);
    }
    numbered
}

#[test]
fn a_plan_is_within_a_tenth_of_the_crawl_that_follows() {
    let web = web();
    let (dir, played) = run(&web, |_| {});
    let report = crawl_records::report(dir.path()).unwrap();
    let truth: BTreeMap<&str, &HostReport> = report
        .hosts
        .iter()
        .map(|host| (host.host.as_str(), host))
        .collect();
    let sent = report.pages.bytes as f64;

    // Fetch a sample of pages first, because the plan needs to know some page sizes.
    let plan = plan_of(&web, Some(pilot(&web, 24).path()));
    assert_eq!(plan.requests, report.requests.total);
    let took = played.ended_at.since(START).as_secs_f64();
    near(&plan.hours, took / 3600.0, "hours");
    let seconds = seconds_by_host(&played);
    for host in &plan.hosts {
        let truth = truth[host.host.as_str()];
        // The crawl counts the sitemap among the pages, because the sitemap has a row too.
        assert_eq!(host.pages + host.sitemaps, truth.pages, "{}", host.host);
        let hours = seconds[host.host.as_str()] / 3600.0;
        near(&host.hours, hours, &host.host);
    }
    assert_eq!(sites_with_a_number(&plan, &truth), SITES as usize);
    near(&plan.bytes, sent, "bytes");

    // With few pages of each site, the plan gives a range for a site, but still a number for all
    // sites together.
    let plan = plan_of(&web, Some(pilot(&web, 8).path()));
    assert!(sites_with_a_number(&plan, &truth) < SITES as usize);
    near(&plan.bytes, sent, "bytes");

    // The first pages that a crawl finds are less representative, because they have more links than
    // other pages.
    let (first, _) = run(&web, |config| {
        config.budgets.per_host.max_pages = Some(16);
    });
    let plan = plan_of(&web, Some(first.path()));
    assert!(sites_with_a_number(&plan, &truth) < SITES as usize);
    let mut whys = plan.hosts.iter().map(|host| &host.bytes.why);
    assert!(whys.any(|why| why.contains("not drawn at random")));

    // After a complete crawl, the plan knows the sizes of all pages.
    let plan = plan_of(&web, Some(dir.path()));
    assert_eq!(sites_with_a_number(&plan, &truth), SITES as usize);
    assert_eq!(plan.bytes.expected, Some(sent));
}

#[test]
fn a_plan_without_measured_pages_has_no_number_of_bytes() {
    let web = TestWeb::builder()
        .hosts(2)
        .pages(9)
        .mix(LinkMix::plain())
        .gzip(false)
        .start();
    web.script(1, "/sitemap.xml", WebAnswer::of(404));
    let robots = "User-agent: *\nDisallow: /\nAllow: /$\n";
    web.script(1, "/robots.txt", WebAnswer::text(robots));
    let plan = plan_of(&web, None);
    assert_eq!(plan.bytes.expected, None);
    let [listed, alone] = &plan.hosts[..] else {
        panic!("{} hosts", plan.hosts.len());
    };
    assert_eq!((listed.pages, listed.sitemaps), (9, 1));
    assert!(listed.bytes.most.unwrap() > 9.0 * 118e3 && listed.bytes.least > 9.0 * 12e3);
    assert!(
        listed.bytes.why.contains("Web Almanac 2019"),
        "{}",
        listed.bytes.why
    );
    // The plan knows only the root of this site, since its other pages are found only by links.
    assert_eq!((alone.pages, alone.sitemaps), (1, 0));
    assert_eq!((alone.hours.expected, alone.bytes.most), (None, None));
    assert!(
        alone.hours.why.contains("no sitemap"),
        "{}",
        alone.hours.why
    );
}
