//! The runs of a crawl whose order was noted: each is taken up as it was then, and left.

use std::sync::Arc;
use std::time::Duration;

use crawl_archive::rows::RunBegan;
use crawl_scheduler::Tick;
use crawl_weburl::canonicalize;

use super::answers::{Answers, ReplayDifference};
use super::following::{Following, UnderWay};
use super::recorded::tick;
use super::script::Script;
use super::{Replay, mark};
use crate::config::Config;
use crate::control::Stop;
use crate::error::EngineError;
use crate::messages::{Event, WriterMessage};
use crate::revisit::round;
use crate::state::directory;

impl Replay {
    /// Begins with the run of a crawl whose order was noted, or goes on with it.
    pub(super) fn take_up(
        config: &Config,
        answers: Answers,
        script: Script,
        run: RunBegan,
    ) -> Result<Replay, EngineError> {
        let is_first =
            run.settled == 0 && run.requests == 0 && !directory::examine(&config.output)?;
        let config = Config {
            // The records say when.
            commit_within: Duration::MAX,
            min_free: 0,
            ..config.clone()
        };
        let directory = match is_first {
            true => directory::open(&config, 1)?,
            false => directory::open_replay(&config)?,
        };
        let frontier = &*directory.frontier;
        if is_first {
            mark(frontier, answers.crawl.dir())?;
        }
        let last = round::stored(frontier)?;
        let next = last.filter(|last| last.number < run.round);
        if let Some(last) = &next {
            round::note_over(frontier, last)?;
        }
        let config = Arc::new(Config {
            recrawl: next.is_some(),
            ..config
        });
        let round_began = Tick::from_micros(u64::from(run.round_began) * 1_000_000);
        let mut replay = Replay::new(&config, answers, directory, tick(run.at), round_began)?;
        replay.following = Some(Following::new(script));
        // There is no archive that a later round could read a text back from.
        replay.reader = replay.reader.keeping_known_links().keeping_texts();
        Ok(replay)
    }

    /// Begins the next run with what was committed. What was under way when the last one was killed is
    /// lost, as it was then.
    pub(super) fn next_run(
        mut self,
        config: &Arc<Config>,
        next: RunBegan,
    ) -> Result<Replay, EngineError> {
        let following = self.following.take();
        let Some((script, ..)) = following.map(Following::give_up) else {
            let what = "the replay: no run is followed".to_owned();
            return Err(EngineError::Thread { what });
        };
        if let Some(ended) = &next.before {
            let frontier = &*self.writer.frontier;
            if ended != "interrupted" {
                round::note_over(frontier, &self.writer.visits.round)?;
            }
            directory::note_end(frontier)?;
        }
        Replay::take_up(config, self.into_answers(), script, next)
    }

    /// Closes the directory.
    fn into_answers(self) -> Answers {
        self.answers
    }

    /// Leaves the noted order: it is over, or the replay comes by something else, at this request
    /// where it is known.
    pub(super) fn leave(&mut self, lost: Option<Option<String>>) {
        let difference = lost.map(|url| {
            let url = url.and_then(|url| canonicalize(None, &url).ok());
            let unsent = self.answers.unsent();
            url.map_or(ReplayDifference::Fewer(unsent), ReplayDifference::Other)
        });
        self.answers.leave(difference);
        if let Some(following) = self.following.take() {
            let (_, under_way, held) = following.give_up();
            self.go_free(under_way, held);
        }
    }

    /// Goes on by the replay's own clock with what is under way.
    fn go_free(&mut self, under_way: Vec<UnderWay>, held: Vec<WriterMessage>) {
        self.coordinator.lead_no_more();
        self.items.extend(held);
        for request in under_way {
            self.fly(request);
        }
    }

    /// Goes on to the end of the run, which ended for this reason.
    pub(super) fn go_on(&mut self, ended: Option<&str>) -> Result<(), EngineError> {
        if ended == Some("interrupted") {
            let stop = Event::Stop(Stop::Drain);
            self.coordinator.handle(self.now, stop, &mut self.effects);
        }
        if ended == Some("budget max-time")
            && let Some(deadline) = self.coordinator.deadline()
        {
            self.now = self.now.max(deadline);
        }
        self.turn()
    }
}
