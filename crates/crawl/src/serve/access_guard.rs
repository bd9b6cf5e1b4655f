//! Access control: the server's name, the requesting page's origin, and the token.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, StatusCode, Uri, Version, header};
use crawl_weburl::{host_address, safe_line};

use super::authority::{HostFieldAuthority, named};
use super::control_token::ControlTokenDigest;
use super::error_response::ErrorResponse;
use super::serve_options::ServeOptions;

/// Decides which requests are answered, and who may control the crawl.
#[derive(Debug)]
pub(crate) struct AccessGuard {
    on_loopback: bool,
    behind_proxy: bool,
    token: Option<ControlTokenDigest>,
}

/// Whether clients may control the crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControlAccess {
    /// Clients that send the token may control the crawl.
    Token,
    /// No client may control the crawl.
    Closed,
}

impl ControlAccess {
    pub(crate) fn name(self) -> &'static str {
        match self {
            ControlAccess::Token => "token",
            ControlAccess::Closed => "closed",
        }
    }
}

impl AccessGuard {
    pub(crate) fn new(options: &ServeOptions) -> AccessGuard {
        AccessGuard {
            on_loopback: options.listen.ip().is_loopback(),
            behind_proxy: options.behind_proxy,
            token: options.token.clone(),
        }
    }

    /// Checks the host name in a request, which must be valid (RFC 9112 section 3.2). A server on
    /// loopback accepts only loopback names, unless it is behind a proxy. Otherwise a page of
    /// another site could use DNS rebinding to read everything that the server serves. A request
    /// with more than one `Origin` field is rejected.
    pub(crate) fn admits(
        &self,
        version: Version,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), ErrorResponse> {
        valid_host(version, headers)?;
        if headers.get_all(header::ORIGIN).iter().nth(1).is_some() {
            let error = "the request has more than one `Origin`";
            return Err(ErrorResponse::new(StatusCode::BAD_REQUEST, error)
                .hint("send the origin of the requesting page, or none"));
        }
        if !self.on_loopback || self.behind_proxy {
            return Ok(());
        }
        let name = named(uri, headers);
        match name.as_deref().and_then(HostFieldAuthority::parse) {
            Some(authority) if authority.is_loopback() => Ok(()),
            _ => {
                let name = name.map_or_else(
                    || "no host".to_owned(),
                    |name| format!("`{}`", safe_line(&name)),
                );
                let error = format!("{name} isn't a name of this server");
                Err(
                    ErrorResponse::new(StatusCode::MISDIRECTED_REQUEST, error).hint(
                        "it serves only this machine; behind a reverse proxy, start it with \
                     --behind-proxy",
                    ),
                )
            }
        }
    }

    /// Returns the address of the client whose rate limit a request counts against.
    pub(crate) fn client(&self, peer: SocketAddr, headers: &HeaderMap) -> IpAddr {
        let forwarded = || {
            // Use the last entry, which our own proxy wrote. Clients can forge all others.
            let field = headers.get_all("x-forwarded-for").iter().next_back()?;
            let last = field.to_str().ok()?.rsplit(',').next()?.trim();
            host_address(last)
        };
        match self.behind_proxy {
            true => forwarded().unwrap_or(peer.ip()),
            false => peer.ip(),
        }
    }

    /// Returns whether clients may control the crawl. Even clients on this machine need a token,
    /// because a local proxy makes every client look local.
    pub(crate) fn controls(&self) -> ControlAccess {
        match self.token {
            Some(_) => ControlAccess::Token,
            None => ControlAccess::Closed,
        }
    }

    /// Checks that a request may control the crawl: no page of another site sends it, and it
    /// contains the token.
    pub(crate) fn may_control(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), ErrorResponse> {
        same_origin(uri, headers)?;
        let Some(token) = &self.token else {
            let error = "controlling the crawl needs a token, and this server has none";
            return Err(ErrorResponse::forbidden(error).hint(
                "start `crawl serve` with --token-file FILE, or use `crawl control` on the machine",
            ));
        };
        match bearer(headers) {
            Some(given) if token.is(given) => Ok(()),
            given => {
                let error = match given {
                    Some(_) => "the token is wrong",
                    None => "controlling the crawl needs a token",
                };
                Err(ErrorResponse::new(StatusCode::UNAUTHORIZED, error).hint(
                    "the token is in the file of --token-file, or in CRAWL_SERVE_TOKEN: enter it \
                     in the field Token, or send it as `Authorization: Bearer TOKEN`",
                ))
            }
        }
    }
}

/// Rejects a request with several `Host` fields or an invalid one. Also rejects an HTTP/1.1 request
/// without a `Host` field.
fn valid_host(version: Version, headers: &HeaderMap) -> Result<(), ErrorResponse> {
    let refused = |error: &str| {
        Err(ErrorResponse::new(StatusCode::BAD_REQUEST, error)
            .hint("send one `Host` field, such as `Host: search.example`"))
    };
    let mut fields = headers.get_all(header::HOST).iter();
    match (fields.next(), fields.next()) {
        (None, _) if version == Version::HTTP_11 => refused("the request has no `Host`"),
        (None, _) => Ok(()),
        (Some(_), Some(_)) => refused("the request has more than one `Host`"),
        (Some(field), None) => {
            let is_valid = field
                .to_str()
                .is_ok_and(|text| HostFieldAuthority::parse(text).is_some());
            match is_valid {
                true => Ok(()),
                false => refused("the `Host` of the request isn't a host name"),
            }
        }
    }
}

/// Rejects requests that browsers send on behalf of other sites' pages.
fn same_origin(uri: &Uri, headers: &HeaderMap) -> Result<(), ErrorResponse> {
    let refused = |what: String| {
        Err(ErrorResponse::forbidden(what)
            .hint("use the server's own page; a reverse proxy must forward the Host field"))
    };
    let mut sites = headers.get_all("sec-fetch-site").iter();
    if sites.any(|site| site != "same-origin") {
        return refused("a page of another site may not control the crawl".to_owned());
    }
    let Some(origin) = headers.get(header::ORIGIN) else {
        // Browsers send `Origin` with every POST, so the request doesn't come from a browser.
        return Ok(());
    };
    let text = String::from_utf8_lossy(origin.as_bytes()).to_ascii_lowercase();
    let of = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    let own = named(uri, headers).and_then(|name| HostFieldAuthority::parse(&name));
    match own.is_some_and(|own| of == Some(own.text.as_str())) {
        true => Ok(()),
        false => refused(format!(
            "a page of `{}` may not control the crawl",
            safe_line(&text)
        )),
    }
}

/// Returns the token of `Authorization: Bearer` (RFC 6750 section 2.1), if the request has one.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let field = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = field.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderName, Uri, Version};
    use expect_test::{Expect, expect};

    use super::{AccessGuard, ControlAccess};
    use crate::serve::control_token::ControlTokenDigest;

    const OWN: &str = "127.0.0.1:9000";

    fn guard(on_loopback: bool, behind_proxy: bool, token: bool) -> AccessGuard {
        let token = token.then(|| ControlTokenDigest::of_text("0123456789abcdef", "it").unwrap());
        AccessGuard {
            on_loopback,
            behind_proxy,
            token,
        }
    }

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        headers
    }

    /// Returns the status and message of a POST.
    fn posted(guard: &AccessGuard, fields: &[(&'static str, &str)]) -> String {
        let uri = Uri::from_static("/api/crawl/pause");
        let decision = guard.may_control(&uri, &headers(fields));
        match decision {
            Ok(()) => "may".to_owned(),
            Err(problem) => format!("{} {}", problem.status.as_u16(), problem.error),
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "an expectation is used once")]
    fn check(guard: &AccessGuard, rows: &[&[(&'static str, &str)]], expect: Expect) {
        let decisions: String = rows
            .iter()
            .map(|fields| posted(guard, fields) + "\n")
            .collect();
        expect.assert_eq(&decisions);
    }

    #[test]
    fn control_needs_a_token() {
        let host = ("host", "127.0.0.1:8787");
        let rows: [&[_]; 4] = [
            &[host],
            &[host, ("origin", "http://127.0.0.1:8787")],
            &[host, ("origin", "null")],
            &[host, ("sec-fetch-site", "same-site")],
        ];
        check(
            &guard(true, false, false),
            &rows,
            expect![[r#"
                403 controlling the crawl needs a token, and this server has none
                403 controlling the crawl needs a token, and this server has none
                403 a page of `null` may not control the crawl
                403 a page of another site may not control the crawl
            "#]],
        );
    }

    #[test]
    fn a_token_is_required_from_everyone() {
        let host = ("host", "search.example");
        let rows: [&[_]; 6] = [
            &[host, ("authorization", "Bearer 0123456789abcdef")],
            &[host, ("authorization", "bearer  0123456789abcdef")],
            &[host],
            &[host, ("authorization", "Bearer 0123456789abcdeg")],
            &[host, ("authorization", "Basic 0123456789abcdef")],
            &[
                host,
                ("authorization", "Bearer 0123456789abcdef"),
                ("origin", "https://other.example"),
            ],
        ];
        check(
            &guard(false, false, true),
            &rows,
            expect![[r#"
                may
                may
                401 controlling the crawl needs a token
                401 the token is wrong
                401 controlling the crawl needs a token
                403 a page of `https://other.example` may not control the crawl
            "#]],
        );
        assert!(posted(&guard(true, false, true), &[("host", OWN)]).starts_with("401"));
    }

    #[test]
    fn on_loopback_only_names_of_loopback_are_answered() {
        let guard = guard(true, false, false);
        let named = |uri: &str, host: &str| {
            let uri: Uri = uri.parse().unwrap();
            let fields = headers(&[("host", host)]);
            guard.admits(Version::HTTP_11, &uri, &fields).is_ok()
        };
        for host in ["127.0.0.1:8787", "localhost", "[::1]:8787", "127.9.9.9"] {
            assert!(named("/", host), "{host}");
        }
        for host in [
            "example.org",
            "localhost.example.org",
            "192.0.2.1",
            "a@localhost",
            "[::1]evil.example",
        ] {
            assert!(!named("/", host), "{host}");
        }
        assert!(!named("http://example.org/", "localhost"));
        let uri = Uri::from_static("/");
        let status = |fields: &HeaderMap| {
            let refusal = guard.admits(Version::HTTP_11, &uri, fields).unwrap_err();
            refusal.status
        };
        assert_eq!(status(&headers(&[("host", "example.org")])), 421);
        let origin = ("origin", "http://localhost");
        assert_eq!(
            status(&headers(&[("host", "localhost"), origin, origin])),
            400
        );
    }

    #[test]
    fn rfc9112_3_2_a_request_has_one_valid_host() {
        for behind_proxy in [true, false] {
            let guard = guard(false, behind_proxy, true);
            for (version, hosts, is_admitted) in [
                (Version::HTTP_11, &["a.example"][..], true),
                (Version::HTTP_11, &["a.example", "a.example"], false),
                (Version::HTTP_11, &["a b/c"], false),
                (Version::HTTP_11, &[], false),
                (Version::HTTP_10, &[], true),
                (Version::HTTP_10, &["a", "b"], false),
            ] {
                let fields: Vec<_> = hosts.iter().map(|host| ("host", *host)).collect();
                let decision = guard.admits(version, &Uri::from_static("/"), &headers(&fields));
                let status = decision.map_or_else(|refusal| refusal.status.as_u16(), |()| 200);
                assert_eq!(status, if is_admitted { 200 } else { 400 }, "{hosts:?}");
            }
        }
    }

    #[test]
    fn behind_a_proxy_the_client_is_the_last_forwarded_address() {
        let peer = OWN.parse().unwrap();
        let client = |behind, fields: &[(&'static str, &str)]| {
            let client = guard(true, behind, false).client(peer, &headers(fields));
            client.to_string()
        };
        let fields = [("x-forwarded-for", "10.0.0.1, 192.0.2.7")];
        assert_eq!(client(true, &fields), "192.0.2.7");
        assert_eq!(client(false, &fields), "127.0.0.1");
        assert_eq!(
            client(true, &[("x-forwarded-for", "[2001:db8::1]")]),
            "2001:db8::1"
        );
        assert_eq!(client(true, &[("x-forwarded-for", "nobody")]), "127.0.0.1");
    }

    #[test]
    fn pages_show_only_allowed_controls() {
        assert_eq!(guard(true, false, false).controls(), ControlAccess::Closed);
        assert_eq!(guard(true, true, true).controls(), ControlAccess::Token);
    }
}
