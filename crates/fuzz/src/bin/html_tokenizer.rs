//! Checks that our tokenizer and that of html5ever return the same tokens for any text.
#![no_main]

libfuzzer_sys::fuzz_target!(|html: &str| crawl_extractor::compare_with_html5ever(html));
