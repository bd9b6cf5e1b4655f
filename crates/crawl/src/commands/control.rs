//! `crawl control`: sends a command to a running crawl, or parks a host for the next run.

use std::path::Path;

use crawl_engine::{CrawlPhase, EngineError, park_at_rest, unpark_at_rest};
use crawl_records::counted;
use tokio::runtime::Builder;

use crate::cli::args::ControlArgs;
use crate::control::client::{ControlClient, ControlClientError};
use crate::control::protocol::{ControlCommand, ControlRefusal, CrawlStateSnapshot};
use crate::control::{engine_refused, host_key};
use crate::error::engine::of_engine;
use crate::error::{CommandError, FINISHED, no_threads};
use crate::terminal::{print, print_json_lines};

pub(crate) fn run(args: &ControlArgs) -> Result<u8, CommandError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|why| no_threads(&why))?;
    runtime.block_on(send_command(&args.dir, args.command.clone()))
}

async fn send_command(dir: &Path, command: ControlCommand) -> Result<u8, CommandError> {
    let client = ControlClient::connect(dir).await.map_err(of_client)?;
    let Some(mut client) = client else {
        return at_rest(dir, command);
    };
    match command {
        ControlCommand::State {} => print_state(&client.state().await.map_err(of_client)?),
        ControlCommand::Watch {} => {
            let mut watch = client.watch().await.map_err(of_client)?;
            while let Some(state) = watch.next().await.map_err(of_client)? {
                print_state(&state)?;
            }
            Ok(FINISHED)
        }
        command => {
            let notes = client.send(&command).await.map_err(of_client)?;
            if !notes.is_empty() {
                let lines = notes.iter().map(|line| format!("{line}\n"));
                return print(lines.collect::<String>().as_bytes());
            }
            // The state is `None` if the crawl has ended since it executed the command.
            let state = client.state().await.ok();
            print(format!("{}\n", confirmation(&command, state.as_ref())).as_bytes())
        }
    }
}

/// Describes the effect of a command. `state` is the state of the crawl after the command, or
/// `None` if no crawl runs.
fn confirmation(command: &ControlCommand, state: Option<&CrawlStateSnapshot>) -> String {
    let is_waiting = state.is_some_and(|state| state.phase == CrawlPhase::Waiting);
    match command {
        ControlCommand::Pause {} if is_waiting => {
            "paused: the next round doesn't start until `resume`".to_owned()
        }
        ControlCommand::Pause {} => match state.map(|state| u64::from(state.in_flight)) {
            None | Some(0) => "paused: no request is in flight".to_owned(),
            Some(count) => format!("paused: {} will finish", in_flight(count)),
        },
        ControlCommand::Resume {} if is_waiting => "resumed: the next round starts now".to_owned(),
        ControlCommand::Resume {} => match state.map(|state| state.waiting) {
            None => "resumed".to_owned(),
            Some(count) => format!("resumed: {} pending", counted(count, "URL is", "URLs are")),
        },
        ControlCommand::Add { url } => format!("added {url}"),
        ControlCommand::Delay { host, delay } => {
            let hosts = match host {
                Some(host) => format!("requests to {host}"),
                None => "requests to each host".to_owned(),
            };
            format!("the delay between {hosts} is at least {delay} until the program ends")
        }
        ControlCommand::Park { host } => match state {
            Some(_) => format!("parked {host}: no new requests to it, in later runs too"),
            None => format!("parked {host}: later runs send no requests to it"),
        },
        ControlCommand::Unpark { host } => format!("unparked {host}: its URLs are fetched again"),
        ControlCommand::State {} | ControlCommand::Watch {} | ControlCommand::Reload {} => {
            "done".to_owned()
        }
    }
}

fn in_flight(count: u64) -> String {
    format!("{} in flight", counted(count, "request", "requests"))
}

/// Executes a command while no crawl runs. Hosts are parked or unparked for the next run; other
/// commands are refused.
fn at_rest(dir: &Path, command: ControlCommand) -> Result<u8, CommandError> {
    let changed = match &command {
        ControlCommand::Park { host } => park_at_rest(dir, &host_key(host).map_err(refusal)?),
        ControlCommand::Unpark { host } => unpark_at_rest(dir, &host_key(host).map_err(refusal)?),
        _ => {
            let problem = format!("no crawl is running in {}", dir.display());
            return Err(CommandError::usage(problem).hint("give the directory of a running crawl"));
        }
    };
    match changed {
        Ok(()) => print(format!("{}\n", confirmation(&command, None)).as_bytes()),
        Err(EngineError::Refused(why)) => Err(refusal(engine_refused(why))),
        Err(
            why @ (EngineError::NothingToDo { .. }
            | EngineError::NotADirectory { .. }
            | EngineError::OutputForeign { .. }),
        ) => Err(CommandError::usage(why.to_string()).hint("give the directory of a crawl")),
        Err(why @ EngineError::BesideCrawl { .. }) => Err(of_engine(&why, dir)),
        Err(why) => Err(CommandError::disk(why.to_string())),
    }
}

fn print_state(state: &CrawlStateSnapshot) -> Result<u8, CommandError> {
    let line = serde_json::to_string(state)
        .map_err(|why| CommandError::disk(format!("can't write JSON: {why}")))?;
    print_json_lines(&format!("{line}\n"))
}

fn refusal(refused: ControlRefusal) -> CommandError {
    let ControlRefusal {
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

fn of_client(why: ControlClientError) -> CommandError {
    match why {
        ControlClientError::Refused(refused) => refusal(refused),
        why => CommandError::disk(why.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::confirmation;
    use crate::control::protocol::{ControlCommand, CrawlStateSnapshot};

    /// Returns the state of a crawl, as the control socket reports it.
    fn state(phase: &str, in_flight: u32, waiting: u64) -> CrawlStateSnapshot {
        let state = serde_json::json!({
            "phase": phase, "paused": true, "round": 1, "pages": 0, "failed": 0, "barred": 0,
            "waiting": waiting, "in_flight": in_flight, "octets": 0, "pages_per_second": 0.0,
            "elapsed_ms": 0, "latest": [], "hosts": [], "parked": [],
        });
        serde_json::from_value(state).unwrap()
    }

    fn check(command: serde_json::Value, state: Option<&CrawlStateSnapshot>, expected: &str) {
        let command: ControlCommand = serde_json::from_value(command).unwrap();
        assert_eq!(confirmation(&command, state), expected);
    }

    #[test]
    fn a_command_is_confirmed_with_its_effect() {
        let json = |text: &str| serde_json::from_str(text).unwrap();
        let busy = state("paused", 3, 12);
        let idle = state("paused", 0, 1);
        let between = state("waiting", 0, 0);
        let pause = r#"{"do":"pause"}"#;
        check(
            json(pause),
            Some(&busy),
            "paused: 3 requests in flight will finish",
        );
        check(json(pause), Some(&idle), "paused: no request is in flight");
        check(
            json(pause),
            Some(&between),
            "paused: the next round doesn't start until `resume`",
        );
        let resume = r#"{"do":"resume"}"#;
        check(json(resume), Some(&busy), "resumed: 12 URLs are pending");
        check(json(resume), Some(&idle), "resumed: 1 URL is pending");
        check(json(resume), None, "resumed");
        check(
            json(r#"{"do":"delay","delay":"2s"}"#),
            Some(&busy),
            "the delay between requests to each host is at least 2s until the program ends",
        );
        check(
            json(r#"{"do":"delay","delay":"2s","host":"a.example"}"#),
            Some(&busy),
            "the delay between requests to a.example is at least 2s until the program ends",
        );
        check(
            json(r#"{"do":"park","host":"a.example"}"#),
            None,
            "parked a.example: later runs send no requests to it",
        );
    }
}
