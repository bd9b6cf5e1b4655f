//! Limits on the requests of one client.

use std::io::{Read as _, Write as _};
use std::time::Instant;

use crate::indexed_crawl_directory::Site;
use crate::server_harness::{PATIENCE, Server};

const ORIGIN: &str = "http://site.example";

#[test]
fn rfc6585_4_a_429_response_has_retry_after() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &["--rate", "1"]);
    // Send requests without pausing. On a slow machine some are a second apart and not refused, so
    // try many.
    let mut replies = (0..1000).map(|_| server.get("/api/stats"));
    let refused = replies.find(|reply| reply.status == 429).unwrap();
    let seconds: u64 = refused.field("retry-after").unwrap().parse().unwrap();
    assert!((1..=2).contains(&seconds));
    assert!(
        refused
            .refusal()
            .starts_with("429 too many requests | try again in ")
    );
    let page = server.get_with("/", &[("accept", "text/html")]);
    assert!(page.status == 200 || page.body.contains("<h1>Too Many Requests</h1>"));
}

#[test]
fn behind_a_proxy_clients_are_distinguished_by_the_forwarded_address() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &["--rate", "1", "--behind-proxy"]);
    let status = |client: &str| {
        server
            .get_with("/api/stats", &[("x-forwarded-for", client)])
            .status
    };
    for client in 1..=20 {
        assert_eq!(status(&format!("192.0.2.{client}")), 200);
    }
    let spoofed = |number| status(&format!("198.51.100.{number}, 192.0.2.200"));
    assert!((1..=250).map(spoofed).any(|status| status == 429));
}

#[test]
fn on_loopback_other_names_are_refused() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &[]);
    for path in ["/", "/api/search?q=robots", "/embed.js"] {
        let reply = server.get_with(path, &[("host", "rebound.example")]);
        assert_eq!(reply.status, 421, "{path}");
        assert!(!reply.body.contains("rules"));
    }
    for host in [
        "[::1]evil.example",
        "[::1]:1evil",
        "localhost:99999",
        "a@localhost",
    ] {
        assert_eq!(
            server.get_with("/", &[("host", host)]).status,
            400,
            "{host}"
        );
    }
    for host in ["localhost:1", "[::1]:1", "LOCALHOST"] {
        let reply = server.get_with("/api/stats", &[("host", host)]);
        assert_eq!(reply.status, 200, "{host}");
    }
    let origin = ("origin", "http://localhost");
    let reply = server.get_with("/api/stats", &[("host", "localhost"), origin, origin]);
    assert_eq!(reply.status, 400);
}

#[test]
fn heads_and_connections_are_bounded() {
    let site = Site::new(ORIGIN);
    let server = Server::start(site.path(), &["--rate", "1000"]);
    let head = format!("GET / HTTP/1.1\r\nhost: {}\r\n", server.address);
    let many = "x: y\r\n".repeat(100);
    assert_eq!(server.send(&format!("{head}{many}\r\n")).status, 431);
    // Try a head of exactly as many bytes as allowed, and one with one byte more.
    let head = format!("{head}connection: close\r\n");
    let of_bytes = |bytes: usize| {
        let rest = bytes - head.len() - "x: \r\n\r\n".len();
        server.send(&format!("{head}x: {}\r\n\r\n", "y".repeat(rest)))
    };
    assert_eq!(of_bytes(32 * 1024).status, 200);
    for bytes in [32 * 1024 + 1, 40 * 1024, 64 * 1024] {
        assert_eq!(of_bytes(bytes).status, 431, "{bytes}");
    }
    let fields = |count: usize| "x: y\r\n".repeat(count - 2);
    assert_eq!(
        server.send(&format!("{head}{}\r\n", fields(64))).status,
        200
    );
    assert_eq!(
        server.send(&format!("{head}{}\r\n", fields(65))).status,
        431
    );
    // Open as many connections as one client may have, and send nothing on them.
    let silent: Vec<_> = (0..64).map(|_| server.connect()).collect();
    let mut one_more = server.connect();
    let _ = one_more.write_all(b"GET / HTTP/1.1\r\n");
    let mut bytes = Vec::new();
    let _ = one_more.read_to_end(&mut bytes);
    assert!(bytes.is_empty(), "it is closed without an answer");
    drop(silent);
    // Further connections are accepted as soon as the server notices the disconnects.
    let began = Instant::now();
    while try_get(&server) != Some(200) {
        assert!(began.elapsed() < PATIENCE, "they are not free");
    }
}

/// Returns the status of a request. `None` if the connection was closed.
fn try_get(server: &Server) -> Option<u16> {
    let mut stream = server.connect();
    let request = format!(
        "GET /robots.txt HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
        server.address
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1)?.parse().ok()
}

#[test]
fn the_number_of_followers_is_limited() {
    let site = Site::new(ORIGIN);
    // Behind a proxy all connections come from one address.
    let server = Server::start(site.path(), &["--rate", "1000", "--behind-proxy"]);
    let mut followers = Vec::new();
    for _ in 0..64 {
        followers.push(server.get_events());
    }
    let refused = server.get("/api/crawl/events");
    assert_eq!(
        (refused.status, refused.field("retry-after")),
        (503, Some("10"))
    );
    assert_eq!(server.get("/api/stats").status, 200);
}
