//! A crawl that runs in its own temporary directory.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

use crawl_archive::rows::{ExcludedRow, PageRow, RequestRow};
use crawl_engine::{
    Commander, Config, ControlChannels, CrawlPhase, EngineError, FreeSpaceMeter, ProgressSnapshot,
    RunSummary, StopUrgency,
};
use crawl_fetcher::FetchConfig;
use crawl_policy::ProductToken;
use crawl_scheduler::Politeness;
use crawl_testweb::TestWeb;
use crawl_weburl::canonicalize;
use flate2::read::MultiGzDecoder;
use serde::de::DeserializeOwned;
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};

pub(crate) struct Crawl {
    /// A guard that removes the directory when the test ends.
    _dir: TempDir,
    pub(crate) config: Config,
}

impl Crawl {
    /// Returns a crawl from the root of host 0, with the shortest delays that can be configured.
    pub(crate) fn of(web: &TestWeb) -> Crawl {
        let dir = tempfile::tempdir().unwrap();
        let seed = canonicalize(None, &web.url(0, "/")).unwrap();
        let mut fetch = FetchConfig::new("crawl/0.0 (+test@example.org)");
        fetch.typed = vec![seed.clone()];
        fetch.timeout = Duration::from_mins(2);
        let agent = ProductToken::new("crawl").unwrap();
        let contact = "test@example.org".parse().unwrap();
        let output = dir.path().join("out");
        let config = Config {
            retries: 2,
            max_sitemap_urls: None,
            politeness: Politeness {
                delay: Duration::ZERO,
                delay_factor: 0.0,
                ..Politeness::default()
            },
            hosts_in_memory: 1_000,
            wait_unreachable: Duration::ZERO,
            fetch,
            software: "crawl/0.0".to_owned(),
            config_text: "# as given\n".to_owned(),
            ..Config::new(agent, "0.0", Some(contact), vec![seed], output)
        };
        Crawl { _dir: dir, config }
    }

    /// Runs the crawl to its end.
    pub(crate) fn run(&self) -> Result<RunSummary, EngineError> {
        self.run_until(|_| StopUrgency::No)
    }

    /// Runs the crawl until it ends, or until `judge` requests a stop.
    pub(crate) fn run_until(
        &self,
        judge: fn(&ProgressSnapshot) -> StopUrgency,
    ) -> Result<RunSummary, EngineError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let (stop, stopped) = watch::channel(StopUrgency::No);
            let (progress, mut watched) = watch::channel(ProgressSnapshot::default());
            let controls = ControlChannels {
                stop: stopped,
                progress,
                ..ControlChannels::unattended()
            };
            let steering = async move {
                while watched.changed().await.is_ok() {
                    let urgency = judge(&watched.borrow_and_update());
                    stop.send_if_modified(|stop| {
                        let more = urgency > *stop;
                        *stop = urgency.max(*stop);
                        more
                    });
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                summary = crawl_engine::run(self.config.clone(), controls) => summary,
                () = steering => unreachable!(),
            }
        })
    }

    /// Runs the crawl to its end. `free_space` measures the free disk space, and `observe` is
    /// called with each phase.
    pub(crate) fn run_on(
        &self,
        free_space: FreeSpaceMeter,
        mut observe: impl FnMut(CrawlPhase),
    ) -> Result<RunSummary, EngineError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let (progress, mut watched) = watch::channel(ProgressSnapshot::default());
            let controls = ControlChannels {
                progress,
                free_space,
                ..ControlChannels::unattended()
            };
            let watch = async move {
                while watched.changed().await.is_ok() {
                    observe(watched.borrow_and_update().phase);
                }
            };
            tokio::join!(watch, crawl_engine::run(self.config.clone(), controls)).1
        })
    }

    /// Runs the crawl while `person` steers it. Also returns the result of `person`.
    pub(crate) fn run_steered<T>(
        &self,
        person: impl AsyncFnOnce(Commander) -> T,
    ) -> (T, Result<RunSummary, EngineError>) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let (commander, commands) = crawl_engine::commands();
            let controls = ControlChannels {
                commands,
                ..ControlChannels::unattended()
            };
            tokio::join!(
                person(commander),
                crawl_engine::run(self.config.clone(), controls)
            )
        })
    }

    /// Runs the crawl to its end, with a consumer of each committed page.
    pub(crate) fn run_consumed(
        &self,
        mut take: impl AsyncFnMut(&Commander, &PageRow),
    ) -> (Vec<PageRow>, Result<RunSummary, EngineError>) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            // The channel is as small as possible, so that the crawl has to wait for the consumer.
            let (pages, mut committed) = mpsc::channel(1);
            let (commander, commands) = crawl_engine::commands();
            let controls = ControlChannels {
                commands,
                pages: Some(pages),
                ..ControlChannels::unattended()
            };
            let consumer = async {
                let mut rows = Vec::new();
                while let Some(row) = committed.recv().await {
                    take(&commander, &row).await;
                    rows.push(row);
                }
                rows
            };
            tokio::join!(consumer, crawl_engine::run(self.config.clone(), controls))
        })
    }

    pub(crate) fn output(&self, name: &str) -> PathBuf {
        self.config.output.join(name)
    }

    pub(crate) fn pages(&self) -> Vec<PageRow> {
        self.rows("pages.jsonl")
    }

    /// Returns the status of each URL that has a row. Panics if a URL has two rows.
    pub(crate) fn statuses(&self) -> BTreeMap<String, Option<u16>> {
        let mut statuses = BTreeMap::new();
        for page in self.pages() {
            let before = statuses.insert(page.url.clone(), page.status);
            assert_eq!(before, None, "{} is listed twice", page.url);
        }
        statuses
    }

    /// Returns the row of a URL. Panics if there is none.
    pub(crate) fn page(&self, url: &str) -> PageRow {
        let mut pages = self.pages().into_iter();
        pages.find(|page| page.url == url).unwrap()
    }

    pub(crate) fn requests(&self) -> Vec<RequestRow> {
        self.rows("requests.jsonl")
    }

    /// Returns the reason of each excluded URL. Panics if a URL has two rows.
    pub(crate) fn excluded(&self) -> BTreeMap<String, String> {
        let mut reasons = BTreeMap::new();
        for row in self.rows::<ExcludedRow>("excluded.jsonl") {
            let before = reasons.insert(row.url.clone(), row.reason);
            assert_eq!(before, None, "{} is listed twice", row.url);
        }
        reasons
    }

    /// Returns the rows of all excluded URLs.
    pub(crate) fn excluded_rows(&self) -> Vec<ExcludedRow> {
        self.rows("excluded.jsonl")
    }

    /// Returns the row of an excluded URL. Panics if there is none.
    pub(crate) fn excluded_row(&self, url: &str) -> ExcludedRow {
        let mut rows = self.rows::<ExcludedRow>("excluded.jsonl").into_iter();
        rows.find(|row| row.url == url).unwrap()
    }

    /// Returns the coverage verdict of each host that has one, with the reason why pages are
    /// missing.
    pub(crate) fn coverage(&self) -> BTreeMap<String, String> {
        let report = crawl_records::report(&self.config.output).unwrap();
        let judged = report.hosts.into_iter().filter_map(|host| {
            let missing = host.missing.iter().map(|shortfall| {
                // Keep only the name of a failure, because the text after it comes from libraries.
                let name =
                    |text: &String| text.splitn(3, ": ").take(2).collect::<Vec<_>>().join(": ");
                let evidence: Vec<_> = shortfall.evidence.keys().map(name).collect();
                format!(", {}: {}", shortfall.reason.name(), evidence.join(", "))
            });
            let missing: String = missing.collect();
            Some((host.host, host.coverage?.name().to_owned() + &missing))
        });
        judged.collect()
    }

    /// Returns whether a record of the archive contains a text.
    pub(crate) fn archive_holds(&self, text: &str) -> bool {
        let files = std::fs::read_dir(self.output("archive")).unwrap();
        let paths = files.map(|file| file.unwrap().path());
        let mut warcs = paths.filter(|path| path.extension().is_some_and(|end| end == "gz"));
        warcs.any(|path| {
            let mut bytes = Vec::new();
            let file = std::fs::File::open(path).unwrap();
            MultiGzDecoder::new(file).read_to_end(&mut bytes).unwrap();
            bytes.windows(text.len()).any(|at| at == text.as_bytes())
        })
    }

    fn rows<T: DeserializeOwned>(&self, name: &str) -> Vec<T> {
        let text = std::fs::read_to_string(self.output(name)).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// Returns the URLs that a crawl with sitemaps must fetch, including the sitemap.
pub(crate) fn expected(web: &TestWeb, reach: crawl_testweb::HostsInScope) -> BTreeSet<String> {
    let mut urls = web.truth(reach).fetched_with_sitemaps();
    urls.insert(web.url(0, "/sitemap.xml"));
    urls
}
