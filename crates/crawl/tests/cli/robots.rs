//! `crawl robots`: verdicts of robots.txt files, given as files and fetched.

use crawl_testweb::{HttpAnswer, TestWeb};
use expect_test::expect;
use serde_json::Value;

use crate::harness::setup;
use crate::unreachable_seeds::closed_port;

const FILE: &str = "User-agent: *\nAllow: /private/press\nDisallow: /private\nCrawl-delay: 2\n\nUser-agent: gentle\nDisallow: /\n";

#[test]
fn verdicts_name_the_deciding_line() {
    let (dir, cmd) = setup("verdicts");
    dir.write("robots.txt", FILE);
    let urls = ["http://e.example/private/x", "/private/press", "/"];
    let ran = cmd.run(&[&["robots", "--file", "robots.txt"][..], &urls].concat());
    assert_eq!(ran.code, 1);
    expect![[r#"
        disallowed  http://e.example/private/x
                    by `Disallow: /private` on line 3, group `*` on line 1, read as rfc9309
        allowed     /private/press
                    by `Allow: /private/press` on line 2, group `*` on line 1, read as rfc9309
        allowed     /
                    no rule matches, group `*` on line 1 (robots.txt: read)
        robots.txt line 4: Crawl-delay: 2 s
    "#]]
    .assert_eq(&ran.stdout);
    let ran = cmd.run(&["robots", "--file", "robots.txt", "/private/press"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
}

#[test]
fn other_records_and_preferences_are_printed_with_their_lines() {
    let (dir, cmd) = setup("records");
    dir.write(
        "robots.txt",
        "User-agent: *\nDisallow:\nRequest-rate: 1/5m 0600-0845\nVisit-time: 2200-0500\nContent-Usage: /a train-ai=n\n\
         Clean-param: sid /forum\nHost: www.e.example\nSitemap: http://e.example/s.xml\n",
    );
    let text = cmd.run(&["robots", "--file", "robots.txt", "/a"]).ok();
    let remarks: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("robots.txt line"))
        .collect();
    expect![[r#"
        robots.txt line 3: Request-rate: 1 in 300 s, 06:00 to 08:45 UTC
        robots.txt line 4: Visit-time: 22:00 to 05:00 UTC
        robots.txt line 6: Clean-param: sid /forum
        robots.txt line 7: Host: www.e.example
        robots.txt line 8: Sitemap: http://e.example/s.xml"#]]
    .assert_eq(&remarks[..5].join("\n"));
    let line = cmd
        .run(&["robots", "--json", "--file", "robots.txt", "/a"])
        .ok();
    let object: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(object["usage"]["train-ai"], "refused");
    assert_eq!(object["usage"]["search"], Value::Null);
    assert_eq!(object["records"][1]["field"], "Visit-time");
    assert_eq!(object["records"][1]["line"], 4);
}

#[test]
fn json_objects() {
    let (dir, cmd) = setup("json");
    dir.write("robots.txt", FILE);
    let args = [
        "robots",
        "--json",
        "--agent",
        "Gentle",
        "--file",
        "robots.txt",
        "/x",
        "/robots.txt",
    ];
    let ran = cmd.run(&args);
    assert_eq!(ran.code, 1);
    let objects: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(objects[0]["allowed"], false);
    assert_eq!(
        (&objects[0]["line"], &objects[0]["rule"]),
        (&7.into(), &"Disallow: /".into())
    );
    assert_eq!(objects[0]["group"]["agent"], "gentle");
    assert_eq!(objects[1]["allowed"], true);
}

#[test]
fn batch_answers_in_order() {
    let (_dir, cmd) = setup("batch");
    let lines = [
        r#"{"robots": "User-agent: *\nDisallow: /p", "agent": "any", "url": "http://e.example/p?q"}"#,
        r#"{"robots": {"base64": "VXNlci1hZ2VudDogKgpBbGxvdzogLwo="}, "agent": "any", "url": "/p"}"#,
        r#"{"robots": null, "agent": "any", "url": "/p"}"#,
    ];
    let ran = cmd.run_with_stdin(&["robots", "--batch"], &lines.join("\n"));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    expect![[r#"
        {"allowed":false,"line":2,"rule":"Disallow: /p"}
        {"allowed":true,"line":2,"rule":"Allow: /"}
        {"allowed":true,"line":null,"rule":null}
    "#]]
    .assert_eq(&ran.stdout);
    let ran = cmd.run_with_stdin(&["robots", "--batch"], "{}\n");
    assert_eq!(ran.code, 2);
    assert!(ran.stdout.starts_with("{\"error\":"));
}

#[test]
fn profiles_differ() {
    let (dir, cmd) = setup("profiles");
    dir.write("robots.txt", "User-agent: *\nDisallow: /a*b\n");
    let code = |profile: &str| {
        let args = [
            "robots",
            "--robots",
            profile,
            "--file",
            "robots.txt",
            "/axb",
        ];
        cmd.run(&args).code
    };
    assert_eq!(code("rfc9309"), 1);
    assert_eq!(
        code("koster1994"),
        0,
        "the standard of 1994 knows no wildcards"
    );
    assert_eq!(code("strictest"), 1);
}

#[test]
fn fetched_files_decide() {
    let (dir, cmd) = setup("fetch");
    let web = TestWeb::builder()
        .hosts(4)
        .script(
            0,
            "/robots.txt",
            HttpAnswer::text("User-agent: *\nDisallow: /p"),
        )
        .script(1, "/robots.txt", HttpAnswer::of(404))
        .script(2, "/robots.txt", HttpAnswer::of(503))
        .start();
    let to = web.url(0, "/robots.txt");
    web.script(3, "/robots.txt", HttpAnswer::redirect(301, &to));
    let code = |url: String| cmd.run(&["robots", "--fetch", &url]).code;
    assert_eq!(code(web.url(0, "/p")), 1);
    assert_eq!(code(web.url(0, "/q")), 0);
    assert_eq!(code(web.url(1, "/p")), 0);
    assert_eq!(
        code(web.url(2, "/p")),
        1,
        "unreachable: RFC 9309 section 2.3.1.4"
    );
    let closed = format!("http://127.0.0.1:{}", closed_port());
    assert_eq!(
        cmd.run(&["robots", &format!("{closed}/p")]).stdout,
        format!(
            "disallowed  {closed}/p\n            {closed}/robots.txt can't be fetched (connection \
             refused), so nothing is allowed (RFC 9309 section 2.3.1.4)\n"
        )
    );
    // A redirect to loopback is followed only to a host given on the command line.
    let (moved, target) = (web.url(3, "/p"), web.url(0, "/robots.txt"));
    let ran = cmd.run(&["robots", "--json", &moved, &target]);
    let line = ran.stdout.lines().next().unwrap();
    let object: Value = serde_json::from_str(line).unwrap();
    assert_eq!(object["rule"], "Disallow: /p", "section 2.3.1.2");
    let requested_paths: Vec<String> = web.log().into_iter().map(|entry| entry.path).collect();
    assert_eq!(requested_paths, ["/robots.txt"; 7]);
    let ran = cmd.run(&["robots", "https://example.org/"]);
    assert!(
        ran.refusal(&dir)
            .starts_with("2\nerror: no contact given, which is required to crawl example.org")
    );
}
