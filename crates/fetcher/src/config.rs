//! The operator's settings for exchanges.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crawl_weburl::{CanonicalUrl, without_trailing_dot};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::address_checker::typed_ports;
use crate::body_filter::BodyFilter;
use crate::contact::Contact;
use crate::host_request_headers::HostRequestHeaders;
use crate::secret_finder::Secrets;
use crate::sessions::SiteSessions;
use crate::signature_demands::SigningSettings;

/// The settings of exchanges. [`FetchConfig::new`] returns the defaults.
#[derive(Clone, Debug)]
pub struct FetchConfig {
    /// The complete `User-Agent` field; see [`user_agent`].
    pub user_agent: String,
    /// The `From` field (RFC 9110 section 10.1.2), if the contact is a mail address.
    pub from: Option<String>,
    /// Maximum time for a whole exchange, from the look-up to the last byte of the body.
    pub timeout: Duration,
    /// Maximum time for the look-up, the connection and the TLS handshake together.
    pub connect_timeout: Duration,
    /// Maximum time from the established connection to the complete head of an answer.
    pub first_byte_timeout: Duration,
    /// Maximum time between two bytes of the body.
    pub idle_timeout: Duration,
    /// How long an idle connection is kept alive; zero keeps none. At most 32 are kept per host.
    pub keep_alive: Duration,
    /// Maximum kept connections to all hosts together, including those in use; zero keeps none.
    pub max_kept_connections: u32,
    /// Maximum bytes of an encoded body to keep; longer bodies are cut.
    pub max_body: u64,
    /// Decides which bodies to read, for requests with [`is_filtered`]. `None` reads all bodies.
    ///
    /// [`is_filtered`]: crate::FetchRequest::is_filtered
    pub body_filter: Option<BodyFilter>,
    /// Memory for bodies longer than 256 KiB, in bytes, for all exchanges together. Such a body
    /// waits until memory for its announced length (or else its maximum length) is free, and keeps
    /// that memory until the exchange is dropped.
    pub body_memory: u64,
    /// A proxy for every request: `http://`, `https://`, `socks5://` (names are resolved locally)
    /// or `socks5h://` (names are resolved by the proxy). If the proxy resolves names (HTTP and
    /// `socks5h`), addresses can be checked before the request only if they are written in the URL.
    pub proxy: Option<String>,
    /// Addresses that the operator typed, used instead of a look-up. Such addresses are not
    /// checked, because an operator who types an address allows it.
    pub resolve: Vec<ResolveOverride>,
    /// Name servers to use instead of the system's. The hosts file is then not read.
    pub name_servers: Vec<SocketAddr>,
    /// Maximum look-ups per second to each name server, except on loopback. A look-up queries both
    /// address families. `None` or 0 means no limit.
    pub name_server_rate: Option<f64>,
    /// Additional header fields for single hosts.
    pub access: Vec<HostRequestHeaders>,
    /// Cookies and tokens that are kept for single sites.
    pub sessions: SiteSessions,
    /// Allows loopback and private addresses. Addresses that can't belong to a single server, such
    /// as multicast addresses, stay refused.
    pub allow_private: bool,
    /// Allows public servers. This must be false without a contact, because the owner of a visited
    /// site must be able to reach someone.
    pub allow_public: bool,
    /// URLs that the operator typed (the seeds). Their hosts are allowed at any address, on the
    /// port in the URL or else on the ports of http and https. A host name loses this exemption
    /// once it has had a public address.
    pub typed: Vec<CanonicalUrl>,
    /// Typed hosts that are known to have had a public address, from
    /// [`Fetcher::public_names`](crate::Fetcher::public_names) of an earlier fetcher.
    pub public_names: Vec<String>,
    /// Sends a `Referer`: the document on which a URL was found, if the policy
    /// strict-origin-when-cross-origin of W3C Referrer Policy allows it.
    pub referer: bool,
    /// Signs requests by Web Bot Auth. `None` signs none.
    pub signing: Option<SigningSettings>,
    /// Certificates (PEM, one or more) to trust in addition to the platform's roots.
    pub extra_roots: Option<Vec<u8>>,
}

impl FetchConfig {
    /// Returns the defaults. Times: 60 s for an exchange, of which 10 s for connecting; 30 s for
    /// the head of an answer; 20 s between two bytes; idle connections are kept 5 s. Memory: 10 MiB
    /// for a body, 128 MiB for long bodies together. All public addresses are allowed, and no
    /// private ones.
    #[must_use]
    pub fn new(user_agent: impl Into<String>) -> FetchConfig {
        FetchConfig {
            user_agent: user_agent.into(),
            from: None,
            timeout: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(10),
            first_byte_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(20),
            keep_alive: Duration::from_secs(5),
            max_kept_connections: 1024,
            max_body: 10 << 20,
            body_filter: None,
            body_memory: 128 << 20,
            proxy: None,
            resolve: Vec::new(),
            name_servers: Vec::new(),
            name_server_rate: Some(100.0),
            access: Vec::new(),
            sessions: SiteSessions::default(),
            allow_private: false,
            allow_public: true,
            typed: Vec::new(),
            public_names: Vec::new(),
            referer: false,
            signing: None,
            extra_roots: None,
        }
    }

    /// Returns the secrets of all hosts, including secrets that are learned later from responses
    /// and logins.
    #[must_use]
    pub fn secrets(&self) -> Secrets {
        Secrets::of(&self.access).with_learned(self.sessions.secrets())
    }

    /// Returns whether the operator typed the host and port of this URL.
    #[must_use]
    pub fn is_typed(&self, url: &CanonicalUrl) -> bool {
        let host_and_port = (without_trailing_dot(url.host()).to_owned(), url.port());
        self.typed
            .iter()
            .flat_map(typed_ports)
            .any(|own| own == host_and_port)
    }
}

/// Returns the `User-Agent` value: `NAME/VERSION (+CONTACT)`, or `NAME/VERSION` without a contact.
///
/// ```
/// let contact = "https://b.example/bot".parse()?;
/// let agent = crawl_fetcher::user_agent("crawl", "0.1.0", Some(&contact));
/// assert_eq!(agent, "crawl/0.1.0 (+https://b.example/bot)");
/// # Ok::<(), crawl_fetcher::BadContact>(())
/// ```
#[must_use]
pub fn user_agent(name: &str, version: &str, contact: Option<&Contact>) -> String {
    match contact {
        Some(contact) => format!("{name}/{version} (+{contact})"),
        None => format!("{name}/{version}"),
    }
}

/// Fixed addresses for a host and port, like curl's `--resolve`. Nothing is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveOverride {
    /// The host in lower case, without a trailing dot.
    pub host: String,
    /// The port of the URL, which is also the port to connect to.
    pub port: u16,
    /// The addresses, tried in this order.
    pub addresses: Vec<IpAddr>,
}

impl ResolveOverride {
    pub(crate) fn sockets(&self) -> Vec<SocketAddr> {
        let to = |address: &IpAddr| SocketAddr::new(*address, self.port);
        self.addresses.iter().map(to).collect()
    }
}

/// Why a file can't be used as root certificates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RootCertificatesError {
    /// The PEM is broken.
    #[error("not a PEM file: {0}")]
    Pem(String),
    /// The file contains no `BEGIN CERTIFICATE`.
    #[error("it has no certificate")]
    None,
    /// A certificate is invalid, or can't be a root.
    #[error("can't use certificate {number}: {why}")]
    Certificate {
        /// The number of the certificate in the file, counted from 1.
        number: usize,
        /// The error of the TLS library.
        why: String,
    },
}

/// Checks that PEM certificates are usable as [`FetchConfig::extra_roots`].
///
/// # Errors
/// Fails with a [`RootCertificatesError`] that describes the first defect.
pub fn check_roots(pem: &[u8]) -> Result<(), RootCertificatesError> {
    let mut roots = RootCertStore::empty();
    for (number, certificate) in (1..).zip(CertificateDer::pem_slice_iter(pem)) {
        let certificate = certificate.map_err(|why| RootCertificatesError::Pem(why.to_string()))?;
        roots
            .add(certificate)
            .map_err(|why| RootCertificatesError::Certificate {
                number,
                why: why.to_string(),
            })?;
    }
    match roots.is_empty() {
        true => Err(RootCertificatesError::None),
        false => Ok(()),
    }
}

/// Why a [`Fetcher`](crate::Fetcher) can't be created from its configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetcherSetupError {
    /// A header value contains bytes that are not allowed in a header field.
    #[error("`{value}` isn't allowed in the {field} header field")]
    Header {
        /// The field's name.
        field: &'static str,
        /// The value that was given.
        value: String,
    },
    /// The URL of the proxy is invalid.
    #[error("`{value}` isn't a proxy")]
    Proxy {
        /// The value that was given.
        value: String,
        /// Why the URL is invalid.
        source: reqwest::Error,
    },
    /// The extra roots are not PEM certificates.
    #[error("can't read the extra root certificates")]
    Roots(#[source] RootCertificatesError),
    /// The TLS library supports none of its own protocol versions.
    #[error("can't set up TLS")]
    Tls(#[source] rustls::Error),
    /// The HTTP client can't be created.
    #[error("can't set up the HTTP client")]
    Client(#[source] reqwest::Error),
}
