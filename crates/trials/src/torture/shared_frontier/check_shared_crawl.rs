//! Checks a finished crawl of several workers against its web.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use crawl_archive::rows::{ExcludedRow, PageRow, RequestRow};
use crawl_testweb::LogEntry;

use super::{InjectedFault, InjectedFaultKind, LEASE, SharedCrawlRun};
use crate::torture::check_crawl::{CrawlRows, log_is_allowed, lost, read, rows_are_the_truth};
use crate::torture::check_pace::CrawlDisturbances;
use crate::torture::checked_counts_and_breaches::{BrokenRules, CheckedCounts};
use crate::torture::random_web::settles;
use crate::torture::{check_archive, check_pace};

/// A fault discards only answers that arrived at most this long before the fault, in microseconds.
/// This is the default of `--commit-within`, plus some time for a busy machine.
const IN_FLIGHT: u64 = 5_000_000;

impl SharedCrawlRun<'_> {
    /// Compares the rows, the archives, the frontier and the web's log.
    pub(super) fn check(&mut self) -> Result<CheckedCounts> {
        let log = self.crawl.web.web.log();
        let mut breaches = BrokenRules::default();
        let (mut rows, mut records) = (CrawlRows::default(), 0);
        for worker in &self.workers {
            let output = self.crawl.output(&worker.name);
            let own: CrawlRows = CrawlRows {
                pages: read(&output.join("pages.jsonl"))?,
                excluded: read(&output.join("excluded.jsonl"))?,
                requests: read(&output.join("requests.jsonl"))?,
            };
            records += check_archive::check(
                &output,
                self.crawl.web,
                &own.pages,
                &own.requests,
                &mut breaches,
            )
            .with_context(|| format!("the archive of {}", worker.name))?;
            rows.pages.extend(own.pages);
            rows.excluded.extend(own.excluded);
            rows.requests.extend(own.requests);
        }
        let web = self.crawl.web;
        let given_up = rows_are_the_truth(web, &rows, &log, &mut breaches);
        log_is_allowed(web, &log, &mut breaches);
        self.fetched_again_was_in_flight(&log, &mut breaches);
        let thaws = self.thaws();
        let events = CrawlDisturbances {
            deaths: &self.deaths,
            thaws: &thaws,
        };
        let mut tally = check_pace::check(web, &log, &rows.requests, events, &mut breaches);
        self.frontier_agrees(&rows, &mut breaches)?;
        self.gathered_agrees(&rows, tally.late, &mut breaches)?;
        breaches.end().with_context(|| self.all_faults())?;
        self.nothing_more_is_fetched()?;
        self.moved_it_fetches_nothing(&rows)?;
        tally.given_up = given_up;
        tally.records = records;
        tally.pages = rows.pages.len() as u64;
        tally.requests = log.len() as u64;
        let urls: BTreeMap<_, _> = log
            .iter()
            .map(|entry| ((entry.host, &entry.path), ()))
            .collect();
        tally.repeated = (log.len() - urls.len()) as u64;
        tally.lost = lost(&log);
        Ok(tally)
    }

    /// Moves the crawl from the shared frontier into a directory. Checks that the directory has all
    /// rows, and that the moved crawl has nothing left to fetch.
    fn moved_it_fetches_nothing(&self, rows: &CrawlRows) -> Result<()> {
        const MOVED: &str = "moved";
        let names = self.workers.iter().map(|worker| worker.name.as_str());
        let args = ["export", "--output", MOVED].into_iter().chain(names);
        let args: Vec<&str> = args.collect();
        self.crawl.frontier_command(&self.ports(), &args)?;
        let requests_before = self.crawl.web.web.log().len();
        let settings = format!("{MOVED}/crawl.toml");
        let ended = self
            .crawl
            .run(&["--output", MOVED, "--config", &settings])?;
        ensure!(
            ended.status.success(),
            "the moved crawl: {}",
            String::from_utf8_lossy(&ended.stderr)
        );
        let more = self.crawl.web.web.log().len() - requests_before;
        ensure!(
            more == 0,
            "a finished crawl that was moved sent {more} requests"
        );
        let dir = self.crawl.output(MOVED);
        let row_counts = [
            read::<PageRow>(&dir.join("pages.jsonl"))?.len(),
            read::<ExcludedRow>(&dir.join("excluded.jsonl"))?.len(),
        ];
        let all = [rows.pages.len(), rows.excluded.len()];
        ensure!(
            row_counts == all,
            "{row_counts:?} rows are in the moved crawl, of {all:?}"
        );
        Ok(())
    }

    /// Returns the times when workers resumed after a freeze of at least half a lease. Such a
    /// freeze can outlast the lease, because the last heartbeat may have been half a lease before
    /// the freeze.
    fn thaws(&self) -> Vec<u64> {
        let half = LEASE.as_micros() as u64 / 2;
        let long = self.faults.iter().filter(|fault| {
            fault.kind == InjectedFaultKind::Frozen
                && fault.until.saturating_sub(fault.from) >= half
        });
        long.map(|fault| fault.until).collect()
    }

    /// Checks that the directory gathered from those of all workers contains each row once, and
    /// that the directory's audit finds only breaches that a lost disk or a late request explains.
    fn gathered_agrees(
        &self,
        rows: &CrawlRows,
        late: u64,
        breaches: &mut BrokenRules,
    ) -> Result<()> {
        const GATHERED: &str = "gathered";
        let names = self.workers.iter().map(|worker| worker.name.as_str());
        let args = ["gather", "--output", GATHERED].into_iter().chain(names);
        let gathered = self.crawl.run(&args.collect::<Vec<_>>())?;
        ensure!(
            gathered.status.success(),
            "`crawl gather`: {}",
            String::from_utf8_lossy(&gathered.stderr)
        );
        let dir = self.crawl.output(GATHERED);
        let row_counts = [
            read::<PageRow>(&dir.join("pages.jsonl"))?.len(),
            read::<ExcludedRow>(&dir.join("excluded.jsonl"))?.len(),
            read::<RequestRow>(&dir.join("requests.jsonl"))?.len(),
        ];
        let all = [rows.pages.len(), rows.excluded.len(), rows.requests.len()];
        if row_counts != all {
            breaches.add(format!("{row_counts:?} rows are gathered of {all:?}"));
        }
        let audit = self.crawl.run(&["audit", "--json", GATHERED])?;
        let audit: serde_json::Value = serde_json::from_slice(&audit.stdout)?;
        let rules = audit["by_rule"].as_object().context("audit: no by_rule")?;
        let is_lost = self
            .faults
            .iter()
            .any(|fault| fault.kind == InjectedFaultKind::LostDisk);
        for rule in rules.keys() {
            let is_explained = match rule.as_str() {
                "robots-first" | "excluded-row" | "page-row" => is_lost,
                "gap" | "pace" | "in-flight" => late > 0,
                _ => false,
            };
            if !is_explained {
                breaches.add(format!(
                    "the audit of all: {rules:?}, {}",
                    audit["breaches"]
                ));
            }
        }
        Ok(())
    }

    /// Lists the faults, one per line, with times by the web's clock in microseconds.
    fn all_faults(&self) -> String {
        let faults = self.faults.iter().map(|fault| {
            let (name, worker) = (fault.kind.name(), fault.worker.as_deref());
            let worker = worker.unwrap_or("database server");
            format!("{} to {}: {name}, {worker}", fault.from, fault.until)
        });
        let deaths = self.deaths.iter();
        let deaths = deaths.map(|death| format!("{} to {}: an end", death.before, death.after));
        faults.chain(deaths).collect::<Vec<_>>().join("\n")
    }

    /// Checks that a URL is fetched again after an answer only if the answer was lost: a fault came
    /// before the answer was committed, or its row was lost with a disk.
    fn fetched_again_was_in_flight(&self, log: &[LogEntry], breaches: &mut BrokenRules) {
        let mut last: BTreeMap<_, &LogEntry> = BTreeMap::new();
        for entry in log {
            // Skip robots.txt, because each worker fetches the robots.txt of its hosts.
            if self
                .crawl
                .web
                .rules
                .contains(&self.crawl.web.web.url(entry.host, &entry.path))
            {
                continue;
            }
            let Some(first) = last.insert((entry.host, &entry.path), entry) else {
                continue;
            };
            let ended = first.end_us.unwrap_or(first.start_us);
            let is_fault = |fault: &InjectedFault| {
                fault.from <= ended + IN_FLIGHT && fault.until + IN_FLIGHT >= first.start_us
            };
            let url = self.crawl.web.web.url(entry.host, &entry.path);
            let is_reopened = |fault: &InjectedFault| {
                let came_between = first.start_us <= fault.until && fault.from <= entry.start_us;
                came_between && fault.lost.contains(&url)
            };
            let may_be_again = |fault: &InjectedFault| is_fault(fault) || is_reopened(fault);
            let is_settled = first.status.is_some_and(settles);
            if is_settled && !self.faults.iter().any(may_be_again) {
                breaches.add(format!(
                    "{url} was requested again without a fault in between"
                ));
            }
        }
    }

    /// Checks that the frontier has as many URLs in each state as there are rows.
    fn frontier_agrees(&self, rows: &CrawlRows, breaches: &mut BrokenRules) -> Result<()> {
        let text = self
            .crawl
            .frontier_command(&self.ports(), &["status", "--json"])?;
        let counts: serde_json::Value = serde_json::from_str(&text)?;
        let crawl = &counts["crawls"][0];
        let count = |name: &str| crawl[name].as_u64().unwrap_or(u64::MAX);
        let settled = count("fetched").saturating_add(count("failed"));
        let aside = count("excluded").saturating_add(count("deferred"));
        let (pages, excluded) = (rows.pages.len() as u64, rows.excluded.len() as u64);
        let open = (count("pending"), count("links_waiting"));
        if (open, settled, aside) != ((0, 0), pages, excluded) {
            breaches.add(format!(
                "the frontier counts {crawl}; there are {pages} pages and {excluded} excluded"
            ));
        }
        Ok(())
    }

    /// Checks that the workers, started again after their end, fetch nothing.
    fn nothing_more_is_fetched(&mut self) -> Result<()> {
        let requests_before = self.crawl.web.web.log().len();
        for worker in &mut self.workers {
            worker.is_done = false;
        }
        self.end_all(std::time::Instant::now())?;
        let more = self.crawl.web.web.log().len() - requests_before;
        ensure!(more == 0, "a finished crawl sent {more} requests");
        let killed = |fault: &&InjectedFault| fault.kind == InjectedFaultKind::Killed;
        ensure!(
            self.deaths.len() >= self.faults.iter().filter(killed).count(),
            "a kill was not noted"
        );
        Ok(())
    }
}
