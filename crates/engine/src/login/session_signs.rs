//! Judges from a response whether the crawl is logged in.

use std::borrow::Cow;

use crawl_coding::{DecodeEnd, DecodeLimits, DecodedBody, decode};
use crawl_extractor::{DecodedPage, is_html};
use crawl_fetcher::Exchange;
use crawl_fields::CssPageMatcher;
use http::header::{CONTENT_ENCODING, HeaderValue};

use super::{LoginMethod, SiteLogin};
use crate::content_type::content_type;

/// Maximum decoded bytes of a page to search for `logged-in` and `logged-out`.
/// Beyond the limit: the rest is not searched.
const MAX_SEARCHED_BYTES: usize = 4 << 20;
/// Maximum bytes of a text that shows whether the crawl is logged in.
/// Beyond the limit: refused.
const MAX_SIGN_BYTES: usize = 1_024;

/// A sign in a page that shows whether the crawl is logged in. It is either a text in the page's
/// source, such as `>Log out<` or `id="account"`, or a CSS selector that one of the page's
/// elements matches.
#[derive(Clone, Debug)]
pub struct PageSign(SessionSign);

#[derive(Clone, Debug)]
enum SessionSign {
    Text(String),
    Selector(CssPageMatcher),
}

/// Why a text can't be used as a [`PageSign`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PageSignError {
    /// The text is empty, so every page would contain it.
    #[error("it is empty")]
    Empty,
    /// The text is too long.
    #[error("it is longer than {MAX_SIGN_BYTES} bytes")]
    TooLong,
    /// The text is not a CSS selector that this build supports.
    #[error("bad selector `{text}`: {why}")]
    Selector {
        /// The text.
        text: String,
        /// The mistake.
        why: String,
    },
}

impl PageSign {
    /// Creates a sign from a text that is searched for in the source of pages.
    ///
    /// # Errors
    /// The text is empty or too long.
    pub fn text(text: &str) -> Result<PageSign, PageSignError> {
        check_length(text)?;
        Ok(PageSign(SessionSign::Text(text.to_owned())))
    }

    /// Creates a sign from a CSS selector that the elements of pages are compared with.
    ///
    /// # Errors
    /// The selector is empty, too long or invalid, or this build can't apply selectors.
    pub fn selector(text: &str) -> Result<PageSign, PageSignError> {
        check_length(text)?;
        let selector = CssPageMatcher::parse(text).map_err(|why| PageSignError::Selector {
            text: text.to_owned(),
            why,
        })?;
        Ok(PageSign(SessionSign::Selector(selector)))
    }

    /// Returns whether a page has the sign. `None` if the page exceeds a limit before a match is
    /// found.
    fn is_on(&self, page: &DecodedPage<'_>) -> Option<bool> {
        match &self.0 {
            SessionSign::Text(text) => Some(page.as_str().contains(text)),
            SessionSign::Selector(selector) => selector.is_on(page.as_str()),
        }
    }
}

fn check_length(text: &str) -> Result<(), PageSignError> {
    match text.len() {
        0 => Err(PageSignError::Empty),
        1..=MAX_SIGN_BYTES => Ok(()),
        _ => Err(PageSignError::TooLong),
    }
}

/// The state of a site's session, judging by a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SessionStatus {
    LoggedIn,
    /// The crawl is logged out. Contains the reason for this conclusion.
    LoggedOut(String),
    /// The response does not show the state, for example because it is an image or an error page.
    Unknown,
}

/// Returns the content type of a response, and its decoded body.
pub(crate) fn decoded(answer: &Exchange) -> (Option<Cow<'_, str>>, DecodedBody) {
    let limits = DecodeLimits {
        bytes: MAX_SEARCHED_BYTES,
        ..DecodeLimits::default()
    };
    let codings = answer.headers.get_all(CONTENT_ENCODING).iter();
    let body = decode(codings.map(HeaderValue::as_bytes), &answer.body, &limits);
    (content_type(&answer.headers), body)
}

/// Judges from a response whether the crawl is logged in to the site that sent it.
pub(crate) fn judge(login: &SiteLogin, answer: &Exchange) -> SessionStatus {
    let out = |why: &str| SessionStatus::LoggedOut(why.to_owned());
    if answer.status == 401 {
        return out("it answered 401");
    }
    if let (Some(Ok(target)), LoginMethod::Form { url, .. }) =
        (answer.redirect_target(), &login.method)
        && target.origin() == url.origin()
        && target.path() == url.path()
    {
        return out("it redirects to the login form");
    }
    if answer.sent.is_head {
        return SessionStatus::Unknown;
    }
    let (content_type, body) = decoded(answer);
    let content_type = content_type.as_deref();
    if !is_html(content_type, &body.bytes) {
        return SessionStatus::Unknown;
    }
    let page = DecodedPage::decode(&body.bytes, content_type);
    if let Some(sign) = &login.logged_out
        && sign.is_on(&page) == Some(true)
    {
        return out(match sign.0 {
            SessionSign::Text(_) => "it contains the text of `logged-out`",
            SessionSign::Selector(_) => "an element matches `logged-out`",
        });
    }
    // An error page often lacks the navigation bar that shows the user's name, so it doesn't prove
    // that the crawl is logged out.
    if answer.status != 200 {
        return SessionStatus::Unknown;
    }
    let Some(sign) = &login.logged_in else {
        return SessionStatus::LoggedIn;
    };
    let is_whole = answer.truncated.is_none() && matches!(body.end, DecodeEnd::Whole);
    match (sign.is_on(&page), &sign.0) {
        (Some(true), _) => SessionStatus::LoggedIn,
        (Some(false), SessionSign::Text(_)) if is_whole => {
            out("it doesn't contain the text of `logged-in`")
        }
        (Some(false), SessionSign::Selector(_)) if is_whole => {
            out("no element matches `logged-in`")
        }
        (None | Some(false), _) => SessionStatus::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use crawl_fetcher::Exchange;
    use crawl_weburl::canonicalize;

    use super::super::{CredentialSource, LoginMethod, SiteLogin, fixtures};
    use super::{MAX_SIGN_BYTES, PageSign, PageSignError, SessionStatus, judge};

    /// Returns an HTML answer, unless `fields` sets another content type.
    fn answer(status: u16, fields: &[(&'static str, &str)], body: &'static str) -> Exchange {
        let html = ("content-type", "text/html; charset=iso-8859-1");
        let fields: Vec<_> = [html].iter().chain(fields).copied().collect();
        fixtures::answer("https://a.example/page", status, &fields, body)
    }

    fn login(logged_in: Option<&str>, logged_out: Option<&str>) -> SiteLogin {
        let sign = |text: &str| PageSign::text(text).unwrap();
        SiteLogin {
            site: "a.example".to_owned(),
            method: LoginMethod::Form {
                url: canonicalize(None, "https://a.example/login").unwrap(),
                fields: vec!["user".to_owned()],
            },
            credentials: CredentialSource::new(|| Ok(Vec::new())),
            logged_in: logged_in.map(sign),
            logged_out: logged_out.map(sign),
            skips_actions: true,
            plain_http: false,
        }
    }

    #[test]
    fn selectors_are_signs_too() {
        let selector = |text| Some(PageSign::selector(text).unwrap());
        let is_in = SiteLogin {
            logged_in: selector("a.logout"),
            logged_out: selector("form#login"),
            ..login(None, None)
        };
        for (body, expected) in [
            ("<a class='big logout'>Bye</a>", SessionStatus::LoggedIn),
            (
                "<p>&lt;a class=logout&gt;",
                SessionStatus::LoggedOut("no element matches `logged-in`".to_owned()),
            ),
            (
                "<a class=logout></a><form id=login>",
                SessionStatus::LoggedOut("an element matches `logged-out`".to_owned()),
            ),
        ] {
            assert_eq!(judge(&is_in, &answer(200, &[], body)), expected, "{body}");
        }
        let bad = PageSign::selector("a..b").unwrap_err().to_string();
        assert!(bad.starts_with("bad selector `a..b`: "), "{bad}");
    }

    #[test]
    fn answers_show_whether_the_crawl_is_logged_in() {
        let out = "<p>Log out</p>";
        let to = |target| [("location", target)];
        let is_in = login(Some("Log out"), None);
        let is_out = login(None, Some("Log in"));
        let image = [("content-type", "image/png")];
        for (login, answer, expected) in [
            (&is_in, answer(200, &[], out), "in"),
            (
                &is_in,
                answer(200, &[], "<p>Hi"),
                "it doesn't contain the text of `logged-in`",
            ),
            (&is_in, answer(404, &[], "<p>Hi"), "unknown"),
            (&is_in, answer(401, &[], out), "it answered 401"),
            (&is_in, answer(200, &image, "\u{1}PNG"), "unknown"),
            (
                &is_in,
                answer(302, &to("/login?next=%2F"), ""),
                "it redirects to the login form",
            ),
            (&is_in, answer(302, &to("/other"), ""), "unknown"),
            (
                &is_in,
                answer(302, &to("https://b.example/login"), ""),
                "unknown",
            ),
            (&is_out, answer(200, &[], "<p>Hi"), "in"),
            (
                &is_out,
                answer(200, &[], "Log in"),
                "it contains the text of `logged-out`",
            ),
            (
                &is_out,
                answer(403, &[], "Log in"),
                "it contains the text of `logged-out`",
            ),
        ] {
            let shown = match judge(login, &answer) {
                SessionStatus::LoggedIn => "in".to_owned(),
                SessionStatus::Unknown => "unknown".to_owned(),
                SessionStatus::LoggedOut(why) => why,
            };
            assert_eq!(shown, expected, "{} {:?}", answer.status, answer.body);
        }
    }

    #[test]
    fn the_text_is_searched_for_after_decoding() {
        let umlaut = login(Some("Grüße"), None);
        let mut latin = answer(200, &[], "");
        latin.body = Bytes::from_static(b"<p>Gr\xfc\xdfe</p>");
        assert_eq!(judge(&umlaut, &latin), SessionStatus::LoggedIn);
    }

    #[test]
    fn a_sign_is_neither_empty_nor_long() {
        assert_eq!(PageSign::text("").unwrap_err(), PageSignError::Empty);
        let long = "x".repeat(MAX_SIGN_BYTES + 1);
        assert_eq!(PageSign::text(&long).unwrap_err(), PageSignError::TooLong);
    }
}
