//! Detects interstitials: pages shown instead of the requested page, such as a login form, a
//! challenge or a block notice.
//!
//! Detection only lets the records state what was served. The crawler never bypasses an
//! interstitial.
//!
//! Ordinary pages also contain login boxes, captchas beneath their forms, and articles about such
//! pages. A page therefore counts as an interstitial only if a documented header marks it as one,
//! or if it shows little else.

use std::cell::LazyCell;

use http::HeaderMap;
use http::header::{HeaderName, SERVER};
use memchr::{memchr_iter, memmem};

/// Maximum bytes of a page to search for the marks of guards (services that protect a site). This
/// suffices because interstitials are short.
const MAX_MARKUP_BYTES: usize = 64 << 10;
/// Maximum letters of visible text on a login page. Articles about login forms have more.
const MAX_LOGIN_TEXT: usize = 3_000;
/// Maximum letters of visible text on a block page.
const MAX_BLOCK_TEXT: usize = 4_000;
/// Maximum links on a login page.
const MAX_LOGIN_LINKS: usize = 60;

/// The kind of a page shown instead of the requested one: a login form, a challenge or a block
/// notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Interstitial {
    /// A form for a name and a password, and little else.
    LoginPage,
    /// A test of whether the visitor is a person or a browser.
    Challenge,
    /// A notice that the service guarding the site refused the request.
    BlockPage,
}

impl Interstitial {
    const ALL: [Interstitial; 3] = [
        Interstitial::LoginPage,
        Interstitial::Challenge,
        Interstitial::BlockPage,
    ];

    /// Returns a short fixed name for records and counters.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Interstitial::LoginPage => "login_page",
            Interstitial::Challenge => "challenge",
            Interstitial::BlockPage => "block_page",
        }
    }

    /// Returns the interstitial with this [name](Interstitial::name).
    #[must_use]
    pub fn named(name: &str) -> Option<Interstitial> {
        Interstitial::ALL
            .into_iter()
            .find(|known| known.name() == name)
    }

    /// Returns whether the links on the page are the site's own. A challenge or block page belongs
    /// to the service that guards the site, and so do its links.
    #[must_use]
    pub fn has_own_links(self) -> bool {
        self == Interstitial::LoginPage
    }
}

/// The features of a page that may identify it as an interstitial: title, heading, password fields,
/// links, text. All are empty if the answer is not a page.
#[derive(Clone, Copy, Debug, Default)]
pub struct InterstitialSigns<'p> {
    /// The text of the `title` element.
    pub title: &'p str,
    /// The text of the first `h1`.
    pub heading: &'p str,
    /// Number of password fields.
    pub passwords: usize,
    /// Number of `a` elements.
    pub links: usize,
    /// Letters of visible text, without white space.
    pub letters: usize,
    /// The page's source.
    pub markup: &'p str,
}

/// Returns which interstitial an answer is, or `None` if it is an ordinary answer.
///
/// ```
/// use crawl_fetcher::{Interstitial, InterstitialSigns, interstitial};
/// use http::HeaderMap;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("cf-mitigated", "challenge".parse().unwrap());
/// let none = InterstitialSigns::default();
/// assert_eq!(interstitial(403, &headers, &none), Some(Interstitial::Challenge));
/// let page = InterstitialSigns { heading: "Captchas", letters: 8, ..none };
/// assert_eq!(interstitial(200, &HeaderMap::new(), &page), None);
/// ```
#[must_use]
pub fn interstitial(
    status: u16,
    headers: &HeaderMap,
    page: &InterstitialSigns<'_>,
) -> Option<Interstitial> {
    if let Some(said) = by_headers(headers) {
        return Some(said);
    }
    // RFC 6585 section 6: the answer comes from the network's gateway, not the host.
    if status == 511 {
        return Some(Interstitial::LoginPage);
    }
    if page.markup.is_empty() {
        return None;
    }
    by_markup(status, headers, page).or_else(|| login(status, page))
}

/// Checks the fields that guards send with a challenge or block: Cloudflare, AWS WAF, Vercel.
fn by_headers(headers: &HeaderMap) -> Option<Interstitial> {
    let says = |name: &'static str, words: &[&str]| {
        let value = headers.get(HeaderName::from_static(name));
        let value = value.and_then(|value| value.to_str().ok());
        value.is_some_and(|value| words.iter().any(|word| value.eq_ignore_ascii_case(word)))
    };
    if says("cf-mitigated", &["challenge"])
        || says("x-amzn-waf-action", &["challenge", "captcha"])
        || says("x-vercel-mitigated", &["challenge"])
    {
        return Some(Interstitial::Challenge);
    }
    says("x-vercel-mitigated", &["deny"]).then_some(Interstitial::BlockPage)
}

/// A page of one guard (a service that protects sites), described by what the page contains.
struct InterstitialPattern {
    is: Interstitial,
    /// The statuses that the page may have. If empty, any status that interstitials are known to
    /// have.
    statuses: &'static [u16],
    /// The title, or the beginning of the title followed by `*`. Empty for any title.
    title: &'static str,
    /// Strings that the page's markup, in lower case, must all contain.
    marks: &'static [&'static str],
}

const INTERSTITIAL_PATTERNS: &[InterstitialPattern] = &[
    // Cloudflare.
    InterstitialPattern {
        is: Interstitial::Challenge,
        statuses: &[403, 429, 503],
        title: "just a moment...",
        marks: &["/cdn-cgi/challenge-platform/"],
    },
    InterstitialPattern {
        is: Interstitial::BlockPage,
        statuses: &[403, 429, 503],
        title: "attention required! | cloudflare",
        marks: &["cf-error-details"],
    },
    InterstitialPattern {
        is: Interstitial::BlockPage,
        statuses: &[403, 429],
        title: "access denied | *",
        marks: &["cf-error-details"],
    },
    // Anubis, which answers 200 by default.
    InterstitialPattern {
        is: Interstitial::Challenge,
        statuses: &[],
        title: "",
        marks: &["<script id=\"anubis_challenge\""],
    },
    // DataDome.
    InterstitialPattern {
        is: Interstitial::Challenge,
        statuses: &[403, 405],
        title: "",
        marks: &["captcha-delivery.com/"],
    },
    // HUMAN, formerly PerimeterX.
    InterstitialPattern {
        is: Interstitial::Challenge,
        statuses: &[403, 429],
        title: "",
        marks: &["_pxappid", "px-captcha"],
    },
    // AWS WAF.
    InterstitialPattern {
        is: Interstitial::Challenge,
        statuses: &[202, 405],
        title: "",
        marks: &["awswafintegration", "gokuprops"],
    },
    // Sucuri.
    InterstitialPattern {
        is: Interstitial::BlockPage,
        statuses: &[],
        title: "sucuri website firewall - access denied",
        marks: &[],
    },
    // Imperva.
    InterstitialPattern {
        is: Interstitial::BlockPage,
        statuses: &[],
        title: "",
        marks: &["_incapsula_resource", "incapsula incident id"],
    },
    // Akamai.
    InterstitialPattern {
        is: Interstitial::BlockPage,
        statuses: &[403],
        title: "access denied",
        marks: &["errors.edgesuite.net"],
    },
    // F5, which answers 200.
    InterstitialPattern {
        is: Interstitial::BlockPage,
        statuses: &[],
        title: "request rejected",
        marks: &["the requested url was rejected", "support id"],
    },
    // Wordfence.
    InterstitialPattern {
        is: Interstitial::BlockPage,
        statuses: &[403, 503],
        title: "",
        marks: &["generated by wordfence", "your access to this s"],
    },
    // ModSecurity as configured by hosting companies.
    InterstitialPattern {
        is: Interstitial::BlockPage,
        statuses: &[403, 406],
        title: "not acceptable!",
        marks: &["mod_security"],
    },
];

fn by_markup(
    status: u16,
    headers: &HeaderMap,
    page: &InterstitialSigns<'_>,
) -> Option<Interstitial> {
    let is_looked_at = matches!(status, 200..=299 | 401 | 403 | 405 | 406 | 429 | 503);
    if !is_looked_at || page.letters > MAX_BLOCK_TEXT {
        return None;
    }
    let title = page.title.to_lowercase();
    let server = headers.get(SERVER).and_then(|value| value.to_str().ok());
    if status == 403 && server == Some("ddos-guard") && title == "ddos-guard" {
        return Some(Interstitial::Challenge);
    }
    let markup = LazyCell::new(|| markup_of(page.markup));
    let pattern = INTERSTITIAL_PATTERNS.iter().find(|pattern| {
        (pattern.statuses.is_empty() || pattern.statuses.contains(&status))
            && is_title(pattern.title, &title)
            && pattern.marks.iter().all(|mark| may_hold(page.markup, mark))
            && pattern
                .marks
                .iter()
                .all(|mark| memmem::find(&markup, mark.as_bytes()).is_some())
    });
    pattern.map(|pattern| pattern.is)
}

/// Returns whether a page may contain a mark. If the mark has an underscore, checks only the
/// surroundings of the page's underscores. Underscores are rare, so this rules out most pages
/// without a conversion to lower case.
fn may_hold(text: &str, mark: &str) -> bool {
    let Some(before) = mark.find('_') else {
        return true;
    };
    let text = &text.as_bytes()[..text.len().min(MAX_MARKUP_BYTES)];
    memchr_iter(b'_', text).any(|at| {
        let from = at.checked_sub(before);
        let candidate = from.and_then(|from| text.get(from..from + mark.len()));
        candidate.is_some_and(|candidate| candidate.eq_ignore_ascii_case(mark.as_bytes()))
    })
}

/// Returns the beginning of a page in lower case and without comments. Comments are left out,
/// because comments in templates and in articles about guards may mention the marks.
fn markup_of(text: &str) -> Vec<u8> {
    let mut rest = &text.as_bytes()[..text.len().min(MAX_MARKUP_BYTES)];
    let mut markup = Vec::with_capacity(rest.len());
    while let Some(comment) = memmem::find(rest, b"<!--") {
        markup.extend_from_slice(&rest[..comment]);
        rest = &rest[comment..];
        rest = memmem::find(rest, b"-->").map_or(&[], |end| &rest[end + 3..]);
    }
    markup.extend_from_slice(rest);
    markup.make_ascii_lowercase();
    markup
}

fn is_title(wanted: &str, title: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(beginning) => title.starts_with(beginning),
        None => wanted.is_empty() || wanted == title,
    }
}

/// Words for "login" in several languages, in lower case, as in the titles of login pages.
const LOGIN_WORDS: &[&str] = &[
    "login",
    "log in",
    "log-in",
    "logon",
    "log on",
    "sign in",
    "signin",
    "sign-in",
    "sign on",
    "anmelden",
    "anmeldung",
    "einloggen",
    "connexion",
    "se connecter",
    "identification",
    "iniciar sesión",
    "inicio de sesión",
    "acceder",
    "entrar",
    "iniciar sessão",
    "accedi",
    "inloggen",
    "logga in",
    "logg inn",
    "log ind",
    "kirjaudu sisään",
    "zaloguj się",
    "logowanie",
    "přihlášení",
    "bejelentkezés",
    "giriş yap",
    "вход",
    "войти",
    "ログイン",
    "サインイン",
    "登录",
    "登入",
    "로그인",
];

/// Detects a login page. Such a page has exactly one password field, little text and few links, and
/// its title or first heading is just a word for "login". A form to choose a new password doesn't
/// count, because it has more password fields.
fn login(status: u16, page: &InterstitialSigns<'_>) -> Option<Interstitial> {
    let is_form =
        page.passwords == 1 && page.letters <= MAX_LOGIN_TEXT && page.links <= MAX_LOGIN_LINKS;
    let answers = matches!(status, 200..=299 | 401 | 403);
    let names = [page.title, page.heading];
    let named = || {
        names
            .into_iter()
            .any(|name| is_login_name(&name.to_lowercase()))
    };
    (is_form && answers && named()).then_some(Interstitial::LoginPage)
}

/// Returns whether a lower-case title is just a word for "login", apart from the site's name.
fn is_login_name(title: &str) -> bool {
    let separators = [
        '|', '-', '\u{2013}', '\u{2014}', '\u{b7}', '\u{bb}', '\u{ab}', ':', '/',
    ];
    let whole = std::iter::once(title);
    let parts = title.split(" - ").chain(title.split(separators));
    whole.chain(parts).any(|part| {
        let part = part.trim().trim_end_matches(['.', '!', '\u{2026}']);
        let first = [
            "please ",
            "member ",
            "user ",
            "customer ",
            "account ",
            "admin ",
        ];
        let part = first
            .into_iter()
            .find_map(|word| part.strip_prefix(word))
            .unwrap_or(part);
        LOGIN_WORDS.iter().any(|word| {
            part.strip_prefix(word).is_some_and(|rest| {
                matches!(rest, "" | " page" | " required")
                    || rest.starts_with(" to ")
                    || rest.starts_with(" bei ")
            })
        })
    })
}
