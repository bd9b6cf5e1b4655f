//! A browser that renders pages, and is started again after it has died.

use std::sync::Arc;

use tokio::sync::{Mutex, Semaphore};

use crate::running::Running;
use crate::{
    BrowserConfig, BrowserError, Budget, PageRequests, PageToRender, RenderError, Rendered, page,
};

/// A browser. Clones share it; it ends with the last clone.
#[derive(Debug, Clone)]
pub struct Browser {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: BrowserConfig,
    version: String,
    tabs: Semaphore,
    /// The browser that runs, or the last one that did. Locked while it starts.
    running: Mutex<Arc<Running>>,
}

impl Browser {
    /// Starts a browser.
    ///
    /// # Errors
    /// If there is no browser or it does not start.
    pub async fn launch(config: BrowserConfig) -> Result<Browser, BrowserError> {
        let (running, version) = Running::start(&config).await?;
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

    /// Renders a page. Each request of the page goes to `requests`. Waits while as many pages as
    /// configured are being rendered. Starts the browser again if it has died.
    ///
    /// # Errors
    /// See [`RenderError`].
    pub async fn render(
        &self,
        page: PageToRender,
        requests: Arc<dyn PageRequests>,
    ) -> Result<Rendered, RenderError> {
        // The semaphore is never closed.
        let _tab = self.shared.tabs.acquire().await;
        let running = self.running().await?;
        let rendered = page::render(&running, &self.shared.config, page, requests).await;
        match rendered {
            Err(_) if running.is_too_large() => Err(RenderError::Budget(Budget::Memory)),
            rendered => rendered,
        }
    }

    /// Ends the browser and removes its profile. Pages that are being rendered fail.
    pub async fn close(self) {
        let running = self.shared.running.lock().await.clone();
        running.kill().await;
    }

    async fn running(&self) -> Result<Arc<Running>, BrowserError> {
        let mut running = self.shared.running.lock().await;
        if running.connection.is_closed() {
            running.kill().await;
            let (restarted, _) = Running::start(&self.shared.config).await?;
            *running = Arc::new(restarted);
        }
        Ok(running.clone())
    }
}
