//! Determines the tables for extracted fields: one table for each rule, and one for each list of
//! groups in a rule. A group is a field that consists of other fields.

use crawl_fields::{FieldConfig, FieldConfigList, FieldType, RuleConfig};
use crawl_records::ExtractRow;
use serde_json::{Map, Value};

/// A table with the extracted fields of a rule, or of a list of groups in a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExtractTable {
    /// The name of the rule, followed by the names of the groups that lead to the table, separated
    /// by dots.
    pub(crate) name: String,
    /// The path of each list of groups that leads to the table, outermost list first. The objects
    /// of the last list are the rows. Empty for the table of the rule itself.
    groups: Vec<Vec<String>>,
    pub(crate) columns: Vec<FieldColumn>,
}

/// A column that contains a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldColumn {
    /// The name of the field, preceded by the names of the groups that contain it, separated by
    /// dots.
    pub(crate) name: String,
    path: Vec<String>,
    pub(crate) kind: FieldType,
    pub(crate) is_list: bool,
}

/// Returns the tables of a rule.
pub(crate) fn tables_of(rule: &RuleConfig) -> Vec<ExtractTable> {
    let mut tables = Vec::new();
    add_table(rule.name.clone(), Vec::new(), &rule.fields, &mut tables);
    tables
}

fn add_table(
    name: String,
    groups: Vec<Vec<String>>,
    fields: &FieldConfigList,
    tables: &mut Vec<ExtractTable>,
) {
    let at = tables.len();
    tables.push(ExtractTable {
        name,
        groups,
        columns: Vec::new(),
    });
    add_columns(at, &[], fields, tables);
}

/// Adds columns for `fields` to the table with index `at`. The fields of a single group become
/// columns of the same table. Each list of groups becomes a separate table, added to `tables`.
fn add_columns(
    at: usize,
    prefix: &[String],
    fields: &FieldConfigList,
    tables: &mut Vec<ExtractTable>,
) {
    for (name, field) in fields.iter() {
        let mut path = prefix.to_vec();
        path.push(name.to_owned());
        let (kind, is_list, group) = match field {
            FieldConfig::Select(_) => (FieldType::Text, false, None),
            FieldConfig::Table(table) => (table.kind, table.all, table.fields.as_ref()),
        };
        match group {
            Some(group) if is_list => {
                let name = format!("{}.{}", tables[at].name, path.join("."));
                let mut groups = tables[at].groups.clone();
                groups.push(path);
                add_table(name, groups, group, tables);
            }
            Some(group) => add_columns(at, &path, group, tables),
            None => tables[at].columns.push(FieldColumn {
                name: path.join("."),
                path,
                kind,
                is_list,
            }),
        }
    }
}

impl ExtractTable {
    /// Returns true if a page may have several rows in the table.
    pub(crate) fn has_items(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Returns those objects in a row of `extracts.jsonl` that become rows of the table.
    pub(crate) fn objects<'r>(&self, row: &'r ExtractRow) -> Vec<&'r Map<String, Value>> {
        let mut objects = vec![&row.fields];
        for group in &self.groups {
            let lists = objects
                .into_iter()
                .filter_map(|object| at(object, group)?.as_array());
            objects = lists.flatten().filter_map(Value::as_object).collect();
        }
        objects
    }
}

impl FieldColumn {
    /// Returns the values of the column in an object: at most one, unless the column is a list.
    /// `None` if the value, or a group that contains it, is missing or null.
    pub(crate) fn values<'o>(&self, object: &'o Map<String, Value>) -> Option<Vec<&'o Value>> {
        match at(object, &self.path)? {
            Value::Array(items) => Some(items.iter().collect()),
            Value::Null => None,
            value => Some(vec![value]),
        }
    }
}

fn at<'o>(object: &'o Map<String, Value>, path: &[String]) -> Option<&'o Value> {
    let (first, rest) = path.split_first()?;
    let first = object.get(first)?;
    rest.iter()
        .try_fold(first, |value, name| value.as_object()?.get(name))
}
