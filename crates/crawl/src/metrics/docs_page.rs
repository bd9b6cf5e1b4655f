//! Generates the list of metrics in `docs/operating.md`.

use std::fmt::Write as _;

use crawl_engine::ProgressSnapshot;
use expect_test::expect_file;

use super::families::families;
use super::process::ProcessMetrics;

/// The heading above the list of metrics. The list runs to the end of the page.
const HEADING: &str = "## The metrics\n";

#[test]
fn the_documentation_lists_each_metric_with_its_type_unit_and_meaning() {
    let page = include_str!("../../../../docs/operating.md");
    let (before, _) = page.split_once(HEADING).unwrap();
    let mut page = format!("{before}{HEADING}\n");
    for family in families(&ProgressSnapshot::default(), ProcessMetrics::default()) {
        let (name, kind, unit) = (family.name, family.values.kind(), family.unit);
        let item = format!("`{name}` ({kind}, {unit}): {}", family.help);
        let width = textwrap::Options::new(120)
            .initial_indent("- ")
            .subsequent_indent("  ")
            .break_words(false)
            .word_splitter(textwrap::WordSplitter::NoHyphenation);
        let _ = writeln!(page, "{}", textwrap::fill(&item, width));
    }
    expect_file!["../../../../docs/operating.md"].assert_eq(&page);
}
