//! A sample drawn from a frame, which is the list of pages that may be drawn.
//!
//! Until the draw, each URL of the frame is leased and then deferred. Leasing it first keeps URLs
//! that robots.txt excludes out of the frame. Once nothing new is found, the writer draws the
//! sample and makes the drawn pages pending.

use std::sync::{Arc, OnceLock};

use crawl_archive::rows::PageSampleMembership;
use crawl_frontier::{Frontier, Lease, Reason, UnsettledUrl, UrlToAdmit};
use crawl_sample::{NOT_DRAWN, SampleDesign, SampleDrawResult};

use super::{REDIRECTED, SampleVerdict, deferred, out, row_without_stratum};
use crate::error::EngineError;
use crate::frontier_meta_keys::META_SAMPLE;

/// The rule that defers URLs found after the draw.
const FOUND_AFTER: &str = "found after the draw";

/// The sample of a crawl: the sample's design and, after the draw, the draw's result.
#[derive(Clone, Debug)]
pub(crate) struct DrawnSample {
    design: SampleDesign,
    draw: Arc<OnceLock<SampleDrawResult>>,
    /// Whether this run has already requested the draw.
    is_asked: bool,
}

impl DrawnSample {
    /// Opens the sample with this design. Reads the draw if an earlier run has made it.
    ///
    /// # Errors
    /// The store failed, or the stored draw has another design.
    pub(super) fn open(
        design: &SampleDesign,
        frontier: &dyn Frontier,
    ) -> Result<DrawnSample, EngineError> {
        let draw = OnceLock::new();
        if let Some(stored) = frontier.meta(META_SAMPLE)? {
            let stored = SampleDrawResult::read(&stored);
            match stored.filter(|draw| draw.design() == design) {
                Some(stored) => {
                    let _ = draw.set(stored);
                }
                None => return Err(EngineError::SampleDrawn),
            }
        }
        Ok(DrawnSample {
            design: design.clone(),
            draw: Arc::new(draw),
            is_asked: false,
        })
    }

    pub(crate) fn design(&self) -> &SampleDesign {
        &self.design
    }

    pub(super) fn is_to_draw(&mut self) -> bool {
        let is_asked = std::mem::replace(&mut self.is_asked, true);
        !is_asked && self.draw.get().is_none()
    }

    /// Takes the result of the draw, which must be on the disk already.
    pub(crate) fn drawn(&self, draw: SampleDrawResult) {
        let _ = self.draw.set(draw);
    }

    pub(super) fn judge(&self, lease: &Lease) -> SampleVerdict {
        match self.draw.get() {
            None if lease.depth < self.design.frame_depth => SampleVerdict::Usual,
            None => SampleVerdict::Out(out(NOT_DRAWN)),
            // After the draw only pages of the sample are fetched, so the page that redirects here
            // is in the sample.
            Some(_) if lease.redirects > 0 => SampleVerdict::In,
            Some(draw) if draw.stratum_of(&lease.url).is_some() => SampleVerdict::In,
            Some(_) => SampleVerdict::Out(out(FOUND_AFTER)),
        }
    }

    /// Defers the links among `admissions` that are outside the sampling frame. Returns all
    /// admissions; `None` before the draw, or if no admission changes.
    pub(super) fn outside_the_frame(&self, admissions: &[UrlToAdmit]) -> Option<Vec<UrlToAdmit>> {
        let draw = self.draw.get()?;
        deferred(admissions, FOUND_AFTER, |link| {
            link.redirects == 0 && draw.stratum_of(&link.url).is_none()
        })
    }

    pub(super) fn row(&self, lease: &Lease) -> PageSampleMembership {
        let draw = self.draw.get();
        match draw.map(|draw| draw.stratum_of(&lease.url)) {
            Some(Some(stratum)) => PageSampleMembership {
                stratum: Some(stratum.name.to_owned()),
                drawn: Some(stratum.drawn),
                of: Some(stratum.of),
                ..row_without_stratum("drawn", Ok(stratum.drawn as f64 / stratum.of as f64))
            },
            // A drawn page redirects to this page, so this page is in the sample. In contrast, a
            // redirect target at a depth below `frame_depth` was fetched to find the frame, so its
            // probability is 1.
            Some(None) if lease.redirects > 0 && lease.depth >= self.design.frame_depth => {
                row_without_stratum("redirect", Err(REDIRECTED))
            }
            Some(None) | None => row_without_stratum("frame", Ok(1.0)),
        }
    }
}

/// Returns whether a deferred URL belongs to the sampling frame.
pub(crate) fn is_in_frame(waiting: &UnsettledUrl<'_>) -> bool {
    waiting
        .exclusion
        .is_some_and(|why| why.reason == Reason::Sample && why.rule.as_deref() == Some(NOT_DRAWN))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, OnceLock};

    use crawl_frontier::{Frontier as _, MemoryFrontier, UrlToAdmit};
    use crawl_sample::{SampleDesign, SamplingFrame};
    use crawl_weburl::canonicalize;

    use super::DrawnSample;

    /// In a later round the draw exists from the beginning. Pages that were read to find the
    /// sampling frame must still have probability 1, even if they are targets of redirects.
    #[test]
    fn a_page_read_to_find_the_frame_stays_one() {
        let design = SampleDesign::default();
        assert_eq!(design.frame_depth, 1);
        let sample = DrawnSample {
            draw: Arc::new(OnceLock::from(SamplingFrame::new(&design).draw())),
            design,
            is_asked: true,
        };
        for (depth, how, probability) in [(0, "frame", Some(1.0)), (1, "redirect", None)] {
            let frontier = MemoryFrontier::new();
            let url = canonicalize(None, "http://a.example/target").unwrap();
            let mut transaction = frontier.begin().unwrap();
            let admission = UrlToAdmit {
                redirects: 1,
                ..UrlToAdmit::link(url.clone(), depth, url.clone())
            };
            transaction.admit(admission).unwrap();
            transaction.commit().unwrap();
            let lease = frontier.lease(&url.origin()).unwrap().unwrap();
            let row = sample.row(&lease);
            assert_eq!((&*row.how, row.probability), (how, probability));
            assert_eq!(row.unknown.is_some(), probability.is_none());
        }
    }
}
