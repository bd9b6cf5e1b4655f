//! Checks that any text can be parsed as a search query.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawl_index::fuzz_checks::search_query(data));
