//! Logins to sites: how the crawl logs in, and how pages show whether the crawl is logged in.
//!
//! Nothing here does I/O. The crawl loop sends the requests of a login (`crawl_loop/logins.rs`),
//! and the driver reads the credentials.

#[cfg(test)]
pub(crate) mod fixtures;
mod form;
pub(crate) mod refused_credentials;
mod session_signs;

use std::fmt;
use std::sync::Arc;

use crawl_fetcher::SiteSessions;
use crawl_weburl::CanonicalUrl;

pub(crate) use self::form::{LoginForm, login_form};
pub use self::session_signs::{PageSign, PageSignError};
pub(crate) use self::session_signs::{SessionStatus, decoded, judge};

/// How the crawl logs in to a site.
#[derive(Clone, Debug)]
pub struct SiteLogin {
    /// The name of the site, as in a [`HostPatternMap`](crawl_weburl::HostPatternMap).
    pub site: String,
    /// The form or token of the login.
    pub method: LoginMethod,
    /// The source of the login's secrets.
    pub credentials: CredentialSource,
    /// A sign that pages have only if the crawl is logged in.
    pub logged_in: Option<PageSign>,
    /// A sign that pages have only if the crawl is logged out.
    pub logged_out: Option<PageSign>,
    /// Whether to skip links that look like actions, such as a log-out.
    pub skips_actions: bool,
    /// Whether the login may use plain http.
    pub plain_http: bool,
}

/// The two kinds of login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginMethod {
    /// Fetch the page at `url`, fill in its form that has all these `fields`, and send the form.
    Form {
        /// The page with the form.
        url: CanonicalUrl,
        /// Names of the form's fields for which there are credentials.
        fields: Vec<String>,
    },
    /// Send a token with each request.
    Token {
        /// The name of the header field with the token.
        header: String,
    },
}

impl SiteLogin {
    /// Returns whether the login has a sign by which a page shows that the crawl is logged in or
    /// out.
    #[must_use]
    pub fn has_signs(&self) -> bool {
        self.logged_in.is_some() || self.logged_out.is_some()
    }
}

/// Reads the passwords that earlier runs sent, so that they are redacted from the first response
/// on. May block. Returns the sites whose passwords can't be read, each with the reason.
pub(crate) fn learn_passwords(
    logins: &[Arc<SiteLogin>],
    sessions: &SiteSessions,
) -> Vec<(String, String)> {
    let mut unusable = Vec::new();
    for login in logins {
        // Skip tokens: they are stored with the session.
        let is_form = matches!(login.method, LoginMethod::Form { .. });
        let Some(secret_fields) = sessions.secret_fields(&login.site).filter(|_| is_form) else {
            continue;
        };
        match login.credentials.read() {
            Ok(credentials) => {
                let is_secret = |name: &String| secret_fields.contains(name);
                for (_, value) in credentials.iter().filter(|(name, _)| is_secret(name)) {
                    sessions.learn_secret(value);
                }
            }
            Err(why) => unusable.push((login.site.clone(), why)),
        }
    }
    unusable
}

/// Why a login failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoginFailure {
    pub(crate) why: String,
    /// Whether the site refused the credentials. Refused credentials are not sent again, because
    /// some sites lock an account after a few wrong passwords.
    pub(crate) is_refused: bool,
}

impl From<String> for LoginFailure {
    fn from(why: String) -> LoginFailure {
        LoginFailure {
            why,
            is_refused: false,
        }
    }
}

/// Reads the secrets of a login when they are needed: the value of each form field, or the token.
/// `Debug` hides them.
#[derive(Clone)]
pub struct CredentialSource(Arc<ReadSecrets>);

/// A function that returns the name and value of each secret, or why they can't be read. The names
/// are those of form fields. The name of a token is ignored.
type ReadSecrets = dyn Fn() -> Result<Vec<(String, String)>, String> + Send + Sync;

impl CredentialSource {
    /// Creates credentials from a function that may block, for example because it runs a command.
    pub fn new(
        read: impl Fn() -> Result<Vec<(String, String)>, String> + Send + Sync + 'static,
    ) -> CredentialSource {
        CredentialSource(Arc::new(read))
    }

    /// Reads the secrets. May block.
    pub(crate) fn read(&self) -> Result<Vec<(String, String)>, String> {
        (self.0)()
    }
}

impl fmt::Debug for CredentialSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialSource")
    }
}
