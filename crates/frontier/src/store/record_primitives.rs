//! Encodes and decodes the building blocks of records: numbers, texts, queue places, exclusions.
//!
//! Numbers are LEB128 in values and big-endian in keys, so that keys sort like the numbers. Every
//! reader returns `None` for bytes that no writer produces.

use crawl_weburl::{CanonicalUrl, canonicalize};

use crate::admit_rule::PendingUrlFields;
use crate::not_fetched_reason::{NotFetchedReason, Reason};
use crate::url_to_admit::UrlKind;

const RETRIED: u8 = 1;
const SEED: u8 = 2;
const SITEMAP: u8 = 4;
const VIA: u8 = 8;
/// Flag: the page `via` has the same origin as the URL, so only its path and query are stored.
const VIA_NEAR: u8 = 16;
/// Flag of a stored visit: its URL is settled and waits for the next visit.
pub(super) const VISIT_SETTLED: u8 = 32;
const RESOURCE: u8 = 64;
const PLACE_FLAGS: u8 = RETRIED | SEED | SITEMAP | RESOURCE;
/// All flags about `via`.
pub(super) const VIA_FLAGS: u8 = VIA | VIA_NEAR;

/// Flag of an exclusion: a rule follows.
const RULE: u8 = 1;
/// Flag of an exclusion: a line number follows.
const LINE: u8 = 2;

pub(super) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a queue place without its `seq`. One byte has the flags of the place and `flags`.
pub(super) fn put_place(out: &mut Vec<u8>, place: &PendingUrlFields, mut flags: u8) {
    for (flag, is_set) in [
        (RETRIED, place.retried),
        (SEED, place.is_seed),
        (SITEMAP, place.kind == UrlKind::Sitemap),
        (RESOURCE, place.kind == UrlKind::Resource),
    ] {
        flags |= if is_set { flag } else { 0 };
    }
    out.extend([flags, place.priority, place.redirects]);
    put_number(out, place.depth.into());
}

pub(super) fn put_exclusion(out: &mut Vec<u8>, exclusion: &NotFetchedReason) {
    let rule = exclusion.rule.as_ref().map_or(0, |_| RULE);
    let line = exclusion.line.map_or(0, |_| LINE);
    out.extend([exclusion.reason.code(), rule | line]);
    if let Some(rule) = &exclusion.rule {
        put_text(out, rule);
    }
    if let Some(line) = exclusion.line {
        put_number(out, line.into());
    }
}

pub(super) fn via_flags(url: &CanonicalUrl, via: Option<&CanonicalUrl>) -> u8 {
    match via {
        None => 0,
        Some(via) if before_path(via) == before_path(url) => VIA | VIA_NEAR,
        Some(_) => VIA,
    }
}

pub(super) fn put_via(out: &mut Vec<u8>, url: &CanonicalUrl, via: Option<&CanonicalUrl>) {
    match via {
        None => {}
        Some(via) if before_path(via) == before_path(url) => put_text(out, via.path_and_query()),
        Some(via) => put_text(out, via.as_str()),
    }
}

/// Returns the part of a URL before its path: scheme, host and port.
pub(super) fn before_path(url: &CanonicalUrl) -> &str {
    let text = url.as_str();
    &text[..text.len() - url.path_and_query().len()]
}

/// Returns the URL with this path and query at the origin of `other`. Reuses the parsed origin,
/// because parsing the origin again would take most of the time.
pub(super) fn near_url(other: &CanonicalUrl, path: &str) -> Option<CanonicalUrl> {
    let url = match path.as_bytes() {
        // Parse the whole URL: as a relative reference, a path with two leading slashes names a
        // host.
        [b'/', b'/' | b'\\', ..] => canonicalize(None, &format!("{}{path}", before_path(other))),
        [b'/', ..] => canonicalize(Some(other), path),
        _ => return None,
    };
    url.ok()
}

/// A cursor over the unread bytes of a record.
pub(super) struct ByteReader<'a>(pub(super) &'a [u8]);

impl<'a> ByteReader<'a> {
    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                // Reject a redundant last byte of 0, so that each number has only one encoding.
                return (byte != 0 || shift == 0).then_some(number);
            }
        }
        None
    }

    pub(super) fn number32(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        let length = self.number()?.try_into().ok()?;
        std::str::from_utf8(self.bytes(length)?).ok()
    }

    /// Reads a byte of flags and a queue place without its `seq`. Returns `None` if a flag is set
    /// that belongs neither to the place nor to `others`.
    pub(super) fn place(&mut self, others: u8) -> Option<(u8, PendingUrlFields)> {
        let flags = self.byte()?;
        if flags & !(PLACE_FLAGS | others) != 0 {
            return None;
        }
        let kind = match (flags & SITEMAP != 0, flags & RESOURCE != 0) {
            (true, true) => return None,
            (true, _) => UrlKind::Sitemap,
            (_, true) => UrlKind::Resource,
            _ => UrlKind::Page,
        };
        let place = PendingUrlFields {
            retried: flags & RETRIED != 0,
            priority: self.byte()?,
            redirects: self.byte()?,
            depth: self.number32()?,
            is_seed: flags & SEED != 0,
            kind,
            seq: 0,
        };
        Some((flags, place))
    }

    pub(super) fn exclusion(&mut self) -> Option<NotFetchedReason> {
        let reason = Reason::from_code(self.byte()?)?;
        let flags = self.byte()?;
        let mut exclusion = NotFetchedReason::of(reason);
        if flags & RULE != 0 {
            exclusion.rule = Some(self.text()?.to_owned());
        }
        if flags & LINE != 0 {
            exclusion.line = Some(self.number32()?);
        }
        (flags & !(RULE | LINE) == 0).then_some(exclusion)
    }

    pub(super) fn via(&mut self, flags: u8, url: &CanonicalUrl) -> Option<Option<CanonicalUrl>> {
        let via = match (flags & VIA != 0, flags & VIA_NEAR != 0) {
            (false, false) => return Some(None),
            (false, true) => return None,
            (true, true) => near_url(url, self.text()?)?,
            (true, false) => canonicalize(None, self.text()?).ok()?,
        };
        Some(Some(via))
    }

    /// Returns `value` if all bytes have been read, else `None`.
    pub(super) fn end<T>(self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}
