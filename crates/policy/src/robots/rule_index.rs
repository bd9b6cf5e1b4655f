//! An index over rules: a match costs the length of the path, not the number of rules.
//!
//! The text before a pattern's first wildcard goes into a trie, so that one walk down
//! the path finds every pattern without wildcards that matches, and every pattern with
//! wildcards that may. The parts behind the wildcards form trees: patterns that begin with
//! the same parts share them. One automaton (Aho and Corasick) finds all parts in one pass
//! over the path; a part that is found after its predecessor was reached is reached itself.
//! The leftmost place is right, so each part is reached once at most.

use std::collections::HashMap;

use super::active_trees::{Active, Live};
use super::pattern::WILD;
use super::rules::Weight;
use super::trie::{NONE, Trie};

/// The parts of a rule that the index knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Indexed<'a> {
    pub(super) pattern: &'a [u8],
    pub(super) anchored: bool,
    pub(super) weight: Weight,
}

#[derive(Debug)]
pub(super) struct Index {
    /// By the rules' numbers.
    weights: Box<[Weight]>,
    /// The text before the first wildcard.
    heads: Trie<Ends>,
    tails: Option<Box<Tails>>,
}

/// The parts of the rules lie so badly in a path that looking at the rules one by one is
/// quicker.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooMuchWork;

/// The rules at a node of the trie of heads. Numbers of rules, or [`NONE`].
#[derive(Clone, Copy, Debug)]
struct Ends {
    /// The weightiest rule that matches every path that gets here, of those above too.
    open: u32,
    /// The weightiest rule that matches the path that ends here.
    exact: u32,
    /// The tree of parts that may follow.
    tree: u32,
}

impl Default for Ends {
    fn default() -> Ends {
        Ends {
            open: NONE,
            exact: NONE,
            tree: NONE,
        }
    }
}

/// The parts behind wildcards.
#[derive(Debug)]
struct Tails {
    parts: Trie<Links>,
    /// Bytes with which a part begins.
    starts: [bool; 256],
    /// By part: its length, and where its steps begin; one more at the end.
    spans: Box<[(u32, u32)]>,
    /// By part, then by tree.
    steps: Box<[Step]>,
    /// By tree.
    trees: Box<[Tree]>,
}

/// The links of a node of the trie of parts.
#[derive(Clone, Copy, Debug)]
struct Links {
    /// The longest proper suffix that is a node too.
    fail: u32,
    /// The part that ends here, or [`NONE`].
    part: u32,
    /// The next node on the way of fails where a part ends, or [`NONE`].
    shorter: u32,
}

impl Default for Links {
    fn default() -> Links {
        Links {
            fail: 0,
            part: NONE,
            shorter: NONE,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Tree {
    /// The weight that no rule in it exceeds.
    heaviest: Weight,
    /// The number of steps that lead on from it.
    steps: u32,
}

/// From a tree over one part.
#[derive(Clone, Copy, Debug)]
struct Step {
    tree: u32,
    /// The tree of parts that follow, or [`NONE`].
    next: u32,
    /// The rule that matches once the part is found, or [`NONE`].
    open: u32,
    /// The rule that matches where the part ends the path, or [`NONE`].
    exact: u32,
}

impl Index {
    pub(super) fn new<'a>(rules: impl Iterator<Item = Indexed<'a>>) -> Index {
        Builder::default().build(rules)
    }

    /// The number of the rule that decides over a normal path.
    pub(super) fn decide(&self, path: &[u8]) -> Result<Option<u32>, TooMuchWork> {
        let best = match &self.tails {
            None => self.walk(path, |_, _| {}),
            Some(tails) => self.decide_with(tails, path)?,
        };
        Ok((best != NONE).then_some(best))
    }

    fn decide_with(&self, tails: &Tails, path: &[u8]) -> Result<u32, TooMuchWork> {
        let mut active = Active::default();
        let mut best = self.walk(path, |tree, at| {
            let steps = tails.trees[tree as usize].steps;
            active.push(tree, narrow(at), steps, tails.trees.len());
        });
        if best != NONE {
            let weight = self.weights[best as usize];
            active.retain(|tree| tails.trees[tree as usize].heaviest >= weight);
        }
        if !active.is_empty() {
            let patience = self.patience(path.len());
            tails.scan(path, &mut active, patience, |rule| {
                self.weigh(&mut best, rule);
            })?;
        }
        Ok(best)
    }

    /// The weightiest rule without wildcards; each tree that the path gets to is reported.
    #[inline]
    fn walk(&self, path: &[u8], mut reached: impl FnMut(u32, usize)) -> u32 {
        let (mut node, mut depth) = (0, 0);
        loop {
            let ends = self.heads.at(node);
            if ends.tree != NONE {
                reached(ends.tree, depth);
            }
            match self.heads.step(node, &path[depth..]) {
                Some((child, bytes)) => (node, depth) = (child, depth + bytes),
                None => {
                    let mut best = ends.open;
                    if depth == path.len() {
                        self.weigh(&mut best, ends.exact);
                    }
                    return best;
                }
            }
        }
    }

    /// The number of finds of parts that a path may bring: as many as cost what it costs to look at
    /// the rules one by one, where each part is sought along the whole path.
    fn patience(&self, path_bytes: usize) -> usize {
        8 * path_bytes + self.weights.len() * (1 + path_bytes / 64)
    }

    fn weigh(&self, best: &mut u32, rule: u32) {
        if rule == NONE {
            return;
        }
        *best = heavier(&self.weights, *best, rule);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let tails = self.tails.as_ref().map_or(0, |tails| tails.memory_bytes());
        size_of::<Index>() + size_of_val(&*self.weights) + self.heads.memory_bytes() + tails
    }
}

impl Tails {
    fn scan(
        &self,
        path: &[u8],
        active: &mut Active,
        mut patience: usize,
        mut matched: impl FnMut(u32),
    ) -> Result<(), TooMuchWork> {
        let first = active.first() as usize;
        let mut node = 0;
        for (at, &byte) in path.iter().enumerate().skip(first) {
            if node == 0 && !self.starts[byte as usize] {
                continue;
            }
            node = self.follow(node, byte);
            let mut end = match self.parts.at(node).part {
                NONE => self.parts.at(node).shorter,
                _ => node,
            };
            while end != NONE {
                let links = self.parts.at(end);
                let looked = self.found(links.part, at + 1, path.len(), active, &mut matched);
                patience = patience.checked_sub(looked).ok_or(TooMuchWork)?;
                end = links.shorter;
            }
        }
        Ok(())
    }

    fn follow(&self, mut node: u32, byte: u8) -> u32 {
        loop {
            match self.parts.child(node, byte) {
                Some(child) => return child,
                None if node == 0 => return 0,
                None => node = self.parts.at(node).fail,
            }
        }
    }

    /// A part ends before byte `end`: takes each step over it whose tree was reached before
    /// the part begins. How many steps or trees were looked at is returned.
    fn found(
        &self,
        part: u32,
        end: usize,
        path_end: usize,
        active: &mut Active,
        matched: &mut impl FnMut(u32),
    ) -> usize {
        let (bytes, first) = self.spans[part as usize];
        let begin = narrow(end) - bytes;
        let steps = &self.steps[first as usize..self.spans[part as usize + 1].1 as usize];
        // Whether the step need not be looked at again.
        let mut take = |step: &Step, active: &mut Active| {
            matched(step.open);
            if end == path_end {
                matched(step.exact);
            }
            if step.next == NONE || active.reached(step.next).is_some() {
                return false;
            }
            let next = self.trees[step.next as usize].steps;
            active.push(step.next, narrow(end), next, self.trees.len());
            step.exact == NONE
        };
        // The shorter list is gone through, the other one is searched.
        if steps.len() <= active.live() {
            for step in steps {
                if active.reached(step.tree).is_some_and(|at| at <= begin) {
                    take(step, active);
                }
            }
            return 1 + steps.len();
        }
        let looked = 1 + active.live();
        let mut n = 0;
        while let Some(Live { tree, at, .. }) = active.get(n) {
            let step = match at <= begin {
                true => steps.binary_search_by_key(&tree, |step| step.tree),
                false => Err(0),
            };
            let done = step.is_ok_and(|found| take(&steps[found], active));
            // A tree all of whose steps are taken is done with: the next takes its place.
            if !(done && active.step_taken(n)) {
                n += 1;
            }
        }
        looked
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Tails>()
            + self.parts.memory_bytes()
            + size_of_val(&*self.spans)
            + size_of_val(&*self.steps)
            + size_of_val(&*self.trees)
    }
}

#[derive(Default)]
struct Builder<'a> {
    weights: Vec<Weight>,
    /// Head, and what ends there.
    heads: Vec<(&'a [u8], End)>,
    /// Part by its bytes, in order of appearance.
    parts: HashMap<&'a [u8], u32>,
    /// Place in `steps` by tree and part.
    known: HashMap<(u32, u32), usize>,
    roots: HashMap<&'a [u8], u32>,
    steps: Vec<(u32, Step)>,
    trees: Vec<Tree>,
}

#[derive(Clone, Copy)]
enum End {
    Open(u32),
    Exact(u32),
    Tree(u32),
}

impl<'a> Builder<'a> {
    fn build(mut self, rules: impl Iterator<Item = Indexed<'a>>) -> Index {
        for (number, rule) in (0..).zip(rules) {
            self.weights.push(rule.weight);
            self.add(number, &rule);
        }
        for (head, tree) in std::mem::take(&mut self.roots) {
            self.heads.push((head, End::Tree(tree)));
        }
        self.heads.sort_by_key(|(head, _)| *head);
        let heads = self.heads();
        Index {
            tails: (!self.parts.is_empty()).then(|| Box::new(self.tails())),
            weights: self.weights.into(),
            heads,
        }
    }

    fn add(&mut self, number: u32, rule: &Indexed<'a>) {
        // A wildcard at the end changes nothing in what matches, nor does `$` behind it.
        let (pattern, anchored) = match rule.pattern {
            [pattern @ .., WILD] => (pattern, false),
            pattern => (pattern, rule.anchored),
        };
        let mut parts = pattern.split(|&b| b == WILD);
        let head = parts.next().unwrap_or_default();
        let mut parts = parts.peekable();
        if parts.peek().is_none() {
            let end = match anchored {
                true => End::Exact(number),
                false => End::Open(number),
            };
            return self.heads.push((head, end));
        }
        let fresh = self.trees.len();
        let mut tree = *self.roots.entry(head).or_insert(narrow(fresh));
        self.reserve_tree(tree);
        while let Some(part) = parts.next() {
            let heaviest = &mut self.trees[tree as usize].heaviest;
            *heaviest = rule.weight.max(*heaviest);
            let at = self.step(tree, part);
            if parts.peek().is_some() {
                if self.steps[at].1.next == NONE {
                    self.steps[at].1.next = narrow(self.trees.len());
                }
                tree = self.steps[at].1.next;
                self.reserve_tree(tree);
                continue;
            }
            let step = &mut self.steps[at].1;
            let slot = match anchored {
                true => &mut step.exact,
                false => &mut step.open,
            };
            *slot = heavier(&self.weights, *slot, number);
        }
    }

    fn reserve_tree(&mut self, tree: u32) {
        if tree as usize == self.trees.len() {
            self.trees.push(Tree::default());
        }
    }

    fn step(&mut self, tree: u32, part: &'a [u8]) -> usize {
        let fresh = narrow(self.parts.len());
        let part = *self.parts.entry(part).or_insert(fresh);
        let (steps, trees) = (&mut self.steps, &mut self.trees);
        *self.known.entry((tree, part)).or_insert_with(|| {
            trees[tree as usize].steps += 1;
            let step = Step {
                tree,
                next: NONE,
                open: NONE,
                exact: NONE,
            };
            steps.push((part, step));
            steps.len() - 1
        })
    }

    fn heads(&self) -> Trie<Ends> {
        let mut keys = self.heads.iter().map(|(head, _)| *head);
        let (mut trie, nodes) = Trie::<Ends>::compressed(&mut keys);
        for (&(_, end), &node) in self.heads.iter().zip(&nodes) {
            let ends = trie.at_mut(node);
            match end {
                End::Open(rule) => ends.open = heavier(&self.weights, ends.open, rule),
                End::Exact(rule) => ends.exact = heavier(&self.weights, ends.exact, rule),
                End::Tree(tree) => ends.tree = tree,
            }
        }
        // Parents come before their children.
        for node in 0..narrow(trie.len()) {
            let open = trie.at(node).open;
            if open != NONE {
                for child in trie.children(node) {
                    let ends = trie.at_mut(child);
                    ends.open = heavier(&self.weights, ends.open, open);
                }
            }
        }
        trie
    }

    fn tails(&mut self) -> Tails {
        let mut parts: Vec<_> = std::mem::take(&mut self.parts).into_iter().collect();
        parts.sort_unstable();
        let (mut trie, nodes) = Trie::<Links>::plain(&mut parts.iter().map(|(bytes, _)| *bytes));
        let mut starts = [false; 256];
        // Parts are numbered anew, in their order; steps follow.
        let mut renamed = vec![0; parts.len()];
        let mut spans = Vec::with_capacity(parts.len() + 1);
        for (number, ((bytes, old), node)) in parts.iter().zip(&nodes).enumerate() {
            trie.at_mut(*node).part = narrow(number);
            renamed[*old as usize] = narrow(number);
            spans.push((narrow(bytes.len()), 0));
            if let Some(&first) = bytes.first() {
                starts[first as usize] = true;
            }
        }
        spans.push((0, 0));
        for (part, _) in &mut self.steps {
            *part = renamed[*part as usize];
            spans[*part as usize + 1].1 += 1;
        }
        for n in 1..spans.len() {
            spans[n].1 += spans[n - 1].1;
        }
        self.steps
            .sort_unstable_by_key(|(part, step)| (*part, step.tree));
        link(&mut trie);
        Tails {
            parts: trie,
            starts,
            spans: spans.into(),
            steps: self.steps.iter().map(|(_, step)| *step).collect(),
            trees: std::mem::take(&mut self.trees).into(),
        }
    }
}

/// Sets the two ways back of the automaton. Nodes are in order of depth.
fn link(trie: &mut Trie<Links>) {
    for node in 0..narrow(trie.len()) {
        for child in trie.children(node) {
            let byte = trie.first_byte(child);
            let mut back = node;
            let fail = loop {
                if back == 0 {
                    break 0;
                }
                back = trie.at(back).fail;
                if let Some(found) = trie.child(back, byte) {
                    break found;
                }
            };
            let shorter = match *trie.at(fail) {
                Links {
                    part: NONE,
                    shorter,
                    ..
                } => shorter,
                _ => fail,
            };
            let links = trie.at_mut(child);
            (links.fail, links.shorter) = (fail, shorter);
        }
    }
}

/// The rule of more weight; of equal ones the earlier.
#[inline]
fn heavier(weights: &[Weight], one: u32, other: u32) -> u32 {
    if one == NONE {
        return other;
    }
    let (first, second) = (one.min(other), one.max(other));
    match weights[second as usize] > weights[first as usize] {
        true => second,
        false => first,
    }
}

fn narrow(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(NONE)
}
