//! Verdicts on URLs, with the rule and the group that decided.

use std::borrow::Cow;

use crate::product_token::RobotsProfile;

/// Whether a URL may be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
pub enum RobotsAccess {
    /// The URL may be fetched.
    Allowed,
    /// The URL must not be fetched.
    Disallowed,
}

/// The verdict on one URL, with the rule and the group that decided.
///
/// A verdict borrows its texts from the [`AgentRules`](crate::AgentRules) that returned it;
/// [`into_owned`](RuleVerdict::into_owned) detaches it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RuleVerdict<'a> {
    /// Whether the URL may be fetched.
    pub access: RobotsAccess,
    /// The rule that decided; `None` if no rule matches.
    pub rule: Option<DecidingRule<'a>>,
    /// The group of `rule`. If no rule decided, the first group that applies to the agent.
    pub group: Option<MatchingUserAgentLine<'a>>,
    /// The profile that decided. Under [`RobotsProfile::Strictest`], the profile that disallowed
    /// the URL.
    pub profile: RobotsProfile,
}

/// The line of a robots.txt that decided.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DecidingRule<'a> {
    /// The text as written, without its comment: `Disallow: /private`.
    pub text: Cow<'a, str>,
    /// The line number, from 1.
    pub line: u32,
}

/// The user-agent line that makes a group of a robots.txt apply to the agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MatchingUserAgentLine<'a> {
    /// The value of the user-agent line that matches the agent: its name, or `*`.
    pub agent: Cow<'a, str>,
    /// The number of the user-agent line, from 1.
    pub line: u32,
}

impl RuleVerdict<'_> {
    /// Returns whether the URL may be fetched.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.access == RobotsAccess::Allowed
    }

    /// Copies the texts, so that the verdict outlives the rules that gave it.
    #[must_use]
    pub fn into_owned(self) -> RuleVerdict<'static> {
        RuleVerdict {
            access: self.access,
            rule: self.rule.map(DecidingRule::into_owned),
            group: self.group.map(MatchingUserAgentLine::into_owned),
            profile: self.profile,
        }
    }
}

impl DecidingRule<'_> {
    /// Copies the text, so that the rule outlives its file.
    #[must_use]
    pub fn into_owned(self) -> DecidingRule<'static> {
        DecidingRule {
            text: Cow::Owned(self.text.into_owned()),
            line: self.line,
        }
    }
}

impl MatchingUserAgentLine<'_> {
    /// Copies the agent's name, so that the group outlives its file.
    #[must_use]
    pub fn into_owned(self) -> MatchingUserAgentLine<'static> {
        MatchingUserAgentLine {
            agent: Cow::Owned(self.agent.into_owned()),
            line: self.line,
        }
    }
}
