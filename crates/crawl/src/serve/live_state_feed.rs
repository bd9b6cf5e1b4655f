//! Streams the state of the running crawl as server-sent events (HTML Living Standard, section
//! 9.2).

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive, KeepAliveStream};
use serde::Serialize;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_stream::wrappers::ReceiverStream;

use super::error_response::ErrorResponse;
use crate::control::client::{ControlClient, ControlClientError};
use crate::control::protocol::CrawlStateSnapshot;

/// Maximum clients of `crawl serve` that follow the crawl. Their number is limited, because their
/// connections aren't available for searches.
/// Beyond the limit: 503.
pub(crate) const MAX_FOLLOWERS: usize = 64;
/// How often to send a comment while the state doesn't change. Otherwise a proxy or the client
/// might consider the connection dead.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// How often to check whether a crawl has begun and whether there are still followers.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum events queued for one client.
const MAX_QUEUED_STATES: usize = 4;

/// The event stream of one client.
pub(crate) type LiveEventStream = KeepAliveStream<ReceiverStream<Result<Event, axum::Error>>>;

/// A snapshot of the running crawl, or the fact that no crawl is running.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct LiveStateMessage {
    /// Whether a crawl is running in the directory.
    pub(crate) running: bool,
    /// The state of the crawl. `None` if no crawl is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<CrawlStateSnapshot>,
}

impl LiveStateMessage {
    pub(crate) fn of(state: Option<CrawlStateSnapshot>) -> LiveStateMessage {
        LiveStateMessage {
            running: state.is_some(),
            state,
        }
    }
}

/// Follows the running crawl over one control connection, on behalf of all clients.
#[derive(Debug)]
pub(crate) struct LiveStateFeed {
    /// The latest snapshot. `None` while there are no followers, since the snapshot would become
    /// outdated.
    moment: watch::Sender<Option<Arc<LiveStateMessage>>>,
    wanted: Notify,
    seats: Arc<Semaphore>,
    stop: watch::Receiver<bool>,
}

impl LiveStateFeed {
    /// Starts a task that follows the crawl in `dir` while there are clients to inform.
    pub(crate) fn start(dir: PathBuf, stop: watch::Receiver<bool>) -> Arc<LiveStateFeed> {
        let live = Arc::new(LiveStateFeed {
            moment: watch::Sender::new(None),
            wanted: Notify::new(),
            seats: Arc::new(Semaphore::new(MAX_FOLLOWERS)),
            stop,
        });
        tokio::spawn(Arc::clone(&live).follow(dir));
        live
    }

    /// Returns the events for one client, until it disconnects or the server ends.
    pub(crate) fn events(&self) -> Result<Sse<LiveEventStream>, ErrorResponse> {
        let Ok(seat) = Arc::clone(&self.seats).try_acquire_owned() else {
            return Err(ErrorResponse::busy(format!(
                "{MAX_FOLLOWERS} clients are already following the crawl"
            ))
            .retry_after(10));
        };
        let mut moments = self.moment.subscribe();
        self.wanted.notify_one();
        let (sender, receiver) = mpsc::channel(MAX_QUEUED_STATES);
        let mut stop = self.stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = pass_on(&mut moments, &sender) => {}
                () = sender.closed() => {}
                _ = stop.wait_for(|stop| *stop) => {}
            }
            drop(seat);
        });
        let heartbeat = KeepAlive::new().interval(HEARTBEAT_INTERVAL);
        Ok(Sse::new(ReceiverStream::new(receiver)).keep_alive(heartbeat))
    }

    async fn follow(self: Arc<LiveStateFeed>, dir: PathBuf) {
        loop {
            self.wanted.notified().await;
            while self.is_wanted() {
                match ControlClient::connect(&dir).await {
                    Ok(Some(client)) => self.follow_one(client).await,
                    Ok(None) => {}
                    Err(why) => tracing::debug!(%why, "the crawl can't be asked"),
                }
                if self.is_wanted() {
                    self.publish(LiveStateMessage::of(None));
                    sleep(POLL_INTERVAL).await;
                }
            }
            self.moment.send_replace(None);
        }
    }

    /// Forwards the states of one run until the run ends or no client follows the crawl any more.
    async fn follow_one(&self, client: ControlClient) {
        let Ok(mut watch) = client.watch().await else {
            return;
        };
        let mut look = interval(POLL_INTERVAL);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let mut next = pin!(watch.next());
            let state = loop {
                tokio::select! {
                    state = &mut next => break state,
                    _ = look.tick() => if !self.is_wanted() {
                        return;
                    },
                }
            };
            match state {
                Ok(Some(state)) => self.publish(LiveStateMessage::of(Some(state))),
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn is_wanted(&self) -> bool {
        self.moment.receiver_count() > 0
    }

    fn publish(&self, moment: LiveStateMessage) {
        self.moment.send_if_modified(|current| {
            if current.as_deref() == Some(&moment) {
                return false;
            }
            *current = Some(Arc::new(moment));
            true
        });
    }
}

async fn pass_on(
    moments: &mut watch::Receiver<Option<Arc<LiveStateMessage>>>,
    sender: &mpsc::Sender<Result<Event, axum::Error>>,
) {
    loop {
        let moment = moments.borrow_and_update().clone();
        if let Some(moment) = moment
            && sender
                .send(Event::default().json_data(&*moment))
                .await
                .is_err()
        {
            return;
        }
        if moments.changed().await.is_err() {
            return;
        }
    }
}

/// Returns the current state of the crawl in `dir`.
pub(crate) async fn now(dir: &Path) -> Result<LiveStateMessage, ErrorResponse> {
    let state = match ControlClient::connect(dir).await.map_err(of_client)? {
        None => None,
        Some(mut client) => match client.state().await {
            // The crawl has just ended.
            Err(ControlClientError::HungUp { .. }) => None,
            state => Some(state.map_err(of_client)?),
        },
    };
    Ok(LiveStateMessage::of(state))
}

/// Converts an error from the control socket.
pub(super) fn of_client(why: ControlClientError) -> ErrorResponse {
    tracing::warn!(%why, "the crawl can't be asked");
    match why {
        ControlClientError::HungUp { .. } => {
            ErrorResponse::new(StatusCode::CONFLICT, "the crawl ended before it answered")
        }
        _ => ErrorResponse::busy("the running crawl doesn't answer"),
    }
}
