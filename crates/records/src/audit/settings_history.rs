//! Finds the settings that were in force at a given time: those of each run, and those that were
//! reread during a run.

use std::path::Path;

use crawl_archive::{MAX_CONFIG_BYTES, read_text};

use super::SETTLING_MS;
use super::audited_settings::AuditedSettings;
use super::operator_delays::OperatorDelayLog;
use super::settings_file::CrawlTomlTables;
use crate::error::RecordsError;

const SECOND: u64 = 1000;

/// The settings of all runs of a crawl, each with the time from which it was in force.
#[derive(Debug)]
pub(super) struct SettingsHistory {
    /// The settings in `crawl.toml`, for requests before the first recorded settings.
    file: AuditedSettings,
    /// The settings recorded in `state/delays.jsonl`, in time order.
    recorded: Vec<RecordedSettings>,
    /// The recorded starts of runs with their workers, in time order.
    starts: Vec<(u64, Option<String>)>,
    /// Before this time, only settings recorded in `state/delays.jsonl` are known, because older
    /// versions of the program recorded none. It is one second after the later of two times: the
    /// start of the last run (if there were several), and the last time that an older version
    /// reread its settings. 0 if there was neither.
    unknown_until: u64,
    /// The longest timeout of an exchange in any of the settings, in milliseconds.
    pub(super) timeout: u64,
    /// The workers whose rows the directory contains.
    pub(super) workers: RecordedWorkers,
}

/// The workers whose rows a directory contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordedWorkers {
    /// The frontier was not shared, so the directory has all rows.
    All,
    /// The rows of several workers that shared a frontier. The directory of a further worker may be
    /// lost.
    Several,
    /// The rows of one of the workers that shared a frontier.
    One,
}

impl RecordedWorkers {
    fn of(file: &CrawlTomlTables) -> RecordedWorkers {
        let is_set = |key| {
            file.text("frontier", key)
                .is_some_and(|text| !text.is_empty())
        };
        match (is_set("crawl"), is_set("worker")) {
            (false, _) => RecordedWorkers::All,
            (true, false) => RecordedWorkers::Several,
            (true, true) => RecordedWorkers::One,
        }
    }
}

/// Settings recorded in `state/delays.jsonl`, in force from a moment on.
#[derive(Debug)]
struct RecordedSettings {
    from: u64,
    /// The worker that used the settings, if the directory is gathered from several workers.
    worker: Option<String>,
    /// Whether a run began with these settings, so that no request was in flight when they came
    /// into force.
    is_start: bool,
    settings: AuditedSettings,
}

impl SettingsHistory {
    /// Reads `crawl.toml` in the directory of a crawl, and combines it with the settings recorded
    /// in `delays`.
    pub(super) fn read(
        dir: &Path,
        delays: &OperatorDelayLog,
    ) -> Result<SettingsHistory, RecordsError> {
        let path = dir.join("crawl.toml");
        let text = read_text(&path, MAX_CONFIG_BYTES).map_err(RecordsError::io(&path))?;
        SettingsHistory::of(&text, delays).map_err(|what| RecordsError::Config { path, what })
    }

    /// Combines the text of a `crawl.toml` with recorded settings.
    pub(super) fn of(text: &str, delays: &OperatorDelayLog) -> Result<SettingsHistory, String> {
        let file = CrawlTomlTables::parse(text)?;
        let started = file.moment("started")?;
        let last_started = file.moment("last-started")?;
        let current = AuditedSettings::of(&file)?;
        let recorded = delays.rows().iter().filter_map(|row| {
            let settings = CrawlTomlTables::from_row(row.settings.clone()?);
            let settings = settings.and_then(|file| AuditedSettings::of(&file));
            let place = |why| format!("settings recorded in state/delays.jsonl: {why}");
            Some(settings.map_err(place).map(|settings| RecordedSettings {
                from: row.at,
                worker: row.worker.clone(),
                is_start: row.reread.is_none(),
                settings,
            }))
        });
        let recorded: Vec<RecordedSettings> = recorded.collect::<Result<_, _>>()?;
        let last_started = last_started.filter(|last| started.is_none_or(|first| first < *last));
        let rereads = delays.rows().iter().filter(|row| row.reread.is_some());
        let unrecorded = rereads
            .filter(|row| row.settings.is_none())
            .map(|row| row.at);
        // Times in `crawl.toml` are in whole seconds. So a request up to a second after such a time
        // may have been sent before the settings were in force.
        let unknown_until = last_started
            .into_iter()
            .chain(unrecorded)
            .map(|at| at + SECOND);
        let timeouts = recorded.iter().map(|recorded| recorded.settings.timeout);
        Ok(SettingsHistory {
            timeout: timeouts.chain([current.timeout]).max().unwrap_or_default(),
            file: current,
            recorded,
            starts: delays.starts().collect(),
            unknown_until: unknown_until.max().unwrap_or_default(),
            workers: RecordedWorkers::of(&file),
        })
    }

    /// Returns the settings that were in force for a worker at a moment. Falls back to `crawl.toml`
    /// if none were recorded.
    pub(super) fn at(&self, worker: Option<&str>, moment: u64) -> &AuditedSettings {
        self.between(worker, moment, moment)
            .next()
            .unwrap_or(&self.file)
    }

    /// Returns the settings that were in force for each worker at a moment. Falls back to
    /// `crawl.toml` if none were recorded. Used for rows of pages, which don't name their worker.
    pub(super) fn of_all_workers(&self, moment: u64) -> Vec<&AuditedSettings> {
        let mut workers = Vec::new();
        let mut in_force = Vec::new();
        for recorded in self.until(moment) {
            if !workers.contains(&&recorded.worker) {
                workers.push(&recorded.worker);
                in_force.push(&recorded.settings);
            }
        }
        if in_force.is_empty() {
            in_force.push(&self.file);
        }
        in_force
    }

    /// Returns one of the recorded settings for each distinct interpretation of robots.txt (see
    /// `reads_robots_as`).
    pub(super) fn robots_readers(&self) -> Vec<&AuditedSettings> {
        let mut readers = vec![&self.file];
        for recorded in &self.recorded {
            if !readers
                .iter()
                .any(|settings| settings.reads_robots_as(&recorded.settings))
            {
                readers.push(&recorded.settings);
            }
        }
        readers
    }

    /// Returns the settings that a worker had in force at some time from `from` to `to`, the latest
    /// first. There is at least one.
    pub(super) fn between(
        &self,
        worker: Option<&str>,
        from: u64,
        to: u64,
    ) -> impl Iterator<Item = &AuditedSettings> {
        let mut is_over = false;
        self.of_worker(worker, to)
            .map(Some)
            .chain([None])
            .map_while(move |recorded| {
                if is_over {
                    return None;
                }
                is_over = recorded.is_none_or(|recorded| recorded.from <= from);
                Some(recorded.map_or(&self.file, |recorded| &recorded.settings))
            })
    }

    /// Returns the settings that a request started at `start` may follow: the settings in force at
    /// `start`, and the previous ones if they were replaced just before `start`.
    pub(super) fn around(
        &self,
        worker: Option<&str>,
        start: u64,
    ) -> impl Iterator<Item = &AuditedSettings> {
        self.between(worker, self.just_before(worker, start), start)
    }

    /// Returns the earliest moment whose settings a request started at `start` may follow. The
    /// moment is not before the start of the run, because a run doesn't follow settings of an
    /// earlier run.
    pub(super) fn just_before(&self, worker: Option<&str>, start: u64) -> u64 {
        let mut recorded = self.of_worker(worker, start);
        let begun = recorded.find(|recorded| recorded.is_start);
        let begun = begun.map_or(0, |recorded| recorded.from);
        start.saturating_sub(SETTLING_MS).max(begun)
    }

    /// Returns the time at which the settings that a worker had at `moment` came into force. 0 if
    /// they are the settings in `crawl.toml`.
    pub(super) fn since(&self, worker: Option<&str>, moment: u64) -> u64 {
        let latest = self.of_worker(worker, moment).next();
        latest.map_or(0, |recorded| recorded.from)
    }

    /// Returns the maximum number of requests in flight to a host, over all settings.
    pub(super) fn most_per_host(&self, host: &str) -> usize {
        let settings = self.recorded.iter().map(|recorded| &recorded.settings);
        let numbers = settings.chain([&self.file]);
        let numbers = numbers.map(|settings| settings.of_host(host).per_host);
        numbers.max().unwrap_or(1)
    }

    /// Returns the shortest delay that the settings gave a host at some time from `from` to `to`.
    pub(super) fn delay(&self, host: &str, worker: Option<&str>, from: u64, to: u64) -> u64 {
        let settings = self.between(worker, from, to);
        let delays = settings.map(|settings| settings.of_host(host).delay);
        delays.min().unwrap_or_default()
    }

    /// Returns the maximum number of requests in flight to a host when a request started, or just
    /// before that.
    pub(super) fn per_host(&self, host: &str, worker: Option<&str>, start: u64) -> usize {
        let settings = self.around(worker, start);
        let numbers = settings.map(|settings| settings.of_host(host).per_host);
        numbers.max().unwrap_or(1)
    }

    /// Returns whether the settings of a worker at `moment` are known.
    pub(super) fn is_known_at(&self, worker: Option<&str>, moment: u64) -> bool {
        self.of_worker(worker, moment).next().is_some() || moment >= self.unknown_until
    }

    /// Returns whether the settings of any worker at `moment` are known.
    pub(super) fn is_any_known_at(&self, moment: u64) -> bool {
        self.until(moment).next().is_some() || moment >= self.unknown_until
    }

    /// Returns whether a run of a worker is recorded to have begun after `from`, up to `to`.
    pub(super) fn began_between(&self, worker: Option<&str>, from: u64, to: u64) -> bool {
        let first = self.starts.partition_point(|(start, _)| *start <= from);
        let starts = self.starts.iter().skip(first);
        let mut starts = starts.take_while(|(start, _)| *start <= to);
        starts.any(|(_, started)| started.as_deref() == worker)
    }

    /// Returns whether a worker was, or may have been, restarted between two moments. The start of
    /// one worker doesn't change what another one knows.
    pub(super) fn restarted_between(&self, worker: Option<&str>, from: u64, to: u64) -> bool {
        self.began_between(worker, from, to) || !self.is_known_at(worker, from)
    }

    /// Returns the settings recorded for a worker up to `moment`, the latest first.
    fn of_worker(
        &self,
        worker: Option<&str>,
        moment: u64,
    ) -> impl Iterator<Item = &RecordedSettings> {
        let recorded = self.until(moment);
        recorded.filter(move |recorded| recorded.worker.as_deref() == worker)
    }

    /// Returns the settings recorded up to `moment`, the latest first.
    fn until(&self, moment: u64) -> impl Iterator<Item = &RecordedSettings> {
        let count = self
            .recorded
            .partition_point(|recorded| recorded.from <= moment);
        self.recorded.iter().take(count).rev()
    }
}

#[cfg(test)]
mod tests {
    use crawl_archive::rows::{DelayRow, ExclusionsChangedByReload};

    use super::SettingsHistory;
    use crate::audit::operator_delays::OperatorDelayLog;

    fn row(at: u64, worker: Option<&str>, settings: &str, is_reread: bool) -> DelayRow {
        DelayRow {
            at,
            worker: worker.map(str::to_owned),
            settings: (!settings.is_empty()).then(|| serde_json::from_str(settings).unwrap()),
            reread: is_reread.then(ExclusionsChangedByReload::default),
            ..DelayRow::default()
        }
    }

    fn history(toml: &str, rows: Vec<DelayRow>) -> SettingsHistory {
        SettingsHistory::of(toml, &OperatorDelayLog::of(rows)).unwrap()
    }

    #[test]
    fn each_request_has_the_settings_of_its_time() {
        let fast = r#"{"politeness": {"delay": "1s", "per-host": 3}}"#;
        let slow = r#"{"politeness": {"delay": "4s"}, "site": {"a.example": {"delay": "9s"}}}"#;
        let history = history(
            "[politeness]\ndelay = \"6s\"\n",
            vec![
                row(10_000, None, fast, false),
                row(15_000, Some("w2"), slow, false),
                row(20_000, None, slow, true),
                row(25_000, None, "", false),
                row(30_000, None, fast, false),
            ],
        );
        let check = |moment, worker, delay, per_host| {
            let host = "www.a.example";
            let limits = history.at(worker, moment).of_host(host);
            let allowed = history.per_host(host, worker, moment);
            assert_eq!((limits.delay, allowed), (delay, per_host), "{moment}");
        };
        check(9_999, None, 6_000, 1);
        check(10_000, None, 1_000, 3);
        // Just after settings were reread, a request may still follow the previous settings.
        check(20_500, None, 9_000, 3);
        check(21_500, None, 9_000, 1);
        check(30_000, None, 1_000, 3);
        check(16_000, Some("w2"), 9_000, 1);
        let delay = |from, to| history.delay("b.example", None, from, to);
        assert_eq!(
            (delay(12_000, 22_000), delay(22_000, 23_000)),
            (1_000, 4_000)
        );
        assert_eq!(history.most_per_host("b.example"), 3);
        assert_eq!(history.since(None, 22_000), 20_000);
        assert_eq!(history.of_all_workers(22_000).len(), 2);
        let restarted = |worker, from, to| history.restarted_between(worker, from, to);
        assert!(restarted(None, 21_000, 26_000) && !restarted(None, 25_000, 29_000));
        // The start of another worker doesn't count.
        assert!(!restarted(None, 10_000, 19_000) && !restarted(Some("w2"), 16_000, 30_000));
        assert!(restarted(Some("w2"), 10_000, 19_000));
    }

    #[test]
    fn settings_of_earlier_runs_that_are_not_recorded_are_unknown() {
        let started = "[crawl]\nstarted = \"1970-01-01T00:01:00Z\"\nlast-started = ";
        let once = history(&format!("{started}\"1970-01-01T00:01:00Z\"\n"), Vec::new());
        assert!(once.is_known_at(None, 0) && !once.restarted_between(None, 0, 999_000));
        let twice = format!("{started}\"1970-01-01T00:02:00Z\"\n");
        let unknown = history(&twice, Vec::new());
        assert!(!unknown.is_known_at(None, 120_999) && unknown.is_known_at(None, 121_000));
        assert!(unknown.restarted_between(None, 100_000, 110_000));
        assert!(!unknown.restarted_between(None, 121_000, 130_000));
        let recorded = history(&twice, vec![row(60_500, None, "{}", false)]);
        assert!(recorded.is_known_at(None, 60_500) && !recorded.is_known_at(None, 60_499));
        let reread = history("", vec![row(60_000, None, "", true)]);
        assert!(reread.is_known_at(None, 61_000) && !reread.is_known_at(None, 60_000));
        // Settings recorded by one worker don't apply to another worker.
        let of_worker = history(&twice, vec![row(60_500, Some("w1"), "{}", false)]);
        assert!(of_worker.is_known_at(Some("w1"), 60_500));
        assert!(!of_worker.is_known_at(None, 60_500) && of_worker.is_any_known_at(60_500));
    }

    #[test]
    fn recorded_settings_that_can_not_be_read_are_errors() {
        let rows = vec![row(1, None, r#"{"politeness": {"delay": 5}}"#, false)];
        let error = SettingsHistory::of("", &OperatorDelayLog::of(rows)).unwrap_err();
        let expected = "settings recorded in state/delays.jsonl: `5` is not a duration";
        assert_eq!(error, expected);
    }
}
