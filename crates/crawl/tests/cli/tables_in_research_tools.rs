//! Tables of a crawl and its link graph, read by common research tools.

use std::path::{Path, PathBuf};
use std::process::Command;

use crawl_testweb::{HttpAnswer, TestWeb};

use crate::harness::{Ran, setup};

/// The name of the crawl that Common Crawl's own example queries select.
const CRAWL: &str = "CC-MAIN-2018-05";

/// `CRAWL_PYTHON_BIN` is the folder of programs of a Python environment with DuckDB, pyarrow,
/// polars and networkx (pure Python, 2.1 MB to fetch).
#[test]
#[ignore = "needs DuckDB, pyarrow, polars and networkx: cargo xtask test sets them up"]
fn duckdb_pyarrow_polars_and_networkx_agree_with_report_and_rows() {
    let (dir, cmd) = setup("tables");
    let odd = "<title>a, &quot;b&quot;\n=1+1 é</title><a href=/barred>no</a><a href=/gone>-x</a>";
    let web = TestWeb::builder()
        .seed(16)
        .hosts(3)
        .pages(40)
        .domain("web.example.org")
        .robots(0, "User-agent: *\nDisallow: /barred\n")
        .script(0, "/", HttpAnswer::html(odd))
        .script(0, "/gone", HttpAnswer::of(404))
        .start();
    let mut args = vec!["--output", CRAWL, "--links", "on", "--progress", "off"];
    args.extend(["--delay", "0s", "--delay-factor", "0"]);
    let seeds: Vec<String> = (0..web.hosts()).map(|host| web.url(host, "/")).collect();
    let resolve = web.resolve();
    args.extend(seeds.iter().flat_map(|seed| ["--seed", seed]));
    args.extend(resolve.iter().flat_map(|one| ["--resolve", one]));
    let crawled = cmd.run(&args);
    assert_eq!(crawled.code, 0, "{}", crawled.stderr);
    for format in ["parquet", "csv", "graph"] {
        let exported = cmd.run(&["export", CRAWL, "--to", format, "--out", format]);
        assert_eq!(exported.code, 0, "{}", exported.stderr);
    }
    let python = PathBuf::from(std::env::var_os("CRAWL_PYTHON_BIN").unwrap()).join("python");
    let mut read = Command::new(python);
    read.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables.py"))
        .arg(dir.file(&format!("{CRAWL}/report.json")))
        .args(["parquet", "csv", "graph"].map(|folder| dir.file(folder)));
    let read = Ran::of_command(&mut read);
    assert_eq!(read.code, 0, "{}", read.stderr);
    // Every table has rows, so the comparisons were not of empty tables.
    let tables: Vec<_> = read
        .stdout
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    assert_eq!(tables.len(), 8, "{}", read.stdout);
    assert!(
        tables.iter().all(|(_, rows)| *rows != "0"),
        "{}",
        read.stdout
    );
}
