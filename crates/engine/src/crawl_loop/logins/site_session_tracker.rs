//! Decides from the pages of a site whether its session is over.

use crawl_weburl::CanonicalUrl;

/// Number of different pages in a row that must look logged out right after a login before the
/// login counts as failed.
const FAILED_AFTER: usize = 3;
/// Maximum useless logins of a site in a run. A login was useless if the page that caused it still
/// looks logged out afterwards.
/// Beyond the limit: only several pages in a row cause a login.
pub(super) const MAX_VAIN_LOGINS: u32 = 3;
/// Maximum pages per site to remember because they looked logged out.
/// Beyond the limit: the oldest is forgotten.
const MAX_SUSPECTS: usize = 256;

/// The pages of a site that looked logged in or out in this run.
#[derive(Debug, Default)]
pub(super) struct SiteSessionTracker {
    /// Whether a page has shown since the last login that the crawl is logged in.
    is_proven: bool,
    /// Whether the page after the last login looked logged in: it had the sign set by `logged-in`,
    /// or lacked the sign set by `logged-out`.
    pub(super) is_landing_in: bool,
    /// Different pages that looked logged out since the last login, or since the last page that
    /// looked logged in.
    in_a_row: Vec<CanonicalUrl>,
    /// Pages that looked logged out when they were fetched last, the newest last.
    suspects: Vec<CanonicalUrl>,
    /// The page that caused the last login.
    cause: Option<CanonicalUrl>,
    /// The number of logins caused by a page that was later set aside.
    vain_logins: u32,
    /// How many times the site logged the crawl out in this run.
    pub(super) logouts: u32,
}

/// The conclusion drawn from a page that looks logged out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SessionConclusion {
    /// There is too little evidence, so fetch the page again after the other pages.
    Undecided,
    /// The session is not over: only this page looks logged out.
    SetAside,
    /// The session is over.
    LoggedOut,
    /// The last login had no effect: pages still look logged out.
    LoginFailed,
}

impl SiteSessionTracker {
    /// Creates the tracker at the start of a run. `is_proven` is whether an earlier run was logged
    /// in.
    pub(super) fn new(is_proven: bool) -> SiteSessionTracker {
        SiteSessionTracker {
            is_proven,
            ..SiteSessionTracker::default()
        }
    }

    pub(super) fn note_login(&mut self) {
        self.is_proven = false;
        self.in_a_row.clear();
    }

    pub(super) fn note_logged_in(&mut self, url: &CanonicalUrl) {
        self.is_proven = true;
        self.in_a_row.clear();
        self.suspects.retain(|suspect| suspect != url);
    }

    /// Decides what to conclude from a page that looks logged out in the current session.
    pub(super) fn note_logged_out(&mut self, url: &CanonicalUrl) -> SessionConclusion {
        let is_suspect = self.suspects.contains(url);
        let is_in_row = self.in_a_row.contains(url);
        if is_suspect && self.is_proven && self.in_a_row.is_empty() {
            return self.set_aside(url);
        }
        if !is_suspect {
            let excess = (self.suspects.len() + 1).saturating_sub(MAX_SUSPECTS);
            self.suspects.drain(..excess);
            self.suspects.push(url.clone());
        }
        if !is_in_row {
            self.in_a_row.push(url.clone());
        }
        // A logged-out page is fetched again after the other pages of its origin. If it looks
        // logged out again, and none of the other pages looked logged in, the conclusion is
        // certain.
        let is_certain = is_in_row || self.in_a_row.len() >= FAILED_AFTER;
        if !self.is_proven {
            let is_few = self.in_a_row.len() < FAILED_AFTER && self.is_landing_in;
            return match is_certain {
                true if is_few => self.set_aside(url),
                true => SessionConclusion::LoginFailed,
                false => SessionConclusion::Undecided,
            };
        }
        if !is_certain && self.vain_logins >= MAX_VAIN_LOGINS {
            return SessionConclusion::Undecided;
        }
        self.logouts += 1;
        self.cause = Some(url.clone());
        self.is_landing_in = false;
        SessionConclusion::LoggedOut
    }

    fn set_aside(&mut self, url: &CanonicalUrl) -> SessionConclusion {
        if self.cause.take_if(|cause| cause == url).is_some() {
            self.vain_logins += 1;
        }
        SessionConclusion::SetAside
    }
}
