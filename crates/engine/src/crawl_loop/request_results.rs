//! Handles the results of requests, and takes the next step to get an origin's rules.

use crawl_archive::rows::RobotsOutcome;
use crawl_fetcher::{Exchange, ExchangeFailure, FailureKind};
use crawl_frontier::FrontierError;
use crawl_scheduler::{RobotsState, Tick};
use crawl_weburl::Origin;

use super::robots::{RobotsReaction, RobotsStep};
use super::{Coordinator, request_rows};
use crate::messages::{Effect, EndedExchange, NonPageRequestResult, RequestJob, WriterMessage};
use crate::run_counters::EndedRequest;
use crate::time_conversions::millis;

impl Coordinator {
    pub(super) fn fetched(&mut self, now: Tick, ended: Box<EndedExchange>, out: &mut Vec<Effect>) {
        let EndedExchange {
            job,
            spent,
            result,
            span,
            signal,
            mut line,
        } = *ended;
        self.backlog.note_time(now);
        if matches!(job, RequestJob::Page { .. }) {
            self.backlog.page_ended();
        }
        let host = spent.host().clone();
        let bytes = match &result {
            Ok(exchange) => exchange.body.len(),
            Err(failure) => failure.answer.as_ref().map_or(0, |part| part.body.len()),
        };
        self.report.request_ended(EndedRequest {
            purpose: request_rows::purpose(&job),
            status: line.row().status,
            failure: result.as_ref().err().map(ExchangeFailure::name),
            waited: spent.waited(),
            took: signal.response_time,
            bytes: bytes as u64,
        });
        if is_refused(&result) {
            self.report.request_refused();
        }
        let kind = signal.kind;
        let failure = result.as_ref().err();
        let learned = self.hosts.request_ended(now, spent, signal, failure);
        // Record the wait that the server requested or, if it requested none, the wait that the
        // crawl chose.
        line.note_wait(learned.wait_asked.map(millis));
        self.events.exchange_ended(&span, line.row(), &result);
        self.events
            .host_waits(now, &host, &job.shown_url(), &learned);
        let is_given_up = matches!(&result, Err(failure) if failure.kind == FailureKind::GivenUp);
        // An unsent request isn't logged in a shared crawl, since another worker may own its host
        // now.
        let is_unsent = matches!(&result, Err(failure) if failure.ended == failure.started);
        let is_logged = !(is_given_up && is_unsent && self.shared.is_shared());
        let log_position = out.len();
        match job {
            RequestJob::Page { lease, context } => {
                self.page_fetched(now, lease, context, result, kind, out);
            }
            RequestJob::Login(request) => {
                let result = result.map(|exchange| *exchange);
                self.login_answered(now, &request, &result, out);
            }
            RequestJob::Render(request) => {
                let result = result.map(|exchange| *exchange);
                if let Err(error) = self.resource_fetched(now, &request, result, out) {
                    self.fail(error);
                }
            }
            // A request that was given up reveals nothing about the origin's rules.
            _ if is_given_up => self.write_state(&host, out),
            job => {
                let fetched = self.rules_fetched(now, &job, result.map(|exchange| *exchange), out);
                match fetched {
                    Ok(Some(outcome)) => line.note_robots(outcome),
                    Ok(None) => {}
                    Err(error) => self.fail(error),
                }
            }
        }
        // The row needs the meaning of robots.txt, which is known only now. Insert the row before
        // the effects that follow from that meaning.
        if is_logged {
            out.insert(log_position, Effect::Log(line));
        }
        self.hosts.free_if_idle(now, &host);
    }

    /// Passes the result of a request for an origin's rules to `OriginRobotsTracker`, and carries
    /// out the returned reaction. Returns what an answer for robots.txt means.
    pub(super) fn rules_fetched(
        &mut self,
        now: Tick,
        job: &RequestJob,
        result: Result<Exchange, ExchangeFailure>,
        out: &mut Vec<Effect>,
    ) -> Result<Option<RobotsOutcome>, FrontierError> {
        // Take the host's state before the new rules change it.
        let host = Some(self.hosts.state(&job.url().host_key()));
        let scope = &self.scope;
        let (of, purpose, reaction) = match job {
            RequestJob::Page { .. } | RequestJob::Login(_) | RequestJob::Render(_) => {
                return Ok(None);
            }
            RequestJob::TdmRep { of, attempt, .. } => {
                let reaction = self.robots.tdmrep_fetched(of, *attempt, &result, scope)?;
                (of, "tdmrep", reaction)
            }
            RequestJob::Robots { of, request, hop } => {
                if !is_refused(&result) {
                    self.report.robots_answered();
                }
                let (fetched, bounds) = ((of, request, *hop), (scope, &self.shared));
                let reaction = self.robots.robots_fetched(fetched, &result, bounds)?;
                (of, "robots", reaction)
            }
        };
        let RobotsReaction {
            next,
            copy,
            sitemaps,
            unusable,
            outcome,
        } = reaction;
        self.take_robots_step(now, of, next)?;
        for (why, count) in unusable {
            self.report.add_unusable(why, count);
        }
        let exchange = result.ok();
        let bytes = exchange
            .as_ref()
            .map_or(0, |exchange| exchange.body.len() as u64);
        let message = WriterMessage::Side(Box::new(NonPageRequestResult {
            of: Some(of.clone()),
            host,
            purpose,
            copy: copy.map(|copy| (of.clone(), copy)),
            admissions: sitemaps,
            exchange,
            bytes,
            ..NonPageRequestResult::default()
        }));
        self.backlog.written(message.weight(), bytes);
        out.push(Effect::Write(message));
        Ok(outcome)
    }

    /// Schedules the next step to get an origin's rules.
    pub(super) fn take_robots_step(
        &mut self,
        now: Tick,
        of: &Origin,
        next: RobotsStep,
    ) -> Result<(), FrontierError> {
        match next {
            RobotsStep::Hop(to) => {
                let host = to.host_key();
                self.hosts.recall(now, &host, &self.shared)?;
                self.slow_to_kept_paces(now, &to.origin())?;
                self.hosts.queue_rules_request(now, &host, of);
            }
            RobotsStep::TdmRep(pace) => {
                if let Some(pace) = pace {
                    self.hosts.set_robots_pace(now, of, &pace);
                }
                self.hosts.queue_rules_request(now, &of.host_key(), of);
            }
            RobotsStep::Done(state) => {
                let is_unreachable = matches!(state, RobotsState::Unreachable { .. });
                self.hosts.set_robots(now, of, state);
                if is_unreachable && self.renders.refuse_origin(of) {
                    self.wake_pending(now, of);
                }
            }
            RobotsStep::Again => self.hosts.begin_rules_again(now, of),
        }
        Ok(())
    }

    /// Slows down the host of an origin to the pace that the stored robots.txt files of the host
    /// request.
    pub(super) fn slow_to_kept_paces(
        &mut self,
        now: Tick,
        origin: &Origin,
    ) -> Result<(), FrontierError> {
        let paces = self.robots.kept_paces(now, origin)?;
        for (kept, pace) in paces {
            self.hosts.set_robots_pace(now, &kept, &pace);
        }
        Ok(())
    }
}

/// Returns whether a request was not sent, because the crawl refuses its address.
fn is_refused<T>(result: &Result<T, ExchangeFailure>) -> bool {
    matches!(result, Err(failure) if failure.kind.is_refusal())
}
