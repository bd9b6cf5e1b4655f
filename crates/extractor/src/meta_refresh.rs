//! The content of `<meta http-equiv=refresh>`.

use crate::collapsed_text_builder::trim;

/// Returns whether the refresh in `content` redirects before a reader sees the page, because its
/// delay is less than a second.
pub(crate) fn is_immediate(content: &str) -> bool {
    let seconds = trim(content).split(|c: char| !c.is_ascii_digit()).next();
    seconds.is_none_or(|seconds| seconds.bytes().all(|digit| digit == b'0'))
}

/// Returns the URL that `content` redirects to (HTML Standard, "shared declarative refresh steps").
/// `None` if `content` is not a refresh, or has no URL and so reloads the page itself.
pub(crate) fn refresh_target(content: &str) -> Option<&str> {
    let content = trim(content);
    let after_time = content.trim_start_matches(|c: char| c.is_ascii_digit());
    if after_time.len() == content.len() && !content.starts_with('.') {
        return None;
    }
    let rest = after_time.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let separator = rest.chars().next()?;
    if !matches!(separator, ';' | ',') && !separator.is_ascii_whitespace() {
        return None;
    }
    let rest = trim(rest);
    let rest = trim(rest.strip_prefix([';', ',']).unwrap_or(rest));
    let target = trim(unquoted(after_url_equals(rest).unwrap_or(rest)));
    (!target.is_empty()).then_some(target)
}

/// Returns the text after `url =`, ignoring case.
fn after_url_equals(text: &str) -> Option<&str> {
    let (word, rest) = text.split_at_checked(3)?;
    let rest = trim(rest)
        .strip_prefix('=')
        .filter(|_| word.eq_ignore_ascii_case("url"))?;
    Some(trim(rest))
}

/// If the text begins with a quote, returns the text up to the next quote of the same kind.
/// Otherwise returns the whole text.
fn unquoted(text: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote) {
            return inner.split(quote).next().unwrap_or(inner);
        }
    }
    text
}
