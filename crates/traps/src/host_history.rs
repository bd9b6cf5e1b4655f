//! The history of each host: its recent pages, templates and texts. The memory of all hosts together
//! is bounded.

use std::collections::HashMap;

use crawl_weburl::HostKey;

use super::learned_spellings::LearnedSpellings;
use super::novelty::HostWords;
use super::recent_map::RecentMap;
use super::template_history::TemplateHistory;

/// Maximum bytes of evidence of traps on all hosts, approximately. A host takes a few KiB with its
/// first page, and about 600 KiB at most.
/// Beyond the limit: the hosts that were idle for longest are forgotten.
const MAX_BYTES: usize = 128 << 20;
/// Maximum number of recent templates to remember per host.
/// Beyond the limit: the oldest are forgotten.
const MAX_TEMPLATES: usize = 512;
/// Maximum number of recent texts to remember per host.
/// Beyond the limit: the oldest are forgotten.
const MAX_TEXTS: usize = 1024;

/// The history of one host: the content of its recent pages, and the spellings of its URLs.
#[derive(Debug)]
pub(super) struct HostHistory {
    pub(super) words: HostWords,
    pub(super) templates: RecentMap<TemplateHistory>,
    pub(super) texts: RecentMap<TextOccurrences>,
    pub(super) names: LearnedSpellings,
    /// The number of templates (URL patterns) whose URLs are queued behind the host's other URLs.
    /// Includes templates that are no longer remembered.
    pub(super) watched: u32,
    /// The sequence number of the host's last page, counted over the pages of all hosts.
    seen: u64,
    /// The host's memory in bytes, as measured at its last page.
    bytes: usize,
}

/// A text that was found on one or several pages of a host.
#[derive(Debug, Default)]
pub(super) struct TextOccurrences {
    pub(super) pages: u32,
    /// The URLs found on the barren pages (pages with nothing new) with this text. `None` if no
    /// such page was barren, which is usual.
    pub(super) followed: Option<Box<UrlsFromBarrenPages>>,
}

/// The URLs found on barren pages (pages with nothing new) that have the same text.
#[derive(Debug, Default)]
pub(super) struct UrlsFromBarrenPages {
    /// The highest level of the barren pages, that is, the number of consecutive pages with nothing
    /// new on the way to a page.
    pub(super) level: u8,
    /// The number of URLs that were first found on these barren pages.
    pub(super) children: u32,
    /// The keys of at most `MAX_MEMBERS` of the barren pages on which URLs were first found.
    pub(super) members: Vec<u64>,
}

/// The histories of all hosts. Their memory together is bounded by [`MAX_BYTES`].
#[derive(Debug, Default)]
pub(super) struct HostHistories {
    hosts: HashMap<HostKey, HostHistory>,
    bytes: usize,
    pages: u64,
}

impl Default for HostHistory {
    fn default() -> HostHistory {
        HostHistory {
            words: HostWords::default(),
            templates: RecentMap::new(MAX_TEMPLATES),
            texts: RecentMap::new(MAX_TEXTS),
            names: LearnedSpellings::default(),
            watched: 0,
            seen: 0,
            bytes: 0,
        }
    }
}

impl HostHistories {
    pub(super) fn get(&self, key: &HostKey) -> Option<&HostHistory> {
        self.hosts.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &HostKey) -> Option<&mut HostHistory> {
        self.hosts.get_mut(key)
    }

    /// Returns the history of a host. Called for each fetched page of the host.
    pub(super) fn for_page(&mut self, key: &HostKey) -> &mut HostHistory {
        self.pages += 1;
        let host = self.hosts.entry(key.clone()).or_default();
        host.seen = self.pages;
        let bytes = host.weigh();
        self.bytes = self.bytes + bytes - std::mem::replace(&mut host.bytes, bytes);
        if self.bytes > MAX_BYTES {
            self.evict_oldest();
        }
        self.hosts.entry(key.clone()).or_default()
    }

    /// Returns the approximate memory of all hosts, in bytes.
    #[cfg(test)]
    pub(super) fn weigh(&self) -> usize {
        self.hosts.values().map(HostHistory::weigh).sum()
    }

    /// Evicts hosts until an eighth of the maximum memory is free, but not the host of the last
    /// page. One call evicts several hosts, because each call walks all hosts.
    fn evict_oldest(&mut self) {
        let ages = self.hosts.iter().map(|(key, host)| (host.seen, key));
        let mut ages: Vec<(u64, HostKey)> = ages.map(|(seen, key)| (seen, key.clone())).collect();
        ages.sort_unstable_by_key(|(seen, _)| *seen);
        for (seen, oldest) in ages {
            if self.bytes <= MAX_BYTES / 8 * 7 || seen == self.pages {
                break;
            }
            let removed = self.hosts.remove(&oldest);
            self.bytes -= removed.map_or(0, |host| host.bytes);
        }
    }
}

impl HostHistory {
    /// Returns the approximate memory of this host, in bytes.
    fn weigh(&self) -> usize {
        const TEMPLATE: usize = 600;
        const TEXT: usize = 32;
        self.words.bytes()
            + self.names.bytes()
            + TEMPLATE * self.templates.len()
            + TEXT * self.texts.len()
            + size_of::<HostHistory>()
    }
}

#[cfg(test)]
mod tests {
    use crawl_weburl::HostKey;

    use super::{HostHistories, MAX_BYTES, TextOccurrences};

    #[test]
    fn least_recently_seen_hosts_are_evicted() {
        let host = |n: usize| HostKey::parse(&format!("h{n}.example")).unwrap();
        let mut histories = HostHistories::default();
        let mut n = 0;
        while histories.hosts.len() == n {
            for key in [host(0), host(n)] {
                let texts = &mut histories.for_page(&key).texts;
                for text in 0..1024 {
                    texts.entry(text, TextOccurrences::default);
                }
                // Simulate a further page of the host. Only then is the memory of the host
                // measured, and may other hosts be evicted.
                histories.for_page(&key);
            }
            n += 1;
        }
        assert!(histories.bytes <= MAX_BYTES);
        let evicted = (0..n).filter(|n| histories.get(&host(*n)).is_none());
        let evicted: Vec<usize> = evicted.collect();
        assert_eq!(evicted, (1..=evicted.len()).collect::<Vec<_>>());
        assert!((n / 9..n / 7).contains(&evicted.len()), "{evicted:?}");
        let weighed = histories
            .hosts
            .values()
            .map(|host| host.bytes)
            .sum::<usize>();
        assert_eq!(histories.bytes, weighed);
    }
}
