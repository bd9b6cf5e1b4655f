//! The rendered pages of a replay.
//!
//! While the replay follows the logged order, it repeats the logged messages of the browser, and
//! reads archived DOMs. Without the logged order, it renders each page and passes the page's
//! requests to the loop. If the loop then gives other answers than the page got in the browser,
//! the page is rendered again.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use crawl_archive::rows::{RenderEventRow, RenderResult};
use crawl_fetcher::PostBody;
use crawl_scheduler::Tick;
use crawl_weburl::CanonicalUrl;
use tokio::sync::oneshot;

use super::Replay;
use super::order_follower::{FollowedRowResult, OrderDivergenceError};
use super::recorded_crawl::tick;
use super::rerender::{
    KnownResourceAnswerer, RecordedOrderAnswerer, RecordedPageRequests, RequestedResource, are_same,
};
use crate::messages::Event;
use crate::messages::page_pipeline_stages::FetchedPage;
use crate::messages::render::{
    PageResourceRequest, RenderId, UnrenderedPageSummary, VisibleContentSize,
};
use crate::render::{
    RenderFailure, RenderedPage, ResourceKind, ResourceRequest, UndecodedResponse,
};

/// Maximum number of times that a replay with other settings renders a page.
/// Beyond the limit: the last DOM is taken.
const MAX_RENDERINGS: u32 = 4;

/// The pages that a reader returned because scripts seem to build them, and the pages in the
/// browser.
#[derive(Default)]
pub(super) struct ReplayedRenderings {
    pub(super) scripted: Vec<(Box<FetchedPage>, UnrenderedPageSummary)>,
    open: BTreeMap<RenderId, OpenPage>,
}

/// A page in the browser.
struct OpenPage {
    url: CanonicalUrl,
    fetched: Tick,
    document: UndecodedResponse,
    requests: RecordedPageRequests,
    /// The last rendering. `None` if the page follows `state/order.jsonl`, or was not rendered yet.
    last_rendering: Option<TentativeRendering>,
    renderings: u32,
}

/// The last rendering of a page, with the answers that its requests got. If the crawl loop answers
/// otherwise, the page is rendered again.
struct TentativeRendering {
    result: Option<Result<RenderedPage, RenderFailure>>,
    answers: Vec<(usize, Option<UndecodedResponse>)>,
}

impl TentativeRendering {
    /// Returns whether the loop has answered all requests of this rendering in the same way as they
    /// were answered in the browser.
    fn agrees_with(&self, requests: &RecordedPageRequests) -> bool {
        let mut answers = self.answers.iter();
        answers.all(|(place, answer)| are_same(answer.as_ref(), requests.answer(*place)))
    }
}

impl ReplayedRenderings {
    /// Adds a page that the loop passed to the browser.
    pub(super) fn open(
        &mut self,
        id: RenderId,
        (url, fetched): (CanonicalUrl, Tick),
        document: UndecodedResponse,
    ) {
        let page = OpenPage {
            url,
            fetched,
            document,
            requests: RecordedPageRequests::default(),
            last_rendering: None,
            renderings: 0,
        };
        self.open.insert(id, page);
    }

    /// Records the answers that the loop has given so far.
    pub(super) fn take_answers(&mut self) {
        for page in self.open.values_mut() {
            page.requests.take_answers();
        }
    }

    /// Returns the first page whose requests are all answered.
    fn first_ready(&self) -> Option<RenderId> {
        let mut open = self.open.iter();
        let ready = open.find(|(_, page)| !page.requests.are_awaited());
        ready.map(|(id, _)| *id)
    }
}

impl Replay {
    /// Repeats a step of rendering.
    pub(super) fn follow_render(&mut self, step: &RenderEventRow) -> FollowedRowResult {
        if let Err(lost) = self.end_requests(step.ended, u64::MAX)? {
            return Ok(Err(lost));
        }
        if let Err(lost) = self.commit_until(step.settled)? {
            return Ok(Err(lost));
        }
        self.now = self.now.max(tick(step.at));
        let event = match step.step.as_str() {
            "scripted" => self.scripted(step),
            "wanted" => self.wanted(step),
            "rendered" => self.rendered(step),
            "dropped" => {
                let page = step
                    .page
                    .and_then(|id| self.renders.open.get_mut(&RenderId(id)));
                if let (Some(page), Some(url)) = (page, &step.url) {
                    page.requests.drop_awaited(url);
                }
                return Ok(Ok(()));
            }
            "expired" => {
                self.coordinator
                    .expire_resources(self.now, &mut self.effects);
                self.settle_effects()?;
                return Ok(Ok(()));
            }
            _ => None,
        };
        let Some(event) = event else {
            return Ok(Err(OrderDivergenceError(step.url.clone())));
        };
        self.coordinator.handle(self.now, event, &mut self.effects);
        self.settle_effects()?;
        Ok(Ok(()))
    }

    fn scripted(&mut self, step: &RenderEventRow) -> Option<Event> {
        let url = step.url.as_deref()?;
        let is_it =
            |(page, _): &(Box<FetchedPage>, UnrenderedPageSummary)| page.lease.url.as_str() == url;
        let place = self.renders.scripted.iter().position(is_it)?;
        let (page, shell) = self.renders.scripted.remove(place);
        Some(Event::Scripted { page, shell })
    }

    fn wanted(&mut self, step: &RenderEventRow) -> Option<Event> {
        let id = RenderId(step.page?);
        let page = self.renders.open.get_mut(&id)?;
        // If the log has no URL or no method, the request was refused.
        let method = step.url.as_ref().and(step.method.clone());
        let request = ResourceRequest {
            url: step.url.clone().unwrap_or_default(),
            method: method.unwrap_or_default(),
            kind: ResourceKind::named(step.kind.as_deref()?)?,
            // A replay sends nothing, so the body may be empty.
            post: step.has_post_body.then(|| PostBody {
                content_type: None,
                bytes: Bytes::new(),
            }),
        };
        let (answer, answered) = oneshot::channel();
        let name = match &step.url {
            Some(_) => RequestedResource::of(&page.url, &request),
            None => RequestedResource::unusable(step.method.clone(), request.kind),
        };
        page.requests.ask(name, answered);
        Some(Event::ResourceWanted(Box::new(PageResourceRequest {
            page: id,
            request,
            answer,
        })))
    }

    /// Gives up the pages in the browser, at the end of a run that was not killed.
    pub(super) fn give_up_renders(&mut self) {
        self.renders = ReplayedRenderings::default();
        self.coordinator
            .give_up_renders(self.now, &mut self.effects);
    }

    /// Ends a page with the logged result. Also renders the page again, and compares its DOM with
    /// the recorded one.
    fn rendered(&mut self, step: &RenderEventRow) -> Option<Event> {
        let id = RenderId(step.page?);
        let recorded = step.result.as_ref()?;
        let mut page = self.renders.open.remove(&id)?;
        page.requests.take_answers();
        let result = match &recorded.error {
            Some(name) => Err(RenderFailure::recorded(name)),
            None => self.as_recorded(&page, recorded),
        };
        Some(Event::Rendered { page: id, result })
    }

    fn as_recorded(
        &mut self,
        page: &OpenPage,
        recorded: &RenderResult,
    ) -> Result<(RenderedPage, VisibleContentSize), RenderFailure> {
        let mut answers = RecordedOrderAnswerer::new(&page.url, &page.requests);
        let at = (&page.url, page.fetched);
        let again = self.rerender.render(at, &page.document, &mut answers);
        let archived = self.answers.crawl.dom(&page.url, page.fetched);
        if let Some(archived) = archived {
            let unknown = answers.unknown.as_ref();
            let digest = &archived.digest;
            self.rerender
                .compare(&page.url, digest, again.as_ref(), unknown);
        }
        let dom = archived.and_then(|archived| self.answers.crawl.read_dom(&page.url, archived));
        let dom = match (dom, again) {
            (Some(dom), _) => dom,
            (None, Some(again)) => again?.dom,
            (None, None) => return Err(RenderFailure::no_browser("the archive has no DOM")),
        };
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let size = VisibleContentSize {
            letters: count(recorded.letters),
            links: count(recorded.links),
        };
        let page = RenderedPage {
            dom,
            page_time: Duration::from_millis(recorded.page_ms),
            withheld: recorded.withheld,
            navigation: recorded.navigation.clone(),
            screenshot: None,
        };
        Ok((page, size))
    }

    /// Renders pages if the replay does not follow `state/order.jsonl`. A page is rendered again
    /// until its requests get the same answers from the loop as during the last rendering. Does
    /// nothing while the replay follows the order.
    pub(super) fn render_freely(&mut self) {
        self.renders.take_answers();
        if self.following.is_some() {
            return;
        }
        while let Some((page, shell)) = self.renders.scripted.pop() {
            let event = Event::Scripted { page, shell };
            self.coordinator.handle(self.now, event, &mut self.effects);
        }
        while let Some(id) = self.renders.first_ready()
            && let Some(mut page) = self.renders.open.remove(&id)
        {
            let is_final = page.renderings >= MAX_RENDERINGS;
            let rendering = page.last_rendering.take();
            let agreed =
                rendering.filter(|rendering| is_final || rendering.agrees_with(&page.requests));
            match agreed {
                Some(rendering) => {
                    let result = self.free_result(&page, rendering.result);
                    let event = Event::Rendered { page: id, result };
                    self.coordinator.handle(self.now, event, &mut self.effects);
                }
                None => {
                    let rendering = self.render_tentatively(id, &mut page);
                    page.last_rendering = Some(rendering);
                    page.renderings += 1;
                    self.renders.open.insert(id, page);
                    self.renders.take_answers();
                }
            }
        }
    }

    /// Renders a page with the answers known so far, and passes its new requests to the loop.
    fn render_tentatively(&mut self, id: RenderId, page: &mut OpenPage) -> TentativeRendering {
        let archived = |url: &CanonicalUrl| self.answers.usual_answer(url);
        let mut known = KnownResourceAnswerer::new(&page.url, &page.requests, &archived);
        let at = (&page.url, page.fetched);
        let result = self.rerender.render(at, &page.document, &mut known);
        let requests = known.answered;
        let mut answers = Vec::new();
        for (place, request, answer) in requests {
            let place = place.unwrap_or_else(|| {
                let (sender, answered) = oneshot::channel();
                let name = RequestedResource::of(&page.url, &request);
                page.requests.ask(name, answered);
                let wanted = Event::ResourceWanted(Box::new(PageResourceRequest {
                    page: id,
                    request,
                    answer: sender,
                }));
                self.coordinator.handle(self.now, wanted, &mut self.effects);
                page.requests.count() - 1
            });
            answers.push((place, answer));
        }
        TentativeRendering { result, answers }
    }

    /// Returns the result of a page. Without a browser, this is the last archived DOM.
    fn free_result(
        &mut self,
        page: &OpenPage,
        result: Option<Result<RenderedPage, RenderFailure>>,
    ) -> Result<(RenderedPage, VisibleContentSize), RenderFailure> {
        let crawl = &self.answers.crawl;
        let same_fetch = crawl.dom(&page.url, page.fetched);
        let same_fetch = same_fetch.filter(|_| self.answers.is_as_recorded);
        let archived = same_fetch.or(crawl.last_dom(&page.url));
        let compared = match result {
            Some(_) => same_fetch,
            None => archived,
        };
        if let Some(archived) = compared {
            let digest = &archived.digest;
            self.rerender
                .compare(&page.url, digest, result.as_ref(), None);
        }
        let rendered = match result {
            Some(result) => result?,
            None => {
                let dom = archived.and_then(|dom| crawl.read_dom(&page.url, dom));
                RenderedPage {
                    dom: dom.ok_or_else(|| RenderFailure::no_browser("the archive has no DOM"))?,
                    page_time: Duration::from_millis(archived.map_or(0, |dom| dom.page_ms)),
                    withheld: 0,
                    navigation: None,
                    screenshot: None,
                }
            }
        };
        let size = VisibleContentSize::of_dom(&rendered.dom);
        Ok((rendered, size))
    }
}
