//! Connections of the built program: few descriptors, and a custom CA.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;

use crawl_testweb::{LinkMix, TestWeb};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::harness::{Cmd, Ran, in_shell, setup};

const QUICK: &str = "--delay 0s --delay-factor 0 --progress off --wait-unreachable 0s";

/// A self-signed certificate of `a.test` only, valid for a hundred years.
const CERTIFICATE: &str = include_str!("../../../fetcher/tests/exchanges/fixtures/a.test.pem");
const KEY: &[u8] = include_bytes!("../../../fetcher/tests/exchanges/fixtures/a.test.key.pem");

/// Runs the program with a limit on open files.
fn run_limited(cmd: &Cmd, limit: u32, args: &[&str]) -> Ran {
    let crawl = cmd.command(args);
    Ran::of_command(&mut in_shell(&crawl, &format!("ulimit -n {limit}")))
}

#[test]
fn few_descriptors_mean_fewer_connections_and_no_failure() {
    const HOSTS: u32 = 80;
    let (dir, cmd) = setup("few");
    let web = TestWeb::builder()
        .hosts(HOSTS)
        .pages(2)
        .mix(LinkMix::plain())
        .start();
    let seeds: Vec<String> = (0..HOSTS).map(|host| web.url(host, "/")).collect();
    let mut args: Vec<&str> = QUICK.split(' ').collect();
    args.extend(["--output", "c", "--index", "on"]);
    for seed in &seeds {
        args.extend(["--seed", seed]);
    }
    let ran = run_limited(&cmd, 140, &args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let message = "limited to 22 requests at once, since only 140 files may be open";
    assert_eq!(ran.stderr.matches(message).count(), 1, "{}", ran.stderr);
    let hint = "hint: raise the limit (`ulimit -n`), or lower --concurrency";
    assert_eq!(ran.stderr.matches(hint).count(), 1, "{}", ran.stderr);
    for row in dir.rows("c/requests.jsonl") {
        assert!(row["failure"].is_null(), "{row}");
    }
    let pages = dir.rows("c/pages.jsonl");
    assert!(
        seeds
            .iter()
            .all(|seed| pages.iter().any(|page| page["url"] == **seed))
    );
}

/// Serves a page over TLS to every request until the test ends.
pub(crate) fn serve_tls() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(KEY).unwrap(),
        );
    let tls = Arc::new(tls.unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let session = ServerConnection::new(Arc::clone(&tls)).unwrap();
            let mut stream = StreamOwned::new(session, stream.unwrap());
            // A client that doesn't trust the certificate disconnects.
            let mut head = [0; 4096];
            if stream.read(&mut head).is_ok_and(|read| read > 0) {
                let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\
                              Content-Length: 12\r\nConnection: close\r\n\r\n<title>hello";
                let _ = stream.write_all(answer.as_bytes());
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        }
    });
    port
}

#[test]
fn a_custom_ca_is_trusted_if_given() {
    let (dir, cmd) = setup("ca");
    dir.write("ca.pem", CERTIFICATE);
    let port = serve_tls();
    let seed = format!("https://a.test:{port}/");
    let resolve = format!("a.test:{port}:127.0.0.1");
    let mut args: Vec<&str> = QUICK.split(' ').collect();
    args.extend(["--seed", &seed, "--resolve", &resolve]);
    let run = |more: &[&str]| cmd.run(&[&args, more].concat());

    let untrusted = run(&["--output", "c"]);
    assert_eq!(untrusted.code, 1, "{}", untrusted.stderr);
    let message = format!(
        "error: can't connect securely to https://a.test:{port}: certificate error: unknown issuer\nhint: "
    );
    assert!(untrusted.stderr.contains(&message), "{}", untrusted.stderr);
    let hint = "to trust your own CA, add --ca-file FILE";
    assert!(untrusted.stderr.contains(hint), "{}", untrusted.stderr);

    let trusted = run(&["--output", "d", "--ca-file", "ca.pem"]);
    assert_eq!(trusted.code, 0, "{}", trusted.stderr);
    let pages = dir.rows("d/pages.jsonl");
    assert!(
        pages.iter().any(|page| page["title"] == "hello"),
        "{pages:?}"
    );

    dir.write("key.pem", &String::from_utf8_lossy(KEY));
    dir.write(
        "broken.pem",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    );
    for (file, why) in [
        ("none.pem", "No such file or directory"),
        ("key.pem", "it has no certificate"),
        ("broken.pem", "can't use certificate 1: "),
        (".", "it isn't a regular file"),
    ] {
        let refused = run(&["--output", "e", "--ca-file", file]);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        let error = format!("unusable --ca-file `{file}`: {why}");
        assert!(refused.stderr.contains(&error), "{}", refused.stderr);
        assert!(
            refused.stderr.contains("\nhint: give a PEM file"),
            "{}",
            refused.stderr
        );
    }
}
