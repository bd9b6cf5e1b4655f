//! The shape of a URL: the pattern by which a site generates its URLs.

/// A URL without its variable parts.
///
/// Digits become `#` and random ids `~`. A name at the end of the path becomes `*` with its
/// extension, unless it is a program that takes parameters. Repeated path segments become `(a|b)+`.
/// Of the query, only the names of the parameters are kept, in sorted order.
///
/// ```
/// use crawl_weburl::{UrlShape, canonicalize};
///
/// let url = canonicalize(None, "http://a.example/blog/2031/05/?view=month&cal=3").unwrap();
/// let shape = UrlShape::of(&url);
/// assert_eq!(shape.pattern, "/blog/#/#/?cal&view");
/// assert_eq!(shape.family(), Some("/blog/#/#/?"));
/// assert!(shape.signs.date);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlShape {
    /// Path and parameter names, without scheme and host.
    pub pattern: String,
    /// The first 64 parameter names, sorted, without duplicates.
    pub names: Vec<String>,
    /// Signs that the URL may belong to an endless series.
    pub signs: TrapSigns,
    /// Length in bytes of the shape's family (see [`UrlShape::family`]), which is a prefix of
    /// `pattern`. `None` if the shape has no family.
    family_bytes: Option<usize>,
}

/// Signs of URLs that belong to an endless series. Each sign alone is common and harmless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrapSigns {
    /// Whether the URL contains a date, such as `2031/05`, `2031-05-07` or `month=5`.
    pub date: bool,
    /// Whether the URL contains a random id or a session id.
    pub token: bool,
    /// Whether a path segment occurs at least three times.
    pub repeats: bool,
    /// Whether the URL has parameters.
    pub query: bool,
}

impl TrapSigns {
    /// Returns whether there is any sign.
    #[must_use]
    pub fn any(self) -> bool {
        self.date || self.token || self.repeats || self.query
    }
}

impl UrlShape {
    pub(crate) fn new(pattern: String, names: Vec<String>, signs: TrapSigns) -> UrlShape {
        UrlShape {
            family_bytes: family_bytes(&pattern),
            pattern,
            names,
            signs,
        }
    }

    /// Returns whether a path segment is repeated.
    #[must_use]
    pub fn has_repeats(&self) -> bool {
        self.pattern.contains(")+")
    }

    /// Returns the beginning of the pattern, up to and including the question mark, the first
    /// random id or the repeated segments, whichever comes first. `None` if the pattern contains
    /// none of these. URLs with the same beginning often show the same content with other
    /// parameters, under another id, or with more repeated segments.
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
