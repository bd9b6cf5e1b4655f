//! How often the rules of a crawl found each field.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::Path;

use crawl_archive::read_text;
use crawl_archive::rows::ExtractRow;
use crawl_extractor::PageText;
use crawl_fields::{FieldConfig, Fields, RuleConfig, Rules};
use crawl_weburl::safe_line;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::archived_pages::read_archived;
use crate::error::RecordsError;
use crate::numbers::{counted, grouped};
use crate::round_view::{RoundView, Rounds};
use crate::rows::{extracts, pages};

/// The file with the rules that the rows of `extracts.jsonl` come from.
const RULES: &str = "extract-rules.json";
/// Maximum bytes of that file.
const MAX_RULES_BYTES: u64 = 16 << 20;
/// Maximum examples of each kind for a field.
const MAX_EXAMPLES: usize = 3;
/// Maximum characters of a value in an example.
const MAX_EXAMPLE_CHARS: usize = 100;

/// The rules that the rows of a crawl's `extracts.jsonl` come from.
pub type ExtractRules = Vec<RuleConfig>;

/// The fields of a crawl, by rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Extraction {
    /// The rules, in the order of the configuration.
    pub rules: Vec<RuleCounts>,
}

/// The results of a rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RuleCounts {
    /// The name of the rule.
    pub rule: String,
    /// Number of pages that the rule read.
    pub pages: u64,
    /// Number of pages that were read only to a limit, by limit.
    pub cut: BTreeMap<String, u64>,
    /// The fields, in the order of the rule. Fields of a group are named `group.field`.
    pub fields: Vec<FieldCounts>,
}

/// How often a field was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FieldCounts {
    /// The name of the field.
    pub field: String,
    /// Number of pages with a value.
    pub filled: u64,
    /// Number of pages without the field.
    pub missing: u64,
    /// Number of pages where the text is not of the field's type, or a required field is missing.
    pub failed: u64,
    /// The first values, with their pages.
    pub values: Vec<Example>,
    /// The first pages without the field.
    pub missing_on: Vec<String>,
    /// The first failures, with their pages.
    pub failures: Vec<Example>,
    /// If no page has the field: the longest beginning of its selector that matches something on
    /// the first page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
}

/// A value or a failure on a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// The page.
    pub url: String,
    /// The value as JSON, or why the field failed.
    pub text: String,
}

/// Reads the rules of a crawl. Empty if there are none, or if they can't be read.
#[must_use]
pub fn extract_rules(dir: &Path) -> ExtractRules {
    let text = read_text(&dir.join(RULES), MAX_RULES_BYTES).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Counts the fields in the `extracts.jsonl` of the crawl in `dir`. `None` if the crawl has no
/// rules. Malformed lines are skipped.
///
/// # Errors
/// File system errors.
pub fn extraction(dir: &Path, rounds: Rounds) -> Result<Option<Extraction>, RecordsError> {
    let rules = extract_rules(dir);
    if rules.is_empty() {
        return Ok(None);
    }
    let view = RoundView::read(dir, rounds)?;
    let mut counts: Vec<RuleCounts> = rules.iter().map(RuleCounts::of).collect();
    let mut rows = extracts(dir)?;
    while let Some(row) = rows.next_sound() {
        let row = row?;
        let rule = counts.iter_mut().find(|rule| rule.rule == row.rule);
        if let Some(rule) = rule.filter(|_| view.holds_extract(&row)) {
            rule.add(&row);
        }
    }
    find_nearest(dir, &rules, &mut counts)?;
    Ok(Some(Extraction { rules: counts }))
}

impl RuleCounts {
    fn of(rule: &RuleConfig) -> RuleCounts {
        let mut fields = Vec::new();
        name_fields(&rule.fields, "", &mut fields);
        RuleCounts {
            rule: rule.name.clone(),
            fields,
            ..RuleCounts::default()
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

    /// Returns the warnings of a rule: it read no page, or never found a field.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        if self.pages == 0 {
            let message = "no page meets its conditions (host, path, match, label, language)";
            return vec![format!("rule {:?}: {message}", self.rule)];
        }
        let never = self
            .fields
            .iter()
            .filter(|field| field.missing == self.pages);
        let warning = |field: &FieldCounts| {
            let nearest = match &field.nearest {
                Some(nearest) => format!("; the nearest match is {nearest:?}"),
                None => String::new(),
            };
            let pages = counted(self.pages, "page", "pages");
            format!(
                "rule {:?}, field {:?}: nothing found on {pages}{nearest}",
                self.rule, field.field
            )
        };
        never.map(warning).collect()
    }
}

fn name_fields(fields: &Fields, prefix: &str, names: &mut Vec<FieldCounts>) {
    for (name, field) in fields.iter() {
        let field_name = format!("{prefix}{name}");
        let inner = format!("{field_name}.");
        names.push(FieldCounts {
            field: field_name,
            ..FieldCounts::default()
        });
        if let FieldConfig::Table(table) = field
            && let Some(group) = &table.fields
        {
            name_fields(group, &inner, names);
        }
    }
}

impl FieldCounts {
    fn add(&mut self, row: &ExtractRow) {
        if let Some(why) = row.failed.get(&self.field) {
            self.failed += 1;
            note(&mut self.failures, &row.url, why);
        } else if row.missing.contains(&self.field) || self.is_in_missing_group(row) {
            self.missing += 1;
            if self.missing_on.len() < MAX_EXAMPLES {
                self.missing_on.push(row.url.clone());
            }
        } else {
            self.filled += 1;
            if self.values.len() < MAX_EXAMPLES {
                let mut path = self.field.split('.');
                let first = path.next().and_then(|name| row.fields.get(name));
                let value = first.and_then(|value| value_at(value, path));
                let text = value.map(ToString::to_string).unwrap_or_default();
                note(&mut self.values, &row.url, &text);
            }
        }
    }

    /// Whether a group that contains the field is missing or failed.
    fn is_in_missing_group(&self, row: &ExtractRow) -> bool {
        let dots = self.field.match_indices('.');
        dots.map(|(at, _)| &self.field[..at]).any(|group| {
            row.missing.iter().any(|name| name == group) || row.failed.contains_key(group)
        })
    }
}

fn note(examples: &mut Vec<Example>, url: &str, text: &str) {
    if examples.len() < MAX_EXAMPLES {
        let mut short: String = text.chars().take(MAX_EXAMPLE_CHARS).collect();
        if short.len() < text.len() {
            short.push_str("..");
        }
        examples.push(Example {
            url: url.to_owned(),
            text: short,
        });
    }
}

/// Returns the first value at a path, through lists and objects.
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

/// Looks on one page, in the archive, for the beginning of each selector that matched on no page.
fn find_nearest(
    dir: &Path,
    rules: &[RuleConfig],
    counts: &mut [RuleCounts],
) -> Result<(), RecordsError> {
    let Ok(rules) = Rules::compile(rules) else {
        return Ok(());
    };
    let is_never = |field: &FieldCounts, pages: u64| pages > 0 && field.missing == pages;
    let mut wanted: BTreeMap<String, Vec<(usize, usize)>> = BTreeMap::new();
    for (at, rule) in counts.iter().enumerate() {
        for (of_field, field) in rule.fields.iter().enumerate() {
            if let Some(url) = field
                .missing_on
                .first()
                .filter(|_| is_never(field, rule.pages))
            {
                wanted.entry(url.clone()).or_default().push((at, of_field));
            }
        }
    }
    let mut rows = pages(dir)?;
    while let Some(row) = rows.next_sound().filter(|_| !wanted.is_empty()) {
        let row = row?;
        if row.repeats_body() || row.warc.is_none() {
            continue;
        }
        let Some(fields) = wanted.remove(&row.url) else {
            continue;
        };
        let Some(page) = read_archived(dir, &row) else {
            continue;
        };
        let text = PageText::decode(&page.body, page.content_type.as_deref());
        for (at, of_field) in fields {
            let rule = &mut counts[at];
            let field = &mut rule.fields[of_field];
            field.nearest = rules.nearest(text.as_str(), &rule.rule, &field.field);
        }
    }
    Ok(())
}

impl Display for Extraction {
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
                writeln!(
                    f,
                    "  {name}: {filled} filled, {missing} missing, {failed} failed"
                )?;
                let values = field.values.iter().take(1);
                for (what, example) in values
                    .map(|value| ("such as", value))
                    .chain(field.failures.iter().take(1).map(|why| ("failed:", why)))
                {
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
