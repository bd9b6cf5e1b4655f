//! A page's way through the ring: leased, judged, fetched, sent on.

use std::sync::Arc;

use crawl_fetcher::{Exchange, Failure};
use crawl_frontier::{Exclusion, FrontierError, Lease, Reason};
use crawl_scheduler::{RobotsState, SignalKind, Tick};
use crawl_weburl::{HostKey, Origin};

use crate::item::{Effect, Item, Job, Judged, PageItem, Reading};
use crate::origins::Standing;
use crate::read::redirect_target;
use crate::request_log;
use crate::ring::Ring;
use crate::usage;

impl Ring {
    /// The next URL of an origin that may be asked for; those that may not are settled
    /// on the way.
    pub(crate) fn next_page(
        &mut self,
        now: Tick,
        origin: &Origin,
        out: &mut Vec<Effect>,
    ) -> Result<Option<Job>, FrontierError> {
        let standing = self.origins.standing(origin, &*self.frontier)?;
        let host = origin.host_key();
        let full = self.accounts.is_full(now, &host);
        while !full && self.unsettled < self.unsettled_max() {
            let Some(lease) = self.frontier.lease(origin)? else {
                break;
            };
            let refusal = match &standing {
                Standing::InForce(rules) => {
                    let path = lease.url.path_and_query();
                    let verdict = rules.robots.judge(path);
                    let against = match verdict.is_allowed() {
                        true => usage::refusal(rules, path, self.config.purpose),
                        false => Some(request_log::robots_exclusion(&verdict)),
                    };
                    let Some(against) = against else {
                        let judged = Judged {
                            robots: request_log::robots_verdict(&verdict),
                            rules: Arc::clone(rules),
                        };
                        let Some(lease) = self.unless_suspect(now, lease, &judged, out) else {
                            continue;
                        };
                        self.unsettled += 1;
                        self.pages_in_flight += 1;
                        self.leases_out += 1;
                        self.accounts.leased(&host);
                        self.scheduler
                            .waiting(now, origin, self.frontier.pending(origin));
                        return Ok(Some(Job::Page { lease, judged }));
                    };
                    against
                }
                Standing::Forbidden(status) => Exclusion {
                    rule: Some(format!("robots.txt answered {status}")),
                    ..Exclusion::of(Reason::Robots)
                },
                Standing::Refused(why) => Exclusion {
                    reason: Reason::Address,
                    rule: Some(why.clone()),
                    line: None,
                },
                Standing::Unknown => {
                    self.frontier.release(lease);
                    self.scheduler.robots(now, origin, RobotsState::Unknown);
                    return Ok(None);
                }
            };
            self.write(
                Item::Excluded {
                    lease,
                    exclusion: refusal,
                },
                out,
            );
        }
        let left = if full {
            0
        } else {
            self.frontier.pending(origin)
        };
        self.scheduler.waiting(now, origin, left);
        if left == 0 && self.accounts.leases(&host) == 0 {
            self.locks.free(&host);
        }
        Ok(None)
    }

    pub(crate) fn page_fetched(
        &mut self,
        now: Tick,
        lease: Lease,
        judged: Judged,
        result: Result<Exchange, Failure>,
        kind: SignalKind,
        out: &mut Vec<Effect>,
    ) {
        let host = lease.url.host_key();
        self.accounts.lease_ended(&host);
        if kind == SignalKind::NoConnection {
            // The host's matter: the URL waits at the head of its queue, no older.
            let origin = lease.origin.clone();
            self.frontier.release(lease);
            self.unsettled -= 1;
            self.leases_out -= 1;
            self.wake(now, &origin, self.frontier.pending(&origin));
            let state = self.host_state(&host);
            return self.write(Item::Host(state), out);
        }
        if self.is_tried_again(&lease, &host, kind, &result) {
            let host = Some(self.host_state(&host));
            // The lease stays counted in `unsettled` until the writer has it.
            out.push(Effect::Write(Item::Retry { lease, host }));
            return;
        }
        self.accounts.settled(&host);
        let host = self.host_state(&host);
        match result {
            Ok(exchange) => {
                if lease.is_seed
                    && let Some(Ok(target)) = redirect_target(&exchange)
                {
                    Arc::make_mut(&mut self.scope).add_seed(&target);
                }
                self.unsettled_octets += exchange.body.len() as u64;
                let scope = Arc::clone(&self.scope);
                out.push(Effect::Read(Box::new(Reading {
                    lease,
                    judged,
                    exchange,
                    scope,
                    host,
                })));
            }
            Err(failure) => {
                let item = PageItem::failed(lease, judged, &failure, host);
                out.push(Effect::Write(Item::Page(Box::new(item))));
            }
        }
    }

    /// Whether a URL goes behind the others of its origin, to be tried again.
    ///
    /// 429 and 503 are the host's matter, so none of its URLs is settled by them while the
    /// host answers nothing else. A URL that goes on with them while others are answered,
    /// or for as often as it names the time to come back, is settled like one that fails.
    pub(crate) fn is_tried_again(
        &mut self,
        lease: &Lease,
        host: &HostKey,
        kind: SignalKind,
        result: &Result<Exchange, Failure>,
    ) -> bool {
        let left = lease.attempt <= self.config.retries;
        match kind {
            SignalKind::AskedToWait { retry_after } => {
                let silent = !self.silent_hosts.insert(host.clone());
                left || (silent && retry_after.is_none())
            }
            SignalKind::Answered => {
                self.silent_hosts.remove(host);
                left && is_worth_a_retry(result)
            }
            SignalKind::UrlFailed | SignalKind::NoConnection => left && is_worth_a_retry(result),
        }
    }
}

/// Whether the same request may well succeed another time.
fn is_worth_a_retry(result: &Result<Exchange, Failure>) -> bool {
    match result {
        Ok(exchange) => matches!(exchange.status, 500 | 502 | 504),
        Err(failure) => failure.retry,
    }
}
