//! A first crawl without a network: serves a small web on loopback, crawls it, and prints
//! what was fetched, what was barred, and why.
//!
//! `cargo run --release --example first_crawl`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use crawl_archive::rows::{ExcludedRow, PageRow};
use crawl_engine::{
    Budgets, Config, Controls, Forbidden, Progress, Resources, Revisits, ScopeRules, Stop, Summary,
    TrapRules,
};
use crawl_fetcher::FetchConfig;
use crawl_fetcher::robots::RobotsTimes;
use crawl_policy::scope::ScopeMode;
use crawl_policy::{ProductToken, Profile};
use crawl_scheduler::Politeness;
use crawl_testweb::TestWeb;
use crawl_weburl::canonicalize;
use tokio::sync::watch;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let web = TestWeb::builder().seed(1994).hosts(2).pages(10).start();
    let output = tempfile::tempdir()?;
    let summary = crawl(&web.url(0, "/"), &output.path().join("crawl")).await?;

    println!("fetched:");
    for row in crawl_records::pages(&summary.output)? {
        let PageRow {
            url,
            status,
            title,
            robots,
            ..
        } = row?;
        let title = title.unwrap_or_default();
        let rule = robots
            .and_then(|robots| robots.rule)
            .unwrap_or_else(|| "no rule".to_owned());
        println!(
            "  {} {url} \"{title}\" ({rule})",
            status.unwrap_or_default()
        );
    }
    println!("\nbarred:");
    for row in crawl_records::excluded(&summary.output)? {
        let ExcludedRow {
            url,
            reason,
            rule,
            line,
            ..
        } = row?;
        let line = line
            .map(|line| format!(", line {line}"))
            .unwrap_or_default();
        println!("  {url}: {reason} ({}{line})", rule.unwrap_or_default());
    }
    println!(
        "\n{} pages by {} requests in {:.1} s; the server saw {} requests.",
        summary.pages,
        summary.requests,
        summary.elapsed.as_secs_f64(),
        web.log().len()
    );
    Ok(())
}

async fn crawl(seed: &str, output: &Path) -> Result<Summary, Box<dyn Error>> {
    let seed = canonicalize(None, seed)?;
    let user_agent = crawl_fetcher::user_agent("first-crawl", "0.1", None);
    let config = Config {
        output: output.to_owned(),
        agent: ProductToken::new("first-crawl")?,
        user_agent: user_agent.clone(),
        contact: None,
        profile: Profile::Rfc9309,
        robots_times: RobotsTimes::default(),
        robots_forbidden: Forbidden::Allow,
        purpose: None,
        scope: ScopeRules {
            mode: ScopeMode::Host,
            include: Vec::new(),
            exclude: Vec::new(),
            max_depth: None,
        },
        budgets: Budgets::default(),
        recrawl: false,
        revisits: Revisits::default(),
        traps: TrapRules::default(),
        max_redirects: 10,
        retries: 3,
        sitemaps: true,
        feeds: true,
        forms: false,
        resources: Resources::Off,
        max_sitemap_urls: Some(250_000),
        // Our own server on our own machine: a twentieth of a second will do.
        politeness: Politeness {
            delay: Duration::from_millis(50),
            ..Politeness::default()
        },
        own_site: true,
        hosts_in_memory: 1_000,
        host_locks: None,
        wait_unreachable: Duration::from_secs(1),
        fetch: FetchConfig {
            typed: vec![seed.clone()],
            ..FetchConfig::new(user_agent)
        },
        commit_within: Duration::from_secs(1),
        warc: true,
        links: false,
        index: false,
        software: "first-crawl/0.1".to_owned(),
        config_text: "# set in examples/first_crawl.rs\n".to_owned(),
        seeds: vec![seed],
    };
    // Nobody stops this crawl, nobody watches or steers it.
    let (_stop, stopped) = watch::channel(Stop::No);
    let (progress, _watched) = watch::channel(Progress::default());
    Ok(crawl_engine::run(
        config,
        Controls {
            stop: stopped,
            progress,
            commands: crawl_engine::commands().1,
        },
    )
    .await?)
}
