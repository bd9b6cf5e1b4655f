//! The design of a sample: how many pages to draw, and how to divide the frame (the URLs to draw
//! from) into strata.

use crawl_weburl::CanonicalUrl;
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString};

use crate::random_walk::WalkDesign;

/// How the pages of a sample crawl are chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum SampleMethod {
    /// By drawing pages from a frame (a known set of URLs), with known probabilities.
    Draw(SampleDesign),
    /// By a random walk.
    Walk(WalkDesign),
}

/// The design of a sample: how a frame (the URLs to draw from) is built and divided into strata,
/// how many pages to draw per stratum, and the seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleDesign {
    /// The number of pages to draw per stratum. A stratum with fewer pages is drawn completely.
    pub pages: usize,
    /// How the frame is divided into strata.
    pub by: StratumRule,
    /// The random seed of the draw.
    pub seed: String,
    /// The depth of the frame. Pages fewer than this many links away from a seed are read to find
    /// the URLs of the frame. With 1, only the seeds are read. With 0, no page is read, so the
    /// frame consists of the seeds and the sitemap entries.
    pub frame_depth: u32,
}

impl Default for SampleDesign {
    fn default() -> SampleDesign {
        SampleDesign {
            pages: 100,
            by: StratumRule::Host,
            seed: "1".to_owned(),
            frame_depth: 1,
        }
    }
}

/// How a frame is divided into strata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Display, EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum StratumRule {
    /// The whole frame is one stratum, so every URL is equally likely to be drawn.
    Crawl,
    /// One stratum per host.
    Host,
    /// A stratum for each combination of host and distance from a seed, in links.
    Depth,
    /// A stratum for each combination of host and top-level folder.
    Path,
}

impl StratumRule {
    /// Returns the name of the stratum that a URL belongs to.
    pub(crate) fn stratum(self, url: &CanonicalUrl, depth: u32) -> String {
        let host = url.host_key();
        match self {
            StratumRule::Crawl => "crawl".to_owned(),
            StratumRule::Host => host.as_str().to_owned(),
            StratumRule::Depth => format!("{} depth {depth}", host.as_str()),
            StratumRule::Path => format!("{}/{}", host.as_str(), folder(url.path())),
        }
    }

    /// Returns the stratum that a small stratum is merged into, if any. All small folders of a host
    /// share one stratum, because a site may have as many folders as pages.
    pub(crate) fn pool(self, stratum: &str) -> Option<String> {
        match self {
            StratumRule::Path => {
                let host = stratum.split('/').next().unwrap_or_default();
                Some(format!("{host}/*"))
            }
            StratumRule::Crawl | StratumRule::Host | StratumRule::Depth => None,
        }
    }
}

/// Returns the top-level folder of a path, including the slash after it; empty if the path has no
/// folder.
fn folder(path: &str) -> &str {
    let inner = path.strip_prefix('/').unwrap_or(path);
    inner.find('/').map_or("", |end| &inner[..=end])
}

/// Returns the random number of a URL: the first eight bytes, big-endian, of the SHA-256 of the
/// seed, a line feed and the URL. Anyone who knows the seed can recompute it.
#[must_use]
pub fn rank(seed: &str, url: &str) -> u64 {
    let mut hash = Context::new(&SHA256);
    for part in [seed, "\n", url] {
        hash.update(part.as_bytes());
    }
    let digest = hash.finish();
    let bytes = digest.as_ref().first_chunk::<8>();
    bytes.map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use crawl_weburl::canonicalize;

    use super::{StratumRule, rank};

    #[test]
    fn a_rank_can_be_recomputed() {
        // python3 -c "import hashlib;
        // print(hashlib.sha256(b'1\nhttp://a.example/').hexdigest()[:16])"
        assert_eq!(
            format!("{:016x}", rank("1", "http://a.example/")),
            "49f0b722e8d670b9"
        );
        assert_ne!(
            rank("2", "http://a.example/"),
            rank("1", "http://a.example/")
        );
    }

    #[test]
    fn a_url_belongs_to_the_stratum_that_the_rule_names() {
        use StratumRule::{Crawl, Depth, Host, Path};
        for (rule, url, stratum) in [
            (Crawl, "http://a.example/x", "crawl"),
            (Host, "https://a.example/x", "a.example"),
            (Host, "http://127.0.0.1:81/x", "127.0.0.1:81"),
            (Depth, "http://a.example/x", "a.example depth 3"),
            (Path, "http://a.example/", "a.example/"),
            (Path, "http://a.example/about", "a.example/"),
            (Path, "http://a.example/?q=/news/", "a.example/"),
            (Path, "http://a.example/news/", "a.example/news/"),
            (Path, "http://a.example/news/2026/1", "a.example/news/"),
        ] {
            let url = canonicalize(None, url).unwrap();
            assert_eq!(rule.stratum(&url, 3), stratum);
            assert_eq!(rule.to_string().parse(), Ok(rule));
        }
        assert_eq!(Path.pool("a.example/news/").unwrap(), "a.example/*");
        assert_eq!(Depth.pool("a.example depth 3"), None);
    }
}
