//! `crawl mcp`: lets a language model query a crawl, over the Model Context Protocol.
//!
//! `server` implements the protocol, `tools` defines the tools, and `crawl_tool_handler` answers
//! the calls.

mod crawl_tool_handler;
mod server;
mod tools;

use std::sync::Arc;

use rmcp::ServiceExt as _;
use rmcp::transport::stdio;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::args::McpArgs;
use crate::error::{CommandError, FINISHED, no_threads};
use crawl_tool_handler::CrawlToolHandler;
use server::McpServer;

/// Runs `crawl mcp` until stdin ends, or until SIGINT or SIGTERM arrives.
pub(crate) fn run(args: &McpArgs) -> Result<u8, CommandError> {
    let reader = Arc::new(CrawlToolHandler::open(&args.dir)?);
    let runtime = Runtime::new().map_err(|why| no_threads(&why))?;
    let ended = runtime.block_on(serve(reader));
    // Don't wait for the thread that reads stdin, because it can't be stopped. No answers are
    // needed any more.
    runtime.shutdown_background();
    ended.map(|()| FINISHED)
}

async fn serve(reader: Arc<CrawlToolHandler>) -> Result<(), CommandError> {
    let register = |kind| {
        signal(kind).map_err(|why| CommandError::disk(format!("can't listen for signals: {why}")))
    };
    let mut interrupt = register(SignalKind::interrupt())?;
    let mut terminate = register(SignalKind::terminate())?;
    let session = async {
        // A client that disconnects before the session begins is not an error.
        if let Ok(session) = McpServer::new(reader).serve(stdio()).await {
            let _ = session.waiting().await;
        }
    };
    tokio::select! {
        () = session => {}
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
