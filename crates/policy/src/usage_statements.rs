//! A site's statements about the use of its pages.
//!
//! Several vocabularies are in use: `Content-Usage` (IETF AIPREF drafts), `Content-Signal`, RSL's
//! `License`, the TDM Reservation Protocol, `noai` and `noimageai`, and `noarchive`. No vocabulary
//! defines its precedence over the others. So each statement is kept as made, and for each purpose
//! the most restrictive one wins. A statement excludes a page only if it refuses the operator's
//! purpose.

mod tdm_reservation_protocol;

use sfv::{BareItem, Dictionary, Item, Key, ListEntry, Parser};

use crate::page_directives::{CitedDirective, DirectiveSource, PageDirectives};
use crate::robots::{AgentRules, UsageLine, UsageLineVocabulary};

pub use tdm_reservation_protocol::{TdmReservationEntry, TdmReservationList};

/// A purpose for which the pages of a crawl are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case")]
pub enum UsagePurpose {
    /// A search index that points to the pages.
    Search,
    /// Input to a model when it generates an answer.
    AiInput,
    /// Training of a model.
    TrainAi,
    /// A copy made available to others.
    Archive,
}

/// Whether a statement allows a purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum UsageStance {
    /// The use is granted.
    Allowed,
    /// The use is refused.
    Refused,
}

/// The vocabulary of a statement: a format in which sites state how their pages may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case")]
pub enum UsageVocabulary {
    /// `Content-Usage`, IETF AIPREF.
    ContentUsage,
    /// `Content-Signal`.
    ContentSignal,
    /// `License` of Really Simple Licensing 1.0. A link to license terms. Neither allows nor
    /// refuses any purpose.
    #[strum(serialize = "license")]
    RslLicense,
    /// `tdm-reservation`, TDM Reservation Protocol.
    TdmReservation,
    /// `noai`, `noimageai`.
    #[strum(serialize = "noai")]
    NoAi,
    /// `noarchive`, `nocache`.
    #[strum(serialize = "noarchive")]
    NoArchive,
}

/// The source of a statement, such as a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case")]
pub enum UsageStatementSource {
    /// In robots.txt, with the line number.
    Robots(u32),
    /// In the response's headers.
    Header,
    /// In a META element of the page.
    Meta,
    /// In `/.well-known/tdmrep.json`.
    #[strum(serialize = "tdmrep")]
    TdmRep,
}

/// A statement about the use of pages: its original text and its interpretation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageUsageStatement {
    /// The vocabulary in which the statement is made.
    pub vocabulary: UsageVocabulary,
    /// Where the statement was found.
    pub channel: UsageStatementSource,
    /// The statement as written.
    pub raw: String,
    /// The purposes that the statement covers, each with a stance. Empty if the statement covers no
    /// purpose, is invalid, or is overridden by a more specific one.
    pub says: Vec<(UsagePurpose, UsageStance)>,
}

/// All statements about the use of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageStatements {
    /// The statements in this order: robots.txt, `Content-Usage` and `Content-Signal` headers, the
    /// TDM Reservation Protocol, directives of the page.
    pub list: Vec<PageUsageStatement>,
}

/// Whether the statements about a page allow one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageVerdict<'a> {
    /// Whether the purpose is allowed or refused. `None` if no statement covers it.
    pub stance: Option<UsageStance>,
    /// The statement that decided.
    pub by: Option<&'a PageUsageStatement>,
}

impl UsageVerdict<'_> {
    /// Returns whether the use is refused.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.stance == Some(UsageStance::Refused)
    }
}

/// The sources of statements about a page. Before the page is fetched, only `robots`,
/// `path_and_query` and `tdmrep` are known.
#[derive(Clone, Copy, Debug, Default)]
pub struct UsageStatementInputs<'a> {
    /// The robots.txt of the page's origin.
    pub robots: Option<&'a AgentRules>,
    /// Path and query of the page, beginning with `/`.
    pub path_and_query: &'a str,
    /// The `tdmrep.json` of the page's origin.
    pub tdmrep: Option<&'a TdmReservationList>,
    /// The response's headers, each as (name, value). Names are in any case.
    pub headers: &'a [(&'a str, &'a str)],
    /// The page's META elements, each as (name, content).
    pub metas: &'a [(&'a str, &'a str)],
    /// The directives for robots in the page and its headers.
    pub page: Option<&'a PageDirectives>,
}

impl UsageStatements {
    /// Collects the statements of all sources.
    #[must_use]
    pub fn read(sources: &UsageStatementInputs<'_>) -> UsageStatements {
        let mut statements = Vec::new();
        if let Some(robots) = sources.robots {
            from_robots(robots, sources.path_and_query, &mut statements);
        }
        from_headers(sources.headers, &mut statements);
        tdm_reservation_protocol::statements(sources, &mut statements);
        if let Some(page) = sources.page {
            from_page(page, &mut statements);
        }
        UsageStatements { list: statements }
    }

    /// Returns the verdict for a purpose. A single refusal outweighs any number of grants.
    #[must_use]
    pub fn verdict(&self, purpose: UsagePurpose) -> UsageVerdict<'_> {
        let speaks = |stance| {
            self.list
                .iter()
                .find(|statement| statement.says.contains(&(purpose, stance)))
                .map(|by| UsageVerdict {
                    stance: Some(stance),
                    by: Some(by),
                })
        };
        speaks(UsageStance::Refused)
            .or_else(|| speaks(UsageStance::Allowed))
            .unwrap_or(UsageVerdict {
                stance: None,
                by: None,
            })
    }
}

fn from_robots(robots: &AgentRules, path: &str, statements: &mut Vec<PageUsageStatement>) {
    for (kind, vocabulary) in [
        (
            UsageLineVocabulary::ContentUsage,
            UsageVocabulary::ContentUsage,
        ),
        (
            UsageLineVocabulary::ContentSignal,
            UsageVocabulary::ContentSignal,
        ),
        (UsageLineVocabulary::License, UsageVocabulary::RslLicense),
    ] {
        for line in robots.preferences(kind, path) {
            let UsageLine { value, line, .. } = line;
            statements.push(PageUsageStatement {
                vocabulary,
                channel: UsageStatementSource::Robots(*line),
                raw: value.clone(),
                says: says(vocabulary, without_path(value)),
            });
        }
    }
}

fn from_headers(headers: &[(&str, &str)], statements: &mut Vec<PageUsageStatement>) {
    for (name, vocabulary) in [
        ("content-usage", UsageVocabulary::ContentUsage),
        ("content-signal", UsageVocabulary::ContentSignal),
    ] {
        let values: Vec<_> = values(headers, name).collect();
        if !values.is_empty() {
            let raw = values.join(", ");
            statements.push(PageUsageStatement {
                vocabulary,
                channel: UsageStatementSource::Header,
                says: says(vocabulary, &raw),
                raw,
            });
        }
    }
}

fn from_page(page: &PageDirectives, statements: &mut Vec<PageUsageStatement>) {
    let refuse = |purposes: &[UsagePurpose]| -> Vec<_> {
        purposes
            .iter()
            .map(|&p| (p, UsageStance::Refused))
            .collect()
    };
    let ai = [UsagePurpose::AiInput, UsagePurpose::TrainAi];
    for (source, vocabulary, says) in [
        (&page.noai, UsageVocabulary::NoAi, refuse(&ai)),
        (&page.noimageai, UsageVocabulary::NoAi, refuse(&ai)),
        (
            &page.noarchive,
            UsageVocabulary::NoArchive,
            refuse(&[UsagePurpose::Archive]),
        ),
    ] {
        if let Some(CitedDirective { place, text }) = source {
            statements.push(PageUsageStatement {
                vocabulary,
                channel: match place {
                    DirectiveSource::Header => UsageStatementSource::Header,
                    DirectiveSource::Meta => UsageStatementSource::Meta,
                },
                raw: text.clone(),
                says,
            });
        }
    }
}

/// Returns the trimmed values of all fields with this name, ignoring case.
fn values<'a>(fields: &'a [(&str, &str)], name: &'a str) -> impl Iterator<Item = &'a str> {
    fields
        .iter()
        .filter(move |(known, _)| known.trim().eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}

/// Removes the path that may precede the preferences in a robots.txt line.
fn without_path(value: &str) -> &str {
    match value.starts_with('/') {
        true => value
            .split_once([' ', '\t'])
            .map_or("", |(_, rest)| rest.trim_start()),
        false => value,
    }
}

fn says(vocabulary: UsageVocabulary, text: &str) -> Vec<(UsagePurpose, UsageStance)> {
    match vocabulary {
        UsageVocabulary::ContentUsage => content_usage(text),
        UsageVocabulary::ContentSignal => content_signal(text),
        _ => Vec::new(),
    }
}

/// Parses a structured-field dictionary (RFC 9651) with the tokens `y` and `n` as values. Ignores
/// unknown labels and values, and invalid text.
fn content_usage(text: &str) -> Vec<(UsagePurpose, UsageStance)> {
    let Ok(members) = Parser::new(text).parse::<Dictionary>() else {
        return Vec::new();
    };
    let read = |(label, value): (Key, ListEntry)| {
        let purpose = match label.as_str() {
            "train-ai" => UsagePurpose::TrainAi,
            "search" => UsagePurpose::Search,
            // Accept both names, because different drafts of the vocabulary use them.
            "ai-use" | "ai-input" => UsagePurpose::AiInput,
            _ => return None,
        };
        let ListEntry::Item(Item {
            bare_item: BareItem::Token(token),
            ..
        }) = value
        else {
            return None;
        };
        let stance = match token.as_str() {
            "y" => UsageStance::Allowed,
            "n" => UsageStance::Refused,
            _ => return None,
        };
        Some((purpose, stance))
    };
    members.into_iter().filter_map(read).collect()
}

/// Parses text such as `search=yes, ai-input=no, ai-train=no`. An absent signal neither allows nor
/// refuses.
fn content_signal(text: &str) -> Vec<(UsagePurpose, UsageStance)> {
    let read = |part: &str| {
        let (label, value) = part.split_once('=')?;
        let purpose = match label.trim().to_ascii_lowercase().as_str() {
            "search" => UsagePurpose::Search,
            "ai-input" => UsagePurpose::AiInput,
            "ai-train" => UsagePurpose::TrainAi,
            _ => return None,
        };
        let stance = match value.trim().to_ascii_lowercase().as_str() {
            "yes" => UsageStance::Allowed,
            "no" => UsageStance::Refused,
            _ => return None,
        };
        Some((purpose, stance))
    };
    text.split([',', ';']).filter_map(read).collect()
}

impl UsagePurpose {
    /// All purposes.
    pub const ALL: [UsagePurpose; 4] = [
        UsagePurpose::Search,
        UsagePurpose::AiInput,
        UsagePurpose::TrainAi,
        UsagePurpose::Archive,
    ];
}

#[cfg(test)]
mod tests;
