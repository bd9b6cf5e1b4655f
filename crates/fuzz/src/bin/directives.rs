//! Checks that any header and META can be parsed, and that more words never lift a restriction.

#![no_main]

#[path = "../../../policy/tests/checks/mod.rs"]
#[allow(dead_code, reason = "each target runs one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::headers(data));
