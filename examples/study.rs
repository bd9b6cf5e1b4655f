//! A study with the library: crawls a small web on loopback to a limited depth, writes the tables,
//! and prints the number of pages by depth. `examples/research/` does the same with commands.
//!
//! `cargo run --release --example study`

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use crawl_engine::{Config, ControlChannels};
use crawl_policy::ProductToken;
use crawl_tables::{RoundSelection, TableFormat, export};
use crawl_testweb::TestWeb;
use crawl_weburl::canonicalize;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let web = TestWeb::builder().seed(1994).hosts(2).pages(10).start();
    let output = tempfile::tempdir()?;
    let seeds: Result<Vec<_>, _> = (0..web.hosts())
        .map(|host| canonicalize(None, &web.url(host, "/")))
        .collect();
    let dir = output.path().join("crawl");
    let mut config = Config::new(ProductToken::new("study")?, "0.1", None, seeds?, &dir);
    config.scope.max_depth = Some(2);
    config.politeness.delay = Duration::from_millis(50);
    crawl_engine::run(config, ControlChannels::unattended()).await?;

    // The folder must be empty, so that no table is overwritten.
    let tables = output.path().join("tables");
    std::fs::create_dir(&tables)?;
    for table in export(&dir, &tables, TableFormat::Parquet, RoundSelection::All)? {
        println!("{:>5} rows  {}.parquet", table.rows, table.name);
    }

    // Rows can also be read without tables.
    let mut by_depth = BTreeMap::<u32, u64>::new();
    for row in crawl_records::pages(&dir)? {
        *by_depth.entry(row?.depth).or_default() += 1;
    }
    println!("\ndepth  pages");
    for (depth, pages) in &by_depth {
        println!("{depth:>5}  {pages:>5}");
    }
    match by_depth == crawl_records::report(&dir)?.pages.by_depth {
        true => Ok(()),
        false => Err("the rows and the report count differently".into()),
    }
}
