//! Stands in for rules in a program that was built without the feature `tree`.

use crate::config::RuleConfig;
use crate::page::{Extract, Nearest, PageFacts};
use crate::rule_error::RuleError;

/// Compiled rules. Always empty without the feature `tree`.
#[derive(Clone, Debug, Default)]
pub struct Rules(());

impl Rules {
    /// Refuses every rule, because this program can't apply any.
    ///
    /// # Errors
    /// An error for each rule.
    pub fn compile(configs: &[RuleConfig]) -> Result<Rules, Vec<RuleError>> {
        let errors = configs.iter().enumerate().map(|(rule, config)| RuleError {
            rule,
            path: Vec::new(),
            offset: None,
            message: format!("this build can't apply the rule `{}`", config.name),
            hint: "build with the feature `extract`, or remove the rule",
        });
        match configs.is_empty() {
            true => Ok(Rules(())),
            false => Err(errors.collect()),
        }
    }

    /// Returns nothing: there are no rules.
    #[must_use]
    pub fn configs(&self) -> &[RuleConfig] {
        &[]
    }

    /// Returns true: there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        true
    }

    /// Returns false: no rule reads the page.
    #[must_use]
    pub fn may_match(&self, _: &PageFacts<'_>) -> bool {
        false
    }

    /// Returns nothing.
    #[must_use]
    pub fn extract(&self, _: &str, _: &PageFacts<'_>) -> Vec<Extract> {
        Vec::new()
    }

    /// Returns nothing.
    #[must_use]
    pub fn conditions(&self, _: &str, _: &PageFacts<'_>) -> Vec<(&'static str, bool)> {
        Vec::new()
    }

    /// Returns nothing.
    #[must_use]
    pub fn nearest(&self, _: &str, _: &str, _: &[&str]) -> Vec<Option<Nearest>> {
        Vec::new()
    }
}

/// A CSS selector. Can't exist without the feature `tree`.
#[derive(Clone, Debug)]
pub struct PageSelector(std::convert::Infallible);

impl PageSelector {
    /// Refuses every selector, because this program can't apply any.
    ///
    /// # Errors
    /// Always.
    pub fn parse(_: &str) -> Result<PageSelector, String> {
        Err("this build can't apply selectors; build with the feature `extract`".to_owned())
    }

    /// Never called.
    #[must_use]
    pub fn is_on(&self, _: &str) -> Option<bool> {
        match self.0 {}
    }
}

/// Returns `None`, because this program has no tree.
#[must_use]
pub fn tree_listing(_: &str) -> Option<String> {
    None
}
