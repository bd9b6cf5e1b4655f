//! Renders pages in a browser: connects the engine with the crate `browser`.

use std::env;
use std::sync::Arc;

use bytes::Bytes;
use crawl_browser::{
    Browser, BrowserConfig, BrowserError, InterceptedRequest, PageRequestFuture,
    PageRequestHandler, PageRequestResult, PageToRender, RenderError, RequestKind, ScreenshotError,
};
use crawl_engine::{
    NoBrowserRenderer, RenderFailure, RenderFuture, RenderedPage, Renderer, ResourceAnswer,
    ResourceKind, ResourceRequest, ResourceRequestSender,
};
use crawl_fetcher::PostBody;
use crawl_weburl::canonicalize;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use nix::unistd::Uid;
use tokio::sync::OnceCell;

use crate::error::CommandError;
use crate::values::BrowserSettings;

/// Environment variable with the path of the browser.
const BROWSER_VARIABLE: &str = "CRAWL_BROWSER";

/// Environment variable with the folders of libraries that the browser needs.
const LIBRARY_VARIABLE: &str = "LD_LIBRARY_PATH";

/// Environment variable with the configuration of the browser's fonts.
const FONTS_VARIABLE: &str = "FONTCONFIG_FILE";

/// Maximum bytes of a screenshot (PNG).
/// Beyond the limit: not kept; `screenshot_error` in the page's row is `too_large`.
const MAX_SCREENSHOT_BYTES: usize = 4 << 20;

/// The value of `Access-Control-Allow-Origin` for a request without an `Origin` field.
const ANYTHING: HeaderValue = HeaderValue::from_static("*");

/// Returns the browser for these settings. The browser starts when the first page is rendered.
///
/// # Errors
/// No browser was found, or its sandbox can't be used.
pub(crate) fn renderer(terms: BrowserSettings) -> Result<Arc<dyn Renderer>, CommandError> {
    shared_browser(terms).map_err(|why| of_browser(&why))
}

fn shared_browser(terms: BrowserSettings) -> Result<Arc<dyn Renderer>, BrowserError> {
    let program = terms
        .program
        .or_else(|| env::var_os(BROWSER_VARIABLE).map(Into::into));
    let is_kept = |name: &&str| env::var_os(name).is_some();
    let variables = [LIBRARY_VARIABLE, FONTS_VARIABLE]
        .into_iter()
        .filter(is_kept);
    let config = BrowserConfig {
        program,
        search_path: env::var_os("PATH"),
        environment: variables
            .filter_map(|name| Some((name.into(), env::var_os(name)?)))
            .collect(),
        sandbox: terms.sandbox,
        tabs: terms.tabs,
        page_time: terms.page_time,
        timeout: terms.timeout,
        memory_bytes: terms.memory,
        max_requests: terms.max_requests,
        screenshots: terms.screenshots,
        max_screenshot_bytes: MAX_SCREENSHOT_BYTES,
        ..BrowserConfig::new(terms.user_agent)
    };
    let problem = match (config.find_program(), &config.program) {
        (None, Some(program)) => Some(BrowserError::NoSuchProgram(program.clone())),
        (None, None) => Some(BrowserError::NotFound),
        (Some(_), _) if config.sandbox && Uid::effective().is_root() => {
            Some(BrowserError::SandboxAsRoot)
        }
        (Some(_), _) => None,
    };
    match problem {
        Some(problem) => Err(problem),
        None => {
            config.remove_abandoned_profiles();
            Ok(Arc::new(SharedBrowser {
                version: config.program_version(),
                config,
                browser: Arc::default(),
            }))
        }
    }
}

/// Returns the browser for a replay with these settings, without screenshots. If no browser is
/// installed, returns a renderer with which the replay reads the archived DOMs.
///
/// # Errors
/// The program named by the settings does not exist, or the browser's sandbox can't be used.
pub(crate) fn renderer_of_replay(
    terms: BrowserSettings,
) -> Result<Arc<dyn Renderer>, CommandError> {
    let terms = BrowserSettings {
        screenshots: false,
        ..terms
    };
    match shared_browser(terms) {
        Err(why @ BrowserError::NotFound) => Ok(Arc::new(NoBrowserRenderer { why: message(&why) })),
        found => found.map_err(|why| of_browser(&why)),
    }
}

/// Converts an error of the browser crate. The hint names the flags of `crawl`.
fn of_browser(problem: &BrowserError) -> CommandError {
    let (hint, flag) = match problem {
        BrowserError::SandboxAsRoot => (
            "run crawl as another user or, if something else isolates the browser, add \
             --browser-sandbox off",
            "browser-sandbox",
        ),
        _ => (
            "install chromium, or name its program with --browser or CRAWL_BROWSER",
            "browser",
        ),
    };
    CommandError::usage(message(problem)).hint(hint).about(flag)
}

/// Returns the first line of a browser error. Omits the second line, a hint that doesn't name the
/// flags of `crawl`.
fn message(problem: &BrowserError) -> String {
    let text = problem.to_string();
    text.lines().next().unwrap_or_default().to_owned()
}

/// A browser that starts when the first page is rendered, and that all pages share.
struct SharedBrowser {
    config: BrowserConfig,
    version: Option<String>,
    browser: Arc<OnceCell<Browser>>,
}

impl Renderer for SharedBrowser {
    fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    fn render(
        &self,
        page: crawl_engine::PageToRender,
        requests: ResourceRequestSender,
    ) -> RenderFuture {
        let (config, browser) = (self.config.clone(), Arc::clone(&self.browser));
        Box::pin(async move {
            let browser = browser.get_or_try_init(|| Browser::launch(config)).await;
            let browser = browser.map_err(|why| RenderFailure {
                name: "browser_missing",
                detail: why.to_string(),
                is_browsers: true,
            })?;
            let url = page.url.clone();
            let input = PageToRender {
                url: page.url,
                status: page.status,
                headers: pairs(&page.headers),
                body: page.body,
                time: Some(page.time),
            };
            let rendered = browser
                .render(input, Arc::new(PageRequestForwarder(requests)))
                .await;
            let rendered = rendered.map_err(|why| RenderFailure {
                name: why.name(),
                detail: why.to_string(),
                is_browsers: matches!(why, RenderError::Missing(_) | RenderError::Crashed(_)),
            })?;
            if rendered.wall_hits > 0 {
                tracing::error!(
                    hits = rendered.wall_hits,
                    "the browser tried to open a connection of its own; it was refused"
                );
            }
            Ok(RenderedPage {
                dom: rendered.dom,
                page_time: rendered.page_time,
                withheld: rendered.withheld,
                navigation: rendered.navigation,
                screenshot: rendered.screenshot.map(|image| screenshot(&url, image)),
            })
        })
    }
}

/// Returns a screenshot, or the name of the reason why there is none (`screenshot_error` in rows).
fn screenshot(url: &str, image: Result<Bytes, ScreenshotError>) -> Result<Bytes, &'static str> {
    image.map_err(|why| {
        let (name, detail) = (why.name(), why.to_string());
        tracing::info!(%url, name, detail, "no screenshot");
        name
    })
}

/// Passes the requests of a rendered page to the crawl, which sends them.
struct PageRequestForwarder(ResourceRequestSender);

impl PageRequestHandler for PageRequestForwarder {
    fn request(&self, wanted: InterceptedRequest) -> PageRequestFuture {
        if wanted.kind == RequestKind::Preflight {
            return Box::pin(async move { allowed_by_cors(&wanted.headers) });
        }
        let request = ResourceRequest {
            post: post(&wanted),
            kind: kind(wanted.kind),
            url: wanted.url,
            method: wanted.method,
        };
        // Send the request now rather than when the future is first polled, so that the crawl
        // receives the requests in the order in which the page made them.
        let answer = self.0.request(request);
        Box::pin(async move {
            match answer.await {
                ResourceAnswer::Answered {
                    status,
                    headers,
                    body,
                    is_own,
                } => PageRequestResult::Response {
                    status,
                    headers: match is_own {
                        true => pairs(&headers),
                        false => pairs(&readable(headers, &wanted.headers)),
                    },
                    body,
                },
                ResourceAnswer::Refused => PageRequestResult::Refused,
            }
        })
    }
}

/// Returns the body of a POST request that the page may send. `None` in these cases:
///
/// - The method is not POST.
/// - The body is unknown.
/// - The request crosses origins: its `Origin` field isn't the origin of its URL.
fn post(wanted: &InterceptedRequest) -> Option<PostBody> {
    let origin = field(&wanted.headers, "origin");
    let is_foreign = |origin: HeaderValue| {
        let own = canonicalize(None, &wanted.url).map(|url| url.origin_text().to_owned());
        own.ok().is_none_or(|own| origin != own)
    };
    if wanted.method != "POST" || origin.is_some_and(is_foreign) {
        return None;
    }
    Some(PostBody {
        content_type: field(&wanted.headers, "content-type"),
        bytes: wanted.body.clone()?,
    })
}

fn kind(kind: RequestKind) -> ResourceKind {
    match kind {
        RequestKind::Document => ResourceKind::Document,
        // Chromium reports the main script of a worker as `Other`.
        RequestKind::Script | RequestKind::Other => ResourceKind::Script,
        RequestKind::Stylesheet => ResourceKind::Style,
        RequestKind::Image | RequestKind::Media | RequestKind::Font => ResourceKind::Media,
        RequestKind::Fetch | RequestKind::Xhr => ResourceKind::Data,
        // The remaining kinds are reports, event streams and prefetches.
        _ => ResourceKind::Report,
    }
}

/// Answers a preflight request: allows the page to send the request to another origin. robots.txt
/// and the scope are checked only when the page sends the actual request.
fn allowed_by_cors(asked: &[(String, String)]) -> PageRequestResult {
    let mut headers = readable(HeaderMap::new(), asked);
    for (question, answer) in [
        (
            "access-control-request-method",
            ACCESS_CONTROL_ALLOW_METHODS,
        ),
        (
            "access-control-request-headers",
            ACCESS_CONTROL_ALLOW_HEADERS,
        ),
    ] {
        if let Some(wanted) = field(asked, question) {
            headers.insert(answer, wanted);
        }
    }
    PageRequestResult::Response {
        status: 204,
        headers: pairs(&headers),
        body: Bytes::new(),
    }
}

/// Adds CORS header fields that let the page's script read a response. The server's own CORS fields
/// don't suffice: our requests have no `Origin` field, so the server doesn't know which origin to
/// allow.
fn readable(mut headers: HeaderMap, sent: &[(String, String)]) -> HeaderMap {
    let origin = field(sent, "origin").unwrap_or(ANYTHING);
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    let credentials = HeaderValue::from_static("true");
    headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, credentials);
    headers
}

/// Returns the value of the first header field with this name. `None` if there is no such field, or
/// if its value is invalid.
fn field(headers: &[(String, String)], name: &str) -> Option<HeaderValue> {
    let mut values = headers
        .iter()
        .filter(|(other, _)| other.eq_ignore_ascii_case(name));
    HeaderValue::from_str(&values.next()?.1).ok()
}

/// Returns header fields as pairs. Values that are not text are left out.
fn pairs(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |(name, value): (&HeaderName, &HeaderValue)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    };
    headers.iter().filter_map(text).collect()
}
