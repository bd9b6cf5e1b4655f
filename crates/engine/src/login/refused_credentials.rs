//! Recognizes credentials that a site refused before. Stores only a salted digest of the
//! credentials.

use std::fmt::Write as _;
use std::num::NonZeroU32;

use crawl_archive::Timestamp;
use crawl_fetcher::RefusedCredentialsDigest;
use crawl_scheduler::Tick;
use ring::pbkdf2::{self, PBKDF2_HMAC_SHA256};
use ring::rand::{SecureRandom as _, SystemRandom};

use super::{LoginFailure, LoginMethod, SiteLogin};

/// The number of PBKDF2 rounds of a digest. More rounds make guessing a password from its digest
/// slower, but block the crawl loop longer at each login.
const ROUNDS: NonZeroU32 = NonZeroU32::new(20_000).unwrap();
const SALT_BYTES: usize = 16;
const DIGEST_BYTES: usize = 32;

/// Returns the digest of credentials with a new random salt. `None` if the system provides no
/// random numbers; then a refusal is not remembered.
pub(crate) fn digest_of(
    now: Tick,
    login: &SiteLogin,
    credentials: &[(String, String)],
) -> Option<RefusedCredentialsDigest> {
    let mut salt = [0; SALT_BYTES];
    SystemRandom::new().fill(&mut salt).ok()?;
    let salt = hex(&salt);
    Some(RefusedCredentialsDigest {
        at: now.as_millis(),
        digest: digest(&salt, login, credentials),
        salt,
    })
}

/// Returns whether these credentials are the refused ones, and would be sent to the same form or in
/// the same header field.
pub(crate) fn is_same(
    refused: &RefusedCredentialsDigest,
    login: &SiteLogin,
    credentials: &[(String, String)],
) -> bool {
    refused.digest == digest(&refused.salt, login, credentials)
}

/// Returns the failure of a login that is not tried, because the site refused the same credentials
/// before.
pub(crate) fn refused_before(refused: &RefusedCredentialsDigest) -> LoginFailure {
    let at = Timestamp::from_micros(refused.at.saturating_mul(1_000));
    LoginFailure {
        why: format!("the credentials have not changed since the site refused them at {at}"),
        is_refused: true,
    }
}

fn digest(salt: &str, login: &SiteLogin, credentials: &[(String, String)]) -> String {
    let target = match &login.method {
        LoginMethod::Form { url, .. } => url.as_str(),
        LoginMethod::Token { header } => header,
    };
    let mut text = String::new();
    let parts = credentials.iter().flat_map(|(name, value)| [name, value]);
    for part in [target].into_iter().chain(parts.map(String::as_str)) {
        // Include the length of each part. Otherwise the parts `ab` and `c` would give the same
        // text as the parts `a` and `bc`.
        let _ = write!(text, "{}:{part}", part.len());
    }
    let mut digest = [0; DIGEST_BYTES];
    pbkdf2::derive(
        PBKDF2_HMAC_SHA256,
        ROUNDS,
        salt.as_bytes(),
        text.as_bytes(),
        &mut digest,
    );
    hex(&digest)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
