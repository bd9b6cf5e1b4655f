//! The bodies of the fuzz targets, on random inputs.
#![allow(missing_docs, clippy::unwrap_used)]

mod fuzz_checks;
#[path = "../../fuzz/src/run_without_fuzzer.rs"]
mod run_without_fuzzer;

use proptest::prelude::*;
use run_without_fuzzer::run_without_fuzzer;

/// Texts that resemble robots.txt, with the oddities of real ones.
fn file() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => "(User-agent|user agent|Useragent): ?(ourbot|\\*|\\* x|other|ourbot/2|bot2x|ourbot other|)",
        16 => "(Dis|dis|)allow ?: ?/[abi*%]{0,5}(/index.html|%2[aAfF4]|%61|\\$|ü| x|)\\$?",
        2 => "(disalow|Allowed|diasllow|Disallow) /[ab]{0,3}",
        2 => "(Crawl-delay|Sitemap|Host|Content-Usage|License|x): ?[0-9a-z=/]{0,6}",
        2 => "[ -~]{0,12}",
        1 => "#.{0,6}",
    ];
    let end = prop_oneof![6 => Just("\n"), 1 => Just("\r"), 1 => Just("\r\n"), 1 => Just("\n\n"), 1 => Just(" #c\n")];
    prop::collection::vec((piece, end), 0..25).prop_map(|lines| {
        let text: String = lines.into_iter().map(|(line, end)| line + end).collect();
        text.into_bytes()
    })
}

fn path_and_file() -> impl Strategy<Value = Vec<u8>> {
    let path = "[abi/]{0,5}(index.html|%2[aAfF4]|%61|\\$|ü|\\?x|#f|)";
    (path, file()).prop_map(|(path, file)| {
        let mut data = vec![u8::try_from(path.len()).unwrap()];
        data.extend_from_slice(path.as_bytes());
        data.extend(file);
        data
    })
}

proptest! {
    #[test]
    fn parse(data in prop_oneof![file(), prop::collection::vec(any::<u8>(), 0..200)]) {
        fuzz_checks::parse(&data);
    }

    #[test]
    fn matching(data in prop_oneof![3 => path_and_file(), 1 => prop::collection::vec(any::<u8>(), 0..200)]) {
        fuzz_checks::matching(&data);
    }

    #[test]
    fn headers(text in "((ourbot|other): ?)?((no)?(index|follow|ne|ai)|max-snippet: ?-?[0-9]{1,2}|unavailable_after: [A-Za-z0-9, :-]{0,20}|train-ai=[yn]|,|;|\\n| |\\PC){0,12}") {
        fuzz_checks::headers(text.as_bytes());
    }

    #[test]
    fn dialects(data in path_and_file()) {
        fuzz_checks::dialects(&data);
    }
}

#[test]
fn inputs_of_the_fuzzer() {
    run_without_fuzzer("robots_parse", 1_000, fuzz_checks::parse);
    run_without_fuzzer("robots_match", 1_000, fuzz_checks::matching);
    run_without_fuzzer("robots_dialects", 1_000, fuzz_checks::dialects);
    run_without_fuzzer("directives", 1_000, fuzz_checks::headers);
}
