//! Decodes content codings with a bound on the output.
//!
//! Both the fetcher and the readers of an archive use [`decode()`], so that they get the same text
//! from the same body. The crate does no I/O. The only header that it knows is `Content-Encoding`.
//!
//! ```
//! use bytes::Bytes;
//! use crawl_coding::{DecodeEnd, DecodeLimits, decode};
//!
//! let body = Bytes::from_static(b"\x78\x9c\xcb\x48\xcd\xc9\xc9\x07\x00\x06\x2c\x02\x15");
//! let decoded = decode(["deflate"], &body, &DecodeLimits::default());
//! assert_eq!(decoded.bytes, "hello");
//! assert_eq!(decoded.end, DecodeEnd::Whole);
//! ```

#[cfg_attr(not(feature = "libdeflate"), path = "whole_gzip_disabled.rs")]
mod whole_gzip;
#[cfg_attr(not(feature = "zstd"), path = "zstd_disabled.rs")]
mod zstd_decoder;

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::rc::Rc;

use bytes::Bytes;
use flate2::{Decompress, FlushDecompress, Status};

/// Maximum number of codings on a body. With more, decoding ends as [`DecodeEnd::Broken`]: real
/// bodies don't have more, and each takes memory.
/// Beyond the limit: `encoding_broken`.
const MAX_CODINGS: usize = 4;
/// Maximum output buffer to allocate in advance, before the size of the output is known.
const MAX_RESERVED: usize = 1 << 20;
const GZIP_FIRST_BYTE: u8 = 0x1f;

/// The value to send as `Accept-Encoding`: the codings that [`decode()`] knows.
pub const ACCEPTED: &str = match zstd_decoder::IS_BUILT_IN {
    true => "gzip, deflate, br, zstd",
    false => "gzip, deflate, br",
};

/// Limits on the decoded form of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Maximum size of the decoded body, in bytes.
    pub bytes: usize,
    /// Maximum number of decoded bytes per encoded byte. A decompression bomb has more.
    pub ratio: usize,
    /// Output of up to this many bytes is allowed even if it exceeds `ratio`.
    pub ratio_from: usize,
}

impl Default for DecodeLimits {
    fn default() -> DecodeLimits {
        DecodeLimits {
            bytes: 32 << 20,
            ratio: 250,
            ratio_from: 1 << 20,
        }
    }
}

/// A body without its content codings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedBody {
    /// The decoded bytes. If decoding failed, the bytes decoded before the failure. If the body has
    /// no coding, this is the body itself, not a copy.
    pub bytes: Bytes,
    /// How decoding ended.
    pub end: DecodeEnd,
}

/// How decoding ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeEnd {
    /// The whole body was decoded.
    Whole,
    /// The output reached a limit. The bytes before the limit are kept.
    Truncated {
        /// The number of bytes kept.
        at: usize,
        /// The limit that was reached.
        limit: ReachedDecodeLimit,
    },
    /// The input is truncated: it ends in the middle of the coded data. The output so far is kept.
    Short,
    /// The input doesn't match its `Content-Encoding`. The output so far is kept.
    Broken {
        /// A description of the defect.
        what: String,
    },
    /// `Content-Encoding` names an unknown coding. The bytes are left in that coding.
    UnknownCoding {
        /// The coding's name, in lower case.
        name: String,
    },
}

impl DecodeEnd {
    /// Returns the name of the error in records, with a detail if there is one. `None` if the whole
    /// body was decoded.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        let name = match self {
            DecodeEnd::Whole => return None,
            DecodeEnd::Truncated { limit, .. } => match limit {
                ReachedDecodeLimit::Bytes => "decoded_too_large",
                ReachedDecodeLimit::Ratio => "decompression_bomb",
            },
            DecodeEnd::Short => "encoding_cut_short",
            DecodeEnd::Broken { what } => return Some(format!("encoding_broken: {what}")),
            DecodeEnd::UnknownCoding { name } => return Some(format!("encoding_unknown: {name}")),
        };
        Some(name.to_owned())
    }
}

/// Which limit truncated a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReachedDecodeLimit {
    /// The limit [`DecodeLimits::bytes`].
    Bytes,
    /// The limit [`DecodeLimits::ratio`].
    Ratio,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
    Unknown(String),
}

/// Decodes a body by the values of its `Content-Encoding` fields (RFC 9110 section 8.4). The
/// codings are those of [`ACCEPTED`], in any order, up to four. Deflate is in the zlib format, or
/// raw as some servers send it.
///
/// Never fails: returns the output so far, and the reason why decoding ended in [`DecodeEnd`].
#[must_use]
pub fn decode(
    content_encoding: impl IntoIterator<Item: AsRef<[u8]>>,
    body: &Bytes,
    limits: &DecodeLimits,
) -> DecodedBody {
    let codings = codings(content_encoding);
    if codings.is_empty() || body.is_empty() {
        return DecodedBody {
            bytes: body.clone(),
            end: DecodeEnd::Whole,
        };
    }
    unpack(&codings, body, limits)
}

/// Decompresses a gzip file, such as `/sitemap.xml.gz` sent without a content coding. Bytes that
/// don't begin like gzip are returned unchanged.
#[must_use]
pub fn decode_gzip(body: &Bytes, limits: &DecodeLimits) -> DecodedBody {
    if body.starts_with(&[GZIP_FIRST_BYTE, 0x8b]) {
        return unpack(&[Coding::Gzip], body, limits);
    }
    DecodedBody {
        bytes: body.clone(),
        end: DecodeEnd::Whole,
    }
}

fn unpack(codings: &[Coding], body: &Bytes, limits: &DecodeLimits) -> DecodedBody {
    if codings.len() > MAX_CODINGS {
        let message = format!("{} content codings, more than {MAX_CODINGS}", codings.len());
        return DecodedBody {
            bytes: Bytes::new(),
            end: DecodeEnd::Broken { what: message },
        };
    }
    let (max, limit) = max_bytes(body.len(), limits);
    if let [Coding::Gzip] = codings
        && let Some(content) = whole_gzip::decode(body, max)
    {
        return DecodedBody {
            bytes: content.into(),
            end: DecodeEnd::Whole,
        };
    }
    let ran_out = Rc::new(Cell::new(false));
    let mut reader: Box<dyn BufRead + '_> = Box::new(EncodedBodySource {
        rest: body,
        ran_out: Rc::clone(&ran_out),
    });
    let mut taken_off = 0;
    let mut unknown = None;
    for coding in codings.iter().rev() {
        if let Coding::Unknown(name) = coding {
            unknown = Some(name.clone());
            break;
        }
        reader = match open(coding, reader) {
            Ok(reader) => reader,
            Err(error) => return ended(Vec::new(), Err(error), &ran_out),
        };
        taken_off += 1;
    }
    let mut decoded = if taken_off == 0 {
        DecodedBody {
            bytes: body.clone(),
            end: DecodeEnd::Whole,
        }
    } else {
        drain(reader, body.len(), (max, limit), &ran_out)
    };
    if let (Some(name), DecodeEnd::Whole) = (unknown, &decoded.end) {
        decoded.end = DecodeEnd::UnknownCoding { name };
    }
    decoded
}

/// Returns the maximum size of a decoded body, in bytes, and the limit that it follows from.
fn max_bytes(encoded: usize, limits: &DecodeLimits) -> (usize, ReachedDecodeLimit) {
    let by_ratio = encoded.saturating_mul(limits.ratio).max(limits.ratio_from);
    if by_ratio < limits.bytes {
        (by_ratio, ReachedDecodeLimit::Ratio)
    } else {
        (limits.bytes, ReachedDecodeLimit::Bytes)
    }
}

/// Reads the decoder's output to its end or to a limit.
fn drain(
    reader: Box<dyn BufRead + '_>,
    encoded: usize,
    (max, limit): (usize, ReachedDecodeLimit),
    ran_out: &Cell<bool>,
) -> DecodedBody {
    let guess = encoded.saturating_mul(4).min(MAX_RESERVED);
    let mut bytes = Vec::with_capacity(guess.min(max));
    let one_more = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    let result = reader.take(one_more).read_to_end(&mut bytes);
    if bytes.len() > max {
        bytes.truncate(max);
        return DecodedBody {
            bytes: bytes.into(),
            end: DecodeEnd::Truncated { at: max, limit },
        };
    }
    ended(bytes, result, ran_out)
}

fn ended(bytes: Vec<u8>, result: io::Result<usize>, ran_out: &Cell<bool>) -> DecodedBody {
    let end = match result {
        Ok(_) => DecodeEnd::Whole,
        // The brotli decoder reports the same error for truncated and for invalid input. So an
        // error after all input was read is taken as truncated input.
        Err(error) if ran_out.get() || error.kind() == ErrorKind::UnexpectedEof => DecodeEnd::Short,
        Err(error) => DecodeEnd::Broken {
            what: error.to_string().to_lowercase(),
        },
    };
    DecodedBody {
        bytes: bytes.into(),
        end,
    }
}

/// Returns the codings in the order they were applied. Like browsers, skips words that are not
/// codings but that servers send, such as charsets and mail transfer encodings.
fn codings(values: impl IntoIterator<Item: AsRef<[u8]>>) -> Vec<Coding> {
    let mut codings = Vec::new();
    for value in values {
        let value = String::from_utf8_lossy(value.as_ref()).to_ascii_lowercase();
        for name in value.split(',') {
            codings.push(match name.trim() {
                "" | "identity" | "none" | "utf-8" | "utf8" | "7bit" | "8bit" | "binary" => {
                    continue;
                }
                "gzip" | "x-gzip" => Coding::Gzip,
                "deflate" | "x-deflate" => Coding::Deflate,
                "br" => Coding::Brotli,
                "zstd" if zstd_decoder::IS_BUILT_IN => Coding::Zstd,
                other => Coding::Unknown(other.to_owned()),
            });
        }
    }
    codings
}

fn open<'a>(
    coding: &Coding,
    mut inner: Box<dyn BufRead + 'a>,
) -> io::Result<Box<dyn BufRead + 'a>> {
    Ok(match coding {
        Coding::Gzip => Box::new(BufReader::new(Gzip {
            member: Some(flate2::bufread::GzDecoder::new(inner)),
        })),
        Coding::Deflate => {
            let mut first = [0; 2];
            let got = read_up_to(&mut inner, &mut first)?;
            let zlib = got == 2 && is_zlib(first);
            let whole = io::Cursor::new(first).take(got as u64).chain(inner);
            Box::new(BufReader::new(Inflate {
                inner: whole,
                state: Decompress::new(zlib),
                done: false,
            }))
        }
        Coding::Brotli => {
            // Reject windows larger than the coding `br` allows: the decoder would accept up to 1
            // GiB. A body with such a window begins with seven bits that RFC 7932 reserves.
            if inner.fill_buf()?.first().is_some_and(|b| b & 0x7f == 0x11) {
                return Err(io::Error::new(
                    ErrorKind::InvalidData,
                    "large brotli window",
                ));
            }
            Box::new(BufReader::new(brotli::Decompressor::new(inner, 4096)))
        }
        Coding::Zstd => zstd_decoder::open(inner)?,
        Coding::Unknown(name) => {
            return Err(io::Error::new(ErrorKind::Unsupported, name.as_str()));
        }
    })
}

/// Returns whether two bytes are a zlib header (RFC 1950 section 2.2): the method is 8, and the
/// bytes as a number are a multiple of 31.
fn is_zlib([cmf, flg]: [u8; 2]) -> bool {
    cmf & 0x0f == 8 && (u16::from(cmf) << 8 | u16::from(flg)) % 31 == 0
}

fn read_up_to(reader: &mut dyn BufRead, into: &mut [u8; 2]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match reader.read(&mut into[filled..])? {
            0 => break,
            n => filled += n,
        }
    }
    Ok(filled)
}

/// The encoded body. Records whether a decoder tried to read beyond the end of the body, to
/// distinguish truncated from invalid input.
struct EncodedBodySource<'a> {
    rest: &'a [u8],
    ran_out: Rc<Cell<bool>>,
}

impl Read for EncodedBodySource<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() && !into.is_empty() {
            self.ran_out.set(true);
        }
        self.rest.read(into)
    }
}

impl BufRead for EncodedBodySource<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.rest.is_empty() {
            self.ran_out.set(true);
        }
        Ok(self.rest)
    }

    fn consume(&mut self, bytes: usize) {
        self.rest.consume(bytes);
    }
}

/// Decodes consecutive gzip members (RFC 1952 section 2.2). Skips padding after the last member,
/// which some servers add.
struct Gzip<R> {
    member: Option<flate2::bufread::GzDecoder<R>>,
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(member) = &mut self.member else {
                return Ok(0);
            };
            let got = member.read(into)?;
            if got > 0 || into.is_empty() {
                return Ok(got);
            }
            let ended = self
                .member
                .take()
                .map(flate2::bufread::GzDecoder::into_inner);
            let Some(mut rest) = ended else { return Ok(0) };
            if rest.fill_buf()?.first() == Some(&GZIP_FIRST_BYTE) {
                self.member = Some(flate2::bufread::GzDecoder::new(rest));
            }
        }
    }
}

/// Decodes a deflate stream, and reports truncated input as such.
struct Inflate<R> {
    inner: R,
    state: Decompress,
    done: bool,
}

impl<R: BufRead> Read for Inflate<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while !self.done && !into.is_empty() {
            let input = self.inner.fill_buf()?;
            let at_end = input.is_empty();
            let (read, written) = (self.state.total_in(), self.state.total_out());
            let status = self
                .state
                .decompress(input, into, FlushDecompress::None)
                .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
            let read = usize::try_from(self.state.total_in() - read).unwrap_or(0);
            let written = usize::try_from(self.state.total_out() - written).unwrap_or(0);
            self.inner.consume(read);
            self.done = status == Status::StreamEnd;
            if written > 0 {
                return Ok(written);
            }
            if at_end && !self.done {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            if read == 0 && !self.done {
                return Err(io::Error::new(
                    ErrorKind::InvalidData,
                    "deflate stream makes no progress",
                ));
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests;
