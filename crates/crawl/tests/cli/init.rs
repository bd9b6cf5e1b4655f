//! `crawl init`: answers to its questions become a configuration, which a crawl can use.

use crawl_testweb::{HttpAnswer, TestWeb};

use crate::harness::setup;

#[test]
fn a_crawl_runs_with_the_written_config() {
    let (dir, cmd) = setup("init");
    let web = TestWeb::builder()
        .hosts(1)
        .sitemap(false)
        .script(
            0,
            "/",
            HttpAnswer::html("<title>Tea</title><p>green tea</p>"),
        )
        .start();
    let answers = format!("{}\n\nsearch\ny\n20\nkept\n", web.url(0, "/"));
    let ran = cmd.run_with_stdin(&["init", "site.toml"], &answers);
    let expected = "Wrote site.toml. Start the crawl with:\n  crawl --config site.toml\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(ran.stdout, expected);
    assert!(dir.read("site.toml").contains("\nmax-pages = 20\n"));
    let checked = cmd.run(&["config", "--check", "site.toml"]).ok();
    assert_eq!(checked, "site.toml: no problems found\n");
    let crawled = cmd.run(&["--config", "site.toml", "-q"]);
    assert_eq!(crawled.code, 0, "{}", crawled.stderr);
    let results = cmd.run(&["search", "kept", "green"]).ok();
    assert!(results.contains("Tea"), "{results}");
}

#[test]
fn the_end_of_the_answers_takes_the_defaults() {
    let (dir, cmd) = setup("init-defaults");
    let ran = cmd.run_with_stdin(&["init"], "example.org\nme@b.example");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let text = dir.read("crawl.toml");
    assert!(text.contains("\nmax-pages = 10000\n") && text.contains("\nindex = \"on\"\n"));
    assert!(
        text.contains("\noutput = \"crawl-example.org\"\n"),
        "{text}"
    );
}

#[test]
fn a_missing_or_unusable_answer_is_named_and_nothing_is_written() {
    let (dir, cmd) = setup("init-missing");
    for (answers, said) in [
        ("", "error: What should be crawled? "),
        ("example.org\n", "error: Who are you? "),
        ("example.org\nnobody\n", "unusable contact `nobody`"),
        ("example.org\n\u{0}", "error: Who are you? "),
    ] {
        let ran = cmd.run_with_stdin(&["init"], answers);
        assert_eq!(ran.code, 2, "{answers:?}");
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
        assert!(ran.stderr.contains("\nhint: "), "{}", ran.stderr);
        assert!(!dir.file("crawl.toml").exists());
    }
    let ran = cmd.run_with_stdin(&["init"], &"x".repeat(10_000));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
}

#[test]
fn an_existing_file_is_never_overwritten() {
    let (dir, cmd) = setup("init-exists");
    dir.write("crawl.toml", "mine");
    std::os::unix::fs::symlink("nowhere", dir.file("link.toml")).unwrap();
    for file in ["crawl.toml", "link.toml"] {
        let ran = cmd.run_with_stdin(&["init", file], "example.org\nme@b.example\n");
        assert_eq!(ran.code, 2);
        let message = format!("error: {file} already exists, and is never overwritten\nhint: ");
        assert!(ran.stderr.starts_with(&message), "{}", ran.stderr);
    }
    assert_eq!(dir.read("crawl.toml"), "mine");
    assert!(!dir.file("nowhere").exists());
    let ran = cmd.run(&["init", "no/such.toml"]);
    assert_eq!(ran.code, 3);
    assert!(
        ran.stderr.contains("\nhint: the folder `no` doesn't exist"),
        "{}",
        ran.stderr
    );
}

#[test]
fn without_a_terminal_nothing_is_offered() {
    let (dir, cmd) = setup("init-offer");
    let ran = cmd.run_with_stdin(&[], "y\nexample.org\n");
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.starts_with("error: no seed given\nhint: "),
        "{}",
        ran.stderr
    );
    assert!(!dir.file("crawl.toml").exists());
}
