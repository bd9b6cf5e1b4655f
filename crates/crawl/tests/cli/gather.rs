//! `crawl gather`: merges the directories of several workers, or reports what is wrong with them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::Instant;

use crawl_testweb::TestWeb;
use serde_json::{Value, json};
use toml::Table;

use crate::harness::{Cmd, Dir, MAX_WAIT, setup};

const QUICK: [&str; 8] = [
    "--delay",
    "20ms",
    "--delay-factor",
    "0",
    "--progress",
    "off",
    "--links",
    "on",
];

/// Crawls one host of the web into each directory. Then lists all seeds in each `crawl.toml`, as in
/// a crawl that workers share.
fn crawled(dir: &Dir, cmd: &Cmd, web: &TestWeb, workers: &[&str]) {
    let seeds: Vec<String> = (0..)
        .zip(workers)
        .map(|(host, _)| web.url(host, "/"))
        .collect();
    for (seed, worker) in seeds.iter().zip(workers) {
        let ran = cmd.run(&[&["--seed", seed, "--output", worker], &QUICK[..]].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    for worker in workers {
        let name = format!("{worker}/crawl.toml");
        let mut config: Table = dir.read(&name).parse().unwrap();
        let seeds = seeds.iter().cloned().map(toml::Value::String).collect();
        config.insert("seed".to_owned(), toml::Value::Array(seeds));
        dir.write(&name, &config.to_string());
    }
}

fn web() -> TestWeb {
    TestWeb::builder().seed(11).hosts(2).pages(12).start()
}

fn json_of(cmd: &Cmd, args: &[&str]) -> Value {
    serde_json::from_str(&cmd.run(args).ok()).unwrap()
}

/// Returns the sorted rows, without the fields that only gathered directories have.
fn plain(rows: Vec<Value>) -> Vec<String> {
    let mut rows: Vec<String> = rows
        .into_iter()
        .map(|mut row| {
            let columns = row.as_object_mut().unwrap();
            columns.remove("worker");
            columns.remove("after");
            row.to_string()
        })
        .collect();
    rows.sort();
    rows
}

#[test]
fn directories_of_workers_are_one_crawl_to_every_reader() {
    let (dir, cmd) = setup("gather");
    let web = web();
    crawled(&dir, &cmd, &web, &["w1", "w2"]);
    let counts = json_of(&cmd, &["gather", "w1", "w2", "--output", "both", "--json"]);
    assert_eq!(
        counts["workers"],
        Value::from(dir.rows("both/workers.jsonl"))
    );
    for file in ["pages", "requests", "excluded", "links"] {
        let rows = |worker: &str| dir.rows(&format!("{worker}/{file}.jsonl"));
        let all = [rows("w1"), rows("w2")].concat();
        assert!(!all.is_empty(), "{file}");
        for (at, worker) in ["w1", "w2"].into_iter().enumerate() {
            assert_eq!(counts["workers"][at][file], rows(worker).len(), "{file}");
        }
        assert_eq!(plain(rows("both")), plain(all), "{file}");
    }
    let requests = dir.rows("both/requests.jsonl");
    let ends: Vec<u64> = requests
        .iter()
        .map(|row| row["end"].as_u64().unwrap())
        .collect();
    assert!(ends.is_sorted(), "{ends:?}");
    let workers: BTreeSet<&str> = requests
        .iter()
        .filter_map(|row| row["worker"].as_str())
        .collect();
    assert_eq!(workers, BTreeSet::from(["w1", "w2"]));

    let audit = json_of(&cmd, &["audit", "both", "--json"]);
    assert_eq!(
        (&audit["hosts"], &audit["undecided"]),
        (&2.into(), &json!({}))
    );
    assert_eq!(audit["checked"]["requests"], requests.len());
    assert_eq!(cmd.run(&["verify", "both"]).code, 0);
    let report = |worker: &str| json_of(&cmd, &["report", worker, "--json"]);
    let (one, other, both) = (report("w1"), report("w2"), report("both"));
    for value in [
        "/pages/total",
        "/pages/bytes",
        "/excluded/total",
        "/requests/total",
    ] {
        let number = |report: &Value| report.pointer(value).unwrap().as_u64().unwrap();
        assert_eq!(number(&both), number(&one) + number(&other), "{value}");
    }
    // Compare only hosts that were requested. Pages also link to the other worker's host, which the
    // single crawl excluded as out of scope.
    let hosts_requested = |report: &Value| -> BTreeSet<String> {
        let hosts = report["hosts"].as_array().unwrap().iter();
        let hosts_requested = hosts.filter(|host| host["requests"] != 0);
        let columns = [
            "host", "requests", "pages", "bytes", "failed", "gaps", "coverage", "robots",
        ];
        hosts_requested
            .map(|host| {
                Value::from(columns.map(|column| host[column].clone()).to_vec()).to_string()
            })
            .collect()
    };
    assert_eq!(hosts_requested(&both).len(), 2);
    assert_eq!(
        hosts_requested(&both),
        &hosts_requested(&one) | &hosts_requested(&other)
    );

    for entry in fs::read_dir(dir.file("both/archive")).unwrap() {
        let entry = entry.unwrap();
        let is_warc = entry.path().extension().is_some_and(|end| end == "gz");
        let names = entry.metadata().unwrap().nlink();
        assert_eq!(
            names,
            if is_warc { 2 } else { 1 },
            "{}",
            entry.path().display()
        );
    }
    let page = web.url(1, "/");
    let explained = json_of(&cmd, &["explain", "both", &page, "--json"]);
    assert_eq!(explained["state"], "fetched", "{explained}");
    assert_eq!(cmd.run(&["index", "both"]).code, 0);
    assert_eq!(cmd.run(&["verify", "both"]).code, 0);
    let indexed = json_of(&cmd, &["index", "both", "--json"]);
    let results = json_of(&cmd, &["search", "both", "--json", "page"]);
    assert!(indexed["pages"].as_u64().unwrap() > 0, "{indexed}");
    assert!(results["total"].is_u64(), "{results}");
    for (format, out) in [
        ("wacz", "both.wacz"),
        ("parquet", "tables"),
        ("csv", "csv"),
        ("graph", "graph"),
        ("opensearch", "pages.jsonl"),
        ("bundle", "bundle"),
    ] {
        let ran = cmd.run(&["export", "both", "--to", format, "--out", out]);
        assert_eq!(ran.code, 0, "{format}: {}", ran.stderr);
    }
    assert_eq!(cmd.run(&["verify", "bundle"]).code, 0);
}

#[test]
fn a_gathered_directory_reports_that_it_has_no_frontier() {
    let (dir, cmd) = setup("gathered");
    let web = web();
    crawled(&dir, &cmd, &web, &["w1", "w2"]);
    assert_eq!(cmd.run(&["gather", "w1", "w2", "--output", "both"]).code, 0);
    let request_count = web.log().len();
    let before = dir.read("both/digests.jsonl");
    let page = web.url(0, "/");
    for args in [
        &["--output", "both"][..],
        &["--seed", &page, "--output", "both"],
        &["forget", "both", &page],
        &["recheck", "both"],
        &["replay", "both", "--output", "again"],
    ] {
        let ran = cmd.run(args);
        let says = "`both` was gathered from the directories of several workers, and has no frontier\nhint: ";
        assert!(
            ran.code == 2 && ran.stderr.contains(says),
            "{args:?} {}",
            ran.stderr
        );
    }
    assert_eq!(
        (web.log().len(), dir.read("both/digests.jsonl")),
        (request_count, before)
    );
}

#[test]
fn a_failed_gathering_gives_its_reason_and_writes_nothing() {
    let (dir, cmd) = setup("ungathered");
    let web = web();
    crawled(&dir, &cmd, &web, &["w1", "w2"]);
    let refused = |dirs: &[&str], code: i32, says: &str| {
        let ran = cmd.run(&[&["gather"], dirs, &["--output", "both"]].concat());
        assert!(
            ran.code == code && ran.stderr.contains(says) && ran.stderr.contains("\nhint: "),
            "{dirs:?} {} {}",
            ran.code,
            ran.stderr
        );
        let entries = fs::read_dir(dir.path()).unwrap();
        let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        assert!(
            !names
                .iter()
                .any(|name| name.to_string_lossy().contains("both")),
            "{names:?}"
        );
    };
    dir.write("empty/note", "");
    refused(&["w1", "empty"], 2, "no crawl in `empty`");
    refused(&["w1", "nothing"], 2, "no crawl in `nothing`");
    refused(
        &["w1", "w2", "./w1"],
        2,
        "`w1` and `./w1` are one directory",
    );
    let lock = fs::File::open(dir.file("w2/state/lock")).unwrap();
    lock.lock().unwrap();
    refused(&["w1", "w2"], 2, "the crawl in `w2` runs");
    drop(lock);
    let config = dir.read("w2/crawl.toml");
    dir.write(
        "w2/crawl.toml",
        &config.replace("delay = \"20ms\"", "delay = \"10ms\""),
    );
    let says = "`w1` and `w2` are not of one crawl: `politeness.delay` differs in crawl.toml";
    refused(&["w1", "w2"], 2, says);
    dir.write(
        "w2/crawl.toml",
        &config.replace("[crawl]", "[crawl]\nreplay-of = \"w1\""),
    );
    refused(&["w1", "w2"], 2, "`w2` is the replay of a crawl");
    dir.write("w2/crawl.toml", &config);
    let pages = dir.read("w2/pages.jsonl");
    let first = dir
        .read("w1/pages.jsonl")
        .lines()
        .next()
        .unwrap()
        .to_owned();
    dir.write("w2/pages.jsonl", &format!("{pages}{first}\n"));
    let line = pages.lines().count() + 1;
    let says = format!("(line 1 of w1, line {line} of w2)");
    refused(&["w1", "w2"], 4, &says);
    dir.write("w2/pages.jsonl", &pages);
    fs::remove_file(dir.file("w2/waiting.jsonl")).unwrap();
    refused(
        &["w1", "w2"],
        2,
        "the last run of the crawl in `w2` has not ended, or was killed",
    );
    dir.write("w3/note", "");
    let ran = cmd.run(&["gather", "w1", "--output", "w3"]);
    assert!(
        ran.code == 2 && ran.stderr.contains("\nhint: "),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_killed_gathering_removes_partial_results() {
    let (dir, cmd) = setup("gather-killed");
    let web = web();
    crawled(&dir, &cmd, &web, &["w1", "w2"]);
    let args = ["gather", "w1", "w2", "--output", "both"];
    for file in ["crawl.toml", "pages.jsonl", "excluded.jsonl", "report.json"] {
        let gathering = cmd.start(&args);
        let begun = Instant::now();
        let (made, done) = (dir.file(".both.new").join(file), dir.file("both"));
        while !made.exists() && !done.exists() {
            assert!(begun.elapsed() < MAX_WAIT);
        }
        gathering.signal("KILL");
        gathering.end();
        if done.exists() {
            assert_eq!(cmd.run(&["verify", "both"]).code, 0);
            fs::remove_dir_all(&done).unwrap();
        }
    }
    assert_eq!(cmd.run(&args).code, 0);
    assert_eq!(cmd.run(&["verify", "both"]).code, 0);
    assert!(!dir.file(".both.new").exists());
    for worker in ["w1", "w2"] {
        let audit = json_of(&cmd, &["audit", worker, "--json"]);
        assert_eq!(audit["breaches"], json!([]), "{worker}");
    }
}

#[test]
fn a_directory_that_a_command_does_not_take_gets_a_hint() {
    let (dir, cmd) = setup("several");
    dir.write("w2/crawl.toml", "");
    dir.write("my site/crawl.toml", "");
    let merge = "merge the directories of several workers with `crawl gather DIR .. --output ALL`, \
                 then run `crawl";
    for (words, hint) in [
        (&["serve", "w1", "w2"][..], format!("{merge} serve ALL`")),
        (&["index", "w1", "w2"], format!("{merge} index ALL`")),
        (
            &["replay", "w1", "w2"],
            "`crawl replay` takes one directory: run it for each worker's directory".to_owned(),
        ),
        (
            &["control", "pause", "w2"],
            "the directory comes first, as in `crawl control w2 pause`".to_owned(),
        ),
        (
            &["check", "w2"],
            "`crawl report w2 --faults` lists the faults of the crawl in it".to_owned(),
        ),
        (
            &["plan", "w2"],
            "`crawl plan --output w2` estimates the next run of the crawl in it".to_owned(),
        ),
        (
            &["completions", "bash", "w2"],
            "`crawl completions --help` lists its flags and arguments".to_owned(),
        ),
        (
            &["my site"],
            "`crawl --output 'my site'` continues the crawl in it".to_owned(),
        ),
    ] {
        let ran = cmd.run(words);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        let hint = format!("hint: {hint}\n");
        assert!(ran.stderr.contains(&hint), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn commands_read_several_directories_as_one_crawl() {
    let (dir, cmd) = setup("gather-several");
    let web = web();
    crawled(&dir, &cmd, &web, &["w1", "w2"]);
    json_of(&cmd, &["gather", "w1", "w2", "--output", "both", "--json"]);
    let url = web.url(1, "/");
    for (before, after) in [
        (&["report", "--json"][..], &[][..]),
        (&["audit", "--json"], &[]),
        (&["verify", "--json"], &[]),
        (&["explain", "--json"], &[url.as_str()]),
    ] {
        let of = |dirs: &[&str]| json_of(&cmd, &[before, dirs, after].concat());
        assert_eq!(of(&["w1", "w2"]), of(&["both"]), "{before:?}");
    }
    let csv = |dirs: &[&str], out: &str| {
        let args = [&["export", "--to", "csv", "--out", out], dirs].concat();
        assert_eq!(cmd.run(&args).code, 0);
        dir.read(&format!("{out}/pages.csv"))
    };
    let of_two = csv(&["w1", "w2"], "of-two");
    assert!(of_two.replace(",w1+w2,", ",both,") == csv(&["both"], "of-one"));
    let refused = cmd.run(&["export", "--to", "static", "--out", "s", "w1", "w2"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("crawl index"), "{}", refused.stderr);
    // The temporary directory is removed even after a failure.
    assert_eq!(cmd.run(&["audit", "w1", "w1"]).code, 2);
    let names = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let remaining = names.filter(|name| name.to_str().unwrap().contains("gathered"));
    assert_eq!(remaining.count(), 0);
}
