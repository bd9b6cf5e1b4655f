//! A page on its way from the fetcher to the disk, with one type for each stage.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crawl_archive::rows::{LinkRow, PageRow, RobotsVerdict};
use crawl_archive::{EncodedCapture, PageLine, Timestamp};
use crawl_fetcher::robots::CompiledRobots;
use crawl_fetcher::{BodyMemory, Exchange, Failure, Validators};
use crawl_frontier::{Admission, Lease, Outcome, Visit};
use crawl_index_entry::{BytePass, IndexEntry};
use crawl_scheduler::Tick;
use crawl_scope::Scope;
use crawl_traps::PageFingerprint;
use crawl_weburl::CanonicalUrl;

use super::HostState;
use crate::revisit::visit::{PreviousVisit, RevisitSchedule, VisitResult};
use crate::time::{millis, seconds};
use crate::totals::Change;

/// The context of a URL before the fetch.
#[derive(Clone, Debug)]
pub(crate) struct FetchContext {
    /// The verdict of robots.txt.
    pub(crate) robots: RobotsVerdict,
    /// The rules of its origin at that time.
    pub(crate) rules: Arc<CompiledRobots>,
    /// The state from the previous visit.
    pub(crate) past: Option<Box<PreviousVisit>>,
    /// The label of the seed whose area contains the URL.
    pub(crate) label: Option<Arc<str>>,
}

impl FetchContext {
    /// Returns the validators of the stored copy, so that the server may answer 304.
    pub(super) fn validators(&self) -> Validators {
        let past = self.past.as_deref();
        past.map_or_else(Validators::default, PreviousVisit::validators)
    }
}

/// A fetched page that is not read yet.
#[derive(Debug)]
pub(crate) struct FetchedPage {
    /// The lease of the URL.
    pub(crate) lease: Lease,
    /// The context of the URL before the fetch.
    pub(crate) context: FetchContext,
    /// The exchange.
    pub(crate) exchange: Box<Exchange>,
    /// The scope in force when the exchange ended.
    pub(crate) scope: Arc<Scope>,
    /// The host's politeness as of the end of the exchange.
    pub(crate) host: HostState,
}

/// The visit that settles a URL.
#[derive(Debug)]
pub(crate) struct PageVisit {
    pub(crate) lease: Lease,
    /// The outcome to settle the URL with.
    pub(crate) outcome: Outcome,
    /// The row for `pages.jsonl`. The writer adds the archive position.
    pub(crate) row: Box<PageRow>,
    /// Whether to write a row. False for a guessed URL that was absent before and still is.
    pub(crate) is_listed: bool,
    /// How the page differs from its previous visit.
    pub(crate) change: Option<Change>,
    /// The state kept for the next visit.
    pub(crate) next: Visit,
    /// The host's state.
    pub(crate) host: HostState,
}

/// A URL that did not answer and is settled without a page.
#[derive(Debug)]
pub(crate) struct UnansweredVisit {
    /// The lease of the URL.
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
        context: FetchContext,
        failure: &Failure,
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

    /// Creates the visit for a page that is given up because it crashed the process repeatedly.
    pub(crate) fn given_up(
        lease: Lease,
        context: FetchContext,
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
        mut context: FetchContext,
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

    /// Converts to the visit, with the state for the next one.
    pub(crate) fn settled(self, visits: &RevisitSchedule) -> PageVisit {
        let past = self.past.map(|past| *past);
        let at = visited_at(&self.row);
        PageVisit {
            outcome: Outcome::Failed { why: self.why },
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
    /// URLs with the time of their last change according to this document, in seconds since the
    /// Unix epoch.
    pub(crate) modified: Vec<(CanonicalUrl, u32)>,
    /// Evidence for trap detection.
    pub(crate) signal: TrapSignal,
    /// The page's entry for the search index.
    pub(crate) entry: Option<IndexEntry>,
    /// The page's links, canonical and judged by the scope.
    pub(crate) links: Vec<Admission>,
    /// The number of links dropped from `links` because their targets are settled.
    pub(crate) settled_links: usize,
    /// The number of the last commit when known links were dropped.
    pub(crate) looked_at: Option<u64>,
    /// Rows for `links.jsonl`.
    pub(crate) link_rows: Vec<LinkRow>,
    /// Counts of links that are not fetchable URLs, by reason.
    pub(crate) unusable: HashMap<&'static str, u64>,
    /// The target of a seed's redirect. The target's host joins the scope.
    pub(crate) joins_scope: Option<CanonicalUrl>,
}

/// The parts of a page that are no longer needed once it is committed. Reader threads free them:
/// freeing memory that another thread allocated is slow, and there is only one writer.
#[expect(dead_code, reason = "held only to be dropped, never read")]
#[derive(Debug, Default)]
pub(crate) struct UsedPage {
    /// The row, unless a consumer takes it.
    pub(crate) row: Option<Box<PageRow>>,
    /// The encoded row.
    pub(crate) line: Option<PageLine>,
    /// Evidence for trap detection.
    pub(crate) signal: TrapSignal,
    /// The admitted links.
    pub(crate) links: Vec<Admission>,
}

/// Links of a long sitemap that are admitted before the sitemap itself. The sitemap is settled with
/// the last batch.
#[derive(Debug, Default)]
pub(crate) struct LinkBatch {
    /// The links, canonical and judged by the scope.
    pub(crate) links: Vec<Admission>,
    /// The times of changes, as in [`PageFindings`].
    pub(crate) modified: Vec<(CanonicalUrl, u32)>,
    /// The links' share of the memory for links, held until they are committed.
    pub(crate) held: Option<BytePass>,
}

/// A page that was read and encoded, ready for the writer.
#[derive(Debug)]
pub(crate) struct EncodedPage {
    pub(crate) visit: PageVisit,
    /// The encoded row, if the writer adds nothing but the archive position.
    pub(crate) line: Option<PageLine>,
    /// The findings of the reader.
    pub(crate) findings: PageFindings,
    /// The archive records, if the crawl has an archive.
    pub(crate) capture: Option<EncodedCapture>,
    /// Memory reserved for the page, held until the page is written.
    pub(crate) held: HeldMemory,
}

/// The memory reserved for a page on its way to the disk. Dropping it releases the memory.
#[derive(Debug, Default)]
pub(crate) struct HeldMemory {
    /// For a long body, until its records are written.
    #[expect(dead_code, reason = "held only to be dropped")]
    pub(crate) body: BodyMemory,
    /// For the index entry, until the entry is written.
    pub(crate) entry: Option<BytePass>,
    /// For its links, until they are committed.
    pub(crate) links: Option<BytePass>,
}

/// The evidence of a page for the trap detection.
#[derive(Debug, Default)]
pub(crate) enum TrapSignal {
    /// A page with text.
    Text(Box<PageFingerprint>),
    /// A redirect.
    Redirect(CanonicalUrl),
    /// Another kept answer.
    Other,
    /// An error, an empty answer, or a page that does not count.
    #[default]
    Nothing,
}

/// Returns the row of a page with no answer filled in.
pub(crate) fn row_without_answer(
    lease: &Lease,
    context: FetchContext,
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
        echoes_secret: false,
        round: 1,
        change: None,
        differs: None,
        error: None,
        sample: None,
        label: context.label.as_deref().map(str::to_owned),
    }
}
