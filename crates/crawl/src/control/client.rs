//! The other end of the control socket: asks a crawl that runs.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use super::lines::{Line, next_line};
use super::protocol::{Answer, Command, Refused, State};
use super::socket_path::{SOCKET, SocketPath};

/// The longest line that is read, in bytes: a state names at most a few score URLs and hosts.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// The longest wait for an answer. A command that is to be durable waits for the disk.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// A connection to a running crawl: commands go over it one after the other.
#[derive(Debug)]
pub(crate) struct Client {
    dir: PathBuf,
    from: BufReader<OwnedReadHalf>,
    to: OwnedWriteHalf,
}

/// States as they come.
#[derive(Debug)]
pub(crate) struct Watch {
    client: Client,
}

/// Why a running crawl could not be asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum ClientError {
    /// The socket is there and can't be used.
    #[error("can't ask the crawl in `{}`: {source}", dir.display())]
    Socket {
        /// The crawl's directory.
        dir: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The crawl ended, or hung up.
    #[error("the crawl in `{}` hung up", dir.display())]
    HungUp {
        /// The crawl's directory.
        dir: PathBuf,
    },
    /// No answer came in time.
    #[error("the crawl in `{}` gave no answer within {ANSWER_TIMEOUT:?}", dir.display())]
    Silent {
        /// The crawl's directory.
        dir: PathBuf,
    },
    /// The answer is none of this protocol.
    #[error("the crawl in `{}` answered what is no answer: {why}", dir.display())]
    Garbled {
        /// The crawl's directory.
        dir: PathBuf,
        /// The reason why it is none.
        why: String,
    },
    /// The crawl refused the command.
    #[error("{}", .0.error)]
    Refused(Refused),
}

impl Client {
    /// Connects to the crawl that runs in this directory; none where none runs there.
    ///
    /// # Errors
    /// [`ClientError::Socket`] where there is a socket that can't be used, as another user's.
    pub(crate) async fn connect(dir: &Path) -> Result<Option<Client>, ClientError> {
        let failed = |source| ClientError::Socket {
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
                Ok(Some(Client {
                    dir: dir.to_owned(),
                    from: BufReader::new(from),
                    to,
                }))
            }
            // A run that was killed leaves a socket where nobody listens.
            Err(why) if is_nobody(&why) => Ok(None),
            Err(why) => Err(failed(why)),
        }
    }

    /// The state of the crawl.
    ///
    /// # Errors
    /// [`ClientError`] where no state came.
    pub(crate) async fn state(&mut self) -> Result<State, ClientError> {
        self.tell(&Command::State {}).await?;
        let answer = self.answer_in_time().await?;
        self.state_of(answer)
    }

    /// The state of the crawl, at most once a second, whenever that changed.
    ///
    /// # Errors
    /// [`ClientError`] where the crawl is gone.
    pub(crate) async fn watch(mut self) -> Result<Watch, ClientError> {
        self.tell(&Command::Watch {}).await?;
        Ok(Watch { client: self })
    }

    /// Has a command carried out; lines that say what it did, where that is not plain.
    ///
    /// # Errors
    /// [`ClientError::Refused`]; any other where it is not known whether it was.
    pub(crate) async fn send(&mut self, command: &Command) -> Result<Vec<String>, ClientError> {
        self.tell(command).await?;
        match self.answer_in_time().await? {
            Answer::Done { told, .. } => Ok(told),
            Answer::Refused(refused) => Err(ClientError::Refused(refused)),
            Answer::State(_) => Err(self.garbled("a state, where a command was sent")),
        }
    }

    async fn tell(&mut self, command: &Command) -> Result<(), ClientError> {
        let line = serde_json::to_string(command).map_err(|why| self.garbled(&why.to_string()))?;
        let sent = self.to.write_all(format!("{line}\n").as_bytes()).await;
        sent.map_err(|why| self.failed(why))
    }

    async fn answer_in_time(&mut self) -> Result<Answer, ClientError> {
        match timeout(ANSWER_TIMEOUT, self.answer()).await {
            Ok(answer) => answer,
            Err(_) => Err(ClientError::Silent {
                dir: self.dir.clone(),
            }),
        }
    }

    async fn answer(&mut self) -> Result<Answer, ClientError> {
        match next_line(&mut self.from, MAX_ANSWER_BYTES).await {
            Ok(Line::Whole(line)) => {
                serde_json::from_slice(&line).map_err(|why| self.garbled(&why.to_string()))
            }
            Ok(Line::TooLong) => Err(self.garbled("a line without end")),
            Ok(Line::End) => Err(ClientError::HungUp {
                dir: self.dir.clone(),
            }),
            Err(why) => Err(self.failed(why)),
        }
    }

    fn state_of(&self, answer: Answer) -> Result<State, ClientError> {
        match answer {
            Answer::State(state) => Ok(*state),
            Answer::Refused(refused) => Err(ClientError::Refused(refused)),
            Answer::Done { .. } => Err(self.garbled("no state, where one was asked for")),
        }
    }

    fn failed(&self, source: io::Error) -> ClientError {
        let dir = self.dir.clone();
        match source.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                ClientError::HungUp { dir }
            }
            _ => ClientError::Socket { dir, source },
        }
    }

    fn garbled(&self, why: &str) -> ClientError {
        ClientError::Garbled {
            dir: self.dir.clone(),
            why: why.to_owned(),
        }
    }
}

impl Watch {
    /// The next state; none where the crawl is over.
    ///
    /// # Errors
    /// [`ClientError`] where what came is no state.
    pub(crate) async fn next(&mut self) -> Result<Option<State>, ClientError> {
        match self.client.answer().await {
            Ok(answer) => self.client.state_of(answer).map(Some),
            Err(ClientError::HungUp { .. }) => Ok(None),
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

    use super::{Client, ClientError};
    use crate::control::protocol::{Command, Refused};

    /// A crawl that reads one line and answers with these bytes.
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

    async fn reply(answer: &'static [u8]) -> Result<(), ClientError> {
        let dir = tempfile::tempdir().unwrap();
        crawl(dir.path(), answer);
        let client = Client::connect(dir.path()).await.unwrap();
        client.unwrap().send(&Command::Pause {}).await.map(drop)
    }

    #[tokio::test]
    async fn answers_are_told_apart() {
        assert!(reply(b"{\"ok\":true}\n").await.is_ok());
        let answer = reply(b"{\"error\":\"no\",\"hint\":\"later\"}\n").await;
        assert!(
            matches!(&answer, Err(ClientError::Refused(why)) if *why == Refused::new("no", "later")),
            "{answer:?}"
        );
        assert!(matches!(reply(b"").await, Err(ClientError::HungUp { .. })));
        for garbage in [&b"\xff\xfe\n"[..], b"{}\n", b"[1]\n", b"\n"] {
            let answer = reply(garbage).await;
            assert!(
                matches!(answer, Err(ClientError::Garbled { .. })),
                "{answer:?}"
            );
        }
    }

    #[tokio::test]
    async fn where_nobody_listens_no_crawl_runs() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Client::connect(dir.path()).await.unwrap().is_none());
        let state = dir.path().join("state");
        std::fs::create_dir(&state).unwrap();
        assert!(Client::connect(dir.path()).await.unwrap().is_none());
        drop(std::os::unix::net::UnixListener::bind(state.join("control.sock")).unwrap());
        assert!(Client::connect(dir.path()).await.unwrap().is_none());
    }
}
