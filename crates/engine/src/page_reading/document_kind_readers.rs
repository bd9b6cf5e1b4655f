//! Reads each kind of document. Runs on reader threads.

use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use crawl_coding::{DecodeEnd, DecodedBody, decode_gzip};
use crawl_dates::TimeWithPrecision;
use crawl_extractor::{
    ChangeFrequency, DecodedPage, ExtractedPage, PageContent, Sitemap, SitemapEntry, SitemapKind,
    VisibleTextObserver as _, read_feed, read_sitemap, read_text, refresh_header,
};
use crawl_fetcher::{Exchange, Interstitial};
use crawl_fields::PageToMatch;
use crawl_frontier::{Lease, NotFetchedReason, Reason, UrlKind};
use crawl_index_entry::IndexLogEntry;
use crawl_policy::PageDirectives;
use crawl_policy::usage_statements::UsageStatements;
use crawl_scope::Scope;
use crawl_traps::PageFingerprintBuilder;
use crawl_weburl::{CanonicalUrl, UnusableUrlError, canonicalize};

use super::document_links::{DiscoveryAttributes, DocumentLinkCollector, page_refusal};
use super::document_result::{DocumentError, ReadDocument};
use super::main_text_digest::{TextComparisonInputs, text_digest};
use super::sitemap_budget::SITEMAP_LIMIT;
use super::trap_fingerprint::TrapFingerprinter;
use super::{BodyToRead, PageReader, is_successful};
use crate::content_type::content_type;
use crate::field_extraction::rows_of_text;
use crate::index::entry_creation::{entry, interstitial_of, linked_canonical, pairs, read_both};
use crate::messages::page_pipeline_stages::{
    FetchedPage, PageFindings, SitemapLinkBatch, TrapEvidence,
};
use crate::messages::render::{PageSourceToRead, UnrenderedPageSummary, is_built_by_scripts};
use crate::priority::{MAX_SITEMAP_LEVELS, Priority, SitemapDepthCheck, may_list};
use crate::revisit::document_state_meta_tag::DocumentStateMeta;
use crate::revisit::visit::RenderNeed;
use crate::secret_redaction::redacted_entry;
use crate::time_conversions::seconds_of;

/// The name of the counter of pages that scripts seem to build. Used only if the crawl renders no
/// pages.
const BUILT_BY_SCRIPTS: &str = "built_by_scripts";

/// The name of the counter of pages that scripts seem to build, but that were not rendered, because
/// rendering similar pages was useless.
const RENDERING_SKIPPED: &str = "rendering_skipped";

/// A sitemap with more bytes than this is long. Its entries take several times as much memory.
/// Beyond the limit: only one such sitemap is parsed at a time.
const LONG_SITEMAP_BYTES: usize = 1 << 20;

/// An HTML page, parsed in a single pass.
struct ParsedPage {
    page: ExtractedPage,
    /// The text for the index, the language filter or the comparison with the last visit; `None` if
    /// it is not needed.
    content: Option<PageContent>,
    /// Whether one of the operator's secrets is in the source or in the visible text.
    echoes_secret: bool,
}

impl PageReader {
    /// Reads an HTML page, and extracts its fields. Returns an error if the page is an
    /// interstitial, which reveals nothing about the site.
    pub(super) fn html(
        &self,
        fetched: &FetchedPage,
        body: &BodyToRead<'_>,
        links: &mut DocumentLinkCollector<'_>,
        compared: TextComparisonInputs,
    ) -> Result<ReadDocument, Interstitial> {
        let text = DecodedPage::decode(body.bytes(), body.content_type.as_deref());
        let mut document = self.html_text(fetched, links, &text, compared)?;
        if is_successful(&fetched.exchange) && document.is_read() {
            // Extract the fields now. They are dropped later if the page's row shows that they
            // must not be kept.
            let facts = PageToMatch {
                url: fetched.lease.url.as_str(),
                content_type: body.content_type.as_deref(),
                language: document.language.as_deref(),
                label: fetched.context.label.as_deref(),
            };
            let round = self.visits.round.number;
            document.findings.extract_rows = rows_of_text(&self.extract, &text, &facts, round);
        }
        Ok(document)
    }

    fn html_text(
        &self,
        fetched: &FetchedPage,
        links: &mut DocumentLinkCollector<'_>,
        text: &DecodedPage<'_>,
        compared: TextComparisonInputs,
    ) -> Result<ReadDocument, Interstitial> {
        let (exchange, rules) = (&*fetched.exchange, &*fetched.context.rules);
        let (lease, headers) = (links.from(), &exchange.headers);
        let is_page = is_successful(exchange);
        let may_index = self.documents.html && self.may_index(lease, exchange);
        let mut evidence = TrapFingerprinter {
            reader: self.fingerprint(lease).filter(|_| is_page),
            gives_back: &self.gives_back,
        };
        // Don't judge a seed by its language, since its links may lead to pages in a wanted
        // language.
        let is_judged = is_page && lease.kind == UrlKind::Page && !links.is_of_scope_seed();
        let is_judged = is_judged && !self.wanted.languages.is_empty();
        let is_content_wanted = may_index || is_judged || compared.is_wanted;
        let parsed = self.parse(text, exchange, is_content_wanted, &mut evidence);
        let ParsedPage {
            mut page,
            content,
            echoes_secret,
        } = parsed;
        if evidence.is_given_up() {
            return Ok(ReadDocument::given_up());
        }
        let in_place = interstitial_of(exchange.status, headers, &page, text);
        if let Some(found) = in_place.filter(|found| !found.has_own_links()) {
            return Err(found);
        }
        let is_scripted = in_place.is_none() && self.is_scripted(fetched, (&page, text), links);
        if is_scripted && matches!(fetched.rendering, PageSourceToRead::IfScripted) {
            let summary = UnrenderedPageSummary::of_page(&page);
            return Ok(ReadDocument::scripted(summary));
        }
        let echoes_secret = self.complete_dom(fetched, &mut page) || echoes_secret;
        let directives = self.directives(exchange, &page.metas);
        let usage = self.usage(rules, exchange, lease, &directives, &page.metas);
        let tag = content.as_ref().and_then(|content| content.language.tag());
        let language = tag.filter(|_| in_place.is_none() && (may_index || is_judged));
        let judged = language.as_ref().filter(|_| is_judged);
        let unwanted = judged.and_then(|tag| self.wanted.of_language(tag));
        let text_digest = content.as_ref().and_then(text_digest);
        // Interstitials are not indexed.
        let content = content.filter(|_| may_index && in_place.is_none());
        let entry = content.map(|content| {
            self.page_entry(links, exchange, (&page, &content), &directives, &usage)
        });
        // A 300 without a target lists the choices in its body (RFC 9110 section 15.4.1).
        let mut document = match is_page || exchange.status == 300 {
            true => ReadDocument {
                canonical: page.stands_elsewhere(&lease.url, linked_canonical(headers).as_deref()),
                ..self.page(links, &directives, page)
            },
            // An error page: none of its links are followed.
            false => ReadDocument {
                title: page.title,
                ..ReadDocument::default()
            },
        };
        if unwanted.is_some() {
            links.forget_found();
        }
        document.render_need = RenderNeed::of_html(is_scripted);
        document.unwanted = unwanted;
        document.echoes_secret = echoes_secret;
        document.language = language;
        document.findings.signal = evidence.finish();
        document.findings.entry = entry;
        document.usage = Some(usage);
        document.text_digest = text_digest.filter(|_| is_page && in_place.is_none());
        document.body_digest = compared.body_digest;
        document.decoded_digest = compared.decoded_digest;
        document.past_text_digest = compared.past_text_digest;
        document.error = in_place.map(DocumentError::InPlace);
        Ok(document)
    }

    /// Returns whether scripts seem to build a page that a browser could render, but that was not
    /// rendered. Counts such a page if it is read as it was sent.
    fn is_scripted(
        &self,
        fetched: &FetchedPage,
        (page, text): (&ExtractedPage, &DecodedPage<'_>),
        links: &mut DocumentLinkCollector<'_>,
    ) -> bool {
        let is_scripted = fetched.is_renderable()
            && fetched.rendering.row().is_none()
            && is_built_by_scripts(page, text.as_str());
        let counter = match fetched.rendering {
            PageSourceToRead::Skipped => Some(RENDERING_SKIPPED),
            _ => (!self.renders).then_some(BUILT_BY_SCRIPTS),
        };
        if let Some(counter) = counter {
            links.count_dropped(counter, u64::from(is_scripted));
        }
        is_scripted
    }

    /// Adds to a rendered page the facts that its DOM doesn't show:
    ///
    /// - the `meta` elements from before the page's scripts ran, which still apply;
    /// - the charset of the page as sent;
    /// - the URL that the page's scripts tried to move to.
    ///
    /// Returns whether the page as sent contains one of the operator's secrets.
    fn complete_dom(&self, fetched: &FetchedPage, page: &mut ExtractedPage) -> bool {
        if fetched.rendering.dom().is_none() {
            return false;
        }
        let exchange = &fetched.exchange;
        let decoded = self.decoded(exchange);
        let text = DecodedPage::decode(&decoded.bytes, content_type(&exchange.headers).as_deref());
        let mut sent = read_text(&text, &self.limits, &mut ());
        page.metas.append(&mut sent.metas);
        page.charset = sent.charset;
        let moved = fetched.rendering.navigation();
        let link = |url| refresh_header(&format!("0; url={url}"), &self.limits);
        page.links.extend(moved.and_then(link));
        self.policy.secrets.are_in(text.as_str().as_bytes())
    }

    /// Parses a page in one pass. Extracts the content if `is_content_wanted` is true, or if the
    /// operator's secrets must be searched for in it.
    fn parse(
        &self,
        text: &DecodedPage<'_>,
        exchange: &Exchange,
        is_content_wanted: bool,
        evidence: &mut TrapFingerprinter<'_>,
    ) -> ParsedPage {
        let secrets = &self.policy.secrets;
        let (page, content) = match is_content_wanted || !secrets.is_empty() {
            true => {
                let at = seconds_of(exchange.started);
                let (page, content) =
                    read_both(text, &exchange.headers, at, &self.limits, evidence);
                (page, Some(content))
            }
            false => (read_text(text, &self.limits, evidence), None),
        };
        let visible = content.as_ref().map(PageContent::visible_text);
        let texts = [Some(text.as_str()), visible];
        let is_secret = |text: &str| secrets.are_in(text.as_bytes());
        let echoes_secret = texts.into_iter().flatten().any(is_secret);
        ParsedPage {
            echoes_secret,
            content: content.filter(|_| is_content_wanted),
            page,
        }
    }

    /// Creates the index entry of a page.
    pub(super) fn page_entry(
        &self,
        links: &mut DocumentLinkCollector<'_>,
        exchange: &Exchange,
        read: (&ExtractedPage, &PageContent),
        directives: &PageDirectives,
        usage: &UsageStatements,
    ) -> IndexLogEntry {
        let refused = self.search_refused(usage);
        let scope = links.scope();
        let is_in_crawl = |url: &CanonicalUrl| scope.overlaps_host(url);
        let url = &links.from().url;
        let mut resolve = |base: &CanonicalUrl, href: &str| links.url_of(base, href);
        let entry = entry(
            url,
            seconds_of(exchange.started),
            &exchange.headers,
            read,
            directives,
            refused.as_deref(),
            (&mut resolve, &is_in_crawl),
        );
        redacted_entry(&self.policy.secrets, entry)
    }

    fn page(
        &self,
        links: &mut DocumentLinkCollector<'_>,
        directives: &PageDirectives,
        page: ExtractedPage,
    ) -> ReadDocument {
        let bar = directives.nofollow.clone().map(page_refusal);
        let base = page.base_url(&links.from().url);
        for link in &page.links {
            links.link(&base, link, bar.as_ref());
        }
        ReadDocument {
            title: page.title,
            charset: Some(page.charset),
            declared_state: DocumentStateMeta::of(pairs(&page.metas)),
            bar,
            ..ReadDocument::default()
        }
    }

    /// Reads a feed. The entries of a feed have the same depth as the feed, but at least 1.
    pub(crate) fn feed(
        &self,
        links: &mut DocumentLinkCollector<'_>,
        bytes: &[u8],
        content_type: Option<&str>,
    ) -> ReadDocument {
        let feed = read_feed(bytes, content_type, &self.limits);
        let from = links.from();
        let page = DiscoveryAttributes {
            depth: from.depth.max(1),
            ..DiscoveryAttributes::link(from)
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
                    links.add(
                        DiscoveryAttributes::resource(from),
                        file.resolve(&from.url),
                        None,
                    );
                }
            }
        }
        for url in feed.further_pages() {
            links.add(page, url.resolve(&from.url), None);
        }
        ReadDocument {
            title: feed.title,
            // A feed lists news, so it is due in each round.
            declared_state: Some(DocumentStateMeta::Dynamic),
            is_list: true,
            findings: PageFindings {
                modified,
                ..PageFindings::default()
            },
            ..ReadDocument::default()
        }
    }

    /// Reads a body as a sitemap, which may be a gzip file. `None` if it is not a sitemap, for
    /// example if robots.txt lists an ordinary page as one.
    pub(crate) fn sitemap(
        &self,
        links: &mut DocumentLinkCollector<'_>,
        body: &Bytes,
        content_type: Option<&str>,
        early: &mut dyn FnMut(SitemapLinkBatch),
    ) -> Option<ReadDocument> {
        let unpacked = decode_gzip(body, &self.decode);
        // Ignore a panic of another thread while it held the lock, since the lock guards no data.
        let lock = || {
            self.long_sitemap_lock
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        let _lock = (unpacked.bytes.len() > LONG_SITEMAP_BYTES).then(lock);
        let sitemap = read_sitemap(&unpacked.bytes, content_type, &self.limits);
        let DecodedBody { bytes, end } = unpacked;
        drop(bytes);
        let error = (end != DecodeEnd::Whole).then_some(DocumentError::Coding(end));
        if sitemap.kind == SitemapKind::Unknown {
            return error.map(ReadDocument::with_error);
        }
        let mut document = self.entries(links, sitemap, early);
        document.error = error.or(document.error);
        Some(document)
    }

    fn entries(
        &self,
        links: &mut DocumentLinkCollector<'_>,
        sitemap: Sitemap,
        early: &mut dyn FnMut(SitemapLinkBatch),
    ) -> ReadDocument {
        let from = links.from();
        // Entries of a sitemap have the depth of links on the site's home page, regardless of how
        // many sitemap indexes led to the sitemap. If the sitemap is a seed, its entries are seeds
        // too.
        let mut discovery = DiscoveryAttributes {
            depth: u32::from(!from.is_seed),
            is_seed: from.is_seed,
            ..DiscoveryAttributes::link(from)
        };
        let mut too_deep = None;
        if sitemap.kind == SitemapKind::Index {
            discovery.kind = UrlKind::Sitemap;
            // A sitemap's priority encodes how many sitemap indexes led to the sitemap.
            let (priority, nesting) = Priority::of(from).of_named_sitemaps();
            discovery.priority = priority;
            too_deep = (nesting == SitemapDepthCheck::TooDeep).then(|| NotFetchedReason {
                rule: Some(format!(
                    "more than {MAX_SITEMAP_LEVELS} levels of sitemap indexes"
                )),
                ..NotFetchedReason::of(Reason::Trap)
            });
        }
        let mut modified = Vec::new();
        let weights = sitemap.entries.iter().map(|entry| urls_of(links, entry));
        let wanted = weights.sum();
        let granted = self.sitemaps.take(&from.url.host_key(), wanted);
        let mut remaining = granted;
        for entry in sitemap.entries {
            let Some(rest) = remaining.checked_sub(urls_of(links, &entry)) else {
                break;
            };
            remaining = rest;
            if let Some(links) = links.take_batch() {
                let modified = std::mem::take(&mut modified);
                early(SitemapLinkBatch {
                    links,
                    modified,
                    held: None,
                });
            }
            let url = canonicalize(Some(&from.url), &entry.loc);
            match (&entry.lastmod, entry.changefreq) {
                (None, Some(often)) => self.note_frequency(&mut modified, &url, often),
                (lastmod, _) => self.note_modified(&mut modified, &url, lastmod.as_deref()),
            }
            let discovery = match discovery.kind {
                UrlKind::Sitemap => discovery,
                _ => DiscoveryAttributes {
                    priority: Priority::of_sitemap_entry(entry.priority),
                    ..discovery
                },
            };
            match discovery.kind {
                UrlKind::Page => add_entry(links, discovery, url, &entry),
                _ => links.add(discovery, url, too_deep.clone()),
            }
        }
        let left_out = wanted - granted + remaining;
        links.count_dropped(SITEMAP_LIMIT, left_out);
        ReadDocument {
            error: (left_out > 0).then_some(DocumentError::SitemapLimit),
            is_list: true,
            findings: PageFindings {
                modified,
                ..PageFindings::default()
            },
            ..ReadDocument::default()
        }
    }

    pub(crate) fn redirect(
        &self,
        lease: &Lease,
        target: Result<CanonicalUrl, UnusableUrlError>,
        scope: &Arc<Scope>,
    ) -> ReadDocument {
        let discovery = DiscoveryAttributes {
            kind: lease.kind,
            depth: lease.depth,
            redirects: lease.redirects.saturating_add(1),
            priority: Priority::of(lease),
            is_seed: lease.is_seed,
        };
        let too_many = (discovery.redirects > self.max_redirects).then(|| NotFetchedReason {
            reason: Reason::Redirects,
            rule: Some(format!("max-redirects {}", self.max_redirects)),
            line: None,
        });
        let (error, signal) = match &target {
            Err(why) => {
                let error = DocumentError::RedirectUnusable(why.clone());
                (Some(error), TrapEvidence::Nothing)
            }
            Ok(url) if self.policy.secrets.are_in_url(url) => {
                (Some(DocumentError::RedirectSecret), TrapEvidence::Nothing)
            }
            Ok(url) => match too_many {
                None => (None, TrapEvidence::Redirect(url.clone())),
                Some(_) => {
                    let error = DocumentError::TooManyRedirects;
                    (Some(error), TrapEvidence::CutRedirect(url.clone()))
                }
            },
        };
        let mut links =
            DocumentLinkCollector::new(lease, scope, &self.policy, None, (&self.known_links, None));
        links.add(discovery, target, too_many);
        links.finish(ReadDocument {
            error,
            findings: PageFindings {
                signal,
                ..PageFindings::default()
            },
            ..ReadDocument::default()
        })
    }

    /// Returns a reader that computes the page's fingerprint, if the page must be compared with
    /// other pages of its host.
    fn fingerprint(&self, lease: &Lease) -> Option<PageFingerprintBuilder> {
        let is_wanted = self.traps.watches() && lease.kind == UrlKind::Page;
        is_wanted.then(|| PageFingerprintBuilder::new(&lease.url))
    }

    /// Records when a linked document last changed, as stated by the sitemap or feed that links to
    /// it. Does nothing unless URLs are revisited.
    fn note_modified(
        &self,
        modified: &mut Vec<(CanonicalUrl, u32)>,
        url: &Result<CanonicalUrl, UnusableUrlError>,
        at: Option<&str>,
    ) {
        if let (Some(_), Ok(url), Some(at)) = (self.revisit, url, at.and_then(modified_at)) {
            modified.push((url.clone(), at));
        }
    }

    /// Records how often a page changes, as stated by a sitemap. Assumes that the page last
    /// changed one interval before the start of the round.
    fn note_frequency(
        &self,
        modified: &mut Vec<(CanonicalUrl, u32)>,
        url: &Result<CanonicalUrl, UnusableUrlError>,
        often: ChangeFrequency,
    ) {
        if let (Some(began), Ok(url), Some(every)) = (self.revisit, url, interval_of(often)) {
            modified.push((url.clone(), began.saturating_sub(every)));
        }
    }
}

/// Returns the interval between two changes, in seconds. `None` if the page never changes.
fn interval_of(often: ChangeFrequency) -> Option<u32> {
    const DAY: u32 = 24 * 60 * 60;
    match often {
        ChangeFrequency::Always => Some(0),
        ChangeFrequency::Hourly => Some(60 * 60),
        ChangeFrequency::Daily => Some(DAY),
        ChangeFrequency::Weekly => Some(7 * DAY),
        ChangeFrequency::Monthly => Some(30 * DAY),
        ChangeFrequency::Yearly => Some(365 * DAY),
        ChangeFrequency::Never => None,
    }
}

/// Returns the number of URLs in a sitemap entry: its page, alternates, players and resources. All
/// of them count towards the limit.
fn urls_of(links: &DocumentLinkCollector<'_>, entry: &SitemapEntry) -> u64 {
    let players = entry.videos.iter().filter(|video| video.player.is_some());
    let resources = match links.wants_resources() {
        true => entry.images.len() + 2 * entry.videos.len(),
        false => 0,
    };
    (1 + entry.alternates.len() + players.count() + resources) as u64
}

/// Adds the URLs that a sitemap entry lists: its page, alternates, players and resources. If the
/// page is on another host than the sitemap, omits the resources, because the sitemap can't vouch
/// that they belong to the page. A sitemap that is a seed may list resources of any host.
fn add_entry(
    links: &mut DocumentLinkCollector<'_>,
    page: DiscoveryAttributes,
    url: Result<CanonicalUrl, UnusableUrlError>,
    entry: &SitemapEntry,
) {
    let from = links.from();
    let host = from.url.host_key();
    let is_foreign = |url: &Result<CanonicalUrl, UnusableUrlError>| {
        !page.is_seed
            && url
                .as_ref()
                .is_ok_and(|url| !may_list(&host, &url.host_key()))
    };
    let named = |raw: &str| canonicalize(Some(&from.url), raw);
    let wants_resources = links.wants_resources() && !is_foreign(&url);
    for url in std::iter::once(url).chain(entry.further_pages().map(named)) {
        let priority = match is_foreign(&url) {
            true => Priority::FOREIGN_ENTRY,
            false => page.priority,
        };
        links.add(DiscoveryAttributes { priority, ..page }, url, None);
    }
    if wants_resources {
        for raw in entry.resources() {
            links.add(DiscoveryAttributes::resource(from), named(raw), None);
        }
    }
}

/// Parses a sitemap's `lastmod` to seconds since the Unix epoch. If it is only a day, month or
/// year, returns the end of that period, because the page may have changed until then.
fn modified_at(lastmod: &str) -> Option<u32> {
    let at = TimeWithPrecision::parse(lastmod)?.latest();
    Some(u32::try_from(at.max(0)).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::io::Write as _;
    use std::sync::Arc;

    use bytes::Bytes;
    use crawl_coding::DecodeEnd;
    use crawl_frontier::{Frontier, MemoryFrontier, UrlKind, UrlToAdmit};
    use crawl_policy::ProductToken;
    use crawl_scope::{Scope, ScopeMode};
    use crawl_weburl::canonicalize;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::{DocumentError, DocumentLinkCollector, PageReader};
    use crate::config::Config;
    use crate::revisit::visit::{RevisitRules, Round};

    /// Reads a body as a sitemap. Also returns its links, one list per batch.
    fn read(body: &Bytes) -> (Option<DocumentError>, Vec<Vec<UrlToAdmit>>) {
        let map = canonicalize(None, "http://e.example/sitemap.xml").unwrap();
        let frontier = MemoryFrontier::new();
        let mut transaction = frontier.begin().unwrap();
        let admission = UrlToAdmit {
            kind: UrlKind::Sitemap,
            ..UrlToAdmit::seed(map.clone())
        };
        transaction.admit(admission).unwrap();
        transaction.commit().unwrap();
        let lease = frontier.lease(&map.origin()).unwrap().unwrap();
        let agent = ProductToken::new("crawl").unwrap();
        let config = Config::new(agent, "0.0", None, vec![map], "out");
        let visits = RevisitRules {
            round: Round::first(0),
            revisits: config.revisits,
        };
        let reader = PageReader::new(&config, &visits);
        let scope = Arc::new(Scope::new(ScopeMode::Any, &[], &[], None).unwrap());
        let mut links = DocumentLinkCollector::new(
            &lease,
            &scope,
            &reader.policy,
            None,
            (&reader.known_links, None),
        );
        let mut batches = Vec::new();
        let mut early = |batch: super::SitemapLinkBatch| batches.push(batch.links);
        let mut document = reader.sitemap(&mut links, body, None, &mut early).unwrap();
        let error = document.error.take();
        batches.push(links.finish(document).findings.links);
        (error, batches)
    }

    fn sitemap(entries: usize) -> String {
        let urls = (0..entries).map(|n| format!("<url><loc>/{n}</loc></url>"));
        let urls: String = urls.collect();
        format!("<urlset>{urls}</urlset>")
    }

    #[test]
    fn links_of_a_long_sitemap_are_sent_ahead_in_batches() {
        let (error, batches) = read(&sitemap(10_000).into());
        assert_eq!(error, None);
        let sizes: Vec<_> = batches.iter().map(Vec::len).collect();
        assert_eq!(sizes, [4096, 4096, 1808]);
        let all: HashSet<_> = batches.iter().flatten().map(|link| &link.url).collect();
        assert_eq!(all.len(), 10_000);
    }

    #[test]
    fn a_gzip_sitemap_that_is_cut_short_has_an_error() {
        let mut coder = GzEncoder::new(Vec::new(), Compression::fast());
        coder.write_all(sitemap(1_000).as_bytes()).unwrap();
        let whole = Bytes::from(coder.finish().unwrap());
        let short = Some(DocumentError::Coding(DecodeEnd::Short));
        // From the first 12 bytes, nothing of the sitemap can be read.
        for (length, expected, links) in [
            (whole.len(), None, 1_000..=1_000),
            (whole.len() / 2, short.clone(), 1..=999),
            (12, short, 0..=0),
        ] {
            let (error, batches) = read(&whole.slice(..length));
            assert_eq!(error, expected, "{length}");
            let count = batches.iter().flatten().count();
            assert!(links.contains(&count), "{length}: {count}");
        }
    }
}
