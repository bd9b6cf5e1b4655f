//! The answers to commands: from the crawl that runs, or between two rounds from the job itself.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crawl_engine::{
    Command as EngineCommand, CommandAnswer, Commander, EngineError, Progress, Refused as Why,
    Rules, park_at_rest, unpark_at_rest,
};
use crawl_weburl::{HostKey, canonicalize};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::between_rounds::{BetweenRounds, WaitMode};
use super::protocol::{Command, Refused, State};
use super::settings_source::SettingsSource;
use super::state_json::{of_live, of_progress, of_rest};
use crate::error::CommandError;

/// A state that is younger is told again, however many ask.
const MAX_STATE_AGE: Duration = Duration::from_millis(250);

/// The time between two lines that are heeded, over all connections.
const LINE_INTERVAL: Duration = Duration::from_millis(10);

/// URLs that are kept for the next round, at most: it begins at once, and this is what may come
/// meanwhile.
const MAX_KEPT_URLS: usize = 16;

/// Carries out the commands of all connections, in each mode of the job.
#[derive(Debug)]
pub(crate) struct ControlHandler {
    dir: PathBuf,
    /// Where the settings come from, if they can be read again.
    settings: Option<Arc<dyn SettingsSource>>,
    /// Held while they are.
    reading: tokio::sync::Mutex<()>,
    /// Locked for moments only, and never across an await.
    inner: Mutex<ControlState>,
    /// The state that was told last, when, and after how many changes of the mode.
    told: tokio::sync::Mutex<Option<(Instant, u64, State)>>,
    /// When the next line is heeded.
    pace: tokio::sync::Mutex<Instant>,
}

#[derive(Debug)]
struct ControlState {
    mode: Mode,
    /// The number of times that the mode has changed.
    mode_changes: u64,
    /// Delays that were set, in their order: they outlive a round.
    delays: Vec<EngineCommand>,
    /// Commands that the next round is given as soon as it begins.
    next: Vec<(EngineCommand, oneshot::Sender<Result<(), Refused>>)>,
}

#[derive(Clone, Debug)]
enum Mode {
    /// A crawl that runs.
    Crawl(Commander, watch::Receiver<Progress>),
    /// The wait for the next round.
    BetweenRounds(Box<BetweenRounds>),
    /// Neither has begun.
    Nothing,
}

impl ControlState {
    fn take(&mut self, mode: Mode) {
        self.mode = mode;
        self.mode_changes += 1;
    }
}

impl ControlHandler {
    /// A handler for the crawl in this directory.
    pub(crate) fn new(dir: PathBuf) -> ControlHandler {
        ControlHandler {
            dir,
            settings: None,
            reading: tokio::sync::Mutex::new(()),
            inner: Mutex::new(ControlState {
                mode: Mode::Nothing,
                mode_changes: 0,
                delays: Vec::new(),
                next: Vec::new(),
            }),
            told: tokio::sync::Mutex::new(None),
            pace: tokio::sync::Mutex::new(Instant::now()),
        }
    }

    /// The same for a job whose settings can be read again.
    pub(crate) fn reading_again(self, settings: Arc<dyn SettingsSource>) -> ControlHandler {
        ControlHandler {
            settings: Some(settings),
            ..self
        }
    }

    /// Returns whether the settings can be read again.
    pub(crate) fn reads_again(&self) -> bool {
        self.settings.is_some()
    }

    /// Reads the settings again, and has the crawl keep to them; lines that say what changed.
    /// Between two rounds the next one keeps to them.
    ///
    /// # Errors
    /// All that is wrong with them, or why the crawl takes nothing; nothing is changed then.
    pub(crate) async fn reload(&self) -> Result<Vec<String>, CommandError> {
        let Some(settings) = &self.settings else {
            return Err(CommandError::usage("this command reads no settings again"));
        };
        let _alone = self.reading.lock().await;
        let source = Arc::clone(settings);
        let read = tokio::task::spawn_blocking(move || source.read_again()).await;
        let new =
            read.map_err(|why| CommandError::disk(format!("can't read settings: {why}")))??;
        let told = new.told.clone();
        let mode = self.mode();
        if let Some(rules) = &new.rules {
            match &mode {
                Mode::Crawl(commander, _) => keep_rules(commander, rules).await?,
                Mode::BetweenRounds(_) => {}
                Mode::Nothing => {
                    return Err(CommandError::usage("the crawl has not begun yet")
                        .hint("try again in a moment"));
                }
            }
        }
        let rules = new.rules.clone();
        settings.take(new);
        // A round that began meanwhile may have been given the older ones.
        if let (Mode::BetweenRounds(_), Mode::Crawl(commander, _), Some(rules)) =
            (mode, self.mode(), rules)
        {
            keep_rules(&commander, &rules).await?;
        }
        Ok(told)
    }

    /// A run begins: it is told what was kept for it, and takes commands from now on. To be
    /// called within a tokio runtime.
    pub(crate) fn open(&self, commander: Commander, progress: watch::Receiver<Progress>) {
        let mut state = self.lock();
        for (told, reply) in state.next.drain(..) {
            // Handed over before the run begins, so that it is heard however short that is.
            let posted = commander.post(told);
            tokio::spawn(async move {
                let answer = match posted {
                    Ok(posted) => posted.answer().await,
                    Err(refused) => Err(refused),
                };
                let _ = reply.send(answer.map(drop).map_err(engine_refused));
            });
        }
        let (delays, again) = (state.delays.clone(), commander.clone());
        tokio::spawn(async move {
            for delay in delays {
                // A host that this run never meets needs none.
                let _ = again.ask(delay).await;
            }
        });
        state.take(Mode::Crawl(commander, progress));
    }

    /// A run is over, and the next is waited for.
    pub(crate) fn rest(&self, rest: BetweenRounds) {
        self.lock().take(Mode::BetweenRounds(Box::new(rest)));
    }

    /// Returns whether the next round is waited for.
    pub(crate) fn is_between_rounds(&self) -> bool {
        matches!(self.lock().mode, Mode::BetweenRounds(_))
    }

    /// Waits until the next line may be heeded: who sends without end slows nobody but others
    /// who send.
    pub(crate) async fn keep_pace(&self) {
        let mut next = self.pace.lock().await;
        tokio::time::sleep_until(*next).await;
        *next = Instant::now() + LINE_INTERVAL;
    }

    /// The state of the crawl.
    pub(crate) async fn state(&self) -> State {
        let mut told = self.told.lock().await;
        let mode_changes = self.lock().mode_changes;
        if let Some((at, of, state)) = told.as_ref()
            && at.elapsed() < MAX_STATE_AGE
            && *of == mode_changes
        {
            return state.clone();
        }
        let state = self.ask_state().await;
        *told = Some((Instant::now(), mode_changes, state.clone()));
        state
    }

    /// Has a command carried out; afterwards it is durable where it is to be. Gives lines that say
    /// what it did, where that is not plain.
    pub(crate) async fn carry_out(&self, command: Command) -> Result<Vec<String>, Refused> {
        let done = match engine_command(command) {
            Ok(Some(told)) => self.refer(told).await.map(|()| Vec::new()),
            Ok(None) => self.reload().await.map_err(Refused::of),
            Err(refused) => Err(refused),
        };
        // Who asks next is to see what it did.
        *self.told.lock().await = None;
        done
    }

    async fn refer(&self, told: EngineCommand) -> Result<(), Refused> {
        let commander = match self.mode() {
            Mode::Crawl(commander, _) => commander,
            Mode::BetweenRounds(rest) => return self.at_rest(&rest, told).await,
            Mode::Nothing => return Err(engine_refused(Why::Ending)),
        };
        commander.ask(told.clone()).await.map_err(engine_refused)?;
        self.remember(told);
        Ok(())
    }

    /// A command while the next round is waited for.
    async fn at_rest(&self, rest: &BetweenRounds, told: EngineCommand) -> Result<(), Refused> {
        match told {
            EngineCommand::Pause => {
                rest.wait_mode.send_replace(WaitMode::Paused);
                Ok(())
            }
            EngineCommand::Resume => {
                rest.wait_mode.send_replace(WaitMode::Now);
                Ok(())
            }
            EngineCommand::Add(url) => self.add_at_rest(rest, url).await,
            EngineCommand::Park(host) => self.change_at_rest(host, true).await,
            EngineCommand::Unpark(host) => self.change_at_rest(host, false).await,
            EngineCommand::Delay { .. } | EngineCommand::State | EngineCommand::Rules(_) => {
                Err(Refused::new(
                    "the crawl waits for its next round",
                    "a delay can be set once that has begun, and `resume` begins it now",
                ))
            }
        }
    }

    /// Begins the next round with a URL.
    async fn add_at_rest(&self, rest: &BetweenRounds, url: String) -> Result<(), Refused> {
        if let Err(why) = canonicalize(None, &url) {
            let why = why.to_string();
            return Err(engine_refused(Why::Unusable { url, why }));
        }
        if *rest.wait_mode.borrow() == WaitMode::Paused {
            return Err(Refused::new(
                "the crawl is paused",
                "`resume` begins the next round",
            ));
        }
        let answered = {
            let mut state = self.lock();
            match &state.mode {
                Mode::BetweenRounds(_) if state.next.len() < MAX_KEPT_URLS => {
                    let (reply, answered) = oneshot::channel();
                    state.next.push((EngineCommand::Add(url), reply));
                    Ok(answered)
                }
                Mode::BetweenRounds(_) => return Err(engine_refused(Why::Ending)),
                // The round began meanwhile.
                Mode::Crawl(commander, _) => Err((commander.clone(), url)),
                Mode::Nothing => return Err(engine_refused(Why::Ending)),
            }
        };
        match answered {
            Ok(answered) => {
                rest.wait_mode.send_replace(WaitMode::Now);
                answered
                    .await
                    .unwrap_or_else(|_| Err(engine_refused(Why::Ending)))
            }
            Err((commander, url)) => {
                let answer = commander.ask(EngineCommand::Add(url)).await;
                answer.map(drop).map_err(engine_refused)
            }
        }
    }

    /// Parks a host or takes it back in the state, which nobody has open between rounds.
    async fn change_at_rest(&self, host: HostKey, parks: bool) -> Result<(), Refused> {
        let change = if parks { park_at_rest } else { unpark_at_rest };
        let (dir, of) = (self.dir.clone(), host.clone());
        let changed = tokio::task::spawn_blocking(move || change(&dir, &of)).await;
        match changed {
            Ok(Ok(())) => {}
            Ok(Err(EngineError::Refused(why))) => return Err(engine_refused(why)),
            Ok(Err(why)) => return Err(Refused::new(why.to_string(), "try again")),
            Err(_) => return Err(engine_refused(Why::Ending)),
        }
        if let Mode::BetweenRounds(rest) = &mut self.lock().mode {
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
        let (commander, progress) = match self.mode() {
            Mode::Crawl(commander, progress) => (commander, progress),
            Mode::BetweenRounds(rest) => return of_rest(&rest),
            Mode::Nothing => return of_progress(&Progress::default()),
        };
        match commander.ask(EngineCommand::State).await {
            Ok(CommandAnswer::State(live)) => of_live(&live),
            // It is ending, and tells its progress alone.
            _ => of_progress(&progress.borrow()),
        }
    }

    /// A delay holds until the program ends, which may be after many rounds.
    fn remember(&self, told: EngineCommand) {
        let EngineCommand::Delay { host, .. } = &told else {
            return;
        };
        let delays = &mut self.lock().delays;
        match host {
            None => delays.clear(),
            Some(host) => delays.retain(
                |older| !matches!(older, EngineCommand::Delay { host: Some(of), .. } if of == host),
            ),
        }
        delays.push(told);
    }

    fn mode(&self) -> Mode {
        self.lock().mode.clone()
    }

    /// Each call leaves the state consistent, so a panic in another does not spoil it.
    fn lock(&self) -> MutexGuard<'_, ControlState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has a crawl keep to other rules.
async fn keep_rules(commander: &Commander, rules: &Rules) -> Result<(), CommandError> {
    let asked = commander.ask(EngineCommand::Rules(Box::new(rules.clone())));
    match asked.await {
        Ok(_) => Ok(()),
        Err(why) => Err(CommandError::usage(why.to_string()).hint(why.hint())),
    }
}

/// A command as the engine has it; none for what the job does itself.
fn engine_command(command: Command) -> Result<Option<EngineCommand>, Refused> {
    Ok(Some(match command {
        Command::Pause {} => EngineCommand::Pause,
        Command::Resume {} => EngineCommand::Resume,
        Command::Add { url } => EngineCommand::Add(url),
        Command::Delay { host, delay } => EngineCommand::Delay {
            host: host.as_deref().map(host_key).transpose()?,
            delay: delay.get(),
        },
        Command::Park { host } => EngineCommand::Park(host_key(&host)?),
        Command::Unpark { host } => EngineCommand::Unpark(host_key(&host)?),
        Command::State {} | Command::Watch {} => EngineCommand::State,
        Command::Reload {} => return Ok(None),
    }))
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
pub(crate) fn engine_refused(why: Why) -> Refused {
    Refused::new(why.to_string(), why.hint())
}
