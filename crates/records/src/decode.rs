//! The body of an archived answer without its content codings.

use std::io::{self, BufRead, Read};

use flate2::bufread::{DeflateDecoder, GzDecoder, ZlibDecoder};

use crate::header_fields::Fields;

/// More codings are none.
const MAX_CODINGS: usize = 4;
/// Windows of zstd frames as RFC 9659 bounds them: 8 MiB.
const ZSTD_WINDOW_LOG: u32 = 23;

/// Takes the codings off; nothing where they can't be undone. Of a body that was cut what
/// can be had is enough, and of a long one the first `most` bytes are.
pub(crate) fn decode(fields: &Fields, body: &[u8], is_cut: bool, most: u64) -> Option<Vec<u8>> {
    let names = fields.all("content-encoding").map(|value| {
        let value = String::from_utf8_lossy(value).to_ascii_lowercase();
        let names = value.split(',').map(|name| name.trim().to_owned());
        names.collect::<Vec<_>>()
    });
    let mut names: Vec<String> = names.flatten().collect();
    names.retain(|name| {
        !matches!(
            name.as_str(),
            "" | "identity" | "none" | "utf-8" | "utf8" | "7bit" | "8bit" | "binary"
        )
    });
    if names.len() > MAX_CODINGS {
        return None;
    }
    let mut bytes = body.to_vec();
    if bytes.is_empty() {
        return Some(bytes);
    }
    for name in names.iter().rev() {
        let (out, end) = undo(name, &bytes, most);
        if end.is_err() && (!is_cut || out.is_empty()) {
            return None;
        }
        bytes = out;
    }
    Some(bytes)
}

/// Undoes one coding, up to the limit, and says how that ended.
fn undo(name: &str, bytes: &[u8], most: u64) -> (Vec<u8>, io::Result<()>) {
    let mut out = Vec::new();
    let end = match name {
        "gzip" | "x-gzip" => gunzip(bytes, &mut out, most),
        "deflate" | "x-deflate" if is_zlib(bytes) => fill(ZlibDecoder::new(bytes), &mut out, most),
        "deflate" | "x-deflate" => fill(DeflateDecoder::new(bytes), &mut out, most),
        // Large windows (up to 1 GiB) are no part of the `br` coding (RFC 7932), but the decoder
        // would take them. Their first seven bits are reserved there.
        "br" if bytes.first().is_some_and(|byte| byte & 0x7f == 0x11) => {
            Err(io::ErrorKind::InvalidData.into())
        }
        "br" => fill(brotli::Decompressor::new(bytes, 4096), &mut out, most),
        "zstd" => zstd::stream::read::Decoder::with_buffer(bytes).and_then(|mut decoder| {
            decoder.window_log_max(ZSTD_WINDOW_LOG)?;
            fill(decoder, &mut out, most)
        }),
        _ => Err(io::ErrorKind::Unsupported.into()),
    };
    (out, end)
}

/// Members one after the other; what follows them and is none is padding.
fn gunzip(mut bytes: &[u8], out: &mut Vec<u8>, most: u64) -> io::Result<()> {
    loop {
        let mut member = GzDecoder::new(&mut bytes);
        fill(&mut member, out, most)?;
        if out.len() as u64 >= most || bytes.fill_buf()?.first() != Some(&0x1f) {
            return Ok(());
        }
    }
}

fn fill(from: impl Read, out: &mut Vec<u8>, most: u64) -> io::Result<()> {
    let room = most.saturating_sub(out.len() as u64);
    from.take(room).read_to_end(out).map(|_| ())
}

/// RFC 1950 section 2.2.
fn is_zlib(bytes: &[u8]) -> bool {
    match bytes {
        [cmf, flg, ..] => cmf & 0x0f == 8 && (u16::from(*cmf) << 8 | u16::from(*flg)) % 31 == 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::{Fields, decode};

    const TEXT: &[u8] = b"User-agent: *\nDisallow: /p\n";

    fn check(coding: &str, body: &[u8], is_cut: bool, found: Option<&[u8]>) {
        let fields = Fields::of(&[("content-encoding", coding)]);
        assert_eq!(
            decode(&fields, body, is_cut, 1 << 20).as_deref(),
            found,
            "{coding}"
        );
    }

    #[test]
    fn rfc9110_8_4_codings_are_undone() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(TEXT).unwrap();
        let gzip = gzip.finish().unwrap();
        check("gzip", &gzip, false, Some(TEXT));
        check(
            "identity, X-GZIP",
            &[&gzip[..], b"\0\0"].concat(),
            false,
            Some(TEXT),
        );
        check("gzip", &gzip[..gzip.len() - 9], false, None);
        check("gzip", TEXT, false, None);
        check("", TEXT, false, Some(TEXT));
        check("rot13", TEXT, false, None);
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(TEXT).unwrap();
        check("deflate", &zlib.finish().unwrap(), false, Some(TEXT));
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::fast());
        raw.write_all(TEXT).unwrap();
        check("deflate", &raw.finish().unwrap(), false, Some(TEXT));
        let zstd = zstd::encode_all(TEXT, 1).unwrap();
        check("zstd", &zstd, false, Some(TEXT));
        let mut twice = GzEncoder::new(Vec::new(), Compression::fast());
        twice.write_all(&zstd).unwrap();
        check("zstd, gzip", &twice.finish().unwrap(), false, Some(TEXT));
    }

    #[test]
    fn rfc7932_9_1_large_windows_are_refused() {
        check("br", &[0x11, 0x1e, 0, 0, 0], false, None);
    }

    #[test]
    fn of_a_body_that_was_cut_the_beginning_serves() {
        let long = TEXT.repeat(4000);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::none());
        gzip.write_all(&long).unwrap();
        let gzip = gzip.finish().unwrap();
        let fields = Fields::of(&[("content-encoding", "gzip")]);
        let found = decode(&fields, &gzip[..gzip.len() / 2], true, 1 << 20).unwrap();
        assert!(found.len() > 1000 && long.starts_with(&found));
    }
}
