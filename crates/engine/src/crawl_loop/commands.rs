//! Commands of an operator to a running crawl.

use crawl_archive::rows::OperatorCommand;
use crawl_scheduler::Tick;
use crawl_weburl::{AddressClass, CanonicalUrl, UrlWithCredentials, canonicalize, class_of_host};

use super::Coordinator;
use super::robots::may_be_anothers;
use crate::config::Config;
use crate::control::{
    AnswerSender, CommandAnswer, CommandRefusal, CrawlCommand, LiveCrawlState, PostedCommand,
};
use crate::messages::{Effect, PostedDurableCommand, WriterMessage};
use crate::time_conversions::millis;

/// Maximum number of hosts to list in a [`LiveCrawlState`].
const MAX_HOSTS_SHOWN: usize = 50;

impl Coordinator {
    /// Routes an operator's command to the part of the loop that carries it out. The answer is sent
    /// immediately, or once the change that the command makes is on disk.
    pub(super) fn command(&mut self, now: Tick, posted: PostedCommand, out: &mut Vec<Effect>) {
        let PostedCommand { command, answer } = posted;
        let entry = self.log_entry(now, &command);
        let order = match command {
            CrawlCommand::Pause => {
                self.end.pause(now);
                return reply(answer, Ok(CommandAnswer::Done));
            }
            CrawlCommand::Resume => {
                self.end.resume(now);
                return reply(answer, Ok(CommandAnswer::Done));
            }
            CrawlCommand::State => {
                let state = Box::new(self.live(now));
                return reply(answer, Ok(CommandAnswer::State(state)));
            }
            CrawlCommand::Rules(rules) => return self.take_rules(now, *rules, answer, out),
            CrawlCommand::Delay { host, delay } => {
                let row = self.hosts.set_delay(now, host.as_ref(), delay);
                if row.is_ok() && self.hosts.is_quick(delay) {
                    self.robots.be_quick();
                }
                return reply(
                    answer,
                    row.map(|row| {
                        out.push(Effect::NoteDelay(row));
                        out.extend(entry);
                        CommandAnswer::Done
                    }),
                );
            }
            CrawlCommand::Add(url) => usable(&url, &self.config)
                .and_then(|url| self.scope.add_seed(&url, &*self.frontier)),
            CrawlCommand::Park(host) => self.hosts.park(now, &host),
            CrawlCommand::Unpark(host) => {
                let is_login_retried = self.retry_login(now, &host);
                match self.hosts.unpark(now, &host) {
                    Err(_) if is_login_retried => Ok(self.hosts.parked_order()),
                    order => order,
                }
            }
        };
        match order {
            Ok(order) => {
                out.extend(entry);
                self.write(
                    WriterMessage::Order(PostedDurableCommand { order, answer }),
                    out,
                );
            }
            Err(refused) => reply(answer, Err(refused)),
        }
    }

    /// Returns the log entry with which a replay repeats `command`. A pause or resume has none,
    /// because a replay follows the recorded times of requests. New rules have none, because they
    /// are recorded with the settings.
    fn log_entry(&self, now: Tick, command: &CrawlCommand) -> Option<Effect> {
        let (command, about, delay) = match command {
            CrawlCommand::Add(url) => {
                let url = canonicalize(None, url).ok()?;
                ("add", Some(url.to_string()), None)
            }
            CrawlCommand::Delay { host, delay } => {
                let host = host.as_ref().map(ToString::to_string);
                ("delay", host, Some(millis(*delay)))
            }
            CrawlCommand::Park(host) => ("park", Some(host.to_string()), None),
            CrawlCommand::Unpark(host) => ("unpark", Some(host.to_string()), None),
            CrawlCommand::Pause
            | CrawlCommand::Resume
            | CrawlCommand::Rules(_)
            | CrawlCommand::State => return None,
        };
        Some(Effect::NoteCommand(OperatorCommand {
            at: now.as_millis(),
            command: command.to_owned(),
            about,
            delay,
            ended: self.hosts.requests().ended_in_run(),
            settled: self.report.of_all_runs().messages,
        }))
    }

    /// Returns the state of the crawl, for an operator.
    fn live(&self, now: Tick) -> LiveCrawlState {
        LiveCrawlState {
            progress: self.progress(now),
            latest: self.report.latest(),
            hosts: self.hosts.busiest(now, MAX_HOSTS_SHOWN),
            parked: self.hosts.parked().cloned().collect(),
            at: now,
        }
    }
}

/// Sends the answer to a command. No effect if the sender of the command is gone.
pub(super) fn reply(answer: AnswerSender, result: Result<CommandAnswer, CommandRefusal>) {
    let _ = answer.send(result);
}

/// Parses a URL that the operator adds. Refuses the URL if it contains a user name or password, or
/// if its host is an address that the fetcher would not connect to.
fn usable(url: &str, config: &Config) -> Result<CanonicalUrl, CommandRefusal> {
    if let Some(credentials) = UrlWithCredentials::find(url) {
        return Err(CommandRefusal::Credentials(credentials));
    }
    let url = canonicalize(None, url).map_err(|why| CommandRefusal::Unusable {
        url: url.to_owned(),
        why: why.to_string(),
    })?;
    let host = url.host_key();
    let fetch = &config.fetch;
    match class_of_host(host.host()) {
        Some(AddressClass::Unusable) => Err(CommandRefusal::Unusable {
            url: url.to_string(),
            why: "it names an address where no server can be".to_owned(),
        }),
        _ if may_be_anothers(&host, None) || fetch.allow_private || fetch.is_typed(&url) => Ok(url),
        _ => Err(CommandRefusal::Private { url }),
    }
}
