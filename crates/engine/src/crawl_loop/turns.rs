//! Turns of hosts, as `state/order.jsonl` has them: by them a replay knows who was served when.

use crawl_archive::rows::HostTurn;
use crawl_frontier::Lease;
use crawl_scheduler::{Purpose, Tick};

use super::Coordinator;
use crate::totals::CommitPoint;

/// Maximum URLs that one turn settles or puts behind others, and maximum URLs that are judged
/// before the loop takes in events again: commits, commands and signals wait no longer than that,
/// whatever a URL costs to judge.
pub(super) const MAX_JUDGED: u64 = 64;

/// The facts of a turn, as it goes on.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// The number of the last commit that its URLs were chosen after.
    after: Option<u64>,
    /// URLs that were settled or went behind others.
    passed: u64,
    /// Overrides the maximum of `passed` while a turn is taken again after a record.
    pub(super) most: Option<u64>,
}

impl Turn {
    /// Returns whether it is taken again after a record.
    pub(super) fn is_recorded(&self) -> bool {
        self.most.is_some()
    }
}

/// URLs judged since the loop took in events.
#[derive(Debug, Default)]
pub(super) struct JudgedUrls(u64);

impl JudgedUrls {
    pub(super) fn clear(&mut self) {
        self.0 = 0;
    }

    pub(super) fn add_one(&mut self) {
        self.0 += 1;
    }

    /// Returns whether events are to be taken in before the next permit is used.
    pub(super) fn are_many(&self) -> bool {
        self.0 >= MAX_JUDGED
    }
}

impl Coordinator {
    pub(super) fn begin_turn(&mut self) {
        self.turn = Turn {
            most: self.turn.most,
            ..Turn::default()
        };
    }

    /// Returns whether a lease was chosen after the same commit as those of this turn before it.
    /// If not, the turn is over: all that is decided in it is to follow from one state.
    pub(super) fn is_of_turn(&mut self, lease: &Lease) -> bool {
        *self.turn.after.get_or_insert(lease.after) == lease.after
    }

    /// Returns whether nothing came of the turn yet: then it begins anew.
    pub(super) fn is_fresh_turn(&mut self) -> bool {
        let is_fresh = self.turn.passed == 0;
        if is_fresh {
            self.turn.after = None;
        }
        is_fresh
    }

    /// Returns whether the turn goes on without a request.
    pub(super) fn turn_goes_on(&self) -> bool {
        self.turn.passed < self.turn.most.unwrap_or(MAX_JUDGED)
    }

    /// Returns whether the turn ended early so that others are served. A recorded turn never does.
    pub(super) fn is_cut_short(&self) -> bool {
        !self.turn.is_recorded() && !self.turn_goes_on()
    }

    /// A URL of this turn was settled or went behind others.
    pub(super) fn passed(&mut self) {
        self.turn.passed += 1;
    }

    /// The row of the turn that is over; none where nothing came of it.
    pub(super) fn turn_taken(
        &self,
        now: Tick,
        purpose: &Purpose,
        is_sent: bool,
    ) -> Option<HostTurn> {
        let passed = self.turn.passed;
        let (origin, purpose) = match purpose {
            Purpose::Page { origin } => (origin, "page"),
            Purpose::Robots { origin } => (origin, "robots"),
            Purpose::Hop { of } => (of, "hop"),
        };
        let chosen_after = self.turn.after.map_or(0, |after| {
            CommitPoint::of(after).messages(&self.totals_at_start)
        });
        (is_sent || passed > 0).then(|| HostTurn {
            at: now.as_millis(),
            origin: origin.to_string(),
            purpose: purpose.to_owned(),
            ended: self.requests.ended_in_run(),
            settled: chosen_after.max(self.totals.messages),
            passed,
            is_sent,
        })
    }
}

#[cfg(test)]
mod tests {
    use crawl_frontier::Admission;
    use crawl_weburl::{Origin, canonicalize};

    use super::super::Next;
    use super::super::by_itself::{at, coordinator, copy, open_to_all};
    use super::MAX_JUDGED;
    use crate::messages::{Committed, Effect, Event, WriterMessage};

    #[test]
    fn ours_a_host_of_refused_urls_holds_up_neither_events_nor_other_hosts() {
        let mut coordinator = coordinator(|_| {});
        let mut transaction = coordinator.frontier.begin().unwrap();
        for (host, pages) in [("a", 3 * MAX_JUDGED), ("b", 1)] {
            let origin = Origin::parse(&format!("http://{host}.example")).unwrap();
            for page in 0..pages {
                let url = canonicalize(None, &format!("{origin}/{host}/{page}")).unwrap();
                transaction.admit(Admission::seed(url)).unwrap();
            }
            let rules = copy(&origin, "User-agent: *\nDisallow: /a/\n");
            coordinator.origins.keep(rules);
            let scheduler = &mut coordinator.scheduler;
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
            if next == Next::Wait(Some(at(21))) {
                continue;
            }
            // The first host waits until its refusals are committed, and the other one has its turn.
            assert!(is_b_fetched, "{refused}");
            let committed = Committed {
                items: MAX_JUDGED,
                leases: 0,
                ..Committed::default()
            };
            coordinator.handle(at(21), Event::Committed(Box::new(committed)), &mut out);
        }
        assert!(is_b_fetched);
        assert!(refused > MAX_JUDGED, "{refused}");
    }
}
