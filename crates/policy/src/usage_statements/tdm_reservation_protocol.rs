//! The TDM Reservation Protocol (W3C community group report, 10 May 2024).

use serde_json::Value;

use super::{
    PageUsageStatement, UsagePurpose, UsageStance, UsageStatementInputs, UsageStatementSource,
    UsageVocabulary, values,
};
use crate::robots::path_matches;

/// Maximum entries of a `tdmrep.json` to read, because each lookup may scan all of them.
/// Beyond the limit: ignored.
const MAX_ENTRIES: usize = 1000;

/// A `/.well-known/tdmrep.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TdmReservationList {
    /// The entries in order. The first match wins.
    pub entries: Vec<TdmReservationEntry>,
}

/// A statement about the paths that match a location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TdmReservationEntry {
    /// A path pattern, as in robots.txt.
    pub location: String,
    /// Whether text and data mining rights are reserved.
    pub reserved: bool,
    /// The URL of the terms of use, if the entry states one.
    pub policy: Option<String>,
}

impl TdmReservationList {
    /// Parses the file. Returns `None` if it is not a JSON array. Ignores a byte order mark, as RFC
    /// 8259 section 8.1 allows. Skips entries without a location or with a reservation other than 0
    /// or 1. Reads at most the first thousand entries.
    #[must_use]
    pub fn parse(json: &[u8]) -> Option<TdmReservationList> {
        let json = json.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(json);
        let value: Value = serde_json::from_slice(json).ok()?;
        let entries = value.as_array()?.iter().filter_map(entry);
        Some(TdmReservationList {
            entries: entries.take(MAX_ENTRIES).collect(),
        })
    }

    /// Returns the first entry that matches a path.
    #[must_use]
    pub fn entry(&self, path_and_query: &str) -> Option<&TdmReservationEntry> {
        self.entries
            .iter()
            .find(|entry| path_matches(&entry.location, path_and_query))
    }
}

fn entry(value: &Value) -> Option<TdmReservationEntry> {
    let reservation = value.get("tdm-reservation")?;
    let reserved = match reservation.as_u64() {
        Some(number) => reads_reserved(&number.to_string())?,
        None => reads_reserved(reservation.as_str()?)?,
    };
    Some(TdmReservationEntry {
        location: value.get("location")?.as_str()?.to_owned(),
        reserved,
        policy: value
            .get("tdm-policy")
            .and_then(Value::as_str)
            .map(str::to_owned),
    })
}

fn reads_reserved(text: &str) -> Option<bool> {
    match text.trim() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// Adds the TDM statements of a page. A META overrides a header, and a header overrides the file.
pub(super) fn statements(
    sources: &UsageStatementInputs<'_>,
    statements: &mut Vec<PageUsageStatement>,
) {
    let begin = statements.len();
    let entry = sources
        .tdmrep
        .and_then(|file| file.entry(sources.path_and_query));
    if let Some(entry) = entry {
        let number = u8::from(entry.reserved);
        let raw = format!("{}: tdm-reservation: {number}", entry.location);
        push(
            statements,
            UsageStatementSource::TdmRep,
            raw,
            entry.policy.as_deref(),
        );
    }
    for (fields, channel) in [
        (sources.headers, UsageStatementSource::Header),
        (sources.metas, UsageStatementSource::Meta),
    ] {
        let policy = values(fields, "tdm-policy").next();
        // If there are several values, prefer 1 (reserved) to 0, and 0 to an invalid value.
        let value = values(fields, "tdm-reservation").max_by_key(|value| reads_reserved(value));
        if let Some(value) = value {
            push(
                statements,
                channel,
                format!("tdm-reservation: {value}"),
                policy,
            );
        }
    }
    let read = |s: &PageUsageStatement| reads_reserved(reservation(&s.raw));
    let nearest = statements[begin..].iter().rposition(|s| read(s).is_some());
    if let Some(nearest) = nearest {
        let statement = &mut statements[begin + nearest];
        let stance = match read(statement) {
            Some(true) => UsageStance::Refused,
            _ => UsageStance::Allowed,
        };
        statement.says = vec![
            (UsagePurpose::AiInput, stance),
            (UsagePurpose::TrainAi, stance),
        ];
    }
}

fn push(
    statements: &mut Vec<PageUsageStatement>,
    channel: UsageStatementSource,
    raw: String,
    policy: Option<&str>,
) {
    let raw = match policy {
        Some(policy) => format!("{raw}; tdm-policy: {policy}"),
        None => raw,
    };
    statements.push(PageUsageStatement {
        vocabulary: UsageVocabulary::TdmReservation,
        channel,
        raw,
        says: Vec::new(),
    });
}

fn reservation(raw: &str) -> &str {
    let behind = raw.split("tdm-reservation:").last().unwrap_or_default();
    behind.split(';').next().unwrap_or_default()
}
