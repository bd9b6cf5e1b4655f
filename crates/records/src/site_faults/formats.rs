//! Formats faults as text, JSON lines, JUnit, GitHub annotations and HTML. The module `csv` formats
//! them as CSV.

use std::fmt::{self, Display, Write as _};

use crawl_weburl::safe_line;
use maud::{Markup, html};

use super::{FaultKind, PageFault, SiteFaultReport, UncheckedLink};
use crate::number_format::{counted, grouped};
use crate::reported_crawl::ReportedCrawlSummary;
use crate::self_contained_report_page::{HtmlTable, TableCell, checks, page};
use crate::site_problem_checks::{MAX_ROWS, left_out, of_links};

/// Width of the column that shows the kind of fault.
const KIND_WIDTH: usize = 13;

/// The kind shown for an unchecked link.
const NOT_CHECKED: &str = "not checked";

/// Formats the faults as text, grouped by page, then the redirects and the unchecked links.
impl Display for SiteFaultReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head(f)?;
        for (is_redirect, heading) in [(false, None), (true, Some("redirects to update"))] {
            let faults = self.faults.iter();
            let faults = faults.filter(|fault| (fault.kind == FaultKind::Redirect) == is_redirect);
            let lines = faults.map(|fault| FaultTextLine {
                page: page_name(fault),
                label: fault.kind.to_string(),
                to: &fault.to,
                why: &fault.why,
                text: fault.text.as_deref(),
                element: fault.element.as_deref(),
            });
            write_lines(f, heading, lines)?;
        }
        let unchecked = self.unchecked.iter().map(|link| FaultTextLine {
            page: link.page.clone(),
            label: NOT_CHECKED.to_owned(),
            to: &link.to,
            why: link.why(),
            text: link.text.as_deref(),
            element: None,
        });
        write_lines(f, Some("links not checked"), unchecked)?;
        if self.source != "archive" {
            writeln!(
                f,
                "\nno archive was kept: only links to broken pages are known\nhint: crawl with \
                 `--warc on`"
            )?;
        }
        if self.pending > 0 {
            let urls = counted(self.pending, "known URL was", "known URLs were");
            writeln!(f, "\n{urls} not visited, so there may be more faults")?;
        }
        if self.unread > 0 {
            let pages = counted(self.unread, "page", "pages");
            writeln!(
                f,
                "\n{pages} can't be read from the archive and may have more faults"
            )?;
        }
        if self.incomplete > 0 {
            let pages = counted(self.incomplete, "page was", "pages were");
            writeln!(f, "\n{pages} not read to the end and may have more faults")?;
        }
        Ok(())
    }
}

/// A line of the text format.
struct FaultTextLine<'a> {
    page: String,
    label: String,
    to: &'a str,
    why: &'a str,
    text: Option<&'a str>,
    element: Option<&'a str>,
}

/// Writes lines grouped by page, below the heading. Writes nothing if `lines` is empty.
fn write_lines<'a>(
    f: &mut fmt::Formatter<'_>,
    heading: Option<&str>,
    lines: impl Iterator<Item = FaultTextLine<'a>>,
) -> fmt::Result {
    let mut last = None;
    for line in lines {
        if let (None, Some(heading)) = (&last, heading) {
            writeln!(f, "\n{heading}:")?;
        }
        if last.as_ref() != Some(&line.page) {
            writeln!(f, "\n{}", safe_line(&line.page))?;
        }
        let (label, to) = (&line.label, safe_line(line.to));
        write!(f, "  {label:<KIND_WIDTH$}  {to}  {}", safe_line(line.why))?;
        if let Some(text) = line.text {
            write!(f, "  \"{}\"", safe_line(text))?;
        } else if let Some(element) = line.element {
            write!(f, "  ({element})")?;
        }
        writeln!(f)?;
        last = Some(line.page);
    }
    Ok(())
}

impl SiteFaultReport {
    /// Writes the number of faults of each kind, of redirects, and of unchecked links.
    fn head(&self, f: &mut impl fmt::Write) -> fmt::Result {
        let new = if self.known > 0 { "new " } else { "" };
        match self.failing() as u64 {
            0 => write!(f, "no {new}faults")?,
            count => {
                let faults = if count == 1 { "fault" } else { "faults" };
                write!(f, "{} {new}{faults}", grouped(count))?;
                let counts = self.counts.iter();
                let counts = counts.filter(|(kind, _)| **kind != FaultKind::Redirect);
                let counts = counts.map(|(kind, count)| format!("{kind} {}", grouped(*count)));
                write!(f, ": {}", counts.collect::<Vec<_>>().join(", "))?;
            }
        }
        if self.known > 0 {
            write!(f, " ({} known)", grouped(self.known))?;
        }
        let redirects = (self.faults.len() - self.failing()) as u64;
        let extra_counts = [
            (redirects, "redirect to update", "redirects to update"),
            (
                self.unchecked.len() as u64,
                "link not checked",
                "links not checked",
            ),
        ];
        for (count, one, many) in extra_counts.into_iter().filter(|(count, ..)| *count > 0) {
            write!(f, "; {}", counted(count, one, many))?;
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
    /// if there are none. Redirects and unchecked links are skipped tests.
    #[must_use]
    pub fn junit(&self) -> String {
        let mut cases = String::new();
        for fault in &self.faults {
            let page = xml_text(&page_name(fault));
            let (to, why) = (xml_text(&fault.to), xml_text(&fault.why));
            let kind = fault.kind;
            let result = match kind {
                FaultKind::Redirect => format!("<skipped message=\"{why}\"/>"),
                _ => format!(
                    "<failure type=\"{kind}\" message=\"{why}\">{to} on {page}: {why}</failure>"
                ),
            };
            push_case(&page, &format!("{kind}: {to}"), &result, &mut cases);
        }
        for link in &self.unchecked {
            let name = format!("{NOT_CHECKED}: {}", xml_text(&link.to));
            let result = format!("<skipped message=\"{}\"/>", xml_text(link.why()));
            push_case(&xml_text(&link.page), &name, &result, &mut cases);
        }
        let listed = self.faults.len() + self.unchecked.len();
        if listed == 0 {
            cases.push_str("    <testcase classname=\"crawl\" name=\"no fault\"/>\n");
        }
        let (tests, failures) = (listed.max(1), self.failing());
        let counts = format!("tests=\"{tests}\" failures=\"{failures}\"");
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  <testsuite \
             name=\"crawl\" {counts} errors=\"0\" skipped=\"{}\">\n{cases}  \
             </testsuite>\n</testsuites>\n",
            listed - failures
        )
    }

    /// Formats workflow commands that show annotations on GitHub: an error for a fault, a warning
    /// for a redirect, and a notice for an unchecked link.
    #[must_use]
    pub fn github(&self) -> String {
        let mut lines = String::new();
        let mut push = |level: &str, title: &str, text: &str| {
            let (title, text) = (command_value(title), command_text(text));
            let _ = writeln!(lines, "::{level} title={title}::{text}");
        };
        for fault in &self.faults {
            let level = match fault.kind {
                FaultKind::Redirect => "warning",
                _ => "error",
            };
            let text = format!("{} on {}: {}", fault.to, page_name(fault), fault.why);
            push(level, &fault.kind.to_string(), &text);
        }
        for link in &self.unchecked {
            let text = format!("{} on {}: {}", link.to, link.page, link.why());
            push("notice", NOT_CHECKED, &text);
        }
        lines
    }

    /// Renders a self-contained page with a grade for each kind of link, and the targets of faulty
    /// links, each with the pages to fix.
    #[must_use]
    pub fn html(&self) -> String {
        let mut head = String::new();
        let _ = self.head(&mut head);
        let body = html! {
            p.sums { (head.trim_end()) }
            p.sums { (ReportedCrawlSummary::visited_words(self.crawl.visited, self.graded.len() as u64)) }
            (self.crawl.note())
            @if self.source != "archive" {
                p { "No archive was kept: only links to broken pages are known, and nothing is graded." }
            }
            @if self.unread > 0 {
                p { (counted(self.unread, "page", "pages")) " can't be read from the archive and may have more faults." }
            }
            @if self.incomplete > 0 {
                p { (counted(self.incomplete, "page was", "pages were")) " not read to the end and may have more faults." }
            }
            h2 { "What to fix" }
            (checks(&of_links(self, None)))
            @if !self.unchecked.is_empty() {
                h2 { "Links not checked" }
                (self.unchecked_table())
            }
        };
        let host = self.crawl.host();
        let description = format!("Broken links, redirects and other faults of links on {host}.");
        page(&format!("Faults of links on {host}"), &description, &body)
    }

    /// Renders the links whose target was not checked, with the reasons.
    pub(crate) fn unchecked_table(&self) -> Markup {
        let site = self.crawl.origin();
        let row = |link: &UncheckedLink| {
            vec![
                site.cell(&link.to),
                TableCell::text(link.why()),
                site.cell(&link.page),
            ]
        };
        let rows = self.unchecked.iter().take(MAX_ROWS);
        HtmlTable {
            name: "Links not checked",
            columns: &["link", "reason", "page"],
            rows: rows.map(row).collect(),
            more: left_out(self.unchecked.len()),
        }
        .draw()
    }
}

fn page_name(fault: &PageFault) -> String {
    fault.page.clone().unwrap_or_else(|| "(a seed)".to_owned())
}

/// Adds a test case whose names and result are escaped.
fn push_case(page: &str, name: &str, result: &str, cases: &mut String) {
    let _ = writeln!(
        cases,
        "    <testcase classname=\"{page}\" name=\"{name}\">\n      {result}\n    </testcase>"
    );
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

/// Escapes the text of a workflow command. Removes control characters, because a line break would
/// begin another command.
fn command_text(text: &str) -> String {
    safe_line(text).replace('%', "%25")
}

/// Escapes a property value of a workflow command.
fn command_value(text: &str) -> String {
    command_text(text).replace(':', "%3A").replace(',', "%2C")
}
