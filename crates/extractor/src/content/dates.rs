//! The dates at which a page was published and modified, from many sources.

use crawl_dates::TimeWithPrecision;

use super::content_limits::{ContentLimits, ContentOddityKind, ContentOddityList};

/// Maximum seconds from the fetch to a date after the fetch. Later dates are implausible, but time
/// zones and wrong clocks may shift a date by this much.
const AHEAD_SECONDS: i64 = 2 * 86_400;

/// A date that a page declares for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageDate {
    /// Whether the page was published or modified on the date.
    pub kind: DateKind,
    /// The date, with its precision.
    pub moment: TimeWithPrecision,
    /// Where the date was found.
    pub source: DateSource,
    /// The name of the field, such as `article:published_time`.
    pub name: String,
}

/// The event on a date: the page was published or modified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DateKind {
    /// The page was published.
    Published,
    /// The page was last modified.
    Modified,
}

/// The sources of dates, most reliable first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::Display)]
#[non_exhaustive]
#[strum(serialize_all = "snake_case")]
pub enum DateSource {
    /// JSON-LD.
    JsonLd,
    /// A `meta` element.
    Meta,
    /// An element with an `itemprop`, such as `itemprop=datePublished`.
    Microdata,
    /// A `time` element that is marked as the page's date: by `pubdate`, or by a class of the
    /// hentry or h-entry microformats.
    Time,
    /// The first unmarked `time` in a `main` or `article`, outside its menus, sidebars and the
    /// like.
    AnyTime,
}

impl PageDate {
    /// Returns the rank of the date by its source. Lower is better. A date from a `meta` whose name
    /// is ambiguous ranks behind all other dates from `meta` elements.
    pub(super) fn rank(&self) -> (DateSource, bool) {
        let is_vague = !self.name.contains("publi") && !self.name.contains("modif");
        (self.source, is_vague && self.source == DateSource::Meta)
    }
}

/// Collects the dates that a page declares, up to a limit.
#[derive(Debug, Default)]
pub(super) struct DateCollector {
    found: Vec<(PageDate, usize)>,
    limit: usize,
}

impl DateCollector {
    pub(super) fn new(limits: &ContentLimits) -> DateCollector {
        DateCollector {
            found: Vec::new(),
            limit: limits.dates,
        }
    }

    /// Parses the date in `text` and adds it. Notes an oddity if it can't be parsed.
    pub(super) fn add(
        &mut self,
        kind: DateKind,
        text: &str,
        (source, name): (DateSource, &str),
        offset: usize,
        oddities: &mut ContentOddityList,
    ) {
        if text.trim().is_empty() {
            return;
        }
        let Some(moment) = TimeWithPrecision::parse(text) else {
            // An unmarked `time` element may contain a duration or a time of day, so it is not an
            // oddity if its text isn't a date.
            if source != DateSource::AnyTime {
                oddities.note(ContentOddityKind::UnreadableDate, offset);
            }
            return;
        };
        if self.found.len() >= self.limit {
            return oddities.note(ContentOddityKind::DatesFull, offset);
        }
        let date = PageDate {
            kind,
            moment,
            source,
            name: name.to_owned(),
        };
        self.found.push((date, offset));
    }

    /// Returns whether a date from the given source was found.
    pub(super) fn has(&self, source: DateSource) -> bool {
        self.found.iter().any(|(date, _)| date.source == source)
    }

    /// Returns the plausible dates, and notes the implausible ones as oddities.
    pub(super) fn finish(
        self,
        fetched_at: Option<i64>,
        oddities: &mut ContentOddityList,
    ) -> Vec<PageDate> {
        let latest = fetched_at.map_or(i64::MAX, |at| at.saturating_add(AHEAD_SECONDS));
        let mut dates = Vec::new();
        for (date, offset) in self.found {
            let seconds = date.moment.unix_seconds;
            if date.moment.year() < 1500 || seconds == 0 || seconds > latest {
                oddities.note(ContentOddityKind::ImplausibleDate, offset);
            } else {
                dates.push(date);
            }
        }
        dates
    }
}

/// Returns the kind of date that a `meta` with this name (in lower case) gives: publication or
/// modification. `None` if it gives no date.
pub(super) fn kind_of_meta(name: &str) -> Option<DateKind> {
    Some(match name {
        "article:published_time"
        | "article:published"
        | "og:published_time"
        | "citation_publication_date"
        | "citation_date"
        | "citation_online_date"
        | "dc.date.issued"
        | "dc.date.published"
        | "dc.date.created"
        | "dc.date"
        | "dcterms.issued"
        | "dcterms.created"
        | "dcterms.date"
        | "datepublished"
        | "publication_date"
        | "publish-date"
        | "publishdate"
        | "publish_date"
        | "published_date"
        | "pubdate"
        | "date"
        | "parsely-pub-date"
        | "sailthru.date"
        | "datecreated" => DateKind::Published,
        "article:modified_time"
        | "article:modified"
        | "og:updated_time"
        | "dc.date.modified"
        | "dcterms.modified"
        | "datemodified"
        | "last-modified"
        | "lastmod"
        | "modified"
        | "revised"
        | "docbuild:last-update" => DateKind::Modified,
        _ => return None,
    })
}

/// Returns the kind of date that an `itemprop` gives (publication or modification), and the
/// property's name. `None` if it gives no date.
pub(super) fn kind_of_itemprop(value: &str) -> Option<(DateKind, &'static str)> {
    value.split_ascii_whitespace().find_map(|word| match word {
        "datePublished" => Some((DateKind::Published, "datePublished")),
        "dateCreated" => Some((DateKind::Published, "dateCreated")),
        "dateModified" => Some((DateKind::Modified, "dateModified")),
        _ => None,
    })
}

/// Returns the kind of date that a class of the hentry or h-entry microformats marks (publication
/// or modification), and the class. `None` if it marks no date.
pub(super) fn kind_of_class(class: &str) -> Option<(DateKind, &'static str)> {
    class
        .split_ascii_whitespace()
        .take(32)
        .find_map(|word| match word {
            "published" => Some((DateKind::Published, "published")),
            "dt-published" => Some((DateKind::Published, "dt-published")),
            "entry-date" => Some((DateKind::Published, "entry-date")),
            "updated" => Some((DateKind::Modified, "updated")),
            "dt-updated" => Some((DateKind::Modified, "dt-updated")),
            _ => None,
        })
}
