//! Checks that any bytes can be read as rows and messages of a shared frontier's server.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawl_shared_frontier::fuzz_checks::shared_rows(data));
