//! Session ids in URLs, which identify the reader.

use std::ops::Range;

use crate::canonical::CanonicalUrl;
use crate::query::{name_of, spliced, value_of};

/// Names of parameters that contain only a session id, in lower case.
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

/// Minimum length of an id. A shorter value, as in `sid=3`, is an ordinary number.
const MIN_BYTES: usize = 12;

/// A session id and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionId {
    /// The parameter's name in lower case, or `(S())` for the cookieless form of ASP.NET.
    pub name: String,
    /// The id as written.
    pub id: String,
    id_at: Range<usize>,
    /// The range of the URL to remove: the id, its parameter name and its separators.
    all_at: Range<usize>,
}

impl SessionId {
    /// Returns the first session id in a URL.
    #[must_use]
    pub fn find(url: &CanonicalUrl) -> Option<SessionId> {
        let text = url.as_str();
        let path_at = text.len() - url.path_and_query().len();
        let query_at = path_at + url.path().len();
        // Return early for most URLs, which can't contain a session id.
        if query_at == text.len() && !text[path_at..].contains([';', '(']) {
            return None;
        }
        in_path_parameter(text, path_at..query_at)
            .or_else(|| in_brackets(text, path_at..query_at))
            .or_else(|| in_query(text, query_at))
    }

    /// Returns the URL without the session id.
    #[must_use]
    pub fn removed(&self, url: &CanonicalUrl) -> Option<CanonicalUrl> {
        spliced(url, self.all_at.clone(), "")
    }

    /// Returns the URL with the session id replaced by `id`.
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

/// Finds `/a;jsessionid=ID/b` (Java servlets, section 7.1.3 of their specification).
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

/// Finds `/(S(ID))/a`. Also finds `A(ID)` and `F(ID)`, and several such parts in one pair of
/// brackets.
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
    // Remove the slash before the id and keep the slash after it.
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
            // Remove one separator with the parameter: the one after it or, at the end of the
            // query, the one before it.
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
    // ColdFusion numbers its visitors, so its ids are short.
    let short = matches!(lower.as_str(), "cfid" | "cftoken");
    is_name
        && (value.len() >= MIN_BYTES || (short && !value.is_empty()))
        && value.bytes().all(plain)
        && value.bytes().any(|byte| byte.is_ascii_digit())
}
