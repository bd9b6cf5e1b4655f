//! Searches for links to broken pages, and to redirects that lead to broken pages.

use std::collections::{BTreeSet, HashMap};

use crawl_weburl::CanonicalUrl;

use super::latest_rows::LatestRows;
use super::redirect_targets::{MAX_CHAIN, RedirectTargets};
use super::{BrokenLink, BrokenPage};
use crate::link_spelling_rules::LinkSpellingRules;

/// The targets to search for, and the links found.
#[derive(Debug)]
pub(super) struct BrokenLinkSearch<'a> {
    targets: HashMap<String, LinkToBrokenPage>,
    /// The links to each broken page.
    links: Vec<BTreeSet<BrokenLink>>,
    replacement_rules: LinkSpellingRules,
    latest: &'a LatestRows,
}

#[derive(Clone, Debug)]
struct LinkToBrokenPage {
    /// The index of the broken page that a target leads to.
    page: usize,
    /// The redirects from the target to the broken page, starting with the target itself. Empty if
    /// the target is the broken page.
    through: Vec<String>,
}

impl<'a> BrokenLinkSearch<'a> {
    pub(super) fn new(
        pages: &[BrokenPage],
        redirects: &RedirectTargets,
        replacement_rules: LinkSpellingRules,
        latest: &'a LatestRows,
    ) -> BrokenLinkSearch<'a> {
        let backwards = redirects.backwards();
        let mut targets = HashMap::new();
        for (page, broken) in pages.iter().enumerate() {
            let target = LinkToBrokenPage {
                page,
                through: Vec::new(),
            };
            let mut open = vec![(broken.url.as_str(), target)];
            while let Some((url, target)) = open.pop() {
                targets.insert(url.to_owned(), target.clone());
                let before = backwards.get(url).into_iter().flatten();
                for from in before.filter(|from| !targets.contains_key(**from)) {
                    let chain = [(*from).to_owned()].into_iter();
                    let through = chain.chain(target.through.iter().cloned()).collect();
                    if target.through.len() < MAX_CHAIN {
                        open.push((from, LinkToBrokenPage { page, through }));
                    }
                }
            }
        }
        BrokenLinkSearch {
            targets,
            links: vec![BTreeSet::new(); pages.len()],
            replacement_rules,
            latest,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Adds a link of a page if it leads to a broken page.
    pub(super) fn link(
        &mut self,
        page: &str,
        to: &CanonicalUrl,
        rel: impl FnOnce() -> Option<String>,
        text: Option<&str>,
    ) {
        let target = match self.targets.get(to.as_str()) {
            Some(target) => target,
            None => {
                let is_known = |url: &str| self.latest.knows(url) || self.targets.contains_key(url);
                let replacement = self.replacement_rules.fetched_as(to, is_known);
                match replacement.and_then(|url| self.targets.get(url.as_str())) {
                    Some(target) => target,
                    None => return,
                }
            }
        };
        self.links[target.page].insert(BrokenLink {
            page: page.to_owned(),
            text: text.map(str::to_owned),
            rel: rel(),
            through: target.through.clone(),
        });
    }

    /// Adds links that the search may have missed. For each target, adds a link from the page that
    /// first led to it (`via`), unless such a link was found, or `may_stand(via)` returns false
    /// because the page can't contain one any more.
    pub(super) fn add_vias(
        &mut self,
        pages: &[BrokenPage],
        redirects: &RedirectTargets,
        may_stand: impl Fn(&str) -> bool,
    ) {
        let targets = &self.targets;
        for target in targets.values() {
            let via = match target.through.first() {
                Some(redirect) => redirects.via(redirect),
                None => pages.get(target.page).and_then(|page| page.via.as_deref()),
            };
            // Skip a `via` page that is itself a target of this search. If it redirects, it is a
            // part of the chain, and another iteration handles the page that led to it.
            let page = via.filter(|via| !targets.contains_key(*via) && may_stand(via));
            let (page, through) = match (page, target.through.split_first()) {
                (Some(page), _) => (page, &target.through[..]),
                // The target is a seed that redirects, and nothing links to the seed. So list the
                // seed itself.
                (None, Some((seed, rest))) if via.is_none() => (seed.as_str(), rest),
                _ => continue,
            };
            let links = &mut self.links[target.page];
            let is_known = |link: &BrokenLink| link.page == page && link.through == through;
            if !links.iter().any(is_known) {
                links.insert(BrokenLink {
                    page: page.to_owned(),
                    through: through.to_vec(),
                    ..BrokenLink::default()
                });
            }
        }
    }

    /// Returns the links to each broken page.
    pub(super) fn into_links(self) -> impl Iterator<Item = Vec<BrokenLink>> {
        let links = self.links.into_iter();
        links.map(|links| links.into_iter().collect())
    }
}
