//! The texts of pages, in pieces small enough to load one for each result.
//!
//! A piece is JSON: `u` is the page's URL, `t` its title, `d` its description, `l` its language,
//! `m` its modification time (seconds since 1970), `x` the text, and `h` its headings as `[place,
//! level, words, id]`. A place counts UTF-16 units of `x`; -1 marks the headings under which the
//! piece starts, outermost first. The page's first heading is omitted, because the text under it is
//! the page itself. Piece 3 of page 12 is `texts/12-3`.

use std::borrow::Cow;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crawl_weburl::without_bidi_controls;
use serde::Serialize;
use xxhash_rust::xxh3::Xxh3Default;

use super::gzip_file::{self, Written};
use crate::export::ExportError;
use crawl_index_entry::IndexedPage;

/// Approximate bytes of text in a piece.
const PIECE_BYTES: usize = 6 << 10;
/// Maximum pieces of a page, because each is a bit of a number. Longer pages have longer pieces.
const MAX_PIECES: usize = 30;
/// Maximum headings of a piece.
const MAX_HEADINGS: usize = 200;

/// Writes the pieces, under arrival numbers until all pages are known.
#[derive(Debug)]
pub(super) struct Texts {
    folder: PathBuf,
    pages: Vec<Vec<Written>>,
}

#[derive(Serialize)]
struct Piece<'p> {
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

impl Texts {
    pub(super) fn create(folder: &Path) -> Result<Texts, ExportError> {
        fs::create_dir_all(folder).map_err(ExportError::at(folder))?;
        Ok(Texts {
            folder: folder.to_path_buf(),
            pages: Vec::new(),
        })
    }

    /// Writes a page's pieces and returns their ranges in its text.
    pub(super) fn page(&mut self, page: &IndexedPage) -> Result<Vec<Range<usize>>, ExportError> {
        let shown = shown(page);
        let pieces = pieces(shown);
        let mut written = Vec::with_capacity(pieces.len());
        for (n, range) in pieces.iter().enumerate() {
            let piece = Piece {
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

    /// Renames the pieces to their final names. `ranks` has the number of each page in order of
    /// arrival. Returns the total size in bytes.
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

/// Returns the part of a page's text that may be shown.
fn shown(page: &IndexedPage) -> &str {
    let Some(max_chars) = page.max_snippet else {
        return &page.text;
    };
    let end = page.text.char_indices().nth(max_chars as usize);
    &page.text[..end.map_or(page.text.len(), |(at, _)| at)]
}

/// Cuts a text into one or more pieces at line breaks, or at word breaks in lines that are too
/// long.
fn pieces(text: &str) -> Vec<Range<usize>> {
    let max_bytes = PIECE_BYTES.max(text.len() / (MAX_PIECES - 1));
    let mut pieces = Vec::new();
    let mut start = 0;
    while text.len() - start > max_bytes && pieces.len() + 1 < MAX_PIECES {
        let fits = &text[start..text.floor_char_boundary(start + max_bytes)];
        // A line that ends in the first half would make too many pieces.
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

/// Returns the headings in a range of the shown text, preceded by those under which the range
/// starts, without the page's first heading.
fn headings<'p>(page: &'p IndexedPage, shown: &str, range: &Range<usize>) -> Vec<PieceHeading<'p>> {
    let mut under: Vec<PieceHeading<'p>> = Vec::new();
    let mut headings = Vec::new();
    // The UTF-16 position, advanced from heading to heading.
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

    use super::{MAX_PIECES, PIECE_BYTES, Texts, Xxh3Default, headings, pieces};
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
        let mut texts = Texts::create(folder.path()).unwrap();
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
