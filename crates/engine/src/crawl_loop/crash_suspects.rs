//! URLs that the process died of, as it seems: asked for last and alone, or given up.

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

/// The coordinator's list of them. Empty but after a death.
#[derive(Default)]
pub(crate) struct CrashSuspects {
    deaths: HashMap<CanonicalUrl, u32>,
    /// Leases that wait until nothing else is left. Not counted as unsettled.
    held: Vec<Lease>,
    /// The one whose turn it is.
    turn: Option<LoneReading>,
}

struct LoneReading {
    url: CanonicalUrl,
    /// True if it was handed out.
    begun: bool,
}

impl CrashSuspects {
    /// The treatment of a URL that was leased and may be asked for.
    fn treatment(&mut self, url: &CanonicalUrl) -> Treatment {
        let deaths = self.deaths.get(url).copied().unwrap_or_default();
        match &mut self.turn {
            Some(turn) if turn.url == *url => {
                turn.begun = true;
                Treatment::Usual
            }
            _ => treatment(deaths),
        }
    }
}

impl Coordinator {
    /// Takes up which URLs were being read when the process died, and how often.
    pub(crate) fn suspect(&mut self, deaths: HashMap<CanonicalUrl, u32>) {
        self.suspects.deaths = deaths;
    }

    /// The lease again where its URL is asked for like any other.
    pub(crate) fn unless_suspect(
        &mut self,
        now: Tick,
        lease: Lease,
        context: &FetchContext,
        out: &mut Vec<Effect>,
    ) -> Option<Lease> {
        if self.suspects.deaths.is_empty() {
            return Some(lease);
        }
        match self.suspects.treatment(&lease.url) {
            Treatment::Usual => return Some(lease),
            Treatment::LastAndAlone => {
                let what = "waits until nothing else is left: the program died while it was read";
                self.events.waits(&lease.url, what);
                self.suspects.held.push(lease);
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

    /// Returns whether a URL is being asked for that is to be alone.
    pub(crate) fn reads_alone(&self) -> bool {
        !self.backlog.is_empty() && self.suspects.turn.is_some()
    }

    /// Nothing is in flight: whose turn it was had it.
    pub(crate) fn end_turn(&mut self) {
        if self.suspects.turn.as_ref().is_some_and(|turn| turn.begun) {
            self.suspects.turn = None;
        }
    }

    /// Nothing else is left: puts the next of those that wait back into its queue. Whether
    /// there was one.
    pub(crate) fn next_turn(&mut self, now: Tick) -> bool {
        let Some(lease) = self.suspects.held.pop() else {
            return false;
        };
        let origin = lease.origin.clone();
        self.suspects.turn = Some(LoneReading {
            url: lease.url.clone(),
            begun: false,
        });
        self.frontier.release(lease);
        self.wake(now, &origin, self.frontier.pending(&origin));
        true
    }

    /// The run ends before their turn came: they are pending as others are.
    pub(crate) fn release_suspects(&mut self) {
        for lease in self.suspects.held.drain(..) {
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
    fn ours_what_waited_for_its_turn_is_pending_after_the_end() {
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
    fn ours_nothing_is_asked_for_beside_a_page_whose_turn_it_is() {
        for (has_turn, unsettled, has_room) in [
            (true, 0, true),
            (true, 1, false),
            (true, 2, false),
            (false, 1, true),
        ] {
            let mut coordinator = coordinator(|_| {});
            coordinator.backlog.note_time(at(20));
            coordinator.backlog.written(unsettled, 0);
            let url = coordinator.config.seeds[0].clone();
            coordinator.suspects.turn = has_turn.then_some(LoneReading { url, begun: true });
            assert_eq!(
                coordinator.has_room(at(20)),
                has_room,
                "{has_turn} {unsettled}"
            );
        }
    }
}
