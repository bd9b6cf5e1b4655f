//! Checks the pages that scripts build, and what they requested.

use std::collections::BTreeMap;

use crawl_archive::rows::PageRow;
use crawl_testweb::LogEntry;

use super::checked_counts_and_breaches::BrokenRules;
use super::random_web::{RESOURCES_OF_PAGE, RandomWeb, UNRENDERED, settles};

/// Checks that each page that scripts build was rendered with all its resources. Returns the number
/// of rendered pages.
pub(super) fn pages(web: &RandomWeb, pages: &[PageRow], breaches: &mut BrokenRules) -> u64 {
    let mut count = 0;
    for page in pages.iter().filter(|page| web.built.contains(&page.url)) {
        // Skip a page that was given up because it was being read at several kills.
        if page.error.as_deref() == Some("reader_killed") {
            continue;
        }
        let url = &page.url;
        let Some(row) = &page.render else {
            breaches.add(format!("{url} was not rendered"));
            continue;
        };
        if row.error.is_some() || row.dom_digest.is_none() {
            breaches.add(format!("{url} was not rendered: {row:?}"));
        } else if page
            .title
            .as_deref()
            .is_none_or(|title| title == UNRENDERED)
        {
            breaches.add(format!("{url} has the title of the page as it was sent"));
        }
        // One resource is disallowed by robots.txt, so it is refused.
        if (row.requests, row.refused) != (RESOURCES_OF_PAGE, 1) {
            breaches.add(format!(
                "{url} has other resources than its script: {row:?}"
            ));
        }
        count += 1;
    }
    count
}

/// Checks that no run fetched a resource twice: no resource has more answers than the number of
/// starts.
pub(super) fn resources(
    web: &RandomWeb,
    log: &[LogEntry],
    starts: usize,
    breaches: &mut BrokenRules,
) {
    let mut answers: BTreeMap<String, usize> = BTreeMap::new();
    for entry in log {
        let url = web.web.url(entry.host, &entry.path);
        if web.resources.contains(&url) && entry.status.is_some_and(settles) {
            *answers.entry(url).or_default() += 1;
        }
    }
    for (url, count) in answers {
        if count > starts {
            breaches.add(format!("{url} was fetched {count} times in {starts} runs"));
        }
    }
}
