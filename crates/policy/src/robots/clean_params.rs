//! Applies `Clean-param` lines to a URL: removes parameters that don't change the page.

use url::Url;

use super::agent_rules::AgentRules;
use super::non_rule_lines::CleanParamLine;
use super::pattern::find;

/// Maximum `Clean-param` lines to compare with a URL that has a query. Later lines are ignored.
const MAX_LINES: usize = 1000;

/// A URL without the parameters that its site declares irrelevant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CleanedUrl {
    /// The URL without the removed parameters.
    pub url: Url,
    /// The first line that removed a parameter, as interpreted: `Clean-param: ref&sort /list`.
    pub rule: String,
    /// The number of that first line, from 1.
    pub line: u32,
}

impl AgentRules {
    /// Removes the parameters that the file's `Clean-param` lines name for the path of `url`.
    /// Returns `None` if the URL has no such parameter.
    ///
    /// As Yandex specifies, names are case-sensitive, paths match as prefixes, and `*` matches anything.
    /// The result cites the first line that removed something.
    #[must_use]
    pub fn clean(&self, url: &Url) -> Option<CleanedUrl> {
        url.query()?;
        let mut cleaned: Option<CleanedUrl> = None;
        let lines = self.clean_params().iter().take(MAX_LINES);
        for line in lines.filter(|line| begins(url.path(), &line.path)) {
            let current = cleaned.as_ref().map_or(url, |cleaned| &cleaned.url);
            let Some(url) = without_params(current, &line.params) else {
                continue;
            };
            cleaned = Some(match cleaned {
                Some(first) => CleanedUrl { url, ..first },
                None => CleanedUrl {
                    url,
                    rule: as_written(line),
                    line: line.line,
                },
            });
        }
        cleaned
    }
}

/// Removes the parameters named by `names`. Returns `None` if the URL has no such parameter.
fn without_params(url: &Url, names: &[String]) -> Option<Url> {
    let is_named = |part: &str| {
        let name = part.split_once('=').map_or(part, |(name, _)| name);
        !part.is_empty() && names.iter().any(|known| known == name)
    };
    let query = url.query()?;
    if !query.split('&').any(is_named) {
        return None;
    }
    let parts: Vec<&str> = query.split('&').filter(|part| !is_named(part)).collect();
    let rest = parts.join("&");
    let mut url = url.clone();
    url.set_query(Some(rest.as_str()).filter(|rest| !rest.is_empty()));
    Some(url)
}

fn as_written(line: &CleanParamLine) -> String {
    let text = format!("Clean-param: {} {}", line.params.join("&"), line.path);
    text.trim_end().to_owned()
}

/// Returns whether a pattern matches a prefix of a path. Takes linear time, because each piece of
/// the pattern between wildcards is searched only in the text after the previous piece.
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
    use expect_test::{Expect, expect};
    use url::Url;

    use crate::Robots;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "expectations are written in place"
    )]
    fn check(url: &str, expect: Expect) {
        let file = b"User-agent: *\nDisallow:\nClean-param: ref&src /list\n\
            Clean-param: sid /a/*/b\nClean-param: everywhere\n";
        let robots = Robots::parse(file).for_agent("crawl");
        let url = Url::parse(&format!("http://a.example{url}")).unwrap();
        let cleaned_url = robots.clean(&url).map_or("-".to_owned(), |cleaned| {
            format!(
                "{} by {}: {}",
                crate::RequestPath::of(&cleaned.url),
                cleaned.line,
                cleaned.rule
            )
        });
        expect.assert_eq(&cleaned_url);
    }

    #[test]
    fn clean_param_matches_yandex() {
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
