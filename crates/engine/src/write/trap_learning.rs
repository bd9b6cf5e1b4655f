//! Updates the trap detector with each page that the writer settles, in the order of commits.

use crawl_frontier::{Lease, NotFetchedReason, Reason, RequestedState, UrlKind, UrlToAdmit};
use crawl_traps::{AnswerEvidence, PageEvidence, UrlDisposition, is_about_session_ids};
use crawl_weburl::CanonicalUrl;

use crate::messages::page_pipeline_stages::TrapEvidence;
use crate::priority::Priority;
use crate::shared_trap_detector::{SharedTrapDetector, put_aside};

/// What the trap detector concluded from a settled page.
pub(crate) struct TrapConclusion {
    pub(crate) is_barren: bool,
    pub(crate) traps_changed: bool,
    pub(crate) new_words: Option<u32>,
    pub(crate) replaced: Vec<ReplacedLink>,
}

/// A link whose URL was replaced by another spelling.
pub(crate) struct ReplacedLink {
    /// The index of the link.
    pub(crate) at: usize,
    /// The link with its own URL.
    pub(crate) link: UrlToAdmit,
    /// The reason for the replacement.
    pub(crate) exclusion: NotFetchedReason,
}

/// Updates the trap detector with a page, and adjusts the page's links as [`place`] does.
pub(crate) fn weigh(
    shared: &SharedTrapDetector,
    lease: &Lease,
    signal: &TrapEvidence,
    links: &mut [UrlToAdmit],
) -> TrapConclusion {
    let opinion = shared.lock().observe(&visit(lease, signal));
    let replaced = place(shared, opinion.level, links);
    TrapConclusion {
        is_barren: opinion.is_barren,
        traps_changed: opinion.traps_changed,
        new_words: opinion.new_words,
        replaced,
    }
}

/// Adjusts links by what the trap detector knows, and returns the links whose URL was replaced.
///
/// - Lowers the priority of the links if `level` is above 0. The level is the number of consecutive
///   pages with nothing new on the way to the links, including the page that contains them.
/// - Defers links into traps.
/// - Replaces session ids, if URLs with other ids are known to lead to the same page. Other
///   spellings are replaced only when the URL is due.
pub(crate) fn place(
    shared: &SharedTrapDetector,
    level: u8,
    links: &mut [UrlToAdmit],
) -> Vec<ReplacedLink> {
    let mut replaced = Vec::new();
    let traps = shared.lock();
    if level == 0 && traps.knows_of_none() {
        return replaced;
    }
    // Look up the page's own host first, because most links lead to it. The page's host also
    // matters for links to other hosts: if the page is in a trap, all its links may be deferred.
    let is_of_page = links.first().and_then(|link| link.via.as_ref());
    let is_of_page = is_of_page.is_some_and(|via| traps.knows_of(&via.host_key()));
    let mut last: Option<(CanonicalUrl, bool)> = None;
    let pages = links.iter_mut().enumerate();
    for (at, link) in pages.filter(|(_, link)| link.kind == UrlKind::Page) {
        if level > 0 {
            link.priority = link.priority.max(Priority::at_level(level).byte());
        }
        if link.state != RequestedState::Pending {
            continue;
        }
        let is_of_last =
            |last: &&(CanonicalUrl, bool)| last.0.origin_text() == link.url.origin_text();
        let is_known_of = match last.as_ref().filter(is_of_last) {
            Some((_, is_known_of)) => *is_known_of,
            None => {
                let is_known_of = is_of_page || traps.knows_of(&link.url.host_key());
                last = Some((link.url.clone(), is_known_of));
                is_known_of
            }
        };
        if !is_known_of {
            continue;
        }
        let via = link.via.as_ref();
        match traps.standing(&link.url, via, Priority::of_link(link).level()) {
            UrlDisposition::SameAs(url, rule)
                if link.redirects == 0 && is_about_session_ids(&rule) =>
            {
                replaced.push(ReplacedLink {
                    at,
                    link: link.clone(),
                    exclusion: put_aside(Reason::Duplicate, rule),
                });
                link.url = url;
            }
            UrlDisposition::Defer(rule) if !link.is_seed => {
                link.state = RequestedState::Deferred(put_aside(Reason::Trap, rule));
            }
            _ => {}
        }
    }
    replaced
}

/// Counts the URLs on the same host that were first found on this page, which has nothing new.
pub(crate) fn record_children<'a>(
    shared: &SharedTrapDetector,
    lease: &Lease,
    signal: &TrapEvidence,
    new: impl Iterator<Item = &'a CanonicalUrl>,
) {
    shared.lock().record_children(&visit(lease, signal), new);
}

fn visit<'a>(lease: &'a Lease, signal: &'a TrapEvidence) -> PageEvidence<'a> {
    PageEvidence {
        url: &lease.url,
        level: Priority::of(lease).level(),
        answer: match signal {
            TrapEvidence::Text(gist) => AnswerEvidence::Text(gist),
            // A redirect that was not followed is evidence of a trap only after several redirects,
            // because a low `--max-redirects` also cuts harmless chains of one or two redirects.
            TrapEvidence::CutRedirect(to) if lease.redirects > 1 => AnswerEvidence::CutRedirect(to),
            TrapEvidence::Other => AnswerEvidence::Other,
            TrapEvidence::Redirect(_)
            | TrapEvidence::CutRedirect(_)
            | TrapEvidence::CheckedRedirect(_)
            | TrapEvidence::Nothing => AnswerEvidence::Nothing,
        },
    }
}
