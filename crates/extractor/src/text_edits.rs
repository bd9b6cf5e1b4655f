//! Edits a document: applies edits of its decoded text to its bytes, in any charset.

use std::ops::Range;

use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// A replacement of a part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextEdit {
    /// The range to replace in the text.
    pub(crate) range: Range<usize>,
    /// The new text, ASCII only.
    pub(crate) with: String,
}

/// Returns `text` with the edits applied. `edits` must be in ascending order, without overlaps.
pub(crate) fn edited_text(text: &str, edits: &[TextEdit]) -> String {
    let mut edited = String::with_capacity(text.len());
    let mut at = 0;
    for edit in edits {
        edited.push_str(&text[at..edit.range.start]);
        edited.push_str(&edit.with);
        at = edit.range.end;
    }
    edited.push_str(&text[at..]);
    edited
}

/// Applies edits of the decoded text of `body` to `body` itself. All other bytes stay the same.
///
/// - `skip` is the length of the byte order mark of `body`. The text doesn't contain the mark.
/// - `has_line_feeds` is true if all line ends of the text were converted to line feeds.
/// - `edits` must be in ascending order, without overlaps.
///
/// An edit is dropped if it begins or ends next to bytes that are invalid in `encoding`, so that
/// its position in `body` is unclear.
pub(crate) fn edited_bytes(
    body: &[u8],
    encoding: &'static Encoding,
    skip: usize,
    has_line_feeds: bool,
    edits: &[TextEdit],
) -> Vec<u8> {
    let mut edited = Vec::with_capacity(body.len() + edits.len() * 16);
    let mut offsets = ByteOffsets::new(body, encoding, skip, has_line_feeds);
    let mut at = 0;
    for edit in edits {
        let start = offsets.find(edit.range.start);
        let end = offsets.find(edit.range.end);
        if let (Some(start), Some(end)) = (start, end) {
            edited.extend_from_slice(&body[at..start]);
            push_ascii(&edit.with, encoding, &mut edited);
            at = end;
        }
    }
    edited.extend_from_slice(&body[at..]);
    edited
}

/// Appends ASCII text in `encoding`. In all charsets but UTF-16, an ASCII character is a single
/// byte.
fn push_ascii(text: &str, encoding: &'static Encoding, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        if encoding == UTF_16LE {
            out.extend_from_slice(&[byte, 0]);
        } else if encoding == UTF_16BE {
            out.extend_from_slice(&[0, byte]);
        } else {
            out.push(byte);
        }
    }
}

/// Converts offsets in the text to offsets in the bytes. The offsets must be in ascending order.
struct ByteOffsets<'b> {
    body: &'b [u8],
    /// `None` if the bytes are valid UTF-8, so that each byte of the body is a byte of the text.
    decoder: Option<Decoder>,
    has_line_feeds: bool,
    /// Number of bytes of the body read so far.
    at: usize,
    /// Length of the text that the bytes read so far decode to.
    text: usize,
    /// If the last byte read is an ASCII character at the end of the text, the length of the text
    /// before it. Otherwise `None`.
    before_ascii: Option<usize>,
    is_after_return: bool,
}

impl<'b> ByteOffsets<'b> {
    fn new(
        body: &'b [u8],
        encoding: &'static Encoding,
        skip: usize,
        has_line_feeds: bool,
    ) -> ByteOffsets<'b> {
        let is_utf8 = encoding == UTF_8 && std::str::from_utf8(&body[skip..]).is_ok();
        ByteOffsets {
            body,
            decoder: (!is_utf8).then(|| encoding.new_decoder_without_bom_handling()),
            has_line_feeds,
            at: skip,
            text: 0,
            before_ascii: None,
            is_after_return: false,
        }
    }

    /// Returns the byte offset of the text offset `offset`. `None` if several bytes were decoded
    /// together, and `offset` is within their text.
    fn find(&mut self, offset: usize) -> Option<usize> {
        while self.text < offset && self.at < self.body.len() {
            self.read_byte();
        }
        if self.text <= offset {
            // A carriage return and the line feed after it are one character of the text.
            if self.has_line_feeds && self.is_after_return && self.body.get(self.at) == Some(&b'\n')
            {
                self.read_byte();
            }
            return Some(self.at);
        }
        // The last byte read may have ended an invalid sequence and also be an ASCII character
        // itself. If so, the text of the sequence (U+FFFD) comes before the character, and `offset`
        // is in between.
        (self.before_ascii == Some(offset)).then(|| self.at - 1)
    }

    fn read_byte(&mut self) {
        let byte = self.body[self.at];
        self.at += 1;
        let Some(decoder) = &mut self.decoder else {
            self.before_ascii = None;
            self.take(byte);
            return;
        };
        let mut buffer = [0; 32];
        let is_last = self.at == self.body.len();
        let (_, _, written, _) = decoder.decode_to_utf8(&[byte], &mut buffer, is_last);
        let mut before = self.text;
        for &written in &buffer[..written] {
            before = self.text;
            self.take(written);
        }
        let is_byte = written > 0 && buffer[written - 1] == byte && byte.is_ascii();
        self.before_ascii = is_byte.then_some(before);
    }

    /// Counts a byte of the decoded text.
    fn take(&mut self, byte: u8) {
        let is_dropped = self.has_line_feeds && self.is_after_return && byte == b'\n';
        self.text += usize::from(!is_dropped);
        self.is_after_return = byte == b'\r';
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::{
        BIG5, Encoding, GB18030, ISO_2022_JP, SHIFT_JIS, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252,
    };
    use proptest::prelude::*;

    use super::{TextEdit, edited_bytes, edited_text};

    /// Returns an edit of the text within each pair of brackets (`[..]`).
    fn edits(text: &str) -> Vec<TextEdit> {
        let starts = text.match_indices('[').map(|(start, _)| start);
        starts
            .filter_map(|start| {
                let end = start + text[start..].find(']')?;
                Some(TextEdit {
                    range: start + 1..end,
                    with: "x&y".to_owned(),
                })
            })
            .collect()
    }

    #[track_caller]
    fn check(body: &[u8], encoding: &'static Encoding, expected: &[u8]) {
        let (text, _) = encoding.decode_without_bom_handling(body);
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let edited = edited_bytes(body, encoding, 0, true, &edits(&text));
        assert_eq!(
            edited.escape_ascii().to_string(),
            expected.escape_ascii().to_string()
        );
    }

    #[test]
    fn bytes_around_an_edit_stay() {
        check(b"a\r\n[b\r\n]\r\n[c]", UTF_8, b"a\r\n[x&y]\r\n[x&y]");
        check(
            b"\r\r\n\xff[\xe9]\xe9",
            WINDOWS_1252,
            b"\r\r\n\xff[x&y]\xe9",
        );
        check(
            "\u{feff}é[é]é".as_bytes(),
            UTF_8,
            "\u{feff}é[x&y]é".as_bytes(),
        );
        check(b"[\0a]\0", UTF_8, b"[x&y]\0");
    }

    #[test]
    fn invalid_sequences_before_an_edit_stay() {
        check(b"\xe4[\xe4]\xe4\xb8[a]", UTF_8, b"\xe4[x&y]\xe4\xb8[x&y]");
        check(b"\x81\"[\xff]\x81", GB18030, b"\x81\"[x&y]\x81");
        check(b"\x80\x81\"[a]", SHIFT_JIS, b"\x80\x81\"[x&y]");
    }

    #[test]
    fn ascii_is_encoded_in_utf_16() {
        let le = |text: &str| {
            text.encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<_>>()
        };
        let be = |text: &str| {
            text.encode_utf16()
                .flat_map(u16::to_be_bytes)
                .collect::<Vec<_>>()
        };
        check(&le("茶\r\n[\u{1f375}]茶"), UTF_16LE, &le("茶\r\n[x&y]茶"));
        check(&be("[]茶"), UTF_16BE, &be("[x&y]茶"));
    }

    proptest! {
        #[test]
        fn edits_change_nothing_else(
            parts in prop::collection::vec("[a-z<\"=茶é表\r\n]{0,6}", 1..8),
            charset in 0_usize..6,
        ) {
            let charset = [UTF_8, SHIFT_JIS, BIG5, GB18030, ISO_2022_JP, WINDOWS_1252][charset];
            let text = format!("<{}>", parts.join("\"[é茶]\""));
            let (body, ..) = charset.encode(&text);
            let (decoded, _) = charset.decode_without_bom_handling(&body);
            let lines = decoded.replace("\r\n", "\n").replace('\r', "\n");
            let edits = edits(&lines);
            prop_assert_eq!(edits.len(), parts.len() - 1);
            let edited = edited_bytes(&body, charset, 0, true, &edits);
            let (edited, _) = charset.decode_without_bom_handling(&edited);
            // Each edit replaces the text between two brackets. So the decoded result must be the
            // same as if the text had been replaced before encoding.
            let expected: Vec<&str> = decoded.split('[').enumerate()
                .map(|(place, part)| if place == 0 { part } else { &part[part.find(']').unwrap()..] })
                .collect();
            prop_assert_eq!(edited, expected.join("[x&y"));
        }

        #[test]
        fn any_bytes_are_edited_without_panic(
            body in prop::collection::vec(prop::sample::select(b"[]a\r\n\x1b$B(\x81\xe4\xff\x00"
                .to_vec()), 0..40),
            charset in 0_usize..7,
        ) {
            let charsets = [UTF_8, SHIFT_JIS, BIG5, GB18030, ISO_2022_JP, UTF_16LE, UTF_16BE];
            let charset = charsets[charset];
            let (text, _) = charset.decode_without_bom_handling(&body);
            let text = text.replace("\r\n", "\n").replace('\r', "\n");
            let edits = edits(&text);
            let mut apart = edits.clone();
            apart.dedup_by(|next, last| next.range.start < last.range.end);
            let edited = edited_bytes(&body, charset, 0, true, &apart);
            prop_assert!(edited.len() <= body.len() + 6 * apart.len());
            prop_assert!(edited_text(&text, &apart).len() <= text.len() + 3 * apart.len());
        }
    }
}
