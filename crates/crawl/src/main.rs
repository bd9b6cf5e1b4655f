//! The crawler's command: arguments, settings, signals, progress, exit codes.
//!
//! `crawl URL` builds the settings from flags, environment and files, checks them,
//! hands them to `crawl-engine` and shows how it goes; the other commands answer questions
//! about robots.txt files, pages and finished crawls. Data goes to stdout, everything else
//! to stderr. What a library could know is not known here.

mod cli;
mod commands;
mod control;
mod error;
mod run;
mod serve;
mod settings;
mod terminal;
mod values;

use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use cli::args::{self, Cli, Command, ConfigArgs, JobArgs};
use cli::preprocess::{self, NotRead};
use commands::{export, index, inspect, records, robots, search};
use error::{CommandError, FINISHED, USAGE, cut};
use run::{connection_limit, job};
use settings::{Surroundings, defaults_listing, effective, gather};
use terminal::{note, print};

fn main() -> ExitCode {
    let cli = match preprocess::read() {
        Ok(cli) => cli,
        Err(NotRead::Form(error)) => return refuse_arguments(&error),
        Err(NotRead::Value(refusal)) => return refuse(&refusal),
    };
    // A crawl and a server have a file and connections open for each of many hosts.
    connection_limit::raise_limit();
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
    match cli.command {
        None => {
            let settings = gathered(cli.job)?;
            job::run(&settings)
        }
        Some(Command::Robots(args)) => robots::run(&args),
        Some(Command::Inspect(args)) => inspect::run(&args),
        Some(Command::Config(args)) => config(args),
        Some(Command::Report(args)) => records::report(&args),
        Some(Command::Explain(args)) => records::explain(&args),
        Some(Command::Audit(args)) => records::audit(&args),
        Some(Command::Index(args)) => index::run(&args),
        Some(Command::Search(args)) => search::run(&args),
        Some(Command::Export(args)) => export::run(&args),
        Some(Command::Control(args)) => control::run(&args),
        Some(Command::Serve(args)) => serve::run(&args),
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut args::command(), "crawl", &mut script);
            print(&script)
        }
        Some(Command::Man) => man(),
    }
}

fn gathered(job: JobArgs) -> Result<settings::Settings, CommandError> {
    gather(
        job.layer,
        job.config.as_deref(),
        &Surroundings::of_process(),
    )
}

fn config(args: ConfigArgs) -> Result<u8, CommandError> {
    if args.effective {
        return print(effective(&gathered(args.job)?).as_bytes());
    }
    print(defaults_listing().as_bytes())
}

/// The main page, then one section per command.
fn man() -> Result<u8, CommandError> {
    let mut page = Vec::new();
    clap_mangen::Man::new(args::command())
        .render(&mut page)
        .map_err(|why| CommandError::disk(format!("can't write the manual page: {why}")))?;
    print(&page)
}

/// Says in our own form what clap says, except help and version, which are data.
fn refuse_arguments(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Styles only where stdout is a terminal.
            let _ = error.print();
            ExitCode::from(FINISHED)
        }
        _ => {
            let text = error.render().to_string().replace("\n  tip: ", "\nhint: ");
            let text = text.replace("For more information, try '--help'.", "");
            let text = cut(text.trim_end());
            let hint = match text.contains("\nhint: ") {
                true => hint_of_folder(error).unwrap_or_default(),
                false => hint_of_folder(error).unwrap_or_else(|| hint_for(error)),
            };
            let hint = match hint.is_empty() {
                true => hint,
                false => format!("\nhint: {}", cut(&hint)),
            };
            note(&format!("{text}{hint}"));
            ExitCode::from(USAGE)
        }
    }
}

/// The word that is neither a flag nor a command, where that is what is wrong.
fn strange_word(error: &clap::Error) -> Option<&str> {
    let kinds = [ContextKind::InvalidSubcommand, ContextKind::InvalidArg];
    let is_strange = matches!(
        error.kind(),
        ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument
    );
    match kinds.into_iter().find_map(|kind| error.get(kind))? {
        ContextValue::String(word) if is_strange && !word.starts_with('-') => Some(word),
        _ => None,
    }
}

/// What to do where the name of a crawl's directory was typed alone.
fn hint_of_folder(error: &clap::Error) -> Option<String> {
    let word = strange_word(error)?;
    let is_crawl = Path::new(word).join("crawl.toml").is_file();
    is_crawl.then(|| format!("`crawl --output {word}` goes on with the crawl in it"))
}

/// What to do about a command line that clap has no advice for.
fn hint_for(error: &clap::Error) -> String {
    let command = args::command();
    let first = std::env::args().nth(1).unwrap_or_default();
    if let Some(command) = command.find_subcommand(&first) {
        let name = command.get_name();
        return format!("`crawl {name} --help` lists what it takes");
    }
    let Some(word) = strange_word(error) else {
        return "`crawl --help` lists flags and commands".to_owned();
    };
    let names = command.get_subcommands().map(clap::Command::get_name);
    let names = names.map(|name| (strsim::jaro_winkler(word, name), name));
    let nearest = names.max_by(|(a, _), (b, _)| a.total_cmp(b));
    match nearest.filter(|(likeness, _)| *likeness > 0.75) {
        Some((_, name)) => format!("the nearest command is `{name}`; `crawl help` lists all"),
        None => format!(
            "`crawl help` lists flags and commands; a seed is a URL or a host with a dot, such as `https://{word}/`"
        ),
    }
}
