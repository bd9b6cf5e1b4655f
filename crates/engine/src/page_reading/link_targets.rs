//! The URL to fetch for a link, and whether it looks like an action, such as a log-out.

use crawl_frontier::{NotFetchedReason, Reason};
use crawl_policy::AgentRules;
use crawl_scope::action;
use crawl_weburl::{CanonicalUrl, canonicalize};

use crate::config::TrapAvoidance;

impl TrapAvoidance {
    /// Returns the URL to fetch for a link to `url`, which may be another spelling of it. `robots`
    /// are the rules of the URL's origin, if known.
    pub(crate) fn named(&self, url: CanonicalUrl, robots: Option<&AgentRules>) -> CanonicalUrl {
        let named = self.naming.apply(&url).unwrap_or(url);
        let robots = robots.filter(|_| self.clean_params);
        let cleaned = robots.and_then(|robots| robots.clean(named.as_url()));
        let cleaned = cleaned.and_then(|cleaned| canonicalize(None, cleaned.url.as_str()).ok());
        cleaned.unwrap_or(named)
    }

    /// Returns whether the trap detection uses the text of pages.
    pub(crate) fn watches(&self) -> bool {
        self.traps || self.naming.learns()
    }

    /// Returns `None` if the link does not look like an action, such as a log-out. `Some(None)` if
    /// it looks like an action and such links are followed. Otherwise the reason for not following
    /// it.
    pub(crate) fn action(&self, url: &CanonicalUrl) -> Option<Option<NotFetchedReason>> {
        let action = action(url)?;
        let exclusion = NotFetchedReason {
            rule: Some(action.to_string()),
            ..NotFetchedReason::of(Reason::Action)
        };
        Some(self.skip_actions.then_some(exclusion))
    }
}
