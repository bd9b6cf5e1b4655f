#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawl_shared_frontier::fuzzed::shared_rows(data));
