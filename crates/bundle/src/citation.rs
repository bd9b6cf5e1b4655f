//! Writes `CITATION.cff` (Citation File Format 1.2.0), and the same citation as a single line.

use std::fmt::Write as _;

use crate::crawl_summary::CrawlSummary;

pub(crate) const CITATION: &str = "CITATION.cff";

/// Returns the text of `CITATION.cff`. The format requires an author, so the result is `None` if
/// the configuration names no person, institution or contact.
pub(crate) fn citation_file(facts: &CrawlSummary) -> Option<String> {
    let author = facts.author()?;
    let operator = &facts.report.crawl.operator;
    let mut text = String::from("cff-version: 1.2.0\ntype: dataset\n");
    let message = "To cite this crawl, use these fields and the digest of its manifest.";
    let _ = writeln!(text, "message: {}", quoted(message));
    let _ = writeln!(text, "title: {}", quoted(&facts.title()));
    let _ = writeln!(text, "abstract: {}", quoted(&facts.summary()));
    let _ = writeln!(text, "authors:\n  - name: {}", quoted(author));
    if let (Some(_), Some(institution)) = (&operator.name, &operator.institution) {
        let _ = writeln!(text, "  - name: {}", quoted(institution));
    }
    let _ = writeln!(text, "date-released: {}", quoted(&facts.day()));
    let is_address = |page: &&String| page.starts_with("http://") || page.starts_with("https://");
    if let Some(page) = operator.study_page.as_ref().filter(is_address) {
        let _ = writeln!(text, "url: {}", quoted(page));
    }
    let _ = writeln!(text, "keywords:\n  - web crawl\n  - WARC");
    Some(text)
}

/// Quotes a text for YAML as a JSON string, which is also valid YAML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns the citation as one line. Whoever cites the bundle should add a DOI and the digest of
/// the manifest.
pub(crate) fn citation_line(facts: &CrawlSummary) -> String {
    let operator = &facts.report.crawl.operator;
    let (hosts, _) = facts.report.hosts_asked();
    let mut line = format!(
        "{} ({}): {}. Crawl of {}, ended {}.",
        facts.author().unwrap_or("The publisher"),
        facts.day().split('-').next().unwrap_or_default(),
        facts.title(),
        crawl_records::counted(hosts.len() as u64, "host", "hosts"),
        facts.day(),
    );
    if let (Some(_), Some(institution)) = (&operator.name, &operator.institution) {
        let _ = write!(line, " {institution}.");
    }
    let _ = write!(line, " Made with {}.", facts.program);
    line
}
