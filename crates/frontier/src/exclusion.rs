//! Exclusions: the reasons why a URL is not asked for.

use std::fmt;

/// The reason why a URL is not asked for: its kind, and the rule that decided.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Exclusion {
    /// The kind of reason.
    pub reason: Reason,
    /// The rule as written, such as `Disallow: /private` or `max-depth 3`. A store may
    /// cut it to 1,024 bytes.
    pub rule: Option<String>,
    /// The line of the rule in its robots.txt, from 1.
    pub line: Option<u32>,
}

impl Exclusion {
    /// A reason without a rule or line.
    #[must_use]
    pub fn of(reason: Reason) -> Exclusion {
        Exclusion {
            reason,
            rule: None,
            line: None,
        }
    }
}

impl fmt::Display for Exclusion {
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
        /// The kinds of reason. The written form is the lower-case name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Reason {
            $($(#[$doc])* $reason,)*
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &'static [Reason] = &[$(Reason::$reason),*];

            /// The written form, as it stands in `excluded.jsonl`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Reason::$reason => $name,)*
                }
            }

            /// The number that stands for it in stores; it never changes its meaning.
            #[must_use]
            pub fn code(self) -> u8 {
                match self {
                    $(Reason::$reason => $code,)*
                }
            }

            /// The reason that a number stands for.
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
    /// Its robots.txt bars it.
    Robots = 1, "robots";
    /// A META ROBOTS element of the page bars it.
    Meta = 2, "meta";
    /// An X-Robots-Tag header bars it.
    Header = 3, "header";
    /// Only links that say nofollow lead to it.
    Nofollow = 4, "nofollow";
    /// It lies outside the scope that the user chose.
    Scope = 5, "scope";
    /// It lies deeper than the user wants to go.
    Depth = 6, "depth";
    /// A budget was used up before its turn came.
    Budget = 7, "budget";
    /// It is one of endlessly many that bring nothing new.
    Trap = 8, "trap";
    /// Too many redirects in a row lead to it.
    Redirects = 9, "redirects";
    /// It can't be asked for.
    Unusable = 10, "unusable";
    /// Its host lies at an address that may not be asked.
    Address = 11, "address";
    /// Its site does not want it used for what the crawl is for.
    Usage = 12, "usage";
    /// It looks as if asking for it did something.
    Action = 13, "action";
    /// Its page is asked for under another URL.
    Duplicate = 14, "duplicate";
    /// It may be asked for, and the crawl only plans.
    Planned = 15, "planned";
    /// It is not in the sample.
    Sample = 16, "sample";
    /// The archive of a crawl that is replayed does not know the rules of its site.
    NotArchived = 17, "not_archived";
    /// It was taken out of the crawl, and is not asked for again.
    Forgotten = 18, "forgotten";
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::{Exclusion, Reason};

    #[test]
    fn codes_lead_back() {
        for &reason in Reason::ALL {
            assert_eq!(Reason::from_code(reason.code()), Some(reason));
        }
        assert_eq!(Reason::from_code(0), None);
    }

    #[test]
    fn written_with_rule_and_line() {
        let exclusion = Exclusion {
            reason: Reason::Robots,
            rule: Some("Disallow: /a".into()),
            line: Some(3),
        };
        assert_eq!(exclusion.to_string(), "robots: Disallow: /a (line 3)");
        assert_eq!(Exclusion::of(Reason::Depth).to_string(), "depth");
    }
}
