//! Tests of a crawl that is steered while it runs, over real sockets and a real disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crawl_engine::{
    CommandAnswer, CommandRefusal, Commander, CrawlCommand, EngineError, RunSummary,
};
use crawl_engine::{CrawlPhase, EndReason, FreeSpaceMeter, park_at_rest, unpark_at_rest};
use crawl_testweb::{HostsInScope, HttpAnswer as Reply, LinkMix, TestWeb};
use crawl_weburl::HostKey;

use crate::support::Crawl;

fn two_hosts() -> TestWeb {
    TestWeb::builder()
        .hosts(2)
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(0, "/", Reply::html("<a href=/a>a</a>"))
        .script(0, "/a", Reply::html("a"))
        .script(0, "/hidden", Reply::html("<a href=/deep>x</a>"))
        .script(0, "/deep", Reply::html("deep"))
        .script(1, "/", Reply::html("<a href=/b>b</a>"))
        .script(1, "/b", Reply::html("b"))
        .start()
}

/// Runs a crawl that is paused before its first request, gets the commands, and is then resumed.
fn steered(
    crawl: &Crawl,
    commands: Vec<CrawlCommand>,
) -> (Vec<Result<(), CommandRefusal>>, RunSummary) {
    let steer = async move |commander: Commander| {
        assert!(matches!(
            commander.ask(CrawlCommand::Pause).await,
            Ok(CommandAnswer::Done)
        ));
        let mut answers = Vec::new();
        for command in commands {
            answers.push(commander.ask(command).await.map(drop));
        }
        assert!(matches!(
            commander.ask(CrawlCommand::Resume).await,
            Ok(CommandAnswer::Done)
        ));
        answers
    };
    let (answers, summary) = crawl.run_steered(steer);
    (answers, summary.unwrap())
}

#[test]
fn an_added_url_outlives_its_run() {
    let web = two_hosts();
    let mut crawl = Crawl::of(&web);
    crawl.config.fetch.allow_private = true;
    crawl.config.budgets.max_pages = Some(1);
    let second_host = web.url(1, "/");
    let added = vec![
        CrawlCommand::Add(web.url(0, "/hidden")),
        CrawlCommand::Add(second_host.clone()),
    ];
    let (answers, summary) = steered(&crawl, added);
    assert_eq!(answers, [Ok(()), Ok(())]);
    assert_eq!(summary.ended, EndReason::Budget("max-pages"));
    // The next run gets no `Add`, yet fetches both added URLs and still has the second host in
    // scope.
    crawl.config.budgets.max_pages = None;
    assert_eq!(crawl.run().unwrap().ended, EndReason::Finished);
    let statuses = crawl.statuses();
    for (host, path) in [(0, "/hidden"), (0, "/deep"), (0, "/a"), (1, "/"), (1, "/b")] {
        assert_eq!(
            statuses.get(&web.url(host, path)),
            Some(&Some(200)),
            "{path}"
        );
    }
    let url = crawl_weburl::canonicalize(None, &second_host).unwrap();
    let (answers, _) = steered(&crawl, vec![CrawlCommand::Add(second_host)]);
    assert_eq!(answers, [Err(CommandRefusal::Visited { url })]);
}

#[test]
fn a_host_is_parked_and_unparked_while_no_crawl_runs() {
    let web = two_hosts();
    let crawl = Crawl::of(&web);
    let host = HostKey::parse(web.authority(0)).unwrap();
    let dir = &crawl.config.output;
    assert!(matches!(
        park_at_rest(dir, &host),
        Err(EngineError::NothingToDo { .. })
    ));
    let (answers, summary) = steered(&crawl, vec![CrawlCommand::Park(host.clone())]);
    assert_eq!(answers, [Ok(())]);
    assert!(matches!(&summary.ended, EndReason::NoFetchableHost(hosts) if hosts[0].host == host));
    assert!(summary.pending > 0);
    let count = web.take_log().len();
    assert!(count <= 1, "robots.txt may have been on its way: {count}");

    unpark_at_rest(dir, &host).unwrap();
    let again = unpark_at_rest(dir, &host).unwrap_err();
    assert!(matches!(
        again,
        EngineError::Refused(CommandRefusal::NotParked(_))
    ));
    let never = HostKey::parse("never.example").unwrap();
    let never = park_at_rest(dir, &never).unwrap_err();
    assert!(matches!(
        never,
        EngineError::Refused(CommandRefusal::UnknownHost(_))
    ));
    park_at_rest(dir, &host).unwrap();
    assert!(matches!(
        crawl.run().unwrap().ended,
        EndReason::NoFetchableHost(_)
    ));
    assert!(web.take_log().is_empty());
    unpark_at_rest(dir, &host).unwrap();
    assert_eq!(crawl.run().unwrap().ended, EndReason::Finished);
    assert_eq!(crawl.statuses().len(), 2);
}

#[test]
fn a_command_after_the_end_is_refused() {
    let web = two_hosts();
    let crawl = Crawl::of(&web);
    let (late, summary) = crawl.run_steered(async |commander: Commander| commander);
    assert_eq!(summary.unwrap().ended, EndReason::Finished);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let answer = runtime.block_on(late.ask(CrawlCommand::Pause)).map(drop);
    assert_eq!(answer, Err(CommandRefusal::Ending));
}

#[test]
fn a_crawl_rests_while_its_disk_is_low_and_loses_nothing() {
    let web = TestWeb::builder().seed(7).hosts(1).pages(8).start();
    let mut crawl = Crawl::of(&web);
    crawl.config.min_free = 1_000;
    // The first measurement finds enough space. Later ones find too little, until the crawl reports
    // that.
    let (looks, was_low) = (AtomicU64::new(0), Arc::new(AtomicBool::new(false)));
    let is_enough = Arc::clone(&was_low);
    let free_space = FreeSpaceMeter::measured_by(move |_| {
        let is_first = looks.fetch_add(1, Ordering::Relaxed) == 0;
        match is_first || is_enough.load(Ordering::Relaxed) {
            true => Some(1_100),
            false => Some(999),
        }
    });
    // With this delay, the crawl is still running at the second measurement, after two seconds.
    crawl.config.politeness.delay = Duration::from_secs(1);
    let summary = crawl.run_on(free_space, |phase| {
        was_low.fetch_or(phase == CrawlPhase::DiskLow, Ordering::Relaxed);
    });
    assert_eq!(summary.unwrap().ended, EndReason::Finished);
    assert!(was_low.load(Ordering::Relaxed));
    let truth = web.truth(HostsInScope::Host).fetched_with_sitemaps();
    let statuses = crawl.statuses();
    assert!(truth.iter().all(|url| statuses.contains_key(url)));
}
