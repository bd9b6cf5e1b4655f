//! The values of the flags of `crawl report --faults`.

use crawl_records::FaultKind;

/// The formats of `crawl report --faults`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FaultFormat {
    /// Lines for a person
    Text,
    /// One JSON object, with counts
    Json,
    /// A JSON object for each fault, as --baseline reads it
    Jsonl,
    /// JUnit's XML, for continuous integration
    Junit,
    /// Annotations of a GitHub workflow
    Github,
    /// A page
    Html,
}

/// Reads the name of a kind of fault.
pub(super) fn fault_kind(name: &str) -> Result<FaultKind, String> {
    let kinds = FaultKind::ALL.map(|kind| (kind.to_string(), kind));
    let found = kinds.iter().find(|(known, _)| known == name);
    found.map(|(_, kind)| *kind).ok_or_else(|| {
        let names: Vec<&str> = kinds.iter().map(|(known, _)| known.as_str()).collect();
        format!("the kinds are {}", names.join(", "))
    })
}
