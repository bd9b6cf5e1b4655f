//! Reads requests with their header fields from the lines of a log.

use crawl_identity::SignableMessage;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::combined_log_format;
use super::logged_request::LoggedRequest;

/// Reads a line of a log: JSON, or the format of [`combined_log_format`]. `None` if the line
/// doesn't describe a request.
pub(super) fn read(line: &str) -> Option<LoggedRequest> {
    match line.trim_start().starts_with('{') {
        true => read_json(line),
        false => combined_log_format::read(line),
    }
}

/// Reads a JSON object.
///
/// The fields of the request are in the object itself or in its member `request`, as in Caddy's
/// log. The header fields are in a member `headers` or `request_headers`, each a string or a list
/// of strings. Alternatively, each header field is a member named like nginx's variable for it,
/// such as `http_signature_input`.
fn read_json(line: &str) -> Option<LoggedRequest> {
    let Value::Object(line) = serde_json::from_str(line).ok()? else {
        return None;
    };
    let request = match line.get("request") {
        Some(Value::Object(request)) => request,
        _ => &line,
    };
    let mut fields = header_fields(request);
    if fields.is_empty() {
        fields = header_fields(&line);
    }
    let text = |names: &[&str]| {
        let mut values = names.iter().filter_map(|name| request.get(*name)?.as_str());
        values.next().unwrap_or_default().to_owned()
    };
    let mut message = SignableMessage {
        method: text(&["method", "request_method"]),
        scheme: text(&["scheme", "request_scheme"]),
        authority: text(&["host", "http_host", "authority"]),
        target: text(&["uri", "request_uri", "target", "path"]),
        fields,
        is_response: false,
    };
    if message.authority.is_empty() {
        message.authority = message.field("host")?;
    }
    let has_headers =
        |object: &Map<String, Value>| HEADERS.iter().any(|name| object.contains_key(*name));
    Some(LoggedRequest {
        at: begun(&line),
        is_whole: has_headers(request) || has_headers(&line),
        message,
    })
}

/// Names of the JSON members that may hold all header fields of a request.
const HEADERS: [&str; 2] = ["headers", "request_headers"];

fn header_fields(object: &Map<String, Value>) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    let headers = HEADERS.iter();
    for (name, value) in headers
        .filter_map(|name| object.get(*name)?.as_object())
        .flatten()
    {
        push(&mut fields, name, value);
    }
    for (name, value) in object {
        if let Some(name) = name.strip_prefix("http_") {
            push(&mut fields, &name.replace('_', "-"), value);
        }
    }
    fields
}

/// Adds the values of a header field. Skips `-` and empty values, which nginx writes for a missing
/// field.
fn push(fields: &mut Vec<(String, String)>, name: &str, value: &Value) {
    let values = match value {
        Value::Array(values) => values.as_slice(),
        value => std::slice::from_ref(value),
    };
    let texts = values.iter().filter_map(Value::as_str);
    let texts = texts.filter(|text| !matches!(*text, "" | "-"));
    fields.extend(texts.map(|text| (name.to_owned(), text.to_owned())));
}

/// Returns when the request arrived, in seconds since 1970. A server writes the line when the
/// response ends, so the duration of the response is subtracted from the line's time.
fn begun(line: &Map<String, Value>) -> Option<u64> {
    let names = [
        "ts",
        "time",
        "timestamp",
        "time_iso8601",
        "msec",
        "@timestamp",
    ];
    let mut values = names.iter().filter_map(|name| line.get(*name));
    let logged = values.find_map(|value| match value {
        Value::String(text) if text.parse::<f64>().is_err() => {
            Some(text.parse::<Timestamp>().ok()?.as_second() as f64)
        }
        value => number(value),
    })?;
    let mut took = ["duration", "request_time"].iter();
    let took = took.find_map(|name| number(line.get(*name)?));
    let begun = logged - took.filter(|took| *took > 0.0).unwrap_or(0.0);
    // The cast clamps a time that is out of range.
    (begun >= 0.0).then_some(begun as u64)
}

/// Returns a JSON number, or parses a JSON string as a number.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_line_of_caddy_nginx_or_plain_json_is_a_request() {
        for line in [
            r#"{"ts":1700000000.5,"request":{"method":"GET","host":"e.example","uri":"/a?b",
                "headers":{"Signature-Input":["sig1=()"],"Accept":["*/*"]}},"status":200}"#,
            r#"{"msec":"1700000000.123","request_method":"GET","http_host":"e.example",
                "request_uri":"/a?b","http_signature_input":"sig1=()","http_accept":"*/*",
                "http_from":"-"}"#,
            r#"{"time":"2023-11-14T22:13:20+00:00","method":"GET","path":"/a?b",
                "headers":{"host":"e.example","signature-input":"sig1=()","accept":"*/*"}}"#,
        ] {
            let read = read(line).unwrap();
            assert_eq!(read.at, Some(1_700_000_000), "{line}");
            assert_eq!(read.message.authority, "e.example");
            assert_eq!(
                (read.message.method, read.message.target),
                ("GET".into(), "/a?b".into())
            );
            assert!(read.message.fields.iter().any(|(name, value)| {
                name.eq_ignore_ascii_case("signature-input") && value == "sig1=()"
            }));
        }
    }

    #[test]
    fn a_request_came_before_its_response_was_sent() {
        let caddy = r#"{"ts":1700000090.5,"duration":90.4,"request":{"host":"e.example"}}"#;
        let nginx = r#"{"msec":"1700000001.100","request_time":"1.050","http_host":"e.example"}"#;
        for line in [caddy, nginx] {
            let read = read(line).unwrap();
            assert_eq!(read.at, Some(1_700_000_000), "{line}");
        }
    }

    #[test]
    fn other_lines_are_no_requests() {
        for line in [
            "",
            "GET /",
            "[]",
            "{}",
            r#"{"method":"GET"}"#,
            r#"{"request":7}"#,
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
