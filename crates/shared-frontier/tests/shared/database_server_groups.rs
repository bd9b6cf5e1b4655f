//! Tests of crawls in two server groups. Each group has its own server.

use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crawl_frontier::conformance::helpers::{admit, settle, url};
use crawl_frontier::worker_frontier::WorkerFrontier as _;
use crawl_frontier::{
    Frontier as _, LeaseOutcome, NotFetchedReason, Reason, RequestedState, UrlToAdmit,
};
use crawl_shared_frontier::{
    BucketMoveResult, BucketsToMove, PasswordSources, ServerGroupSelector, SharedCrawlError,
    SharedFrontier, SharedFrontierOptions, move_buckets, overview, reopen,
};
use crawl_weburl::CanonicalUrl;

use crate::crash_harness::{end_leases, new_crawl, options};
use crate::postgres_server::{Postgres, Served, Setup, execute, number, text};

pub(crate) const FETCHED: LeaseOutcome = LeaseOutcome::Fetched { status: 200 };

/// Two servers, and a crawl that is spread over both of them.
pub(crate) struct TwoGroups {
    _served: [Served; 2],
    pub(crate) urls: Vec<String>,
    pub(crate) crawl: String,
}

impl TwoGroups {
    pub(crate) fn new() -> TwoGroups {
        let served = [Served::new(), Served::second()];
        TwoGroups {
            urls: served.iter().map(|served| served.url.clone()).collect(),
            _served: served,
            crawl: new_crawl(),
        }
    }

    pub(crate) fn try_open(&self, worker: &str) -> Result<SharedFrontier, SharedCrawlError> {
        SharedFrontier::open_groups(&self.urls, &options(&self.crawl, worker))
    }

    pub(crate) fn open(&self, worker: &str) -> SharedFrontier {
        self.try_open(worker).unwrap()
    }

    /// Opens a worker in each server group. Each worker owns all buckets of its group.
    pub(crate) fn two_workers(&self) -> [SharedFrontier; 2] {
        let workers = [self.open("w1"), self.open("w2")];
        assert_eq!(workers.each_ref().map(SharedFrontier::home), [0, 1]);
        assert_eq!(workers.each_ref().map(SharedFrontier::buckets), [2, 2]);
        workers
    }

    /// Queries a number in one server group. `$K` in the query stands for the crawl's number in
    /// that group.
    pub(crate) fn number(&self, group: usize, sql: &str) -> i64 {
        number(&self.urls[group], &self.of_crawl(sql))
    }

    pub(crate) fn text(&self, group: usize, sql: &str) -> String {
        text(&self.urls[group], &self.of_crawl(sql))
    }

    pub(crate) fn execute(&self, group: usize, sql: &str) {
        execute(&self.urls[group], &self.of_crawl(sql));
    }

    fn of_crawl(&self, sql: &str) -> String {
        let number = format!(
            "(SELECT number FROM crawl_frontier.crawl WHERE name = '{}')",
            self.crawl
        );
        sql.replace("$K", &number)
    }

    pub(crate) fn links(&self, group: usize) -> i64 {
        self.number(
            group,
            "SELECT count(*) FROM crawl_frontier.link WHERE crawl = $K",
        )
    }

    pub(crate) fn move_to(
        &self,
        buckets: &[i32],
        to: i32,
    ) -> Result<BucketMoveResult, SharedCrawlError> {
        let wanted = BucketsToMove::Numbers(buckets.iter().copied().collect());
        move_buckets(
            &self.urls,
            &PasswordSources::default(),
            &self.crawl,
            (&wanted, &ServerGroupSelector::Number(to)),
            &mut |_| std::ops::ControlFlow::Continue(()),
        )
    }
}

/// Returns a URL whose host is in bucket `b`.
pub(crate) fn url_in(frontier: &SharedFrontier, b: i32, path: &str) -> CanonicalUrl {
    let hosts = (0..).map(|n| url(&format!("http://h{n}.example/{path}")));
    let mut of_bucket = hosts.filter(|url| frontier.bucket_of(&url.host_key()) == b);
    of_bucket.next().unwrap()
}

pub(crate) fn link_to(url: CanonicalUrl) -> UrlToAdmit {
    UrlToAdmit::link(url, 1, self::url("/"))
}

fn refusal(opened: Result<SharedFrontier, SharedCrawlError>) -> String {
    opened.err().unwrap().to_string()
}

#[test]
#[ignore = "needs PostgreSQL"]
fn both_groups_have_the_map_and_each_worker_works_in_one() {
    let groups = TwoGroups::new();
    let [first, second] = groups.two_workers();
    for group in 0..2 {
        let right = "SELECT count(*) FROM crawl_frontier.bucket WHERE crawl = $K AND home = b % 2";
        assert_eq!(groups.number(group, right), 4);
    }
    assert_eq!(
        (first.owned_buckets(), second.owned_buckets()),
        (vec![0, 2], vec![1, 3])
    );
    // Both groups have one worker and two buckets, so the third worker's home is the first group.
    // Its buckets already belong to the first worker, so the third one gets none.
    let third = groups.open("w3");
    assert_eq!((third.home(), third.buckets()), (0, 0));
    second.give_up().unwrap();
    first.give_up().unwrap();
    // A worker that starts again keeps its home group.
    assert_eq!(groups.open("w2").home(), 1);
    let crawls = overview(
        &groups.urls,
        &PasswordSources::default(),
        Some(&groups.crawl),
    )
    .unwrap();
    let shown: Vec<_> = crawls[0]
        .groups
        .iter()
        .map(|group| (group.number, group.buckets, group.workers))
        .collect();
    assert_eq!(shown, [(0, 2, 1), (1, 2, 1)]);
    assert_eq!((crawls[0].group_count, crawls[0].workers.len()), (2, 3));
    // The numbers of workers are unique over all server groups.
    let numbers: Vec<i64> = (0..2)
        .map(|group| {
            let sql = "SELECT sum(number)::bigint FROM crawl_frontier.worker WHERE crawl = $K";
            groups.number(group, sql)
        })
        .collect();
    assert_eq!(numbers, [64 + 128, 65]);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn incomplete_groups_of_a_crawl_are_refused() {
    let groups = TwoGroups::new();
    let options = options(&groups.crawl, "w1");
    let open = |urls: &[&String]| {
        let urls: Vec<String> = urls.iter().map(|url| (*url).clone()).collect();
        SharedFrontier::open_groups(&urls, &options)
    };
    let [a, b] = [&groups.urls[0], &groups.urls[1]];
    let twice = refusal(open(&[a, a]));
    assert!(
        twice.contains("are the same frontier") && twice.contains("hint: "),
        "{twice}"
    );
    drop(open(&[a, b]).unwrap());
    for group in 0..2 {
        end_leases(&groups.urls[group], &groups.crawl);
    }
    let missing = refusal(open(&[b]));
    assert!(
        missing.contains("is missing: the crawl has 2 server groups") && missing.contains("hint: "),
        "{missing}"
    );
    // Once the crawl has begun, the server groups may be named in any order.
    assert_eq!(open(&[b, a]).unwrap().home(), 0);
    // Two crawls of the same name are different crawls, not two server groups of one crawl.
    let other_crawl = TwoGroups::new();
    for url in &other_crawl.urls {
        SharedFrontier::open(url, &crate::crash_harness::options(&other_crawl.crawl, "w")).unwrap();
    }
    let differ = refusal(other_crawl.try_open("w1"));
    assert!(
        differ.contains("than the first group") && differ.contains("hint: "),
        "{differ}"
    );
}

#[test]
#[ignore = "needs PostgreSQL"]
fn an_interrupted_first_start_is_repeated_and_another_group_joins() {
    let groups = TwoGroups::new();
    drop(groups.open("w1"));
    end_leases(&groups.urls[0], &groups.crawl);
    // Set the state as if the first start died after it created the first server group, but before
    // it created the second.
    groups.execute(
        0,
        "UPDATE crawl_frontier.crawl SET is_whole = false WHERE number = $K",
    );
    groups.execute(1, "DELETE FROM crawl_frontier.bucket WHERE crawl = $K");
    groups.execute(1, "DELETE FROM crawl_frontier.crawl WHERE number = $K");
    let first = groups.open("w1");
    assert_eq!((first.home(), first.buckets()), (0, 2));
    // An additional server group that is named later joins the crawl. Running workers stop, because
    // they don't know that group.
    let mut urls = groups.urls.clone();
    urls.push(Served::new().database(&groups.crawl.replace(' ', "_")));
    let joined = SharedFrontier::open_groups(&urls, &options(&groups.crawl, "w9")).unwrap();
    assert_eq!((joined.home(), joined.buckets()), (1, 2));
    let ended = first.survey().unwrap_err().to_string();
    assert!(ended.contains("a new server group"), "{ended}");
    let crawls = overview(&urls, &PasswordSources::default(), Some(&groups.crawl)).unwrap();
    let buckets: Vec<_> = crawls[0].groups.iter().map(|group| group.buckets).collect();
    assert_eq!((crawls[0].group_count, buckets), (3, vec![2, 2, 0]));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_name_is_used_once_over_all_groups() {
    let groups = TwoGroups::new();
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let (urls, options) = (groups.urls.clone(), options(&groups.crawl, "w1"));
            std::thread::spawn(move || SharedFrontier::open_groups(&urls, &options))
        })
        .collect();
    let opened = threads.into_iter().map(|thread| thread.join().unwrap());
    let (began, refused): (Vec<_>, Vec<_>) = opened.partition(Result::is_ok);
    assert_eq!((began.len(), refused.len()), (1, 2));
    for why in refused {
        let is_in_use = matches!(why, Err(SharedCrawlError::WorkerInUse { .. }));
        assert!(is_in_use, "{:?}", why.err());
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn workers_of_two_groups_have_the_same_settings() {
    let groups = TwoGroups::new();
    let with = |worker: &str, settings: &str| SharedFrontierOptions {
        settings: settings.to_owned(),
        ..options(&groups.crawl, worker)
    };
    let first = SharedFrontier::open_groups(&groups.urls, &with("w1", "a = 1")).unwrap();
    let refused = SharedFrontier::open_groups(&groups.urls, &with("w2", "a = 2"));
    assert!(matches!(
        refused,
        Err(SharedCrawlError::OtherSettings { .. })
    ));
    let second = SharedFrontier::open_groups(&groups.urls, &with("w3", "a = 1")).unwrap();
    first.give_up().unwrap();
    assert_eq!(second.home(), 1);
    // A worker in the second server group still has the old settings.
    let refused = SharedFrontier::open_groups(&groups.urls, &with("w1", "a = 2"));
    assert!(matches!(
        refused,
        Err(SharedCrawlError::OtherSettings { .. })
    ));
    second.give_up().unwrap();
    SharedFrontier::open_groups(&groups.urls, &with("w1", "a = 2")).unwrap();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_link_to_another_group_is_there_before_its_page_and_is_admitted_once() {
    let groups = TwoGroups::new();
    let [first, second] = groups.two_workers();
    let (page, target) = (url_in(&first, 0, "page"), url_in(&first, 1, "target"));
    let out = UrlToAdmit {
        state: RequestedState::Excluded(NotFetchedReason::of(Reason::Scope)),
        ..link_to(url_in(&first, 3, "out"))
    };
    admit(&first, [link_to(page.clone())]);
    let links = [link_to(target.clone()), out];
    let lease = first.lease(&page.origin()).unwrap().unwrap();
    let mut transaction = first.begin().unwrap();
    transaction.settle(lease, FETCHED).unwrap();
    transaction.admit_all(&links).unwrap();
    transaction.keep_meta("crawl target", b"");
    // The leases end before the commit, so the commit fails. The links are already stored in the
    // other server group, but the page is still pending.
    end_leases(&groups.urls[0], &groups.crawl);
    let next = groups.open("w3");
    assert_eq!(next.home(), 0, "nobody lives there");
    assert!(transaction.commit().is_err());
    assert_eq!((groups.links(0), groups.links(1)), (0, 2));
    assert_eq!(second.crawl_meta().unwrap().len(), 1);
    // The next owner of the page's host fetches the page and sends the links again.
    let lease = next.lease(&page.origin()).unwrap().unwrap();
    let mut transaction = next.begin().unwrap();
    transaction.settle(lease, FETCHED).unwrap();
    transaction.admit_all(&links).unwrap();
    transaction.commit().unwrap();
    assert_eq!((groups.links(0), groups.links(1)), (0, 4));
    assert_eq!(second.take_links(2).unwrap().origins.len(), 1);
    second.take_links(99).unwrap();
    let counts = second.counts();
    assert_eq!((counts.known, counts.pending, counts.excluded), (2, 1, 1));
    assert!(second.lease(&target.origin()).unwrap().is_some());
    assert_eq!(groups.links(1), 0);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_link_sent_by_an_old_map_is_forwarded() {
    let groups = TwoGroups::new();
    let [first, second] = groups.two_workers();
    second.hand_over(&[3]).unwrap();
    groups.move_to(&[3], 0).unwrap();
    // The first worker does not know yet that its own server group now serves bucket 3.
    let target = url_in(&first, 3, "target");
    admit(&first, [link_to(target.clone())]);
    assert_eq!((groups.links(0), groups.links(1)), (0, 1));
    // The second worker learns about the move, then finds the waiting links.
    second.survey().unwrap();
    let survey = second.survey().unwrap();
    assert!(
        survey.has_unqueued_work && survey.to_forward == [1],
        "{survey:?}"
    );
    second.forward_links(1).unwrap();
    assert_eq!((groups.links(0), groups.links(1)), (1, 0));
    assert_eq!(first.take_free(9).unwrap().0, 1);
    first.take_links(9).unwrap();
    assert!(first.lease(&target.origin()).unwrap().is_some());
    // After a survey the second worker knows the new map. If a server group has no worker, workers
    // of other groups forward its links.
    second.survey().unwrap();
    admit(&second, [link_to(url_in(&first, 3, "next"))]);
    assert_eq!((groups.links(0), groups.links(1)), (1, 0));
    second.give_up().unwrap();
    let sql = "UPDATE crawl_frontier.link SET b = 1 WHERE crawl = $K";
    groups.execute(0, sql);
    assert_eq!(first.survey().unwrap().to_forward, [0]);
    first.forward_links(0).unwrap();
    assert_eq!((groups.links(0), groups.links(1)), (0, 1));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_seed_settled_in_another_group_sends_no_link() {
    let groups = TwoGroups::new();
    let [first, second] = groups.two_workers();
    let seed = || UrlToAdmit::seed(url_in(&first, 1, "seed"));
    let admit_all = |worker: &SharedFrontier| {
        let mut transaction = worker.begin().unwrap();
        transaction.admit_all(&[seed()]).unwrap();
        transaction.commit().unwrap();
    };
    admit_all(&first);
    assert_eq!((groups.links(0), groups.links(1)), (0, 1));
    second.take_links(9).unwrap();
    let lease = second.lease(&seed().url.origin()).unwrap().unwrap();
    settle(&second, lease, FETCHED);
    second.give_up().unwrap();
    first.give_up().unwrap();
    // The next start admits the seed again. The seed must not be sent as a link, because the other
    // server group has no worker to take the link.
    let again = groups.open("w1");
    admit_all(&again);
    assert_eq!((groups.links(0), groups.links(1)), (0, 0));
    again.survey().unwrap();
    let survey = again.survey().unwrap();
    assert!(
        !survey.has_unqueued_work && survey.unserved_group.is_none(),
        "{survey:?}"
    );
}

#[test]
#[ignore = "needs PostgreSQL"]
fn an_unreachable_group_is_retried_for_the_duration_of_a_lease() {
    let groups = TwoGroups::new();
    let proxy = ClosableProxy::before(groups.urls[1].rsplit_once(':').unwrap().1);
    let through = [groups.urls[0].clone(), proxy.url.clone()];
    let brief = SharedFrontierOptions {
        lease: Duration::from_secs(2),
        heartbeat: Duration::from_millis(200),
        ..options(&groups.crawl, "w1")
    };
    let first = SharedFrontier::open_groups(&through, &brief).unwrap();
    admit(&first, [link_to(url_in(&first, 1, "a"))]);
    // The proxy drops the connection and accepts none for half a second. The link waits in the
    // meantime and is then sent.
    proxy.close();
    let opens = std::thread::spawn({
        let proxy = proxy.clone();
        move || {
            std::thread::sleep(Duration::from_millis(500));
            proxy.open();
        }
    });
    admit(&first, [link_to(url_in(&first, 1, "b"))]);
    opens.join().unwrap();
    assert_eq!((groups.links(0), groups.links(1)), (0, 2));
    first.survey().unwrap();
    // The proxy stays closed for longer than a lease, so a link of the commit can't be sent. The
    // whole commit fails, but the worker's own leases stay valid.
    proxy.close();
    let page = url_in(&first, 0, "page");
    let mut transaction = first.begin().unwrap();
    transaction
        .admit_all(&[link_to(page.clone()), link_to(url_in(&first, 1, "c"))])
        .unwrap();
    let failed = transaction.commit().unwrap_err().to_string();
    assert!(failed.contains("127.0.0.1"), "{failed}");
    assert!(first.check().is_ok() && first.known(&page).unwrap().is_none());
    assert!(first.survey().is_err());
}

/// A proxy in front of a database server. Tests can close and reopen the proxy.
#[derive(Clone)]
struct ClosableProxy {
    url: String,
    is_open: Arc<AtomicBool>,
    connections: Arc<Mutex<Vec<TcpStream>>>,
}

impl ClosableProxy {
    fn before(port_and_database: &str) -> ClosableProxy {
        let (port, database) = port_and_database.split_once('/').unwrap();
        let address = format!("127.0.0.1:{port}");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap();
        let gate = ClosableProxy {
            url: format!("postgres://crawl@{own}/{database}"),
            is_open: Arc::new(AtomicBool::new(true)),
            connections: Arc::default(),
        };
        let served = gate.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if !served.is_open.load(Ordering::SeqCst) {
                    continue;
                }
                let server = TcpStream::connect(&address).unwrap();
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                served.connections.lock().unwrap().extend([client, server]);
            }
        });
        gate
    }

    fn open(&self) {
        self.is_open.store(true, Ordering::SeqCst);
    }

    fn close(&self) {
        self.is_open.store(false, Ordering::SeqCst);
        for connection in self.connections.lock().unwrap().drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_crawl_is_over_when_no_group_has_anything_left() {
    let groups = TwoGroups::new();
    let [first, second] = groups.two_workers();
    let target = url_in(&first, 1, "target");
    let is_over = |of: &SharedFrontier| {
        let survey = of.survey().unwrap();
        !survey.has_unqueued_work && survey.pending_open == 0
    };
    assert!(is_over(&first) && is_over(&second));
    admit(&first, [link_to(target.clone())]);
    assert!(!is_over(&first) && !is_over(&second));
    let survey = second.survey().unwrap();
    assert!(survey.has_own_unqueued_work && !first.survey().unwrap().has_own_unqueued_work);
    assert_eq!((survey.living, survey.group_living), (2, 1));
    second.take_links(9).unwrap();
    assert_eq!(first.survey().unwrap().pending_open, 1);
    // A server group with pending URLs but without a worker is reported.
    second.give_up().unwrap();
    assert_eq!(first.survey().unwrap().unserved_group, Some(1));
    let second = groups.open("w2");
    assert_eq!(first.survey().unwrap().unserved_group, None);
    let lease = second.lease(&target.origin()).unwrap().unwrap();
    settle(&second, lease, FETCHED);
    assert!(is_over(&first) && is_over(&second));
    // While a bucket is being moved, its deferred URLs still have to be listed, so the crawl is not
    // over.
    let mark = |to| {
        let set = format!("UPDATE crawl_frontier.bucket SET moving_to = {to}");
        groups.execute(1, &format!("{set} WHERE crawl = $K AND b = 1"));
    };
    mark("0");
    assert!(!is_over(&first) && !is_over(&second));
    mark("NULL");
    assert!(is_over(&first) && is_over(&second));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn pages_of_the_whole_crawl_are_allowed_by_the_first_group() {
    let groups = TwoGroups::new();
    let [first, second] = groups.two_workers();
    assert_eq!(first.allow(0, 6, 10).unwrap(), 6);
    assert_eq!(second.allow(0, 6, 10).unwrap(), 4);
    assert_eq!(first.allow(6, 6, 10).unwrap(), 6);
    // Pages that were granted to a worker but that it does not need become free for other workers.
    second.set_idle(true, Some(1)).unwrap();
    assert_eq!(first.allow(6, 6, 10).unwrap(), 9);
    // The pages granted to a dead worker become free too, except the pages that it fetched.
    let mut transaction = first.begin_worker().unwrap();
    transaction.mark("pages.jsonl", 100);
    transaction.note_spent(3, 100);
    transaction.commit().unwrap();
    assert_eq!(second.allow(1, 9, 10).unwrap(), 1);
    end_leases(&groups.urls[0], &groups.crawl);
    assert_eq!(second.allow(1, 9, 10).unwrap(), 7);
    assert_eq!(second.survey().unwrap().others_bytes, 100);
    // Concurrent requests for pages are never granted more than the budget.
    let crowd = TwoGroups::new();
    let workers: Vec<_> = (0..4).map(|n| crowd.open(&format!("w{n}"))).collect();
    let allowed: u64 = std::thread::scope(|scope| {
        let threads = workers.iter().map(|worker| {
            scope.spawn(move || {
                let mut allowed = 0;
                for _ in 0..8 {
                    allowed = worker.allow(allowed, 5, 57).unwrap();
                }
                allowed
            })
        });
        let threads: Vec<_> = threads.collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(allowed, 57);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn lost_urls_are_reopened_in_the_group_that_serves_them_now() {
    let groups = TwoGroups::new();
    let [first, second] = groups.two_workers();
    let page = url_in(&first, 1, "page");
    admit(
        &second,
        [link_to(page.clone()), link_to(url_in(&first, 3, "other"))],
    );
    for b in [1, 3] {
        let path = if b == 1 { "page" } else { "other" };
        let origin = url_in(&first, b, path).origin();
        let lease = second.lease(&origin).unwrap().unwrap();
        settle(&second, lease, FETCHED);
    }
    second.hand_over(&[1]).unwrap();
    groups.move_to(&[1], 0).unwrap();
    second.give_up().unwrap();
    let lost = reopen(
        &groups.urls,
        &PasswordSources::default(),
        &groups.crawl,
        "w2",
    )
    .unwrap();
    assert_eq!(lost.buckets_to_reopen, 2);
    assert_eq!(first.take_free(9).unwrap().0, 1);
    first.take_links(99).unwrap();
    assert!(first.lease(&page.origin()).unwrap().is_some());
    // The name has no home group any more. The second group has no worker, so it becomes the home.
    let again = groups.open("w2");
    again.take_links(99).unwrap();
    assert_eq!((again.home(), again.counts().pending), (1, 1));
}

/// A transaction can span two server groups in two ways only. Either it is prepared in each group,
/// or it is open in one group while the worker queries the other. The servers' logs must show
/// neither.
#[test]
#[ignore = "needs PostgreSQL"]
fn no_transaction_spans_two_groups() {
    let setup = Setup {
        settings: &["log_statement=all", "log_line_prefix=%p "],
        files: &[],
    };
    let servers = [Postgres::start(&setup), Postgres::start(&setup)];
    let groups = TwoGroups {
        urls: servers
            .iter()
            .map(|server| format!("postgres://crawl@127.0.0.1:{}/postgres", server.port))
            .collect(),
        _served: [Served::new(), Served::second()],
        crawl: new_crawl(),
    };
    let workers = groups.two_workers();
    for n in 0..3 {
        for worker in &workers {
            let links = (0..4).map(|b| link_to(url_in(worker, b, &format!("{n}"))));
            admit(worker, links);
            worker.take_links(99).unwrap();
            worker.survey().unwrap();
        }
    }
    workers[1].hand_over(&[1]).unwrap();
    // Everything logged so far is from workers. Read the logs now, because the move below has its
    // own transactions.
    let logs = servers.each_ref().map(Postgres::log);
    groups.move_to(&[1], 0).unwrap();
    assert_eq!(workers[0].take_free(9).unwrap().0, 1);
    for (group, log) in logs.iter().enumerate() {
        let statements = log.to_uppercase();
        for word in [
            "PREPARE TRANSACTION",
            "DBLINK",
            "POSTGRES_FDW",
            "NOTIFY",
            "SKIP LOCKED",
        ] {
            assert!(!statements.contains(word), "{word}");
        }
        // Each transaction with several statements must be a commit by a worker of this server
        // group. Everything else, such as links from other workers, is a single statement.
        let begun = log
            .lines()
            .filter(|line| line.ends_with("statement: BEGIN"))
            .count();
        let sql = "SELECT sum(commits)::bigint FROM crawl_frontier.worker WHERE crawl = $K";
        let commits = groups.number(group, sql);
        assert_eq!(i64::try_from(begun).unwrap(), commits, "group {group}");
        let linked = log
            .lines()
            .filter(|line| line.contains("INSERT INTO crawl_frontier.link"));
        assert!(linked.count() > 0, "the others sent links");
        assert!(commits >= 3);
    }
    let moved = servers
        .each_ref()
        .map(Postgres::log)
        .concat()
        .to_uppercase();
    assert!(!moved.contains("PREPARE TRANSACTION"));
    for server in &servers {
        // The servers would refuse prepared transactions anyway.
        let url = format!("postgres://crawl@127.0.0.1:{}/postgres", server.port);
        assert_eq!(text(&url, "SHOW max_prepared_transactions"), "0");
    }
}
