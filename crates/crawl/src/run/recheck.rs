//! Runs that fetch only the current rules of a crawl's hosts.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::Path;

use crawl_archive::{FilesToRehash, Timestamp, open_regular};
use crawl_engine::{
    Config, EndReason, RunMode, ScopeRules, TrapAvoidance, admit_at_rest, expire_changed_rules,
    last_round,
};
use crawl_records::{RECHECK, RecheckTotals, list_digests, page_urls, write_recheck};
use crawl_scope::ScopeMode;
use tokio::runtime::Runtime;

use super::temporary_folder::TemporaryFolder;
use crate::clock;
use crate::error::engine::of_engine;
use crate::error::records::of_records;
use crate::error::{CommandError, no_threads, unwritable};
use crate::settings::{CheckedSettings, Settings, check};
use crate::terminal::{Terminal, start_log};

/// Number of bytes that a recheck reads from the end of `requests.jsonl`. The latest requests show
/// how long to wait before the next request to each host.
const MAX_REQUESTS_BYTES: u64 = 16 << 20;

/// Fetches the current rules of the hosts of a crawl, and writes to `recheck.jsonl` whether the
/// rules allow the crawl's pages. The crawl is in the output directory of `settings`. `None` if the
/// user ended the run.
pub(crate) fn recheck(settings: &Settings) -> Result<Option<RecheckTotals>, CommandError> {
    let checked = check(settings)?;
    let dir = checked.output.as_path();
    let pages = page_urls(dir).map_err(of_records)?;
    // Fails if the crawl is running, since it already sends requests to these hosts.
    last_round(dir).map_err(|error| of_engine(&error, dir))?;
    let terminal = Terminal::new(settings);
    start_log(settings, &terminal)?;
    let learnt = TemporaryFolder::make("recheck")?;
    let mut origins = BTreeSet::new();
    let pages = pages.map(|page| {
        let page = page.map_err(|why| PageAdmissionError::Command(of_records(why)))?;
        origins.insert(page.origin());
        Ok(page)
    });
    admit_at_rest(learnt.path(), pages).map_err(|why: PageAdmissionError| why.of(learnt.path()))?;
    copy_last_requests(dir, learnt.path())?;
    let at = clock::now().as_microsecond();
    let at = Timestamp::from_micros(u64::try_from(at).unwrap_or_default());
    let runtime = Runtime::new().map_err(|why| no_threads(&why))?;
    let ended = runtime.block_on(run(settings, &checked, &learnt, terminal));
    runtime.shutdown_background();
    if ended? == EndReason::Interrupted {
        return Ok(None);
    }
    let purpose = settings.exclusion.purpose.meaning();
    let purpose = purpose.map(|purpose| purpose.to_string());
    let counts = write_recheck(learnt.path(), dir, at, purpose).map_err(of_records)?;
    expire_changed_rules(dir, learnt.path(), origins.into_iter())
        .map_err(|error| of_engine(&error, dir))?;
    list_digests(dir, FilesToRehash::Named(&[RECHECK])).map_err(of_records)?;
    Ok(Some(counts))
}

/// Fetches the files that decide whether pages may be fetched.
async fn run(
    settings: &Settings,
    checked: &CheckedSettings,
    learnt: &TemporaryFolder,
    terminal: Terminal,
) -> Result<EndReason, CommandError> {
    let config = Config {
        // No seeds are needed here, because they are admitted along with all other pages.
        seeds: Vec::new(),
        extent: RunMode::Rules,
        // Exclude nothing by scope or sample, because all pages of the crawl were in both. Only the
        // rules of their sites matter now.
        scope: ScopeRules {
            mode: ScopeMode::Any,
            ..ScopeRules::default()
        },
        sample: None,
        traps: TrapAvoidance::OFF,
        sitemaps: false,
        ..learnt.config(settings, checked)
    };
    let (summary, rest) = learnt.run(config, terminal).await?;
    rest.keep(settings.politeness.delay.get()).await;
    Ok(summary.ended)
}

/// Copies the end of the request log, from the start of a row. The run reads from it how long to
/// wait before the next request to each host.
fn copy_last_requests(from: &Path, to: &Path) -> Result<(), CommandError> {
    const NAME: &str = "requests.jsonl";
    let copy = || -> io::Result<()> {
        let mut file = match open_regular(&from.join(NAME)) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
            file => file?,
        };
        let begin = file.metadata()?.len().saturating_sub(MAX_REQUESTS_BYTES);
        file.seek(SeekFrom::Start(begin))?;
        let mut rows = BufReader::new(file);
        if begin > 0 {
            rows.skip_until(b'\n')?;
        }
        io::copy(&mut rows, &mut File::create(to.join(NAME))?).map(drop)
    };
    copy().map_err(|why| unwritable(&to.join(NAME), &why))
}

/// Why the pages could not be added to the frontier: an error in the crawl's rows, or in the run's
/// own state.
enum PageAdmissionError {
    Command(CommandError),
    Engine(crawl_engine::EngineError),
}

impl From<crawl_engine::EngineError> for PageAdmissionError {
    fn from(error: crawl_engine::EngineError) -> PageAdmissionError {
        PageAdmissionError::Engine(error)
    }
}

impl PageAdmissionError {
    fn of(self, dir: &Path) -> CommandError {
        match self {
            PageAdmissionError::Command(error) => error,
            PageAdmissionError::Engine(error) => of_engine(&error, dir),
        }
    }
}
