//! What each kind of document comes to. Runs on reader threads.

use std::collections::HashMap;

use bytes::Bytes;
use crawl_archive::rows::{LinkRow, TOO_MANY_REDIRECTS};
use crawl_extractor::{
    ChangeFreq, Page, Rel, Sitemap, SitemapEntry, SitemapKind, read_feed, read_sitemap,
};
use crawl_fetcher::decode_gzip;
use crawl_frontier::{Admission, Exclusion, Lease, Reason, UrlKind};
use crawl_index::IndexEntry;
use crawl_policy::PageDirectives;
use crawl_policy::date::unix_seconds;
use crawl_policy::scope::Scope;
use crawl_policy::traps::PageFingerprint;
use crawl_policy::usage::Ledger;
use crawl_weburl::{CanonicalUrl, Unusable, canonicalize};

use crate::crawl_loop::trap_gate::TrapSignal;
use crate::read::links::{Discovery, Links, PRIORITY_LINK, PRIORITY_SITEMAP, page_refusal};
use crate::read::sitemap_budget::SITEMAP_LIMIT;
use crate::read::{PageReader, pairs};
use crate::revisit::visit::DocumentState;
use crate::secrets::REDIRECT_SECRET;

/// Indexes of sitemaps within indexes that are followed.
const MAX_SITEMAP_LEVELS: u8 = 5;

/// How far a sitemap's `priority` moves its entries, up and down.
const SITEMAP_REACH: f32 = 32.0;

/// What a document's content came to.
#[derive(Debug, Default)]
pub(crate) struct Content {
    pub(crate) title: Option<String>,
    /// What the search index is told of it.
    pub(crate) entry: Option<IndexEntry>,
    /// What the page calls its own URL, where that is another.
    pub(crate) canonical: Option<CanonicalUrl>,
    pub(crate) charset: Option<&'static str>,
    /// What the site says about the page's use, METAs included; for a page that has them.
    pub(crate) usage: Option<Ledger>,
    /// What the page says of all its links.
    pub(crate) bar: Option<Exclusion>,
    pub(crate) error: Option<String>,
    /// The labelled digest of the body without its content coding; nothing where it has none, or
    /// where that can't be undone.
    pub(crate) decoded_digest: Option<String>,
    pub(crate) links: Vec<Admission>,
    pub(crate) link_rows: Vec<LinkRow>,
    pub(crate) unusable: HashMap<&'static str, u64>,
    pub(crate) signal: TrapSignal,
    pub(crate) said: Option<DocumentState>,
    /// It lists other pages and their changes.
    pub(crate) is_list: bool,
    pub(crate) modified: Vec<(CanonicalUrl, u32)>,
}

impl Content {
    /// Nothing, and why.
    pub(crate) fn with_error(why: Option<&str>) -> Content {
        Content {
            error: why.map(str::to_owned),
            ..Content::default()
        }
    }
}

impl PageReader {
    pub(crate) fn html(
        &self,
        links: &mut Links<'_>,
        directives: &PageDirectives,
        page: Page,
    ) -> Content {
        let bar = directives.nofollow.clone().map(page_refusal);
        let base = page.base_url(&links.from().url);
        for link in &page.links {
            links.link(&base, link, bar.as_ref());
        }
        let mut canonical = page.links.iter();
        let canonical = canonical.find(|link| link.rel.contains(Rel::CANONICAL));
        let canonical = canonical.and_then(|link| canonicalize(Some(&base), &link.href).ok());
        Content {
            canonical: canonical.filter(|url| *url != links.from().url),
            title: page.title,
            charset: Some(page.charset),
            said: DocumentState::of(pairs(&page.metas)),
            bar,
            ..Content::default()
        }
    }

    /// The entries of a feed are no further away than the feed itself.
    pub(crate) fn feed(
        &self,
        links: &mut Links<'_>,
        bytes: &[u8],
        content_type: Option<&str>,
    ) -> Content {
        let feed = read_feed(bytes, content_type, &self.limits);
        let from = links.from();
        let page = Discovery {
            depth: from.depth.max(1),
            ..Discovery::link(from)
        };
        let mut modified = Vec::new();
        for entry in &feed.entries {
            if let Some(url) = entry.url.as_ref().map(|url| url.resolve(&from.url)) {
                let changed = entry.updated.as_deref().or(entry.published.as_deref());
                self.note_modified(&mut modified, &url, changed);
                links.add(page, url, None);
            }
            if links.wants_resources() {
                for file in &entry.enclosures {
                    links.add(Discovery::resource(from), file.resolve(&from.url), None);
                }
            }
        }
        for url in feed.home.iter().chain(&feed.next) {
            links.add(page, url.resolve(&from.url), None);
        }
        Content {
            title: feed.title,
            // It tells what is new: it is read in each round.
            said: Some(DocumentState::Dynamic),
            is_list: true,
            modified,
            ..Content::default()
        }
    }

    /// The sitemap that a body is; nothing where it is none, such as a page that
    /// robots.txt calls one.
    pub(crate) fn sitemap(&self, body: &Bytes, content_type: Option<&str>) -> Option<Sitemap> {
        let unpacked = decode_gzip(body, &self.decode);
        let sitemap = read_sitemap(&unpacked.bytes, content_type, &self.limits);
        (sitemap.kind != SitemapKind::Unknown).then_some(sitemap)
    }

    pub(crate) fn entries(&self, links: &mut Links<'_>, sitemap: &Sitemap) -> Content {
        let from = links.from();
        // A sitemap stands beside its site's root, however deep the index that named it.
        let mut way = Discovery {
            depth: 1,
            ..Discovery::link(from)
        };
        let mut too_deep = None;
        if sitemap.kind == SitemapKind::Index {
            way.kind = UrlKind::Sitemap;
            // The priority tells how many indexes led here.
            way.priority = from.priority.clamp(PRIORITY_SITEMAP, PRIORITY_LINK) + 1;
            too_deep = (way.priority > PRIORITY_SITEMAP + MAX_SITEMAP_LEVELS).then(|| Exclusion {
                rule: Some(format!(
                    "more than {MAX_SITEMAP_LEVELS} levels of sitemap indexes"
                )),
                ..Exclusion::of(Reason::Trap)
            });
        }
        let mut modified = Vec::new();
        let weights = sitemap.entries.iter().map(|entry| urls_of(links, entry));
        let wanted = weights.sum();
        let granted = self.sitemaps.take(&from.url.host_key(), wanted);
        let mut left = granted;
        for entry in &sitemap.entries {
            let Some(rest) = left.checked_sub(urls_of(links, entry)) else {
                break;
            };
            left = rest;
            let url = canonicalize(Some(&from.url), &entry.loc);
            match (&entry.lastmod, entry.changefreq) {
                (None, Some(often)) => self.note_frequency(&mut modified, &url, often),
                (lastmod, _) => self.note_modified(&mut modified, &url, lastmod.as_deref()),
            }
            let way = match way.kind {
                UrlKind::Sitemap => way,
                _ => Discovery {
                    priority: priority_of(entry),
                    ..way
                },
            };
            links.add(way, url, too_deep.clone());
            if way.kind == UrlKind::Page {
                beside(links, way, entry);
            }
        }
        let left_out = wanted - granted + left;
        links.leave_out(SITEMAP_LIMIT, left_out);
        Content {
            error: (left_out > 0).then(|| SITEMAP_LIMIT.to_owned()),
            is_list: true,
            modified,
            ..Content::default()
        }
    }

    pub(crate) fn redirect(
        &self,
        lease: &Lease,
        target: Result<CanonicalUrl, Unusable>,
        scope: &Scope,
    ) -> Content {
        let way = Discovery {
            kind: lease.kind,
            depth: lease.depth,
            redirects: lease.redirects.saturating_add(1),
            priority: lease.priority,
            is_seed: lease.is_seed,
        };
        let too_many = (way.redirects > self.max_redirects).then(|| Exclusion {
            reason: Reason::Redirects,
            rule: Some(format!("max-redirects {}", self.max_redirects)),
            line: None,
        });
        let error = match &target {
            Err(why) => Some(format!("redirect_{}", why.name())),
            Ok(url) if self.follows.secrets.are_in_url(url) => Some(REDIRECT_SECRET.to_owned()),
            Ok(_) => too_many.as_ref().map(|_| TOO_MANY_REDIRECTS.to_owned()),
        };
        let signal = match &target {
            Ok(url) if error.as_deref() != Some(REDIRECT_SECRET) => {
                TrapSignal::Redirect(url.clone())
            }
            _ => TrapSignal::Nothing,
        };
        let mut links = Links::new(lease, scope, &self.follows, None);
        links.add(way, target, too_many);
        links.finish(Content {
            error,
            signal,
            ..Content::default()
        })
    }

    /// What a page says, for comparing it with others of its host.
    pub(crate) fn gist(&self, lease: &Lease, bytes: &[u8]) -> TrapSignal {
        match self.traps.watches() && lease.kind == UrlKind::Page {
            true => TrapSignal::Text(Box::new(PageFingerprint::of_html(bytes, &lease.url))),
            false => TrapSignal::Nothing,
        }
    }

    /// What a document says of when another changed; of use where that was visited before.
    fn note_modified(
        &self,
        modified: &mut Vec<(CanonicalUrl, u32)>,
        url: &Result<CanonicalUrl, Unusable>,
        at: Option<&str>,
    ) {
        if let (Some(_), Ok(url), Some(at)) = (self.revisit, url, at.and_then(modified_at)) {
            modified.push((url.clone(), at));
        }
    }

    /// What a sitemap says of how often a page changes is as if it said that the page changed so
    /// long ago.
    fn note_frequency(
        &self,
        modified: &mut Vec<(CanonicalUrl, u32)>,
        url: &Result<CanonicalUrl, Unusable>,
        often: ChangeFreq,
    ) {
        if let (Some(began), Ok(url), Some(every)) = (self.revisit, url, seconds_of(often)) {
            modified.push((url.clone(), began.saturating_sub(every)));
        }
    }
}

/// None where it never changes.
fn seconds_of(often: ChangeFreq) -> Option<u32> {
    const DAY: u32 = 24 * 60 * 60;
    match often {
        ChangeFreq::Always => Some(0),
        ChangeFreq::Hourly => Some(60 * 60),
        ChangeFreq::Daily => Some(DAY),
        ChangeFreq::Weekly => Some(7 * DAY),
        ChangeFreq::Monthly => Some(30 * DAY),
        ChangeFreq::Yearly => Some(365 * DAY),
        ChangeFreq::Never => None,
    }
}

/// How many URLs an entry of a sitemap names that count, with its own.
fn urls_of(links: &Links<'_>, entry: &SitemapEntry) -> u64 {
    let players = entry.videos.iter().filter(|video| video.player.is_some());
    let resources = match links.wants_resources() {
        true => entry.images.len() + 2 * entry.videos.len(),
        false => 0,
    };
    (1 + entry.alternates.len() + players.count() + resources) as u64
}

/// What an entry of a sitemap names beside its page.
fn beside(links: &mut Links<'_>, page: Discovery, entry: &SitemapEntry) {
    let from = links.from();
    let named = |raw: &str| canonicalize(Some(&from.url), raw);
    let players = entry
        .videos
        .iter()
        .filter_map(|video| video.player.as_deref());
    let others = entry.alternates.iter().map(|other| other.href.as_str());
    for raw in others.chain(players) {
        links.add(page, named(raw), None);
    }
    if links.wants_resources() {
        let videos = entry.videos.iter();
        let videos = videos.flat_map(|video| [&video.content, &video.thumbnail]);
        for raw in entry.images.iter().chain(videos.flatten()) {
            links.add(Discovery::resource(from), named(raw), None);
        }
    }
}

/// A page's place, by what its sitemap says of it: 0.5 is as any link.
fn priority_of(entry: &SitemapEntry) -> u8 {
    let said = entry.priority.unwrap_or(0.5).clamp(0.0, 1.0);
    let moved = ((0.5 - said) * 2.0 * SITEMAP_REACH).round();
    // At most 32 from 128 in both directions.
    (f32::from(PRIORITY_LINK) + moved) as u8
}

/// A sitemap's `lastmod`, in seconds since the Unix epoch. A day alone means its end: the page may
/// have changed until then.
fn modified_at(lastmod: &str) -> Option<u32> {
    let at = unix_seconds(lastmod)?;
    let is_day = lastmod.trim().len() == "2026-11-21".len();
    let at = at + if is_day { 86_400 } else { 0 };
    Some(u32::try_from(at.max(0)).unwrap_or(u32::MAX))
}
