//! Rewrites the row files of a crawl without the erased pages and hosts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crawl_archive::rows::{
    DelayRow, ExcludedRow, ExtractRow, LinkRow, PageRow, PendingOriginRow, RandomWalkStep,
    ReplayOrderRow, RequestRow, RulesRecheckRow,
};
use crawl_archive::{
    RemovalSelection, RewrittenArchive, RowRewriteCounts, RowRewriteDecision, rewrite_rows,
};
use crawl_weburl::HostKey;
use serde_json::Value;

use super::{ErasedRecordCounts, ErasureProgress};
use crate::error::EngineError;
use crate::state::crawl_directory::WALK;
use crate::state::excluded_rows_of_last_run::{EXCLUDED, LAST_RUN_ROWS};
use crate::state::extracted_field_files::EXTRACTS;
use crate::state::replay_order_log::ORDER;

/// A row file in the crawl directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowFileKind {
    Pages,
    Requests,
    Excluded,
    /// Copied rows of `excluded.jsonl`, left by a run that was killed before it listed the URLs
    /// again.
    ExcludedOfLastRun,
    Links,
    Extracts,
    Walk,
    Delays,
    Order,
    Recheck,
    Waiting,
}

/// All row files. The file of pending URLs is last, because it contains the number of URLs that
/// remain pending.
pub(super) const ROW_FILES: [RowFileKind; 11] = [
    RowFileKind::Pages,
    RowFileKind::Requests,
    RowFileKind::Excluded,
    RowFileKind::ExcludedOfLastRun,
    RowFileKind::Links,
    RowFileKind::Extracts,
    RowFileKind::Walk,
    RowFileKind::Delays,
    RowFileKind::Order,
    RowFileKind::Recheck,
    RowFileKind::Waiting,
];

impl RowFileKind {
    /// Returns the file's path within the crawl directory.
    pub(super) fn name(self) -> &'static str {
        match self {
            RowFileKind::Pages => "pages.jsonl",
            RowFileKind::Requests => "requests.jsonl",
            RowFileKind::Excluded => EXCLUDED,
            RowFileKind::ExcludedOfLastRun => LAST_RUN_ROWS,
            RowFileKind::Links => "links.jsonl",
            RowFileKind::Extracts => EXTRACTS,
            RowFileKind::Walk => WALK,
            RowFileKind::Delays => "state/delays.jsonl",
            RowFileKind::Order => ORDER,
            RowFileKind::Recheck => "recheck.jsonl",
            RowFileKind::Waiting => "waiting.jsonl",
        }
    }
}

/// Writes a row file without the erased rows into the folder `to`, and counts the changes. Only
/// counts if `to` is `None`. Writes nothing if no row changes. Returns the committed length of the
/// resulting file.
pub(super) fn rewrite_file(
    kind: RowFileKind,
    dir: &Path,
    to: Option<&Path>,
    removal: &RemovalSelection,
    archive: &RewrittenArchive,
    marks: &BTreeMap<String, u64>,
    counts: &mut ErasureProgress,
) -> Result<u64, EngineError> {
    let name = kind.name();
    let from = dir.join(name);
    let mark = marks.get(name).copied();
    let path = to.map(|to| to.join(name));
    if let Some(folder) = path.as_deref().and_then(Path::parent) {
        super::make_folder(folder)?;
    }
    let to = path.as_deref();
    let pending = &counts.pending;
    let rewritten = match kind {
        RowFileKind::Pages => rewrite_rows(&from, to, mark, |row, is_committed| {
            page(row, is_committed, removal, archive)
        }),
        RowFileKind::Requests => rewrite_rows(&from, to, None, |row, _| request(row, removal)),
        RowFileKind::Excluded | RowFileKind::ExcludedOfLastRun => {
            rewrite_rows(&from, to, mark, |row, _| excluded(row, removal))
        }
        RowFileKind::Links => rewrite_rows(&from, to, mark, |row: &mut LinkRow, is_committed| {
            let is_out = removal.holds_text(&row.from) || removal.holds_text(&row.to);
            keep_unless(is_out || !is_committed)
        }),
        RowFileKind::Extracts => rewrite_rows(&from, to, mark, |row, is_committed| {
            extract(row, is_committed, removal)
        }),
        RowFileKind::Walk => rewrite_rows(&from, to, mark, |row, is_committed| {
            step(row, is_committed, removal)
        }),
        RowFileKind::Delays => rewrite_rows(&from, to, None, |row, _| delay(row, removal)),
        // Drop the whole replay order log (`state/order.jsonl`), because it contains host names.
        // A replay could not use the log anyway: it refers to requests by number, and the rows of
        // the erased pages' requests are gone.
        RowFileKind::Order => rewrite_rows(&from, to, None, |_: &mut ReplayOrderRow, _| {
            RowRewriteDecision::Drop
        }),
        RowFileKind::Recheck => rewrite_rows(&from, to, None, |row: &mut RulesRecheckRow, _| {
            let mut names = [&row.url, &row.origin].into_iter().flatten();
            keep_unless(names.any(|name| removal.holds_text(name)))
        }),
        RowFileKind::Waiting => {
            rewrite_rows(&from, to, None, |row, _| waiting(row, removal, pending))
        }
    };
    let rewritten = rewritten.map_err(EngineError::disk(&from))?;
    let is_changed = rewritten
        != RowRewriteCounts {
            committed: rewritten.committed,
            ..RowRewriteCounts::default()
        };
    match (is_changed, to) {
        (true, Some(_)) => counts.swap.replace.push(name.to_owned()),
        (false, Some(to)) if to.exists() => fs::remove_file(to).map_err(EngineError::disk(to))?,
        _ => {}
    }
    let done = &mut counts.done;
    count_dropped(done, kind, rewritten.dropped);
    done.changed += rewritten.cleared;
    Ok(match is_changed {
        true => rewritten.committed,
        false => mark.unwrap_or_default(),
    })
}

fn count_dropped(done: &mut ErasedRecordCounts, kind: RowFileKind, dropped: u64) {
    match kind {
        RowFileKind::Pages => done.pages = dropped,
        RowFileKind::Requests => done.requests = dropped,
        RowFileKind::Excluded => done.excluded = dropped,
        RowFileKind::Links => done.links = dropped,
        RowFileKind::Extracts => done.extracts = dropped,
        RowFileKind::ExcludedOfLastRun
        | RowFileKind::Walk
        | RowFileKind::Delays
        | RowFileKind::Order
        | RowFileKind::Recheck
        | RowFileKind::Waiting => {}
    }
}

/// Drops the row of a random-walk step from or to an erased page. The remaining steps keep their
/// numbers.
fn step(
    row: &mut RandomWalkStep,
    is_committed: bool,
    removal: &RemovalSelection,
) -> RowRewriteDecision {
    let mut names = std::iter::once(&row.url).chain(&row.from);
    keep_unless(names.any(|name| removal.holds_text(name)) || !is_committed)
}

fn keep_unless(is_out: bool) -> RowRewriteDecision {
    match is_out {
        true => RowRewriteDecision::Drop,
        false => RowRewriteDecision::Keep,
    }
}

fn delay(row: &mut DelayRow, removal: &RemovalSelection) -> RowRewriteDecision {
    let is_out = |host: &str| is_host(removal, host);
    if row.host.as_deref().is_some_and(is_out) {
        return RowRewriteDecision::Drop;
    }
    let before = row.clone();
    if let Some(reread) = &mut row.reread {
        for rules in [&mut reread.added, &mut reread.removed] {
            rules.retain(|rule| !rule.strip_prefix("exclude-host ").is_some_and(is_out));
        }
    }
    for (kind, table) in row.settings.iter_mut().flatten() {
        let Value::Object(tables) = table else {
            continue;
        };
        if kind == "site" {
            tables.retain(|name, _| !is_out(name));
        }
        let groups = tables.values_mut();
        for hosts in groups.filter_map(|group| group.get_mut("hosts")?.as_array_mut()) {
            hosts.retain(|host| !host.as_str().is_some_and(is_out));
        }
    }
    match *row == before {
        true => RowRewriteDecision::Keep,
        false => RowRewriteDecision::Clear,
    }
}

fn is_host(removal: &RemovalSelection, host: &str) -> bool {
    HostKey::parse(host).is_ok_and(|host| removal.holds_host(&host))
}

fn page(
    row: &mut PageRow,
    is_committed: bool,
    removal: &RemovalSelection,
    archive: &RewrittenArchive,
) -> RowRewriteDecision {
    // Drop uncommitted rows too: their pages are fetched again.
    if !is_committed || removal.holds_text(&row.url) {
        return RowRewriteDecision::Drop;
    }
    let mut is_cleared = false;
    for url in [&mut row.via, &mut row.canonical] {
        is_cleared |= removal.clear(url);
    }
    is_cleared |= row.clear_redirect(|url| removal.holds_text(url));
    for text in [&mut row.indexed, &mut row.error].into_iter().flatten() {
        is_cleared |= removal.clear_reason(text);
    }
    let place = row.warc.as_ref().map(|place| archive.place(place));
    let is_moved = place != row.warc;
    row.warc = place;
    match (is_cleared, is_moved) {
        (true, _) => RowRewriteDecision::Clear,
        (false, true) => RowRewriteDecision::Move,
        (false, false) => RowRewriteDecision::Keep,
    }
}

fn request(row: &mut RequestRow, removal: &RemovalSelection) -> RowRewriteDecision {
    if removal.holds_text(&row.url) || is_host(removal, &row.host) {
        return RowRewriteDecision::Drop;
    }
    match removal.clear(&mut row.via) {
        true => RowRewriteDecision::Clear,
        false => RowRewriteDecision::Keep,
    }
}

/// Drops the row of an erased page. In rows of other pages, clears the values that mention an
/// erased page or host.
fn extract(
    row: &mut ExtractRow,
    is_committed: bool,
    removal: &RemovalSelection,
) -> RowRewriteDecision {
    if !is_committed || removal.holds_text(&row.url) {
        return RowRewriteDecision::Drop;
    }
    let mut is_cleared = false;
    for value in row.fields.values_mut() {
        is_cleared |= clear_value(value, removal);
    }
    let failed = row.failed.len();
    row.failed.retain(|_, why| !removal.is_named_in(why));
    match is_cleared || row.failed.len() < failed {
        true => RowRewriteDecision::Clear,
        false => RowRewriteDecision::Keep,
    }
}

fn clear_value(value: &mut Value, removal: &RemovalSelection) -> bool {
    match value {
        Value::String(text) if removal.holds_text(text) || removal.is_named_in(text) => {
            *value = Value::Null;
            true
        }
        Value::Array(items) => {
            let clear = |cleared, item| clear_value(item, removal) || cleared;
            items.iter_mut().fold(false, clear)
        }
        Value::Object(fields) => {
            let clear = |cleared, item| clear_value(item, removal) || cleared;
            fields.values_mut().fold(false, clear)
        }
        _ => false,
    }
}

fn excluded(row: &mut ExcludedRow, removal: &RemovalSelection) -> RowRewriteDecision {
    if removal.holds_text(&row.url) {
        return RowRewriteDecision::Drop;
    }
    let is_cleared = removal.clear(&mut row.found_on);
    match removal.clear_text(&mut row.rule) || is_cleared {
        true => RowRewriteDecision::Clear,
        false => RowRewriteDecision::Keep,
    }
}

/// Subtracts the erased URLs from a row's number of pending URLs, and clears the texts and listed
/// URLs that name an erased page or host.
fn waiting(
    row: &mut PendingOriginRow,
    removal: &RemovalSelection,
    pending: &BTreeMap<String, u64>,
) -> RowRewriteDecision {
    let erased = match &row.origin {
        None => pending.values().sum(),
        Some(origin) if removal.holds_text(origin) => return RowRewriteDecision::Drop,
        Some(origin) => pending.get(origin).copied().unwrap_or_default(),
    };
    let before = row.clone();
    row.urls = row.urls.saturating_sub(erased);
    if erased > 0 && row.urls == 0 && row.origin.is_some() {
        return RowRewriteDecision::Drop;
    }
    removal.clear_text(&mut row.detail);
    row.listed.retain(|listed| !removal.holds_text(&listed.url));
    for listed in &mut row.listed {
        removal.clear(&mut listed.found_on);
    }
    match *row == before {
        true => RowRewriteDecision::Keep,
        false => RowRewriteDecision::Clear,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crawl_archive::rows::PendingOriginRow;
    use crawl_archive::{RemovalSelection, RowRewriteDecision};
    use crawl_weburl::HostKey;
    use serde_json::json;

    use super::waiting;

    #[test]
    fn a_row_of_pending_urls_keeps_no_erased_name() {
        let mut removal = RemovalSelection::default();
        removal.add_host(HostKey::parse("a.test").unwrap());
        let rewritten = |row: serde_json::Value| {
            let mut row: PendingOriginRow = serde_json::from_value(row).unwrap();
            let pending = BTreeMap::from([("http://a.test".to_owned(), 2)]);
            let decision = waiting(&mut row, &removal, &pending);
            (decision, serde_json::to_value(row).unwrap())
        };
        let budget = "max-pages of [site.\"a.test\"]";
        let row = json!({"origin": null, "urls": 3, "reason": "budget", "detail": budget});
        let cleared = json!({"origin": null, "urls": 1, "reason": "budget", "detail": null});
        assert_eq!(rewritten(row), (RowRewriteDecision::Clear, cleared));
        let row = |found_on: Option<&str>| {
            json!({"origin": "http://b.test", "urls": 1, "reason": "robots", "detail": "DNS",
                "listed": [{"url": "http://b.test/", "found_on": found_on}]})
        };
        let (decision, cleared) = rewritten(row(Some("http://a.test/")));
        assert_eq!((decision, cleared), (RowRewriteDecision::Clear, row(None)));
        let unchanged = row(Some("http://c.test/"));
        let expected = (RowRewriteDecision::Keep, unchanged.clone());
        assert_eq!(rewritten(unchanged), expected);
    }
}
