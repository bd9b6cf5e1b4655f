//! Rules by their heads, the text before a pattern's first wildcard: of many rules only those are
//! looked at whose head the path begins with.
//!
//! The heads are sorted, and each knows the longest other one that it begins with. The last head
//! that is not behind a path in this order begins with every head that the path begins with, so
//! these are found by one search and a walk from head to head.

/// No head.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct RuleHeads {
    /// In the order of their texts.
    heads: Box<[Head]>,
    /// The numbers of the rules, head by head.
    numbers: Box<[u32]>,
}

#[derive(Clone, Copy, Debug)]
struct Head {
    /// The place at which the numbers of its rules begin.
    first: u32,
    /// The longest other head that it begins with, or [`NONE`].
    within: u32,
}

impl RuleHeads {
    /// Sorts `count` rules by what `head` says of each number.
    pub(super) fn new<'a>(count: usize, head: impl Fn(u32) -> &'a [u8]) -> RuleHeads {
        let mut numbers: Vec<u32> = (0..narrow(count)).collect();
        numbers.sort_by_key(|number| head(*number));
        let mut heads: Vec<Head> = Vec::new();
        // Heads that begin one another, the longest last.
        let mut open: Vec<(u32, &[u8])> = Vec::new();
        for (first, number) in (0..).zip(&numbers) {
            let text = head(*number);
            if open.last().is_some_and(|(_, last)| *last == text) {
                continue;
            }
            while open.last().is_some_and(|(_, last)| !text.starts_with(last)) {
                open.pop();
            }
            let within = open.last().map_or(NONE, |(at, _)| *at);
            open.push((narrow(heads.len()), text));
            heads.push(Head { first, within });
        }
        RuleHeads {
            heads: heads.into(),
            numbers: numbers.into(),
        }
    }

    /// Calls `visit` with the numbers of the rules of each head that `path` begins with.
    pub(super) fn visit<'a>(
        &self,
        path: &[u8],
        head: impl Fn(u32) -> &'a [u8],
        mut visit: impl FnMut(&[u32]),
    ) {
        let text = |at: &Head| head(self.numbers[at.first as usize]);
        let behind = self.heads.partition_point(|at| text(at) <= path);
        let mut next = narrow(behind.wrapping_sub(1));
        while let Some(at) = self.heads.get(next as usize) {
            if path.starts_with(text(at)) {
                let behind = self.heads.get(next as usize + 1);
                let end = behind.map_or(self.numbers.len(), |head| head.first as usize);
                visit(&self.numbers[at.first as usize..end]);
            }
            next = at.within;
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.heads) + size_of_val(&*self.numbers)
    }

    /// The most that it takes for so many rules.
    pub(super) fn memory_bound(rules: usize) -> usize {
        rules * (size_of::<Head>() + size_of::<u32>())
    }
}

fn narrow(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(NONE)
}
