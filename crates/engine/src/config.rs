//! The configuration of a crawl.

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crawl_archive::{Disk, WarcCompression};
use crawl_fetcher::robots::RobotsTimeLimits;
use crawl_fetcher::{Contact, CookieFile, FetchConfig};
use crawl_fields::CompiledRules;
use crawl_frontier::worker_frontier::{BoxError, CrawlMoveTarget, WorkerFrontier};
use crawl_policy::usage_statements::UsagePurpose;
use crawl_policy::{ProductToken, RobotsProfile};
use crawl_sample::SampleMethod;
use crawl_scheduler::Politeness;
use crawl_scope::ScopeMode;
use crawl_scope::{ContentFilter, SeedSettings, SurtPrefix};
use crawl_weburl::{CanonicalUrl, HostKey, HostPatternMap, SpellingStepPolicies};

use crate::document_conversion::DocumentIndexingSettings;
use crate::login::SiteLogin;
use crate::render::RenderConfig;
use crate::time_conversions::whole_seconds;

/// The minimum delay between two requests to a host that the operator is not responsible for. A
/// shorter delay requires [`Config::own_site`].
pub const MIN_OTHERS_DELAY: Duration = Duration::from_millis(200);

const LOOK_UPS: u32 = 256;

/// The maximum requests in flight at a host that the operator is not responsible for. A higher
/// number requires [`Config::own_site`].
pub const MAX_PER_OTHERS_HOST: u32 = 4;

/// The study that the crawl is part of. Unknown facts are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StudyDescription {
    /// The name of the operator.
    pub operator_name: Option<String>,
    /// The institution behind the crawl.
    pub institution: Option<String>,
    /// The title of the study, its web page, or both.
    pub study: Option<String>,
}

/// The complete configuration of a crawl. [`Config::new`] uses the defaults of the command line.
#[derive(Clone, Debug)]
pub struct Config {
    /// The URLs where the crawl begins. May be empty if `output` already contains a crawl.
    pub seeds: Vec<CanonicalUrl>,
    /// Seeds that are sitemaps. Their entries are seeds too.
    pub seed_sitemaps: HashSet<CanonicalUrl>,
    /// The crawl directory.
    pub output: PathBuf,
    /// The frontier that several workers share. `None` if the frontier is in `output`.
    pub shared: Option<SharedCrawlMembership>,
    /// The crawler's name, as used in robots.txt and page directives.
    pub agent: ProductToken,
    /// The User-Agent header, `NAME/VERSION (+CONTACT)`.
    pub user_agent: String,
    /// The person or organization responsible for the crawl.
    pub contact: Option<Contact>,
    /// The operator's study, for the `warcinfo` record of each WARC file.
    pub study: StudyDescription,
    /// Which robots.txt standard to follow.
    pub profile: RobotsProfile,
    /// How long a copy of robots.txt stays fresh, and when to retry an unreachable robots.txt.
    pub robots_times: RobotsTimeLimits,
    /// What to do if robots.txt answers 401 or 403.
    pub robots_forbidden: ForbiddenRobotsPolicy,
    /// The purpose of the crawl. Pages whose site refuses this use are excluded.
    pub purpose: Option<UsagePurpose>,
    /// Which URLs belong to the crawl.
    pub scope: ScopeRules,
    /// Which documents in scope are kept.
    pub wanted: ContentFilter,
    /// When to stop.
    pub budgets: CrawlBudgets,
    /// Whether to begin another round, which revisits due pages, if the crawl is finished.
    pub recrawl: bool,
    /// The intervals between visits of a page.
    pub revisits: RevisitIntervals,
    /// Which URLs to defer as traps, exclude as actions, or merge as URLs of the same page.
    pub traps: TrapAvoidance,
    /// Maximum length of a redirect chain.
    pub max_redirects: u8,
    /// Maximum retries of a failed URL. If a host answers every request with 429 or 503 and no
    /// Retry-After, its URLs are retried without a limit.
    pub retries: u32,
    /// Whether sitemaps are read.
    pub sitemaps: bool,
    /// Whether to read feeds that pages link to.
    pub feeds: bool,
    /// Whether to follow the targets of GET forms like links.
    pub forms: bool,
    /// Whether pages outside the scope are requested with GET or with HEAD.
    pub off_scope_method: OffScopeRequestMethod,
    /// Which parts of pages (such as images and style sheets) are fetched.
    pub resources: EmbeddedResourcePolicy,
    /// Maximum URLs from the sitemaps of one host per run. `None` is unlimited.
    pub max_sitemap_urls: Option<u64>,
    /// Delays, rates and limits.
    pub politeness: Politeness,
    /// Whether the operator is responsible for all hosts of the crawl. If false, every host outside
    /// loopback and private ranges gets one request at a time, at least 200 ms apart.
    pub own_site: bool,
    /// The number of hosts in memory above which idle hosts are evicted. The state of evicted hosts
    /// is on disk.
    pub hosts_in_memory: usize,
    /// The lock file through which the user's crawls keep each other from using the same host at
    /// once. If `None`, other crawls are ignored.
    pub host_locks: Option<PathBuf>,
    /// How long the run may wait for the next host, if all remaining hosts are paused or
    /// unreachable. If the wait would be longer, the run ends.
    pub wait_unreachable: Duration,
    /// Limits of an exchange, and settings for DNS, addresses and headers.
    pub fetch: FetchConfig,
    /// How the crawl logs in to sites. The sites must also be in
    /// [`FetchConfig::sessions`](crawl_fetcher::FetchConfig::sessions).
    pub logins: Vec<Arc<SiteLogin>>,
    /// How pages are rendered in a browser. `None` renders no page.
    pub render: Option<RenderConfig>,
    /// Cookies to add to the sites' sessions, and a digest of the file that they come from.
    pub cookie_file: Option<(CookieFile, String)>,
    /// The maximum time until an ended request is on disk, which limits what a crash may lose. If a
    /// commit takes longer, no request is sent until it is done.
    pub commit_within: Duration,
    /// Bytes of disk space to keep free: with less, nothing is fetched. 0 sets no limit.
    pub min_free: u64,
    /// The disk that records are written to.
    pub disk: Disk,
    /// The compression of the WARC files that exchanges are written to. `None` archives nothing.
    pub warc: Option<WarcCompression>,
    /// Whether `links.jsonl` is written.
    pub links: bool,
    /// The rules for `extracts.jsonl`. Without rules, the file is not written.
    pub extract: Arc<CompiledRules>,
    /// Whether a search index is built.
    pub index: bool,
    /// The documents to index.
    pub documents: DocumentIndexingSettings,
    /// The kinds of documents to fetch.
    pub extent: RunMode,
    /// How to draw a sample from the URLs found. `None` fetches all pages.
    pub sample: Option<SampleMethod>,
    /// Name and version of the program, for the archive.
    pub software: String,
    /// A digest of the settings that affect what is fetched, or when. A replay compares it to
    /// detect runs with other settings. `None` if it is unknown.
    pub settings_digest: Option<String>,
    /// The text of `crawl.toml`.
    pub config_text: String,
    /// The settings that `crawl audit` judges requests by, as tables and keys of `crawl.toml`.
    /// Recorded in `state/delays.jsonl`.
    pub audited: serde_json::Map<String, serde_json::Value>,
}

impl Config {
    /// Returns the configuration of a polite crawl of these seeds into a directory, with the
    /// defaults of the command line.
    ///
    /// `agent` is the crawler's name in robots.txt files. The User-Agent header contains that name
    /// and `version`. `contact` is the person or organization responsible for the crawl. Without a
    /// contact, only loopback and private addresses are fetched.
    #[must_use]
    pub fn new(
        agent: ProductToken,
        version: &str,
        contact: Option<Contact>,
        seeds: Vec<CanonicalUrl>,
        output: impl Into<PathBuf>,
    ) -> Config {
        let user_agent = crawl_fetcher::user_agent(agent.as_str(), version, contact.as_ref());
        Config {
            output: output.into(),
            shared: None,
            seed_sitemaps: HashSet::new(),
            profile: RobotsProfile::Rfc9309,
            robots_times: RobotsTimeLimits::default(),
            robots_forbidden: ForbiddenRobotsPolicy::Allow,
            purpose: None,
            scope: ScopeRules::default(),
            wanted: ContentFilter::default(),
            budgets: CrawlBudgets::default(),
            recrawl: false,
            revisits: RevisitIntervals::default(),
            traps: TrapAvoidance::default(),
            max_redirects: 10,
            retries: 3,
            sitemaps: true,
            feeds: true,
            forms: false,
            off_scope_method: OffScopeRequestMethod::Get,
            resources: EmbeddedResourcePolicy::Off,
            max_sitemap_urls: Some(250_000),
            politeness: Politeness {
                look_ups: LOOK_UPS,
                ..Politeness::default()
            },
            own_site: false,
            hosts_in_memory: 500_000,
            host_locks: None,
            wait_unreachable: Duration::from_secs(60),
            fetch: FetchConfig {
                typed: seeds.clone(),
                from: contact.as_ref().and_then(Contact::mail).map(str::to_owned),
                allow_public: contact.is_some(),
                ..FetchConfig::new(user_agent.clone())
            },
            logins: Vec::new(),
            render: None,
            cookie_file: None,
            commit_within: Duration::from_secs(1),
            min_free: 0,
            disk: Disk::default(),
            warc: Some(WarcCompression::default()),
            links: false,
            extract: Arc::default(),
            index: false,
            documents: DocumentIndexingSettings::default(),
            extent: RunMode::Crawl,
            sample: None,
            software: format!("{} {version}", agent.as_str()),
            config_text: "# set by a program, not by a file\n".to_owned(),
            settings_digest: None,
            audited: serde_json::Map::new(),
            agent,
            contact,
            study: StudyDescription::default(),
            user_agent,
            seeds,
        }
    }

    /// Returns how many rows to read from the end of `requests.jsonl` at a start. The rows of
    /// requests that were not committed when the last run ended are among these, because the limits
    /// on uncommitted requests grow in the same way with [`Politeness::concurrency`].
    pub(crate) fn max_log_tail_rows(&self) -> usize {
        let concurrency = usize::try_from(self.politeness.concurrency).unwrap_or(usize::MAX);
        concurrency.saturating_mul(4).saturating_add(20_000)
    }
}

/// A crawl that several workers share, and the worker that this process runs as.
#[derive(Clone)]
pub struct SharedCrawlMembership {
    /// Opens the shared frontier.
    pub frontier: SharedFrontierOpener,
    /// The name of the crawl.
    pub crawl: String,
    /// The name of this worker.
    pub worker: String,
    /// How long a worker's leases on its hosts last without renewal. If a worker dies, other
    /// workers take over its hosts after this time.
    pub lease: Duration,
}

/// Opens a shared frontier as one of its workers. The argument is the id of the last process that
/// ran as this worker, if there was one. That process must have ended, since this process has
/// locked the worker's directory.
pub type SharedFrontierOpener =
    Arc<dyn Fn(Option<String>) -> Result<Arc<dyn WorkerFrontier>, BoxError> + Send + Sync>;

/// The shared frontier and the worker that a crawl is imported to.
pub struct SharedFrontierImportTarget<'a> {
    /// The shared frontier.
    pub frontier: &'a dyn CrawlMoveTarget,
    /// The name of the crawl in the shared frontier.
    pub crawl: String,
    /// The worker that owns the directory after the import.
    pub worker: String,
}

impl fmt::Debug for SharedCrawlMembership {
    /// Formats all fields except `frontier`, which can't be formatted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("SharedCrawlMembership");
        shown.field("crawl", &self.crawl);
        shown.field("worker", &self.worker);
        shown.field("lease", &self.lease).finish_non_exhaustive()
    }
}

/// Which embedded resources of pages (such as images and style sheets) are fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmbeddedResourcePolicy {
    /// Fetch no embedded resources.
    #[default]
    Off,
    /// Fetch a resource only if its own URL is in scope.
    Own,
    /// Fetch all embedded resources, on any host, so that archived pages can be displayed
    /// completely. Requests to another host follow that host's robots.txt and pace.
    All,
}

/// How to request pages that are outside the scope and whose links are not followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OffScopeRequestMethod {
    /// Fetch and keep these pages like pages in scope.
    #[default]
    Get,
    /// Send HEAD, because only the status matters. If the answer is an error, send GET.
    Head,
}

/// How to treat a robots.txt that answers 401 or 403.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForbiddenRobotsPolicy {
    /// Fetch as if robots.txt had no rules (RFC 9309 section 2.3.1.3).
    #[default]
    Allow,
    /// Fetch nothing, as if robots.txt disallowed the whole site. The robots.txt draft of 1996
    /// specifies this.
    Deny,
}

/// Which URLs belong to the crawl. See [`crawl_scope::Scope`].
#[derive(Clone, Debug, Default)]
pub struct ScopeRules {
    /// How far the scope extends around the seeds.
    pub mode: ScopeMode,
    /// URL prefixes in scope, in addition to what the seeds add.
    pub surt: Vec<SurtPrefix>,
    /// Hosts in scope, as if a seed were on each of them.
    pub hosts: Vec<HostKey>,
    /// Hosts out of scope, with their subdomains. Overrides everything else.
    pub exclude_hosts: HostPatternMap<()>,
    /// If not empty, a URL must match one of these patterns.
    pub include: Vec<String>,
    /// A URL that matches one of these patterns is out of scope.
    pub exclude: Vec<String>,
    /// Maximum links between a seed and a URL.
    pub max_depth: Option<u32>,
    /// Maximum consecutive links out of scope, counted from the last page in scope.
    pub hops_off: u8,
    /// Seeds with settings of their own.
    pub seed_terms: Vec<(CanonicalUrl, SeedSettings)>,
}

/// Limits of a whole crawl. `None` is unlimited.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CrawlBudgets {
    /// Maximum rows of `pages.jsonl`, over all runs of a round.
    pub max_pages: Option<u64>,
    /// Maximum bytes of bodies before decoding, over all runs of a round.
    pub max_bytes: Option<u64>,
    /// Maximum time that servers may spend on our requests, over all runs of a round.
    pub max_server_time: Option<Duration>,
    /// Maximum length of this run.
    pub max_time: Option<Duration>,
    /// Limits of each single host.
    pub per_host: HostBudget,
    /// Limits of particular hosts, each in place of the limit in `per_host`. If a limit is `None`,
    /// that in `per_host` applies.
    pub per_site: HostPatternMap<HostBudget>,
    /// Groups of hosts with a shared budget. Each host's own limits apply too.
    pub groups: HostPatternMap<Arc<HostGroupBudget>>,
}

/// Limits that the hosts of a group share. `None` is unlimited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostGroupBudget {
    /// The unique name of the group, used in records.
    pub name: String,
    /// Maximum rows of `pages.jsonl`, over all runs of a round.
    pub max_pages: Option<u64>,
    /// Maximum bytes of bodies before decoding, including robots.txt, over all runs of a round.
    pub max_bytes: Option<u64>,
    /// Maximum sum of the response times, over all runs of a round.
    pub max_server_time: Option<Duration>,
}

/// Limits of a host. `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostBudget {
    /// Maximum rows of `pages.jsonl`, over all runs of a round.
    pub max_pages: Option<u64>,
    /// Maximum bytes of bodies before decoding, including robots.txt, over all runs of a round.
    pub max_bytes: Option<u64>,
    /// Maximum sum of the response times, over all runs of a round.
    pub max_server_time: Option<Duration>,
    /// Maximum time since the first request of this run.
    pub max_time: Option<Duration>,
}

impl HostBudget {
    /// Returns whether no limit is set.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        let HostBudget {
            max_pages,
            max_bytes,
            max_server_time,
            max_time,
        } = self;
        max_pages.is_none()
            && max_bytes.is_none()
            && max_server_time.is_none()
            && max_time.is_none()
    }
}

/// Rules that keep the crawl away from URLs that bring nothing new: whether to defer URLs in traps,
/// exclude links that look like actions, and merge URLs of the same page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrapAvoidance {
    /// Whether to defer URLs in traps. A trap is an endless set of URLs that bring nothing new.
    pub traps: bool,
    /// Whether to exclude links that look like actions, such as a log-out.
    pub skip_actions: bool,
    /// Whether to remove parameters that robots.txt declares irrelevant (`Clean-param`).
    pub clean_params: bool,
    /// When two URLs that differ only slightly, for example by a session id, count as the same
    /// page.
    pub naming: SpellingStepPolicies,
}

/// What a run does: crawl, plan (fetch only robots.txt files and sitemaps), or fetch only the rules
/// for pages. A run that fetches no pages excludes each page that it could fetch, with the reason
/// `planned`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunMode {
    /// Fetch pages, and everything needed to find them.
    #[default]
    Crawl,
    /// Fetch only robots.txt files and sitemaps.
    Plan,
    /// Fetch only robots.txt and `tdmrep.json` files, which decide whether a page may be fetched.
    Rules,
}

impl Default for TrapAvoidance {
    fn default() -> TrapAvoidance {
        TrapAvoidance {
            traps: true,
            skip_actions: false,
            clean_params: true,
            naming: SpellingStepPolicies::default(),
        }
    }
}

impl TrapAvoidance {
    /// Rules that defer nothing, and treat each URL as a page of its own.
    pub const OFF: TrapAvoidance = TrapAvoidance {
        traps: false,
        skip_actions: false,
        clean_params: false,
        naming: SpellingStepPolicies::OFF,
    };
}

/// The intervals between visits of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevisitIntervals {
    /// The minimum time between two visits of a page.
    pub least: Duration,
    /// The maximum time between two visits of a page, even if it never changes.
    pub most: Duration,
}

impl Default for RevisitIntervals {
    /// Returns a minimum of 0 and a maximum of 30 days.
    fn default() -> RevisitIntervals {
        RevisitIntervals {
            least: Duration::ZERO,
            most: Duration::from_secs(30 * 24 * 60 * 60),
        }
    }
}

impl RevisitIntervals {
    /// Returns the maximum time between two visits of a page, in seconds.
    pub(crate) fn longest(&self) -> u32 {
        whole_seconds(self.most.max(self.least))
    }
}
