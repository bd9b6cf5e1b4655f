//! Collects dates from elements and JSON-LD.

use super::ContentReader;
use crate::content::dates::{DateKind, DateSource, kind_of_class, kind_of_itemprop};
use crate::content::open_inline_elements::DateText;
use crate::content::role_hints::RoleHints;
use crate::html::element_name::{self, is_void};
use crate::html::tokenizer::Tag;

impl ContentReader {
    /// Records a date in microdata, microformats or a `time` element.
    pub(super) fn micro_date(&mut self, tag: &Tag<'_>, traits: &RoleHints<'_>, offset: usize) {
        let is_time = tag.name == element_name::TIME;
        let get = |name| tag.attributes.get(name);
        let named = traits.itemprop.and_then(kind_of_itemprop);
        let declared = match named {
            Some((kind, name)) => Some((kind, DateSource::Microdata, name)),
            None if is_time && get("pubdate").is_some() => {
                Some((DateKind::Published, DateSource::Time, "pubdate"))
            }
            None if is_time => traits
                .class
                .and_then(kind_of_class)
                .map(|(kind, name)| (kind, DateSource::Time, name)),
            None => None,
        };
        let date = declared.or_else(|| {
            let is_any =
                is_time && self.regions.is_favoured() && !self.head.dates.has(DateSource::AnyTime);
            is_any.then_some((DateKind::Published, DateSource::AnyTime, "time"))
        });
        let Some((kind, source, name)) = date else {
            return;
        };
        match get("datetime").or_else(|| get("content")) {
            Some(value) => {
                let dates = &mut self.head.dates;
                dates.add(kind, value, (source, name), offset, &mut self.oddities);
            }
            None if source != DateSource::AnyTime && !is_void(tag.name) => {
                self.spans.time = Some(DateText::new(kind, source, name, tag.name));
            }
            None => {}
        }
    }

    pub(super) fn end_time(&mut self, tag: &Tag<'_>, offset: usize) {
        let Some(time) = self
            .spans
            .time
            .take_if(|time| time.name_of_element == tag.name)
        else {
            return;
        };
        let origin = (time.source, time.name);
        self.head
            .dates
            .add(time.kind, &time.text, origin, offset, &mut self.oddities);
    }

    pub(super) fn add_json_ld_dates(&mut self) {
        // First add the dates of items that describe a text, such as an article. Other items may
        // describe the topic of the page, such as an event.
        let (texts, others): (Vec<_>, Vec<_>) =
            self.json_ld.items.iter().partition(|item| item.is_text());
        for item in texts.into_iter().chain(others) {
            let dates = [
                (DateKind::Published, "datePublished", &item.published),
                (DateKind::Modified, "dateModified", &item.modified),
            ];
            for (kind, name, value) in dates {
                if let Some(value) = value {
                    let origin = (DateSource::JsonLd, name);
                    self.head
                        .dates
                        .add(kind, value, origin, 0, &mut self.oddities);
                }
            }
        }
    }
}
