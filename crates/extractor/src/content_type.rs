//! Parses `Content-Type` values.

use crate::collapsed_text_builder::trim;

/// Returns the media type in a `Content-Type` value, without its parameters and in lower case.
/// `None` if the value is empty, malformed, or a type that servers send for content of unknown type
/// (MIME Sniffing Standard, section 7).
#[must_use]
pub fn essence(content_type: Option<&str>) -> Option<String> {
    let essence = content_type?.split([';', ',']).next().unwrap_or_default();
    let essence = trim(essence);
    let unknown_types = ["unknown/unknown", "application/unknown", "*/*"];
    let is_known = essence.contains('/')
        && !unknown_types
            .iter()
            .any(|unknown| essence.eq_ignore_ascii_case(unknown));
    is_known.then(|| essence.to_ascii_lowercase())
}

/// Returns whether a type is `text/html` or `application/xhtml+xml`.
pub(crate) fn is_html_type(essence: &str) -> bool {
    matches!(essence, "text/html" | "application/xhtml+xml")
}

/// Returns whether a type is XML (MIME Sniffing Standard, section 4.6).
pub(crate) fn is_xml_type(essence: &str) -> bool {
    essence.ends_with("+xml") || matches!(essence, "text/xml" | "application/xml")
}

/// Returns whether a type is JSON (MIME Sniffing Standard, section 4.6).
pub(crate) fn is_json_type(essence: &str) -> bool {
    essence.ends_with("+json") || matches!(essence, "application/json" | "text/json")
}

/// Returns the first `charset` parameter of a content type, unquoted.
pub(crate) fn charset_parameter(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = trim(value);
        let value = match value.strip_prefix(['"', '\'']) {
            Some(quoted) => quoted.split(['"', '\'']).next().unwrap_or(quoted),
            // Some servers join two values by a comma: use the first.
            None => value.split(',').next().unwrap_or(value),
        };
        trim(name)
            .eq_ignore_ascii_case("charset")
            .then_some(trim(value))
    })
}
