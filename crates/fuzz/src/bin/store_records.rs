#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawl_frontier::fuzzed::store_records(data));
