//! The reasons why URLs are not fetched.

use std::fmt;

/// The reason why a URL is not fetched: its kind, and the rule that decided.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NotFetchedReason {
    /// The kind of reason.
    pub reason: Reason,
    /// The rule as written, such as `Disallow: /private` or `max-depth 3`. A store may truncate it
    /// to 1,024 bytes.
    pub rule: Option<String>,
    /// The 1-based line of the rule in robots.txt.
    pub line: Option<u32>,
}

impl NotFetchedReason {
    /// Creates a reason without a rule or line.
    #[must_use]
    pub fn of(reason: Reason) -> NotFetchedReason {
        NotFetchedReason {
            reason,
            rule: None,
            line: None,
        }
    }
}

impl fmt::Display for NotFetchedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.reason)?;
        if let Some(rule) = &self.rule {
            write!(f, ": {rule}")?;
        }
        if let Some(line) = self.line {
            write!(f, " (line {line})")?;
        }
        Ok(())
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $reason:ident = $code:literal, $name:literal;)*) => {
        /// A kind of reason why a URL is not fetched. The written form is the name in snake case.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Reason {
            $($(#[$doc])* $reason,)*
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &'static [Reason] = &[$(Reason::$reason),*];

            /// Returns the written form, as in `excluded.jsonl`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Reason::$reason => $name,)*
                }
            }

            /// Returns the number that stores use for the reason. A number never changes its
            /// meaning.
            #[must_use]
            pub fn code(self) -> u8 {
                match self {
                    $(Reason::$reason => $code,)*
                }
            }

            /// Returns the reason with the given number, or `None` if there is no such reason.
            #[must_use]
            pub fn from_code(code: u8) -> Option<Reason> {
                match code {
                    $($code => Some(Reason::$reason),)*
                    _ => None,
                }
            }
        }
    };
}

reasons! {
    /// Disallowed by robots.txt.
    Robots = 1, "robots";
    /// Excluded by a META ROBOTS element of the page.
    Meta = 2, "meta";
    /// Excluded by an X-Robots-Tag header.
    Header = 3, "header";
    /// Only nofollow links lead to the URL.
    Nofollow = 4, "nofollow";
    /// Outside the scope that the user chose.
    Scope = 5, "scope";
    /// Deeper than the user's depth limit.
    Depth = 6, "depth";
    /// A budget ran out before the URL was fetched.
    Budget = 7, "budget";
    /// The URL is one of endlessly many that lead to nothing new.
    Trap = 8, "trap";
    /// Too many consecutive redirects lead to the URL.
    Redirects = 9, "redirects";
    /// The URL can't be requested.
    Unusable = 10, "unusable";
    /// The host's address must not be contacted.
    Address = 11, "address";
    /// The site forbids the purpose that the crawl uses pages for.
    Usage = 12, "usage";
    /// A request for the URL looks like it would trigger an action.
    Action = 13, "action";
    /// The same page is fetched under another URL.
    Duplicate = 14, "duplicate";
    /// The URL may be fetched, but this run only estimates the cost of a crawl.
    Planned = 15, "planned";
    /// The crawl fetches a random sample of URLs, and this URL was not drawn.
    Sample = 16, "sample";
    /// The crawl is a replay, and the archive that it reads lacks the site's robots.txt.
    NotArchived = 17, "not_archived";
    /// The operator erased the URL from the crawl, and it is not fetched again.
    Forgotten = 18, "forgotten";
    /// The URL is listed only in sitemaps on other hosts, and the robots.txt of its own host names
    /// none of these sitemaps.
    Sitemap = 19, "sitemap";
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::{NotFetchedReason, Reason};

    #[test]
    fn codes_round_trip() {
        for &reason in Reason::ALL {
            assert_eq!(Reason::from_code(reason.code()), Some(reason));
        }
        assert_eq!(Reason::from_code(0), None);
    }

    #[test]
    fn written_with_rule_and_line() {
        let exclusion = NotFetchedReason {
            reason: Reason::Robots,
            rule: Some("Disallow: /a".into()),
            line: Some(3),
        };
        assert_eq!(exclusion.to_string(), "robots: Disallow: /a (line 3)");
        assert_eq!(NotFetchedReason::of(Reason::Depth).to_string(), "depth");
    }
}
