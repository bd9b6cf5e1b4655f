//! Errors in rules.

use std::fmt;

/// A mistake in a rule, with its place in the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// The index of the rule in its list.
    pub rule: usize,
    /// The keys that lead to the value, such as `fields`, `price`, `select`.
    pub path: Vec<String>,
    /// The number of characters before the mistake within the value, if the mistake is at one
    /// place.
    pub offset: Option<usize>,
    /// The problem, in lower case, with the offending value.
    pub message: String,
    /// Advice for the user.
    pub hint: &'static str,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.join("."), self.message)
    }
}

impl std::error::Error for RuleError {}
