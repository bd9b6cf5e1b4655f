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

/// A request that a permit is used for.
#[derive(Debug)]
pub(crate) enum Job {
    /// A leased URL that robots.txt allows.
    Page {
        /// The frontier's lease.
        lease: Lease,
        /// The robots.txt rules and other facts that the URL is fetched under.
        context: FetchContext,
    },
    /// A request for an origin's robots.txt, or for the target of its redirect.
    Robots {
        /// The origin whose rules are fetched.
        of: Origin,
        /// The request to send.
        request: FetchRequest,
        /// The number of redirects followed before this request.
        hop: u8,
    },
    /// A request for an origin's `tdmrep.json`.
    TdmRep {
        /// The origin whose `tdmrep.json` is fetched.
        of: Origin,
        /// The request to send.
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
                is_head: context.is_head(lease),
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

/// Returns the document that linked to a leased URL. `None` for seeds and sitemaps, which no link
/// led to, and for redirect targets, since the page with the link is not known.
fn found_on(lease: &Lease) -> Option<&CanonicalUrl> {
    let is_linked = !lease.is_seed && lease.redirects == 0 && lease.kind != UrlKind::Sitemap;
    lease.via.as_ref().filter(|_| is_linked)
}

/// An input of the coordinator, which acts only on events.
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
        /// Length of the page's body in bytes.
        bytes: u64,
    },
    /// A document now waits for a reading process.
    DocumentWaits {
        /// The host of the document.
        host: HostKey,
        /// Length of the document's body in bytes.
        bytes: u64,
    },
    /// A document no longer waits for a reading process. The document's page goes to the writer
    /// next, or is given back.
    DocumentEnded {
        /// The host of the document.
        host: HostKey,
        /// Length of the document's body in bytes.
        bytes: u64,
    },
    /// A page was given back that no reader had started on.
    GivenBackUnread(Box<FetchedPage>),
    /// A page was given back that a reader had started on.
    ReadingStopped(Box<FetchedPage>),
    /// The writer committed a group.
    Committed(Box<Committed>),
    /// The free disk space was measured.
    FreeSpace {
        /// The number of free bytes.
        bytes: u64,
    },
    /// A stop of the run was requested.
    Stop(Stop),
    /// An operator's command or query.
    Command(PostedCommand),
    /// News about the crawl's other workers, or about state shared with them.
    Shared(SharedNews),
    /// A part of the engine failed, so the crawl ends.
    Broken(EngineError),
}

/// An exchange that ended. Everything that follows from the exchange alone is already computed by
/// the task that fetched it, because the crawl loop has only a single thread.
#[derive(Debug)]
pub(crate) struct EndedExchange {
    /// The job that the request was sent for.
    pub(crate) job: Job,
    /// The permit, now spent.
    pub(crate) spent: Spent,
    /// The response, or why there is none.
    pub(crate) result: Result<Box<Exchange>, Failure>,
    /// The tracing span of the exchange.
    pub(crate) span: Span,
    /// The outcome of the request for the scheduler.
    pub(crate) signal: RequestOutcome,
    /// The row for `requests.jsonl`.
    pub(crate) line: Box<RequestLine>,
}

/// An action that the driver performs for the coordinator.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Look up the address that a request for a URL would go to.
    FindAddress {
        /// The permit to send the request.
        permit: Permit,
        /// The URL.
        url: CanonicalUrl,
    },
    /// Send a request.
    Fetch {
        /// The permit to send the request.
        permit: Permit,
        /// The job that the request is for.
        job: Job,
        /// The tracing span to send the request in.
        span: Span,
    },
    /// Write the row of a request to `requests.jsonl`, before its host gets another permit.
    Log(Box<RequestLine>),
    /// Write a host's turn to `state/order.jsonl`, before the turn's request is logged and its
    /// results are committed.
    NoteTurn(HostTurn),
    /// Append an operator's command to `state/order.jsonl`, before the results of the command are
    /// committed.
    NoteCommand(CommandTaken),
    /// Write a changed delay to `state/delays.jsonl` before it takes effect.
    NoteDelay(DelayRow),
    /// Write changed rules to `state/delays.jsonl` and `crawl.toml` before they take effect.
    NoteRules(NewRules),
    /// Read a fetched page, and hand the result to the writer.
    Read(Box<FetchedPage>),
    /// Abort requests in flight, and have the readers give back the pages that they have not read.
    GiveUp,
    /// Have the readers give back the documents that wait for a reading process.
    GiveUpDocuments,
    /// Hand a message to the writer.
    Write(WriterMessage),
    /// Send a request to the shared frontier.
    Share(SharedRequest),
}

/// Returns the rows of requests that `effects` order to log.
pub(crate) fn lines_to_log(effects: &[Effect]) -> impl Iterator<Item = &RequestLine> {
    effects.iter().filter_map(|effect| match effect {
        Effect::Log(line) => Some(&**line),
        _ => None,
    })
}

/// Changed rules, and where to send the answer to the command that changed them.
#[derive(Debug)]
pub(crate) struct NewRules {
    /// The rules that were in force before, as a row of `state/delays.jsonl`.
    pub(crate) row: DelayRow,
    /// The new text of `crawl.toml`.
    pub(crate) config_text: String,
    pub(crate) answer: AnswerSender,
}

/// The durable form of what a host has spent of its budgets: the round, pages, bytes and
/// microseconds of response time, in eight bytes each.
pub(crate) type StoredBudget = [u8; 32];

/// A host's durable state. If a transaction gets several states of a host, only the newest is
/// encoded.
#[derive(Clone, Debug)]
pub(crate) struct HostState {
    /// The host.
    pub(crate) host: HostKey,
    /// The earliest time of its next request, in microseconds UTC.
    pub(crate) wake: u64,
    pub(crate) budget: StoredBudget,
    /// The host's politeness; `None` if nothing is known about it yet.
    pub(crate) politeness: Option<HostSnapshot>,
    /// Increases with each host state in a run. Messages overtake each other on their way to the
    /// writer, so an older state could otherwise replace a newer one.
    pub(crate) sequence: u64,
}

impl HostState {
    /// Encodes the host's budget and politeness in the form that the store keeps.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let politeness = self.politeness.as_ref().map(HostSnapshot::encode);
        [&self.budget[..], &politeness.unwrap_or_default()].concat()
    }
}

/// A message to the writer. One transaction commits everything in the message.
#[derive(Debug)]
pub(crate) enum WriterMessage {
    /// Settle a fetched URL, and admit the links of its page.
    Page(Box<EncodedPage>),
    /// Admit links of a sitemap that is still being read.
    Links(LinkBatch),
    /// Settle a URL whose request got no answer, or that is given up.
    Unanswered(Box<UnansweredVisit>),
    /// Put a URL behind the other URLs of its origin, with one more attempt counted.
    Retry {
        /// The lease of the URL.
        lease: Lease,
        /// The state of the URL's host.
        host: Box<HostState>,
    },
    /// Settle a URL without fetching it.
    Excluded {
        /// The lease of the URL.
        lease: Lease,
        /// The reason for the exclusion.
        exclusion: Exclusion,
        /// The stored state from the previous visit of the URL.
        past: Option<Box<PreviousVisit>>,
    },
    /// Defer a URL without fetching it.
    PutAside {
        /// The lease of the URL.
        lease: Lease,
        /// The reason for deferring the URL.
        exclusion: Exclusion,
    },
    /// Put these leases back into their queues in this order, each at the given priority.
    Later(Vec<(Lease, Priority)>),
    /// Settle a URL, and admit another URL for the same page.
    SameAs {
        /// The lease of the URL.
        lease: Lease,
        /// The URL to fetch instead.
        url: CanonicalUrl,
        /// The reason why the leased URL is not fetched.
        exclusion: Exclusion,
    },
    /// Store the result of a request for an origin's rules.
    Robots(Box<RobotsExchange>),
    /// Admit the URLs to start from.
    Seeds(Vec<Admission>),
    /// Admit deferred URLs again if they may be fetched now.
    TakeBack {
        /// The scope for judging the URLs again that were too deep. If `None`, these URLs stay
        /// deferred.
        scope: Option<Arc<Scope>>,
    },
    /// Draw the sample from the URLs that were deferred for it, since no further page can be found.
    DrawSample,
    /// Admit links that other workers found to hosts of this worker.
    TakeLinks,
    /// A reader or an encoder failed, so a message is missing. The text describes the failure.
    Broken(String),
    /// Store a host's state after a request that settled no URL.
    Host(Box<HostState>),
    /// Carry out an operator's command. The command is answered once its result is durable.
    Order(Ordered),
}

impl WriterMessage {
    /// Whether the message changes queues without settling a page. In a crawl without an order log,
    /// a replay counts such messages.
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

    /// The number of URLs or decisions in the message that become durable with its commit.
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
        /// The answer to give if the URL was already settled in this round.
        refused: Option<Refused>,
    },
    /// Replace the list of parked hosts.
    Parked {
        /// Increases with each list of parked hosts in a run.
        number: u64,
        /// All parked hosts.
        hosts: Vec<HostKey>,
    },
}

/// The result of a request for an origin's rules, or a decision about these rules.
#[derive(Debug, Default)]
pub(crate) struct RobotsExchange {
    /// The origin whose rules were fetched. The request itself may have gone to another origin,
    /// after a redirect.
    pub(crate) of: Option<Origin>,
    /// If the copy of robots.txt changed, the origin that it is for and the encoded copy.
    pub(crate) copy: Option<(Origin, Vec<u8>)>,
    /// The exchange, which a reader thread encodes for the archive.
    pub(crate) exchange: Option<Exchange>,
    /// The purpose of the exchange as the archive names it.
    pub(crate) purpose: &'static str,
    /// Length of the response body in bytes.
    pub(crate) bytes: u64,
    /// The exchange as records for the archive.
    pub(crate) capture: Option<EncodedCapture>,
    /// Sitemaps that robots.txt lists, to be admitted.
    pub(crate) sitemaps: Vec<Admission>,
    /// The state of the host that the request was sent to.
    pub(crate) host: Option<HostState>,
}

/// The result of the commit of a group of messages.
#[derive(Debug, Default)]
pub(crate) struct Committed {
    /// The number of messages in the group.
    pub(crate) items: u64,
    /// Statistics of the commit.
    pub(crate) counts: Commit,
    /// Parts of the group's pages that are no longer needed.
    pub(crate) used: Vec<UsedPage>,
    /// Rows that were added to `pages.jsonl`.
    pub(crate) rows: Vec<PageRow>,
    /// Origins whose queues changed, each with its number of pending URLs.
    pub(crate) origins: Vec<(Origin, u64)>,
    /// Total body length of the group's pages and robots.txt files, in bytes.
    pub(crate) bytes: u64,
    /// The host of each host state in the group. A host with several states is listed several
    /// times.
    pub(crate) hosts: Vec<HostKey>,
    /// The origin of each lease that ended.
    pub(crate) ended: Vec<Origin>,
    /// Whether URLs deferred as traps must be judged again.
    pub(crate) traps_changed: bool,
    /// The number of ended leases that could have become a row of `pages.jsonl`.
    pub(crate) leases: u64,
    /// The crawl's totals after the commit.
    pub(crate) totals: Totals,
    /// Seeds that were settled without fetching a page.
    pub(crate) seeds_failed: Vec<SeedFailure>,
    /// The number of links that are not fetchable URLs, by reason.
    pub(crate) unusable: HashMap<&'static str, u64>,
    /// Whether links found by other workers remain to be admitted, or URLs to be reopened. `None`
    /// if the group did not check that.
    pub(crate) leaves_links: Option<bool>,
    /// Origins whose copy of robots.txt was removed, so that robots.txt must be fetched again.
    pub(crate) without_robots: Vec<Origin>,
    /// Redirects of seeds that other workers found, each with its target. The targets join the
    /// scope.
    pub(crate) targets: Vec<(CanonicalUrl, CanonicalUrl)>,
    /// The results of commands that are durable now, each with the channel to answer on.
    pub(crate) answers: Vec<(AnswerSender, Result<CommandAnswer, Refused>)>,
}
