//! A trie in arrays: nodes in order of depth, the children of a node side by side. What a
//! node means to the trie's user lies in the node itself, so that a step down touches little
//! memory.

/// No node, no rule, no part.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Trie<T> {
    nodes: Box<[Node<T>]>,
    /// By node: the first byte of its label, for searching among siblings.
    firsts: Box<[u8]>,
    labels: Box<[u8]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node<T> {
    /// The value of the node.
    meaning: T,
    /// The label's bytes behind the first: where they begin in `labels`, how many.
    label: u32,
    label_bytes: u32,
    first_child: u32,
    children: u32,
}

impl<T: Copy + Default> Trie<T> {
    /// Builds a trie whose nodes' labels are as long as can be. `keys` are sorted and may
    /// repeat; the node of each is returned.
    pub(super) fn compressed(keys: &mut dyn Iterator<Item = &[u8]>) -> (Trie<T>, Vec<u32>) {
        build(keys, usize::MAX)
    }

    /// Builds a trie with one byte to a node.
    pub(super) fn plain(keys: &mut dyn Iterator<Item = &[u8]>) -> (Trie<T>, Vec<u32>) {
        build(keys, 1)
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn children(&self, node: u32) -> std::ops::Range<u32> {
        let node = &self.nodes[node as usize];
        node.first_child..node.first_child + node.children
    }

    #[inline]
    pub(super) fn at(&self, node: u32) -> &T {
        &self.nodes[node as usize].meaning
    }

    pub(super) fn at_mut(&mut self, node: u32) -> &mut T {
        &mut self.nodes[node as usize].meaning
    }

    pub(super) fn first_byte(&self, node: u32) -> u8 {
        self.firsts[node as usize]
    }

    /// The child whose label begins with `byte`.
    #[inline]
    pub(super) fn child(&self, node: u32, byte: u8) -> Option<u32> {
        let Node {
            first_child,
            children,
            ..
        } = self.nodes[node as usize];
        let siblings = &self.firsts[first_child as usize..(first_child + children) as usize];
        let place = match siblings.len() {
            0 => None,
            1..=8 => siblings.iter().position(|&first| first == byte),
            _ => siblings.binary_search(&byte).ok(),
        };
        place.map(|place| first_child + place as u32)
    }

    /// The child whose whole label `rest` begins with, and the label's length.
    #[inline]
    pub(super) fn step(&self, node: u32, rest: &[u8]) -> Option<(u32, usize)> {
        let (&first, behind) = rest.split_first()?;
        let child = self.child(node, first)?;
        let found = &self.nodes[child as usize];
        let bytes = found.label_bytes as usize;
        let label = &self.labels[found.label as usize..][..bytes];
        let begins = match bytes <= behind.len() {
            // Labels are short as a rule: a loop is quicker than a call.
            true if bytes <= 16 => label.iter().zip(behind).all(|(a, b)| a == b),
            true => behind.starts_with(label),
            false => false,
        };
        begins.then_some((child, bytes + 1))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.nodes) + self.firsts.len() + self.labels.len()
    }
}

/// The keys of `keys[from..to]` share their first `depth` bytes, and `node` is theirs.
struct Job {
    node: u32,
    from: usize,
    to: usize,
    depth: usize,
}

fn build<T: Copy + Default>(
    keys: &mut dyn Iterator<Item = &[u8]>,
    longest: usize,
) -> (Trie<T>, Vec<u32>) {
    let keys: Vec<_> = keys.collect();
    let mut nodes: Vec<Node<T>> = vec![Node::default()];
    let mut firsts = vec![0];
    let mut labels = Vec::new();
    let mut found = vec![0; keys.len()];
    let mut jobs = std::collections::VecDeque::from([Job {
        node: 0,
        from: 0,
        to: keys.len(),
        depth: 0,
    }]);
    while let Some(mut job) = jobs.pop_front() {
        while job.from < job.to && keys[job.from].len() == job.depth {
            found[job.from] = job.node;
            job.from += 1;
        }
        nodes[job.node as usize].first_child = narrow(nodes.len());
        while job.from < job.to {
            let first = keys[job.from][job.depth];
            let group = &keys[job.from..job.to];
            let size = group.partition_point(|key| key[job.depth] <= first);
            let depth = job.depth + common(group[0], group[size - 1], job.depth).min(longest);
            nodes[job.node as usize].children += 1;
            firsts.push(first);
            nodes.push(Node {
                label: narrow(labels.len()),
                label_bytes: narrow(depth - job.depth - 1),
                ..Node::default()
            });
            labels.extend_from_slice(&group[0][job.depth + 1..depth]);
            jobs.push_back(Job {
                node: narrow(nodes.len() - 1),
                from: job.from,
                to: job.from + size,
                depth,
            });
            job.from += size;
        }
    }
    let trie = Trie {
        nodes: nodes.into(),
        firsts: firsts.into(),
        labels: labels.into(),
    };
    (trie, found)
}

/// The number of bytes that two keys share from `depth` on. All keys between them share these too.
fn common(one: &[u8], other: &[u8], depth: usize) -> usize {
    let pairs = one[depth..].iter().zip(&other[depth..]);
    pairs.take_while(|(a, b)| a == b).count()
}

fn narrow(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(NONE)
}
