//! Checks that any bytes can be read as a page.

#![no_main]

#[path = "../../../extractor/tests/fuzz_checks/mod.rs"]
#[allow(dead_code, reason = "each target runs one of the checks")]
mod fuzz_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_checks::html(data));
