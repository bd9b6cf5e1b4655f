//! Reading settings from TOML, with errors that name file, line and nearest key.

use std::fs;
use std::io;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::contact::{
    AGENT_HINT, CONTACT_HINT, PATTERN_HINT, check_pattern, read_agent, read_contact,
};
use super::sites;
use super::tables::{Layer, TABLES};
use crate::error::{CommandError, nearest};

/// The table in which a crawl.toml notes which program wrote it; nothing is read from it.
pub(crate) const NOTES: &str = "crawl";

/// Reads a file of settings.
pub(crate) fn read(path: &Path) -> Result<Layer, CommandError> {
    let text = fs::read_to_string(path).map_err(unreadable(path))?;
    parse_checked(&text, &path.display().to_string())
}

/// The error where a file of settings can't be read.
pub(super) fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> CommandError {
    move |why| {
        CommandError::usage(format!(
            "can't read the configuration {}: {why}",
            path.display()
        ))
        .hint("`crawl config` prints a configuration with every key")
    }
}

/// Reads the user's own settings: what only a look at a text shows to be unusable is refused
/// where it stands.
fn parse_checked(text: &str, name: &str) -> Result<Layer, CommandError> {
    let layer = parse(text, name)?;
    Source { text, name }.check_values()?;
    Ok(layer)
}

/// Reads settings from `text`; `name` is the file's name in messages.
pub(crate) fn parse(text: &str, name: &str) -> Result<Layer, CommandError> {
    let source = Source { text, name };
    let mut root = DeTable::parse(text).map_err(|error| source.broken(&error))?;
    source.check_keys(root.get_mut())?;
    Layer::deserialize(toml::Deserializer::from(root)).map_err(|error| source.broken(&error))
}

struct Source<'a> {
    text: &'a str,
    name: &'a str,
}

type Entries<'a> = Vec<(Spanned<DeString<'a>>, Spanned<DeValue<'a>>)>;

impl Source<'_> {
    /// Refuses unknown tables and keys, and writes known keys in one way.
    fn check_keys(&self, root: &mut DeTable<'_>) -> Result<(), CommandError> {
        let entries: Entries<'_> = std::mem::take(root).into_iter().collect();
        for (name, mut value) in entries {
            let at = name.span().start;
            let table = TABLES.iter().find(|(table, _)| table == name.get_ref());
            match (&**name.get_ref(), table) {
                (NOTES, _) => continue,
                ("seed", _) => {}
                (sites::TABLE, _) => match value.get_mut() {
                    DeValue::Table(names) => self.check_sites(names)?,
                    _ => return Err(self.at(at, "`site` holds tables, as [site.\"example.org\"]")),
                },
                (_, Some((table, fields))) => match value.get_mut() {
                    DeValue::Table(keys) => self.check_table(table, fields, keys)?,
                    _ => return Err(self.at(at, format!("`{table}` is a table"))),
                },
                (unknown, None) => return Err(self.unknown(at, None, unknown)),
            }
            root.insert(name, value);
        }
        Ok(())
    }

    fn check_sites(&self, names: &mut DeTable<'_>) -> Result<(), CommandError> {
        let entries: Entries<'_> = std::mem::take(names).into_iter().collect();
        for (name, mut value) in entries {
            let table = format!("{}.\"{}\"", sites::TABLE, name.get_ref());
            match value.get_mut() {
                DeValue::Table(keys) => self.check_table(&table, sites::FIELDS, keys)?,
                _ => {
                    let what = format!("`{}` in [site] is a table: [{table}]", name.get_ref());
                    return Err(self.at(name.span().start, what));
                }
            }
            names.insert(name, value);
        }
        Ok(())
    }

    fn check_table(
        &self,
        table: &str,
        fields: &[&str],
        keys: &mut DeTable<'_>,
    ) -> Result<(), CommandError> {
        let entries: Entries<'_> = std::mem::take(keys).into_iter().collect();
        for (name, value) in entries {
            let span = name.span();
            let field = name.get_ref().replace('-', "_");
            if !fields.contains(&field.as_str()) {
                return Err(self.unknown(span.start, Some((table, fields)), name.get_ref()));
            }
            let key = Spanned::new(span.clone(), DeString::Owned(key_of(&field)));
            if keys.insert(key, value).is_some() {
                return Err(self.at(
                    span.start,
                    format!("`{}` stands here twice", key_of(&field)),
                ));
            }
        }
        Ok(())
    }

    fn check_values(&self) -> Result<(), CommandError> {
        let root = DeTable::parse(self.text).map_err(|error| self.broken(&error))?;
        for table in root.get_ref().values() {
            let DeValue::Table(keys) = table.get_ref() else {
                continue;
            };
            for (name, value) in keys {
                self.check_value(name.get_ref(), value)?;
            }
        }
        Ok(())
    }

    fn check_value(&self, field: &str, value: &Spanned<DeValue<'_>>) -> Result<(), CommandError> {
        let at = |value: &Spanned<DeValue<'_>>, what: String, hint: &str| {
            Err(self.at(value.span().start, what).hint(hint))
        };
        match (field, value.get_ref()) {
            ("include" | "exclude", DeValue::Array(patterns)) => {
                for pattern in patterns {
                    let text = pattern.get_ref().as_str().unwrap_or_default();
                    if let Err(why) = check_pattern(text) {
                        let what = format!("bad regular expression in `{field}` {why}");
                        return at(pattern, what, PATTERN_HINT);
                    }
                }
                Ok(())
            }
            ("contact", DeValue::String(text)) => match read_contact(text) {
                Ok(_) => Ok(()),
                Err(why) => at(value, format!("unusable `contact` {why}"), CONTACT_HINT),
            },
            ("agent", DeValue::String(text)) => match read_agent(text) {
                Ok(_) => Ok(()),
                Err(why) => at(value, format!("unusable `agent`: {why}"), AGENT_HINT),
            },
            _ => Ok(()),
        }
    }

    /// The error for a name that is none; `table` is where it stands, if not above all tables.
    fn unknown(&self, at: usize, table: Option<(&str, &[&str])>, name: &str) -> CommandError {
        let refusal = self.at(
            at,
            match table {
                None => format!("unknown key or table `{name}`"),
                Some((table, _)) => format!("unknown key `{name}` in [{table}]"),
            },
        );
        if let Some(other) = table_of(name) {
            return refusal.hint(format!("`{}` belongs to the table [{other}]", key_of(name)));
        }
        let here = match table {
            None => {
                let tables = TABLES.iter().map(|(table, _)| *table);
                let shown = tables.map(|table| (table.to_owned(), format!("`[{table}]`")));
                shown.chain(keys(&["seed"], "")).collect()
            }
            Some((_, fields)) => keys(fields, ""),
        };
        let elsewhere = TABLES
            .iter()
            .flat_map(|(table, fields)| keys(fields, &format!(" of [{table}]")));
        let name = key_of(name);
        let nearest = nearest(&name, here).or_else(|| nearest(&name, elsewhere));
        refusal.hint(match nearest {
            Some(shown) => format!("the nearest is {shown}"),
            None => "`crawl config` prints every table and key".to_owned(),
        })
    }

    fn broken(&self, error: &toml::de::Error) -> CommandError {
        let message = error.message().trim().replace('\n', ", ");
        let (message, hint) = match no_variant(&message) {
            Some((message, nearest)) => (message, format!("the nearest is `{nearest}`")),
            None => (
                message,
                "`crawl config` prints a configuration with every key".to_owned(),
            ),
        };
        match error.span() {
            Some(span) => self.at(span.start, message),
            None => CommandError::usage(format!("{}: {message}", self.name)),
        }
        .hint(hint)
    }

    fn at(&self, offset: usize, message: impl std::fmt::Display) -> CommandError {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        CommandError::usage(format!("{}:{line}: {message}", self.name))
    }
}

/// The message for a word that is none of those that a key takes, and the nearest of these. serde
/// says "unknown variant `x`, expected one of `a`, `b`".
fn no_variant(message: &str) -> Option<(String, String)> {
    let names = message.strip_prefix("unknown variant ")?;
    let names: Vec<&str> = names.split('`').skip(1).step_by(2).collect();
    let (word, known) = names.split_first()?;
    let likeness = |name: &&&str| strsim::jaro_winkler(word, name);
    let nearest = known
        .iter()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    let known = known.join("`, `");
    Some((
        format!("`{word}` is none of `{known}`"),
        (*nearest).to_owned(),
    ))
}

/// A field's name as a key: `max_pages` is `max-pages`.
pub(crate) fn key_of(field: &str) -> String {
    field.replace('_', "-")
}

fn table_of(name: &str) -> Option<&'static str> {
    let field = name.replace('-', "_");
    let (table, _) = TABLES
        .iter()
        .find(|(_, fields)| fields.contains(&field.as_str()))?;
    Some(table)
}

/// Fields as keys, each with how it is shown.
fn keys(fields: &[&str], place: &str) -> Vec<(String, String)> {
    let shown = |key: String| {
        let shown = format!("`{key}`{place}");
        (key, shown)
    };
    fields.iter().map(|field| shown(key_of(field))).collect()
}

#[cfg(test)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "an expectation is written where it is used"
)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{parse, parse_checked};

    fn check(text: &str, expect: Expect) {
        let found = match parse_checked(text, "crawl.toml") {
            Ok(_) => "read".to_owned(),
            Err(refusal) => refusal.to_string(),
        };
        expect.assert_eq(&found);
    }

    #[test]
    fn unknown_keys_name_the_nearest() {
        check(
            "[politeness]\n# so\ndealy = \"1s\"\n",
            expect![[r#"
                error: crawl.toml:3: unknown key `dealy` in [politeness]
                hint: the nearest is `delay`"#]],
        );
        check(
            "[fetch]\ndelay = \"1s\"\n",
            expect![[r#"
                error: crawl.toml:2: unknown key `delay` in [fetch]
                hint: `delay` belongs to the table [politeness]"#]],
        );
        check(
            "delay = \"1s\"\n",
            expect![[r#"
                error: crawl.toml:1: unknown key or table `delay`
                hint: `delay` belongs to the table [politeness]"#]],
        );
        check(
            "\n[politness]\n",
            expect![[r#"
                error: crawl.toml:2: unknown key or table `politness`
                hint: the nearest is `[politeness]`"#]],
        );
        check(
            "seeds = []\n",
            expect![[r#"
                error: crawl.toml:1: unknown key or table `seeds`
                hint: the nearest is `seed`"#]],
        );
        check(
            "[scope]\nzzzzqq = 1\n",
            expect![[r#"
                error: crawl.toml:2: unknown key `zzzzqq` in [scope]
                hint: `crawl config` prints every table and key"#]],
        );
    }

    #[test]
    fn bad_values_name_their_line() {
        check(
            "[fetch]\n\ntimeout = 20\n",
            expect![[r#"
                error: crawl.toml:3: `20` is no duration: a number needs a unit, as in `500ms`, `2s` or `1h`
                hint: `crawl config` prints a configuration with every key"#]],
        );
        check(
            "[scope]\nscope = \"hosts\"\n",
            expect![[r#"
                error: crawl.toml:2: `hosts` is none of `host`, `domain`, `prefix`, `any`
                hint: the nearest is `host`"#]],
        );
        check(
            "[exclusion]\nrobots-forbidden = \"deni\"\n",
            expect![[r#"
                error: crawl.toml:2: `deni` is none of `allow`, `deny`
                hint: the nearest is `deny`"#]],
        );
        check(
            "[scope]\nexclude = [\n  \"a\",\n  \"a(\",\n]\n",
            expect![[r#"
                error: crawl.toml:4: bad regular expression in `exclude` `a(`: unclosed group
                hint: the syntax is that of https://docs.rs/regex"#]],
        );
        check(
            "[operator]\ncontact = \"me\"\n",
            expect![[r#"
                error: crawl.toml:2: unusable `contact` `me`: it is neither a mail address nor an http or https URL
                hint: give one such as `you@example.org` or `https://example.org/bot`"#]],
        );
        check(
            "[operator]\nagent = \"a b\"\n",
            expect![[r#"
                error: crawl.toml:2: unusable `agent`: `a b` is no product token: letters, digits, `_` and `-` only, at least one
                hint: a product token is a single word such as `crawl`; version and contact are added"#]],
        );
        check(
            "seed = \"http://a/\"\n",
            expect![[r#"
                error: crawl.toml:1: invalid type: string "http://a/", expected a sequence
                hint: `crawl config` prints a configuration with every key"#]],
        );
        check(
            "scope = \"host\"\n",
            expect!["error: crawl.toml:1: `scope` is a table"],
        );
        check(
            "[fetch\n",
            expect![[r#"
                error: crawl.toml:1: unclosed table, expected `]`
                hint: `crawl config` prints a configuration with every key"#]],
        );
        check(
            "[scope]\nmax-pages = 1\nmax_pages = 2\n",
            expect!["error: crawl.toml:3: `max-pages` stands here twice"],
        );
    }

    #[test]
    fn ours_underscores_and_notes_are_taken() {
        let text = "seed = [\"http://a.example/\"]\n[crawl]\nanything = 1\n[scope]\nmax_pages = 5\nsitemaps = false\n";
        let layer = parse(text, "x").unwrap();
        assert_eq!(layer.scope.max_pages.unwrap().to_string(), "5");
        assert_eq!(layer.scope.sitemaps.unwrap().to_string(), "off");
        assert_eq!(layer.seed.unwrap(), ["http://a.example/"]);
    }
}
