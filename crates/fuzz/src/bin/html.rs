//! Checks that any bytes can be read as a page.

#![no_main]

#[path = "../../../extractor/tests/checks/mod.rs"]
#[allow(dead_code, reason = "each target runs one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::html(data));
