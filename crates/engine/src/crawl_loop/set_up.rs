//! The set-up of a run, including the state that earlier runs stored.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use crawl_archive::rows::RequestRow;
use crawl_frontier::FrontierError;
use crawl_scheduler::{SnapshotCompleteness, Tick};
use crawl_weburl::{CanonicalUrl, HostKey};

use super::Coordinator;
use super::host_locks::HostLocks;
use crate::messages::shared_frontier_messages::HostOwnership;
use crate::messages::{Effect, WriterMessage};
use crate::revisit::visit::RevisitRules;
use crate::sampling::SampleState;
use crate::seed_and_sitemap_admissions::{seed_admission, seed_sitemap_admission};
use crate::shared_trap_detector::SharedTrapDetector;

impl Coordinator {
    /// Sets the round that this run belongs to.
    pub(crate) fn enter_round(&mut self, visits: RevisitRules) {
        self.report.enter_round(&visits);
        self.hosts.enter_round(visits.round.number);
    }

    /// Restricts fetching to a sample of pages, if the crawl draws one.
    pub(crate) fn sample(&mut self, sampling: Option<SampleState>) {
        self.leased_url_judge.sample(sampling);
    }

    /// Sets the trap detector's state, which is shared with the writer.
    pub(crate) fn share_traps(&mut self, shared: SharedTrapDetector) {
        self.leased_url_judge.share_traps(shared);
    }

    /// Respects host locks held by the user's other crawls.
    pub(crate) fn share_hosts(&mut self, locks: HostLocks) {
        self.hosts.share_locks(locks);
    }

    /// Sets how often the program died while reading each URL.
    pub(crate) fn suspect(&mut self, deaths: HashMap<CanonicalUrl, u32>) {
        self.leased_url_judge.suspect(deaths);
    }

    /// Parks hosts that were parked when the last run ended.
    pub(crate) fn park_again<'a>(
        &mut self,
        now: Tick,
        hosts: impl IntoIterator<Item = &'a HostKey>,
    ) {
        self.hosts.park_again(now, hosts);
    }

    /// Shares the crawl with other workers.
    pub(crate) fn share_crawl(&mut self, owners: Arc<dyn HostOwnership>) {
        let pages = self.totals().pages;
        let allowed = self.config.budgets.max_pages.map(|_| pages);
        self.shared.share(owners, allowed);
    }

    /// Sets the number of threads that read pages.
    pub(crate) fn read_by(&mut self, threads: usize) {
        self.backlog.read_by(threads);
    }

    /// Continues an earlier run, whose scope may have differed.
    ///
    /// # Errors
    /// The frontier can't be read.
    pub(crate) fn restore(&mut self, restart: SnapshotCompleteness) -> Result<(), FrontierError> {
        self.scope.resume();
        self.hosts.restore(restart)
    }

    /// Returns the stored address of a host, if there is one.
    ///
    /// # Errors
    /// The frontier can't be read.
    pub(crate) fn past_address(&self, host: &HostKey) -> Result<Option<IpAddr>, FrontierError> {
        self.hosts.past_address(host)
    }

    /// Makes a host keep its gap after a request of an earlier run, given the request's row in the
    /// log.
    ///
    /// # Errors
    /// The frontier can't be read.
    pub(crate) fn note_past_request(
        &mut self,
        now: Tick,
        row: &RequestRow,
    ) -> Result<(), FrontierError> {
        self.hosts.note_past_request(now, row, &self.shared)
    }

    /// After a run that crashed or was killed, makes each host with pending URLs wait for a gap.
    ///
    /// # Errors
    /// The frontier can't be read.
    pub(crate) fn note_unknown_requests(&mut self, now: Tick) -> Result<(), FrontierError> {
        self.hosts.note_unknown_requests(now, &self.shared)
    }

    /// Returns whether hosts still wait because of requests that the log lacks.
    pub(crate) fn waits_for_unknown_requests(&self, now: Tick) -> bool {
        self.hosts.waits_for_unknown_requests(now)
    }

    /// Begins the run: wakes the origins with pending URLs, and admits the seeds.
    pub(crate) fn begin(&mut self, now: Tick, out: &mut Vec<Effect>) {
        for (origin, urls) in self.frontier.origins() {
            self.wake(now, &origin, urls);
        }
        let seeds = self.config.seeds.iter();
        let seeds: Vec<_> = seeds
            .map(|seed| match self.config.seed_sitemaps.contains(seed) {
                true => seed_sitemap_admission(seed, self.scope.current()),
                false => seed_admission(seed, self.scope.current()),
            })
            .collect();
        if !seeds.is_empty() {
            self.write(WriterMessage::Seeds(seeds), out);
        }
        if self.frontier.counts().deferred > 0 {
            self.leased_url_judge.resume();
        }
        let scope = Some(Arc::clone(self.scope.current()));
        self.write(WriterMessage::TakeBack { scope }, out);
    }
}
