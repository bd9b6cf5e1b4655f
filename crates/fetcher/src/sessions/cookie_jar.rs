//! The cookies of one site: what is accepted from responses, and what is sent with requests, by
//! RFC 6265bis. Reads no clock.

use cookie_store::{Cookie, CookieDomain, CookieExpiration, RawCookie};
use crawl_scheduler::Tick;
use crawl_weburl::{CanonicalUrl, canonicalize, host_address, public_suffixes};
use strum::IntoStaticStr;
use time::{Duration, OffsetDateTime};

use super::cookie_date::parse_cookie_date;
use super::stored_cookie::StoredCookie;
use crate::host_request_headers::is_private;

/// Maximum bytes of a cookie's name and value (RFC 6265bis section 5.7).
/// Beyond the limit: not kept; `too_long` in the log.
pub(crate) const MAX_COOKIE_BYTES: usize = 4_096;
/// Maximum bytes of an attribute's value, such as `Path` (RFC 6265bis section 5.6).
/// Beyond the limit: the attribute is ignored.
pub(crate) const MAX_ATTRIBUTE_BYTES: usize = 1_024;
/// Maximum cookies per site.
/// Beyond the limit: the oldest cookie is dropped.
pub(crate) const MAX_COOKIES: usize = 180;
/// Maximum bytes of all names, values, paths and domains of a site's cookies. Most servers refuse
/// longer request headers, and the state stores all of this with each change.
/// Beyond the limit: the oldest cookie is dropped.
pub(crate) const MAX_JAR_BYTES: usize = 32 << 10;
/// Minimum bytes of a cookie's value to treat it as a secret. A shorter value, such as `english`,
/// occurs in pages by chance.
/// Beyond the limit: shorter ones are not redacted in pages.
pub(crate) const MIN_SECRET_COOKIE_BYTES: usize = 16;

/// The cookies of one site, in the order of their creation.
#[derive(Clone, Default)]
pub(crate) struct CookieJar {
    cookies: Vec<Cookie<'static>>,
}

/// Why a cookie from a response is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum CookieRefusal {
    /// The name and value are longer than [`MAX_COOKIE_BYTES`].
    TooLong,
    /// The field has neither a name nor a value, or contains control characters.
    Malformed,
    /// The `Domain` is a public suffix, such as `co.uk`.
    PublicSuffix,
    /// The `Domain` is neither the host that sent the cookie nor a parent domain of this host.
    OtherDomain,
    /// A cookie with `Secure`, or one that would replace such a cookie, came over plain http.
    NotSecure,
    /// The name begins with `__Secure-` or `__Host-`, but the cookie lacks the attributes that this
    /// prefix requires.
    Prefix,
}

impl CookieJar {
    /// Applies the value of a `Set-Cookie` field from a response for `url`. An expired cookie
    /// deletes the cookie that it would replace.
    pub(crate) fn receive(
        &mut self,
        url: &CanonicalUrl,
        set_cookie: &str,
        now: OffsetDateTime,
    ) -> Result<(), CookieRefusal> {
        let mut raw = parsed(set_cookie)?;
        let length = raw.name().len() + raw.value().len();
        if length > MAX_COOKIE_BYTES {
            return Err(CookieRefusal::TooLong);
        }
        let is_control = |c: char| c.is_control() && c != '\t';
        if raw.name().chars().any(is_control) || raw.value().chars().any(is_control) {
            return Err(CookieRefusal::Malformed);
        }
        if let Some(age) = raw.max_age() {
            // Compute the time here, because `cookie_store` would read the clock.
            raw.set_max_age(None);
            raw.set_expires(match age.is_positive() {
                true => now.saturating_add(age),
                false => OffsetDateTime::UNIX_EPOCH,
            });
        }
        if let Some(domain) = raw.domain().map(str::to_ascii_lowercase) {
            let domain = domain.trim_start_matches('.');
            let is_suffix = public_suffixes(domain).longest == Some(domain);
            match is_suffix {
                true if domain == url.host() => raw.unset_domain(),
                true => return Err(CookieRefusal::PublicSuffix),
                false => {}
            }
        }
        let has_secure = raw.secure() == Some(true);
        let is_host_only = raw
            .domain()
            .is_none_or(|domain| domain.trim_matches('.').is_empty());
        let is_root = raw.path() == Some("/");
        // A server reads the value of a cookie without a name as the name, so check the prefix of
        // the value.
        let is_nameless = raw.name().is_empty();
        let name = match is_nameless {
            true => raw.value().to_ascii_lowercase(),
            false => raw.name().to_ascii_lowercase(),
        };
        let is_secure = has_secure && !is_nameless;
        if (name.starts_with("__secure-") && !is_secure)
            || (name.starts_with("__host-") && !(is_secure && is_host_only && is_root))
        {
            return Err(CookieRefusal::Prefix);
        }
        if raw.path().is_some_and(is_long) {
            raw.unset_path();
        }
        if raw.path().is_none() && is_long(url.as_url().path()) {
            raw.set_path("/");
        }
        let cookie = Cookie::try_from_raw_cookie(&raw, url.as_url());
        let cookie = cookie.map_err(|_| CookieRefusal::OtherDomain)?.into_owned();
        if !is_private(url, false) && (has_secure || self.holds_secure_twin(&cookie, url)) {
            return Err(CookieRefusal::NotSecure);
        }
        self.insert(cookie, now);
        Ok(())
    }

    /// Returns the value of the `Cookie` field for a request: longer paths first, then older
    /// cookies. `None` if no cookie matches.
    pub(crate) fn field(&self, url: &CanonicalUrl, now: OffsetDateTime) -> Option<String> {
        let url = url.as_url();
        let matching = self.cookies.iter();
        let mut matching: Vec<_> = matching
            .filter(|cookie| !cookie.expires_by(&now) && cookie.matches(url))
            .collect();
        matching.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.as_ref().len()));
        let pairs = matching.into_iter().map(|cookie| {
            let (name, value) = cookie.name_value();
            match name.is_empty() {
                true => value.to_owned(),
                false => format!("{name}={value}"),
            }
        });
        let field = pairs.collect::<Vec<_>>().join("; ");
        (!field.is_empty()).then_some(field)
    }

    /// Adds a stored or imported cookie, unless it has expired or is unusable. Returns whether it
    /// was added.
    pub(crate) fn add(&mut self, stored: &StoredCookie, now: OffsetDateTime) -> bool {
        let Some(cookie) = stored.cookie() else {
            return false;
        };
        let is_current = !cookie.expires_by(&now);
        self.insert(cookie, now);
        is_current
    }

    /// Returns the cookies in their stored form.
    pub(crate) fn stored(&self) -> Vec<StoredCookie> {
        self.cookies.iter().map(StoredCookie::of).collect()
    }

    /// Returns the values to redact in everything kept from responses.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        // Don't redact short values, because any page may contain them as words. This also applies
        // to cookies that a server marks as `HttpOnly`.
        let values = self.cookies.iter().map(|cookie| cookie.value());
        values.filter(|value| value.len() >= MIN_SECRET_COOKIE_BYTES)
    }

    pub(crate) fn clear(&mut self) {
        self.cookies.clear();
    }

    fn insert(&mut self, cookie: Cookie<'static>, now: OffsetDateTime) {
        let is_gone = cookie.expires_by(&now);
        let same = self.cookies.iter().position(|held| {
            let is_same_domain = held.domain.as_cow() == cookie.domain.as_cow();
            held.name() == cookie.name()
                && is_same_domain
                && held.path.as_ref() == cookie.path.as_ref()
        });
        match (same, is_gone) {
            (Some(at), true) => drop(self.cookies.remove(at)),
            (Some(at), false) => self.cookies[at] = cookie,
            (None, true) => {}
            (None, false) => self.cookies.push(cookie),
        }
        if self.is_full() {
            self.cookies.retain(|held| !held.expires_by(&now));
        }
        while self.is_full() {
            self.cookies.remove(0);
        }
    }

    fn is_full(&self) -> bool {
        let bytes = |cookie: &Cookie<'_>| {
            let domain = cookie.domain.as_cow().map_or(0, |domain| domain.len());
            cookie.name().len() + cookie.value().len() + cookie.path.as_ref().len() + domain
        };
        self.cookies.len() > MAX_COOKIES
            || self.cookies.iter().map(bytes).sum::<usize>() > MAX_JAR_BYTES
    }

    /// Returns whether the jar holds a `Secure` cookie that `cookie` would hide (RFC 6265bis
    /// section 5.7, "leave secure cookies alone").
    fn holds_secure_twin(&self, cookie: &Cookie<'_>, url: &CanonicalUrl) -> bool {
        self.cookies.iter().any(|held| {
            held.secure() == Some(true)
                && held.name() == cookie.name()
                && held.domain.matches(url.as_url())
        })
    }
}

impl StoredCookie {
    fn of(cookie: &Cookie<'static>) -> StoredCookie {
        StoredCookie {
            name: cookie.name().to_owned(),
            value: cookie.value().to_owned(),
            domain: cookie.domain.as_cow().unwrap_or_default().into_owned(),
            host_only: matches!(cookie.domain, CookieDomain::HostOnly(_)),
            path: cookie.path.as_ref().to_owned(),
            expires: match cookie.expires {
                CookieExpiration::AtUtc(time) => Some(time.unix_timestamp()),
                CookieExpiration::SessionEnd => None,
            },
            secure: cookie.secure() == Some(true),
            http_only: cookie.http_only() == Some(true),
        }
    }

    fn cookie(&self) -> Option<Cookie<'static>> {
        let url = canonicalize(None, &format!("https://{}/", self.domain)).ok()?;
        let mut raw = RawCookie::new(self.name.clone(), self.value.clone());
        raw.set_path(self.path.clone());
        if !self.host_only && host_address(url.host()).is_none() {
            raw.set_domain(self.domain.clone());
        }
        if let Some(expires) = self.expires {
            let last = Duration::seconds(i64::from(u32::MAX));
            let time = OffsetDateTime::from_unix_timestamp(expires);
            raw.set_expires(time.unwrap_or(OffsetDateTime::UNIX_EPOCH + last));
        }
        raw.set_secure(self.secure);
        raw.set_http_only(self.http_only);
        let is_short =
            self.name.len() + self.value.len() <= MAX_COOKIE_BYTES && !is_long(&self.path);
        let cookie = Cookie::try_from_raw_cookie(&raw, url.as_url()).ok();
        cookie.filter(|_| is_short).map(Cookie::into_owned)
    }
}

/// Parses the value of a `Set-Cookie` field. A cookie without a name is kept (RFC 6265bis section
/// 5.6), unless it has no value either.
fn parsed(set_cookie: &str) -> Result<RawCookie<'static>, CookieRefusal> {
    let (pair, attributes) = match set_cookie.find(';') {
        Some(at) => set_cookie.split_at(at),
        None => (set_cookie, ""),
    };
    let (name, value) = pair.split_once('=').unwrap_or(("", pair));
    let is_nameless = name.trim().is_empty();
    let text = match is_nameless {
        true if value.trim().is_empty() => return Err(CookieRefusal::Malformed),
        // The parser requires a name.
        true => format!("name={value}{attributes}"),
        false => set_cookie.to_owned(),
    };
    let mut raw = RawCookie::parse(text).map_err(|_| CookieRefusal::Malformed)?;
    if is_nameless {
        raw.set_name("");
    }
    raw.set_expires(expires(attributes));
    Ok(raw)
}

/// Returns the last valid date of the `Expires` attributes (RFC 6265 section 5.2.1). The library
/// parses only a few forms of dates.
fn expires(attributes: &str) -> Option<OffsetDateTime> {
    attributes.rsplit(';').find_map(|attribute| {
        let (name, value) = attribute.split_once('=')?;
        let is_date = name.trim().eq_ignore_ascii_case("expires") && !is_long(value.trim());
        is_date.then(|| parse_cookie_date(value)).flatten()
    })
}

/// Converts a time of the crawl into the type that `cookie_store` uses.
pub(super) fn utc(now: Tick) -> OffsetDateTime {
    let seconds = i64::try_from(now.as_micros() / 1_000_000).unwrap_or(i64::MAX);
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

fn is_long(attribute: &str) -> bool {
    attribute.len() > MAX_ATTRIBUTE_BYTES
}

#[cfg(test)]
mod tests {
    use crawl_weburl::{CanonicalUrl, canonicalize};
    use time::{Duration, OffsetDateTime};

    use super::{CookieJar, CookieRefusal, MAX_ATTRIBUTE_BYTES, MAX_COOKIES, MAX_JAR_BYTES};

    fn url(text: &str) -> CanonicalUrl {
        canonicalize(None, text).unwrap()
    }

    fn now() -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap()
    }

    /// Returns a jar that received these fields from `from`.
    fn jar(from: &str, fields: &[&str]) -> CookieJar {
        let mut jar = CookieJar::default();
        for field in fields {
            assert_eq!(jar.receive(&url(from), field, now()), Ok(()), "{field}");
        }
        jar
    }

    fn sent(jar: &CookieJar, to: &str) -> String {
        jar.field(&url(to), now()).unwrap_or_default()
    }

    #[test]
    fn rfc6265bis_5_8_3_cookies_go_to_matching_domains_paths_and_schemes() {
        let jar = jar(
            "https://www.example.org/shop/cart",
            &[
                "host=1",
                "domain=2; Domain=.Example.org; Path=/",
                "secure=3; Secure; Path=/",
                "deep=4; Path=/shop/cart",
            ],
        );
        for (to, expected) in [
            (
                "https://www.example.org/shop/cart",
                "deep=4; host=1; domain=2; secure=3",
            ),
            (
                "https://www.example.org/shop/carts",
                "host=1; domain=2; secure=3",
            ),
            ("https://www.example.org/", "domain=2; secure=3"),
            ("http://www.example.org/", "domain=2"),
            ("https://m.example.org/shop/x", "domain=2"),
            ("https://example.org/shop/x", "domain=2"),
            ("https://notexample.org/", ""),
            ("https://example.com/", ""),
        ] {
            assert_eq!(sent(&jar, to), expected, "{to}");
        }
    }

    #[test]
    fn rfc6265bis_5_7_cookies_of_others_are_refused() {
        let from = "https://www.shop.co.uk/";
        for (from, field, refusal) in [
            (from, "a=1; Domain=co.uk", CookieRefusal::PublicSuffix),
            (from, "a=1; Domain=other.co.uk", CookieRefusal::OtherDomain),
            (
                from,
                "a=1; Domain=m.www.shop.co.uk",
                CookieRefusal::OtherDomain,
            ),
            (
                "http://192.0.2.7/",
                "a=1; Domain=2.7",
                CookieRefusal::OtherDomain,
            ),
            (
                "http://www.shop.co.uk/",
                "a=1; Secure",
                CookieRefusal::NotSecure,
            ),
            (from, "__Secure-a=1", CookieRefusal::Prefix),
            (from, "__Host-a=1; Secure; Path=/x", CookieRefusal::Prefix),
            (
                from,
                "__HOST-a=1; Secure; Path=/; Domain=shop.co.uk",
                CookieRefusal::Prefix,
            ),
            (from, "__Secure-a; Secure", CookieRefusal::Prefix),
            (from, "=__Host-a=1; Secure; Path=/", CookieRefusal::Prefix),
            (from, "", CookieRefusal::Malformed),
            (from, " = ; Path=/", CookieRefusal::Malformed),
            (from, "a=b\u{1}c", CookieRefusal::Malformed),
        ] {
            let result = CookieJar::default().receive(&url(from), field, now());
            assert_eq!(result, Err(refusal), "{field}");
        }
        let own_suffix = jar("https://alice.github.io/", &["a=1; Domain=alice.github.io"]);
        assert_eq!(sent(&own_suffix, "https://bob.github.io/"), "");
        let suffix = jar("https://github.io/", &["a=1; Domain=github.io"]);
        assert_eq!(sent(&suffix, "https://github.io/"), "a=1");
        assert_eq!(sent(&suffix, "https://bob.github.io/"), "");
        let mut secure = jar("https://a.example/", &["a=1; Secure"]);
        let hidden = secure.receive(&url("http://a.example/"), "a=2", now());
        assert_eq!(hidden, Err(CookieRefusal::NotSecure));
    }

    #[test]
    fn rfc6265bis_5_7_cookies_expire_and_are_replaced() {
        let from = "https://a.example/";
        let mut jar = jar(
            from,
            &[
                "age=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
                "day=2; Expires=Fri, 15 Jan 2027 08:01:40 GMT",
                "session=3",
            ],
        );
        assert_eq!(sent(&jar, from), "age=1; day=2; session=3");
        let after = |seconds| jar.field(&url(from), now() + Duration::seconds(seconds));
        assert_eq!(after(59).as_deref(), Some("age=1; day=2; session=3"));
        assert_eq!(after(60).as_deref(), Some("day=2; session=3"));
        assert_eq!(after(100).as_deref(), Some("session=3"));
        for (field, expected) in [
            ("age=4", "age=4; day=2; session=3"),
            ("age=; Max-Age=0", "day=2; session=3"),
            ("day=x; Max-Age=-9223372036854775808", "session=3"),
            ("age=5; Expires=soon", "session=3; age=5"),
            (
                "age=; expires=Thu, 01 Jan 1970 00:00:00 UTC; Expires=never",
                "session=3",
            ),
            ("session=5; Path=/p", "session=3"),
        ] {
            jar.receive(&url(from), field, now()).unwrap();
            assert_eq!(sent(&jar, from), expected, "{field}");
        }
    }

    #[test]
    fn rfc6265bis_5_6_a_cookie_needs_no_name() {
        let from = "https://a.example/";
        let mut jar = jar(from, &["a=1", " foo ; Path=/; Secure", "b=2"]);
        assert_eq!(sent(&jar, from), "a=1; foo; b=2");
        assert_eq!(sent(&jar, "http://a.example/"), "a=1; b=2");
        // All cookies without a name have the same name.
        jar.receive(&url(from), "=x=y; Secure", now()).unwrap();
        assert_eq!(sent(&jar, from), "a=1; x=y; b=2");
    }

    #[test]
    fn ours_a_jar_is_bounded_in_cookies_and_bytes() {
        let from = url("https://a.example/");
        let long = format!("a={}", "x".repeat(1 << 20));
        let refused = CookieJar::default().receive(&from, &long, now());
        assert_eq!(refused, Err(CookieRefusal::TooLong));
        let mut many = CookieJar::default();
        for number in 0..5_000 {
            let field = format!("c{number}=1");
            many.receive(&from, &field, now()).unwrap();
        }
        assert_eq!(many.stored().len(), MAX_COOKIES);
        assert!(sent(&many, from.as_str()).ends_with("c4999=1"));
        let mut large = CookieJar::default();
        for number in 0..20 {
            let field = format!("c{number}={}", "x".repeat(4_000));
            large.receive(&from, &field, now()).unwrap();
        }
        let mut deep = CookieJar::default();
        for number in 0..MAX_COOKIES {
            let field = format!("c{number}=1; Path=/{}", "x".repeat(1_000));
            deep.receive(&from, &field, now()).unwrap();
        }
        let bytes = |jar: &CookieJar| {
            let stored = jar.stored().into_iter();
            let bytes = stored
                .map(|one| one.name.len() + one.value.len() + one.path.len() + one.domain.len());
            bytes.sum::<usize>()
        };
        for jar in [large, deep] {
            assert!(
                (1..=MAX_JAR_BYTES).contains(&bytes(&jar)),
                "{}",
                bytes(&jar)
            );
        }
    }

    #[test]
    fn rfc6265bis_5_6_long_attributes_are_ignored() {
        let long = format!("/{}", "x".repeat(MAX_ATTRIBUTE_BYTES));
        let field = format!("a=1; Path={long}");
        for (from, path) in [
            ("https://a.example/b/c".to_owned(), "/b"),
            (format!("https://a.example{long}/c"), "/"),
        ] {
            let stored = jar(&from, &[&field]).stored();
            assert_eq!(stored[0].path, path, "{from}");
        }
    }

    #[test]
    fn stored_cookies_are_restored_unchanged() {
        let from = "https://www.example.org/a/b";
        let before = jar(
            from,
            &[
                "host=1; HttpOnly",
                "domain=2; Domain=example.org; Path=/; Max-Age=60; Secure",
                "quoted=\"3 4\"",
                "nameless",
            ],
        );
        let mut after = CookieJar::default();
        for stored in before.stored() {
            assert!(after.add(&stored, now()));
        }
        assert!(before.stored() == after.stored());
        for to in [from, "https://example.org/", "http://m.example.org/"] {
            assert_eq!(sent(&before, to), sent(&after, to), "{to}");
        }
        let mut late = CookieJar::default();
        let kept = before.stored();
        let kept = kept
            .iter()
            .filter(|one| late.add(one, now() + Duration::HOUR));
        assert_eq!(kept.count(), 3);
    }

    #[test]
    fn short_values_do_not_count_as_secrets() {
        let jar = jar(
            "https://a.example/",
            &[
                "lang=english",
                "id=abcdef; HttpOnly",
                "token=0123456789abcdef",
            ],
        );
        let secrets: Vec<&str> = jar.secrets().collect();
        assert_eq!(secrets, ["0123456789abcdef"]);
    }
}
