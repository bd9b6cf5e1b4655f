//! Judges from a response whether the crawl is logged in.

use crawl_coding::{DecodeEnd, DecodeLimits, Decoded, decode};
use crawl_extractor::{PageText, is_html};
use crawl_fetcher::Exchange;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};

use super::{LoginMethod, SiteLogin};

/// Maximum decoded bytes of a page to search for `logged-in` and `logged-out`.
/// Beyond the limit: the rest is not searched.
const MAX_SEARCHED_BYTES: usize = 4 << 20;
/// Maximum bytes of a text that shows whether the crawl is logged in.
/// Beyond the limit: refused.
const MAX_SIGN_BYTES: usize = 1_024;

/// A text in the source of pages that shows whether the crawl is logged in, such as `>Log out<` or `id="account"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageSign(String);

/// Why a text can't be used as a [`PageSign`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadSign {
    /// Every page contains the empty text.
    #[error("it is empty")]
    Empty,
    /// The text is too long.
    #[error("it is longer than {MAX_SIGN_BYTES} bytes")]
    TooLong,
}

impl PageSign {
    /// Creates a sign from a text that is searched for in the source of pages.
    ///
    /// # Errors
    /// The text is empty or too long.
    pub fn text(text: &str) -> Result<PageSign, BadSign> {
        match text.len() {
            0 => Err(BadSign::Empty),
            1..=MAX_SIGN_BYTES => Ok(PageSign(text.to_owned())),
            _ => Err(BadSign::TooLong),
        }
    }

    fn is_on(&self, page: &PageText<'_>) -> bool {
        page.as_str().contains(&self.0)
    }
}

/// The state of a site's session, as far as a response shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Session {
    LoggedIn,
    /// The crawl is logged out, and why that is certain.
    LoggedOut(String),
    /// The response shows nothing, for example because it is an image or an error page.
    Unknown,
}

/// Returns the content type of a response, and its decoded body.
pub(crate) fn decoded(answer: &Exchange) -> (Option<&str>, Decoded) {
    let content_type = answer.headers.get(CONTENT_TYPE);
    let limits = DecodeLimits {
        bytes: MAX_SEARCHED_BYTES,
        ..DecodeLimits::default()
    };
    let codings = answer.headers.get_all(CONTENT_ENCODING).iter();
    let body = decode(codings.map(HeaderValue::as_bytes), &answer.body, &limits);
    (content_type.and_then(|value| value.to_str().ok()), body)
}

/// Judges from a response whether the crawl is logged in to the site that sent it.
pub(crate) fn judge(login: &SiteLogin, answer: &Exchange) -> Session {
    let out = |why: &str| Session::LoggedOut(why.to_owned());
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
        return Session::Unknown;
    }
    let (content_type, body) = decoded(answer);
    if !is_html(content_type, &body.bytes) {
        return Session::Unknown;
    }
    let page = PageText::decode(&body.bytes, content_type);
    if login
        .logged_out
        .as_ref()
        .is_some_and(|sign| sign.is_on(&page))
    {
        return out("it contains the text of `logged-out`");
    }
    let is_whole = answer.truncated.is_none() && matches!(body.end, DecodeEnd::Whole);
    match &login.logged_in {
        // An error page often lacks the navigation that shows the user's name.
        _ if answer.status != 200 => Session::Unknown,
        Some(sign) if sign.is_on(&page) => Session::LoggedIn,
        Some(_) if is_whole => out("it doesn't contain the text of `logged-in`"),
        Some(_) => Session::Unknown,
        None => Session::LoggedIn,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use crawl_fetcher::Exchange;
    use crawl_weburl::canonicalize;

    use super::super::{Credentials, LoginMethod, SiteLogin, fixtures};
    use super::{BadSign, MAX_SIGN_BYTES, PageSign, Session, judge};

    /// Returns an answer of HTML, unless `fields` has another type.
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
            credentials: Credentials::new(|| Ok(Vec::new())),
            logged_in: logged_in.map(sign),
            logged_out: logged_out.map(sign),
            skips_actions: true,
            plain_http: false,
        }
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
                Session::LoggedIn => "in".to_owned(),
                Session::Unknown => "unknown".to_owned(),
                Session::LoggedOut(why) => why,
            };
            assert_eq!(shown, expected, "{} {:?}", answer.status, answer.body);
        }
    }

    #[test]
    fn the_text_is_searched_for_after_decoding() {
        let umlaut = login(Some("Grüße"), None);
        let mut latin = answer(200, &[], "");
        latin.body = Bytes::from_static(b"<p>Gr\xfc\xdfe</p>");
        assert_eq!(judge(&umlaut, &latin), Session::LoggedIn);
    }

    #[test]
    fn a_sign_is_neither_empty_nor_long() {
        assert_eq!(PageSign::text(""), Err(BadSign::Empty));
        let long = "x".repeat(MAX_SIGN_BYTES + 1);
        assert_eq!(PageSign::text(&long), Err(BadSign::TooLong));
    }
}
