//! Who answers what comes over the socket: the crawl that runs.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crawl_engine::{
    Answer, Command as Told, Commander, EngineError, Progress, Refused as Why, park_at_rest,
    unpark_at_rest,
};
use crawl_weburl::{HostKey, canonicalize};
use jiff::Timestamp;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use crate::rounds::Last;

use super::message::{Command, Refused, Reply, State};
use super::telling::{of_live, of_progress, of_rest};

/// A state that is younger is told again, however many ask.
const FRESH: Duration = Duration::from_millis(250);

/// The time between two lines that are heeded, over all connections.
const PACE: Duration = Duration::from_millis(10);

/// URLs that are kept for the next round, at most: it begins at once, and this is what may come
/// meanwhile.
const MOST_KEPT: usize = 16;

/// Where commands arrive, whoever carries them out.
#[derive(Debug)]
pub(crate) struct Desk {
    dir: PathBuf,
    /// Who carries commands out; locked for moments only, and never across an await.
    clerk: Mutex<Clerk>,
    /// What was told last, when, and how many duties had begun.
    told: tokio::sync::Mutex<Option<(Instant, u64, State)>>,
    /// When the next line is heeded.
    pace: tokio::sync::Mutex<Instant>,
}

#[derive(Debug)]
struct Clerk {
    duty: Duty,
    /// How many duties have begun.
    duties: u64,
    /// Delays that were set, in their order: they outlive a round.
    delays: Vec<Told>,
    /// What is told to the next round as soon as it begins.
    next: Vec<(Told, oneshot::Sender<Result<(), Refused>>)>,
}

#[derive(Clone, Debug)]
enum Duty {
    /// A crawl that runs.
    Crawl(Commander, watch::Receiver<Progress>),
    /// The wait for the next round.
    Rest(Rest),
    /// Neither has begun.
    Nothing,
}

impl Clerk {
    fn take(&mut self, duty: Duty) {
        self.duty = duty;
        self.duties += 1;
    }
}

/// The wait for the next round.
#[derive(Clone, Debug)]
pub(crate) struct Rest {
    /// When it begins.
    pub(crate) at: Timestamp,
    /// How the last one ended.
    pub(crate) last: Last,
    /// Whether it is waited for.
    pub(crate) hold: watch::Sender<Hold>,
}

/// Whether the next round is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Until its time comes.
    UntilThen,
    /// Until somebody resumes.
    Paused,
    /// No longer.
    Now,
}

impl Desk {
    /// The desk of the crawl in this directory.
    pub(crate) fn new(dir: PathBuf) -> Desk {
        Desk {
            dir,
            clerk: Mutex::new(Clerk {
                duty: Duty::Nothing,
                duties: 0,
                delays: Vec::new(),
                next: Vec::new(),
            }),
            told: tokio::sync::Mutex::new(None),
            pace: tokio::sync::Mutex::new(Instant::now()),
        }
    }

    /// A run begins: it is told what was kept for it, and takes commands from now on. To be
    /// called within a tokio runtime.
    pub(crate) fn open(&self, commander: Commander, progress: watch::Receiver<Progress>) {
        let mut clerk = self.clerk();
        for (told, reply) in clerk.next.drain(..) {
            // Handed over before the run begins, so that it is heard however short that is.
            let posted = commander.post(told);
            tokio::spawn(async move {
                let answer = match posted {
                    Ok(posted) => posted.answer().await,
                    Err(refused) => Err(refused),
                };
                let _ = reply.send(answer.map(drop).map_err(in_words));
            });
        }
        let (delays, again) = (clerk.delays.clone(), commander.clone());
        tokio::spawn(async move {
            for delay in delays {
                // A host that this run never meets needs none.
                let _ = again.ask(delay).await;
            }
        });
        clerk.take(Duty::Crawl(commander, progress));
    }

    /// A run is over, and the next is waited for.
    pub(crate) fn rest(&self, rest: Rest) {
        self.clerk().take(Duty::Rest(rest));
    }

    /// Whether the next round is waited for.
    pub(crate) fn rests(&self) -> bool {
        matches!(self.clerk().duty, Duty::Rest(_))
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
        let duties = self.clerk().duties;
        if let Some((at, of, state)) = told.as_ref()
            && at.elapsed() < FRESH
            && *of == duties
        {
            return state.clone();
        }
        let state = self.ask_state().await;
        *told = Some((Instant::now(), duties, state.clone()));
        state
    }

    /// Has a command carried out.
    pub(crate) async fn carry_out(&self, command: Command) -> Reply {
        let done = match engine_command(command) {
            Ok(told) => self.refer(told).await,
            Err(refused) => Err(refused),
        };
        // Who asks next is to see what it did.
        *self.told.lock().await = None;
        match done {
            Ok(()) => Reply::Done,
            Err(refused) => Reply::Refused(refused),
        }
    }

    async fn refer(&self, told: Told) -> Result<(), Refused> {
        let commander = match self.duty() {
            Duty::Crawl(commander, _) => commander,
            Duty::Rest(rest) => return self.at_rest(&rest, told).await,
            Duty::Nothing => return Err(in_words(Why::Ending)),
        };
        commander.ask(told.clone()).await.map_err(in_words)?;
        self.remember(told);
        Ok(())
    }

    /// A command while the next round is waited for.
    async fn at_rest(&self, rest: &Rest, told: Told) -> Result<(), Refused> {
        match told {
            Told::Pause => {
                rest.hold.send_replace(Hold::Paused);
                Ok(())
            }
            Told::Resume => {
                rest.hold.send_replace(Hold::Now);
                Ok(())
            }
            Told::Add(url) => self.add_at_rest(rest, url).await,
            Told::Park(host) => self.change_at_rest(host, true).await,
            Told::Unpark(host) => self.change_at_rest(host, false).await,
            Told::Delay { .. } | Told::State => Err(Refused::new(
                "the crawl waits for its next round",
                "a delay can be set once that has begun, and `resume` begins it now",
            )),
        }
    }

    /// Begins the next round with a URL.
    async fn add_at_rest(&self, rest: &Rest, url: String) -> Result<(), Refused> {
        if let Err(why) = canonicalize(None, &url) {
            let why = why.to_string();
            return Err(in_words(Why::Unusable { url, why }));
        }
        if *rest.hold.borrow() == Hold::Paused {
            return Err(Refused::new(
                "the crawl is paused",
                "`resume` begins the next round",
            ));
        }
        let answered = {
            let mut clerk = self.clerk();
            match &clerk.duty {
                Duty::Rest(_) if clerk.next.len() < MOST_KEPT => {
                    let (reply, answered) = oneshot::channel();
                    clerk.next.push((Told::Add(url), reply));
                    Ok(answered)
                }
                Duty::Rest(_) => return Err(in_words(Why::Ending)),
                // The round began meanwhile.
                Duty::Crawl(commander, _) => Err((commander.clone(), url)),
                Duty::Nothing => return Err(in_words(Why::Ending)),
            }
        };
        match answered {
            Ok(answered) => {
                rest.hold.send_replace(Hold::Now);
                answered
                    .await
                    .unwrap_or_else(|_| Err(in_words(Why::Ending)))
            }
            Err((commander, url)) => {
                let answer = commander.ask(Told::Add(url)).await;
                answer.map(drop).map_err(in_words)
            }
        }
    }

    /// Parks a host or takes it back in the state, which nobody has open while it rests.
    async fn change_at_rest(&self, host: HostKey, parks: bool) -> Result<(), Refused> {
        let change = if parks { park_at_rest } else { unpark_at_rest };
        let (dir, of) = (self.dir.clone(), host.clone());
        let changed = tokio::task::spawn_blocking(move || change(&dir, &of)).await;
        match changed {
            Ok(Ok(())) => {}
            Ok(Err(EngineError::Refused(why))) => return Err(in_words(why)),
            Ok(Err(why)) => return Err(Refused::new(why.to_string(), "try again")),
            Err(_) => return Err(in_words(Why::Ending)),
        }
        if let Duty::Rest(rest) = &mut self.clerk().duty {
            let parked = &mut rest.last.parked;
            match (parked.binary_search(&host), parks) {
                (Ok(at), false) => drop(parked.remove(at)),
                (Err(at), true) => parked.insert(at, host),
                _ => {}
            }
        }
        Ok(())
    }

    async fn ask_state(&self) -> State {
        let (commander, progress) = match self.duty() {
            Duty::Crawl(commander, progress) => (commander, progress),
            Duty::Rest(rest) => return of_rest(&rest),
            Duty::Nothing => return of_progress(&Progress::default()),
        };
        match commander.ask(Told::State).await {
            Ok(Answer::State(live)) => of_live(&live),
            // It is ending, and tells its progress alone.
            _ => of_progress(&progress.borrow()),
        }
    }

    /// A delay holds until the program ends, which may be after many rounds.
    fn remember(&self, told: Told) {
        let Told::Delay { host, .. } = &told else {
            return;
        };
        let delays = &mut self.clerk().delays;
        match host {
            None => delays.clear(),
            Some(host) => delays
                .retain(|older| !matches!(older, Told::Delay { host: Some(of), .. } if of == host)),
        }
        delays.push(told);
    }

    fn duty(&self) -> Duty {
        self.clerk().duty.clone()
    }

    /// What is in it is whole between any two calls.
    fn clerk(&self) -> MutexGuard<'_, Clerk> {
        self.clerk.lock().unwrap_or_else(PoisonError::into_inner)
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
