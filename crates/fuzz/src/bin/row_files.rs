//! Checks that a row file yields the same lines if it arrives in pieces.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawl_archive::fuzz_checks::row_files(data));
