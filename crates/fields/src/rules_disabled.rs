//! Replaces [`CompiledRules`] and [`CssPageMatcher`] in a build without the feature `tree`. Such a
//! build can't compile rules, so neither type ever holds a rule or selector.

use crate::config::RuleConfig;
use crate::rule_error::RuleError;
use crate::rule_inputs_and_results::{ExtractedFields, NoMatchReason, PageToMatch};

/// The compiled rules of a crawl. Always empty in a build without the feature `tree`.
#[derive(Clone, Debug, Default)]
pub struct CompiledRules(());

impl CompiledRules {
    /// Returns an error for each rule, because this build can't apply rules.
    ///
    /// # Errors
    /// [`RuleError`] for each rule. Succeeds only without rules.
    pub fn compile(configs: &[RuleConfig]) -> Result<CompiledRules, Vec<RuleError>> {
        let errors = configs.iter().enumerate().map(|(rule, config)| RuleError {
            rule,
            path: Vec::new(),
            offset: None,
            message: format!("this build can't apply the rule `{}`", config.name),
            hint: "build with the feature `extract`, or remove the rule",
        });
        match configs.is_empty() {
            true => Ok(CompiledRules(())),
            false => Err(errors.collect()),
        }
    }

    /// Returns an empty slice, because there are no rules.
    #[must_use]
    pub fn configs(&self) -> &[RuleConfig] {
        &[]
    }

    /// Returns true, because there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        true
    }

    /// Returns false, because there are no rules.
    #[must_use]
    pub fn may_match(&self, _: &PageToMatch<'_>) -> bool {
        false
    }

    /// Returns no extracts, because there are no rules.
    #[must_use]
    pub fn extract(&self, _: &str, _: &PageToMatch<'_>) -> Vec<ExtractedFields> {
        Vec::new()
    }

    /// Returns no conditions, because there are no rules.
    #[must_use]
    pub fn conditions(&self, _: &str, _: &PageToMatch<'_>) -> Vec<(&'static str, bool)> {
        Vec::new()
    }

    /// Returns no explanations, because there are no rules.
    #[must_use]
    pub fn nearest(&self, _: &str, _: &str, _: &[&str]) -> Vec<Option<NoMatchReason>> {
        Vec::new()
    }
}

/// A CSS selector to test pages with. In a build without the feature `tree`, no value of this type
/// can exist.
#[derive(Clone, Debug)]
pub struct CssPageMatcher(std::convert::Infallible);

impl CssPageMatcher {
    /// Returns an error, because this build can't apply selectors.
    ///
    /// # Errors
    /// Always.
    pub fn parse(_: &str) -> Result<CssPageMatcher, String> {
        Err("this build can't apply selectors; build with the feature `extract`".to_owned())
    }

    /// Can't be called, because no value of this type exists.
    #[must_use]
    pub fn is_on(&self, _: &str) -> Option<bool> {
        match self.0 {}
    }
}

/// Returns `None`, because this build can't parse pages into trees.
#[must_use]
pub fn tree_listing(_: &str) -> Option<String> {
    None
}
