//! Checks that any text can be parsed as a settings file.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawl::fuzz_checks::config(data));
