//! Generates the config file from the answers to `crawl init`.

use std::fmt::Write as _;

use super::answers::{InitAnswers, InitPurpose};

/// The delay between requests to a host that the user runs.
const OWN_SITE_DELAY: &str = "100ms";

/// Returns a commented config file with the keys that follow from the answers. The comments quote
/// `command`, which starts a crawl with the file, and `check`, which checks the file.
pub(super) fn config_text(answers: &InitAnswers, command: &str, check: &str) -> String {
    let mut text = format!(
        "# Written by `crawl init`. Start or continue the crawl: {command}\n\
         # After a change: {check}\n\
         # Every key with its default: crawl config\n\n"
    );
    let seed = answers.seed.as_ref().map(|(typed, _)| typed.as_str());
    let seed = toml::Value::from(Vec::from_iter(seed));
    let _ = writeln!(
        text,
        "# Where the crawl starts: one or more URLs or hosts. Sitemaps are found automatically."
    );
    let _ = writeln!(text, "seed = {seed}");
    for (name, entries) in tables(answers) {
        if entries.is_empty() {
            continue;
        }
        let _ = write!(text, "\n[{name}]\n{entries}");
    }
    text
}

/// Returns the tables in the order of `crawl config`. The text of a table without keys is empty.
fn tables(answers: &InitAnswers) -> [(&'static str, String); 5] {
    [
        ("operator", operator(answers)),
        ("scope", scope(answers)),
        ("politeness", politeness(answers)),
        ("exclusion", exclusion(answers)),
        ("output", output(answers)),
    ]
}

fn operator(answers: &InitAnswers) -> String {
    let mut entries = GeneratedTable::default();
    let contact = answers.contact.as_deref().unwrap_or_default();
    if !contact.is_empty() {
        let comment = "Where site owners can reach you. Sent with each request.";
        entries.add(comment, "contact", contact);
    }
    if !answers.has_study_page() {
        return entries.0;
    }
    entries.add(
        "A study: it starts only if all of these are set, and its records contain them.",
        "kind",
        "research",
    );
    for (key, value) in [
        ("operator-name", &answers.operator_name),
        ("institution", &answers.institution),
        ("study", &answers.study),
        ("study-page", &answers.study_page),
    ] {
        entries.add("", key, value.as_deref().unwrap_or_default());
    }
    entries.0
}

fn scope(answers: &InitAnswers) -> String {
    let mut entries = GeneratedTable::default();
    if answers.is_folder_only == Some(true) {
        let comment = "Only pages in the folder of the seed. `host` crawls its whole host.";
        entries.add(comment, "scope", "prefix");
    }
    let comment = "Stop after this many pages. The same command with a larger number continues.";
    match answers.max_pages.flatten() {
        Some(pages) => {
            let pages = i64::try_from(pages).unwrap_or(i64::MAX);
            entries.add(comment, "max-pages", pages);
        }
        None => entries.add(comment, "max-pages", "unlimited"),
    }
    if answers.purpose == Some(InitPurpose::Check) {
        let comment = "Fetch images, styles and scripts too, to find broken ones.";
        entries.add(comment, "resources", "all");
        entries.note("Also fetch the pages of other sites that are linked, to find dead links.");
        entries.note("hops-off-scope = 1");
    }
    entries.0
}

fn politeness(answers: &InitAnswers) -> String {
    let mut entries = GeneratedTable::default();
    if answers.is_own_site == Some(true) {
        entries.add(
            "You run this site, so that a delay below 200ms is allowed.",
            "own-site",
            "on",
        );
        let comment = "The time between two requests. Without this line: 1s.";
        entries.add(comment, "delay", OWN_SITE_DELAY);
    }
    entries.0
}

fn exclusion(answers: &InitAnswers) -> String {
    let mut entries = GeneratedTable::default();
    let purpose = match answers.purpose {
        Some(InitPurpose::Search) => "search",
        Some(InitPurpose::Research) => "archive",
        Some(InitPurpose::Check) | None => return entries.0,
    };
    entries.add(
        "What the pages are for. Pages whose site refuses this use are left out.",
        "purpose",
        purpose,
    );
    entries.0
}

fn output(answers: &InitAnswers) -> String {
    let mut entries = GeneratedTable::default();
    let folder = answers.output.as_deref().unwrap_or_default();
    let comment = "The folder of the crawl, relative to where the command runs.";
    entries.add(comment, "output", folder);
    match answers.purpose {
        Some(InitPurpose::Search) => entries.add(
            "Build a search index, for `crawl search` and `crawl serve`.",
            "index",
            "on",
        ),
        Some(InitPurpose::Check) => entries.add(
            "Record links, for the reports `crawl report --broken` and `--faults`.",
            "links",
            "on",
        ),
        Some(InitPurpose::Research) => {
            entries.add("Complete responses, as WARC files.", "warc", "on");
            entries.add("Every link between pages, in links.jsonl.", "links", "on");
            let comment = "Pause while less than this is free on the disk.";
            entries.add(comment, "min-free", "1GiB");
        }
        None => {}
    }
    entries.0
}

/// The lines of a TOML table in the generated config file.
#[derive(Debug, Default)]
struct GeneratedTable(String);

impl GeneratedTable {
    /// Adds a key, with `comment` above it unless `comment` is empty.
    fn add(&mut self, comment: &str, key: &str, value: impl Into<toml::Value>) {
        if !comment.is_empty() {
            self.note(comment);
        }
        let _ = writeln!(self.0, "{key} = {}", value.into());
    }

    fn note(&mut self, comment: &str) {
        let _ = writeln!(self.0, "# {comment}");
    }
}
