//! Spends permits on the requests of logins, and handles the results.

use crawl_fetcher::{Exchange, ExchangeFailure};
use crawl_frontier::{FrontierError, Lease, NotFetchedReason, Reason, UrlKind};
use crawl_scheduler::{RobotsState, Tick};
use crawl_scope::action;
use crawl_weburl::{CanonicalUrl, HostKey, Origin};

use super::Coordinator;
use super::logins::{LoggedOutPageRetry, LoginPermitDecision, LoginReaction, LoginTracker};
use super::robots::RobotsAvailability;
use crate::login::learn_passwords;
use crate::messages::login::{LoginStepRequest, PageLoginSession};
use crate::messages::{Effect, RequestJob};

/// What a permit for a page is used for, after logins and robots.txt are considered. A login takes
/// precedence over the page.
pub(super) enum LoginPermitUse {
    /// Fetch a page.
    Page,
    /// Send this login request.
    Send(RequestJob),
    /// Don't use the permit: the pages of the origin wait for a login, the login failed, or
    /// robots.txt must be fetched first.
    Nothing,
}

impl Coordinator {
    /// Sets up the logins of the run. Without this call, as in a replay, no site needs a login. May
    /// block, because it reads the passwords that earlier runs sent.
    pub(crate) fn log_in(&mut self) {
        let config = &self.config;
        let unusable = learn_passwords(&config.logins, &config.fetch.sessions);
        let logins = LoginTracker::new(&config.logins, &config.fetch.sessions, config.retries);
        self.logins = logins.proxied(config.fetch.proxy.is_some());
        for (site, why) in unusable {
            self.logins.fail(&site, why);
        }
    }

    /// Starts the failed login of a host's site again. Returns whether the login had failed.
    pub(super) fn retry_login(&mut self, now: Tick, host: &HostKey) -> bool {
        let Some(site) = self.logins.retry(host) else {
            return false;
        };
        let logins = &self.logins;
        self.hosts
            .unpark_after_login(now, |host| logins.is_of(host, &site));
        true
    }

    /// Decides whether a permit for a page is used for a login instead.
    pub(super) fn login_turn(
        &mut self,
        now: Tick,
        origin: &Origin,
        out: &mut Vec<Effect>,
    ) -> Result<LoginPermitUse, FrontierError> {
        // Don't log in to a host that the operator excluded. Use the permit for the host's pages:
        // when they are judged, each is settled as excluded.
        if self.logins.is_empty() || self.scope.is_left_out(&origin.host_key()) {
            return Ok(LoginPermitUse::Page);
        }
        let (decision, reaction) = self.logins.permit_decision(origin);
        self.react_to_login(now, reaction, out);
        match decision {
            LoginPermitDecision::Open => return Ok(LoginPermitUse::Page),
            LoginPermitDecision::Login(request) => {
                return self.login_job(now, origin, request, out);
            }
            LoginPermitDecision::Wait => self.hosts.set_pending(now, origin, 0),
            LoginPermitDecision::Failed(why) => {
                self.hosts.stop_for_login(now, &origin.host_key(), &why);
            }
        }
        Ok(LoginPermitUse::Nothing)
    }

    /// Returns the job for a login request, if robots.txt allows it.
    fn login_job(
        &mut self,
        now: Tick,
        origin: &Origin,
        request: LoginStepRequest,
        out: &mut Vec<Effect>,
    ) -> Result<LoginPermitUse, FrontierError> {
        let is_allowed = match self.robots.standing(origin)? {
            RobotsAvailability::InForce(rules) => {
                rules.robots.judge(request.url.as_url()).is_allowed()
            }
            RobotsAvailability::Forbidden(_) | RobotsAvailability::Refused(_) => false,
            RobotsAvailability::Unknown => {
                self.logins.put_back(request);
                self.hosts.set_robots(now, origin, RobotsState::Unknown);
                return Ok(LoginPermitUse::Nothing);
            }
        };
        if is_allowed {
            return Ok(LoginPermitUse::Send(RequestJob::Login(Box::new(request))));
        }
        let reaction = self.logins.disallowed(&request);
        self.react_to_login(now, reaction, out);
        Ok(LoginPermitUse::Nothing)
    }

    pub(super) fn login_answered(
        &mut self,
        now: Tick,
        request: &LoginStepRequest,
        result: &Result<Exchange, ExchangeFailure>,
        out: &mut Vec<Effect>,
    ) {
        let reaction = self.logins.answered(request, result);
        self.react_to_login(now, reaction, out);
        self.wake_pending(now, &request.url.origin());
        // The commit of the host's state also stores the cookies of the answer.
        self.write_state(&request.url.host_key(), out);
    }

    pub(super) fn credentials_read(
        &mut self,
        now: Tick,
        site: &str,
        credentials: Result<Vec<(String, String)>, String>,
        out: &mut Vec<Effect>,
    ) {
        let reaction = self.logins.credentials_read(now, site, credentials);
        self.react_to_login(now, reaction, out);
    }

    /// Records whether a page looks logged in or logged out. Returns true if it looks logged out
    /// and this attempt counts towards the maximum number of retries. An attempt doesn't count if
    /// the page is fetched again after a login. If the page is set aside, adds the reason to the
    /// failure.
    pub(super) fn session_shown(
        &mut self,
        now: Tick,
        session: &PageLoginSession,
        url: &CanonicalUrl,
        result: &mut Result<Box<Exchange>, ExchangeFailure>,
        out: &mut Vec<Effect>,
    ) -> bool {
        let reaction = self.logins.page_ended(session, url);
        let page = reaction.page;
        self.react_to_login(now, reaction, out);
        if let Err(failure) = result {
            failure.retry |= page == LoggedOutPageRetry::Later;
            if page == LoggedOutPageRetry::SetAside {
                failure.retry = false;
                let contrast = ", but other pages of the site are logged in";
                failure.detail.push_str(contrast);
            }
        }
        matches!(
            page,
            LoggedOutPageRetry::Later | LoggedOutPageRetry::SetAside
        )
    }

    /// Returns whether the login of a URL's site excludes URLs that look like actions, because a
    /// log-out would end the session.
    pub(super) fn skips_actions_at_login(&self, url: &CanonicalUrl) -> bool {
        if self.logins.is_empty() {
            return false;
        }
        let host = url.host_key();
        let site = self.config.fetch.sessions.site_of(&host);
        let mut logins = self.config.logins.iter();
        logins.any(|login| login.skips_actions && site == Some(&login.site))
    }

    /// Returns the exclusion of a leased URL that looks like an action and must not be requested.
    /// `None` for other URLs, and for seeds. There are two reasons for an exclusion:
    ///
    /// - The site's login excludes actions, because a log-out would end the session.
    /// - The crawl skips links that look like actions. Such a link may still be pending if an
    ///   earlier run did not skip actions.
    pub(super) fn skipped_action(&self, lease: &Lease) -> Option<NotFetchedReason> {
        let is_link = lease.kind == UrlKind::Page && lease.redirects == 0;
        let is_skipped =
            self.config.traps.skip_actions && is_link || self.skips_actions_at_login(&lease.url);
        let action = is_skipped.then(|| action(&lease.url)).flatten()?;
        (!lease.is_seed).then(|| NotFetchedReason {
            rule: Some(action.to_string()),
            ..NotFetchedReason::of(Reason::Action)
        })
    }

    fn react_to_login(&mut self, now: Tick, reaction: LoginReaction, out: &mut Vec<Effect>) {
        let LoginReaction {
            wake,
            read,
            failed,
            logged_in,
            page: _,
        } = reaction;
        if let Some(login) = read {
            out.push(Effect::ReadCredentials(login));
        }
        if let Some(site) = logged_in {
            tracing::info!(site, "logged in");
        }
        if let Some((site, failure)) = failed {
            tracing::warn!(
                site,
                why = failure.why,
                "the login failed; its hosts get no more requests in this run"
            );
        }
        for origin in wake {
            self.wake_pending(now, &origin);
        }
    }
}
