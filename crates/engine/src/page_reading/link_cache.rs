//! Each reader thread's cache of resolved links and the scope's verdicts on them. The cache pays
//! off because most links of a page are also on other pages of the site.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use crawl_frontier::{NotFetchedReason, UrlKind};
use crawl_scope::{Scope, ScopeVerdict};
use crawl_weburl::CanonicalUrl;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use memchr::{memchr, memrchr};

use crate::config::TrapAvoidance;

/// Approximate memory for the links that a reader thread remembers, in bytes.
/// Beyond the limit: forgotten before the next page.
const MAX_CACHE_BYTES: usize = 4 << 20;
/// Maximum length in bytes of an address to cache, as written in the document.
const MAX_HREF_BYTES: usize = 256;
/// Approximate memory in bytes of a cached address, target and base URL, without their texts.
const HREF_BYTES: usize = 100;
const TARGET_BYTES: usize = 400;
const BASE_BYTES: usize = 300;

/// Caches the links of pages. The key of an address is its text as written in the document,
/// together with its base (a folder or an origin). The key of a target is its URL. Stores only
/// facts that are true on every page that contains the link.
#[derive(Clone, Debug)]
pub(crate) struct LinkCache {
    /// The scope that gave the cached verdicts.
    scope: Option<Arc<Scope>>,
    /// Addresses by the base that they are relative to. The first entry has the absolute addresses,
    /// which need no base. Each further entry belongs to a folder or an origin.
    addresses: Vec<AddressTable>,
    hasher: RandomState,
    /// The index into `addresses` for each base.
    bases: HashMap<Box<str>, usize, RandomState>,
    links: Vec<UsableLink>,
    targets: Vec<CachedLinkTarget>,
    /// The state of each target, at the same index as in `targets`.
    states: Vec<TargetState>,
    /// The index into `targets` for each URL.
    by_url: HashMap<CanonicalUrl, usize, RandomState>,
    /// The base URL of the current document.
    current: Option<CurrentBase>,
    /// A buffer for resolving URLs.
    resolved: String,
    /// The number of the current document. Increases when a document begins, and when the links of
    /// the current document are taken or dropped.
    document: u64,
    /// How many times the frontier had reopened URLs (made settled URLs pending again) when the
    /// document began. `None` if links to settled targets must be kept.
    settled_at: Option<u64>,
    /// The index into `addresses` for the document's origin.
    origin: usize,
    bytes: usize,
    max_bytes: usize,
}

/// Addresses as written in documents, all relative to the same base. Links to pages and links to
/// resources have separate tables, because only a link to a page may be replaced by another
/// spelling of its URL.
#[derive(Clone, Debug, Default)]
struct AddressTable {
    pages: HashTable<WrittenAddress>,
    resources: HashTable<WrittenAddress>,
}

/// An address as written in a document. The address's hash is stored too, since the table needs it
/// to grow.
#[derive(Clone, Debug)]
struct WrittenAddress {
    hash: u64,
    text: Box<str>,
    link: CachedLink,
}

impl AddressTable {
    fn of(&mut self, kind: UrlKind) -> &mut HashTable<WrittenAddress> {
        match kind {
            UrlKind::Resource => &mut self.resources,
            UrlKind::Page | UrlKind::Sitemap => &mut self.pages,
        }
    }

    fn get(&mut self, kind: UrlKind, text: &str, hash: u64) -> Option<CachedLink> {
        let address = self.of(kind).find(hash, |cached| *cached.text == *text)?;
        Some(address.link)
    }

    /// Adds an address that is not in the table yet.
    fn add(&mut self, kind: UrlKind, text: &str, hash: u64, link: CachedLink) {
        let text = text.into();
        let address = WrittenAddress { hash, text, link };
        self.of(kind)
            .insert_unique(hash, address, |cached| cached.hash);
    }

    /// Removes all addresses, but keeps the allocated memory.
    fn clear(&mut self) {
        self.pages.clear();
        self.resources.clear();
    }
}

/// The index into `addresses` for absolute addresses.
const ABSOLUTE: usize = 0;

#[derive(Clone, Debug)]
struct CurrentBase {
    url: CanonicalUrl,
    folder: usize,
    origin: usize,
    /// The index of the link to the base URL itself, if it is cached.
    own: Option<usize>,
}

/// A cached link.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CachedLink {
    /// The link does not lead to a fetchable URL. Contains the reason.
    Unusable(&'static str),
    /// The link has a target. Contains the link's index.
    Usable(usize),
}

/// A link to a URL that can be fetched.
#[derive(Clone, Debug)]
struct UsableLink {
    /// The URL that the link resolves to.
    url: CanonicalUrl,
    /// The index of the link's target.
    target: usize,
}

/// The URL to fetch for one or more links, whether it looks like an action, and the scope's
/// verdict.
#[derive(Clone, Debug)]
pub(crate) struct CachedLinkTarget {
    pub(crate) url: CanonicalUrl,
    /// `None` if the URL does not look like an action, such as a log-out. `Some(None)` if it looks
    /// like an action and such links are followed. `Some(Some(_))` is the reason for not following
    /// it.
    pub(crate) action: Option<Option<NotFetchedReason>>,
    /// The scope's verdict on the URL at depth 0.
    pub(crate) verdict: ScopeVerdict,
    /// The maximum depth for which the verdict holds; `None` if it holds for every depth.
    pub(crate) max_depth: Option<u32>,
}

/// The state of a target, which changes with each document. States are stored apart from the
/// targets, so that the states of one page's targets are close together in memory.
#[derive(Clone, Copy, Debug)]
struct TargetState {
    /// The number of the last document that linked to the target, and the index of the target
    /// among that document's links.
    found: (u64, usize),
    /// How many times the frontier had reopened URLs (made settled URLs pending again) when the
    /// target was found to be settled. If it has done so again, the target may be pending now.
    settled_at: Option<u64>,
    /// The number of the last document that linked to the target after the target was found to be
    /// settled.
    named_in: u64,
    /// The index into `addresses` for the target's origin.
    origin: usize,
}

impl Default for LinkCache {
    fn default() -> LinkCache {
        LinkCache::of_size(MAX_CACHE_BYTES)
    }
}

impl LinkCache {
    /// Creates a cache with a memory limit in bytes. The cache stays empty with a limit of 0.
    pub(super) fn of_size(max_bytes: usize) -> LinkCache {
        LinkCache {
            scope: None,
            addresses: vec![AddressTable::default()],
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

    /// Begins a document. `settled_at` is how often the frontier has reopened URLs so far; `None`
    /// if links to settled targets must be kept. Clears the cache if it was filled under another
    /// scope, or if it is full.
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
            // Keep the scope alive. If it were freed, another scope could be allocated at the same
            // address and be mistaken for it.
            self.scope = Some(Arc::clone(scope));
        }
        self.settled_at = settled_at;
        self.origin = self.base(from.origin_text());
        self.forget_places();
    }

    /// Removes all links, but keeps the allocated memory of the tables.
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

    /// Forgets which targets the current document has linked to.
    pub(super) fn forget_places(&mut self) {
        self.document += 1;
    }

    /// Returns the cached link for the address `href` on a page with this base URL.
    pub(super) fn get(
        &mut self,
        base: &CanonicalUrl,
        href: &str,
        kind: UrlKind,
    ) -> Option<CachedLink> {
        self.begin_base(base);
        let current = self.current.as_ref()?;
        if href.len() > MAX_HREF_BYTES {
            return None;
        }
        let address = without_fragment(href);
        if address.is_empty() {
            let own = current.own.filter(|_| kind == UrlKind::Page);
            return own.map(CachedLink::Usable);
        }
        let (place, hash) = (current.place(address), self.hasher.hash_one(address));
        if let Some(link) = self.addresses[place].get(kind, address, hash) {
            return Some(link);
        }
        // The address is new in this folder, but a link in another folder has probably cached its
        // URL.
        current.resolve(address, &mut self.resolved)?;
        let url = self.resolved.as_str();
        let link = self.addresses[ABSOLUTE].get(kind, url, self.hasher.hash_one(url))?;
        if !self.is_full() {
            self.bytes += HREF_BYTES + address.len();
            self.addresses[place].add(kind, address, hash, link);
        }
        Some(link)
    }

    /// Caches the link for the address `href` on a page with this base URL. Does not cache an
    /// address that may lead to another URL from another page in the same folder. Returns the
    /// index of the cached link; `None` if the link was not cached or is not usable.
    pub(super) fn keep(
        &mut self,
        (base, href, kind): (&CanonicalUrl, &str, UrlKind),
        resolved: Result<&CanonicalUrl, &'static str>,
        rules: &TrapAvoidance,
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
        let link = match resolved {
            Ok(url) => {
                let target = self.target(url, kind, rules)?;
                let url = url.clone();
                self.links.push(UsableLink { url, target });
                CachedLink::Usable(self.links.len() - 1)
            }
            Err(why) => CachedLink::Unusable(why),
        };
        let number = match link {
            CachedLink::Usable(number) => Some(number),
            CachedLink::Unusable(_) => None,
        };
        let current = self.current.as_mut()?;
        if is_own {
            current.own = number;
            return number;
        }
        let place = current.place(address);
        self.add(place, kind, address, link);
        // Also add the link by its URL, so that it is found from other folders.
        if let Some(number) = number {
            let url = self.links[number].url.clone();
            self.add(ABSOLUTE, kind, url.as_str(), link);
        }
        number
    }

    /// Adds an address, unless it is in the cache already.
    fn add(&mut self, place: usize, kind: UrlKind, address: &str, link: CachedLink) {
        let hash = self.hasher.hash_one(address);
        let addresses = &mut self.addresses[place];
        if addresses.get(kind, address, hash).is_none() {
            self.bytes += HREF_BYTES + address.len();
            addresses.add(kind, address, hash, link);
        }
    }

    pub(super) fn url(&self, link: usize) -> &CanonicalUrl {
        &self.links[link].url
    }

    /// Returns the index of a link's target.
    pub(super) fn target_of(&self, link: usize) -> usize {
        self.links[link].target
    }

    pub(super) fn target_at(&self, number: usize) -> &CachedLinkTarget {
        &self.targets[number]
    }

    /// Returns the index of a target among the current document's links; `None` if the document has
    /// no link to it so far.
    pub(super) fn place(&self, number: usize) -> Option<usize> {
        let (document, place) = self.states[number].found;
        (document == self.document).then_some(place)
    }

    /// Returns the index of a URL among the current document's links; `None` if no cached link led
    /// to it.
    pub(super) fn place_of(&self, url: &CanonicalUrl) -> Option<usize> {
        self.place(*self.by_url.get(url)?)
    }

    pub(super) fn set_place(&mut self, number: usize, place: usize) {
        self.states[number].found = (self.document, place);
    }

    /// Returns whether this is the document's first link to a settled target. `None` if the target
    /// is not settled, or is not on the document's own origin.
    pub(super) fn settled(&mut self, number: usize) -> Option<bool> {
        let state = &mut self.states[number];
        let is_settled = state.settled_at.is_some() && state.settled_at == self.settled_at;
        if !is_settled || state.origin != self.origin {
            return None;
        }
        Some(std::mem::replace(&mut state.named_in, self.document) != self.document)
    }

    /// Records that a URL was found to be settled.
    pub(super) fn note_settled(&mut self, url: &CanonicalUrl) {
        if let Some(&number) = self.by_url.get(url) {
            self.states[number].settled_at = self.settled_at;
        }
    }

    fn target(
        &mut self,
        url: &CanonicalUrl,
        kind: UrlKind,
        rules: &TrapAvoidance,
    ) -> Option<usize> {
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
        self.targets.push(CachedLinkTarget {
            action: rules.action(&url),
            // Judge at depth 0, which is never too deep: `max_depth` limits the depth instead.
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

    /// Makes `base` the current base, unless the cache is full.
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
        self.addresses.push(AddressTable::default());
        self.bases.insert(text.into(), self.addresses.len() - 1);
        self.addresses.len() - 1
    }
}

impl CurrentBase {
    /// Returns the index into `addresses` of the table that an address belongs to.
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

    /// Resolves an address without a URL parser, and writes the result to `url`. Returns `None`
    /// unless the address is an ordinary path, as most are.
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

/// True for each byte that needs no escape in a path.
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

/// Returns the length of a URL up to and including the last slash within its first `end` bytes, or
/// `end` if these have no slash.
fn folder_bytes(url: &str, end: usize) -> usize {
    memrchr(b'/', &url.as_bytes()[..end]).map_or(end, |slash| slash + 1)
}

/// Removes the fragment of an address, since URLs are fetched without it.
fn without_fragment(href: &str) -> &str {
    &href[..memchr(b'#', href.as_bytes()).unwrap_or(href.len())]
}

/// Returns whether an address leads to the same URL from every document of a folder. False for a
/// bare query, and for a scheme without a host, such as `http:?a`.
fn is_same_for_siblings(address: &str) -> bool {
    let begins_a_path = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-~%".contains(byte);
    let head = address.split(['/', '?']).next().unwrap_or_default();
    // An address may end with a blank once its fragment is removed. The blank belongs to the path,
    // but resolving the address would strip it.
    !address.ends_with(|last: char| last <= ' ')
        && address.as_bytes().first().is_some_and(begins_a_path)
        && (!head.contains(':') || address[head.len()..].starts_with("//"))
}

#[cfg(test)]
mod tests;
