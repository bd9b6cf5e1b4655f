//! Normalizes the paths of requests, and parses the paths in clauses.

/// Returns the normal form of a path with query: escapes of unreserved characters are decoded,
/// other escapes are in capitals, and non-ASCII bytes are escaped.
pub(crate) fn normal(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut normal = String::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%')
            .then(|| path.get(at + 1..at + 3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped {
            Some(byte) if is_unreserved(byte) => normal.push(char::from(byte)),
            Some(byte) => normal.push_str(&format!("%{byte:02X}")),
            None if bytes[at].is_ascii() => normal.push(char::from(bytes[at])),
            None => normal.push_str(&format!("%{:02X}", bytes[at])),
        }
        at += if escaped.is_some() { 3 } else { 1 };
    }
    normal
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// Splits `N:/path` into host and path. Without a number, the host is 0.
pub(crate) fn placed(path: &str) -> (u32, &str) {
    let host = path
        .split_once(":/")
        .and_then(|(host, _)| host.parse().ok());
    match host {
        Some(host) => (host, &path[path.find('/').unwrap_or(0)..]),
        None => (0, path),
    }
}

#[cfg(test)]
mod tests {
    use super::{normal, placed};

    #[test]
    fn spellings_of_a_path_have_one_normal_form() {
        assert_eq!(normal("/caf\u{e9}"), "/caf%C3%A9");
        assert_eq!(normal("/caf%c3%a9"), "/caf%C3%A9");
        assert_eq!(normal("/%62ar?x=%2f"), "/bar?x=%2F");
        assert_eq!(normal("/100%"), "/100%");
        assert_eq!(normal("/%\u{e9}"), "/%%C3%A9");
    }

    #[test]
    fn a_path_may_name_its_host() {
        assert_eq!(placed("/x"), (0, "/x"));
        assert_eq!(placed("2:/x:/y"), (2, "/x:/y"));
    }
}
