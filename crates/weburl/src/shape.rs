//! The shape of a URL: what a site's program makes its URLs from.

/// A URL without its variable parts.
///
/// Digits become `#`, ids drawn at random `~`, a name at the end of the path `*` (with its
/// ending), but for a program's that is told parameters;
/// path segments that come again become `(a|b)+`, and of the query the sorted names stay.
///
/// ```
/// use crawl_weburl::{Shape, canonicalize};
///
/// let url = canonicalize(None, "http://a.example/blog/2031/05/?view=month&cal=3").unwrap();
/// let shape = Shape::of(&url);
/// assert_eq!(shape.pattern, "/blog/#/#/?cal&view");
/// assert_eq!(shape.family(), Some("/blog/#/#/?"));
/// assert!(shape.signs.date);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Path and names of parameters, without scheme and host.
    pub pattern: String,
    /// The sorted names of its parameters, each once; the first 64.
    pub names: Vec<String>,
    /// Signs that the URL may be one of those that never end.
    pub signs: TrapSigns,
    /// The length of its family, where it has one. Bytes.
    family_bytes: Option<usize>,
}

/// Signs that are known from URLs that never end. Each alone is common and harmless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrapSigns {
    /// A day, month or year stands in it.
    pub date: bool,
    /// An id drawn at random stands in it, or a session's.
    pub token: bool,
    /// Some segment of its path stands there three times or more.
    pub repeats: bool,
    /// It has parameters.
    pub query: bool,
}

impl TrapSigns {
    /// Returns whether there is any.
    #[must_use]
    pub fn any(self) -> bool {
        self.date || self.token || self.repeats || self.query
    }
}

impl Shape {
    pub(crate) fn new(pattern: String, names: Vec<String>, signs: TrapSigns) -> Shape {
        Shape {
            family_bytes: family_bytes(&pattern),
            pattern,
            names,
            signs,
        }
    }

    /// Returns whether some segment of its path comes again.
    #[must_use]
    pub fn has_repeats(&self) -> bool {
        self.pattern.contains(")+")
    }

    /// The part that it shares with all that show the same things in other selections, under other
    /// ids or further down: the pattern up to its parameters, its first id or what comes again.
    #[must_use]
    pub fn family(&self) -> Option<&str> {
        self.family_bytes.map(|end| &self.pattern[..end])
    }
}

fn family_bytes(pattern: &str) -> Option<usize> {
    let pattern = pattern.as_bytes();
    (0..pattern.len()).find_map(|at| match pattern[at..] {
        [b'/', b'~', ..] | [b')', b'+', ..] => Some(at + 2),
        [b'?', ..] => Some(at + 1),
        _ => None,
    })
}
