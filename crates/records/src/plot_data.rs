//! The data of the plots in `report.html`: time series, histograms, and links between hosts. The
//! data is collected in one pass over each row file, in constant memory.

mod plotted_link_graph;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crawl_archive::rows::{ExcludedRow, PageRow, RequestRow};

use crate::error::RecordsError;
use crate::histograms::{Histogram, TimeBins};
use crate::host_reports::origin_of;
use crate::recognize_directory::stored_settings;
use crate::report::CrawlReport;
use crate::round_row_filter::ExclusionsInForce;
use crate::row_file_reader::{pages, requests};

pub(crate) use plotted_link_graph::{LinkDataSource, PlottedLinkGraph};

/// Maximum number of hosts with a section in `report.html`, those with the most requests first.
/// Beyond the limit: only in the table of hosts.
pub(crate) const MAX_HOST_SECTIONS: usize = 100;
/// Maximum number of origins of the hosts that have a section. A host has one origin per scheme and
/// port.
const MAX_ORIGINS: usize = 10_000;
/// Maximum number of distinct site rules in `report.html`.
/// Beyond the limit: a count.
const MAX_SITE_RULES: usize = 1000;
/// Maximum number of distinct usage statements, by vocabulary and channel.
const MAX_STATEMENTS: usize = 100;

/// Bin limits of body sizes, in bytes.
const SIZES: [u64; 10] = [
    1, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000,
];
/// Bin limits of response times, in milliseconds.
const RESPONSE_TIMES: [u64; 8] = [10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000];

/// Reasons for exclusion that the site itself gives.
const SITE_REASONS: [&str; 5] = ["robots", "meta", "header", "usage", "nofollow"];

const MINUTE_MS: u64 = 60_000;

/// Kinds of responses, in the stacking order of plots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseClass {
    Ok,
    Redirect,
    ClientError,
    ServerError,
    None,
}

impl ResponseClass {
    pub(crate) const ALL: [ResponseClass; 5] = [
        ResponseClass::Ok,
        ResponseClass::Redirect,
        ResponseClass::ClientError,
        ResponseClass::ServerError,
        ResponseClass::None,
    ];

    fn of(row: &RequestRow) -> ResponseClass {
        match row.status {
            Some(300..=399) => ResponseClass::Redirect,
            Some(400..=499) => ResponseClass::ClientError,
            Some(500..) => ResponseClass::ServerError,
            Some(_) => ResponseClass::Ok,
            None => ResponseClass::None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            ResponseClass::Ok => "served (2xx)",
            ResponseClass::Redirect => "redirect or unchanged (3xx)",
            ResponseClass::ClientError => "client error (4xx)",
            ResponseClass::ServerError => "server error (5xx)",
            ResponseClass::None => "no answer",
        }
    }
}

/// Requests by kind of response, in the order of [`ResponseClass::ALL`].
pub(crate) type ResponseClassCounts = [u64; ResponseClass::ALL.len()];

/// The settings from `crawl.toml` about politeness and the purpose of the crawl.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolitenessSettings {
    /// The product token that robots.txt files use for the crawl.
    pub(crate) agent: Option<String>,
    /// The declared purpose of the pages.
    pub(crate) purpose: Option<String>,
    /// The rules for reading robots.txt.
    pub(crate) robots: Option<String>,
    /// The minimum delay between requests to a host, as typed.
    pub(crate) delay: Option<String>,
    /// The minimum delay as a multiple of the host's smoothed response time.
    pub(crate) delay_factor: Option<f64>,
}

/// Requests and pages over time.
#[derive(Clone, Debug)]
pub(crate) struct RequestsOverTime {
    pub(crate) axis: TimeBins,
    /// Number of requests by the time bin of their end and by kind of response.
    pub(crate) answers: Vec<ResponseClassCounts>,
    /// Number of rows of `pages.jsonl` by the time bin in which their request ended.
    pub(crate) pages: Vec<u64>,
}

/// The plot data of one host: how the crawl treated it.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostPlotData {
    /// Number of requests by the time bin of their end.
    pub(crate) requests: Vec<u64>,
    pub(crate) answers: ResponseClassCounts,
    /// Start of the first request, in milliseconds since the Unix epoch.
    pub(crate) first_start_ms: u64,
    /// End of the last request, in milliseconds since the Unix epoch.
    pub(crate) last_end_ms: u64,
    /// Maximum number of requests that ended within one clock minute.
    pub(crate) most_in_a_minute: u64,
    /// Number of URLs that a rule of the site excluded, by rule and line.
    pub(crate) rules: BTreeMap<(String, Option<u32>), u64>,
    minute: u64,
    in_minute: u64,
}

/// Number of pages that robots.txt rules and usage statements allow or refuse.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsagePermissionCounts {
    /// Pages explicitly allowed by a robots.txt rule.
    pub(crate) allowed_by_rule: u64,
    /// Pages that no rule of robots.txt matches.
    pub(crate) no_rule: u64,
    /// Number of usage statements on pages, by vocabulary and channel.
    pub(crate) statements: BTreeMap<(String, String), u64>,
    /// Pages whose usage statements allow the declared purpose.
    pub(crate) purpose_allowed: u64,
    pub(crate) purpose_refused: u64,
    /// Pages whose body is not archived, because the site's usage statement refuses copies.
    pub(crate) withheld: u64,
}

/// The data of all plots.
#[derive(Clone, Debug)]
pub(crate) struct PlotData {
    pub(crate) manners: PolitenessSettings,
    /// Requests and pages over time. `None` if no request was sent.
    pub(crate) time: Option<RequestsOverTime>,
    /// Body sizes of pages, in bytes.
    pub(crate) sizes: Histogram,
    /// Request durations, in milliseconds.
    pub(crate) response_times: Histogram,
    /// The plot data of the first hosts in [`CrawlReport::hosts_asked`], in the same order.
    pub(crate) hosts: Vec<HostPlotData>,
    pub(crate) permissions: UsagePermissionCounts,
    pub(crate) links: PlottedLinkGraph,
}

/// Reads the row files of a crawl once and collects the data of the plots. Skips malformed lines:
/// `report` has read the same rows and lists these lines as flaws.
///
/// # Errors
/// File system errors.
pub(crate) fn figures(dir: &Path, report: &CrawlReport) -> Result<PlotData, RecordsError> {
    let mut reader = PlotDataCollector::new(dir, report);
    for row in requests(dir)? {
        if let Some(row) = sound(row)?
            && row.is_sent()
        {
            reader.request(&row);
        }
    }
    for row in pages(dir)? {
        if let Some(row) = sound(row)? {
            reader.page(&row);
        }
    }
    for row in ExclusionsInForce::open(dir)? {
        if let Some(row) = sound(row)? {
            reader.excluded(&row);
        }
    }
    let PlotDataCollector {
        mut figures,
        origins,
        folders,
        ..
    } = reader;
    figures.links = plotted_link_graph::read(dir, report, origins, folders)?;
    Ok(figures)
}

/// Converts the error of a malformed line to `None`.
fn sound<T>(row: Result<T, RecordsError>) -> Result<Option<T>, RecordsError> {
    match row {
        Ok(row) => Ok(Some(row)),
        Err(RecordsError::Row { .. }) => Ok(None),
        Err(why) => Err(why),
    }
}

struct PlotDataCollector {
    figures: PlotData,
    /// The index in `figures.hosts` of each host key.
    hosts: HashMap<String, usize>,
    /// The index in `figures.hosts` of the host of each origin. Keys are the parts of URLs before
    /// the path.
    origins: HashMap<String, usize>,
    folders: plotted_link_graph::FolderPageCounts,
    rules: usize,
}

impl PlotDataCollector {
    fn new(dir: &Path, report: &CrawlReport) -> PlotDataCollector {
        let (asked, _) = report.hosts_asked();
        let shown = asked.iter().take(MAX_HOST_SECTIONS);
        let hosts: HashMap<_, _> = shown
            .enumerate()
            .map(|(at, host)| (host.host.clone(), at))
            .collect();
        let requests = &report.requests;
        let axis = requests.first_start_ms.zip(requests.last_end_ms);
        let time = axis.map(|(first, last)| {
            let axis = TimeBins::new(first, last);
            RequestsOverTime {
                axis,
                answers: vec![ResponseClassCounts::default(); axis.bins],
                pages: vec![0; axis.bins],
            }
        });
        let bins = time.as_ref().map_or(0, |time| time.axis.bins);
        let of_host = HostPlotData {
            requests: vec![0; bins],
            ..HostPlotData::default()
        };
        PlotDataCollector {
            figures: PlotData {
                manners: PolitenessSettings::read(dir),
                time,
                sizes: Histogram::new(&SIZES),
                response_times: Histogram::new(&RESPONSE_TIMES),
                hosts: vec![of_host; hosts.len()],
                permissions: UsagePermissionCounts::default(),
                links: PlottedLinkGraph::default(),
            },
            hosts,
            origins: HashMap::new(),
            folders: plotted_link_graph::FolderPageCounts::default(),
            rules: 0,
        }
    }

    fn request(&mut self, row: &RequestRow) {
        let figures = &mut self.figures;
        figures
            .response_times
            .add(row.end.saturating_sub(row.start));
        let answer = ResponseClass::of(row) as usize;
        let bin = figures.time.as_mut().map(|time| {
            let bin = time.axis.bin(row.end);
            time.answers[bin][answer] += 1;
            bin
        });
        let Some(&at) = self.hosts.get(&row.host) else {
            return;
        };
        let origin = origin_of(&row.url);
        if self.origins.len() < MAX_ORIGINS && !self.origins.contains_key(origin) {
            self.origins.insert(origin.to_owned(), at);
        }
        let host = &mut figures.hosts[at];
        host.answers[answer] += 1;
        if let Some(bin) = bin {
            host.requests[bin] += 1;
        }
        host.note_times(row);
    }

    fn page(&mut self, row: &PageRow) {
        let figures = &mut self.figures;
        figures.sizes.add(row.bytes);
        if let Some(time) = &mut figures.time {
            let bin = time
                .axis
                .bin(row.fetched_at.as_millis().saturating_add(row.ms));
            time.pages[bin] += 1;
        }
        let purpose = figures.manners.purpose.as_deref();
        figures.permissions.add(row, purpose);
        if row.outcome() == "ok" {
            self.folders.add(&row.url);
        }
    }

    fn excluded(&mut self, row: &ExcludedRow) {
        let Some(rule) = row
            .rule
            .as_ref()
            .filter(|_| SITE_REASONS.contains(&row.reason.as_str()))
        else {
            return;
        };
        let Some(&at) = self.origins.get(origin_of(&row.url)) else {
            return;
        };
        let rules = &mut self.figures.hosts[at].rules;
        let key = (format!("{}: {rule}", row.reason), row.line);
        if let Some(urls) = rules.get_mut(&key) {
            *urls += 1;
        } else if self.rules < MAX_SITE_RULES {
            self.rules += 1;
            rules.insert(key, 1);
        }
    }
}

impl HostPlotData {
    fn note_times(&mut self, row: &RequestRow) {
        if self.last_end_ms == 0 || row.start < self.first_start_ms {
            self.first_start_ms = row.start;
        }
        self.last_end_ms = self.last_end_ms.max(row.end);
        // Rows are in the order in which their requests ended, so the rows of requests that ended
        // in one minute are consecutive.
        let minute = row.end / MINUTE_MS;
        if minute != self.minute {
            (self.minute, self.in_minute) = (minute, 0);
        }
        self.in_minute += 1;
        self.most_in_a_minute = self.most_in_a_minute.max(self.in_minute);
    }
}

impl UsagePermissionCounts {
    fn add(&mut self, row: &PageRow, purpose: Option<&str>) {
        if let Some(verdict) = &row.robots {
            match verdict.rule {
                Some(_) => self.allowed_by_rule += 1,
                None => self.no_rule += 1,
            }
        }
        self.withheld += u64::from(row.withheld.is_some());
        let Some(usage) = &row.usage else {
            return;
        };
        let of_purpose = match purpose {
            Some("search") => &usage.search,
            Some("ai-input") => &usage.ai_input,
            Some("train-ai") => &usage.train_ai,
            Some("archive") => &usage.archive,
            _ => &None,
        };
        match of_purpose.as_deref() {
            Some("allowed") => self.purpose_allowed += 1,
            Some("refused") => self.purpose_refused += 1,
            _ => {}
        }
        for said in &usage.said {
            let key = (said.vocabulary.clone(), said.channel.clone());
            if self.statements.len() < MAX_STATEMENTS || self.statements.contains_key(&key) {
                *self.statements.entry(key).or_default() += 1;
            }
        }
    }
}

impl PolitenessSettings {
    fn read(dir: &Path) -> PolitenessSettings {
        let table = stored_settings(dir);
        let of = |section: &str, key: &str| table.get(section)?.get(key).cloned();
        let text = |section: &str, key: &str| of(section, key)?.as_str().map(str::to_owned);
        PolitenessSettings {
            agent: text("operator", "agent"),
            purpose: text("exclusion", "purpose"),
            robots: text("politeness", "robots"),
            delay: text("politeness", "delay"),
            delay_factor: of("politeness", "delay-factor").and_then(|factor| factor.as_float()),
        }
    }
}

#[cfg(test)]
mod tests;
