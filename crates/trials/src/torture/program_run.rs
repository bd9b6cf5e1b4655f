//! A run of the program: the process is started, and killed at a random moment unless it ends
//! first.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use crawl_archive::strip_warc_suffix;

use super::leftover_browsers::BrowserProcessGroups;
use super::random::SeededRandom;
use super::random_web::RandomWeb;

/// Maximum time for a process. A process that runs longer is considered stuck.
const PATIENCE: Duration = Duration::from_secs(180);

/// Interval at which to check whether it is time to kill the process.
const LOOK_EVERY: Duration = Duration::from_micros(150);

/// Files whose growth may trigger a kill ([`KillTrigger::Growth`]).
const GROWING: [&str; 6] = [
    "archive",
    "archive/captures.cdxj",
    "pages.jsonl",
    "excluded.jsonl",
    "extracts.jsonl",
    "requests.jsonl",
];

/// The settings file with the rules for fields, next to the crawl.
const RULES_FILE: &str = "rules.toml";

/// A rule that reads every HTML page.
const RULES: &str = "[[extract]]\nname = \"titles\"\nfields = { title = \"title\" }\n";

/// When to kill the process, and whether to kill its browser too.
pub(super) struct KillPlan {
    pub(super) aim: KillTrigger,
    /// Whether to kill the browser too, together with the guardian process that would clean up
    /// after it.
    pub(super) with_browser: bool,
}

/// The event that triggers the kill of the process.
pub(super) enum KillTrigger {
    /// Kill this long after the start, while the program opens existing files.
    Opening(Duration),
    /// Kill this long after the start.
    Time(Duration),
    /// Kill after this many requests.
    Requests(usize),
    /// Kill some time after a file grew for the n-th time.
    Growth {
        file: &'static str,
        times: u64,
        after: Duration,
    },
    /// Kill this long after the program began to write the archive's index, shortly before it ends.
    Ending(Duration),
}

impl KillTrigger {
    pub(super) fn draw(dice: &mut SeededRandom, is_rendering: bool) -> KillTrigger {
        // In a rendering crawl a browser must start first, so allow more time.
        let max_millis = if is_rendering { 4000 } else { 900 };
        match dice.below(30) {
            0..6 => KillTrigger::Opening(dice.millis(150)),
            6..12 => KillTrigger::Time(dice.millis(max_millis)),
            12..17 => KillTrigger::Requests(1 + dice.below(60) as usize),
            17..29 => KillTrigger::Growth {
                file: GROWING[dice.below(GROWING.len() as u64) as usize],
                times: 1 + dice.below(8),
                after: match dice.below(3) {
                    0 => Duration::ZERO,
                    _ => dice.millis(4),
                },
            },
            _ => KillTrigger::Ending(dice.millis(3)),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            KillTrigger::Opening(_) => "while opening",
            KillTrigger::Time(_) => "at some moment",
            KillTrigger::Requests(_) => "after some requests",
            KillTrigger::Growth { .. } => "after a file grew",
            KillTrigger::Ending(_) => "at the end",
        }
    }
}

/// The times just before and just after a kill, in microseconds by the web's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimesAroundKill {
    /// A time shortly before the kill, when the program was still running, in microseconds.
    pub(super) before: u64,
    /// A time shortly after the kill, when the program had ended, in microseconds.
    pub(super) after: u64,
}

/// How a run of the program ended.
pub(super) enum ProgramEnd {
    /// The trial killed the program.
    Killed(TimesAroundKill),
    /// The program ended on its own.
    Finished,
}

/// The result of one run of the program.
pub(super) struct ProgramRunResult {
    pub(super) end: ProgramEnd,
    /// Time from the start until all files were open; `None` if the program was killed before that.
    pub(super) opening: Option<Duration>,
}

/// The command that starts and resumes the crawl.
#[derive(Clone)]
pub(super) struct CrawlCommand {
    program: PathBuf,
    dir: PathBuf,
    /// Whether the crawl uses the settings file [`RULES_FILE`].
    has_rules: bool,
    args: Vec<String>,
    /// Environment variables besides `HOME` and `TMPDIR`.
    variables: Vec<(&'static str, OsString)>,
}

impl CrawlCommand {
    pub(super) fn new(program: &Path, dir: &Path, web: &RandomWeb) -> CrawlCommand {
        let delay = format!("{}ms", web.delay.as_millis());
        let seed = web.web.url(0, "/");
        let mut args: Vec<String> = ["--seed", &seed, "--output", "crawl", "--delay", &delay]
            .map(str::to_owned)
            .into();
        let fixed = "--delay-factor 0 --scope any --allow-private --progress off -q";
        args.extend(fixed.split(' ').map(str::to_owned));
        if web.links {
            args.extend(["--links".to_owned(), "on".to_owned()]);
        }
        if web.index {
            args.extend(["--index".to_owned(), "on".to_owned()]);
        }
        if let Some(mode) = web.render {
            // Set a long timeout, so that no page fails because the machine is slow.
            let rest = "--browser-sandbox off --render-timeout 10m --render";
            args.extend(rest.split(' ').map(str::to_owned));
            args.push(mode.to_owned());
        }
        if web.extracts {
            args.extend(["--config".to_owned(), RULES_FILE.to_owned()]);
        }
        CrawlCommand {
            program: program.to_owned(),
            dir: dir.to_owned(),
            has_rules: web.extracts,
            args,
            variables: Vec::new(),
        }
    }

    /// Returns the same command with a recrawl: once the crawl is done, it visits everything again.
    pub(super) fn recrawling(&self) -> CrawlCommand {
        let mut again = self.clone();
        let more = "--recrawl --revisit-most 0s";
        again.args.extend(more.split(' ').map(str::to_owned));
        again
    }

    /// Returns the same command with a random compression of WARC files.
    pub(super) fn with_random_compression(&self, dice: &mut SeededRandom) -> CrawlCommand {
        let compression = ["gzip", "zstd", "none"][dice.below(3) as usize];
        let mut compressing = self.clone();
        let more = ["--warc-compression", compression].map(str::to_owned);
        compressing.args.extend(more);
        compressing
    }

    /// Returns the same command with more environment variables.
    pub(super) fn with(mut self, variables: &[(&'static str, OsString)]) -> CrawlCommand {
        self.variables.extend_from_slice(variables);
        self
    }

    /// Returns the same command, started by another program such as `strace`, which takes the
    /// command after its own options.
    pub(super) fn started_by(
        &self,
        other: PathBuf,
        options: Vec<String>,
        variable: (&'static str, OsString),
    ) -> CrawlCommand {
        let mut args = options;
        args.push(self.program.display().to_string());
        args.extend_from_slice(&self.args);
        CrawlCommand {
            program: other,
            args,
            variables: vec![variable],
            ..self.clone()
        }
    }

    /// Returns the crawl directory.
    pub(super) fn output(&self) -> PathBuf {
        self.dir.join("crawl")
    }

    /// Returns the folder for temporary files, such as profiles of browsers.
    pub(super) fn temporary(&self) -> PathBuf {
        self.dir.join("tmp")
    }

    /// Returns the command that starts the program, with its output in a file next to the crawl.
    /// Writes the settings file first if there are rules.
    fn command(&self) -> Result<Command> {
        if self.has_rules {
            fs::write(self.dir.join(RULES_FILE), RULES)?;
        }
        let log_file = File::options()
            .create(true)
            .append(true)
            .open(self.dir.join("said.txt"))?;
        fs::create_dir_all(self.temporary())?;
        let mut command = Command::new(&self.program);
        command
            .current_dir(&self.dir)
            .env_clear()
            .env("HOME", self.dir.join("home"))
            .env("TMPDIR", self.temporary())
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::null())
            .stdout(log_file.try_clone()?)
            .stderr(log_file);
        Ok(command)
    }

    /// Starts or resumes the crawl. Waits for its end, or kills it at the moment that `kill` names.
    pub(super) fn live(
        &self,
        web: &RandomWeb,
        kill: Option<&KillPlan>,
    ) -> Result<ProgramRunResult> {
        let mut startup = StartupDetector::new(self.output().join("state/reading"));
        let mut child = self.command()?.args(&self.args).spawn()?;
        let watched = self.watch(&mut child, web, kill, &mut startup);
        if watched.is_err() {
            // This can't fail, because the process is our own child and nothing else waits for it.
            let _ = child.kill();
            let _ = child.wait();
        }
        Ok(ProgramRunResult {
            end: watched?,
            opening: startup.took,
        })
    }

    fn watch(
        &self,
        child: &mut Child,
        web: &RandomWeb,
        kill: Option<&KillPlan>,
        startup: &mut StartupDetector,
    ) -> Result<ProgramEnd> {
        let aim = kill.map(|kill| &kill.aim);
        let started = startup.started;
        let requests_before = web.web.log().len();
        let mut growth = FileGrowth::default();
        loop {
            if let Some(status) = child.try_wait()? {
                return self.finished(status);
            }
            startup.look();
            let now = started.elapsed();
            ensure!(now < PATIENCE, "no end after {} s", now.as_secs());
            let has_come = match aim {
                None => false,
                Some(KillTrigger::Opening(time) | KillTrigger::Time(time)) => now >= *time,
                Some(KillTrigger::Requests(count)) => web
                    .web
                    .wait_for(LOOK_EVERY, |log| log.len() >= requests_before + count),
                Some(KillTrigger::Growth { file, times, after }) => {
                    growth.look(self.bytes(file));
                    growth.times >= *times && wait(*after)
                }
                Some(KillTrigger::Ending(after)) => self.writes_index() && wait(*after),
            };
            if has_come {
                break;
            }
            sleep(LOOK_EVERY);
        }
        let browsers = kill
            .filter(|kill| kill.with_browser)
            .map(|_| BrowserProcessGroups::below(&self.temporary()));
        let before = web.web.now_us();
        child.kill()?;
        if let Some(browsers) = browsers {
            browsers.kill();
        }
        let status = child.wait()?;
        let after = web.web.now_us();
        if web.render.is_some() {
            BrowserProcessGroups::below(&self.temporary()).wait()?;
        }
        match status.signal() {
            Some(9) => Ok(ProgramEnd::Killed(TimesAroundKill { before, after })),
            _ => self.finished(status),
        }
    }

    fn finished(&self, status: ExitStatus) -> Result<ProgramEnd> {
        if status.success() {
            return Ok(ProgramEnd::Finished);
        }
        bail!("the crawl ended with {status}: {}", self.last_words());
    }

    fn last_words(&self) -> String {
        let log_text = fs::read_to_string(self.dir.join("said.txt")).unwrap_or_default();
        let lines: Vec<_> = log_text.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }

    /// Returns the size of a file in bytes, or the total size of the WARC files if `name` is
    /// `archive`. A missing file has 0 bytes.
    fn bytes(&self, name: &str) -> u64 {
        let path = self.output().join(name);
        if name != "archive" {
            return fs::metadata(path).map_or(0, |file| file.len());
        }
        let files = fs::read_dir(path).into_iter().flatten().flatten();
        let warcs =
            files.filter(|file| strip_warc_suffix(&file.file_name().to_string_lossy()).is_some());
        warcs
            .map(|file| file.metadata().map_or(0, |file| file.len()))
            .sum()
    }

    fn writes_index(&self) -> bool {
        let files = fs::read_dir(self.output().join("archive"));
        let mut files = files.into_iter().flatten().flatten();
        files.any(|file| file.file_name().to_string_lossy().contains(".tmp"))
    }

    /// Runs another command of the program on the crawl directory. The command must succeed.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<()> {
        let status = self.command()?.args(arguments).arg("crawl").status()?;
        ensure!(
            status.success(),
            "`crawl {}` ended with {status}: {}",
            arguments.join(" "),
            self.last_words()
        );
        Ok(())
    }

    /// Runs the same command again, to its end.
    pub(super) fn once_more(&self) -> Result<()> {
        let status = self.command()?.args(&self.args).status()?;
        self.finished(status)
            .context("started again after its end")?;
        Ok(())
    }
}

/// Detects when the program has opened all its files: the program recreates its reading journal at
/// that moment.
struct StartupDetector {
    journal: PathBuf,
    before: Option<SystemTime>,
    started: Instant,
    took: Option<Duration>,
}

impl StartupDetector {
    fn new(journal: PathBuf) -> StartupDetector {
        StartupDetector {
            before: modified(&journal),
            journal,
            started: Instant::now(),
            took: None,
        }
    }

    fn look(&mut self) {
        if self.took.is_none() && modified(&self.journal) != self.before {
            self.took = Some(self.started.elapsed());
        }
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|file| file.modified()).ok()
}

#[derive(Default)]
struct FileGrowth {
    bytes: u64,
    times: u64,
}

impl FileGrowth {
    fn look(&mut self, bytes: u64) {
        // A truncated file has not grown.
        self.times += u64::from(bytes > self.bytes);
        self.bytes = bytes;
    }
}

/// Busy-waits, because a sleeping thread would wake up too late after so short a `time`. Always
/// returns true.
fn wait(time: Duration) -> bool {
    let since = Instant::now();
    while since.elapsed() < time {
        std::hint::spin_loop();
    }
    true
}
