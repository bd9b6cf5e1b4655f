//! Finds mirrors: origins that serve the same pages under the same paths as another origin.

use std::collections::HashMap;

use crawl_weburl::{CanonicalUrl, Origin, canonicalize};

use super::page_fingerprint::PageFingerprint;
use super::recent_map::RecentMap;
use super::stable_hash;

/// Number of pairs of equal pages that show that an origin is a mirror, if no pair of pages at the
/// same path was unequal.
const PAIRS: u32 = 8;
/// Maximum number of recent paths to compare for mirrors.
/// Beyond the limit: the oldest are forgotten.
const MAX_PATHS: usize = 16_384;
/// Maximum number of origins that are compared at one path.
const MAX_ORIGINS: usize = 4;
/// Maximum number of pairs of origins whose equal pages are counted.
const MAX_PAIRS: usize = 1024;
/// Maximum number of pairs of origins to remember because a page differed.
/// Beyond the limit: the oldest are forgotten.
const MAX_UNEQUAL_PAIRS: usize = 16_384;
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

/// The evidence that some origins mirror others: the pages that they serve at equal paths.
#[derive(Debug)]
pub(super) struct MirrorTracker {
    /// The pages at each path, by the hash of path and query.
    paths: RecentMap<Vec<KnownPage>>,
    pairs: OriginPairs,
}

/// The results of comparing the pages of pairs of origins.
#[derive(Debug)]
struct OriginPairs {
    /// The numbers of equal pages of pairs of origins without an unequal page. The first key is the
    /// mirror. The second key is the other origin, whose page was seen first.
    equal: HashMap<Origin, HashMap<Origin, u32>>,
    /// The number of pairs in `equal`.
    count: usize,
    /// Pairs of origins with an unequal page, by the hash of both origins.
    unequal: RecentMap<()>,
}

impl Default for MirrorTracker {
    fn default() -> MirrorTracker {
        MirrorTracker {
            paths: RecentMap::new(MAX_PATHS),
            pairs: OriginPairs {
                equal: HashMap::new(),
                count: 0,
                unequal: RecentMap::new(MAX_UNEQUAL_PAIRS),
            },
        }
    }
}

impl MirrorTracker {
    /// Records a fetched page. Returns whether the page changes the evidence on which
    /// [`twin`](Self::twin) depends.
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
        let mut is_changed = false;
        for known in here.iter() {
            let bits = (known.simhash ^ gist.simhash).count_ones();
            is_changed |= match known.text == gist.text || bits <= NEAR_BITS {
                true => self.pairs.note_equal(&origin, &known.origin),
                false => self.pairs.note_unequal(&origin, &known.origin),
            };
        }
        if here.len() < MAX_ORIGINS {
            here.push(KnownPage {
                origin,
                text: gist.text,
                simhash: gist.simhash,
            });
        }
        is_changed
    }

    /// Returns the URL of the same page on the origin that the URL's origin mirrors, and the reason
    /// for which the URL is deferred. `None` if the origin is not a mirror, or if the other URL would
    /// be too long.
    pub(super) fn twin(&self, url: &CanonicalUrl) -> Option<(CanonicalUrl, String)> {
        if self.pairs.equal.is_empty() {
            return None;
        }
        let pairs = self.pairs.equal.get(&url.origin())?;
        let of = pairs.iter().filter(|(_, same)| **same >= PAIRS);
        let (of, same) = of.min_by_key(|(of, _)| of.as_str())?;
        let reason = format!("{MIRROR_OF}{of}: {same} of {same} pages were the same");
        Some((page_at(of.as_str(), url)?, reason))
    }
}

impl OriginPairs {
    /// Counts a page that `mirror` and `of` have in common. Returns whether it was counted.
    fn note_equal(&mut self, mirror: &Origin, of: &Origin) -> bool {
        if self.unequal.get(pair_key(mirror, of)).is_some() {
            return false;
        }
        let pairs = self.equal.get_mut(mirror);
        if let Some(same) = pairs.and_then(|pairs| pairs.get_mut(of)) {
            *same = same.saturating_add(1);
            return true;
        }
        let has_room = self.count < MAX_PAIRS;
        if has_room {
            self.count += 1;
            let pairs = self.equal.entry(mirror.clone()).or_default();
            pairs.insert(of.clone(), 1);
        }
        has_room
    }

    /// Records that two origins differ at a path, so that neither mirrors the other. Returns
    /// whether they had equal pages.
    fn note_unequal(&mut self, a: &Origin, b: &Origin) -> bool {
        self.unequal.entry(pair_key(a, b), || ());
        let before = self.count;
        for (mirror, of) in [(a, b), (b, a)] {
            if let Some(pairs) = self.equal.get_mut(mirror)
                && pairs.remove(of).is_some()
            {
                self.count -= 1;
                if pairs.is_empty() {
                    self.equal.remove(mirror);
                }
            }
        }
        self.count != before
    }
}

/// Returns the hash of two origins in either order.
fn pair_key(a: &Origin, b: &Origin) -> u64 {
    let (a, b) = (a.as_str(), b.as_str());
    stable_hash::of_all(&[a.min(b), a.max(b)])
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
    use std::ops::Range;

    use crawl_weburl::{MAX_URL_BYTES, canonicalize};
    use expect_test::{Expect, expect};

    use super::{MAX_ORIGINS, MAX_PAIRS, MIN_WORDS, MirrorTracker, PAIRS, PageFingerprint};

    /// Fetches pages `0..pages` of two origins. The texts of the two origins differ on the pages
    /// `differs`.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "expectations are written in place"
    )]
    fn check(pages: u32, differs: Range<u32>, expect: Expect) {
        let mut mirrors = MirrorTracker::default();
        for (origin, changed) in [("http://a.example", 0..0), ("http://b.example", differs)] {
            for n in 0..pages {
                let url = canonicalize(None, &format!("{origin}/p{n}")).unwrap();
                let word = if changed.contains(&n) { "two" } else { "one" };
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
        assert_eq!(mirrors.pairs.equal.len(), MAX_PAIRS);
    }

    #[test]
    fn an_origin_with_the_pages_of_another_is_a_mirror() {
        check(
            9,
            0..0,
            expect!["http://a.example/x?y: mirror of http://a.example: 9 of 9 pages were the same"],
        );
        check(
            8,
            0..0,
            expect!["http://a.example/x?y: mirror of http://a.example: 8 of 8 pages were the same"],
        );
        check(7, 0..0, expect!["none"]);
        // One unequal page shows that the origin is not a mirror, whenever it is seen.
        check(20, 19..20, expect!["none"]);
        check(20, 0..1, expect!["none"]);
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
                mirrors.pairs.equal.len(),
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
        assert_eq!(mirrors.pairs.equal[&b.origin()][&a.origin()], 1);
        let f = url("http://f.example/").origin();
        assert_eq!(mirrors.pairs.equal[&f].len(), MAX_ORIGINS);
    }
}
