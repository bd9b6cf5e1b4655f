//! Limits for a page's content, and the oddities that are noted when a limit is reached.

use crate::oddities::Oddity;

/// Limits for the content of one page. Reaching a limit is never an error: the rest of the content
/// is dropped, and the page gets the matching [`ContentOddityKind`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContentLimits {
    /// Maximum bytes of the visible text.
    pub text_bytes: usize,
    /// Maximum number of blocks of text. Further text is added to the last block.
    pub blocks: usize,
    /// Maximum number of regions (elements that contain blocks). Text of further regions belongs to
    /// the region around them.
    pub regions: usize,
    /// Maximum depth of nested elements. Deeper elements are ignored, so their text belongs to the
    /// element around them.
    pub depth: usize,
    /// Maximum bytes of the title, the description, and each other field of the head and of
    /// JSON-LD.
    pub field_bytes: usize,
    /// Maximum number of keywords.
    pub keywords: usize,
    /// Maximum bytes of an id. Longer ids are dropped.
    pub id_bytes: usize,
    /// Maximum bytes of one JSON-LD script. Longer scripts are not read.
    pub json_ld_bytes: usize,
    /// Maximum number of JSON-LD scripts.
    pub json_ld_scripts: usize,
    /// Maximum number of items in all JSON-LD scripts together.
    pub json_ld_items: usize,
    /// Maximum number of dates.
    pub dates: usize,
    /// Maximum bytes of text to examine when detecting its language.
    pub language_bytes: usize,
    /// Maximum number of attributes to read from one tag.
    pub attributes: usize,
}

impl Default for ContentLimits {
    fn default() -> Self {
        ContentLimits {
            text_bytes: 4 * 1024 * 1024,
            blocks: 100_000,
            regions: 100_000,
            depth: 512,
            field_bytes: 4 * 1024,
            keywords: 100,
            id_bytes: 512,
            json_ld_bytes: 256 * 1024,
            json_ld_scripts: 16,
            json_ld_items: 64,
            dates: 32,
            language_bytes: 8 * 1024,
            attributes: 1_000,
        }
    }
}

/// A defect of a page's content, or an omission caused by a limit.
pub type ContentOddity = Oddity<ContentOddityKind>;

/// The kinds of [`ContentOddity`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::Display)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case")]
pub enum ContentOddityKind {
    /// Text was cut at [`ContentLimits::text_bytes`].
    TextFull,
    /// More blocks than [`ContentLimits::blocks`].
    BlocksFull,
    /// More regions than [`ContentLimits::regions`].
    RegionsFull,
    /// Elements nested deeper than [`ContentLimits::depth`].
    TooDeep,
    /// A field was cut at [`ContentLimits::field_bytes`].
    FieldCut,
    /// More keywords than [`ContentLimits::keywords`].
    KeywordsFull,
    /// An id longer than [`ContentLimits::id_bytes`].
    IdTooLong,
    /// A tag with more attributes than [`ContentLimits::attributes`].
    TagCut,
    /// A declared language that is not a language tag (RFC 5646 section 2.1).
    BadLanguageTag,
    /// A JSON-LD script longer than [`ContentLimits::json_ld_bytes`].
    JsonLdTooLong,
    /// A JSON-LD script with invalid JSON, or with more than 127 nested levels.
    BrokenJsonLd,
    /// More JSON-LD scripts than [`ContentLimits::json_ld_scripts`], or more items than
    /// [`ContentLimits::json_ld_items`].
    JsonLdFull,
    /// A date in an unknown form.
    UnreadableDate,
    /// An implausible date: before the year 1500, the Unix epoch itself, or more than two days
    /// after the fetch.
    ImplausibleDate,
    /// The page declares a modification before its publication.
    ModifiedBeforePublished,
    /// More dates than [`ContentLimits::dates`].
    DatesFull,
}

/// The oddities of a page's content, one per kind, noted while the page is read.
pub(super) type ContentOddityList = crate::oddities::OddityList<ContentOddityKind>;
