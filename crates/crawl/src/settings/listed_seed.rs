//! A seed in a list: a URL or a host, with optional settings.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crawl_scope::SeedSettings;
use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::error::nearest;
use crate::values::{JsonSchema, ValueParseError};

/// The keys of a seed with its own settings.
const KEYS: [&str; 5] = ["url", "sitemap", "scope", "depth", "label"];
/// The words that the key `scope` accepts.
const SCOPES: [&str; 4] = ["host", "domain", "prefix", "page"];

/// Maximum length of a label in bytes. Short, because the label is repeated in the row of each
/// page.
const MAX_LABEL_BYTES: usize = 64;

/// A seed as listed in the settings or in a seed file: a URL or a host, with optional settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListedSeed {
    /// The URL or the host, as typed.
    pub(crate) url: String,
    /// Whether the URL is a sitemap whose entries are seeds.
    pub(crate) is_sitemap: bool,
    /// The seed's own scope, depth and label.
    pub(crate) terms: SeedSettings,
    /// The file and line that list the seed, if a file does.
    pub(crate) place: Option<String>,
}

/// A problem with a seed, and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SeedProblem {
    /// The key with the problem. `None` if the problem concerns the seed as a whole.
    pub(super) key: Option<String>,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl ListedSeed {
    /// Creates a seed without settings.
    pub(crate) fn plain(url: impl Into<String>) -> ListedSeed {
        ListedSeed {
            url: url.into(),
            ..ListedSeed::default()
        }
    }

    /// Creates a sitemap whose entries are seeds.
    pub(super) fn sitemap(url: String) -> ListedSeed {
        ListedSeed {
            is_sitemap: true,
            ..ListedSeed::plain(url)
        }
    }

    /// Returns whether this is a URL or a host without settings.
    pub(super) fn is_plain(&self) -> bool {
        !self.is_sitemap && self.terms.is_empty()
    }

    /// Parses the keys of a seed.
    ///
    /// # Errors
    /// All problems found.
    fn of_entries(entries: &[(String, Value)]) -> Result<ListedSeed, Vec<SeedProblem>> {
        let mut seed = ListedSeed::default();
        let mut problems = Vec::new();
        for (at, (key, value)) in entries.iter().enumerate() {
            let is_twice = entries[..at].iter().any(|(before, _)| before == key);
            let result = match is_twice {
                true => Err((format!("duplicate key `{key}`"), None)),
                false => seed.take(key, value),
            };
            if let Err((message, hint)) = result {
                let key = Some(key.clone());
                problems.push(SeedProblem { key, message, hint });
            }
        }
        let has = |wanted: &str| entries.iter().any(|(key, _)| key == wanted);
        let (message, hint) = match (has("url"), has("sitemap")) {
            (true, true) => (
                "a seed has both `url` and `sitemap`",
                "use `url` for a page, or `sitemap` for all pages that a sitemap lists",
            ),
            (false, false) => (
                "a seed has no `url`",
                "it looks like {\"url\": \"https://example.org/\", \"label\": \"press\"}",
            ),
            _ => ("", ""),
        };
        if !message.is_empty() {
            problems.push(SeedProblem {
                key: None,
                message: message.to_owned(),
                hint: Some(hint.to_owned()),
            });
        }
        match problems.is_empty() {
            true => Ok(seed),
            false => Err(problems),
        }
    }

    fn take(&mut self, key: &str, value: &Value) -> Result<(), (String, Option<String>)> {
        let mismatch = |wanted: &str| {
            let message = format!("`{key}`: expected {wanted}, found `{value}`");
            Err((message, None))
        };
        match (key, value) {
            ("url" | "sitemap", Value::String(text)) => {
                self.url.clone_from(text);
                self.is_sitemap = key == "sitemap";
            }
            ("scope", Value::String(word)) if SCOPES.contains(&word.as_str()) => {
                self.terms.scope = word.parse().ok();
            }
            ("scope", Value::String(word)) => {
                let message = format!("`scope`: `{word}` isn't one of `{}`", SCOPES.join("`, `"));
                let near = || nearest(word, SCOPES.map(|word| (word.to_owned(), word)));
                let hint = match word.as_str() {
                    "any" => Some("`any` is only for a whole crawl: --scope any".to_owned()),
                    _ => near().map(|near| format!("did you mean `{near}`?")),
                };
                return Err((message, hint));
            }
            ("depth", Value::Number(number)) => {
                let depth = number.as_u64().and_then(|depth| u32::try_from(depth).ok());
                match depth {
                    Some(_) => self.terms.max_depth = depth,
                    None => return mismatch("a whole number of links, 0 or more"),
                }
            }
            ("label", Value::String(label)) => {
                let is_usable = !label.trim().is_empty()
                    && label.len() <= MAX_LABEL_BYTES
                    && !label.chars().any(char::is_control);
                if !is_usable {
                    return mismatch("a text of 1 to 64 bytes on one line");
                }
                self.terms.label = Some(Arc::from(label.as_str()));
            }
            ("url" | "sitemap" | "scope" | "label", _) => return mismatch("a text"),
            ("depth", _) => return mismatch("a number"),
            _ => {
                let near = nearest(key, KEYS.map(|key| (key.to_owned(), key)));
                let hint = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("valid keys: `{}`", KEYS.join("`, `")),
                };
                return Err((format!("unknown key `{key}` in a seed"), Some(hint)));
            }
        }
        Ok(())
    }

    /// Parses a seed from a line of JSON.
    ///
    /// # Errors
    /// All problems found.
    pub(super) fn of_json(line: &str) -> Result<ListedSeed, Vec<SeedProblem>> {
        let entries: TableEntries = serde_json::from_str(line).map_err(|why| {
            let message = why.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            vec![SeedProblem {
                key: None,
                message: format!("not JSON: {message}, at character {}", why.column()),
                hint: Some("a line starting with `{` must be a JSON object on one line".to_owned()),
            }]
        })?;
        ListedSeed::of_entries(&entries.0)
    }
}

/// The keys and values of a TOML table or a JSON object, in order. A key may occur twice.
struct TableEntries(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for TableEntries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TableEntries, D::Error> {
        struct EntriesVisitor;

        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = TableEntries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TableEntries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(TableEntries(entries))
            }
        }

        deserializer.deserialize_map(EntriesVisitor)
    }
}

impl<'de> Deserialize<'de> for ListedSeed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ListedSeed, D::Error> {
        struct ListedSeedVisitor;

        impl<'de> Visitor<'de> for ListedSeedVisitor {
            type Value = ListedSeed;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a table")
            }

            fn visit_str<E: de::Error>(self, url: &str) -> Result<ListedSeed, E> {
                Ok(ListedSeed::plain(url))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ListedSeed, A::Error> {
                let entries =
                    TableEntries::deserialize(de::value::MapAccessDeserializer::new(map))?;
                ListedSeed::of_entries(&entries.0).map_err(|problems| {
                    let problems = problems.into_iter().map(|problem| match problem.hint {
                        Some(hint) => format!("{}; {hint}", problem.message),
                        None => problem.message,
                    });
                    de::Error::custom(problems.collect::<Vec<_>>().join("; "))
                })
            }
        }

        deserializer.deserialize_any(ListedSeedVisitor)
    }
}

impl Serialize for ListedSeed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_plain() {
            return serializer.serialize_str(&self.url);
        }
        let mut map = serializer.serialize_map(None)?;
        let key = if self.is_sitemap { "sitemap" } else { "url" };
        map.serialize_entry(key, &self.url)?;
        if let Some(scope) = self.terms.scope {
            map.serialize_entry("scope", &scope.to_string())?;
        }
        if let Some(depth) = self.terms.max_depth {
            map.serialize_entry("depth", &depth)?;
        }
        if let Some(label) = &self.terms.label {
            map.serialize_entry("label", &**label)?;
        }
        map.end()
    }
}

impl FromStr for ListedSeed {
    type Err = ValueParseError;

    fn from_str(url: &str) -> Result<ListedSeed, ValueParseError> {
        Ok(ListedSeed::plain(url))
    }
}

/// Seeds are equal even if they are listed in different places.
impl PartialEq for ListedSeed {
    fn eq(&self, other: &ListedSeed) -> bool {
        (&self.url, self.is_sitemap, &self.terms) == (&other.url, other.is_sitemap, &other.terms)
    }
}

impl PartialEq<&str> for ListedSeed {
    fn eq(&self, url: &&str) -> bool {
        self.is_plain() && self.url == *url
    }
}

impl JsonSchema for ListedSeed {
    fn schema() -> Value {
        let depth = u32::schema();
        json!({ "anyOf": [
            { "type": "string" },
            {
                "type": "object",
                "additionalProperties": false,
                "oneOf": [{ "required": ["url"] }, { "required": ["sitemap"] }],
                "properties": {
                    "url": { "type": "string", "description": "A URL or a host" },
                    "sitemap": {
                        "type": "string",
                        "description": "The URL of a sitemap whose entries are seeds",
                    },
                    "scope": {
                        "enum": SCOPES,
                        "description": "The area around the seed that the crawl stays in",
                    },
                    "depth": {
                        "type": depth["type"],
                        "minimum": depth["minimum"],
                        "maximum": depth["maximum"],
                        "description": "The maximum number of links followed from a seed within \
                                        that area",
                    },
                    "label": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": MAX_LABEL_BYTES,
                        "description": "The label in the rows of its pages",
                    },
                },
            },
        ] })
    }
}

#[cfg(test)]
mod tests {
    use crawl_scope::SeedAreaKind;
    use expect_test::{Expect, expect};

    use super::{JsonSchema as _, KEYS, ListedSeed, SCOPES};

    #[expect(
        clippy::needless_pass_by_value,
        reason = "an expectation is written where it is used"
    )]
    fn check(line: &str, expect: Expect) {
        let text = match ListedSeed::of_json(line) {
            Ok(seed) => serde_json::to_string(&seed).unwrap(),
            Err(problems) => {
                let lines = problems.into_iter().map(|problem| {
                    let key = problem.key.unwrap_or_default();
                    let hint = problem.hint.unwrap_or_default();
                    format!("[{key}] {} ({hint})", problem.message)
                });
                lines.collect::<Vec<_>>().join("\n")
            }
        };
        expect.assert_eq(&text);
    }

    #[test]
    fn a_json_line_is_a_seed_with_its_own_settings() {
        check(
            r#"{"label": "press", "url": "a.example", "depth": 2, "scope": "prefix"}"#,
            expect![[r#"{"url":"a.example","scope":"prefix","depth":2,"label":"press"}"#]],
        );
        check(r#"{"url": "a.example"}"#, expect![[r#""a.example""#]]);
        check(
            r#"{"label": "press", "sitemap": "a.example/sitemap.xml"}"#,
            expect![[r#"{"sitemap":"a.example/sitemap.xml","label":"press"}"#]],
        );
        let read: ListedSeed = serde_json::from_str("\"a.example\"").unwrap();
        assert_eq!(read, "a.example");
    }

    #[test]
    fn all_problems_with_a_seed_are_reported() {
        check(
            r#"{"lable": "x", "scope": "hots", "depth": -1, "label": "", "colour": 1, "depth": 2}"#,
            expect![[r#"
                [lable] unknown key `lable` in a seed (did you mean `label`?)
                [scope] `scope`: `hots` isn't one of `host`, `domain`, `prefix`, `page` (did you mean `host`?)
                [depth] `depth`: expected a whole number of links, 0 or more, found `-1` ()
                [label] `label`: expected a text of 1 to 64 bytes on one line, found `""` ()
                [colour] unknown key `colour` in a seed (valid keys: `url`, `sitemap`, `scope`, `depth`, `label`)
                [depth] duplicate key `depth` ()
                [] a seed has no `url` (it looks like {"url": "https://example.org/", "label": "press"})"#]],
        );
        check(
            r#"{"url": 7, "scope": "any", "depth": "2", "label": ["x"]}"#,
            expect![[r#"
                [url] `url`: expected a text, found `7` ()
                [scope] `scope`: `any` isn't one of `host`, `domain`, `prefix`, `page` (`any` is only for a whole crawl: --scope any)
                [depth] `depth`: expected a number, found `"2"` ()
                [label] `label`: expected a text, found `["x"]` ()"#]],
        );
        check(
            r#"{"url": "a.example", "sitemap": "a.example/sitemap.xml"}"#,
            expect![[
                r#"[] a seed has both `url` and `sitemap` (use `url` for a page, or `sitemap` for all pages that a sitemap lists)"#
            ]],
        );
        check(
            r#"{"url": "a.example""#,
            expect![[
                r#"[] not JSON: EOF while parsing an object, at character 19 (a line starting with `{` must be a JSON object on one line)"#
            ]],
        );
    }

    #[test]
    fn the_schema_names_each_key_and_each_scope() {
        let schema = ListedSeed::schema();
        let keys = schema["anyOf"][1]["properties"].as_object().unwrap();
        let mut named: Vec<&str> = keys.keys().map(String::as_str).collect();
        let mut expected = KEYS;
        named.sort_unstable();
        expected.sort_unstable();
        assert_eq!(named, expected);
        for scope in SCOPES {
            let kind: SeedAreaKind = scope.parse().unwrap();
            assert_eq!(kind.to_string(), scope);
        }
    }
}
