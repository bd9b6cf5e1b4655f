//! The limit on free disk space below which fetching pauses.
//!
//! Requests in flight still end, and their pages are kept. Fetching resumes once a tenth more than
//! the limit is free. If it resumed at the limit itself, the next page would cause another pause.

/// The free disk space and its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FreeSpaceLimit {
    /// The limit: bytes that must stay free. 0 means no limit.
    least: u64,
    /// Bytes that were free at the last measurement; `None` before the first.
    free: Option<u64>,
    is_low: bool,
}

impl FreeSpaceLimit {
    pub(crate) fn new(least: u64) -> FreeSpaceLimit {
        FreeSpaceLimit {
            least,
            ..FreeSpaceLimit::default()
        }
    }

    /// Returns whether too little space is free to send requests.
    pub(crate) fn is_low(&self) -> bool {
        self.is_low
    }

    pub(crate) fn free(&self) -> Option<u64> {
        self.free
    }

    pub(crate) fn least(&self) -> u64 {
        self.least
    }

    /// Sets the number of free bytes. Returns whether [`is_low`](Self::is_low) changed.
    fn look(&mut self, free: u64) -> bool {
        self.free = Some(free);
        let was_low = self.is_low;
        let enough = match was_low {
            true => self.least.saturating_add(self.least / 10),
            false => self.least,
        };
        self.is_low = free < enough;
        was_low != self.is_low
    }

    /// Sets the number of free bytes, and logs when fetching pauses or resumes.
    pub(super) fn note_free_space(&mut self, free: u64) {
        if !self.look(free) {
            return;
        }
        let least = self.least;
        match self.is_low {
            true => tracing::warn!(
                "the disk is low: {free} bytes are free, less than --min-free ({least}); no \
                 requests are sent until there is room\n\
                 hint: make room, and the crawl resumes"
            ),
            false => tracing::warn!("the disk has room again: {free} bytes are free"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crawl_frontier::UrlToAdmit;
    use crawl_weburl::canonicalize;

    use super::super::DriverStep;
    use super::super::fixtures::{at, coordinator, open_to_all};
    use super::FreeSpaceLimit;
    use crate::control::CrawlPhase;
    use crate::messages::{Effect, Event};
    use crate::summary::EndReason;

    #[test]
    fn a_low_disk_has_room_again_once_a_tenth_more_is_free() {
        let mut disk = FreeSpaceLimit::new(1_000);
        let steps = [1_000, 999, 1_000, 1_099, 1_100, 1_000, 5, 1_099];
        let low: Vec<_> = steps
            .into_iter()
            .map(|free| (disk.look(free), disk.is_low()))
            .collect();
        let expected = [
            (false, false),
            (true, true),
            (false, true),
            (false, true),
            (true, false),
            (false, false),
            (true, true),
            (false, true),
        ];
        assert_eq!(low, expected);
        // Without a limit, the disk is never low. Even the largest limit doesn't cause an overflow.
        assert!(!FreeSpaceLimit::new(0).look(0));
        let mut endless = FreeSpaceLimit::new(u64::MAX);
        assert!(endless.look(7) && !endless.look(u64::MAX - 1));
    }

    #[test]
    fn a_low_disk_holds_requests_back_and_ends_nothing() {
        let mut coordinator = coordinator(|config| config.min_free = 1_000);
        let url = canonicalize(None, "http://a.example/").unwrap();
        let origin = url.origin();
        let mut transaction = coordinator.frontier.begin().unwrap();
        transaction.admit(UrlToAdmit::seed(url)).unwrap();
        transaction.commit().unwrap();
        coordinator.hosts.set_robots(at(20), &origin, open_to_all());
        coordinator.hosts.set_pending(at(20), &origin, 1);
        let mut out = Vec::new();
        let free_space = |bytes| Event::FreeSpace { bytes };
        coordinator.handle(at(20), free_space(999), &mut out);
        assert!(matches!(
            coordinator.advance(at(21), &mut out),
            DriverStep::Wait(_)
        ));
        assert_eq!(coordinator.progress(at(21)).phase, CrawlPhase::DiskLow);
        assert!(out.is_empty(), "{out:?}");
        coordinator.handle(at(22), free_space(1_100), &mut out);
        assert!(matches!(
            coordinator.advance(at(23), &mut out),
            DriverStep::Wait(_)
        ));
        let is_asked = |effect: &Effect| matches!(effect, Effect::FindAddress { .. });
        assert!(out.iter().any(is_asked), "{out:?}");
        assert_eq!(coordinator.progress(at(23)).phase, CrawlPhase::Crawling);
    }

    #[test]
    fn a_crawl_that_is_done_ends_on_a_low_disk_too() {
        let mut coordinator = coordinator(|config| config.min_free = 1_000);
        let mut out = Vec::new();
        coordinator.handle(at(20), Event::FreeSpace { bytes: 0 }, &mut out);
        assert_eq!(coordinator.advance(at(21), &mut out), DriverStep::Done);
        assert_eq!(coordinator.outcome().unwrap(), EndReason::Finished);
    }
}
