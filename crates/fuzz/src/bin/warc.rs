//! Checks that a WARC file yields the same records if it arrives in pieces.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawl_archive::fuzz_checks::warc(data));
