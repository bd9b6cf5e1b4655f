//! The messages between the parts of the engine: jobs, events, effects, and messages to the writer.

pub(crate) mod login;
pub(crate) mod page_pipeline_stages;
pub(crate) mod render;
pub(crate) mod replay_message_key;
pub(crate) mod shared_frontier_messages;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crawl_archive::rows::{DelayRow, HostTurn, OperatorCommand, PageRow, RenderEventRow};
use crawl_archive::{EncodedCapture, SerializedRequestRow};
use crawl_fetcher::{Exchange, ExchangeFailure, FetchRequest};
use crawl_frontier::{Lease, NotFetchedReason, UrlKind, UrlToAdmit};
use crawl_scheduler::{HostSnapshot, Permit, RequestOutcome, SpentPermit, Tick};
use crawl_scope::Scope;
use crawl_weburl::{CanonicalUrl, HostKey, Origin};
use serde::Serialize;
use tracing::Span;

use self::login::LoginStepRequest;
use self::page_pipeline_stages::{
    EncodedPage, FactsBeforeFetch, FetchedPage, PageMemoryToFree, SitemapLinkBatch, UnansweredVisit,
};
use self::render::{
    PageResourceRequest, RenderId, ResourceFetchRequest, UnrenderedPageSummary, VisibleContentSize,
};
use self::shared_frontier_messages::{SharedFrontierNews, SharedFrontierRequest};
use crate::control::{AnswerSender, CommandAnswer, CommandRefusal, PostedCommand, StopUrgency};
use crate::crawl_totals::CrawlTotals;
use crate::error::EngineError;
use crate::login::SiteLogin;
use crate::priority::Priority;
use crate::render::{RenderFailure, RenderedPage, UndecodedResponse};
use crate::revisit::visit::PreviousVisit;
use crate::run_counters::CommitMeasurement;
use crate::summary::SeedFailure;

/// A request to send once its permit is issued. The variant is the purpose of the request, and
/// holds what is needed to use the result.
#[derive(Debug)]
pub(crate) enum RequestJob {
    /// A leased URL that robots.txt allows.
    Page {
        lease: Lease,
        /// The facts determined before the fetch, such as the verdict of robots.txt.
        context: FactsBeforeFetch,
    },
    /// A request for an origin's robots.txt, or for the target that it redirects to.
    Robots {
        /// The origin whose rules are fetched.
        of: Origin,
        request: FetchRequest,
        /// The number of redirects followed before this request.
        hop: u8,
    },
    /// A request for an origin's `tdmrep.json`, or for the target that it redirects to.
    TdmRep {
        /// The origin whose `tdmrep.json` is fetched.
        of: Origin,
        request: FetchRequest,
        attempt: TdmRepAttempt,
    },
    /// A request of a login.
    Login(Box<LoginStepRequest>),
    /// A request for a resource of a page that is being rendered.
    Render(Box<ResourceFetchRequest>),
}

/// How an origin's `tdmrep.json` was requested before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TdmRepAttempt {
    /// How many requests failed.
    pub(crate) failures: u32,
    /// The number of redirects followed since the last request for the file itself.
    pub(crate) hop: u8,
}

impl RequestJob {
    /// Returns the request to send.
    #[must_use]
    pub(crate) fn request(&self) -> FetchRequest {
        match self {
            RequestJob::Page { lease, context } => FetchRequest {
                validators: context.validators(),
                found_on: found_on(lease).cloned(),
                is_head: context.is_head(lease),
                // Sitemaps are exempt from the content filter, because they only list pages.
                is_filtered: lease.kind != UrlKind::Sitemap,
                ..FetchRequest::page(lease.url.clone())
            },
            RequestJob::Robots { request, .. } | RequestJob::TdmRep { request, .. } => {
                request.clone()
            }
            RequestJob::Login(request) => request.fetch(),
            RequestJob::Render(request) => request.fetch(),
        }
    }

    /// Returns the URL to fetch.
    #[must_use]
    pub(crate) fn url(&self) -> &CanonicalUrl {
        match self {
            RequestJob::Page { lease, .. } => &lease.url,
            RequestJob::Robots { request, .. } | RequestJob::TdmRep { request, .. } => &request.url,
            RequestJob::Login(request) => &request.url,
            RequestJob::Render(request) => &request.key.url,
        }
    }

    /// Returns the URL for rows and logs.
    #[must_use]
    pub(crate) fn shown_url(&self) -> Cow<'_, CanonicalUrl> {
        match self {
            RequestJob::Login(request) => Cow::Owned(request.shown_url()),
            _ => Cow::Borrowed(self.url()),
        }
    }
}

/// Returns the document that linked to a leased URL. `None` for seeds and sitemaps, because no
/// link led to them. Also `None` for redirect targets, because the page with the link isn't known.
fn found_on(lease: &Lease) -> Option<&CanonicalUrl> {
    let is_linked = !lease.is_seed && lease.redirects == 0 && lease.kind != UrlKind::Sitemap;
    lease.via.as_ref().filter(|_| is_linked)
}

/// An input of the coordinator (the crawl loop), which acts only when it gets an event.
#[derive(Debug)]
pub(crate) enum Event {
    /// An exchange ended, successfully or not.
    Fetched(Box<EndedExchange>),
    /// The address of a request was looked up.
    AddressFound {
        /// The permit for the request, still unused.
        permit: Permit,
        /// The address. `None` if it can't be determined.
        address: Option<IpAddr>,
    },
    /// A reader began to read a page.
    ReadingBegan {
        /// Length of the page's body in bytes.
        bytes: u64,
    },
    /// A document now waits to be read in another process.
    DocumentWaits {
        host: HostKey,
        /// Length of the document's body in bytes.
        bytes: u64,
    },
    /// A document no longer waits to be read in another process. Either it was read and its page
    /// goes to the writer next, or the document was returned unread.
    DocumentEnded {
        host: HostKey,
        /// Length of the document's body in bytes.
        bytes: u64,
    },
    /// A reader returned a page that it had not begun to read.
    GivenBackUnread(Box<FetchedPage>),
    /// A reader returned a page that it had begun to read.
    ReadingStopped(Box<FetchedPage>),
    /// A reader returned a page to be rendered, because scripts seem to build it, or because it
    /// turned out to be HTML.
    Scripted {
        page: Box<FetchedPage>,
        /// A description of the page before its scripts run.
        shell: UnrenderedPageSummary,
    },
    /// A page that is being rendered requests a resource.
    ResourceWanted(Box<PageResourceRequest>),
    /// A page was rendered, or could not be.
    Rendered {
        page: RenderId,
        result: Result<(RenderedPage, VisibleContentSize), RenderFailure>,
    },
    /// The credentials of a site's login were read, or could not be read.
    Credentials {
        site: String,
        result: LoginCredentialsResult,
    },
    /// The writer committed a group.
    Committed(Box<GroupCommitResult>),
    /// The free disk space was measured.
    FreeSpace {
        /// The number of free bytes.
        bytes: u64,
    },
    /// A stop of the run was requested.
    Stop(StopUrgency),
    /// An operator's command or query.
    Command(PostedCommand),
    /// News about the crawl's other workers, or about their shared state.
    Shared(SharedFrontierNews),
    /// A part of the engine failed, so the crawl ends.
    Broken(EngineError),
}

/// The names and values of a login's credentials, or why they can't be read. `Debug` hides the
/// values.
pub(crate) struct LoginCredentialsResult(pub(crate) Result<Vec<(String, String)>, String>);

impl fmt::Debug for LoginCredentialsResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.as_ref().map(Vec::len);
        f.debug_tuple("LoginCredentialsResult")
            .field(&count)
            .finish()
    }
}

/// An exchange that ended. The task that fetched it has already computed what depends on the
/// exchange alone, because the crawl loop has only one thread.
#[derive(Debug)]
pub(crate) struct EndedExchange {
    /// The job that the request was sent for.
    pub(crate) job: RequestJob,
    /// The permit, now spent.
    pub(crate) spent: SpentPermit,
    /// The response, or why there is none.
    pub(crate) result: Result<Box<Exchange>, ExchangeFailure>,
    /// The tracing span of the exchange.
    pub(crate) span: Span,
    /// The outcome, as it affects the politeness of the host.
    pub(crate) signal: RequestOutcome,
    /// The row for `requests.jsonl`.
    pub(crate) line: Box<SerializedRequestRow>,
}

/// An action that the coordinator wants the driver to perform.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Look up the address that a request for a URL would go to.
    FindAddress {
        /// The permit to send the request.
        permit: Permit,
        url: CanonicalUrl,
    },
    /// Send a request.
    Fetch {
        /// The permit to send the request.
        permit: Permit,
        job: RequestJob,
        /// The tracing span to send the request in.
        span: Span,
    },
    /// Append the row of a request to `requests.jsonl` before its host gets another permit.
    Log(Box<SerializedRequestRow>),
    /// Append a host's turn to `state/order.jsonl`: that its permit was used. This comes before the
    /// request is logged and its results are committed.
    NoteTurn(HostTurn),
    /// Append an operator's command to `state/order.jsonl` before its results are committed.
    NoteCommand(OperatorCommand),
    /// Append a message about a page that is rendered to `state/order.jsonl` before its results are
    /// committed.
    NoteRender(Box<RenderEventRow>),
    /// Append a changed delay to `state/delays.jsonl` before it takes effect.
    NoteDelay(DelayRow),
    /// Write changed rules to `state/delays.jsonl` and `crawl.toml` before they take effect.
    NoteRules(PostedRules),
    /// Read a fetched page, and hand the result to the writer.
    Read(Box<FetchedPage>),
    /// Render a page.
    Render {
        page: RenderId,
        url: CanonicalUrl,
        /// When the page was fetched.
        fetched: Tick,
        answer: UndecodedResponse,
    },
    /// Abort requests in flight, and make readers return the pages that they have not read.
    GiveUp,
    /// Make readers return the documents that wait to be read in another process.
    GiveUpDocuments,
    Write(WriterMessage),
    /// Read the credentials of a login, which may take long.
    ReadCredentials(Arc<SiteLogin>),
    /// Send a request to the shared frontier.
    Share(SharedFrontierRequest),
}

/// Returns the rows in `effects` for the request log.
pub(crate) fn lines_to_log(effects: &[Effect]) -> impl Iterator<Item = &SerializedRequestRow> {
    effects.iter().filter_map(|effect| match effect {
        Effect::Log(line) => Some(&**line),
        _ => None,
    })
}

/// A fact for the replay order log (`state/order.jsonl`), serialized as the `ReplayOrderRow` that
/// contains only this fact.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ReplayOrderLogEntry<'f> {
    Turn(&'f HostTurn),
    Command(&'f OperatorCommand),
    Render(&'f RenderEventRow),
}

impl ReplayOrderLogEntry<'_> {
    /// Returns the time in milliseconds since the Unix epoch.
    pub(crate) fn at(&self) -> u64 {
        match self {
            ReplayOrderLogEntry::Turn(turn) => turn.at,
            ReplayOrderLogEntry::Command(command) => command.at,
            ReplayOrderLogEntry::Render(step) => step.at,
        }
    }
}

/// Returns the facts in `effects` for the replay order log (`state/order.jsonl`).
pub(crate) fn order_to_log(effects: &[Effect]) -> impl Iterator<Item = ReplayOrderLogEntry<'_>> {
    effects.iter().filter_map(|effect| match effect {
        Effect::NoteTurn(turn) => Some(ReplayOrderLogEntry::Turn(turn)),
        Effect::NoteCommand(command) => Some(ReplayOrderLogEntry::Command(command)),
        Effect::NoteRender(step) => Some(ReplayOrderLogEntry::Render(step)),
        _ => None,
    })
}

/// Changed rules, and the channel for the answer to the command that changed them.
#[derive(Debug)]
pub(crate) struct PostedRules {
    /// The new rules, as a row of `state/delays.jsonl`.
    pub(crate) row: DelayRow,
    /// The new text of `crawl.toml`.
    pub(crate) config_text: String,
    pub(crate) answer: AnswerSender,
}

/// The used part of a host's budgets, in its stored form: the round, pages, bytes and microseconds
/// of response time, in eight bytes each.
pub(crate) type StoredHostSpending = [u8; 32];

/// A host's durable state. If a transaction contains several states of a host, only the newest is
/// encoded.
#[derive(Clone, Debug)]
pub(crate) struct HostState {
    pub(crate) host: HostKey,
    /// The earliest time of the host's next request, in microseconds UTC.
    pub(crate) wake: u64,
    pub(crate) budget: StoredHostSpending,
    /// The politeness state of the host, such as its gap; `None` if nothing is known yet.
    pub(crate) politeness: Option<HostSnapshot>,
    /// Increases with each host state in a run, so that an older state can't replace a newer one:
    /// messages may overtake each other on their way to the writer.
    pub(crate) sequence: u64,
}

impl HostState {
    /// Encodes the host's budget and politeness in the form that the store keeps.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let politeness = self.politeness.as_ref().map(HostSnapshot::encode);
        [&self.budget[..], &politeness.unwrap_or_default()].concat()
    }
}

/// A message to the writer, to be committed in a single transaction.
#[derive(Debug)]
pub(crate) enum WriterMessage {
    /// Settle a fetched URL, and admit the links of its page.
    Page(Box<EncodedPage>),
    /// Admit links of a sitemap that is still being read.
    Links(SitemapLinkBatch),
    /// Settle a URL that got no answer or was given up.
    Unanswered(Box<UnansweredVisit>),
    /// Count one more attempt for a URL, and put it behind the other URLs of its origin.
    Retry {
        lease: Lease,
        /// The state of the URL's host.
        host: Box<HostState>,
    },
    /// Settle a URL without fetching it.
    Excluded {
        lease: Lease,
        exclusion: NotFetchedReason,
        /// The stored state from the previous visit of the URL.
        past: Option<Box<PreviousVisit>>,
    },
    /// Defer a URL without fetching it.
    PutAside {
        lease: Lease,
        /// The reason for deferring the URL.
        exclusion: NotFetchedReason,
    },
    /// Put these leases back into their queues in this order, each at the given priority.
    Later(Vec<(Lease, Priority)>),
    /// Admit another spelling of a URL, and settle the URL. If it isn't known that the other
    /// spelling gives the same page, the URL is instead deferred or made pending again.
    SameAs {
        lease: Lease,
        /// The URL to fetch instead.
        url: CanonicalUrl,
        /// Why the leased URL is not fetched.
        exclusion: NotFetchedReason,
    },
    /// Store the result of a request that settles no URL.
    Side(Box<NonPageRequestResult>),
    /// Admit the URLs to start from.
    Seeds(Vec<UrlToAdmit>),
    /// Admit deferred URLs again, if they may be fetched now.
    TakeBack {
        /// The new scope. URLs deferred for their depth are judged again by it. `None` if these
        /// URLs stay deferred.
        scope: Option<Arc<Scope>>,
    },
    /// Admit deferred pages of mirrors again, if their copy on the mirrored origin was not fetched.
    /// Sent once no further page can be fetched.
    TakeBackMirrored,
    /// Draw the sample from the URLs that were deferred for it. Sent once no further page can be
    /// found.
    DrawSample,
    /// Admit links to this worker's hosts that other workers found.
    TakeLinks,
    /// A reader or an encoder failed, so a message is missing. Contains the reason.
    Broken(String),
    /// Store a host's state. Sent after a request that settled no URL.
    Host(Box<HostState>),
    /// Carry out an operator's command, and answer it once its result is durable.
    Order(PostedDurableCommand),
}

impl WriterMessage {
    /// Returns whether the message changes queues without settling a page. The replay of a crawl
    /// without a replay order log (`state/order.jsonl`) relies on the number of these messages.
    pub(crate) fn is_other_change(&self) -> bool {
        match self {
            WriterMessage::Links(_)
            | WriterMessage::Retry { .. }
            | WriterMessage::Later(_)
            | WriterMessage::SameAs { .. }
            | WriterMessage::Side(_) => true,
            WriterMessage::Page(_)
            | WriterMessage::Unanswered(_)
            | WriterMessage::Excluded { .. }
            | WriterMessage::PutAside { .. }
            | WriterMessage::Seeds(_)
            | WriterMessage::TakeBack { .. }
            | WriterMessage::TakeBackMirrored
            | WriterMessage::DrawSample
            | WriterMessage::TakeLinks
            | WriterMessage::Broken(_)
            | WriterMessage::Host(_)
            | WriterMessage::Order(_) => false,
        }
    }

    /// Returns the number of results, such as settled URLs, that the commit of this message makes
    /// durable.
    pub(crate) fn weight(&self) -> u64 {
        match self {
            WriterMessage::Later(leases) => leases.len() as u64,
            WriterMessage::Links(_) => 0,
            _ => 1,
        }
    }
}

/// The durable part of a command, and the channel for the answer.
#[derive(Debug)]
pub(crate) struct PostedDurableCommand {
    pub(crate) order: DurableCommand,
    pub(crate) answer: AnswerSender,
}

/// The part of a command that is committed before the command is answered.
#[derive(Debug)]
pub(crate) enum DurableCommand {
    /// Admit a URL as a seed.
    Add {
        seed: Box<UrlToAdmit>,
        /// The answer if the URL was already settled in this round.
        refused: Option<CommandRefusal>,
    },
    /// Replace the list of parked hosts.
    Parked {
        /// Increases with each list in a run, so that an older list never replaces a newer one.
        number: u64,
        hosts: Vec<HostKey>,
    },
}

/// The result of a request that settles no URL. Such a request fetches an origin's rules, or a
/// resource of a page that is being rendered. Also used if the crawl decided not to send such a
/// request.
#[derive(Debug, Default)]
pub(crate) struct NonPageRequestResult {
    /// The origin whose rules were requested, if any. After a redirect, the request itself may have
    /// been sent to another origin.
    pub(crate) of: Option<Origin>,
    /// The new copy of robots.txt, encoded, and its origin; `None` if it did not change.
    pub(crate) copy: Option<(Origin, Vec<u8>)>,
    /// The exchange. A reader thread encodes it for the archive.
    pub(crate) exchange: Option<Exchange>,
    /// The name of the exchange's purpose in the archive.
    pub(crate) purpose: &'static str,
    /// Length of the response body in bytes.
    pub(crate) bytes: u64,
    /// The page that needed the request, if one did.
    pub(crate) via: Option<CanonicalUrl>,
    /// Whether the body must be kept out of the archive.
    pub(crate) is_withheld: bool,
    /// The exchange as records for the archive.
    pub(crate) capture: Option<EncodedCapture>,
    /// URLs to admit: the sitemaps that robots.txt lists, or the resource that was refused.
    pub(crate) admissions: Vec<UrlToAdmit>,
    /// The state of the host that the request was sent to.
    pub(crate) host: Option<HostState>,
}

/// The result of committing a group of messages.
#[derive(Debug, Default)]
pub(crate) struct GroupCommitResult {
    /// The sum of [`WriterMessage::weight`] over the messages of the group.
    pub(crate) items: u64,
    pub(crate) counts: CommitMeasurement,
    /// Parts of the group's pages that are ready to be freed.
    pub(crate) used: Vec<PageMemoryToFree>,
    /// Rows that were added to `pages.jsonl`. Empty if neither a consumer nor a trace event needs
    /// them.
    pub(crate) rows: Vec<PageRow>,
    /// Origins whose queues changed, each with its number of pending URLs.
    pub(crate) origins: Vec<(Origin, u64)>,
    /// Total body length of the group's pages and robots.txt files, in bytes.
    pub(crate) bytes: u64,
    /// The host of each host state in the group. A host with several states occurs several times.
    pub(crate) hosts: Vec<HostKey>,
    /// The origin of each lease that `leases` counts.
    pub(crate) ended: Vec<Origin>,
    /// The host of each guessed sitemap that had to be read
    /// ([`is_undecided_guess`](crate::priority::is_undecided_guess)), and the bytes of its body.
    /// `None` for a sitemap that does not exist, which has no row.
    pub(crate) guesses: Vec<(HostKey, Option<u64>)>,
    /// Whether URLs deferred as traps must be judged again.
    pub(crate) traps_changed: bool,
    /// The number of leases that ended with a visit or a retry, without those of excluded and
    /// deferred URLs. Each could have become a row of `pages.jsonl`.
    pub(crate) leases: u64,
    /// The crawl's totals after the commit.
    pub(crate) totals: CrawlTotals,
    /// Seeds that were settled without a page.
    pub(crate) seeds_failed: Vec<SeedFailure>,
    /// The number of links that are not fetchable URLs, by reason.
    pub(crate) unusable: HashMap<&'static str, u64>,
    /// Whether more links from other workers must be admitted, or more settled URLs made pending
    /// again. `None` if the group did not check.
    pub(crate) leaves_links: Option<bool>,
    /// Origins whose copy of robots.txt was removed, so it must be fetched again.
    pub(crate) without_robots: Vec<Origin>,
    /// Redirects of seeds that other workers found: each seed with its target. The targets join the
    /// scope.
    pub(crate) targets: Vec<(CanonicalUrl, CanonicalUrl)>,
    /// The results of commands that are durable now, each with the channel for its answer.
    pub(crate) answers: Vec<(AnswerSender, Result<CommandAnswer, CommandRefusal>)>,
}
