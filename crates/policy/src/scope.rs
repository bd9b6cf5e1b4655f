//! The operator's scope: which hosts, which patterns, how deep.

use std::collections::{HashMap, HashSet};

use crawl_weburl::{CanonicalUrl, HostKey, HostTable, Site, canonicalize};
use regex::RegexSet;

use crate::seed_areas::{AreaKind, AreaTaken, SeedAreas, SeedTerms, folder};
use crate::surt_prefix::SurtPrefix;

/// The distance from the seeds that a crawl may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, strum::Display)]
#[non_exhaustive]
#[strum(serialize_all = "lowercase")]
pub enum ScopeMode {
    /// The hosts of the seeds; http and https alike, on loopback the port counts.
    #[default]
    Host,
    /// The registrable domains of the seeds.
    Domain,
    /// The seeds' folders: their host, and their path up to its last `/`.
    Prefix,
    /// Everywhere.
    Any,
}

impl ScopeMode {
    /// The area of a seed that says nothing of it.
    #[must_use]
    pub fn area(self) -> AreaKind {
        match self {
            ScopeMode::Domain => AreaKind::Domain,
            ScopeMode::Prefix => AreaKind::Prefix,
            ScopeMode::Host | ScopeMode::Any => AreaKind::Host,
        }
    }
}

/// A pattern that is no regular expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is no regular expression: {why}")]
pub struct BadScopePattern {
    /// The pattern as given.
    pub pattern: String,
    /// The defect.
    pub why: String,
}

/// The operator's scope, grown by the seeds.
#[derive(Clone, Debug)]
pub struct Scope {
    mode: ScopeMode,
    include: Patterns,
    exclude: Patterns,
    max_depth: Option<u32>,
    /// Links that may be followed outside, from a page within.
    hops_off: u8,
    seeds: HashSet<CanonicalUrl>,
    hosts: HashSet<HostKey>,
    sites: HashSet<Site>,
    // Folders by host; each begins and ends with `/`.
    folders: HashMap<HostKey, Vec<String>>,
    prefixes: Vec<SurtPrefix>,
    excluded_hosts: HostTable<()>,
    areas: SeedAreas,
}

/// Is a URL wanted?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScopeVerdict {
    /// It is.
    In,
    /// It is not.
    Out {
        /// Scope, or depth alone: a URL that is too deep may be met again on a shorter way.
        reason: OutReason,
        /// The test that it failed: `host`, `domain`, `prefix`, `include`, `exclude RE`,
        /// `exclude-host NAME`, `max-depth N`, `depth N of seed URL`.
        rule: String,
    },
}

/// The reason why a URL is out of scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutReason {
    /// Outside whatever the way to it.
    Scope,
    /// Outside, but wanted where few enough links lead there from a page within.
    Beyond,
    /// Too many links from the seeds.
    Depth,
}

impl Scope {
    /// A scope without seeds. Patterns are regular expressions and match anywhere in the
    /// whole URL. Where includes are given, one of them must match; an exclude that matches
    /// wins over all else. `max_depth` counts links from a seed.
    ///
    /// # Errors
    /// [`BadScopePattern`] names the first pattern that is no regular expression.
    pub fn new(
        mode: ScopeMode,
        include: &[String],
        exclude: &[String],
        max_depth: Option<u32>,
    ) -> Result<Scope, BadScopePattern> {
        Ok(Scope {
            mode,
            include: Patterns::new(include)?,
            exclude: Patterns::new(exclude)?,
            max_depth,
            hops_off: 0,
            seeds: HashSet::new(),
            hosts: HashSet::new(),
            sites: HashSet::new(),
            folders: HashMap::new(),
            prefixes: Vec::new(),
            excluded_hosts: HostTable::default(),
            areas: SeedAreas::default(),
        })
    }

    /// Other patterns hold from now on, and other hosts are taken out; what was taken in stays.
    ///
    /// # Errors
    /// [`BadScopePattern`]; nothing is changed then.
    pub fn set_exclusions(
        &mut self,
        include: &[String],
        exclude: &[String],
        hosts: HostTable<()>,
    ) -> Result<(), BadScopePattern> {
        let (include, exclude) = (Patterns::new(include)?, Patterns::new(exclude)?);
        (self.include, self.exclude) = (include, exclude);
        self.excluded_hosts = hosts;
        Ok(())
    }

    /// Takes in what lies in a SURT prefix, whatever the distance from the seeds may be.
    pub fn add_prefix(&mut self, prefix: SurtPrefix) {
        self.prefixes.push(prefix);
    }

    /// Takes a host in, as that of a seed: where domains count its own joins, and where folders
    /// count the whole host does.
    pub fn add_host(&mut self, host: &HostKey) {
        // A host that was read once is read again.
        if let Ok(root) = canonicalize(None, &format!("http://{host}/")) {
            self.add_place(&root);
        }
    }

    /// Takes in pages up to so many links outside: those of pages within lead to the first of them.
    pub fn allow_hops_off(&mut self, hops: u8) {
        self.hops_off = hops;
    }

    /// The links that may be followed outside, one behind the other.
    #[must_use]
    pub fn hops_off(&self) -> u8 {
        self.hops_off
    }

    /// Takes these hosts out with their subdomains, whatever says that they belong to the scope.
    pub fn exclude_hosts(&mut self, hosts: HostTable<()>) {
        self.excluded_hosts = hosts;
    }

    /// Takes a seed in: its host joins the scope, and itself needs no include. Of one that carries a
    /// scope of its own the area has joined, and nothing else does.
    pub fn add_seed(&mut self, url: &CanonicalUrl) {
        let own = self.areas.of_seed(url).and_then(|area| area.terms.scope);
        if own.is_none() {
            self.add_place(url);
        }
        self.seeds.insert(url.clone());
    }

    /// Takes a seed in that carries settings of its own.
    ///
    /// # Errors
    /// [`AreaTaken`] where another seed says something else of the same area.
    pub fn add_seed_with(
        &mut self,
        url: &CanonicalUrl,
        terms: &SeedTerms,
    ) -> Result<(), AreaTaken> {
        self.areas.add(url, terms, self.mode.area())?;
        self.add_seed(url);
        Ok(())
    }

    /// Takes in the target that a seed, or such a target, redirects to, with what the seed carries.
    pub fn add_target(&mut self, from: &CanonicalUrl, target: &CanonicalUrl) {
        self.areas.follow(from, target);
        self.add_seed(target);
    }

    /// Returns whether a URL is a seed, or the target of one, that was taken in.
    #[must_use]
    pub fn is_seed(&self, url: &CanonicalUrl) -> bool {
        self.seeds.contains(url)
    }

    /// What the seed says in whose area a URL lies; nothing where it lies in none.
    #[must_use]
    pub fn terms(&self, url: &CanonicalUrl) -> Option<&SeedTerms> {
        self.areas.find(url).map(|area| &area.terms)
    }

    fn add_place(&mut self, url: &CanonicalUrl) {
        let host = url.host_key();
        let folder = folder(url.path());
        let folders = self.folders.entry(host.clone()).or_default();
        if !folders.iter().any(|known| known == folder) {
            folders.push(folder.to_owned());
        }
        self.hosts.insert(host);
        self.sites.insert(url.site());
    }

    /// Is a URL wanted that was found `depth` links from a seed?
    #[must_use]
    pub fn judge(&self, url: &CanonicalUrl, depth: u32) -> ScopeVerdict {
        if let Some(rule) = self.excluded(url) {
            return out(OutReason::Scope, rule);
        }
        if self.seeds.contains(url) {
            return ScopeVerdict::In;
        }
        let is_within = self.reaches(url);
        if !is_within && self.hops_off == 0 {
            return out(OutReason::Scope, self.mode.to_string());
        }
        if !self.include.is_empty() && self.include.first_match(url.as_str()).is_none() {
            return out(OutReason::Scope, "include".to_owned());
        }
        let area = self.areas.find(url);
        let own = area.and_then(|area| Some((area.terms.max_depth?, &area.seed)));
        match (own, self.max_depth) {
            (Some((max, seed)), _) if depth > max => {
                out(OutReason::Depth, format!("depth {max} of seed {seed}"))
            }
            (None, Some(max)) if depth > max => out(OutReason::Depth, format!("max-depth {max}")),
            _ if is_within => ScopeVerdict::In,
            _ => out(OutReason::Beyond, self.mode.to_string()),
        }
    }

    /// The same for a URL to which so many links lead since the scope was left, 0 where it was not.
    #[must_use]
    pub fn judge_at(&self, url: &CanonicalUrl, depth: u32, hops_off: u8) -> ScopeVerdict {
        match self.judge(url, depth) {
            ScopeVerdict::Out {
                reason: OutReason::Beyond,
                rule,
            } => match (1..=self.hops_off).contains(&hops_off) {
                true => ScopeVerdict::In,
                false => out(OutReason::Scope, rule),
            },
            verdict => verdict,
        }
    }

    /// Returns whether a URL lies within, whatever patterns and depth say of it.
    #[must_use]
    pub fn holds(&self, url: &CanonicalUrl) -> bool {
        self.seeds.contains(url) || self.reaches(url)
    }

    /// Returns whether a URL lies within, or something else of its host does.
    #[must_use]
    pub fn holds_some_of_host(&self, url: &CanonicalUrl) -> bool {
        let host = url.host_key();
        let mut seeds = self.seeds.iter();
        self.hosts.contains(&host) || self.reaches(url) || seeds.any(|seed| seed.host_key() == host)
    }

    /// The greatest depth at which a URL is wanted that is no seed; none: any. Up to it a verdict
    /// does not depend on the depth.
    #[must_use]
    pub fn max_depth(&self, url: &CanonicalUrl) -> Option<u32> {
        let own = self.areas.find(url).and_then(|area| area.terms.max_depth);
        own.or(self.max_depth)
    }

    /// The exclude that bars a URL, as [`ScopeVerdict::Out`] names it. For URLs that are
    /// asked for beside the scope, such as a host's sitemaps.
    #[must_use]
    pub fn excluded(&self, url: &CanonicalUrl) -> Option<String> {
        if !self.excluded_hosts.is_empty()
            && let Some(rule) = self.excluded_host(&url.host_key())
        {
            return Some(rule);
        }
        let pattern = self.exclude.first_match(url.as_str())?;
        Some(format!("exclude {pattern}"))
    }

    /// The part of it that bars a whole host. For URLs that no pattern of URLs is about, such as
    /// those of a robots.txt.
    #[must_use]
    pub fn excluded_host(&self, host: &HostKey) -> Option<String> {
        let (name, ()) = self.excluded_hosts.find(host)?;
        Some(format!("exclude-host {name}"))
    }

    fn reaches(&self, url: &CanonicalUrl) -> bool {
        let by_seeds = match self.mode {
            ScopeMode::Host => self.hosts.contains(&url.host_key()),
            ScopeMode::Domain => self.sites.contains(&url.site()),
            ScopeMode::Prefix => self
                .folders
                .get(&url.host_key())
                .is_some_and(|folders| folders.iter().any(|f| url.path().starts_with(f.as_str()))),
            ScopeMode::Any => true,
        };
        by_seeds
            || self.areas.find(url).is_some()
            || self.prefixes.iter().any(|prefix| prefix.holds(url))
    }
}

/// Regular expressions that are tried together.
#[derive(Clone, Debug)]
struct Patterns(RegexSet);

impl Patterns {
    fn new(patterns: &[String]) -> Result<Patterns, BadScopePattern> {
        let bad = |pattern: &str, why: &regex::Error| BadScopePattern {
            pattern: pattern.to_owned(),
            why: last_line(&why.to_string()),
        };
        for pattern in patterns {
            regex::Regex::new(pattern).map_err(|why| bad(pattern, &why))?;
        }
        RegexSet::new(patterns)
            .map(Patterns)
            .map_err(|why| bad(&patterns.join(" "), &why))
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn first_match(&self, url: &str) -> Option<&str> {
        if self.is_empty() {
            return None;
        }
        let first = self.0.matches(url).iter().next()?;
        self.0.patterns().get(first).map(String::as_str)
    }
}

/// The parser's errors draw the pattern over several lines; the last says what is wrong.
fn last_line(why: &str) -> String {
    let line = why.lines().last().unwrap_or_default().trim();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

fn out(reason: OutReason, rule: String) -> ScopeVerdict {
    ScopeVerdict::Out { reason, rule }
}

#[cfg(test)]
mod tests {
    use crawl_weburl::{HostKey, HostTable, canonicalize};
    use expect_test::{Expect, expect};

    use super::{Scope, ScopeMode, ScopeVerdict};
    use crate::seed_areas::{AreaKind, SeedTerms};

    fn scope(mode: ScopeMode, include: &[&str], exclude: &[&str], depth: Option<u32>) -> Scope {
        let owned = |list: &[&str]| list.iter().map(|&p| p.to_owned()).collect::<Vec<_>>();
        let mut scope = Scope::new(mode, &owned(include), &owned(exclude), depth).unwrap();
        scope.add_seed(&canonicalize(None, "http://www.example.org/docs/start?x=/y").unwrap());
        scope
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "expectations are written in place"
    )]
    fn check(scope: &Scope, expect: Expect) {
        let mut found = String::new();
        for url in [
            "http://www.example.org/docs/start?x=/y",
            "https://www.example.org/docs/a/b",
            "http://www.example.org:8080/docs/",
            "http://www.example.org/other",
            "http://example.org/docs/",
            "http://elsewhere.example/docs/",
        ] {
            let verdict = match scope.judge(&canonicalize(None, url).unwrap(), 3) {
                ScopeVerdict::In => "in".to_owned(),
                ScopeVerdict::Out { reason, rule } => format!("{reason:?}: {rule}"),
            };
            found += &format!("{url} {verdict}\n");
        }
        expect.assert_eq(&found);
    }

    #[test]
    fn host() {
        check(
            &scope(ScopeMode::Host, &[], &[], None),
            expect![[r#"
            http://www.example.org/docs/start?x=/y in
            https://www.example.org/docs/a/b in
            http://www.example.org:8080/docs/ in
            http://www.example.org/other in
            http://example.org/docs/ Scope: host
            http://elsewhere.example/docs/ Scope: host
        "#]],
        );
    }

    #[test]
    fn domain_with_exclude() {
        check(
            &scope(ScopeMode::Domain, &[], &["x=", r"/other$"], None),
            expect![[r#"
            http://www.example.org/docs/start?x=/y Scope: exclude x=
            https://www.example.org/docs/a/b in
            http://www.example.org:8080/docs/ in
            http://www.example.org/other Scope: exclude /other$
            http://example.org/docs/ in
            http://elsewhere.example/docs/ Scope: domain
        "#]],
        );
    }

    #[test]
    fn prefix() {
        check(
            &scope(ScopeMode::Prefix, &[], &[], None),
            expect![[r#"
            http://www.example.org/docs/start?x=/y in
            https://www.example.org/docs/a/b in
            http://www.example.org:8080/docs/ in
            http://www.example.org/other Scope: prefix
            http://example.org/docs/ Scope: prefix
            http://elsewhere.example/docs/ Scope: prefix
        "#]],
        );
    }

    #[test]
    fn ours_a_surt_prefix_joins_what_the_seeds_reach() {
        let mut scope = scope(ScopeMode::Prefix, &[], &["/b$"], None);
        for prefix in ["example,elsewhere,", "org,example)/docs/"] {
            scope.add_prefix(prefix.parse().unwrap());
        }
        check(
            &scope,
            expect![[r#"
            http://www.example.org/docs/start?x=/y in
            https://www.example.org/docs/a/b Scope: exclude /b$
            http://www.example.org:8080/docs/ in
            http://www.example.org/other Scope: prefix
            http://example.org/docs/ in
            http://elsewhere.example/docs/ in
        "#]],
        );
    }

    #[test]
    fn ours_other_exclusions_hold_for_what_was_taken_in_before() {
        let mut scope = scope(ScopeMode::Domain, &["docs"], &["x="], None);
        let mut hosts = HostTable::default();
        hosts.insert("www.example.org", ()).unwrap();
        let bad = scope.set_exclusions(&[], &["(".to_owned()], hosts.clone());
        assert!(bad.is_err());
        let docs = canonicalize(None, "https://www.example.org/docs/a/b").unwrap();
        assert_eq!(scope.judge(&docs, 1), ScopeVerdict::In, "nothing changed");
        scope
            .set_exclusions(&[], &["/docs/$".to_owned()], hosts)
            .unwrap();
        check(
            &scope,
            expect![[r#"
            http://www.example.org/docs/start?x=/y Scope: exclude-host www.example.org
            https://www.example.org/docs/a/b Scope: exclude-host www.example.org
            http://www.example.org:8080/docs/ Scope: exclude-host www.example.org
            http://www.example.org/other Scope: exclude-host www.example.org
            http://example.org/docs/ Scope: exclude /docs/$
            http://elsewhere.example/docs/ Scope: exclude /docs/$
        "#]],
        );
    }

    #[test]
    fn ours_a_listed_host_joins_as_that_of_a_seed_and_an_excluded_one_leaves() {
        let with = |mode, listed: &str, excluded: &[&str]| {
            let mut scope = scope(mode, &[], &[], None);
            scope.add_host(&HostKey::parse(listed).unwrap());
            let mut hosts = HostTable::default();
            for name in excluded {
                hosts.insert(name, ()).unwrap();
            }
            scope.exclude_hosts(hosts);
            scope
        };
        check(
            &with(ScopeMode::Host, "elsewhere.example", &[]),
            expect![[r#"
            http://www.example.org/docs/start?x=/y in
            https://www.example.org/docs/a/b in
            http://www.example.org:8080/docs/ in
            http://www.example.org/other in
            http://example.org/docs/ Scope: host
            http://elsewhere.example/docs/ in
        "#]],
        );
        check(
            &with(
                ScopeMode::Domain,
                "www.elsewhere.example",
                &["www.example.org"],
            ),
            expect![[r#"
            http://www.example.org/docs/start?x=/y Scope: exclude-host www.example.org
            https://www.example.org/docs/a/b Scope: exclude-host www.example.org
            http://www.example.org:8080/docs/ Scope: exclude-host www.example.org
            http://www.example.org/other Scope: exclude-host www.example.org
            http://example.org/docs/ in
            http://elsewhere.example/docs/ in
        "#]],
        );
        check(
            &with(ScopeMode::Prefix, "elsewhere.example", &["example"]),
            expect![[r#"
            http://www.example.org/docs/start?x=/y in
            https://www.example.org/docs/a/b in
            http://www.example.org:8080/docs/ in
            http://www.example.org/other Scope: prefix
            http://example.org/docs/ Scope: prefix
            http://elsewhere.example/docs/ Scope: exclude-host example
        "#]],
        );
    }

    #[test]
    fn ours_hops_off_the_scope_go_where_patterns_and_depth_let_them() {
        let mut scope = scope(ScopeMode::Host, &["/docs/|start"], &["/b$"], Some(3));
        scope.allow_hops_off(2);
        check(
            &scope,
            expect![[r#"
            http://www.example.org/docs/start?x=/y in
            https://www.example.org/docs/a/b Scope: exclude /b$
            http://www.example.org:8080/docs/ in
            http://www.example.org/other Scope: include
            http://example.org/docs/ Beyond: host
            http://elsewhere.example/docs/ Beyond: host
        "#]],
        );
        let url = canonicalize(None, "http://elsewhere.example/docs/").unwrap();
        let told = |depth, hops| match scope.judge_at(&url, depth, hops) {
            ScopeVerdict::In => "in".to_owned(),
            ScopeVerdict::Out { reason, rule } => format!("{reason:?}: {rule}"),
        };
        assert_eq!(told(3, 0), "Scope: host");
        assert_eq!([told(3, 1), told(3, 2)], ["in", "in"]);
        assert_eq!(told(3, 3), "Scope: host");
        assert_eq!(told(4, 1), "Depth: max-depth 3");
    }

    #[test]
    fn any_with_include_and_depth() {
        check(
            &scope(ScopeMode::Any, &["/docs/$"], &[], Some(2)),
            expect![[r#"
            http://www.example.org/docs/start?x=/y in
            https://www.example.org/docs/a/b Scope: include
            http://www.example.org:8080/docs/ Depth: max-depth 2
            http://www.example.org/other Scope: include
            http://example.org/docs/ Depth: max-depth 2
            http://elsewhere.example/docs/ Depth: max-depth 2
        "#]],
        );
    }

    #[test]
    fn ours_a_seed_brings_its_own_area_and_depth() {
        let mut scope = Scope::new(ScopeMode::Host, &[], &[], Some(1)).unwrap();
        let url = |text: &str| canonicalize(None, text).unwrap();
        let terms = |scope, max_depth| SeedTerms {
            scope,
            max_depth,
            label: None,
        };
        let mut add = |seed: &str, terms: &SeedTerms| {
            scope.add_seed_with(&url(seed), terms).unwrap();
        };
        let docs = terms(Some(AreaKind::Prefix), Some(3));
        add("http://www.example.org/docs/start?x=/y", &docs);
        add("http://example.org/", &terms(None, Some(2)));
        check(
            &scope,
            expect![[r#"
            http://www.example.org/docs/start?x=/y in
            https://www.example.org/docs/a/b in
            http://www.example.org:8080/docs/ in
            http://www.example.org/other Scope: host
            http://example.org/docs/ Depth: depth 2 of seed http://example.org/
            http://elsewhere.example/docs/ Scope: host
        "#]],
        );
        scope.add_seed(&url("http://elsewhere.example/"));
        assert_eq!(
            [
                "http://www.example.org/docs/a",
                "http://example.org/a",
                "http://elsewhere.example/a"
            ]
            .map(|at| scope.max_depth(&url(at))),
            [Some(3), Some(2), Some(1)]
        );
        // Where a seed leads elsewhere, its area moves along.
        scope.add_target(
            &url("http://www.example.org/docs/start?x=/y"),
            &url("http://elsewhere.example/docs/new"),
        );
        scope.add_target(
            &url("http://plain.example/"),
            &url("http://other.example/x"),
        );
        assert_eq!(
            scope.max_depth(&url("http://elsewhere.example/docs/b")),
            Some(3)
        );
        assert_eq!(
            scope.judge(&url("http://other.example/y"), 1),
            ScopeVerdict::In
        );
    }

    #[test]
    fn a_page_at_the_greatest_depth_is_in() {
        let scope = scope(ScopeMode::Any, &[], &[], Some(2));
        let url = canonicalize(None, "http://www.example.org/a").unwrap();
        assert_eq!(scope.judge(&url, 2), ScopeVerdict::In);
        assert_ne!(scope.judge(&url, 3), ScopeVerdict::In);
    }

    #[test]
    fn a_mode_is_told_by_its_name() {
        for (name, mode) in [
            ("host", ScopeMode::Host),
            ("domain", ScopeMode::Domain),
            ("prefix", ScopeMode::Prefix),
            ("any", ScopeMode::Any),
        ] {
            assert_eq!(mode.to_string(), name);
        }
    }

    #[test]
    fn the_target_of_a_seed_s_redirect_joins() {
        let mut scope = scope(ScopeMode::Host, &[], &[], None);
        let url = canonicalize(None, "https://example.org/docs/").unwrap();
        assert_ne!(scope.judge(&url, 0), ScopeVerdict::In);
        scope.add_seed(&url);
        assert_eq!(scope.judge(&url, 0), ScopeVerdict::In);
    }

    #[test]
    fn on_loopback_the_port_counts() {
        let mut scope = scope(ScopeMode::Host, &[], &[], None);
        scope.add_seed(&canonicalize(None, "http://127.0.0.1:81/").unwrap());
        let judge = |url| scope.judge(&canonicalize(None, url).unwrap(), 0);
        assert_eq!(judge("http://127.0.0.1:81/a"), ScopeVerdict::In);
        assert_ne!(judge("http://127.0.0.1:82/a"), ScopeVerdict::In);
    }

    #[test]
    fn a_bad_pattern_is_named() {
        let bad = Scope::new(ScopeMode::Any, &["(".to_owned()], &[], None).unwrap_err();
        assert_eq!(
            bad.to_string(),
            "`(` is no regular expression: unclosed group"
        );
    }
}
