use std::sync::Arc;
use std::time::Duration;

use crawl_archive::rows::RenderStatistics;
use crawl_fetcher::PostBody;
use crawl_frontier::{MemoryFrontier, UrlToAdmit};
use crawl_scope::{Scope, ScopeMode};
use crawl_weburl::{CanonicalUrl, Origin, canonicalize};
use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderValue};
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use super::super::fixtures::{at, config, context, coordinator, leased};
use super::{
    KeptAnswers, MAX_BROWSER_FAILURES, MAX_KEPT_BYTES, MAX_PAGE_WAIT, MAX_POST_BYTES, MAX_TRIES,
    MAX_VAIN, MAX_VAIN_SCRIPTS, MAX_WAITING_PAGES, QueuedPageDestination, RenderTracker,
    ResourceRequestPermission, ResourceRequestState,
};
use crate::messages::page_pipeline_stages::FetchedPage;
use crate::messages::render::{
    PageResourceRequest, PageSourceToRead, RenderId, ResourceKey, UnrenderedPageSummary,
    VisibleContentSize,
};
use crate::render::{
    PageToRender, RenderConfig, RenderFailure, RenderFuture, RenderLimits, RenderMode,
    RenderedPage, Renderer, ResourceKind, ResourceRequest, ResourceRequestSender,
    UndecodedResponse,
};
use crate::revisit::visit::PreviousVisit;
use crate::simulated_crawl_tests::scripted_servers::answer;

/// A browser for tests that render no page.
struct NoBrowser;

impl Renderer for NoBrowser {
    fn render(&self, _page: PageToRender, _requests: ResourceRequestSender) -> RenderFuture {
        unreachable!("the unit tests pass the results themselves")
    }
}

fn render_config(mode: RenderMode) -> RenderConfig {
    RenderConfig {
        mode,
        renderer: Arc::new(NoBrowser),
        tabs: 2,
        all_resources: false,
        posts: false,
        limits: RenderLimits {
            requests: 3,
            bytes: 100,
            hosts: 2,
        },
    }
}

fn renders(mode: RenderMode) -> RenderTracker {
    let mut config = config();
    config.render = Some(render_config(mode));
    RenderTracker::new(&config)
}

fn url(url: &str) -> CanonicalUrl {
    canonicalize(Some(&canonicalize(None, "http://a.example/").unwrap()), url).unwrap()
}

fn page(path: &str) -> FetchedPage {
    let url = url(path);
    let lease = leased(
        &MemoryFrontier::new(),
        UrlToAdmit::link(url.clone(), 1, url.clone()),
    );
    let mut exchange = answer(200, "<p>tea").result(&url, at(20)).unwrap();
    exchange
        .headers
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
    FetchedPage {
        context: context(&lease, ""),
        scope: Arc::new(Scope::new(ScopeMode::Any, &[], &[], None).unwrap()),
        host: coordinator(|_| {}).hosts.state(&url.host_key()),
        lease,
        exchange: Box::new(exchange),
        rendering: PageSourceToRead::Unneeded,
    }
}

/// Queues a page and opens it in the browser.
fn open(renders: &mut RenderTracker, path: &str) -> RenderId {
    renders.add(page(path), UnrenderedPageSummary::default());
    next(renders).unwrap().0
}

/// Opens the next page, if a tab is free.
fn next(renders: &mut RenderTracker) -> Option<(RenderId, CanonicalUrl)> {
    match renders.next()? {
        QueuedPageDestination::Render { page, url, .. } => Some((page, url)),
        QueuedPageDestination::Read(page) => panic!("{page:?}"),
    }
}

type Answered = oneshot::Receiver<Option<UndecodedResponse>>;

fn ask(
    renders: &mut RenderTracker,
    page: RenderId,
    url: &str,
    kind: ResourceKind,
) -> (ResourceRequestState, Answered) {
    let (answer, answered) = oneshot::channel();
    let request = ResourceRequest {
        url: url.to_owned(),
        method: "GET".to_owned(),
        kind,
        post: None,
    };
    let wanted = PageResourceRequest {
        page,
        request,
        answer,
    };
    let access = |_: &CanonicalUrl, url: &CanonicalUrl| match url.path() {
        "/barred.js" => ResourceRequestPermission::Barred,
        "/own.js" => ResourceRequestPermission::Own,
        _ => ResourceRequestPermission::Anonymous,
    };
    let url = renders.url_of(&wanted);
    (renders.wanted(at(20), wanted, url, access), answered)
}

fn script(bytes: usize) -> UndecodedResponse {
    UndecodedResponse {
        status: 200,
        headers: HeaderMap::new(),
        body: vec![b'x'; bytes].into(),
        is_own: false,
        is_private: false,
    }
}

fn key(path: &str) -> ResourceKey {
    ResourceKey {
        url: url(path),
        is_own: false,
        post: 0,
    }
}

fn rendered() -> Result<(RenderedPage, VisibleContentSize), RenderFailure> {
    let page = RenderedPage {
        dom: "<p>tea and cake".to_owned(),
        page_time: Duration::from_millis(7),
        withheld: 0,
        navigation: None,
        screenshot: None,
    };
    Ok((
        page,
        VisibleContentSize {
            letters: 0,
            links: 0,
        },
    ))
}

fn row(page: &FetchedPage) -> RenderStatistics {
    page.rendering.row().unwrap().clone()
}

#[test]
fn only_whole_html_pages_are_rendered() {
    let on = renders(RenderMode::On);
    assert!(on.choice(&page("/a")).is_none());
    let changes: [fn(&mut FetchedPage); 3] = [
        |page| page.exchange.status = 404,
        |page| page.context.is_only_checked = true,
        |page| {
            let text = HeaderValue::from_static("text/plain");
            page.exchange.headers.insert(CONTENT_TYPE, text);
        },
    ];
    for change in changes {
        let mut page = page("/a");
        change(&mut page);
        assert!(matches!(on.choice(&page), Some(PageSourceToRead::Unneeded)));
    }
    let in_auto = renders(RenderMode::Auto);
    assert!(matches!(
        in_auto.choice(&page("/a")),
        Some(PageSourceToRead::IfScripted)
    ));
    let off = RenderTracker::new(&config());
    assert!(matches!(
        off.choice(&page("/a")),
        Some(PageSourceToRead::Unneeded)
    ));
    // If a page has no type, a reader decides from its first bytes whether it is HTML.
    let mut untyped = page("/a");
    untyped.exchange.headers.remove(CONTENT_TYPE);
    assert!(matches!(
        on.choice(&untyped),
        Some(PageSourceToRead::IfHtml)
    ));
    assert!(matches!(
        in_auto.choice(&untyped),
        Some(PageSourceToRead::IfScripted)
    ));
}

#[test]
fn pages_that_were_not_rendered_at_the_last_visit_are_fetched_in_full() {
    let modes = [None, Some(RenderMode::Auto), Some(RenderMode::On)];
    for (need, expected) in [
        (r#","n":"n""#, [false, false, false]),
        ("", [false, false, true]),
        (r#","n":"s""#, [false, true, true]),
    ] {
        let past = format!(r#"{{"r":1,"p":{{"s":200,"d":"x","e":"\"1\""{need}}}}}"#);
        let past: PreviousVisit = serde_json::from_str(&past).unwrap();
        let needs_body = modes.map(|mode| match mode {
            Some(mode) => renders(mode).needs_body(&past),
            None => RenderTracker::new(&config()).needs_body(&past),
        });
        assert_eq!(needs_body, expected, "{need}");
    }
}

#[test]
fn the_tabs_limit_the_pages_in_the_browser() {
    let mut renders = renders(RenderMode::On);
    for path in ["/a", "/b", "/c"] {
        renders.add(page(path), UnrenderedPageSummary::default());
    }
    let (first, opened) = next(&mut renders).unwrap();
    assert_eq!(opened, url("/a"));
    assert!(next(&mut renders).is_some() && next(&mut renders).is_none());
    assert!(renders.rendered(first, rendered()).is_some());
    assert_eq!(next(&mut renders).unwrap().1, url("/c"));
}

#[test]
fn pages_wait_until_others_are_rendered() {
    let mut renders = renders(RenderMode::On);
    let origin = Origin::parse("http://a.example").unwrap();
    for number in 0..MAX_WAITING_PAGES {
        assert!(!renders.turns_away(&origin));
        renders.add(
            page(&format!("/{number}")),
            UnrenderedPageSummary::default(),
        );
    }
    assert!(renders.turns_away(&origin));
    assert!(renders.take_turned_away().is_empty());
    renders.next().unwrap();
    assert_eq!(
        renders.take_turned_away().into_iter().collect::<Vec<_>>(),
        [origin]
    );
}

#[test]
fn a_resource_is_requested_once_for_all_pages() {
    let mut renders = renders(RenderMode::On);
    let (one, two) = (open(&mut renders, "/1"), open(&mut renders, "/2"));
    let origin = Origin::parse("http://a.example").unwrap();
    let (first, mut first_answer) = ask(&mut renders, one, "/app.js", ResourceKind::Script);
    let (second, mut second_answer) = ask(&mut renders, two, "/app.js", ResourceKind::Script);
    assert_eq!(
        (first, second),
        (
            ResourceRequestState::Waits(origin.clone()),
            ResourceRequestState::Done
        )
    );
    assert_eq!(renders.waiting_at(&origin), 1);
    let request = renders.next_at(&origin).unwrap();
    assert_eq!(
        (&request.key.url, &request.page),
        (&url("/app.js"), &url("/1"))
    );
    assert!(renders.next_at(&origin).is_none());
    assert!(matches!(first_answer.try_recv(), Err(TryRecvError::Empty)));
    renders.answered(&request.key, &script(40));
    for answer in [&mut first_answer, &mut second_answer] {
        assert_eq!(answer.try_recv().unwrap().unwrap().body.len(), 40);
    }
    // Later pages get the same answer, without a request.
    let (third, mut third_answer) = ask(&mut renders, two, "/app.js", ResourceKind::Script);
    assert_eq!(third, ResourceRequestState::Done);
    assert!(third_answer.try_recv().unwrap().is_some());
    let page = renders.rendered(one, rendered()).unwrap();
    assert_eq!(
        (row(&page).requests, row(&page).refused, row(&page).bytes),
        (1, 0, 40)
    );
    let page = renders.rendered(two, rendered()).unwrap();
    assert_eq!((row(&page).requests, row(&page).bytes), (2, 0));
    assert_eq!(row(&page).page_ms, Some(7));
    assert!(row(&page).dom_digest.is_some());
    assert_eq!(page.rendering.dom(), Some("<p>tea and cake"));
}

#[test]
fn resources_beyond_the_rules_of_a_page_are_refused() {
    let mut renders = renders(RenderMode::On);
    let id = open(&mut renders, "/1");
    let refused = [
        ("/picture.png", ResourceKind::Media),
        ("/beacon", ResourceKind::Report),
        ("ftp://a.example/x", ResourceKind::Data),
        ("/barred.js", ResourceKind::Script),
    ];
    for (url, kind) in refused {
        let (wanted, mut answer) = ask(&mut renders, id, url, kind);
        assert_eq!(wanted, ResourceRequestState::Done);
        assert!(answer.try_recv().unwrap().is_none(), "{url}");
    }
    let (wanted, mut answer) = ask(&mut renders, RenderId(77), "/a.js", ResourceKind::Script);
    assert_eq!(wanted, ResourceRequestState::Done);
    assert!(answer.try_recv().unwrap().is_none());
    // A fifth request is more than a page may send.
    let (wanted, _) = ask(&mut renders, id, "/a.js", ResourceKind::Script);
    assert_eq!(wanted, ResourceRequestState::Done);
    let page = renders.rendered(id, rendered()).unwrap();
    assert_eq!((row(&page).requests, row(&page).refused), (5, 5));
}

#[test]
fn a_page_requests_resources_of_few_hosts() {
    let mut renders = renders(RenderMode::On);
    let id = open(&mut renders, "/1");
    for (host, is_asked) in [("b", true), ("c", true), ("d", false)] {
        let script = format!("http://{host}.example/a.js");
        let (wanted, _answer) = ask(&mut renders, id, &script, ResourceKind::Script);
        assert_eq!(wanted != ResourceRequestState::Done, is_asked, "{host}");
    }
}

#[test]
fn a_failed_request_is_retried() {
    let mut renders = renders(RenderMode::On);
    let id = open(&mut renders, "/1");
    let origin = Origin::parse("http://a.example").unwrap();
    let (_, mut answer) = ask(&mut renders, id, "/a.js", ResourceKind::Script);
    let request = renders.next_at(&origin).unwrap();
    // A request that the crawl itself gave up does not count.
    assert!(renders.failed(&request.key, false, false).is_some());
    assert!(renders.next_at(&origin).is_some());
    assert!(renders.failed(&request.key, true, true).is_some());
    assert!(renders.next_at(&origin).is_some());
    assert!(renders.failed(&request.key, true, true).is_none());
    assert!(answer.try_recv().unwrap().is_none());
    assert_eq!(renders.waiting_at(&origin), 0);
}

#[test]
fn resources_that_no_page_waits_for_are_not_requested() {
    let mut renders = renders(RenderMode::On);
    let id = open(&mut renders, "/1");
    let origin = Origin::parse("http://a.example").unwrap();
    let (_, answer) = ask(&mut renders, id, "/a.js", ResourceKind::Script);
    drop(answer);
    assert!(renders.next_at(&origin).is_none());
    assert!(renders.hosts_waited_for().is_empty());
}

#[test]
fn resources_wait_a_limited_time() {
    let mut renders = renders(RenderMode::On);
    assert_eq!(renders.next_deadline(), None);
    let id = open(&mut renders, "/1");
    let origin = Origin::parse("http://a.example").unwrap();
    let (_, mut answer) = ask(&mut renders, id, "/a.js", ResourceKind::Script);
    let deadline = at(20) + MAX_PAGE_WAIT;
    assert_eq!(renders.next_deadline(), Some(deadline));
    assert!(renders.expire(at(21)).is_empty());
    assert_eq!(renders.waiting_at(&origin), 1);
    assert!(renders.expire(deadline).contains(&origin));
    assert!(answer.try_recv().unwrap().is_none());
    assert_eq!(renders.waiting_at(&origin), 0);
}

/// Describes a page whose scripts differ from those of pages with another number.
fn shell(scripts: u64) -> UnrenderedPageSummary {
    UnrenderedPageSummary {
        scripts,
        ..UnrenderedPageSummary::default()
    }
}

/// Queues a page that shows no more when rendered than as sent, and renders it. Returns `None` if
/// it is read as sent instead, because rendering similar pages was useless.
fn render_in_vain(renders: &mut RenderTracker, path: &str, scripts: u64) -> Option<()> {
    renders.add(page(path), shell(scripts));
    match renders.next().unwrap() {
        QueuedPageDestination::Render { page, .. } => {
            renders.rendered(page, rendered()).map(|_| ())
        }
        QueuedPageDestination::Read(page) => {
            assert!(matches!(page.rendering, PageSourceToRead::Skipped));
            None
        }
    }
}

#[test]
fn shapes_that_rendering_adds_nothing_to_are_read_as_sent() {
    let mut renders = renders(RenderMode::Auto);
    for number in 0..MAX_VAIN {
        let path = format!("/blog/{number}");
        assert!(render_in_vain(&mut renders, &path, 1).is_some());
    }
    assert!(render_in_vain(&mut renders, "/blog/7", 1).is_none());
    // Pages with other scripts or another URL shape are still rendered.
    assert!(render_in_vain(&mut renders, "/blog/7", 2).is_some());
    assert!(render_in_vain(&mut renders, "/shop", 1).is_some());
}

#[test]
fn pages_that_waited_are_not_rendered_either() {
    let mut renders = renders(RenderMode::Auto);
    for number in 0..=MAX_VAIN {
        renders.add(page(&format!("/blog/{number}")), shell(1));
    }
    for _ in 0..MAX_VAIN {
        let (page, _) = next(&mut renders).unwrap();
        renders.rendered(page, rendered()).unwrap();
    }
    assert!(matches!(
        renders.next(),
        Some(QueuedPageDestination::Read(_))
    ));
}

#[test]
fn scripts_that_never_add_anything_are_not_run() {
    let mut renders = renders(RenderMode::Auto);
    for number in 0..MAX_VAIN_SCRIPTS {
        // The name of each folder gives its URL a different shape.
        let path = format!("/{}/7", "x".repeat(number as usize + 1));
        assert!(render_in_vain(&mut renders, &path, 1).is_some());
    }
    assert!(render_in_vain(&mut renders, "/new/7", 1).is_none());
    assert!(render_in_vain(&mut renders, "/new/7", 2).is_some());
    // With `on`, all pages are rendered.
    renders.rules.as_mut().unwrap().mode = RenderMode::On;
    assert!(render_in_vain(&mut renders, "/new/7", 1).is_some());
}

#[test]
fn scripts_that_once_added_something_are_judged_by_shape() {
    let mut renders = renders(RenderMode::Auto);
    renders.add(page("/app"), shell(1));
    let (page, _) = next(&mut renders).unwrap();
    let (dom, mut size) = rendered().unwrap();
    size.letters = 1_000;
    renders.rendered(page, Ok((dom, size))).unwrap();
    for number in 0..=MAX_VAIN_SCRIPTS {
        let path = format!("/{}/7", "x".repeat(number as usize + 1));
        assert!(render_in_vain(&mut renders, &path, 1).is_some());
    }
}

/// Renders a page that shows no more than as sent, and answers its request for data with this
/// status. Returns `false` if the page is read as sent instead.
fn render_with_data(renders: &mut RenderTracker, number: u32, status: u16) -> bool {
    renders.add(page(&format!("/item/{number}")), shell(1));
    let QueuedPageDestination::Render { page, .. } = renders.next().unwrap() else {
        return false;
    };
    let data = UndecodedResponse {
        status,
        ..script(3)
    };
    let _waiting = ask(renders, page, "/api", ResourceKind::Data);
    let origin = Origin::parse("http://a.example").unwrap();
    while let Some(request) = renders.next_at(&origin) {
        renders.answered(&request.key, &data);
    }
    renders.rendered(page, rendered()).is_some()
}

#[test]
fn renderings_without_their_data_count_less_for_similar_pages() {
    for (status, rendered_pages) in [
        (200, MAX_VAIN),
        (404, MAX_VAIN_SCRIPTS),
        (503, 2 * MAX_VAIN_SCRIPTS),
    ] {
        let mut renders = renders(RenderMode::Auto);
        let numbers = 0..2 * MAX_VAIN_SCRIPTS;
        let was_rendered = numbers.filter(|number| render_with_data(&mut renders, *number, status));
        assert_eq!(was_rendered.count() as u32, rendered_pages, "{status}");
    }
    // The crawl's own rules refuse the pages' requests for data.
    let mut renders = renders(RenderMode::Auto);
    for number in 0..=MAX_VAIN {
        renders.add(page(&format!("/item/{number}")), shell(1));
        let (page, _) = next(&mut renders).unwrap();
        let _refused = ask(&mut renders, page, "/barred.js", ResourceKind::Data);
        renders.rendered(page, rendered()).unwrap();
    }
    // Beacons are never sent, so they don't matter.
    for number in 0..MAX_VAIN {
        renders.add(page(&format!("/note/{number}")), shell(2));
        let (page, _) = next(&mut renders).unwrap();
        let _refused = ask(&mut renders, page, "/count", ResourceKind::Report);
        renders.rendered(page, rendered()).unwrap();
    }
    assert!(render_in_vain(&mut renders, "/note/7", 2).is_none());
}

fn crash() -> Result<(RenderedPage, VisibleContentSize), RenderFailure> {
    Err(RenderFailure {
        name: "browser_crashed",
        detail: String::new(),
        is_browsers: true,
    })
}

#[test]
fn a_browser_that_keeps_failing_is_not_used_any_more() {
    let mut renders = renders(RenderMode::On);
    for number in 0..MAX_BROWSER_FAILURES {
        let id = open(&mut renders, &format!("/{number}"));
        let page = renders.rendered(id, crash()).unwrap();
        assert_eq!(row(&page).error.as_deref(), Some("browser_crashed"));
        assert_eq!(page.rendering.dom(), None);
    }
    // Rows of later pages name the failure too.
    renders.add(page("/7"), UnrenderedPageSummary::default());
    let Some(QueuedPageDestination::Read(page)) = renders.next() else {
        panic!("it is rendered");
    };
    assert_eq!(row(&page).error.as_deref(), Some("browser_crashed"));
}

#[test]
fn pages_that_were_open_together_share_a_failure() {
    let mut renders = renders(RenderMode::On);
    for _ in 1..MAX_BROWSER_FAILURES {
        let both = [open(&mut renders, "/1"), open(&mut renders, "/2")];
        for id in both {
            renders.rendered(id, crash()).unwrap();
        }
    }
    assert_eq!(renders.ended, None);
    // A page that was rendered shows that the browser works.
    let id = open(&mut renders, "/1");
    renders.rendered(id, rendered()).unwrap();
    let id = open(&mut renders, "/1");
    renders.rendered(id, crash()).unwrap();
    assert_eq!(renders.ended, None);
}

#[test]
fn requests_that_the_browser_refused_are_counted() {
    let mut renders = renders(RenderMode::On);
    let id = open(&mut renders, "/1");
    let (mut dom, size) = rendered().unwrap();
    dom.withheld = 5;
    let page = renders.rendered(id, Ok((dom, size))).unwrap();
    assert_eq!((row(&page).requests, row(&page).refused), (5, 5));
}

#[test]
fn the_end_of_a_run_gives_all_pages_back() {
    let mut renders = renders(RenderMode::On);
    let id = open(&mut renders, "/1");
    renders.add(page("/2"), UnrenderedPageSummary::default());
    let (_, mut answer) = ask(&mut renders, id, "/a.js", ResourceKind::Script);
    assert_eq!(renders.give_up().len(), 2);
    assert!(renders.is_empty());
    assert!(matches!(answer.try_recv(), Err(TryRecvError::Closed)));
    assert!(renders.rendered(id, rendered()).is_none());
}

#[test]
fn kept_answers_have_a_limit() {
    let mut kept = KeptAnswers::default();
    let half = usize::try_from(MAX_KEPT_BYTES / 2).unwrap();
    for (name, bytes) in [("/1", half), ("/2", half), ("/3", 1)] {
        kept.keep(&key(name), &script(bytes));
    }
    assert!(kept.get(&key("/1")).is_none());
    assert!(kept.get(&key("/2")).is_some() && kept.get(&key("/3")).is_some());
    assert!(kept.bytes <= MAX_KEPT_BYTES);
}

/// Makes a page request a POST to `to` with a body of this size. Returns the state of the request,
/// and the receiver of its answer.
fn post(
    renders: &mut RenderTracker,
    page: RenderId,
    to: &str,
    bytes: usize,
) -> (ResourceRequestState, Answered) {
    let (answer, answered) = oneshot::channel();
    let request = ResourceRequest {
        url: to.to_owned(),
        method: "POST".to_owned(),
        kind: ResourceKind::Data,
        post: Some(PostBody {
            content_type: Some(HeaderValue::from_static("application/json")),
            bytes: vec![b'x'; bytes].into(),
        }),
    };
    let wanted = PageResourceRequest {
        page,
        request,
        answer,
    };
    let url = renders.url_of(&wanted);
    let waits = renders.wanted(at(20), wanted, url, |_, _| {
        ResourceRequestPermission::Anonymous
    });
    (waits, answered)
}

/// Returns a crawl's pages, which may send POST requests, and one page that is open.
fn posting() -> (RenderTracker, RenderId) {
    let mut config = config();
    config.render = Some(RenderConfig {
        posts: true,
        limits: RenderLimits::default(),
        ..render_config(RenderMode::On)
    });
    let mut renders = RenderTracker::new(&config);
    let page = open(&mut renders, "/");
    (renders, page)
}

#[test]
fn only_posts_to_the_origin_of_the_page_are_sent_if_switched_on() {
    let origin = Origin::parse("http://a.example").unwrap();
    let mut off = renders(RenderMode::On);
    let page = open(&mut off, "/");
    assert_eq!(
        post(&mut off, page, "/search", 3).0,
        ResourceRequestState::Done
    );
    let (mut renders, page) = posting();
    for (to, bytes) in [
        ("http://b.example/search", 3),
        ("https://a.example/search", 3),
        ("http://a.example:81/search", 3),
        ("/search", MAX_POST_BYTES + 1),
    ] {
        let (waits, mut answered) = post(&mut renders, page, to, bytes);
        assert_eq!(waits, ResourceRequestState::Done, "{to}");
        assert!(answered.try_recv().unwrap().is_none(), "{to}");
    }
    let (waits, _answered) = post(&mut renders, page, "/search", MAX_POST_BYTES);
    assert_eq!(waits, ResourceRequestState::Waits(origin.clone()));
    let sent = renders.next_at(&origin).unwrap().fetch();
    assert_eq!(sent.post.unwrap().bytes.len(), MAX_POST_BYTES);
}

#[test]
fn posts_are_never_shared_kept_or_repeated() {
    let origin = Origin::parse("http://a.example").unwrap();
    let (mut renders, page) = posting();
    let (_, mut first) = post(&mut renders, page, "/search", 3);
    let (_, mut second) = post(&mut renders, page, "/search", 3);
    let (one, two) = (renders.next_at(&origin), renders.next_at(&origin));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_ne!(one.key, two.key);
    // If this error answered a GET, the request would be sent again.
    let error = UndecodedResponse {
        status: 503,
        ..script(3)
    };
    assert_eq!(renders.answered(&one.key, &error), None);
    assert_eq!(first.try_recv().unwrap().unwrap().status, 503);
    assert_eq!(renders.failed(&two.key, true, false), None);
    assert!(second.try_recv().unwrap().is_none());
    let (waits, _answered) = post(&mut renders, page, "/search", 3);
    assert_eq!(waits, ResourceRequestState::Waits(origin.clone()));
    let third = renders.next_at(&origin).unwrap();
    renders.answered(&third.key, &script(3));
    let other = open(&mut renders, "/other");
    for _ in 0..2 {
        let (waits, _) = post(&mut renders, other, "/search", 3);
        assert_eq!(waits, ResourceRequestState::Waits(origin.clone()));
    }
}

#[test]
fn answers_to_requests_with_secrets_are_not_shared_with_other_pages() {
    let mut renders = renders(RenderMode::On);
    let (one, two) = (open(&mut renders, "/1"), open(&mut renders, "/2"));
    let origin = Origin::parse("http://a.example").unwrap();
    let (_, mut own) = ask(&mut renders, one, "/own.js", ResourceKind::Data);
    let request = renders.next_at(&origin).unwrap();
    assert!(request.key.is_own && !request.fetch().is_anonymous);
    renders.answered(&request.key, &script(3));
    assert!(own.try_recv().unwrap().is_some());
    // Request the same URL from a page that must not use the operator's header fields and the
    // site's session.
    let (answer, mut answered) = oneshot::channel();
    let request = ResourceRequest {
        url: "/own.js".to_owned(),
        method: "GET".to_owned(),
        kind: ResourceKind::Data,
        post: None,
    };
    let wanted = PageResourceRequest {
        page: two,
        request,
        answer,
    };
    let url = renders.url_of(&wanted);
    let waits = renders.wanted(at(20), wanted, url, |_, _| {
        ResourceRequestPermission::Anonymous
    });
    assert_eq!(waits, ResourceRequestState::Waits(origin.clone()));
    assert!(matches!(answered.try_recv(), Err(TryRecvError::Empty)));
    assert!(renders.next_at(&origin).unwrap().fetch().is_anonymous);
}

#[test]
fn a_page_from_a_public_address_gets_nothing_from_a_private_one() {
    for (address, is_given) in [("1.1.1.1:80", false), ("10.0.0.1:80", true)] {
        let mut renders = renders(RenderMode::On);
        let mut page = page("/1");
        page.exchange.address = Some(address.parse().unwrap());
        renders.add(page, UnrenderedPageSummary::default());
        let id = next(&mut renders).unwrap().0;
        let origin = Origin::parse("http://a.example").unwrap();
        let (_, mut answer) = ask(&mut renders, id, "/a.js", ResourceKind::Data);
        let request = renders.next_at(&origin).unwrap();
        let private = UndecodedResponse {
            is_private: true,
            ..script(3)
        };
        renders.answered(&request.key, &private);
        assert_eq!(answer.try_recv().unwrap().is_some(), is_given);
    }
}

#[test]
fn parallel_requests_stay_in_the_bytes_of_the_page() {
    let mut renders = renders(RenderMode::On);
    let id = open(&mut renders, "/1");
    let origin = Origin::parse("http://a.example").unwrap();
    let (_, mut first) = ask(&mut renders, id, "/1.js", ResourceKind::Script);
    let (_, mut second) = ask(&mut renders, id, "/2.js", ResourceKind::Script);
    let request = renders.next_at(&origin).unwrap();
    renders.answered(&request.key, &script(100));
    assert!(first.try_recv().unwrap().is_some());
    assert!(renders.next_at(&origin).is_none());
    assert!(second.try_recv().unwrap().is_none());
}

#[test]
fn errors_are_tried_again_and_not_kept() {
    let mut renders = renders(RenderMode::On);
    let id = open(&mut renders, "/1");
    let origin = Origin::parse("http://a.example").unwrap();
    let (_, mut answer) = ask(&mut renders, id, "/a.js", ResourceKind::Script);
    let busy = UndecodedResponse {
        status: 503,
        ..script(3)
    };
    for attempt in 1..=MAX_TRIES {
        let request = renders.next_at(&origin).unwrap();
        let again = renders.answered(&request.key, &busy);
        assert_eq!(again.is_some(), attempt < MAX_TRIES);
    }
    assert_eq!(answer.try_recv().unwrap().unwrap().status, 503);
    let (waits, _) = ask(&mut renders, id, "/a.js", ResourceKind::Script);
    assert_eq!(waits, ResourceRequestState::Waits(origin));
}
