//! Parses `Content-Type` values.

use std::borrow::Cow;

use crate::collapsed_text_builder::trim;

/// Returns the `Content-Type` that applies, from the values of all fields with this name. `None` if
/// there is no field.
///
/// The last valid value applies. If it names no charset, it inherits that of an earlier value for
/// the same media type (Fetch Standard, "extract a MIME type"). A single value is returned even if
/// it is invalid.
#[must_use]
pub fn effective_content_type<'a>(
    fields: impl IntoIterator<Item = &'a [u8]>,
) -> Option<Cow<'a, str>> {
    let mut fields = fields.into_iter().map(String::from_utf8_lossy);
    let first = fields.next()?;
    let joined = fields.fold(first, |joined, field| joined + ", " + field);
    if !joined.contains(',') {
        return Some(joined);
    }
    let mut applies: Option<(&str, String, Option<&str>)> = None;
    for value in comma_separated(&joined) {
        let Some(essence) = essence(Some(value)) else {
            continue;
        };
        let inherited = applies.take().filter(|(_, earlier, _)| *earlier == essence);
        let charset = charset_parameter(value).or(inherited.and_then(|(_, _, charset)| charset));
        applies = Some((value, essence, charset));
    }
    match applies {
        Some((value, _, Some(charset))) if charset_parameter(value).is_none() => {
            Some(Cow::Owned(format!("{value}; charset={charset}")))
        }
        Some((value, ..)) => Some(Cow::Owned(value.to_owned())),
        None => Some(joined),
    }
}

/// Splits at commas outside of quotes.
fn comma_separated(values: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let separator = move |c: char| {
        is_quoted ^= c == '"';
        c == ',' && !is_quoted
    };
    values.split(separator).map(trim)
}

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

#[cfg(test)]
mod tests {
    use super::effective_content_type;

    #[test]
    fn the_last_valid_content_type_applies() {
        for (fields, applies) in [
            (&["text/html"][..], "text/html"),
            (&["TEXT/html; charset=gbk"], "TEXT/html; charset=gbk"),
            (&["nonsense"], "nonsense"),
            (
                &["text/plain", "text/html; charset=utf-8"],
                "text/html; charset=utf-8",
            ),
            (&["text/plain, text/html"], "text/html"),
            (&["text/html", ""], "text/html"),
            (&["text/html, nonsense"], "text/html"),
            (&["text/html", "*/*"], "text/html"),
            (
                &["text/html; charset=gbk, text/html"],
                "text/html; charset=gbk",
            ),
            (&["text/html; charset=gbk", "text/plain"], "text/plain"),
            (
                &["text/html; charset=gbk, text/plain, text/html"],
                "text/html",
            ),
            (&[r#"text/html; a="x, y/z""#], r#"text/html; a="x, y/z""#),
        ] {
            let values = fields.iter().map(|field| field.as_bytes());
            assert_eq!(
                effective_content_type(values).as_deref(),
                Some(applies),
                "{fields:?}"
            );
        }
        assert_eq!(effective_content_type([]), None);
    }
}
