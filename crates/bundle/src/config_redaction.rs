//! Removes secrets and other private values from a crawl's configuration.

use toml::{Table, Value};

use crate::error::BundleError;

/// Keys of `[site."HOST"]` whose values are secrets or refer to stored secrets.
const SECRET: [&str; 4] = ["basic-auth", "headers", "cookies", "login"];
/// The text that replaces a secret, as in the archive.
const REDACTED: &str = "[redacted]";
/// The table `[crawl]` of `crawl.toml`, with the program's own notes. Its key [`MARK`] proves that
/// the program wrote the file for this user.
const NOTES: &str = "crawl";
const MARK: &str = "mark";

const HEAD: &str = "\
# The configuration in force, without secrets and without the mark of its user. So the digest of
# this file differs from `config-digest` in the archive.
";

/// Returns the text of a `crawl.toml` without the values of secrets, the credentials of the proxy,
/// and the key [`MARK`].
pub(crate) fn public_config(text: &str) -> Result<String, BundleError> {
    let mut config: Table = text.parse().map_err(|error: toml::de::Error| {
        let message = error.message().to_owned();
        BundleError::Config { what: message }
    })?;
    if let Some(Value::Table(notes)) = config.get_mut(NOTES) {
        notes.remove(MARK);
    }
    if let Some(Value::Table(sites)) = config.get_mut("site") {
        for (_, site) in sites.iter_mut() {
            let Value::Table(site) = site else { continue };
            for key in SECRET {
                if let Some(value) = site.get_mut(key) {
                    redact(value);
                }
            }
        }
    }
    if let Some(Value::Table(fetch)) = config.get_mut("fetch")
        && let Some(Value::String(proxy)) = fetch.get_mut("proxy")
        && let (Some(scheme), Some(at)) = (proxy.find("://"), proxy.rfind('@'))
    {
        proxy.replace_range(scheme + 3..=at, "");
    }
    Ok(format!("{HEAD}{config}"))
}

/// Replaces a value by [`REDACTED`]. In a table, replaces all values and keeps the keys.
fn redact(value: &mut Value) {
    match value {
        Value::Table(table) => table.iter_mut().for_each(|(_, value)| redact(value)),
        value => *value = Value::String(REDACTED.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use toml::Table;

    use super::{HEAD, public_config};

    #[test]
    fn secrets_and_the_mark_are_removed() {
        let text = "seed = [\"http://e.example/\"]\n[crawl]\nmark = \"m4rk\"\nversion = \"1\"\n\
            [fetch]\nproxy = \"http://me:s3cret@proxy.example:1\"\n[site.\"e.example\"]\n\
            delay = \"2s\"\nbasic-auth = \"me:s3cret\"\ncookies = { a = \"s3cret\" }\n\
            headers = { X-Key = \"s3cret\", Y = \"env:S3CRET\" }\n\
            [site.\"e.example\".login]\ncredential-command = \"pass show s3cret\"\n";
        let public = public_config(text).unwrap();
        let lower = public.to_lowercase();
        assert!(
            !lower.contains("s3cret") && !lower.contains("m4rk"),
            "{public}"
        );
        let config: Table = public.strip_prefix(HEAD).unwrap().parse().unwrap();
        let site = &config["site"]["e.example"];
        assert_eq!(site["delay"].as_str(), Some("2s"));
        assert_eq!(site["headers"]["X-Key"].as_str(), Some("[redacted]"));
        assert_eq!(config["crawl"]["version"].as_str(), Some("1"));
        assert_eq!(
            config["fetch"]["proxy"].as_str(),
            Some("http://proxy.example:1")
        );
        let refused = public_config("seed = \n").unwrap_err().to_string();
        assert!(
            refused.starts_with("crawl.toml can't be read: "),
            "{refused}"
        );
    }
}
