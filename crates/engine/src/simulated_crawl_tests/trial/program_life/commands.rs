//! Commands of an operator to the program of a trial.

use std::time::Duration;

use tokio::sync::oneshot;

use super::{PersistentTrialState, ProgramLife, TimedEvent};
use crate::control::{CommandAnswer, CommandRefusal, CrawlCommand, PostedCommand};
use crate::messages::Event;

/// A command that was sent, and the channel for its answer.
pub(super) type UnansweredCommand = (
    CrawlCommand,
    oneshot::Receiver<Result<CommandAnswer, CommandRefusal>>,
);

impl ProgramLife {
    pub(super) fn post_due_commands(&mut self, world: &mut PersistentTrialState<'_>) {
        let events = self.events;
        let all = std::mem::take(&mut self.fate.commands);
        let (due, later) = all.into_iter().partition(|(after, _)| *after <= events);
        self.fate.commands = later;
        for (_, command) in due {
            self.post(world, command);
        }
    }

    /// Posts a command. A pause ends after a drawn time.
    pub(super) fn post(&mut self, world: &mut PersistentTrialState<'_>, command: CrawlCommand) {
        world.trace.note(self.now, || format!("{command:?}"));
        if command == CrawlCommand::Pause {
            let pause = Duration::from_millis(world.dice.below(100_000));
            self.after(pause, TimedEvent::Resumes);
        }
        world.checker.commanded(&command);
        let (answer, answered) = oneshot::channel();
        self.posted.push((command.clone(), answered));
        self.handle(world, Event::Command(PostedCommand { command, answer }));
        self.read_answers(world);
    }

    /// Reports to the checker which commands were carried out.
    pub(super) fn read_answers(&mut self, world: &mut PersistentTrialState<'_>) {
        let now = self.now;
        self.posted.retain_mut(|(command, answered)| {
            let answer = answered.try_recv();
            if let Ok(answer) = &answer {
                let refused = answer.as_ref().err();
                world
                    .trace
                    .note(now, || format!("{command:?} answered: {refused:?}"));
                if refused.is_none() {
                    world.checker.obeyed(now, command);
                }
            }
            matches!(answer, Err(oneshot::error::TryRecvError::Empty))
        });
    }
}
