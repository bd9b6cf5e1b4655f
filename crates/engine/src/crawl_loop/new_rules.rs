//! Politeness, exclusions and budgets that take the place of others while a crawl runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use crawl_archive::rows::{DelayRow, RereadSettings, RereadSite};
use crawl_fetcher::robots::RobotsTimes;
use crawl_frontier::FrontierError;
use crawl_scheduler::{Politeness, RobotsPace, RobotsState, Tick};
use crawl_weburl::Origin;

use super::Coordinator;
use crate::config::{Config, ScopeRules};
use crate::control::{AnswerSender, Refused, Rules};
use crate::messages::{Effect, NewRules};
use crate::time::millis;

impl Coordinator {
    /// Takes other rules over; answered once they stand on the disk.
    ///
    /// What waits is judged again by them as it is leased, and what is in flight ends as ever.
    pub(super) fn take_rules(
        &mut self,
        now: Tick,
        rules: Rules,
        answer: AnswerSender,
        out: &mut Vec<Effect>,
    ) {
        let hosts = rules.exclude_hosts.clone();
        if let Err(why) = (self.scope).set_exclusions(&rules.include, &rules.exclude, hosts) {
            // Who asked may be gone.
            let _ = answer.send(Err(Refused::BadPattern(why)));
            return;
        }
        let before = Arc::clone(&self.config);
        let after = Arc::make_mut(&mut self.config);
        after.scope.include = rules.include;
        after.scope.exclude = rules.exclude;
        after.scope.exclude_hosts = rules.exclude_hosts;
        after.robots_times = RobotsTimes {
            longest_asked: rules.politeness.max_retry_after,
            ..after.robots_times
        };
        after.budgets = rules.budgets;
        after.politeness = Politeness {
            // As many as there are descriptors for.
            concurrency: before.politeness.concurrency,
            look_ups: before.politeness.look_ups,
            ..rules.politeness
        };
        let (after, politeness) = (Arc::clone(&self.config), self.config.politeness.clone());
        self.scheduler.set_politeness(now, politeness);
        let has_other_budgets = before.budgets != after.budgets;
        let held = self.hold_to_rules(now);
        if let Err(error) = held.and_then(|()| match has_other_budgets {
            true => self.hold_to_budgets(now),
            false => Ok(()),
        }) {
            self.fail(error);
        }
        out.push(Effect::NoteRules(NewRules {
            row: DelayRow {
                at: now.as_millis(),
                reread: Some(reread(&before, &after)),
                ..DelayRow::default()
            },
            config_text: rules.config_text,
            answer,
        }));
    }

    /// Slows origins down that are met already, where hosts of others may be asked no more quickly
    /// than before; and has those asked for their robots.txt that may be asked again.
    fn hold_to_rules(&mut self, now: Tick) -> Result<(), FrontierError> {
        let paces = self
            .origins
            .take_politeness(now, &self.config, &*self.frontier)?;
        for (origin, pace) in paces {
            self.scheduler.set_robots_pace(now, &origin, &pace);
        }
        for origin in self.scope.take_left_out() {
            if self.scheduler.knows(&origin.host_key()) {
                self.scheduler
                    .set_robots(now, &origin, RobotsState::Unknown);
            }
        }
        Ok(())
    }

    /// Counts what was spent against the budgets that hold now, and has those origins asked again
    /// for which there is room.
    fn hold_to_budgets(&mut self, now: Tick) -> Result<(), FrontierError> {
        self.host_budgets.set_budgets(&self.config.budgets);
        if self.host_budgets.are_shared() {
            self.share_budgets()?;
        }
        for (origin, urls) in self.frontier.origins() {
            self.wake(now, &origin, urls);
        }
        Ok(())
    }

    /// Leaves an origin's robots.txt out, as its host is excluded: what waits there is settled
    /// without a request.
    pub(super) fn leave_out(&mut self, now: Tick, origin: &Origin) {
        let state = RobotsState::InForce {
            pace: RobotsPace::default(),
            until: Tick::from_micros(u64::MAX),
        };
        self.scheduler.set_robots(now, origin, state);
        self.scope.leave_out(origin);
    }
}

/// The rules that held before, and the exclusions that come and go.
fn reread(before: &Config, after: &Config) -> RereadSettings {
    let politeness = &before.politeness;
    // Those without a gap of their own too: the longest name of a host decides.
    let sites = politeness.sites.iter().map(|(name, terms)| {
        let site = RereadSite {
            delay: terms.delay.map(millis),
            per_host: terms.per_host,
        };
        (name.to_owned(), site)
    });
    let (had, has) = (exclusions(&before.scope), exclusions(&after.scope));
    RereadSettings {
        delay: millis(politeness.delay),
        per_host: politeness.per_host,
        sites: sites.collect(),
        added: has.difference(&had).cloned().collect(),
        removed: had.difference(&has).cloned().collect(),
    }
}

/// Exclusions as rows name them.
fn exclusions(scope: &ScopeRules) -> BTreeSet<String> {
    let hosts = scope.exclude_hosts.iter();
    let hosts = hosts.map(|(name, ())| format!("exclude-host {name}"));
    let exclude = scope.exclude.iter().map(|re| format!("exclude {re}"));
    let include = scope.include.iter().map(|re| format!("include {re}"));
    hosts.chain(exclude).chain(include).collect()
}
