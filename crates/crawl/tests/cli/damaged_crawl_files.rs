//! Damage to a crawl's files: it is reported, and the rest remains readable.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};
use expect_test::{Expect, expect};
use serde_json::Value;

use crate::harness::{Cmd, Dir, MAX_WAIT, Ran, in_shell, setup};

const ON: [&str; 8] = [
    "--output",
    "c",
    "--delay",
    "0s",
    "--delay-factor",
    "0",
    "--progress",
    "off",
];

/// Runs a crawl that a budget ends while URLs are waiting.
fn begun(name: &str, more: &[&str]) -> (Dir, Cmd, TestWeb) {
    let (dir, cmd) = setup(name);
    let web = TestWeb::builder().seed(5).pages(12).mix(LinkMix::plain());
    let web = web.start();
    let seed = web.url(0, "/");
    let budget = ["--seed", &seed, "--max-pages", "6"];
    let ran = cmd.run(&[&budget, &ON[..], more].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    (dir, cmd, web)
}

fn go_on<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&ON[..], &["--max-pages", "1000"], more].concat()
}

fn urls(dir: &Dir) -> Vec<String> {
    let rows = dir.rows("c/pages.jsonl");
    rows.iter()
        .map(|row| row["url"].as_str().unwrap().to_owned())
        .collect()
}

fn reported(cmd: &Cmd) -> Value {
    let report: Value = serde_json::from_str(&cmd.run(&["report", "c", "--json"]).ok()).unwrap();
    report["pages"]["total"].clone()
}

/// Collects all files below a folder.
fn files(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, paths),
            false => paths.push(path),
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, to) = entry
            .map(|entry| (entry.path(), to.join(entry.file_name())))
            .unwrap();
        match path.is_dir() {
            true => copy(&path, &to),
            false => drop(fs::copy(&path, &to).unwrap()),
        }
    }
}

/// Checks what happens after a committed file was truncated to half its size, or removed.
fn check_committed(file: &str, expect: Expect) {
    let (dir, cmd, _web) = begun("committed", &[]);
    let path = match file.ends_with('/') {
        false => dir.file(&format!("c/{file}")),
        true => {
            let mut paths = Vec::new();
            files(&dir.file(&format!("c/{file}")), &mut paths);
            paths.retain(|path| path.to_string_lossy().ends_with(".warc.gz"));
            paths.pop().unwrap()
        }
    };
    let bytes = fs::read(&path).unwrap();
    let pages = dir.read("c/pages.jsonl");
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let ran = cmd.run(&go_on(&[]));
    let (whole, half) = (bytes.len(), bytes.len() / 2);
    let error = ran.refusal(&dir).replace(&name, "FILE");
    let error = error
        .replace(&format!(" {whole} "), " WHOLE ")
        .replace(&format!(" {half} "), " HALF ");
    expect.assert_eq(&error);
    cmd.run(&["report", "c"]).ok();

    fs::remove_file(&path).unwrap();
    let ran = cmd.run(&go_on(&[]));
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains(", 0 found\nhint: "), "{}", ran.stderr);

    fs::write(&path, &bytes).unwrap();
    assert_eq!(dir.read("c/pages.jsonl"), pages, "nothing was changed");
    assert_eq!(
        cmd.run(&go_on(&[])).code,
        0,
        "what was missing was put back"
    );
}

#[test]
fn rows_shorter_than_committed() {
    check_committed(
        "pages.jsonl",
        expect![[r#"
            3
            error: c/FILE is shorter than the state says: WHOLE bytes committed, HALF found
            hint: fetched pages remain readable in c; start over with another --output, or restore what is missing"#]],
    );
}

#[test]
fn an_archive_shorter_than_committed() {
    check_committed(
        "archive/",
        expect![[r#"
            3
            error: c/archive/FILE is shorter than the state says: WHOLE bytes committed, HALF found
            hint: fetched pages remain readable in c; start over with another --output, or restore what is missing"#]],
    );
}

/// Damages each file of the state by truncation or a flipped bit. The crawl then resumes to the
/// same end, or is refused and changes nothing.
#[test]
fn a_damaged_state_is_refused_or_harmless() {
    let (dir, cmd, _web) = begun("state", &[]);
    fs::rename(dir.file("c"), dir.file("kept")).unwrap();
    let start = || {
        let _ = fs::remove_dir_all(dir.file("c"));
        copy(&dir.file("kept"), &dir.file("c"));
    };
    start();
    let pages = reported(&cmd);
    assert_eq!(cmd.run(&go_on(&[])).code, 0);
    let all: BTreeSet<_> = urls(&dir).into_iter().collect();
    let mut state = Vec::new();
    files(&dir.file("kept/state"), &mut state);
    let mut refused = 0;
    for path in state {
        let bytes = fs::read(&path).unwrap();
        let place = dir
            .file("c")
            .join(path.strip_prefix(dir.file("kept")).unwrap());
        let mut turned = bytes.clone();
        if bytes.len() < 100 {
            continue;
        }
        turned[bytes.len() * 2 / 5] ^= 0x10;
        for damaged in [&bytes[..bytes.len() / 2], &turned] {
            start();
            fs::write(&place, damaged).unwrap();
            let rows = dir.read("c/pages.jsonl");
            let ran = cmd.run(&go_on(&[]));
            let context = format!("{}: {}", place.display(), ran.stderr);
            assert!(reported(&cmd).is_number(), "{context}");
            if ran.code == 0 {
                let urls_found = urls(&dir);
                assert_eq!(urls_found.len(), all.len(), "{context}");
                assert_eq!(
                    urls_found.into_iter().collect::<BTreeSet<_>>(),
                    all,
                    "{context}"
                );
                continue;
            }
            refused += 1;
            assert_eq!(ran.code, 3, "{context}");
            assert!(ran.stderr.contains("error: `c/state`: "), "{context}");
            assert!(
                ran.stderr
                    .contains("\nhint: fetched pages remain readable in c;"),
                "{context}"
            );
            assert_eq!(dir.read("c/pages.jsonl"), rows, "{context}");
            assert_eq!(reported(&cmd), pages, "{context}");
        }
    }
    assert!(refused > 2, "{refused} damages were noticed");
}

/// Simulates a full disk with a limit on file sizes, set after the crawl has started.
fn run_on_a_full_disk(cmd: &Cmd, web: &TestWeb, more: &[&str]) -> Ran {
    // The long delay leaves time to set the limit after only a few pages.
    let args = ["--output", "c", "--delay", "5s", "--progress", "off"];
    let crawl = cmd.command(
        &[
            &args[..],
            &["--delay-factor", "0", "--max-pages", "100"],
            more,
        ]
        .concat(),
    );
    // By default, SIGXFSZ kills a process that writes beyond the limit.
    let mut shell = in_shell(&crawl, "trap - XFSZ");
    web.take_log();
    let mut child = shell.spawn().unwrap();
    assert!(web.wait_for(MAX_WAIT, |log| !log.is_empty()));
    let id = child.id().to_string();
    let limit = format!("--fsize={FULL_AT}:");
    let set = Command::new("prlimit")
        .args(["--pid", &id, &limit])
        .status();
    assert!(set.unwrap().success());
    // Retry, because the crawl may not accept commands yet. It may also have ended at the limit
    // already.
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() && cmd.run(&["control", "c", "delay", "0s"]).code != 0
    {
        assert!(began.elapsed() < MAX_WAIT, "it takes no commands");
    }
    Ran::of_child(child)
}

/// The maximum size of a file on the simulated full disk, in bytes.
const FULL_AT: usize = 1 << 20;

#[test]
fn a_full_disk_ends_the_crawl_and_the_same_command_resumes() {
    // The crawl loop writes `requests.jsonl` without a commit. `links.jsonl` fills the disk during
    // a commit.
    for (file, flags) in [
        ("requests.jsonl", [].as_slice()),
        ("links.jsonl", &["--links", "on"]),
    ] {
        let (dir, cmd) = setup("full");
        let mut web = TestWeb::builder().hosts(1).sitemap(false);
        let paths: Vec<String> = (1..7).map(|page| format!("/{page}")).collect();
        let list: String = paths
            .iter()
            .map(|path| format!("<a href={path}>x</a>"))
            .collect();
        web = web.script(0, "/", HttpAnswer::html(&list));
        for path in &paths {
            // links.jsonl gets much longer than any other file.
            let links = (0..3000).map(|n| format!("<a href=/>{n} of {path}</a>\n"));
            web = web.script(0, path, HttpAnswer::html(&links.collect::<String>()));
        }
        let web = web.start();
        let seed = web.url(0, "/");
        let budget = ["--seed", &seed, "--max-pages", "2"];
        let ran = cmd.run(&[&budget, &ON[..], flags].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        if file == "requests.jsonl" {
            let rows = dir.read("c/requests.jsonl");
            dir.write("c/requests.jsonl", &rows.repeat(FULL_AT / rows.len() + 1));
        }
        let rows = dir.read("c/pages.jsonl");
        let ran = run_on_a_full_disk(&cmd, &web, flags);
        let message = format!(
            "3\nerror: no space left to write to c/{file}\n\
             hint: free some disk space; then the same command continues"
        );
        assert_eq!(ran.refusal(&dir), message);
        assert!(dir.read("c/pages.jsonl").starts_with(&rows));
        dir.rows("c/pages.jsonl");

        let ran = cmd.run(&go_on(flags));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let mut fetched_urls = urls(&dir);
        fetched_urls.sort();
        let mut all: Vec<String> = paths.iter().map(|path| web.url(0, path)).collect();
        all.insert(0, seed);
        assert_eq!(fetched_urls, all);
    }
}
