//! Applies `Clean-param` lines to a URL: it loses parameters that a site says change nothing.

use crawl_weburl::CanonicalUrl;

use super::Robots;
use super::other_lines::CleanParam;
use super::pattern::find;

/// Lines that are heeded; the first ones. Each URL with a query goes over all of them.
const MAX_LINES: usize = 1000;

/// A URL without the parameters that its site says change nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleaned {
    /// The URL.
    pub url: CanonicalUrl,
    /// The line that said so, as it is read: `Clean-param: ref&sort /list`.
    pub rule: String,
    /// Its number, from 1.
    pub line: u32,
}

impl Robots {
    /// The URL without the parameters that the file's `Clean-param` lines name for its path;
    /// nothing where it has none. Names are compared with their case, paths from their
    /// beginning, `*` standing for anything, as Yandex has it. The first line that took
    /// something is named.
    #[must_use]
    pub fn clean(&self, url: &CanonicalUrl) -> Option<Cleaned> {
        url.as_url().query()?;
        let mut cleaned: Option<Cleaned> = None;
        let lines = self.clean_params().iter().take(MAX_LINES);
        for line in lines.filter(|line| begins(url.path(), &line.path)) {
            let now = cleaned.as_ref().map_or(url, |cleaned| &cleaned.url);
            let is_named = |name: &str| line.params.iter().any(|known| known == name);
            let Some(url) = now.without_parameters(is_named) else {
                continue;
            };
            cleaned = Some(match cleaned {
                Some(first) => Cleaned { url, ..first },
                None => Cleaned {
                    url,
                    rule: as_written(line),
                    line: line.line,
                },
            });
        }
        cleaned
    }
}

fn as_written(line: &CleanParam) -> String {
    let text = format!("Clean-param: {} {}", line.params.join("&"), line.path);
    text.trim_end().to_owned()
}

/// Returns whether a path begins as a pattern says. Linear: each piece is looked for behind the
/// last.
fn begins(path: &str, pattern: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = path.strip_prefix(first) else {
        return false;
    };
    pieces.all(|piece| match find(rest.as_bytes(), piece.as_bytes()) {
        Some(at) => {
            rest = &rest[at + piece.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use crawl_weburl::canonicalize;
    use expect_test::{Expect, expect};

    use crate::{ProductToken, Profile, Robots};

    #[expect(
        clippy::needless_pass_by_value,
        reason = "expectations are written in place"
    )]
    fn check(url: &str, expect: Expect) {
        let file = b"User-agent: *\nDisallow:\nClean-param: ref&src /list\n\
            Clean-param: sid /a/*/b\nClean-param: everywhere\n";
        let robots = Robots::parse(file, &ProductToken::new("crawl").unwrap(), Profile::Rfc9309);
        let url = canonicalize(None, &format!("http://a.example{url}")).unwrap();
        let found = robots.clean(&url).map_or("-".to_owned(), |cleaned| {
            format!(
                "{} by {}: {}",
                cleaned.url.path_and_query(),
                cleaned.line,
                cleaned.rule
            )
        });
        expect.assert_eq(&found);
    }

    #[test]
    fn ours_clean_param_as_yandex_has_it() {
        check(
            "/list/x?a=1&ref=2&src=3",
            expect!["/list/x?a=1 by 3: Clean-param: ref&src /list"],
        );
        check(
            "/list?ref=2&everywhere",
            expect!["/list by 3: Clean-param: ref&src /list"],
        );
        check("/other?ref=2", expect!["-"]);
        check(
            "/other?everywhere=1&x",
            expect!["/other?x by 5: Clean-param: everywhere"],
        );
        check(
            "/a/1/2/b?sid=1",
            expect!["/a/1/2/b by 4: Clean-param: sid /a/*/b"],
        );
        check("/a/b?sid=1", expect!["-"]);
        check("/list?Ref=2", expect!["-"]);
        check("/list", expect!["-"]);
    }
}
