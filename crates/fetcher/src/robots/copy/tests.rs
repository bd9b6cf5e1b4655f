use http::{HeaderValue, Version};
use proptest::prelude::*;

use super::*;
use crate::body_memory_pool::BodyMemoryReservation;
use crate::exchange::SentRequestRecord;
use crate::failure_kind::{FailureKind, FailurePhase, FaultyParty};

const HOUR: Duration = Duration::from_secs(3600);

fn origin() -> Origin {
    Origin::parse("http://a.example").unwrap()
}

fn at(after: Duration) -> Tick {
    Tick::from_micros(1_700_000_000_000_000) + after
}

fn result(
    when: Duration,
    status: u16,
    headers: &[(&'static str, &'static str)],
) -> Result<Exchange, ExchangeFailure> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, HeaderValue::from_static(value));
    }
    Ok(Exchange {
        url: origin().robots_url(),
        sent: SentRequestRecord::default(),
        started: at(when),
        ended: at(when),
        first_byte: Duration::ZERO,
        address: None,
        status,
        version: Version::HTTP_11,
        tls: None,
        headers: map,
        body: Bytes::new(),
        truncated: None,
        challenged: false,
        unmet_signature: None,
        room: BodyMemoryReservation::default(),
    })
}

fn rules(when: Duration, headers: &[(&'static str, &'static str)]) -> RobotsCopy {
    let answer = RobotsFetchResult::Rules {
        body: Bytes::from_static(b"User-agent: *\nDisallow: /private\n"),
        status: 200,
    };
    learn(None, &answer, &result(when, 200, headers))
}

fn learn(
    before: Option<&RobotsCopy>,
    answer: &RobotsFetchResult,
    result: &Result<Exchange, ExchangeFailure>,
) -> RobotsCopy {
    let times = RobotsTimeLimits::default();
    let copy = RobotsCopy::learn(&origin(), before, answer, result, &times);
    let read = RobotsCopy::from_bytes(&copy.to_bytes()).unwrap();
    assert_eq!(read, copy, "the durable form holds everything");
    copy
}

fn unreachable(before: Option<&RobotsCopy>, when: Duration, asked: Option<Duration>) -> RobotsCopy {
    let answer = RobotsFetchResult::Unreachable {
        why: "status".to_owned(),
        status: Some(503),
        retry_after: asked,
    };
    learn(before, &answer, &result(when, 503, &[]))
}

/// Returns a timeout that ended at `when`.
fn failure(when: Duration) -> ExchangeFailure {
    ExchangeFailure {
        kind: FailureKind::Timeout,
        phase: FailurePhase::FirstByte,
        fault: FaultyParty::Url,
        retry: true,
        started: at(Duration::ZERO),
        ended: at(when),
        address: None,
        detail: String::new(),
        signed: false,
        answer: None,
    }
}

fn force(copy: &RobotsCopy, when: Duration) -> RobotsFreshness {
    copy.force(at(when), &RobotsTimeLimits::default())
}

#[test]
fn rfc9309_2_4_rules_hold_for_their_lifetime() {
    let copy = rules(Duration::ZERO, &[("cache-control", "max-age=600")]);
    let until = at(Duration::from_secs(600));
    assert_eq!(
        force(&copy, Duration::ZERO),
        RobotsFreshness::Fresh { until }
    );
    assert_eq!(
        force(&copy, Duration::from_secs(599)),
        RobotsFreshness::Fresh { until }
    );
    assert_eq!(
        force(&copy, Duration::from_secs(600)),
        RobotsFreshness::Expired
    );
}

#[test]
fn rfc9309_2_3_1_3_no_file_is_in_force_like_one() {
    let answer = RobotsFetchResult::None { status: 404 };
    let copy = learn(None, &answer, &result(Duration::ZERO, 404, &[]));
    assert_eq!(copy.status, Some(404));
    assert_eq!(
        force(&copy, HOUR),
        RobotsFreshness::Fresh {
            until: at(24 * HOUR)
        }
    );
}

#[test]
fn waits_double_from_five_minutes_to_six_hours() {
    let mut copy = unreachable(None, Duration::ZERO, None);
    let mut waits = Vec::new();
    for _ in 0..9 {
        waits.push(copy.expires.since(copy.fetched_at).as_secs() / 60);
        let when = copy.expires.since(at(Duration::ZERO));
        copy = unreachable(Some(&copy), when, None);
    }
    assert_eq!(waits, [5, 10, 20, 40, 80, 160, 320, 360, 360]);
    let RobotsRulesState::Unreachable { tries, .. } = copy.state else {
        panic!("{:?}", copy.state);
    };
    assert_eq!(tries, 10);
}

#[test]
fn a_request_without_an_answer_during_a_wait_does_not_extend_it() {
    let answer = RobotsFetchResult::Unreachable {
        why: "timeout".to_owned(),
        status: None,
        retry_after: None,
    };
    let minutes = |copy: &RobotsCopy| copy.expires.since(at(Duration::ZERO)).as_secs() / 60;
    let unanswered = |before: Option<&RobotsCopy>, minute: u64| {
        let when = Duration::from_secs(60 * minute);
        learn(before, &answer, &Err(failure(when)))
    };
    let first = unanswered(None, 0);
    let second = unanswered(Some(&first), 2);
    assert_eq!((minutes(&first), minutes(&second)), (5, 5));
    let third = unanswered(Some(&second), 5);
    assert_eq!(minutes(&third), 15);
    // Unlike a request without an answer, an answer that leaves the rules unknown doubles the wait.
    let answered = unreachable(Some(&third), Duration::from_secs(60 * 6), None);
    assert_eq!(minutes(&answered), 26);
}

#[test]
fn the_first_wait_is_that_of_retry_after_up_to_a_day() {
    let wait = |asked| unreachable(None, Duration::ZERO, Some(asked)).expires;
    assert_eq!(wait(Duration::ZERO), at(Duration::ZERO));
    assert_eq!(wait(Duration::from_secs(10)), at(Duration::from_secs(10)));
    assert_eq!(wait(8 * HOUR), at(8 * HOUR));
    assert_eq!(wait(Duration::MAX), at(24 * HOUR));
}

#[test]
fn further_waits_double_unless_retry_after_is_longer() {
    let mut copy = unreachable(None, Duration::ZERO, Some(Duration::from_secs(10)));
    let mut waits = Vec::new();
    for asked in [0, 10, 3_000, 3_000] {
        let when = copy.expires.since(at(Duration::ZERO));
        copy = unreachable(Some(&copy), when, Some(Duration::from_secs(asked)));
        waits.push(copy.expires.since(copy.fetched_at).as_secs());
    }
    assert_eq!(waits, [600, 1_200, 3_000, 4_800]);
}

#[test]
fn rfc9309_2_3_1_4_the_last_good_copy_serves_thirty_days() {
    let good = rules(Duration::ZERO, &[]);
    let copy = unreachable(Some(&good), 25 * HOUR, None);
    assert_eq!(copy.body, good.body);
    let until = at(25 * HOUR + Duration::from_secs(300));
    assert_eq!(force(&copy, 25 * HOUR), RobotsFreshness::LastGood { until });
    assert_eq!(force(&copy, 26 * HOUR), RobotsFreshness::Expired);

    let late = 30 * 24 * HOUR - Duration::from_secs(60);
    let copy = unreachable(Some(&copy), late, None);
    assert_eq!(
        force(&copy, late),
        RobotsFreshness::LastGood {
            until: at(30 * 24 * HOUR)
        }
    );
    let over = 30 * 24 * HOUR;
    assert!(matches!(
        force(&copy, over),
        RobotsFreshness::Unreachable { .. }
    ));
}

#[test]
fn without_a_good_copy_nothing_is_allowed() {
    let copy = unreachable(None, Duration::ZERO, None);
    let retry_at = at(Duration::from_secs(300));
    assert_eq!(
        force(&copy, Duration::ZERO),
        RobotsFreshness::Unreachable { retry_at }
    );
    // If robots.txt becomes unreachable after a 404, nothing is allowed, because there is no good
    // copy.
    let answer = RobotsFetchResult::None { status: 404 };
    let none = learn(None, &answer, &result(Duration::ZERO, 404, &[]));
    let copy = unreachable(Some(&none), HOUR, None);
    assert!(matches!(
        force(&copy, HOUR),
        RobotsFreshness::Unreachable { .. }
    ));
}

#[test]
fn rfc9111_4_3_4_a_304_makes_the_copy_fresh() {
    let headers = [("etag", "\"1\""), ("cache-control", "max-age=600")];
    let good = rules(Duration::ZERO, &headers);
    let url = origin().robots_url();
    assert_eq!(good.validators_for(&url).etag.as_deref(), Some("\"1\""));
    assert!(good.validators_for(&origin().url("/elsewhere")).is_empty());

    let copy = learn(
        Some(&good),
        &RobotsFetchResult::NotModified,
        &result(HOUR, 304, &[]),
    );
    assert_eq!(copy.body, good.body);
    assert_eq!(copy.validators, good.validators);
    assert_eq!(copy.good_at, Some(at(HOUR)));
    assert_eq!(copy.expires, at(HOUR + Duration::from_secs(600)));

    let result = result(
        HOUR,
        304,
        &[("cache-control", "max-age=60"), ("etag", "\"2\"")],
    );
    let copy = learn(Some(&good), &RobotsFetchResult::NotModified, &result);
    assert_eq!(copy.expires, at(HOUR + Duration::from_secs(60)));
    assert_eq!(copy.validators.etag.as_deref(), Some("\"2\""));
}

#[test]
fn a_304_after_an_outage_ends_the_outage() {
    let good = rules(Duration::ZERO, &[("etag", "\"1\"")]);
    let out = unreachable(Some(&good), 25 * HOUR, None);
    assert!(!out.validators_for(&origin().robots_url()).is_empty());
    let copy = learn(
        Some(&out),
        &RobotsFetchResult::NotModified,
        &result(26 * HOUR, 304, &[]),
    );
    assert_eq!(copy.state, RobotsRulesState::Rules);
    assert_eq!(copy.expires, at(50 * HOUR));
}

#[test]
fn a_failure_is_dated_by_its_end() {
    let failure = failure(HOUR);
    let answer = RobotsFetchResult::Unreachable {
        why: "timeout".to_owned(),
        status: None,
        retry_after: None,
    };
    let copy = learn(None, &answer, &Err(failure));
    assert_eq!((copy.fetched_at, copy.status), (at(HOUR), None));
    assert_eq!(copy.expires, at(HOUR + Duration::from_secs(300)));
}

#[test]
fn a_broken_durable_form_is_named() {
    let message = |bytes: &[u8]| RobotsCopy::from_bytes(bytes).unwrap_err().to_string();
    assert_eq!(message(b""), "robots copy of 0 bytes has no head");
    assert_eq!(message(b"{}\n"), "robots copy has a broken head");
    assert_eq!(
        message(b"{\"version\":9}\n"),
        "robots copy has version 9 instead of 2"
    );
    let mut bytes = rules(Duration::ZERO, &[]).to_bytes();
    for at in 0..bytes.len() {
        let _ = RobotsCopy::from_bytes(&bytes[..at]);
        bytes[at] ^= 0x15;
        let _ = RobotsCopy::from_bytes(&bytes);
        bytes[at] ^= 0x15;
    }
}

#[test]
fn a_tdmrep_is_stored_with_the_rules_and_outlives_them() {
    let mut copy = rules(Duration::ZERO, &[]);
    copy.tdmrep = TdmReservationCopy::File(Bytes::from_static(b"[]\n"));
    assert_eq!(RobotsCopy::from_bytes(&copy.to_bytes()).unwrap(), copy);
    let out = unreachable(Some(&copy), 25 * HOUR, None);
    assert_eq!(out.tdmrep, copy.tdmrep);
    copy.tdmrep = TdmReservationCopy::None;
    assert_eq!(RobotsCopy::from_bytes(&copy.to_bytes()).unwrap(), copy);
    let bytes = b"{\"version\":2,\"origin\":\"http://e.example\",\"state\":\"rules\",\"status\":null,\"fetched_at\":0,\"expires\":0,\"lasts\":0,\"good_at\":null,\"url\":\"http://e.example/robots.txt\",\"etag\":null,\"last_modified\":null,\"tdmrep\":{\"file\":9}}\nfour";
    assert!(matches!(
        RobotsCopy::from_bytes(bytes),
        Err(RobotsCopyDecodeError::Short(9))
    ));
}

proptest! {
    /// A copy dated in the future is ignored, or lasts no longer than any other.
    #[test]
    fn a_clock_that_was_ahead_makes_no_copy_last_longer(
        ahead in 0_u64..200_000_000_000,
        kind in 0..4,
        retry_after in prop::option::of(0_u64..200_000),
    ) {
        let ahead = Duration::from_millis(ahead);
        let retry_after = retry_after.map(Duration::from_secs);
        let copy = match kind {
            0 => rules(ahead, &[]),
            1 => unreachable(None, ahead, retry_after),
            // The clock was ahead when the file was fetched, and correct again when the next fetch
            // failed.
            2 => unreachable(Some(&rules(ahead, &[])), Duration::ZERO, retry_after),
            _ => unreachable(Some(&rules(ahead, &[])), ahead, retry_after),
        };
        match force(&copy, Duration::ZERO) {
            RobotsFreshness::Expired => {}
            RobotsFreshness::Fresh { until } | RobotsFreshness::Unreachable { retry_at: until } => {
                prop_assert!(until <= at(24 * HOUR));
            }
            RobotsFreshness::LastGood { until } => prop_assert!(until <= at(24 * HOUR)),
        }
        if ahead > 60 * Duration::from_secs(1) && kind != 2 {
            prop_assert_eq!(force(&copy, Duration::ZERO), RobotsFreshness::Expired);
        }
        // In kind 2 the last good file has a date in the future. It may be used for a month from
        // now, and no longer.
        if kind == 2 {
            let month = RobotsTimeLimits::default().last_good;
            let again = unreachable(Some(&copy), month, None);
            let is_over = matches!(force(&again, month), RobotsFreshness::Unreachable { .. });
            prop_assert!(is_over);
        }
    }
}
