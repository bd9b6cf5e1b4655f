//! A selector that is only checked for a match.

use crate::budget::Budget;
use crate::select::Selector;
use crate::tree::Tree;

/// A CSS selector, and whether any element of a page matches it.
#[derive(Clone, Debug)]
pub struct PageSelector(Selector);

impl PageSelector {
    /// Parses a selector.
    ///
    /// # Errors
    /// Why the text is not a selector that is supported.
    pub fn parse(text: &str) -> Result<PageSelector, String> {
        let selector = Selector::parse(text);
        selector.map(PageSelector).map_err(|(_, why)| why)
    }

    /// Returns whether an element of the page matches. `None` if a limit was reached before one did.
    ///
    /// ```
    /// # #[cfg(feature = "tree")] {
    /// let selector = crawl_fields::PageSelector::parse("a.logout").unwrap();
    /// assert_eq!(selector.is_on("<p><a class=logout>Bye</a>"), Some(true));
    /// assert_eq!(selector.is_on("<p>a.logout"), Some(false));
    /// # }
    /// ```
    #[must_use]
    pub fn is_on(&self, html: &str) -> Option<bool> {
        let tree = Tree::parse(html);
        let budget = Budget::new(tree.cut);
        let root = tree.root()?;
        match self.0.matches(root, &budget).next() {
            Some(_) => Some(true),
            None if budget.end_rule().is_none() => Some(false),
            None => None,
        }
    }
}
