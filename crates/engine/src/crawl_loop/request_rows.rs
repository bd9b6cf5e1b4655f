//! Rows of `requests.jsonl`, and robots.txt verdicts in rows of `pages.jsonl`.

use crawl_archive::SerializedRequestRow;
use crawl_archive::rows::{RequestRow, RobotsOutcome, RobotsVerdict};
use crawl_fetcher::robots::RobotsFetchResult;
use crawl_fetcher::{Exchange, ExchangeFailure};
use crawl_frontier::{NotFetchedReason, Reason, UrlKind};
use crawl_policy::RuleVerdict;
use crawl_scheduler::{OutcomeKind, SpentPermit};
use crawl_weburl::Origin;
use tracing::Span;

use crate::crawl_totals::CommitPoint;
use crate::login::{SessionStatus, judge};
use crate::messages::{EndedExchange, Event, RequestJob};
use crate::priority::Priority;
use crate::time_conversions::millis;
use crate::usage_preferences::rule_text;

/// Creates the event that reports the end of an exchange.
pub(crate) fn ended(
    job: RequestJob,
    spent: SpentPermit,
    result: Result<Exchange, ExchangeFailure>,
    span: Span,
) -> Event {
    let signal = match &result {
        Ok(exchange) => exchange.signal(),
        Err(failure) => failure.signal(),
    };
    let signal = signal.with_url(job.url().as_str());
    let (job, result) = judge_session(job, result);
    let line = Box::new(SerializedRequestRow::of(row(
        &job,
        &spent,
        &result,
        &signal.kind,
    )));
    Event::Fetched(Box::new(EndedExchange {
        job,
        spent,
        result: result.map(Box::new),
        span,
        signal,
        line,
    }))
}

/// Judges by the answer for a page whether the crawl is logged in to the page's site. If the crawl
/// is logged out, the answer counts as a failure, so that no login page is archived in place of the
/// page.
fn judge_session(
    mut job: RequestJob,
    result: Result<Exchange, ExchangeFailure>,
) -> (RequestJob, Result<Exchange, ExchangeFailure>) {
    let RequestJob::Page { context, .. } = &mut job else {
        return (job, result);
    };
    let (Some(session), Ok(answer)) = (&mut context.session, &result) else {
        return (job, result);
    };
    session.shown = judge(&session.login, answer);
    let failure = match &session.shown {
        SessionStatus::LoggedOut(why) => ExchangeFailure::logged_out(answer, why.clone()),
        SessionStatus::LoggedIn | SessionStatus::Unknown => return (job, result),
    };
    (job, Err(failure))
}

fn row(
    job: &RequestJob,
    spent: &SpentPermit,
    result: &Result<Exchange, ExchangeFailure>,
    signal: &OutcomeKind,
) -> RequestRow {
    let (started, ended, address, status, failure) = match result {
        Ok(exchange) => (
            exchange.started,
            exchange.ended,
            exchange.address,
            Some(exchange.status),
            None,
        ),
        Err(failure) => (
            failure.started,
            failure.ended,
            failure.address,
            None,
            Some(failure.name().to_owned()),
        ),
    };
    let wait_asked = match signal {
        OutcomeKind::AskedToWait { retry_after } => retry_after.map(millis),
        _ => None,
    };
    RequestRow {
        url: job.shown_url().as_str().to_owned(),
        host: spent.host().as_str().to_owned(),
        address: address.map(|address| address.ip().to_string()),
        purpose: purpose(job).to_owned(),
        start: started.as_millis(),
        end: ended.as_millis(),
        status,
        failure,
        gap_asked: millis(spent.gap()),
        why: <&str>::from(spent.why()).to_owned(),
        wait_asked,
        after: match job {
            RequestJob::Page { lease, .. } => Some(CommitPoint::of(lease.after).row()),
            RequestJob::Robots { .. }
            | RequestJob::TdmRep { .. }
            | RequestJob::Login(_)
            | RequestJob::Render(_) => None,
        },
        signed: match result {
            Ok(exchange) => exchange.sent.is_signed(),
            Err(failure) => failure.signed,
        },
        challenged: result.as_ref().is_ok_and(|exchange| exchange.challenged),
        unmet_signature: (result.as_ref().ok())
            .and_then(|exchange| exchange.unmet_signature.clone()),
        method: is_post(job).then(|| "POST".to_owned()),
        via: match job {
            RequestJob::Render(request) => Some(request.page.to_string()),
            _ => None,
        },
        robots: None,
        worker: None,
    }
}

fn is_post(job: &RequestJob) -> bool {
    match job {
        RequestJob::Login(request) => request.form.is_some(),
        RequestJob::Render(request) => request.post.is_some(),
        RequestJob::Page { .. } | RequestJob::Robots { .. } | RequestJob::TdmRep { .. } => false,
    }
}

pub(crate) fn purpose(job: &RequestJob) -> &'static str {
    match job {
        RequestJob::Page { lease, context } if context.is_head(lease) => "check",
        RequestJob::Page { lease, .. } => match lease.kind {
            UrlKind::Page if Priority::of(lease) == Priority::ACTION => "action",
            UrlKind::Page => "page",
            UrlKind::Sitemap => "sitemap",
            UrlKind::Resource => "resource",
        },
        RequestJob::Robots { hop: 0, .. } => "robots",
        RequestJob::Robots { .. } => "hop",
        RequestJob::TdmRep { .. } => "tdmrep",
        RequestJob::Login(_) => "login",
        RequestJob::Render(_) => "render",
    }
}

/// Returns what an answer for robots.txt means for the rules of `of`, for the request's row.
pub(crate) fn robots_outcome(of: &Origin, answer: &RobotsFetchResult) -> RobotsOutcome {
    let (state, why) = match answer {
        RobotsFetchResult::Rules { .. } | RobotsFetchResult::NotModified => ("rules", None),
        RobotsFetchResult::None { .. } => ("none", None),
        RobotsFetchResult::Redirect { .. } => ("redirect", None),
        RobotsFetchResult::Unreachable { why, .. } => ("unreachable", Some(why)),
    };
    RobotsOutcome {
        of: of.to_string(),
        state: state.to_owned(),
        why: why.filter(|why| *why != "status").cloned(),
    }
}

/// Returns a robots.txt verdict for a page's row.
pub(crate) fn robots_verdict(verdict: &RuleVerdict<'_>) -> RobotsVerdict {
    RobotsVerdict {
        verdict: if verdict.is_allowed() {
            "allowed"
        } else {
            "disallowed"
        }
        .to_owned(),
        line: verdict.rule.as_ref().map(|rule| rule.line),
        rule: verdict.rule.as_ref().map(|rule| rule_text(&rule.text)),
    }
}

/// Returns the exclusion of a URL that robots.txt disallows.
pub(crate) fn robots_exclusion(verdict: &RuleVerdict<'_>) -> NotFetchedReason {
    NotFetchedReason {
        reason: Reason::Robots,
        rule: verdict.rule.as_ref().map(|rule| rule_text(&rule.text)),
        line: verdict.rule.as_ref().map(|rule| rule.line),
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use crawl_archive::rows::RequestRow;
    use crawl_fetcher::robots::TDMREP_PATH;
    use crawl_fetcher::{
        ExchangeFailure, FailureKind, FailurePhase, FaultyParty, FetchRequest, Validators,
    };
    use crawl_frontier::{MemoryFrontier, UrlKind, UrlToAdmit};
    use crawl_scheduler::{OutcomeKind, PollOutcome};
    use crawl_weburl::canonicalize;

    use super::super::fixtures::{at, context, coordinator, leased};
    use super::{SerializedRequestRow, millis, purpose, row};
    use crate::messages::{RequestJob, TdmRepAttempt};
    use crate::priority::Priority;

    /// `RequestRow::is_sent` knows failures only by name, so it can't call
    /// [`FailureKind::is_refusal`].
    #[test]
    fn rows_and_failures_agree_on_which_requests_were_refused() {
        for kind in [
            FailureKind::AddressRefused,
            FailureKind::NameTooLong,
            FailureKind::NoSuchName,
            FailureKind::ConnectRefused,
            FailureKind::GivenUp,
        ] {
            let row = RequestRow {
                failure: Some(kind.name().to_owned()),
                ..RequestRow::default()
            };
            assert_eq!(row.is_sent(), !kind.is_refusal(), "{}", kind.name());
        }
    }

    #[test]
    fn each_request_has_a_purpose() {
        let url = canonicalize(None, "http://a.example/").unwrap();
        let (link, action) = (Priority::LINK, Priority::ACTION);
        for (kind, priority, expected) in [
            (UrlKind::Page, link, "page"),
            (UrlKind::Page, action, "action"),
            (UrlKind::Sitemap, link, "sitemap"),
            (UrlKind::Resource, action, "resource"),
        ] {
            let admission = UrlToAdmit {
                kind,
                priority: priority.byte(),
                ..UrlToAdmit::link(url.clone(), 0, url.clone())
            };
            let lease = leased(&MemoryFrontier::new(), admission);
            let context = context(&lease, "");
            assert_eq!(purpose(&RequestJob::Page { lease, context }), expected);
        }
        // If only the status of a URL is checked, its first request is a HEAD, and later requests
        // are GETs.
        for (attempt, expected) in [(1, "check"), (2, "page")] {
            let admission = UrlToAdmit::link(url.clone(), 0, url.clone());
            let mut lease = leased(&MemoryFrontier::new(), admission);
            lease.attempt = attempt;
            let mut context = context(&lease, "");
            context.is_only_checked = true;
            let job = RequestJob::Page { lease, context };
            assert_eq!(purpose(&job), expected);
            assert_eq!(job.request().is_head, attempt == 1);
        }
        let of = url.origin();
        for (hop, expected) in [(0, "robots"), (1, "hop")] {
            let request = FetchRequest::robots(of.robots_url(), Validators::default());
            let of = of.clone();
            assert_eq!(purpose(&RequestJob::Robots { of, request, hop }), expected);
        }
        let request = FetchRequest::robots(of.url(TDMREP_PATH), Validators::default());
        let attempt = TdmRepAttempt::default();
        assert_eq!(
            purpose(&RequestJob::TdmRep {
                of,
                request,
                attempt
            }),
            "tdmrep"
        );
    }

    #[test]
    fn a_row_has_the_request_its_result_and_the_wait_after_it() {
        let mut coordinator = coordinator(|_| {});
        let origin = canonicalize(None, "http://a.example/").unwrap().origin();
        coordinator.hosts.set_pending(at(20), &origin, 1);
        let PollOutcome::Issue(permit) = coordinator.hosts.poll(at(20)) else {
            panic!("no permit");
        };
        let spent = permit.spend();
        let job = RequestJob::Robots {
            request: FetchRequest::robots(origin.robots_url(), Validators::default()),
            of: origin,
            hop: 0,
        };
        let failure = ExchangeFailure {
            kind: FailureKind::Timeout,
            phase: FailurePhase::FirstByte,
            fault: FaultyParty::Url,
            retry: true,
            started: at(20),
            ended: at(22),
            address: Some(SocketAddr::from(([192, 0, 2, 7], 80))),
            detail: String::new(),
            signed: false,
            answer: None,
        };
        let second = Duration::from_secs(1);
        let named = OutcomeKind::AskedToWait {
            retry_after: Some(7 * second),
        };
        let unnamed = OutcomeKind::AskedToWait { retry_after: None };
        for (signal, learned, wait_asked) in [
            (OutcomeKind::UrlFailed, None, None),
            (unnamed, Some(60 * second), Some(60_000)),
            (named, Some(60 * second), Some(7_000)),
        ] {
            let mut line =
                SerializedRequestRow::of(row(&job, &spent, &Err(failure.clone()), &signal));
            line.note_wait(learned.map(millis));
            let expected = RequestRow {
                url: "http://a.example/robots.txt".to_owned(),
                host: "a.example".to_owned(),
                address: Some("192.0.2.7".to_owned()),
                purpose: "robots".to_owned(),
                start: 20_000,
                end: 22_000,
                status: None,
                failure: Some("timeout".to_owned()),
                gap_asked: 0,
                why: "first".to_owned(),
                wait_asked,
                after: None,
                signed: false,
                challenged: false,
                unmet_signature: None,
                method: None,
                via: None,
                robots: None,
                worker: None,
            };
            assert_eq!(*line.row(), expected);
        }
    }
}
