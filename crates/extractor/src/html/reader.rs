//! What tags and text come to: the links and the rest of a [`Page`].

use html5ever::tokenizer::Tag;
use html5ever::{LocalName, local_name};

use super::foreign::Foreign;
use crate::limits::{Limits, What, note};
use crate::page::{Element, Link, LinkKind, Meta, Page, kind_of_link};
use crate::refresh::refresh_target;
use crate::rel::Rel;
use crate::text::{Collapsed, trim};

/// How the tokenizer goes on behind a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Markup,
    /// Text with character references: `title`, `textarea`.
    Rcdata,
    /// Text alone: `style` and such.
    Rawtext,
    Script,
    /// Text to the very end.
    Plaintext,
}

/// Gathers a page from its tags and text.
pub(super) struct Reader {
    limits: Limits,
    page: Page,
    foreign: Foreign,
    /// `template` elements open whose content is nobody's to see.
    inert: u32,
    /// What text belongs to.
    text_of: TextOf,
    title: Collapsed,
    title_seen: bool,
    /// The link whose text is being read, by its position in the page's links.
    anchor: Option<usize>,
    anchor_text: Collapsed,
    /// The next tag lost some of its attributes before it came here.
    pub(super) tag_was_cut: bool,
}

/// The element whose text comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextOf {
    /// The page: a link's text, if one is open.
    Page,
    Title,
    /// A script, style or form field: nobody's.
    Raw,
}

impl Reader {
    pub(super) fn new(limits: Limits) -> Reader {
        Reader {
            title: Collapsed::new(limits.title_octets),
            anchor_text: Collapsed::new(limits.text_octets),
            limits,
            page: Page::default(),
            foreign: Foreign::default(),
            inert: 0,
            text_of: TextOf::Page,
            title_seen: false,
            anchor: None,
            tag_was_cut: false,
        }
    }

    pub(super) fn is_foreign(&self) -> bool {
        self.foreign.is_foreign()
    }

    pub(super) fn wants_text(&self) -> bool {
        match self.text_of {
            TextOf::Page => self.anchor.is_some() && self.inert == 0 && self.foreign.is_shown(),
            TextOf::Title => true,
            TextOf::Raw => false,
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        match self.text_of {
            TextOf::Page => self.anchor_text.push(text),
            TextOf::Title => self.title.push(text),
            TextOf::Raw => {}
        }
    }

    pub(super) fn start_tag(&mut self, tag: &Tag, line: u64) -> Mode {
        self.text_of = TextOf::Page;
        self.note_attributes(tag, line);
        if self.foreign.start(tag) {
            if tag.name == local_name!("a") && self.inert == 0 && self.foreign.is_shown() {
                self.anchor(tag, line);
            }
            return Mode::Markup;
        }
        let mode = mode_behind(&tag.name);
        if mode != Mode::Markup {
            self.text_of = TextOf::Raw;
        }
        if tag.name == local_name!("template") {
            self.start_template(tag);
        } else if self.inert == 0 {
            self.element(tag, line);
        }
        mode
    }

    pub(super) fn end_tag(&mut self, tag: &Tag, line: u64) -> Mode {
        let was_title = self.text_of == TextOf::Title;
        self.text_of = TextOf::Page;
        self.note_attributes(tag, line);
        if was_title {
            self.end_title(line);
        }
        let foreign = self.foreign.end(&tag.name);
        match tag.name {
            local_name!("a") if self.inert == 0 => self.end_anchor(line),
            local_name!("template") if !foreign => self.inert = self.inert.saturating_sub(1),
            ref name if self.anchor.is_some() && separates_words(name) => {
                self.anchor_text.separate();
            }
            _ => {}
        }
        Mode::Markup
    }

    pub(super) fn finish(mut self) -> Page {
        self.end_title(1);
        self.end_anchor(1);
        self.page
    }

    /// Takes the start tag of an HTML element that is shown.
    fn element(&mut self, tag: &Tag, line: u64) {
        match tag.name {
            local_name!("a") => self.anchor(tag, line),
            local_name!("area") => self.area(tag, line),
            local_name!("link") => self.link_element(tag, line),
            local_name!("frame") => self.frame(tag, Element::Frame, line),
            local_name!("iframe") => self.frame(tag, Element::Iframe, line),
            local_name!("base") => self.base(tag, line),
            local_name!("meta") => self.meta(tag, line),
            local_name!("title") if !self.title_seen => {
                self.title_seen = true;
                self.text_of = TextOf::Title;
            }
            ref name if self.anchor.is_some() && separates_words(name) => {
                self.anchor_text.separate();
            }
            _ => {}
        }
    }

    /// A template is inert, save one that is a shadow root: browsers show that.
    fn start_template(&mut self, tag: &Tag) {
        let mode = self
            .attribute(tag, &local_name!("shadowrootmode"))
            .unwrap_or_default();
        let shown = mode.eq_ignore_ascii_case("open") || mode.eq_ignore_ascii_case("closed");
        if self.inert > 0 || !shown {
            self.inert = self.inert.saturating_add(1);
        }
    }

    fn anchor(&mut self, tag: &Tag, line: u64) {
        // An `a` within an `a` ends the outer one.
        self.end_anchor(line);
        let href = self.attribute(tag, &local_name!("href"));
        let Some(href) = href.or_else(|| self.xlink_href(tag)) else {
            return;
        };
        let link = Link {
            kind: LinkKind::Page,
            ..self.typed_link(tag, href, Element::A)
        };
        if self.add(link, line) {
            self.anchor = Some(self.page.links.len() - 1);
        }
    }

    fn area(&mut self, tag: &Tag, line: u64) {
        let Some(href) = self.attribute(tag, &local_name!("href")) else {
            return;
        };
        let mut alt = Collapsed::new(self.limits.text_octets);
        alt.push(self.attribute(tag, &local_name!("alt")).unwrap_or_default());
        let (text, cut) = alt.take();
        if cut {
            self.note(What::TextCut, line);
        }
        let link = self.typed_link(tag, href, Element::Area);
        self.add(
            Link {
                kind: LinkKind::Page,
                text,
                ..link
            },
            line,
        );
    }

    fn link_element(&mut self, tag: &Tag, line: u64) {
        let href = self
            .attribute(tag, &local_name!("href"))
            .filter(|href| !trim(href).is_empty());
        let Some(href) = href else { return };
        let mut link = self.typed_link(tag, href, Element::Link);
        link.kind = kind_of_link(link.rel, link.media_type.as_deref());
        self.add(link, line);
    }

    fn frame(&mut self, tag: &Tag, element: Element, line: u64) {
        // The content of `srcdoc` is shown in the place of what `src` names.
        if self.attribute(tag, &local_name!("srcdoc")).is_some() {
            return;
        }
        let src = self
            .attribute(tag, &local_name!("src"))
            .filter(|src| !trim(src).is_empty());
        if let Some(src) = src {
            let link = Link::plain(trim_to_limit(src, &self.limits), element);
            self.add(link, line);
        }
    }

    fn base(&mut self, tag: &Tag, line: u64) {
        let Some(href) = self.attribute(tag, &local_name!("href")) else {
            return;
        };
        if self.page.base.is_none() {
            let href = trim(href);
            if href.len() > self.limits.href_octets {
                self.note(What::HrefTooLong, line);
            } else {
                self.page.base = Some(href.to_owned());
            }
        }
    }

    fn meta(&mut self, tag: &Tag, line: u64) {
        let Some(content) = self.attribute(tag, &local_name!("content")) else {
            return;
        };
        let equiv = self
            .attribute(tag, &local_name!("http-equiv"))
            .unwrap_or_default();
        if equiv.eq_ignore_ascii_case("refresh")
            && let Some(target) = refresh_target(content)
        {
            let link = Link::plain(trim_to_limit(target, &self.limits), Element::MetaRefresh);
            self.add(link, line);
        }
        if let Some(name) = self.attribute(tag, &local_name!("name")) {
            self.named_meta(trim(name), content, line);
        }
    }

    fn named_meta(&mut self, name: &str, content: &str, line: u64) {
        let limit = self.limits.meta_octets;
        if self.page.metas.len() >= self.limits.metas {
            return self.note(What::MetasFull, line);
        }
        if name.len() > limit || content.len() > limit {
            self.note(What::MetaCut, line);
        }
        if !name.is_empty() && name.len() <= limit {
            let content = content[..content.floor_char_boundary(limit)].to_owned();
            self.page.metas.push(Meta {
                name: name.to_ascii_lowercase(),
                content,
            });
        }
    }

    /// A link with the types and the media type that its tag gives it.
    fn typed_link(&self, tag: &Tag, href: &str, element: Element) -> Link {
        let rel = self
            .attribute(tag, &local_name!("rel"))
            .map(Rel::parse)
            .unwrap_or_default();
        let media_type = self.attribute(tag, &local_name!("type"));
        // Parameters and absurd lengths say nothing about the kind.
        let media_type = media_type
            .map(|value| trim(value.split(';').next().unwrap_or_default()).to_ascii_lowercase())
            .filter(|value| !value.is_empty() && value.len() <= 255);
        Link {
            rel,
            media_type,
            ..Link::plain(trim_to_limit(href, &self.limits), element)
        }
    }

    /// Adds a link, if it has room; true where it was added.
    fn add(&mut self, link: Link, line: u64) -> bool {
        if link.href.len() > self.limits.href_octets {
            self.note(What::HrefTooLong, line);
        } else if self.page.links.len() >= self.limits.links {
            self.note(What::LinksFull, line);
        } else {
            self.page.links.push(link);
            return true;
        }
        false
    }

    fn end_anchor(&mut self, line: u64) {
        let Some(position) = self.anchor.take() else {
            return;
        };
        let (text, cut) = self.anchor_text.take();
        if cut {
            self.note(What::TextCut, line);
        }
        self.page.links[position].text = text;
    }

    fn end_title(&mut self, line: u64) {
        let (title, cut) = self.title.take();
        if cut {
            self.note(What::TitleCut, line);
        }
        self.page.title = self.page.title.take().or(title);
    }

    fn note_attributes(&mut self, tag: &Tag, line: u64) {
        let cut = std::mem::take(&mut self.tag_was_cut);
        if cut || tag.attrs.len() > self.limits.attributes {
            self.note(What::AttributesFull, line);
        }
    }

    /// How drawings named their links before SVG 2.
    fn xlink_href<'a>(&self, tag: &'a Tag) -> Option<&'a str> {
        let mut attributes = tag.attrs.iter().take(self.limits.attributes);
        let found = attributes.find(|attribute| &*attribute.name.local == "xlink:href")?;
        self.is_foreign().then_some(&found.value)
    }

    fn attribute<'a>(&self, tag: &'a Tag, name: &LocalName) -> Option<&'a str> {
        let mut attributes = tag.attrs.iter().take(self.limits.attributes);
        attributes
            .find(|attribute| attribute.name.local == *name)
            .map(|found| &*found.value)
    }

    fn note(&mut self, what: What, line: u64) {
        note(&mut self.page.oddities, what, line);
    }
}

impl Link {
    /// A link without types or text.
    fn plain(href: String, element: Element) -> Link {
        let (kind, rel) = (LinkKind::Page, Rel::default());
        Link {
            href,
            element,
            kind,
            rel,
            media_type: None,
            text: None,
        }
    }
}

/// `href` without white space at its ends. Of one that is too long, so much that it is
/// seen to be.
fn trim_to_limit(href: &str, limits: &Limits) -> String {
    let href = trim(href);
    let end = href.ceil_char_boundary(limits.href_octets.saturating_add(1));
    href[..end].to_owned()
}

/// HTML Standard 13.2.6.4.4 and 13.2.6.4.7, for a parser that runs no script: the content
/// of `noscript` is markup.
fn mode_behind(name: &LocalName) -> Mode {
    match *name {
        local_name!("script") => Mode::Script,
        local_name!("style")
        | local_name!("xmp")
        | local_name!("iframe")
        | local_name!("noembed")
        | local_name!("noframes") => Mode::Rawtext,
        local_name!("title") | local_name!("textarea") => Mode::Rcdata,
        local_name!("plaintext") => Mode::Plaintext,
        _ => Mode::Markup,
    }
}

/// Elements that begin a new line, or a new cell: the words around them are two.
fn separates_words(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("br")
            | local_name!("p")
            | local_name!("div")
            | local_name!("li")
            | local_name!("ul")
            | local_name!("ol")
            | local_name!("dl")
            | local_name!("dt")
            | local_name!("dd")
            | local_name!("td")
            | local_name!("th")
            | local_name!("tr")
            | local_name!("table")
            | local_name!("h1")
            | local_name!("h2")
            | local_name!("h3")
            | local_name!("h4")
            | local_name!("h5")
            | local_name!("h6")
            | local_name!("hr")
            | local_name!("section")
            | local_name!("article")
            | local_name!("header")
            | local_name!("footer")
            | local_name!("blockquote")
            | local_name!("pre")
            | local_name!("figure")
            | local_name!("figcaption")
            | local_name!("option")
    )
}
