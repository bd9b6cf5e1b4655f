//! Encrypted connections, and the reasons why a connection fails.

use std::error::Error;
use std::fs;
use std::io;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio_postgres::error::SqlState;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::connection_string::{RootCertificates, TlsMode};
use crate::error::SharedCrawlError;

/// Maximum size of a file of root certificates, in bytes. All roots of a browser together have 250
/// KiB.
const MAX_ROOTS_BYTES: u64 = 4 << 20;

/// Returns a connector for encrypted connections, or `None` if connections are not encrypted.
pub(crate) fn connector(
    encryption: &TlsMode,
) -> Result<Option<MakeRustlsConnect>, SharedCrawlError> {
    let roots = match encryption {
        TlsMode::None => return Ok(None),
        TlsMode::Verified(roots) => root_certificates(roots)?,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|why| SharedCrawlError::Roots {
            place: "the TLS library".to_owned(),
            what: why.to_string(),
        })?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    Ok(Some(MakeRustlsConnect::new(config)))
}

fn root_certificates(roots: &RootCertificates) -> Result<RootCertStore, SharedCrawlError> {
    let mut store = RootCertStore::empty();
    match roots {
        RootCertificates::System => {
            let loaded = rustls_native_certs::load_native_certs();
            // Skip certificates that the TLS library can't read, because the library would not
            // trust them anyway.
            store.add_parsable_certificates(loaded.certs);
            match store.is_empty() {
                false => Ok(store),
                true => Err(SharedCrawlError::Roots {
                    place: "the system".to_owned(),
                    what: match loaded.errors.first() {
                        Some(why) => why.to_string(),
                        None => "it has no root certificates".to_owned(),
                    },
                }),
            }
        }
        RootCertificates::File(path) => {
            let failed = |what: String| SharedCrawlError::Roots {
                place: format!("sslrootcert `{}`", path.display()),
                what,
            };
            let length = fs::metadata(path)
                .map_err(|why| failed(why.to_string()))?
                .len();
            if length > MAX_ROOTS_BYTES {
                return Err(failed(format!("it is larger than {MAX_ROOTS_BYTES} bytes")));
            }
            let pem = fs::read(path).map_err(|why| failed(why.to_string()))?;
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let certificate = certificate.map_err(|why| failed(why.to_string()))?;
                store
                    .add(certificate)
                    .map_err(|why| failed(why.to_string()))?;
            }
            match store.is_empty() {
                false => Ok(store),
                true => Err(failed("it has no certificate".to_owned())),
            }
        }
    }
}

/// Converts a connection error into an error that helps the user.
pub(crate) fn not_connected(address: String, source: tokio_postgres::Error) -> SharedCrawlError {
    if let Some(why) = of_certificate(&source) {
        return match why {
            // Report a wrong signature like an unknown issuer: the certificate names a trusted
            // issuer, but that issuer did not sign it.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                SharedCrawlError::NotTrusted { address, source }
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                SharedCrawlError::OtherName { address, source }
            }
            _ => SharedCrawlError::BadCertificate {
                address,
                what: why.to_string(),
                source,
            },
        };
    }
    let refusals = [
        SqlState::INVALID_PASSWORD,
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
    ];
    let is_refused = source.code().is_some_and(|code| refusals.contains(code));
    let cause = source.source().map(ToString::to_string);
    match cause.as_deref() {
        // The driver has no error code for this, only a text.
        Some("server does not support TLS") => SharedCrawlError::NoTls { address },
        Some("password missing") => SharedCrawlError::Refused { address, source },
        _ if is_refused => SharedCrawlError::Refused { address, source },
        _ => SharedCrawlError::Unreachable { address, source },
    }
}

/// Returns what is wrong with the database server's certificate, or `None` if the connection failed
/// for another reason.
fn of_certificate(error: &tokio_postgres::Error) -> Option<CertificateError> {
    let mut source = error.source();
    while let Some(error) = source {
        // Use `get_ref`, because `source` skips the inner error of an `io::Error`.
        let inner = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        let inner = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
        if let Some(rustls::Error::InvalidCertificate(fault)) = inner.or(error.downcast_ref()) {
            return Some(fault.clone());
        }
        source = error.source();
    }
    None
}
