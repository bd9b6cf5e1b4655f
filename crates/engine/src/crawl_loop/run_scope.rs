//! The scope of a run. Pending URLs of earlier runs are judged again, since the scope may have been
//! wider when they were admitted.

use std::collections::BTreeSet;
use std::sync::Arc;

use crawl_fetcher::Secrets;
use crawl_frontier::{
    Frontier, KnownState, Lease, NotFetchedReason, Reason, RequestedState, UrlKind, UrlToAdmit,
};
use crawl_policy::AgentRules;
use crawl_scope::{BadScopePattern, OutOfScopeReason, Scope, ScopeVerdict};
use crawl_weburl::{CanonicalUrl, HostKey, HostPatternMap, Origin, canonicalize};

use crate::config::EmbeddedResourcePolicy;
use crate::control::CommandRefusal;
use crate::messages::DurableCommand;
use crate::secret_redaction::SECRET_IN_URL;
use crate::seed_and_sitemap_admissions::{seed_admission, sitemap_admission, sitemap_guess};

/// The name under which out-of-scope sitemaps on another host are counted.
const SITEMAP_ELSEWHERE: &str = "sitemap_elsewhere";

/// Judges URLs and hosts by the scope in force.
///
/// [`resume`](Self::resume) is called before the first lease.
/// [`set_exclusions`](Self::set_exclusions), [`add_target`](Self::add_target) and
/// [`add_seed`](Self::add_seed) may change the scope at any time.
///
/// If the host of an origin [`is_left_out`](Self::is_left_out), the caller does not fetch the
/// origin's robots.txt, and reports the origin with [`leave_out`](Self::leave_out). After a change
/// of the exclusions, the caller fetches robots.txt for each origin that
/// [`take_left_out`](Self::take_left_out) returns. Emits no effects.
#[derive(Debug)]
pub(super) struct RunScope {
    current: Arc<Scope>,
    resources: EmbeddedResourcePolicy,
    /// Whether pending URLs may be out of scope, because they were admitted under another scope.
    judges_again: bool,
    /// Origins whose robots.txt is not fetched because their host is excluded.
    left_out: BTreeSet<Origin>,
}

impl RunScope {
    pub(super) fn new(scope: Scope, resources: EmbeddedResourcePolicy) -> RunScope {
        RunScope {
            current: Arc::new(scope),
            resources,
            judges_again: false,
            left_out: BTreeSet::new(),
        }
    }

    /// Returns the scope in force, which links are judged by.
    pub(super) fn current(&self) -> &Arc<Scope> {
        &self.current
    }

    /// Continues an earlier run, whose pending URLs may be out of scope.
    pub(super) fn resume(&mut self) {
        self.judges_again = true;
    }

    /// Replaces the exclusions.
    ///
    /// # Errors
    /// A pattern that can't be compiled. The scope is then unchanged.
    pub(super) fn set_exclusions(
        &mut self,
        include: &[String],
        exclude: &[String],
        hosts: HostPatternMap<()>,
    ) -> Result<(), BadScopePattern> {
        Arc::make_mut(&mut self.current).set_exclusions(include, exclude, hosts)?;
        self.judges_again = true;
        Ok(())
    }

    /// Adds the host that a seed redirects to.
    pub(super) fn add_target(&mut self, seed: &CanonicalUrl, target: &CanonicalUrl) {
        Arc::make_mut(&mut self.current).add_target(seed, target);
    }

    #[cfg(test)]
    pub(super) fn judges_again(&self) -> bool {
        self.judges_again
    }

    pub(super) fn is_left_out(&self, host: &HostKey) -> bool {
        self.judges_again && self.current.excluded_host(host).is_some()
    }

    /// Notes an origin whose robots.txt is not fetched because its host is excluded.
    pub(super) fn leave_out(&mut self, origin: &Origin) {
        self.left_out.insert(origin.clone());
    }

    /// Takes the origins that [`leave_out`](Self::leave_out) noted.
    pub(super) fn take_left_out(&mut self) -> BTreeSet<Origin> {
        std::mem::take(&mut self.left_out)
    }

    /// Returns the label that a URL gets from the seed whose settings apply to the URL.
    pub(super) fn label(&self, url: &CanonicalUrl) -> Option<Arc<str>> {
        self.current.terms(url)?.label.clone()
    }

    /// Judges a leased URL by the scope in force. Returns why the URL must not be fetched; `None`
    /// if it may be. A URL with [`Reason::Depth`] must be deferred and not settled, because a later
    /// run may go deeper.
    pub(super) fn out_of_scope(&self, lease: &Lease) -> Option<NotFetchedReason> {
        if !self.judges_again {
            return None;
        }
        if lease.is_seed {
            let rule = self.current.excluded(&lease.url)?.clone();
            return Some(NotFetchedReason {
                rule: Some(rule),
                ..NotFetchedReason::of(Reason::Scope)
            });
        }
        let host = lease.url.host_key();
        if lease.kind == UrlKind::Sitemap && self.may_read_sitemap(&lease.url, &host) {
            return None;
        }
        let is_exempt = lease.kind == UrlKind::Resource
            && self.resources == EmbeddedResourcePolicy::All
            && self.current.excluded(&lease.url).is_none();
        match (self.current).judge_at(&lease.url, lease.depth, lease.hops_off) {
            _ if is_exempt => None,
            // A resource that is too deep stays pending. If it were deferred, it would be admitted
            // again as a page.
            ScopeVerdict::Out {
                reason: OutOfScopeReason::Depth,
                ..
            } if lease.kind != UrlKind::Page => None,
            ScopeVerdict::Out { reason, rule } => Some(NotFetchedReason {
                rule: Some(rule),
                ..NotFetchedReason::of(match reason {
                    OutOfScopeReason::Depth => Reason::Depth,
                    _ => Reason::Scope,
                })
            }),
            ScopeVerdict::In => None,
        }
    }

    /// Returns the sitemaps that an origin's robots.txt names, or `/sitemap.xml` if it names none.
    /// Also returns the numbers of sitemaps that are left out, by reason: out-of-scope ones on
    /// other hosts, and sitemaps whose URL contains a secret.
    pub(super) fn sitemaps_of(
        &self,
        of: &Origin,
        robots: &AgentRules,
        secrets: &Secrets,
    ) -> (Vec<UrlToAdmit>, Vec<(&'static str, u64)>) {
        let robots_url = of.robots_url();
        let named = robots.sitemaps();
        let (mut sitemaps, mut with_secret) = (Vec::new(), 0);
        for sitemap in named {
            match canonicalize(Some(&robots_url), sitemap.url.as_ref()) {
                Ok(url) if secrets.are_in_url(&url) => with_secret += 1,
                Ok(url) => sitemaps.push(sitemap_admission(url, &robots_url)),
                Err(_) => {}
            }
        }
        let is_guess = named.is_empty();
        if is_guess {
            sitemaps.push(sitemap_guess(of.url("/sitemap.xml"), &robots_url));
        }
        let host = of.host_key();
        let scope = &self.current;
        let is_off = scope.hops_off() > 0 && !scope.overlaps_host(&robots_url);
        let mut elsewhere = 0;
        for sitemap in &mut sitemaps {
            if self.may_read_sitemap(&sitemap.url, &host) {
                continue;
            }
            // Count these sitemaps, because pages that only they list will be missing from the
            // crawl.
            elsewhere += u64::from(sitemap.url.host_key() != host);
            let rule = match scope.judge(&sitemap.url, 0) {
                ScopeVerdict::Out { rule, .. } => rule,
                ScopeVerdict::In => "hops-off-scope".to_owned(),
            };
            sitemap.state = RequestedState::Excluded(NotFetchedReason {
                rule: Some(rule),
                ..NotFetchedReason::of(Reason::Scope)
            });
        }
        // An out-of-scope `/sitemap.xml` that was only guessed is dropped without a record, since
        // no robots.txt names it.
        let are_recorded = !is_guess && !is_off;
        sitemaps.retain(|sitemap| sitemap.state == RequestedState::Pending || are_recorded);
        let elsewhere = if is_off { 0 } else { elsewhere };
        let mut unusable = vec![(SECRET_IN_URL, with_secret), (SITEMAP_ELSEWHERE, elsewhere)];
        unusable.retain(|(_, count)| *count > 0);
        (sitemaps, unusable)
    }

    /// Adds a seed to the scope, unless its URL was already settled. Returns the command to admit
    /// the seed, for the writer to carry out.
    ///
    /// # Errors
    /// The exclusions exclude the seed.
    pub(super) fn add_seed(
        &mut self,
        url: &CanonicalUrl,
        frontier: &dyn Frontier,
    ) -> Result<DurableCommand, CommandRefusal> {
        let url = url.clone();
        let mut scope = self.current.as_ref().clone();
        scope.add_seed(&url);
        if let ScopeVerdict::Out { rule, .. } = scope.judge(&url, 0) {
            return Err(CommandRefusal::OutOfScope { url, rule });
        }
        let seed = Box::new(seed_admission(&url, &scope));
        let record = frontier.known(&url).ok().flatten();
        let refused = record.and_then(|record| match record.state {
            KnownState::Fetched { .. } | KnownState::Failed { .. } => {
                Some(CommandRefusal::Visited { url })
            }
            KnownState::Excluded(exclusion) => Some(CommandRefusal::Barred {
                url,
                why: exclusion.to_string(),
            }),
            _ => None,
        });
        if refused.is_none() {
            self.current = Arc::new(scope);
        }
        Ok(DurableCommand::Add { seed, refused })
    }

    /// Returns whether to read a sitemap that a host's robots.txt names. A sitemap on the same host
    /// must not be excluded. A sitemap on another host must be in scope.
    pub(super) fn may_read_sitemap(&self, url: &CanonicalUrl, host: &HostKey) -> bool {
        let scope = &self.current;
        match url.host_key() == *host {
            // A sitemap on an out-of-scope host isn't read, since it would lead to all pages of
            // that host.
            true => {
                let is_off = scope.hops_off() > 0 && !scope.overlaps_host(url);
                !is_off && scope.excluded(url).is_none()
            }
            false => scope.judge(url, 0) == ScopeVerdict::In,
        }
    }
}

#[cfg(test)]
mod tests {
    use crawl_frontier::{MemoryFrontier, Reason, UrlKind, UrlToAdmit};
    use crawl_scope::{Scope, ScopeMode};
    use crawl_weburl::{CanonicalUrl, HostKey, HostPatternMap, Origin, canonicalize};

    use super::super::fixtures::leased;
    use super::RunScope;
    use crate::config::EmbeddedResourcePolicy;

    fn url(url: &str) -> CanonicalUrl {
        canonicalize(None, url).unwrap()
    }

    #[test]
    fn pending_urls_are_judged_by_the_scope_in_force() {
        let seed = canonicalize(None, "http://a.example/").unwrap();
        let mut scope = Scope::new(ScopeMode::Host, &[], &["/x".to_owned()], Some(1)).unwrap();
        scope.add_seed(&seed);
        let (page, sitemap, part) = (UrlKind::Page, UrlKind::Sitemap, UrlKind::Resource);
        let (all, own) = (EmbeddedResourcePolicy::All, EmbeddedResourcePolicy::Own);
        let (by_scope, by_depth) = (Some(Reason::Scope), Some(Reason::Depth));
        for (host, path, kind, depth, resources, expected) in [
            ("a", "/page", page, 1, all, None),
            ("a", "/page", page, 2, all, by_depth),
            ("a", "/x", page, 2, all, by_scope),
            ("b", "/page", page, 2, all, by_scope),
            ("a", "/map", sitemap, 2, all, None),
            ("b", "/map", sitemap, 2, all, None),
            ("b", "/x", sitemap, 2, all, by_scope),
            ("b", "/part", part, 2, all, None),
            ("a", "/part", part, 2, own, None),
            ("b", "/part", part, 2, own, by_scope),
            ("b", "/x", part, 2, all, by_scope),
        ] {
            let shown = format!("{host} {path} {kind:?} {depth} {resources:?}");
            let mut run = RunScope::new(scope.clone(), resources);
            let url = canonicalize(None, &format!("http://{host}.example{path}")).unwrap();
            let admission = UrlToAdmit {
                kind,
                ..UrlToAdmit::link(url, depth, seed.clone())
            };
            let lease = leased(&MemoryFrontier::new(), admission);
            assert_eq!(run.out_of_scope(&lease), None, "{shown}");
            run.resume();
            let exclusion = run.out_of_scope(&lease);
            let reason = exclusion.map(|exclusion| exclusion.reason);
            assert_eq!(reason, expected, "{shown}");
        }
        // A seed is out of scope only if it is excluded. Being on another host doesn't matter.
        for (url, is_out) in [("http://b.example/", false), ("http://b.example/x", true)] {
            let mut run = RunScope::new(scope.clone(), all);
            run.resume();
            let admission = UrlToAdmit::seed(canonicalize(None, url).unwrap());
            let lease = leased(&MemoryFrontier::new(), admission);
            assert_eq!(run.out_of_scope(&lease).is_some(), is_out, "{url}");
        }
    }

    #[test]
    fn a_sitemap_is_read_if_its_host_names_it_or_it_is_in_scope() {
        let mut scope = Scope::new(ScopeMode::Host, &[], &["/x".to_owned()], None).unwrap();
        scope.add_seed(&url("http://a.example/"));
        let run = RunScope::new(scope, EmbeddedResourcePolicy::Off);
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
            let may_read = run.may_read_sitemap(&url(sitemap), &host);
            assert_eq!(may_read, is_read, "{sitemap} {host}");
        }
    }

    #[test]
    fn a_bad_pattern_changes_no_exclusions() {
        let mut run = RunScope::new(
            Scope::new(ScopeMode::Any, &[], &[], None).unwrap(),
            EmbeddedResourcePolicy::Off,
        );
        let bad = run.set_exclusions(&[], &["(".to_owned()], HostPatternMap::default());
        assert!(bad.is_err() && !run.judges_again());
        let mut hosts = HostPatternMap::default();
        hosts.insert("a.example", ()).unwrap();
        let host = HostKey::parse("a.example").unwrap();
        assert!(!run.is_left_out(&host));
        run.set_exclusions(&[], &[], hosts).unwrap();
        assert!(run.is_left_out(&host));
    }

    #[test]
    fn origins_that_are_left_out_are_returned_once() {
        let mut run = RunScope::new(
            Scope::new(ScopeMode::Any, &[], &[], None).unwrap(),
            EmbeddedResourcePolicy::Off,
        );
        let origin = Origin::parse("http://a.example").unwrap();
        run.leave_out(&origin);
        assert!(run.take_left_out().contains(&origin) && run.take_left_out().is_empty());
    }
}
