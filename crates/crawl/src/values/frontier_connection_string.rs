//! The connection string of a shared frontier.

use std::fmt;
use std::str::FromStr;

use super::ValueParseError;

/// A connection string such as `postgres://crawler@db1,db2/crawl`, as typed. A password in it is
/// rejected later, when all settings are checked.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct FrontierConnectionString(pub(crate) String);

impl FrontierConnectionString {
    /// Returns the string without a password.
    pub(crate) fn without_password(&self) -> FrontierConnectionString {
        let mut url = self.0.clone();
        if let Some((from, to)) = password_in_authority(&url) {
            url.replace_range(from..to, "");
        }
        let Some((before, query)) = url.split_once('?') else {
            return FrontierConnectionString(url);
        };
        let remaining: Vec<&str> = query.split('&').filter(|part| !is_password(part)).collect();
        FrontierConnectionString(match remaining.is_empty() {
            true => before.to_owned(),
            false => format!("{before}?{}", remaining.join("&")),
        })
    }
}

/// Returns the byte range of `:PASSWORD` before the hosts.
fn password_in_authority(url: &str) -> Option<(usize, usize)> {
    let from = url.find("://")? + 3;
    let end = url[from..].find('?').map_or(url.len(), |at| from + at);
    // A password may contain an unescaped slash or @, so the last @ ends it.
    let at = from + url[from..end].rfind('@')?;
    let colon = from + url[from..at].find(':')?;
    Some((colon, at))
}

fn is_password(part: &str) -> bool {
    let name = part.split('=').next().unwrap_or_default();
    name.eq_ignore_ascii_case("password") || name.eq_ignore_ascii_case("sslpassword")
}

impl FromStr for FrontierConnectionString {
    type Err = ValueParseError;

    /// Accepts any text. An error would display the text, which may contain a password.
    fn from_str(text: &str) -> Result<FrontierConnectionString, ValueParseError> {
        Ok(FrontierConnectionString(text.to_owned()))
    }
}

impl fmt::Display for FrontierConnectionString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for FrontierConnectionString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.without_password())
    }
}

super::text_serde::as_string!(FrontierConnectionString);

#[cfg(test)]
mod tests {
    use super::FrontierConnectionString;

    #[test]
    fn a_password_is_redacted_wherever_it_occurs() {
        for (url, without) in [
            ("postgres://db/crawl", "postgres://db/crawl"),
            (
                "postgres://me@a,b:5433/crawl",
                "postgres://me@a,b:5433/crawl",
            ),
            ("postgres://me:secret@db/crawl", "postgres://me@db/crawl"),
            ("postgres://me:sec:r/e@t@db/crawl", "postgres://me@db/crawl"),
            ("postgres://:secret@db", "postgres://@db"),
            ("postgresql://db/c?password=secret", "postgresql://db/c"),
            (
                "postgres://me:secret@db/c?PassWord=x&connect_timeout=3&sslpassword=y",
                "postgres://me@db/c?connect_timeout=3",
            ),
            ("postgres://db/c?user=a@b", "postgres://db/c?user=a@b"),
        ] {
            let read: FrontierConnectionString = url.parse().unwrap();
            assert_eq!(read.without_password().0, without);
            assert_eq!(format!("{read:?}"), without);
        }
    }
}
