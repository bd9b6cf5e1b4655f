//! Log lines as JSON objects: `at`, `level`, `message`, the event's fields, and the fields of its
//! exchange and host.

use std::fmt::{self, Debug};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// Key of an event's time in a JSON log line.
const AT: &str = "at";
const LEVEL: &str = "level";

/// Formats an event as a whole JSON log line.
pub(super) struct JsonLogFormatter;

/// Formats an event's fields as the members of a JSON object, without braces.
pub(super) struct JsonFieldsFormatter;

impl<S> FormatEvent<S, JsonFieldsFormatter> for JsonLogFormatter
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFieldsFormatter>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = JsonFieldVisitor::default();
        for span in context.event_scope().into_iter().flatten() {
            // Skip the span of the crawl. A process runs only one crawl, so this span's fields
            // would be the same on every line.
            if span.name() != "crawl"
                && let Some(of_span) = span
                    .extensions()
                    .get::<FormattedFields<JsonFieldsFormatter>>()
            {
                let members = serde_json::from_str(&format!("{{{}}}", of_span.fields));
                fields.0.extend::<Map<_, _>>(members.unwrap_or_default());
            }
        }
        event.record(&mut fields);
        let mut at = String::new();
        SystemTime.format_time(&mut Writer::new(&mut at))?;
        let level = event.metadata().level().as_str();
        let mut object = Map::new();
        object.insert(AT.to_owned(), at.into());
        object.insert(LEVEL.to_owned(), level.into());
        for (name, value) in fields.0 {
            object.entry(name).or_insert(value);
        }
        writeln!(line, "{}", Value::Object(object))
    }
}

impl<'writer> FormatFields<'writer> for JsonFieldsFormatter {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        recorded: R,
    ) -> fmt::Result {
        writer.write_str(&members(&recorded))
    }

    fn add_fields(
        &self,
        current: &'writer mut FormattedFields<Self>,
        recorded: &tracing::span::Record<'_>,
    ) -> fmt::Result {
        // `recorded` may contain nothing, e.g. if the value is an `Option` that is `None`. In that
        // case, don't add a comma.
        let more = members(recorded);
        if !current.fields.is_empty() && !more.is_empty() {
            current.fields.push(',');
        }
        current.fields.push_str(&more);
        Ok(())
    }
}

fn members(recorded: &impl RecordFields) -> String {
    let mut fields = JsonFieldVisitor::default();
    recorded.record(&mut fields);
    let object = Value::Object(fields.0).to_string();
    object[1..object.len() - 1].to_owned()
}

/// Collects fields as members of an object.
#[derive(Default)]
struct JsonFieldVisitor(Map<String, Value>);

impl JsonFieldVisitor {
    fn note(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for JsonFieldVisitor {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.note(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.note(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.note(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.note(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.note(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.note(field, format!("{value:?}"));
    }
}
