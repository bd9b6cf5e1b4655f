//! Error messages: they contain the offending value and a fitting hint.

use crawl_testweb::{HttpAnswer, TestWeb};
use expect_test::{Expect, expect};

use crate::harness::{Cmd, Dir, setup};

fn check(dir: &Dir, cmd: &Cmd, words: &[&str], expect: Expect) {
    let ran = cmd.run(words);
    assert_eq!(ran.stdout, "");
    expect.assert_eq(&ran.refusal(dir));
}

/// Runs a crawl with an index in `c`.
fn crawled() -> (Dir, Cmd) {
    let (dir, cmd) = setup("hints");
    let web = TestWeb::builder()
        .hosts(1)
        .sitemap(false)
        .script(
            0,
            "/",
            HttpAnswer::html("<title>Tea</title><p>green tea</p>"),
        )
        .start();
    let seed = web.url(0, "/");
    let ran = cmd.run(&[&seed, "--output", "c", "--index", "on", "-q"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    (dir, cmd)
}

#[test]
fn an_unwritable_file_is_reported_with_its_folder() {
    let (dir, cmd) = crawled();
    check(
        &dir,
        &cmd,
        &["report", "c", "--html", "no/such/r.html"],
        expect![[r#"
            3
            error: can't write no/such/r.html: No such file or directory (os error 2)
            hint: the folder `no/such` doesn't exist: create it, or choose another"#]],
    );
    check(
        &dir,
        &cmd,
        &["report", "c", "--html", "c"],
        expect![[r#"
            3
            error: can't write c: Is a directory (os error 21)
            hint: that is a folder: choose a file in it"#]],
    );
    for format in ["opensearch", "meilisearch"] {
        let ran = cmd.run(&["export", "c", "--to", format, "--out", "no/such/x"]);
        let hint = "hint: the folder `no/such` doesn't exist: create it, or choose another\n";
        assert!(
            ran.code == 3 && ran.stderr.ends_with(hint),
            "{}",
            ran.stderr
        );
    }
    // No user can create a folder in `/sys`, not even root.
    let ran = cmd.run(&["http://127.0.0.1:9/", "--output", "/sys/no/such"]);
    let hint = "hint: set --output to a directory that you may write to\n";
    assert!(
        ran.code == 3 && ran.stderr.ends_with(hint),
        "{}",
        ran.stderr
    );
}

#[test]
fn zero_is_refused_with_a_suggestion() {
    let (dir, cmd) = crawled();
    check(
        &dir,
        &cmd,
        &["search", "c", "tea", "--limit", "0"],
        expect![[r#"
            2
            error: --limit is 0, so no results would be shown
            hint: remove --limit for 10 results; --limit 1 shows only the best"#]],
    );
    check(
        &dir,
        &cmd,
        &["serve", "c", "--rate", "0"],
        expect![[r#"
        2
        error: --rate is 0, so no requests would be answered
        hint: remove --rate for 20 requests a second; for no limit, set a large number"#]],
    );
}

#[test]
fn index_reports_a_directory_without_a_crawl() {
    let (dir, cmd) = setup("no-crawl");
    dir.write("photos/a.jpg", "x");
    check(
        &dir,
        &cmd,
        &["index", "photos"],
        expect![[r#"
        2
        error: no crawl in `photos`
        hint: give the directory of a crawl, such as crawl-example.org"#]],
    );
    check(
        &dir,
        &cmd,
        &["index", "nowhere"],
        expect![[r#"
        2
        error: no crawl in `nowhere`
        hint: give the directory of a crawl, such as crawl-example.org"#]],
    );
    let (dir, cmd) = crawled();
    dir.write("c/notes.txt", "mine");
    for args in [&["index", "c"][..], &["forget", "c", "http://127.0.0.1/"]] {
        check(
            &dir,
            &cmd,
            args,
            expect![[r#"
            2
            error: `notes.txt` in `c` was not written by this program
            hint: move `notes.txt` to another folder"#]],
        );
    }
}

#[test]
fn a_contact_names_where_it_came_from() {
    let (dir, mut cmd) = setup("contact");
    dir.write("c.toml", "\n[operator]\ncontact = \"nobody\"\n");
    check(
        &dir,
        &cmd,
        &["https://example.org/", "--config", "c.toml"],
        expect![[r#"
            2
            error: c.toml:3:11: unusable `contact` `nobody`: not an email address, nor an http or https URL
            hint: it looks like `you@example.org` or `https://example.org/bot`"#]],
    );
    let long = format!("{}@example.org", "a".repeat(1000));
    check(
        &dir,
        &cmd,
        &["https://example.org/", "--contact", &long],
        expect![[r#"
            2
            error: unusable --contact `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@example.org`: 1012 bytes long, the maximum is 256
            hint: it looks like `you@example.org` or `https://example.org/bot`"#]],
    );
    cmd.env("CRAWL_CONTACT", "me");
    for words in [
        &["https://example.org/"][..],
        &["config", "--effective"],
        &["robots", "https://example.org/"],
    ] {
        let ran = cmd.run(words);
        let error = "error: unusable contact in the environment variable CRAWL_CONTACT: `me`: not an email \
             address, nor an http or https URL\n";
        assert!(
            ran.code == 2 && ran.stderr.starts_with(error),
            "{}",
            ran.stderr
        );
    }
    // A contact on the command line takes precedence over the one in the environment.
    let ran = cmd.run(&["config", "--effective", "--contact", "a@e.example"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn a_file_names_line_and_nearest_value() {
    let (dir, cmd) = setup("file");
    for (text, expect) in [
        (
            "seed = [\"http://127.0.0.1/\"]\n[scope]\nexclude = [\n  \"ok\",\n  \"[a-\",\n]\n",
            expect![[r#"
                2
                error: c.toml:5:3: bad regular expression in `exclude` `[a-`: unclosed character class
                hint: for the syntax, see https://docs.rs/regex"#]],
        ),
        (
            "[scope]\nscope = \"hots\"\n",
            expect![[r#"
                2
                error: c.toml:2:9: `scope`: `hots` isn't one of `host`, `domain`, `prefix`, `any`
                hint: did you mean `host`?"#]],
        ),
        (
            "[display]\nprogress = \"plane\"\n",
            expect![[r#"
                2
                error: c.toml:2:12: `progress`: `plane` isn't one of `auto`, `bar`, `plain`, `json`, `off`
                hint: did you mean `plain`?"#]],
        ),
        (
            "[fetch]\nresolve = [\"a b:80:127.0.0.1\"]\n",
            expect![[r#"
                2
                error: c.toml:2:12: `resolve`: `a b:80:127.0.0.1` isn't HOST:PORT:ADDR: `a b` isn't a host name
                hint: `crawl config` prints a configuration with every key"#]],
        ),
    ] {
        dir.write("c.toml", text);
        check(&dir, &cmd, &["--config", "c.toml"], expect);
    }
}

#[test]
fn resolve_takes_a_host_name() {
    let (dir, cmd) = setup("resolve");
    for (value, expect) in [
        (
            "http://a.example:80:127.0.0.1",
            expect![[r#"
            2
            error: invalid value 'http://a.example:80:127.0.0.1' for '--resolve <HOST:PORT:ADDR>': `http://a.example:80:127.0.0.1` isn't HOST:PORT:ADDR: give the host without a scheme
            hint: `crawl --help` lists flags and commands"#]],
        ),
        (
            "a_b c:80:127.0.0.1",
            expect![[r#"
            2
            error: invalid value 'a_b c:80:127.0.0.1' for '--resolve <HOST:PORT:ADDR>': `a_b c:80:127.0.0.1` isn't HOST:PORT:ADDR: `a_b c` isn't a host name
            hint: `crawl --help` lists flags and commands"#]],
        ),
        (
            "127.0.0.2:80:127.0.0.1",
            expect![[r#"
            2
            error: invalid value '127.0.0.2:80:127.0.0.1' for '--resolve <HOST:PORT:ADDR>': `127.0.0.2:80:127.0.0.1` isn't HOST:PORT:ADDR: `127.0.0.2` isn't a host name
            hint: `crawl --help` lists flags and commands"#]],
        ),
        (
            "*:80:127.0.0.1",
            expect![[r#"
            2
            error: invalid value '*:80:127.0.0.1' for '--resolve <HOST:PORT:ADDR>': `*:80:127.0.0.1` isn't HOST:PORT:ADDR: `*` isn't a host name
            hint: `crawl --help` lists flags and commands"#]],
        ),
    ] {
        check(
            &dir,
            &cmd,
            &["http://127.0.0.1/", "--resolve", value],
            expect,
        );
    }
    // The host of `--resolve` is converted to the form that it has in URLs.
    let words = [
        "config",
        "--effective",
        "--resolve",
        "Tea-Küche.example.:80:127.0.0.1",
    ];
    let shown = cmd.run(&words).ok();
    assert!(
        shown.contains("resolve = [\"xn--tea-kche-b6a.example:80:127.0.0.1\"]"),
        "{shown}"
    );
}

#[test]
fn long_arguments_are_cut_in_messages() {
    let (_dir, cmd) = setup("long");
    let long = "x".repeat(20_000);
    let path = format!("./{long}");
    let url = format!("http://{long}/");
    for words in [
        &["--delay", &long][..],
        &["--agent", &long, "http://127.0.0.1/"],
        &[&long],
        &["--seed", &url],
        &["--config", &path],
        &["report", &path],
        &["--include", &format!("({long}"), "http://127.0.0.1/"],
    ] {
        let ran = cmd.run(words);
        assert_ne!(ran.code, 0);
        assert!(ran.stderr.len() < 2000, "{}", ran.stderr);
        assert!(ran.stderr.contains("xxx…xxx"), "{}", ran.stderr);
    }
}
