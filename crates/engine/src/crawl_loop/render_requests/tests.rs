//! Tests of the requests that pages make in the browser: rules, permits and refusals.

use std::sync::Arc;

use crawl_frontier::{Reason, RequestedState, UrlKind, UrlToAdmit};
use crawl_scheduler::RobotsState;
use crawl_weburl::{CanonicalUrl, HostPatternMap, Origin, canonicalize};
use http::header::{CONTENT_TYPE, HeaderValue};
use tokio::sync::oneshot;

use super::super::fixtures::{at, context, coordinator, copy, leased, open_to_all, run_report};
use super::super::robots::RobotsStep;
use super::super::{Coordinator, DriverStep};
use super::ResourceRequestPermission;
use crate::control::StopUrgency;
use crate::crawl_totals::CrawlTotals;
use crate::messages::page_pipeline_stages::FetchedPage;
use crate::messages::render::{PageResourceRequest, PageSourceToRead, RenderId};
use crate::messages::{Effect, Event, NonPageRequestResult, RequestJob, WriterMessage};
use crate::render::{
    PageToRender, RenderConfig, RenderFuture, RenderLimits, RenderMode, Renderer, ResourceKind,
    ResourceRequest, ResourceRequestSender, UndecodedResponse,
};
use crate::simulated_crawl_tests::scripted_servers::{answer, failure};
use crawl_fetcher::{FailureKind, HostRequestHeaders};

struct NoBrowser;

impl Renderer for NoBrowser {
    fn render(&self, _page: PageToRender, _requests: ResourceRequestSender) -> RenderFuture {
        unreachable!("the driver renders")
    }
}

fn url(url: &str) -> CanonicalUrl {
    canonicalize(None, url).unwrap()
}

fn origin() -> Origin {
    Origin::parse("http://a.example").unwrap()
}

/// Creates a crawl whose only page was fetched and is being rendered.
fn rendering() -> (Coordinator, RenderId) {
    let mut coordinator = coordinator(|config| {
        config.politeness.look_ups = 3;
        config.budgets.max_bytes = Some(7);
        config.render = Some(RenderConfig {
            mode: RenderMode::On,
            renderer: Arc::new(NoBrowser),
            tabs: 1,
            all_resources: false,
            posts: false,
            limits: RenderLimits::default(),
        });
    });
    let page = url("http://a.example/");
    let lease = leased(&*coordinator.frontier, UrlToAdmit::seed(page.clone()));
    let host = page.host_key();
    coordinator.leased_url_judge.leased(&lease.origin);
    coordinator.backlog.leased();
    coordinator.backlog.page_ended();
    coordinator.hosts.budgets_mut().settled(&host, 0);
    let mut exchange = answer(200, "text").result(&page, at(20)).unwrap();
    let html = HeaderValue::from_static("text/html");
    exchange.headers.insert(CONTENT_TYPE, html);
    let page = FetchedPage {
        context: context(&lease, ""),
        scope: Arc::clone(coordinator.scope.current()),
        host: coordinator.hosts.state(&host),
        lease,
        exchange: Box::new(exchange),
        rendering: PageSourceToRead::Unneeded,
    };
    let mut out = Vec::new();
    coordinator.take_on(at(20), page, &mut out);
    let Some(Effect::Render { page, .. }) = out.pop() else {
        panic!("it is not rendered");
    };
    (coordinator, page)
}

/// Stores the rules of the page's origin, and admits another page of it.
fn know_rules(coordinator: &Coordinator) {
    let robots = copy(&origin(), "User-agent: *\nDisallow: /no/");
    let other = UrlToAdmit::link(url("http://a.example/page"), 1, url("http://a.example/"));
    let mut transaction = coordinator.frontier.begin().unwrap();
    transaction.keep_robots(&origin(), &robots.to_bytes());
    transaction.admit(other).unwrap();
    transaction.commit().unwrap();
}

type Answered = oneshot::Receiver<Option<UndecodedResponse>>;

fn ask(
    coordinator: &mut Coordinator,
    page: RenderId,
    url: &str,
    out: &mut Vec<Effect>,
) -> Answered {
    let (answer, answered) = oneshot::channel();
    let request = ResourceRequest {
        url: url.to_owned(),
        method: "GET".to_owned(),
        kind: ResourceKind::Script,
        post: None,
    };
    let wanted = Box::new(PageResourceRequest {
        page,
        request,
        answer,
    });
    coordinator.handle(at(20), Event::ResourceWanted(wanted), out);
    answered
}

/// Takes a step of the loop, and another one once addresses are looked up.
fn step(coordinator: &mut Coordinator, now: u64) -> Vec<Effect> {
    let (mut out, mut rest) = (Vec::new(), Vec::new());
    let _ = coordinator.advance(at(now), &mut out);
    for effect in out {
        match effect {
            Effect::FindAddress { permit, .. } => {
                let address = None;
                let event = Event::AddressFound { permit, address };
                coordinator.handle(at(now), event, &mut rest);
            }
            other => rest.push(other),
        }
    }
    assert_ne!(coordinator.advance(at(now), &mut rest), DriverStep::Done);
    rest
}

/// Returns the URL of the only request in `out`, and whether it is for a resource. `None` if no
/// request is sent.
fn sent(out: &[Effect]) -> Option<(&CanonicalUrl, bool)> {
    let mut jobs = out.iter().filter_map(|effect| match effect {
        Effect::Fetch { job, .. } => Some((job.url(), matches!(job, RequestJob::Render(_)))),
        _ => None,
    });
    let first = jobs.next();
    assert!(jobs.next().is_none());
    first
}

fn refused(out: &[Effect]) -> Vec<(&str, Reason)> {
    let admissions = out.iter().filter_map(|effect| match effect {
        Effect::Write(WriterMessage::Side(side)) => {
            let NonPageRequestResult { admissions, .. } = &**side;
            Some(admissions)
        }
        _ => None,
    });
    let reason = |admission: &'_ UrlToAdmit| match &admission.state {
        RequestedState::Excluded(exclusion) => exclusion.reason,
        other => panic!("{other:?}"),
    };
    let rows = admissions.flatten().map(|admission| {
        assert_eq!(admission.kind, UrlKind::Resource);
        assert_eq!(admission.via.as_ref(), Some(&url("http://a.example/")));
        (admission.url.path(), reason(admission))
    });
    rows.collect()
}

#[test]
fn robots_txt_is_fetched_before_the_first_resource_of_an_origin() {
    let (mut coordinator, page) = rendering();
    let mut out = Vec::new();
    let _answer = ask(&mut coordinator, page, "http://b.example/a.js", &mut out);
    assert!(matches!(&*out, [Effect::NoteRender(_)]));
    let out = step(&mut coordinator, 20);
    let robots = url("http://b.example/robots.txt");
    assert_eq!(sent(&out), Some((&robots, false)));
}

#[test]
fn a_resource_gets_the_next_permit_of_its_origin() {
    let (mut coordinator, page) = rendering();
    know_rules(&coordinator);
    let mut out = Vec::new();
    let mut denied = ask(&mut coordinator, page, "http://a.example/no/a.js", &mut out);
    let _answer = ask(&mut coordinator, page, "http://a.example/a.js", &mut out);
    coordinator
        .hosts
        .set_robots(at(20), &origin(), open_to_all());
    let out = step(&mut coordinator, 21);
    assert_eq!(sent(&out), Some((&url("http://a.example/a.js"), true)));
    assert_eq!(refused(&out), [("/no/a.js", Reason::Robots)]);
    assert!(denied.try_recv().unwrap().is_none());
}

#[test]
fn resources_get_permits_even_if_there_is_no_room_for_pages() {
    let (mut coordinator, page) = rendering();
    know_rules(&coordinator);
    let mut out = Vec::new();
    let _answer = ask(&mut coordinator, page, "http://a.example/a.js", &mut out);
    coordinator
        .hosts
        .set_robots(at(20), &origin(), open_to_all());
    coordinator.backlog.written(u64::from(u32::MAX), 0);
    let out = step(&mut coordinator, 21);
    assert_eq!(sent(&out), Some((&url("http://a.example/a.js"), true)));
}

#[test]
fn a_page_that_waits_for_resources_does_not_hold_up_other_pages() {
    let (mut coordinator, _) = rendering();
    know_rules(&coordinator);
    coordinator.wake_pending(at(20), &origin());
    let open = open_to_all();
    coordinator.hosts.set_robots(at(20), &origin(), open);
    // At second 600, more time has passed since the fetch of the page than a page may wait for its
    // commit.
    let out = step(&mut coordinator, 600);
    assert_eq!(sent(&out), Some((&url("http://a.example/page"), false)));
}

#[test]
fn resources_obey_exclusions_made_after_their_request() {
    let (mut coordinator, page) = rendering();
    know_rules(&coordinator);
    let mut out = Vec::new();
    let mut answer = ask(&mut coordinator, page, "http://a.example/a.js", &mut out);
    let exclude = ["a.js".to_owned()];
    coordinator
        .scope
        .set_exclusions(&[], &exclude, HostPatternMap::default())
        .unwrap();
    coordinator
        .hosts
        .set_robots(at(20), &origin(), open_to_all());
    let out = step(&mut coordinator, 21);
    assert_eq!(refused(&out), [("/a.js", Reason::Scope)]);
    assert!(answer.try_recv().unwrap().is_none());
}

#[test]
fn resources_of_names_that_rebind_are_listed() {
    let (mut coordinator, page) = rendering();
    know_rules(&coordinator);
    let mut out = Vec::new();
    let mut answer = ask(&mut coordinator, page, "http://a.example/a.js", &mut out);
    coordinator
        .hosts
        .set_robots(at(20), &origin(), open_to_all());
    let mut jobs = step(&mut coordinator, 21).into_iter();
    let request = jobs.find_map(|effect| match effect {
        Effect::Fetch {
            job: RequestJob::Render(request),
            ..
        } => Some(request),
        _ => None,
    });
    let failed = failure(FailureKind::AddressRefused, at(21), at(21));
    coordinator
        .resource_fetched(at(21), &request.unwrap(), Err(failed), &mut out)
        .unwrap();
    assert_eq!(refused(&out), [("/a.js", Reason::Address)]);
    assert!(answer.try_recv().unwrap().is_none());
}

#[test]
fn resources_that_look_like_actions_are_refused() {
    let (mut coordinator, page) = rendering();
    let config = Arc::make_mut(&mut coordinator.config);
    config.traps.skip_actions = true;
    let mut out = Vec::new();
    let mut answer = ask(&mut coordinator, page, "http://a.example/logout", &mut out);
    assert!(answer.try_recv().unwrap().is_none());
    assert_eq!(refused(&out), [("/logout", Reason::Action)]);
}

#[test]
fn resources_of_parked_hosts_and_spent_budgets_are_refused() {
    let changes: [fn(&mut Coordinator); 2] = [
        |coordinator| {
            let host = origin().host_key();
            coordinator.hosts.scheduler().park(at(20), &host);
        },
        |coordinator| {
            let totals = CrawlTotals {
                bytes: 7,
                ..CrawlTotals::default()
            };
            coordinator.report =
                run_report(1, CrawlTotals::default(), CrawlTotals::default(), totals);
        },
    ];
    for change in changes {
        let (mut coordinator, page) = rendering();
        coordinator.wake_pending(at(20), &origin());
        change(&mut coordinator);
        let mut out = Vec::new();
        let mut answer = ask(&mut coordinator, page, "http://a.example/a.js", &mut out);
        assert!(answer.try_recv().unwrap().is_none());
    }
}

#[test]
fn only_pages_of_a_site_use_its_secrets() {
    let (mut coordinator, _) = rendering();
    let config = Arc::make_mut(&mut coordinator.config);
    config.fetch.access = vec![HostRequestHeaders::new("a.example")];
    let (page, other) = (url("http://a.example/"), url("http://b.example/"));
    let script = url("http://a.example/a.js");
    assert_eq!(
        coordinator.access(&page, &script),
        ResourceRequestPermission::Own
    );
    assert_eq!(
        coordinator.access(&other, &script),
        ResourceRequestPermission::Anonymous
    );
}

#[test]
fn an_origin_without_robots_txt_needs_no_permits_any_more() {
    let (mut coordinator, page) = rendering();
    let mut out = Vec::new();
    let mut answer = ask(&mut coordinator, page, "http://b.example/a.js", &mut out);
    let waiting = |coordinator: &Coordinator| {
        let hosts = coordinator.hosts.busiest(at(20), 9);
        hosts.iter().map(|host| host.waiting).sum::<u64>()
    };
    assert_eq!(waiting(&coordinator), 1);
    let unreachable = RobotsState::Unreachable { retry_at: at(999) };
    let b = Origin::parse("http://b.example").unwrap();
    let done = RobotsStep::Done(unreachable);
    coordinator.take_robots_step(at(20), &b, done).unwrap();
    assert!(answer.try_recv().unwrap().is_none());
    assert_eq!(waiting(&coordinator), 0);
}

#[test]
fn excluded_resources_are_refused_and_listed() {
    let (mut coordinator, page) = rendering();
    let exclude = ["/excluded/".to_owned()];
    coordinator
        .scope
        .set_exclusions(&[], &exclude, HostPatternMap::default())
        .unwrap();
    let mut out = Vec::new();
    let script = "http://b.example/excluded/a.js";
    let mut answer = ask(&mut coordinator, page, script, &mut out);
    assert!(answer.try_recv().unwrap().is_none());
    assert_eq!(refused(&out), [("/excluded/a.js", Reason::Scope)]);
}

#[test]
fn a_stop_makes_pages_pending_again_that_are_being_rendered() {
    let (mut coordinator, page) = rendering();
    let mut out = Vec::new();
    let mut answer = ask(&mut coordinator, page, "http://a.example/a.js", &mut out);
    coordinator.handle(at(20), Event::Stop(StopUrgency::Drain), &mut out);
    let mut out = Vec::new();
    let _ = coordinator.advance(at(20), &mut out);
    assert_eq!(coordinator.frontier.pending(&origin()), 1);
    assert_eq!(coordinator.backlog.leases(), 0);
    assert!(answer.try_recv().is_err());
    assert!(coordinator.renders.is_empty());
}
