//! Renders fetched pages in a headless Chromium without a network.
//!
//! The browser never fetches anything. The caller passes a page that was already fetched. Each
//! request that the page makes is passed to the caller's [`PageRequestHandler`], which answers or
//! refuses the request. All other connections of the browser go to a proxy on loopback (the wall),
//! which refuses and counts them ([`RenderingResult::wall_hits`]).
//!
//! [`Browser::launch`] starts a browser. [`Browser::render`] runs one page and returns the
//! serialized DOM. Pages run in virtual time, so a page does not notice how long its requests wait.

mod browser;
mod browser_processes;
mod browser_profile_folder;
mod config;
mod devtools_client;
mod devtools_request_conversion;
mod error;
mod pausable_timeout;
mod process_memory;
mod refusing_proxy;
mod render_page;
mod rendering_interface;
mod retry_answer_cache;
mod running_browser;

pub use browser::Browser;
pub use config::BrowserConfig;
pub use error::{BrowserError, ExceededLimit, RenderError, ScreenshotError};
pub use rendering_interface::{
    InterceptedRequest, PageRequestFuture, PageRequestHandler, PageRequestResult, PageToRender,
    RenderingResult, RequestKind,
};
