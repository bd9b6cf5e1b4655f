//! The tracing spans and events of a crawl, which `crawl -v` and `-vv` show: each decision with the
//! rule behind it.
//!
//! The code that makes a decision calls this module instead of logging directly. Fields are
//! formatted only if a subscriber wants them, and the secrets of `[site]` are redacted in each
//! field.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use crawl_archive::rows::{PageRow, RequestRow, RobotsVerdict};
use crawl_fetcher::robots::{RobotsCopy, RobotsRulesState};
use crawl_fetcher::{Exchange, ExchangeFailure, Secrets};
use crawl_frontier::{AdmissionResult, Lease, NotFetchedReason, RequestedState, UrlToAdmit};
use crawl_policy::RobotsOddity;
use crawl_scheduler::{HostWait, Permit, Tick};
use crawl_weburl::{CanonicalUrl, HostKey, Origin};
use tracing::field::Empty;
use tracing::{Level, Span, debug, debug_span, enabled, span_enabled, trace, warn};

use crate::config::Config;
use crate::messages::WriterMessage;
use crate::secret_redaction::redacted_url;
use crate::time_conversions::millis;

/// Returns the tracing span of a crawl. The spans of hosts and exchanges are inside it.
pub(crate) fn crawl_span(output: &Path) -> Span {
    debug_span!("crawl", output = %output.display())
}

/// The tracing spans of hosts that are in memory and that requests were sent to. Empty without a
/// subscriber.
#[derive(Debug, Default)]
pub(crate) struct HostSpans(HashMap<HostKey, Span>);

impl HostSpans {
    fn of(&mut self, host: &HostKey) -> Span {
        if !span_enabled!(Level::DEBUG) {
            return Span::none();
        }
        let spans = self.0.entry(host.clone());
        spans.or_insert_with(|| debug_span!("host", %host)).clone()
    }

    /// Removes the span of a host that leaves memory.
    pub(crate) fn forget(&mut self, host: &HostKey) {
        self.0.remove(host);
    }
}

/// Emits the tracing events of a crawl. The methods are in the order in which the events of a URL
/// occur.
#[derive(Clone, Debug, Default)]
pub(crate) struct TraceEventEmitter {
    secrets: Secrets,
}

impl TraceEventEmitter {
    pub(crate) fn new(config: &Config) -> TraceEventEmitter {
        TraceEventEmitter {
            secrets: config.fetch.secrets(),
        }
    }

    /// Returns whether a tracing subscriber wants events for decisions.
    pub(crate) fn are_wanted() -> bool {
        enabled!(Level::TRACE)
    }

    /// Logs that a URL was added to the frontier, or has become fetchable.
    pub(crate) fn admitted(&self, admission: &UrlToAdmit, admitted: AdmissionResult) {
        let (state, exclusion) = match (&admission.state, admitted) {
            (_, AdmissionResult::Known) => return,
            (RequestedState::Pending, AdmissionResult::New) => ("pending", None),
            (RequestedState::Deferred(exclusion), _) => ("deferred", Some(exclusion)),
            (RequestedState::Excluded(exclusion), _) => ("excluded", Some(exclusion)),
            (RequestedState::Pending, AdmissionResult::Revived) => ("pending again", None),
        };
        trace!(
            url = self.url(&admission.url),
            found_on = admission.via.as_ref().map(|via| self.url(via)),
            depth = admission.depth,
            state,
            reason = exclusion.map(|exclusion| exclusion.reason.name()),
            rule = self.rule(exclusion),
            "found"
        );
    }

    /// Logs that a URL was leased.
    pub(crate) fn leased(&self, lease: &Lease) {
        let url = &lease.url;
        trace!(url = self.url(url), attempt = lease.attempt, "leased");
    }

    /// Logs that robots.txt allows a leased URL to be fetched.
    pub(crate) fn allowed(&self, url: &CanonicalUrl, verdict: &RobotsVerdict) {
        trace!(
            url = self.url(url),
            rule = verdict
                .rule
                .as_deref()
                .map(|rule| self.text(rule))
                .as_deref(),
            line = verdict.line,
            "robots.txt allows it"
        );
    }

    /// Logs that a leased URL is settled or deferred without a request.
    pub(crate) fn not_fetched(&self, item: &WriterMessage) {
        let (lease, exclusion, same_as, what) = match item {
            WriterMessage::Excluded {
                lease, exclusion, ..
            } => (lease, exclusion, None, "excluded"),
            WriterMessage::PutAside { lease, exclusion } => (lease, exclusion, None, "deferred"),
            WriterMessage::SameAs {
                lease,
                url,
                exclusion,
            } => (lease, exclusion, Some(url), "fetched under another URL"),
            _ => return,
        };
        trace!(
            url = self.url(&lease.url),
            reason = exclusion.reason.name(),
            rule = self.rule(Some(exclusion)),
            line = exclusion.line,
            same_as = same_as.map(|url| self.url(url)),
            "{what}"
        );
    }

    /// Logs that a leased URL will be fetched later. `what` is the text of the event, which names
    /// the reason.
    pub(crate) fn waits(&self, url: &CanonicalUrl, what: &'static str) {
        trace!(url = self.url(url), "{what}");
    }

    /// Returns the tracing span of a request, with the gap before it and the rule for that gap.
    pub(crate) fn exchange(
        &self,
        hosts: &mut HostSpans,
        permit: &Permit,
        url: &CanonicalUrl,
        purpose: &'static str,
    ) -> Span {
        let host = hosts.of(permit.host());
        let span = debug_span!(
            parent: &host,
            "exchange",
            url = self.url(url),
            purpose,
            gap_asked = millis(permit.gap()),
            why = <&str>::from(permit.why()),
            address = Empty,
            start = Empty,
            end = Empty,
            status = Empty,
            failure = Empty,
            wait_asked = Empty,
        );
        trace!(parent: &span, "due");
        span
    }

    /// Logs the end of an exchange, with the values of its request row. Call this before the row
    /// itself is logged.
    pub(crate) fn exchange_ended(
        &self,
        span: &Span,
        row: &RequestRow,
        result: &Result<Box<Exchange>, ExchangeFailure>,
    ) {
        if span.is_disabled() {
            return;
        }
        span.record("status", row.status);
        span.record("address", row.address.as_deref());
        span.record("start", row.start);
        span.record("end", row.end);
        span.record("failure", row.failure.as_deref());
        span.record("wait_asked", row.wait_asked);
        match result {
            Ok(exchange) => {
                let bytes = exchange.body.len();
                debug!(parent: span, bytes, "answered {}", exchange.status);
            }
            Err(failure) => {
                let detail = &*self.text(&failure.detail);
                debug!(parent: span, detail, "not answered: {}", failure.name());
            }
        }
    }

    /// Logs how long a host must wait after an exchange.
    pub(crate) fn host_waits(
        &self,
        now: Tick,
        host: &HostKey,
        url: &CanonicalUrl,
        wait: &HostWait,
    ) {
        trace!(
            url = self.url(url),
            %host,
            for_ms = millis(wait.next_at.since(now)),
            pause_ms = wait.paused.map(|until| millis(until.since(now))),
            "host waits"
        );
    }

    /// Logs that a URL is requeued because of the result of its request.
    pub(crate) fn tried_again(
        &self,
        lease: &Lease,
        result: &Result<Box<Exchange>, ExchangeFailure>,
    ) {
        trace!(
            url = self.url(&lease.url),
            attempt = lease.attempt,
            status = result.as_ref().ok().map(|exchange| exchange.status),
            failure = result.as_ref().err().map(ExchangeFailure::name),
            "will be retried"
        );
    }

    /// Logs the rules for an origin in its copy of robots.txt.
    pub(crate) fn rules_known(&self, origin: &Origin, copy: &RobotsCopy) {
        let state = match copy.state {
            RobotsRulesState::Rules => "rules",
            RobotsRulesState::None => "no rules",
            RobotsRulesState::Unreachable { .. } => "unreachable",
        };
        let (url, status) = (&copy.url, copy.status);
        trace!(url = self.url(url), %origin, status, state, "robots.txt is known");
    }

    /// Logs a file served as robots.txt that is obviously something else.
    pub(crate) fn strange_robots(&self, url: &CanonicalUrl, oddity: &RobotsOddity) {
        let (url, line, what) = (self.url(url), oddity.line, oddity.what);
        warn!(url, line, "{what}: reading its rules anyway");
    }

    /// Logs a line of a robots.txt that is meant for this crawler, but can't be followed. Not a
    /// warning, because many files have such a line, for example an empty `Sitemap`.
    pub(crate) fn invalid_robots_line(&self, url: &CanonicalUrl, oddity: &RobotsOddity) {
        let (url, line, what) = (self.url(url), oddity.line, oddity.what);
        debug!(url, line, "{what}: ignoring the line");
    }

    /// Logs a page that was read, with the number of admitted links. The row must not contain
    /// secrets.
    pub(crate) fn read(&self, row: &PageRow, links: usize) {
        trace!(
            url = &*self.text(&row.url),
            links,
            indexed = row.indexed.as_deref(),
            error = row.error.as_deref(),
            "read"
        );
    }

    /// Logs a URL once it is durably settled, with its row.
    pub(crate) fn settled(&self, row: &PageRow) {
        trace!(
            url = &*self.text(&row.url),
            status = row.status,
            change = row.change.as_deref(),
            error = row.error.as_deref(),
            "settled"
        );
    }

    /// Returns a URL without secrets, even in its host name.
    fn url(&self, url: &CanonicalUrl) -> String {
        let mut url = redacted_url(&self.secrets, url);
        self.secrets.redact(&mut url);
        url
    }

    fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.secrets.redacted(text)
    }

    fn rule(&self, exclusion: Option<&NotFetchedReason>) -> Option<String> {
        let rule = exclusion?.rule.as_deref()?;
        Some(self.text(rule).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_stored_or_formatted_without_a_subscriber() {
        let mut hosts = HostSpans::default();
        let host = HostKey::parse("e.example").unwrap();
        assert!(hosts.of(&host).is_disabled());
        assert!(hosts.0.is_empty());
        assert!(!TraceEventEmitter::are_wanted());
        assert!(crawl_span(Path::new("c")).is_disabled());
        trace!(url = unreachable_text(), "found");
        debug_span!("exchange", url = unreachable_text());
    }

    /// Panics if a field is evaluated, since there is no subscriber.
    fn unreachable_text() -> String {
        unreachable!("a field is put into words")
    }
}
