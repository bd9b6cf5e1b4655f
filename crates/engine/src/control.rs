//! Commands and questions to a running crawl from outside, and its answers.

use std::collections::BTreeMap;
use std::time::Duration;

use crawl_archive::rows::PageRow;
use crawl_scheduler::{HostWork, Politeness, Tick};
use crawl_scope::BadScopePattern;
use crawl_weburl::{CanonicalUrl, HostKey, HostTable};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};

use crate::config::Budgets;
use crate::counters::Counters;
use crate::free_space::FreeSpace;

/// Commands on their way to the coordinator. It takes them one by one between two events, and who
/// sends more waits here.
const MAX_WAITING_COMMANDS: usize = 16;

/// Hosts that may be parked: a list that is kept in memory, and written whole.
pub(crate) const MAX_PARKED: usize = 1_000;

/// A command or a question to a running crawl.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Send no further request. What is in flight ends and is settled; the crawl does not end by
    /// itself.
    Pause,
    /// Go on.
    Resume,
    /// Fetch a URL as a seed is fetched: its host joins the scope. Done when that is durable.
    Add(String),
    /// Keep another least gap between two requests to a host, for as long as the run lasts.
    Delay {
        /// The host; none: every host.
        host: Option<HostKey>,
        /// The gap.
        delay: Duration,
    },
    /// Ask nothing of a host, in later runs neither. Done when that is durable.
    Park(HostKey),
    /// Ask a parked host again. Done when that is durable.
    Unpark(HostKey),
    /// Keep to other politeness, exclusions and budgets from now on. Done when that is durable.
    Rules(Box<Rules>),
    /// A question: how does the crawl stand?
    State,
}

/// The rules of a crawl that may change while it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Gaps, rates and limits. `concurrency` and `look_ups` stay as they were.
    pub politeness: Politeness,
    /// Limits of the whole crawl, of hosts and of groups of hosts. What was spent counts.
    pub budgets: Budgets,
    /// Where any are given, one must match.
    pub include: Vec<String>,
    /// None may match.
    pub exclude: Vec<String>,
    /// Hosts that are left out, with their subdomains.
    pub exclude_hosts: HostTable<()>,
    /// The text of `crawl.toml`, with these rules.
    pub config_text: String,
}

/// The result of a command.
#[derive(Debug)]
pub enum CommandAnswer {
    /// It is done.
    Done,
    /// The state of the crawl.
    State(Box<LiveState>),
}

/// Why a command was refused: nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refused {
    /// The URL to add names nothing that a crawler can ask for.
    #[error("unusable URL `{url}`: {why}")]
    Unusable {
        /// As given.
        url: String,
        /// The fault in it.
        why: String,
    },
    /// A pattern of the scope bars the URL.
    #[error("out of scope: {url} ({rule})")]
    OutOfScope {
        /// The URL.
        url: CanonicalUrl,
        /// The rule that bars it.
        rule: String,
    },
    /// The URL leads home, and no seed says that it may.
    #[error("{url} is in a private range")]
    Private {
        /// The URL.
        url: CanonicalUrl,
    },
    /// The URL was asked for in this round.
    #[error("{url} was visited in this round")]
    Visited {
        /// The URL.
        url: CanonicalUrl,
    },
    /// The URL is listed as one that is not asked for.
    #[error("{url} was excluded before: {why}")]
    Barred {
        /// The URL.
        url: CanonicalUrl,
        /// By what.
        why: String,
    },
    /// The URL was taken out of the crawl, by itself or with its host.
    #[error("{url} was taken out of this crawl by `crawl forget`")]
    Forgotten {
        /// The URL.
        url: CanonicalUrl,
    },
    /// The crawl never met the host.
    #[error("unknown host `{0}`")]
    UnknownHost(HostKey),
    /// The host is not parked.
    #[error("{0} is not parked")]
    NotParked(HostKey),
    /// So many hosts are parked as can be.
    #[error("{0} hosts are parked, and no more can be")]
    TooManyParked(usize),
    /// So many hosts have a delay of their own as can have.
    #[error("{0} hosts have a delay of their own, and no more can have")]
    TooManyDelays(usize),
    /// The delay is one for hosts that the operator answers for.
    #[error("delay {}ms is under {}ms, and {host} is not on loopback or in a private range", delay.as_millis(), least.as_millis())]
    TooShort {
        /// The delay.
        delay: Duration,
        /// The least for hosts of others.
        least: Duration,
        /// The host, or the first of them.
        host: HostKey,
    },
    /// A pattern is no regular expression.
    #[error("{0}")]
    BadPattern(BadScopePattern),
    /// The crawl takes no more commands.
    #[error("the crawl is ending")]
    Ending,
}

impl Refused {
    /// The remedy, for a `hint:` line.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Refused::Unusable { .. } => "give a whole URL such as `https://example.org/page`",
            Refused::OutOfScope { .. } => "it would need another --exclude or --include",
            Refused::Private { .. } => "name it as a seed, or start with --allow-private",
            Refused::Visited { .. } => "the next round visits it again where it is due by then",
            Refused::Barred { .. } => "`crawl explain` says more; what is excluded once stays so",
            Refused::Forgotten { .. } => {
                "leave it out; a crawl into another --output may ask for it, if its owner agrees"
            }
            Refused::UnknownHost(_) => {
                "hosts are named as in requests.jsonl, on loopback with their port"
            }
            Refused::NotParked(_) => "the state lists the hosts that are parked",
            Refused::TooManyParked(_) => "take some back, or bar them with --exclude",
            Refused::TooManyDelays(_) => "set one delay for every host",
            Refused::TooShort { .. } => {
                "start with --own-site if you answer for the hosts of this crawl"
            }
            Refused::BadPattern(_) => {
                "in a regular expression `.` is any character: write `\\.` for a dot"
            }
            Refused::Ending => "what it does not do any more waits for the next start",
        }
    }
}

/// The state of a crawl, beyond its progress.
#[derive(Clone, Debug)]
pub struct LiveState {
    /// Its progress.
    pub progress: Progress,
    /// Pages that were settled last, the latest first.
    pub latest: Vec<LatestPage>,
    /// The hosts with the most URLs waiting, the most first.
    pub hosts: Vec<HostWork>,
    /// The hosts that are parked, in the order of their names.
    pub parked: Vec<HostKey>,
    /// When this was so.
    pub at: Tick,
}

/// A page that was asked for, and is not tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatestPage {
    /// Its URL.
    pub url: CanonicalUrl,
    /// Its status; none where there was no answer.
    pub status: Option<u16>,
    /// When its exchange ended.
    pub at: Tick,
}

/// A command with the place for its answer, as the coordinator takes it.
#[derive(Debug)]
pub struct PostedCommand {
    pub(crate) command: Command,
    pub(crate) answer: AnswerSender,
}

/// The place for an answer. Where nobody waits for it any more, it is dropped.
pub(crate) type AnswerSender = oneshot::Sender<Result<CommandAnswer, Refused>>;

/// Sends commands to a crawl. Clones speak to the same crawl.
#[derive(Clone, Debug)]
pub struct Commander(mpsc::Sender<PostedCommand>);

/// The two ends of a channel of commands: one for whoever steers, one for
/// [`Controls`](crate::Controls).
#[must_use]
pub fn commands() -> (Commander, mpsc::Receiver<PostedCommand>) {
    let (sender, receiver) = mpsc::channel(MAX_WAITING_COMMANDS);
    (Commander(sender), receiver)
}

/// The answer to come of a command that was handed over.
#[derive(Debug)]
pub struct PendingAnswer(oneshot::Receiver<Result<CommandAnswer, Refused>>);

impl PendingAnswer {
    /// Waits for it.
    ///
    /// # Errors
    /// As [`Commander::ask`].
    pub async fn answer(self) -> Result<CommandAnswer, Refused> {
        self.0.await.unwrap_or(Err(Refused::Ending))
    }
}

impl Commander {
    /// Hands a command over without waiting; what comes of it is received later. What is handed
    /// over before the crawl is run is carried out, however soon the run is over.
    ///
    /// # Errors
    /// [`Refused::Ending`] where the crawl is over, or more commands wait than there is room for.
    pub fn post(&self, command: Command) -> Result<PendingAnswer, Refused> {
        let (answer, answered) = oneshot::channel();
        let ask = PostedCommand { command, answer };
        self.0.try_send(ask).map_err(|_| Refused::Ending)?;
        Ok(PendingAnswer(answered))
    }

    /// Has a command carried out, and waits for what it comes to.
    ///
    /// # Errors
    /// [`Refused`]; [`Refused::Ending`] where the crawl is over.
    pub async fn ask(&self, command: Command) -> Result<CommandAnswer, Refused> {
        let (answer, answered) = oneshot::channel();
        let ask = PostedCommand { command, answer };
        self.0.send(ask).await.map_err(|_| Refused::Ending)?;
        PendingAnswer(answered).answer().await
    }
}

/// The controls by which a crawl is steered and watched from outside.
#[derive(Debug)]
pub struct Controls {
    /// Turned up, never down.
    pub stop: watch::Receiver<Stop>,
    /// Receives a fresh state several times a second; the first as soon as the crawl has its
    /// directory to itself.
    pub progress: watch::Sender<Progress>,
    /// The commands for the crawl while it runs: the receiving end of [`commands`].
    pub commands: mpsc::Receiver<PostedCommand>,
    /// Receives each row of `pages.jsonl` once its page is committed, with its place in the
    /// archive; none: nobody wants them. A consumer that falls behind by 1,024 rows slows the
    /// crawl down, and a run waits for it at its end, unless [`Stop::Now`] is said or the other
    /// end is dropped. A row is handed over once at most: what a crash or `Stop::Now` left behind
    /// stands in `pages.jsonl` alone.
    pub pages: Option<mpsc::Sender<PageRow>>,
    /// Tells what is free on the disk, for [`Config::min_free`](crate::Config::min_free).
    pub free_space: FreeSpace,
}

impl Controls {
    /// Nobody stops, watches or steers the crawl, or consumes its pages.
    #[must_use]
    pub fn unattended() -> Controls {
        Controls {
            stop: watch::channel(Stop::No).1,
            progress: watch::channel(Progress::default()).0,
            commands: commands().1,
            pages: None,
            free_space: FreeSpace::of_file_system(),
        }
    }
}

/// The urgency with which the crawl is asked to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// Go on.
    #[default]
    No,
    /// Send nothing more, await what is in flight, save, end.
    Drain,
    /// End at once; what was in flight is pending at the next start.
    Now,
}

/// The work that the crawl is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Fetching pages.
    #[default]
    Crawling,
    /// Sending nothing until told to resume.
    Paused,
    /// Sending nothing until the disk has room.
    DiskLow,
    /// Having nothing to do until other workers of the crawl find something, or all have ended.
    WaitingForWorkers,
    /// Waiting for what is in flight, sending nothing more.
    Draining,
    /// Writing what is derived at the end of a run.
    Writing,
}

/// A moment of a crawl, for a person who watches.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// The work that the crawl is at.
    pub phase: Phase,
    /// True if it was told to pause, whatever it is doing.
    pub is_paused: bool,
    /// The number of the round, from 1.
    pub round: u32,
    /// Rows of `pages.jsonl`, over all runs of the round.
    pub pages: u64,
    /// Pages without an answer or with a status of 400 and above, over all runs of the round.
    pub failed: u64,
    /// URLs that were known and not asked for.
    pub excluded: u64,
    /// URLs that wait.
    pub pending: u64,
    /// Requests under way.
    pub in_flight: u32,
    /// URLs that were ever met, in all rounds.
    pub known: u64,
    /// URLs that are put aside and may still be asked for.
    pub deferred: u64,
    /// Hosts with a request under way in each of their slots.
    pub hosts_asked: u32,
    /// Hosts that may be asked now.
    pub hosts_ready: u32,
    /// Hosts that have work and wait for their gap.
    pub hosts_waiting: u32,
    /// Hosts that asked for a rest or can't be reached.
    pub hosts_resting: u32,
    /// Those hosts by [`PauseReason::name`](crawl_scheduler::PauseReason::name).
    pub resting: BTreeMap<&'static str, u32>,
    /// Hosts that have work and are parked.
    pub hosts_parked: u32,
    /// Bytes of bodies, over all runs of the round.
    pub bytes: u64,
    /// Bytes that are free on the disk; none where nobody knows.
    pub disk_free: Option<u64>,
    /// Bytes that are to stay free.
    pub min_free: u64,
    /// Pages of this run per second of this run.
    pub pages_per_second: f64,
    /// Length of this run so far.
    pub elapsed: Duration,
    /// The share of the run that is done, from 0 to 1: by the URLs known by now, or by the budget
    /// that ends it first.
    pub share_done: f64,
    /// Time until then: at the rate so far, or as the slowest host takes for what is known.
    pub left: Option<Duration>,
    /// True if it is the time that the slowest host takes at its gap.
    pub is_left_by_slowest_host: bool,
    /// Counts of this run.
    pub counters: Counters,
}
