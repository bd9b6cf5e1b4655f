//! The cost of rendering pages: a crawl, compared with a plain Playwright loop over the same pages.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};

use super::measured_program::{BuildProfile, WorkspaceProgram, build};
use xtask::browser_tests;
use xtask::workspace::Workspace;

#[derive(Args)]
pub(crate) struct RenderArgs {
    /// Number of pages
    #[arg(long, value_name = "N", default_value_t = 200)]
    pages: usize,
    /// Number of pages at a time; also measured with one
    #[arg(long, value_name = "N", default_value_t = 4)]
    tabs: u64,
    /// Measure the program built with the dev profile, which builds faster
    #[arg(long)]
    dev: bool,
}

/// Interval between readings of the processes.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Clock ticks per second in `/proc/PID/stat`. Linux uses 100 everywhere.
const TICKS_A_SECOND: f64 = 100.0;

const PLAYWRIGHT: &str = include_str!("playwright.py");

const SHELL: &str = "<!doctype html><div id=root></div><script src=/app.js></script>";

const APP: &str = "(async () => {
  const article = await (await fetch('/api' + location.pathname)).json();
  document.title = article.title;
  document.getElementById('root').innerHTML = article.text.map((text) => `<p>${text}</p>`).join('');
})();";

#[derive(Clone, Copy, Debug)]
struct RunCost {
    wall: f64,
    /// Processor seconds of all processes.
    cpu: f64,
    /// Peak memory of all processes in MiB. Mapped files don't count, because the processes of a
    /// browser share them.
    peak: f64,
}

pub(super) fn measure(workspace: &Workspace, args: &RenderArgs) -> Result<()> {
    let web = site(args.pages);
    let urls: Vec<String> = (0..args.pages)
        .map(|page| web.url(0, &format!("/{page}")))
        .collect();
    let program = build(
        workspace,
        BuildProfile::of(args.dev),
        WorkspaceProgram::Crawl,
    )?;
    let variables: BTreeMap<_, _> = browser_tests::environment(workspace)?.into_iter().collect();
    let variable = |name: &str| variables.get(name).with_context(|| format!("no {name}"));
    let chromium = variable("CRAWL_CHROMIUM")?;
    let folder = workspace.target.join("bench-render");
    let mut table =
        "| program | pages at a time | pages a second | CPU of a page | peak of memory |\n\
                     |---|---|---|---|---|\n"
            .to_owned();
    let mut costs = Vec::new();
    for tabs in [1, args.tabs] {
        let _ = fs::remove_dir_all(&folder);
        let mut crawl = workspace.program(&program);
        crawl
            .args(["-q", "--delay", "0s", "--sitemaps", "off", "--render", "on"])
            .args(["--browser-sandbox", "off", "--seed", &web.url(0, "/")])
            .args(["--render-tabs", &tabs.to_string(), "--output"])
            .arg(&folder);
        let mut playwright = workspace.program(workspace.python_bin().join("python"));
        playwright.args(["-c", PLAYWRIGHT]).arg(chromium);
        playwright.arg(tabs.to_string()).args(&urls);
        for (name, command) in [("crawl", &mut crawl), ("Playwright", &mut playwright)] {
            command
                .env("CRAWL_BROWSER", chromium)
                .env("LD_LIBRARY_PATH", variable("CRAWL_CHROMIUM_LIBRARIES")?)
                .env("FONTCONFIG_FILE", variable("CRAWL_CHROMIUM_FONTS")?);
            let cost = cost_of(command)?;
            costs.push(cost);
            writeln!(table, "| {name} | {tabs} | {}", cells(cost, args.pages))?;
        }
        check(&fs::read_to_string(folder.join("pages.jsonl"))?, args.pages)?;
    }
    fs::remove_dir_all(&folder)?;
    if let [ours, theirs, our_tabs, their_tabs] = costs[..] {
        for (tabs, ours, theirs) in [(1, ours, theirs), (args.tabs, our_tabs, their_tabs)] {
            writeln!(table, "| ratio | {tabs} | {}", ratios(ours, theirs))?;
        }
        let more = args.tabs.saturating_sub(1).max(1) as f64;
        let a_tab = |one: RunCost, many: RunCost| (many.peak - one.peak) / more;
        let (our, their) = (a_tab(ours, our_tabs), a_tab(theirs, their_tabs));
        writeln!(
            table,
            "\nEach further page at a time: {our:.0} MiB; Playwright: {their:.0} MiB"
        )?;
    }
    Ok(io::stdout().write_all(table.as_bytes())?)
}

/// Serves pages that a script fills with text from JSON, and a page that links to them.
fn site(pages: usize) -> TestWeb {
    let kind = |kind: &str, body: &str| {
        HttpAnswer::of(200)
            .header("content-type", kind)
            .body(body.to_owned())
    };
    let links: String = (0..pages)
        .map(|page| format!("<a href=/{page}>{page}</a> "))
        .collect();
    let mut web = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(0, "/", HttpAnswer::html(&format!("<p>about{links}")))
        .script(0, "/app.js", kind("text/javascript", APP));
    for page in 0..pages {
        let text = vec![format!("All about page {page} and its tea. ").repeat(10); 20];
        let article = serde_json::json!({"title": format!("Page {page}"), "text": text});
        web = web
            .script(0, &format!("/{page}"), HttpAnswer::html(SHELL))
            .script(
                0,
                &format!("/api/{page}"),
                kind("application/json", &article.to_string()),
            );
    }
    web.start()
}

/// Checks that a crawl rendered all pages.
fn check(rows: &str, pages: usize) -> Result<()> {
    let titles = rows.matches("\"title\":\"Page ").count();
    ensure!(titles == pages, "{titles} of {pages} pages were rendered");
    Ok(())
}

fn cells(cost: RunCost, pages: usize) -> String {
    let pages = pages as f64;
    format!(
        "{:.1} | {:.0} ms | {:.0} MiB |",
        pages / cost.wall,
        cost.cpu * 1000.0 / pages,
        cost.peak
    )
}

fn ratios(ours: RunCost, theirs: RunCost) -> String {
    format!(
        "{:.2} | {:.2} | {:.2} |",
        theirs.wall / ours.wall,
        ours.cpu / theirs.cpu,
        ours.peak / theirs.peak
    )
}

/// Runs a program, and returns the cost of its process and of all descendants.
fn cost_of(command: &mut Command) -> Result<RunCost> {
    let begin = Instant::now();
    let mut child = command.stdin(Stdio::null()).spawn()?;
    // Keep the last reading of each process, because a process that has ended can't be read.
    let mut cpu = BTreeMap::new();
    let mut peak = 0;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        peak = look(&child, &mut cpu).max(peak);
        std::thread::sleep(LOOK_INTERVAL);
    };
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(RunCost {
        wall: begin.elapsed().as_secs_f64(),
        cpu: cpu.values().sum::<u64>() as f64 / TICKS_A_SECOND,
        peak: peak as f64 / 1024.0,
    })
}

/// Updates `cpu` with the processor time of a process and of its descendants, by process id.
/// Returns the memory of these processes in KiB.
fn look(child: &Child, cpu: &mut BTreeMap<u32, u64>) -> u64 {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let stats: BTreeMap<u32, ProcessStat> = ids
        .filter_map(|id| {
            let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            Some((id, ProcessStat::parse(&text)?))
        })
        .collect();
    let mut found = BTreeSet::from([child.id()]);
    // A child may have a lower process id than its parent, because ids start over at some point. So
    // repeat until no further descendants are found.
    loop {
        let children = stats
            .iter()
            .filter(|(_, stat)| found.contains(&stat.parent));
        let grown: BTreeSet<u32> = children.map(|(id, _)| *id).chain(found.clone()).collect();
        if grown.len() == found.len() {
            break;
        }
        found = grown;
    }
    let mut memory = 0;
    for id in found {
        if let Some(stat) = stats.get(&id) {
            cpu.insert(id, stat.ticks);
        }
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        memory += resident_kib(&status);
    }
    memory
}

#[derive(Debug, PartialEq, Eq)]
struct ProcessStat {
    parent: u32,
    /// Processor time in user and kernel mode, in clock ticks.
    ticks: u64,
}

impl ProcessStat {
    /// Parses `/proc/PID/stat`. The name is in parentheses and can contain any character.
    fn parse(stat: &str) -> Option<ProcessStat> {
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(ProcessStat {
            parent: fields.get(1)?.parse().ok()?,
            ticks: ticks(11)? + ticks(12)?,
        })
    }
}

/// Returns the memory of a process without mapped files, because all processes of a browser share
/// these.
fn resident_kib(status: &str) -> u64 {
    let kibibytes = status.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_counted = matches!(name, "RssAnon" | "RssShmem");
        let number = value.trim().strip_suffix(" kB")?;
        is_counted.then(|| number.trim().parse::<u64>().ok())?
    });
    kibibytes.sum()
}

#[cfg(test)]
mod tests {
    use super::{ProcessStat, check, resident_kib};

    #[test]
    fn processes_are_read() {
        let stat = "12 (a) b) S 7 12 12 0 -1 4194304 1 2 3 4 50 60 0 0 20 0 1";
        assert_eq!(
            ProcessStat::parse(stat),
            Some(ProcessStat {
                parent: 7,
                ticks: 110
            })
        );
        assert_eq!(ProcessStat::parse("12 (a) S 7"), None);
        let status = "VmRSS:\t 900 kB\nRssAnon:\t   3 kB\nRssFile:\t 800 kB\nRssShmem:\t 4 kB\n";
        assert_eq!(resident_kib(status), 7);
    }

    #[test]
    fn pages_that_were_not_rendered_are_noticed() {
        let rows = "{\"title\":\"Page 0\"}\n{\"title\":null}\n";
        assert!(check(rows, 1).is_ok());
        assert!(check(rows, 2).is_err());
    }
}
