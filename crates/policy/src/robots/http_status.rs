//! The meaning of an HTTP status for a request for /robots.txt.

/// The meaning of an HTTP status in answer to a request for `/robots.txt` (RFC 9309 section 2.3.1).
///
/// ```
/// use crawl_policy::{Robots, RobotsStatus};
///
/// fn rules(status: u16, body: &[u8]) -> Option<Robots> {
///     match RobotsStatus::of(status) {
///         RobotsStatus::Successful => Some(Robots::parse(body)),
///         RobotsStatus::Redirect => None, // fetch the target first
///         RobotsStatus::Unavailable => Some(Robots::allow_all()),
///         RobotsStatus::Unreachable => Some(Robots::disallow_all()),
///     }
/// }
///
/// let path = crawl_policy::RequestPath::new("/page")?;
/// let allows = |robots: Robots| robots.for_agent("ExampleBot").judge_path(&path).is_allowed();
/// assert_eq!(rules(404, b"").map(allows), Some(true));
/// assert_eq!(rules(503, b"").map(allows), Some(false));
/// # Ok::<(), crawl_policy::RequestPathError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
pub enum RobotsStatus {
    /// 2xx: the body contains the rules, whatever its media type (section 2.3.1.1).
    Successful,
    /// 300 to 303, 307 and 308: the rules are at the target (section 2.3.1.2) and apply to the
    /// original origin. Follow at least five consecutive redirects. After the last permitted
    /// redirect, or if a redirect has no target, treat the file as
    /// [`Unavailable`](RobotsStatus::Unavailable). A 300 without a target is
    /// [`Unreachable`](RobotsStatus::Unreachable): there are rules, but the server doesn't choose.
    Redirect,
    /// 4xx other than 429: the site has no rules, so everything is allowed (section 2.3.1.3). The
    /// RFC includes 401 and 403, which earlier crawlers treated as a ban.
    Unavailable,
    /// 5xx: the rules are unknown, so everything is disallowed (section 2.3.1.4). The same applies
    /// to a request without an answer. 429 is included although it is a 4xx, because it is
    /// temporary and asks clients to slow down. Other 3xx, and statuses outside 200 to 599, say
    /// nothing about the rules and are included too. For a conditional request, check for a 304
    /// first, and keep the copy that it confirms.
    Unreachable,
}

impl RobotsStatus {
    /// Interprets a status code.
    #[must_use]
    pub fn of(status: u16) -> RobotsStatus {
        match status {
            200..=299 => RobotsStatus::Successful,
            300..=303 | 307 | 308 => RobotsStatus::Redirect,
            400..=428 | 430..=499 => RobotsStatus::Unavailable,
            _ => RobotsStatus::Unreachable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RobotsStatus;

    #[test]
    fn rfc9309_2_3_1_statuses_by_their_class() {
        for (statuses, meaning) in [
            (&[200, 204, 299][..], RobotsStatus::Successful),
            (&[300, 301, 302, 303, 307, 308], RobotsStatus::Redirect),
            (
                &[400, 401, 403, 404, 410, 428, 430, 499],
                RobotsStatus::Unavailable,
            ),
            (&[500, 503, 599], RobotsStatus::Unreachable),
        ] {
            for &status in statuses {
                assert_eq!(RobotsStatus::of(status), meaning, "{status}");
            }
        }
    }

    #[test]
    fn statuses_without_meaning_for_rules_count_as_unreachable() {
        for status in [0, 100, 199, 304, 305, 306, 309, 399, 429, 600, u16::MAX] {
            assert_eq!(RobotsStatus::of(status), RobotsStatus::Unreachable);
        }
    }
}
