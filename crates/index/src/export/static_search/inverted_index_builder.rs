//! Collects the words of all pages.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::iter;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::postings::{
    MAX_IN_MEMORY, OccurrenceCollector, PageOccurrences, Posting, PostingsFile, PostingsLocation,
    PostingsWriter,
};
use super::stemmer_scripts::StemmerCounts;
use super::word_weights::{
    ANCHORS, BESIDE, BODY, DESCRIPTION, FIELDS, FieldLengths, HEADINGS, KEYWORDS, LEAD,
    MeanFieldLengths, PATH, TITLE, byte, counted_fields, is_only_beside, text_byte,
};
use crate::bm25f::{SHARED, is_shared};
use crate::compound_candidates::{MIN_COMPOUND_END, MIN_COMPOUND_START};
use crate::index_document::{path_words, power_of_two, sites};
use crate::lexicon::writes_compounds;
use crate::page_prior::{hundredths, worth};
use crate::query_plan::WEIGHTS;
use crate::words::{Stemmer, Word, words};
use crawl_index_entry::IndexedPage;

/// Number of words that count as the start of the main text, where words have a higher weight.
const LEAD_WORDS: usize = 60;
/// Number of bits for headings. If a page has more headings, several headings share a bit. The bit
/// after these is for the description.
const HEADING_BITS: usize = 13;
/// Maximum number of compounds that are stored for a word. If there are more, the compounds on the
/// most pages are kept.
const MAX_COMPOUNDS: usize = 12;
/// Maximum number of words that are listed for an end (the last letters of words). If there are
/// more, the words on the most pages are kept.
const MAX_WORDS_PER_END: usize = 1_000;
/// The prefix of host and folder names (for `site:`) in the word files. Such names are looked up
/// like words.
const SITE: char = '\u{2}';
/// The prefix of the ends of words in the word files. An end is looked up to find compounds of a
/// word that no page has.
const END: char = '\u{3}';

/// Collects the words of all pages. Pages are numbered in the order in which they are added.
#[derive(Debug)]
pub(super) struct InvertedIndexBuilder {
    /// The folder for temporary files, which are unlinked as soon as they are created.
    folder: PathBuf,
    numbers: HashMap<Box<str>, u32>,
    /// For each word: its stems, each with the number of pages on which the word has this stem.
    stems: Vec<Vec<(Box<str>, u32)>>,
    occurrences: OccurrenceCollector,
    /// For each word: whether a page in a language that writes compounds as one word has it.
    may_be_compounds: Vec<bool>,
    pages: Vec<CollectedPage>,
    has_compounds: bool,
    stemmers: StemmerCounts,
}

#[derive(Debug)]
struct CollectedPage {
    url: Box<str>,
    lengths: FieldLengths,
    /// The number of binary digits of the number of pages that link to the page.
    linked: u64,
    worth: u64,
    until: Option<i64>,
    has_pieces: bool,
}

/// All words of the pages, with the final weight of each word on each page.
#[derive(Debug)]
pub(super) struct InvertedIndex {
    /// The classes of words with the same stem, ordered by their first words.
    pub(super) classes: Vec<SameStemWords>,
    pub(super) postings: PostingsFile,
    pub(super) until: Vec<(u32, i64)>,
    pub(super) priors: Vec<PageRangeWithPrior>,
    /// True if any page is in a language that writes compounds as one word.
    pub(super) has_compounds: bool,
}

/// A range of consecutive pages with the same prior, which is not 1: the number of the first page,
/// the number of the last page, the prior in thousandths, and the prior for a query about changes
/// in thousandths.
pub(super) type PageRangeWithPrior = (u32, u32, u64, u64);

/// The words that share a stem.
#[derive(Debug)]
pub(super) struct SameStemWords {
    pub(super) stem: Box<str>,
    /// The words, in UTF-16 order like JavaScript strings.
    pub(super) forms: Vec<WordFormPostings>,
    /// Compounds that end in the stem or a word of this class, those on the most pages first. If
    /// several compounds share a stem, only the first compound is listed.
    pub(super) compounds: Vec<Box<str>>,
}

/// A word, and the location of its postings.
#[derive(Debug)]
pub(super) struct WordFormPostings {
    pub(super) text: Box<str>,
    /// True if the word consists of letters, and a page in a language that writes compounds as one
    /// word has it.
    may_be_compound: bool,
    /// The location of the word's postings, which are ordered by page number.
    pub(super) postings: PostingsLocation,
}

impl InvertedIndexBuilder {
    /// Creates an empty collection. `folder` is the folder for its temporary files.
    pub(super) fn new(folder: &Path) -> InvertedIndexBuilder {
        InvertedIndexBuilder {
            folder: folder.to_path_buf(),
            numbers: HashMap::new(),
            stems: Vec::new(),
            occurrences: OccurrenceCollector::new(folder, MAX_IN_MEMORY),
            may_be_compounds: Vec::new(),
            pages: Vec::new(),
            has_compounds: false,
            stemmers: StemmerCounts::default(),
        }
    }

    /// Returns the stemmers of the pages' languages.
    pub(super) fn stemmers(&self) -> &StemmerCounts {
        &self.stemmers
    }

    /// Adds a page. `pieces` are the ranges into which its text is split.
    pub(super) fn page(&mut self, page: &IndexedPage, pieces: &[Range<usize>]) -> io::Result<()> {
        let mut page_words = PageWordCollector {
            stemmer: Stemmer::of(page.language.as_deref()),
            words: HashMap::new(),
            lengths: FieldLengths::default(),
        };
        self.stemmers.add(&page_words.stemmer);
        let lengths = page_words.read(page, pieces);
        let number = u32::try_from(self.pages.len()).unwrap_or(u32::MAX);
        let has_compounds = page.language.as_deref().is_some_and(writes_compounds);
        for (text, (stem, mut occurs)) in page_words.words {
            occurs.page = number;
            let form = match self.numbers.get(&text) {
                Some(form) => *form,
                None => {
                    let form = u32::try_from(self.stems.len()).map_err(io::Error::other)?;
                    self.stems.push(Vec::new());
                    self.may_be_compounds.push(false);
                    self.numbers.insert(text.clone(), form);
                    form
                }
            };
            self.occurrences.add(form, occurs);
            self.may_be_compounds[form as usize] |= has_compounds;
            let stem = stem.unwrap_or(text);
            let stems = &mut self.stems[form as usize];
            match stems.iter_mut().find(|(known, _)| *known == stem) {
                Some((_, count)) => *count += 1,
                None => stems.push((stem, 1)),
            }
        }
        self.occurrences.end_page()?;
        self.has_compounds |= has_compounds;
        self.pages.push(CollectedPage {
            url: page.url.as_str().into(),
            lengths,
            linked: power_of_two(page.linked_from),
            worth: worth(page),
            until: page.until,
            has_pieces: pieces.len() > 1,
        });
        Ok(())
    }

    /// Returns the final number of each page, in the order in which the pages were added. Pages
    /// with the same prior have consecutive numbers, in the order of URLs, so that the bundle
    /// stores each prior only once.
    pub(super) fn ranks(&self) -> Vec<u32> {
        let mut order: Vec<usize> = (0..self.pages.len()).collect();
        let key = |page: &usize| {
            let CollectedPage {
                linked, worth, url, ..
            } = &self.pages[*page];
            (*linked, *worth, url)
        };
        order.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        let mut ranks = vec![0; order.len()];
        for (rank, arrival) in (0..).zip(order) {
            ranks[arrival] = rank;
        }
        ranks
    }

    /// Replaces each URL in `named` by its page's final number (from `ranks`). Drops entries whose
    /// page isn't in the bundle.
    pub(super) fn numbers(
        &self,
        ranks: &[u32],
        named: &HashMap<String, String>,
    ) -> BTreeMap<String, u32> {
        if named.is_empty() {
            return BTreeMap::new();
        }
        let pages = self.pages.iter().zip(ranks);
        let numbers: HashMap<&str, u32> = pages.map(|(page, rank)| (&*page.url, *rank)).collect();
        let number_of =
            |(name, url): (&String, &String)| Some((name.clone(), *numbers.get(url.as_str())?));
        named.iter().filter_map(number_of).collect()
    }

    /// Returns all words with their final weights. `ranks` are the final numbers of the pages.
    pub(super) fn finish(self, ranks: &[u32]) -> io::Result<InvertedIndex> {
        let means = MeanFieldLengths::of(self.pages.iter().map(|page| &page.lengths));
        let mut sorted = self.occurrences.sorted()?;
        let mut writer = PostingsWriter::create(&self.folder)?;
        let mut stored = Vec::with_capacity(self.stems.len());
        for (form, _) in (0..).zip(&self.stems) {
            let word_postings = postings(&sorted.of_word(form)?, &self.pages, ranks, &means);
            stored.push(writer.write(&word_postings)?);
        }
        let mut classes: HashMap<Box<str>, Vec<WordFormPostings>> = HashMap::new();
        for (text, form) in self.numbers {
            let stem = usual_stem(&self.stems[form as usize]);
            let postings = stored[form as usize];
            let forms = classes.entry(stem).or_default();
            forms.push(WordFormPostings {
                may_be_compound: self.may_be_compounds[form as usize]
                    && text.bytes().all(|byte| byte.is_ascii_alphabetic()),
                text,
                postings,
            });
        }
        let compounds = match self.has_compounds {
            true => compounds(&classes),
            false => HashMap::new(),
        };
        let ends = ends(&classes).into_iter().map(|(end, words)| {
            let form = WordFormPostings {
                text: format!("{END}{end}").into(),
                may_be_compound: false,
                postings: PostingsLocation::default(),
            };
            SameStemWords::of(end, vec![form], words)
        });
        let classes = classes.into_iter().map(|(stem, forms)| {
            let compounds = compounds.get(&stem).cloned();
            SameStemWords::of(stem, forms, compounds.unwrap_or_default())
        });
        let mut classes: Vec<SameStemWords> = classes.chain(ends).collect();
        classes.sort_unstable_by(|a, b| by_utf16(a.first(), b.first()));
        let until = self.pages.iter().zip(ranks);
        let mut until: Vec<(u32, i64)> = until
            .filter_map(|(page, rank)| Some((*rank, page.until?)))
            .collect();
        until.sort_unstable();
        Ok(InvertedIndex {
            classes,
            postings: writer.finish()?,
            until,
            priors: priors(&self.pages, ranks),
            has_compounds: self.has_compounds,
        })
    }
}

/// Returns the priors of pages whose prior is not 1, ordered by page number.
fn priors(pages: &[CollectedPage], ranks: &[u32]) -> Vec<PageRangeWithPrior> {
    let priors = pages.iter().zip(ranks).map(|(page, rank)| {
        let of_query = |is_about_changes| thousandths(page, is_about_changes);
        (*rank, *rank, of_query(false), of_query(true))
    });
    let mut priors: Vec<PageRangeWithPrior> = priors
        .filter(|(.., prior, of_changes)| (*prior, *of_changes) != (1000, 1000))
        .collect();
    priors.sort_unstable();
    priors.dedup_by(|next, run| {
        let continues = run.1 + 1 == next.0 && (run.2, run.3) == (next.2, next.3);
        if continues {
            run.1 = next.1;
        }
        continues
    });
    priors
}

/// Returns the factor by which the index multiplies the score of a page, in thousandths.
fn thousandths(page: &CollectedPage, is_about_changes: bool) -> u64 {
    let by_links = 1.0 + WEIGHTS.linked * page.linked as f32;
    (10.0 * by_links * hundredths(page.worth, is_about_changes) as f32).round() as u64
}

/// Converts the occurrences of a word to postings, with final weights and final page numbers.
fn postings(
    occurrences: &[PageOccurrences],
    pages: &[CollectedPage],
    ranks: &[u32],
    means: &MeanFieldLengths,
) -> Vec<Posting> {
    let mut factors = [1.0; FIELDS];
    // A word that most pages have in their title or first-level heading hardly counts there.
    for field in [TITLE, HEADINGS[0]] {
        let with_word = occurrences.iter().filter(|occurs| occurs.counts[field] > 0);
        if is_shared(with_word.count() as u64, pages.len() as u64) {
            factors[field] = SHARED;
        }
    }
    let posting = |occurs: &PageOccurrences| {
        let arrival = occurs.page as usize;
        let page = &pages[arrival];
        let weight = means.weight(&occurs.counts, &page.lengths, &factors);
        Posting {
            page: ranks[arrival],
            weight: byte(weight),
            text: text_byte(means.text(&occurs.counts, &page.lengths, &factors)),
            in_title: occurs.counts[TITLE] > 0,
            only_beside: is_only_beside(&occurs.counts),
            headings: occurs.headings,
            fields: counted_fields(&occurs.counts),
            pieces: page.has_pieces.then_some(occurs.pieces),
        }
    };
    let mut postings: Vec<Posting> = occurrences.iter().map(posting).collect();
    postings.sort_unstable_by_key(|posting| posting.page);
    postings
}

/// Returns the stem that a word has on the most pages. A word may have several stems, because pages
/// have different languages.
fn usual_stem(stems: &[(Box<str>, u32)]) -> Box<str> {
    let usual = stems
        .iter()
        .max_by(|a, b| a.1.cmp(&b.1).then(b.0.cmp(&a.0)));
    usual.map(|(stem, _)| stem.clone()).unwrap_or_default()
}

impl SameStemWords {
    fn of(
        stem: Box<str>,
        mut forms: Vec<WordFormPostings>,
        compounds: Vec<Box<str>>,
    ) -> SameStemWords {
        forms.sort_unstable_by(|a, b| by_utf16(&a.text, &b.text));
        SameStemWords {
            stem,
            forms,
            compounds,
        }
    }

    /// Returns the first word.
    pub(super) fn first(&self) -> &str {
        self.forms.first().map_or("", |form| &form.text)
    }
}

impl InvertedIndex {
    /// Returns the number of words, including hosts and folders.
    pub(super) fn forms(&self) -> usize {
        let forms = self.classes.iter().flat_map(|class| &class.forms);
        forms.filter(|form| !form.text.starts_with(END)).count()
    }
}

/// Maps each stem to the compounds that end in it or in a word with this stem. A compound is
/// represented by the first word of its class. Compounds on the most pages come first.
fn compounds(
    classes: &HashMap<Box<str>, Vec<WordFormPostings>>,
) -> HashMap<Box<str>, Vec<Box<str>>> {
    let mut stems: HashMap<&str, &str> = HashMap::new();
    for (stem, words) in classes {
        stems.extend(words.iter().map(|word| (&*word.text, &**stem)));
    }
    stems.extend(classes.keys().map(|stem| (&**stem, &**stem)));
    let mut words_by_end: HashMap<Box<str>, Vec<(u32, Box<str>)>> = HashMap::new();
    for (stem, words) in classes {
        if !words.iter().any(|word| word.may_be_compound) {
            continue;
        }
        let pages = words.iter().map(|word| word.postings.pages).max();
        let first = words.iter().map(|word| &word.text);
        let first = first.min_by(|a, b| by_utf16(a, b));
        let (Some(pages), Some(first)) = (pages, first) else {
            continue;
        };
        let forms = words.iter().filter(|word| word.may_be_compound);
        for longer in iter::once(stem).chain(forms.map(|word| &word.text)) {
            for end in compound_ends(longer) {
                if let Some(end) = stems.get(end) {
                    let words = words_by_end.entry((*end).into()).or_default();
                    words.push((pages, first.clone()));
                }
            }
        }
    }
    let best = words_by_end.into_iter();
    best.map(|(stem, words)| (stem, most_frequent(words, MAX_COMPOUNDS)))
        .collect()
}

/// Returns the ends of a word that may be the second part of a compound, longest first.
fn compound_ends(word: &str) -> impl Iterator<Item = &str> {
    let starts = word.char_indices().map(|(at, _)| at);
    let ends = starts
        .skip_while(|at| *at < MIN_COMPOUND_START)
        .map(|at| &word[at..]);
    ends.take_while(|end| end.chars().count() >= MIN_COMPOUND_END)
}

/// Maps the last letters of words to the words. Only words long enough to be compounds count. Words
/// on the most pages come first.
fn ends(classes: &HashMap<Box<str>, Vec<WordFormPostings>>) -> BTreeMap<Box<str>, Vec<Box<str>>> {
    let mut words_by_end: BTreeMap<Box<str>, Vec<(u32, Box<str>)>> = BTreeMap::new();
    let forms = classes.values().flatten();
    for form in forms.filter(|form| form.may_be_compound) {
        if let Some(end) = compound_ends(&form.text).last() {
            let words = words_by_end.entry(end.into()).or_default();
            words.push((form.postings.pages, form.text.clone()));
        }
    }
    let words = words_by_end.into_iter();
    words
        .map(|(end, words)| (end, most_frequent(words, MAX_WORDS_PER_END)))
        .collect()
}

/// Returns at most `limit` distinct words, those on the most pages first.
fn most_frequent(mut words: Vec<(u32, Box<str>)>, limit: usize) -> Vec<Box<str>> {
    words.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    words.dedup();
    words.truncate(limit);
    words.into_iter().map(|(_, word)| word).collect()
}

/// Compares strings by UTF-16 units, as JavaScript does.
pub(super) fn by_utf16(a: &str, b: &str) -> std::cmp::Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

/// Collects the words of one page.
struct PageWordCollector {
    stemmer: Stemmer,
    words: HashMap<Box<str>, (Option<Box<str>>, PageOccurrences)>,
    lengths: FieldLengths,
}

impl PageWordCollector {
    /// Reads the words of a page whose text is split into `pieces`, and returns the lengths of its
    /// fields.
    fn read(&mut self, page: &IndexedPage, pieces: &[Range<usize>]) -> FieldLengths {
        self.field(TITLE, [page.title.as_str()]);
        for (n, heading) in page.headings.iter().enumerate() {
            let level = usize::from(heading.level.clamp(1, 3)) - 1;
            self.named(HEADINGS[level], &heading.text, 1 << (n % HEADING_BITS));
        }
        self.named(DESCRIPTION, &page.description, 1 << HEADING_BITS);
        self.field(KEYWORDS, page.keywords.iter().map(String::as_str));
        self.field(ANCHORS, page.anchors.iter().map(String::as_str));
        self.field(PATH, [path_words(page.path()).as_str()]);
        for site in sites(page) {
            self.occurs(format!("{SITE}{site}"), None);
        }
        self.body(&page.text, pieces);
        self.field(BESIDE, [page.beside.as_str(), page.withheld.as_str()]);
        self.lengths
    }

    /// Adds the words of a field.
    fn field<'t>(&mut self, field: usize, texts: impl IntoIterator<Item = &'t str>) {
        for text in texts {
            for word in words(text, &self.stemmer) {
                self.count(field, word);
            }
        }
    }

    /// Adds the words of a heading or of the description. `bit` is the bit of this heading or
    /// description in [`PageOccurrences::headings`].
    fn named(&mut self, field: usize, text: &str, bit: u16) {
        for word in words(text, &self.stemmer) {
            self.count(field, word).headings |= bit;
        }
    }

    /// Adds the words of the main text.
    fn body(&mut self, text: &str, pieces: &[Range<usize>]) {
        for word in words(text, &self.stemmer) {
            let at = word.range.start;
            let piece = pieces.partition_point(|piece| piece.end <= at);
            if word.position < LEAD_WORDS {
                self.count(LEAD, word.clone());
            }
            let occurs = self.count(BODY, word);
            if piece < pieces.len() {
                occurs.pieces |= 1 << piece;
            }
        }
    }

    /// Counts an occurrence of a word in a field, and returns the word's occurrences. As in the
    /// index, the stem counts towards the length of the field.
    fn count(&mut self, field: usize, word: Word) -> &mut PageOccurrences {
        let length = &mut self.lengths[field];
        *length = length.saturating_add(1 + u32::from(word.stem.is_some()));
        let occurs = self.occurs(word.text, word.stem);
        occurs.counts[field] = occurs.counts[field].saturating_add(1);
        occurs
    }

    fn occurs(&mut self, text: String, stem: Option<String>) -> &mut PageOccurrences {
        let stem = stem.map(String::into_boxed_str);
        let entry = self.words.entry(text.into_boxed_str());
        &mut entry
            .or_insert_with(|| (stem, PageOccurrences::default()))
            .1
    }
}
