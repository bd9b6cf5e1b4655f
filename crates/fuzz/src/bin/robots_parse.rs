//! Checks that every robots.txt profile parses any file.

#![no_main]

#[path = "../../../policy/tests/checks/mod.rs"]
#[allow(dead_code, reason = "each target runs one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::parse(data));
