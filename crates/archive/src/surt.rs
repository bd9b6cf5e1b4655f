//! Computes SURT keys, by which captures are sorted and looked up.
//!
//! Replay tools look up a URL under the key that the Internet Archive's rules give. So this module
//! follows these rules exactly, even the odd ones: reversed host names, no `www.`, lower case,
//! sorted parameters, no session ids.

use crawl_weburl::CanonicalUrl;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Returns the SURT key of a URL: `org,example)/path?query`. The key has no scheme.
///
/// ```
/// let url = crawl_weburl::canonicalize(None, "https://www.Example.org/A/?b=2&a=1").unwrap();
/// assert_eq!(crawl_archive::surt(&url), "org,example)/a?a=1&b=2");
/// ```
#[must_use]
pub fn surt(url: &CanonicalUrl) -> String {
    let host = host_key(url.host());
    let mut key = if host.is_empty() {
        format!("{}:", url.scheme())
    } else {
        match port(url) {
            Some(port) => format!("{host}:{port})"),
            None => format!("{host})"),
        }
    };
    key.push_str(&path_key(url.path(), !host.is_empty()));
    let query = url.path_and_query().split_once('?').map(|(_, query)| query);
    push_query(query.unwrap_or_default(), &mut key);
    key
}

/// Returns the key of a URL without a host, such as `urn:view:https://example.org/`. The URL after
/// the prefix is treated as a path and query.
pub(crate) fn urn_key(url: &str) -> String {
    let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut key = format!("{scheme}:{}", path_key(path, false));
    push_query(query, &mut key);
    key
}

fn push_query(query: &str, key: &mut String) {
    let query = query_key(query);
    if !query.is_empty() {
        key.push('?');
        key.push_str(&query);
    }
}

fn port(url: &CanonicalUrl) -> Option<u16> {
    let usual = if url.scheme() == "https" { 443 } else { 80 };
    Some(url.port()).filter(|port| ![0, usual].contains(port))
}

/// Converts a host name to its form in a key: `www2.example.org` becomes `org,example`.
fn host_key(host: &str) -> String {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let host = host.replace("..", ".");
    let host = without_www(host.trim_matches('.'));
    let labels: Vec<&str> = host.rsplit('.').collect();
    labels.join(",")
}

/// Removes a first label `www`, `www2` and so on from a host name.
fn without_www(host: &str) -> &str {
    host.strip_prefix("www")
        .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()))
        .and_then(|rest| rest.strip_prefix('.'))
        .unwrap_or(host)
}

fn path_key(path: &str, hierarchic: bool) -> String {
    let mut path = unescaped(path.as_bytes());
    if hierarchic {
        path = straightened(&path);
    }
    let mut path = escaped(&path).to_ascii_lowercase();
    for has_letter in [true, false] {
        path = without_path_session(path, has_letter);
    }
    if path.len() > 1 && path.ends_with('/') {
        path.pop();
    }
    path
}

fn query_key(query: &str) -> String {
    let query = escaped(&unescaped(query.as_bytes()));
    let query = without_query_sessions(query).to_ascii_lowercase();
    let mut parameters: Vec<(&str, Option<&str>)> = query
        .split('&')
        .map(|parameter| match parameter.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (parameter, None),
        })
        .collect();
    parameters.sort_unstable();
    let parameters: Vec<String> = parameters
        .into_iter()
        .map(|(name, value)| value.map_or(name.to_owned(), |value| format!("{name}={value}")))
        .collect();
    parameters.join("&")
}

/// Decodes percent-encoding repeatedly, until nothing changes.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    loop {
        let once = unescaped_once(&text);
        if once == text {
            return text;
        }
        text = once;
    }
}

fn unescaped_once(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let byte = match (first, after) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)).map(|(h, l)| h << 4 | l),
            _ => None,
        };
        out.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    out
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// Percent-encodes `#`, `%`, and everything that isn't printable ASCII.
fn escaped(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'#' | b'%' | 0..=0x20 | 0x7f.. => {
                out.push('%');
                out.push(char::from(HEX[usize::from(byte >> 4)]));
                out.push(char::from(HEX[usize::from(byte & 15)]));
            }
            _ => out.push(char::from(byte)),
        }
    }
    out
}

/// Resolves the dot segments of a path, and removes empty segments except the last.
fn straightened(path: &[u8]) -> Vec<u8> {
    let mut segments: Vec<&[u8]> = Vec::new();
    for segment in path.split(|&byte| byte == b'/').skip(1) {
        match segment {
            b"." => {}
            b".." if segments.pop().is_some() => {}
            other => segments.push(other),
        }
    }
    let mut out = vec![b'/'];
    let last = segments.pop().unwrap_or_default();
    for segment in segments.into_iter().filter(|segment| !segment.is_empty()) {
        out.extend_from_slice(segment);
        out.push(b'/');
    }
    out.extend_from_slice(last);
    out
}

/// Removes an ASP.NET session segment from a lower-case path, if an `.aspx` file follows: `(24
/// characters)/` or, if `has_letter`, `(s(24 characters))/`. The second form may have several
/// letters, each with its own 24 characters. If there are several such segments, removes the last
/// one.
fn without_path_session(path: String, has_letter: bool) -> String {
    let slashes = path.rmatch_indices('/').map(|(at, _)| at + 1);
    for begin in slashes {
        let length = match has_letter {
            true => lettered_session(&path[begin..]),
            false => bare_session(&path[begin..]),
        };
        if let Some(length) = length
            && leads_to_aspx(&path[begin + length..])
        {
            return [&path[..begin], &path[begin + length..]].concat();
        }
    }
    path
}

fn lettered_session(text: &str) -> Option<usize> {
    let mut rest = text.strip_prefix('(')?;
    let mut pairs = 0;
    while let Some((true, token)) = rest
        .split_at_checked(1)
        .map(|(letter, token)| (letter.as_bytes()[0].is_ascii_alphabetic(), token))
    {
        rest = token.strip_prefix('(').and_then(after_token)?;
        pairs += 1;
    }
    let rest = rest.strip_prefix(")/").filter(|_| pairs > 0)?;
    Some(text.len() - rest.len())
}

fn bare_session(text: &str) -> Option<usize> {
    let rest = text.strip_prefix('(').and_then(after_token)?;
    let rest = rest.strip_prefix('/')?;
    Some(text.len() - rest.len())
}

/// Returns the text after a token of 24 letters or digits and a closing bracket. `None` if `text`
/// doesn't begin with these.
fn after_token(text: &str) -> Option<&str> {
    let (token, rest) = text.split_at_checked(24)?;
    let fits = token.bytes().all(|byte| byte.is_ascii_alphanumeric());
    rest.strip_prefix(')').filter(|_| fits)
}

fn leads_to_aspx(text: &str) -> bool {
    text.get(1..)
        .and_then(|rest| rest.find(".aspx"))
        .is_some_and(|at| !text[..at + 1].contains('?'))
}

/// Removes known session parameters from a query. If there are several of a kind, removes the last
/// one.
fn without_query_sessions(mut query: String) -> String {
    let kinds: [fn(&str) -> Option<usize>; 5] = [
        |text| named(text, "jsessionid=", 32, u8::is_ascii_alphanumeric),
        |text| named(text, "phpsessid=", 32, u8::is_ascii_alphanumeric),
        |text| named(text, "sid=", 32, u8::is_ascii_alphanumeric),
        asp_session,
        coldfusion_session,
    ];
    for kind in kinds {
        let range = (0..query.len()).rev().find_map(|at| {
            let length = query.get(at..).and_then(kind)?;
            let rest = &query[at + length..];
            (rest.is_empty() || rest.starts_with('&')).then_some((at, at + length))
        });
        if let Some((begin, end)) = range {
            let rest = query[end..].strip_prefix('&').unwrap_or_default();
            query = [&query[..begin], rest].concat();
        }
    }
    query
}

/// Returns the length of `name` (ignoring case) and `count` bytes that satisfy `fits`. `None` if
/// `text` doesn't begin with these.
fn named(text: &str, name: &str, count: usize, fits: fn(&u8) -> bool) -> Option<usize> {
    let (head, rest) = text.as_bytes().split_at_checked(name.len())?;
    let value = rest.get(..count)?;
    let is_match = head.eq_ignore_ascii_case(name.as_bytes()) && value.iter().all(fits);
    is_match.then_some(name.len() + count)
}

fn asp_session(text: &str) -> Option<usize> {
    let name = named(text, "aspsessionid", 8, u8::is_ascii_alphabetic)?;
    let value = named(&text[name..], "=", 24, u8::is_ascii_alphabetic)?;
    Some(name + value)
}

fn coldfusion_session(text: &str) -> Option<usize> {
    let id = one_parameter(text, "cfid=")?;
    let token = one_parameter(text[id..].strip_prefix('&')?, "cftoken=")?;
    Some(id + 1 + token)
}

/// Returns the length of `name` and a non-empty value. `None` if `text` doesn't begin with these.
fn one_parameter(text: &str, name: &str) -> Option<usize> {
    named(text, name, 0, |_| true)?;
    let value = text[name.len()..].split('&').next()?;
    (!value.is_empty()).then_some(name.len() + value.len())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::surt;

    /// Compares keys with `expect`, the keys that the PyPI package `surt` 0.3.1 returns.
    fn check(urls: &[&str], expect: Expect) {
        let keys: Vec<String> = urls
            .iter()
            .map(|url| surt(&crawl_weburl::canonicalize(None, url).unwrap()))
            .collect();
        expect.assert_eq(&keys.join("\n"));
    }

    #[test]
    fn surt_hosts() {
        check(
            &[
                "http://www.example.org/",
                "http://www1.example.org:8080/",
                "http://wwwe.example.org/",
                "http://www./",
                "http://e.org./a",
                "http://[::1]:8080/x",
                "http://127.0.0.1:80/",
                "https://127.0.0.1:80/",
                "http://e.org:0/",
                "http://localhost:1/",
                "http://xn--bcher-kva.example/",
            ],
            expect![[r#"
                org,example)/
                org,example:8080)/
                org,example,wwwe)/
                www)/
                org,e)/a
                ::1:8080)/x
                1,0,0,127)/
                1,0,0,127:80)/
                org,e)/
                localhost:1)/
                example,xn--bcher-kva)/"#]],
        );
    }

    #[test]
    fn surt_paths() {
        check(
            &[
                "http://e.org//",
                "http://e.org/A//b/",
                "http://e.org/a//",
                "http://e.org/%25%32%35/%7Ea%20b",
                "http://e.org/%C3%BC",
                "http://e.org/%252e%252E/x",
                "http://e.org/a%23b",
                "http://e.org/a%3fb",
                "http://e.org/%",
                "http://e.org/a;jsessionid=0123456789abcdef0123456789abcdef",
                "http://e.org/(S(abcdefghijklmnopqrstuvwx))/x.aspx",
                "http://e.org/(abcdefghijklmnopqrstuvwx)/x.ASPX?q",
                "http://e.org/(abcdefghijklmnopqrstuvwx)/x.html",
            ],
            expect![[r#"
                org,e)/
                org,e)/a/b
                org,e)/a
                org,e)/%25/~a%20b
                org,e)/%c3%bc
                org,e)/../x
                org,e)/a%23b
                org,e)/a?b
                org,e)/%25
                org,e)/a;jsessionid=0123456789abcdef0123456789abcdef
                org,e)/x.aspx
                org,e)/x.aspx?q
                org,e)/(abcdefghijklmnopqrstuvwx)/x.html"#]],
        );
    }

    #[test]
    fn surt_queries() {
        check(
            &[
                "http://e.org/?",
                "http://e.org/?B=2&a=1",
                "http://e.org/a?&&b",
                "http://e.org/a?b=&a",
                "http://e.org/?x=%C3%9C",
                "http://e.org/a?q=1?",
                "http://e.org/?=",
                "http://e.org/?a=1&sid=0123456789abcdef0123456789abcdef&b=2",
                "http://e.org/?PHPSESSID=0123456789abcdef0123456789abcdef",
                "http://e.org/?a&cfid=1&cftoken=2&b",
                "http://e.org/?ASPSESSIONIDabcdefgh=abcdefghabcdefghabcdefgh",
            ],
            expect![[r#"
                org,e)/
                org,e)/?a=1&b=2
                org,e)/a?&&b
                org,e)/a?a&b=
                org,e)/?x=%c3%9c
                org,e)/a?q=1?
                org,e)/?=
                org,e)/?a=1&b=2
                org,e)/
                org,e)/?a&b
                org,e)/"#]],
        );
    }

    proptest! {
        #[test]
        fn keys_are_printable_ascii_without_spaces(raw in "https?://[a-z0-9.\\[\\]:]{1,20}/[ -~é]{0,60}") {
            if let Ok(url) = crawl_weburl::canonicalize(None, &raw) {
                prop_assert!(surt(&url).bytes().all(|byte| byte.is_ascii_graphic()));
            }
        }
    }
}
