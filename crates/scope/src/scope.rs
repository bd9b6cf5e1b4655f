//! The operator's scope: which hosts, which patterns, how deep.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

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
    /// The folders of the seeds: their host, and their path up to its last `/`; `/products` is a folder
    /// itself.
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
    areas: Arc<SeedAreas>,
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
            areas: Arc::default(),
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

    /// Takes a seed in: its host joins the scope, and itself needs no include. Of one that carries
    /// a scope of its own the area has joined, and nothing else does.
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
        Arc::make_mut(&mut self.areas).add(url, terms, self.mode.area())?;
        self.add_seed(url);
        Ok(())
    }

    /// Takes in the target that a seed, or such a target, redirects to, with what the seed carries.
    pub fn add_target(&mut self, from: &CanonicalUrl, target: &CanonicalUrl) {
        SeedAreas::follow(&mut self.areas, from, target);
        self.add_seed(target);
    }

    /// Returns whether a URL is a seed, or the target of one, that was taken in.
    #[must_use]
    pub fn is_seed(&self, url: &CanonicalUrl) -> bool {
        self.seeds.contains(url)
    }

    /// The terms of the seed in whose area a URL lies; none where it lies in no area.
    #[must_use]
    pub fn terms(&self, url: &CanonicalUrl) -> Option<&SeedTerms> {
        self.areas.find(url).map(|area| &area.terms)
    }

    /// The areas of the seeds that carry settings of their own.
    #[must_use]
    pub fn areas(&self) -> &Arc<SeedAreas> {
        &self.areas
    }

    fn add_place(&mut self, url: &CanonicalUrl) {
        let host = url.host_key();
        let folder = folder(url.path());
        let folders = self.folders.entry(host.clone()).or_default();
        if !folders.iter().any(|known| *known == folder) {
            folders.push(folder.into_owned());
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

/// Returns whether a path is below a folder, which ends in `/`, or is the folder without that.
fn is_in_folder(path: &str, folder: &str) -> bool {
    path.starts_with(folder) || folder.strip_suffix('/') == Some(path) && !path.is_empty()
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
mod tests;
