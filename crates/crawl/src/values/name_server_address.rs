//! A name server as users write it: `192.0.2.53`, `127.0.0.1:5353`, `[::1]:53`.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use crawl_weburl::host_address;

use super::ValueParseError;
use super::text_serde::as_string;

/// The port of DNS (RFC 1035 section 4.2).
const PORT: u16 = 53;

/// The address of a DNS server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameServerAddress(pub(crate) SocketAddr);

impl FromStr for NameServerAddress {
    type Err = ValueParseError;

    fn from_str(text: &str) -> Result<NameServerAddress, ValueParseError> {
        let socket = match host_address(text) {
            Some(address) => Ok(SocketAddr::new(address, PORT)),
            None => text.parse(),
        };
        let message =
            || format!("`{text}` isn't a name server: it looks like `192.0.2.53` or `[::1]:53`");
        socket
            .map(NameServerAddress)
            .map_err(|_| ValueParseError::new(message()))
    }
}

impl fmt::Display for NameServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.port() {
            PORT => self.0.ip().fmt(f),
            _ => self.0.fmt(f),
        }
    }
}

as_string!(NameServerAddress);

#[cfg(test)]
mod tests {
    use super::NameServerAddress;

    #[test]
    fn written_address_is_read_back() {
        for (text, written) in [
            ("192.0.2.53", "192.0.2.53"),
            ("192.0.2.53:53", "192.0.2.53"),
            ("127.0.0.1:5353", "127.0.0.1:5353"),
            ("::1", "::1"),
            ("[::1]", "::1"),
            ("[::1]:54", "[::1]:54"),
        ] {
            let server: NameServerAddress = text.parse().unwrap();
            assert_eq!(server.to_string(), written);
            assert_eq!(written.parse(), Ok(server));
        }
        for wrong in ["", "dns.example", "192.0.2.53:", "192.0.2.53:x", "::1]:53"] {
            let message = wrong.parse::<NameServerAddress>().unwrap_err().to_string();
            assert!(
                message.starts_with(&format!("`{wrong}` isn't a name server")),
                "{message}"
            );
        }
    }
}
