//! The settings that a crawl directory remembers, and those that it may decide by itself.
//!
//! A `crawl.toml` may come from somebody else: with an archive, from a shared disk. So a key that
//! reads the environment, sends requests elsewhere, answers for them or lifts a guard holds only
//! where the user says it (in flags or a file of `--config`), or where the file's mark proves
//! that this program wrote it for this user (see [`super::config_mac`]).

use std::path::{Path, PathBuf};

use crawl_archive::{MAX_CONFIG_BYTES, read_text};
use crawl_weburl::{CanonicalUrl, canonicalize, safe_line};
use toml::{Table, Value};

use super::config_file;
use super::config_mac::{self, Marked};
use super::environment::Environment;
use super::layer::{Layer, Settings};
use super::listing::{mark_of, without_secrets};
use crate::error::CommandError;
use crate::settings::seeds;

/// The use that a later run makes of a key of the directory's crawl.toml.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// It holds in every later run: what is kept of a part of the pages would pass for the whole.
    Kept,
    /// It holds where a run names no seed, and so goes on as the last one did.
    GoesOn,
    /// The same, where it is known as this user's word. What else it could do, in words.
    Guarded(&'static str),
    /// Each run says it anew.
    EachRun,
}
use Memory::{EachRun, GoesOn, Guarded, Kept};

/// The table of the keys that stand in none.
const TOP: &str = "";

/// Every key of a crawl.toml by its table, with underscores, once.
const MEMORY: &[(&str, &str, Memory)] = &[
    (TOP, "seed", Guarded("a seed may lie in private ranges")),
    (
        "operator",
        "contact",
        Guarded("who answers for the requests"),
    ),
    (
        "operator",
        "agent",
        Guarded("whose rules of robots.txt hold"),
    ),
    ("scope", "scope", GoesOn),
    ("scope", "include", GoesOn),
    ("scope", "exclude", GoesOn),
    ("scope", "max_depth", GoesOn),
    ("scope", "max_pages", GoesOn),
    ("scope", "max_pages_per_host", GoesOn),
    ("scope", "max_bytes_per_host", GoesOn),
    ("scope", "max_server_time", GoesOn),
    ("scope", "max_server_time_per_host", GoesOn),
    ("scope", "max_time_per_host", GoesOn),
    ("scope", "max_time", GoesOn),
    ("scope", "max_bytes", GoesOn),
    ("scope", "max_redirects", GoesOn),
    ("scope", "sitemaps", GoesOn),
    (
        "scope",
        "max_sitemap_urls",
        Guarded("memory of this machine"),
    ),
    ("scope", "feeds", GoesOn),
    ("scope", "forms", GoesOn),
    ("scope", "resources", GoesOn),
    // What is quicker than 200 ms, or more than 4 at once, needs `own-site` whoever says it.
    ("politeness", "delay", GoesOn),
    ("politeness", "delay_factor", GoesOn),
    ("politeness", "per_host", GoesOn),
    ("politeness", "per_address", GoesOn),
    ("politeness", "address_delay", GoesOn),
    ("politeness", "per_site", GoesOn),
    ("politeness", "site_delay", GoesOn),
    ("politeness", "jitter", GoesOn),
    (
        "politeness",
        "max_retry_after",
        Guarded("waits that hosts ask for are cut short"),
    ),
    ("politeness", "quiet_hours", GoesOn),
    ("politeness", "max_rate", GoesOn),
    ("politeness", "concurrency", GoesOn),
    (
        "politeness",
        "hosts_in_memory",
        Guarded("memory of this machine"),
    ),
    ("politeness", "wait_unreachable", GoesOn),
    ("politeness", "own_site", Guarded("no least delay holds")),
    ("politeness", "robots", Guarded("how robots.txt is read")),
    ("exclusion", "purpose", GoesOn),
    ("exclusion", "robots_forbidden", GoesOn),
    // These have bounds of their own, whoever says them.
    ("exclusion", "robots_max_age", GoesOn),
    (
        "exclusion",
        "robots_retry",
        Guarded("how often robots.txt is asked for"),
    ),
    (
        "exclusion",
        "robots_retry_most",
        Guarded("how often robots.txt is asked for"),
    ),
    ("exclusion", "robots_last_good", GoesOn),
    ("names", "traps", GoesOn),
    ("names", "skip_actions", GoesOn),
    ("names", "tracking_parameters", GoesOn),
    ("names", "default_documents", GoesOn),
    ("names", "session_ids", GoesOn),
    ("names", "parameter_order", GoesOn),
    ("names", "empty_parameters", GoesOn),
    ("names", "clean_params", GoesOn),
    ("recrawl", "recrawl", EachRun),
    ("recrawl", "every", EachRun),
    ("recrawl", "revisit_least", GoesOn),
    ("recrawl", "revisit_most", GoesOn),
    ("fetch", "timeout", GoesOn),
    ("fetch", "connect_timeout", GoesOn),
    ("fetch", "first_byte_timeout", GoesOn),
    ("fetch", "idle_timeout", GoesOn),
    ("fetch", "max_body", Guarded("memory of this machine")),
    ("fetch", "body_memory", Guarded("memory of this machine")),
    ("fetch", "retries", GoesOn),
    ("fetch", "proxy", Guarded("where requests go")),
    ("fetch", "resolve", Guarded("where requests go")),
    ("fetch", "name_server", Guarded("where requests go")),
    (
        "fetch",
        "ca_file",
        Guarded("whose certificates are trusted"),
    ),
    ("fetch", "referer", GoesOn),
    (
        "fetch",
        "allow_private",
        Guarded("private ranges are asked"),
    ),
    ("output", "output", EachRun),
    ("output", "warc", Kept),
    ("output", "index", Kept),
    ("output", "links", Kept),
    ("output", "commit_within", GoesOn),
    ("display", "progress", EachRun),
    ("display", "quiet", EachRun),
    ("display", "verbose", EachRun),
    ("display", "log", EachRun),
    ("display", "fail_on_error", EachRun),
    // A site's other keys are bounded as those for every host are.
    ("site", "basic_auth", Guarded("a secret is sent")),
    ("site", "headers", Guarded("a secret is sent")),
    ("site", "cookies", Guarded("a secret is sent")),
    ("site", "plain_http", Guarded("secrets go over http")),
];

/// The crawl.toml of a directory that holds a crawl.
#[derive(Debug)]
pub(super) struct Stored {
    dir: PathBuf,
    path: PathBuf,
    text: String,
    layer: Layer,
}

impl Stored {
    /// Reads it; nothing where there is none.
    pub(super) fn read(dir: &Path) -> Result<Option<Stored>, CommandError> {
        let path = dir.join("crawl.toml");
        if matches!(path.symlink_metadata(), Err(why) if why.kind() == std::io::ErrorKind::NotFound)
        {
            return Ok(None);
        }
        let text = read_text(&path, MAX_CONFIG_BYTES).map_err(config_file::unreadable(&path))?;
        let layer = config_file::parse(&text, &path.display().to_string())?;
        Ok(Some(Stored {
            dir: dir.to_owned(),
            path,
            text,
            layer,
        }))
    }

    /// The part that holds beneath `said`, the flags and the file of `--config`. Where `said` names
    /// seeds that is what a crawl keeps, and its seeds, which follow those of `said`.
    ///
    /// # Errors
    /// A guarded key that nothing shows to be this user's word, and that `said` does not say.
    pub(super) fn beneath(
        mut self,
        said: &mut Layer,
        said_seeds: &[String],
        around: &Environment,
    ) -> Result<Layer, CommandError> {
        let names_seeds = said.seed.is_some();
        let marked = self.marked(around);
        if marked != Marked::Ours {
            let unsaid = self.unsaid(said, said_seeds);
            if !unsaid.is_empty() {
                return Err(self.refusal(marked, &unsaid));
            }
            // The user's own config may say another.
            self.layer.forget("operator", "contact");
        }
        for (table, field, memory) in MEMORY {
            let holds = match memory {
                EachRun => false,
                Kept => true,
                GoesOn | Guarded(_) => !names_seeds,
            };
            if !holds {
                self.layer.forget(table, field);
            }
        }
        if let Some(seeds) = &mut said.seed {
            let known = canonical(seeds);
            let older = self.layer.seed.take().unwrap_or_default();
            let kept = older
                .into_iter()
                .filter(|seed| match canonicalize(None, seed) {
                    Ok(url) => !known.contains(&url),
                    Err(_) => false,
                });
            seeds.extend(kept);
            self.layer.site = None;
        }
        Ok(self.layer)
    }

    /// Whether the mark in it is this user's.
    fn marked(&self, around: &Environment) -> Marked {
        let guarded = guarded(&self.layer.clone().settle());
        config_mac::check(around, &self.dir, &guarded, mark_of(&self.text).as_deref())
    }

    /// The guarded settings in it that have an effect and are not given anew; a line for each.
    fn unsaid(&self, said: &Layer, said_seeds: &[String]) -> Vec<String> {
        let line = |table: &str, key: &str, value: &Value| {
            let place = match table {
                TOP => String::new(),
                table => format!("[{table}] "),
            };
            let kind = table.split('.').next().unwrap_or_default();
            let why = why(kind, key).unwrap_or_default();
            safe_line(&format!("{place}{key} = {value}  ({why})")).into_owned()
        };
        let said_urls = canonical(said_seeds);
        let older = self.layer.seed.iter().flatten();
        // What is read in no way is said by nobody.
        let older = older.filter(|seed| {
            let is_said = seeds::read(seed).map(|seed| said_urls.contains(&seed.url));
            !is_said.unwrap_or(false)
        });
        let mut unsaid: Vec<String> = older
            .map(|seed| line(TOP, "seed", &Value::from(seed.as_str())))
            .collect();
        if said.seed.is_some() {
            return unsaid;
        }
        let settings = self.layer.clone().settle();
        // A proxy's password is not shown; secrets of sites never are.
        let shown = guarded(&without_secrets(&settings));
        for (table, keys) in guarded(&settings) {
            let Value::Table(keys) = keys else { continue };
            for (key, value) in keys {
                match value {
                    Value::Table(terms) if table == "site" && said.site.is_none() => {
                        let site = format!("site.{}", Value::from(key));
                        unsaid.extend(terms.iter().map(|(key, value)| line(&site, key, value)));
                    }
                    value if table != "site" && !said.says(&table, &key.replace('-', "_")) => {
                        let shown = shown.get(&table).and_then(|keys| keys.get(&key));
                        unsaid.push(line(&table, &key, shown.unwrap_or(&value)));
                    }
                    _ => {}
                }
            }
        }
        unsaid
    }

    fn refusal(&self, marked: Marked, unsaid: &[String]) -> CommandError {
        let (path, dir) = (self.path.display(), self.dir.display());
        CommandError::usage(format!(
            "`{path}` is not known as yours: {}. It says what only you may say:\n  {}",
            marked.why(),
            unsaid.join("\n  ")
        ))
        .hint(format!(
            "read the file; `crawl --output {dir} --config {path}` takes it as yours, and a flag says its key anew"
        ))
    }
}

/// The guarded keys of settings that are other than by default: what a mark stands for, and what
/// is not taken without one. In tables, as a crawl.toml has them.
fn guarded(settings: &Settings) -> Table {
    let settled = |settings: &Settings| Table::try_from(settings).unwrap_or_default();
    let (found, usual) = (settled(settings), settled(&Settings::default()));
    let mut guarded = Table::new();
    for (name, value) in found {
        match value {
            Value::Table(sites) if name == "site" => {
                let sites = sites.into_iter().filter_map(|(host, terms)| {
                    let Value::Table(mut terms) = terms else {
                        return None;
                    };
                    terms.retain(|key, _| why("site", key).is_some());
                    (!terms.is_empty()).then_some((host, Value::Table(terms)))
                });
                guarded.insert(name, Value::Table(sites.collect()));
            }
            Value::Table(mut keys) => {
                let usual = usual.get(&name);
                keys.retain(|key, value| {
                    let is_usual = usual.and_then(|usual| usual.get(key)) == Some(&*value);
                    why(&name, key).is_some() && !is_usual
                });
                guarded.insert(name, Value::Table(keys));
            }
            value if why(TOP, &name).is_some() => {
                guarded.insert(name, value);
            }
            _ => {}
        }
    }
    guarded.retain(|_, value| value.as_table().is_none_or(|keys| !keys.is_empty()));
    guarded
}

/// The mark that makes a crawl.toml with these settings known as this user's in this directory;
/// nothing where the user has no place for a key.
pub(crate) fn own_mark(settings: &Settings, dir: &Path, around: &Environment) -> Option<String> {
    // Secrets are not written to the file, so that one with a secret in it is not ours.
    let made = config_mac::make(around, dir, &guarded(&without_secrets(settings)));
    made.inspect_err(|why| {
        let file = dir.join("crawl.toml");
        tracing::warn!(
            %why,
            "there is no place for a key, so `{0}` is not marked as yours: to go on, add `--config {0}`",
            file.display()
        );
    })
    .ok()
}

/// The effect of a guarded key; none for others.
fn why(table: &str, key: &str) -> Option<&'static str> {
    let field = key.replace('-', "_");
    let found = MEMORY.iter().find(|(t, f, _)| *t == table && *f == field);
    match found {
        Some((_, _, Guarded(why))) => Some(why),
        // The other keys of single sites stand in no table here.
        None if table != "site" => Some("nobody said what it may do"),
        _ => None,
    }
}

/// The URLs that seeds stand for; of a host without a scheme both of its own.
fn canonical(seeds: &[String]) -> Vec<CanonicalUrl> {
    let read = seeds.iter().filter_map(|seed| seeds::read(seed).ok());
    read.flat_map(|seed| std::iter::once(seed.url).chain(seed.stand_in))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::layer::TABLES;
    use super::super::sites;
    use super::{Guarded, MEMORY, TOP};

    #[test]
    fn every_key_is_classified_once() {
        let mut known: Vec<(&str, &str)> = MEMORY.iter().map(|(t, f, _)| (*t, *f)).collect();
        let mut keys = vec![(TOP, "seed")];
        for (table, fields) in TABLES {
            keys.extend(fields.iter().map(|field| (*table, *field)));
        }
        known.sort_unstable();
        keys.sort_unstable();
        let (sites, known): (Vec<_>, Vec<_>) =
            known.into_iter().partition(|(table, _)| *table == "site");
        assert_eq!(known, keys);
        for (_, field) in sites {
            assert!(sites::FIELDS.contains(&field), "{field}");
        }
    }

    #[test]
    fn the_documentation_names_each_guarded_key() {
        let page = include_str!("../../../../docs/crawl-directory.md");
        for (_, field, memory) in MEMORY {
            let key = format!("`{}`", field.replace('_', "-"));
            if let Guarded(why) = memory {
                assert!(page.contains(&key), "{key}: {why}");
            }
        }
    }
}
