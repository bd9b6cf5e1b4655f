//! What a crawl directory remembers, and whether to trust it: a `crawl.toml` may be someone else's.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crawl_testweb::{HttpAnswer, TestWeb};
use expect_test::expect;

use crate::harness::{Cmd, Dir, setup};

const QUICK: [&str; 6] = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];

fn web() -> TestWeb {
    TestWeb::builder().seed(5).hosts(2).pages(4).start()
}

/// Crawls the first host of the web into the directory `c`.
fn begun(name: &str, web: &TestWeb, more: &[&str]) -> (Dir, Cmd) {
    let (dir, cmd) = setup(name);
    let seed = web.url(0, "/");
    let args = [&["--seed", &seed, "--output", "c"], &QUICK[..], more].concat();
    let ran = cmd.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    web.take_log();
    (dir, cmd)
}

/// Returns the error of a refused run, which must send no requests.
fn refused(dir: &Dir, cmd: &Cmd, web: &TestWeb, args: &[&str]) -> String {
    let ran = cmd.run(args);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(web.log().is_empty());
    ran.refusal(dir)
        .replace(&web.url(0, "/"), "SEED0")
        .replace(&web.url(1, "/"), "SEED1")
}

#[test]
fn a_foreign_directory_decides_nothing_reserved_for_the_user() {
    let web = web();
    let (dir, mut cmd) = setup("foreign");
    cmd.env("SECRET", "s3cret-word");
    dir.write(
        "c/crawl.toml",
        &format!(
            "seed = [\"{}\"]\n[operator]\ncontact = \"them@e.example\\u202e\\u009b\"\nagent = \"them\"\n\
             [politeness]\ndelay = \"0s\"\nown-site = \"on\"\nrobots = \"koster1994\"\n\
             max-retry-after = \"1s\"\n[fetch]\nproxy = \"http://127.0.0.1:9\"\n\
             resolve = [\"a.example:80:127.0.0.1\"]\nname-server = [\"127.0.0.1\"]\n\
             allow-private = \"on\"\n[display]\nlog = \"stolen.log\"\n\
             [site.\"a.example\"]\ndelay = \"0s\"\nheaders = {{ X-Key = \"env:SECRET\" }}\n\
             plain-http = \"on\"\n",
            web.url(0, "/")
        ),
    );
    let error = refused(&dir, &cmd, &web, &["--output", "c"]);
    expect![[r#"
        2
        error: `c/crawl.toml` isn't marked as yours: it has no mark. It sets keys that only you may set:
          seed = "SEED0"  (could be in a private network)
          [fetch] allow-private = "on"  (allows requests to private networks)
          [fetch] name-server = ["127.0.0.1"]  (redirects requests)
          [fetch] proxy = "http://127.0.0.1:9"  (redirects requests)
          [fetch] resolve = ["a.example:80:127.0.0.1"]  (redirects requests)
          [operator] agent = "them"  (sets which robots.txt rules apply)
          [operator] contact = "them@e.example�"  (sets who is responsible for the requests)
          [politeness] max-retry-after = "1s"  (shortens waits that hosts request)
          [politeness] own-site = "on"  (lifts the minimum delay)
          [politeness] robots = "koster1994"  (sets how robots.txt is read)
          [site."a.example"] headers = { X-Key = "env:SECRET" }  (sends a secret)
          [site."a.example"] plain-http = "on"  (sends secrets over http)
        hint: read the file, then accept it with `crawl --output c --config c/crawl.toml`, or set each key with its flag"#]]
    .assert_eq(&error);
    assert!(!dir.file("stolen.log").exists());

    // Seeds in a file without a mark aren't accepted even if another seed is given.
    let other_seed = web.url(1, "/");
    let error = refused(&dir, &cmd, &web, &["--output", "c", "--seed", &other_seed]);
    expect![[r#"
        2
        error: `c/crawl.toml` isn't marked as yours: it has no mark. It sets keys that only you may set:
          seed = "SEED0"  (could be in a private network)
        hint: read the file, then accept it with `crawl --output c --config c/crawl.toml`, or set each key with its flag"#]]
    .assert_eq(&error);
}

#[test]
fn a_foreign_seed_is_refused_however_it_is_written() {
    let web = web();
    let (dir, cmd) = setup("foreign-seed");
    for seed in [
        "127.0.0.1:1",
        "localhost:1",
        "[::1]:1",
        "a.example",
        "no seed",
    ] {
        dir.write("c/crawl.toml", &format!("seed = [\"{seed}\"]\n"));
        let error = refused(&dir, &cmd, &web, &["--output", "c"]);
        assert!(
            error.contains(&format!("seed = \"{seed}\"  (could be")),
            "{error}"
        );
    }
    // A file without a mark is refused for a literal secret too, not only for `env:NAME`.
    dir.write(
        "c/crawl.toml",
        "seed = []\n[site.\"a.example\"]\nheaders = { X-User = \"admin\" }\n",
    );
    let error = refused(&dir, &cmd, &web, &["--output", "c"]);
    assert!(
        error.contains("headers = ") && !error.contains("admin"),
        "{error}"
    );
}

#[test]
fn a_mark_is_valid_for_one_user_one_directory_and_unchanged_settings() {
    let web = web();
    let contact = ["--contact", "me@e.example", "--allow-private"];
    let (dir, mut cmd) = begun("mark", &web, &contact);
    let go_on = [&["--output", "c"], &QUICK[..]].concat();
    let key = dir.file("home/.local/state/crawl/key");
    let mode = fs::metadata(&key).unwrap().permissions().mode();
    assert_eq!((mode & 0o777, fs::read(&key).unwrap().len()), (0o600, 32));
    assert_eq!(cmd.run(&go_on).code, 0);

    // Unguarded settings may be edited.
    let own = dir.read("c/crawl.toml");
    dir.write("c/crawl.toml", &own.replace("retries = 3", "retries = 2"));
    assert_eq!(cmd.run(&go_on).code, 0);
    web.take_log();

    let own = dir.read("c/crawl.toml");
    let changed = own.replace("me@e.example", "them@e.example");
    dir.write("c/crawl.toml", &changed);
    let error = refused(&dir, &cmd, &web, &["--output", "c"]);
    assert!(error.contains("its mark doesn't match"), "{error}");
    assert!(error.contains("contact = \"them@e.example\""), "{error}");

    // The mark of one directory is invalid in another.
    dir.write("d/crawl.toml", &own);
    let error = refused(&dir, &cmd, &web, &["--output", "d"]);
    assert!(error.contains("its mark doesn't match"), "{error}");

    // The mark is also invalid for another user, or for a user without a key.
    dir.write("c/crawl.toml", &own);
    for (home, why) in [("other", "there is no key in"), ("", "there is no key in")] {
        let home = match home {
            "" => String::new(),
            home => dir.file(home).display().to_string(),
        };
        cmd.env("HOME", &home);
        let error = refused(&dir, &cmd, &web, &["--output", "c"]);
        assert!(error.contains(why), "{error}");
    }
    // Another user can continue the crawl by accepting the file with `--config`. The file then gets
    // that user's mark, made with a key that is created in that user's home, so later starts need
    // no `--config`.
    cmd.env("HOME", &dir.file("other").display().to_string());
    let config = [&go_on[..], &["--config", "c/crawl.toml"]].concat();
    assert_eq!(cmd.run(&config).code, 0);
    assert_eq!(cmd.run(&go_on).code, 0);
}

/// Without a home folder for the key, a directory gets no mark.
#[test]
fn the_suggested_command_also_works_without_a_key() {
    let web = web();
    let (dir, mut cmd) = setup("no-key");
    cmd.env("HOME", "");
    let seed = web.url(0, "/");
    let first = [
        &["--seed", &seed, "--output", "c", "--max-pages", "1"],
        &QUICK[..],
    ]
    .concat();
    let stderr = cmd.run(&first).stderr;
    let command = stderr
        .lines()
        .find_map(|line| line.trim().strip_prefix("continue:"));
    let command = command
        .unwrap_or_else(|| panic!("{stderr}"))
        .replace("MORE", "9");
    let command: Vec<&str> = command.split_whitespace().skip(1).collect();
    let ran = cmd.run(&[&command[..], &QUICK[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(dir.rows("c/pages.jsonl").len() > 1);
}

#[test]
fn a_remembered_proxy_is_cleared_by_a_file() {
    let web = web();
    let (dir, cmd) = begun("proxy", &web, &[]);
    let go_on = [&["--output", "c"], &QUICK[..]].concat();
    let own = [&go_on[..], &["--proxy", "http://127.0.0.1:9"]].concat();
    assert_eq!(cmd.run(&own).code, 0);
    assert!(
        dir.read("c/crawl.toml")
            .contains("proxy = \"http://127.0.0.1:9\"")
    );
    let refused = cmd.run(&[&go_on[..], &["--proxy", ""]].concat());
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    dir.write("clear.toml", "[fetch]\nproxy = \"\"\n");
    assert_eq!(
        cmd.run(&[&go_on[..], &["--config", "clear.toml"]].concat())
            .code,
        0
    );
    assert_eq!(cmd.run(&go_on).code, 0);
    assert!(dir.read("c/crawl.toml").contains("proxy = \"\""));
}

#[test]
fn settings_of_records_are_remembered_and_display_settings_are_not() {
    let web = web();
    let (dir, cmd) = begun("kept", &web, &["--index", "on", "--links", "on", "-q"]);
    let seed = web.url(0, "/");
    let again = [&["--seed", &seed, "--output", "c"], &QUICK[..]].concat();
    let ran = cmd.run(&again);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.starts_with("finished: "), "{}", ran.stderr);
    let toml = dir.read("c/crawl.toml");
    for kept in ["\nindex = \"on\"", "\nlinks = \"on\""] {
        assert!(toml.contains(kept), "{kept}: {toml}");
    }
    let off = cmd.run(&[&again[..], &["--index", "off"]].concat());
    assert_eq!(off.code, 0);
    assert!(
        off.stderr.starts_with("--index off: the search index in c won't include the pages of this run\nhint: --index on rebuilds it from the archive\n"),
        "{}",
        off.stderr
    );
}

#[test]
fn a_seed_joins_an_old_directory_only_with_add_seed_and_is_named() {
    let web = web();
    let (dir, cmd) = begun("joins", &web, &[]);
    let (old, new) = (web.url(0, "/"), web.url(1, "/"));
    let joins = [&["--seed", &new, "--output", "c"], &QUICK[..]].concat();
    let request_count = web.log().len();
    let refused = cmd.run(&joins);
    assert_eq!(refused.code, 2);
    let expected = format!(
        "error: can't add seed {new} to the crawl in c, which started at {old}\n\
         hint: start a separate crawl with another --output, or add new seeds with --add-seed\n"
    );
    assert_eq!(refused.stderr, expected);
    let listed = format!("seed = [\"{old}\", \"{new}\"]\n");
    fs::write(dir.file("grown.toml"), listed).unwrap();
    let grown = [&["--config", "grown.toml", "--output", "c"], &QUICK[..]].concat();
    assert_eq!(cmd.run(&grown).code, 2);
    assert_eq!(web.log().len(), request_count, "nothing is fetched");
    let same = [&["--seed", &old, "--output", "c"], &QUICK[..]].concat();
    assert_eq!(cmd.run(&same).code, 0);
    let ran = cmd.run(&[&joins[..], &["--add-seed"]].concat());
    assert_eq!(ran.code, 0);
    let first = ran.stderr.lines().next().unwrap();
    let message = format!("adding seed {new} to the crawl in c, which started at {old}");
    assert_eq!(first, message);
}

#[test]
fn names_and_passwords_in_a_seed_are_refused_unseen() {
    let web = TestWeb::builder()
        .script(0, "/", HttpAnswer::of(200))
        .start();
    let (dir, cmd) = setup("userinfo");
    let plain = web.url(0, "/");
    for before in ["me:s3cret@", "me@", ":s3cret@"] {
        let seed = plain.replace("http://", &format!("http://{before}"));
        let ran = cmd.run(&["--seed", &seed, "--output", "c"]);
        let error = ran.refusal(&dir);
        let host = plain.trim_start_matches("http://").trim_end_matches('/');
        let name = host.split(':').next().unwrap();
        let expected = format!(
            "2\nerror: the seed `http://..@{host}/` contains a user name or password\n\
             hint: remove it, and set it for the host in a file for --config: [site.\"{name}\"] basic-auth = \"env:NAME\""
        );
        assert_eq!(error, expected);
    }
    assert!(web.log().is_empty());
    assert!(!dir.file("c").exists());
}
