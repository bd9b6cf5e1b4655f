//! examples/research: a study by its script, from the configuration to the chart.

use std::path::{Path, PathBuf};
use std::process::Command;

use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};
use serde_json::Value;

use crate::harness::{Ran, setup};

/// Prints the labels of a chart's bars from its XML, one line per bar.
const READ_CHART: &str = "\
import sys
from xml.etree import ElementTree
svg = '{http://www.w3.org/2000/svg}'
root = ElementTree.parse(sys.argv[1]).getroot()
labels = [label.text for label in root.iter(svg + 'text')]
widths = [float(bar.get('width')) for bar in root.iter(svg + 'rect')]
for bar, width in enumerate(widths):
    print(*labels[2 * bar:2 * bar + 2], round(width / max(widths), 2))
";

/// `CRAWL_PYTHON_BIN` is the folder of programs of a Python environment. The study imports no
/// packages from it.
#[test]
#[ignore = "needs Python: cargo xtask test sets it up"]
fn the_study_of_the_examples_ends_with_a_table_and_a_chart_of_the_reports_sums() {
    let (dir, cmd) = setup("study");
    let web = TestWeb::builder()
        .pages(6)
        .mix(LinkMix::plain())
        .sitemap(false)
        .robots(0, "User-agent: *\nDisallow: /barred\n")
        .start();
    let front = "<a href=/gone>1</a><a href=/moved>2</a><a href=/page>3</a><a href=/barred>4</a>";
    web.script(0, "/", HttpAnswer::html(front));
    web.script(0, "/gone", HttpAnswer::of(404));
    web.script(0, "/moved", HttpAnswer::redirect(301, "/page"));
    web.script(0, "/page", HttpAnswer::html("<title>a, \"b\"</title>"));

    let python = PathBuf::from(std::env::var_os("CRAWL_PYTHON_BIN").unwrap());
    let program = Path::new(env!("CARGO_BIN_EXE_crawl")).parent().unwrap();
    let path = format!("{}:{}:/usr/bin:/bin", program.display(), python.display());
    let crawl = cmd.command(&[]);
    let set = crawl
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/research/study.sh");
    let mut study = Command::new("sh");
    study
        .arg(script)
        .args(["press", &web.url(0, "/"), "--delay", "0s", "--quiet"])
        .current_dir(dir.path())
        .env_clear()
        .envs(set)
        .env("PATH", path);
    let ran = Ran::of_command(&mut study);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);

    let report: Value = serde_json::from_str(&dir.read("press/crawl/report.json")).unwrap();
    assert_eq!(report["crawl"]["operator"]["name"], "Your Name");
    assert!(dir.read("press/audit.txt").contains("breaches   none"));
    assert!(dir.read("press/plan.txt").contains("purpose   archive"));
    let (_, table) = ran.stdout.split_once("outcome ").unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect())
        .collect();
    let counts: Vec<_> = rows
        .iter()
        .map(|row| format!("{} {}", row[0], row[1]))
        .collect();
    assert_eq!(counts, ["client_error 1", "ok 2", "redirect 1"]);
    let pages = &report["pages"];
    for row in &rows {
        assert_eq!(pages["by_outcome"][row[0]].to_string(), row[1], "{row:?}");
    }
    let sum = |column: usize| -> u64 {
        rows.iter()
            .map(|row| row[column].parse::<u64>().unwrap())
            .sum()
    };
    assert_eq!(
        (pages["total"].as_u64(), pages["bytes"].as_u64()),
        (Some(sum(1)), Some(sum(2)))
    );

    let mut chart = Command::new(python.join("python"));
    chart
        .args(["-c", READ_CHART, "press/outcomes.svg"])
        .current_dir(dir.path());
    let chart = Ran::of_command(&mut chart).ok();
    assert_eq!(chart, "client_error 1 0.5\nok 2 1.0\nredirect 1 0.5\n");
}
