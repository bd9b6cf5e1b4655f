//! The `crawl` command: arguments, settings, signals, progress and exit codes.
//!
//! `crawl URL` builds and checks the settings from flags, environment and files, passes them to
//! `crawl-engine` and displays the progress. The other commands answer questions about robots.txt
//! files, pages and finished crawls. Data goes to stdout, everything else to stderr. Anything that
//! a library can do belongs in a library.

mod child_process_without_secrets;
mod cli;
mod clock;
mod commands;
mod control;
mod error;
mod explanation;
#[cfg(test)]
mod fuzz_checks;
mod identity;
mod input_file_reader;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg_attr(not(feature = "search"), path = "metrics_disabled.rs")]
mod metrics;
mod output_file;
#[cfg_attr(not(feature = "render"), path = "rendering_disabled.rs")]
mod rendering;
mod run;
#[cfg(feature = "search")]
mod search_index_opener;
#[cfg(feature = "search")]
mod serve;
mod settings;
#[cfg_attr(not(feature = "shared-frontier"), path = "shared_frontier_disabled.rs")]
mod shared_frontier;
mod terminal;
mod values;

use std::path::Path;
use std::process::ExitCode;

use cli::args::{
    self, Cli, ConfigArgs, CrawlArgs, CrawlSubcommand, IndexArgs, RecheckArgs, ReplayArgs,
};
use cli::completions_and_manual;
use cli::preprocess::{self, CommandLineError};
use cli::short_help::overview;
use cli::usage_error;
use commands::{check, export, forget, inspect, plan, recheck, report_explain_audit, robots};
#[cfg(feature = "search")]
use commands::{index, search};
#[cfg(not(all(
    feature = "conformance",
    feature = "mcp",
    feature = "search",
    feature = "shared-frontier",
    feature = "tables"
)))]
use error::left_out;
use error::{CommandError, no_crawl};
use run::process_limits;
use settings::{
    UserFolders, check_without_seeds, defaults_listing, effective, gather, gather_for_replay,
    gather_with_sources, located,
};
use terminal::{note, print};
use values::FilePath;

/// The allocator. jemalloc retains less freed memory than the system allocator when many threads
/// allocate and free. `.cargo/config.toml` configures it.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    process_limits::survive_file_size_limit();
    if std::env::args_os().skip(1).eq(["-h"]) {
        let text = overview(&args::command());
        return print(text.as_bytes()).map_or_else(|refusal| refuse(&refusal), ExitCode::from);
    }
    let cli = match preprocess::read() {
        Ok(cli) => cli,
        Err(CommandLineError::Syntax(error)) => return usage_error::show(&error),
        Err(CommandLineError::Value(refusal)) => return refuse(&refusal),
    };
    // Raise the limit on open files: a crawl has a connection for each host, and a server one for
    // each client.
    process_limits::raise_limit();
    match run(cli) {
        Ok(code) => ExitCode::from(code),
        Err(refusal) => refuse(&refusal),
    }
}

fn refuse(refusal: &CommandError) -> ExitCode {
    note(&refusal.to_string());
    refusal.exit_code()
}

fn run(cli: Cli) -> Result<u8, CommandError> {
    clock::check()?;
    let (places, dirs) = cli
        .command
        .as_ref()
        .map(CrawlSubcommand::outputs)
        .unwrap_or_default();
    let is_report = matches!(cli.command, Some(CrawlSubcommand::Report(_)));
    for place in places {
        let is_own = |dir: &&Path| is_report && output_file::is_report_of(place, dir);
        if !dirs.iter().any(is_own) {
            output_file::refuse_inside(place, dirs.iter().copied())?;
        }
    }
    match &cli.command {
        Some(
            CrawlSubcommand::Index(IndexArgs { dir, .. })
            | CrawlSubcommand::Recheck(RecheckArgs { dir, .. }),
        ) => {
            forget::finish_interrupted_and_rebuild(dir)?;
        }
        Some(CrawlSubcommand::Control(args)) => forget::finish_interrupted_and_rebuild(&args.dir)?,
        Some(CrawlSubcommand::Extract(args)) => forget::finish_interrupted_and_rebuild(&args.dir)?,
        _ => {}
    }
    match cli.command {
        None => {
            if std::env::args_os().len() == 1
                && let Some(code) = commands::init::offer()?
            {
                return Ok(code);
            }
            let (job, environment) = (cli.job, UserFolders::of_process());
            let (settings, sources) =
                gather_with_sources(job.layer, job.config.as_deref(), &environment)?;
            run::crawl(&settings, sources, run::ContinuationCommand::OfCrawl)
        }
        Some(CrawlSubcommand::Plan(args)) => {
            let settings = gather_settings(args.job)?;
            if let Some(html) = &args.html {
                output_file::refuse_inside(html, [&*settings.output.output.0])?;
            }
            plan::run(&settings, args.json, args.html.as_deref())
        }
        Some(CrawlSubcommand::Check(args)) => check::run(args),
        Some(CrawlSubcommand::Init(args)) => commands::init::run(&args.file),
        Some(CrawlSubcommand::Robots(args)) => robots::run(&args),
        Some(CrawlSubcommand::Inspect(args)) => inspect::run(&args),
        Some(CrawlSubcommand::Config(args)) => config(args),
        Some(CrawlSubcommand::Report(mut args)) => {
            let _gathered = commands::gather::as_one(&args.dirs, &mut args.dir)?;
            report_explain_audit::report(&args)
        }
        Some(CrawlSubcommand::Replay(args)) => replay(args),
        Some(CrawlSubcommand::Explain(mut args)) => {
            let _gathered = commands::gather::as_one(&args.dirs, &mut args.dir)?;
            report_explain_audit::explain(&args)
        }
        Some(CrawlSubcommand::Audit(mut args)) => {
            let _gathered = commands::gather::as_one(&args.dirs, &mut args.dir)?;
            report_explain_audit::audit(&args)
        }
        #[cfg(feature = "conformance")]
        Some(CrawlSubcommand::Conformance(args)) => commands::conformance::run(&args),
        #[cfg(not(feature = "conformance"))]
        Some(CrawlSubcommand::Conformance(_)) => Err(left_out("crawl conformance", "conformance")),
        Some(CrawlSubcommand::Extract(args)) => commands::extract::run(&args),
        Some(CrawlSubcommand::Recheck(args)) => recheck::run(&remembered(&args.dir)?, args.json),
        #[cfg(feature = "tables")]
        Some(CrawlSubcommand::Verify(mut args)) => {
            let _gathered = commands::gather::as_one(&args.dirs, &mut args.dir)?;
            commands::verify::run(&args)
        }
        #[cfg(not(feature = "tables"))]
        Some(CrawlSubcommand::Verify(_)) => Err(left_out("crawl verify", "tables")),
        Some(CrawlSubcommand::Forget(args)) => forget::run(&args),
        Some(CrawlSubcommand::Gather(args)) => commands::gather::run(&args),
        #[cfg(feature = "search")]
        Some(CrawlSubcommand::Index(args)) => index::run(&args),
        #[cfg(feature = "search")]
        Some(CrawlSubcommand::Search(args)) => search::run(args),
        #[cfg(feature = "search")]
        Some(CrawlSubcommand::Serve(args)) => serve::run(&args),
        #[cfg(not(feature = "search"))]
        Some(CrawlSubcommand::Index(_)) => Err(left_out("crawl index", "search")),
        #[cfg(not(feature = "search"))]
        Some(CrawlSubcommand::Search(_)) => Err(left_out("crawl search", "search")),
        #[cfg(not(feature = "search"))]
        Some(CrawlSubcommand::Serve(_)) => Err(left_out("crawl serve", "search")),
        Some(CrawlSubcommand::Export(mut args)) => {
            let _gathered = commands::gather::as_one(&args.dirs, &mut args.dir)?;
            export::run(&args)
        }
        Some(CrawlSubcommand::Control(args)) => commands::control::run(&args),
        #[cfg(feature = "shared-frontier")]
        Some(CrawlSubcommand::Frontier(args)) => commands::frontier::run(&args),
        #[cfg(not(feature = "shared-frontier"))]
        Some(CrawlSubcommand::Frontier(_)) => Err(left_out("crawl frontier", "shared-frontier")),
        Some(CrawlSubcommand::Identity(args)) => commands::identity::run(args),
        #[cfg(feature = "mcp")]
        Some(CrawlSubcommand::Mcp(args)) => mcp::run(&args),
        #[cfg(not(feature = "mcp"))]
        Some(CrawlSubcommand::Mcp(_)) => Err(left_out("crawl mcp", "mcp")),
        Some(CrawlSubcommand::ReadDocument(args)) => commands::read_document::run(&args),
        Some(CrawlSubcommand::Completions { shell }) => {
            completions_and_manual::completions(shell, &args::command())
        }
        Some(CrawlSubcommand::Man(args)) => {
            completions_and_manual::man(args.all.as_deref(), args::command())
        }
    }
}

/// Returns the settings with which the next run would continue the crawl in `dir`.
fn remembered(dir: &Path) -> Result<settings::Settings, CommandError> {
    if !dir.join("crawl.toml").is_file() {
        return Err(no_crawl(dir));
    }
    let mut layer = settings::SettingsLayer::default();
    layer.output.output = Some(FilePath(dir.to_owned()));
    gather(layer, None, &UserFolders::of_process())
}

fn gather_settings(job: CrawlArgs) -> Result<settings::Settings, CommandError> {
    gather(job.layer, job.config.as_deref(), &UserFolders::of_process())
}

/// Replays the crawl in a directory.
fn replay(args: ReplayArgs) -> Result<u8, CommandError> {
    let ReplayArgs { dir, json, job } = args;
    crawl_records::CrawlSettings::read(&dir).map_err(error::records::of_records)?;
    if dir.join(crawl_records::WORKERS).exists() {
        let gathered = crawl_engine::EngineError::IsGathered { dir: dir.clone() };
        return Err(error::engine::of_engine(&gathered, &dir));
    }
    let environment = UserFolders::of_process();
    let settings = gather_for_replay(job.layer, job.config.as_deref(), &dir, &environment)?;
    commands::replay::run(&dir, &settings, json)
}

fn config(args: ConfigArgs) -> Result<u8, CommandError> {
    if let Some(file) = args.check {
        return check_config(CrawlArgs {
            config: Some(file),
            ..args.job
        });
    }
    if args.effective {
        return print(effective(&gather_settings(args.job)?).as_bytes());
    }
    match args.schema {
        true => print(settings::schema().as_bytes()),
        false => print(defaults_listing().as_bytes()),
    }
}

/// Reports every problem in the file of `crawl config --check`, with its position.
fn check_config(job: CrawlArgs) -> Result<u8, CommandError> {
    let file = job.config.clone().unwrap_or_default();
    let flags = job.layer.clone();
    let settings = gather_settings(job)?;
    let warnings =
        check_without_seeds(&settings).map_err(|problem| located(problem, &file, &flags))?;
    let mut text = format!("{}: no problems found\n", file.display());
    for warning in warnings {
        text += &format!("warning: {warning}\n");
    }
    print(text.as_bytes())
}
