//! `crawl serve`: a search page, a JSON API, the report and the live state of a crawl.
//!
//! `connections` limits the number and duration of connections, and `routes` checks the host name,
//! rate and size of requests. Requests are answered by `view` with a page or by `api` with JSON.

mod access_guard;
mod api;
mod assets;
pub(crate) mod authority;
pub(crate) mod connections;
mod control_api;
mod control_token;
mod error_response;
mod headers;
mod live_state_feed;
pub(crate) mod rate_limit;
mod report_cache;
mod routes;
mod search_executor;
mod search_request;
mod serve_options;
mod server_state;
mod view;

use std::env;
use std::io::{self, Write as _};

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::child_process_without_secrets::TOKEN_VARIABLE;
use crate::cli::args::ServeArgs;
use crate::error::{CommandError, FINISHED, INTERRUPTED, no_threads};
use connections::{MAX_CONNECTIONS, MAX_CONNECTIONS_PER_CLIENT, ServerConnectionLimits, listen};
use search_executor::SearchExecutor;
use serve_options::ServeOptions;

/// Runs `crawl serve` until a signal ends it.
pub(crate) fn run(args: &ServeArgs) -> Result<u8, CommandError> {
    // An empty variable counts as unset.
    let token = env::var_os(TOKEN_VARIABLE).filter(|token| !token.is_empty());
    let token = token.map(|token| token.to_string_lossy().into_owned());
    let options = ServeOptions::of(args, token.as_deref())?;
    let searcher = SearchExecutor::open(&options.dir, options.search_rules.as_deref())?;
    let runtime = Runtime::new().map_err(|why| no_threads(&why))?;
    let ended = runtime.block_on(serve(&options, searcher));
    // A search may still be running, but its answer is no longer needed.
    runtime.shutdown_background();
    ended.map(|()| FINISHED)
}

async fn serve(options: &ServeOptions, searcher: SearchExecutor) -> Result<(), CommandError> {
    let (listener, address) = listen(options.listen, "--listen").await?;
    let (stop, stopped) = watch::channel(false);
    listen_for_signals(stop)?;
    let has_index = searcher.has_index();
    let router = routes::router(options, searcher, stopped.clone());
    say(&format!("listening on http://{address}/"));
    if !has_index {
        say("no search index yet; /crawl shows the crawl");
    }
    let room = ServerConnectionLimits {
        connections: MAX_CONNECTIONS,
        per_client: (!options.behind_proxy).then_some(MAX_CONNECTIONS_PER_CLIENT),
    };
    connections::serve(listener, router, stopped, room).await;
    Ok(())
}

/// Drains requests on the first signal, and exits immediately on the second.
fn listen_for_signals(stop: watch::Sender<bool>) -> Result<(), CommandError> {
    let register = |kind| {
        signal(kind).map_err(|why| CommandError::disk(format!("can't listen for signals: {why}")))
    };
    let mut interrupt = register(SignalKind::interrupt())?;
    let mut terminate = register(SignalKind::terminate())?;
    tokio::spawn(async move {
        either(&mut interrupt, &mut terminate).await;
        say("stopping: finishing current requests; press Ctrl-C again to stop now");
        let _ = stop.send(true);
        either(&mut interrupt, &mut terminate).await;
        std::process::exit(i32::from(INTERRUPTED));
    });
    Ok(())
}

async fn either(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

fn say(message: &str) {
    // Ignore errors: a closed stderr is no reason to stop serving.
    let _ = writeln!(io::stderr(), "{message}");
}
