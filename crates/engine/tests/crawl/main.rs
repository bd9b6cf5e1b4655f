//! Whole crawls of a synthetic web on loopback, held against what that web says a crawl
//! of it must find.

mod failure;
mod reach;
mod restart;
mod support;
