//! Search requests, parsed from the query of a URL.

use crawl_index::FacetFilters;
use serde::Deserialize;

use super::error_response::ErrorResponse;

/// Maximum bytes of a query or of a filter's value.
pub(crate) const MAX_QUERY_BYTES: usize = 4096;
/// Maximum results in one answer of `crawl serve`.
/// Beyond the limit: 400.
pub(crate) const MAX_LIMIT: usize = 50;
/// Default number of results in an answer or on a page.
pub(crate) const DEFAULT_LIMIT: usize = 10;
/// Maximum number of ranked results: later ones can't be requested.
pub(crate) const MAX_RANKED: usize = 1000;

/// The parameters of a request's URL as received, not yet checked.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RawSearchParameters {
    q: Option<String>,
    limit: Option<String>,
    offset: Option<String>,
    page: Option<String>,
    folder: Option<String>,
    language: Option<String>,
    version: Option<String>,
    #[serde(rename = "type")]
    document_type: Option<String>,
    facets: Option<String>,
}

/// The checked parameters of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SearchRequest {
    /// The words to search for.
    pub(crate) query: String,
    /// Maximum number of results.
    pub(crate) limit: usize,
    /// Number of ranked results to skip.
    pub(crate) offset: usize,
    /// Filters that select the pages to search.
    pub(crate) filters: FacetFilters,
    /// Whether to count the matching pages by facets.
    pub(crate) facets: bool,
}

impl SearchRequest {
    /// Parses an API request, which must contain `q`.
    pub(crate) fn of_api(parameters: RawSearchParameters) -> Result<SearchRequest, ErrorResponse> {
        let filters = parameters.filters()?;
        let query = parameters.q.ok_or_else(|| {
            ErrorResponse::bad_request("`q` is missing").hint("request `/api/search?q=WORDS`")
        })?;
        Ok(SearchRequest {
            query: checked("the query", query)?,
            limit: number("limit", parameters.limit, DEFAULT_LIMIT, 1, MAX_LIMIT)?,
            offset: number("offset", parameters.offset, 0, 0, MAX_RANKED - MAX_LIMIT)?,
            filters,
            facets: is_true("facets", parameters.facets.as_deref())?,
        })
    }

    /// Parses a page request. `None` if it has no query.
    pub(crate) fn of_page(
        parameters: RawSearchParameters,
    ) -> Result<Option<SearchRequest>, ErrorResponse> {
        let filters = parameters.filters()?;
        let query = checked("the query", parameters.q.unwrap_or_default())?;
        let page = number("page", parameters.page, 1, 1, MAX_RANKED / DEFAULT_LIMIT)?;
        Ok((!query.is_empty()).then_some(SearchRequest {
            query,
            limit: DEFAULT_LIMIT,
            offset: (page - 1) * DEFAULT_LIMIT,
            filters,
            facets: true,
        }))
    }
}

impl RawSearchParameters {
    /// Returns the filters. Empty values are ignored.
    fn filters(&self) -> Result<FacetFilters, ErrorResponse> {
        let filter = |name, value: &Option<String>| match value {
            Some(value) => {
                let value = checked(&format!("`{name}`"), value.clone())?;
                Ok((!value.is_empty()).then_some(value))
            }
            None => Ok(None),
        };
        Ok(FacetFilters {
            folder: filter("folder", &self.folder)?,
            language: filter("language", &self.language)?,
            version: filter("version", &self.version)?,
            document_type: filter("type", &self.document_type)?,
        })
    }
}

/// Returns the active filters with their parameter names.
pub(crate) fn named_filters(filters: &FacetFilters) -> Vec<(&'static str, &str)> {
    let all = [
        ("folder", &filters.folder),
        ("language", &filters.language),
        ("version", &filters.version),
        ("type", &filters.document_type),
    ];
    let set = all.into_iter();
    set.filter_map(|(name, value)| Some((name, value.as_deref()?)))
        .collect()
}

fn checked(name: &str, text: String) -> Result<String, ErrorResponse> {
    if text.len() > MAX_QUERY_BYTES {
        let error = format!("{name} has {} bytes", text.len());
        return Err(ErrorResponse::bad_request(error)
            .hint(format!("the maximum is {MAX_QUERY_BYTES} bytes")));
    }
    if text.chars().any(char::is_control) {
        return Err(
            ErrorResponse::bad_request(format!("{name} contains control characters"))
                .hint("send words in UTF-8, percent-encoded"),
        );
    }
    Ok(text.trim().to_owned())
}

fn is_true(name: &str, text: Option<&str>) -> Result<bool, ErrorResponse> {
    match text {
        None | Some("" | "false") => Ok(false),
        Some("true") => Ok(true),
        Some(text) => Err(unanswerable(name, text).hint(format!("set `{name}` to true or false"))),
    }
}

fn unanswerable(name: &str, text: &str) -> ErrorResponse {
    let shown: String = text.chars().filter(|c| !c.is_control()).take(40).collect();
    ErrorResponse::bad_request(format!("invalid value: `{name}={shown}`"))
}

fn number(
    name: &str,
    text: Option<String>,
    usual: usize,
    least: usize,
    most: usize,
) -> Result<usize, ErrorResponse> {
    let Some(text) = text else {
        return Ok(usual);
    };
    match text.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(unanswerable(name, &text)
            .hint(format!("set `{name}` to a number from {least} to {most}"))),
    }
}

#[cfg(test)]
mod tests {
    use axum::extract::Query;
    use axum::http::Uri;
    use expect_test::{Expect, expect};

    use super::{RawSearchParameters, SearchRequest, named_filters};

    #[expect(clippy::needless_pass_by_value, reason = "an expectation is used once")]
    fn check(questions: &[&str], expect: Expect) {
        let mut lines = String::new();
        for question in questions {
            let uri: Uri = format!("/?{question}").parse().unwrap();
            let read = || Query::<RawSearchParameters>::try_from_uri(&uri).unwrap().0;
            let describe = |request: SearchRequest| {
                let filters = named_filters(&request.filters);
                let filters: String = filters
                    .iter()
                    .map(|(name, value)| format!(" {name}={value}"))
                    .collect();
                format!(
                    "{:?} {} {}{filters}",
                    request.query, request.limit, request.offset
                )
            };
            let api = match SearchRequest::of_api(read()) {
                Ok(request) => describe(request),
                Err(problem) => problem.error,
            };
            let page = match SearchRequest::of_page(read()) {
                Ok(request) => request.map_or_else(|| "nothing".to_owned(), describe),
                Err(problem) => problem.error,
            };
            lines += &format!("{api} | {page}\n");
        }
        expect.assert_eq(&lines);
    }

    #[test]
    fn a_question_is_read_or_refused_by_name() {
        check(
            &[
                "",
                "q=",
                "q=+two++words+",
                "q=%E6%BC%A2",
                "q=a%00b",
                "q=a%0Ab",
                "q=a&limit=50&offset=950",
                "q=a&limit=0",
                "q=a&limit=51",
                "q=a&limit=ten",
                "q=a&offset=951",
                "q=a&offset=-1",
                "q=a&other=maybe",
                "q=a&page=3",
                "q=a&page=101",
                "q=a&page=%1B",
                "q=a&facets=1",
                "q=a&facets=true&type=&language=de",
                "q=a&version=%00",
            ],
            expect![[r#"
                `q` is missing | nothing
                "" 10 0 | nothing
                "two  words" 10 0 | "two  words" 10 0
                "漢" 10 0 | "漢" 10 0
                the query contains control characters | the query contains control characters
                the query contains control characters | the query contains control characters
                "a" 50 950 | "a" 10 0
                invalid value: `limit=0` | "a" 10 0
                invalid value: `limit=51` | "a" 10 0
                invalid value: `limit=ten` | "a" 10 0
                invalid value: `offset=951` | "a" 10 0
                invalid value: `offset=-1` | "a" 10 0
                "a" 10 0 | "a" 10 0
                "a" 10 0 | "a" 10 20
                "a" 10 0 | invalid value: `page=101`
                "a" 10 0 | invalid value: `page=`
                invalid value: `facets=1` | "a" 10 0
                "a" 10 0 language=de | "a" 10 0 language=de
                `version` contains control characters | `version` contains control characters
            "#]],
        );
        let long = "q=".to_owned() + &"a".repeat(4097);
        check(
            &[&long],
            expect!["the query has 4097 bytes | the query has 4097 bytes\n"],
        );
    }
}
