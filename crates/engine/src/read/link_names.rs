//! The name of a link: the spelling that is asked for, and whether it looks like an action.

use crawl_frontier::{Exclusion, Reason};
use crawl_policy::AgentRules;
use crawl_scope::action;
use crawl_weburl::{CanonicalUrl, canonicalize};

use crate::config::TrapRules;

impl TrapRules {
    /// The URL that a link to `url` asks for; `robots` are the rules of its origin, where they are
    /// known.
    pub(crate) fn named(&self, url: CanonicalUrl, robots: Option<&AgentRules>) -> CanonicalUrl {
        let named = self.naming.apply(&url).unwrap_or(url);
        let robots = robots.filter(|_| self.clean_params);
        let cleaned = robots.and_then(|robots| robots.clean(named.as_url()));
        let cleaned = cleaned.and_then(|cleaned| canonicalize(None, cleaned.url.as_str()).ok());
        cleaned.unwrap_or(named)
    }

    /// Returns whether anything is learned from what pages say.
    pub(crate) fn watches(&self) -> bool {
        self.traps || self.naming.learns()
    }

    /// The exclusion of a link that looks like an action, besides its priority.
    pub(crate) fn action(&self, url: &CanonicalUrl) -> Option<Option<Exclusion>> {
        let action = action(url)?;
        let exclusion = Exclusion {
            rule: Some(action.to_string()),
            ..Exclusion::of(Reason::Action)
        };
        Some(self.skip_actions.then_some(exclusion))
    }
}
