//! JSON endpoints, described by `page/openapi.json`.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response, Sse};
use axum::routing::{MethodRouter, get, post};
use crawl_index::{IndexStats, IndexedPage, SearchResults};
use crawl_weburl::canonicalize;
use serde::Deserialize;

use super::control_api;
use super::error_response::ErrorResponse;
use super::live_state_feed::{LiveEventStream, LiveStateMessage, now};
use super::search_request::{RawSearchParameters, SearchRequest};
use super::server_state::{ServerState, seconds_now};

/// The description of the API.
const OPENAPI: &str = include_str!("page/openapi.json");

/// Returns the path and the handler of each endpoint. Paths use OpenAPI syntax (`{name}`).
pub(crate) fn routes() -> [(&'static str, MethodRouter<Arc<ServerState>>); 7] {
    [
        ("/api/search", get(search)),
        ("/api/page", get(page)),
        ("/api/stats", get(stats)),
        ("/api/crawl", get(crawl)),
        ("/api/crawl/events", get(events)),
        ("/api/crawl/{command}", post(control_api::command)),
        ("/api/openapi.json", get(openapi)),
    ]
}

async fn search(
    State(app): State<Arc<ServerState>>,
    parameters: Result<Query<RawSearchParameters>, QueryRejection>,
) -> Result<Json<SearchResults>, ErrorResponse> {
    let request = SearchRequest::of_api(readable(parameters)?)?;
    let query = request.query.clone();
    let answer = app.searcher.search(request, seconds_now()).await?;
    Ok(Json(SearchResults { query, ..answer }))
}

#[derive(Debug, Deserialize)]
struct PageUrlParameter {
    url: Option<String>,
}

async fn page(
    State(app): State<Arc<ServerState>>,
    parameters: Result<Query<PageUrlParameter>, QueryRejection>,
) -> Result<Json<IndexedPage>, ErrorResponse> {
    let url = readable(parameters)?.url.ok_or_else(|| {
        ErrorResponse::bad_request("`url` is missing").hint("request `/api/page?url=URL`")
    })?;
    let url = canonicalize(None, &url).map_err(|why| {
        ErrorResponse::bad_request(format!("unusable `url`: {why}"))
            .hint("give a whole URL such as `https://example.org/page`, percent-encoded")
    })?;
    let indexed_page = app.searcher.page(url.as_str().to_owned()).await?;
    let indexed_page =
        indexed_page.filter(|page| page.until.is_none_or(|until| until > seconds_now()));
    let unknown = || {
        ErrorResponse::new(StatusCode::NOT_FOUND, "the index has no such page")
            .hint("`crawl explain DIR URL` shows why a URL was not fetched")
    };
    indexed_page
        .map(|page| Json(shown(page)))
        .ok_or_else(unknown)
}

/// Truncates the main text, the text beside it and the description to the length that `nosnippet`
/// or `max-snippet` allows. If the page has such a limit, its headings and the texts of its links
/// are omitted too, because both are parts of its text. `withheld` is always omitted.
fn shown(mut page: IndexedPage) -> IndexedPage {
    page.withheld.clear();
    let Some(max_chars) = page.max_snippet else {
        return page;
    };
    let max_chars = usize::try_from(max_chars).unwrap_or(usize::MAX);
    let cut = |text: &str| text.chars().take(max_chars).collect::<String>();
    let [text, beside, description] =
        [&page.text, &page.beside, &page.description].map(|text| cut(text));
    let mut links = page.links;
    links.iter_mut().for_each(|link| link.text.clear());
    IndexedPage {
        text,
        beside,
        description,
        headings: Vec::new(),
        links,
        ..page
    }
}

async fn stats(State(app): State<Arc<ServerState>>) -> Result<Json<IndexStats>, ErrorResponse> {
    let stats = app.searcher.stats().await?;
    Ok(Json(IndexStats::clone(&stats)))
}

async fn crawl(
    State(app): State<Arc<ServerState>>,
) -> Result<Json<LiveStateMessage>, ErrorResponse> {
    now(&app.dir).await.map(Json)
}

async fn events(State(app): State<Arc<ServerState>>) -> Result<impl IntoResponse, ErrorResponse> {
    let events: Sse<LiveEventStream> = app.live.events()?;
    // Keep buffering proxies from delaying events.
    Ok(([("x-accel-buffering", "no")], events))
}

async fn openapi() -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, OPENAPI).into_response()
}

/// Returns the parameters, or why they are invalid.
pub(crate) fn readable<T>(
    parameters: Result<Query<T>, QueryRejection>,
) -> Result<T, ErrorResponse> {
    match parameters {
        Ok(Query(parameters)) => Ok(parameters),
        Err(why) => {
            let text = why.body_text();
            let reason = text
                .rsplit_once(": ")
                .map_or(text.as_str(), |(_, reason)| reason);
            Err(
                ErrorResponse::bad_request(format!("can't read the parameters: {reason}"))
                    .hint("give each parameter only once"),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crawl_index::{Heading, IndexedPage, OutgoingLink};
    use serde_json::Value;

    use super::{OPENAPI, routes, shown};
    use crate::serve::control_api::COMMANDS;

    #[test]
    fn openapi_names_each_route_and_no_other() {
        let openapi: Value = serde_json::from_str(OPENAPI).unwrap();
        let described: BTreeSet<&str> = openapi["paths"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let mut served = BTreeSet::new();
        for (path, _) in routes() {
            match path.strip_suffix("{command}") {
                None => _ = served.insert(path.to_owned()),
                Some(before) => served.extend(COMMANDS.map(|name| before.to_owned() + name)),
            }
        }
        assert!(described.into_iter().eq(served.iter().map(String::as_str)));
    }

    #[test]
    fn no_more_text_is_shown_than_a_page_allows() {
        let page = |max_snippet| IndexedPage {
            text: "grün und mehr".to_owned(),
            description: "kurz".to_owned(),
            headings: vec![Heading {
                text: "grün".to_owned(),
                ..Heading::default()
            }],
            links: vec![OutgoingLink {
                url: "http://a.example/".to_owned(),
                text: "mehr".to_owned(),
            }],
            max_snippet,
            ..IndexedPage::default()
        };
        assert_eq!(shown(page(None)), page(None));
        let cut = shown(page(Some(3)));
        assert_eq!(
            (cut.text.as_str(), cut.description.as_str()),
            ("grü", "kur")
        );
        for max_snippet in [3, 0] {
            let cut = shown(page(Some(max_snippet)));
            assert!(cut.headings.is_empty());
            let link = &cut.links[0];
            assert_eq!(
                (link.url.as_str(), link.text.as_str()),
                ("http://a.example/", "")
            );
        }
        assert_eq!(shown(page(Some(0))).text, "");
    }
}
