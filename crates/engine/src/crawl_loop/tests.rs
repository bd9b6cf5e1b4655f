//! What the crawl loop counts, and what it says to the world outside.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crawl_fetcher::{FailureKind, FetchRequest, Validators};
use crawl_frontier::{Admission, NewState, Reason};
use crawl_scheduler::{Poll, RobotsState};
use crawl_scope::{Scope, ScopeMode};
use crawl_weburl::{CanonicalUrl, HostKey, Origin, canonicalize};
use tokio::sync::oneshot;

use super::by_itself::{at, coordinator, leased, open_to_all, pages, run_totals};
use super::estimate::MAX_URLS_BY_HOST;
use super::run_scope::RunScope;
use super::steering::MAX_DELAYS;
use super::{Coordinator, Next, request_rows};
use crate::config::{HostBudget, Resources};
use crate::control::{Command, CommandAnswer, MAX_PARKED, Phase, PostedCommand, Refused, Stop};
use crate::error::EngineError;
use crate::messages::{Committed, Effect, Event, Job, Order, WriterMessage};
use crate::shared_traps::put_aside;
use crate::simulated::script::{answer, failure};
use crate::summary::{Ended, SeedFailure};
use crate::totals::Totals;

const SECOND: Duration = Duration::from_secs(1);

fn url(text: &str) -> CanonicalUrl {
    canonicalize(None, text).unwrap()
}

fn origin(name: &str) -> Origin {
    Origin::parse(&format!("http://{name}")).unwrap()
}

fn admit(coordinator: &Coordinator, admission: Admission) {
    let mut transaction = coordinator.frontier.begin().unwrap();
    transaction.admit(admission).unwrap();
    transaction.commit().unwrap();
}

/// The answer to a command where it comes at once, and what follows from it.
fn tell(
    coordinator: &mut Coordinator,
    command: Command,
) -> (Option<Result<CommandAnswer, Refused>>, Vec<Effect>) {
    let (answer, mut answered) = oneshot::channel();
    let mut out = Vec::new();
    let posted = PostedCommand { command, answer };
    coordinator.handle(at(20), Event::Command(posted), &mut out);
    (answered.try_recv().ok(), out)
}

#[test]
fn ours_a_commit_ends_what_is_in_it() {
    let mut coordinator = coordinator(|_| {});
    let host = origin("a.example");
    coordinator.traps.leased(&host);
    coordinator.traps.leased(&host);
    coordinator.hosts.state_sent(&host.host_key());
    for _ in 0..2 {
        coordinator.backlog.leased();
        coordinator.backlog.page_ended();
    }
    coordinator.backlog.written(7, 1_000);
    let totals = Totals {
        pages: 7,
        ..Totals::default()
    };
    let failed = SeedFailure {
        url: url("http://a.example/"),
        why: "timeout".to_owned(),
    };
    for (bytes, left) in [(400, 600), (700, 0)] {
        let committed = Committed {
            items: 3,
            leases: 1,
            bytes,
            totals,
            ended: vec![host.clone()],
            hosts: vec![host.host_key()],
            unusable: HashMap::from([("mailto", 2)]),
            seeds_failed: vec![failed.clone()],
            ..Committed::default()
        };
        let mut out = Vec::new();
        coordinator.handle(at(30), Event::Committed(Box::new(committed)), &mut out);
        assert!(out.is_empty());
        assert_eq!(coordinator.backlog.bytes().0, left);
    }
    let backlog = &coordinator.backlog;
    assert_eq!((backlog.unsettled(), backlog.leases()), (3, 0));
    assert_eq!(coordinator.traps.all_leases(), 0);
    assert_eq!(coordinator.totals(), totals);
    assert_eq!(coordinator.report.take_unusable()["mailto"], 4);
    assert_eq!(coordinator.report.take_seeds_failed().len(), 2);
    coordinator.hosts.check_invariants(0);
    // What was put aside is judged again.
    let committed = Committed {
        has_turned: true,
        ..Committed::default()
    };
    let mut out = Vec::new();
    coordinator.handle(at(30), Event::Committed(Box::new(committed)), &mut out);
    let is_taken_back = |effect: &Effect| {
        matches!(
            effect,
            Effect::Write(WriterMessage::TakeBack { scope: None })
        )
    };
    assert!(out.len() == 1 && out.iter().all(is_taken_back), "{out:?}");
}

#[test]
fn ours_origins_whose_queues_changed_have_what_waits_in_them_now() {
    let mut coordinator = coordinator(|_| {});
    let origin = origin("a.example");
    admit(&coordinator, Admission::seed(url("http://a.example/1")));
    admit(&coordinator, Admission::seed(url("http://a.example/2")));
    let committed = Committed {
        // The commit saw one only.
        origins: vec![(origin.clone(), 1)],
        ..Committed::default()
    };
    coordinator.handle(
        at(30),
        Event::Committed(Box::new(committed)),
        &mut Vec::new(),
    );
    assert_eq!(coordinator.scheduler.busiest(at(30), 1)[0].waiting, 2);
}

#[test]
fn ours_the_first_failure_and_the_more_urgent_stop_hold() {
    let mut coordinator = coordinator(|_| {});
    let mut out = Vec::new();
    for (stop, at_once) in [(Stop::Drain, false), (Stop::Now, true), (Stop::Drain, true)] {
        coordinator.handle(at(20), Event::Stop(stop), &mut out);
        assert_eq!(coordinator.stopped_at_once(), at_once, "{stop:?}");
    }
    for what in ["first", "second"] {
        let what = what.to_owned();
        let broken = Event::Broken(EngineError::Thread { what });
        coordinator.handle(at(20), broken, &mut out);
    }
    let error = coordinator.outcome().unwrap_err();
    assert!(matches!(error, EngineError::Thread { what } if what == "first"));
}

#[test]
fn ours_a_run_goes_on_as_long_as_something_is_under_way() {
    type Change = fn(&mut Coordinator);
    let waits = |tick: u64| Next::Wait(Some(at(tick)));
    let forever = Next::Wait(None);
    let changes: [(Change, Next, Option<Ended>); 9] = [
        (|_| {}, Next::Done, Some(Ended::Finished)),
        (|it| it.requests.sent(), forever, None),
        (|it| it.backlog.written(1, 0), forever, None),
        (
            |it| it.end.stop(Stop::Now),
            Next::Done,
            Some(Ended::Interrupted),
        ),
        (
            |it| it.end.stop(Stop::Drain),
            Next::Done,
            Some(Ended::Interrupted),
        ),
        (
            |it| {
                it.requests.sent();
                it.end.stop(Stop::Drain);
            },
            forever,
            Some(Ended::Interrupted),
        ),
        (|it| drop(tell(it, Command::Pause)), forever, None),
        // A host that rests for less than a run waits.
        (
            |it| {
                let retry_at = at(50);
                let state = RobotsState::Unreachable { retry_at };
                it.scheduler.set_robots(at(20), &origin("a.example"), state);
                it.scheduler.set_pending(at(20), &origin("a.example"), 1);
            },
            waits(50),
            None,
        ),
        (
            |it| {
                it.requests.sent();
                (0..7).for_each(|_| it.backlog.leased());
                it.scheduler.set_pending(at(20), &origin("a.example"), 1);
            },
            forever,
            None,
        ),
    ];
    for (number, (change, next, ended)) in changes.into_iter().enumerate() {
        let mut coordinator = coordinator(|config| config.budgets.max_pages = Some(7));
        change(&mut coordinator);
        let mut out = Vec::new();
        assert_eq!(coordinator.advance(at(20), &mut out), next, "{number}");
        assert_eq!(coordinator.end.ended(), ended.as_ref(), "{number}");
        assert!(out.is_empty(), "{number}");
    }
}

#[test]
fn ours_a_run_wakes_at_its_deadline_or_when_a_host_may_be_asked() {
    for (max_time, retry, paused, expected) in [
        (None, 40, false, Some(40)),
        (Some(90), 40, false, Some(40)),
        (Some(20), 40, false, Some(30)),
        (Some(20), 40, true, None),
    ] {
        let mut coordinator = coordinator(|config| {
            config.budgets.max_time = max_time.map(|time| time * SECOND);
        });
        let retry_at = at(retry);
        let state = RobotsState::Unreachable { retry_at };
        let scheduler = &mut coordinator.scheduler;
        scheduler.set_robots(at(20), &origin("a.example"), state);
        scheduler.set_pending(at(20), &origin("a.example"), 1);
        if paused {
            drop(tell(&mut coordinator, Command::Pause));
        }
        let next = coordinator.advance(at(20), &mut Vec::new());
        let shown = format!("{max_time:?} {paused}");
        assert_eq!(next, Next::Wait(expected.map(at)), "{shown}");
    }
}

#[test]
fn ours_the_time_is_over_at_its_deadline() {
    for (now, expected) in [(29, None), (30, Some(Ended::Budget("max-time")))] {
        let mut coordinator = coordinator(|config| config.budgets.max_time = Some(20 * SECOND));
        coordinator.requests.sent();
        coordinator.advance(at(now), &mut Vec::new());
        assert_eq!(coordinator.end.ended(), expected.as_ref(), "{now}");
    }
}

#[test]
fn ours_a_host_that_was_dated_anew_is_written() {
    let mut coordinator = coordinator(|_| {});
    let host = HostKey::parse("a.example").unwrap();
    let mut before = super::by_itself::coordinator(|_| {});
    let asked = at(5_000);
    let scheduler = &mut before.scheduler;
    scheduler.note_past_request(asked, &host, asked, SECOND, None);
    let state = before.host_state(&host);
    let mut transaction = coordinator.frontier.begin().unwrap();
    transaction.keep_host(&host, state.wake, &state.bytes());
    transaction.commit().unwrap();
    coordinator.recall(at(20), &host).unwrap();
    let mut out = Vec::new();
    coordinator.advance(at(20), &mut out);
    let [Effect::Write(WriterMessage::Host(written))] = &*out else {
        panic!("{out:?}");
    };
    assert_eq!((&written.host, written.sequence), (&host, 1));
    assert!(written.wake < state.wake);
}

#[test]
fn ours_states_of_a_host_are_numbered_and_one_that_is_not_known_may_be_asked() {
    let mut coordinator = coordinator(|_| {});
    let host = HostKey::parse("a.example").unwrap();
    for sequence in 1..4 {
        let state = coordinator.host_state(&host);
        assert_eq!((state.sequence, state.wake), (sequence, 0));
    }
}

#[test]
fn ours_progress_counts_what_waits_and_what_never_will_be_asked() {
    let mut coordinator = coordinator(|_| {});
    let reason = |reason| put_aside(reason, "a".to_owned());
    for (path, state) in [
        ("1", NewState::Pending),
        ("2", NewState::Pending),
        ("3", NewState::Excluded(reason(Reason::Scope))),
        ("4", NewState::Deferred(reason(Reason::Trap))),
        ("5", NewState::Deferred(reason(Reason::Trap))),
    ] {
        let admission = Admission {
            state,
            ..Admission::seed(url(&format!("http://a.example/{path}")))
        };
        admit(&coordinator, admission);
    }
    let retry_at = at(500);
    for name in ["r.example", "s.example"] {
        let state = RobotsState::Unreachable { retry_at };
        coordinator
            .scheduler
            .set_robots(at(20), &origin(name), state);
        coordinator.scheduler.set_pending(at(20), &origin(name), 1);
    }
    let waits = origin("w.example");
    let scheduler = &mut coordinator.scheduler;
    scheduler.note_past_request(at(20), &waits.host_key(), at(20), 9 * SECOND, None);
    scheduler.set_robots(at(20), &waits, open_to_all());
    scheduler.set_pending(at(20), &waits, 1);
    let none = Totals::default();
    coordinator.totals = run_totals(3, none, none, none);
    let progress = coordinator.progress(at(21));
    assert_eq!((progress.pending, progress.excluded), (2, 3));
    assert_eq!((progress.hosts_waiting, progress.hosts_resting), (1, 2));
    assert_eq!((progress.in_flight, progress.round), (0, 3));
    assert!(!progress.is_paused);
    drop(tell(&mut coordinator, Command::Pause));
    let progress = coordinator.progress(at(21));
    assert_eq!((progress.phase, progress.is_paused), (Phase::Paused, true));
    coordinator.end.end(Ended::Finished);
    assert_eq!(coordinator.progress(at(21)).phase, Phase::Draining);
}

#[test]
fn ours_the_estimate_counts_urls_for_which_their_hosts_have_room() {
    for (most, leases, share) in [(None, 0, 0.25), (Some(2), 0, 0.5), (None, 4, 0.125)] {
        let mut coordinator = coordinator(|config| {
            config.budgets.per_host = HostBudget {
                max_pages: most,
                ..HostBudget::default()
            };
        });
        for path in 1..7 {
            admit(
                &coordinator,
                Admission::seed(url(&format!("http://a.example/{path}"))),
            );
        }
        coordinator.totals.committed(pages(2));
        if leases == 4 {
            // Two URLs wait, of eight in all.
            coordinator.totals.committed(pages(1));
            coordinator.backlog.leased();
        }
        let progress = coordinator.progress(at(30));
        assert!((progress.share_done - share).abs() < 1e-9, "{progress:?}");
    }
}

/// A request for robots.txt that began at second 20 and failed at second 22, with so much of an
/// answer.
fn robots_failed(coordinator: &mut Coordinator, kind: FailureKind, body: &str) -> Vec<Effect> {
    let origin = origin("a.example");
    coordinator.scheduler.set_pending(at(20), &origin, 1);
    let Poll::Issue(permit) = coordinator.scheduler.poll(at(20)) else {
        panic!("no permit");
    };
    coordinator.requests.sent();
    let request = FetchRequest::robots(origin.robots_url(), Validators::default());
    let part = answer(200, body).result(&request.url, at(20)).unwrap();
    let mut failed = failure(kind, at(20), at(22));
    failed.answer = Some(Box::new(part));
    let job = Job::Robots {
        of: origin,
        request,
        hop: 0,
    };
    let none = tracing::Span::none();
    let fetched = request_rows::ended(job, permit.spend(), Err(failed), none);
    let mut out = Vec::new();
    coordinator.handle(at(22), fetched, &mut out);
    out
}

#[test]
fn ours_what_came_of_an_answer_that_broke_off_counts_as_bytes_of_its_host() {
    let mut coordinator = coordinator(|_| {});
    let out = robots_failed(&mut coordinator, FailureKind::ShortBody, "twelve bytes");
    assert_eq!(
        (
            coordinator.requests.count(),
            coordinator.report.robots_requests()
        ),
        (0, 1)
    );
    let stored = coordinator
        .host_budgets
        .stored(&origin("a.example").host_key());
    // The round, pages, bytes, microseconds.
    let number = |at: usize| u64::from_le_bytes(stored[8 * at..8 * at + 8].try_into().unwrap());
    assert_eq!([0, 1, 2, 3].map(number), [1, 0, 12, 2_000_000]);
    assert!(
        matches!(&out[0], Effect::Log(line) if line.row().failure.as_deref() == Some("short_body"))
    );
    assert!(matches!(out[1], Effect::Write(WriterMessage::Robots(_))));
}

#[test]
fn ours_a_request_that_was_given_up_tells_nothing_of_the_rules() {
    let mut coordinator = coordinator(|_| {});
    let out = robots_failed(&mut coordinator, FailureKind::GivenUp, "");
    assert_eq!(
        (
            coordinator.requests.count(),
            coordinator.report.robots_requests()
        ),
        (0, 0)
    );
    assert!(
        matches!(
            *out,
            [Effect::Log(_), Effect::Write(WriterMessage::Host(_))]
        ),
        "{out:?}"
    );
}

#[test]
fn ours_a_pause_counts_from_its_first_command_to_the_next_resume() {
    let mut coordinator = coordinator(|config| config.budgets.max_time = Some(100 * SECOND));
    for (second, command, paused) in [
        (20, Command::Resume, 0),
        (30, Command::Pause, 0),
        (40, Command::Pause, 0),
        (50, Command::Resume, 20),
        (60, Command::Resume, 20),
        (70, Command::Pause, 20),
        (75, Command::Resume, 25),
    ] {
        let (answer, _) = oneshot::channel();
        let posted = PostedCommand { command, answer };
        coordinator.told(at(second), posted, &mut Vec::new());
        assert_eq!(coordinator.steering.paused(), paused * SECOND, "{second}");
        assert_eq!(coordinator.deadline(), Some(at(110 + u64::from(paused))));
    }
}

#[test]
fn ours_a_command_is_for_a_host_that_the_crawl_knows_of() {
    type Change = fn(&mut Coordinator);
    let changes: [(Change, bool); 5] = [
        (|_| {}, false),
        (
            |it| it.scheduler.set_pending(at(20), &origin("b.example"), 1),
            true,
        ),
        (
            |it| it.scheduler.park(at(20), &origin("b.example").host_key()),
            true,
        ),
        (
            |it| {
                let mut transaction = it.frontier.begin().unwrap();
                transaction.keep_host(&origin("b.example").host_key(), 0, b"");
                transaction.commit().unwrap();
            },
            true,
        ),
        (
            |it| {
                let mut config = (*it.config).clone();
                config.seeds.push(url("http://b.example/"));
                it.config = Arc::new(config);
            },
            true,
        ),
    ];
    let host = origin("b.example").host_key();
    for (number, (change, is_known)) in changes.into_iter().enumerate() {
        let mut coordinator = coordinator(|_| {});
        change(&mut coordinator);
        let unknown = Refused::UnknownHost(host.clone());
        let expected = (!is_known).then_some(unknown);
        let delay = Command::Delay {
            host: Some(host.clone()),
            delay: SECOND,
        };
        let (answer, _) = tell(&mut coordinator, delay);
        assert_eq!(answer.unwrap().err(), expected, "{number}");
    }
}

#[test]
fn ours_so_many_hosts_have_a_delay_of_their_own_and_no_more() {
    let mut coordinator = coordinator(|_| {});
    for number in 0..=MAX_DELAYS {
        let origin = origin(&format!("{number}.example"));
        coordinator.scheduler.set_pending(at(20), &origin, 1);
        let delay = Command::Delay {
            host: Some(origin.host_key()),
            delay: 2 * SECOND,
        };
        let (answer, out) = tell(&mut coordinator, delay);
        match number < MAX_DELAYS {
            true => assert!(
                matches!(answer, Some(Ok(CommandAnswer::Done))),
                "{answer:?}"
            ),
            false => assert!(
                matches!(answer, Some(Err(Refused::TooManyDelays(MAX_DELAYS)))),
                "{answer:?}"
            ),
        }
        // One effect for the log of delays, and one for replays.
        assert_eq!(out.len(), if number < MAX_DELAYS { 2 } else { 0 });
    }
    // That of every host is none of them.
    let delay = 3 * SECOND;
    let (answer, out) = tell(&mut coordinator, Command::Delay { host: None, delay });
    assert!(matches!(answer, Some(Ok(CommandAnswer::Done))));
    let [Effect::NoteDelay(row), Effect::NoteCommand(_)] = &*out else {
        panic!("{out:?}");
    };
    assert_eq!((row.at, &row.host, row.delay), (20_000, &None, Some(3_000)));
}

#[test]
fn ours_hosts_of_others_are_asked_more_quickly_on_the_own_site_alone() {
    let least = Duration::from_millis(200);
    for (host, delay, own_site, is_done, is_quick) in [
        (Some("b.example"), least, false, true, false),
        (Some("b.example"), least / 2, false, false, false),
        (Some("b.example"), least / 2, true, true, false),
        (Some("127.0.0.1:80"), least / 2, false, true, true),
        (None, least / 2, false, false, false),
        (None, least, false, true, false),
    ] {
        let shown = format!("{host:?} {delay:?} {own_site}");
        let mut coordinator = coordinator(|config| config.own_site = own_site);
        for name in ["b.example", "127.0.0.1:80"] {
            coordinator.scheduler.set_pending(at(20), &origin(name), 1);
        }
        let host = host.map(|host| HostKey::parse(host).unwrap());
        let (answer, _) = tell(&mut coordinator, Command::Delay { host, delay });
        let answer = answer.unwrap();
        assert_eq!(answer.is_ok(), is_done, "{shown}");
        // Where some host is asked quickly, those of others get a gap of their own.
        let origin = origin("b.example");
        let copy = super::by_itself::copy(&origin, "");
        let compiled = coordinator.origins.keep(copy);
        let state = coordinator.origins.state(at(20), &compiled, None);
        let has_gap =
            matches!(state, RobotsState::InForce { pace, .. } if pace.crawl_delay.is_some());
        assert_eq!(has_gap, is_quick, "{shown}");
    }
}

#[test]
fn ours_so_many_hosts_are_parked_and_no_more() {
    let mut coordinator = coordinator(|_| {});
    for number in 0..MAX_PARKED {
        let host = HostKey::parse(&format!("{number}.example")).unwrap();
        coordinator.scheduler.park(at(20), &host);
    }
    let again = HostKey::parse("0.example").unwrap();
    coordinator
        .scheduler
        .set_pending(at(20), &origin("b.example"), 1);
    let one_more = origin("b.example").host_key();
    let (answer, out) = tell(&mut coordinator, Command::Park(one_more.clone()));
    assert!(matches!(
        answer,
        Some(Err(Refused::TooManyParked(MAX_PARKED)))
    ));
    assert!(out.is_empty());
    // One that is parked already may be parked again, and each list is numbered.
    for (command, number, parked) in [
        (Command::Park(again.clone()), 1, MAX_PARKED),
        (Command::Unpark(again.clone()), 2, MAX_PARKED - 1),
        (Command::Park(one_more), 3, MAX_PARKED),
    ] {
        let (answer, out) = tell(&mut coordinator, command);
        assert!(answer.is_none(), "it is answered when it is durable");
        let [
            Effect::NoteCommand(_),
            Effect::Write(WriterMessage::Order(ordered)),
        ] = &*out
        else {
            panic!("{out:?}");
        };
        let Order::Parked {
            number: found,
            hosts,
        } = &ordered.order
        else {
            panic!("{ordered:?}");
        };
        assert_eq!((*found, hosts.len()), (number, parked));
    }
    let (answer, _) = tell(&mut coordinator, Command::Unpark(again.clone()));
    assert!(matches!(answer, Some(Err(Refused::NotParked(host))) if host == again));
}

#[test]
fn ours_a_private_address_is_added_where_the_operator_lets_it_be() {
    let home = "http://127.0.0.1:9/";
    for (allow_private, typed, is_added) in [
        (false, false, false),
        (true, false, true),
        (false, true, true),
    ] {
        let mut coordinator = coordinator(|config| {
            config.fetch.allow_private = allow_private;
            if typed {
                config.fetch.typed.push(url(home));
            }
        });
        let (answer, out) = tell(&mut coordinator, Command::Add(home.to_owned()));
        assert_eq!(answer.is_none(), is_added, "{answer:?}");
        assert_eq!(out.len(), if is_added { 2 } else { 0 });
    }
}

#[test]
fn ours_a_url_that_waits_already_may_be_added_and_its_host_joins_the_scope() {
    let mut coordinator = coordinator(|_| {});
    let mut scope = Scope::new(ScopeMode::Host, &[], &[], None).unwrap();
    scope.add_seed(&url("http://a.example/"));
    coordinator.scope = RunScope::new(scope, Resources::Off);
    let added = url("http://b.example/1");
    let _lease = leased(&*coordinator.frontier, Admission::seed(added.clone()));
    let (_, out) = tell(&mut coordinator, Command::Add(added.to_string()));
    let [
        Effect::NoteCommand(_),
        Effect::Write(WriterMessage::Order(ordered)),
    ] = &*out
    else {
        panic!("{out:?}");
    };
    let Order::Add { seed, refused } = &ordered.order else {
        panic!("{ordered:?}");
    };
    assert_eq!((&seed.url, seed.is_seed), (&added, true));
    assert!(refused.is_none());
    let sitemap = url("http://b.example/s");
    assert!(
        coordinator
            .scope
            .may_read_sitemap(&sitemap, &origin("a.example").host_key())
    );
}

#[test]
fn ours_beyond_so_many_urls_the_budgets_of_hosts_do_not_count_in_the_estimate() {
    for (urls, pages_left) in [
        (MAX_URLS_BY_HOST, 9),
        (MAX_URLS_BY_HOST + 1, MAX_URLS_BY_HOST + 1),
    ] {
        let mut coordinator = coordinator(|config| {
            config.budgets.per_host.max_pages = Some(9);
        });
        let mut transaction = coordinator.frontier.begin().unwrap();
        for path in 0..urls {
            let seed = Admission::seed(url(&format!("http://a.example/{path}")));
            transaction.admit(seed).unwrap();
        }
        transaction.commit().unwrap();
        coordinator.totals.committed(pages(9));
        let share = 9.0 / (9 + pages_left) as f64;
        let progress = coordinator.progress(at(30));
        assert!((progress.share_done - share).abs() < 1e-9, "{progress:?}");
    }
}

#[test]
fn ours_an_exchange_for_rules_is_archived_by_its_purpose() {
    let mut coordinator = coordinator(|_| {});
    let of = origin("a.example");
    let request = FetchRequest::robots(of.robots_url(), Validators::default());
    let exchange = answer(200, "twelve bytes").result(&request.url, at(20));
    let mut out = Vec::new();
    let of_tdmrep = coordinator.tdmrep_fetched(at(20), &of, 0, exchange.clone(), &mut out);
    let of_robots = coordinator.robots_fetched(at(20), &of, &request, 0, exchange, &mut out);
    assert!(of_tdmrep.is_ok() && of_robots.is_ok());
    let shown = out.iter().map(|effect| match effect {
        Effect::Write(WriterMessage::Robots(item)) => (
            item.purpose,
            item.bytes,
            item.of.clone(),
            item.host.is_some(),
        ),
        other => panic!("{other:?}"),
    });
    let expected = ["tdmrep", "robots"].map(|purpose| (purpose, 12, Some(of.clone()), true));
    assert!(shown.eq(expected));
    let backlog = &coordinator.backlog;
    assert_eq!((backlog.unsettled(), backlog.bytes().0), (2, 24));
}
