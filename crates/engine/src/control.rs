//! Commands to a running crawl, and the answers to the commands.

use std::collections::BTreeMap;
use std::time::Duration;

use crawl_archive::rows::PageRow;
use crawl_scheduler::{HostWorkload, Politeness, Tick};
use crawl_scope::BadScopePattern;
use crawl_weburl::{CanonicalUrl, HostKey, HostPatternMap, UrlWithCredentials};
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};

use crate::config::CrawlBudgets;
use crate::free_space::FreeSpaceMeter;
use crate::run_counters::RunCounters;

/// Maximum number of commands that wait to be handled. If more are sent, [`Commander::ask`] waits
/// and [`Commander::post`] fails.
const MAX_WAITING_COMMANDS: usize = 16;

/// Maximum parked hosts. All of them are in memory, and each change rewrites the whole list.
/// Beyond the limit: refused.
pub(crate) const MAX_PARKED: usize = 1_000;

/// A command to a running crawl.
#[derive(Clone, Debug, PartialEq)]
pub enum CrawlCommand {
    /// Send no more requests until resumed. Requests in flight still end and are settled. The crawl
    /// does not end while paused.
    Pause,
    /// Resume a paused crawl.
    Resume,
    /// Fetch a URL as a seed, so that its host joins the scope. The command is answered once the
    /// seed is durable.
    Add(String),
    /// Change the minimum delay between two requests to a host, or to every host, for the rest of
    /// the run.
    Delay {
        /// The host. `None` means every host.
        host: Option<HostKey>,
        /// The delay.
        delay: Duration,
    },
    /// Send no requests to a host, in this and later runs. The command is answered once this is
    /// durable.
    Park(HostKey),
    /// Fetch from a parked host again. If the login to the host's site failed or was refused, try
    /// it again. The command is answered once this is durable.
    Unpark(HostKey),
    /// Change politeness, budgets, and the patterns that include or exclude URLs. The command is
    /// answered once the new rules are durable.
    Rules(Box<AdjustableRules>),
    /// Return the state of the crawl.
    State,
}

/// The rules of a crawl that may change during a run.
#[derive(Clone, Debug, PartialEq)]
pub struct AdjustableRules {
    /// Delays, rates and limits. `concurrency` and `look_ups` must stay the same.
    pub politeness: Politeness,
    /// Limits of the whole crawl, of hosts and of groups of hosts. Earlier requests count towards
    /// them.
    pub budgets: CrawlBudgets,
    /// If not empty, a URL must match one of these patterns.
    pub include: Vec<String>,
    /// A URL that matches one of these patterns is out of scope.
    pub exclude: Vec<String>,
    /// Hosts out of scope, with their subdomains.
    pub exclude_hosts: HostPatternMap<()>,
    /// The settings that all workers must share, with these rules, one per line. `None` if the
    /// crawl is not shared.
    pub shared_settings: Option<String>,
    /// The text of a `crawl.toml` with these rules.
    pub config_text: String,
    /// The new rules in the form of [`Config::audited`](crate::Config::audited).
    pub audited: serde_json::Map<String, serde_json::Value>,
}

/// The result of a command.
#[derive(Debug)]
pub enum CommandAnswer {
    /// The command was carried out.
    Done,
    /// The state of the crawl.
    State(Box<LiveCrawlState>),
}

/// Why a command was refused. A refused command changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CommandRefusal {
    /// The URL to add is not fetchable.
    #[error("unusable URL `{url}`: {why}")]
    Unusable {
        /// The URL as given.
        url: String,
        /// The reason.
        why: String,
    },
    /// The URL to add contains a user name or password, which would never be sent.
    #[error("the URL `{0}` contains a user name or password")]
    Credentials(UrlWithCredentials),
    /// A pattern excludes the URL.
    #[error("out of scope: {url} ({rule})")]
    OutOfScope {
        /// The URL.
        url: CanonicalUrl,
        /// The pattern that excludes it.
        rule: String,
    },
    /// The URL's host is an address in a private range, and neither a seed nor the configuration
    /// permits it.
    #[error("{url} is in a private range")]
    Private {
        /// The URL.
        url: CanonicalUrl,
    },
    /// The URL was visited in this round.
    #[error("{url} was visited in this round")]
    Visited {
        /// The URL.
        url: CanonicalUrl,
    },
    /// The URL was excluded earlier.
    #[error("{url} was excluded before: {why}")]
    Barred {
        /// The URL.
        url: CanonicalUrl,
        /// The reason.
        why: String,
    },
    /// The operator made the crawl forget the URL or its host.
    #[error("{url} was removed from this crawl by `crawl forget`")]
    Forgotten {
        /// The URL.
        url: CanonicalUrl,
    },
    /// The host is not part of the crawl.
    #[error("unknown host `{0}`")]
    UnknownHost(HostKey),
    /// The host is not parked.
    #[error("{0} is not parked")]
    NotParked(HostKey),
    /// The maximum number of hosts is already parked. Contains that number.
    #[error("{0} hosts are parked, which is the maximum")]
    TooManyParked(usize),
    /// The maximum number of hosts already has delays of its own. Contains that number.
    #[error("{0} hosts have their own delay, which is the maximum")]
    TooManyDelays(usize),
    /// The delay is too short for a host that the operator is not responsible for.
    #[error("delay {}ms is under {}ms, and {host} is not on loopback or in a private range", delay.as_millis(), least.as_millis())]
    TooShort {
        /// The delay.
        delay: Duration,
        /// The minimum delay at such a host.
        least: Duration,
        /// The first host for which the delay is too short.
        host: HostKey,
    },
    /// A pattern is not a valid regular expression.
    #[error("{0}")]
    BadPattern(BadScopePattern),
    /// The crawl no longer accepts commands.
    #[error("the crawl is ending")]
    Ending,
}

impl CommandRefusal {
    /// Returns advice for the user, for a `hint:` line.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            CommandRefusal::Unusable { .. } => {
                "give a complete URL such as `https://example.org/page`"
            }
            CommandRefusal::Credentials(_) => {
                "remove it, and set it for the host in a file for --config: [site.\"HOST\"] \
                 basic-auth = \"env:NAME\""
            }
            CommandRefusal::OutOfScope { .. } => "change --exclude or --include to allow it",
            CommandRefusal::Private { .. } => "name it as a seed, or start with --allow-private",
            CommandRefusal::Visited { .. } => "the next round visits it again if it is due by then",
            CommandRefusal::Barred { .. } => "see `crawl explain`; an excluded URL stays excluded",
            CommandRefusal::Forgotten { .. } => {
                "leave it out; a crawl into another --output may fetch it, if its owner agrees"
            }
            CommandRefusal::UnknownHost(_) => {
                "name hosts as in requests.jsonl; on loopback, include the port"
            }
            CommandRefusal::NotParked(_) => "the state lists the parked hosts",
            CommandRefusal::TooManyParked(_) => "unpark some, or exclude them with --exclude",
            CommandRefusal::TooManyDelays(_) => "set one delay for every host",
            CommandRefusal::TooShort { .. } => {
                "start with --own-site if you are responsible for the hosts of this crawl"
            }
            CommandRefusal::BadPattern(_) => {
                "in a regular expression `.` is any character: write `\\.` for a dot"
            }
            CommandRefusal::Ending => "unfinished work waits for the next start",
        }
    }
}

/// The state of a running crawl: its progress, latest pages and hosts.
#[derive(Clone, Debug)]
pub struct LiveCrawlState {
    /// The progress of the run.
    pub progress: ProgressSnapshot,
    /// The most recently settled pages, latest first.
    pub latest: Vec<RecentPage>,
    /// The hosts with the most pending URLs, largest number first.
    pub hosts: Vec<HostWorkload>,
    /// The parked hosts, ordered by name.
    pub parked: Vec<HostKey>,
    /// When this state was recorded.
    pub at: Tick,
}

/// A page whose fetch has ended and will not be retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecentPage {
    /// The URL of the page.
    pub url: CanonicalUrl,
    /// The HTTP status. `None` if the server sent no response.
    pub status: Option<u16>,
    /// When the exchange ended.
    pub at: Tick,
}

/// A command for the coordinator, and the channel for its answer.
#[derive(Debug)]
pub struct PostedCommand {
    pub(crate) command: CrawlCommand,
    pub(crate) answer: AnswerSender,
}

/// The channel for the answer to a command. If its receiver was dropped, the answer is dropped
/// too.
pub(crate) type AnswerSender = oneshot::Sender<Result<CommandAnswer, CommandRefusal>>;

/// Sends commands to a crawl. All clones send to the same crawl.
#[derive(Clone, Debug)]
pub struct Commander(mpsc::Sender<PostedCommand>);

/// Returns both ends of a command channel. The receiver is for
/// [`ControlChannels`](crate::ControlChannels).
#[must_use]
pub fn commands() -> (Commander, mpsc::Receiver<PostedCommand>) {
    let (sender, receiver) = mpsc::channel(MAX_WAITING_COMMANDS);
    (Commander(sender), receiver)
}

/// The future answer to a command that was sent.
#[derive(Debug)]
pub struct PendingAnswer(oneshot::Receiver<Result<CommandAnswer, CommandRefusal>>);

impl PendingAnswer {
    /// Waits for the answer to the command.
    ///
    /// # Errors
    ///
    /// Same as [`Commander::ask`].
    pub async fn answer(self) -> Result<CommandAnswer, CommandRefusal> {
        self.0.await.unwrap_or(Err(CommandRefusal::Ending))
    }
}

impl Commander {
    /// Sends a command without waiting for its answer. A command sent before the crawl starts is
    /// carried out even if the crawl has nothing to fetch.
    ///
    /// # Errors
    /// [`CommandRefusal::Ending`] if the crawl is over, or too many commands are waiting.
    pub fn post(&self, command: CrawlCommand) -> Result<PendingAnswer, CommandRefusal> {
        let (answer, answered) = oneshot::channel();
        let posted = PostedCommand { command, answer };
        self.0
            .try_send(posted)
            .map_err(|_| CommandRefusal::Ending)?;
        Ok(PendingAnswer(answered))
    }

    /// Sends a command and waits for the answer.
    ///
    /// # Errors
    /// [`CommandRefusal`], which is [`CommandRefusal::Ending`] if the crawl is over.
    pub async fn ask(&self, command: CrawlCommand) -> Result<CommandAnswer, CommandRefusal> {
        let (answer, answered) = oneshot::channel();
        let posted = PostedCommand { command, answer };
        self.0
            .send(posted)
            .await
            .map_err(|_| CommandRefusal::Ending)?;
        PendingAnswer(answered).answer().await
    }
}

/// The channels for controlling and observing a crawl.
#[derive(Debug)]
pub struct ControlChannels {
    /// How urgently to stop. May only become more urgent.
    pub stop: watch::Receiver<StopUrgency>,
    /// Receives the current progress several times per second. The first update comes once the
    /// crawl has locked its directory.
    pub progress: watch::Sender<ProgressSnapshot>,
    /// The commands for the running crawl: the receiver that [`commands`] returned.
    pub commands: mpsc::Receiver<PostedCommand>,
    /// Receives each row of `pages.jsonl`, with its archive position, once its page is committed.
    /// `None` sends no rows. A consumer that is 1,024 rows behind slows the crawl down. The run
    /// ends only once the consumer has taken all rows, unless the stop is [`StopUrgency::Now`] or
    /// the receiver is dropped. Each row is sent at most once: rows that a crash or
    /// `StopUrgency::Now` prevented from being sent are only in `pages.jsonl`.
    pub pages: Option<mpsc::Sender<PageRow>>,
    /// Measures the free disk space, for [`Config::min_free`](crate::Config::min_free).
    pub free_space: FreeSpaceMeter,
}

impl ControlChannels {
    /// Returns controls for a crawl that is neither steered nor observed.
    #[must_use]
    pub fn unattended() -> ControlChannels {
        ControlChannels {
            stop: watch::channel(StopUrgency::No).1,
            progress: watch::channel(ProgressSnapshot::default()).0,
            commands: commands().1,
            pages: None,
            free_space: FreeSpaceMeter::of_file_system(),
        }
    }
}

/// How urgently the crawl should end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopUrgency {
    /// Continue.
    #[default]
    No,
    /// Send no more requests, wait for those in flight, save, and end.
    Drain,
    /// End at once. Requests in flight become pending again at the next start.
    Now,
}

/// The current activity of the crawl. Its name in text and JSON is in snake case.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CrawlPhase {
    /// Fetching pages.
    #[default]
    Crawling,
    /// Paused until a command resumes it.
    Paused,
    /// Waiting until the disk has enough free space.
    DiskLow,
    /// Idle until another worker of the crawl finds URLs for this one, or all workers have ended.
    WaitingForWorkers,
    /// Waiting for requests in flight, and sending no new ones.
    Draining,
    /// Writing derived files at the end of a run.
    Writing,
    /// Waiting for the next round. A run never reports this phase, because a run belongs to a
    /// single round. The program that starts the rounds reports it.
    Waiting,
}

impl CrawlPhase {
    /// All phases.
    pub const ALL: &[CrawlPhase] = CrawlPhase::VARIANTS;

    /// Returns the name, such as `disk_low`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A snapshot of a crawl for observers.
#[derive(Clone, Debug, Default)]
pub struct ProgressSnapshot {
    /// The current activity of the crawl.
    pub phase: CrawlPhase,
    /// Whether a command has paused the crawl. If so, `phase` may still show another activity.
    pub is_paused: bool,
    /// The number of the round, from 1.
    pub round: u32,
    /// Rows of `pages.jsonl`, over all runs of the round.
    pub pages: u64,
    /// Pages without a response, or with a status of 400 and above, over all runs of the round.
    pub failed: u64,
    /// URLs that were excluded or deferred instead of being fetched.
    pub excluded: u64,
    /// URLs that are pending.
    pub pending: u64,
    /// Requests in flight.
    pub in_flight: u32,
    /// URLs found in all rounds so far.
    pub known: u64,
    /// URLs that are deferred and may still be fetched.
    pub deferred: u64,
    /// Hosts that have requests in flight and can't get another request now.
    pub hosts_asked: u32,
    /// Hosts that may get a request now.
    pub hosts_ready: u32,
    /// Hosts with pending URLs that must wait until the gap after their last request ends.
    pub hosts_waiting: u32,
    /// Hosts that requested a pause, or that can't be reached.
    pub hosts_resting: u32,
    /// The number of resting hosts by [`PauseReason::name`](crawl_scheduler::PauseReason::name).
    pub resting: BTreeMap<&'static str, u32>,
    /// Parked hosts with pending URLs.
    pub hosts_parked: u32,
    /// Bytes of bodies, over all runs of the round.
    pub bytes: u64,
    /// Free bytes on the disk. `None` if they could not be measured.
    pub disk_free: Option<u64>,
    /// The minimum of free bytes, see [`Config::min_free`](crate::Config::min_free).
    pub min_free: u64,
    /// Pages fetched in this run, divided by its seconds so far.
    pub pages_per_second: f64,
    /// Length of this run so far.
    pub elapsed: Duration,
    /// How much of the run is done, from 0 to 1. This is either the share of known URLs that are
    /// done, or the used share of the budget that will end the run first.
    pub share_done: f64,
    /// The estimated remaining time of the run: computed either from the rate so far, or from the
    /// known URLs of the slowest host.
    pub left: Option<Duration>,
    /// Whether `left` is the estimate for the slowest host.
    pub is_left_by_slowest_host: bool,
    /// Counts of this run.
    pub counters: RunCounters,
}
