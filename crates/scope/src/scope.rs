//! The operator's scope: hosts, patterns and depth.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crawl_weburl::{CanonicalUrl, HostKey, HostPatternMap, Site, canonicalize};
use regex::RegexSet;

use crate::seed_settings::{AreaConflict, SeedAreaKind, SeedAreas, SeedSettings, folder};
use crate::surt_prefix::SurtPrefix;

/// How far from its seeds a crawl may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, strum::Display)]
#[non_exhaustive]
#[strum(serialize_all = "lowercase")]
pub enum ScopeMode {
    /// The hosts of the seeds. A host is the same over http and https. On loopback, each port is a
    /// separate host.
    #[default]
    Host,
    /// The registrable domains of the seeds.
    Domain,
    /// The folders of the seeds. A folder is a host and a path up to its last `/`. A seed directly
    /// below the root, such as `/products`, is a folder itself, unless its name has a dot.
    Prefix,
    /// Every URL.
    Any,
}

impl ScopeMode {
    /// Returns the kind of area that this mode gives to a seed without a scope setting: its host,
    /// domain or folder.
    #[must_use]
    pub fn area(self) -> SeedAreaKind {
        match self {
            ScopeMode::Domain => SeedAreaKind::Domain,
            ScopeMode::Prefix => SeedAreaKind::Prefix,
            ScopeMode::Host | ScopeMode::Any => SeedAreaKind::Host,
        }
    }
}

/// A pattern that is not a regular expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` isn't a regular expression: {why}")]
pub struct BadScopePattern {
    /// The pattern as given.
    pub pattern: String,
    /// The defect of the pattern.
    pub why: String,
}

/// The operator's scope, extended by the seeds.
///
/// Build it with [`Scope::new`], then add seeds, hosts and prefixes (`add_*`). [`Scope::judge`]
/// decides about a URL. [`Scope::judge_at`] also allows a few links outside the scope.
#[derive(Clone, Debug)]
pub struct Scope {
    mode: ScopeMode,
    include: PatternSet,
    exclude: PatternSet,
    max_depth: Option<u32>,
    /// Maximum number of consecutive links outside the scope.
    hops_off: u8,
    seeds: HashSet<CanonicalUrl>,
    hosts: HashSet<HostKey>,
    sites: HashSet<Site>,
    // Folders by host. The path of each folder begins and ends with `/`.
    folders: HashMap<HostKey, Vec<String>>,
    prefixes: Vec<SurtPrefix>,
    excluded_hosts: HostPatternMap<()>,
    areas: Arc<SeedAreas>,
}

/// Whether a URL is in scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScopeVerdict {
    /// The URL is in scope.
    In,
    /// The URL is out of scope.
    Out {
        /// Why the URL is out of scope. If the URL is only too deep, a shorter path to it may be
        /// found later.
        reason: OutOfScopeReason,
        /// The test that failed: `host`, `domain`, `prefix`, `include`, `exclude RE`, `exclude-host
        /// NAME`, `max-depth N`, `depth N of seed URL`.
        rule: String,
    },
}

/// The reason why a URL is out of scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutOfScopeReason {
    /// The URL is out of scope, whatever path leads to it.
    Scope,
    /// The URL is out of scope, but may be fetched if only a few links lead from the scope to the
    /// URL. See [`Scope::allow_hops_off`].
    Beyond,
    /// The URL is too many links away from the seeds.
    Depth,
}

impl Scope {
    /// Creates a scope without seeds. Patterns are regular expressions that match anywhere in the
    /// URL. If `include` is not empty, at least one of its patterns must match. A match of
    /// `exclude` overrides everything else. `max_depth` counts links from a seed.
    ///
    /// # Errors
    /// Fails with [`BadScopePattern`] for the first pattern that is not a regular expression.
    pub fn new(
        mode: ScopeMode,
        include: &[String],
        exclude: &[String],
        max_depth: Option<u32>,
    ) -> Result<Scope, BadScopePattern> {
        Ok(Scope {
            mode,
            include: PatternSet::new(include)?,
            exclude: PatternSet::new(exclude)?,
            max_depth,
            hops_off: 0,
            seeds: HashSet::new(),
            hosts: HashSet::new(),
            sites: HashSet::new(),
            folders: HashMap::new(),
            prefixes: Vec::new(),
            excluded_hosts: HostPatternMap::default(),
            areas: Arc::default(),
        })
    }

    /// Replaces the patterns and the excluded hosts. Seeds, hosts and prefixes stay.
    ///
    /// # Errors
    /// Fails with [`BadScopePattern`] if a pattern is not a regular expression. Then nothing is
    /// changed.
    pub fn set_exclusions(
        &mut self,
        include: &[String],
        exclude: &[String],
        hosts: HostPatternMap<()>,
    ) -> Result<(), BadScopePattern> {
        let (include, exclude) = (PatternSet::new(include)?, PatternSet::new(exclude)?);
        (self.include, self.exclude) = (include, exclude);
        self.excluded_hosts = hosts;
        Ok(())
    }

    /// Adds the URLs of a SURT prefix to the scope, in every mode.
    pub fn add_prefix(&mut self, prefix: SurtPrefix) {
        self.prefixes.push(prefix);
    }

    /// Adds a host to the scope as if it were the host of a seed. In mode `domain` the host's
    /// domain is added, and in mode `prefix` the whole host.
    pub fn add_host(&mut self, host: &HostKey) {
        // Never fails, because the text of a `HostKey` is also valid as a URL's host.
        if let Ok(root) = canonicalize(None, &format!("http://{host}/")) {
            self.add_place(&root);
        }
    }

    /// Allows this many consecutive links outside the scope. The first of these links is on a page
    /// in scope.
    pub fn allow_hops_off(&mut self, hops: u8) {
        self.hops_off = hops;
    }

    /// Returns the maximum number of consecutive links outside the scope.
    #[must_use]
    pub fn hops_off(&self) -> u8 {
        self.hops_off
    }

    /// Excludes hosts and their subdomains. The exclusion overrides everything that adds such a
    /// host to the scope.
    pub fn exclude_hosts(&mut self, hosts: HostPatternMap<()>) {
        self.excluded_hosts = hosts;
    }

    /// Adds a seed. The seed's host, domain or folder joins the scope, and the seed itself is in
    /// scope even if no include matches it. A seed with its own scope setting adds only the area of
    /// that setting.
    pub fn add_seed(&mut self, url: &CanonicalUrl) {
        let own = self.areas.of_seed(url).and_then(|area| area.terms.scope);
        if own.is_none() {
            self.add_place(url);
        }
        self.seeds.insert(url.clone());
    }

    /// Adds a seed that has its own settings.
    ///
    /// # Errors
    /// Fails with [`AreaConflict`] if another seed has different settings for the same area.
    pub fn add_seed_with(
        &mut self,
        url: &CanonicalUrl,
        terms: &SeedSettings,
    ) -> Result<(), AreaConflict> {
        Arc::make_mut(&mut self.areas).add(url, terms, self.mode.area())?;
        self.add_seed(url);
        Ok(())
    }

    /// Adds the redirect target of a seed (or of a seed's redirect target) with the seed's
    /// settings.
    pub fn add_target(&mut self, from: &CanonicalUrl, target: &CanonicalUrl) {
        SeedAreas::follow(&mut self.areas, from, target);
        self.add_seed(target);
    }

    /// Returns whether a URL was added as a seed, or as a redirect target of a seed.
    #[must_use]
    pub fn is_seed(&self, url: &CanonicalUrl) -> bool {
        self.seeds.contains(url)
    }

    /// Returns the settings of the seed whose area (the part of the web that its settings apply to)
    /// contains a URL. `None` if no area contains the URL.
    #[must_use]
    pub fn terms(&self, url: &CanonicalUrl) -> Option<&SeedSettings> {
        self.areas.find(url).map(|area| &area.terms)
    }

    /// Returns the areas of the seeds that have their own settings.
    #[must_use]
    pub fn areas(&self) -> &Arc<SeedAreas> {
        &self.areas
    }

    fn add_place(&mut self, url: &CanonicalUrl) {
        let host = url.host_key();
        let folder = folder(url.path());
        let folders = self.folders.entry(host.clone()).or_default();
        if !folders.iter().any(|other| *other == folder) {
            folders.push(folder.into_owned());
        }
        self.hosts.insert(host);
        self.sites.insert(url.site());
    }

    /// Decides whether a URL that is `depth` links away from a seed is in scope.
    #[must_use]
    pub fn judge(&self, url: &CanonicalUrl, depth: u32) -> ScopeVerdict {
        if let Some(rule) = self.excluded(url) {
            return out(OutOfScopeReason::Scope, rule);
        }
        if self.seeds.contains(url) {
            return ScopeVerdict::In;
        }
        let is_within = self.reaches(url);
        if !is_within && self.hops_off == 0 {
            return out(OutOfScopeReason::Scope, self.mode.to_string());
        }
        if !self.include.is_empty() && self.include.first_match(url.as_str()).is_none() {
            return out(OutOfScopeReason::Scope, "include".to_owned());
        }
        let area = self.areas.find(url);
        let own = area.and_then(|area| Some((area.terms.max_depth?, &area.seed)));
        match (own, self.max_depth) {
            (Some((max, seed)), _) if depth > max => out(
                OutOfScopeReason::Depth,
                format!("depth {max} of seed {seed}"),
            ),
            (None, Some(max)) if depth > max => {
                out(OutOfScopeReason::Depth, format!("max-depth {max}"))
            }
            _ if is_within => ScopeVerdict::In,
            _ => out(OutOfScopeReason::Beyond, self.mode.to_string()),
        }
    }

    /// Judges a URL that is `hops_off` links outside the scope. `hops_off` is 0 if the path to the
    /// URL never left the scope.
    #[must_use]
    pub fn judge_at(&self, url: &CanonicalUrl, depth: u32, hops_off: u8) -> ScopeVerdict {
        match self.judge(url, depth) {
            ScopeVerdict::Out {
                reason: OutOfScopeReason::Beyond,
                rule,
            } => match (1..=self.hops_off).contains(&hops_off) {
                true => ScopeVerdict::In,
                false => out(OutOfScopeReason::Scope, rule),
            },
            verdict => verdict,
        }
    }

    /// Returns whether a URL is within the scope if patterns and depth are ignored.
    #[must_use]
    pub fn holds(&self, url: &CanonicalUrl) -> bool {
        self.seeds.contains(url) || self.reaches(url)
    }

    /// Returns whether the scope contains any URL of this URL's host.
    #[must_use]
    pub fn overlaps_host(&self, url: &CanonicalUrl) -> bool {
        let host = url.host_key();
        let mut seeds = self.seeds.iter();
        self.hosts.contains(&host) || self.reaches(url) || seeds.any(|seed| seed.host_key() == host)
    }

    /// Returns the maximum depth of a URL that is not a seed. `None` if the depth is unlimited. Up
    /// to the maximum depth, [`Scope::judge`] returns the same verdict for every depth.
    #[must_use]
    pub fn max_depth(&self, url: &CanonicalUrl) -> Option<u32> {
        let own = self.areas.find(url).and_then(|area| area.terms.max_depth);
        own.or(self.max_depth)
    }

    /// Returns the rule that excludes a URL (a pattern or a host), as [`ScopeVerdict::Out`] names
    /// it. Used for URLs that are fetched outside the scope, such as a host's sitemaps.
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

    /// Returns the rule that excludes a whole host, if any. Used for URLs that patterns don't apply
    /// to, such as robots.txt.
    #[must_use]
    pub fn excluded_host(&self, host: &HostKey) -> Option<String> {
        let (name, ()) = self.excluded_hosts.find(host)?;
        Some(format!("exclude-host {name}"))
    }

    fn reaches(&self, url: &CanonicalUrl) -> bool {
        let by_seeds = match self.mode {
            ScopeMode::Host => self.hosts.contains(&url.host_key()),
            ScopeMode::Domain => self.sites.contains(&url.site()),
            ScopeMode::Prefix => self.folders.get(&url.host_key()).is_some_and(|folders| {
                folders
                    .iter()
                    .any(|folder| is_in_folder(url.path(), folder))
            }),
            ScopeMode::Any => true,
        };
        by_seeds
            || self.areas.find(url).is_some()
            || self.prefixes.iter().any(|prefix| prefix.holds(url))
    }
}

/// Returns whether a path is in a folder or is the folder's name without the final `/`. `folder`
/// ends in `/`.
fn is_in_folder(path: &str, folder: &str) -> bool {
    path.starts_with(folder) || folder.strip_suffix('/') == Some(path) && !path.is_empty()
}

/// A set of regular expressions that are matched together.
#[derive(Clone, Debug)]
struct PatternSet(RegexSet);

impl PatternSet {
    fn new(patterns: &[String]) -> Result<PatternSet, BadScopePattern> {
        let bad = |pattern: &str, why: &regex::Error| BadScopePattern {
            pattern: pattern.to_owned(),
            why: last_line(&why.to_string()),
        };
        for pattern in patterns {
            regex::Regex::new(pattern).map_err(|why| bad(pattern, &why))?;
        }
        RegexSet::new(patterns)
            .map(PatternSet)
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

/// Returns the last line of a parser error, which describes the defect. The lines before it show
/// the pattern.
fn last_line(why: &str) -> String {
    let line = why.lines().last().unwrap_or_default().trim();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

fn out(reason: OutOfScopeReason, rule: String) -> ScopeVerdict {
    ScopeVerdict::Out { reason, rule }
}

#[cfg(test)]
mod tests;
