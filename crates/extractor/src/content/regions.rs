//! The open elements, and the regions of a page that they form.
//!
//! A region is an element that contains blocks. Regions are in a flat list, each with the index of
//! its parent region. A parent comes before its children, so a backward walk over the list sums up
//! nested regions without recursion.

use super::content_limits::{ContentLimits, ContentOddityKind, ContentOddityList};
use super::element_roles::ElementRole;
use super::page_content::BlockKind;
use super::role_hints::{
    MAX_NAME_BYTES, MainTextHint, RoleHints, SurroundingsHint, has_words, is_made_from,
    is_navigation, judge, letters, surround_without_id,
};
use crate::html::element_name::ElementName;

/// An element that contains blocks.
#[derive(Debug)]
pub(super) struct PageRegion {
    /// The index of the region around this one. For the first region (the page), its own index.
    pub(super) parent: u32,
    pub(super) part: ElementRole,
    pub(super) surround: SurroundingsHint,
    pub(super) favour: MainTextHint,
    /// Whether the region is navigation or a control.
    pub(super) is_navigation: bool,
}

/// An open element.
struct OpenElement {
    name: ElementName,
    part: ElementRole,
    region: u32,
    /// The kind of text in the element.
    kind: BlockKind,
    hidden: bool,
    /// Whether snippets must not contain the element's text.
    is_withheld: bool,
    /// Whether the element is in a `main` or `article`.
    within: bool,
    /// If only the element's id marks it as surroundings: the letters of the id, and how clearly
    /// the element would be marked without the id. Otherwise `None`.
    named: Option<(Box<str>, SurroundingsHint)>,
}

/// Tracks the open elements of a page, and lists its regions.
pub(super) struct RegionTracker {
    pub(super) all: Vec<PageRegion>,
    open: Vec<OpenElement>,
    /// Number of open elements beyond the depth limit.
    beyond: u32,
    limits: (usize, usize),
}

impl RegionTracker {
    pub(super) fn new(limits: &ContentLimits) -> RegionTracker {
        let page = PageRegion {
            parent: 0,
            part: ElementRole::Page,
            surround: SurroundingsHint::No,
            favour: MainTextHint::No,
            is_navigation: false,
        };
        RegionTracker {
            all: vec![page],
            open: Vec::new(),
            beyond: 0,
            limits: (limits.regions.max(1), limits.depth),
        }
    }

    /// Returns the region of the current text.
    pub(super) fn region(&self) -> u32 {
        self.open.last().map_or(0, |open| open.region)
    }

    /// Returns the kind of the current text.
    pub(super) fn kind(&self) -> BlockKind {
        self.open
            .last()
            .map_or(BlockKind::Paragraph, |open| open.kind)
    }

    /// Returns whether the current text is hidden.
    pub(super) fn is_hidden(&self) -> bool {
        self.open.last().is_some_and(|open| open.hidden)
    }

    /// Returns whether snippets must not contain the current text.
    pub(super) fn is_withheld(&self) -> bool {
        self.open.last().is_some_and(|open| open.is_withheld)
    }

    /// Returns whether the current text is in a `main` or `article`, and its region isn't marked as
    /// surroundings.
    pub(super) fn is_favoured(&self) -> bool {
        let surround = self.all[self.region() as usize].surround;
        surround == SurroundingsHint::No && self.open.last().is_some_and(|open| open.within)
    }

    /// Returns the number of open elements.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Opens an element. If it is a list item, row, cell or term, first closes the previous one.
    pub(super) fn start(
        &mut self,
        name: ElementName,
        part: ElementRole,
        traits: &RoleHints<'_>,
        offset: usize,
        oddities: &mut ContentOddityList,
    ) {
        self.end_implied(part);
        if self.open.len() >= self.limits.1 {
            self.beyond = self.beyond.saturating_add(1);
            return oddities.note(ContentOddityKind::TooDeep, offset);
        }
        let around = self.open.last();
        let within = around.is_some_and(|open| open.within);
        let hidden = traits.hidden || around.is_some_and(|open| open.hidden);
        let is_withheld = traits.nosnippet || around.is_some_and(|open| open.is_withheld);
        let (surround, favour) = judge(part, traits, within);
        let kind = kind_in(part, self.kind());
        let region = match part.is_region() || surround > SurroundingsHint::No {
            true => {
                let region = PageRegion {
                    parent: self.region(),
                    part,
                    surround,
                    favour,
                    is_navigation: is_navigation(part, traits),
                };
                self.add(region, offset, oddities)
            }
            false => self.region(),
        };
        let without = match traits.id {
            Some(_) => surround_without_id(part, traits, within),
            None => surround,
        };
        let is_own = region != self.region();
        let named = traits.id.filter(|_| without < surround && is_own);
        let named = named.map(|id| &id[..id.floor_char_boundary(MAX_NAME_BYTES)]);
        let named = named.map(|id| (letters(id), without));
        self.open.push(OpenElement {
            name,
            named,
            part,
            region,
            kind,
            hidden,
            is_withheld,
            within: within
                || matches!(
                    favour,
                    MainTextHint::Main | MainTextHint::Article | MainTextHint::Body
                ),
        });
    }

    /// Processes the text of a heading. If an open element is marked as surroundings by nothing but
    /// its id, and that id is derived from this heading (for example `related-work`), drops the
    /// mark. There are two exceptions outside of elements marked as main text: the mark stays if
    /// the id is that of comments or a notice, or if the heading is a single word.
    pub(super) fn heading(&mut self, text: &str) {
        if self.open.iter().all(|open| open.named.is_none()) {
            return;
        }
        let (heading, has_words) = (letters(text), has_words(text));
        let has_number = text.starts_with(|c: char| c.is_ascii_digit());
        let mut is_in_text = false;
        for open in &mut self.open {
            let region = &mut self.all[open.region as usize];
            let may_be = is_in_text || (has_words && region.surround <= SurroundingsHint::Named);
            // A heading such as `3 Comments` belongs to readers' comments and proves that the id
            // marks surroundings, so keep the mark.
            let may_be = may_be && !(has_number && region.surround == SurroundingsHint::Comments);
            if let Some((id, without)) = &open.named
                && may_be
                && is_made_from(id, &heading)
            {
                region.surround = *without;
                open.named = None;
            }
            is_in_text |= region.favour >= MainTextHint::Named;
        }
    }

    /// Closes the innermost open element named `name`, with the elements open within it. An end tag
    /// in a table cell never closes an element around the table.
    pub(super) fn end(&mut self, name: ElementName, part: ElementRole) {
        if self.beyond > 0 {
            self.beyond -= 1;
            return;
        }
        let stops = |open: &OpenElement| match part {
            ElementRole::Item => open.part == ElementRole::List,
            ElementRole::Table | ElementRole::Row | ElementRole::Page => false,
            ElementRole::Cell => open.part == ElementRole::Table,
            _ => matches!(open.part, ElementRole::Cell | ElementRole::Table) && open.part != part,
        };
        self.close(|open| open.name == name, stops);
    }

    fn end_implied(&mut self, part: ElementRole) {
        match part {
            ElementRole::Item => self.close(|open| open.part == part, |open| is_holder(open.part)),
            ElementRole::Term | ElementRole::Definition => self.close(
                |open| matches!(open.part, ElementRole::Term | ElementRole::Definition),
                |open| is_holder(open.part),
            ),
            ElementRole::Row => self.close(
                |open| open.part == part,
                |open| open.part == ElementRole::Table,
            ),
            ElementRole::Cell => {
                let ends =
                    |open: &OpenElement| matches!(open.part, ElementRole::Row | ElementRole::Table);
                self.close(|open| open.part == part, ends);
            }
            _ => {}
        }
    }

    /// Closes the innermost element that satisfies `is`, with the elements open within it. Closes
    /// nothing if an element that satisfies `stops` is found first.
    fn close(&mut self, is: impl Fn(&OpenElement) -> bool, stops: impl Fn(&OpenElement) -> bool) {
        for at in (0..self.open.len()).rev() {
            if is(&self.open[at]) {
                return self.open.truncate(at);
            }
            if stops(&self.open[at]) {
                return;
            }
        }
    }

    fn add(&mut self, region: PageRegion, offset: usize, oddities: &mut ContentOddityList) -> u32 {
        let parent = region.parent;
        if self.all.len() >= self.limits.0 {
            oddities.note(ContentOddityKind::RegionsFull, offset);
            return parent;
        }
        self.all.push(region);
        u32::try_from(self.all.len() - 1).unwrap_or(parent)
    }
}

/// Returns whether items and terms may be nested in this element. If so, an item or term that
/// begins in the element doesn't end an item or term around the element.
fn is_holder(part: ElementRole) -> bool {
    matches!(
        part,
        ElementRole::List
            | ElementRole::Terms
            | ElementRole::Table
            | ElementRole::Cell
            | ElementRole::Nav
            | ElementRole::Article
    )
}

/// Returns the kind of text in an element. `around` is the kind of the text around the element.
fn kind_in(part: ElementRole, around: BlockKind) -> BlockKind {
    match part {
        ElementRole::Item => BlockKind::ListItem,
        ElementRole::Term => BlockKind::Term,
        ElementRole::Definition => BlockKind::Definition,
        ElementRole::Cell => BlockKind::Cell,
        ElementRole::Caption => BlockKind::Caption,
        ElementRole::Quote => BlockKind::Quote,
        ElementRole::Pre => BlockKind::Code,
        ElementRole::Article | ElementRole::Main | ElementRole::Section => BlockKind::Paragraph,
        _ => around,
    }
}
