//! Addresses that the user sets for a name with `--resolve`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crawl_weburl::{canonicalize, host_address, without_trailing_dot};

use super::ValueParseError;
use super::text_serde::as_string;

/// Addresses to use instead of a DNS lookup, in curl's syntax: `HOST:PORT:ADDR[,ADDR]..`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AddressOverride {
    /// Host name, lower case.
    pub(crate) host: String,
    /// Port to which the override applies.
    pub(crate) port: u16,
    /// The addresses to connect to; at least one.
    pub(crate) addresses: Vec<IpAddr>,
}

as_string!(AddressOverride);

impl FromStr for AddressOverride {
    type Err = ValueParseError;

    fn from_str(text: &str) -> Result<AddressOverride, ValueParseError> {
        let bad = |why: &str| ValueParseError::new(format!("`{text}` isn't HOST:PORT:ADDR: {why}"));
        if text.contains("://") {
            return Err(bad("give the host without a scheme"));
        }
        let mut parts = text.splitn(3, ':');
        let (Some(host), Some(port), Some(addresses)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(bad("it looks like `example.org:443:192.0.2.7`"));
        };
        let port = port
            .parse()
            .map_err(|_| bad(&format!("`{port}` isn't a port")))?;
        let address = |text: &str| {
            host_address(text).ok_or_else(|| bad(&format!("`{text}` isn't an IP address")))
        };
        let addresses = addresses
            .split(',')
            .map(address)
            .collect::<Result<_, _>>()?;
        let host = host_name(host).ok_or_else(|| bad(&format!("`{host}` isn't a host name")))?;
        Ok(AddressOverride {
            host,
            port,
            addresses,
        })
    }
}

/// Returns a host name as in URLs: lower case and Punycode. `None` for an address, which needs no
/// lookup.
fn host_name(text: &str) -> Option<String> {
    let url = canonicalize(None, &format!("http://{text}/")).ok()?;
    let name = without_trailing_dot(url.host());
    let is_name = !text.contains(['@', '*', '/', '?', '#']) && host_address(name).is_none();
    is_name.then(|| name.to_owned())
}

impl fmt::Display for AddressOverride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:", self.host, self.port)?;
        for (position, address) in self.addresses.iter().enumerate() {
            let comma = if position > 0 { "," } else { "" };
            match address {
                IpAddr::V4(v4) => write!(f, "{comma}{v4}")?,
                IpAddr::V6(v6) => write!(f, "{comma}[{v6}]")?,
            }
        }
        Ok(())
    }
}
