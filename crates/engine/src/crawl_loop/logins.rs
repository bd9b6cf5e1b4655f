//! Which sites are logged in, and the next request of each login.

mod site_session_tracker;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crawl_extractor::{DecodedPage, read_post_forms};
use crawl_fetcher::{Exchange, ExchangeFailure, RefusedCredentialsDigest, SiteSessions};
use crawl_scheduler::Tick;
use crawl_weburl::{AddressClass, CanonicalUrl, HostKey, HostPatternMap, Origin, class_of_host};

use self::site_session_tracker::{SessionConclusion, SiteSessionTracker};
use crate::login::refused_credentials::{digest_of, is_same, refused_before};
use crate::login::{
    LoginFailure, LoginForm, LoginMethod, SessionStatus, SiteLogin, decoded, judge, login_form,
};
use crate::messages::login::{LoginStep, LoginStepRequest, PageLoginSession};

/// Maximum redirects in a login.
/// Beyond the limit: the login fails, and its hosts are parked.
const MAX_LOGIN_REDIRECTS: u8 = 10;
/// Maximum times that a site may log the crawl out in a run. After each, the crawl logs in again.
/// Beyond the limit: the site gets no more requests.
const MAX_LOGOUTS: u32 = 100;

/// The logins of a run, one state per site. Each site logs in before its first page, and once more
/// when a page shows that the site has logged the crawl out. If a page still looks logged out after
/// that, but other pages do not, the page is set aside. If several pages in a row still look logged
/// out, the login has failed, and the site gets no more requests.
///
/// [`permit_decision`](Self::permit_decision) decides what a permit of a host is used for. The
/// result of a login request is reported with [`answered`](Self::answered), and the credentials of
/// a login with [`credentials_read`](Self::credentials_read). For each page of the site,
/// [`page_ended`](Self::page_ended) records whether the page looks logged in.
#[derive(Debug, Default)]
pub(super) struct LoginTracker {
    /// The sites with a session, including sites without a login.
    by_site: HostPatternMap<String>,
    sites: BTreeMap<String, SiteState>,
    sessions: SiteSessions,
    max_retries: u32,
    /// Whether requests go to a proxy, including requests to loopback.
    is_proxied: bool,
}

#[derive(Debug)]
struct SiteState {
    login: Arc<SiteLogin>,
    phase: LoginPhase,
    /// The number of successful logins in this run, plus one if an earlier run had logged in. A
    /// page that was requested before the last login shows nothing about the current session.
    generation: u32,
    evidence: SiteSessionTracker,
    /// The digest of the credentials that were sent last.
    tried: Option<RefusedCredentialsDigest>,
    /// Origins whose pages wait for the login.
    waiting: BTreeSet<Origin>,
}

#[derive(Debug)]
enum LoginPhase {
    LoggedIn,
    /// The site needs a login, but no login request was sent yet.
    Due,
    /// The credentials are being read, to fill in this form. `None` for a token login. Also `None`
    /// if the site refused the credentials before: then they are read before the form is requested,
    /// and must have changed.
    Credentials(Option<LoginForm>),
    /// The next login request, which was not sent yet.
    Request(LoginStepRequest),
    InFlight,
    /// The login failed for this reason.
    Failed(LoginFailure),
}

/// How to use a permit for a page of a site that may need a login.
#[derive(Debug)]
pub(super) enum LoginPermitDecision {
    /// Fetch a page.
    Open,
    /// Send this login request.
    Login(LoginStepRequest),
    /// Don't use the permit: the pages of the host wait for the login.
    Wait,
    /// Don't use the permit: the login failed for this reason.
    Failed(LoginFailure),
}

/// The consequences of a change in a site's login.
#[derive(Debug, Default)]
pub(super) struct LoginReaction {
    /// Origins to wake: their pages may be fetched, or a login request is due.
    pub(super) wake: Vec<Origin>,
    /// The login whose credentials to read.
    pub(super) read: Option<Arc<SiteLogin>>,
    /// The site whose login just failed, with the reason.
    pub(super) failed: Option<(String, LoginFailure)>,
    /// The site whose login just succeeded.
    pub(super) logged_in: Option<String>,
    /// Whether to fetch the page again.
    pub(super) page: LoggedOutPageRetry,
}

/// Whether and when to fetch a page again because it looks logged out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LoggedOutPageRetry {
    /// The page doesn't look logged out.
    #[default]
    NotLoggedOut,
    /// Fetch the page again after the next login, because the session was over. The attempt doesn't
    /// count.
    AfterLogin,
    /// Fetch the page again after the other pages, because the session may still be valid. The
    /// attempt counts.
    Later,
    /// Don't fetch the page again in this round: other pages look logged in, so another login would
    /// not help.
    SetAside,
}

impl LoginReaction {
    /// Returns a reaction that only decides whether and when to fetch the page again.
    fn of_page(page: LoggedOutPageRetry) -> LoginReaction {
        LoginReaction {
            page,
            ..LoginReaction::default()
        }
    }
}

impl LoginTracker {
    /// Creates the states of all sites with a login, at the start of a run. `sessions` contains the
    /// sessions that earlier runs stored.
    pub(super) fn new(
        logins: &[Arc<SiteLogin>],
        sessions: &SiteSessions,
        max_retries: u32,
    ) -> LoginTracker {
        // A subdomain whose `[site]` table keeps cookies has its own session. Pages of the
        // subdomain then don't need the login of the domain above.
        let mut by_site = HostPatternMap::default();
        for site in sessions.sites() {
            // Ignore errors: the names were checked when the settings were read.
            let _ = by_site.insert(site, site.to_owned());
        }
        let states = logins.iter().map(|login| {
            let may_be_in = sessions.may_be_logged_in(&login.site);
            let state = SiteState {
                login: Arc::clone(login),
                phase: if may_be_in {
                    LoginPhase::LoggedIn
                } else {
                    LoginPhase::Due
                },
                generation: u32::from(may_be_in),
                evidence: SiteSessionTracker::new(may_be_in),
                tried: None,
                waiting: BTreeSet::new(),
            };
            (login.site.clone(), state)
        });
        let sites = states.collect();
        LoginTracker {
            by_site,
            sites,
            sessions: sessions.clone(),
            max_retries,
            is_proxied: false,
        }
    }

    /// Sets whether requests go to a proxy. If so, plain http to loopback counts as unprotected.
    pub(super) fn proxied(self, is_proxied: bool) -> LoginTracker {
        LoginTracker { is_proxied, ..self }
    }

    /// Makes the login of a site fail before its first request.
    pub(super) fn fail(&mut self, site: &str, why: String) {
        if let Some(state) = self.sites.get_mut(site) {
            state.phase = LoginPhase::Failed(why.into());
        }
    }

    /// Starts the failed login of a host's site again, even with credentials that the site refused.
    /// Returns the name of the site. `None` if its login has not failed.
    pub(super) fn retry(&mut self, host: &HostKey) -> Option<String> {
        let (_, site) = self.by_site.find(host)?;
        let state = self.sites.get_mut(site)?;
        if !matches!(state.phase, LoginPhase::Failed(_)) {
            return None;
        }
        self.sessions.set_refused(site, None);
        self.sessions.set_logged_in(site, false);
        state.phase = LoginPhase::Due;
        Some(site.clone())
    }

    pub(super) fn is_of(&self, host: &HostKey, site: &str) -> bool {
        self.by_site.find(host).is_some_and(|(_, own)| own == site)
    }

    /// Returns whether credentials are being read. Until then the run must not end, even with no
    /// request in flight.
    pub(super) fn are_credentials_awaited(&self) -> bool {
        let mut states = self.sites.values();
        states.any(|state| matches!(state.phase, LoginPhase::Credentials(_)))
    }

    /// Returns whether no site needs a login.
    pub(super) fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// Returns the session to judge a page by. `None` if its site needs no login.
    pub(super) fn page_session(&self, url: &CanonicalUrl) -> Option<PageLoginSession> {
        if self.is_empty() {
            return None;
        }
        let state = self.state(&url.host_key())?;
        Some(PageLoginSession {
            login: Arc::clone(&state.login),
            generation: state.generation,
            shown: SessionStatus::Unknown,
        })
    }

    /// Returns whether a login request waits for a permit of this origin.
    pub(super) fn is_due_at(&self, origin: &Origin) -> bool {
        self.sites.values().any(|state| match &state.phase {
            LoginPhase::Request(request) => request.url.origin() == *origin,
            _ => false,
        })
    }

    /// Decides what a permit of an origin is used for.
    pub(super) fn permit_decision(
        &mut self,
        origin: &Origin,
    ) -> (LoginPermitDecision, LoginReaction) {
        let mut reaction = LoginReaction::default();
        let site = self.by_site.find(&origin.host_key()).map(|(_, site)| site);
        let Some(state) = site.and_then(|site| self.sites.get_mut(site)) else {
            return (LoginPermitDecision::Open, reaction);
        };
        if matches!(state.phase, LoginPhase::Due) {
            reaction = state.begin(&self.sessions);
            reaction.wake.retain(|woken| woken != origin);
        }
        let decision = match &state.phase {
            LoginPhase::LoggedIn => LoginPermitDecision::Open,
            LoginPhase::Failed(why) => LoginPermitDecision::Failed(why.clone()),
            LoginPhase::Request(request) if request.url.origin() == *origin => {
                let request = request.clone();
                state.waiting.insert(origin.clone());
                state.phase = LoginPhase::InFlight;
                LoginPermitDecision::Login(request)
            }
            LoginPhase::Due
            | LoginPhase::Request(_)
            | LoginPhase::Credentials(_)
            | LoginPhase::InFlight => {
                state.waiting.insert(origin.clone());
                LoginPermitDecision::Wait
            }
        };
        (decision, reaction)
    }

    /// Puts a request back that [`permit_decision`](Self::permit_decision) returned, because it was
    /// not sent.
    pub(super) fn put_back(&mut self, request: LoginStepRequest) {
        if let Some(state) = self.sites.get_mut(&request.login.site) {
            state.phase = LoginPhase::Request(request);
        }
    }

    /// Ends a login because robots.txt disallows its next request. The login fails, unless only the
    /// page that follows the login is disallowed: then the login counts as successful.
    pub(super) fn disallowed(&mut self, request: &LoginStepRequest) -> LoginReaction {
        self.change(&request.login.site, |_| match request.step {
            LoginStep::Landing => Ok(LoginPhase::LoggedIn),
            LoginStep::Page | LoginStep::Submit => {
                Err(format!("robots.txt disallows {}", without_query(&request.url)).into())
            }
        })
    }

    /// Records whether a page looks logged in or logged out, judging by its response.
    pub(super) fn page_ended(
        &mut self,
        session: &PageLoginSession,
        url: &CanonicalUrl,
    ) -> LoginReaction {
        let site = session.login.site.clone();
        let Some(state) = self.sites.get_mut(&site) else {
            return LoginReaction::default();
        };
        let is_current =
            session.generation == state.generation && matches!(state.phase, LoginPhase::LoggedIn);
        let why = match &session.shown {
            SessionStatus::LoggedIn if is_current => {
                state.evidence.note_logged_in(url);
                return LoginReaction::default();
            }
            SessionStatus::LoggedIn | SessionStatus::Unknown => return LoginReaction::default(),
            SessionStatus::LoggedOut(_) if !is_current => {
                return LoginReaction::of_page(LoggedOutPageRetry::AfterLogin);
            }
            SessionStatus::LoggedOut(why) => why,
        };
        let reaction = match state.evidence.note_logged_out(url) {
            SessionConclusion::Undecided => {
                return LoginReaction::of_page(LoggedOutPageRetry::Later);
            }
            SessionConclusion::SetAside => {
                return LoginReaction::of_page(LoggedOutPageRetry::SetAside);
            }
            SessionConclusion::LoginFailed => {
                let page = without_query(url);
                let why = format!("still logged out after a login: {page} ({why})");
                // If a page still looks logged out although a token was sent, the site refused the
                // token. After a form login, the account may just lack the right to see the page.
                let is_refused = matches!(session.login.method, LoginMethod::Token { .. });
                self.change(&site, |_| Err(LoginFailure { why, is_refused }))
            }
            SessionConclusion::LoggedOut if state.evidence.logouts > MAX_LOGOUTS => {
                let why = format!("logged out more than {MAX_LOGOUTS} times in a run");
                self.change(&site, |_| Err(why.into()))
            }
            SessionConclusion::LoggedOut => {
                state.phase = LoginPhase::Due;
                self.sessions.set_logged_in(&site, false);
                tracing::info!(site, %why, "logged out");
                LoginReaction::default()
            }
        };
        LoginReaction {
            page: LoggedOutPageRetry::AfterLogin,
            ..reaction
        }
    }

    /// Continues a login with its credentials, once they are read. Credentials that the site
    /// refused are not sent again.
    pub(super) fn credentials_read(
        &mut self,
        now: Tick,
        site: &str,
        credentials: Result<Vec<(String, String)>, String>,
    ) -> LoginReaction {
        let sessions = self.sessions.clone();
        self.change(site, |state| {
            let LoginPhase::Credentials(form) = &state.phase else {
                return Ok(LoginPhase::Due);
            };
            let credentials = credentials?;
            if let Some(refused) = sessions.refused(site)
                && is_same(&refused, &state.login, &credentials)
            {
                return Err(refused_before(&refused));
            }
            if let (LoginMethod::Form { url, .. }, None) = (&state.login.method, form) {
                let request = LoginStepRequest::new(&state.login, LoginStep::Page, url.clone());
                return Ok(LoginPhase::Request(request));
            }
            let is_secret = |name: &str| form.as_ref().is_none_or(|form| form.is_secret(name));
            let secret = credentials.iter().filter(|(name, _)| is_secret(name));
            for (_, value) in secret.clone() {
                sessions.learn_secret(value);
            }
            sessions.set_secret_fields(site, secret.map(|(name, _)| name.clone()).collect());
            state.tried = digest_of(now, &state.login, &credentials);
            match (&state.login.method, form) {
                (_, Some(form)) => Ok(LoginPhase::Request(LoginStepRequest {
                    form: Some(form.filled_in(&credentials)),
                    ..LoginStepRequest::new(&state.login, LoginStep::Submit, form.action.clone())
                })),
                (LoginMethod::Form { .. }, None) => Ok(LoginPhase::Due),
                (LoginMethod::Token { header }, None) => {
                    let token = credentials.first().map_or("", |(_, token)| token.trim());
                    let value = token_value(header, token)?;
                    let set = sessions.set_token(site, header, &value);
                    set.map_err(|why| format!("the token can't be sent: {why}"))?;
                    Ok(LoginPhase::LoggedIn)
                }
            }
        })
    }

    /// Handles the result of a login request.
    pub(super) fn answered(
        &mut self,
        request: &LoginStepRequest,
        result: &Result<Exchange, ExchangeFailure>,
    ) -> LoginReaction {
        // Send credentials only once, because repeated attempts could lock the account.
        let may_retry = request.step != LoginStep::Submit && request.tries < self.max_retries;
        let by_site = std::mem::take(&mut self.by_site);
        let url_checker = LoginUrlChecker {
            login: &request.login,
            by_site: &by_site,
            is_proxied: self.is_proxied,
        };
        let reaction = self.change(&request.login.site, |state| match result {
            Ok(answer) => match answer.status {
                429 | 500.. if may_retry => Ok(request.again()),
                _ => {
                    let next = next_phase(&state.login, request, answer, &url_checker)?;
                    state.evidence.is_landing_in = state.login.has_signs()
                        && judge(&state.login, answer) == SessionStatus::LoggedIn;
                    Ok(next)
                }
            },
            Err(failure) if failure.kind.is_ours() => Ok(LoginPhase::Request(request.clone())),
            Err(failure) if failure.retry && may_retry => Ok(request.again()),
            Err(failure) => {
                let page = without_query(&request.url);
                Err(format!("{page} can't be fetched ({})", failure.name()).into())
            }
        });
        self.by_site = by_site;
        reaction
    }

    fn state(&self, host: &HostKey) -> Option<&SiteState> {
        let (_, site) = self.by_site.find(host)?;
        self.sites.get(site)
    }

    /// Changes the phase of a site's login, and returns the consequences of the change.
    fn change(
        &mut self,
        site: &str,
        next: impl FnOnce(&mut SiteState) -> Result<LoginPhase, LoginFailure>,
    ) -> LoginReaction {
        let mut reaction = LoginReaction::default();
        let Some(state) = self.sites.get_mut(site) else {
            return reaction;
        };
        state.phase = next(state).unwrap_or_else(LoginPhase::Failed);
        match &state.phase {
            LoginPhase::LoggedIn => {
                state.generation += 1;
                state.evidence.note_login();
                // A token login sends no request of its own, so only pages show whether the token
                // is accepted.
                if matches!(state.login.method, LoginMethod::Form { .. }) {
                    self.sessions.set_refused(site, None);
                }
                self.sessions.set_logged_in(site, true);
                reaction.logged_in = Some(site.to_owned());
                reaction.wake.extend(std::mem::take(&mut state.waiting));
            }
            LoginPhase::Failed(failure) => {
                if failure.is_refused && state.tried.is_some() {
                    self.sessions.set_refused(site, state.tried.take());
                }
                self.sessions.set_logged_in(site, false);
                reaction.failed = Some((site.to_owned(), failure.clone()));
                reaction.wake.extend(std::mem::take(&mut state.waiting));
            }
            LoginPhase::Due => reaction = state.begin(&self.sessions),
            LoginPhase::Request(request) => reaction.wake.push(request.url.origin()),
            LoginPhase::Credentials(_) => reaction.read = Some(Arc::clone(&state.login)),
            LoginPhase::InFlight => {}
        }
        reaction
    }
}

impl SiteState {
    /// Begins a login: requests its form, or reads its token. If the site refused the credentials
    /// before, reads the credentials first, and sends nothing to the site unless they have changed.
    fn begin(&mut self, sessions: &SiteSessions) -> LoginReaction {
        let mut reaction = LoginReaction::default();
        match &self.login.method {
            LoginMethod::Form { url, .. } if sessions.refused(&self.login.site).is_none() => {
                let request = LoginStepRequest::new(&self.login, LoginStep::Page, url.clone());
                self.phase = LoginPhase::Request(request);
                reaction.wake.push(url.origin());
            }
            LoginMethod::Form { .. } | LoginMethod::Token { .. } => {
                self.phase = LoginPhase::Credentials(None);
                reaction.read = Some(Arc::clone(&self.login));
            }
        }
        reaction
    }
}

impl LoginStepRequest {
    fn new(login: &Arc<SiteLogin>, step: LoginStep, url: CanonicalUrl) -> LoginStepRequest {
        LoginStepRequest {
            login: Arc::clone(login),
            step,
            url,
            form: None,
            redirects: 0,
            is_resent: false,
            tries: 0,
        }
    }

    /// Returns the phase that starts a login again with its first page, after a request failed. The
    /// form is read again too, because the same values must not be sent twice.
    fn again(&self) -> LoginPhase {
        let url = match &self.login.method {
            LoginMethod::Form { url, .. } => url.clone(),
            LoginMethod::Token { .. } => self.url.clone(),
        };
        LoginPhase::Request(LoginStepRequest {
            tries: self.tries + 1,
            ..LoginStepRequest::new(&self.login, LoginStep::Page, url)
        })
    }
}

/// Returns the phase that follows the answer to a login request.
///
/// # Errors
/// Why the login failed.
fn next_phase(
    login: &Arc<SiteLogin>,
    request: &LoginStepRequest,
    answer: &Exchange,
    url_checker: &LoginUrlChecker<'_>,
) -> Result<LoginPhase, LoginFailure> {
    let page = without_query(&request.url);
    if let Some(target) = answer.redirect_target() {
        let target = target.map_err(|_| format!("{page} redirects to an unusable address"))?;
        return Ok(LoginPhase::Request(redirected(
            request,
            answer,
            target,
            url_checker,
        )?));
    }
    let is_sent = request.step != LoginStep::Page;
    if answer.status != 200 {
        return Err(LoginFailure {
            why: format!("{page} answered {}", answer.status),
            is_refused: is_sent && matches!(answer.status, 401 | 403),
        });
    }
    let LoginMethod::Form { fields, .. } = &login.method else {
        return Ok(LoginPhase::LoggedIn);
    };
    let (content_type, body) = decoded(answer);
    let forms = read_post_forms(&DecodedPage::decode(&body.bytes, content_type.as_deref()));
    let form = login_form(&request.url, forms, fields);
    if !is_sent {
        let form = form?;
        url_checker.check_target(&form.action)?;
        return Ok(LoginPhase::Credentials(Some(form)));
    }
    let why = match judge(login, answer) {
        SessionStatus::LoggedOut(why) => {
            format!("{page} shows no login after the form was sent: {why}")
        }
        // Without a `logged-in` setting, the login counts as failed if the answer contains the form
        // again, as most sites do after a wrong password.
        _ if login.logged_in.is_none() && form.is_ok() => {
            format!("{page} shows the form again after it was sent")
        }
        _ => return Ok(LoginPhase::LoggedIn),
    };
    Err(LoginFailure {
        why,
        is_refused: true,
    })
}

/// Returns the request that follows a redirect: a GET, or the form again after a 307 or 308.
fn redirected(
    request: &LoginStepRequest,
    answer: &Exchange,
    target: CanonicalUrl,
    url_checker: &LoginUrlChecker<'_>,
) -> Result<LoginStepRequest, LoginFailure> {
    url_checker.check_target(&target)?;
    if request.redirects >= MAX_LOGIN_REDIRECTS {
        return Err(format!("it redirects more than {MAX_LOGIN_REDIRECTS} times").into());
    }
    let is_repeated = request.step == LoginStep::Submit && matches!(answer.status, 307 | 308);
    let page = without_query(&request.url);
    let status = answer.status;
    if is_repeated && target.origin() != request.url.origin() {
        return Err(format!(
            "{page} answered {status}, which would send the form on to {}",
            target.origin()
        )
        .into());
    }
    if is_repeated && request.is_resent {
        return Err(format!("{page} answered {status}, but the form was sent twice").into());
    }
    let step = match request.step {
        LoginStep::Page => LoginStep::Page,
        LoginStep::Submit if is_repeated => LoginStep::Submit,
        LoginStep::Submit | LoginStep::Landing => LoginStep::Landing,
    };
    Ok(LoginStepRequest {
        form: request.form.clone().filter(|_| is_repeated),
        redirects: request.redirects + 1,
        is_resent: is_repeated,
        tries: request.tries,
        ..LoginStepRequest::new(&request.login, step, target)
    })
}

/// Checks the URLs that a login requests.
struct LoginUrlChecker<'a> {
    login: &'a SiteLogin,
    by_site: &'a HostPatternMap<String>,
    is_proxied: bool,
}

impl LoginUrlChecker<'_> {
    /// Checks that the login may continue at a URL: the URL belongs to the site, and the connection
    /// is private.
    fn check_target(&self, url: &CanonicalUrl) -> Result<(), String> {
        let (host, site) = (url.host_key(), &self.login.site);
        if self.by_site.find(&host).map(|(_, own)| own) != Some(site) {
            return Err(format!(
                "it leads to {host}, which is not part of [site.\"{site}\"]"
            ));
        }
        let is_loopback = class_of_host(url.host()) == Some(AddressClass::Loopback);
        let is_private = url.scheme() == "https" || (is_loopback && !self.is_proxied);
        match is_private || self.login.plain_http {
            true => Ok(()),
            false => Err(format!(
                "{} is not encrypted, and `plain-http` is not on",
                without_query(url)
            )),
        }
    }
}

/// Returns the value of the header field that sends a token. In `Authorization`, `Bearer` is put
/// before a token without a scheme.
fn token_value(header: &str, token: &str) -> Result<String, String> {
    if token.is_empty() {
        return Err("the token is empty".to_owned());
    }
    let has_scheme = token.contains(' ') || !header.eq_ignore_ascii_case("authorization");
    Ok(match has_scheme {
        true => token.to_owned(),
        false => format!("Bearer {token}"),
    })
}

/// Returns a URL without its query, which may contain a one-time secret during a login.
fn without_query(url: &CanonicalUrl) -> String {
    format!("{}{}", url.origin(), url.path())
}

#[cfg(test)]
mod tests;
