//! Renders pages again in a browser, whose requests are answered from the archive.

use std::sync::Arc;
use std::time::Duration;

use crawl_archive::DigestAlgorithm;
use crawl_scheduler::Tick;
use crawl_weburl::{CanonicalUrl, canonicalize};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use crate::config::Config;
use crate::error::EngineError;
use crate::render::{
    PageToRender, RenderFailure, RenderedPage, Renderer, ResourceAnswerSender, ResourceKind,
    ResourceRequest, ResourceRequestSender, UndecodedResponse,
};

/// How long answers are held back if a page does not make the recorded requests. Such a page
/// differs from the recorded one in any case, so this time affects only the duration of the
/// replay.
const PATIENCE: Duration = Duration::from_secs(10);

/// Maximum pages with another DOM that a replay lists.
/// Beyond the limit: only counted.
const MAX_DIFFERENCES: usize = 1_000;

/// The pages of a crawl that a replay rendered again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RerenderResult {
    /// Pages with the recorded DOM.
    pub same: u64,
    /// Pages with another DOM, or that could not be rendered.
    pub different: u64,
    /// The first different pages, in the order of the recorded crawl.
    pub differences: Vec<DifferentlyRenderedPage>,
    /// Rendered pages that were only read from the archive, because no browser could be started.
    pub from_archive: u64,
    /// Why no browser could be started.
    pub no_browser: Option<String>,
}

/// A page whose DOM is not the recorded one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferentlyRenderedPage {
    /// The page.
    pub url: CanonicalUrl,
    /// The digest of the recorded DOM.
    pub recorded: String,
    /// The digest of the new DOM, or the name of the failure.
    pub again: Result<String, &'static str>,
    /// The first resource that the page requested now, but not in the crawl.
    pub requested: Option<String>,
}

/// A resource that a page requested. All requests with an unusable URL count as the same resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestedResource {
    url: Option<CanonicalUrl>,
    method: String,
    kind: ResourceKind,
}

impl RequestedResource {
    pub(super) fn of(page: &CanonicalUrl, request: &ResourceRequest) -> RequestedResource {
        RequestedResource {
            url: canonicalize(Some(page), &request.url).ok(),
            method: request.method.clone(),
            kind: request.kind,
        }
    }

    /// Names a resource whose URL is unusable, or unknown because a secret was in it.
    pub(super) fn unusable(method: Option<String>, kind: ResourceKind) -> RequestedResource {
        RequestedResource {
            url: None,
            method: method.unwrap_or_default(),
            kind,
        }
    }

    pub(super) fn url(&self) -> Option<&CanonicalUrl> {
        self.url.as_ref()
    }

    /// Returns whether the crawl may have sent a request for this resource.
    pub(super) fn may_be_sent(&self) -> bool {
        self.method == "GET" && self.kind != ResourceKind::Report
    }
}

/// Answers the requests of one page.
pub(super) trait ResourceAnswerer {
    fn answer(&mut self, request: ResourceRequest, answer: ResourceAnswerSender);

    /// Returns whether the page waits for answers that are held back.
    fn holds_back(&self) -> bool {
        false
    }

    /// Stops holding back answers.
    fn release(&mut self) {}
}

/// The browser of a replay, and the comparison of its pages with the recorded ones.
pub(super) struct Rerenderer {
    /// The browser; `None` if the crawl renders nothing, or no browser could be started.
    renderer: Option<Arc<dyn Renderer>>,
    /// A runtime with one thread, so that answers reach the page in order.
    runtime: Runtime,
    pub(super) pages: RerenderResult,
}

impl Rerenderer {
    pub(super) fn new(config: &Config) -> Result<Rerenderer, EngineError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        Ok(Rerenderer {
            renderer: config.render.as_ref().map(|it| Arc::clone(&it.renderer)),
            runtime: runtime.map_err(EngineError::disk(&config.output))?,
            pages: RerenderResult::default(),
        })
    }

    /// Renders a page that was fetched at this time with this answer. `None` without a browser.
    pub(super) fn render(
        &mut self,
        (url, fetched): (&CanonicalUrl, Tick),
        answer: &UndecodedResponse,
        answers: &mut dyn ResourceAnswerer,
    ) -> Option<Result<RenderedPage, RenderFailure>> {
        let renderer = Arc::clone(self.renderer.as_ref()?);
        let page = PageToRender::of(url.to_string(), fetched, answer.clone());
        let rendered = self.runtime.block_on(render(&*renderer, page, answers));
        match rendered {
            Err(failure) if failure.name == RenderFailure::NO_BROWSER => {
                self.renderer = None;
                self.pages.no_browser = Some(failure.detail);
                None
            }
            rendered => Some(rendered),
        }
    }

    /// Compares the DOM of a page with the recorded one. `requested` is a resource that only the
    /// new page requested.
    pub(super) fn compare(
        &mut self,
        url: &CanonicalUrl,
        recorded: &str,
        again: Option<&Result<RenderedPage, RenderFailure>>,
        requested: Option<&RequestedResource>,
    ) {
        let Some(again) = again else {
            self.pages.from_archive += 1;
            return;
        };
        let again = match again {
            Ok(page) => Ok(DigestAlgorithm::default().of(&[page.dom.as_bytes()])),
            Err(failure) => Err(failure.name),
        };
        if again.as_deref() == Ok(recorded) {
            self.pages.same += 1;
            return;
        }
        self.pages.different += 1;
        if self.pages.differences.len() < MAX_DIFFERENCES {
            self.pages.differences.push(DifferentlyRenderedPage {
                url: url.clone(),
                recorded: recorded.to_owned(),
                again,
                requested: requested.and_then(|name| Some(name.url.as_ref()?.to_string())),
            });
        }
    }
}

async fn render(
    renderer: &dyn Renderer,
    page: PageToRender,
    answers: &mut dyn ResourceAnswerer,
) -> Result<RenderedPage, RenderFailure> {
    let (sender, mut wanted) = mpsc::unbounded_channel();
    let requests = ResourceRequestSender(Arc::new(move |request, answer| {
        // If sending fails, the page is finished. The answer's sender is then dropped, which
        // refuses the request.
        let _ = sender.send((request, answer));
    }));
    let mut rendering = renderer.render(page, requests);
    loop {
        tokio::select! {
            biased;
            Some((request, answer)) = wanted.recv() => answers.answer(request, answer),
            rendered = &mut rendering => return rendered,
            () = sleep(PATIENCE), if answers.holds_back() => answers.release(),
        }
    }
}

/// The requests of a page and their answers, in the order that the crawl loop handled them.
#[derive(Debug, Default)]
pub(super) struct RecordedPageRequests {
    asked: Vec<RequestOfPage>,
    /// Requests and answers in the order in which they were handled. Each contains the index of the
    /// request in `asked`.
    events: Vec<PageEvent>,
}

#[derive(Debug)]
struct RequestOfPage {
    name: RequestedResource,
    answer: AnswerState,
}

#[derive(Debug)]
enum AnswerState {
    Awaited(oneshot::Receiver<Option<UndecodedResponse>>),
    Came(Option<UndecodedResponse>),
}

#[derive(Clone, Copy, Debug)]
enum PageEvent {
    Asked(usize),
    Answered(usize),
}

impl RecordedPageRequests {
    /// Adds a request whose answer comes through `answered`.
    pub(super) fn ask(
        &mut self,
        name: RequestedResource,
        answered: oneshot::Receiver<Option<UndecodedResponse>>,
    ) {
        self.events.push(PageEvent::Asked(self.asked.len()));
        self.asked.push(RequestOfPage {
            name,
            answer: AnswerState::Awaited(answered),
        });
    }

    /// Records the answers that have arrived. Call this often, because it records the order of the
    /// answers.
    pub(super) fn take_answers(&mut self) {
        for (place, asked) in self.asked.iter_mut().enumerate() {
            if let AnswerState::Awaited(answered) = &mut asked.answer {
                let answer = match answered.try_recv() {
                    Ok(answer) => answer,
                    Err(oneshot::error::TryRecvError::Closed) => None,
                    Err(oneshot::error::TryRecvError::Empty) => continue,
                };
                asked.answer = AnswerState::Came(answer);
                self.events.push(PageEvent::Answered(place));
            }
        }
    }

    /// Stops waiting for the answer to the first open request for a URL.
    pub(super) fn drop_awaited(&mut self, url: &str) {
        let open = self.asked.iter_mut().find(|asked| {
            let is_it = asked.name.url().is_some_and(|other| other.as_str() == url);
            is_it && matches!(asked.answer, AnswerState::Awaited(_))
        });
        if let Some(asked) = open {
            asked.answer = AnswerState::Came(None);
        }
    }

    /// Returns whether any request still waits for its answer.
    pub(super) fn are_awaited(&self) -> bool {
        let is_awaited = |asked: &RequestOfPage| matches!(asked.answer, AnswerState::Awaited(_));
        self.asked.iter().any(is_awaited)
    }

    pub(super) fn count(&self) -> usize {
        self.asked.len()
    }

    pub(super) fn name(&self, place: usize) -> &RequestedResource {
        &self.asked[place].name
    }

    /// Returns the answer to a request. `None` if it was refused or has not come yet.
    pub(super) fn answer(&self, place: usize) -> Option<&UndecodedResponse> {
        match &self.asked[place].answer {
            AnswerState::Came(answer) => answer.as_ref(),
            AnswerState::Awaited(_) => None,
        }
    }
}

/// Answers the requests of a page in the recorded order. An answer is held back until the page has
/// made all requests that precede the answer in the record.
pub(super) struct RecordedOrderAnswerer<'r> {
    page: &'r CanonicalUrl,
    recorded: &'r RecordedPageRequests,
    /// The state of each recorded request.
    slots: Vec<AnswerSlot>,
    /// The index of the next event to wait for.
    next: usize,
    /// Whether the page differs from the recorded one, so that its requests are answered at once.
    is_free: bool,
    /// The first request that is not recorded.
    pub(super) unknown: Option<RequestedResource>,
}

enum AnswerSlot {
    /// Not requested yet.
    Open,
    Waits(ResourceAnswerSender),
    Answered,
}

impl<'r> RecordedOrderAnswerer<'r> {
    pub(super) fn new(
        page: &'r CanonicalUrl,
        recorded: &'r RecordedPageRequests,
    ) -> RecordedOrderAnswerer<'r> {
        RecordedOrderAnswerer {
            page,
            recorded,
            slots: (0..recorded.count()).map(|_| AnswerSlot::Open).collect(),
            next: 0,
            is_free: false,
            unknown: None,
        }
    }

    /// Passes on the answers that come next in the recorded order.
    fn advance(&mut self) {
        while let Some(event) = self.recorded.events.get(self.next) {
            match *event {
                PageEvent::Asked(place) => {
                    if matches!(self.slots[place], AnswerSlot::Open) && !self.is_free {
                        return;
                    }
                }
                PageEvent::Answered(place) => self.send(place),
            }
            self.next += 1;
        }
    }

    /// Sends an answer without its content coding, because decoding on another thread could change
    /// the order of answers.
    fn send(&mut self, place: usize) {
        let slot = &mut self.slots[place];
        if matches!(slot, AnswerSlot::Waits(_))
            && let AnswerSlot::Waits(sender) = std::mem::replace(slot, AnswerSlot::Answered)
        {
            let answer = self.recorded.answer(place).cloned();
            let _ = sender.send(answer.map(UndecodedResponse::without_coding));
        }
    }
}

impl ResourceAnswerer for RecordedOrderAnswerer<'_> {
    fn answer(&mut self, request: ResourceRequest, answer: ResourceAnswerSender) {
        let name = RequestedResource::of(self.page, &request);
        let is_it = |place: &usize| {
            matches!(self.slots[*place], AnswerSlot::Open) && *self.recorded.name(*place) == name
        };
        match (0..self.slots.len()).find(is_it) {
            Some(place) => {
                self.slots[place] = AnswerSlot::Waits(answer);
                match self.is_free {
                    true => self.send(place),
                    false => self.advance(),
                }
            }
            None => {
                let _ = answer.send(None);
                self.unknown.get_or_insert(name);
                self.release();
            }
        }
    }

    fn holds_back(&self) -> bool {
        let mut slots = self.slots.iter();
        !self.is_free && slots.any(|slot| matches!(slot, AnswerSlot::Waits(_)))
    }

    fn release(&mut self) {
        self.is_free = true;
        self.advance();
        for place in 0..self.slots.len() {
            self.send(place);
        }
    }
}

/// Answers the requests of a page with the answers that the loop gave to the same requests before.
/// Any other request gets the archived answer for its URL.
pub(super) struct KnownResourceAnswerer<'r> {
    page: &'r CanonicalUrl,
    known: &'r RecordedPageRequests,
    archived: &'r dyn Fn(&CanonicalUrl) -> Option<UndecodedResponse>,
    used: Vec<bool>,
    /// The requests that the page made, with their answers. If a request is among the known
    /// requests, its index there is given.
    pub(super) answered: Vec<(Option<usize>, ResourceRequest, Option<UndecodedResponse>)>,
}

impl<'r> KnownResourceAnswerer<'r> {
    pub(super) fn new(
        page: &'r CanonicalUrl,
        known: &'r RecordedPageRequests,
        archived: &'r dyn Fn(&CanonicalUrl) -> Option<UndecodedResponse>,
    ) -> KnownResourceAnswerer<'r> {
        KnownResourceAnswerer {
            page,
            known,
            archived,
            used: vec![false; known.count()],
            answered: Vec::new(),
        }
    }
}

impl ResourceAnswerer for KnownResourceAnswerer<'_> {
    fn answer(&mut self, request: ResourceRequest, answer: ResourceAnswerSender) {
        let name = RequestedResource::of(self.page, &request);
        let is_it = |place: &usize| !self.used[*place] && *self.known.name(*place) == name;
        let place = (0..self.used.len()).find(is_it);
        let stored = match place {
            Some(place) => {
                self.used[place] = true;
                self.known.answer(place).cloned()
            }
            None => {
                let url = name.url().filter(|_| name.may_be_sent());
                url.and_then(|url| (self.archived)(url))
            }
        };
        self.answered.push((place, request, stored.clone()));
        let _ = answer.send(stored.map(UndecodedResponse::without_coding));
    }
}

/// Returns whether two answers look the same to a page.
pub(super) fn are_same(one: Option<&UndecodedResponse>, other: Option<&UndecodedResponse>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            let shown = |answer: &'_ UndecodedResponse| (answer.status, answer.is_own);
            shown(one) == shown(other) && one.headers == other.headers && one.body == other.body
        }
        (None, None) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crawl_weburl::{CanonicalUrl, canonicalize};
    use http::HeaderMap;
    use tokio::sync::oneshot;

    use super::{RecordedOrderAnswerer, RecordedPageRequests, RequestedResource, ResourceAnswerer};
    use crate::render::{ResourceKind, ResourceRequest, UndecodedResponse};

    fn page() -> CanonicalUrl {
        canonicalize(None, "http://a.example/").unwrap()
    }

    fn request(path: &str) -> ResourceRequest {
        ResourceRequest {
            url: format!("http://a.example{path}"),
            method: "GET".to_owned(),
            kind: ResourceKind::Data,
            post: None,
        }
    }

    /// Requests for `/a` and `/b`. The answer to `/b` came first.
    fn recorded() -> RecordedPageRequests {
        let mut recorded = RecordedPageRequests::default();
        let [a, b] = ["/a", "/b"].map(|path| {
            let (answer, answered) = oneshot::channel();
            recorded.ask(RequestedResource::of(&page(), &request(path)), answered);
            answer
        });
        for (answer, body) in [(b, "b"), (a, "a")] {
            let stored = UndecodedResponse {
                status: 200,
                headers: HeaderMap::new(),
                body: body.into(),
                is_own: false,
                is_private: false,
            };
            answer.send(Some(stored)).unwrap();
            recorded.take_answers();
        }
        assert!(!recorded.are_awaited());
        recorded
    }

    type Answered = oneshot::Receiver<Option<UndecodedResponse>>;

    fn ask(answers: &mut RecordedOrderAnswerer<'_>, path: &str) -> Answered {
        let (answer, answered) = oneshot::channel();
        answers.answer(request(path), answer);
        answered
    }

    fn body(answered: &mut Answered) -> Option<String> {
        let body = answered.try_recv().ok()??.body;
        Some(String::from_utf8_lossy(&body).into_owned())
    }

    #[test]
    fn answers_wait_for_the_requests_that_came_before_them() {
        for paths in [["/a", "/b"], ["/b", "/a"]] {
            let (page, recorded) = (page(), recorded());
            let mut answers = RecordedOrderAnswerer::new(&page, &recorded);
            let mut first = ask(&mut answers, paths[0]);
            assert!(first.try_recv().is_err() && answers.holds_back());
            let mut second = ask(&mut answers, paths[1]);
            assert!(!answers.holds_back() && answers.unknown.is_none());
            let bodies = [body(&mut first), body(&mut second)];
            let expected = paths.map(|path| Some(path[1..].to_owned()));
            assert_eq!(bodies, expected);
        }
    }

    #[test]
    fn another_request_is_refused_and_ends_the_wait() {
        let (page, recorded) = (page(), recorded());
        let mut answers = RecordedOrderAnswerer::new(&page, &recorded);
        let mut first = ask(&mut answers, "/a");
        let mut other = ask(&mut answers, "/c");
        assert_eq!(body(&mut first).as_deref(), Some("a"));
        assert!(other.try_recv().unwrap().is_none());
        let unknown = answers.unknown.as_ref().and_then(RequestedResource::url);
        assert_eq!(unknown.map(CanonicalUrl::path), Some("/c"));
        assert_eq!(body(&mut ask(&mut answers, "/b")).as_deref(), Some("b"));
        // The recorded page made this request only once.
        assert!(ask(&mut answers, "/a").try_recv().unwrap().is_none());
    }

    #[test]
    fn a_page_that_lacks_a_request_gets_the_other_answers_in_the_end() {
        let (page, recorded) = (page(), recorded());
        let mut answers = RecordedOrderAnswerer::new(&page, &recorded);
        let mut first = ask(&mut answers, "/b");
        answers.release();
        assert_eq!(body(&mut first).as_deref(), Some("b"));
        assert!(!answers.holds_back());
    }

    #[test]
    fn a_dropped_request_gets_no_answer() {
        let mut recorded = RecordedPageRequests::default();
        let (answer, answered) = oneshot::channel();
        recorded.ask(RequestedResource::of(&page(), &request("/a")), answered);
        recorded.drop_awaited("http://a.example/b");
        assert!(recorded.are_awaited() && !answer.is_closed());
        recorded.drop_awaited("http://a.example/a");
        assert!(!recorded.are_awaited() && answer.is_closed());
    }
}
