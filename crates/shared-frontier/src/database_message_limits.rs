//! Limits on the messages that a database server may send. Without these limits, the driver would
//! allocate as much memory as a message claims to need, and would send the password whenever the
//! server requests it.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Maximum length of a message from PostgreSQL, in bytes. The longest legitimate message is the
/// reply with one row.
/// Beyond the limit: the connection is closed.
const MAX_MESSAGE_BYTES: u32 = 64 << 20;

/// The number of bytes of a message that are inspected: its kind, its length, and the
/// authentication method that it requests.
const HEAD_BYTES: usize = 9;
/// The kind of a message that requests authentication (PostgreSQL, "Message Formats").
const AUTHENTICATION: u8 = b'R';
/// The authentication method "password in clear text" (`AuthenticationCleartextPassword`).
const CLEARTEXT_PASSWORD: u32 = 3;

type Encrypting = MakeRustlsConnect;
type EncryptedSocket = <Encrypting as MakeTlsConnect<Socket>>::Stream;
type EncryptingConnect = <Encrypting as MakeTlsConnect<Socket>>::TlsConnect;
type EncryptError = Box<dyn std::error::Error + Send + Sync>;

/// Creates [`MessageCheckedStream`]s, which check incoming messages. The streams are encrypted
/// unless `tls` is `None`.
#[derive(Clone)]
pub(crate) struct MakeMessageCheckedConnect {
    pub(crate) tls: Option<Encrypting>,
    /// Whether the database server may request the password in clear text over a connection without
    /// TLS.
    pub(crate) allows_cleartext: bool,
}

impl MakeTlsConnect<Socket> for MakeMessageCheckedConnect {
    type Stream = MessageCheckedStream;
    type TlsConnect = GuardedConnector;
    type Error = EncryptError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<GuardedConnector, EncryptError> {
        let tls = match &mut self.tls {
            Some(tls) => {
                let made = MakeTlsConnect::<Socket>::make_tls_connect(tls, domain);
                Some(made.map_err(|why| EncryptError::from(why.to_string()))?)
            }
            None => None,
        };
        Ok(GuardedConnector {
            guard: MessageGuard::new(self.allows_cleartext || tls.is_some()),
            tls,
        })
    }
}

/// Creates one [`MessageCheckedStream`].
pub(crate) struct GuardedConnector {
    tls: Option<EncryptingConnect>,
    guard: MessageGuard,
}

impl TlsConnect<Socket> for GuardedConnector {
    type Stream = MessageCheckedStream;
    type Error = EncryptError;
    type Future = Pin<Box<dyn Future<Output = Result<MessageCheckedStream, EncryptError>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        let GuardedConnector { tls, guard } = self;
        Box::pin(async move {
            let inner = match tls {
                Some(tls) => MaybeEncrypted::Encrypted(Box::new(tls.connect(socket).await?)),
                None => MaybeEncrypted::Plain(socket),
            };
            Ok(MessageCheckedStream { inner, guard })
        })
    }
}

enum MaybeEncrypted {
    Plain(Socket),
    Encrypted(Box<EncryptedSocket>),
}

/// A connection whose incoming messages are checked.
pub(crate) struct MessageCheckedStream {
    inner: MaybeEncrypted,
    guard: MessageGuard,
}

impl TlsStream for MessageCheckedStream {
    fn channel_binding(&self) -> ChannelBinding {
        match &self.inner {
            MaybeEncrypted::Plain(_) => ChannelBinding::none(),
            MaybeEncrypted::Encrypted(stream) => stream.channel_binding(),
        }
    }
}

impl AsyncRead for MessageCheckedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(match &mut self.inner {
            MaybeEncrypted::Plain(socket) => Pin::new(socket).poll_read(cx, buf),
            MaybeEncrypted::Encrypted(stream) => Pin::new(stream).poll_read(cx, buf),
        })?;
        let checked = self.guard.check(&buf.filled()[before..]);
        if checked.is_err() {
            buf.set_filled(before);
        }
        Poll::Ready(checked)
    }
}

impl AsyncWrite for MessageCheckedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.inner {
            MaybeEncrypted::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            MaybeEncrypted::Encrypted(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            MaybeEncrypted::Plain(socket) => Pin::new(socket).poll_flush(cx),
            MaybeEncrypted::Encrypted(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            MaybeEncrypted::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            MaybeEncrypted::Encrypted(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// Checks the headers of messages from PostgreSQL while the bytes of a stream pass.
#[derive(Default)]
pub(crate) struct MessageGuard {
    allows_cleartext: bool,
    head: [u8; HEAD_BYTES],
    /// The number of header bytes received so far.
    filled: usize,
    /// The number of remaining bytes of the current message after its header.
    rest: usize,
}

impl MessageGuard {
    /// Creates a guard for a stream from its beginning.
    pub(crate) fn new(allows_cleartext: bool) -> MessageGuard {
        MessageGuard {
            allows_cleartext,
            ..MessageGuard::default()
        }
    }

    /// Checks the next bytes of the stream.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`] for a message that is too long or shorter than its own header, or
    /// [`ErrorKind::PermissionDenied`] for a request for the password in clear text.
    pub(crate) fn check(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.rest > 0 {
                let passed = self.rest.min(bytes.len());
                self.rest -= passed;
                bytes = &bytes[passed..];
                continue;
            }
            self.head[self.filled] = bytes[0];
            self.filled += 1;
            bytes = &bytes[1..];
            self.check_head()?;
        }
        Ok(())
    }

    fn check_head(&mut self) -> io::Result<()> {
        let number = |at: usize| {
            let bytes = [at, at + 1, at + 2, at + 3].map(|at| self.head[at]);
            u32::from_be_bytes(bytes)
        };
        if self.filled < 5 {
            return Ok(());
        }
        // The length in the header includes its own four bytes, but not the byte of the kind.
        let length = number(1);
        if !(4..=MAX_MESSAGE_BYTES).contains(&length) {
            let message = format!(
                "the database server sent a message of {length} bytes, the maximum is \
                         {MAX_MESSAGE_BYTES}"
            );
            return Err(io::Error::new(ErrorKind::InvalidData, message));
        }
        let is_authentication = self.head[0] == AUTHENTICATION && length >= 8;
        if is_authentication && self.filled < HEAD_BYTES {
            return Ok(());
        }
        if is_authentication && number(5) == CLEARTEXT_PASSWORD && !self.allows_cleartext {
            return Err(io::Error::new(
                ErrorKind::PermissionDenied,
                "the database server requested the password in clear text over an unencrypted \
                 connection; use scram-sha-256 or sslmode=verify-full, or allow it with \
                 require_auth=password",
            ));
        }
        self.rest = length as usize + 1 - self.filled;
        self.filled = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_MESSAGE_BYTES, MessageGuard};

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        [&[kind], &length[..], body].concat()
    }

    /// Checks that a stream is judged the same for pieces of several sizes. Returns whether the
    /// stream is accepted.
    fn check(stream: &[u8], allows_cleartext: bool) -> bool {
        let outcomes = [1, 2, 3, 5, 7, 1000].map(|size| {
            let mut guard = MessageGuard::new(allows_cleartext);
            stream.chunks(size).all(|piece| guard.check(piece).is_ok())
        });
        assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]));
        outcomes[0]
    }

    #[test]
    fn messages_pass_up_to_the_maximum_length() {
        let usual = [
            message(b'R', &[0, 0, 0, 0]),
            message(b'S', b"client_encoding\0UTF8\0"),
            message(b'Z', b"I"),
            message(b'1', b""),
            message(b'D', &[7; 5000]),
            message(b'R', &[0, 0, 0, 10, b'S']),
        ];
        assert!(check(&usual.concat(), false));
        for length in [0, 3, MAX_MESSAGE_BYTES + 1, i32::MAX as u32, u32::MAX] {
            let stream = [&usual.concat()[..], b"D", &length.to_be_bytes()].concat();
            assert!(!check(&stream, false), "{length}");
        }
    }

    #[test]
    fn a_password_in_clear_text_has_to_be_allowed() {
        let asks = message(b'R', &[0, 0, 0, 3]);
        assert!(!check(&asks, false));
        assert!(check(&asks, true));
        // The number 3 requests a password only in a message of the kind `AUTHENTICATION`.
        assert!(check(&message(b'D', &[0, 0, 0, 3]), false));
    }
}
