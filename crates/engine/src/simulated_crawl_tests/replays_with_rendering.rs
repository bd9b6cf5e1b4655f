//! Tests that replay crawls whose pages scripts build, with a scripted browser.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use crawl_archive::RowReader;
use crawl_archive::rows::{PageRow, RenderStatistics, RequestRow};
use crawl_scheduler::Tick;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, JoinSet, yield_now};

use super::replays::{ReplayTestSettings, crawl_by, requests};
use crate::config::Config;
use crate::messages::Event;
use crate::messages::render::{PageResourceRequest, RenderId, VisibleContentSize};
use crate::render::{
    NoBrowserRenderer, PageToRender, RenderConfig, RenderFailure, RenderFuture, RenderLimits,
    RenderMode, RenderedPage, Renderer, ResourceAnswer, ResourceKind, ResourceRequest,
    ResourceRequestSender, UndecodedResponse,
};
use crate::replay::{RecordedCrawl, ReplayResult, ReplayTimingMode, RerenderResult, replay};

/// A browser that understands `src=URL` in pages and `then=URL` in scripts. The DOM contains the
/// scripts' text in the order of the answers. Every page whose URL ends with 9 takes too long.
struct ScriptedBrowser {
    /// The URL of a further resource that each page requests. Empty if there is none.
    extra: &'static str,
}

impl Renderer for ScriptedBrowser {
    fn render(&self, page: PageToRender, requests: ResourceRequestSender) -> RenderFuture {
        let extra = self.extra;
        Box::pin(async move { run_page(&page, &requests, extra).await })
    }
}

/// Returns the URLs after each `name=`.
fn urls<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = String> {
    let parts = text.split(name).skip(1);
    parts.map(|part| {
        let end = part.find(['>', ' ', '<']).unwrap_or(part.len());
        part[..end].to_owned()
    })
}

async fn run_page(
    page: &PageToRender,
    requests: &ResourceRequestSender,
    extra: &str,
) -> Result<RenderedPage, RenderFailure> {
    let body = String::from_utf8_lossy(&page.body).into_owned();
    let mut waiting = JoinSet::new();
    let ask = |waiting: &mut JoinSet<ResourceAnswer>, url: String| {
        let requests = requests.clone();
        let request = ResourceRequest {
            url,
            method: "GET".to_owned(),
            kind: ResourceKind::Script,
            post: None,
        };
        waiting.spawn(async move { requests.request(request).await });
    };
    let also = Some(extra.to_owned()).filter(|url| !url.is_empty());
    for url in urls(&body, "src=").chain(also) {
        ask(&mut waiting, url);
    }
    let fetched = page.time.duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let mut dom = format!("<title>{fetched}</title>");
    while let Some(answer) = waiting.join_next().await {
        match answer.unwrap() {
            ResourceAnswer::Answered { status, body, .. } => {
                let text = String::from_utf8_lossy(&body).into_owned();
                for url in urls(&text, "then=") {
                    ask(&mut waiting, url);
                }
                dom += &format!("<p>{status}</p>{text}");
            }
            ResourceAnswer::Refused => dom += "<p>refused</p>",
        }
        if page.url.ends_with('9') {
            return Err(RenderFailure::recorded("render_timeout"));
        }
    }
    Ok(RenderedPage {
        dom,
        page_time: Duration::from_millis(7),
        withheld: 0,
        navigation: Some("/p0?moved".to_owned()).filter(|_| page.url.ends_with('7')),
        screenshot: None,
    })
}

fn with_renderer(mode: RenderMode, renderer: impl Renderer + 'static) -> RenderConfig {
    RenderConfig {
        mode,
        renderer: Arc::new(renderer),
        tabs: 3,
        all_resources: false,
        posts: false,
        limits: RenderLimits::default(),
    }
}

pub(super) fn render_config(mode: RenderMode) -> RenderConfig {
    with_renderer(mode, ScriptedBrowser { extra: "" })
}

type Rendered = Result<RenderedPage, RenderFailure>;

/// The browser of a simulated crawl, which works between the events of the crawl loop.
pub(super) struct SimulatedBrowser {
    renderer: Option<Arc<dyn Renderer>>,
    runtime: Runtime,
    open: BTreeMap<RenderId, JoinHandle<Rendered>>,
    wanted: Arc<Mutex<Vec<PageResourceRequest>>>,
}

impl SimulatedBrowser {
    pub(super) fn new(config: &Config) -> SimulatedBrowser {
        SimulatedBrowser {
            renderer: config.render.as_ref().map(|it| Arc::clone(&it.renderer)),
            runtime: Builder::new_current_thread().build().unwrap(),
            open: BTreeMap::new(),
            wanted: Arc::default(),
        }
    }

    pub(super) fn open(
        &mut self,
        id: RenderId,
        url: String,
        fetched: Tick,
        answer: UndecodedResponse,
    ) {
        let wanted = Arc::clone(&self.wanted);
        let requests = ResourceRequestSender(Arc::new(move |request, answer| {
            wanted.lock().unwrap().push(PageResourceRequest {
                page: id,
                request,
                answer,
            });
        }));
        let page = PageToRender::of(url, fetched, answer);
        let rendering = self.renderer.as_ref().unwrap().render(page, requests);
        self.open.insert(id, self.runtime.spawn(rendering));
    }

    /// Runs the pages until they wait for answers. Returns the events for the crawl loop.
    pub(super) fn advance(&mut self) -> Vec<Event> {
        self.runtime.block_on(async {
            for _ in 0..40 {
                yield_now().await;
            }
        });
        let wanted = std::mem::take(&mut *self.wanted.lock().unwrap());
        let wanted = wanted.into_iter();
        let mut events: Vec<_> = wanted
            .map(|wanted| Event::ResourceWanted(Box::new(wanted)))
            .collect();
        let over = self.open.iter().filter(|(_, page)| page.is_finished());
        let over: Vec<_> = over.map(|(id, _)| *id).collect();
        for page in over {
            let rendered = self.open.remove(&page).unwrap();
            let rendered = self.runtime.block_on(rendered).unwrap();
            let result = rendered.map(|page| {
                let size = VisibleContentSize::of_dom(&page.dom);
                (page, size)
            });
            events.push(Event::Rendered { page, result });
        }
        events
    }
}

fn pages(config: &Config) -> Vec<PageRow> {
    let path = config.output.join("pages.jsonl");
    let rows = RowReader::<PageRow>::open(&path, None).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Crawls into a new folder. Returns the folder and the configuration.
fn crawled(mut course: ReplayTestSettings, mode: RenderMode) -> (tempfile::TempDir, Config) {
    let dir = tempfile::tempdir().unwrap();
    course.render = Some(mode);
    let config = crawl_by(dir.path(), course);
    (dir, config)
}

fn course(seed: u64) -> ReplayTestSettings {
    ReplayTestSettings {
        seed,
        kills: 0,
        rounds: 1,
        commands: Vec::new,
        stop_after: None,
        render: None,
    }
}

/// Replays a crawl into another folder.
fn replayed(
    config: &Config,
    name: &str,
    timing: ReplayTimingMode,
    change: impl FnOnce(&mut Config),
) -> (ReplayResult, Config) {
    let recorded = RecordedCrawl::open(&config.output).unwrap();
    let mut again = config.clone();
    again.output = config.output.with_file_name(name);
    change(&mut again);
    (replay(again.clone(), recorded, timing).unwrap(), again)
}

/// Returns the parts of request rows that a replay must repeat.
fn sent(config: &Config) -> Vec<(String, String, String, u64)> {
    let row = |row: RequestRow| {
        let answer = row.answer();
        (row.url, row.purpose, answer, row.end)
    };
    requests(&config.output).into_iter().map(row).collect()
}

/// Returns the parts of page rows that depend on rendering. A replay archives nothing.
fn shown(config: &Config) -> Vec<(String, Option<String>, Option<RenderStatistics>)> {
    let row = |row: PageRow| {
        let render = row.render.map(|render| RenderStatistics {
            dom_after: None,
            ..render
        });
        (row.url, row.title, render)
    };
    pages(config).into_iter().map(row).collect()
}

fn with_dom(config: &Config) -> u64 {
    let pages = pages(config).into_iter();
    let rendered = pages.filter_map(|page| page.render?.dom_digest);
    rendered.count() as u64
}

/// Replays a crawl with its own settings, and compares everything.
fn check(course: ReplayTestSettings, mode: RenderMode) {
    let (_dir, config) = crawled(course, mode);
    let label = format!("seed {}", course.seed);
    let (first, again) = replayed(&config, "again", ReplayTimingMode::AsRecorded, |_| {});
    assert_eq!(first.difference, None, "{label}");
    assert_eq!(sent(&again), sent(&config), "{label}");
    assert_eq!(shown(&again), shown(&config), "{label}");
    let rendered = &first.rendered;
    assert_eq!(rendered.differences, [], "{label}");
    assert_eq!(rendered.same, with_dom(&config), "{label}");
    assert!(rendered.same > 10, "{label}: {rendered:?}");
}

#[test]
fn a_replay_repeats_a_crawl_that_renders() {
    for (seed, mode) in [
        (0, RenderMode::On),
        (1, RenderMode::On),
        (4, RenderMode::Auto),
    ] {
        check(course(seed), mode);
    }
}

#[test]
fn a_replay_repeats_runs_that_were_killed_or_stopped_while_pages_were_rendered() {
    for seed in 20..23 {
        let course = ReplayTestSettings {
            kills: 1 + seed % 3,
            rounds: 1 + u32::from(seed % 3 == 0),
            stop_after: Some(100 + 30 * seed).filter(|_| seed % 2 == 0),
            ..course(seed)
        };
        check(course, RenderMode::On);
    }
}

#[test]
fn without_a_browser_the_archived_pages_are_read() {
    let (_dir, config) = crawled(course(40), RenderMode::Auto);
    let (found, again) = replayed(&config, "again", ReplayTimingMode::AsRecorded, |config| {
        let why = "there is none".to_owned();
        config.render = Some(with_renderer(RenderMode::Auto, NoBrowserRenderer { why }));
    });
    assert_eq!(found.difference, None);
    assert_eq!(sent(&again), sent(&config));
    assert_eq!(shown(&again), shown(&config));
    let expected = RerenderResult {
        from_archive: with_dom(&config),
        no_browser: Some("there is none".to_owned()),
        ..RerenderResult::default()
    };
    assert_eq!(found.rendered, expected);
}

#[test]
fn pages_that_request_something_else_are_named_and_do_not_change_the_order() {
    let (_dir, config) = crawled(course(41), RenderMode::On);
    let (found, again) = replayed(&config, "again", ReplayTimingMode::AsRecorded, |config| {
        let browser = ScriptedBrowser { extra: "/unknown" };
        config.render = Some(with_renderer(RenderMode::On, browser));
    });
    assert_eq!(found.difference, None);
    assert_eq!(sent(&again), sent(&config));
    assert_eq!(shown(&again), shown(&config));
    let rendered = found.rendered;
    assert_eq!((rendered.same, rendered.different), (0, with_dom(&config)));
    for difference in &rendered.differences {
        let requested = difference.requested.as_deref().unwrap();
        assert!(requested.ends_with(".example/unknown"), "{difference:?}");
        assert_ne!(
            difference.again.as_deref(),
            Ok(difference.recorded.as_str())
        );
    }
}

#[test]
fn other_settings_give_other_pages_and_always_the_same() {
    let (_dir, config) = crawled(course(42), RenderMode::On);
    let change = |config: &mut Config| {
        config.scope.exclude = vec!["/data/1".to_owned()];
        let browser = ScriptedBrowser { extra: "/unknown" };
        config.render = Some(with_renderer(RenderMode::On, browser));
    };
    let (first, one) = replayed(&config, "one", ReplayTimingMode::ByPolicy, change);
    let (second, other) = replayed(&config, "other", ReplayTimingMode::ByPolicy, change);
    assert_eq!(sent(&one), sent(&other));
    assert_eq!(shown(&one), shown(&other));
    assert_eq!(first.gaps, second.gaps);
    let sent = sent(&one);
    let unknown = sent.iter().filter(|row| row.0.ends_with("/unknown"));
    let unknown: Vec<_> = unknown
        .map(|row| (row.1.as_str(), row.2.as_str()))
        .collect();
    assert!(!unknown.is_empty());
    assert!(unknown.iter().all(|row| *row == ("render", "not_archived")));
    assert!(!sent.iter().any(|row| row.0.ends_with("/data/1")));
    // Other data is still requested, because other scripts need it.
    assert!(sent.iter().any(|row| row.0.ends_with("/data/2")));
    assert!(first.gaps.not_archived >= unknown.len() as u64);
}

#[test]
fn an_order_without_rendered_pages_is_decided_again() {
    let (_dir, config) = crawled(course(43), RenderMode::On);
    let log = config.output.join("state/order.jsonl");
    let rows = std::fs::read_to_string(&log).unwrap();
    let kept = rows.lines().filter(|row| !row.starts_with("{\"render\""));
    let old: Vec<_> = kept
        .map(|row| row.replace(",\"has_render_steps\":true", ""))
        .collect();
    assert!(old.len() < rows.lines().count());
    std::fs::write(&log, old.join("\n") + "\n").unwrap();
    let (_, again) = replayed(&config, "again", ReplayTimingMode::AsRecorded, |_| {});
    // Which months of the calendar count as new depends on the order of requests.
    let urls = |config: &Config| {
        let pages = pages(config).into_iter().map(|page| page.url);
        let pages = pages.filter(|url| !url.contains("/months/"));
        pages.collect::<BTreeSet<_>>()
    };
    assert_eq!(urls(&again), urls(&config));
}

/// Once a replay differs from the log, it renders the remaining pages without the log.
#[test]
fn a_lost_order_does_not_stop_the_rendering() {
    let (_dir, config) = crawled(course(44), RenderMode::On);
    let log = config.output.join("state/order.jsonl");
    let rows = std::fs::read_to_string(&log).unwrap();
    let wanted = |row: &&str| row.contains("\"step\":\"wanted\"");
    let lost = rows.lines().filter(wanted).nth(12).unwrap();
    std::fs::write(&log, rows.replacen(lost, "", 1)).unwrap();
    let (found, again) = replayed(&config, "again", ReplayTimingMode::AsRecorded, |_| {});
    assert!(found.difference.is_some());
    let urls = |config: &Config| {
        let pages = pages(config).into_iter();
        pages.map(|page| page.url).collect::<BTreeSet<_>>()
    };
    assert_eq!(urls(&again), urls(&config));
}
