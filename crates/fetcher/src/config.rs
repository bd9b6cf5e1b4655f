//! The operator's choices about exchanges.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crawl_weburl::{CanonicalUrl, without_trailing_dot};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::address_rules::typed_ports;
use crate::body_filter::BodyFilter;
use crate::contact::Contact;
use crate::host_access::HostAccess;

/// The settings of exchanges. [`FetchConfig::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct FetchConfig {
    /// The whole `User-Agent` field; [`user_agent`] writes it.
    pub user_agent: String,
    /// The `From` field (RFC 9110 section 10.1.2): a mail address, where the contact is one.
    pub from: Option<String>,
    /// For a whole exchange, from looking the name up to the last byte of the body.
    pub timeout: Duration,
    /// For the name, the connection and the TLS handshake together.
    pub connect_timeout: Duration,
    /// From the moment when the connection stands to the whole head of an answer.
    pub first_byte_timeout: Duration,
    /// Between two bytes of the body.
    pub idle_timeout: Duration,
    /// The time for which an idle connection is kept; none is kept where this is zero. At most 32
    /// are kept for a host and 1,024 in all, those in use included.
    pub keep_alive: Duration,
    /// Kept bytes of a body, as it is encoded; what is longer is cut there.
    pub max_body: u64,
    /// Decides which of the bodies that requests ask for by [`is_filtered`] are read; none: all.
    ///
    /// [`is_filtered`]: crate::FetchRequest::is_filtered
    pub body_filter: Option<BodyFilter>,
    /// Memory for long bodies, bytes: what goes beyond the first 256 KiB of each waits for
    /// its share of this, and holds it until the exchange is dropped.
    pub body_memory: u64,
    /// A proxy for every request: `http://`, `https://`, `socks5://` (names are looked up
    /// here) or `socks5h://` (names are looked up by the proxy). With an HTTP or `socks5h`
    /// proxy only URLs with a literal address can be judged before they are asked for.
    pub proxy: Option<String>,
    /// Addresses that stand in for a lookup, as the operator typed them. They are not
    /// judged: who types an address wants it.
    pub resolve: Vec<ResolveOverride>,
    /// Name servers that are asked instead of the system's; the hosts file is not read then.
    pub name_servers: Vec<SocketAddr>,
    /// Maximum look-ups per second to each name server that is not on loopback. A look-up queries
    /// both address families. `None` or 0: no limit.
    pub name_server_rate: Option<f64>,
    /// The fields that single hosts are sent beyond those of every host.
    pub access: Vec<HostAccess>,
    /// Loopback and private addresses are asked like any other. Addresses that can belong
    /// to no single server stay refused.
    pub allow_private: bool,
    /// Anyone's public servers are asked. False where nobody answers for the requests: who
    /// owns a visited site must be able to reach someone.
    pub allow_public: bool,
    /// URLs that the operator typed (the seeds). Their hosts are asked wherever they are, at
    /// the port that stands there, or those of http and https where none does; a name only
    /// until it has a public address.
    pub typed: Vec<CanonicalUrl>,
    /// Hosts among the typed ones that are known to have had a public address, as
    /// [`Fetcher::public_names`](crate::Fetcher::public_names) of an earlier fetcher has them.
    pub public_names: Vec<String>,
    /// Requests name the document on which their URL was found (`Referer`), as far as
    /// strict-origin-when-cross-origin of W3C Referrer Policy lets them.
    pub referer: bool,
    /// Certificates (PEM, one or more) trusted besides the platform's roots.
    pub extra_roots: Option<Vec<u8>>,
}

impl FetchConfig {
    /// The defaults: 60 s for an exchange, 10 s of them for connecting, 30 s for the head of
    /// an answer, 20 s between two bytes; bodies of 10 MiB, 128 MiB of memory for the long
    /// ones; idle connections kept 5 s, everything public and nothing private.
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
            max_body: 10 << 20,
            body_filter: None,
            body_memory: 128 << 20,
            proxy: None,
            resolve: Vec::new(),
            name_servers: Vec::new(),
            name_server_rate: Some(100.0),
            access: Vec::new(),
            allow_private: false,
            allow_public: true,
            typed: Vec::new(),
            public_names: Vec::new(),
            referer: false,
            extra_roots: None,
        }
    }

    /// Returns whether the operator typed the host and port of this URL.
    #[must_use]
    pub fn is_typed(&self, url: &CanonicalUrl) -> bool {
        let asked = (without_trailing_dot(url.host()).to_owned(), url.port());
        self.typed
            .iter()
            .flat_map(typed_ports)
            .any(|own| own == asked)
    }
}

/// `NAME/VERSION (+CONTACT)`, or `NAME/VERSION` where there is no contact.
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

/// As curl's `--resolve` has it: for this host and port these addresses are connected to, and
/// nothing is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveOverride {
    /// In lower case, without a trailing dot.
    pub host: String,
    /// The port of the URL, and the one that is connected to.
    pub port: u16,
    /// Tried in this order.
    pub addresses: Vec<IpAddr>,
}

impl ResolveOverride {
    pub(crate) fn sockets(&self) -> Vec<SocketAddr> {
        let to = |address: &IpAddr| SocketAddr::new(*address, self.port);
        self.addresses.iter().map(to).collect()
    }
}

/// The reason why a file can't be trusted as roots.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadRoots {
    /// Broken PEM.
    #[error("it is no PEM: {0}")]
    Pem(String),
    /// No `BEGIN CERTIFICATE`.
    #[error("it holds no certificate")]
    None,
    /// Bytes that are no certificate, or one that no chain can end in.
    #[error("certificate {number} in it can't be used: {why}")]
    Certificate {
        /// Counted from 1.
        number: usize,
        /// The error of the TLS library.
        why: String,
    },
}

/// Returns whether PEM certificates can stand in [`FetchConfig::extra_roots`].
///
/// # Errors
/// [`BadRoots`] says what is wrong with the first that can't.
pub fn check_roots(pem: &[u8]) -> Result<(), BadRoots> {
    let mut roots = RootCertStore::empty();
    for (number, certificate) in (1..).zip(CertificateDer::pem_slice_iter(pem)) {
        let certificate = certificate.map_err(|why| BadRoots::Pem(why.to_string()))?;
        roots
            .add(certificate)
            .map_err(|why| BadRoots::Certificate {
                number,
                why: why.to_string(),
            })?;
    }
    match roots.is_empty() {
        true => Err(BadRoots::None),
        false => Ok(()),
    }
}

/// The reason why a [`Fetcher`](crate::Fetcher) can't be made from its configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// Bytes that no header field may hold.
    #[error("`{value}` can't stand in the {field} header field")]
    Header {
        /// The field's name.
        field: &'static str,
        /// The value that was given.
        value: String,
    },
    /// Not the URL of a proxy.
    #[error("`{value}` is no proxy")]
    Proxy {
        /// The value that was given.
        value: String,
        /// The defect.
        source: reqwest::Error,
    },
    /// Not PEM certificates.
    #[error("the extra root certificates can't be read")]
    Roots(#[source] reqwest::Error),
    /// The client itself.
    #[error("the HTTP client can't be set up")]
    Client(#[source] reqwest::Error),
}
