//! Counts how often the rules of a crawl found each field.

mod unmatched_rule_search;

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write as _};
use std::path::Path;

use crawl_archive::read_text;
use crawl_archive::rows::ExtractRow;
use crawl_fields::{FieldConfig, FieldConfigList, REQUIRED_BUT_MISSING, RuleConfig};
use crawl_weburl::safe_line;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::unmatched_rule_search::FirstPagesByRule;
use crate::error::RecordsError;
use crate::number_format::{counted, grouped};
use crate::round_row_filter::{RoundRowFilter, RoundSelection};
use crate::row_file_reader::extracts;

/// The file with the rules that the rows of `extracts.jsonl` come from.
const RULES: &str = "extract-rules.json";
/// Maximum bytes of `extract-rules.json`.
const MAX_RULES_BYTES: u64 = 16 << 20;
/// Maximum examples of each kind for a field.
const MAX_EXAMPLES: usize = 3;
/// Maximum characters of a value in an example.
const MAX_EXAMPLE_CHARS: usize = 100;

/// The rules that the rows of a crawl's `extracts.jsonl` come from.
pub type ExtractRules = Vec<RuleConfig>;

/// How often the extraction rules of a crawl found their fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExtractionReport {
    /// The rules, in the order of the configuration.
    pub rules: Vec<ExtractRuleCounts>,
}

/// How often one rule read a page and found its fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExtractRuleCounts {
    /// The name of the rule.
    pub rule: String,
    /// Number of pages that the rule read.
    pub pages: u64,
    /// A condition that no page meets, if the rule read no page. `None` if each condition is met by
    /// some page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmet: Option<UnmetCondition>,
    /// For each limit, the number of pages that were not read completely because of this limit.
    pub cut: BTreeMap<String, u64>,
    /// The fields, in the order of the rule. Fields of a group are named `group.field`.
    pub fields: Vec<ExtractedFieldCounts>,
}

/// How often a field was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExtractedFieldCounts {
    /// The name of the field.
    pub field: String,
    /// Number of pages with a value.
    pub filled: u64,
    /// Number of pages on which some elements have a value, and others have none, or one that
    /// doesn't fit the type.
    #[serde(default)]
    pub partial: u64,
    /// Number of pages without the field.
    pub missing: u64,
    /// Number of pages without a value on which the text doesn't fit the field's type, or a required
    /// field is missing.
    pub failed: u64,
    /// The first values, with their pages, at most three.
    pub values: Vec<FieldExample>,
    /// The first pages without the field, at most three.
    pub missing_on: Vec<String>,
    /// The first failures, with their pages, at most three. Texts that don't fit the type come
    /// before required fields that are missing.
    pub failures: Vec<FieldExample>,
    /// The longest beginning of the field's selector that matches something, on the first examined
    /// page that has a match. Only set if no page has the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
    /// Why an element that the field's selector matches gives no value, on the first examined page
    /// that has one. Only set if no page has the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unusable_match: Option<String>,
    /// The element, class or id of the field's selector that the pages don't have. Only set if no
    /// page has the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacking: Option<UnmatchedSelectorName>,
}

/// An element, class or id of a selector that the pages don't have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnmatchedSelectorName {
    /// The name as a selector, such as `.prices`.
    pub name: String,
    /// The class or id on the pages that is most similar to the name, such as `.price`.
    pub similar: Option<String>,
    /// Number of examined pages that have the similar class or id.
    pub pages: u64,
    /// Number of examined pages.
    pub of: u64,
}

/// A condition of a rule that no page meets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnmetCondition {
    /// The key of the condition, such as `path`.
    pub key: String,
    /// The value of the condition.
    pub value: String,
    /// The beginning of a page's path that is most similar to the value, if the condition is a
    /// path.
    pub nearest: Option<String>,
    /// Number of pages whose path begins with `nearest`.
    pub pages: u64,
}

/// An example of what a rule found for a field on one page: its value, or why it failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldExample {
    /// The URL of the page.
    pub url: String,
    /// The value as JSON, or the reason why the field failed.
    pub text: String,
}

/// Reads the rules of a crawl. Empty if there are none, or if they can't be read.
#[must_use]
pub fn extract_rules(dir: &Path) -> ExtractRules {
    let text = read_text(&dir.join(RULES), MAX_RULES_BYTES).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Counts how often each field was found in the rows of `extracts.jsonl` in `dir` that belong to
/// `rounds`. `None` if the crawl has no rules. Malformed lines are skipped.
///
/// # Errors
/// File system errors.
pub fn extraction(
    dir: &Path,
    rounds: RoundSelection,
) -> Result<Option<ExtractionReport>, RecordsError> {
    let rules = extract_rules(dir);
    if rules.is_empty() {
        return Ok(None);
    }
    let view = RoundRowFilter::read(dir, rounds)?;
    let mut counts: Vec<ExtractRuleCounts> = rules.iter().map(ExtractRuleCounts::of).collect();
    let mut read = FirstPagesByRule::default();
    let mut rows = extracts(dir)?;
    while let Some(row) = rows.next_sound() {
        let row = row?;
        let rule = counts.iter().position(|rule| rule.rule == row.rule);
        if let Some(rule) = rule.filter(|_| view.holds_extract(&row)) {
            counts[rule].add(&row);
            read.note(rule, &row.url);
        }
    }
    unmatched_rule_search::explain(dir, &rules, &read, &mut counts)?;
    Ok(Some(ExtractionReport { rules: counts }))
}

impl ExtractRuleCounts {
    fn of(rule: &RuleConfig) -> ExtractRuleCounts {
        let mut fields = Vec::new();
        name_fields(&rule.fields, "", &mut fields);
        ExtractRuleCounts {
            rule: rule.name.clone(),
            fields,
            ..ExtractRuleCounts::default()
        }
    }

    fn add(&mut self, row: &ExtractRow) {
        self.pages += 1;
        if let Some(limit) = &row.cut {
            *self.cut.entry(limit.clone()).or_default() += 1;
        }
        for field in &mut self.fields {
            field.add(row);
        }
    }

    /// Returns one warning if the rule read no page. Otherwise, returns a warning for each field
    /// that the rule never found.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        if self.pages == 0 {
            let reason = match &self.unmet {
                Some(unmet) => unmet.to_string(),
                None => "no HTML page that may be kept meets all its conditions".to_owned(),
            };
            return vec![format!("rule {:?}: {reason}", self.rule)];
        }
        let never = self.fields.iter().filter(|field| field.is_never_found());
        let pages = counted(self.pages, "page", "pages");
        let warning = |field: &ExtractedFieldCounts| {
            let (rule, name) = (&self.rule, &field.field);
            let reason = field.why_not_found(&pages);
            format!("rule {rule:?}, field {name:?}: {reason}")
        };
        never.map(warning).collect()
    }
}

impl Display for UnmetCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnmetCondition { key, value, .. } = self;
        match key.as_str() {
            "path" => write!(f, "no page has a path that begins with {value:?}")?,
            _ => write!(f, "no page meets its condition {key} = {value:?}")?,
        }
        if let Some(nearest) = &self.nearest {
            let pages = counted(self.pages, "page has", "pages have");
            write!(f, "; {pages} one with {nearest:?}")?;
        }
        Ok(())
    }
}

fn name_fields(fields: &FieldConfigList, prefix: &str, names: &mut Vec<ExtractedFieldCounts>) {
    for (name, field) in fields.iter() {
        let field_name = format!("{prefix}{name}");
        let inner = format!("{field_name}.");
        names.push(ExtractedFieldCounts {
            field: field_name,
            ..ExtractedFieldCounts::default()
        });
        if let FieldConfig::Table(table) = field
            && let Some(group) = &table.fields
        {
            name_fields(group, &inner, names);
        }
    }
}

impl ExtractedFieldCounts {
    /// Returns whether the rule read pages, but never found a value for this field.
    pub(crate) fn is_never_found(&self) -> bool {
        self.filled + self.partial == 0 && self.missing + self.failed > 0
    }

    /// Returns a failure of a text that doesn't fit the field's type, if there is one: the selector
    /// does match something.
    pub(crate) fn type_failure(&self) -> Option<&FieldExample> {
        let first = self.failures.first();
        first.filter(|failure| failure.text != REQUIRED_BUT_MISSING)
    }

    fn why_not_found(&self, pages: &str) -> String {
        if let Some(failure) = self.type_failure() {
            let mut reason = format!("no value on {pages}; {}", failure.text);
            if self.missing > 0 {
                let _ = write!(reason, "; not found on {}", grouped(self.missing));
            }
            return reason;
        }
        if let Some(unusable) = &self.unusable_match {
            return format!("no value on {pages}; its selector matches, but {unusable}");
        }
        let mut reason = format!("not found on {pages}");
        if let Some(lacking) = &self.lacking {
            let _ = write!(reason, "; {lacking}");
        }
        if let Some(nearest) = &self.nearest
            && self
                .lacking
                .as_ref()
                .is_none_or(|lacking| lacking.similar.is_none())
        {
            let _ = write!(reason, "; the nearest match is {nearest:?}");
        }
        reason
    }

    fn add(&mut self, row: &ExtractRow) {
        let mut path = self.field.split('.');
        let first = path.next().and_then(|name| row.fields.get(name));
        let value = first.and_then(|value| value_at(value, path));
        let value = value.filter(|value| !value.is_null() && value.as_array() != Some(&Vec::new()));
        let failure = row.failed.get(&self.field);
        let is_missing = row.missing.contains(&self.field) || self.is_in_missing_group(row);
        let is_found = value.is_some() || (failure.is_none() && !is_missing);
        let pages = match failure {
            None if !is_missing => &mut self.filled,
            _ if is_found => &mut self.partial,
            Some(_) => &mut self.failed,
            None => &mut self.missing,
        };
        *pages += 1;
        if let Some(reason) = failure {
            if reason != REQUIRED_BUT_MISSING && self.type_failure().is_none() {
                self.failures.clear();
            }
            note(&mut self.failures, &row.url, reason);
        } else if is_missing && self.missing_on.len() < MAX_EXAMPLES {
            self.missing_on.push(row.url.clone());
        }
        if is_found {
            let text = value.map(ToString::to_string).unwrap_or_default();
            note(&mut self.values, &row.url, &text);
        }
    }

    /// Returns whether a group that contains the field is missing or failed.
    fn is_in_missing_group(&self, row: &ExtractRow) -> bool {
        let dots = self.field.match_indices('.');
        dots.map(|(at, _)| &self.field[..at]).any(|group| {
            row.missing.iter().any(|name| name == group) || row.failed.contains_key(group)
        })
    }
}

impl Display for UnmatchedSelectorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name.strip_prefix('.'), self.name.strip_prefix('#')) {
            (Some(class), _) => write!(f, "no element has class {class:?}")?,
            (_, Some(id)) => write!(f, "no element has id {id:?}")?,
            _ => write!(f, "there is no element {:?}", self.name)?,
        }
        let Some(similar) = &self.similar else {
            return Ok(());
        };
        let pages = counted(self.pages, "page has", "pages have");
        match self.pages == self.of {
            true => write!(f, "; {pages} {similar:?}"),
            false => write!(f, "; {pages} {similar:?}, of {} looked at", self.of),
        }
    }
}

fn note(examples: &mut Vec<FieldExample>, url: &str, text: &str) {
    if examples.len() < MAX_EXAMPLES {
        let mut short: String = text.chars().take(MAX_EXAMPLE_CHARS).collect();
        if short.len() < text.len() {
            short.push_str("..");
        }
        examples.push(FieldExample {
            url: url.to_owned(),
            text: short,
        });
    }
}

/// Returns the first value at a path of field names, descending into lists and objects.
fn value_at<'a>(value: &'a Value, path: std::str::Split<'_, char>) -> Option<&'a Value> {
    let mut rest = path.clone();
    match (value, rest.next()) {
        (value, None) => Some(value),
        (Value::Array(items), Some(_)) => {
            let found = |item| value_at(item, path.clone()).filter(|found| !found.is_null());
            items.iter().find_map(found)
        }
        (Value::Object(fields), Some(name)) => value_at(fields.get(name)?, rest),
        _ => None,
    }
}

impl Display for ExtractionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rule in &self.rules {
            let pages = counted(rule.pages, "page", "pages");
            write!(f, "rule      {}: {pages}", safe_line(&rule.rule))?;
            for (limit, pages) in &rule.cut {
                write!(f, ", {} cut ({})", grouped(*pages), safe_line(limit))?;
            }
            writeln!(f)?;
            for field in &rule.fields {
                let [filled, missing, failed] =
                    [field.filled, field.missing, field.failed].map(grouped);
                let name = safe_line(&field.field);
                write!(f, "  {name}: {filled} filled, ")?;
                if field.partial > 0 {
                    write!(f, "{} in part, ", grouped(field.partial))?;
                }
                writeln!(f, "{missing} missing, {failed} failed")?;
                let values = field.values.iter().take(1);
                for (what, example) in values.map(|value| ("such as", value)).chain(
                    field
                        .failures
                        .iter()
                        .take(1)
                        .map(|reason| ("failed:", reason)),
                ) {
                    let text = safe_line(&example.text);
                    writeln!(f, "    {what} {text} on {}", safe_line(&example.url))?;
                }
                if let Some(url) = field.missing_on.first() {
                    writeln!(f, "    missing on {}", safe_line(url))?;
                }
            }
            for warning in rule.warnings() {
                writeln!(f, "warning   {}", safe_line(&warning))?;
            }
        }
        Ok(())
    }
}
