//! The requests that a login sends, and the login session under which each page is fetched.

use std::sync::Arc;

use crawl_fetcher::{FetchRequest, FormBody};
use crawl_weburl::{CanonicalUrl, canonicalize};

use crate::login::{SessionStatus, SiteLogin};

/// Maximum bytes of a page to read during a login.
/// Beyond the limit: cut off.
const MAX_LOGIN_BODY: u64 = 2 << 20;

/// A request of a login.
#[derive(Clone, Debug)]
pub(crate) struct LoginStepRequest {
    pub(crate) login: Arc<SiteLogin>,
    pub(crate) step: LoginStep,
    pub(crate) url: CanonicalUrl,
    /// The form to send. `None` for GET.
    pub(crate) form: Option<FormBody>,
    /// The number of redirects that were followed in this login.
    pub(crate) redirects: u8,
    /// Whether this request sends the form again, because a redirect led to another URL of the
    /// same origin.
    pub(crate) is_resent: bool,
    /// How many times the login was restarted because a request failed.
    pub(crate) tries: u32,
}

/// A step of a login: fetching the page with the form, sending the form, or fetching the page that
/// follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoginStep {
    /// Fetch the page with the form.
    Page,
    /// Send the form.
    Submit,
    /// Fetch the page that the site redirects to afterwards.
    Landing,
}

impl LoginStepRequest {
    /// Returns the HTTP request.
    pub(crate) fn fetch(&self) -> FetchRequest {
        FetchRequest {
            max_body: Some(MAX_LOGIN_BODY),
            form: self.form.clone(),
            // A kept connection may turn out to be closed, and a login that failed is not retried
            // soon.
            needs_new_connection: true,
            ..FetchRequest::page(self.url.clone())
        }
    }

    /// Returns the URL for rows and logs: without its query, which may contain a one-time secret.
    pub(crate) fn shown_url(&self) -> CanonicalUrl {
        let shown = format!("{}{}", self.url.origin(), self.url.path());
        canonicalize(None, &shown).unwrap_or_else(|_| self.url.origin().url("/"))
    }
}

/// The login session under which a page is fetched.
#[derive(Clone, Debug)]
pub(crate) struct PageLoginSession {
    pub(crate) login: Arc<SiteLogin>,
    /// The number of the login that created the session.
    pub(crate) generation: u32,
    /// The state of the session, judging by the page's response. `Unknown` before the response.
    pub(crate) shown: SessionStatus,
}
