//! Finds out why a rule read no page, or why no page had a field. Searches the pages of the crawl
//! for the text that is most similar to the condition or the selector.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use crawl_archive::rows::PageRow;
use crawl_extractor::DecodedPage;
use crawl_fields::{CompiledRules, NoMatchReason, PageToMatch, RuleConfig};
use crawl_weburl::canonicalize;

use super::{ExtractRuleCounts, UnmatchedSelectorName, UnmetCondition};
use crate::archived_pages::read_archived;
use crate::broken_links::key;
use crate::error::RecordsError;
use crate::row_file_reader::pages;

/// Maximum pages that are parsed to explain the fields that a rule never found.
/// Beyond the limit: further pages are not looked at.
const MAX_PAGES_LOOKED_AT: usize = 20;
/// Maximum characters of a path that are compared with that of a rule.
/// Beyond the limit: the rest is ignored.
const MAX_PATH_CHARS: usize = 200;

/// For the index of each rule: the hashes of the URLs of the first pages that it read.
#[derive(Debug, Default)]
pub(crate) struct FirstPagesByRule(BTreeMap<usize, HashSet<u64>>);

impl FirstPagesByRule {
    pub(crate) fn note(&mut self, rule: usize, url: &str) {
        let pages = self.0.entry(rule).or_default();
        if pages.len() < MAX_PAGES_LOOKED_AT {
            pages.insert(key(url));
        }
    }
}

/// Explains the rules in `counts` that read no page, and the fields that were never found.
pub(crate) fn explain(
    dir: &Path,
    configs: &[RuleConfig],
    read: &FirstPagesByRule,
    counts: &mut [ExtractRuleCounts],
) -> Result<(), RecordsError> {
    let Ok(rules) = CompiledRules::compile(configs) else {
        return Ok(());
    };
    let mut conditions: Vec<_> = (0..)
        .zip(configs)
        .zip(counts.iter())
        .filter(|(_, counts)| counts.pages == 0)
        .map(|((at, config), _)| (at, RuleConditionSearch::of(config)))
        .collect();
    let mut searches: Vec<_> = (0..)
        .zip(counts.iter())
        .filter_map(|(at, counts)| RuleFieldSearch::of(at, counts))
        .collect();
    if conditions.is_empty() && searches.is_empty() {
        return Ok(());
    }
    let mut rows = pages(dir)?;
    while let Some(row) = rows.next_sound() {
        let row = row?;
        if row.repeats_body() || !row.may_show_body() {
            continue;
        }
        if matches!(row.status, Some(200..=299)) {
            for (_, conditions) in &mut conditions {
                conditions.add(&rules, &row);
            }
        }
        look_at(dir, &rules, read, &row, &mut searches);
    }
    for (at, conditions) in conditions {
        counts[at].unmet = conditions.unmet();
    }
    for search in searches {
        search.finish(&mut counts[search.rule]);
    }
    Ok(())
}

/// The conditions of a rule, and whether any page meets each of them.
struct RuleConditionSearch<'a> {
    config: &'a RuleConfig,
    is_met: HashMap<&'static str, bool>,
    /// The beginning of a page's path that is most similar to the rule's path, and the similarity.
    nearest: Option<(String, f64)>,
    /// Number of pages whose path begins with `nearest`.
    pages: u64,
}

impl RuleConditionSearch<'_> {
    fn of(config: &RuleConfig) -> RuleConditionSearch<'_> {
        RuleConditionSearch {
            config,
            is_met: HashMap::new(),
            nearest: None,
            pages: 0,
        }
    }

    fn add(&mut self, rules: &CompiledRules, row: &PageRow) {
        let facts = PageToMatch {
            url: &row.url,
            content_type: row.content_type.as_deref(),
            language: row.language.as_deref(),
            label: row.label.as_deref(),
        };
        let mut is_on_host = true;
        for (name, is_met) in rules.conditions(&self.config.name, &facts) {
            *self.is_met.entry(name).or_default() |= is_met;
            is_on_host &= is_met || name != "host";
        }
        if let (Some(wanted), Ok(url)) = (&self.config.path, canonicalize(None, &row.url))
            && is_on_host
        {
            self.compare(wanted, url.path());
        }
    }

    fn compare(&mut self, wanted: &str, path: &str) {
        let begin = beginning(path, wanted);
        if self
            .nearest
            .as_ref()
            .is_some_and(|(nearest, _)| nearest == begin)
        {
            self.pages += 1;
            return;
        }
        let likeness = strsim::jaro_winkler(wanted, begin);
        if self
            .nearest
            .as_ref()
            .is_none_or(|(_, most)| likeness > *most)
        {
            self.nearest = Some((begin.to_owned(), likeness));
            self.pages = 1;
        }
    }

    fn unmet(self) -> Option<UnmetCondition> {
        let RuleConfig {
            host,
            path,
            matches,
            label,
            content_type,
            language,
            ..
        } = self.config;
        let conditions = [
            ("host", host),
            ("path", path),
            ("match", matches),
            ("label", label),
            ("content-type", content_type),
            ("language", language),
        ];
        let mut unmet = conditions
            .into_iter()
            .filter(|(key, _)| self.is_met.get(key) == Some(&false));
        let (key, value) = unmet.next()?;
        let nearest = self.nearest.filter(|_| key == "path");
        Some(UnmetCondition {
            key: key.to_owned(),
            value: value.clone().unwrap_or_default(),
            pages: if nearest.is_some() { self.pages } else { 0 },
            nearest: nearest.map(|(path, _)| path),
        })
    }
}

/// Returns the beginning of a path that has as many segments as `wanted`.
fn beginning<'p>(path: &'p str, wanted: &str) -> &'p str {
    let slashes = wanted.matches('/').count();
    let ends = path
        .match_indices('/')
        .nth(slashes - usize::from(slashes > 0));
    let end = match ends {
        Some((at, _)) if wanted.ends_with('/') => at + 1,
        _ => path
            .match_indices('/')
            .nth(slashes)
            .map_or(path.len(), |(at, _)| at),
    };
    let most = path
        .char_indices()
        .nth(MAX_PATH_CHARS)
        .map_or(path.len(), |(at, _)| at);
    &path[..end.min(most)]
}

/// The search for the fields that one rule never found.
struct RuleFieldSearch {
    rule: usize,
    name: String,
    fields: Vec<NeverFoundFieldSearch>,
    pages: u64,
}

struct NeverFoundFieldSearch {
    /// The index of the field in [`ExtractRuleCounts::fields`].
    field: usize,
    name: String,
    unusable_match: Option<String>,
    nearest: Option<String>,
    /// Number of pages for each pair of names: a name in the selector that the page lacks, and the
    /// most similar name on the page.
    lacking: BTreeMap<(String, Option<String>), u64>,
}

impl RuleFieldSearch {
    fn of(rule: usize, counts: &ExtractRuleCounts) -> Option<RuleFieldSearch> {
        let never = (0..)
            .zip(&counts.fields)
            .filter(|(_, field)| field.is_never_found() && field.type_failure().is_none());
        let fields: Vec<_> = never
            .map(|(at, field)| NeverFoundFieldSearch {
                field: at,
                name: field.field.clone(),
                unusable_match: None,
                nearest: None,
                lacking: BTreeMap::new(),
            })
            .collect();
        let search = RuleFieldSearch {
            rule,
            name: counts.rule.clone(),
            fields,
            pages: 0,
        };
        (!search.fields.is_empty()).then_some(search)
    }

    fn add(&mut self, nearest: Vec<Option<NoMatchReason>>) {
        self.pages += 1;
        for (field, nearest) in self.fields.iter_mut().zip(nearest) {
            let Some(nearest) = nearest else { continue };
            field.unusable_match = field.unusable_match.take().or(nearest.unusable_match);
            field.nearest = field.nearest.take().or(nearest.beginning);
            if let Some(name) = nearest.lacking {
                *field.lacking.entry((name, nearest.similar)).or_default() += 1;
            }
        }
    }

    fn finish(&self, counts: &mut ExtractRuleCounts) {
        for field in &self.fields {
            let to = &mut counts.fields[field.field];
            to.unusable_match.clone_from(&field.unusable_match);
            to.nearest.clone_from(&field.nearest);
            // Pages may have different similar names. A name counts only if no page has it.
            let pages_without = |name: &String| -> u64 {
                let lacking = field.lacking.iter().filter(|((other, _), _)| other == name);
                lacking.map(|(_, pages)| pages).sum()
            };
            let absent_names = field.lacking.iter();
            let absent_names =
                absent_names.filter(|((name, _), _)| pages_without(name) == self.pages);
            let nearest_name =
                absent_names.max_by_key(|((_, similar), pages)| (similar.is_some(), **pages));
            to.lacking = nearest_name.map(|((name, similar), pages)| UnmatchedSelectorName {
                name: name.clone(),
                similar: similar.clone(),
                pages: *pages,
                of: self.pages,
            });
        }
    }
}

/// Parses the page of a row, and passes it to each search of a rule that read the page.
fn look_at(
    dir: &Path,
    rules: &CompiledRules,
    read: &FirstPagesByRule,
    row: &PageRow,
    searches: &mut [RuleFieldSearch],
) {
    let key = key(&row.url);
    let is_read = |search: &&mut RuleFieldSearch| {
        read.0
            .get(&search.rule)
            .is_some_and(|pages| pages.contains(&key))
    };
    let mut searches = searches.iter_mut().filter(is_read).peekable();
    if searches.peek().is_none() {
        return;
    }
    let Some(page) = read_archived(dir, row) else {
        return;
    };
    let text = DecodedPage::decode(&page.body, page.content_type.as_deref());
    for search in searches {
        let names: Vec<&str> = search.fields.iter().map(|field| &*field.name).collect();
        search.add(rules.nearest(text.as_str(), &search.name, &names));
    }
}

#[cfg(test)]
mod tests {
    use super::beginning;

    #[test]
    fn the_beginning_of_a_path_has_as_many_segments_as_the_rule_wants() {
        for (path, wanted, expected) in [
            ("/items/7", "/itms/", "/items/"),
            ("/items/7", "/itms", "/items"),
            ("/shop/items/7", "/shop/itms/", "/shop/items/"),
            ("/items", "/itms/", "/items"),
            ("/", "/itms/", "/"),
            ("/a/b", "/", "/"),
        ] {
            assert_eq!(beginning(path, wanted), expected, "{path} {wanted}");
        }
    }
}
