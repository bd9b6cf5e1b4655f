//! A page's way through the crawl loop: leased, judged, fetched, sent on.

use std::sync::Arc;

use crawl_fetcher::{Exchange, Failure};
use crawl_frontier::{Exclusion, FrontierError, Lease, Reason, UrlKind};
use crawl_scheduler::{OutcomeKind, RobotsState, Tick};
use crawl_weburl::{HostKey, Origin};

use super::Coordinator;
use super::request_rows;
use super::robots_state::RobotsStanding;
use super::trap_gate::LeaseDisposition;
use crate::config::Extent;
use crate::messages::page::{FetchContext, FetchedPage, UnansweredVisit};
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

/// The step after a URL, in the loop over the URLs of its origin.
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
        let pending = match is_full || is_cut_short {
            true => 0,
            false => self.frontier.pending(origin),
        };
        self.scheduler.set_pending(now, origin, pending);
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
        self.settle_without_request(item, out);
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
                let reason = "waits until what its origin is asked for now is read";
                self.hold_back(now, lease, reason);
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
                let reason = "goes behind others: the way to it said nothing new";
                self.events.waits(&lease.url, reason);
                later.push((lease, priority));
                self.turns.passed();
                return Ok(LeaseStep::Next);
            }
            LeaseDisposition::Settle(item) => {
                self.settle_without_request(item, out);
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
    fn hold_back(&mut self, now: Tick, lease: Lease, reason: &'static str) {
        self.events.waits(&lease.url, reason);
        let origin = lease.origin.clone();
        self.frontier.release(lease);
        self.scheduler.set_pending(now, &origin, 0);
    }

    /// Settles a URL without a request.
    fn settle_without_request(&mut self, item: WriterMessage, out: &mut Vec<Effect>) {
        self.events.not_asked_for(&item);
        self.write(item, out);
        self.turns.passed();
    }

    /// Counts a lease that is fetched.
    fn page_job(&mut self, now: Tick, lease: Lease, context: FetchContext) -> Job {
        self.backlog.leased();
        self.traps.leased(&lease.origin);
        self.host_budgets.leased(&lease.url.host_key());
        let pending = self.frontier.pending(&lease.origin);
        self.scheduler.set_pending(now, &lease.origin, pending);
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
        if let Some(exclusion) = self.scope.out_of_scope(lease) {
            return Judgement::Refused(exclusion);
        }
        match standing {
            RobotsStanding::InForce(rules) => {
                let path = lease.url.path_and_query();
                let verdict = rules.robots.judge(lease.url.as_url());
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
                        label: self.scope.label(&lease.url),
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
        if (self.retries).is_tried_again(lease.attempt, &host, kind, &result) {
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
}

/// Returns whether a URL counts as a page of its host: a sitemap that nobody named and that is not
/// there does not.
pub(super) fn counts_as_page(lease: &Lease, status: u16) -> bool {
    !(is_guess(lease) && (400..500).contains(&status))
}
