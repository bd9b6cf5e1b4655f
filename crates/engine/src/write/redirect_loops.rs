//! Redirects that lead back to themselves.

use std::collections::{HashMap, HashSet};

use crawl_frontier::{Frontier, FrontierError, KnownState};
use crawl_weburl::CanonicalUrl;

use crate::revisit::visit::PreviousVisit;

/// Redirects that are followed to see whether they come to an end. `--max-redirects` is 255 at
/// most.
const MAX_HOPS: usize = 256;

/// The redirects that one group settles. The frontier tells of them only once they are committed.
#[derive(Debug, Default)]
pub(crate) struct SettledRedirects(HashMap<CanonicalUrl, CanonicalUrl>);

impl SettledRedirects {
    /// Takes in that `url` redirects to `target`, and says whether whoever follows it comes back to
    /// `url`. So that is said once of each loop, of the redirect that is settled last. One that
    /// leads into a loop from outside is no part of it: whether the loop is known by then would be
    /// chance.
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

/// The target of a URL when it was visited last. What is to be visited in this round has yet to
/// say.
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

    use super::SettledRedirects;

    /// Settles redirects in one group; the URLs that are said to lead round.
    fn loops(redirects: &[(&str, &str)]) -> Vec<String> {
        let url = |name: &str| canonicalize(None, &format!("http://{name}.example/")).unwrap();
        let frontier = MemoryFrontier::new();
        let mut settled = SettledRedirects::default();
        let mut found = Vec::new();
        for (from, to) in redirects {
            let is_loop = settled.closes_loop(&frontier, &url(from), &url(to));
            if is_loop.unwrap() {
                found.push((*from).to_owned());
            }
        }
        found
    }

    #[test]
    fn ours_the_redirect_that_closes_a_loop_says_so() {
        let none: [&str; 0] = [];
        assert_eq!(loops(&[("a", "b"), ("b", "c")]), none);
        assert_eq!(loops(&[("a", "a")]), ["a"]);
        assert_eq!(loops(&[("a", "b"), ("b", "a")]), ["b"]);
        // Whichever is settled last, and nothing that leads into the loop, before or after.
        let three = [("d", "b"), ("c", "a"), ("a", "b"), ("b", "c"), ("e", "d")];
        assert_eq!(loops(&three), ["b"]);
    }

    #[test]
    fn ours_the_longest_chain_comes_to_an_end() {
        let names: Vec<String> = (0..1000).map(|number| format!("h{number}")).collect();
        let chain = names.iter().zip(&names[1..]);
        let chain: Vec<_> = chain
            .map(|(from, to)| (from.as_str(), to.as_str()))
            .collect();
        let backwards: Vec<_> = chain.into_iter().rev().collect();
        assert!(loops(&backwards).is_empty());
    }
}
