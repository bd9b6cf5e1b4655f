//! The one writer: archive, rows, then the transaction that settles their URLs.
//!
//! It commits whenever it is free: what came meanwhile is the group. Files are synced
//! before the transaction, and their lengths stand in it, so that after any death files
//! can be cut back to what the state knows.

mod excluded_rows;
mod redirect_loops;
pub(crate) mod run_end;
mod take_back;
mod trap_evidence;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvError, Sender, TryRecvError};

use crawl_archive::rows::{REDIRECT_LOOP, WarcPlace};
use crawl_archive::{EncodedCapture, RowFile};
use crawl_frontier::{
    Admission, Admitted, Exclusion, Frontier, Lease, NewState, Outcome, Reason, Transaction,
    UrlKind, Visit,
};
use crawl_index::{BytePass, IndexEntry};
use crawl_scheduler::Tick;
use crawl_weburl::{CanonicalUrl, HostKey};

use self::excluded_rows::{excluded_row, excluded_words, listed_at_once};
use self::redirect_loops::SettledRedirects;
use crate::admissions::admission_of;
use crate::control::Answer;
use crate::error::EngineError;
use crate::index::entry::left_out;
use crate::keys::{META_PARKED, META_SCOPE_SEEDS, META_TOTALS, META_TRAPS};
use crate::messages::page::{EncodedPage, PageFindings, PageVisit, TrapSignal};
use crate::messages::{Committed, HostState, Order, Ordered, RobotsExchange, WriterMessage};
use crate::priority::{Priority, is_guess};
use crate::revisit::visit::{PreviousVisit, RevisitSchedule, VisitResult, ask_in_full};
use crate::shared_traps::SharedTraps;
use crate::state::directory::Files;
use crate::state::parked_hosts;
use crate::summary::SeedFailure;
use crate::time::seconds;
use crate::totals::{Change, Totals};

/// Items in one transaction, at most: enough to share the cost of a sync, few enough
/// for the next group not to wait long for its links to exist.
const MAX_GROUP: usize = 256;

/// What the writer thread owns.
pub(crate) struct Writer {
    pub(crate) frontier: Arc<dyn Frontier>,
    pub(crate) files: Files,
    pub(crate) totals: Totals,
    pub(crate) visits: RevisitSchedule,
    /// The seeds of all runs and the targets of their redirects: what the scope starts from.
    scope_seeds: BTreeSet<CanonicalUrl>,
    /// The sequence of the newest state of each host that was kept.
    newest: HashMap<HostKey, u64>,
    /// The number of the newest list of parked hosts that was kept.
    newest_parked: u64,
    traps: Option<SharedTraps>,
    /// Where the committed length of the index's log is told.
    indexer: Option<Sender<u64>>,
}

impl Writer {
    pub(crate) fn new(
        frontier: Arc<dyn Frontier>,
        files: Files,
        totals: Totals,
        visits: RevisitSchedule,
        scope_seeds: Vec<CanonicalUrl>,
    ) -> Writer {
        Writer {
            frontier,
            files,
            totals,
            visits,
            scope_seeds: scope_seeds.into_iter().collect(),
            newest: HashMap::new(),
            newest_parked: 0,
            traps: None,
            indexer: None,
        }
    }

    /// Tells of each page that is settled what it came to.
    pub(crate) fn watching(self, traps: SharedTraps) -> Writer {
        Writer {
            traps: Some(traps),
            ..self
        }
    }

    /// Tells the index how far its log is committed.
    pub(crate) fn followed_by(self, indexer: Option<Sender<u64>>) -> Writer {
        Writer { indexer, ..self }
    }

    /// The index ends when it has read all that it was told of.
    pub(crate) fn unfollow(&mut self) {
        self.indexer = None;
    }

    /// Takes items until their senders are gone; gives the files back for the run's end.
    /// Once `abandon` is set, items are dropped.
    ///
    /// # Errors
    /// The first failure of disk or state. Nothing of its group is settled.
    pub(crate) fn run(
        mut self,
        items: &Receiver<WriterMessage>,
        abandon: &AtomicBool,
        mut committed: impl FnMut(Committed),
    ) -> Result<Writer, EngineError> {
        loop {
            let first = match items.recv() {
                Ok(item) => item,
                Err(RecvError) => return Ok(self),
            };
            let mut group = vec![first];
            while group.len() < MAX_GROUP {
                match items.try_recv() {
                    Ok(item) => group.push(item),
                    Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
                }
            }
            if !abandon.load(Ordering::Relaxed) {
                committed(self.commit(group)?);
                if let (Some(lengths), Some(log)) = (&self.indexer, &self.files.index) {
                    // Fails only where the index failed, which the driver learns by itself.
                    let _ = lengths.send(log.len());
                }
            }
        }
    }

    pub(crate) fn commit(&mut self, group: Vec<WriterMessage>) -> Result<Committed, EngineError> {
        let frontier = Arc::clone(&self.frontier);
        let mut group_state = Group {
            transaction: frontier.begin()?,
            frontier: &*frontier,
            files: &mut self.files,
            totals: self.totals,
            visits: self.visits,
            scope_seeds: &mut self.scope_seeds,
            scope_grew: false,
            newest: &mut self.newest,
            newest_parked: &mut self.newest_parked,
            traps: self.traps.as_ref(),
            redirects: SettledRedirects::default(),
            links_passes: Vec::new(),
            committed: Committed {
                items: group.iter().map(WriterMessage::weight).sum(),
                ..Committed::default()
            },
        };
        for item in group {
            group_state.item(item)?;
        }
        let committed = group_state.finish(&self.totals)?;
        self.totals = committed.totals;
        Ok(committed)
    }
}

/// A transaction under way, with the files that go along.
struct Group<'a> {
    transaction: Box<dyn Transaction + 'a>,
    frontier: &'a dyn Frontier,
    files: &'a mut Files,
    totals: Totals,
    visits: RevisitSchedule,
    scope_seeds: &'a mut BTreeSet<CanonicalUrl>,
    scope_grew: bool,
    newest: &'a mut HashMap<HostKey, u64>,
    newest_parked: &'a mut u64,
    traps: Option<&'a SharedTraps>,
    redirects: SettledRedirects,
    /// Let go when the transaction is committed.
    links_passes: Vec<BytePass>,
    committed: Committed,
}

impl Group<'_> {
    fn item(&mut self, item: WriterMessage) -> Result<(), EngineError> {
        match item {
            WriterMessage::Page(page) => {
                let EncodedPage {
                    visit,
                    findings,
                    capture,
                    held,
                } = *page;
                self.page(visit, findings, capture.as_ref())?;
                self.links_passes.extend(held.links);
                Ok(())
            }
            WriterMessage::Unanswered(visit) => self.page(*visit, PageFindings::default(), None),
            WriterMessage::Retry { lease, host } => {
                self.committed.leases += 1;
                self.committed.ended.push(lease.origin.clone());
                self.keep_host(host.as_ref());
                Ok(self.transaction.settle(lease, Outcome::Retry)?)
            }
            WriterMessage::Excluded {
                lease,
                exclusion,
                past,
            } => self.excluded(lease, exclusion, past),
            WriterMessage::PutAside { lease, exclusion } => Ok(self
                .transaction
                .settle(lease, Outcome::Deferred(exclusion))?),
            WriterMessage::Later(leases) => {
                let mut again = Vec::with_capacity(leases.len());
                for (lease, priority) in leases {
                    again.push(admission_of(&lease, lease.url.clone(), priority));
                    let aside = Outcome::Deferred(Exclusion::of(Reason::Trap));
                    self.transaction.settle(lease, aside)?;
                }
                self.admit(again).map(drop)
            }
            WriterMessage::SameAs {
                lease,
                url,
                exclusion,
            } => {
                let other = admission_of(&lease, url, Priority::of(&lease));
                self.excluded(lease, exclusion, None)?;
                self.admit(vec![other]).map(drop)
            }
            WriterMessage::Robots(robots) => self.robots(robots),
            WriterMessage::Seeds(seeds) => self.seeds(seeds),
            WriterMessage::TakeBack { scope } => {
                let again = take_back::candidates(self.frontier, self.traps, scope.as_deref())?;
                self.admit(again).map(drop)
            }
            WriterMessage::Broken(what) => Err(EngineError::Thread { what }),
            WriterMessage::Host(host) => {
                self.keep_host(Some(&host));
                Ok(())
            }
            WriterMessage::Order(ordered) => self.order(ordered),
        }
    }

    fn excluded(
        &mut self,
        lease: Lease,
        exclusion: Exclusion,
        mut past: Option<Box<PreviousVisit>>,
    ) -> Result<(), EngineError> {
        let is_listed = past
            .as_ref()
            .is_some_and(|past| past.was_excluded_by(&exclusion));
        if !is_guess(&lease) && !is_listed {
            let row = excluded_row(&lease.url, &exclusion, lease.via.as_ref());
            self.files.excluded.append(&row)?;
        }
        if lease.is_seed {
            let why = excluded_words(&exclusion);
            self.committed.seeds_failed.push(SeedFailure {
                url: lease.url.clone(),
                why,
            });
        }
        // Whatever bars a page that was fetched before bars it from a search too.
        if past.is_some() && lease.kind == UrlKind::Page {
            let why = exclusion.reason.to_string();
            self.tell_index(&left_out(&lease.url, why))?;
        }
        let mut found = VisitResult::Excluded(exclusion.clone());
        if self.files.index.is_some() {
            ask_in_full(past.as_deref_mut(), &mut found);
        }
        let visits = &self.visits;
        let visit = visits.after(
            visits.round.began,
            lease.kind,
            past.map(|past| *past),
            found,
            None,
        );
        let outcome = Outcome::Excluded(exclusion);
        Ok(self.transaction.settle_until(lease, outcome, visit)?)
    }

    fn tell_index(&mut self, entry: &IndexEntry) -> Result<(), EngineError> {
        if let Some(log) = &mut self.files.index {
            log.append(entry)?;
        }
        Ok(())
    }

    fn seeds(&mut self, seeds: Vec<Admission>) -> Result<(), EngineError> {
        // Links of a seed's pages stay in scope when a later run names other seeds.
        for seed in &seeds {
            self.keep_scope_seed(&seed.url);
            if let NewState::Excluded(exclusion) = &seed.state {
                let why = excluded_words(exclusion);
                let url = seed.url.clone();
                self.committed.seeds_failed.push(SeedFailure { url, why });
            }
        }
        self.admit(seeds).map(drop)
    }

    /// What a person told us.
    fn order(&mut self, ordered: Ordered) -> Result<(), EngineError> {
        let Ordered { order, answer } = ordered;
        let done = match order {
            Order::Parked { number, hosts } => {
                // Items overtake each other, and an older list must not outlive a newer one.
                if number > *self.newest_parked {
                    *self.newest_parked = number;
                    let hosts = parked_hosts::listed(hosts.iter());
                    self.transaction.keep_meta(META_PARKED, &hosts);
                }
                Ok(Answer::Done)
            }
            Order::Add { seed, refused } => {
                let url = seed.url.clone();
                let is_new = self.admit(vec![*seed])? != [Admitted::Known];
                let before = self.visits.round.began;
                match refused {
                    Some(why) if !is_new && !self.transaction.visit_again(&url, before)? => {
                        Err(why)
                    }
                    _ => {
                        self.keep_scope_seed(&url);
                        Ok(Answer::Done)
                    }
                }
            }
        };
        self.committed.answers.push((answer, done));
        Ok(())
    }

    fn keep_scope_seed(&mut self, url: &CanonicalUrl) {
        self.scope_grew |= self.scope_seeds.insert(url.clone());
    }

    fn page(
        &mut self,
        visit: PageVisit,
        findings: PageFindings,
        capture: Option<&EncodedCapture>,
    ) -> Result<(), EngineError> {
        let PageVisit {
            lease,
            outcome,
            mut row,
            mut past,
            mut result,
            host,
        } = visit;
        let PageFindings {
            said,
            is_list,
            modified,
            signal,
            entry,
            links,
            link_rows,
            unusable,
            joins_scope,
        } = findings;
        let is_absent = is_guess(&lease)
            && match row.status {
                // Some servers answer with a page whatever is asked for.
                Some(200..=299) if !is_list => {
                    result = VisitResult::Nothing;
                    true
                }
                Some(400..=499) => true,
                _ => false,
            };
        let change = RevisitSchedule::change(past.as_deref(), &result);
        if matches!(entry, Some(IndexEntry::Drop { .. })) {
            ask_in_full(past.as_deref_mut(), &mut result);
        }
        let at = seconds(Tick::from_micros(row.fetched_at.as_micros()));
        let visit = self
            .visits
            .after(at, lease.kind, past.map(|past| *past), result, said);
        self.committed.leases += 1;
        self.committed.ended.push(lease.origin.clone());
        self.committed.bytes += row.bytes;
        if is_absent && change.is_none() {
            if let Some(capture) = capture {
                self.keep(capture)?;
            }
            self.keep_host(Some(&host));
            return Ok(self.transaction.settle_until(lease, outcome, visit)?);
        }
        if let TrapSignal::Redirect(target) = &signal {
            let frontier = self.frontier;
            let is_loop = self.redirects.closes_loop(frontier, &lease.url, target)?;
            row.error = is_loop.then(|| REDIRECT_LOOP.to_owned()).or(row.error);
        }
        self.totals.pages += 1;
        self.totals.bytes += row.bytes;
        let failed = row.is_failed();
        // A sitemap that nobody named and that is not there is nobody's failure.
        if failed && lease.kind != UrlKind::Sitemap {
            self.totals.failed += 1;
        }
        if lease.is_seed
            && row
                .status
                .is_some_and(|status| (200..300).contains(&status) || status == 304)
        {
            self.totals.seeds_fetched += 1;
        } else if lease.is_seed && failed {
            let redirect = row.broken_redirect().map(str::to_owned);
            let status = row.status.map(|status| format!("status {status}"));
            let why = redirect.or(status).or_else(|| row.error.clone());
            let why = why.unwrap_or_default();
            self.committed.seeds_failed.push(SeedFailure {
                url: lease.url.clone(),
                why,
            });
        }
        for (why, count) in unusable {
            *self.committed.unusable.entry(why).or_default() += count;
        }
        row.round = self.visits.round.number;
        row.change = change.map(|change| change.name().to_owned());
        if let Some(change) = change {
            self.totals.changes.add(change);
        }
        self.totals.changes.broken += u64::from(row.is_broken());
        if let Some(capture) = capture {
            row.warc = self.keep(capture)?;
        }
        self.files.pages.append(&row)?;
        self.committed.rows.push(row);
        if let Some(entry) = &entry {
            self.tell_index(entry)?;
        }
        // The links of a page that is as it was are listed already.
        if let Some(file) = &mut self.files.links
            && change != Some(Change::Same)
        {
            for row in &link_rows {
                file.append(row)?;
            }
        }
        self.keep_host(Some(&host));
        if let Some(target) = joins_scope {
            self.keep_scope_seed(&target);
        }
        let wanted = |admission: &Admission| admission.state == NewState::Pending;
        let wanted: HashSet<_> = match modified.is_empty() {
            true => HashSet::new(),
            false => links
                .iter()
                .filter(|link| wanted(link))
                .map(|link| link.url.clone())
                .collect(),
        };
        self.links(lease, (outcome, visit), &signal, links)?;
        for (url, at) in modified {
            let before = self.visits.changed_since(at);
            if let Some(before) = before.filter(|_| wanted.contains(&url)) {
                self.transaction.visit_again(&url, before)?;
            }
        }
        Ok(())
    }

    fn robots(&mut self, robots: RobotsExchange) -> Result<(), EngineError> {
        self.committed.bytes += robots.bytes;
        if let Some(capture) = &robots.capture {
            self.keep(capture)?;
        }
        if let Some((origin, copy)) = &robots.copy {
            self.transaction.keep_robots(origin, copy);
        }
        self.keep_host(robots.host.as_ref());
        self.admit(robots.sitemaps).map(drop)
    }

    /// What became of each.
    fn admit(&mut self, admissions: Vec<Admission>) -> Result<Vec<Admitted>, EngineError> {
        let rows: Vec<_> = admissions.iter().map(listed_at_once).collect();
        let admitted = self.transaction.admit_all(admissions)?;
        for (row, admitted) in rows.into_iter().zip(&admitted) {
            if let (Some(row), Admitted::New) = (row, admitted) {
                self.files.excluded.append(&row)?;
            }
        }
        Ok(admitted)
    }

    /// Admits the links of a page, and tells what is known of traps what it brought.
    fn links(
        &mut self,
        lease: Lease,
        settled: (Outcome, Visit),
        signal: &TrapSignal,
        mut links: Vec<Admission>,
    ) -> Result<(), EngineError> {
        let (outcome, visit) = settled;
        let Some(traps) = self.traps else {
            self.transaction.settle_until(lease, outcome, visit)?;
            return self.admit(links).map(drop);
        };
        let verdict = trap_evidence::weigh(traps, &lease, signal, &mut links);
        self.committed.has_turned |= verdict.has_turned;
        let met: Vec<CanonicalUrl> = match verdict.is_barren {
            true => links.iter().map(|link| link.url.clone()).collect(),
            false => Vec::new(),
        };
        let admitted = self.admit(links)?;
        if verdict.is_barren {
            let new = met.iter().zip(admitted);
            let new = new.filter(|(_, admitted)| *admitted == Admitted::New);
            trap_evidence::record_children(traps, &lease, signal, new.map(|(url, _)| url));
        }
        Ok(self.transaction.settle_until(lease, outcome, visit)?)
    }

    fn keep(&mut self, capture: &EncodedCapture) -> Result<Option<WarcPlace>, EngineError> {
        let Some(archive) = &mut self.files.archive else {
            return Ok(None);
        };
        let receipt = archive.append(capture)?;
        Ok(Some(WarcPlace {
            file: receipt.file,
            offset: receipt.offset,
        }))
    }

    fn keep_host(&mut self, host: Option<&HostState>) {
        if let Some(host) = host {
            self.committed.hosts.push(host.host.clone());
            let newest = self.newest.entry(host.host.clone()).or_default();
            if *newest > host.sequence {
                return;
            }
            *newest = host.sequence;
            self.transaction
                .keep_host(&host.host, host.wake, &host.bytes);
        }
    }

    /// Syncs the files, then commits with their lengths.
    fn finish(mut self, before: &Totals) -> Result<Committed, EngineError> {
        if self.scope_grew {
            let all: Vec<_> = self.scope_seeds.iter().map(CanonicalUrl::as_str).collect();
            self.transaction
                .keep_meta(META_SCOPE_SEEDS, all.join("\n").as_bytes());
        }
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
            self.files.index.as_mut(),
        ];
        for file in rows.into_iter().flatten() {
            file.sync()?;
            self.transaction.mark(&file_name(file), file.len());
        }
        // The loop noted each request before it handed on what came of it: what bears a page
        // out, its robots.txt among it, is on the disk before the page counts.
        if let Some(requests) = &mut self.files.requests {
            requests.sync()?;
        }
        if self.totals != *before {
            self.transaction
                .keep_meta(META_TOTALS, &self.totals.to_bytes());
        }
        if let Some(parked) = self.traps.and_then(|traps| traps.lock().stored()) {
            self.transaction.keep_meta(META_TRAPS, &parked);
        }
        let origins = self.transaction.commit()?.origins;
        Ok(Committed {
            origins,
            totals: self.totals,
            ..self.committed
        })
    }
}

/// The name that a row file's length is committed under.
fn file_name(file: &RowFile) -> String {
    file.path()
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
