//! Holds back messages for the writer until the replay has requested the pages that the recorded
//! crawl had requested before it committed these messages.

use std::collections::VecDeque;

use crawl_archive::rows::CommitCountsBeforeRequest;

use crate::messages::WriterMessage;

/// Messages that wait for their commit, numbered by arrival.
#[derive(Default)]
pub(super) struct HeldReplayMessages {
    /// For each page request of the recorded crawl, how much that crawl had committed when it chose
    /// the page. Contains only the pages that the replay has not requested yet, in order.
    levels: VecDeque<CommitCountsBeforeRequest>,
    pages: VecDeque<(u64, WriterMessage)>,
    others: VecDeque<(u64, WriterMessage)>,
    /// How many messages were passed on so far.
    done: CommitCountsBeforeRequest,
    came: u64,
}

impl HeldReplayMessages {
    pub(super) fn new(levels: Vec<CommitCountsBeforeRequest>) -> HeldReplayMessages {
        HeldReplayMessages {
            levels: levels.into(),
            ..HeldReplayMessages::default()
        }
    }

    /// Returns whether messages must be held.
    pub(super) fn holds(&self) -> bool {
        !self.levels.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.others.is_empty()
    }

    /// Holds a message that settles or admits URLs. `is_page` is true for a page that has a row.
    pub(super) fn take(&mut self, is_page: bool, message: WriterMessage) {
        self.came += 1;
        let queue = match is_page {
            true => &mut self.pages,
            false => &mut self.others,
        };
        queue.push_back((self.came, message));
    }

    /// Records that the replay requested its next page.
    pub(super) fn chosen(&mut self) {
        self.levels.pop_front();
    }

    /// Returns whether the replay still lacks pages that the recorded crawl had committed before
    /// its next request for a page.
    pub(super) fn lacks_pages(&self) -> bool {
        let there = self.done.pages + self.pages.len() as u64;
        self.levels.front().is_some_and(|level| level.pages > there)
    }

    /// Passes on the messages that the recorded crawl had committed before its next request for a
    /// page. Passes on everything if no such request is left.
    pub(super) fn hand_on(&mut self, out: &mut Vec<WriterMessage>) {
        let level = self
            .levels
            .front()
            .copied()
            .unwrap_or(CommitCountsBeforeRequest {
                pages: u64::MAX,
                others: u64::MAX,
            });
        let mut due = Vec::new();
        for (queue, done, level) in [
            (&mut self.pages, &mut self.done.pages, level.pages),
            (&mut self.others, &mut self.done.others, level.others),
        ] {
            while *done < level
                && let Some(message) = queue.pop_front()
            {
                *done += 1;
                due.push(message);
            }
        }
        due.sort_unstable_by_key(|(came, _)| *came);
        out.extend(due.into_iter().map(|(_, message)| message));
    }

    /// Passes on the next held page. Returns false if no page is held.
    pub(super) fn hand_on_page(&mut self, out: &mut Vec<WriterMessage>) -> bool {
        let page = self.pages.pop_front();
        self.done.pages += u64::from(page.is_some());
        let is_some = page.is_some();
        out.extend(page.map(|(_, message)| message));
        is_some
    }

    /// Passes on everything. Called when the replay stops following the records.
    pub(super) fn give_up(&mut self, out: &mut Vec<WriterMessage>) {
        self.levels.clear();
        self.hand_on(out);
    }
}
