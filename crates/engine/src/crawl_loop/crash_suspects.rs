//! Crash suspects: URLs that were being read when the program died, so reading them may have killed
//! it.

use std::collections::HashMap;

use crawl_frontier::Lease;
use crawl_weburl::CanonicalUrl;

/// If the process died this many times while reading a URL, the URL is read last, and nothing else
/// is read at the same time.
const DEATHS_UNTIL_ALONE: u32 = 3;

/// How to treat a leased URL, given how often the process died while reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SuspectTreatment {
    /// Treat the URL like any other.
    Usual,
    /// Fetch the URL after all other URLs, and read nothing else at the same time.
    LastAndAlone,
    /// Settle the URL as failed: reading it killed the process even when nothing else was being
    /// read.
    GiveUp,
}

/// Returns the treatment of a URL, given how often the process died while reading it.
fn treatment(deaths: u32) -> SuspectTreatment {
    match deaths {
        0..DEATHS_UNTIL_ALONE => SuspectTreatment::Usual,
        DEATHS_UNTIL_ALONE => SuspectTreatment::LastAndAlone,
        _ => SuspectTreatment::GiveUp,
    }
}

/// URLs that were being read when the process died. Empty unless the process died in an earlier
/// run.
///
/// Before a lease is fetched, [`treatment`](Self::treatment) decides how to treat it; leases whose
/// URLs must be read alone are passed to [`hold`](Self::hold). Once nothing else is left to fetch,
/// the caller ends the previous reading with [`end_reading`](Self::end_reading) and takes the next
/// held lease with [`begin_reading`](Self::begin_reading); while [`reads_alone`](Self::reads_alone)
/// returns true, nothing else is fetched. At the end of the run [`take_held`](Self::take_held)
/// returns the remaining leases.
#[derive(Default)]
pub(super) struct CrashSuspects {
    deaths: HashMap<CanonicalUrl, u32>,
    /// Leases of crash suspects, held until nothing else is left to fetch. Held leases do not count
    /// as unsettled.
    held: Vec<Lease>,
    /// The crash suspect that is being read alone, or that will be read alone next.
    reading: Option<LoneReading>,
}

struct LoneReading {
    url: CanonicalUrl,
    /// Whether the URL was leased a second time, now to be read alone.
    is_begun: bool,
}

impl CrashSuspects {
    /// Returns the treatment of a URL that was leased and may be fetched.
    pub(super) fn treatment(&mut self, url: &CanonicalUrl) -> SuspectTreatment {
        if self.deaths.is_empty() {
            return SuspectTreatment::Usual;
        }
        let deaths = self.deaths.get(url).copied().unwrap_or_default();
        match &mut self.reading {
            Some(reading) if reading.url == *url => {
                reading.is_begun = true;
                SuspectTreatment::Usual
            }
            _ => treatment(deaths),
        }
    }

    /// Sets how often the process died while reading each URL.
    pub(super) fn suspect(&mut self, deaths: HashMap<CanonicalUrl, u32>) {
        self.deaths = deaths;
    }

    /// Holds a lease until nothing else is left to fetch.
    pub(super) fn hold(&mut self, lease: Lease) {
        self.held.push(lease);
    }

    /// Ends the lone reading of a crash suspect. No effect if that reading has not begun. Call this
    /// when nothing is in flight.
    pub(super) fn end_reading(&mut self) {
        if self
            .reading
            .as_ref()
            .is_some_and(|reading| reading.is_begun)
        {
            self.reading = None;
        }
    }

    /// Takes a held lease. Its URL is read next, while nothing else is being read.
    pub(super) fn begin_reading(&mut self) -> Option<Lease> {
        let lease = self.held.pop()?;
        self.reading = Some(LoneReading {
            url: lease.url.clone(),
            is_begun: false,
        });
        Some(lease)
    }

    /// Returns whether a crash suspect is being read alone, or will be next.
    pub(super) fn reads_alone(&self) -> bool {
        self.reading.is_some()
    }

    pub(super) fn take_held(&mut self) -> Vec<Lease> {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::{SuspectTreatment, treatment};

    #[test]
    fn after_three_deaths_last_after_four_never() {
        let treated: Vec<_> = (0..6).map(treatment).collect();
        let (usual, last, never) = (
            SuspectTreatment::Usual,
            SuspectTreatment::LastAndAlone,
            SuspectTreatment::GiveUp,
        );
        assert_eq!(treated, [usual, usual, usual, last, never, never]);
    }
}
