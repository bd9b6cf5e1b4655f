//! Writes the word files. Each contains words with a common beginning, and the pages that contain
//! the words.
//!
//! A file is a sequence of numbers. A number is stored in 7-bit groups, lowest first. For each
//! class of words with the same stem, the file contains:
//!
//! - the number of pages that have the most frequent of the words,
//! - the number of UTF-8 bytes that the stem shares with the first word, the number of its other
//!   bytes, and these bytes,
//! - the number of compounds that end in the stem or a word of the class, and for each compound the
//!   length in bytes and the UTF-8 bytes of one of its words,
//! - the number of words.
//!
//! For each word of the class, the following is added:
//!
//! - the number of UTF-8 bytes that the word shares with the previous word in the file, the number
//!   of its other bytes, and these bytes,
//! - the number of pages that have the word,
//! - for each page, `16 * (its number minus that of the previous page) + 8 * (only the text outside
//!   the main text has the word) + 4 * (the word is in a heading or the description) + 2 * (it has
//!   pieces) + (the word is in the title)`,
//! - for each page, a byte with the weight,
//! - for each page, a byte with the number of occurrences in title and text (see
//!   `word_weights.rs`),
//! - for each page that has pieces, a number with a bit for each piece: 1 if the piece has the
//!   word,
//! - for each page with the word in a heading or the description, a number with a bit for each
//!   heading: 1 if the heading has the word. Several headings may share a bit.
//!
//! If a class has words in the ranges of several files, each of these files contains the whole
//! class.
//!
//! Two kinds of entries are not words of pages: U+0002 with a host or folder, for `site:`, and
//! U+0003 with the last letters of words. An entry of the second kind has no pages. Its class lists
//! the words with these last letters as its compounds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::iter;
use std::path::Path;

use xxhash_rust::xxh3::Xxh3Default;

use super::gzip_file::{self, varint};
use super::inverted_index_builder::{InvertedIndex, SameStemWords, WordFormPostings, by_utf16};
use super::postings::{Posting, PostingsFile};
use super::word_weights::frequency;
use crate::export::ExportError;

/// Approximate uncompressed size of a file in bytes.
const SHARD_BYTES: usize = 16 << 10;
/// Maximum number of pages that are listed for a word. Those on which the word has the greatest
/// weight are kept.
const MAX_POSTINGS: usize = 20_000;

/// The word files that were written, with the range of words in each.
#[derive(Debug, Default)]
pub(super) struct WrittenWordFiles {
    /// For each file, the lower bound of its words in UTF-16 order.
    pub(super) begins: Vec<String>,
    pub(super) files: u64,
    pub(super) bytes: u64,
}

/// Writes the word files into a folder. They are named `0`, `1` and so on.
pub(super) fn write(
    words: &InvertedIndex,
    folder: &Path,
    hash: &mut Xxh3Default,
) -> Result<WrittenWordFiles, ExportError> {
    fs::create_dir_all(folder).map_err(ExportError::at(folder))?;
    let begins = begins(words);
    let mut classes: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); begins.len()];
    for (n, class) in words.classes.iter().enumerate() {
        for form in &class.forms {
            let shard = begins.partition_point(|begin| by_utf16(begin, &form.text).is_le());
            classes[shard.saturating_sub(1)].insert(n);
        }
    }
    let mut written = WrittenWordFiles::default();
    for (n, classes) in classes.iter().enumerate() {
        let mut out = Vec::with_capacity(SHARD_BYTES * 2);
        let mut before = "";
        for class in classes {
            let class = &words.classes[*class];
            let encoded = encode(&mut out, class, &words.postings, before);
            before = encoded.map_err(ExportError::at(folder))?;
        }
        let file = gzip_file::write(&folder.join(n.to_string()), &out)?;
        hash.update(&file.hash.to_le_bytes());
        written.bytes += file.bytes;
        written.files += 1;
    }
    written.begins = begins;
    Ok(written)
}

/// Returns the lower bound of the words in each file. Files are split where words differ early, so
/// that words with a common beginning or stem are in the same file.
fn begins(words: &InvertedIndex) -> Vec<String> {
    let forms = words.classes.iter().flat_map(forms_with_sizes);
    let mut forms: Vec<(&WordFormPostings, usize)> = forms.collect();
    forms.sort_unstable_by(|(a, _), (b, _)| by_utf16(&a.text, &b.text));
    let mut begins = vec![String::new()];
    let mut bytes = 0;
    // The best split in the second half of the file so far. The numbers are the count of leading
    // characters that the words before and after the split share, the index in `forms` of the word
    // after it, and the size of the file before it.
    let mut best: Option<(usize, usize, usize)> = None;
    let mut n = 1;
    bytes += forms.first().map_or(0, |(_, size)| *size);
    while n < forms.len() {
        if bytes > SHARD_BYTES / 2 {
            let shared = shared(&forms[n - 1].0.text, &forms[n].0.text);
            if best.is_none_or(|(fewest, ..)| shared <= fewest) {
                best = Some((shared, n, bytes));
            }
        }
        if bytes > SHARD_BYTES
            && let Some((shared, at, before)) = best.take()
        {
            begins.push(forms[at].0.text.chars().take(shared + 1).collect());
            bytes -= before;
        }
        bytes += forms[n].1;
        n += 1;
    }
    begins
}

/// Returns the words of a class, each with its approximate size in bytes. The first one includes
/// the compounds of the class.
fn forms_with_sizes(class: &SameStemWords) -> impl Iterator<Item = (&WordFormPostings, usize)> {
    let compounds = class.compounds.iter().map(|word| 1 + word.len()).sum();
    let compounds = iter::once(compounds).chain(iter::repeat(0));
    class.forms.iter().zip(compounds).map(|(form, compounds)| {
        let (postings, in_pieces) = (form.postings.pages, form.postings.in_pieces);
        let pages = 3 * postings as usize + 2 * in_pieces as usize;
        (form, 6 + form.text.len() / 2 + pages + compounds)
    })
}

/// Returns the number of leading characters that are the same in both words.
fn shared(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()
}

fn encode<'w>(
    out: &mut Vec<u8>,
    class: &'w SameStemWords,
    stored: &PostingsFile,
    mut before: &'w str,
) -> io::Result<&'w str> {
    let each = class.forms.iter().map(|form| stored.read(form.postings));
    let each: Vec<Vec<Posting>> = each.collect::<io::Result<_>>()?;
    varint(out, pages(class, &each));
    front_coded(out, class.first(), &class.stem);
    varint(out, number(class.compounds.len()));
    for compound in &class.compounds {
        varint(out, number(compound.len()));
        out.extend_from_slice(compound.as_bytes());
    }
    varint(out, number(class.forms.len()));
    for (form, found) in class.forms.iter().zip(each) {
        front_coded(out, before, &form.text);
        postings(out, found);
        before = &form.text;
    }
    Ok(before)
}

/// Writes a word without the bytes that it shares with another.
fn front_coded(out: &mut Vec<u8>, other: &str, word: &str) {
    let same = other.bytes().zip(word.bytes());
    let same = same.take_while(|(a, b)| a == b).count();
    varint(out, number(same));
    varint(out, number(word.len() - same));
    out.extend_from_slice(&word.as_bytes()[same..]);
}

/// Returns the number of pages that have the most frequent word of a class. As in the index, the
/// words that differ from their stem count as one word. `each` has the pages of each word.
fn pages(class: &SameStemWords, each: &[Vec<Posting>]) -> u32 {
    let mut with_stem: BTreeMap<u32, u16> = BTreeMap::new();
    let mut most = 0;
    for (form, postings) in class.forms.iter().zip(each) {
        let fields = postings.iter().map(|posting| posting.fields);
        most = most.max(frequency(fields));
        if form.text != class.stem {
            for posting in postings {
                *with_stem.entry(posting.page).or_default() |= posting.fields;
            }
        }
    }
    most.max(frequency(with_stem.into_values()))
}

fn postings(out: &mut Vec<u8>, mut postings: Vec<Posting>) {
    if postings.len() > MAX_POSTINGS {
        postings.sort_by_key(|posting| std::cmp::Reverse(posting.weight));
        postings.truncate(MAX_POSTINGS);
        postings.sort_unstable_by_key(|posting| posting.page);
    }
    varint(out, number(postings.len()));
    let mut before = 0;
    for posting in &postings {
        let flags = 8 * u32::from(posting.only_beside)
            + 4 * u32::from(posting.headings != 0)
            + 2 * u32::from(posting.pieces.is_some())
            + u32::from(posting.in_title);
        varint(out, 16 * (posting.page - before) + flags);
        before = posting.page;
    }
    out.extend(postings.iter().map(|posting| posting.weight));
    out.extend(postings.iter().map(|posting| posting.text));
    for pieces in postings.iter().filter_map(|posting| posting.pieces) {
        varint(out, pieces);
    }
    let headings = postings.iter().map(|posting| posting.headings);
    for headings in headings.filter(|headings| *headings != 0) {
        varint(out, headings.into());
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
