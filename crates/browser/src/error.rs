//! The errors of starting a browser and of rendering a page.

use std::io;
use std::path::PathBuf;

/// The reason why a browser could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrowserError {
    /// The given program doesn't exist.
    #[error("there is no browser at {0}\nhint: give the path of Chromium or Chrome")]
    NoSuchProgram(PathBuf),
    /// No known browser program is in the search path.
    #[error(
        "no browser found\nhint: install chromium-headless-shell, chromium or google-chrome, or \
         give its path"
    )]
    NotFound,
    /// The sandbox needs a user other than root.
    #[error(
        "the browser's sandbox does not work as root\nhint: run as another user, or switch the \
         sandbox off if a container isolates this program"
    )]
    SandboxAsRoot,
    /// The profile or the sockets could not be created, or the program could not be run.
    #[error("cannot start the browser {program}: {source}")]
    Start {
        /// The program or folder that failed.
        program: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The program ended, or did not answer the first command in time.
    #[error("the browser {program} does not answer{output}")]
    Silent {
        /// The path of the browser's program.
        program: PathBuf,
        /// The last output of the program, for the message. Empty if there was none.
        output: String,
    },
}

/// A limit that a page exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExceededLimit {
    /// The memory of the browser.
    Memory,
    /// The size of the serialized DOM.
    Dom,
}

/// The reason why a page was not rendered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// The browser had ended and could not be started again.
    #[error("the browser does not start: {0}")]
    Missing(#[from] BrowserError),
    /// The browser died. Contains the error message.
    #[error("the browser crashed: {0}")]
    Crashed(String),
    /// The page's own process died, or the browser can't show the page, for example because it is a
    /// download. Contains the error message. Other pages are not affected.
    #[error("the page failed: {0}")]
    PageFailed(String),
    /// Rendering exceeded [`BrowserConfig::timeout`](crate::BrowserConfig::timeout).
    #[error("rendering took too long")]
    Timeout,
    /// The page exceeded a limit.
    #[error("the page needs too much: {0:?}")]
    Budget(ExceededLimit),
}

/// Why a page has no screenshot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScreenshotError {
    /// The browser refused to take a screenshot, or died.
    #[error("no screenshot: {0}")]
    Failed(String),
    /// The browser took more than ten seconds.
    #[error("the screenshot took too long")]
    Timeout,
    /// The screenshot exceeds the configured maximum size. Contains its size in bytes.
    #[error("the screenshot is too large: {0} bytes")]
    TooLarge(usize),
}

impl ScreenshotError {
    /// Returns the error's name in rows and reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            ScreenshotError::Failed(_) => "failed",
            ScreenshotError::Timeout => "timeout",
            ScreenshotError::TooLarge(_) => "too_large",
        }
    }
}

impl RenderError {
    /// Returns the error's name in rows and reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            RenderError::Missing(_) => "browser_missing",
            RenderError::Crashed(_) => "browser_crashed",
            RenderError::PageFailed(_) => "page_failed",
            RenderError::Timeout => "render_timeout",
            RenderError::Budget(_) => "render_budget",
        }
    }
}
