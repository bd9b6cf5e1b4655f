//! Checks that any bytes can be converted as a PDF.

#![no_main]

use std::sync::Once;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // Replace libFuzzer's panic hook, which aborts the process at every panic. The PDF library
    // panics on many inputs, which is not a finding: the target catches these panics. Panics that
    // the target doesn't catch still end the process.
    static HOOK: Once = Once::new();
    HOOK.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    crawl_documents::fuzz_checks::pdf(data);
});
