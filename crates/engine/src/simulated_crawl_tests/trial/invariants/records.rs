//! Checks the records of a crawl at each commit and at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};

use crawl_archive::rows::{PageRow, RequestRow};
use crawl_frontier::{Frontier, KnownState};
use crawl_weburl::canonicalize;

use super::super::simulated_disk::SimulatedDisk;
use super::super::web::TrialWeb;
use super::{InvariantChecker, WorkerRecords};
use crate::crawl_totals::CrawlTotals;
use crate::summary::EndReason;

impl InvariantChecker {
    /// Records that the row of a request is in `requests.jsonl`, which now has this length.
    pub(in super::super) fn logged(&mut self, worker: usize, row: &RequestRow, length: u64) {
        let mut own = self.seen.values_mut();
        let seen = own.find(|seen| {
            let is_same = seen.worker == worker
                && seen.start.as_millis() == row.start
                && seen.url.as_str() == row.url;
            is_same && seen.end.is_some() && seen.logged.is_none()
        });
        match seen {
            Some(seen) => seen.logged = Some(length),
            None => self.require(false, || format!("no server saw the request of {row:?}")),
        }
    }

    /// Checks a commit: files must be synced up to their committed lengths, and the rows must agree
    /// with the state and the totals.
    pub(in super::super) fn committed(
        &mut self,
        worker: usize,
        frontier: &dyn Frontier,
        disk: &SimulatedDisk,
        totals: &CrawlTotals,
    ) {
        let marks = frontier.marks().unwrap();
        let dir = self.records[worker].dir.clone();
        for (name, length) in &marks {
            let synced = disk.synced(&dir.join(name));
            self.require(*length <= synced, || {
                format!("{name} is committed to {length}, but synced to {synced}")
            });
        }
        let synced = disk.synced(&dir.join("requests.jsonl"));
        let to = marks.get("pages.jsonl").copied().unwrap_or(0);
        for row in self.new_rows(worker, to) {
            self.check_row(worker, &row, frontier, (&marks, synced));
        }
        let rows = self.records[worker].rows;
        let is_equal = (totals.pages, totals.failed) == (rows.pages, rows.failed);
        self.require(is_equal, || format!("{totals:?} of {rows:?}"));
        let (pages, max_pages) = (self.rows(), self.max_pages);
        self.require(max_pages.is_none_or(|max| pages <= max), || {
            format!("{pages} pages of {max_pages:?}")
        });
        let counts = frontier.counts();
        let states = counts.pending
            + counts.leased
            + counts.fetched
            + counts.failed
            + counts.excluded
            + counts.deferred;
        self.require(states == counts.known, || format!("{counts:?}"));
    }

    fn new_rows(&mut self, worker: usize, to: u64) -> Vec<PageRow> {
        let mut rows = Vec::new();
        let WorkerRecords { dir, read_to, .. } = &mut self.records[worker];
        if to == *read_to {
            return rows;
        }
        let mut file = BufReader::new(File::open(dir.join("pages.jsonl")).unwrap());
        file.seek(SeekFrom::Start(*read_to)).unwrap();
        let mut torn = None;
        while *read_to < to {
            let mut line = String::new();
            file.read_line(&mut line).unwrap();
            *read_to += line.len() as u64;
            match serde_json::from_str(&line) {
                Ok(row) => rows.push(row),
                Err(error) => torn = torn.or(Some(format!("a torn row: {line:?}: {error}"))),
            }
        }
        let read_to = *read_to;
        self.require(torn.is_none(), || torn.unwrap_or_default());
        self.require(read_to == to, || format!("rows end at {read_to}, not {to}"));
        rows
    }

    fn check_row(
        &mut self,
        worker: usize,
        row: &PageRow,
        frontier: &dyn Frontier,
        (marks, synced): (&BTreeMap<String, u64>, u64),
    ) {
        let is_failed = row.status.is_none_or(|status| status >= 400);
        let rows = &mut self.records[worker].rows;
        rows.pages += 1;
        rows.failed += u64::from(is_failed);
        let url = &row.url;
        let is_new = self.settled.insert((url.clone(), row.round));
        self.require(is_new, || {
            format!("{url} has two rows in round {}", row.round)
        });
        let is_named = self.orders.named.contains(url);
        let is_due = is_named || self.due.contains(url) || !self.is_old(url);
        self.require(is_due, || {
            format!("{url} is visited in round {}, but not due", row.round)
        });
        let canonical = canonicalize(None, url).unwrap();
        let state = frontier.known(&canonical).unwrap().map(|url| url.state);
        let is_settled = matches!(
            state,
            Some(KnownState::Fetched { .. } | KnownState::Failed { .. })
        );
        self.require(is_settled, || format!("{url} has a row, and is {state:?}"));
        let place = row.warc.as_ref();
        let length = place.and_then(|place| marks.get(&format!("archive/{}", place.file)));
        let is_archived = place.is_some_and(|place| length.is_some_and(|end| place.offset < *end));
        let needs_archive = self.warc && row.status.is_some() && row.withheld.is_none();
        self.require(is_archived || !needs_archive, || {
            format!("{url} is settled without its record: {place:?}, {length:?}")
        });
        if row.status == Some(200) && row.error.is_none() {
            self.linking.insert(url.clone());
        }
        let own = self.seen.values().filter(|seen| seen.worker == worker);
        let mut requests = own.filter(|seen| seen.url == canonical);
        if let Some(last) = requests.next_back() {
            let logged = last.logged;
            self.require(logged.is_some_and(|length| length <= synced), || {
                format!("{url} is settled, but its request is not synced: {logged:?} of {synced}")
            });
        }
    }

    /// Checks a finished crawl: no URL is left except on hosts in `unreachable`, and every link is
    /// known.
    pub(in super::super) fn finished(
        &mut self,
        web: &TrialWeb,
        frontier: &dyn Frontier,
        unreachable: &BTreeSet<String>,
    ) {
        let wrong = unreachable
            .iter()
            .find(|host| !web.has_rules_elsewhere(host));
        self.require(wrong.is_none(), || format!("{wrong:?} is not unreachable"));
        let counts = frontier.counts();
        let pending = if unreachable.is_empty() {
            counts.pending
        } else {
            0
        };
        let is_done = pending + counts.leased == 0;
        self.require(is_done, || format!("finished with {counts:?}"));
        for url in std::mem::take(&mut self.due) {
            let canonical = canonicalize(None, &url).unwrap();
            let state = frontier.known(&canonical).unwrap().map(|url| url.state);
            let is_excluded = matches!(
                state,
                Some(KnownState::Excluded(_) | KnownState::Deferred(_))
            );
            let round = self.round;
            let is_visited = self.settled.contains(&(url.clone(), round));
            self.require(is_visited || is_excluded, || {
                format!("{url} is due in round {round}, but not visited: {state:?}")
            });
        }
        for url in std::mem::take(&mut self.orders.added) {
            let canonical = canonicalize(None, &url).unwrap();
            let is_known = frontier.known(&canonical).unwrap().is_some();
            self.require(is_known, || format!("{url} was added and lost"));
        }
        for (url, _) in &self.settled {
            let canonical = canonicalize(None, url).unwrap();
            if let Some(visit) = frontier.visit(&canonical).unwrap() {
                self.visits.insert(url.clone(), visit.due);
            }
        }
        for page in std::mem::take(&mut self.linking) {
            let page = canonicalize(None, &page).unwrap();
            for link in web.links(&page) {
                let url = canonicalize(None, &link).unwrap();
                let known = frontier.known(&url).unwrap();
                let is_known = known.is_some();
                self.require(is_known, || format!("{url} is linked by {page} and lost"));
                let state = known.map(|url| url.state);
                let is_visited = matches!(
                    state,
                    Some(KnownState::Fetched { .. } | KnownState::Failed { .. })
                );
                let has_row = self.settled.contains(&(url.to_string(), self.round))
                    || self.is_old(url.as_str());
                self.require(has_row || !is_visited, || {
                    format!("{url} is {state:?} without a row")
                });
            }
        }
    }

    /// Checks the reason why a run ended. Rows of requests may be missing only if the run was not
    /// saved.
    pub(in super::super) fn over(
        &mut self,
        worker: usize,
        ended: &EndReason,
        is_saved: bool,
        max_pages: Option<u64>,
    ) {
        let pages = self.rows();
        let is_full = max_pages.is_some_and(|max| pages - self.rows_before >= max);
        let is_spent = *ended == EndReason::Budget("max-pages");
        self.require(is_full || !is_spent, || {
            format!("{pages} pages end a run of {max_pages:?}")
        });
        let mut own = self.seen.values().filter(|seen| seen.worker == worker);
        let unlogged = own.find(|seen| seen.logged.is_none());
        let unlogged = unlogged.map(|seen| seen.url.to_string());
        self.require(unlogged.is_none() || !is_saved, || {
            format!("the run ended without the row of {unlogged:?}")
        });
    }

    /// Returns the number of rows of all workers.
    pub(in super::super) fn rows(&self) -> u64 {
        self.records.iter().map(|records| records.rows.pages).sum()
    }
}
