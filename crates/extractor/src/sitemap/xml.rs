//! A sitemap in XML.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};

use super::{Sitemap, SitemapEntry, SitemapKind};
use crate::limits::{Limits, What, note};
use crate::text::trim;

/// `lastmod`, `changefreq` and `priority` are short; a longer one is none.
const HINT_OCTETS: usize = 128;

pub(super) fn read(text: &str, limits: &Limits, sitemap: &mut Sitemap) {
    let mut reader = Reader::from_str(text);
    // `&` without a name is common in addresses, and means itself.
    reader.config_mut().allow_dangling_amp = true;
    let mut state = State {
        limits,
        sitemap,
        depth: 0,
        entry: None,
        field: None,
        value: String::new(),
    };
    let stop = loop {
        match reader.read_event() {
            Ok(Event::Eof) if state.depth == 0 => break None,
            Ok(Event::Eof) => break Some(What::EndsEarly),
            Ok(event) => match state.take(&event) {
                Ok(()) => {}
                Err(Stop::End) => break None,
                Err(Stop::Because(what)) => break Some(what),
                Err(Stop::Note(what)) => {
                    state.note(what, || line_at(text, reader.buffer_position()));
                }
            },
            Err(_) => break Some(What::BrokenXml),
        }
    };
    state.finish_entry();
    if let Some(what) = stop {
        state.note(what, || line_at(text, reader.buffer_position()));
    }
    if sitemap.kind == SitemapKind::Unknown && stop != Some(What::NotASitemap) {
        note(&mut sitemap.oddities, What::NotASitemap, 1);
    }
}

/// What an event brought besides progress.
enum Stop {
    /// The root element has ended.
    End,
    /// Reading ends here, and why.
    Because(What),
    /// Reading goes on.
    Note(What),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Loc,
    LastMod,
    ChangeFreq,
    Priority,
}

struct State<'a> {
    limits: &'a Limits,
    sitemap: &'a mut Sitemap,
    /// Elements open: 1 in the root, 2 in an entry, 3 in a field of it. Deeper ones are
    /// extensions, whose `loc` is not a page's.
    depth: usize,
    entry: Option<SitemapEntry>,
    field: Option<Field>,
    value: String,
}

impl State<'_> {
    fn take(&mut self, event: &Event<'_>) -> Result<(), Stop> {
        match event {
            Event::Start(tag) => {
                self.depth += 1;
                self.start(tag)
            }
            Event::Empty(tag) if self.depth == 0 => {
                self.depth = 1;
                self.start(tag)?;
                Err(Stop::End)
            }
            Event::End(_) => self.end(),
            Event::Text(text) => self.push(text),
            Event::CData(text) => self.push(text),
            Event::GeneralRef(reference) => self.reference(reference),
            _ => Ok(()),
        }
    }

    fn start(&mut self, tag: &BytesStart<'_>) -> Result<(), Stop> {
        let name = tag.local_name();
        let name: &str = name.as_ref();
        match self.depth {
            1 => {
                self.sitemap.kind = match name {
                    "urlset" => SitemapKind::UrlSet,
                    "sitemapindex" => SitemapKind::Index,
                    _ => return Err(Stop::Because(What::NotASitemap)),
                };
            }
            2 => {
                let entry = matches!(name, "url" | "sitemap");
                self.entry = entry.then(|| SitemapEntry::new(String::new()));
            }
            3 if self.entry.is_some() => {
                self.value.clear();
                self.field = match name {
                    "loc" => Some(Field::Loc),
                    "lastmod" => Some(Field::LastMod),
                    "changefreq" => Some(Field::ChangeFreq),
                    "priority" => Some(Field::Priority),
                    _ => None,
                };
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Stop> {
        let ended = self.depth;
        self.depth = self.depth.saturating_sub(1);
        match ended {
            3 => self.finish_field(),
            2 if self.sitemap.entries.len() >= self.limits.sitemap_entries => {
                let more = self.entry.take().is_some_and(|entry| !entry.loc.is_empty());
                if more {
                    Err(Stop::Because(What::EntriesFull))
                } else {
                    Ok(())
                }
            }
            2 => {
                self.finish_entry();
                Ok(())
            }
            0 | 1 => Err(Stop::End),
            _ => Ok(()),
        }
    }

    fn push(&mut self, text: &str) -> Result<(), Stop> {
        // One octet more than is taken tells that it was too long.
        if self.field.is_some() && self.depth == 3 && self.value.len() <= self.limits.href_octets {
            self.value.push_str(text);
        }
        Ok(())
    }

    fn reference(&mut self, reference: &BytesRef<'_>) -> Result<(), Stop> {
        if let Ok(Some(character)) = reference.resolve_char_ref() {
            return self.push(character.encode_utf8(&mut [0; 4]));
        }
        if let Some(text) = resolve_predefined_entity(reference) {
            return self.push(text);
        }
        self.push("&")?;
        self.push(reference)?;
        self.push(";")?;
        Err(Stop::Note(What::UnknownEntity))
    }

    fn finish_field(&mut self) -> Result<(), Stop> {
        let (Some(field), Some(entry)) = (self.field.take(), self.entry.as_mut()) else {
            return Ok(());
        };
        let value = trim(&self.value);
        let hint = Some(value).filter(|value| !value.is_empty() && value.len() <= HINT_OCTETS);
        match field {
            Field::Loc if value.len() > self.limits.href_octets => {
                return Err(Stop::Note(What::HrefTooLong));
            }
            // The first one counts.
            Field::Loc if entry.loc.is_empty() => entry.loc.push_str(value),
            Field::Loc => {}
            Field::LastMod => entry.lastmod = hint.map(str::to_owned),
            Field::ChangeFreq => entry.changefreq = hint.and_then(|hint| hint.parse().ok()),
            Field::Priority => {
                let number = hint.and_then(|hint| hint.parse::<f32>().ok());
                entry.priority = number.filter(|number| (0.0..=1.0).contains(number));
            }
        }
        Ok(())
    }

    /// Notes `what`; its line is asked for only once, since finding it takes a walk.
    fn note(&mut self, what: What, line: impl Fn() -> u64) {
        let oddities = &mut self.sitemap.oddities;
        let known = oddities.iter().any(|oddity| oddity.what == what);
        note(oddities, what, if known { 0 } else { line() });
    }

    /// Keeps the entry at hand, if it has an address.
    fn finish_entry(&mut self) {
        let entry = self.entry.take().filter(|entry| !entry.loc.is_empty());
        if self.sitemap.entries.len() < self.limits.sitemap_entries {
            self.sitemap.entries.extend(entry);
        }
    }
}

/// The line of the octet at `position`.
fn line_at(text: &str, position: u64) -> u64 {
    let before = usize::try_from(position)
        .unwrap_or(usize::MAX)
        .min(text.len());
    let newlines = text.as_bytes()[..before]
        .iter()
        .filter(|&&octet| octet == b'\n')
        .count();
    1 + newlines as u64
}
