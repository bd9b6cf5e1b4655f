//! SIGINT and SIGTERM: the first drains, the second stops, the third kills.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crawl_engine::Stop;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::control::Desk;
use crate::refusal::{INTERRUPTED, Refusal};
use crate::screen::Screen;

/// Starts to listen; what is asked for is sent to `stop`.
///
/// Must be called within a tokio runtime.
pub(crate) fn listen(
    stop: watch::Sender<Stop>,
    screen: Screen,
    desk: Arc<Desk>,
) -> Result<(), Refusal> {
    let interrupt = register(SignalKind::interrupt())?;
    let terminate = register(SignalKind::terminate())?;
    tokio::spawn(pass_on(interrupt, terminate, stop, screen, desk));
    Ok(())
}

/// Starts to listen; the first signal is noted, the second kills.
///
/// Must be called within a tokio runtime.
pub(crate) fn note_first(noted: Arc<AtomicBool>) -> Result<(), Refusal> {
    let mut interrupt = register(SignalKind::interrupt())?;
    let mut terminate = register(SignalKind::terminate())?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                Some(()) = interrupt.recv() => {}
                Some(()) = terminate.recv() => {}
                else => return,
            }
            if noted.swap(true, Ordering::Relaxed) {
                std::process::exit(i32::from(INTERRUPTED));
            }
        }
    });
    Ok(())
}

fn register(kind: SignalKind) -> Result<Signal, Refusal> {
    signal(kind).map_err(|why| Refusal::disk(format!("can't listen for signals: {why}")))
}

async fn pass_on(
    mut interrupt: Signal,
    mut terminate: Signal,
    stop: watch::Sender<Stop>,
    screen: Screen,
    desk: Arc<Desk>,
) {
    let mut count = 0_u32;
    loop {
        tokio::select! {
            Some(()) = interrupt.recv() => {}
            Some(()) = terminate.recv() => {}
            else => return,
        }
        count += 1;
        match count {
            1 if desk.rests() => {
                screen.say("stopping: there is no further round");
                let _ = stop.send(Stop::Drain);
            }
            1 => {
                screen.say("stopping: awaiting the requests in flight; once more stops at once");
                let _ = stop.send(Stop::Drain);
            }
            2 => {
                screen.say("stopping at once");
                let _ = stop.send(Stop::Now);
            }
            // The engine did not answer: what is committed is safe in any case.
            _ => std::process::exit(i32::from(INTERRUPTED)),
        }
    }
}
