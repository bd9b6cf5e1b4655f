//! Errors in rules.

use std::fmt;

/// A mistake in a rule, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// The index of the rule in the list of rules.
    pub rule: usize,
    /// The keys that lead to the value with the mistake, such as `fields`, `price`, `select`.
    pub path: Vec<String>,
    /// The position of the mistake within the value, in characters. `None` if the mistake concerns
    /// the whole value.
    pub offset: Option<usize>,
    /// A description of the mistake, with the value that contains it. Starts in lower case.
    pub message: String,
    /// Advice on how to correct the mistake.
    pub hint: &'static str,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.join("."), self.message)
    }
}

impl std::error::Error for RuleError {}
