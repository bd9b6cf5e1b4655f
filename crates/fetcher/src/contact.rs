//! The contact of the crawler's operator.

use std::fmt;
use std::str::FromStr;

use crawl_weburl::canonicalize;

/// Maximum bytes of a contact, which is part of each request's `User-Agent`. A mail address has at
/// most 254 (RFC 5321 section 4.5.3.1.3).
/// Beyond the limit: refused, because each request contains it.
pub const MAX_CONTACT_BYTES: usize = 256;

/// The contact of the crawler's operator: a mail address, or an http or https URL.
///
/// ```
/// use crawl_fetcher::Contact;
///
/// let contact: Contact = "mailto:you@example.org".parse()?;
/// assert_eq!(contact.as_str(), "you@example.org");
/// assert!("".parse::<Contact>().is_err());
/// # Ok::<(), crawl_fetcher::BadContact>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact(String);

/// An invalid contact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadContact {
    /// The contact is neither a mail address nor an http or https URL.
    #[error("`{0}`: not an email address, nor an http or https URL")]
    Form(String),
    /// The contact is longer than [`MAX_CONTACT_BYTES`].
    #[error("`{0}`: {bytes} bytes long, the maximum is {MAX_CONTACT_BYTES}", bytes = .0.len())]
    TooLong(String),
}

impl Contact {
    /// Returns the contact as written in `User-Agent`. A mail address is without `mailto:`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the contact for the `From` field if it is a mail address.
    #[must_use]
    pub fn mail(&self) -> Option<&str> {
        Some(self.as_str()).filter(|contact| !contact.contains("://"))
    }
}

impl fmt::Display for Contact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Contact {
    type Err = BadContact;

    fn from_str(text: &str) -> Result<Contact, BadContact> {
        let contact = text.trim();
        if contact.len() > MAX_CONTACT_BYTES {
            return Err(BadContact::TooLong(contact.to_owned()));
        }
        // Allow only characters of a header field comment, where the contact is put (RFC 9110
        // section 5.6.5).
        let plain =
            |c: char| c.is_ascii_graphic() && !matches!(c, '(' | ')' | '\\' | '"' | '<' | '>');
        let bare = contact.strip_prefix("mailto:").unwrap_or(contact);
        let is_mail = || match bare.split_once('@') {
            Some((name, host)) => {
                !name.is_empty() && !host.is_empty() && !host.contains(['@', '/'])
            }
            None => false,
        };
        let is_url = || contact.contains("://") && canonicalize(None, contact).is_ok();
        match contact.chars().all(plain) && (is_url() || is_mail()) {
            true => Ok(Contact(bare.to_owned())),
            false => Err(BadContact::Form(contact.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Contact;

    #[test]
    fn contacts_are_mail_addresses_or_urls() {
        let long = format!("{}@b.example", "a".repeat(250));
        let bad = [
            "", " ", "me", "a@b@c", "a@b (c)", "@b", "ftp://x/", "a@", "http://",
        ];
        for bad in bad.into_iter().chain(["a@b\r\nX: y", long.as_str()]) {
            assert!(bad.parse::<Contact>().is_err(), "{bad}");
        }
        let message = "me".parse::<Contact>().unwrap_err().to_string();
        let expect = "`me`: not an email address, nor an http or https URL";
        assert_eq!(message, expect);
        let message = long.parse::<Contact>().unwrap_err().to_string();
        assert!(
            message.ends_with(": 260 bytes long, the maximum is 256"),
            "{message}"
        );
    }

    #[test]
    fn a_mail_address_loses_its_scheme() {
        for (text, expect, mail) in [
            ("mailto:a@b.example", "a@b.example", Some("a@b.example")),
            (" a@b.example ", "a@b.example", Some("a@b.example")),
            ("https://e.example/bot", "https://e.example/bot", None),
        ] {
            let contact: Contact = text.parse().unwrap();
            assert_eq!((contact.as_str(), contact.mail()), (expect, mail));
        }
    }
}
