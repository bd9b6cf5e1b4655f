//! Renders the HTML pages. Maud escapes all text in them.

mod facets;
mod layout;
mod result_page_urls;
mod results;
mod search;
mod state_and_report_page;
mod times;

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use crawl_weburl::safe_line;
use maud::{Markup, html};

use super::access_guard::ControlAccess;
use super::api::readable;
use super::error_response::ErrorResponse;
use super::live_state_feed::now;
use super::search_request::{RawSearchParameters, SearchRequest};
use super::server_state::{ServerState, seconds_now};
use layout::PageLayout;

/// Serves `/`: the search page, with results if there is a query.
pub(crate) async fn search(
    State(app): State<Arc<ServerState>>,
    parameters: Result<Query<RawSearchParameters>, QueryRejection>,
) -> Result<Response, ErrorResponse> {
    let request = SearchRequest::of_page(readable(parameters)?)?;
    if !app.searcher.has_index() {
        return Ok(Redirect::to("/crawl").into_response());
    }
    let stats = app.searcher.stats().await?;
    let answer = match &request {
        Some(request) => Some(app.searcher.search(request.clone(), seconds_now()).await?),
        None => None,
    };
    let title = title(&app).await;
    let answered = request.as_ref().zip(answer.as_ref());
    Ok(page(search::page(&app, &title, &stats, answered)))
}

/// Serves `/crawl`: the report, and the state of the running crawl.
pub(crate) async fn crawl(State(app): State<Arc<ServerState>>) -> Result<Response, ErrorResponse> {
    let controls: ControlAccess = app.guard.controls();
    let report = app.reports.get().await?;
    // Show the report even if the crawl can't be queried.
    let moment = now(&app.dir).await.ok();
    Ok(page(state_and_report_page::page(
        &app,
        &report,
        moment.as_ref(),
        controls,
    )))
}

/// Renders the page for an error.
pub(crate) fn problem(app: &ServerState, problem: &ErrorResponse) -> Markup {
    let status = problem.status;
    let name = status.canonical_reason().unwrap_or("Error");
    PageLayout::new(app, name).page(html! {
        main.narrow {
            p.code { (status.as_u16()) }
            h1 { (name) }
            p { (quoted(&sentence(&problem.error))) }
            @if let Some(hint) = &problem.hint {
                p.quiet { (quoted(&sentence(hint))) }
            }
            p { a.button href="/" { "Go to search" } }
        }
    })
}

/// Returns the title of the search page.
async fn title(app: &ServerState) -> String {
    if let Some(title) = &app.title {
        return title.clone();
    }
    let stats = app.searcher.stats().await;
    match stats.ok().and_then(|stats| stats.hosts.first().cloned()) {
        Some((host, _)) => format!("Search {host}"),
        None => "Search".to_owned(),
    }
}

fn page(markup: Markup) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    (kind, markup.into_string()).into_response()
}

/// Turns a message into a sentence, with a capital and a full stop.
fn sentence(message: &str) -> String {
    let mut rest = message.chars();
    let first = rest.next().map(char::to_uppercase);
    let begun: String = first.into_iter().flatten().chain(rest).collect();
    match begun.ends_with(['.', '?', '!']) {
        true => begun,
        false => begun + ".",
    }
}

/// Renders a message, with the parts in backticks as code.
fn quoted(message: &str) -> Markup {
    let message = safe_line(message);
    html! {
        @for (at, part) in message.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}
