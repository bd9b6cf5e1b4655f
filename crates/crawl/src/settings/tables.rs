//! Every setting, by table: its flag, key, help, default, and what a later run makes of it.

use serde::{Deserialize, Serialize};

use super::choices::{
    ForbiddenName, KindName, LogFormatName, ProfileName, ProgressMode, PurposeName, ResourcesName,
    ScopeName, StratumName, WhenName,
};
use super::groups::Groups;
use super::host_lists::HostList;
use super::listed_seed::ListedSeed;
use super::sites::Sites;
use crate::values::DayHours;
use crate::values::Language;
use crate::values::ListedHost;
use crate::values::MediaType;
use crate::values::NameServer;
use crate::values::Period;
use crate::values::Surt;
use crate::values::{
    Count, Factor, FilePath, FrontierUrl, IndexTypes, Limit, ListenAddress, Resolve, SchemaValue,
    Size, Span, Switch,
};

/// The use that a later run makes of a key of the directory's crawl.toml.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// It holds in every later run: what is kept of a part of the pages would pass for the whole.
    Kept,
    /// It holds where a run names no seed, and so goes on as the last one did.
    GoesOn,
    /// The same, where it is known as this user's word. What else it could do, in words.
    Guarded(&'static str),
    /// Each run says it anew.
    EachRun,
}
use Memory::{EachRun, GoesOn, Guarded, Kept};

/// Defines each table of settings as a layer (what one source says: every field may be absent)
/// and as what is in force, from one list of fields; and both of all tables together.
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
        pub(crate) struct Layer {
            /// The start of the crawl: a URL or a host (may be repeated)
            ///
            /// `--seed` itself may be left out: `crawl example.org` asks `https://example.org/`,
            /// and http where no connection can be made by https; loopback names and addresses are
            /// asked over http. In a file of settings it may be a table too, as a line of --seed-file is
            /// an object.
            #[arg(long, value_name = "URL")]
            pub(crate) seed: Option<Vec<ListedSeed>>,
            /// Take the seeds that this file lists too; `-` is stdin (may be repeated)
            ///
            /// A line for each: a URL or a host, or a JSON object such as {"url": "example.org",
            /// "scope": "prefix", "depth": 2, "label": "press"}; lines that begin with `#` are left out.
            /// A file that begins with `<` is read as a sitemap, whose pages are the seeds. A relative
            /// path begins at the working directory, in a file of settings too.
            #[arg(long, value_name = "FILE", display_order = 1)]
            #[serde(rename = "seed-file")]
            pub(crate) seed_file: Option<Vec<FilePath>>,
            /// Take what the sitemap at this URL lists as seeds (may be repeated)
            ///
            /// It is asked for as a part of the crawl, by the rules of its robots.txt; of an index all
            /// of its sitemaps are. The entries have depth 0 and are asked for on whatever host they
            /// lie, unless excluded. The host of the sitemap joins the scope as that of a seed does;
            /// those of entries do not.
            #[arg(long, value_name = "URL", display_order = 2)]
            #[serde(rename = "seed-sitemap")]
            pub(crate) seed_sitemap: Option<Vec<String>>,
            $( #[command(flatten)] pub(crate) $table: $layer, )+
            /// Other settings for some hosts; in files alone.
            #[arg(skip)]
            pub(crate) site: Option<Sites>,
            /// Groups of hosts that share a budget and a politeness; in files alone.
            #[arg(skip)]
            pub(crate) group: Option<Groups>,
        }

        /// The settings in force.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        pub(crate) struct Settings {
            /// As typed.
            pub(crate) seed: Vec<ListedSeed>,
            $( pub(crate) $table: $settled, )+
            pub(crate) site: Sites,
            pub(crate) group: Groups,
        }

        /// The tables and the fields of each, in order; fields have underscores.
        pub(crate) const TABLES: &[(&str, &[&str])] =
            &[$( (stringify!($table), &[$(stringify!($field)),+]) ),+];

        impl Layer {
            /// This layer where it says something, else the one beneath.
            pub(crate) fn over(self, beneath: Layer) -> Layer {
                Layer {
                    seed: self.seed.or(beneath.seed),
                    seed_file: self.seed_file.or(beneath.seed_file),
                    seed_sitemap: self.seed_sitemap.or(beneath.seed_sitemap),
                    $( $table: $layer {
                        $( $field: self.$table.$field.or(beneath.$table.$field), )+
                    }, )+
                    site: self.site.or(beneath.site),
                    group: self.group.or(beneath.group),
                }
            }

            /// This layer over the built-in defaults.
            pub(crate) fn settle(self) -> Settings {
                Settings {
                    seed: self.seed.unwrap_or_default(),
                    $( $table: $settled {
                        $( $field: self.$table.$field.unwrap_or_else(|| $default), )+
                    }, )+
                    site: self.site.unwrap_or_default(),
                    group: self.group.unwrap_or_default(),
                }
            }

            /// Returns whether this layer says something of a field of a table.
            pub(super) fn says(&self, table: &str, field: &str) -> bool {
                match (table, field) {
                    $($( (stringify!($table), stringify!($field)) => self.$table.$field.is_some(), )+)+
                    _ => false,
                }
            }

            /// Takes back what this layer says of a field of a table.
            pub(super) fn forget(&mut self, table: &str, field: &str) {
                match (table, field) {
                    $($( (stringify!($table), stringify!($field)) => self.$table.$field = None, )+)+
                    _ => {}
                }
            }
        }

        /// The fields of a table, each with the schema of its value.
        pub(super) fn schemas(table: &str) -> Vec<(&'static str, serde_json::Value)> {
            match table {
                $( stringify!($table) => vec![
                    $( (stringify!($field), <$kind as SchemaValue>::schema()), )+
                ], )+
                _ => Vec::new(),
            }
        }

        /// The use that a later run makes of a field of a table.
        pub(super) fn memory(table: &str, field: &str) -> Option<Memory> {
            match (table, field) {
                $($( (stringify!($table), stringify!($field)) => Some($memory), )+)+
                _ => None,
            }
        }
    };
}

impl Layer {
    /// Drops what the command line holds without having been typed: a count of no `-v`
    /// and an empty contact from the environment say nothing.
    pub(crate) fn typed(mut self) -> Layer {
        self.display.verbose = self.display.verbose.filter(|count| *count > 0);
        self.operator.contact = self.operator.contact.filter(|text| !text.is_empty());
        self
    }

    /// All lists of hosts.
    pub(super) fn host_lists(&mut self) -> Vec<HostList<'_>> {
        let of_scope = [
            ("host", &mut self.scope.host),
            ("exclude-host", &mut self.scope.exclude_host),
        ];
        let of_scope = of_scope.into_iter().filter_map(|(key, hosts)| {
            hosts.as_mut().map(|hosts| HostList {
                key,
                group: None,
                hosts,
            })
        });
        let of_groups = self
            .group
            .iter_mut()
            .flatten()
            .map(|(name, terms)| HostList {
                key: "hosts",
                group: Some(name),
                hosts: &mut terms.hosts,
            });
        of_scope.chain(of_groups).collect()
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Layer::default().settle()
    }
}

tables! {
    operator, "Who we are", OperatorLayer, Operator {
        /// Mail address or URL where the owner of a visited site reaches you
        ///
        /// Needed before any host outside loopback and private ranges is asked. It stands in
        /// the User-Agent header, and a mail address in From as well. It is also read from
        /// the environment, and from the user's own config.toml.
        #[arg(value_name = "MAIL-OR-URL", env = "CRAWL_CONTACT", hide_env_values = true)]
        contact: String = String::new(), Guarded("who answers for the requests");
        /// Product token: the name that robots.txt files know us by
        ///
        /// Letters, digits, `_` and `-`. The User-Agent header is NAME/VERSION (+CONTACT).
        #[arg(value_name = "NAME")]
        agent: String = "crawl".to_owned(), Guarded("whose rules of robots.txt hold");
        /// The kind of crawl: general or research
        ///
        /// research: the crawl starts once it is said whose study it is: --contact, --operator-name,
        /// --institution, --study and --study-page. They stand in crawl.toml and in the report.
        #[arg(value_name = "KIND", value_enum, hide_possible_values = true)]
        kind: KindName = KindName::General, GoesOn;
        /// The name of who answers for the crawl
        #[arg(value_name = "NAME")]
        operator_name: String = String::new(), GoesOn;
        /// The institution that the crawl is made for
        #[arg(value_name = "NAME")]
        institution: String = String::new(), GoesOn;
        /// What is studied, in a sentence that a visited site's owner understands
        #[arg(value_name = "TEXT")]
        study: String = String::new(), GoesOn;
        /// The page that tells visited sites' owners of the study, and how to be left out
        #[arg(value_name = "URL")]
        study_page: String = String::new(), GoesOn;
    }

    scope, "Where we go", ScopeLayer, Scope {
        /// Which links are followed: host, domain, prefix or any
        ///
        /// host: the hosts of the seeds, http and https alike; the host that a seed
        /// redirects to joins them. domain: their registrable domains. prefix: only below
        /// the folders of the seeds; /products is a folder like /products/, and /docs/start
        /// lies in /docs/. any: every host.
        #[arg(value_name = "MODE", value_enum, hide_possible_values = true)]
        scope: ScopeName = ScopeName::Host, GoesOn;
        /// Take what lies in this SURT prefix into the scope too (may be repeated)
        ///
        /// `org,example,` is a domain with all below it, `org,example,www)/docs/` a host and
        /// the beginning of a path, as archives write them; `http://(` may stand before. http
        /// and https are alike. What is to be fetched there has to be linked, or be a seed.
        #[arg(value_name = "PREFIX")]
        surt: Vec<Surt> = Vec::new(), GoesOn;
        /// Take this host into the scope too, or `@FILE` for those that a file lists (may be repeated)
        ///
        /// It joins as the host of a seed does: with --scope domain its registrable domain, with
        /// --scope prefix all of its folders. Its pages have to be linked, or be seeds. A file has a
        /// host on each line; lines that begin with `#` are left out.
        #[arg(value_name = "HOST")]
        host: Vec<ListedHost> = Vec::new(), GoesOn;
        /// Never fetch from this host or its subdomains, or `@FILE` (may be repeated)
        ///
        /// Wins over --host and seeds. A robots.txt that redirects there counts as unreachable.
        #[arg(value_name = "HOST")]
        exclude_host: Vec<ListedHost> = Vec::new(), GoesOn;
        /// Fetch only URLs that match this regular expression (may be repeated)
        ///
        /// Matched anywhere in the canonical URL. A URL needs to match one of them; seeds
        /// are always fetched.
        #[arg(value_name = "RE")]
        include: Vec<String> = Vec::new(), GoesOn;
        /// Never fetch URLs that match this regular expression (may be repeated)
        ///
        /// Matched anywhere in the canonical URL; wins over --include.
        #[arg(value_name = "RE")]
        exclude: Vec<String> = Vec::new(), GoesOn;
        /// Fetch pages off the scope too, up to so many links outside
        ///
        /// With 1, the pages that those in scope link to, whose own links are not followed.
        /// --include, --exclude, --exclude-host and --max-depth hold there too, and so do
        /// robots.txt, pace and budgets of each host. Their sitemaps are not read.
        #[arg(value_name = "N")]
        hops_off_scope: u8 = 0, GoesOn;
        /// Keep only documents of this type, such as text/html or image/* (may be repeated)
        ///
        /// HTML, feeds and other documents that may lead on are read all the same, and their
        /// links followed. Of others no body is fetched. Each has a row, with `unwanted`, and its
        /// headers in the archive.
        #[arg(value_name = "TYPE")]
        content_type: Vec<MediaType> = Vec::new(), GoesOn;
        /// Keep only documents whose bodies have so many bytes
        ///
        /// Counted as received. Shorter pages are read, and their links followed.
        #[arg(value_name = "SIZE")]
        min_size: Size = Size(0), GoesOn;
        /// Keep only documents whose bodies have no more bytes than this
        ///
        /// Longer ones are not fetched beyond it, and not read: their links are not followed.
        /// --max-body keeps what it cuts off there; this leaves the whole document out.
        #[arg(value_name = "SIZE")]
        max_size: Limit<Size> = Limit::UNLIMITED, GoesOn;
        /// Keep only pages in this language, such as de or de-AT (may be repeated)
        ///
        /// `de` takes de-AT too. Of pages in others no links are followed. A page is in the
        /// language that it declares, unless its text is clearly in another. Pages whose
        /// language can't be told are kept, and so are seeds that no sitemap listed.
        #[arg(value_name = "LANGUAGE")]
        language: Vec<Language> = Vec::new(), GoesOn;
        /// The number of links that may be followed away from a seed
        ///
        /// A seed has depth 0. A redirect keeps its depth.
        #[arg(value_name = "N")]
        max_depth: Limit<Count> = Limit::UNLIMITED, GoesOn;
        /// End after so many pages
        ///
        /// Counts the rows of pages.jsonl, over all runs of this crawl (of this round, with
        /// --recrawl); robots.txt files and what was excluded do not count.
        #[arg(value_name = "N")]
        max_pages: Limit<Count> = Limit::UNLIMITED, GoesOn;
        /// At most so many pages from one host
        ///
        /// Counts like --max-pages.
        #[arg(value_name = "N")]
        max_pages_per_host: Limit<Count> = Limit::UNLIMITED, GoesOn;
        /// At most so many bytes of bodies from one host
        ///
        /// Counts like --max-bytes; what is in flight may go beyond it.
        #[arg(value_name = "SIZE")]
        max_bytes_per_host: Limit<Size> = Limit::UNLIMITED, GoesOn;
        /// End after servers spent so long on our requests
        ///
        /// The sum of all response times, over all runs of this crawl.
        #[arg(value_name = "DURATION")]
        max_server_time: Limit<Span> = Limit::UNLIMITED, GoesOn;
        /// The same for one host
        #[arg(value_name = "DURATION")]
        max_server_time_per_host: Limit<Span> = Limit::UNLIMITED, GoesOn;
        /// Ask one host for so long at most, from a run's first request to it
        #[arg(value_name = "DURATION")]
        max_time_per_host: Limit<Span> = Limit::UNLIMITED, GoesOn;
        /// End after so long
        ///
        /// Counted anew each time the crawl is started.
        #[arg(value_name = "DURATION")]
        max_time: Limit<Span> = Limit::UNLIMITED, GoesOn;
        /// End after so many bytes of bodies
        ///
        /// Counted as received, over all runs of this crawl.
        #[arg(value_name = "SIZE")]
        max_bytes: Limit<Size> = Limit::UNLIMITED, GoesOn;
        /// The number of redirects in a row that are followed
        ///
        /// Each is judged like a link: scope, robots.txt and politeness of its own host.
        #[arg(value_name = "N")]
        max_redirects: u8 = 10, GoesOn;
        /// Read sitemaps, on or off
        ///
        /// Those named in robots.txt, and /sitemap.xml.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        sitemaps: Switch = Switch::On, GoesOn;
        /// Take so many URLs from the sitemaps of one host, at most
        ///
        /// Counted in each run. A sitemap that has more says `sitemap_limit` in its row.
        #[arg(value_name = "N")]
        max_sitemap_urls: Limit<Count> = Limit(Some(Count(250_000))),
            Guarded("memory of this machine");
        /// Read feeds that pages name (RSS, Atom, JSON Feed), on or off
        ///
        /// Their URLs are followed like links, within the scope.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        feeds: Switch = Switch::On, GoesOn;
        /// Follow what a form is sent to by GET, on or off
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        forms: Switch = Switch::Off, GoesOn;
        /// Fetch what pages are shown with, such as images and style sheets: off, own or all
        ///
        /// own: what lies in the scope. all, or the flag alone: wherever it lies, so that pages can
        /// be replayed from the archive; robots.txt and pace are those of its host. They count
        /// as pages do.
        #[arg(value_name = "off|own|all", value_enum, hide_possible_values = true, num_args = 0..=1, require_equals = true, default_missing_value = "all")]
        resources: ResourcesName = ResourcesName::Off, GoesOn;
    }

    sample, "Which of the pages", SampleLayer, Sample {
        /// Ask for a sample of the pages that are found: so many of each stratum
        ///
        /// First sitemaps are read, and pages by --frame-depth; the URLs that they name are the
        /// frame. Then pages are drawn from it at random and asked for; links of theirs are not
        /// followed. Each row tells the probability by which its page was drawn. A stratum that has
        /// no more pages is taken whole.
        #[arg(value_name = "N")]
        sample: Limit<Count> = Limit::UNLIMITED, Kept;
        /// The strata of the sample: crawl, host, depth or path
        ///
        /// crawl: all that was found is one. host: each host. depth: of each host the pages equally
        /// many links away from a seed. path: of each host the folders at its root; those with no
        /// more than --sample pages are one.
        #[arg(value_name = "STRATA", value_enum, hide_possible_values = true)]
        sample_by: StratumName = StratumName::Host, Kept;
        /// The text from which the draw or the walk follows: the same gives the same sample
        #[arg(value_name = "TEXT")]
        sample_seed: String = "1".to_owned(), Kept;
        /// Read the pages that are fewer links away from a seed, to find what may be drawn
        ///
        /// 1: the seeds. With 0 none is read before the draw: the seeds and what sitemaps list are
        /// what may be drawn.
        #[arg(value_name = "N")]
        frame_depth: u32 = 1, Kept;
        /// Ask for the pages that a random walk comes to: so many steps of each walker
        ///
        /// A walker starts at a seed. Each further step follows one of the page's links by chance,
        /// or starts again at a seed. Sitemaps are not read. How likely a page was to be come to
        /// can't be known, and the rows say so; walk.jsonl has the steps.
        #[arg(value_name = "STEPS")]
        walk: Limit<Count> = Limit::UNLIMITED, Kept;
        /// Walkers of a random walk, each by itself
        #[arg(value_name = "N")]
        walkers: u32 = 4, Kept;
        /// The probability that a step starts again at a seed instead of following a link
        #[arg(value_name = "P")]
        walk_restart: Factor = Factor(0.15), Kept;
    }

    politeness, "How politely", PolitenessLayer, Politeness {
        /// Least gap between two requests to one host
        ///
        /// From the end of one to the start of the next. A longer Crawl-delay or
        /// Retry-After of the host is always kept.
        #[arg(value_name = "DURATION")]
        delay: Span = Span::from_secs(1), GoesOn;
        /// The gap is at least this many times the host's smoothed response time
        ///
        /// 0 turns it off.
        #[arg(value_name = "X")]
        delay_factor: Factor = Factor(2.0), GoesOn;
        /// Requests in flight per host
        ///
        /// Each of them keeps the gap.
        #[arg(value_name = "N")]
        per_host: u32 = 1, GoesOn;
        /// Requests in flight per IP address
        #[arg(value_name = "N")]
        per_address: u32 = 8, GoesOn;
        /// Least gap between two requests to one IP address
        #[arg(value_name = "DURATION")]
        address_delay: Span = Span::ZERO, GoesOn;
        /// Requests per second to one IP address, evenly spaced
        ///
        /// 0 turns the limit off. Loopback addresses have no limit.
        #[arg(value_name = "X")]
        address_rate: Limit<Factor> = Limit(Some(Factor(16.0))), GoesOn;
        /// Requests in flight per site (registrable domain)
        ///
        /// Never less than --per-host.
        #[arg(value_name = "N")]
        per_site: Limit<Count> = Limit::UNLIMITED, GoesOn;
        /// Least gap between two requests to one site (registrable domain)
        #[arg(value_name = "DURATION")]
        site_delay: Span = Span::ZERO, GoesOn;
        /// Lengthens each gap by a drawn part of it, at most 1%
        ///
        /// 0.01 is one percent; 0, the default, none.
        #[arg(value_name = "X")]
        jitter: Factor = Factor(0.0), GoesOn;
        /// Longest Retry-After that is kept to the second
        ///
        /// A longer one counts as this.
        #[arg(value_name = "DURATION")]
        max_retry_after: Span = Span::from_secs(24 * 60 * 60),
            Guarded("waits that hosts ask for are cut short");
        /// Hours in UTC in which nobody is asked, such as 08:00-18:00 (may be repeated)
        #[arg(value_name = "HH:MM-HH:MM")]
        quiet_hours: Vec<DayHours> = Vec::new(), GoesOn;
        /// Requests per second in all
        ///
        /// 0 is no bound.
        #[arg(value_name = "X")]
        max_rate: Limit<Factor> = Limit::UNLIMITED, GoesOn;
        /// Requests in flight in all
        #[arg(value_name = "N")]
        concurrency: u32 = 256, GoesOn;
        /// Concurrent name look-ups, ahead of need; not counted in --concurrency
        #[arg(value_name = "N")]
        look_ups: u32 = 256, GoesOn;
        /// Hosts in memory at which idle ones are let go; they are kept on disk
        ///
        /// A host takes about 600 bytes. Hosts with work always stay.
        #[arg(value_name = "N")]
        hosts_in_memory: Count = Count(500_000), Guarded("memory of this machine");
        /// End when only resting hosts are left, and for longer than this
        ///
        /// Hosts that asked us to wait or can't be reached are named then, and their pages
        /// stay pending for the next start.
        #[arg(value_name = "DURATION")]
        wait_unreachable: Span = Span::from_secs(60), GoesOn;
        /// I answer for these hosts: allow a short delay and many requests at once
        ///
        /// Needed for a delay under 200ms or more than 4 requests in flight per host outside
        /// loopback and private ranges.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        own_site: Switch = Switch::Off, Guarded("no least delay holds");
        /// The rules for reading robots.txt: rfc9309, koster1994, extended1997 or strictest
        ///
        /// rfc9309: the standard of 2022. koster1994: the original of 1994. extended1997:
        /// that with several names and paths on a line. strictest: a URL is fetched only
        /// where every reading allows it. No flag turns robots.txt off.
        #[arg(value_name = "PROFILE", value_enum, hide_possible_values = true)]
        robots: ProfileName = ProfileName::Rfc9309, Guarded("how robots.txt is read");
    }

    exclusion, "What we keep away from", ExclusionLayer, Exclusion {
        /// The purpose of the pages: search, ai-input, train-ai, archive or unstated
        ///
        /// A site's preference against it (Content-Usage, Content-Signal, tdm-reservation,
        /// noai) excludes a page as robots.txt does; where only the page itself says so, its
        /// row is kept and its body is not archived. unstated: preferences are written down.
        #[arg(value_name = "PURPOSE", value_enum, hide_possible_values = true)]
        purpose: PurposeName = PurposeName::Unstated, GoesOn;
        /// The meaning of a robots.txt that answers 401 or 403: allow or deny
        ///
        /// allow: there are no rules, as RFC 9309 has it. deny: nothing of that origin is asked
        /// for.
        #[arg(value_name = "allow|deny", value_enum, hide_possible_values = true)]
        robots_forbidden: ForbiddenName = ForbiddenName::Allow, GoesOn;
        /// The time for which a robots.txt holds before it is asked for again, at most 1d
        ///
        /// Less where the server's Cache-Control or Expires says so.
        #[arg(value_name = "DURATION")]
        robots_max_age: Span = Span::from_secs(24 * 60 * 60), GoesOn;
        /// First wait before an unreachable robots.txt is asked for again
        ///
        /// Unreachable is 429, 5xx, a broken answer or none; no page of the host is asked for
        /// meanwhile, unless its last good copy serves. Each further wait is twice as long. A
        /// longer Retry-After is kept.
        #[arg(value_name = "DURATION")]
        robots_retry: Span = Span::from_secs(5 * 60), Guarded("how often robots.txt is asked for");
        /// The longest that this wait doubles to
        #[arg(value_name = "DURATION")]
        robots_retry_most: Span = Span::from_secs(6 * 60 * 60),
            Guarded("how often robots.txt is asked for");
        /// The life of an unreachable robots.txt's last good copy, at most 30d
        ///
        /// 0s: not at all.
        #[arg(value_name = "DURATION")]
        robots_last_good: Span = Span::from_secs(30 * 24 * 60 * 60), GoesOn;
    }

    names, "What we ask for once, or not at all", NamesLayer, Names {
        /// Put spaces of URLs aside that bring nothing new, on or off
        ///
        /// Calendars, session ids, selections, paths and redirects without an end. What is put
        /// aside stands in excluded.jsonl with the evidence, and some of it is looked at again.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        traps: Switch = Switch::On, GoesOn;
        /// Never ask for URLs that look like actions: logout, vote, delete, action=edit
        ///
        /// Without it they come after all others. A program under /cgi-bin/ that is told
        /// something is one too.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        skip_actions: Switch = Switch::Off, GoesOn;
        /// Leave parameters out of links that only tell where a reader came from
        ///
        /// utm_source, fbclid, gclid and their like. off, evidence or on; evidence is: where
        /// pages of the host were the same with and without.
        #[arg(value_name = "WHEN", value_enum, hide_possible_values = true)]
        tracking_parameters: WhenName = WhenName::On, GoesOn;
        /// Take /a/index.html for /a/: off, evidence or on
        #[arg(value_name = "WHEN", value_enum, hide_possible_values = true)]
        default_documents: WhenName = WhenName::Evidence, GoesOn;
        /// Leave session ids out of links: off, evidence or on
        ///
        /// PHPSESSID, jsessionid, sid and their like in queries and paths.
        #[arg(value_name = "WHEN", value_enum, hide_possible_values = true)]
        session_ids: WhenName = WhenName::Evidence, GoesOn;
        /// Put parameters in order: off, evidence or on
        #[arg(value_name = "WHEN", value_enum, hide_possible_values = true)]
        parameter_order: WhenName = WhenName::Evidence, GoesOn;
        /// Leave parameters without a value out: off, evidence or on
        #[arg(value_name = "WHEN", value_enum, hide_possible_values = true)]
        empty_parameters: WhenName = WhenName::Evidence, GoesOn;
        /// Leave parameters out that the site's robots.txt says change nothing, on or off
        ///
        /// By its Clean-param lines.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        clean_params: Switch = Switch::On, GoesOn;
    }

    recrawl, "What we visit again", RecrawlLayer, Recrawl {
        /// Begin another round once the last is over: visit again what is due
        ///
        /// A page is due in the round after its first visit; then the later the longer it
        /// stays as it is, and the sooner if it changed. Requests carry ETag and Last-Modified of
        /// what is held. Where DIR holds no crawl, one begins. A round that was interrupted is
        /// finished first. Never taken over from crawl.toml.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        recrawl: Switch = Switch::Off, EachRun;
        /// Begin a round so long after the last began, again and again until stopped
        ///
        /// Implies --recrawl. A round that takes longer is followed by the next at once; where the
        /// last one of an earlier start is over, the rest of the time is waited first. --max-time
        /// bounds each round. A signal while it waits ends it with exit code 0. Never taken over
        /// from crawl.toml.
        #[arg(value_name = "DURATION")]
        every: Period = Period::NEVER, EachRun;
        /// Visit no page again sooner than this
        #[arg(value_name = "DURATION")]
        revisit_least: Span = Span::ZERO, GoesOn;
        /// Visit each page again after this, however seldom it changes
        #[arg(value_name = "DURATION")]
        revisit_most: Span = Span::from_secs(30 * 24 * 60 * 60), GoesOn;
    }

    frontier, "Where the frontier is", FrontierLayer, FrontierPlace {
        /// Share the crawl with other workers, by the PostgreSQL at this connection string
        ///
        /// Each worker has a directory and a --worker name of its own, and all have the same
        /// settings: docs/operating.md. A password is taken from PGPASSWORD or a password file. It
        /// is not written to crawl.toml, and not taken from the command line, where others see it.
        /// Several hosts of one primary and its standbys stand in one string. Given more than once, each
        /// is a further group of engines, with a part of the hosts. Without it the frontier lies in
        /// the crawl's directory.
        #[arg(value_name = "URL")]
        frontier: Vec<FrontierUrl> = Vec::new(), Guarded("where the crawl's URLs are kept");
        /// The name of the crawl that workers share; the host of the first seed if not given
        #[arg(value_name = "NAME")]
        crawl: String = String::new(), GoesOn;
        /// The name of this worker; each one of a crawl has another
        #[arg(value_name = "NAME")]
        worker: String = String::new(), GoesOn;
        /// How long the hosts of a worker that died wait until others take them over
        ///
        /// A worker that does not reach PostgreSQL for so long ends.
        #[arg(value_name = "DURATION")]
        frontier_lease: Span = Span::from_secs(30), GoesOn;
    }

    fetch, "How we fetch", FetchLayer, Fetch {
        /// Longest time for a whole exchange
        #[arg(value_name = "DURATION")]
        timeout: Span = Span::from_secs(60), GoesOn;
        /// Longest time until a connection stands
        #[arg(value_name = "DURATION")]
        connect_timeout: Span = Span::from_secs(10), GoesOn;
        /// Longest wait for an answer to begin, from the moment when the connection stands
        #[arg(value_name = "DURATION")]
        first_byte_timeout: Span = Span::from_secs(30), GoesOn;
        /// Longest pause within an answer
        #[arg(value_name = "DURATION")]
        idle_timeout: Span = Span::from_secs(20), GoesOn;
        /// Longest body that is kept, at most 255MiB; the rest is cut off, and marked as cut
        #[arg(value_name = "SIZE")]
        max_body: Size = Size(10 << 20), Guarded("memory of this machine");
        /// Memory for long bodies; where others hold it, they wait
        ///
        /// The first 256 KiB of each body count for nothing. What is longer takes room for its
        /// announced length, or for --max-body, until it is written.
        #[arg(value_name = "SIZE")]
        body_memory: Size = Size(128 << 20), Guarded("memory of this machine");
        /// The number of times that a URL which failed is tried again
        #[arg(value_name = "N")]
        retries: u32 = 3, GoesOn;
        /// Proxy for all requests: http, https, socks5 or socks5h URL
        ///
        /// User name and password in it are not written to crawl.toml.
        #[arg(value_name = "URL")]
        proxy: String = String::new(), Guarded("where requests go");
        /// Use this address for a host and port, as curl has it (may be repeated)
        #[arg(value_name = "HOST:PORT:ADDR")]
        resolve: Vec<Resolve> = Vec::new(), Guarded("where requests go");
        /// Ask this name server instead of the system's (may be repeated)
        ///
        /// An address, with a port where it is not 53. The hosts file is not read then.
        #[arg(value_name = "ADDR")]
        name_server: Vec<NameServer> = Vec::new(), Guarded("where requests go");
        /// Maximum look-ups per second to each name server
        ///
        /// 0 turns the limit off. Name servers on loopback have no limit.
        #[arg(value_name = "X")]
        name_server_rate: Limit<Factor> = Limit(Some(Factor(100.0))), GoesOn;
        /// Trust the certificates in this PEM file too (may be repeated)
        ///
        /// For servers whose certificates a CA of your own signed.
        #[arg(value_name = "FILE")]
        ca_file: Vec<FilePath> = Vec::new(), Guarded("whose certificates are trusted");
        /// Follow links into loopback and private ranges
        ///
        /// A seed that you typed is allowed without it, at its own port (http and https where it
        /// names none). Once its name has had a public address, private ones need this.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        allow_private: Switch = Switch::Off, Guarded("private ranges are asked");
        /// Say in each request on which page its URL was found
        ///
        /// As browsers do: to another origin no more than the page's own origin, and nothing from
        /// https to http. Requests for robots.txt, sitemaps, seeds and targets of redirects say
        /// nothing.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        referer: Switch = Switch::Off, GoesOn;
    }

    output, "What we keep", OutputLayer, Output {
        /// Directory of the crawl; crawl-HOST of the first seed if not given
        ///
        /// If it holds a crawl, that one goes on: what it keeps (WARC, index, links, seeds) is
        /// remembered, and without a seed all but how it is shown. Flags win. A crawl.toml that is
        /// not your own decides less: docs/crawl-directory.md.
        #[arg(value_name = "DIR")]
        output: FilePath = FilePath::default(), EachRun;
        /// Let seeds join the crawl in DIR that it did not have before, on or off
        ///
        /// Without it a new seed is refused, typed or listed in a file alike: the pages of two sites
        /// share the archive, the records and the search index for good. Never taken over from
        /// crawl.toml.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        add_seed: Switch = Switch::Off, EachRun;
        /// Write WARC files of all exchanges, on or off
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        warc: Switch = Switch::On, Kept;
        /// Build a search index, on or off
        ///
        /// `crawl search` and `crawl serve` ask it, also while the crawl runs. Turned on for a
        /// crawl that has pages already, it is built from the archive first.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        index: Switch = Switch::Off, Kept;
        /// Documents in the index: html, text, markdown, docx, pdf, all
        ///
        /// With commas between them. Text is none of the usual ones, as much of it stands in the
        /// index already: sources of pages, licences, logs. PDF and DOCX are read in a process of
        /// their own, and what one of them breaks costs its own words alone.
        #[arg(value_name = "TYPES")]
        index_types: IndexTypes = IndexTypes::default(), Kept;
        /// The longest that the reading of one PDF or DOCX may take
        #[arg(value_name = "DURATION")]
        document_timeout: Span = Span::from_secs(10), GoesOn;
        /// The most memory that the reading of one PDF or DOCX may take
        #[arg(value_name = "SIZE")]
        document_memory: Size = Size(512 << 20), GoesOn;
        /// The most text that is read of a document that is not HTML
        #[arg(value_name = "SIZE")]
        document_text: Size = Size(8 << 20), GoesOn;
        /// Write links.jsonl, on or off
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        links: Switch = Switch::Off, Kept;
        /// Ask for nothing more while less than this is free on the disk of DIR
        ///
        /// What is in flight ends and is kept, and the crawl goes on once there is a tenth more.
        /// 0: a full disk ends the crawl, with exit code 3, and loses nothing.
        #[arg(value_name = "SIZE")]
        min_free: Size = Size(0), GoesOn;
        /// Have on the disk what ended so long ago, or wait for it
        ///
        /// A kill costs no more: what was fetched in this time is fetched again. While the disk
        /// is slower, no further request is sent.
        #[arg(value_name = "DURATION")]
        commit_within: Span = Span::from_secs(1), GoesOn;
    }

    display, "What we show", DisplayLayer, Display {
        /// Progress on stderr: auto, bar, plain, json or off
        ///
        /// auto: a bar on a terminal, else plain. plain: a line every ten seconds. json: a
        /// JSON object on a line every second.
        #[arg(value_name = "MODE", value_enum, hide_possible_values = true)]
        progress: ProgressMode = ProgressMode::Auto, EachRun;
        /// Only errors on stderr: no progress, no summary
        #[arg(short, value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        quiet: Switch = Switch::Off, EachRun;
        /// More on stderr: each request (-v), each decision and its rule too (-vv)
        ///
        /// With -vv the lines of one URL tell its life: found, leased, allowed by robots.txt, due,
        /// answered, read, settled.
        #[arg(short, action = clap::ArgAction::Count)]
        verbose: u8 = 0, EachRun;
        /// Write what happens to this file too, at least each exchange
        #[arg(value_name = "FILE")]
        log: FilePath = FilePath::default(), EachRun;
        /// The format of the lines of --log: text or json
        #[arg(value_name = "text|json", value_enum, hide_possible_values = true)]
        log_format: LogFormatName = LogFormatName::Text, EachRun;
        /// Begin another file of --log where this one would grow longer
        ///
        /// FILE takes the name FILE.1, and FILE.1 that of FILE.2. At least 64KiB, or unlimited.
        #[arg(value_name = "SIZE")]
        log_max_size: Limit<Size> = Limit(Some(Size(100 << 20))), EachRun;
        /// The number of such files that are kept; older ones are removed
        #[arg(value_name = "N")]
        log_keep: u32 = 9, EachRun;
        /// Tell the numbers of the crawl at http://ADDR/metrics, for Prometheus
        ///
        /// ADDR is an address of this machine with a port, such as 127.0.0.1:9464; with port 0 a
        /// free one is taken and told. The numbers name no host and no URL.
        #[arg(value_name = "ADDR")]
        metrics: ListenAddress = ListenAddress(None), EachRun;
        /// Exit with 1 if any page failed
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        fail_on_error: Switch = Switch::Off, EachRun;
        /// Exit with 1 if any host is partial, blocked or empty
        ///
        /// hosts.jsonl says what is missing of each and why.
        #[arg(value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
        fail_on_partial: Switch = Switch::Off, EachRun;
    }
}
