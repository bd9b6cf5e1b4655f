//! The log: on stderr as far as `-v` asks, and in the file of `--log`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::sync::Mutex;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

use super::Terminal;
use crate::error::CommandError;
use crate::settings::Settings;

/// The crates whose log lines `-v` is about; others are heard from a warning on.
const OURS: [&str; 11] = [
    "crawl",
    "crawl_archive",
    "crawl_engine",
    "crawl_extractor",
    "crawl_fetcher",
    "crawl_frontier",
    "crawl_policy",
    "crawl_records",
    "crawl_scheduler",
    "crawl_testweb",
    "crawl_weburl",
];

/// Starts to log; to be called once.
pub(crate) fn start_log(settings: &Settings, terminal: &Terminal) -> Result<(), CommandError> {
    let display = &settings.display;
    let stderr_level = match display.verbose {
        _ if display.quiet.is_on() => LevelFilter::ERROR,
        0 => LevelFilter::WARN,
        // Each exchange is told at this level.
        1 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let on_stderr = fmt::layer()
        .with_ansi(false)
        .with_writer(terminal.clone())
        .with_target(display.verbose > 1)
        .with_filter(from(stderr_level));
    let in_file = match display.log.is_empty() {
        true => None,
        false => {
            let path = &display.log.0;
            let file = OpenOptions::new().create(true).append(true).open(path);
            let file = file.map_err(|why| {
                CommandError::usage(format!("can't write the log `{}`: {why}", path.display()))
                    .hint("give --log a file in a directory that exists")
            })?;
            let layer = fmt::layer()
                .with_ansi(false)
                .with_writer(Mutex::new(file))
                .with_filter(from(stderr_level.max(LevelFilter::DEBUG)));
            Some(layer)
        }
    };
    tracing_subscriber::registry()
        .with(on_stderr)
        .with(in_file)
        .try_init()
        .map_err(|why| CommandError::disk(format!("can't start the log: {why}")))
}

fn from(level: LevelFilter) -> Targets {
    Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_targets(OURS.map(|name| (name, level)))
}

impl<'a> MakeWriter<'a> for Terminal {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line {
            terminal: self,
            text: Vec::new(),
        }
    }
}

/// A log line on its way to the terminal, written when whole.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    terminal: &'a Terminal,
    text: Vec<u8>,
}

impl Write for Line<'_> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        if !self.text.is_empty() {
            self.terminal.write(&self.text);
        }
    }
}
