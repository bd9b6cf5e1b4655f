//! The sample of a crawl. The crawl loop and the writer both use it.

pub(crate) mod drawn_sample;
pub(crate) mod random_walk;

use crawl_archive::rows::PageSampleMembership;
use crawl_frontier::{
    Frontier, FrontierError, Lease, NotFetchedReason, Reason, RequestedState, UrlKind, UrlToAdmit,
};
use crawl_sample::{NOT_WALKED, SampleMethod};

use self::drawn_sample::DrawnSample;
use self::random_walk::RandomWalk;
use crate::config::Config;
use crate::error::EngineError;
use crate::frontier_meta_keys::{META_ROUND, META_SAMPLE, META_SAMPLED, META_WALK};

/// The value of [`META_SAMPLED`] in a crawl that draws a sample.
const DRAW: &[u8] = b"draw";
/// The value of [`META_SAMPLED`] in a random walk.
const WALK: &[u8] = b"walk";
/// Why a page found by a walk has no inclusion probability.
const WALKED: &str = "a walk: pages that it never saw may lead there";
/// Why the target of a redirect has no inclusion probability.
const REDIRECTED: &str = "a redirect: other URLs of the frame may lead there";

/// How the pages of a crawl are sampled, and the state of the sample: a draw from a frame, or a
/// random walk.
#[derive(Clone, Debug)]
pub(crate) enum SampleState {
    /// A sample drawn from a frame.
    Draw(DrawnSample),
    /// The pages reached by a random walk.
    Walk(RandomWalk),
}

/// Whether a leased page is in the sample.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SampleVerdict {
    /// The page is in the sample: it was drawn, a drawn page redirects to it, or a walker waits for
    /// it.
    In,
    /// The page is fetched as in any crawl, because its links are needed to find the sampling frame
    /// (the pages that may be drawn).
    Usual,
    /// The page is not in the sample and must be deferred.
    Out(NotFetchedReason),
}

impl SampleState {
    /// Opens the configured sample, with the state that earlier runs stored.
    ///
    /// # Errors
    /// The store failed, the stored sample has another design, or an earlier run fetched pages
    /// without a sample.
    pub(crate) fn open(
        config: &Config,
        frontier: &dyn Frontier,
    ) -> Result<Option<SampleState>, EngineError> {
        let exists = |key| -> Result<bool, FrontierError> { Ok(frontier.meta(key)?.is_some()) };
        let Some(method) = &config.sample else {
            // The pages that were not drawn would never be fetched.
            for key in [META_SAMPLED, META_SAMPLE, META_WALK] {
                if exists(key)? {
                    return Err(EngineError::SampleDrawn);
                }
            }
            return Ok(None);
        };
        let state = match method {
            SampleMethod::Draw(design) => SampleState::Draw(DrawnSample::open(design, frontier)?),
            SampleMethod::Walk(design) => SampleState::Walk(RandomWalk::open(design, frontier)?),
        };
        let (kind, begun, begun_other) = match method {
            SampleMethod::Draw(_) => (DRAW, META_SAMPLE, META_WALK),
            SampleMethod::Walk(_) => (WALK, META_WALK, META_SAMPLE),
        };
        match frontier.meta(META_SAMPLED)?.as_deref() {
            Some(stored) if stored != kind => Err(EngineError::SampleDrawn),
            Some(_) => Ok(Some(state)),
            None if exists(begun_other)? => Err(EngineError::SampleDrawn),
            None if !exists(begun)? && exists(META_ROUND)? => {
                Err(EngineError::FetchedWithoutSample)
            }
            None => Ok(Some(state)),
        }
    }

    /// Records how the crawl is sampled, once nothing can refuse the run any more.
    pub(crate) fn note_method(
        config: &Config,
        frontier: &dyn Frontier,
    ) -> Result<(), FrontierError> {
        let kind = match &config.sample {
            Some(SampleMethod::Draw(_)) => DRAW,
            Some(SampleMethod::Walk(_)) => WALK,
            None => return Ok(()),
        };
        if frontier.meta(META_SAMPLED)?.is_some() {
            return Ok(());
        }
        let mut transaction = frontier.begin()?;
        transaction.keep_meta(META_SAMPLED, kind);
        transaction.commit()?;
        Ok(())
    }

    /// Returns the random walk. `None` if the sample is drawn from a sampling frame.
    pub(crate) fn walk(&self) -> Option<&RandomWalk> {
        match self {
            SampleState::Draw(_) => None,
            SampleState::Walk(walk) => Some(walk),
        }
    }

    /// Returns whether to draw the sample now. Call this only when no further page can be found.
    /// Returns true only once.
    pub(crate) fn is_to_draw(&mut self) -> bool {
        match self {
            SampleState::Draw(drawn) => drawn.is_to_draw(),
            SampleState::Walk(_) => false,
        }
    }

    /// Decides whether a page that robots.txt and scope allow is in the sample.
    pub(crate) fn judge(&self, lease: &Lease) -> SampleVerdict {
        match self {
            SampleState::Draw(drawn) => drawn.judge(lease),
            SampleState::Walk(walk) if walk.awaits(&lease.url) => SampleVerdict::In,
            SampleState::Walk(_) => SampleVerdict::Out(out(NOT_WALKED)),
        }
    }

    /// Defers the links among `admissions` that are outside the sample. Returns all admissions;
    /// `None` if no admission changes.
    pub(crate) fn outside(&self, admissions: &[UrlToAdmit]) -> Option<Vec<UrlToAdmit>> {
        match self {
            SampleState::Draw(drawn) => drawn.outside_the_frame(admissions),
            SampleState::Walk(walk) => {
                deferred(admissions, NOT_WALKED, |link| !walk.awaits(&link.url))
            }
        }
    }

    /// Returns the sample columns in the row of a page. `None` if the URL is not a page.
    pub(crate) fn row(&self, lease: &Lease) -> Option<PageSampleMembership> {
        if lease.kind != UrlKind::Page {
            return None;
        }
        Some(match self {
            SampleState::Draw(drawn) => drawn.row(lease),
            SampleState::Walk(_) => row_without_stratum("walk", Err(WALKED)),
        })
    }
}

/// Returns the sample columns of a page without a stratum: how it came into the sample, and its
/// probability, or why it has none.
fn row_without_stratum(how: &str, probability: Result<f64, &str>) -> PageSampleMembership {
    PageSampleMembership {
        how: how.to_owned(),
        stratum: None,
        drawn: None,
        of: None,
        probability: probability.ok(),
        unknown: probability.err().map(str::to_owned),
    }
}

/// Defers the pages among `admissions` for which `is_outside` returns true. Returns all admissions,
/// or `None` if there is no such page.
fn deferred(
    admissions: &[UrlToAdmit],
    rule: &str,
    is_outside: impl Fn(&UrlToAdmit) -> bool,
) -> Option<Vec<UrlToAdmit>> {
    let is_outside = |link: &UrlToAdmit| {
        link.state == RequestedState::Pending && link.kind == UrlKind::Page && is_outside(link)
    };
    if !admissions.iter().any(is_outside) {
        return None;
    }
    let each = admissions.iter().cloned();
    let deferred = each.map(|link| match is_outside(&link) {
        true => UrlToAdmit {
            state: RequestedState::Deferred(out(rule)),
            ..link
        },
        false => link,
    });
    Some(deferred.collect())
}

fn out(rule: &str) -> NotFetchedReason {
    NotFetchedReason {
        rule: Some(rule.to_owned()),
        ..NotFetchedReason::of(Reason::Sample)
    }
}
