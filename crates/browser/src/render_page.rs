//! Loads a page, lets its scripts run, and reads its DOM.

mod page_clock;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use data_encoding::BASE64;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::config::WINDOW;
use crate::devtools_client::{
    DevtoolsCommandError, DevtoolsConnection, DevtoolsEvent, PendingCommandReply,
};
use crate::devtools_request_conversion;
use crate::error::ScreenshotError;
use crate::pausable_timeout::PausableTimeout;
use crate::running_browser::RunningBrowser;
use crate::{
    BrowserConfig, ExceededLimit, PageRequestHandler, PageRequestResult, PageToRender, RenderError,
    RenderingResult,
};

/// How long the browser may take to close a page. After that, the browser is killed.
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);

/// How long the browser may take for a screenshot.
const SCREENSHOT_PATIENCE: Duration = Duration::from_secs(10);

/// How long the page may take to receive an answer before it gets the next one.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);

/// The name of the JavaScript world for our scripts, which is isolated from the page's scripts.
const WORLD: &str = "crawl";

const RESTRICT: &str = include_str!("scripts/restrict.js");
const STAY: &str = include_str!("scripts/stay.js");
const SERIALIZE: &str = include_str!("scripts/serialize.js");
const SCROLL: &str = include_str!("scripts/scroll.js");

/// Renders a page in a new browser context.
pub(crate) async fn render(
    running: &RunningBrowser,
    config: &BrowserConfig,
    page: PageToRender,
    requests: Arc<dyn PageRequestHandler>,
) -> Result<RenderingResult, RenderError> {
    let hits = running.wall.hits();
    let context = new_context(running, config.timeout).await?;
    let mut rendering = PageRendering::new(running, config, page, requests, context.id.clone());
    let mut rendered = rendering.run().await;
    if matches!(rendered, Err(RenderError::Timeout)) {
        // Crash the page, because a page in an endless loop handles no other command.
        let session = rendering.main_session.as_deref();
        drop(running.connection.send(session, "Page.crash", json!({})));
    }
    drop(rendering);
    if !context.close().await {
        running.kill().await;
    }
    if let Ok(rendered) = &mut rendered {
        rendered.wall_hits = running.wall.hits().saturating_sub(hits);
    }
    rendered
}

/// A browser context, which has its own cookies and caches. Disposed of when dropped.
struct BrowserContext<'a> {
    connection: &'a DevtoolsConnection,
    id: String,
    is_open: bool,
}

async fn new_context(
    running: &RunningBrowser,
    patience: Duration,
) -> Result<BrowserContext<'_>, RenderError> {
    let connection = &running.connection;
    let options = json!({"disposeOnDetach": true});
    let mut created = connection.send(None, "Target.createBrowserContext", options);
    let created = timeout(patience, created.get()).await;
    let Ok(created) = created else {
        running.kill().await;
        return Err(RenderError::Timeout);
    };
    let id = text(&created.map_err(crashed)?["browserContextId"]).to_owned();
    Ok(BrowserContext {
        connection,
        id,
        is_open: true,
    })
}

impl BrowserContext<'_> {
    fn dispose(&mut self) -> PendingCommandReply {
        self.is_open = false;
        self.connection.forget(&self.id);
        let context = json!({"browserContextId": self.id});
        self.connection
            .send(None, "Target.disposeBrowserContext", context)
    }

    /// Closes the context and its page. Returns false if the browser doesn't close them in time.
    async fn close(mut self) -> bool {
        let mut disposed = self.dispose();
        timeout(CLOSE_PATIENCE, disposed.get()).await.is_ok()
    }
}

impl Drop for BrowserContext<'_> {
    fn drop(&mut self) {
        if self.is_open {
            drop(self.dispose());
        }
    }
}

/// The role of a target, such as a page or a worker.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TargetRole {
    /// The page itself, or a frame or busy worker of the page.
    Page,
    /// A dedicated worker of the page that is not known to be busy.
    Worker,
    /// A window or worker that pages must not open, such as a popup. Closed immediately.
    Unwanted,
}

struct PausedRequest {
    session: String,
    /// The id of the request in events of the domain `Fetch`.
    id: String,
    /// The id of the request in events of the domain `Network`. Redirects keep it.
    network_id: String,
}

/// An answer on its way to the page.
struct ArrivingAnswer {
    network_id: String,
    /// When to stop waiting for the page.
    patience: Instant,
}

struct PageRendering<'a> {
    connection: &'a DevtoolsConnection,
    config: &'a BrowserConfig,
    events: UnboundedReceiver<DevtoolsEvent>,
    requests: Arc<dyn PageRequestHandler>,
    context: String,
    /// The fetched page. `None` once the browser has requested it.
    document: Option<PageToRender>,
    url: String,
    /// Requests that the caller has not answered yet.
    waiting: JoinSet<(PausedRequest, PageRequestResult)>,
    /// The last answer, until the page has received it. Other answers wait, because the page could
    /// receive them in another order.
    arriving: Option<ArrivingAnswer>,
    stopwatch: PausableTimeout,
    sessions: HashMap<String, TargetRole>,
    main_session: Option<String>,
    main_frame: Option<String>,
    is_navigated: bool,
    is_slice_over: bool,
    /// Whether the page's virtual time is used up. Later requests are refused.
    is_time_over: bool,
    page_time: Duration,
    navigation: Option<String>,
    passed_on: u32,
    withheld: u32,
    refused: u32,
}

impl<'a> PageRendering<'a> {
    fn new(
        running: &'a RunningBrowser,
        config: &'a BrowserConfig,
        page: PageToRender,
        requests: Arc<dyn PageRequestHandler>,
        context: String,
    ) -> PageRendering<'a> {
        PageRendering {
            connection: &running.connection,
            config,
            events: running.connection.events(&context),
            requests,
            context,
            url: page.url.clone(),
            document: Some(page),
            waiting: JoinSet::new(),
            arriving: None,
            stopwatch: PausableTimeout::start(config.timeout),
            sessions: HashMap::new(),
            main_session: None,
            main_frame: None,
            is_navigated: false,
            is_slice_over: false,
            is_time_over: false,
            page_time: Duration::ZERO,
            navigation: None,
            passed_on: 0,
            withheld: 0,
            refused: 0,
        }
    }

    async fn run(&mut self) -> Result<RenderingResult, RenderError> {
        self.open().await?;
        self.navigate().await?;
        let world = self.world().await?;
        self.spend_page_time(world).await?;
        self.read(world).await
    }

    /// Opens an empty page and installs the scripts that restrict the page and record its
    /// navigations.
    async fn open(&mut self) -> Result<(), RenderError> {
        let deny = json!({"behavior": "deny", "browserContextId": self.context});
        let mut denied = self
            .connection
            .send(None, "Browser.setDownloadBehavior", deny);
        self.reply(&mut denied).await?;
        // Without grants, the browser denies all permissions and doesn't prompt.
        let grants = json!({"permissions": [], "browserContextId": self.context});
        drop(
            self.connection
                .send(None, "Browser.grantPermissions", grants),
        );
        let (width, height) = WINDOW;
        let target = json!({
            "url": "about:blank", "browserContextId": self.context,
            "width": width, "height": height
        });
        let mut created = self.connection.send(None, "Target.createTarget", target);
        let created = self.reply(&mut created).await?;
        // The id of a page's target is also the id of its main frame.
        self.main_frame = Some(text(&created["targetId"]).to_owned());
        while self.main_session.is_none() {
            self.turn().await?;
        }
        let restrict = RESTRICT.replace("SEED", &(self.config.seed as u32).to_string());
        self.command("Page.enable", json!({})).await?;
        for (source, world) in [(restrict.as_str(), None), (STAY, Some(WORLD))] {
            let mut script = json!({"source": source, "runImmediately": true});
            if let Some(world) = world {
                script["worldName"] = world.into();
            }
            self.command("Page.addScriptToEvaluateOnNewDocument", script)
                .await?;
        }
        let prerendering = json!({"isAllowed": false});
        // Ignore the reply: some versions of the browser don't know the command, and other settings
        // also prevent prerendering.
        self.send_to_page("Page.setPrerenderingAllowed", prerendering);
        self.command("Inspector.enable", json!({})).await?;
        let pause = json!({"policy": "pause", "initialVirtualTime": self.start_time()});
        self.command("Emulation.setVirtualTimePolicy", pause)
            .await?;
        self.send_to_page("Runtime.runIfWaitingForDebugger", json!({}));
        Ok(())
    }

    /// Returns the initial time of the page's virtual clock, in seconds since 1970.
    fn start_time(&self) -> f64 {
        let start = self.document.as_ref().and_then(|page| page.time);
        let start = start.unwrap_or_else(std::time::SystemTime::now);
        let since = start.duration_since(std::time::UNIX_EPOCH);
        since.unwrap_or_default().as_secs_f64()
    }

    /// Loads the page's document, and returns once the browser shows it.
    async fn navigate(&mut self) -> Result<(), RenderError> {
        let url = json!({"url": self.url});
        let answer = self.command("Page.navigate", url).await?;
        if let Some(error) = answer["errorText"].as_str() {
            return Err(RenderError::PageFailed(format!("the document: {error}")));
        }
        while !self.is_navigated {
            self.turn().await?;
        }
        Ok(())
    }

    /// Creates the isolated world where our scripts scroll and read the document. Returns the id of
    /// its execution context.
    async fn world(&mut self) -> Result<i64, RenderError> {
        let options = json!({"frameId": self.main_frame, "worldName": WORLD});
        let created = self.command("Page.createIsolatedWorld", options).await?;
        let world = created["executionContextId"].as_i64().unwrap_or_default();
        for script in [SERIALIZE, SCROLL] {
            self.evaluate(world, script).await?;
        }
        Ok(world)
    }

    async fn read(&mut self, world: i64) -> Result<RenderingResult, RenderError> {
        let max = self.config.max_dom_bytes;
        let url = json!(self.url);
        let script = format!("readDocument({max}, {url})");
        let mut document = self.evaluate(world, &script).await?;
        let Value::String(dom) = document["html"].take() else {
            return Err(RenderError::Budget(ExceededLimit::Dom));
        };
        if dom.len() > max {
            return Err(RenderError::Budget(ExceededLimit::Dom));
        }
        let navigation = document["navigation"].as_str().map(str::to_owned);
        let screenshot = match self.config.screenshots {
            true => Some(self.screenshot().await),
            false => None,
        };
        Ok(RenderingResult {
            dom,
            final_url: text(&document["url"]).to_owned(),
            page_time: self.page_time,
            requests: self.passed_on,
            refused: self.refused,
            withheld: self.withheld,
            wall_hits: 0,
            navigation: navigation.or(self.navigation.take()),
            screenshot,
        })
    }

    /// Takes a screenshot. Called after the DOM was read, so that a failure or crash loses only the
    /// screenshot.
    async fn screenshot(&mut self) -> Result<Bytes, ScreenshotError> {
        let options = json!({"format": "png"});
        let captured = self.command("Page.captureScreenshot", options);
        let image = match timeout(SCREENSHOT_PATIENCE, captured).await {
            Err(_) | Ok(Err(RenderError::Timeout)) => {
                // Crash the page, because a page that is busy forever doesn't close.
                self.send_to_page("Page.crash", json!({}));
                return Err(ScreenshotError::Timeout);
            }
            Ok(Err(error)) => return Err(ScreenshotError::Failed(error.to_string())),
            Ok(Ok(image)) => image,
        };
        let decoded = BASE64.decode(text(&image["data"]).as_bytes());
        let image = decoded.map_err(|error| ScreenshotError::Failed(error.to_string()))?;
        match image.len() > self.config.max_screenshot_bytes {
            true => Err(ScreenshotError::TooLarge(image.len())),
            false => Ok(image.into()),
        }
    }

    async fn evaluate(&mut self, world: i64, script: &str) -> Result<Value, RenderError> {
        let options = json!({"expression": script, "contextId": world, "returnByValue": true});
        let mut result = self.command("Runtime.evaluate", options).await?;
        if let Some(exception) = result.get("exceptionDetails") {
            return Err(RenderError::PageFailed(text(&exception["text"]).to_owned()));
        }
        Ok(result["result"]["value"].take())
    }

    /// Sends a command to the page and waits for the reply.
    async fn command(&mut self, method: &str, params: Value) -> Result<Value, RenderError> {
        let session = self.main_session.as_deref();
        let mut reply = self.connection.send(session, method, params);
        self.reply(&mut reply).await
    }

    /// Sends a command to the page and ignores the reply.
    fn send_to_page(&self, method: &str, params: Value) {
        let session = self.main_session.as_deref();
        drop(self.connection.send(session, method, params));
    }

    /// Waits for a reply. Handles events until the reply arrives.
    async fn reply(&mut self, reply: &mut PendingCommandReply) -> Result<Value, RenderError> {
        loop {
            tokio::select! {
                reply = reply.get() => return reply.map_err(crashed),
                handled = self.turn() => handled?,
            }
        }
    }

    /// Waits until a command has succeeded or failed, and handles events.
    async fn ended(&mut self, reply: &mut PendingCommandReply) -> Result<(), RenderError> {
        loop {
            tokio::select! {
                _ = reply.get() => return Ok(()),
                handled = self.turn() => handled?,
            }
        }
    }

    /// Waits for one event of the browser or one answer of the caller, and handles it. Cancel safe:
    /// nothing is awaited after an event or answer was received.
    async fn turn(&mut self) -> Result<(), RenderError> {
        let deadline = self.stopwatch.deadline();
        let patience = self.arriving.as_ref().map(|answer| answer.patience);
        tokio::select! {
            event = self.events.recv() => {
                let event = event.ok_or_else(|| crashed(DevtoolsCommandError::Closed))?;
                self.take(event)?;
            }
            Some(answered) = self.waiting.join_next(), if self.arriving.is_none() => {
                if let Ok((PausedRequest { session, id, network_id }, answer)) = answered {
                    self.answer(&session, &id, answer);
                    let patience = Instant::now() + ANSWER_PATIENCE;
                    let is_reported = !network_id.is_empty();
                    self.arriving = is_reported.then_some(ArrivingAnswer { network_id, patience });
                }
                if self.waiting.is_empty() {
                    self.stopwatch.resume();
                }
            }
            () = sleep_until(patience) => self.arriving = None,
            () = sleep_until(deadline) => return Err(RenderError::Timeout),
        }
        Ok(())
    }

    fn take(&mut self, event: DevtoolsEvent) -> Result<(), RenderError> {
        let DevtoolsEvent {
            session,
            method,
            params,
        } = event;
        let session = session.unwrap_or_default();
        let is_main = self.main_session.as_deref() == Some(session.as_str());
        match method.as_str() {
            "Target.attachedToTarget" => self.attached(&params),
            "Target.detachedFromTarget" => {
                let closed = text(&params["sessionId"]);
                self.sessions.remove(closed);
                if self.main_session.as_deref() == Some(closed) {
                    return Err(RenderError::PageFailed("the page was closed".to_owned()));
                }
            }
            "Fetch.requestPaused" => self.paused(&session, &params),
            "Network.loadingFinished" | "Network.loadingFailed" => {
                self.arrived(&params["requestId"]);
            }
            "Page.javascriptDialogOpening" => {
                let dismiss = json!({"accept": params["type"] == "beforeunload"});
                self.send(&session, "Page.handleJavaScriptDialog", dismiss);
            }
            "Page.frameNavigated" if is_main && params["frame"]["parentId"].is_null() => {
                let url = text(&params["frame"]["url"]);
                if self.is_navigated {
                    let reason = format!("the page replaced itself by {url}");
                    return Err(RenderError::PageFailed(reason));
                }
                self.is_navigated = url != "about:blank";
            }
            "Emulation.virtualTimeBudgetExpired" if is_main => self.is_slice_over = true,
            "Inspector.targetCrashed" if is_main => {
                return Err(RenderError::PageFailed("its process ended".to_owned()));
            }
            _ => {}
        }
        Ok(())
    }

    /// Prepares a new target (the page, a frame, a worker or a window) before its scripts run.
    fn attached(&mut self, params: &Value) {
        let session = text(&params["sessionId"]);
        let info = &params["targetInfo"];
        let kind = text(&info["type"]);
        let target = text(&info["targetId"]);
        let is_main = kind == "page" && self.main_frame.as_deref().is_none_or(|id| id == target);
        let role = match kind {
            "page" if is_main => TargetRole::Page,
            "iframe" => TargetRole::Page,
            "worker" => TargetRole::Worker,
            _ => TargetRole::Unwanted,
        };
        self.sessions.insert(session.to_owned(), role);
        // Intercept the requests of this session. The requests of a dedicated worker are reported
        // in the session of its page.
        self.send(
            session,
            "Fetch.enable",
            json!({"patterns": [{"urlPattern": "*"}]}),
        );
        let unbuffered = json!({"maxTotalBufferSize": 0, "maxResourceBufferSize": 0});
        self.send(session, "Network.enable", unbuffered);
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true});
        self.send(session, "Target.setAutoAttach", attach);
        if is_main && self.main_session.is_none() {
            self.main_session = Some(session.to_owned());
            // Don't resume the page here: `open` resumes it once the scripts are installed.
            return;
        }
        let restrict = RESTRICT.replace("SEED", &(self.config.seed as u32).to_string());
        match kind {
            "iframe" => {
                self.send(session, "Page.enable", json!({}));
                let script = json!({"source": restrict, "runImmediately": true});
                self.send(session, "Page.addScriptToEvaluateOnNewDocument", script);
            }
            _ => self.send(session, "Runtime.evaluate", json!({"expression": restrict})),
        }
        self.send(session, "Runtime.runIfWaitingForDebugger", json!({}));
        if role == TargetRole::Unwanted {
            drop(
                self.connection
                    .send(None, "Target.closeTarget", json!({"targetId": target})),
            );
        }
    }

    /// Handles a request that the browser has paused: answers it, refuses it, or passes it to the
    /// caller.
    fn paused(&mut self, session: &str, params: &Value) {
        let id = text(&params["requestId"]);
        // If this request follows a redirect, the page has received the redirect's response.
        self.arrived(&params["networkId"]);
        let is_document = params["resourceType"] == "Document";
        let is_main = is_document && params["frameId"].as_str() == self.main_frame.as_deref();
        if is_main {
            if let Some(page) = self.document.take() {
                let answer = devtools_request_conversion::document(page);
                self.answer(session, id, answer);
                return;
            }
            self.refused += 1;
            let request = &params["request"];
            let is_page = text(&request["url"]).starts_with("http") && request["method"] == "GET";
            if is_page {
                self.navigation = request["url"].as_str().map(str::to_owned);
            }
            // Use `Aborted`. With any other reason, the browser would replace the document with an
            // error page.
            let refusal = json!({"requestId": id, "errorReason": "Aborted"});
            self.send(session, "Fetch.failRequest", refusal);
            return;
        }
        let role = self.sessions.get(session);
        let is_wanted = role.is_some_and(|role| *role != TargetRole::Unwanted);
        let is_beyond_limit = self.passed_on >= self.config.max_requests;
        if !is_wanted || is_beyond_limit || self.is_time_over {
            self.withheld += u32::from(is_wanted && is_beyond_limit);
            self.answer(session, id, PageRequestResult::Refused);
            return;
        }
        self.passed_on += 1;
        let answer = self
            .requests
            .request(devtools_request_conversion::wanted(params, is_document));
        let paused = PausedRequest {
            session: session.to_owned(),
            id: id.to_owned(),
            network_id: text(&params["networkId"]).to_owned(),
        };
        self.stopwatch.pause();
        self.waiting.spawn(async move { (paused, answer.await) });
    }

    /// Notes that the page has received the answer to a request.
    fn arrived(&mut self, network_id: &Value) {
        self.arriving
            .take_if(|answer| *network_id == answer.network_id.as_str());
    }

    fn answer(&mut self, session: &str, id: &str, answer: PageRequestResult) {
        match answer {
            PageRequestResult::Refused => {
                self.refused += 1;
                let refusal = json!({"requestId": id, "errorReason": "BlockedByClient"});
                self.send(session, "Fetch.failRequest", refusal);
            }
            PageRequestResult::Response {
                status,
                headers,
                body,
            } => {
                let response = devtools_request_conversion::response(id, status, &headers, &body);
                self.send(session, "Fetch.fulfillRequest", response);
            }
        }
    }

    fn send(&self, session: &str, method: &str, params: Value) {
        drop(self.connection.send(Some(session), method, params));
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn crashed(error: DevtoolsCommandError) -> RenderError {
    match error {
        DevtoolsCommandError::Closed => RenderError::Crashed(error.to_string()),
        DevtoolsCommandError::Refused(why) => RenderError::PageFailed(why),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
