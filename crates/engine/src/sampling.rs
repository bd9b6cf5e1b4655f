//! The sample of a crawl, as the crawl loop and the writer share it.
//!
//! Until the draw, URLs of the frame are put aside as they are leased, so that what robots.txt
//! excludes is not among them. The writer draws once nothing more is found, and what was drawn is
//! pending from then on.

use std::sync::{Arc, OnceLock};

use crawl_archive::rows::SampleRow;
use crawl_frontier::{
    Admission, Exclusion, Frontier, Lease, NewState, Reason, UrlKind, WaitingUrl,
};
use crawl_sample::{Draw, NOT_DRAWN, SampleDesign};

use crate::config::Config;
use crate::error::EngineError;
use crate::meta_keys::META_SAMPLE;

/// The rule by which a URL is put aside that was found when the draw was over.
const FOUND_AFTER: &str = "found after the draw";

/// The sample of a crawl: its design, and the draw once it was made.
#[derive(Clone, Debug)]
pub(crate) struct Sampling {
    design: SampleDesign,
    draw: Arc<OnceLock<Draw>>,
    /// True if this run asked for the draw.
    is_asked: bool,
}

/// The answer for a page that was leased: is it in the sample?
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SampleVerdict {
    /// It was drawn, or one that was drawn leads to it.
    In,
    /// It is asked for as in any crawl: the frame is found by its links.
    Usual,
    /// It is put aside.
    Out(Exclusion),
}

impl Sampling {
    /// The sample that the configuration asks for, with the draw of an earlier run.
    ///
    /// # Errors
    /// The store failed, or that draw has another design.
    pub(crate) fn open(
        config: &Config,
        frontier: &dyn Frontier,
    ) -> Result<Option<Sampling>, EngineError> {
        let Some(design) = config.sample.clone() else {
            return Ok(None);
        };
        let draw = OnceLock::new();
        if let Some(stored) = frontier.meta(META_SAMPLE)? {
            let stored = Draw::read(&stored);
            match stored.filter(|draw| *draw.design() == design) {
                Some(stored) => {
                    let _ = draw.set(stored);
                }
                None => return Err(EngineError::SampleDrawn),
            }
        }
        Ok(Some(Sampling {
            design,
            draw: Arc::new(draw),
            is_asked: false,
        }))
    }

    pub(crate) fn design(&self) -> &SampleDesign {
        &self.design
    }

    /// Returns whether the sample is to be drawn now that nothing more is found, once.
    pub(crate) fn is_to_draw(&mut self) -> bool {
        let is_asked = std::mem::replace(&mut self.is_asked, true);
        !is_asked && self.draw.get().is_none()
    }

    /// The draw is durable.
    pub(crate) fn drawn(&self, draw: Draw) {
        let _ = self.draw.set(draw);
    }

    /// Judges a page that may be asked for.
    pub(crate) fn judge(&self, lease: &Lease) -> SampleVerdict {
        match self.draw.get() {
            None if lease.depth < self.design.frame_depth => SampleVerdict::Usual,
            None => SampleVerdict::Out(out(NOT_DRAWN)),
            // A redirect is asked for by no page but one of the sample.
            Some(_) if lease.redirects > 0 => SampleVerdict::In,
            Some(draw) if draw.stratum_of(&lease.url).is_some() => SampleVerdict::In,
            Some(_) => SampleVerdict::Out(out(FOUND_AFTER)),
        }
    }

    /// The same admissions once the sample was drawn, when no link adds to the frame; none where
    /// they are as they were.
    pub(crate) fn outside_the_frame(&self, admissions: &[Admission]) -> Option<Vec<Admission>> {
        let draw = self.draw.get()?;
        let is_outside = |link: &Admission| {
            link.state == NewState::Pending
                && link.kind == UrlKind::Page
                && link.redirects == 0
                && draw.stratum_of(&link.url).is_none()
        };
        if !admissions.iter().any(is_outside) {
            return None;
        }
        let each = admissions.iter().cloned();
        let deferred = each.map(|link| match is_outside(&link) {
            true => Admission {
                state: NewState::Deferred(out(FOUND_AFTER)),
                ..link
            },
            false => link,
        });
        Some(deferred.collect())
    }

    /// The part that a page has in the sample, for its row; none for what is no page.
    pub(crate) fn row(&self, lease: &Lease) -> Option<SampleRow> {
        if lease.kind != UrlKind::Page {
            return None;
        }
        let draw = self.draw.get();
        let row = |how: &str, probability| SampleRow {
            how: how.to_owned(),
            stratum: None,
            drawn: None,
            of: None,
            probability,
        };
        Some(match draw.map(|draw| draw.stratum_of(&lease.url)) {
            Some(Some(stratum)) => SampleRow {
                stratum: Some(stratum.name.to_owned()),
                drawn: Some(stratum.drawn),
                of: Some(stratum.of),
                ..row("drawn", Some(stratum.drawn as f64 / stratum.of as f64))
            },
            Some(None) if lease.redirects > 0 => row("redirect", None),
            // Those that later rounds visit again are among them.
            Some(None) | None => row("frame", Some(1.0)),
        })
    }
}

/// Returns whether a URL that was put aside is one of the frame.
pub(crate) fn is_in_frame(waiting: &WaitingUrl<'_>) -> bool {
    waiting
        .exclusion
        .is_some_and(|why| why.reason == Reason::Sample && why.rule.as_deref() == Some(NOT_DRAWN))
}

fn out(rule: &str) -> Exclusion {
    Exclusion {
        rule: Some(rule.to_owned()),
        ..Exclusion::of(Reason::Sample)
    }
}
