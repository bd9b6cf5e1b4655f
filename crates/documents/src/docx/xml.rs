//! Reads an XML part as a sequence of start tags, end tags and texts. The sequence ends at the
//! first syntax error.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};

/// Reads the XML of one part of a DOCX, event by event.
pub(super) struct XmlReader<'a> {
    reader: Reader<&'a [u8]>,
}

/// A start tag, an end tag or a text that [`XmlReader::next`] returns.
pub(super) enum XmlEvent<'a> {
    Start(XmlStartTag<'a>),
    /// The end tag of an element. Contains the element's name without prefix.
    End(String),
    Text(Cow<'a, str>),
}

/// The start tag of an element, whose name and attributes are read without prefixes.
pub(super) struct XmlStartTag<'a>(BytesStart<'a>);

impl XmlStartTag<'_> {
    /// Returns the name without its prefix.
    pub(super) fn name(&self) -> &str {
        self.0.local_name().into_inner()
    }

    /// Returns the value of the attribute `w:val`.
    pub(super) fn value(&self) -> Option<String> {
        self.attribute("val")
    }

    /// Returns the value of the attribute with this name, ignoring prefixes.
    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        let mut attributes = self.0.attributes();
        let mut valid = attributes.with_checks(false).filter_map(Result::ok);
        let attribute = valid.find(|attribute| attribute.key.local_name().into_inner() == name)?;
        Some(attribute.value.into_owned())
    }
}

impl<'a> XmlReader<'a> {
    pub(super) fn new(text: &'a str) -> XmlReader<'a> {
        let mut reader = Reader::from_str(text);
        let config = reader.config_mut();
        config.expand_empty_elements = true;
        config.check_end_names = false;
        XmlReader { reader }
    }

    pub(super) fn next(&mut self) -> Option<XmlEvent<'a>> {
        loop {
            return Some(match self.reader.read_event().ok()? {
                Event::Start(tag) => XmlEvent::Start(XmlStartTag(tag)),
                Event::End(tag) => XmlEvent::End(tag.local_name().into_inner().to_owned()),
                Event::Text(text) => XmlEvent::Text(text.into_inner()),
                Event::CData(text) => XmlEvent::Text(text.into_inner()),
                // Replace entities declared in a DTD by a space: expanded, they could take
                // gigabytes.
                Event::GeneralRef(name) => match name.resolve_char_ref() {
                    Ok(Some(letter)) => XmlEvent::Text(Cow::Owned(letter.to_string())),
                    _ => XmlEvent::Text(Cow::Borrowed(
                        resolve_predefined_entity(&name).unwrap_or(" "),
                    )),
                },
                Event::Eof => return None,
                _ => continue,
            });
        }
    }
}
