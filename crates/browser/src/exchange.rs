//! Pages to render, the requests they make, and what comes out.

use std::pin::Pin;
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use crate::error::ScreenshotError;

/// A fetched page.
#[derive(Debug, Clone)]
pub struct PageToRender {
    /// The URL that answered, after redirects.
    pub url: String,
    /// The status of the response.
    pub status: u16,
    /// The headers of the response.
    pub headers: Vec<(String, String)>,
    /// The body, without its content coding.
    pub body: Bytes,
    /// Start of the page's clock. If `None`, the current time. Rendering a page again gives the
    /// same DOM only with the same time.
    pub time: Option<SystemTime>,
}

/// A future answer to a request of a page.
pub type AnswerFuture = Pin<Box<dyn Future<Output = PageAnswer> + Send>>;

/// Answers the requests of a page.
pub trait PageRequests: Send + Sync {
    /// Answers one request. The page's clock stops until then.
    fn request(&self, wanted: WantedRequest) -> AnswerFuture;
}

/// A request that a page wants to make.
#[derive(Debug, Clone)]
pub struct WantedRequest {
    /// The URL, without a fragment.
    pub url: String,
    /// The method.
    pub method: String,
    /// The headers that the browser would send, without those of its network stack (such as
    /// `Host`, `Cookie` and `Accept-Encoding`).
    pub headers: Vec<(String, String)>,
    /// The body, which may be empty. `None` if the browser withholds it, as it does with files.
    pub body: Option<Bytes>,
    /// Purpose of the request.
    pub kind: RequestKind,
    /// Whether the request is for the document of a frame within the page.
    pub is_frame: bool,
}

/// Purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::Display)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum RequestKind {
    /// The document of a frame.
    Document,
    /// A script or a module, or one that a worker imports.
    Script,
    /// A style sheet.
    Stylesheet,
    /// An image or an icon.
    Image,
    /// Audio, video or a text track.
    Media,
    /// A font.
    Font,
    /// `fetch`. Chromium reports it as [`RequestKind::Xhr`] at present.
    Fetch,
    /// `XMLHttpRequest` or `fetch`.
    Xhr,
    /// The `OPTIONS` request of CORS.
    Preflight,
    /// A stream of events.
    EventSource,
    /// The manifest of an app.
    Manifest,
    /// `navigator.sendBeacon` or the `ping` of a link.
    Beacon,
    /// A report of a policy, such as CSP.
    Report,
    /// A prefetch or a prerender.
    Prefetch,
    /// Anything else: the main script of a worker, objects.
    Other,
}

/// The answer to a request of a page.
#[derive(Debug, Clone)]
pub enum PageAnswer {
    /// A response. The browser follows redirects by another request.
    Response {
        /// The status.
        status: u16,
        /// The headers.
        headers: Vec<(String, String)>,
        /// The body, without its content coding.
        body: Bytes,
    },
    /// No response: the request fails for the page.
    Refused,
}

/// A rendered page.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// The serialized DOM, with shadow roots as `<template shadowrootmode>`.
    pub dom: String,
    /// The URL of the document, which scripts may have changed within its origin.
    pub final_url: String,
    /// The time that passed for the page.
    pub page_time: Duration,
    /// Number of requests that went to [`PageRequests`].
    pub requests: u32,
    /// Number of refused requests, including requests beyond the bound.
    pub refused: u32,
    /// Number of refused requests beyond the bound.
    pub withheld: u32,
    /// The first URL that the page tried to navigate to (`location`, a refresh, a click). All
    /// navigations are refused.
    pub navigation: Option<String>,
    /// Number of connections to the wall while the page was rendered.
    pub wall_hits: u32,
    /// A screenshot (PNG), or why there is none. `None` if screenshots are off.
    pub screenshot: Option<Result<Bytes, ScreenshotError>>,
}
