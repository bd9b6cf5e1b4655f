//! The TLS settings that all clients of a fetcher share: which certificates are trusted, and
//! sessions to resume.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, NamedGroup, RootCertStore};
use rustls_platform_verifier::Verifier;

use crate::config::{FetcherSetupError, RootCertificatesError};
use crate::http2::PROTOCOLS;

/// Maximum hosts whose last TLS session is kept, so that the next connection needs no certificates.
/// Each holds the certificates of the server.
/// Beyond the limit: the host that was added first is forgotten.
const MAX_SESSION_HOSTS: usize = 16_384;

/// Creates the TLS settings. The platform's certificates are read once.
pub(crate) fn tls_settings(extra_roots: Option<&[u8]>) -> Result<ClientConfig, FetcherSetupError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(extra_roots.unwrap_or_default()).collect();
    let roots = roots
        .map_err(|why| FetcherSetupError::Roots(RootCertificatesError::Pem(why.to_string())))?;
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(rustls::ALL_VERSIONS)
        .map_err(FetcherSetupError::Tls)?;
    let builder = match Verifier::new_with_extra_roots(roots, provider) {
        Ok(verifier) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier)),
        Err(reason) => {
            // Without root certificates the machine can still crawl http hosts. Requests to https
            // hosts fail, because no certificate can be verified.
            tracing::warn!("can't verify any https host: {reason}");
            builder.with_root_certificates(RootCertStore::empty())
        }
    };
    let mut settings = builder.with_no_client_auth();
    settings.alpn_protocols = PROTOCOLS.iter().map(|name| name.to_vec()).collect();
    settings.resumption = Resumption::store(Arc::new(TlsSessionStore::new(MAX_SESSION_HOSTS)));
    Ok(settings)
}

/// The last TLS session of each host.
///
/// The library's own store would keep eight sessions per host, but only for 32 hosts.
#[derive(Debug)]
struct TlsSessionStore {
    max_hosts: usize,
    state: Mutex<TlsSessionStoreState>,
}

#[derive(Debug, Default)]
struct TlsSessionStoreState {
    hosts: HashMap<ServerName<'static>, TlsSession, RandomState>,
    /// The keys of `hosts`, in the order in which they were added.
    order: VecDeque<ServerName<'static>>,
}

#[derive(Debug, Default)]
struct TlsSession {
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    tls13: Option<Tls13ClientSessionValue>,
}

impl TlsSessionStore {
    fn new(max_hosts: usize) -> TlsSessionStore {
        TlsSessionStore {
            max_hosts,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, TlsSessionStoreState> {
        // Sessions are valid even if another thread panicked while it held the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, host: ServerName<'static>, update: impl FnOnce(&mut TlsSession)) {
        let mut state = self.state();
        if let Some(session) = state.hosts.get_mut(&host) {
            return update(session);
        }
        if state.hosts.len() >= self.max_hosts
            && let Some(oldest) = state.order.pop_front()
        {
            state.hosts.remove(&oldest);
        }
        let mut session = TlsSession::default();
        update(&mut session);
        state.order.push_back(host.clone());
        state.hosts.insert(host, session);
    }
}

impl ClientSessionStore for TlsSessionStore {
    fn set_kx_hint(&self, host: ServerName<'static>, group: NamedGroup) {
        self.update(host, |session| session.group = Some(group));
    }

    fn kx_hint(&self, host: &ServerName<'_>) -> Option<NamedGroup> {
        self.state().hosts.get(&host.to_owned())?.group
    }

    fn set_tls12_session(&self, host: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.update(host, |session| session.tls12 = Some(value));
    }

    fn tls12_session(&self, host: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.state().hosts.get(&host.to_owned())?.tls12.clone()
    }

    fn remove_tls12_session(&self, host: &ServerName<'static>) {
        if let Some(session) = self.state().hosts.get_mut(host) {
            session.tls12 = None;
        }
    }

    fn insert_tls13_ticket(&self, host: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.update(host, |session| session.tls13 = Some(value));
    }

    fn take_tls13_ticket(&self, host: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        // A ticket is used once, so that an observer can't link connections (RFC 8446 appendix
        // C.4).
        self.state().hosts.get_mut(host)?.tls13.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_added_first_is_forgotten() {
        let sessions = TlsSessionStore::new(2);
        let [a, b, c] =
            ["a.test", "b.test", "c.test"].map(|name| ServerName::try_from(name).unwrap());
        for host in [&a, &b, &a, &c] {
            sessions.set_kx_hint(host.clone(), NamedGroup::X25519);
        }
        let is_kept = [&a, &b, &c].map(|host| sessions.kx_hint(host).is_some());
        assert_eq!(is_kept, [false, true, true]);
        let state = sessions.state();
        assert_eq!((state.hosts.len(), state.order.len()), (2, 2));
    }
}
