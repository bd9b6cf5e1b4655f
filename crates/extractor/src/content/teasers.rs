//! Teasers of other pages: a link with a title, and a line or two on what it leads to, several
//! times over. They say nothing of the page that they stand on, and no name gives them away.

use super::block_builder::{MAX_LINKS, RawBlock};
use super::elements::Part;
use super::hints::Favour;
use super::model::BlockKind;
use super::regions::Region;

/// Teasers are so many at least.
const MIN_TITLES: u64 = 3;
/// The title of a page has so much text at least; in a `main`, which a generator may have written,
/// where links to single names are part of the text, so much. In half words.
const MIN_TITLE: u32 = 6;
const MIN_TITLE_IN_MAIN: u32 = 8;
/// The text for each title is no more than this, and no paragraph of it is longer than that. In
/// half words.
const MAX_TEXT: u64 = 80;
const MAX_PARAGRAPH: u64 = 160;
/// A region with more of the text than this holds what the page is about. In percent.
const MAX_PART: u64 = 60;
/// A page that would be left with less text than this is a list of other pages. In half words.
const MIN_LEFT: u64 = 200;
/// A paragraph that a `main` goes on with. In half words.
const MIN_PARAGRAPH: u64 = 24;

/// Counts of a region and of those within it.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// Blocks that are links with a title.
    titles: u64,
    /// Those of them that are more than the items of a list, as references are.
    cards: u64,
    /// Half words of running text.
    running: u64,
    /// Blocks of it, and the half words of the longest.
    lines: u64,
    longest: u64,
    code: u64,
}

impl Sums {
    fn of(block: &RawBlock, region: &Region, is_main: bool, min_title: u32) -> Sums {
        let share = block.link_weight * 100 / block.weight.max(1);
        let is_plain = !matches!(
            block.kind,
            BlockKind::Cell | BlockKind::Term | BlockKind::Code
        );
        let mut sums = Sums {
            code: u64::from(block.kind == BlockKind::Code),
            ..Sums::default()
        };
        if share > MAX_LINKS && block.weight >= min_title && is_plain {
            let is_item = block.kind == BlockKind::ListItem && region.part == Part::List;
            sums.titles = 1;
            sums.cards = u64::from(!is_item);
        } else if is_main && block.kind.level().is_none() {
            sums.running = running(block);
            sums.lines = u64::from(sums.running > 0);
            sums.longest = sums.running;
        }
        sums
    }

    fn add(&mut self, other: Sums) {
        self.titles += other.titles;
        self.cards += other.cards;
        self.running += other.running;
        self.lines += other.lines;
        self.longest = self.longest.max(other.longest);
        self.code += other.code;
    }

    /// Returns whether they are those of teasers, on a page with so much running text.
    fn are_teasers(&self, all: u64) -> bool {
        self.titles >= MIN_TITLES
            && self.cards > 0
            && self.code == 0
            && self.running > 0
            && self.running <= self.titles * MAX_TEXT
            && self.longest <= MAX_PARAGRAPH
            // Without a line for every second title at least it is a list of links.
            && self.lines * 2 >= self.titles
            && self.running * 100 <= all * MAX_PART
    }
}

/// Takes the regions out of `main`, the blocks of the text in `root`, that are teasers of other
/// pages; where `root` is a `main`, those alone that its text does not go on after.
pub(super) fn drop_teasers(
    blocks: &[RawBlock],
    regions: &[Region],
    root: usize,
    is_inside: &[bool],
    main: &mut [bool],
) {
    let told = regions[root].favour == Favour::Main;
    let min_title = if told { MIN_TITLE_IN_MAIN } else { MIN_TITLE };
    let mut sums = vec![Sums::default(); regions.len()];
    for (at, block) in blocks.iter().enumerate().filter(|(at, _)| is_inside[*at]) {
        let region = block.region as usize;
        sums[region].add(Sums::of(block, &regions[region], main[at], min_title));
    }
    for at in (1..regions.len()).rev() {
        let own = sums[at];
        sums[regions[at].parent as usize].add(own);
    }
    let (all, mut dropped) = (sums[root].running, 0);
    let mut is_teasers = vec![false; regions.len()];
    for at in (1..regions.len()).filter(|at| *at != root) {
        is_teasers[at] = is_teasers[regions[at].parent as usize];
        if !is_teasers[at] && sums[at].are_teasers(all) {
            is_teasers[at] = true;
            dropped += sums[at].running;
        }
    }
    if all.saturating_sub(dropped) < MIN_LEFT {
        return;
    }
    let is_of_teasers = |block: &RawBlock| is_teasers[block.region as usize];
    let goes_on = |at: &usize| {
        let block = &blocks[*at];
        let is_text = main[*at] && block.kind.level().is_none() && !is_of_teasers(block);
        is_text && running(block) >= MIN_PARAGRAPH
    };
    let last = (0..blocks.len()).rev().find(goes_on).unwrap_or(0);
    for (at, block) in blocks.iter().enumerate() {
        main[at] &= !is_of_teasers(block) || (told && at < last);
    }
}

/// Half words of a block outside of links.
fn running(block: &RawBlock) -> u64 {
    u64::from(block.weight.saturating_sub(block.link_weight))
}
