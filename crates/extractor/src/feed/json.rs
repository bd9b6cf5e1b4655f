//! JSON Feed (jsonfeed.org, version 1.1).

use std::cell::RefCell;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{
    Feed, FeedEntry, FeedKind, MAX_ENCLOSURES, MAX_NEXT_PAGES, UnresolvedFeedUrl, collapsed, hint,
    trimmed_url,
};
use crate::collapsed_text_builder::trim;
use crate::reading_limits::{DocumentOddityKind, ReadingLimits, note};

pub(super) fn read(text: &str, limits: &ReadingLimits, feed: &mut Feed) {
    let builder = FeedBuilder {
        feed: RefCell::new(feed),
        limits,
    };
    let mut parser = serde_json::Deserializer::from_str(text);
    let result = FeedVisitor(&builder).deserialize(&mut parser);
    let feed = builder.feed.into_inner();
    if let Err(error) = result {
        let oddity = match error.is_eof() {
            true => DocumentOddityKind::EndsEarly,
            false => DocumentOddityKind::BrokenJson,
        };
        note(&mut feed.oddities, oddity, error.line() as u64);
    }
    if feed.kind == FeedKind::Unknown {
        note(&mut feed.oddities, DocumentOddityKind::NotAFeed, 1);
        feed.entries.clear();
    }
}

/// Stores each part of a document in `feed` as soon as the part is parsed, so that a later syntax
/// error doesn't lose it.
struct FeedBuilder<'a, 'f> {
    feed: RefCell<&'f mut Feed>,
    limits: &'a ReadingLimits,
}

impl FeedBuilder<'_, '_> {
    fn url(&self, value: &str) -> Option<UnresolvedFeedUrl> {
        match trimmed_url(value, self.limits) {
            Ok(href) => Some(UnresolvedFeedUrl::new(href?.to_owned(), None)),
            Err(what) => {
                note(&mut self.feed.borrow_mut().oddities, what, 1);
                None
            }
        }
    }

    fn item(&self, item: JsonFeedItem) {
        let url = [&item.url, &item.external_url].into_iter().flatten();
        let entry = FeedEntry {
            url: url.filter_map(|url| self.url(url.as_str())).next(),
            title: collapsed(item.title.as_str(), self.limits.title_bytes),
            published: hint(item.date_published.as_str()),
            updated: hint(item.date_modified.as_str()),
            id: Some(trim(item.id.as_str()).to_owned())
                .filter(|id| !id.is_empty() && id.len() <= self.limits.href_bytes),
            enclosures: item
                .attachments
                .0
                .iter()
                .filter_map(|attachment| self.url(attachment.url.as_str()))
                .collect(),
        };
        let is_kept = self.feed.borrow_mut().keep(entry, self.limits);
        if !is_kept {
            note(
                &mut self.feed.borrow_mut().oddities,
                DocumentOddityKind::EntriesFull,
                1,
            );
        }
    }
}

/// Reads the whole feed.
struct FeedVisitor<'i, 'a, 'f>(&'i FeedBuilder<'a, 'f>);

impl<'de> DeserializeSeed<'de> for FeedVisitor<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FeedVisitor<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON feed")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let builder = self.0;
        while let Some(name) = map.next_key::<StringOrNumber>()? {
            match name.as_str() {
                "version" => {
                    let version: StringOrNumber = map.next_value()?;
                    if version.as_str().contains("jsonfeed.org/version/") {
                        builder.feed.borrow_mut().kind = FeedKind::Json;
                    }
                }
                "title" => {
                    let title: StringOrNumber = map.next_value()?;
                    let title = collapsed(title.as_str(), builder.limits.title_bytes);
                    builder.feed.borrow_mut().title = title;
                }
                "home_page_url" => {
                    let home: StringOrNumber = map.next_value()?;
                    let home = builder.url(home.as_str());
                    builder.feed.borrow_mut().home = home;
                }
                "next_url" => {
                    let next: StringOrNumber = map.next_value()?;
                    let next = builder.url(next.as_str());
                    let feed = &mut builder.feed.borrow_mut().next;
                    feed.extend(next);
                    feed.truncate(MAX_NEXT_PAGES);
                }
                "items" => map.next_value_seed(ItemsVisitor(builder))?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Reads the entries one by one, so that entries that are dropped take no memory.
struct ItemsVisitor<'i, 'a, 'f>(&'i FeedBuilder<'a, 'f>);

impl<'de> DeserializeSeed<'de> for ItemsVisitor<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ItemsVisitor<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the entries of a feed")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<JsonFeedItem>()? {
            self.0.item(item);
        }
        Ok(())
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JsonFeedItem {
    id: StringOrNumber,
    url: Option<StringOrNumber>,
    external_url: Option<StringOrNumber>,
    title: StringOrNumber,
    date_published: StringOrNumber,
    date_modified: StringOrNumber,
    attachments: JsonFeedAttachments,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JsonFeedAttachment {
    url: StringOrNumber,
}

/// The first [`MAX_ENCLOSURES`] attachments of an entry.
#[derive(Default)]
struct JsonFeedAttachments(Vec<JsonFeedAttachment>);

impl<'de> Deserialize<'de> for JsonFeedAttachments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JsonFeedAttachments, D::Error> {
        struct AttachmentsVisitor;
        impl<'de> Visitor<'de> for AttachmentsVisitor {
            type Value = JsonFeedAttachments;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("attachments")
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut all: A,
            ) -> Result<JsonFeedAttachments, A::Error> {
                let mut attachments = Vec::new();
                while let Some(attachment) = all.next_element::<JsonFeedAttachment>()? {
                    if attachments.len() < MAX_ENCLOSURES {
                        attachments.push(attachment);
                    }
                }
                Ok(JsonFeedAttachments(attachments))
            }

            fn visit_unit<E>(self) -> Result<JsonFeedAttachments, E> {
                Ok(JsonFeedAttachments::default())
            }
        }
        deserializer.deserialize_any(AttachmentsVisitor)
    }
}

/// The text of a string or a number. Both are accepted, because some feeds write a number as a
/// string or a string as a number. Empty for any other value.
#[derive(Default)]
struct StringOrNumber(String);

impl StringOrNumber {
    fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for StringOrNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StringOrNumber, D::Error> {
        deserializer.deserialize_any(StringOrNumberVisitor)
    }
}

struct StringOrNumberVisitor;

impl<'de> Visitor<'de> for StringOrNumberVisitor {
    type Value = StringOrNumber;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<StringOrNumber, E> {
        Ok(StringOrNumber(text.to_owned()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<StringOrNumber, E> {
        Ok(StringOrNumber(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<StringOrNumber, E> {
        Ok(StringOrNumber(number.to_string()))
    }

    fn visit_f64<E>(self, _: f64) -> Result<StringOrNumber, E> {
        Ok(StringOrNumber::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<StringOrNumber, E> {
        Ok(StringOrNumber::default())
    }

    fn visit_unit<E>(self) -> Result<StringOrNumber, E> {
        Ok(StringOrNumber::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<StringOrNumber, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(StringOrNumber::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StringOrNumber, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(StringOrNumber::default())
    }
}
