//! Checks that a charset and a document kind are determined for any bytes.

#![no_main]

#[path = "../../../extractor/tests/checks/mod.rs"]
#[allow(dead_code, reason = "each target runs one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::charset(data));
