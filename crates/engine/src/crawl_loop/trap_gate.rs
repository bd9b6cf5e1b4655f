//! Traps and samples in the crawl loop: which leased page is fetched, which waits, and which is put
//! aside.
//!
//! The priority of a URL holds its level, so that the frontier stores it and puts URLs found on pages
//! with nothing new behind all others.

use std::collections::BTreeSet;

use crawl_frontier::{Exclusion, Frontier, FrontierError, KnownState, Lease, Reason, UrlKind};
use crawl_traps::Disposition;
use crawl_weburl::{CanonicalUrl, Origin, canonicalize};
use foldhash::{HashMap, HashMapExt as _};

use crate::config::TrapRules;
use crate::messages::WriterMessage;
use crate::messages::page::FetchContext;
use crate::priority::Priority;
use crate::sampling::{SampleVerdict, Sampling};
use crate::shared_traps::{SharedTraps, put_aside};

/// Decides what happens to leased URLs of pages by traps and by the sample of a crawl.
///
/// - Set up: [`share_traps`](Self::share_traps) and [`sample`](Self::sample), before the first lease.
/// - For each lease that may be fetched: [`disposition`](Self::disposition). Nothing is emitted; the
///   caller acts on the answer. Each fetched lease is reported with [`leased`](Self::leased), and with
///   [`ended`](Self::ended) once it is committed or released.
/// - An origin that waits for a commit is noted with [`wait_for_commit`](Self::wait_for_commit).
///   After each commit the caller wakes the origins of [`take_waiting`](Self::take_waiting).
pub(crate) struct TrapGate {
    rules: TrapRules,
    /// The evidence that the writer commits, shared with it.
    shared: SharedTraps,
    sampling: Option<Sampling>,
    /// Uncommitted leases of each origin. The evidence in `shared` does not include them.
    out: HashMap<Origin, u32>,
    /// Origins whose URLs wait for a commit.
    waiting: BTreeSet<Origin>,
}

/// The next step for a URL that was leased and may be asked for.
pub(crate) enum LeaseDisposition {
    /// Fetch the URL now.
    Fetch(Lease),
    /// Release the URL until the origin's requests in flight are read and committed.
    Wait(Lease),
    /// Release the URL until the commit under way is done: it changes the evidence for traps.
    WaitForCommit(Lease),
    /// Lease again: the URL was leased before the last commit, and another may be first now.
    Again(Lease),
    /// Put the URL behind others of its queue.
    Later(Lease, Priority),
    /// Settle the URL without a request.
    Settle(WriterMessage),
}

impl TrapGate {
    pub(super) fn new(rules: TrapRules) -> TrapGate {
        TrapGate {
            rules,
            shared: SharedTraps::new(&TrapRules::OFF, None),
            sampling: None,
            out: HashMap::new(),
            waiting: BTreeSet::new(),
        }
    }

    /// Uses the evidence that the writer shares from now on.
    pub(super) fn share_traps(&mut self, shared: SharedTraps) {
        self.shared = shared;
    }

    /// Fetches only the pages of a sample from now on.
    pub(super) fn sample(&mut self, sampling: Option<Sampling>) {
        self.sampling = sampling;
    }

    /// Returns whether to draw the sample now that the frame is complete. True once at most.
    pub(super) fn is_to_draw(&mut self) -> bool {
        self.sampling.as_mut().is_some_and(Sampling::is_to_draw)
    }

    /// Returns the origins to wake after a commit, and forgets them.
    pub(super) fn take_waiting(&mut self) -> BTreeSet<Origin> {
        std::mem::take(&mut self.waiting)
    }

    /// Notes an origin to wake after the next commit.
    pub(super) fn wait_for_commit(&mut self, origin: &Origin) {
        self.waiting.insert(origin.clone());
    }

    /// Counts a lease that is fetched.
    pub(super) fn leased(&mut self, origin: &Origin) {
        *self.out.entry(origin.clone()).or_default() += 1;
    }

    /// Counts the end of a lease.
    pub(super) fn ended(&mut self, origin: &Origin) {
        if let Some(count) = self.out.get_mut(origin) {
            *count -= 1;
            if *count == 0 {
                self.out.remove(origin);
            }
        }
    }

    /// Leases of all origins whose end was not committed yet.
    #[cfg(test)]
    pub(super) fn all_leases(&self) -> u64 {
        self.out.values().map(|count| u64::from(*count)).sum()
    }

    /// The spelling under which the page of a leased URL is asked for, by its site's own word.
    fn cleaned(&self, lease: &Lease, context: &FetchContext) -> Option<(CanonicalUrl, Exclusion)> {
        let cleaned = context.rules.robots.clean(lease.url.as_url());
        let cleaned = cleaned.filter(|_| self.rules.clean_params)?;
        let exclusion = Exclusion {
            line: Some(cleaned.line),
            ..put_aside(Reason::Duplicate, cleaned.rule)
        };
        let url = canonicalize(None, cleaned.url.as_str()).ok()?;
        Some((url, exclusion))
    }
    /// Decides what happens to a leased URL that scope and robots.txt allow. Seeds and URLs visited
    /// before are always fetched. `per_host` is the number of requests that a host may have in
    /// flight.
    ///
    /// # Errors
    /// The frontier's, from looking up a mirrored page.
    pub(super) fn disposition(
        &self,
        lease: Lease,
        context: &FetchContext,
        per_host: u32,
        frontier: &dyn Frontier,
    ) -> Result<LeaseDisposition, FrontierError> {
        if lease.kind != UrlKind::Page || context.past.is_some() {
            return Ok(LeaseDisposition::Fetch(lease));
        }
        match self
            .sampling
            .as_ref()
            .map(|sampling| sampling.judge(&lease))
        {
            Some(SampleVerdict::Out(exclusion)) => {
                let aside = WriterMessage::PutAside { lease, exclusion };
                return Ok(LeaseDisposition::Settle(aside));
            }
            // A sample has an end, and what a trap would leave out of it has a probability.
            Some(SampleVerdict::In) => return Ok(LeaseDisposition::Fetch(lease)),
            Some(SampleVerdict::Usual) | None => {}
        }
        if lease.is_seed {
            return Ok(LeaseDisposition::Fetch(lease));
        }
        // A redirect insists on its target as it is.
        if lease.redirects == 0
            && let Some((url, exclusion)) = self.cleaned(&lease, context)
        {
            return Ok(LeaseDisposition::Settle(WriterMessage::SameAs {
                lease,
                url,
                exclusion,
            }));
        }
        self.judge_by_traps(lease, per_host, frontier)
    }

    /// Decides by the traps of a URL's site, as of the commit that it was leased after.
    fn judge_by_traps(
        &self,
        lease: Lease,
        per_host: u32,
        frontier: &dyn Frontier,
    ) -> Result<LeaseDisposition, FrontierError> {
        let mut traps = self.shared.lock();
        // The verdict follows from the commits before the lease: so it does not depend on how far
        // the writer is, and a replay gives the same.
        if traps.is_changing(&lease.url, lease.via.as_ref()) {
            return Ok(LeaseDisposition::WaitForCommit(lease));
        }
        if self.shared.settled_by() > lease.after {
            return Ok(LeaseDisposition::Again(lease));
        }
        let at = Priority::of(&lease);
        let out = self.out.get(&lease.origin).copied().unwrap_or(0);
        let max_out = match at.level() {
            0 if at.is_late() => 1,
            0 => u32::MAX,
            // Their results are wanted soon, while the host stays as busy as it may be: a commit
            // takes as long as several rounds of requests to a quick host.
            _ => per_host.saturating_mul(4),
        };
        if out >= max_out || out > 0 && traps.needs_care(&lease.url, at.level()) {
            return Ok(LeaseDisposition::Wait(lease));
        }
        let disposition = traps.disposition(&lease.url, lease.via.as_ref(), at.level());
        drop(traps);
        Ok(match disposition {
            Disposition::Fetch => LeaseDisposition::Fetch(lease),
            // The URL already comes after all others.
            Disposition::Later(_) if at.is_late() => LeaseDisposition::Fetch(lease),
            Disposition::Later(level) => LeaseDisposition::Later(lease, Priority::at_level(level)),
            Disposition::Defer(rule) => LeaseDisposition::Settle(WriterMessage::PutAside {
                lease,
                exclusion: put_aside(Reason::Trap, rule),
            }),
            Disposition::SameAs(url, why) if lease.redirects == 0 => {
                LeaseDisposition::Settle(WriterMessage::SameAs {
                    lease,
                    url,
                    exclusion: put_aside(Reason::Duplicate, why),
                })
            }
            Disposition::Mirror(twin, why) if is_had(frontier, &twin)? => {
                LeaseDisposition::Settle(WriterMessage::PutAside {
                    lease,
                    exclusion: put_aside(Reason::Duplicate, why),
                })
            }
            Disposition::SameAs(..) | Disposition::Mirror(..) => LeaseDisposition::Fetch(lease),
        })
    }
}

/// Returns whether a page was fetched, or will be.
fn is_had(frontier: &dyn Frontier, url: &CanonicalUrl) -> Result<bool, FrontierError> {
    let record = frontier.known(url)?;
    Ok(record.is_some_and(|record| match record.state {
        KnownState::Fetched { status } => (200..300).contains(&status),
        KnownState::Pending { .. } | KnownState::Leased { .. } => true,
        _ => false,
    }))
}

#[cfg(test)]
mod tests {
    use crawl_frontier::{
        Admission, Frontier as _, MemoryFrontier, NewState, Outcome, Reason, UrlKind,
    };
    use crawl_weburl::{CanonicalUrl, canonicalize};

    use super::super::by_itself::{context, leased};
    use super::{LeaseDisposition, TrapGate, is_had};
    use crate::config::TrapRules;
    use crate::messages::WriterMessage;
    use crate::priority::Priority;
    use crate::shared_traps::SharedTraps;

    fn url(path: &str) -> CanonicalUrl {
        canonicalize(None, &format!("http://a.example{path}")).unwrap()
    }

    fn link(path: &str) -> Admission {
        Admission::link(url(path), 1, url("/"))
    }

    /// What is done with a lease, in a word.
    fn word(disposition: &LeaseDisposition) -> String {
        match disposition {
            LeaseDisposition::Fetch(_) => "fetch".to_owned(),
            LeaseDisposition::Wait(_) => "wait".to_owned(),
            LeaseDisposition::WaitForCommit(_) => "wait for a commit".to_owned(),
            LeaseDisposition::Again(_) => "again".to_owned(),
            LeaseDisposition::Later(_, priority) => format!("later, {}", priority.level()),
            LeaseDisposition::Settle(WriterMessage::SameAs { url, exclusion, .. }) => {
                assert_eq!(exclusion.reason, Reason::Duplicate);
                format!("{} by line {:?}", url.path_and_query(), exclusion.line)
            }
            LeaseDisposition::Settle(other) => format!("{other:?}"),
        }
    }

    #[test]
    fn ours_what_a_site_calls_idle_goes_from_a_url_that_is_no_seed_and_no_redirects_target() {
        let rules = "User-agent: *\nClean-param: sid\n";
        let cleaned = "/p by line Some(2)";
        type Change = fn(&mut Admission);
        let changes: [(Change, bool, &str); 6] = [
            (|_| {}, true, cleaned),
            (|_| {}, false, "fetch"),
            (|link| link.url = url("/p?id=1"), true, "fetch"),
            (|link| link.is_seed = true, true, "fetch"),
            (|link| link.kind = UrlKind::Resource, true, "fetch"),
            (|link| link.redirects = 1, true, "fetch"),
        ];
        for (number, (change, clean_params, expected)) in changes.into_iter().enumerate() {
            let (frontier, mut traps) = (MemoryFrontier::new(), TrapRules::default());
            traps.clean_params = clean_params;
            let gate = TrapGate::new(traps);
            let mut admission = link("/p?sid=1");
            change(&mut admission);
            let lease = leased(&frontier, admission);
            let context = context(&lease, rules);
            let found = gate.disposition(lease, &context, 1, &frontier).unwrap();
            assert_eq!(word(&found), expected, "{number}");
        }
    }

    /// A calendar looks as if it had no end.
    #[test]
    fn ours_what_may_have_no_end_waits_for_what_its_origin_is_asked_for() {
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
            let mut gate = TrapGate::new(TrapRules::default());
            gate.share_traps(SharedTraps::new(&TrapRules::default(), None));
            let admission = Admission {
                priority: priority.byte(),
                ..link(path)
            };
            let lease = leased(&frontier, admission);
            (0..out).for_each(|_| gate.leased(&lease.origin));
            let context = context(&lease, "");
            let found = gate.disposition(lease, &context, 3, &frontier).unwrap();
            assert_eq!(word(&found), expected, "{path} {priority:?} {out}");
        }
    }

    #[test]
    fn ours_leases_of_an_origin_are_counted_until_they_end() {
        let mut gate = TrapGate::new(TrapRules::default());
        let (one, other) = (url("/").origin(), url("/").origin());
        gate.ended(&one);
        assert_eq!(gate.all_leases(), 0);
        gate.leased(&one);
        gate.leased(&other);
        gate.ended(&one);
        assert_eq!((gate.all_leases(), gate.out.len()), (1, 1));
        gate.ended(&one);
        assert!(gate.out.is_empty());
    }

    #[test]
    fn ours_a_mirror_gives_way_to_a_page_that_was_fetched_or_will_be() {
        let frontier = MemoryFrontier::new();
        for (path, status) in [
            ("/page", 200),
            ("/last", 299),
            ("/moved", 301),
            ("/gone", 404),
        ] {
            let lease = leased(&frontier, Admission::seed(url(path)));
            let mut transaction = frontier.begin().unwrap();
            transaction
                .settle(lease, Outcome::Fetched { status })
                .unwrap();
            transaction.commit().unwrap();
        }
        let _under_way = leased(&frontier, Admission::seed(url("/asked")));
        let mut transaction = frontier.begin().unwrap();
        let deferred = NewState::Deferred(super::put_aside(Reason::Trap, "a".to_owned()));
        for (path, state) in [("/waiting", NewState::Pending), ("/deferred", deferred)] {
            let admission = Admission {
                state,
                ..Admission::seed(url(path))
            };
            transaction.admit(admission).unwrap();
        }
        transaction.commit().unwrap();
        for (path, had) in [
            ("/page", true),
            ("/last", true),
            ("/waiting", true),
            ("/asked", true),
            ("/moved", false),
            ("/gone", false),
            ("/deferred", false),
            ("/unknown", false),
        ] {
            assert_eq!(is_had(&frontier, &url(path)).unwrap(), had, "{path}");
        }
    }
}
