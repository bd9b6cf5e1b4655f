//! Control commands: who may send them, and their effects.

use std::io::{BufRead as _, BufReader};
use std::process::Child;
use std::time::Instant;

use crawl_testweb::TestWeb;
use expect_test::expect;
use serde_json::{Value, json};

use crate::indexed_crawl_directory::Site;
use crate::server_harness::{Lines, PATIENCE, Server, program};

const ORIGIN: &str = "http://site.example";
const TOKEN: &str = "0123456789abcdef";
const PAUSE: &str = "/api/crawl/pause";

const BEARER: (&str, &str) = ("authorization", "Bearer 0123456789abcdef");

/// Starts a server that accepts commands with the token.
fn guarded(site: &Site) -> Server {
    site.write("token", &format!("{TOKEN}\n"));
    Server::start(site.path(), &["--token-file", "token"])
}

#[test]
fn without_a_token_commands_are_refused() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &[]);
    let refused = "403 controlling the crawl needs a token, and this server has none | start `crawl serve` with --token-file FILE, or use `crawl control` on the machine\n";
    assert_eq!(server.post(PAUSE, &[], "{}").refusal(), refused);
    assert_eq!(server.post(PAUSE, &[BEARER], "{}").refusal(), refused);
}

#[test]
fn refusals_name_their_reason() {
    let site = Site::new(ORIGIN);
    let server = guarded(&site);
    let own = format!("http://{}", server.address);
    let send = |path: &str, fields: &[(&str, &str)], body: &str| {
        server
            .post(path, &[&[BEARER], fields].concat(), body)
            .refusal()
    };
    let post = |fields: &[(&str, &str)]| send(PAUSE, fields, "{}");
    // The error of an accepted command: no crawl is running that could execute it.
    let through = "409 no crawl is running here | continue the crawl with `crawl --output DIR`\n";
    assert_eq!(post(&[]), through);
    assert_eq!(
        post(&[("origin", &own), ("sec-fetch-site", "same-origin")]),
        through
    );
    let refused = [
        post(&[("origin", "http://evil.example")]),
        post(&[("origin", "null")]),
        post(&[("sec-fetch-site", "cross-site")]),
        post(&[("host", "rebound.example")]),
        server.request("POST", PAUSE, &[BEARER], "{}").refusal(),
        server
            .request(
                "POST",
                PAUSE,
                &[BEARER, ("content-type", "text/plain")],
                "{}",
            )
            .refusal(),
        send(PAUSE, &[], "{\"do\":\"resume\"}"),
        send(PAUSE, &[], "{\"now\":true}"),
        send(PAUSE, &[], "[]"),
        send("/api/crawl/add", &[], "{}"),
        send("/api/crawl/delay", &[], "{\"delay\":\"2\"}"),
        send("/api/crawl/state", &[], "{}"),
        send(PAUSE, &[], &"x".repeat(20_000)),
    ];
    expect![[r#"
        403 a page of `http://evil.example` may not control the crawl | use the server's own page; a reverse proxy must forward the Host field
        403 a page of `null` may not control the crawl | use the server's own page; a reverse proxy must forward the Host field
        403 a page of another site may not control the crawl | use the server's own page; a reverse proxy must forward the Host field
        421 `rebound.example` isn't a name of this server | it serves only this machine; behind a reverse proxy, start it with --behind-proxy
        415 the body isn't JSON | send a JSON object with `Content-Type: application/json`
        415 the body isn't JSON | send a JSON object with `Content-Type: application/json`
        400 the body must not contain `do` | `/api/openapi.json` describes the parameters of each command
        400 can't read `pause`: unknown field `now`, there are no fields | `/api/openapi.json` describes the parameters of each command
        400 the body isn't a JSON object: invalid type: sequence, expected a map at line 1 column 0 | `/api/openapi.json` describes the parameters of each command
        400 can't read `add`: missing field `url` | `/api/openapi.json` describes the parameters of each command
        400 can't read `delay`: `2` isn't a duration: add a unit, as in `500ms`, `2s` or `1h` | `/api/openapi.json` describes the parameters of each command
        404 there is no such command | commands: pause, resume, add, delay, park, unpark
        413 the body is too large | the maximum is 16384 bytes
    "#]].assert_eq(&refused.concat());
}

#[test]
fn a_body_without_a_length_is_bounded_too() {
    let site = Site::new(ORIGIN);
    let server = guarded(&site);
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000)).repeat(6);
    let head = format!(
        "POST {PAUSE} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\nauthorization: Bearer {TOKEN}\r\ntransfer-encoding: chunked\r\n\r\n",
        server.address
    );
    let reply = server.send(&format!("{head}{chunk}0\r\n\r\n"));
    assert!(
        reply.refusal().starts_with("413 the body is too large"),
        "{reply:?}"
    );
}

#[test]
fn with_a_token_every_command_needs_it() {
    let site = Site::new(ORIGIN);
    site.write("token", &format!("{TOKEN}\n"));
    let server = Server::start(site.path(), &["--token-file", "token", "--behind-proxy"]);
    let post = |fields: &[(&str, &str)]| server.post(PAUSE, fields, "{}");
    let host = ("host", "search.example");
    let without = post(&[host]);
    assert_eq!(
        (without.status, without.field("www-authenticate")),
        (401, Some("Bearer"))
    );
    let right = BEARER;
    let refused = [
        without.refusal(),
        post(&[host, ("authorization", "Bearer wrong")]).refusal(),
        post(&[host, right]).refusal(),
        post(&[host, right, ("origin", "https://search.example")]).refusal(),
        post(&[host, right, ("origin", "https://other.example")]).refusal(),
    ];
    expect![[r#"
        401 controlling the crawl needs a token | the token is in the file of --token-file, or in CRAWL_SERVE_TOKEN: enter it in the field Token, or send it as `Authorization: Bearer TOKEN`
        401 the token is wrong | the token is in the file of --token-file, or in CRAWL_SERVE_TOKEN: enter it in the field Token, or send it as `Authorization: Bearer TOKEN`
        409 no crawl is running here | continue the crawl with `crawl --output DIR`
        409 no crawl is running here | continue the crawl with `crawl --output DIR`
        403 a page of `https://other.example` may not control the crawl | use the server's own page; a reverse proxy must forward the Host field
    "#]].assert_eq(&refused.concat());
    let page = server.get_with("/crawl", &[host]).body;
    assert!(
        page.contains("data-controls=\"token\"") && page.contains("id=\"token\""),
        "{page}"
    );
}

#[test]
fn behind_a_proxy_without_a_token_commands_are_refused() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &["--behind-proxy"]);
    let reply = server.post(PAUSE, &[], "{}").refusal();
    assert!(
        reply.starts_with("403 controlling the crawl needs a token"),
        "{reply}"
    );
    let page = server
        .get_with("/crawl", &[("host", "search.example")])
        .body;
    assert!(
        !page.contains("id=\"controls\"") && page.contains("--token-file"),
        "{page}"
    );
}

/// A running crawl in the site's directory, slow enough to take minutes.
struct Running(Child);

impl Running {
    fn start(site: &Site, web: &TestWeb) -> Running {
        let seed = web.url(0, "/");
        let args = [
            "--seed",
            &seed,
            "--output",
            ".",
            "--delay",
            "5s",
            "--delay-factor",
            "0",
            "--progress",
            "off",
            "-v",
        ];
        let mut child = program(site.path(), &args).spawn().unwrap();
        Lines::of(child.stderr.take().unwrap()).until("takes commands");
        Running(child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The server-sent events that a client receives.
struct Events(BufReader<std::net::TcpStream>);

impl Events {
    fn of(server: &Server) -> Events {
        Events(server.get_events())
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "it hung up");
        line
    }

    /// Waits for the next snapshot for which `holds` returns true.
    fn until(&mut self, holds: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let line = self.line();
            assert!(began.elapsed() < PATIENCE, "{line}");
            if let Some(data) = line.strip_prefix("data: ") {
                let moment: Value = serde_json::from_str(data).unwrap();
                if holds(&moment) {
                    return moment;
                }
            }
        }
    }
}

#[test]
fn a_running_crawl_is_followed_and_controlled() {
    let web = TestWeb::builder().seed(5).hosts(1).pages(60).start();
    let site = Site::empty();
    let mut crawl = Running::start(&site, &web);
    site.index("http://site.example");
    let server = guarded(&site);
    let mut events = Events::of(&server);
    let ok = |command: &str, body: &Value| {
        let reply = server.post(
            &format!("/api/crawl/{command}"),
            &[BEARER],
            &body.to_string(),
        );
        assert_eq!(
            (reply.status, reply.json()),
            (200, json!({"ok": true})),
            "{command}"
        );
    };
    events.until(|moment| moment["state"]["phase"] == "crawling");
    ok("pause", &json!({}));
    events
        .until(|moment| moment["state"]["phase"] == "paused" && moment["state"]["in_flight"] == 0);
    let now = server.get("/api/crawl").json();
    assert_eq!(
        (&now["running"], &now["state"]["paused"]),
        (&json!(true), &json!(true))
    );
    let page = server.get("/crawl").body;
    assert!(page.contains("data-phase=\"paused\">Paused</p>"), "{page}");
    let added = web.url(0, "/added-by-hand");
    ok("add", &json!({"url": added}));
    ok("delay", &json!({"delay": "20ms"}));
    let host = web.authority(0);
    ok("park", &json!({"host": host}));
    events.until(|moment| moment["state"]["parked"] == json!([host]));
    ok("unpark", &json!({"host": host}));
    let again = server.post(
        "/api/crawl/unpark",
        &[BEARER],
        &json!({"host": host}).to_string(),
    );
    assert_eq!(again.status, 422);
    assert!(again.refusal().contains("is not parked"), "{again:?}");
    ok("resume", &json!({}));
    events.until(|moment| moment["running"] == false);
    assert!(crawl.0.wait().unwrap().success());
    assert!(web.log().iter().any(|entry| entry.path == "/added-by-hand"));
    assert_eq!(server.get("/api/crawl").json(), json!({"running": false}));
    assert_eq!(server.post(PAUSE, &[BEARER], "{}").status, 409);
}
