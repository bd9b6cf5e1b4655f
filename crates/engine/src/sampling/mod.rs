//! The sample of a crawl, as the crawl loop and the writer share it.

pub(crate) mod drawn;
pub(crate) mod walk;

use crawl_archive::rows::SampleRow;
use crawl_frontier::{Admission, Exclusion, Frontier, Lease, NewState, Reason, UrlKind};
use crawl_sample::{NOT_WALKED, SampleMethod};

use self::drawn::DrawnSample;
use self::walk::Walk;
use crate::config::Config;
use crate::error::EngineError;

/// Why a page that a walk came to has no inclusion probability.
const WALKED: &str = "a walk: pages that it never saw may lead there";
/// Why the target of a redirect has none.
const REDIRECTED: &str = "a redirect: other URLs of the frame may lead there";

/// The sample of a crawl.
#[derive(Clone, Debug)]
pub(crate) enum Sampling {
    /// It is drawn from a frame.
    Draw(DrawnSample),
    /// It is what a random walk comes to.
    Walk(Walk),
}

/// The answer for a page that was leased: is it in the sample?
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SampleVerdict {
    /// It is: it was drawn, one that was drawn leads to it, or a walker waits for it.
    In,
    /// It is asked for as in any crawl: the frame is found by its links.
    Usual,
    /// It is put aside.
    Out(Exclusion),
}

impl Sampling {
    /// The sample that the configuration asks for, with what earlier runs left of it.
    ///
    /// # Errors
    /// The store failed, or the sample that it holds has another design.
    pub(crate) fn open(
        config: &Config,
        frontier: &dyn Frontier,
    ) -> Result<Option<Sampling>, EngineError> {
        match &config.sample {
            None => Ok(None),
            Some(SampleMethod::Draw(design)) => {
                DrawnSample::open(design, frontier).map(|drawn| Some(Sampling::Draw(drawn)))
            }
            Some(SampleMethod::Walk(design)) => {
                Walk::open(design, frontier).map(|walk| Some(Sampling::Walk(walk)))
            }
        }
    }

    /// The walk, if it is one.
    pub(crate) fn walk(&self) -> Option<&Walk> {
        match self {
            Sampling::Draw(_) => None,
            Sampling::Walk(walk) => Some(walk),
        }
    }

    /// Returns whether the sample is to be drawn now that nothing more is found, once.
    pub(crate) fn is_to_draw(&mut self) -> bool {
        match self {
            Sampling::Draw(drawn) => drawn.is_to_draw(),
            Sampling::Walk(_) => false,
        }
    }

    /// Judges a page that may be asked for.
    pub(crate) fn judge(&self, lease: &Lease) -> SampleVerdict {
        match self {
            Sampling::Draw(drawn) => drawn.judge(lease),
            Sampling::Walk(walk) if walk.awaits(&lease.url) => SampleVerdict::In,
            Sampling::Walk(_) => SampleVerdict::Out(out(NOT_WALKED)),
        }
    }

    /// The same admissions where no link adds to the sample; none where they are as they were.
    pub(crate) fn outside(&self, admissions: &[Admission]) -> Option<Vec<Admission>> {
        match self {
            Sampling::Draw(drawn) => drawn.outside_the_frame(admissions),
            Sampling::Walk(walk) => {
                deferred(admissions, NOT_WALKED, |link| !walk.awaits(&link.url))
            }
        }
    }

    /// The part that a page has in the sample, for its row; none for what is no page.
    pub(crate) fn row(&self, lease: &Lease) -> Option<SampleRow> {
        if lease.kind != UrlKind::Page {
            return None;
        }
        Some(match self {
            Sampling::Draw(drawn) => drawn.row(lease),
            Sampling::Walk(_) => row_without_stratum("walk", Err(WALKED)),
        })
    }
}

/// The row of a page that was drawn in no stratum, with its probability or why it has none.
fn row_without_stratum(how: &str, probability: Result<f64, &str>) -> SampleRow {
    SampleRow {
        how: how.to_owned(),
        stratum: None,
        drawn: None,
        of: None,
        probability: probability.ok(),
        unknown: probability.err().map(str::to_owned),
    }
}

/// The same admissions, with those pages put aside that `is_outside` names; none where there are
/// none.
fn deferred(
    admissions: &[Admission],
    rule: &str,
    is_outside: impl Fn(&Admission) -> bool,
) -> Option<Vec<Admission>> {
    let is_outside = |link: &Admission| {
        link.state == NewState::Pending && link.kind == UrlKind::Page && is_outside(link)
    };
    if !admissions.iter().any(is_outside) {
        return None;
    }
    let each = admissions.iter().cloned();
    let deferred = each.map(|link| match is_outside(&link) {
        true => Admission {
            state: NewState::Deferred(out(rule)),
            ..link
        },
        false => link,
    });
    Some(deferred.collect())
}

fn out(rule: &str) -> Exclusion {
    Exclusion {
        rule: Some(rule.to_owned()),
        ..Exclusion::of(Reason::Sample)
    }
}
