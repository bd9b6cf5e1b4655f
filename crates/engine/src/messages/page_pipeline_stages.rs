//! The forms of a page on its way from the fetcher to the disk.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crawl_archive::rows::{ExtractRow, LinkRow, PageRow, RobotsVerdict};
use crawl_archive::{EncodedCapture, SerializedPageRow, Timestamp};
use crawl_fetcher::robots::CompiledRobots;
use crawl_fetcher::{BodyMemoryReservation, Exchange, ExchangeFailure, Validators};
use crawl_frontier::{LastVisit, Lease, LeaseOutcome, UrlKind, UrlToAdmit};
use crawl_index_entry::{BytesInTransitPermit, IndexLogEntry};
use crawl_scheduler::Tick;
use crawl_scope::Scope;
use crawl_traps::PageFingerprint;
use crawl_weburl::CanonicalUrl;

use super::HostState;
use super::login::PageLoginSession;
use super::render::PageSourceToRead;
use crate::crawl_totals::PageChange;
use crate::revisit::unread_link_kinds::UnreadLinkKinds;
use crate::revisit::visit::{PreviousVisit, RevisitRules, VisitResult};
use crate::time_conversions::{millis, seconds};

/// The facts about a URL that are determined before it is fetched.
#[derive(Clone, Debug)]
pub(crate) struct FactsBeforeFetch {
    /// The verdict of robots.txt on the URL.
    pub(crate) robots: RobotsVerdict,
    /// The rules of the URL's origin at the time of the verdict.
    pub(crate) rules: Arc<CompiledRobots>,
    /// The stored state from the previous visit of the URL.
    pub(crate) past: Option<Box<PreviousVisit>>,
    /// The kinds of links that this visit leaves unread.
    pub(crate) unread_link_kinds: UnreadLinkKinds,
    /// The label of the seed whose own settings apply to the URL.
    pub(crate) label: Option<Arc<str>>,
    /// Whether only the URL's status matters. True if the URL's links are not followed, because it
    /// is outside the scope or in a trap. HEAD is tried first. If GET is needed, the page is
    /// stored like other pages.
    pub(crate) is_only_checked: bool,
    /// The session of a site that needs a login.
    pub(crate) session: Option<PageLoginSession>,
}

impl FactsBeforeFetch {
    /// Returns whether a URL is requested with HEAD. Later attempts send GET, since some servers
    /// reject HEAD or don't answer it.
    pub(crate) fn is_head(&self, lease: &Lease) -> bool {
        self.is_only_checked && lease.attempt == 1
    }

    /// Returns the validators from the previous visit. If the page has not changed, the server may
    /// answer with 304.
    pub(crate) fn validators(&self) -> Validators {
        let past = self.past.as_deref();
        past.map_or_else(Validators::default, PreviousVisit::validators)
    }
}

/// A fetched page that was not read yet.
#[derive(Debug)]
pub(crate) struct FetchedPage {
    pub(crate) lease: Lease,
    /// The facts about the URL that were determined before the fetch.
    pub(crate) context: FactsBeforeFetch,
    /// The request and its response.
    pub(crate) exchange: Box<Exchange>,
    /// The scope in force when the exchange ended.
    pub(crate) scope: Arc<Scope>,
    /// The state of the page's host when the exchange ended.
    pub(crate) host: HostState,
    pub(crate) rendering: PageSourceToRead,
}

impl FetchedPage {
    /// Returns whether a browser could render the page, if it is HTML.
    pub(crate) fn is_renderable(&self) -> bool {
        let exchange = &self.exchange;
        (200..300).contains(&exchange.status)
            && self.lease.kind == UrlKind::Page
            && !self.context.is_only_checked
            && exchange.truncated.is_none()
            && exchange.redirect_target().is_none()
    }
}

/// A visit that settles a URL.
#[derive(Debug)]
pub(crate) struct SettlingVisit {
    pub(crate) lease: Lease,
    /// The outcome that the URL is settled with.
    pub(crate) outcome: LeaseOutcome,
    /// The row for `pages.jsonl`, without the archive position, which the writer adds.
    pub(crate) row: Box<PageRow>,
    /// Whether to write the row. False for a guessed URL that does not exist now, and did not exist
    /// at the previous visit.
    pub(crate) is_listed: bool,
    /// How the page differs from its previous visit.
    pub(crate) change: Option<PageChange>,
    /// The state to store for the next visit.
    pub(crate) next: LastVisit,
    /// The state of the page's host.
    pub(crate) host: HostState,
}

/// A URL that is settled without an answer, because its request failed or the crawl gave the URL
/// up.
#[derive(Debug)]
pub(crate) struct UnansweredVisit {
    pub(crate) lease: Lease,
    why: String,
    row: Box<PageRow>,
    past: Option<Box<PreviousVisit>>,
    result: VisitResult,
    host: HostState,
}

impl UnansweredVisit {
    /// Creates the visit for a page whose request failed.
    pub(crate) fn failed(
        lease: Lease,
        context: FactsBeforeFetch,
        failure: &ExchangeFailure,
        host: HostState,
    ) -> UnansweredVisit {
        let took = failure.ended.since(failure.started);
        let reason = failure.name().to_owned();
        let error = format!("{reason}: {}", failure.detail);
        UnansweredVisit::new(
            lease,
            context,
            (failure.started, took),
            (reason, error),
            host,
        )
    }

    /// Creates the visit for a page that is given up because it crashed the process several times.
    pub(crate) fn given_up(
        lease: Lease,
        context: FactsBeforeFetch,
        now: Tick,
        why: &str,
        host: HostState,
    ) -> UnansweredVisit {
        let reason = (why.to_owned(), why.to_owned());
        UnansweredVisit {
            result: VisitResult::Deadly,
            ..UnansweredVisit::new(lease, context, (now, Duration::ZERO), reason, host)
        }
    }

    fn new(
        lease: Lease,
        mut context: FactsBeforeFetch,
        (started, took): (Tick, Duration),
        (why, error): (String, String),
        host: HostState,
    ) -> UnansweredVisit {
        let past = context.past.take();
        UnansweredVisit {
            why,
            row: Box::new(PageRow {
                error: Some(error),
                ..row_without_answer(&lease, context, started, took)
            }),
            past,
            result: VisitResult::Unknown,
            lease,
            host,
        }
    }

    /// Converts this into a visit that settles the URL, with the state to store for the next visit.
    pub(crate) fn settled(self, visits: &RevisitRules) -> SettlingVisit {
        let past = self.past.map(|past| *past);
        let at = visited_at(&self.row);
        SettlingVisit {
            outcome: LeaseOutcome::Failed { why: self.why },
            is_listed: true,
            change: None,
            next: visits.after(at, self.lease.kind, past, self.result, None),
            row: self.row,
            lease: self.lease,
            host: self.host,
        }
    }
}

/// Returns when the page in `row` was visited, in seconds since the Unix epoch.
pub(crate) fn visited_at(row: &PageRow) -> u32 {
    seconds(Tick::from_micros(row.fetched_at.as_micros()))
}

/// The findings of a reader in a document.
#[derive(Debug, Default)]
pub(crate) struct PageFindings {
    /// URLs that the document lists, each with the time of its last change according to the
    /// document, in seconds since the Unix epoch.
    pub(crate) modified: Vec<(CanonicalUrl, u32)>,
    /// The page's evidence for trap detection.
    pub(crate) signal: TrapEvidence,
    /// The page's entry for the search index.
    pub(crate) entry: Option<IndexLogEntry>,
    /// The page's links, canonical and judged by the scope.
    pub(crate) links: Vec<UrlToAdmit>,
    /// The number of links not in `links`, because their targets are settled.
    pub(crate) settled_links: usize,
    /// The number of messages that were committed when a reader looked up the page's links. The
    /// reader drops links to URLs that are known at that moment. `None` if no links were looked
    /// up.
    pub(crate) looked_at: Option<u64>,
    /// Rows for `links.jsonl`.
    pub(crate) link_rows: Vec<LinkRow>,
    /// Rows for `extracts.jsonl`.
    pub(crate) extract_rows: Vec<ExtractRow>,
    /// The number of links that are not fetchable URLs, by reason.
    pub(crate) unusable: HashMap<&'static str, u64>,
    /// The target of a redirect from a seed. The target's host joins the scope.
    pub(crate) joins_scope: Option<CanonicalUrl>,
}

/// The parts of a committed page that are no longer needed. Readers free this memory instead of
/// the writer, because there is only one writer, and because freeing memory is slow on another
/// thread than the one that allocated it.
#[expect(dead_code, reason = "held only to be dropped, never read")]
#[derive(Debug, Default)]
pub(crate) struct PageMemoryToFree {
    /// The page's row. `None` if the row is still needed, for a consumer or for trace events.
    pub(crate) row: Option<Box<PageRow>>,
    /// The row in its encoded form.
    pub(crate) line: Option<SerializedPageRow>,
    /// The page's evidence for trap detection.
    pub(crate) signal: TrapEvidence,
    pub(crate) links: Vec<UrlToAdmit>,
}

/// Links of a long sitemap, to be admitted before the sitemap is settled. The last links are
/// admitted together with the sitemap.
#[derive(Debug, Default)]
pub(crate) struct SitemapLinkBatch {
    /// The links, canonical and judged by the scope.
    pub(crate) links: Vec<UrlToAdmit>,
    /// When the linked URLs changed, as in [`PageFindings`].
    pub(crate) modified: Vec<(CanonicalUrl, u32)>,
    /// The memory reserved for the links, released when they are committed.
    pub(crate) held: Option<BytesInTransitPermit>,
}

/// A page that was read and encoded, ready for the writer.
#[derive(Debug)]
pub(crate) struct EncodedPage {
    pub(crate) visit: SettlingVisit,
    /// The encoded row. `None` if the writer must complete it with more than the archive position.
    pub(crate) line: Option<SerializedPageRow>,
    pub(crate) findings: PageFindings,
    /// The archive records of the exchange. `None` if the crawl has no archive.
    pub(crate) capture: Option<EncodedCapture>,
    /// Memory reserved for the page, released when the page is written.
    pub(crate) held: PageMemoryReservation,
}

/// The memory reserved for a page on its way to the disk. Dropping it releases the memory.
#[derive(Debug, Default)]
pub(crate) struct PageMemoryReservation {
    /// Memory for a long body, held until its archive records are written.
    #[expect(dead_code, reason = "held for its drop alone")]
    pub(crate) body: BodyMemoryReservation,
    /// Memory for the index entry, held until the entry is written.
    pub(crate) entry: Option<BytesInTransitPermit>,
    /// Memory for the page's links and fields, held until they are committed.
    pub(crate) links: Option<BytesInTransitPermit>,
}

/// The evidence of a page for trap detection.
#[derive(Debug, Default)]
pub(crate) enum TrapEvidence {
    /// The fingerprint of a page with text.
    Text(Box<PageFingerprint>),
    /// The target of a redirect.
    Redirect(CanonicalUrl),
    /// The target of a redirect that is not followed, since too many redirects in a row led to it.
    CutRedirect(CanonicalUrl),
    /// The target of a redirect from a URL that is only checked. Such a redirect is not used as
    /// evidence.
    CheckedRedirect(CanonicalUrl),
    /// The page was kept, but is neither a redirect nor a page with text.
    Other,
    /// The page is an error, is empty, or does not count as a page.
    #[default]
    Nothing,
}

impl TrapEvidence {
    /// Reduces the evidence to that of a page that is only checked: at most the target of its
    /// redirect. The links of such a page are not followed, so its text is no evidence.
    pub(crate) fn only_checked(self) -> TrapEvidence {
        match self {
            TrapEvidence::Redirect(target) | TrapEvidence::CutRedirect(target) => {
                TrapEvidence::CheckedRedirect(target)
            }
            _ => TrapEvidence::Nothing,
        }
    }
}

/// Returns the row of a page, without the columns that an answer fills in.
pub(crate) fn row_without_answer(
    lease: &Lease,
    context: FactsBeforeFetch,
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
        detected_type: None,
        charset: None,
        language: None,
        digest: None,
        depth: lease.depth,
        hops_off_scope: lease.hops_off,
        via: lease.via.as_ref().map(ToString::to_string),
        redirect: None,
        title: None,
        canonical: None,
        indexed: None,
        robots: Some(context.robots),
        usage: None,
        warc: None,
        record_id: None,
        withheld: None,
        unwanted: None,
        declared_bytes: None,
        echoes_secret: false,
        round: 1,
        change: None,
        differs: None,
        error: None,
        sample: None,
        label: context.label.as_deref().map(str::to_owned),
        render: None,
    }
}
