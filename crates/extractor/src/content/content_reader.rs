//! The consumer that builds a [`PageContent`] from tags and text.

mod date_elements;

use std::ops::Range;

use super::PageContext;
use super::block_builder::BlockBuilder;
use super::content_limits::{ContentLimits, ContentOddityKind, ContentOddityList};
use super::element_roles::{ElementRole, part_of};
use super::head_metadata::{HeadMetadataCollector, MetaElement};
use super::heading_controls::{HeadingControlTracker, RemovedHeadingControlKind};
use super::json_ld::{JsonLdItem, JsonLdReader};
use super::language::{LanguageSource, detect};
use super::main_text::places;
use super::open_inline_elements::{NoscriptTextKind, OpenInlineElements};
use super::page_content::{Block, BlockKind, PageContent};
use super::regions::RegionTracker;
use super::role_hints::RoleHints;
use super::ruby::{OpenRubyElement, RubyPart};
use crate::collapsed_text_builder::{CollapsedTextBuilder, trim};
use crate::head_end::HeadTracker;
use crate::html::element_name::{self, ElementName, is_void};
use crate::html::tag_consumer::{Namespace, TagConsumer, TagContext};
use crate::html::tokenizer::{Tag, TextBetweenTags};

/// A consumer that collects the content of a page. It can share its pass over the page with other
/// consumers.
pub(crate) struct ContentReader {
    limits: ContentLimits,
    oddities: ContentOddityList,
    head: HeadMetadataCollector,
    json_ld: JsonLdReader,
    title: Option<CollapsedTextBuilder>,
    flow: BlockBuilder,
    /// The ranges of `flow.text` that snippets must not contain, in order.
    withheld: Vec<Range<usize>>,
    regions: RegionTracker,
    spans: OpenInlineElements,
    /// The kind of the next text: text of the page, a title, a script or the like.
    raw: ContentTextKind,
    head_end: HeadTracker,
    /// The level of the open heading.
    heading: Option<u8>,
    marks: HeadingControlTracker,
    /// What was removed from the last block if it is a heading, such as a permalink or an edit
    /// link.
    removed_marks: RemovedHeadingControlKind,
    /// The id of the current block's element or, if the block is a heading, of the first anchor in
    /// it.
    id: Option<Box<str>>,
    /// An id for the next block, if that is a heading without an id. This is the id of the last
    /// anchor after the previous block, or of a container that has no text yet.
    near_id: Option<Box<str>>,
    /// The id of an anchor within the current block, and the length of the text before the anchor.
    tail_id: Option<(Box<str>, usize)>,
}

/// The kind of text that comes next, which depends on its element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContentTextKind {
    No,
    Title,
    JsonLd,
    /// Visible text of `xmp` or `plaintext`.
    Shown,
    Other,
}

impl ContentReader {
    pub(crate) fn new(limits: &ContentLimits) -> ContentReader {
        ContentReader {
            oddities: ContentOddityList::default(),
            head: HeadMetadataCollector::new(limits),
            json_ld: JsonLdReader::new(limits),
            title: None,
            flow: BlockBuilder::new(limits),
            withheld: Vec::new(),
            regions: RegionTracker::new(limits),
            spans: OpenInlineElements::default(),
            raw: ContentTextKind::No,
            head_end: HeadTracker::default(),
            heading: None,
            marks: HeadingControlTracker::default(),
            removed_marks: RemovedHeadingControlKind::Nothing,
            id: None,
            near_id: None,
            tail_id: None,
            limits: limits.clone(),
        }
    }

    /// Returns the content of the page whose decoded text is `page`.
    pub(crate) fn finish(mut self, context: &PageContext<'_>, page: &str) -> PageContent {
        self.end_raw(0);
        self.end_block(0);
        self.end_readings();
        self.add_json_ld_dates();
        if let Some(value) = context.content_language {
            self.head
                .language
                .declare(value, LanguageSource::Header, 0, &mut self.oddities);
        }
        let title = self.title.take().map(|mut title| title.take());
        if title.as_ref().is_some_and(|(_, cut)| *cut) {
            self.oddities.note(ContentOddityKind::FieldCut, 0);
        }
        let title = title.and_then(|(title, _)| title);
        let (text, raw) = self.flow.into_parts();
        let places = places(&text, &raw, &self.regions.all, title.as_deref());
        let blocks = raw.into_iter().zip(places).map(|(block, place)| Block {
            kind: block.kind,
            range: block.start..block.end,
            place,
            id: block.id,
        });
        let graph = self.head.open_graph;
        let description = self.head.description.or_else(|| graph.description.clone());
        let mut content = PageContent {
            title,
            description: description.or(self.head.twitter_description),
            keywords: self.head.keywords,
            authors: authors(&self.json_ld.items).unwrap_or(self.head.authors),
            section: self.head.section.or_else(|| section(&self.json_ld.items)),
            language: self.head.language,
            dates: self
                .head
                .dates
                .finish(context.fetched_at, &mut self.oddities),
            open_graph: graph,
            json_ld: self.json_ld.items,
            blocks: blocks.collect(),
            oddities: Vec::new(),
            withheld: self.withheld,
            text,
        };
        content.language.detected = detect_in(&content, &self.limits);
        let dates = (content.published(), content.modified());
        if let (Some(published), Some(modified)) = dates
            && modified.moment.unix_seconds + 86_400 < published.moment.unix_seconds
        {
            self.oddities
                .note(ContentOddityKind::ModifiedBeforePublished, 0);
        }
        content.oddities = self.oddities.into_list(page);
        content
    }

    /// Returns the number of finished blocks.
    pub(super) fn blocks(&self) -> usize {
        self.flow.blocks.len()
    }

    /// Returns the text of the last block if it is a heading from which words were removed, for
    /// example an edit link. `None` otherwise.
    pub(super) fn shortened_heading(&self) -> Option<&str> {
        let last = self.flow.blocks.last();
        let last = last.filter(|_| self.removed_marks == RemovedHeadingControlKind::Words)?;
        let withheld = self.withheld.last();
        let is_withheld = withheld.is_some_and(|range| range.start == last.start);
        Some(if is_withheld {
            ""
        } else {
            &self.flow.text[last.start..last.end]
        })
    }

    /// Returns the open `ruby` element, if there is one.
    pub(super) fn ruby(&self) -> Option<&OpenRubyElement> {
        self.spans.ruby.as_ref()
    }

    /// Returns whether no text was read since the last block ended.
    pub(super) fn is_between_blocks(&self) -> bool {
        self.flow.is_empty()
    }

    /// Returns whether the content includes the text at this position.
    fn wants_text(&self, at: TagContext) -> bool {
        if !at.shown {
            return false;
        }
        match self.raw {
            ContentTextKind::No => !at.raw && !self.regions.is_hidden() && !self.spans.is_hidden(),
            ContentTextKind::Title => true,
            ContentTextKind::JsonLd => true,
            ContentTextKind::Shown => !self.regions.is_hidden(),
            ContentTextKind::Other => false,
        }
    }

    /// Returns whether text at this position is shown on the page, and isn't part of a title or a
    /// script.
    pub(super) fn wants_page_text(&self, at: TagContext) -> bool {
        matches!(self.raw, ContentTextKind::No | ContentTextKind::Shown) && self.wants_text(at)
    }

    /// Returns whether snippets must not contain the current text (`data-nosnippet`).
    pub(super) fn is_withheld(&self) -> bool {
        self.regions.is_withheld() || self.spans.is_withheld()
    }

    /// Returns the kind of text that is being read in a `noscript`.
    pub(super) fn noscript(&self) -> NoscriptTextKind {
        self.spans.noscript
    }

    /// Processes the start tag of a visible HTML element.
    fn element(&mut self, tag: &Tag<'_>, offset: usize) {
        self.head_end.start(tag.name);
        self.spans.noscript = match tag.name {
            element_name::NOSCRIPT => NoscriptTextKind::Unknown,
            _ => NoscriptTextKind::No,
        };
        match tag.name {
            element_name::META => self.meta(tag, offset),
            element_name::TITLE => self.raw = ContentTextKind::Title,
            element_name::HTML | element_name::BODY => self.root(tag, offset),
            _ => {}
        }
        match self.raw {
            ContentTextKind::Title if self.title.is_none() => {
                self.title = Some(CollapsedTextBuilder::new(self.limits.field_bytes));
            }
            ContentTextKind::Title => self.raw = ContentTextKind::Other,
            _ => {}
        }
        let part = part_of(tag.name);
        let traits = RoleHints::of(tag);
        match part {
            ElementRole::Break => self.line_break(offset),
            ElementRole::Anchor | ElementRole::Inline => self.inline(tag, part, &traits, offset),
            _ => self.block(tag, part, &traits, offset),
        }
        self.micro_date(tag, &traits, offset);
    }

    fn block(&mut self, tag: &Tag<'_>, part: ElementRole, traits: &RoleHints<'_>, offset: usize) {
        // An element that may be part of a heading doesn't end the open heading.
        let in_heading = self.heading.is_some() && is_in_heading(tag.name, part);
        if in_heading {
            self.marks.start(tag, traits, &self.flow);
        }
        if !in_heading {
            self.end_block(offset);
            self.spans.end_hidden_at_block(tag.name);
        }
        if part.is_container() {
            self.regions
                .start(tag.name, part, traits, offset, &mut self.oddities);
        } else if traits.hidden && !is_void(tag.name) {
            self.spans.start(tag.name, true, self.regions.depth());
        }
        let level = match part {
            ElementRole::Heading(level) => Some(level),
            _ => heading_role(traits),
        };
        self.heading = level.or(self.heading.filter(|_| in_heading));
        let Some(id) = self.id_of(traits.id, offset) else {
            return;
        };
        match part {
            // If a heading comes first in the container, the heading may take the container's id.
            ElementRole::Section
            | ElementRole::Article
            | ElementRole::Main
            | ElementRole::Plain => self.near_id = Some(id),
            ElementRole::Page | ElementRole::List | ElementRole::Table => {}
            _ => self.id = Some(id),
        }
    }

    fn inline(&mut self, tag: &Tag<'_>, part: ElementRole, traits: &RoleHints<'_>, offset: usize) {
        if self.heading.is_some() && !is_void(tag.name) {
            self.marks.start(tag, traits, &self.flow);
        }
        match &mut self.spans.ruby {
            Some(ruby) => ruby.start(tag.name),
            None if tag.name == element_name::RUBY => {
                self.spans.ruby = Some(OpenRubyElement::new(self.flow.last_char()));
            }
            None => {}
        }
        if part == ElementRole::Anchor {
            let name = tag.attributes.get("name");
            let name = traits.id.or(name);
            self.near(name, offset);
            // Words of adjacent links are separate, even without a space between the links.
            if self.spans.after_link {
                self.separate();
            }
            let href = tag.attributes.get("href");
            self.spans.in_link |= href.is_some();
        } else if traits.id.is_some() {
            self.near(traits.id, offset);
        }
        let is_annotation = matches!(
            tag.name,
            element_name::ANNOTATION | element_name::ANNOTATION_XML
        );
        let is_hidden = (traits.hidden || is_annotation) && !is_void(tag.name);
        let depth = self.regions.depth();
        self.spans.start(tag.name, is_hidden, depth);
        self.spans.withhold(tag.name, traits.nosnippet, depth);
        let is_apart = match tag.name {
            // A `wbr` only allows a line break, so the letters around it are one word.
            element_name::WBR => false,
            element_name::LABEL => true,
            element_name::RT => self.spans.ruby.is_none(),
            other => is_void(other),
        };
        if is_apart {
            self.separate();
        }
    }

    /// Ends the current word, as if a space came next.
    fn separate(&mut self) {
        self.flow.separate();
        if let Some(ruby) = &mut self.spans.ruby {
            ruby.separate();
        }
    }

    /// Records the id of an anchor or span. The open heading gets the id. If no heading is open,
    /// the next block may get it.
    fn near(&mut self, id: Option<&str>, offset: usize) {
        let Some(id) = self.id_of(id, offset) else {
            return;
        };
        if self.heading.is_some() {
            self.id.get_or_insert(id);
        } else if self.flow.is_empty() {
            self.near_id = Some(id);
        } else {
            self.tail_id = Some((id, self.flow.text.len()));
        }
    }

    fn id_of(&mut self, id: Option<&str>, offset: usize) -> Option<Box<str>> {
        let id = id.filter(|id| !id.is_empty())?;
        if id.len() > self.limits.id_bytes {
            self.oddities.note(ContentOddityKind::IdTooLong, offset);
            return None;
        }
        Some(id.into())
    }

    /// Processes a line break. Two in a row end a paragraph.
    fn line_break(&mut self, offset: usize) {
        if self.regions.kind() == BlockKind::Code {
            return self
                .flow
                .push("\n", false, true, offset, &mut self.oddities);
        }
        if std::mem::replace(&mut self.spans.after_break, true) && self.heading.is_none() {
            self.end_block(offset);
        }
        self.spans.after_break = true;
        self.separate();
    }

    fn end_block(&mut self, offset: usize) {
        // A ruby can't contain a block, so an open ruby lacks its end tag.
        self.end_ruby();
        let kind = match self.heading.take() {
            Some(level) => BlockKind::Heading { level },
            None => self.regions.kind(),
        };
        let mut id = self.id.take();
        if kind.level().is_some() && id.is_none() {
            id = self.near_id.clone();
        }
        let (region, bytes) = (self.regions.region(), self.flow.text.len());
        if self.flow.is_empty() {
            self.marks = HeadingControlTracker::default();
        } else if kind.level().is_some() {
            self.removed_marks = self.marks.finish(&mut self.flow);
        } else {
            self.removed_marks = RemovedHeadingControlKind::Nothing;
            self.push_readings(offset);
        }
        let before = self.flow.blocks.last().map_or(0, |block| block.end);
        let ended = self
            .flow
            .end_block(kind, region, &mut id, &mut self.oddities, offset);
        self.settle_withheld(before, kind);
        if ended
            && kind.level().is_some()
            && let Some(heading) = self.flow.blocks.last()
        {
            self.regions
                .heading(&self.flow.text[heading.start..heading.end]);
        }
        // An anchor at the end of a block usually marks the next block, so the next block gets the
        // anchor's id.
        let tail = self.tail_id.take().filter(|(_, at)| *at == bytes);
        self.near_id = match (ended, tail) {
            (true, Some((tail, _))) => Some(tail),
            (true, None) => None,
            // A heading without text passes its id on to the next heading.
            (false, _) => id
                .filter(|_| kind.level().is_some())
                .or(self.near_id.take()),
        };
        self.spans.after_break = false;
    }

    /// Adapts the withheld ranges that begin at `before` or later, where the block before the ended
    /// one ends, to the final text. Removals within headings and code move the text, so such a
    /// block is withheld as a whole.
    fn settle_withheld(&mut self, before: usize, kind: BlockKind) {
        if self.withheld.last().is_none_or(|last| last.start < before) {
            return;
        }
        // The text that ended may be empty. If there are too many blocks, it joins the last one.
        let ended = self.flow.blocks.last();
        let ended = ended.map_or(0..0, |block| block.start.max(before)..block.end);
        let moves = kind == BlockKind::Code || kind.level().is_some();
        if moves || ended.is_empty() {
            let first = self.withheld.partition_point(|range| range.start < before);
            self.withheld.truncate(first);
            if !ended.is_empty() {
                self.withheld.push(ended);
            }
            return;
        }
        while let Some(last) = self.withheld.last_mut() {
            last.end = last.end.min(ended.end);
            if last.start < last.end {
                return;
            }
            self.withheld.pop();
        }
    }

    /// Appends the pending ruby readings to the current block. Not called at the end of a heading:
    /// the readings of a heading are appended to the block after it.
    fn push_readings(&mut self, offset: usize) {
        let readings = std::mem::take(&mut self.spans.readings);
        if !readings.is_empty() {
            self.separate();
            self.flow
                .push(&readings, false, false, offset, &mut self.oddities);
        }
    }

    /// Turns ruby readings that are left at the end of the page into a block.
    fn end_readings(&mut self) {
        self.push_readings(0);
        self.end_block(0);
    }

    /// Ends the open ruby, and keeps its readings until the block ends.
    fn end_ruby(&mut self) {
        let Some(ruby) = self.spans.ruby.take() else {
            return;
        };
        let readings = ruby.into_readings();
        let all = &mut self.spans.readings;
        if !readings.is_empty() && all.len() + readings.len() < self.limits.text_bytes {
            if !all.is_empty() {
                all.push(' ');
            }
            all.push_str(&readings);
        }
    }

    fn end_raw(&mut self, offset: usize) {
        match std::mem::replace(&mut self.raw, ContentTextKind::No) {
            ContentTextKind::JsonLd => self.json_ld.end_script(offset, &mut self.oddities),
            ContentTextKind::Shown => self.end_block(offset),
            ContentTextKind::Title | ContentTextKind::Other | ContentTextKind::No => {}
        }
    }

    fn root(&mut self, tag: &Tag<'_>, offset: usize) {
        for attribute in tag.attributes.iter() {
            let by = match () {
                () if attribute.is("lang") => LanguageSource::Lang,
                () if attribute.is("xml:lang") => LanguageSource::XmlLang,
                () => continue,
            };
            if tag.attributes.is_first(attribute) {
                let language = &mut self.head.language;
                language.declare(attribute.value(), by, offset, &mut self.oddities);
            }
        }
    }

    fn meta(&mut self, tag: &Tag<'_>, offset: usize) {
        let get = |name| tag.attributes.get(name);
        if let Some(content) = get("content") {
            let meta = MetaElement {
                name: get("name"),
                property: get("property"),
                equiv: get("http-equiv"),
                content,
                is_in_head: self.head_end.is_head(),
            };
            self.head.meta(meta, offset, &mut self.oddities);
        }
    }
}

impl TagConsumer for ContentReader {
    fn start(&mut self, tag: &Tag<'_>, at: TagContext) {
        self.end_raw(at.offset);
        let (attributes, was_cut) = tag.attributes_up_to(self.limits.attributes);
        let tag = &Tag { attributes, ..*tag };
        if was_cut {
            self.oddities.note(ContentOddityKind::TagCut, at.offset);
        }
        if at.space != Namespace::Html {
            if at.shown {
                self.spans.start_foreign(tag, self.regions.depth());
            }
            return;
        }
        if at.raw {
            self.raw = match tag.name {
                element_name::XMP | element_name::PLAINTEXT => ContentTextKind::Shown,
                element_name::SCRIPT if is_json_ld(tag) => ContentTextKind::JsonLd,
                _ => ContentTextKind::Other,
            };
        }
        if at.shown {
            self.element(tag, at.offset);
        } else if at.raw {
            self.raw = ContentTextKind::Other;
        }
    }

    fn end(&mut self, tag: &Tag<'_>, at: TagContext) {
        self.end_raw(at.offset);
        if !at.shown {
            return;
        }
        self.spans.end(tag.name);
        self.spans.noscript = NoscriptTextKind::No;
        self.end_time(tag, at.offset);
        if at.space != Namespace::Html {
            return;
        }
        self.head_end.end(tag.name);
        let part = part_of(tag.name);
        self.marks.end(tag.name, &self.flow);
        if self
            .spans
            .ruby
            .as_mut()
            .is_some_and(|ruby| ruby.end(tag.name))
        {
            self.end_ruby();
        }
        match part {
            ElementRole::Anchor => {
                self.spans.in_link = false;
                self.spans.after_link = true;
            }
            ElementRole::Break => self.line_break(at.offset),
            ElementRole::Inline | ElementRole::Page => {}
            _ if self.heading.is_some() && is_in_heading(tag.name, part) => {
                self.regions.end(tag.name, part);
            }
            _ => {
                self.end_block(at.offset);
                if part.is_container() {
                    self.regions.end(tag.name, part);
                    self.spans.end_above(self.regions.depth());
                }
            }
        }
    }

    fn text(&mut self, text: &TextBetweenTags<'_>, at: TagContext) {
        if !self.wants_text(at) {
            return;
        }
        text.parts(|part| match self.raw {
            ContentTextKind::Title => {
                if let Some(title) = &mut self.title {
                    title.push(part);
                }
            }
            ContentTextKind::JsonLd => self.json_ld.text(part),
            ContentTextKind::Other => {}
            ContentTextKind::No | ContentTextKind::Shown => self.page_text(part, at.offset),
        });
    }
}

impl ContentReader {
    fn page_text(&mut self, text: &str, offset: usize) {
        let text = self.spans.noscript.without_markup(text);
        if text.is_empty() {
            return;
        }
        self.spans.after_link = false;
        self.head_end.text(text);
        let blank = text.chars().all(char::is_whitespace);
        if !blank {
            self.spans.after_break = false;
            if let Some(time) = &mut self.spans.time {
                time.push(text);
            }
        }
        let exact = self.regions.kind() == BlockKind::Code && self.heading.is_none();
        let in_link = self.spans.in_link;
        let is_withheld = self.is_withheld();
        let base;
        let text = match &mut self.spans.ruby {
            None => text,
            Some(ruby) => match ruby.part() {
                RubyPart::Parenthesis => return,
                // The readings of a block are appended to it, out of the withheld element.
                RubyPart::Reading if is_withheld => return,
                RubyPart::Reading => return ruby.read(text, self.limits.text_bytes),
                RubyPart::Base => {
                    base = ruby.add_base(text);
                    &base
                }
            },
        };
        let start = self.flow.text.len();
        self.flow
            .push(text, in_link, exact, offset, &mut self.oddities);
        let end = self.flow.text.len();
        if is_withheld && start < end {
            match self.withheld.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => self.withheld.push(start..end),
            }
        }
    }
}

/// Returns whether an element may be part of a heading.
fn is_in_heading(name: ElementName, part: ElementRole) -> bool {
    part == ElementRole::Plain || name == element_name::BUTTON
}

fn is_json_ld(tag: &Tag<'_>) -> bool {
    let kind = tag.attributes.get("type").unwrap_or_default();
    let essence = trim(kind.split(';').next().unwrap_or_default());
    essence.eq_ignore_ascii_case("application/ld+json")
}

/// Returns the level of a heading that is declared by `role`. `None` for any other element.
fn heading_role(traits: &RoleHints<'_>) -> Option<u8> {
    let is_heading = traits
        .role
        .is_some_and(|role| role.eq_ignore_ascii_case("heading"));
    let level = || traits.level.and_then(|level| level.trim().parse().ok());
    is_heading.then(|| level().unwrap_or(2u8).clamp(1, 6))
}

/// Detects the language from the main text without code. If that text is too short, uses all text.
fn detect_in(content: &PageContent, limits: &ContentLimits) -> Option<super::DetectedLanguage> {
    let words = |block: &&Block| block.kind != BlockKind::Code;
    let main = content.main_blocks().filter(words);
    let all = content.blocks.iter().filter(words);
    let declared = content.language.declared.as_ref();
    detect(main.map(|block| content.text_of(block)), declared, limits)
        .or_else(|| detect(all.map(|block| content.text_of(block)), declared, limits))
}

/// Returns the authors in the first JSON-LD item that describes a text (such as an article) and
/// names authors.
fn authors(items: &[JsonLdItem]) -> Option<Vec<String>> {
    let mut texts = items.iter().filter(|item| item.is_text());
    let named = texts.find(|item| !item.authors.is_empty())?;
    Some(named.authors.clone())
}

/// Returns the section of the site that a page is in, from the page's JSON-LD items: the first
/// declared section or, if none is declared, the last breadcrumb but one. (The last breadcrumb is
/// the page itself.)
fn section(items: &[JsonLdItem]) -> Option<String> {
    let declared = items.iter().find_map(|item| item.section.clone());
    let trail = items.iter().map(|item| item.breadcrumbs.as_slice());
    let mut parents = trail.filter_map(|trail| trail.iter().rev().nth(1));
    declared.or_else(|| parents.next().cloned())
}
