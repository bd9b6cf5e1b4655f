//! The order of requests within an origin. A URL's priority is stored as one byte. The range that
//! the byte is in also shows how the URL was found.

use crawl_frontier::{Lease, UrlKind, UrlToAdmit};
use crawl_traps::MAX_LEVEL;
use crawl_weburl::HostKey;

/// Maximum levels of sitemap indexes to follow.
pub(crate) const MAX_SITEMAP_LEVELS: u8 = 5;

/// Maximum levels of resources that load each other, such as style sheets and their images.
/// Beyond the limit: excluded as a `trap`.
pub(crate) const MAX_RESOURCE_LEVELS: u8 = 5;

/// How far the `priority` in a sitemap can move an entry from the position [`Priority::LINK`], in
/// either direction.
const SITEMAP_REACH: f32 = 32.0;

/// The position of a URL in the queue of its origin. URLs with smaller positions come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Priority(u8);

impl Priority {
    /// A `/sitemap.xml` that we guessed, because robots.txt lists no sitemap.
    pub(crate) const GUESSED_SITEMAP: Priority = Priority(63);
    /// Sitemaps listed in robots.txt. A sitemap listed in a sitemap index comes after the index.
    pub(crate) const SITEMAP: Priority = Priority(64);
    /// Links of pages, and URLs listed in sitemaps. A sitemap may move its entries by up to half
    /// the distance to the neighbouring ranges.
    pub(crate) const LINK: Priority = Priority(128);
    /// The last position for links of a page with something new. Links of barren pages, which have
    /// nothing new, come later.
    const LAST_LINK: Priority = Priority(Priority::LINK.0 + SITEMAP_REACH as u8);
    /// Pages of mirrors whose copy on the mirrored origin was not fetched. Pages that a sitemap gives
    /// the lowest priority have the same position.
    pub(crate) const COPY_MISSING: Priority = Priority::LAST_LINK;
    /// Parts of pages, such as images and style sheets. A part of a style sheet comes after the style
    /// sheets.
    pub(crate) const RESOURCE: Priority = Priority(192);
    /// The position of the first resources that are nested too deeply to be fetched.
    const TOO_NESTED_RESOURCE: Priority = Priority(Priority::RESOURCE.0 + MAX_RESOURCE_LEVELS);
    /// Links that look like actions.
    pub(crate) const ACTION: Priority = Priority(240);
    /// Pages that only sitemaps on other hosts list. This is the lowest priority, so a link to such
    /// a page replaces it, and the page then counts as linked.
    pub(crate) const FOREIGN_ENTRY: Priority = Priority(u8::MAX);

    /// Returns the priority of a leased URL.
    pub(crate) fn of(lease: &Lease) -> Priority {
        Priority(lease.priority)
    }

    /// Returns the priority of an admission.
    pub(crate) fn of_link(link: &UrlToAdmit) -> Priority {
        Priority(link.priority)
    }

    /// Returns the byte that the frontier stores.
    pub(crate) fn byte(self) -> u8 {
        self.0
    }

    /// Returns the priority of the sitemaps listed in a sitemap index, and whether they are nested
    /// too deeply to be followed. `self` is the priority of the index.
    pub(crate) fn of_named_sitemaps(self) -> (Priority, SitemapDepthCheck) {
        let level = self.0.clamp(Priority::SITEMAP.0, Priority::LINK.0) - Priority::SITEMAP.0 + 1;
        let nesting = match level > MAX_SITEMAP_LEVELS {
            true => SitemapDepthCheck::TooDeep,
            false => SitemapDepthCheck::Followed,
        };
        (Priority(Priority::SITEMAP.0 + level), nesting)
    }

    /// Returns the priority of the resources of a document that was itself fetched as a resource.
    /// `self` is the priority of the document.
    pub(crate) fn of_nested_resources(self) -> Priority {
        let (first, too_nested) = (Priority::RESOURCE.0, Priority::TOO_NESTED_RESOURCE.0);
        Priority(self.0.saturating_add(1).clamp(first, too_nested))
    }

    /// Returns whether a resource with this priority is nested too deeply to be fetched.
    pub(crate) fn is_too_nested_resource(self) -> bool {
        self == Priority::TOO_NESTED_RESOURCE
    }

    /// Returns the priority of a page with this `priority` in its sitemap, from 0 to 1. A page with
    /// 0.5 gets the priority of an ordinary link.
    pub(crate) fn of_sitemap_entry(stated: Option<f32>) -> Priority {
        let stated = stated.unwrap_or(0.5).clamp(0.0, 1.0);
        let moved = ((0.5 - stated) * 2.0 * SITEMAP_REACH).round();
        Priority((f32::from(Priority::LINK.0) + moved) as u8)
    }

    /// Returns the priority of a link found after this many consecutive barren pages, which are
    /// pages with nothing new. If there were any, the link comes after all links of other pages,
    /// but before parts of pages.
    pub(crate) fn at_level(level: u8) -> Priority {
        const { assert!(Priority::LAST_LINK.0 + MAX_LEVEL < Priority::RESOURCE.0) }
        match level {
            0 => Priority::LINK,
            level => Priority(Priority::LAST_LINK.0 + level.min(MAX_LEVEL)),
        }
    }

    /// Returns the number of consecutive barren pages (with nothing new) on the way to this URL.
    pub(crate) fn level(self) -> u8 {
        match self.0.checked_sub(Priority::LAST_LINK.0) {
            Some(level) if level <= MAX_LEVEL => level,
            _ => 0,
        }
    }

    /// Returns whether a URL with this priority comes after all links of pages with something new.
    pub(crate) fn is_late(self) -> bool {
        self > Priority::LAST_LINK
    }
}

/// Whether the sitemaps that a sitemap index names are followed, or nested too deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SitemapDepthCheck {
    Followed,
    TooDeep,
}

/// Returns whether the URL is a guessed `/sitemap.xml`. If it does not exist, no row is written, as
/// for robots.txt.
pub(crate) fn is_guess(lease: &Lease) -> bool {
    Priority::of(lease) == Priority::GUESSED_SITEMAP && lease.kind == UrlKind::Sitemap
}

/// Returns whether an answer with `status` must be read to find out whether the URL is a guessed
/// sitemap that exists. Some servers answer any URL with a page.
pub(crate) fn is_undecided_guess(lease: &Lease, status: u16) -> bool {
    is_guess(lease) && (200..300).contains(&status)
}

/// Returns whether the URL is a page that only sitemaps on other hosts list.
pub(crate) fn is_foreign_entry(lease: &Lease) -> bool {
    Priority::of(lease) == Priority::FOREIGN_ENTRY && lease.kind == UrlKind::Page
}

/// Returns whether a sitemap on the host `sitemap` may list pages on the host `page` without that
/// host's consent. True if the hosts are equal, or differ only by a leading `www.`.
pub(crate) fn may_list(sitemap: &HostKey, page: &HostKey) -> bool {
    let [sitemap, page] = [sitemap, page].map(|host| {
        let host = host.as_str();
        host.strip_prefix("www.").unwrap_or(host)
    });
    sitemap == page
}

/// Returns whether an admission is for a guessed `/sitemap.xml`.
pub(crate) fn is_admitted_guess(admission: &UrlToAdmit) -> bool {
    let priority = Priority(admission.priority);
    priority == Priority::GUESSED_SITEMAP && admission.kind == UrlKind::Sitemap
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_range() {
        let levels = (1..=MAX_SITEMAP_LEVELS).scan(Priority::SITEMAP, |at, _| {
            let (next, nesting) = at.of_named_sitemaps();
            assert_eq!(nesting, SitemapDepthCheck::Followed);
            *at = next;
            Some(next)
        });
        let deepest = levels.last().unwrap();
        assert_eq!(deepest.of_named_sitemaps().1, SitemapDepthCheck::TooDeep);
        let entries = [
            Some(1.0),
            Some(0.5),
            None,
            Some(0.0),
            Some(f32::MAX),
            Some(-1.0),
        ];
        let entries = entries.map(Priority::of_sitemap_entry);
        assert_eq!(entries[1..3], [Priority::LINK; 2]);
        assert!(
            entries
                .iter()
                .all(|entry| deepest < *entry && !entry.is_late())
        );
        for level in 1..=MAX_LEVEL {
            let late = Priority::at_level(level);
            assert!(late.is_late() && late < Priority::RESOURCE);
            assert_eq!(late.level(), level);
        }
        assert_eq!(Priority::at_level(0), Priority::LINK);
        let mut resource = Priority::RESOURCE;
        for _ in 0..MAX_RESOURCE_LEVELS {
            assert!(!resource.is_too_nested_resource() && resource.level() == 0);
            resource = resource.of_nested_resources();
        }
        assert!(resource.is_too_nested_resource() && resource < Priority::ACTION);
        assert_eq!(resource.of_nested_resources(), resource);
        let level_0 = [
            Priority::LINK,
            Priority::RESOURCE,
            Priority::ACTION,
            Priority::FOREIGN_ENTRY,
        ];
        assert!(level_0.iter().all(|other| other.level() == 0));
        assert!(Priority::GUESSED_SITEMAP < Priority::SITEMAP);
        assert!(Priority::ACTION < Priority::FOREIGN_ENTRY);
    }
}
