use std::sync::Arc;

use crawl_fetcher::robots::{MAX_HOPS, TDMREP_PATH, TdmReservationCopy};
use crawl_fetcher::{Exchange, ExchangeFailure, FailureKind, FetchRequest, Validators};
use crawl_frontier::{Frontier, MemoryFrontier, Reason, UrlToAdmit};
use crawl_policy::usage_statements::UsagePurpose;
use crawl_scheduler::RobotsState;
use crawl_scope::{Scope, ScopeMode};
use crawl_weburl::{HostPatternMap, Origin, canonicalize};

use super::super::super::fixtures::{at, config};
use super::super::super::run_scope::RunScope;
use super::super::super::worker_coordination::WorkerCoordination;
use super::super::{OriginRobotsTracker, RobotsAvailability, RobotsFollowUpRequest};
use super::{RobotsReaction, RobotsStep};
use crate::config::{Config, EmbeddedResourcePolicy};
use crate::messages::TdmRepAttempt;
use crate::simulated_crawl_tests::scripted_servers::{answer, failure, moved};

fn origin() -> Origin {
    Origin::parse("http://a.example").unwrap()
}

fn robots(change: impl FnOnce(&mut Config)) -> OriginRobotsTracker {
    let mut config = config();
    change(&mut config);
    let frontier: Arc<dyn Frontier> = Arc::new(MemoryFrontier::new());
    OriginRobotsTracker::new(&config, &frontier)
}

fn scope(excluded: Option<&str>) -> RunScope {
    let scope = Scope::new(ScopeMode::Any, &[], &[], None).unwrap();
    let mut scope = RunScope::new(scope, EmbeddedResourcePolicy::Off);
    let mut hosts = HostPatternMap::default();
    if let Some(host) = excluded {
        hosts.insert(host, ()).unwrap();
    }
    scope.set_exclusions(&[], &[], hosts).unwrap();
    scope
}

fn request() -> FetchRequest {
    FetchRequest::robots(origin().robots_url(), Validators::default())
}

/// Handles a result for the robots.txt of `origin()`, in a crawl without other workers.
fn fetched(
    robots: &mut OriginRobotsTracker,
    result: &Result<Exchange, ExchangeFailure>,
    scope: &RunScope,
) -> RobotsReaction {
    let (of, shared) = (origin(), WorkerCoordination::default());
    let fetched = (&of, &request(), 0);
    robots
        .robots_fetched(fetched, result, (scope, &shared))
        .unwrap()
}

fn is_in_force(reaction: &RobotsReaction) -> bool {
    matches!(reaction.next, RobotsStep::Done(RobotsState::InForce { .. }))
}

#[test]
fn a_redirect_is_the_next_hop_unless_its_host_is_excluded() {
    let result = moved("http://b.example/rules").result(&request().url, at(20));
    let mut states = robots(|_| {});
    let reaction = fetched(&mut states, &result, &scope(None));
    assert!(matches!(&reaction.next, RobotsStep::Hop(to) if to.host() == "b.example"));
    assert!(reaction.copy.is_none());
    let job = states.pending_job(origin(), &scope(None));
    assert_eq!(
        job.unwrap().unwrap().url().as_str(),
        "http://b.example/rules"
    );
    let mut states = robots(|_| {});
    let reaction = fetched(&mut states, &result, &scope(Some("b.example")));
    assert!(matches!(
        reaction.next,
        RobotsStep::Done(RobotsState::Unreachable { .. })
    ));
    assert!(reaction.copy.is_some() && states.why_unreachable(&origin()).is_some());
}

#[test]
fn a_pending_hop_to_a_host_that_was_excluded_since_is_dropped() {
    let mut states = robots(|_| {});
    for excluded in ["a.example", "b.example"] {
        let to = Origin::parse("http://b.example").unwrap().robots_url();
        states.set_pending_fetch(&origin(), RobotsFollowUpRequest::Hop(to, 1));
        let scope = scope(Some(excluded));
        let job = states.pending_job(origin(), &scope);
        assert!(matches!(job, Ok(None)), "{excluded}");
    }
}

#[test]
fn robots_txt_that_must_not_be_fetched_refuses_the_pages_of_its_origin() {
    let mut states = robots(|_| {});
    let result = Err(failure(FailureKind::NotArchived, at(20), at(21)));
    let reaction = fetched(&mut states, &result, &scope(None));
    assert!(is_in_force(&reaction) && reaction.copy.is_none());
    let standing = states.standing(&origin()).unwrap();
    assert!(
        matches!(standing, RobotsAvailability::Refused(why) if why.reason == Reason::NotArchived)
    );
}

#[test]
fn rules_are_written_with_the_sitemaps_that_they_name() {
    for (reads_sitemaps, body, expected) in [
        (true, "", vec!["http://a.example/sitemap.xml"]),
        (
            true,
            "Sitemap: /map\nSitemap: http://b.example/map\n",
            vec!["http://a.example/map", "http://b.example/map"],
        ),
        (false, "Sitemap: /map\n", vec![]),
    ] {
        let mut states = robots(|config| config.sitemaps = reads_sitemaps);
        let result = answer(200, body).result(&request().url, at(20));
        let reaction = fetched(&mut states, &result, &scope(None));
        assert!(is_in_force(&reaction) && reaction.copy.is_some());
        let urls = reaction.sitemaps.iter();
        let urls: Vec<_> = urls
            .map(|sitemap: &UrlToAdmit| sitemap.url.as_str())
            .collect();
        assert_eq!(urls, expected);
        assert!(reaction.unusable.is_empty());
    }
}

#[test]
fn tdmrep_json_precedes_pages_and_is_retried() {
    let mut states = robots(|config| {
        config.purpose = Some(UsagePurpose::TrainAi);
        config.retries = 2;
    });
    let (of, scope) = (origin(), scope(None));
    let result = answer(200, "User-agent: *\n").result(&request().url, at(20));
    let reaction = fetched(&mut states, &result, &scope);
    assert!(matches!(reaction.next, RobotsStep::TdmRep(Some(_))));
    assert!(reaction.copy.is_some() && reaction.sitemaps.is_empty());
    let mut timeout = failure(FailureKind::Timeout, at(20), at(21));
    timeout.retry = true;
    let failed = Err(timeout);
    let after = |failures, hop| TdmRepAttempt { failures, hop };
    for failures in 0..2 {
        let reaction = states.tdmrep_fetched(&of, after(failures, 1), &failed, &scope);
        assert!(matches!(reaction.unwrap().next, RobotsStep::TdmRep(None)));
        let pending = states.take_pending_fetch(&of);
        assert!(
            matches!(pending, Some(RobotsFollowUpRequest::TdmRep(url, attempt))
                if url == of.url(TDMREP_PATH) && attempt == after(failures + 1, 0))
        );
    }
    let reaction = states.tdmrep_fetched(&of, after(2, 0), &failed, &scope);
    assert!(is_in_force(&reaction.unwrap()));
    let held = states.load(&of).unwrap().unwrap();
    assert_eq!(held.copy.tdmrep, TdmReservationCopy::None);
    // The copy is dropped, so robots.txt must be fetched again.
    states.drop_copy(&of);
    let reaction = states.tdmrep_fetched(&of, after(2, 0), &failed, &scope);
    assert!(matches!(
        reaction.unwrap().next,
        RobotsStep::Done(RobotsState::Unknown)
    ));
}

#[test]
fn a_redirect_of_tdmrep_json_is_followed_within_the_origin_where_robots_txt_allows_it() {
    for (location, hop, is_followed) in [
        ("/policy/tdmrep.json", 0, true),
        ("/policy/tdmrep.json", MAX_HOPS, false),
        ("/private/tdmrep.json", 0, false),
        ("http://b.example/tdmrep.json", 0, false),
    ] {
        let mut states = robots(|config| config.purpose = Some(UsagePurpose::TrainAi));
        let (of, scope) = (origin(), scope(None));
        let rules = "User-agent: *\nDisallow: /private/\n";
        let result = answer(200, rules).result(&request().url, at(20));
        fetched(&mut states, &result, &scope);
        let result = moved(location).result(&of.url(TDMREP_PATH), at(21));
        let attempt = TdmRepAttempt { failures: 1, hop };
        states.take_pending_fetch(&of);
        let reaction = states
            .tdmrep_fetched(&of, attempt, &result, &scope)
            .unwrap();
        let pending = states.take_pending_fetch(&of);
        match pending {
            Some(RobotsFollowUpRequest::TdmRep(url, attempt)) => {
                assert!(is_followed && matches!(reaction.next, RobotsStep::TdmRep(None)));
                assert_eq!(url, of.url(location));
                assert_eq!(
                    attempt,
                    TdmRepAttempt {
                        failures: 1,
                        hop: 1
                    }
                );
            }
            _ => assert!(!is_followed && is_in_force(&reaction), "{location}"),
        }
    }
}

#[test]
fn the_reason_for_an_unreachable_robots_txt_names_the_target_of_its_redirect() {
    let (of, mut states) = (origin(), robots(|_| {}));
    let target = canonicalize(None, "http://b.example/rules").unwrap();
    let request = FetchRequest::robots(target.clone(), Validators::default());
    let shared = WorkerCoordination::default();
    for (status, waits) in [(429, true), (500, false)] {
        let result = answer(status, "").result(&target, at(20));
        let fetched = (&of, &request, 1);
        let reaction = states.robots_fetched(fetched, &result, (&scope(None), &shared));
        assert_eq!(reaction.unwrap().outcome.unwrap().why, None);
        let reason = format!(
            "{} answered {status}, redirected to {target}",
            of.robots_url()
        );
        let host = of.host_key();
        assert_eq!(states.why_host_waits(&host), waits.then(|| reason.clone()));
        assert_eq!(states.why_unreachable_host(&host), Some(reason));
    }
}
