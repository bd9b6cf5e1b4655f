//! From a fetched page to an encoded one: row, links, records. Runs on reader threads.

pub(crate) mod archive_encoder;
mod document;
mod document_queue;
mod documents;
mod link_cache;
mod link_names;
mod links;
mod main_text;
mod other_documents;
pub(crate) mod pool;
mod sitemap_budget;
mod trap_evidence;
mod without_page;

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
use crawl_fetcher::{Exchange, PageOutline, Truncation, interstitial};
use crawl_frontier::{Frontier, Lease, UrlKind};
use crawl_index_entry::IndexEntry;
use crawl_policy::usage::{UsagePurpose, UsageStatements};
use crawl_policy::{PageDirectives, ProductToken, Profile};
use crawl_sample::SampleMethod;
use crawl_scope::ContentFilter;
use crawl_weburl::CanonicalUrl;
use http::header::CONTENT_ENCODING;

use self::document::{DocumentError, ReadDocument, ReadPage};
use self::link_cache::LinkCache;
use self::links::{LinkPolicy, Links, page_refusal};
use self::sitemap_budget::SitemapBudget;
use crate::config::{Config, TrapRules};
use crate::content_filter;
use crate::document_reader::DocumentRules;
use crate::index::entry::{directives, left_out, pairs};
use crate::messages::page::{
    FetchedPage, LinkBatch, PageFindings, TrapSignal, redirect_target, row_without_answer,
};
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
    /// Held while a long sitemap is read, by one thread of all.
    pub(crate) sitemap_turn: Arc<Mutex<()>>,
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
            sitemap_turn: Arc::default(),
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
        if document.is_given_up {
            return Err(page);
        }
        let FetchedPage {
            lease,
            mut context,
            exchange,
            scope,
            host,
        } = *page;
        let mut past = context.past.take();
        if let Some(past) = &mut past {
            past.note_text(document.past_text_digest);
        }
        let said = document.usage.unwrap_or_else(|| {
            let directives = self.directives(&exchange, &[]);
            self.usage(&context.rules, &exchange, &lease, &directives, &[])
        });
        let withheld = usage::withheld(&said, self.purpose);
        let (mut title, mut findings) = (document.title, document.findings);
        if withheld.is_some() {
            // They are the page's own words.
            title = None;
            findings
                .link_rows
                .iter_mut()
                .for_each(|row| row.text = None);
        }
        let is_seed = scope.is_seed(&lease.url);
        if let (true, Some(Ok(target))) = (is_seed, redirect_target(&exchange)) {
            findings.joins_scope = Some(target);
        }
        let passing = document
            .error
            .as_ref()
            .is_some_and(DocumentError::is_passing);
        // What broke off or can't be decoded says less than what was there before.
        let is_undecoded = document
            .error
            .as_ref()
            .is_some_and(DocumentError::is_undecoded);
        let broke_off = is_undecoded && past.is_some()
            || exchange
                .truncated
                .is_some_and(|cut| cut != Truncation::Length);
        let entry = findings.entry.take();
        let entry = entry.filter(|_| !(broke_off && past.is_some()));
        let unwanted = document.unwanted.map(|why| why.to_string());
        findings.entry = match &unwanted {
            Some(_) => (self.index && lease.kind == UrlKind::Page)
                .then(|| left_out(&lease.url, "unwanted")),
            None => entry.or_else(|| match passing || broke_off {
                true => None,
                false => self.without_page(&lease, &exchange, &said),
            }),
        };
        // Then nobody wanted the rest.
        let cut = exchange.truncated.filter(|cut| {
            unwanted.is_none() || !matches!(cut, Truncation::Length | Truncation::Unwanted)
        });
        let mut row = PageRow {
            status: Some(exchange.status),
            bytes: exchange.body.len() as u64,
            // A 304 has no body, so its Content-Type describes nothing (docs/recrawl.md).
            content_type: content_type(&exchange)
                .filter(|_| exchange.status != 304)
                .map(Cow::into_owned),
            detected_type: document.detected_type.map(str::to_owned),
            charset: document.charset.map(str::to_owned),
            language: document.language,
            title,
            indexed: findings.entry.as_ref().map(|entry| match entry {
                IndexEntry::Put(page) => page.gives_way().unwrap_or_else(|| "yes".to_owned()),
                IndexEntry::Drop { why, .. } => why.clone(),
            }),
            redirect: match &findings.signal {
                TrapSignal::Redirect(target) => Some(target.to_string()),
                _ => None,
            },
            canonical: document.canonical.map(|url| url.to_string()),
            usage: usage::row(&said),
            withheld,
            unwanted,
            echoes_secret: document.echoes_secret,
            error: row_error(document.error.as_ref(), cut),
            round: self.visits.round.number,
            ..row_without_answer(&lease, context, exchange.started, exchange.took())
        };
        redact_row(&self.policy.secrets, &mut row);
        let links = findings.links.len() + findings.settled_links;
        self.events.read(&row, links);
        self.leave_out_known(&lease, &mut findings);
        Ok(ReadPage {
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
        })
    }

    fn document(&self, page: &FetchedPage, early: &mut dyn FnMut(LinkBatch)) -> ReadDocument {
        let (lease, exchange, scope) = (&page.lease, &page.exchange, &page.scope);
        let rules = &page.context.rules;
        if let Some(target) = redirect_target(exchange) {
            return self.redirect(lease, target, scope);
        }
        let is_page = (200..300).contains(&exchange.status);
        // Guards say in a header what they answer, whatever the document is.
        let none = PageOutline::default();
        if let Some(found) = interstitial(exchange.status, &exchange.headers, &none) {
            return ReadDocument::with_error(DocumentError::InPlace(found));
        }
        let is_judged = is_page && lease.kind != UrlKind::Sitemap;
        if is_judged && let Some(why) = content_filter::before_reading(&self.wanted, exchange) {
            return ReadDocument {
                unwanted: Some(why),
                ..ReadDocument::default()
            };
        }
        let content_type = content_type(exchange);
        let content_type = content_type.as_deref();
        let is_sitemap = is_page && lease.kind == UrlKind::Sitemap;
        // What goes into the index alone.
        let may_index = self.index && is_page && lease.kind == UrlKind::Page;
        let path = lease.url.path();
        let is_indexed = || may_index && self.documents.may_be_read(content_type, path);
        // What says that it is an image is neither decoded nor looked into.
        let decoded = (is_sitemap || may_be_read(content_type) || is_indexed())
            .then(|| self.decoded(exchange));
        let bytes = decoded.as_ref().map_or(&[][..], |decoded| &decoded.bytes);
        let echoes_secret = self.echoes_secret(exchange, bytes);
        let is_coded = exchange.headers.contains_key(CONTENT_ENCODING);
        let detected_type = match &decoded {
            None if is_coded => None,
            None => looks_like(&exchange.body),
            Some(decoded) => looks_like(&decoded.bytes),
        };
        let kind = match decoded {
            None => Document::Media,
            Some(_) => what_is(content_type, bytes),
        };
        let robots = Some(&rules.robots);
        let known = (&self.known_links, self.settled_at(lease));
        let mut links = Links::new(lease, scope, &self.policy, robots, known);
        let mut document = ReadDocument::default();
        let sitemap = decoded.as_ref().filter(|_| is_sitemap);
        let sitemap = sitemap
            .and_then(|decoded| self.sitemap(&mut links, &decoded.bytes, content_type, early));
        match (sitemap, kind) {
            (Some(sitemap), _) => document = sitemap,
            (None, Document::Html) => {
                let compared = self.compared(page, decoded.as_ref());
                match self.html(&mut links, rules, exchange, bytes, compared) {
                    Ok(page) if page.is_given_up => return page,
                    Ok(page) => document = page,
                    Err(found) => return ReadDocument::with_error(DocumentError::InPlace(found)),
                }
            }
            (None, Document::Feed) if is_page => {
                document = self.feed(&mut links, bytes, content_type);
            }
            (None, Document::Css) if is_page => {
                links.of_style_sheet(bytes, content_type, &self.limits);
            }
            _ if is_page && lease.kind == UrlKind::Page => {
                let kind = may_index.then(|| self.documents.kind(content_type, path, bytes));
                match kind.flatten() {
                    Some(kind) => {
                        document = self.other_document(&mut links, rules, exchange, bytes, kind);
                        if document.is_given_up {
                            return document;
                        }
                    }
                    None => document.findings.signal = TrapSignal::Other,
                }
            }
            _ => {}
        }
        if is_page {
            if document.decoded_digest.is_none() {
                document.decoded_digest = self.decoded_digest(exchange, decoded.as_ref());
            }
            let end = decoded.map(|decoded| decoded.end);
            let broken = end.filter(|end| *end != DecodeEnd::Whole);
            document.error = broken.map(DocumentError::Coding).or(document.error);
            let bar = document.bar.take();
            let said = || self.directives(exchange, &[]).nofollow.map(page_refusal);
            if document.unwanted.is_none() {
                links.of_headers(exchange, &self.limits, || bar.or_else(said));
            }
        }
        if is_judged {
            let why = || content_filter::after_reading(&self.wanted, exchange, kind);
            document.unwanted = document.unwanted.or_else(why);
        }
        document.detected_type = detected_type;
        document.echoes_secret |= echoes_secret;
        links.finish(document)
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

fn content_type(exchange: &Exchange) -> Option<Cow<'_, str>> {
    let value = exchange.headers.get(http::header::CONTENT_TYPE)?;
    Some(String::from_utf8_lossy(value.as_bytes()))
}

/// The name of the error in a row.
fn row_error(read: Option<&DocumentError>, cut: Option<Truncation>) -> Option<String> {
    let cut = cut.map(|cut| cut.name().to_owned());
    match read {
        Some(why) if !why.is_cut_short() || cut.is_none() => Some(why.name()),
        _ => cut,
    }
}
