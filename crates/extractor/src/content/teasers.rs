//! Recognises teasers of other pages: a group of linked titles, each with a line or two about its
//! target. Teasers aren't about the page they are on, and often no class or id marks them.

use super::block_builder::{MAX_LINKS, UnclassifiedBlock};
use super::element_roles::ElementRole;
use super::page_content::BlockKind;
use super::regions::PageRegion;
use super::role_hints::MainTextHint;

/// Minimum number of linked titles in a region of teasers.
const MIN_TITLES: u64 = 3;
/// Minimum length of a teaser's title, in half words (see `TextAmountCounter`).
const MIN_TITLE: u32 = 6;
/// Minimum length of a teaser's title in a `main`, in half words (see `TextAmountCounter`). Higher
/// than `MIN_TITLE`, because generated documentation has many links to single names.
const MIN_TITLE_IN_MAIN: u32 = 8;
/// Maximum average length of running text per title in a region of teasers, in half words (see
/// `TextAmountCounter`).
const MAX_TEXT: u64 = 80;
/// Maximum length of a paragraph in a region of teasers, in half words (see `TextAmountCounter`).
const MAX_PARAGRAPH: u64 = 160;
/// Maximum percentage of the page's running text in a region of teasers. A region with more text is
/// the topic of the page.
const MAX_PART: u64 = 60;
/// Minimum length of the main text without the teasers, in half words (see `TextAmountCounter`). If
/// there is less text, the page itself is a list of other pages, so its teasers are kept.
const MIN_LEFT: u64 = 200;
/// Minimum length of a paragraph that continues the text of a `main` after teasers, in half words
/// (see `TextAmountCounter`).
const MIN_PARAGRAPH: u64 = 24;

/// Counts of the blocks in a region and its nested regions.
#[derive(Clone, Copy, Default)]
struct TeaserCounts {
    /// Number of blocks that consist of the linked title of another page.
    titles: u64,
    /// Number of titles outside of lists. (Titles in a list are usually references.)
    cards: u64,
    /// Weight of running text, in half words.
    running: u64,
    /// Number of blocks of running text.
    lines: u64,
    /// Weight of the running text in the block with the most, in half words.
    longest: u64,
    code: u64,
}

impl TeaserCounts {
    fn of(
        block: &UnclassifiedBlock,
        region: &PageRegion,
        is_main: bool,
        min_title: u32,
    ) -> TeaserCounts {
        let share = block.link_weight * 100 / block.weight.max(1);
        let is_plain = !matches!(
            block.kind,
            BlockKind::Cell | BlockKind::Term | BlockKind::Code
        );
        let mut sums = TeaserCounts {
            code: u64::from(block.kind == BlockKind::Code),
            ..TeaserCounts::default()
        };
        if share > MAX_LINKS && block.weight >= min_title && is_plain {
            let is_item = block.kind == BlockKind::ListItem && region.part == ElementRole::List;
            sums.titles = 1;
            sums.cards = u64::from(!is_item);
        } else if is_main && block.kind.level().is_none() {
            sums.running = running(block);
            sums.lines = u64::from(sums.running > 0);
            sums.longest = sums.running;
        }
        sums
    }

    fn add(&mut self, other: TeaserCounts) {
        self.titles += other.titles;
        self.cards += other.cards;
        self.running += other.running;
        self.lines += other.lines;
        self.longest = self.longest.max(other.longest);
        self.code += other.code;
    }

    /// Returns whether a region with these counts consists of teasers. `all` is the amount of
    /// running text on the page, in half words.
    fn are_teasers(&self, all: u64) -> bool {
        self.titles >= MIN_TITLES
            && self.cards > 0
            && self.code == 0
            && self.running > 0
            && self.running <= self.titles * MAX_TEXT
            && self.longest <= MAX_PARAGRAPH
            // A region of teasers has at least one line of text per two titles. A region with less
            // text is a list of links.
            && self.lines * 2 >= self.titles
            && self.running * 100 <= all * MAX_PART
    }
}

/// Removes teasers of other pages from `main`, which has one flag per block. `root` is the region
/// with the main text. If `root` is a `main` element, removes only teasers after the end of its
/// text.
pub(super) fn drop_teasers(
    blocks: &[UnclassifiedBlock],
    regions: &[PageRegion],
    root: usize,
    is_inside: &[bool],
    main: &mut [bool],
) {
    let is_declared = regions[root].favour == MainTextHint::Main;
    let min_title = if is_declared {
        MIN_TITLE_IN_MAIN
    } else {
        MIN_TITLE
    };
    let mut sums = vec![TeaserCounts::default(); regions.len()];
    for (at, block) in blocks.iter().enumerate().filter(|(at, _)| is_inside[*at]) {
        let region = block.region as usize;
        sums[region].add(TeaserCounts::of(
            block,
            &regions[region],
            main[at],
            min_title,
        ));
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
    let is_of_teasers = |block: &UnclassifiedBlock| is_teasers[block.region as usize];
    let goes_on = |at: &usize| {
        let block = &blocks[*at];
        let is_text = main[*at] && block.kind.level().is_none() && !is_of_teasers(block);
        is_text && running(block) >= MIN_PARAGRAPH
    };
    let last = (0..blocks.len()).rev().find(goes_on).unwrap_or(0);
    for (at, block) in blocks.iter().enumerate() {
        main[at] &= !is_of_teasers(block) || (is_declared && at < last);
    }
}

/// Returns the amount of text outside links in a block, in half words.
fn running(block: &UnclassifiedBlock) -> u64 {
    u64::from(block.weight.saturating_sub(block.link_weight))
}
