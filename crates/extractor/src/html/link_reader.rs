//! Reads the links in the tags of a page.

use super::declared_media_type::{below, kind_of_object, typed};
use super::element_name::{self, ElementName};
use super::link_attributes::{LinkAttributeSyntax, holders};
use super::srcset;
use super::tag_consumer::{Namespace, TagContext};
use super::tag_kinds::TagKinds;
use super::tokenizer::{Tag, TagAttributes};
use crate::collapsed_text_builder::{CollapsedTextBuilder, trim};
use crate::css;
use crate::link::{Link, LinkCollector, LinkElement, LinkKind, kind_of_link};
use crate::oddities::OddityList;
use crate::reading_limits::{DocumentOddityKind, ReadingLimits};

/// Maximum number of files to read from one `archive` attribute. There must be a limit, because
/// each file becomes a link whose URL begins with the whole code base.
const MAX_ARCHIVES: usize = 32;
/// Maximum bytes of a code base (the `codebase` of an `applet` or `object`).
const MAX_CODEBASE_BYTES: usize = 1024;

/// Reads the links in the tags of a page.
pub(super) struct LinkReader {
    limits: ReadingLimits,
    links: LinkCollector,
    /// The index of the link whose text is being read, if there is one.
    anchor: Option<usize>,
    anchor_text: CollapsedTextBuilder,
    /// Whether the current position is in a ruby reading, which is not link text.
    is_in_reading: bool,
    /// The method of the open form. `None` if no form is open.
    form: Option<FormMethod>,
}

/// How a form is sent (HTML Standard, section 4.10.18.6, `method`).
#[derive(Clone, Copy)]
enum FormMethod {
    Get,
    Post,
    /// The form closes its dialog and isn't sent.
    Dialog,
}

impl FormMethod {
    /// Parses the value of `method` or `formmethod`. Any other value means GET.
    fn parse(value: &str) -> FormMethod {
        if value.eq_ignore_ascii_case("post") {
            FormMethod::Post
        } else if value.eq_ignore_ascii_case("dialog") {
            FormMethod::Dialog
        } else {
            FormMethod::Get
        }
    }

    /// Returns the kind of a link to the form's action. `None` if the form isn't sent.
    fn link_kind(self) -> Option<LinkKind> {
        match self {
            FormMethod::Get => Some(LinkKind::Form),
            FormMethod::Post => Some(LinkKind::PostForm),
            FormMethod::Dialog => None,
        }
    }
}

/// The context of a tag, which all links of the tag share.
struct LinkSpot<'a> {
    oddities: &'a mut OddityList<DocumentOddityKind>,
    offset: usize,
    element: LinkElement,
}

impl LinkReader {
    pub(super) fn new(limits: &ReadingLimits) -> LinkReader {
        LinkReader {
            links: LinkCollector::of_page(),
            anchor: None,
            anchor_text: CollapsedTextBuilder::new(limits.text_bytes),
            is_in_reading: false,
            form: None,
            limits: limits.clone(),
        }
    }

    pub(super) fn into_links(self) -> Vec<Link> {
        self.links.found
    }

    /// Returns whether the start or end tag of an HTML element affects links. Most don't.
    #[inline]
    pub(super) fn wants(&self, tag: &Tag<'_>) -> bool {
        tag.kinds.is(TagKinds::LINKS)
            || self.anchor.is_some() && tag.kinds.is(TagKinds::IN_LINK)
            || tag.attributes.may_have("style")
    }

    /// Processes a visible start tag.
    #[inline]
    pub(super) fn start(
        &mut self,
        tag: &Tag<'_>,
        attributes: TagAttributes<'_>,
        at: TagContext,
        oddities: &mut OddityList<DocumentOddityKind>,
    ) {
        let mut spot = LinkSpot {
            oddities,
            offset: at.offset,
            element: LinkElement::Any,
        };
        if let Some(style) = attributes.get("style").filter(|style| style.contains('(')) {
            let urls = css::declarations(style);
            self.css(urls, "style", &mut spot);
        }
        match at.space {
            Namespace::Html => {
                if tag.kinds.is(TagKinds::LINKS) {
                    self.html(tag.name, attributes, &mut spot);
                }
                if self.anchor.is_some() && tag.kinds.is(TagKinds::SEPARATES_WORDS) {
                    self.anchor_text.separate();
                }
                if self.anchor.is_some() && tag.kinds.is(TagKinds::RUBY) {
                    self.is_in_reading = matches!(
                        tag.name,
                        element_name::RT | element_name::RTC | element_name::RP
                    );
                }
            }
            Namespace::Svg => self.svg(tag.name, attributes, &mut spot),
            Namespace::Math => self.math(attributes, &mut spot),
        }
    }

    /// Processes a start tag within a `template`. A script may insert the template unchanged, so
    /// the links of this tag are read, unless the tag has a placeholder that the script still has
    /// to replace. The tag doesn't affect an open link or form around the template.
    pub(super) fn in_template(
        &mut self,
        tag: &Tag<'_>,
        attributes: TagAttributes<'_>,
        at: TagContext,
        oddities: &mut OddityList<DocumentOddityKind>,
    ) {
        let mut all = attributes.iter();
        if all.any(|one| has_placeholder(one.value()) && attributes.is_first(one)) {
            return;
        }
        let around = (self.anchor.take(), self.form.take());
        self.start(tag, attributes, at, oddities);
        (self.anchor, self.form) = around;
    }

    /// Processes a visible end tag.
    pub(super) fn end(
        &mut self,
        tag: &Tag<'_>,
        oddities: &mut OddityList<DocumentOddityKind>,
        offset: usize,
    ) {
        match tag.name {
            element_name::A => self.end_anchor(oddities, offset),
            element_name::FORM => self.form = None,
            _ if tag.kinds.is(TagKinds::RUBY) => self.is_in_reading = false,
            _ if self.anchor.is_some() && tag.kinds.is(TagKinds::SEPARATES_WORDS) => {
                self.anchor_text.separate();
            }
            _ => {}
        }
    }

    /// Returns whether text at the current position belongs to a link.
    #[inline]
    pub(super) fn wants_text(&self) -> bool {
        self.anchor.is_some()
    }

    /// Adds text to the open link, unless it is a ruby reading.
    pub(super) fn text(&mut self, text: &str) {
        if !self.is_in_reading {
            self.anchor_text.push(text);
        }
    }

    /// Ends the link whose text is being read, if there is one.
    pub(super) fn end_anchor(
        &mut self,
        oddities: &mut OddityList<DocumentOddityKind>,
        offset: usize,
    ) {
        let Some(position) = self.anchor.take() else {
            return;
        };
        self.is_in_reading = false;
        let (text, cut) = self.anchor_text.take();
        if cut {
            oddities.note(DocumentOddityKind::TextCut, offset);
        }
        self.links.found[position].text = text;
    }

    /// Processes the text of a `style` element.
    pub(super) fn style_element(
        &mut self,
        text: &str,
        oddities: &mut OddityList<DocumentOddityKind>,
        offset: usize,
    ) {
        let element = LinkElement::Style;
        let mut spot = LinkSpot {
            oddities,
            offset,
            element,
        };
        self.css(css::sheet(text), "", &mut spot);
    }

    /// Adds the target of a `meta` refresh as a link.
    pub(super) fn refresh(
        &mut self,
        target: &str,
        oddities: &mut OddityList<DocumentOddityKind>,
        offset: usize,
    ) {
        let element = LinkElement::MetaRefresh;
        let mut spot = LinkSpot {
            oddities,
            offset,
            element,
        };
        self.add(target, "content", LinkKind::Page, &mut spot);
    }

    fn html(&mut self, name: ElementName, attributes: TagAttributes<'_>, spot: &mut LinkSpot<'_>) {
        // Check for `a` first, because it is the most frequent element with links.
        if name == element_name::A {
            return self.anchor(attributes, &["href"], spot);
        }
        if let Some((element, held)) = holders(name) {
            spot.element = element;
            for attribute in attributes.iter() {
                let holder = held.iter().find(|holder| attribute.is(holder.attribute));
                let Some(holder) = holder.filter(|_| attributes.is_first(attribute)) else {
                    continue;
                };
                let value = attribute.value();
                match holder.holds {
                    LinkAttributeSyntax::Url if trim(value).is_empty() => {}
                    LinkAttributeSyntax::UrlOrProse if !looks_like_url(value) => {}
                    LinkAttributeSyntax::Url | LinkAttributeSyntax::UrlOrProse => {
                        self.add(value, holder.attribute, holder.kind, spot);
                    }
                    LinkAttributeSyntax::Srcset => self.srcset(value, holder.attribute, spot),
                }
            }
        } else {
            self.html_with_related_attributes(name, attributes, spot);
        }
    }

    /// Reads the links of elements with an attribute whose meaning depends on other attributes.
    fn html_with_related_attributes(
        &mut self,
        name: ElementName,
        attributes: TagAttributes<'_>,
        spot: &mut LinkSpot<'_>,
    ) {
        match name {
            element_name::AREA => self.area(attributes, spot),
            element_name::LINK => self.link_element(attributes, spot),
            element_name::FRAME => self.frame(attributes, LinkElement::Frame, spot),
            element_name::IFRAME => self.frame(attributes, LinkElement::Iframe, spot),
            element_name::EMBED => {
                spot.element = LinkElement::Embed;
                self.add_if_there(attributes, "src", kind_of_object(attributes), spot);
            }
            element_name::OBJECT => self.object(attributes, spot),
            element_name::APPLET => self.applet(attributes, spot),
            element_name::FORM => self.form(attributes, spot),
            element_name::BUTTON => {
                spot.element = LinkElement::Button;
                self.form_action(attributes, spot);
            }
            element_name::INPUT => {
                spot.element = LinkElement::Input;
                if attributes.has_value("type", "image") {
                    self.add_if_there(attributes, "src", LinkKind::Resource, spot);
                }
                self.form_action(attributes, spot);
            }
            _ => {}
        }
    }

    fn svg(&mut self, name: ElementName, attributes: TagAttributes<'_>, spot: &mut LinkSpot<'_>) {
        spot.element = match name {
            element_name::A => {
                return self.anchor(attributes, &["href", "xlink:href"], spot);
            }
            element_name::IMAGE => LinkElement::SvgImage,
            element_name::USE => LinkElement::SvgUse,
            element_name::FEIMAGE => LinkElement::SvgFeImage,
            element_name::SCRIPT => LinkElement::Script,
            _ => return,
        };
        for attribute in ["href", "xlink:href"] {
            self.add_if_there(attributes, attribute, LinkKind::Resource, spot);
        }
    }

    /// Reads the link of a MathML element. Any MathML element may be a link (MathML 3 section
    /// 2.1.6).
    fn math(&mut self, attributes: TagAttributes<'_>, spot: &mut LinkSpot<'_>) {
        spot.element = LinkElement::Math;
        for attribute in ["href", "xlink:href"] {
            self.add_if_there(attributes, attribute, LinkKind::Page, spot);
        }
    }

    /// Processes an `a`. Its URL is the value of the first attribute of `names` that it has.
    fn anchor(
        &mut self,
        attributes: TagAttributes<'_>,
        names: &[&'static str],
        spot: &mut LinkSpot<'_>,
    ) {
        // An `a` within an `a` ends the outer one.
        self.end_anchor(spot.oddities, spot.offset);
        spot.element = LinkElement::A;
        let held = names
            .iter()
            .find_map(|name| Some((*name, attributes.get(name)?)));
        let Some((name, href)) = held else { return };
        if let Some(href) = self.room(href, LinkKind::Page, spot) {
            let link = Link::new(href, LinkElement::A, name, LinkKind::Page);
            let position = self.links.push(typed(link, attributes));
            self.anchor = (self.limits.text_bytes > 0).then_some(position);
        }
    }

    fn area(&mut self, attributes: TagAttributes<'_>, spot: &mut LinkSpot<'_>) {
        let Some(href) = attributes.get("href") else {
            return;
        };
        let Some(href) = self.room(href, LinkKind::Page, spot) else {
            return;
        };
        let mut alt = CollapsedTextBuilder::new(self.limits.text_bytes);
        let wanted = attributes.get("alt").filter(|_| self.limits.text_bytes > 0);
        alt.push(wanted.unwrap_or_default());
        let (text, cut) = alt.take();
        if cut {
            spot.oddities.note(DocumentOddityKind::TextCut, spot.offset);
        }
        let link = Link::new(href, LinkElement::Area, "href", LinkKind::Page);
        let link = typed(link, attributes);
        self.links.push(Link { text, ..link });
    }

    fn link_element(&mut self, attributes: TagAttributes<'_>, spot: &mut LinkSpot<'_>) {
        spot.element = LinkElement::Link;
        let link = Link::new(String::new(), LinkElement::Link, "href", LinkKind::Other);
        let link = typed(link, attributes);
        let kind = kind_of_link(link.rel, link.media_type.as_deref());
        let href = attributes.get("href").filter(|href| !trim(href).is_empty());
        if let Some(href) = href.and_then(|href| self.room(href, kind, spot)) {
            self.links.push(Link { href, kind, ..link });
        }
        if kind == LinkKind::Resource
            && let Some(value) = attributes.get("imagesrcset")
        {
            self.srcset(value, "imagesrcset", spot);
        }
    }

    fn frame(
        &mut self,
        attributes: TagAttributes<'_>,
        element: LinkElement,
        spot: &mut LinkSpot<'_>,
    ) {
        spot.element = element;
        // If there is a `srcdoc`, a browser shows it instead of the page at `src`.
        if element == LinkElement::Frame || attributes.get("srcdoc").is_none() {
            self.add_if_there(attributes, "src", LinkKind::Page, spot);
        }
        if attributes.get("longdesc").is_some_and(looks_like_url) {
            self.add_if_there(attributes, "longdesc", LinkKind::Page, spot);
        }
    }

    fn object(&mut self, attributes: TagAttributes<'_>, spot: &mut LinkSpot<'_>) {
        spot.element = LinkElement::Object;
        let base = attributes.get("codebase").unwrap_or_default();
        if let Some(data) = attributes.get("data") {
            self.add_below(base, data, "data", kind_of_object(attributes), spot);
        }
        if let Some(archive) = attributes.get("archive") {
            let files = archive.split_ascii_whitespace().take(MAX_ARCHIVES);
            for file in files {
                self.add_below(base, file, "archive", LinkKind::Resource, spot);
            }
        }
    }

    fn applet(&mut self, attributes: TagAttributes<'_>, spot: &mut LinkSpot<'_>) {
        spot.element = LinkElement::Applet;
        let base = attributes.get("codebase").unwrap_or_default();
        for attribute in ["code", "object"] {
            if let Some(file) = attributes.get(attribute) {
                self.add_below(base, file, attribute, LinkKind::Resource, spot);
            }
        }
        if let Some(archive) = attributes.get("archive") {
            for file in archive.split(',').take(MAX_ARCHIVES) {
                self.add_below(base, file, "archive", LinkKind::Resource, spot);
            }
        }
    }

    fn form(&mut self, attributes: TagAttributes<'_>, spot: &mut LinkSpot<'_>) {
        // A form within another form is ignored.
        if self.form.is_some() {
            return;
        }
        let method = FormMethod::parse(attributes.get("method").unwrap_or_default());
        self.form = Some(method);
        spot.element = LinkElement::Form;
        if let Some(kind) = method.link_kind() {
            self.add_if_there(attributes, "action", kind, spot);
        }
    }

    /// Processes the `formaction` of a button: the URL to which the button sends the form, instead
    /// of the form's `action`.
    fn form_action(&mut self, attributes: TagAttributes<'_>, spot: &mut LinkSpot<'_>) {
        let method = attributes.get("formmethod").map(FormMethod::parse);
        if let Some(kind) = method.or(self.form).and_then(FormMethod::link_kind) {
            self.add_if_there(attributes, "formaction", kind, spot);
        }
    }

    fn srcset(&mut self, value: &str, attribute: &'static str, spot: &mut LinkSpot<'_>) {
        for url in srcset::urls(value) {
            self.add(url, attribute, LinkKind::Resource, spot);
        }
    }

    /// Adds the URLs in CSS as links. `attribute` is the attribute that contains the CSS, or empty
    /// for a `style` element.
    fn css<'c>(
        &mut self,
        urls: impl Iterator<Item = css::CssUrl<'c>>,

        attribute: &'static str,
        spot: &mut LinkSpot<'_>,
    ) {
        for url in urls {
            let how = if attribute.is_empty() {
                url.how()
            } else {
                attribute
            };
            self.add(&url.url, how, LinkKind::Resource, spot);
        }
    }

    fn add_if_there(
        &mut self,
        attributes: TagAttributes<'_>,
        name: &'static str,
        kind: LinkKind,
        spot: &mut LinkSpot<'_>,
    ) {
        let held = attributes.get(name).filter(|value| !trim(value).is_empty());
        if let Some(value) = held {
            self.add(value, name, kind, spot);
        }
    }

    /// Adds a link to `file`, whose URL is relative to the code base `base`.
    fn add_below(
        &mut self,
        base: &str,
        file: &str,
        name: &'static str,
        kind: LinkKind,
        spot: &mut LinkSpot<'_>,
    ) {
        let (base, file) = (trim(base), trim(file));
        if file.is_empty() {
            return;
        }
        if base.len() > MAX_CODEBASE_BYTES {
            return spot
                .oddities
                .note(DocumentOddityKind::HrefTooLong, spot.offset);
        }
        self.add(&below(base, file), name, kind, spot);
    }

    fn add(
        &mut self,
        href: &str,
        attribute: &'static str,
        kind: LinkKind,
        spot: &mut LinkSpot<'_>,
    ) {
        if let Some(href) = self.room(href, kind, spot) {
            self.links
                .push(Link::new(href, spot.element, attribute, kind));
        }
    }

    /// Returns the URL `href` trimmed, if the limits allow one more link of its kind. Otherwise
    /// notes an oddity and returns `None`.
    fn room(&self, href: &str, kind: LinkKind, spot: &mut LinkSpot<'_>) -> Option<String> {
        match self.links.room(href, kind, &self.limits) {
            Ok(href) => Some(href),
            Err(what) => {
                if let Some(what) = what {
                    spot.oddities.note(what, spot.offset);
                }
                None
            }
        }
    }
}

/// Returns whether the value of a `longdesc` looks like a URL rather than a description: it begins
/// like a URL, or is one word with a slash, a query, a fragment or a file extension.
pub(super) fn looks_like_url(value: &str) -> bool {
    let value = trim(value);
    let begins = |start: &&str| {
        let head = value.get(..start.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(start))
    };
    if ["http:", "https:", "/", "./", "../", "#", "?"]
        .iter()
        .any(begins)
    {
        return true;
    }
    let mut around_dots = value.split('.').zip(value.split('.').skip(1));
    let has_ending = around_dots.any(|(before, after)| {
        before.ends_with(char::is_alphanumeric) && after.starts_with(char::is_alphanumeric)
    });
    !value.contains(char::is_whitespace) && (has_ending || value.contains(['/', '?', '#']))
}

/// Returns whether a value contains a placeholder of a common template language, such as
/// `{{name}}`.
pub(super) fn has_placeholder(value: &str) -> bool {
    ["{{", "{%", "${", "<%", "[["]
        .iter()
        .any(|mark| value.contains(mark))
}
