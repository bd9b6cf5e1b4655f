//! Checks that any line can be parsed as a command or an answer of the control socket.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawl::fuzz_checks::control(data));
