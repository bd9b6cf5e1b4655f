//! Checks that the strictest robots.txt profile allows a path only if every other profile does.

#![no_main]

#[path = "../../../policy/tests/fuzz_checks/mod.rs"]
#[allow(dead_code, reason = "each target runs one of the checks")]
mod fuzz_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_checks::dialects(data));
