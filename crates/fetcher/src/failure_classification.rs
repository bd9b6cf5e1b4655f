//! Maps the client's errors to [`FailureKind`]s.

use std::error::Error;
use std::io;

use rustls::CertificateError;

use crate::address_checker::AddressRefused;
use crate::connection_probe::ProbeConnectedError;
use crate::exchange_limiter::is_no_descriptor;
use crate::failure_kind::{FailureKind, FailurePhase};
use crate::resolver::NameLookupError;

/// The failure detail for a certificate without a trusted root, usually from a private CA.
const UNKNOWN_ISSUER: &str = "unknown issuer";

/// The failure detail for a proxy that answers 407 (RFC 9110 section 15.5.8).
pub(crate) const PROXY_WANTS_PASSWORD: &str = "the proxy wants a user name and a password (407)";

/// The client's message if a proxy answers 407 to CONNECT.
const TUNNEL_REFUSED: &str = "proxy authorization required";

/// The classification of a client error.
#[derive(Debug)]
pub(crate) struct ClassifiedError {
    pub(crate) kind: FailureKind,
    pub(crate) phase: FailurePhase,
    /// Whether a retry of this request is pointless, even if other failures of the same kind are
    /// retried.
    pub(crate) lasting: bool,
    pub(crate) detail: String,
}

impl ClassifiedError {
    /// Creates a classification that follows the retry rule of its kind (`lasting` is false).
    pub(crate) fn new(kind: FailureKind, phase: FailurePhase, detail: String) -> ClassifiedError {
        ClassifiedError {
            kind,
            phase,
            lasting: false,
            detail,
        }
    }
}

/// Returns whether the error is [`ProbeConnectedError`]: the connection was established, but no
/// request was sent.
pub(crate) fn is_established(error: &reqwest::Error) -> bool {
    cause::<ProbeConnectedError>(error).is_some()
}

/// Returns the first of the error's causes that has this type.
pub(crate) fn cause<E: Error + 'static>(error: &reqwest::Error) -> Option<&E> {
    find(&causes(error))
}

/// Classifies an error of `execute`: either no connection was made, or no complete head arrived.
pub(crate) fn before_head(error: &reqwest::Error, proxied: bool) -> ClassifiedError {
    let causes = causes(error);
    let mut lasting = false;
    let (kind, phase) = if let Some(refused) = find::<AddressRefused>(&causes) {
        return ClassifiedError {
            kind: FailureKind::AddressRefused,
            phase: FailurePhase::Address,
            lasting: true,
            detail: refused.to_string(),
        };
    } else if is_out_of_descriptors(&causes) {
        return ClassifiedError::new(
            FailureKind::NoDescriptors,
            FailurePhase::Connect,
            story(error),
        );
    } else if let Some(why) = find::<NameLookupError>(&causes) {
        return ClassifiedError::new(why.kind, FailurePhase::Dns, why.detail.clone());
    } else if error.is_builder() {
        (FailureKind::BadUrl, FailurePhase::Request)
    } else if error.is_connect() {
        lasting = is_bad_certificate(&causes);
        connecting(error, &causes, proxied)
    } else {
        match answering(error, &causes) {
            FailureKind::TlsFailed => (FailureKind::TlsFailed, FailurePhase::Tls),
            kind => (kind, FailurePhase::FirstByte),
        }
    };
    let detail = certificate_fault(&causes).unwrap_or_else(|| story(error));
    ClassifiedError {
        kind,
        phase,
        lasting,
        detail: match proxied && detail.ends_with(TUNNEL_REFUSED) {
            true => PROXY_WANTS_PASSWORD.to_owned(),
            false => detail,
        },
    }
}

/// Returns whether the connection ended before the head of an answer was complete. The client
/// reports the same error whether nothing or a part of the head had arrived.
pub(crate) fn is_unanswered(error: &reqwest::Error) -> bool {
    !error.is_connect()
        && !error.is_builder()
        && matches!(
            answering(error, &causes(error)),
            FailureKind::EmptyAnswer | FailureKind::Reset | FailureKind::TlsFailed
        )
}

/// Describes a certificate that doesn't verify. `None` if the library's message is clear enough, or
/// if something else failed.
fn certificate_fault(causes: &[&(dyn Error + 'static)]) -> Option<String> {
    let rustls::Error::InvalidCertificate(why) = find::<rustls::Error>(causes)? else {
        return None;
    };
    let words = match why {
        CertificateError::UnknownIssuer => return Some(UNKNOWN_ISSUER.to_owned()),
        CertificateError::Expired => "certificate expired",
        CertificateError::NotValidYet => "certificate not valid yet",
        // A self-signed certificate, such as one made by `openssl req -x509`.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "self-signed certificate"
        }
        _ => return None,
    };
    Some(format!("invalid peer certificate: {words}"))
}

/// Classifies an error from reading the body.
pub(crate) fn in_body(error: &reqwest::Error) -> ClassifiedError {
    let causes = causes(error);
    let http = find::<hyper::Error>(&causes);
    let kind = if error.is_timeout() {
        FailureKind::Timeout
    } else if http.is_some_and(hyper::Error::is_incomplete_message) {
        FailureKind::ShortBody
    } else {
        match io_kind(&causes) {
            Some(io::ErrorKind::UnexpectedEof) => FailureKind::ShortBody,
            Some(kind) if is_reset(kind) => FailureKind::Reset,
            _ => FailureKind::BadBody,
        }
    };
    ClassifiedError {
        kind,
        phase: FailurePhase::Body,
        lasting: false,
        detail: story(error),
    }
}

/// Returns whether the peer closed a TLS connection without `close_notify` (RFC 8446 section 6.1).
pub(crate) fn is_silent_close(error: &reqwest::Error) -> bool {
    io_kind(&causes(error)) == Some(io::ErrorKind::UnexpectedEof)
}

/// Joins the messages of an error and its causes, outermost first, without duplicates.
pub(crate) fn story(error: &(dyn Error + 'static)) -> String {
    let mut messages: Vec<String> = Vec::new();
    for cause in causes(error) {
        let words = cause.to_string();
        // Leave out the messages of the client itself, such as `client error (SendRequest)`, since
        // the record has the URL and the phase.
        if cause.is::<reqwest::Error>() || words.starts_with("client error (") {
            continue;
        }
        if !messages.iter().any(|earlier| earlier.contains(&words)) {
            messages.push(words);
        }
    }
    if messages.is_empty() {
        return error.to_string();
    }
    messages.join(": ")
}

fn connecting(
    error: &reqwest::Error,
    causes: &[&(dyn Error + 'static)],
    proxied: bool,
) -> (FailureKind, FailurePhase) {
    if find::<rustls::Error>(causes).is_some() {
        return (FailureKind::TlsFailed, FailurePhase::Tls);
    }
    // Behind a proxy, failures of the target look like failures of the proxy.
    if proxied {
        return (FailureKind::ProxyFailed, FailurePhase::Connect);
    }
    if error.is_timeout() {
        return (FailureKind::ConnectTimeout, FailurePhase::Connect);
    }
    if error.is_dns() {
        return (FailureKind::DnsFailed, FailurePhase::Dns);
    }
    let kind = match io_kind(causes) {
        Some(io::ErrorKind::ConnectionRefused) => FailureKind::ConnectRefused,
        Some(
            io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::AddrNotAvailable,
        ) => FailureKind::ConnectUnreachable,
        Some(io::ErrorKind::TimedOut) => FailureKind::ConnectTimeout,
        Some(kind) if is_reset(kind) || kind == io::ErrorKind::UnexpectedEof => {
            FailureKind::ConnectReset
        }
        _ => FailureKind::ConnectFailed,
    };
    (kind, FailurePhase::Connect)
}

fn answering(error: &reqwest::Error, causes: &[&(dyn Error + 'static)]) -> FailureKind {
    if error.is_timeout() {
        return FailureKind::Timeout;
    }
    if let Some(http) = find::<hyper::Error>(causes) {
        if http.is_parse_too_large() {
            return FailureKind::HeadersTooLarge;
        } else if http.is_parse() {
            return FailureKind::BadResponse;
        } else if http.is_incomplete_message() {
            return FailureKind::EmptyAnswer;
        } else if http.is_closed() || http.is_canceled() {
            return FailureKind::Reset;
        }
    }
    match io_kind(causes) {
        Some(io::ErrorKind::UnexpectedEof) => FailureKind::EmptyAnswer,
        Some(kind) if is_reset(kind) => FailureKind::Reset,
        // Only TLS reports invalid data as an I/O error. In TLS 1.3, the alert of a server that
        // demands a client certificate arrives after the client's handshake, while the client
        // already waits for the answer (RFC 8446 section 4.4.2.4).
        Some(io::ErrorKind::InvalidData) => FailureKind::TlsFailed,
        _ => FailureKind::BadResponse,
    }
}

/// Returns whether a certificate failed to verify. A retry would not help.
fn is_bad_certificate(causes: &[&(dyn Error + 'static)]) -> bool {
    matches!(
        find::<rustls::Error>(causes),
        Some(rustls::Error::InvalidCertificate(_))
    )
}

fn is_out_of_descriptors(causes: &[&(dyn Error + 'static)]) -> bool {
    let mut errors = causes
        .iter()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    errors.any(is_no_descriptor)
}

fn is_reset(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected
    )
}

/// Returns the kind of the innermost I/O error. If this kind is `Other`, returns the kind of the
/// enclosing I/O error, if any.
fn io_kind(causes: &[&(dyn Error + 'static)]) -> Option<io::ErrorKind> {
    let kinds = causes.iter().rev();
    let mut kinds = kinds.filter_map(|cause| cause.downcast_ref::<io::Error>());
    let last = kinds.next()?.kind();
    match last {
        io::ErrorKind::Other => Some(kinds.next().map_or(last, io::Error::kind)),
        told => Some(told),
    }
}

fn find<'a, E: Error + 'static>(causes: &[&'a (dyn Error + 'static)]) -> Option<&'a E> {
    causes.iter().find_map(|cause| cause.downcast_ref::<E>())
}

/// Returns the error and its causes, outermost first. An I/O error's `source` skips the error it
/// wraps, so the wrapped error is added here.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    let mut errors = Vec::new();
    let mut next = Some(error);
    while let Some(cause) = next {
        errors.push(cause);
        let held = cause
            .downcast_ref::<io::Error>()
            .and_then(|io| io.get_ref());
        next = match held {
            Some(held) => Some(held as &(dyn Error + 'static)),
            None => cause.source(),
        };
    }
    errors
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::sync::Arc;

    use rustls::{CertificateError, OtherError};

    use super::certificate_fault;

    #[derive(Debug, thiserror::Error)]
    #[error("CaUsedAsEndEntity")]
    struct CaUsedAsEndEntity;

    #[test]
    fn certificates_that_do_not_verify_are_described() {
        let self_signed = CertificateError::Other(OtherError(Arc::new(CaUsedAsEndEntity)));
        for (fault, words) in [
            (CertificateError::UnknownIssuer, Some("unknown issuer")),
            (
                CertificateError::Expired,
                Some("invalid peer certificate: certificate expired"),
            ),
            (
                self_signed,
                Some("invalid peer certificate: self-signed certificate"),
            ),
            (CertificateError::Revoked, None),
        ] {
            let error = rustls::Error::InvalidCertificate(fault);
            let causes: [&(dyn Error + 'static); 1] = [&error];
            assert_eq!(certificate_fault(&causes).as_deref(), words);
        }
    }
}
