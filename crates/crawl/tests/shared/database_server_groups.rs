//! Crawls of several workers over two server groups.

use std::time::Duration;

use crawl_testweb::{HttpAnswer, TestWeb};
use serde_json::Value;

use crate::postgres::text;
use crate::shared_crawl_harness::{Crawl, repeated_paths};

/// Returns the buckets of hosts in a server group that have pending URLs, as a list for `crawl
/// frontier move`.
fn buckets_at_work(crawl: &Crawl, group: usize) -> String {
    let name = crawl.name();
    let sql = format!(
        "SELECT coalesce(string_agg(b::text, ','), '') FROM (
            SELECT k.b FROM crawl_frontier.bucket k
            JOIN crawl_frontier.crawl c ON c.number = k.crawl
            WHERE c.name = '{name}' AND k.home = {group} AND k.pending > 0
            ORDER BY k.pending DESC LIMIT 4) t"
    );
    text(&crawl.groups()[group], &sql)
}

fn status(crawl: &Crawl) -> Value {
    let output = crawl.frontier(&["status", "--json"]);
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    status["crawls"][0].clone()
}

#[test]
#[ignore = "needs PostgreSQL"]
fn workers_of_two_groups_fetch_each_page_once_while_buckets_are_moved() {
    let web = TestWeb::builder().seed(31).hosts(16).pages(60);
    let crawl = Crawl::in_two_groups(web.latency(Duration::from_millis(5)));
    let names = ["w1", "w2", "w3"];
    let mut workers = vec![crawl.start("w1"), crawl.start("w2")];
    workers.push(crawl.start_beside("w1", "w3"));
    crawl.wait_for_requests(200);
    let mut moved = 0;
    for (from, to) in [(1, "0"), (0, "1")] {
        let buckets = buckets_at_work(&crawl, from);
        let output = crawl.frontier(&["move", &buckets, "--to", to, "--json"]);
        assert!(output.status.success(), "{buckets}: {output:?}");
        let counts: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(counts["group"].to_string(), to);
        assert!(counts["urls"].as_u64().unwrap() > 0, "{counts}");
        moved += counts["buckets_moved"].as_u64().unwrap();
    }
    assert!(moved >= 4, "{moved} buckets were moved");
    let requests = crawl.web.log().len();
    for worker in workers {
        let stderr = worker.wait().expect(0);
        assert!(stderr.contains("finished"), "{stderr}");
    }
    crawl.check_whole(&names);
    assert_eq!(repeated_paths(&crawl.web.log()), 0, "nobody died");
    assert!(
        crawl.web.log().len() > requests + 100,
        "it ran on when they were moved"
    );
    let status = status(&crawl);
    let groups = status["groups"].as_array().unwrap();
    let buckets: u64 = groups
        .iter()
        .map(|it| it["buckets"].as_u64().unwrap())
        .sum();
    assert_eq!((groups.len(), buckets), (2, 1_024));
    assert_eq!(status["pending"], 0);
    let mut homes: Vec<_> = status["workers"].as_array().unwrap().iter().collect();
    homes.sort_by_key(|worker| worker["group"].as_u64());
    assert!(homes[0]["group"] != homes[2]["group"], "{status}");
    for name in names {
        assert!(!crawl.pages(&[name]).is_empty(), "{name} had nothing to do");
    }
    assert!(!crawl.excluded(&names).is_empty());
    // The workers' records can be gathered into one crawl.
    let mut gather = crawl.program();
    gather
        .arg("gather")
        .args(names.map(|name| crawl.output(name)));
    let gathered = gather.arg("--output").arg(crawl.output("whole")).output();
    assert!(gathered.unwrap().status.success());
    assert_eq!(crawl.pages(&["whole"]), crawl.pages(&names));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn pages_are_bounded_over_all_groups() {
    let crawl = Crawl::in_two_groups(TestWeb::builder().seed(32).hosts(12).pages(50));
    let flags = "--scope any --allow-private --max-pages 357";
    let names = ["w1", "w2"];
    let workers = names.map(|name| crawl.start_with(name, flags));
    for worker in workers {
        let stderr = worker.wait().expect(0);
        assert!(stderr.contains("ended by --max-pages"), "{stderr}");
    }
    assert_eq!(crawl.pages(&names).len(), 357);
    crawl.check_gaps();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_seed_s_redirect_target_joins_the_scope_in_all_groups() {
    let crawl = Crawl::in_two_groups(TestWeb::builder().seed(33).hosts(2).pages(40));
    let target = crawl.web.url(1, "/");
    crawl.web.script(0, "/", HttpAnswer::redirect(301, &target));
    let names = ["w1", "w2"];
    let workers = names.map(|name| crawl.start_with(name, "--allow-private"));
    for worker in workers {
        worker.wait().expect(0);
    }
    let pages = crawl.pages(&names);
    let of_target = pages.iter().filter(|url| url.starts_with(&target));
    assert!(of_target.count() >= 40, "{pages:?}");
    crawl.check_gaps();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_group_without_a_worker_is_reported_and_waited_for() {
    let crawl = Crawl::in_two_groups(TestWeb::builder().seed(34).hosts(12).pages(60));
    let mut first = crawl.start("w1");
    // A worker takes only those buckets of hosts that its server group stores. The other group's
    // buckets wait for a worker of that group.
    let served = |status: &Value, group: usize| status["groups"][group]["workers"].clone();
    while crawl.buckets().is_empty() {
        std::thread::sleep(Duration::from_millis(50));
    }
    let waiting = status(&crawl);
    assert_eq!(
        (served(&waiting, 0), served(&waiting, 1)),
        (1.into(), 0.into())
    );
    let stderr = first.wait_to_say("group 1 of the frontier has URLs to fetch but no worker");
    assert!(stderr.contains("hint: start a worker"), "{stderr}");
    let second = crawl.start("w2");
    first.wait().expect(0);
    second.wait().expect(0);
    crawl.check_whole(&["w1", "w2"]);
    // A worker that names only the second server group is refused.
    let mut alone = crawl.program();
    let seed = crawl.web.url(0, "/");
    alone.args([
        seed.as_str(),
        "--scope",
        "any",
        "--allow-private",
        "--worker",
        "w2",
    ]);
    alone.args(["--frontier", &crawl.groups()[1], "--crawl", crawl.name()]);
    let refused = alone
        .arg("--output")
        .arg(crawl.output("w2"))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("group 0 of crawl") && stderr.contains("hint: "),
        "{stderr}"
    );
}
