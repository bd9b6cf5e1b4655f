//! Admissions of URLs that are not links of a page: seeds, sitemaps, and leased URLs to queue
//! again.

use crawl_frontier::{Lease, NotFetchedReason, Reason, RequestedState, UrlKind, UrlToAdmit};
use crawl_scope::{Scope, ScopeVerdict};
use crawl_weburl::CanonicalUrl;

use crate::priority::Priority;

pub(crate) fn seed_admission(url: &CanonicalUrl, scope: &Scope) -> UrlToAdmit {
    let mut seed = UrlToAdmit::seed(url.clone());
    if let ScopeVerdict::Out { rule, .. } = scope.judge(url, 0) {
        seed.state = RequestedState::Excluded(NotFetchedReason {
            rule: Some(rule),
            ..NotFetchedReason::of(Reason::Scope)
        });
    }
    seed
}

/// Returns the admission of a seed that is a sitemap.
pub(crate) fn seed_sitemap_admission(url: &CanonicalUrl, scope: &Scope) -> UrlToAdmit {
    UrlToAdmit {
        priority: Priority::SITEMAP.byte(),
        kind: UrlKind::Sitemap,
        ..seed_admission(url, scope)
    }
}

/// Returns the admission of a sitemap that robots.txt lists.
pub(crate) fn sitemap_admission(url: CanonicalUrl, robots: &CanonicalUrl) -> UrlToAdmit {
    UrlToAdmit {
        priority: Priority::SITEMAP.byte(),
        kind: UrlKind::Sitemap,
        ..UrlToAdmit::link(url, 0, robots.clone())
    }
}

/// Returns the admission of a sitemap that was guessed because robots.txt lists none.
pub(crate) fn sitemap_guess(url: CanonicalUrl, robots: &CanonicalUrl) -> UrlToAdmit {
    UrlToAdmit {
        priority: Priority::GUESSED_SITEMAP.byte(),
        ..sitemap_admission(url, robots)
    }
}

/// Returns the admission that puts a leased URL, or another URL in its place, into the queue with
/// this priority.
pub(crate) fn admission_of(lease: &Lease, url: CanonicalUrl, priority: Priority) -> UrlToAdmit {
    UrlToAdmit {
        url,
        depth: lease.depth,
        hops_off: lease.hops_off,
        redirects: lease.redirects,
        via: lease.via.clone(),
        priority: priority.byte(),
        state: RequestedState::Pending,
        is_seed: false,
        kind: lease.kind,
    }
}
