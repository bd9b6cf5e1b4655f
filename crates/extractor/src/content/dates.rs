//! The dates at which a page was published and modified, as it says in one of many ways.

use crawl_dates::Moment;

use super::limits::{ContentLimits, ContentOddityKind, Oddities};

/// The time after the fetch at which a date may be: time zones, and clocks that are off.
const AHEAD_SECONDS: i64 = 2 * 86_400;

/// A date that a page says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageDate {
    /// The event.
    pub kind: DateKind,
    /// The moment.
    pub moment: Moment,
    /// The place in which it was found.
    pub source: DateSource,
    /// The name it bore there, such as `article:published_time`.
    pub name: String,
}

/// The event that a date is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DateKind {
    /// The page was published.
    Published,
    /// The page was last modified.
    Modified,
}

/// The places in which a date is found, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::Display)]
#[non_exhaustive]
#[strum(serialize_all = "snake_case")]
pub enum DateSource {
    /// JSON-LD.
    JsonLd,
    /// A `meta` element.
    Meta,
    /// An `itemprop`.
    Microdata,
    /// A `time` element that says so: `pubdate`, or a class of the hentry or h-entry
    /// microformats.
    Time,
    /// The first `time` in the main part of the page, which says nothing more.
    AnyTime,
}

impl PageDate {
    /// The lower, the better the source. Names that mean many things come after those that
    /// mean one.
    pub(super) fn rank(&self) -> (DateSource, bool) {
        let vague = !self.name.contains("publi") && !self.name.contains("modif");
        (self.source, vague && self.source == DateSource::Meta)
    }
}

/// Gathers dates.
#[derive(Debug, Default)]
pub(super) struct Dates {
    found: Vec<(PageDate, usize)>,
    limit: usize,
}

impl Dates {
    pub(super) fn new(limits: &ContentLimits) -> Dates {
        Dates {
            found: Vec::new(),
            limit: limits.dates,
        }
    }

    /// Takes a date as written.
    pub(super) fn add(
        &mut self,
        kind: DateKind,
        text: &str,
        (source, name): (DateSource, &str),
        offset: usize,
        oddities: &mut Oddities,
    ) {
        if text.trim().is_empty() {
            return;
        }
        let Some(moment) = Moment::parse(text) else {
            // A `time` may well hold a duration or an hour.
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

    /// Returns whether a date of that source was found.
    pub(super) fn has(&self, source: DateSource) -> bool {
        self.found.iter().any(|(date, _)| date.source == source)
    }

    /// The dates that can be.
    pub(super) fn finish(self, fetched_at: Option<i64>, oddities: &mut Oddities) -> Vec<PageDate> {
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

/// The event that a `meta` of that name (in lower case) dates.
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

/// The event that an `itemprop` dates, and its own name.
pub(super) fn kind_of_itemprop(value: &str) -> Option<(DateKind, &'static str)> {
    value.split_ascii_whitespace().find_map(|word| match word {
        "datePublished" => Some((DateKind::Published, "datePublished")),
        "dateCreated" => Some((DateKind::Published, "dateCreated")),
        "dateModified" => Some((DateKind::Modified, "dateModified")),
        _ => None,
    })
}

/// The event that a class of the hentry and h-entry microformats dates.
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
