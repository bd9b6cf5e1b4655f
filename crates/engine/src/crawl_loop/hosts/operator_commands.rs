//! Commands of an operator about hosts.

use std::sync::Arc;
use std::time::Duration;

use crawl_archive::rows::DelayRow;
use crawl_frontier::FrontierError;
use crawl_scheduler::Tick;
use crawl_weburl::HostKey;

use super::super::robots::may_be_anothers;
use super::Hosts;
use crate::config::{Config, MIN_OTHERS_DELAY};
use crate::control::{CommandRefusal, MAX_PARKED};
use crate::login::LoginFailure;
use crate::messages::DurableCommand;
use crate::summary::{LOGIN_FAILED, LOGIN_REFUSED};
use crate::time_conversions::millis;

/// Maximum number of hosts whose delay was set by a command.
pub(crate) const MAX_DELAYS: usize = 1_000;

impl Hosts {
    /// Parks hosts that were parked when the last run ended.
    pub(crate) fn park_again<'a>(
        &mut self,
        now: Tick,
        hosts: impl IntoIterator<Item = &'a HostKey>,
    ) {
        for host in hosts {
            self.parked.insert(host.clone());
            self.scheduler.park(now, host);
        }
    }

    /// Parks a host: it gets no requests until it is unparked. Returns the new list of parked
    /// hosts, for the writer to store.
    ///
    /// # Errors
    /// The host is unknown, or too many hosts are parked.
    pub(crate) fn park(
        &mut self,
        now: Tick,
        host: &HostKey,
    ) -> Result<DurableCommand, CommandRefusal> {
        self.require_known(host)?;
        if !self.parked.contains(host) && self.parked.len() >= MAX_PARKED {
            return Err(CommandRefusal::TooManyParked(MAX_PARKED));
        }
        self.parked.insert(host.clone());
        self.scheduler.park(now, host);
        self.free_if_idle(now, host);
        Ok(self.parked_order())
    }

    /// Parks a host for the rest of the run, because the login to its site failed. The next run
    /// tries again.
    pub(crate) fn stop_for_login(&mut self, now: Tick, host: &HostKey, failure: &LoginFailure) {
        let kind = match failure.is_refused {
            true => LOGIN_REFUSED,
            false => LOGIN_FAILED,
        };
        let why = format!("{kind}: {}", failure.why);
        self.without_login.insert(host.clone(), why);
        self.scheduler.park(now, host);
    }

    /// Unparks the hosts that [`stop_for_login`](Self::stop_for_login) parked and for which `is_of`
    /// returns true, because the login to their site begins again. Hosts that an operator parked
    /// too stay parked.
    pub(crate) fn unpark_after_login(&mut self, now: Tick, is_of: impl Fn(&HostKey) -> bool) {
        let (scheduler, parked) = (&mut self.scheduler, &self.parked);
        self.without_login.retain(|host, _| {
            let is_stopped = !is_of(host);
            if !is_stopped && !parked.contains(host) {
                scheduler.unpark(now, host);
            }
            is_stopped
        });
    }

    /// Unparks a host that an operator parked. It still gets no requests if the login to its site
    /// failed. Returns the new list of parked hosts, for the writer to store.
    ///
    /// # Errors
    /// No operator parked the host.
    pub(crate) fn unpark(
        &mut self,
        now: Tick,
        host: &HostKey,
    ) -> Result<DurableCommand, CommandRefusal> {
        if !self.parked.remove(host) {
            return Err(CommandRefusal::NotParked(host.clone()));
        }
        if !self.without_login.contains_key(host) {
            self.scheduler.unpark(now, host);
        }
        Ok(self.parked_order())
    }

    /// Returns the hosts that an operator parked, sorted by name.
    pub(crate) fn parked(&self) -> impl Iterator<Item = &HostKey> {
        self.parked.iter()
    }

    /// Returns whether a host gets no requests, because the operator parked it or its login failed.
    pub(crate) fn is_parked(&self, host: &HostKey) -> bool {
        self.scheduler.is_parked(host)
    }

    /// Returns the list of parked hosts, for the writer to store.
    pub(crate) fn parked_order(&mut self) -> DurableCommand {
        DurableCommand::Parked {
            number: self.residents.next_sequence(),
            hosts: self.parked().cloned().collect(),
        }
    }

    /// Sets the gap between two requests to a host, or to every host. Returns the row to log.
    ///
    /// # Errors
    /// The host is unknown, too many hosts have a delay that a command set, or the delay is too
    /// short for hosts that are not the operator's.
    pub(crate) fn set_delay(
        &mut self,
        now: Tick,
        host: Option<&HostKey>,
        delay: Duration,
    ) -> Result<DelayRow, CommandRefusal> {
        if let Some(host) = host {
            self.require_known(host)?;
            if !self.scheduler.has_own_delay(host) && self.scheduler.own_delays() >= MAX_DELAYS {
                return Err(CommandRefusal::TooManyDelays(MAX_DELAYS));
            }
        }
        if self.is_quick(delay) {
            self.require_own(host, delay)?;
        }
        self.scheduler.set_delay(now, host, delay);
        Ok(DelayRow {
            at: now.as_millis(),
            host: host.map(ToString::to_string),
            delay: Some(millis(delay)),
            ..DelayRow::default()
        })
    }

    /// Returns whether a delay is too short for hosts that the operator doesn't own.
    pub(crate) fn is_quick(&self, delay: Duration) -> bool {
        delay < MIN_OTHERS_DELAY && !self.config.own_site
    }

    /// Refuses a short delay for a host that the operator may not own. `None` stands for all known
    /// hosts.
    fn require_own(&self, host: Option<&HostKey>, delay: Duration) -> Result<(), CommandRefusal> {
        let anothers = match host {
            Some(host) => Some(host).filter(|host| may_be_anothers(host, None)),
            None => {
                let hosts = self.scheduler.known_hosts();
                hosts.filter(|host| may_be_anothers(host, None)).min()
            }
        };
        match anothers.cloned() {
            None => Ok(()),
            Some(host) => Err(CommandRefusal::TooShort {
                delay,
                least: MIN_OTHERS_DELAY,
                host,
            }),
        }
    }

    /// Refuses a host that the crawl doesn't know: the crawl has no state of the host, and no seed
    /// is on it.
    fn require_known(&self, host: &HostKey) -> Result<(), CommandRefusal> {
        let mut seeds = self.config.seeds.iter();
        let is_known = self.scheduler.knows(host)
            || self.scheduler.is_parked(host)
            || seeds.any(|seed| seed.host_key() == *host)
            || matches!(self.frontier.host(host), Ok(Some(_)));
        match is_known {
            true => Ok(()),
            false => Err(CommandRefusal::UnknownHost(host.clone())),
        }
    }

    /// Replaces the politeness settings.
    pub(crate) fn set_politeness(&mut self, now: Tick, config: &Arc<Config>) {
        self.config = Arc::clone(config);
        let politeness = config.politeness.clone();
        self.scheduler.set_politeness(now, politeness);
    }

    /// Replaces the budgets by those in the settings. Earlier spending of hosts counts towards the
    /// new budgets.
    ///
    /// # Errors
    /// The frontier can't be read.
    pub(crate) fn set_budgets(&mut self) -> Result<(), FrontierError> {
        self.budgets.set_budgets(&self.config.budgets);
        self.share_budgets()
    }
}
