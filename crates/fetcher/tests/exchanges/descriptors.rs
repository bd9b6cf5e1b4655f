//! Connections where file descriptors run out.

use std::process::Command;
use std::sync::Arc;

use crawl_weburl::canonicalize;
use tokio::task::JoinSet;

use crate::support::{Server, config, fetch, fetcher};

/// The variable by which the process with few descriptors finds the server.
const SERVER: &str = "CRAWL_TEST_SERVER";
const AT_ONCE: usize = 60;

/// The limit is that of a whole process, so the other tests are in another one.
#[tokio::test]
async fn ours_who_finds_no_descriptor_waits_for_another_to_end() {
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    let server = Server::start(move |_| {
        vec![
            crate::support::Act::Send(ok.into()),
            crate::support::Act::Close,
        ]
    })
    .await;
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -n 40 && exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "descriptors::asks_for_sixty_pages_at_once"])
        .args(["--ignored", "--nocapture"])
        .env(SERVER, server.url("/").as_str());
    let ran = tokio::task::spawn_blocking(move || limited.output().unwrap());
    let ran = ran.await.unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
    assert_eq!(server.connections(), AT_ONCE, "nothing was sent twice");
}

/// All connections begin before any answer is read: in this process they can't all stand.
#[tokio::test]
#[ignore = "needs a limit of its process; the test above runs it"]
async fn asks_for_sixty_pages_at_once() {
    let url = canonicalize(None, &std::env::var(SERVER).unwrap()).unwrap();
    let fetcher = Arc::new(fetcher(config(&url)));
    let mut asked = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (fetcher, url) = (Arc::clone(&fetcher), url.clone());
        asked.spawn(async move { fetch(&fetcher, &url).await });
    }
    while let Some(answered) = asked.join_next().await {
        assert_eq!(answered.unwrap().unwrap().body, "ok");
    }
}
