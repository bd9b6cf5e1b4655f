//! The pages. All text goes through maud, which escapes it.

mod addresses;
mod crawl;
mod facets;
mod layout;
mod results;
mod search;
mod times;

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use crawl_weburl::safe_line;
use maud::{Markup, html};

use super::api::readable;
use super::guard::Controls;
use super::live_state::now;
use super::problem::Problem;
use super::search_request::{Parameters, SearchRequest};
use super::state::{App, seconds_now};
use layout::Frame;

/// `/`: the search page, with results where something is asked.
pub(crate) async fn search(
    State(app): State<Arc<App>>,
    parameters: Result<Query<Parameters>, QueryRejection>,
) -> Result<Response, Problem> {
    let asked = SearchRequest::of_page(readable(parameters)?)?;
    if !app.searcher.has_index() {
        return Ok(Redirect::to("/crawl").into_response());
    }
    let stats = app.searcher.stats().await?;
    let answer = match &asked {
        Some(asked) => Some(app.searcher.search(asked.clone(), seconds_now()).await?),
        None => None,
    };
    let title = title(&app).await;
    let answered = asked.as_ref().zip(answer.as_ref());
    Ok(page(search::page(&app, &title, &stats, answered)))
}

/// `/crawl`: the report, and the state of the crawl that runs.
pub(crate) async fn crawl(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let controls: Controls = app.guard.controls();
    let report = app.reports.get().await?;
    // The report is there, whatever becomes of the question.
    let moment = now(&app.dir).await.ok();
    Ok(page(crawl::page(&app, &report, moment.as_ref(), controls)))
}

/// The page in place of one that can't be shown.
pub(crate) fn problem(app: &App, problem: &Problem) -> Markup {
    let status = problem.status;
    let name = status.canonical_reason().unwrap_or("Error");
    Frame::new(app, name).page(html! {
        main.narrow {
            p.code { (status.as_u16()) }
            h1 { (name) }
            p { (quoted(&sentence(&problem.error))) }
            @if let Some(hint) = &problem.hint {
                p.quiet { (quoted(&sentence(hint))) }
            }
            p { a.button href="/" { "To the search" } }
        }
    })
}

/// The title of the search page.
async fn title(app: &App) -> String {
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

/// A message as a sentence: messages begin in lower case and have no full stop.
fn sentence(message: &str) -> String {
    let mut rest = message.chars();
    let first = rest.next().map(char::to_uppercase);
    let begun: String = first.into_iter().flatten().chain(rest).collect();
    match begun.ends_with(['.', '?', '!']) {
        true => begun,
        false => begun + ".",
    }
}

/// A message with what stands in backticks as code.
fn quoted(message: &str) -> Markup {
    let message = safe_line(message);
    html! {
        @for (at, part) in message.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}
