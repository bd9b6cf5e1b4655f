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
use crate::messages::render::{
    PageSize, RenderId, RenderRequest, Rendering, Shell, WantedResource,
};
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

/// Maximum useless renderings with the same scripts on a host.
/// Beyond the limit: pages with these scripts are read as sent.
const MAX_VAIN_SCRIPTS: u32 = 10;

/// Maximum learned URL shapes and script sets.
/// Beyond the limit: further pages are rendered whenever they look empty.
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
    queued: VecDeque<(FetchedPage, Shell)>,
    queued_bytes: u64,
    open: BTreeMap<RenderId, OpenPage>,
    /// Resources that wait for a permit of their origin.
    waiting: HashMap<Origin, VecDeque<CanonicalUrl>>,
    /// Resources that wait or are in flight.
    asked: HashMap<CanonicalUrl, AskedResource>,
    kept: KeptAnswers,
    /// Number of useless renderings in a row, by URL shape and scripts.
    vain: HashMap<(String, u64), u32>,
    /// The same for pages of a host with the same scripts. `None` if they ever showed more.
    vain_scripts: HashMap<(HostKey, u64), Option<u32>>,
    browser_failures: u32,
    /// The last page that was opened before the last failure of the browser that counts.
    last_failure: RenderId,
    /// Why no further page is rendered: the name of the failure.
    ended: Option<&'static str>,
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
    /// The page without its scripts.
    before: Shell,
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

/// The fate of a page that waited for a tab.
#[derive(Debug)]
pub(super) enum NextPage {
    /// The browser gets the page.
    Render {
        page: RenderId,
        url: CanonicalUrl,
        fetched: Tick,
        answer: StoredAnswer,
    },
    /// A reader gets the page as the server sent it.
    Read(Box<FetchedPage>),
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
            && is_html(&exchange.headers);
        match rules.mode {
            _ if !may_render => Some(Rendering::Unneeded),
            RenderMode::On => None,
            RenderMode::Auto => Some(Rendering::IfScripted),
        }
    }

    /// Queues a page for the browser. `before` describes the page without its scripts.
    pub(super) fn add(&mut self, page: FetchedPage, before: Shell) {
        self.queued_bytes += page.exchange.body.len() as u64;
        self.queued.push_back((page, before));
    }

    /// Returns the next page and what happens to it, if a tab is free.
    pub(super) fn next(&mut self) -> Option<NextPage> {
        let tabs = self.rules.as_ref().map_or(0, |rules| rules.tabs.max(1));
        if self.open.len() >= tabs {
            return None;
        }
        let (mut page, before) = self.queued.pop_front()?;
        self.queued_bytes -= page.exchange.body.len() as u64;
        // Pages like it may have been rendered since it was queued.
        if self.is_vain(&page.lease.url, before) {
            page.rendering = Rendering::Unneeded;
            return Some(NextPage::Read(Box::new(page)));
        }
        if let Some(name) = self.ended {
            page.rendering = Rendering::Failed(RenderRow {
                error: Some(name.to_owned()),
                ..RenderRow::default()
            });
            return Some(NextPage::Read(Box::new(page)));
        }
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
        Some(NextPage::Render {
            page: id,
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
        if let Some(asked) = self.asked.get_mut(&url) {
            asked.waiters.push((page, answer));
            return Wanted::Done;
        }
        let origin = url.origin();
        let asked = AskedResource {
            request: RenderRequest {
                url: url.clone(),
                page: open.page.lease.url.clone(),
                tries: 0,
            },
            deadline: now + MAX_RESOURCE_WAIT,
            waiters: vec![(page, answer)],
        };
        self.asked.insert(url.clone(), asked);
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
        let mut found = None;
        if let Some(urls) = self.waiting.get_mut(origin) {
            while found.is_none()
                && let Some(url) = urls.pop_front()
            {
                let is_awaited = self.asked.get(&url).is_some_and(AskedResource::is_awaited);
                match is_awaited {
                    true => found = self.asked.get(&url).map(|asked| asked.request.clone()),
                    false => drop(self.asked.remove(&url)),
                }
            }
            if urls.is_empty() {
                self.waiting.remove(origin);
            }
        }
        found
    }

    /// Puts back a resource that [`next_at`](Self::next_at) returned, because it was not sent.
    pub(super) fn put_back(&mut self, request: &RenderRequest) {
        let urls = self.waiting.entry(request.url.origin()).or_default();
        urls.push_front(request.url.clone());
    }

    /// Refuses a resource. The pages are rendered without it.
    pub(super) fn refuse(&mut self, url: &CanonicalUrl) {
        let Some(asked) = self.asked.remove(url) else {
            return;
        };
        for (page, answer) in asked.waiters {
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
        let Some(asked) = self.asked.remove(url) else {
            return;
        };
        let mut bytes = answer.body.len() as u64;
        for (page, waiter) in asked.waiters {
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
        let asked = self.asked.get_mut(url)?;
        asked.request.tries += u32::from(is_counted);
        if (may_retry && asked.request.tries < MAX_TRIES) || !is_counted {
            let request = asked.request.clone();
            self.put_back(&request);
            return Some(url.origin());
        }
        self.refuse(url);
        None
    }

    /// Refuses the resources that have waited too long. Returns when the next one has.
    pub(super) fn expire(&mut self, now: Tick) -> Option<Tick> {
        let deadlines = || self.asked.values().map(|asked| asked.deadline);
        if deadlines().all(|until| until > now) {
            return deadlines().min();
        }
        let waiting = self.waiting.values().flatten();
        let is_over = |url: &&CanonicalUrl| {
            let asked = self.asked.get(*url);
            asked.is_some_and(|asked| asked.deadline <= now)
        };
        let over: Vec<_> = waiting.filter(is_over).cloned().collect();
        for url in over {
            if let Some(urls) = self.waiting.get_mut(&url.origin()) {
                urls.retain(|other| *other != url);
            }
            self.refuse(&url);
        }
        self.waiting.retain(|_, urls| !urls.is_empty());
        let deadlines = self.asked.values().map(|asked| asked.deadline);
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
                self.learn(url, before.scripts, after.exceeds(before.size));
                row.requests += rendered.withheld;
                row.refused += rendered.withheld;
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
                let (name, detail) = (failure.name, &failure.detail);
                tracing::info!(%url, name, detail, "not rendered");
                if failure.is_browsers {
                    self.browser_failed(id, &failure);
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

    /// Returns whether rendering a page would show no more than it does without its scripts, to
    /// judge by pages like it.
    fn is_vain(&self, url: &CanonicalUrl, shell: Shell) -> bool {
        let is_auto = self.rules.as_ref().map(|rules| rules.mode) == Some(RenderMode::Auto);
        let by_shape = self.vain.get(&(shape_key(url), shell.scripts));
        let by_scripts = self.vain_scripts.get(&(url.host_key(), shell.scripts));
        is_auto
            && (by_shape.is_some_and(|vain| *vain >= MAX_VAIN)
                || by_scripts.is_some_and(|vain| vain.is_some_and(|vain| vain >= MAX_VAIN_SCRIPTS)))
    }

    /// Notes whether a rendered page showed more than it did without its scripts.
    fn learn(&mut self, url: &CanonicalUrl, scripts: u64, is_more: bool) {
        let shape = (shape_key(url), scripts);
        if is_more {
            self.vain.remove(&shape);
        } else if self.vain.len() < MAX_SHAPES || self.vain.contains_key(&shape) {
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
