//! Pages rendered in a real Chromium.
//!
//! Environment variables name the browser; `cargo xtask test --step browser` sets them:
//! `CRAWL_CHROMIUM`, `CRAWL_CHROMIUM_LIBRARIES`, `CRAWL_CHROMIUM_FONTS`.

mod bounds;
mod processes;
mod requests;
mod site;
mod time;
