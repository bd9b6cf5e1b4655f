//! The secret that the owner of a crawl shows to control it.

use std::fmt;
use std::fs;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::error::CommandError;

/// The fewest characters of a token: one of 16 that is drawn at random is not guessed at the
/// rate that a client may ask.
const MIN_TOKEN_BYTES: usize = 16;
/// The most bytes that are read of a token's file.
const MAX_TOKEN_BYTES: usize = 4096;

/// A token, of which only the digest is kept.
#[derive(Clone)]
pub(crate) struct Token([u8; 32]);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token([redacted])")
    }
}

impl Token {
    /// The token in this file; white space around it does not count.
    pub(crate) fn of_file(path: &Path) -> Result<Token, CommandError> {
        let text = fs::read_to_string(path).map_err(|why| {
            CommandError::usage(format!(
                "can't read the token file `{}`: {why}",
                path.display()
            ))
        })?;
        Token::of_text(&text, &format!("the token in `{}`", path.display()))
    }

    /// The token as it stands in `text`, which messages call `name`.
    pub(crate) fn of_text(text: &str, name: &str) -> Result<Token, CommandError> {
        let text = text.trim();
        let wrong = match text.len() {
            length if length < MIN_TOKEN_BYTES => {
                format!("has fewer than {MIN_TOKEN_BYTES} characters")
            }
            length if length > MAX_TOKEN_BYTES => format!("has more than {MAX_TOKEN_BYTES} bytes"),
            // What a header field can carry (RFC 6750 section 2.1).
            _ if !text.bytes().all(|byte| byte.is_ascii_graphic()) => {
                "holds other characters than printable ASCII".to_owned()
            }
            _ => return Ok(Token(Sha256::digest(text.as_bytes()).into())),
        };
        Err(CommandError::usage(format!("{name} {wrong}"))
            .hint("draw one: `head -c 24 /dev/urandom | base64`"))
    }

    /// Returns whether this is the token. Takes as long whatever is given: digests are compared,
    /// and all of their bytes.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        let given: [u8; 32] = Sha256::digest(given).into();
        self.0.ct_eq(&given).into()
    }
}

#[cfg(test)]
mod tests {
    use super::Token;

    #[test]
    fn a_token_is_long_and_fits_a_header_field() {
        let read = |text: &str| Token::of_text(text, "it").map_err(|refusal| refusal.message);
        assert_eq!(
            read(" short\n").unwrap_err(),
            "it has fewer than 16 characters"
        );
        assert_eq!(
            read("sixteen letters in").unwrap_err(),
            "it holds other characters than printable ASCII"
        );
        assert_eq!(
            read(&"x".repeat(5000)).unwrap_err(),
            "it has more than 4096 bytes"
        );
        let token = read("0123456789abcdef\n").unwrap();
        assert!(token.is(b"0123456789abcdef"));
        assert!(!token.is(b"0123456789abcdeF") && !token.is(b""));
        assert_eq!(format!("{token:?}"), "Token([redacted])");
    }
}
