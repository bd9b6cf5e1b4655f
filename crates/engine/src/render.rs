//! Rendering of pages that scripts build: its settings, and the interface to a browser.
//!
//! The engine does not depend on a browser. A [`Renderer`] gets a page that was already fetched,
//! and passes each further request of the page to [`ResourceRequestSender`]. The crawl loop judges,
//! paces and archives these requests like all others.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use crawl_coding::{DecodeLimits, decode};
use crawl_extractor::{essence, may_be_read, sniff_media_type};
use crawl_fetcher::{Exchange, PostBody};
use crawl_scheduler::Tick;
use crawl_weburl::{AddressClass, classify};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use crate::content_type::content_type;

/// How pages are rendered.
#[derive(Clone)]
pub struct RenderConfig {
    /// Which pages are rendered.
    pub mode: RenderMode,
    /// The browser.
    pub renderer: Arc<dyn Renderer>,
    /// Maximum pages to render at once.
    pub tabs: usize,
    /// Whether images, media and fonts are fetched too.
    pub all_resources: bool,
    /// Whether pages may send POST requests to their own origin.
    pub posts: bool,
    /// Limits of the requests of one page.
    pub limits: RenderLimits,
}

impl fmt::Debug for RenderConfig {
    /// Formats all fields except `renderer`, which can't be formatted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RenderConfig");
        shown.field("mode", &self.mode);
        shown.field("tabs", &self.tabs);
        shown.field("all_resources", &self.all_resources);
        shown.field("posts", &self.posts);
        shown.field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Which pages are rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenderMode {
    /// Render pages that look as if scripts build them. If several rendered pages with the same
    /// URL shape show no more than the pages as sent, stop rendering pages of that shape.
    Auto,
    /// Render all HTML pages.
    On,
}

/// Limits of the requests that a page makes while it is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderLimits {
    /// Maximum requests of a rendered page.
    /// Beyond the limit: further requests are refused.
    pub requests: u32,
    /// Maximum bytes of all bodies of a rendered page.
    /// Beyond the limit: further requests are refused.
    pub bytes: u64,
    /// Maximum hosts that a rendered page may send requests to.
    /// Beyond the limit: requests to further hosts are refused.
    pub hosts: usize,
}

impl Default for RenderLimits {
    fn default() -> RenderLimits {
        RenderLimits {
            requests: 100,
            bytes: 32 << 20,
            hosts: 10,
        }
    }
}

/// A browser that renders pages, but has no network.
pub trait Renderer: Send + Sync {
    /// Renders a page. All its requests go to `requests`.
    fn render(&self, page: PageToRender, requests: ResourceRequestSender) -> RenderFuture;

    /// Returns the name and version of the browser, for the archive and the report. `None` if
    /// unknown.
    fn version(&self) -> Option<&str> {
        None
    }
}

/// A [`Renderer`] for builds without a browser. Rendering always fails with the reason `why`. A
/// replay with this renderer reads the archived DOMs.
#[derive(Clone, Debug)]
pub struct NoBrowserRenderer {
    /// The reason.
    pub why: String,
}

impl Renderer for NoBrowserRenderer {
    fn render(&self, _page: PageToRender, _requests: ResourceRequestSender) -> RenderFuture {
        let failure = RenderFailure::no_browser(&self.why);
        Box::pin(async { Err(failure) })
    }
}

/// The future that [`Renderer::render`] returns.
pub type RenderFuture = Pin<Box<dyn Future<Output = Result<RenderedPage, RenderFailure>> + Send>>;

/// A fetched page for a browser to render.
#[derive(Clone, Debug)]
pub struct PageToRender {
    /// The URL of the page.
    pub url: String,
    /// The status of the answer.
    pub status: u16,
    /// The header fields of the answer, without those of its content coding.
    pub headers: HeaderMap,
    /// The decoded body.
    pub body: Bytes,
    /// When the page was fetched. The page's clock starts at this time, so that rendering the page
    /// again gives the same result.
    pub time: SystemTime,
}

impl PageToRender {
    /// Decodes the answer for a page. If the page has no usable `Content-Type`, adds the type that
    /// its first bytes indicate. The page's clock starts at a whole millisecond, because rows have
    /// times in milliseconds, and a replay must start the clock at the same time.
    pub(crate) fn of(url: String, fetched: Tick, answer: UndecodedResponse) -> PageToRender {
        let (status, mut headers, body) = answer.decode();
        // Browsers detect the type by other rules than the readers, or not at all because of
        // `X-Content-Type-Options`. So declare the type that the readers detect.
        if essence(content_type(&headers).as_deref()).is_none()
            && let Some(detected) = sniff_media_type(&body)
        {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(detected));
        }
        PageToRender {
            url,
            status,
            headers,
            body,
            time: SystemTime::UNIX_EPOCH + Duration::from_millis(fetched.as_millis()),
        }
    }
}

/// A page as a browser shows it.
#[derive(Clone, Debug)]
pub struct RenderedPage {
    /// The serialized DOM, in UTF-8.
    pub dom: String,
    /// How long the page's scripts ran, by the page's own clock.
    pub page_time: Duration,
    /// Number of requests beyond [`RenderLimits::requests`] that the browser refused.
    pub withheld: u32,
    /// The URL that the page's scripts tried to move to, which counts as a link.
    pub navigation: Option<String>,
    /// A screenshot (PNG), or the name in rows of the reason why there is none. `None` if
    /// screenshots are off.
    pub screenshot: Option<Result<Bytes, &'static str>>,
}

/// Why a page was not rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderFailure {
    /// The name in rows: `browser_missing`, `browser_crashed`, `page_failed`, `render_timeout` or
    /// `render_budget`.
    pub name: &'static str,
    /// The details, for the log.
    pub detail: String,
    /// Whether the fault is the browser's and not the page's, so that other pages may fail as well.
    pub is_browsers: bool,
}

impl RenderFailure {
    /// Names the failure of a missing browser.
    pub(crate) const NO_BROWSER: &'static str = "browser_missing";

    /// Returns the failure that a row names.
    pub(crate) fn recorded(name: &str) -> RenderFailure {
        const NAMES: [&str; 5] = [
            RenderFailure::NO_BROWSER,
            "browser_crashed",
            "page_failed",
            "render_timeout",
            "render_budget",
        ];
        let failure = NAMES.into_iter().find(|failure| *failure == name);
        RenderFailure {
            name: failure.unwrap_or("page_failed"),
            detail: "as recorded".to_owned(),
            is_browsers: matches!(name, RenderFailure::NO_BROWSER | "browser_crashed"),
        }
    }

    /// Returns the failure of a browser that is missing for this reason.
    pub(crate) fn no_browser(why: &str) -> RenderFailure {
        RenderFailure {
            name: RenderFailure::NO_BROWSER,
            detail: why.to_owned(),
            is_browsers: false,
        }
    }
}

/// The kind of a requested resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResourceKind {
    /// A document in a frame.
    Document,
    /// A script.
    Script,
    /// A style sheet.
    Style,
    /// Data for a script.
    Data,
    /// An image, a video, a sound or a font. Text doesn't depend on them.
    Media,
    /// A beacon, a ping or a report, whose answer the page ignores.
    Report,
}

impl ResourceKind {
    const ALL: [(ResourceKind, &str); 6] = [
        (ResourceKind::Document, "document"),
        (ResourceKind::Script, "script"),
        (ResourceKind::Style, "style"),
        (ResourceKind::Data, "data"),
        (ResourceKind::Media, "media"),
        (ResourceKind::Report, "report"),
    ];

    /// Returns the name in rows.
    pub(crate) fn name(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|(kind, _)| *kind == self)
            .map_or("", |(_, name)| name)
    }

    /// Returns the kind with a name in rows.
    pub(crate) fn named(name: &str) -> Option<ResourceKind> {
        let mut all = Self::ALL.iter();
        all.find(|(_, other)| *other == name).map(|(kind, _)| *kind)
    }
}

/// A request that a page makes while it is rendered.
#[derive(Clone, Debug)]
pub struct ResourceRequest {
    /// The URL as the page wrote it, made absolute.
    pub url: String,
    /// The method.
    pub method: String,
    /// The kind of resource.
    pub kind: ResourceKind,
    /// The body of a POST request that may be sent. `None` for other methods, and for a POST with
    /// an unknown body or from a document of another origin.
    pub post: Option<PostBody>,
}

/// The answer to a request of a page.
#[derive(Clone, Debug)]
pub enum ResourceAnswer {
    /// The server's answer, decoded.
    Answered {
        /// The status.
        status: u16,
        /// The header fields, without `Content-Encoding` and `Content-Length`.
        headers: HeaderMap,
        /// The decoded body.
        body: Bytes,
        /// Whether the request carried the operator's header fields or the site's session. If so,
        /// the server alone decides which other origins may read the answer.
        is_own: bool,
    },
    /// The request was not sent, or got no answer.
    Refused,
}

/// The channel for the answer to the request for a resource. The crawl sends `None` if the request
/// was refused or got no answer.
pub(crate) type ResourceAnswerSender = oneshot::Sender<Option<UndecodedResponse>>;

/// Passes the request for a resource to the crawl, together with the channel for the answer.
pub(crate) type ResourceRequestHandler =
    dyn Fn(ResourceRequest, ResourceAnswerSender) + Send + Sync;

/// Sends the requests of one page to the crawl while the page is rendered.
#[derive(Clone)]
pub struct ResourceRequestSender(pub(crate) Arc<ResourceRequestHandler>);

impl fmt::Debug for ResourceRequestSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceRequestSender")
            .finish_non_exhaustive()
    }
}

impl ResourceRequestSender {
    /// Requests a resource at once. The future completes when the crawl has judged and fetched the
    /// resource. This may take long, because the resource's host has its own gap.
    pub fn request(
        &self,
        request: ResourceRequest,
    ) -> impl Future<Output = ResourceAnswer> + Send + use<> {
        let (answer, answered) = oneshot::channel();
        (self.0)(request, answer);
        async move {
            // An error means that the run has ended, which drops the sender.
            match answered.await {
                Ok(Some(stored)) => stored.decoded().await,
                Ok(None) | Err(_) => ResourceAnswer::Refused,
            }
        }
    }
}

/// An answer as it was sent, with its content coding.
#[derive(Clone, Debug)]
pub(crate) struct UndecodedResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Whether the request carried the operator's header fields or the site's session.
    pub(crate) is_own: bool,
    /// Whether the server has a private address.
    pub(crate) is_private: bool,
}

impl UndecodedResponse {
    pub(crate) fn of(exchange: &Exchange, is_own: bool) -> UndecodedResponse {
        UndecodedResponse {
            status: exchange.status,
            headers: exchange.headers.clone(),
            body: exchange.body.clone(),
            is_own,
            is_private: has_private_address(exchange),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        let headers = self.headers.iter();
        let headers: usize = headers
            .map(|(name, value)| name.as_str().len() + value.len())
            .sum();
        (self.body.len() + headers) as u64
    }

    /// Decodes the content coding, if there is one, on a thread for blocking work.
    async fn decoded(self) -> ResourceAnswer {
        let is_own = self.is_own;
        let decoded = match self.headers.contains_key(CONTENT_ENCODING) {
            true => spawn_blocking(move || self.decode()).await,
            false => Ok(self.decode()),
        };
        match decoded {
            Ok((status, headers, body)) => ResourceAnswer::Answered {
                status,
                headers,
                body,
                is_own,
            },
            Err(_) => ResourceAnswer::Refused,
        }
    }

    /// Returns the answer with its body decoded, and without the header fields of its content
    /// coding.
    pub(crate) fn without_coding(self) -> UndecodedResponse {
        let (is_own, is_private) = (self.is_own, self.is_private);
        let (status, headers, body) = self.decode();
        UndecodedResponse {
            status,
            headers,
            body,
            is_own,
            is_private,
        }
    }

    /// Returns the status, the header fields without those of the content coding, and the decoded
    /// body.
    pub(crate) fn decode(mut self) -> (u16, HeaderMap, Bytes) {
        let body = match self.headers.contains_key(CONTENT_ENCODING) {
            false => self.body,
            true => {
                let codings = self.headers.get_all(CONTENT_ENCODING);
                decode(codings, &self.body, &DecodeLimits::default())
                    .bytes
                    .to_vec()
                    .into()
            }
        };
        self.headers.remove(CONTENT_ENCODING);
        self.headers.remove(CONTENT_LENGTH);
        (self.status, self.headers, body)
    }
}

/// Returns whether an answer came from a private address, such as one of this machine.
pub(crate) fn has_private_address(exchange: &Exchange) -> bool {
    let address = exchange.address.map(|address| address.ip());
    address.is_some_and(|address| classify(address) != AddressClass::Public)
}

/// Returns whether an answer may be HTML, although its header doesn't declare it: the first bytes
/// decide, for example because the type is missing.
pub(crate) fn may_be_html(headers: &HeaderMap) -> bool {
    may_be_read(content_type(headers).as_deref())
}

/// Returns whether an answer declares HTML. Other documents, such as feeds and plain text, are not
/// rendered.
pub(crate) fn is_html(headers: &HeaderMap) -> bool {
    let essence = essence(content_type(headers).as_deref());
    essence.is_some_and(|essence| matches!(&*essence, "text/html" | "application/xhtml+xml"))
}

#[cfg(test)]
mod tests {
    use super::{PageToRender, UndecodedResponse, is_html};
    use crawl_scheduler::Tick;
    use http::HeaderMap;
    use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};

    #[test]
    fn only_html_is_rendered() {
        for (value, is) in [
            ("text/html", true),
            (" Text/HTML; charset=utf-8", true),
            ("application/xhtml+xml", true),
            ("text/plain", false),
            ("application/json", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(value));
            assert_eq!(is_html(&headers), is, "{value}");
        }
        assert!(!is_html(&HeaderMap::new()));
    }

    #[test]
    fn the_browser_gets_a_type_for_each_page() {
        let html = "<!doctype html><p>tea";
        let xhtml = "<?xml version=\"1.0\"?><html xmlns=\"http://www.w3.org/1999/xhtml\"/>";
        for (declared, body, expected) in [
            (None, html, "text/html"),
            (Some("*/*"), html, "text/html"),
            (None, xhtml, "application/xhtml+xml"),
            (
                Some("text/html; charset=utf-8"),
                html,
                "text/html; charset=utf-8",
            ),
        ] {
            let declared = declared.map(|value| (CONTENT_TYPE, HeaderValue::from_static(value)));
            let answer = UndecodedResponse {
                status: 200,
                headers: declared.into_iter().collect(),
                body: body.into(),
                is_own: false,
                is_private: false,
            };
            let page = PageToRender::of(String::new(), Tick::from_micros(1_000), answer);
            assert_eq!(page.headers[CONTENT_TYPE], expected, "{body}");
        }
    }

    #[test]
    fn answers_lose_their_coding() {
        use std::io::Write as _;
        let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        coder.write_all(b"let tea = 1;").unwrap();
        let body = coder.finish().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/javascript"));
        let answer = UndecodedResponse {
            status: 200,
            headers,
            body: body.into(),
            is_own: false,
            is_private: false,
        };
        let (status, headers, body) = answer.decode();
        assert_eq!((status, &body[..]), (200, &b"let tea = 1;"[..]));
        assert_eq!(headers.len(), 1);
    }
}
