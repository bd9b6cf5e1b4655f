//! Items with small stable indices, for hosts and gates (shared limits). Indices are reused.

use std::ops::{Index, IndexMut};

/// Items per allocation. A slab grows by one such allocation at a time, so items never move, and
/// memory use never doubles for millions of hosts.
const PART: usize = 1024;

/// A collection of items with small stable indices, which are reused after removal.
pub(crate) struct Slab<T> {
    /// All parts but the last are full.
    parts: Vec<Vec<Option<T>>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Slab<T> {
        Slab {
            parts: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(crate) fn insert(&mut self, item: T) -> u32 {
        if let Some(id) = self.free.pop() {
            *self
                .place(id)
                .expect("invariant: a free number was given out once") = Some(item);
            return id;
        }
        if self.parts.last().is_none_or(|part| part.len() == PART) {
            // Start with a small allocation that grows, because most crawls have few hosts.
            let capacity = if self.parts.is_empty() { 0 } else { PART };
            self.parts.push(Vec::with_capacity(capacity));
        }
        let full = self.parts.len() - 1;
        let part = &mut self.parts[full];
        let id = full * PART + part.len();
        part.push(Some(item));
        u32::try_from(id).expect("invariant: memory ends before 2^32 hosts")
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<T> {
        let item = self.place(id)?.take()?;
        self.free.push(id);
        Some(item)
    }

    pub(crate) fn get(&self, id: u32) -> Option<&T> {
        let (part, place) = split(id);
        self.parts.get(part)?.get(place)?.as_ref()
    }

    /// Returns the items in order of their indices.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.parts.iter().flatten().flatten()
    }

    /// Returns the indices in use, in order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> {
        let places = self.parts.iter().flatten().zip(0..);
        places.filter_map(|(item, id)| item.is_some().then_some(id))
    }

    fn place(&mut self, id: u32) -> Option<&mut Option<T>> {
        let (part, place) = split(id);
        self.parts.get_mut(part)?.get_mut(place)
    }
}

fn split(id: u32) -> (usize, usize) {
    (id as usize / PART, id as usize % PART)
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, id: u32) -> &T {
        let (part, place) = split(id);
        self.parts[part][place]
            .as_ref()
            .expect("invariant: a number is kept only as long as its item")
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, id: u32) -> &mut T {
        let (part, place) = split(id);
        self.parts[part][place]
            .as_mut()
            .expect("invariant: a number is kept only as long as its item")
    }
}

#[cfg(test)]
mod tests {
    use super::{PART, Slab};

    #[test]
    fn each_index_leads_to_its_item_beyond_the_first_part_too() {
        let count = 2 * PART + 10;
        let mut slab = Slab::new();
        let numbers: Vec<u32> = (0..count).map(|item| slab.insert(item)).collect();
        for (item, number) in numbers.iter().enumerate() {
            assert_eq!(slab.get(*number), Some(&item));
            assert_eq!(slab[*number], item);
        }
        assert!(slab.iter().copied().eq(0..count));
        // A freed index is reused first.
        let freed = numbers[PART + 1];
        assert_eq!(slab.remove(freed), Some(PART + 1));
        assert_eq!(slab.get(freed), None);
        assert_eq!(slab.remove(freed), None);
        assert_eq!(slab.insert(7), freed);
        assert_eq!(slab[freed], 7);
    }
}
