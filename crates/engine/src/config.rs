//! The configuration of a crawl, and what it tells while it runs.

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crawl_fetcher::robots::RobotsTimes;
use crawl_fetcher::{Contact, FetchConfig};
use crawl_frontier::shared::{BoxError, MoveTarget, WorkerFrontier};
use crawl_policy::usage::UsagePurpose;
use crawl_policy::{ProductToken, Profile};
use crawl_sample::SampleMethod;
use crawl_scheduler::Politeness;
use crawl_scope::ScopeMode;
use crawl_scope::{ContentFilter, SeedTerms, SurtPrefix};
use crawl_weburl::{CanonicalUrl, HostKey, HostTable, SpellingRules};

use crate::document_reader::DocumentRules;
use crate::time::whole_seconds;

/// The least gap at a host of others: a shorter one needs an operator who answers for it
/// ([`Config::own_site`]).
pub const MIN_OTHERS_DELAY: Duration = Duration::from_millis(200);

/// Default number of concurrent name look-ups.
const LOOK_UPS: u32 = 256;

/// The most requests in flight at a host of others; more need such an operator.
pub const MAX_PER_OTHERS_HOST: u32 = 4;

/// The study that the crawl is part of. Unknown facts are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Study {
    /// The name of the operator.
    pub operator_name: Option<String>,
    /// The institution that the crawl is made for.
    pub institution: Option<String>,
    /// The name of the study, its page, or both.
    pub study: Option<String>,
}

/// A crawl's whole configuration. [`Config::new`] has the defaults of the command line.
#[derive(Clone, Debug)]
pub struct Config {
    /// The URLs at which the crawl begins. May be empty where `output` holds a crawl already.
    pub seeds: Vec<CanonicalUrl>,
    /// Those of the seeds that are sitemaps: what they list are seeds.
    pub seed_sitemaps: HashSet<CanonicalUrl>,
    /// The crawl's directory.
    pub output: PathBuf,
    /// Where the frontier is one that several workers share; none: it lies in `output`.
    pub shared: Option<SharedCrawl>,
    /// The name that robots.txt and page directives address us by.
    pub agent: ProductToken,
    /// The User-Agent header, `NAME/VERSION (+CONTACT)`.
    pub user_agent: String,
    /// Who answers for the crawl.
    pub contact: Option<Contact>,
    /// The operator's study, for the `warcinfo` record of each WARC file.
    pub study: Study,
    /// The rules by which robots.txt is read.
    pub profile: Profile,
    /// The life of copies of robots.txt, and when an unreachable one is asked for again.
    pub robots_times: RobotsTimes,
    /// The meaning of a robots.txt that answers 401 or 403.
    pub robots_forbidden: Forbidden,
    /// The purpose of the pages: a site's preference against it excludes them.
    pub purpose: Option<UsagePurpose>,
    /// Which URLs belong to the crawl.
    pub scope: ScopeRules,
    /// Which documents among them are wanted.
    pub wanted: ContentFilter,
    /// When enough is enough.
    pub budgets: Budgets,
    /// True if a finished crawl begins another round: what is due is visited again.
    pub recrawl: bool,
    /// The intervals at which pages are due.
    pub revisits: Revisits,
    /// Which URLs are taken for others, and which are not asked for though they may be.
    pub traps: TrapRules,
    /// Longest chain of redirects that is followed.
    pub max_redirects: u8,
    /// The number of times that a URL whose exchange failed is tried again.
    pub retries: u32,
    /// True if sitemaps are read.
    pub sitemaps: bool,
    /// True if feeds that pages name are read.
    pub feeds: bool,
    /// True if what a form is sent to by GET is followed like a link.
    pub forms: bool,
    /// Which parts of pages are fetched, such as images and style sheets.
    pub resources: Resources,
    /// URLs that the sitemaps of one host may bring in a run; `None` is unlimited.
    pub max_sitemap_urls: Option<u64>,
    /// Gaps, rates and limits.
    pub politeness: Politeness,
    /// True if the operator answers for all hosts of the crawl. Where not, hosts outside
    /// loopback and private ranges are asked every 200 ms at most, one request at a time.
    pub own_site: bool,
    /// Hosts in memory at which idle ones are let go; what is known of them is on disk.
    pub hosts_in_memory: usize,
    /// The file in which all crawls of a user lock the hosts that they ask; none: no other
    /// crawl is minded.
    pub host_locks: Option<PathBuf>,
    /// The longest wait for the next try where only resting hosts are left.
    pub wait_unreachable: Duration,
    /// Limits of one exchange, names, addresses and headers.
    pub fetch: FetchConfig,
    /// The most that a crash may cost: what ended is to be on the disk after so long, or no
    /// further request is sent until it is.
    pub commit_within: Duration,
    /// Bytes to stay free on the disk: below it nothing more is asked for. 0: no limit.
    pub min_free: u64,
    /// True if exchanges are kept in WARC files.
    pub warc: bool,
    /// True if `links.jsonl` is written.
    pub links: bool,
    /// Build a search index.
    pub index: bool,
    /// The documents that go into the index.
    pub documents: DocumentRules,
    /// The kinds of documents that are asked for.
    pub extent: Extent,
    /// The way in which pages are chosen among the URLs that are found; none: all are asked for.
    pub sample: Option<SampleMethod>,
    /// Name and version of the program, for the archive.
    pub software: String,
    /// The text of `crawl.toml`.
    pub config_text: String,
}

impl Config {
    /// A polite crawl from these seeds into a directory, with the defaults of the command line.
    ///
    /// `agent` is the name that robots.txt files know it by, `version` stands behind it in the
    /// User-Agent header. `contact` says who answers for the crawl; without one only loopback and
    /// private addresses are asked.
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
            profile: Profile::Rfc9309,
            robots_times: RobotsTimes::default(),
            robots_forbidden: Forbidden::Allow,
            purpose: None,
            scope: ScopeRules::default(),
            wanted: ContentFilter::default(),
            budgets: Budgets::default(),
            recrawl: false,
            revisits: Revisits::default(),
            traps: TrapRules::default(),
            max_redirects: 10,
            retries: 3,
            sitemaps: true,
            feeds: true,
            forms: false,
            resources: Resources::Off,
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
            commit_within: Duration::from_secs(1),
            min_free: 0,
            warc: true,
            links: false,
            index: false,
            documents: DocumentRules::default(),
            extent: Extent::Crawl,
            sample: None,
            software: format!("{} {version}", agent.as_str()),
            config_text: "# set by a program, not by a file\n".to_owned(),
            agent,
            contact,
            study: Study::default(),
            user_agent,
            seeds,
        }
    }
}

/// A crawl that several workers share, and this one of them.
#[derive(Clone)]
pub struct SharedCrawl {
    /// Opens its frontier.
    pub frontier: OpenFrontier,
    /// The name of the crawl.
    pub crawl: String,
    /// The name of this worker.
    pub worker: String,
    /// How long the hosts of a worker that died wait until others take them over.
    pub lease: Duration,
}

/// Opens a shared frontier as one of its workers. Takes the id of the worker's last life if
/// it had one: its directory is locked, so that life is over.
pub type OpenFrontier =
    Arc<dyn Fn(Option<String>) -> Result<Arc<dyn WorkerFrontier>, BoxError> + Send + Sync>;

/// The place that a crawl is imported to from its directory.
pub struct ImportTarget<'a> {
    /// The shared frontier.
    pub frontier: &'a dyn MoveTarget,
    /// The name of the crawl there.
    pub crawl: String,
    /// The name of the worker whose directory it is from then on.
    pub worker: String,
}

impl fmt::Debug for SharedCrawl {
    /// Leaves out the function, which has no text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("SharedCrawl");
        shown.field("crawl", &self.crawl);
        shown.field("worker", &self.worker);
        shown.field("lease", &self.lease).finish_non_exhaustive()
    }
}

/// Which parts of pages are fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resources {
    /// None.
    #[default]
    Off,
    /// Those in scope.
    Own,
    /// All, on whatever host, so that a page can be replayed; robots.txt and pace are those of that
    /// host.
    All,
}

/// The meaning of a robots.txt that answers 401 or 403.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forbidden {
    /// There are no rules (RFC 9309 section 2.3.1.3).
    #[default]
    Allow,
    /// The site is closed, as the draft of 1996 had it.
    Deny,
}

/// Which URLs belong to the crawl; see [`crawl_scope::Scope`].
#[derive(Clone, Debug, Default)]
pub struct ScopeRules {
    /// The distance from the seeds.
    pub mode: ScopeMode,
    /// Prefixes that join the scope whatever the seeds are.
    pub surt: Vec<SurtPrefix>,
    /// Hosts that join the scope as those of seeds do.
    pub hosts: Vec<HostKey>,
    /// Hosts that are no part of it, with their subdomains, whatever else says so.
    pub exclude_hosts: HostTable<()>,
    /// Where any are given, one must match.
    pub include: Vec<String>,
    /// None may match.
    pub exclude: Vec<String>,
    /// Links from a seed, at most.
    pub max_depth: Option<u32>,
    /// Links outside of the scope that are followed from a page within, one behind the other.
    pub hops_off: u8,
    /// The settings that single seeds carry of their own.
    pub seed_terms: Vec<(CanonicalUrl, SeedTerms)>,
}

/// Limits of a whole crawl; `None` is unlimited.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Budgets {
    /// Rows of `pages.jsonl`, over all runs of a round.
    pub max_pages: Option<u64>,
    /// Bytes of bodies as they came, over all runs of a round.
    pub max_bytes: Option<u64>,
    /// Time that servers spent on our requests, over all runs of a round.
    pub max_server_time: Option<Duration>,
    /// Length of this run.
    pub max_time: Option<Duration>,
    /// Limits of each host.
    pub per_host: HostBudget,
    /// Limits of some hosts instead.
    pub per_site: HostTable<HostBudget>,
    /// The groups of hosts that share a budget. Beside it each host keeps its own.
    pub groups: HostTable<Arc<HostGroup>>,
}

/// Limits that the hosts of a group share; `None` is unlimited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostGroup {
    /// The name by which records tell of it, and one group from another.
    pub name: String,
    /// Rows of `pages.jsonl`, over all runs of a round.
    pub max_pages: Option<u64>,
    /// Bytes of bodies as they came, robots.txt too, over all runs of a round.
    pub max_bytes: Option<u64>,
    /// Sum of the response times, over all runs of a round.
    pub max_server_time: Option<Duration>,
}

/// Limits of a host; `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostBudget {
    /// Rows of `pages.jsonl`, over all runs of a round.
    pub max_pages: Option<u64>,
    /// Bytes of bodies as they came, robots.txt too, over all runs of a round.
    pub max_bytes: Option<u64>,
    /// Sum of the response times, over all runs of a round.
    pub max_server_time: Option<Duration>,
    /// From this run's first request on.
    pub max_time: Option<Duration>,
}

impl HostBudget {
    /// Returns whether it limits nothing.
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

/// Which URLs are taken for others, and which are not asked for though they may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrapRules {
    /// True if spaces of URLs that bring nothing new are put aside.
    pub traps: bool,
    /// True if what looks like an action is not asked for at all.
    pub skip_actions: bool,
    /// True if parameters go that a site's robots.txt says change nothing (`Clean-param`).
    pub clean_params: bool,
    /// Which spellings name the same page.
    pub naming: SpellingRules,
}

/// The kinds of documents that a run asks for. Where pages are left out, each that could be asked for is excluded as
/// `planned`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// Pages, and all that leads to them.
    #[default]
    Crawl,
    /// robots.txt files and sitemaps alone.
    Plan,
    /// robots.txt and tdmrep.json files alone: what decides whether a page may be asked for.
    Rules,
}

impl Default for TrapRules {
    fn default() -> TrapRules {
        TrapRules {
            traps: true,
            skip_actions: false,
            clean_params: true,
            naming: SpellingRules::default(),
        }
    }
}

impl TrapRules {
    /// Nothing is put aside, and each URL names itself.
    pub const OFF: TrapRules = TrapRules {
        traps: false,
        skip_actions: false,
        clean_params: false,
        naming: SpellingRules::OFF,
    };
}

/// The intervals at which pages are visited again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revisits {
    /// No page is due sooner than this after its last visit.
    pub least: Duration,
    /// Each page is due after this, however seldom it changes.
    pub most: Duration,
}

impl Default for Revisits {
    /// At once, and 30 days.
    fn default() -> Revisits {
        Revisits {
            least: Duration::ZERO,
            most: Duration::from_secs(30 * 24 * 60 * 60),
        }
    }
}

impl Revisits {
    /// No page is due later than so many seconds after its last visit.
    pub(crate) fn longest(&self) -> u32 {
        whole_seconds(self.most.max(self.least))
    }
}
