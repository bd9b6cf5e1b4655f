//! Fields that the user's rules extract from pages.
//!
//! [`CompiledRules::compile`] checks and compiles the rules of a settings file.
//! [`CompiledRules::extract`] applies them to a page, which html5ever parses into a tree of bounded
//! size and depth. Extraction never fails: [`ExtractedFields::cut`] names the first limit that a
//! page exceeded, and [`ExtractedFields::failed`] contains the fields whose text can't be converted
//! to their type, and the required fields that are missing. The crate does no I/O.
//!
//! ```
//! # #[cfg(feature = "tree")] {
//! use crawl_fields::{CompiledRules, PageToMatch, RuleConfig};
//!
//! let rule: RuleConfig = toml::from_str(r#"
//!     name = "items"
//!     path = "/item/"
//!     [fields]
//!     title = "h1"
//!     price = { select = ".price", type = "number", locale = "de" }
//! "#).unwrap();
//! let rules = CompiledRules::compile(&[rule]).unwrap();
//! let facts = PageToMatch { url: "https://shop.example/item/7", ..PageToMatch::default() };
//! let html = "<h1>Thing 7</h1> <b class=price>1.207,50 €</b>";
//! let extract = &rules.extract(html, &facts)[0];
//! assert_eq!(extract.fields["price"], 1207.5);
//! # }
//! ```
//!
//! The feature `tree` adds the dependencies html5ever and selectors. Without this feature, rules
//! can be parsed but not compiled.

#[cfg(feature = "tree")]
mod compile;
#[cfg(feature = "tree")]
mod compiled_rule;
mod config;
#[cfg(feature = "tree")]
mod css_selector_matching;
#[cfg(feature = "tree")]
mod dates;
#[cfg(feature = "tree")]
mod element_text;
#[cfg(feature = "tree")]
mod evaluate;
#[cfg(feature = "tree")]
mod field_value_parser;
#[cfg(feature = "tree")]
mod json_ld;
#[cfg(feature = "tree")]
mod locale;
#[cfg(feature = "tree")]
mod microdata;
#[cfg(feature = "tree")]
mod no_match_reason;
#[cfg(feature = "tree")]
mod number;
#[cfg(feature = "tree")]
mod page_contains_selector;
#[cfg(feature = "tree")]
mod page_tree;
mod rule_error;
mod rule_inputs_and_results;
#[cfg(feature = "tree")]
mod rule_work_budget;
#[cfg(feature = "tree")]
mod rules;
#[cfg(not(feature = "tree"))]
mod rules_disabled;

pub use config::{
    ElementContent, FieldConfig, FieldConfigList, FieldConfigTable, FieldType, RuleConfig,
};
#[cfg(feature = "tree")]
pub use page_contains_selector::CssPageMatcher;
#[cfg(feature = "tree")]
pub use page_tree::tree_listing;
pub use rule_error::RuleError;
pub use rule_inputs_and_results::{
    ExtractedFields, NoMatchReason, PageToMatch, REQUIRED_BUT_MISSING,
};
#[cfg(feature = "tree")]
pub use rules::CompiledRules;
#[cfg(not(feature = "tree"))]
pub use rules_disabled::{CompiledRules, CssPageMatcher, tree_listing};
