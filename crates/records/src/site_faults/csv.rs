//! Formats faults as CSV (RFC 4180), one line per link.

use std::borrow::Cow;

use crawl_weburl::safe_line;

use super::SiteFaultReport;

/// The names of the columns.
const COLUMNS: &str = "page,kind,target,outcome,status,error,text\r\n";

impl SiteFaultReport {
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
        let field = safe_line(field.unwrap_or_default());
        // Put a `'` before the field, because a spreadsheet would run it as a formula, and it may
        // come from a hostile page.
        if field.starts_with(['=', '+', '-', '@']) {
            csv.push_str(&quoted(&format!("'{field}")));
        } else {
            csv.push_str(&quoted(&field));
        }
    }
    csv.push_str("\r\n");
}

fn quoted(field: &str) -> Cow<'_, str> {
    match field.contains([',', '"']) {
        true => Cow::Owned(format!("\"{}\"", field.replace('"', "\"\""))),
        false => Cow::Borrowed(field),
    }
}

#[cfg(test)]
mod tests {
    use super::{push_line, quoted};

    #[test]
    fn a_text_is_no_formula_and_has_no_line_break() {
        let mut csv = String::new();
        let fields = [Some("=HYPERLINK(\"x\")"), Some("a\nb"), Some("-1"), None];
        push_line(
            [fields[0], fields[1], fields[2], None, None, None, None],
            &mut csv,
        );
        assert_eq!(csv.lines().count(), 1, "{csv}");
        assert!(csv.starts_with("\"'=HYPERLINK(\"\"x\"\")\","), "{csv}");
        assert!(csv.contains(",'-1,"), "{csv}");
    }

    #[test]
    fn rfc4180_2_6_fields_with_separators_are_quoted() {
        for (field, expected) in [
            ("plain text", "plain text"),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
        ] {
            assert_eq!(quoted(field), expected);
        }
    }
}
