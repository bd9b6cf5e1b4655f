//! The numbers behind the plots of the report's page: series over time, histograms, and the links
//! between hosts, from one pass over each row file, in memory that does not grow with the crawl.

mod link_sketch;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crawl_archive::rows::{ExcludedRow, PageRow, RequestRow};

use crate::bins::{Histogram, TimeAxis};
use crate::directory::stored_settings;
use crate::error::RecordsError;
use crate::hosts::origin_of;
use crate::outcome::outcome;
use crate::report::Report;
use crate::rows::{excluded, pages, requests};

pub(crate) use link_sketch::{LinkSketch, LinkSource};

/// Hosts with a section of their own, those with most requests first.
pub(crate) const MAX_HOST_SECTIONS: usize = 100;
/// Origins of them that URLs are told apart by; a host has one for each scheme and port.
const MAX_ORIGINS: usize = 10_000;
/// Rules of sites that are told apart, all hosts together.
const MAX_SITE_RULES: usize = 1000;
/// Statements about use that are told apart, by vocabulary and channel.
const MAX_STATEMENTS: usize = 100;

/// Bins of body sizes, in bytes.
const SIZES: [u64; 10] = [
    1, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000,
];
/// Bins of response times, in milliseconds.
const RESPONSE_TIMES: [u64; 8] = [10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000];

/// The reasons of exclusions that a site itself decides.
const SITE_REASONS: [&str; 5] = ["robots", "meta", "header", "usage", "nofollow"];

const MINUTE_MS: u64 = 60_000;

/// The kinds of answers to requests, in the order in which plots stack them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Ok,
    Redirect,
    ClientError,
    ServerError,
    None,
}

impl Answer {
    pub(crate) const ALL: [Answer; 5] = [
        Answer::Ok,
        Answer::Redirect,
        Answer::ClientError,
        Answer::ServerError,
        Answer::None,
    ];

    fn of(row: &RequestRow) -> Answer {
        match row.status {
            Some(300..=399) => Answer::Redirect,
            Some(400..=499) => Answer::ClientError,
            Some(500..) => Answer::ServerError,
            Some(_) => Answer::Ok,
            None => Answer::None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Answer::Ok => "served (2xx)",
            Answer::Redirect => "redirect or unchanged (3xx)",
            Answer::ClientError => "refused or no such page (4xx)",
            Answer::ServerError => "failure of the server (5xx)",
            Answer::None => "no answer",
        }
    }
}

/// Requests by the kind of answer, in the order of [`Answer::ALL`].
pub(crate) type AnswerCounts = [u64; Answer::ALL.len()];

/// The settings of politeness and purpose, from `crawl.toml`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manners {
    /// The product token by which robots.txt files know the crawl.
    pub(crate) agent: Option<String>,
    /// The declared purpose of the pages.
    pub(crate) purpose: Option<String>,
    /// The rules for reading robots.txt.
    pub(crate) robots: Option<String>,
    /// The least gap between two requests to a host, as typed.
    pub(crate) delay: Option<String>,
    /// The least gap, in smoothed response times of the host.
    pub(crate) delay_factor: Option<f64>,
}

/// Requests and pages over time.
#[derive(Clone, Debug)]
pub(crate) struct TimeSeries {
    pub(crate) axis: TimeAxis,
    /// Requests by when they ended.
    pub(crate) answers: Vec<AnswerCounts>,
    /// Rows of `pages.jsonl` by when their requests ended.
    pub(crate) pages: Vec<u64>,
}

/// How one host was asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostFigures {
    /// Its requests by time bin.
    pub(crate) requests: Vec<u64>,
    pub(crate) answers: AnswerCounts,
    /// When the first request was sent, in milliseconds since the Unix epoch.
    pub(crate) first_start_ms: u64,
    /// When the last one ended.
    pub(crate) last_end_ms: u64,
    /// The most requests that ended within one minute of the clock.
    pub(crate) most_in_a_minute: u64,
    /// The rules of the site that excluded URLs, by rule and line, with the number of URLs.
    pub(crate) rules: BTreeMap<(String, Option<u32>), u64>,
    minute: u64,
    in_minute: u64,
}

/// The site's statements on the use of its pages, and its robots.txt, counted over pages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Permissions {
    /// Pages that a rule of robots.txt allows by its words.
    pub(crate) allowed_by_rule: u64,
    /// Pages that no rule speaks of.
    pub(crate) no_rule: u64,
    /// Statements about use, by vocabulary and channel.
    pub(crate) statements: BTreeMap<(String, String), u64>,
    /// Pages that allow the declared purpose, and that refuse it.
    pub(crate) purpose_allowed: u64,
    pub(crate) purpose_refused: u64,
    /// Pages whose body is not in the archive since the site refused a copy.
    pub(crate) withheld: u64,
}

/// The numbers behind the plots.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) manners: Manners,
    /// None where no request was sent.
    pub(crate) time: Option<TimeSeries>,
    /// Bytes of bodies of pages.
    pub(crate) sizes: Histogram,
    /// Milliseconds from the start of a request to its end.
    pub(crate) response_times: Histogram,
    /// The first of [`Report::hosts_asked`], in that order.
    pub(crate) hosts: Vec<HostFigures>,
    pub(crate) permissions: Permissions,
    pub(crate) links: LinkSketch,
}

/// Reads the rows of the crawl in `dir` that `report` sums up once more, for its plots. Lines that
/// are no rows are passed over: the report tells of them.
///
/// # Errors
/// Those of the file system.
pub(crate) fn figures(dir: &Path, report: &Report) -> Result<Figures, RecordsError> {
    let mut reader = Reader::new(dir, report);
    for row in requests(dir)? {
        if let Some(row) = sound(row)? {
            reader.request(&row);
        }
    }
    for row in pages(dir)? {
        if let Some(row) = sound(row)? {
            reader.page(&row);
        }
    }
    for row in excluded(dir)? {
        if let Some(row) = sound(row)? {
            reader.excluded(&row);
        }
    }
    let Reader {
        mut figures,
        origins,
        folders,
        ..
    } = reader;
    figures.links = link_sketch::read(dir, report, origins, folders)?;
    Ok(figures)
}

/// The row, or nothing where the line was none.
fn sound<T>(row: Result<T, RecordsError>) -> Result<Option<T>, RecordsError> {
    match row {
        Ok(row) => Ok(Some(row)),
        Err(RecordsError::Row { .. }) => Ok(None),
        Err(why) => Err(why),
    }
}

struct Reader {
    figures: Figures,
    /// Places in `figures.hosts` by host key.
    hosts: HashMap<String, usize>,
    /// The same by origin, as URLs begin with it.
    origins: HashMap<String, usize>,
    folders: link_sketch::Folders,
    rules: usize,
}

impl Reader {
    fn new(dir: &Path, report: &Report) -> Reader {
        let (asked, _) = report.hosts_asked();
        let shown = asked.iter().take(MAX_HOST_SECTIONS);
        let hosts: HashMap<_, _> = shown
            .enumerate()
            .map(|(at, host)| (host.host.clone(), at))
            .collect();
        let requests = &report.requests;
        let axis = requests.first_start_ms.zip(requests.last_end_ms);
        let time = axis.map(|(first, last)| {
            let axis = TimeAxis::new(first, last);
            TimeSeries {
                axis,
                answers: vec![AnswerCounts::default(); axis.bins],
                pages: vec![0; axis.bins],
            }
        });
        let bins = time.as_ref().map_or(0, |time| time.axis.bins);
        let of_host = HostFigures {
            requests: vec![0; bins],
            ..HostFigures::default()
        };
        Reader {
            figures: Figures {
                manners: Manners::read(dir),
                time,
                sizes: Histogram::new(&SIZES),
                response_times: Histogram::new(&RESPONSE_TIMES),
                hosts: vec![of_host; hosts.len()],
                permissions: Permissions::default(),
                links: LinkSketch::default(),
            },
            hosts,
            origins: HashMap::new(),
            folders: link_sketch::Folders::default(),
            rules: 0,
        }
    }

    fn request(&mut self, row: &RequestRow) {
        let figures = &mut self.figures;
        figures
            .response_times
            .add(row.end.saturating_sub(row.start));
        let answer = Answer::of(row) as usize;
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
        if outcome(row) == "ok" {
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

impl HostFigures {
    fn note_times(&mut self, row: &RequestRow) {
        if self.last_end_ms == 0 || row.start < self.first_start_ms {
            self.first_start_ms = row.start;
        }
        self.last_end_ms = self.last_end_ms.max(row.end);
        // Rows stand in the order of their ends, so each minute is met once.
        let minute = row.end / MINUTE_MS;
        if minute != self.minute {
            (self.minute, self.in_minute) = (minute, 0);
        }
        self.in_minute += 1;
        self.most_in_a_minute = self.most_in_a_minute.max(self.in_minute);
    }
}

impl Permissions {
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

impl Manners {
    fn read(dir: &Path) -> Manners {
        let table = stored_settings(dir);
        let of = |section: &str, key: &str| table.get(section)?.get(key).cloned();
        let text = |section: &str, key: &str| of(section, key)?.as_str().map(str::to_owned);
        Manners {
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
