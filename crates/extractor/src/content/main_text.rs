//! Separates the main text of a page from its other blocks, and classifies the other blocks.
//!
//! There are three steps, each a walk over a flat list:
//!
//! 1. Decide which elements are surroundings of the main text: those whose kind, class or id
//!    indicates this (`nav`, the class `sidebar`). A class or id is ignored if the element has much
//!    of the page's text, because authors may use any name for anything.
//! 2. Descend from the page to the region with nearly all running text. Each step inwards may lose
//!    a little text. A step to an `article` may lose more.
//! 3. Within that region, drop blocks that consist of links or boilerplate. Keep headings if text
//!    under them is kept.

use super::block_builder::{MAX_LINKS, UnclassifiedBlock};
use super::boilerplate_lines::{is_phrase, is_texinfo_navigation};
use super::element_roles::ElementRole;
use super::page_content::{BlockKind, BlockRole};
use super::regions::PageRegion;
use super::role_hints::{MainTextHint, SurroundingsHint};
use super::teasers::drop_teasers;

/// If a region has more than this percentage of the page's text, a class or id that marks it as
/// surroundings (such as `sidebar`) is ignored.
const MAX_NAMED: u64 = 40;
/// Minimum amount of text outside readers' comments, in half words (see `TextAmountCounter`). If
/// there is less text, the page consists mostly of comments, so they count as main text.
const COMMENTS_BESIDE: u64 = 80;
/// Minimum percentage of the page's text in a `main`. A `main` with less text is ignored.
const MIN_MAIN: u64 = 15;
/// Maximum length of a block of links that is dropped as navigation at either end of a `main`, in
/// half words (see `TextAmountCounter`).
const SHORT_LINKS: u64 = 24;
/// A page counts as a list of links only if it has less running text than this, in half words (see
/// `TextAmountCounter`), and its links have over four times as much text.
const MAX_INDEX: u64 = 120;

/// Minimum length of an introduction, in half words (see `TextAmountCounter`). Lines with only the
/// author and date are shorter.
const MIN_INTRODUCTION: u32 = 16;

/// Classifies each block of the page: main text, beside the main text, or navigation.
pub(super) fn places(
    text: &str,
    blocks: &[UnclassifiedBlock],
    regions: &[PageRegion],
    title: Option<&str>,
) -> Vec<BlockRole> {
    let page = RegionTextAmounts::new(blocks, regions);
    let root = page.root();
    let mut main = page.filter(text, root);
    keep_headings(blocks, &mut main);
    page.add_title_and_introduction(text, &mut main, title);
    let navigation = navigation(regions);
    let in_content = page.in_content();
    let place = |((block, links), main): ((&UnclassifiedBlock, &LinkShare), bool)| {
        let region = block.region as usize;
        match main {
            true => BlockRole::Main,
            false if navigation[region] => BlockRole::Navigation,
            false if is_texinfo_navigation(&text[block.start..block.end]) => BlockRole::Navigation,
            false if links.many() && !in_content[region] => BlockRole::Navigation,
            false => BlockRole::Beside,
        }
    };
    let blocks_with_links = blocks.iter().zip(&page.links);
    blocks_with_links.zip(main).map(place).collect()
}

/// The amount of text in each region, and whether the region is surroundings (a menu, a sidebar or
/// the like).
struct RegionTextAmounts<'a> {
    blocks: &'a [UnclassifiedBlock],
    regions: &'a [PageRegion],
    /// Whether the region is surroundings, or is within a region that is surroundings.
    surrounds: Vec<bool>,
    /// Running text in each region, including nested regions, in half words. Surroundings are not
    /// counted.
    good: Vec<u64>,
    /// All text in each region, including nested regions, in half words. Surroundings are not
    /// counted.
    all: Vec<u64>,
    links: Vec<LinkShare>,
}

impl<'a> RegionTextAmounts<'a> {
    fn new(blocks: &'a [UnclassifiedBlock], regions: &'a [PageRegion]) -> RegionTextAmounts<'a> {
        let links = links_of(blocks, regions);
        let weights: Vec<u64> = blocks.iter().map(|block| u64::from(block.weight)).collect();
        let running = |(block, links): (&UnclassifiedBlock, &LinkShare)| match links.many() {
            true => 0,
            false => u64::from(block.weight.saturating_sub(block.link_weight)),
        };
        let running: Vec<u64> = blocks.iter().zip(&links).map(running).collect();
        // For each region, sums up the values of the blocks in it and in its nested regions. Blocks
        // in excluded regions count as 0.
        let sum = |values: &[u64], is_excluded: &[bool]| {
            let mut sums = vec![0; regions.len()];
            for (block, value) in blocks.iter().zip(values) {
                let region = block.region as usize;
                sums[region] += if is_excluded[region] { 0 } else { *value };
            }
            add_up(&mut sums, regions);
            sums
        };
        let everything = sum(&running, &vec![false; regions.len()]);
        let (mut surrounds, comments) = surrounding(regions, &everything);
        let both: Vec<bool> = surrounds
            .iter()
            .zip(comments)
            .map(|(a, b)| *a || b)
            .collect();
        if sum(&running, &both)[0] >= COMMENTS_BESIDE {
            surrounds = both;
        }
        RegionTextAmounts {
            blocks,
            regions,
            good: sum(&running, &surrounds),
            all: sum(&weights, &surrounds),
            surrounds,
            links,
        }
    }

    /// Returns the region that contains the main text.
    fn root(&self) -> usize {
        let mains = (0..self.regions.len())
            .filter(|&at| self.regions[at].favour == MainTextHint::Main && !self.surrounds[at]);
        let main = mains.max_by_key(|&at| (self.all[at], std::cmp::Reverse(at)));
        let main = main.filter(|&at| self.all[at] * 100 >= self.all[0] * MIN_MAIN);
        let largest = self.largest_children();
        let mut at = main.unwrap_or(0);
        // A `main` that consists mostly of links has too little running text to choose a region
        // within it.
        if main.is_some() && self.is_index(at, u64::MAX) {
            return at;
        }
        while let Some(child) = largest[at] {
            let least = least_share(&self.regions[child], &self.regions[at], main.is_some());
            if self.good[child] * 100 < self.good[at] * least {
                break;
            }
            at = child;
        }
        // A region marked as only a part of a text can't be the main text, so go back to the region
        // around it.
        while self.regions[at].favour == MainTextHint::Part && at != 0 {
            at = self.regions[at].parent as usize;
        }
        match self.regions[at].part {
            ElementRole::Table => self.around_table(at),
            _ => at,
        }
    }

    /// Returns the smallest region that contains the table and also a heading or other running
    /// text. A table alone isn't a main text.
    fn around_table(&self, table: usize) -> usize {
        let (mut at, mut headings) = (table, vec![false; self.regions.len()]);
        for block in self
            .blocks
            .iter()
            .filter(|block| block.kind.level().is_some())
        {
            headings[block.region as usize] = true;
        }
        while at != 0 && self.good[at] == self.good[table] && !headings[at] {
            let parent = self.regions[at].parent as usize;
            if matches!(
                self.regions[parent].part,
                ElementRole::Cell | ElementRole::Table
            ) {
                break;
            }
            at = parent;
        }
        at
    }

    /// Returns, for each region, the child region with the most running text. `None` if no child
    /// has running text.
    fn largest_children(&self) -> Vec<Option<usize>> {
        let mut largest: Vec<Option<usize>> = vec![None; self.regions.len()];
        for at in 1..self.regions.len() {
            if self.surrounds[at] || self.good[at] == 0 {
                continue;
            }
            let slot = &mut largest[self.regions[at].parent as usize];
            if slot.is_none_or(|other| self.good[other] < self.good[at]) {
                *slot = Some(at);
            }
        }
        largest
    }

    /// Returns, for each block, whether it is in the region `root`. A block in surroundings within
    /// `root`, such as a sidebar, doesn't count.
    fn inside(&self, root: usize) -> Vec<bool> {
        let mut inside = vec![false; self.regions.len()];
        for at in 0..self.regions.len() {
            let parent = self.regions[at].parent as usize;
            inside[at] = at == root || (at > 0 && inside[parent]);
        }
        let is_here = |block: &UnclassifiedBlock| {
            let region = block.region as usize;
            inside[region] && !self.surrounds[region]
        };
        self.blocks.iter().map(is_here).collect()
    }

    /// Returns, for each region, whether it is in an element marked as content (such as `article`,
    /// `main` or `#content`) and not in surroundings. A list of links in such a region is content,
    /// not navigation.
    fn in_content(&self) -> Vec<bool> {
        let mut inside = vec![false; self.regions.len()];
        for (at, region) in self.regions.iter().enumerate() {
            let is_in_parent = at > 0 && inside[region.parent as usize];
            inside[at] =
                !self.surrounds[at] && (is_in_parent || region.favour >= MainTextHint::Named);
        }
        inside
    }

    /// Returns, for each block, whether it is kept as a part of the main text in the region `root`.
    /// Drops boilerplate and teasers and, unless the region is a list of links, blocks of links.
    /// Headings without text under them are dropped later.
    fn filter(&self, text: &str, root: usize) -> Vec<bool> {
        let is_inside = self.inside(root);
        let mut main = is_inside.clone();
        for (block, main) in self.blocks.iter().zip(&mut main) {
            let words = &text[block.start..block.end];
            *main &= !is_phrase(words) && !is_texinfo_navigation(words);
        }
        drop_teasers(self.blocks, self.regions, root, &is_inside, &mut main);
        let is_declared = self.regions[root].favour == MainTextHint::Main;
        if !self.is_index(root, if is_declared { u64::MAX } else { MAX_INDEX }) {
            self.drop_links(&mut main, is_declared);
        }
        main
    }

    /// Returns whether a region is a list of links: its links have over four times the weight of
    /// its running text, which weighs less than `max_running` half words (see `TextAmountCounter`).
    fn is_index(&self, root: usize, max_running: u64) -> bool {
        let (mut running, mut linked) = (0, 0);
        let inside = self.inside(root);
        for (at, block) in self.blocks.iter().enumerate().filter(|(at, _)| inside[*at]) {
            if block.kind.level().is_some() {
            } else if self.links[at].many() {
                linked += u64::from(block.weight);
            } else {
                running += u64::from(block.weight);
            }
        }
        running < max_running && running * 4 < linked
    }

    /// Drops blocks of links from `main`: all of them or, if the page has a `main` element, only
    /// short ones at its ends.
    fn drop_links(&self, main: &mut [bool], is_declared: bool) {
        let is_text = |at: &usize| {
            main[*at] && !self.links[*at].many() && self.blocks[*at].kind.level().is_none()
        };
        let first = (0..main.len()).find(is_text).unwrap_or(0);
        let last = (0..main.len()).rev().find(is_text).unwrap_or(0);
        for (at, block) in self.blocks.iter().enumerate() {
            let stays = is_declared
                && ((first..=last).contains(&at) || self.links[at].weight > SHORT_LINKS);
            let is_exempt = block.kind.level().is_some() || block.kind == BlockKind::Code;
            if self.links[at].many() && !is_exempt && !stays {
                main[at] = false;
            }
        }
    }

    /// Adds to the main text the heading that names the page and the introduction below that
    /// heading, if both come before the main text.
    fn add_title_and_introduction(&self, text: &str, main: &mut [bool], title: Option<&str>) {
        let Some(first) = main.iter().position(|main| *main) else {
            return;
        };
        let Some(heading) = self.title_heading(text, main, title) else {
            return;
        };
        main[heading] = true;
        let between = self.blocks.iter().zip(&self.links).zip(main.iter_mut());
        let between = between.take(first).skip(heading + 1);
        for ((block, links), main) in between {
            let words = &text[block.start..block.end];
            *main = block.kind == BlockKind::Paragraph
                && block.weight >= MIN_INTRODUCTION
                && words.ends_with(['.', '!', '?', ':', '\u{2026}', '\u{3002}'])
                && !self.surrounds[block.region as usize]
                && !links.many()
                && !is_phrase(words);
        }
    }

    /// Returns the heading that names the page, if it precedes the main text: a heading outside all
    /// surroundings, or one that the page's title begins with. `None` if the main text has a
    /// heading of level 1.
    fn title_heading(&self, text: &str, main: &[bool], title: Option<&str>) -> Option<usize> {
        let first = main.iter().position(|main| *main)?;
        let is_first_level =
            |block: &UnclassifiedBlock| block.kind == (BlockKind::Heading { level: 1 });
        let has_heading = self
            .blocks
            .iter()
            .zip(main)
            .any(|(block, main)| *main && is_first_level(block));
        if has_heading {
            return None;
        }
        let candidates = (0..first)
            .rev()
            .filter(|&at| is_first_level(&self.blocks[at]));
        let mut candidates = candidates.take(8);
        candidates.find(|&at| {
            let block = &self.blocks[at];
            let heading = &text[block.start..block.end];
            let is_title = title.is_some_and(|title| title.starts_with(heading));
            is_title || !self.surrounds[block.region as usize]
        })
    }
}

/// Returns the minimum percentage of `around`'s text that `region` must contain. If it contains
/// less, the main text is the whole of `around`.
fn least_share(region: &PageRegion, around: &PageRegion, in_main: bool) -> u64 {
    match region.favour {
        MainTextHint::Body if around.favour == MainTextHint::Article => 60,
        MainTextHint::Body => 30,
        MainTextHint::Main => 50,
        MainTextHint::Article => 60,
        // Require nearly all of the text, because an article may have an introduction outside the
        // element with its body.
        MainTextHint::Named if around.favour == MainTextHint::Article => 96,
        MainTextHint::Named => 75,
        // Enter a region that is marked as a part of a text only if it contains nearly all text of
        // the region around it.
        MainTextHint::Part => 98,
        MainTextHint::No if in_main => 92,
        MainTextHint::No if matches!(region.part, ElementRole::Table | ElementRole::Cell) => 75,
        MainTextHint::No => 85,
    }
}

/// Adds the sum of each region to the sum of its parent region. A parent precedes its children in
/// the list.
fn add_up(sums: &mut [u64], regions: &[PageRegion]) {
    for at in (1..sums.len()).rev() {
        sums[regions[at].parent as usize] += sums[at];
    }
}

/// Returns, for each region, whether it is surroundings, and whether it consists of readers'
/// comments. `all` is the amount of running text in each region.
fn surrounding(regions: &[PageRegion], all: &[u64]) -> (Vec<bool>, Vec<bool>) {
    let mut holds_main = vec![false; regions.len()];
    for at in (1..regions.len()).rev() {
        let main =
            holds_main[at] || matches!(regions[at].favour, MainTextHint::Main | MainTextHint::Body);
        holds_main[regions[at].parent as usize] |= main;
    }
    let total = all.first().copied().unwrap_or(0);
    let (mut surrounds, mut comments) = (vec![false; regions.len()], vec![false; regions.len()]);
    for (at, region) in regions.iter().enumerate() {
        let parent = region.parent as usize;
        let is_large = all[at] * 100 > total * MAX_NAMED;
        let own = match region.surround {
            _ if holds_main[at] => false,
            SurroundingsHint::No | SurroundingsHint::Comments => false,
            SurroundingsHint::Form | SurroundingsHint::Named => !is_large,
            SurroundingsHint::Certain | SurroundingsHint::Element => true,
        };
        surrounds[at] = own || (at > 0 && surrounds[parent]);
        let own = region.surround == SurroundingsHint::Comments && !holds_main[at];
        comments[at] = own || (at > 0 && comments[parent]);
    }
    (surrounds, comments)
}

/// Returns, for each region, whether it is in an element for navigation or controls.
fn navigation(regions: &[PageRegion]) -> Vec<bool> {
    let mut navigation = vec![false; regions.len()];
    for (at, region) in regions.iter().enumerate() {
        navigation[at] = region.is_navigation || (at > 0 && navigation[region.parent as usize]);
    }
    navigation
}

/// The share of links in a block. A list item or a table cell has the share of its whole list or
/// table.
#[derive(Clone, Copy)]
struct LinkShare {
    /// Percentage of text in links.
    share: u32,
    /// Weight of all text, in half words.
    weight: u64,
}

impl LinkShare {
    /// Returns whether the text consists mostly of links.
    fn many(self) -> bool {
        self.share > MAX_LINKS
    }
}

/// Returns the share of links in each block. A list item or a table cell gets the share of its
/// whole list or table.
fn links_of(blocks: &[UnclassifiedBlock], regions: &[PageRegion]) -> Vec<LinkShare> {
    let tables = tables(regions);
    let group = |block: &UnclassifiedBlock| match block.kind {
        BlockKind::ListItem | BlockKind::Term | BlockKind::Definition => {
            Some(block.region as usize)
        }
        BlockKind::Cell => tables[block.region as usize],
        _ => None,
    };
    let own = |block: &UnclassifiedBlock| (u64::from(block.weight), u64::from(block.link_weight));
    let mut sums = vec![(0, 0); regions.len()];
    for block in blocks {
        if let Some(group) = group(block) {
            let (weight, links) = own(block);
            sums[group] = (sums[group].0 + weight, sums[group].1 + links);
        }
    }
    let links = |block: &UnclassifiedBlock| {
        let (weight, links) = group(block).map_or(own(block), |group| sums[group]);
        LinkShare {
            share: u32::try_from(links * 100 / weight.max(1)).unwrap_or(100),
            weight,
        }
    };
    blocks.iter().map(links).collect()
}

/// Returns, for each region, the index of the table that it is or belongs to. `None` outside of
/// tables.
fn tables(regions: &[PageRegion]) -> Vec<Option<usize>> {
    let mut tables: Vec<Option<usize>> = Vec::with_capacity(regions.len());
    for (at, region) in regions.iter().enumerate() {
        let table = match region.part {
            ElementRole::Table => Some(at),
            ElementRole::Cell | ElementRole::Control if at > 0 => tables[region.parent as usize],
            _ => None,
        };
        tables.push(table);
    }
    tables
}

/// Drops headings from `main` that have no text before the next heading of the same or a higher
/// level.
fn keep_headings(blocks: &[UnclassifiedBlock], main: &mut [bool]) {
    // For each heading level, whether main text follows before the next heading of that or a higher
    // level.
    let mut text_since = [false; 7];
    for (at, block) in blocks.iter().enumerate().rev() {
        match block.kind.level() {
            None if main[at] => text_since = [true; 7],
            None => {}
            Some(level) => {
                let level = usize::from(level.min(6));
                main[at] &= text_since[level];
                text_since[level..].fill(false);
            }
        }
    }
}
