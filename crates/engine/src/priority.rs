//! The order of requests within an origin. It is stored with each URL as one byte, and the range
//! that the byte lies in tells what the URL was met as.

use crawl_frontier::{Admission, Lease, UrlKind};
use crawl_traps::MAX_LEVEL;

/// Indexes of sitemaps within indexes that are followed.
pub(crate) const MAX_SITEMAP_LEVELS: u8 = 5;

/// The distance by which a sitemap's `priority` moves its entries, up and down.
const SITEMAP_REACH: f32 = 32.0;

/// The place of a URL in the queue of its origin: the least comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Priority(u8);

impl Priority {
    /// The /sitemap.xml that nobody named.
    pub(crate) const GUESSED_SITEMAP: Priority = Priority(63);
    /// Then sitemaps that were named. Those that their indexes name follow, level by level.
    pub(crate) const SITEMAP: Priority = Priority(64);
    /// Then what they and pages name; a sitemap may move its entries by a quarter of what is
    /// before and behind.
    pub(crate) const LINK: Priority = Priority(128);
    /// The last of them. What is met on pages that say nothing new comes behind.
    const LAST_LINK: Priority = Priority(Priority::LINK.0 + SITEMAP_REACH as u8);
    /// Then what pages are shown with.
    pub(crate) const RESOURCE: Priority = Priority(192);
    /// Then what looks like an action.
    pub(crate) const ACTION: Priority = Priority(240);

    /// The priority of a leased URL.
    pub(crate) fn of(lease: &Lease) -> Priority {
        Priority(lease.priority)
    }

    /// The priority of a URL that is to be admitted.
    pub(crate) fn of_link(link: &Admission) -> Priority {
        Priority(link.priority)
    }

    /// As the frontier stores it.
    pub(crate) fn byte(self) -> u8 {
        self.0
    }

    /// The sitemaps that the index at this place names; none where they lie too deep.
    pub(crate) fn of_named_sitemaps(self) -> (Priority, IsTooDeep) {
        let level = self.0.clamp(Priority::SITEMAP.0, Priority::LINK.0) - Priority::SITEMAP.0 + 1;
        let is_too_deep = match level > MAX_SITEMAP_LEVELS {
            true => IsTooDeep::Yes,
            false => IsTooDeep::No,
        };
        (Priority(Priority::SITEMAP.0 + level), is_too_deep)
    }

    /// A page's place by what its sitemap says of it, from 0 to 1: 0.5 is as any link.
    pub(crate) fn of_sitemap_entry(said: Option<f32>) -> Priority {
        let said = said.unwrap_or(0.5).clamp(0.0, 1.0);
        let moved = ((0.5 - said) * 2.0 * SITEMAP_REACH).round();
        Priority((f32::from(Priority::LINK.0) + moved) as u8)
    }

    /// The place of a link that was reached through so many pages in a row that said nothing new:
    /// behind all other links, and before what pages are shown with.
    pub(crate) fn at_level(level: u8) -> Priority {
        const { assert!(Priority::LAST_LINK.0 + MAX_LEVEL < Priority::RESOURCE.0) }
        match level {
            0 => Priority::LINK,
            level => Priority(Priority::LAST_LINK.0 + level.min(MAX_LEVEL)),
        }
    }

    /// The number of pages in a row, on the way to this URL, that said nothing new.
    pub(crate) fn level(self) -> u8 {
        match self.0.checked_sub(Priority::LAST_LINK.0) {
            Some(level) if level <= MAX_LEVEL => level,
            _ => 0,
        }
    }

    /// Returns whether it comes behind the links of all pages that say something.
    pub(crate) fn is_late(self) -> bool {
        self > Priority::LAST_LINK
    }
}

/// The answer for a sitemap: does it lie within more indexes than are followed?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IsTooDeep {
    Yes,
    No,
}

/// Returns whether nobody named the URL: /sitemap.xml is asked for as robots.txt is, and where
/// there is no sitemap no row speaks of it.
pub(crate) fn is_guess(lease: &Lease) -> bool {
    Priority::of(lease) == Priority::GUESSED_SITEMAP && lease.kind == UrlKind::Sitemap
}

/// Returns whether an admission is one of a sitemap that nobody named.
pub(crate) fn is_admitted_guess(admission: &Admission) -> bool {
    let priority = Priority(admission.priority);
    priority == Priority::GUESSED_SITEMAP && admission.kind == UrlKind::Sitemap
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_each_kind_has_a_range_of_its_own() {
        let levels = (1..=MAX_SITEMAP_LEVELS).scan(Priority::SITEMAP, |at, _| {
            let (next, is_too_deep) = at.of_named_sitemaps();
            assert_eq!(is_too_deep, IsTooDeep::No);
            *at = next;
            Some(next)
        });
        let deepest = levels.last().unwrap();
        assert_eq!(deepest.of_named_sitemaps().1, IsTooDeep::Yes);
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
        let others = [Priority::LINK, Priority::RESOURCE, Priority::ACTION];
        assert!(others.iter().all(|other| other.level() == 0));
        assert!(Priority::GUESSED_SITEMAP < Priority::SITEMAP);
    }
}
