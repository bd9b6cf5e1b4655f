//! The links that a reader thread met before, resolved and judged: most links of a page stand on
//! its siblings too.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use crawl_frontier::{Exclusion, UrlKind};
use crawl_scope::{Scope, ScopeVerdict};
use crawl_weburl::CanonicalUrl;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use memchr::{memchr, memrchr};

use crate::config::TrapRules;

/// Memory of the links that a reader thread remembers, about. Bytes. When it is used up, all are
/// forgotten before the next document, whose links are remembered anew.
const MAX_CACHE_BYTES: usize = 4 << 20;
/// Bytes of an address, as written, that is remembered.
const MAX_HREF_BYTES: usize = 256;
/// The memory of an address beside its text, about; of a target beside its URL; of a base.
const HREF_BYTES: usize = 100;
const TARGET_BYTES: usize = 400;
const BASE_BYTES: usize = 300;

/// Remembers links by the part of their base that resolving them depends on and by their address
/// as written, and by their URL, with what can be said of a link without its page.
#[derive(Clone, Debug)]
pub(crate) struct LinkCache {
    /// The scope that the targets were judged by.
    scope: Option<Arc<Scope>>,
    /// Addresses by their base: nothing for absolute ones, which come first, a folder, or an origin.
    addresses: Vec<Addresses>,
    hasher: RandomState,
    /// Places in `addresses`.
    bases: HashMap<Box<str>, usize, RandomState>,
    links: Vec<Link>,
    targets: Vec<Target>,
    /// Of each target.
    states: Vec<TargetState>,
    /// Places in `targets`.
    by_url: HashMap<CanonicalUrl, usize, RandomState>,
    /// The base of the links that are asked for now.
    current: Option<CurrentBase>,
    /// Room for a URL.
    resolved: String,
    /// The number of the document that is read now.
    document: u64,
    /// The frontier's number of reopenings, where targets that are settled need not be named.
    settled_at: Option<u64>,
    /// The place in `addresses` of its origin.
    origin: usize,
    bytes: usize,
    max_bytes: usize,
}

/// Addresses as written, with one base. What a link to a page asks for may be another spelling.
#[derive(Clone, Debug, Default)]
struct Addresses {
    pages: HashTable<Address>,
    resources: HashTable<Address>,
}

/// An address as written. Its hash is kept, since a table that grows asks for all of them.
#[derive(Clone, Debug)]
struct Address {
    hash: u64,
    text: Box<str>,
    link: KnownLink,
}

impl Addresses {
    fn of(&mut self, kind: UrlKind) -> &mut HashTable<Address> {
        match kind {
            UrlKind::Resource => &mut self.resources,
            UrlKind::Page | UrlKind::Sitemap => &mut self.pages,
        }
    }

    fn get(&mut self, kind: UrlKind, text: &str, hash: u64) -> Option<KnownLink> {
        let found = self.of(kind).find(hash, |known| *known.text == *text)?;
        Some(found.link)
    }

    /// Adds an address that is not among them.
    fn add(&mut self, kind: UrlKind, text: &str, hash: u64, link: KnownLink) {
        let text = text.into();
        let address = Address { hash, text, link };
        self.of(kind)
            .insert_unique(hash, address, |known| known.hash);
    }

    /// Forgets all, and keeps the room.
    fn clear(&mut self) {
        self.pages.clear();
        self.resources.clear();
    }
}

/// The place of absolute addresses.
const ABSOLUTE: usize = 0;

#[derive(Clone, Debug)]
struct CurrentBase {
    url: CanonicalUrl,
    folder: usize,
    origin: usize,
    /// The number of a link to the base itself.
    own: Option<usize>,
}

/// A link that was met before.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KnownLink {
    /// It names nothing that a crawler can ask for, for that reason.
    Unusable(&'static str),
    /// It leads to a target. The number of the link.
    Usable(usize),
}

#[derive(Clone, Debug)]
struct Link {
    /// As resolved.
    url: CanonicalUrl,
    /// The number of its target.
    target: usize,
}

/// A URL that links ask for.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The URL.
    pub(crate) url: CanonicalUrl,
    /// What bars it where it looks like an action.
    pub(crate) action: Option<Option<Exclusion>>,
    /// The scope's verdict, depth aside.
    pub(crate) verdict: ScopeVerdict,
    /// The depth up to which that holds.
    pub(crate) max_depth: Option<u32>,
}

/// The state of a target, which changes with each document. Apart from it, so that those of a page
/// are near each other in memory.
#[derive(Clone, Copy, Debug)]
struct TargetState {
    /// The document that the target was found in last, and its place among the links of that.
    found: (u64, usize),
    /// The frontier's number of reopenings when it was found settled.
    settled_at: Option<u64>,
    /// The document that named it last while it was settled.
    named_in: u64,
    /// The place in `addresses` of its origin.
    origin: usize,
}

impl Default for LinkCache {
    fn default() -> LinkCache {
        LinkCache::of_size(MAX_CACHE_BYTES)
    }
}

impl LinkCache {
    /// A cache of that many bytes; of none, it remembers nothing.
    pub(super) fn of_size(max_bytes: usize) -> LinkCache {
        LinkCache {
            scope: None,
            addresses: vec![Addresses::default()],
            hasher: RandomState::default(),
            bases: HashMap::default(),
            links: Vec::new(),
            targets: Vec::new(),
            states: Vec::new(),
            by_url: HashMap::default(),
            current: None,
            resolved: String::new(),
            document: 0,
            settled_at: None,
            origin: 0,
            bytes: 0,
            max_bytes,
        }
    }

    /// Begins a document. `settled_at` is the frontier's number of reopenings, where targets that
    /// are settled need not be named. What was judged by another scope is forgotten, and all where
    /// there is no more room.
    pub(super) fn begin(
        &mut self,
        from: &CanonicalUrl,
        scope: &Arc<Scope>,
        settled_at: Option<u64>,
    ) {
        let is_same = self
            .scope
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, scope));
        if !is_same || self.is_full() {
            self.forget_all();
            // Held, so that no other scope can have its address.
            self.scope = Some(Arc::clone(scope));
        }
        self.settled_at = settled_at;
        self.origin = self.base(from.origin_text());
        self.forget_places();
    }

    /// Forgets all links, and keeps the room of the tables that all documents share.
    fn forget_all(&mut self) {
        self.addresses.truncate(1);
        self.addresses[ABSOLUTE].clear();
        self.bases.clear();
        self.links.clear();
        self.targets.clear();
        self.states.clear();
        self.by_url.clear();
        self.current = None;
        self.bytes = 0;
    }

    /// No target has a place among the links of the document from now on.
    pub(super) fn forget_places(&mut self) {
        self.document += 1;
    }

    /// The link with that address on a page with that base, if it is known.
    pub(super) fn get(
        &mut self,
        base: &CanonicalUrl,
        href: &str,
        kind: UrlKind,
    ) -> Option<KnownLink> {
        self.begin_base(base);
        let current = self.current.as_ref()?;
        if href.len() > MAX_HREF_BYTES {
            return None;
        }
        let address = without_fragment(href);
        if address.is_empty() {
            let own = current.own.filter(|_| kind == UrlKind::Page);
            return own.map(KnownLink::Usable);
        }
        let (place, hash) = (current.place(address), self.hasher.hash_one(address));
        if let Some(known) = self.addresses[place].get(kind, address, hash) {
            return Some(known);
        }
        // Most that are new in a folder lead to URLs that other folders lead to.
        current.resolve(address, &mut self.resolved)?;
        let url = self.resolved.as_str();
        let known = self.addresses[ABSOLUTE].get(kind, url, self.hasher.hash_one(url))?;
        if !self.is_full() {
            self.bytes += HREF_BYTES + address.len();
            self.addresses[place].add(kind, address, hash, known);
        }
        Some(known)
    }

    /// Remembers the link with that address on a page with that base, where all links with the same
    /// address there are the same, and gives its number, where it leads to a target.
    pub(super) fn keep(
        &mut self,
        (base, href, kind): (&CanonicalUrl, &str, UrlKind),
        resolved: Result<&CanonicalUrl, &'static str>,
        rules: &TrapRules,
    ) -> Option<usize> {
        self.begin_base(base);
        let address = without_fragment(href);
        let is_own = address.is_empty() && kind == UrlKind::Page;
        if self.is_full()
            || href.len() > MAX_HREF_BYTES
            || !is_own && !is_same_for_siblings(address)
        {
            return None;
        }
        let known = match resolved {
            Ok(url) => {
                let target = self.target(url, kind, rules)?;
                let url = url.clone();
                self.links.push(Link { url, target });
                KnownLink::Usable(self.links.len() - 1)
            }
            Err(why) => KnownLink::Unusable(why),
        };
        let number = match known {
            KnownLink::Usable(number) => Some(number),
            KnownLink::Unusable(_) => None,
        };
        let current = self.current.as_mut()?;
        if is_own {
            current.own = number;
            return number;
        }
        let place = current.place(address);
        self.add(place, kind, address, known);
        // By its URL it is found from other folders.
        if let Some(number) = number {
            let url = self.links[number].url.clone();
            self.add(ABSOLUTE, kind, url.as_str(), known);
        }
        number
    }

    /// Adds an address, unless it is known.
    fn add(&mut self, place: usize, kind: UrlKind, address: &str, known: KnownLink) {
        let hash = self.hasher.hash_one(address);
        let addresses = &mut self.addresses[place];
        if addresses.get(kind, address, hash).is_none() {
            self.bytes += HREF_BYTES + address.len();
            addresses.add(kind, address, hash, known);
        }
    }

    /// The URL of a link, as resolved.
    pub(super) fn url(&self, link: usize) -> &CanonicalUrl {
        &self.links[link].url
    }

    /// The number of a link's target.
    pub(super) fn target_of(&self, link: usize) -> usize {
        self.links[link].target
    }

    pub(super) fn target_at(&self, number: usize) -> &Target {
        &self.targets[number]
    }

    /// The place of a target among the links of the document.
    pub(super) fn place(&self, number: usize) -> Option<usize> {
        let (document, place) = self.states[number].found;
        (document == self.document).then_some(place)
    }

    /// The place of a URL among the links of the document, if it was found by a link that is
    /// remembered.
    pub(super) fn place_of(&self, url: &CanonicalUrl) -> Option<usize> {
        self.place(*self.by_url.get(url)?)
    }

    pub(super) fn set_place(&mut self, number: usize, place: usize) {
        self.states[number].found = (self.document, place);
    }

    /// Where a target of the document's own origin was found settled, and stays so, returns whether
    /// the document names it for the first time.
    pub(super) fn settled(&mut self, number: usize) -> Option<bool> {
        let state = &mut self.states[number];
        let is_settled = state.settled_at.is_some() && state.settled_at == self.settled_at;
        if !is_settled || state.origin != self.origin {
            return None;
        }
        Some(std::mem::replace(&mut state.named_in, self.document) != self.document)
    }

    /// Remembers that a URL is settled.
    pub(super) fn note_settled(&mut self, url: &CanonicalUrl) {
        if let Some(&number) = self.by_url.get(url) {
            self.states[number].settled_at = self.settled_at;
        }
    }

    fn target(&mut self, url: &CanonicalUrl, kind: UrlKind, rules: &TrapRules) -> Option<usize> {
        let url = match kind {
            UrlKind::Page => rules.named(url.clone(), None),
            UrlKind::Resource | UrlKind::Sitemap => url.clone(),
        };
        if let Some(&number) = self.by_url.get(&url) {
            return Some(number);
        }
        let scope = Arc::clone(self.scope.as_ref()?);
        self.bytes += TARGET_BYTES + url.as_str().len();
        let (number, origin) = (self.targets.len(), self.base(url.origin_text()));
        self.by_url.insert(url.clone(), number);
        self.targets.push(Target {
            action: rules.action(&url),
            // A seed is the one whose depth is nothing.
            verdict: scope.judge(&url, 0),
            max_depth: scope.max_depth(&url),
            url,
        });
        self.states.push(TargetState {
            found: (0, 0),
            settled_at: None,
            named_in: 0,
            origin,
        });
        Some(number)
    }

    fn is_full(&self) -> bool {
        self.bytes >= self.max_bytes
    }

    /// Makes `base` the current one, if there is room for another.
    fn begin_base(&mut self, base: &CanonicalUrl) {
        if self.current.as_ref().is_some_and(|now| now.url == *base) {
            return;
        }
        self.current = None;
        if self.is_full() {
            return;
        }
        let whole = base.as_str();
        let origin = base.origin_text();
        let folder = &whole[..folder_bytes(whole, origin.len() + base.path().len())];
        self.current = Some(CurrentBase {
            url: base.clone(),
            folder: self.base(folder),
            origin: self.base(origin),
            own: None,
        });
    }

    fn base(&mut self, text: &str) -> usize {
        if let Some(&place) = self.bases.get(text) {
            return place;
        }
        self.bytes += BASE_BYTES + text.len();
        self.addresses.push(Addresses::default());
        self.bases.insert(text.into(), self.addresses.len() - 1);
        self.addresses.len() - 1
    }
}

impl CurrentBase {
    /// The place of the addresses that an address stands among.
    fn place(&self, address: &str) -> usize {
        match address.as_bytes() {
            [b'/', ..] => self.origin,
            [b'h', b't', b't', b'p', rest @ ..]
                if rest.starts_with(b"://") || rest.starts_with(b"s://") =>
            {
                ABSOLUTE
            }
            _ => self.folder,
        }
    }

    /// Writes the URL of an address that is an ordinary path: most are, and need no parser. None
    /// where it is something else.
    fn resolve(&self, address: &str, url: &mut String) -> Option<()> {
        let is_ordinary = |byte: u8| IS_ORDINARY[usize::from(byte)];
        if address.starts_with("//") || !address.bytes().all(is_ordinary) {
            return None;
        }
        let (base, origin) = (self.url.as_str(), self.url.origin_text().len());
        let root = origin + 1;
        let (folder, mut rest) = match address.strip_prefix('/') {
            Some(rest) => (root, rest),
            None => (folder_bytes(base, origin + self.url.path().len()), address),
        };
        url.clear();
        url.push_str(&base[..folder]);
        loop {
            let (segment, behind) = match memchr(b'/', rest.as_bytes()) {
                Some(slash) => (&rest[..slash], Some(&rest[slash + 1..])),
                None => (rest, None),
            };
            match segment {
                "." => {}
                ".." if url.len() > root => url.truncate(folder_bytes(url, url.len() - 1)),
                ".." => {}
                _ => {
                    url.push_str(segment);
                    url.extend(behind.map(|_| '/'));
                }
            }
            match behind {
                Some(behind) => rest = behind,
                None => return Some(()),
            }
        }
    }
}

/// True for the bytes that a path has as they are written.
static IS_ORDINARY: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let one = byte as u8;
        table[byte] =
            one.is_ascii_alphanumeric() || matches!(one, b'/' | b'.' | b'_' | b'-' | b'~');
        byte += 1;
    }
    table
};

/// Bytes of a URL up to the last slash among its first `end` bytes, or all of those.
fn folder_bytes(url: &str, end: usize) -> usize {
    memrchr(b'/', &url.as_bytes()[..end]).map_or(end, |slash| slash + 1)
}

/// No URL that is asked for has a fragment.
fn without_fragment(href: &str) -> &str {
    &href[..memchr(b'#', href.as_bytes()).unwrap_or(href.len())]
}

/// Returns whether an address leads to the same URL from each document of a folder. Not so where
/// it is a query alone, or has a scheme and no host, such as `http:?a`.
fn is_same_for_siblings(address: &str) -> bool {
    let begins_a_path = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-~%".contains(byte);
    let head = address.split(['/', '?']).next().unwrap_or_default();
    // A blank before a fragment is a part of the path, and one at the end is none.
    !address.ends_with(|last: char| last <= ' ')
        && address.as_bytes().first().is_some_and(begins_a_path)
        && (!head.contains(':') || address[head.len()..].starts_with("//"))
}

#[cfg(test)]
mod tests;
