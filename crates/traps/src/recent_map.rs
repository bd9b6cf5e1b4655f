//! A map that drops its oldest entry when it is full.

/// A map with a maximum number of entries. When it is full, a new entry replaces the oldest one.
/// Keys are hashes.
///
/// Each host has maps of thousands of entries, so the overhead must be small: four to eight bytes
/// per entry. Entries are stored in insertion order, and a hash table of their positions finds
/// them.
#[derive(Debug)]
pub(super) struct RecentMap<V> {
    capacity: usize,
    /// The entries in insertion order. Once the map is full, the vector is a ring.
    entries: Vec<(u64, V)>,
    /// The position of the oldest entry.
    oldest: usize,
    /// The hash table. A slot contains the position of an entry, counted from 1, or 0 if the slot
    /// is free. The entry of a key is found between the key's own slot and the next free slot. The
    /// number of slots is a power of two, and at least half of them are free.
    slots: Vec<u16>,
}

/// The number of slots of a table when it is created.
const FIRST_SLOTS: usize = 8;

impl<V> RecentMap<V> {
    /// Creates a map of at most `capacity` entries. A larger capacity than 65,535 is reduced to
    /// 65,535.
    pub(super) fn new(capacity: usize) -> RecentMap<V> {
        RecentMap {
            capacity: capacity.clamp(1, usize::from(u16::MAX)),
            entries: Vec::new(),
            oldest: 0,
            slots: vec![0; FIRST_SLOTS],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, key: u64) -> Option<&V> {
        self.place(key).map(|place| &self.entries[place].1)
    }

    pub(super) fn get_mut(&mut self, key: u64) -> Option<&mut V> {
        self.place(key).map(|place| &mut self.entries[place].1)
    }

    /// Returns the entry of a key. If there is none, inserts one.
    pub(super) fn entry(&mut self, key: u64, make: impl FnOnce() -> V) -> &mut V {
        let place = match self.place(key) {
            Some(place) => place,
            None => self.put(key, make()),
        };
        &mut self.entries[place].1
    }

    fn place(&self, key: u64) -> Option<usize> {
        usize::from(self.slots[self.slot(key)]).checked_sub(1)
    }

    /// Inserts an entry whose key is not in the map. Returns the entry's position.
    fn put(&mut self, key: u64, value: V) -> usize {
        let place = match self.entries.len() < self.capacity {
            true => {
                self.entries.push((key, value));
                self.entries.len() - 1
            }
            false => {
                let place = self.oldest;
                self.vacate(self.slot(self.entries[place].0));
                self.entries[place] = (key, value);
                self.oldest = (place + 1) % self.capacity;
                place
            }
        };
        if 2 * self.entries.len() > self.slots.len() {
            self.slots = vec![0; 2 * self.slots.len()];
            for place in 0..self.entries.len() {
                self.occupy(place);
            }
        } else {
            self.occupy(place);
        }
        place
    }

    fn occupy(&mut self, place: usize) {
        let slot = self.slot(self.entries[place].0);
        self.slots[slot] = (place + 1) as u16;
    }

    /// Returns the slot that contains the position of a key's entry. If the key is missing, returns
    /// the free slot where it would go.
    fn slot(&self, key: u64) -> usize {
        let mut slot = self.own_slot(key);
        loop {
            match usize::from(self.slots[slot]).checked_sub(1) {
                Some(place) if self.entries[place].0 != key => slot = self.next(slot),
                _ => return slot,
            }
        }
    }

    /// Frees a slot. A search ends at the first free slot, so moves up those of the following
    /// entries that a search could otherwise no longer reach.
    fn vacate(&mut self, mut free: usize) {
        let mut slot = self.next(free);
        while let Some(place) = usize::from(self.slots[slot]).checked_sub(1) {
            let own = self.own_slot(self.entries[place].0);
            if self.steps(own, slot) >= self.steps(free, slot) {
                self.slots[free] = self.slots[slot];
                free = slot;
            }
            slot = self.next(slot);
        }
        self.slots[free] = 0;
    }

    fn own_slot(&self, key: u64) -> usize {
        key as usize & (self.slots.len() - 1)
    }

    fn next(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }

    fn steps(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.slots.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::RecentMap;

    #[test]
    fn the_oldest_entry_is_dropped_when_full() {
        let mut recent = RecentMap::new(2);
        for key in [1, 2, 1, 3] {
            recent.entry(key, || key * 10);
        }
        assert_eq!(recent.get(1), None);
        assert_eq!((recent.get(2), recent.get(3)), (Some(&20), Some(&30)));
    }

    proptest! {
        /// Uses few different keys and slots, so that most keys collide.
        #[test]
        fn the_map_equals_a_list_of_the_latest_entries(
            capacity in 1..20_usize,
            keys in prop::collection::vec((0..8_u64, 0..6_u64), 0..200),
        ) {
            let mut recent = RecentMap::new(capacity);
            let mut latest: VecDeque<(u64, usize)> = VecDeque::new();
            for (number, (high, low)) in keys.into_iter().enumerate() {
                let key = high << 32 | low;
                let stored = latest.iter().find(|(stored, _)| *stored == key).copied();
                prop_assert_eq!(*recent.entry(key, || number), stored.map_or(number, |stored| stored.1));
                if stored.is_none() {
                    latest.push_back((key, number));
                    if latest.len() > capacity {
                        latest.pop_front();
                    }
                }
                prop_assert_eq!(recent.len(), latest.len());
                for key in (0..8).flat_map(|high| (0..6).map(move |low| high << 32 | low)) {
                    let stored = latest.iter().find(|(stored, _)| *stored == key);
                    prop_assert_eq!(recent.get(key), stored.map(|(_, number)| number));
                    prop_assert_eq!(recent.get_mut(key).copied(), stored.map(|(_, number)| *number));
                }
            }
        }
    }
}
