//! Reads settings from TOML, with errors that name the file, the line and the nearest key.

use std::fs;
use std::io;
use std::path::Path;

use crawl_fields::CompiledRules;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

use self::toml_recovery::{TomlFault, readable};
use super::contact_and_pattern_checks::{
    AGENT_HINT, CONTACT_HINT, PATTERN_HINT, check_pattern, read_agent, read_contact,
};
use super::extract_rules;
use super::host_credentials;
use super::host_groups;
use super::setting_definitions::{SettingsLayer, TABLES};
use super::sites;
use crate::error::{CommandError, ConfigTableName, ErrorCollector, UnreadSettings, nearest};

mod toml_recovery;

/// The table in which crawl.toml records the program that wrote the file. No settings are read from
/// this table.
pub(crate) const NOTES: &str = "crawl";

/// Reads a settings file.
pub(crate) fn read(path: &Path) -> Result<SettingsLayer, CommandError> {
    let mut problems = ErrorCollector::default();
    let layer = read_usable(path, &mut problems)?;
    problems.or(layer)
}

/// Reads the extraction rules (`[[extract]]`) in a settings file.
///
/// # Errors
/// The file can't be read, has mistakes, or has no rules.
pub(crate) fn rules_of_file(path: &Path) -> Result<CompiledRules, CommandError> {
    let layer = read(path)?;
    let rules = layer.extract.unwrap_or_default();
    if rules.is_empty() {
        return Err(
            CommandError::usage(format!("{} has no rules [[extract]]", path.display()))
                .hint("docs/extract.md shows how to write one"),
        );
    }
    extract_rules::compile(&rules)
}

/// Reads the usable parts of a settings file. Records a problem with its position for each other
/// part, including values that have the right type but are unusable.
///
/// If the file is a crawl.toml that a crawl wrote, skips the keys that apply only to a single run,
/// such as `every` and `log`. A file from an earlier run, perhaps someone else's, must not start
/// further rounds or write to a log file.
///
/// # Errors
/// The file can't be read.
pub(super) fn read_usable(
    path: &Path,
    problems: &mut ErrorCollector,
) -> Result<SettingsLayer, CommandError> {
    let text = fs::read_to_string(path).map_err(unreadable(path))?;
    let mut layer = usable(&text, &path.display().to_string(), problems);
    if is_record(&text) {
        layer.forget_each_run();
    }
    Ok(layer)
}

/// Returns whether a settings file is the crawl.toml that a crawl wrote.
pub(super) fn is_record(text: &str) -> bool {
    let (root, _) = DeTable::parse_recoverable(text);
    root.get_ref().contains_key(NOTES)
}

/// Returns a function that converts an I/O error into the error for a settings file that can't be
/// read.
pub(super) fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> CommandError {
    move |why| {
        CommandError::usage(format!(
            "can't read the configuration {}: {why}",
            path.display()
        ))
        .hint("`crawl config` prints a configuration with every key")
    }
}

/// Reads the usable parts of `text`, as [`read_usable`] does; `name` is the file's name in
/// messages.
pub(crate) fn usable(text: &str, name: &str, problems: &mut ErrorCollector) -> SettingsLayer {
    let text = ConfigFileText { text, name }.without_faults(problems);
    let source = ConfigFileText { text: &text, name };
    let mut layer = source.read(problems);
    source.check_values(&mut layer, problems);
    source.check_rules(&mut layer, problems);
    layer
}

/// Reads settings from `text`; `name` is the file's name in messages.
///
/// # Errors
/// All problems found.
pub(crate) fn parse(text: &str, name: &str) -> Result<SettingsLayer, CommandError> {
    let mut problems = ErrorCollector::default();
    let text = ConfigFileText { text, name }.without_faults(&mut problems);
    let source = ConfigFileText { text: &text, name };
    let mut layer = source.read(&mut problems);
    source.check_rules(&mut layer, &mut problems);
    problems.or(layer)
}

/// Adds the position in the file to a problem, if the file sets the key concerned and no flag
/// overrides that key.
pub(crate) fn located(
    mut problem: CommandError,
    file: &Path,
    flags: &SettingsLayer,
) -> CommandError {
    // If the file can't be read any more, the problem is reported without a position.
    let text = fs::read_to_string(file).unwrap_or_default();
    let text = readable(&text).text;
    let name = file.display().to_string();
    let source = ConfigFileText {
        text: &text,
        name: &name,
    };
    let located = |problem: &mut CommandError| {
        let key = problem.subject.key;
        let place = match &problem.subject.table {
            Some((kind, name)) => source.place_of_table(kind, name, key),
            None => {
                let key = key.filter(|key| !flags.sets_key(key));
                key.and_then(|key| source.place(key))
            }
        };
        if let Some(at) = place {
            problem.message = source.at(at, &problem.message).message;
        }
    };
    located(&mut problem);
    problem.others.iter_mut().for_each(located);
    problem
}

struct ConfigFileText<'a> {
    text: &'a str,
    name: &'a str,
}

type Entry<'a> = (Spanned<DeString<'a>>, Spanned<DeValue<'a>>);

impl<'a> ConfigFileText<'a> {
    /// Returns the text with everything that isn't TOML blanked out, and adds the faults to
    /// `problems`.
    fn without_faults(&self, problems: &mut ErrorCollector) -> String {
        let readable = readable(self.text);
        for TomlFault {
            error,
            offset,
            unread,
        } in readable.faults
        {
            let problem = self.problem(&error, offset, None).hiding(unread);
            problems.note::<()>(Err(problem));
        }
        readable.text
    }

    /// Reads the valid settings of the text.
    fn read(&self, problems: &mut ErrorCollector) -> SettingsLayer {
        let (mut root, _) = DeTable::parse_recoverable(self.text);
        for entry in in_order(std::mem::take(root.get_mut())) {
            if let Some((name, value)) = self.usable(entry, problems) {
                root.get_mut().insert(name, value);
            }
        }
        let layer = SettingsLayer::deserialize(toml::Deserializer::from(root));
        let layer = layer.map_err(|error| {
            self.problem(&error, 0, None)
                .hiding(UnreadSettings::Anything)
        });
        problems.note(layer).unwrap_or_default()
    }

    /// Returns an entry of the file without its unreadable values. `None` if nothing of the entry
    /// is readable, or if it is the table [`NOTES`].
    fn usable(
        &self,
        (name, mut value): Entry<'a>,
        problems: &mut ErrorCollector,
    ) -> Option<Entry<'a>> {
        let at = name.span().start;
        let fields = TABLES.iter().find(|(table, _)| table == name.get_ref());
        match (&**name.get_ref(), fields) {
            (NOTES, _) => return None,
            ("seed", _) if value.get_ref().as_array().is_some() => {
                self.keep_seeds(&name, &mut value, problems);
            }
            ("seed" | "seed-file" | "seed-sitemap", _) => {
                let alone = DeTable::from_iter([(name.clone(), value.clone())]);
                let read = self.check_types(name.get_ref(), alone);
                problems
                    .note(read.map_err(|problem| problem.hiding(keys_unread(None, ["seed"]))))?;
            }
            (extract_rules::TABLE, _) => self.keep_rules(&name, &mut value, problems)?,
            (kind @ (sites::TABLE | host_groups::TABLE), _) => {
                let (kind, fields, example) = match kind {
                    sites::TABLE => (sites::TABLE, sites::FIELDS, "[site.\"example.org\"]"),
                    _ => (
                        host_groups::TABLE,
                        host_groups::FIELDS,
                        "[group.ministries]",
                    ),
                };
                match value.get_mut() {
                    DeValue::Table(names) => self.keep_named((kind, fields), names, problems),
                    _ => {
                        let message = format!("`{kind}` must contain tables, such as {example}");
                        problems.note::<()>(Err(self
                            .at(at, message)
                            .hiding(UnreadSettings::Anything)))?;
                    }
                }
            }
            (table, Some((_, fields))) => match value.get_mut() {
                DeValue::Table(keys) => {
                    let within = |entry| DeTable::from_iter([(name.clone(), table_with(entry))]);
                    self.keep_usable((table, fields), None, keys, problems, within);
                }
                _ => {
                    let message = format!("`{table}` must be a table");
                    let unread = keys_unread(None, fields.iter().copied());
                    problems.note::<()>(Err(self.at(at, message).hiding(unread)))?;
                }
            },
            (unknown, None) => problems.note::<()>(Err(self.unknown(at, None, None, unknown)))?,
        }
        Some((name, value))
    }

    /// Keeps the readable entries of the list of seeds.
    fn keep_seeds(
        &self,
        name: &Spanned<DeString<'a>>,
        value: &mut Spanned<DeValue<'a>>,
        problems: &mut ErrorCollector,
    ) {
        let span = value.span();
        let DeValue::Array(seeds) = value.get_mut() else {
            return;
        };
        for seed in std::mem::replace(seeds, DeArray::new()) {
            let alone = DeArray::from_iter([seed.clone()]);
            let alone = Spanned::new(span.clone(), DeValue::Array(alone));
            let alone = DeTable::from_iter([(name.clone(), alone)]);
            let read = self.check_types("seed", alone);
            let read = read.map_err(|problem| problem.hiding(keys_unread(None, ["seed"])));
            if problems.note(read).is_some() {
                seeds.push(seed);
            }
        }
    }

    /// Keeps the readable extraction rules (`[[extract]]`). `None` if the value isn't a list of
    /// tables.
    fn keep_rules(
        &self,
        name: &Spanned<DeString<'a>>,
        value: &mut Spanned<DeValue<'a>>,
        problems: &mut ErrorCollector,
    ) -> Option<()> {
        let span = value.span();
        let DeValue::Array(rules) = value.get_mut() else {
            let message = "`extract` must be a list of tables, each begun by [[extract]]";
            let problem = self.at(name.span().start, message);
            let hint = "write [[extract]] with two brackets";
            return problems.note(Err(problem.hint(hint).hiding(UnreadSettings::Anything)));
        };
        for rule in std::mem::replace(rules, DeArray::new()) {
            let alone = DeArray::from_iter([rule.clone()]);
            let alone = Spanned::new(span.clone(), DeValue::Array(alone));
            let alone = DeTable::from_iter([(name.clone(), alone)]);
            let read = SettingsLayer::deserialize(toml::Deserializer::from(Spanned::new(
                span.clone(),
                alone,
            )));
            let read = read.map_err(|error| match error.span() {
                Some(place) if place != span => self.problem(&error, 0, None),
                // If the error has no position, or only that of the whole list, use the position of
                // the rule.
                _ => self
                    .at(
                        rule.span().start,
                        format!("[[extract]]: {}", error.message().trim()),
                    )
                    .hint("docs/extract.md has every key"),
            });
            if problems.note(read).is_some() {
                rules.push(rule);
            }
        }
        Some(())
    }

    /// Compiles the extraction rules (`[[extract]]`), and removes those with mistakes from the
    /// layer.
    fn check_rules(&self, layer: &mut SettingsLayer, problems: &mut ErrorCollector) {
        let (root, _) = DeTable::parse_recoverable(self.text);
        let Some(rules) = &mut layer.extract else {
            return;
        };
        let tables = root.get_ref().get(extract_rules::TABLE);
        let tables = tables.and_then(|rules| rules.get_ref().as_array());
        let tables: Vec<_> = tables.into_iter().flatten().collect();
        extract_rules::put_in_order(rules, &tables);
        let Err(errors) = CompiledRules::compile(rules) else {
            return;
        };
        for error in &errors {
            let name = rules.get(error.rule).map(|rule| &rule.name);
            let mut table = tables
                .iter()
                .filter(|table| extract_rules::name_of(table).as_ref() == name);
            // Find the rule's table in the file by its name. The index in the file may differ,
            // because `rules` lacks the rules that can't be read.
            let place = table
                .next_back()
                .map_or(0, |table| extract_rules::place(table, error));
            let message = extract_rules::message(error, name);
            let problem = self.at(place, message).hint(error.hint);
            problems.note::<()>(Err(problem));
        }
        let mut index = 0;
        rules.retain(|_| {
            index += 1;
            errors.iter().all(|error| error.rule + 1 != index)
        });
    }

    /// Applies [`Self::keep_usable`] to each `[site]` or to each `[group]` table.
    fn keep_named(
        &self,
        (kind, fields): (&'static str, &[&'static str]),
        names: &mut DeTable<'a>,
        problems: &mut ErrorCollector,
    ) {
        for (name, mut value) in in_order(std::mem::take(names)) {
            let table = format!("{kind}.\"{}\"", name.get_ref());
            let DeValue::Table(keys) = value.get_mut() else {
                let message = format!(
                    "`{}` in [{kind}] must be a table: [{table}]",
                    name.get_ref()
                );
                let problem = self.at(name.span().start, message);
                problems.note::<()>(Err(problem.hiding(UnreadSettings::Anything)));
                continue;
            };
            let of = Some((kind, name.get_ref().to_string()));
            let within = |entry| {
                let kind = Spanned::new(0..0, DeString::Owned(kind.to_owned()));
                DeTable::from_iter([(kind, table_with((name.clone(), table_with(entry))))])
            };
            self.keep_usable((&table, fields), of.as_ref(), keys, problems, within);
            names.insert(name, value);
        }
    }

    /// Removes keys from a table if they
    ///
    /// - are unknown,
    /// - have a value of the wrong type, or
    /// - repeat a key in another spelling, such as `max_pages` and `max-pages`.
    ///
    /// `named` identifies the table if it is a `[site]` or `[group]` table. `within` builds a file
    /// that contains only the given entry of the table.
    fn keep_usable(
        &self,
        (table, fields): (&str, &[&'static str]),
        named: Option<&ConfigTableName>,
        keys: &mut DeTable<'a>,
        problems: &mut ErrorCollector,
        within: impl Fn(Entry<'a>) -> DeTable<'a>,
    ) {
        for (name, value) in in_order(std::mem::take(keys)) {
            let span = name.span();
            let field = name.get_ref().replace('-', "_");
            if !fields.contains(&field.as_str()) {
                let unknown =
                    self.unknown(span.start, Some((table, fields)), named, name.get_ref());
                problems.note::<()>(Err(unknown));
                continue;
            }
            let key = Spanned::new(span.clone(), DeString::Owned(key_of(&field)));
            let alone = within((key.clone(), value.clone()));
            let unread = || keys_unread(named, [&*field]);
            let read = self.check_types(&key_of(&field), alone);
            let read = read.map_err(|problem| problem.hiding(unread()));
            if problems.note(read).is_some() && keys.insert(key, value).is_some() {
                let message = format!("duplicate key `{}`", key_of(&field));
                problems.note::<()>(Err(self.at(span.start, message)));
            }
        }
    }

    /// Checks the type of a key's value by reading a file that has only this key.
    fn check_types(&self, key: &str, root: DeTable<'_>) -> Result<(), CommandError> {
        let root = Spanned::new(0..self.text.len(), root);
        let read = SettingsLayer::deserialize(toml::Deserializer::from(root));
        read.map(drop)
            .map_err(|error| self.problem(&error, 0, Some(key)))
    }

    /// Checks values whose text has a syntax of its own (regular expressions, contact and agent),
    /// and removes unusable values from the layer.
    fn check_values(&self, layer: &mut SettingsLayer, problems: &mut ErrorCollector) {
        let (root, _) = DeTable::parse_recoverable(self.text);
        for table in root.get_ref().values() {
            let DeValue::Table(keys) = table.get_ref() else {
                continue;
            };
            for (name, value) in keys {
                self.check_value(name.get_ref(), value, layer, problems);
            }
        }
    }

    fn check_value(
        &self,
        field: &str,
        value: &Spanned<DeValue<'_>>,
        layer: &mut SettingsLayer,
        problems: &mut ErrorCollector,
    ) {
        let refuse = |value: &Spanned<DeValue<'_>>, message: String, hint: &str| {
            let problem = self.at(value.span().start, message).hint(hint);
            Err::<(), _>(problem.hiding(keys_unread(None, [field])))
        };
        match (field, value.get_ref()) {
            ("include" | "exclude", DeValue::Array(patterns)) => {
                for pattern in patterns {
                    let text = pattern.get_ref().as_str().unwrap_or_default();
                    if let Err(why) = check_pattern(text) {
                        let message = format!("bad regular expression in `{field}` {why}");
                        problems.note(refuse(pattern, message, PATTERN_HINT));
                    }
                }
                let scope = &mut layer.scope;
                for patterns in [&mut scope.include, &mut scope.exclude] {
                    let patterns = patterns.iter_mut();
                    patterns.for_each(|list| list.retain(|text| check_pattern(text).is_ok()));
                }
            }
            ("contact", DeValue::String(text)) => {
                if let Err(why) = read_contact(text) {
                    let message = format!("unusable `contact` {why}");
                    problems.note(refuse(value, message, CONTACT_HINT));
                    layer.operator.contact = None;
                }
            }
            ("agent", DeValue::String(text)) => {
                if let Err(why) = read_agent(text) {
                    let message = format!("unusable `agent`: {why}");
                    problems.note(refuse(value, message, AGENT_HINT));
                    layer.operator.agent = None;
                }
            }
            _ => {}
        }
    }

    /// Returns the byte offset of a key, which is at the top level or in its table. `None` if the
    /// file lacks the key.
    fn place(&self, key: &str) -> Option<usize> {
        let (root, _) = DeTable::parse_recoverable(self.text);
        let named = |keys: &DeTable<'_>| {
            let mut names = keys.keys();
            let name = names.find(|name| key_of(name.get_ref()) == key)?;
            Some(name.span().start)
        };
        named(root.get_ref()).or_else(|| {
            let table = root.get_ref().get(table_of(key)?)?.get_ref();
            named(table.as_table()?)
        })
    }

    /// Returns the byte offset of a key in a `[site]` or `[group]` table, or of the table itself if
    /// it lacks the key. `None` if the file lacks the table.
    fn place_of_table(&self, kind: &str, name: &str, key: Option<&str>) -> Option<usize> {
        let (root, _) = DeTable::parse_recoverable(self.text);
        let names = root.get_ref().get(kind)?.get_ref().as_table()?;
        let (at, table) = names
            .iter()
            .find(|(candidate, _)| candidate.get_ref() == name)?;
        let mut keys = table.get_ref().as_table()?.keys();
        let is_key =
            |name: &&Spanned<DeString<'_>>| key.is_some_and(|key| key_of(name.get_ref()) == key);
        let place = keys.find(is_key).unwrap_or(at);
        Some(place.span().start)
    }

    /// Returns the error for an unknown name. `table` is the table that contains the unknown name,
    /// with its known keys. `named` is the same table if it is a `[site]` or `[group]` table.
    fn unknown(
        &self,
        at: usize,
        table: Option<(&str, &[&'static str])>,
        named: Option<&ConfigTableName>,
        name: &str,
    ) -> CommandError {
        let refusal = self.at(
            at,
            match table {
                None => format!("unknown key or table `{name}`"),
                Some((table, _)) => format!("unknown key `{name}` in [{table}]"),
            },
        );
        if let Some(other) = table_of(name) {
            let hint = format!("`{}` belongs to the table [{other}]", key_of(name));
            return refusal.hint(hint).hiding(keys_unread(None, [name]));
        }
        let key = |field: &&str, place: &str, table| {
            let key = key_of(field);
            let shown = format!("`{key}`{place}");
            (key.clone(), (shown, keys_unread(table, [&*key])))
        };
        let here: Vec<_> = match table {
            None => {
                let tables = TABLES.iter().map(|(table, fields)| {
                    let unread = keys_unread(None, fields.iter().copied());
                    ((*table).to_owned(), (format!("`[{table}]`"), unread))
                });
                let lists = ["seed", "seed_file", "seed_sitemap"];
                let lists = lists.iter().map(|field| {
                    let (name, (shown, _)) = key(field, "", None);
                    (name, (shown, keys_unread(None, ["seed"])))
                });
                tables.chain(lists).collect()
            }
            Some((_, fields)) => fields.iter().map(|field| key(field, "", named)).collect(),
        };
        let elsewhere = TABLES.iter().flat_map(|(table, fields)| {
            let place = format!(" of [{table}]");
            fields.iter().map(move |field| key(field, &place, None))
        });
        let name = key_of(name);
        match nearest(&name, here).or_else(|| nearest(&name, elsewhere)) {
            Some((shown, unread)) => refusal
                .hint(format!("did you mean {shown}?"))
                .hiding(unread),
            None => refusal.hint("`crawl config` prints every table and key"),
        }
    }

    /// Converts an error of the TOML reader. The error's positions count from `offset`. `key` is
    /// the key whose value is wrong, if known.
    fn problem(&self, error: &toml::de::Error, offset: usize, key: Option<&str>) -> CommandError {
        let message = error.message().trim().replace('\n', ", ");
        let is_secret = key
            .is_some_and(|key| host_credentials::FIELDS.contains(&key.replace('-', "_").as_str()));
        let (message, hint) = match no_variant(&message) {
            Some((message, nearest)) => (message, format!("did you mean `{nearest}`?")),
            None => (
                other_type(&message, is_secret).unwrap_or(message),
                "`crawl config` prints a configuration with every key".to_owned(),
            ),
        };
        let message = match key {
            Some(key) => format!("`{key}`: {message}"),
            None => message,
        };
        match error.span() {
            Some(span) => self.at(offset + span.start, message),
            None => CommandError::usage(format!("{}: {message}", self.name)),
        }
        .hint(hint)
    }

    fn at(&self, offset: usize, message: impl std::fmt::Display) -> CommandError {
        let before = &self.text[..self.text.floor_char_boundary(offset)];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        CommandError::usage(format!("{}:{line}:{column}: {message}", self.name))
    }
}

/// Returns the entries of a table in file order.
fn in_order(table: DeTable<'_>) -> Vec<Entry<'_>> {
    let mut entries: Vec<_> = table.into_iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries
}

fn table_with<'a>((name, value): Entry<'a>) -> Spanned<DeValue<'a>> {
    let span = value.span();
    Spanned::new(span, DeValue::Table(DeTable::from_iter([(name, value)])))
}

/// Rewords a type error of serde, such as `invalid type: string "x", expected u32`. `None` for
/// other errors. If `is_secret`, the message leaves out the value.
fn other_type(message: &str, is_secret: bool) -> Option<String> {
    let rest = message.strip_prefix("invalid type: ");
    let rest = rest.or_else(|| message.strip_prefix("invalid value: "))?;
    let (actual, wanted) = rest.rsplit_once(", expected ")?;
    let wanted = match wanted.trim() {
        "u8" | "u32" => "a non-negative whole number that isn't too large",
        "a sequence" => "a list",
        "a map" => "a table",
        other => other,
    };
    let kind = actual.split(' ').next().unwrap_or_default();
    let actual = match kind {
        "sequence" => "list",
        "map" => "table",
        kind if is_secret => kind,
        _ => actual,
    };
    Some(format!("expected {wanted}, found {actual}"))
}

/// Rewords serde's error ``unknown variant `x`, expected one of `a`, `b` ``, or its error about an
/// unknown field. Returns the new message, and the name nearest to the wrong one. `None` for other
/// errors.
fn no_variant(message: &str) -> Option<(String, String)> {
    let key = message.strip_prefix("unknown field ");
    let names = key.or_else(|| message.strip_prefix("unknown variant "))?;
    let names: Vec<&str> = names.split('`').skip(1).step_by(2).collect();
    let (word, variants) = names.split_first()?;
    let likeness = |name: &&&str| strsim::jaro_winkler(word, name);
    let nearest = variants
        .iter()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    let variants = variants.join("`, `");
    Some((
        match key {
            Some(_) => format!("unknown key `{word}`"),
            None => format!("`{word}` isn't one of `{variants}`"),
        },
        (*nearest).to_owned(),
    ))
}

/// Converts a field's name to a key: `max_pages` to `max-pages`.
pub(crate) fn key_of(field: &str) -> String {
    field.replace('_', "-")
}

impl SettingsLayer {
    /// Returns whether this layer sets a key of a `[site]` or `[group]` table.
    pub(super) fn sets_key_of(&self, (kind, name): &ConfigTableName, key: &str) -> bool {
        let tables = match *kind {
            sites::TABLE => serde_json::to_value(&self.site),
            _ => serde_json::to_value(&self.group),
        };
        let tables = tables.unwrap_or_default();
        let value = &tables[name.as_str()][key];
        !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty())
    }

    /// Returns whether this layer sets a key.
    pub(super) fn sets_key(&self, key: &str) -> bool {
        let of_table =
            || table_of(key).is_some_and(|table| self.sets(table, &key.replace('-', "_")));
        let lists = || self.seed_file.is_some() || self.seed_sitemap.is_some();
        let seeds = || self.seed.is_some() || lists();
        key == "seed" && seeds() || of_table()
    }
}

fn table_of(name: &str) -> Option<&'static str> {
    let field = name.replace('-', "_");
    let (table, _) = TABLES
        .iter()
        .find(|(_, fields)| fields.contains(&field.as_str()))?;
    Some(table)
}

/// Lists `fields`, which are keys of `table`, as settings that could not be read.
fn keys_unread<'a>(
    table: Option<&ConfigTableName>,
    fields: impl IntoIterator<Item = &'a str>,
) -> UnreadSettings {
    UnreadSettings::Keys {
        table: table.cloned(),
        keys: fields.into_iter().map(key_of).collect(),
    }
}

#[cfg(test)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "an expectation is written where it is used"
)]
mod tests;
