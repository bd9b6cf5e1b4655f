//! Executes control commands: through the engine while a crawl runs, and directly between rounds.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crawl_engine::{
    AdjustableRules, CommandAnswer, CommandRefusal as Why, Commander,
    CrawlCommand as EngineCommand, EngineError, ProgressSnapshot, park_at_rest, unpark_at_rest,
};
use crawl_weburl::{HostKey, UrlWithCredentials, canonicalize};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::protocol::{ControlCommand, ControlRefusal, CrawlStateSnapshot};
use super::round_wait::{RoundWaitMode, RoundWaitState};
use super::settings_reloader::SettingsReloader;
use super::state_snapshot::{of_live, of_progress, of_rest};
use crate::error::CommandError;

/// How long a state is cached, so that many clients cost the crawl no more than one client.
const MAX_STATE_AGE: Duration = Duration::from_millis(250);

/// Minimum time between two lines that are processed, counting the lines of all connections.
const LINE_INTERVAL: Duration = Duration::from_millis(10);

/// Maximum URLs that are added between rounds and held for the next round. A few are enough, since
/// the first one starts that round immediately.
const MAX_KEPT_URLS: usize = 16;

/// Executes the commands from all control connections.
#[derive(Debug)]
pub(crate) struct ControlHandler {
    dir: PathBuf,
    /// Reloads the settings. `None` if they can't be reloaded.
    settings: Option<Arc<dyn SettingsReloader>>,
    /// Held while the settings are reloaded, so that only one reload runs at a time.
    reading: tokio::sync::Mutex<()>,
    /// Locked only briefly, never across an `await`.
    inner: Mutex<ControlState>,
    /// The last state sent to a client, the time when it was taken, and the value of
    /// `phase_changes` at that time.
    last_state: tokio::sync::Mutex<Option<(Instant, u64, CrawlStateSnapshot)>>,
    /// When the next line from a client may be processed.
    pace: tokio::sync::Mutex<Instant>,
}

#[derive(Debug)]
struct ControlState {
    phase: ControlPhase,
    /// Number of times that the phase has changed.
    phase_changes: u64,
    /// The `delay` commands in force, in order. A later command for the same host, or for every
    /// host, replaces earlier ones. Each new round's engine gets these commands again.
    delays: Vec<EngineCommand>,
    /// Commands for the next round, posted as soon as it begins, each with the sender of its reply.
    next: Vec<(EngineCommand, oneshot::Sender<Result<(), ControlRefusal>>)>,
}

#[derive(Clone, Debug)]
enum ControlPhase {
    /// A crawl is running.
    Crawl(Commander, watch::Receiver<ProgressSnapshot>),
    /// The crawl waits for its next round.
    BetweenRounds(Box<RoundWaitState>),
    /// No crawl has begun yet.
    Nothing,
}

impl ControlState {
    fn take(&mut self, phase: ControlPhase) {
        self.phase = phase;
        self.phase_changes += 1;
    }
}

impl ControlHandler {
    /// Creates a handler for the crawl in this directory.
    pub(crate) fn new(dir: PathBuf) -> ControlHandler {
        ControlHandler {
            dir,
            settings: None,
            reading: tokio::sync::Mutex::new(()),
            inner: Mutex::new(ControlState {
                phase: ControlPhase::Nothing,
                phase_changes: 0,
                delays: Vec::new(),
                next: Vec::new(),
            }),
            last_state: tokio::sync::Mutex::new(None),
            pace: tokio::sync::Mutex::new(Instant::now()),
        }
    }

    /// Adds a source to reload the settings from.
    pub(crate) fn reading_again(self, settings: Arc<dyn SettingsReloader>) -> ControlHandler {
        ControlHandler {
            settings: Some(settings),
            ..self
        }
    }

    /// Returns whether the settings can be reloaded.
    pub(crate) fn reads_again(&self) -> bool {
        self.settings.is_some()
    }

    /// Reloads the settings and applies them to the running crawl, or to the next round if none is
    /// running. Returns notes on what changed.
    ///
    /// # Errors
    /// Every problem in the settings, or why the crawl can't apply them. If the settings have
    /// problems, nothing is changed.
    pub(crate) async fn reload(&self) -> Result<Vec<String>, CommandError> {
        let Some(settings) = &self.settings else {
            return Err(CommandError::usage("this command can't reload settings"));
        };
        let _alone = self.reading.lock().await;
        let source = Arc::clone(settings);
        let read = tokio::task::spawn_blocking(move || source.read_again()).await;
        let new =
            read.map_err(|why| CommandError::disk(format!("can't read the settings: {why}")))??;
        let notes = new.notes.clone();
        let phase = self.phase();
        if let Some(rules) = &new.rules {
            match &phase {
                ControlPhase::Crawl(commander, _) => keep_rules(commander, rules).await?,
                ControlPhase::BetweenRounds(_) => {}
                ControlPhase::Nothing => {
                    return Err(CommandError::usage("the crawl has not started yet")
                        .hint("try again in a moment"));
                }
            }
        }
        let rules = new.rules.clone();
        settings.take(new);
        // If a round began during the reload, its engine may have read the old rules, so send it
        // the new ones.
        if let (ControlPhase::BetweenRounds(_), ControlPhase::Crawl(commander, _), Some(rules)) =
            (phase, self.phase(), rules)
        {
            keep_rules(&commander, &rules).await?;
        }
        Ok(notes)
    }

    /// Attaches the handler to a run that begins: the run's engine gets the pending commands and
    /// all later commands. Must be called within a tokio runtime.
    pub(crate) fn open(&self, commander: Commander, progress: watch::Receiver<ProgressSnapshot>) {
        let mut state = self.lock();
        for (command, reply) in state.next.drain(..) {
            // Post the commands before the run begins, so that even a very short run processes
            // them.
            let posted = commander.post(command);
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
                // Ignore the refusal of a delay for a host that the run doesn't know.
                let _ = again.ask(delay).await;
            }
        });
        state.take(ControlPhase::Crawl(commander, progress));
    }

    /// Switches to waiting for the next round, after a run has ended.
    pub(crate) fn rest(&self, rest: RoundWaitState) {
        self.lock()
            .take(ControlPhase::BetweenRounds(Box::new(rest)));
    }

    /// Returns whether the crawl waits for its next round.
    pub(crate) fn is_between_rounds(&self) -> bool {
        matches!(self.lock().phase, ControlPhase::BetweenRounds(_))
    }

    /// Waits until the next line may be processed. A client that floods the socket delays only
    /// other clients, not the crawl.
    pub(crate) async fn keep_pace(&self) {
        let mut next = self.pace.lock().await;
        tokio::time::sleep_until(*next).await;
        *next = Instant::now() + LINE_INTERVAL;
    }

    /// Returns the state of the crawl.
    pub(crate) async fn state(&self) -> CrawlStateSnapshot {
        let mut last_state = self.last_state.lock().await;
        let phase_changes = self.lock().phase_changes;
        if let Some((at, of, state)) = last_state.as_ref()
            && at.elapsed() < MAX_STATE_AGE
            && *of == phase_changes
        {
            return state.clone();
        }
        let state = self.fetch_state().await;
        *last_state = Some((Instant::now(), phase_changes, state.clone()));
        state
    }

    /// Executes a command. If the effect must survive a crash, waits until it is durable. Returns
    /// notes for the user, if the effect isn't obvious.
    pub(crate) async fn carry_out(
        &self,
        command: ControlCommand,
    ) -> Result<Vec<String>, ControlRefusal> {
        let done = match engine_command(command) {
            Ok(Some(command)) => self.refer(command).await.map(|()| Vec::new()),
            Ok(None) => self.reload().await.map_err(ControlRefusal::of),
            Err(refused) => Err(refused),
        };
        // Drop the cached state, so that the next `state` reflects this command.
        *self.last_state.lock().await = None;
        done
    }

    async fn refer(&self, command: EngineCommand) -> Result<(), ControlRefusal> {
        let commander = match self.phase() {
            ControlPhase::Crawl(commander, _) => commander,
            ControlPhase::BetweenRounds(rest) => return self.at_rest(&rest, command).await,
            ControlPhase::Nothing => return Err(engine_refused(Why::Ending)),
        };
        commander
            .ask(command.clone())
            .await
            .map_err(engine_refused)?;
        self.remember(command);
        Ok(())
    }

    /// Executes a command while the crawl waits for its next round.
    async fn at_rest(
        &self,
        rest: &RoundWaitState,
        command: EngineCommand,
    ) -> Result<(), ControlRefusal> {
        match command {
            EngineCommand::Pause => {
                rest.wait_mode.send_replace(RoundWaitMode::Paused);
                Ok(())
            }
            EngineCommand::Resume => {
                rest.wait_mode.send_replace(RoundWaitMode::Now);
                Ok(())
            }
            EngineCommand::Add(url) => self.add_at_rest(rest, url).await,
            EngineCommand::Park(host) => self.change_at_rest(host, true).await,
            EngineCommand::Unpark(host) => self.change_at_rest(host, false).await,
            EngineCommand::Delay { .. } | EngineCommand::State | EngineCommand::Rules(_) => {
                Err(ControlRefusal::new(
                    "the crawl is waiting for its next round",
                    "set the delay once that round has started; `resume` starts it now",
                ))
            }
        }
    }

    /// Adds a URL to the next round, and starts that round immediately. Refused while the crawl is
    /// paused.
    async fn add_at_rest(&self, rest: &RoundWaitState, url: String) -> Result<(), ControlRefusal> {
        if let Some(credentials) = UrlWithCredentials::find(&url) {
            return Err(engine_refused(Why::Credentials(credentials)));
        }
        if let Err(why) = canonicalize(None, &url) {
            let why = why.to_string();
            return Err(engine_refused(Why::Unusable { url, why }));
        }
        if *rest.wait_mode.borrow() == RoundWaitMode::Paused {
            return Err(ControlRefusal::new(
                "the crawl is paused",
                "`resume` starts the next round",
            ));
        }
        let answered = {
            let mut state = self.lock();
            match &state.phase {
                ControlPhase::BetweenRounds(_) if state.next.len() < MAX_KEPT_URLS => {
                    let (reply, answered) = oneshot::channel();
                    state.next.push((EngineCommand::Add(url), reply));
                    Ok(answered)
                }
                ControlPhase::BetweenRounds(_) => return Err(engine_refused(Why::Ending)),
                // The next round has already begun, so its engine gets the URL.
                ControlPhase::Crawl(commander, _) => Err((commander.clone(), url)),
                ControlPhase::Nothing => return Err(engine_refused(Why::Ending)),
            }
        };
        match answered {
            Ok(answered) => {
                rest.wait_mode.send_replace(RoundWaitMode::Now);
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

    /// Parks or unparks a host in the crawl's stored state. No run has that state open between
    /// rounds.
    async fn change_at_rest(&self, host: HostKey, parks: bool) -> Result<(), ControlRefusal> {
        let change = if parks { park_at_rest } else { unpark_at_rest };
        let (dir, of) = (self.dir.clone(), host.clone());
        let changed = tokio::task::spawn_blocking(move || change(&dir, &of)).await;
        match changed {
            Ok(Ok(())) => {}
            Ok(Err(EngineError::Refused(why))) => return Err(engine_refused(why)),
            Ok(Err(why)) => return Err(ControlRefusal::new(why.to_string(), "try again")),
            Err(_) => return Err(engine_refused(Why::Ending)),
        }
        if let ControlPhase::BetweenRounds(rest) = &mut self.lock().phase {
            let parked = &mut rest.last.parked;
            match (parked.binary_search(&host), parks) {
                (Ok(at), false) => drop(parked.remove(at)),
                (Err(at), true) => parked.insert(at, host),
                _ => {}
            }
        }
        Ok(())
    }

    async fn fetch_state(&self) -> CrawlStateSnapshot {
        let (commander, progress) = match self.phase() {
            ControlPhase::Crawl(commander, progress) => (commander, progress),
            ControlPhase::BetweenRounds(rest) => return of_rest(&rest),
            ControlPhase::Nothing => return of_progress(&ProgressSnapshot::default()),
        };
        match commander.ask(EngineCommand::State).await {
            Ok(CommandAnswer::State(live)) => of_live(&live),
            // The crawl is ending and no longer answers, so report the last progress that it
            // published.
            _ => of_progress(&progress.borrow()),
        }
    }

    /// Remembers a `delay` command for later rounds, since a delay applies until the program ends.
    fn remember(&self, command: EngineCommand) {
        let EngineCommand::Delay { host, .. } = &command else {
            return;
        };
        let delays = &mut self.lock().delays;
        match host {
            None => delays.clear(),
            Some(host) => delays.retain(
                |older| !matches!(older, EngineCommand::Delay { host: Some(of), .. } if of == host),
            ),
        }
        delays.push(command);
    }

    fn phase(&self) -> ControlPhase {
        self.lock().phase.clone()
    }

    /// Locks the state. Ignores a poisoned lock, because every change leaves the state consistent.
    fn lock(&self) -> MutexGuard<'_, ControlState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Applies new rules to a running crawl.
async fn keep_rules(commander: &Commander, rules: &AdjustableRules) -> Result<(), CommandError> {
    let reply = commander.ask(EngineCommand::Rules(Box::new(rules.clone())));
    match reply.await {
        Ok(_) => Ok(()),
        Err(why) => Err(CommandError::usage(why.to_string()).hint(why.hint())),
    }
}

/// Converts a command for the engine. `None` if the handler executes the command itself, without
/// the engine.
fn engine_command(command: ControlCommand) -> Result<Option<EngineCommand>, ControlRefusal> {
    Ok(Some(match command {
        ControlCommand::Pause {} => EngineCommand::Pause,
        ControlCommand::Resume {} => EngineCommand::Resume,
        ControlCommand::Add { url } => EngineCommand::Add(url),
        ControlCommand::Delay { host, delay } => EngineCommand::Delay {
            host: host.as_deref().map(host_key).transpose()?,
            delay: delay.get(),
        },
        ControlCommand::Park { host } => EngineCommand::Park(host_key(&host)?),
        ControlCommand::Unpark { host } => EngineCommand::Unpark(host_key(&host)?),
        ControlCommand::State {} | ControlCommand::Watch {} => EngineCommand::State,
        ControlCommand::Reload {} => return Ok(None),
    }))
}

/// Parses the name of a host, as given over the socket or on the command line.
pub(crate) fn host_key(name: &str) -> Result<HostKey, ControlRefusal> {
    HostKey::parse(name).map_err(|_| {
        ControlRefusal::new(
            format!("unknown host `{name}`"),
            "give a host name or address, on loopback with its port",
        )
    })
}

/// Converts the engine's reason for a refusal.
pub(crate) fn engine_refused(why: Why) -> ControlRefusal {
    ControlRefusal::new(why.to_string(), why.hint())
}
