//! The links of a document, ready to be admitted: each URL once, judged by the scope.

use std::cell::{RefCell, RefMut};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use crawl_archive::rows::LinkRow;
use crawl_extractor::{
    Link, LinkElement, LinkKind, ReadingLimits, Rel, link_header, read_css, refresh_header,
};
use crawl_fetcher::{Exchange, Secrets};
use crawl_frontier::{Lease, NotFetchedReason, Reason, RequestedState, UrlKind, UrlToAdmit};
use crawl_policy::{AgentRules, CitedDirective, DirectiveSource};
use crawl_scope::{OutOfScopeReason, Scope, ScopeVerdict};
use crawl_weburl::{CanonicalUrl, UnusableUrlError, canonicalize, reference_from_bytes};
use foldhash::fast::RandomState;

use super::document_result::ReadDocument;
use super::link_cache::{CachedLink, LinkCache};
use crate::config::{Config, EmbeddedResourcePolicy, TrapAvoidance};
use crate::messages::page_pipeline_stages::PageFindings;
use crate::priority::{MAX_RESOURCE_LEVELS, Priority};
use crate::secret_redaction::{SECRET_IN_URL, redacted_url};

/// Maximum sitemap links to admit in one transaction.
/// Beyond the limit: admitted in the next one.
const MAX_BATCH_LINKS: usize = 4_096;

/// Determines which links are followed. Links that a person can click are always followed.
#[derive(Clone, Debug)]
pub(crate) struct LinkPolicy {
    resources: EmbeddedResourcePolicy,
    feeds: bool,
    forms: bool,
    /// Whether `links.jsonl` is written.
    rows: bool,
    /// A link that contains one of the operator's secrets is not followed, since the request would
    /// pass the secret on.
    pub(crate) secrets: Secrets,
    traps: TrapAvoidance,
}

impl LinkPolicy {
    pub(crate) fn new(config: &Config) -> LinkPolicy {
        LinkPolicy {
            resources: config.resources,
            feeds: config.feeds,
            forms: config.forms,
            rows: config.links,
            secrets: config.fetch.secrets(),
            traps: config.traps,
        }
    }

    /// Returns the kind of URL that a link leads to. `None` if the link is not followed.
    fn kind(&self, link: LinkKind) -> Option<UrlKind> {
        match link {
            LinkKind::Page => Some(UrlKind::Page),
            LinkKind::Feed => self.feeds.then_some(UrlKind::Page),
            LinkKind::Form => self.forms.then_some(UrlKind::Page),
            LinkKind::Resource => {
                (self.resources != EmbeddedResourcePolicy::Off).then_some(UrlKind::Resource)
            }
            _ => None,
        }
    }
}

/// How a URL was found in a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiscoveryAttributes {
    pub(crate) kind: UrlKind,
    pub(crate) depth: u32,
    pub(crate) redirects: u8,
    pub(crate) priority: Priority,
    pub(crate) is_seed: bool,
}

impl DiscoveryAttributes {
    /// Returns how a link that a person can click was found.
    pub(crate) fn link(from: &Lease) -> DiscoveryAttributes {
        DiscoveryAttributes {
            kind: UrlKind::Page,
            depth: from.depth.saturating_add(1),
            redirects: 0,
            priority: Priority::LINK,
            is_seed: false,
        }
    }

    /// Returns how a resource of a page, such as an image, was found. A resource has the depth of
    /// its page. A resource of a resource, such as an image of a style sheet, comes later in the
    /// queue.
    pub(crate) fn resource(from: &Lease) -> DiscoveryAttributes {
        let priority = match from.kind {
            UrlKind::Resource => Priority::of(from).of_nested_resources(),
            UrlKind::Page | UrlKind::Sitemap => Priority::RESOURCE,
        };
        DiscoveryAttributes {
            kind: UrlKind::Resource,
            depth: from.depth,
            priority,
            ..DiscoveryAttributes::link(from)
        }
    }

    /// Returns the exclusion of a resource that is nested too deeply: at least
    /// [`MAX_RESOURCE_LEVELS`] resources load each other on the way to it. `None` for any other
    /// URL.
    fn too_nested(self) -> Option<NotFetchedReason> {
        let is_resource = self.kind == UrlKind::Resource;
        let is_too_nested = is_resource && self.priority.is_too_nested_resource();
        is_too_nested.then(|| NotFetchedReason {
            rule: Some(format!(
                "more than {MAX_RESOURCE_LEVELS} levels of resources"
            )),
            ..NotFetchedReason::of(Reason::Trap)
        })
    }
}

/// A link that resolves to a URL: one of the cache, or a new one.
enum ResolvedLink {
    /// The index of a cached link.
    Known(usize),
    /// The URL of a link that is not in the cache.
    Url(CanonicalUrl),
}

/// The links of one document, each URL only once.
pub(crate) struct DocumentLinkCollector<'a> {
    from: &'a Lease,
    /// The number of links followed since the crawl left the scope; 0 for a document in scope.
    hops_off: u8,
    /// Whether the document is in a trap, so that no link is followed.
    is_in_trap: bool,
    scope: &'a Scope,
    policy: &'a LinkPolicy,
    /// The robots.txt rules of the document's own origin.
    robots: Option<&'a AgentRules>,
    /// The cache with the links of documents that were read before.
    known: RefMut<'a, LinkCache>,
    /// The index into `found` of each URL that is not in the cache.
    places: HashMap<CanonicalUrl, usize, RandomState>,
    found: Vec<UrlToAdmit>,
    rows: Vec<LinkRow>,
    unusable: HashMap<&'static str, u64>,
    /// The number of links dropped because their targets are settled.
    settled: usize,
}

impl<'a> DocumentLinkCollector<'a> {
    pub(crate) fn new(
        from: &'a Lease,
        scope: &'a Arc<Scope>,
        policy: &'a LinkPolicy,
        robots: Option<&'a AgentRules>,
        (cache, settled_at): (&'a RefCell<LinkCache>, Option<u64>),
    ) -> DocumentLinkCollector<'a> {
        let mut cache = cache.borrow_mut();
        cache.begin(&from.url, scope, settled_at);
        // The lease stores how many links were followed since the crawl left the scope. Ignore
        // that number if the scope has been extended since and now includes the document.
        let hops_off = match from.hops_off {
            hops if hops > 0 && !scope.holds(&from.url) => hops,
            _ => 0,
        };
        DocumentLinkCollector {
            from,
            hops_off,
            is_in_trap: false,
            scope,
            policy,
            // Only `Clean-param` lines have an effect here, and most robots.txt files have none.
            robots: robots.filter(|robots| !robots.clean_params().is_empty()),
            known: cache,
            places: HashMap::default(),
            found: Vec::new(),
            rows: Vec::new(),
            unusable: HashMap::new(),
            settled: 0,
        }
    }

    /// Keeps rows of the document's links, but follows none. Call this first for a document in a
    /// trap.
    pub(crate) fn follow_none(&mut self) {
        self.is_in_trap = true;
    }

    /// Returns the scope that the links are judged by.
    pub(crate) fn scope(&self) -> &'a Scope {
        self.scope
    }

    /// Returns whether the document is one of the user's seeds, or the target of a seed's redirect.
    pub(crate) fn is_of_scope_seed(&self) -> bool {
        self.scope.is_seed(&self.from.url)
    }

    pub(crate) fn from(&self) -> &'a Lease {
        self.from
    }

    pub(crate) fn wants_resources(&self) -> bool {
        self.policy.resources != EmbeddedResourcePolicy::Off
    }

    /// Returns whether a link is dropped because of the document that contains it:
    ///
    /// - In a document in a trap, all links are dropped.
    /// - In a document out of scope, sitemaps are dropped. Resources are dropped too, unless the
    ///   resources of all pages are wanted.
    /// - In a document that is the last allowed hop out of scope, links to pages are dropped too,
    ///   except redirects.
    fn ends_here(&self, discovery: DiscoveryAttributes) -> bool {
        if self.is_in_trap {
            return true;
        }
        let is_last = self.hops_off >= self.scope.hops_off() && discovery.redirects == 0;
        self.hops_off > 0
            && match discovery.kind {
                UrlKind::Page => is_last,
                UrlKind::Resource => self.policy.resources != EmbeddedResourcePolicy::All,
                UrlKind::Sitemap => true,
            }
    }

    /// Returns how many consecutive links out of scope lead to a URL. `--hops-off-scope` counts links
    /// between pages, so it doesn't cover pages out of scope that only a sitemap lists: for these,
    /// returns [`u8::MAX`]. Entries of a seed sitemap count like links.
    fn hops_to(
        &self,
        discovery: DiscoveryAttributes,
        url: &CanonicalUrl,
        verdict: &ScopeVerdict,
    ) -> u8 {
        let is_off = match verdict {
            ScopeVerdict::Out {
                reason: OutOfScopeReason::Beyond,
                ..
            } => true,
            ScopeVerdict::Out {
                reason: OutOfScopeReason::Depth,
                ..
            } => self.scope.hops_off() > 0 && !self.scope.holds(url),
            _ => false,
        };
        let is_listed = self.from.kind == UrlKind::Sitemap && !discovery.is_seed;
        match (is_off, discovery.kind) {
            (false, _) => 0,
            (true, UrlKind::Page) if is_listed => u8::MAX,
            // A redirect counts as a hop only if the redirect itself leaves the scope.
            (true, UrlKind::Page) if discovery.redirects > 0 => self.hops_off.max(1),
            (true, UrlKind::Page) => self.hops_off.saturating_add(1),
            (true, _) => self.hops_off,
        }
    }

    /// Adds a link from a page or a header. `page_bar` is the reason not to follow any link of the
    /// page, if there is one.
    pub(crate) fn link(
        &mut self,
        base: &CanonicalUrl,
        link: &Link,
        page_bar: Option<&NotFetchedReason>,
    ) {
        let Some(kind) = self.policy.kind(link.kind) else {
            return;
        };
        let href = match link.kind {
            // The form's fields replace the query (HTML Standard 4.10.21.3).
            LinkKind::Form => without_query(&link.href),
            _ => &link.href,
        };
        let target = match self.resolve(base, href, kind) {
            Ok(target) => target,
            Err(why) => return self.count_dropped(why, 1),
        };
        let (discovery, barred) = match kind {
            UrlKind::Resource => (DiscoveryAttributes::resource(self.from), None),
            _ => {
                if self.policy.rows {
                    let url = self.url(&target).clone();
                    self.row(&url, link);
                }
                let barred = page_bar
                    .cloned()
                    .or_else(|| rel_refusal(link.rel, link.element));
                (DiscoveryAttributes::link(self.from), barred)
            }
        };
        match target {
            ResolvedLink::Known(link) => {
                self.add_known(discovery, self.known.target_of(link), barred);
            }
            ResolvedLink::Url(url) => self.add(discovery, Ok(url), barred),
        }
    }

    /// Resolves the address of a link. Returns an error with the reason if it is not a fetchable
    /// URL.
    fn resolve(
        &mut self,
        base: &CanonicalUrl,
        href: &str,
        kind: UrlKind,
    ) -> Result<ResolvedLink, &'static str> {
        let target = match self.known.get(base, href, kind) {
            Some(CachedLink::Unusable(why)) => return Err(why),
            Some(CachedLink::Usable(link)) => ResolvedLink::Known(link),
            None => {
                let url = canonicalize(Some(base), href).map_err(|why| why.name());
                let is_secret = matches!(&url, Ok(url) if self.policy.secrets.are_in_url(url));
                let link = (base, href, kind);
                let cached = match is_secret {
                    true => None,
                    false => {
                        self.known
                            .keep(link, url.as_ref().map_err(|why| *why), &self.policy.traps)
                    }
                };
                cached.map_or(ResolvedLink::Url(url?), ResolvedLink::Known)
            }
        };
        // Don't use the cache for a URL with a query. `Clean-param` lines in robots.txt may change
        // such a URL, and the documents of another origin have another robots.txt.
        match self.robots {
            Some(_) if self.url(&target).as_url().query().is_some() => {
                Ok(ResolvedLink::Url(self.url(&target).clone()))
            }
            _ => Ok(target),
        }
    }

    fn url<'b>(&'b self, target: &'b ResolvedLink) -> &'b CanonicalUrl {
        match target {
            ResolvedLink::Known(link) => self.known.url(*link),
            ResolvedLink::Url(url) => url,
        }
    }

    /// Returns the URL that a page link leads to, if it is valid. Caches the result, since the same
    /// link is usually added later.
    pub(crate) fn url_of(&mut self, base: &CanonicalUrl, href: &str) -> Option<CanonicalUrl> {
        let target = self.resolve(base, href, UrlKind::Page).ok()?;
        Some(self.url(&target).clone())
    }

    fn row(&mut self, to: &CanonicalUrl, link: &Link) {
        let secrets = &self.policy.secrets;
        let text = link.text.as_ref();
        self.rows.push(LinkRow {
            from: self.from.url.to_string(),
            to: redacted_url(secrets, to),
            rel: (!link.rel.is_empty()).then(|| link.rel.to_string()),
            text: text.map(|text| secrets.redacted(text).into_owned()),
            // The writer fills in `round` and `at`.
            round: None,
            at: None,
        });
    }

    /// Adds the links in the headers `Link` and `Refresh`.
    pub(crate) fn of_headers(
        &mut self,
        exchange: &Exchange,
        limits: &ReadingLimits,
        bar: impl FnOnce() -> Option<NotFetchedReason>,
    ) {
        let values = |name| {
            let values = exchange.headers.get_all(name).iter();
            values.map(|value| reference_from_bytes(value.as_bytes()))
        };
        let links = values("link").flat_map(|value| link_header(&value, limits));
        let refresh = values("refresh").filter_map(|value| refresh_header(&value, limits));
        let header_links: Vec<_> = links.chain(refresh).collect();
        if header_links.is_empty() {
            return;
        }
        let bar = bar();
        for link in &header_links {
            self.link(&self.from.url, link, bar.as_ref());
        }
    }

    /// Adds the URLs that a style sheet loads.
    pub(crate) fn of_style_sheet(
        &mut self,
        bytes: &[u8],
        content_type: Option<&str>,
        limits: &ReadingLimits,
    ) {
        if self.wants_resources() {
            for link in read_css(bytes, content_type, limits).links {
                self.link(&self.from.url, &link, None);
            }
        }
    }

    /// Counts links that were dropped for the reason `why`.
    pub(crate) fn count_dropped(&mut self, why: &'static str, count: u64) {
        if count > 0 {
            *self.unusable.entry(why).or_default() += count;
        }
    }

    pub(crate) fn add(
        &mut self,
        discovery: DiscoveryAttributes,
        url: Result<CanonicalUrl, UnusableUrlError>,
        barred: Option<NotFetchedReason>,
    ) {
        if self.ends_here(discovery) {
            return;
        }
        let barred = barred.or_else(|| discovery.too_nested());
        let url = match url {
            Ok(url) => url,
            Err(why) => return self.count_dropped(why.name(), 1),
        };
        if self.policy.secrets.are_in_url(&url) {
            return self.count_dropped(SECRET_IN_URL, 1);
        }
        let (discovery, url, barred) = self.named(discovery, url, barred);
        let place = self.places.get(&url).copied();
        let place = place.or_else(|| self.known.place_of(&url));
        if place.is_some_and(|place| !self.may_replace(place, discovery, barred.as_ref())) {
            return;
        }
        let verdict = self.scope.judge(&url, discovery.depth);
        let admission = self.admission(discovery, url, barred, verdict);
        match place {
            Some(place) => self.replace(place, admission),
            None => {
                self.places.insert(admission.url.clone(), self.found.len());
                self.found.push(admission);
            }
        }
    }

    /// Adds a link whose target is cached. Does the same as `add`, but takes the facts about the
    /// target from the cache.
    fn add_known(
        &mut self,
        mut discovery: DiscoveryAttributes,
        number: usize,
        mut barred: Option<NotFetchedReason>,
    ) {
        if self.ends_here(discovery) {
            return;
        }
        if let Some(is_first) = self.known.settled(number) {
            self.settled += usize::from(is_first);
            return;
        }
        barred = barred.or_else(|| discovery.too_nested());
        let target = self.known.target_at(number);
        if let (UrlKind::Page, Some(refusal)) = (discovery.kind, &target.action) {
            discovery.priority = Priority::ACTION;
            barred = barred.or_else(|| refusal.clone());
        }
        let place = self
            .known
            .place(number)
            .or_else(|| match self.places.is_empty() {
                true => None,
                false => self.places.get(&target.url).copied(),
            });
        if place.is_some_and(|place| !self.may_replace(place, discovery, barred.as_ref())) {
            return;
        }
        let url = target.url.clone();
        let verdict = match target.max_depth.is_some_and(|max| discovery.depth > max) {
            true => self.scope.judge(&url, discovery.depth),
            false => target.verdict.clone(),
        };
        let admission = self.admission(discovery, url, barred, verdict);
        match place {
            Some(place) => self.replace(place, admission),
            None => {
                self.known.set_place(number, self.found.len());
                self.found.push(admission);
            }
        }
    }

    /// Returns false if a link certainly doesn't [`replace`](Self::replace) an earlier link to the
    /// same URL: a barred link doesn't replace a link of its kind, and a link to a resource doesn't
    /// replace a link to a page that may be fetched.
    fn may_replace(
        &self,
        place: usize,
        discovery: DiscoveryAttributes,
        barred: Option<&NotFetchedReason>,
    ) -> bool {
        let earlier = &self.found[place];
        match discovery.kind.cmp(&earlier.kind) {
            Ordering::Less => earlier.state != RequestedState::Pending,
            Ordering::Equal => barred.is_none(),
            Ordering::Greater => true,
        }
    }

    /// Replaces an earlier link to the same URL by a link of the same kind. Of links of two kinds,
    /// keeps the one that may be fetched, so that an image is fetched even if its page also has a
    /// `nofollow` link to it. If both or neither may be fetched, keeps the link to a page.
    fn replace(&mut self, place: usize, link: UrlToAdmit) {
        let earlier = &mut self.found[place];
        let weight = |link: &UrlToAdmit| (link.state == RequestedState::Pending, link.kind);
        if link.kind == earlier.kind || weight(&link) > weight(earlier) {
            *earlier = link;
        }
    }

    /// Returns the link with its URL replaced by the URL to fetch, which may be another spelling.
    /// Links that look like actions get a low priority, and may be barred. Redirect targets and
    /// sitemap URLs are returned unchanged.
    fn named(
        &self,
        discovery: DiscoveryAttributes,
        url: CanonicalUrl,
        barred: Option<NotFetchedReason>,
    ) -> (DiscoveryAttributes, CanonicalUrl, Option<NotFetchedReason>) {
        if discovery.kind != UrlKind::Page || discovery.redirects > 0 {
            return (discovery, url, barred);
        }
        let rules = &self.policy.traps;
        let robots = self.robots.filter(|_| url.as_url().query().is_some());
        let robots = robots.filter(|_| url.origin() == self.from.origin);
        let url = rules.named(url, robots);
        match rules.action(&url) {
            None => (discovery, url, barred),
            Some(refusal) => {
                let priority = Priority::ACTION;
                (
                    DiscoveryAttributes {
                        priority,
                        ..discovery
                    },
                    url,
                    barred.or(refusal),
                )
            }
        }
    }

    fn admission(
        &self,
        discovery: DiscoveryAttributes,
        url: CanonicalUrl,
        barred: Option<NotFetchedReason>,
        verdict: ScopeVerdict,
    ) -> UrlToAdmit {
        let hops_off = self.hops_to(discovery, &url, &verdict);
        let is_too_deep = matches!(
            verdict,
            ScopeVerdict::Out {
                reason: OutOfScopeReason::Depth,
                ..
            }
        );
        // The frontier replaces a link to a deferred URL only by a link on a shorter path. Links
        // that are too deep usually have the same depth. So let a barred link count as longer: a
        // permitted link then replaces it, and a higher depth limit readmits the URL.
        let redirects = match is_too_deep && barred.is_some() {
            true => u8::MAX,
            false => discovery.redirects,
        };
        UrlToAdmit {
            state: self.standing((discovery, hops_off), &url, barred, verdict),
            depth: discovery.depth,
            hops_off,
            redirects,
            via: Some(self.from.url.clone()),
            priority: discovery.priority.byte(),
            is_seed: discovery.is_seed,
            kind: discovery.kind,
            url,
        }
    }

    fn standing(
        &self,
        (discovery, hops_off): (DiscoveryAttributes, u8),
        url: &CanonicalUrl,
        barred: Option<NotFetchedReason>,
        verdict: ScopeVerdict,
    ) -> RequestedState {
        // The following links are followed even if they lead out of scope:
        //
        // - links to sitemaps on the same host;
        // - links to resources, if the resources of all pages are wanted;
        // - links from a seed that is a sitemap to its entries.
        let is_exempt = match discovery.kind {
            UrlKind::Sitemap => discovery.is_seed || url.host_key() == self.from.url.host_key(),
            UrlKind::Resource => self.policy.resources == EmbeddedResourcePolicy::All,
            UrlKind::Page => discovery.is_seed,
        };
        match verdict {
            ScopeVerdict::Out { .. } if is_exempt && self.scope.excluded(url).is_none() => {
                barred.map_or(RequestedState::Pending, RequestedState::Deferred)
            }
            // A higher depth limit readmits the URL, but must not readmit a barred link. So
            // `barred` takes precedence over the depth.
            ScopeVerdict::Out {
                reason: OutOfScopeReason::Depth,
                rule,
            } => RequestedState::Deferred(barred.unwrap_or_else(|| NotFetchedReason {
                rule: Some(rule),
                ..NotFetchedReason::of(Reason::Depth)
            })),
            ScopeVerdict::Out {
                reason: OutOfScopeReason::Beyond,
                ..
            } if discovery.kind == UrlKind::Page && hops_off <= self.scope.hops_off() => {
                barred.map_or(RequestedState::Pending, RequestedState::Deferred)
            }
            ScopeVerdict::Out { reason, rule } => {
                let exclusion = NotFetchedReason {
                    rule: Some(rule),
                    ..NotFetchedReason::of(Reason::Scope)
                };
                // A later round admits an excluded URL again if its scope contains the URL. Two
                // kinds of URLs must not come back that way, so they are deferred, and come back
                // only if another page links to them: URLs that must not be followed, and pages
                // that only a sitemap lists, if links may lead out of scope.
                let is_listed = reason == OutOfScopeReason::Beyond && hops_off == u8::MAX;
                match barred.is_some() || is_listed {
                    false => RequestedState::Excluded(exclusion),
                    true => RequestedState::Deferred(exclusion),
                }
            }
            ScopeVerdict::In => barred.map_or(RequestedState::Pending, RequestedState::Deferred),
        }
    }

    /// Removes and returns the links if there are enough for one transaction. A later batch may
    /// contain the same URLs again.
    pub(crate) fn take_batch(&mut self) -> Option<Vec<UrlToAdmit>> {
        if self.found.len() < MAX_BATCH_LINKS {
            return None;
        }
        self.places.clear();
        self.known.forget_places();
        Some(std::mem::take(&mut self.found))
    }

    /// Drops all links, so that none is followed. Keeps their rows for `links.jsonl`.
    pub(crate) fn forget_found(&mut self) {
        self.places.clear();
        self.known.forget_places();
        self.found.clear();
        self.settled = 0;
    }

    /// Completes a document by adding its links.
    pub(crate) fn finish(self, document: ReadDocument) -> ReadDocument {
        let findings = PageFindings {
            links: self.found,
            link_rows: self.rows,
            unusable: self.unusable,
            settled_links: self.settled,
            ..document.findings
        };
        ReadDocument {
            findings,
            ..document
        }
    }
}

fn without_query(href: &str) -> &str {
    href.split(['?', '#']).next().unwrap_or_default()
}

/// Returns the exclusion of all links on a page that declares `nofollow`.
pub(crate) fn page_refusal(source: CitedDirective) -> NotFetchedReason {
    let reason = match source.place {
        DirectiveSource::Header => Reason::Header,
        DirectiveSource::Meta => Reason::Meta,
    };
    NotFetchedReason {
        rule: Some(source.text),
        ..NotFetchedReason::of(reason)
    }
}

/// Returns the exclusion for a link with a `rel` of `nofollow`, `ugc` or `sponsored`. `None` for
/// `link` elements, where these words have another meaning.
fn rel_refusal(rel: Rel, element: LinkElement) -> Option<NotFetchedReason> {
    let words = [Rel::NOFOLLOW, Rel::UGC, Rel::SPONSORED];
    let refused = element != LinkElement::Link && words.iter().any(|&word| rel.contains(word));
    let rule = || NotFetchedReason {
        rule: Some(format!("rel={rel}")),
        ..NotFetchedReason::of(Reason::Nofollow)
    };
    refused.then(rule)
}

#[cfg(test)]
mod tests;
