//! Replays the runs of a crawl with a logged order. Resumes and ends each run as the crawl did.

use std::sync::Arc;
use std::time::Duration;

use crawl_archive::rows::RunStartEvent;
use crawl_scheduler::Tick;
use crawl_weburl::{HostKey, canonicalize};

use super::archived_answers::{ArchivedAnswers, ReplayDifference};
use super::order_follower::{InFlightRequest, OrderFollower};
use super::recorded_crawl::tick;
use super::recorded_order_reader::RecordedOrderReader;
use super::rerender::Rerenderer;
use super::{Replay, mark};
use crate::config::Config;
use crate::control::StopUrgency;
use crate::error::EngineError;
use crate::messages::{Event, WriterMessage};
use crate::revisit::round_of_run;
use crate::state::crawl_directory;
use crate::state::expire_robots_rules::expire;
use crate::state::stored_parked_hosts::store_parked;

impl Replay {
    /// Begins the replay if `run` is the crawl's first run. Otherwise resumes the replay at `run`.
    pub(super) fn take_up(
        config: &Config,
        (answers, rerender): (ArchivedAnswers, Rerenderer),
        script: RecordedOrderReader,
        run: RunStartEvent,
    ) -> Result<Replay, EngineError> {
        let is_first =
            run.settled == 0 && run.requests == 0 && !crawl_directory::examine(&config.output)?;
        let config = Config {
            // The log determines when to commit, so never commit because of the time that has
            // passed.
            commit_within: Duration::MAX,
            min_free: 0,
            ..config.clone()
        };
        let directory = match is_first {
            true => crawl_directory::open(&config, 1)?,
            false => crawl_directory::open_replay(&config)?,
        };
        let frontier = &*directory.frontier;
        if is_first {
            mark(frontier, answers.crawl.dir())?;
        }
        expire(frontier, &run.rechecked, tick(run.at))?;
        if let Some(hosts) = &run.parked {
            store_parked(
                frontier,
                hosts.iter().filter_map(|host| HostKey::parse(host).ok()),
            )?;
        }
        let last = round_of_run::stored(frontier)?;
        let next = last.filter(|last| last.number < run.round);
        if let Some(last) = &next {
            round_of_run::note_over(frontier, last)?;
        }
        let config = Arc::new(Config {
            recrawl: next.is_some(),
            ..config
        });
        let round_began = Tick::from_micros(u64::from(run.round_began) * 1_000_000);
        let mut replay = Replay::new(
            &config,
            (answers, rerender),
            directory,
            tick(run.at),
            round_began,
        )?;
        replay.following = Some(OrderFollower::new(script));
        // Store the digests of texts now. A replay writes no archive, so a later round can't
        // compute them.
        replay.reader = replay.reader.keeping_known_links().keeping_texts();
        Ok(replay)
    }

    /// Begins the next run of the recorded crawl from the committed state. If the recorded crawl
    /// was killed, this drops the requests in flight, as the kill did.
    pub(super) fn next_run(
        mut self,
        config: &Arc<Config>,
        next: RunStartEvent,
    ) -> Result<Replay, EngineError> {
        let following = self.following.take();
        let Some((script, ..)) = following.map(OrderFollower::give_up) else {
            let reason = "the replay follows no run".to_owned();
            return Err(EngineError::Thread { what: reason });
        };
        if let Some(ended) = &next.before {
            let frontier = &*self.writer.frontier;
            if ended != "interrupted" {
                round_of_run::note_over(frontier, &self.writer.visits.round)?;
            }
            crawl_directory::note_end(frontier)?;
        }
        Replay::take_up(config, self.into_rest(), script, next)
    }

    /// Returns the parts that the next run needs, and drops the rest of the replay, which closes
    /// its directory.
    fn into_rest(self) -> (ArchivedAnswers, Rerenderer) {
        (self.answers, self.rerender)
    }

    /// Stops following `state/order.jsonl`. `lost` is `None` if all its rows were followed.
    /// Otherwise it contains the first request that differs, if that is known.
    pub(super) fn stop_following(&mut self, lost: Option<Option<String>>) {
        let difference = lost.map(|url| {
            let url = url.and_then(|url| canonicalize(None, &url).ok());
            let unsent = self.answers.unsent();
            url.map_or(ReplayDifference::Fewer(unsent), ReplayDifference::Missing)
        });
        self.answers.stop_following(difference);
        if let Some(following) = self.following.take() {
            let (_, under_way, held) = following.give_up();
            self.go_free(under_way, held);
        }
    }

    /// Continues without the logged order. From here on, the replay's own clock decides when the
    /// requests in flight end.
    fn go_free(&mut self, under_way: Vec<InFlightRequest>, held: Vec<WriterMessage>) {
        self.coordinator.stop_repeating_turns();
        self.items.extend(held);
        for request in under_way {
            self.fly(request);
        }
    }

    /// Continues to the end of the run without following `state/order.jsonl`. `ended` is the reason
    /// why the recorded run ended.
    pub(super) fn go_on(&mut self, ended: Option<&str>) -> Result<(), EngineError> {
        if ended.is_some() {
            self.give_up_renders();
        }
        if ended == Some("interrupted") {
            let stop = Event::Stop(StopUrgency::Drain);
            self.coordinator.handle(self.now, stop, &mut self.effects);
        }
        if ended == Some("budget max-time")
            && let Some(deadline) = self.coordinator.deadline()
        {
            self.now = self.now.max(deadline);
        }
        self.run_to_end()
    }
}
