//! The crawler's product token, and the profiles for reading rules.

use std::fmt;

/// A crawler's name as robots.txt files address it: `1*(A-Z a-z 0-9 _ -)`.
///
/// RFC 9309 section 2.2.1 allows no digits in a product token, but crawlers in use have them, so
/// they are accepted. Comparison ignores case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProductToken(
    // Invariant: the text contains only ASCII letters, digits, `_` and `-`. The text is empty only
    // if `leading` found no token. An empty token matches only the `*` group.
    String,
);

/// An invalid product token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` isn't a product token: use one or more letters, digits, `_` and `-`")]
pub struct ProductTokenError(pub String);

impl ProductToken {
    /// Creates a product token from `name`.
    ///
    /// # Errors
    /// Fails with [`ProductTokenError`] if `name` is empty or contains anything but letters, digits,
    /// `_` and `-`.
    pub fn new(name: &str) -> Result<ProductToken, ProductTokenError> {
        if name.is_empty() || !name.bytes().all(is_token_byte) {
            return Err(ProductTokenError(name.to_owned()));
        }
        Ok(ProductToken(name.to_owned()))
    }

    /// Returns the product token at the start of `name`: `ExampleBot` for `ExampleBot/2.1 (+info)`.
    ///
    /// If `name` doesn't start with a product token, no robots.txt can address the crawler, so the
    /// `*` group applies.
    #[must_use]
    pub fn leading(name: &str) -> ProductToken {
        let end = name.bytes().take_while(|&b| is_token_byte(b)).count();
        ProductToken(name.get(..end).unwrap_or_default().to_owned())
    }

    /// Returns the token as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProductToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A standard for reading robots.txt.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    strum::Display,
    strum::EnumString,
    strum::VariantArray,
)]
#[non_exhaustive]
#[strum(serialize_all = "lowercase")]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
pub enum RobotsProfile {
    /// RFC 9309, including the misspellings that Google's parser accepts.
    #[default]
    Rfc9309,
    /// "A Standard for Robot Exclusion", 1994: blank lines separate records, and paths are prefixes
    /// without wildcards.
    Koster1994,
    /// The revision of 1997: like the 1994 standard, but a line may contain several names or
    /// several paths.
    Extended1997,
    /// Allows a URL only if every other profile allows it.
    Strictest,
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

#[cfg(test)]
mod tests {
    use strum::VariantArray as _;

    use super::{ProductToken, RobotsProfile};

    #[test]
    fn tokens() {
        assert_eq!(ProductToken::new("My-Bot_2").unwrap().as_str(), "My-Bot_2");
        for bad in ["", "a b", "bot/1", "bøt", "*"] {
            assert!(ProductToken::new(bad).is_err(), "{bad}");
        }
        assert_eq!(
            ProductToken::new("a b").unwrap_err().to_string(),
            "`a b` isn't a product token: use one or more letters, digits, `_` and `-`"
        );
        assert_eq!(ProductToken::leading("Bot/2.1 (x)").to_string(), "Bot");
        assert_eq!(ProductToken::leading("øbot").as_str(), "");
    }

    #[test]
    fn profiles_have_one_name() {
        for &profile in RobotsProfile::VARIANTS {
            assert_eq!(
                profile.to_string().parse::<RobotsProfile>().unwrap(),
                profile
            );
        }
        assert!("RFC".parse::<RobotsProfile>().is_err());
    }
}
