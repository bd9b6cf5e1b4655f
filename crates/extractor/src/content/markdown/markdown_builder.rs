//! Reads the content of a page, and writes each of its blocks as Markdown.

use super::block_containers::{EnclosingContainers, OpenContainers};
use super::inline_markdown_writer::InlineMarkdownWriter;
use crate::content::block_builder::is_dropped;
use crate::content::content_reader::ContentReader;
use crate::content::element_roles::part_of;
use crate::content::page_content::PageContent;
use crate::content::ruby::{OpenRubyElement, RubyPart};
use crate::content::{ContentLimits, PageContext};
use crate::html::element_name;
use crate::html::tag_consumer::{Namespace, TagConsumer, TagContext};
use crate::html::tokenizer::{Tag, TextBetweenTags};

/// The Markdown of the block with the same index in [`PageContent::blocks`].
#[derive(Clone, Debug, Default)]
pub(super) struct MarkdownBlock {
    /// The text of the block as Markdown.
    pub(super) words: String,
    /// The Markdown of an image before the block. The image is not part of any block.
    pub(super) figure: String,
    pub(super) place: EnclosingContainers,
    /// The programming language of a block of code, taken from a class.
    pub(super) language: Option<Box<str>>,
}

/// Collects the Markdown of each block. Uses a [`ContentReader`] to find out where blocks end.
pub(super) struct MarkdownBuilder<'l> {
    content: ContentReader,
    link: &'l mut dyn FnMut(&str) -> Option<String>,
    inline: InlineMarkdownWriter,
    nesting: OpenContainers,
    blocks: Vec<MarkdownBlock>,
    figure: String,
    language: Option<Box<str>>,
    /// The current piece of text, with its character references decoded.
    text: String,
}

impl<'l> MarkdownBuilder<'l> {
    pub(super) fn new(
        limits: &ContentLimits,
        link: &'l mut dyn FnMut(&str) -> Option<String>,
    ) -> MarkdownBuilder<'l> {
        MarkdownBuilder {
            content: ContentReader::new(limits),
            link,
            inline: InlineMarkdownWriter::default(),
            nesting: OpenContainers::default(),
            blocks: Vec::new(),
            figure: String::new(),
            language: None,
            text: String::new(),
        }
    }

    pub(super) fn finish(
        mut self,
        context: &PageContext<'_>,
        page: &str,
    ) -> (PageContent, Vec<MarkdownBlock>) {
        let last = MarkdownBlock {
            words: self.inline.take(),
            figure: self.figure,
            place: self.nesting.place(),
            language: self.language,
        };
        let content = self.content.finish(context, page);
        if self.blocks.len() < content.blocks.len() {
            self.blocks.push(last);
        }
        self.blocks
            .resize_with(content.blocks.len(), MarkdownBlock::default);
        (content, self.blocks)
    }

    /// If the last tag ended a block, adds the Markdown of that block to `blocks`.
    fn follow(&mut self, is_block: bool) {
        if self.content.blocks() > self.blocks.len() {
            let mut words = self.inline.take();
            if let Some(heading) = self.content.shortened_heading() {
                self.inline.text(heading);
                words = self.inline.take();
            }
            self.blocks.push(MarkdownBlock {
                words,
                figure: std::mem::take(&mut self.figure),
                place: self.nesting.place(),
                language: self.language.take(),
            });
        } else if is_block && self.content.is_between_blocks() && !self.inline.is_empty() {
            self.figure = self.inline.take();
        }
    }

    /// Returns whether the Markdown includes the text at this position.
    fn wants_text(&self, at: TagContext) -> bool {
        self.content.wants_page_text(at) && !self.content.is_withheld()
    }

    /// Adds the current piece of text to the Markdown of the block.
    fn words(&mut self) {
        let text = self.content.noscript().without_markup(&self.text);
        match self.content.ruby().map(|ruby| (ruby, ruby.part())) {
            None => self.inline.text(text),
            Some((ruby, RubyPart::Base)) => self.inline.text(&ruby.base_text(text)),
            Some(_) => {}
        }
    }

    fn element(&mut self, tag: &Tag<'_>, at: TagContext) {
        let get = |name| tag.attributes.get(name);
        match tag.name {
            element_name::A => {
                let link = get("href").and_then(|href| (self.link)(href.trim()));
                self.inline.start(element_name::A, link);
            }
            element_name::IMG if self.wants_text(at) => {
                let target = get("src").and_then(|src| (self.link)(src.trim()));
                if let Some(target) = target {
                    self.inline.image(get("alt").unwrap_or_default(), &target);
                }
            }
            element_name::BR if self.content.wants_page_text(at) => self.inline.line_break(),
            element_name::PRE | element_name::CODE | element_name::DIV => {
                let language = get("class").and_then(language_of);
                if let Some(language) = language {
                    self.language = Some(language.into());
                }
                self.inline.start(tag.name, None);
            }
            _ => self.inline.start(tag.name, None),
        }
        self.nesting.start(tag);
    }
}

impl TagConsumer for MarkdownBuilder<'_> {
    fn start(&mut self, tag: &Tag<'_>, at: TagContext) {
        self.content.start(tag, at);
        let part = part_of(tag.name);
        let is_html = at.space == Namespace::Html && at.shown;
        self.follow(is_html && part.is_block());
        if is_html {
            self.element(tag, at);
        }
    }

    fn end(&mut self, tag: &Tag<'_>, at: TagContext) {
        let readings = self.content.ruby().map(OpenRubyElement::readings);
        let readings = readings
            .filter(|_| tag.name == element_name::RUBY)
            .map(str::to_owned);
        self.content.end(tag, at);
        let part = part_of(tag.name);
        let is_html = at.space == Namespace::Html && at.shown;
        self.follow(is_html && part.is_block());
        if let Some(readings) = readings.filter(|text| !text.is_empty())
            && self.content.ruby().is_none()
        {
            self.inline.text(&format!("({readings})"));
        }
        if is_html {
            self.inline.end(tag.name);
            self.nesting.end(tag.name);
            if tag.name == element_name::PRE {
                self.language = None;
            }
        }
    }

    fn text(&mut self, text: &TextBetweenTags<'_>, at: TagContext) {
        if self.wants_text(at) {
            // Decode the character references of the whole piece first. Otherwise they would split
            // words.
            self.text.clear();
            text.parts(|part| self.text.extend(part.chars().filter(|c| !is_dropped(*c))));
            self.words();
        }
        self.content.text(text, at);
    }
}

/// Returns the programming language in a class such as `language-rust`, `lang-rust`,
/// `highlight-python3`.
fn language_of(class: &str) -> Option<&str> {
    let prefixes = ["language-", "lang-", "highlight-source-", "highlight-"];
    let named = class
        .split_ascii_whitespace()
        .find_map(|word| prefixes.iter().find_map(|prefix| word.strip_prefix(prefix)));
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '#' | '.' | '_');
    named.filter(|name| !name.is_empty() && name.len() <= 32 && name.chars().all(is_name))
}
