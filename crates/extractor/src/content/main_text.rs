//! The blocks that are the main text, and what the others are.
//!
//! Three steps, each one walk over a flat list. First the hints of elements (`nav`, a class of
//! `sidebar`) are weighed against how much of the page's text stands in them, since a class may
//! mean anything. Then the way leads from the page down to the region that holds nearly all
//! running text: a little may be left behind on each step, and an `article` may leave more.
//! Last, of the blocks in that region those go that are nothing but links, or that say what any
//! page says; headings stay where text stays under them.

use super::block_builder::{MAX_LINKS, RawBlock};
use super::boilerplate::{is_phrase, is_texinfo_navigation};
use super::elements::Part;
use super::hints::{Favour, Surround};
use super::model::{BlockKind, BlockPlace};
use super::regions::Region;
use super::teasers::drop_teasers;

/// A region named like a sidebar with more of the text than this is none. In percent.
const MAX_NAMED: u64 = 40;
/// Comments are part of the text where there is less than this beside them. In half words.
const COMMENTS_BESIDE: u64 = 80;
/// A `main` with less of the page's text than this is not where it is. In percent.
const MIN_MAIN: u64 = 15;
/// A block of links at the end of a `main` that is longer is more than a way on. In half words.
const SHORT_LINKS: u64 = 24;
/// A page whose running text is less, and less than a quarter of its links, is a page of links.
/// In half words.
const MAX_INDEX: u64 = 120;

/// An introduction is a sentence with so much text at least: a line with an author and a date has
/// less. In half words.
const MIN_INTRODUCTION: u32 = 16;

/// The place of each of the blocks on the page.
pub(super) fn places(
    text: &str,
    blocks: &[RawBlock],
    regions: &[Region],
    title: Option<&str>,
) -> Vec<BlockPlace> {
    let page = PageSums::new(blocks, regions);
    let root = page.root();
    let mut main = page.filter(text, root);
    keep_headings(blocks, &mut main);
    page.add_title_and_introduction(text, &mut main, title);
    let navigation = navigation(regions);
    let in_content = page.in_content();
    let place = |((block, links), main): ((&RawBlock, &Links), bool)| {
        let region = block.region as usize;
        match main {
            true => BlockPlace::Main,
            false if navigation[region] => BlockPlace::Navigation,
            false if is_texinfo_navigation(&text[block.start..block.end]) => BlockPlace::Navigation,
            false if links.many() && !in_content[region] => BlockPlace::Navigation,
            false => BlockPlace::Beside,
        }
    };
    let known = blocks.iter().zip(&page.links);
    known.zip(main).map(place).collect()
}

/// The text in each region, and whether the region surrounds the main text.
struct PageSums<'a> {
    blocks: &'a [RawBlock],
    regions: &'a [Region],
    /// True if a region, or one around it, surrounds the main text.
    surrounds: Vec<bool>,
    /// Half words of running text in each region and those within, surroundings left out.
    good: Vec<u64>,
    /// Half words of all text in each region and those within, surroundings left out.
    all: Vec<u64>,
    links: Vec<Links>,
}

impl<'a> PageSums<'a> {
    fn new(blocks: &'a [RawBlock], regions: &'a [Region]) -> PageSums<'a> {
        let links = links_of(blocks, regions);
        let weights: Vec<u64> = blocks.iter().map(|block| u64::from(block.weight)).collect();
        let running = |(block, links): (&RawBlock, &Links)| match links.many() {
            true => 0,
            false => u64::from(block.weight.saturating_sub(block.link_weight)),
        };
        let running: Vec<u64> = blocks.iter().zip(&links).map(running).collect();
        // Sums over the regions that are not left out.
        let sum = |values: &[u64], out: &[bool]| {
            let mut sums = vec![0; regions.len()];
            for (block, value) in blocks.iter().zip(values) {
                let region = block.region as usize;
                sums[region] += if out[region] { 0 } else { *value };
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
        PageSums {
            blocks,
            regions,
            good: sum(&running, &surrounds),
            all: sum(&weights, &surrounds),
            surrounds,
            links,
        }
    }

    /// The region that holds the main text.
    fn root(&self) -> usize {
        let mains = (0..self.regions.len())
            .filter(|&at| self.regions[at].favour == Favour::Main && !self.surrounds[at]);
        let main = mains.max_by_key(|&at| (self.all[at], std::cmp::Reverse(at)));
        let main = main.filter(|&at| self.all[at] * 100 >= self.all[0] * MIN_MAIN);
        let largest = self.largest_children();
        let mut at = main.unwrap_or(0);
        // What a page of links holds besides them does not say where its text is.
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
        // Down through parts of a text the way may lead to one that holds it, but not end there.
        while self.regions[at].favour == Favour::Part && at != 0 {
            at = self.regions[at].parent as usize;
        }
        match self.regions[at].part {
            Part::Table => self.around_table(at),
            _ => at,
        }
    }

    /// The region that says what a table is about, which alone is no whole text: the nearest one
    /// with a heading or running text beside it.
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
            if matches!(self.regions[parent].part, Part::Cell | Part::Table) {
                break;
            }
            at = parent;
        }
        at
    }

    /// Of each region the region in it that holds the most text.
    fn largest_children(&self) -> Vec<Option<usize>> {
        let mut largest: Vec<Option<usize>> = vec![None; self.regions.len()];
        for at in 1..self.regions.len() {
            if self.surrounds[at] || self.good[at] == 0 {
                continue;
            }
            let slot = &mut largest[self.regions[at].parent as usize];
            if slot.is_none_or(|known| self.good[known] < self.good[at]) {
                *slot = Some(at);
            }
        }
        largest
    }

    /// The blocks that stand in `root`, and not in what surrounds it.
    fn inside(&self, root: usize) -> Vec<bool> {
        let mut inside = vec![false; self.regions.len()];
        for at in 0..self.regions.len() {
            let parent = self.regions[at].parent as usize;
            inside[at] = at == root || (at > 0 && inside[parent]);
        }
        let here = |block: &RawBlock| {
            let region = block.region as usize;
            inside[region] && !self.surrounds[region]
        };
        self.blocks.iter().map(here).collect()
    }

    /// Returns whether each region is in an element that the page names as content, such as
    /// `article`, `main` or `#content`, and not in what surrounds it. Links there are content.
    fn in_content(&self) -> Vec<bool> {
        let mut inside = vec![false; self.regions.len()];
        for (at, region) in self.regions.iter().enumerate() {
            let is_in_parent = at > 0 && inside[region.parent as usize];
            inside[at] = !self.surrounds[at] && (is_in_parent || region.favour >= Favour::Named);
        }
        inside
    }

    /// The blocks in `root` that are text, and headings, which are looked at later.
    fn filter(&self, text: &str, root: usize) -> Vec<bool> {
        let is_inside = self.inside(root);
        let mut main = is_inside.clone();
        for (block, main) in self.blocks.iter().zip(&mut main) {
            let words = &text[block.start..block.end];
            *main &= !is_phrase(words) && !is_texinfo_navigation(words);
        }
        drop_teasers(self.blocks, self.regions, root, &is_inside, &mut main);
        let told = self.regions[root].favour == Favour::Main;
        if !self.is_index(root, if told { u64::MAX } else { MAX_INDEX }) {
            self.drop_links(&mut main, told);
        }
        main
    }

    /// Returns whether a region is there for its links: there is much less running text than links,
    /// and not more of it than `most` half words.
    fn is_index(&self, root: usize, most: u64) -> bool {
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
        running < most && running * 4 < linked
    }

    /// Drops blocks of links: all of them, or, where a `main` told what the main text is, the
    /// short ones at its ends.
    fn drop_links(&self, main: &mut [bool], told: bool) {
        let is_text = |at: &usize| {
            main[*at] && !self.links[*at].many() && self.blocks[*at].kind.level().is_none()
        };
        let first = (0..main.len()).find(is_text).unwrap_or(0);
        let last = (0..main.len()).rev().find(is_text).unwrap_or(0);
        for (at, block) in self.blocks.iter().enumerate() {
            let stays =
                told && ((first..=last).contains(&at) || self.links[at].weight > SHORT_LINKS);
            let exempt = block.kind.level().is_some() || block.kind == BlockKind::Code;
            if self.links[at].many() && !exempt && !stays {
                main[at] = false;
            }
        }
    }

    /// Adds the heading that names the page, and the running text that follows it, where they
    /// stand before the main text.
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

    /// The heading that names the page, where it stands before its main text: outside of all
    /// that surrounds it, or with the words of the title.
    fn title_heading(&self, text: &str, main: &[bool], title: Option<&str>) -> Option<usize> {
        let first = main.iter().position(|main| *main)?;
        let is_first_level = |block: &RawBlock| block.kind == (BlockKind::Heading { level: 1 });
        let known = self
            .blocks
            .iter()
            .zip(main)
            .any(|(block, main)| *main && is_first_level(block));
        if known {
            return None;
        }
        let candidates = (0..first)
            .rev()
            .filter(|&at| is_first_level(&self.blocks[at]));
        let mut candidates = candidates.take(8);
        candidates.find(|&at| {
            let block = &self.blocks[at];
            let heading = &text[block.start..block.end];
            let titled = title.is_some_and(|title| title.starts_with(heading));
            titled || !self.surrounds[block.region as usize]
        })
    }
}

/// The share of the text around a region that must stand in it, so that it is the whole text. In
/// percent.
fn least_share(region: &Region, around: &Region, in_main: bool) -> u64 {
    match region.favour {
        Favour::Body if around.favour == Favour::Article => 60,
        Favour::Body => 30,
        Favour::Main => 50,
        Favour::Article => 60,
        // An article has a lead beside its body.
        Favour::Named if around.favour == Favour::Article => 96,
        Favour::Named => 75,
        // A part may hold the whole, if nothing is left beside it.
        Favour::Part => 98,
        Favour::No if in_main => 92,
        Favour::No if matches!(region.part, Part::Table | Part::Cell) => 75,
        Favour::No => 85,
    }
}

/// Adds the sums of regions to those around them. A region stands after the one around it.
fn add_up(sums: &mut [u64], regions: &[Region]) {
    for at in (1..sums.len()).rev() {
        sums[regions[at].parent as usize] += sums[at];
    }
}

/// The regions that surround the main text, and those that hold comments on it.
fn surrounding(regions: &[Region], all: &[u64]) -> (Vec<bool>, Vec<bool>) {
    let mut holds_main = vec![false; regions.len()];
    for at in (1..regions.len()).rev() {
        let main = holds_main[at] || matches!(regions[at].favour, Favour::Main | Favour::Body);
        holds_main[regions[at].parent as usize] |= main;
    }
    let total = all.first().copied().unwrap_or(0);
    let (mut surrounds, mut comments) = (vec![false; regions.len()], vec![false; regions.len()]);
    for (at, region) in regions.iter().enumerate() {
        let parent = region.parent as usize;
        let large = all[at] * 100 > total * MAX_NAMED;
        let own = match region.surround {
            _ if holds_main[at] => false,
            Surround::No | Surround::Comments => false,
            Surround::Form | Surround::Named => !large,
            Surround::Certain | Surround::Element => true,
        };
        surrounds[at] = own || (at > 0 && surrounds[parent]);
        let own = region.surround == Surround::Comments && !holds_main[at];
        comments[at] = own || (at > 0 && comments[parent]);
    }
    (surrounds, comments)
}

/// Returns whether each region leads to other pages, or is there to be clicked at.
fn navigation(regions: &[Region]) -> Vec<bool> {
    let mut navigation = vec![false; regions.len()];
    for (at, region) in regions.iter().enumerate() {
        navigation[at] = region.is_navigation || (at > 0 && navigation[region.parent as usize]);
    }
    navigation
}

/// The share of links in a block, or in the list or table that it is of.
#[derive(Clone, Copy)]
struct Links {
    /// In percent.
    share: u32,
    /// Half words of all its text.
    weight: u64,
}

impl Links {
    /// Returns whether it is there for its links.
    fn many(self) -> bool {
        self.share > MAX_LINKS
    }
}

/// The links of each block; those of an item or cell are of its list or table.
fn links_of(blocks: &[RawBlock], regions: &[Region]) -> Vec<Links> {
    let tables = tables(regions);
    let group = |block: &RawBlock| match block.kind {
        BlockKind::ListItem | BlockKind::Term | BlockKind::Definition => {
            Some(block.region as usize)
        }
        BlockKind::Cell => tables[block.region as usize],
        _ => None,
    };
    let own = |block: &RawBlock| (u64::from(block.weight), u64::from(block.link_weight));
    let mut sums = vec![(0, 0); regions.len()];
    for block in blocks {
        if let Some(group) = group(block) {
            let (weight, links) = own(block);
            sums[group] = (sums[group].0 + weight, sums[group].1 + links);
        }
    }
    let links = |block: &RawBlock| {
        let (weight, links) = group(block).map_or(own(block), |group| sums[group]);
        Links {
            share: u32::try_from(links * 100 / weight.max(1)).unwrap_or(100),
            weight,
        }
    };
    blocks.iter().map(links).collect()
}

/// The table that each region is in or is.
fn tables(regions: &[Region]) -> Vec<Option<usize>> {
    let mut tables: Vec<Option<usize>> = Vec::with_capacity(regions.len());
    for (at, region) in regions.iter().enumerate() {
        let table = match region.part {
            Part::Table => Some(at),
            Part::Cell | Part::Control if at > 0 => tables[region.parent as usize],
            _ => None,
        };
        tables.push(table);
    }
    tables
}

/// Keeps headings that text stands under, up to the next of their level.
fn keep_headings(blocks: &[RawBlock], main: &mut [bool]) {
    // For each level, whether text was met since the last heading of that level or above.
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
