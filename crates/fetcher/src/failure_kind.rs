//! The kinds of failure: in which phase, whose fault, whether trying again helps.

use strum::{EnumString, IntoStaticStr};

/// The kinds of failure. Each has a [name](FailureKind::name) for rows and counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
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
    /// Nobody was asked: the archive of a crawl that is replayed has no answer.
    NotArchived,
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

impl FailureKind {
    /// A short fixed name, for rows and counters.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The kind of this [name](FailureKind::name).
    #[must_use]
    pub fn named(name: &str) -> Option<FailureKind> {
        name.parse().ok()
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
            | FailureKind::GivenUp
            | FailureKind::NotArchived => Fault::Operator,
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
                | FailureKind::NotArchived
        )
    }
}

#[cfg(test)]
mod tests {
    use super::FailureKind;

    #[test]
    fn ours_a_name_leads_back_to_its_kind() {
        for kind in [
            FailureKind::NoSuchName,
            FailureKind::FirstByteTimeout,
            FailureKind::NotArchived,
        ] {
            assert_eq!(FailureKind::named(kind.name()), Some(kind));
        }
        assert_eq!(FailureKind::named("no kind"), None);
    }
}
