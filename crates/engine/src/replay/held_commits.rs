//! The commits that the crawl had not made yet when it chose a page: each waits until a request was
//! chosen after its commit.

use std::collections::VecDeque;

use crawl_archive::rows::AfterCommits;

use crate::messages::WriterMessage;

/// Messages that wait for their commit, each with its number in the order of their coming.
#[derive(Default)]
pub(super) struct HeldCommits {
    /// The commits that the requests to come were chosen after.
    levels: VecDeque<AfterCommits>,
    pages: VecDeque<(u64, WriterMessage)>,
    others: VecDeque<(u64, WriterMessage)>,
    /// The commits that were handed on.
    done: AfterCommits,
    came: u64,
}

impl HeldCommits {
    pub(super) fn new(levels: Vec<AfterCommits>) -> HeldCommits {
        HeldCommits {
            levels: levels.into(),
            ..HeldCommits::default()
        }
    }

    /// Returns whether what comes is to wait.
    pub(super) fn holds(&self) -> bool {
        !self.levels.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.others.is_empty()
    }

    /// Takes a message that changes a queue: a page with a row, or another.
    pub(super) fn take(&mut self, is_page: bool, message: WriterMessage) {
        self.came += 1;
        let queue = match is_page {
            true => &mut self.pages,
            false => &mut self.others,
        };
        queue.push_back((self.came, message));
    }

    /// A request for a page was chosen.
    pub(super) fn chosen(&mut self) {
        self.levels.pop_front();
    }

    /// Returns whether the next request was chosen after a page that has not come.
    pub(super) fn lacks_pages(&self) -> bool {
        let there = self.done.pages + self.pages.len() as u64;
        self.levels.front().is_some_and(|level| level.pages > there)
    }

    /// Hands on what the next request was chosen after, and where no more was chosen, all.
    pub(super) fn hand_on(&mut self, out: &mut Vec<WriterMessage>) {
        let level = self.levels.front().copied().unwrap_or(AfterCommits {
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

    /// Hands on the next page. Says whether there is one.
    pub(super) fn hand_on_page(&mut self, out: &mut Vec<WriterMessage>) -> bool {
        let page = self.pages.pop_front();
        self.done.pages += u64::from(page.is_some());
        let is_there = page.is_some();
        out.extend(page.map(|(_, message)| message));
        is_there
    }

    /// Hands on all, since the replay does not follow the records any more.
    pub(super) fn give_up(&mut self, out: &mut Vec<WriterMessage>) {
        self.levels.clear();
        self.hand_on(out);
    }
}
