//! `crawl.toml`: the settings that the workers of one crawl must share, and the settings of a
//! gathered directory.

use std::collections::BTreeSet;

use crawl_archive::Timestamp;
use crawl_records::seeds_of;
use toml::{Table, Value};

use crate::error::GatherError;
use crate::worker_directory::{NOTES, WORKER, WorkerDirectory, text_of};

/// Which keys of a table in `crawl.toml` must have equal values in all workers.
enum KeysThatMustAgree {
    /// All keys except those listed, which may differ between machines.
    AllBut(&'static [&'static str]),
    /// Only the listed keys.
    Only(&'static [&'static str]),
}

/// The tables of `crawl.toml` that contain keys which must be equal in all workers.
const EQUAL_KEYS: [(&str, KeysThatMustAgree); 10] = [
    ("operator", KeysThatMustAgree::AllBut(&[])),
    ("scope", KeysThatMustAgree::AllBut(&["max-time"])),
    ("sample", KeysThatMustAgree::AllBut(&[])),
    (
        "politeness",
        KeysThatMustAgree::AllBut(&[
            "concurrency",
            "hosts-in-memory",
            "max-rate",
            "wait-unreachable",
        ]),
    ),
    ("exclusion", KeysThatMustAgree::AllBut(&[])),
    ("revisit", KeysThatMustAgree::AllBut(&["recrawl", "every"])),
    ("site", KeysThatMustAgree::AllBut(&[])),
    ("group", KeysThatMustAgree::AllBut(&[])),
    (
        "fetch",
        KeysThatMustAgree::Only(&["timeout", "max-body", "retries"]),
    ),
    ("output", KeysThatMustAgree::Only(&["warc", "links"])),
];

/// The tables of `crawl.toml` with settings that a worker can reload. The workers of a shared crawl
/// begin with equal settings. Their values in these tables may differ once only some of them have
/// reloaded.
const RELOADED: [&str; 4] = ["scope", "politeness", "site", "group"];

/// Returns an error if the two directories belong to different crawls.
pub(crate) fn check_alike(
    one: &WorkerDirectory,
    other: &WorkerDirectory,
) -> Result<(), GatherError> {
    let key = match (&one.crawl, &other.crawl) {
        (Some(crawl), Some(other_crawl)) if crawl != other_crawl => {
            Some("frontier.crawl".to_owned())
        }
        (Some(_), Some(_)) => differing_key(&one.config, &other.config, &RELOADED),
        _ => differing_key(&one.config, &other.config, &[]),
    };
    match key {
        None => Ok(()),
        Some(key) => Err(GatherError::OtherCrawl {
            one: one.dir.clone(),
            other: other.dir.clone(),
            key,
        }),
    }
}

/// Returns the first key whose values differ between two workers but must be equal. Keys of the
/// tables `reloaded` may differ.
fn differing_key(one: &Table, other: &Table, reloaded: &[&str]) -> Option<String> {
    let seeds = |of| seeds_of(of).collect::<BTreeSet<_>>();
    if seeds(one) != seeds(other) {
        return Some("seed".to_owned());
    }
    let none = Table::new();
    let mut tables = EQUAL_KEYS
        .iter()
        .filter(|(table, _)| !reloaded.contains(table));
    tables.find_map(|(table, keys)| {
        let section_of = |config: &'_ Table| {
            let section = config.get(*table).and_then(Value::as_table);
            section.unwrap_or(&none).clone()
        };
        let (one, other) = (section_of(one), section_of(other));
        let must_be = |key: &str| match keys {
            KeysThatMustAgree::AllBut(others) => !others.contains(&key),
            KeysThatMustAgree::Only(listed) => listed.contains(&key),
        };
        let all_keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
        let differs = |key: &&String| must_be(key) && one.get(*key) != other.get(*key);
        let key = all_keys.into_iter().find(differs)?;
        Some(format!("{table}.{key}"))
    })
}

/// Returns the text of the gathered `crawl.toml`: the first worker's configuration, with the
/// earliest start and the latest restart of all workers. Leaves out the worker's name, its output
/// directory and its mark. If `goes_on` (a crawl will resume in the gathered directory), leaves out
/// all settings of the shared frontier.
pub(crate) fn gathered_config(workers: &[WorkerDirectory], goes_on: bool) -> String {
    let mut config = workers
        .first()
        .map(|first| first.config.clone())
        .unwrap_or_default();
    for (table, key) in [WORKER, ("output", "output"), (NOTES, "mark")] {
        if let Some(Value::Table(table)) = config.get_mut(table) {
            table.remove(key);
        }
    }
    if goes_on {
        config.remove(WORKER.0);
    }
    let configs: Vec<&Table> = workers.iter().map(|worker| &worker.config).collect();
    let times = StartTimes::of(&configs);
    if let Value::Table(notes) = config
        .entry(NOTES)
        .or_insert_with(|| Value::Table(Table::new()))
    {
        for (key, moment) in [
            ("started", times.started),
            ("last-started", times.last_started),
        ] {
            match moment {
                Some(moment) => {
                    notes.insert(key.to_owned(), Value::String(moment.rfc3339_millis()));
                }
                None => drop(notes.remove(key)),
            }
        }
    }
    if goes_on {
        return format!(
            "# The configuration that was in force in all workers of this crawl.\n{config}"
        );
    }
    format!(
        "# The configuration that was in force in all workers, from whose directories this one was\n\
         # gathered: workers.jsonl lists them. No crawl can continue here.\n{config}"
    )
}

/// The times in `crawl.toml` that an audit of the crawl uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StartTimes {
    started: Option<Timestamp>,
    last_started: Option<Timestamp>,
}

impl StartTimes {
    /// Combines the times of several workers: the earliest start and the latest restart. The first
    /// start of a worker doesn't count as a restart. Without a restart, `last_started` is the
    /// earliest start.
    fn of(configs: &[&Table]) -> StartTimes {
        let moment = |config: &Table, key| Timestamp::parse(text_of(config, NOTES, key)?);
        let started = configs
            .iter()
            .filter_map(|config| moment(config, "started"))
            .min();
        let restarts = configs.iter().filter_map(|config| {
            let last = moment(config, "last-started")?;
            let first = moment(config, "started")?;
            Some(last).filter(|last| *last > first)
        });
        StartTimes {
            started,
            last_started: restarts.max().or(started),
        }
    }
}

#[cfg(test)]
mod tests {
    use toml::Table;

    use super::{RELOADED, StartTimes, differing_key};

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    #[test]
    fn workers_of_one_crawl_may_differ_in_machine_settings() {
        let check = |other: &str, expected: Option<&str>| {
            let one = "seed = [\"http://a.example/\", \"http://b.example/\"]\n[politeness]\n\
                       delay = \"1s\"\nconcurrency = 9\n[output]\nwarc = \"on\"\noutput = \"w1\"\n";
            let key = differing_key(&table(one), &table(other), &[]);
            assert_eq!(key.as_deref(), expected, "{other}");
        };
        let seeds = "seed = [\"http://b.example/\", { url = \"http://a.example/\" }]\n";
        let rest = "[politeness]\ndelay = \"1s\"\nconcurrency = 3\n[output]\nwarc = \"on\"\n";
        check(&format!("{seeds}{rest}"), None);
        check(rest, Some("seed"));
        let slower = rest.replace("\"1s\"", "\"2s\"");
        check(&format!("{seeds}{slower}"), Some("politeness.delay"));
        check(
            &format!("{seeds}{rest}links = \"on\"\n"),
            Some("output.links"),
        );
        check(
            &format!("{seeds}{rest}[site.\"a.example\"]\ndelay = \"9s\"\n"),
            Some("site.a.example"),
        );
        check(
            &format!("{seeds}{rest}[frontier]\ncrawl = \"x\"\nworker = \"w2\"\n"),
            None,
        );
        let reloaded = |other: &str| {
            let one = format!("{seeds}{rest}");
            differing_key(&table(&one), &table(other), &RELOADED)
        };
        assert_eq!(reloaded(&format!("{seeds}{slower}")), None);
        assert_eq!(reloaded(&slower), Some("seed".to_owned()));
    }

    #[test]
    fn a_late_worker_does_not_exempt_earlier_requests_from_the_audit() {
        let notes = |started: &str, last: &str| {
            table(&format!(
                "[crawl]\nstarted = \"2026-11-25T{started}Z\"\nlast-started = \"2026-11-25T{last}Z\"\n"
            ))
        };
        let check = |configs: &[Table], expected: [&str; 2]| {
            let configs: Vec<&Table> = configs.iter().collect();
            let times = StartTimes::of(&configs);
            let times = [times.started, times.last_started];
            let times = times.map(|time| time.unwrap().rfc3339_millis()[11..19].to_owned());
            assert_eq!(times, expected);
        };
        let one = notes("01:00:00", "01:00:00");
        let late = notes("03:00:00", "03:00:00");
        check(&[one.clone(), late.clone()], ["01:00:00", "01:00:00"]);
        let restarted = notes("02:00:00", "02:30:00");
        check(&[late, restarted, one], ["01:00:00", "02:30:00"]);
    }
}
