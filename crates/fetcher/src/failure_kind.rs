//! The kinds of failure: phase, fault, and whether a retry may help.

use strum::{EnumString, IntoStaticStr};

/// The kinds of failure. Each has a [name](FailureKind::name) for records and counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// The permit was for another host. Nothing was sent.
    WrongPermit,
    /// The URL can't be put into a request. Nothing was sent.
    BadUrl,
    /// The general rules or the operator's settings don't allow the host's address.
    AddressRefused,
    /// The host's name is too long or invalid. No look-up was made.
    NameTooLong,
    /// There is no such name (NXDOMAIN).
    NoSuchName,
    /// The name exists but has no address.
    NoAddress,
    /// No name server answered in time.
    DnsTimeout,
    /// The name servers failed or refused to answer, or none was available.
    DnsFailed,
    /// The host refused the connection.
    ConnectRefused,
    /// No route to the host.
    ConnectUnreachable,
    /// Connecting took too long.
    ConnectTimeout,
    /// The connection was reset while connecting.
    ConnectReset,
    /// Connecting failed for another reason.
    ConnectFailed,
    /// The operator's proxy could not connect.
    ProxyFailed,
    /// The TLS handshake failed, or the certificate did not verify.
    TlsFailed,
    /// The time for the whole exchange ran out.
    Timeout,
    /// The connection was made, but the complete head of an answer did not arrive in time.
    FirstByteTimeout,
    /// No byte of the body arrived for too long.
    IdleTimeout,
    /// The time ran out while a long body waited for memory.
    NoRoom,
    /// This process or machine had no file descriptor for a connection. Nothing was sent.
    NoDescriptors,
    /// The run ended before the exchange did; see [`give_up`](crate::Fetcher::give_up).
    GivenUp,
    /// The connection was reset.
    Reset,
    /// The connection was closed before the head of an answer was complete.
    EmptyAnswer,
    /// The answer's head is not HTTP.
    BadResponse,
    /// The answer's head is too long or has too many fields.
    HeadersTooLarge,
    /// The body ended before its announced end, or the server sent an unrequested part of it.
    ShortBody,
    /// The body's framing is broken, or has an unrequested transfer coding.
    BadBody,
    /// The answer shows that the site has logged the crawl out. The answer is not kept.
    LoggedOut,
    /// The archive of a replayed crawl has no answer for the URL. Nothing was sent.
    NotArchived,
}

/// The phases of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailurePhase {
    /// Preparing the request. Also the phase of every [`FailureKind::GivenUp`], and of failures
    /// that were read from records.
    Request,
    /// Checking the host's address.
    Address,
    /// Looking up the host's name.
    Dns,
    /// Connecting.
    Connect,
    /// The TLS handshake.
    Tls,
    /// Sending the request and waiting for the complete head of the answer. This is also the phase
    /// if the time for the whole exchange runs out before the head is complete.
    FirstByte,
    /// Reading the body.
    Body,
}

/// The party at fault for a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultyParty {
    /// The URL is at fault. Other URLs of the host may work.
    Url,
    /// The host is at fault: it can't be reached.
    Host,
    /// The operator's side is at fault: the configuration, the proxy or the program.
    Operator,
}

impl FailureKind {
    /// Returns a short fixed name for records and counters.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the kind with this [name](FailureKind::name).
    #[must_use]
    pub fn named(name: &str) -> Option<FailureKind> {
        name.parse().ok()
    }

    /// Returns whether no request to the host can ever be sent because of its name or address.
    #[must_use]
    pub fn is_refusal(self) -> bool {
        matches!(self, FailureKind::AddressRefused | FailureKind::NameTooLong)
    }

    /// Returns whether neither the URL nor its host caused the failure. If so, the URL may be
    /// fetched again as if it had never been tried.
    #[must_use]
    pub fn is_ours(self) -> bool {
        matches!(
            self,
            FailureKind::NoDescriptors | FailureKind::GivenUp | FailureKind::LoggedOut
        )
    }

    /// Returns whether no connection to the host could be made, so that none of its URLs can be
    /// fetched.
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

    pub(crate) fn fault(self) -> FaultyParty {
        match self {
            FailureKind::WrongPermit
            | FailureKind::ProxyFailed
            | FailureKind::NoRoom
            | FailureKind::NoDescriptors
            | FailureKind::GivenUp
            | FailureKind::LoggedOut
            | FailureKind::NotArchived => FaultyParty::Operator,
            _ if self.is_no_connection() => FaultyParty::Host,
            _ => FaultyParty::Url,
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
    fn each_name_maps_back_to_its_kind() {
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
