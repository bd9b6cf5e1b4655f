//! Workers of a shared frontier whose PostgreSQL server does not respond.

use std::net::TcpListener;

use crate::harness::setup;

#[test]
fn a_signal_ends_a_worker_that_waits_for_its_database_server() {
    let (_dir, cmd) = setup("silent-server");
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = server.local_addr().unwrap();
    let frontier = format!("postgres://me@{place}/crawl?connect_timeout=600");
    let worker = cmd.start(&[
        "--seed",
        "http://127.0.0.1:1/",
        "--output",
        "c",
        "--frontier",
        &frontier,
        "--crawl",
        "c",
        "--worker",
        "w",
        "--progress",
        "off",
    ]);
    // The connection stays open without a response.
    let _connection = server.accept().unwrap();
    worker.signal("INT");
    let (code, said) = worker.end();
    assert_eq!(code, 130, "{said}");
    assert!(
        said.contains("before the shared frontier answered"),
        "{said}"
    );
}
