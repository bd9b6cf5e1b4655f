//! The settings of single seeds. Each seed's settings apply to an area, and a URL gets the settings
//! of the smallest area that contains it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc;

use crawl_weburl::{CanonicalUrl, HostKey, Site};

/// The part of the web that a seed's settings apply to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum SeedAreaKind {
    /// Only the URL of the seed itself.
    Page,
    /// The host, and the path up to its last `/`. A seed directly below the root, such as
    /// `/products`, is a folder itself, unless its name has a dot.
    Prefix,
    /// The whole host. A host is the same over http and https. On loopback, each port is a separate
    /// host.
    Host,
    /// The registrable domain.
    Domain,
}

/// The settings of a single seed. For a setting that is `None`, the setting of the whole crawl
/// applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeedSettings {
    /// The kind of area around the seed. If `None`, [`ScopeMode::area`](crate::ScopeMode::area)
    /// determines the kind.
    pub scope: Option<SeedAreaKind>,
    /// Maximum depth of the area's URLs, in links from a seed.
    pub max_depth: Option<u32>,
    /// The label that pages of the area get.
    pub label: Option<Arc<str>>,
}

impl SeedSettings {
    /// Returns true if all settings are `None`.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == SeedSettings::default()
    }
}

/// Two seeds have different settings for the same area.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{seed}` and `{other}` rule over the same {area}, and differ in depth, label or scope")]
pub struct AreaConflict {
    /// The seed that was refused.
    pub seed: CanonicalUrl,
    /// The seed that was added before, with different settings.
    pub other: CanonicalUrl,
    /// A description of the area, such as `host www.example.org`.
    pub area: String,
}

/// The areas of seeds that have their own settings.
///
/// Only the smallest area that contains a URL counts: the seed itself, then the longest folder, the
/// host, the domain. So a URL's settings depend only on the URL, not on how it was found.
#[derive(Clone, Debug, Default)]
pub struct SeedAreas {
    areas: Vec<SeedArea>,
    // For each seed with an area, the index of the area in `areas`.
    pages: HashMap<CanonicalUrl, usize>,
    // The index of each area that is a folder, by host and folder. A folder begins and ends with
    // `/`.
    folders: HashMap<HostKey, HashMap<Box<str>, usize>>,
    hosts: HashMap<HostKey, usize>,
    sites: HashMap<Site, usize>,
}

/// The area of one seed.
#[derive(Clone, Debug)]
pub struct SeedArea {
    /// The seed, or its redirect target.
    pub seed: CanonicalUrl,
    /// The settings of the seed.
    pub terms: SeedSettings,
    /// The extent of the area.
    pub kind: SeedAreaKind,
}

impl fmt::Display for SeedArea {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seed = &self.seed;
        match self.kind {
            SeedAreaKind::Page => write!(f, "page {seed}"),
            SeedAreaKind::Prefix => write!(f, "folder {}{}", seed.host_key(), folder(seed.path())),
            SeedAreaKind::Host => write!(f, "host {}", seed.host_key()),
            SeedAreaKind::Domain => write!(f, "domain {}", seed.site()),
        }
    }
}

impl SeedAreas {
    /// Adds the area of a seed. The kind of the area is the seed's own scope setting or, if it has
    /// none, `usual`. A seed without settings gets no area.
    ///
    /// # Errors
    /// Fails with [`AreaConflict`] if another seed has different settings for the same area.
    pub fn add(
        &mut self,
        seed: &CanonicalUrl,
        terms: &SeedSettings,
        usual: SeedAreaKind,
    ) -> Result<(), AreaConflict> {
        if terms.is_empty() {
            return Ok(());
        }
        let area = SeedArea {
            seed: seed.clone(),
            terms: terms.clone(),
            kind: terms.scope.unwrap_or(usual),
        };
        let conflict = |other: &SeedArea, area: String| AreaConflict {
            seed: seed.clone(),
            other: other.seed.clone(),
            area,
        };
        let place = self.areas.len();
        match self.pages.entry(seed.clone()) {
            Entry::Occupied(entry) if self.areas[*entry.get()].terms == *terms => return Ok(()),
            Entry::Occupied(entry) => {
                return Err(conflict(&self.areas[*entry.get()], format!("page {seed}")));
            }
            Entry::Vacant(vacant) => vacant.insert(place),
        };
        let before = self.register(&area, place);
        let of_other = before.map(|before| &self.areas[before]);
        let settings = |terms: &SeedSettings| (terms.max_depth, terms.label.clone());
        let differs = of_other.filter(|other| settings(&other.terms) != settings(terms));
        let refusal = differs.map(|other| conflict(other, area.to_string()));
        self.areas.push(area);
        refusal.map_or(Ok(()), Err)
    }

    /// Adds an area for the redirect target of a seed (or of a seed's redirect target). The area
    /// has the same kind and settings as the seed's, unless another seed already has that area.
    /// Clones `areas` if they are shared.
    pub fn follow(areas: &mut Arc<SeedAreas>, from: &CanonicalUrl, target: &CanonicalUrl) {
        let Some(&origin) = areas.pages.get(from) else {
            return;
        };
        let areas = Arc::make_mut(areas);
        let area = SeedArea {
            seed: target.clone(),
            ..areas.areas[origin].clone()
        };
        let place = areas.areas.len();
        areas.pages.entry(target.clone()).or_insert(place);
        areas.register(&area, place);
        areas.areas.push(area);
    }

    /// Returns the area of a seed, or of a seed's redirect target.
    #[must_use]
    pub fn of_seed(&self, seed: &CanonicalUrl) -> Option<&SeedArea> {
        self.areas.get(*self.pages.get(seed)?)
    }

    /// Returns the area whose settings apply to a URL. `None` if no area contains the URL.
    #[must_use]
    pub fn find(&self, url: &CanonicalUrl) -> Option<&SeedArea> {
        if self.areas.is_empty() {
            return None;
        }
        let place = self.pages.get(url).copied();
        let place = place.or_else(|| self.place_around(url))?;
        self.areas.get(place)
    }

    /// Returns the index of the smallest folder, host or domain area that contains a URL.
    fn place_around(&self, url: &CanonicalUrl) -> Option<usize> {
        if !self.folders.is_empty() || !self.hosts.is_empty() {
            let host = url.host_key();
            let of_host = self.hosts.get(&host);
            let in_folder = self.folders.get(&host).and_then(|folders| {
                let path = url.path();
                let mut ends = path.rmatch_indices('/');
                ends.find_map(|(end, _)| folders.get(&path[..=end]))
            });
            if let Some(place) = in_folder.or(of_host) {
                return Some(*place);
            }
        }
        match self.sites.is_empty() {
            true => None,
            false => self.sites.get(&url.site()).copied(),
        }
    }

    /// Registers the area with the index `place`. If the same part of the web already has an area,
    /// returns the index of that area.
    fn register(&mut self, area: &SeedArea, place: usize) -> Option<usize> {
        let holder = match area.kind {
            SeedAreaKind::Page => return None,
            SeedAreaKind::Prefix => {
                let folders = self.folders.entry(area.seed.host_key()).or_default();
                *folders
                    .entry(folder(area.seed.path()).into_owned().into_boxed_str())
                    .or_insert(place)
            }
            SeedAreaKind::Host => *self.hosts.entry(area.seed.host_key()).or_insert(place),
            SeedAreaKind::Domain => *self.sites.entry(area.seed.site()).or_insert(place),
        };
        (holder != place).then_some(holder)
    }
}

/// Returns the folder of a seed's path: the path up to its last `/`. If a seed is directly below
/// the root and its name has no dot, as in `/products`, the seed itself is the folder. Without this
/// exception, the folder would be the whole host.
#[must_use]
pub fn folder(path: &str) -> Cow<'_, str> {
    match path.rfind('/') {
        Some(0) if path.len() > 1 && !path.contains('.') => Cow::Owned(format!("{path}/")),
        last => Cow::Borrowed(&path[..last.map_or(0, |at| at + 1)]),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crawl_weburl::{CanonicalUrl, canonicalize};

    use super::{SeedAreaKind, SeedAreas, SeedSettings};

    fn url(text: &str) -> CanonicalUrl {
        canonicalize(None, text).unwrap()
    }

    fn terms(scope: Option<SeedAreaKind>, label: &str) -> SeedSettings {
        SeedSettings {
            scope,
            max_depth: None,
            label: Some(label.into()),
        }
    }

    fn areas(seeds: &[(&str, Option<SeedAreaKind>, &str)]) -> SeedAreas {
        let mut areas = SeedAreas::default();
        for (seed, scope, label) in seeds {
            let terms = terms(*scope, label);
            areas.add(&url(seed), &terms, SeedAreaKind::Host).unwrap();
        }
        areas
    }

    #[track_caller]
    fn check(areas: &SeedAreas, at: &str, label: &str) {
        let area = areas.find(&url(at));
        let actual = area.and_then(|area| area.terms.label.as_deref());
        assert_eq!(actual.unwrap_or("none"), label, "{at}");
    }

    #[test]
    fn the_smallest_area_that_contains_a_url_decides() {
        use SeedAreaKind::{Domain, Page, Prefix};
        let areas = areas(&[
            ("https://example.org/", Some(Domain), "domain"),
            ("https://www.example.org/start", None, "host"),
            ("https://www.example.org/news/start", Some(Prefix), "news"),
            ("https://www.example.org/news/2026/", Some(Prefix), "year"),
            ("https://www.example.org/news/x?id=1", Some(Page), "one"),
            ("https://www.example.org/news/x?id=2", Some(Page), "two"),
        ]);
        for (at, label) in [
            ("http://example.org/a", "domain"),
            ("http://blog.example.org/", "domain"),
            ("http://www.example.org/", "host"),
            ("http://www.example.org/newsletter", "host"),
            ("http://www.example.org/news", "host"),
            ("http://www.example.org/news/a", "news"),
            ("http://www.example.org/news/2026", "news"),
            ("http://www.example.org/news/2026/a/b", "year"),
            ("https://www.example.org/news/x?id=1", "one"),
            ("https://www.example.org/news/x?id=2", "two"),
            ("https://www.example.org/news/x?id=3", "news"),
            // This seed is in its own area.
            ("https://www.example.org/start", "host"),
            ("http://elsewhere.example/", "none"),
        ] {
            check(&areas, at, label);
        }
        assert!(
            SeedAreas::default()
                .find(&url("http://a.example/"))
                .is_none()
        );
    }

    #[test]
    fn seeds_with_different_settings_for_one_area_are_refused() {
        let seed = url("http://a.example/x");
        let second = url("http://a.example/y");
        let mut areas = areas(&[("http://a.example/x", None, "one")]);
        // None of these seeds conflicts with the first one: their settings are equal or missing, or
        // their area is smaller.
        areas
            .add(&seed, &terms(None, "one"), SeedAreaKind::Host)
            .unwrap();
        areas
            .add(&second, &SeedSettings::default(), SeedAreaKind::Host)
            .unwrap();
        areas
            .add(&second, &terms(None, "one"), SeedAreaKind::Host)
            .unwrap();
        let third = url("http://a.example/z");
        let page = terms(Some(SeedAreaKind::Page), "two");
        areas.add(&third, &page, SeedAreaKind::Host).unwrap();
        let refused = areas
            .add(&seed, &terms(None, "two"), SeedAreaKind::Host)
            .unwrap_err();
        assert_eq!(refused.area, "page http://a.example/x");
        let last = url("http://a.example/v");
        let refused = areas
            .add(&last, &terms(None, "two"), SeedAreaKind::Host)
            .unwrap_err();
        assert_eq!(
            refused.to_string(),
            "`http://a.example/v` and `http://a.example/x` rule over the same host a.example, \
             and differ in depth, label or scope"
        );
        let kinds = [
            (SeedAreaKind::Prefix, "folder b.example/x/"),
            (SeedAreaKind::Domain, "domain b.example"),
        ];
        for (kind, area) in kinds {
            let mut areas = self::areas(&[("http://b.example/x/1", Some(kind), "one")]);
            let seed = url("http://b.example/x/2");
            let refused = areas.add(&seed, &terms(Some(kind), "two"), SeedAreaKind::Host);
            assert_eq!(refused.unwrap_err().area, area);
        }
    }

    #[test]
    fn a_redirect_target_has_its_seeds_settings_unless_another_seed_has_that_area() {
        let areas = areas(&[
            ("http://a.example/", None, "one"),
            ("http://b.example/x", None, "two"),
        ]);
        let mut areas = Arc::new(areas);
        let mut follow = |from, target| SeedAreas::follow(&mut areas, &url(from), &url(target));
        follow("http://a.example/", "https://www.a.example/");
        follow("https://www.a.example/", "https://www.a.example/en");
        // This redirect target is on the host of another seed, and that seed's settings stay in
        // force on the host.
        follow("http://a.example/", "http://b.example/y");
        follow("http://a.example/", "http://b.example/x");
        follow("http://c.example/", "http://d.example/");
        for (at, label) in [
            ("https://www.a.example/page", "one"),
            ("http://b.example/y", "one"),
            ("http://b.example/z", "two"),
            ("http://b.example/x", "two"),
            ("http://d.example/", "none"),
        ] {
            check(&areas, at, label);
        }
    }

    #[test]
    fn ten_thousand_seeds_are_looked_up_by_place() {
        let mut areas = SeedAreas::default();
        for n in 0..10_000 {
            let seed = url(&format!("http://h{}.example/{n}/", n % 100));
            let kind = Some(SeedAreaKind::Prefix);
            areas
                .add(&seed, &terms(kind, &n.to_string()), SeedAreaKind::Host)
                .unwrap();
        }
        for n in [0, 5_003, 9_999] {
            check(
                &areas,
                &format!("http://h{}.example/{n}/a/b", n % 100),
                &n.to_string(),
            );
        }
        check(&areas, "http://h1.example/0/a", "none");
    }
}
