//! Reads real-world XML in one pass, and repairs errors where that is safe.
//!
//! Declared entities are never expanded and no external entity is read, so a small document can't
//! grow large. An end tag that matches no open element is skipped. An end tag that matches an outer
//! element also ends the elements within it.

mod namespaces;

use std::borrow::Cow;
use std::sync::Arc;

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};

use crate::reading_limits::{DocumentOddity, DocumentOddityKind, ReadingLimits, note};
use crate::unresolved_feed_url::XmlBase;
use namespaces::{NamespaceBindings, XmlNamespace as Namespace, fingerprint};

pub(crate) use namespaces::XmlNamespace;

/// Maximum number of open elements that a single end tag may end.
const MAX_MENDED_LEVELS: usize = 32;

/// An event that [`XmlReader::next`] returns.
pub(crate) enum XmlEvent<'a> {
    /// The start of an element. After an empty element (`<a/>`), the next event is its end.
    Start(XmlStartTag<'a>),
    /// Text, or a part of it, with references resolved.
    Text(Cow<'a, str>),
    /// The end of the innermost open element.
    End,
}

/// The start tag of an element.
pub(crate) struct XmlStartTag<'a> {
    tag: BytesStart<'a>,
    pub(crate) space: XmlNamespace,
    attributes: usize,
}

impl XmlStartTag<'_> {
    /// Returns the name without its prefix.
    pub(crate) fn name(&self) -> &str {
        self.tag.local_name().into_inner()
    }

    /// Returns the name with its prefix.
    pub(crate) fn written_name(&self) -> &str {
        self.tag.name().into_inner()
    }

    /// Returns the value of an attribute. `name` includes the prefix.
    pub(crate) fn attribute(&self, name: &str) -> Option<String> {
        let mut attributes = self.tag.html_attributes();
        // Skip the check for duplicates, which compares each attribute with all attributes before
        // it.
        let attributes = attributes.with_checks(false).take(self.attributes);
        let mut valid = attributes.filter_map(Result::ok);
        let attribute = valid.find(|attribute| attribute.key.into_inner() == name)?;
        Some(unescaped(&attribute.value))
    }

    /// Returns the value of an attribute, unless it is empty or longer than `bytes`.
    pub(crate) fn short_attribute(&self, name: &str, bytes: usize) -> Option<String> {
        let value = self.attribute(name)?;
        (!value.is_empty() && value.len() <= bytes).then_some(value)
    }
}

/// A reader of an XML document. Call `next` until it returns `None`.
pub(crate) struct XmlReader<'a> {
    text: &'a str,
    /// The offset in the text at which the document begins.
    start: usize,
    reader: Reader<&'a [u8]>,
    /// Hashes of the names of the open elements, outermost first.
    open: Vec<u64>,
    /// Number of elements that the last end tag ended and that `next` still has to report.
    to_end: usize,
    bindings: NamespaceBindings,
    /// The `xml:base` values of the open elements, each with the depth of its element.
    bases: Vec<(usize, Arc<XmlBase>)>,
    attributes: usize,
    href_bytes: usize,
    pub(crate) oddities: Vec<DocumentOddity>,
}

impl<'a> XmlReader<'a> {
    pub(crate) fn new(text: &'a str, limits: &ReadingLimits) -> XmlReader<'a> {
        XmlReader::from(text, 0, limits)
    }

    /// Creates a reader of the document that begins at the offset `start` of `text`.
    pub(crate) fn from(text: &'a str, start: usize, limits: &ReadingLimits) -> XmlReader<'a> {
        let mut reader = Reader::from_str(&text[start..]);
        let config = reader.config_mut();
        // A `&` without a name is common in URLs, and is read as a plain `&`.
        config.allow_dangling_amp = true;
        config.allow_unmatched_ends = true;
        config.check_end_names = false;
        config.expand_empty_elements = true;
        XmlReader {
            text,
            start,
            reader,
            open: Vec::new(),
            to_end: 0,
            bindings: NamespaceBindings::default(),
            bases: Vec::new(),
            attributes: limits.attributes,
            href_bytes: limits.href_bytes,
            oddities: Vec::new(),
        }
    }

    /// Returns the number of open elements. After a start tag, the element that it began is counted
    /// too.
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Moves the innermost open element to `depth`. Removes open elements around it, or adds
    /// placeholders for missing ones.
    pub(crate) fn reopen_at(&mut self, depth: usize) {
        let own = self.open.pop();
        self.open.resize(depth.saturating_sub(1), 0);
        self.open.extend(own);
        self.bindings.exit(depth + 1);
        self.bases.retain(|(at, _)| *at <= depth);
    }

    /// Returns the innermost `xml:base` of the open elements.
    pub(crate) fn base(&self) -> Option<&Arc<XmlBase>> {
        self.bases.last().map(|(_, base)| base)
    }

    /// Returns the next event. `None` at the end of the document, at the end of its root element,
    /// or at a syntax error.
    pub(crate) fn next(&mut self) -> Option<XmlEvent<'a>> {
        loop {
            if self.to_end > 0 {
                self.to_end -= 1;
                return Some(self.end());
            }
            match self.reader.read_event() {
                Ok(Event::Start(tag)) => return Some(XmlEvent::Start(self.start(tag))),
                Ok(Event::End(tag)) => {
                    self.to_end = self.ended_by(fingerprint(tag.name().into_inner()));
                    if self.to_end == 0 && self.open.is_empty() {
                        return None;
                    }
                }
                Ok(Event::Text(text)) => return Some(XmlEvent::Text(text.into_inner())),
                Ok(Event::CData(text)) => return Some(XmlEvent::Text(text.into_inner())),
                Ok(Event::GeneralRef(name)) => return Some(XmlEvent::Text(self.reference(&name))),
                Ok(Event::Eof) => {
                    if !self.open.is_empty() {
                        self.note(DocumentOddityKind::EndsEarly);
                    }
                    return None;
                }
                Ok(_) => {}
                Err(_) => {
                    self.note(DocumentOddityKind::BrokenXml);
                    return None;
                }
            }
        }
    }

    /// Notes an oddity at the current line. The line is determined only for the first oddity of a
    /// kind, because counting lines requires a scan of the text.
    pub(crate) fn note(&mut self, what: DocumentOddityKind) {
        let is_noted = self.oddities.iter().any(|oddity| oddity.what == what);
        let line = if is_noted { 0 } else { self.line() };
        note(&mut self.oddities, what, line);
    }

    fn start(&mut self, tag: BytesStart<'a>) -> XmlStartTag<'a> {
        self.open.push(fingerprint(tag.name().into_inner()));
        let depth = self.open.len();
        let mut tag = XmlStartTag {
            tag,
            space: Namespace::None,
            attributes: self.attributes,
        };
        self.bindings.enter(&tag.tag, depth, self.attributes);
        tag.space = self.bindings.space_of(tag.tag.name().into_inner());
        // Search the text of the tag before parsing its attributes. The search is faster, and few
        // tags have an `xml:base`.
        if tag.tag.contains("xml:base")
            && let Some(href) = tag.short_attribute("xml:base", self.href_bytes)
            && let Some(base) = XmlBase::within(self.base(), href)
        {
            self.bases.push((depth, base));
        }
        tag
    }

    fn end(&mut self) -> XmlEvent<'a> {
        let depth = self.open.len();
        self.bindings.exit(depth);
        if self.bases.last().is_some_and(|(at, _)| *at == depth) {
            self.bases.pop();
        }
        self.open.pop();
        XmlEvent::End
    }

    /// Returns the number of open elements that an end tag named `name` ends. Notes an oddity
    /// unless it ends exactly the innermost one.
    fn ended_by(&mut self, name: u64) -> usize {
        let innermost = self.open.iter().rev().take(MAX_MENDED_LEVELS);
        let place = innermost.into_iter().position(|open| *open == name);
        if place != Some(0) {
            self.note(DocumentOddityKind::MismatchedTag);
        }
        place.map_or(0, |place| place + 1)
    }

    fn reference(&mut self, reference: &BytesRef<'a>) -> Cow<'a, str> {
        if let Ok(Some(character)) = reference.resolve_char_ref() {
            return Cow::Owned(character.to_string());
        }
        if let Some(text) = resolve_predefined_entity(reference) {
            return Cow::Borrowed(text);
        }
        self.note(DocumentOddityKind::UnknownEntity);
        Cow::Owned(format!("&{};", &**reference))
    }

    /// Returns the number of the current line, from 1.
    fn line(&self) -> u64 {
        let position = usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX);
        let position = self.start.saturating_add(position);
        let passed = &self.text.as_bytes()[..position.min(self.text.len())];
        1 + memchr::memchr_iter(b'\n', passed).count() as u64
    }
}

/// Maximum bytes of a character reference in an attribute value.
const MAX_REFERENCE_BYTES: usize = 12;

/// Resolves the character references and the five XML entities in `value`. Any other `&` is kept.
pub(crate) fn unescaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(start) = rest.find('&') {
        text.push_str(&rest[..start]);
        rest = &rest[start + 1..];
        let head = &rest.as_bytes()[..rest.len().min(MAX_REFERENCE_BYTES)];
        let end = memchr::memchr(b';', head);
        let resolved = end.and_then(|end| resolve(&rest[..end]));
        match (resolved, end) {
            (Some(resolved), Some(end)) => {
                text.push_str(&resolved);
                rest = &rest[end + 1..];
            }
            _ => text.push('&'),
        }
    }
    text.push_str(rest);
    text
}

/// Returns the characters that a reference stands for. `name` is the text between `&` and `;`.
fn resolve(name: &str) -> Option<Cow<'static, str>> {
    if let Some(text) = resolve_predefined_entity(name) {
        return Some(Cow::Borrowed(text));
    }
    let code = name.strip_prefix('#')?;
    let code = match code.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => code.parse().ok()?,
    };
    let character = char::from_u32(code).filter(|_| code != 0)?;
    Some(Cow::Owned(character.to_string()))
}
