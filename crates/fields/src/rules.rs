//! The compiled rules of a crawl.

use url::Url;

use crate::compiled_rule::CompiledRule;
use crate::config::RuleConfig;
use crate::page_tree::PageTree;
use crate::rule_error::RuleError;
use crate::rule_inputs_and_results::{ExtractedFields, NoMatchReason, PageToMatch};
use crate::{compile, evaluate, no_match_reason};

/// The compiled extraction rules of a crawl, which extract fields from its pages.
#[derive(Clone, Debug, Default)]
pub struct CompiledRules {
    rules: Vec<CompiledRule>,
    configs: Vec<RuleConfig>,
}

impl CompiledRules {
    /// Compiles rules.
    ///
    /// # Errors
    /// All mistakes in the rules, each with its position.
    pub fn compile(configs: &[RuleConfig]) -> Result<CompiledRules, Vec<RuleError>> {
        Ok(CompiledRules {
            rules: compile::rules(configs)?,
            configs: configs.to_vec(),
        })
    }

    /// Returns the settings that the rules were compiled from.
    #[must_use]
    pub fn configs(&self) -> &[RuleConfig] {
        &self.configs
    }

    /// Returns whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns whether any rule may apply to the page. Without a language in `facts`, the result
    /// may be true although no rule applies, because the page turns out to have another language.
    #[must_use]
    pub fn may_match(&self, facts: &PageToMatch<'_>) -> bool {
        let url = Url::parse(facts.url).ok();
        url.is_some_and(|url| self.rules.iter().any(|rule| rule.may_match(&url, facts)))
    }

    /// Applies all rules whose conditions the page meets. Does not parse the page if no rule
    /// applies.
    #[must_use]
    pub fn extract(&self, html: &str, facts: &PageToMatch<'_>) -> Vec<ExtractedFields> {
        let Ok(url) = Url::parse(facts.url) else {
            return Vec::new();
        };
        let rules: Vec<_> = self
            .rules
            .iter()
            .filter(|rule| rule.may_match(&url, facts))
            .collect();
        if rules.is_empty() {
            return Vec::new();
        }
        let tree = PageTree::parse(html);
        evaluate::rules(&rules, &tree, url, facts.language)
    }

    /// Returns the conditions of a rule: the key of each condition, and whether a page meets it.
    #[must_use]
    pub fn conditions(&self, rule: &str, facts: &PageToMatch<'_>) -> Vec<(&'static str, bool)> {
        let rule = self.rules.iter().find(|candidate| candidate.name == rule);
        let url = Url::parse(facts.url).ok();
        let conditions = rule.zip(url);
        conditions.map_or_else(Vec::new, |(rule, url)| {
            rule.conditions(&url, facts).collect()
        })
    }

    /// Returns, for each of `fields` of a rule, hints why its selector matches nothing on a page.
    /// `None` for a field without a selector. A field of a group is named `group.field`.
    #[must_use]
    pub fn nearest(&self, html: &str, rule: &str, fields: &[&str]) -> Vec<Option<NoMatchReason>> {
        let rule = self.rules.iter().find(|candidate| candidate.name == rule);
        let tree = PageTree::parse(html);
        let nearest = |field: &&str| no_match_reason::nearest(&rule?.fields, field, &tree);
        fields.iter().map(nearest).collect()
    }
}
