//! Turns of hosts, as recorded in `state/order.jsonl`. A replay repeats them in order.
//!
//! A turn is the use of one permit: it judges and settles URLs of a host, and may end with a
//! request.

use crawl_archive::rows::HostTurn;
use crawl_frontier::Lease;
use crawl_scheduler::{RequestPurpose, Tick};

use crate::crawl_totals::{CommitPoint, CrawlTotals};

/// Maximum URLs that one turn (the use of a permit) settles or requeues behind other URLs, and
/// maximum URLs judged before the loop handles events. This bounds how long commits, commands and
/// signals wait.
pub(super) const MAX_JUDGED: u64 = 64;

/// Limits the length of the current turn (the use of a permit), and records the turn.
///
/// A turn starts with [`begin`](Self::begin). While it [`goes_on`](Self::goes_on), each leased URL
/// is reported with [`admit`](Self::admit), and with [`passed`](Self::passed) if it was settled or
/// put behind other URLs. At the end [`record`](Self::record) returns the row to write. Emits no
/// effects.
///
/// A replay calls [`repeat`](Self::repeat) before each turn that it repeats, and
/// [`stop_repeating`](Self::stop_repeating) after the last.
#[derive(Debug)]
pub(super) struct TurnTracker {
    current: CurrentTurn,
    /// Replaces the usual maximum of `passed` while recorded turns are repeated.
    max_passed: Option<u64>,
    /// The number of URLs judged since the loop last handled events.
    judged: u64,
    /// Totals when this run began.
    at_start: CrawlTotals,
    /// The number of the last commit before this run.
    before_this_run: u64,
}

#[derive(Debug, Default)]
struct CurrentTurn {
    /// The number of the last commit before the turn's URLs were leased; `None` before the first
    /// lease.
    after: Option<u64>,
    /// The number of URLs that were settled or put behind other URLs.
    passed: u64,
}

impl TurnTracker {
    /// Creates the tracker for the turns (uses of permits) of a run. `at_start` are the totals when
    /// the run begins.
    pub(super) fn new(at_start: CrawlTotals) -> TurnTracker {
        let before_this_run = CommitPoint {
            pages: at_start.pages,
            others: 0,
        };
        TurnTracker {
            current: CurrentTurn::default(),
            max_passed: None,
            judged: 0,
            at_start,
            before_this_run: before_this_run.number(),
        }
    }

    /// Makes the next turn (use of a permit) repeat a recorded one, with the same number of settled
    /// or requeued URLs. If the recorded turn sent a request, the number isn't limited, since older
    /// versions let such turns settle or requeue more URLs.
    pub(super) fn repeat(&mut self, recorded: &HostTurn) {
        self.max_passed = Some(match recorded.is_sent {
            true => u64::MAX,
            false => recorded.passed,
        });
    }

    /// Ends the repetition of recorded turns.
    pub(super) fn stop_repeating(&mut self) {
        self.max_passed = None;
    }

    /// Returns whether recorded turns are repeated.
    pub(super) fn are_repeated(&self) -> bool {
        self.max_passed.is_some()
    }

    pub(super) fn handled_events(&mut self) {
        self.judged = 0;
    }

    /// Returns whether to handle events before the next permit is used.
    pub(super) fn are_events_due(&self) -> bool {
        self.judged >= MAX_JUDGED
    }

    pub(super) fn begin(&mut self) {
        self.current = CurrentTurn::default();
    }

    /// Records in a lease which commit came before it, and returns whether the lease belongs to the
    /// current turn (the use of a permit). All leases of a turn must come after the same commit, so
    /// that the same state decides about all of them. If this returns false, the turn is over, and
    /// the caller releases the lease.
    pub(super) fn admit(&mut self, lease: &mut Lease) -> bool {
        lease.after = lease.after.max(self.before_this_run);
        let is_admitted = *self.current.after.get_or_insert(lease.after) == lease.after;
        self.judged += u64::from(is_admitted);
        is_admitted
    }

    /// Begins the turn (use of a permit) again, so that its leases may come after a later commit.
    /// No effect if the turn already settled or requeued a URL. Returns whether the turn began
    /// again.
    pub(super) fn begin_again(&mut self) -> bool {
        let is_fresh = self.current.passed == 0;
        if is_fresh {
            self.current.after = None;
        }
        is_fresh
    }

    /// Counts a URL that was settled or put behind other URLs.
    pub(super) fn passed(&mut self) {
        self.current.passed += 1;
    }

    /// Returns whether the current turn (the use of a permit) may lease another URL.
    pub(super) fn goes_on(&self) -> bool {
        self.current.passed < self.max_passed.unwrap_or(MAX_JUDGED)
    }

    /// Returns whether the turn ended early so that other hosts are served. A turn that a replay
    /// repeats never ends early.
    pub(super) fn is_cut_short(&self) -> bool {
        !self.are_repeated() && !self.goes_on()
    }

    /// Returns the row of a turn that is over. `None` if the turn did nothing: it settled or
    /// requeued no URL, and sent no request. `ended` is the number of ended requests of this run,
    /// and `settled` is the number of committed messages.
    pub(super) fn record(
        &self,
        now: Tick,
        purpose: &RequestPurpose,
        is_sent: bool,
        (ended, settled): (u64, u64),
    ) -> Option<HostTurn> {
        let CurrentTurn { after, passed } = self.current;
        let (origin, purpose) = match purpose {
            RequestPurpose::Page { origin } => (origin, "page"),
            RequestPurpose::Robots { origin } => (origin, "robots"),
            RequestPurpose::Hop { of } => (of, "hop"),
        };
        let leased_after = after.map_or(0, |after| CommitPoint::of(after).messages(&self.at_start));
        (is_sent || passed > 0).then(|| HostTurn {
            at: now.as_millis(),
            origin: origin.to_string(),
            purpose: purpose.to_owned(),
            ended,
            settled: leased_after.max(settled),
            passed,
            is_sent,
        })
    }
}

#[cfg(test)]
mod tests {
    use crawl_archive::rows::HostTurn;
    use crawl_frontier::{Lease, MemoryFrontier, UrlToAdmit};
    use crawl_scheduler::RequestPurpose;
    use crawl_weburl::{Origin, canonicalize};

    use super::super::DriverStep;
    use super::super::fixtures::{at, coordinator, copy, leased, open_to_all};
    use super::{MAX_JUDGED, TurnTracker};
    use crate::crawl_totals::CrawlTotals;
    use crate::messages::{Effect, Event, GroupCommitResult, WriterMessage};

    fn lease(after: u64) -> Lease {
        let url = canonicalize(None, "http://a.example/").unwrap();
        let mut lease = leased(&MemoryFrontier::new(), UrlToAdmit::seed(url));
        lease.after = after;
        lease
    }

    #[test]
    fn a_turn_leases_after_one_commit_and_is_recorded_if_it_has_a_result() {
        let purpose = RequestPurpose::Page {
            origin: Origin::parse("http://a.example").unwrap(),
        };
        let mut turns = TurnTracker::new(CrawlTotals::default());
        let record = |turns: &TurnTracker, is_sent| {
            let turn = turns.record(at(20), &purpose, is_sent, (3, 7));
            turn.map(|turn| (turn.purpose, turn.ended, turn.passed, turn.is_sent))
        };
        turns.begin();
        assert!(turns.admit(&mut lease(5)) && !turns.admit(&mut lease(6)));
        assert_eq!(record(&turns, false), None);
        // The turn (use of a permit) has settled no URL yet, so it may begin again after another
        // commit.
        assert!(turns.begin_again() && turns.admit(&mut lease(6)));
        turns.passed();
        assert!(!turns.begin_again());
        let page = || "page".to_owned();
        assert_eq!(record(&turns, false), Some((page(), 3, 1, false)));
        turns.begin();
        assert_eq!(record(&turns, true), Some((page(), 3, 0, true)));
    }

    #[test]
    fn a_turn_passes_at_most_a_maximum_of_urls_or_as_recorded() {
        let recorded = |passed, is_sent| HostTurn {
            passed,
            is_sent,
            at: 0,
            origin: String::new(),
            purpose: String::new(),
            ended: 0,
            settled: 0,
        };
        for (recorded, passed, is_cut_short) in [
            (None, MAX_JUDGED, true),
            (Some(recorded(2, false)), 2, false),
            (Some(recorded(2, true)), 1_000, false),
        ] {
            let mut turns = TurnTracker::new(CrawlTotals::default());
            if let Some(recorded) = &recorded {
                turns.repeat(recorded);
            }
            assert_eq!(turns.are_repeated(), recorded.is_some());
            turns.begin();
            let mut count = 0;
            while turns.goes_on() && count < 1_000 {
                turns.passed();
                count += 1;
            }
            assert_eq!((count, turns.is_cut_short()), (passed, is_cut_short));
            turns.stop_repeating();
            assert!(!turns.are_repeated());
        }
    }

    #[test]
    fn events_are_due_after_a_maximum_of_judged_urls() {
        let mut turns = TurnTracker::new(CrawlTotals::default());
        for _ in 0..MAX_JUDGED {
            assert!(!turns.are_events_due());
            turns.begin();
            assert!(turns.admit(&mut lease(0)));
        }
        assert!(turns.are_events_due());
        turns.handled_events();
        assert!(!turns.are_events_due());
    }

    #[test]
    fn a_host_of_refused_urls_holds_up_neither_events_nor_other_hosts() {
        let mut coordinator = coordinator(|_| {});
        let mut transaction = coordinator.frontier.begin().unwrap();
        for (host, pages) in [("a", 3 * MAX_JUDGED), ("b", 1)] {
            let origin = Origin::parse(&format!("http://{host}.example")).unwrap();
            for page in 0..pages {
                let url = canonicalize(None, &format!("{origin}/{host}/{page}")).unwrap();
                transaction.admit(UrlToAdmit::seed(url)).unwrap();
            }
            let rules = copy(&origin, "User-agent: *\nDisallow: /a/\n");
            coordinator.robots.keep(rules);
            let scheduler = coordinator.hosts.scheduler();
            scheduler.set_pending(at(20), &origin, pages);
            scheduler.set_robots(at(20), &origin, open_to_all());
            let address = "192.0.2.7".parse().unwrap();
            scheduler.set_address(at(20), &origin.host_key(), address);
        }
        transaction.commit().unwrap();
        let mut refused = 0;
        let mut is_b_fetched = false;
        for _ in 0..4 {
            let mut out = Vec::new();
            let next = coordinator.advance(at(21), &mut out);
            let is_refusal =
                |effect: &&Effect| matches!(effect, Effect::Write(WriterMessage::Excluded { .. }));
            let settled = out.iter().filter(is_refusal).count() as u64;
            assert!(settled <= MAX_JUDGED, "{settled}");
            let is_fetch = |effect: &Effect| matches!(effect, Effect::Fetch { .. });
            is_b_fetched |= out.iter().any(is_fetch);
            refused += settled;
            if next == DriverStep::Wait(Some(at(21))) {
                continue;
            }
            // The first host must wait until its refused URLs are committed. Until then, the second
            // host is served.
            assert!(is_b_fetched, "{refused}");
            let committed = GroupCommitResult {
                items: MAX_JUDGED,
                leases: 0,
                ..GroupCommitResult::default()
            };
            coordinator.handle(at(21), Event::Committed(Box::new(committed)), &mut out);
        }
        assert!(is_b_fetched);
        assert!(refused > MAX_JUDGED, "{refused}");
    }
}
