//! Credentials and header fields for single hosts: the keys `basic-auth`, `headers`, `cookies`,
//! `plain-http` and `login` of the tables `[site."example.org"]`.

use std::collections::BTreeMap;
use std::fmt;

use crawl_fetcher::HostRequestHeaders;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use super::login_settings::{IN_ENVIRONMENT, LoginSettings};
use crate::values::{JsonSchema as _, Switch};

/// A secret, or `env:NAME` for the environment variable that contains it. A literal secret is never
/// displayed or written; `env:NAME` may be.
#[derive(Clone, PartialEq, Deserialize)]
pub(crate) struct SecretSetting(String);

/// The credentials and header fields in one `[site]` table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct HostCredentialSettings {
    plain_http: Option<Switch>,
    basic_auth: Option<SecretSetting>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, SecretSetting>,
    #[serde(skip_serializing_if = "CookieSetting::are_none")]
    cookies: CookieSetting,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) login: Option<LoginSettings>,
}

/// The value of the key `cookies`.
#[derive(Clone, Debug, PartialEq)]
enum CookieSetting {
    /// Cookies to send with each request, by name.
    Own(BTreeMap<String, SecretSetting>),
    /// Keep the cookies that the site sets.
    Keep,
}

/// The value of the key `cookies` for keeping the cookies that the site sets.
const KEEP: &str = "keep";

impl CookieSetting {
    fn are_none(&self) -> bool {
        matches!(self, CookieSetting::Own(own) if own.is_empty())
    }

    fn own(&self) -> impl Iterator<Item = (&String, &SecretSetting)> {
        let own = match self {
            CookieSetting::Own(own) => Some(own),
            CookieSetting::Keep => None,
        };
        own.into_iter().flatten()
    }
}

impl Default for CookieSetting {
    fn default() -> CookieSetting {
        CookieSetting::Own(BTreeMap::new())
    }
}

impl Serialize for CookieSetting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            CookieSetting::Own(own) => own.serialize(serializer),
            CookieSetting::Keep => serializer.serialize_str(KEEP),
        }
    }
}

impl<'de> Deserialize<'de> for CookieSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CookieSetting, D::Error> {
        struct CookieSettingVisitor;

        impl<'de> Visitor<'de> for CookieSettingVisitor {
            type Value = CookieSetting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"keep\" or a table of cookies")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<CookieSetting, E> {
                match text {
                    KEEP => Ok(CookieSetting::Keep),
                    _ => Err(E::custom("must be \"keep\" or a table of cookies")),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CookieSetting, A::Error> {
                let own = BTreeMap::deserialize(MapAccessDeserializer::new(map))?;
                Ok(CookieSetting::Own(own))
            }
        }

        deserializer.deserialize_any(CookieSettingVisitor)
    }
}

/// The keys of the credentials and header fields, written with underscores.
pub(super) const FIELDS: [&str; 5] = ["basic_auth", "headers", "cookies", "plain_http", "login"];

impl SecretSetting {
    /// Returns the name of the environment variable that contains the secret. `None` if the value
    /// is the secret itself.
    fn variable(&self) -> Option<&str> {
        self.0.strip_prefix(IN_ENVIRONMENT)
    }

    fn value(&self) -> Result<String, String> {
        match self.variable() {
            None => Ok(self.0.clone()),
            Some(name) => std::env::var(name).map_err(|_| {
                format!("the environment variable `{name}` isn't set, or isn't UTF-8")
            }),
        }
    }
}

impl fmt::Debug for SecretSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.variable().map_or("[redacted]", |_| &self.0))
    }
}

impl Serialize for SecretSetting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Write only references such as `env:NAME`. Literal secrets were removed before
        // serialization, and `Debug` redacts any that remain.
        serializer.collect_str(&format_args!("{self:?}"))
    }
}

impl HostCredentialSettings {
    /// Returns the keys, each with the schema of its value.
    pub(super) fn schemas() -> [(&'static str, Value); 5] {
        let named = json!({ "type": "object", "additionalProperties": String::schema() });
        let [basic_auth, headers, cookies, plain_http, login] = FIELDS;
        [
            (basic_auth, String::schema()),
            (headers, named.clone()),
            (cookies, json!({ "anyOf": [{ "const": KEEP }, named] })),
            (plain_http, Switch::schema()),
            (login, LoginSettings::schema()),
        ]
    }

    /// Drops literal values and keeps references to the environment.
    pub(super) fn drop_literals(&mut self) {
        let in_environment = |secret: &SecretSetting| secret.variable().is_some();
        self.basic_auth = self.basic_auth.take().filter(in_environment);
        self.headers.retain(|_, secret| in_environment(secret));
        if let CookieSetting::Own(own) = &mut self.cookies {
            own.retain(|_, secret| in_environment(secret));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        let has_cookies = self.cookies.own().next().is_some();
        self.basic_auth.is_none() && self.headers.is_empty() && !has_cookies
    }

    /// Returns whether to keep the cookies that the site sets. A login requires them too.
    pub(super) fn keeps_cookies(&self) -> bool {
        self.cookies == CookieSetting::Keep || self.login.is_some()
    }

    /// Returns whether the table sets this header field itself.
    pub(super) fn sets(&self, header: &str) -> bool {
        let is_same = |name: &String| name.eq_ignore_ascii_case(header);
        let is_basic = header.eq_ignore_ascii_case("authorization") && self.basic_auth.is_some();
        is_basic || self.headers.keys().any(is_same)
    }

    pub(super) fn allows_plain_http(&self) -> bool {
        self.plain_http.is_some_and(Switch::is_on)
    }

    /// Converts these settings to the fetcher's type.
    ///
    /// # Errors
    /// All problems, each with its key.
    pub(super) fn access(
        &self,
        host: &str,
    ) -> Result<HostRequestHeaders, Vec<(&'static str, String)>> {
        let mut wrong = Vec::new();
        let mut access = HostRequestHeaders::new(host);
        if self.allows_plain_http() {
            access = access.over_plain_http();
        }
        let headers = self.headers.iter().map(|header| ("headers", header));
        let cookies = self.cookies.own().map(|header| ("cookies", header));
        let no_name = String::new();
        let basic = self.basic_auth.iter();
        let basic = basic.map(|secret| ("basic-auth", (&no_name, secret)));
        for (key, (name, secret)) in basic.chain(headers).chain(cookies) {
            let before = access.clone();
            let added = secret.value().and_then(|value| {
                let added = match key {
                    "basic-auth" => before.basic_auth(&value),
                    "headers" => before.header(name, &value),
                    _ => before.cookie(name, &value),
                };
                added.map_err(|why| why.to_string())
            });
            match added {
                Ok(added) => access = added,
                Err(why) => wrong.push((key, why)),
            }
        }
        match wrong.is_empty() {
            true => Ok(access),
            false => Err(wrong),
        }
    }
}
