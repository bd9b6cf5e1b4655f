#![no_main]

use std::sync::Once;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // The hook of libFuzzer aborts at any panic, also at those of the library, which are caught. A
    // panic that is not caught still ends the process.
    static HOOK: Once = Once::new();
    HOOK.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    crawl_documents::fuzzed::pdf(data);
});
