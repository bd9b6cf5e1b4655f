//! Runs html5lib's encoding cases: the determined charset must be the expected one.

use crawl_extractor::{CharsetSource, ReadingLimits, read_html};

const FILES: [&[u8]; 3] = [
    include_bytes!("../html5lib/encoding/tests1.dat"),
    include_bytes!("../html5lib/encoding/tests2.dat"),
    include_bytes!("../html5lib/encoding/test-yahoo-jp.dat"),
];

/// Returns the cases of a file: the bytes of a page, and the expected charset.
fn cases(file: &'static [u8]) -> Vec<(&'static [u8], &'static str)> {
    let mut cases = Vec::new();
    let mut rest = file;
    while let Some(start) = rest.strip_prefix(b"#data\n") {
        let mark = b"\n#encoding\n";
        let end = start
            .windows(mark.len())
            .position(|window| window == mark)
            .unwrap();
        let after = &start[end + mark.len()..];
        let line = after
            .iter()
            .position(|&byte| byte == b'\n')
            .unwrap_or(after.len());
        cases.push((&start[..end], std::str::from_utf8(&after[..line]).unwrap()));
        let next = after.windows(6).position(|window| window == b"#data\n");
        rest = next.map_or(&[], |next| &after[next..]);
    }
    cases
}

#[test]
fn html5lib_encodings_are_found() {
    let cases: Vec<_> = FILES.into_iter().flat_map(cases).collect();
    assert!(cases.len() > 60, "{} cases", cases.len());
    // Skip pages in which a script writes the `meta`, because the extractor runs no scripts.
    let is_scripted = |bytes: &[u8]| bytes.windows(14).any(|window| window == b"document.write");
    for (bytes, expected) in cases.into_iter().filter(|(bytes, _)| !is_scripted(bytes)) {
        // Append a byte that is not ASCII. A page that is all ASCII counts as UTF-8, even if a late
        // `meta` names another charset.
        let bytes = [bytes, b"\xff"].concat();
        let page = read_html(&bytes, None, &ReadingLimits::default());
        let is_declared = matches!(
            page.charset_source,
            CharsetSource::Meta | CharsetSource::Bom | CharsetSource::LateMeta
        );
        // For a page without a declaration, html5lib expects windows-1252. The extractor guesses in
        // this case, which other tests check.
        let charset = if is_declared {
            page.charset
        } else {
            "windows-1252"
        };
        assert!(
            charset.eq_ignore_ascii_case(expected),
            "{charset}, not {expected}: {}",
            String::from_utf8_lossy(&bytes)
        );
    }
}
