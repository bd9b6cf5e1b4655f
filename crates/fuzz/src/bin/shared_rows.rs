//! Checks that any bytes can be read as rows and messages of a shared frontier's server.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawl_shared_frontier::fuzzed::shared_rows(data));
