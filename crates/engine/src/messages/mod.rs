//! The messages between the engine's parts: jobs, events, effects, and the items that the
//! writer makes durable.

pub(crate) mod key;
pub(crate) mod page;
pub(crate) mod sharing;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use crawl_archive::rows::{CommandTaken, DelayRow, HostTurn, PageRow};
use crawl_archive::{EncodedCapture, RequestLine};
use crawl_fetcher::{Exchange, Failure, FetchRequest};
use crawl_frontier::{Admission, Exclusion, Lease, UrlKind};
use crawl_scheduler::{HostSnapshot, Permit, RequestOutcome, Spent};
use crawl_scope::Scope;
use crawl_weburl::{CanonicalUrl, HostKey, Origin};
use tracing::Span;

use self::page::{EncodedPage, FetchContext, FetchedPage, LinkBatch, UnansweredVisit, UsedPage};
use self::sharing::{SharedNews, SharedRequest};
use crate::control::{AnswerSender, CommandAnswer, PostedCommand, Refused, Stop};
use crate::counters::Commit;
use crate::error::EngineError;
use crate::priority::Priority;
use crate::revisit::visit::PreviousVisit;
use crate::summary::SeedFailure;
use crate::totals::Totals;

/// The use of a permit.
#[derive(Debug)]
pub(crate) enum Job {
    /// A leased URL that robots.txt allows.
    Page {
        /// The frontier's lease.
        lease: Lease,
        /// Its context before.
        context: FetchContext,
    },
    /// A request for an origin's robots.txt, or a hop of one.
    Robots {
        /// The origin whose rules are asked for.
        of: Origin,
        /// The request of this hop.
        request: FetchRequest,
        /// Redirects followed so far.
        hop: u8,
    },
    /// A request for an origin's `tdmrep.json`.
    TdmRep {
        /// The origin.
        of: Origin,
        /// The request.
        request: FetchRequest,
        /// The number of times that it was sent before.
        tries: u32,
    },
}

impl Job {
    /// The request that is sent.
    #[must_use]
    pub(crate) fn request(&self) -> FetchRequest {
        match self {
            Job::Page { lease, context } => FetchRequest {
                validators: context.validators(),
                found_on: found_on(lease).cloned(),
                // A sitemap is no page: it says where pages are.
                is_filtered: lease.kind != UrlKind::Sitemap,
                ..FetchRequest::page(lease.url.clone())
            },
            Job::Robots { request, .. } | Job::TdmRep { request, .. } => request.clone(),
        }
    }

    /// The URL that is asked for.
    #[must_use]
    pub(crate) fn url(&self) -> &CanonicalUrl {
        match self {
            Job::Page { lease, .. } => &lease.url,
            Job::Robots { request, .. } | Job::TdmRep { request, .. } => &request.url,
        }
    }
}

/// The document with the link that led here. Nobody followed a link to a seed or a sitemap, and
/// of a redirect's target the page before the redirect is not known.
fn found_on(lease: &Lease) -> Option<&CanonicalUrl> {
    let is_linked = !lease.is_seed && lease.redirects == 0 && lease.kind != UrlKind::Sitemap;
    lease.via.as_ref().filter(|_| is_linked)
}

/// Something that happened. The coordinator knows no other cause.
#[derive(Debug)]
pub(crate) enum Event {
    /// An exchange ended, well or not.
    Fetched(Box<EndedExchange>),
    /// It is known where a request would go, or that nobody can tell.
    AddressFound {
        /// The permit, unused.
        permit: Permit,
        /// The address.
        address: Option<IpAddr>,
    },
    /// A reader began to read a page.
    ReadingBegan {
        /// Bytes of its body.
        bytes: u64,
    },
    /// A page is a document that waits for a process of its own.
    DocumentWaits {
        /// The host that it is from.
        host: HostKey,
        /// Bytes of its body.
        bytes: u64,
    },
    /// A document no longer waits: its page goes to the writer next, or comes back.
    DocumentEnded {
        /// The host that it is from.
        host: HostKey,
        /// Bytes of its body.
        bytes: u64,
    },
    /// A page that no reader had begun to read came back.
    GivenBackUnread(Box<FetchedPage>),
    /// A page that a reader had begun to read came back.
    ReadingStopped(Box<FetchedPage>),
    /// The writer committed a group.
    Committed(Box<Committed>),
    /// It was looked how much is free on the disk.
    FreeSpace {
        /// Bytes.
        bytes: u64,
    },
    /// The world outside asks to end.
    Stop(Stop),
    /// The world outside tells us something, or asks.
    Command(PostedCommand),
    /// It is told of the other workers of the crawl, or of what this one shares with them.
    Shared(SharedNews),
    /// A part of the engine failed; the crawl ends.
    Broken(EngineError),
}

/// An exchange that ended. What follows from it alone is made by the task that had it, as the loop
/// has one thread.
#[derive(Debug)]
pub(crate) struct EndedExchange {
    /// The job that it was for.
    pub(crate) job: Job,
    /// Its permit, spent.
    pub(crate) spent: Spent,
    /// The result.
    pub(crate) result: Result<Box<Exchange>, Failure>,
    /// The span of the exchange, for what is learned from it.
    pub(crate) span: Span,
    /// The signal that it gives of its host.
    pub(crate) signal: RequestOutcome,
    /// Its line of `requests.jsonl`.
    pub(crate) line: Box<RequestLine>,
}

/// An action that the driver takes for the coordinator.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Find out to which address a request for a URL would go.
    FindAddress {
        /// Leave to send that request.
        permit: Permit,
        /// The URL.
        url: CanonicalUrl,
    },
    /// Send a request.
    Fetch {
        /// Leave to send it.
        permit: Permit,
        /// The job that it is for.
        job: Job,
        /// The span that it is sent in.
        span: Span,
    },
    /// Note a request in `requests.jsonl`, before its host gets another permit.
    Log(Box<RequestLine>),
    /// Note the turn of a host in `state/order.jsonl`, before the row of its request and before what
    /// comes of it is committed.
    NoteTurn(HostTurn),
    /// Append an operator's command to `state/order.jsonl`, before its results are committed.
    NoteCommand(CommandTaken),
    /// Note in `state/delays.jsonl` that a delay is another, before it holds.
    NoteDelay(DelayRow),
    /// Note in `state/delays.jsonl` and `crawl.toml` that other rules hold, before they do.
    NoteRules(NewRules),
    /// Read an exchange and hand the result to the writer.
    Read(Box<FetchedPage>),
    /// End the requests under way, and have the readers give back what they have not read.
    GiveUp,
    /// Have the documents given back that wait for a process of their own.
    GiveUpDocuments,
    /// Hand this to the writer.
    Write(WriterMessage),
    /// Ask this of the frontier that workers share.
    Share(SharedRequest),
}

/// The lines of requests that are to be noted.
pub(crate) fn lines_to_log(effects: &[Effect]) -> impl Iterator<Item = &RequestLine> {
    effects.iter().filter_map(|effect| match effect {
        Effect::Log(line) => Some(&**line),
        _ => None,
    })
}

/// Rules that were taken over, and the place for the answer to who asked for it.
#[derive(Debug)]
pub(crate) struct NewRules {
    /// The rules that held until now.
    pub(crate) row: DelayRow,
    /// The text of `crawl.toml`.
    pub(crate) config_text: String,
    pub(crate) answer: AnswerSender,
}

/// The durable form of what a host's budget has spent: the round, pages, bytes, microseconds, eight
/// bytes each.
pub(crate) type StoredBudget = [u8; 32];

/// A host's durable state. Of those in one transaction the newest alone is put into bytes.
#[derive(Clone, Debug)]
pub(crate) struct HostState {
    /// The host.
    pub(crate) host: HostKey,
    /// When it may next be asked, in microseconds UTC.
    pub(crate) wake: u64,
    pub(crate) budget: StoredBudget,
    /// None where nothing is known.
    pub(crate) politeness: Option<HostSnapshot>,
    /// Grows with each state of a run: items overtake each other on their way to the
    /// writer, and an older state must not outlive a newer one.
    pub(crate) sequence: u64,
}

impl HostState {
    /// Budget and politeness, as the store keeps them.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let politeness = self.politeness.as_ref().map(HostSnapshot::encode);
        [&self.budget[..], &politeness.unwrap_or_default()].concat()
    }
}

/// An item that the writer makes durable. Everything in it stands in one transaction.
#[derive(Debug)]
pub(crate) enum WriterMessage {
    /// A URL that was asked for is settled, with its links.
    Page(Box<EncodedPage>),
    /// Links that are admitted ahead of their sitemap.
    Links(LinkBatch),
    /// A URL that did not answer is settled.
    Unanswered(Box<UnansweredVisit>),
    /// A URL goes back to the queue behind the others, one attempt older.
    Retry {
        /// The lease of the URL.
        lease: Lease,
        /// The host's state.
        host: Box<HostState>,
    },
    /// A URL is settled without having been asked for.
    Excluded {
        /// The lease of the URL.
        lease: Lease,
        /// Why.
        exclusion: Exclusion,
        /// The state that its last visit left.
        past: Option<Box<PreviousVisit>>,
    },
    /// A URL is put aside without having been asked for.
    PutAside {
        /// The lease of the URL.
        lease: Lease,
        /// Why.
        exclusion: Exclusion,
    },
    /// URLs go back to other places in their queue, in this order: each lease, and its priority.
    Later(Vec<(Lease, Priority)>),
    /// A URL is settled, and its page asked for under another.
    SameAs {
        /// The lease of the URL.
        lease: Lease,
        /// The other.
        url: CanonicalUrl,
        /// Why.
        exclusion: Exclusion,
    },
    /// A robots.txt exchange.
    Robots(Box<RobotsExchange>),
    /// URLs to start from.
    Seeds(Vec<Admission>),
    /// URLs that were put aside are admitted again, where they may be asked for now.
    TakeBack {
        /// By which those are judged again that lay too deep; none: they are left as they are.
        scope: Option<Arc<Scope>>,
    },
    /// The frame is complete: the sample is drawn from what was put aside for it.
    DrawSample,
    /// Links of other workers to hosts of this one are admitted.
    TakeLinks,
    /// An item was lost on its way; what happened.
    Broken(String),
    /// A host's state, changed by a request that settled nothing.
    Host(Box<HostState>),
    /// A person's command, to be answered when it is durable.
    Order(Ordered),
}

impl WriterMessage {
    /// Returns whether it changes queues and is no page: a replay of a crawl whose order was not
    /// noted counts these.
    pub(crate) fn is_other_change(&self) -> bool {
        match self {
            WriterMessage::Links(_)
            | WriterMessage::Retry { .. }
            | WriterMessage::Later(_)
            | WriterMessage::SameAs { .. }
            | WriterMessage::Robots(_) => true,
            WriterMessage::Page(_)
            | WriterMessage::Unanswered(_)
            | WriterMessage::Excluded { .. }
            | WriterMessage::PutAside { .. }
            | WriterMessage::Seeds(_)
            | WriterMessage::TakeBack { .. }
            | WriterMessage::DrawSample
            | WriterMessage::TakeLinks
            | WriterMessage::Broken(_)
            | WriterMessage::Host(_)
            | WriterMessage::Order(_) => false,
        }
    }

    /// The number of URLs or decisions in it that wait for the disk.
    pub(crate) fn weight(&self) -> u64 {
        match self {
            WriterMessage::Later(leases) => leases.len() as u64,
            WriterMessage::Links(_) => 0,
            _ => 1,
        }
    }
}

/// The durable part of a command, and the place for its answer.
#[derive(Debug)]
pub(crate) struct Ordered {
    pub(crate) order: Order,
    pub(crate) answer: AnswerSender,
}

/// The part of a command that is written before it is answered.
#[derive(Debug)]
pub(crate) enum Order {
    /// A URL is asked for as a seed.
    Add {
        /// The URL.
        seed: Box<Admission>,
        /// It was settled; what is said where it was so in this round.
        refused: Option<Refused>,
    },
    /// These hosts are parked.
    Parked {
        /// Grows with each list of a run.
        number: u64,
        /// All that are parked.
        hosts: Vec<HostKey>,
    },
}

/// A robots.txt exchange, or a decision about an origin's rules.
#[derive(Debug, Default)]
pub(crate) struct RobotsExchange {
    /// Whose rules were asked for: a hop may have led elsewhere.
    pub(crate) of: Option<Origin>,
    /// The origin and its copy as bytes, where the copy changed.
    pub(crate) copy: Option<(Origin, Vec<u8>)>,
    /// The exchange, encoded for the archive by the driver's reader threads.
    pub(crate) exchange: Option<Exchange>,
    /// The purpose of the exchange, as the archive has it.
    pub(crate) purpose: &'static str,
    /// Bytes of its body.
    pub(crate) bytes: u64,
    /// Records for the archive.
    pub(crate) capture: Option<EncodedCapture>,
    /// Sitemaps that the file names.
    pub(crate) sitemaps: Vec<Admission>,
    /// The host's state.
    pub(crate) host: Option<HostState>,
}

/// The outcome of a commit.
#[derive(Debug, Default)]
pub(crate) struct Committed {
    /// Items in the group.
    pub(crate) items: u64,
    /// The parts of it that are counted.
    pub(crate) counts: Commit,
    /// The parts of its pages that nobody needs any more.
    pub(crate) used: Vec<UsedPage>,
    /// Rows that `pages.jsonl` got.
    pub(crate) rows: Vec<PageRow>,
    /// Origins whose queues changed, with what now waits in them.
    pub(crate) origins: Vec<(Origin, u64)>,
    /// Bytes of the bodies of its pages and robots.txt files.
    pub(crate) bytes: u64,
    /// The host of each state in it.
    pub(crate) hosts: Vec<HostKey>,
    /// The origin of each lease among the items that was asked for.
    pub(crate) ended: Vec<Origin>,
    /// True if URLs that were put aside as a trap are to be judged again.
    pub(crate) has_turned: bool,
    /// Leases among the items that each might have become a row of `pages.jsonl`.
    pub(crate) leases: u64,
    /// The crawl's totals as committed.
    pub(crate) totals: Totals,
    /// Seeds that were settled without having been fetched.
    pub(crate) seeds_failed: Vec<SeedFailure>,
    /// Links that name nothing a crawler can ask for, by reason.
    pub(crate) unusable: HashMap<&'static str, u64>,
    /// Whether links of other workers are left that were not admitted yet, or URLs that are to be
    /// reopened; none where they were not asked for.
    pub(crate) leaves_links: Option<bool>,
    /// Origins of which no copy of robots.txt is kept any more: it is to be asked for again.
    pub(crate) without_robots: Vec<Origin>,
    /// Redirects of seeds that other workers met: their targets join the scope.
    pub(crate) targets: Vec<(CanonicalUrl, CanonicalUrl)>,
    /// The results of commands that are durable now.
    pub(crate) answers: Vec<(AnswerSender, Result<CommandAnswer, Refused>)>,
}
