//! Logins to sites: the tables `[site."example.org".login]`.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read as _;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crawl_engine::{CredentialSource, LoginMethod, PageSign, PageSignError, SiteLogin};
use crawl_weburl::{AddressClass, CanonicalUrl, HostPatternMap, canonicalize, class_of_host};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::child_process_without_secrets;
use crate::values::{JsonSchema as _, Switch};

/// Prefix of a value that names an environment variable.
pub(super) const IN_ENVIRONMENT: &str = "env:";
/// Prefix of a value that contains a command. The command's output is the secret.
const BY_COMMAND: &str = "command:";
/// Maximum time for a command that prints a secret.
const MAX_COMMAND_TIME: Duration = Duration::from_secs(60);
/// Maximum bytes of a command's output to read as a secret.
/// Beyond the limit: refused.
const MAX_SECRET_OUTPUT: u64 = 64 << 10;
/// How often to check whether a command has ended.
const COMMAND_POLL: Duration = Duration::from_millis(20);
/// The header field for a token, unless `credential-header` names another.
const TOKEN_HEADER: &str = "Authorization";

/// The table `login` of a site.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(super) struct LoginSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    fields: BTreeMap<String, SecretSource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    credential_command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    credential_header: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logged_in: Option<SessionSignSetting>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logged_out: Option<SessionSignSetting>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skip_actions: Option<Switch>,
}

/// A sign of `logged-in` or `logged-out`: a text, or a table with a CSS selector.
#[derive(Clone, Debug, PartialEq)]
enum SessionSignSetting {
    Text(String),
    Selector(SelectorSign),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SelectorSign {
    select: String,
}

impl SessionSignSetting {
    fn sign(&self) -> Result<PageSign, PageSignError> {
        match self {
            SessionSignSetting::Text(text) => PageSign::text(text),
            SessionSignSetting::Selector(sign) => PageSign::selector(&sign.select),
        }
    }
}

impl Serialize for SessionSignSetting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            SessionSignSetting::Text(text) => serializer.serialize_str(text),
            SessionSignSetting::Selector(sign) => sign.serialize(serializer),
        }
    }
}

// Implemented by hand, because serde's errors for an untagged enum name neither the unknown key nor
// its position.
impl<'de> Deserialize<'de> for SessionSignSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SessionSignSetting, D::Error> {
        struct TextOrTableVisitor;

        impl<'de> Visitor<'de> for TextOrTableVisitor {
            type Value = SessionSignSetting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a table such as { select = \"a.logout\" }")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<SessionSignSetting, E> {
                Ok(SessionSignSetting::Text(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SessionSignSetting, A::Error> {
                let sign = SelectorSign::deserialize(MapAccessDeserializer::new(map))?;
                Ok(SessionSignSetting::Selector(sign))
            }
        }

        deserializer.deserialize_any(TextOrTableVisitor)
    }
}

/// The source of a secret: `env:NAME` or `command:COMMAND`. A literal secret is not accepted.
/// `crawl.toml` can therefore store the source, so that a resumed crawl can read the secret again
/// and log in.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
enum SecretSource {
    Variable(String),
    Command(String),
}

impl TryFrom<String> for SecretSource {
    type Error = &'static str;

    fn try_from(text: String) -> Result<SecretSource, &'static str> {
        if let Some(name) = text.strip_prefix(IN_ENVIRONMENT) {
            return Ok(SecretSource::Variable(name.to_owned()));
        }
        match text.strip_prefix(BY_COMMAND) {
            Some(command) => Ok(SecretSource::Command(command.to_owned())),
            None => Err(
                "the value of a field must be `env:NAME` or `command:COMMAND`, not the secret itself",
            ),
        }
    }
}

impl From<SecretSource> for String {
    fn from(source: SecretSource) -> String {
        match source {
            SecretSource::Variable(name) => format!("{IN_ENVIRONMENT}{name}"),
            SecretSource::Command(command) => format!("{BY_COMMAND}{command}"),
        }
    }
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from(self.clone()))
    }
}

impl SecretSource {
    /// Returns the secret, from the environment or from a command that may run for up to
    /// `MAX_COMMAND_TIME`.
    fn read(&self) -> Result<String, String> {
        match self {
            SecretSource::Variable(name) => std::env::var(name).map_err(|_| {
                format!("the environment variable `{name}` isn't set, or isn't UTF-8")
            }),
            SecretSource::Command(command) => output_of(command),
        }
    }
}

/// How the requests of a login are sent to the site.
#[derive(Clone, Copy, Default)]
pub(super) struct LoginTransportSecurity {
    /// Whether the login may use plain http.
    pub(super) plain_http: bool,
    /// Whether all requests, even those to loopback, go through a proxy.
    pub(super) is_proxied: bool,
}

impl LoginSettings {
    /// Returns the schema of the table.
    pub(super) fn schema() -> Value {
        let text = String::schema();
        let select = json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["select"],
            "properties": { "select": text },
        });
        let sign = json!({ "anyOf": [text, select] });
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "form": text,
                "fields": { "type": "object", "additionalProperties": text },
                "credential-command": text,
                "credential-header": text,
                "logged-in": sign,
                "logged-out": sign,
                "skip-actions": Switch::schema(),
            }
        })
    }

    /// Converts the table to the engine's type.
    ///
    /// # Errors
    /// The key with the problem, and what is wrong.
    pub(super) fn login(
        &self,
        site: &str,
        channel: LoginTransportSecurity,
    ) -> Result<SiteLogin, (&'static str, String)> {
        let (method, credentials) = match (&self.form, &self.credential_command) {
            (Some(form), None) => self.form_login(form, site, channel)?,
            (None, Some(command)) => self.token_login(command)?,
            (Some(_), Some(_)) => {
                let why = "`form` and `credential-command` exclude each other";
                return Err(("credential-command", why.to_owned()));
            }
            (None, None) => {
                let why = "it needs `form` and `fields`, or `credential-command`";
                return Err(("login", why.to_owned()));
            }
        };
        let sign = |key, setting: &Option<SessionSignSetting>| {
            let sign = setting.as_ref().map(SessionSignSetting::sign).transpose();
            sign.map_err(|why| (key, why.to_string()))
        };
        Ok(SiteLogin {
            site: site.to_owned(),
            method,
            credentials,
            logged_in: sign("logged-in", &self.logged_in)?,
            logged_out: sign("logged-out", &self.logged_out)?,
            skips_actions: self.skip_actions.is_none_or(Switch::is_on),
            plain_http: channel.plain_http,
        })
    }

    /// Returns the name of the header field for the login's token. `None` if the site uses a form
    /// instead.
    pub(super) fn token_header(&self) -> Option<&str> {
        self.credential_command.as_ref()?;
        Some(self.credential_header.as_deref().unwrap_or(TOKEN_HEADER))
    }

    /// Returns the address of the login form. `None` if the site uses a token instead.
    pub(super) fn form(&self) -> Option<CanonicalUrl> {
        canonicalize(None, self.form.as_ref()?).ok()
    }

    fn form_login(
        &self,
        form: &str,
        site: &str,
        channel: LoginTransportSecurity,
    ) -> Result<(LoginMethod, CredentialSource), (&'static str, String)> {
        let url = canonicalize(None, form)
            .map_err(|_| ("form", format!("`{form}` isn't an http or https URL")))?;
        let mut own = HostPatternMap::default();
        let is_own = own.insert(site, ()).is_err() || own.find(&url.host_key()).is_some();
        if !is_own {
            return Err(("form", format!("`{form}` is not on {site} or a subdomain")));
        }
        let is_loopback = class_of_host(url.host()) == Some(AddressClass::Loopback);
        let is_private = url.scheme() == "https" || (is_loopback && !channel.is_proxied);
        if !is_private && !channel.plain_http {
            let why = format!("`{form}` would send the secrets unencrypted; use https");
            return Err(("form", why));
        }
        if self.fields.is_empty() {
            return Err(("fields", "the form has no fields to fill in".to_owned()));
        }
        for source in self.fields.values() {
            if let SecretSource::Variable(_) = source {
                source.read().map_err(|why| ("fields", why))?;
            }
        }
        let fields = self.fields.keys().cloned().collect();
        let sources = self.fields.clone();
        let credentials = CredentialSource::new(move || {
            let sources = sources.iter();
            let pairs = sources.map(|(name, source)| Ok((name.clone(), source.read()?)));
            pairs.collect()
        });
        Ok((LoginMethod::Form { url, fields }, credentials))
    }

    fn token_login(
        &self,
        command: &str,
    ) -> Result<(LoginMethod, CredentialSource), (&'static str, String)> {
        if !self.fields.is_empty() {
            let why = "they belong to a `form`".to_owned();
            return Err(("fields", why));
        }
        let header = self.token_header().unwrap_or(TOKEN_HEADER);
        // Check the name with a harmless value.
        let checked = crawl_fetcher::HostRequestHeaders::new("a.example").header(header, "x");
        checked.map_err(|why| ("credential-header", why.to_string()))?;
        let command = command.to_owned();
        let credentials =
            CredentialSource::new(move || Ok(vec![(String::new(), output_of(&command)?)]));
        let header = header.to_owned();
        Ok((LoginMethod::Token { header }, credentials))
    }
}

/// Runs a command with `sh`, without our own secrets in its environment. Returns its output without
/// the line end. The errors don't contain the output.
fn output_of(command: &str) -> Result<String, String> {
    let shown = format!("the command `{command}`");
    let mut child = child_process_without_secrets::command("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|why| format!("{shown} can't be run: {why}"))?;
    let stdout = child.stdout.take();
    // Read in another thread. Otherwise a full pipe would block the command, and a command that
    // never ends would block this thread.
    let (sender, received) = mpsc::channel();
    thread::spawn(move || {
        let mut output = Vec::new();
        let stdout = stdout.map(|stdout| stdout.take(MAX_SECRET_OUTPUT + 1));
        let read = stdout.map(|mut stdout| stdout.read_to_end(&mut output));
        // Ignore the error: if the command took too long, the receiver has been dropped.
        let _ = sender.send(read.transpose().map(|_| output));
    });
    let started = Instant::now();
    let status = loop {
        let ended = child.try_wait().map_err(|why| format!("{shown}: {why}"))?;
        match ended {
            Some(status) => break status,
            None if started.elapsed() < MAX_COMMAND_TIME => thread::sleep(COMMAND_POLL),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                let seconds = MAX_COMMAND_TIME.as_secs();
                return Err(format!("{shown} did not end within {seconds} s"));
            }
        }
    };
    // The command has ended, but processes that it started may still hold its output open.
    let left = MAX_COMMAND_TIME.saturating_sub(started.elapsed());
    let output = received.recv_timeout(left);
    let output = output.map_err(|_| format!("{shown} ended, but its output did not"))?;
    let output = output.map_err(|why| format!("{shown}: {why}"))?;
    if output.len() as u64 > MAX_SECRET_OUTPUT {
        return Err(format!(
            "{shown} printed more than {MAX_SECRET_OUTPUT} bytes"
        ));
    }
    if !status.success() {
        return Err(format!("{shown} failed: {status}"));
    }
    let text = String::from_utf8(output).map_err(|_| format!("{shown} printed no UTF-8"))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{
        LoginSettings, LoginTransportSecurity, SecretSource, SessionSignSetting, output_of,
    };

    fn login_settings(form: &str, user: &str) -> LoginSettings {
        let source = SecretSource::try_from(user.to_owned()).unwrap();
        LoginSettings {
            form: Some(form.to_owned()),
            fields: BTreeMap::from([("user".to_owned(), source)]),
            ..LoginSettings::default()
        }
    }

    #[test]
    fn unusable_logins_are_named_by_their_key() {
        let https = "https://a.example/login";
        let token = LoginSettings {
            form: None,
            fields: BTreeMap::new(),
            credential_command: Some("true".to_owned()),
            ..login_settings(https, "command:true")
        };
        for (settings, expected) in [
            (
                LoginSettings::default(),
                "login: it needs `form` and `fields`, or `credential-command`",
            ),
            (
                login_settings("http://a.example/login", "command:true"),
                "form: `http://a.example/login` would send the secrets unencrypted; use https",
            ),
            (
                login_settings("https://b.example/", "command:true"),
                "form: `https://b.example/` is not on a.example or a subdomain",
            ),
            (
                login_settings("a b", "command:true"),
                "form: `a b` isn't an http or https URL",
            ),
            (
                login_settings(https, "env:NOWHERE"),
                "fields: the environment variable `NOWHERE` isn't set, or isn't UTF-8",
            ),
            (
                LoginSettings {
                    fields: BTreeMap::new(),
                    ..login_settings(https, "command:true")
                },
                "fields: the form has no fields to fill in",
            ),
            (
                LoginSettings {
                    logged_in: Some(SessionSignSetting::Text(String::new())),
                    ..login_settings(https, "command:true")
                },
                "logged-in: it is empty",
            ),
            (
                LoginSettings {
                    credential_header: Some("User-Agent".to_owned()),
                    ..token.clone()
                },
                "credential-header: the crawler sets `User-Agent` itself",
            ),
        ] {
            let (key, why) = settings
                .login("a.example", LoginTransportSecurity::default())
                .unwrap_err();
            assert_eq!(format!("{key}: {why}"), expected);
        }
        assert!(
            token
                .login("a.example", LoginTransportSecurity::default())
                .is_ok()
        );
        assert!(
            login_settings(https, "command:true")
                .login("a.example", LoginTransportSecurity::default())
                .is_ok()
        );
        let plain = login_settings("http://a.example/login", "command:true");
        let channel = |plain_http, is_proxied| LoginTransportSecurity {
            plain_http,
            is_proxied,
        };
        assert!(plain.login("a.example", channel(true, true)).is_ok());
        let loopback = login_settings("http://127.0.0.1/login", "command:true");
        assert!(loopback.login("127.0.0.1", channel(false, false)).is_ok());
        assert!(loopback.login("127.0.0.1", channel(false, true)).is_err());
        assert!(SecretSource::try_from("s3cret".to_owned()).is_err());
    }

    #[test]
    fn a_command_gives_its_output_without_the_line_end() {
        assert_eq!(output_of("printf 'a b\\n'").as_deref(), Ok("a b"));
        let failed = output_of("printf s3cret; exit 3").unwrap_err();
        assert_eq!(
            failed,
            "the command `printf s3cret; exit 3` failed: exit status: 3"
        );
        let long = output_of("head -c 100000 /dev/zero | tr '\\0' x").unwrap_err();
        assert!(long.ends_with("printed more than 65536 bytes"), "{long}");
    }
}
