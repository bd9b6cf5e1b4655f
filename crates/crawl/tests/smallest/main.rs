//! Tests of the program built without any feature: a whole crawl, and the errors of commands that
//! this build lacks.
//!
//! Run it with `cargo test --package crawl --no-default-features --test smallest`.
#![cfg(not(any(
    feature = "conformance",
    feature = "documents",
    feature = "exports",
    feature = "extract",
    feature = "fast-codecs",
    feature = "http2",
    feature = "jemalloc",
    feature = "logins",
    feature = "mcp",
    feature = "render",
    feature = "search",
    feature = "shared-frontier",
    feature = "shell",
    feature = "tables",
    feature = "zstd"
)))]
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::path::Path;
use std::process::{Command, Output};

use crawl_testweb::TestWeb;
use tempfile::TempDir;

fn run(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawl"));
    command.current_dir(dir).env("HOME", dir).args(args);
    command.output().unwrap()
}

fn printed(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_site_is_crawled_archived_and_audited() {
    let dir = TempDir::new().unwrap();
    let web = TestWeb::builder().hosts(1).start();
    let seed = web.url(0, "/");
    let args = [
        &*seed,
        "--output",
        "c",
        "--delay",
        "0s",
        "--delay-factor",
        "0",
    ];
    printed(&run(dir.path(), &args));
    let report = printed(&run(dir.path(), &["report", "c", "--json"]));
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert!(report["pages"]["total"].as_u64().unwrap() > 1, "{report}");
    printed(&run(dir.path(), &["audit", "c"]));
    assert!(printed(&run(dir.path(), &["explain", "c", &seed])).contains(&seed));
    assert!(dir.path().join("c/archive/index.cdxj").is_file());
}

#[test]
fn commands_left_out_name_the_build_that_has_them() {
    let dir = TempDir::new().unwrap();
    let version = printed(&run(dir.path(), &["--version"]));
    assert!(
        version.ends_with(
            "features: -conformance -documents -exports -extract -fast-codecs -http2 -jemalloc \
             -logins -mcp -render -search -shared-frontier -shell -tables -zstd\n"
        ),
        "{version}"
    );
    let keeps = "[site.\"127.0.0.1\"]\ncookies = \"keep\"\n";
    std::fs::write(dir.path().join("cookies.toml"), keeps).unwrap();
    let shared = "postgres://me@127.0.0.1/c";
    let cases: [(&[&str], &str); 19] = [
        (&["index", "c"], "search"),
        (&["search", "c", "tea"], "search"),
        (&["serve", "c"], "search"),
        (&["export", "c", "--to", "markdown", "--out", "m"], "search"),
        (&["export", "c", "--to", "parquet", "--out", "t"], "tables"),
        (
            &["export", "c", "--to", "wacz", "--out", "c.wacz"],
            "exports",
        ),
        (&["export", "c", "--to", "mirror", "--out", "m"], "exports"),
        (&["conformance", "--", "true"], "conformance"),
        (&["verify", "c"], "tables"),
        (&["mcp", "c"], "mcp"),
        (&["completions", "bash"], "shell"),
        (&["man"], "shell"),
        (&["gather", "a", "b", "--output", "c"], "shared-frontier"),
        (&["report", "a", "b"], "shared-frontier"),
        (
            &["http://127.0.0.1:9/", "--cookies", "cookies.txt"],
            "logins",
        ),
        (
            &["http://127.0.0.1:9/", "--config", "cookies.toml"],
            "logins",
        ),
        (&["http://127.0.0.1:9/", "--index", "on"], "search"),
        (
            &["http://127.0.0.1:9/", "--metrics", "127.0.0.1:0"],
            "search",
        ),
        (
            &[
                "http://127.0.0.1:9/",
                "--frontier",
                shared,
                "--worker",
                "w1",
            ],
            "shared-frontier",
        ),
    ];
    for (args, feature) in cases {
        let output = run(dir.path(), args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        let build = format!("cargo build --release --package crawl --features {feature}`");
        assert!(
            error.contains("this build doesn't include "),
            "{args:?}: {error}"
        );
        assert!(error.contains(&build), "{args:?}: {error}");
    }
}
