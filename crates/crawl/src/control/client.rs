//! Client of a running crawl's control socket.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use super::bounded_lines::{LineReadResult, next_line};
use super::protocol::{ControlCommand, ControlRefusal, ControlResponse, CrawlStateSnapshot};
use super::socket_path::{SOCKET, SocketPath};

/// Maximum length of an answer in bytes. Answers are far shorter: a state lists only a few dozen
/// URLs and hosts.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// Maximum wait for an answer. Long, because the effect of some commands is written to disk before
/// the answer is sent.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// A connection to a running crawl, for one command at a time.
#[derive(Debug)]
pub(crate) struct ControlClient {
    dir: PathBuf,
    from: BufReader<OwnedReadHalf>,
    to: OwnedWriteHalf,
}

/// A subscription to the states of a running crawl.
#[derive(Debug)]
pub(crate) struct StateSubscription {
    client: ControlClient,
}

/// Why a command to a running crawl failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum ControlClientError {
    /// The socket exists but can't be used.
    #[error("can't connect to the crawl in `{}`: {source}", dir.display())]
    Socket {
        /// The crawl's directory.
        dir: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The crawl ended or closed the connection.
    #[error("the crawl in `{}` closed the connection", dir.display())]
    HungUp {
        /// The crawl's directory.
        dir: PathBuf,
    },
    /// No answer arrived in time.
    #[error("no answer from the crawl in `{}` within {ANSWER_TIMEOUT:?}", dir.display())]
    Silent {
        /// The crawl's directory.
        dir: PathBuf,
    },
    /// The answer violates the protocol.
    #[error("unexpected answer from the crawl in `{}`: {why}", dir.display())]
    Garbled {
        /// The crawl's directory.
        dir: PathBuf,
        /// What is wrong with the answer.
        why: String,
    },
    /// The crawl refused the command.
    #[error("{}", .0.error)]
    Refused(ControlRefusal),
}

impl ControlClient {
    /// Connects to the crawl running in this directory. `None` if no crawl runs there.
    ///
    /// # Errors
    /// [`ControlClientError::Socket`] if the socket can't be used, for example because another user owns
    /// it.
    pub(crate) async fn connect(dir: &Path) -> Result<Option<ControlClient>, ControlClientError> {
        let failed = |source| ControlClientError::Socket {
            dir: dir.to_owned(),
            source,
        };
        let socket = match SocketPath::of(&dir.join("state"), SOCKET) {
            Ok(socket) => socket,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(why) => return Err(failed(why)),
        };
        match UnixStream::connect(socket.path()).await {
            Ok(stream) => {
                let (from, to) = stream.into_split();
                Ok(Some(ControlClient {
                    dir: dir.to_owned(),
                    from: BufReader::new(from),
                    to,
                }))
            }
            // A killed run left its socket, and no process listens on it.
            Err(why) if is_nobody(&why) => Ok(None),
            Err(why) => Err(failed(why)),
        }
    }

    /// Requests the state of the crawl.
    ///
    /// # Errors
    /// [`ControlClientError`] if no state arrives.
    pub(crate) async fn state(&mut self) -> Result<CrawlStateSnapshot, ControlClientError> {
        self.send_line(&ControlCommand::State {}).await?;
        let answer = self.answer_in_time().await?;
        self.state_of(answer)
    }

    /// Subscribes to the crawl's state, which is sent whenever it changes, at most once a second.
    ///
    /// # Errors
    /// [`ControlClientError`] if the subscription can't be sent, for example because the crawl has ended.
    pub(crate) async fn watch(mut self) -> Result<StateSubscription, ControlClientError> {
        self.send_line(&ControlCommand::Watch {}).await?;
        Ok(StateSubscription { client: self })
    }

    /// Sends a command and waits for it to finish. Returns notes for the user, if the command's
    /// effect isn't obvious.
    ///
    /// # Errors
    /// [`ControlClientError::Refused`] if the crawl refuses it. After any other error it is unknown
    /// whether the command took effect.
    pub(crate) async fn send(
        &mut self,
        command: &ControlCommand,
    ) -> Result<Vec<String>, ControlClientError> {
        self.send_line(command).await?;
        match self.answer_in_time().await? {
            ControlResponse::Done { told, .. } => Ok(told),
            ControlResponse::Refused(refused) => Err(ControlClientError::Refused(refused)),
            ControlResponse::State(_) => Err(self.garbled("a state in response to a command")),
        }
    }

    async fn send_line(&mut self, command: &ControlCommand) -> Result<(), ControlClientError> {
        let line = serde_json::to_string(command).map_err(|why| self.garbled(&why.to_string()))?;
        let sent = self.to.write_all(format!("{line}\n").as_bytes()).await;
        sent.map_err(|why| self.failed(why))
    }

    async fn answer_in_time(&mut self) -> Result<ControlResponse, ControlClientError> {
        match timeout(ANSWER_TIMEOUT, self.answer()).await {
            Ok(answer) => answer,
            Err(_) => Err(ControlClientError::Silent {
                dir: self.dir.clone(),
            }),
        }
    }

    async fn answer(&mut self) -> Result<ControlResponse, ControlClientError> {
        match next_line(&mut self.from, MAX_ANSWER_BYTES).await {
            Ok(LineReadResult::Whole(line)) => {
                serde_json::from_slice(&line).map_err(|why| self.garbled(&why.to_string()))
            }
            Ok(LineReadResult::TooLong) => Err(self.garbled("the line is too long")),
            Ok(LineReadResult::End) => Err(ControlClientError::HungUp {
                dir: self.dir.clone(),
            }),
            Err(why) => Err(self.failed(why)),
        }
    }

    fn state_of(&self, answer: ControlResponse) -> Result<CrawlStateSnapshot, ControlClientError> {
        match answer {
            ControlResponse::State(state) => Ok(*state),
            ControlResponse::Refused(refused) => Err(ControlClientError::Refused(refused)),
            ControlResponse::Done { .. } => {
                Err(self.garbled("no state in response to a request for it"))
            }
        }
    }

    fn failed(&self, source: io::Error) -> ControlClientError {
        let dir = self.dir.clone();
        match source.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                ControlClientError::HungUp { dir }
            }
            _ => ControlClientError::Socket { dir, source },
        }
    }

    fn garbled(&self, why: &str) -> ControlClientError {
        ControlClientError::Garbled {
            dir: self.dir.clone(),
            why: why.to_owned(),
        }
    }
}

impl StateSubscription {
    /// Waits for the next state. `None` if the crawl is over.
    ///
    /// # Errors
    /// [`ControlClientError`] if the message isn't a state.
    pub(crate) async fn next(&mut self) -> Result<Option<CrawlStateSnapshot>, ControlClientError> {
        match self.client.answer().await {
            Ok(answer) => self.client.state_of(answer).map(Some),
            Err(ControlClientError::HungUp { .. }) => Ok(None),
            Err(why) => Err(why),
        }
    }
}

fn is_nobody(why: &io::Error) -> bool {
    matches!(
        why.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::NotADirectory
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::UnixListener;

    use super::{ControlClient, ControlClientError};
    use crate::control::protocol::{ControlCommand, ControlRefusal};

    /// Starts a mock crawl that reads one line and answers with `answer`.
    fn crawl(dir: &Path, answer: &'static [u8]) {
        let state = dir.join("state");
        std::fs::create_dir_all(&state).unwrap();
        let listener = UnixListener::bind(state.join("control.sock")).unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut byte = [0];
            while byte != *b"\n" {
                stream.read_exact(&mut byte).await.unwrap();
            }
            stream.write_all(answer).await.unwrap();
        });
    }

    async fn reply(answer: &'static [u8]) -> Result<(), ControlClientError> {
        let dir = tempfile::tempdir().unwrap();
        crawl(dir.path(), answer);
        let client = ControlClient::connect(dir.path()).await.unwrap();
        client
            .unwrap()
            .send(&ControlCommand::Pause {})
            .await
            .map(drop)
    }

    #[tokio::test]
    async fn kinds_of_answers_are_distinguished() {
        assert!(reply(b"{\"ok\":true}\n").await.is_ok());
        let answer = reply(b"{\"error\":\"no\",\"hint\":\"later\"}\n").await;
        assert!(
            matches!(&answer, Err(ControlClientError::Refused(why)) if *why == ControlRefusal::new("no", "later")),
            "{answer:?}"
        );
        assert!(matches!(
            reply(b"").await,
            Err(ControlClientError::HungUp { .. })
        ));
        for garbage in [&b"\xff\xfe\n"[..], b"{}\n", b"[1]\n", b"\n"] {
            let answer = reply(garbage).await;
            assert!(
                matches!(answer, Err(ControlClientError::Garbled { .. })),
                "{answer:?}"
            );
        }
    }

    #[tokio::test]
    async fn without_a_listener_there_is_no_crawl() {
        let dir = tempfile::tempdir().unwrap();
        assert!(ControlClient::connect(dir.path()).await.unwrap().is_none());
        let state = dir.path().join("state");
        std::fs::create_dir(&state).unwrap();
        assert!(ControlClient::connect(dir.path()).await.unwrap().is_none());
        drop(std::os::unix::net::UnixListener::bind(state.join("control.sock")).unwrap());
        assert!(ControlClient::connect(dir.path()).await.unwrap().is_none());
    }
}
