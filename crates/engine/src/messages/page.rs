//! A page on its way from the fetcher to the disk: one type for each stage.

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

/// The context of a URL before it is asked for.
#[derive(Clone, Debug)]
pub(crate) struct FetchContext {
    /// The verdict of robots.txt.
    pub(crate) robots: RobotsVerdict,
    /// The rules of its origin then.
    pub(crate) rules: Arc<CompiledRobots>,
    /// The state that its last visit left.
    pub(crate) past: Option<Box<PreviousVisit>>,
    /// The label of the seed in whose area it lies.
    pub(crate) label: Option<Arc<str>>,
}

impl FetchContext {
    /// The validators of the copy that is held, so that the server may answer 304.
    pub(super) fn validators(&self) -> Validators {
        let past = self.past.as_deref();
        past.map_or_else(Validators::default, PreviousVisit::validators)
    }
}

/// A page that was fetched: its exchange is to be read.
#[derive(Debug)]
pub(crate) struct FetchedPage {
    /// The lease of the URL.
    pub(crate) lease: Lease,
    /// Its context before it was asked for.
    pub(crate) context: FetchContext,
    /// The exchange.
    pub(crate) exchange: Box<Exchange>,
    /// The scope in force when the exchange ended.
    pub(crate) scope: Arc<Scope>,
    /// The host's politeness as of the end of the exchange.
    pub(crate) host: HostState,
}

/// The visit of a URL, as it is settled.
#[derive(Debug)]
pub(crate) struct PageVisit {
    /// The lease of the URL.
    pub(crate) lease: Lease,
    /// The outcome that it is settled with.
    pub(crate) outcome: Outcome,
    /// The row for `pages.jsonl`; the writer adds the archive's place.
    pub(crate) row: Box<PageRow>,
    /// False where no row is written: what was a guess is not there, and was not before.
    pub(crate) is_listed: bool,
    /// The difference to what its last visit found.
    pub(crate) change: Option<Change>,
    /// The state that it leaves for the next.
    pub(crate) next: Visit,
    /// The host's state.
    pub(crate) host: HostState,
}

/// A URL that never answered, settled for good.
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
    /// A page that was asked for in vain.
    pub(crate) fn failed(
        lease: Lease,
        context: FetchContext,
        failure: &Failure,
        host: HostState,
    ) -> UnansweredVisit {
        let took = failure.ended.since(failure.started);
        let why = failure.name().to_owned();
        let error = format!("{why}: {}", failure.detail);
        UnansweredVisit::new(lease, context, (failure.started, took), (why, error), host)
    }

    /// A page that is not asked for any more, since the process died of it time and again.
    pub(crate) fn given_up(
        lease: Lease,
        context: FetchContext,
        now: Tick,
        why: &str,
        host: HostState,
    ) -> UnansweredVisit {
        let why = (why.to_owned(), why.to_owned());
        UnansweredVisit {
            result: VisitResult::Deadly,
            ..UnansweredVisit::new(lease, context, (now, Duration::ZERO), why, host)
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

    /// Its visit, with what it leaves for the next.
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

/// When a page was visited, by its row, in seconds since the Unix epoch.
pub(crate) fn visited_at(row: &PageRow) -> u32 {
    seconds(Tick::from_micros(row.fetched_at.as_micros()))
}

/// The findings in a document, for the writer.
#[derive(Debug, Default)]
pub(crate) struct PageFindings {
    /// When URLs that it names changed, by its own word, in seconds since the Unix epoch.
    pub(crate) modified: Vec<(CanonicalUrl, u32)>,
    /// The evidence for traps.
    pub(crate) signal: TrapSignal,
    /// Its entry for the search index.
    pub(crate) entry: Option<IndexEntry>,
    /// Its links, named and judged by scope.
    pub(crate) links: Vec<Admission>,
    /// Links that are not among them, since their targets are settled.
    pub(crate) settled_links: usize,
    /// The number of the last commit by which links were left out that are known.
    pub(crate) looked_at: Option<u64>,
    /// Rows for `links.jsonl`.
    pub(crate) link_rows: Vec<LinkRow>,
    /// Its links that name nothing a crawler can ask for, by reason.
    pub(crate) unusable: HashMap<&'static str, u64>,
    /// The target of a seed's redirect, whose host joins the scope.
    pub(crate) joins_scope: Option<CanonicalUrl>,
}

/// The parts of a page that nobody needs once it is committed. The readers free them: to free what
/// another thread allocated takes long, and there is one writer.
#[expect(dead_code, reason = "it is let go of, and not read")]
#[derive(Debug, Default)]
pub(crate) struct UsedPage {
    /// The row, where nobody takes it.
    pub(crate) row: Option<Box<PageRow>>,
    /// Its line.
    pub(crate) line: Option<PageLine>,
    /// The evidence for traps.
    pub(crate) signal: TrapSignal,
    /// The links that were admitted.
    pub(crate) links: Vec<Admission>,
}

/// Links of a long sitemap, which go to the writer ahead of it: they are admitted, and the sitemap
/// is settled with the last of them.
#[derive(Debug, Default)]
pub(crate) struct LinkBatch {
    /// Named and judged by scope.
    pub(crate) links: Vec<Admission>,
    /// When some of them changed, as in [`PageFindings`].
    pub(crate) modified: Vec<(CanonicalUrl, u32)>,
    /// Of the memory for links, until they are committed.
    pub(crate) held: Option<BytePass>,
}

/// A page that was read and encoded: the writer makes it durable.
#[derive(Debug)]
pub(crate) struct EncodedPage {
    /// Its visit.
    pub(crate) visit: PageVisit,
    /// Its row, for a page that the writer adds nothing to but the archive's place.
    pub(crate) line: Option<PageLine>,
    /// The findings in it.
    pub(crate) findings: PageFindings,
    /// Records for the archive, where there is one.
    pub(crate) capture: Option<EncodedCapture>,
    /// Bounds on memory, held until the page is written.
    pub(crate) held: HeldMemory,
}

/// The memory that a page on its way to the disk counts against. Dropping it gives it back.
#[derive(Debug, Default)]
pub(crate) struct HeldMemory {
    /// Of a long body, until its records are written.
    #[expect(dead_code, reason = "held for its drop alone")]
    pub(crate) body: BodyMemory,
    /// Of what the index is told, until that is written.
    pub(crate) entry: Option<BytePass>,
    /// Of its links, until they are committed.
    pub(crate) links: Option<BytePass>,
}

/// The evidence of a page for traps.
#[derive(Debug, Default)]
pub(crate) enum TrapSignal {
    /// A page of text.
    Text(Box<PageFingerprint>),
    /// A redirect.
    Redirect(CanonicalUrl),
    /// Something else that was kept.
    Other,
    /// An error, nothing, or no page that counts.
    #[default]
    Nothing,
}

/// A row before anything is known of the answer.
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
