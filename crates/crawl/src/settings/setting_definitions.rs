//! Every setting, by table: its flag, key, help and default, and how a later run uses it.

use std::time::Duration;

use crawl_fields::RuleConfig;
use serde::{Deserialize, Serialize};

use super::choices::{
    CrawlKind, ForbiddenName, LogFormatChoice, OffScopeMethodName, ProfileName, ProgressMode,
    PurposeName, RenderName, RenderResourcesName, ResourcesName, ScopeName, SignatureName,
    StratumName, WarcCompressionName, WhenName,
};
use super::host_groups::HostGroups;
use super::host_lists::HostListSetting;
use super::host_politeness::HostPolitenessOverrides;
use super::listed_seed::ListedSeed;
use super::sites::SiteSettingsByName;
use crate::values::DayHours;
use crate::values::HostListEntry;
use crate::values::LanguagePattern;
use crate::values::MediaTypePattern;
use crate::values::NameServerAddress;
use crate::values::RepeatInterval;
use crate::values::SurtPrefixSetting;
use crate::values::{
    AddressOverride, ByteSize, CountSetting, DurationSetting, FilePath, FrontierConnectionString,
    IndexedDocumentTypes, JsonSchema, ListenAddress, NonNegativeNumber, OptionalLimit, Switch,
};

/// How a later run treats a key that the directory's crawl.toml sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SettingPersistence {
    /// Applies in every later run, so that the same records are kept of all pages of the crawl.
    Kept,
    /// Applies in a later run that names no seed, and so continues the last run.
    GoesOn,
    /// Like `GoesOn`, but only if the key is proven to be this user's own setting. The text
    /// describes the harm that the key could do otherwise.
    Guarded(&'static str),
    /// Never remembered: each run sets it.
    EachRun,
}
use SettingPersistence::{EachRun, GoesOn, Guarded, Kept};

/// Defines, from one list of fields, two types for each table of settings: a layer (the values of
/// one source, each optional) and the settings in force. Also defines both types for the whole of
/// the settings.
macro_rules! tables {
    ($(
        $table:ident, $heading:literal, $layer:ident, $settled:ident {
            $(
                $(#[doc = $doc:literal])+
                $(#[arg($($arg:tt)*)])?
                $field:ident: $kind:ty = $default:expr, $memory:expr;
            )+
        }
    )+) => {
        $(
            #[doc = concat!("What one source says about `[", stringify!($table), "]`.")]
            #[derive(Clone, Debug, Default, PartialEq, clap::Args, Deserialize)]
            #[command(next_help_heading = concat!($heading, " [", stringify!($table), "]"))]
            #[serde(rename_all = "kebab-case", default)]
            pub(crate) struct $layer {
                $(
                    $(#[doc = $doc])+
                    #[arg(long $(, $($arg)*)?)]
                    pub(crate) $field: Option<$kind>,
                )+
            }

            #[doc = concat!("What is in force of `[", stringify!($table), "]`.")]
            #[derive(Clone, Debug, PartialEq, Serialize)]
            #[serde(rename_all = "kebab-case")]
            pub(crate) struct $settled {
                $( $(#[doc = $doc])+ pub(crate) $field: $kind, )+
            }
        )+

        /// The settings of one source: each may be absent.
        #[derive(Clone, Debug, Default, PartialEq, clap::Args, Deserialize)]
        #[serde(default)]
        pub(crate) struct SettingsLayer {
            /// Seed of the crawl: a URL or a host (may be repeated)
            ///
            /// `--seed` itself may be omitted: `crawl example.org` requests `https://example.org/`,
            /// and falls back to http if no https connection can be made. Loopback names and
            /// addresses are requested over http. A settings file may also give a table, with the
            /// keys of a JSON object in --seed-file.
            #[arg(long, value_name = "URL")]
            pub(crate) seed: Option<Vec<ListedSeed>>,
            /// Read seeds from this file too; `-` is stdin (may be repeated)
            ///
            /// One seed per line: a URL, a host, or a JSON object such as {"url": "example.org",
            /// "scope": "prefix", "depth": 2, "label": "press"}. Lines starting with `#` are
            /// ignored. A file starting with `<` is read as a sitemap whose pages are the seeds.
            /// Relative paths start at the working directory, even in a settings file.
            #[arg(long, value_name = "FILE", display_order = 1)]
            #[serde(rename = "seed-file")]
            pub(crate) seed_file: Option<Vec<FilePath>>,
            /// Use the entries of the sitemap at this URL as seeds (may be repeated)
            ///
            /// The sitemap is fetched as part of the crawl and is subject to robots.txt. A sitemap
            /// index includes all of its sitemaps. Entries have depth 0 and are fetched from any
            /// host, unless excluded. The sitemap's own host joins the scope as a seed's host does;
            /// the hosts of its entries don't.
            #[arg(long, value_name = "URL", display_order = 2)]
            #[serde(rename = "seed-sitemap")]
            pub(crate) seed_sitemap: Option<Vec<String>>,
            $( #[command(flatten)] pub(crate) $table: $layer, )+
            /// Settings for single hosts; only in files.
            #[arg(skip)]
            pub(crate) site: Option<SiteSettingsByName>,
            /// Groups of hosts that share a budget and politeness settings; only in files.
            #[arg(skip)]
            pub(crate) group: Option<HostGroups>,
            /// Rules for the fields of pages; only in files.
            #[arg(skip)]
            pub(crate) extract: Option<Vec<RuleConfig>>,
        }

        /// The settings in force.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        pub(crate) struct Settings {
            /// As typed by the user.
            pub(crate) seed: Vec<ListedSeed>,
            $( pub(crate) $table: $settled, )+
            pub(crate) site: SiteSettingsByName,
            pub(crate) group: HostGroups,
            pub(crate) extract: Vec<RuleConfig>,
        }

        /// The tables with their fields, in order; field names have underscores.
        pub(crate) const TABLES: &[(&str, &[&str])] =
            &[$( (stringify!($table), &[$(stringify!($field)),+]) ),+];

        impl SettingsLayer {
            /// Merges two layers: values of this one win over those of `beneath`.
            pub(crate) fn over(self, beneath: SettingsLayer) -> SettingsLayer {
                SettingsLayer {
                    seed: self.seed.or(beneath.seed),
                    seed_file: self.seed_file.or(beneath.seed_file),
                    seed_sitemap: self.seed_sitemap.or(beneath.seed_sitemap),
                    $( $table: $layer {
                        $( $field: self.$table.$field.or(beneath.$table.$field), )+
                    }, )+
                    site: self.site.or(beneath.site),
                    group: self.group.or(beneath.group),
                    extract: self.extract.or(beneath.extract),
                }
            }

            /// Fills in the built-in defaults.
            pub(crate) fn settle(self) -> Settings {
                Settings {
                    seed: self.seed.unwrap_or_default(),
                    $( $table: $settled {
                        $( $field: self.$table.$field.unwrap_or_else(|| $default), )+
                    }, )+
                    site: self.site.unwrap_or_default(),
                    group: self.group.unwrap_or_default(),
                    extract: self.extract.unwrap_or_default(),
                }
            }

            /// Returns whether this layer sets a field of a table.
            pub(super) fn sets(&self, table: &str, field: &str) -> bool {
                match (table, field) {
                    $($( (stringify!($table), stringify!($field)) => self.$table.$field.is_some(), )+)+
                    _ => false,
                }
            }

            /// Clears a field of a table.
            pub(super) fn forget(&mut self, table: &str, field: &str) {
                match (table, field) {
                    $($( (stringify!($table), stringify!($field)) => self.$table.$field = None, )+)+
                    _ => {}
                }
            }
        }

        /// Returns the fields of a table, each with the schema of its value.
        pub(super) fn schemas(table: &str) -> Vec<(&'static str, serde_json::Value)> {
            match table {
                $( stringify!($table) => vec![
                    $( (stringify!($field), <$kind as JsonSchema>::schema()), )+
                ], )+
                _ => Vec::new(),
            }
        }

        /// Returns how a later run uses a field of a table.
        pub(super) fn memory(table: &str, field: &str) -> Option<SettingPersistence> {
            match (table, field) {
                $($( (stringify!($table), stringify!($field)) => Some($memory), )+)+
                _ => None,
            }
        }
    };
}

impl SettingsLayer {
    /// Drops values that the user didn't set: a `-v` count of zero, and the contact if its environment
    /// variable is empty.
    pub(crate) fn typed(mut self) -> SettingsLayer {
        self.display.verbose = self.display.verbose.filter(|count| *count > 0);
        self.operator.contact = self.operator.contact.filter(|text| !text.is_empty());
        self
    }

    /// Clears the keys that each run sets, in a layer read from the crawl.toml of an earlier run.
    pub(super) fn forget_each_run(&mut self) {
        for (table, fields) in TABLES {
            let is_each_run = |field: &&&str| memory(table, field) == Some(EachRun);
            for field in fields.iter().filter(is_each_run) {
                self.forget(table, field);
            }
        }
    }

    /// Returns all lists of hosts.
    pub(super) fn host_lists(&mut self) -> Vec<HostListSetting<'_>> {
        let of_scope = [
            ("host", &mut self.scope.host),
            ("exclude-host", &mut self.scope.exclude_host),
        ];
        let of_scope = of_scope.into_iter().filter_map(|(key, hosts)| {
            hosts.as_mut().map(|hosts| HostListSetting {
                key,
                group: None,
                hosts,
            })
        });
        let of_groups = self
            .group
            .iter_mut()
            .flatten()
            .map(|(name, terms)| HostListSetting {
                key: "hosts",
                group: Some(name),
                hosts: &mut terms.hosts,
            });
        of_scope.chain(of_groups).collect()
    }
}

impl Default for Settings {
    fn default() -> Settings {
        SettingsLayer::default().settle()
    }
}

tables! {
    operator, "Operator", OperatorLayer, Operator {
        /// Email address or URL where site owners can reach you
        ///
        /// Required before requesting from any host outside loopback and private ranges. Sent in
        /// the User-Agent header; an email address is also sent in From. Also read from the
        /// environment and from the user's own config.toml.
        #[arg(value_name = "MAIL-OR-URL", env = "CRAWL_CONTACT", hide_env_values = true)]
        contact: String = String::new(), Guarded("sets who is responsible for the requests");
        /// Product token: the name that robots.txt files use for this crawler
        ///
        /// Letters, digits, `_` and `-`. The User-Agent header is NAME/VERSION (+CONTACT).
        #[arg(value_name = "NAME")]
        agent: String = "crawl".to_owned(), Guarded("sets which robots.txt rules apply");
        /// Kind of crawl: general or research
        ///
        /// A research crawl starts only if --contact, --operator-name, --institution, --study and
        /// --study-page are set. They are recorded in crawl.toml and in the report.
        #[arg(value_name = "KIND", value_enum, hide_possible_values = true)]
        kind: CrawlKind = CrawlKind::General, GoesOn;
        /// Name of the person or body responsible for the crawl
        #[arg(value_name = "NAME")]
        operator_name: String = String::new(), GoesOn;
        /// Institution that the crawl is made for
        #[arg(value_name = "NAME")]
        institution: String = String::new(), GoesOn;
        /// What the study is about, in a sentence for the owners of visited sites
        #[arg(value_name = "TEXT")]
        study: String = String::new(), GoesOn;
        /// Page that informs site owners about the study and how to opt out
        #[arg(value_name = "URL")]
        study_page: String = String::new(), GoesOn;
        /// Sign requests by Web Bot Auth: off, when-challenged or always
        ///
        /// when-challenged: requests to a host are signed once it answers 401, 403 or 429 with
        /// Accept-Signature. Signatures need --signature-agent and a key. See docs/identity.md.
        #[arg(value_name = "WHEN", value_enum, hide_possible_values = true)]
        signature: SignatureName = SignatureName::Off, Guarded("sets which requests are signed");
        /// https URL of your published public keys
        ///
        /// For a URL without a path, the keys are at
        /// /.well-known/http-message-signatures-directory. `crawl identity directory` writes the
        /// file.
        #[arg(value_name = "URL")]
        signature_agent: String = String::new(), Guarded("sets whom the signed requests name");
        /// File with your private keys, readable by you alone
        ///
        /// `crawl identity new` creates the file. It may change during a crawl. Without a file, the
        /// keys are read from the environment variable CRAWL_SIGNATURE_KEY.
        #[arg(value_name = "FILE")]
        signature_key: FilePath = FilePath::default(), Guarded("sets the key of signatures");
    }

    scope, "Scope", ScopeLayer, Scope {
        /// Which links to follow: host, domain, prefix or any
        ///
        /// host: the seeds' hosts, over http and https, and the host that a seed redirects to.
        /// domain: the seeds' registrable domains. prefix: only the seeds' folders and what is
        /// below them; /products counts as the folder /products/, and /docs/start is in /docs/.
        /// any: every host.
        #[arg(value_name = "MODE", value_enum, hide_possible_values = true)]
        scope: ScopeName = ScopeName::Host, GoesOn;
        /// Add this SURT prefix to the scope (may be repeated)
        ///
        /// `org,example,` is a domain with all its subdomains, `org,example,www)/docs/` a host and
        /// the start of a path, as in web archives. A leading `http://(` is allowed; http and https
        /// are treated alike. Pages there are fetched only if they are linked or are seeds.
        #[arg(value_name = "PREFIX")]
        surt: Vec<SurtPrefixSetting> = Vec::new(), GoesOn;
        /// Add this host to the scope, or `@FILE` for a list of hosts (may be repeated)
        ///
        /// A host joins the scope as a seed's host does: with --scope domain its registrable
        /// domain, with --scope prefix all of its folders. Its pages are fetched only if they are
        /// linked or are seeds. On loopback, each port is a separate host, so name it:
        /// `127.0.0.1:8080`. A file has one host per line; lines starting with `#` are ignored.
        #[arg(value_name = "HOST")]
        host: Vec<HostListEntry> = Vec::new(), GoesOn;
        /// Never fetch from this host or its subdomains, or `@FILE` (may be repeated)
        ///
        /// Wins over --host and seeds. A robots.txt that redirects to such a host counts as
        /// unreachable.
        #[arg(value_name = "HOST")]
        exclude_host: Vec<HostListEntry> = Vec::new(), GoesOn;
        /// Fetch only URLs that match this regular expression (may be repeated)
        ///
        /// Matched anywhere in the canonical URL. One match is enough; seeds are always fetched.
        #[arg(value_name = "RE")]
        include: Vec<String> = Vec::new(), GoesOn;
        /// Never fetch URLs that match this regular expression (may be repeated)
        ///
        /// Matched anywhere in the canonical URL; wins over --include.
        #[arg(value_name = "RE")]
        exclude: Vec<String> = Vec::new(), GoesOn;
        /// Follow links up to this many hops outside the scope
        ///
        /// With 1, pages that in-scope pages link to are fetched, but their links are not followed.
        /// --include, --exclude, --exclude-host, --max-depth, robots.txt, politeness and host
        /// budgets apply there too. Sitemaps of hosts outside the scope are not read, and pages
        /// outside the scope that only a sitemap lists are not fetched.
        #[arg(value_name = "N")]
        hops_off_scope: u8 = 0, GoesOn;
        /// How to request pages at the last hop outside the scope: get or head
        ///
        /// get: fetch and keep them like other pages. head: only check that they exist. HEAD is
        /// sent, and GET only if HEAD is answered with an error, with an empty body, or not at all.
        /// A page that GET returns is kept like others. URLs that look like a trap are checked in
        /// the same way.
        #[arg(value_name = "METHOD", value_enum, hide_possible_values = true)]
        off_scope_method: OffScopeMethodName = OffScopeMethodName::Get, GoesOn;
        /// Keep only documents of this type, such as text/html or image/* (may be repeated)
        ///
        /// HTML, feeds and other documents with links are still read, and their links followed. For
        /// all other types the body is not fetched. Each gets a row marked `unwanted`, and its
        /// headers are archived.
        #[arg(value_name = "TYPE")]
        content_type: Vec<MediaTypePattern> = Vec::new(), GoesOn;
        /// Keep only documents whose body has at least this many bytes
        ///
        /// Counted as received. Shorter pages are still read, and their links followed.
        #[arg(value_name = "SIZE")]
        min_size: ByteSize = ByteSize(0), GoesOn;
        /// Keep only documents whose body has at most this many bytes
        ///
        /// The transfer of a longer body stops there; it is not read, and its links are not
        /// followed. --max-body keeps the truncated body instead; this drops the whole document.
        #[arg(value_name = "SIZE")]
        max_size: OptionalLimit<ByteSize> = OptionalLimit::UNLIMITED, GoesOn;
        /// Keep only pages in this language, such as de or de-AT (may be repeated)
        ///
        /// `de` includes de-AT. Links of pages in other languages are not followed. A page's
        /// declared language counts, unless its text is clearly in another. Pages of unknown
        /// language are kept, and so are seeds, except those from a sitemap.
        #[arg(value_name = "LANGUAGE")]
        language: Vec<LanguagePattern> = Vec::new(), GoesOn;
        /// Maximum number of links to follow away from a seed
        ///
        /// A seed has depth 0. A redirect doesn't change the depth.
        #[arg(value_name = "N")]
        max_depth: OptionalLimit<CountSetting> = OptionalLimit::UNLIMITED, GoesOn;
        /// Stop after N pages
        ///
        /// Counts the rows of pages.jsonl over all runs of this crawl (of this round, with
        /// --recrawl). robots.txt files and excluded URLs don't count.
        #[arg(value_name = "N")]
        max_pages: OptionalLimit<CountSetting> = OptionalLimit::UNLIMITED, GoesOn;
        /// Maximum pages to fetch per host
        ///
        /// Counted like --max-pages.
        #[arg(value_name = "N")]
        max_pages_per_host: OptionalLimit<CountSetting> = OptionalLimit::UNLIMITED, GoesOn;
        /// Maximum body bytes to fetch per host
        ///
        /// Counted like --max-bytes. In-flight requests may exceed it.
        #[arg(value_name = "SIZE")]
        max_bytes_per_host: OptionalLimit<ByteSize> = OptionalLimit::UNLIMITED, GoesOn;
        /// Stop once total server response time reaches this
        ///
        /// The sum of all response times, over all runs of this crawl.
        #[arg(value_name = "DURATION")]
        max_server_time: OptionalLimit<DurationSetting> = OptionalLimit::UNLIMITED, GoesOn;
        /// Maximum total server response time per host
        #[arg(value_name = "DURATION")]
        max_server_time_per_host: OptionalLimit<DurationSetting> = OptionalLimit::UNLIMITED, GoesOn;
        /// Stop requesting from a host this long after a run's first request to it
        #[arg(value_name = "DURATION")]
        max_time_per_host: OptionalLimit<DurationSetting> = OptionalLimit::UNLIMITED, GoesOn;
        /// Stop after this much time
        ///
        /// Counted from each start of the crawl.
        #[arg(value_name = "DURATION")]
        max_time: OptionalLimit<DurationSetting> = OptionalLimit::UNLIMITED, GoesOn;
        /// Stop after this many body bytes
        ///
        /// Counted as received, over all runs of this crawl.
        #[arg(value_name = "SIZE")]
        max_bytes: OptionalLimit<ByteSize> = OptionalLimit::UNLIMITED, GoesOn;
        /// Maximum number of consecutive redirects to follow
        ///
        /// Each redirect target is treated like a link: the scope applies, and the robots.txt and
        /// politeness of its host.
        #[arg(value_name = "N")]
        max_redirects: u8 = 10, GoesOn;
        /// Read sitemaps, on or off
        ///
        /// Those named in robots.txt, or /sitemap.xml if it names none. Pages of other hosts in a
        /// sitemap are taken only if they are in scope and the robots.txt of their own host names
        /// the sitemap or its index.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        sitemaps: Switch = Switch::On, GoesOn;
        /// Maximum number of URLs to take from the sitemaps of one host
        ///
        /// Counted in each run. The row of a longer sitemap has `sitemap_limit`.
        #[arg(value_name = "N")]
        max_sitemap_urls: OptionalLimit<CountSetting> = OptionalLimit(Some(CountSetting(250_000))),
            Guarded("could exhaust this machine's memory");
        /// Read feeds that pages link to (RSS, Atom, JSON Feed), on or off
        ///
        /// Their URLs are followed like links, within the scope.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        feeds: Switch = Switch::On, GoesOn;
        /// Follow the targets of GET forms, on or off
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        forms: Switch = Switch::Off, GoesOn;
        /// Fetch page resources such as images and style sheets: off, own or all
        ///
        /// own: only resources in scope. all, or the flag alone: resources on any host, so that
        /// pages replay from the archive. The robots.txt and the delays of the resource's host
        /// apply. Resources count as pages.
        #[arg(value_name = "off|own|all", value_enum, hide_possible_values = true, num_args = 0..=1, require_equals = true, default_missing_value = "all")]
        resources: ResourcesName = ResourcesName::Off, GoesOn;
    }

    sample, "Sampling", SampleLayer, Sample {
        /// Fetch a random sample of the discovered pages: N from each stratum
        ///
        /// First, sitemaps and pages (see --frame-depth) are read; the URLs they name are the
        /// frame. Next, pages are drawn at random from the frame and fetched, without following
        /// their links. Each row has the probability of its page being drawn. A stratum with N
        /// pages or fewer is taken whole.
        #[arg(value_name = "N")]
        sample: OptionalLimit<CountSetting> = OptionalLimit::UNLIMITED, Kept;
        /// Strata of the sample: crawl, host, depth or path
        ///
        /// crawl: all pages are one stratum. host: one per host. depth: one per host and distance
        /// in links from a seed. path: one per host and top-level folder; a host's folders with no
        /// more than --sample pages are combined.
        #[arg(value_name = "STRATA", value_enum, hide_possible_values = true)]
        sample_by: StratumName = StratumName::Host, Kept;
        /// Random seed of the draw or walk; the same text gives the same sample
        #[arg(value_name = "TEXT")]
        sample_seed: String = "1".to_owned(), Kept;
        /// Build the frame from the links of pages fewer than N links away from a seed
        ///
        /// With 1, only the seeds are read. With 0, no page is read before the draw: the frame is
        /// the seeds and the sitemap entries.
        #[arg(value_name = "N")]
        frame_depth: u32 = 1, Kept;
        /// Fetch the pages of random walks, with this many steps per walker
        ///
        /// A walker starts at a seed. Each further step follows a random link of the page or
        /// restarts at a seed. Sitemaps are not read. The probability of reaching a page is
        /// unknown, and the rows state this; the steps are in walk.jsonl.
        #[arg(value_name = "STEPS")]
        walk: OptionalLimit<CountSetting> = OptionalLimit::UNLIMITED, Kept;
        /// Number of independent walkers
        #[arg(value_name = "N")]
        walkers: u32 = 4, Kept;
        /// Probability that a step restarts at a seed instead of following a link
        #[arg(value_name = "P")]
        walk_restart: NonNegativeNumber = NonNegativeNumber(0.15), Kept;
    }

    politeness, "Politeness", PolitenessLayer, Politeness {
        /// Minimum delay between requests to one host
        ///
        /// Measured from the end of one request to the start of the next. A longer Crawl-delay or
        /// Retry-After of the host is always respected.
        #[arg(value_name = "DURATION")]
        delay: DurationSetting = DurationSetting::from_secs(1), GoesOn;
        /// Minimum delay as a multiple of the host's smoothed response time
        ///
        /// 0 turns it off.
        #[arg(value_name = "X")]
        delay_factor: NonNegativeNumber = NonNegativeNumber(2.0), GoesOn;
        /// Maximum in-flight requests per host
        ///
        /// The delay applies to each of them.
        #[arg(value_name = "N")]
        per_host: u32 = 1, GoesOn;
        /// Maximum in-flight requests per IP address
        #[arg(value_name = "N")]
        per_address: u32 = 8, GoesOn;
        /// Minimum delay between requests to one IP address
        #[arg(value_name = "DURATION")]
        address_delay: DurationSetting = DurationSetting::ZERO, GoesOn;
        /// Maximum requests per second to one IP address, evenly spaced
        ///
        /// 0 turns the limit off. Loopback addresses are exempt.
        #[arg(value_name = "X")]
        address_rate: OptionalLimit<NonNegativeNumber> = OptionalLimit(Some(NonNegativeNumber(16.0))), GoesOn;
        /// Maximum in-flight requests per site (registrable domain)
        ///
        /// Never less than --per-host.
        #[arg(value_name = "N")]
        per_site: OptionalLimit<CountSetting> = OptionalLimit::UNLIMITED, GoesOn;
        /// Minimum delay between requests to one site (registrable domain)
        #[arg(value_name = "DURATION")]
        site_delay: DurationSetting = DurationSetting::ZERO, GoesOn;
        /// Lengthen each delay by a random fraction between 0 and this
        ///
        /// At most 0.01, which is one percent; 0, the default, turns it off.
        #[arg(value_name = "X")]
        jitter: NonNegativeNumber = NonNegativeNumber(0.0), GoesOn;
        /// Maximum Retry-After to respect in full
        ///
        /// A longer one is shortened to this.
        #[arg(value_name = "DURATION")]
        max_retry_after: DurationSetting = DurationSetting::from_secs(24 * 60 * 60),
            Guarded("shortens waits that hosts request");
        /// UTC hours without requests, such as 08:00-18:00 (may be repeated)
        #[arg(value_name = "HH:MM-HH:MM")]
        quiet_hours: Vec<DayHours> = Vec::new(), GoesOn;
        /// Maximum requests per second in total
        ///
        /// 0 means no limit.
        #[arg(value_name = "X")]
        max_rate: OptionalLimit<NonNegativeNumber> = OptionalLimit::UNLIMITED, GoesOn;
        /// Maximum in-flight requests in total
        #[arg(value_name = "N")]
        concurrency: u32 = 256, GoesOn;
        /// Maximum concurrent DNS lookups, made ahead of time; not counted in --concurrency
        #[arg(value_name = "N")]
        look_ups: u32 = 256, GoesOn;
        /// Number of hosts in memory at which idle ones are evicted to disk
        ///
        /// A host takes about 600 bytes. Hosts with pending URLs are never evicted.
        #[arg(value_name = "N")]
        hosts_in_memory: CountSetting = CountSetting(500_000), Guarded("could exhaust this machine's memory");
        /// Stop when every remaining host would have to be waited for longer than this
        ///
        /// Such hosts demanded a wait or can't be reached. They are reported, and their pages stay
        /// pending for the next start. A gap between two requests to a host, such as a
        /// `Crawl-delay`, isn't such a wait: it ends the crawl only if it is longer than a day.
        #[arg(value_name = "DURATION")]
        wait_unreachable: DurationSetting = DurationSetting::from_secs(60), GoesOn;
        /// I run these hosts: allow a short delay and many parallel requests
        ///
        /// Required for a delay under 200ms or more than 4 in-flight requests per host outside
        /// loopback and private ranges.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        own_site: Switch = Switch::Off, Guarded("lifts the minimum delay");
        /// Rules for reading robots.txt: rfc9309, koster1994, extended1997 or strictest
        ///
        /// rfc9309: the standard of 2022. koster1994: the original of 1994. extended1997: the
        /// original, with several names and paths on a line. strictest: a URL is fetched only if
        /// every reading allows it. No flag turns robots.txt off.
        #[arg(value_name = "PROFILE", value_enum, hide_possible_values = true)]
        robots: ProfileName = ProfileName::Rfc9309, Guarded("sets how robots.txt is read");
    }

    exclusion, "Exclusion", ExclusionLayer, Exclusion {
        /// Intended use of the pages: search, ai-input, train-ai, archive or unstated
        ///
        /// A site's preference against that use (Content-Usage, Content-Signal, tdm-reservation,
        /// noai) excludes a page as robots.txt does. If only the page itself states it, the row is
        /// kept but the body is not archived. unstated: preferences are only recorded.
        #[arg(value_name = "PURPOSE", value_enum, hide_possible_values = true)]
        purpose: PurposeName = PurposeName::Unstated, GoesOn;
        /// Meaning of a robots.txt that returns 401 or 403: allow or deny
        ///
        /// allow: there are no rules, as in RFC 9309. deny: nothing is fetched from that origin.
        #[arg(value_name = "allow|deny", value_enum, hide_possible_values = true)]
        robots_forbidden: ForbiddenName = ForbiddenName::Allow, GoesOn;
        /// Maximum age of a robots.txt before it is fetched again, at most 1d
        ///
        /// Shorter if the server's Cache-Control or Expires demands it, but at least 1m.
        #[arg(value_name = "DURATION")]
        robots_max_age: DurationSetting = DurationSetting::from_secs(24 * 60 * 60), GoesOn;
        /// First wait before an unreachable robots.txt is retried, if it has no Retry-After
        ///
        /// Unreachable: 429, 5xx, a broken response or none. No page of its origin is fetched until
        /// then, unless the last good copy is still valid. Each further wait is twice as long,
        /// unless the server's Retry-After is longer.
        #[arg(value_name = "DURATION")]
        robots_retry: DurationSetting = DurationSetting::from_secs(5 * 60), Guarded("sets how often robots.txt is fetched");
        /// Maximum wait between retries of an unreachable robots.txt
        #[arg(value_name = "DURATION")]
        robots_retry_most: DurationSetting = DurationSetting::from_secs(6 * 60 * 60),
            Guarded("sets how often robots.txt is fetched");
        /// How long the last good copy of an unreachable robots.txt stays valid, at most 30d
        ///
        /// 0s turns it off.
        #[arg(value_name = "DURATION")]
        robots_last_good: DurationSetting = DurationSetting::from_secs(30 * 24 * 60 * 60), GoesOn;
    }

    names, "URL clean-up and traps", NamesLayer, Names {
        /// Stop following URL patterns that only yield duplicates, on or off
        ///
        /// Calendars, session ids, selections, endless paths and redirects. Skipped URLs are listed
        /// in excluded.jsonl with the evidence, and some are checked again.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        traps: Switch = Switch::On, GoesOn;
        /// Never fetch URLs that look like actions: logout, vote, delete, action=edit
        ///
        /// Programs under /cgi-bin/ that are given arguments count too. If this is off, such URLs
        /// are fetched after all others.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        skip_actions: Switch = Switch::Off, GoesOn;
        /// Remove tracking parameters from links: off, evidence or on
        ///
        /// utm_source, fbclid, gclid and the like. evidence: only where pages of the host were the
        /// same with and without them.
        #[arg(value_name = "WHEN", value_enum, hide_possible_values = true)]
        tracking_parameters: WhenName = WhenName::On, GoesOn;
        /// Treat /a/index.html as /a/: off, evidence or on
        ///
        /// evidence: only where pages of the host were the same with and without it.
        #[arg(value_name = "WHEN", value_enum, hide_possible_values = true)]
        default_documents: WhenName = WhenName::Evidence, GoesOn;
        /// Remove session ids from links: off, evidence or on
        ///
        /// PHPSESSID, jsessionid, sid and the like, in queries and paths. evidence: only where pages
        /// of the host were the same with and without them.
        #[arg(value_name = "WHEN", value_enum, hide_possible_values = true)]
        session_ids: WhenName = WhenName::Evidence, GoesOn;
        /// Sort query parameters: off, evidence or on
        ///
        /// evidence: only where pages of the host were the same whether sorted or not.
        #[arg(value_name = "WHEN", value_enum, hide_possible_values = true)]
        parameter_order: WhenName = WhenName::Evidence, GoesOn;
        /// Remove empty query parameters: off, evidence or on
        ///
        /// evidence: only where pages of the host were the same with and without them.
        #[arg(value_name = "WHEN", value_enum, hide_possible_values = true)]
        empty_parameters: WhenName = WhenName::Evidence, GoesOn;
        /// Remove parameters that the site's robots.txt declares irrelevant, on or off
        ///
        /// By its Clean-param lines.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        clean_params: Switch = Switch::On, GoesOn;
    }

    render, "Rendering", RenderLayer, Render {
        /// Render pages that scripts build, in a browser: off, auto or on
        ///
        /// auto: pages that show little text but have scripts, as long as rendering pages like them
        /// brings more. on: all HTML pages. The browser has no network: the crawl sends the
        /// requests of a page, and robots.txt, delays and exclusions apply to them. See
        /// docs/rendering.md.
        #[arg(value_name = "WHEN", value_enum, hide_possible_values = true)]
        render: RenderName = RenderName::Off, Guarded("runs a browser");
        /// Program of the browser: Chromium or Chrome
        ///
        /// By default CRAWL_BROWSER, or else the first of chromium-headless-shell, chromium and
        /// google-chrome on the PATH. Never downloaded.
        #[arg(value_name = "FILE")]
        browser: FilePath = FilePath::default(), Guarded("sets the program that renders pages");
        /// Run the browser in its sandbox, on or off
        ///
        /// The sandbox can't run as root. Switch it off only where something else isolates the
        /// browser, such as a container.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        browser_sandbox: Switch = Switch::On, Guarded("switches the browser's sandbox off");
        /// Number of pages to render at once
        #[arg(value_name = "N")]
        render_tabs: u32 = 2, GoesOn;
        /// How long the scripts of a page may run, by the page's own clock
        ///
        /// The clock stops while the page waits for an answer. Delays between requests therefore
        /// don't change the page.
        #[arg(value_name = "DURATION")]
        render_time: DurationSetting = DurationSetting::from_secs(10), GoesOn;
        /// Maximum time that the browser may work on a page
        ///
        /// Waiting for answers does not count. Beyond the limit, the page is read as it was sent.
        #[arg(value_name = "DURATION")]
        render_timeout: DurationSetting = DurationSetting::from_secs(30), GoesOn;
        /// Maximum memory of the browser
        ///
        /// Beyond the limit, the browser is restarted, and its pages are read as they were sent.
        #[arg(value_name = "SIZE")]
        render_memory: ByteSize = ByteSize(2 << 30), GoesOn;
        /// Resources that rendered pages may fetch: text or all
        ///
        /// text: scripts, style sheets, frames and data. all: images, media and fonts too.
        #[arg(value_name = "KINDS", value_enum, hide_possible_values = true)]
        render_resources: RenderResourcesName = RenderResourcesName::Text, GoesOn;
        /// Send the POST requests that rendered pages make to their own origin, on or off
        ///
        /// Each may change something at the site, so switch this on only for sites that you know.
        /// Never sent twice, but a page that is rendered again sends its requests again.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        render_post: Switch = Switch::Off, GoesOn;
        /// Archive a screenshot of each rendered page, on or off
        ///
        /// PNG of the first 1280 by 1024 pixels, under the URL urn:view:URL. With
        /// --render-resources text it lacks images and fonts.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        screenshots: Switch = Switch::Off, GoesOn;
        /// Maximum number of requests per rendered page
        ///
        /// Beyond the limit, requests are refused, and the page is rendered without them.
        #[arg(value_name = "N")]
        render_max_requests: u32 = 100, GoesOn;
        /// Maximum bytes to fetch per rendered page
        ///
        /// Beyond the limit, requests are refused, and the page is rendered without them.
        #[arg(value_name = "SIZE")]
        render_max_bytes: ByteSize = ByteSize(32 << 20), GoesOn;
        /// Maximum number of hosts to fetch from per rendered page
        #[arg(value_name = "N")]
        render_max_hosts: u32 = 10, GoesOn;
    }

    recrawl, "Recrawling", RecrawlLayer, Recrawl {
        /// Start another round when the last one is finished, and visit the pages that are due
        ///
        /// A page is due in the round after its first visit. Later visits come less often while it
        /// is unchanged, and more often if it changed. Requests send the stored ETag and
        /// Last-Modified. If DIR has no crawl, a new one starts. An interrupted round is finished
        /// first. Never taken from crawl.toml.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        recrawl: Switch = Switch::Off, EachRun;
        /// Start a round this long after the last one started, until stopped
        ///
        /// Implies --recrawl. A round that takes longer is followed immediately by the next. If the
        /// last round of an earlier run is finished, the crawl first waits out the remaining time.
        /// --max-time limits each round. A signal during the wait ends the program with exit
        /// code 0. Never taken from crawl.toml.
        #[arg(value_name = "DURATION")]
        every: RepeatInterval = RepeatInterval::NEVER, EachRun;
        /// Minimum time between visits of a page
        #[arg(value_name = "DURATION")]
        revisit_least: DurationSetting = DurationSetting::ZERO, GoesOn;
        /// Maximum time between visits of a page, even if it rarely changes
        #[arg(value_name = "DURATION")]
        revisit_most: DurationSetting = DurationSetting::from_secs(30 * 24 * 60 * 60), GoesOn;
    }

    frontier, "Shared frontier", FrontierLayer, FrontierPlace {
        /// Share the crawl with other workers, through PostgreSQL at this connection string
        ///
        /// Each worker has its own directory and --worker name, and all have the same settings:
        /// docs/operating.md. The password is read from PGPASSWORD or a password file. It is never
        /// written to crawl.toml, and never read from the command line, where others can see it.
        /// One string may list several hosts: a primary and its standbys. Each further string is
        /// another server group, which serves a part of the hosts. Without it the frontier is in
        /// the crawl's directory.
        #[arg(value_name = "URL")]
        frontier: Vec<FrontierConnectionString> = Vec::new(), Guarded("sets where the crawl's URLs are stored");
        /// Name of the shared crawl; the host of the first seed by default
        #[arg(value_name = "NAME")]
        crawl: String = String::new(), GoesOn;
        /// Name of this worker, unique within the crawl
        #[arg(value_name = "NAME")]
        worker: String = String::new(), GoesOn;
        /// How long until a dead worker's hosts are taken over by others
        ///
        /// A worker that can't reach PostgreSQL for this long exits.
        #[arg(value_name = "DURATION")]
        frontier_lease: DurationSetting = DurationSetting::from_secs(30), GoesOn;
    }

    fetch, "Fetching", FetchLayer, Fetch {
        /// Timeout of a whole exchange
        #[arg(value_name = "DURATION")]
        timeout: DurationSetting = DurationSetting::from_secs(60), GoesOn;
        /// Connection timeout
        #[arg(value_name = "DURATION")]
        connect_timeout: DurationSetting = DurationSetting::from_secs(10), GoesOn;
        /// Timeout from the connection to the first byte of the response
        #[arg(value_name = "DURATION")]
        first_byte_timeout: DurationSetting = DurationSetting::from_secs(30), GoesOn;
        /// Maximum pause within a response
        #[arg(value_name = "DURATION")]
        idle_timeout: DurationSetting = DurationSetting::from_secs(20), GoesOn;
        /// How long a connection stays open without a request
        ///
        /// The next request to the host then needs no handshake. 0 closes connections after each
        /// response. Many servers close idle connections after 5 seconds themselves.
        #[arg(value_name = "DURATION")]
        keep_alive: DurationSetting = DurationSetting::from_secs(5), GoesOn;
        /// Maximum connections to keep open, including those in use
        ///
        /// Each takes an open file and about 30 kB of memory, 60 kB over TLS; fewer are kept if few
        /// files may be open. With thousands of hosts, raising this and --keep-alive saves
        /// handshakes.
        #[arg(value_name = "N")]
        max_kept_connections: u32 = 1024, GoesOn;
        /// Maximum body size, at most 255MiB; longer bodies are truncated and marked
        #[arg(value_name = "SIZE")]
        max_body: ByteSize = ByteSize(10 << 20), Guarded("could exhaust this machine's memory");
        /// Memory shared by long bodies; a fetch waits while it is in use
        ///
        /// The first 256 KiB of each body are free. Anything longer reserves its announced length,
        /// or --max-body, until it is written.
        #[arg(value_name = "SIZE")]
        body_memory: ByteSize = ByteSize(128 << 20), Guarded("could exhaust this machine's memory");
        /// Number of retries of a failed URL
        #[arg(value_name = "N")]
        retries: u32 = 3, GoesOn;
        /// Proxy for all requests: http, https, socks5 or socks5h URL
        ///
        /// A user name and password in it are not written to crawl.toml.
        #[arg(value_name = "URL")]
        proxy: String = String::new(), Guarded("redirects requests");
        /// Use this address for a host and port, in curl's syntax (may be repeated)
        #[arg(value_name = "HOST:PORT:ADDR")]
        resolve: Vec<AddressOverride> = Vec::new(), Guarded("redirects requests");
        /// Use this name server instead of the system's (may be repeated)
        ///
        /// An address, with a port if it isn't 53. The hosts file is then ignored.
        #[arg(value_name = "ADDR")]
        name_server: Vec<NameServerAddress> = Vec::new(), Guarded("redirects requests");
        /// Maximum look-ups per second to each name server
        ///
        /// 0 turns the limit off. Name servers on loopback have no limit.
        #[arg(value_name = "X")]
        name_server_rate: OptionalLimit<NonNegativeNumber> = OptionalLimit(Some(NonNegativeNumber(100.0))), GoesOn;
        /// Also trust the certificates in this PEM file (may be repeated)
        ///
        /// For servers whose certificates are signed by your own CA.
        #[arg(value_name = "FILE")]
        ca_file: Vec<FilePath> = Vec::new(), Guarded("sets which certificates are trusted");
        /// Import the cookies in this Netscape cookies.txt
        ///
        /// They go only to sites with `cookies = "keep"` in a settings file. The same file is
        /// imported once: later runs use the cookies that the site has set since.
        #[arg(value_name = "FILE")]
        cookies: FilePath = FilePath::default(), EachRun;
        /// Follow links into loopback and private ranges
        ///
        /// A seed that you typed is allowed without it, at its own port (http and https if it names
        /// none). If its name has resolved to a public address before, private addresses need this
        /// flag.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        allow_private: Switch = Switch::Off, Guarded("allows requests to private networks");
        /// Send the URL of the linking page in the Referer header
        ///
        /// As browsers do: only the page's origin to another origin, and nothing from https to
        /// http. Requests for robots.txt, sitemaps, seeds and redirect targets send no Referer.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        referer: Switch = Switch::Off, GoesOn;
    }

    output, "Output", OutputLayer, Output {
        /// Directory of the crawl; crawl-HOST of the first seed by default
        ///
        /// If it holds a crawl, that crawl is continued. The choice of outputs (WARC, index, links)
        /// and the seeds are remembered. If no seed is given, so are all other settings except
        /// display ones. Flags win. A crawl.toml that isn't your own can set less:
        /// docs/crawl-directory.md.
        #[arg(value_name = "DIR")]
        output: FilePath = FilePath::default(), EachRun;
        /// Allow new seeds to join the crawl in DIR, on or off
        ///
        /// Otherwise a new seed is refused, whether typed or listed in a file: the pages of both
        /// sites would share the archive, the records and the search index permanently. Never taken
        /// from crawl.toml.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        add_seed: Switch = Switch::Off, EachRun;
        /// Write WARC files of all exchanges, on or off
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        warc: Switch = Switch::On, Kept;
        /// Compression of WARC files: gzip, zstd, none
        ///
        /// Most tools for archives read gzip and none, few read zstd. If pages arrive uncompressed,
        /// zstd takes less CPU than gzip for files of the same size, and none takes even less, but
        /// its files are several times larger. A crawl that resumes with another compression begins
        /// a new file.
        #[arg(value_name = "FORMAT", value_enum, hide_possible_values = true)]
        warc_compression: WarcCompressionName = WarcCompressionName::Gzip, Kept;
        /// Build a search index, on or off
        ///
        /// Used by `crawl search` and `crawl serve`, even while the crawl runs. If it is turned on
        /// for a crawl that already has pages, they are indexed from the archive first.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        index: Switch = Switch::Off, Kept;
        /// Document types to index: html, text, markdown, docx, pdf, all
        ///
        /// Separated by commas. Text is off by default, because much of it repeats what is already
        /// indexed: page sources, licences, logs. PDF and DOCX are read in a separate process, so a
        /// broken file loses only its own text.
        #[arg(value_name = "TYPES")]
        index_types: IndexedDocumentTypes = IndexedDocumentTypes::default(), Kept;
        /// Maximum time to read one PDF or DOCX
        #[arg(value_name = "DURATION")]
        document_timeout: DurationSetting = DurationSetting::from_secs(10), GoesOn;
        /// Maximum memory to read one PDF or DOCX
        #[arg(value_name = "SIZE")]
        document_memory: ByteSize = ByteSize(512 << 20), GoesOn;
        /// Maximum text to read from a document that isn't HTML
        #[arg(value_name = "SIZE")]
        document_text: ByteSize = ByteSize(8 << 20), GoesOn;
        /// Write links.jsonl, on or off
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        links: Switch = Switch::Off, Kept;
        /// Pause fetching while free disk space is below this
        ///
        /// Requests in flight finish and are kept. Fetching resumes once a tenth more is free. 0: a
        /// full disk ends the crawl with exit code 3, without data loss.
        #[arg(value_name = "SIZE")]
        min_free: ByteSize = ByteSize(0), GoesOn;
        /// Write finished work to disk within this time
        ///
        /// After a crash, only pages of this time are fetched again. While the disk is slower, no
        /// new requests are sent.
        #[arg(value_name = "DURATION")]
        commit_within: DurationSetting = DurationSetting::from_secs(1), GoesOn;
    }

    display, "Display", DisplayLayer, Display {
        /// Progress on stderr: auto, bar, plain, json or off
        ///
        /// auto: a bar on a terminal, otherwise plain. plain: a line every ten seconds. json: one
        /// JSON object per line every second.
        #[arg(value_name = "MODE", value_enum, hide_possible_values = true)]
        progress: ProgressMode = ProgressMode::Auto, EachRun;
        /// Print only errors on stderr: no progress, no summary
        #[arg(short, value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        quiet: Switch = Switch::Off, EachRun;
        /// Print more on stderr: each request (-v), also each decision and its rule (-vv)
        ///
        /// With -vv the lines of a URL trace its life: found, leased, allowed by robots.txt, due,
        /// answered, read, settled.
        #[arg(short, action = clap::ArgAction::Count)]
        verbose: u8 = 0, EachRun;
        /// Also log to this file, at least each exchange
        #[arg(value_name = "FILE")]
        log: FilePath = FilePath::default(), EachRun;
        /// Format of --log: text or json
        #[arg(value_name = "text|json", value_enum, hide_possible_values = true)]
        log_format: LogFormatChoice = LogFormatChoice::Text, EachRun;
        /// Rotate --log before it grows longer than this
        ///
        /// FILE is renamed to FILE.1, FILE.1 to FILE.2, and so on. At least 64KiB, or unlimited.
        #[arg(value_name = "SIZE")]
        log_max_size: OptionalLimit<ByteSize> = OptionalLimit(Some(ByteSize(100 << 20))), EachRun;
        /// Number of rotated log files to keep; older ones are removed
        #[arg(value_name = "N")]
        log_keep: u32 = 9, EachRun;
        /// Serve Prometheus metrics at http://ADDR/metrics
        ///
        /// ADDR is an address of this machine with a port, such as 127.0.0.1:9464; with port 0 a
        /// free one is chosen and reported. The metrics name no hosts or URLs.
        #[arg(value_name = "ADDR")]
        metrics: ListenAddress = ListenAddress(None), EachRun;
        /// Exit with 1 if any page failed
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        fail_on_error: Switch = Switch::Off, EachRun;
        /// Exit with 1 if any host is partial, blocked or empty
        ///
        /// hosts.jsonl lists what is missing of each host, and why.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        fail_on_partial: Switch = Switch::Off, EachRun;
    }
}
impl Settings {
    /// Returns the longest delay that the settings require between two requests to any host,
    /// address or site.
    pub(crate) fn longest_delay(&self) -> Duration {
        let of_crawl = &self.politeness;
        let sites = self.site.values().map(|terms| &terms.politeness);
        let groups = self.group.values().map(|terms| &terms.politeness);
        let of_hosts = sites
            .chain(groups)
            .filter_map(HostPolitenessOverrides::longest_delay);
        [of_crawl.delay, of_crawl.address_delay, of_crawl.site_delay]
            .into_iter()
            .map(DurationSetting::get)
            .chain(of_hosts)
            .max()
            .unwrap_or_default()
    }
}
