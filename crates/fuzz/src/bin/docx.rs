#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawl_documents::fuzzed::docx(data));
