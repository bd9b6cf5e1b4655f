//! An exchange that brought no answer: in which phase, whose fault, whether trying again
//! helps.

use std::fmt;
use std::net::SocketAddr;

use crawl_scheduler::{OutcomeKind, RequestOutcome, Tick};

use crate::exchange::Exchange;

/// The reason why there is no [`Exchange`], or no whole one.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// The phase that the exchange had come to.
    pub phase: FailurePhase,
    /// The side whose fault it was.
    pub fault: Fault,
    /// True if the same request may fare better at another time.
    pub retry: bool,
    /// When the exchange began.
    pub started: Tick,
    /// When it was given up.
    pub ended: Tick,
    /// The peer, where a connection is known to have stood.
    pub address: Option<SocketAddr>,
    /// The messages of the layers below, from the outermost to the cause.
    pub detail: String,
    /// The part of an answer that had come until then, where that is a head at least: the
    /// body's beginning, cut where the failure says. Worth keeping where the URL is not asked
    /// for again.
    pub answer: Option<Box<Exchange>>,
}

/// The kinds of failure. Each has a [name](FailureKind::name) for rows and counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// The permit was for another host. Nothing was sent.
    WrongPermit,
    /// The URL fits into no request. Nothing was sent.
    BadUrl,
    /// An address that the operator did not allow.
    AddressRefused,
    /// The host's name is longer than names may be, or is none. Nobody was asked.
    NameTooLong,
    /// There is no such name (NXDOMAIN).
    NoSuchName,
    /// The name exists and has no address.
    NoAddress,
    /// No name server answered in time.
    DnsTimeout,
    /// The name servers failed or refused to answer, or none could be asked.
    DnsFailed,
    /// The host refused the connection.
    ConnectRefused,
    /// No route to the host.
    ConnectUnreachable,
    /// No connection within the time for it.
    ConnectTimeout,
    /// The connection was cut while it was made.
    ConnectReset,
    /// No connection, for another reason.
    ConnectFailed,
    /// The operator's proxy did not bring a connection about.
    ProxyFailed,
    /// No TLS session, or a certificate that does not verify.
    TlsFailed,
    /// The time for the whole exchange was over.
    Timeout,
    /// The connection stood, and no whole head of an answer came within the time for it.
    FirstByteTimeout,
    /// No byte of the body came for too long.
    IdleTimeout,
    /// The time was over while a long body waited for memory that others held.
    NoRoom,
    /// This process or machine had no file descriptor for a connection. Nothing was sent.
    NoDescriptors,
    /// The run was over before the exchange was: [`give_up`](crate::Fetcher::give_up).
    GivenUp,
    /// The connection was cut.
    Reset,
    /// The connection was closed before an answer began or its head was whole.
    EmptyAnswer,
    /// The answer's head is not HTTP.
    BadResponse,
    /// The answer's head is longer, or has more fields, than is read.
    HeadersTooLarge,
    /// The body ended before its announced end.
    ShortBody,
    /// The body's framing is broken.
    BadBody,
}

/// The phases of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailurePhase {
    /// Before anything was sent.
    Request,
    /// Judging where the host is.
    Address,
    /// Looking up the host's name.
    Dns,
    /// Making the connection.
    Connect,
    /// Agreeing on TLS.
    Tls,
    /// Sending the request and waiting for the whole head of the answer. Where the time
    /// for the whole exchange runs out earlier, it counts as this too.
    FirstByte,
    /// Reading the body.
    Body,
}

/// The side whose fault a failure was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// This URL's: others of the host may fare well.
    Url,
    /// The host's: it can't be reached.
    Host,
    /// Ours: the configuration, the proxy, the program.
    Operator,
}

impl Failure {
    /// The kind's name: `connect_refused`, `timeout`, ...
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// The outcome of this exchange for the scheduler.
    #[must_use]
    pub fn signal(&self) -> RequestOutcome {
        RequestOutcome {
            end: self.ended,
            response_time: self.ended.since(self.started),
            address: self.address.map(|address| address.ip()),
            kind: self.signal_kind(),
            rate_limit: None,
            url: None,
        }
    }

    /// The kind of outcome for the scheduler: a host that can't be connected to is paused;
    /// where memory or descriptors were short, it is ours; anything else is the URL's matter.
    #[must_use]
    pub fn signal_kind(&self) -> OutcomeKind {
        if self.kind.is_no_connection() {
            OutcomeKind::NoConnection
        } else if self.kind.is_ours() || self.kind == FailureKind::NoRoom {
            // The server did its part, or was not asked.
            OutcomeKind::Answered
        } else {
            OutcomeKind::UrlFailed
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.detail)
    }
}

impl std::error::Error for Failure {}

impl FailureKind {
    /// A short fixed name, for rows and counters.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::WrongPermit => "wrong_permit",
            FailureKind::BadUrl => "bad_url",
            FailureKind::AddressRefused => "address_refused",
            FailureKind::NameTooLong => "name_too_long",
            FailureKind::NoSuchName => "no_such_name",
            FailureKind::NoAddress => "no_address",
            FailureKind::DnsTimeout => "dns_timeout",
            FailureKind::DnsFailed => "dns_failed",
            FailureKind::ConnectRefused => "connect_refused",
            FailureKind::ConnectUnreachable => "connect_unreachable",
            FailureKind::ConnectTimeout => "connect_timeout",
            FailureKind::ConnectReset => "connect_reset",
            FailureKind::ConnectFailed => "connect_failed",
            FailureKind::ProxyFailed => "proxy_failed",
            FailureKind::TlsFailed => "tls_failed",
            FailureKind::Timeout => "timeout",
            FailureKind::FirstByteTimeout => "first_byte_timeout",
            FailureKind::IdleTimeout => "idle_timeout",
            FailureKind::NoRoom => "no_room",
            FailureKind::NoDescriptors => "no_descriptors",
            FailureKind::GivenUp => "given_up",
            FailureKind::Reset => "reset",
            FailureKind::EmptyAnswer => "empty_answer",
            FailureKind::BadResponse => "bad_response",
            FailureKind::HeadersTooLarge => "headers_too_large",
            FailureKind::ShortBody => "short_body",
            FailureKind::BadBody => "bad_body",
        }
    }

    /// Returns whether the host's name or address forbids that it is ever asked.
    #[must_use]
    pub fn is_refusal(self) -> bool {
        matches!(self, FailureKind::AddressRefused | FailureKind::NameTooLong)
    }

    /// Returns whether neither the URL nor its host had a part in it: the URL may be asked for
    /// again as if it had not been.
    #[must_use]
    pub fn is_ours(self) -> bool {
        matches!(self, FailureKind::NoDescriptors | FailureKind::GivenUp)
    }

    /// Returns whether the host could not be connected to, so that no URL of it can be asked for.
    #[must_use]
    pub fn is_no_connection(self) -> bool {
        matches!(
            self,
            FailureKind::NoSuchName
                | FailureKind::NoAddress
                | FailureKind::DnsTimeout
                | FailureKind::DnsFailed
                | FailureKind::ConnectRefused
                | FailureKind::ConnectUnreachable
                | FailureKind::ConnectTimeout
                | FailureKind::ConnectReset
                | FailureKind::ConnectFailed
                | FailureKind::ProxyFailed
                | FailureKind::TlsFailed
        )
    }

    pub(crate) fn fault(self) -> Fault {
        match self {
            FailureKind::WrongPermit
            | FailureKind::ProxyFailed
            | FailureKind::NoRoom
            | FailureKind::NoDescriptors
            | FailureKind::GivenUp => Fault::Operator,
            _ if self.is_no_connection() => Fault::Host,
            _ => Fault::Url,
        }
    }

    pub(crate) fn retry(self) -> bool {
        !matches!(
            self,
            FailureKind::WrongPermit
                | FailureKind::BadUrl
                | FailureKind::AddressRefused
                | FailureKind::NameTooLong
                | FailureKind::HeadersTooLarge
        )
    }
}
