//! An address to listen on as users write it: `127.0.0.1:8787`, `[::1]:8787`, `localhost:8787`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use super::ValueParseError;
use super::text_serde::as_string;

/// An address to listen on; `None` for an empty text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListenAddress(pub(crate) Option<SocketAddr>);

impl FromStr for ListenAddress {
    type Err = ValueParseError;

    fn from_str(text: &str) -> Result<ListenAddress, ValueParseError> {
        if text.is_empty() {
            return Ok(ListenAddress(None));
        }
        if let Some(port) = text.strip_prefix("localhost:")
            && let Ok(port) = port.parse()
        {
            let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
            return Ok(ListenAddress(Some(address)));
        }
        let address = text.parse().map_err(|_| {
            ValueParseError::new(format!(
                "can't listen on `{text}`: give an IP and a port, as in `127.0.0.1:8787` or \
                 `[::1]:8787`"
            ))
        })?;
        Ok(ListenAddress(Some(address)))
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |address| address.fmt(f))
    }
}

as_string!(ListenAddress);

#[cfg(test)]
mod tests {
    use super::ListenAddress;

    #[test]
    fn written_address_is_read_back() {
        for (text, written) in [
            ("", ""),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("localhost:9464", "127.0.0.1:9464"),
            ("[::1]:9464", "[::1]:9464"),
        ] {
            let address: ListenAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), written);
            assert_eq!(written.parse(), Ok(address));
        }
        for wrong in ["9464", "127.0.0.1", "localhost:x", "example.org:80"] {
            let message = wrong.parse::<ListenAddress>().unwrap_err().to_string();
            assert!(
                message.starts_with(&format!("can't listen on `{wrong}`: ")),
                "{message}"
            );
        }
    }
}
