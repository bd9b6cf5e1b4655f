//! Tests of moving buckets between server groups, with interruptions.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crawl_frontier::conformance::helpers::{admit, settle_until};
use crawl_frontier::worker_frontier::WorkerFrontier as _;
use crawl_frontier::{
    Frontier as _, LeaseOutcome, NotFetchedReason, Reason, RequestedState, UrlToAdmit,
};
use crawl_shared_frontier::{
    BucketMoveProgress, BucketsToMove, PasswordSources, ServerGroupSelector, SharedCrawlError,
    SharedFrontier, move_buckets,
};

use crate::database_server_groups::{FETCHED, TwoGroups, link_to, url_in};

/// The bucket that the tests move from server group 1 to group 0.
const MOVED: i32 = 3;

const TABLES: [&str; 6] = [
    "url",
    "visit",
    "origin",
    "host",
    "bucket_to_reopen",
    "bucket",
];

/// Gives the moved bucket rows of every kind. The neighbouring bucket gets rows too, which must not
/// move.
fn fill(owner: &SharedFrontier) {
    for b in [MOVED, 1] {
        let url = |path: &str| url_in(owner, b, path);
        let mut links: Vec<UrlToAdmit> = (0..40).map(|n| link_to(url(&format!("p{n}")))).collect();
        links.push(UrlToAdmit {
            state: RequestedState::Excluded(NotFetchedReason::of(Reason::Scope)),
            ..link_to(url("out"))
        });
        admit(owner, links);
        let origin = url("").origin();
        for n in 0..10 {
            let lease = owner.lease(&origin).unwrap().unwrap();
            settle_until(owner, lease, n, n + 100);
        }
        let outcomes = [
            LeaseOutcome::Failed {
                why: "\"silent\" \\ \u{e9}\u{1f600}".to_owned(),
            },
            LeaseOutcome::Deferred(NotFetchedReason::of(Reason::Trap)),
            LeaseOutcome::Excluded(NotFetchedReason::of(Reason::Robots)),
            FETCHED,
        ];
        for outcome in outcomes {
            let lease = owner.lease(&origin).unwrap().unwrap();
            let mut transaction = owner.begin().unwrap();
            transaction.settle(lease, outcome).unwrap();
            transaction.keep_host(&url("").host_key(), u64::MAX - 7, &[0, 255, 92, 34]);
            transaction.keep_robots(&origin, b"User-agent: *\r\n\0");
            transaction.commit().unwrap();
        }
    }
}

/// Returns all rows of the moved bucket in a server group, by table, as text.
fn rows(groups: &TwoGroups, group: usize) -> BTreeMap<&'static str, String> {
    let rows = |table: &&'static str| {
        let sql = format!(
            "SELECT coalesce(string_agg(t::text, E'\\n' ORDER BY t::text), '')
            FROM (SELECT to_jsonb(x) - '{{crawl,owner,epoch,lease_until,home,moving_to}}'::text[] AS t
                FROM crawl_frontier.{table} x WHERE crawl = $K AND b = {MOVED}) y"
        );
        (*table, groups.text(group, &sql))
    };
    TABLES.iter().map(rows).collect()
}

/// Moves the bucket, and stops after the step with the number `last`.
fn move_until(
    groups: &TwoGroups,
    to: i32,
    last: usize,
) -> Result<Vec<BucketMoveProgress>, SharedCrawlError> {
    let wanted = BucketsToMove::Numbers([MOVED].into());
    let mut steps = Vec::new();
    move_buckets(
        &groups.urls,
        &PasswordSources::default(),
        &groups.crawl,
        (&wanted, &ServerGroupSelector::Number(to)),
        &mut |step| {
            steps.push(step);
            match steps.len() > last {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        },
    )?;
    Ok(steps)
}

/// Returns the server groups in which a worker could take the moved bucket.
fn serving(groups: &TwoGroups) -> Vec<usize> {
    let serves = |group: &usize| {
        let sql = format!(
            "SELECT count(*) FROM crawl_frontier.bucket WHERE crawl = $K AND b = {MOVED}
                AND home = {group} AND moving_to IS NULL"
        );
        groups.number(*group, &sql) == 1
    };
    (0..2).filter(serves).collect()
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_bucket_is_moved_with_all_its_rows() {
    let groups = TwoGroups::new();
    let [first, second] = groups.two_workers();
    fill(&second);
    groups.execute(
        1,
        &format!("INSERT INTO crawl_frontier.bucket_to_reopen VALUES (-5, 7, $K, {MOVED}, 65)"),
    );
    let before = rows(&groups, 1);
    assert!(before.values().all(|rows| !rows.is_empty()), "{before:?}");
    // The owner finds the mark of the move, and hands the bucket over.
    let moving = std::thread::scope(|scope| {
        let mover = scope.spawn(|| move_until(&groups, 0, 99));
        while second.survey().unwrap().moving.is_empty() {}
        assert_eq!(second.survey().unwrap().moving, [MOVED]);
        second.take_free(9).unwrap();
        second.hand_over(&[MOVED]).unwrap();
        mover.join().unwrap().unwrap()
    });
    let urls = 41;
    assert_eq!(
        moving.last(),
        Some(&BucketMoveProgress::Moved {
            bucket: MOVED,
            urls
        })
    );
    assert_eq!(rows(&groups, 0), before);
    let remaining_rows = rows(&groups, 1);
    assert!(
        remaining_rows
            .iter()
            .all(|(table, rows)| rows.is_empty() || *table == "bucket"),
        "{remaining_rows:?}"
    );
    assert_eq!(serving(&groups), [0]);
    // The new owner sees the same state as the old one, and has to wait for a gap before it sends
    // requests.
    assert_eq!(second.take_free(9).unwrap().0, 0);
    let (count, origins) = first.take_free(9).unwrap();
    let host = url_in(&first, MOVED, "").host_key();
    assert_eq!((count, origins.len(), origins[0].1), (1, 1, 26));
    assert!(first.taken_over_for(&host).is_some());
    assert_eq!(
        first.host(&host).unwrap(),
        Some((u64::MAX - 7, vec![0, 255, 92, 34]))
    );
    let visit = first.visit(&url_in(&first, MOVED, "p0")).unwrap();
    assert_eq!(visit.unwrap().due, 100);
    // The neighbouring bucket did not move.
    assert_eq!(
        (second.owned_buckets(), second.counts().known),
        (vec![1], 41)
    );
    // The bucket is moved back to the server group that had its rows before.
    first.hand_over(&[MOVED]).unwrap();
    let before = rows(&groups, 0);
    move_until(&groups, 1, 99).unwrap();
    assert_eq!((rows(&groups, 1), serving(&groups)), (before, vec![1]));
    let moved = groups.move_to(&[MOVED], 1).unwrap();
    assert_eq!((moved.moved, moved.were_there), (0, 1));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn an_interrupted_move_continues_or_is_undone() {
    // The move is interrupted after each of its steps: marked, taken, copied, served.
    for last in 0..4 {
        for is_taken_back in [false, true] {
            let groups = TwoGroups::new();
            let [first, second] = groups.two_workers();
            fill(&second);
            second.hand_over(&[MOVED]).unwrap();
            let before = rows(&groups, 1);
            let steps = move_until(&groups, 0, last).unwrap();
            assert_eq!(steps.len(), last + 1, "{steps:?}");
            // At most one server group serves the bucket, and no worker considers the crawl
            // finished.
            let is_served = last == 3;
            assert_eq!(serving(&groups).len(), usize::from(is_served), "{last}");
            for worker in [&first, &second] {
                assert!(worker.survey().unwrap().pending_open >= 26);
            }
            assert_eq!(second.take_free(9).unwrap().0, 0);
            assert_eq!(first.take_free(9).unwrap().0, usize::from(is_served));
            if is_served {
                first.hand_over(&[MOVED]).unwrap();
            }
            let to = if is_taken_back { 1 } else { 0 };
            move_until(&groups, to, 99).unwrap();
            let at = to as usize;
            assert_eq!(
                (rows(&groups, at), serving(&groups)),
                (before, vec![at]),
                "{last}"
            );
            let remaining_rows = rows(&groups, 1 - at);
            assert!(
                remaining_rows
                    .iter()
                    .all(|(table, rows)| rows.is_empty() || *table == "bucket")
            );
            let owner = if is_taken_back { &second } else { &first };
            assert_eq!(owner.take_free(9).unwrap().0, 1);
            let origin = url_in(&first, MOVED, "").origin();
            assert_eq!(owner.pending(&origin), 26);
        }
    }
}

/// Acts like a worker: hands over buckets that are being moved, and takes free buckets. Asserts
/// that no worker of the other server group has the moved bucket at the same time.
fn take_and_hand_over(worker: &SharedFrontier, holder: &Mutex<Option<i32>>, is_over: &AtomicBool) {
    let hand_over = |buckets: &[i32]| {
        if buckets.contains(&MOVED) {
            *holder.lock().unwrap() = None;
        }
        worker.hand_over(buckets).unwrap();
    };
    while !is_over.load(Ordering::SeqCst) {
        let moving = worker.survey().unwrap().moving;
        if !moving.is_empty() {
            hand_over(&moving);
        }
        worker.take_free(9).unwrap();
        if worker.owned_buckets().contains(&MOVED) {
            let before = holder.lock().unwrap().replace(worker.home());
            assert!(
                before.is_none_or(|group| group == worker.home()),
                "two serve it"
            );
        }
    }
    if worker.owned_buckets().contains(&MOVED) {
        hand_over(&[MOVED]);
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn two_moves_of_a_bucket_at_once_lose_nothing() {
    let groups = TwoGroups::new();
    let [first, second] = groups.two_workers();
    fill(&second);
    second.hand_over(&[MOVED]).unwrap();
    let before = rows(&groups, 1);
    for round in 0..6 {
        let (from, to) = ((round + 1) % 2, round % 2);
        let (holder, is_over) = (Mutex::new(None), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for worker in [&first, &second] {
                scope.spawn(|| take_and_hand_over(worker, &holder, &is_over));
            }
            let movers: Vec<_> = (0..3)
                .map(|n| {
                    let groups = &groups;
                    // The third of the three movers wants to move the bucket back.
                    let to = if n == 2 { from } else { to };
                    scope.spawn(move || move_until(groups, to, 99))
                })
                .collect();
            for mover in movers {
                let ended = mover.join().unwrap();
                let is_refused = matches!(ended, Err(SharedCrawlError::BucketMoves { .. }));
                assert!(ended.is_ok() || is_refused, "{ended:?}");
            }
            is_over.store(true, Ordering::SeqCst);
        });
        assert!(serving(&groups).len() <= 1);
        move_until(&groups, to, 99).unwrap();
        let at = to as usize;
        assert_eq!(
            (rows(&groups, at), serving(&groups)),
            (before.clone(), vec![at])
        );
    }
    assert_eq!(second.take_free(9).unwrap().0, 1);
    drop(first);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn invalid_moves_are_refused() {
    let groups = TwoGroups::new();
    let [_first, second] = groups.two_workers();
    let refused = groups.move_to(&[MOVED, 4], 0).unwrap_err().to_string();
    assert!(
        refused.contains("no bucket 4") && refused.contains("0 to 3"),
        "{refused}"
    );
    let refused = groups.move_to(&[MOVED], 2).unwrap_err().to_string();
    assert!(
        refused.contains("no group 2") && refused.contains("hint: "),
        "{refused}"
    );
    let one = [groups.urls[0].clone()];
    let all = BucketsToMove::AllOf(ServerGroupSelector::Url(groups.urls[1].clone()));
    let to = ServerGroupSelector::Number(0);
    let on_step = &mut |_| ControlFlow::Continue(());
    let alone = move_buckets(
        &one,
        &PasswordSources::default(),
        &groups.crawl,
        (&all, &to),
        on_step,
    );
    assert!(matches!(
        alone,
        Err(SharedCrawlError::GroupMissing { number: 1, .. })
    ));
    // Move all buckets of a server group. The call names the group by its URL.
    second.give_up().unwrap();
    let on_step = &mut |_| ControlFlow::Continue(());
    let credentials = PasswordSources::default();
    let done = move_buckets(
        &groups.urls,
        &credentials,
        &groups.crawl,
        (&all, &to),
        on_step,
    )
    .unwrap();
    assert_eq!((done.moved, done.to), (2, 0));
}
