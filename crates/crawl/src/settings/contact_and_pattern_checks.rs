//! Checks regular expressions, and the contact and the product token that every request carries.

use crawl_fetcher::{BadContact, Contact};
use crawl_policy::ProductToken;
use regex::Regex;

/// Maximum bytes of a product token, which is part of each request's `User-Agent`.
/// Beyond the limit: refused.
pub(crate) const MAX_AGENT_BYTES: usize = 64;

pub(crate) const CONTACT_HINT: &str =
    "it looks like `you@example.org` or `https://example.org/bot`";
pub(crate) const AGENT_HINT: &str =
    "give a single word such as `crawl`; version and contact are added";
pub(crate) const PATTERN_HINT: &str = "for the syntax, see https://docs.rs/regex";

/// Parses a contact; `None` if it is empty.
///
/// # Errors
/// The text is neither an email address nor an http or https URL.
pub(crate) fn read_contact(text: &str) -> Result<Option<Contact>, BadContact> {
    match text.trim() {
        "" => Ok(None),
        text => text.parse().map(Some),
    }
}

/// Parses a product token.
///
/// # Errors
/// The reason why the text isn't a product token.
pub(crate) fn read_agent(text: &str) -> Result<ProductToken, String> {
    let bytes = text.len();
    if bytes > MAX_AGENT_BYTES {
        return Err(format!(
            "`{text}` has {bytes} bytes, the maximum is {MAX_AGENT_BYTES}"
        ));
    }
    ProductToken::new(text).map_err(|why| why.to_string())
}

/// Checks a regular expression.
///
/// # Errors
/// The expression and what is wrong with it.
pub(crate) fn check_pattern(text: &str) -> Result<(), String> {
    let Err(why) = Regex::new(text) else {
        return Ok(());
    };
    let message = why.to_string();
    let message = message.lines().last().unwrap_or_default();
    Err(format!(
        "`{text}`: {}",
        message.trim_start_matches("error: ")
    ))
}

/// Returns the User-Agent header: `NAME/VERSION (+CONTACT)`.
pub(crate) fn user_agent(agent: &ProductToken, contact: Option<&Contact>) -> String {
    crawl_fetcher::user_agent(agent.as_str(), env!("CARGO_PKG_VERSION"), contact)
}
