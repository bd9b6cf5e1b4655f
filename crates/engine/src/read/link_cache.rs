//! The links that a reader thread met before, resolved and judged: most links of a page stand on
//! its siblings too.

use std::collections::HashMap;
use std::sync::Arc;

use crawl_frontier::{Exclusion, UrlKind};
use crawl_policy::scope::{Scope, ScopeVerdict};
use crawl_weburl::CanonicalUrl;
use foldhash::fast::RandomState;

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
/// as written, and what can be said of a link without its page.
#[derive(Clone, Debug)]
pub(crate) struct LinkCache {
    /// The scope that the targets were judged by.
    scope: Option<Arc<Scope>>,
    /// Addresses by their base: a folder, an origin, or nothing for absolute ones.
    addresses: Vec<Addresses>,
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
    pages: HashMap<Box<str>, KnownLink, RandomState>,
    resources: HashMap<Box<str>, KnownLink, RandomState>,
}

impl Addresses {
    fn of(&mut self, kind: UrlKind) -> &mut HashMap<Box<str>, KnownLink, RandomState> {
        match kind {
            UrlKind::Resource => &mut self.resources,
            UrlKind::Page | UrlKind::Sitemap => &mut self.pages,
        }
    }
}

#[derive(Clone, Debug)]
struct CurrentBase {
    url: CanonicalUrl,
    folder: usize,
    origin: usize,
    absolute: usize,
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
}

/// The state of a target, which changes with each document. Apart from it, so that all of a page's are near
/// each other in memory.
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
            addresses: Vec::new(),
            bases: HashMap::default(),
            links: Vec::new(),
            targets: Vec::new(),
            states: Vec::new(),
            by_url: HashMap::default(),
            current: None,
            document: 0,
            settled_at: None,
            origin: 0,
            bytes: 0,
            max_bytes,
        }
    }

    /// Begins a document. `settled_at` is the frontier's number of reopenings, where targets that
    /// are settled need not be named. What was judged by another scope is forgotten, and all where there is no
    /// more room.
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
            *self = LinkCache {
                // Held, so that no other scope can have its address.
                scope: Some(Arc::clone(scope)),
                document: self.document,
                ..LinkCache::of_size(self.max_bytes)
            };
        }
        self.settled_at = settled_at;
        self.origin = self.base(from.origin_text());
        self.forget_places();
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
        let place = current.place(address);
        self.addresses[place].of(kind).get(address).copied()
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
        self.bytes += HREF_BYTES + address.len();
        self.addresses[place].of(kind).insert(address.into(), known);
        number
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
        let path = &whole[..origin.len() + base.path().len()];
        let folder = &path[..path.rfind('/').map_or(path.len(), |slash| slash + 1)];
        self.current = Some(CurrentBase {
            url: base.clone(),
            folder: self.base(folder),
            origin: self.base(origin),
            absolute: self.base(""),
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
                self.absolute
            }
            _ => self.folder,
        }
    }
}

/// No URL that is asked for has a fragment.
fn without_fragment(href: &str) -> &str {
    let fragment = href.bytes().position(|byte| byte == b'#');
    &href[..fragment.unwrap_or(href.len())]
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
mod tests {
    use std::cell::RefCell;
    use std::sync::Arc;

    use crawl_extractor::{Limits, read_html};
    use crawl_frontier::{Admission, Frontier, Lease, MemoryFrontier};
    use crawl_policy::scope::{Scope, ScopeMode};
    use crawl_policy::{ProductToken, Profile, Robots};
    use crawl_weburl::{CanonicalUrl, canonicalize};

    use super::{LinkCache, MAX_HREF_BYTES};
    use crate::config::{Config, Resources};
    use crate::messages::page::PageFindings;
    use crate::read::document::ReadDocument;
    use crate::read::links::{LinkPolicy, Links};

    const BASES: [&str; 7] = [
        "http://a.example/",
        "http://a.example/b",
        "http://a.example/b?c=/d/e",
        "http://a.example/b/",
        "http://a.example/b/c;d/e",
        "https://a.example/b/c?d",
        "http://b.example/b/c",
    ];
    const PARTS: [&str; 28] = [
        "/",
        "//",
        "../",
        "./",
        "http:",
        "https://",
        "HTTP://",
        "http://a.example",
        "b.example",
        "mailto:",
        "?",
        "#",
        " ",
        "\t",
        "\\",
        "b",
        "c.html",
        "index.html",
        "?utm_source=x",
        "&ref=1",
        "?q=1",
        "logout",
        "%2e",
        ":",
        "@",
        "1",
        "é",
        "",
    ];

    /// Numbers that are the same in each run (an LCG).
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
            self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % end
        }

        fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
            all[self.below(all.len())]
        }

        /// A page with links of all kinds.
        fn page(&mut self, hrefs: &[String]) -> String {
            let mut page = String::new();
            for _ in 0..self.below(12) {
                let href = &hrefs[self.below(hrefs.len())];
                page += &match self.below(8) {
                    0 => format!("<img src='{href}'>"),
                    1 => format!("<a href='{href}' rel=nofollow>x</a>"),
                    2 => format!("<form action='{href}'></form>"),
                    _ => format!("<a href='{href}'>x</a>"),
                };
            }
            page
        }
    }

    fn url(raw: &str) -> CanonicalUrl {
        canonicalize(None, raw).unwrap()
    }

    fn robots(text: &str) -> Robots {
        let agent = ProductToken::new("crawl").unwrap();
        Robots::parse(text.as_bytes(), &agent, Profile::default())
    }

    fn lease(url: &CanonicalUrl, depth: u32) -> Lease {
        let frontier = MemoryFrontier::new();
        let mut transaction = frontier.begin().unwrap();
        transaction.admit(Admission::seed(url.clone())).unwrap();
        transaction.commit().unwrap();
        let mut lease = frontier.lease(&url.origin()).unwrap().unwrap();
        lease.depth = depth;
        lease
    }

    fn config() -> Config {
        let agent = ProductToken::new("crawl").unwrap();
        let mut config = Config::new(agent, "0.0", None, vec![url(BASES[0])], "out");
        config.resources = Resources::All;
        config.forms = true;
        config.links = true;
        config
    }

    /// The links of a page as they are found with that cache.
    fn found(
        (html, from): (&str, &Lease),
        scope: &Arc<Scope>,
        (policy, robots): (&LinkPolicy, &Robots),
        (cache, settled_at): (&RefCell<LinkCache>, Option<u64>),
    ) -> PageFindings {
        let page = read_html(html.as_bytes(), None, &Limits::default());
        let mut links = Links::new(from, scope, policy, Some(robots), (cache, settled_at));
        for link in &page.links {
            links.link(&from.url, link, None);
        }
        links.finish(ReadDocument::default()).findings
    }

    #[test]
    fn ours_a_page_has_the_same_links_with_a_cache_and_without() {
        let mut numbers = Numbers(1);
        let robots = ["", "Clean-param: ref", "Clean-param: q /b"].map(robots);
        let scopes = [Some(1), None].map(|depth| {
            let exclude = ["c[.]html[?]".to_owned()];
            let mut scope = Scope::new(ScopeMode::Host, &[], &exclude, depth).unwrap();
            scope.add_seed(&url(BASES[0]));
            Arc::new(scope)
        });
        let policy = LinkPolicy::new(&config());
        let (mut remembered, mut pages) = (0, 0);
        for max_bytes in [super::MAX_CACHE_BYTES, 20_000] {
            let cache = RefCell::new(LinkCache::of_size(max_bytes));
            for _ in 0..60 {
                let hrefs: Vec<String> = (0..20)
                    .map(|_| {
                        (0..1 + numbers.below(4))
                            .map(|_| numbers.one_of(&PARTS))
                            .collect()
                    })
                    .collect();
                let scope = &scopes[numbers.below(4).min(1)];
                for _ in 0..20 {
                    let from = lease(&url(numbers.one_of(&BASES)), numbers.below(3) as u32);
                    let html = numbers.page(&hrefs);
                    let rules = (&policy, &robots[numbers.below(5).min(2)]);
                    let cached = found((&html, &from), scope, rules, (&cache, None));
                    let none = RefCell::new(LinkCache::of_size(0));
                    let plain = found((&html, &from), scope, rules, (&none, None));
                    assert_eq!(cached.links, plain.links, "{} {html}", from.url);
                    assert_eq!(cached.link_rows, plain.link_rows, "{} {html}", from.url);
                    assert_eq!(cached.unusable, plain.unusable, "{} {html}", from.url);
                    assert!(none.borrow().targets.is_empty());
                    pages += usize::from(!plain.links.is_empty());
                    remembered += usize::from(!cache.borrow().targets.is_empty());
                }
            }
        }
        assert!(pages > 1000 && remembered > 1000, "{pages} {remembered}");
    }

    #[test]
    fn ours_settled_urls_of_a_page_s_own_host_are_left_out_until_some_are_pending_again() {
        let (policy, robots) = (LinkPolicy::new(&config()), robots(""));
        let scope = Arc::new(Scope::new(ScopeMode::Any, &[], &[], None).unwrap());
        let cache = RefCell::new(LinkCache::default());
        let from = lease(&url("http://a.example/b/c"), 0);
        let html = "<a href=d></a><a href=e></a><a href=d></a><a href=http://b.example/d></a>";
        let read = |settled_at| {
            let cache = (&cache, settled_at);
            let found = found((html, &from), &scope, (&policy, &robots), cache);
            let links: Vec<_> = found
                .links
                .iter()
                .map(|link| link.url.to_string())
                .collect();
            (links.join(" "), found.settled_links)
        };
        let all = "http://a.example/b/d http://a.example/b/e http://b.example/d";
        let all = || (all.to_owned(), 0);
        assert_eq!(read(Some(3)), all());
        for settled in ["http://a.example/b/d", "http://b.example/d"] {
            cache.borrow_mut().note_settled(&url(settled));
        }
        let rest = "http://a.example/b/e http://b.example/d".to_owned();
        assert_eq!(read(Some(3)), (rest, 1));
        assert_eq!(read(None), all());
        assert_eq!(read(Some(4)), all());
    }

    #[test]
    fn ours_links_beyond_the_bounds_of_a_cache_are_not_remembered() {
        let (policy, robots) = (LinkPolicy::new(&config()), robots(""));
        let scope = Arc::new(Scope::new(ScopeMode::Any, &[], &[], None).unwrap());
        let cache = RefCell::new(LinkCache::of_size(2_000));
        let from = lease(&url("http://a.example/b/c"), 0);
        let read = |html: &str| found((html, &from), &scope, (&policy, &robots), (&cache, None));
        let long = "d".repeat(MAX_HREF_BYTES + 1);
        assert_eq!(read(&format!("<a href='{long}'>")).links.len(), 1);
        assert!(cache.borrow().targets.is_empty());
        let many: String = (0..100).map(|n| format!("<a href='d{n}'></a>")).collect();
        assert_eq!(read(&format!("{many}{many}")).links.len(), 100);
        assert!(cache.borrow().bytes < 2_600, "{}", cache.borrow().bytes);
        // The next page begins anew.
        assert_eq!(read("<a href=d99>").links.len(), 1);
        assert_eq!(cache.borrow().targets.len(), 1);
    }
}
