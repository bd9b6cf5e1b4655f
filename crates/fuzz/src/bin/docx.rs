//! Checks that any bytes can be converted as a DOCX.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawl_documents::fuzz_checks::docx(data));
