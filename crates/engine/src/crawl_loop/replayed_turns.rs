//! Turns (uses of a host's permit) that a replay repeats. The log names the host of each turn; what
//! the turn does is decided again.

use crawl_archive::rows::HostTurn;
use crawl_scheduler::{PollOutcome, RequestPurpose, Tick};
use crawl_weburl::{CanonicalUrl, Origin};

use super::Coordinator;
use crate::messages::Effect;

/// The outcome of an attempt to repeat a recorded turn (the use of a host's permit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplayedTurnResult {
    /// The host had a permit, and the turn used it.
    Used,
    /// The host had a permit, but not for the purpose that the log names, so the permit was given
    /// back.
    OtherPurpose,
    /// The host may not get a request before this tick.
    NotBefore(Tick),
    /// The host has nothing to fetch.
    Nothing,
}

impl Coordinator {
    /// Ends the repetition of recorded turns (uses of permits): from now on, the scheduler chooses
    /// the hosts.
    pub(crate) fn stop_repeating_turns(&mut self) {
        self.turns.stop_repeating();
    }

    /// Repeats a recorded turn (use of a permit), with the host that the record names.
    pub(crate) fn take_turn(
        &mut self,
        now: Tick,
        turn: &HostTurn,
        origin: &Origin,
        out: &mut Vec<Effect>,
    ) -> ReplayedTurnResult {
        self.evict_idle(now);
        // The log names the origin whose robots.txt is redirected, but the permit comes from the
        // host of the redirect's target.
        let target = (self.robots.pending_hop(origin)).filter(|_| turn.purpose == "hop");
        let host = target.map_or_else(|| origin.host_key(), CanonicalUrl::host_key);
        let permit = match self.hosts.poll_host(now, &host) {
            PollOutcome::Issue(permit) => permit,
            PollOutcome::SleepUntil(tick) => return ReplayedTurnResult::NotBefore(tick),
            PollOutcome::Idle => return ReplayedTurnResult::Nothing,
        };
        let is_recorded = match permit.purpose() {
            RequestPurpose::Page { origin: of } => turn.purpose == "page" && of == origin,
            RequestPurpose::Robots { origin: of } => turn.purpose == "robots" && of == origin,
            RequestPurpose::Hop { of } => turn.purpose == "hop" && of == origin,
        };
        if !is_recorded {
            self.hosts.give_back(now, permit);
            return ReplayedTurnResult::OtherPurpose;
        }
        self.turns.repeat(turn);
        self.issue(now, permit, out);
        ReplayedTurnResult::Used
    }
}
