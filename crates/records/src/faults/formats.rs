//! Formats faults as text, JSON lines, JUnit, GitHub annotations and HTML.

use std::fmt::{self, Display, Write as _};

use crawl_weburl::safe_line;
use maud::html;

use super::{Fault, FaultKind, Faults};
use crate::html::{checks, page};
use crate::numbers::{counted, grouped};
use crate::to_fix::of_links;

/// Width of the column that shows the kind of fault.
const KIND_WIDTH: usize = 13;

/// Formats the faults as text, grouped by page.
impl Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head(f)?;
        let mut last = None;
        for fault in &self.faults {
            if last != Some(&fault.page) {
                writeln!(f, "\n{}", page_name(fault))?;
                last = Some(&fault.page);
            }
            let kind = fault.kind.to_string();
            write!(
                f,
                "  {kind:<KIND_WIDTH$}  {}  {}",
                fault.to,
                safe_line(&fault.why)
            )?;
            if let Some(text) = &fault.text {
                write!(f, "  \"{}\"", safe_line(text))?;
            }
            writeln!(f)?;
        }
        if self.source != "archive" {
            writeln!(
                f,
                "\nno archive was kept: only links to broken pages are known\nhint: crawl with \
                 `--warc on`"
            )?;
        }
        if self.unread > 0 {
            let pages = counted(self.unread, "page is", "pages are");
            writeln!(f, "\n{pages} not in the archive and may have more faults")?;
        }
        Ok(())
    }
}

impl Faults {
    fn head(&self, f: &mut impl fmt::Write) -> fmt::Result {
        let new = if self.known > 0 { "new " } else { "" };
        match self.faults.len() as u64 {
            0 => write!(f, "no {new}faults")?,
            count => {
                write!(
                    f,
                    "{} {new}{}",
                    grouped(count),
                    if count == 1 { "fault" } else { "faults" }
                )?;
                let counts = self.counts.iter();
                let counts = counts.map(|(kind, count)| format!("{kind} {}", grouped(*count)));
                write!(f, ": {}", counts.collect::<Vec<_>>().join(", "))?;
            }
        }
        if self.known > 0 {
            write!(f, " ({} known)", grouped(self.known))?;
        }
        writeln!(f)
    }

    /// Formats each fault as a line of JSON, which is also the format of a baseline.
    #[must_use]
    pub fn json_lines(&self) -> String {
        let mut lines = String::new();
        for fault in &self.faults {
            lines.push_str(&serde_json::to_string(fault).unwrap_or_default());
            lines.push('\n');
        }
        lines
    }

    /// Formats JUnit XML for continuous integration: one failed test per fault, or one passed test
    /// if there are none.
    #[must_use]
    pub fn junit(&self) -> String {
        let count = self.faults.len();
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let tests = count.max(1);
        let _ = writeln!(
            xml,
            "<testsuites tests=\"{tests}\" failures=\"{count}\">\n  <testsuite name=\"crawl\" \
             tests=\"{tests}\" failures=\"{count}\" errors=\"0\" skipped=\"0\">"
        );
        if count == 0 {
            xml.push_str("    <testcase classname=\"crawl\" name=\"no fault\"/>\n");
        }
        for fault in &self.faults {
            let (page, to) = (xml_text(&page_name(fault)), xml_text(&fault.to));
            let (kind, why) = (fault.kind, xml_text(&fault.why));
            let _ = writeln!(
                xml,
                "    <testcase classname=\"{page}\" name=\"{kind}: {to}\">\n      <failure \
                 type=\"{kind}\" message=\"{why}\">{to} on {page}: {why}</failure>\n    </testcase>"
            );
        }
        xml.push_str("  </testsuite>\n</testsuites>\n");
        xml
    }

    /// Formats workflow commands that show annotations on GitHub: a warning for a redirect, an
    /// error for any other fault.
    #[must_use]
    pub fn github(&self) -> String {
        let mut lines = String::new();
        for fault in &self.faults {
            let level = match fault.kind {
                FaultKind::Redirect => "warning",
                _ => "error",
            };
            let title = command_value(&fault.kind.to_string());
            let text = format!("{} on {}: {}", fault.to, page_name(fault), fault.why);
            let _ = writeln!(lines, "::{level} title={title}::{}", command_text(&text));
        }
        lines
    }

    /// Renders a self-contained page with the pages to fix by target, and a grade for each kind of
    /// link.
    #[must_use]
    pub fn html(&self) -> String {
        let mut head = String::new();
        let _ = self.head(&mut head);
        let body = html! {
            p.sums { (head.trim_end()) }
            @if self.source != "archive" {
                p { "No archive was kept: only links to broken pages are known, and nothing is graded." }
            }
            @if self.unread > 0 {
                p { (counted(self.unread, "page is", "pages are")) " not in the archive and may have more faults." }
            }
            h2 { "What to fix" }
            (checks(&of_links(self, None)))
        };
        page("Faults", &body)
    }
}

fn page_name(fault: &Fault) -> String {
    fault.page.clone().unwrap_or_else(|| "(a seed)".to_owned())
}

/// Escapes text for XML 1.0, without the characters that XML can't represent.
fn xml_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in safe_line(text).chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => {}
            c => escaped.push(c),
        }
    }
    escaped
}

/// Escapes the text of a workflow command, including line breaks, which would start another
/// command.
fn command_text(text: &str) -> String {
    let text = text.replace('%', "%25");
    text.replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property value of a workflow command.
fn command_value(text: &str) -> String {
    command_text(text).replace(':', "%3A").replace(',', "%2C")
}
