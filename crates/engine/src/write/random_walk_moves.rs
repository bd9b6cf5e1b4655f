//! The steps of a random walk. A walker takes its next step in the transaction that settles the
//! page that it waits for.

use std::sync::Arc;

use crawl_archive::rows::RandomWalkStep;
use crawl_frontier::{
    KnownState, Lease, LeaseOutcome, NotFetchedReason, Reason, RequestedState, UrlToAdmit,
};
use crawl_weburl::{CanonicalUrl, canonicalize};

use super::commit_group::CommitGroup;
use crate::error::EngineError;
use crate::frontier_meta_keys::META_WALK;
use crate::priority::Priority;
use crate::sampling::random_walk::{
    NextWalkerTargets, RandomWalk, Walker, WalkerMove, walked_key, walker_key,
};
use crate::seed_and_sitemap_admissions::admission_of;

impl CommitGroup<'_> {
    /// Returns the random walk of the crawl. `None` if the crawl is not a random walk.
    pub(super) fn walk(&self) -> Option<&RandomWalk> {
        self.sampling.and_then(|sampling| sampling.walk())
    }

    /// Makes the seeds that may be fetched the seeds of the walk. Does nothing if the walk has
    /// seeds already.
    pub(super) fn begin_walk(&mut self, seeds: &[UrlToAdmit]) {
        let seeds = seeds.iter().filter(|seed| {
            seed.state == RequestedState::Pending && !self.tombstones.holds(&seed.url)
        });
        let seeds = seeds.map(|seed| seed.url.clone()).collect();
        if let Some(stored) = self.walk().and_then(|walk| walk.begin(seeds)) {
            self.transaction.keep_meta(META_WALK, &stored);
        }
    }

    /// Returns the choices that a settled page gives a walker: the page's links or its redirect.
    /// `None` if the crawl is not a random walk.
    pub(super) fn walked_page(
        &self,
        lease: &Lease,
        status: Option<u16>,
        links: &[UrlToAdmit],
    ) -> Option<NextWalkerTargets> {
        self.walk()?;
        let arrival = (lease.depth, lease.redirects, lease.is_seed);
        let is_kept = |url: &CanonicalUrl| !self.tombstones.holds(url);
        Some(NextWalkerTargets::read(arrival, status, links, is_kept))
    }

    /// Stores the links or the redirect of a settled page for walkers, and moves on the walkers
    /// that waited for the page. Only the first visit of a page counts, so later rounds don't
    /// change a walk.
    pub(super) fn walked(
        &mut self,
        url: &CanonicalUrl,
        page: NextWalkerTargets,
    ) -> Result<(), EngineError> {
        if self.walked_before(url.as_str())?.is_none() {
            if let Ok(bytes) = serde_json::to_vec(&page) {
                self.transaction
                    .keep_meta(&walked_key(url.as_str()), &bytes);
            }
            self.walked.insert(url.to_string(), Arc::new(page));
        }
        self.move_walkers(Some(url))
    }

    /// Moves each walker until it reaches a URL that is not settled, and admits these URLs. If
    /// `from` is given, moves only the walkers at that URL.
    pub(super) fn move_walkers(&mut self, from: Option<&CanonicalUrl>) -> Result<(), EngineError> {
        let Some(walk) = self.walk().cloned() else {
            return Ok(());
        };
        if from.is_some_and(|url| !walk.awaits(url)) {
            return Ok(());
        }
        let (seeds, before) = {
            let walkers = walk.lock();
            (walkers.seeds.clone(), walkers.each.clone())
        };
        let mut after = before.clone();
        let mut targets = Vec::new();
        for (number, walker) in (1..).zip(&mut after) {
            let is_here = from.is_none_or(|url| walker.at.as_deref() == Some(url.as_str()));
            if is_here && !walker.is_done {
                targets.extend(self.move_walker(&walk, number, walker, &seeds)?);
            }
        }
        for (number, (before, after)) in (1..).zip(before.iter().zip(&after)) {
            if before != after
                && let Ok(bytes) = serde_json::to_vec(after)
            {
                self.transaction.keep_meta(&walker_key(number), &bytes);
            }
        }
        {
            let mut walkers = walk.lock();
            walkers.each = after;
            walkers.note_awaited();
        }
        self.admit(&targets).map(drop)
    }

    /// Moves a walker to the first URL that is not settled, or to the end of its walk. Returns the
    /// admission of that URL; `None` at the end of the walk.
    fn move_walker(
        &mut self,
        walk: &RandomWalk,
        number: u32,
        walker: &mut Walker,
        seeds: &[CanonicalUrl],
    ) -> Result<Option<UrlToAdmit>, EngineError> {
        let mut target = None;
        loop {
            let page = match &walker.at {
                Some(at) => match self.walked_before(at)? {
                    Some(page) => Some(page),
                    None => return self.waiting(at, target),
                },
                None => None,
            };
            let from = walker.at.clone();
            let Some(moved) = walk.go_on(number, walker, page.as_deref(), seeds) else {
                return Ok(None);
            };
            let WalkerMove {
                how,
                why,
                links,
                to,
            } = moved;
            if let Some(file) = &mut self.files.walk {
                file.append(&RandomWalkStep {
                    walker: number,
                    step: walker.step,
                    how: how.to_owned(),
                    why,
                    url: to.url.to_string(),
                    from,
                    links,
                })?;
            }
            target = Some(to);
        }
    }

    /// Returns the links or the redirect of a page that was settled earlier. `None` if the URL is
    /// not settled.
    fn walked_before(&mut self, url: &str) -> Result<Option<Arc<NextWalkerTargets>>, EngineError> {
        if let Some(page) = self.walked.get(url) {
            return Ok(Some(Arc::clone(page)));
        }
        let page = match NextWalkerTargets::stored(self.frontier, url)? {
            Some(page) => page,
            // The URL may have been settled for another purpose, for example as a part of a page.
            None => match canonicalize(None, url).map(|url| self.frontier.known(&url)) {
                Ok(known) => match known?.map(|known| known.state) {
                    Some(KnownState::Excluded(_)) => NextWalkerTargets::dead_end("excluded"),
                    Some(KnownState::Fetched { .. } | KnownState::Failed { .. }) => {
                        NextWalkerTargets::dead_end("no page")
                    }
                    _ => return Ok(None),
                },
                Err(_) => NextWalkerTargets::dead_end("excluded"),
            },
        };
        let page = Arc::new(page);
        self.walked.insert(url.to_owned(), Arc::clone(&page));
        Ok(Some(page))
    }

    /// Returns the admission of a URL that a walker waits for. Uses the data of the link to the
    /// URL, or else the frontier's record of the URL.
    fn waiting(
        &self,
        at: &str,
        target: Option<UrlToAdmit>,
    ) -> Result<Option<UrlToAdmit>, EngineError> {
        let Ok(url) = canonicalize(None, at) else {
            return Ok(None);
        };
        let again = match (target, self.frontier.known(&url)?) {
            (Some(target), _) => target,
            (None, Some(known)) => UrlToAdmit {
                via: known.via,
                ..UrlToAdmit::link(url.clone(), known.depth, url)
            },
            (None, None) => UrlToAdmit::seed(url),
        };
        Ok(Some(UrlToAdmit {
            priority: Priority::LINK.byte(),
            ..again
        }))
    }

    /// Defers a leased URL. If a walker waits for the URL, admits it again at once, or restarts the
    /// walker if the URL is too deep or looks like an action.
    pub(super) fn put_aside(
        &mut self,
        lease: Lease,
        exclusion: NotFetchedReason,
    ) -> Result<(), EngineError> {
        let is_awaited = self.walk().is_some_and(|walk| walk.awaits(&lease.url));
        let is_dead_end = matches!(exclusion.reason, Reason::Depth | Reason::Action);
        let again = admission_of(&lease, lease.url.clone(), Priority::LINK);
        self.transaction
            .settle(lease, LeaseOutcome::Deferred(exclusion))?;
        self.note_not_fetched(&again.url)?;
        match (is_awaited, is_dead_end) {
            (false, _) => Ok(()),
            (true, true) => self.walked(&again.url, NextWalkerTargets::dead_end("excluded")),
            (true, false) => self.admit(&[again]).map(drop),
        }
    }
}
