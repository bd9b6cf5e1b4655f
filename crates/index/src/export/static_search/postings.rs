//! Collects the pages of each word. Pages are sorted on disk, so that memory use doesn't depend on
//! the number of pages.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read as _, Seek as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::word_weights::{FIELDS, FieldOccurrenceCounts};
use crate::summing_sorter::unnamed_file;

/// Maximum number of word occurrences in memory. If there are more, they are sorted and written to
/// a file.
pub(super) const MAX_IN_MEMORY: usize = 1 << 20;

/// Size of an occurrence on disk in bytes, including the number of its word.
const OCCURRENCE_BYTES: usize = 14 + 2 * FIELDS;
/// Size of a posting on disk in bytes.
const POSTING_BYTES: usize = 14;

/// The occurrences of a word on a page.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PageOccurrences {
    pub(super) page: u32,
    /// How often each field contains the word.
    pub(super) counts: FieldOccurrenceCounts,
    /// The headings that contain the word, as bits; several headings may share a bit.
    pub(super) headings: u16,
    /// The pieces of the page's text that contain the word, as bits.
    pub(super) pieces: u32,
}

/// A word on a page, as stored in the bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Posting {
    pub(super) page: u32,
    pub(super) weight: u8,
    /// How often title and text contain the word, encoded by
    /// [`text_byte`](super::word_weights::text_byte) as 0 to 63.
    pub(super) text: u8,
    /// The headings that contain the word, as bits; several headings may share a bit.
    pub(super) headings: u16,
    /// The fields that contain the word and count for its frequency, as bits: see
    /// [`counted_fields`](super::word_weights::counted_fields). Not written to the bundle.
    pub(super) fields: u16,
    pub(super) in_title: bool,
    /// True if only the text outside the main text contains the word.
    pub(super) only_beside: bool,
    /// The pieces of the page's text that contain the word, as bits. `None` if the text has only
    /// one piece.
    pub(super) pieces: Option<u32>,
}

/// Collects the occurrences of words, page by page. Words are identified by their numbers.
#[derive(Debug)]
pub(super) struct OccurrenceCollector {
    folder: PathBuf,
    max_in_memory: usize,
    in_memory: Vec<(u32, PageOccurrences)>,
    /// Sorted files, each ordered by word, then by page. Each file has later pages than the files
    /// before it.
    runs: Vec<File>,
}

impl OccurrenceCollector {
    /// Creates an empty collection. `folder` is the folder for its temporary files.
    pub(super) fn new(folder: &Path, max_in_memory: usize) -> OccurrenceCollector {
        OccurrenceCollector {
            folder: folder.to_path_buf(),
            max_in_memory,
            in_memory: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// Adds an occurrence of the word with this number.
    pub(super) fn add(&mut self, word: u32, occurs: PageOccurrences) {
        self.in_memory.push((word, occurs));
    }

    /// Writes the occurrences in memory to a sorted file if there are too many. Must be called
    /// after each page.
    pub(super) fn end_page(&mut self) -> io::Result<()> {
        match self.in_memory.len() >= self.max_in_memory {
            true => self.write_run(),
            false => Ok(()),
        }
    }

    /// Returns all occurrences, ordered by word number.
    pub(super) fn sorted(mut self) -> io::Result<SortedOccurrences> {
        self.write_run()?;
        let mut runs = Vec::with_capacity(self.runs.len());
        for mut file in self.runs {
            file.rewind()?;
            let mut from = BufReader::new(file);
            let next = read_occurrence(&mut from)?;
            runs.push(OccurrenceRun { from, next });
        }
        Ok(SortedOccurrences { runs })
    }

    fn write_run(&mut self) -> io::Result<()> {
        self.in_memory
            .sort_unstable_by_key(|(word, occurs)| (*word, occurs.page));
        let mut file = BufWriter::new(unnamed_file(&self.folder)?);
        for (word, occurs) in self.in_memory.drain(..) {
            file.write_all(&word.to_le_bytes())?;
            file.write_all(&occurs.page.to_le_bytes())?;
            file.write_all(&occurs.pieces.to_le_bytes())?;
            file.write_all(&occurs.headings.to_le_bytes())?;
            for count in occurs.counts {
                file.write_all(&count.to_le_bytes())?;
            }
        }
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        self.runs.push(file);
        Ok(())
    }
}

/// The occurrences of all words, to be read word by word.
#[derive(Debug)]
pub(super) struct SortedOccurrences {
    runs: Vec<OccurrenceRun>,
}

#[derive(Debug)]
struct OccurrenceRun {
    from: BufReader<File>,
    next: Option<(u32, PageOccurrences)>,
}

impl SortedOccurrences {
    /// Returns the occurrences of a word, ordered by page. Must be called with increasing word
    /// numbers.
    pub(super) fn of_word(&mut self, word: u32) -> io::Result<Vec<PageOccurrences>> {
        let mut all = Vec::new();
        for run in &mut self.runs {
            while let Some((_, occurs)) = run.next.filter(|(next, _)| *next == word) {
                all.push(occurs);
                run.next = read_occurrence(&mut run.from)?;
            }
        }
        Ok(all)
    }
}

fn read_occurrence(from: &mut BufReader<File>) -> io::Result<Option<(u32, PageOccurrences)>> {
    let mut bytes = [0; OCCURRENCE_BYTES];
    match from.read_exact(&mut bytes) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let occurs = PageOccurrences {
        page: number_at(&bytes, 4),
        pieces: number_at(&bytes, 8),
        headings: u16::from_le_bytes([bytes[12], bytes[13]]),
        counts: std::array::from_fn(|field| {
            let at = 14 + 2 * field;
            u16::from_le_bytes([bytes[at], bytes[at + 1]])
        }),
    };
    Ok(Some((number_at(&bytes, 0), occurs)))
}

/// The location of a word's postings in their file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PostingsLocation {
    at: u64,
    pub(super) pages: u32,
    /// The number of pages on which the word occurs and whose text has several pieces.
    pub(super) in_pieces: u32,
}

/// Writes the postings of words to an unlinked file.
#[derive(Debug)]
pub(super) struct PostingsWriter {
    file: BufWriter<File>,
    at: u64,
}

/// The postings of words, stored in an unlinked file.
#[derive(Debug)]
pub(super) struct PostingsFile {
    file: File,
}

impl PostingsWriter {
    pub(super) fn create(folder: &Path) -> io::Result<PostingsWriter> {
        let file = BufWriter::new(unnamed_file(folder)?);
        Ok(PostingsWriter { file, at: 0 })
    }

    /// Appends the postings of a word, and returns where they are stored.
    pub(super) fn write(&mut self, postings: &[Posting]) -> io::Result<PostingsLocation> {
        let mut stored = PostingsLocation {
            at: self.at,
            ..PostingsLocation::default()
        };
        for posting in postings {
            self.file.write_all(&posting.page.to_le_bytes())?;
            self.file
                .write_all(&posting.pieces.unwrap_or(0).to_le_bytes())?;
            self.file.write_all(&[posting.weight, posting.text])?;
            self.file.write_all(&posting.headings.to_le_bytes())?;
            let flags = 4 * u16::from(posting.only_beside)
                + 2 * u16::from(posting.pieces.is_some())
                + u16::from(posting.in_title);
            let fields_and_flags = posting.fields << 3 | flags;
            self.file.write_all(&fields_and_flags.to_le_bytes())?;
            stored.pages += 1;
            stored.in_pieces += u32::from(posting.pieces.is_some());
        }
        self.at += u64::from(stored.pages) * POSTING_BYTES as u64;
        Ok(stored)
    }

    pub(super) fn finish(self) -> io::Result<PostingsFile> {
        let file = self.file.into_inner();
        let file = file.map_err(io::IntoInnerError::into_error)?;
        Ok(PostingsFile { file })
    }
}

impl PostingsFile {
    /// Reads the postings of a word, ordered as they were written.
    pub(super) fn read(&self, stored: PostingsLocation) -> io::Result<Vec<Posting>> {
        let mut bytes = vec![0; stored.pages as usize * POSTING_BYTES];
        self.file.read_exact_at(&mut bytes, stored.at)?;
        let posting = |bytes: &[u8]| {
            let fields_and_flags = u16::from_le_bytes([bytes[12], bytes[13]]);
            Posting {
                page: number_at(bytes, 0),
                pieces: (fields_and_flags & 2 != 0).then(|| number_at(bytes, 4)),
                weight: bytes[8],
                text: bytes[9],
                in_title: fields_and_flags & 1 != 0,
                only_beside: fields_and_flags & 4 != 0,
                headings: u16::from_le_bytes([bytes[10], bytes[11]]),
                fields: fields_and_flags >> 3,
            }
        };
        Ok(bytes.chunks_exact(POSTING_BYTES).map(posting).collect())
    }
}

fn number_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::{FIELDS, OccurrenceCollector, PageOccurrences, Posting, PostingsWriter};

    #[test]
    fn words_have_the_same_pages_with_any_memory_limit() {
        for max_in_memory in [0, 7, usize::MAX] {
            let dir = tempfile::tempdir().unwrap();
            let mut all = OccurrenceCollector::new(dir.path(), max_in_memory);
            for page in 0..20_u32 {
                for word in (0..30).rev().filter(|word| (page + word).is_multiple_of(3)) {
                    let occurs = PageOccurrences {
                        page,
                        counts: [word as u16; FIELDS],
                        headings: page as u16,
                        pieces: 1 << (page % 5),
                    };
                    all.add(word, occurs);
                }
                all.end_page().unwrap();
            }
            assert_eq!(all.runs.is_empty(), max_in_memory == usize::MAX);
            let mut sorted = all.sorted().unwrap();
            for word in 0..31 {
                let occurrences = sorted.of_word(word).unwrap();
                let pages: Vec<u32> = occurrences.iter().map(|occurs| occurs.page).collect();
                let has_it = |page: &u32| word < 30 && (page + word).is_multiple_of(3);
                assert_eq!(pages, (0..20).filter(has_it).collect::<Vec<_>>());
                assert!(occurrences.iter().all(|occurs| {
                    occurs.counts == [word as u16; FIELDS]
                        && occurs.pieces == 1 << (occurs.page % 5)
                        && u32::from(occurs.headings) == occurs.page
                }));
            }
        }
    }

    #[test]
    fn postings_are_read_as_they_were_written() {
        let dir = tempfile::tempdir().unwrap();
        let posting = |page, pieces| Posting {
            page,
            weight: 200,
            text: 15,
            headings: 1 << 13,
            fields: 1 << 10 | 1,
            in_title: page % 2 == 0,
            only_beside: page % 3 == 0,
            pieces,
        };
        let (first, second) = (
            [posting(1, None), posting(2, Some(5))],
            [posting(u32::MAX, Some(0))],
        );
        let mut writer = PostingsWriter::create(dir.path()).unwrap();
        let stored = [&first[..], &[], &second[..]].map(|all| writer.write(all).unwrap());
        let read = writer.finish().unwrap();
        assert_eq!((stored[0].pages, stored[0].in_pieces), (2, 1));
        assert_eq!(read.read(stored[0]).unwrap(), first);
        assert_eq!(read.read(stored[1]).unwrap(), []);
        assert_eq!(read.read(stored[2]).unwrap(), second);
    }
}
