//! Checks a finished crawl against its web.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use crawl_archive::rows::{ExcludedRow, ExtractRow, LinkRow, PageRow, RequestRow};
use crawl_archive::strip_warc_suffix;
use crawl_frontier::{FjallFrontier, FjallFrontierOptions, Frontier as _, KnownState};
use crawl_testweb::LogEntry;
use serde::de::DeserializeOwned;

use super::check_pace::CrawlDisturbances;
use super::checked_counts_and_breaches::{BrokenRules, CheckedCounts};
use super::leftover_browsers::BrowserProcessGroups;
use super::program_run::{CrawlCommand, TimesAroundKill};
use super::random_web::{RandomWeb, settles};
use super::{check_archive, check_index, check_pace, check_rendered};

/// The rows of a crawl, read from its row files into memory.
#[derive(Default)]
pub(super) struct CrawlRows {
    pub(super) pages: Vec<PageRow>,
    pub(super) excluded: Vec<ExcludedRow>,
    pub(super) requests: Vec<RequestRow>,
}

pub(super) fn finished(
    web: &RandomWeb,
    program: &CrawlCommand,
    deaths: &[TimesAroundKill],
) -> Result<CheckedCounts> {
    let output = program.output();
    let log = web.web.log();
    let rows = CrawlRows {
        pages: read(&output.join("pages.jsonl"))?,
        excluded: read(&output.join("excluded.jsonl"))?,
        requests: read(&output.join("requests.jsonl"))?,
    };
    if web.links {
        links_once(&read(&output.join("links.jsonl"))?, &rows)?;
    }
    if web.extracts {
        extracts_once(&read(&output.join("extracts.jsonl"))?, &rows.pages)?;
    }
    let mut breaches = BrokenRules::default();
    let given_up = rows_are_the_truth(web, &rows, &log, &mut breaches);
    log_is_allowed(web, &log, &mut breaches);
    log_has_its_rows(web, &log, &rows.requests, deaths, &mut breaches);
    let events = CrawlDisturbances::of_one(deaths);
    let mut tally = check_pace::check(web, &log, &rows.requests, events, &mut breaches);
    tally.records = check_archive::check(&output, web, &rows.pages, &rows.requests, &mut breaches)?;
    tally.rendered = check_rendered::pages(web, &rows.pages, &mut breaches);
    check_rendered::resources(web, &log, deaths.len() + 1, &mut breaches);
    if web.index {
        tally.indexed = check_index::holds_all(&output, &rows.pages, &mut breaches)?;
    }
    state_is_settled(&output, &rows, &mut breaches)?;
    breaches.end()?;
    program.run(&["audit"])?;
    let requests_before = web.web.log().len();
    nothing_changes(program)?;
    BrowserProcessGroups::below(&program.temporary()).wait()?;
    ensure!(
        fs::read_dir(program.temporary())?.next().is_none(),
        "temporary files are left in {}",
        program.temporary().display()
    );
    let more = web.web.log().len() - requests_before;
    ensure!(more == 0, "a finished crawl sent {more} requests");
    let urls: BTreeSet<_> = log.iter().map(|entry| (entry.host, &entry.path)).collect();
    tally.given_up = given_up;
    tally.pages = rows.pages.len() as u64;
    tally.requests = log.len() as u64;
    tally.repeated = (log.len() - urls.len()) as u64;
    tally.lost = lost(&log);
    Ok(tally)
}

/// Checks a crawl that resumed after a power cut. `promised` is the beginning of `pages.jsonl` that
/// was committed before the cut. Requests are not checked, because the web's log also has the
/// requests of other crawls. Returns the number of pages.
pub(super) fn after_power_cut(
    web: &RandomWeb,
    program: &CrawlCommand,
    promised: &[u8],
) -> Result<u64> {
    let output = program.output();
    let page_rows = fs::read(output.join("pages.jsonl"))?;
    ensure!(
        page_rows.starts_with(promised),
        "pages.jsonl does not begin with its {} bytes that were committed before the cut",
        promised.len()
    );
    let rows = CrawlRows {
        pages: read(&output.join("pages.jsonl"))?,
        excluded: read(&output.join("excluded.jsonl"))?,
        requests: Vec::new(),
    };
    if web.links {
        links_once(&read(&output.join("links.jsonl"))?, &rows)?;
    }
    if web.extracts {
        extracts_once(&read(&output.join("extracts.jsonl"))?, &rows.pages)?;
    }
    let mut breaches = BrokenRules::default();
    rows_are_the_truth(web, &rows, &[], &mut breaches);
    check_archive::check(&output, web, &rows.pages, &rows.requests, &mut breaches)?;
    if web.index {
        check_index::holds_all(&output, &rows.pages, &mut breaches)?;
    }
    state_is_settled(&output, &rows, &mut breaches)?;
    breaches.end()?;
    program.run(&["audit"])?;
    nothing_changes(program)?;
    Ok(rows.pages.len() as u64)
}

/// Checks a crawl that visited everything again: each page occurs once per round. There may be more
/// than two rounds: if the crawl is killed after the end of a round, restarting it begins another
/// round. Returns the number of page rows in the rounds after the first one.
pub(super) fn rounds(
    web: &RandomWeb,
    program: &CrawlCommand,
    deaths: &[TimesAroundKill],
) -> Result<u64> {
    let output = program.output();
    let log = web.web.log();
    let pages: Vec<PageRow> = read(&output.join("pages.jsonl"))?;
    let requests: Vec<RequestRow> = read(&output.join("requests.jsonl"))?;
    if web.extracts {
        extracts_once(&read(&output.join("extracts.jsonl"))?, &pages)?;
    }
    let mut breaches = BrokenRules::default();
    log_is_allowed(web, &log, &mut breaches);
    log_has_its_rows(web, &log, &requests, deaths, &mut breaches);
    let events = CrawlDisturbances::of_one(deaths);
    check_pace::check(web, &log, &requests, events, &mut breaches);
    check_archive::check(&output, web, &pages, &requests, &mut breaches)?;
    check_rendered::pages(web, &pages, &mut breaches);
    if web.index {
        check_index::holds_all(&output, &pages, &mut breaches)?;
    }
    let last = pages.iter().map(|page| page.round).max().unwrap_or(1);
    let again = pages.iter().filter(|page| page.round > 1).count();
    let mut seen = BTreeSet::new();
    for page in &pages {
        if !seen.insert((page.round, page.url.as_str())) {
            breaches.add(format!("{} has two rows in round {}", page.url, page.round));
        }
        let expected = web.expected.get(&page.url).copied().flatten();
        let is_known = page.status == expected || page.status == Some(304);
        if page.round > 1 && !is_known && !is_given_up(page, web, &log) {
            let (url, round, status) = (&page.url, page.round, page.status);
            breaches.add(format!("{url} has status {status:?} in round {round}"));
        }
    }
    for (round, url) in
        (1..=last).flat_map(|round| web.expected.keys().map(move |url| (round, url)))
    {
        if !seen.contains(&(round, url.as_str())) {
            breaches.add(format!("{url} is lost in round {round}"));
        }
    }
    let frontier = FjallFrontier::open(&output.join("state"), &FjallFrontierOptions::default())?;
    let counts = frontier.counts();
    drop(frontier);
    let first_urls: BTreeSet<_> = pages.iter().map(|page| page.url.as_str()).collect();
    if (
        counts.pending + counts.leased,
        counts.fetched + counts.failed,
    ) != (0, first_urls.len() as u64)
    {
        breaches.add(format!(
            "the state counts {counts:?} of {} pages",
            first_urls.len()
        ));
    }
    if last < 2 {
        breaches.add("nothing was visited again");
    }
    breaches.end()?;
    program.run(&["audit"])?;
    Ok(again as u64)
}

/// Reads rows. A torn or invalid line is an error.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    if !text.is_empty() && !text.ends_with('\n') {
        bail!("{} ends with a torn line", path.display());
    }
    let rows = text.lines().enumerate();
    rows.map(|(at, line)| {
        serde_json::from_str(line).with_context(|| format!("{}:{}", path.display(), at + 1))
    })
    .collect()
}

/// Checks that the links of each page are listed once. All link rows of a page are consecutive, so
/// a page that occurs again after another page was listed twice.
fn links_once(links: &[LinkRow], rows: &CrawlRows) -> Result<()> {
    let pages: BTreeSet<_> = rows.pages.iter().map(|page| page.url.as_str()).collect();
    let mut seen = BTreeSet::new();
    let mut last = "";
    for link in links {
        if link.from != last {
            ensure!(
                pages.contains(link.from.as_str()),
                "links of {}, which has no row",
                link.from
            );
            ensure!(
                seen.insert(link.from.as_str()),
                "the links of {} are listed twice",
                link.from
            );
            last = &link.from;
        }
    }
    Ok(())
}

/// Checks that each page that the rule reads has exactly one row of fields in each round, and other
/// pages have none. A page whose body is the same as at an earlier visit gets no new row.
fn extracts_once(extracts: &[ExtractRow], pages: &[PageRow]) -> Result<()> {
    let is_html = |page: &PageRow| {
        let content_type = page.content_type.as_deref().unwrap_or_default();
        content_type.starts_with("text/html")
    };
    let is_read = |page: &&PageRow| {
        let is_answer = matches!(page.status, Some(200..=299)) && is_html(page);
        is_answer
            && page.may_show_body()
            && !page.repeats_body()
            && page.error.as_deref() != Some("reader_killed")
    };
    let key = |page: &PageRow| (page.round, page.url.clone());
    let mut expected: BTreeSet<_> = pages.iter().filter(is_read).map(key).collect();
    for row in extracts {
        ensure!(
            expected.remove(&(row.round, row.url.clone())),
            "{} has a second or needless row of fields in round {}",
            row.url,
            row.round
        );
    }
    match expected.first() {
        None => Ok(()),
        Some((round, url)) => bail!("{url} has no row of fields in round {round}"),
    }
}

/// Checks that the rows are what a crawl of the web must produce. Returns the number of pages that
/// were given up because of kills.
pub(super) fn rows_are_the_truth(
    web: &RandomWeb,
    rows: &CrawlRows,
    log: &[LogEntry],
    breaches: &mut BrokenRules,
) -> u64 {
    let mut given_up = 0;
    let mut statuses = BTreeMap::new();
    for page in &rows.pages {
        if statuses.insert(page.url.as_str(), page.status).is_some() {
            breaches.add(format!("{} is listed twice in pages.jsonl", page.url));
        }
        match web.expected.get(&page.url) {
            None => breaches.add(format!("{} is listed, and not to be fetched", page.url)),
            Some(_) if is_given_up(page, web, log) => given_up += 1,
            Some(status) if *status != page.status => breaches.add(format!(
                "{} has status {:?}, not {status:?}: {:?}",
                page.url, page.status, page.error
            )),
            Some(_) => {}
        }
    }
    for url in web.expected.keys() {
        if !statuses.contains_key(url.as_str()) {
            breaches.add(format!("{url} is lost"));
        }
    }
    let mut excluded = BTreeSet::new();
    for row in &rows.excluded {
        if !excluded.insert(row.url.as_str()) {
            breaches.add(format!("{} is listed twice in excluded.jsonl", row.url));
        }
        if statuses.contains_key(row.url.as_str()) {
            breaches.add(format!("{} is listed as fetched and as excluded", row.url));
        }
    }
    for url in &web.barred {
        if !excluded.contains(url.as_str()) {
            breaches.add(format!("{url} is excluded, and not listed"));
        }
    }
    given_up
}

/// Returns whether the page was given up because reading it crashed the crawler: the page's row
/// states this, and the page was requested at least four times.
fn is_given_up(page: &PageRow, web: &RandomWeb, log: &[LogEntry]) -> bool {
    let requests = log
        .iter()
        .filter(|entry| web.web.url(entry.host, &entry.path) == page.url);
    page.error.as_deref() == Some("reader_killed") && requests.count() >= 4
}

pub(super) fn log_is_allowed(web: &RandomWeb, log: &[LogEntry], breaches: &mut BrokenRules) {
    for entry in log {
        let url = web.web.url(entry.host, &entry.path);
        if web.barred.contains(&url) {
            breaches.add(format!("{url} was requested although it is excluded"));
        } else if !web.expected.contains_key(&url)
            && !web.rules.contains(&url)
            && !web.resources.contains(&url)
        {
            breaches.add(format!("{url} was requested although nothing links to it"));
        }
    }
}

/// Checks that each request is in `requests.jsonl`, except requests that were in flight at a kill.
fn log_has_its_rows(
    web: &RandomWeb,
    log: &[LogEntry],
    rows: &[RequestRow],
    deaths: &[TimesAroundKill],
    breaches: &mut BrokenRules,
) {
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for entry in log {
        *counts
            .entry(web.web.url(entry.host, &entry.path))
            .or_default() += 1;
    }
    for row in rows {
        *counts.entry(row.url.clone()).or_default() -= 1;
    }
    for (url, left) in &counts {
        if *left < 0 {
            breaches.add(format!(
                "{url} has {} rows too many in requests.jsonl",
                -left
            ));
        }
    }
    let unknown: i64 = counts.values().filter(|left| **left > 0).sum();
    // At each kill, a request to every host may have been in flight.
    let max_unknown = deaths.len() as i64 * i64::from(web.web.hosts());
    if unknown > max_unknown {
        breaches.add(format!(
            "{unknown} requests have no row, after {} kills",
            deaths.len()
        ));
    }
}

fn state_is_settled(output: &Path, rows: &CrawlRows, breaches: &mut BrokenRules) -> Result<()> {
    let frontier = FjallFrontier::open(&output.join("state"), &FjallFrontierOptions::default())?;
    let counts = frontier.counts();
    let settled = (counts.fetched + counts.failed) as usize;
    let barred = (counts.excluded + counts.deferred) as usize;
    if (counts.pending, counts.leased, settled, barred)
        != (0, 0, rows.pages.len(), rows.excluded.len())
    {
        breaches.add(format!(
            "the state counts {counts:?}; there are {} pages and {} excluded",
            rows.pages.len(),
            rows.excluded.len()
        ));
    }
    for page in &rows.pages {
        let url = crawl_weburl::canonicalize(None, &page.url)?;
        let state = frontier.known(&url)?.map(|state| state.state);
        let agrees = match (&state, page.status) {
            (Some(KnownState::Fetched { status }), Some(row)) => *status == row,
            (Some(KnownState::Failed { .. }), None) => true,
            _ => false,
        };
        if !agrees {
            breaches.add(format!(
                "the state has {state:?} for {url}, its row {:?}",
                page.status
            ));
        }
    }
    for (name, length) in frontier.marks()? {
        let length_on_disk = fs::metadata(output.join(&name)).map_or(0, |file| file.len());
        // `excluded.jsonl` may be longer than committed, because rows written at the end of a run
        // are not part of a commit.
        if length_on_disk != length && !(name == "excluded.jsonl" && length_on_disk > length) {
            breaches.add(format!(
                "{name} has {length_on_disk} bytes, {length} are committed"
            ));
        }
    }
    Ok(())
}

/// Returns the number of answers that settled a URL (see [`settles`]), but were followed by another
/// request for the URL.
pub(super) fn lost(log: &[LogEntry]) -> u64 {
    let mut last: BTreeMap<_, Option<u16>> = BTreeMap::new();
    let mut lost = 0;
    for entry in log {
        let before = last.insert((entry.host, &entry.path), entry.status);
        lost += u64::from(before.flatten().is_some_and(settles));
    }
    lost
}

/// Checks that starting a finished crawl again changes no stored file.
fn nothing_changes(program: &CrawlCommand) -> Result<()> {
    let output = program.output();
    let before = stored_files(&output)?;
    program.once_more()?;
    let after = stored_files(&output)?;
    for (name, bytes) in &before {
        ensure!(
            after.get(name) == Some(bytes),
            "a finished crawl changed {name} when it was started again"
        );
    }
    ensure!(after.len() == before.len(), "a finished crawl made a file");
    Ok(())
}

/// Reads the rows and the archive, by file name. The list of digests is left out, because opening
/// the state changes the files whose digests it lists.
fn stored_files(output: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for folder in [output.to_owned(), output.join("archive")] {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_kept = strip_warc_suffix(&name).is_some()
                || [".jsonl", ".cdxj"].iter().any(|end| name.ends_with(end));
            if is_kept && name != "digests.jsonl" {
                files.insert(name.into_owned(), fs::read(&path)?);
            }
        }
    }
    Ok(files)
}
