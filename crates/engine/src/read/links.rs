//! The links of a document: each URL once, judged by scope, ready to be admitted.

use std::collections::HashMap;

use crawl_archive::rows::LinkRow;
use crawl_extractor::{
    Element, Limits, Link, LinkKind, Rel, link_header, read_css, refresh_header,
};
use crawl_fetcher::{Exchange, Secrets};
use crawl_frontier::{Admission, Exclusion, Lease, NewState, Reason, UrlKind};
use crawl_policy::scope::{OutReason, Scope, ScopeVerdict};
use crawl_policy::{CitedText, DirectivePlace, Robots};
use crawl_weburl::{CanonicalUrl, Unusable, canonicalize};

use super::document::ReadDocument;
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

/// The links of one document, each URL once.
pub(crate) struct Links<'a> {
    from: &'a Lease,
    scope: &'a Scope,
    policy: &'a LinkPolicy,
    /// The rules of the document's own origin.
    robots: Option<&'a Robots>,
    /// Place in `found` of each URL.
    places: HashMap<CanonicalUrl, usize>,
    found: Vec<Admission>,
    rows: Vec<LinkRow>,
    unusable: HashMap<&'static str, u64>,
}

impl<'a> Links<'a> {
    pub(crate) fn new(
        from: &'a Lease,
        scope: &'a Scope,
        policy: &'a LinkPolicy,
        robots: Option<&'a Robots>,
    ) -> Links<'a> {
        Links {
            from,
            scope,
            policy,
            robots,
            places: HashMap::new(),
            found: Vec::new(),
            rows: Vec::new(),
            unusable: HashMap::new(),
        }
    }

    pub(crate) fn from(&self) -> &'a Lease {
        self.from
    }

    pub(crate) fn wants_resources(&self) -> bool {
        self.policy.resources != Resources::Off
    }

    /// Takes in a link of a page, or of a header. `page_bar` is what the page says of all.
    pub(crate) fn link(&mut self, base: &CanonicalUrl, link: &Link, page_bar: Option<&Exclusion>) {
        let Some(kind) = self.policy.kind(link.kind) else {
            return;
        };
        let url = match link.kind {
            // What is filled in takes the place of the query (HTML Standard 4.10.21.3).
            LinkKind::Form => canonicalize(Some(base), without_query(&link.href)),
            _ => canonicalize(Some(base), &link.href),
        };
        if kind == UrlKind::Resource {
            return self.add(Discovery::resource(self.from), url, None);
        }
        if let (true, Ok(to)) = (self.policy.rows, &url) {
            self.rows.push(LinkRow {
                from: self.from.url.to_string(),
                to: redacted_url(&self.policy.secrets, to),
                rel: (!link.rel.is_empty()).then(|| link.rel.to_string()),
                text: link
                    .text
                    .as_ref()
                    .map(|text| self.policy.secrets.redacted(text).into_owned()),
            });
        }
        let barred = page_bar
            .cloned()
            .or_else(|| rel_refusal(link.rel, link.element));
        self.add(Discovery::link(self.from), url, barred);
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
        let url = match url {
            Ok(url) => url,
            Err(why) => return self.leave_out(why.name(), 1),
        };
        if self.policy.secrets.are_in_url(&url) {
            return self.leave_out(SECRET_IN_URL, 1);
        }
        let (way, url, barred) = self.named(way, url, barred);
        match self.places.get(&url) {
            Some(&place) => {
                // One link that may be followed outweighs others that may not, and a link
                // what is only loaded.
                let more = way.kind > self.found[place].kind;
                if more || barred.is_none() && way.kind == self.found[place].kind {
                    self.found[place] = self.admission(way, url, barred);
                }
            }
            None => {
                self.places.insert(url.clone(), self.found.len());
                let admission = self.admission(way, url, barred);
                self.found.push(admission);
            }
        }
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

    fn admission(&self, way: Discovery, url: CanonicalUrl, barred: Option<Exclusion>) -> Admission {
        Admission {
            state: self.standing(way, &url, barred),
            depth: way.depth,
            redirects: way.redirects,
            via: Some(self.from.url.clone()),
            priority: way.priority.byte(),
            is_seed: way.is_seed,
            kind: way.kind,
            url,
        }
    }

    fn standing(&self, way: Discovery, url: &CanonicalUrl, barred: Option<Exclusion>) -> NewState {
        // A host's own sitemaps are read wherever they lie, and so are the parts of a page
        // where all are wanted.
        let is_exempt = match way.kind {
            UrlKind::Sitemap => url.host_key() == self.from.url.host_key(),
            UrlKind::Resource => self.policy.resources == Resources::All,
            UrlKind::Page => false,
        };
        match self.scope.judge(url, way.depth) {
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
        Some(std::mem::take(&mut self.found))
    }

    /// Gives a document its links.
    pub(crate) fn finish(self, document: ReadDocument) -> ReadDocument {
        let findings = PageFindings {
            links: self.found,
            link_rows: self.rows,
            unusable: self.unusable,
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
