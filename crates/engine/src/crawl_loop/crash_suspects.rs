//! Crash suspects: URLs that the process seems to have died of are read last and alone, or given up.

use std::collections::HashMap;

use crawl_archive::rows::READER_KILLED;
use crawl_frontier::Lease;
use crawl_scheduler::Tick;
use crawl_weburl::CanonicalUrl;

use super::Coordinator;
use crate::messages::page::{FetchContext, UnansweredVisit};
use crate::messages::{Effect, WriterMessage};

/// Deaths with a URL being read, after which it is read last and with no other.
const DEATHS_UNTIL_ALONE: u32 = 3;

/// The way to treat a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Treatment {
    /// As any other.
    Usual,
    /// It is asked for when nothing else is left, and nothing else is read beside it.
    LastAndAlone,
    /// It is settled as failed: alone, too, it took the process along.
    GiveUp,
}

/// The treatment after so many deaths with a URL being read.
fn treatment(deaths: u32) -> Treatment {
    match deaths {
        0..DEATHS_UNTIL_ALONE => Treatment::Usual,
        DEATHS_UNTIL_ALONE => Treatment::LastAndAlone,
        _ => Treatment::GiveUp,
    }
}

/// The suspects of a run: URLs that were being read when the process died. Empty unless it died.
///
/// Before a lease is fetched, `treatment` decides how; leases to read alone are passed to `hold`. Once
/// nothing else is left, the loop ends the lone reading before with
/// [`end_reading`](Self::end_reading) and takes the next held lease with
/// [`begin_reading`](Self::begin_reading); while it [`reads_alone`](Self::reads_alone), nothing else is
/// fetched. At the end of the run [`take_held`](Self::take_held) returns the leases that are left.
#[derive(Default)]
pub(crate) struct CrashSuspects {
    deaths: HashMap<CanonicalUrl, u32>,
    /// Leases that wait until nothing else is left. Not counted as unsettled.
    held: Vec<Lease>,
    /// The URL that is read alone.
    reading: Option<LoneReading>,
}

struct LoneReading {
    url: CanonicalUrl,
    /// True once it was handed out.
    is_begun: bool,
}

impl CrashSuspects {
    /// Returns the treatment of a URL that was leased and may be fetched.
    fn treatment(&mut self, url: &CanonicalUrl) -> Treatment {
        if self.deaths.is_empty() {
            return Treatment::Usual;
        }
        let deaths = self.deaths.get(url).copied().unwrap_or_default();
        match &mut self.reading {
            Some(reading) if reading.url == *url => {
                reading.is_begun = true;
                Treatment::Usual
            }
            _ => treatment(deaths),
        }
    }

    /// Takes how often the process died while each URL was being read.
    fn suspect(&mut self, deaths: HashMap<CanonicalUrl, u32>) {
        self.deaths = deaths;
    }

    /// Holds a lease until nothing else is left.
    fn hold(&mut self, lease: Lease) {
        self.held.push(lease);
    }

    /// Nothing is in flight: a lone reading that began is over.
    pub(super) fn end_reading(&mut self) {
        if self
            .reading
            .as_ref()
            .is_some_and(|reading| reading.is_begun)
        {
            self.reading = None;
        }
    }

    /// Returns the held lease to read next, alone.
    pub(super) fn begin_reading(&mut self) -> Option<Lease> {
        let lease = self.held.pop()?;
        self.reading = Some(LoneReading {
            url: lease.url.clone(),
            is_begun: false,
        });
        Some(lease)
    }

    /// Returns whether a lone reading is due or under way.
    pub(super) fn reads_alone(&self) -> bool {
        self.reading.is_some()
    }

    /// Takes the leases that are still held.
    pub(super) fn take_held(&mut self) -> Vec<Lease> {
        std::mem::take(&mut self.held)
    }
}

impl Coordinator {
    /// Takes up which URLs were being read when the process died, and how often.
    pub(crate) fn suspect(&mut self, deaths: HashMap<CanonicalUrl, u32>) {
        self.suspects.suspect(deaths);
    }

    /// The lease again where its URL is asked for like any other.
    pub(crate) fn unless_suspect(
        &mut self,
        now: Tick,
        lease: Lease,
        context: &FetchContext,
        out: &mut Vec<Effect>,
    ) -> Option<Lease> {
        match self.suspects.treatment(&lease.url) {
            Treatment::Usual => return Some(lease),
            Treatment::LastAndAlone => {
                let what = "waits until nothing else is left: the program died while it was read";
                self.events.waits(&lease.url, what);
                self.suspects.hold(lease);
            }
            Treatment::GiveUp => {
                let host = lease.url.host_key();
                self.host_budgets.settled(&host);
                // The commit ends it as it ends one that was asked for.
                self.traps.leased(&lease.origin);
                let state = self.host_state(&host);
                let visit =
                    UnansweredVisit::given_up(lease, context.clone(), now, READER_KILLED, state);
                self.backlog.given_up();
                self.write(WriterMessage::Unanswered(Box::new(visit)), out);
            }
        }
        None
    }

    /// Returns whether a URL is being read that must be read alone.
    pub(super) fn reads_alone(&self) -> bool {
        !self.backlog.is_empty() && self.suspects.reads_alone()
    }

    /// Puts the next held suspect back into its queue, once nothing else is left. Returns whether
    /// there was one.
    pub(super) fn begin_lone_reading(&mut self, now: Tick) -> bool {
        let Some(lease) = self.suspects.begin_reading() else {
            return false;
        };
        let origin = lease.origin.clone();
        self.frontier.release(lease);
        self.wake(now, &origin, self.frontier.pending(&origin));
        true
    }

    /// Releases the suspects that are still held at the end of the run: they are pending as others
    /// are.
    pub(super) fn release_suspects(&mut self) {
        for lease in self.suspects.take_held() {
            self.frontier.release(lease);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crawl_frontier::Admission;
    use crawl_weburl::canonicalize;

    use super::super::Next;
    use super::super::by_itself::{at, coordinator, leased};
    use super::{LoneReading, Treatment, treatment};
    use crate::control::Stop;

    #[test]
    fn ours_after_three_deaths_last_after_four_never() {
        let treated: Vec<_> = (0..6).map(treatment).collect();
        let (usual, last, never) = (Treatment::Usual, Treatment::LastAndAlone, Treatment::GiveUp);
        assert_eq!(treated, [usual, usual, usual, last, never, never]);
    }

    #[test]
    fn ours_a_suspect_that_is_still_held_is_pending_after_the_end() {
        let mut coordinator = coordinator(|_| {});
        let frontier = Arc::clone(&coordinator.frontier);
        let url = canonicalize(None, "http://a.example/").unwrap();
        let lease = leased(&*frontier, Admission::seed(url.clone()));
        coordinator.suspects.held.push(lease);
        assert_eq!(frontier.pending(&url.origin()), 0);
        coordinator.end.stop(Stop::Drain);
        assert_eq!(coordinator.advance(at(20), &mut Vec::new()), Next::Done);
        assert_eq!(frontier.pending(&url.origin()), 1);
    }

    #[test]
    fn ours_nothing_is_asked_for_beside_a_page_that_is_read_alone() {
        for (reads_alone, unsettled, has_room) in [
            (true, 0, true),
            (true, 1, false),
            (true, 2, false),
            (false, 1, true),
        ] {
            let mut coordinator = coordinator(|_| {});
            coordinator.backlog.note_time(at(20));
            coordinator.backlog.written(unsettled, 0);
            let url = coordinator.config.seeds[0].clone();
            coordinator.suspects.reading = reads_alone.then_some(LoneReading {
                url,
                is_begun: true,
            });
            assert_eq!(
                coordinator.has_room(at(20)),
                has_room,
                "{reads_alone} {unsettled}"
            );
        }
    }
}
