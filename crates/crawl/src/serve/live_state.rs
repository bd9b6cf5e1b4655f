//! The state of the crawl that runs, as it changes: server-sent events (HTML Living Standard,
//! section 9.2).

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

use super::problem::Problem;
use crate::control::client::{Client, ClientError};
use crate::control::protocol::State;

/// Clients that follow the crawl at once; the connections they hold are no use to searches.
pub(crate) const MAX_FOLLOWERS: usize = 64;
/// The interval at which a client is sent something where nothing happens, so that neither a proxy
/// nor the client takes the connection for dead.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// The interval of the look whether a crawl has begun, or whether anybody still follows.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Events on their way to one client.
const MAX_QUEUED_STATES: usize = 4;

/// The events for one client.
pub(crate) type Events = KeepAliveStream<ReceiverStream<Result<Event, axum::Error>>>;

/// A moment of a crawl that runs, or the word that none runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Moment {
    /// True if a crawl runs in the directory.
    pub(crate) running: bool,
    /// The state of the crawl.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<State>,
}

impl Moment {
    pub(crate) fn of(state: Option<State>) -> Moment {
        Moment {
            running: state.is_some(),
            state,
        }
    }
}

/// The one that follows the crawl for all who want to know.
#[derive(Debug)]
pub(crate) struct Live {
    /// None while nobody follows: what was known then may be over.
    moment: watch::Sender<Option<Arc<Moment>>>,
    wanted: Notify,
    seats: Arc<Semaphore>,
    stop: watch::Receiver<bool>,
}

impl Live {
    /// Begins to follow the crawl in `dir` whenever somebody wants to know.
    pub(crate) fn start(dir: PathBuf, stop: watch::Receiver<bool>) -> Arc<Live> {
        let live = Arc::new(Live {
            moment: watch::Sender::new(None),
            wanted: Notify::new(),
            seats: Arc::new(Semaphore::new(MAX_FOLLOWERS)),
            stop,
        });
        tokio::spawn(Arc::clone(&live).follow(dir));
        live
    }

    /// The events for one client, until it goes or the server ends.
    pub(crate) fn events(&self) -> Result<Sse<Events>, Problem> {
        let Ok(seat) = Arc::clone(&self.seats).try_acquire_owned() else {
            return Err(
                Problem::busy(format!("{MAX_FOLLOWERS} clients follow the crawl already"))
                    .retry_after(10),
            );
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

    async fn follow(self: Arc<Live>, dir: PathBuf) {
        loop {
            self.wanted.notified().await;
            while self.is_wanted() {
                match Client::connect(&dir).await {
                    Ok(Some(client)) => self.follow_one(client).await,
                    Ok(None) => {}
                    Err(why) => tracing::debug!(%why, "the crawl can't be asked"),
                }
                if self.is_wanted() {
                    self.tell(Moment::of(None));
                    sleep(POLL_INTERVAL).await;
                }
            }
            self.moment.send_replace(None);
        }
    }

    /// Passes on the states of one run until it ends or nobody follows.
    async fn follow_one(&self, client: Client) {
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
                Ok(Some(state)) => self.tell(Moment::of(Some(state))),
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn is_wanted(&self) -> bool {
        self.moment.receiver_count() > 0
    }

    fn tell(&self, moment: Moment) {
        self.moment.send_if_modified(|known| {
            if known.as_deref() == Some(&moment) {
                return false;
            }
            *known = Some(Arc::new(moment));
            true
        });
    }
}

async fn pass_on(
    moments: &mut watch::Receiver<Option<Arc<Moment>>>,
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

/// The state of the crawl in `dir` now.
pub(crate) async fn now(dir: &Path) -> Result<Moment, Problem> {
    let state = match Client::connect(dir).await.map_err(unasked)? {
        None => None,
        Some(mut client) => match client.state().await {
            // It ended just now.
            Err(ClientError::HungUp { .. }) => None,
            state => Some(state.map_err(unasked)?),
        },
    };
    Ok(Moment::of(state))
}

/// The problem where the crawl that runs could not be asked.
pub(super) fn unasked(why: ClientError) -> Problem {
    tracing::warn!(%why, "the crawl can't be asked");
    match why {
        ClientError::HungUp { .. } => {
            Problem::new(StatusCode::CONFLICT, "the crawl ended before it answered")
        }
        _ => Problem::busy("the crawl that runs gives no answer"),
    }
}
