//! Compares a site's preferences for the use of its pages with the purpose of the crawl.

use crawl_archive::rows::{PageUsagePermissions, UsageStatement};
use crawl_fetcher::Exchange;
use crawl_fetcher::robots::CompiledRobots;
use crawl_frontier::{NotFetchedReason, Reason};
use crawl_policy::PageDirectives;
use crawl_policy::usage_statements::{
    PageUsageStatement, UsagePurpose, UsageStatementInputs, UsageStatementSource, UsageStatements,
    UsageVocabulary,
};

/// Header fields with usage preferences, except `X-Robots-Tag`, which is handled separately.
const HEADERS: [&str; 4] = [
    "content-usage",
    "content-signal",
    "tdm-reservation",
    "tdm-policy",
];

/// Maximum bytes of a usage statement in a row.
const MAX_RAW: usize = 2048;
/// Maximum number of usage statements in a row.
const MAX_STATEMENTS: usize = 32;

/// Maximum length of an exclusion's rule in rows and in the store, in bytes.
const MAX_RULE: usize = 1024;

/// Returns why a page must not be fetched: the statement in robots.txt or `tdmrep.json` that
/// refuses `purpose`. `None` if there is no such statement.
pub(crate) fn refusal(
    rules: &CompiledRobots,
    path_and_query: &str,
    purpose: Option<UsagePurpose>,
) -> Option<NotFetchedReason> {
    let purpose = purpose?;
    let statements = UsageStatements::read(&UsageStatementInputs {
        robots: Some(&rules.robots),
        tdmrep: rules.tdmrep.as_ref(),
        path_and_query,
        ..UsageStatementInputs::default()
    });
    let by = refused(&statements, purpose)?;
    Some(NotFetchedReason {
        reason: Reason::Usage,
        rule: Some(words(by)),
        line: line(by),
    })
}

/// Returns the usage statements in an origin's robots.txt for its first page. `None` if there are
/// none.
pub(crate) fn of_origin(rules: &CompiledRobots) -> Option<PageUsagePermissions> {
    row(&UsageStatements::read(&UsageStatementInputs {
        robots: Some(&rules.robots),
        path_and_query: "/",
        ..UsageStatementInputs::default()
    }))
}

/// Returns all usage statements about a fetched page.
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
    UsageStatements::read(&UsageStatementInputs {
        robots: Some(&rules.robots),
        tdmrep: rules.tdmrep.as_ref(),
        path_and_query,
        headers: &headers,
        metas,
        page: Some(page),
    })
}

/// Returns the usage statement that keeps a page's body out of the archive, because it forbids
/// copies or refuses the crawl's purpose. `None` if no statement does.
pub(crate) fn withheld(
    statements: &UsageStatements,
    purpose: Option<UsagePurpose>,
) -> Option<String> {
    let no_copy = || refused(statements, UsagePurpose::Archive);
    let against = purpose.and_then(|purpose| refused(statements, purpose));
    against.or_else(no_copy).map(words)
}

/// Returns these usage statements as columns of a page's row. `None` if there are none.
pub(crate) fn row(statements: &UsageStatements) -> Option<PageUsagePermissions> {
    let verdict = |purpose| {
        let stance = statements.verdict(purpose).stance?;
        Some(stance.to_string())
    };
    (!statements.list.is_empty()).then(|| PageUsagePermissions {
        search: verdict(UsagePurpose::Search),
        ai_input: verdict(UsagePurpose::AiInput),
        train_ai: verdict(UsagePurpose::TrainAi),
        archive: verdict(UsagePurpose::Archive),
        said: statements
            .list
            .iter()
            .take(MAX_STATEMENTS)
            .map(usage_statement)
            .collect(),
    })
}

pub(crate) fn refused(
    statements: &UsageStatements,
    purpose: UsagePurpose,
) -> Option<&PageUsageStatement> {
    let verdict = statements.verdict(purpose);
    verdict.by.filter(|_| verdict.is_refused())
}

fn usage_statement(statement: &PageUsageStatement) -> UsageStatement {
    let mut raw = statement.raw.clone();
    raw.truncate(raw.floor_char_boundary(MAX_RAW));
    UsageStatement {
        vocabulary: statement.vocabulary.to_string(),
        channel: statement.channel.to_string(),
        line: line(statement),
        raw,
    }
}

/// Returns a usage statement as the rule of an exclusion.
pub(crate) fn words(by: &PageUsageStatement) -> String {
    let words = match (by.vocabulary, by.channel) {
        (UsageVocabulary::ContentUsage, _) => format!("Content-Usage: {}", by.raw),
        (UsageVocabulary::ContentSignal, _) => format!("Content-Signal: {}", by.raw),
        (_, UsageStatementSource::TdmRep) => format!("tdmrep.json: {}", by.raw),
        _ => by.raw.clone(),
    };
    rule_text(&words)
}

fn line(statement: &PageUsageStatement) -> Option<u32> {
    match statement.channel {
        UsageStatementSource::Robots(line) => Some(line),
        _ => None,
    }
}

/// Truncates text from a site to [`MAX_RULE`] bytes, for rows and the state.
pub(crate) fn rule_text(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_RULE)].to_owned()
}
