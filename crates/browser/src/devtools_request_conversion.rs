//! Converts requests and responses from and to the DevTools protocol.

use bytes::Bytes;
use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::{InterceptedRequest, PageRequestResult, PageToRender, RequestKind};

/// Response headers that are not passed to the browser. Some describe the encoded body, but the
/// browser gets the decoded one. Most of the others make the browser send requests that the page
/// doesn't make itself: prefetches, preconnects, reports, upgrades to https.
const DROPPED_HEADERS: [&str; 15] = [
    "accept-ch",
    "alt-svc",
    "clear-site-data",
    "connection",
    "content-encoding",
    "content-length",
    "critical-ch",
    "link",
    "nel",
    "report-to",
    "reporting-endpoints",
    "service-worker-allowed",
    "speculation-rules",
    "strict-transport-security",
    "transfer-encoding",
];

/// Returns the request described by the parameters of a `Fetch.requestPaused` event.
pub(crate) fn wanted(params: &Value, is_document: bool) -> InterceptedRequest {
    let request = &params["request"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let headers: Vec<(String, String)> = request["headers"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), text(value)))
        .collect();
    let method = text(&request["method"]);
    InterceptedRequest {
        url: text(&request["url"]),
        kind: kind(&text(&params["resourceType"]), &method, &headers),
        method,
        headers,
        body: body(request),
        is_frame: is_document,
    }
}

/// Returns the purpose of a request. Checks some headers first, because the browser reports `fetch`
/// and event streams as XHR.
fn kind(resource_type: &str, method: &str, headers: &[(String, String)]) -> RequestKind {
    let header = |name: &str| {
        let header = headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        header.map_or("", |(_, value)| value.as_str())
    };
    if header("sec-purpose").contains("prefetch") {
        return RequestKind::Prefetch;
    }
    if method == "OPTIONS" && !header("access-control-request-method").is_empty() {
        return RequestKind::Preflight;
    }
    if header("accept") == "text/event-stream" {
        return RequestKind::EventSource;
    }
    match resource_type {
        "Document" => RequestKind::Document,
        "Script" => RequestKind::Script,
        "Stylesheet" => RequestKind::Stylesheet,
        "Image" => RequestKind::Image,
        "Media" | "TextTrack" => RequestKind::Media,
        "Font" => RequestKind::Font,
        "Fetch" => RequestKind::Fetch,
        "XHR" => RequestKind::Xhr,
        "Preflight" => RequestKind::Preflight,
        "EventSource" => RequestKind::EventSource,
        "Manifest" => RequestKind::Manifest,
        "Ping" => RequestKind::Beacon,
        "CSPViolationReport" => RequestKind::Report,
        "Prefetch" => RequestKind::Prefetch,
        _ => RequestKind::Other,
    }
}

fn body(request: &Value) -> Option<Bytes> {
    if let Some(entries) = request["postDataEntries"].as_array() {
        let parts: Option<Vec<Vec<u8>>> = entries
            .iter()
            .map(|entry| BASE64.decode(entry["bytes"].as_str()?.as_bytes()).ok())
            .collect();
        return Some(parts?.concat().into());
    }
    match request["postData"].as_str() {
        Some(text) => Some(Bytes::copy_from_slice(text.as_bytes())),
        None => (request["hasPostData"] != true).then(Bytes::new),
    }
}

/// Converts a fetched page to the answer to the browser's request for the page's document.
pub(crate) fn document(page: PageToRender) -> PageRequestResult {
    let mut headers = page.headers;
    // Remove this header, because the browser would save the page as a file instead of showing it.
    headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-disposition"));
    PageRequestResult::Response {
        status: page.status,
        headers,
        body: page.body,
    }
}

/// Returns the parameters of the command `Fetch.fulfillRequest`, which answers the paused request
/// `id`.
pub(crate) fn response(id: &str, status: u16, headers: &[(String, String)], body: &Bytes) -> Value {
    let is_kept = |name: &str| {
        !DROPPED_HEADERS
            .iter()
            .any(|dropped| dropped.eq_ignore_ascii_case(name))
    };
    let headers: Vec<Value> = headers
        .iter()
        .filter(|(name, _)| is_kept(name))
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    json!({
        "requestId": id,
        "responseCode": status,
        "responseHeaders": headers,
        "body": BASE64.encode(body),
    })
}
