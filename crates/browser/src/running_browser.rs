//! A browser process with its proxy (the wall) and a memory limit.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::browser_processes::BrowserProcesses;
use crate::devtools_client::DevtoolsConnection;
use crate::refusing_proxy::RefusingProxy;
use crate::{BrowserConfig, BrowserError, process_memory};

/// How long a started browser may take to answer its first command.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// How often the memory of the browser is measured.
const MEMORY_INTERVAL: Duration = Duration::from_millis(250);

/// A started browser, with its DevTools connection, its refusing proxy and its memory watch.
#[derive(Debug)]
pub(crate) struct RunningBrowser {
    pub(crate) connection: DevtoolsConnection,
    pub(crate) wall: RefusingProxy,
    process: Arc<Mutex<BrowserProcesses>>,
    is_too_large: Arc<AtomicBool>,
    /// Number of pages whose rendering has begun, including those whose rendering has ended.
    begun: AtomicU64,
    ended: AtomicU64,
    memory_watch: JoinHandle<()>,
}

impl RunningBrowser {
    /// Starts a browser. Also returns its version.
    pub(crate) async fn start(
        config: &BrowserConfig,
    ) -> Result<(RunningBrowser, String), BrowserError> {
        let program = config.find_program().ok_or_else(|| match &config.program {
            Some(program) => BrowserError::NoSuchProgram(program.clone()),
            None => BrowserError::NotFound,
        })?;
        let wall = RefusingProxy::start()
            .await
            .map_err(|source| BrowserError::Start {
                program: program.clone(),
                source,
            })?;
        let (process, socket) = BrowserProcesses::start(config, &program, wall.port())?;
        let group = process.group();
        let process = Arc::new(Mutex::new(process));
        // The browser sends the DOM as JSON, in which one byte of the DOM may take six bytes. Allow
        // at least 64 MiB for screenshots.
        let max_message = config.max_dom_bytes.saturating_mul(6).max(64 << 20);
        let connection = DevtoolsConnection::new(socket, max_message);
        let is_too_large = Arc::new(AtomicBool::new(false));
        let watched = (connection.clone(), process.clone(), is_too_large.clone());
        let running = RunningBrowser {
            memory_watch: tokio::spawn(watch_memory(group, config.memory_bytes, watched)),
            connection,
            wall,
            process,
            is_too_large,
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        };
        let mut version = running
            .connection
            .send(None, "Browser.getVersion", json!({}));
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true});
        let mut attached = running
            .connection
            .send(None, "Target.setAutoAttach", attach);
        let answers = timeout(START_PATIENCE, async {
            (version.get().await, attached.get().await)
        });
        if let Ok((Ok(version), Ok(_))) = answers.await
            && let Some(product) = version["product"].as_str()
        {
            return Ok((running, product.to_owned()));
        }
        running.kill().await;
        let output = match running.process().output() {
            output if output.is_empty() => String::new(),
            output => format!(": {output}"),
        };
        Err(BrowserError::Silent { program, output })
    }

    /// Kills the browser, and returns once it has ended.
    pub(crate) async fn kill(&self) {
        self.connection.close();
        let process = self.process.clone();
        end_process(process).await;
    }

    /// Returns whether the browser was killed because it used too much memory.
    pub(crate) fn is_too_large(&self) -> bool {
        self.is_too_large.load(Ordering::Relaxed)
    }

    /// Records that the rendering of a page has begun. Drop the returned value when the rendering
    /// ends.
    pub(crate) fn visit(&self) -> OngoingRenderingGuard<'_> {
        let before = self.begun.fetch_add(1, Ordering::SeqCst);
        OngoingRenderingGuard {
            running: self,
            number: before + 1,
            is_first: self.ended.load(Ordering::SeqCst) == before,
        }
    }

    fn process(&self) -> MutexGuard<'_, BrowserProcesses> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks one page as being rendered, until the value is dropped.
pub(crate) struct OngoingRenderingGuard<'a> {
    running: &'a RunningBrowser,
    number: u64,
    /// Whether no other page was being rendered when the rendering of this page began.
    is_first: bool,
}

impl OngoingRenderingGuard<'_> {
    /// Returns whether the browser has rendered no other page since this rendering began.
    pub(crate) fn is_alone(&self) -> bool {
        self.is_first && self.running.begun.load(Ordering::SeqCst) == self.number
    }
}

impl Drop for OngoingRenderingGuard<'_> {
    fn drop(&mut self) {
        self.running.ended.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for RunningBrowser {
    fn drop(&mut self) {
        self.memory_watch.abort();
        self.connection.close();
    }
}

async fn end_process(process: Arc<Mutex<BrowserProcesses>>) {
    let end = move || process.lock().unwrap_or_else(PoisonError::into_inner).end();
    // Ignore errors: they mean that the task panicked.
    let _ = tokio::task::spawn_blocking(end).await;
}

/// Kills the browser once its processes use more than `max` bytes of memory.
async fn watch_memory(
    group: Option<u32>,
    max: u64,
    (connection, process, is_too_large): (
        DevtoolsConnection,
        Arc<Mutex<BrowserProcesses>>,
        Arc<AtomicBool>,
    ),
) {
    let Some(group) = group else { return };
    while !connection.is_closed() {
        tokio::time::sleep(MEMORY_INTERVAL).await;
        if process_memory::of_group(group) > max {
            is_too_large.store(true, Ordering::Relaxed);
            connection.close();
            return end_process(process).await;
        }
    }
}
