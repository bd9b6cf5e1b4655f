//! Turns broken pages and the links to them into faults.

use crawl_archive::rows::is_obstacle;

use super::unchecked_links::{TOO_MANY_REQUESTS, UncheckedLink};
use super::{FaultKind, PageFault};
use crate::broken_links::{BrokenLinkReport, BrokenPage, LatestRows};
use crate::row_token_wording::{failure_words, status_words};

/// Returns the links to broken pages as faults. Also returns the links whose target gave a response
/// that doesn't show whether the link works. A broken page that nothing links to any more is not a
/// fault, unless it is a seed. Skips links on pages outside the scope, because the owner of the
/// site can't fix these pages.
pub(super) fn broken_faults(
    broken: &BrokenLinkReport,
    latest: &LatestRows,
) -> (Vec<PageFault>, Vec<UncheckedLink>) {
    let (mut faults, mut unchecked) = (Vec::new(), Vec::new());
    for page in &broken.pages {
        if let Some(reason) = undecided(page) {
            let own_links = page
                .links
                .iter()
                .filter(|link| !latest.is_off_scope(&link.page));
            unchecked.extend(own_links.map(|link| UncheckedLink {
                page: link.page.clone(),
                to: link.through.first().unwrap_or(&page.url).clone(),
                reason: reason.to_owned(),
                text: link.text.clone(),
            }));
            continue;
        }
        let fault = PageFault {
            page: None,
            to: page.url.clone(),
            kind: match page.status {
                None => FaultKind::Unreachable,
                Some(_) => FaultKind::Broken,
            },
            why: outcome(page),
            status: page.status,
            error: page.error.clone(),
            text: None,
            element: None,
        };
        for link in &page.links {
            if latest.is_off_scope(&link.page) {
                continue;
            }
            faults.push(PageFault {
                page: Some(link.page.clone()),
                to: link.through.first().unwrap_or(&page.url).clone(),
                why: match link.through.is_empty() {
                    true => fault.why.clone(),
                    false => format!("{}, after a redirect to {}", fault.why, page.url),
                },
                text: link.text.clone(),
                ..fault.clone()
            });
        }
        if page.links.is_empty() && page.via.is_none() {
            faults.push(fault);
        }
    }
    (faults, unchecked)
}

/// Returns the reason why links to a page count neither as working nor as broken: the server
/// refused to answer for now, or served something else in place of the page. `None` if the page is
/// broken.
fn undecided(page: &BrokenPage) -> Option<&str> {
    let obstacle = page.error.as_deref().filter(|error| is_obstacle(error));
    obstacle.or_else(|| (page.status == Some(429)).then_some(TOO_MANY_REQUESTS))
}

/// Describes the response of a broken page, or the failure, in words.
fn outcome(page: &BrokenPage) -> String {
    match (page.status, page.error.as_deref()) {
        (Some(status @ 400..), _) => status_words(status),
        (Some(_), Some(error)) => failure_words(error),
        (Some(status), None) => status_words(status),
        (None, Some(error)) => unreachable_words(error),
        (None, None) => "no answer".to_owned(),
    }
}

/// Describes why a server could not be reached. If robots.txt could not be fetched, describes the
/// failure without mentioning robots.txt, because a failure to connect concerns the whole host.
pub(super) fn unreachable_words(error: &str) -> String {
    match error.split_once("robots.txt: ") {
        Some((_, failure)) => failure_words(failure),
        None => failure_words(error),
    }
}
