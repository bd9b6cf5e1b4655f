//! The sample of a crawl. The crawl loop and the writer both use it.

pub(crate) mod frame_sample;
pub(crate) mod random_walk;

use crawl_archive::rows::PageSampleMembership;
use crawl_frontier::{
    Frontier, Lease, NotFetchedReason, Reason, RequestedState, UrlKind, UrlToAdmit,
};
use crawl_sample::{NOT_WALKED, SampleMethod};

use self::frame_sample::CrawlSample;
use self::random_walk::RandomWalk;
use crate::config::Config;
use crate::error::EngineError;
use crate::frontier_meta_keys::{META_ROUND, META_SAMPLE, META_SAMPLED, META_WALK};

/// Why a page found by a walk has no inclusion probability.
const WALKED: &str = "a walk: pages that it never saw may lead there";
/// Why the target of a redirect has no inclusion probability.
const REDIRECTED: &str = "a redirect: other URLs of the frame may lead there";

/// How the pages of a crawl are sampled, and the state of the sample: a draw from a frame, or a
/// random walk.
#[derive(Clone, Debug)]
pub(crate) enum SampleState {
    /// A sample drawn from a frame.
    Draw(CrawlSample),
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
    /// The store failed, the stored sample has another design, or earlier runs were no sample.
    pub(crate) fn open(
        config: &Config,
        frontier: &dyn Frontier,
    ) -> Result<Option<SampleState>, EngineError> {
        let Some(method) = &config.sample else {
            return Ok(None);
        };
        let state = match method {
            SampleMethod::Draw(design) => SampleState::Draw(CrawlSample::open(design, frontier)?),
            SampleMethod::Walk(design) => SampleState::Walk(RandomWalk::open(design, frontier)?),
        };
        let keys = [META_SAMPLED, META_SAMPLE, META_WALK].map(|key| frontier.meta(key));
        for value in keys {
            if value?.is_some() {
                return Ok(Some(state));
            }
        }
        if frontier.meta(META_ROUND)?.is_some() {
            return Err(EngineError::BegunWithoutSample);
        }
        let mut transaction = frontier.begin()?;
        transaction.keep_meta(META_SAMPLED, b"1");
        transaction.commit()?;
        Ok(Some(state))
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
