//! An answer and what it rests on.

use std::borrow::Cow;

use crate::agent::Profile;

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

/// The answer for one URL, with the rule and the group that it rests on.
///
/// A verdict borrows its texts from the [`AgentRules`](crate::AgentRules) that gave it;
/// [`into_owned`](Verdict::into_owned) detaches it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Verdict<'a> {
    /// Whether the URL may be fetched.
    pub access: RobotsAccess,
    /// The rule that decided; `None` if no rule matches.
    pub rule: Option<Rule<'a>>,
    /// The group of `rule`; without a rule, the first group that speaks for the agent.
    pub group: Option<Group<'a>>,
    /// The reading that decided. Under [`Profile::Strictest`] this is the one that refused.
    pub profile: Profile,
}

/// The line of a robots.txt that decided.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Rule<'a> {
    /// The text as written, without its comment: `Disallow: /private`.
    pub text: Cow<'a, str>,
    /// The line number, from 1.
    pub line: u32,
}

/// A group of a robots.txt that speaks for the agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Group<'a> {
    /// The value of the user-agent line that addresses the agent: its name, or `*`.
    pub agent: Cow<'a, str>,
    /// The number of that line, from 1.
    pub line: u32,
}

impl Verdict<'_> {
    /// Returns whether the URL may be fetched.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.access == RobotsAccess::Allowed
    }

    /// Copies the texts, so that the verdict outlives the rules that gave it.
    #[must_use]
    pub fn into_owned(self) -> Verdict<'static> {
        Verdict {
            access: self.access,
            rule: self.rule.map(Rule::into_owned),
            group: self.group.map(Group::into_owned),
            profile: self.profile,
        }
    }
}

impl Rule<'_> {
    /// Copies the text, so that the rule outlives its file.
    #[must_use]
    pub fn into_owned(self) -> Rule<'static> {
        Rule {
            text: Cow::Owned(self.text.into_owned()),
            line: self.line,
        }
    }
}

impl Group<'_> {
    /// Copies the agent's name, so that the group outlives its file.
    #[must_use]
    pub fn into_owned(self) -> Group<'static> {
        Group {
            agent: Cow::Owned(self.agent.into_owned()),
            line: self.line,
        }
    }
}
