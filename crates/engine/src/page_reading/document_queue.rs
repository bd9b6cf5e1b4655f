//! A queue of documents that wait to be read in another process, shared fairly among hosts.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crawl_weburl::HostKey;

/// A queue of documents for the threads that read them. Clones share one queue.
///
/// At most `per_host` documents of a host are read at a time. Below that limit, the host with the
/// fewest documents being read is served first. Hosts with the same number take turns.
#[derive(Debug)]
pub(super) struct DocumentQueue<T> {
    shared: Arc<(Mutex<DocumentQueueState<T>>, Condvar)>,
    per_host: usize,
}

#[derive(Debug)]
struct DocumentQueueState<T> {
    /// Hosts with waiting documents, in serving order.
    hosts: VecDeque<(HostKey, VecDeque<T>)>,
    /// The number of documents being read, by host.
    running: HashMap<HostKey, usize>,
    is_closed: bool,
}

impl<T> Clone for DocumentQueue<T> {
    fn clone(&self) -> Self {
        DocumentQueue {
            shared: Arc::clone(&self.shared),
            per_host: self.per_host,
        }
    }
}

impl<T> DocumentQueue<T> {
    pub(super) fn new(per_host: usize) -> DocumentQueue<T> {
        let state = DocumentQueueState {
            hosts: VecDeque::new(),
            running: HashMap::new(),
            is_closed: false,
        };
        DocumentQueue {
            shared: Arc::new((Mutex::new(state), Condvar::new())),
            per_host: per_host.max(1),
        }
    }

    pub(super) fn push(&self, host: HostKey, document: T) {
        let mut state = self.lock();
        match state.hosts.iter_mut().find(|(of, _)| *of == host) {
            Some((_, waiting)) => waiting.push_back(document),
            None => state.hosts.push_back((host, VecDeque::from([document]))),
        }
        self.shared.1.notify_one();
    }

    /// Blocks until a document may be read, and removes it from the queue. Returns `None` once the
    /// queue is closed and empty. Call [`DocumentQueue::end`] when the document was read.
    pub(super) fn pop(&self) -> Option<(HostKey, T)> {
        let mut state = self.lock();
        loop {
            if let Some(next) = state.take_next(self.per_host) {
                return Some(next);
            }
            if state.is_closed && state.hosts.is_empty() {
                return None;
            }
            let woken = self.shared.1.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Records that a document of `host` is no longer being read.
    pub(super) fn end(&self, host: &HostKey) {
        let mut state = self.lock();
        if let Some(count) = state.running.get_mut(host) {
            *count -= 1;
            if *count == 0 {
                state.running.remove(host);
            }
        }
        self.shared.1.notify_all();
    }

    /// Closes the queue: threads that wait for documents end once it is empty.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.shared.1.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, DocumentQueueState<T>> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> DocumentQueueState<T> {
    fn take_next(&mut self, per_host: usize) -> Option<(HostKey, T)> {
        let running = |host: &HostKey| self.running.get(host).copied().unwrap_or(0);
        let hosts = self.hosts.iter().enumerate();
        let counts = hosts.map(|(place, (host, _))| (running(host), place));
        let (count, place) = counts.min()?;
        if count >= per_host {
            return None;
        }
        let (host, mut waiting) = self.hosts.remove(place)?;
        let document = waiting.pop_front()?;
        if !waiting.is_empty() {
            self.hosts.push_back((host.clone(), waiting));
        }
        *self.running.entry(host.clone()).or_default() += 1;
        Some((host, document))
    }
}

#[cfg(test)]
mod tests {
    use crawl_weburl::{HostKey, Origin};

    use super::DocumentQueue;

    fn host(name: &str) -> HostKey {
        let origin = Origin::parse(&format!("http://{name}.example"));
        origin.unwrap().host_key()
    }

    #[test]
    fn a_host_with_many_documents_does_not_occupy_all_threads() {
        let queue = DocumentQueue::new(2);
        for number in 0..9 {
            queue.push(host("a"), number);
        }
        let next = || queue.lock().take_next(2).map(|(_, number)| number);
        assert_eq!([next(), next(), next()], [Some(0), Some(1), None]);
        queue.push(host("b"), 20);
        queue.push(host("b"), 21);
        queue.push(host("c"), 30);
        // The host with the fewest documents being read comes first. Hosts with the same number
        // take turns.
        assert_eq!([next(), next(), next()], [Some(20), Some(30), Some(21)]);
        assert_eq!(next(), None);
        queue.end(&host("a"));
        assert_eq!([next(), next()], [Some(2), None]);
    }

    #[test]
    fn a_closed_queue_is_drained_first() {
        let queue = DocumentQueue::new(1);
        queue.push(host("a"), 1);
        queue.push(host("a"), 2);
        queue.close();
        for number in [1, 2] {
            assert_eq!(queue.pop(), Some((host("a"), number)));
            queue.end(&host("a"));
        }
        assert_eq!(queue.pop(), None);
    }
}
