//! What goes round: jobs, events, effects, and items for the writer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crawl_archive::EncodedCapture;
use crawl_archive::rows::{DelayRow, ExcludedRow, LinkRow, PageRow, RequestRow, RobotsVerdict};
use crawl_fetcher::robots::CompiledRobots;
use crawl_fetcher::{BodyMemory, Exchange, Failure, FetchRequest, Validators};
use crawl_frontier::{Admission, Exclusion, Lease, Outcome, UrlKind};
use crawl_index::{BytePass, IndexEntry};
use crawl_policy::scope::Scope;
use crawl_scheduler::{Permit, Spent};
use crawl_weburl::{CanonicalUrl, HostKey, Origin};

use crate::config::Stop;
use crate::control::{Answer, Answering, Ask, Refused};
use crate::crawl_loop::steering::Order;
use crate::crawl_loop::trap_gate::TrapSignal;
use crate::error::EngineError;
use crate::revisit::visit::{DocumentState, PreviousVisit, VisitResult};
use crate::summary::{Changes, SeedFailure};

/// What a permit is used for.
#[derive(Debug)]
pub(crate) enum Job {
    /// A leased URL that robots.txt allows.
    Page {
        /// The frontier's lease.
        lease: Lease,
        /// What was known of it before.
        judged: FetchContext,
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
        /// How often it was sent before.
        tries: u32,
    },
}

/// What was known of a URL before it was asked for.
#[derive(Clone, Debug)]
pub(crate) struct FetchContext {
    /// What robots.txt said of it.
    pub robots: RobotsVerdict,
    /// The rules of its origin then.
    pub rules: Arc<CompiledRobots>,
    /// What its last visit left.
    pub(crate) past: Option<Box<PreviousVisit>>,
}

impl FetchContext {
    /// What is held of it already, so that the server may answer 304.
    fn validators(&self) -> Validators {
        let past = self.past.as_deref();
        past.map_or_else(Validators::default, PreviousVisit::validators)
    }
}

impl Job {
    /// The request that is sent.
    #[must_use]
    pub(crate) fn request(&self) -> FetchRequest {
        match self {
            Job::Page { lease, judged } => FetchRequest {
                validators: judged.validators(),
                found_on: found_on(lease).cloned(),
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

/// What happened. The coordinator knows no other cause.
#[expect(
    clippy::large_enum_variant,
    reason = "moved a few times per request, and a box would be an allocation more"
)]
#[derive(Debug)]
pub(crate) enum Event {
    /// An exchange ended, well or not.
    Fetched {
        /// What it was for.
        job: Job,
        /// Its permit, spent.
        spent: Spent,
        /// What came of it.
        result: Result<Exchange, Failure>,
    },
    /// The writer committed a group.
    Committed(Committed),
    /// The world outside asks to end.
    Stop(Stop),
    /// The world outside tells us something, or asks.
    Command(Ask),
    /// A part of the engine failed; the crawl ends.
    Broken(EngineError),
}

/// What the driver has to do for the coordinator.
#[expect(
    clippy::large_enum_variant,
    reason = "moved a few times per request, and a box would be an allocation more"
)]
#[derive(Debug)]
pub(crate) enum Effect {
    /// Send a request.
    Fetch {
        /// Leave to send it.
        permit: Permit,
        /// What it is for.
        job: Job,
    },
    /// Note a request in `requests.jsonl`, before its host gets another permit.
    Log(RequestRow),
    /// Note in `state/delays.jsonl` that a delay is another, before it holds.
    NoteDelay(DelayRow),
    /// Read an exchange and hand the result to the writer.
    Read(Box<Reading>),
    /// Hand this to the writer.
    Write(WriterMessage),
}

/// An exchange that is to be read.
#[derive(Debug)]
pub(crate) struct Reading {
    /// The lease of the URL.
    pub lease: Lease,
    /// What was known of it before it was asked for.
    pub judged: FetchContext,
    /// The exchange.
    pub exchange: Exchange,
    /// The scope in force when the exchange ended.
    pub scope: Arc<Scope>,
    /// The host's politeness as of the end of the exchange.
    pub host: HostState,
}

/// A host's durable state.
#[derive(Clone, Debug)]
pub(crate) struct HostState {
    /// The host.
    pub host: HostKey,
    /// When it may next be asked, in microseconds UTC.
    pub wake: u64,
    /// Politeness and budgets, as bytes.
    pub bytes: Vec<u8>,
    /// Grows with each state of a run: items overtake each other on their way to the
    /// writer, and an older state must not outlive a newer one.
    pub sequence: u64,
}

/// What the writer makes durable. Everything in one item stands in one transaction.
#[expect(
    clippy::large_enum_variant,
    reason = "moved a few times per request, and a box would be an allocation more"
)]
#[derive(Debug)]
pub(crate) enum WriterMessage {
    /// A URL that was asked for is settled, with its links.
    Page(Box<SettledPage>),
    /// A URL goes back to the queue behind the others, one attempt older.
    Retry {
        /// The lease of the URL.
        lease: Lease,
        /// The host's state.
        host: Option<HostState>,
    },
    /// A URL is settled without having been asked for.
    Excluded {
        /// The lease of the URL.
        lease: Lease,
        /// Why.
        exclusion: Exclusion,
        /// What its last visit left.
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
    Later(Vec<(Lease, u8)>),
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
    Robots(RobotsExchange),
    /// URLs to start from.
    Seeds(Vec<Admission>),
    /// URLs that were put aside and may be asked for now.
    Admit(Vec<Admission>),
    /// An item was lost on its way; what happened.
    Broken(String),
    /// A host's state, changed by a request that settled nothing.
    Host(HostState),
    /// What a person told us, to be answered when it is durable.
    Order(Ordered),
}

impl WriterMessage {
    /// How many URLs or decisions wait for the disk in it.
    pub(crate) fn weight(&self) -> u64 {
        match self {
            WriterMessage::Later(leases) => leases.len() as u64,
            _ => 1,
        }
    }
}

/// What is made durable of a command, and the place for its answer.
#[derive(Debug)]
pub(crate) struct Ordered {
    pub(crate) order: Order,
    pub(crate) answer: Answering,
}

/// A settled page.
#[derive(Debug)]
pub(crate) struct SettledPage {
    /// The lease of the URL.
    pub lease: Lease,
    /// How it is settled.
    pub outcome: Outcome,
    /// The row for `pages.jsonl`; the writer adds the archive's place.
    pub row: PageRow,
    /// What its last visit left.
    pub(crate) past: Option<Box<PreviousVisit>>,
    /// What came of this one.
    pub(crate) found: VisitResult,
    /// What the page says of how often it changes.
    pub(crate) said: Option<DocumentState>,
    /// Whether it is a list of other pages and their changes: a sitemap, a feed.
    pub(crate) is_list: bool,
    /// When URLs that it names changed, by its own word, in seconds since the Unix epoch.
    pub(crate) modified: Vec<(CanonicalUrl, u32)>,
    /// What came, as far as traps go.
    pub(crate) signal: TrapSignal,
    /// The exchange, where there was an answer.
    pub exchange: Option<Exchange>,
    /// The memory of a long body, held until its records are written.
    #[expect(dead_code, reason = "held for its drop alone")]
    pub(crate) room: BodyMemory,
    /// The labelled digest of its body without its content coding, where it has one.
    pub(crate) decoded_digest: Option<String>,
    /// Records for the archive, encoded from the exchange.
    pub capture: Option<EncodedCapture>,
    /// The charset that the page was read as.
    pub charset: Option<&'static str>,
    /// What the search index is told of it.
    pub entry: Option<IndexEntry>,
    /// The memory of that, held until it is written.
    pub(crate) entry_pass: Option<BytePass>,
    /// Its links, named and judged by scope.
    pub links: Vec<Admission>,
    /// The memory of its links, held until they are committed.
    pub(crate) links_pass: Option<BytePass>,
    /// Rows for `links.jsonl`.
    pub link_rows: Vec<LinkRow>,
    /// Its links that name nothing a crawler can ask for, by reason.
    pub unusable: HashMap<&'static str, u64>,
    /// The target of a seed's redirect, whose host joins the scope.
    pub joins_scope: Option<CanonicalUrl>,
    /// The host's state.
    pub host: HostState,
}

/// A robots.txt exchange, or a decision about an origin's rules.
#[derive(Debug, Default)]
pub(crate) struct RobotsExchange {
    /// Whose rules were asked for: a hop may have led elsewhere.
    pub of: Option<Origin>,
    /// The origin and its copy as bytes, where the copy changed.
    pub copy: Option<(Origin, Vec<u8>)>,
    /// The exchange, encoded for the archive by the driver's reader threads.
    pub exchange: Option<Exchange>,
    /// What the exchange was for, as the archive has it.
    pub purpose: &'static str,
    /// Bytes of its body.
    pub bytes: u64,
    /// Records for the archive.
    pub capture: Option<EncodedCapture>,
    /// Sitemaps that the file names.
    pub sitemaps: Vec<Admission>,
    /// The host's state.
    pub host: Option<HostState>,
}

/// What a commit did.
#[derive(Debug, Default)]
pub(crate) struct Committed {
    /// Items in the group.
    pub items: u64,
    /// Origins whose queues changed, with what now waits in them.
    pub origins: Vec<(Origin, u64)>,
    /// Bytes of the bodies of its pages and robots.txt files.
    pub bytes: u64,
    /// The host of each state in it.
    pub hosts: Vec<HostKey>,
    /// The origin of each lease among the items that was asked for.
    pub ended: Vec<Origin>,
    /// What was put aside as a trap is to be judged again.
    pub has_turned: bool,
    /// Rows that `pages.jsonl` got.
    pub rows: Vec<PageRow>,
    /// Leases among the items that each might have become a row of `pages.jsonl`.
    pub leases: u64,
    /// The crawl's totals as committed.
    pub totals: Totals,
    /// Seeds that were settled without having been fetched.
    pub seeds_failed: Vec<SeedFailure>,
    /// Links that name nothing a crawler can ask for, by reason.
    pub unusable: HashMap<&'static str, u64>,
    /// What commands came to that are durable now.
    pub(crate) answers: Vec<(Answering, Result<Answer, Refused>)>,
}

/// Sums over all runs of a crawl; durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Totals {
    /// Rows of `pages.jsonl`.
    pub pages: u64,
    /// Rows among them without an answer, or with a status of 400 and above.
    pub failed: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Seeds, or what they were redirected to, that answered with a page.
    pub seeds_fetched: u64,
    /// How the pages of this round stand against their last visits.
    #[serde(default)]
    pub changes: Changes,
}

impl Totals {
    /// What came since. Changes are those of a round anyway.
    pub(crate) fn since(&self, before: &Totals) -> Totals {
        Totals {
            pages: self.pages.saturating_sub(before.pages),
            failed: self.failed.saturating_sub(before.failed),
            bytes: self.bytes.saturating_sub(before.bytes),
            seeds_fetched: self.seeds_fetched.saturating_sub(before.seeds_fetched),
            changes: self.changes,
        }
    }

    /// As the next round begins with.
    pub(crate) fn without_changes(self) -> Totals {
        Totals {
            changes: Changes::default(),
            ..self
        }
    }
}

/// A row that `excluded.jsonl` gets.
pub(crate) fn excluded_row(
    url: &CanonicalUrl,
    exclusion: &Exclusion,
    found_on: Option<&CanonicalUrl>,
) -> ExcludedRow {
    ExcludedRow {
        url: url.to_string(),
        reason: exclusion.reason.to_string(),
        rule: exclusion.rule.clone(),
        line: exclusion.line,
        found_on: found_on.map(ToString::to_string),
    }
}

/// Milliseconds, rounded to the nearest, as rows hold them.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from((duration.as_micros() + 500) / 1000).unwrap_or(u64::MAX)
}
