//! A browser that renders pages. If the browser dies, the next rendering starts it again.

use std::sync::Arc;

use tokio::sync::{Mutex, Semaphore};

use crate::retry_answer_cache::AnswerCachingRequestHandler;
use crate::running_browser::RunningBrowser;
use crate::{
    BrowserConfig, BrowserError, ExceededLimit, PageRequestHandler, PageToRender, RenderError,
    RenderingResult, render_page,
};

/// A handle to a browser. Clones share the browser, which ends when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Browser {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: BrowserConfig,
    version: String,
    tabs: Semaphore,
    /// The most recently started browser process, which may have died since. The lock is held while
    /// a process starts.
    running: Mutex<Arc<RunningBrowser>>,
}

impl Browser {
    /// Starts a browser.
    ///
    /// # Errors
    /// [`BrowserError`] if no browser program is found or the program does not start.
    pub async fn launch(config: BrowserConfig) -> Result<Browser, BrowserError> {
        let (running, version) = RunningBrowser::start(&config).await?;
        let shared = Shared {
            version,
            tabs: Semaphore::new(config.tabs.max(1)),
            running: Mutex::new(Arc::new(running)),
            config,
        };
        Ok(Browser {
            shared: Arc::new(shared),
        })
    }

    /// Returns the browser's product and version, such as `HeadlessChrome/156.0.1.2`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.shared.version
    }

    /// Renders a page. Passes each request that the page makes to `requests`. Waits for a free tab
    /// if [`BrowserConfig::tabs`] pages are being rendered. Starts the browser again if it has
    /// died.
    ///
    /// If the browser dies while it renders several pages, each of these pages is rendered a second
    /// time, with no other page in the browser. So rendering fails only for the page that killed
    /// the browser. In the second rendering, a GET request gets the answer of the first one, if
    /// that was kept. Requests with other methods are refused, because the server may have
    /// processed them already.
    ///
    /// # Errors
    /// See [`RenderError`].
    pub async fn render(
        &self,
        page: PageToRender,
        requests: Arc<dyn PageRequestHandler>,
    ) -> Result<RenderingResult, RenderError> {
        let tabs = &self.shared.tabs;
        let max_tabs = self.shared.config.tabs.max(1);
        if max_tabs == 1 {
            let _tab = tabs.acquire().await;
            return self.try_once(page, requests).await.0;
        }
        let requests = Arc::new(AnswerCachingRequestHandler::new(requests));
        // Acquiring can't fail, because the semaphore is never closed.
        let tab = tabs.acquire().await;
        let (rendered, was_alone) = self.try_once(page.clone(), requests.clone()).await;
        drop(tab);
        let is_of_browser = matches!(
            rendered,
            Err(RenderError::Crashed(_) | RenderError::Budget(ExceededLimit::Memory))
        );
        if was_alone || !is_of_browser {
            return rendered;
        }
        requests.repeat();
        let _all_tabs = tabs
            .acquire_many(u32::try_from(max_tabs).unwrap_or(u32::MAX))
            .await;
        self.try_once(page, requests).await.0
    }

    /// Renders a page once. Also returns true if the browser rendered no other page at the same
    /// time.
    async fn try_once(
        &self,
        page: PageToRender,
        requests: Arc<dyn PageRequestHandler>,
    ) -> (Result<RenderingResult, RenderError>, bool) {
        let running = match self.running().await {
            Ok(running) => running,
            Err(error) => return (Err(error.into()), true),
        };
        let visit = running.visit();
        let rendered = render_page::render(&running, &self.shared.config, page, requests).await;
        let rendered = match rendered {
            Err(_) if running.is_too_large() => Err(RenderError::Budget(ExceededLimit::Memory)),
            rendered => rendered,
        };
        (rendered, visit.is_alone())
    }

    /// Ends the browser and removes its profile. Fails the rendering of all pages in progress.
    pub async fn close(self) {
        let running = self.shared.running.lock().await.clone();
        running.kill().await;
    }

    async fn running(&self) -> Result<Arc<RunningBrowser>, BrowserError> {
        let mut running = self.shared.running.lock().await;
        if running.connection.is_closed() {
            running.kill().await;
            let (restarted, _) = RunningBrowser::start(&self.shared.config).await?;
            *running = Arc::new(restarted);
        }
        Ok(running.clone())
    }
}
