//! The requests in flight of a program.

use std::sync::atomic::Ordering;

use crawl_fetcher::{Exchange, ExchangeFailure, FailureKind};
use crawl_scheduler::{Permit, SpentPermit, Tick};
use tracing::Span;

use super::super::super::scripted_servers::failure;
use super::{DueEvent, PersistentTrialState, ProgramLife, TimedEvent};
use crate::crawl_loop::request_rows;
use crate::messages::RequestJob;

/// A request in flight of the simulated program, with the result that it will have.
pub(super) struct SimulatedInFlightRequest {
    /// The number that the checker gave the request. `None` if the request was not sent.
    seen: Option<usize>,
    job: RequestJob,
    spent: SpentPermit,
    result: Result<Exchange, ExchangeFailure>,
    span: Span,
}

impl ProgramLife {
    /// Handles the end of a request.
    pub(super) fn landed(
        &mut self,
        world: &mut PersistentTrialState<'_>,
        flight: SimulatedInFlightRequest,
    ) {
        let SimulatedInFlightRequest {
            seen,
            job,
            spent,
            result,
            span,
        } = flight;
        let ended = match &result {
            Ok(exchange) => exchange.ended,
            Err(failure) => failure.ended,
        };
        if let Some(seen) = seen {
            world.checker.ended(ended, seen, &job, &result);
        }
        let how = match &result {
            Ok(exchange) => exchange.status.to_string(),
            Err(failure) => failure.name().to_owned(),
        };
        let worker = world.worker;
        world
            .trace
            .note(self.now, || format!("w{worker} {how} {}", job.url()));
        self.handle(world, request_rows::ended(job, spent, result, span));
    }

    pub(super) fn send(
        &mut self,
        world: &mut PersistentTrialState<'_>,
        permit: Permit,
        job: RequestJob,
        span: Span,
    ) {
        let now = self.now;
        let (seen, result) = match self.may_send() {
            true => {
                let worker = world.worker;
                world
                    .trace
                    .note(now, || format!("w{worker} request {}", job.url()));
                let seen = world
                    .checker
                    .sent(worker, now, &job, world.web, &*self.frontier);
                (Some(seen), world.web.exchange(&job, now))
            }
            false => (None, Err(failure(FailureKind::GivenUp, now, now))),
        };
        let ends = match &result {
            Ok(exchange) => exchange.ended,
            Err(failure) => failure.ended,
        };
        let flight = SimulatedInFlightRequest {
            seen,
            job,
            spent: permit.spend(),
            result,
            span,
        };
        self.at(ends, TimedEvent::Ended(Box::new(flight)));
    }

    /// Aborts all requests in flight.
    pub(super) fn give_up(&mut self) {
        self.is_given_up = true;
        self.reader.gives_back.store(true, Ordering::Relaxed);
        self.abort_flights(self.now);
    }

    pub(super) fn has_flights(&self) -> bool {
        let mut due = self.due.iter();
        due.any(|due| matches!(due.happening, TimedEvent::Ended(_)))
    }

    /// Aborts, at the time `at`, the requests in flight that would end later.
    pub(super) fn abort_flights(&mut self, at: Tick) {
        let aborted = |due: DueEvent| match due.happening {
            TimedEvent::Ended(flight) if due.at > at => {
                let started = flight.spent.issued();
                let result = Err(failure(FailureKind::GivenUp, started, at.max(started)));
                let flight = Box::new(SimulatedInFlightRequest { result, ..*flight });
                let happening = TimedEvent::Ended(flight);
                DueEvent {
                    at,
                    happening,
                    ..due
                }
            }
            happening => DueEvent { happening, ..due },
        };
        let due = std::mem::take(&mut self.due);
        self.due = due.into_iter().map(aborted).collect();
    }
}
