//! The pages that are being rendered, and the resources that they wait for.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use crawl_archive::DigestAlgorithm;
use crawl_archive::rows::RenderRow;
use crawl_frontier::UrlKind;
use crawl_scheduler::Tick;
use crawl_weburl::{CanonicalUrl, HostKey, Origin, canonicalize};
use tokio::sync::oneshot;

use crate::config::Config;
use crate::messages::page::FetchedPage;
use crate::messages::render::{PageSize, RenderId, RenderRequest, Rendering, WantedResource};
use crate::render::{
    RenderConfig, RenderFailure, RenderLimits, RenderMode, RenderedPage, ResourceKind,
    StoredAnswer, is_html,
};
use crate::time::millis;

/// Maximum pages that wait to be rendered.
/// Beyond the limit: no further page is fetched until one is rendered.
const MAX_WAITING_PAGES: usize = 32;

/// Maximum bytes of pages that wait to be rendered.
/// Beyond the limit: no further page is fetched until one is rendered.
const MAX_WAITING_BYTES: u64 = 64 << 20;

/// Maximum bytes of resources that are kept in memory for later pages.
/// Beyond the limit: the oldest are dropped.
const MAX_KEPT_BYTES: u64 = 128 << 20;

/// The longest wait of a resource for its turn.
/// Beyond the limit: refused, and the page is rendered without it.
const MAX_RESOURCE_WAIT: Duration = Duration::from_secs(3_600);

/// Maximum times that a resource is requested whose requests fail.
const MAX_TRIES: u32 = 2;

/// How many pages of a URL shape are rendered in vain before its other pages are read as they were
/// sent.
const MAX_VAIN: u32 = 3;

/// Maximum URL shapes to remember.
/// Beyond the limit: pages of further shapes are rendered whenever they look empty.
const MAX_SHAPES: usize = 10_000;

/// How often in a row the browser may fail before no further page of the run is rendered.
const MAX_BROWSER_FAILURES: u32 = 3;

/// The pages that are being rendered.
///
/// - A fetched page: [`choice`](Self::choice) says how it is read. A page to render goes to
///   [`add`](Self::add), and [`next`](Self::next) returns the pages to pass to the browser.
/// - A resource: [`wanted`](Self::wanted) takes the request of a page. [`next_at`](Self::next_at)
///   returns a resource of an origin to request, for which the caller calls
///   [`sent`](Self::sent), [`put_back`](Self::put_back) or [`refuse`](Self::refuse). A request
///   ends with [`answered`](Self::answered) or [`failed`](Self::failed).
/// - The end of a page: [`rendered`](Self::rendered) returns the page, to be read.
/// - The end of a run: [`give_up`](Self::give_up) returns all pages.
///
/// Emits no effects: answers go directly to the waiting pages.
#[derive(Debug, Default)]
pub(super) struct Renders {
    rules: Option<RenderRules>,
    last_id: u64,
    /// Pages that wait for a tab.
    queued: VecDeque<(FetchedPage, PageSize)>,
    queued_bytes: u64,
    open: BTreeMap<RenderId, OpenPage>,
    /// Resources that wait for a permit of their origin.
    waiting: HashMap<Origin, VecDeque<CanonicalUrl>>,
    /// Resources that wait or are in flight.
    asked: HashMap<CanonicalUrl, AskedResource>,
    kept: KeptAnswers,
    /// How often pages of a shape were rendered in vain, in a row.
    vain: HashMap<String, u32>,
    browser_failures: u32,
    /// Origins that got no permit for a page because too many pages wait.
    turned_away: BTreeSet<Origin>,
    /// Whether permits are used for resources alone, because there is no room for pages.
    pub(super) are_resources_alone: bool,
}

#[derive(Debug)]
struct RenderRules {
    mode: RenderMode,
    tabs: usize,
    all_resources: bool,
    limits: RenderLimits,
}

/// A page in a tab of the browser.
#[derive(Debug)]
struct OpenPage {
    page: FetchedPage,
    /// How much the page shows without its scripts.
    before: PageSize,
    row: RenderRow,
    hosts: HashSet<HostKey>,
}

#[derive(Debug)]
struct AskedResource {
    request: RenderRequest,
    deadline: Tick,
    waiters: Vec<(RenderId, Answer)>,
}

type Answer = oneshot::Sender<Option<StoredAnswer>>;

/// What happens to a request of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// It is answered, refused, or waits behind the same request of another page.
    Done,
    /// It waits for a permit of this origin.
    Waits(Origin),
}

/// A page to pass to the browser.
#[derive(Debug)]
pub(super) struct PageForBrowser {
    pub(super) id: RenderId,
    pub(super) url: CanonicalUrl,
    pub(super) fetched: Tick,
    pub(super) answer: StoredAnswer,
}

impl Renders {
    pub(super) fn new(config: &Config) -> Renders {
        Renders {
            rules: config.render.as_ref().map(RenderRules::of),
            ..Renders::default()
        }
    }

    /// Returns whether no page is being rendered or waits to be.
    pub(super) fn is_empty(&self) -> bool {
        self.queued.is_empty() && self.open.is_empty()
    }

    /// Returns how a fetched page is read. `Unneeded` and `IfScripted` go to a reader; `None` means
    /// that the page is rendered first.
    pub(super) fn choice(&self, page: &FetchedPage) -> Option<Rendering> {
        let Some(rules) = &self.rules else {
            return Some(Rendering::Unneeded);
        };
        let exchange = &page.exchange;
        let may_render = (200..300).contains(&exchange.status)
            && page.lease.kind == UrlKind::Page
            && !page.context.is_only_checked
            && exchange.truncated.is_none()
            && exchange.redirect_target().is_none()
            && is_html(&exchange.headers)
            && self.browser_failures < MAX_BROWSER_FAILURES;
        match rules.mode {
            _ if !may_render => Some(Rendering::Unneeded),
            RenderMode::On => None,
            RenderMode::Auto => Some(match self.is_vain(&page.lease.url) {
                true => Rendering::Unneeded,
                false => Rendering::IfScripted,
            }),
        }
    }

    /// Queues a page that is to be rendered. `before` is how much it shows without its scripts.
    pub(super) fn add(&mut self, page: FetchedPage, before: PageSize) {
        self.queued_bytes += page.exchange.body.len() as u64;
        self.queued.push_back((page, before));
    }

    /// Returns the next page for the browser, if a tab is free.
    pub(super) fn next(&mut self) -> Option<PageForBrowser> {
        let tabs = self.rules.as_ref().map_or(0, |rules| rules.tabs.max(1));
        if self.open.len() >= tabs {
            return None;
        }
        let (page, before) = self.queued.pop_front()?;
        self.queued_bytes -= page.exchange.body.len() as u64;
        self.last_id += 1;
        let id = RenderId(self.last_id);
        let answer = StoredAnswer {
            status: page.exchange.status,
            headers: page.exchange.headers.clone(),
            body: page.exchange.body.clone(),
        };
        let (url, fetched) = (page.lease.url.clone(), page.exchange.started);
        let open = OpenPage {
            page,
            before,
            row: RenderRow::default(),
            hosts: HashSet::new(),
        };
        self.open.insert(id, open);
        Some(PageForBrowser {
            id,
            url,
            fetched,
            answer,
        })
    }

    /// Returns whether too many pages wait to be rendered for another page to be fetched. If so,
    /// [`take_turned_away`](Self::take_turned_away) returns the origin once there is room.
    pub(super) fn turns_away(&mut self, origin: &Origin) -> bool {
        let is_full =
            self.queued.len() >= MAX_WAITING_PAGES || self.queued_bytes >= MAX_WAITING_BYTES;
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
        let is_full =
            self.queued.len() >= MAX_WAITING_PAGES || self.queued_bytes >= MAX_WAITING_BYTES;
        match is_full {
            true => BTreeSet::new(),
            false => std::mem::take(&mut self.turned_away),
        }
    }

    /// Takes in the request of a page. `is_barred` says whether a URL can't be requested in this
    /// run.
    pub(super) fn wanted(
        &mut self,
        now: Tick,
        wanted: WantedResource,
        is_barred: impl FnOnce(&CanonicalUrl) -> bool,
    ) -> Wanted {
        let WantedResource {
            page,
            request,
            answer,
        } = wanted;
        let Some(open) = self.open.get_mut(&page) else {
            return refuse(answer);
        };
        open.row.requests += 1;
        let all_resources = self.rules.as_ref().is_some_and(|rules| rules.all_resources);
        let is_wanted = match request.kind {
            ResourceKind::Document
            | ResourceKind::Script
            | ResourceKind::Style
            | ResourceKind::Data => true,
            ResourceKind::Media => all_resources,
            ResourceKind::Report => false,
        };
        let url = canonicalize(Some(&open.page.lease.url), &request.url);
        let Some(url) = url.ok().filter(|_| is_wanted && request.method == "GET") else {
            open.row.refused += 1;
            return refuse(answer);
        };
        if let Some(kept) = self.kept.get(&url) {
            let _ = answer.send(Some(kept));
            return Wanted::Done;
        }
        if is_barred(&url) || !open.has_room(&url, self.rules.as_ref()) {
            open.row.refused += 1;
            return refuse(answer);
        }
        if let Some(resource) = self.asked.get_mut(&url) {
            resource.waiters.push((page, answer));
            return Wanted::Done;
        }
        let origin = url.origin();
        let resource = AskedResource {
            request: RenderRequest {
                url: url.clone(),
                page: open.page.lease.url.clone(),
                tries: 0,
            },
            deadline: now + MAX_RESOURCE_WAIT,
            waiters: vec![(page, answer)],
        };
        self.asked.insert(url.clone(), resource);
        self.waiting
            .entry(origin.clone())
            .or_default()
            .push_back(url);
        Wanted::Waits(origin)
    }

    /// Returns the URL of a page that is being rendered.
    pub(super) fn url_of(&self, id: RenderId) -> Option<&CanonicalUrl> {
        self.open.get(&id).map(|open| &open.page.lease.url)
    }

    /// Returns the number of resources that wait for a permit of an origin.
    pub(super) fn waiting_at(&self, origin: &Origin) -> u64 {
        self.waiting.get(origin).map_or(0, |urls| urls.len() as u64)
    }

    /// Returns the hosts for whose resources pages wait.
    pub(super) fn hosts_waited_for(&self) -> BTreeSet<HostKey> {
        self.waiting.keys().map(Origin::host_key).collect()
    }

    /// Takes the next resource of an origin that some page still waits for.
    pub(super) fn next_at(&mut self, origin: &Origin) -> Option<RenderRequest> {
        let mut next = None;
        if let Some(urls) = self.waiting.get_mut(origin) {
            while next.is_none()
                && let Some(url) = urls.pop_front()
            {
                let resource = self.asked.get(&url);
                next = resource
                    .filter(|resource| resource.is_awaited())
                    .map(|resource| resource.request.clone());
                if next.is_none() {
                    self.asked.remove(&url);
                }
            }
            if urls.is_empty() {
                self.waiting.remove(origin);
            }
        }
        next
    }

    /// Puts back a resource that [`next_at`](Self::next_at) returned, because it was not sent.
    pub(super) fn put_back(&mut self, request: &RenderRequest) {
        let urls = self.waiting.entry(request.url.origin()).or_default();
        urls.push_front(request.url.clone());
    }

    /// Refuses a resource. The pages are rendered without it.
    pub(super) fn refuse(&mut self, url: &CanonicalUrl) {
        let Some(resource) = self.asked.remove(url) else {
            return;
        };
        for (page, answer) in resource.waiters {
            if let Some(open) = self.open.get_mut(&page) {
                open.row.refused += 1;
            }
            let _ = answer.send(None);
        }
    }

    /// Refuses all resources of an origin that wait for a permit.
    pub(super) fn refuse_origin(&mut self, origin: &Origin) {
        for url in self.waiting.remove(origin).unwrap_or_default() {
            self.refuse(&url);
        }
    }

    /// Passes an answer to all pages that wait for it, and keeps it for others.
    pub(super) fn answered(&mut self, url: &CanonicalUrl, answer: &StoredAnswer) {
        self.kept.keep(url, answer);
        let Some(resource) = self.asked.remove(url) else {
            return;
        };
        let mut bytes = answer.body.len() as u64;
        for (page, waiter) in resource.waiters {
            if let Some(open) = self.open.get_mut(&page) {
                // The first page counts the bytes.
                open.row.bytes += std::mem::take(&mut bytes);
            }
            let _ = waiter.send(Some(answer.clone()));
        }
    }

    /// Takes in that a request failed. Returns its origin if the resource waits again.
    /// `is_counted` is false if the request failed because of the crawl itself.
    pub(super) fn failed(
        &mut self,
        url: &CanonicalUrl,
        may_retry: bool,
        is_counted: bool,
    ) -> Option<Origin> {
        let resource = self.asked.get_mut(url)?;
        resource.request.tries += u32::from(is_counted);
        if (may_retry && resource.request.tries < MAX_TRIES) || !is_counted {
            let request = resource.request.clone();
            self.put_back(&request);
            return Some(url.origin());
        }
        self.refuse(url);
        None
    }

    /// Refuses the resources that have waited too long. Returns when the next one has.
    pub(super) fn expire(&mut self, now: Tick) -> Option<Tick> {
        let deadlines = || self.asked.values().map(|resource| resource.deadline);
        if deadlines().all(|until| until > now) {
            return deadlines().min();
        }
        let waiting = self.waiting.values().flatten();
        let is_over = |url: &&CanonicalUrl| {
            let resource = self.asked.get(*url);
            resource.is_some_and(|resource| resource.deadline <= now)
        };
        let over: Vec<_> = waiting.filter(is_over).cloned().collect();
        for url in over {
            if let Some(urls) = self.waiting.get_mut(&url.origin()) {
                urls.retain(|other| *other != url);
            }
            self.refuse(&url);
        }
        self.waiting.retain(|_, urls| !urls.is_empty());
        let deadlines = self.asked.values().map(|resource| resource.deadline);
        deadlines.filter(|until| *until > now).min()
    }

    /// Takes in the result of a page, and returns the page, to be read.
    pub(super) fn rendered(
        &mut self,
        id: RenderId,
        result: Result<(RenderedPage, PageSize), RenderFailure>,
    ) -> Option<FetchedPage> {
        let OpenPage {
            mut page,
            before,
            mut row,
            ..
        } = self.open.remove(&id)?;
        let url = &page.lease.url;
        match result {
            Ok((rendered, after)) => {
                self.browser_failures = 0;
                self.learn(url, after.exceeds(before));
                row.page_ms = Some(millis(rendered.page_time));
                row.dom_bytes = Some(rendered.dom.len() as u64);
                row.dom_digest = Some(DigestAlgorithm::default().of(&[rendered.dom.as_bytes()]));
                page.rendering = Rendering::Done {
                    dom: rendered.dom,
                    navigation: rendered.navigation,
                    row,
                };
            }
            Err(failure) => {
                self.browser_failures += u32::from(failure.is_browsers);
                let (name, detail) = (failure.name, &failure.detail);
                tracing::info!(%url, name, detail, "not rendered");
                if self.browser_failures == MAX_BROWSER_FAILURES {
                    tracing::warn!(
                        "the browser failed {MAX_BROWSER_FAILURES} times in a row; pages are read as they were sent from now on"
                    );
                }
                row.error = Some(failure.name.to_owned());
                page.rendering = Rendering::Failed(row);
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

    fn is_vain(&self, url: &CanonicalUrl) -> bool {
        let vain = self.vain.get(&shape_key(url));
        vain.is_some_and(|vain| *vain >= MAX_VAIN)
    }

    /// Notes whether a rendered page showed more than it did without its scripts.
    fn learn(&mut self, url: &CanonicalUrl, is_more: bool) {
        let key = shape_key(url);
        if is_more {
            self.vain.remove(&key);
        } else if self.vain.len() < MAX_SHAPES || self.vain.contains_key(&key) {
            *self.vain.entry(key).or_default() += 1;
        }
    }
}

fn shape_key(url: &CanonicalUrl) -> String {
    format!("{} {}", url.host_key().as_str(), url.shape().pattern)
}

fn refuse(answer: Answer) -> Wanted {
    let _ = answer.send(None);
    Wanted::Done
}

impl RenderRules {
    fn of(config: &RenderConfig) -> RenderRules {
        RenderRules {
            mode: config.mode,
            tabs: config.tabs,
            all_resources: config.all_resources,
            limits: config.limits,
        }
    }
}

impl OpenPage {
    /// Returns whether the page may request another URL.
    fn has_room(&mut self, url: &CanonicalUrl, rules: Option<&RenderRules>) -> bool {
        let Some(rules) = rules else {
            return false;
        };
        let host = url.host_key();
        if !self.hosts.contains(&host) && self.hosts.len() >= rules.limits.hosts {
            return false;
        }
        self.hosts.insert(host);
        self.row.requests <= rules.limits.requests && self.row.bytes < rules.limits.bytes
    }
}

impl AskedResource {
    fn is_awaited(&self) -> bool {
        self.waiters.iter().any(|(_, answer)| !answer.is_closed())
    }
}

/// The answers of this run that pages may need again, up to a limit of bytes.
#[derive(Debug, Default)]
struct KeptAnswers {
    answers: HashMap<CanonicalUrl, StoredAnswer>,
    /// The URLs, oldest first.
    order: VecDeque<CanonicalUrl>,
    bytes: u64,
}

impl KeptAnswers {
    fn get(&self, url: &CanonicalUrl) -> Option<StoredAnswer> {
        self.answers.get(url).cloned()
    }

    fn keep(&mut self, url: &CanonicalUrl, answer: &StoredAnswer) {
        if self.answers.contains_key(url) {
            return;
        }
        self.bytes += answer.bytes();
        self.answers.insert(url.clone(), answer.clone());
        self.order.push_back(url.clone());
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
