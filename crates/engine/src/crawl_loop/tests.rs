//! Tests of the crawl loop as a whole: its counts and its reports.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crawl_fetcher::robots::TDMREP_PATH;
use crawl_fetcher::{FailureKind, FetchRequest, Validators};
use crawl_frontier::{Reason, RequestedState, UrlToAdmit};
use crawl_scheduler::{PollOutcome, RobotsState};
use crawl_scope::{Scope, ScopeMode};
use crawl_weburl::{CanonicalUrl, HostKey, Origin, canonicalize};
use tokio::sync::oneshot;

use super::completion_estimate::MAX_URLS_BY_HOST;
use super::fixtures::{at, config, coordinator, leased, open_to_all, pages, run_report};
use super::hosts::MAX_DELAYS;
use super::run_scope::RunScope;
use super::{Coordinator, DriverStep, request_rows};
use crate::config::{EmbeddedResourcePolicy, HostBudget};
use crate::control::{
    CommandAnswer, CommandRefusal, CrawlCommand, CrawlPhase, MAX_PARKED, PostedCommand, StopUrgency,
};
use crate::crawl_totals::CrawlTotals;
use crate::error::EngineError;
use crate::login::LoginFailure;
use crate::messages::{
    DurableCommand, Effect, Event, GroupCommitResult, RequestJob, TdmRepAttempt, WriterMessage,
};
use crate::shared_trap_detector::put_aside;
use crate::simulated_crawl_tests::scripted_servers::{answer, failure};
use crate::summary::{EndReason, SeedFailure};

const SECOND: Duration = Duration::from_secs(1);

fn url(text: &str) -> CanonicalUrl {
    canonicalize(None, text).unwrap()
}

fn origin(name: &str) -> Origin {
    Origin::parse(&format!("http://{name}")).unwrap()
}

fn admit(coordinator: &Coordinator, admission: UrlToAdmit) {
    let mut transaction = coordinator.frontier.begin().unwrap();
    transaction.admit(admission).unwrap();
    transaction.commit().unwrap();
}

/// Sends a command. Returns the answer, if there is one at once, and the effects.
fn send(
    coordinator: &mut Coordinator,
    command: CrawlCommand,
) -> (Option<Result<CommandAnswer, CommandRefusal>>, Vec<Effect>) {
    let (answer, mut answered) = oneshot::channel();
    let mut out = Vec::new();
    let posted = PostedCommand { command, answer };
    coordinator.handle(at(20), Event::Command(posted), &mut out);
    (answered.try_recv().ok(), out)
}

#[test]
fn a_commit_ends_its_items() {
    let mut coordinator = coordinator(|_| {});
    let host = origin("a.example");
    coordinator.leased_url_judge.leased(&host);
    coordinator.leased_url_judge.leased(&host);
    let _ = coordinator.hosts.state(&host.host_key());
    for _ in 0..2 {
        coordinator.backlog.leased();
        coordinator.backlog.page_ended();
    }
    coordinator.backlog.written(7, 1_000);
    let totals = CrawlTotals {
        pages: 7,
        ..CrawlTotals::default()
    };
    let failed = SeedFailure {
        url: url("http://a.example/"),
        why: "timeout".to_owned(),
    };
    for (bytes, left) in [(400, 600), (700, 0)] {
        let committed = GroupCommitResult {
            items: 3,
            leases: 1,
            bytes,
            totals,
            ended: vec![host.clone()],
            hosts: vec![host.host_key()],
            unusable: HashMap::from([("mailto", 2)]),
            seeds_failed: vec![failed.clone()],
            ..GroupCommitResult::default()
        };
        let mut out = Vec::new();
        coordinator.handle(at(30), Event::Committed(Box::new(committed)), &mut out);
        assert!(out.is_empty());
        assert_eq!(coordinator.backlog.bytes().0, left);
    }
    let backlog = &coordinator.backlog;
    assert_eq!((backlog.unsettled(), backlog.leases()), (3, 0));
    assert_eq!(coordinator.leased_url_judge.all_leases(), 0);
    assert_eq!(coordinator.totals(), totals);
    assert_eq!(coordinator.report.take_unusable()["mailto"], 4);
    assert_eq!(coordinator.report.take_seeds_failed().len(), 2);
    coordinator.hosts.check_invariants(0);
    // This commit changed the traps, so deferred URLs are judged again.
    let committed = GroupCommitResult {
        traps_changed: true,
        ..GroupCommitResult::default()
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
fn changed_origins_have_their_current_number_of_urls() {
    let mut coordinator = coordinator(|_| {});
    let origin = origin("a.example");
    admit(&coordinator, UrlToAdmit::seed(url("http://a.example/1")));
    admit(&coordinator, UrlToAdmit::seed(url("http://a.example/2")));
    let committed = GroupCommitResult {
        // The result of the commit has one pending URL for the origin, although the origin has two.
        origins: vec![(origin.clone(), 1)],
        ..GroupCommitResult::default()
    };
    coordinator.handle(
        at(30),
        Event::Committed(Box::new(committed)),
        &mut Vec::new(),
    );
    assert_eq!(coordinator.hosts.busiest(at(30), 1)[0].waiting, 2);
}

#[test]
fn the_first_failure_and_the_most_urgent_stop_win() {
    let mut coordinator = coordinator(|_| {});
    let mut out = Vec::new();
    for (stop, at_once) in [
        (StopUrgency::Drain, false),
        (StopUrgency::Now, true),
        (StopUrgency::Drain, true),
    ] {
        coordinator.handle(at(20), Event::Stop(stop), &mut out);
        assert_eq!(coordinator.stopped_at_once(), at_once, "{stop:?}");
    }
    for what in ["first", "second"] {
        let broken = Event::Broken(EngineError::Thread {
            what: what.to_owned(),
        });
        coordinator.handle(at(20), broken, &mut out);
    }
    let error = coordinator.outcome().unwrap_err();
    assert!(matches!(error, EngineError::Thread { what } if what == "first"));
}

#[test]
fn a_run_continues_while_anything_is_in_flight() {
    type Change = fn(&mut Coordinator);
    let waits = |tick: u64| DriverStep::Wait(Some(at(tick)));
    let forever = DriverStep::Wait(None);
    let changes: [(Change, DriverStep, Option<EndReason>); 9] = [
        (|_| {}, DriverStep::Done, Some(EndReason::Finished)),
        (|coordinator| coordinator.hosts.sent(), forever, None),
        (
            |coordinator| coordinator.backlog.written(1, 0),
            forever,
            None,
        ),
        (
            |coordinator| coordinator.end.stop(StopUrgency::Now),
            DriverStep::Done,
            Some(EndReason::Interrupted),
        ),
        (
            |coordinator| coordinator.end.stop(StopUrgency::Drain),
            DriverStep::Done,
            Some(EndReason::Interrupted),
        ),
        (
            |coordinator| {
                coordinator.hosts.sent();
                coordinator.end.stop(StopUrgency::Drain);
            },
            forever,
            Some(EndReason::Interrupted),
        ),
        (
            |coordinator| drop(send(coordinator, CrawlCommand::Pause)),
            forever,
            None,
        ),
        // The run waits until this host's pause ends.
        (
            |coordinator| {
                let retry_at = at(50);
                let state = RobotsState::Unreachable { retry_at };
                coordinator
                    .hosts
                    .set_robots(at(20), &origin("a.example"), state);
                coordinator
                    .hosts
                    .set_pending(at(20), &origin("a.example"), 1);
            },
            waits(50),
            None,
        ),
        (
            |coordinator| {
                coordinator.hosts.sent();
                (0..7).for_each(|_| coordinator.backlog.leased());
                coordinator
                    .hosts
                    .set_pending(at(20), &origin("a.example"), 1);
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
fn a_run_wakes_at_its_deadline_or_for_a_host() {
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
        let scheduler = coordinator.hosts.scheduler();
        scheduler.set_robots(at(20), &origin("a.example"), state);
        scheduler.set_pending(at(20), &origin("a.example"), 1);
        if paused {
            drop(send(&mut coordinator, CrawlCommand::Pause));
        }
        let next = coordinator.advance(at(20), &mut Vec::new());
        let shown = format!("{max_time:?} {paused}");
        assert_eq!(next, DriverStep::Wait(expected.map(at)), "{shown}");
    }
}

#[test]
fn the_time_is_over_at_its_deadline() {
    for (now, expected) in [(29, None), (30, Some(EndReason::Budget("max-time")))] {
        let mut coordinator = coordinator(|config| config.budgets.max_time = Some(20 * SECOND));
        coordinator.hosts.sent();
        coordinator.advance(at(now), &mut Vec::new());
        assert_eq!(coordinator.end.ended(), expected.as_ref(), "{now}");
    }
}

#[test]
fn a_corrected_host_state_is_written() {
    let mut coordinator = coordinator(|_| {});
    let host = HostKey::parse("a.example").unwrap();
    let mut before = super::fixtures::coordinator(|_| {});
    let future = at(5_000);
    let scheduler = before.hosts.scheduler();
    scheduler.note_past_request(future, &host, future, SECOND, None);
    let state = before.hosts.state(&host);
    let mut transaction = coordinator.frontier.begin().unwrap();
    transaction.keep_host(&host, state.wake, &state.bytes());
    transaction.commit().unwrap();
    coordinator
        .hosts
        .recall(at(20), &host, &coordinator.shared)
        .unwrap();
    let mut out = Vec::new();
    coordinator.advance(at(20), &mut out);
    let [Effect::Write(WriterMessage::Host(written))] = &*out else {
        panic!("{out:?}");
    };
    assert_eq!((&written.host, written.sequence), (&host, 1));
    assert!(written.wake < state.wake);
}

#[test]
fn states_of_a_host_are_numbered() {
    let mut coordinator = coordinator(|_| {});
    let host = HostKey::parse("a.example").unwrap();
    for sequence in 1..4 {
        let state = coordinator.hosts.state(&host);
        assert_eq!((state.sequence, state.wake), (sequence, 0));
    }
}

#[test]
fn progress_counts_pending_and_excluded_urls() {
    let mut coordinator = coordinator(|_| {});
    let reason = |reason| put_aside(reason, "a".to_owned());
    for (path, state) in [
        ("1", RequestedState::Pending),
        ("2", RequestedState::Pending),
        ("3", RequestedState::Excluded(reason(Reason::Scope))),
        ("4", RequestedState::Deferred(reason(Reason::Trap))),
        ("5", RequestedState::Deferred(reason(Reason::Trap))),
    ] {
        let admission = UrlToAdmit {
            state,
            ..UrlToAdmit::seed(url(&format!("http://a.example/{path}")))
        };
        admit(&coordinator, admission);
    }
    let retry_at = at(500);
    for name in ["r.example", "s.example"] {
        let state = RobotsState::Unreachable { retry_at };
        coordinator.hosts.set_robots(at(20), &origin(name), state);
        coordinator.hosts.set_pending(at(20), &origin(name), 1);
    }
    let waits = origin("w.example");
    let scheduler = coordinator.hosts.scheduler();
    scheduler.note_past_request(at(20), &waits.host_key(), at(20), 9 * SECOND, None);
    scheduler.set_robots(at(20), &waits, open_to_all());
    scheduler.set_pending(at(20), &waits, 1);
    let none = CrawlTotals::default();
    coordinator.report = run_report(3, none, none, none);
    let progress = coordinator.progress(at(21));
    assert_eq!((progress.pending, progress.excluded), (2, 3));
    assert_eq!((progress.hosts_waiting, progress.hosts_resting), (1, 2));
    assert_eq!((progress.in_flight, progress.round), (0, 3));
    assert!(!progress.is_paused);
    drop(send(&mut coordinator, CrawlCommand::Pause));
    let progress = coordinator.progress(at(21));
    assert_eq!(
        (progress.phase, progress.is_paused),
        (CrawlPhase::Paused, true)
    );
    coordinator.end.end(EndReason::Finished);
    assert_eq!(coordinator.progress(at(21)).phase, CrawlPhase::Draining);
}

#[test]
fn the_estimate_counts_urls_within_the_budgets_of_their_hosts() {
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
                UrlToAdmit::seed(url(&format!("http://a.example/{path}"))),
            );
        }
        coordinator.report = run_report(1, pages(0), pages(0), pages(2));
        if leases == 4 {
            // The crawl has eight URLs: one page, one leased and six pending ones.
            coordinator.report = run_report(1, pages(0), pages(0), pages(1));
            coordinator.backlog.leased();
        }
        let progress = coordinator.progress(at(30));
        assert!((progress.share_done - share).abs() < 1e-9, "{progress:?}");
    }
}

/// Handles the result of a request for robots.txt that was sent at second 20 and failed at second
/// 22, after this part of the body had arrived.
fn robots_failed(coordinator: &mut Coordinator, kind: FailureKind, body: &str) -> Vec<Effect> {
    let origin = origin("a.example");
    coordinator.hosts.set_pending(at(20), &origin, 1);
    let PollOutcome::Issue(permit) = coordinator.hosts.poll(at(20)) else {
        panic!("no permit");
    };
    coordinator.hosts.sent();
    let request = FetchRequest::robots(origin.robots_url(), Validators::default());
    let part = answer(200, body).result(&request.url, at(20)).unwrap();
    let mut failed = failure(kind, at(20), at(22));
    failed.answer = Some(Box::new(part));
    let job = RequestJob::Robots {
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
fn a_failed_robots_txt_costs_its_host_time_and_no_bytes() {
    let mut coordinator = coordinator(|_| {});
    let out = robots_failed(&mut coordinator, FailureKind::ShortBody, "twelve bytes");
    assert_eq!(
        (
            coordinator.hosts.requests().count(),
            coordinator.report.robots_requests()
        ),
        (0, 1)
    );
    let stored = coordinator
        .hosts
        .budgets_mut()
        .stored(&origin("a.example").host_key());
    // The stored numbers are the round, pages, bytes and microseconds.
    let number = |at: usize| u64::from_le_bytes(stored[8 * at..8 * at + 8].try_into().unwrap());
    assert_eq!([0, 1, 2, 3].map(number), [1, 0, 0, 2_000_000]);
    assert!(
        matches!(&out[0], Effect::Log(line) if line.row().failure.as_deref() == Some("short_body"))
    );
    assert!(matches!(out[1], Effect::Write(WriterMessage::Side(_))));
}

#[test]
fn a_request_that_was_given_up_changes_no_rules() {
    let mut coordinator = coordinator(|_| {});
    let out = robots_failed(&mut coordinator, FailureKind::GivenUp, "");
    assert_eq!(
        (
            coordinator.hosts.requests().count(),
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
fn a_command_requires_a_known_host() {
    type Change = fn(&mut Coordinator);
    let changes: [(Change, bool); 5] = [
        (|_| {}, false),
        (
            |coordinator| {
                coordinator
                    .hosts
                    .set_pending(at(20), &origin("b.example"), 1);
            },
            true,
        ),
        (
            |coordinator| {
                coordinator
                    .hosts
                    .scheduler()
                    .park(at(20), &origin("b.example").host_key());
            },
            true,
        ),
        (
            |coordinator| {
                let mut transaction = coordinator.frontier.begin().unwrap();
                transaction.keep_host(&origin("b.example").host_key(), 0, b"");
                transaction.commit().unwrap();
            },
            true,
        ),
        (
            |coordinator| {
                let mut config = (*coordinator.config).clone();
                config.seeds.push(url("http://b.example/"));
                coordinator.hosts.set_politeness(at(20), &Arc::new(config));
            },
            true,
        ),
    ];
    let host = origin("b.example").host_key();
    for (number, (change, is_known)) in changes.into_iter().enumerate() {
        let mut coordinator = coordinator(|_| {});
        change(&mut coordinator);
        let unknown = CommandRefusal::UnknownHost(host.clone());
        let expected = (!is_known).then_some(unknown);
        let delay = CrawlCommand::Delay {
            host: Some(host.clone()),
            delay: SECOND,
        };
        let (answer, _) = send(&mut coordinator, delay);
        assert_eq!(answer.unwrap().err(), expected, "{number}");
    }
}

#[test]
fn delays_of_hosts_are_limited() {
    let mut coordinator = coordinator(|_| {});
    for number in 0..=MAX_DELAYS {
        let origin = origin(&format!("{number}.example"));
        coordinator.hosts.set_pending(at(20), &origin, 1);
        let delay = CrawlCommand::Delay {
            host: Some(origin.host_key()),
            delay: 2 * SECOND,
        };
        let (answer, out) = send(&mut coordinator, delay);
        match number < MAX_DELAYS {
            true => assert!(
                matches!(answer, Some(Ok(CommandAnswer::Done))),
                "{answer:?}"
            ),
            false => assert!(
                matches!(answer, Some(Err(CommandRefusal::TooManyDelays(MAX_DELAYS)))),
                "{answer:?}"
            ),
        }
        // There are two effects: one for the log of delays, and one for replays.
        assert_eq!(out.len(), if number < MAX_DELAYS { 2 } else { 0 });
    }
    // The delay of a host that has one may change.
    let again = CrawlCommand::Delay {
        host: Some(origin("0.example").host_key()),
        delay: 4 * SECOND,
    };
    let (answer, _) = send(&mut coordinator, again);
    assert!(matches!(answer, Some(Ok(CommandAnswer::Done))));
    // A delay for every host doesn't count towards the maximum number of delays.
    let delay = 3 * SECOND;
    let (answer, out) = send(&mut coordinator, CrawlCommand::Delay { host: None, delay });
    assert!(matches!(answer, Some(Ok(CommandAnswer::Done))));
    let [Effect::NoteDelay(row), Effect::NoteCommand(_)] = &*out else {
        panic!("{out:?}");
    };
    assert_eq!((row.at, &row.host, row.delay), (20_000, &None, Some(3_000)));
}

#[test]
fn short_delays_require_own_hosts() {
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
            coordinator.hosts.set_pending(at(20), &origin(name), 1);
        }
        let host = host.map(|host| HostKey::parse(host).unwrap());
        let (answer, _) = send(&mut coordinator, CrawlCommand::Delay { host, delay });
        let answer = answer.unwrap();
        assert_eq!(answer.is_ok(), is_done, "{shown}");
        // If any host has a short delay, hosts that the operator does not own get a longer gap of
        // their own.
        let origin = origin("b.example");
        let copy = super::fixtures::copy(&origin, "");
        let compiled = coordinator.robots.keep(copy);
        let state = coordinator.robots.state(at(20), &compiled, None);
        let has_gap =
            matches!(state, RobotsState::InForce { pace, .. } if pace.crawl_delay.is_some());
        assert_eq!(has_gap, is_quick, "{shown}");
    }
}

#[test]
fn parked_hosts_are_limited() {
    let mut coordinator = coordinator(|_| {});
    for number in 0..MAX_PARKED {
        let host = HostKey::parse(&format!("{number}.example")).unwrap();
        coordinator.hosts.park_again(at(20), [&host]);
    }
    let again = HostKey::parse("0.example").unwrap();
    coordinator
        .hosts
        .set_pending(at(20), &origin("b.example"), 1);
    let one_more = origin("b.example").host_key();
    let (answer, out) = send(&mut coordinator, CrawlCommand::Park(one_more.clone()));
    assert!(matches!(
        answer,
        Some(Err(CommandRefusal::TooManyParked(MAX_PARKED)))
    ));
    assert!(out.is_empty());
    // Parking a parked host again is allowed. Each new list of parked hosts has the next number.
    for (command, number, parked) in [
        (CrawlCommand::Park(again.clone()), 1, MAX_PARKED),
        (CrawlCommand::Unpark(again.clone()), 2, MAX_PARKED - 1),
        (CrawlCommand::Park(one_more), 3, MAX_PARKED),
    ] {
        let (answer, out) = send(&mut coordinator, command);
        assert!(answer.is_none(), "it is answered when it is durable");
        let [
            Effect::NoteCommand(_),
            Effect::Write(WriterMessage::Order(ordered)),
        ] = &*out
        else {
            panic!("{out:?}");
        };
        let DurableCommand::Parked {
            number: found,
            hosts,
        } = &ordered.order
        else {
            panic!("{ordered:?}");
        };
        assert_eq!((*found, hosts.len()), (number, parked));
    }
    let (answer, _) = send(&mut coordinator, CrawlCommand::Unpark(again.clone()));
    assert!(matches!(answer, Some(Err(CommandRefusal::NotParked(host))) if host == again));
}

#[test]
fn a_parked_host_stays_parked_when_its_login_begins_again() {
    let mut coordinator = coordinator(|_| {});
    let origin = origin("b.example");
    let host = origin.host_key();
    coordinator.hosts.set_pending(at(20), &origin, 1);
    let failure = LoginFailure {
        why: "no form".to_owned(),
        is_refused: false,
    };
    coordinator.hosts.stop_for_login(at(20), &host, &failure);
    assert_eq!(coordinator.hosts.parked().count(), 0);
    let (answer, _) = send(&mut coordinator, CrawlCommand::Park(host.clone()));
    assert!(answer.is_none(), "it is answered when it is durable");
    assert_eq!(coordinator.hosts.parked().collect::<Vec<_>>(), [&host]);
    coordinator.hosts.unpark_after_login(at(20), |_| true);
    assert!(coordinator.hosts.is_parked(&host));
    send(&mut coordinator, CrawlCommand::Unpark(host.clone()));
    assert!(!coordinator.hosts.is_parked(&host));

    // A host that an operator parked and unparked still waits for its login.
    send(&mut coordinator, CrawlCommand::Park(host.clone()));
    coordinator.hosts.stop_for_login(at(20), &host, &failure);
    send(&mut coordinator, CrawlCommand::Unpark(host.clone()));
    assert!(coordinator.hosts.is_parked(&host));
}

#[test]
fn a_private_address_is_added_if_the_operator_allows_it() {
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
        let (answer, out) = send(&mut coordinator, CrawlCommand::Add(home.to_owned()));
        assert_eq!(answer.is_none(), is_added, "{answer:?}");
        assert_eq!(out.len(), if is_added { 2 } else { 0 });
    }
}

#[test]
fn a_pending_url_may_be_added_and_its_host_joins_the_scope() {
    let mut coordinator = coordinator(|_| {});
    let mut scope = Scope::new(ScopeMode::Host, &[], &[], None).unwrap();
    scope.add_seed(&url("http://a.example/"));
    coordinator.scope = RunScope::new(scope, EmbeddedResourcePolicy::Off);
    let added = url("http://b.example/1");
    let _lease = leased(&*coordinator.frontier, UrlToAdmit::seed(added.clone()));
    let (_, out) = send(&mut coordinator, CrawlCommand::Add(added.to_string()));
    let [
        Effect::NoteCommand(_),
        Effect::Write(WriterMessage::Order(ordered)),
    ] = &*out
    else {
        panic!("{out:?}");
    };
    let DurableCommand::Add { seed, refused } = &ordered.order else {
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
fn the_estimate_of_many_urls_ignores_the_budgets_of_hosts() {
    for (urls, pages_left) in [
        (MAX_URLS_BY_HOST, 9),
        (MAX_URLS_BY_HOST + 1, MAX_URLS_BY_HOST + 1),
    ] {
        let mut coordinator = coordinator(|config| {
            config.budgets.per_host.max_pages = Some(9);
        });
        let mut transaction = coordinator.frontier.begin().unwrap();
        for path in 0..urls {
            let seed = UrlToAdmit::seed(url(&format!("http://a.example/{path}")));
            transaction.admit(seed).unwrap();
        }
        transaction.commit().unwrap();
        coordinator.report = run_report(1, pages(0), pages(0), pages(9));
        let share = 9.0 / (9 + pages_left) as f64;
        let progress = coordinator.progress(at(30));
        assert!((progress.share_done - share).abs() < 1e-9, "{progress:?}");
    }
}

#[test]
fn an_exchange_for_rules_is_archived_by_its_purpose() {
    let mut coordinator = coordinator(|_| {});
    let of = origin("a.example");
    let request = FetchRequest::robots(of.robots_url(), Validators::default());
    let exchange = answer(200, "twelve bytes").result(&request.url, at(20));
    let mut out = Vec::new();
    for job in [
        RequestJob::TdmRep {
            of: of.clone(),
            request: FetchRequest::robots(of.url(TDMREP_PATH), Validators::default()),
            attempt: TdmRepAttempt::default(),
        },
        RequestJob::Robots {
            of: of.clone(),
            request,
            hop: 0,
        },
    ] {
        let fetched = coordinator.rules_fetched(at(20), &job, exchange.clone(), &mut out);
        assert!(fetched.is_ok());
    }
    let shown = out.iter().map(|effect| match effect {
        Effect::Write(WriterMessage::Side(item)) => (
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

fn totals(pages: u64, failed: u64, bytes: u64) -> CrawlTotals {
    CrawlTotals {
        pages,
        failed,
        bytes,
        ..CrawlTotals::default()
    }
}

#[test]
fn spent_amounts_are_those_of_the_round_and_its_leases() {
    let mut coordinator = coordinator(|_| {});
    let (before, totals) = (totals(100, 0, 100_000), totals(106, 0, 106_000));
    coordinator.report = run_report(2, before, before, totals);
    coordinator.backlog.leased();
    let host = origin("a.example").host_key();
    let budgets = coordinator.hosts.budgets_mut();
    budgets.request_ended(&host, at(10), 6 * SECOND);
    let spent = coordinator.spent();
    assert_eq!((spent.pages, spent.are_shared_pages_spent), (7, None));
    assert_eq!((spent.bytes, spent.server_time), (6_000, 6 * SECOND));
}

#[test]
fn progress_has_the_counts_and_the_rate_of_this_run() {
    let mut coordinator = coordinator(|_| {});
    let (before, now) = (totals(100, 2, 1_000), totals(150, 7, 9_000));
    coordinator.report = run_report(2, before, totals(110, 0, 0), now);
    let progress = coordinator.progress(at(30));
    assert_eq!(progress.phase, CrawlPhase::Crawling);
    assert_eq!((progress.pages, progress.failed), (50, 5));
    assert_eq!(progress.bytes, 8_000);
    assert_eq!(progress.elapsed, 20 * SECOND);
    assert!((progress.pages_per_second - 2.0).abs() < 1e-9);
    coordinator.end.stop(StopUrgency::Drain);
    assert_eq!(coordinator.progress(at(30)).phase, CrawlPhase::Draining);
}

#[test]
fn a_held_suspect_is_pending_after_the_run() {
    let mut coordinator = coordinator(|_| {});
    let frontier = Arc::clone(&coordinator.frontier);
    let url = canonicalize(None, "http://a.example/").unwrap();
    let lease = leased(&*frontier, UrlToAdmit::seed(url.clone()));
    coordinator.leased_url_judge.hold(lease);
    assert_eq!(frontier.pending(&url.origin()), 0);
    coordinator.end.stop(StopUrgency::Drain);
    assert_eq!(
        coordinator.advance(at(20), &mut Vec::new()),
        DriverStep::Done
    );
    assert_eq!(frontier.pending(&url.origin()), 1);
}

#[test]
fn nothing_is_fetched_while_a_page_is_read_alone() {
    for (reads_alone, unsettled, has_room) in [
        (true, 0, true),
        (true, 1, false),
        (true, 2, false),
        (false, 1, true),
    ] {
        let mut coordinator = coordinator(|_| {});
        coordinator.backlog.note_time(at(20));
        coordinator.backlog.written(unsettled, 0);
        if reads_alone {
            let seed = UrlToAdmit::seed(coordinator.config.seeds[0].clone());
            let lease = leased(&*coordinator.frontier, seed);
            coordinator.leased_url_judge.hold(lease);
            coordinator.leased_url_judge.begin_reading();
        }
        assert_eq!(
            coordinator.has_room(at(20)),
            has_room,
            "{reads_alone} {unsettled}"
        );
    }
}

#[test]
fn a_run_begins_with_its_seeds_and_deferred_urls() {
    for (seeds, messages) in [(config().seeds, 2), (Vec::new(), 1)] {
        let mut coordinator = coordinator(|config| config.seeds = seeds);
        let frontier = Arc::clone(&coordinator.frontier);
        let mut transaction = frontier.begin().unwrap();
        let pending = url("http://b.example/");
        transaction
            .admit(UrlToAdmit::seed(pending.clone()))
            .unwrap();
        transaction.commit().unwrap();
        let mut out = Vec::new();
        coordinator.begin(at(20), &mut out);
        assert!(coordinator.hosts.knows(&pending.host_key()));
        assert_eq!(
            (out.len(), coordinator.backlog.unsettled()),
            (messages, messages as u64)
        );
        let last = out.pop().unwrap();
        assert!(matches!(
            last,
            Effect::Write(WriterMessage::TakeBack { scope: Some(_) })
        ));
    }
}
