//! URLs as the frontier takes them, other than by a link of a page.

use crawl_frontier::{Admission, Exclusion, Lease, NewState, Reason, UrlKind};
use crawl_scope::{Scope, ScopeVerdict};
use crawl_weburl::CanonicalUrl;

use crate::priority::Priority;

/// A seed, as the frontier takes it.
pub(crate) fn seed_admission(url: &CanonicalUrl, scope: &Scope) -> Admission {
    let mut seed = Admission::seed(url.clone());
    if let ScopeVerdict::Out { rule, .. } = scope.judge(url, 0) {
        seed.state = NewState::Excluded(Exclusion {
            rule: Some(rule),
            ..Exclusion::of(Reason::Scope)
        });
    }
    seed
}

/// A seed that is a sitemap.
pub(crate) fn seed_sitemap_admission(url: &CanonicalUrl, scope: &Scope) -> Admission {
    Admission {
        priority: Priority::SITEMAP.byte(),
        kind: UrlKind::Sitemap,
        ..seed_admission(url, scope)
    }
}

/// A sitemap that robots.txt names.
pub(crate) fn sitemap_admission(url: CanonicalUrl, robots: &CanonicalUrl) -> Admission {
    Admission {
        priority: Priority::SITEMAP.byte(),
        kind: UrlKind::Sitemap,
        ..Admission::link(url, 0, robots.clone())
    }
}

/// The sitemap at the place where one is looked for when none is named.
pub(crate) fn sitemap_guess(url: CanonicalUrl, robots: &CanonicalUrl) -> Admission {
    Admission {
        priority: Priority::GUESSED_SITEMAP.byte(),
        ..sitemap_admission(url, robots)
    }
}

/// The admission that takes a leased URL back at another place, or under another name.
pub(crate) fn admission_of(lease: &Lease, url: CanonicalUrl, priority: Priority) -> Admission {
    Admission {
        url,
        depth: lease.depth,
        hops_off: lease.hops_off,
        redirects: lease.redirects,
        via: lease.via.clone(),
        priority: priority.byte(),
        state: NewState::Pending,
        is_seed: false,
        kind: lease.kind,
    }
}
