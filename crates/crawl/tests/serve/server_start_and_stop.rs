//! How the server starts, what it refuses to start with, and how it ends.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use expect_test::{Expect, expect};

use crate::indexed_crawl_directory::Site;
use crate::server_harness::{Server, program};

const ORIGIN: &str = "http://site.example";
const TOKEN: &str = "0123456789abcdef";

/// Returns the exit code and stderr, with the directory replaced.
fn refused(dir: &Path, args: &[&str], token: Option<&str>) -> String {
    let mut command = program(dir, &[&["serve"], args].concat());
    if let Some(token) = token {
        command.env("CRAWL_SERVE_TOKEN", token);
    }
    let output = command.output().unwrap();
    assert!(output.stdout.is_empty());
    let stderr = String::from_utf8(output.stderr).unwrap();
    let stderr = stderr.replace(&dir.display().to_string(), "DIR");
    format!("{}\n{stderr}", output.status.code().unwrap())
}

#[expect(clippy::needless_pass_by_value, reason = "an expectation is used once")]
fn check(dir: &Path, args: &[&str], expect: Expect) {
    expect.assert_eq(&refused(dir, args, None));
}

#[test]
fn a_directory_that_can_t_be_served_is_refused() {
    let site = Site::without_index(ORIGIN);
    check(
        site.path(),
        &["nowhere"],
        expect![[r#"
            2
            error: no crawl in `nowhere`
            hint: give the directory of a crawl, such as crawl-example.org
        "#]],
    );
}

#[test]
fn an_index_that_can_t_be_read_is_refused() {
    let site = Site::new(ORIGIN);
    let format = fs::read_dir(site.file("index")).unwrap();
    let names: Vec<_> = format.map(|entry| entry.unwrap().file_name()).collect();
    let name = names
        .iter()
        .find(|name| name.to_string_lossy().starts_with("format"))
        .unwrap();
    let name = format!("index/{}", name.to_string_lossy());
    let metadata = fs::read_to_string(site.file(&name)).unwrap();
    site.write(&name, &metadata.replace(char::is_numeric, "9"));
    check(
        site.path(),
        &["."],
        expect![[r#"
            3
            error: the search index in ./index is of format 9, and this program reads 5
            hint: rebuild it from the archive with `crawl index .`
        "#]],
    );
    site.write(&name, &metadata);
    site.write("index/meta.json", "{");
    let error = refused(site.path(), &["."], None);
    assert!(
        error.starts_with("3\nerror: ") && error.contains("is damaged"),
        "{error}"
    );
    assert!(
        error.ends_with("hint: rebuild it from the archive with `crawl index .`\n"),
        "{error}"
    );
}

#[test]
fn flags_that_don_t_fit_are_refused() {
    let site = Site::new(ORIGIN);
    let dir = site.path();
    check(
        dir,
        &[".", "--listen", "8787"],
        expect![[r#"
        2
        error: can't listen on `8787`: not an address
        hint: give an IP and a port, as in `127.0.0.1:8787` or `[::1]:8787`
    "#]],
    );
    check(
        dir,
        &[".", "--listen", "0.0.0.0:0"],
        expect![[r#"
        2
        error: other machines could reach `--listen 0.0.0.0:0`, but there is no token
        hint: add --token-file FILE or set CRAWL_SERVE_TOKEN, or listen on 127.0.0.1 behind a reverse proxy
    "#]],
    );
    check(
        dir,
        &[".", "--listen", "192.0.2.77:0", "--token-file", "token"],
        expect![[r#"
        2
        error: can't read the token file `token`: No such file or directory (os error 2)
    "#]],
    );
    site.write("token", "short");
    check(
        dir,
        &[".", "--token-file", "token"],
        expect![[r#"
        2
        error: the token in `token` has fewer than 16 characters
        hint: generate one with `head -c 24 /dev/urandom | base64`
    "#]],
    );
    check(
        dir,
        &[".", "--allow-origin", "https://example.org/page"],
        expect![[r#"
        2
        error: `--allow-origin https://example.org/page` isn't an origin
        hint: use the form that browsers send, `https://example.org`
    "#]],
    );
    check(
        dir,
        &[".", "--allow-origin", "*"],
        expect![[r#"
        2
        error: `--allow-origin *` isn't an origin
        hint: give a scheme and a host, as in `https://www.example.org`
    "#]],
    );
    check(
        dir,
        &[".", "--title", " "],
        expect![[r#"
        2
        error: `--title` has 0 characters after trimming, or contains control characters
        hint: give one line of 1 to 200 characters
    "#]],
    );
    check(
        dir,
        &[".", "--rate", "0"],
        expect![[r#"
        2
        error: --rate is 0, so no requests would be answered
        hint: remove --rate for 20 requests a second; for no limit, set a large number
    "#]],
    );
    let error = refused(dir, &["."], Some("short"));
    expect![[r#"
        2
        error: `CRAWL_SERVE_TOKEN` has fewer than 16 characters
        hint: generate one with `head -c 24 /dev/urandom | base64`
    "#]]
    .assert_eq(&error);
    site.write("token", TOKEN);
    check(
        dir,
        &[".", "--listen", "192.0.2.77:0", "--token-file", "token"],
        expect![[r#"
        2
        error: 192.0.2.77:0 isn't an address of this machine
        hint: set --listen to an address of this machine, such as 127.0.0.1:8787
    "#]],
    );
}

#[test]
fn a_port_in_use_is_named() {
    let site = Site::new(ORIGIN);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let error = refused(site.path(), &[".", "--listen", &address], None);
    let error = error.replace(&address, "ADDRESS");
    expect![[r#"
        3
        error: ADDRESS is in use
        hint: another server uses it; set --listen to another port, or to 0 for a free one
    "#]]
    .assert_eq(&error);
}

#[test]
fn off_loopback_the_server_needs_a_token() {
    let site = Site::new(ORIGIN);
    let mut command = program(site.path(), &["serve", ".", "--listen", "0.0.0.0:0"]);
    let server = Server::of({
        command.env("CRAWL_SERVE_TOKEN", TOKEN);
        command
    });
    // A server that doesn't listen on loopback accepts any host name.
    assert_eq!(
        server.get_with("/", &[("host", "search.example")]).status,
        200
    );
    assert_eq!(server.end("-TERM").0, 0);
}

#[test]
fn a_signal_ends_the_server_after_in_flight_requests() {
    let site = Site::new(ORIGIN);
    for signal in ["-INT", "-TERM"] {
        let server = Server::start(site.path(), &[]);
        // The response to this request never ends.
        let follower = server.get_events();
        let (code, stderr) = server.end(signal);
        drop(follower);
        assert_eq!(code, 0, "{stderr}");
        assert_eq!(
            stderr,
            "stopping: finishing current requests; press Ctrl-C again to stop now\n"
        );
    }
}

#[test]
fn two_servers_share_a_directory() {
    let site = Site::new(ORIGIN);
    let servers = [(); 2].map(|()| Server::start(site.path(), &[]));
    for server in &servers {
        assert_eq!(server.get("/api/search?q=lantern").json()["total"], 30);
    }
}
