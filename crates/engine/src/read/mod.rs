//! From an exchange to a settled page: records, row, links. Runs on reader threads.

pub(crate) mod archive_encoder;
mod documents;
pub(crate) mod links;
pub(crate) mod pool;
mod sitemap_budget;

use std::borrow::Cow;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crawl_archive::rows::PageRow;
use crawl_archive::{DigestAlgorithm, Timestamp};
use crawl_extractor::{Document, Limits, Meta, may_be_read, read_html, what_is};
use crawl_fetcher::robots::CompiledRobots;
use crawl_fetcher::{
    BodyMemory, DecodeEnd, DecodeLimit, DecodeLimits, Decoded, Exchange, Failure, Interstitial,
    Truncation, decode, interstitial,
};
use crawl_frontier::{Lease, Outcome, UrlKind};
use crawl_index::IndexEntry;
use crawl_policy::scope::Scope;
use crawl_policy::usage::{Ledger, UsagePurpose};
use crawl_policy::{PageDirectives, ProductToken, Profile};
use crawl_scheduler::Tick;
use crawl_weburl::{CanonicalUrl, Unusable, canonicalize};
use http::header::CONTENT_ENCODING;

use crate::config::Config;
use crate::crawl_loop::trap_gate::{TrapRules, TrapSignal};
use crate::index::entry::{entry, read_both, seconds_of};
use crate::messages::{FetchContext, HostState, Reading, SettledPage, millis};
use crate::read::documents::Content;
use crate::read::links::{LinkPolicy, Links, page_refusal};
use crate::read::sitemap_budget::SitemapBudget;
use crate::revisit::visit::{PreviousVisit, RevisitSchedule, VisitResult};
use crate::secrets::{redact_row, redacted_entry};
use crate::usage;

/// The error of a page that a parser panicked over.
pub(crate) const PANICKED: &str = "reader_panicked";

/// The error of a body whose content coding does not come to its end.
const CUT_SHORT: &str = "encoding_cut_short";

/// What reading needs to know of the configuration.
#[derive(Clone, Debug)]
pub(crate) struct PageReader {
    pub(crate) agent: ProductToken,
    pub(crate) profile: Profile,
    pub(crate) limits: Limits,
    pub(crate) decode: DecodeLimits,
    pub(crate) follows: LinkPolicy,
    pub(crate) max_redirects: u8,
    pub(crate) purpose: Option<UsagePurpose>,
    /// Whether pages go into a search index.
    pub(crate) index: bool,
    pub(crate) traps: TrapRules,
    pub(crate) sitemaps: SitemapBudget,
    /// When this round began, in seconds since the Unix epoch, where pages may have been visited
    /// in an earlier one: what a sitemap says of their changes counts.
    pub(crate) revisit: Option<u32>,
}

impl PageReader {
    pub(crate) fn new(config: &Config, visits: &RevisitSchedule) -> PageReader {
        PageReader {
            agent: config.agent.clone(),
            profile: config.profile,
            limits: Limits::default(),
            decode: DecodeLimits::default(),
            follows: LinkPolicy::new(config),
            max_redirects: config.max_redirects,
            purpose: config.purpose,
            index: config.index,
            traps: config.traps,
            sitemaps: SitemapBudget::new(config.max_sitemap_urls),
            revisit: (visits.round.number > 1).then_some(visits.round.began),
        }
    }
}

impl PageReader {
    /// Reads one exchange. A panic in a parser costs this page its links, no more.
    pub(crate) fn read(&self, reading: Reading) -> SettledPage {
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
            error: Some(PANICKED.to_owned()),
            ..Content::default()
        });
        let joins_scope = match (lease.is_seed, redirect_target(&exchange)) {
            (true, Some(Ok(target))) => Some(target),
            _ => None,
        };
        let said = content.usage.unwrap_or_else(|| {
            let directives = self.directives(&exchange, &[]);
            self.usage(&judged.rules, &exchange, &lease, &directives, &[])
        });
        let withheld = usage::withheld(&said, self.purpose);
        let (mut title, mut link_rows) = (content.title, content.link_rows);
        if withheld.is_some() {
            // They are the page's own words.
            title = None;
            link_rows.iter_mut().for_each(|row| row.text = None);
        }
        let passing = content
            .error
            .as_deref()
            .is_some_and(|error| error == PANICKED || Interstitial::named(error).is_some());
        // What broke off says less than what was there before.
        let broke_off = exchange
            .truncated
            .is_some_and(|cut| cut != Truncation::Length);
        let entry = content.entry.filter(|_| !(broke_off && past.is_some()));
        let entry = entry.or_else(|| match passing || broke_off {
            true => None,
            false => self.without_page(&lease, &exchange, &said),
        });
        let mut row = PageRow {
            title,
            indexed: entry.as_ref().map(|entry| match entry {
                IndexEntry::Put(_) => "yes".to_owned(),
                IndexEntry::Drop { why, .. } => why.clone(),
            }),
            redirect: match &content.signal {
                TrapSignal::Redirect(target) => Some(target.to_string()),
                _ => None,
            },
            canonical: content.canonical.map(|url| url.to_string()),
            usage: usage::row(&said),
            withheld,
            error: row_error(content.error, exchange.truncated),
            ..row_of(&lease, judged, &exchange)
        };
        redact_row(&self.follows.secrets, &mut row);
        SettledPage {
            outcome: Outcome::Fetched {
                status: exchange.status,
            },
            row,
            decoded_digest: content.decoded_digest,
            capture: None,
            charset: content.charset,
            entry,
            entry_pass: None,
            links: content.links,
            links_pass: None,
            link_rows,
            unusable: content.unusable,
            joins_scope,
            past,
            found: VisitResult::Unknown,
            signal: content.signal,
            said: content.said,
            is_list: content.is_list,
            modified: content.modified,
            room: exchange.room.clone(),
            exchange: Some(exchange),
            lease,
            host,
        }
    }

    fn content(
        &self,
        lease: &Lease,
        rules: &CompiledRobots,
        exchange: &Exchange,
        scope: &Scope,
    ) -> Content {
        if let Some(target) = redirect_target(exchange) {
            return self.redirect(lease, target, scope);
        }
        let is_page = (200..300).contains(&exchange.status);
        let mut in_place = interstitial(exchange.status, &exchange.headers, b"");
        if in_place.is_some() {
            return Content::with_error(in_place.map(Interstitial::name));
        }
        let content_type = content_type(exchange);
        let content_type = content_type.as_deref();
        let is_sitemap = is_page && lease.kind == UrlKind::Sitemap;
        // What says that it is an image is neither decoded nor looked into.
        let decoded = (is_sitemap || may_be_read(content_type))
            .then(|| decode(&exchange.headers, &exchange.body, &self.decode));
        let bytes = decoded.as_ref().map_or(&[][..], |decoded| &decoded.bytes);
        let document = match decoded {
            None => Document::Media,
            Some(_) => what_is(content_type, bytes),
        };
        let mut links = Links::new(lease, scope, &self.follows, Some(&rules.robots));
        let mut content = Content::default();
        let sitemap = decoded.as_ref().filter(|_| is_sitemap);
        let sitemap = sitemap.and_then(|decoded| self.sitemap(&decoded.bytes, content_type));
        match (sitemap, document) {
            (Some(sitemap), _) => content = self.entries(&mut links, &sitemap),
            (None, Document::Html) => {
                in_place = interstitial(exchange.status, &exchange.headers, bytes);
                if in_place.is_some_and(|found| !found.has_own_links()) {
                    return Content::with_error(in_place.map(Interstitial::name));
                }
                let may_index = self.index && is_page && lease.kind == UrlKind::Page;
                let at = seconds_of(exchange.started);
                let (page, text) = match may_index {
                    true => {
                        let headers = &exchange.headers;
                        let limits = &self.limits;
                        let (page, text) = read_both(bytes, content_type, headers, at, limits);
                        (page, Some(text))
                    }
                    false => (read_html(bytes, content_type, &self.limits), None),
                };
                let directives = self.directives(exchange, &page.metas);
                let usage = self.usage(rules, exchange, lease, &directives, &page.metas);
                let refused = self.search_refused(&usage);
                let entry = text.filter(|_| in_place.is_none()).map(|text| {
                    let read = (&page, &text);
                    let headers = &exchange.headers;
                    let entry = entry(
                        &lease.url,
                        at,
                        headers,
                        read,
                        &directives,
                        refused.as_deref(),
                    );
                    redacted_entry(&self.follows.secrets, entry)
                });
                // An error page names nothing to follow.
                if is_page {
                    content = self.html(&mut links, &directives, page);
                    content.signal = self.gist(lease, bytes);
                }
                content.entry = entry;
                content.usage = Some(usage);
            }
            (None, Document::Feed) if is_page => {
                content = self.feed(&mut links, bytes, content_type);
            }
            (None, Document::Css) if is_page => {
                links.of_style_sheet(bytes, content_type, &self.limits);
            }
            _ if is_page && lease.kind == UrlKind::Page => content.signal = TrapSignal::Other,
            _ => {}
        }
        if is_page {
            content.decoded_digest = self.decoded_digest(exchange, decoded.as_ref());
            let broken = decoded.and_then(|decoded| decode_error(&decoded.end));
            content.error = broken.or(content.error);
            let bar = content.bar.take();
            let said = || self.directives(exchange, &[]).nofollow.map(page_refusal);
            links.of_headers(exchange, &self.limits, || bar.or_else(said));
        }
        let in_place = in_place.map(|found| found.name().to_owned());
        content.error = content.error.or(in_place);
        links.finish(content)
    }

    /// The digest of a body without its codings, which servers may write otherwise each time: a
    /// gzip head holds a time, and some put random bytes into it.
    fn decoded_digest(&self, exchange: &Exchange, decoded: Option<&Decoded>) -> Option<String> {
        if !exchange.headers.contains_key(CONTENT_ENCODING) {
            return None;
        }
        let image = || decode(&exchange.headers, &exchange.body, &self.decode);
        let decoded = decoded.map_or_else(|| Cow::Owned(image()), Cow::Borrowed);
        let is_whole = decoded.end == DecodeEnd::Whole;
        is_whole.then(|| DigestAlgorithm::default().of(&[&decoded.bytes]))
    }

    /// What is said about the use of what came, by the site, the headers and the page.
    fn usage(
        &self,
        rules: &CompiledRobots,
        exchange: &Exchange,
        lease: &Lease,
        directives: &PageDirectives,
        metas: &[Meta],
    ) -> Ledger {
        let path = lease.url.path_and_query();
        let metas: Vec<_> = pairs(metas).collect();
        usage::ledger(rules, path, exchange, directives, &metas)
    }

    pub(crate) fn directives(&self, exchange: &Exchange, metas: &[Meta]) -> PageDirectives {
        let headers = exchange.headers.get_all("x-robots-tag").iter();
        let headers: Vec<_> = headers
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        let headers = headers.iter().map(AsRef::as_ref);
        PageDirectives::read(headers, pairs(metas), &self.agent, self.profile)
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

pub(crate) fn pairs(metas: &[Meta]) -> impl Iterator<Item = (&str, &str)> {
    metas
        .iter()
        .map(|meta| (meta.name.as_str(), meta.content.as_str()))
}

fn content_type(exchange: &Exchange) -> Option<Cow<'_, str>> {
    let value = exchange.headers.get(http::header::CONTENT_TYPE)?;
    Some(String::from_utf8_lossy(value.as_bytes()))
}

/// What a row says went wrong. A coding that ends too early is no fault of its own where the
/// body was cut.
fn row_error(read: Option<String>, cut: Option<Truncation>) -> Option<String> {
    let cut = cut.map(|cut| cut.name().to_owned());
    match read {
        Some(why) if why != CUT_SHORT || cut.is_none() => Some(why),
        _ => cut,
    }
}

/// The name of what kept a body from being decoded whole.
fn decode_error(end: &DecodeEnd) -> Option<String> {
    match end {
        DecodeEnd::Whole => None,
        DecodeEnd::Truncated {
            limit: DecodeLimit::Bytes,
            ..
        } => Some("decoded_too_large".to_owned()),
        DecodeEnd::Truncated {
            limit: DecodeLimit::Ratio,
            ..
        } => Some("decompression_bomb".to_owned()),
        DecodeEnd::Short => Some(CUT_SHORT.to_owned()),
        DecodeEnd::Broken { what } => Some(format!("encoding_broken: {what}")),
        DecodeEnd::UnknownCoding { name } => Some(format!("encoding_unknown: {name}")),
    }
}

fn row_of(lease: &Lease, judged: FetchContext, exchange: &Exchange) -> PageRow {
    PageRow {
        status: Some(exchange.status),
        bytes: exchange.body.len() as u64,
        content_type: content_type(exchange).map(Cow::into_owned),
        ..row_without_answer(lease, judged, exchange.started, exchange.took())
    }
}

/// A row before anything is known of the answer.
fn row_without_answer(
    lease: &Lease,
    judged: FetchContext,
    started: Tick,
    took: Duration,
) -> PageRow {
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
        redirect: None,
        title: None,
        canonical: None,
        indexed: None,
        robots: Some(judged.robots),
        usage: None,
        warc: None,
        withheld: None,
        round: 1,
        change: None,
        error: None,
    }
}

impl SettledPage {
    /// A page that never answered, settled for good.
    pub(crate) fn failed(
        lease: Lease,
        mut judged: FetchContext,
        failure: &Failure,
        host: HostState,
    ) -> SettledPage {
        let past = judged.past.take();
        let took = failure.ended.since(failure.started);
        let row = PageRow {
            error: Some(format!("{}: {}", failure.name(), failure.detail)),
            ..row_without_answer(&lease, judged, failure.started, took)
        };
        SettledPage::without_answer(lease, past, row, failure.name(), host)
    }

    /// A page that is not asked for any more, settled for good.
    pub(crate) fn given_up(
        lease: Lease,
        mut judged: FetchContext,
        now: Tick,
        why: &str,
        host: HostState,
    ) -> SettledPage {
        let past = judged.past.take();
        let row = PageRow {
            error: Some(why.to_owned()),
            ..row_without_answer(&lease, judged, now, Duration::ZERO)
        };
        SettledPage::without_answer(lease, past, row, why, host)
    }

    fn without_answer(
        lease: Lease,
        past: Option<Box<PreviousVisit>>,
        row: PageRow,
        why: &str,
        host: HostState,
    ) -> SettledPage {
        SettledPage {
            outcome: Outcome::Failed {
                why: why.to_owned(),
            },
            row,
            signal: TrapSignal::Nothing,
            exchange: None,
            room: BodyMemory::default(),
            decoded_digest: None,
            capture: None,
            charset: None,
            entry: None,
            entry_pass: None,
            links: Vec::new(),
            links_pass: None,
            link_rows: Vec::new(),
            unusable: HashMap::new(),
            joins_scope: None,
            past,
            found: VisitResult::Unknown,
            said: None,
            is_list: false,
            modified: Vec::new(),
            lease,
            host,
        }
    }
}
