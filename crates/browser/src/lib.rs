//! Renders fetched pages in a headless Chromium without a network.
//!
//! The browser never fetches anything. The caller passes a page that it has already fetched, and
//! each request that the page makes while it runs goes to the caller's [`PageRequests`], which
//! answers it or refuses it. Any other connection of the browser ends at a proxy that refuses
//! everything and counts ([`Rendered::wall_hits`]).
//!
//! [`Browser::launch`] starts a browser, [`Browser::render`] runs one page in it and returns the
//! serialized DOM. A page runs in virtual time, so it does not notice how long its requests wait.

mod browser;
mod config;
mod error;
mod exchange;
mod intercept;
mod memory;
mod page;
mod process;
mod profile;
mod protocol;
mod repeat;
mod running;
mod stopwatch;
mod wall;

pub use browser::Browser;
pub use config::BrowserConfig;
pub use error::{BrowserError, Budget, RenderError, ScreenshotError};
pub use exchange::{
    AnswerFuture, PageAnswer, PageRequests, PageToRender, Rendered, RequestKind, WantedRequest,
};
