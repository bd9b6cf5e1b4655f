//! Detection of redirect loops.

use std::collections::{HashMap, HashSet};

use crawl_frontier::{Frontier, FrontierError, KnownState};
use crawl_weburl::CanonicalUrl;

use crate::revisit::visit::PreviousVisit;

/// Maximum redirects to follow in search of a redirect loop. `--max-redirects` is at most 255.
/// Beyond the limit: not reported as a loop.
const MAX_HOPS: usize = 256;

/// The redirects settled in the current group. They are kept here because the frontier returns a
/// redirect only after its commit.
#[derive(Debug, Default)]
pub(crate) struct UncommittedRedirects(HashMap<CanonicalUrl, CanonicalUrl>);

impl UncommittedRedirects {
    /// Records that `url` redirects to `target`. Returns whether this closes a loop that leads back
    /// to `url`.
    ///
    /// Each loop is reported once, at the redirect that is settled last. A redirect that only leads
    /// into a loop isn't reported, because it depends on chance whether the loop is known by then.
    pub(crate) fn closes_loop(
        &mut self,
        frontier: &dyn Frontier,
        url: &CanonicalUrl,
        target: &CanonicalUrl,
    ) -> Result<bool, FrontierError> {
        self.0.insert(url.clone(), target.clone());
        let mut seen = HashSet::from([url.clone()]);
        let mut next = Some(target.clone());
        while let Some(at) = next.filter(|_| seen.len() < MAX_HOPS) {
            if seen.contains(&at) {
                return Ok(at == *url);
            }
            next = match self.0.get(&at) {
                Some(target) => Some(target.clone()),
                None => settled_target(frontier, &at)?,
            };
            seen.insert(at);
        }
        Ok(false)
    }
}

/// Returns the target of `url` if it redirected at its last visit. `None` if it did not, or if it
/// is due again in this round.
fn settled_target(
    frontier: &dyn Frontier,
    url: &CanonicalUrl,
) -> Result<Option<CanonicalUrl>, FrontierError> {
    match frontier.known(url)?.map(|known| known.state) {
        Some(KnownState::Fetched { status: 300..=399 }) => {}
        _ => return Ok(None),
    }
    let past = frontier.visit(url)?.as_ref().and_then(PreviousVisit::read);
    Ok(past.and_then(|past| past.redirect()))
}

#[cfg(test)]
mod tests {
    use crawl_frontier::MemoryFrontier;
    use crawl_weburl::canonicalize;

    use super::UncommittedRedirects;

    /// Settles redirects in order, in one commit group. Returns the URLs whose redirect closes a
    /// loop.
    fn loops(redirects: &[(&str, &str)]) -> Vec<String> {
        let url = |name: &str| canonicalize(None, &format!("http://{name}.example/")).unwrap();
        let frontier = MemoryFrontier::new();
        let mut settled = UncommittedRedirects::default();
        let mut looping = Vec::new();
        for (from, to) in redirects {
            let is_loop = settled.closes_loop(&frontier, &url(from), &url(to));
            if is_loop.unwrap() {
                looping.push((*from).to_owned());
            }
        }
        looping
    }

    #[test]
    fn the_redirect_that_closes_a_loop_is_reported() {
        let none: [&str; 0] = [];
        assert_eq!(loops(&[("a", "b"), ("b", "c")]), none);
        assert_eq!(loops(&[("a", "a")]), ["a"]);
        assert_eq!(loops(&[("a", "b"), ("b", "a")]), ["b"]);
        // Only the redirect that is settled last is reported. A redirect from outside the loop is
        // not, whether it is settled before or after the loop.
        let three = [("d", "b"), ("c", "a"), ("a", "b"), ("b", "c"), ("e", "d")];
        assert_eq!(loops(&three), ["b"]);
    }

    #[test]
    fn the_longest_chain_has_an_end() {
        let names: Vec<String> = (0..1000).map(|number| format!("h{number}")).collect();
        let chain = names.iter().zip(&names[1..]);
        let chain: Vec<_> = chain
            .map(|(from, to)| (from.as_str(), to.as_str()))
            .collect();
        let backwards: Vec<_> = chain.into_iter().rev().collect();
        assert!(loops(&backwards).is_empty());
    }
}
