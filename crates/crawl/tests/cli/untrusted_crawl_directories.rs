//! Crawl directories from a stranger: whatever they contain, no command changes a file outside.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crawl_testweb::TestWeb;

use crate::harness::{Cmd, Dir, setup};

/// The file that the attacks try to change.
const VICTIM: &str = "authorized_keys";
const PRECIOUS: &str = "ssh-ed25519 precious";

/// The arguments of commands that write to a crawl directory, without the directory's name.
const WRITERS: [(&str, &[&str]); 5] = [
    ("index", &["index", "c"]),
    ("forget", &["forget", "c", "http://127.0.0.1:1/x"]),
    ("finish", &["forget", "c", "--finish"]),
    ("crawl", &["--output", "c", "--progress", "off"]),
    ("recheck", &["recheck", "c"]),
];

/// Simulates an interrupted `crawl forget`: creates its list of files to replace, and the file
/// `name` in `forget.new/`.
fn list(crawl: &Path, name: &str) {
    let staging = crawl.join("forget.new");
    fs::create_dir(&staging).unwrap();
    // Don't create the file for an empty name, or for a name that leads outside of `forget.new`.
    if !name.is_empty() && !name.starts_with('/') && !name.contains("..") {
        let staged = staging.join(name);
        fs::create_dir_all(staged.parent().unwrap()).unwrap();
        fs::write(&staged, "ssh-ed25519 stranger").unwrap();
    }
    let text = format!(r#"{{"replace":[{name:?}],"remove":[{name:?}]}}"#);
    fs::write(crawl.join("forget.json"), text).unwrap();
}

fn copy_crawl(dir: &Dir) {
    let copied = std::process::Command::new("sh")
        .args(["-c", "rm -rf c && cp -r whole c"])
        .current_dir(dir.path())
        .status();
    assert!(copied.unwrap().success());
}

/// Runs each writing command on a crawl changed by `attack`. None may succeed.
fn check(dir: &Dir, cmd: &Cmd, attack: impl Fn(&Path, &Path)) {
    let outside = dir.file("outside");
    for (name, args) in WRITERS {
        copy_crawl(dir);
        let _ = fs::remove_dir_all(&outside);
        fs::create_dir_all(outside.join("deep")).unwrap();
        for folder in ["", "deep"] {
            fs::write(outside.join(folder).join(VICTIM), PRECIOUS).unwrap();
        }
        attack(&dir.file("c"), &outside);
        if name == "finish" && !dir.file("c/forget.json").exists() {
            continue;
        }
        let ran = cmd.run(args);
        assert_ne!(ran.code, 0, "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains("hint: "), "{name}: {}", ran.stderr);
        for folder in ["", "deep"] {
            let text = fs::read_to_string(outside.join(folder).join(VICTIM));
            assert_eq!(text.unwrap(), PRECIOUS, "{name}: {folder}");
        }
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 2, "{name}");
    }
}

fn crawled(name: &str) -> (Dir, Cmd, TestWeb) {
    let (dir, cmd) = setup(name);
    let web = TestWeb::builder().seed(7).hosts(1).pages(3).start();
    let seed = web.url(0, "/");
    let args = ["--output", "c", "--progress", "off", "--delay", "1ms"];
    let ran = cmd.run(&[&["--seed", &seed, "--max-pages", "3"][..], &args].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let moved = std::process::Command::new("cp")
        .args(["-r", "c", "whole"])
        .current_dir(dir.path())
        .status();
    assert!(moved.unwrap().success());
    (dir, cmd, web)
}

#[test]
fn a_list_of_files_to_replace_leads_out_through_no_link() {
    let (dir, cmd, _web) = crawled("foreign-links");
    for link in ["archive/lnk", "state/lnk", "index", "tables"] {
        for deeper in ["", "deep/"] {
            check(&dir, &cmd, |crawl, outside| {
                symlink(outside, crawl.join(link)).unwrap();
                list(crawl, &format!("{link}/{deeper}{VICTIM}"));
            });
        }
    }
}

#[test]
fn a_list_of_files_to_replace_contains_only_files_that_forget_changes() {
    let (dir, cmd, _web) = crawled("foreign-names");
    let absolute = dir.file("outside").join(VICTIM);
    for name in [
        "../outside/authorized_keys",
        "archive/../../outside/authorized_keys",
        "archive/crawl-x/../../../outside/y.warc.gz",
        absolute.to_str().unwrap(),
        "state/lock",
        "",
    ] {
        check(&dir, &cmd, |crawl, _| list(crawl, name));
    }
}

#[test]
fn a_list_without_the_users_mark_changes_nothing() {
    let (dir, cmd, _web) = crawled("foreign-mark");

    for (name, args) in WRITERS {
        copy_crawl(&dir);
        list(&dir.file("c"), "pages.jsonl");
        let ran = cmd.run(args);
        let is_finish = name == "finish";
        assert_eq!(ran.code == 0, is_finish, "{name}: {}", ran.stderr);
        let rows = dir.file("c/pages.jsonl").exists();
        assert_eq!(rows, !is_finish, "{name}");
        assert_eq!(
            ran.stderr.contains("--finish"),
            !is_finish,
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn a_link_or_folder_in_the_archive_is_refused() {
    let (dir, cmd, _web) = crawled("foreign-archive");
    for name in ["notes", "crawl-00000.warc.gz.d", "index.cdxj.old"] {
        check(&dir, &cmd, |crawl, outside| {
            symlink(outside, crawl.join("archive").join(name)).unwrap();
        });
        check(&dir, &cmd, |crawl, _| {
            fs::create_dir(crawl.join("archive").join(name)).unwrap();
        });
        check(&dir, &cmd, |crawl, outside| {
            symlink(outside.join("nothing"), crawl.join("archive").join(name)).unwrap();
        });
    }
}
