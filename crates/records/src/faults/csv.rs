//! Formats faults as CSV (RFC 4180), one line per link.

use std::borrow::Cow;

use crawl_weburl::safe_line;

use super::Faults;

/// The names of the columns.
const COLUMNS: &str = "page,kind,target,outcome,status,error,text\r\n";

impl Faults {
    /// Formats faults and unchecked links as CSV. The kind of an unchecked link is `not-checked`.
    /// The page of a broken seed is empty.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut csv = COLUMNS.to_owned();
        for fault in &self.faults {
            let status = fault.status.map(|status| status.to_string());
            push_line(
                [
                    fault.page.as_deref(),
                    Some(&fault.kind.to_string()),
                    Some(&fault.to),
                    Some(&fault.why),
                    status.as_deref(),
                    fault.error.as_deref(),
                    fault.text.as_deref(),
                ],
                &mut csv,
            );
        }
        for link in &self.unchecked {
            push_line(
                [
                    Some(&link.page),
                    Some("not-checked"),
                    Some(&link.to),
                    Some(link.why()),
                    None,
                    Some(&link.reason),
                    link.text.as_deref(),
                ],
                &mut csv,
            );
        }
        csv
    }
}

fn push_line(fields: [Option<&str>; 7], csv: &mut String) {
    for (at, field) in fields.into_iter().enumerate() {
        if at > 0 {
            csv.push(',');
        }
        csv.push_str(&quoted(&safe_line(field.unwrap_or_default())));
    }
    csv.push_str("\r\n");
}

fn quoted(field: &str) -> Cow<'_, str> {
    match field.contains([',', '"', '\r', '\n']) {
        true => Cow::Owned(format!("\"{}\"", field.replace('"', "\"\""))),
        false => Cow::Borrowed(field),
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn rfc4180_2_6_fields_with_separators_are_quoted() {
        for (field, expected) in [
            ("plain text", "plain text"),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("two\nlines", "\"two\nlines\""),
        ] {
            assert_eq!(quoted(field), expected);
        }
    }
}
