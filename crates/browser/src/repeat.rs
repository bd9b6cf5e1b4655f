//! The requests of a page that may be rendered a second time.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::{AnswerFuture, PageAnswer, PageRequests, RequestKind, WantedRequest};

/// Passes on the requests of a page and keeps the answers. After [`repeat`](Self::repeat) the same
/// requests get the same answers, so that none is sent twice.
pub(crate) struct RepeatableRequests {
    requests: Arc<dyn PageRequests>,
    answers: Arc<Answers>,
    is_repeat: AtomicBool,
}

type Key = (RequestKind, String, String, Option<Bytes>);

/// The answers to equal requests, in order.
type Answers = Mutex<HashMap<Key, VecDeque<PageAnswer>>>;

impl RepeatableRequests {
    pub(crate) fn new(requests: Arc<dyn PageRequests>) -> RepeatableRequests {
        RepeatableRequests {
            requests,
            answers: Arc::default(),
            is_repeat: AtomicBool::new(false),
        }
    }

    /// From now on, repeats the answers given so far. Other requests are still passed on.
    pub(crate) fn repeat(&self) {
        self.is_repeat.store(true, Ordering::Relaxed);
    }
}

impl PageRequests for RepeatableRequests {
    fn request(&self, wanted: WantedRequest) -> AnswerFuture {
        let (method, url) = (wanted.method.clone(), wanted.url.clone());
        let key = (wanted.kind, method, url, wanted.body.clone());
        if self.is_repeat.load(Ordering::Relaxed) {
            let repeated = lock(&self.answers)
                .get_mut(&key)
                .and_then(VecDeque::pop_front);
            return match repeated {
                Some(answer) => Box::pin(async { answer }),
                None => self.requests.request(wanted),
            };
        }
        let (answer, answers) = (self.requests.request(wanted), Arc::clone(&self.answers));
        Box::pin(async move {
            let answer = answer.await;
            let mut answers = lock(&answers);
            answers.entry(key).or_default().push_back(answer.clone());
            answer
        })
    }
}

fn lock(answers: &Answers) -> MutexGuard<'_, HashMap<Key, VecDeque<PageAnswer>>> {
    // The map is valid even if another thread panicked while it held the lock.
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}
