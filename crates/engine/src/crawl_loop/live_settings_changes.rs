//! New politeness, budgets, and patterns that include or exclude URLs, for a running crawl.

use std::collections::BTreeSet;
use std::sync::Arc;

use crawl_archive::rows::{DelayRow, ExclusionsChangedByReload};
use crawl_fetcher::robots::RobotsTimeLimits;
use crawl_frontier::FrontierError;
use crawl_scheduler::{Politeness, RobotsState, Tick};

use super::Coordinator;
use super::commands::reply;
use crate::config::ScopeRules;
use crate::control::{AdjustableRules, AnswerSender, CommandRefusal};
use crate::messages::shared_frontier_messages::SharedFrontierRequest;
use crate::messages::{Effect, PostedRules};

impl Coordinator {
    /// Replaces the rules, and answers the command once the new rules are on disk.
    ///
    /// Pending URLs are judged by the new rules when they are leased. Requests in flight end as
    /// usual.
    pub(super) fn take_rules(
        &mut self,
        now: Tick,
        rules: AdjustableRules,
        answer: AnswerSender,
        out: &mut Vec<Effect>,
    ) {
        let hosts = rules.exclude_hosts.clone();
        if let Err(why) = (self.scope).set_exclusions(&rules.include, &rules.exclude, hosts) {
            return reply(answer, Err(CommandRefusal::BadPattern(why)));
        }
        let before = Arc::clone(&self.config);
        let after = Arc::make_mut(&mut self.config);
        after.scope.include = rules.include;
        after.scope.exclude = rules.exclude;
        after.scope.exclude_hosts = rules.exclude_hosts;
        after.robots_times = RobotsTimeLimits {
            longest_asked: rules.politeness.max_retry_after,
            ..after.robots_times
        };
        after.budgets = rules.budgets;
        after.politeness = Politeness {
            // The concurrency depends on the number of file descriptors at the start, so it can't
            // change during a run.
            concurrency: before.politeness.concurrency,
            look_ups: before.politeness.look_ups,
            ..rules.politeness
        };
        let after = Arc::clone(&self.config);
        self.hosts.set_politeness(now, &after);
        let has_other_budgets = before.budgets != after.budgets;
        let held = self.apply_rules(now);
        if let Err(error) = held.and_then(|()| match has_other_budgets {
            true => self.apply_budgets(now),
            false => Ok(()),
        }) {
            self.fail(error);
        }
        if let Some(settings) = rules.shared_settings {
            out.push(Effect::Share(SharedFrontierRequest::ReplaceSettings(
                settings,
            )));
        }
        out.push(Effect::NoteRules(PostedRules {
            row: DelayRow {
                at: now.as_millis(),
                settings: Some(rules.audited),
                reread: Some(reread(&before.scope, &after.scope)),
                ..DelayRow::default()
            },
            config_text: rules.config_text,
            answer,
        }));
    }

    /// Applies the new rules. If the new politeness is too fast for hosts that the operator doesn't
    /// own, slows down fetching from those hosts. Schedules requests for the robots.txt of hosts
    /// that are no longer excluded.
    fn apply_rules(&mut self, now: Tick) -> Result<(), FrontierError> {
        let paces = self.robots.take_politeness(now, &self.config)?;
        for (origin, pace) in paces {
            self.hosts.set_robots_pace(now, &origin, &pace);
        }
        for origin in self.scope.take_left_out() {
            if self.hosts.knows(&origin.host_key()) {
                self.hosts.set_robots(now, &origin, RobotsState::Unknown);
            }
        }
        Ok(())
    }

    /// Applies the new budgets. Wakes all origins with pending URLs, since their hosts may have
    /// budget left now.
    fn apply_budgets(&mut self, now: Tick) -> Result<(), FrontierError> {
        self.end.set_budgets(&self.config.budgets);
        self.hosts.set_budgets()?;
        for (origin, urls) in self.frontier.origins() {
            self.wake(now, &origin, urls);
        }
        Ok(())
    }
}

/// Returns the added and removed exclusions.
fn reread(before: &ScopeRules, after: &ScopeRules) -> ExclusionsChangedByReload {
    let (had, has) = (exclusions(before), exclusions(after));
    ExclusionsChangedByReload {
        added: has.difference(&had).cloned().collect(),
        removed: had.difference(&has).cloned().collect(),
    }
}

/// Returns the exclusions in the form used in rows.
fn exclusions(scope: &ScopeRules) -> BTreeSet<String> {
    let hosts = scope.exclude_hosts.iter();
    let hosts = hosts.map(|(name, ())| format!("exclude-host {name}"));
    let exclude = scope.exclude.iter().map(|re| format!("exclude {re}"));
    let include = scope.include.iter().map(|re| format!("include {re}"));
    hosts.chain(exclude).chain(include).collect()
}
