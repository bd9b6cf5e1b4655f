//! The JSON Schema of a settings file, for editors and for programs that write such files.
//! Generated from the same table as flags, keys and defaults.

use clap::{Args as _, Command};
use serde_json::{Map, Value, json};

use super::config_file::{NOTES, key_of};
use super::extract_rules;
use super::host_groups::{self, HostGroupSettings};
use super::listed_seed::ListedSeed;
use super::setting_definitions::{Settings, SettingsLayer, TABLES, schemas};
use super::sites::{self, SiteSettings};
use super::toml_output::{heading, table_of};
use crate::values::{FilePath, JsonSchema as _};

/// Returns the schema of a settings file (JSON Schema, draft 2020-12).
pub(crate) fn schema() -> String {
    let flags = SettingsLayer::augment_args(Command::new("crawl"));
    let defaults = table_of(&Settings::default());
    let mut properties = Map::new();
    let seed = described(Vec::<ListedSeed>::schema(), &flags, "seed");
    properties.insert("seed".to_owned(), seed);
    let files = described(Vec::<FilePath>::schema(), &flags, "seed_file");
    properties.insert("seed-file".to_owned(), files);
    let sitemaps = described(Vec::<String>::schema(), &flags, "seed_sitemap");
    properties.insert("seed-sitemap".to_owned(), sitemaps);
    for (table, fields) in TABLES {
        let of_table = schemas(table).into_iter().map(|(field, schema)| {
            let key = key_of(field);
            let mut schema = described(schema, &flags, field);
            schema["default"] = json!(defaults[*table][&key]);
            (key, schema)
        });
        let mut of_table = of_keys(of_table.collect());
        of_table["description"] = heading(&flags, fields).into();
        properties.insert((*table).to_owned(), of_table);
    }
    let of_site = SiteSettings::schemas();
    let of_site = of_site.map(|(field, schema)| (key_of(field), schema));
    let mut site = of_keys(of_site.into_iter().collect());
    site["description"] = "Settings for a host and its subdomains".into();
    properties.insert(
        sites::TABLE.to_owned(),
        json!({ "type": "object", "additionalProperties": site }),
    );
    let of_group = HostGroupSettings::schemas();
    let of_group = of_group.map(|(field, schema)| (key_of(field), schema));
    let mut group = of_keys(of_group.into_iter().collect());
    group["description"] = "Hosts that share budgets and politeness settings".into();
    properties.insert(
        host_groups::TABLE.to_owned(),
        json!({ "type": "object", "additionalProperties": group }),
    );
    properties.insert(
        extract_rules::TABLE.to_owned(),
        json!({
            "type": "array",
            "description": "Rules for the fields of pages; docs/extract.md has every key",
            "items": { "type": "object", "required": ["name", "fields"] },
        }),
    );
    properties.insert(
        NOTES.to_owned(),
        json!({ "type": "object", "description": "Notes by the program that wrote the file" }),
    );
    let mut schema = of_keys(properties);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "The configuration of a crawl".into();
    format!("{schema:#}\n")
}

/// Returns the schema of a table that has exactly these keys.
fn of_keys(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn described(mut schema: Value, flags: &Command, field: &str) -> Value {
    let flag = flags.get_arguments().find(|flag| flag.get_id() == field);
    let help = flag.and_then(|flag| flag.get_long_help().or_else(|| flag.get_help()));
    if let Some(help) = help {
        schema["description"] = help.to_string().into();
    }
    schema
}

#[cfg(feature = "shared-frontier")]
#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::config_file::{key_of, parse};
    use super::super::host_groups;
    use super::super::setting_definitions::TABLES;
    use super::super::sites;
    use super::schema;
    use crate::shared_frontier::check_url;

    /// Returns whether a value is valid by a schema, for the subset of JSON Schema that settings
    /// use.
    fn is_valid(value: &Value, schema: &Value) -> bool {
        if let Some(any) = schema["anyOf"].as_array() {
            return any.iter().any(|schema| is_valid(value, schema));
        }
        if let Some(words) = schema["enum"].as_array() {
            return words.contains(value);
        }
        if let Some(word) = schema.get("const") {
            return word == value;
        }
        let is_type = match schema["type"].as_str().unwrap() {
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "array" => value.is_array(),
            other => panic!("{other}"),
        };
        let is_least = |least: f64| value.as_f64().is_some_and(|number| number >= least);
        let is_most = |most: f64| value.as_f64().is_some_and(|number| number <= most);
        let is_like = |pattern: &str| {
            let text = value.as_str().unwrap_or_default();
            regex::Regex::new(pattern).unwrap().is_match(text)
        };
        is_type
            && schema["minimum"].as_f64().is_none_or(is_least)
            && schema["maximum"].as_f64().is_none_or(is_most)
            && schema["pattern"].as_str().is_none_or(is_like)
            && value
                .as_array()
                .is_none_or(|items| items.iter().all(|item| is_valid(item, &schema["items"])))
    }

    /// Tries a value of each type for each key. The schema must allow every value that the reader
    /// accepts. The reader must accept every value that the schema allows, except texts.
    #[test]
    fn the_schema_and_the_reader_take_the_same_types_of_values() {
        let values = [
            json!(0),
            json!(7),
            json!(-1),
            json!(0.5),
            json!(true),
            json!("x"),
            json!("1"),
            json!("1s"),
            json!([]),
            json!([7]),
            json!([true]),
            json!(["a.example"]),
            json!(["192.0.2.53"]),
            json!(["[::1]:54"]),
            json!(["::1"]),
            json!(["postgres://me@db/c"]),
        ];
        let schema: Value = serde_json::from_str(&schema()).unwrap();
        let mut differences = Vec::new();
        let mut compare = |table: &str, schema: &Value| {
            for (key, schema) in schema["properties"].as_object().unwrap() {
                for value in &values {
                    let text = format!("[{table}]\n{key} = {value}\n");
                    // The reader doesn't check the text of `frontier`, because it may contain a
                    // password, so check it here.
                    let is_judged = key != "frontier"
                        || value.as_array().is_none_or(|urls| {
                            let mut urls = urls.iter().filter_map(Value::as_str);
                            urls.all(|url| check_url(url).is_ok())
                        });
                    let is_read = parse(&text, "x").is_ok() && is_judged;
                    let is_valid = is_valid(value, schema);
                    if is_read && !is_valid || is_valid && !is_read && !value.is_string() {
                        differences.push(format!("{text}read: {is_read}, valid: {is_valid}"));
                    }
                }
            }
        };
        for (table, _) in TABLES {
            compare(table, &schema["properties"][table]);
        }
        let group = &schema["properties"][host_groups::TABLE]["additionalProperties"];
        compare("group.a", group);
        let site = &schema["properties"][sites::TABLE]["additionalProperties"];
        let mut site = site.clone();
        // The values of these keys may be tables, which the comparison doesn't cover.
        let keys = site["properties"].as_object_mut().unwrap();
        let may_be_table =
            |schema: &Value| schema["type"] == "object" || schema.get("anyOf").is_some();
        keys.retain(|_, schema| !may_be_table(schema));
        compare("site.\"a.example\"", &site);
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    }

    #[test]
    fn the_schema_has_every_key() {
        let schema: Value = serde_json::from_str(&schema()).unwrap();
        let keys = |of: &Value| {
            let keys = of["properties"].as_object().unwrap().keys();
            keys.cloned().collect::<Vec<_>>()
        };
        let sorted = |fields: &[&str]| {
            let mut keys: Vec<_> = fields.iter().map(|field| key_of(field)).collect();
            keys.sort();
            keys
        };
        for (table, fields) in TABLES {
            assert_eq!(keys(&schema["properties"][table]), sorted(fields));
        }
        let site = &schema["properties"][sites::TABLE]["additionalProperties"];
        assert_eq!(keys(site), sorted(sites::FIELDS));
        let group = &schema["properties"][host_groups::TABLE]["additionalProperties"];
        assert_eq!(keys(group), sorted(host_groups::FIELDS));
        assert_eq!(
            keys(&schema).len(),
            TABLES.len()
                + [
                    "seed",
                    "seed-file",
                    "seed-sitemap",
                    "site",
                    "group",
                    "extract",
                    "crawl"
                ]
                .len()
        );
    }
}
