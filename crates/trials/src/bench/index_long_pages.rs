//! The cost of indexing long pages: the crawler's peak memory and its running time.

use std::fs;
use std::io::{self, Write as _};
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};

use super::measured_program::{BuildProfile, WorkspaceProgram, build, peak_until_end};
use crate::torture::random::SeededRandom;
use xtask::workspace::Workspace;

/// Words per paragraph of the English pages.
const WORDS: usize = 200;
/// Number of different words of the English pages.
const VOCABULARY: u64 = 30_000;
/// Ideographs per paragraph of the Chinese pages.
const IDEOGRAPHS: usize = 2_000;
/// Number of different ideographs of the Chinese pages, from U+4E00 on.
const MAX_IDEOGRAPH: u64 = 3_000;

#[derive(Args)]
pub(crate) struct LongPagesArgs {
    /// Number of pages
    #[arg(long, value_name = "N", default_value_t = 20)]
    pages: u64,
    /// Size of each page, in millions of bytes
    #[arg(long, value_name = "N", default_value_t = 9)]
    megabytes: usize,
    /// Write the pages in English instead of Chinese
    #[arg(long)]
    english: bool,
    /// Duration of the crawl, in seconds
    #[arg(long, value_name = "N")]
    max_time: Option<u64>,
    /// Measure the program built with the dev profile, which builds faster
    #[arg(long)]
    dev: bool,
}

pub(super) fn crawl(workspace: &Workspace, args: &LongPagesArgs) -> Result<()> {
    let links: String = (0..args.pages)
        .map(|n| format!("<a href=/p{n}>page {n}</a> "))
        .collect();
    let home = HttpAnswer::html(&format!("<title>Home</title><p>{links}"));
    let mut web = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(0, "/", home);
    for n in 0..args.pages {
        let page = match args.english {
            true => page(n, args.megabytes, english),
            false => page(n, args.megabytes, chinese),
        };
        web = web.script(0, &format!("/p{n}"), HttpAnswer::html(&page));
    }
    let web = web.start();
    let program = build(
        workspace,
        BuildProfile::of(args.dev),
        WorkspaceProgram::Crawl,
    )?;
    let dir = workspace.target.join("bench-long-pages");
    let _ = fs::remove_dir_all(&dir);
    let mut command = workspace.program(program);
    command
        .args(["-q", "--index", "on", "--delay", "0s", "--own-site"])
        .args(["--max-body", "20MiB", "--seed", &web.url(0, "/")])
        .arg("--output")
        .arg(&dir)
        .stdin(Stdio::null());
    let limit = args.max_time.map(|seconds| format!("{seconds}s"));
    if let Some(limit) = &limit {
        command.args(["--max-time", limit]);
    }
    let started = Instant::now();
    let peak = peak_until_end(command.spawn().context("can't start the crawler")?)?;
    let took = started.elapsed();
    let rows = fs::read_to_string(dir.join("pages.jsonl"))?;
    ensure!(rows.lines().count() > 1, "no page was fetched");
    fs::remove_dir_all(&dir)?;
    let table = format!(
        "| pages | language | of | --max-time | fetched | peak of memory | the crawl took |\n\
         |---|---|---|---|---|---|---|\n| {} | {} | {} MB | {} | {} | {} MiB | {:.1} s |\n",
        args.pages,
        if args.english { "English" } else { "Chinese" },
        args.megabytes,
        limit.as_deref().unwrap_or("none"),
        rows.lines().count() - 1,
        peak >> 10,
        took.as_secs_f64(),
    );
    Ok(io::stdout().write_all(table.as_bytes())?)
}

/// Generates a page of this many million bytes. The same number always gives the same page.
fn page(number: u64, megabytes: usize, paragraph: fn(&mut SeededRandom, &mut String)) -> String {
    let mut dice = SeededRandom::of(number);
    let mut page = format!("<!doctype html><meta charset=utf-8><title>Page {number}</title><main>");
    while page.len() < megabytes * 1_000_000 {
        page.push_str("<p>");
        paragraph(&mut dice, &mut page);
    }
    page
}

fn chinese(dice: &mut SeededRandom, page: &mut String) {
    for _ in 0..IDEOGRAPHS {
        let ideograph = 0x4E00 + u32::try_from(dice.below(MAX_IDEOGRAPH)).unwrap_or(0);
        page.extend(char::from_u32(ideograph));
    }
    page.push('。');
}

fn english(dice: &mut SeededRandom, page: &mut String) {
    for _ in 0..WORDS {
        // The draw is seeded, so that a number always yields the same word.
        let mut word = SeededRandom::of(dice.below(VOCABULARY));
        for _ in 0..2 + word.below(9) {
            page.push(char::from(b"etaoinsrhldcumfpgwyb"[word.below(20) as usize]));
        }
        page.push(' ');
    }
}

#[cfg(test)]
mod tests {
    use super::{chinese, english, page};

    #[test]
    fn pages_have_the_requested_length_and_differ() {
        for paragraph in [chinese, english] {
            let (first, second) = (page(0, 1, paragraph), page(1, 1, paragraph));
            assert!((1_000_000..1_010_000).contains(&first.len()));
            assert_ne!(first.as_bytes()[100..], second.as_bytes()[100..]);
            assert_eq!(first, page(0, 1, paragraph));
        }
    }
}
