//! URLs that look as if requesting them had a side effect.
//!
//! The robots.txt standard of 1994 was made to keep robots from "scripts with side effects (such as
//! voting)". GET is safe by RFC 9110 section 9.2.1, but not every site respects that.

use std::fmt;

use crawl_weburl::CanonicalUrl;

/// Words that name an action, in lower case: as the last segment of a path, as the name of a
/// parameter, or as the value of a parameter listed in `VERBS`.
const ACTION_WORDS: [&str; 30] = [
    "add-to-cart",
    "add_to_cart",
    "addtocart",
    "approve",
    "basket-add",
    "cart-add",
    "delete",
    "destroy",
    "downvote",
    "like",
    "log-off",
    "log-out",
    "log_out",
    "logoff",
    "logout",
    "purge",
    "remove",
    "report-abuse",
    "rollback",
    "sign-off",
    "sign-out",
    "sign_out",
    "signoff",
    "signout",
    "subscribe",
    "trash",
    "unlike",
    "unsubscribe",
    "upvote",
    "vote",
];

/// Names of parameters whose value names an action.
const VERBS: [&str; 9] = [
    "action", "act", "do", "op", "cmd", "command", "task", "method", "func",
];

/// Further values that name an action in a parameter listed in `VERBS`, in lower case.
const VALUES: [&str; 16] = [
    "add", "addcart", "buy_now", "create", "edit", "insert", "logout", "markread", "move", "new",
    "post", "reply", "save", "submit", "update", "watch",
];

/// File extensions of programs. A file with another extension, such as `delete.html`, may be a page
/// about deleting.
const PROGRAMS: [&str; 11] = [
    "php", "cgi", "pl", "asp", "aspx", "jsp", "jspx", "do", "action", "cfm", "py",
];

/// The reason why requesting a URL may have a side effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideEffectReason {
    /// The last segment of the path names an action. Contains this segment.
    Path(String),
    /// A parameter names an action. Contains the parameter as written in the URL.
    Parameter(String),
    /// The path is that of a program under cgi-bin, and the URL has a query.
    Cgi,
}

impl fmt::Display for SideEffectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SideEffectReason::Path(name) => write!(f, "path ends in {name}"),
            SideEffectReason::Parameter(text) => write!(f, "parameter {text}"),
            SideEffectReason::Cgi => f.write_str("cgi-bin with a query"),
        }
    }
}

/// Returns the reason why requesting a URL may have a side effect. `None` if nothing in the URL
/// suggests a side effect.
///
/// ```
/// use crawl_scope::action;
/// use crawl_weburl::canonicalize;
///
/// let url = |text| canonicalize(None, text).unwrap();
/// let edit = action(&url("http://a.example/wiki/Home?action=edit")).unwrap();
/// assert_eq!(edit.to_string(), "parameter action=edit");
/// assert_eq!(action(&url("http://a.example/sql/delete.html")), None);
/// ```
#[must_use]
pub fn action(url: &CanonicalUrl) -> Option<SideEffectReason> {
    let has_query = url.as_url().query().is_some_and(|query| !query.is_empty());
    let path = url.path();
    if has_query && path.contains("/cgi-bin/") {
        return Some(SideEffectReason::Cgi);
    }
    let last = path
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let stem = match last.rsplit_once('.') {
        Some((stem, ending)) if PROGRAMS.contains(&ending.to_ascii_lowercase().as_str()) => stem,
        _ => last,
    };
    if ACTION_WORDS.contains(&stem.to_ascii_lowercase().as_str()) {
        return Some(SideEffectReason::Path(last.to_owned()));
    }
    url.parameters().find_map(|(name, value)| {
        let (name_lower, value_lower) = (name.to_ascii_lowercase(), value.to_ascii_lowercase());
        let is_action =
            ACTION_WORDS.contains(&value_lower.as_str()) || VALUES.contains(&value_lower.as_str());
        let is_verb = VERBS.contains(&name_lower.as_str()) && is_action;
        // A parameter name alone can name an action, as in `?delete=7` and `?add-to-cart=7`.
        let is_action_name = ACTION_WORDS.contains(&name_lower.as_str());
        (is_verb || is_action_name).then(|| SideEffectReason::Parameter(format!("{name}={value}")))
    })
}

#[cfg(test)]
mod tests {
    use crawl_weburl::canonicalize;
    use expect_test::{Expect, expect};

    use super::action;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "expectations are written in place"
    )]
    fn check(path: &str, expect: Expect) {
        let url = canonicalize(None, &format!("http://a.example{path}")).unwrap();
        let actual = action(&url).map_or("-".to_owned(), |action| action.to_string());
        expect.assert_eq(&actual);
    }

    #[test]
    fn action_words_are_signs() {
        check("/account/logout", expect!["path ends in logout"]);
        check("/account/Logout.php", expect!["path ends in Logout.php"]);
        check("/poll/3/vote/", expect!["path ends in vote"]);
        check("/item?add-to-cart=7", expect!["parameter add-to-cart=7"]);
        check(
            "/index.php?title=X&action=edit",
            expect!["parameter action=edit"],
        );
        check("/index.php?op=vote&id=3", expect!["parameter op=vote"]);
        check("/cgi-bin/search.pl?q=x", expect!["cgi-bin with a query"]);
    }

    #[test]
    fn pages_about_actions_are_not_signs() {
        for path in [
            "/sql/delete.html",
            "/docs/vote.txt",
            "/delete/how-to",
            "/cgi-bin/counter",
            "/cgi-bin/counter?",
            "/search?q=vote",
            "/index.php?action=view",
            "/index.php?title=Vote",
            "/news/logout-bug-fixed",
        ] {
            check(path, expect!["-"]);
        }
    }
}
