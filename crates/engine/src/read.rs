//! From an exchange to a settled page: records, row, links. Runs on reader threads.

use std::borrow::Cow;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use crawl_archive::Timestamp;
use crawl_archive::rows::{LinkRow, PageRow, RobotsVerdict};
use crawl_extractor::{Element, Limits, LinkKind, Page, Rel, SitemapKind};
use crawl_fetcher::{DecodeEnd, DecodeLimits, Exchange, Failure, Limit};
use crawl_frontier::{Admission, Exclusion, Lease, Outcome, Reason, Standing, UrlKind};
use crawl_policy::scope::{OutReason, Scope, ScopeVerdict};
use crawl_policy::{PageDirectives, ProductToken, Profile};
use crawl_weburl::{CanonicalUrl, Unusable, canonicalize};

use crate::config::Config;
use crate::item::{HostState, PageItem, Reading, millis};

/// Order of a sitemap's request among the URLs of its origin, and of what it names.
const PRIORITY_SEED: u8 = 0;
const PRIORITY_SITEMAP: u8 = 64;
const PRIORITY_LINK: u8 = 128;

/// What reading needs to know of the configuration.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    pub(crate) agent: ProductToken,
    pub(crate) profile: Profile,
    pub(crate) limits: Limits,
    pub(crate) decode: DecodeLimits,
    pub(crate) link_rows: bool,
    pub(crate) max_redirects: u8,
}

impl Reader {
    pub(crate) fn new(config: &Config) -> Reader {
        Reader {
            agent: config.agent.clone(),
            profile: config.profile,
            limits: Limits::default(),
            decode: DecodeLimits::default(),
            link_rows: config.links,
            max_redirects: config.max_redirects,
        }
    }
}

/// What a page's content came to.
#[derive(Debug, Default)]
struct Content {
    title: Option<String>,
    charset: Option<&'static str>,
    error: Option<String>,
    links: Vec<Admission>,
    link_rows: Vec<LinkRow>,
    unusable: HashMap<&'static str, u64>,
}

impl Reader {
    /// Reads one exchange. A panic in a parser costs this page its links, no more.
    pub(crate) fn read(&self, reading: Reading) -> PageItem {
        let Reading {
            lease,
            robots,
            exchange,
            scope,
            host,
        } = reading;
        let content = catch_unwind(AssertUnwindSafe(|| self.content(&lease, &exchange, &scope)));
        let content = content.unwrap_or_else(|_| Content {
            error: Some("reader_panicked".to_owned()),
            ..Content::default()
        });
        let joins_scope = match (lease.is_seed, redirect_target(&exchange)) {
            (true, Some(Ok(target))) => Some(target),
            _ => None,
        };
        let row = PageRow {
            title: content.title,
            error: content
                .error
                .or_else(|| exchange.truncated.map(|_| "body_truncated".to_owned())),
            ..row_of(&lease, robots, &exchange)
        };
        PageItem {
            outcome: Outcome::Fetched {
                status: exchange.status,
            },
            row,
            capture: None,
            charset: content.charset,
            links: content.links,
            link_rows: content.link_rows,
            unusable: content.unusable,
            joins_scope,
            exchange: Some(exchange),
            lease,
            host,
        }
    }

    fn content(&self, lease: &Lease, exchange: &Exchange, scope: &Scope) -> Content {
        if let Some(target) = redirect_target(exchange) {
            return self.redirect(lease, target, scope);
        }
        if !(200..300).contains(&exchange.status) {
            return Content::default();
        }
        let content_type = content_type(exchange);
        let content_type = content_type.as_deref();
        let is_sitemap = lease.kind == UrlKind::Sitemap;
        // What says that it is an image is neither decoded nor looked into.
        if !is_sitemap && content_type.is_some() && !crawl_extractor::is_html(content_type, b"") {
            return Content::default();
        }
        let decoded = crawl_fetcher::decode(&exchange.headers, &exchange.body, &self.decode);
        let mut content = if is_sitemap {
            self.sitemap(lease, &decoded.bytes, scope)
        } else if crawl_extractor::is_html(content_type, &decoded.bytes) {
            self.html(lease, exchange, content_type, &decoded.bytes, scope)
        } else {
            Content::default()
        };
        content.error = decode_error(&decoded.end);
        content
    }

    fn html(
        &self,
        lease: &Lease,
        exchange: &Exchange,
        content_type: Option<&str>,
        html: &[u8],
        scope: &Scope,
    ) -> Content {
        let page = crawl_extractor::read_html(html, content_type, &self.limits);
        let nofollow = self
            .directives(exchange, &page)
            .nofollow
            .map(|source| source.text);
        let base = page.base_url(&lease.url);
        let mut links = Links::new(lease, scope);
        for link in &page.links {
            if link.kind != LinkKind::Page {
                continue;
            }
            let rule = nofollow
                .clone()
                .or_else(|| rel_refusal(link.rel, link.element));
            let barred = rule.map(|rule| Exclusion {
                rule: Some(rule),
                ..Exclusion::of(Reason::Nofollow)
            });
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
            ..links.into_content()
        }
    }

    fn directives(&self, exchange: &Exchange, page: &Page) -> PageDirectives {
        let headers = exchange.headers.get_all("x-robots-tag").iter();
        let headers: Vec<_> = headers
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        let headers = headers.iter().map(AsRef::as_ref);
        PageDirectives::read(headers, page.meta_pairs(), &self.agent, self.profile)
    }

    fn sitemap(&self, lease: &Lease, decoded: &Bytes, scope: &Scope) -> Content {
        let unpacked = crawl_fetcher::decode_gzip(decoded, &self.decode);
        let sitemap = crawl_extractor::read_sitemap(&unpacked.bytes, &self.limits);
        let mut links = Links::new(lease, scope);
        if sitemap.kind == SitemapKind::Index {
            links.kind = UrlKind::Sitemap;
            links.priority = PRIORITY_SITEMAP;
        }
        // A sitemap stands beside its site's root, however deep the index that named it.
        links.depth = 1;
        for entry in &sitemap.entries {
            links.add(canonicalize(Some(&lease.url), &entry.loc), None, |_, _| {
                None
            });
        }
        links.into_content()
    }

    fn redirect(
        &self,
        lease: &Lease,
        target: Result<CanonicalUrl, Unusable>,
        scope: &Scope,
    ) -> Content {
        let mut links = Links::new(lease, scope);
        links.depth = lease.depth;
        links.kind = lease.kind;
        links.is_seed = lease.is_seed;
        links.redirects = lease.redirects.saturating_add(1);
        links.priority = if lease.is_seed {
            PRIORITY_SEED
        } else {
            PRIORITY_LINK
        };
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
            ..links.into_content()
        }
    }
}

/// The links of one page, each URL once.
struct Links<'a> {
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
    fn new(from: &'a Lease, scope: &'a Scope) -> Links<'a> {
        Links {
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
                    priority: self.priority,
                    is_seed: self.is_seed,
                    kind: self.kind,
                    url,
                });
            }
        }
    }

    fn standing(&self, url: &CanonicalUrl, barred: Option<Exclusion>) -> Standing {
        match self.scope.judge(url, self.depth) {
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

/// The `rel` of a link that says not to follow it. On a `link` element the words speak of
/// something else.
fn rel_refusal(rel: Rel, element: Element) -> Option<String> {
    let refused = element != Element::Link && rel.contains(Rel::NOFOLLOW);
    refused.then(|| format!("rel={rel}"))
}

fn content_type(exchange: &Exchange) -> Option<Cow<'_, str>> {
    let value = exchange.headers.get(http::header::CONTENT_TYPE)?;
    Some(String::from_utf8_lossy(value.as_bytes()))
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
pub(crate) fn seed_admission(url: &CanonicalUrl) -> Admission {
    Admission::seed(url.clone())
}

/// A sitemap that robots.txt names, or the one at the place where they are looked for.
pub(crate) fn sitemap_admission(url: CanonicalUrl, robots: &CanonicalUrl) -> Admission {
    Admission {
        priority: PRIORITY_SITEMAP,
        kind: UrlKind::Sitemap,
        ..Admission::link(url, 0, robots.clone())
    }
}

fn row_of(lease: &Lease, robots: RobotsVerdict, exchange: &Exchange) -> PageRow {
    PageRow {
        url: lease.url.to_string(),
        status: Some(exchange.status),
        fetched_at: Timestamp::from_micros(exchange.started.as_micros()),
        ms: millis(exchange.took()),
        bytes: exchange.body.len() as u64,
        content_type: content_type(exchange).map(Cow::into_owned),
        digest: None,
        depth: lease.depth,
        via: lease.via.as_ref().map(ToString::to_string),
        title: None,
        robots: Some(robots),
        warc: None,
        error: None,
    }
}

impl PageItem {
    /// A page that never answered, settled for good.
    pub(crate) fn failed(
        lease: Lease,
        robots: RobotsVerdict,
        failure: &Failure,
        host: HostState,
    ) -> PageItem {
        let row = PageRow {
            url: lease.url.to_string(),
            status: None,
            fetched_at: Timestamp::from_micros(failure.started.as_micros()),
            ms: millis(failure.ended.since(failure.started)),
            bytes: 0,
            content_type: None,
            digest: None,
            depth: lease.depth,
            via: lease.via.as_ref().map(ToString::to_string),
            title: None,
            robots: Some(robots),
            warc: None,
            error: Some(format!("{}: {}", failure.name(), failure.detail)),
        };
        PageItem {
            outcome: Outcome::Failed {
                why: failure.name().to_owned(),
            },
            row,
            exchange: None,
            capture: None,
            charset: None,
            links: Vec::new(),
            link_rows: Vec::new(),
            unusable: HashMap::new(),
            joins_scope: None,
            lease,
            host,
        }
    }
}
