use std::io::Write;

use proptest::prelude::*;

use super::*;

const TEXT: &[u8] = b"User-agent: *\nDisallow: /private\n";

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn zlib(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn raw(data: &[u8]) -> Vec<u8> {
    let mut encoder =
        flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn brotli(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = brotli::CompressorWriter::new(&mut out, 4096, 5, 22);
    encoder.write_all(data).unwrap();
    drop(encoder);
    out
}

fn zstd(data: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(data, 3).unwrap()
}

fn run(codings: &[&'static str], body: Vec<u8>, limits: &DecodeLimits) -> DecodedBody {
    decode(codings, &body.into(), limits)
}

#[track_caller]
fn check(codings: &[&'static str], body: Vec<u8>, bytes: &[u8], end: &DecodeEnd) {
    let decoded = run(codings, body, &DecodeLimits::default());
    assert_eq!(&decoded.end, end, "{codings:?}");
    assert_eq!(decoded.bytes, bytes, "{codings:?}");
}

#[test]
fn rfc9110_8_4_each_coding() {
    check(&["gzip"], gzip(TEXT), TEXT, &DecodeEnd::Whole);
    check(&["X-GZip"], gzip(TEXT), TEXT, &DecodeEnd::Whole);
    check(&["deflate"], zlib(TEXT), TEXT, &DecodeEnd::Whole);
    check(&["br"], brotli(TEXT), TEXT, &DecodeEnd::Whole);
    check(&["zstd"], zstd(TEXT), TEXT, &DecodeEnd::Whole);
}

#[test]
fn deflate_without_its_wrapper_is_read() {
    check(&["deflate"], raw(TEXT), TEXT, &DecodeEnd::Whole);
}

#[test]
fn rfc9110_8_4_several_codings_in_the_order_applied() {
    let body = brotli(&gzip(TEXT));
    check(&["gzip, br"], body.clone(), TEXT, &DecodeEnd::Whole);
    check(&["gzip", "br"], body, TEXT, &DecodeEnd::Whole);
    let body = zlib(&zstd(&gzip(&brotli(TEXT))));
    check(&["br,gzip,zstd,deflate"], body, TEXT, &DecodeEnd::Whole);
}

#[test]
fn more_than_four_codings_are_refused() {
    let message = "5 content codings, more than 4".to_owned();
    check(
        &["gzip,gzip,gzip,gzip,gzip"],
        gzip(TEXT),
        b"",
        &DecodeEnd::Broken { what: message },
    );
}

#[test]
fn rfc1952_2_2_members_follow_each_other() {
    let mut body = gzip(b"one ");
    body.extend(gzip(b"two"));
    check(&["gzip"], body.clone(), b"one two", &DecodeEnd::Whole);
    body.extend([0; 7]);
    check(&["gzip"], body, b"one two", &DecodeEnd::Whole);
}

#[test]
fn rfc1952_2_2_equal_members_follow_each_other() {
    let (one, other) = (gzip(TEXT), gzip(&TEXT.to_ascii_uppercase()));
    let [twice, both] = [[one.clone(), one.clone()], [one.clone(), other]].map(|two| two.concat());
    check(&["gzip"], twice, &TEXT.repeat(2), &DecodeEnd::Whole);
    let expected = [TEXT, &TEXT.to_ascii_uppercase()].concat();
    check(&["gzip"], both, &expected, &DecodeEnd::Whole);
    let padded = [&one[..], &[0; 30]].concat();
    check(&["gzip"], padded, TEXT, &DecodeEnd::Whole);
}

#[test]
fn no_coding_is_no_copy() {
    let body = Bytes::from_static(TEXT);
    for codings in [&[][..], &["identity"], &["UTF-8"], &[""]] {
        let decoded = decode(codings, &body, &DecodeLimits::default());
        assert_eq!(decoded.bytes.as_ptr(), body.as_ptr());
        assert_eq!(decoded.end, DecodeEnd::Whole);
    }
}

#[test]
fn an_empty_body_is_whole_in_any_coding() {
    check(&["gzip"], Vec::new(), b"", &DecodeEnd::Whole);
    check(&["compress"], Vec::new(), b"", &DecodeEnd::Whole);
}

#[test]
fn an_unknown_coding_is_named() {
    let name = "compress".to_owned();
    check(
        &["Compress"],
        TEXT.to_vec(),
        TEXT,
        &DecodeEnd::UnknownCoding { name: name.clone() },
    );
    check(
        &["compress, gzip"],
        gzip(TEXT),
        TEXT,
        &DecodeEnd::UnknownCoding { name },
    );
}

#[test]
fn a_truncated_body_keeps_its_output() {
    let mut text = Vec::new();
    for n in 0..5000u32 {
        text.extend_from_slice(format!("/page/{} ", n.wrapping_mul(2_654_435_761)).as_bytes());
    }
    type Encode = fn(&[u8]) -> Vec<u8>;
    let all: [(&str, Encode); 5] = [
        ("gzip", gzip),
        ("deflate", zlib),
        ("deflate", raw),
        ("br", brotli),
        ("zstd", zstd),
    ];
    for (name, encode) in all {
        let mut body = encode(&text);
        body.truncate(body.len() / 2);
        let decoded = run(&[name], body, &DecodeLimits::default());
        assert_eq!(decoded.end, DecodeEnd::Short, "{name}");
        assert!(text.starts_with(&decoded.bytes), "{name}");
        assert!(name == "zstd" || !decoded.bytes.is_empty(), "{name}");
        let decoded = run(
            &[name],
            encode(&text)[..1].to_vec(),
            &DecodeLimits::default(),
        );
        assert_eq!(decoded.end, DecodeEnd::Short, "{name}");
    }
}

#[test]
fn bytes_that_are_something_else_are_broken() {
    for name in ["gzip", "deflate", "br", "zstd"] {
        let decoded = run(
            &[name],
            b"<!DOCTYPE html><p>plain".to_vec(),
            &DecodeLimits::default(),
        );
        let broken = matches!(decoded.end, DecodeEnd::Broken { .. });
        assert!(broken, "{name}: {:?}", decoded.end);
    }
    let mut body = gzip(TEXT);
    let at = body.len() - 6;
    body[at] ^= 1;
    let decoded = run(&["gzip"], body, &DecodeLimits::default());
    assert!(
        matches!(decoded.end, DecodeEnd::Broken { .. }),
        "{:?}",
        decoded.end
    );
}

#[test]
fn a_bomb_is_cut_by_its_ratio_and_a_big_body_by_its_size() {
    let limits = DecodeLimits {
        bytes: 100_000,
        ratio: 10,
        ratio_from: 1000,
    };
    for (name, body) in [
        ("gzip", gzip(&vec![b'a'; 500_000])),
        ("deflate", raw(&vec![b'a'; 500_000])),
        ("br", brotli(&vec![b'a'; 500_000])),
        ("zstd", zstd(&vec![b'a'; 500_000])),
    ] {
        let at = (body.len() * 10).max(1000);
        let decoded = run(&[name], body, &limits);
        let limit = ReachedDecodeLimit::Ratio;
        assert_eq!(decoded.end, DecodeEnd::Truncated { at, limit }, "{name}");
        assert_eq!(decoded.bytes.len(), at, "{name}");
    }
    let mut state = 1u32;
    let mut noise = vec![0; 200_000];
    for byte in &mut noise {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = (state >> 24) as u8;
    }
    let decoded = run(&["gzip"], gzip(&noise), &limits);
    let (at, limit) = (100_000, ReachedDecodeLimit::Bytes);
    assert_eq!(decoded.end, DecodeEnd::Truncated { at, limit });
    assert_eq!(decoded.bytes, noise[..at]);
}

#[test]
fn rfc7932_9_1_large_windows_are_refused() {
    check(
        &["br"],
        vec![0x11, 0x1e, 0, 0, 0],
        b"",
        &DecodeEnd::Broken {
            what: "large brotli window".to_owned(),
        },
    );
}

#[test]
fn a_gzip_file_is_known_by_its_first_bytes() {
    let limits = DecodeLimits::default();
    assert_eq!(decode_gzip(&gzip(TEXT).into(), &limits).bytes, TEXT);
    assert_eq!(decode_gzip(&Bytes::from_static(TEXT), &limits).bytes, TEXT);
}

proptest! {
    #[test]
    fn nothing_panics_and_nothing_is_larger_than_allowed(
        codings in proptest::sample::select(vec!["gzip", "deflate", "br", "zstd", "br, gzip", "zstd, br"]),
        good in any::<bool>(),
        mut body in proptest::collection::vec(any::<u8>(), 0..400),
        flip in any::<u16>(),
    ) {
        if good {
            body = match codings {
                "gzip" => gzip(&body),
                "deflate" => zlib(&body),
                "br" => brotli(&body),
                "zstd" => zstd(&body),
                "br, gzip" => gzip(&brotli(&body)),
                _ => brotli(&zstd(&body)),
            };
            let at = usize::from(flip) % body.len();
            body[at] ^= (flip >> 8) as u8;
        }
        let limits = DecodeLimits { bytes: 300, ratio: 250, ratio_from: 1 << 20 };
        let decoded = run(&[codings], body.clone(), &limits);
        prop_assert!(decoded.bytes.len() <= 300 || decoded.bytes == body);
    }

    #[test]
    fn encoded_bytes_decode_to_themselves(body in proptest::collection::vec(any::<u8>(), 1..3000)) {
        for (name, encoded) in [
            ("gzip", gzip(&body)),
            ("deflate", zlib(&body)),
            ("deflate", raw(&body)),
            ("br", brotli(&body)),
            ("zstd", zstd(&body)),
        ] {
            let decoded = run(&[name], encoded, &DecodeLimits::default());
            prop_assert_eq!(&decoded.end, &DecodeEnd::Whole);
            prop_assert_eq!(&decoded.bytes, &body);
        }
    }
}
