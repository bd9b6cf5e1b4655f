//! The crawler's name in robots.txt, and the profile by which rules are read.

use std::fmt;

/// A crawler's name as robots.txt files address it: `1*(A-Z a-z 0-9 _ -)`.
///
/// RFC 9309 section 2.2.1 knows no digits in a product token; crawlers in use have them,
/// so a token of ours may. Comparison ignores case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProductToken(
    // Invariant: ASCII letters, digits, `_` and `-` only. Empty only where `leading` found
    // no token at all: such a name is nobody's and falls to the `*` group.
    String,
);

/// The reason why a text is no product token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no product token: letters, digits, `_` and `-` only, at least one")]
pub struct BadToken(pub String);

impl ProductToken {
    /// Takes `name` as a product token.
    ///
    /// # Errors
    /// [`BadToken`] where `name` is empty or holds anything but letters, digits, `_`, `-`.
    pub fn new(name: &str) -> Result<ProductToken, BadToken> {
        if name.is_empty() || !name.bytes().all(is_token_byte) {
            return Err(BadToken(name.to_owned()));
        }
        Ok(ProductToken(name.to_owned()))
    }

    /// The product token that `name` begins with: `ExampleBot/2.1 (+info)` is `ExampleBot`.
    ///
    /// A name that begins with none is a robot that no file can address: it falls to the
    /// group for `*`.
    #[must_use]
    pub fn leading(name: &str) -> ProductToken {
        let end = name.bytes().take_while(|&b| is_token_byte(b)).count();
        ProductToken(name.get(..end).unwrap_or_default().to_owned())
    }

    /// The token as it was given.
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

/// A reading of robots.txt.
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
pub enum Profile {
    /// RFC 9309, with the spellings that the most used parser forgives.
    #[default]
    Rfc9309,
    /// "A Standard for Robot Exclusion", 1994: records between blank lines, prefixes only.
    Koster1994,
    /// The 1997 revision: as 1994, with several names and several paths on one line.
    Extended1997,
    /// A URL is allowed only where every other reading allows it.
    Strictest,
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

#[cfg(test)]
mod tests {
    use strum::VariantArray as _;

    use super::{ProductToken, Profile};

    #[test]
    fn tokens() {
        assert_eq!(ProductToken::new("My-Bot_2").unwrap().as_str(), "My-Bot_2");
        for bad in ["", "a b", "bot/1", "bøt", "*"] {
            assert!(ProductToken::new(bad).is_err(), "{bad}");
        }
        assert_eq!(
            ProductToken::new("a b").unwrap_err().to_string(),
            "`a b` is no product token: letters, digits, `_` and `-` only, at least one"
        );
        assert_eq!(ProductToken::leading("Bot/2.1 (x)").to_string(), "Bot");
        assert_eq!(ProductToken::leading("øbot").as_str(), "");
    }

    #[test]
    fn profiles_have_one_name() {
        for &profile in Profile::VARIANTS {
            assert_eq!(profile.to_string().parse::<Profile>().unwrap(), profile);
        }
        assert!("RFC".parse::<Profile>().is_err());
    }
}
