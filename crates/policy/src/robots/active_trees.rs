//! The trees of parts that have been reached while a path is matched.

use super::trie::NONE;

/// Few trees are reached as a rule: then no memory is asked for.
const FEW: usize = 12;

#[derive(Default)]
pub(super) struct Active {
    /// Trees and where they were reached; with many of them, `places` takes over.
    seen: Few<(u32, u32)>,
    /// By tree: where it was reached, or [`NONE`].
    places: Vec<u32>,
    /// Those that still have steps to take.
    live: Few<Live>,
}

/// A tree that has been reached.
#[derive(Clone, Copy, Default)]
pub(super) struct Live {
    pub(super) tree: u32,
    /// The place in the path.
    pub(super) at: u32,
    /// Steps not yet taken for good.
    left: u32,
}

impl Active {
    /// A tree is reached, one of `trees`.
    pub(super) fn push(&mut self, tree: u32, at: u32, steps: u32, trees: usize) {
        if self.places.is_empty() && self.seen.as_slice().len() == FEW {
            self.places = vec![NONE; trees];
            for &(tree, at) in self.seen.as_slice() {
                self.places[tree as usize] = at;
            }
        }
        match self.places.get_mut(tree as usize) {
            Some(place) => *place = at,
            None => self.seen.push((tree, at)),
        }
        let left = steps;
        self.live.push(Live { tree, at, left });
    }

    /// The place at which a tree was reached.
    pub(super) fn reached(&self, tree: u32) -> Option<u32> {
        if !self.places.is_empty() {
            return Some(self.places[tree as usize]).filter(|&at| at != NONE);
        }
        let mut seen = self.seen.as_slice().iter();
        seen.find(|(known, _)| *known == tree).map(|(_, at)| *at)
    }

    pub(super) fn get(&self, n: usize) -> Option<Live> {
        self.live.as_slice().get(n).copied()
    }

    /// A step of the `n`th live tree is taken. True where it was the last: then another tree
    /// has taken its place.
    pub(super) fn step_taken(&mut self, n: usize) -> bool {
        let live = &mut self.live.as_mut_slice()[n];
        live.left = live.left.saturating_sub(1);
        let last = live.left == 0;
        if last {
            self.live.swap_remove(n);
        }
        last
    }

    /// Keeps some of the trees that the walk has reached.
    pub(super) fn retain(&mut self, keep: impl Fn(u32) -> bool) {
        let mut n = 0;
        while let Some(live) = self.get(n) {
            match keep(live.tree) {
                true => n += 1,
                false => self.live.swap_remove(n),
            }
        }
    }

    /// The first place where a live tree was reached.
    pub(super) fn first(&self) -> u32 {
        let places = self.live.as_slice().iter().map(|live| live.at);
        places.min().unwrap_or_default()
    }

    pub(super) fn live(&self) -> usize {
        self.live.as_slice().len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.live() == 0
    }
}

/// A list that needs no memory of its own while it is short.
struct Few<T> {
    few: [T; FEW],
    len: usize,
    // All of them, once they are more.
    more: Vec<T>,
}

impl<T: Copy + Default> Default for Few<T> {
    fn default() -> Few<T> {
        Few {
            few: [T::default(); FEW],
            len: 0,
            more: Vec::new(),
        }
    }
}

impl<T: Copy + Default> Few<T> {
    fn push(&mut self, item: T) {
        match self.few.get_mut(self.len) {
            Some(place) if self.more.is_empty() => {
                *place = item;
                self.len += 1;
            }
            _ => {
                if self.more.is_empty() {
                    self.more.extend_from_slice(&self.few);
                }
                self.more.push(item);
            }
        }
    }

    fn swap_remove(&mut self, n: usize) {
        if !self.more.is_empty() {
            self.more.swap_remove(n);
            if self.more.is_empty() {
                self.len = 0;
            }
            return;
        }
        self.len -= 1;
        self.few.swap(n, self.len);
    }

    fn as_slice(&self) -> &[T] {
        match self.more.is_empty() {
            true => &self.few[..self.len],
            false => &self.more,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [T] {
        match self.more.is_empty() {
            true => &mut self.few[..self.len],
            false => &mut self.more,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Active, FEW};

    #[test]
    fn many_trees_are_kept_as_few_are() {
        let few = FEW as u32;
        for count in [1, few, few + 1, 3 * few] {
            let mut active = Active::default();
            for tree in 0..count {
                active.push(tree, tree + 5, 2, 100);
            }
            assert_eq!((active.live(), active.first()), (count as usize, 5));
            active.retain(|tree| tree % 2 == 0);
            let left = count.div_ceil(2);
            assert_eq!(active.live(), left as usize);
            // Each has two steps to take, and then another takes its place.
            for _ in 0..left {
                assert!(!active.step_taken(0));
                assert!(active.step_taken(0));
            }
            assert!(active.is_empty());
            // Where a tree was reached stays known.
            assert_eq!(active.reached(count - 1), Some(count + 4));
            assert_eq!(active.reached(count), None);
        }
    }
}
