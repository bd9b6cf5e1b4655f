//! Finds the resources that erased pages requested while they were rendered.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use crawl_archive::rows::{ReplayOrderRow, RequestRow, RunStartEvent};
use crawl_archive::{ReadError, RemovalSelection, RowReader};
use crawl_frontier::Frontier as _;
use crawl_weburl::{CanonicalUrl, canonicalize};
use serde::de::DeserializeOwned;

use crate::error::EngineError;
use crate::state::crawl_directory::open_at_rest;
use crate::state::replay_order_log::ORDER;

/// Adds resources to a removal: those that only its pages requested while they were rendered.
/// Returns the other resources that its pages were the first to request. Such a resource stays
/// because another page requested it too or may have, or because it is a page itself. `has_ended`
/// is false if the last run was killed.
///
/// # Errors
/// [`EngineError`] if `dir` contains no crawl, another process uses it, or rows can't be read.
pub fn add_page_resources(
    dir: &Path,
    removal: &mut RemovalSelection,
    has_ended: bool,
) -> Result<Vec<CanonicalUrl>, EngineError> {
    let mut resources = BTreeSet::new();
    for row in readable_rows::<RequestRow>(&dir.join("requests.jsonl"))? {
        let RequestRow { url, via, .. } = row?;
        let is_of_page = via.is_some_and(|via| removal.holds_text(&via));
        if is_of_page && !removal.holds_text(&url) {
            resources.insert(url);
        }
    }
    if resources.is_empty() {
        return Ok(Vec::new());
    }
    let order = readable_rows(&dir.join(ORDER))?;
    let unshared = unshared(&resources, order, removal)?;
    let frontier = open_at_rest(dir)?;
    let mut remaining = Vec::new();
    for text in &resources {
        let Ok(url) = canonicalize(None, text) else {
            continue;
        };
        match has_ended && unshared.contains(text) && frontier.known(&url)?.is_none() {
            true => removal.add_page(&url),
            false => remaining.push(url),
        }
    }
    Ok(remaining)
}

/// Reads the rows of a file, without lines that are not rows. A missing file has no rows.
fn readable_rows<T: DeserializeOwned>(
    path: &Path,
) -> Result<impl Iterator<Item = Result<T, ReadError>> + use<T>, ReadError> {
    let rows = RowReader::open_if_any(path)?;
    Ok(rows.filter(|row| !matches!(row, Err(ReadError::Row { .. }))))
}

/// Returns the resources that only pages of the removal requested, according to the rows of
/// `state/order.jsonl`. Returns none if rows of earlier runs are missing.
fn unshared(
    resources: &BTreeSet<String>,
    order: impl Iterator<Item = Result<ReplayOrderRow, ReadError>>,
    removal: &RemovalSelection,
) -> Result<BTreeSet<String>, ReadError> {
    // Pages are numbered within a run, so a page is identified by the number of its run and its own
    // number.
    let mut pages_by_resource: BTreeMap<String, BTreeSet<(u32, u64)>> = BTreeMap::new();
    let mut removed_pages = HashSet::new();
    let mut run = 0;
    for row in order {
        let ReplayOrderRow {
            run: start, render, ..
        } = row?;
        if start.as_ref().map_or(run == 0, |start| is_gap(start, run)) {
            return Ok(BTreeSet::new());
        }
        run += u32::from(start.is_some());
        let Some(step) = render else {
            continue;
        };
        let (Some(page), Some(url)) = (step.page, step.url) else {
            continue;
        };
        match step.step.as_str() {
            "wanted" if resources.contains(&url) => {
                pages_by_resource
                    .entry(url)
                    .or_default()
                    .insert((run, page));
            }
            "rendered" if removal.holds_text(&url) => {
                removed_pages.insert((run, page));
            }
            _ => {}
        }
    }
    pages_by_resource.retain(|_, pages| pages.iter().all(|page| removed_pages.contains(page)));
    Ok(pages_by_resource.into_keys().collect())
}

/// Returns whether rows from before the start of this run are missing. `earlier` is the number of
/// earlier runs in the log.
fn is_gap(start: &RunStartEvent, earlier: u32) -> bool {
    let is_first = (start.requests, start.settled) == (0, 0);
    // The log of a killed run may lack its end, because the log is not synced.
    let was_killed = earlier > 0 && start.before.is_none();
    !start.has_render_steps || (earlier == 0 && !is_first) || was_killed
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crawl_archive::RemovalSelection;
    use crawl_archive::rows::{RenderEventRow, ReplayOrderRow, RunStartEvent};
    use crawl_weburl::canonicalize;

    use super::unshared;

    fn run(requests: u64) -> ReplayOrderRow {
        let run = RunStartEvent {
            requests,
            has_render_steps: true,
            before: Some("finished".to_owned()),
            ..RunStartEvent::default()
        };
        ReplayOrderRow {
            run: Some(run),
            ..ReplayOrderRow::default()
        }
    }

    fn render(step: &str, page: u64, path: Option<&str>) -> ReplayOrderRow {
        let render = RenderEventRow {
            step: step.to_owned(),
            page: Some(page),
            url: path.map(|path| format!("http://a.test{path}")),
            ..RenderEventRow::default()
        };
        ReplayOrderRow {
            render: Some(render),
            ..ReplayOrderRow::default()
        }
    }

    /// Returns the paths of the resources that only the pages `/gone` and `/gone-too` requested.
    fn unshared_paths(order: &[ReplayOrderRow]) -> Vec<String> {
        let mut removal = RemovalSelection::default();
        for url in ["http://a.test/gone", "http://a.test/gone-too"] {
            removal.add_page(&canonicalize(None, url).unwrap());
        }
        let resources = ["/app.js", "/own", "/both", "/unlogged"];
        let resources: BTreeSet<String> = resources
            .map(|path| format!("http://a.test{path}"))
            .into_iter()
            .collect();
        let order = order.iter().cloned().map(Ok);
        let unshared = unshared(&resources, order, &removal).unwrap();
        let paths = unshared.iter().map(|url| url.replace("http://a.test", ""));
        paths.collect()
    }

    #[test]
    fn resources_are_unshared_if_the_log_names_all_their_pages() {
        let wanted = |page, path| render("wanted", page, Some(path));
        let mut order = vec![
            run(0),
            wanted(1, "/app.js"),
            wanted(1, "/own"),
            wanted(1, "/both"),
            wanted(1, "/other"),
            wanted(2, "/app.js"),
            wanted(2, "/both"),
            render("rendered", 1, Some("/gone")),
            render("rendered", 2, Some("/gone-too")),
            run(9),
            wanted(1, "/app.js"),
            render("rendered", 1, Some("/kept")),
        ];
        assert_eq!(unshared_paths(&order), ["/both", "/own"]);
        // The run was killed while it rendered a page.
        order.push(wanted(2, "/own"));
        assert_eq!(unshared_paths(&order), ["/both"]);
        // The first run was killed.
        let before = std::mem::take(&mut order[9].run.as_mut().unwrap().before);
        assert_eq!(unshared_paths(&order), Vec::<String>::new());
        order[9].run.as_mut().unwrap().before = before;
        // The rows of the first run are missing.
        assert_eq!(unshared_paths(&order[9..]), Vec::<String>::new());
        assert_eq!(unshared_paths(&order[1..]), Vec::<String>::new());
        order[0].run.as_mut().unwrap().has_render_steps = false;
        assert_eq!(unshared_paths(&order), Vec::<String>::new());
    }
}
