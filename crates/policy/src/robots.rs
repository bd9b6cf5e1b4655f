//! A robots.txt, and the rules in it for each agent.

mod agent_rules;
mod clean_params;
mod http_status;
mod line_parser;
mod literal_index;
mod merged_group_rules;
mod non_rule_lines;
mod oddity;
mod older_standards_parser;
mod pattern;
mod prefilter;
mod request_path;
mod rfc9309_parser;
mod rule_prefix_index;
mod verdict;

use std::fmt;
use std::sync::Arc;

use crate::product_token::{ProductToken, RobotsProfile};

pub use agent_rules::AgentRules;
pub use clean_params::CleanedUrl;
pub use http_status::RobotsStatus;
pub use line_parser::MAX_ROBOTS_BYTES;
pub use non_rule_lines::{CleanParamLine, RequestRateLine, SitemapLine, VisitHours, VisitTimeLine};
pub use oddity::{RobotsOddity, RobotsOddityKind};
pub use request_path::{RequestPath, RequestPathError};
pub use verdict::{DecidingRule, MatchingUserAgentLine, RobotsAccess, RuleVerdict};

pub(crate) use agent_rules::path_matches;
pub(crate) use non_rule_lines::{UsageLine, UsageLineVocabulary};

use line_parser::RobotsFileBody;

/// A robots.txt file, with rules for any number of agents.
///
/// Reading never fails. If a file is longer than [`MAX_ROBOTS_BYTES`], only the whole lines within
/// that limit are kept. A byte order mark is dropped, and UTF-16 is converted. A clone shares the
/// bytes of the original.
#[derive(Clone, PartialEq, Eq)]
pub struct Robots {
    body: Arc<RobotsFileBody<'static>>,
}

impl Robots {
    /// Reads a file.
    #[must_use]
    pub fn parse(file: &[u8]) -> Robots {
        let body = Arc::new(RobotsFileBody::of(file).into_owned());
        Robots { body }
    }

    /// Returns a file that allows everything, for a site without a robots.txt.
    #[must_use]
    pub fn allow_all() -> Robots {
        Robots::parse(b"")
    }

    /// Returns a file that disallows everything, for use while the site's own file is
    /// unreachable.
    #[must_use]
    pub fn disallow_all() -> Robots {
        Robots::parse(b"User-agent: *\nDisallow: /\n")
    }

    /// Returns the rules for the crawler `name`, read by RFC 9309.
    ///
    /// `name` is a product name such as `ExampleBot`, or a whole User-Agent. Only the product token
    /// at the start counts: `ExampleBot/2.1 (+https://example.org/)` is `ExampleBot`, but
    /// `Mozilla/5.0 (compatible; ExampleBot/2.1)` is `Mozilla`. If a name does not begin with a
    /// product token, the group for `*` applies to it.
    #[must_use]
    pub fn for_agent(&self, name: &str) -> AgentRules {
        self.for_token(&ProductToken::leading(name), RobotsProfile::default())
    }

    /// Returns the rules for the crawler `token` as `profile` reads them.
    #[must_use]
    pub fn for_token(&self, token: &ProductToken, profile: RobotsProfile) -> AgentRules {
        AgentRules::of(&self.body, token, profile)
    }
}

impl fmt::Debug for Robots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.body.bytes.len();
        f.debug_struct("Robots")
            .field("bytes", &bytes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
