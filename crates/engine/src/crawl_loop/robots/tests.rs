use std::sync::Arc;
use std::time::Duration;

use crawl_fetcher::robots::{RobotsCopy, RobotsFetchResult, RobotsRulesState, TdmReservationCopy};
use crawl_fetcher::{FailureKind, FetchRequest, Validators};
use crawl_policy::usage_statements::UsagePurpose;
use crawl_scheduler::{Politeness, PolitenessOverride, RobotsState};
use crawl_weburl::{HostKey, Origin};

use super::super::fixtures::{at, coordinator, copy};
use super::{
    ForbiddenRobotsPolicy, MAX_STRANGE_FILES, MIN_OTHERS_DELAY, RobotsAvailability,
    RobotsFollowUpRequest, TdmRepAttempt, is_quick, may_be_anothers,
};
use crate::simulated_crawl_tests::scripted_servers::{answer, failure};

#[test]
fn a_forbidden_robots_txt_excludes_a_site_if_configured() {
    let origin = Origin::parse("http://a.example").unwrap();
    let (allow, deny) = (ForbiddenRobotsPolicy::Allow, ForbiddenRobotsPolicy::Deny);
    let (none, rules) = (RobotsRulesState::None, RobotsRulesState::Rules);
    for (forbidden, state, status, closed) in [
        (allow, &none, 403, None),
        (deny, &none, 403, Some(403)),
        (deny, &none, 401, Some(401)),
        (deny, &none, 404, None),
        (deny, &rules, 403, None),
    ] {
        let coordinator = coordinator(|config| config.robots_forbidden = forbidden);
        let copy = RobotsCopy {
            state: state.clone(),
            status: Some(status),
            ..copy(&origin, "")
        };
        let closed_by = coordinator.robots.closed_by(&copy);
        assert_eq!(closed_by, closed, "{forbidden:?} {state:?} {status}");
    }
}

#[test]
fn the_first_files_that_are_not_a_robots_txt_are_reported_once() {
    let origins = &mut coordinator(|_| {}).robots;
    for _ in 0..2 {
        for number in 0..MAX_STRANGE_FILES + 5 {
            let origin = Origin::parse(&format!("http://{number}.example")).unwrap();
            for body in ["User-agent: *\n", "<!DOCTYPE html><html></html>"] {
                let compiled = origins.keep(copy(&origin, body));
                origins.note_strange(&compiled);
            }
        }
    }
    let strange = origins.take_strange();
    assert_eq!(strange.len(), MAX_STRANGE_FILES);
    let last = format!("http://{}.example/robots.txt", MAX_STRANGE_FILES - 1);
    assert_eq!(strange[MAX_STRANGE_FILES - 1].as_str(), last);
}

#[test]
fn kept_paces_are_read_from_copies_of_origins_not_in_memory() {
    let mut coordinator = coordinator(|_| {});
    let frontier = Arc::clone(&coordinator.frontier);
    let [http, https] =
        ["http", "https"].map(|scheme| Origin::parse(&format!("{scheme}://a.example")).unwrap());
    let paces = |robots: &super::OriginRobotsTracker, origin| {
        let paces = robots.kept_paces(at(20), origin);
        let paces = paces.unwrap().into_iter();
        paces
            .map(|(origin, pace)| (origin, pace.crawl_delay))
            .collect::<Vec<_>>()
    };
    assert_eq!(paces(&coordinator.robots, &http), []);
    let copy = copy(&https, "User-agent: *\nCrawl-delay: 5\n");
    let mut transaction = frontier.begin().unwrap();
    transaction.keep_robots(&https, &copy.to_bytes());
    transaction.commit().unwrap();
    let expected = [(https.clone(), Some(Duration::from_secs(5)))];
    assert_eq!(paces(&coordinator.robots, &http), expected);
    // The result includes the pace of `https` itself, because `https` is not in memory. A request
    // may go to such an origin if the robots.txt of another host redirects there.
    assert_eq!(paces(&coordinator.robots, &https), expected);
    coordinator.robots.meet(at(20), &https).unwrap();
    assert_eq!(paces(&coordinator.robots, &http), []);
}

#[test]
fn quick_is_a_gap_below_200_ms_or_more_than_four_at_once() {
    let check = |millis: u64, per_host: u32, quick: bool| {
        let delay = Duration::from_millis(millis);
        let all = Politeness {
            delay,
            per_host,
            ..Politeness::default()
        };
        assert_eq!(is_quick(&all), quick, "{millis} {per_host}");
        let mut one = Politeness::default();
        let terms = PolitenessOverride {
            delay: Some(delay),
            per_host: Some(per_host),
            ..PolitenessOverride::default()
        };
        one.sites.insert("a.example", terms).unwrap();
        assert_eq!(is_quick(&one), quick, "{millis} {per_host}");
    };
    check(200, 4, false);
    check(199, 4, true);
    check(200, 5, true);
}

#[test]
fn only_loopback_and_private_hosts_are_the_operators_own() {
    let check = |host: &str, address: Option<&str>, anothers: bool| {
        let host = HostKey::parse(host).unwrap();
        let address = address.map(|address| address.parse().unwrap());
        assert_eq!(may_be_anothers(&host, address), anothers, "{host}");
    };
    check("a.example", None, true);
    check("a.example", Some("10.0.0.1"), false);
    check("localhost:80", None, false);
    check("a.localhost:80", None, false);
    check("localhost:80", Some("93.184.215.14"), true);
    check("127.0.0.1:80", None, false);
    check("[::1]:80", None, false);
    check("192.168.0.1", None, false);
    check("93.184.215.14", None, true);
}

#[test]
fn an_origin_that_is_met_has_the_state_of_its_copy() {
    let origin = Origin::parse("http://a.example").unwrap();
    let unreachable = |status| RobotsCopy {
        state: RobotsRulesState::Unreachable {
            why: "status".to_owned(),
            tries: 1,
        },
        status,
        good_at: None,
        ..copy(&origin, "")
    };
    let rules = copy(&origin, "User-agent: *\nCrawl-delay: 5\n");
    let with_tdmrep = RobotsCopy {
        tdmrep: TdmReservationCopy::None,
        ..rules.clone()
    };
    let train = Some(UsagePurpose::TrainAi);
    for (name, copy, purpose, expected) in [
        ("none", None, None, None),
        ("rules", Some(&rules), None, Some("in force")),
        ("rules, no tdmrep.json yet", Some(&rules), train, None),
        (
            "rules and tdmrep.json",
            Some(&with_tdmrep),
            train,
            Some("in force"),
        ),
        (
            "answered 503",
            Some(&unreachable(Some(503))),
            None,
            Some("unreachable"),
        ),
        // Without an answer, no pause was requested, so robots.txt may be fetched at once.
        ("no answer", Some(&unreachable(None)), None, None),
    ] {
        let mut coordinator = coordinator(|config| config.purpose = purpose);
        let frontier = Arc::clone(&coordinator.frontier);
        if let Some(copy) = copy {
            let mut transaction = frontier.begin().unwrap();
            transaction.keep_robots(&origin, &copy.to_bytes());
            transaction.commit().unwrap();
        }
        let origins = &mut coordinator.robots;
        assert!(!origins.is_met(&origin));
        let state = origins.meet(at(20), &origin).unwrap();
        assert!(origins.is_met(&origin));
        let state = state.map(|state| match state {
            RobotsState::InForce { .. } => "in force",
            RobotsState::Unreachable { .. } => "unreachable",
            RobotsState::Unknown => "unknown",
        });
        assert_eq!(state, expected, "{name}");
        // The wait of the earlier run doesn't apply to a robots.txt that may be fetched at once.
        let retry_at = origins.retry_at(at(20), &origin).unwrap();
        let waits = retry_at.map(|retry_at| retry_at > at(20));
        let expected = match name {
            "answered 503" => Some(true),
            "no answer" => Some(false),
            _ => None,
        };
        assert_eq!(waits, expected, "{name}");
    }
}

#[test]
fn an_unreadable_copy_counts_as_none() {
    let mut coordinator = coordinator(|_| {});
    let frontier = Arc::clone(&coordinator.frontier);
    let origin = Origin::parse("http://a.example").unwrap();
    let mut transaction = frontier.begin().unwrap();
    transaction.keep_robots(&origin, b"no copy");
    transaction.commit().unwrap();
    let standing = coordinator.robots.standing(&origin).unwrap();
    assert!(matches!(standing, RobotsAvailability::Unknown));
}

#[test]
fn hosts_of_others_have_a_gap_of_at_least_200_ms() {
    let quick = Duration::from_millis(50);
    let own = [MIN_OTHERS_DELAY, Duration::from_secs(5)].map(Some);
    for (name, delay, own_site, host, body, expected) in [
        ("quick", quick, false, "a.example", "", own[0]),
        (
            "quick, and it asks for more",
            quick,
            false,
            "a.example",
            "Crawl-delay: 5",
            own[1],
        ),
        ("quick on the own site", quick, true, "a.example", "", None),
        ("quick at loopback", quick, false, "127.0.0.1:80", "", None),
        ("slow", MIN_OTHERS_DELAY, false, "a.example", "", None),
    ] {
        let mut coordinator = coordinator(|config| {
            config.politeness.delay = delay;
            config.own_site = own_site;
        });
        let origin = Origin::parse(&format!("http://{host}")).unwrap();
        let mut copy = copy(&origin, "");
        copy.body = format!("User-agent: *\n{body}\n").into();
        let compiled = coordinator.robots.keep(copy);
        let state = coordinator.robots.state(at(20), &compiled, None);
        let RobotsState::InForce { pace, until } = state else {
            panic!("{name}: {state:?}");
        };
        assert_eq!((pace.crawl_delay, until), (expected, at(100)), "{name}");
    }
}

#[test]
fn robots_txt_is_fetched_with_the_validators_of_its_copy() {
    let mut coordinator = coordinator(|_| {});
    let origin = Origin::parse("http://a.example").unwrap();
    let validators = Validators {
        etag: Some("\"1\"".to_owned()),
        last_modified: None,
    };
    coordinator.robots.keep(RobotsCopy {
        validators: validators.clone(),
        ..copy(&origin, "")
    });
    for (url, expected) in [
        (origin.robots_url(), validators),
        (origin.url("/moved"), Validators::default()),
    ] {
        let request = coordinator.robots.request(&origin, url);
        assert_eq!(request.unwrap().validators, expected);
    }
}

#[test]
fn a_host_is_unreachable_until_its_robots_txt_is_fetched() {
    let mut coordinator = coordinator(|_| {});
    let origin = Origin::parse("http://a.example").unwrap();
    let host = origin.host_key();
    let result = Err(failure(FailureKind::Timeout, at(20), at(21)));
    let unreachable = RobotsFetchResult::Unreachable {
        why: "timeout".to_owned(),
        status: None,
        retry_after: None,
    };
    let origins = &mut coordinator.robots;
    let learned = origins.learn(&origin, &unreachable, &result);
    assert!(matches!(
        learned.unwrap().copy.state,
        RobotsRulesState::Unreachable { .. }
    ));
    assert_eq!(
        origins.why_unreachable(&origin),
        Some("robots.txt: timeout")
    );
    let words = format!("{}: timeout", origin.robots_url());
    assert_eq!(origins.why_unreachable_host(&host), Some(words));
    assert!(origins.is_unanswered(&host));
    let request = FetchRequest::robots(origin.robots_url(), Validators::default());
    let result = answer(404, "").result(&request.url, at(30));
    let none = RobotsFetchResult::of(&request, &result, 0);
    origins.learn(&origin, &none, &result).unwrap();
    assert_eq!(origins.why_unreachable_host(&host), None);
    assert!(!origins.is_unanswered(&host));
}

#[test]
fn a_pending_fetch_is_taken_once_and_forgotten_with_its_host() {
    let origins = &mut coordinator(|_| {}).robots;
    let of = Origin::parse("http://a.example").unwrap();
    assert!(origins.take_pending_fetch(&of).is_none());
    origins.set_pending_fetch(
        &of,
        RobotsFollowUpRequest::TdmRep(of.url("/a"), TdmRepAttempt::default()),
    );
    assert_eq!(origins.pending_hop(&of), None);
    assert!(origins.take_pending_fetch(&of).is_some());
    assert!(origins.take_pending_fetch(&of).is_none());
    origins.set_pending_fetch(&of, RobotsFollowUpRequest::Hop(of.url("/a"), 1));
    assert_eq!(origins.pending_hop(&of), Some(&of.url("/a")));
    origins.forget(&of);
    assert!(!origins.is_met(&of) && origins.pending_hop(&of).is_none());
}
