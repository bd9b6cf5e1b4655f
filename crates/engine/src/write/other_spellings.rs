//! Replaces a link by another spelling of its URL, if a learned rule states that both lead to the
//! same page. The rule may be wrong for this URL. So the link is fetched as it is if the other
//! spelling gives no page, or if nothing links to the other spelling.

use crawl_frontier::{
    AdmissionResult, FrontierError, Lease, LeaseOutcome, NotFetchedReason, RequestedState,
    UrlToAdmit,
};
use crawl_traps::is_about_session_ids;
use crawl_weburl::CanonicalUrl;

use super::commit_group::CommitGroup;
use super::links_awaiting_other_spelling::OtherSpellingState;
use super::trap_learning::ReplacedLink;
use crate::error::EngineError;
use crate::priority::Priority;
use crate::sampling::random_walk::NextWalkerTargets;
use crate::seed_and_sitemap_admissions::admission_of;

impl CommitGroup<'_> {
    /// Settles or defers a URL if `other`, another spelling of it, leads to the same page.
    /// Otherwise makes the URL pending again, to be fetched as it is.
    pub(super) fn replace_spelling(
        &mut self,
        lease: Lease,
        other: CanonicalUrl,
        exclusion: NotFetchedReason,
    ) -> Result<(), EngineError> {
        let rule = exclusion.rule.as_deref().unwrap_or_default();
        let is_fetched_unlinked = is_about_session_ids(rule);
        let priority = Priority::of(&lease);
        let target = admission_of(&lease, other, priority);
        let waits = match self.other_spelling(&target.url)? {
            OtherSpellingState::Works => {
                self.excluded(lease, exclusion, None)?;
                return self.admit(&[target]).map(drop);
            }
            OtherSpellingState::Fails => {
                self.keep_spelling(&lease.url, true);
                false
            }
            OtherSpellingState::Unclear => false,
            OtherSpellingState::NotFetched if !is_fetched_unlinked => false,
            OtherSpellingState::NotFetched | OtherSpellingState::Awaited => {
                let link = admission_of(&lease, lease.url.clone(), priority);
                self.links_awaiting_other_spelling.add(&target.url, link)
            }
        };
        if !waits {
            self.keep_spelling(&lease.url, false);
            return self.later(vec![(lease, priority)]);
        }
        let url = lease.url.clone();
        self.transaction
            .settle(lease, LeaseOutcome::Deferred(exclusion))?;
        if self.walk().is_some() {
            self.walked(&url, NextWalkerTargets::dead_end("excluded"))?;
        }
        self.admit(&[target]).map(drop)
    }

    /// Admits a page's links. In some links, another spelling replaced the URL. If the other
    /// spelling is new, the original link waits for its answer. If the other spelling failed
    /// before, the original link is admitted too.
    pub(super) fn admit_with_replaced(
        &mut self,
        links: &[UrlToAdmit],
        replaced: Vec<ReplacedLink>,
    ) -> Result<Vec<AdmissionResult>, EngineError> {
        let admitted = self.admit(links)?;
        let (mut waiting, mut again) = (Vec::new(), Vec::new());
        for ReplacedLink {
            at,
            link,
            exclusion,
        } in replaced
        {
            if admitted[at] == AdmissionResult::Known {
                if self.other_spelling(&links[at].url)? == OtherSpellingState::Fails {
                    self.keep_spelling(&link.url, true);
                    again.push(link);
                }
                continue;
            }
            if self
                .links_awaiting_other_spelling
                .add(&links[at].url, link.clone())
            {
                waiting.push(UrlToAdmit {
                    state: RequestedState::Deferred(exclusion),
                    ..link
                });
            }
        }
        self.admit(&waiting)?;
        self.admit(&again)?;
        Ok(admitted)
    }

    /// Records the answer of a URL, for which links to other spellings of the URL may wait. If the
    /// URL has no page, admits these links as they are. `status` is `None` if there was no answer.
    pub(super) fn note_answer(
        &mut self,
        url: &CanonicalUrl,
        status: Option<u16>,
    ) -> Result<(), EngineError> {
        self.note_spelling(url, OtherSpellingState::of_status(status))
    }

    /// Admits the links that wait for the answer of a URL, because the URL is not fetched.
    pub(super) fn note_not_fetched(&mut self, url: &CanonicalUrl) -> Result<(), EngineError> {
        self.note_spelling(url, OtherSpellingState::NotFetched)
    }

    fn note_spelling(
        &mut self,
        url: &CanonicalUrl,
        state: OtherSpellingState,
    ) -> Result<(), EngineError> {
        let naming = self.traps.map(|traps| traps.rules().naming);
        if !naming.is_some_and(|naming| naming.learns()) {
            return Ok(());
        }
        self.spellings.insert(url.clone(), state);
        let links = self.links_awaiting_other_spelling.take(url);
        if state == OtherSpellingState::Works || links.is_empty() {
            return Ok(());
        }
        for link in &links {
            self.keep_spelling(&link.url, state == OtherSpellingState::Fails);
        }
        self.admit(&links).map(drop)
    }

    fn other_spelling(&self, url: &CanonicalUrl) -> Result<OtherSpellingState, FrontierError> {
        // The frontier returns only states from before this group, so look into the group first.
        if let Some(state) = self.spellings.get(url) {
            return Ok(*state);
        }
        let details = self.frontier.known(url)?;
        let state = details.as_ref().map(|details| &details.state);
        Ok(OtherSpellingState::of(state))
    }

    fn keep_spelling(&self, url: &CanonicalUrl, has_other_failed: bool) {
        if let Some(traps) = self.traps {
            traps.lock().keep_spelling(url, has_other_failed);
        }
    }
}
