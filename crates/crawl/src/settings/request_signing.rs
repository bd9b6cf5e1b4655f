//! The settings of the crawler's signed identity.

use std::sync::Arc;

use crawl_fetcher::SigningSettings;
use crawl_identity::DIRECTORY_PATH;
use crawl_weburl::canonicalize;

use super::setting_definitions::Operator;
use crate::error::CommandError;
use crate::identity::{KeySource, RotatingSigner};

/// Checks the settings of signatures, and reads the keys if requests may be signed.
///
/// # Errors
/// Signatures are on, but the keys can't be read, or the URL of the public keys is missing or
/// wrong.
pub(super) fn check_signing(operator: &Operator) -> Result<Option<SigningSettings>, CommandError> {
    let Some(when) = operator.signature.meaning() else {
        return Ok(None);
    };
    let agent = key_url(operator)?;
    let source = KeySource::of(&operator.signature_key.0);
    let signer = Arc::new(RotatingSigner::new(source, agent)?);
    Ok(Some(SigningSettings { signer, when }))
}

/// Returns the URL of the crawler's published keys. If `--signature-agent` is a URL without a path,
/// the returned URL has the well-known path.
///
/// # Errors
/// The URL is missing, not https, or not a URL.
pub(crate) fn key_url(operator: &Operator) -> Result<String, CommandError> {
    let text = operator.signature_agent.trim();
    let refused = |message: String| {
        CommandError::usage(message)
            .hint("give the https URL at which your keys are published, such as `https://bot.example.org`")
            .about("signature-agent")
    };
    if text.is_empty() {
        let what = "signatures need --signature-agent, the URL at which the keys are published";
        return Err(refused(what.to_owned()));
    }
    let wrong = |why: &str| refused(format!("unusable --signature-agent `{text}`: {why}"));
    let url = canonicalize(None, text).map_err(|why| wrong(&why.to_string()))?;
    let url = url.as_str();
    if !url.starts_with("https://") {
        return Err(wrong("it isn't an https URL"));
    }
    if url.contains(['?', '#']) {
        return Err(wrong("it has a query"));
    }
    Ok(
        match url
            .strip_suffix('/')
            .filter(|host| host.matches('/').count() == 2)
        {
            Some(host) => format!("{host}{DIRECTORY_PATH}"),
            None => url.to_owned(),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::{check_signing, key_url};
    use crate::settings::Settings;

    #[test]
    fn the_url_of_the_keys_is_https_and_by_default_at_the_well_known_path() {
        let mut operator = Settings::default().operator;
        let known = "https://bot.example/.well-known/http-message-signatures-directory";
        for (given, url) in [
            ("https://Bot.example", known),
            ("https://bot.example/", known),
            (known, known),
            (
                "https://bot.example/keys.json",
                "https://bot.example/keys.json",
            ),
        ] {
            operator.signature_agent = given.to_owned();
            assert_eq!(key_url(&operator).unwrap(), url);
        }
        for (given, why) in [
            ("", "signatures need --signature-agent"),
            ("http://bot.example", "it isn't an https URL"),
            ("https://bot.example/?a", "it has a query"),
            ("bot.example", "unusable --signature-agent `bot.example`"),
        ] {
            operator.signature_agent = given.to_owned();
            let refusal = key_url(&operator).unwrap_err();
            assert!(refusal.message.contains(why), "{}", refusal.message);
        }
    }

    #[test]
    fn without_signatures_no_key_is_needed() {
        assert!(
            check_signing(&Settings::default().operator)
                .unwrap()
                .is_none()
        );
    }
}
