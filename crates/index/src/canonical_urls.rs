//! Resolves canonical URLs (RFC 6596). If a page names another URL as canonical, finds the page to
//! index in its place.
//!
//! A page is replaced by the indexed page that its canonical URL leads to, through redirects and
//! further canonical URLs. If the chain ends without an indexed page (at a 404, or at a disallowed
//! or unknown URL), the last page in the chain is indexed under its own URL. If pages name each
//! other in a circle, exactly one of these pages is indexed: the one with the shortest URL, or
//! among equally short URLs, the first in byte order.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::error::IndexError;
use crate::login_redirects::{AnswerLookUp, MAX_REDIRECTS, RecordedAnswer};

/// The pages that name another URL as canonical, and the redirects that lead from canonical URLs to
/// indexed pages.
#[derive(Debug, Default)]
pub(crate) struct CanonicalUrlMap {
    /// Canonical URLs by page URL, for pages that name another URL as canonical.
    pub(crate) named: BTreeMap<String, String>,
    redirects: HashMap<String, String>,
}

impl CanonicalUrlMap {
    /// Looks up the redirects of canonical URLs that are neither indexed nor name a canonical URL
    /// themselves. Follows chains of redirects.
    pub(crate) fn look_up_redirects(
        &mut self,
        is_indexed: &mut dyn FnMut(&str) -> Result<bool, IndexError>,
        look_up: &AnswerLookUp<'_>,
    ) -> Result<(), IndexError> {
        let mut open: BTreeSet<String> = self.named.values().cloned().collect();
        for _ in 0..MAX_REDIRECTS {
            let mut unknown = BTreeSet::new();
            for url in open {
                let is_resolved =
                    self.named.contains_key(&url) || self.redirects.contains_key(&url);
                if !is_resolved && !is_indexed(&url)? {
                    unknown.insert(url);
                }
            }
            if unknown.is_empty() {
                return Ok(());
            }
            let redirects = look_up(&unknown)?.into_iter();
            let new_redirects = redirects.filter_map(|(url, answer)| match answer {
                RecordedAnswer::Redirect(to) => Some((url, to)),
                RecordedAnswer::InPlace => None,
            });
            let new_redirects: HashMap<_, _> = new_redirects.collect();
            open = new_redirects.values().cloned().collect();
            self.redirects.extend(new_redirects);
        }
        Ok(())
    }

    /// Returns a map from the URL of each page that isn't indexed itself to the URL of the page
    /// that is indexed in its place.
    pub(crate) fn resolve(
        &self,
        is_indexed: &mut dyn FnMut(&str) -> Result<bool, IndexError>,
    ) -> Result<HashMap<String, String>, IndexError> {
        // Maps each page resolved so far to the page that is indexed in its place, which may be the
        // page itself.
        let mut settled: HashMap<&str, &str> = HashMap::new();
        for start in self.named.keys() {
            let mut chain: Vec<&str> = Vec::new();
            let mut url = start.as_str();
            let indexed = loop {
                if let Some(indexed) = settled.get(url) {
                    break *indexed;
                }
                if let Some(first) = chain.iter().position(|visited| *visited == url) {
                    let chosen = self.chosen(&chain[first..]);
                    break chosen.or(self.last_page(&chain)).unwrap_or(start);
                }
                let next = match self.named.get(url) {
                    Some(next) => next,
                    None if is_indexed(url)? => break url,
                    None => match self.redirects.get(url) {
                        Some(next) => next,
                        None => break self.last_page(&chain).unwrap_or(start),
                    },
                };
                chain.push(url);
                url = next;
            };
            let pages = chain
                .into_iter()
                .filter(|url| self.named.contains_key(*url));
            settled.extend(pages.map(|url| (url, indexed)));
        }
        let gives_way = settled.into_iter().filter(|(url, indexed)| url != indexed);
        Ok(gives_way
            .map(|(url, indexed)| (url.to_owned(), indexed.to_owned()))
            .collect())
    }

    /// Returns the page to index among pages that name each other in a circle. `None` if the circle
    /// consists of redirects only.
    fn chosen<'w>(&self, circle: &[&'w str]) -> Option<&'w str> {
        let pages = circle.iter().filter(|url| self.named.contains_key(**url));
        pages.copied().min_by_key(|url| (url.len(), *url))
    }

    fn last_page<'w>(&self, chain: &[&'w str]) -> Option<&'w str> {
        let mut pages = chain.iter().rev().copied();
        pages.find(|url| self.named.contains_key(*url))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use super::CanonicalUrlMap;
    use crate::login_redirects::RecordedAnswer;

    /// Checks which pages are replaced, given `facts`: `page=canonical` is a page with a canonical
    /// URL, `from>to` is a redirect, and `page` alone is a page without a canonical URL.
    fn check(facts: &str, expected: &str) {
        let mut canonicals = CanonicalUrlMap::default();
        let (mut indexed, mut redirects) = (Vec::new(), HashMap::new());
        for fact in facts.split_whitespace() {
            if let Some((page, canonical)) = fact.split_once('=') {
                canonicals.named.insert(page.into(), canonical.into());
            } else if let Some((from, to)) = fact.split_once('>') {
                redirects.insert(from.to_owned(), to.to_owned());
            } else {
                indexed.push(fact);
            }
        }
        let mut is_indexed = |url: &str| Ok(indexed.contains(&url));
        let lookup = |urls: &std::collections::BTreeSet<String>| {
            let matching = urls.iter().filter_map(|url| redirects.get_key_value(url));
            Ok(matching
                .map(|(from, to)| (from.clone(), RecordedAnswer::Redirect(to.clone())))
                .collect())
        };
        canonicals
            .look_up_redirects(&mut is_indexed, &lookup)
            .unwrap();
        let resolved = canonicals.resolve(&mut is_indexed).unwrap();
        let resolved: BTreeMap<_, _> = resolved.into_iter().collect();
        let resolved: Vec<_> = resolved
            .iter()
            .map(|(url, to)| format!("{url}->{to}"))
            .collect();
        assert_eq!(resolved.join(" "), expected, "{facts}");
    }

    #[test]
    fn a_page_yields_only_to_an_indexed_page() {
        check("a=b b", "a->b");
        check("a=b", "");
        check("a=b b>c c", "a->c");
        check("a=b b>c c>d", "");
        check("a=b b>a", "");
        check("a=b b>c c>b", "");
        check("x=a a=b b>c c>b", "x->a");
        check("a=c b=c c>a", "b->a");
    }

    #[test]
    fn chains_end_at_their_last_page() {
        check("a=b b=c c", "a->c b->c");
        check("a=b b=c", "a->b");
        check("a=b b=c c>d d=e e>f f", "a->f b->f d->f");
        check("x=b a=b b=c", "a->b x->b");
    }

    #[test]
    fn exactly_one_page_of_a_circle_is_indexed() {
        check("a=b b=a", "b->a");
        check("bb=a a=c c=bb x=c", "bb->a c->a x->a");
        check("long=b b>long", "");
        check("long=b b>s s=long x=s", "long->s x->s");
    }

    #[test]
    fn endless_redirects_end() {
        let chain: Vec<_> = (0..100).map(|n| format!("r{n}>r{}", n + 1)).collect();
        check(&format!("a=r0 {} r100", chain.join(" ")), "");
    }
}
