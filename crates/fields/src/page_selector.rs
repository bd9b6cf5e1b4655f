//! A selector that tests whether a page contains a matching element.

use crate::budget::Budget;
use crate::select::Selector;
use crate::tree::Tree;

/// A CSS selector to test pages with. See [`PageSelector::is_on`].
#[derive(Clone, Debug)]
pub struct PageSelector(Selector);

impl PageSelector {
    /// Parses a selector.
    ///
    /// # Errors
    /// The reason why the text is not a supported selector.
    pub fn parse(text: &str) -> Result<PageSelector, String> {
        let selector = Selector::parse(text);
        selector.map(PageSelector).map_err(|(_, why)| why)
    }

    /// Returns whether any element of the page matches. `None` if a limit was reached before a
    /// match was found.
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
