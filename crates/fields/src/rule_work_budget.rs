//! Limits the work of rules on one page: the steps through the page's tree, the values extracted,
//! and the bytes of their text.

use std::cell::Cell;

/// Maximum steps from node to node in a page. All rules of the page together may take this many.
/// Beyond the limit: other fields are missing (`cut: steps`).
pub(crate) const MAX_STEPS: u64 = 50_000_000;

/// Maximum elements that one field takes from a page.
/// Beyond the limit: the others are ignored, and the row has `cut: values`.
pub(crate) const MAX_VALUES: usize = 10_000;

/// Maximum bytes of text that one rule takes from a page.
/// Beyond the limit: the rest is ignored, and the row has `cut: size`.
pub(crate) const MAX_RULE_BYTES: usize = 2 << 20;

/// Maximum bytes of JSON-LD in a page. In memory, they take up to a hundred times as much.
/// Beyond the limit: other scripts are ignored (`cut: size`).
pub(crate) const MAX_JSON_LD_BYTES: usize = 1 << 20;

/// The remaining steps and bytes of the rules on one page, and the first limit that was reached.
/// Steps are limited per page, bytes per rule.
pub(crate) struct RuleWorkBudget {
    steps: Cell<u64>,
    bytes: Cell<usize>,
    cut: Cell<Option<&'static str>>,
    cut_of_page: Option<&'static str>,
}

impl RuleWorkBudget {
    /// Creates the budget of a page. `cut_of_page` is the limit that ended the parsing of the page,
    /// if any.
    pub(crate) fn new(cut_of_page: Option<&'static str>) -> RuleWorkBudget {
        RuleWorkBudget {
            steps: Cell::new(MAX_STEPS),
            bytes: Cell::new(MAX_RULE_BYTES),
            cut: Cell::new(cut_of_page),
            cut_of_page,
        }
    }

    /// Uses up one step. Returns false if no steps are left.
    pub(crate) fn step(&self) -> bool {
        match self.steps.get().checked_sub(1) {
            Some(left) => {
                self.steps.set(left);
                true
            }
            None => {
                self.note("steps");
                false
            }
        }
    }

    /// Uses up to `wanted` bytes and returns the number granted.
    pub(crate) fn bytes(&self, wanted: usize) -> usize {
        let granted = wanted.min(self.bytes.get());
        self.bytes.set(self.bytes.get() - granted);
        if granted < wanted {
            self.note("size");
        }
        granted
    }

    /// Records that a limit was reached, unless the rule has already reached another limit.
    pub(crate) fn note(&self, limit: &'static str) {
        if self.cut.get().is_none() {
            self.cut.set(Some(limit));
        }
    }

    /// Returns the first limit that the current rule reached, and resets the bytes for the next
    /// rule.
    pub(crate) fn end_rule(&self) -> Option<&'static str> {
        self.bytes.set(MAX_RULE_BYTES);
        let next = match self.steps.get() {
            0 => Some("steps"),
            _ => None,
        };
        self.cut.replace(self.cut_of_page.or(next))
    }
}
