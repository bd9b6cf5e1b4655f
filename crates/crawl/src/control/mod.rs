//! Control of a running crawl over a socket in its directory. See `docs/operating.md`.

mod bounded_lines;
pub(crate) mod client;
mod handler;
pub(crate) mod protocol;
mod round_wait;
mod server;
mod settings_reloader;
mod socket_path;
mod state_snapshot;

pub(crate) use handler::{ControlHandler, engine_refused, host_key};
pub(crate) use round_wait::{LastRoundCounts, RoundWaitMode, RoundWaitState};
pub(crate) use server::ControlServer;
pub(crate) use settings_reloader::{ReloadedSettings, SettingsReloader};
