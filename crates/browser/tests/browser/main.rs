//! Pages rendered in a real Chromium.
//!
//! The environment variables `CRAWL_CHROMIUM`, `CRAWL_CHROMIUM_LIBRARIES` and
//! `CRAWL_CHROMIUM_FONTS` contain the paths of the browser, its libraries and its fonts.
//! `cargo xtask test --step browser` sets them.

mod browser_process_lifecycle;
mod in_memory_site;
mod page_limits;
mod page_request_interception;
mod scrolling;
mod virtual_time;
