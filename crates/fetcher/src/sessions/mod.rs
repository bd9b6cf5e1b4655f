//! Sessions of single sites: the cookies and the token that later requests send again.

#[cfg(feature = "logins")]
mod cookie_date;
#[cfg_attr(not(feature = "logins"), path = "cookie_jar_disabled.rs")]
mod cookie_jar;
mod cookies_txt;
mod stored_cookie;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crawl_scheduler::Tick;
use crawl_weburl::{
    CanonicalUrl, HostKey, HostPatternError, HostPatternMap, host_and_port, public_suffixes,
};
use http::header::{COOKIE, HeaderMap, HeaderName, HeaderValue, SET_COOKIE};
use serde::{Deserialize, Serialize};

use self::cookie_jar::{CookieJar, CookieRefusal, utc};
pub use self::cookies_txt::{BadCookieLine, CookieFile};
use self::stored_cookie::StoredCookie;
use crate::host_request_headers::{HostRequestHeadersError, REDACTED, is_private};
use crate::secret_finder::{LearnedSecrets, SecretKind};

/// The cookies and tokens of the sites for which the operator keeps them. Each site has its own
/// cookies and token, and no request to a host outside the site gets them. Clones share the same
/// state.
///
/// `Debug` shows only the names of the sites.
#[derive(Clone, Default)]
pub struct SiteSessions(Arc<Sessions>);

#[derive(Default)]
struct Sessions {
    sites: HostPatternMap<Mutex<Session>>,
    secrets: LearnedSecrets,
}

/// The session of one site.
#[derive(Default)]
struct Session {
    /// Whether cookies and the token are sent over plain http as well as https.
    plain_http: bool,
    jar: CookieJar,
    token: Option<(HeaderName, HeaderValue)>,
    is_logged_in: bool,
    /// The digest of the cookie file that was imported last.
    imported: Option<String>,
    secret_fields: Option<Vec<String>>,
    refused: Option<RefusedCredentialsDigest>,
    /// Whether the session differs from what [`SiteSessions::unsaved`] returned last.
    is_changed: bool,
    /// Whether a refused cookie of this site was logged. A site may send thousands, so only the
    /// first is logged.
    has_warned: bool,
}

/// A session in its stored form.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredSession {
    cookies: Vec<StoredCookie>,
    token: Option<(String, String)>,
    is_logged_in: bool,
    imported: Option<String>,
    secret_fields: Option<Vec<String>>,
    refused: Option<RefusedCredentialsDigest>,
}

/// A salted digest of credentials that a site refused. Used to check whether other credentials are
/// the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedCredentialsDigest {
    /// When the credentials were sent, in milliseconds since 1970 UTC.
    pub at: u64,
    /// The random salt of the digest.
    pub salt: String,
    /// The digest.
    pub digest: String,
}

impl SiteSessions {
    /// Creates an empty session for each site, given its name as in a [`HostPatternMap`] and
    /// whether its cookies and token may be sent over plain http.
    ///
    /// # Errors
    /// Fails if a name is invalid or occurs twice.
    pub fn new<'a>(
        sites: impl IntoIterator<Item = (&'a str, bool)>,
    ) -> Result<SiteSessions, HostPatternError> {
        let mut sessions = Sessions::default();
        for (site, plain_http) in sites {
            let session = Session {
                plain_http,
                ..Session::default()
            };
            sessions.sites.insert(site, Mutex::new(session))?;
        }
        Ok(SiteSessions(Arc::new(sessions)))
    }

    /// Returns the names of the sites.
    pub fn sites(&self) -> impl Iterator<Item = &str> {
        self.0.sites.iter().map(|(site, _)| site)
    }

    /// Returns the name of the site that a host belongs to.
    #[must_use]
    pub fn site_of(&self, host: &HostKey) -> Option<&str> {
        self.0.sites.find(host).map(|(site, _)| site)
    }

    /// Returns whether a cookie of the file belongs to one of the sites.
    #[must_use]
    pub fn takes_any_of(&self, file: &CookieFile) -> bool {
        self.sites()
            .any(|site| file.0.iter().any(|cookie| self.accepts(site, cookie)))
    }

    /// Adds the cookies of a file to the sessions of the sites that they belong to. Skips a site
    /// that has imported the same file before, because the site may have replaced these cookies
    /// since. `digest` identifies the contents of the file.
    pub fn import(&self, file: &CookieFile, digest: &str, now: Tick) {
        for (site, session) in self.0.sites.iter() {
            let mut session = lock(session);
            let own = file.0.iter().filter(|cookie| self.accepts(site, cookie));
            let own: Vec<_> = own.collect();
            if own.is_empty() || session.imported.as_deref() == Some(digest) {
                continue;
            }
            for cookie in own {
                session.jar.add(cookie, utc(now));
            }
            session.imported = Some(digest.to_owned());
            self.changed(&mut session);
        }
    }

    /// Sets the stored session of a site, from [`unsaved`](Self::unsaved) of an earlier run.
    /// Unreadable bytes leave the session empty, as if the site had never been visited.
    pub fn restore(&self, site: &str, stored: &[u8], now: Tick) {
        let stored: StoredSession = serde_json::from_slice(stored).unwrap_or_default();
        self.with(site, |session| {
            session.jar.clear();
            for cookie in &stored.cookies {
                session.jar.add(cookie, utc(now));
            }
            session.token = stored
                .token
                .and_then(|(name, value)| token(&name, &value).ok());
            session.is_logged_in = stored.is_logged_in;
            session.imported = stored.imported;
            session.secret_fields = stored.secret_fields;
            session.refused = stored.refused;
            self.changed(session);
            session.is_changed = false;
        });
    }

    /// Returns the sites whose sessions changed since the last call, each with its stored form.
    #[must_use]
    pub fn unsaved(&self) -> Vec<(String, Vec<u8>)> {
        let changed = self.0.sites.iter().filter_map(|(site, session)| {
            let mut session = lock(session);
            let is_changed = std::mem::take(&mut session.is_changed);
            is_changed.then(|| (site.to_owned(), session.stored()))
        });
        changed.collect()
    }

    /// Sets the header field that a login adds to each request of its site, such as
    /// `Authorization`.
    ///
    /// # Errors
    /// Fails if the name or value is not allowed in a header field.
    pub fn set_token(
        &self,
        site: &str,
        name: &str,
        value: &str,
    ) -> Result<(), HostRequestHeadersError> {
        let token = token(name, value)?;
        self.with(site, |session| {
            session.token = Some(token);
            self.changed(session);
        });
        Ok(())
    }

    /// Sets whether the site's session is logged in.
    pub fn set_logged_in(&self, site: &str, is_logged_in: bool) {
        self.with(site, |session| {
            session.is_changed |= session.is_logged_in != is_logged_in;
            session.is_logged_in = is_logged_in;
        });
    }

    /// Returns whether the site's session may be logged in at the start of a run: the stored
    /// session was logged in, or the operator imported cookies.
    #[must_use]
    pub fn may_be_logged_in(&self, site: &str) -> bool {
        let mut may_be = false;
        self.with(site, |session| {
            may_be = session.is_logged_in || session.imported.is_some();
        });
        may_be
    }

    /// Sets which fields of the site's login form contain secrets.
    pub fn set_secret_fields(&self, site: &str, fields: Vec<String>) {
        self.with(site, |session| {
            session.is_changed |= session.secret_fields.as_ref() != Some(&fields);
            session.secret_fields = Some(fields);
        });
    }

    /// Returns which fields of the site's login form contain secrets. `None` if no login was ever
    /// sent to the site.
    #[must_use]
    pub fn secret_fields(&self, site: &str) -> Option<Vec<String>> {
        let mut fields = None;
        self.with(site, |session| fields.clone_from(&session.secret_fields));
        fields
    }

    /// Records which credentials the site refused last. `None` records that none are refused, so
    /// that they may be sent.
    pub fn set_refused(&self, site: &str, refused: Option<RefusedCredentialsDigest>) {
        self.with(site, |session| {
            session.is_changed |= session.refused != refused;
            session.refused = refused;
        });
    }

    /// Returns the credentials that the site refused last.
    #[must_use]
    pub fn refused(&self, site: &str) -> Option<RefusedCredentialsDigest> {
        let mut refused = None;
        self.with(site, |session| refused.clone_from(&session.refused));
        refused
    }

    /// Returns a stored session without its refused credentials, so that the next run sends them
    /// again. `None` if none were refused.
    #[must_use]
    pub fn without_refusal(stored: &[u8]) -> Option<Vec<u8>> {
        let mut session: StoredSession = serde_json::from_slice(stored).ok()?;
        session.refused.take()?;
        serde_json::to_vec(&session).ok()
    }

    /// Returns a stored session without the cookies of the domains that `is_erased` selects.
    #[must_use]
    pub fn without_cookies(stored: Vec<u8>, is_erased: &dyn Fn(&str) -> bool) -> Vec<u8> {
        let Ok(mut session) = serde_json::from_slice::<StoredSession>(&stored) else {
            // Return an empty session, because a run would discard an unreadable session too.
            return Vec::new();
        };
        let before = session.cookies.len();
        session.cookies.retain(|cookie| !is_erased(&cookie.domain));
        match session.cookies.len() == before {
            true => stored,
            false => serde_json::to_vec(&session).unwrap_or_default(),
        }
    }

    /// Adds a password or token of a login to the secrets that are redacted in everything kept from
    /// later responses.
    pub fn learn_secret(&self, value: &str) {
        self.0.secrets.learn(value, SecretKind::Credential);
    }

    /// Returns the secrets learned so far, from logins and from responses.
    pub(crate) fn secrets(&self) -> &LearnedSecrets {
        &self.0.secrets
    }

    /// Returns the fields to add to a request for this URL: cookies and the token.
    pub(crate) fn fields(&self, url: &CanonicalUrl, is_proxied: bool, now: Tick) -> HeaderMap {
        let mut fields = HeaderMap::new();
        if self.0.sites.is_empty() {
            return fields;
        }
        let host = url.host_key();
        let Some((site, session)) = self.0.sites.find(&host) else {
            return fields;
        };
        let session = lock(session);
        if !session.plain_http && !is_private(url, is_proxied) {
            return fields;
        }
        let cookies = session.jar.field(url, utc(now));
        let cookies = cookies.and_then(|field| HeaderValue::from_bytes(field.as_bytes()).ok());
        if let Some(mut cookies) = cookies {
            // Sensitive values are kept out of HTTP/2's compression tables and the client's logs.
            cookies.set_sensitive(true);
            fields.insert(COOKIE, cookies);
        }
        // A cookie may go to all hosts of its domain, but the token only to the host that the site
        // is named after.
        let is_own_host = host_and_port(host.as_str()).0 == host_and_port(site).0;
        if let Some((name, value)) = session.token.as_ref().filter(|_| is_own_host) {
            fields.insert(name, value.clone());
        }
        fields
    }

    /// Keeps the cookies of a response, and redacts them in its header fields.
    pub(crate) fn receive(&self, url: &CanonicalUrl, headers: &mut HeaderMap, now: Tick) {
        if self.0.sites.is_empty() || !headers.contains_key(SET_COOKIE) {
            return;
        }
        let Some((site, session)) = self.0.sites.find(&url.host_key()) else {
            return;
        };
        let mut session = lock(session);
        for field in headers.get_all(SET_COOKIE) {
            let text = std::str::from_utf8(field.as_bytes()).map_err(|_| CookieRefusal::Malformed);
            let kept = text.and_then(|text| session.jar.receive(url, text, utc(now)));
            if let Err(refusal) = kept
                && !std::mem::replace(&mut session.has_warned, true)
            {
                let reason = <&str>::from(refusal);
                tracing::warn!(site, reason, "a cookie is not kept; others aren't reported");
            }
        }
        self.changed(&mut session);
        drop(session);
        let redacted: Vec<_> = headers.get_all(SET_COOKIE).iter().map(redacted).collect();
        headers.remove(SET_COOKIE);
        for value in redacted {
            headers.append(SET_COOKIE, value);
        }
    }

    fn with(&self, site: &str, change: impl FnOnce(&mut Session)) {
        let (name, port) = host_and_port(site);
        if let Some((_, session)) = self.0.sites.find_name(name, port) {
            change(&mut lock(session));
        }
    }

    fn changed(&self, session: &mut Session) {
        session.is_changed = true;
        for value in session.jar.secrets() {
            self.0.secrets.learn(value, SecretKind::Cookie);
        }
        let token = session
            .token
            .as_ref()
            .and_then(|(_, value)| value.to_str().ok());
        for word in token.into_iter().flat_map(str::split_whitespace) {
            self.0.secrets.learn(word, SecretKind::Credential);
        }
    }

    /// Returns whether a cookie may be sent to a host of the site.
    fn accepts(&self, site: &str, cookie: &StoredCookie) -> bool {
        let (name, port) = host_and_port(site);
        let own = self.0.sites.find_name(&cookie.domain, port);
        let is_within = own.is_some_and(|(found, _)| found == site);
        let is_above = !cookie.host_only
            && name
                .strip_suffix(&*cookie.domain)
                .is_some_and(|rest| rest.ends_with('.'))
            && public_suffixes(&cookie.domain).longest != Some(&*cookie.domain);
        is_within || is_above
    }
}

impl Session {
    fn stored(&self) -> Vec<u8> {
        let text = |(name, value): &(HeaderName, HeaderValue)| {
            Some((name.to_string(), value.to_str().ok()?.to_owned()))
        };
        let stored = StoredSession {
            cookies: self.jar.stored(),
            token: self.token.as_ref().and_then(text),
            is_logged_in: self.is_logged_in,
            imported: self.imported.clone(),
            secret_fields: self.secret_fields.clone(),
            refused: self.refused.clone(),
        };
        serde_json::to_vec(&stored).unwrap_or_default()
    }
}

impl fmt::Debug for SiteSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.sites()).finish()
    }
}

fn lock(session: &Mutex<Session>) -> MutexGuard<'_, Session> {
    // No code panics while it holds the lock, and a session is valid after each change.
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

fn token(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), HostRequestHeadersError> {
    let field = name
        .parse()
        .map_err(|_| HostRequestHeadersError::Name(name.to_owned()))?;
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| HostRequestHeadersError::Value(name.to_owned()))?;
    value.set_sensitive(true);
    Ok((field, value))
}

/// Returns a `Set-Cookie` field without the value of the cookie.
fn redacted(field: &HeaderValue) -> HeaderValue {
    let text = String::from_utf8_lossy(field.as_bytes());
    let (pair, attributes) = match text.find(';') {
        Some(at) => text.split_at(at),
        None => (&*text, ""),
    };
    let name = pair.split_once('=').map_or("", |(name, _)| name.trim());
    let redacted = format!("{name}={REDACTED}{attributes}");
    HeaderValue::from_str(&redacted).unwrap_or_else(|_| HeaderValue::from_static(REDACTED))
}

#[cfg(test)]
#[cfg(feature = "logins")]
mod tests;
