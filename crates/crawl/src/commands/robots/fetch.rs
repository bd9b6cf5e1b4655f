//! Fetches the robots.txt files of hosts. A scheduler spaces the requests, as in a crawl.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use bytes::Bytes;
use crawl_fetcher::robots::RobotsFetchResult;
use crawl_fetcher::{
    Contact, Exchange, ExchangeFailure, FetchConfig, FetchRequest, Fetcher, MonotonicClock,
    Validators,
};
use crawl_policy::ProductToken;
use crawl_scheduler::{
    OutcomeKind, Permit, Politeness, PollOutcome, RequestOutcome, RequestPurpose, Scheduler,
};
use crawl_weburl::{CanonicalUrl, Origin};

use crate::error::{CommandError, no_threads};
use crate::settings::{
    HostNetworkClass, UserFolders, check_contact, no_contact, reach, user_agent, user_contact,
};

/// A fetched robots.txt, or the reason why it could not be fetched.
pub(super) struct FetchedRobots {
    /// The body of robots.txt. Empty if the host has no robots.txt, `None` if it is unreachable.
    pub(super) body: Option<Bytes>,
    /// The result of the request in words: a status or a failure.
    pub(super) answer: String,
}

/// Fetches the robots.txt of each origin of `urls` once.
pub(super) fn robots_of(
    urls: &[&CanonicalUrl],
    contact: Option<&str>,
) -> Result<BTreeMap<Origin, FetchedRobots>, CommandError> {
    let contact = match contact.filter(|contact| !contact.is_empty()) {
        Some(contact) => Some(contact.to_owned()),
        None => user_contact(&UserFolders::of_process())?,
    };
    let contact = check_contact(contact.as_deref().unwrap_or_default())?;
    let public = urls
        .iter()
        .find(|url| reach(url, &[]) == HostNetworkClass::Public);
    if let (Some(url), None) = (public, &contact) {
        return Err(no_contact(url));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| no_threads(&why))?;
    let mut fetcher_of_robots = RobotsFetcher::new(urls, contact.as_ref())?;
    runtime.block_on(async {
        let mut results = BTreeMap::new();
        for url in urls {
            if let Entry::Vacant(place) = results.entry(url.origin()) {
                let fetched = fetcher_of_robots.fetch(place.key()).await?;
                place.insert(fetched);
            }
        }
        Ok(results)
    })
}

/// Fetches one URL once a scheduler permits it. Follows no redirects.
///
/// # Errors
/// The outer error: the request can't be sent. The inner error: the request failed.
pub(crate) fn fetch_once(
    url: CanonicalUrl,
    config: FetchConfig,
) -> Result<Result<Exchange, ExchangeFailure>, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| no_threads(&why))?;
    let mut fetcher = RobotsFetcher::with_config(config)?;
    runtime.block_on(async {
        let now = fetcher.clock.now();
        let purpose = RequestPurpose::Hop { of: url.origin() };
        fetcher
            .scheduler
            .queue_request(now, &url.host_key(), purpose);
        let Some(permit) = fetcher.permit().await else {
            return Err(CommandError::disk(format!("no permit to fetch {url}")));
        };
        let request = FetchRequest::robots(url, Validators::default());
        Ok(fetcher.fetcher.fetch(permit, request).await.1)
    })
}

struct RobotsFetcher {
    clock: MonotonicClock,
    fetcher: Fetcher,
    scheduler: Scheduler,
}

impl RobotsFetcher {
    fn new(
        urls: &[&CanonicalUrl],
        contact: Option<&Contact>,
    ) -> Result<RobotsFetcher, CommandError> {
        // Send the requests under the name `crawl`, even if the rules are judged for another agent.
        let ourselves = ProductToken::leading("crawl");
        RobotsFetcher::with_config(FetchConfig {
            from: contact.and_then(Contact::mail).map(str::to_owned),
            typed: urls.iter().copied().cloned().collect(),
            ..FetchConfig::new(user_agent(&ourselves, contact))
        })
    }

    fn with_config(config: FetchConfig) -> Result<RobotsFetcher, CommandError> {
        let clock = MonotonicClock::start();
        let fetcher = Fetcher::new(config, clock)
            .map_err(|why| CommandError::usage(format!("can't fetch: {why}")))?;
        Ok(RobotsFetcher {
            clock,
            fetcher,
            scheduler: Scheduler::new(Politeness::default(), 0),
        })
    }

    /// Fetches an origin's robots.txt, following redirects per RFC 9309 section 2.3.1.2.
    async fn fetch(&mut self, origin: &Origin) -> Result<FetchedRobots, CommandError> {
        let mut url = origin.robots_url();
        let mut purpose = RequestPurpose::Robots {
            origin: origin.clone(),
        };
        let mut hops = 0;
        loop {
            let now = self.clock.now();
            self.scheduler.queue_request(now, &url.host_key(), purpose);
            let Some(permit) = self.permit().await else {
                return Err(CommandError::disk(format!("no permit to fetch {url}")));
            };
            let request = FetchRequest::robots(url, Validators::default());
            let (spent, result) = self.fetcher.fetch(permit, request.clone()).await;
            let now = self.clock.now();
            let signal = match &result {
                Ok(exchange) => exchange.signal(),
                Err(failure) => RequestOutcome {
                    end: failure.ended,
                    response_time: failure.ended.since(failure.started),
                    address: None,
                    kind: match failure.signal_kind() {
                        OutcomeKind::NoConnection => OutcomeKind::NoConnection,
                        _ => OutcomeKind::UrlFailed,
                    },
                    rate_limit: None,
                    url: None,
                },
            };
            // Ignore the wait that `done` returns: `permit` already waits until the scheduler
            // allows the next request.
            let _ = self.scheduler.done(now, spent, signal);
            match RobotsFetchResult::of(&request, &result, hops) {
                RobotsFetchResult::Redirect { to, .. } => {
                    hops += 1;
                    url = to;
                    purpose = RequestPurpose::Hop { of: origin.clone() };
                }
                answer => return Ok(fetched(answer)),
            }
        }
    }

    async fn permit(&mut self) -> Option<Permit> {
        loop {
            let now = self.clock.now();
            match self.scheduler.poll(now) {
                PollOutcome::Issue(permit) => return Some(permit),
                PollOutcome::SleepUntil(tick) => tokio::time::sleep(tick.since(now)).await,
                PollOutcome::Idle => return None,
            }
        }
    }
}

fn fetched(answer: RobotsFetchResult) -> FetchedRobots {
    let (body, answer) = match answer {
        RobotsFetchResult::Rules { body, status } => (Some(body), format!("answered {status}")),
        RobotsFetchResult::None { status } => (
            Some(Bytes::new()),
            format!("answered {status}, so there are no rules"),
        ),
        RobotsFetchResult::Unreachable { why, status, .. } => match status {
            Some(status) => (None, format!("answered {status}, {why}")),
            None => (None, why),
        },
        // These answers can't occur: redirects were followed, and no validators were sent that
        // could lead to a 304.
        RobotsFetchResult::NotModified | RobotsFetchResult::Redirect { .. } => {
            (None, "unexpected answer".to_owned())
        }
    };
    FetchedRobots { body, answer }
}
