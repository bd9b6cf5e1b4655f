//! The patterns of the MIME Sniffing Standard, sections 6 and 7.1.

use crate::collapsed_text_builder::is_space;

/// The kind of document that a pattern identifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SniffedKind {
    Pdf,
    /// Text with a byte order mark, or PostScript.
    Text,
    Image,
    /// Sound or video.
    Stream,
    Font,
    Archive,
}

/// A signature: the bytes at the start of all documents of one media type. If the mask of a byte is
/// 0, any byte matches.
struct MimePattern {
    bytes: &'static [u8],
    mask: &'static [u8],
    media: SniffedKind,
    media_type: &'static str,
}

const fn exact(bytes: &'static [u8], media: SniffedKind, media_type: &'static str) -> MimePattern {
    MimePattern {
        bytes,
        mask: &[],
        media,
        media_type,
    }
}

/// The mask of a RIFF pattern: the four bytes after the first four are a length and may have any
/// value.
const RIFF: &[u8] = b"\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff";
const RIFF_WEBP: &[u8] = b"\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff\xff\xff";

const PATTERNS: &[MimePattern] = &[
    exact(b"%PDF-", SniffedKind::Pdf, "application/pdf"),
    exact(b"%!PS-Adobe-", SniffedKind::Text, "application/postscript"),
    exact(b"\xfe\xff", SniffedKind::Text, "text/plain"),
    exact(b"\xff\xfe", SniffedKind::Text, "text/plain"),
    exact(b"\xef\xbb\xbf", SniffedKind::Text, "text/plain"),
    exact(b"\0\0\x01\0", SniffedKind::Image, "image/x-icon"),
    exact(b"\0\0\x02\0", SniffedKind::Image, "image/x-icon"),
    exact(b"BM", SniffedKind::Image, "image/bmp"),
    exact(b"GIF87a", SniffedKind::Image, "image/gif"),
    exact(b"GIF89a", SniffedKind::Image, "image/gif"),
    MimePattern {
        bytes: b"RIFF\0\0\0\0WEBPVP",
        mask: RIFF_WEBP,
        media: SniffedKind::Image,
        media_type: "image/webp",
    },
    exact(b"\x89PNG\r\n\x1a\n", SniffedKind::Image, "image/png"),
    exact(b"\xff\xd8\xff", SniffedKind::Image, "image/jpeg"),
    // Beyond the standard: TIFF, in both byte orders.
    exact(b"II*\0", SniffedKind::Image, "image/tiff"),
    exact(b"MM\0*", SniffedKind::Image, "image/tiff"),
    MimePattern {
        bytes: b"FORM\0\0\0\0AIFF",
        mask: RIFF,
        media: SniffedKind::Stream,
        media_type: "audio/aiff",
    },
    exact(b"ID3", SniffedKind::Stream, "audio/mpeg"),
    exact(b"OggS\0", SniffedKind::Stream, "application/ogg"),
    exact(b"MThd\0\0\0\x06", SniffedKind::Stream, "audio/midi"),
    MimePattern {
        bytes: b"RIFF\0\0\0\0AVI ",
        mask: RIFF,
        media: SniffedKind::Stream,
        media_type: "video/avi",
    },
    MimePattern {
        bytes: b"RIFF\0\0\0\0WAVE",
        mask: RIFF,
        media: SniffedKind::Stream,
        media_type: "audio/wave",
    },
    exact(b"\x1a\x45\xdf\xa3", SniffedKind::Stream, "video/webm"),
    // Beyond the standard: FLAC.
    exact(b"fLaC\0", SniffedKind::Stream, "audio/flac"),
    exact(b"\0\x01\0\0", SniffedKind::Font, "font/ttf"),
    exact(b"OTTO", SniffedKind::Font, "font/otf"),
    exact(b"ttcf", SniffedKind::Font, "font/collection"),
    exact(b"wOFF", SniffedKind::Font, "font/woff"),
    exact(b"wOF2", SniffedKind::Font, "font/woff2"),
    exact(b"\x1f\x8b\x08", SniffedKind::Archive, "application/x-gzip"),
    exact(b"PK\x03\x04", SniffedKind::Archive, "application/zip"),
    exact(
        b"Rar!\x1a\x07",
        SniffedKind::Archive,
        "application/x-rar-compressed",
    ),
    // Beyond the standard: bzip2, xz, 7z, zstd, Unix and Java executables.
    exact(b"BZh", SniffedKind::Archive, "application/x-bzip2"),
    exact(b"\xfd7zXZ\0", SniffedKind::Archive, "application/x-xz"),
    exact(
        b"7z\xbc\xaf\x27\x1c",
        SniffedKind::Archive,
        "application/x-7z-compressed",
    ),
    exact(
        b"\x28\xb5\x2f\xfd",
        SniffedKind::Archive,
        "application/zstd",
    ),
    exact(b"\x7fELF", SniffedKind::Archive, "application/x-executable"),
    exact(
        b"\xca\xfe\xba\xbe",
        SniffedKind::Archive,
        "application/java-vm",
    ),
];

/// Returns the kind of media whose signature `first` begins with. Some signatures consist of
/// letters only, so a text may begin with one. Callers must check [`is_binary`] as well.
pub(super) fn media(first: &[u8]) -> Option<SniffedKind> {
    typed_media(first).map(|(media, _)| media)
}

/// Returns the kind of media whose signature `first` begins with, and its media type.
pub(super) fn typed_media(first: &[u8]) -> Option<(SniffedKind, &'static str)> {
    let fits = |pattern: &&MimePattern| {
        let head = first.get(..pattern.bytes.len());
        head.is_some_and(|head| {
            let pairs = head.iter().zip(pattern.bytes).enumerate();
            pairs.into_iter().all(|(at, (byte, wanted))| {
                byte & pattern.mask.get(at).copied().unwrap_or(0xff) == *wanted
            })
        })
    };
    let pattern = PATTERNS.iter().find(fits);
    let media = pattern.map(|pattern| (pattern.media, pattern.media_type));
    media.or_else(|| Some((SniffedKind::Stream, mp4(first)?)))
}

/// Returns the media type of an MP4 file by its major and compatible brands (section 6.2.1,
/// "matches the signature for MP4"). Also recognises images in the same container (AVIF, HEIC).
fn mp4(first: &[u8]) -> Option<&'static str> {
    let Some(&[a, b, c, d, b'f', b't', b'y', b'p', ref brands @ ..]) = first.get(..) else {
        return None;
    };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    let is_box = length.is_multiple_of(4) && length >= 12 && length <= first.len();
    let brands = brands.get(..length.saturating_sub(8)).unwrap_or_default();
    let of_brand = |brand: &[u8]| match brand {
        b"avif" => Some("image/avif"),
        b"heic" | b"mif1" => Some("image/heic"),
        b"qt  " => Some("video/quicktime"),
        [b'm', b'p', b'4', _] | b"isom" => Some("video/mp4"),
        _ => None,
    };
    // Skip the version, which is in the four bytes after the major brand.
    let mut brands = brands.chunks_exact(4).enumerate();
    brands
        .find_map(|(place, brand)| of_brand(brand).filter(|_| place != 1))
        .filter(|_| is_box)
}

/// Returns whether `first` contains "binary data bytes" (section 3). The bytes of UTF-16 text don't
/// count.
pub(super) fn is_binary(first: &[u8]) -> bool {
    let is_wide = first.starts_with(b"\xfe\xff")
        || first.starts_with(b"\xff\xfe")
        || crate::charset_guess::utf_16_without_mark(first).is_some();
    let is_binary_byte = |byte: &u8| matches!(byte, 0..=0x08 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
    !is_wide && first.iter().any(is_binary_byte)
}

/// Returns whether `first` matches a row for HTML in section 7.1 of the MIME Sniffing Standard.
/// Beyond the standard, any white space ends a tag name, and UTF-16 is decoded.
pub(super) fn begins_as_html(first: &[u8]) -> bool {
    const BEGINNINGS: [&[u8]; 16] = [
        b"<!DOCTYPE HTML",
        b"<HTML",
        b"<HEAD",
        b"<SCRIPT",
        b"<IFRAME",
        b"<H1",
        b"<DIV",
        b"<FONT",
        b"<TABLE",
        b"<A",
        b"<STYLE",
        b"<TITLE",
        b"<B",
        b"<BODY",
        b"<BR",
        b"<P",
    ];
    let text = super::root_element::text_of(first);
    let first = text.trim_start().as_bytes();
    let begins = |beginning: &&[u8]| {
        let head = first.get(..beginning.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(beginning))
            && first
                .get(beginning.len())
                .is_some_and(|&byte| byte == b'>' || is_space(byte))
    };
    first.starts_with(b"<!--") && !is_xml_after_comment(&text) || BEGINNINGS.iter().any(begins)
}

/// Returns whether text that begins with a comment is a feed or a sitemap, and so not a page.
fn is_xml_after_comment(text: &str) -> bool {
    super::root_element::root_of(text.as_bytes()).is_some()
}
