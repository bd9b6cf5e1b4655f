//! The `Content-Type` of a document, as its header says it.

use crate::text::trim;

/// The type without its parameters, in lower case; `None` where the header says nothing: it
/// is empty, no type at all, or one of those that servers send for "unknown" (MIME Sniffing
/// Standard, section 7).
pub(crate) fn essence(content_type: Option<&str>) -> Option<String> {
    let essence = content_type?.split([';', ',']).next().unwrap_or_default();
    let essence = trim(essence);
    let none = ["unknown/unknown", "application/unknown", "*/*"];
    let says = essence.contains('/') && !none.iter().any(|none| essence.eq_ignore_ascii_case(none));
    says.then(|| essence.to_ascii_lowercase())
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

/// The first `charset` parameter of a content type, unquoted.
pub(crate) fn charset_parameter(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = trim(value);
        let value = match value.strip_prefix(['"', '\'']) {
            Some(quoted) => quoted.split(['"', '\'']).next().unwrap_or(quoted),
            // Two headers joined by a comma, as some servers send.
            None => value.split(',').next().unwrap_or(value),
        };
        trim(name)
            .eq_ignore_ascii_case("charset")
            .then_some(trim(value))
    })
}
