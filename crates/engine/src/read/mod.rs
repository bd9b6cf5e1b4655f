//! From a fetched page to an encoded one: row, links, records. Runs on reader threads.

mod archive_encoder;
mod document;
mod document_queue;
mod documents;
mod index_entry;
mod link_cache;
mod link_names;
mod links;
mod main_text;
mod other_documents;
pub(crate) mod page_encoder;
mod page_row;
pub(crate) mod pool;
mod sitemap_budget;
mod trap_evidence;

use std::borrow::Cow;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use crawl_archive::DigestAlgorithm;
use crawl_archive::rows::PageRow;
use crawl_coding::{DecodeEnd, DecodeLimits, Decoded, decode};
use crawl_extractor::{Document, Limits, Meta, looks_like, may_be_read, what_is};
use crawl_fetcher::robots::CompiledRobots;
use crawl_fetcher::{Exchange, Interstitial, PageOutline, interstitial};
use crawl_frontier::{Frontier, Lease, UrlKind};
use crawl_policy::usage::{UsagePurpose, UsageStatements};
use crawl_policy::{PageDirectives, ProductToken, Profile};
use crawl_sample::SampleMethod;
use crawl_scope::ContentFilter;
use crawl_weburl::CanonicalUrl;
use http::header::CONTENT_ENCODING;

use self::document::{DocumentError, ReadDocument, ReadPage};
use self::link_cache::LinkCache;
use self::links::{LinkPolicy, Links, page_refusal};
use self::page_row::page_row;
use self::sitemap_budget::SitemapBudget;
use crate::config::{Config, TrapRules};
use crate::content_filter;
use crate::document_reader::DocumentRules;
use crate::index::entry::{directives, pairs};
use crate::messages::page::{FetchedPage, LinkBatch, PageFindings, TrapSignal};
use crate::revisit::visit::RevisitSchedule;
use crate::secrets::redact_row;
use crate::shared_traps::SharedTraps;
use crate::trace_events::TraceEvents;
use crate::usage;

/// The part of the configuration that reading needs.
#[derive(Clone)]
pub(crate) struct PageReader {
    pub(crate) agent: ProductToken,
    pub(crate) profile: Profile,
    pub(crate) limits: Limits,
    pub(crate) decode: DecodeLimits,
    pub(crate) policy: LinkPolicy,
    /// The links of documents that were read; each reader thread has its own.
    known_links: RefCell<LinkCache>,
    pub(crate) max_redirects: u8,
    pub(crate) purpose: Option<UsagePurpose>,
    /// The documents that are kept.
    pub(crate) wanted: Arc<ContentFilter>,
    /// True if pages go into a search index.
    pub(crate) index: bool,
    /// The documents that go into it.
    pub(crate) documents: Arc<DocumentRules>,
    pub(crate) traps: TrapRules,
    pub(crate) sitemaps: SitemapBudget,
    /// Held while a long sitemap is read: only one reader thread does so at a time.
    long_sitemap_lock: Arc<Mutex<()>>,
    /// When this round began, in seconds since the Unix epoch, where pages may have been visited
    /// in an earlier one: what a sitemap says of their changes counts.
    pub(crate) revisit: Option<u32>,
    /// The dates of this round, and the rules for the next visits.
    pub(crate) visits: RevisitSchedule,
    /// True once pages are given back as they are, the one that is being read too.
    pub(crate) gives_back: Arc<AtomicBool>,
    /// True if PDF and DOCX are left to other threads: a process of their own may take long to read
    /// them.
    leaves_documents: bool,
    /// True if the main text of a page that is new is to be compared with later: there is no archive
    /// that it could be read back from.
    keeps_texts: bool,
    /// The crawl's directory, where earlier rounds left an archive in it.
    archive: Option<PathBuf>,
    /// True if the writer is to have all links of a page, those that are known too: a random walk
    /// chooses among them.
    keeps_known_links: bool,
    /// The URLs and traps that the crawl knows, where reading asks for them.
    shared: Option<(Arc<dyn Frontier>, SharedTraps)>,
    events: TraceEvents,
}

impl PageReader {
    pub(crate) fn new(config: &Config, visits: &RevisitSchedule) -> PageReader {
        let mut limits = Limits::default();
        if !config.links && !config.index {
            // The texts of links stand in `links.jsonl` and in the index alone.
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
            sitemaps: SitemapBudget::new(config.max_sitemap_urls),
            long_sitemap_lock: Arc::default(),
            visits: *visits,
            revisit: (visits.round.number > 1).then_some(visits.round.began),
            gives_back: Arc::default(),
            leaves_documents: false,
            keeps_texts: config.recrawl && !config.warc,
            archive: (config.warc && visits.round.number > 1).then(|| config.output.clone()),
            keeps_known_links: matches!(config.sample, Some(SampleMethod::Walk(_))),
            shared: None,
            events: TraceEvents::new(config),
        }
    }

    /// Leaves out the links that are known, where traps have a say in links of the page by now: a
    /// reader to which they had none left them out before they could be named otherwise.
    pub(crate) fn leave_out_before_traps(&self, lease: &Lease, findings: &mut PageFindings) {
        if let Some((frontier, traps)) = &self.shared
            && traps.may_change(&lease.url, &findings.links)
        {
            frontier.leave_out_known(&mut findings.links, &mut |_| {});
        }
    }

    /// A reader that leaves no link out, whether it is known or not.
    pub(crate) fn keeping_known_links(self) -> PageReader {
        PageReader {
            keeps_known_links: true,
            ..self
        }
    }

    /// A reader that takes the digest of each page's main text, for a later round.
    pub(crate) fn keeping_texts(self) -> PageReader {
        PageReader {
            keeps_texts: true,
            ..self
        }
    }

    /// A reader that hands back documents which a process of their own reads.
    fn leaving_documents(self) -> PageReader {
        PageReader {
            leaves_documents: true,
            ..self
        }
    }

    /// A reader that asks these what is known already, and leaves the rest to the writer.
    pub(crate) fn asking(self, frontier: Arc<dyn Frontier>, traps: SharedTraps) -> PageReader {
        PageReader {
            shared: Some((frontier, traps)),
            ..self
        }
    }

    /// The frontier's number of reopenings, by which links of a page to its own host are left out
    /// where they are settled; none where traps may name them otherwise.
    fn settled_at(&self, lease: &Lease) -> Option<u64> {
        let (frontier, traps) = self.shared.as_ref()?;
        let has_say = traps.lock().knows_of(&lease.url.host_key());
        (!has_say && !self.keeps_known_links).then(|| frontier.reopenings())
    }

    /// Compares a page with others of its host, and leaves out its links that are known: most are.
    fn leave_out_known(&self, lease: &Lease, findings: &mut PageFindings) {
        let Some((frontier, traps)) = &self.shared else {
            return;
        };
        if let TrapSignal::Text(fingerprint) = &mut findings.signal {
            traps.compare(lease, fingerprint);
        }
        // What a list says of changes is looked up among its links.
        if findings.modified.is_empty()
            && !self.keeps_known_links
            && !traps.may_change(&lease.url, &findings.links)
        {
            let mut known = self.known_links.borrow_mut();
            let settled = &mut |url: &CanonicalUrl| known.note_settled(url);
            findings.looked_at = frontier.leave_out_known(&mut findings.links, settled);
        }
        // The loop asks for the shape of each that is new, and has one thread.
        if traps.rules().traps {
            for link in &findings.links {
                link.url.shape();
            }
        }
    }
}

impl PageReader {
    /// Reads one exchange. A panic in a parser costs this page its links, no more. Links of a long
    /// sitemap are handed to `early` in batches, all but the last ones.
    ///
    /// # Errors
    /// The page as it came, if its reading was stopped or is left to other threads.
    pub(crate) fn read(
        &self,
        page: Box<FetchedPage>,
        early: &mut dyn FnMut(LinkBatch),
    ) -> Result<ReadPage, Box<FetchedPage>> {
        let read = || self.document(&page, early);
        let document = catch_unwind(AssertUnwindSafe(read));
        let document =
            document.unwrap_or_else(|_| ReadDocument::with_error(DocumentError::Panicked));
        match document.is_given_up {
            true => Err(page),
            false => Ok(self.finish(*page, document)),
        }
    }

    /// Completes a page whose document was read: withholds what its site does not let us keep,
    /// chooses its index entry, makes its row and drops links that are known.
    fn finish(&self, page: FetchedPage, mut document: ReadDocument) -> ReadPage {
        let FetchedPage {
            lease,
            mut context,
            exchange,
            scope,
            host,
        } = page;
        let mut past = context.past.take();
        if let Some(past) = &mut past {
            past.note_text(document.past_text_digest.take());
        }
        let usage = document.usage.take().unwrap_or_else(|| {
            let directives = self.directives(&exchange, &[]);
            self.usage(&context.rules, &exchange, &lease, &directives, &[])
        });
        let withheld = usage::withheld(&usage, self.purpose);
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
            past.is_some(),
            &usage,
        );
        let mut row = PageRow {
            usage: usage::row(&usage),
            withheld,
            round: self.visits.round.number,
            ..page_row(&lease, context, &exchange, &document)
        };
        redact_row(&self.policy.secrets, &mut row);
        let mut findings = document.findings;
        let links = findings.links.len() + findings.settled_links;
        self.events.read(&row, links);
        self.leave_out_known(&lease, &mut findings);
        ReadPage {
            lease,
            past,
            host,
            exchange,
            row,
            error: document.error,
            charset: document.charset,
            decoded_digest: document.decoded_digest,
            body_digest: document.body_digest,
            text_digest: document.text_digest,
            said: document.said,
            is_list: document.is_list,
            findings,
        }
    }

    fn document(&self, page: &FetchedPage, early: &mut dyn FnMut(LinkBatch)) -> ReadDocument {
        if let Some(document) = self.without_reading(page) {
            return document;
        }
        let (lease, exchange) = (&page.lease, &page.exchange);
        let body = self.body(lease, exchange);
        let robots = Some(&page.context.rules.robots);
        let known = (&self.known_links, self.settled_at(lease));
        let mut links = Links::new(lease, &page.scope, &self.policy, robots, known);
        let mut document = match self.by_kind(page, &body, &mut links, early) {
            Ok(document) if document.is_given_up => return document,
            Ok(document) => document,
            Err(found) => return ReadDocument::with_error(DocumentError::InPlace(found)),
        };
        if is_successful(exchange) {
            if document.decoded_digest.is_none() {
                document.decoded_digest = self.decoded_digest(exchange, body.decoded.as_ref());
            }
            let end = body.decoded.as_ref().map(|decoded| &decoded.end);
            if let Some(broken) = end.filter(|end| **end != DecodeEnd::Whole) {
                document.error = Some(DocumentError::Coding(broken.clone()));
            }
            let bar = document.bar.take();
            let said = || self.directives(exchange, &[]).nofollow.map(page_refusal);
            if document.unwanted.is_none() {
                links.of_headers(exchange, &self.limits, || bar.or_else(said));
            }
            if lease.kind != UrlKind::Sitemap {
                let why = || content_filter::after_reading(&self.wanted, exchange, body.kind);
                document.unwanted = document.unwanted.or_else(why);
            }
        }
        document.detected_type = body.detected_type;
        document.echoes_secret |= self.echoes_secret(exchange, body.bytes());
        links.finish(document)
    }

    /// Returns the result for an answer whose headers already decide it: a redirect, an
    /// interstitial, or a document that the content filter drops. `None` if the body must be read.
    fn without_reading(&self, page: &FetchedPage) -> Option<ReadDocument> {
        let (lease, exchange) = (&page.lease, &page.exchange);
        if let Some(target) = exchange.redirect_target() {
            return Some(self.redirect(lease, target, &page.scope));
        }
        // Guards say in a header what they answer, whatever the document is.
        let none = PageOutline::default();
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

    /// Decodes a body that may be read and detects its type.
    fn body<'a>(&self, lease: &Lease, exchange: &'a Exchange) -> Body<'a> {
        let content_type = content_type(exchange);
        let is_sitemap = is_successful(exchange) && lease.kind == UrlKind::Sitemap;
        let is_indexed = || {
            self.may_index(lease, exchange)
                && (self.documents).may_be_read(content_type.as_deref(), lease.url.path())
        };
        // A body that is declared an image is neither decoded nor parsed.
        let decoded = (is_sitemap || may_be_read(content_type.as_deref()) || is_indexed())
            .then(|| self.decoded(exchange));
        let is_coded = exchange.headers.contains_key(CONTENT_ENCODING);
        Body {
            detected_type: match &decoded {
                None if is_coded => None,
                None => looks_like(&exchange.body),
                Some(decoded) => looks_like(&decoded.bytes),
            },
            kind: match &decoded {
                None => Document::Media,
                Some(decoded) => what_is(content_type.as_deref(), &decoded.bytes),
            },
            content_type,
            decoded,
        }
    }

    /// Reads a body by its kind. The error is an interstitial in place of the page.
    fn by_kind(
        &self,
        page: &FetchedPage,
        body: &Body<'_>,
        links: &mut Links<'_>,
        early: &mut dyn FnMut(LinkBatch),
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
            Document::Html => {
                let compared = self.compared(page, body.decoded.as_ref());
                return self.html(links, rules, exchange, body.bytes(), compared);
            }
            Document::Feed if is_page => {
                document = self.feed(links, body.bytes(), content_type);
            }
            Document::Css if is_page => {
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
                    None => document.findings.signal = TrapSignal::Other,
                }
            }
            _ => {}
        }
        Ok(document)
    }

    /// Returns whether a document may go into the search index.
    fn may_index(&self, lease: &Lease, exchange: &Exchange) -> bool {
        self.index && is_successful(exchange) && lease.kind == UrlKind::Page
    }

    /// Returns whether a secret is in the body, as it came or without its content codings.
    fn echoes_secret(&self, exchange: &Exchange, decoded: &[u8]) -> bool {
        let secrets = &self.policy.secrets;
        secrets.are_in(&exchange.body) || secrets.are_in(decoded)
    }

    /// The body of an answer without its content codings.
    fn decoded(&self, exchange: &Exchange) -> Decoded {
        let codings = exchange.headers.get_all(CONTENT_ENCODING);
        decode(codings, &exchange.body, &self.decode)
    }

    /// The digest of a body without its codings, which servers may write otherwise each time: a
    /// gzip head holds a time, and some put random bytes into it.
    fn decoded_digest(&self, exchange: &Exchange, decoded: Option<&Decoded>) -> Option<String> {
        if !exchange.headers.contains_key(CONTENT_ENCODING) {
            return None;
        }
        let image = || Cow::Owned(self.decoded(exchange));
        let decoded = decoded.map_or_else(image, Cow::Borrowed);
        let is_whole = decoded.end == DecodeEnd::Whole;
        is_whole.then(|| DigestAlgorithm::default().of(&[&decoded.bytes]))
    }

    /// The preferences about the use of an answer, by the site, the headers and the page.
    fn usage(
        &self,
        rules: &CompiledRobots,
        exchange: &Exchange,
        lease: &Lease,
        directives: &PageDirectives,
        metas: &[Meta],
    ) -> UsageStatements {
        let path = lease.url.path_and_query();
        let metas: Vec<_> = pairs(metas).collect();
        usage::statements(rules, path, exchange, directives, &metas)
    }

    pub(crate) fn directives(&self, exchange: &Exchange, metas: &[Meta]) -> PageDirectives {
        directives(&exchange.headers, metas, &self.agent, self.profile)
    }
}

/// The body of an answer, as it is read.
struct Body<'a> {
    /// The `Content-Type` header.
    content_type: Option<Cow<'a, str>>,
    /// The body without its content codings; `None` if it is not read.
    decoded: Option<Decoded>,
    kind: Document,
    /// The media type that its bytes look like.
    detected_type: Option<&'static str>,
}

impl Body<'_> {
    /// Returns the decoded bytes; none of a body that is not read.
    fn bytes(&self) -> &[u8] {
        self.decoded
            .as_ref()
            .map_or(&[][..], |decoded| &decoded.bytes)
    }
}

/// Returns whether an answer has a document: its status is 2xx.
fn is_successful(exchange: &Exchange) -> bool {
    (200..300).contains(&exchange.status)
}

fn content_type(exchange: &Exchange) -> Option<Cow<'_, str>> {
    let value = exchange.headers.get(http::header::CONTENT_TYPE)?;
    Some(String::from_utf8_lossy(value.as_bytes()))
}
