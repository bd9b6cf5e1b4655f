//! The terms of single seeds, by place: a seed rules over an area, and the smallest area
//! that holds a URL decides.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc;

use crawl_weburl::{CanonicalUrl, HostKey, Site};

/// The part of the web that a seed rules over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum AreaKind {
    /// The seed alone.
    Page,
    /// Its host, and its path up to the last `/`. `/products`, directly below the root, is a folder itself.
    Prefix,
    /// Its host; http and https alike, on loopback the port counts.
    Host,
    /// Its registrable domain.
    Domain,
}

/// The settings that a seed carries of its own; what is left out is as for the whole crawl.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeedTerms {
    /// Its scope; none: its area is what the crawl's scope makes of a seed.
    pub scope: Option<AreaKind>,
    /// The number of links from a seed at which a URL of its area may lie.
    pub max_depth: Option<u32>,
    /// The name of the group that pages of its area belong to.
    pub label: Option<Arc<str>>,
}

impl SeedTerms {
    /// Returns whether it says nothing, as of a seed that is a URL alone.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == SeedTerms::default()
    }
}

/// The error where two seeds rule over the same area, and say different things of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{seed}` and `{other}` rule over the same {area}, and differ in depth, label or scope")]
pub struct AreaTaken {
    /// The seed that was refused.
    pub seed: CanonicalUrl,
    /// The one that was there before.
    pub other: CanonicalUrl,
    /// The area in words, such as `host www.example.org`.
    pub area: String,
}

/// The areas of seeds that carry settings of their own.
///
/// The smallest that holds a URL decides, and it alone: the seed itself, then the longest folder,
/// the host, the domain. So a URL's settings follow from the URL, however it was met.
#[derive(Clone, Debug, Default)]
pub struct SeedAreas {
    areas: Vec<SeedArea>,
    // Places in `areas`.
    pages: HashMap<CanonicalUrl, usize>,
    // By host and folder, which begins and ends with `/`.
    folders: HashMap<HostKey, HashMap<Box<str>, usize>>,
    hosts: HashMap<HostKey, usize>,
    sites: HashMap<Site, usize>,
}

/// The area of one seed.
#[derive(Clone, Debug)]
pub struct SeedArea {
    /// The seed, or the target of its redirect.
    pub seed: CanonicalUrl,
    /// Its terms.
    pub terms: SeedTerms,
    /// How far the area reaches.
    pub kind: AreaKind,
}

impl fmt::Display for SeedArea {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seed = &self.seed;
        match self.kind {
            AreaKind::Page => write!(f, "page {seed}"),
            AreaKind::Prefix => write!(f, "folder {}{}", seed.host_key(), folder(seed.path())),
            AreaKind::Host => write!(f, "host {}", seed.host_key()),
            AreaKind::Domain => write!(f, "domain {}", seed.site()),
        }
    }
}

impl SeedAreas {
    /// Adds the area of a seed, which reaches as far as its own scope says, or else `usual`. A seed
    /// that says nothing has none.
    ///
    /// # Errors
    /// [`AreaTaken`] where another says something else of the same area.
    pub fn add(
        &mut self,
        seed: &CanonicalUrl,
        terms: &SeedTerms,
        usual: AreaKind,
    ) -> Result<(), AreaTaken> {
        if terms.is_empty() {
            return Ok(());
        }
        let area = SeedArea {
            seed: seed.clone(),
            terms: terms.clone(),
            kind: terms.scope.unwrap_or(usual),
        };
        let taken = |other: &SeedArea, area: String| AreaTaken {
            seed: seed.clone(),
            other: other.seed.clone(),
            area,
        };
        let place = self.areas.len();
        match self.pages.entry(seed.clone()) {
            Entry::Occupied(known) if self.areas[*known.get()].terms == *terms => return Ok(()),
            Entry::Occupied(known) => {
                return Err(taken(&self.areas[*known.get()], format!("page {seed}")));
            }
            Entry::Vacant(vacant) => vacant.insert(place),
        };
        let before = self.hold(&area, place);
        let of_other = before.map(|before| &self.areas[before]);
        let says = |terms: &SeedTerms| (terms.max_depth, terms.label.clone());
        let differs = of_other.filter(|other| says(&other.terms) != says(terms));
        let refusal = differs.map(|other| taken(other, area.to_string()));
        self.areas.push(area);
        refusal.map_or(Ok(()), Err)
    }

    /// Adds the area of the target that a seed, or such a target, redirects to: of the same kind,
    /// with the same settings, where no seed rules over it already.
    /// Areas that others hold too are copied for it.
    pub fn follow(areas: &mut Arc<SeedAreas>, from: &CanonicalUrl, target: &CanonicalUrl) {
        let Some(&known) = areas.pages.get(from) else {
            return;
        };
        let areas = Arc::make_mut(areas);
        let area = SeedArea {
            seed: target.clone(),
            ..areas.areas[known].clone()
        };
        let place = areas.areas.len();
        areas.pages.entry(target.clone()).or_insert(place);
        areas.hold(&area, place);
        areas.areas.push(area);
    }

    /// The area that a seed, or the target of its redirect, has by itself.
    #[must_use]
    pub fn of_seed(&self, seed: &CanonicalUrl) -> Option<&SeedArea> {
        self.areas.get(*self.pages.get(seed)?)
    }

    /// The area that decides over a URL.
    #[must_use]
    pub fn find(&self, url: &CanonicalUrl) -> Option<&SeedArea> {
        if self.areas.is_empty() {
            return None;
        }
        let place = self.pages.get(url).copied();
        let place = place.or_else(|| self.place_around(url))?;
        self.areas.get(place)
    }

    /// The smallest area, other than a page, that holds a URL.
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

    /// Puts an area at its place, where none is yet; gives the one that is.
    fn hold(&mut self, area: &SeedArea, place: usize) -> Option<usize> {
        let found = match area.kind {
            AreaKind::Page => return None,
            AreaKind::Prefix => {
                let folders = self.folders.entry(area.seed.host_key()).or_default();
                *folders
                    .entry(folder(area.seed.path()).into_owned().into_boxed_str())
                    .or_insert(place)
            }
            AreaKind::Host => *self.hosts.entry(area.seed.host_key()).or_insert(place),
            AreaKind::Domain => *self.sites.entry(area.seed.site()).or_insert(place),
        };
        (found != place).then_some(found)
    }
}

/// Returns the folder of a seed's path: the path up to its last `/`. A seed right below the root whose name
/// has no dot, such as `/products`, is a folder itself, as its folder would be the whole host.
pub(crate) fn folder(path: &str) -> Cow<'_, str> {
    match path.rfind('/') {
        Some(0) if path.len() > 1 && !path.contains('.') => Cow::Owned(format!("{path}/")),
        last => Cow::Borrowed(&path[..last.map_or(0, |at| at + 1)]),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crawl_weburl::{CanonicalUrl, canonicalize};

    use super::{AreaKind, SeedAreas, SeedTerms};

    fn url(text: &str) -> CanonicalUrl {
        canonicalize(None, text).unwrap()
    }

    fn terms(scope: Option<AreaKind>, label: &str) -> SeedTerms {
        SeedTerms {
            scope,
            max_depth: None,
            label: Some(label.into()),
        }
    }

    fn areas(seeds: &[(&str, Option<AreaKind>, &str)]) -> SeedAreas {
        let mut areas = SeedAreas::default();
        for (seed, scope, label) in seeds {
            let terms = terms(*scope, label);
            areas.add(&url(seed), &terms, AreaKind::Host).unwrap();
        }
        areas
    }

    #[track_caller]
    fn check(areas: &SeedAreas, at: &str, label: &str) {
        let found = areas.find(&url(at));
        let found = found.and_then(|area| area.terms.label.as_deref());
        assert_eq!(found.unwrap_or("none"), label, "{at}");
    }

    #[test]
    fn ours_the_smallest_area_that_holds_a_url_decides() {
        use AreaKind::{Domain, Page, Prefix};
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
            // A seed belongs to itself.
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
    fn ours_two_seeds_that_say_different_things_of_one_area_are_refused() {
        let seed = url("http://a.example/x");
        let other = url("http://a.example/y");
        let mut areas = areas(&[("http://a.example/x", None, "one")]);
        // The same is no contradiction, and neither is a seed that says nothing, or a smaller area.
        areas
            .add(&seed, &terms(None, "one"), AreaKind::Host)
            .unwrap();
        areas
            .add(&other, &SeedTerms::default(), AreaKind::Host)
            .unwrap();
        areas
            .add(&other, &terms(None, "one"), AreaKind::Host)
            .unwrap();
        let third = url("http://a.example/z");
        let page = terms(Some(AreaKind::Page), "two");
        areas.add(&third, &page, AreaKind::Host).unwrap();
        let refused = areas
            .add(&seed, &terms(None, "two"), AreaKind::Host)
            .unwrap_err();
        assert_eq!(refused.area, "page http://a.example/x");
        let last = url("http://a.example/v");
        let refused = areas
            .add(&last, &terms(None, "two"), AreaKind::Host)
            .unwrap_err();
        assert_eq!(
            refused.to_string(),
            "`http://a.example/v` and `http://a.example/x` rule over the same host a.example, \
             and differ in depth, label or scope"
        );
        let kinds = [
            (AreaKind::Prefix, "folder b.example/x/"),
            (AreaKind::Domain, "domain b.example"),
        ];
        for (kind, area) in kinds {
            let mut areas = self::areas(&[("http://b.example/x/1", Some(kind), "one")]);
            let seed = url("http://b.example/x/2");
            let refused = areas.add(&seed, &terms(Some(kind), "two"), AreaKind::Host);
            assert_eq!(refused.unwrap_err().area, area);
        }
    }

    #[test]
    fn ours_the_target_of_a_redirect_has_what_its_seed_says_where_no_other_rules() {
        let areas = areas(&[
            ("http://a.example/", None, "one"),
            ("http://b.example/x", None, "two"),
        ]);
        let mut areas = Arc::new(areas);
        let mut follow = |from, target| SeedAreas::follow(&mut areas, &url(from), &url(target));
        follow("http://a.example/", "https://www.a.example/");
        follow("https://www.a.example/", "https://www.a.example/en");
        // The host of another seed stays that one's.
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
    fn ours_ten_thousand_seeds_are_looked_up_by_their_place() {
        let mut areas = SeedAreas::default();
        for n in 0..10_000 {
            let seed = url(&format!("http://h{}.example/{n}/", n % 100));
            let kind = Some(AreaKind::Prefix);
            areas
                .add(&seed, &terms(kind, &n.to_string()), AreaKind::Host)
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
