//! The contact and the product token, which stand in each request, and the check of patterns.

use crawl_policy::ProductToken;
use crawl_weburl::canonicalize;
use regex::Regex;

/// Bytes of a contact, which stands in each request's `User-Agent`. A mail address has at most 254
/// (RFC 5321 section 4.5.3.1.3).
pub(crate) const MAX_CONTACT_BYTES: usize = 256;
/// Bytes of a product token, which stands there too.
pub(crate) const MAX_AGENT_BYTES: usize = 64;

pub(crate) const CONTACT_HINT: &str =
    "it is a mail address such as `you@example.org`, or an http or https URL";
pub(crate) const AGENT_HINT: &str =
    "a product token is a single word such as `crawl`; version and contact are added";
pub(crate) const PATTERN_HINT: &str = "the syntax is that of https://docs.rs/regex";

/// Reads a contact; an empty one is none.
///
/// # Errors
/// The text, and what is wrong with it where that is not its form.
pub(crate) fn read_contact(text: &str) -> Result<Option<String>, String> {
    let contact = text.trim();
    if contact.is_empty() {
        return Ok(None);
    }
    let bytes = contact.len();
    if bytes > MAX_CONTACT_BYTES {
        return Err(format!(
            "`{contact}`: it has {bytes} bytes, more than {MAX_CONTACT_BYTES}"
        ));
    }
    // It becomes part of a header's comment (RFC 9110 section 5.6.5).
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '(' | ')' | '\\' | '"' | '<' | '>');
    let bare = contact.strip_prefix("mailto:").unwrap_or(contact);
    let is_mail = || match bare.split_once('@') {
        Some((name, host)) => !name.is_empty() && !host.is_empty() && !host.contains(['@', '/']),
        None => false,
    };
    let is_url = || contact.contains("://") && canonicalize(None, contact).is_ok();
    match contact.chars().all(plain) && (is_url() || is_mail()) {
        true => Ok(Some(bare.to_owned())),
        false => Err(format!("`{contact}`")),
    }
}

/// Reads a product token.
///
/// # Errors
/// The reason why it is none.
pub(crate) fn read_agent(text: &str) -> Result<ProductToken, String> {
    let bytes = text.len();
    if bytes > MAX_AGENT_BYTES {
        return Err(format!(
            "`{text}` has {bytes} bytes, more than {MAX_AGENT_BYTES}"
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
    let why = why.to_string();
    let why = why.lines().last().unwrap_or_default();
    Err(format!("`{text}`: {}", why.trim_start_matches("error: ")))
}

/// The User-Agent header: `NAME/VERSION (+CONTACT)`.
pub(crate) fn user_agent(agent: &ProductToken, contact: Option<&str>) -> String {
    crawl_fetcher::user_agent(agent.as_str(), env!("CARGO_PKG_VERSION"), contact)
}

/// The contact where it is a mail address: it stands in the From header.
pub(crate) fn contact_mail(contact: Option<&str>) -> Option<String> {
    contact
        .filter(|contact| !contact.contains("://"))
        .map(str::to_owned)
}
