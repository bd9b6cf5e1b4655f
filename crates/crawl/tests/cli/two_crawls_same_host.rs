//! Two crawls of one user that want to fetch from the same host.

use crawl_testweb::TestWeb;

use crate::harness::{MAX_WAIT, setup};

const QUICK: [&str; 4] = ["--delay-factor", "0", "--progress", "off"];

#[test]
fn a_host_locked_by_another_crawl_is_named_with_its_directory() {
    let (dir, cmd) = setup("two");
    let web = TestWeb::builder().seed(3).hosts(1).pages(30).start();
    let seed = web.url(0, "/");
    let slow = [&[&*seed, "--output", "c", "--delay", "1h"], &QUICK[..]].concat();
    let first = cmd.start(&slow);
    assert!(web.wait_for(MAX_WAIT, |log| !log.is_empty()));
    let quick = [
        &seed,
        "--output",
        "d",
        "--delay",
        "0s",
        "--wait-unreachable",
        "0s",
    ];
    let quick = [&quick[..], &QUICK].concat();
    let second = cmd.run(&quick);
    let directory = dir.path().join("c").display().to_string();
    let host = web.authority(0);
    let waits = format!("WARN {host} is waited for: another crawl is fetching from it, since 20");
    assert!(second.stderr.contains(&waits), "{}", second.stderr);
    let messages = second.stderr.lines().filter(|line| line.contains("since"));
    let messages: Vec<&str> = messages.collect();
    assert!(
        messages.len() >= 2 && messages.iter().all(|line| line.contains(&directory)),
        "{messages:?}"
    );
    assert_eq!(second.code, 1, "{}", second.stderr);

    // A killed crawl leaves only the time of its last request, and the next crawl has no delay.
    first.signal("KILL");
    first.end();
    let third = cmd.run(&quick);
    assert_eq!(third.code, 0, "{}", third.stderr);
    assert!(!third.stderr.contains("another crawl"), "{}", third.stderr);
}
