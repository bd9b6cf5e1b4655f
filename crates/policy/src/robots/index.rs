//! An index over rules: a match costs the length of the path, not the number of rules.
//!
//! What stands before a pattern's first wildcard goes into a trie, so that one walk down
//! the path finds every pattern without wildcards that matches, and every pattern with
//! wildcards that may. The parts behind the wildcards form trees: patterns that begin with
//! the same parts share them. One automaton (Aho and Corasick) finds all parts in one pass
//! over the path; a part that is found after its predecessor was reached is reached itself.
//! The leftmost place is right, so each part is reached once at most.

use std::collections::HashMap;

use super::active::{Active, Live};
use super::pattern::{Shape, WILD};
use super::rules::outweighs;
use super::trie::{NONE, Trie};

/// What the index knows of a rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Indexed<'a> {
    pub(super) pattern: &'a [u8],
    pub(super) shape: Shape,
    pub(super) allow: bool,
}

#[derive(Debug)]
pub(super) struct Index {
    /// Weights of the rules, by their number.
    weights: Box<[(u32, bool)]>,
    /// What stands before the first wildcard.
    heads: Trie,
    /// By node of `heads`.
    ends: Box<[Ends]>,
    tails: Option<Box<Tails>>,
}

/// What a node of the trie of heads means. Numbers of rules, or [`NONE`].
#[derive(Clone, Copy, Debug)]
struct Ends {
    /// The weightiest rule that matches every path that gets here, of those above too.
    open: u32,
    /// The weightiest rule that matches the path that ends here.
    exact: u32,
    /// The tree of parts that may follow.
    tree: u32,
}

/// The parts behind wildcards.
#[derive(Debug)]
struct Tails {
    parts: Trie,
    /// By node of `parts`: the longest proper suffix that is a node too.
    fails: Box<[u32]>,
    /// By node of `parts`: the part that ends here, or [`NONE`].
    part: Box<[u32]>,
    /// By node of `parts`: the next node on the way of fails where a part ends, or [`NONE`].
    shorter: Box<[u32]>,
    /// By node of `parts`: itself where a part ends there, else as `shorter`.
    ends: Box<[u32]>,
    /// Octets with which a part begins.
    starts: Box<[bool; 256]>,
    /// The automaton as a table, where that is small.
    table: Option<Table>,
    /// By part: its length, and where its steps begin; one more at the end.
    spans: Box<[(u32, u32)]>,
    /// By part, then by tree.
    steps: Box<[Step]>,
    /// By tree.
    trees: Box<[Tree]>,
}

/// One look-up for an octet, instead of a search among children and ways back.
#[derive(Debug)]
struct Table {
    /// By octet: its column. Octets that stand in no part share the first.
    column: Box<[u8; 256]>,
    columns: usize,
    /// By node and column: the row of the node that follows, and [`FOUND`].
    next: Box<[u16]>,
}

/// A part ends at the node that follows.
const FOUND: u16 = 0x8000;

/// A larger table would cost more memory than the files it speaks for.
const MAX_TABLE: usize = 4096;

#[derive(Clone, Copy, Debug, Default)]
struct Tree {
    /// The weight that no rule in it exceeds.
    heaviest: u32,
    /// How many steps lead on from it.
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
    pub(super) fn decide(&self, path: &[u8]) -> Option<u32> {
        let best = match &self.tails {
            None => self.walk(path, |_, _| {}),
            Some(tails) => self.decide_with(tails, path),
        };
        (best != NONE).then_some(best)
    }

    fn decide_with(&self, tails: &Tails, path: &[u8]) -> u32 {
        let mut active = Active::default();
        let mut best = self.walk(path, |tree, at| {
            let steps = tails.trees[tree as usize].steps;
            active.push(tree, narrow(at), steps, tails.trees.len());
        });
        if best != NONE {
            let weight = self.weights[best as usize].0;
            active.retain(|tree| tails.trees[tree as usize].heaviest >= weight);
        }
        if !active.is_empty() {
            tails.scan(path, &mut active, |rule| self.weigh(&mut best, rule));
        }
        best
    }

    /// The weightiest rule without wildcards; each tree that the path gets to is reported.
    #[inline]
    fn walk(&self, path: &[u8], mut reached: impl FnMut(u32, usize)) -> u32 {
        let (mut node, mut depth) = (0, 0);
        loop {
            let ends = self.ends[node as usize];
            if ends.tree != NONE {
                reached(ends.tree, depth);
            }
            match self.heads.step(node, &path[depth..]) {
                Some((child, octets)) => (node, depth) = (child, depth + octets),
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

    fn weigh(&self, best: &mut u32, rule: u32) {
        if rule == NONE {
            return;
        }
        *best = heavier(&self.weights, *best, rule);
    }

    pub(super) fn memory_octets(&self) -> usize {
        let tails = self.tails.as_ref().map_or(0, |tails| tails.memory_octets());
        size_of::<Index>()
            + size_of_val(&*self.weights)
            + size_of_val(&*self.ends)
            + self.heads.memory_octets()
            + tails
    }
}

impl Tails {
    fn scan(&self, path: &[u8], active: &mut Active, mut matched: impl FnMut(u32)) {
        let first = active.first() as usize;
        let (mut node, mut row) = (0, 0);
        for (at, &octet) in path.iter().enumerate().skip(first) {
            match &self.table {
                Some(table) => {
                    let next = table.next[row + table.column[octet as usize] as usize];
                    row = (next & !FOUND) as usize;
                    if next & FOUND == 0 {
                        continue;
                    }
                    node = narrow(row / table.columns);
                }
                None if node == 0 && !self.starts[octet as usize] => continue,
                None => node = self.follow(node, octet),
            }
            let mut end = self.ends[node as usize];
            while end != NONE {
                let part = self.part[end as usize];
                self.found(part, at + 1, path.len(), active, &mut matched);
                end = self.shorter[end as usize];
            }
        }
    }

    fn follow(&self, mut node: u32, octet: u8) -> u32 {
        loop {
            match self.parts.child(node, octet) {
                Some(child) => return child,
                None if node == 0 => return 0,
                None => node = self.fails[node as usize],
            }
        }
    }

    /// A part ends before octet `end`: takes each step over it whose tree was reached before
    /// the part begins.
    fn found(
        &self,
        part: u32,
        end: usize,
        path_end: usize,
        active: &mut Active,
        matched: &mut impl FnMut(u32),
    ) {
        let (octets, first) = self.spans[part as usize];
        let begin = narrow(end) - octets;
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
            return;
        }
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
    }

    fn memory_octets(&self) -> usize {
        size_of::<Tails>()
            + self.parts.memory_octets()
            + size_of_val(&*self.fails)
            + size_of_val(&*self.part)
            + size_of_val(&*self.shorter)
            + size_of_val(&*self.ends)
            + size_of_val(&*self.starts)
            + self
                .table
                .as_ref()
                .map_or(0, |table| 256 + 2 * table.next.len())
            + size_of_val(&*self.spans)
            + size_of_val(&*self.steps)
            + size_of_val(&*self.trees)
    }
}

#[derive(Default)]
struct Builder<'a> {
    weights: Vec<(u32, bool)>,
    /// Head, and what ends there.
    heads: Vec<(&'a [u8], End)>,
    /// Part by its octets, in order of appearance.
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
            self.weights.push((rule.shape.octets, rule.allow));
            self.add(number, &rule);
        }
        for (head, tree) in std::mem::take(&mut self.roots) {
            self.heads.push((head, End::Tree(tree)));
        }
        self.heads.sort_by_key(|(head, _)| *head);
        let (heads, nodes) = Trie::compressed(&mut self.heads.iter().map(|(head, _)| *head));
        let ends = self.ends(&heads, &nodes);
        Index {
            tails: (!self.parts.is_empty()).then(|| Box::new(self.tails())),
            weights: self.weights.into(),
            heads,
            ends,
        }
    }

    fn add(&mut self, number: u32, rule: &Indexed<'a>) {
        // A wildcard at the end changes nothing in what matches, nor does `$` behind it.
        let (pattern, anchored) = match rule.pattern {
            [pattern @ .., WILD] => (pattern, false),
            pattern => (pattern, rule.shape.anchored),
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
            *heaviest = rule.shape.octets.max(*heaviest);
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

    /// `nodes` holds the node of each head, in their order.
    fn ends(&self, trie: &Trie, nodes: &[u32]) -> Box<[Ends]> {
        let none = Ends {
            open: NONE,
            exact: NONE,
            tree: NONE,
        };
        let mut ends = vec![none; trie.len()];
        for (&(_, end), &node) in self.heads.iter().zip(nodes) {
            let ends = &mut ends[node as usize];
            match end {
                End::Open(rule) => ends.open = heavier(&self.weights, ends.open, rule),
                End::Exact(rule) => ends.exact = heavier(&self.weights, ends.exact, rule),
                End::Tree(tree) => ends.tree = tree,
            }
        }
        // Parents come before their children.
        for node in 0..trie.len() {
            let open = ends[node].open;
            if open != NONE {
                for child in trie.children(narrow(node)) {
                    let slot = &mut ends[child as usize].open;
                    *slot = heavier(&self.weights, *slot, open);
                }
            }
        }
        ends.into()
    }

    fn tails(&mut self) -> Tails {
        let mut parts: Vec<_> = std::mem::take(&mut self.parts).into_iter().collect();
        parts.sort_unstable();
        let (trie, nodes) = Trie::plain(&mut parts.iter().map(|(octets, _)| *octets));
        let mut part = vec![NONE; trie.len()];
        let mut starts = Box::new([false; 256]);
        // Parts are numbered anew, in their order; steps follow.
        let mut renamed = vec![0; parts.len()];
        let mut spans = Vec::with_capacity(parts.len() + 1);
        for (number, ((octets, old), node)) in parts.iter().zip(&nodes).enumerate() {
            part[*node as usize] = narrow(number);
            renamed[*old as usize] = narrow(number);
            spans.push((narrow(octets.len()), 0));
            if let Some(&first) = octets.first() {
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
        let (fails, shorter) = fails(&trie, &part);
        let ends = (0..).zip(&part).map(|(node, &part)| match part {
            NONE => shorter[node as usize],
            _ => node,
        });
        let ends: Box<[u32]> = ends.collect();
        Tails {
            table: Table::new(&trie, &fails, &ends),
            ends,
            parts: trie,
            fails,
            part: part.into(),
            shorter,
            starts,
            spans: spans.into(),
            steps: self.steps.iter().map(|(_, step)| *step).collect(),
            trees: std::mem::take(&mut self.trees).into(),
        }
    }
}

impl Table {
    fn new(trie: &Trie, fails: &[u32], ends: &[u32]) -> Option<Table> {
        let mut column = Box::new([0; 256]);
        let mut columns = 1;
        for node in 1..narrow(trie.len().min(MAX_TABLE)) {
            let known = &mut column[trie.first_octet(node) as usize];
            if *known == 0 {
                *known = u8::try_from(columns).ok()?;
                columns += 1;
            }
        }
        if trie.len() * columns > MAX_TABLE {
            return None;
        }
        let mut next: Vec<u16> = vec![0; trie.len() * columns];
        for (node, &fail) in fails.iter().enumerate() {
            let row = node * columns;
            // The way back is shorter, so its row is done.
            let fail = fail as usize * columns;
            next.copy_within(fail..fail + columns, row);
            for child in trie.children(narrow(node)) {
                let column = column[trie.first_octet(child) as usize] as usize;
                let found = match ends[child as usize] {
                    NONE => 0,
                    _ => FOUND,
                };
                next[row + column] = u16::try_from(child as usize * columns).ok()? | found;
            }
        }
        Some(Table {
            column,
            columns,
            next: next.into(),
        })
    }
}

/// The two ways back of the automaton. Nodes are in order of depth.
fn fails(trie: &Trie, part: &[u32]) -> (Box<[u32]>, Box<[u32]>) {
    let mut fails = vec![0; trie.len()];
    let mut shorter = vec![NONE; trie.len()];
    for node in 0..narrow(trie.len()) {
        for child in trie.children(node) {
            let octet = trie.first_octet(child);
            let mut back = node;
            let fail = loop {
                if back == 0 {
                    break 0;
                }
                back = fails[back as usize];
                if let Some(found) = trie.child(back, octet) {
                    break found;
                }
            };
            fails[child as usize] = fail;
            shorter[child as usize] = match part[fail as usize] {
                NONE => shorter[fail as usize],
                _ => fail,
            };
        }
    }
    (fails.into(), shorter.into())
}

/// The rule of more weight; of equal ones the earlier.
#[inline]
fn heavier(weights: &[(u32, bool)], one: u32, other: u32) -> u32 {
    if one == NONE {
        return other;
    }
    let (first, second) = (one.min(other), one.max(other));
    match outweighs(weights[second as usize], weights[first as usize]) {
        true => second,
        false => first,
    }
}

fn narrow(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(NONE)
}
