//! `crawl control`: sends a command to a running crawl, or parks a host for the next run.

use std::path::Path;

use crawl_engine::{EngineError, park_at_rest, unpark_at_rest};
use tokio::runtime::Builder;

use crate::cli::args::ControlArgs;
use crate::control::client::{Client, ClientError};
use crate::control::protocol::{Command, Refused, State};
use crate::control::{engine_refused, host_key};
use crate::error::engine::of_engine;
use crate::error::{CommandError, FINISHED, no_threads};
use crate::terminal::{print, print_json_lines};

/// Runs `crawl control`.
pub(crate) fn run(args: &ControlArgs) -> Result<u8, CommandError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|why| no_threads(&why))?;
    runtime.block_on(send_command(&args.dir, args.command.clone()))
}

async fn send_command(dir: &Path, command: Command) -> Result<u8, CommandError> {
    let client = Client::connect(dir).await.map_err(of_client)?;
    let Some(mut client) = client else {
        return at_rest(dir, command);
    };
    match command {
        Command::State {} => print_state(&client.state().await.map_err(of_client)?),
        Command::Watch {} => {
            let mut watch = client.watch().await.map_err(of_client)?;
            while let Some(state) = watch.next().await.map_err(of_client)? {
                print_state(&state)?;
            }
            Ok(FINISHED)
        }
        command => {
            let notes = client.send(&command).await.map_err(of_client)?;
            let lines = notes.iter().map(|line| format!("{line}\n"));
            print(lines.collect::<String>().as_bytes())
        }
    }
}

/// Executes a command while no crawl runs. Hosts are parked or unparked for the next run; other
/// commands are refused.
fn at_rest(dir: &Path, command: Command) -> Result<u8, CommandError> {
    let changed = match command {
        Command::Park { host } => park_at_rest(dir, &host_key(&host).map_err(refusal)?),
        Command::Unpark { host } => unpark_at_rest(dir, &host_key(&host).map_err(refusal)?),
        _ => {
            let problem = format!("no crawl is running in {}", dir.display());
            return Err(CommandError::usage(problem).hint("give the directory of a running crawl"));
        }
    };
    match changed {
        Ok(()) => Ok(FINISHED),
        Err(EngineError::Refused(why)) => Err(refusal(engine_refused(why))),
        Err(why @ (EngineError::NothingToDo { .. } | EngineError::OutputForeign { .. })) => {
            Err(CommandError::usage(why.to_string()).hint("give the directory of a crawl"))
        }
        Err(why @ EngineError::BesideCrawl { .. }) => Err(of_engine(&why, dir)),
        Err(why) => Err(CommandError::disk(why.to_string())),
    }
}

fn print_state(state: &State) -> Result<u8, CommandError> {
    let line = serde_json::to_string(state)
        .map_err(|why| CommandError::disk(format!("can't write JSON: {why}")))?;
    print_json_lines(&format!("{line}\n"))
}

fn refusal(refused: Refused) -> CommandError {
    let Refused {
        error,
        hint,
        others,
    } = refused;
    CommandError {
        hint,
        others: others.into_iter().map(refusal).collect(),
        ..CommandError::usage(error)
    }
}

fn of_client(why: ClientError) -> CommandError {
    match why {
        ClientError::Refused(refused) => refusal(refused),
        why => CommandError::disk(why.to_string()),
    }
}
