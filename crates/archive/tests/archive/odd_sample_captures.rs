//! Odd captures for other programs to read.

use std::io::Write;

use crawl_archive::{RevisitProfile, WarcTruncation};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::sample::Sample;

/// Returns captures of odd responses: content codings, truncated bodies, revisits, HTTP/2, IPv6,
/// odd URLs.
pub(crate) fn odd_captures() -> Vec<Sample> {
    let gzip = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let packed = gzip(&b"<p>packed</p>".repeat(3000));
    let coded: [(&str, &[u8]); 3] = [
        ("content-type", b"text/html"),
        ("content-encoding", b"gzip"),
        ("transfer-encoding", b"chunked"),
    ];
    let html: [(&str, &[u8]); 1] = [("content-type", b"text/html")];
    let new = |number, path: &str, headers: &[(&str, &[u8])], body: &[u8]| {
        Sample::new(
            number,
            &format!("http://www.example.org{path}"),
            headers,
            body,
        )
    };
    let mut samples = vec![
        new(1, "/empty", &[("content-length", b"0")], b""),
        new(2, "/no-length", &[], b""),
        new(3, "/packed", &coded, &packed),
        new(4, "/packed-cut", &coded, &packed[..40])
            .with(|s| s.truncated = Some(WarcTruncation::Length)),
        new(5, "/packed-lie", &coded, b"not packed at all"),
        new(
            6,
            "/packed-broken",
            &coded,
            &[&packed[..30], &[0; 30]].concat(),
        ),
        new(7, "/no-content", &[], b"").with(|s| s.status = 204),
        new(8, "/not-modified", &[("content-length", b"77")], b"").with(|s| s.status = 304),
        new(9, "/not-modified-revisit", &[("etag", b"\"x\"")], b"").with(|s| {
            s.status = 304;
            s.revisit = Some(RevisitProfile::NotModified);
        }),
        new(10, "/same", &html, b"same")
            .with(|s| s.revisit = Some(RevisitProfile::IdenticalPayload)),
        new(11, "/same-empty", &html, b"")
            .with(|s| s.revisit = Some(RevisitProfile::IdenticalPayload)),
        new(12, "/cut", &[("content-length", b"99999")], b"cut")
            .with(|s| s.truncated = Some(WarcTruncation::Disconnect)),
        new(13, "/slow", &html, b"slow").with(|s| s.truncated = Some(WarcTruncation::Time)),
        new(14, "/odd-reason", &html, b"odd").with(|s| {
            s.status = 299;
            s.reason = Some(b"Sehr sch\xf6n\r\n\r\nX");
        }),
        new(15, "/odd-status", &html, b"odd").with(|s| s.status = 999),
        new(16, "/empty-reason", &html, b"odd").with(|s| s.reason = Some(b"")),
        new(
            17,
            "/warc-inside",
            &html,
            b"\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\n\r\n",
        ),
        new(18, "/nul", &html, &[0; 100_000]),
        new(
            19,
            "/cookies",
            &[("set-cookie", b"a"), ("set-cookie", b"b")],
            b"two",
        ),
        new(20, "/ipv6", &html, b"6").with(|s| s.address = Some("2001:db8::1".parse().unwrap())),
        new(
            21,
            "/lengths",
            &[("content-length", b"3"), ("content-length", b"3")],
            b"abc",
        ),
        new(
            22,
            "/lengths-wrong",
            &[("content-length", b"4"), ("content-length", b"3")],
            b"abc",
        ),
        new(23, "/brotli", &[("content-encoding", b"br")], b"no brotli"),
        new(
            24,
            "/deflate",
            &[("content-encoding", b"deflate")],
            b"no deflate",
        ),
        new(25, "/zstd", &[("content-encoding", b"zstd")], b"no zstd"),
        new(
            26,
            "/moved",
            &[("location", b"http://example.org/\xe9")],
            b"",
        )
        .with(|s| s.status = 301),
        new(27, "/reset", &html, b"").with(|s| s.truncated = Some(WarcTruncation::Disconnect)),
    ];
    let types: [&[u8]; 10] = [
        b"text/html; charset=utf-8",
        b"TEXT/HTML;charset=x",
        b"",
        b"; charset=utf-8",
        b"text/html charset",
        b"text/\xe9\xa0x",
        "text/ü\u{2003}x".as_bytes(),
        b"\"text\\html\"",
        b"text/html\xa0",
        b"\xf0\x9f\x98\x80",
    ];
    for (number, kind) in (40..).zip(types) {
        samples.push(new(number, "/type", &[("content-type", kind)], b"typed"));
    }
    let urls = [
        "http://www.example.org/",
        "http://www2.example.org:8080/A//b/./c/?B=2&a=1&&c",
        "http://127.0.0.1:8001/x/",
        "http://[::1]:8080/x",
        "http://e.org:0/",
        "http://bücher.example/ü?ü=Ü#frag",
        "http://e.org/%25%32%35/%7Ea%20b/%2541",
        "http://e.org/?PHPSESSID=0123456789abcdef0123456789abcdef&x",
        "http://e.org/(S(abcdefghijklmnopqrstuvwx))/x.aspx?q=%23%26",
        "http://e.org/a%0d%0ab%00c?%0d%0a",
        "http://e.org/{|}\\^`<>\"'",
        "http://e.org./?",
        "http://a..b.org/?a?b?c",
    ];
    for (number, url) in (60..).zip(urls) {
        samples.push(Sample::new(number, url, &html, url.as_bytes()));
        let secure = url.replacen("http:", "https:", 1);
        samples.push(Sample::new(number, &secure, &html, b"h2").with(|s| {
            s.protocol = http::Version::HTTP_2;
            s.tls = true;
        }));
    }
    samples
}

/// Returns captures of pseudo-random URLs, to test the keys of the index. The URLs are always the
/// same.
pub(crate) fn odd_urls() -> Vec<Sample> {
    const PIECES: [&str; 44] = [
        "a",
        "B",
        "0",
        "9",
        "/",
        "/",
        "//",
        ".",
        "..",
        "/./",
        "/../",
        "%2e",
        "%2E%2e",
        "%25",
        "%2541",
        "%",
        "%zz",
        "%00",
        "%0a",
        "%20",
        "%23",
        "%3f",
        "%3F",
        "%C3%BC",
        "%ff",
        "ü",
        "+",
        "&",
        "&&",
        "=",
        "?",
        "?",
        ";",
        ":",
        "@",
        "~",
        "|",
        "(",
        ")",
        "sid=",
        "0123456789abcdef0123456789abcdef",
        "cfid=1&cftoken=2",
        "(s(abcdefghijklmnopqrstuvwx))/",
        ".aspx",
    ];
    const HOSTS: [&str; 8] = [
        "e.example",
        "www.e.example:81",
        "WWW12.e.example",
        "www.",
        "a..b.example",
        "10.0.0.1",
        "[2001:db8::1]:8080",
        "x_y.example.:443",
    ];
    let mut state = 7u64;
    let mut next = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    let mut samples = Vec::new();
    for number in 1000..3000 {
        let scheme = ["http", "https"][next(2)];
        let mut url = format!("{scheme}://{}/", HOSTS[next(HOSTS.len())]);
        for _ in 0..next(12) {
            url.push_str(PIECES[next(PIECES.len())]);
        }
        samples.push(Sample::new(number, &url, &[], b""));
    }
    samples
}
