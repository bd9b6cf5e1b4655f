//! `crawl conformance`: judges whether a crawler keeps the rules of the web.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crawl_conformance::{
    CheckError, CheckOptions, Clause, ClauseOutcome, ConformanceReport, CrawlerUnderTest,
    JudgedClause, OutcomeCounts, check, clauses,
};

use crate::child_process_without_secrets;
use crate::cli::conformance::{ConformanceArgs, ConformanceFormat};
use crate::error::{CHECK_FAILED, CommandError, FINISHED, INTERRUPTED};
use crate::settings::check_agent;
use crate::terminal::{note, print, print_as_is, print_json_lines};

/// Whether SIGINT, SIGTERM or SIGHUP has arrived.
static STOP: AtomicBool = AtomicBool::new(false);

pub(crate) fn run(args: &ConformanceArgs) -> Result<u8, CommandError> {
    let wanted = wanted(&args.only)?;
    if args.list {
        return print(listing(&wanted).as_bytes());
    }
    check_agent(&args.token)?;
    check_words(&args.words)?;
    let (gap, timeout): (Duration, Duration) = (args.gap.get(), args.timeout.get());
    if timeout.is_zero() {
        return Err(CommandError::usage("--timeout 0s leaves COMMAND no time").hint("try 1m"));
    }
    stop_on_signals()?;
    let subject = CrawlerUnderTest {
        words: &args.words,
        again: &args.again,
        token: &args.token,
        command: |program: &OsStr| -> Command { child_process_without_secrets::command(program) },
    };
    let setup = CheckOptions {
        clauses: &wanted,
        gap,
        timeout,
        jobs: args.jobs as usize,
        stop: &STOP,
    };
    let judged = match check(&subject, &setup, &progress) {
        Ok(judged) => judged,
        Err(CheckError::Interrupted) => return Ok(INTERRUPTED),
        Err(error) => return Err(refusal(&error)),
    };
    let words: Vec<_> = args
        .words
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    let report = ConformanceReport {
        command: words.join(" "),
        token: args.token.clone(),
        gap: gap.as_secs_f64(),
        timeout: timeout.as_secs_f64(),
        counts: OutcomeCounts::of(&judged),
        clauses: judged,
    };
    match args.format {
        ConformanceFormat::Text => print(report.to_string().as_bytes())?,
        ConformanceFormat::Json => print_json_lines(&report.json())?,
        ConformanceFormat::Junit => print(report.junit().as_bytes())?,
        ConformanceFormat::Html => print_as_is(report.html().as_bytes())?,
    };
    Ok(if report.has_failures() {
        CHECK_FAILED
    } else {
        FINISHED
    })
}

/// Returns the named clauses, or every clause if `only` is empty.
fn wanted(only: &[String]) -> Result<Vec<Clause>, CommandError> {
    if let Some(id) = only
        .iter()
        .find(|id| clauses().all(|clause| clause.id != **id))
    {
        let nearest = clauses()
            .max_by(|a, b| {
                strsim::jaro_winkler(a.id, id).total_cmp(&strsim::jaro_winkler(b.id, id))
            })
            .map_or("", |clause| clause.id);
        return Err(
            CommandError::usage(format!("there is no clause `{id}`")).hint(format!(
                "did you mean `{nearest}`? `crawl conformance --list` names all"
            )),
        );
    }
    let is_wanted = |clause: &Clause| only.is_empty() || only.iter().any(|id| id == clause.id);
    Ok(clauses().filter(is_wanted).collect())
}

fn listing(clauses: &[Clause]) -> String {
    let mut text = String::new();
    for clause in clauses {
        let _ = writeln!(
            text,
            "{:<22}  {:<6}  {} ({})",
            clause.id,
            clause.level.name(),
            clause.title,
            clause.source
        );
    }
    text
}

/// Rejects a command that seems to have no way to learn its start URL. A single word is accepted:
/// it may be a script that reads `CRAWL_URL`.
fn check_words(words: &[OsString]) -> Result<(), CommandError> {
    let names_start = |word: &OsString| {
        let word = word.to_string_lossy();
        word.contains("{url}") || word.contains("{host}")
    };
    // If an argument is a file or contains `CRAWL_URL`, the command may read the URL from the
    // environment. Otherwise, a missing placeholder is most likely a mistake.
    match words.len() > 1 && !words.iter().any(names_start) && !reads_environment(words) {
        true => Err(
            CommandError::usage("COMMAND has no `{url}`, so it can't know where to start")
                .hint("write `{url}` where the URL belongs, or `$CRAWL_URL` in a script"),
        ),
        false => Ok(()),
    }
}

fn reads_environment(words: &[OsString]) -> bool {
    let is_file = |word: &OsString| std::path::Path::new(word).is_file();
    words[1..]
        .iter()
        .any(|word| is_file(word) || word.to_string_lossy().contains("CRAWL_URL"))
}

/// Starts a thread that sets `STOP` on SIGINT, SIGTERM or SIGHUP. This ends the check and the
/// commands that it runs.
fn stop_on_signals() -> Result<(), CommandError> {
    use tokio::signal::unix::{SignalKind, signal};
    let failed = |why: std::io::Error| CommandError::disk(format!("can't wait for signals: {why}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let (mut interrupts, mut terminations, mut hangups) = {
        let _context = runtime.enter();
        (
            signal(SignalKind::interrupt()).map_err(failed)?,
            signal(SignalKind::terminate()).map_err(failed)?,
            signal(SignalKind::hangup()).map_err(failed)?,
        )
    };
    thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupts.recv() => {}
                _ = terminations.recv() => {}
                _ = hangups.recv() => {}
            }
        });
        STOP.store(true, Ordering::Relaxed);
    });
    Ok(())
}

fn progress(judged: &JudgedClause) {
    let word = match judged.verdict.outcome {
        ClauseOutcome::Pass => "pass",
        ClauseOutcome::Fail => "FAIL",
        ClauseOutcome::NotShown => "not shown",
    };
    note(&format!("{word:<9}  {}", judged.id));
}

fn refusal(error: &CheckError) -> CommandError {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    let message = format!("{error}{}", cause.unwrap_or_default());
    match error {
        CheckError::Start { .. } => CommandError::usage(message).hint(
            "name a program that is in PATH, or its path: `crawl conformance -- ./crawler {url}`",
        ),
        _ => CommandError::disk(message).hint("each clause needs a few ports and temporary files"),
    }
}
