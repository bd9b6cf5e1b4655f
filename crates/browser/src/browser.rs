//! A browser that renders pages.
use std::sync::Arc;

use crate::{BrowserConfig, BrowserError, PageRequests, PageToRender, RenderError, Rendered};

/// A browser. Clones share it.
#[derive(Debug, Clone)]
pub struct Browser {
    version: Arc<str>,
}

impl Browser {
    /// Starts a browser.
    ///
    /// # Errors
    /// If there is no browser or it does not start.
    pub async fn launch(config: BrowserConfig) -> Result<Browser, BrowserError> {
        config.find_program().ok_or(BrowserError::NotFound)?;
        Ok(Browser { version: "".into() })
    }

    /// Returns the browser's product and version, such as `HeadlessChrome/156.0.1.2`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Renders a page. Each request of the page goes to `requests`.
    ///
    /// # Errors
    /// See [`RenderError`].
    pub async fn render(
        &self,
        page: PageToRender,
        requests: Arc<dyn PageRequests>,
    ) -> Result<Rendered, RenderError> {
        drop((page, requests));
        Err(RenderError::Crashed("not yet written".to_owned()))
    }

    /// Ends the browser and removes its profile.
    pub async fn close(self) {}
}
