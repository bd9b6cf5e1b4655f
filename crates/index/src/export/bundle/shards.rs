//! Words and the pages that have them, in files of words that begin alike.
//!
//! A file is a sequence of numbers of 7 bits a byte, the lowest first. For each class of words
//! with one stem: how many pages have any of them; how many words stand for compounds that end in
//! it, and for each of these its UTF-8 bytes, and before them how many these are; how many words
//! there are; for each word:
//! how many UTF-8 bytes it shares with the word before it in the file, how many more it has
//! and these, and how many pages have it; then for each of these pages
//! `4 * (its number less that of the page before) + 2 * (it has pieces) + (the word is in the
//! title)`; then a byte for each page's weight; then for each page with pieces a number
//! whose bits say in which of them the word stands.
//!
//! A class is in each file that has to know one of its words, whole.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use xxhash_rust::xxh3::Xxh3Default;

use super::gather::{Class, WordForm, Words, by_utf16};
use super::gzip_file::{self, varint};
use super::postings::{Posting, Postings};
use crate::export::ExportError;

/// Bytes of a file before it is compressed, about.
const SHARD_BYTES: usize = 16 << 10;
/// Pages that are listed for a word, at most: those where it weighs most.
const MAX_POSTINGS: usize = 20_000;

/// The files that were written.
#[derive(Debug, Default)]
pub(super) struct Shards {
    /// With what the words of each file begin at the least.
    pub(super) begins: Vec<String>,
    pub(super) files: u64,
    pub(super) bytes: u64,
}

/// Writes the files `0`, `1` .. into a folder.
pub(super) fn write(
    words: &Words,
    folder: &Path,
    hash: &mut Xxh3Default,
) -> Result<Shards, ExportError> {
    fs::create_dir_all(folder).map_err(ExportError::at(folder))?;
    let begins = begins(words);
    let mut classes: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); begins.len()];
    for (n, class) in words.classes.iter().enumerate() {
        for form in &class.forms {
            let shard = begins.partition_point(|begin| by_utf16(begin, &form.text).is_le());
            classes[shard.saturating_sub(1)].insert(n);
        }
    }
    let mut written = Shards::default();
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

/// The words with which files begin: where words differ early, so that words that begin alike and
/// those of one stem stand together.
fn begins(words: &Words) -> Vec<String> {
    let forms = words.classes.iter().flat_map(|class| &class.forms);
    let mut forms: Vec<&WordForm> = forms.collect();
    forms.sort_unstable_by(|a, b| by_utf16(&a.text, &b.text));
    let mut begins = vec![String::new()];
    let mut bytes = 0;
    // The best place so far, by the characters that the words around it share.
    let mut best: Option<(usize, usize, usize)> = None;
    let mut n = 1;
    bytes += forms.first().map_or(0, |form| size(form));
    while n < forms.len() {
        if bytes > SHARD_BYTES / 2 {
            let shared = shared(&forms[n - 1].text, &forms[n].text);
            if best.is_none_or(|(fewest, ..)| shared <= fewest) {
                best = Some((shared, n, bytes));
            }
        }
        if bytes > SHARD_BYTES
            && let Some((shared, at, before)) = best.take()
        {
            begins.push(forms[at].text.chars().take(shared + 1).collect());
            bytes -= before;
        }
        bytes += size(forms[n]);
        n += 1;
    }
    begins
}

fn size(form: &WordForm) -> usize {
    let postings = form.postings.pages as usize + form.postings.in_pieces as usize;
    6 + form.text.len() / 2 + 2 * postings
}

/// The number of characters that two words have in common at the beginning.
fn shared(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()
}

fn encode<'w>(
    out: &mut Vec<u8>,
    class: &'w Class,
    stored: &Postings,
    mut before: &'w str,
) -> io::Result<&'w str> {
    let each = class.forms.iter().map(|form| stored.read(form.postings));
    let each: Vec<Vec<Posting>> = each.collect::<io::Result<_>>()?;
    let mut pages: Vec<u32> = each.iter().flatten().map(|posting| posting.page).collect();
    pages.sort_unstable();
    pages.dedup();
    varint(out, number(pages.len()));
    varint(out, number(class.compounds.len()));
    for compound in &class.compounds {
        varint(out, number(compound.len()));
        out.extend_from_slice(compound.as_bytes());
    }
    varint(out, number(class.forms.len()));
    for (form, found) in class.forms.iter().zip(each) {
        let same = before.bytes().zip(form.text.bytes());
        let same = same.take_while(|(a, b)| a == b).count();
        varint(out, number(same));
        varint(out, number(form.text.len() - same));
        out.extend_from_slice(&form.text.as_bytes()[same..]);
        postings(out, found);
        before = &form.text;
    }
    Ok(before)
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
        let flags = 2 * u32::from(posting.pieces.is_some()) + u32::from(posting.in_title);
        varint(out, 4 * (posting.page - before) + flags);
        before = posting.page;
    }
    out.extend(postings.iter().map(|posting| posting.weight));
    for pieces in postings.iter().filter_map(|posting| posting.pieces) {
        varint(out, pieces);
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
