//! Generates the `README.md` of a bundle from the facts about the crawl.

use std::fmt::Write as _;

use crawl_records::{HostCoverage, counted, grouped, outcome_words, size};

use crate::bundle_folder::BundledFile;
use crate::citation::citation_line;
use crate::crawl_summary::{CrawlSummary, meaning};

pub(crate) const README: &str = "README.md";
/// Maximum number of hosts that are listed one by one.
const MAX_HOSTS: usize = 50;

const CHECK: &str = "\
## Check it

`manifest-sha256.txt`, next to the folder `data`, lists the SHA-256 of every file in that folder, and
`tagmanifest-sha256.txt` lists the SHA-256 of the manifest. So the digest of `tagmanifest-sha256.txt` covers every byte:

```sh
sha256sum --check --quiet tagmanifest-sha256.txt manifest-sha256.txt
bagit.py --validate .     # the bundle is a bag (BagIt 1.0, RFC 8493): pip install bagit
crawl verify .            # also each record, count and cross-reference
```

";

const USE: &str = "\
## Use it

- The tables: `SELECT * FROM 'data/tables/pages.parquet'` in DuckDB; `croissant.json` describes their columns.
- The archive: each `archive/*.warc.gz` or `*.warc` opens in ReplayWeb.page and in pywb, a `*.warc.zst` in FastWARC.
- Without a network: `ro-crate-context.json` is the document at the `@context` URL of `ro-crate-metadata.json`. Let
  your JSON-LD library or validator load it in place of that URL.
- `data` is a crawl directory, so `crawl report data`, `crawl audit data` and
  `crawl export data --to wacz --out crawl.wacz` work on it.

";

/// Returns the text of `README.md`.
pub(crate) fn readme(facts: &CrawlSummary, files: &[BundledFile]) -> String {
    let report = &facts.report;
    let operator = &report.crawl.operator;
    let mut text = format!(
        "# {}\n\n{}\n\n",
        line(&facts.title()),
        line(&facts.summary())
    );
    let fields = [
        ("operator", &operator.name),
        ("institution", &operator.institution),
        ("contact", &operator.contact),
        ("study page", &operator.study_page),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            let _ = writeln!(text, "- {name}: {}", line(value));
        }
    }
    let _ = writeln!(
        text,
        "- seeds: {}",
        grouped(report.crawl.seeds.len() as u64)
    );
    for seed in report.crawl.seeds.iter().take(MAX_HOSTS) {
        let _ = writeln!(text, "  - {}", line(seed));
    }
    let _ = writeln!(text, "- requests: {}", grouped(report.requests.total));
    let _ = writeln!(text, "- bundle made by {}\n", facts.bundler);
    let _ = writeln!(text, "## Cite it\n\n> {}\n", line(&citation_line(facts)));
    text.push_str(CHECK);
    text.push_str(USE);
    numbers(facts, &mut text);
    hosts(facts, &mut text);
    let _ = writeln!(text, "## Files\n\n| file | bytes | what |\n|---|---|---|");
    for file in files {
        let description = meaning(&file.path).what;
        let _ = writeln!(
            text,
            "| `{}` | {} | {description} |",
            line(&file.path),
            grouped(file.bytes)
        );
    }
    text
}

fn numbers(facts: &CrawlSummary, text: &mut String) {
    let report = &facts.report;
    let _ = writeln!(text, "## Numbers\n\n| what | how many |\n|---|---|");
    let _ = writeln!(text, "| pages | {} |", grouped(report.pages.total));
    for (outcome, count) in &report.pages.by_outcome {
        let words = outcome_words(outcome);
        let _ = writeln!(text, "| pages: {} | {} |", line(&words), grouped(*count));
    }
    let _ = writeln!(text, "| bytes of pages | {} |", size(report.pages.bytes));
    let _ = writeln!(
        text,
        "| excluded | {} |",
        grouped(report.excluded.decided())
    );
    for (reason, count) in &report.excluded.by_decision() {
        let _ = writeln!(text, "| excluded: {} | {} |", line(reason), grouped(*count));
    }
    if let Some(pending) = &report.pending {
        let _ = writeln!(text, "| pending | {} |", line(&pending.to_string()));
    }
    let _ = writeln!(
        text,
        "| gaps cut short | {} |\n",
        grouped(report.requests.short_gaps)
    );
}

fn hosts(facts: &CrawlSummary, text: &mut String) {
    let (hosts, _) = facts.report.hosts_asked();
    let _ = writeln!(
        text,
        "## Hosts\n\n| host | pages | coverage |\n|---|---|---|"
    );
    for host in hosts.iter().take(MAX_HOSTS) {
        let coverage = host.coverage.map_or("", HostCoverage::word);
        let _ = writeln!(
            text,
            "| {} | {} | {coverage} |",
            line(&host.host),
            grouped(host.pages)
        );
    }
    let more = hosts.len().saturating_sub(MAX_HOSTS) as u64;
    if more > 0 {
        let _ = writeln!(
            text,
            "\n{} more in `hosts.jsonl`",
            counted(more, "host", "hosts")
        );
    }
    text.push('\n');
}

/// Converts a text to one line of Markdown, with all markup characters escaped.
fn line(text: &str) -> String {
    let text = crawl_weburl::safe_line(text);
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(
            c,
            '|' | '<' | '>' | '*' | '_' | '[' | ']' | '`' | '\\' | '#'
        ) {
            line.push('\\');
        }
        line.push(c);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn foreign_text_is_escaped() {
        assert_eq!(line("a|b <i> [x](y)\n"), "a\\|b \\<i\\> \\[x\\](y)\u{fffd}");
    }
}
