//! The log: on stderr at the level set by `-v`, and in the file of `--log`.

use std::io::{self, Write};
use std::sync::Mutex;

use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{self, DefaultFields, FormatEvent, FormatFields};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormattedFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, fmt};

use super::Terminal;
use super::json_log::{JsonFieldsFormatter, JsonLogFormatter};
use super::log_file::LogFile;
use crate::error::CommandError;
use crate::settings::{Display, LogFormatChoice, Settings};

/// Prefix of our crates' names, to which `-v` applies. Other crates log only warnings and errors.
const OURS: &str = "crawl";

/// Starts logging. Must be called at most once.
pub(crate) fn start_log(settings: &Settings, terminal: &Terminal) -> Result<(), CommandError> {
    let display = &settings.display;
    let stderr_level = match display.verbose {
        _ if display.quiet.is_on() => LevelFilter::ERROR,
        0 => LevelFilter::WARN,
        // `-v` logs exchanges, `-vv` decisions too.
        1 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let on_stderr = fmt::layer()
        .with_ansi(false)
        .event_format(TextLogFormatter)
        .with_writer(terminal.clone())
        .with_filter(from(stderr_level));
    let in_file = match display.log.is_empty() {
        true => None,
        false => {
            let level = stderr_level.max(LevelFilter::DEBUG);
            Some(file_layer(display, level, terminal.clone())?)
        }
    };
    tracing_subscriber::registry()
        .with(on_stderr)
        .with(in_file)
        .try_init()
        .map_err(|why| CommandError::disk(format!("can't start logging: {why}")))
}

/// Returns the layer that writes to the file of `--log`.
fn file_layer<S>(
    display: &Display,
    level: LevelFilter,
    terminal: Terminal,
) -> Result<Box<dyn Layer<S> + Send + Sync>, CommandError>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let path = &display.log.0;
    let max_bytes = display.log_max_size.0.map(|size| size.0);
    let warn = move |what: &str| terminal.insist(what);
    let file = LogFile::open(path, max_bytes, display.log_keep, warn).map_err(|why| {
        CommandError::usage(format!(
            "can't write to the log `{}`: {why}",
            path.display()
        ))
        .hint("set --log to a file in an existing directory")
    })?;
    let layer = fmt::layer().with_ansi(false).with_writer(Mutex::new(file));
    Ok(match display.log_format {
        LogFormatChoice::Text => layer
            .fmt_fields(LogFileFieldsFormatter::default())
            .event_format(TextLogFormatter)
            .with_filter(from(level))
            .boxed(),
        LogFormatChoice::Json => layer
            .fmt_fields(JsonFieldsFormatter)
            .event_format(JsonLogFormatter)
            .with_filter(from(level))
            .boxed(),
    })
}

fn from(level: LevelFilter) -> Targets {
    Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_target(OURS, level)
        // Silence this crate, because the records and the report already name certificates that
        // can't be verified.
        .with_target("rustls_platform_verifier", LevelFilter::OFF)
}

/// Formats fields for the log file as [`DefaultFields`] does on stderr. A separate type is needed,
/// because a span stores its formatted fields by the type of the formatter. With the same type,
/// both outputs would append to the same text, and each field would appear twice.
#[derive(Debug, Default)]
struct LogFileFieldsFormatter(DefaultFields);

impl<'writer> FormatFields<'writer> for LogFileFieldsFormatter {
    fn format_fields<R: RecordFields>(
        &self,
        line: format::Writer<'writer>,
        fields: R,
    ) -> std::fmt::Result {
        self.0.format_fields(line, fields)
    }
}

/// Formats a line as the message, its fields, and the fields of the spans around it (exchange and
/// host).
struct TextLogFormatter;

impl<S, N> FormatEvent<S, N> for TextLogFormatter
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut line: format::Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        SystemTime.format_time(&mut line)?;
        write!(line, " {:>5} ", event.metadata().level())?;
        context.format_fields(line.by_ref(), event)?;
        let spans = context.event_scope().into_iter().flatten();
        // Skip the span of the crawl. A process runs only one crawl, so this span's fields would be
        // the same on every line.
        for span in spans.filter(|span| span.name() != "crawl") {
            if let Some(fields) = span.extensions().get::<FormattedFields<N>>() {
                write!(line, " {fields}")?;
            }
        }
        writeln!(line)
    }
}

impl<'a> MakeWriter<'a> for Terminal {
    type Writer = LogLineWriter<'a>;

    fn make_writer(&'a self) -> LogLineWriter<'a> {
        LogLineWriter {
            terminal: self,
            text: Vec::new(),
        }
    }
}

/// Collects a log line, and writes it to the terminal on drop.
#[derive(Debug)]
pub(crate) struct LogLineWriter<'a> {
    terminal: &'a Terminal,
    text: Vec<u8>,
}

impl Write for LogLineWriter<'_> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LogLineWriter<'_> {
    fn drop(&mut self) {
        if !self.text.is_empty() {
            self.terminal.write(&self.text);
        }
    }
}
