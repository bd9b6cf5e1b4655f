//! The cost of many hostile servers at once: the crawler's peak memory, and its time.

use std::fs;
use std::io::{self, Write as _};
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use crawl_testweb::{HttpAnswer, Misbehaviour, TestWeb, misbehaviours};

use super::measured_program::{BuildProfile, WorkspaceProgram, build, peak_until_end};
use xtask::workspace::Workspace;

#[derive(Args)]
pub(crate) struct HostileArgs {
    /// Number of hosts, each at its own address
    #[arg(long, value_name = "N", default_value_t = 256)]
    hosts: u32,
    /// Use only servers of this kind [default: the kinds that cost most, in turn]
    #[arg(long, value_name = "NAME")]
    kind: Option<String>,
    /// Use one host whose sitemaps list 1,500,000 URLs instead
    #[arg(long, conflicts_with_all = ["hosts", "kind"])]
    sitemaps: bool,
    /// Timeout of a whole exchange, in seconds
    #[arg(long, value_name = "N", default_value_t = 20)]
    timeout: u64,
    /// Measure the program built with the dev profile, which builds faster
    #[arg(long)]
    dev: bool,
}

/// Number of sitemaps in an index.
const SITEMAPS: u32 = 30;
/// Number of URLs in each sitemap.
const SITEMAP_URLS: u32 = 50_000;

/// Kinds of misbehaviour that cost the crawler memory: endless bodies, bombs, drips, silence.
const COSTLY: [&str; 16] = [
    "a body without end",
    "chunks without end",
    "gzip that unpacks a thousandfold",
    "brotli that unpacks a thousandfold",
    "zstd that unpacks a thousandfold",
    "gzip within gzip that unpacks a millionfold",
    "header lines without end",
    "a header line without end",
    "a head one line at a time, without end",
    "a body one byte at a time",
    "a chunk extension without end",
    "trailers without end",
    "100 Continue without end",
    "sends nothing",
    "half a body, then nothing",
    "a length of 10 GB, two bytes, then nothing",
];

pub(super) fn crawl(workspace: &Workspace, args: &HostileArgs) -> Result<()> {
    let (web, kinds, options) = match args.sitemaps {
        true => (sitemap_bomb(), 1, ["--max-pages", "9"]),
        false => {
            let kinds = wanted(args)?;
            (
                hostile(args.hosts, &kinds),
                kinds.len(),
                ["--sitemaps", "off"],
            )
        }
    };
    let program = build(
        workspace,
        BuildProfile::of(args.dev),
        WorkspaceProgram::Crawl,
    )?;
    let dir = workspace.target.join("bench-hostile");
    let config = workspace.target.join("bench-hostile.toml");
    let _ = fs::remove_dir_all(&dir);
    let seeds: Vec<_> = (0..web.hosts()).map(|host| web.url(host, "/")).collect();
    fs::write(&config, format!("seed = [\"{}\"]\n", seeds.join("\", \"")))?;
    let started = Instant::now();
    let child = workspace
        .program(program)
        .arg("--config")
        .arg(&config)
        .args(options)
        .args(["-q", "--retries", "0", "--delay", "0s"])
        .args(["--timeout", &format!("{}s", args.timeout)])
        .arg("--output")
        .arg(&dir)
        .stdin(Stdio::null())
        .spawn()
        .context("can't start the crawler")?;
    let peak = peak_until_end(child)?;
    let took = started.elapsed();
    let held = longest_ms(&fs::read_to_string(dir.join("requests.jsonl"))?);
    fs::remove_dir_all(&dir)?;
    fs::remove_file(&config)?;
    let table = format!(
        "| hosts | kinds | peak of memory | longest request | the crawl took |\n\
         |---|---|---|---|---|\n| {} | {} | {} MiB | {:.1} s | {:.1} s |\n",
        web.hosts(),
        kinds,
        peak >> 10,
        held as f64 / 1000.0,
        took.as_secs_f64(),
    );
    Ok(io::stdout().write_all(table.as_bytes())?)
}

fn hostile(hosts: u32, kinds: &[Misbehaviour]) -> TestWeb {
    let web = TestWeb::builder().hosts(hosts).sitemap(false).start();
    for (host, kind) in (0..hosts).zip(kinds.iter().cycle()) {
        web.script(host, "/robots.txt", HttpAnswer::of(404));
        web.script(host, "/", kind.reply.clone());
    }
    web
}

/// Starts a web with an index of compressed sitemaps.
fn sitemap_bomb() -> TestWeb {
    let web = TestWeb::builder().pages(1).sitemap(false).start();
    let xml = |text: String| {
        HttpAnswer::of(200)
            .header("content-type", "text/xml")
            .body(text)
    };
    let names = (0..SITEMAPS).map(|n| format!("<sitemap><loc>/map{n}.xml</loc></sitemap>"));
    let index = format!("<sitemapindex>{}</sitemapindex>", names.collect::<String>());
    web.script(0, "/sitemap.xml", xml(index));
    for n in 0..SITEMAPS {
        let pages = (0..SITEMAP_URLS).map(|p| format!("<url><loc>/s{n}/page-{p}</loc></url>"));
        let pages = format!("<urlset>{}</urlset>", pages.collect::<String>());
        web.script(0, &format!("/map{n}.xml"), xml(pages).gzip());
    }
    web
}

fn wanted(args: &HostileArgs) -> Result<Vec<Misbehaviour>> {
    let mut kinds = misbehaviours();
    kinds.retain(|kind| match &args.kind {
        Some(name) => kind.name == name,
        None => COSTLY.contains(&kind.name),
    });
    match kinds.is_empty() {
        true => bail!("there is no such kind; docs/misbehaviour.md names them"),
        false => Ok(kinds),
    }
}

fn longest_ms(rows: &str) -> u64 {
    let took = |row: &str| {
        let row: serde_json::Value = serde_json::from_str(row).ok()?;
        row["end"].as_u64()?.checked_sub(row["start"].as_u64()?)
    };
    rows.lines().filter_map(took).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{COSTLY, longest_ms, misbehaviours};

    #[test]
    fn each_costly_kind_exists() {
        let names: Vec<_> = misbehaviours().iter().map(|kind| kind.name).collect();
        for kind in COSTLY {
            assert!(names.contains(&kind), "{kind}");
        }
    }

    #[test]
    fn records_are_parsed() {
        let rows = "{\"start\":10,\"end\":15}\n{\"start\":10,\"end\":40}\n{}\n";
        assert_eq!(longest_ms(rows), 30);
    }
}
