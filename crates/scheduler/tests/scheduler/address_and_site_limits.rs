//! Tests of the limits per address and per site, the rate limit and the concurrency.

use std::net::IpAddr;
use std::time::Duration;

use crawl_scheduler::{
    OutcomeKind, PauseReason, Permit, PermitAdmissionResult, Politeness, PollOutcome,
    RequestOutcome,
};

use crate::scheduler_harness::{ANSWER, SECOND, Stage, asked_to_wait};

const ANSWERED: OutcomeKind = OutcomeKind::Answered;

fn fast() -> Politeness {
    Politeness {
        delay: Duration::ZERO,
        delay_factor: 0.0,
        address_rate: None,
        ..Politeness::default()
    }
}

fn permits(stage: &mut Stage) -> Vec<Permit> {
    let mut permits = Vec::new();
    while let PollOutcome::Issue(permit) = stage.scheduler.poll(stage.now) {
        permits.push(permit);
    }
    permits
}

fn sent(admission: PermitAdmissionResult) -> Option<Permit> {
    match admission {
        PermitAdmissionResult::Send(permit) => Some(permit),
        PermitAdmissionResult::Wait(..) | PermitAdmissionResult::GivenBack => None,
    }
}

/// Opens this many hosts at one address, each of its own site.
fn shared(stage: &mut Stage, hosts: u32) {
    let address: IpAddr = "192.0.2.1".parse().unwrap();
    for host in 0..hosts {
        let origin = stage.open(&format!("http://h{host}.example"), 1000);
        stage
            .scheduler
            .set_address(stage.now, &origin.host_key(), address);
    }
}

#[test]
fn an_address_has_a_limit_of_its_own() {
    let mut stage = Stage::new(fast());
    shared(&mut stage, 50);
    let mut out = permits(&mut stage);
    assert_eq!(out.len(), 8);
    stage.end(out.remove(0).spend(), ANSWERED);
    assert_eq!(permits(&mut stage).len(), 1);
}

#[test]
fn an_address_is_learned_from_the_first_request() {
    let mut stage = Stage::new(Politeness {
        per_address: 1,
        ..fast()
    });
    for host in 0..3 {
        stage.open(&format!("http://h{host}.example"), 1000);
    }
    let out = permits(&mut stage);
    assert_eq!(out.len(), 3);
    for permit in out {
        let signal = RequestOutcome {
            end: stage.now,
            response_time: ANSWER,
            // The IPv4-mapped form of the same address.
            address: Some("::ffff:192.0.2.1".parse().unwrap()),
            kind: ANSWERED,
            rate_limit: None,
            url: None,
        };
        stage.scheduler.done(stage.now, permit.spend(), signal);
    }
    assert_eq!(permits(&mut stage).len(), 1);
}

#[test]
fn a_request_counts_at_its_looked_up_address() {
    let mut stage = Stage::new(Politeness {
        per_address: 1,
        ..fast()
    });
    for host in 0..3 {
        stage.open(&format!("http://h{host}.example"), 1000);
    }
    let address: IpAddr = "192.0.2.1".parse().unwrap();
    let mut out = permits(&mut stage).into_iter();
    let now = stage.now;
    let mut count = |permit| {
        let permit = stage.scheduler.set_aside(now, permit);
        sent(stage.scheduler.admit(now, permit, Some(address)))
    };
    let first = count(out.next().unwrap()).unwrap();
    // A request that is admitted again after another look-up is counted only once.
    let first = count(first).unwrap();
    assert!(out.all(|permit| count(permit).is_none()));
    assert_eq!(stage.scheduler.in_flight(), 1);
    stage.assert_closed();
    stage.end(first.spend(), ANSWERED);
    let mut next = permits(&mut stage);
    assert_eq!(next.len(), 1);
    // The name now resolves to another address, so the old address has room for another request.
    let elsewhere: IpAddr = "192.0.2.2".parse().unwrap();
    let aside = stage.scheduler.set_aside(now, next.remove(0));
    let moved = stage.scheduler.admit(now, aside, Some(elsewhere));
    assert!(sent(moved).is_some());
    assert_eq!(permits(&mut stage).len(), 1);
}

#[test]
fn look_ups_run_ahead_and_do_not_count_as_requests_in_flight() {
    let mut stage = Stage::new(Politeness {
        concurrency: 2,
        look_ups: 3,
        ..fast()
    });
    let known_host = stage.open("http://known.example", 1000).host_key();
    let address: IpAddr = "192.0.2.1".parse().unwrap();
    stage.scheduler.set_address(stage.now, &known_host, address);
    for host in 0..5 {
        stage.open(&format!("http://h{host}.example"), 1000);
    }
    let (aside, mut asked): (Vec<_>, Vec<_>) = permits(&mut stage)
        .into_iter()
        .partition(Permit::is_set_aside);
    assert_eq!((aside.len(), asked.len()), (3, 1));
    assert_eq!(stage.scheduler.in_flight(), 1);
    // A permit whose look-up has ended counts against the concurrency only once it is admitted.
    let mut aside = aside.into_iter();
    let looked_up = aside.next().unwrap();
    asked.extend(sent(stage.scheduler.admit(stage.now, looked_up, None)));
    assert_eq!((asked.len(), stage.scheduler.in_flight()), (2, 2));
    // The next look-up may start, although the concurrency is exhausted.
    let next = permits(&mut stage);
    assert_eq!(next.len(), 1);
    assert!(next[0].is_set_aside());
    // The second permit whose look-up ended must wait, because the concurrency is exhausted.
    let looked_up = aside.next().unwrap();
    let other_address = "192.0.2.2".parse().unwrap();
    let PermitAdmissionResult::Wait(looked_up, None) =
        stage
            .scheduler
            .admit(stage.now, looked_up, Some(other_address))
    else {
        panic!("there is no room");
    };
    stage.end(asked.remove(0).spend(), ANSWERED);
    let looked_up = sent(
        stage
            .scheduler
            .admit(stage.now, looked_up, Some(other_address)),
    )
    .unwrap();
    assert!(stage.scheduler.has_address(looked_up.host()));
}

#[test]
fn ended_look_ups_wait_for_the_rate() {
    let mut stage = Stage::new(Politeness {
        max_rate: Some(1.0),
        look_ups: 3,
        ..fast()
    });
    for host in 0..3 {
        stage.open(&format!("http://h{host}.example"), 1000);
    }
    let mut looked_up = permits(&mut stage).into_iter();
    let first = sent(
        stage
            .scheduler
            .admit(stage.now, looked_up.next().unwrap(), None),
    );
    assert!(first.is_some());
    let second = stage
        .scheduler
        .admit(stage.now, looked_up.next().unwrap(), None);
    let PermitAdmissionResult::Wait(second, Some(until)) = second else {
        panic!("one request a second: {second:?}");
    };
    assert_eq!(until, stage.now + SECOND);
    assert!(sent(stage.scheduler.admit(until, second, None)).is_some());
}

#[test]
fn a_permit_given_back_does_not_delay_its_address() {
    let mut stage = Stage::new(Politeness {
        address_delay: SECOND,
        ..fast()
    });
    for host in 0..2 {
        stage.open(&format!("http://h{host}.example"), 1000);
    }
    let address: IpAddr = "192.0.2.1".parse().unwrap();
    let mut out = permits(&mut stage);
    // The look-up took half a second.
    stage.now = stage.now + SECOND / 2;
    let (first, second) = (out.remove(0), out.remove(0));
    let first = stage.scheduler.set_aside(stage.now, first);
    let first = sent(stage.scheduler.admit(stage.now, first, Some(address))).unwrap();
    stage.scheduler.give_back(stage.now, first);
    let second = stage.scheduler.set_aside(stage.now, second);
    let second = stage.scheduler.admit(stage.now, second, Some(address));
    assert!(sent(second).is_some());
}

#[test]
fn a_host_waiting_for_an_address_proceeds_when_a_permit_is_given_back() {
    let mut stage = Stage::new(Politeness {
        address_delay: SECOND,
        ..fast()
    });
    shared(&mut stage, 2);
    let first = stage.issue();
    stage.assert_closed();
    stage.scheduler.give_back(stage.now, first);
    let next = stage.issue();
    assert_eq!(next.host().as_str(), "h1.example");
}

#[test]
fn the_address_delay_is_between_any_two_requests() {
    let mut stage = Stage::new(Politeness {
        address_delay: SECOND,
        ..fast()
    });
    shared(&mut stage, 50);
    let first = stage.issue();
    stage.assert_closed();
    let (_second, waited) = stage.wait();
    assert_eq!(waited, SECOND);
    stage.now = stage.now + SECOND / 2;
    stage.end(first.spend(), ANSWERED);
    assert_eq!(stage.wait().1, SECOND);
}

#[test]
fn hosts_at_one_address_share_sixteen_requests_per_second() {
    let mut stage = Stage::new(Politeness {
        per_address: 100,
        address_rate: Politeness::default().address_rate,
        ..fast()
    });
    shared(&mut stage, 50);
    let first = stage.issue();
    for _ in 1..20 {
        assert_eq!(stage.wait().1, SECOND / 16);
    }
    // Giving back the last permit frees its interval of the rate limit. Giving back an older permit
    // frees nothing.
    let (unsent, _) = stage.wait();
    stage.scheduler.give_back(stage.now, unsent);
    let _again = stage.issue();
    stage.scheduler.give_back(stage.now, first);
    stage.assert_closed();
    // A new rate starts now, and the current wait does not end earlier.
    let rate = |rate| Politeness {
        per_address: 100,
        address_rate: rate,
        ..fast()
    };
    stage.scheduler.set_politeness(stage.now, rate(Some(2.0)));
    assert_eq!(stage.wait().1, SECOND / 2);
    stage.scheduler.set_politeness(stage.now, rate(None));
    assert_eq!(stage.wait().1, SECOND / 2);
    assert_eq!(permits(&mut stage).len(), 28);
}

#[test]
fn a_loopback_address_has_no_rate_limit() {
    let mut stage = Stage::new(Politeness {
        address_rate: Some(1.0),
        ..fast()
    });
    for (host, address) in [
        ("a", "127.0.0.2"),
        ("b", "127.0.0.2"),
        ("c", "::1"),
        ("d", "::1"),
    ] {
        let host = stage.open(&format!("http://{host}.example"), 9).host_key();
        stage
            .scheduler
            .set_address(stage.now, &host, address.parse().unwrap());
    }
    assert_eq!(permits(&mut stage).len(), 4);
}

#[test]
fn a_site_has_a_limit_never_below_per_host() {
    let mut stage = Stage::new(Politeness {
        per_host: 3,
        per_site: Some(2),
        ..fast()
    });
    for host in 0..9 {
        stage.open(&format!("http://h{host}.one.example"), 1000);
        stage.open(&format!("http://h{host}.two.example"), 1000);
    }
    assert_eq!(permits(&mut stage).len(), 6);
}

#[test]
fn the_site_delay_counts_without_a_limit() {
    let mut stage = Stage::new(Politeness {
        site_delay: 2 * SECOND,
        ..fast()
    });
    stage.open("http://a.one.example", 10);
    stage.open("http://b.one.example", 10);
    stage.open("http://c.two.example", 10);
    assert_eq!(permits(&mut stage).len(), 2);
    assert_eq!(stage.wait().1, 2 * SECOND);
}

#[test]
fn concurrency_bounds_all() {
    let mut stage = Stage::new(Politeness {
        concurrency: 5,
        ..fast()
    });
    for host in 0..9 {
        stage.open(&format!("http://h{host}.example"), 1000);
    }
    let mut out = permits(&mut stage);
    assert_eq!((out.len(), stage.scheduler.in_flight()), (5, 5));
    assert!(matches!(stage.scheduler.poll(stage.now), PollOutcome::Idle));
    stage.end(out.remove(0).spend(), ANSWERED);
    assert_eq!(permits(&mut stage).len(), 1);
}

#[test]
fn the_rate_spaces_requests_and_never_bursts() {
    let mut stage = Stage::new(Politeness {
        max_rate: Some(4.0),
        ..fast()
    });
    for host in 0..9 {
        stage.open(&format!("http://h{host}.example"), 1000);
    }
    stage.now = stage.now + 60 * SECOND;
    let _first = stage.issue();
    let (second, waited) = stage.wait();
    assert_eq!(waited, SECOND / 4);
    // The request was not sent, so exactly one other request may be sent now.
    stage.scheduler.give_back(stage.now, second);
    let _again = stage.issue();
    assert_eq!(stage.wait().1, SECOND / 4);
}

#[test]
fn paused_hosts_are_listed_apart_from_hosts_waiting_for_their_gap() {
    let mut stage = Stage::new(Politeness::default());
    for (host, kind) in [
        ("a", ANSWERED),
        ("b", asked_to_wait(Some(600))),
        ("c", asked_to_wait(None)),
        ("d", OutcomeKind::NoConnection),
    ] {
        stage.open(&format!("http://{host}.example"), 10);
        let permit = stage.issue();
        stage.end(permit.spend(), kind);
    }
    let resting = stage.scheduler.host_summary(stage.now);
    let reasons: Vec<_> = resting.paused.iter().map(|paused| paused.why).collect();
    assert_eq!(
        reasons,
        [
            PauseReason::RetryAfter,
            PauseReason::Wait,
            PauseReason::Failures(1)
        ]
    );
    assert_eq!(
        (resting.in_flight, resting.ready, resting.waiting_hosts),
        (0, 0, 1)
    );
    assert_eq!(resting.soonest, Some(stage.now + SECOND));
    assert_eq!(resting.paused[0].until, stage.now + 600 * SECOND);
}

#[test]
fn a_host_waiting_only_for_its_address_holds_no_place_elsewhere() {
    let mut stage = Stage::new(Politeness {
        per_address: 1,
        ..fast()
    });
    shared(&mut stage, 2);
    let first = stage.issue();
    let other_host = match first.host().as_str() {
        "h0.example" => "h1.example",
        _ => "h0.example",
    };
    let other_host = crawl_weburl::HostKey::parse(other_host).unwrap();
    // Each change of priority makes the host ready again, but its address is still busy.
    for priority in [1, 0].repeat(10) {
        stage.scheduler.prioritize(stage.now, &other_host, priority);
        stage.assert_closed();
    }
    stage.now = stage.now + ANSWER;
    stage.end(first.spend(), ANSWERED);
    assert_eq!(*stage.issue().host(), other_host);
}

#[test]
fn a_longer_site_delay_applies_to_a_forgotten_site() {
    let site_delay = |site_delay| Politeness {
        site_delay,
        ..fast()
    };
    let mut stage = Stage::new(site_delay(SECOND));
    stage.open("http://a.s.example", 1);
    stage.exchange(ANSWERED);
    stage.scheduler.evict().unwrap();
    stage.now = stage.now + SECOND;
    // The gate (shared limit) is dropped with its last host, and created again for another host.
    stage.open("http://b.s.example", 1);
    let longer = site_delay(5 * SECOND);
    stage.scheduler.set_politeness(stage.now, longer);
    assert_eq!(stage.exchange(ANSWERED).0, 4 * SECOND);
    // This time the gate (shared limit) is dropped before `set_politeness`, and created again after
    // it.
    stage.scheduler.evict().unwrap();
    stage.now = stage.now + 5 * SECOND;
    let longer = site_delay(9 * SECOND);
    stage.scheduler.set_politeness(stage.now, longer);
    stage.open("http://c.s.example", 1);
    assert_eq!(stage.exchange(ANSWERED).0, 9 * SECOND);
}

#[test]
fn a_lowered_site_limit_takes_a_held_place_away() {
    let per_site = |limit| Politeness {
        per_address: 1,
        per_site: Some(limit),
        ..fast()
    };
    let mut stage = Stage::new(per_site(2));
    let [elsewhere, here] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
    let mut host = |text, address| {
        let host = stage.open(text, 9).host_key();
        stage.scheduler.set_address(stage.now, &host, address);
        host
    };
    let neighbour = host("http://neighbour.example", here);
    let holder = host("http://holder.s.example", here);
    let other_host = host("http://other.s.example", elsewhere);
    let now = stage.now;
    let mut poll_host = |host| match stage.scheduler.poll_host(now, host) {
        PollOutcome::Issue(permit) => Some(permit.spend()),
        _ => None,
    };
    let at_address = poll_host(&neighbour).unwrap();
    // After enough polls that find the host's address busy, the host `holder` reserves a request at
    // its site.
    assert!((0..100).all(|_| poll_host(&holder).is_none()));
    let of_site = poll_host(&other_host).unwrap();
    stage.scheduler.set_politeness(now, per_site(1));
    stage.scheduler.park(now, &neighbour);
    stage.end(at_address, ANSWERED);
    stage.assert_closed();
    stage.scheduler.park(now, &other_host);
    stage.end(of_site, ANSWERED);
    assert_eq!(stage.issue().host(), &holder);
}
