//! The crawl loop as a replay leads it: the records say whose turn it is, and the loop decides what
//! comes of it.

use crawl_archive::rows::HostTurn;
use crawl_scheduler::{Poll, Purpose, Tick};
use crawl_weburl::Origin;

use super::Coordinator;
use crate::messages::Effect;

/// The outcome of an attempt at a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnAttempt {
    /// The host had a permit.
    Used,
    /// It had one for another purpose, which was given back.
    OtherPurpose,
    /// It may not be asked before this moment.
    NotBefore(Tick),
    /// It has nothing to ask for.
    Nothing,
}

impl Coordinator {
    /// Lets the scheduler choose whose turn it is from now on.
    pub(crate) fn lead_no_more(&mut self) {
        self.turns.repeat_no_more();
    }

    /// Gives a host the turn that the records say.
    pub(crate) fn take_turn(
        &mut self,
        now: Tick,
        turn: &HostTurn,
        origin: &Origin,
        out: &mut Vec<Effect>,
    ) -> TurnAttempt {
        self.let_hosts_go(now);
        let permit = match self.scheduler.poll_host(now, &origin.host_key()) {
            Poll::Issue(permit) => permit,
            Poll::SleepUntil(tick) => return TurnAttempt::NotBefore(tick),
            Poll::Idle => return TurnAttempt::Nothing,
        };
        let is_it = match permit.purpose() {
            Purpose::Page { origin: of } => turn.purpose == "page" && of == origin,
            Purpose::Robots { origin: of } => turn.purpose == "robots" && of == origin,
            Purpose::Hop { of } => turn.purpose == "hop" && of == origin,
        };
        if !is_it {
            self.scheduler.give_back(now, permit);
            return TurnAttempt::OtherPurpose;
        }
        self.turns.repeat(turn);
        self.issue(now, permit, out);
        TurnAttempt::Used
    }
}
