//! `crawl forget`: erases pages and hosts from a crawl.

use std::collections::HashSet;
use std::path::Path;

use crawl_archive::{FilesToRehash, RemovalSelection, Timestamp};
use crawl_engine::{
    ErasedRecordCounts, ForgetRequest, RemovedDerivedFiles, add_page_resources, count_forgotten,
    finish_forget, forget, undo_forget, why_index_is_removed,
};
use crawl_records::{RecordsError, counted, is_ended, list_digests, recheck_rows, requests};
use crawl_weburl::{CanonicalUrl, HostKey, HostPatternMap, canonicalize};

#[cfg(feature = "search")]
use super::index;
use crate::cli::args::ForgetArgs;
#[cfg(feature = "search")]
use crate::cli::args::IndexArgs;
use crate::clock;
use crate::error::engine::of_engine;
use crate::error::records::of_records;
use crate::error::{CommandError, FINISHED, no_crawl, quoted};
use crate::settings::typed_seed::{self, ParsedSeed, is_seed};
use crate::settings::{MarkPurpose, UserFolders, sign, stored_without};
use crate::terminal::{note, print, print_json};

/// The reason recorded in a tombstone if the user gives none.
const REQUESTED: &str = "requested";

const REPORT: &str = "report.json";
const INDEX: &str = "index";
const TOMBSTONES: &str = "tombstones.jsonl";

pub(crate) fn run(args: &ForgetArgs) -> Result<u8, CommandError> {
    let dir = &args.dir;
    if !dir.join("crawl.toml").is_file() {
        return Err(no_crawl(dir));
    }
    if args.finish {
        return finish(dir);
    }
    finish_interrupted_and_rebuild(dir)?;
    let (mut removal, reason) = match &args.what {
        Some(what) => {
            let reason = args.reason.clone();
            let removal = named(what)?;
            for url in redirected_robots_txts(dir)? {
                if removal.holds(&url) && !removal.holds_host(&url.host_key()) {
                    return Err(kept_as_proof(&url));
                }
            }
            (removal, reason.unwrap_or_else(|| REQUESTED.to_owned()))
        }
        None => by_recheck(dir, args.reason.as_deref())?,
    };
    if removal.is_empty() {
        note("nothing to forget: the last recheck excludes no page");
        return Ok(FINISHED);
    }
    let of_dir = |error| of_engine(&error, dir);
    let has_ended = is_ended(dir).map_err(of_records)?;
    let remaining_resources = add_page_resources(dir, &mut removal, has_ended).map_err(of_dir)?;
    if removal.is_named_in(&reason) {
        return Err(CommandError::usage(
            "--reason contains what is to be forgotten, and would be kept in the tombstone",
        )
        .hint("leave the URL and the host out of the reason"));
    }
    let would_go = count_forgotten(dir, &removal).map_err(of_dir)?;
    if would_go.is_nothing() && would_go.tombstones > 0 {
        return Err(nothing_there(args));
    }
    if would_go.is_nothing() {
        note("already forgotten (see tombstones.jsonl)");
        if !args.dry_run {
            make_derived(dir, missing_derived(dir)?)?;
        }
        return show(&would_go, "forgotten", args.json);
    }
    note_remaining_resources(dir, &remaining_resources);
    if args.dry_run {
        if let Some(why) = why_index_is_removed(dir).map_err(of_dir)? {
            note(&index_fate(dir, &why));
        }
        return show(&would_go, "would go", args.json);
    }
    let text = config_text(dir, &removal)?;
    let order = ForgetRequest {
        removal: &removal,
        at: now(),
        reason: &reason,
        config_text: text.as_deref(),
        // Sign the list of files to change, so that the next start can finish the erasure after a
        // crash. If the user's key is unavailable, the list stays unsigned, and the user has to
        // accept it with `--finish`.
        sign: &|list| sign(&UserFolders::of_process(), dir, MarkPurpose::Forget, list).ok(),
    };
    let missing = missing_derived(dir)?;
    let has_index = dir.join(INDEX).is_dir();
    let report = dir.join(REPORT).is_file() || missing.report;
    let forgotten = forget(dir, &order).map_err(of_dir)?;
    // The outdated report and index are already deleted, so a crash before they are rebuilt leaves
    // no forgotten data behind.
    let index = has_index && !dir.join(INDEX).is_dir() || missing.index;
    make_derived(dir, RemovedDerivedFiles { report, index })?;
    show(&forgotten, "forgotten", args.json)
}

/// Finishes an erasure in `dir` that this user began and that was interrupted. Rebuilds the report
/// and the search index if the erasure removed them.
///
/// # Errors
/// The erasure isn't proven to be this user's, or can't be finished.
pub(crate) fn finish_interrupted_and_rebuild(dir: &Path) -> Result<(), CommandError> {
    match crate::run::finish_interrupted(dir)? {
        Some(removed) => make_derived(dir, removed),
        None => Ok(()),
    }
}

/// Runs `crawl forget --finish`. With this flag the user accepts the interrupted command's list of
/// files, so the list's signature isn't checked.
fn finish(dir: &Path) -> Result<u8, CommandError> {
    let of_dir = |error| of_engine(&error, dir);
    let finished = finish_forget(dir, &|_, _| true).map_err(of_dir)?;
    let derived = match finished {
        Some(removed) => removed,
        None if undo_forget(dir).map_err(of_dir)? => {
            note(
                "the erasure was interrupted before it changed anything: its new files were \
                 removed\nhint: run `crawl forget` again",
            );
            return Ok(FINISHED);
        }
        None if dir.join(TOMBSTONES).is_file() => missing_derived(dir)?,
        None => RemovedDerivedFiles::default(),
    };
    if finished.is_none() && derived == RemovedDerivedFiles::default() {
        note("there is no interrupted erasure to finish");
        return Ok(FINISHED);
    }
    make_derived(dir, derived)?;
    note("the interrupted erasure is complete");
    Ok(FINISHED)
}

/// Returns which of the report and the search index are missing, although the crawl is finished.
/// This happens if a process crashed after an erasure had removed them.
fn missing_derived(dir: &Path) -> Result<RemovedDerivedFiles, CommandError> {
    let is_ended = is_ended(dir).map_err(of_records)?;
    Ok(RemovedDerivedFiles {
        report: is_ended && !dir.join(REPORT).is_file(),
        index: is_ended && has_index_on(dir) && !dir.join(INDEX).is_dir(),
    })
}

/// Rebuilds the report and the search index if `derived` names them, and then updates the file
/// digests.
fn make_derived(dir: &Path, derived: RemovedDerivedFiles) -> Result<(), CommandError> {
    if derived.report {
        crawl_records::write_report(dir).map_err(of_records)?;
    }
    if derived.index {
        match dir.join("archive").is_dir() {
            true => build_index(dir)?,
            false => note(
                "the search index was deleted, and can't be rebuilt without an archive\nhint: \
                 continue the crawl with --index off",
            ),
        }
    }
    list_digests(dir, FilesToRehash::All).map_err(of_records)
}

#[cfg(feature = "search")]
fn build_index(dir: &Path) -> Result<(), CommandError> {
    note("the search index is built again from the archive, without pages that the archive lacks");
    let args = IndexArgs {
        index_types: None,
        dir: dir.to_owned(),
        json: false,
    };
    index::run(&args).map(drop)
}

#[cfg(not(feature = "search"))]
fn build_index(dir: &Path) -> Result<(), CommandError> {
    note(&format!(
        "the search index was deleted, and this build can't rebuild it\nhint: run `crawl index {}` \
         in a build with the feature `search`",
        quoted(dir)
    ));
    Ok(())
}

/// Describes what happens to a search index that can't be rewritten.
fn index_fate(dir: &Path, why: &str) -> String {
    let fate = match dir.join("archive").is_dir() {
        true => "would be built again from the archive, without pages that the archive lacks",
        false => "would be deleted, and can't be built again without an archive",
    };
    format!("the search index can't be rewritten, and {fate}: {why}")
}

/// Returns whether the crawl in a directory builds a search index, according to its crawl.toml.
fn has_index_on(dir: &Path) -> bool {
    let stored = crawl_records::stored_settings(dir);
    let output = stored.get("output");
    output
        .and_then(|output| output.get("index"))
        .and_then(toml::Value::as_str)
        == Some("on")
}

fn now() -> Timestamp {
    let now = clock::now().as_microsecond();
    Timestamp::from_micros(u64::try_from(now).unwrap_or_default())
}

/// Parses the page or the host that the user wants to forget.
fn named(what: &str) -> Result<RemovalSelection, CommandError> {
    let mut removal = RemovalSelection::default();
    if what.contains("://") || is_page_of_bare_host(what) {
        let ParsedSeed { url, stand_in, .. } = typed_seed::read_page(what)?;
        // Without a scheme, the page is erased in both schemes.
        for url in [Some(url), stand_in].iter().flatten() {
            if *url == url.origin().robots_url() {
                return Err(kept_as_proof(url));
            }
            removal.add_page(url);
        }
        return Ok(removal);
    }
    // Check the host with `HostPatternMap::insert`, because it rejects a port outside of loopback.
    // `HostKey::parse` drops such a port, so the pages of all ports would be erased.
    let page = typed_seed::read(what).map(|page| page.url.to_string());
    let hint = format!(
        "give a host as in requests.jsonl (on loopback with its port), or a page by its whole URL, \
         such as `{}`",
        page.unwrap_or_else(|_| "https://example.org/page".to_owned())
    );
    let mut table = HostPatternMap::default();
    let checked = table.insert(what, ());
    checked.map_err(|why| CommandError::usage(why.to_string()).hint(hint.clone()))?;
    let host = HostKey::parse(what)
        .map_err(|why| CommandError::usage(format!("unusable host `{what}`: {why}")).hint(hint))?;
    removal.add_host(host);
    Ok(removal)
}

/// Returns the URLs to which robots.txt files redirected and from which the crawl read rules. A
/// single one of these URLs can't be forgotten, because its rules prove why pages were fetched.
fn redirected_robots_txts(dir: &Path) -> Result<HashSet<CanonicalUrl>, CommandError> {
    let mut urls = HashSet::new();
    for row in requests(dir).map_err(of_records)? {
        let row = match row {
            Err(RecordsError::Row { .. }) => continue,
            row => row.map_err(of_records)?,
        };
        if row.robots.is_some_and(|robots| robots.state == "rules")
            && let Ok(url) = canonicalize(None, &row.url)
            && url != url.origin().robots_url()
        {
            urls.insert(url);
        }
    }
    Ok(urls)
}

fn kept_as_proof(url: &CanonicalUrl) -> CommandError {
    let message = format!("`{url}` can't be forgotten alone: it proves why pages were fetched");
    CommandError::usage(message).hint(format!("forget the whole host `{}`", url.host_key()))
}

/// Returns whether an argument without `://` names a page, such as `example.org/page`.
/// `example.org/` does not, because it could mean the whole host or only its home page.
fn is_page_of_bare_host(what: &str) -> bool {
    let path = what.find(['/', '?', '#']).map(|at| &what[at..]);
    is_seed(what) && path.is_some_and(|path| path.len() > 1 && path.starts_with('/'))
}

/// Returns the pages that the last `crawl recheck` found excluded, and the reason for their
/// tombstones.
fn by_recheck(
    dir: &Path,
    reason: Option<&str>,
) -> Result<(RemovalSelection, String), CommandError> {
    let Some(rows) = recheck_rows(dir).map_err(of_records)? else {
        let problem = format!(
            "{} was not rechecked against the current robots.txt rules yet",
            dir.display()
        );
        let hint = format!(
            "`crawl recheck {}` fetches them, and lists the pages they exclude",
            quoted(dir)
        );
        return Err(CommandError::usage(problem).hint(hint));
    };
    let mut removal = RemovalSelection::default();
    let mut day = String::new();
    let robots_targets = redirected_robots_txts(dir)?;
    for row in rows {
        let row = row.map_err(of_records)?;
        day = row.at.rfc3339_millis();
        let url = row.url.as_deref().filter(|_| row.verdict == "excluded");
        if let Some(Ok(url)) = url.map(|url| canonicalize(None, url)) {
            match robots_targets.contains(&url) {
                true => note(&format!(
                    "`{url}` is kept: it proves why pages were fetched"
                )),
                false => removal.add_page(&url),
            }
        }
    }
    // The reason doesn't quote the robots.txt rule, since the rule may contain the path of a
    // forgotten page.
    let reason = match reason {
        Some(reason) => reason.to_owned(),
        None => format!("robots: rules of {day}"),
    };
    Ok((removal, reason))
}

/// Returns the text of crawl.toml without the erased seeds and hosts. `None` if nothing has to be
/// removed.
fn config_text(dir: &Path, removal: &RemovalSelection) -> Result<Option<String>, CommandError> {
    let is_out = |url: &CanonicalUrl| removal.holds(url);
    let is_host_out = |host: &HostKey| removal.holds_host(host);
    stored_without(dir, &is_out, &is_host_out, &UserFolders::of_process())
}

/// Lists resources that remain although erased pages requested them, with the commands that erase
/// them.
fn note_remaining_resources(dir: &Path, resources: &[CanonicalUrl]) {
    if resources.is_empty() {
        return;
    }
    let commands = resources.iter().map(|url| {
        let url = quoted(Path::new(url.as_str()));
        format!("\n  crawl forget {} {url}", quoted(dir))
    });
    note(&format!(
        "other pages may use {} of the erased pages too, so these are kept; to erase them:{}",
        counted(resources.len() as u64, "resource", "resources"),
        commands.collect::<String>()
    ));
}

fn nothing_there(args: &ForgetArgs) -> CommandError {
    let subject = args
        .what
        .as_deref()
        .unwrap_or("the recheck's excluded pages");
    let dir = args.dir.display();
    CommandError::usage(format!("{subject} not found in the crawl in {dir}")).hint(
        "give a page's URL as in pages.jsonl, or a host as in requests.jsonl; to exclude pages not \
         seen yet, crawl with --exclude",
    )
}

fn show(counts: &ErasedRecordCounts, done: &str, as_json: bool) -> Result<u8, CommandError> {
    if as_json {
        return print_json(counts);
    }
    let lines = [
        ("pages", counted(counts.pages, "row", "rows")),
        ("requests", counted(counts.requests, "row", "rows")),
        ("excluded", counted(counts.excluded, "row", "rows")),
        ("links", counted(counts.links, "row", "rows")),
        ("extracts", counted(counts.extracts, "row", "rows")),
        ("archive", counted(counts.records, "record", "records")),
        ("waiting", counted(counts.waiting, "URL", "URLs")),
        (
            "elsewhere",
            counted(
                counts.changed,
                "row or record of another page",
                "rows and records of other pages",
            ),
        ),
        ("tombstones", counted(counts.tombstones, "set", "set")),
    ];
    let text = lines.map(|(name, count)| format!("  {name:<11} {count}\n"));
    print(format!("{done}:\n{}", text.concat()).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn a_host_is_named_alone_and_a_page_with_its_path() {
        for what in [
            "example.org/",
            "example.org?q",
            "example.org#part",
            r"example.org\page",
            "user@example.org",
            "*.example.org",
            "example.org:8443",
        ] {
            let refused = named(what).map(|removal| removal.hosts().clone());
            let error = refused.expect_err(what).to_string();
            assert!(error.contains(&format!("`{what}`")), "{error}");
        }
        for what in ["example.org", "127.0.0.1:8431", "[::1]:8431", "192.0.2.7"] {
            let removal = named(what).unwrap_or_else(|why| panic!("{what}: {why}"));
            let hosts: Vec<_> = removal
                .hosts()
                .iter()
                .map(crawl_weburl::HostKey::as_str)
                .collect();
            assert_eq!(hosts, [what]);
        }
        for (what, expected) in [
            (
                "https://example.org/page",
                &["https://example.org/page"][..],
            ),
            (
                "example.org/page",
                &["http://example.org/page", "https://example.org/page"],
            ),
            ("127.0.0.1:8431/a", &["http://127.0.0.1:8431/a"]),
        ] {
            let page = named(what).unwrap();
            assert!(page.hosts().is_empty());
            let mut pages: Vec<_> = page.pages().collect();
            pages.sort_unstable();
            assert_eq!(pages, expected);
        }
    }
}
