//! The cross-submission rule of sitemaps.org: a sitemap may list pages of another host only if the
//! robots.txt of that host names the sitemap.

use crawl_fetcher::robots::CompiledRobots;
use crawl_frontier::{Frontier, FrontierError, Lease, NotFetchedReason, Reason};
use crawl_weburl::CanonicalUrl;

use crate::priority::{Priority, is_foreign_entry, may_list};

/// Maximum number of indexes and redirects that led to a sitemap.
/// Beyond the limit: the sitemap counts as not named.
const MAX_PARENTS: usize = 32;

/// Returns the exclusion of a page that only a sitemap of another host lists, if the page's own
/// host does not vouch for that sitemap. `None` for any other URL. If the host vouches for the
/// sitemap, the lease gets the priority of a linked page.
///
/// A host vouches for a sitemap if its robots.txt names the sitemap, or an index or redirect that
/// led to the sitemap. A host also vouches if any of these files is on the host itself. `rules` are
/// the rules in the robots.txt of the page's origin.
///
/// # Errors
/// The frontier can't be read.
pub(super) fn judge(
    lease: &mut Lease,
    rules: &CompiledRobots,
    frontier: &dyn Frontier,
) -> Result<Option<NotFetchedReason>, FrontierError> {
    if !is_foreign_entry(lease) {
        return Ok(None);
    }
    let host = lease.url.host_key();
    let mut parent = lease.via.clone();
    for _ in 0..MAX_PARENTS {
        let Some(sitemap) = parent else { break };
        if may_list(&sitemap.host_key(), &host) || rules.names_sitemap(&sitemap) {
            lease.priority = Priority::LINK.byte();
            return Ok(None);
        }
        parent = frontier.found_on(&sitemap)?;
    }
    let sitemap = lease.via.as_ref().map_or("a sitemap", CanonicalUrl::as_str);
    Ok(Some(NotFetchedReason {
        rule: Some(format!(
            "{} does not name {sitemap}",
            lease.origin.robots_url()
        )),
        ..NotFetchedReason::of(Reason::Sitemap)
    }))
}

#[cfg(test)]
mod tests {
    use crawl_frontier::{
        Frontier as _, LastVisit, LeaseOutcome, MemoryFrontier, Reason, UrlKind, UrlToAdmit,
    };
    use crawl_weburl::canonicalize;

    use super::super::fixtures::{context, leased};
    use super::judge;
    use crate::priority::Priority;

    /// Judges a page of `a.example` with these `robots`. The page is listed in the sitemap
    /// `http://cdn.example/map.xml`, which was found through `parents`, nearest first.
    fn refusal(parents: &[&str], robots: &'static str) -> Option<(Reason, String)> {
        let url = |text: &str| canonicalize(None, text).unwrap();
        let frontier = MemoryFrontier::new();
        let chain: Vec<_> = ["http://cdn.example/map.xml"]
            .iter()
            .chain(parents)
            .map(|text| url(text))
            .collect();
        for pair in chain.windows(2).rev() {
            let sitemap = UrlToAdmit {
                kind: UrlKind::Sitemap,
                ..UrlToAdmit::link(pair[0].clone(), 0, pair[1].clone())
            };
            let lease = leased(&frontier, sitemap);
            let visit = LastVisit {
                at: 1,
                due: 2,
                bytes: Vec::new(),
            };
            let mut transaction = frontier.begin().unwrap();
            let fetched = LeaseOutcome::Fetched { status: 200 };
            transaction.settle_until(lease, fetched, visit).unwrap();
            transaction.commit().unwrap();
        }
        let entry = UrlToAdmit {
            priority: Priority::FOREIGN_ENTRY.byte(),
            ..UrlToAdmit::link(url("http://a.example/page"), 1, chain[0].clone())
        };
        let mut lease = leased(&frontier, entry);
        let rules = context(&lease, robots).rules;
        let refusal = judge(&mut lease, &rules, &frontier).unwrap();
        let is_as_linked = lease.priority == Priority::LINK.byte();
        assert_eq!(is_as_linked, refusal.is_none());
        refusal.map(|exclusion| (exclusion.reason, exclusion.rule.unwrap()))
    }

    #[test]
    fn sitemaps_org_cross_submits_need_the_robots_txt_of_the_listed_host() {
        let (index, moved) = ("http://cdn.example/index.xml", "http://old.example/map.xml");
        let others_robots = "http://cdn.example/robots.txt";
        for (parents, robots, is_allowed) in [
            (&[others_robots][..], "", false),
            (
                &[others_robots],
                "Sitemap: http://cdn.example/other.xml",
                false,
            ),
            (
                &[others_robots],
                "Sitemap: http://cdn.example/map.xml",
                true,
            ),
            (
                &[others_robots],
                "Disallow: /x\nsitemap: HTTP://CDN.example/map.xml",
                true,
            ),
            // The sitemap was found through an index and a redirect.
            (&[index, moved, others_robots], "", false),
            (
                &[index, moved, others_robots],
                "Sitemap: http://cdn.example/index.xml",
                true,
            ),
            (
                &[index, moved, others_robots],
                "Sitemap: http://old.example/map.xml",
                true,
            ),
            // The sitemap was found through a file on the page's own host. `www.` makes no
            // difference, but other subdomains are other hosts.
            (&["http://a.example/robots.txt"], "", true),
            (&[index, "http://a.example/sitemap.xml"], "", true),
            (&["http://www.a.example/robots.txt"], "", true),
            (&["http://blog.a.example/robots.txt"], "", false),
        ] {
            let refusal = refusal(parents, robots);
            let text = "http://a.example/robots.txt does not name http://cdn.example/map.xml";
            let expected = (!is_allowed).then(|| (Reason::Sitemap, text.to_owned()));
            assert_eq!(refusal, expected, "{parents:?} {robots}");
        }
    }
}
