//! Page requests: chooses the leased URL to fetch, and handles the result of the request.

use std::sync::Arc;

use crawl_archive::rows::READER_KILLED;
use crawl_fetcher::{Exchange, ExchangeFailure};
use crawl_frontier::{FrontierError, Lease, Reason, UrlKind};
use crawl_scheduler::{OutcomeKind, RobotsState, Tick};
use crawl_weburl::{CanonicalUrl, HostKey, Origin};
use http::HeaderMap;
use http::header::CONTENT_TYPE;

use super::Coordinator;
use super::leased_url_judge::LeasedUrlDisposition;
use super::retries::FetchAttempt;
use super::robots::{RobotsAvailability, RobotsJudgement};
use super::sitemap_cross_submission;
use crate::config::OffScopeRequestMethod;
use crate::content_filter::declared_length;
use crate::messages::page_pipeline_stages::{FactsBeforeFetch, FetchedPage, UnansweredVisit};
use crate::messages::render::PageSourceToRead;
use crate::messages::{Effect, RequestJob, WriterMessage};
use crate::priority::{Priority, is_guess, is_undecided_guess};
use crate::revisit::unread_link_kinds::{UnreadLinkKinds, is_last_hop};
use crate::revisit::visit::PreviousVisit;

/// The next step for the loop over an origin's URLs, after a leased URL was judged.
enum LeaseLoopStep {
    /// Send the request for the URL.
    Send(RequestJob),
    /// Lease the next URL.
    Next,
    /// End the loop. The origin's other URLs follow with its next permit.
    End,
    /// End the loop. The origin waits; the scheduler has been informed.
    Wait,
}

impl Coordinator {
    /// Leases URLs of an origin until one may be fetched, and returns the request for that URL.
    /// Settles the refused URLs that come first.
    pub(crate) fn next_page(
        &mut self,
        now: Tick,
        host: &HostKey,
        origin: &Origin,
        out: &mut Vec<Effect>,
    ) -> Result<Option<RequestJob>, FrontierError> {
        let mut later = Vec::new();
        let job = self.first_page(now, (host, origin), &mut later, out);
        if !later.is_empty() {
            // Send these URLs in one message. Several messages could overtake each other, which
            // would change the order of the URLs.
            self.write(WriterMessage::Later(later), out);
        }
        job
    }

    fn first_page(
        &mut self,
        now: Tick,
        (host, origin): (&HostKey, &Origin),
        later: &mut Vec<(Lease, Priority)>,
        out: &mut Vec<Effect>,
    ) -> Result<Option<RequestJob>, FrontierError> {
        let standing = self.robots.standing(origin)?;
        // Use `|` rather than `||`: each check notes the origin, to wake it once there is room.
        let is_full = self.hosts.turns_away(now, host, origin)
            | self.backlog.turns_away(host, origin)
            | self.renders.turns_away(origin);
        while !is_full && self.turns.goes_on() && self.backlog.has_room_behind(later.len()) {
            let Some(mut lease) = self.frontier.lease(origin)? else {
                break;
            };
            if !self.turns.admit(&mut lease) {
                self.frontier.release(lease);
                break;
            }
            self.events.leased(&lease);
            match self.consider(now, &standing, lease, later, out)? {
                LeaseLoopStep::Send(job) => return Ok(Some(job)),
                LeaseLoopStep::Next => {}
                LeaseLoopStep::End => break,
                LeaseLoopStep::Wait => return Ok(None),
            }
        }
        let is_cut_short = self.turns.is_cut_short();
        if is_cut_short {
            // The origin is woken by the commit of its settled and requeued URLs. Until then, other
            // hosts get permits.
            self.leased_url_judge.wait_for_commit(origin);
        }
        let pending = match is_full || is_cut_short {
            true => 0,
            false => self.frontier.pending(origin),
        };
        self.hosts.set_pending(now, origin, pending);
        Ok(None)
    }

    /// Checks a leased URL against scope and robots.txt, and settles the URL if it is refused.
    fn consider(
        &mut self,
        now: Tick,
        standing: &RobotsAvailability,
        mut lease: Lease,
        later: &mut Vec<(Lease, Priority)>,
        out: &mut Vec<Effect>,
    ) -> Result<LeaseLoopStep, FrontierError> {
        if let Some(exclusion) = self.skipped_action(&lease) {
            self.settle_without_request(WriterMessage::PutAside { lease, exclusion }, out);
            return Ok(LeaseLoopStep::Next);
        }
        // Check the rule for sitemaps before robots.txt. In a plan (a run that fetches no pages),
        // judging a page by robots.txt always excludes the page.
        if let RobotsAvailability::InForce(rules) = standing
            && let Some(exclusion) =
                sitemap_cross_submission::judge(&mut lease, rules, &*self.frontier)?
        {
            self.settle_without_request(WriterMessage::PutAside { lease, exclusion }, out);
            return Ok(LeaseLoopStep::Next);
        }
        let unread_link_kinds = UnreadLinkKinds::of(&lease, self.scope.current(), &self.config);
        let past = self.previous_visit(&lease, unread_link_kinds)?;
        let judgement = match self.scope.out_of_scope(&lease) {
            Some(exclusion) if exclusion.reason == Reason::Depth => {
                self.settle_without_request(WriterMessage::PutAside { lease, exclusion }, out);
                return Ok(LeaseLoopStep::Next);
            }
            Some(exclusion) => RobotsJudgement::Refused(exclusion),
            None => self.robots.judge(standing, &lease),
        };
        let exclusion = match judgement {
            RobotsJudgement::Allowed(context) => {
                self.events.allowed(&lease.url, &context.robots);
                let label = self.scope.label(&lease.url);
                let context = FactsBeforeFetch {
                    past,
                    unread_link_kinds,
                    label,
                    is_only_checked: self.is_only_checked(&lease),
                    session: self.logins.page_session(&lease.url),
                    ..context
                };
                return self.carry_out_disposition(now, lease, context, later, out);
            }
            RobotsJudgement::Refused(exclusion) => exclusion,
            RobotsJudgement::RobotsFirst => {
                self.events.waits(&lease.url, "waits for robots.txt");
                let origin = lease.origin.clone();
                self.frontier.release(lease);
                self.hosts.set_robots(now, &origin, RobotsState::Unknown);
                return Ok(LeaseLoopStep::Wait);
            }
        };
        let item = WriterMessage::Excluded {
            lease,
            exclusion,
            past,
        };
        self.settle_without_request(item, out);
        Ok(LeaseLoopStep::Next)
    }

    /// Returns whether only a URL's status matters: it is a page outside the scope whose links are
    /// not followed.
    fn is_only_checked(&self, lease: &Lease) -> bool {
        self.config.off_scope_method == OffScopeRequestMethod::Head
            && lease.kind == UrlKind::Page
            && is_last_hop(lease, self.scope.current())
    }

    /// Carries out what `LeasedUrlJudge::disposition` decides about a URL that scope and robots.txt
    /// allow.
    fn carry_out_disposition(
        &mut self,
        now: Tick,
        lease: Lease,
        context: FactsBeforeFetch,
        later: &mut Vec<(Lease, Priority)>,
        out: &mut Vec<Effect>,
    ) -> Result<LeaseLoopStep, FrontierError> {
        let per_host = self.config.politeness.per_host;
        let disposition =
            self.leased_url_judge
                .disposition(lease, &context, per_host, &*self.frontier)?;
        let step = match disposition {
            LeasedUrlDisposition::Fetch(lease) => {
                LeaseLoopStep::Send(self.page_job(now, lease, context))
            }
            LeasedUrlDisposition::CheckStatus(lease) => {
                let context = FactsBeforeFetch {
                    is_only_checked: true,
                    ..context
                };
                LeaseLoopStep::Send(self.page_job(now, lease, context))
            }
            LeasedUrlDisposition::Wait(lease) => {
                // The origin is woken once its requests in flight are committed.
                let reason = "waits until the pages in flight from its origin are read";
                self.hold_back(now, lease, reason);
                LeaseLoopStep::Wait
            }
            LeasedUrlDisposition::WaitForCommit(lease) => {
                self.leased_url_judge.wait_for_commit(&lease.origin);
                self.hold_back(
                    now,
                    lease,
                    "waits until the pages that were read are committed",
                );
                LeaseLoopStep::Wait
            }
            LeasedUrlDisposition::Again(lease) => {
                self.frontier.release(lease);
                match self.turns.begin_again() {
                    true => LeaseLoopStep::Next,
                    false => LeaseLoopStep::End,
                }
            }
            LeasedUrlDisposition::Later(lease, priority) => {
                let reason = "moves behind other URLs: the pages on the way to it had nothing new";
                self.events.waits(&lease.url, reason);
                later.push((lease, priority));
                self.turns.passed();
                LeaseLoopStep::Next
            }
            LeasedUrlDisposition::Settle(item) => {
                self.settle_without_request(item, out);
                LeaseLoopStep::Next
            }
            LeasedUrlDisposition::Alone(lease) => {
                let reason = "waits until nothing else is left: the program died while it was read";
                self.events.waits(&lease.url, reason);
                self.leased_url_judge.hold(lease);
                self.turns.passed();
                LeaseLoopStep::Next
            }
            LeasedUrlDisposition::GiveUp(lease) => {
                self.give_suspect_up(now, lease, context, out);
                self.turns.passed();
                LeaseLoopStep::Next
            }
        };
        Ok(step)
    }

    /// Settles a URL as failed. Earlier runs died while reading its page, even the last one, which
    /// read nothing else at the same time.
    fn give_suspect_up(
        &mut self,
        now: Tick,
        lease: Lease,
        context: FactsBeforeFetch,
        out: &mut Vec<Effect>,
    ) {
        let host = lease.url.host_key();
        self.hosts.page_settled(&host, 0);
        // Count the lease as begun, since the commit will count it as ended.
        self.leased_url_judge.leased(&lease.origin);
        self.backlog.given_up();
        let state = self.hosts.state(&host);
        let visit = UnansweredVisit::given_up(lease, context, now, READER_KILLED, state);
        self.write(WriterMessage::Unanswered(Box::new(visit)), out);
    }

    /// Releases a URL. Its origin gets no permit until `wake` is called for the origin.
    fn hold_back(&mut self, now: Tick, lease: Lease, reason: &'static str) {
        self.events.waits(&lease.url, reason);
        let origin = lease.origin.clone();
        self.frontier.release(lease);
        self.hosts.set_pending(now, &origin, 0);
    }

    /// Settles a URL without a request.
    fn settle_without_request(&mut self, item: WriterMessage, out: &mut Vec<Effect>) {
        self.events.not_fetched(&item);
        self.write(item, out);
        self.turns.passed();
    }

    /// Counts a URL as leased for a request, and returns the request.
    fn page_job(&mut self, now: Tick, lease: Lease, context: FactsBeforeFetch) -> RequestJob {
        self.backlog.leased();
        self.leased_url_judge.leased(&lease.origin);
        let host = lease.url.host_key();
        self.hosts.page_leased(now, &host, &lease.origin);
        RequestJob::Page { lease, context }
    }

    /// Returns the previous visit of a URL; `None` in the first round. The visit has no validators,
    /// so that the page is fetched in full, in three cases:
    ///
    /// - The server refused a conditional request for the page.
    /// - The page may be rendered now, but the previous visit did not render it.
    /// - This run reads kinds of links that the previous visit did not read.
    fn previous_visit(
        &self,
        lease: &Lease,
        unread_link_kinds: UnreadLinkKinds,
    ) -> Result<Option<Box<PreviousVisit>>, FrontierError> {
        match self.report.round().number {
            ..=1 => Ok(None),
            _ => {
                let visit = self.frontier.visit(&lease.url)?;
                let mut past = visit.as_ref().and_then(PreviousVisit::read).map(Box::new);
                let is_refused = lease.attempt > 1 && self.hosts.refused_condition(&lease.url);
                let needs_body = |past: &PreviousVisit| {
                    self.renders.needs_body(past) || past.has_left_links(unread_link_kinds)
                };
                if let Some(past) = &mut past
                    && (is_refused || (lease.kind == UrlKind::Page && needs_body(past)))
                {
                    past.fetch_in_full();
                }
                Ok(past)
            }
        }
    }

    pub(crate) fn page_fetched(
        &mut self,
        now: Tick,
        lease: Lease,
        context: FactsBeforeFetch,
        mut result: Result<Box<Exchange>, ExchangeFailure>,
        kind: OutcomeKind,
        out: &mut Vec<Effect>,
    ) {
        let host = lease.url.host_key();
        for origin in self.hosts.page_ended(&host) {
            self.wake_pending(now, &origin);
        }
        let session = context.session.as_ref();
        let is_judged = session
            .is_some_and(|session| self.session_shown(now, session, &lease.url, &mut result, out));
        let is_ours = !is_judged && result.as_ref().is_err_and(|failure| failure.kind.is_ours());
        if kind == OutcomeKind::NoConnection || is_ours {
            // The failure is due to the host or to the crawl, so the URL returns to the head of its
            // queue, and the attempt is not counted.
            self.events.tried_again(&lease, &result);
            self.release(now, lease);
            self.wake_group(now, &host);
            return self.write_state(&host, out);
        }
        let attempt = FetchAttempt::of(&lease, &context);
        let is_retried = self.hosts.is_tried_again(attempt, &host, kind, &result);
        if is_retried || (context.is_head(&lease) && needs_get(&lease.url, &result)) {
            self.events.tried_again(&lease, &result);
            self.wake_group(now, &host);
            let host = Box::new(self.hosts.state(&host));
            // The lease counts as unsettled until the writer has this message.
            out.push(Effect::Write(WriterMessage::Retry { lease, host }));
            return;
        }
        // If an answer broke off, the part that arrived is read and kept.
        let result = result.or_else(|mut failure| match failure.answer.take() {
            Some(answer) => Ok(answer),
            None => Err(failure),
        });
        let (status, bytes) = result.as_ref().map_or((0, 0), |exchange| {
            (exchange.status, exchange.body.len() as u64)
        });
        if counts_as_page(&lease, status) {
            match is_undecided_guess(&lease, status) {
                true => self.hosts.page_undecided(&host),
                false => self.hosts.page_settled(&host, bytes),
            }
            let answered = result.is_ok().then_some(status);
            self.report.settled(&lease.url, answered, now);
        }
        self.wake_group(now, &host);
        let host = self.hosts.state(&host);
        match result {
            Ok(exchange) => {
                // Only a redirect of a seed adds a host to the scope. A redirect of a URL in a
                // seed's sitemap does not.
                if self.scope.current().is_seed(&lease.url)
                    && let Some(Ok(target)) = exchange.redirect_target()
                {
                    self.scope.add_target(&lease.url, &target);
                }
                let page = FetchedPage {
                    lease,
                    context,
                    exchange,
                    scope: Arc::clone(self.scope.current()),
                    host,
                    rendering: PageSourceToRead::default(),
                };
                self.take_on(now, page, out);
            }
            Err(failure) => {
                let visit = UnansweredVisit::failed(lease, context, &failure, host);
                out.push(Effect::Write(WriterMessage::Unanswered(Box::new(visit))));
            }
        }
    }

    /// Wakes origins that got no permit while the budget of the host's group was full, if there is
    /// room now.
    pub(super) fn wake_group(&mut self, now: Tick, host: &HostKey) {
        for origin in self.hosts.with_room_again(host) {
            self.wake_pending(now, &origin);
        }
    }

    /// Puts a URL back at the head of its queue, because its request must not count.
    pub(super) fn release(&mut self, now: Tick, lease: Lease) {
        let origin = lease.origin.clone();
        self.frontier.release(lease);
        self.backlog.released();
        self.leased_url_judge.ended(&origin);
        self.wake_pending(now, &origin);
    }
}

/// Returns whether the result of a HEAD request for `url` must be confirmed with GET, since only a
/// GET shows that a link is broken. Some servers answer HEAD with a redirect that leads nowhere.
/// Others answer every HEAD with the same empty 200.
fn needs_get(url: &CanonicalUrl, result: &Result<Box<Exchange>, ExchangeFailure>) -> bool {
    match result {
        Ok(exchange) => match exchange.redirect_target() {
            Some(Ok(target)) => target == *url,
            Some(Err(_)) => true,
            // A redirect without a target leads nowhere too.
            None => match exchange.status {
                200 => describes_no_body(&exchange.headers),
                status => matches!(status, 301 | 302 | 303 | 307 | 308 | 400..),
            },
        },
        Err(failure) => failure.retry,
    }
}

/// Returns whether the answer to a HEAD request shows that a GET would return no body (RFC 9110
/// section 9.3.2): the declared length is 0, or neither a length nor a type is declared.
fn describes_no_body(headers: &HeaderMap) -> bool {
    match declared_length(headers) {
        Some(length) => length == 0,
        None => !headers.contains_key(CONTENT_TYPE),
    }
}

/// Returns whether an answered URL counts as a page of its host. True for every URL except a
/// guessed sitemap that does not exist. See also [`is_undecided_guess`].
pub(super) fn counts_as_page(lease: &Lease, status: u16) -> bool {
    !(is_guess(lease) && (400..500).contains(&status))
}
