//! Handling of SIGINT, SIGTERM and SIGHUP.
//!
//! The first signal drains the crawl: it waits for requests in flight. A second SIGINT or SIGTERM
//! stops the crawl immediately, and a third ends the process. Two signals within a second count as
//! one.
//!
//! SIGHUP means that the terminal was closed. Since the system and the shell may both send SIGHUP,
//! a repeated one is ignored. A crawl without a terminal reloads its settings on SIGHUP instead, as
//! daemons do. Under `nohup`, SIGHUP stays ignored.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crawl_engine::StopUrgency;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::control::ControlHandler;
use crate::error::{CommandError, INTERRUPTED};
use crate::terminal::Terminal;

/// Starts listening for signals. A signal that ends the run sets `stop`.
///
/// Must be called within a tokio runtime.
pub(crate) fn listen(
    stop: watch::Sender<StopUrgency>,
    terminal: Terminal,
    handler: Arc<ControlHandler>,
) -> Result<(), CommandError> {
    let signals = EndSignals::register()?;
    // Check for a terminal only once, because a process that starts without a terminal doesn't get
    // one later.
    let reloads = handler.reads_again() && !has_terminal();
    tokio::spawn(pass_on(signals, stop, terminal, handler, reloads));
    Ok(())
}

/// Starts listening for signals. The first one sets `noted`. A later SIGINT or SIGTERM ends the
/// process.
///
/// Must be called within a tokio runtime.
pub(super) fn note_first(noted: Arc<AtomicBool>) -> Result<(), CommandError> {
    let mut signals = EndSignals::register()?;
    tokio::spawn(async move {
        let mut last = None;
        while let Some(signal) = signals.next().await {
            let now = Instant::now();
            if is_same_request(last, now) {
                continue;
            }
            last = Some(now);
            let was_noted = noted.swap(true, Ordering::Relaxed);
            if was_noted && signal == EndSignal::Asked {
                std::process::exit(i32::from(INTERRUPTED));
            }
        }
    });
    Ok(())
}

/// Signals within this time of the previous one count as the same request.
const MAX_REPEAT: Duration = Duration::from_secs(1);

/// A signal that ends a run, or makes it reload its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndSignal {
    /// SIGINT or SIGTERM. Each further one is more urgent.
    Asked,
    /// SIGHUP: the terminal was closed, or the settings are to be reloaded.
    HangUp,
}

struct EndSignals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` if the process was started with SIGHUP ignored.
    hang_up: Option<Signal>,
}

impl EndSignals {
    fn register() -> Result<EndSignals, CommandError> {
        let register = |kind| {
            signal(kind)
                .map_err(|why| CommandError::disk(format!("can't listen for signals: {why}")))
        };
        // Check first whether SIGHUP is ignored, since registering a handler would change that.
        let hang_up = (!is_hang_up_ignored()).then(|| register(SignalKind::hangup()));
        Ok(EndSignals {
            interrupt: register(SignalKind::interrupt())?,
            terminate: register(SignalKind::terminate())?,
            hang_up: hang_up.transpose()?,
        })
    }

    async fn next(&mut self) -> Option<EndSignal> {
        let EndSignals {
            interrupt,
            terminate,
            hang_up,
        } = self;
        let hang_up = async {
            match hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(()) = interrupt.recv() => Some(EndSignal::Asked),
            Some(()) = terminate.recv() => Some(EndSignal::Asked),
            Some(()) = hang_up => Some(EndSignal::HangUp),
            else => None,
        }
    }
}

/// Returns whether the process was started with SIGHUP ignored, as by `nohup`. Only Linux exposes
/// this; elsewhere the signal counts as not ignored.
fn is_hang_up_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The first bit of the mask is signal 1, SIGHUP.
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & 1 != 0)
}

/// Returns whether the process has a controlling terminal.
fn has_terminal() -> bool {
    fs::File::open("/dev/tty").is_ok()
}

/// Reloads the settings. If they contain errors, reports them and changes nothing.
async fn reload(handler: Arc<ControlHandler>, terminal: Terminal) {
    if let Err(error) = handler.reload().await {
        tracing::warn!(%error, "settings were not read again");
        terminal.insist(&format!(
            "{error}\nsettings not reloaded: the crawl continues unchanged"
        ));
    }
}

/// Returns whether a signal repeats the previous one rather than being more urgent. `timeout` and
/// shells signal both the process and its group, so that this process gets the signal twice.
fn is_same_request(last: Option<Instant>, now: Instant) -> bool {
    last.is_some_and(|last| now.duration_since(last) < MAX_REPEAT)
}

async fn pass_on(
    mut signals: EndSignals,
    stop: watch::Sender<StopUrgency>,
    terminal: Terminal,
    handler: Arc<ControlHandler>,
    reloads: bool,
) {
    let mut count = 0_u32;
    let mut last: Option<Instant> = None;
    while let Some(signal) = signals.next().await {
        let now = Instant::now();
        if signal == EndSignal::Asked && is_same_request(last, now) {
            continue;
        }
        if signal == EndSignal::HangUp && reloads {
            tokio::spawn(reload(Arc::clone(&handler), terminal.clone()));
            continue;
        }
        if signal == EndSignal::HangUp && count > 0 {
            continue;
        }
        last = Some(now);
        count += 1;
        match count {
            1 if handler.is_between_rounds() => {
                terminal.say("stopping: no further rounds");
                let _ = stop.send(StopUrgency::Drain);
            }
            1 => {
                terminal.say(
                    "stopping: waiting for requests in flight; press Ctrl-C again to stop now",
                );
                let _ = stop.send(StopUrgency::Drain);
            }
            2 => {
                terminal.say("stopping immediately");
                let _ = stop.send(StopUrgency::Now);
            }
            // The engine did not respond, so exit without it. Committed data is safe in any case.
            _ => std::process::exit(i32::from(INTERRUPTED)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::is_same_request;

    #[test]
    fn two_signals_within_a_second_are_one_request() {
        let first = Instant::now();
        let after = |millis| first + Duration::from_millis(millis);
        assert!(!is_same_request(None, first));
        assert!(is_same_request(Some(first), first));
        assert!(is_same_request(Some(first), after(999)));
        assert!(!is_same_request(Some(first), after(1000)));
    }
}
