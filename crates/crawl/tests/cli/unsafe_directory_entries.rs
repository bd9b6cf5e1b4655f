//! A crawl writes only to regular files and real folders in its own directory.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;

use crawl_testweb::TestWeb;
use expect_test::expect;

use crate::harness::{Cmd, Dir, Ran, in_shell, setup};

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

/// Runs a crawl with every optional record, and a budget that leaves URLs to fetch.
fn begun(name: &str) -> (Dir, Cmd, TestWeb) {
    let (dir, cmd) = setup(name);
    let web = TestWeb::builder().seed(5).pages(8).start();
    let seed = web.url(0, "/");
    let all = ["--index", "on", "--links", "on", "--max-pages", "4"];
    let ran = cmd.run(&[&["--seed", &seed], &ON[..], &all].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    web.take_log();
    (dir, cmd, web)
}

/// Returns the errors of `crawl --output c` and `crawl index c`, which must write nothing and send
/// no requests.
fn refused(dir: &Dir, cmd: &Cmd, web: &TestWeb) -> String {
    let rows = dir.read("c/pages.jsonl");
    let ran = cmd.run(&[&ON[..], &["--max-pages", "100"]].concat());
    let index_error = ran.refusal(dir);
    assert_eq!(cmd.run(&["index", "c"]).refusal(dir), index_error);
    assert_eq!(
        cmd.run(&["search", "c", "x"]).code,
        3 * i32::from(index_error.contains("c/index/"))
    );
    if index_error.contains("c/state") {
        // `explain` must fail too, because it opens the state.
        let explained = cmd.run(&["explain", "c", &web.url(0, "/")]).stdout;
        let (_, what) = index_error
            .lines()
            .nth(1)
            .unwrap()
            .split_once("error: ")
            .unwrap();
        let explained = explained.replace(&dir.path().display().to_string(), "DIR");
        assert!(explained.contains(what), "{explained}");
    }
    assert_eq!(dir.read("c/pages.jsonl"), rows);
    assert!(web.log().is_empty());
    index_error.lines().take(2).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_link_in_the_directory_is_refused_before_anything_is_written() {
    let (dir, cmd, web) = begun("links");
    let name = fs::read_dir(dir.file("c/archive"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .find(|name| name.ends_with(".warc.gz"))
        .unwrap();
    let warc = format!("archive/{name}");
    for entry in [
        "crawl.toml.new",
        "report.json",
        "report.json.new",
        "requests.jsonl",
        "excluded.jsonl",
        "links.jsonl",
        "pages.jsonl",
        "archive",
        "archive/captures.cdxj",
        "archive/index.cdxj",
        "archive/index.cdxj.tmp0",
        &warc,
        "index",
        "index/meta.json",
        "index.new",
        "state",
        "state/indexing.jsonl",
        "state/reading",
        "state/reading.new",
        "state/store",
        "state/delays.jsonl",
        "state/order.jsonl",
    ] {
        let place = dir.file("c").join(entry);
        let outside = dir.file("outside");
        let there = place.symlink_metadata().is_ok();
        match there {
            true => fs::rename(&place, &outside).unwrap(),
            false => fs::write(&outside, "theirs\n").unwrap(),
        }
        let is_folder = outside.is_dir();
        let before = (!is_folder).then(|| fs::read(&outside).unwrap());
        symlink(&outside, &place).unwrap();
        let should = match entry.contains('.') || entry == "state/reading" {
            _ if entry == "index.new" => "folder",
            true => "regular file",
            false if entry == "state/store" => "regular file",
            false => "folder",
        };
        let error = refused(&dir, &cmd, &web);
        let expected =
            format!("2\nerror: `c/{entry}` is a link to `DIR/outside`, where a {should} should be");
        assert_eq!(error, expected);
        if let Some(before) = before {
            assert!(fs::read(&outside).unwrap() == before, "{entry}");
        }
        fs::remove_file(&place).unwrap();
        match there {
            true => fs::rename(&outside, &place).unwrap(),
            false => fs::remove_file(&outside).unwrap(),
        }
    }
    let ran = cmd.run(&[&ON[..], &["--max-pages", "100"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn special_files_and_hard_links_are_refused() {
    let (dir, cmd, web) = begun("kinds");
    let place = dir.file("c/links.jsonl");
    let outside_file = dir.file("kept");
    fs::rename(&place, &outside_file).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(&place)
            .status()
            .unwrap()
            .success()
    );
    expect![[r#"
        2
        error: `c/links.jsonl` is a FIFO, where a regular file should be"#]]
    .assert_eq(&refused(&dir, &cmd, &web));
    fs::remove_file(&place).unwrap();
    let _socket = UnixListener::bind(&place).unwrap();
    expect![[r#"
        2
        error: `c/links.jsonl` is a socket, where a regular file should be"#]]
    .assert_eq(&refused(&dir, &cmd, &web));
    fs::remove_file(&place).unwrap();
    fs::create_dir(&place).unwrap();
    expect![[r#"
        2
        error: `c/links.jsonl` is a folder, where a regular file should be"#]]
    .assert_eq(&refused(&dir, &cmd, &web));
    fs::remove_dir(&place).unwrap();
    fs::hard_link(&outside_file, &place).unwrap();
    expect![[r#"
        2
        error: `c/links.jsonl` has 2 names (hard links): writing to it would change all of them"#]]
    .assert_eq(&refused(&dir, &cmd, &web));
    fs::remove_file(&place).unwrap();
    fs::rename(&outside_file, &place).unwrap();

    // The crawl doesn't append to a WARC file that has a second hard link, but starts a new file.
    let warcs = || {
        let entries = fs::read_dir(dir.file("c/archive")).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == "gz"));
        paths
    };
    let first = warcs().pop().unwrap();
    fs::hard_link(&first, &outside_file).unwrap();
    let before = fs::read(&outside_file).unwrap();
    let ran = cmd.run(&[&ON[..], &["--max-pages", "100"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(fs::read(&outside_file).unwrap() == before);
    assert_eq!(warcs().len(), 2);
}

#[test]
fn the_state_is_private_under_any_umask() {
    let (dir, cmd) = setup("umask");
    let web = TestWeb::builder().seed(5).pages(3).start();
    let seed = web.url(0, "/");
    let run = |umask: &str| {
        let command = cmd.command(&[&["--seed", &seed, "--index", "on"], &ON[..]].concat());
        let mut shell = in_shell(&command, &format!("umask {umask}"));
        assert_eq!(Ran::of_command(&mut shell).code, 0);
    };
    let mode = |name: &str| fs::metadata(dir.file(name)).unwrap().permissions().mode() & 0o777;
    run("000");
    assert_eq!(mode("c/state"), 0o700);
    // The index gets the mode that the umask allows, so users who may read its files may search it.
    assert_eq!(mode("c/index/meta.json"), 0o666);
    // Simulate file modes that an earlier version set, which the next run must correct.
    fs::set_permissions(dir.file("c/state"), fs::Permissions::from_mode(0o777)).unwrap();
    run("022");
    assert_eq!(mode("c/state"), 0o700);
    let all = fs::read_dir(dir.file("c/index")).unwrap();
    for entry in all {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o044, 0o044, "{:?}", entry.file_name());
    }
}
