//! Repeats the answers to a page's requests if the page is rendered a second time.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{
    InterceptedRequest, PageRequestFuture, PageRequestHandler, PageRequestResult, RequestKind,
};

/// Maximum bytes of bodies that are kept for a second rendering of a page. A request whose answer
/// wasn't kept is passed to the caller's handler again.
const MAX_KEPT_BYTES: usize = 32 << 20;

/// Passes on the requests of a page to the caller's handler, and keeps the answers to GET requests.
/// After a call of [`repeat`](Self::repeat), a GET request that was made before gets the kept
/// answer. Requests with other methods are refused, because the server may already have processed
/// them.
pub(crate) struct AnswerCachingRequestHandler {
    requests: Arc<dyn PageRequestHandler>,
    answers: Arc<Mutex<KeptAnswers>>,
    is_repeat: AtomicBool,
}

/// The kept answers by kind and URL of the request. If a request was made several times, its
/// answers are in order.
#[derive(Default)]
struct KeptAnswers {
    of: HashMap<(RequestKind, String), VecDeque<PageRequestResult>>,
    bytes: usize,
}

impl KeptAnswers {
    fn keep(&mut self, key: (RequestKind, String), answer: &PageRequestResult) {
        let bytes = match answer {
            PageRequestResult::Response { body, .. } => body.len(),
            PageRequestResult::Refused => 0,
        };
        if self.bytes + bytes <= MAX_KEPT_BYTES {
            self.bytes += bytes;
            self.of.entry(key).or_default().push_back(answer.clone());
        }
    }
}

impl AnswerCachingRequestHandler {
    pub(crate) fn new(requests: Arc<dyn PageRequestHandler>) -> AnswerCachingRequestHandler {
        AnswerCachingRequestHandler {
            requests,
            answers: Arc::default(),
            is_repeat: AtomicBool::new(false),
        }
    }

    /// Switches to the second rendering: a GET request gets the kept answer, or is passed on if
    /// none was kept. Other requests are refused.
    pub(crate) fn repeat(&self) {
        self.is_repeat.store(true, Ordering::Relaxed);
    }
}

impl PageRequestHandler for AnswerCachingRequestHandler {
    fn request(&self, wanted: InterceptedRequest) -> PageRequestFuture {
        let (is_get, is_repeat) = (
            wanted.method == "GET",
            self.is_repeat.load(Ordering::Relaxed),
        );
        let key = (wanted.kind, wanted.url.clone());
        match (is_get, is_repeat) {
            (false, false) => self.requests.request(wanted),
            (false, true) => Box::pin(async { PageRequestResult::Refused }),
            (true, true) => {
                let mut answers = lock(&self.answers);
                match answers.of.get_mut(&key).and_then(VecDeque::pop_front) {
                    Some(answer) => Box::pin(async { answer }),
                    None => self.requests.request(wanted),
                }
            }
            (true, false) => {
                let (answer, answers) = (self.requests.request(wanted), Arc::clone(&self.answers));
                Box::pin(async move {
                    let answer = answer.await;
                    lock(&answers).keep(key, &answer);
                    answer
                })
            }
        }
    }
}

fn lock(answers: &Mutex<KeptAnswers>) -> MutexGuard<'_, KeptAnswers> {
    // The answers are valid even if another thread panicked while it held the lock.
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use bytes::Bytes;

    use super::{AnswerCachingRequestHandler, MAX_KEPT_BYTES};
    use crate::{
        InterceptedRequest, PageRequestFuture, PageRequestHandler, PageRequestResult, RequestKind,
    };

    /// Records requests. The last path segment of a requested URL is the length of the answer.
    #[derive(Default)]
    struct Counted(Mutex<Vec<String>>);

    impl PageRequestHandler for Counted {
        fn request(&self, wanted: InterceptedRequest) -> PageRequestFuture {
            let length = wanted.url.rsplit('/').next().unwrap().parse().unwrap();
            let seen = format!("{} {}", wanted.method, wanted.url);
            self.0.lock().unwrap().push(seen);
            let body = Bytes::from(vec![0; length]);
            Box::pin(async {
                PageRequestResult::Response {
                    status: 200,
                    headers: Vec::new(),
                    body,
                }
            })
        }
    }

    fn wanted(method: &str, url: &str) -> InterceptedRequest {
        InterceptedRequest {
            url: url.to_owned(),
            method: method.to_owned(),
            kind: RequestKind::Fetch,
            headers: Vec::new(),
            body: None,
            is_frame: false,
        }
    }

    #[tokio::test]
    async fn a_second_rendering_repeats_answers_to_get_and_posts_nothing() {
        let counted = Arc::new(Counted::default());
        let requests = AnswerCachingRequestHandler::new(counted.clone());
        let long = format!("/long/{}", MAX_KEPT_BYTES);
        for (method, url) in [("GET", "/a/1"), ("POST", "/post/1"), ("GET", &long)] {
            requests.request(wanted(method, url)).await;
        }
        requests.repeat();
        let known = requests.request(wanted("GET", "/a/1")).await;
        assert!(matches!(
            known,
            PageRequestResult::Response { status: 200, .. }
        ));
        let post = requests.request(wanted("POST", "/post/1")).await;
        assert!(matches!(post, PageRequestResult::Refused));
        // An answer that is too long to keep must be requested again in the second rendering.
        requests.request(wanted("GET", &long)).await;
        let long = format!("GET {long}");
        let seen = counted.0.lock().unwrap().clone();
        assert_eq!(seen, ["GET /a/1", "POST /post/1", &long, &long]);
    }
}
