//! Finds mirrors: origins that serve the same pages under the same paths as another origin.

use std::collections::HashMap;

use crawl_weburl::{CanonicalUrl, Origin, canonicalize};

use super::page_fingerprint::PageFingerprint;
use super::recent_map::RecentMap;
use super::stable_hash;

/// Number of pairs of equal pages that show that an origin is a mirror. A pair of unequal pages
/// that comes after the first equal pair prevents this.
const PAIRS: u32 = 8;
/// Maximum number of recent paths to compare for mirrors.
/// Beyond the limit: the oldest are forgotten.
const MAX_PATHS: usize = 16_384;
/// Maximum number of origins that are compared at one path.
const MAX_ORIGINS: usize = 4;
/// Maximum number of pairs of origins that are compared.
const MAX_PAIRS: usize = 1024;
/// The minimum number of words of a page that is compared. Pages with fewer words resemble too many
/// other pages.
const MIN_WORDS: u32 = 20;
/// Maximum number of differing bits between the simhashes of two pages. Up to this number the pages
/// count as one page fetched twice.
const NEAR_BITS: u32 = 3;
/// The beginning of the reason why a page of a mirror is deferred. The mirrored origin follows.
const MIRROR_OF: &str = "mirror of ";

#[derive(Debug)]
struct KnownPage {
    origin: Origin,
    text: u64,
    simhash: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    same: u32,
    different: u32,
}

/// The evidence that some origins mirror others: the pages that they serve at equal paths.
#[derive(Debug)]
pub(super) struct MirrorTracker {
    /// The pages at each path, by the hash of path and query.
    paths: RecentMap<Vec<KnownPage>>,
    /// Pairs of origins with an equal page. The first key is the mirror. The second key is the
    /// other origin, whose page was seen first.
    pairs: HashMap<Origin, HashMap<Origin, Pair>>,
    compared: usize,
}

impl Default for MirrorTracker {
    fn default() -> MirrorTracker {
        MirrorTracker {
            paths: RecentMap::new(MAX_PATHS),
            pairs: HashMap::new(),
            compared: 0,
        }
    }
}

impl MirrorTracker {
    /// Records a fetched page. Returns whether the page is evidence for or against its origin being
    /// a mirror of another origin.
    pub(super) fn learn(&mut self, url: &CanonicalUrl, gist: &PageFingerprint) -> bool {
        if gist.words < MIN_WORDS {
            return false;
        }
        let key = stable_hash::of(url.path_and_query().as_bytes());
        let origin = url.origin();
        let here = self.paths.entry(key, Vec::new);
        if here.iter().any(|known| known.origin == origin) {
            return false;
        }
        let mut is_compared = false;
        for known in here.iter() {
            let bits = (known.simhash ^ gist.simhash).count_ones();
            let same = known.text == gist.text || bits <= NEAR_BITS;
            let of_mirror = self.pairs.get_mut(&origin);
            match of_mirror.and_then(|pairs| pairs.get_mut(&known.origin)) {
                Some(pair) => {
                    is_compared = true;
                    let count = match same {
                        true => &mut pair.same,
                        false => &mut pair.different,
                    };
                    *count = count.saturating_add(1);
                }
                None if same && self.compared < MAX_PAIRS => {
                    self.compared += 1;
                    is_compared = true;
                    let pairs = self.pairs.entry(origin.clone()).or_default();
                    pairs.insert(
                        known.origin.clone(),
                        Pair {
                            same: 1,
                            different: 0,
                        },
                    );
                }
                None => {}
            }
        }
        if here.len() < MAX_ORIGINS {
            here.push(KnownPage {
                origin,
                text: gist.text,
                simhash: gist.simhash,
            });
        }
        is_compared
    }

    /// Returns the URL of the same page on the origin that the URL's origin mirrors, and the
    /// reason. `None` if the origin is not a mirror, or if the other URL would be too long.
    pub(super) fn twin(&self, url: &CanonicalUrl) -> Option<(CanonicalUrl, String)> {
        if self.pairs.is_empty() {
            return None;
        }
        let pairs = self.pairs.get(&url.origin())?;
        let is_mirror = |pair: &Pair| pair.same >= PAIRS && pair.different == 0;
        let of = pairs.iter().filter(|(_, pair)| is_mirror(pair));
        let (of, pair) = of.min_by_key(|(of, _)| of.as_str())?;
        let same = pair.same;
        let reason = format!("{MIRROR_OF}{of}: {same} of {same} pages were the same");
        Some((page_at(of.as_str(), url)?, reason))
    }
}

/// Returns the copy of a page on the mirrored origin. `rule` is the reason why the page is
/// deferred, as in [`UrlDisposition::Mirror`](crate::UrlDisposition::Mirror). `None` for other
/// reasons.
#[must_use]
pub fn mirrored_page(url: &CanonicalUrl, rule: &str) -> Option<CanonicalUrl> {
    let (origin, _) = rule.strip_prefix(MIRROR_OF)?.split_once(": ")?;
    page_at(origin, url)
}

/// Returns the URL with the path and query of `url` on another origin. `None` if it is too long.
fn page_at(origin: &str, url: &CanonicalUrl) -> Option<CanonicalUrl> {
    canonicalize(None, &format!("{origin}{}", url.path_and_query())).ok()
}

#[cfg(test)]
mod tests {
    use crawl_weburl::{MAX_URL_BYTES, canonicalize};
    use expect_test::{Expect, expect};

    use super::{MAX_ORIGINS, MAX_PAIRS, MIN_WORDS, MirrorTracker, PAIRS, PageFingerprint};

    /// Fetches pages `0..pages` of two origins. From page `differs` on, the texts of the two
    /// origins differ.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "expectations are written in place"
    )]
    fn check(pages: u32, differs: u32, expect: Expect) {
        let mut mirrors = MirrorTracker::default();
        for (origin, first_changed) in [
            ("http://a.example", u32::MAX),
            ("http://b.example", differs),
        ] {
            for n in 0..pages {
                let url = canonicalize(None, &format!("{origin}/p{n}")).unwrap();
                let word = if n < first_changed { "one" } else { "two" };
                let text: Vec<String> = (0..40).map(|k| format!("{word}{n}x{k}")).collect();
                mirrors.learn(&url, &PageFingerprint::of_markup(&text.join(" "), &url));
            }
        }
        let url = |text| canonicalize(None, text).unwrap();
        assert_eq!(mirrors.twin(&url("http://a.example/x")), None);
        let twin = mirrors.twin(&url("http://b.example/x?y"));
        expect.assert_eq(&twin.map_or("none".to_owned(), |(url, why)| format!("{url}: {why}")));
    }

    #[test]
    fn pairs_of_origins_are_bounded() {
        let mut mirrors = MirrorTracker::default();
        let text = "so many words that it is like no other page ".repeat(3);
        for n in 0..MAX_PAIRS + 5 {
            for origin in ["a", "b"] {
                let url = format!("http://{origin}{n}.example/{n}");
                let url = canonicalize(None, &url).unwrap();
                mirrors.learn(&url, &PageFingerprint::of_markup(&text, &url));
            }
        }
        assert_eq!(mirrors.pairs.len(), MAX_PAIRS);
    }

    #[test]
    fn an_origin_with_the_pages_of_another_is_a_mirror() {
        check(
            9,
            9,
            expect!["http://a.example/x?y: mirror of http://a.example: 9 of 9 pages were the same"],
        );
        check(
            8,
            8,
            expect!["http://a.example/x?y: mirror of http://a.example: 8 of 8 pages were the same"],
        );
        check(7, 9, expect!["none"]);
        check(20, 19, expect!["none"]);
    }

    #[test]
    fn a_url_that_would_be_too_long_on_the_mirrored_origin_has_no_twin() {
        let mut mirrors = MirrorTracker::default();
        for origin in ["http://mirrored.example", "http://b.example"] {
            for n in 0..PAIRS {
                let url = canonicalize(None, &format!("{origin}/{n}")).unwrap();
                let text: Vec<String> = (0..40).map(|k| format!("word{n}x{k}")).collect();
                mirrors.learn(&url, &PageFingerprint::of_markup(&text.join(" "), &url));
            }
        }
        for (bytes, has_twin) in [(MAX_URL_BYTES - 7, true), (MAX_URL_BYTES, false)] {
            let start = "http://b.example/";
            let url = format!("{start}{}", "x".repeat(bytes - start.len()));
            let url = canonicalize(None, &url).unwrap();
            assert_eq!(mirrors.twin(&url).is_some(), has_twin, "{bytes}");
        }
    }

    #[test]
    fn pages_are_equal_if_their_texts_are_nearly_equal() {
        let url = |text: &str| canonicalize(None, text).unwrap();
        let (a, b) = (url("http://a.example/p"), url("http://b.example/p"));
        let text: String = (0..MIN_WORDS).map(|n| format!("word{n} ")).collect();
        let page = PageFingerprint::of_markup(&text, &a);
        let changed = |bits: u64, words: u32| {
            let mut changed_page = page.clone();
            (changed_page.text, changed_page.simhash, changed_page.words) =
                (page.text + 1, page.simhash ^ bits, words);
            changed_page
        };
        for (changed_page, is_same) in [
            (page.clone(), true),
            (changed(0b111, MIN_WORDS), true),
            (changed(0b1111, MIN_WORDS), false),
            (changed(0, MIN_WORDS - 1), false),
        ] {
            let mut mirrors = MirrorTracker::default();
            mirrors.learn(&a, &page);
            mirrors.learn(&b, &changed_page);
            assert_eq!(
                mirrors.pairs.len(),
                usize::from(is_same),
                "{changed_page:?}"
            );
        }
        // A page that an origin serves again is not compared again, and at most `MAX_ORIGINS`
        // origins are compared at one path.
        let mut mirrors = MirrorTracker::default();
        for host in ["a", "b", "b", "c", "d", "e", "f"] {
            mirrors.learn(&url(&format!("http://{host}.example/p")), &page);
        }
        let of_b = &mirrors.pairs[&b.origin()][&a.origin()];
        assert_eq!((of_b.same, of_b.different), (1, 0));
        let f = url("http://f.example/").origin();
        assert_eq!(mirrors.pairs[&f].len(), MAX_ORIGINS);
    }
}
