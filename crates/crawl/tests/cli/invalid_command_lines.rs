//! An invalid command line causes an error, a hint and exit code 2, and no requests.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use expect_test::{Expect, expect};

use crate::harness::setup;

fn check(args: &[&str], expect: Expect) {
    let (dir, cmd) = setup("refusal");
    let ran = cmd.run(args);
    assert_eq!(ran.stdout, "");
    expect.assert_eq(&ran.refusal(&dir));
    assert_eq!(
        dir.path().read_dir().unwrap().count(),
        0,
        "something was written"
    );
}

#[test]
fn seeds() {
    check(
        &[],
        expect![[r#"
        2
        error: no seed given
        hint: start a crawl with `crawl URL`, or continue one with `crawl --output DIR`; `crawl --help` lists all flags"#]],
    );
    check(
        &["--seed", "example"],
        expect![[r#"
        2
        error: unusable seed `example`: not a URL: relative URL without a base
        hint: give a URL such as `https://example.org/`, or a host such as `example.org`"#]],
    );
    check(
        &["--seed", "file:///etc/passwd"],
        expect![[r#"
        2
        error: unusable seed `file:///etc/passwd`: scheme `file` is not http or https
        hint: give a URL such as `https://example.org/`, or a host such as `example.org`"#]],
    );
    check(
        &["--seed", "http://[::]/"],
        expect![[r#"
        2
        error: unusable seed `http://[::]/`: :: can't be a server's address
        hint: give a URL such as `https://example.org/`, or a host such as `example.org`"#]],
    );
}

#[test]
fn an_argument_that_is_not_utf_8() {
    let (_dir, cmd) = setup("bytes");
    let argument = OsStr::from_bytes(b"http://127.0.0.1/\xff");
    let ran = cmd.command(&[]).arg(argument).output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
    expect![[r#"
        error: `http://127.0.0.1/�` isn't valid UTF-8
        hint: percent-encode other bytes of a URL, such as `%E9`
    "#]]
    .assert_eq(&String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn missing_input_files() {
    check(
        &["identity", "verify", "missing.log"],
        expect![[r#"
        2
        error: can't read missing.log: No such file or directory (os error 2)
        hint: give an existing file; relative paths start at the current folder"#]],
    );
    check(
        &["check", "http://127.0.0.1/", "--baseline", "missing.jsonl"],
        expect![[r#"
            2
            error: can't read missing.jsonl: No such file or directory (os error 2)
            hint: give an existing file; relative paths start at the current folder"#]],
    );
}

#[test]
fn unknown_flags_and_commands_name_the_nearest() {
    check(
        &["--sede", "http://127.0.0.1/"],
        expect![[r#"
        2
        error: unexpected argument '--sede' found

        hint: a similar argument exists: '--seed'

        Usage: crawl URL [URL ..] [--output DIR] [FLAGS]
               crawl --output DIR
               crawl COMMAND"#]],
    );
    for (flag, hint) in [
        ("--depth=2", "`--depth` is `--max-depth` here"),
        ("--level=2", "`--level` is `--max-depth` here"),
        ("-ox", "`-o` is `--output` here"),
        ("--user-agent=x", "`--user-agent` is `--agent` here"),
        ("--wait=1s", "`--wait` is `--delay` here"),
        ("--ignore-robots", "no flag ignores robots.txt, "),
        ("--robots=off", "no flag ignores robots.txt, "),
        ("--resources=yes", "did you mean `all`?"),
        ("--progress=none", "did you mean `off`?"),
    ] {
        let (_dir, cmd) = setup("flags");
        let ran = cmd.run(&["http://127.0.0.1:1/", flag]);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        let hints: Vec<_> = ran.stderr.split("hint: ").skip(1).collect();
        assert!(
            hints.len() == 1 && hints[0].starts_with(hint),
            "{}",
            ran.stderr
        );
    }
    check(
        &["reprot", "x"],
        expect![[r#"
            2
            error: unrecognized subcommand 'reprot'

            hint: some similar subcommands exist: 'export', 'report'

            Usage: crawl URL [URL ..] [--output DIR] [FLAGS]
                   crawl --output DIR
                   crawl COMMAND"#]],
    );
}

#[test]
fn explain_without_a_url_names_the_url_as_missing() {
    check(
        &["explain", "DIR"],
        expect![[r#"
        2
        error: the following required arguments were not provided:
          <URL>

        Usage: crawl explain <DIR>... <URL>
        hint: `crawl explain --help` lists its flags and arguments"#]],
    );
    check(
        &["explain"],
        expect![[r#"
        2
        error: the following required arguments were not provided:
          <DIR>...
          <URL>

        Usage: crawl explain <DIR>... <URL>
        hint: `crawl explain --help` lists its flags and arguments"#]],
    );
}

#[test]
fn a_mistyped_command_is_not_a_host() {
    check(
        &["serach", "crawl-example.org"],
        expect![[r#"
        2
        error: unrecognized subcommand 'serach'

        hint: some similar subcommands exist: 'serve', 'extract', 'search'

        Usage: crawl URL [URL ..] [--output DIR] [FLAGS]
               crawl --output DIR
               crawl COMMAND"#]],
    );
    check(
        &["zzz"],
        expect![[r#"
        2
        error: unrecognized subcommand 'zzz'

        Usage: crawl URL [URL ..] [--output DIR] [FLAGS]
               crawl --output DIR
               crawl COMMAND
        hint: `crawl help` lists flags and commands; to crawl a host without a dot, give its URL, `https://zzz/`"#]],
    );
    check(
        &["--resources", "al", "http://127.0.0.1/"],
        expect![[r#"
            2
            error: invalid value 'al' for '--resources[=<off|own|all>]'
              [possible values: off, own, all]

            hint: a similar value exists: 'all'"#]],
    );
    check(
        &["help", "serach"],
        expect![[r#"
        2
        error: unrecognized subcommand 'serach'

        Usage: crawl URL [URL ..] [--output DIR] [FLAGS]
               crawl --output DIR
               crawl COMMAND
        hint: did you mean `crawl search`? `crawl help` lists all commands"#]],
    );
    check(
        &["serve", "c", "--ratte", "1"],
        expect![[r#"
        2
        error: unexpected argument '--ratte' found

        hint: a similar argument exists: '--rate'

        Usage: crawl serve --rate <N> <DIR>"#]],
    );
}

#[test]
fn empty_values() {
    check(
        &["http://127.0.0.1/", "--output", ""],
        expect![[r#"
        2
        error: the value of --output <DIR> is empty
        hint: remove it, or check that the shell variable in it is set"#]],
    );
    for words in [
        &["http://127.0.0.1/", "--output="][..],
        &["http://127.0.0.1/", "--contact", ""],
        &["http://127.0.0.1/", "--log", ""],
        &["--config", ""],
        &["--seed", ""],
        &[""],
        &["report", ""],
        &["report", "c", "--html", ""],
        &["serve", "c", "--title", ""],
    ] {
        let (dir, cmd) = setup("empty");
        let ran = cmd.run(words);
        let error = ran.stderr.lines().next().unwrap_or_default();
        assert!(
            ran.code == 2 && error.ends_with(" is empty"),
            "{words:?}: {error}"
        );
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    }
}

#[test]
fn values() {
    check(
        &["--seed", "http://127.0.0.1/", "--delay", "5"],
        expect![[r#"
            2
            error: invalid value '5' for '--delay <DURATION>': `5` isn't a duration: add a unit, as in `500ms`, `2s` or `1h`
            hint: `crawl --help` lists flags and commands"#]],
    );
    check(
        &["--seed", "http://127.0.0.1/", "--max-body", "5M"],
        expect![[r#"
            2
            error: invalid value '5M' for '--max-body <SIZE>': `5M` isn't a size: unknown unit `M`, use B, kB, MB, GB, TB, KiB, MiB, GiB or TiB
            hint: `crawl --help` lists flags and commands"#]],
    );
    check(
        &["--seed", "http://127.0.0.1/", "--scope", "hosts"],
        expect![[r#"
            2
            error: invalid value 'hosts' for '--scope <MODE>'
              [possible values: host, domain, prefix, any]

            hint: a similar value exists: 'host'"#]],
    );
    check(
        &["--seed", "http://127.0.0.1/", "--include", "("],
        expect![[r#"
            2
            error: bad regular expression in --include `(`: unclosed group
            hint: for the syntax, see https://docs.rs/regex"#]],
    );
    check(
        &["--seed", "http://127.0.0.1/", "--warc", "yes"],
        expect![[r#"
            2
            error: invalid value 'yes' for '--warc[=<on|off>]': `yes` is neither `on` nor `off`
            hint: `crawl --help` lists flags and commands"#]],
    );
    check(
        &["--seed", "http://127.0.0.1/", "--resolve", "a:80"],
        expect![[r#"
            2
            error: invalid value 'a:80' for '--resolve <HOST:PORT:ADDR>': `a:80` isn't HOST:PORT:ADDR: it looks like `example.org:443:192.0.2.7`
            hint: `crawl --help` lists flags and commands"#]],
    );
}

#[test]
fn manners() {
    let contact = ["--contact", "a@e.example"];
    check(
        &["--seed", "https://example.org/"],
        expect![[r#"
        2
        error: no contact given, which is required to crawl example.org
        hint: add --contact MAIL-OR-URL, or set CRAWL_CONTACT, so that owners of visited sites can reach you"#]],
    );
    let fast = ["--seed", "https://example.org/", "--delay", "100ms"];
    check(
        &[&fast[..], &contact].concat(),
        expect![[r#"
        2
        error: --delay 100ms is less than 200ms, which isn't allowed for the public host example.org
        hint: add --own-site if you are responsible for the hosts of this crawl"#]],
    );
    let many = ["--seed", "https://example.org/", "--per-host", "5"];
    check(
        &[&many[..], &contact].concat(),
        expect![[r#"
        2
        error: --per-host 5 is more than 4, which isn't allowed for the public host example.org
        hint: add --own-site if you are responsible for the hosts of this crawl"#]],
    );
    check(
        &["--seed", "https://example.org/", "--contact", "me"],
        expect![[r#"
            2
            error: unusable --contact `me`: not an email address, nor an http or https URL
            hint: it looks like `you@example.org` or `https://example.org/bot`"#]],
    );
}

#[test]
fn contradictions() {
    check(
        &[
            "--seed",
            "http://127.0.0.1/",
            "--per-host",
            "3",
            "--per-site",
            "2",
        ],
        expect![[r#"
            2
            error: --per-site 2 is less than --per-host 3
            hint: a site includes its hosts: raise --per-site or lower --per-host"#]],
    );
    check(
        &["--seed", "http://127.0.0.1/", "man"],
        expect![[r#"
        2
        error: the subcommand 'man' cannot be used with '--seed <URL>'

        Usage: crawl URL [URL ..] [--output DIR] [FLAGS]
               crawl --output DIR
               crawl COMMAND
        hint: `crawl --help` lists flags and commands"#]],
    );
    check(
        &["robots", "--file", "x", "--fetch", "http://127.0.0.1/"],
        expect![[r#"
            2
            error: the argument '--file <FILE>' cannot be used with '--fetch'

            Usage: crawl robots --file <FILE> <URL>...
            hint: `crawl robots --help` lists its flags and arguments"#]],
    );
}

#[test]
fn nothing_to_go_on_with() {
    check(
        &["--output", "nowhere"],
        expect![[r#"
        2
        error: no seed given, and there is no crawl in nowhere to continue
        hint: start one with `crawl URL`"#]],
    );
    check(
        &["report", "nowhere"],
        expect![[r#"
            2
            error: no crawl in `nowhere`
            hint: give the directory of a crawl, with its pages.jsonl"#]],
    );
    check(
        &["explain", "nowhere", "http://a.example/"],
        expect![[r#"
            2
            error: no crawl in `nowhere`
            hint: give the directory of a crawl, with its pages.jsonl"#]],
    );
}

#[test]
fn output_that_is_not_a_directory() {
    let (dir, cmd) = setup("output");
    dir.write("file", "precious");
    std::os::unix::fs::symlink("nowhere", dir.file("link")).unwrap();
    for output in ["file", "link"] {
        let continued = ["--output", output];
        let started = ["http://127.0.0.1:1/", "--output", output];
        for args in [&continued[..], &started] {
            let ran = cmd.run(args);
            let expected = format!(
                "error: `{output}` is not a directory\nhint: set --output to a new or empty \
                 directory, or to that of an earlier crawl\n"
            );
            assert_eq!((ran.code, ran.stderr), (2, expected));
        }
    }
}

#[test]
fn log_that_can_not_be_written() {
    check(
        &[
            "--seed",
            "http://127.0.0.1/",
            "--output",
            "o",
            "--log",
            "o/x.log",
        ],
        expect![[r#"
            2
            error: --log o/x.log is inside the crawl's directory o, which may contain only the crawl's own files
            hint: choose a place outside that directory"#]],
    );
    check(
        &["--seed", "http://127.0.0.1/", "--log", "no/such/dir/x.log"],
        expect![[r#"
            2
            error: can't write to the log `no/such/dir/x.log`: No such file or directory (os error 2)
            hint: set --log to a file in an existing directory"#]],
    );
}

#[test]
fn robots_txt_is_kept_no_longer_than_the_standard_allows() {
    check(
        &["--seed", "http://127.0.0.1/", "--robots-max-age", "2d"],
        expect![[r#"
            2
            error: --robots-max-age 2d is more than 1d
            hint: a copy of robots.txt expires after that (RFC 9309 sections 2.3.1.4 and 2.4)"#]],
    );
    check(
        &["--seed", "http://127.0.0.1/", "--robots-last-good", "31d"],
        expect![[r#"
            2
            error: --robots-last-good 31d is more than 30d
            hint: a copy of robots.txt expires after that (RFC 9309 sections 2.3.1.4 and 2.4)"#]],
    );
    check(
        &["--seed", "http://127.0.0.1/", "--robots-retry", "0s"],
        expect![[r#"
            2
            error: --robots-retry is 0, so robots.txt would be fetched endlessly
            hint: remove --robots-retry to use the default"#]],
    );
    check(
        &[
            "--seed",
            "http://127.0.0.1/",
            "--robots-retry",
            "1h",
            "--robots-retry-most",
            "10m",
        ],
        expect![[r#"
            2
            error: --robots-retry 1h is more than --robots-retry-most 10m
            hint: --robots-retry is the first and shortest wait"#]],
    );
}
