//! What is remembered of each host, within a bound over all of them.

use std::collections::HashMap;

use crawl_weburl::HostKey;

use super::learned_spellings::LearnedSpellings;
use super::novelty::HostWords;
use super::recent_map::RecentMap;
use super::template::Template;

/// Bytes that all hosts may take, about; those that were left alone for longest go. A host takes
/// some KiB with its first page and some 600 KiB at most.
const MAX_BYTES: usize = 128 << 20;
/// Templates of one host, the latest.
const MAX_TEMPLATES: usize = 512;
/// Texts of one host, the latest.
const MAX_TEXTS: usize = 1024;

/// The memory of one host.
#[derive(Debug)]
pub(super) struct HostMemory {
    pub(super) words: HostWords,
    pub(super) templates: RecentMap<Template>,
    pub(super) texts: RecentMap<Text>,
    pub(super) names: LearnedSpellings,
    /// Its templates whose URLs go behind others, those that were forgotten among them.
    pub(super) watched: u32,
    /// When its last page came, as a number that grows with each page, and its bytes then.
    seen: u64,
    bytes: usize,
}

/// Pages that said the same.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) pages: u32,
    /// None of most, whose pages led to something new.
    pub(super) followed: Option<Box<Followed>>,
}

/// What pages that said the same led to, where they said nothing new.
#[derive(Debug, Default)]
pub(super) struct Followed {
    pub(super) level: u8,
    pub(super) children: u32,
    pub(super) members: Vec<u64>,
}

/// The memory of all hosts.
#[derive(Debug, Default)]
pub(super) struct HostMemories {
    hosts: HashMap<HostKey, HostMemory>,
    bytes: usize,
    pages: u64,
}

impl Default for HostMemory {
    fn default() -> HostMemory {
        HostMemory {
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

impl HostMemories {
    pub(super) fn get(&self, key: &HostKey) -> Option<&HostMemory> {
        self.hosts.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &HostKey) -> Option<&mut HostMemory> {
        self.hosts.get_mut(key)
    }

    /// The memory of a host of which a page came.
    pub(super) fn of_page(&mut self, key: &HostKey) -> &mut HostMemory {
        self.pages += 1;
        let host = self.hosts.entry(key.clone()).or_default();
        host.seen = self.pages;
        let bytes = host.weigh();
        self.bytes = self.bytes + bytes - std::mem::replace(&mut host.bytes, bytes);
        if self.bytes > MAX_BYTES {
            self.forget_oldest();
        }
        self.hosts.entry(key.clone()).or_default()
    }

    /// Memory held, about.
    #[cfg(test)]
    pub(super) fn weigh(&self) -> usize {
        self.hosts.values().map(HostMemory::weigh).sum()
    }

    /// Makes room for an eighth of all, but for the host whose page came last: each time, all hosts
    /// are looked at.
    fn forget_oldest(&mut self) {
        let ages = self.hosts.iter().map(|(key, host)| (host.seen, key));
        let mut ages: Vec<(u64, HostKey)> = ages.map(|(seen, key)| (seen, key.clone())).collect();
        ages.sort_unstable_by_key(|(seen, _)| *seen);
        for (seen, oldest) in ages {
            if self.bytes <= MAX_BYTES / 8 * 7 || seen == self.pages {
                break;
            }
            let gone = self.hosts.remove(&oldest);
            self.bytes -= gone.map_or(0, |host| host.bytes);
        }
    }
}

impl HostMemory {
    /// Memory held, about.
    fn weigh(&self) -> usize {
        const TEMPLATE: usize = 600;
        const TEXT: usize = 32;
        self.words.bytes()
            + self.names.bytes()
            + TEMPLATE * self.templates.len()
            + TEXT * self.texts.len()
            + size_of::<HostMemory>()
    }
}

#[cfg(test)]
mod tests {
    use crawl_weburl::HostKey;

    use super::{HostMemories, MAX_BYTES, Text};

    #[test]
    fn the_hosts_that_were_left_alone_for_longest_are_forgotten() {
        let host = |n: usize| HostKey::parse(&format!("h{n}.example")).unwrap();
        let mut memories = HostMemories::default();
        let mut n = 0;
        while memories.hosts.len() == n {
            for key in [host(0), host(n)] {
                let texts = &mut memories.of_page(&key).texts;
                for text in 0..1024 {
                    texts.entry(text, Text::default);
                }
                // They are weighed when the next page comes, and make room for themselves.
                memories.of_page(&key);
            }
            n += 1;
        }
        assert!(memories.bytes <= MAX_BYTES);
        let forgotten = (0..n).filter(|n| memories.get(&host(*n)).is_none());
        let forgotten: Vec<usize> = forgotten.collect();
        assert_eq!(forgotten, (1..=forgotten.len()).collect::<Vec<_>>());
        assert!((n / 9..n / 7).contains(&forgotten.len()), "{forgotten:?}");
        let weighed = memories
            .hosts
            .values()
            .map(|host| host.bytes)
            .sum::<usize>();
        assert_eq!(memories.bytes, weighed);
    }
}
