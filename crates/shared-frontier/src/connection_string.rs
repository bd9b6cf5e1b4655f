//! Connection strings: the database server's address, the user, and the encryption of the
//! connection.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use crawl_weburl::{AddressClass, class_of_host};
use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::error::SharedCrawlError;

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// A PostgreSQL connection string in URL form: `postgres://crawler@db.example.org/crawl`.
///
/// The string may name several hosts (the first that responds is used), and the libpq parameters
/// that the driver knows. Three parameters are handled here:
///
/// - `sslmode`: `verify-full` (the default if a host is not on this machine) or `disable`;
/// - `sslrootcert`: a PEM file with root certificates, instead of the system's;
/// - `require_auth=password`: lets the database server request the password in clear text without
///   TLS.
///
/// No output of this type shows a password.
#[derive(Clone)]
pub struct ConnectionString {
    config: Config,
    /// A configuration for each host of the string.
    each_host: Vec<Config>,
    encryption: TlsMode,
    allows_cleartext: bool,
    /// The connection string without its password.
    shown: String,
}

/// Whether connections to a database server are encrypted, and how the database server is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TlsMode {
    None,
    /// The connection is encrypted, and the database server's certificate and name are verified.
    Verified(RootCertificates),
}

/// The trusted root certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RootCertificates {
    System,
    /// The certificates in a PEM file.
    File(PathBuf),
}

impl ConnectionString {
    /// Parses a connection string.
    ///
    /// # Errors
    /// [`SharedCrawlError::ConnectionString`], which does not show the string, or
    /// [`SharedCrawlError::WeakEncryption`] for an `sslmode` that encrypts without verifying the
    /// database server.
    pub fn parse(text: &str) -> Result<ConnectionString, SharedCrawlError> {
        let bad = |what: &str| SharedCrawlError::ConnectionString {
            source: what.to_owned().into(),
        };
        let scheme = SCHEMES.iter().find(|scheme| text.starts_with(**scheme));
        let scheme = scheme.ok_or_else(|| bad("it doesn't start with postgres://"))?;
        let rest = &text[scheme.len()..];
        let (body, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (credentials, place) = match body.split_once('@') {
            Some((credentials, place)) => (credentials, place),
            None => ("", body),
        };
        // A second `@` is refused. A name or password may contain an unescaped `@`, but the driver
        // would split the string at the first one.
        if place.contains('@') || credentials.contains('/') || query.contains('@') {
            return Err(bad(
                "write `@`, `/` and `?` in a name or password as %40, %2F and %3F",
            ));
        }
        let (user, mut password) = match credentials.split_once(':') {
            Some((user, password)) => (user, Some(decoded(password))),
            None => (credentials, None),
        };
        let (mut mode, mut roots, mut others) = (None, None, Vec::new());
        let mut allows_cleartext = false;
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (key, value) = parameter
                .split_once('=')
                .ok_or_else(|| bad("a parameter has no value"))?;
            let value = decoded(value);
            match &*decoded(key) {
                b"password" => password = Some(value),
                b"require_auth" if &*value == b"password" => allows_cleartext = true,
                b"require_auth" => return Err(bad("require_auth accepts only `password`")),
                b"sslmode" => mode = Some((parameter, text_of(&value))),
                b"sslrootcert" => roots = Some((parameter, text_of(&value))),
                _ => others.push(parameter),
            }
        }
        let text_at = |place: &str, parameters: &[&str]| {
            let at = if user.is_empty() { "" } else { "@" };
            let query = if parameters.is_empty() { "" } else { "?" };
            format!("{scheme}{user}{at}{place}{query}{}", parameters.join("&"))
        };
        let plain = |parameters: &[&str]| text_at(place, parameters);
        let read = |text: String| -> Result<Config, SharedCrawlError> {
            let mut config: Config = text.parse().map_err(|why: tokio_postgres::Error| {
                SharedCrawlError::ConnectionString { source: why.into() }
            })?;
            if let Some(password) = &password {
                config.password(password);
            }
            Ok(config)
        };
        let mut config = read(plain(&others))?;
        let [mode_value, roots_value] =
            [&mode, &roots].map(|parameter| parameter.as_ref().map(|(_, value)| value.as_str()));
        let encryption = encryption(&config, mode_value, roots_value)?;
        let ssl_mode = match encryption {
            TlsMode::None => SslMode::Disable,
            TlsMode::Verified(_) => SslMode::Require,
        };
        config.ssl_mode(ssl_mode);
        let mut each_host = Vec::new();
        for place in places(place, &others) {
            let mut config = read(text_at(&place, &others))?;
            config.ssl_mode(ssl_mode);
            each_host.push(config);
        }
        // Keep the parameters as they were written, with percent-encoding. A decoded value could
        // end its parameter or begin another one.
        let written = [mode, roots].into_iter().flatten();
        let written = written.map(|(parameter, _)| parameter);
        let cleartext = allows_cleartext.then_some("require_auth=password");
        let parameters = others.iter().copied().chain(written).chain(cleartext);
        Ok(ConnectionString {
            shown: plain(&parameters.collect::<Vec<_>>()),
            each_host,
            allows_cleartext,
            config,
            encryption,
        })
    }

    /// Returns whether the string contains a password. If it does, anyone who sees the string can
    /// connect.
    #[must_use]
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    /// Returns the text without the password, for display and storage.
    #[must_use]
    pub fn without_password(&self) -> &str {
        &self.shown
    }

    /// Returns the database server's address for messages: hosts, ports and database, without the
    /// user.
    #[must_use]
    pub fn address(&self) -> String {
        let hosts = self
            .hosts_and_ports()
            .map(|(host, port)| format!("{host}:{port}"));
        let hosts: Vec<String> = hosts.collect();
        let database = self.config.get_dbname().unwrap_or_default();
        format!("postgres://{}/{database}", hosts.join(","))
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Returns one configuration for each host, in the order of the hosts.
    pub(crate) fn config_of_each_host(&self) -> Vec<Config> {
        self.each_host.clone()
    }

    /// Returns whether the database server may request the password in clear text without TLS.
    pub(crate) fn allows_cleartext(&self) -> bool {
        self.allows_cleartext
    }

    pub(crate) fn encryption(&self) -> &TlsMode {
        &self.encryption
    }

    /// Returns each host with its port, in order.
    pub(crate) fn hosts_and_ports(&self) -> impl Iterator<Item = (Cow<'_, str>, u16)> {
        let ports = self.config.get_ports();
        let hosts = self.config.get_hosts().iter().enumerate();
        hosts.map(|(at, host)| {
            let host = match host {
                Host::Tcp(name) => Cow::from(name),
                #[cfg(unix)]
                Host::Unix(path) => path.to_string_lossy(),
            };
            let port = ports.get(at).or(ports.first()).copied();
            (host, port.unwrap_or(5432))
        })
    }
}

impl fmt::Display for ConnectionString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for ConnectionString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ConnectionString")
            .field(&self.shown)
            .finish()
    }
}

/// Splits `HOST:PORT,HOST:PORT/DATABASE` into one text `HOST:PORT/DATABASE` for each host. Does not
/// split hosts that are given as parameters.
fn places(place: &str, parameters: &[&str]) -> Vec<String> {
    let lists = ["host=", "hostaddr=", "port=", "load_balance_hosts="];
    let is_listed = |parameter: &&str| lists.iter().any(|list| parameter.starts_with(list));
    if parameters.iter().any(is_listed) {
        return vec![place.to_owned()];
    }
    let (hosts, database) = match place.split_once('/') {
        Some((hosts, database)) => (hosts, format!("/{database}")),
        None => (place, String::new()),
    };
    let hosts = hosts.split(',');
    hosts.map(|host| format!("{host}{database}")).collect()
}

fn decoded(text: &str) -> Cow<'_, [u8]> {
    percent_decode_str(text).into()
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn encryption(
    config: &Config,
    mode: Option<&str>,
    roots: Option<&str>,
) -> Result<TlsMode, SharedCrawlError> {
    let roots = match roots {
        None | Some("system") => RootCertificates::System,
        Some(file) => RootCertificates::File(file.into()),
    };
    // Also check `hostaddr`: it may give a local host name the address of another machine.
    let is_here = config.get_hosts().iter().all(is_local)
        && config
            .get_hostaddrs()
            .iter()
            .all(std::net::IpAddr::is_loopback);
    match mode {
        Some("verify-full") => Ok(TlsMode::Verified(roots)),
        Some("disable") => Ok(TlsMode::None),
        None if is_here && roots == RootCertificates::System => Ok(TlsMode::None),
        None => Ok(TlsMode::Verified(roots)),
        Some(mode) => Err(SharedCrawlError::WeakEncryption {
            mode: mode.to_owned(),
        }),
    }
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => class_of_host(name) == Some(AddressClass::Loopback),
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::{ConnectionString, RootCertificates, TlsMode};
    use crate::error::SharedCrawlError;

    fn verified(file: Option<&str>) -> TlsMode {
        TlsMode::Verified(file.map_or(RootCertificates::System, |file| {
            RootCertificates::File(file.into())
        }))
    }

    #[test]
    fn connections_off_loopback_are_encrypted_and_verified_by_default() {
        let check = |text: &str, expected: TlsMode| {
            let parsed = ConnectionString::parse(text).unwrap();
            assert_eq!(*parsed.encryption(), expected, "{text}");
        };
        for local in [
            "127.0.0.1",
            "localhost:5433",
            "[::1]:5432,127.0.0.1",
            "%2Frun%2Fpostgresql",
        ] {
            check(&format!("postgres://crawler@{local}/crawl"), TlsMode::None);
        }
        for remote in ["db.example.org", "192.0.2.7", "127.0.0.1,db.example.org"] {
            check(
                &format!("postgres://crawler@{remote}/crawl"),
                verified(None),
            );
        }
        let on_loopback = "postgres://127.0.0.1/crawl?";
        check(&format!("{on_loopback}sslmode=verify-full"), verified(None));
        check(
            &format!("{on_loopback}sslrootcert=/a/ca.pem"),
            verified(Some("/a/ca.pem")),
        );
        check(
            "postgres://localhost/crawl?hostaddr=192.0.2.7",
            verified(None),
        );
        check(
            "postgres://db.example.org/crawl?sslmode=disable",
            TlsMode::None,
        );
        let system = "postgres://db.example.org/crawl?sslrootcert=system";
        check(system, verified(None));
        for mode in ["allow", "prefer", "require", "verify-ca", "VERIFY-FULL"] {
            let text = format!("postgres://db.example.org/crawl?sslmode={mode}");
            let refused = ConnectionString::parse(&text).unwrap_err();
            assert!(
                matches!(refused, SharedCrawlError::WeakEncryption { .. }),
                "{mode}"
            );
        }
    }

    #[test]
    fn parameters_are_shown_as_they_were_written() {
        let text = "postgres://c@db.example.org/d?sslrootcert=/a%26sslmode=disable%40b&sslmode=verify%2Dfull";
        let parsed = ConnectionString::parse(text).unwrap();
        let again = ConnectionString::parse(parsed.without_password()).unwrap();
        for parsed in [parsed, again] {
            let roots = verified(Some("/a&sslmode=disable@b"));
            assert_eq!(parsed.encryption, roots, "{parsed}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        for text in [
            "postgres://me:s3cr%40t@db.example.org:5433/crawl?target_session_attrs=read-write",
            "postgresql://me@db.example.org:5433/crawl?password=s3cr%40t&target_session_attrs=read-write",
            "postgres://db.example.org:5433/crawl?user=me&pass%77ord=s3cr%40t",
        ] {
            let parsed = ConnectionString::parse(text).unwrap();
            assert_eq!(parsed.config().get_password(), Some(&b"s3cr@t"[..]));
            assert_eq!(parsed.config().get_user(), Some("me"));
            assert!(parsed.has_password());
            assert_eq!(parsed.address(), "postgres://db.example.org:5433/crawl");
            let shown = format!("{parsed} {parsed:?} {:?}", parsed.config());
            assert!(!shown.contains("s3cr"), "{shown}");
            let again = ConnectionString::parse(parsed.without_password()).unwrap();
            assert!(!again.has_password());
            assert_eq!(again.config().get_user(), Some("me"));
            assert_eq!(again.without_password(), parsed.without_password());
        }
    }

    #[test]
    fn a_malformed_string_is_refused_without_showing_it() {
        for text in [
            "host=db.example.org password=s3cret",
            "https://me:s3cret@db.example.org/",
            "postgres://me:s3@cret@db.example.org/crawl",
            "postgres://me:s3/cret@db.example.org/crawl",
            "postgres://me:s3?cret@db.example.org/crawl",
            "postgres://me:s3cret@db.example.org:s3cret/crawl",
            "postgres://me:s3cret@db.example.org/crawl?sslcert=s3cret",
            "postgres://me@db.example.org/crawl?s3cret",
        ] {
            let error = ConnectionString::parse(text).unwrap_err();
            let mut shown = format!("{error} {error:?}");
            let mut source = std::error::Error::source(&error);
            while let Some(why) = source {
                shown += &format!(" {why}");
                source = why.source();
            }
            assert!(!shown.contains("cret"), "{shown}");
        }
    }
}
