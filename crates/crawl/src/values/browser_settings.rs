//! Settings of the browser that renders pages.

use std::path::PathBuf;
use std::time::Duration;

/// The settings of a browser that renders pages.
#[cfg_attr(
    not(feature = "render"),
    expect(dead_code, reason = "this build has no browser")
)]
#[derive(Clone, Debug)]
pub(crate) struct BrowserSettings {
    /// Path of the browser's program. `None` if it must be searched for.
    pub(crate) program: Option<PathBuf>,
    pub(crate) sandbox: bool,
    /// Maximum pages to render at once.
    pub(crate) tabs: usize,
    /// How long a page may run, by the page's own clock.
    pub(crate) page_time: Duration,
    /// How long the browser may take for a page, in real time.
    pub(crate) timeout: Duration,
    /// Maximum memory of the browser, in bytes.
    pub(crate) memory: u64,
    /// Maximum requests per page.
    pub(crate) max_requests: u32,
    pub(crate) user_agent: String,
    /// Whether to take a screenshot of each page.
    pub(crate) screenshots: bool,
}
