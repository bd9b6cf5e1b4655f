//! Traps, samples and crash suspects: which leased page is fetched, which waits, and which is
//! deferred.
//!
//! The level of a URL is the number of pages without anything new that led to it. The frontier
//! stores it as a part of the URL's priority, so URLs found on pages with nothing new come last.

use std::collections::{BTreeSet, HashMap};

use crawl_frontier::{
    Frontier, FrontierError, KnownState, Lease, NotFetchedReason, Reason, UrlKind,
};
use crawl_traps::UrlDisposition;
use crawl_weburl::{CanonicalUrl, Origin, canonicalize};
use foldhash::HashMap as FoldHashMap;
use foldhash::HashMapExt as _;

use super::crash_suspects::{CrashSuspects, SuspectTreatment};
use crate::config::{OffScopeRequestMethod, TrapAvoidance};
use crate::messages::WriterMessage;
use crate::messages::page_pipeline_stages::FactsBeforeFetch;
use crate::priority::Priority;
use crate::revisit::visit::PreviousVisit;
use crate::sampling::{SampleState, SampleVerdict};
use crate::shared_trap_detector::{SharedTrapDetector, put_aside};

/// Decides what happens to a leased URL that scope and robots.txt allow: by traps, by the sample of
/// a crawl, and by whether the program died while reading it.
///
/// - Set up: [`share_traps`](Self::share_traps), [`sample`](Self::sample) and
///   [`suspect`](Self::suspect), before the first lease.
/// - For each lease: [`disposition`](Self::disposition), which returns what the caller must do.
///   Each lease that is fetched is reported with [`leased`](Self::leased), and with
///   [`ended`](Self::ended) once it is committed or released.
/// - An origin that waits for a commit is noted with [`wait_for_commit`](Self::wait_for_commit).
///   After each commit, the caller wakes the origins that [`take_waiting`](Self::take_waiting)
///   returns.
/// - Suspects are held with [`hold`](Self::hold). Once nothing else is left to fetch, the caller
///   calls [`end_reading`](Self::end_reading) and releases the lease that
///   [`begin_reading`](Self::begin_reading) returns. While [`reads_alone`](Self::reads_alone)
///   returns true, nothing else is fetched. At the end of the run [`take_held`](Self::take_held)
///   returns the leases still held.
///
/// - A page of a mirror is deferred in favour of its copy on the mirrored origin. Once nothing else
///   is left to fetch, and [`takes_back_mirrored`](Self::takes_back_mirrored) returns true, the
///   caller has the deferred pages judged again, because some copies may not have been fetched.
///
/// Emits no effects.
pub(crate) struct LeasedUrlJudge {
    rules: TrapAvoidance,
    /// `Head` if only the status of URLs in traps is checked; `Get` if these URLs are deferred.
    of_traps: OffScopeRequestMethod,
    /// The trap detector's state, which the writer updates with each commit.
    shared: SharedTrapDetector,
    sampling: Option<SampleState>,
    suspects: CrashSuspects,
    /// The number of uncommitted leases of each origin. The trap detector doesn't know their pages
    /// yet.
    out: FoldHashMap<Origin, u32>,
    /// Origins whose URLs wait for a commit.
    waiting: BTreeSet<Origin>,
    /// Whether there may be deferred pages of mirrors that were not judged again yet.
    may_have_mirrored: bool,
}

/// What to do with a leased URL that scope and robots.txt allow.
pub(crate) enum LeasedUrlDisposition {
    /// Fetch the URL now.
    Fetch(Lease),
    /// Request only the status of the URL now: it is in a trap, so its links are not followed.
    CheckStatus(Lease),
    /// Release the URL until the origin's requests in flight are read and committed.
    Wait(Lease),
    /// Release the URL until the current commit is done, since that commit changes the trap
    /// detector's state.
    WaitForCommit(Lease),
    /// Release this lease, and lease from its queue again. A commit came after the lease, and
    /// another URL may be first in the queue now.
    Again(Lease),
    /// Put the URL behind the other URLs of its queue.
    Later(Lease, Priority),
    /// Settle the URL without a request.
    Settle(WriterMessage),
    /// Hold the lease until nothing else is left to fetch: the program died while reading this URL.
    Alone(Lease),
    /// Settle the URL as failed: the program died while reading it, although nothing else was being
    /// read.
    GiveUp(Lease),
}

impl LeasedUrlJudge {
    /// Creates the judge of leases. URLs in traps are requested with HEAD if `of_traps` is
    /// [`OffScopeRequestMethod::Head`], and deferred otherwise.
    pub(super) fn new(rules: TrapAvoidance, of_traps: OffScopeRequestMethod) -> LeasedUrlJudge {
        LeasedUrlJudge {
            rules,
            of_traps,
            shared: SharedTrapDetector::new(&TrapAvoidance::OFF, None),
            sampling: None,
            suspects: CrashSuspects::default(),
            out: FoldHashMap::new(),
            waiting: BTreeSet::new(),
            may_have_mirrored: false,
        }
    }

    /// Sets the trap detector's state, which is shared with the writer.
    pub(super) fn share_traps(&mut self, shared: SharedTrapDetector) {
        self.shared = shared;
    }

    /// Restricts fetching to a sample of pages, if the crawl draws one.
    pub(super) fn sample(&mut self, sampling: Option<SampleState>) {
        self.sampling = sampling;
    }

    /// Notes that an earlier run may have deferred pages of mirrors.
    pub(super) fn resume(&mut self) {
        self.may_have_mirrored = self.rules.traps;
    }

    /// Returns whether pages of mirrors may have been deferred since the last call.
    pub(super) fn takes_back_mirrored(&mut self) -> bool {
        std::mem::take(&mut self.may_have_mirrored)
    }

    /// Returns true, once only, if the sampling frame is complete and the sample must be drawn now.
    pub(super) fn is_to_draw(&mut self) -> bool {
        self.sampling.as_mut().is_some_and(SampleState::is_to_draw)
    }

    /// Takes the origins that waited for the commit that has just ended.
    pub(super) fn take_waiting(&mut self) -> BTreeSet<Origin> {
        std::mem::take(&mut self.waiting)
    }

    pub(super) fn wait_for_commit(&mut self, origin: &Origin) {
        self.waiting.insert(origin.clone());
    }

    /// Counts a lease whose URL is fetched.
    pub(super) fn leased(&mut self, origin: &Origin) {
        *self.out.entry(origin.clone()).or_default() += 1;
    }

    pub(super) fn ended(&mut self, origin: &Origin) {
        if let Some(count) = self.out.get_mut(origin) {
            *count -= 1;
            if *count == 0 {
                self.out.remove(origin);
            }
        }
    }

    /// Returns the number of uncommitted leases of all origins.
    #[cfg(test)]
    pub(super) fn all_leases(&self) -> u64 {
        self.out.values().map(|count| u64::from(*count)).sum()
    }

    /// Removes the parameters that the site's `Clean-param` lines declare irrelevant. Returns the
    /// resulting URL, and the exclusion with which to settle the leased URL. `None` if the leased
    /// URL has no such parameter.
    fn cleaned(
        &self,
        lease: &Lease,
        context: &FactsBeforeFetch,
    ) -> Option<(CanonicalUrl, NotFetchedReason)> {
        let cleaned = context.rules.robots.clean(lease.url.as_url());
        let cleaned = cleaned.filter(|_| self.rules.clean_params)?;
        let exclusion = NotFetchedReason {
            line: Some(cleaned.line),
            ..put_aside(Reason::Duplicate, cleaned.rule)
        };
        let url = canonicalize(None, cleaned.url.as_str()).ok()?;
        Some((url, exclusion))
    }

    pub(super) fn suspect(&mut self, deaths: HashMap<CanonicalUrl, u32>) {
        self.suspects.suspect(deaths);
    }

    pub(super) fn hold(&mut self, lease: Lease) {
        self.suspects.hold(lease);
    }

    /// Ends the lone reading of a crash suspect. No effect if that reading has not begun. Call this
    /// when nothing is in flight.
    pub(super) fn end_reading(&mut self) {
        self.suspects.end_reading();
    }

    /// Returns the lease of the next crash suspect to read; `None` if there is none.
    pub(super) fn begin_reading(&mut self) -> Option<Lease> {
        self.suspects.begin_reading()
    }

    pub(super) fn reads_alone(&self) -> bool {
        self.suspects.reads_alone()
    }

    pub(super) fn take_held(&mut self) -> Vec<Lease> {
        self.suspects.take_held()
    }

    /// Decides what happens to a leased URL. Seeds, and URLs that were visited before, are always
    /// fetched unless they are crash suspects. `per_host` is the maximum number of requests in
    /// flight to a host.
    ///
    /// # Errors
    /// The frontier can't be read, to look up a mirrored page.
    pub(super) fn disposition(
        &mut self,
        lease: Lease,
        context: &FactsBeforeFetch,
        per_host: u32,
        frontier: &dyn Frontier,
    ) -> Result<LeasedUrlDisposition, FrontierError> {
        let disposition = self.judge(lease, context, per_host, frontier)?;
        self.may_have_mirrored |= matches!(
            &disposition,
            LeasedUrlDisposition::Settle(WriterMessage::PutAside { exclusion, .. })
                if exclusion.reason == Reason::Duplicate
        );
        let (lease, is_only_checked) = match disposition {
            LeasedUrlDisposition::Fetch(lease) => (lease, false),
            LeasedUrlDisposition::CheckStatus(lease) => (lease, true),
            other => return Ok(other),
        };
        Ok(match self.suspects.treatment(&lease.url) {
            SuspectTreatment::Usual if is_only_checked => LeasedUrlDisposition::CheckStatus(lease),
            SuspectTreatment::Usual => LeasedUrlDisposition::Fetch(lease),
            SuspectTreatment::LastAndAlone => LeasedUrlDisposition::Alone(lease),
            SuspectTreatment::GiveUp => LeasedUrlDisposition::GiveUp(lease),
        })
    }

    /// Decides what happens to a leased URL: first by the sample, then by the site's `Clean-param`
    /// lines, and then by traps.
    fn judge(
        &self,
        lease: Lease,
        context: &FactsBeforeFetch,
        per_host: u32,
        frontier: &dyn Frontier,
    ) -> Result<LeasedUrlDisposition, FrontierError> {
        // If the last visit of a URL stored no page, the URL may have been in a trap, so that only
        // its status was checked. Judge such a URL again.
        let is_known = |past: &PreviousVisit| {
            self.of_traps == OffScopeRequestMethod::Get || past.page().is_some()
        };
        if lease.kind != UrlKind::Page || context.past.as_deref().is_some_and(is_known) {
            return Ok(LeasedUrlDisposition::Fetch(lease));
        }
        match self
            .sampling
            .as_ref()
            .map(|sampling| sampling.judge(&lease))
        {
            Some(SampleVerdict::Out(exclusion)) => {
                let aside = WriterMessage::PutAside { lease, exclusion };
                return Ok(LeasedUrlDisposition::Settle(aside));
            }
            // Fetch a page of the sample even if it looks like a trap. A sample is finite, and
            // would be distorted if drawn pages were left out.
            Some(SampleVerdict::In) => return Ok(LeasedUrlDisposition::Fetch(lease)),
            Some(SampleVerdict::Usual) | None => {}
        }
        if lease.is_seed {
            return Ok(LeasedUrlDisposition::Fetch(lease));
        }
        // Keep all parameters in the target of a redirect, because the target is fetched under the
        // URL that the redirect named.
        if lease.redirects == 0
            && let Some((url, exclusion)) = self.cleaned(&lease, context)
        {
            return Ok(LeasedUrlDisposition::Settle(WriterMessage::SameAs {
                lease,
                url,
                exclusion,
            }));
        }
        // A page whose links are not followed can't lead into a trap.
        match context.is_only_checked {
            true => Ok(LeasedUrlDisposition::Fetch(lease)),
            false => self.judge_by_traps(lease, per_host, frontier),
        }
    }

    /// Decides what happens to a leased URL, by the state of the trap detector as of the last
    /// commit before the lease.
    fn judge_by_traps(
        &self,
        lease: Lease,
        per_host: u32,
        frontier: &dyn Frontier,
    ) -> Result<LeasedUrlDisposition, FrontierError> {
        let mut traps = self.shared.lock();
        // The verdict must depend only on the commits before the lease, not on how much of the
        // current commit is done. Otherwise a replay could get another verdict.
        if traps.is_changing(&lease.url, lease.via.as_ref()) {
            return Ok(LeasedUrlDisposition::WaitForCommit(lease));
        }
        if self.shared.settled_by() > lease.after {
            return Ok(LeasedUrlDisposition::Again(lease));
        }
        let at = Priority::of(&lease);
        let out = self.out.get(&lease.origin).copied().unwrap_or(0);
        let max_out = match at.level() {
            0 if at.is_late() => 1,
            0 => u32::MAX,
            // Pages with nothing new led to this URL. Limit the origin's uncommitted pages, because
            // their results decide whether such URLs are fetched. The limit must still keep a fast
            // host busy, which can answer several rounds of requests during one commit.
            _ => per_host.saturating_mul(4),
        };
        if out >= max_out || out > 0 && traps.needs_care(&lease.url, at.level()) {
            return Ok(LeasedUrlDisposition::Wait(lease));
        }
        let disposition = traps.disposition(&lease.url, lease.via.as_ref(), at.level());
        drop(traps);
        Ok(match disposition {
            UrlDisposition::Fetch => LeasedUrlDisposition::Fetch(lease),
            // Fetch the URL now if it is already behind the other URLs of its queue. Also fetch a
            // retry now: if it were moved behind them, its attempts would be counted from 1 again.
            UrlDisposition::Later(_) if at.is_late() || lease.attempt > 1 => {
                LeasedUrlDisposition::Fetch(lease)
            }
            UrlDisposition::Later(level) => {
                LeasedUrlDisposition::Later(lease, Priority::at_level(level))
            }
            UrlDisposition::Defer(_) if self.of_traps == OffScopeRequestMethod::Head => {
                LeasedUrlDisposition::CheckStatus(lease)
            }
            UrlDisposition::Defer(rule) => LeasedUrlDisposition::Settle(WriterMessage::PutAside {
                lease,
                exclusion: put_aside(Reason::Trap, rule),
            }),
            UrlDisposition::SameAs(url, why) if lease.redirects == 0 => {
                LeasedUrlDisposition::Settle(WriterMessage::SameAs {
                    lease,
                    url,
                    exclusion: put_aside(Reason::Duplicate, why),
                })
            }
            UrlDisposition::Mirror(twin, why) if yields_to(&twin, at, frontier)? => {
                LeasedUrlDisposition::Settle(WriterMessage::PutAside {
                    lease,
                    exclusion: put_aside(Reason::Duplicate, why),
                })
            }
            UrlDisposition::SameAs(..) | UrlDisposition::Mirror(..) => {
                LeasedUrlDisposition::Fetch(lease)
            }
        })
    }
}

/// Returns whether a page of a mirror is deferred in favour of its copy on the mirrored origin.
/// True if the copy was fetched with a 2xx status, is pending, or is leased. If the copy turns out
/// not to be fetched, the page becomes pending again with the priority [`Priority::COPY_MISSING`].
/// After that, only a copy that was fetched counts.
fn yields_to(
    copy: &CanonicalUrl,
    at: Priority,
    frontier: &dyn Frontier,
) -> Result<bool, FrontierError> {
    let record = frontier.known(copy)?;
    Ok(record.is_some_and(|record| match record.state {
        KnownState::Fetched { status } => (200..300).contains(&status),
        KnownState::Pending { .. } | KnownState::Leased { .. } => at != Priority::COPY_MISSING,
        _ => false,
    }))
}

#[cfg(test)]
mod tests {
    use crawl_frontier::{
        Frontier as _, LeaseOutcome, MemoryFrontier, Reason, RequestedState, UrlKind, UrlToAdmit,
    };
    use crawl_weburl::{CanonicalUrl, canonicalize};

    use super::super::fixtures::{context, leased};
    use super::{LeasedUrlDisposition, LeasedUrlJudge, yields_to};
    use crate::config::{OffScopeRequestMethod, TrapAvoidance};
    use crate::messages::WriterMessage;
    use crate::priority::Priority;
    use crate::shared_trap_detector::SharedTrapDetector;

    fn url(path: &str) -> CanonicalUrl {
        canonicalize(None, &format!("http://a.example{path}")).unwrap()
    }

    fn link(path: &str) -> UrlToAdmit {
        UrlToAdmit::link(url(path), 1, url("/"))
    }

    /// Returns a short name of a disposition.
    fn word(disposition: &LeasedUrlDisposition) -> String {
        match disposition {
            LeasedUrlDisposition::Fetch(_) => "fetch".to_owned(),
            LeasedUrlDisposition::CheckStatus(_) => "check the status".to_owned(),
            LeasedUrlDisposition::Wait(_) => "wait".to_owned(),
            LeasedUrlDisposition::WaitForCommit(_) => "wait for a commit".to_owned(),
            LeasedUrlDisposition::Again(_) => "again".to_owned(),
            LeasedUrlDisposition::Later(_, priority) => format!("later, {}", priority.level()),
            LeasedUrlDisposition::Settle(WriterMessage::SameAs { url, exclusion, .. }) => {
                assert_eq!(exclusion.reason, Reason::Duplicate);
                format!("{} by line {:?}", url.path_and_query(), exclusion.line)
            }
            LeasedUrlDisposition::Settle(other) => format!("{other:?}"),
            LeasedUrlDisposition::Alone(_) => "alone".to_owned(),
            LeasedUrlDisposition::GiveUp(_) => "give up".to_owned(),
        }
    }

    #[test]
    fn irrelevant_parameters_are_removed_except_from_seeds_and_redirects() {
        let rules = "User-agent: *\nClean-param: sid\n";
        let cleaned = "/p by line Some(2)";
        type Change = fn(&mut UrlToAdmit);
        let changes: [(Change, bool, &str); 6] = [
            (|_| {}, true, cleaned),
            (|_| {}, false, "fetch"),
            (|link| link.url = url("/p?id=1"), true, "fetch"),
            (|link| link.is_seed = true, true, "fetch"),
            (|link| link.kind = UrlKind::Resource, true, "fetch"),
            (|link| link.redirects = 1, true, "fetch"),
        ];
        for (number, (change, clean_params, expected)) in changes.into_iter().enumerate() {
            let (frontier, mut traps) = (MemoryFrontier::new(), TrapAvoidance::default());
            traps.clean_params = clean_params;
            let mut judge = LeasedUrlJudge::new(traps, OffScopeRequestMethod::Get);
            let mut admission = link("/p?sid=1");
            change(&mut admission);
            let lease = leased(&frontier, admission);
            let context = context(&lease, rules);
            let disposition = judge.disposition(lease, &context, 1, &frontier).unwrap();
            assert_eq!(word(&disposition), expected, "{number}");
        }
    }

    /// The pages of the calendar look like an endless series, so they may be a trap.
    #[test]
    fn possible_traps_wait_for_the_requests_of_their_origin() {
        let (usual, late) = (Priority::LINK, Priority::ACTION);
        let barren = Priority::at_level(1);
        for (path, priority, out, expected) in [
            ("/p", usual, 0, "fetch"),
            ("/p", usual, 900, "fetch"),
            ("/p", late, 0, "fetch"),
            ("/p", late, 1, "wait"),
            ("/p", barren, 11, "fetch"),
            ("/p", barren, 12, "wait"),
            ("/calendar?month=1", usual, 0, "fetch"),
            ("/calendar?month=1", usual, 1, "wait"),
        ] {
            let frontier = MemoryFrontier::new();
            let mut judge =
                LeasedUrlJudge::new(TrapAvoidance::default(), OffScopeRequestMethod::Get);
            judge.share_traps(SharedTrapDetector::new(&TrapAvoidance::default(), None));
            let admission = UrlToAdmit {
                priority: priority.byte(),
                ..link(path)
            };
            let lease = leased(&frontier, admission);
            (0..out).for_each(|_| judge.leased(&lease.origin));
            let context = context(&lease, "");
            let disposition = judge.disposition(lease, &context, 3, &frontier).unwrap();
            assert_eq!(word(&disposition), expected, "{path} {priority:?} {out}");
        }
    }

    #[test]
    fn leases_of_an_origin_are_counted_until_they_end() {
        let mut judge = LeasedUrlJudge::new(TrapAvoidance::default(), OffScopeRequestMethod::Get);
        let (one, other) = (url("/").origin(), url("/").origin());
        judge.ended(&one);
        assert_eq!(judge.all_leases(), 0);
        judge.leased(&one);
        judge.leased(&other);
        judge.ended(&one);
        assert_eq!((judge.all_leases(), judge.out.len()), (1, 1));
        judge.ended(&one);
        assert!(judge.out.is_empty());
    }

    #[test]
    fn a_suspect_is_read_alone_after_three_deaths_and_given_up_after_four() {
        for (deaths, expected) in [(2, "fetch"), (3, "alone"), (4, "give up")] {
            let frontier = MemoryFrontier::new();
            let mut judge =
                LeasedUrlJudge::new(TrapAvoidance::default(), OffScopeRequestMethod::Get);
            judge.suspect([(url("/p"), deaths)].into());
            let lease = leased(&frontier, link("/p"));
            let context = context(&lease, "");
            let disposition = judge.disposition(lease, &context, 1, &frontier).unwrap();
            assert_eq!(word(&disposition), expected, "{deaths}");
            let LeasedUrlDisposition::Alone(lease) = disposition else {
                continue;
            };
            judge.hold(lease);
            judge.end_reading();
            assert!(!judge.reads_alone());
            let lease = judge.begin_reading().unwrap();
            assert!(judge.reads_alone());
            let again = judge.disposition(lease, &context, 1, &frontier).unwrap();
            assert_eq!(word(&again), "fetch");
            judge.end_reading();
            assert!(!judge.reads_alone() && judge.take_held().is_empty());
        }
    }

    #[test]
    fn a_mirror_yields_to_a_page_that_was_or_will_be_fetched() {
        let frontier = MemoryFrontier::new();
        for (path, status) in [
            ("/page", 200),
            ("/last", 299),
            ("/moved", 301),
            ("/gone", 404),
        ] {
            let lease = leased(&frontier, UrlToAdmit::seed(url(path)));
            let mut transaction = frontier.begin().unwrap();
            transaction
                .settle(lease, LeaseOutcome::Fetched { status })
                .unwrap();
            transaction.commit().unwrap();
        }
        let _under_way = leased(&frontier, UrlToAdmit::seed(url("/asked")));
        let mut transaction = frontier.begin().unwrap();
        let deferred = RequestedState::Deferred(super::put_aside(Reason::Trap, "a".to_owned()));
        for (path, state) in [
            ("/waiting", RequestedState::Pending),
            ("/deferred", deferred),
        ] {
            let admission = UrlToAdmit {
                state,
                ..UrlToAdmit::seed(url(path))
            };
            transaction.admit(admission).unwrap();
        }
        transaction.commit().unwrap();
        for (path, is_first, is_later) in [
            ("/page", true, true),
            ("/last", true, true),
            ("/waiting", true, false),
            ("/asked", true, false),
            ("/moved", false, false),
            ("/gone", false, false),
            ("/deferred", false, false),
            ("/unknown", false, false),
        ] {
            let yields = |at| yields_to(&url(path), at, &frontier).unwrap();
            let both = (yields(Priority::LINK), yields(Priority::COPY_MISSING));
            assert_eq!(both, (is_first, is_later), "{path}");
        }
    }
}
