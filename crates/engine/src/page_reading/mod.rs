//! Turns a fetched page into an encoded one, with its row, links and archive records. Runs on
//! reader threads.

mod archive_encoder;
mod document_kind_readers;
mod document_links;
mod document_queue;
mod document_result;
mod index_entry_choice;
mod link_cache;
mod link_targets;
mod main_text_digest;
mod non_html_documents;
pub(crate) mod page_encoder;
mod page_row;
pub(crate) mod reader_pool;
mod sitemap_budget;
mod trap_fingerprint;

use std::borrow::Cow;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use crawl_archive::DigestAlgorithm;
use crawl_archive::rows::PageRow;
use crawl_coding::{DecodeEnd, DecodeLimits, DecodedBody, decode};
use crawl_extractor::{
    ContentKind, NamedMeta, ReadingLimits, document_kind, may_be_read, sniff_media_type,
};
use crawl_fetcher::robots::CompiledRobots;
use crawl_fetcher::{Exchange, Interstitial, InterstitialSigns, interstitial};
use crawl_fields::CompiledRules;
use crawl_frontier::{Frontier, Lease, UrlKind};
use crawl_policy::usage_statements::{UsagePurpose, UsageStatements};
use crawl_policy::{PageDirectives, ProductToken, RobotsProfile};
use crawl_sample::SampleMethod;
use crawl_scope::ContentFilter;
use crawl_weburl::CanonicalUrl;
use http::header::CONTENT_ENCODING;

use self::document_links::{DocumentLinkCollector, LinkPolicy, page_refusal};
use self::document_result::{DocumentError, ReadDocument, ReadPage};
use self::link_cache::LinkCache;
use self::page_row::page_row;
use self::sitemap_budget::SitemapBudgetTracker;
use crate::config::{Config, TrapAvoidance};
use crate::content_filter;
use crate::content_type::content_type;
use crate::document_conversion::DocumentIndexingSettings;
use crate::field_extraction::may_extract;
use crate::index::entry_creation::{directives, pairs};
use crate::messages::page_pipeline_stages::{
    FetchedPage, PageFindings, SitemapLinkBatch, TrapEvidence,
};
use crate::messages::render::{PageSourceToRead, UnrenderedPageSummary};
use crate::revisit::visit::{KnownPage, PreviousVisit, RenderNeed, RevisitRules};
use crate::secret_redaction::redact_row;
use crate::shared_trap_detector::SharedTrapDetector;
use crate::trace_events::TraceEventEmitter;
use crate::usage_preferences;

/// Reads pages. Contains the settings that reading depends on.
#[derive(Clone)]
pub(crate) struct PageReader {
    pub(crate) agent: ProductToken,
    pub(crate) profile: RobotsProfile,
    pub(crate) limits: ReadingLimits,
    pub(crate) decode: DecodeLimits,
    pub(crate) policy: LinkPolicy,
    /// The cache of links from earlier documents. Each reader thread has its own.
    known_links: RefCell<LinkCache>,
    pub(crate) max_redirects: u8,
    pub(crate) purpose: Option<UsagePurpose>,
    /// Decides which documents are kept.
    pub(crate) wanted: Arc<ContentFilter>,
    pub(crate) index: bool,
    /// The rules for which documents are indexed.
    pub(crate) documents: Arc<DocumentIndexingSettings>,
    pub(crate) traps: TrapAvoidance,
    /// The rules for extracting fields from pages.
    extract: Arc<CompiledRules>,
    pub(crate) sitemaps: SitemapBudgetTracker,
    /// Held while a long sitemap is parsed, so that only one reader thread does so at a time.
    long_sitemap_lock: Arc<Mutex<()>>,
    /// The start of this round, in seconds since the Unix epoch. `None` in the first round, which
    /// does not need the change times in sitemaps.
    pub(crate) revisit: Option<u32>,
    /// The dates of this round, and the schedule for the next visits.
    pub(crate) visits: RevisitRules,
    /// If set, readers stop reading: they return waiting pages, and the page that they are in the
    /// middle of, without a result.
    pub(crate) gives_back: Arc<AtomicBool>,
    /// Whether this thread leaves PDF and DOCX documents to other threads, because reading them in
    /// another process may take long.
    hands_off_documents: bool,
    /// Whether to compute the digest of the main text of each new page. Needed without an archive,
    /// since a later round can't compute the digest then.
    keeps_texts: bool,
    /// The crawl directory, if earlier rounds wrote an archive.
    archive: Option<PathBuf>,
    /// Whether to give the writer all links of a page, even to known URLs. A random walk chooses
    /// its next page among all links.
    keeps_known_links: bool,
    /// Whether the crawl renders pages.
    renders: bool,
    /// The frontier and the trap detector of the crawl. `None` if this reader uses neither.
    shared: Option<(Arc<dyn Frontier>, SharedTrapDetector)>,
    events: TraceEventEmitter,
}

impl PageReader {
    pub(crate) fn new(config: &Config, visits: &RevisitRules) -> PageReader {
        let mut limits = ReadingLimits::default();
        if !config.links && !config.index {
            // Link texts are used only by `links.jsonl` and the index, and this crawl writes
            // neither.
            limits.text_bytes = 0;
        }
        PageReader {
            agent: config.agent.clone(),
            profile: config.profile,
            limits,
            decode: DecodeLimits::default(),
            policy: LinkPolicy::new(config),
            known_links: RefCell::default(),
            max_redirects: config.max_redirects,
            purpose: config.purpose,
            wanted: Arc::new(config.wanted.clone()),
            index: config.index,
            documents: Arc::new(config.documents.clone()),
            traps: config.traps,
            extract: Arc::clone(&config.extract),
            sitemaps: SitemapBudgetTracker::new(config.max_sitemap_urls),
            long_sitemap_lock: Arc::default(),
            visits: *visits,
            revisit: (visits.round.number > 1).then_some(visits.round.began),
            gives_back: Arc::default(),
            hands_off_documents: false,
            keeps_texts: config.recrawl && config.warc.is_none(),
            archive: (config.warc.is_some() && visits.round.number > 1)
                .then(|| config.output.clone()),
            keeps_known_links: matches!(config.sample, Some(SampleMethod::Walk(_))),
            renders: config.render.is_some(),
            shared: None,
            events: TraceEventEmitter::new(config),
        }
    }

    /// Drops links to known URLs in a replay, even if the trap detector may change links of the
    /// page by now. The original crawl dropped these links too: when it read the page, the trap
    /// detector could not change them yet.
    pub(crate) fn drop_known_trap_links(&self, lease: &Lease, findings: &mut PageFindings) {
        if let Some((frontier, traps)) = &self.shared
            && traps.may_change(&lease.url, &findings.links)
        {
            frontier.drop_known(&mut findings.links, &mut |_| {});
        }
    }

    /// Makes this reader return all links, even to known URLs.
    pub(crate) fn keeping_known_links(self) -> PageReader {
        PageReader {
            keeps_known_links: true,
            ..self
        }
    }

    /// Makes this reader compute the digest of each page's main text, for a later round.
    pub(crate) fn keeping_texts(self) -> PageReader {
        PageReader {
            keeps_texts: true,
            ..self
        }
    }

    /// Makes this reader hand off documents that must be read in another process: it returns them
    /// unread.
    fn handing_off_documents(self) -> PageReader {
        PageReader {
            hands_off_documents: true,
            ..self
        }
    }

    /// Makes this reader look up known URLs and traps, to leave less work to the writer.
    pub(crate) fn with_crawl_state(
        self,
        frontier: Arc<dyn Frontier>,
        traps: SharedTrapDetector,
    ) -> PageReader {
        PageReader {
            shared: Some((frontier, traps)),
            ..self
        }
    }

    /// Returns how often the frontier has reopened URLs, if links of this page to settled URLs of
    /// its own host may be dropped. `None` if such links must be kept, because the trap detector
    /// may change them, or because all links are wanted.
    fn settled_at(&self, lease: &Lease) -> Option<u64> {
        let (frontier, traps) = self.shared.as_ref()?;
        let has_say = traps.lock().knows_of(&lease.url.host_key());
        (!has_say && !self.keeps_known_links).then(|| frontier.reopenings())
    }

    /// Compares a page with other pages of its host for the trap detection, and drops its links to
    /// known URLs.
    fn drop_known_links(&self, lease: &Lease, findings: &mut PageFindings) {
        let Some((frontier, traps)) = &self.shared else {
            return;
        };
        if let TrapEvidence::Text(fingerprint) = &mut findings.signal {
            traps.compare(lease, fingerprint);
        }
        // If a sitemap or feed states when URLs changed, keep its links to known URLs, because the
        // writer uses the change time of a URL only if the URL is among the links.
        if findings.modified.is_empty()
            && !self.keeps_known_links
            && !traps.may_change(&lease.url, &findings.links)
        {
            let mut cache = self.known_links.borrow_mut();
            let settled = &mut |url: &CanonicalUrl| cache.note_settled(url);
            findings.looked_at = frontier.drop_known(&mut findings.links, settled);
        }
        // Compute the shape of each new URL here, so that the crawl loop does not have to: it has
        // only one thread, but readers run in parallel.
        if traps.rules().traps {
            for link in &findings.links {
                link.url.shape();
            }
        }
    }
}

impl PageReader {
    /// Reads one exchange. If a parser panics, only the links of this page are lost. The links of a
    /// long sitemap are passed to `early` in batches, except for the last batch, which is returned.
    ///
    /// # Errors
    /// The unchanged page, if it must not be read now.
    pub(crate) fn read(
        &self,
        page: Box<FetchedPage>,
        early: &mut dyn FnMut(SitemapLinkBatch),
    ) -> Result<ReadPage, UnreadPage> {
        let read = || self.document(&page, early);
        let document = catch_unwind(AssertUnwindSafe(read));
        let document =
            document.unwrap_or_else(|_| ReadDocument::with_error(DocumentError::Panicked));
        match (document.is_given_up, document.scripted) {
            (true, _) => Err(UnreadPage::LeftOut(page)),
            (false, Some(shell)) => Err(UnreadPage::Scripted(page, shell)),
            (false, None) => Ok(self.finish(*page, document)),
        }
    }

    /// Completes a page that was read: withholds content that must not be kept, chooses the index
    /// entry, creates the row and drops links to known URLs.
    fn finish(&self, page: FetchedPage, mut document: ReadDocument) -> ReadPage {
        let FetchedPage {
            lease,
            mut context,
            exchange,
            scope,
            host,
            rendering,
        } = page;
        let mut past = context.past.take();
        if let Some(past) = &mut past {
            past.note_text(document.past_text_digest.take());
        }
        let known_page = past.as_deref().and_then(PreviousVisit::page);
        if exchange.status == 304 && !known_page.is_some_and(KnownPage::is_conditional) {
            document.error = Some(DocumentError::UnexpectedNotModified);
        }
        let usage = document.usage.take().unwrap_or_else(|| {
            let directives = self.directives(&exchange, &[]);
            self.usage(&context.rules, &exchange, &lease, &directives, &[])
        });
        let withheld = usage_preferences::withheld(&usage, self.purpose);
        if withheld.is_some() {
            document.drop_own_words();
        }
        let is_seed = scope.is_seed(&lease.url);
        if let (true, Some(Ok(target))) = (is_seed, exchange.redirect_target()) {
            document.findings.joins_scope = Some(target);
        }
        let entry = document.findings.entry.take();
        document.findings.entry = self.index_entry(
            &lease,
            &exchange,
            (&document, entry),
            (past.as_deref(), &scope),
            &usage,
        );
        let (is_only_checked, unread_link_kinds) =
            (context.is_only_checked, context.unread_link_kinds);
        let mut row = PageRow {
            usage: usage_preferences::row(&usage),
            withheld,
            round: self.visits.round.number,
            render: rendering.row().cloned(),
            ..page_row(&lease, context, &exchange, &document)
        };
        redact_row(&self.policy.secrets, &mut row);
        let mut findings = document.findings;
        if is_only_checked {
            findings.signal = findings.signal.only_checked();
        }
        if !may_extract(&row) {
            findings.extract_rows.clear();
        }
        let links = findings.links.len() + findings.settled_links;
        self.events.read(&row, links);
        self.drop_known_links(&lease, &mut findings);
        ReadPage {
            lease,
            past,
            host,
            exchange,
            row,
            error: document.error,
            charset: document.charset,
            rendered: rendering.into_kept(),
            decoded_digest: document.decoded_digest,
            body_digest: document.body_digest,
            text_digest: document.text_digest,
            render_need: document.render_need,
            unread_link_kinds,
            declared_state: document.declared_state,
            is_list: document.is_list,
            findings,
        }
    }

    fn document(
        &self,
        page: &FetchedPage,
        early: &mut dyn FnMut(SitemapLinkBatch),
    ) -> ReadDocument {
        if let Some(document) = self.without_reading(page) {
            return document;
        }
        let (lease, exchange) = (&page.lease, &page.exchange);
        let body = match page.rendering.dom() {
            Some(dom) => BodyToRead::of_dom(dom),
            None => self.body(lease, exchange),
        };
        let robots = Some(&page.context.rules.robots);
        let cache = (&self.known_links, self.settled_at(lease));
        let mut links = DocumentLinkCollector::new(lease, &page.scope, &self.policy, robots, cache);
        // A URL in scope is requested for its status alone only if it is in a trap.
        if page.context.is_only_checked && page.scope.holds(&lease.url) {
            links.follow_none();
        }
        let mut document = match self.by_kind(page, &body, &mut links, early) {
            Ok(document) if !document.is_read() => return document,
            Ok(document) => document,
            Err(found) => return ReadDocument::with_error(DocumentError::InPlace(found)),
        };
        if is_successful(exchange) {
            if document.decoded_digest.is_none() {
                let decoded = body.decoded.as_ref();
                let as_sent = decoded.filter(|_| page.rendering.dom().is_none());
                document.decoded_digest = self.decoded_digest(exchange, as_sent);
            }
            let end = body.decoded.as_ref().map(|decoded| &decoded.end);
            if let Some(broken) = end.filter(|end| **end != DecodeEnd::Whole) {
                document.error = Some(DocumentError::Coding(broken.clone()));
            }
            let bar = document.bar.take();
            let nofollow = || self.directives(exchange, &[]).nofollow.map(page_refusal);
            if document.unwanted.is_none() {
                links.of_headers(exchange, &self.limits, || bar.or_else(nofollow));
            }
            if lease.kind != UrlKind::Sitemap {
                let unwanted = || content_filter::after_reading(&self.wanted, exchange, body.kind);
                document.unwanted = document.unwanted.or_else(unwanted);
            }
        }
        if body.kind != ContentKind::Html || exchange.truncated.is_some() {
            document.render_need = RenderNeed::Never;
        }
        document.detected_type = body.detected_type;
        document.echoes_secret |= self.echoes_secret(exchange, body.bytes());
        links.finish(document)
    }

    /// Returns the result if the headers alone decide it: a redirect, an interstitial, or a
    /// document that the content filter drops. `None` if the body must be read.
    fn without_reading(&self, page: &FetchedPage) -> Option<ReadDocument> {
        let (lease, exchange) = (&page.lease, &page.exchange);
        if let Some(target) = exchange.redirect_target() {
            return Some(self.redirect(lease, target, &page.scope));
        }
        // An interstitial may be recognized by the headers alone, so check documents of any type.
        let none = InterstitialSigns::default();
        if let Some(found) = interstitial(exchange.status, &exchange.headers, &none) {
            return Some(ReadDocument::with_error(DocumentError::InPlace(found)));
        }
        let is_judged = is_successful(exchange) && lease.kind != UrlKind::Sitemap;
        let unwanted = is_judged.then(|| content_filter::before_reading(&self.wanted, exchange));
        Some(ReadDocument {
            unwanted: Some(unwanted.flatten()?),
            ..ReadDocument::default()
        })
    }

    /// Decodes a body, if its type may be read, and detects its type.
    fn body<'a>(&self, lease: &Lease, exchange: &'a Exchange) -> BodyToRead<'a> {
        let content_type = content_type(&exchange.headers);
        let is_sitemap = is_successful(exchange) && lease.kind == UrlKind::Sitemap;
        let is_indexed = || {
            self.may_index(lease, exchange)
                && (self.documents).may_be_read(content_type.as_deref(), lease.url.path())
        };
        // A body that must not be read, such as one declared as an image, isn't decoded either.
        let decoded = (is_sitemap || may_be_read(content_type.as_deref()) || is_indexed())
            .then(|| self.decoded(exchange));
        let is_coded = exchange.headers.contains_key(CONTENT_ENCODING);
        BodyToRead {
            detected_type: match &decoded {
                None if is_coded => None,
                None => sniff_media_type(&exchange.body),
                Some(decoded) => sniff_media_type(&decoded.bytes),
            },
            kind: match &decoded {
                None => ContentKind::Media,
                Some(decoded) => document_kind(content_type.as_deref(), &decoded.bytes),
            },
            content_type,
            decoded,
        }
    }

    /// Reads a body according to its kind. Returns an error if the server sent an interstitial
    /// instead of the page.
    fn by_kind(
        &self,
        page: &FetchedPage,
        body: &BodyToRead<'_>,
        links: &mut DocumentLinkCollector<'_>,
        early: &mut dyn FnMut(SitemapLinkBatch),
    ) -> Result<ReadDocument, Interstitial> {
        let (lease, exchange) = (&page.lease, &page.exchange);
        let rules = &page.context.rules;
        let content_type = body.content_type.as_deref();
        let is_page = is_successful(exchange);
        let sitemap = body.decoded.as_ref();
        let sitemap = sitemap.filter(|_| is_page && lease.kind == UrlKind::Sitemap);
        let sitemap =
            sitemap.and_then(|decoded| self.sitemap(links, &decoded.bytes, content_type, early));
        if let Some(sitemap) = sitemap {
            return Ok(sitemap);
        }
        let mut document = ReadDocument::default();
        match body.kind {
            ContentKind::Html if matches!(page.rendering, PageSourceToRead::IfHtml) => {
                return Ok(ReadDocument::scripted(UnrenderedPageSummary::default()));
            }
            ContentKind::Html => {
                let compared = self.compared(page, body.decoded.as_ref());
                return self.html(page, body, links, compared);
            }
            ContentKind::Feed if is_page => {
                document = self.feed(links, body.bytes(), content_type);
            }
            ContentKind::Css if is_page => {
                links.of_style_sheet(body.bytes(), content_type, &self.limits);
            }
            _ if is_page && lease.kind == UrlKind::Page => {
                let kind = || {
                    let path = lease.url.path();
                    self.documents.kind(content_type, path, body.bytes())
                };
                match self.may_index(lease, exchange).then(kind).flatten() {
                    Some(kind) => {
                        document = self.other_document(links, rules, exchange, body.bytes(), kind);
                    }
                    None => document.findings.signal = TrapEvidence::Other,
                }
            }
            _ => {}
        }
        Ok(document)
    }

    /// Returns whether a document may be indexed.
    fn may_index(&self, lease: &Lease, exchange: &Exchange) -> bool {
        self.index && is_successful(exchange) && lease.kind == UrlKind::Page
    }

    /// Returns whether the body contains one of the operator's secrets, as sent or after decoding.
    fn echoes_secret(&self, exchange: &Exchange, decoded: &[u8]) -> bool {
        let secrets = &self.policy.secrets;
        secrets.are_in(&exchange.body) || secrets.are_in(decoded)
    }

    /// Decodes the content codings of an answer.
    fn decoded(&self, exchange: &Exchange) -> DecodedBody {
        let codings = exchange.headers.get_all(CONTENT_ENCODING);
        decode(codings, &exchange.body, &self.decode)
    }

    /// Returns the digest of a body after decoding. The bytes as sent may differ each time, because
    /// a gzip header contains a time and some servers add random bytes.
    fn decoded_digest(&self, exchange: &Exchange, decoded: Option<&DecodedBody>) -> Option<String> {
        if !exchange.headers.contains_key(CONTENT_ENCODING) {
            return None;
        }
        let image = || Cow::Owned(self.decoded(exchange));
        let decoded = decoded.map_or_else(image, Cow::Borrowed);
        let is_whole = decoded.end == DecodeEnd::Whole;
        is_whole.then(|| DigestAlgorithm::default().of(&[&decoded.bytes]))
    }

    /// Returns the statements of the site, the headers and the page about the use of the page.
    fn usage(
        &self,
        rules: &CompiledRobots,
        exchange: &Exchange,
        lease: &Lease,
        directives: &PageDirectives,
        metas: &[NamedMeta],
    ) -> UsageStatements {
        let path = lease.url.path_and_query();
        let metas: Vec<_> = pairs(metas).collect();
        usage_preferences::statements(rules, path, exchange, directives, &metas)
    }

    pub(crate) fn directives(&self, exchange: &Exchange, metas: &[NamedMeta]) -> PageDirectives {
        directives(&exchange.headers, metas, &self.agent, self.profile)
    }
}

/// A page that was not read.
#[derive(Debug)]
pub(crate) enum UnreadPage {
    /// Reading was stopped, or is left to other threads.
    LeftOut(Box<FetchedPage>),
    /// The page is rendered first, because scripts seem to build it, or because it turned out to be
    /// HTML. Contains a description of the page before its scripts run.
    Scripted(Box<FetchedPage>, UnrenderedPageSummary),
}

/// The body of an answer, and the facts needed for reading it.
struct BodyToRead<'a> {
    content_type: Option<Cow<'a, str>>,
    /// The body after content decoding. `None` if the body is not read.
    decoded: Option<DecodedBody>,
    kind: ContentKind,
    /// The media type detected from the bytes of the body.
    detected_type: Option<&'static str>,
}

impl BodyToRead<'_> {
    /// Returns the body of a rendered page: its serialized DOM.
    fn of_dom(dom: &str) -> BodyToRead<'static> {
        BodyToRead {
            content_type: Some(Cow::Borrowed("text/html; charset=utf-8")),
            decoded: Some(DecodedBody {
                bytes: dom.as_bytes().to_vec().into(),
                end: DecodeEnd::Whole,
            }),
            kind: ContentKind::Html,
            detected_type: Some("text/html"),
        }
    }

    /// Returns the decoded bytes, empty if the body is not read.
    fn bytes(&self) -> &[u8] {
        self.decoded
            .as_ref()
            .map_or(&[][..], |decoded| &decoded.bytes)
    }
}

/// Returns whether an answer has a 2xx status, and so contains a document.
fn is_successful(exchange: &Exchange) -> bool {
    (200..300).contains(&exchange.status)
}
