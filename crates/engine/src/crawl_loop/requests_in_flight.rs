//! Requests in flight, and the address look-ups before them.

use std::collections::VecDeque;
use std::net::IpAddr;

use crawl_scheduler::Permit;

/// Counts the requests in flight, and queues the permits whose address look-up ended.
///
/// A permit that needs a look-up goes through [`look_up_began`](Self::look_up_began),
/// [`look_up_ended`](Self::look_up_ended) and [`next_looked_up`](Self::next_looked_up). A permit that was
/// set aside without a look-up goes through [`skip_look_up`](Self::skip_look_up) and `next_looked_up`.
/// If the request of a permit must wait for room, the caller returns the permit with
/// [`put_back`](Self::put_back). Each request sent is reported with [`sent`](Self::sent), and its
/// end with [`ended`](Self::ended).
#[derive(Debug, Default)]
pub(super) struct InFlightRequests {
    /// The number of requests in flight, address look-ups, and permits in `looked_up`.
    count: u32,
    /// Permits whose address look-up ended, oldest first. Each comes with the address, if one was
    /// found.
    looked_up: VecDeque<(Permit, Option<IpAddr>)>,
    sent: u64,
    ended: u64,
}

impl InFlightRequests {
    /// Counts an address look-up that began, for a permit that was set aside.
    pub(super) fn look_up_began(&mut self) {
        self.count += 1;
    }

    pub(super) fn look_up_ended(&mut self, permit: Permit, address: Option<IpAddr>) {
        self.looked_up.push_back((permit, address));
    }

    /// Queues a permit that was set aside, as if its address look-up had ended without a result.
    pub(super) fn skip_look_up(&mut self, permit: Permit) {
        self.look_up_began();
        self.look_up_ended(permit, None);
    }

    /// Takes the oldest permit whose address look-up ended.
    pub(super) fn next_looked_up(&mut self) -> Option<(Permit, Option<IpAddr>)> {
        let oldest = self.looked_up.pop_front()?;
        self.count -= 1;
        Some(oldest)
    }

    /// Puts back a permit that [`next_looked_up`](Self::next_looked_up) returned. The next call of
    /// `next_looked_up` returns the permit again.
    pub(super) fn put_back(&mut self, permit: Permit, address: Option<IpAddr>) {
        self.count += 1;
        self.looked_up.push_front((permit, address));
    }

    pub(super) fn sent(&mut self) {
        self.count += 1;
        self.sent += 1;
    }

    pub(super) fn ended(&mut self) {
        self.count -= 1;
        self.ended += 1;
    }

    /// Returns whether there is no request in flight, no address look-up, and no permit that waits
    /// in `looked_up`.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns whether nothing is in flight except permits whose address look-up ended.
    pub(super) fn are_all_found(&self) -> bool {
        self.count as usize == self.looked_up.len()
    }

    pub(super) fn sent_in_run(&self) -> u64 {
        self.sent
    }

    pub(super) fn ended_in_run(&self) -> u64 {
        self.ended
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    #[cfg(test)]
    pub(super) fn found(&self) -> usize {
        self.looked_up.len()
    }
}

#[cfg(test)]
mod tests {
    use crawl_scheduler::{PollOutcome, Scheduler};
    use crawl_weburl::Origin;

    use super::super::fixtures::{at, config};
    use super::InFlightRequests;

    #[test]
    fn permits_are_used_in_the_order_of_their_look_ups() {
        let mut scheduler = Scheduler::new(config().politeness, 1);
        let mut permits = ["a", "b", "c"].map(|host| {
            let origin = Origin::parse(&format!("http://{host}.example")).unwrap();
            scheduler.set_pending(at(20), &origin, 1);
            match scheduler.poll(at(20)) {
                PollOutcome::Issue(permit) => Some(permit),
                other => panic!("no permit: {other:?}"),
            }
        });
        let mut permit = |at: usize| permits[at].take().unwrap();
        let mut requests = InFlightRequests::default();
        assert!(requests.is_empty() && requests.next_looked_up().is_none());
        requests.look_up_began();
        requests.look_up_began();
        assert!(!requests.are_all_found());
        let address = "192.0.2.7".parse().ok();
        requests.look_up_ended(permit(1), address);
        requests.look_up_ended(permit(0), None);
        requests.skip_look_up(permit(2));
        assert!(requests.are_all_found());
        let (first, found) = requests.next_looked_up().unwrap();
        assert_eq!((first.host().as_str(), found), ("b.example", address));
        requests.put_back(first, found);
        let mut hosts = Vec::new();
        while let Some((permit, _)) = requests.next_looked_up() {
            hosts.push(permit.host().as_str().to_owned());
        }
        assert_eq!(hosts, ["b.example", "a.example", "c.example"]);
        assert!(requests.is_empty());
    }

    #[test]
    fn a_request_is_in_flight_until_it_ends() {
        let mut requests = InFlightRequests::default();
        requests.sent();
        requests.sent();
        requests.ended();
        assert!(!requests.is_empty() && !requests.are_all_found());
        assert_eq!((requests.sent_in_run(), requests.ended_in_run()), (2, 1));
        requests.ended();
        assert!(requests.is_empty() && requests.are_all_found());
    }
}
