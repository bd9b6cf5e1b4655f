//! How fast fields are extracted again from an archive, compared with Scrapy's HTTP cache.
//!
//! Both programs crawl the same generated pages once. After the server has ended, each program
//! extracts the same fields from the pages that it stored.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use serde_json::Value;
use xtask::pinned_tools;
use xtask::workspace::{Workspace, run};

use super::crawl::{GeneratedWeb, WebPlan};
use super::measured_program::{BuildProfile, ProcessCost, WorkspaceProgram, build, cost_until_end};

/// Maximum time for an extraction. A slower extraction is killed.
const MAX_TIME: Duration = Duration::from_mins(20);

const RULES: &str = r#"
[[extract]]
name = "items"
[extract.fields]
title = "title"
number = { select = "title", regex = 'Page (\d+)', type = "number" }
first = "main > p"
paragraphs = { select = "main p", all = true }
links = { select = "main a.reference", attr = "href", type = "url", all = true }
menu = { select = "ul.menu > li", all = true, fields = { name = "a", url = { select = "a", attr = "href", type = "url" } } }
"#;

/// Crawls as `CrawlSpider` does, and writes the fields of each page to a file of JSON lines.
const SCRAPY_SCRIPT: &str = r#"
import re
import sys
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

start, folder, items = sys.argv[1:]

def text(node):
    return " ".join("".join(node.css("::text").getall()).split())

class Pages(CrawlSpider):
    name = "pages"
    start_urls = [start]
    rules = [Rule(LinkExtractor(), callback="fields", follow=True)]
    custom_settings = {
        "ROBOTSTXT_OBEY": True, "CONCURRENT_REQUESTS": 32, "CONCURRENT_REQUESTS_PER_DOMAIN": 32,
        "DOWNLOAD_DELAY": 0, "LOG_ENABLED": False, "TELNETCONSOLE_ENABLED": False,
        "AUTOTHROTTLE_ENABLED": False, "DEPTH_LIMIT": 0,
        "HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": folder,
        "FEEDS": {items: {"format": "jsonlines", "overwrite": True}},
    }

    def parse_start_url(self, response):
        return self.fields(response)

    def fields(self, response):
        paragraphs = [text(p) for p in response.css("main p")]
        yield {
            "url": response.url,
            "title": text(response.css("title")),
            "number": int(re.search(r"Page (\d+)", response.css("title::text").get())[1]),
            "first": text(response.css("main > p")[0]),
            "paragraphs": paragraphs,
            "links": [response.urljoin(a) for a in response.css("main a.reference::attr(href)").getall()],
            "menu": [{"name": text(item.css("a")), "url": response.urljoin(item.css("a::attr(href)").get())}
                     for item in response.css("ul.menu > li")],
        }

process = CrawlerProcess({"LOG_ENABLED": False})
process.crawl(Pages)
process.start()
"#;

#[derive(Args)]
pub(crate) struct ExtractArgs {
    /// Number of pages to extract fields from
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pages: u32,
    /// Runs of each; the median time counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: usize,
    /// Measure the program built with the dev profile, which builds faster
    #[arg(long)]
    dev: bool,
}

pub(super) fn measure(workspace: &Workspace, args: &ExtractArgs) -> Result<()> {
    let program = build(
        workspace,
        BuildProfile::of(args.dev),
        WorkspaceProgram::Crawl,
    )?;
    let python = pinned_tools::scrapy(workspace)?.join("bin/python");
    let folder = workspace.target.join("bench-extract");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let bench = FieldExtractionBench {
        workspace,
        program,
        python,
        folder,
    };
    fs::write(bench.rules(), RULES)?;
    let web = GeneratedWeb::start(WebPlan {
        hosts: 1,
        pages_a_host: args.pages,
        latency: Duration::ZERO,
    })?;
    let seed = web.seeds().concat();
    run(&mut bench.crawl(&seed))?;
    run(&mut bench.scrapy(&seed))?;
    drop(web);
    // Alternate both programs, so that a change in the machine's load affects both.
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..args.runs.max(1) {
        ours.push(cost(&mut bench.extract())?);
        theirs.push(cost(&mut bench.scrapy(&seed))?);
    }
    let fields = fields_of(&bench.dir().join("extracts.jsonl"), "fields")?;
    ensure!(
        fields.len() == args.pages as usize && fields == fields_of(&bench.items(), "")?,
        "the programs found different fields: see {}",
        bench.folder.display()
    );
    let table = table(args.pages, median(ours), median(theirs));
    io::stdout().write_all(table.as_bytes())?;
    Ok(fs::remove_dir_all(&bench.folder)?)
}

struct FieldExtractionBench<'a> {
    workspace: &'a Workspace,
    /// The crawler's program.
    program: PathBuf,
    /// Scrapy's Python.
    python: PathBuf,
    folder: PathBuf,
}

impl FieldExtractionBench<'_> {
    fn rules(&self) -> PathBuf {
        self.folder.join("rules.toml")
    }

    /// Returns the directory of our crawl.
    fn dir(&self) -> PathBuf {
        self.folder.join("crawl")
    }

    /// Returns the path of the file to which Scrapy writes the fields.
    fn items(&self) -> PathBuf {
        self.folder.join("items.jsonl")
    }

    fn crawl(&self, seed: &str) -> Command {
        let mut command = self.workspace.program(&self.program);
        command
            .args(["-q", "--seed", seed, "--output"])
            .arg(self.dir());
        command.args(["--own-site", "--sitemaps", "off"]);
        command.args(["--delay", "0s", "--delay-factor", "0", "--per-host", "32"]);
        command
    }

    fn extract(&self) -> Command {
        let mut command = self.workspace.program(&self.program);
        command
            .arg("extract")
            .arg(self.dir())
            .arg("--config")
            .arg(self.rules());
        command.stdout(Stdio::null());
        command
    }

    fn scrapy(&self, seed: &str) -> Command {
        let mut command = self.workspace.program(&self.python);
        command.args(["-c", SCRAPY_SCRIPT, seed]);
        command.arg(self.folder.join("cache")).arg(self.items());
        command
    }
}

fn cost(command: &mut Command) -> Result<ProcessCost> {
    let (cost, is_ended) = cost_until_end(command, MAX_TIME)?;
    ensure!(!is_ended, "{command:?} took longer than {MAX_TIME:?}");
    Ok(cost)
}

fn median(mut runs: Vec<ProcessCost>) -> ProcessCost {
    runs.sort_by_key(|run| run.wall);
    runs.swap_remove(runs.len() / 2)
}

/// Reads the fields of each page from a file of JSON lines. In each line, the fields are in the
/// member `inner` or, without such a member, in the line itself.
fn fields_of(file: &Path, inner: &str) -> Result<BTreeMap<String, Value>> {
    let text =
        fs::read_to_string(file).with_context(|| format!("can't read {}", file.display()))?;
    let rows = text.lines().map(|line| {
        let mut row: BTreeMap<String, Value> = serde_json::from_str(line)?;
        let url = row.remove("url").context("a row has no URL")?;
        let fields = match row.remove(inner) {
            Some(fields) => fields,
            None => Value::Object(row.into_iter().collect()),
        };
        Ok((url.to_string(), fields))
    });
    rows.collect()
}

fn table(pages: u32, ours: ProcessCost, theirs: ProcessCost) -> String {
    let mut text = format!(
        "{pages} pages\n\n\
         | program | time | pages/s | relative to Scrapy | CPU a page | peak of memory |\n\
         |---|---|---|---|---|---|\n"
    );
    for (name, cost) in [("crawl extract", ours), ("Scrapy, from its cache", theirs)] {
        text += &format!(
            "| {name} | {:.2} s | {:.0} | {:.1} | {:.2} ms | {} MiB |\n",
            cost.wall.as_secs_f64(),
            f64::from(pages) / cost.wall.as_secs_f64(),
            theirs.wall.as_secs_f64() / cost.wall.as_secs_f64(),
            cost.cpu.as_secs_f64() * 1e3 / f64::from(pages),
            cost.peak_kib >> 10,
        );
    }
    text
}
