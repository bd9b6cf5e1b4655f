//! Tests of filters on documents by type, size and language. Each test compares the outcome and the
//! links of each document of a generated web with rules that the test itself states.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crawl_archive::rows::PageRow;
use crawl_fetcher::{BodyFilter, Exchange, ExchangeFailure, TruncationReason};
use crawl_frontier::MemoryFrontier;
use crawl_scheduler::Tick;
use crawl_scope::ContentFilter;
use crawl_weburl::canonicalize;

use super::scripted_servers::{SimulatedAnswer, answer, rows};
use super::{SimulatedRunSettings, SimulatedServers, config, drawn, play_run};
use crate::messages::RequestJob;
use crate::revisit::visit::Round;
use crate::summary::EndReason;

const DOCUMENTS: u64 = 60;
const MIN: u64 = 200;
const MAX: u64 = 400;

/// Cuts off the body of an answer that the filter doesn't want to read, as the fetcher does.
/// Returns the resulting exchange.
pub(super) fn filtered(
    answer: Exchange,
    job: &RequestJob,
    filter: Option<&BodyFilter>,
) -> Exchange {
    let Some(filter) = filter.filter(|_| job.request().is_filtered) else {
        return answer;
    };
    if !filter.wants(answer.status, &answer.headers) {
        return Exchange {
            body: Bytes::new(),
            truncated: Some(TruncationReason::Unwanted),
            ..answer
        };
    }
    let limit = filter.at_most(answer.body.len() as u64) as usize;
    match limit < answer.body.len() {
        true => Exchange {
            body: answer.body.slice(..limit),
            truncated: Some(TruncationReason::Length),
            ..answer
        },
        false => answer,
    }
}

/// A document of the generated web.
struct FilteredDocument {
    content_type: &'static str,
    language: Option<&'static str>,
    links: Vec<u64>,
    body: String,
    /// Whether the server sends a `Content-Length`.
    is_announced: bool,
}

fn document(number: u64) -> FilteredDocument {
    let draw = |what: u64| drawn(drawn(3, &[number, what]), &[what]) >> 16;
    let is_html = number == 0 || draw(1) % 2 == 0;
    let types = ["image/png", "application/pdf", "application/json"];
    let content_type = match is_html {
        true => "text/html",
        false => types[(draw(2) % 3) as usize],
    };
    // The first document, where the crawl begins, is in an unwanted language.
    let language = match draw(3) % 3 {
        _ if !is_html => None,
        _ if number == 0 => Some("fr"),
        0 => Some("de-AT"),
        1 => Some("fr"),
        _ => None,
    };
    let links: Vec<_> = (0..4).map(|link| draw(10 + link) % DOCUMENTS).collect();
    let links = if is_html { links } else { Vec::new() };
    let mut body = match is_html {
        true => {
            let lang = language.map(|tag| format!(" lang={tag}"));
            let anchors = links.iter().map(|to| format!("<a href=/d{to}>x</a>"));
            format!(
                "<html{}>{}",
                lang.unwrap_or_default(),
                anchors.collect::<String>()
            )
        }
        false => String::new(),
    };
    let length = match number {
        0 => 300,
        _ => 100 + draw(4) % 400,
    };
    while (body.len() as u64) < length {
        body.push(' ');
    }
    FilteredDocument {
        content_type,
        language,
        links,
        body,
        is_announced: draw(5) % 2 == 0,
    }
}

/// Returns the expected outcome of a document: the number of bytes read, why it is unwanted, and
/// whether its links are followed.
fn expected(number: u64, filter: &ContentFilter) -> (u64, Option<String>, bool) {
    let FilteredDocument {
        content_type,
        language,
        body,
        is_announced,
        ..
    } = document(number);
    let bytes = body.len() as u64;
    let leads_on = matches!(content_type, "text/html" | "application/json");
    let of_type = match (&*filter.types, content_type) {
        ([], _) => None,
        ([_], "text/html") | ([_, _], "image/png" | "application/pdf") => None,
        _ => Some(format!("content-type {content_type}")),
    };
    let too_short = (bytes < filter.min_size).then(|| format!("min-size {MIN}"));
    let by_head = of_type
        .clone()
        .or_else(|| too_short.clone().filter(|_| is_announced));
    if filter.max_size.is_some_and(|most| bytes > most) {
        let read = match by_head.filter(|_| !leads_on) {
            Some(of_type) if !is_announced => return (0, Some(of_type), false),
            _ if is_announced => 0,
            _ => MAX,
        };
        return (read, Some(format!("max-size {MAX}")), false);
    }
    if let Some(why) = by_head.filter(|_| !leads_on) {
        return (0, Some(why), false);
    }
    let is_foreign = language == Some("fr") && !filter.languages.is_empty() && number != 0;
    let foreign = is_foreign.then(|| "language fr".to_owned());
    (bytes, foreign.or(of_type).or(too_short), !is_foreign)
}

/// The servers of the generated web, whose documents do not change.
struct FilteredWeb;

fn number(path: &str) -> Option<u64> {
    path.strip_prefix("/d")?.parse().ok()
}

impl SimulatedServers for FilteredWeb {
    fn exchange(&mut self, job: &RequestJob, now: Tick) -> Result<Exchange, ExchangeFailure> {
        let url = job.url();
        let answer: SimulatedAnswer = match number(url.path()) {
            Some(number) => {
                let document = document(number);
                let answer = answer(200, &document.body);
                let answer = answer.with("content-type", document.content_type);
                match document.is_announced {
                    true => answer.with("content-length", &document.body.len().to_string()),
                    false => answer,
                }
            }
            None => answer(404, ""),
        };
        answer.result(url, now)
    }
}

/// The fetched documents by number, each with its length and, if unwanted, the reason.
type FetchedDocuments = BTreeMap<u64, (u64, Option<String>)>;

fn reachable(filter: &ContentFilter) -> FetchedDocuments {
    let (mut fetched, mut open) = (FetchedDocuments::new(), vec![0]);
    while let Some(number) = open.pop() {
        let (bytes, unwanted, is_followed) = expected(number, filter);
        if fetched.insert(number, (bytes, unwanted)).is_none() && is_followed {
            open.extend(document(number).links);
        }
    }
    fetched
}

fn crawl(filter: &ContentFilter) -> FetchedDocuments {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.seeds = vec![canonicalize(None, "http://a.example/d0").unwrap()];
    config.wanted = filter.clone();
    let run = SimulatedRunSettings {
        config,
        frontier: Arc::new(MemoryFrontier::new()),
        seed: 1,
        round: Round::first(0),
        page_takes: Duration::ZERO,
        earlier: &mut |_| {},
    };
    let played = play_run(run, &mut |_, _| Vec::new(), &mut FilteredWeb);
    assert_eq!(played.ended, EndReason::Finished);
    let rows = rows::<PageRow>(dir.path(), "pages.jsonl").into_iter();
    let rows = rows.map(|row| {
        assert_eq!((row.error, row.status), (None, Some(200)), "{}", row.url);
        // A body that was not read has no digest.
        assert_eq!(row.digest.is_some(), row.bytes > 0, "{}", row.url);
        let path = row.url.strip_prefix("http://a.example").unwrap();
        let document = document(number(path).unwrap());
        let (sniff_media_type, language) = match document.content_type {
            "text/html" => ("text/html", document.language),
            _ => ("text/plain", None),
        };
        let is_too_long = row.unwanted.as_deref() == Some("max-size 400");
        let sniff_media_type = (row.bytes > 0 && !is_too_long).then_some(sniff_media_type);
        assert_eq!(
            row.detected_type.as_deref(),
            sniff_media_type,
            "{}",
            row.url
        );
        // The language is detected only if languages are filtered, and only for pages that are read
        // and are not seeds.
        let has_language = !filter.languages.is_empty() && row.depth > 0 && !is_too_long;
        let language = language.filter(|_| has_language);
        assert_eq!(row.language.as_deref(), language, "{}", row.url);
        (number(path).unwrap(), (row.bytes, row.unwanted))
    });
    rows.collect()
}

#[test]
fn rows_state_why_a_document_is_unwanted_and_its_links_are_followed_as_documented() {
    let mut reasons = BTreeMap::new();
    let types: [&[&str]; 3] = [&[], &["text/html"], &["application/pdf", "image/*"]];
    for types in types {
        for languages in [&[][..], &["de"]] {
            for (min_size, max_size) in [(0, None), (MIN, None), (0, Some(MAX)), (MIN, Some(MAX))] {
                let filter = ContentFilter {
                    types: types.iter().map(|range| range.parse().unwrap()).collect(),
                    min_size,
                    max_size,
                    languages: languages.iter().map(|tag| tag.parse().unwrap()).collect(),
                };
                let fetched = crawl(&filter);
                assert_eq!(fetched, reachable(&filter), "{filter:?}");
                for (_, unwanted) in fetched.values() {
                    *reasons.entry(unwanted.clone()).or_insert(0) += 1;
                }
            }
        }
    }
    let least = |why: &str| reasons[&Some(why.to_owned())];
    for why in [
        "content-type text/html",
        "content-type application/pdf",
        "content-type application/json",
        "language fr",
        "min-size 200",
        "max-size 400",
    ] {
        assert!(least(why) > 3, "{why}: {reasons:?}");
    }
}
