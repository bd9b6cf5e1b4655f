//! Tests of hosts, their connections, and the log.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crawl_testweb::{ConnectionBehaviour, TestWeb, gaps};

use crate::raw_http_client::{get, get_with, talk};

#[test]
fn hosts_share_a_port_or_an_address() {
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
}

#[test]
fn the_same_seed_gives_the_same_bytes_but_for_the_port() {
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
fn a_dropped_web_listens_no_more() {
    let web = TestWeb::builder().hosts(2).start();
    let address = web.address(1);
    drop(web);
    let error = TcpStream::connect(address).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn doors_refuse_stay_silent_and_open_again() {
    let web = TestWeb::builder()
        .connection_mode(0, ConnectionBehaviour::Refused)
        .start();
    let get_status = || get_with(web.address(0), "/", "").map(|got| got.status);
    assert_eq!(
        get_status().unwrap_err().kind(),
        ErrorKind::ConnectionRefused
    );
    web.connection_mode(0, ConnectionBehaviour::Silent).unwrap();
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
    web.connection_mode(0, ConnectionBehaviour::Open).unwrap();
    assert_eq!(get_status().unwrap(), 200);
    web.connection_mode(0, ConnectionBehaviour::Refused)
        .unwrap();
    assert_eq!(
        get_status().unwrap_err().kind(),
        ErrorKind::ConnectionRefused
    );
    assert_eq!(web.log().len(), 1, "only what was read is logged");
}

#[test]
fn the_log_has_headers_times_and_connections() {
    let web = TestWeb::builder().hosts(2).start();
    let before = web.now_us();
    let twice = "GET /a?b=c HTTP/1.1\r\nHost: x\r\nUser-Agent: me/1\r\n\r\n\
                 GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    talk(web.address(1), twice).unwrap();
    get(web.address(0), "/robots.txt");
    assert!(web.wait_for(Duration::from_mins(2), |log| {
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
fn gaps_follow_from_the_log() {
    let web = TestWeb::builder().start();
    get(web.address(0), "/");
    let mut entries = vec![web.log()[0].clone(); 3];
    for (entry, (start, end)) in entries.iter_mut().zip([(500, 600), (100, 200), (150, 450)]) {
        (entry.start_us, entry.end_us) = (start, Some(end));
    }
    assert_eq!(gaps(&entries), [-50, 50]);
}

#[test]
fn names_are_returned_with_their_addresses() {
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
fn rfc9112_3_2_a_request_without_host_is_refused() {
    let web = TestWeb::builder().start();
    let answer = talk(web.address(0), "GET / HTTP/1.1\r\n\r\n").unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 400 "));
}

#[test]
fn head_has_no_body() {
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
fn a_web_may_start_and_end_in_an_async_context() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let web = TestWeb::builder().hosts(2).start();
        assert_eq!(get(web.address(1), "/").status, 200);
    });
}
