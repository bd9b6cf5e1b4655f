//! Sorts rules by their heads. The head is the text before a pattern's first wildcard. A rule can
//! match a path only if its head is a prefix of the path.
//!
//! Each head links to the longest other head that is a prefix of it. To find all heads that are a
//! prefix of a path, a binary search finds the last head that is not after the path in sorted
//! order. All wanted heads are prefixes of that head (or the head itself), so a walk along its
//! links finds them.

/// A value of `within` that means "no head".
const NONE: u32 = u32::MAX;

/// An index of rules by their heads (the texts before the first wildcard). The index finds the
/// rules whose heads are a prefix of a path.
#[derive(Debug)]
pub(super) struct RulePrefixIndex {
    /// The heads (the texts before the first wildcard), sorted by text.
    heads: Box<[RulePrefix]>,
    /// The indices of the rules, grouped by head (the text before the first wildcard).
    numbers: Box<[u32]>,
}

/// The text before the first wildcard of one or several rules.
#[derive(Clone, Copy, Debug)]
struct RulePrefix {
    /// The position in `numbers` of the first rule with this head.
    first: u32,
    /// The index in `heads` of the longest other head that is a prefix of this one, or [`NONE`].
    within: u32,
}

impl RulePrefixIndex {
    /// Sorts `count` rules by their heads. `head` returns the head of a rule (the text before its
    /// first wildcard) by the rule's index.
    pub(super) fn new<'a>(count: usize, head: impl Fn(u32) -> &'a [u8]) -> RulePrefixIndex {
        let mut numbers: Vec<u32> = (0..narrow(count)).collect();
        numbers.sort_by_key(|number| head(*number));
        let mut heads: Vec<RulePrefix> = Vec::new();
        // A stack of heads. Each head is a prefix of the next.
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
            heads.push(RulePrefix { first, within });
        }
        RulePrefixIndex {
            heads: heads.into(),
            numbers: numbers.into(),
        }
    }

    /// Calls `visit` once per head that is a prefix of `path`, with the indices of that head's
    /// rules.
    pub(super) fn visit<'a>(
        &self,
        path: &[u8],
        head: impl Fn(u32) -> &'a [u8],
        mut visit: impl FnMut(&[u32]),
    ) {
        let text = |at: &RulePrefix| head(self.numbers[at.first as usize]);
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

    /// Returns the maximum memory for this many rules.
    pub(super) fn memory_bound(rules: usize) -> usize {
        rules * (size_of::<RulePrefix>() + size_of::<u32>())
    }
}

fn narrow(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(NONE)
}
