//! Tests of connections when file descriptors run out.

use std::process::Command;
use std::sync::Arc;

use crawl_weburl::canonicalize;
use tokio::task::JoinSet;

use crate::scripted_server::{Server, config, fetch, fetcher};

/// Environment variable that passes the server's URL to the process with few descriptors.
const SERVER: &str = "CRAWL_TEST_SERVER";
const AT_ONCE: usize = 60;

/// The descriptor limit applies to a whole process, so the exchanges run in a separate one.
#[tokio::test]
async fn a_request_without_a_descriptor_waits_for_another_to_end() {
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    let server = Server::start(move |_| {
        vec![
            crate::scripted_server::Act::Send(ok.into()),
            crate::scripted_server::Act::Close,
        ]
    })
    .await;
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -n 40 && exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["fetches_sixty_pages_at_once", "--ignored", "--nocapture"])
        .env(SERVER, server.url("/").as_str());
    let output = tokio::task::spawn_blocking(move || limited.output().unwrap());
    let output = output.await.unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "{stdout}"
    );
    assert_eq!(server.connections(), AT_ONCE, "nothing was sent twice");
}

/// All connections begin before any answer is read, and the process has too few descriptors for
/// them.
#[tokio::test]
#[ignore = "needs a limit of its process; the test above runs it"]
async fn fetches_sixty_pages_at_once() {
    let url = canonicalize(None, &std::env::var(SERVER).unwrap()).unwrap();
    let fetcher = Arc::new(fetcher(config(&url)));
    let mut requests = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (fetcher, url) = (Arc::clone(&fetcher), url.clone());
        requests.spawn(async move { fetch(&fetcher, &url).await });
    }
    while let Some(answered) = requests.join_next().await {
        assert_eq!(answered.unwrap().unwrap().body, "ok");
    }
}
