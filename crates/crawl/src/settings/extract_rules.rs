//! Rules for the fields of pages: the tables `[[extract]]` of a file.

use crawl_fields::{CompiledRules, FieldConfig, FieldConfigList, RuleConfig, RuleError};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{CommandError, ErrorCollector};

/// The name of the list of tables.
pub(super) const TABLE: &str = "extract";

/// Compiles rules. The errors contain no position in a file.
///
/// # Errors
/// All mistakes in the rules.
pub(super) fn compile(rules: &[RuleConfig]) -> Result<CompiledRules, CommandError> {
    let mut problems = ErrorCollector::default();
    match CompiledRules::compile(rules) {
        Ok(compiled) => Ok(compiled),
        Err(errors) => {
            for error in errors {
                let name = rules.get(error.rule).map(|rule| &rule.name);
                let problem = CommandError::usage(message(&error, name)).hint(error.hint);
                problems.note::<()>(Err(problem));
            }
            problems.or(CompiledRules::default())
        }
    }
}

/// Returns the message of a mistake, with the names of the rule and the field.
pub(super) fn message(error: &RuleError, rule: Option<&String>) -> String {
    let keys = error.path.iter().filter(|key| *key != "fields");
    let keys: Vec<&str> = keys.map(String::as_str).collect();
    let rule = rule.map_or("", |name| name);
    match keys.is_empty() {
        true => format!("[[extract]] {rule:?}: {}", error.message),
        false => format!(
            "[[extract]] {rule:?}, {}: {}",
            keys.join("."),
            error.message
        ),
    }
}

/// Returns the name of a rule's table.
pub(super) fn name_of(table: &Spanned<DeValue<'_>>) -> Option<String> {
    let name = table.get_ref().as_table()?.get("name")?;
    name.get_ref().as_str().map(str::to_owned)
}

/// Returns the byte offset in the file of a mistake in a rule's table. This is the offset of the
/// first of these that is known:
///
/// 1. the wrong character of a value,
/// 2. the value,
/// 3. the innermost table that exists.
pub(super) fn place(table: &Spanned<DeValue<'_>>, error: &RuleError) -> usize {
    let mut value = table;
    for key in &error.path {
        let inner = value
            .get_ref()
            .as_table()
            .and_then(|keys| keys.get(key.as_str()));
        match inner {
            Some(inner) => value = inner,
            None => break,
        }
    }
    let start = value.span().start;
    let text = value.get_ref().as_str();
    match (text, error.offset) {
        (Some(text), Some(offset)) => {
            let before: usize = text.chars().take(offset).map(char::len_utf8).sum();
            // Skip the opening quotation mark.
            start + 1 + before
        }
        _ => start,
    }
}

/// Sorts the fields of each rule into their order in the file, because the TOML reader sorts them
/// by name. Exported tables have their columns in this order.
pub(super) fn put_in_order(rules: &mut [RuleConfig], tables: &[&Spanned<DeValue<'_>>]) {
    for rule in rules {
        let mut named = tables
            .iter()
            .filter(|table| name_of(table).as_ref() == Some(&rule.name));
        if let Some(table) = named.next().and_then(|table| table.get_ref().as_table()) {
            order_fields(&mut rule.fields, table);
        }
    }
}

fn order_fields(fields: &mut FieldConfigList, table: &DeTable<'_>) {
    let Some(table) = table
        .get("fields")
        .and_then(|fields| fields.get_ref().as_table())
    else {
        return;
    };
    let place = |name: &str| {
        let found = table.iter().find(|(key, _)| key.get_ref() == name);
        found.map_or(usize::MAX, |(key, _)| key.span().start)
    };
    fields.0.sort_by_key(|(name, _)| place(name));
    for (name, field) in &mut fields.0 {
        if let FieldConfig::Table(field) = field
            && let Some(group) = &mut field.fields
            && let Some(inner) = table.get(name.as_str())
            && let Some(inner) = inner.get_ref().as_table()
        {
            order_fields(group, inner);
        }
    }
}
