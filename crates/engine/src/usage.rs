//! A site's preferences about the use of its pages, held against the purpose of the crawl.

use crawl_archive::rows::{PageUsage, UsageStatement};
use crawl_fetcher::Exchange;
use crawl_fetcher::robots::CompiledRobots;
use crawl_frontier::{Exclusion, Reason};
use crawl_policy::PageDirectives;
use crawl_policy::usage::{Channel, Sources, Statement, UsagePurpose, UsageStatements, Vocabulary};

/// The headers that speak of use; the directives of `X-Robots-Tag` come separately.
const HEADERS: [&str; 4] = [
    "content-usage",
    "content-signal",
    "tdm-reservation",
    "tdm-policy",
];

/// Bytes of a statement that a row holds.
const MAX_RAW: usize = 2048;
/// Statements that a row holds.
const MAX_SAID: usize = 32;

/// Bytes of a rule that a row holds; the store keeps no more either.
const MAX_RULE: usize = 1024;

/// Why a page is not asked for: its site does not want it used for `purpose`, and says so
/// where it can be known before.
pub(crate) fn refusal(
    rules: &CompiledRobots,
    path_and_query: &str,
    purpose: Option<UsagePurpose>,
) -> Option<Exclusion> {
    let purpose = purpose?;
    let statements = UsageStatements::read(&Sources {
        robots: Some(&rules.robots),
        tdmrep: rules.tdmrep.as_ref(),
        path_and_query,
        ..Sources::default()
    });
    let by = refused(&statements, purpose)?;
    Some(Exclusion {
        reason: Reason::Usage,
        rule: Some(words(by)),
        line: line(by),
    })
}

/// All that is said in an origin's robots.txt about the use of its first page.
pub(crate) fn of_origin(rules: &CompiledRobots) -> Option<PageUsage> {
    row(&UsageStatements::read(&Sources {
        robots: Some(&rules.robots),
        path_and_query: "/",
        ..Sources::default()
    }))
}

/// All that is said about a page that was fetched.
pub(crate) fn statements(
    rules: &CompiledRobots,
    path_and_query: &str,
    exchange: &Exchange,
    page: &PageDirectives,
    metas: &[(&str, &str)],
) -> UsageStatements {
    let fields: Vec<(&str, String)> = HEADERS
        .iter()
        .flat_map(|name| {
            let values = exchange.headers.get_all(*name).iter();
            values.map(|value| {
                (
                    *name,
                    String::from_utf8_lossy(value.as_bytes()).into_owned(),
                )
            })
        })
        .collect();
    let headers: Vec<_> = fields
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    UsageStatements::read(&Sources {
        robots: Some(&rules.robots),
        tdmrep: rules.tdmrep.as_ref(),
        path_and_query,
        headers: &headers,
        metas,
        page: Some(page),
    })
}

/// The words for which a page's body is not archived: that no copy be kept, or a preference
/// against what the crawl is for.
pub(crate) fn withheld(
    statements: &UsageStatements,
    purpose: Option<UsagePurpose>,
) -> Option<String> {
    let no_copy = || refused(statements, UsagePurpose::Archive);
    let against = purpose.and_then(|purpose| refused(statements, purpose));
    against.or_else(no_copy).map(words)
}

/// The part of a row that tells them; nothing where nothing is said.
pub(crate) fn row(statements: &UsageStatements) -> Option<PageUsage> {
    let verdict = |purpose| {
        let stance = statements.verdict(purpose).stance?;
        Some(stance.to_string())
    };
    (!statements.list.is_empty()).then(|| PageUsage {
        search: verdict(UsagePurpose::Search),
        ai_input: verdict(UsagePurpose::AiInput),
        train_ai: verdict(UsagePurpose::TrainAi),
        archive: verdict(UsagePurpose::Archive),
        said: statements.list.iter().take(MAX_SAID).map(said).collect(),
    })
}

pub(crate) fn refused(statements: &UsageStatements, purpose: UsagePurpose) -> Option<&Statement> {
    let verdict = statements.verdict(purpose);
    verdict.by.filter(|_| verdict.is_refused())
}

fn said(statement: &Statement) -> UsageStatement {
    let mut raw = statement.raw.clone();
    raw.truncate(raw.floor_char_boundary(MAX_RAW));
    UsageStatement {
        vocabulary: statement.vocabulary.to_string(),
        channel: statement.channel.to_string(),
        line: line(statement),
        raw,
    }
}

/// A statement as the rule of a refusal.
pub(crate) fn words(by: &Statement) -> String {
    let words = match (by.vocabulary, by.channel) {
        (Vocabulary::ContentUsage, _) => format!("Content-Usage: {}", by.raw),
        (Vocabulary::ContentSignal, _) => format!("Content-Signal: {}", by.raw),
        (_, Channel::TdmRep) => format!("tdmrep.json: {}", by.raw),
        _ => by.raw.clone(),
    };
    rule_text(&words)
}

fn line(statement: &Statement) -> Option<u32> {
    match statement.channel {
        Channel::Robots(line) => Some(line),
        _ => None,
    }
}

/// A rule as rows and the state have it: what a site writes is cut to [`MAX_RULE`] bytes.
pub(crate) fn rule_text(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_RULE)].to_owned()
}
