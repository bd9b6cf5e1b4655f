//! A map that forgets what came first when it is full.

use std::collections::{HashMap, VecDeque};

/// At most so many entries; the oldest go.
#[derive(Debug)]
pub(super) struct RecentMap<V> {
    most: usize,
    entries: HashMap<u64, V>,
    order: VecDeque<u64>,
}

impl<V> RecentMap<V> {
    pub(super) fn new(most: usize) -> RecentMap<V> {
        RecentMap {
            most: most.max(1),
            entries: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, key: u64) -> Option<&V> {
        self.entries.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: u64) -> Option<&mut V> {
        self.entries.get_mut(&key)
    }

    /// The entry of a key, made where there is none.
    pub(super) fn entry(&mut self, key: u64, make: impl FnOnce() -> V) -> &mut V {
        if !self.entries.contains_key(&key) {
            if self.order.len() >= self.most
                && let Some(oldest) = self.order.pop_front()
            {
                self.entries.remove(&oldest);
            }
            self.order.push_back(key);
        }
        self.entries.entry(key).or_insert_with(make)
    }
}

#[cfg(test)]
mod tests {
    use super::RecentMap;

    #[test]
    fn the_oldest_goes_when_it_is_full() {
        let mut recent = RecentMap::new(2);
        for key in [1, 2, 1, 3] {
            recent.entry(key, || key * 10);
        }
        assert_eq!(recent.get(1), None);
        assert_eq!((recent.get(2), recent.get(3)), (Some(&20), Some(&30)));
    }
}
