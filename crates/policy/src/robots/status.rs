//! The meaning of an HTTP status in answer to a request for /robots.txt.

/// What the HTTP answer to a request for `/robots.txt` means, by RFC 9309 section 2.3.1.
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
/// # Ok::<(), crawl_policy::BadRequestPath>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
pub enum RobotsStatus {
    /// 2xx: the body holds the rules, whatever its media type (section 2.3.1.1).
    Successful,
    /// 3xx: the rules are at the target (section 2.3.1.2), and bind the origin that was asked
    /// first. Follow at least five redirects in a row; beyond that, or if there is no target, the
    /// file is [`Unavailable`](RobotsStatus::Unavailable). A 304 that answers a conditional
    /// request is the caller's to recognise: the copy at hand still holds.
    Redirect,
    /// 4xx other than 429: there are no rules, so everything is allowed (section 2.3.1.3). By the
    /// RFC this includes 401 and 403, which crawlers before it took for a ban.
    Unavailable,
    /// 5xx: nobody knows the rules, so everything is disallowed (section 2.3.1.4). This is also
    /// the meaning of a request that got no answer. 429 belongs here, although the RFC counts it
    /// among the 4xx: the server asks for fewer requests. So do statuses outside 200 to 599,
    /// which no HTTP answer ends with.
    Unreachable,
}

impl RobotsStatus {
    /// Reads a status code.
    #[must_use]
    pub fn of(status: u16) -> RobotsStatus {
        match status {
            200..=299 => RobotsStatus::Successful,
            300..=399 => RobotsStatus::Redirect,
            429 => RobotsStatus::Unreachable,
            400..=499 => RobotsStatus::Unavailable,
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
            (&[300, 301, 304, 308, 399], RobotsStatus::Redirect),
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
    fn ours_429_and_statuses_of_no_class_are_unreachable() {
        for status in [0, 100, 199, 429, 600, u16::MAX] {
            assert_eq!(RobotsStatus::of(status), RobotsStatus::Unreachable);
        }
    }
}
