//! Checks that any response of a server can be handled.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawl_fetcher::fuzz_checks::http_responses(data));
