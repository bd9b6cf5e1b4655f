//! The parts of a crawl's work, each measured alone over the same pages. The result is processor
//! time per page.
//!
//! Parts that read a page are compared with html5ever's tokenizer over the same bytes. Numbers of
//! links include duplicates.

use std::fs;
use std::hint::black_box;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use clap::Args;
use crawl_archive::{
    Capture, CaptureEncoder, CaptureMetadata, CapturedRequest, RecordIds, Timestamp,
};
use crawl_coding::{DecodeLimits, decode};
use crawl_extractor::{ReadingLimits, read_html, walk_tokens};
use crawl_frontier::{
    Durability, FjallFrontier, FjallFrontierOptions, Frontier, LastVisit, LeaseOutcome, UrlToAdmit,
};
use crawl_index::{IndexWriter, IndexedPage};
use crawl_policy::{AgentRules, ProductToken, RobotsProfile};
use crawl_weburl::{CanonicalUrl, canonicalize};
use flate2::Compression;
use flate2::bufread::GzEncoder;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use http::{HeaderMap, HeaderValue, Version, header};
use libdeflater::{CompressionLvl, Compressor};
use xtask::debian_packages;
use xtask::workspace::{Workspace, run};

use super::measured_program::{BuildProfile, WorkspaceProgram, build, cpu_of_this_process};
use super::search::corpus;

/// Pages per transaction, as in a busy crawl.
const GROUP: usize = 64;
/// gzip levels to try for archived bodies. The crawler uses level 1.
const LEVELS: [i32; 3] = [1, 3, 6];
const CONTENT_TYPE: &str = "text/html; charset=utf-8";
/// The part that all parts are compared with.
const YARDSTICK: &str = "tokenise, html5ever";
/// The fetch time of the pages: 2026-01-01.
const FETCHED_AT: u32 = 1_767_225_600;

/// Arguments of the benchmark that measures each part of the work on a page.
#[derive(Args)]
pub(crate) struct CostBreakdownArgs {
    /// Number of pages to measure with, taken evenly from all [default: all]
    #[arg(long, value_name = "N")]
    pages: Option<usize>,
    /// Runs of each part; the one with the least CPU time counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: usize,
    /// Measure in this process, without building a release binary first
    #[arg(long, hide = true)]
    here: bool,
}

/// Builds this program in the release profile, and runs the measurement in it.
pub(super) fn parts(workspace: &Workspace, args: &CostBreakdownArgs) -> Result<()> {
    if args.here {
        return measure(workspace, args);
    }
    debian_packages::fetch(workspace)?;
    let program = build(workspace, BuildProfile::Release, WorkspaceProgram::Trials)?;
    let mut command = workspace.program(program);
    command.args(["bench", "parts", "--here", "--runs", &args.runs.to_string()]);
    if let Some(pages) = args.pages {
        command.args(["--pages", &pages.to_string()]);
    }
    run(&mut command)
}

fn measure(workspace: &Workspace, args: &CostBreakdownArgs) -> Result<()> {
    let pages = pages(workspace, args.pages)?;
    let bytes: usize = pages.iter().map(|page| page.html.len()).sum();
    let links: usize = pages.iter().map(|page| page.hrefs.len()).sum();
    let mut parts = MeasuredParts {
        pages: pages.len(),
        runs: args.runs.max(1),
        rows: Vec::new(),
    };
    reading(&mut parts, &pages);
    links_of(&mut parts, &pages)?;
    archiving(&mut parts, &pages)?;
    let dir = workspace.target.join("bench-parts");
    let _ = fs::remove_dir_all(&dir);
    frontier(&mut parts, &pages, &dir)?;
    index(&mut parts, &pages, &dir)?;
    fs::remove_dir_all(&dir)?;
    let count = pages.len();
    let text = format!(
        "{count} pages, {} bytes and {} links a page\n\n{}",
        bytes / count,
        links / count,
        table(&parts.rows)
    );
    Ok(io::stdout().write_all(text.as_bytes())?)
}

struct Page {
    file: PathBuf,
    url: CanonicalUrl,
    html: String,
    body: Bytes,
    gzipped: Bytes,
    base: CanonicalUrl,
    hrefs: Vec<String>,
    /// Links that a crawl could follow, without duplicates.
    links: Vec<CanonicalUrl>,
}

/// The cost of one part over all pages.
struct PartCost {
    part: String,
    micros: f64,
    wall_micros: f64,
}

struct MeasuredParts {
    pages: usize,
    runs: usize,
    rows: Vec<PartCost>,
}

impl MeasuredParts {
    /// Runs a part several times over all pages, and adds the row of the fastest run.
    fn time(&mut self, part: &str, mut work: impl FnMut()) {
        let timed = (0..self.runs).map(|_| {
            let (cpu, wall) = (cpu_of_this_process(), Instant::now());
            work();
            (cpu_of_this_process().saturating_sub(cpu), wall.elapsed())
        });
        if let Some((cpu, wall)) = timed.min() {
            self.add(part, cpu, wall);
        }
    }

    fn add(&mut self, part: &str, cpu: Duration, wall: Duration) {
        let a_page = |time: Duration| time.as_secs_f64() * 1e6 / self.pages.max(1) as f64;
        let (micros, wall_micros) = (a_page(cpu), a_page(wall));
        eprintln!("{part}: {micros:.1} us");
        self.rows.push(PartCost {
            part: part.to_owned(),
            micros,
            wall_micros,
        });
    }
}

fn table(rows: &[PartCost]) -> String {
    let mut text = "| part | CPU us a page | of html5ever's tokenizer | wall us a page |\n\
                    |---|---|---|---|\n"
        .to_owned();
    let yardstick = rows.iter().find(|row| row.part == YARDSTICK);
    for row in rows {
        let of = yardstick.map_or("-".to_owned(), |other| {
            format!("{:.3}", row.micros / other.micros)
        });
        text += &format!(
            "| {} | {:.1} | {of} | {:.1} |\n",
            row.part, row.micros, row.wall_micros
        );
    }
    text
}

/// Returns the UTF-8 pages of Java's, Python's and Git's documentation. If `most` is given, returns
/// at most this many, evenly distributed over all pages.
fn pages(workspace: &Workspace, most: Option<usize>) -> Result<Vec<Page>> {
    let mut files = Vec::new();
    for (name, folder) in [
        ("python", debian_packages::python_docs(workspace)?),
        ("java", debian_packages::java_docs(workspace)?.join("api")),
        ("git", debian_packages::git_docs(workspace)?),
    ] {
        let mut paths = Vec::new();
        corpus::html_files(&folder, &mut paths)?;
        paths.sort();
        for file in paths {
            let path = file.strip_prefix(&folder)?;
            let path = path.to_str().context("a path that is no text")?;
            files.push((format!("http://docs.example/{name}/{path}"), file));
        }
    }
    let step = most.map_or(1, |most| files.len().div_ceil(most.max(1)));
    let chosen = files.into_iter().step_by(step.max(1));
    let read = chosen
        .map(|(url, file)| page(&url, file))
        .collect::<Result<Vec<_>>>()?;
    let pages: Vec<Page> = read.into_iter().flatten().collect();
    ensure!(!pages.is_empty(), "there are no pages");
    Ok(pages)
}

/// Reads a page. Returns `None` if the file is not UTF-8, which html5ever's tokenizer requires.
fn page(url: &str, file: PathBuf) -> Result<Option<Page>> {
    let Ok(html) = String::from_utf8(fs::read(&file)?) else {
        return Ok(None);
    };
    let url = canonicalize(None, url).map_err(|why| anyhow::anyhow!("no URL: {url}: {why:?}"))?;
    let read = read_html(
        html.as_bytes(),
        Some(CONTENT_TYPE),
        &ReadingLimits::default(),
    );
    let base = read.base_url(&url);
    let hrefs: Vec<String> = read.links.into_iter().map(|link| link.href).collect();
    let mut links: Vec<_> = hrefs
        .iter()
        .filter_map(|href| canonicalize(Some(&base), href).ok())
        .collect();
    links.sort();
    links.dedup();
    Ok(Some(Page {
        file,
        url,
        body: Bytes::from(html.clone().into_bytes()),
        gzipped: Bytes::from(gzip(html.as_bytes())?),
        html,
        base,
        hrefs,
        links,
    }))
}

/// Compresses a page as a server does.
fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut gzipped = Vec::new();
    GzEncoder::new(bytes, Compression::new(super::SERVER_LEVEL)).read_to_end(&mut gzipped)?;
    Ok(gzipped)
}

fn reading(parts: &mut MeasuredParts, pages: &[Page]) {
    parts.time("decode gzip", || {
        for page in pages {
            black_box(decode(["gzip"], &page.gzipped, &DecodeLimits::default()));
        }
    });
    parts.time(YARDSTICK, || {
        pages.iter().for_each(|page| html5ever(&page.html));
    });
    parts.time("tokenise, ours", || {
        pages.iter().for_each(|page| walk_tokens(&page.html));
    });
    parts.time("read links, directives, title", || {
        for page in pages {
            black_box(read_html(
                page.html.as_bytes(),
                Some(CONTENT_TYPE),
                &ReadingLimits::default(),
            ));
        }
    });
    parts.time("read those and the text, and judge for the index", || {
        for page in pages {
            let _ = black_box(corpus::page(&page.url, page.html.as_bytes()));
        }
    });
}

/// A token sink that drops every token.
struct DroppingTokenSink;

impl TokenSink for DroppingTokenSink {
    type Handle = ();

    fn process_token(&self, _token: Token, _line: u64) -> TokenSinkResult<()> {
        TokenSinkResult::Continue
    }
}

fn html5ever(html: &str) {
    let queue = BufferQueue::default();
    queue.push_back(StrTendril::from_slice(html));
    let tokenizer = Tokenizer::new(DroppingTokenSink, TokenizerOpts::default());
    let _ = tokenizer.feed(&queue);
    tokenizer.end();
}

fn links_of(parts: &mut MeasuredParts, pages: &[Page]) -> Result<()> {
    parts.time("canonicalise all links", || {
        for page in pages {
            for href in &page.hrefs {
                let _ = black_box(canonicalize(Some(&page.base), href));
            }
        }
    });
    let rules = "User-agent: *\nDisallow: /private/\nDisallow: /*?sort=\nDisallow: /search\n\
                 Disallow: /cgi-bin/\nAllow: /search/about\nDisallow: /*.cgi$\nDisallow: /tmp/\n\
                 Disallow: /java/never/\nDisallow: /*/edit\n";
    let agent = ProductToken::new("ExampleBot")?;
    let robots = AgentRules::parse(rules.as_bytes(), &agent, RobotsProfile::Rfc9309);
    parts.time("match the page's URL with robots.txt", || {
        for page in pages {
            black_box(robots.judge(page.url.as_url()).is_allowed());
        }
    });
    Ok(())
}

fn archiving(parts: &mut MeasuredParts, pages: &[Page]) -> Result<()> {
    let mut headers = HeaderMap::new();
    headers.insert(header::SERVER, HeaderValue::from_static("nginx"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
    headers.insert(header::ETAG, HeaderValue::from_static("\"63bd2c21-6cd2\""));
    let mut sent = Vec::new();
    for (name, value) in [("user-agent", "crawl/0.1.0"), ("accept-encoding", "gzip")] {
        sent.push((name.to_owned(), value.to_owned()));
    }
    let mut encoder = CaptureEncoder::default();
    for (part, is_gzipped) in [
        ("encode for the archive, body as it is", false),
        ("encode for the archive, body in gzip", true),
    ] {
        parts.time(part, || {
            for (number, page) in (0..).zip(pages) {
                let capture = Capture {
                    url: &page.url,
                    started: Timestamp::from_micros(u64::from(FETCHED_AT) * 1_000_000),
                    millis: 3,
                    address: None,
                    protocol: Version::HTTP_11,
                    tls: None,
                    request: CapturedRequest {
                        method: "GET",
                        headers: &sent,
                        body: &[],
                    },
                    status: 200,
                    reason: None,
                    headers: &headers,
                    body: match is_gzipped {
                        true => &page.gzipped,
                        false => &page.body,
                    },
                    truncated: None,
                    revisit: None,
                    about: CaptureMetadata::default(),
                };
                black_box(encoder.encode(&capture, &RecordIds::numbered(number)));
            }
        });
    }
    for level in LEVELS {
        let level_of = CompressionLvl::new(level)
            .ok()
            .context("no level of gzip")?;
        let mut compressor = Compressor::new(level_of);
        let mut gzipped = Vec::new();
        let mut bytes = 0;
        parts.time(&format!("gzip at level {level}"), || {
            bytes = 0;
            for page in pages {
                gzipped.resize(compressor.gzip_compress_bound(page.body.len()), 0);
                // Compressing can't fail for lack of space, because the buffer has the maximum size
                // of a compressed page.
                let done = compressor.gzip_compress(&page.body, &mut gzipped);
                bytes += done.unwrap_or_default();
            }
        });
        if let Some(row) = parts.rows.last_mut() {
            row.part += &format!(" ({} bytes a page)", bytes / pages.len());
        }
    }
    Ok(())
}

/// Processor and wall time of a step over all groups of pages.
#[derive(Default)]
struct StepTime(Duration, Duration);

impl StepTime {
    fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (cpu, wall) = (cpu_of_this_process(), Instant::now());
        let made = work();
        self.0 += cpu_of_this_process().saturating_sub(cpu);
        self.1 += wall.elapsed();
        made
    }
}

/// Leases and settles each page and admits its links, several pages per transaction.
fn frontier(parts: &mut MeasuredParts, pages: &[Page], dir: &Path) -> Result<()> {
    for (name, durability) in [
        ("without sync", Durability::ProcessDeath),
        ("with sync", Durability::PowerCut),
    ] {
        let dir = dir.join(format!("frontier-{durability:?}"));
        let options = FjallFrontierOptions {
            durability,
            ..FjallFrontierOptions::default()
        };
        let frontier = FjallFrontier::open(&dir, &options)?;
        let mut transaction = frontier.begin()?;
        let seeds = pages.iter().map(|page| UrlToAdmit::seed(page.url.clone()));
        transaction.admit_all(&seeds.collect::<Vec<_>>())?;
        transaction.commit()?;
        let (mut admit, mut settle, mut commit) = <(StepTime, StepTime, StepTime)>::default();
        for group in pages.chunks(GROUP) {
            let mut admissions = Vec::new();
            for page in group {
                let link = |url: &CanonicalUrl| UrlToAdmit::link(url.clone(), 1, page.url.clone());
                admissions.push(page.links.iter().map(link).collect::<Vec<_>>());
            }
            let mut transaction = frontier.begin()?;
            for links in admissions {
                admit.time(|| transaction.admit_all(&links))?;
            }
            for page in group {
                settle.time(|| {
                    let origin = page.url.origin();
                    let Some(lease) = frontier.lease(&origin)? else {
                        return Ok(());
                    };
                    let visit = LastVisit {
                        at: FETCHED_AT,
                        due: FETCHED_AT + 86_400,
                        bytes: vec![7; 64],
                    };
                    transaction.settle_until(lease, LeaseOutcome::Fetched { status: 200 }, visit)
                })?;
            }
            commit.time(|| transaction.commit())?;
        }
        if durability == Durability::ProcessDeath {
            let StepTime(cpu, wall) = admit;
            parts.add("admit the links (the frontier on disk)", cpu, wall);
            let StepTime(cpu, wall) = settle;
            parts.add("lease and settle the page", cpu, wall);
        }
        let StepTime(cpu, wall) = commit;
        parts.add(&format!("commit {GROUP} pages, {name}"), cpu, wall);
    }
    Ok(())
}

fn index(parts: &mut MeasuredParts, pages: &[Page], dir: &Path) -> Result<()> {
    let mut writer = IndexWriter::open(&dir.join("index"))?;
    let (mut put, mut reconcile) = <(StepTime, StepTime)>::default();
    for page in pages {
        let html = fs::read(&page.file)?;
        let Some(read) = corpus::page(&page.url, &html) else {
            continue;
        };
        let read: IndexedPage = read;
        put.time(|| writer.put(&read))?;
    }
    put.time(|| writer.commit(""))?;
    reconcile.time(|| writer.reconcile("", FETCHED_AT.into()))?;
    writer.close()?;
    parts.add(
        "write into the index (words, segments, merges)",
        put.0,
        put.1,
    );
    parts.add("the index's pass at a run's end", reconcile.0, reconcile.1);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{PartCost, YARDSTICK, table};

    #[test]
    fn parts_are_reported_relative_to_html5ever() {
        let row = |part: &str, micros| PartCost {
            part: part.to_owned(),
            micros,
            wall_micros: 2.0 * micros,
        };
        let table = table(&[row(YARDSTICK, 200.0), row("ours", 25.0)]);
        assert_eq!(table.lines().nth(3), Some("| ours | 25.0 | 0.125 | 50.0 |"));
    }
}
