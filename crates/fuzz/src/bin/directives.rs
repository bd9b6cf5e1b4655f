//! Checks that any header and META can be parsed, and that more words never lift a restriction.

#![no_main]

#[path = "../../../policy/tests/fuzz_checks/mod.rs"]
#[allow(dead_code, reason = "each target runs one of the checks")]
mod fuzz_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_checks::headers(data));
