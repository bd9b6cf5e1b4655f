//! A group of messages in one transaction, with the archive records and rows that belong to them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use crawl_archive::rows::{
    ExcludedRow, ExtractRow, LinkRow, PageRow, REDIRECT_LOOP, WarcRecordLocation,
};
use crawl_archive::{EncodedCapture, RowFileWriter, SerializedPageRow, Timestamp};
use crawl_fetcher::SiteSessions;
use crawl_frontier::worker_frontier::{ReopenLostResult, WorkerFrontier};
use crawl_frontier::{
    AdmissionResult, Frontier, KnownState, LastVisit, Lease, LeaseOutcome, NotFetchedReason,
    Reason, RequestedState, UrlKind, UrlToAdmit,
};
use crawl_index_entry::{BytesInTransitPermit, IndexLogEntry};
use crawl_scope::Scope;
use crawl_weburl::{CanonicalUrl, HostKey};
use foldhash::{HashMap, HashMapExt as _};

use super::links_awaiting_other_spelling::{LinksAwaitingOtherSpelling, OtherSpellingState};
use super::own_or_shared_transaction::OwnOrSharedTransaction;
use super::redirect_loops::UncommittedRedirects;
use super::{Writer, trap_learning};
use crate::control::{CommandAnswer, CommandRefusal};
use crate::crawl_totals::{CommitPoint, CrawlTotals, PageChange};
use crate::error::EngineError;
use crate::excluded_jsonl_rows::{excluded_row, excluded_words, found_as};
use crate::frontier_meta_keys::{
    META_PARKED, META_SAMPLE, META_SESSION, META_SHARED_SEED, META_TOTALS, META_TRAPS,
};
use crate::index::entry_creation::left_out;
use crate::messages::page_pipeline_stages::{
    EncodedPage, PageFindings, PageMemoryToFree, SettlingVisit, SitemapLinkBatch, TrapEvidence,
};
use crate::messages::replay_message_key::{KeyedMessage, LoggedMessageEntry, ReplayMessageKey};
use crate::messages::shared_frontier_messages::{MAX_REOPENED_URLS, MAX_TAKEN_LINKS};
use crate::messages::{
    DurableCommand, GroupCommitResult, HostState, NonPageRequestResult, PostedDurableCommand,
    WriterMessage,
};
use crate::priority::{Priority, is_admitted_guess, is_guess, is_undecided_guess};
use crate::revisit::visit::{
    PreviousVisit, RevisitRules, VisitResult, fetch_in_full_next_time, without_redirect_to,
};
use crate::sampling::SampleState;
use crate::sampling::random_walk::NextWalkerTargets;
use crate::scope_seeds::ScopeSeeds;
use crate::seed_and_sitemap_admissions::admission_of;
use crate::shared_trap_detector::SharedTrapDetector;
use crate::state::crawl_directory::OutputWriters;
use crate::state::stored_parked_hosts;
use crate::summary::SeedFailure;
use crate::tombstones::Tombstones;
use crate::trace_events::TraceEventEmitter;

/// An open transaction, and the files that are written before its commit.
pub(super) struct CommitGroup<'a> {
    pub(super) transaction: OwnOrSharedTransaction<'a>,
    pub(super) frontier: &'a dyn Frontier,
    pub(super) files: &'a mut OutputWriters,
    totals: CrawlTotals,
    /// The totals at the start of the run.
    start: CrawlTotals,
    visits: RevisitRules,
    /// The fetch time of the page that was settled last, in any group of the run. Initially the
    /// start of the round.
    latest: &'a mut Timestamp,
    scope_seeds: &'a mut ScopeSeeds,
    newest: &'a mut HashMap<HostKey, u64>,
    /// The newest state of each host in this group.
    hosts: HashMap<HostKey, HostState>,
    newest_parked: &'a mut u64,
    pub(super) traps: Option<&'a SharedTrapDetector>,
    pub(super) links_awaiting_other_spelling: &'a mut LinksAwaitingOtherSpelling,
    /// The state of each URL that was answered in this group. Links to other spellings of these
    /// URLs may wait for the answers.
    pub(super) spellings: HashMap<CanonicalUrl, OtherSpellingState>,
    pub(super) sampling: Option<&'a SampleState>,
    /// The shared frontier. `None` if the frontier belongs to this crawl alone.
    shared: Option<&'a dyn WorkerFrontier>,
    /// Pages that this group has already looked up for walkers of a random walk that reached them.
    pub(super) walked: HashMap<String, Arc<NextWalkerTargets>>,
    events: &'a TraceEventEmitter,
    sessions: &'a SiteSessions,
    pub(super) tombstones: &'a Tombstones,
    redirects: UncommittedRedirects,
    /// Whether to judge deferred URLs again after this group, and with which scope. If several
    /// messages request it, the URLs are still judged only once.
    pub(super) take_back: Option<Option<Arc<Scope>>>,
    /// Whether to judge the deferred pages of mirrors again after this group.
    pub(super) takes_back_mirrored: bool,
    /// Whether to draw the sample once the group is committed.
    pub(super) draws_sample: bool,
    /// Whether to keep the rows of pages until after the commit, for a consumer or for trace
    /// events.
    keeps_rows: bool,
    /// The number of words in the last settled page that its host had not used before. `None` if
    /// the page was not compared with other pages.
    new_words: Option<u32>,
    /// Reserved memory for links, released when the transaction is committed.
    links_passes: Vec<BytesInTransitPermit>,
    committed: GroupCommitResult,
}

impl<'a> CommitGroup<'a> {
    /// Begins a group of messages. `items` is the sum of their weights ([`WriterMessage::weight`]).
    pub(super) fn begin(
        writer: &'a mut Writer,
        frontier: &'a dyn Frontier,
        items: u64,
    ) -> Result<CommitGroup<'a>, EngineError> {
        let shared = writer.shared.as_deref();
        Ok(CommitGroup {
            transaction: OwnOrSharedTransaction::begin(frontier, shared)?,
            frontier,
            files: &mut writer.files,
            totals: writer.totals,
            start: writer.start,
            visits: writer.visits,
            latest: &mut writer.latest,
            scope_seeds: &mut writer.scope_seeds,
            newest: &mut writer.newest,
            hosts: HashMap::new(),
            newest_parked: &mut writer.newest_parked,
            traps: writer.traps.as_ref(),
            links_awaiting_other_spelling: &mut writer.links_awaiting_other_spelling,
            spellings: HashMap::new(),
            sampling: writer.sampling.as_ref(),
            shared,
            walked: HashMap::new(),
            events: &writer.events,
            sessions: &writer.sessions,
            tombstones: &writer.tombstones,
            redirects: UncommittedRedirects::default(),
            take_back: None,
            takes_back_mirrored: false,
            draws_sample: false,
            keeps_rows: writer.keeps_rows || TraceEventEmitter::are_wanted(),
            new_words: None,
            links_passes: Vec::new(),
            committed: GroupCommitResult {
                items,
                ..GroupCommitResult::default()
            },
        })
    }
}

impl CommitGroup<'_> {
    /// Looks up the stored state of all links in the messages at once, if the frontier is shared:
    /// there, each single look-up would be a network request.
    pub(super) fn expect(&mut self, messages: &[KeyedMessage]) -> Result<(), EngineError> {
        let Some(transaction) = self.transaction.worker() else {
            return Ok(());
        };
        let mut links = messages.iter().flat_map(|keyed| links_of(&keyed.message));
        Ok(transaction.expect(&mut links)?)
    }

    /// Carries out a message, and returns its entry for the replay order log (`state/order.jsonl`).
    pub(super) fn noted_item(
        &mut self,
        key: ReplayMessageKey,
        message: WriterMessage,
    ) -> Result<LoggedMessageEntry, EngineError> {
        let mut looked_at = None;
        if let WriterMessage::Page(page) = &message {
            let number = page.findings.looked_at.map(CommitPoint::of);
            looked_at = number.map(|point| point.messages(&self.start));
        }
        self.new_words = None;
        self.item(message)?;
        Ok(LoggedMessageEntry {
            key,
            looked_at,
            new_words: self.new_words,
        })
    }

    pub(super) fn item(&mut self, item: WriterMessage) -> Result<(), EngineError> {
        match item {
            WriterMessage::Page(page) => {
                let EncodedPage {
                    visit,
                    line,
                    findings,
                    capture,
                    held,
                } = *page;
                let used = self.page(visit, findings, (line.as_ref(), capture.as_ref()))?;
                self.committed.used.push(PageMemoryToFree { line, ..used });
                self.links_passes.extend(held.links);
                Ok(())
            }
            WriterMessage::Links(batch) => self.link_batch(batch),
            WriterMessage::Unanswered(visit) => self
                .page(
                    visit.settled(&self.visits),
                    PageFindings::default(),
                    (None, None),
                )
                .map(drop),
            WriterMessage::Retry { lease, host } => {
                self.committed.leases += 1;
                self.committed.ended.push(lease.origin.clone());
                self.keep_host(Some(*host));
                Ok(self.transaction.settle(lease, LeaseOutcome::Retry)?)
            }
            WriterMessage::Excluded {
                lease,
                exclusion,
                past,
            } => self.excluded(lease, exclusion, past),
            WriterMessage::PutAside { lease, exclusion } => self.put_aside(lease, exclusion),
            WriterMessage::Later(leases) => self.later(leases),
            WriterMessage::SameAs {
                lease,
                url,
                exclusion,
            } if exclusion.line.is_none() => self.replace_spelling(lease, url, exclusion),
            // A `Clean-param` line of the site states that both URLs lead to the same page, so
            // admit the other URL without a check.
            WriterMessage::SameAs {
                lease,
                url,
                exclusion,
            } => {
                let target = admission_of(&lease, url, Priority::of(&lease));
                self.excluded(lease, exclusion, None)?;
                self.admit(&[target]).map(drop)
            }
            WriterMessage::Side(side) => self.side(*side),
            WriterMessage::Seeds(seeds) => self.seeds(seeds),
            WriterMessage::TakeBack { scope } => {
                self.take_back = Some(scope.or(self.take_back.take().flatten()));
                // Every run sends this message first, even a resumed run. So this is where walkers
                // take the steps that are already possible.
                self.move_walkers(None)
            }
            WriterMessage::TakeBackMirrored => {
                self.takes_back_mirrored = true;
                Ok(())
            }
            WriterMessage::DrawSample => {
                self.draws_sample = true;
                Ok(())
            }
            WriterMessage::TakeLinks => self.take_links(),
            WriterMessage::Broken(what) => Err(EngineError::Thread { what }),
            WriterMessage::Host(host) => {
                self.keep_host(Some(*host));
                Ok(())
            }
            WriterMessage::Order(ordered) => self.order(ordered),
        }
    }

    /// Puts leases back into their queues in this order, each at the given priority.
    pub(super) fn later(&mut self, leases: Vec<(Lease, Priority)>) -> Result<(), EngineError> {
        let mut again = Vec::with_capacity(leases.len());
        for (lease, priority) in leases {
            again.push(admission_of(&lease, lease.url.clone(), priority));
            let aside = LeaseOutcome::Deferred(NotFetchedReason::of(Reason::Trap));
            self.transaction.settle(lease, aside)?;
        }
        self.admit(&again).map(drop)
    }

    pub(super) fn excluded(
        &mut self,
        lease: Lease,
        exclusion: NotFetchedReason,
        mut past: Option<Box<PreviousVisit>>,
    ) -> Result<(), EngineError> {
        let is_listed = past
            .as_ref()
            .is_some_and(|past| past.was_excluded_by(&exclusion));
        if !is_guess(&lease) && !is_listed {
            let label = self.scope_seeds.label(&lease.url);
            let when = Some((self.visits.round.number, *self.latest));
            let row = excluded_row(&lease.url, &exclusion, lease.via.as_ref(), label, when);
            self.list_excluded(&row, exclusion.reason)?;
        }
        if lease.is_seed {
            let reason = excluded_words(&exclusion);
            self.committed.seeds_failed.push(SeedFailure {
                url: lease.url.clone(),
                why: reason,
            });
        }
        // The search index may contain the page from an earlier visit, so remove it there.
        let was_fetched = past.as_ref().is_some_and(|past| past.page().is_some());
        if was_fetched && lease.kind == UrlKind::Page {
            let reason = exclusion.reason.to_string();
            self.append_to_index_log(&left_out(&lease.url, reason))?;
        }
        let mut result = VisitResult::Excluded(exclusion.clone());
        if self.files.index.is_some() {
            fetch_in_full_next_time(past.as_deref_mut(), &mut result);
        }
        let visits = &self.visits;
        let visit = visits.after(
            visits.round.began,
            lease.kind,
            past.map(|past| *past),
            result,
            None,
        );
        let (outcome, url) = (LeaseOutcome::Excluded(exclusion), lease.url.clone());
        self.transaction.settle_until(lease, outcome, visit)?;
        self.note_not_fetched(&url)?;
        match self.walk() {
            Some(_) => self.walked(&url, NextWalkerTargets::dead_end("excluded")),
            None => Ok(()),
        }
    }

    fn append_to_index_log(&mut self, entry: &IndexLogEntry) -> Result<(), EngineError> {
        if let Some(log) = &mut self.files.index {
            log.append(entry)?;
        }
        Ok(())
    }

    fn seeds(&mut self, seeds: Vec<UrlToAdmit>) -> Result<(), EngineError> {
        // Store the seeds, so that links on the seeds' pages stay in scope even if a later run has
        // other seeds.
        for seed in &seeds {
            if !self.scope_seeds.contains(&seed.url) {
                self.visit_excluded_again(seed)?;
            }
            self.scope_seeds.add(&seed.url);
            if let RequestedState::Excluded(exclusion) = &seed.state {
                let reason = excluded_words(exclusion);
                let url = seed.url.clone();
                self.committed
                    .seeds_failed
                    .push(SeedFailure { url, why: reason });
            }
        }
        self.begin_walk(&seeds);
        self.readmit(&seeds)?;
        self.admit(&seeds)?;
        // Send the walkers to their first URLs. Later, a walker moves on when the page that it
        // waits for is settled. If an earlier message settled that page, the walker moves on at
        // once.
        self.move_walkers(None)
    }

    /// Makes a new seed pending again if it was excluded earlier, when it was leased as a link. For
    /// example, a link must not lead to a private address, but a seed may.
    fn visit_excluded_again(&mut self, seed: &UrlToAdmit) -> Result<(), EngineError> {
        let is_wanted = seed.state == RequestedState::Pending && !self.tombstones.holds(&seed.url);
        let state = self.frontier.known(&seed.url)?.map(|known| known.state);
        if is_wanted && matches!(state, Some(KnownState::Excluded(_))) {
            self.transaction.visit_again(&seed.url, u32::MAX)?;
        }
        Ok(())
    }

    /// Admits seeds again that were excluded when they were found as links, for example because
    /// they were out of scope.
    fn readmit(&mut self, seeds: &[UrlToAdmit]) -> Result<(), EngineError> {
        let sampled = self.sampling.and_then(|sampling| sampling.outside(seeds));
        for seed in sampled.as_deref().unwrap_or(seeds) {
            if seed.state == RequestedState::Pending && !self.tombstones.holds(&seed.url) {
                self.transaction.readmit(seed.clone())?;
            }
        }
        Ok(())
    }

    /// Carries out the part of an operator's command that must be durable before the answer.
    fn order(&mut self, ordered: PostedDurableCommand) -> Result<(), EngineError> {
        let PostedDurableCommand { order, answer } = ordered;
        let done = match order {
            DurableCommand::Parked { number, hosts } => {
                // Keep the stored list if it is newer, because messages may overtake each other.
                if number > *self.newest_parked {
                    *self.newest_parked = number;
                    let hosts = stored_parked_hosts::listed(hosts.iter());
                    self.transaction.keep_meta(META_PARKED, &hosts);
                }
                Ok(CommandAnswer::Done)
            }
            DurableCommand::Add { seed, .. } if self.tombstones.holds(&seed.url) => {
                Err(CommandRefusal::Forgotten { url: seed.url })
            }
            DurableCommand::Add { seed, refused } => {
                let url = seed.url.clone();
                let is_new = self.admit(&[*seed])? != [AdmissionResult::Known];
                let before = self.visits.round.began;
                match refused {
                    Some(why) if !is_new && !self.transaction.visit_again(&url, before)? => {
                        Err(why)
                    }
                    _ => {
                        self.scope_seeds.add(&url);
                        Ok(CommandAnswer::Done)
                    }
                }
            }
        };
        self.committed.answers.push((answer, done));
        Ok(())
    }

    /// Counts a lease that ends. `bytes` is the length in bytes of the answer's body.
    fn note_settled(&mut self, lease: &Lease, bytes: u64) {
        self.committed.leases += 1;
        self.committed.ended.push(lease.origin.clone());
        self.committed.bytes += bytes;
    }

    /// Settles a guessed URL that does not exist. Archives the answer, but writes no row to
    /// `pages.jsonl`.
    fn settle_unlisted(
        &mut self,
        lease: Lease,
        (outcome, visit): (LeaseOutcome, LastVisit),
        host: HostState,
        capture: Option<&EncodedCapture>,
    ) -> Result<(), EngineError> {
        if let Some(capture) = capture {
            self.keep(capture)?;
        }
        self.keep_host(Some(host));
        self.transaction.settle_until(lease, outcome, visit)?;
        Ok(())
    }

    /// Returns whether a page is a redirect that closes a redirect loop.
    fn closes_loop(
        &mut self,
        url: &CanonicalUrl,
        signal: &TrapEvidence,
    ) -> Result<bool, EngineError> {
        match signal {
            TrapEvidence::Redirect(target)
            | TrapEvidence::CutRedirect(target)
            | TrapEvidence::CheckedRedirect(target) => {
                Ok(self.redirects.closes_loop(self.frontier, url, target)?)
            }
            _ => Ok(false),
        }
    }

    /// Settles a page with its links. If walkers of a random walk wait for the page, they move on.
    fn settle_page(
        &mut self,
        lease: Lease,
        settled: (LeaseOutcome, LastVisit),
        status: Option<u16>,
        signal: &TrapEvidence,
        links: &mut [UrlToAdmit],
    ) -> Result<(), EngineError> {
        let walked = self.walked_page(&lease, status, links);
        let url = lease.url.clone();
        self.links(lease, settled, signal, links)?;
        self.note_answer(&url, status)?;
        match walked {
            Some(page) => self.walked(&url, page),
            None => Ok(()),
        }
    }

    /// Counts a page that has a row. If the page is a failed seed, records the failure.
    fn count_page(&mut self, lease: &Lease, row: &PageRow, change: Option<PageChange>) {
        if let Some(change) = change {
            self.totals.changes.add(change);
        }
        self.totals.changes.broken += u64::from(row.is_broken());
        self.totals.pages += 1;
        self.totals.bytes += row.bytes;
        let failed = row.is_failed();
        self.totals.failed += u64::from(failed);
        if lease.kind == UrlKind::Sitemap {
            self.totals.sitemaps += 1;
            self.totals.failed_sitemaps += u64::from(failed);
        }
        let is_answered = |status| (200..300).contains(&status) || status == 304 && !failed;
        if (lease.is_seed || row.sample.is_some()) && row.status.is_some_and(is_answered) {
            self.totals.seeds_fetched += 1;
        } else if lease.is_seed && failed && self.scope_seeds.contains(&lease.url) {
            // Report only seeds that the user gave. If a seed is a sitemap, its entries count as
            // seeds too, but there may be any number of them.
            let redirect = row.broken_redirect().map(str::to_owned);
            let status = row.status.map(|status| status.to_string());
            // The status of a redirect doesn't explain why its target can't be fetched.
            let is_redirect = row
                .status
                .is_some_and(|status| (300..400).contains(&status));
            let target = row.error.clone().filter(|_| is_redirect);
            let reason = redirect.or(target).or(status).or_else(|| row.error.clone());
            self.committed.seeds_failed.push(SeedFailure {
                url: lease.url.clone(),
                why: reason.unwrap_or_default(),
            });
        }
    }

    /// Writes the row of a page, and counts the page by its outcome. Writes the encoded `line`
    /// instead of encoding the row again, if there is a `line` and it is up to date.
    fn append_row(
        &mut self,
        row: &mut PageRow,
        line: Option<&SerializedPageRow>,
    ) -> Result<(), EngineError> {
        self.tombstones.clear_row(row);
        // If true, only the archive position is added to the row that the reader encoded.
        let is_as_read = self.sampling.is_none() && self.tombstones.is_empty();
        match line.filter(|_| is_as_read) {
            Some(line) => {
                debug_assert!(line.is_of(row), "a column was added: {row:?}");
                self.files.pages.append_page(line, row.warc.as_ref())?
            }
            None => self.files.pages.append(row)?,
        };
        *self.latest = row.fetched_at;
        let outcomes = &mut self.committed.counts.outcomes;
        *outcomes.entry(row.outcome()).or_default() += 1;
        Ok(())
    }

    /// Writes the rows of a page's links and fields.
    fn append_links(
        &mut self,
        rows: Vec<LinkRow>,
        extracts: &[ExtractRow],
        page: &PageRow,
    ) -> Result<(), EngineError> {
        // The links and fields of a repeated body were listed at an earlier visit.
        if page.repeats_body() {
            return Ok(());
        }
        self.append_extracts(extracts)?;
        let Some(file) = &mut self.files.links else {
            return Ok(());
        };
        for mut row in rows {
            if !self.tombstones.holds_link(&row.to) {
                (row.round, row.at) = (Some(page.round), Some(page.fetched_at));
                file.append(&row)?;
            }
        }
        Ok(())
    }

    fn append_extracts(&mut self, rows: &[ExtractRow]) -> Result<(), EngineError> {
        let Some(file) = &mut self.files.extracts else {
            return Ok(());
        };
        for row in rows {
            file.append(row)?;
        }
        Ok(())
    }

    fn page(
        &mut self,
        visit: SettlingVisit,
        findings: PageFindings,
        (line, capture): (Option<&SerializedPageRow>, Option<&EncodedCapture>),
    ) -> Result<PageMemoryToFree, EngineError> {
        let SettlingVisit {
            lease,
            outcome,
            mut row,
            is_listed,
            change,
            next: mut visit,
            host,
        } = visit;
        let PageFindings {
            modified,
            signal,
            mut entry,
            mut links,
            link_rows,
            extract_rows,
            unusable,
            joins_scope,
            ..
        } = findings;
        self.remove_forgotten(entry.as_mut(), &mut visit);
        self.note_settled(&lease, row.bytes);
        if is_undecided_guess(&lease, row.status.unwrap_or(0)) {
            let guess = (lease.url.host_key(), is_listed.then_some(row.bytes));
            self.committed.guesses.push(guess);
        }
        if !is_listed {
            self.settle_unlisted(lease, (outcome, visit), host, capture)?;
            return Ok(PageMemoryToFree::default());
        }
        let is_loop = self.closes_loop(&lease.url, &signal)?;
        row.error = is_loop.then(|| REDIRECT_LOOP.to_owned()).or(row.error);
        let status = row.status;
        row.sample = self.sampling.and_then(|sampling| sampling.row(&lease));
        row.round = self.visits.round.number;
        self.count_page(&lease, &row, change);
        for (why, count) in unusable {
            *self.committed.unusable.entry(why).or_default() += count;
        }
        if let Some(capture) = capture {
            row.warc = self.keep(capture)?;
        }
        // If the page closes a redirect loop, encode the row again, because the reader didn't know
        // of the loop when it encoded the line.
        self.append_row(&mut row, line.filter(|_| !is_loop))?;
        self.append_links(link_rows, &extract_rows, &row)?;
        if let Some(entry) = &entry {
            self.append_to_index_log(entry)?;
        }
        self.keep_host(Some(host));
        // Keep the row if a consumer or a trace event needs it after the commit.
        let row = match self.keeps_rows {
            true => {
                self.committed.rows.push(*row);
                None
            }
            false => Some(row),
        };
        if let Some(target) = joins_scope.filter(|target| !self.tombstones.holds(target)) {
            self.scope_seeds.add_target(&lease.url, &target);
        }
        let modified = of_wanted(modified, &links);
        self.settle_page(lease, (outcome, visit), status, &signal, &mut links)?;
        self.visit_modified(modified)?;
        Ok(PageMemoryToFree {
            row,
            line: None,
            signal,
            links,
        })
    }

    /// Removes URLs that were forgotten from the links and the redirect target of a page.
    fn remove_forgotten(&self, entry: Option<&mut IndexLogEntry>, visit: &mut LastVisit) {
        let tombstones = self.tombstones;
        if tombstones.is_empty() {
            return;
        }
        if let Some(IndexLogEntry::Put(page)) = entry {
            page.links.retain(|link| !tombstones.holds_link(&link.url));
        }
        let bytes = std::mem::take(&mut visit.bytes);
        visit.bytes = without_redirect_to(bytes, &|url| tombstones.holds_link(url));
    }

    /// Admits links to this worker's hosts that other workers found. Also makes URLs of its hosts
    /// pending again if the rows of these URLs were lost with another worker's directory.
    fn take_links(&mut self) -> Result<(), EngineError> {
        let (Some(shared), Some(transaction)) = (self.shared, self.transaction.worker()) else {
            return Ok(());
        };
        let mut links = transaction.take_links(MAX_TAKEN_LINKS)?;
        let reopened = transaction.reopen_lost(MAX_REOPENED_URLS)?;
        let are_lost_left = reopened.is_more;
        self.list_reopened(reopened)?;
        self.committed.leaves_links = Some(links.len() >= MAX_TAKEN_LINKS || are_lost_left);
        // Read the redirects of seeds only after the links, because a link in `links` may have been
        // found through such a redirect.
        let targets = self.scope_seeds.learn(&shared.crawl_meta()?);
        self.committed.targets.extend(targets);
        self.admit_placed(&mut links)
    }

    /// Admits links after the trap detector has adjusted them.
    fn admit_placed(&mut self, links: &mut [UrlToAdmit]) -> Result<(), EngineError> {
        let replaced = match self.traps {
            Some(traps) => trap_learning::place(traps, 0, links),
            None => Vec::new(),
        };
        self.admit_with_replaced(links, replaced).map(drop)
    }

    /// Writes rows for excluded URLs again, because their rows were lost with another worker's
    /// directory.
    fn list_reopened(&mut self, reopened: ReopenLostResult) -> Result<(), EngineError> {
        for admission in &reopened.excluded {
            if !is_admitted_guess(admission) {
                self.list_admission(admission)?;
            }
        }
        self.committed.without_robots.extend(reopened.origins);
        Ok(())
    }

    /// Admits a batch of a sitemap's links. The sitemap itself is settled later.
    fn link_batch(&mut self, batch: SitemapLinkBatch) -> Result<(), EngineError> {
        let SitemapLinkBatch {
            mut links,
            modified,
            held,
        } = batch;
        let modified = of_wanted(modified, &links);
        self.admit_placed(&mut links)?;
        self.links_passes.extend(held);
        self.visit_modified(modified)
    }

    /// Schedules another visit of each URL that, according to a sitemap or feed, changed after its
    /// last visit.
    fn visit_modified(&mut self, modified: Vec<(CanonicalUrl, u32)>) -> Result<(), EngineError> {
        for (url, at) in modified {
            if let Some(before) = self.visits.changed_since(at) {
                self.transaction.visit_again(&url, before)?;
            }
        }
        Ok(())
    }

    fn side(&mut self, side: NonPageRequestResult) -> Result<(), EngineError> {
        self.committed.bytes += side.bytes;
        if let Some(capture) = &side.capture {
            self.keep(capture)?;
        }
        if let Some((origin, copy)) = &side.copy {
            self.transaction.keep_robots(origin, copy);
        }
        self.keep_host(side.host);
        self.admit(&side.admissions).map(drop)
    }

    /// Admits URLs and returns the outcome of each.
    pub(super) fn admit(
        &mut self,
        admissions: &[UrlToAdmit],
    ) -> Result<Vec<AdmissionResult>, EngineError> {
        let sampled = self
            .sampling
            .and_then(|sampling| sampling.outside(admissions));
        let admissions = sampled.as_deref().unwrap_or(admissions);
        let admitted = self.tombstones.admit(&mut *self.transaction, admissions)?;
        if TraceEventEmitter::are_wanted() {
            for (admission, admitted) in admissions.iter().zip(&admitted) {
                self.events.admitted(admission, *admitted);
            }
        }
        for admission in new_of(admissions, &admitted) {
            self.list_admission(admission)?;
        }
        Ok(admitted)
    }

    /// Writes the row of a URL if it was excluded when it was admitted.
    fn list_admission(&mut self, admission: &UrlToAdmit) -> Result<(), EngineError> {
        let RequestedState::Excluded(exclusion) = &admission.state else {
            return Ok(());
        };
        let (url, via) = (&admission.url, admission.via.as_ref());
        let label = self.scope_seeds.label(url);
        let when = Some((self.visits.round.number, *self.latest));
        let row = ExcludedRow {
            found_as: found_as(admission).map(str::to_owned),
            ..excluded_row(url, exclusion, via, label, when)
        };
        self.list_excluded(&row, exclusion.reason)
    }

    fn list_excluded(&mut self, row: &ExcludedRow, reason: Reason) -> Result<(), EngineError> {
        self.files.excluded.append(row)?;
        let excluded = &mut self.committed.counts.excluded;
        *excluded.entry(reason.name()).or_default() += 1;
        Ok(())
    }

    /// Settles a page, admits its links, and updates the trap detector with the page.
    fn links(
        &mut self,
        lease: Lease,
        settled: (LeaseOutcome, LastVisit),
        signal: &TrapEvidence,
        links: &mut [UrlToAdmit],
    ) -> Result<(), EngineError> {
        let (outcome, visit) = settled;
        let Some(traps) = self.traps else {
            self.transaction.settle_until(lease, outcome, visit)?;
            return self.admit(links).map(drop);
        };
        let verdict = trap_learning::weigh(traps, &lease, signal, links);
        self.committed.traps_changed |= verdict.traps_changed;
        self.new_words = verdict.new_words;
        let admitted = self.admit_with_replaced(links, verdict.replaced)?;
        if verdict.is_barren {
            let new = new_of(links, &admitted).map(|link| &link.url);
            trap_learning::record_children(traps, &lease, signal, new);
        }
        Ok(self.transaction.settle_until(lease, outcome, visit)?)
    }

    /// Stores which pages were drawn as the sample, and admits these pages.
    pub(super) fn keep_draw(
        &mut self,
        draw: &[u8],
        drawn: &[UrlToAdmit],
    ) -> Result<(), EngineError> {
        self.transaction.keep_meta(META_SAMPLE, draw);
        self.admit(drawn).map(drop)
    }

    fn keep(
        &mut self,
        capture: &EncodedCapture,
    ) -> Result<Option<WarcRecordLocation>, EngineError> {
        let Some(archive) = &mut self.files.archive else {
            return Ok(None);
        };
        let receipt = archive.append(capture)?;
        self.committed.counts.archived_bytes += capture.bytes();
        Ok(Some(WarcRecordLocation {
            file: receipt.file,
            offset: receipt.offset,
        }))
    }

    /// Keeps the newest state of a host, which is stored when the group is finished.
    fn keep_host(&mut self, host: Option<HostState>) {
        let Some(host) = host else {
            return;
        };
        self.committed.hosts.push(host.host.clone());
        let newest = self.newest.entry(host.host.clone()).or_default();
        if *newest > host.sequence {
            return;
        }
        *newest = host.sequence;
        self.hosts.insert(host.host.clone(), host);
    }

    /// Syncs the files, and then commits the transaction, which records their lengths.
    pub(super) fn finish(mut self, before: &CrawlTotals) -> Result<GroupCommitResult, EngineError> {
        self.scope_seeds.keep(&mut *self.transaction);
        for (host, state) in &self.hosts {
            let bytes = state.bytes();
            self.transaction.keep_host(host, state.wake, &bytes);
        }
        let before_syncs = Instant::now();
        if let Some(archive) = &mut self.files.archive {
            archive.sync()?;
            for (file, length) in archive.marks() {
                self.transaction.mark(file, length);
            }
        }
        let rows = [
            Some(&mut self.files.pages),
            Some(&mut self.files.excluded),
            self.files.links.as_mut(),
            self.files.extracts.as_mut(),
            self.files.walk.as_mut(),
            self.files.index.as_mut(),
        ];
        for file in rows.into_iter().flatten() {
            file.sync()?;
            self.transaction.mark(&file_name(file), file.len());
        }
        // Sync the request log too. The loop has already appended all requests that a page depends
        // on, including those for robots.txt. These requests must be on disk before the page counts
        // as settled.
        if let Some(requests) = &mut self.files.requests {
            requests.sync()?;
        }
        self.committed.counts.synced = before_syncs.elapsed();
        if self.totals != *before {
            self.transaction
                .keep_meta(META_TOTALS, &self.totals.to_bytes());
            if let Some(transaction) = self.transaction.worker() {
                transaction.note_spent(self.totals.pages, self.totals.bytes);
            }
        }
        if self.shared.is_some() && self.totals.seeds_fetched > before.seeds_fetched {
            self.transaction.keep_meta(META_SHARED_SEED, b"");
        }
        if let Some(parked) = self.traps.and_then(|traps| traps.lock().stored()) {
            self.transaction.keep_meta(META_TRAPS, &parked);
        }
        for (site, session) in self.sessions.unsaved() {
            let key = format!("{META_SESSION}{site}");
            self.transaction.keep_meta(&key, &session);
        }
        let point = CommitPoint::since(&self.start, &self.totals);
        self.transaction.number(point.number());
        let origins = self.transaction.commit()?.origins;
        if let Some(traps) = self.traps {
            traps.settled(point.number());
        }
        Ok(GroupCommitResult {
            origins,
            totals: self.totals,
            ..self.committed
        })
    }
}

fn links_of(message: &WriterMessage) -> &[UrlToAdmit] {
    match message {
        WriterMessage::Page(page) => &page.findings.links,
        WriterMessage::Links(batch) => &batch.links,
        _ => &[],
    }
}

/// Returns the admissions whose URLs are new in the frontier.
fn new_of<'a>(
    admissions: &'a [UrlToAdmit],
    admitted: &[AdmissionResult],
) -> impl Iterator<Item = &'a UrlToAdmit> {
    let outcomes = admissions.iter().zip(admitted);
    outcomes.filter_map(|(admission, admitted)| {
        matches!(admitted, AdmissionResult::New).then_some(admission)
    })
}

/// Keeps only those URLs in `modified` that a pending link in `links` leads to.
fn of_wanted(
    mut modified: Vec<(CanonicalUrl, u32)>,
    links: &[UrlToAdmit],
) -> Vec<(CanonicalUrl, u32)> {
    if !modified.is_empty() {
        let wanted = links
            .iter()
            .filter(|link| link.state == RequestedState::Pending);
        let wanted: HashSet<_> = wanted.map(|link| &link.url).collect();
        modified.retain(|(url, _)| wanted.contains(url));
    }
    modified
}

/// Returns the name under which transactions record the length of a row file.
fn file_name(file: &RowFileWriter) -> String {
    file.path()
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
