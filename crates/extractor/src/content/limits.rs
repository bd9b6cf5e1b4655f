//! The most of a page's content that is kept, and what is said when there was more.

use crate::oddities::Oddity;

/// The most that is kept of one page. Reaching a limit is never an error: what is beyond it is
/// left out, and the matching [`ContentOddityKind`] stands in the oddities.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContentLimits {
    /// Bytes of the visible text.
    pub text_bytes: usize,
    /// Blocks of text. What is beyond joins the last one.
    pub blocks: usize,
    /// Regions (elements that hold blocks). Text beyond counts to the region around it.
    pub regions: usize,
    /// Elements open at a time that are minded; deeper ones count to the one around them.
    pub depth: usize,
    /// Bytes of the title, of the description, and of each other field of the head and of
    /// JSON-LD.
    pub field_bytes: usize,
    /// Keywords.
    pub keywords: usize,
    /// Bytes of an id; a longer one is none.
    pub id_bytes: usize,
    /// Bytes of one JSON-LD script; a longer one is not read.
    pub json_ld_bytes: usize,
    /// JSON-LD scripts.
    pub json_ld_scripts: usize,
    /// Items kept of all JSON-LD scripts together.
    pub json_ld_items: usize,
    /// Dates.
    pub dates: usize,
    /// Bytes of the main text that its language is told by.
    pub language_bytes: usize,
    /// Attributes of one tag.
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

/// Something in a page's content that was wrong, or that was left out.
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
    /// A declared language that is no language tag (RFC 5646 section 2.1).
    BadLanguageTag,
    /// A JSON-LD script longer than [`ContentLimits::json_ld_bytes`].
    JsonLdTooLong,
    /// JSON-LD that is no JSON, or nested deeper than 127 levels.
    BrokenJsonLd,
    /// More scripts or items than [`ContentLimits::json_ld_scripts`] and
    /// [`ContentLimits::json_ld_items`].
    JsonLdFull,
    /// A date in no form that is known.
    UnreadableDate,
    /// A date that can't be: before the year 1500, the epoch itself, or later than the fetch.
    ImplausibleDate,
    /// The page says it was modified before it was published.
    ModifiedBeforePublished,
    /// More dates than [`ContentLimits::dates`].
    DatesFull,
}

/// The oddities of a page while it is read.
pub(super) type Oddities = crate::oddities::Oddities<ContentOddityKind>;
