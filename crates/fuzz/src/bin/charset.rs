//! Checks that a charset and a document kind are determined for any bytes.

#![no_main]

#[path = "../../../extractor/tests/fuzz_checks/mod.rs"]
#[allow(dead_code, reason = "each target runs one of the checks")]
mod fuzz_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_checks::charset(data));
