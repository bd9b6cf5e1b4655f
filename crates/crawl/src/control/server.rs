//! Server of the control socket, inside the crawl.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::bounded_lines::{LineReadResult, next_line};
use super::handler::ControlHandler;
use super::protocol::{
    ControlCommand, ControlRefusal, ControlResponse, CrawlStateSnapshot, MAX_COMMAND_BYTES,
};
use super::socket_path::{SOCKET, SocketPath};

/// Maximum connections to the control socket.
/// Beyond the limit: refused.
const MAX_CLIENTS: usize = 64;

/// How long a client of the control socket may take to read a message.
/// Beyond the limit: disconnected.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// Minimum time between two states sent to a watcher.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// Pause after a failure to accept a connection, which usually means that the process has run out
/// of file descriptors.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Temporary folder in which the socket is created before it is moved to its final name.
const NEW_SOCKET: &str = "control.new";

/// A listening control socket. Dropping it removes the socket file.
#[derive(Debug)]
pub(crate) struct ControlServer {
    listening: JoinHandle<()>,
    path: PathBuf,
    /// Device and inode of the socket file.
    file: (u64, u64),
}

impl ControlServer {
    /// Listens in the crawl's directory, which this process has locked. On failure returns `None`
    /// and logs the reason, and the crawl continues without a socket.
    pub(crate) fn start(dir: &Path, handler: Arc<ControlHandler>) -> Option<ControlServer> {
        let state = dir.join("state");
        let path = state.join(SOCKET);
        let bound = bind(&state).and_then(|listener| {
            let file = fs::metadata(&path)?;
            Ok((listener, (file.dev(), file.ino())))
        });
        match bound {
            Ok((listener, file)) => {
                tracing::debug!(path = %path.display(), "takes commands");
                let listening = tokio::spawn(listen(listener, handler));
                Some(ControlServer {
                    listening,
                    path,
                    file,
                })
            }
            Err(why) => {
                tracing::warn!(path = %path.display(), %why, "the crawl can't be controlled");
                None
            }
        }
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        self.listening.abort();
        // Remove only our own socket file: another run may have replaced it.
        let is_ours =
            fs::metadata(&self.path).is_ok_and(|file| (file.dev(), file.ino()) == self.file);
        if is_ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Creates the socket in a private folder, so that its mode is set before anyone can reach it.
fn bind(state: &Path) -> io::Result<UnixListener> {
    let socket = SocketPath::of(state, SOCKET)?;
    if std::os::unix::net::UnixStream::connect(socket.path()).is_ok() {
        let reason = "another process is listening there";
        return Err(io::Error::new(io::ErrorKind::AddrInUse, reason));
    }
    let nest = state.join(NEW_SOCKET);
    // A killed run may have left its temporary folder, so remove it.
    match fs::remove_dir_all(&nest) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
        _ => DirBuilder::new().mode(0o700).create(&nest)?,
    }
    let place = SocketPath::of(&nest, SOCKET)?;
    let listener = UnixListener::bind(place.path())?;
    fs::set_permissions(nest.join(SOCKET), Permissions::from_mode(0o600))?;
    fs::rename(nest.join(SOCKET), state.join(SOCKET))?;
    fs::remove_dir(&nest)?;
    Ok(listener)
}

async fn listen(listener: UnixListener, handler: Arc<ControlHandler>) {
    let room = Arc::new(Semaphore::new(MAX_CLIENTS));
    // When this task ends, dropping the set aborts the tasks of all clients.
    let mut clients = JoinSet::new();
    loop {
        while clients.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_RETRY_INTERVAL).await;
            continue;
        };
        match Arc::clone(&room).try_acquire_owned() {
            Ok(place) => {
                let client = ControlConnection::of(stream, Arc::clone(&handler));
                clients.spawn(async move {
                    // Ignore errors, because a client may disconnect at any time.
                    let _ = client.serve().await;
                    drop(place);
                });
            }
            Err(_) => turn_away(stream),
        }
    }
}

/// Refuses a connection with one line and closes it. Writing doesn't block, because the send buffer
/// of a new connection is empty and has room for the line.
fn turn_away(stream: UnixStream) {
    let hint = "close one, or try again later";
    let refused = ControlRefusal::new(
        format!("too many connections: {MAX_CLIENTS} are open"),
        hint,
    );
    if let (Ok(line), Ok(mut stream)) = (line_of(&refused), stream.into_std()) {
        let _ = stream.write_all(&line);
    }
}

/// A client's connection.
struct ControlConnection {
    from: BufReader<OwnedReadHalf>,
    to: OwnedWriteHalf,
    handler: Arc<ControlHandler>,
    /// How long to wait for the client to read a message.
    patience: Duration,
}

impl ControlConnection {
    fn of(stream: UnixStream, handler: Arc<ControlHandler>) -> ControlConnection {
        let (from, to) = stream.into_split();
        ControlConnection {
            from: BufReader::new(from),
            to,
            handler,
            patience: SEND_TIMEOUT,
        }
    }

    /// Answers each line from the client, until the client disconnects.
    async fn serve(mut self) -> io::Result<()> {
        loop {
            let line = match next_line(&mut self.from, MAX_COMMAND_BYTES).await? {
                LineReadResult::Whole(line) => line,
                LineReadResult::TooLong => {
                    let problem = format!("the line is longer than {MAX_COMMAND_BYTES} bytes");
                    let refused = ControlRefusal::new(problem, "send one command per line");
                    return self.send(&refused).await;
                }
                LineReadResult::End => return Ok(()),
            };
            self.handler.keep_pace().await;
            let done = match ControlCommand::read(&line) {
                Ok(ControlCommand::Watch {}) => return self.watch().await,
                Ok(ControlCommand::State {}) => {
                    let state = self.handler.state().await;
                    self.send(&state).await?;
                    continue;
                }
                Ok(command) => self.handler.carry_out(command).await,
                Err(refused) => Err(refused),
            };
            match done {
                Ok(told) => self.send(&ControlResponse::Done { ok: true, told }).await?,
                Err(refused) => self.send(&refused).await?,
            }
        }
    }

    async fn watch(mut self) -> io::Result<()> {
        let mut ticks = interval(WATCH_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last: Option<CrawlStateSnapshot> = None;
        let mut ignored = [0; 256];
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    let state = self.handler.state().await;
                    if last.as_ref().is_none_or(|last| last.is_news(&state)) {
                        self.send(&state).await?;
                        last = Some(state);
                    }
                }
                count = self.from.read(&mut ignored) => if count? == 0 {
                    return Ok(());
                }
            }
        }
    }

    async fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let line = line_of(message)?;
        match timeout(self.patience, self.to.write_all(&line)).await {
            Ok(sent) => sent,
            Err(slow) => Err(slow.into()),
        }
    }
}

fn line_of(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use crawl_engine::{PostedCommand, ProgressSnapshot};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::UnixStream;
    use tokio::sync::{mpsc, watch};

    use super::{ControlConnection, ControlServer, MAX_CLIENTS};
    use crate::control::handler::ControlHandler;
    use crate::control::protocol::MAX_COMMAND_BYTES;

    /// Starts a server whose crawl has already ended: it answers `state` and refuses everything
    /// else.
    fn server(dir: &Path) -> Option<ControlServer> {
        let (commander, _): (_, mpsc::Receiver<PostedCommand>) = crawl_engine::commands();
        let (_, progress) = watch::channel(ProgressSnapshot::default());
        let handler = ControlHandler::new(dir.to_owned());
        handler.open(commander, progress);
        std::fs::create_dir_all(dir.join("state")).unwrap();
        ControlServer::start(dir, Arc::new(handler))
    }

    async fn connect(dir: &Path) -> UnixStream {
        let path = dir.join("state/control.sock");
        UnixStream::connect(path).await.unwrap()
    }

    /// Sends `bytes` and returns the whole answer.
    async fn answers(dir: &Path, bytes: &[u8]) -> String {
        let mut stream = connect(dir).await;
        // The server may close the connection before it has read everything.
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text).await;
        text
    }

    #[tokio::test]
    async fn any_input_is_answered_with_a_message() {
        let dir = tempfile::tempdir().unwrap();
        let _server = server(dir.path()).unwrap();
        let garbage = b"\xff\xfe\x00\n{}\n\n{\"do\":\"fly\"}\n{\"do\":\"pause\"";
        let text = answers(dir.path(), garbage).await;
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        for line in lines {
            assert!(line.starts_with("{\"error\":\"not a command: "), "{line}");
        }
        let ending = answers(dir.path(), b"{\"do\":\"pause\"}\n").await;
        assert!(
            ending.starts_with("{\"error\":\"the crawl is ending\""),
            "{ending}"
        );
        let state = answers(dir.path(), b"{\"do\":\"state\"}\n").await;
        assert!(state.starts_with("{\"phase\":\"crawling\""), "{state}");
        let mut long = vec![b' '; MAX_COMMAND_BYTES];
        long.extend(b"{\"do\":\"state\"}\n");
        let long = answers(dir.path(), &long).await;
        assert!(
            long.starts_with("{\"error\":\"the line is longer than 65536 bytes\""),
            "{long}"
        );
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_is_disconnected() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut client =
            ControlConnection::of(ours, Arc::new(ControlHandler::new(dir.path().to_owned())));
        client.patience = Duration::from_millis(1);
        let more_than_fits = "x".repeat(16 << 20);
        let slow = client.send(&more_than_fits).await.unwrap_err();
        assert_eq!(slow.kind(), std::io::ErrorKind::TimedOut);
        drop(theirs);
    }

    #[tokio::test]
    async fn one_client_too_many_is_refused_and_the_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let _server = server(dir.path()).unwrap();
        let mut clients = Vec::new();
        for _ in 0..100 {
            clients.push(connect(dir.path()).await);
        }
        // The system accepts connections in order, so the last ones are over the limit.
        for late in &mut clients[MAX_CLIENTS..] {
            let mut text = String::new();
            late.read_to_string(&mut text).await.unwrap();
            assert!(
                text.starts_with("{\"error\":\"too many connections: 64"),
                "{text}"
            );
        }
        for client in &mut clients[..MAX_CLIENTS] {
            client.write_all(b"{\"do\":\"state\"}\n").await.unwrap();
            let mut byte = [0];
            client.read_exact(&mut byte).await.unwrap();
            assert_eq!(byte, *b"{");
        }
    }

    #[tokio::test]
    async fn the_socket_is_private_and_is_removed_with_the_crawl() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/control.sock");
        let first = server(dir.path()).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        // A live socket is not replaced.
        assert!(server(dir.path()).is_none());
        drop(first);
        assert!(!path.exists());
        // A stale socket is replaced.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        std::fs::create_dir(dir.path().join("state/control.new")).unwrap();
        let second = server(dir.path()).unwrap();
        drop(connect(dir.path()).await);
        // A file that replaced the socket is not removed.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        drop(second);
        assert!(path.exists());
    }
}
