//! A minimal crawl with the library, without a network: serves a small web on loopback, crawls it,
//! and prints the fetched pages and the excluded URLs with the reasons.
//!
//! `cargo run --release --example first_crawl`

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;
use std::time::Duration;

use crawl_engine::{Config, ControlChannels};
use crawl_policy::ProductToken;
use crawl_testweb::TestWeb;
use crawl_weburl::canonicalize;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Two hosts on loopback, each with a robots.txt and ten random pages.
    let web = TestWeb::builder().seed(1994).hosts(2).pages(10).start();
    let output = tempfile::tempdir()?;

    // The arguments are the crawler's name and version, a contact, the seeds and the crawl
    // directory. On the public web, give a contact instead of `None`.
    let mut config = Config::new(
        ProductToken::new("first-crawl")?,
        "0.1",
        None,
        vec![canonicalize(None, &web.url(0, "/"))?],
        output.path().join("crawl"),
    );
    // A short delay is fine, because the server is our own.
    config.politeness.delay = Duration::from_millis(50);

    // Run until all URLs are done. If the process is killed, the same call with the same directory
    // resumes the crawl.
    let summary = crawl_engine::run(config, ControlChannels::unattended()).await?;

    println!("fetched:");
    for row in crawl_records::pages(&summary.output)? {
        let row = row?;
        let status = row.status.unwrap_or_default();
        let title = row.title.unwrap_or_default();
        let rule = row.robots.and_then(|robots| robots.rule);
        let rule = rule.as_deref().unwrap_or("no rule");
        println!("  {status} {} \"{title}\" ({rule})", row.url);
    }
    println!("\nexcluded:");
    for row in crawl_records::excluded(&summary.output)? {
        let row = row?;
        let rule = row.rule.unwrap_or_default();
        let line = row.line.map(|line| format!(", line {line}"));
        let line = line.unwrap_or_default();
        println!("  {}: {} ({rule}{line})", row.url, row.reason);
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
