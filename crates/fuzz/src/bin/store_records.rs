//! Checks that records of the frontier stay the same when they are encoded and decoded again.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawl_frontier::fuzz_checks::store_records(data));
