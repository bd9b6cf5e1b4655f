//! A selector that tests whether a page contains a matching element.

use crate::css_selector_matching::CssSelectorList;
use crate::page_tree::PageTree;
use crate::rule_work_budget::RuleWorkBudget;

/// A CSS selector to test pages with. See [`CssPageMatcher::is_on`].
#[derive(Clone, Debug)]
pub struct CssPageMatcher(CssSelectorList);

impl CssPageMatcher {
    /// Parses a selector.
    ///
    /// # Errors
    /// The reason why the text is not a supported selector.
    pub fn parse(text: &str) -> Result<CssPageMatcher, String> {
        let selector = CssSelectorList::parse(text);
        selector.map(CssPageMatcher).map_err(|(_, why)| why)
    }

    /// Returns whether any element of the page matches. `None` if a limit was reached before a
    /// match was found.
    ///
    /// ```
    /// # #[cfg(feature = "tree")] {
    /// let selector = crawl_fields::CssPageMatcher::parse("a.logout").unwrap();
    /// assert_eq!(selector.is_on("<p><a class=logout>Bye</a>"), Some(true));
    /// assert_eq!(selector.is_on("<p>a.logout"), Some(false));
    /// # }
    /// ```
    #[must_use]
    pub fn is_on(&self, html: &str) -> Option<bool> {
        let tree = PageTree::parse(html);
        let budget = RuleWorkBudget::new(tree.cut);
        let root = tree.root()?;
        match self.0.matches(root, &budget).next() {
            Some(_) => Some(true),
            None if budget.end_rule().is_none() => Some(false),
            None => None,
        }
    }
}
