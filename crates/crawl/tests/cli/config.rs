//! Configuration files, and precedence of their sources.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;

use crawl_testweb::TestWeb;
use expect_test::expect;

use crate::harness::setup;

#[test]
fn crawl_config_prints_the_committed_file() {
    let (_dir, cmd) = setup("config");
    let printed = cmd.run(&["config"]).ok();
    assert_eq!(printed, include_str!("../../../../config/default.toml"));
}

#[test]
fn flags_win_over_files_and_environment() {
    let (dir, mut cmd) = setup("wins");
    dir.write("c.toml", "seed = [\"http://a.example/\"]\n[operator]\ncontact = \"file@e.example\"\n[politeness]\ndelay = \"3s\"\nper-host = 2\n");
    dir.write(
        "home/.config/crawl/config.toml",
        "[operator]\ncontact = \"user@e.example\"\n",
    );
    let effective = |cmd: &crate::harness::Cmd, more: &[&str]| {
        let mut args = vec!["config", "--effective"];
        args.extend(more);
        let printed = cmd.run(&args).ok();
        let line = |key: &str| {
            let line = printed.lines().find(|line| line.starts_with(key));
            line.unwrap().to_owned()
        };
        format!("{}, {}", line("contact"), line("delay ="))
    };
    let seed = ["--seed", "http://a.example/"];
    let user = effective(&cmd, &seed);
    assert_eq!(user, "contact = \"user@e.example\", delay = \"1s\"");
    let file = effective(&cmd, &["--config", "c.toml"]);
    assert_eq!(file, "contact = \"file@e.example\", delay = \"3s\"");
    cmd.env("CRAWL_CONTACT", "env@e.example");
    let env = effective(&cmd, &["--config", "c.toml", "--delay", "4s"]);
    assert_eq!(env, "contact = \"env@e.example\", delay = \"4s\"");
    let flag = effective(&cmd, &["--config", "c.toml", "--contact", "flag@e.example"]);
    assert_eq!(flag, "contact = \"flag@e.example\", delay = \"3s\"");
    cmd.env("XDG_CONFIG_HOME", &dir.file("xdg").display().to_string());
    cmd.env("CRAWL_CONTACT", "");
    dir.write(
        "xdg/crawl/config.toml",
        "[operator]\ncontact = \"xdg@e.example\"\n",
    );
    assert_eq!(
        effective(&cmd, &seed),
        "contact = \"xdg@e.example\", delay = \"1s\""
    );
}

#[test]
fn effective_configuration_is_read_back() {
    let (dir, cmd) = setup("back");
    let flags = [
        "config",
        "--effective",
        "--seed",
        "http://a.example/",
        "--delay",
        "1m30s",
        "--max-pages",
        "5",
        "--include",
        "x",
    ];
    let first = cmd.run(&flags).ok();
    dir.write("c.toml", &first);
    let second = cmd
        .run(&["config", "--effective", "--config", "c.toml"])
        .ok();
    assert_eq!(first, second);
}

#[test]
fn unknown_keys_are_refused_by_name() {
    let (dir, cmd) = setup("unknown");
    dir.write("c.toml", "[politeness]\ndelay = \"1s\"\nper_hots = 2\n");
    let ran = cmd.run(&["--config", "c.toml"]);
    expect![[r#"
        2
        error: c.toml:3:1: unknown key `per_hots` in [politeness]
        hint: did you mean `per-host`?"#]]
    .assert_eq(&ran.refusal(&dir));
    let ran = cmd.run(&["--config", "none.toml"]);
    expect![[r#"
        2
        error: can't read the configuration none.toml: No such file or directory (os error 2)
        hint: `crawl config` prints a configuration with every key"#]]
    .assert_eq(&ran.refusal(&dir));
}

#[test]
fn site_tables_are_read_and_checked() {
    let (dir, cmd) = setup("sites");
    let write = |table: &str| {
        let head = "seed = [\"https://example.org/\"]\n[operator]\ncontact = \"a@e.example\"\n";
        dir.write("c.toml", &format!("{head}{table}"));
    };
    // Errors are found before any request is sent, so each run ends immediately.
    let check = |table: &str| {
        write(table);
        cmd.run(&["--config", "c.toml", "--max-time", "0s", "-q"])
            .stderr
    };
    let effective = |table: &str| {
        write(table);
        let text = cmd
            .run(&["config", "--effective", "--config", "c.toml"])
            .ok();
        text[text.find("[site").unwrap_or(text.len())..].to_owned()
    };
    expect![[r#"
        [site."example.org"]
        delay = "10s"
        quiet-hours = ["22:00-06:00"]
        max-pages = 10

        [group]
    "#]]
    .assert_eq(&effective("[site.\"example.org\"]\ndelay = \"10s\"\nmax_pages = 10\nquiet-hours = [\"22:00-06:00\"]\n"));
    expect![[r#"
        error: c.toml:5:1: unknown key `dealy` in [site."example.org"]
        hint: did you mean `delay`?
    "#]]
    .assert_eq(&check("[site.\"example.org\"]\ndealy = \"10s\"\n"));
    expect![[r#"
        error: c.toml:5:1: `delay` in [site] must be a table: [site."delay"]
    "#]]
    .assert_eq(&check("[site]\ndelay = \"10s\"\n"));
    expect![[r#"
        error: unusable table [site."exa/mple"]: not a host name or address: `exa/mple`
        hint: use a host as its name, as in [site."example.org"], which includes subdomains
    "#]]
    .assert_eq(&check("[site.\"exa/mple\"]\ndelay = \"10s\"\n"));
    expect![[r#"
        error: delay 10ms is less than 200ms, which isn't allowed for the public host b.example
        hint: add --own-site if you are responsible for the hosts of this crawl
    "#]]
    .assert_eq(&check("[site.\"b.example\"]\ndelay = \"10ms\"\n"));
    expect![[r#"
        error: c.toml:5:15: `quiet-hours`: `8-9` isn't a time range: it looks like `22:00-06:00`, in UTC
        hint: `crawl config` prints a configuration with every key
    "#]]
    .assert_eq(&check("[site.\"b.example\"]\nquiet-hours = [\"8-9\"]\n"));
}

#[test]
fn paths_may_have_any_bytes() {
    let (dir, cmd) = setup("bytes");
    let web = TestWeb::builder().hosts(1).pages(3).start();
    let seed = web.url(0, "/");
    let (crawl, log) = (OsStr::from_bytes(b"c\xff"), OsStr::from_bytes(b"l\xff"));
    let toml = Path::new(crawl).join("crawl.toml");
    let run = |args: &[&OsStr]| {
        let ran = cmd.command(&[]).args(args).output().unwrap();
        let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.success(), "{args:?}: {stderr}");
        stderr
    };
    let args = |text: &'static str| text.split(' ').map(OsStr::new);
    let begin = [OsStr::new("--seed"), OsStr::new(&seed)];
    let more = args("--delay 0s --index on --progress off --output");
    let logged = [crawl, OsStr::new("--log"), log];
    run(&begin
        .into_iter()
        .chain(more)
        .chain(logged)
        .collect::<Vec<_>>());
    assert!(fs::metadata(dir.path().join(log)).unwrap().len() > 0);
    let text = fs::read_to_string(dir.path().join(&toml)).unwrap();
    assert!(text.contains("output = \"c\u{fffd}\""), "{text}");
    run(&[OsStr::new("--output"), crawl]);
    let config = [OsStr::new("--config"), toml.as_os_str()];
    run(&[&[OsStr::new("--output"), crawl], &config[..]].concat());
    for command in ["report", "audit", "index"] {
        run(&[OsStr::new(command), crawl]);
    }
    run(&[OsStr::new("search"), crawl, OsStr::new("a")]);
    run(&[OsStr::new("explain"), crawl, OsStr::new(&seed)]);
    let html = [OsStr::new("--html"), OsStr::from_bytes(b"h\xff")];
    run(&[&[OsStr::new("report"), crawl], &html[..]].concat());
    let export = args("export --to static --out").chain([OsStr::from_bytes(b"e\xff"), crawl]);
    run(&export.collect::<Vec<_>>());
}

#[test]
fn a_check_reports_all_errors_with_their_places() {
    let (dir, cmd) = setup("check");
    dir.write(
        "study.toml",
        "seed = [\"http://a.example/\", \"ftp://b.example/\"]\n[politeness]\nper-host = 3\nper-site = 2\n\
         delay = \"1ms\"\n[fetch]\n  max-body = \"1GiB\"\n",
    );
    let checked = cmd.run(&["config", "--check", "study.toml"]);
    assert_eq!((checked.code, checked.stdout.as_str()), (2, ""));
    expect![[r#"
        error: study.toml:1:1: unusable seed `ftp://b.example/`: scheme `ftp` is not http or https
        hint: give a URL such as `https://example.org/`, or a host such as `example.org`
        error: study.toml:7:3: --max-body 1GiB is more than 255MiB
        hint: longer archive records could not be read back
        error: study.toml:4:1: --per-site 2 is less than --per-host 3
        hint: a site includes its hosts: raise --per-site or lower --per-host
        error: no contact given, which is required to crawl a.example
        hint: add --contact MAIL-OR-URL, or set CRAWL_CONTACT, so that owners of visited sites can reach you
        error: study.toml:5:1: --delay 1ms is less than 200ms, which isn't allowed for the public host a.example
        hint: add --own-site if you are responsible for the hosts of this crawl
    "#]].assert_eq(&checked.stderr);
    // Values from flags are not attributed to the file.
    let flags = ["--seed", "http://127.0.0.1/", "--max-body", "2GiB"];
    let checked = cmd.run(&[&["config", "--check", "study.toml"], &flags[..]].concat());
    expect![[r#"
        error: --max-body 2GiB is more than 255MiB
        hint: longer archive records could not be read back
        error: study.toml:4:1: --per-site 2 is less than --per-host 3
        hint: a site includes its hosts: raise --per-site or lower --per-host
    "#]]
    .assert_eq(&checked.stderr);
    dir.write("study.toml", "[politeness]\ndelay = \"2s\"\n");
    let checked = cmd.run(&["config", "--check", "study.toml"]);
    assert_eq!(checked.ok(), "study.toml: no problems found\n");
    let checked = cmd.run(&["config", "--check", "no.toml"]);
    assert_eq!(checked.code, 2);
}

/// Check that an invalid word, a bad pattern or a missing list hides no other errors. Errors that
/// only result from another one aren't reported.
#[test]
fn a_check_continues_after_invalid_words() {
    let (dir, cmd) = setup("check-further");
    dir.write(
        "study.toml",
        "seed = [\"http://127.0.0.1/\"]\n[operator]\nkind = \"research\"\ninstituton = \"I\"\n\
         contact = \"me@e.example\"\noperator-name = \"N\"\n\
         [scope]\nexclude = ['(']\nhost = [\"@no.txt\"]\n\
         [sample]\nsample = 3\nwalk = 9\n[politeness]\ndelay = \"soon\"\n\
         [group.g]\nhosts = [\"@no.txt\"]\n[group.i]\nhosts = [\"a.example\", \"a.example\"]\n",
    );
    let checked = cmd.run(&["config", "--check", "study.toml"]);
    assert_eq!((checked.code, checked.stdout.as_str()), (2, ""));
    expect![[r#"
        error: study.toml:4:1: unknown key `instituton` in [operator]
        hint: did you mean `institution`?
        error: study.toml:14:9: `delay`: `soon` isn't a duration: it looks like `500ms`, `2s`, `1m30s`, `1h` or `1d`
        hint: `crawl config` prints a configuration with every key
        error: study.toml:8:12: bad regular expression in `exclude` `(`: unclosed group
        hint: for the syntax, see https://docs.rs/regex
        error: study.toml:9:1: can't read no.txt: No such file or directory (os error 2)
        hint: give an existing file; relative paths start at the current folder
        error: study.toml:16:1: can't read no.txt: No such file or directory (os error 2)
        hint: give an existing file; relative paths start at the current folder
        error: study.toml:12:1: can't combine --sample with --walk
        hint: remove one of them
        error: study.toml:17:8: unusable host in [group."i"]: `a.example` is listed twice
        hint: a host can be in only one group; a name includes its subdomains
        error: study.toml:3:1: no study given, which is required for research crawls
        hint: add --study, or set `study` under [operator] in a file for --config
        error: study.toml:3:1: no study-page given, which is required for research crawls
        hint: add --study-page, or set `study-page` under [operator] in a file for --config
    "#]].assert_eq(&checked.stderr);
}

/// Neither lines that aren't TOML nor a missing list of hosts hide other errors: one check finds
/// all of them.
#[test]
fn a_check_continues_after_lines_that_are_not_toml() {
    let (dir, cmd) = setup("check-broken");
    dir.write(
        "study.toml",
        "seed = [\"http://127.0.0.1/\"]\n[operator]\ncontact = \"me\nkind = \"research\"\n\
         operator-name = \"N\"\ninstitution = \"I\"\nstudy = = 1\n\
         [scope]\nmax-depth = 1\nmax-depth = 2\ndealy = 1\nhost = [\"a.example\",\n\
         [politeness]\ndelay = 1s\nper-host = 3\nper-site = 2\n\
         [group.g]\nhosts = [\"@no.txt\"]\n[group.i]\nhosts = [\"a.example\", \"a.example\"]\n\
         [site.\"a.example\"]\nper-host = 0\n[site.\"b.example\"]\nper-host = 0\n",
    );
    let checked = cmd.run(&["config", "--check", "study.toml"]);
    assert_eq!((checked.code, checked.stdout.as_str()), (2, ""));
    expect![[r#"
        error: study.toml:3:14: invalid basic string, expected `"`
        hint: `crawl config` prints a configuration with every key
        error: study.toml:7:9: extra `=`, expected nothing
        hint: `crawl config` prints a configuration with every key
        error: study.toml:7:11: unexpected key or value, expected newline, `#`
        hint: `crawl config` prints a configuration with every key
        error: study.toml:10:1: duplicate key
        hint: `crawl config` prints a configuration with every key
        error: study.toml:12:21: unclosed array, expected `]`
        hint: `crawl config` prints a configuration with every key
        error: study.toml:14:9: string values must be quoted, expected literal string
        hint: `crawl config` prints a configuration with every key
        error: study.toml:11:1: unknown key `dealy` in [scope]
        hint: did you mean `delay` of [politeness]?
        error: study.toml:18:1: can't read no.txt: No such file or directory (os error 2)
        hint: give an existing file; relative paths start at the current folder
        error: study.toml:16:1: --per-site 2 is less than --per-host 3
        hint: a site includes its hosts: raise --per-site or lower --per-host
        error: study.toml:22:1: per-host is 0 in [site."a.example"], so nothing could be fetched
        hint: remove the key to use the crawl's value
        error: study.toml:24:1: per-host is 0 in [site."b.example"], so nothing could be fetched
        hint: remove the key to use the crawl's value
        error: study.toml:19:8: unusable host in [group."i"]: `a.example` is listed twice
        hint: a host can be in only one group; a name includes its subdomains
        error: study.toml:4:1: no study-page given, which is required for research crawls
        hint: add --study-page, or set `study-page` under [operator] in a file for --config
    "#]]
    .assert_eq(&checked.stderr);
    // The broken line may be the head of a table, so it is unknown which table the keys below it
    // belong to. No key is reported as missing, because the keys below may be the required ones.
    dir.write(
        "study.toml",
        "seed = [\"http://127.0.0.1/\"]\n[operator]\nkind = \"research\"\n[operator\nstudy = 1\n\
         [scope]\nscope = \"hosts\"\n",
    );
    let checked = cmd.run(&["config", "--check", "study.toml"]);
    expect![[r#"
        error: study.toml:4:10: unclosed table, expected `]`
        hint: `crawl config` prints a configuration with every key
        error: study.toml:7:9: `scope`: `hosts` isn't one of `host`, `domain`, `prefix`, `any`
        hint: did you mean `host`?
    "#]]
    .assert_eq(&checked.stderr);
}

#[test]
fn a_study_names_its_operator() {
    let (dir, cmd) = setup("study");
    dir.write(
        "study.toml",
        "seed = [\"http://a.example/\"]\n[operator]\nkind = \"research\"\ninstitution = \"I\"\n\
         study-page = \"our page\"\n",
    );
    let checked = cmd.run(&["config", "--check", "study.toml"]);
    assert_eq!(checked.code, 2);
    expect![[r#"
        error: study.toml:5:1: unusable --study-page `our page`: not a URL: relative URL without a base
        hint: it looks like `https://example.org/study`
        error: study.toml:3:1: no contact given, which is required for research crawls
        hint: add --contact, or set `contact` under [operator] in a file for --config
        error: study.toml:3:1: no operator-name given, which is required for research crawls
        hint: add --operator-name, or set `operator-name` under [operator] in a file for --config
        error: study.toml:3:1: no study given, which is required for research crawls
        hint: add --study, or set `study` under [operator] in a file for --config
    "#]].assert_eq(&checked.stderr);
}

#[test]
fn the_file_for_a_study_is_one_that_runs() {
    let web = TestWeb::builder().hosts(1).start();
    let (dir, cmd) = setup("research");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/research.toml");
    let file = file.to_str().unwrap();
    let placeholders = cmd.run(&["config", "--check", file]);
    assert_eq!(placeholders.code, 2);
    let contact = "`contact` is still the placeholder `you@example.org`";
    assert!(
        placeholders.stderr.contains(contact),
        "{}",
        placeholders.stderr
    );
    let url = web.url(0, "/");
    let quick = [
        "--delay",
        "0s",
        "--delay-factor",
        "0",
        "--per-host",
        "4",
        "--output",
        "out",
    ];
    let args = [&["--config", file, "--seed", &url], &quick[..]].concat();
    let ended = cmd.run(&args);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(dir.rows("out/pages.jsonl").len() > 1);
    assert!(!dir.rows("out/links.jsonl").is_empty());
    let report = cmd.run(&["report", "out"]).ok();
    for line in [
        "contact   you@example.org",
        "operator  Your Name",
        "for       Your Institute",
        "study     How public bodies publish their press releases",
        "about     https://example.org/study",
    ] {
        assert!(report.contains(line), "{report}");
    }
    let json: serde_json::Value = serde_json::from_str(&dir.read("out/report.json")).unwrap();
    assert_eq!(
        json["crawl"]["operator"]["study_page"],
        "https://example.org/study"
    );
    assert!(
        dir.read("out/report.html")
            .contains("study: How public bodies")
    );
    // A resumed crawl needs no file: the directory remembers the operator.
    let effective = cmd.run(&["config", "--effective", "--output", "out"]).ok();
    assert!(effective.contains("kind = \"research\""), "{effective}");
}

/// Invalid settings files, each with one error.
const FAULTY: [&str; 14] = [
    "seed = \"http://a.example/\"",
    "seed = [7]",
    "seeds = []",
    "[scope]\nmax-page = 5",
    "[scope]\nmax-pages = -1",
    "[scope]\nmax-pages = \"many\"",
    "[scope]\nscope = \"hosts\"",
    "[scope]\nsitemaps = \"yes\"",
    "[politeness]\ndelay = \"5\"",
    "[politeness]\nper-host = \"two\"",
    "[politeness]\nquiet-hours = [\"8-18\"]",
    "[fetch]\nmax-body = \"5 miles\"",
    "[site.\"a.example\"]\ndelay = 5",
    "[site.\"a.example\"]\nmax-depth = 5",
];

#[test]
#[ignore = "needs check-jsonschema, which `cargo xtask test` installs"]
fn the_schema_takes_every_file_of_settings_and_refuses_faulty_ones() {
    let python = std::env::var_os("CRAWL_PYTHON_BIN").expect("CRAWL_PYTHON_BIN is not set");
    let (dir, mut cmd) = setup("schema");
    cmd.env("KEY", "value");
    dir.write("schema.json", &cmd.run(&["config", "--schema"]).ok());
    let validate = |args: &[&OsStr]| {
        let mut command = Command::new(Path::new(&python).join("check-jsonschema"));
        command.arg("--no-cache").args(args).current_dir(dir.path());
        command.output().unwrap()
    };
    let whole = validate(&["--check-metaschema".as_ref(), "schema.json".as_ref()]);
    assert!(whole.status.success(), "{whole:?}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files: Vec<_> = fs::read_dir(root.join("config"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "toml"))
        .collect();
    assert!(files.len() >= 2, "{files:?}");
    // Also validate the program's own output, and a file with every way to write a value.
    let effective = ["config", "--effective", "--seed", "http://127.0.0.1/"];
    dir.write("effective.toml", &cmd.run(&effective).ok());
    dir.write(
        "written.toml",
        "seed = []\n[scope]\nsitemaps = true\nmax-pages = \"5\"\nmax-bytes = \"1.5 GiB\"\nmax-depth = 3\n\
         [politeness]\ndelay = 0\naddress-delay = \"1m30s\"\ndelay-factor = 1.5\nmax-rate = \"2.5\"\n\
         quiet-hours = [\"22:00-06:00\"]\n[recrawl]\nevery = \"never\"\n[site.\"a.example\"]\nper-host = 2\n\
         headers = { X-Key = \"env:KEY\" }\nplain-http = \"on\"\n",
    );
    files.extend(["effective.toml", "written.toml"].map(|name| dir.file(name)));
    for file in &files {
        // Replace the placeholders of the example files, because placeholders are refused.
        let text = fs::read_to_string(file).unwrap();
        let mut filled = text.replace("example.org", "one.test");
        for (placeholder, value) in [
            ("example.net", "two.test"),
            ("example.com", "three.test"),
            ("Your Name", "A Name"),
            ("Your Institute", "An Institute"),
        ] {
            filled = filled.replace(placeholder, value);
        }
        dir.write("filled.toml", &filled);
        let read = cmd.run(&["config", "--check", "filled.toml"]);
        assert_eq!(read.code, 0, "{}: {}", file.display(), read.stderr);
    }
    let mut args: Vec<&OsStr> = vec!["--schemafile".as_ref(), "schema.json".as_ref()];
    args.extend(files.iter().map(|file| file.as_os_str()));
    let validated = validate(&args);
    assert!(validated.status.success(), "{validated:?}");
    let names: Vec<_> = (0..FAULTY.len())
        .map(|number| format!("faulty-{number}.toml"))
        .collect();
    for (name, faulty) in names.iter().zip(FAULTY) {
        dir.write(name, faulty);
        let read = cmd.run(&["config", "--check", name]);
        assert_eq!(read.code, 2, "{faulty}");
    }
    let mut args: Vec<&OsStr> = ["--output-format", "json", "--schemafile", "schema.json"]
        .map(OsStr::new)
        .into();
    args.extend(names.iter().map(OsStr::new));
    let refused: serde_json::Value = serde_json::from_slice(&validate(&args).stdout).unwrap();
    let refused = refused["errors"].as_array().unwrap().iter();
    let refused: Vec<_> = refused
        .map(|error| error["filename"].as_str().unwrap())
        .collect();
    for (name, faulty) in names.iter().zip(FAULTY) {
        assert!(refused.contains(&name.as_str()), "{faulty}: {refused:?}");
    }
}

#[test]
fn errors_in_site_tables_are_reported_with_their_line() {
    let (dir, cmd) = setup("site-lines");
    dir.write(
        "c.toml",
        "seed = [\"http://127.0.0.1/\"]\n\n[site.\"exa/mple\"]\ndelay = \"10s\"\n\n\
         [site.\"a.example\"]\nmax-pages = 3\nbasic-auth = \"env:NONE\"\n",
    );
    let ran = cmd.run(&["config", "--check", "c.toml"]);
    expect![[r#"
        2
        error: c.toml:3:7: unusable table [site."exa/mple"]: not a host name or address: `exa/mple`
        hint: use a host as its name, as in [site."example.org"], which includes subdomains
        error: c.toml:8:1: unusable `basic-auth` in [site."a.example"]: the environment variable `NONE` isn't set, or isn't UTF-8
        hint: values may come from the environment: `env:NAME` uses the variable NAME"#]].assert_eq(&ran.refusal(&dir));
    dir.write(
        "c.toml",
        "seed = [\"http://b.example/\"]\n[operator]\ncontact = \"a@b.example\"\n\
         [site.\"b.example\"]\nmax-pages = 3\ndelay = \"10ms\"\n",
    );
    let ran = cmd.run(&["config", "--check", "c.toml"]);
    expect![[r#"
        2
        error: c.toml:6:1: delay 10ms is less than 200ms, which isn't allowed for the public host b.example
        hint: add --own-site if you are responsible for the hosts of this crawl"#]].assert_eq(&ran.refusal(&dir));
    dir.write(
        "c.toml",
        "[site.\"b.example\"]\nmax-pages = 3\nper-host = 0\n",
    );
    let ran = cmd.run(&["config", "--check", "c.toml"]);
    expect![[r#"
        2
        error: c.toml:3:1: per-host is 0 in [site."b.example"], so nothing could be fetched
        hint: remove the key to use the crawl's value"#]]
    .assert_eq(&ran.refusal(&dir));
}
