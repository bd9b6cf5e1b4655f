//! The design of a sample.

use crawl_weburl::CanonicalUrl;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use strum::{Display, EnumString};

use crate::walk::WalkDesign;

/// The way in which the pages of a crawl are chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum SampleMethod {
    /// They are drawn from a frame, by known probabilities.
    Draw(SampleDesign),
    /// They are those that a random walk comes to.
    Walk(WalkDesign),
}

/// The pages to draw, and the frame they are drawn from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleDesign {
    /// Pages that are drawn in each stratum; where it has no more, all are.
    pub pages: usize,
    /// The strata.
    pub by: StratumRule,
    /// The text from which the draw follows.
    pub seed: String,
    /// Pages that are fewer links away from a seed are read to find the frame: with 1 the seeds.
    /// With 0 none is: the frame is the seeds and what sitemaps list.
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

/// The rule by which a frame is divided into strata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Display, EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum StratumRule {
    /// The whole frame is one: each URL that was found is as likely as any other.
    Crawl,
    /// Each host.
    Host,
    /// The URLs of a host that are equally many links away from a seed.
    Depth,
    /// The URLs of a host in the same folder at its root.
    Path,
}

impl StratumRule {
    /// The name of the stratum that a URL belongs to.
    pub(crate) fn stratum(self, url: &CanonicalUrl, depth: u32) -> String {
        let host = url.host_key();
        match self {
            StratumRule::Crawl => "crawl".to_owned(),
            StratumRule::Host => host.as_str().to_owned(),
            StratumRule::Depth => format!("{} depth {depth}", host.as_str()),
            StratumRule::Path => format!("{}/{}", host.as_str(), folder(url.path())),
        }
    }

    /// The stratum that a small one is merged with: of a folder with few pages, that of all such
    /// folders of the host. A site may have as many folders as pages.
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

/// The folder at the root that a path lies in, with its slash; empty for what lies in none.
fn folder(path: &str) -> &str {
    let inner = path.strip_prefix('/').unwrap_or(path);
    inner.find('/').map_or("", |end| &inner[..=end])
}

/// The random number of a URL: the first eight bytes, big-endian, of the SHA-256 of seed, line feed
/// and URL. Anyone can compute it again.
#[must_use]
pub fn rank(seed: &str, url: &str) -> u64 {
    let mut hash = Sha256::new();
    for part in [seed, "\n", url] {
        hash.update(part);
    }
    let digest = hash.finalize();
    let bytes = digest.first_chunk::<8>();
    bytes.map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use crawl_weburl::canonicalize;

    use super::{StratumRule, rank};

    #[test]
    fn a_rank_is_what_another_program_computes() {
        // python3 -c "import hashlib; print(hashlib.sha256(b'1\nhttp://a.example/').hexdigest()[:16])"
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
