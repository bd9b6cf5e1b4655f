//! Commands of a person who watches the crawl.

use std::collections::VecDeque;
use std::time::Duration;

use crawl_archive::rows::{CommandTaken, DelayRow};
use crawl_frontier::KnownState;
use crawl_scheduler::Tick;
use crawl_scope::ScopeVerdict;
use crawl_weburl::{AddressClass, CanonicalUrl, HostKey, canonicalize, class_of_host};

use super::Coordinator;
use super::robots_state::may_be_anothers;
use crate::admissions::seed_admission;
use crate::config::MIN_OTHERS_DELAY;
use crate::control::{
    AnswerSender, Command, CommandAnswer, LatestPage, LiveState, MAX_PARKED, PostedCommand, Refused,
};
use crate::messages::{Effect, Order, Ordered, WriterMessage};
use crate::time::millis;

/// Hosts that may have a delay of their own.
pub(super) const MAX_DELAYS: usize = 1_000;

/// Hosts of a state, at most.
const MAX_HOSTS_SHOWN: usize = 50;

/// Pages of a state, at most.
const MAX_PAGES_SHOWN: usize = 10;

/// The pauses of a run and its latest pages, for a person who steers it.
///
/// Receives [`pause`](Self::pause) and [`resume`](Self::resume), where repetitions change nothing, and
/// each page that is [`settled`](Self::settled). Emits nothing.
#[derive(Debug, Default)]
pub(crate) struct Steering {
    /// Since when nothing is sent.
    paused_since: Option<Tick>,
    /// The time for which that was so before.
    paused: Duration,
    latest: VecDeque<LatestPage>,
}

impl Steering {
    /// Sends nothing from now on.
    fn pause(&mut self, now: Tick) {
        self.paused_since.get_or_insert(now);
    }

    /// Sends requests again from now on.
    fn resume(&mut self, now: Tick) {
        let since = self.paused_since.take();
        self.paused += since.map_or(Duration::ZERO, |since| now.since(since));
    }

    /// Returns the latest pages, the last one first.
    fn latest(&self) -> Vec<LatestPage> {
        self.latest.iter().cloned().collect()
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused_since.is_some()
    }

    /// The time for which the run was paused before now.
    pub(crate) fn paused(&self) -> Duration {
        self.paused
    }

    /// A page was settled.
    pub(crate) fn settled(&mut self, url: &CanonicalUrl, status: Option<u16>, at: Tick) {
        self.latest.truncate(MAX_PAGES_SHOWN - 1);
        let url = url.clone();
        self.latest.push_front(LatestPage { url, status, at });
    }
}

impl Coordinator {
    /// Takes up which hosts are parked.
    pub(crate) fn take_up_parked<'a>(
        &mut self,
        now: Tick,
        hosts: impl IntoIterator<Item = &'a HostKey>,
    ) {
        for host in hosts {
            self.scheduler.park(now, host);
        }
    }

    /// Carries a command out. What is to be durable is answered when it is.
    pub(crate) fn told(&mut self, now: Tick, ask: PostedCommand, out: &mut Vec<Effect>) {
        let PostedCommand { command, answer } = ask;
        let entry = self.log_entry(now, &command);
        let done = match command {
            Command::Pause => {
                self.steering.pause(now);
                Ok(CommandAnswer::Done)
            }
            Command::Resume => {
                self.steering.resume(now);
                Ok(CommandAnswer::Done)
            }
            Command::Delay { host, delay } => {
                let done = self.delay(now, host, delay, out);
                if done.is_ok() {
                    out.extend(entry);
                }
                done
            }
            Command::State => Ok(CommandAnswer::State(Box::new(self.live(now)))),
            Command::Add(url) => match self.seed(&url) {
                Ok(order) => {
                    out.extend(entry);
                    return self.order(order, answer, out);
                }
                Err(refused) => Err(refused),
            },
            Command::Park(host) => match self.park(now, &host) {
                Ok(()) => {
                    out.extend(entry);
                    return self.order_parked(answer, out);
                }
                Err(refused) => Err(refused),
            },
            Command::Unpark(host) if self.scheduler.unpark(now, &host) => {
                out.extend(entry);
                return self.order_parked(answer, out);
            }
            Command::Unpark(host) => Err(Refused::NotParked(host)),
            Command::Rules(rules) => return self.take_rules(now, *rules, answer, out),
        };
        // Who asked may be gone.
        let _ = answer.send(done);
    }

    /// Returns the log entry that lets a replay repeat a command. Pauses show in request times, and rules
    /// in the settings, so neither has an entry.
    fn log_entry(&self, now: Tick, command: &Command) -> Option<Effect> {
        let (command, about, delay) = match command {
            Command::Add(url) => ("add", Some(url.clone()), None),
            Command::Delay { host, delay } => {
                let host = host.as_ref().map(ToString::to_string);
                ("delay", host, Some(millis(*delay)))
            }
            Command::Park(host) => ("park", Some(host.to_string()), None),
            Command::Unpark(host) => ("unpark", Some(host.to_string()), None),
            Command::Pause | Command::Resume | Command::Rules(_) | Command::State => return None,
        };
        Some(Effect::NoteCommand(CommandTaken {
            at: now.as_millis(),
            command: command.to_owned(),
            about,
            delay,
            ended: self.requests.ended_in_run(),
            settled: self.totals.of_all_runs().messages,
        }))
    }

    /// The state of the crawl, for a person who watches.
    fn live(&self, now: Tick) -> LiveState {
        LiveState {
            progress: self.progress(now),
            latest: self.steering.latest(),
            hosts: self.scheduler.busiest(now, MAX_HOSTS_SHOWN),
            parked: self.scheduler.parked().cloned().collect(),
            at: now,
        }
    }

    fn delay(
        &mut self,
        now: Tick,
        host: Option<HostKey>,
        delay: Duration,
        out: &mut Vec<Effect>,
    ) -> Result<CommandAnswer, Refused> {
        if let Some(host) = &host {
            self.is_known(host)?;
            if self.scheduler.own_delays() >= MAX_DELAYS {
                return Err(Refused::TooManyDelays(MAX_DELAYS));
            }
        }
        if delay < MIN_OTHERS_DELAY && !self.config.own_site {
            self.may_be_quick(host.as_ref(), delay)?;
            self.origins.be_quick();
        }
        self.scheduler.set_delay(now, host.as_ref(), delay);
        out.push(Effect::NoteDelay(DelayRow {
            at: now.as_millis(),
            host: host.map(|host| host.to_string()),
            delay: Some(millis(delay)),
            ..DelayRow::default()
        }));
        Ok(CommandAnswer::Done)
    }

    /// Returns whether a host, or every host, may be asked more quickly than a host of others.
    fn may_be_quick(&self, host: Option<&HostKey>, delay: Duration) -> Result<(), Refused> {
        let anothers = match host {
            Some(host) => Some(host).filter(|host| may_be_anothers(host, None)),
            None => {
                let hosts = self.scheduler.known_hosts();
                hosts.filter(|host| may_be_anothers(host, None)).min()
            }
        };
        match anothers.cloned() {
            None => Ok(()),
            Some(host) => Err(Refused::TooShort {
                delay,
                least: MIN_OTHERS_DELAY,
                host,
            }),
        }
    }

    fn seed(&mut self, url: &str) -> Result<Order, Refused> {
        let url = canonicalize(None, url).map_err(|why| Refused::Unusable {
            url: url.to_owned(),
            why: why.to_string(),
        })?;
        self.may_be_asked(&url)?;
        let mut scope = self.scope.current().as_ref().clone();
        scope.add_seed(&url);
        if let ScopeVerdict::Out { rule, .. } = scope.judge(&url, 0) {
            return Err(Refused::OutOfScope { url, rule });
        }
        let known = self.frontier.known(&url).ok().flatten();
        let refused = known.and_then(|known| match known.state {
            KnownState::Fetched { .. } | KnownState::Failed { .. } => {
                Some(Refused::Visited { url: url.clone() })
            }
            KnownState::Excluded(exclusion) => Some(Refused::Barred {
                url: url.clone(),
                why: exclusion.to_string(),
            }),
            _ => None,
        });
        let seed = Box::new(seed_admission(&url, &scope));
        if refused.is_none() {
            self.scope.replace(scope);
        }
        Ok(Order::Add { seed, refused })
    }

    /// Returns whether the fetcher would connect to the address that a URL names, if it names one.
    fn may_be_asked(&self, url: &CanonicalUrl) -> Result<(), Refused> {
        let host = url.host_key();
        let fetch = &self.config.fetch;
        match class_of_host(host.host()) {
            Some(AddressClass::Unusable) => Err(Refused::Unusable {
                url: url.to_string(),
                why: "it names an address where no server can be".to_owned(),
            }),
            _ if may_be_anothers(&host, None) || fetch.allow_private || fetch.is_typed(url) => {
                Ok(())
            }
            _ => Err(Refused::Private { url: url.clone() }),
        }
    }

    fn park(&mut self, now: Tick, host: &HostKey) -> Result<(), Refused> {
        self.is_known(host)?;
        if !self.scheduler.is_parked(host) && self.scheduler.parked().len() >= MAX_PARKED {
            return Err(Refused::TooManyParked(MAX_PARKED));
        }
        self.scheduler.park(now, host);
        self.free_if_idle(host);
        Ok(())
    }

    /// Returns whether the crawl met a host, or is to meet it.
    fn is_known(&self, host: &HostKey) -> Result<(), Refused> {
        let is_known = self.scheduler.knows(host)
            || self.scheduler.is_parked(host)
            || self
                .config
                .seeds
                .iter()
                .any(|seed| seed.host_key() == *host)
            || matches!(self.frontier.host(host), Ok(Some(_)));
        match is_known {
            true => Ok(()),
            false => Err(Refused::UnknownHost(host.clone())),
        }
    }

    fn order_parked(&mut self, answer: AnswerSender, out: &mut Vec<Effect>) {
        let order = Order::Parked {
            number: self.hosts.next_sequence(),
            hosts: self.scheduler.parked().cloned().collect(),
        };
        self.order(order, answer, out);
    }

    fn order(&mut self, order: Order, answer: AnswerSender, out: &mut Vec<Effect>) {
        self.write(WriterMessage::Order(Ordered { order, answer }), out);
    }
}

#[cfg(test)]
mod tests {
    use crawl_scheduler::Tick;
    use crawl_weburl::canonicalize;

    use super::{MAX_PAGES_SHOWN, Steering};

    #[test]
    fn ours_pauses_add_up_and_repeated_commands_count_for_nothing() {
        let at = |second: u64| Tick::from_micros(second * 1_000_000);
        let mut steering = Steering::default();
        steering.resume(at(1));
        assert_eq!(steering.paused().as_secs(), 0);
        steering.pause(at(10));
        steering.pause(at(15));
        assert!(steering.is_paused());
        steering.resume(at(20));
        steering.resume(at(25));
        assert!(!steering.is_paused());
        steering.pause(at(30));
        steering.resume(at(31));
        assert_eq!(steering.paused().as_secs(), 11);
    }

    #[test]
    fn ours_the_latest_pages_are_kept_the_last_first() {
        let mut steering = Steering::default();
        for page in 0..12_u16 {
            let url = canonicalize(None, &format!("http://a.example/{page}")).unwrap();
            steering.settled(&url, Some(200 + page), Tick::from_micros(page.into()));
        }
        let latest = steering.latest();
        let latest = latest.iter();
        let shown: Vec<_> = latest
            .map(|page| (page.status, page.at.as_micros()))
            .collect();
        let expected: Vec<_> = (2..12).rev().map(|n| (Some(200 + n), n.into())).collect();
        assert_eq!(shown, expected);
        assert_eq!(shown.len(), MAX_PAGES_SHOWN);
    }
}
