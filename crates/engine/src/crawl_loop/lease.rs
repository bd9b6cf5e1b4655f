//! A page's way through the crawl loop: leased, judged, fetched, sent on.

use std::sync::Arc;

use crawl_fetcher::{Exchange, Failure};
use crawl_frontier::{Exclusion, FrontierError, Lease, Reason, UrlKind};
use crawl_policy::scope::{OutReason, ScopeVerdict};
use crawl_scheduler::{OutcomeKind, RobotsState, Tick};
use crawl_weburl::{CanonicalUrl, HostKey, Origin};

use super::Coordinator;
use super::request_rows;
use super::robots_state::RobotsStanding;
use super::trap_gate::LeaseDisposition;
use crate::config::{Extent, Resources};
use crate::messages::page::{FetchContext, FetchedPage, UnansweredVisit, redirect_target};
use crate::messages::{Effect, Job, WriterMessage};
use crate::priority::{Priority, is_guess};
use crate::revisit::visit::PreviousVisit;
use crate::usage;

/// May a leased URL be asked for?
enum Judgement {
    Allowed(FetchContext),
    Refused(Exclusion),
    /// Its origin's robots.txt comes first.
    RobotsFirst,
}

/// What follows a URL in the loop over those of its origin.
enum LeaseStep {
    /// Send its request.
    Send(Job),
    /// Lease the next URL.
    Next,
    /// End the loop. URLs of the origin are left for its next permit.
    End,
    /// End the loop. The origin waits, and the scheduler knows it.
    Wait,
}

impl Coordinator {
    /// The next URL of a host's origin that may be asked for; those that may not are settled
    /// on the way.
    pub(crate) fn next_page(
        &mut self,
        now: Tick,
        host: &HostKey,
        origin: &Origin,
        out: &mut Vec<Effect>,
    ) -> Result<Option<Job>, FrontierError> {
        let mut later = Vec::new();
        let job = self.first_page(now, (host, origin), &mut later, out);
        if !later.is_empty() {
            // As one item: items overtake each other, and these keep their order.
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
    ) -> Result<Option<Job>, FrontierError> {
        let standing = self.origins.standing(origin, &*self.frontier)?;
        let is_full = self.is_turned_away(now, host, origin);
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
                LeaseStep::Send(job) => return Ok(Some(job)),
                LeaseStep::Next => {}
                LeaseStep::End => break,
                LeaseStep::Wait => return Ok(None),
            }
        }
        let is_cut_short = self.turns.is_cut_short();
        if is_cut_short {
            // The commit of the passed URLs wakes the origin; until then other hosts are served.
            self.traps.wait_for_commit(origin);
        }
        let left = match is_full || is_cut_short {
            true => 0,
            false => self.frontier.pending(origin),
        };
        self.scheduler.set_pending(now, origin, left);
        Ok(None)
    }

    /// Returns whether a host's budget or its waiting documents leave no room for a page. The origin
    /// is then woken once there is room.
    fn is_turned_away(&mut self, now: Tick, host: &HostKey, origin: &Origin) -> bool {
        let is_full = self.host_budgets.is_full(now, host);
        if is_full {
            self.host_budgets.turn_away(origin);
        }
        let is_reading = self.backlog.turns_away(host, origin);
        is_full || is_reading
    }

    /// Judges a leased URL by scope and robots.txt. A refused one is settled.
    fn consider(
        &mut self,
        now: Tick,
        standing: &RobotsStanding,
        lease: Lease,
        later: &mut Vec<(Lease, Priority)>,
        out: &mut Vec<Effect>,
    ) -> Result<LeaseStep, FrontierError> {
        let past = self.past(&lease)?;
        let exclusion = match self.judge(standing, &lease) {
            Judgement::Allowed(context) => {
                self.events.allowed(&lease.url, &context.robots);
                let context = FetchContext { past, ..context };
                return self.pass_gates(now, lease, context, later, out);
            }
            Judgement::Refused(exclusion) => exclusion,
            Judgement::RobotsFirst => {
                self.events.waits(&lease.url, "waits for robots.txt");
                let origin = lease.origin.clone();
                self.frontier.release(lease);
                self.scheduler
                    .set_robots(now, &origin, RobotsState::Unknown);
                return Ok(LeaseStep::Wait);
            }
        };
        let item = WriterMessage::Excluded {
            lease,
            exclusion,
            past,
        };
        self.settle_unasked(item, out);
        Ok(LeaseStep::Next)
    }

    /// Takes a URL that scope and robots.txt allow past traps and crash suspects.
    fn pass_gates(
        &mut self,
        now: Tick,
        lease: Lease,
        context: FetchContext,
        later: &mut Vec<(Lease, Priority)>,
        out: &mut Vec<Effect>,
    ) -> Result<LeaseStep, FrontierError> {
        let per_host = self.config.politeness.per_host;
        let disposition = self
            .traps
            .disposition(lease, &context, per_host, &*self.frontier)?;
        let lease = match disposition {
            LeaseDisposition::Fetch(lease) => lease,
            LeaseDisposition::Wait(lease) => {
                // The commit of the requests in flight wakes the origin.
                let what = "waits until what its origin is asked for now is read";
                self.hold_back(now, lease, what);
                return Ok(LeaseStep::Wait);
            }
            LeaseDisposition::WaitForCommit(lease) => {
                self.traps.wait_for_commit(&lease.origin);
                self.hold_back(now, lease, "waits until what was read is committed");
                return Ok(LeaseStep::Wait);
            }
            LeaseDisposition::Again(lease) => {
                self.frontier.release(lease);
                return Ok(match self.turns.begin_again() {
                    true => LeaseStep::Next,
                    false => LeaseStep::End,
                });
            }
            LeaseDisposition::Later(lease, priority) => {
                let what = "goes behind others: the way to it said nothing new";
                self.events.waits(&lease.url, what);
                later.push((lease, priority));
                self.turns.passed();
                return Ok(LeaseStep::Next);
            }
            LeaseDisposition::Settle(item) => {
                self.settle_unasked(item, out);
                return Ok(LeaseStep::Next);
            }
        };
        let Some(lease) = self.unless_suspect(now, lease, &context, out) else {
            self.turns.passed();
            return Ok(LeaseStep::Next);
        };
        Ok(LeaseStep::Send(self.page_job(now, lease, context)))
    }

    /// Releases a URL, and holds its origin back until it is woken.
    fn hold_back(&mut self, now: Tick, lease: Lease, what: &'static str) {
        self.events.waits(&lease.url, what);
        let origin = lease.origin.clone();
        self.frontier.release(lease);
        self.scheduler.set_pending(now, &origin, 0);
    }

    /// Settles a URL without a request.
    fn settle_unasked(&mut self, item: WriterMessage, out: &mut Vec<Effect>) {
        self.events.not_asked_for(&item);
        self.write(item, out);
        self.turns.passed();
    }

    /// Counts a lease that is fetched.
    fn page_job(&mut self, now: Tick, lease: Lease, context: FetchContext) -> Job {
        self.backlog.leased();
        self.traps.leased(&lease.origin);
        self.host_budgets.leased(&lease.url.host_key());
        let left = self.frontier.pending(&lease.origin);
        self.scheduler.set_pending(now, &lease.origin, left);
        Job::Page { lease, context }
    }

    /// The state that the last visit of a URL left; nothing in the first round.
    fn past(&self, lease: &Lease) -> Result<Option<Box<PreviousVisit>>, FrontierError> {
        match self.totals.round().number {
            ..=1 => Ok(None),
            _ => {
                let visit = self.frontier.visit(&lease.url)?;
                Ok(visit.as_ref().and_then(PreviousVisit::read).map(Box::new))
            }
        }
    }

    fn judge(&self, standing: &RobotsStanding, lease: &Lease) -> Judgement {
        let refused = |rule: String, reason| {
            Judgement::Refused(Exclusion {
                rule: Some(rule),
                ..Exclusion::of(reason)
            })
        };
        if let Some(exclusion) = self.out_of_scope(lease) {
            return Judgement::Refused(exclusion);
        }
        match standing {
            RobotsStanding::InForce(rules) => {
                let path = lease.url.path_and_query();
                let verdict = rules.robots.judge(path);
                if !verdict.is_allowed() {
                    return Judgement::Refused(request_rows::robots_exclusion(&verdict));
                }
                match usage::refusal(rules, path, self.config.purpose) {
                    Some(exclusion) => Judgement::Refused(exclusion),
                    None if self.config.extent != Extent::Crawl
                        && lease.kind != UrlKind::Sitemap =>
                    {
                        Judgement::Refused(Exclusion::of(Reason::Planned))
                    }
                    None => Judgement::Allowed(FetchContext {
                        robots: request_rows::robots_verdict(&verdict),
                        rules: Arc::clone(rules),
                        past: None,
                        label: self.label(&lease.url),
                    }),
                }
            }
            RobotsStanding::Forbidden(status) => {
                refused(format!("robots.txt answered {status}"), Reason::Robots)
            }
            RobotsStanding::Refused(why) => Judgement::Refused(why.clone()),
            RobotsStanding::Unknown => Judgement::RobotsFirst,
        }
    }

    /// The label of the seed in whose area a URL lies.
    fn label(&self, url: &CanonicalUrl) -> Option<Arc<str>> {
        self.scope.terms(url)?.label.clone()
    }

    /// Judges a lease by the scope of now: an earlier one may have been wider.
    fn out_of_scope(&self, lease: &Lease) -> Option<Exclusion> {
        if !self.judges_again() {
            return None;
        }
        if lease.is_seed {
            let rule = self.scope.excluded(&lease.url)?.clone();
            return Some(Exclusion {
                rule: Some(rule),
                ..Exclusion::of(Reason::Scope)
            });
        }
        let host = lease.url.host_key();
        if lease.kind == UrlKind::Sitemap && self.may_read_sitemap(&lease.url, &host) {
            return None;
        }
        let is_exempt = lease.kind == UrlKind::Resource
            && self.config.resources == Resources::All
            && self.scope.excluded(&lease.url).is_none();
        match (self.scope).judge_at(&lease.url, lease.depth, lease.hops_off) {
            _ if is_exempt => None,
            ScopeVerdict::Out {
                reason: OutReason::Scope,
                rule,
            } => Some(Exclusion {
                rule: Some(rule),
                ..Exclusion::of(Reason::Scope)
            }),
            // What is too deep may be wanted again, and settled is for ever.
            _ => None,
        }
    }

    pub(crate) fn page_fetched(
        &mut self,
        now: Tick,
        lease: Lease,
        context: FetchContext,
        result: Result<Box<Exchange>, Failure>,
        kind: OutcomeKind,
        out: &mut Vec<Effect>,
    ) {
        let host = lease.url.host_key();
        for origin in self.host_budgets.lease_ended(&host) {
            self.wake(now, &origin, self.frontier.pending(&origin));
        }
        let is_ours = result.as_ref().is_err_and(|failure| failure.kind.is_ours());
        if kind == OutcomeKind::NoConnection || is_ours {
            // The host's matter, or ours: the URL waits at the head of its queue, no older.
            self.events.tried_again(&lease, &result);
            self.release(now, lease);
            self.wake_group(now, &host);
            let state = self.host_state(&host);
            return self.write(WriterMessage::Host(Box::new(state)), out);
        }
        if self.is_tried_again(&lease, &host, kind, &result) {
            self.events.tried_again(&lease, &result);
            self.wake_group(now, &host);
            let host = Box::new(self.host_state(&host));
            // The lease stays unsettled until the writer has it.
            out.push(Effect::Write(WriterMessage::Retry { lease, host }));
            return;
        }
        // What had come of an answer that broke off is read and kept as far as it goes.
        let result = result.or_else(|mut failure| match failure.answer.take() {
            Some(answer) => Ok(answer),
            None => Err(failure),
        });
        let status = result.as_ref().map_or(0, |exchange| exchange.status);
        if counts_as_page(&lease, status) {
            self.host_budgets.settled(&host);
            let answered = result.is_ok().then_some(status);
            self.steering.settled(&lease.url, answered, now);
        }
        self.wake_group(now, &host);
        let host = self.host_state(&host);
        match result {
            Ok(exchange) => {
                // What the sitemap of a seed lists brings no host in.
                if self.scope.is_seed(&lease.url)
                    && let Some(Ok(target)) = redirect_target(&exchange)
                {
                    Arc::make_mut(&mut self.scope).add_target(&lease.url, &target);
                }
                let page = FetchedPage {
                    lease,
                    context,
                    exchange,
                    scope: Arc::clone(&self.scope),
                    host,
                };
                self.hand_to_readers(page, out);
            }
            Err(failure) => {
                let visit = UnansweredVisit::failed(lease, context, &failure, host);
                out.push(Effect::Write(WriterMessage::Unanswered(Box::new(visit))));
            }
        }
    }

    /// Wakes the origins that waited for room in the budget of a host's group, if there is some.
    fn wake_group(&mut self, now: Tick, host: &HostKey) {
        for origin in self.host_budgets.with_room_again(host) {
            self.wake(now, &origin, self.frontier.pending(&origin));
        }
    }

    /// A URL that was asked for waits at the head of its queue again.
    pub(super) fn release(&mut self, now: Tick, lease: Lease) {
        let origin = lease.origin.clone();
        self.frontier.release(lease);
        self.backlog.released();
        self.traps.ended(&origin);
        self.wake(now, &origin, self.frontier.pending(&origin));
    }

    /// Returns whether a URL goes behind the others of its origin, to be tried again.
    ///
    /// 429 and 503 are the host's matter, so none of its URLs is settled by them while the
    /// host answers nothing else. A URL that goes on with them while others are answered,
    /// or for as often as it names the time to come back, is settled like one that fails.
    pub(crate) fn is_tried_again(
        &mut self,
        lease: &Lease,
        host: &HostKey,
        kind: OutcomeKind,
        result: &Result<Box<Exchange>, Failure>,
    ) -> bool {
        let left = lease.attempt <= self.config.retries;
        match kind {
            OutcomeKind::AskedToWait { retry_after } => {
                let silent = !self.silent_hosts.insert(host.clone());
                left || (silent && retry_after.is_none())
            }
            OutcomeKind::Answered => {
                self.silent_hosts.remove(host);
                left && is_worth_a_retry(result)
            }
            OutcomeKind::UrlFailed | OutcomeKind::NoConnection => left && is_worth_a_retry(result),
        }
    }
}

/// Returns whether a URL counts as a page of its host: a sitemap that nobody named and that is not
/// there does not.
pub(super) fn counts_as_page(lease: &Lease, status: u16) -> bool {
    !(is_guess(lease) && (400..500).contains(&status))
}

/// Returns whether the same request may well succeed another time.
fn is_worth_a_retry(result: &Result<Box<Exchange>, Failure>) -> bool {
    match result {
        Ok(exchange) => matches!(exchange.status, 500 | 502 | 504),
        Err(failure) => failure.retry,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use crawl_fetcher::{Failure, FailureKind, FailurePhase, Fault};
    use crawl_frontier::{Admission, Reason, UrlKind};
    use crawl_policy::scope::{Scope, ScopeMode};
    use crawl_scheduler::{OutcomeKind, RestartKind};
    use crawl_weburl::canonicalize;

    use super::super::by_itself::{at, coordinator, leased};
    use crate::config::Resources;

    #[test]
    fn ours_what_waits_is_judged_by_the_scope_of_a_run_that_goes_on() {
        let seed = canonicalize(None, "http://a.example/").unwrap();
        let mut scope = Scope::new(ScopeMode::Host, &[], &["/x".to_owned()], Some(1)).unwrap();
        scope.add_seed(&seed);
        let (page, sitemap, part) = (UrlKind::Page, UrlKind::Sitemap, UrlKind::Resource);
        let all = Resources::All;
        for (host, path, kind, resources, is_out) in [
            ("a", "/page", page, all, false),
            ("a", "/x", page, all, true),
            ("b", "/page", page, all, true),
            ("b", "/map", sitemap, all, false),
            ("b", "/x", sitemap, all, true),
            ("b", "/part", part, all, false),
            ("b", "/part", part, Resources::Own, true),
            ("b", "/x", part, all, true),
        ] {
            let shown = format!("{host} {path} {kind:?} {resources:?}");
            let mut coordinator = coordinator(|config| config.resources = resources);
            coordinator.scope = Arc::new(scope.clone());
            let url = canonicalize(None, &format!("http://{host}.example{path}")).unwrap();
            // All are too deep, which settles nothing.
            let admission = Admission {
                kind,
                ..Admission::link(url, 5, seed.clone())
            };
            let lease = leased(&*coordinator.frontier, admission);
            assert_eq!(coordinator.out_of_scope(&lease), None, "{shown}");
            coordinator.hosts.resume(RestartKind::AfterKill);
            let found = coordinator.out_of_scope(&lease);
            let found = found.map(|exclusion| exclusion.reason);
            assert_eq!(found, is_out.then_some(Reason::Scope), "{shown}");
        }
        // A seed is out where it is excluded, and not where it is of another host.
        for (url, is_out) in [("http://b.example/", false), ("http://b.example/x", true)] {
            let mut coordinator = coordinator(|_| {});
            coordinator.scope = Arc::new(scope.clone());
            coordinator.hosts.resume(RestartKind::AfterKill);
            let admission = Admission::seed(canonicalize(None, url).unwrap());
            let lease = leased(&*coordinator.frontier, admission);
            assert_eq!(coordinator.out_of_scope(&lease).is_some(), is_out, "{url}");
        }
    }

    #[test]
    fn ours_429_settles_no_url_while_its_host_answers_nothing_else() {
        let mut coordinator = coordinator(|config| config.retries = 3);
        let seed = canonicalize(None, "http://a.example/").unwrap();
        let host = seed.host_key();
        let mut lease = leased(&*coordinator.frontier, Admission::seed(seed));
        let failure = Failure {
            kind: FailureKind::Timeout,
            phase: FailurePhase::Request,
            fault: Fault::Url,
            retry: false,
            started: at(20),
            ended: at(20),
            address: None,
            detail: String::new(),
            answer: None,
        };
        let result = Err(failure);
        let wait = |retry_after| OutcomeKind::AskedToWait { retry_after };
        let (silent, named) = (wait(None), wait(Some(Duration::from_secs(1))));
        // One that was tried for as often as it may be, unless the host says no more than that.
        for (attempt, kind, is_tried_again) in [
            (3, named, true),
            (4, named, false),
            (4, silent, true),
            (4, OutcomeKind::Answered, false),
            (4, silent, false),
            (4, silent, true),
        ] {
            lease.attempt = attempt;
            let found = coordinator.is_tried_again(&lease, &host, kind, &result);
            assert_eq!(found, is_tried_again, "{attempt} {kind:?}");
        }
    }
}
