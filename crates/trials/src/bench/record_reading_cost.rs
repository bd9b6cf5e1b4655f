//! The cost of reading the records of a large crawl: memory and time.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use crawl_archive::rows::{
    ExcludedRow, PageRow, PendingOriginRow, RequestRow, RobotsVerdict, WarcRecordLocation,
};
use crawl_archive::{Timestamp, strip_warc_suffix};
use serde::Serialize;

use super::crawl::{GeneratedWeb, WebPlan};
use super::measured_program::{BuildProfile, WorkspaceProgram, build, cost_until_end};
use crate::torture::random::SeededRandom;
use xtask::workspace::Workspace;

/// When the generated crawl began, in milliseconds since 1970.
const START_MS: u64 = 1_795_219_200_000;
/// Pages per WARC file.
const PAGES_A_FILE: u64 = 100_000;
/// Bytes per WARC record.
const RECORD_BYTES: u64 = 9_000;
/// Maximum time for a command. A slower command is killed.
const MAX_TIME: Duration = Duration::from_hours(2);

#[derive(Args)]
pub(crate) struct RecordReadingCostArgs {
    /// Number of pages per crawl
    #[arg(
        long,
        value_name = "N,..",
        value_delimiter = ',',
        default_value = "1000000"
    )]
    pages: Vec<u64>,
    /// Number of hosts
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    hosts: u64,
    /// Number of rounds; every page has a row in each
    #[arg(long, value_name = "N", default_value_t = 1)]
    rounds: u32,
    /// Crawl at most 16,000 generated hosts instead, with an archive; also write and verify a
    /// bundle
    #[arg(long, conflicts_with = "rounds")]
    archived: bool,
    /// With --archived: build a search index and search it, instead of exporting the crawl
    #[arg(long, requires = "archived")]
    index: bool,
    /// Measure the program built with the dev profile, which builds faster
    #[arg(long)]
    dev: bool,
}

pub(super) fn measure(workspace: &Workspace, args: &RecordReadingCostArgs) -> Result<()> {
    let profile = BuildProfile::of(args.dev);
    let program = build(workspace, profile, WorkspaceProgram::Crawl)?;
    let folder = workspace.target.join("bench-records");
    let mut out = io::stdout();
    out.write_all(
        b"| pages | hosts | rounds | command | took | processor time | peak of memory |\n\
          |---|---|---|---|---|---|---|\n",
    )?;
    for &pages in &args.pages {
        ensure!(
            pages > 0 && args.hosts > 0 && args.rounds > 0,
            "nothing to generate"
        );
        let _ = fs::remove_dir_all(&folder);
        let dir = folder.join("crawl");
        let mut row = |name: &str, command: &mut Command, made: &Path| -> Result<()> {
            let (cost, is_ended) = cost_until_end(command, MAX_TIME)?;
            ensure!(made.exists() && !is_ended, "`crawl {name}` failed");
            writeln!(
                out,
                "| {pages} | {} | {} | {name} | {:.1} s | {:.1} s | {} MiB |",
                args.hosts,
                args.rounds,
                cost.wall.as_secs_f64(),
                cost.cpu.as_secs_f64(),
                cost.peak_kib >> 10,
            )?;
            Ok(out.flush()?)
        };
        match args.archived {
            true => {
                let web = GeneratedWeb::start(WebPlan {
                    hosts: u32::try_from(args.hosts)?,
                    pages_a_host: u32::try_from(pages.div_ceil(args.hosts))?,
                    latency: Duration::ZERO,
                })?;
                let mut command = crawl_of(workspace, &program, &web, &folder, &dir)?;
                command.args(args.index.then_some("--index"));
                row("crawl", &mut command, &dir.join("digests.jsonl"))?;
            }
            false => write_crawl(&dir, pages, args.hosts, args.rounds)?,
        }
        let words = |words: &str| words.split(' ').map(OsString::from).collect::<Vec<_>>();
        let page = page_in_the_middle(&dir)?;
        let mut commands = vec![(
            "report",
            words("report --html report.html crawl"),
            "report.html",
        )];
        if args.archived {
            let explain = [words("explain crawl"), vec![page.into()]].concat();
            commands.push(("explain URL", explain, "crawl"));
            commands.push(("verify DIR", words("verify crawl"), "crawl"));
        }
        if args.index {
            // Every title contains both words, `page` and `host`, so the search has to rank all
            // pages.
            let search = words("search crawl page host");
            commands.push(("search", search, "crawl/index"));
        } else {
            let parquet = words("export crawl --to parquet --out tables");
            commands.push(("export --to parquet", parquet, "tables"));
        }
        if args.archived && !args.index {
            let bundle = words("export crawl --to bundle --out bundle");
            commands.push(("export --to bundle", bundle, "bundle"));
            commands.push(("verify BUNDLE", words("verify bundle"), "bundle"));
        }
        for (name, words, made) in commands {
            let mut command = workspace.program(&program);
            command.args(words).current_dir(&folder);
            row(name, command.stdout(Stdio::null()), &folder.join(made))?;
        }
        if args.archived {
            print_file_sizes(&dir, pages)?;
        }
    }
    Ok(fs::remove_dir_all(&folder)?)
}

/// Returns the URL of a page in the middle of `pages.jsonl`.
fn page_in_the_middle(dir: &Path) -> Result<String> {
    let mut rows = BufReader::new(File::open(dir.join("pages.jsonl"))?);
    let middle = rows.get_ref().metadata()?.len() / 2;
    rows.seek(SeekFrom::Start(middle))?;
    let mut row = String::new();
    // Read twice, because the first line is usually only the rest of a row.
    for _ in 0..2 {
        row.clear();
        rows.read_line(&mut row)?;
    }
    let row: PageRow = serde_json::from_str(&row)?;
    Ok(row.url)
}

/// Returns a command that crawls all pages of `web`, with archive and links.
fn crawl_of(
    workspace: &Workspace,
    program: &Path,
    web: &GeneratedWeb,
    folder: &Path,
    dir: &Path,
) -> Result<Command> {
    fs::create_dir_all(folder)?;
    let config = folder.join("seeds.toml");
    fs::write(&config, format!("seed = {:?}\n", web.seeds()))?;
    let mut command = workspace.program(program);
    command.arg("-q").arg("--config").arg(config);
    command.arg("--output").arg(dir);
    command.args(["--own-site", "--sitemaps", "off", "--links", "on"]);
    command.args(["--delay", "0s", "--delay-factor", "0", "--per-host", "32"]);
    Ok(command)
}

/// Prints the size of each file to stderr, in total and per page. Adds up the sizes of the WARC
/// files.
fn print_file_sizes(dir: &Path, pages: u64) -> Result<()> {
    let mut bytes = BTreeMap::<String, u64>::new();
    for folder in [dir, &dir.join("archive"), &dir.join("state")] {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let name = match strip_warc_suffix(&name) {
                Some(stem) => format!("*{}", &name[stem.len()..]),
                None => name,
            };
            let file = entry.metadata()?;
            if file.is_file() {
                *bytes.entry(name).or_default() += file.len();
            }
        }
    }
    for (name, bytes) in bytes {
        let each = bytes as f64 / pages as f64;
        eprintln!("{name}: {bytes} bytes, {each:.3} a page");
    }
    Ok(())
}

/// Writes the row files of a finished crawl, and its capture log.
fn write_crawl(dir: &Path, pages: u64, hosts: u64, rounds: u32) -> Result<()> {
    fs::create_dir_all(dir.join("archive"))?;
    fs::write(
        dir.join("crawl.toml"),
        "seed = [\"https://h0.example/\"]\n[crawl]\nversion = \"0.1.0\"\n",
    )?;
    let mut rows = JsonLinesFile::create(&dir.join("pages.jsonl"))?;
    let mut requests = JsonLinesFile::create(&dir.join("requests.jsonl"))?;
    let mut excluded = JsonLinesFile::create(&dir.join("excluded.jsonl"))?;
    let captures = File::create(dir.join("archive/captures.cdxj"))?;
    let mut captures = BufWriter::new(captures);
    for round in 1..=rounds {
        for page in 0..pages {
            let number = u64::from(round - 1) * pages + page;
            let row = page_row(page, number, hosts, round);
            requests.add(&request_row(&row, hosts, page))?;
            if let Some(place) = &row.warc {
                writeln!(
                    captures,
                    "example,h{})/a {} {{\"url\": \"{}\", \"length\": \"{RECORD_BYTES}\", \"offset\": \"{}\", \
                     \"filename\": \"{}\"}}",
                    page % hosts,
                    20_261_120_235_959_u64,
                    row.url,
                    place.offset,
                    place.file,
                )?;
            }
            if round == 1 && page.is_multiple_of(10) {
                excluded.add(&excluded_row(&row))?;
            }
            rows.add(&row)?;
        }
    }
    captures.flush()?;
    let mut waiting = JsonLinesFile::create(&dir.join("waiting.jsonl"))?;
    waiting.add(&PendingOriginRow {
        reason: "finished".to_owned(),
        ..PendingOriginRow::default()
    })?;
    for file in [rows, requests, excluded, waiting] {
        file.finish()?;
    }
    Ok(())
}

/// Generates the row of a page. The same arguments give the same row. About one page in twenty has
/// status 404.
fn page_row(page: u64, number: u64, hosts: u64, round: u32) -> PageRow {
    let mut dice = SeededRandom::of(page);
    let url = url(page, hosts);
    let is_gone = dice.below(20) == 0;
    PageRow {
        status: Some(if is_gone { 404 } else { 200 }),
        fetched_at: Timestamp::from_micros((START_MS + number) * 1000),
        ms: 20 + dice.below(400),
        bytes: 2_000 + dice.below(60_000),
        content_type: Some("text/html; charset=utf-8".to_owned()),
        detected_type: Some("text/html".to_owned()),
        charset: Some("UTF-8".to_owned()),
        language: None,
        digest: Some(format!("sha1:{:032X}", dice.below(u64::MAX))),
        depth: u32::try_from(dice.below(9)).unwrap_or(0),
        hops_off_scope: 0,
        via: (page >= hosts).then(|| self::url(page - hosts, hosts)),
        redirect: None,
        title: Some(format!(
            "Article {page} of a generated crawl, with a title as they are"
        )),
        canonical: None,
        indexed: None,
        robots: Some(RobotsVerdict {
            verdict: "allowed".to_owned(),
            line: Some(2),
            rule: Some("Allow: /".to_owned()),
        }),
        usage: None,
        warc: Some(WarcRecordLocation {
            file: format!(
                "crawl-h0.example-20261120235959-{:05}.warc.gz",
                number / PAGES_A_FILE
            ),
            offset: number % PAGES_A_FILE * RECORD_BYTES,
        }),
        record_id: Some(format!("67e55044-10b1-426f-9247-{number:012x}")),
        withheld: None,
        echoes_secret: false,
        unwanted: None,
        declared_bytes: None,
        round,
        change: Some(if round == 1 { "new" } else { "changed" }.to_owned()),
        differs: (round > 1).then(|| "text".to_owned()),
        error: None,
        sample: None,
        label: None,
        render: None,
        url,
    }
}

fn url(page: u64, hosts: u64) -> String {
    let (host, number) = (page % hosts, page / hosts);
    let folder = number % 50;
    format!("https://h{host}.example/section-{folder}/article-{number}.html")
}

fn request_row(row: &PageRow, hosts: u64, page: u64) -> RequestRow {
    let start = row.fetched_at.as_millis();
    RequestRow {
        url: row.url.clone(),
        host: format!("h{}.example", page % hosts),
        address: Some("192.0.2.1".to_owned()),
        purpose: "page".to_owned(),
        start,
        end: start + row.ms,
        status: row.status,
        failure: None,
        gap_asked: 1000,
        why: "delay".to_owned(),
        wait_asked: None,
        after: None,
        signed: false,
        challenged: false,
        unmet_signature: None,
        method: None,
        via: None,
        robots: None,
        worker: None,
    }
}

fn excluded_row(row: &PageRow) -> ExcludedRow {
    ExcludedRow {
        url: format!("{}?print=1", row.url),
        reason: "robots".to_owned(),
        rule: Some("Disallow: /*?print".to_owned()),
        line: Some(3),
        found_as: None,
        found_on: Some(row.url.clone()),
        label: None,
        round: Some(1),
        at: None,
    }
}

/// A file of JSON lines.
struct JsonLinesFile(BufWriter<File>);

impl JsonLinesFile {
    fn create(path: &Path) -> Result<JsonLinesFile> {
        let file = File::create(path).with_context(|| format!("can't write {}", path.display()))?;
        Ok(JsonLinesFile(BufWriter::with_capacity(1 << 20, file)))
    }

    fn add(&mut self, row: &impl Serialize) -> Result<()> {
        serde_json::to_writer(&mut self.0, row)?;
        Ok(self.0.write_all(b"\n")?)
    }

    fn finish(mut self) -> Result<()> {
        Ok(self.0.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crawl_archive::rows::PageRow;

    use super::write_crawl;

    #[test]
    fn each_page_has_a_row_in_each_round() {
        let dir = tempfile::tempdir().unwrap();
        write_crawl(dir.path(), 30, 4, 2).unwrap();
        let lines = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        let rows = lines("pages.jsonl");
        let rows: Vec<PageRow> = rows
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(rows.len(), 60);
        assert_eq!(rows[7].url, rows[37].url);
        assert_ne!(rows[7].warc, rows[37].warc);
        assert_eq!(lines("requests.jsonl").lines().count(), 60);
        assert_eq!(lines("archive/captures.cdxj").lines().count(), 60);
        assert_eq!(lines("excluded.jsonl").lines().count(), 3);
    }
}
