//! Hosts, their doors, and the log.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crawl_testweb::{ConnectionMode, Ports, TestWeb, gaps, peak_in_flight};

use crate::client::{get, get_with, talk};

#[test]
fn ours_hosts_share_a_port_or_an_address_as_asked() {
    let ips = |web: &TestWeb| {
        (0..6)
            .map(|h| web.address(h).ip())
            .collect::<BTreeSet<_>>()
            .len()
    };
    let ports = |web: &TestWeb| {
        (0..6)
            .map(|h| web.address(h).port())
            .collect::<BTreeSet<_>>()
            .len()
    };
    let shared = TestWeb::builder().hosts(6).start();
    assert_eq!((ips(&shared), ports(&shared)), (6, 1));
    let crowded = TestWeb::builder().hosts(6).addresses(2).start();
    assert_eq!((ips(&crowded), ports(&crowded)), (2, 6));
    let own = TestWeb::builder().hosts(6).ports(Ports::Own).start();
    assert_eq!(ips(&own), 6);
}

#[test]
fn ours_one_listener_serves_many_hosts() {
    let web = TestWeb::builder().hosts(5000).one_listener().start();
    for host in [0, 1, 249, 250, 4999] {
        assert!(
            get(web.address(host), "/")
                .text()
                .contains(&format!("of host {host}</title>"))
        );
        assert_eq!(web.log_of(host).len(), 1);
    }
}

#[test]
fn ours_the_same_seed_gives_the_same_bytes_but_for_the_port() {
    let page = |seed| {
        let web = TestWeb::builder().seed(seed).hosts(3).start();
        get(web.address(0), "/")
            .text()
            .replace(&format!(":{}", web.address(0).port()), ":PORT")
    };
    assert_eq!(page(5), page(5));
    assert_ne!(page(5), page(6));
}

#[test]
fn ours_a_dropped_web_listens_no_more() {
    let web = TestWeb::builder().hosts(2).start();
    let address = web.address(1);
    drop(web);
    let error = TcpStream::connect(address).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn ours_doors_refuse_reset_stay_silent_and_open_again() {
    let web = TestWeb::builder().door(0, ConnectionMode::Refused).start();
    let knock = || get_with(web.address(0), "/", "").map(|got| got.status);
    assert_eq!(knock().unwrap_err().kind(), ErrorKind::ConnectionRefused);
    web.door(0, ConnectionMode::Resets).unwrap();
    assert!(knock().is_err());
    web.door(0, ConnectionMode::Silent).unwrap();
    let mut stream = TcpStream::connect(web.address(0)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        .unwrap();
    assert_eq!(
        stream.read(&mut [0]).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
    web.door(0, ConnectionMode::Open).unwrap();
    assert_eq!(knock().unwrap(), 200);
    web.door(0, ConnectionMode::Refused).unwrap();
    assert_eq!(knock().unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!(web.log().len(), 1, "only what was read is logged");
}

#[test]
fn ours_the_log_knows_headers_times_and_connections() {
    let web = TestWeb::builder().hosts(2).start();
    let before = web.now_us();
    let twice = "GET /a?b=c HTTP/1.1\r\nHost: x\r\nUser-Agent: me/1\r\n\r\n\
                 GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    talk(web.address(1), twice).unwrap();
    get(web.address(0), "/robots.txt");
    assert!(web.wait_for(Duration::from_secs(20), |log| {
        log.iter().all(|e| e.end_us.is_some())
    }));
    let after = web.now_us();
    let log = web.log();
    let seen: Vec<_> = log
        .iter()
        .map(|e| (e.host, e.path.as_str(), e.status))
        .collect();
    assert_eq!(
        seen,
        [
            (1, "/a?b=c", Some(404)),
            (1, "/", Some(200)),
            (0, "/robots.txt", Some(200))
        ]
    );
    assert_eq!((log[0].user_agent(), log[1].user_agent()), ("me/1", ""));
    assert_eq!(log[0].connection, log[1].connection);
    assert_ne!(log[0].connection, log[2].connection);
    assert_eq!(web.connections(), 2);
    for entry in &log {
        let end_us = entry.end_us.unwrap();
        assert!(before <= entry.start_us && entry.start_us <= end_us && end_us <= after);
        assert!(entry.sent > 0);
    }
    assert_eq!(web.take_log().len(), 3);
    assert!(web.log().is_empty());
}

#[test]
fn ours_gaps_and_peaks_follow_from_the_log() {
    let web = TestWeb::builder().start();
    get(web.address(0), "/");
    let mut entries = vec![web.log()[0].clone(); 3];
    for (entry, (start, end)) in entries.iter_mut().zip([(500, 600), (100, 200), (150, 450)]) {
        (entry.start_us, entry.end_us) = (start, Some(end));
    }
    assert_eq!(gaps(&entries), [-50, 50]);
    assert_eq!(peak_in_flight(&entries), 2);
    assert_eq!(peak_in_flight(&entries[..0]), 0);
}

#[test]
fn ours_names_come_with_what_resolves_them() {
    let web = TestWeb::builder().hosts(2).domain("web.test").start();
    let port = web.address(1).port();
    assert_eq!(web.url(1, "/p"), format!("http://h1.web.test:{port}/p"));
    assert_eq!(web.resolve()[1], format!("h1.web.test:{port}:127.16.0.2"));
    assert!(
        get(web.address(0), "/sitemap.xml")
            .text()
            .contains("http://h0.web.test:")
    );
}

#[test]
fn rfc9112_3_2_2_absolute_form_asks_the_named_host() {
    let web = TestWeb::builder().hosts(2).start();
    let request = format!(
        "GET {} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
        web.url(1, "/")
    );
    let answer = talk(web.address(0), &request).unwrap();
    assert!(String::from_utf8_lossy(&answer).contains("of host 1</title>"));
    let entry = &web.log()[0];
    assert_eq!(
        (entry.host, entry.path.as_str(), entry.via_proxy),
        (1, "/", true)
    );
}

#[test]
fn rfc9112_3_2_a_request_without_host_is_refused() {
    let web = TestWeb::builder().start();
    let answer = talk(web.address(0), "GET / HTTP/1.1\r\n\r\n").unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 400 "));
}

#[test]
fn ours_head_has_no_body() {
    let web = TestWeb::builder().start();
    let answer = talk(
        web.address(0),
        "HEAD / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    );
    let answer = String::from_utf8(answer.unwrap()).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\n"),
        "{answer}"
    );
}

#[test]
fn ours_a_directory_is_served_as_nginx_does() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    std::fs::write(dir.path().join("index.html"), "root").unwrap();
    std::fs::write(dir.path().join("sub/index.html"), "sub").unwrap();
    std::fs::write(dir.path().join("sub/a b.txt"), "text").unwrap();
    let web = TestWeb::builder().directory(0, dir.path()).start();
    for (path, status, body) in [
        ("/", 200, "root"),
        ("/?q=1", 200, "root"),
        ("/sub/", 200, "sub"),
        ("/sub/a%20b.txt", 200, "text"),
        ("/sub", 301, ""),
    ] {
        let got = get(web.address(0), path);
        assert_eq!((got.status, got.text().as_str()), (status, body), "{path}");
    }
    assert_eq!(get(web.address(0), "/sub").headers["location"], "/sub/");
    for path in [
        "/none",
        "/index.html/",
        "/../etc/passwd",
        "/%2e%2e/etc/passwd",
        "/%zz",
        "/%00",
    ] {
        assert_eq!(get(web.address(0), path).status, 404, "{path}");
    }
}

#[test]
fn ours_a_web_may_start_and_end_in_an_async_context() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let web = TestWeb::builder().hosts(2).start();
        assert_eq!(get(web.address(1), "/").status, 200);
    });
}
