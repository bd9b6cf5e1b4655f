//! A site in memory, and the browser that renders its pages.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use crawl_browser::{
    Browser, BrowserConfig, InterceptedRequest, PageRequestFuture, PageRequestHandler,
    PageRequestResult, PageToRender, RenderError, RenderingResult,
};
use tokio::sync::oneshot;

pub(crate) const PAGE: &str = "https://site.test/";

/// Returns the value of an environment variable that contains a path.
pub(crate) fn variable(name: &str) -> OsString {
    std::env::var_os(name)
        .unwrap_or_else(|| panic!("{name} is not set: cargo xtask test --step browser sets it"))
}

/// Returns settings for the browser under test, with its profile below `folder`.
pub(crate) fn config(folder: &Path) -> BrowserConfig {
    BrowserConfig {
        program: Some(PathBuf::from(variable("CRAWL_CHROMIUM"))),
        environment: vec![
            (
                "LD_LIBRARY_PATH".into(),
                variable("CRAWL_CHROMIUM_LIBRARIES"),
            ),
            ("FONTCONFIG_FILE".into(), variable("CRAWL_CHROMIUM_FONTS")),
        ],
        // Disable the sandbox, because tests may run as root in a container.
        sandbox: false,
        // A long timeout, so that tests don't depend on the machine's speed. Only the tests of the
        // timeout set a shorter one.
        timeout: Duration::from_secs(300),
        profile_parent: folder.to_owned(),
        ..BrowserConfig::new("crawl-test/1.0")
    }
}

/// A site in memory: its answers by URL, and the requests that it received.
#[derive(Default)]
pub(crate) struct Site {
    answers: HashMap<String, PageRequestResult>,
    gap: Duration,
    seen: Mutex<Vec<InterceptedRequest>>,
}

impl Site {
    pub(crate) fn with_gap(gap: Duration) -> Site {
        Site {
            gap,
            ..Site::default()
        }
    }

    pub(crate) fn add(mut self, path: &str, media_type: &str, body: &str) -> Site {
        let headers = [
            ("Content-Type", media_type),
            ("Access-Control-Allow-Origin", "*"),
        ];
        self.answers.insert(full(path), answer(200, &headers, body));
        self
    }

    pub(crate) fn redirect(mut self, path: &str, location: &str) -> Site {
        let headers = [("Location", location), ("Access-Control-Allow-Origin", "*")];
        self.answers.insert(full(path), answer(302, &headers, ""));
        self
    }

    pub(crate) fn seen(&self) -> Vec<InterceptedRequest> {
        self.seen.lock().unwrap().clone()
    }

    /// Returns the requested URLs, without the site's origin.
    pub(crate) fn paths(&self) -> Vec<String> {
        let origin = PAGE.trim_end_matches('/');
        let seen = self.seen();
        let paths = seen.iter().map(|seen| seen.url.replacen(origin, "", 1));
        paths.collect()
    }
}

fn full(path: &str) -> String {
    match path.strip_prefix('/') {
        Some(rest) => format!("{PAGE}{rest}"),
        None => path.to_owned(),
    }
}

pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> PageRequestResult {
    PageRequestResult::Response {
        status,
        headers: owned(headers),
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}

fn owned(headers: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    owned.collect()
}

impl PageRequestHandler for Site {
    fn request(&self, wanted: InterceptedRequest) -> PageRequestFuture {
        let answer = self.answers.get(&wanted.url).cloned();
        self.seen.lock().unwrap().push(wanted);
        let gap = self.gap;
        Box::pin(async move {
            tokio::time::sleep(gap).await;
            answer.unwrap_or(PageRequestResult::Refused)
        })
    }
}

/// A page that shows `fine` once both of its scripts have loaded.
pub(crate) const PATIENT: &str = "<p id=\"a\">-</p><script src=/known.js></script>\
    <script src=/late.js></script>";

/// A site that never answers the first request for `/late.js`, but answers every other request.
pub(crate) struct LateScriptSite {
    site: Site,
    /// Signals the first request for `/late.js`. `None` after that.
    is_late: Mutex<Option<oneshot::Sender<()>>>,
}

impl LateScriptSite {
    /// Creates the site. Also returns a receiver that is notified of the first request for
    /// `/late.js`.
    pub(crate) fn new() -> (LateScriptSite, oneshot::Receiver<()>) {
        let (is_late, seen) = oneshot::channel();
        let site = Site::default()
            .add("/known.js", "text/javascript", "const text = 'fine'")
            .add("/late.js", "text/javascript", "a.textContent = text");
        let is_late = Mutex::new(Some(is_late));
        (LateScriptSite { site, is_late }, seen)
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.site.paths()
    }
}

impl PageRequestHandler for LateScriptSite {
    fn request(&self, wanted: InterceptedRequest) -> PageRequestFuture {
        let first = match wanted.url.ends_with("/late.js") {
            true => self.is_late.lock().unwrap().take(),
            false => None,
        };
        let answer = self.site.request(wanted);
        match first {
            None => answer,
            Some(first) => {
                first.send(()).unwrap();
                Box::pin(std::future::pending())
            }
        }
    }
}

/// A site that holds back its answers until nine requests have arrived, then answers them in
/// descending order of their URLs. Each URL ends with a digit. Its answer is a script that calls
/// `note` with this digit.
#[derive(Default)]
pub(crate) struct HoldingSite(Arc<Mutex<BTreeMap<String, oneshot::Sender<()>>>>);

impl PageRequestHandler for HoldingSite {
    fn request(&self, wanted: InterceptedRequest) -> PageRequestFuture {
        let held = Arc::clone(&self.0);
        Box::pin(async move {
            let (sender, released) = oneshot::channel();
            {
                let mut held = held.lock().unwrap();
                held.insert(wanted.url.clone(), sender);
                if held.len() == 9 {
                    let held = std::mem::take(&mut *held).into_values().rev();
                    held.for_each(|sender| sender.send(()).unwrap());
                }
            }
            released.await.unwrap();
            let headers = [("Content-Type", "text/javascript")];
            let digit = wanted.url.replace(PAGE, "");
            answer(200, &headers, &format!("note({digit})"))
        })
    }
}

/// Returns a page with this HTML as its body.
pub(crate) fn page(html: &str) -> PageToRender {
    page_with(html, &[])
}

pub(crate) fn page_with(html: &str, headers: &[(&str, &str)]) -> PageToRender {
    let mut headers = owned(headers);
    headers.push((
        "Content-Type".to_owned(),
        "text/html; charset=utf-8".to_owned(),
    ));
    PageToRender {
        url: PAGE.to_owned(),
        status: 200,
        headers,
        body: Bytes::copy_from_slice(html.as_bytes()),
        time: Some(UNIX_EPOCH + Duration::from_secs(1_700_000_000)),
    }
}

/// Renders one page in a new browser.
pub(crate) async fn try_render(
    html: &str,
    site: &Arc<Site>,
    change: impl FnOnce(&mut BrowserConfig),
) -> Result<RenderingResult, RenderError> {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    change(&mut config);
    let browser = Browser::launch(config).await.unwrap();
    let rendered = browser.render(page(html), site.clone()).await;
    browser.close().await;
    rendered
}

pub(crate) async fn render(html: &str, site: &Arc<Site>) -> RenderingResult {
    try_render(html, site, |_| {}).await.unwrap()
}

/// Returns the text of the element `<p id="..">` in a DOM.
pub(crate) fn text_of<'a>(dom: &'a str, id: &str) -> &'a str {
    let start = format!("<p id=\"{id}\">");
    let Some((_, rest)) = dom.split_once(&start) else {
        panic!("no {start} in {dom}");
    };
    rest.split_once("</p>").unwrap().0
}
