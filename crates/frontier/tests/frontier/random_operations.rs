//! Applies random operations to a stored frontier and to one in memory, and checks that both look
//! the same.

use std::ops::ControlFlow;

use crawl_frontier::{
    Frontier, LastVisit, Lease, LeaseOutcome, NotFetchedReason, Reason, RequestedState,
    Transaction, UrlKind, UrlToAdmit,
};
use crawl_weburl::{CanonicalUrl, HostKey, Origin};
use proptest::prelude::*;

use crawl_frontier::conformance::helpers::url;
use crawl_frontier::conformance::{MemoryFrontierHarness, RestartableFrontier};

const ORIGINS: usize = 2;
const PATHS: usize = 10;

/// An operation on a frontier, or a crash.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Transact { changes: Vec<Change>, commit: bool },
    Lease(usize),
    Release(usize),
    Die,
}

/// An operation while a transaction is open.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Admit(Vec<UrlToAdmit>),
    Settle(usize, LeaseOutcome),
    SettleUntil(usize, LeaseOutcome, LastVisit),
    VisitDue(u32),
    VisitMisdated(u32, Option<u32>),
    VisitAgain(CanonicalUrl, u32),
    Readmit(UrlToAdmit),
    Lease(usize),
    Release(usize),
    Keep(u8),
}

/// The leases of one URL from two frontiers: the model in memory, and the tested frontier.
struct Pair {
    model: Lease,
    disk: Lease,
}

fn random_url() -> impl Strategy<Value = CanonicalUrl> {
    (0..ORIGINS, 0..PATHS)
        .prop_map(|(origin, path)| url(&format!("http://h{origin}.example/{path}")))
}

/// Returns all URLs that may occur in the steps.
pub(crate) fn all_urls() -> Vec<CanonicalUrl> {
    let urls = (0..ORIGINS).flat_map(|n| (0..PATHS).map(move |path| (n, path)));
    urls.map(|(n, path)| url(&format!("http://h{n}.example/{path}")))
        .collect()
}

fn random_exclusion() -> impl Strategy<Value = NotFetchedReason> {
    let reason = prop::sample::select(Reason::ALL);
    (
        reason,
        prop::option::of("[a-z]{0,4}"),
        prop::option::of(0_u32..9),
    )
        .prop_map(|(reason, rule, line)| NotFetchedReason { reason, rule, line })
}

fn random_admission() -> impl Strategy<Value = UrlToAdmit> {
    let state = prop_oneof![
        6 => Just(RequestedState::Pending),
        2 => random_exclusion().prop_map(RequestedState::Deferred),
        1 => random_exclusion().prop_map(RequestedState::Excluded),
    ];
    let numbers = (0_u32..4, 0_u8..3, 0_u8..2);
    let kind = vec![UrlKind::Page, UrlKind::Sitemap, UrlKind::Resource];
    let kinds = (prop::bool::weighted(0.1), prop::sample::select(kind));
    (
        random_url(),
        prop::option::of(random_url()),
        state,
        numbers,
        kinds,
    )
        .prop_map(
            |(url, via, state, (depth, redirects, priority), (is_seed, kind))| UrlToAdmit {
                url,
                depth,
                hops_off: 0,
                redirects,
                via,
                priority,
                state,
                is_seed,
                kind,
            },
        )
}

fn random_outcome() -> impl Strategy<Value = LeaseOutcome> {
    prop_oneof![
        3 => Just(LeaseOutcome::Retry),
        3 => (200_u16..600).prop_map(|status| LeaseOutcome::Fetched { status }),
        1 => "[a-z]{0,4}".prop_map(|why| LeaseOutcome::Failed { why }),
        1 => random_exclusion().prop_map(LeaseOutcome::Excluded),
        1 => random_exclusion().prop_map(LeaseOutcome::Deferred),
    ]
}

fn random_visit() -> impl Strategy<Value = LastVisit> {
    let bytes = prop::collection::vec(any::<u8>(), 0..4);
    (0_u32..9, 0_u32..9, bytes).prop_map(|(at, due, bytes)| LastVisit { at, due, bytes })
}

fn random_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => prop::collection::vec(random_admission(), 1..6).prop_map(Change::Admit),
        4 => (0_usize..8, random_outcome()).prop_map(|(held, outcome)| Change::Settle(held, outcome)),
        4 => (0_usize..8, random_outcome(), random_visit())
            .prop_map(|(held, outcome, visit)| Change::SettleUntil(held, outcome, visit)),
        2 => (0_u32..9).prop_map(Change::VisitDue),
        1 => (0_u32..9, prop::option::of(0_u32..9))
            .prop_map(|(now, longest)| Change::VisitMisdated(now, longest)),
        1 => (random_url(), 0_u32..9).prop_map(|(url, before)| Change::VisitAgain(url, before)),
        1 => random_admission().prop_map(Change::Readmit),
        2 => (0..ORIGINS).prop_map(Change::Lease),
        1 => (0_usize..8).prop_map(Change::Release),
        1 => any::<u8>().prop_map(Change::Keep),
    ]
}

/// Generates any step.
pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (prop::collection::vec(random_change(), 0..8), prop::bool::weighted(0.8))
            .prop_map(|(changes, commit)| Step::Transact { changes, commit }),
        8 => (0..ORIGINS).prop_map(Step::Lease),
        2 => (0_usize..8).prop_map(Step::Release),
        1 => Just(Step::Die),
    ]
}

fn origin(n: usize) -> Origin {
    url(&format!("http://h{n}.example/")).origin()
}

/// Describes everything in a frontier that a caller can see.
fn view(frontier: &dyn Frontier) -> String {
    let mut lines = vec![
        format!("{:?}", frontier.counts()),
        format!("{:?}", frontier.origins()),
        format!(
            "{:?}",
            [0, 4].map(|after| frontier.next_due(after).unwrap())
        ),
        format!("{:?}", frontier.hosts().unwrap()),
        format!("{:?}", frontier.marks().unwrap()),
        format!("{:?}", frontier.meta("m").unwrap()),
    ];
    let mut show = |waiting: crawl_frontier::UnsettledUrl<'_>| {
        lines.push(format!("{waiting:?}"));
        ControlFlow::Continue(())
    };
    frontier.each_pending(&mut show).unwrap();
    let mut deferred = Vec::new();
    frontier
        .each_deferred(&mut |waiting| {
            deferred.push(format!("{waiting:?}"));
            ControlFlow::Continue(())
        })
        .unwrap();
    deferred.sort();
    lines.extend(deferred);
    for n in 0..ORIGINS {
        let origin = origin(n);
        lines.push(format!(
            "{} {:?}",
            frontier.pending(&origin),
            frontier.robots(&origin).unwrap()
        ));
        for url in all_urls().into_iter().filter(|url| url.origin() == origin) {
            let record = frontier.known(&url).unwrap();
            let visit = frontier.visit(&url).unwrap();
            let found_on = frontier.found_on(&url).unwrap();
            lines.push(format!("{url} {record:?} {visit:?} {found_on:?}"));
        }
    }
    lines.join("\n")
}

fn lease(model: &dyn Frontier, disk: &dyn Frontier, n: usize, held: &mut Vec<Pair>) {
    let leases = (
        model.lease(&origin(n)).unwrap(),
        disk.lease(&origin(n)).unwrap(),
    );
    match leases {
        (Some(model), Some(disk)) => {
            assert_eq!(format!("{model:?}"), format!("{disk:?}"));
            held.push(Pair { model, disk });
        }
        (None, None) => {}
        other => panic!("leases differ: {other:?}"),
    }
}

fn take(held: &mut Vec<Pair>, n: usize) -> Option<Pair> {
    (n < held.len()).then(|| held.swap_remove(n))
}

fn release(model: &dyn Frontier, disk: &dyn Frontier, pair: Option<Pair>) {
    if let Some(pair) = pair {
        model.release(pair.model);
        disk.release(pair.disk);
    }
}

/// Applies the changes in one transaction on each of the two frontiers. Returns whether the disk
/// still works.
fn transact(
    model: &dyn Frontier,
    bench: &dyn RestartableFrontier,
    changes: Vec<Change>,
    commit: bool,
    held: &mut Vec<Pair>,
) -> bool {
    let disk = bench.frontier();
    let mut on_model = model.begin().unwrap();
    // A transaction with an even number of changes announces all its admissions at its beginning
    // (`begin_expecting`). A transaction with an odd number announces none.
    let begun = match changes.len().is_multiple_of(2) {
        true => {
            let mut admissions = changes.iter().flat_map(|change| match change {
                Change::Admit(admissions) => &admissions[..],
                _ => &[],
            });
            bench.begin_expecting(&mut admissions)
        }
        false => disk.begin(),
    };
    let Ok(mut on_disk) = begun else {
        return false;
    };
    for change in changes {
        match change {
            Change::Lease(n) => lease(model, disk, n, held),
            Change::Release(n) => release(model, disk, take(held, n)),
            Change::Admit(admissions) => {
                let expected = on_model.admit_all(&admissions).unwrap();
                assert_eq!(on_disk.admit_all(&admissions).unwrap(), expected);
            }
            Change::Settle(n, outcome) => {
                if let Some(pair) = take(held, n) {
                    on_model.settle(pair.model, outcome.clone()).unwrap();
                    on_disk.settle(pair.disk, outcome).unwrap();
                }
            }
            Change::SettleUntil(n, outcome, visit) => {
                if let Some(pair) = take(held, n) {
                    let settled = on_model.settle_until(pair.model, outcome.clone(), visit.clone());
                    settled.unwrap();
                    on_disk.settle_until(pair.disk, outcome, visit).unwrap();
                }
            }
            // Take all due visits, because the order among equal due times is unspecified.
            Change::VisitDue(until) => {
                let expected = on_model.visit_due(until, usize::MAX).unwrap();
                assert_eq!(on_disk.visit_due(until, usize::MAX).unwrap(), expected);
            }
            Change::VisitMisdated(now, longest) => {
                let expected = on_model.visit_misdated(now, longest, usize::MAX).unwrap();
                let count = on_disk.visit_misdated(now, longest, usize::MAX).unwrap();
                assert_eq!(count, expected);
            }
            Change::VisitAgain(url, before) => {
                let expected = on_model.visit_again(&url, before).unwrap();
                assert_eq!(on_disk.visit_again(&url, before).unwrap(), expected);
            }
            Change::Readmit(admission) => {
                let expected = on_model.readmit(admission.clone()).unwrap();
                assert_eq!(on_disk.readmit(admission).unwrap(), expected);
            }
            Change::Keep(value) => {
                keep(&mut *on_model, value);
                keep(&mut *on_disk, value);
            }
        }
    }
    if commit {
        assert_eq!(on_model.commit().unwrap(), on_disk.commit().unwrap());
    }
    true
}

fn keep(transaction: &mut dyn Transaction, value: u8) {
    let host = HostKey::parse(&format!("h{}.example", value % 2)).unwrap();
    transaction.keep_host(&host, value.into(), &[value]);
    transaction.keep_robots(&origin(usize::from(value % 2)), &[value]);
    transaction.mark(&format!("f{}", value % 4), value.into());
    transaction.keep_meta("m", &[value]);
}

/// Runs the steps on the model and on `disk`. If a step fails on the disk, both frontiers crash and
/// restart. Returns the number of failures.
pub(crate) fn run(steps: Vec<Step>, disk: &mut dyn RestartableFrontier) -> usize {
    let mut model = MemoryFrontierHarness::default();
    let (mut held, mut failures) = (Vec::new(), 0);
    for step in steps {
        let mut dies = false;
        match step {
            Step::Transact { changes, commit } => {
                let works = transact(model.frontier(), disk, changes, commit, &mut held);
                failures += usize::from(!works);
                dies = !works;
            }
            Step::Lease(n) => lease(model.frontier(), disk.frontier(), n, &mut held),
            Step::Release(n) => release(model.frontier(), disk.frontier(), take(&mut held, n)),
            Step::Die => dies = true,
        }
        if dies {
            held.clear();
            model.die();
            disk.die();
        }
        assert_eq!(view(model.frontier()), view(disk.frontier()));
    }
    failures
}
