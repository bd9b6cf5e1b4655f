//! Tests of a slow reader, and of a run whose time is over before the reader has read all pages.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crawl_frontier::MemoryFrontier;
use crawl_scheduler::Tick;

use super::{HOSTS, PAGES, PageCosts, START, SimulationResult, config, play_pages};
use crate::messages::Event;
use crate::messages::page_pipeline_stages::FetchedPage;
use crate::revisit::visit::Round;
use crate::summary::EndReason;

/// A reader that takes a fixed time for each page.
pub(super) struct SlowReader {
    pub(super) takes: Duration,
    pub(super) waiting: VecDeque<Box<FetchedPage>>,
    pub(super) gives_back: bool,
    begun: Option<(Tick, Box<FetchedPage>)>,
    /// The maximum number of bytes that waited for the reader at any time.
    pub(super) most_waiting: usize,
    pub(super) given_back: BTreeSet<String>,
}

/// The next step of the slow reader: report an event to the crawl loop, or read a page.
pub(super) enum SlowReaderStep {
    Tell(Box<Event>),
    Read(Box<FetchedPage>),
}

impl SlowReader {
    pub(super) fn new(takes: Duration) -> SlowReader {
        SlowReader {
            takes,
            waiting: VecDeque::new(),
            gives_back: false,
            begun: None,
            most_waiting: 0,
            given_back: BTreeSet::new(),
        }
    }

    pub(super) fn take(&mut self, page: Box<FetchedPage>) {
        self.waiting.push_back(page);
        let bytes = self.waiting.iter().map(|page| page.exchange.body.len());
        self.most_waiting = self.most_waiting.max(bytes.sum());
    }

    /// Returns the next step that is possible at this time. Mimics the threads of the reader pool.
    pub(super) fn step(&mut self, now: Tick) -> Option<SlowReaderStep> {
        // When the reader gives pages back, it also gives back the page that it is reading.
        let is_done = |(ends, _): &mut (Tick, _)| *ends <= now || self.gives_back;
        if let Some((_, page)) = self.begun.take_if(is_done) {
            return Some(SlowReaderStep::Read(page));
        }
        if self.begun.is_some() {
            return None;
        }
        let page = self.waiting.pop_front()?;
        if self.gives_back {
            self.given_back.insert(page.lease.url.to_string());
            return Some(SlowReaderStep::Tell(Box::new(Event::GivenBackUnread(page))));
        }
        let bytes = page.exchange.body.len() as u64;
        self.begun = Some((now + self.takes, page));
        Some(SlowReaderStep::Tell(Box::new(Event::ReadingBegan {
            bytes,
        })))
    }

    pub(super) fn ends(&self) -> Option<Tick> {
        self.begun.as_ref().map(|(ends, _)| *ends)
    }
}

#[test]
fn the_end_of_the_time_ends_a_run_behind_a_slow_reader() {
    let (time, takes) = (Duration::from_secs(100), Duration::from_secs(20));
    let frontier = Arc::new(MemoryFrontier::new());
    let run = |max_time: Option<Duration>, pages: PageCosts| -> SimulationResult {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(dir.path());
        config.budgets.max_time = max_time;
        // Commits are never late, so only the number of unread bytes holds requests back.
        config.commit_within = Duration::from_secs(3600);
        let frontier = Arc::clone(&frontier);
        play_pages(
            config,
            frontier,
            4,
            Round::first(0),
            &mut |_, _| Vec::new(),
            pages,
        )
    };
    let padding = 2 << 20;
    let first = run(Some(time), PageCosts { padding, takes });
    assert_eq!(first.ended, EndReason::Budget("max-time"));
    // The run ends promptly, because the page that was being read when the time was over is given
    // back.
    let end = START + time + Duration::from_millis(500);
    assert!(first.ended_at <= end, "{:?}", first.ended_at.since(START));
    let urls: Vec<_> = first
        .requests
        .iter()
        .map(|row| (row.start, &row.url, row.status))
        .collect();
    assert!(first.totals.pages >= 3, "{urls:#?}");
    // At most 4 MiB of pages wait for the reader, plus the pages in flight when this limit was
    // reached. Therefore only a few pages are fetched twice.
    assert!(
        first.most_waiting <= 4 * padding + (4 << 20),
        "{}",
        first.most_waiting
    );
    assert!(!first.given_back.is_empty());
    let second = run(None, PageCosts::default());
    assert_eq!(second.ended, EndReason::Finished);
    // Each page is settled in exactly one of the two runs, so none is lost.
    assert_eq!(first.totals.pages + second.totals.pages, HOSTS * PAGES);
    let asked_again = |url: &String| second.requests.iter().any(|row| row.url == **url);
    assert!(first.given_back.iter().all(asked_again));
}
