//! Credentials and header fields for single hosts: the keys `basic-auth`, `headers`,
//! `cookies` and `plain-http` of the tables `[site."example.org"]`.

use std::collections::BTreeMap;
use std::fmt;

use crawl_fetcher::HostAccess;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use crate::values::{SchemaValue as _, Switch};

/// Prefix of a value that names an environment variable.
const IN_ENVIRONMENT: &str = "env:";

/// A value that is never displayed or written: the secret itself, or `env:NAME` for the variable
/// that holds it.
#[derive(Clone, PartialEq, Deserialize)]
pub(crate) struct Secret(String);

/// The secrets of one table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct AccessTerms {
    plain_http: Option<Switch>,
    basic_auth: Option<Secret>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, Secret>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    cookies: BTreeMap<String, Secret>,
}

/// Names of the keys, with underscores.
pub(super) const FIELDS: [&str; 4] = ["basic_auth", "headers", "cookies", "plain_http"];

impl Secret {
    /// Returns the name of the variable that holds the value, if it is in the environment.
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

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.variable().map_or("[redacted]", |_| &self.0))
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Only a reference such as `env:NAME` is written here: literal secrets are removed
        // beforehand.
        serializer.collect_str(&format_args!("{self:?}"))
    }
}

impl AccessTerms {
    /// Returns the keys, each with the schema of its value.
    pub(super) fn schemas() -> [(&'static str, Value); 4] {
        let named = json!({ "type": "object", "additionalProperties": String::schema() });
        let [basic_auth, headers, cookies, plain_http] = FIELDS;
        [
            (basic_auth, String::schema()),
            (headers, named.clone()),
            (cookies, named),
            (plain_http, Switch::schema()),
        ]
    }

    /// Drops literal values and keeps references to the environment.
    pub(super) fn drop_literals(&mut self) {
        let in_environment = |secret: &Secret| secret.variable().is_some();
        self.basic_auth = self.basic_auth.take().filter(in_environment);
        self.headers.retain(|_, secret| in_environment(secret));
        self.cookies.retain(|_, secret| in_environment(secret));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.basic_auth.is_none() && self.headers.is_empty() && self.cookies.is_empty()
    }

    /// Converts these settings to the fetcher's type.
    ///
    /// # Errors
    /// All problems, each with its key.
    pub(super) fn access(&self, host: &str) -> Result<HostAccess, Vec<(&'static str, String)>> {
        let mut wrong = Vec::new();
        let mut access = HostAccess::new(host);
        if self.plain_http.is_some_and(Switch::is_on) {
            access = access.over_plain_http();
        }
        let headers = self.headers.iter().map(|header| ("headers", header));
        let cookies = self.cookies.iter().map(|header| ("cookies", header));
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
