//! Checks that every robots.txt profile parses any file.

#![no_main]

#[path = "../../../policy/tests/fuzz_checks/mod.rs"]
#[allow(dead_code, reason = "each target runs one of the checks")]
mod fuzz_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_checks::parse(data));
