//! The contact of whoever answers for the requests.

use std::fmt;
use std::str::FromStr;

use crawl_weburl::canonicalize;

/// Bytes of a contact, which stands in each request's `User-Agent`. A mail address has at most 254
/// (RFC 5321 section 4.5.3.1.3).
pub const MAX_CONTACT_BYTES: usize = 256;

/// Who answers for the requests: a mail address, or an http or https URL.
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

/// A text that is no contact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadContact {
    /// It is neither a mail address nor an http or https URL.
    #[error("`{0}`: it is neither a mail address nor an http or https URL")]
    Form(String),
    /// It has more than [`MAX_CONTACT_BYTES`].
    #[error("`{0}`: it has {bytes} bytes, more than {MAX_CONTACT_BYTES}", bytes = .0.len())]
    TooLong(String),
}

impl Contact {
    /// The contact as it stands in `User-Agent`: a mail address has no `mailto:`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The contact where it is a mail address: it stands in the `From` field.
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
        // It becomes part of a header's comment (RFC 9110 section 5.6.5).
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
        let why = "me".parse::<Contact>().unwrap_err().to_string();
        let expect = "`me`: it is neither a mail address nor an http or https URL";
        assert_eq!(why, expect);
        let why = long.parse::<Contact>().unwrap_err().to_string();
        assert!(why.ends_with(": it has 260 bytes, more than 256"), "{why}");
    }

    #[test]
    fn ours_a_mail_address_stands_without_its_scheme() {
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
