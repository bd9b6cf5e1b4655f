//! Tests the cases in `cases.jsonl`. Each line has a file, a robot, a URL, the expected result by
//! profile, and the text of the standard that requires it.
#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::{BTreeMap, HashSet};

use crawl_policy::{ProductToken, RequestPath, Robots, RobotsProfile};
use expect_test::expect_file;
use serde::Deserialize;
use strum::VariantArray as _;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    robots: Text,
    agent: String,
    url: String,
    expect: String,
    basis: String,
    profile: String,
    note: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Plain(String),
    Encoded { base64: String },
}

impl Text {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Text::Plain(text) => text.as_bytes().to_vec(),
            Text::Encoded { base64 } => data_encoding::BASE64.decode(base64.as_bytes()).unwrap(),
        }
    }
}

fn cases() -> Vec<Case> {
    include_str!("cases.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn allows(file: &[u8], agent: &str, url: &str, profile: RobotsProfile) -> bool {
    let rules = Robots::parse(file).for_token(&ProductToken::leading(agent), profile);
    rules
        .judge_path(&RequestPath::of_unparsed(url))
        .is_allowed()
}

#[test]
fn every_case_has_the_expected_outcome() {
    let mut wrong = Vec::new();
    for case in cases() {
        let profile: RobotsProfile = case.profile.parse().unwrap();
        let allowed = allows(&case.robots.bytes(), &case.agent, &case.url, profile);
        if allowed != (case.expect == "allow") {
            wrong.push(format!(
                "{} {} must {}: {}",
                case.id, case.url, case.expect, case.note
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_corpus_is_whole() {
    let cases = cases();
    let ids: HashSet<_> = cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids.len(), cases.len(), "an id stands twice");
    assert!(cases.iter().all(|case| !case.basis.is_empty()));
    assert!(
        cases
            .iter()
            .all(|case| ["allow", "disallow"].contains(&&*case.expect))
    );
    let mut counts = BTreeMap::new();
    for case in &cases {
        *counts.entry(case.profile.as_str()).or_insert(0) += 1;
    }
    assert!(
        cases.len() >= 300 && counts.values().all(|&n| n >= 10),
        "{counts:?}"
    );
}

/// Checks `DIALECTS.md`, which shows where the profiles differ. `UPDATE_EXPECT=1` rewrites it.
#[test]
fn the_table_of_dialects_is_current() {
    let rows = [
        (
            "`*` and `$` in a path",
            "User-agent: *\nDisallow: /*.gif$\n",
            "/a.gif",
        ),
        (
            "a longer Allow",
            "User-agent: *\nDisallow: /a\nAllow: /a/b\n",
            "/a/b",
        ),
        (
            "several paths on a line",
            "User-agent: *\nDisallow: /a /b\n",
            "/b",
        ),
        (
            "several names on a line",
            "User-agent: other ourbot\nDisallow: /a\n",
            "/a",
        ),
        (
            "a name with a version",
            "User-agent: ourbot/2.0\nDisallow: /a\n",
            "/a",
        ),
        (
            "a part of the robot's name",
            "User-agent: our\nDisallow: /a\n",
            "/a",
        ),
        (
            "a blank line before the rules",
            "User-agent: *\n\nDisallow: /a\n",
            "/a",
        ),
        (
            "two groups for one robot",
            "User-agent: ourbot\nDisallow: /b\n\nUser-agent: ourbot\nDisallow: /a\n",
            "/a",
        ),
        (
            "a name without rules, then `*`",
            "User-agent: ourbot\n\nUser-agent: *\nDisallow: /a\n",
            "/a",
        ),
        ("a misspelt field", "User-agent: *\nDisalow: /a\n", "/a"),
        ("no colon", "User-agent: *\nDisallow /a\n", "/a"),
        (
            "an allowed index page's folder",
            "User-agent: *\nDisallow: /\nAllow: /index.html\n",
            "/",
        ),
        (
            "`/robots.txt` itself",
            "User-agent: *\nDisallow: /\n",
            "/robots.txt",
        ),
        ("an escaped letter", "User-agent: *\nDisallow: /%61\n", "/a"),
    ];
    let mut table = String::from(
        "# Where the readings differ\n\n\
         For anyone who chooses a value for `--robots`, or writes a robots.txt for old crawlers. To try a file:\n\n\
         ```console\n\
         $ crawl robots --robots koster1994 --agent ourbot --file robots.txt https://example.org/a\n\
         ```\n\n\
         A test writes this page. The table has each reading's verdict for one URL and the robot `ourbot`; the files\n\
         are below.\n\n\
         | the file has | URL |",
    );
    let names = RobotsProfile::VARIANTS
        .iter()
        .map(|profile| format!(" {profile} |"));
    table += &format!("{}\n|---|---|---|---|---|---|\n", names.collect::<String>());
    let mut files = String::from("\n## The files\n");
    for (what, file, url) in rows {
        table += &format!("| {what} | `{url}` |");
        for &profile in RobotsProfile::VARIANTS {
            let word = match allows(file.as_bytes(), "ourbot", url, profile) {
                true => "allowed",
                false => "**disallowed**",
            };
            table += &format!(" {word} |");
        }
        table.push('\n');
        files += &format!("\n{what}:\n\n```text\n{file}```\n");
    }
    table += &files;
    expect_file!["../DIALECTS.md"].assert_eq(&table);
}
