//! The pages that are being rendered, and the resources that they wait for.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use crawl_archive::DigestAlgorithm;
use crawl_archive::rows::RenderStatistics;
use crawl_fetcher::PostBody;
use crawl_scheduler::Tick;
use crawl_weburl::{CanonicalUrl, HostKey, Origin, canonicalize};

use crate::config::Config;
use crate::messages::page_pipeline_stages::FetchedPage;
use crate::messages::render::{
    PageResourceRequest, PageSourceToRead, RenderId, ResourceFetchRequest, ResourceKey,
    UnrenderedPageSummary, VisibleContentSize,
};
use crate::render::{
    RenderConfig, RenderFailure, RenderLimits, RenderMode, RenderedPage, ResourceAnswerSender,
    ResourceKind, ResourceRequest, UndecodedResponse, has_private_address, is_html, may_be_html,
};
use crate::revisit::visit::{PreviousVisit, RenderNeed};
use crate::time_conversions::millis;

/// Maximum pages that wait to be rendered.
/// Beyond the limit: no further page is fetched until one is rendered.
const MAX_WAITING_PAGES: usize = 32;

/// Maximum bytes of pages that wait to be rendered.
/// Beyond the limit: no further page is fetched until one is rendered.
const MAX_WAITING_BYTES: u64 = 64 << 20;

/// Maximum bytes of resources that are kept in memory for later pages.
/// Beyond the limit: the oldest are dropped.
const MAX_KEPT_BYTES: u64 = 128 << 20;

/// Maximum time that the resources of a page may take.
/// Beyond the limit: refused, and the page is rendered without them.
const MAX_PAGE_WAIT: Duration = Duration::from_secs(3_600);

/// Maximum bytes of the body of a POST.
/// Beyond the limit: refused.
const MAX_POST_BYTES: usize = 1 << 20;

pub(super) fn is_short(post: &PostBody) -> bool {
    post.bytes.len() <= MAX_POST_BYTES
}

/// Maximum number of requests for a resource, if each of them fails.
const MAX_TRIES: u32 = 2;

/// Once this many renderings in a row were useless for pages with the same URL shape and scripts,
/// such pages are read as the server sent them. A rendering is useless if it shows no more than the
/// page as sent.
const MAX_VAIN: u32 = 3;

/// Maximum useless renderings with the same scripts on a host, including those that got errors for
/// some of their requests.
/// Beyond the limit: pages with these scripts are read as sent.
const MAX_VAIN_SCRIPTS: u32 = 10;

/// Maximum learned URL shapes and script sets.
/// Beyond the limit: further pages are rendered whenever they look empty.
const MAX_SHAPES: usize = 10_000;

/// Number of browser failures in a row after which no further page of the run is rendered.
const MAX_BROWSER_FAILURES: u32 = 3;

/// The pages that are being rendered.
///
/// - A fetched page: [`choice`](Self::choice) returns how to read it. A page to render goes to
///   [`add`](Self::add), and [`next`](Self::next) returns the pages to pass to the browser.
/// - A resource: [`wanted`](Self::wanted) takes the request of a page. [`next_at`](Self::next_at)
///   returns a resource of an origin to request. If it is not sent, the caller calls
///   [`put_back`](Self::put_back) or [`refuse`](Self::refuse). A request ends with
///   [`answered`](Self::answered) or [`failed`](Self::failed).
/// - The end of a page: [`rendered`](Self::rendered) returns the page, to be read.
/// - The end of a run: [`give_up`](Self::give_up) returns all pages.
///
/// Emits no effects: answers go directly to the waiting pages.
#[derive(Debug, Default)]
pub(super) struct RenderTracker {
    rules: Option<RenderRules>,
    last_id: u64,
    /// The number of POST requests so far. Each gets its own number, so that none is answered with
    /// the response to another.
    last_post: u64,
    /// Pages that wait for a tab.
    queued: VecDeque<(FetchedPage, UnrenderedPageSummary)>,
    queued_bytes: u64,
    open: BTreeMap<RenderId, OpenPage>,
    /// Resources that wait for a permit of their origin.
    waiting: HashMap<Origin, VecDeque<ResourceKey>>,
    /// Resources that wait for a permit or are in flight.
    asked: HashMap<ResourceKey, AwaitedResource>,
    kept: KeptAnswers,
    /// Number of useless renderings in a row, by URL shape and scripts.
    vain: HashMap<(String, u64), u32>,
    /// Number of useless renderings, by host and scripts. `None` if a rendering has ever shown more
    /// than the page as sent.
    vain_scripts: HashMap<(HostKey, u64), Option<u32>>,
    /// Whether a page of this run could not be rendered.
    has_failed: bool,
    browser_failures: u32,
    /// The page that was opened last when the browser last failed. Failures of this page and of
    /// earlier ones are not counted again.
    last_failure: RenderId,
    /// Why no further page is rendered: the name of the failure.
    ended: Option<&'static str>,
    /// Origins that got no permit for a page because too many pages wait.
    turned_away: BTreeSet<Origin>,
    /// Resources that were not requested, because their page stopped waiting for them while it was
    /// still open.
    dropped: Vec<(RenderId, ResourceKey)>,
    /// Whether permits are used for resources alone, because there is no room for pages.
    pub(super) are_resources_alone: bool,
}

/// The settings of rendering that the tracker needs.
#[derive(Debug)]
struct RenderRules {
    mode: RenderMode,
    tabs: usize,
    all_resources: bool,
    posts: bool,
    limits: RenderLimits,
}

/// A page in a tab of the browser.
#[derive(Debug)]
struct OpenPage {
    page: FetchedPage,
    /// The page as sent, before its scripts run.
    before: UnrenderedPageSummary,
    row: RenderStatistics,
    hosts: HashSet<HostKey>,
    /// Bytes of all answers that the page got.
    received: u64,
    /// The worst result of the page's requests so far.
    worst: ResourceOutcome,
    /// When the page stops waiting for resources.
    deadline: Option<Tick>,
}

/// The result of a page's request for a resource. Later variants are worse. If a rendering shows no
/// more than the page as sent, the worst result indicates how likely the same is for similar pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum ResourceOutcome {
    /// The page got the resource, or no page may request such a resource.
    #[default]
    Served,
    /// The request was refused, or answered with an error such as 404. The requests of similar
    /// pages may succeed.
    Denied,
    /// The server is failing: it sent no answer, a 429 or a 5xx.
    Failed,
}

impl ResourceOutcome {
    fn of_status(status: u16) -> ResourceOutcome {
        match status {
            429 | 500.. => ResourceOutcome::Failed,
            400.. => ResourceOutcome::Denied,
            _ => ResourceOutcome::Served,
        }
    }
}

/// How a page may request a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResourceRequestPermission {
    /// With the operator's header fields and the site's session.
    Own,
    /// Without the operator's header fields and the site's session.
    Anonymous,
    /// Not at all.
    Barred,
}

#[derive(Debug)]
struct AwaitedResource {
    request: ResourceFetchRequest,
    deadline: Tick,
    waiters: Vec<(RenderId, ResourceAnswerSender)>,
}

/// The state of a page's request for a resource.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ResourceRequestState {
    /// Answered, refused, or waiting for another page's request for the same resource.
    Done,
    /// Waiting for a permit of this origin.
    Waits(Origin),
}

/// What to do with a page that waited for a tab.
#[derive(Debug)]
pub(super) enum QueuedPageDestination {
    /// Render the page in the browser.
    Render {
        page: RenderId,
        url: CanonicalUrl,
        fetched: Tick,
        answer: UndecodedResponse,
    },
    /// Have a reader read the page as the server sent it.
    Read(Box<FetchedPage>),
}

impl RenderTracker {
    pub(super) fn new(config: &Config) -> RenderTracker {
        RenderTracker {
            rules: config.render.as_ref().map(RenderRules::of),
            ..RenderTracker::default()
        }
    }

    /// Returns the number of pages that are being rendered or wait to be rendered.
    pub(super) fn count(&self) -> u64 {
        (self.queued.len() + self.open.len()) as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queued.is_empty() && self.open.is_empty()
    }

    /// Returns how a reader reads a fetched page. `None` if the page is rendered first.
    pub(super) fn choice(&self, page: &FetchedPage) -> Option<PageSourceToRead> {
        let Some(rules) = &self.rules else {
            return Some(PageSourceToRead::Unneeded);
        };
        let headers = &page.exchange.headers;
        match rules.mode {
            _ if !page.is_renderable() || !may_be_html(headers) => Some(PageSourceToRead::Unneeded),
            RenderMode::On if is_html(headers) => None,
            RenderMode::On => Some(PageSourceToRead::IfHtml),
            RenderMode::Auto => Some(PageSourceToRead::IfScripted),
        }
    }

    /// Returns whether a page may need to be rendered now, judging by its last visit. Such a page
    /// must be fetched in full, because a 304 has no body to render.
    pub(super) fn needs_body(&self, past: &PreviousVisit) -> bool {
        let need = past.page().map(|page| page.render_need);
        let mode = self.rules.as_ref().map(|rules| rules.mode);
        match need {
            Some(RenderNeed::IfAll) => mode == Some(RenderMode::On),
            Some(RenderNeed::IfScripted) => mode.is_some(),
            Some(RenderNeed::Never) | None => false,
        }
    }

    /// Queues a page for the browser. `before` describes the page before its scripts run.
    pub(super) fn add(&mut self, page: FetchedPage, before: UnrenderedPageSummary) {
        self.queued_bytes += page.exchange.body.len() as u64;
        self.queued.push_back((page, before));
    }

    /// Takes the next queued page if a tab is free, and decides whether it is rendered.
    pub(super) fn next(&mut self) -> Option<QueuedPageDestination> {
        let tabs = self.rules.as_ref().map_or(0, |rules| rules.tabs.max(1));
        if self.open.len() >= tabs {
            return None;
        }
        let (mut page, before) = self.queued.pop_front()?;
        self.queued_bytes -= page.exchange.body.len() as u64;
        // Similar pages may have been rendered since this page was queued.
        if self.is_vain(&page.lease.url, before) {
            page.rendering = PageSourceToRead::Skipped;
            return Some(QueuedPageDestination::Read(Box::new(page)));
        }
        if let Some(name) = self.ended {
            page.rendering = PageSourceToRead::Failed(RenderStatistics {
                error: Some(name.to_owned()),
                ..RenderStatistics::default()
            });
            return Some(QueuedPageDestination::Read(Box::new(page)));
        }
        self.last_id += 1;
        let id = RenderId(self.last_id);
        let answer = UndecodedResponse::of(&page.exchange, true);
        let (url, fetched) = (page.lease.url.clone(), page.exchange.started);
        let open = OpenPage {
            page,
            before,
            row: RenderStatistics::default(),
            hosts: HashSet::new(),
            received: 0,
            worst: ResourceOutcome::default(),
            deadline: None,
        };
        self.open.insert(id, open);
        Some(QueuedPageDestination::Render {
            page: id,
            url,
            fetched,
            answer,
        })
    }

    fn is_full(&self) -> bool {
        self.queued.len() >= MAX_WAITING_PAGES || self.queued_bytes >= MAX_WAITING_BYTES
    }

    /// Returns whether too many pages wait to be rendered for another page to be fetched. If so,
    /// [`take_turned_away`](Self::take_turned_away) returns the origin once there is room.
    pub(super) fn turns_away(&mut self, origin: &Origin) -> bool {
        let is_full = self.is_full();
        if is_full {
            self.turned_away.insert(origin.clone());
        }
        is_full
    }

    /// Notes an origin that got no permit for a page, because permits are for resources now.
    pub(super) fn hold_pages_of(&mut self, origin: &Origin) {
        self.turned_away.insert(origin.clone());
    }

    /// Takes the origins to wake, once there is room for more pages.
    pub(super) fn take_turned_away(&mut self) -> BTreeSet<Origin> {
        match self.is_full() {
            true => BTreeSet::new(),
            false => std::mem::take(&mut self.turned_away),
        }
    }

    /// Returns the URL of a page in the browser. `None` if the page is no longer in the browser.
    pub(super) fn page_url(&self, page: RenderId) -> Option<&CanonicalUrl> {
        self.open.get(&page).map(|open| &open.page.lease.url)
    }

    /// Returns the URL of a resource that a page requests. `None` if the URL is unusable, or the
    /// page is not open.
    pub(super) fn url_of(&self, wanted: &PageResourceRequest) -> Option<CanonicalUrl> {
        let page = self.page_url(wanted.page)?;
        canonicalize(Some(page), &wanted.request.url).ok()
    }

    /// Handles a page's request for a resource. `url` is what [`url_of`](Self::url_of) returned,
    /// and `access` decides how a page may request a URL.
    pub(super) fn wanted(
        &mut self,
        now: Tick,
        wanted: PageResourceRequest,
        url: Option<CanonicalUrl>,
        access: impl FnOnce(&CanonicalUrl, &CanonicalUrl) -> ResourceRequestPermission,
    ) -> ResourceRequestState {
        let PageResourceRequest {
            page,
            request,
            answer,
        } = wanted;
        let (Some(open), Some(rules)) = (self.open.get_mut(&page), &self.rules) else {
            return refuse(answer);
        };
        open.row.requests += 1;
        let from = open.page.lease.url.clone();
        let url =
            url.filter(|url| rules.wants(request.kind) && rules.may_send(&request, &from, url));
        let deadline = *open.deadline.get_or_insert(now + MAX_PAGE_WAIT);
        let Some(url) = url else {
            open.refuse(ResourceOutcome::Served);
            return refuse(answer);
        };
        let access = access(&from, &url);
        if access == ResourceRequestPermission::Barred || now >= deadline {
            open.refuse(ResourceOutcome::Denied);
            return refuse(answer);
        }
        self.last_post += u64::from(request.post.is_some());
        let key = ResourceKey {
            url,
            is_own: access == ResourceRequestPermission::Own,
            post: request.post.as_ref().map_or(0, |_| self.last_post),
        };
        if let Some(kept) = self.kept.get(&key) {
            open.receive(answer, &kept);
            return ResourceRequestState::Done;
        }
        if !open.has_room(&key.url, rules.limits) {
            open.refuse(ResourceOutcome::Denied);
            return refuse(answer);
        }
        if let Some(resource) = self.asked.get_mut(&key) {
            resource.waiters.push((page, answer));
            resource.deadline = resource.deadline.max(deadline);
            return ResourceRequestState::Done;
        }
        let origin = key.url.origin();
        let request = ResourceFetchRequest {
            key: key.clone(),
            page: from,
            tries: 0,
            post: request.post,
        };
        let resource = AwaitedResource {
            request,
            deadline,
            waiters: vec![(page, answer)],
        };
        self.asked.insert(key.clone(), resource);
        let waiting = self.waiting.entry(origin.clone()).or_default();
        waiting.push_back(key);
        ResourceRequestState::Waits(origin)
    }

    /// Returns the number of resources that wait for a permit of an origin.
    pub(super) fn waiting_at(&self, origin: &Origin) -> u64 {
        self.waiting.get(origin).map_or(0, |keys| keys.len() as u64)
    }

    /// Returns the hosts of the resources that wait for a permit.
    pub(super) fn hosts_waited_for(&self) -> BTreeSet<HostKey> {
        self.waiting.keys().map(Origin::host_key).collect()
    }

    /// Takes the next resource of an origin that some page still waits for and may receive. Refuses
    /// the resources before that one.
    pub(super) fn next_at(&mut self, origin: &Origin) -> Option<ResourceFetchRequest> {
        let max = self.rules.as_ref()?.limits.bytes;
        let mut next = None;
        while next.is_none()
            && let Some(key) = self.waiting.get_mut(origin)?.pop_front()
        {
            let may_receive =
                |page: &RenderId| self.open.get(page).is_some_and(|open| open.received < max);
            let resource = self.asked.get(&key);
            let is_awaited = |resource: &&AwaitedResource| {
                let mut waiters = resource.waiters.iter();
                waiters.any(|(page, answer)| !answer.is_closed() && may_receive(page))
            };
            next = resource
                .filter(is_awaited)
                .map(|resource| resource.request.clone());
            if next.is_none() {
                let waiters = resource.into_iter().flat_map(|resource| &resource.waiters);
                let is_dropped = |(page, answer): &&(RenderId, ResourceAnswerSender)| {
                    answer.is_closed() && self.open.contains_key(page)
                };
                let dropped = waiters.filter(is_dropped);
                self.dropped
                    .extend(dropped.map(|(page, _)| (*page, key.clone())));
                self.refuse(&key);
            }
        }
        if self.waiting_at(origin) == 0 {
            self.waiting.remove(origin);
        }
        next
    }

    /// Takes the resources that [`next_at`](Self::next_at) refused because their pages no longer
    /// wait for them. The caller records them, because a replay can't find this out otherwise.
    pub(super) fn take_dropped(&mut self) -> Vec<(RenderId, ResourceKey)> {
        std::mem::take(&mut self.dropped)
    }

    /// Puts back a resource that [`next_at`](Self::next_at) returned, because it was not sent.
    pub(super) fn put_back(&mut self, key: &ResourceKey) {
        let keys = self.waiting.entry(key.url.origin()).or_default();
        keys.push_front(key.clone());
    }

    /// Refuses a resource. The pages are rendered without it.
    pub(super) fn refuse(&mut self, key: &ResourceKey) {
        self.end_without_answer(key, ResourceOutcome::Denied);
    }

    fn end_without_answer(&mut self, key: &ResourceKey, outcome: ResourceOutcome) {
        let Some(resource) = self.asked.remove(key) else {
            return;
        };
        for (page, answer) in resource.waiters {
            if let Some(open) = self.open.get_mut(&page) {
                open.refuse(outcome);
            }
            let _ = answer.send(None);
        }
    }

    /// Refuses all resources of an origin that wait for a permit. Returns whether there were any;
    /// the origin then no longer needs permits for them.
    pub(super) fn refuse_origin(&mut self, origin: &Origin) -> bool {
        let keys = self.waiting.remove(origin).unwrap_or_default();
        for key in &keys {
            self.end_without_answer(key, ResourceOutcome::Failed);
        }
        !keys.is_empty()
    }

    /// Passes an answer to all pages that wait for it, and keeps it for later pages if it is final.
    /// After a 429 or 5xx, returns the origin if the resource will be requested again.
    pub(super) fn answered(
        &mut self,
        key: &ResourceKey,
        answer: &UndecodedResponse,
    ) -> Option<Origin> {
        if matches!(answer.status, 429 | 500..) && self.waits_again(key, true) {
            return Some(key.url.origin());
        }
        if matches!(answer.status, 200..=399 | 404 | 410) && key.post == 0 {
            self.kept.keep(key, answer);
        }
        let mut bytes = answer.body.len() as u64;
        for (page, waiter) in self.asked.remove(key)?.waiters {
            if let Some(open) = self.open.get_mut(&page) {
                // Count the bytes only in the row of the first page.
                open.row.bytes += std::mem::take(&mut bytes);
                open.receive(waiter, answer);
            }
        }
        None
    }

    /// Handles the failure of a request. Returns its origin if the resource will be requested
    /// again. `is_counted` is false if the crawl itself caused the failure.
    pub(super) fn failed(
        &mut self,
        key: &ResourceKey,
        may_retry: bool,
        is_counted: bool,
    ) -> Option<Origin> {
        if (may_retry || !is_counted) && self.waits_again(key, is_counted) {
            return Some(key.url.origin());
        }
        self.end_without_answer(key, ResourceOutcome::Failed);
        None
    }

    /// Queues a resource again after a request that failed, unless it was tried too often. Returns
    /// whether it is queued again. A POST is never sent twice, because the first one may have
    /// reached the server.
    fn waits_again(&mut self, key: &ResourceKey, is_counted: bool) -> bool {
        if key.post != 0 {
            return false;
        }
        let Some(resource) = self.asked.get_mut(key) else {
            return false;
        };
        resource.request.tries += u32::from(is_counted);
        let is_left = resource.request.tries < MAX_TRIES;
        if is_left {
            self.put_back(key);
        }
        is_left
    }

    /// Refuses the resources that have waited too long. Returns their origins.
    pub(super) fn expire(&mut self, now: Tick) -> BTreeSet<Origin> {
        let is_over = |key: &ResourceKey| {
            let resource = self.asked.get(key);
            resource.is_some_and(|resource| resource.deadline <= now)
        };
        let mut over = Vec::new();
        for urls in self.waiting.values_mut() {
            over.extend(urls.iter().filter(|key| is_over(key)).cloned());
            urls.retain(|key| !is_over(key));
        }
        self.waiting.retain(|_, urls| !urls.is_empty());
        for key in &over {
            self.end_without_answer(key, ResourceOutcome::Failed);
        }
        over.iter().map(|key| key.url.origin()).collect()
    }

    pub(super) fn next_deadline(&self) -> Option<Tick> {
        let resources = self.asked.values();
        resources.map(|resource| resource.deadline).min()
    }

    /// Handles the result of rendering a page. Returns the page, for a reader to read.
    pub(super) fn rendered(
        &mut self,
        id: RenderId,
        result: Result<(RenderedPage, VisibleContentSize), RenderFailure>,
    ) -> Option<FetchedPage> {
        let OpenPage {
            mut page,
            before,
            mut row,
            worst,
            ..
        } = self.open.remove(&id)?;
        let url = &page.lease.url;
        match result {
            Ok((rendered, after)) => {
                self.browser_failures = 0;
                self.learn(url, before.scripts, after.exceeds(before.size), worst);
                row.requests += rendered.withheld;
                row.refused += rendered.withheld;
                row.page_ms = Some(millis(rendered.page_time));
                row.dom_bytes = Some(rendered.dom.len() as u64);
                row.dom_digest = Some(DigestAlgorithm::default().of(&[rendered.dom.as_bytes()]));
                let screenshot = rendered.screenshot.transpose();
                row.screenshot_error = screenshot.as_ref().err().map(|why| (*why).to_owned());
                let screenshot = screenshot.ok().flatten();
                row.screenshot_bytes = screenshot.as_ref().map(|image| image.len() as u64);
                page.rendering = PageSourceToRead::Done {
                    dom: rendered.dom,
                    navigation: rendered.navigation,
                    screenshot,
                    row,
                };
            }
            Err(failure) => {
                let (name, detail) = (failure.name, &failure.detail);
                match std::mem::replace(&mut self.has_failed, true) {
                    false => tracing::warn!(
                        %url, name, detail,
                        "a page could not be rendered; such pages are read as they were sent"
                    ),
                    true => tracing::info!(%url, name, detail, "not rendered"),
                }
                if failure.is_browsers {
                    self.browser_failed(id, &failure);
                }
                row.error = Some(failure.name.to_owned());
                page.rendering = PageSourceToRead::Failed(row);
            }
        }
        Some(page)
    }

    /// Gives up all pages, at the end of a run. Their URLs become pending again.
    pub(super) fn give_up(&mut self) -> Vec<FetchedPage> {
        let open = std::mem::take(&mut self.open).into_values();
        let queued = std::mem::take(&mut self.queued);
        self.queued_bytes = 0;
        self.waiting.clear();
        self.asked.clear();
        self.turned_away.clear();
        let pages = open.map(|open| open.page);
        pages
            .chain(queued.into_iter().map(|(page, _)| page))
            .collect()
    }

    /// Counts a failure of the browser, and ends rendering after too many.
    fn browser_failed(&mut self, page: RenderId, failure: &RenderFailure) {
        // Pages that were open at the same time share one failure.
        if page <= self.last_failure {
            return;
        }
        self.last_failure = RenderId(self.last_id);
        self.browser_failures += 1;
        if self.browser_failures == MAX_BROWSER_FAILURES {
            self.ended = Some(failure.name);
            tracing::warn!(
                why = failure.detail,
                "the browser failed {MAX_BROWSER_FAILURES} times in a row; pages are read as they \
                 were sent from now on"
            );
        }
    }

    /// Returns whether rendering a page is probably useless, because similar pages showed no more
    /// with their scripts than without.
    fn is_vain(&self, url: &CanonicalUrl, shell: UnrenderedPageSummary) -> bool {
        let is_auto = self.rules.as_ref().map(|rules| rules.mode) == Some(RenderMode::Auto);
        let by_shape = self.vain.get(&(shape_key(url), shell.scripts));
        let by_scripts = self.vain_scripts.get(&(url.host_key(), shell.scripts));
        is_auto
            && (by_shape.is_some_and(|vain| *vain >= MAX_VAIN)
                || by_scripts.is_some_and(|vain| vain.is_some_and(|vain| vain >= MAX_VAIN_SCRIPTS)))
    }

    /// Records whether a rendered page showed more than the page as sent. If it didn't, the `worst`
    /// result of its requests decides: a failed server proves nothing, and a denied request proves
    /// less than an answer.
    fn learn(&mut self, url: &CanonicalUrl, scripts: u64, is_more: bool, worst: ResourceOutcome) {
        if !is_more && worst == ResourceOutcome::Failed {
            return;
        }
        let shape = (shape_key(url), scripts);
        if is_more {
            self.vain.remove(&shape);
        } else if worst == ResourceOutcome::Served
            && (self.vain.len() < MAX_SHAPES || self.vain.contains_key(&shape))
        {
            *self.vain.entry(shape).or_default() += 1;
        }
        let host = (url.host_key(), scripts);
        if self.vain_scripts.len() < MAX_SHAPES || self.vain_scripts.contains_key(&host) {
            let vain = self.vain_scripts.entry(host).or_insert(Some(0));
            *vain = vain.filter(|_| !is_more).map(|vain| vain + 1);
        }
    }
}

fn shape_key(url: &CanonicalUrl) -> String {
    format!("{} {}", url.host_key().as_str(), url.shape().pattern)
}

fn refuse(answer: ResourceAnswerSender) -> ResourceRequestState {
    let _ = answer.send(None);
    ResourceRequestState::Done
}

impl RenderRules {
    fn wants(&self, kind: ResourceKind) -> bool {
        match kind {
            ResourceKind::Document
            | ResourceKind::Script
            | ResourceKind::Style
            | ResourceKind::Data => true,
            ResourceKind::Media => self.all_resources,
            ResourceKind::Report => false,
        }
    }

    /// Returns whether the page at `from` may send a request with this method and body to `url`.
    fn may_send(&self, request: &ResourceRequest, from: &CanonicalUrl, url: &CanonicalUrl) -> bool {
        match (request.method.as_str(), &request.post) {
            ("GET", _) => true,
            ("POST", Some(post)) => {
                self.posts
                    && request.kind == ResourceKind::Data
                    && url.origin_text() == from.origin_text()
                    && is_short(post)
            }
            _ => false,
        }
    }

    fn of(config: &RenderConfig) -> RenderRules {
        RenderRules {
            mode: config.mode,
            tabs: config.tabs,
            all_resources: config.all_resources,
            posts: config.posts,
            limits: config.limits,
        }
    }
}

impl OpenPage {
    /// Counts a request that the page gets no answer to.
    fn refuse(&mut self, outcome: ResourceOutcome) {
        self.row.refused += 1;
        self.worst = self.worst.max(outcome);
    }

    /// Returns whether the limits on hosts, requests and bytes let the page request this URL.
    /// Counts the URL's host.
    fn has_room(&mut self, url: &CanonicalUrl, limits: RenderLimits) -> bool {
        let host = url.host_key();
        if !self.hosts.contains(&host) && self.hosts.len() >= limits.hosts {
            return false;
        }
        self.hosts.insert(host);
        self.row.requests <= limits.requests && self.received < limits.bytes
    }

    /// Passes an answer to the page. Like a browser, refuses an answer from a private address if
    /// the page came from a public one.
    fn receive(&mut self, waiter: ResourceAnswerSender, answer: &UndecodedResponse) {
        if answer.is_private && !has_private_address(&self.page.exchange) {
            self.refuse(ResourceOutcome::Denied);
            let _ = waiter.send(None);
            return;
        }
        self.worst = self.worst.max(ResourceOutcome::of_status(answer.status));
        self.received += answer.body.len() as u64;
        let _ = waiter.send(Some(answer.clone()));
    }
}

/// The answers of this run that pages may need again, up to a limit of bytes.
#[derive(Debug, Default)]
struct KeptAnswers {
    answers: HashMap<ResourceKey, UndecodedResponse>,
    /// The keys of the answers, oldest first.
    order: VecDeque<ResourceKey>,
    bytes: u64,
}

impl KeptAnswers {
    fn get(&self, key: &ResourceKey) -> Option<UndecodedResponse> {
        self.answers.get(key).cloned()
    }

    fn keep(&mut self, key: &ResourceKey, answer: &UndecodedResponse) {
        if self.answers.contains_key(key) {
            return;
        }
        self.bytes += answer.bytes();
        self.answers.insert(key.clone(), answer.clone());
        self.order.push_back(key.clone());
        while self.bytes > MAX_KEPT_BYTES
            && let Some(oldest) = self.order.pop_front()
        {
            if let Some(dropped) = self.answers.remove(&oldest) {
                self.bytes -= dropped.bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests;
