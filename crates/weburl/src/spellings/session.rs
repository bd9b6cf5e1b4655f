//! Session ids in URLs: which reader it is, told by the address.

use std::ops::Range;

use crate::canonical::CanonicalUrl;
use crate::query::{name_of, spliced, value_of};

/// Names of parameters that hold nothing but a session's id, in lower case.
const NAMES: [&str; 16] = [
    "phpsessid",
    "jsessionid",
    "sessionid",
    "session_id",
    "session-id",
    "sessid",
    "sess_id",
    "aspsessionid",
    "asp.net_sessionid",
    "cfid",
    "cftoken",
    "cfsid",
    "oscsid",
    "zenid",
    "xtcsid",
    "sid",
];

/// A value is an id only if it is that long: `sid=3` is a number of something.
const MIN_BYTES: usize = 12;

/// A session id, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionId {
    /// The parameter's name in lower case, or `(S())` for the form without cookies of ASP.NET.
    pub name: String,
    /// The id as written.
    pub id: String,
    id_at: Range<usize>,
    /// The range to take out so that no trace of it stays.
    all_at: Range<usize>,
}

impl SessionId {
    /// The first session id in a URL.
    #[must_use]
    pub fn find(url: &CanonicalUrl) -> Option<SessionId> {
        let text = url.as_str();
        let path_at = text.len() - url.path_and_query().len();
        let query_at = path_at + url.path().len();
        // Most URLs have no place where one could stand.
        if query_at == text.len() && !text[path_at..].contains([';', '(']) {
            return None;
        }
        in_path_parameter(text, path_at..query_at)
            .or_else(|| in_brackets(text, path_at..query_at))
            .or_else(|| in_query(text, query_at))
    }

    /// The URL without it.
    #[must_use]
    pub fn removed(&self, url: &CanonicalUrl) -> Option<CanonicalUrl> {
        spliced(url, self.all_at.clone(), "")
    }

    /// The URL with another id in its place.
    #[must_use]
    pub fn replaced(&self, url: &CanonicalUrl, id: &str) -> Option<CanonicalUrl> {
        spliced(url, self.id_at.clone(), id)
    }

    fn at(text: &str, name: &str, id_at: Range<usize>, all_at: Range<usize>) -> SessionId {
        SessionId {
            name: name.to_ascii_lowercase(),
            id: text[id_at.clone()].to_owned(),
            id_at,
            all_at,
        }
    }
}

/// `/a;jsessionid=ID/b` (Java servlets, section 7.1.3 of their specification).
fn in_path_parameter(text: &str, path: Range<usize>) -> Option<SessionId> {
    let mut from = path.start;
    while let Some(at) = text[from..path.end].find(';').map(|at| from + at) {
        let rest = &text[at + 1..path.end];
        let part = &rest[..rest.find([';', '/']).unwrap_or(rest.len())];
        if is_session(name_of(part), value_of(part)) {
            let end = at + 1 + part.len();
            let id_at = end - value_of(part).len()..end;
            return Some(SessionId::at(text, name_of(part), id_at, at..end));
        }
        from = at + 1;
    }
    None
}

/// `/(S(ID))/a`, also with an A or F in place of the S and several of them.
fn in_brackets(text: &str, path: Range<usize>) -> Option<SessionId> {
    let at = path.start + text[path.clone()].find("/(")?;
    let segment = text[at + 1..path.end].split('/').next()?;
    let inner = segment.strip_prefix('(')?.strip_suffix(')')?;
    let (kind, id) = inner.strip_suffix(')')?.split_once('(')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '(' | ')');
    if !matches!(kind, "S" | "A" | "F") || id.len() < MIN_BYTES || !id.chars().all(plain) {
        return None;
    }
    let end = at + 1 + segment.len();
    let id_at = end - 2 - id.len()..end - 2;
    // The slash before it goes, the one behind it stays.
    let all_at = at..end;
    (text.get(end..=end) == Some("/")).then(|| SessionId::at(text, "(S())", id_at, all_at))
}

fn in_query(text: &str, query_at: usize) -> Option<SessionId> {
    let query = text[query_at..].strip_prefix('?')?;
    let mut at = query_at + 1;
    for part in query.split('&') {
        let end = at + part.len();
        if is_session(name_of(part), value_of(part)) {
            let id_at = end - value_of(part).len()..end;
            // One separator goes along: the one behind it, or the one before it at the end.
            let all_at = match end < text.len() {
                true => at..end + 1,
                false => at - 1..end,
            };
            return Some(SessionId::at(text, name_of(part), id_at, all_at));
        }
        at = end + 1;
    }
    None
}

fn is_session(name: &str, value: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_name = NAMES.contains(&lower.as_str()) || lower.starts_with("aspsessionid");
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!,%".contains(&byte);
    // ColdFusion counts its visitors, so its ids are short.
    let short = matches!(lower.as_str(), "cfid" | "cftoken");
    is_name
        && (value.len() >= MIN_BYTES || (short && !value.is_empty()))
        && value.bytes().all(plain)
        && value.bytes().any(|byte| byte.is_ascii_digit())
}
