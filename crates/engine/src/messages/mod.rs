//! The messages between the parts of the engine: jobs, events, effects, and the items that the
//! writer commits.

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
        /// The context of the URL before the fetch.
        context: FetchContext,
    },
    /// A request for an origin's robots.txt, or one redirect hop of it.
    Robots {
        /// The origin whose rules are fetched.
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
        /// How often the request was sent before.
        tries: u32,
    },
}

impl Job {
    /// Returns the request to send.
    #[must_use]
    pub(crate) fn request(&self) -> FetchRequest {
        match self {
            Job::Page { lease, context } => FetchRequest {
                validators: context.validators(),
                found_on: found_on(lease).cloned(),
                // A sitemap is not a page: it only lists pages, so the content filter does not
                // apply.
                is_filtered: lease.kind != UrlKind::Sitemap,
                ..FetchRequest::page(lease.url.clone())
            },
            Job::Robots { request, .. } | Job::TdmRep { request, .. } => request.clone(),
        }
    }

    /// Returns the URL to fetch.
    #[must_use]
    pub(crate) fn url(&self) -> &CanonicalUrl {
        match self {
            Job::Page { lease, .. } => &lease.url,
            Job::Robots { request, .. } | Job::TdmRep { request, .. } => &request.url,
        }
    }
}

/// Returns the document that linked here. `None` for seeds and sitemaps, which no link led to, and
/// for redirect targets, since the page before the redirect is not known.
fn found_on(lease: &Lease) -> Option<&CanonicalUrl> {
    let is_linked = !lease.is_seed && lease.redirects == 0 && lease.kind != UrlKind::Sitemap;
    lease.via.as_ref().filter(|_| is_linked)
}

/// An input of the coordinator. Nothing else makes it act.
#[derive(Debug)]
pub(crate) enum Event {
    /// An exchange ended, successfully or not.
    Fetched(Box<EndedExchange>),
    /// The address of a request was looked up.
    AddressFound {
        /// The permit, still unused.
        permit: Permit,
        /// The address. `None` if it can't be determined.
        address: Option<IpAddr>,
    },
    /// A reader started on a page.
    ReadingBegan {
        /// Length of the page's body.
        bytes: u64,
    },
    /// A page is a document that waits for a reading process.
    DocumentWaits {
        /// The host of the document.
        host: HostKey,
        /// Length of its body.
        bytes: u64,
    },
    /// A document no longer waits: its page goes to the writer next, or is given back.
    DocumentEnded {
        /// The host of the document.
        host: HostKey,
        /// Length of its body.
        bytes: u64,
    },
    /// A page that no reader had started on was given back.
    GivenBackUnread(Box<FetchedPage>),
    /// A page that a reader had started on was given back.
    ReadingStopped(Box<FetchedPage>),
    /// The writer committed a group.
    Committed(Box<Committed>),
    /// The free disk space was measured.
    FreeSpace {
        /// Bytes.
        bytes: u64,
    },
    /// The run was requested to stop.
    Stop(Stop),
    /// An operator's command or query.
    Command(PostedCommand),
    /// News about the crawl's other workers, or about state shared with them.
    Shared(SharedNews),
    /// A part of the engine failed, so the crawl ends.
    Broken(EngineError),
}

/// An exchange that ended. The fetching task computes everything that follows from the exchange
/// alone, to spare the single thread of the crawl loop.
#[derive(Debug)]
pub(crate) struct EndedExchange {
    /// The job that it was sent for.
    pub(crate) job: Job,
    /// The spent permit.
    pub(crate) spent: Spent,
    /// The result.
    pub(crate) result: Result<Box<Exchange>, Failure>,
    /// The span of the exchange.
    pub(crate) span: Span,
    /// The scheduler's signal about the host.
    pub(crate) signal: RequestOutcome,
    /// The row for `requests.jsonl`.
    pub(crate) line: Box<RequestLine>,
}

/// An action that the driver performs for the coordinator.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Look up the address that a request for a URL would go to.
    FindAddress {
        /// The permit to send that request.
        permit: Permit,
        /// The URL.
        url: CanonicalUrl,
    },
    /// Send a request.
    Fetch {
        /// The permit to send it.
        permit: Permit,
        /// The job that the request is for.
        job: Job,
        /// The span to send it in.
        span: Span,
    },
    /// Write a request to `requests.jsonl` before its host gets another permit.
    Log(Box<RequestLine>),
    /// Write a host's turn to `state/order.jsonl` before the row of its request is written and
    /// before its results are committed.
    NoteTurn(HostTurn),
    /// Append an operator's command to `state/order.jsonl`, before its results are committed.
    NoteCommand(CommandTaken),
    /// Write a changed delay to `state/delays.jsonl` before it takes effect.
    NoteDelay(DelayRow),
    /// Write changed rules to `state/delays.jsonl` and `crawl.toml` before they take effect.
    NoteRules(NewRules),
    /// Read the page of an exchange and hand the result to the writer.
    Read(Box<FetchedPage>),
    /// Abort in-flight requests, and have the readers give back pages they have not read.
    GiveUp,
    /// Have documents that wait for a reading process given back.
    GiveUpDocuments,
    /// Hand a message to the writer.
    Write(WriterMessage),
    /// Send a request to the shared frontier.
    Share(SharedRequest),
}

/// Returns the request rows in `effects` that must be written.
pub(crate) fn lines_to_log(effects: &[Effect]) -> impl Iterator<Item = &RequestLine> {
    effects.iter().filter_map(|effect| match effect {
        Effect::Log(line) => Some(&**line),
        _ => None,
    })
}

/// Changed rules, and where to send the answer to the command that changed them.
#[derive(Debug)]
pub(crate) struct NewRules {
    /// The rules in force before.
    pub(crate) row: DelayRow,
    /// The new text of `crawl.toml`.
    pub(crate) config_text: String,
    pub(crate) answer: AnswerSender,
}

/// The durable form of what a host's budget has spent: round, pages, bytes and microseconds, eight
/// bytes each.
pub(crate) type StoredBudget = [u8; 32];

/// A host's durable state. Only the newest state in a transaction is encoded.
#[derive(Clone, Debug)]
pub(crate) struct HostState {
    /// The host.
    pub(crate) host: HostKey,
    /// The earliest time of its next request, in microseconds UTC.
    pub(crate) wake: u64,
    pub(crate) budget: StoredBudget,
    /// `None` if nothing is known yet.
    pub(crate) politeness: Option<HostSnapshot>,
    /// Increases with each state in a run. Messages overtake each other on their way to the writer,
    /// and an older state must not replace a newer one.
    pub(crate) sequence: u64,
}

impl HostState {
    /// Encodes budget and politeness as the store keeps them.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let politeness = self.politeness.as_ref().map(HostSnapshot::encode);
        [&self.budget[..], &politeness.unwrap_or_default()].concat()
    }
}

/// A message to the writer. Everything in it is committed in one transaction.
#[derive(Debug)]
pub(crate) enum WriterMessage {
    /// Settle a fetched URL, with its links.
    Page(Box<EncodedPage>),
    /// Admit links of a sitemap before the sitemap itself is settled.
    Links(LinkBatch),
    /// Settle a URL that did not answer.
    Unanswered(Box<UnansweredVisit>),
    /// Requeue a URL behind the others of its origin, with one more attempt counted.
    Retry {
        /// The lease of the URL.
        lease: Lease,
        /// The host's state.
        host: Box<HostState>,
    },
    /// Settle a URL without fetching it.
    Excluded {
        /// The lease of the URL.
        lease: Lease,
        /// Why it is excluded.
        exclusion: Exclusion,
        /// The state from the previous visit.
        past: Option<Box<PreviousVisit>>,
    },
    /// Defer a URL without fetching it.
    PutAside {
        /// The lease of the URL.
        lease: Lease,
        /// Why it is deferred.
        exclusion: Exclusion,
    },
    /// Requeue these leases in this order, each at the given priority.
    Later(Vec<(Lease, Priority)>),
    /// Settle a URL, and admit the same page under another URL.
    SameAs {
        /// The lease of the URL.
        lease: Lease,
        /// The URL to fetch instead.
        url: CanonicalUrl,
        /// Why it is excluded.
        exclusion: Exclusion,
    },
    /// Store a robots.txt exchange.
    Robots(Box<RobotsExchange>),
    /// Admit the URLs to start from.
    Seeds(Vec<Admission>),
    /// Admit deferred URLs again if they may be fetched now.
    TakeBack {
        /// Judges again the URLs that were too deep. If `None`, they stay deferred.
        scope: Option<Arc<Scope>>,
    },
    /// The frame is complete: draw the sample from the URLs deferred for it.
    DrawSample,
    /// Admit other workers' links to hosts of this worker.
    TakeLinks,
    /// A message was lost on its way. The text describes what happened.
    Broken(String),
    /// Store a host's state after a request that settled nothing.
    Host(Box<HostState>),
    /// Carry out an operator's command, which is answered once it is durable.
    Order(Ordered),
}

impl WriterMessage {
    /// Whether the message changes queues without being a page. Replays of a crawl without an order
    /// log count these.
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

    /// The number of URLs or decisions in the message that wait for the commit.
    pub(crate) fn weight(&self) -> u64 {
        match self {
            WriterMessage::Later(leases) => leases.len() as u64,
            WriterMessage::Links(_) => 0,
            _ => 1,
        }
    }
}

/// The durable part of a command, and where to send the answer.
#[derive(Debug)]
pub(crate) struct Ordered {
    pub(crate) order: Order,
    pub(crate) answer: AnswerSender,
}

/// The part of a command that is committed before the answer.
#[derive(Debug)]
pub(crate) enum Order {
    /// Admit a URL as a seed.
    Add {
        /// The URL.
        seed: Box<Admission>,
        /// The answer if the URL was already settled in this round.
        refused: Option<Refused>,
    },
    /// Replace the list of parked hosts.
    Parked {
        /// Increases with each list in a run.
        number: u64,
        /// All parked hosts.
        hosts: Vec<HostKey>,
    },
}

/// A robots.txt exchange, or a decision about an origin's rules.
#[derive(Debug, Default)]
pub(crate) struct RobotsExchange {
    /// The origin whose rules were fetched. A redirect hop may have led to another one.
    pub(crate) of: Option<Origin>,
    /// The origin and the encoded copy of its robots.txt, if the copy changed.
    pub(crate) copy: Option<(Origin, Vec<u8>)>,
    /// The exchange, which a reader thread encodes for the archive.
    pub(crate) exchange: Option<Exchange>,
    /// The purpose of the exchange as the archive names it.
    pub(crate) purpose: &'static str,
    /// Length of its body.
    pub(crate) bytes: u64,
    /// Records for the archive.
    pub(crate) capture: Option<EncodedCapture>,
    /// Sitemaps listed in the file.
    pub(crate) sitemaps: Vec<Admission>,
    /// The host's state.
    pub(crate) host: Option<HostState>,
}

/// The result of a commit.
#[derive(Debug, Default)]
pub(crate) struct Committed {
    /// Messages in the group.
    pub(crate) items: u64,
    /// Statistics of the commit.
    pub(crate) counts: Commit,
    /// Parts of its pages that are no longer needed.
    pub(crate) used: Vec<UsedPage>,
    /// Rows added to `pages.jsonl`.
    pub(crate) rows: Vec<PageRow>,
    /// Origins whose queues changed, with their number of pending URLs.
    pub(crate) origins: Vec<(Origin, u64)>,
    /// Total body length of its pages and robots.txt files.
    pub(crate) bytes: u64,
    /// The host of each host state in the group.
    pub(crate) hosts: Vec<HostKey>,
    /// The origins of the leases that ended.
    pub(crate) ended: Vec<Origin>,
    /// Whether URLs deferred as traps must be judged again.
    pub(crate) traps_changed: bool,
    /// The number of ended leases that might have become a row of `pages.jsonl`.
    pub(crate) leases: u64,
    /// The crawl's totals after the commit.
    pub(crate) totals: Totals,
    /// Seeds settled without a fetched page.
    pub(crate) seeds_failed: Vec<SeedFailure>,
    /// Counts of links that are not fetchable URLs, by reason.
    pub(crate) unusable: HashMap<&'static str, u64>,
    /// Whether other workers' links remain to be admitted, or URLs to be reopened. `None` if the
    /// group did not check.
    pub(crate) leaves_links: Option<bool>,
    /// Origins whose copy of robots.txt was removed, so it must be fetched again.
    pub(crate) without_robots: Vec<Origin>,
    /// Redirects of seeds found by other workers. Their targets join the scope.
    pub(crate) targets: Vec<(CanonicalUrl, CanonicalUrl)>,
    /// The results of commands that are durable now.
    pub(crate) answers: Vec<(AnswerSender, Result<CommandAnswer, Refused>)>,
}
