//! Pages to render, the requests that they make, and the results of rendering.

use std::pin::Pin;
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use crate::error::ScreenshotError;

/// A fetched page to render.
#[derive(Debug, Clone)]
pub struct PageToRender {
    /// The URL of the response, after redirects.
    pub url: String,
    /// The status of the response.
    pub status: u16,
    /// The headers of the response.
    pub headers: Vec<(String, String)>,
    /// The body, with its content coding removed.
    pub body: Bytes,
    /// The initial time of the page's virtual clock. `None` for the current time. To get the same
    /// DOM when a page is rendered again, pass the same time.
    pub time: Option<SystemTime>,
}

/// A future that completes with the answer to a request of a page.
pub type PageRequestFuture = Pin<Box<dyn Future<Output = PageRequestResult> + Send>>;

/// Answers the requests that a page makes while it is rendered.
pub trait PageRequestHandler: Send + Sync {
    /// Answers one request. The page's virtual clock is stopped until the future completes. A page
    /// receives one answer at a time, in the order in which they are ready.
    fn request(&self, wanted: InterceptedRequest) -> PageRequestFuture;
}

/// A request that a page wants to make.
#[derive(Debug, Clone)]
pub struct InterceptedRequest {
    /// The URL, without a fragment.
    pub url: String,
    /// The HTTP method, such as `GET`.
    pub method: String,
    /// The headers that the browser would send, except those that its network stack adds, such as
    /// `Host`, `Cookie` and `Accept-Encoding`.
    pub headers: Vec<(String, String)>,
    /// The body, which may be empty. `None` if the browser doesn't reveal the body, as in file
    /// uploads.
    pub body: Option<Bytes>,
    /// The purpose of the request.
    pub kind: RequestKind,
    /// Whether the request is for the document of a frame within the page.
    pub is_frame: bool,
}

/// The purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::Display)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum RequestKind {
    /// The document of a frame.
    Document,
    /// A script or module, including those that a worker imports.
    Script,
    /// A style sheet.
    Stylesheet,
    /// An image or an icon.
    Image,
    /// Audio, video or a text track.
    Media,
    /// A font.
    Font,
    /// A call of `fetch`. Chromium currently reports such calls as [`RequestKind::Xhr`].
    Fetch,
    /// An `XMLHttpRequest` or a call of `fetch`.
    Xhr,
    /// The `OPTIONS` request of CORS.
    Preflight,
    /// A stream of server-sent events (`EventSource`).
    EventSource,
    /// The manifest of a web app.
    Manifest,
    /// `navigator.sendBeacon` or the `ping` of a link.
    Beacon,
    /// A violation report, such as those of CSP.
    Report,
    /// A prefetch or a prerender.
    Prefetch,
    /// Any other request, such as for an object or the main script of a worker.
    Other,
}

/// The answer to a request of a page.
#[derive(Debug, Clone)]
pub enum PageRequestResult {
    /// A response. If it is a redirect, the browser makes another request.
    Response {
        /// The HTTP status code.
        status: u16,
        /// The header fields, as names and values.
        headers: Vec<(String, String)>,
        /// The body, with its content coding removed.
        body: Bytes,
    },
    /// No response. To the page, this looks like a network error.
    Refused,
}

/// A rendered page.
#[derive(Debug, Clone)]
pub struct RenderingResult {
    /// The serialized DOM, with shadow roots as `<template shadowrootmode>`.
    pub dom: String,
    /// The final URL of the document, which scripts may have changed within its origin.
    pub final_url: String,
    /// The virtual time that passed for the page.
    pub page_time: Duration,
    /// Number of requests that were passed to [`PageRequestHandler`].
    pub requests: u32,
    /// Number of refused requests, including those in `withheld`.
    pub refused: u32,
    /// Number of requests that were refused because the page exceeded
    /// [`BrowserConfig::max_requests`](crate::BrowserConfig::max_requests).
    pub withheld: u32,
    /// The HTTP URL that a browser would have navigated to, by a script, a refresh or a click. All
    /// navigations are refused.
    pub navigation: Option<String>,
    /// Number of connections that reached the refusing proxy while the page was rendered: requests
    /// that the browser did not pass to [`PageRequestHandler`].
    pub wall_hits: u32,
    /// The screenshot as PNG, or the reason why it could not be taken. `None` if screenshots are
    /// disabled.
    pub screenshot: Option<Result<Bytes, ScreenshotError>>,
}
