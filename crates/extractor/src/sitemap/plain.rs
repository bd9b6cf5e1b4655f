//! Reads a plain text sitemap: one URL per line.

use super::{Sitemap, SitemapEntry, SitemapKind};
use crate::collapsed_text_builder::trim;
use crate::reading_limits::{DocumentOddityKind, ReadingLimits, note};

pub(super) fn read(text: &str, limits: &ReadingLimits, sitemap: &mut Sitemap) {
    let lines = (1..)
        .zip(text.lines().map(trim))
        .filter(|(_, line)| !line.is_empty());
    for (number, line) in lines {
        let oddity = if !is_url(line) {
            DocumentOddityKind::NotAUrl
        } else if line.len() > limits.href_bytes {
            DocumentOddityKind::HrefTooLong
        } else if sitemap.entries.len() >= limits.sitemap_entries {
            note(
                &mut sitemap.oddities,
                DocumentOddityKind::EntriesFull,
                number,
            );
            break;
        } else {
            sitemap.entries.push(SitemapEntry::new(line.to_owned()));
            continue;
        };
        note(&mut sitemap.oddities, oddity, number);
    }
    if sitemap.entries.is_empty() {
        note(&mut sitemap.oddities, DocumentOddityKind::NotASitemap, 1);
    } else {
        sitemap.kind = SitemapKind::Text;
    }
}

/// Returns whether a line is a URL. sitemaps.org requires full URLs, including `http`. Any other
/// line is treated as prose.
pub(super) fn is_url(line: &str) -> bool {
    let has_scheme = |scheme: &str| {
        line.get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    (has_scheme("http://") || has_scheme("https://")) && !line.contains(char::is_whitespace)
}
