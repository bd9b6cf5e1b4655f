//! The crawler's command: arguments, settings, signals, progress, exit codes.
//!
//! `crawl --seed URL` builds the settings from flags, environment and files, checks them,
//! hands them to `crawl-engine` and shows how it goes; the other commands answer questions
//! about robots.txt files, pages and finished crawls. Data goes to stdout, everything else
//! to stderr. What a library could know is not known here.

mod args;
mod control;
mod day_hours;
mod export;
mod index;
mod inspect;
mod job;
mod name_server;
mod period;
mod records;
mod refusal;
mod robots;
mod rounds;
mod screen;
mod search;
mod serve;
mod settings;
mod signals;
mod units;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::error::ErrorKind;

use args::{Cli, Command, ConfigArgs, JobArgs};
use refusal::{FINISHED, Refusal, USAGE};
use screen::print;
use settings::{Surroundings, defaults_listing, effective, gather};

fn main() -> ExitCode {
    let cli = match args::parse() {
        Ok(cli) => cli,
        Err(error) => return refuse_arguments(&error),
    };
    match run(cli) {
        Ok(code) => ExitCode::from(code),
        Err(refusal) => {
            // Nobody is left to tell if stderr is gone too.
            let _ = writeln!(io::stderr(), "{refusal}");
            refusal.exit_code()
        }
    }
}

fn run(cli: Cli) -> Result<u8, Refusal> {
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

fn gathered(job: JobArgs) -> Result<settings::Settings, Refusal> {
    gather(
        job.layer,
        job.config.as_deref(),
        &Surroundings::of_process(),
    )
}

fn config(args: ConfigArgs) -> Result<u8, Refusal> {
    if args.effective {
        return print(effective(&gathered(args.job)?).as_bytes());
    }
    print(defaults_listing().as_bytes())
}

/// The main page, then one section per command.
fn man() -> Result<u8, Refusal> {
    let mut page = Vec::new();
    clap_mangen::Man::new(args::command())
        .render(&mut page)
        .map_err(|why| Refusal::disk(format!("can't write the manual page: {why}")))?;
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
            let text = text.trim_end();
            let hint = match text.contains("\nhint: ") {
                true => "",
                false => "\nhint: `crawl --help` lists flags and commands",
            };
            let _ = writeln!(io::stderr(), "{text}{hint}");
            ExitCode::from(USAGE)
        }
    }
}
