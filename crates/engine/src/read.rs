//! From an exchange to a settled page: records, row, links. Runs on reader threads.

use std::borrow::Cow;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bytes::Bytes;
use crawl_archive::Timestamp;
use crawl_archive::rows::{LinkRow, PageRow};
use crawl_extractor::{Element, Limits, LinkKind, Meta, Page, Rel, Sitemap, SitemapKind};
use crawl_fetcher::robots::Compiled;
use crawl_fetcher::{DecodeEnd, DecodeLimits, Exchange, Failure, Limit};
use crawl_frontier::{Admission, Exclusion, Lease, Outcome, Reason, Standing, UrlKind};
use crawl_policy::date::unix_seconds;
use crawl_policy::scope::{OutReason, Scope, ScopeVerdict};
use crawl_policy::traps::Gist;
use crawl_policy::usage::{Ledger, Purpose};
use crawl_policy::{PageDirectives, Place, ProductToken, Profile, Robots, Source};
use crawl_scheduler::Tick;
use crawl_weburl::{CanonicalUrl, Unusable, canonicalize};

use crate::config::Config;
use crate::item::{HostState, Judged, PageItem, Reading, millis};
use crate::traps::{Came, PRIORITY_ACTION, TrapRules};
use crate::usage;
use crate::visits::{DocumentState, Found, Past, Visits};

/// Order of requests within an origin: the /sitemap.xml that nobody named.
pub(crate) const PRIORITY_GUESS: u8 = 63;
/// Then sitemaps that were named.
const PRIORITY_SITEMAP: u8 = 64;
/// Then what they and pages name.
pub(crate) const PRIORITY_LINK: u8 = 128;

/// Indexes of sitemaps within indexes that are followed.
const MAX_SITEMAP_LEVELS: u8 = 5;

/// What reading needs to know of the configuration.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    pub(crate) agent: ProductToken,
    pub(crate) profile: Profile,
    pub(crate) limits: Limits,
    pub(crate) decode: DecodeLimits,
    pub(crate) link_rows: bool,
    pub(crate) max_redirects: u8,
    pub(crate) purpose: Option<Purpose>,
    pub(crate) traps: TrapRules,
    /// When pages may have been visited in an earlier round: what a sitemap says of their
    /// changes counts.
    pub(crate) is_revisit: bool,
}

impl Reader {
    pub(crate) fn new(config: &Config, visits: &Visits) -> Reader {
        Reader {
            agent: config.agent.clone(),
            profile: config.profile,
            limits: Limits::default(),
            decode: DecodeLimits::default(),
            link_rows: config.links,
            max_redirects: config.max_redirects,
            purpose: config.purpose,
            traps: config.traps,
            is_revisit: visits.round.number > 1,
        }
    }
}

/// What a page's content came to.
#[derive(Debug, Default)]
struct Content {
    title: Option<String>,
    charset: Option<&'static str>,
    /// What the site says about the page's use, METAs included; for a page that has them.
    usage: Option<Ledger>,
    error: Option<String>,
    links: Vec<Admission>,
    link_rows: Vec<LinkRow>,
    unusable: HashMap<&'static str, u64>,
    came: Came,
    said: Option<DocumentState>,
    modified: Vec<(CanonicalUrl, u32)>,
}

impl Reader {
    /// Reads one exchange. A panic in a parser costs this page its links, no more.
    pub(crate) fn read(&self, reading: Reading) -> PageItem {
        let Reading {
            lease,
            mut judged,
            exchange,
            scope,
            host,
        } = reading;
        let past = judged.past.take();
        let read = || self.content(&lease, &judged.rules, &exchange, &scope);
        let content = catch_unwind(AssertUnwindSafe(read));
        let content = content.unwrap_or_else(|_| Content {
            error: Some("reader_panicked".to_owned()),
            ..Content::default()
        });
        let joins_scope = match (lease.is_seed, redirect_target(&exchange)) {
            (true, Some(Ok(target))) => Some(target),
            _ => None,
        };
        let said = content
            .usage
            .unwrap_or_else(|| self.usage(&lease, &judged.rules, &exchange, &[]));
        let withheld = usage::withheld(&said, self.purpose);
        let (mut title, mut link_rows) = (content.title, content.link_rows);
        if withheld.is_some() {
            // They are the page's own words.
            title = None;
            link_rows.iter_mut().for_each(|row| row.text = None);
        }
        let row = PageRow {
            title,
            usage: usage::row(&said),
            withheld,
            error: content
                .error
                .or_else(|| exchange.truncated.map(|_| "body_truncated".to_owned())),
            ..row_of(&lease, judged, &exchange)
        };
        PageItem {
            outcome: Outcome::Fetched {
                status: exchange.status,
            },
            row,
            capture: None,
            charset: content.charset,
            links: content.links,
            link_rows,
            unusable: content.unusable,
            joins_scope,
            past,
            found: Found::Unknown,
            said: content.said,
            came: content.came,
            modified: content.modified,
            exchange: Some(exchange),
            lease,
            host,
        }
    }

    fn content(
        &self,
        lease: &Lease,
        rules: &Compiled,
        exchange: &Exchange,
        scope: &Scope,
    ) -> Content {
        if let Some(target) = redirect_target(exchange) {
            return self.redirect(lease, rules, target, scope);
        }
        let is_page = (200..300).contains(&exchange.status);
        let content_type = content_type(exchange);
        let content_type = content_type.as_deref();
        let is_sitemap = is_page && lease.kind == UrlKind::Sitemap;
        // What says that it is an image is neither decoded nor looked into.
        let came = match is_page && lease.kind == UrlKind::Page {
            true => Came::Other,
            false => Came::Nothing,
        };
        if !is_sitemap && content_type.is_some() && !crawl_extractor::is_html(content_type, b"") {
            return Content {
                came,
                ..Content::default()
            };
        }
        let decoded = crawl_fetcher::decode(&exchange.headers, &exchange.body, &self.decode);
        let sitemap = is_sitemap.then(|| self.sitemap(&decoded.bytes)).flatten();
        let mut content = if let Some(sitemap) = sitemap {
            self.entries(lease, rules, &sitemap, scope)
        } else if crawl_extractor::is_html(content_type, &decoded.bytes) {
            let page = crawl_extractor::read_html(&decoded.bytes, content_type, &self.limits);
            let usage = Some(self.usage(lease, rules, exchange, &page.metas));
            match is_page {
                true => Content {
                    usage,
                    came: self.gist(lease, &decoded.bytes),
                    ..self.html(lease, rules, exchange, page, scope)
                },
                // An error page names nothing to follow.
                false => Content {
                    usage,
                    ..Content::default()
                },
            }
        } else {
            Content {
                came,
                ..Content::default()
            }
        };
        content.error = decode_error(&decoded.end).filter(|_| is_page);
        content
    }

    /// What a page says, for comparing it with others of its host.
    fn gist(&self, lease: &Lease, octets: &[u8]) -> Came {
        let learns = self.traps.traps || self.traps.naming.learns();
        match learns && lease.kind == UrlKind::Page {
            true => Came::Text(Box::new(Gist::of_html(octets, &lease.url))),
            false => Came::Nothing,
        }
    }

    fn html(
        &self,
        lease: &Lease,
        rules: &Compiled,
        exchange: &Exchange,
        page: Page,
        scope: &Scope,
    ) -> Content {
        let directives = self.directives(exchange, &page.metas);
        let page_bar = directives.nofollow.map(page_refusal);
        let base = page.base_url(&lease.url);
        let mut links = Links::new(lease, scope, self.naming(rules));
        for link in &page.links {
            if link.kind != LinkKind::Page {
                continue;
            }
            let barred = page_bar
                .clone()
                .or_else(|| rel_refusal(link.rel, link.element));
            links.add(canonicalize(Some(&base), &link.href), barred, |from, to| {
                self.link_rows.then(|| LinkRow {
                    from: from.to_string(),
                    to: to.to_string(),
                    rel: (!link.rel.is_empty()).then(|| link.rel.to_string()),
                    text: link.text.clone(),
                })
            });
        }
        Content {
            title: page.title,
            charset: Some(page.charset),
            said: DocumentState::of(pairs(&page.metas)),
            ..links.into_content()
        }
    }

    /// What is said about the use of what came, by the site, the headers and the page.
    fn usage(
        &self,
        lease: &Lease,
        rules: &Compiled,
        exchange: &Exchange,
        metas: &[Meta],
    ) -> Ledger {
        let directives = self.directives(exchange, metas);
        let path = lease.url.path_and_query();
        let metas: Vec<_> = pairs(metas).collect();
        usage::ledger(rules, path, exchange, &directives, &metas)
    }

    fn directives(&self, exchange: &Exchange, metas: &[Meta]) -> PageDirectives {
        let headers = exchange.headers.get_all("x-robots-tag").iter();
        let headers: Vec<_> = headers
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        let headers = headers.iter().map(AsRef::as_ref);
        PageDirectives::read(headers, pairs(metas), &self.agent, self.profile)
    }

    /// The sitemap that a body is; nothing where it is none, such as a page that
    /// robots.txt calls one.
    fn sitemap(&self, decoded: &Bytes) -> Option<Sitemap> {
        let unpacked = crawl_fetcher::decode_gzip(decoded, &self.decode);
        let sitemap = crawl_extractor::read_sitemap(&unpacked.bytes, &self.limits);
        (sitemap.kind != SitemapKind::Unknown).then_some(sitemap)
    }

    fn naming<'a>(&self, rules: &'a Compiled) -> LinkNaming<'a> {
        LinkNaming {
            rules: self.traps,
            robots: &rules.robots,
        }
    }

    fn entries(
        &self,
        lease: &Lease,
        rules: &Compiled,
        sitemap: &Sitemap,
        scope: &Scope,
    ) -> Content {
        let mut links = Links::new(lease, scope, self.naming(rules));
        let mut too_deep = None;
        if sitemap.kind == SitemapKind::Index {
            links.kind = UrlKind::Sitemap;
            // The priority tells how many indexes led here.
            links.priority = lease.priority.clamp(PRIORITY_SITEMAP, PRIORITY_LINK) + 1;
            too_deep =
                (links.priority > PRIORITY_SITEMAP + MAX_SITEMAP_LEVELS).then(|| Exclusion {
                    rule: Some(format!(
                        "more than {MAX_SITEMAP_LEVELS} levels of sitemap indexes"
                    )),
                    ..Exclusion::of(Reason::Trap)
                });
        }
        // A sitemap stands beside its site's root, however deep the index that named it.
        links.depth = 1;
        let mut modified = Vec::new();
        for entry in &sitemap.entries {
            let url = canonicalize(Some(&lease.url), &entry.loc);
            if let (true, Ok(url), Some(lastmod)) = (self.is_revisit, &url, &entry.lastmod) {
                modified.extend(modified_at(lastmod).map(|at| (url.clone(), at)));
            }
            links.add(url, too_deep.clone(), |_, _| None);
        }
        Content {
            modified,
            ..links.into_content()
        }
    }

    fn redirect(
        &self,
        lease: &Lease,
        rules: &Compiled,
        target: Result<CanonicalUrl, Unusable>,
        scope: &Scope,
    ) -> Content {
        let came = target.clone().map_or(Came::Nothing, Came::Redirect);
        let mut links = Links::new(lease, scope, self.naming(rules));
        links.depth = lease.depth;
        links.kind = lease.kind;
        links.is_seed = lease.is_seed;
        links.redirects = lease.redirects.saturating_add(1);
        links.priority = lease.priority;
        let too_many = (links.redirects > self.max_redirects).then(|| Exclusion {
            reason: Reason::Redirects,
            rule: Some(format!("max-redirects {}", self.max_redirects)),
            line: None,
        });
        let error = target
            .as_ref()
            .err()
            .map(|why| format!("redirect_{}", why.name()));
        links.add(target, too_many, |_, _| None);
        Content {
            error,
            came,
            ..links.into_content()
        }
    }
}

/// By what a page's links are named.
struct LinkNaming<'a> {
    rules: TrapRules,
    /// The rules of the page's own origin.
    robots: &'a Robots,
}

/// The links of one page, each URL once.
struct Links<'a> {
    naming: LinkNaming<'a>,
    from: &'a Lease,
    scope: &'a Scope,
    depth: u32,
    kind: UrlKind,
    is_seed: bool,
    redirects: u8,
    priority: u8,
    /// Place in `found` of each URL.
    places: HashMap<CanonicalUrl, usize>,
    found: Vec<Admission>,
    rows: Vec<LinkRow>,
    unusable: HashMap<&'static str, u64>,
}

impl<'a> Links<'a> {
    fn new(from: &'a Lease, scope: &'a Scope, naming: LinkNaming<'a>) -> Links<'a> {
        Links {
            naming,
            from,
            scope,
            depth: from.depth.saturating_add(1),
            kind: UrlKind::Page,
            is_seed: false,
            redirects: 0,
            priority: PRIORITY_LINK,
            places: HashMap::new(),
            found: Vec::new(),
            rows: Vec::new(),
            unusable: HashMap::new(),
        }
    }

    fn add(
        &mut self,
        url: Result<CanonicalUrl, Unusable>,
        barred: Option<Exclusion>,
        row: impl FnOnce(&CanonicalUrl, &CanonicalUrl) -> Option<LinkRow>,
    ) {
        let url = match url {
            Ok(url) => url,
            Err(why) => return *self.unusable.entry(why.name()).or_default() += 1,
        };
        self.rows.extend(row(&self.from.url, &url));
        let (url, priority, barred) = self.named(url, barred);
        match self.places.get(&url) {
            // One link that may be followed outweighs others that may not.
            Some(&place) if barred.is_none() => {
                self.found[place].standing = self.standing(&url, None);
            }
            Some(_) => {}
            None => {
                self.places.insert(url.clone(), self.found.len());
                self.found.push(Admission {
                    standing: self.standing(&url, barred),
                    depth: self.depth,
                    redirects: self.redirects,
                    via: Some(self.from.url.clone()),
                    priority,
                    is_seed: self.is_seed,
                    kind: self.kind,
                    url,
                });
            }
        }
    }

    /// The URL that a link asks for, its place in the queue, and what bars it. A redirect insists
    /// on its target as it is, and a sitemap is what its name says.
    fn named(
        &self,
        url: CanonicalUrl,
        barred: Option<Exclusion>,
    ) -> (CanonicalUrl, u8, Option<Exclusion>) {
        if self.kind != UrlKind::Page || self.redirects > 0 {
            return (url, self.priority, barred);
        }
        let LinkNaming { rules, robots } = &self.naming;
        let is_own = url.as_url().query().is_some() && url.origin() == self.from.origin;
        let url = rules.named(url, is_own.then_some(*robots));
        match rules.action(&url) {
            Some(refusal) => (url, PRIORITY_ACTION, barred.or(refusal)),
            None => (url, self.priority, barred),
        }
    }

    fn standing(&self, url: &CanonicalUrl, barred: Option<Exclusion>) -> Standing {
        // A host's own sitemaps are read wherever they lie.
        let own_sitemap =
            self.kind == UrlKind::Sitemap && url.host_key() == self.from.url.host_key();
        match self.scope.judge(url, self.depth) {
            ScopeVerdict::Out { .. } if own_sitemap && self.scope.excluded(url).is_none() => {
                barred.map_or(Standing::Pending, Standing::Deferred)
            }
            ScopeVerdict::Out {
                reason: OutReason::Depth,
                rule,
            } => Standing::Deferred(Exclusion {
                rule: Some(rule),
                ..Exclusion::of(Reason::Depth)
            }),
            ScopeVerdict::Out { rule, .. } => Standing::Excluded(Exclusion {
                rule: Some(rule),
                ..Exclusion::of(Reason::Scope)
            }),
            ScopeVerdict::In => barred.map_or(Standing::Pending, Standing::Deferred),
        }
    }

    fn into_content(self) -> Content {
        Content {
            links: self.found,
            link_rows: self.rows,
            unusable: self.unusable,
            ..Content::default()
        }
    }
}

/// Where a redirect leads (RFC 9110 section 15.4): nothing where it is none.
pub(crate) fn redirect_target(exchange: &Exchange) -> Option<Result<CanonicalUrl, Unusable>> {
    if !matches!(exchange.status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = exchange.headers.get(http::header::LOCATION)?;
    let location = String::from_utf8_lossy(location.as_bytes());
    Some(canonicalize(Some(&exchange.url), &location))
}

fn pairs(metas: &[Meta]) -> impl Iterator<Item = (&str, &str)> {
    metas
        .iter()
        .map(|meta| (meta.name.as_str(), meta.content.as_str()))
}

/// A page's own word that its links are not to be followed.
fn page_refusal(source: Source) -> Exclusion {
    let reason = match source.place {
        Place::Header => Reason::Header,
        Place::Meta => Reason::Meta,
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

fn content_type(exchange: &Exchange) -> Option<Cow<'_, str>> {
    let value = exchange.headers.get(http::header::CONTENT_TYPE)?;
    Some(String::from_utf8_lossy(value.as_bytes()))
}

/// A sitemap's `lastmod`, in seconds since the Unix epoch. A day alone means its end: the page may
/// have changed until then.
fn modified_at(lastmod: &str) -> Option<u32> {
    let at = unix_seconds(lastmod)?;
    let is_day = lastmod.trim().len() == "2026-11-21".len();
    let at = at + if is_day { 86_400 } else { 0 };
    Some(u32::try_from(at.max(0)).unwrap_or(u32::MAX))
}

/// The name of what kept a body from being decoded whole.
fn decode_error(end: &DecodeEnd) -> Option<String> {
    match end {
        DecodeEnd::Whole => None,
        DecodeEnd::Truncated {
            limit: Limit::Octets,
            ..
        } => Some("decoded_too_large".to_owned()),
        DecodeEnd::Truncated {
            limit: Limit::Ratio,
            ..
        } => Some("decompression_bomb".to_owned()),
        DecodeEnd::Short => Some("encoding_cut_short".to_owned()),
        DecodeEnd::Broken { what } => Some(format!("encoding_broken: {what}")),
        DecodeEnd::UnknownCoding { name } => Some(format!("encoding_unknown: {name}")),
    }
}

/// A seed, as the frontier takes it.
pub(crate) fn seed_admission(url: &CanonicalUrl, scope: &Scope) -> Admission {
    let mut seed = Admission::seed(url.clone());
    if let ScopeVerdict::Out { rule, .. } = scope.judge(url, 0) {
        seed.standing = Standing::Excluded(Exclusion {
            rule: Some(rule),
            ..Exclusion::of(Reason::Scope)
        });
    }
    seed
}

/// A sitemap that robots.txt names.
pub(crate) fn sitemap_admission(url: CanonicalUrl, robots: &CanonicalUrl) -> Admission {
    Admission {
        priority: PRIORITY_SITEMAP,
        kind: UrlKind::Sitemap,
        ..Admission::link(url, 0, robots.clone())
    }
}

/// The sitemap at the place where one is looked for when none is named.
pub(crate) fn sitemap_guess(url: CanonicalUrl, robots: &CanonicalUrl) -> Admission {
    Admission {
        priority: PRIORITY_GUESS,
        ..sitemap_admission(url, robots)
    }
}

fn row_of(lease: &Lease, judged: Judged, exchange: &Exchange) -> PageRow {
    PageRow {
        status: Some(exchange.status),
        bytes: exchange.body.len() as u64,
        content_type: content_type(exchange).map(Cow::into_owned),
        ..row_without_answer(lease, judged, exchange.started, exchange.took())
    }
}

/// A row before anything is known of the answer.
fn row_without_answer(lease: &Lease, judged: Judged, started: Tick, took: Duration) -> PageRow {
    PageRow {
        url: lease.url.to_string(),
        status: None,
        fetched_at: Timestamp::from_micros(started.as_micros()),
        ms: millis(took),
        bytes: 0,
        content_type: None,
        digest: None,
        depth: lease.depth,
        via: lease.via.as_ref().map(ToString::to_string),
        title: None,
        robots: Some(judged.robots),
        usage: None,
        warc: None,
        withheld: None,
        round: 1,
        change: None,
        error: None,
    }
}

impl PageItem {
    /// A page that never answered, settled for good.
    pub(crate) fn failed(
        lease: Lease,
        mut judged: Judged,
        failure: &Failure,
        host: HostState,
    ) -> PageItem {
        let past = judged.past.take();
        let took = failure.ended.since(failure.started);
        let row = PageRow {
            error: Some(format!("{}: {}", failure.name(), failure.detail)),
            ..row_without_answer(&lease, judged, failure.started, took)
        };
        PageItem::without_answer(lease, past, row, failure.name(), host)
    }

    /// A page that is not asked for any more, settled for good.
    pub(crate) fn given_up(
        lease: Lease,
        mut judged: Judged,
        now: Tick,
        why: &str,
        host: HostState,
    ) -> PageItem {
        let past = judged.past.take();
        let row = PageRow {
            error: Some(why.to_owned()),
            ..row_without_answer(&lease, judged, now, Duration::ZERO)
        };
        PageItem::without_answer(lease, past, row, why, host)
    }

    fn without_answer(
        lease: Lease,
        past: Option<Box<Past>>,
        row: PageRow,
        why: &str,
        host: HostState,
    ) -> PageItem {
        PageItem {
            outcome: Outcome::Failed {
                why: why.to_owned(),
            },
            row,
            exchange: None,
            capture: None,
            charset: None,
            links: Vec::new(),
            link_rows: Vec::new(),
            unusable: HashMap::new(),
            joins_scope: None,
            past,
            found: Found::Unknown,
            said: None,
            modified: Vec::new(),
            came: Came::Nothing,
            lease,
            host,
        }
    }
}
