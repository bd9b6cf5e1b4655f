//! The links of a document: each URL once, judged by scope, ready to be admitted.

use std::cell::{RefCell, RefMut};
use std::collections::HashMap;
use std::sync::Arc;

use crawl_archive::rows::LinkRow;
use crawl_extractor::{
    Element, Limits, Link, LinkKind, Rel, link_header, read_css, refresh_header,
};
use crawl_fetcher::{Exchange, Secrets};
use crawl_frontier::{Admission, Exclusion, Lease, NewState, Reason, UrlKind};
use crawl_policy::{AgentRules, CitedText, DirectivePlace};
use crawl_scope::{OutReason, Scope, ScopeVerdict};
use crawl_weburl::{CanonicalUrl, Unusable, canonicalize};
use foldhash::fast::RandomState;

use super::document::ReadDocument;
use super::link_cache::{KnownLink, LinkCache};
use crate::config::{Config, Resources, TrapRules};
use crate::messages::page::PageFindings;
use crate::priority::Priority;
use crate::secrets::{SECRET_IN_URL, redacted_url};

/// Links of a sitemap that are admitted in one transaction.
const MAX_BATCH_LINKS: usize = 4_096;

/// Which links are followed, beside those that a person could follow.
#[derive(Clone, Debug)]
pub(crate) struct LinkPolicy {
    resources: Resources,
    feeds: bool,
    forms: bool,
    /// True if `links.jsonl` is written.
    rows: bool,
    /// A link with one of these in it is not followed: it would carry the secret on.
    pub(crate) secrets: Secrets,
    traps: TrapRules,
}

impl LinkPolicy {
    pub(crate) fn new(config: &Config) -> LinkPolicy {
        LinkPolicy {
            resources: config.resources,
            feeds: config.feeds,
            forms: config.forms,
            rows: config.links,
            secrets: Secrets::of(&config.fetch.access),
            traps: config.traps,
        }
    }

    /// The kind of document that a link's answer is read as; none where the link is not followed.
    fn kind(&self, link: LinkKind) -> Option<UrlKind> {
        match link {
            LinkKind::Page => Some(UrlKind::Page),
            LinkKind::Feed => self.feeds.then_some(UrlKind::Page),
            LinkKind::Form => self.forms.then_some(UrlKind::Page),
            LinkKind::Resource => (self.resources != Resources::Off).then_some(UrlKind::Resource),
            _ => None,
        }
    }
}

/// The way in which a document leads to what it names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Discovery {
    pub(crate) kind: UrlKind,
    pub(crate) depth: u32,
    pub(crate) redirects: u8,
    pub(crate) priority: Priority,
    pub(crate) is_seed: bool,
}

impl Discovery {
    /// By a link of a page.
    pub(crate) fn link(from: &Lease) -> Discovery {
        Discovery {
            kind: UrlKind::Page,
            depth: from.depth.saturating_add(1),
            redirects: 0,
            priority: Priority::LINK,
            is_seed: false,
        }
    }

    /// As a part of a page: no further away than it.
    pub(crate) fn resource(from: &Lease) -> Discovery {
        Discovery {
            kind: UrlKind::Resource,
            depth: from.depth,
            priority: Priority::RESOURCE,
            ..Discovery::link(from)
        }
    }
}

/// What a link leads to.
enum LinkTarget {
    /// A link that is remembered, by its number.
    Known(usize),
    /// A URL of which nothing is remembered.
    Url(CanonicalUrl),
}

/// The links of one document, each URL once.
pub(crate) struct Links<'a> {
    from: &'a Lease,
    /// Links that were followed to it since the scope was left.
    hops_off: u8,
    scope: &'a Scope,
    policy: &'a LinkPolicy,
    /// The rules of the document's own origin.
    robots: Option<&'a AgentRules>,
    /// The links of documents that were read before.
    known: RefMut<'a, LinkCache>,
    /// Place in `found` of each URL that is not in `known`.
    places: HashMap<CanonicalUrl, usize, RandomState>,
    found: Vec<Admission>,
    rows: Vec<LinkRow>,
    unusable: HashMap<&'static str, u64>,
    /// Links that were left out since their targets are settled.
    settled: usize,
}

impl<'a> Links<'a> {
    pub(crate) fn new(
        from: &'a Lease,
        scope: &'a Arc<Scope>,
        policy: &'a LinkPolicy,
        robots: Option<&'a AgentRules>,
        (known, settled_at): (&'a RefCell<LinkCache>, Option<u64>),
    ) -> Links<'a> {
        let mut known = known.borrow_mut();
        known.begin(&from.url, scope, settled_at);
        // The scope may have grown since it was met.
        let hops_off = match from.hops_off {
            hops if hops > 0 && !scope.holds(&from.url) => hops,
            _ => 0,
        };
        Links {
            from,
            hops_off,
            scope,
            policy,
            // Most files have none of the lines by which a URL gets another name.
            robots: robots.filter(|robots| !robots.clean_params().is_empty()),
            known,
            places: HashMap::default(),
            found: Vec::new(),
            rows: Vec::new(),
            unusable: HashMap::new(),
            settled: 0,
        }
    }

    /// The scope that its links are judged by.
    pub(crate) fn scope(&self) -> &'a Scope {
        self.scope
    }

    /// Returns whether the document is a seed that the user named, or where such a one leads.
    pub(crate) fn is_of_scope_seed(&self) -> bool {
        self.scope.is_seed(&self.from.url)
    }

    pub(crate) fn from(&self) -> &'a Lease {
        self.from
    }

    pub(crate) fn wants_resources(&self) -> bool {
        self.policy.resources != Resources::Off
    }

    /// Returns whether nothing is followed in such a way: from the last page off the scope nothing
    /// but a redirect, and from no page off it the parts that it is shown with, unless those of
    /// all pages are wanted.
    fn ends_here(&self, way: Discovery) -> bool {
        let is_last = self.hops_off >= self.scope.hops_off() && way.redirects == 0;
        self.hops_off > 0
            && match way.kind {
                UrlKind::Page => is_last,
                UrlKind::Resource => self.policy.resources != Resources::All,
                UrlKind::Sitemap => true,
            }
    }

    /// The links to a URL since the scope was left.
    fn hops_to(&self, way: Discovery, url: &CanonicalUrl, verdict: &ScopeVerdict) -> u8 {
        let is_off = match verdict {
            ScopeVerdict::Out {
                reason: OutReason::Beyond,
                ..
            } => true,
            ScopeVerdict::Out {
                reason: OutReason::Depth,
                ..
            } => self.scope.hops_off() > 0 && !self.scope.holds(url),
            _ => false,
        };
        match (is_off, way.kind) {
            (false, _) => 0,
            // A redirect is no link of its own, but where it leaves the scope.
            (true, UrlKind::Page) if way.redirects > 0 => self.hops_off.max(1),
            (true, UrlKind::Page) => self.hops_off.saturating_add(1),
            (true, _) => self.hops_off,
        }
    }

    /// Takes in a link of a page, or of a header. `page_bar` is what the page says of all.
    pub(crate) fn link(&mut self, base: &CanonicalUrl, link: &Link, page_bar: Option<&Exclusion>) {
        let Some(kind) = self.policy.kind(link.kind) else {
            return;
        };
        let href = match link.kind {
            // What is filled in takes the place of the query (HTML Standard 4.10.21.3).
            LinkKind::Form => without_query(&link.href),
            _ => &link.href,
        };
        let target = match self.resolve(base, href, kind) {
            Ok(found) => found,
            Err(why) => return self.leave_out(why, 1),
        };
        let (way, barred) = match kind {
            UrlKind::Resource => (Discovery::resource(self.from), None),
            _ => {
                if self.policy.rows {
                    let url = self.url(&target).clone();
                    self.row(&url, link);
                }
                let barred = page_bar
                    .cloned()
                    .or_else(|| rel_refusal(link.rel, link.element));
                (Discovery::link(self.from), barred)
            }
        };
        match target {
            LinkTarget::Known(link) => self.add_known(way, self.known.target_of(link), barred),
            LinkTarget::Url(url) => self.add(way, Ok(url), barred),
        }
    }

    /// The target of a link. The error is the reason why it names nothing that a crawler can ask
    /// for.
    fn resolve(
        &mut self,
        base: &CanonicalUrl,
        href: &str,
        kind: UrlKind,
    ) -> Result<LinkTarget, &'static str> {
        let found = match self.known.get(base, href, kind) {
            Some(KnownLink::Unusable(why)) => return Err(why),
            Some(KnownLink::Usable(link)) => LinkTarget::Known(link),
            None => {
                let url = canonicalize(Some(base), href).map_err(|why| why.name());
                let is_secret = matches!(&url, Ok(url) if self.policy.secrets.are_in_url(url));
                let link = (base, href, kind);
                let known = match is_secret {
                    true => None,
                    false => {
                        self.known
                            .keep(link, url.as_ref().map_err(|why| *why), &self.policy.traps)
                    }
                };
                known.map_or(LinkTarget::Url(url?), LinkTarget::Known)
            }
        };
        // What a robots.txt says of parameters may change from one page to the next.
        match self.robots {
            Some(_) if self.url(&found).as_url().query().is_some() => {
                Ok(LinkTarget::Url(self.url(&found).clone()))
            }
            _ => Ok(found),
        }
    }

    /// The URL that a link names.
    fn url<'b>(&'b self, target: &'b LinkTarget) -> &'b CanonicalUrl {
        match target {
            LinkTarget::Known(link) => self.known.url(*link),
            LinkTarget::Url(url) => url,
        }
    }

    /// The URL of a link to a page, if it names one. It is remembered for when the link is taken
    /// in.
    pub(crate) fn url_of(&mut self, base: &CanonicalUrl, href: &str) -> Option<CanonicalUrl> {
        let found = self.resolve(base, href, UrlKind::Page).ok()?;
        Some(self.url(&found).clone())
    }

    fn row(&mut self, to: &CanonicalUrl, link: &Link) {
        let secrets = &self.policy.secrets;
        let text = link.text.as_ref();
        self.rows.push(LinkRow {
            from: self.from.url.to_string(),
            to: redacted_url(secrets, to),
            rel: (!link.rel.is_empty()).then(|| link.rel.to_string()),
            text: text.map(|text| secrets.redacted(text).into_owned()),
            // The writer knows them.
            round: None,
            at: None,
        });
    }

    /// Takes in the links that stand in headers, `Link` and `Refresh`.
    pub(crate) fn of_headers(
        &mut self,
        exchange: &Exchange,
        limits: &Limits,
        bar: impl FnOnce() -> Option<Exclusion>,
    ) {
        let values = |name| {
            let values = exchange.headers.get_all(name).iter();
            values.map(|value| String::from_utf8_lossy(value.as_bytes()))
        };
        let links = values("link").flat_map(|value| link_header(&value, limits));
        let refresh = values("refresh").filter_map(|value| refresh_header(&value, limits));
        let found: Vec<_> = links.chain(refresh).collect();
        if found.is_empty() {
            return;
        }
        let bar = bar();
        for link in &found {
            self.link(&self.from.url, link, bar.as_ref());
        }
    }

    /// Takes in what a style sheet loads.
    pub(crate) fn of_style_sheet(
        &mut self,
        bytes: &[u8],
        content_type: Option<&str>,
        limits: &Limits,
    ) {
        if self.wants_resources() {
            for link in read_css(bytes, content_type, limits).links {
                self.link(&self.from.url, &link, None);
            }
        }
    }

    /// Counts what is not taken in.
    pub(crate) fn leave_out(&mut self, why: &'static str, count: u64) {
        if count > 0 {
            *self.unusable.entry(why).or_default() += count;
        }
    }

    pub(crate) fn add(
        &mut self,
        way: Discovery,
        url: Result<CanonicalUrl, Unusable>,
        barred: Option<Exclusion>,
    ) {
        if self.ends_here(way) {
            return;
        }
        let url = match url {
            Ok(url) => url,
            Err(why) => return self.leave_out(why.name(), 1),
        };
        if self.policy.secrets.are_in_url(&url) {
            return self.leave_out(SECRET_IN_URL, 1);
        }
        let (way, url, barred) = self.named(way, url, barred);
        let place = self.places.get(&url).copied();
        match place.or_else(|| self.known.place_of(&url)) {
            Some(place) if !self.outweighs(place, way, barred.as_ref()) => {}
            place => {
                let verdict = self.scope.judge(&url, way.depth);
                let admission = self.admission(way, url, barred, verdict);
                match place {
                    Some(place) => self.found[place] = admission,
                    None => {
                        self.places.insert(admission.url.clone(), self.found.len());
                        self.found.push(admission);
                    }
                }
            }
        }
    }

    /// Adds a link whose target is known, as `add` does.
    fn add_known(&mut self, mut way: Discovery, number: usize, mut barred: Option<Exclusion>) {
        if self.ends_here(way) {
            return;
        }
        if let Some(is_first) = self.known.settled(number) {
            self.settled += usize::from(is_first);
            return;
        }
        let target = self.known.target_at(number);
        if let (UrlKind::Page, Some(refusal)) = (way.kind, &target.action) {
            way.priority = Priority::ACTION;
            barred = barred.or_else(|| refusal.clone());
        }
        let place = self
            .known
            .place(number)
            .or_else(|| match self.places.is_empty() {
                true => None,
                false => self.places.get(&target.url).copied(),
            });
        if place.is_some_and(|place| !self.outweighs(place, way, barred.as_ref())) {
            return;
        }
        let url = target.url.clone();
        let verdict = match target.max_depth.is_some_and(|max| way.depth > max) {
            true => self.scope.judge(&url, way.depth),
            false => target.verdict.clone(),
        };
        let admission = self.admission(way, url, barred, verdict);
        match place {
            Some(place) => self.found[place] = admission,
            None => {
                self.known.set_place(number, self.found.len());
                self.found.push(admission);
            }
        }
    }

    /// Returns whether a link counts instead of one that was found before. One that may be followed
    /// outweighs others that may not, and a link what is only loaded.
    fn outweighs(&self, place: usize, way: Discovery, barred: Option<&Exclusion>) -> bool {
        let kind = self.found[place].kind;
        way.kind > kind || barred.is_none() && way.kind == kind
    }

    /// The URL that a link asks for, its place in the queue, and what bars it. A redirect insists
    /// on its target as it is, and a sitemap is what its name says.
    fn named(
        &self,
        way: Discovery,
        url: CanonicalUrl,
        barred: Option<Exclusion>,
    ) -> (Discovery, CanonicalUrl, Option<Exclusion>) {
        if way.kind != UrlKind::Page || way.redirects > 0 {
            return (way, url, barred);
        }
        let rules = &self.policy.traps;
        let robots = self.robots.filter(|_| url.as_url().query().is_some());
        let robots = robots.filter(|_| url.origin() == self.from.origin);
        let url = rules.named(url, robots);
        match rules.action(&url) {
            None => (way, url, barred),
            Some(refusal) => {
                let priority = Priority::ACTION;
                (Discovery { priority, ..way }, url, barred.or(refusal))
            }
        }
    }

    fn admission(
        &self,
        way: Discovery,
        url: CanonicalUrl,
        barred: Option<Exclusion>,
        verdict: ScopeVerdict,
    ) -> Admission {
        let hops_off = self.hops_to(way, &url, &verdict);
        Admission {
            state: self.standing(way, &url, barred, verdict),
            depth: way.depth,
            hops_off,
            redirects: way.redirects,
            via: Some(self.from.url.clone()),
            priority: way.priority.byte(),
            is_seed: way.is_seed,
            kind: way.kind,
            url,
        }
    }

    fn standing(
        &self,
        way: Discovery,
        url: &CanonicalUrl,
        barred: Option<Exclusion>,
        verdict: ScopeVerdict,
    ) -> NewState {
        // A host's own sitemaps are read wherever they lie, and so are the parts of a page
        // where all are wanted, and what the sitemap of a seed lists.
        let is_exempt = match way.kind {
            UrlKind::Sitemap => way.is_seed || url.host_key() == self.from.url.host_key(),
            UrlKind::Resource => self.policy.resources == Resources::All,
            UrlKind::Page => way.is_seed,
        };
        match verdict {
            ScopeVerdict::Out { .. } if is_exempt && self.scope.excluded(url).is_none() => {
                barred.map_or(NewState::Pending, NewState::Deferred)
            }
            ScopeVerdict::Out {
                reason: OutReason::Depth,
                rule,
            } => NewState::Deferred(Exclusion {
                rule: Some(rule),
                ..Exclusion::of(Reason::Depth)
            }),
            // The last page off the scope has no links, so none leads further than it may.
            ScopeVerdict::Out {
                reason: OutReason::Beyond,
                ..
            } if way.kind == UrlKind::Page => barred.map_or(NewState::Pending, NewState::Deferred),
            ScopeVerdict::Out { rule, .. } => NewState::Excluded(Exclusion {
                rule: Some(rule),
                ..Exclusion::of(Reason::Scope)
            }),
            ScopeVerdict::In => barred.map_or(NewState::Pending, NewState::Deferred),
        }
    }

    /// Takes out what was found, where that is enough for a transaction. A URL that comes again is
    /// known then.
    pub(crate) fn take_batch(&mut self) -> Option<Vec<Admission>> {
        if self.found.len() < MAX_BATCH_LINKS {
            return None;
        }
        self.places.clear();
        self.known.forget_places();
        Some(std::mem::take(&mut self.found))
    }

    /// Takes back what was found, and keeps the rows of it: nothing of it is followed.
    pub(crate) fn forget_found(&mut self) {
        self.places.clear();
        self.known.forget_places();
        self.found.clear();
        self.settled = 0;
    }

    /// Gives a document its links.
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

/// A page's own word that its links are not to be followed.
pub(crate) fn page_refusal(source: CitedText) -> Exclusion {
    let reason = match source.place {
        DirectivePlace::Header => Reason::Header,
        DirectivePlace::Meta => Reason::Meta,
    };
    Exclusion {
        rule: Some(source.text),
        ..Exclusion::of(reason)
    }
}

/// The `rel` of a link that says not to follow it, be it by `nofollow` itself or by what
/// stands for it: `ugc`, `sponsored`. On a `link` element the words speak of something else.
fn rel_refusal(rel: Rel, element: Element) -> Option<Exclusion> {
    let words = [Rel::NOFOLLOW, Rel::UGC, Rel::SPONSORED];
    let refused = element != Element::Link && words.iter().any(|&word| rel.contains(word));
    let rule = || Exclusion {
        rule: Some(format!("rel={rel}")),
        ..Exclusion::of(Reason::Nofollow)
    };
    refused.then(rule)
}
