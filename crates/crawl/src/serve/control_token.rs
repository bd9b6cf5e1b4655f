//! The secret that authorizes control of a crawl.

use std::fmt;
use std::fs;
use std::path::Path;

use ring::digest::{Digest, SHA256, digest};
use subtle::ConstantTimeEq as _;

use crate::error::CommandError;

/// Minimum length of a token. A random token of 16 characters can't be guessed at the rate of
/// requests that a client is allowed.
const MIN_TOKEN_BYTES: usize = 16;
/// Maximum bytes of a token.
const MAX_TOKEN_BYTES: usize = 4096;

/// The digest of the token that authorizes control of a crawl. The token itself isn't stored.
#[derive(Clone)]
pub(crate) struct ControlTokenDigest(Digest);

impl fmt::Debug for ControlTokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ControlTokenDigest([redacted])")
    }
}

impl ControlTokenDigest {
    /// Reads the token from a file, without surrounding white space.
    pub(crate) fn of_file(path: &Path) -> Result<ControlTokenDigest, CommandError> {
        let text = fs::read_to_string(path).map_err(|why| {
            CommandError::usage(format!(
                "can't read the token file `{}`: {why}",
                path.display()
            ))
        })?;
        ControlTokenDigest::of_text(&text, &format!("the token in `{}`", path.display()))
    }

    /// Parses a token from `text`. Error messages call it `name`.
    pub(crate) fn of_text(text: &str, name: &str) -> Result<ControlTokenDigest, CommandError> {
        let text = text.trim();
        let wrong = match text.len() {
            length if length < MIN_TOKEN_BYTES => {
                format!("has fewer than {MIN_TOKEN_BYTES} characters")
            }
            length if length > MAX_TOKEN_BYTES => format!("has more than {MAX_TOKEN_BYTES} bytes"),
            // A token in a header field has only printable ASCII characters (RFC 6750 section 2.1).
            _ if !text.bytes().all(|byte| byte.is_ascii_graphic()) => {
                "has characters that aren't printable ASCII".to_owned()
            }
            _ => return Ok(ControlTokenDigest(digest(&SHA256, text.as_bytes()))),
        };
        Err(CommandError::usage(format!("{name} {wrong}"))
            .hint("generate one with `head -c 24 /dev/urandom | base64`"))
    }

    /// Returns whether `given` is the token. Compares all bytes of the digests, so the time taken
    /// doesn't reveal how many match.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        let given = digest(&SHA256, given);
        self.0.as_ref().ct_eq(given.as_ref()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::ControlTokenDigest;

    #[test]
    fn a_token_is_long_and_fits_a_header_field() {
        let read =
            |text: &str| ControlTokenDigest::of_text(text, "it").map_err(|refusal| refusal.message);
        assert_eq!(
            read(" short\n").unwrap_err(),
            "it has fewer than 16 characters"
        );
        assert_eq!(
            read("sixteen letters in").unwrap_err(),
            "it has characters that aren't printable ASCII"
        );
        assert_eq!(
            read(&"x".repeat(5000)).unwrap_err(),
            "it has more than 4096 bytes"
        );
        let token = read("0123456789abcdef\n").unwrap();
        assert!(token.is(b"0123456789abcdef"));
        assert!(!token.is(b"0123456789abcdeF") && !token.is(b""));
        assert_eq!(format!("{token:?}"), "ControlTokenDigest([redacted])");
    }
}
