//! Commits pages in the order of the recorded crawl's rows, which is the order in which that
//! crawl's reader threads finished.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crawl_scheduler::Tick;

use super::recorded_crawl::key;
use crate::messages::WriterMessage;

/// The maximum time that a page waits for pages with earlier rows.
const MAX_ORDER_WAIT: Duration = Duration::from_secs(1);

/// Pages that wait for earlier pages, by their index in the recorded crawl's order.
#[derive(Default)]
pub(super) struct PageCommitQueue {
    places: HashMap<u64, usize>,
    /// The index of the next page to commit.
    next: usize,
    waiting: BTreeMap<usize, WriterMessage>,
    since: Option<Tick>,
}

impl PageCommitQueue {
    pub(super) fn new(places: HashMap<u64, usize>) -> PageCommitQueue {
        PageCommitQueue {
            places,
            ..PageCommitQueue::default()
        }
    }

    /// Takes a message for the writer, and passes on all messages that no longer have to wait.
    pub(super) fn take(&mut self, now: Tick, message: WriterMessage, out: &mut Vec<WriterMessage>) {
        match self.place(&message) {
            Some(place) if place > self.next => {
                self.waiting.insert(place, message);
                self.since.get_or_insert(now);
            }
            place => {
                out.push(message);
                if place == Some(self.next) {
                    self.next += 1;
                    self.hand_on_next(now, out);
                }
            }
        }
    }

    /// Returns the index of a page's row in the recorded crawl's rows. `None` if the message isn't
    /// a page, or the recorded crawl has no such row.
    pub(super) fn place(&self, message: &WriterMessage) -> Option<usize> {
        let url = match message {
            WriterMessage::Page(page) => &page.visit.lease.url,
            WriterMessage::Unanswered(visit) => &visit.lease.url,
            _ => return None,
        };
        self.places.get(&key(url.as_str())).copied()
    }

    fn hand_on_next(&mut self, now: Tick, out: &mut Vec<WriterMessage>) {
        while let Some(message) = self.waiting.remove(&self.next) {
            out.push(message);
            self.next += 1;
        }
        self.since = (!self.waiting.is_empty()).then_some(now);
    }

    /// Returns when the waiting pages are passed on even if pages with earlier rows are still
    /// missing.
    pub(super) fn ends(&self) -> Option<Tick> {
        self.since.map(|since| since + MAX_ORDER_WAIT)
    }

    /// Passes on all waiting pages.
    pub(super) fn release(&mut self, out: &mut Vec<WriterMessage>) {
        while let Some((place, message)) = self.waiting.pop_first() {
            out.push(message);
            self.next = place + 1;
        }
        self.since = None;
    }
}
