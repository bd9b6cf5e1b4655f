//! A client of the DevTools protocol: sends commands, and dispatches replies and events.
//!
//! Messages are JSON on one socket. Each message ends with a NUL byte. The events of a page, its
//! frames and its workers are sent to the receiver registered for the page's browser context.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};

/// Size of the buffer for reading from the socket, in bytes.
const READ_BYTES: usize = 1 << 16;

/// The reason why a command has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum DevtoolsCommandError {
    /// The browser has closed the connection.
    #[error("the browser ended")]
    Closed,
    /// The browser refused the command.
    #[error("{0}")]
    Refused(String),
}

/// An event of a page, or of one of its frames or workers.
#[derive(Debug)]
pub(crate) struct DevtoolsEvent {
    /// The id of the target's session. `None` for events of the browser itself.
    pub(crate) session: Option<String>,
    pub(crate) method: String,
    pub(crate) params: Value,
}

/// A connection to a browser. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct DevtoolsConnection {
    state: Arc<Mutex<State>>,
    /// Messages to send. The channel is unbounded but stays short, because the browser keeps
    /// reading and the number of requests per page is limited.
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
}

#[derive(Debug, Default)]
struct State {
    last_id: u64,
    is_closed: bool,
    replies: HashMap<u64, oneshot::Sender<Result<Value, DevtoolsCommandError>>>,
    /// Receivers of events, by browser context. The channels are unbounded, so that a slow page
    /// never blocks the reader.
    contexts: HashMap<String, mpsc::UnboundedSender<DevtoolsEvent>>,
    /// Receivers of events, by session.
    sessions: HashMap<String, mpsc::UnboundedSender<DevtoolsEvent>>,
}

/// The reply to a command that has been sent.
#[derive(Debug)]
pub(crate) struct PendingCommandReply(oneshot::Receiver<Result<Value, DevtoolsCommandError>>);

impl PendingCommandReply {
    /// Waits for the reply. Cancel safe.
    pub(crate) async fn get(&mut self) -> Result<Value, DevtoolsCommandError> {
        (&mut self.0)
            .await
            .unwrap_or(Err(DevtoolsCommandError::Closed))
    }
}

impl DevtoolsConnection {
    /// Starts to read and write messages on `socket`. A received message longer than `max_message`
    /// bytes closes the connection.
    pub(crate) fn new(socket: UnixStream, max_message: usize) -> DevtoolsConnection {
        let (read, write) = socket.into_split();
        let (outgoing, messages) = mpsc::unbounded_channel();
        let connection = DevtoolsConnection {
            state: Arc::default(),
            outgoing,
        };
        tokio::spawn(send_messages(write, messages));
        let reader = connection.clone();
        tokio::spawn(async move {
            reader.read_messages(read, max_message).await;
            reader.close();
        });
        connection
    }

    /// Sends a command to the target of `session`, or to the browser itself if `None`. The command
    /// is sent even if the returned reply is dropped.
    pub(crate) fn send(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> PendingCommandReply {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        if state.is_closed {
            return PendingCommandReply(receiver);
        }
        state.last_id += 1;
        let mut message = json!({"id": state.last_id, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let id = state.last_id;
        state.replies.insert(id, sender);
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        if self.outgoing.send(bytes).is_err() {
            state.replies.remove(&id);
        }
        PendingCommandReply(receiver)
    }

    /// Registers a receiver for the events of a browser context.
    pub(crate) fn events(&self, context: &str) -> mpsc::UnboundedReceiver<DevtoolsEvent> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut state = self.state();
        if !state.is_closed {
            state.contexts.insert(context.to_owned(), sender);
        }
        receiver
    }

    /// Stops passing on the events of a browser context, and closes the channel to their receiver.
    pub(crate) fn forget(&self, context: &str) {
        let mut state = self.state();
        if let Some(receiver) = state.contexts.remove(context) {
            state
                .sessions
                .retain(|_, sender| !sender.same_channel(&receiver));
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// Fails all commands that wait for a reply, and all later ones. Closes the channels of events.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.replies.clear();
        state.contexts.clear();
        state.sessions.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads messages until the connection ends or a message is not JSON or too long.
    async fn read_messages(&self, mut read: OwnedReadHalf, max_message: usize) {
        let mut message = Vec::new();
        let mut buffer = vec![0; READ_BYTES];
        while let Ok(count) = read.read(&mut buffer).await {
            let mut rest = &buffer[..count];
            if count == 0 {
                return;
            }
            while let Some(end) = rest.iter().position(|byte| *byte == 0) {
                message.extend_from_slice(&rest[..end]);
                rest = &rest[end + 1..];
                let Ok(value) = serde_json::from_slice(&message) else {
                    return;
                };
                self.take(value);
                message.clear();
            }
            message.extend_from_slice(rest);
            if message.len() > max_message {
                return;
            }
        }
    }

    fn take(&self, mut message: Value) {
        if let Some(id) = message["id"].as_u64() {
            let Some(sender) = self.state().replies.remove(&id) else {
                return;
            };
            let reply = match message.get("error") {
                None => Ok(message["result"].take()),
                Some(error) => Err(DevtoolsCommandError::Refused(
                    error["message"].as_str().unwrap_or("no reason").to_owned(),
                )),
            };
            // Ignore errors: they mean that the reply was dropped.
            let _ = sender.send(reply);
            return;
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let Some(method) = text(&message["method"]) else {
            return;
        };
        let event = DevtoolsEvent {
            session: text(&message["sessionId"]),
            method,
            params: message["params"].take(),
        };
        self.route(event);
    }

    /// Passes an event to its receiver. A new target gets the receiver of its parent target or of
    /// its browser context. A new target without a receiver is closed.
    fn route(&self, event: DevtoolsEvent) {
        let mut state = self.state();
        let parent = |state: &State| Some(state.sessions.get(event.session.as_ref()?)?.clone());
        let info = &event.params["targetInfo"];
        let receiver = match event.method.as_str() {
            "Target.attachedToTarget" => {
                let context = info["browserContextId"].as_str().unwrap_or_default();
                let receiver = parent(&state).or_else(|| state.contexts.get(context).cloned());
                let Some(session) = event.params["sessionId"].as_str() else {
                    return;
                };
                if let Some(receiver) = &receiver {
                    state.sessions.insert(session.to_owned(), receiver.clone());
                } else {
                    drop(state);
                    self.send(Some(session), "Runtime.runIfWaitingForDebugger", json!({}));
                    let target = json!({"targetId": info["targetId"]});
                    self.send(None, "Target.closeTarget", target);
                }
                receiver
            }
            "Target.detachedFromTarget" => {
                let session = event.params["sessionId"].as_str().unwrap_or_default();
                state.sessions.remove(session)
            }
            _ => parent(&state),
        };
        if let Some(receiver) = receiver {
            // Ignore errors: they mean that the page's rendering has ended.
            let _ = receiver.send(event);
        }
    }
}

/// Writes messages until the connection ends.
async fn send_messages(mut write: OwnedWriteHalf, mut messages: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(message) = messages.recv().await {
        if write.write_all(&message).await.is_err() {
            return;
        }
    }
}
