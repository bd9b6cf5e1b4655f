//! The seeds that define the scope of a crawl: the seeds of all its runs, and the targets of their
//! redirects.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use crawl_archive::{DigestAlgorithm, RemovalSelection};
use crawl_frontier::{Frontier, FrontierError, Transaction};
use crawl_scope::{Scope, SeedAreas};
use crawl_weburl::{CanonicalUrl, canonicalize};

use crate::config::Config;
use crate::error::EngineError;
use crate::frontier_meta_keys::{
    META_SCOPE_SEEDS, META_SEED_TARGETS, META_SHARED_SEED, META_SHARED_TARGET,
};

/// The stored seeds of all runs, and the targets of their redirects.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScopeSeeds {
    seeds: BTreeSet<CanonicalUrl>,
    /// Seeds with their own scope, and the targets of these seeds' redirects. They are not in
    /// `seeds`, because the configuration defines what they add to the scope.
    own: HashSet<CanonicalUrl>,
    /// Redirects of seeds, and further redirects of their targets, in the order of commits.
    targets: Vec<(CanonicalUrl, CanonicalUrl)>,
    known_targets: HashSet<(CanonicalUrl, CanonicalUrl)>,
    /// For seeds with their own settings, the parts of the web that the settings apply to. Set by
    /// [`ScopeSeeds::scope`].
    areas: Arc<SeedAreas>,
    /// Whether some seeds, or targets of their redirects, are not stored yet.
    has_grown: bool,
    /// Redirects of seeds that the other workers don't know yet. `None` if this worker is not part
    /// of a shared crawl.
    to_share: Option<Vec<(CanonicalUrl, CanonicalUrl)>>,
}

impl ScopeSeeds {
    /// Reads the seeds and redirect targets that earlier runs stored.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    pub(crate) fn read(
        frontier: &dyn Frontier,
        config: &Config,
    ) -> Result<ScopeSeeds, FrontierError> {
        let own = config.scope.seed_terms.iter();
        let own = own.filter(|(_, terms)| terms.scope.is_some());
        let mut read = ScopeSeeds {
            own: own.map(|(seed, _)| seed.clone()).collect(),
            ..ScopeSeeds::default()
        };
        let seeds = frontier.meta(META_SCOPE_SEEDS)?.unwrap_or_default();
        read.seeds = String::from_utf8_lossy(&seeds)
            .lines()
            .filter_map(|url| canonicalize(None, url).ok())
            .collect();
        let targets = frontier.meta(META_SEED_TARGETS)?.unwrap_or_default();
        for (from, target) in pairs(&targets) {
            read.add_target(&from, &target);
        }
        read.has_grown = false;
        Ok(read)
    }

    /// Shares redirects of seeds with the other workers from now on. `kept` contains the redirects
    /// that other workers have already shared.
    pub(crate) fn share(&mut self, kept: &[(String, Vec<u8>)]) {
        self.learn(kept);
        self.to_share = Some(Vec::new());
    }

    /// Adds redirects of seeds that other workers found. Returns the redirects that are new to this
    /// worker.
    pub(crate) fn learn(
        &mut self,
        kept: &[(String, Vec<u8>)],
    ) -> Vec<(CanonicalUrl, CanonicalUrl)> {
        let shared = kept.iter();
        let shared = shared.filter(|(name, _)| name.starts_with(META_SHARED_TARGET));
        let shared = shared.flat_map(|(_, pair)| pairs(pair));
        let new: Vec<_> = shared
            .filter(|pair| !self.known_targets.contains(pair))
            .collect();
        for (from, target) in &new {
            self.add_known_target(from, target);
        }
        new
    }

    /// Returns the scope that the seeds of this run and the stored seeds define.
    ///
    /// # Errors
    /// A pattern is not a valid regular expression, or two seeds have different settings for the
    /// same area.
    pub(crate) fn scope(&mut self, config: &Config) -> Result<Scope, EngineError> {
        let rules = &config.scope;
        let mut scope = Scope::new(rules.mode, &rules.include, &rules.exclude, rules.max_depth)?;
        for (seed, terms) in &rules.seed_terms {
            scope.add_seed_with(seed, terms)?;
        }
        for (from, target) in &self.targets {
            scope.add_target(from, target);
        }
        for seed in config.seeds.iter().chain(&self.seeds) {
            scope.add_seed(seed);
        }
        for prefix in &rules.surt {
            scope.add_prefix(prefix.clone());
        }
        for host in &rules.hosts {
            scope.add_host(host);
        }
        scope.exclude_hosts(rules.exclude_hosts.clone());
        scope.allow_hops_off(rules.hops_off);
        self.areas = Arc::clone(scope.areas());
        Ok(scope)
    }

    /// Returns the label of the seed whose own settings apply to a URL. `None` if there is no such
    /// seed, or it has no label.
    pub(crate) fn label(&self, url: &CanonicalUrl) -> Option<&str> {
        self.areas.find(url)?.terms.label.as_deref()
    }

    pub(crate) fn contains(&self, url: &CanonicalUrl) -> bool {
        self.seeds.contains(url) || self.own.contains(url)
    }

    pub(crate) fn add(&mut self, url: &CanonicalUrl) {
        if !self.own.contains(url) {
            self.has_grown |= self.seeds.insert(url.clone());
        }
    }

    /// Adds a redirect of a seed, or of a target that a seed redirected to.
    pub(crate) fn add_target(&mut self, from: &CanonicalUrl, target: &CanonicalUrl) {
        let pair = (from.clone(), target.clone());
        if let Some(to_share) = &mut self.to_share
            && !self.known_targets.contains(&pair)
        {
            to_share.push(pair);
        }
        self.add_known_target(from, target);
    }

    fn add_known_target(&mut self, from: &CanonicalUrl, target: &CanonicalUrl) {
        if self.own.contains(from) {
            self.own.insert(target.clone());
        }
        self.add(target);
        SeedAreas::follow(&mut self.areas, from, target);
        let pair = (from.clone(), target.clone());
        if self.known_targets.insert(pair.clone()) {
            self.targets.push(pair);
            self.has_grown = true;
        }
    }

    /// Stores the seeds and targets if there are new ones.
    pub(crate) fn keep(&mut self, transaction: &mut dyn Transaction) {
        for (from, target) in self.to_share.iter_mut().flat_map(std::mem::take) {
            let pair = format!("{from} {target}\n");
            let name = format!("{META_SHARED_TARGET}{}", digest(&pair));
            transaction.keep_meta(&name, pair.as_bytes());
        }
        if !std::mem::take(&mut self.has_grown) {
            return;
        }
        let seeds: Vec<_> = self.seeds.iter().map(CanonicalUrl::as_str).collect();
        transaction.keep_meta(META_SCOPE_SEEDS, seeds.join("\n").as_bytes());
        let targets = self.targets.iter();
        let targets = targets.map(|(from, target)| format!("{from} {target}\n"));
        transaction.keep_meta(META_SEED_TARGETS, targets.collect::<String>().as_bytes());
    }
}

/// Returns the metadata of an imported crawl that all workers must share: the redirects of its
/// seeds, and whether a seed was fetched.
pub(crate) fn targets_to_share(
    frontier: &dyn Frontier,
    has_seed: bool,
) -> Result<Vec<(String, Vec<u8>)>, FrontierError> {
    let targets = frontier.meta(META_SEED_TARGETS)?.unwrap_or_default();
    let pairs = pairs(&targets).into_iter().map(|(from, target)| {
        let pair = format!("{from} {target}\n");
        (
            format!("{META_SHARED_TARGET}{}", digest(&pair)),
            pair.into_bytes(),
        )
    });
    let seed = has_seed.then(|| (META_SHARED_SEED.to_owned(), Vec::new()));
    Ok(pairs.chain(seed).collect())
}

/// Returns a digest of a redirect for use in a key, because two URLs may be too long for a key.
fn digest(pair: &str) -> String {
    DigestAlgorithm::Sha256.of(&[pair.as_bytes()])
}

/// Parses stored redirects: two URLs per line, with a space between them.
fn pairs(bytes: &[u8]) -> Vec<(CanonicalUrl, CanonicalUrl)> {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let url = |text: &str| canonicalize(None, text).ok();
    lines
        .filter_map(|(from, target)| Some((url(from)?, url(target)?)))
        .collect()
}

/// Removes forgotten seeds from the stored list. If a forgotten URL is a page, its folder takes the
/// place of the seed, so that other pages in the folder stay in scope.
pub(crate) fn seeds_without(removal: &RemovalSelection, bytes: &[u8]) -> Vec<u8> {
    let mut lines = Vec::new();
    for line in String::from_utf8_lossy(bytes).lines() {
        let Ok(url) = canonicalize(None, line) else {
            continue;
        };
        if removal.holds_host(&url.host_key()) {
            continue;
        }
        let seed = match removal.holds(&url) {
            true => canonicalize(Some(&url), ".").unwrap_or(url),
            false => url,
        };
        lines.push(seed.to_string());
    }
    lines.dedup();
    (lines.join("\n") + "\n").into_bytes()
}

/// Removes redirects from or to forgotten URLs from the stored list.
pub(crate) fn targets_without(removal: &RemovalSelection, bytes: &[u8]) -> Vec<u8> {
    let is_out = |url: &CanonicalUrl| removal.holds(url) || removal.holds_host(&url.host_key());
    let remaining = pairs(bytes).into_iter();
    let remaining = remaining.filter(|(from, target)| !is_out(from) && !is_out(target));
    let lines = remaining.map(|(from, target)| format!("{from} {target}\n"));
    lines.collect::<String>().into_bytes()
}

#[cfg(test)]
mod tests {
    use crawl_archive::RemovalSelection;
    use crawl_frontier::{Frontier as _, MemoryFrontier};
    use crawl_policy::ProductToken;
    use crawl_scope::ScopeVerdict;
    use crawl_scope::{SeedAreaKind, SeedSettings};
    use crawl_weburl::{CanonicalUrl, HostKey, canonicalize};

    use super::{ScopeSeeds, seeds_without, targets_without};
    use crate::config::Config;

    fn url(text: &str) -> CanonicalUrl {
        canonicalize(None, text).unwrap()
    }

    #[test]
    fn the_scope_of_a_forgotten_seed_stays_that_of_its_folder() {
        let mut removal = RemovalSelection::default();
        removal.add_page(&url("http://a.example/x/page.html?q=1"));
        removal.add_host(HostKey::parse("b.example").unwrap());
        let seeds = b"http://a.example/x/page.html?q=1\nhttp://b.example/\nhttp://c.example/\n";
        let remaining = seeds_without(&removal, seeds);
        assert_eq!(
            String::from_utf8(remaining).unwrap(),
            "http://a.example/x/\nhttp://c.example/\n"
        );
        let targets = b"http://a.example/x/page.html?q=1 http://c.example/\n\
                        http://c.example/ http://d.example/\nhttp://d.example/ http://b.example/x\n";
        let remaining = targets_without(&removal, targets);
        assert_eq!(
            String::from_utf8(remaining).unwrap(),
            "http://c.example/ http://d.example/\n"
        );
    }

    #[test]
    fn seeds_and_their_targets_are_read_back() {
        let terms = SeedSettings {
            scope: Some(SeedAreaKind::Prefix),
            ..SeedSettings::default()
        };
        let own = url("http://own.example/a/");
        let seeds = vec![url("http://a.example/"), own.clone()];
        let agent = ProductToken::new("crawl").unwrap();
        let mut config = Config::new(agent, "1", None, seeds, "unused");
        config.scope.seed_terms = vec![(own.clone(), terms)];
        let frontier = MemoryFrontier::new();
        let mut seeds = ScopeSeeds::read(&frontier, &config).unwrap();
        seeds.add(&url("http://a.example/"));
        seeds.add(&own);
        seeds.add_target(&url("http://a.example/"), &url("http://b.example/"));
        seeds.add_target(&own, &url("http://c.example/a/"));
        let mut transaction = frontier.begin().unwrap();
        seeds.keep(&mut *transaction);
        transaction.commit().unwrap();
        let mut read = ScopeSeeds::read(&frontier, &config).unwrap();
        assert_eq!(read.targets, seeds.targets);
        let stored: Vec<_> = read.seeds.iter().map(CanonicalUrl::as_str).collect();
        // A seed with its own scope isn't stored, and neither is its redirect's target.
        assert_eq!(stored, ["http://a.example/", "http://b.example/"]);
        assert!(read.contains(&url("http://c.example/a/")));
        let scope = read.scope(&config).unwrap();
        let is_in = |at: &str| scope.judge(&url(at), 1) == ScopeVerdict::In;
        assert!(is_in("http://b.example/x") && is_in("http://c.example/a/x"));
        assert!(!is_in("http://c.example/x") && !is_in("http://own.example/"));
    }
}
