//! The scope of a run: what it fetches now, which may be less than when a URL was admitted.

use std::collections::BTreeSet;
use std::sync::Arc;

use crawl_frontier::{Exclusion, Lease, Reason, UrlKind};
use crawl_scope::{BadScopePattern, OutReason, Scope, ScopeVerdict};
use crawl_weburl::{CanonicalUrl, HostKey, HostTable, Origin};

use crate::config::Resources;

/// Judges URLs and hosts by the scope in force.
///
/// Events that change the scope: [`resume`](Self::resume) before the first lease,
/// [`set_exclusions`](Self::set_exclusions), [`add_target`](Self::add_target) and
/// [`replace`](Self::replace) at any time. An origin whose robots.txt is not fetched because its host
/// [`is_left_out`](Self::is_left_out) is reported with [`leave_out`](Self::leave_out); after a change of
/// the exclusions the caller fetches those of [`take_left_out`](Self::take_left_out).
#[derive(Debug)]
pub(super) struct RunScope {
    current: Arc<Scope>,
    resources: Resources,
    /// Whether pending URLs may be out of scope, as they were admitted by another one.
    judges_again: bool,
    /// Origins of excluded hosts whose robots.txt is not fetched.
    left_out: BTreeSet<Origin>,
}

impl RunScope {
    pub(super) fn new(scope: Scope, resources: Resources) -> RunScope {
        RunScope {
            current: Arc::new(scope),
            resources,
            judges_again: false,
            left_out: BTreeSet::new(),
        }
    }

    /// Returns the scope in force, to judge links by.
    pub(super) fn current(&self) -> &Arc<Scope> {
        &self.current
    }

    /// URLs that earlier runs left pending may be out of scope.
    pub(super) fn resume(&mut self) {
        self.judges_again = true;
    }

    /// Replaces the exclusions.
    ///
    /// # Errors
    /// A pattern that can't be compiled. The scope is then as it was.
    pub(super) fn set_exclusions(
        &mut self,
        include: &[String],
        exclude: &[String],
        hosts: HostTable<()>,
    ) -> Result<(), BadScopePattern> {
        Arc::make_mut(&mut self.current).set_exclusions(include, exclude, hosts)?;
        self.judges_again = true;
        Ok(())
    }

    /// A seed redirects to a target, whose host joins the scope.
    pub(super) fn add_target(&mut self, seed: &CanonicalUrl, target: &CanonicalUrl) {
        Arc::make_mut(&mut self.current).add_target(seed, target);
    }

    /// Replaces the scope by one with another seed.
    pub(super) fn replace(&mut self, scope: Scope) {
        self.current = Arc::new(scope);
    }

    /// Returns whether pending URLs may be out of scope.
    #[cfg(test)]
    pub(super) fn judges_again(&self) -> bool {
        self.judges_again
    }

    /// Returns whether a host with pending URLs is excluded.
    pub(super) fn is_left_out(&self, host: &HostKey) -> bool {
        self.judges_again && self.current.excluded_host(host).is_some()
    }

    /// Notes an origin whose robots.txt is not fetched, as its host is excluded.
    pub(super) fn leave_out(&mut self, origin: &Origin) {
        self.left_out.insert(origin.clone());
    }

    /// Takes the origins whose robots.txt was not fetched.
    pub(super) fn take_left_out(&mut self) -> BTreeSet<Origin> {
        std::mem::take(&mut self.left_out)
    }

    /// Returns the label of the seed whose area contains a URL.
    pub(super) fn label(&self, url: &CanonicalUrl) -> Option<Arc<str>> {
        self.current.terms(url)?.label.clone()
    }

    /// Judges a lease by the scope in force: an earlier one may have been wider. `None` if the URL may
    /// be fetched.
    pub(super) fn out_of_scope(&self, lease: &Lease) -> Option<Exclusion> {
        if !self.judges_again {
            return None;
        }
        if lease.is_seed {
            let rule = self.current.excluded(&lease.url)?.clone();
            return Some(Exclusion {
                rule: Some(rule),
                ..Exclusion::of(Reason::Scope)
            });
        }
        let host = lease.url.host_key();
        if lease.kind == UrlKind::Sitemap && self.may_read_sitemap(&lease.url, &host) {
            return None;
        }
        let is_exempt = lease.kind == UrlKind::Resource
            && self.resources == Resources::All
            && self.current.excluded(&lease.url).is_none();
        match (self.current).judge_at(&lease.url, lease.depth, lease.hops_off) {
            _ if is_exempt => None,
            ScopeVerdict::Out {
                reason: OutReason::Scope,
                rule,
            } => Some(Exclusion {
                rule: Some(rule),
                ..Exclusion::of(Reason::Scope)
            }),
            // A later run may go deeper, but would not reconsider a settled URL.
            _ => None,
        }
    }

    /// Returns whether a sitemap that a host names is read: on the same host anywhere unless excluded,
    /// elsewhere in scope.
    pub(super) fn may_read_sitemap(&self, url: &CanonicalUrl, host: &HostKey) -> bool {
        let scope = &self.current;
        match url.host_key() == *host {
            // The sitemaps of a host off the scope would lead to all of it.
            true => {
                let is_off = scope.hops_off() > 0 && !scope.holds_some_of_host(url);
                !is_off && scope.excluded(url).is_none()
            }
            false => scope.judge(url, 0) == ScopeVerdict::In,
        }
    }
}

#[cfg(test)]
mod tests {
    use crawl_frontier::{Admission, MemoryFrontier, Reason, UrlKind};
    use crawl_scope::{Scope, ScopeMode};
    use crawl_weburl::{CanonicalUrl, HostKey, HostTable, Origin, canonicalize};

    use super::super::by_itself::leased;
    use super::RunScope;
    use crate::config::Resources;

    fn url(url: &str) -> CanonicalUrl {
        canonicalize(None, url).unwrap()
    }

    #[test]
    fn ours_what_waits_is_judged_by_the_scope_of_a_run_that_goes_on() {
        let seed = canonicalize(None, "http://a.example/").unwrap();
        let mut scope = Scope::new(ScopeMode::Host, &[], &["/x".to_owned()], Some(1)).unwrap();
        scope.add_seed(&seed);
        let (page, sitemap, part) = (UrlKind::Page, UrlKind::Sitemap, UrlKind::Resource);
        let all = Resources::All;
        for (host, path, kind, resources, is_out) in [
            ("a", "/page", page, all, false),
            ("a", "/x", page, all, true),
            ("b", "/page", page, all, true),
            ("b", "/map", sitemap, all, false),
            ("b", "/x", sitemap, all, true),
            ("b", "/part", part, all, false),
            ("b", "/part", part, Resources::Own, true),
            ("b", "/x", part, all, true),
        ] {
            let shown = format!("{host} {path} {kind:?} {resources:?}");
            let mut run = RunScope::new(scope.clone(), resources);
            let url = canonicalize(None, &format!("http://{host}.example{path}")).unwrap();
            // All are too deep, which settles nothing.
            let admission = Admission {
                kind,
                ..Admission::link(url, 5, seed.clone())
            };
            let lease = leased(&MemoryFrontier::new(), admission);
            assert_eq!(run.out_of_scope(&lease), None, "{shown}");
            run.resume();
            let found = run.out_of_scope(&lease);
            let found = found.map(|exclusion| exclusion.reason);
            assert_eq!(found, is_out.then_some(Reason::Scope), "{shown}");
        }
        // A seed is out where it is excluded, and not where it is of another host.
        for (url, is_out) in [("http://b.example/", false), ("http://b.example/x", true)] {
            let mut run = RunScope::new(scope.clone(), all);
            run.resume();
            let admission = Admission::seed(canonicalize(None, url).unwrap());
            let lease = leased(&MemoryFrontier::new(), admission);
            assert_eq!(run.out_of_scope(&lease).is_some(), is_out, "{url}");
        }
    }

    #[test]
    fn ours_a_sitemap_of_the_own_host_is_read_unless_excluded_and_of_another_in_scope() {
        let mut scope = Scope::new(ScopeMode::Host, &[], &["/x".to_owned()], None).unwrap();
        scope.add_seed(&url("http://a.example/"));
        let run = RunScope::new(scope, Resources::Off);
        for (sitemap, host, is_read) in [
            ("http://a.example/s", "a.example", true),
            ("http://a.example/x", "a.example", false),
            ("http://b.example/s", "b.example", true),
            ("http://b.example/x", "b.example", false),
            ("http://b.example/s", "a.example", false),
            ("http://a.example/s", "b.example", true),
            ("http://a.example/x", "b.example", false),
        ] {
            let host = HostKey::parse(host).unwrap();
            let found = run.may_read_sitemap(&url(sitemap), &host);
            assert_eq!(found, is_read, "{sitemap} {host}");
        }
    }

    #[test]
    fn ours_a_bad_pattern_leaves_the_exclusions_as_they_were() {
        let mut run = RunScope::new(
            Scope::new(ScopeMode::Any, &[], &[], None).unwrap(),
            Resources::Off,
        );
        let bad = run.set_exclusions(&[], &["(".to_owned()], HostTable::default());
        assert!(bad.is_err() && !run.judges_again());
        let mut hosts = HostTable::default();
        hosts.insert("a.example", ()).unwrap();
        let host = HostKey::parse("a.example").unwrap();
        assert!(!run.is_left_out(&host));
        run.set_exclusions(&[], &[], hosts).unwrap();
        assert!(run.is_left_out(&host));
    }

    #[test]
    fn ours_origins_that_are_left_out_are_returned_once() {
        let mut run = RunScope::new(
            Scope::new(ScopeMode::Any, &[], &[], None).unwrap(),
            Resources::Off,
        );
        let origin = Origin::parse("http://a.example").unwrap();
        run.leave_out(&origin);
        assert!(run.take_left_out().contains(&origin) && run.take_left_out().is_empty());
    }
}
