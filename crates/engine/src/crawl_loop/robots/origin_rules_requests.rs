//! Requests for an origin's rules: for robots.txt, for the targets of its redirects, and for
//! `tdmrep.json`.

use std::net::{IpAddr, SocketAddr};

use crawl_archive::rows::RobotsOutcome;
use crawl_fetcher::robots::{
    CompiledRobots, EXCLUDED_HOST, MAX_HOPS, RobotsFetchResult, RobotsRulesState, TDMREP_PATH,
    TdmReservationCopy,
};
use crawl_fetcher::{Exchange, ExchangeFailure, FailureKind, FetchRequest, Validators};
use crawl_frontier::{FrontierError, NotFetchedReason, Reason, UrlToAdmit};
use crawl_scheduler::{PaceFromRobots, RobotsState, Tick};
use crawl_weburl::{CanonicalUrl, HostKey, Origin};

use super::super::request_rows::robots_outcome;
use super::super::run_scope::RunScope;
use super::super::worker_coordination::WorkerCoordination;
use super::{OriginRobotsTracker, REDIRECTED_TO, RobotsFollowUpRequest, is_path_allowed};
use crate::messages::{RequestJob, TdmRepAttempt};

/// Why an origin's robots.txt is unreachable if it redirects to a host of another worker.
const OTHER_WORKERS_HOST: &str = "it redirects to a host that another worker asks";

/// What to do after a request for an origin's rules has ended.
#[derive(Debug)]
pub(crate) struct RobotsReaction {
    pub(crate) next: RobotsStep,
    /// The copy of robots.txt to write before any page is judged by it, so that no page is ever
    /// judged by an older copy.
    pub(crate) copy: Option<Vec<u8>>,
    /// Sitemaps to admit.
    pub(crate) sitemaps: Vec<UrlToAdmit>,
    /// The number of sitemaps that were dropped, by reason.
    pub(crate) unusable: Vec<(&'static str, u64)>,
    /// What the answer for robots.txt means, for the row of its request. `None` after another
    /// request, or if another worker owns the host now.
    pub(crate) outcome: Option<RobotsOutcome>,
}

/// The next step to get an origin's rules.
#[derive(Debug)]
pub(crate) enum RobotsStep {
    /// Follow a redirect of robots.txt to this URL.
    Hop(CanonicalUrl),
    /// Fetch `tdmrep.json`. If robots.txt was just read, keep the pace that it requests.
    TdmRep(Option<PaceFromRobots>),
    /// Nothing more to fetch: the origin has this state now.
    Done(RobotsState),
    /// Fetch robots.txt again, unless the origin was evicted from memory.
    Again,
}

impl From<RobotsStep> for RobotsReaction {
    fn from(next: RobotsStep) -> RobotsReaction {
        RobotsReaction {
            next,
            copy: None,
            sitemaps: Vec::new(),
            unusable: Vec::new(),
            outcome: None,
        }
    }
}

/// Returns the state of an origin whose robots.txt is not fetched in this run.
pub(crate) fn open_without_robots() -> RobotsState {
    RobotsState::InForce {
        pace: PaceFromRobots::default(),
        until: Tick::from_micros(u64::MAX),
    }
}

impl OriginRobotsTracker {
    /// Returns the job for a permit to fetch an origin's robots.txt, or the target of its redirect
    /// with number `hop`.
    ///
    /// # Errors
    /// The frontier can't be read.
    pub(crate) fn job(
        &self,
        of: Origin,
        url: CanonicalUrl,
        hop: u8,
    ) -> Result<RequestJob, FrontierError> {
        let request = self.request(&of, url)?;
        let request = FetchRequest {
            // Fetch the target of a redirect over a new connection, since a kept one may turn out
            // to be closed. After such a failure, robots.txt would be fetched again only minutes
            // later.
            needs_new_connection: hop > 0,
            ..request
        };
        Ok(RequestJob::Robots { of, request, hop })
    }

    /// Returns the job for a permit to send the next request for an origin's rules after its
    /// robots.txt. `None` if no such request is due, or if the host is excluded. In both cases,
    /// robots.txt must be fetched again.
    ///
    /// # Errors
    /// The frontier can't be read.
    pub(crate) fn pending_job(
        &mut self,
        of: Origin,
        scope: &RunScope,
    ) -> Result<Option<RequestJob>, FrontierError> {
        let is_out = scope.is_left_out(&of.host_key());
        match self.take_pending_fetch(&of) {
            Some(RobotsFollowUpRequest::Hop(url, hop))
                if !is_out && !scope.is_left_out(&url.host_key()) =>
            {
                self.job(of, url, hop).map(Some)
            }
            Some(RobotsFollowUpRequest::TdmRep(url, attempt)) if !is_out => {
                Ok(Some(RequestJob::TdmRep {
                    request: FetchRequest::robots(url, Validators::default()),
                    of,
                    attempt,
                }))
            }
            None | Some(_) => Ok(None),
        }
    }

    /// Handles the result of a request for robots.txt.
    ///
    /// # Errors
    /// The frontier can't be read.
    pub(crate) fn robots_fetched(
        &mut self,
        (of, request, hop): (&Origin, &FetchRequest, u8),
        result: &Result<Exchange, ExchangeFailure>,
        (scope, shared): (&RunScope, &WorkerCoordination),
    ) -> Result<RobotsReaction, FrontierError> {
        if !shared.keeps(&of.host_key()) {
            // Leave robots.txt to the next owner of the host, who may be able to follow redirects
            // that this worker must not follow.
            return Ok(RobotsStep::Again.into());
        }
        let mut answer = RobotsFetchResult::of(request, result, hop);
        if let RobotsFetchResult::Redirect { to, status } = &answer
            && let Some(why) = bar(&to.host_key(), scope, shared)
        {
            answer = RobotsFetchResult::Unreachable {
                why: why.to_owned(),
                status: Some(*status),
                retry_after: None,
            };
        }
        let outcome = Some(robots_outcome(of, &answer));
        // Name the target of a redirect, so that the origin's own server isn't blamed.
        if let RobotsFetchResult::Unreachable { why, .. } = &mut answer
            && request.url != of.robots_url()
        {
            *why = format!("{why}{REDIRECTED_TO}{}", request.url);
        }
        let reaction = self.follow_up((of, hop), &answer, result, scope)?;
        Ok(RobotsReaction {
            outcome,
            ..reaction
        })
    }

    /// Applies the result of a request for robots.txt to the origin, and returns the next step.
    fn follow_up(
        &mut self,
        (of, hop): (&Origin, u8),
        answer: &RobotsFetchResult,
        result: &Result<Exchange, ExchangeFailure>,
        scope: &RunScope,
    ) -> Result<RobotsReaction, FrontierError> {
        if let RobotsFetchResult::Redirect { to, .. } = answer {
            let pending = RobotsFollowUpRequest::Hop(to.clone(), hop + 1);
            self.set_pending_fetch(of, pending);
            return Ok(RobotsStep::Hop(to.clone()).into());
        }
        if let Some(why) = refusal(hop, result) {
            // The rules of the origin can't be fetched. The rules are not needed either, since
            // every URL of the origin is settled as refused when it is leased.
            self.refuse(of, why);
            return Ok(RobotsStep::Done(open_without_robots()).into());
        }
        let compiled = self.learn(of, answer, result)?;
        let address = address_of(result).filter(|_| hop == 0);
        if !self.wants_tdmrep(&compiled) {
            return Ok(self.rules_known(of, &compiled, address, scope));
        }
        let pace = match self.state(compiled.copy.fetched_at, &compiled, address) {
            RobotsState::InForce { pace, .. } => Some(pace),
            _ => None,
        };
        self.set_pending_tdmrep(of, of.url(TDMREP_PATH), TdmRepAttempt::default());
        Ok(RobotsReaction {
            copy: Some(compiled.copy.to_bytes()),
            ..RobotsStep::TdmRep(pace).into()
        })
    }

    /// Handles the result of a request for `tdmrep.json`. Follows a redirect only within the
    /// origin, and only if the origin's robots.txt allows the target. If all retries fail, the last
    /// known file (if any) stays in force.
    ///
    /// # Errors
    /// The frontier can't be read.
    pub(crate) fn tdmrep_fetched(
        &mut self,
        of: &Origin,
        attempt: TdmRepAttempt,
        result: &Result<Exchange, ExchangeFailure>,
        scope: &RunScope,
    ) -> Result<RobotsReaction, FrontierError> {
        let file = TdmReservationCopy::of(result);
        let may_change = result
            .as_ref()
            .map_or_else(|failure| failure.retry, |_| true);
        if file.is_none() && may_change && attempt.failures < self.max_retries {
            let failures = attempt.failures + 1;
            let again = TdmRepAttempt { failures, hop: 0 };
            self.set_pending_tdmrep(of, of.url(TDMREP_PATH), again);
            return Ok(RobotsStep::TdmRep(None).into());
        }
        let Some(held) = self.load(of)? else {
            // The copy left the cache before it was committed, so the rules of the origin are
            // unknown again.
            return Ok(RobotsStep::Done(RobotsState::Unknown).into());
        };
        let target = result.as_ref().ok().and_then(Exchange::redirect_target);
        if let Some(Ok(to)) = target
            && attempt.hop < MAX_HOPS
            && to.origin() == *of
            && is_path_allowed(&held, to.path_and_query())
        {
            let hop = attempt.hop + 1;
            self.set_pending_tdmrep(of, to, TdmRepAttempt { hop, ..attempt });
            return Ok(RobotsStep::TdmRep(None).into());
        }
        let mut copy = held.copy.clone();
        copy.tdmrep = match (file, copy.tdmrep) {
            (Some(file), _) => file,
            (None, TdmReservationCopy::NotAsked) => TdmReservationCopy::None,
            (None, held) => held,
        };
        let compiled = self.keep(copy);
        Ok(self.rules_known(of, &compiled, address_of(result), scope))
    }

    fn set_pending_tdmrep(&mut self, of: &Origin, url: CanonicalUrl, attempt: TdmRepAttempt) {
        let pending = RobotsFollowUpRequest::TdmRep(url, attempt);
        self.set_pending_fetch(of, pending);
    }

    /// Returns the reaction once the origin's rules are complete: everything that its pages wait
    /// for was fetched, or failed.
    fn rules_known(
        &self,
        of: &Origin,
        compiled: &CompiledRobots,
        address: Option<IpAddr>,
        scope: &RunScope,
    ) -> RobotsReaction {
        // Take the state as of the time of the answer, so that the copy allows at least one page,
        // however late the answer is read. Otherwise a copy that expires quickly would be fetched
        // again and again.
        let state = self.state(compiled.copy.fetched_at, compiled, address);
        self.events.rules_known(of, &compiled.copy);
        let is_known = !matches!(compiled.copy.state, RobotsRulesState::Unreachable { .. });
        let (sitemaps, unusable) = match self.reads_sitemaps && is_known {
            true => scope.sitemaps_of(of, &compiled.robots, &self.secrets),
            false => (Vec::new(), Vec::new()),
        };
        RobotsReaction {
            next: RobotsStep::Done(state),
            copy: Some(compiled.copy.to_bytes()),
            sitemaps,
            unusable,
            outcome: None,
        }
    }
}

/// Returns why a redirect of robots.txt must not lead to this host; `None` if it may.
fn bar(host: &HostKey, scope: &RunScope, shared: &WorkerCoordination) -> Option<&'static str> {
    if scope.current().excluded_host(host).is_some() {
        Some(EXCLUDED_HOST)
    } else if !shared.keeps(host) {
        Some(OTHER_WORKERS_HOST)
    } else {
        None
    }
}

fn address_of(result: &Result<Exchange, ExchangeFailure>) -> Option<IpAddr> {
    let address = result.as_ref().ok()?.address;
    address.as_ref().map(SocketAddr::ip)
}

/// Returns why no page of an origin may be fetched, given the result for its robots.txt. `None` if
/// the result is no reason to refuse pages.
fn refusal(hop: u8, result: &Result<Exchange, ExchangeFailure>) -> Option<NotFetchedReason> {
    let failure = result.as_ref().err()?;
    match failure.kind {
        FailureKind::NotArchived => Some(NotFetchedReason::of(Reason::NotArchived)),
        kind if hop == 0 && kind.is_refusal() => Some(NotFetchedReason {
            rule: Some(failure.detail.clone()),
            ..NotFetchedReason::of(Reason::Address)
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
