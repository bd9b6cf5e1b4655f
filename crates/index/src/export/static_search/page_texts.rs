//! Writes the texts of pages in pieces. A search loads one piece for each result, so the pieces are
//! small.
//!
//! A piece is a JSON object: `u` is the page's URL, `t` its title, `d` its description, `l` its
//! language, `m` its modification time (seconds since 1970), `x` the text of the piece, and `h` its
//! headings. A heading is `[offset, level, text, id]`. The offset is in `x`, in UTF-16 units; -1
//! means that the piece starts below this heading (such headings are listed outermost first). The
//! first heading of a page is left out, because the text below it is linked as the page itself.
//! Pages and pieces are numbered from 0: piece 3 of page 12 is the file `texts/12-3`.

use std::borrow::Cow;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crawl_weburl::without_bidi_controls;
use serde::Serialize;
use xxhash_rust::xxh3::Xxh3Default;

use super::gzip_file::{self, WrittenGzipFile};
use crate::export::ExportError;
use crawl_index_entry::IndexedPage;

/// Approximate size of a piece, in bytes of text. Pages are split so that a search loads only the
/// pieces that match.
const PIECE_BYTES: usize = 6 << 10;
/// Maximum number of pieces of a page, because a word's pieces are bits of a 32-bit number. A
/// longer page is split into longer pieces.
const MAX_PIECES: usize = 30;
/// Maximum number of headings in a piece.
const MAX_HEADINGS: usize = 200;

/// Writes the texts of pages in pieces, first under temporary names: the final page numbers are
/// known only after all pages.
#[derive(Debug)]
pub(super) struct PageTextsWriter {
    folder: PathBuf,
    pages: Vec<Vec<WrittenGzipFile>>,
}

#[derive(Serialize)]
struct PageTextPiece<'p> {
    u: &'p str,
    t: Cow<'p, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    d: Cow<'p, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    l: Option<&'p str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    m: Option<i64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    h: Vec<PieceHeading<'p>>,
    x: Cow<'p, str>,
}

type PieceHeading<'p> = (i64, u8, Cow<'p, str>, Option<&'p str>);

impl PageTextsWriter {
    pub(super) fn create(folder: &Path) -> Result<PageTextsWriter, ExportError> {
        fs::create_dir_all(folder).map_err(ExportError::at(folder))?;
        Ok(PageTextsWriter {
            folder: folder.to_path_buf(),
            pages: Vec::new(),
        })
    }

    /// Writes the pieces of a page, and returns the range of each piece in the page's text.
    pub(super) fn page(&mut self, page: &IndexedPage) -> Result<Vec<Range<usize>>, ExportError> {
        let shown = shown(page);
        let pieces = pieces(shown);
        let mut written = Vec::with_capacity(pieces.len());
        for (n, range) in pieces.iter().enumerate() {
            let piece = PageTextPiece {
                u: &page.url,
                t: without_bidi_controls(page.name()),
                d: match page.max_snippet {
                    None if n == 0 => without_bidi_controls(&page.description),
                    _ => Cow::Borrowed(""),
                },
                l: page.language.as_deref(),
                m: page.modified,
                h: headings(page, shown, range),
                x: without_bidi_controls(&shown[range.clone()]),
            };
            let json = serde_json::to_vec(&piece).unwrap_or_default();
            let path = self.folder.join(format!("new-{}-{n}", self.pages.len()));
            written.push(gzip_file::write(&path, &json)?);
        }
        self.pages.push(written);
        Ok(pieces)
    }

    /// Renames the files of all pieces to their final names. `ranks` contains the final number of
    /// each page, in the order in which the pages were added. Adds the hashes of the files to
    /// `hash`. Returns their total size in bytes.
    pub(super) fn finish(&self, ranks: &[u32], hash: &mut Xxh3Default) -> Result<u64, ExportError> {
        let mut bytes = 0;
        let mut order: Vec<(u32, usize)> = ranks.iter().copied().zip(0..).collect();
        order.sort_unstable();
        for (rank, arrival) in order {
            for (n, written) in self.pages.get(arrival).into_iter().flatten().enumerate() {
                let from = self.folder.join(format!("new-{arrival}-{n}"));
                let to = self.folder.join(format!("{rank}-{n}"));
                fs::rename(&from, &to).map_err(ExportError::at(&to))?;
                hash.update(&written.hash.to_le_bytes());
                bytes += written.bytes;
            }
        }
        Ok(bytes)
    }

    pub(super) fn files(&self) -> u64 {
        self.pages.iter().map(|pieces| pieces.len() as u64).sum()
    }
}

/// Returns the part of a page's text that the page allows to show.
fn shown(page: &IndexedPage) -> &str {
    let Some(max_chars) = page.max_snippet else {
        return &page.text;
    };
    let end = page.text.char_indices().nth(max_chars as usize);
    &page.text[..end.map_or(page.text.len(), |(at, _)| at)]
}

/// Splits a text into at least one piece: between lines, or if a line is too long, between words.
fn pieces(text: &str) -> Vec<Range<usize>> {
    let max_bytes = PIECE_BYTES.max(text.len() / (MAX_PIECES - 1));
    let mut pieces = Vec::new();
    let mut start = 0;
    while text.len() - start > max_bytes && pieces.len() + 1 < MAX_PIECES {
        let fits = &text[start..text.floor_char_boundary(start + max_bytes)];
        // If the last line break is in the first half, the pieces would be too short. Split between
        // words instead.
        let line = fits.rfind('\n').filter(|at| *at >= max_bytes / 2);
        let cut = line.or_else(|| {
            fits.rfind(char::is_whitespace)
                .filter(|at| *at >= max_bytes / 2)
        });
        let end = start + cut.map_or(fits.len(), |at| at + 1);
        let end = text.ceil_char_boundary(end.max(start + 1));
        pieces.push(start..end);
        start = end;
    }
    pieces.push(start..text.len());
    pieces
}

/// Returns the headings under which a range of the shown text starts, outermost first, then the
/// headings in the range. The page's first heading is left out. Returns no headings if the page
/// restricts excerpts, because headings are parts of its text.
fn headings<'p>(page: &'p IndexedPage, shown: &str, range: &Range<usize>) -> Vec<PieceHeading<'p>> {
    if page.max_snippet.is_some() {
        return Vec::new();
    }
    let mut under: Vec<PieceHeading<'p>> = Vec::new();
    let mut headings = Vec::new();
    // The current position in UTF-8 bytes of the text, and in UTF-16 units of the piece.
    let (mut bytes, mut units) = (range.start, 0);
    for heading in page.headings.iter().skip(1) {
        let entry = |at| {
            (
                at,
                heading.level,
                without_bidi_controls(&heading.text),
                heading.id.as_deref(),
            )
        };
        if heading.at < range.start {
            under.retain(|above| above.1 < heading.level);
            under.push(entry(-1));
        } else if heading.at < range.end && headings.len() < MAX_HEADINGS {
            if let Some(between) = shown.get(bytes..heading.at) {
                units += without_bidi_controls(between).encode_utf16().count() as i64;
                bytes = heading.at;
            }
            headings.push(entry(units));
        }
    }
    under.append(&mut headings);
    under
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{MAX_PIECES, PIECE_BYTES, PageTextsWriter, Xxh3Default, headings, pieces};
    use crawl_index_entry::{Heading, IndexedPage};

    #[test]
    fn pieces_end_with_lines() {
        let text = "word word\n".repeat(3000);
        let pieces = pieces(&text);
        assert!(pieces.len() > 2);
        for piece in &pieces {
            assert!(piece.len() <= PIECE_BYTES);
            assert!(text[piece.clone()].ends_with('\n'));
        }
        assert_eq!(super::pieces("").len(), 1);
    }

    #[test]
    fn headings_have_their_place_in_utf16() {
        let heading = |at, text: &str| Heading {
            level: 2,
            text: text.to_owned(),
            id: None,
            at,
        };
        let page = IndexedPage {
            text: "🦀 A\nb\n🦀 C\n".to_owned(),
            headings: vec![heading(0, "A"), heading(7, "B"), heading(9, "C")],
            ..IndexedPage::default()
        };
        let places = |range| -> Vec<(i64, String)> {
            let headings_found = headings(&page, &page.text, &range);
            let headings_found = headings_found.into_iter();
            headings_found
                .map(|(at, _, text, _)| (at, text.into_owned()))
                .collect()
        };
        let named = |at, text: &str| (at, text.to_owned());
        assert_eq!(places(0..16), [named(5, "B"), named(7, "C")]);
        assert_eq!(places(9..16), [named(-1, "B"), named(0, "C")]);
    }

    #[test]
    fn bidi_controls_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut texts = PageTextsWriter::create(folder.path()).unwrap();
        let heading = Heading {
            level: 2,
            text: "\u{2067}B".to_owned(),
            id: None,
            at: 5,
        };
        let first = Heading {
            at: 0,
            ..heading.clone()
        };
        let page = IndexedPage {
            title: "a\u{202e}b".to_owned(),
            text: "A\u{202e}\nB\u{200f}\n".to_owned(),
            headings: vec![first, heading],
            ..IndexedPage::default()
        };
        texts.page(&page).unwrap();
        texts.finish(&[0], &mut Xxh3Default::new()).unwrap();
        let piece = std::fs::File::open(folder.path().join("0-0")).unwrap();
        let piece: serde_json::Value =
            serde_json::from_reader(flate2::read::GzDecoder::new(piece)).unwrap();
        assert_eq!(
            piece,
            serde_json::json!({"u": "", "t": "ab", "h": [[2, 2, "B", null]], "x": "A\nB\n"})
        );
    }

    proptest! {
        #[test]
        fn pieces_are_the_whole_text(lines in prop::collection::vec("[a-zäß🦀 ]{0,900}", 0..60)) {
            let text = lines.join("\n");
            let pieces = pieces(&text);
            prop_assert!(pieces.len() <= MAX_PIECES);
            let joined: String = pieces.iter().map(|piece| &text[piece.clone()]).collect();
            prop_assert_eq!(joined, text);
        }
    }
}
