//! The rows of `state/order.jsonl`.

use serde::{Deserialize, Serialize};

/// A line of `state/order.jsonl`: an event that a replay must repeat in the same order. Exactly one
/// column is set in each line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayOrderRow {
    /// A run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunStartEvent>,
    /// A host's permit was used: a request was sent, or URLs of the host were settled without a
    /// request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<HostTurn>,
    /// The messages that the writer is about to commit together, in order. Each is named by the
    /// event that caused it: `e7` for the end of the 7th request of the run, `t7` for the 7th use
    /// of a host's permit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Vec<String>>,
    /// An operator's command took effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<OperatorCommand>,
    /// The crawl loop handled a message about a rendered page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub render: Option<RenderEventRow>,
}

/// A message to the crawl loop about rendered pages. The rows are in the order in which the loop
/// handled the messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenderEventRow {
    /// When the loop handled the message, in milliseconds since the Unix epoch, UTC.
    pub at: u64,
    /// `scripted` (the thread that read a page found that scripts seem to build it), `wanted` (a
    /// page requested a resource), `dropped` (a page no longer waits for a resource), `expired`
    /// (resources waited too long) or `rendered` (a page was rendered, or could not be).
    pub step: String,
    /// The number of the page. The pages of a run are numbered from 1, in the order in which they
    /// are sent to the browser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u64>,
    /// The URL of the page (`scripted`, `rendered`) or of the resource. Null if the resource's URL
    /// is unusable or if the URL contains a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The method of the request for a resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The kind of resource: `document`, `script`, `style`, `data`, `media` or `report`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whether the request is a POST whose body may be sent. The log doesn't keep the body.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_post_body: bool,
    /// The result of rendering the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<RenderResult>,
    /// Number of requests of this run that had ended when the loop handled the message.
    pub ended: u64,
    /// How many messages, of all runs, the writer thread had committed when the loop handled this
    /// message.
    pub settled: u64,
}

/// The result of rendering a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenderResult {
    /// How long the page's scripts ran by the page's own clock, in milliseconds.
    pub page_ms: u64,
    /// Number of characters on the page, without white space, up to a limit.
    pub letters: u64,
    /// Number of `a` elements on the page.
    pub links: u64,
    /// Number of requests that the browser refused, because the page made too many.
    pub withheld: u32,
    /// The URL that the page's scripts tried to navigate to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub navigation: Option<String>,
    /// Why the page could not be rendered, as in `pages.jsonl`. The other columns are zero then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// An operator's command that changes which requests are sent, or when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorCommand {
    /// When the command took effect, in milliseconds since the Unix epoch, UTC.
    pub at: u64,
    /// `add`, `delay`, `park` or `unpark`.
    pub command: String,
    /// The URL that was added, or the host that the command applies to. Null if it applies to every
    /// host.
    pub about: Option<String>,
    /// The new delay, in milliseconds.
    pub delay: Option<u64>,
    /// Number of requests of this run that had ended when the command took effect.
    pub ended: u64,
    /// How many messages, of all runs, the writer thread had committed when the command took
    /// effect.
    pub settled: u64,
}

/// The start of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStartEvent {
    /// When the run started, in milliseconds since the Unix epoch, UTC.
    pub at: u64,
    /// The round of the run, from 1.
    pub round: u32,
    /// When the round began, in seconds since the Unix epoch, UTC.
    pub round_began: u32,
    /// Length of `requests.jsonl` at the start of the run, in bytes.
    pub requests: u64,
    /// How many messages the writer thread had committed in all earlier runs.
    pub settled: u64,
    /// How the previous run ended, as in `waiting.jsonl`: the reason, and the detail if there is
    /// one. Null if the previous run was killed, or if this is the first run.
    pub before: Option<String>,
    /// A digest of the settings that affect what is fetched, or when. Null in rows of older
    /// versions.
    #[serde(default)]
    pub settings: Option<String>,
    /// Whether the file has the steps of rendered pages. False in rows of older versions.
    #[serde(default)]
    pub has_render_steps: bool,
    /// The parked hosts when the run started. Null in rows of older versions.
    #[serde(default)]
    pub parked: Option<Vec<String>>,
    /// The origins whose robots.txt had to be fetched again, because `crawl recheck` had found that
    /// its rules had changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rechecked: Vec<String>,
}

/// A turn of a host: its permit was used to send a request, or to settle URLs without a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostTurn {
    /// When the permit was used, in milliseconds since the Unix epoch, UTC.
    pub at: u64,
    /// Scheme, host and port.
    pub origin: String,
    /// What the permit was used for: `page`, `robots`, or `hop` (a redirect of a robots.txt, or a
    /// request right after a robots.txt).
    pub purpose: String,
    /// Number of requests of this run that had ended when the permit was used.
    pub ended: u64,
    /// How many messages, of all runs, the writer thread had committed when the permit was used.
    pub settled: u64,
    /// Number of URLs that were settled or moved to the back of the queue without a request, plus
    /// the number of refused resources of rendered pages.
    pub passed: u64,
    /// Whether a request was sent.
    pub is_sent: bool,
}
