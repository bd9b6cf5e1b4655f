//! Who answers what comes over the socket: the crawl that runs.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crawl_engine::{Answer, Command as Told, Commander, Live, Phase, Progress, Refused as Why};
use crawl_scheduler::{HostWork as Work, Tick};
use crawl_weburl::HostKey;
use tokio::sync::watch;
use tokio::time::Instant;

use super::message::{Command, HostWork, LatestPage, PhaseName, Refused, Reply, State};

/// A state that is younger is told again, however many ask.
const FRESH: Duration = Duration::from_millis(250);

/// The time between two lines that are heeded, over all connections.
const PACE: Duration = Duration::from_millis(10);

/// Where commands arrive, whoever carries them out.
#[derive(Debug)]
pub(crate) struct Desk {
    clerk: watch::Sender<Clerk>,
    /// What was told last, and when.
    told: tokio::sync::Mutex<Option<(Instant, State)>>,
    /// When the next line is heeded.
    pace: tokio::sync::Mutex<Instant>,
    /// Delays that were set, in their order: they outlive a round.
    delays: Mutex<Vec<Told>>,
}

/// Who carries commands out.
#[derive(Clone, Debug)]
pub(crate) enum Clerk {
    /// A crawl that runs.
    Crawl(Commander, watch::Receiver<Progress>),
}

impl Desk {
    /// A desk with its first clerk.
    pub(crate) fn new(clerk: Clerk) -> Desk {
        Desk {
            clerk: watch::Sender::new(clerk),
            told: tokio::sync::Mutex::new(None),
            pace: tokio::sync::Mutex::new(Instant::now()),
            delays: Mutex::new(Vec::new()),
        }
    }

    /// Waits until the next line may be heeded: who sends without end slows nobody but others
    /// who send.
    pub(crate) async fn keep_pace(&self) {
        let mut next = self.pace.lock().await;
        tokio::time::sleep_until(*next).await;
        *next = Instant::now() + PACE;
    }

    /// How the crawl stands.
    pub(crate) async fn state(&self) -> State {
        let mut told = self.told.lock().await;
        if let Some((at, state)) = told.as_ref()
            && at.elapsed() < FRESH
        {
            return state.clone();
        }
        let state = self.ask_state().await;
        *told = Some((Instant::now(), state.clone()));
        state
    }

    /// Has a command carried out.
    pub(crate) async fn carry_out(&self, command: Command) -> Reply {
        let reply = match self.refer(command).await {
            Ok(()) => Reply::Done,
            Err(refused) => Reply::Refused(refused),
        };
        // Who asks next is to see what it did.
        *self.told.lock().await = None;
        reply
    }

    async fn refer(&self, command: Command) -> Result<(), Refused> {
        let told = engine_command(command)?;
        let Clerk::Crawl(commander, _) = self.clerk();
        commander.ask(told.clone()).await.map_err(in_words)?;
        self.remember(told);
        Ok(())
    }

    async fn ask_state(&self) -> State {
        let Clerk::Crawl(commander, progress) = self.clerk();
        match commander.ask(Told::State).await {
            Ok(Answer::State(live)) => of_live(&live),
            // It is ending, and tells its progress alone.
            _ => of_progress(&progress.borrow()),
        }
    }

    fn clerk(&self) -> Clerk {
        self.clerk.borrow().clone()
    }

    /// A delay holds until the program ends, which may be after many rounds.
    fn remember(&self, told: Told) {
        let Told::Delay { host, .. } = &told else {
            return;
        };
        let mut delays = self.delays.lock().unwrap_or_else(PoisonError::into_inner);
        match host {
            None => delays.clear(),
            Some(host) => delays
                .retain(|older| !matches!(older, Told::Delay { host: Some(of), .. } if of == host)),
        }
        delays.push(told);
    }
}

/// A command as the engine has it.
fn engine_command(command: Command) -> Result<Told, Refused> {
    Ok(match command {
        Command::Pause {} => Told::Pause,
        Command::Resume {} => Told::Resume,
        Command::Add { url } => Told::Add(url),
        Command::Delay { host, delay } => Told::Delay {
            host: host.as_deref().map(host_key).transpose()?,
            delay: delay.get(),
        },
        Command::Park { host } => Told::Park(host_key(&host)?),
        Command::Unpark { host } => Told::Unpark(host_key(&host)?),
        Command::State {} | Command::Watch {} => Told::State,
    })
}

/// A host as it is named over the socket and on the command line.
pub(crate) fn host_key(name: &str) -> Result<HostKey, Refused> {
    let is_plain = !name.contains(['/', '@', '?', '#', '\\']);
    let key = HostKey::parse(name).ok().filter(|_| is_plain);
    key.ok_or_else(|| {
        Refused::new(
            format!("unknown host `{name}`"),
            "a host is a name or an address, on loopback with its port",
        )
    })
}

/// Why the engine refuses something.
pub(crate) fn in_words(why: Why) -> Refused {
    Refused::new(why.to_string(), why.hint())
}

fn of_live(live: &Live) -> State {
    let latest = live.latest.iter().map(|page| LatestPage {
        url: page.url.to_string(),
        status: page.status,
        at: moment(page.at),
    });
    State {
        latest: latest.collect(),
        hosts: live
            .hosts
            .iter()
            .map(|work| of_work(work, live.at))
            .collect(),
        parked: live.parked.iter().map(ToString::to_string).collect(),
        ..of_progress(&live.progress)
    }
}

fn of_progress(progress: &Progress) -> State {
    State {
        phase: match progress.phase {
            Phase::Crawling => PhaseName::Crawling,
            Phase::Paused => PhaseName::Paused,
            Phase::Draining => PhaseName::Draining,
            Phase::Writing => PhaseName::Writing,
        },
        paused: progress.is_paused,
        round: progress.round,
        pages: progress.pages,
        failed: progress.failed,
        barred: progress.excluded,
        waiting: progress.pending,
        in_flight: progress.in_flight,
        octets: progress.bytes,
        pages_per_second: progress.pages_per_second,
        elapsed_ms: millis(progress.elapsed),
        next_round: None,
        latest: Vec::new(),
        hosts: Vec::new(),
        parked: Vec::new(),
    }
}

fn of_work(work: &Work, now: Tick) -> HostWork {
    HostWork {
        host: work.host.to_string(),
        waiting: work.waiting,
        next_in_ms: work.next_at.map(|at| millis(at.since(now))),
        gap_ms: millis(work.gap),
        parked: work.is_parked,
    }
}

/// To the millisecond, as rows have it.
pub(super) fn moment(at: Tick) -> String {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    let at = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
    format!("{at:.3}")
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
