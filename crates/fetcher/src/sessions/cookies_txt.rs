//! Reads cookies from a `cookies.txt` file, the format that browsers' add-ons, curl and wget
//! exchange.

use super::stored_cookie::StoredCookie;

/// Prefix of the domain of a cookie with `HttpOnly`.
const HTTP_ONLY: &str = "#HttpOnly_";

/// A line of a `cookies.txt` that is not a cookie. Does not contain the cookie's value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct BadCookieLine {
    /// The number of the line, counted from 1.
    pub line: usize,
    /// The defect of the line.
    pub why: String,
}

/// The cookies of a `cookies.txt` file. `Debug` shows only their number.
#[derive(Clone, Default)]
pub struct CookieFile(pub(super) Vec<StoredCookie>);

impl CookieFile {
    /// Parses seven fields per line, separated by tabs: domain, whether subdomains are included,
    /// path, whether only https is allowed, expiry in seconds since 1970 (0 for the session), name
    /// and value.
    ///
    /// # Errors
    /// Returns the first line that does not have this form.
    pub fn parse(text: &str) -> Result<CookieFile, BadCookieLine> {
        let mut cookies = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.strip_prefix('\u{feff}').unwrap_or(line);
            let (line, http_only) = match line.strip_prefix(HTTP_ONLY) {
                Some(rest) => (rest, true),
                None => (line, false),
            };
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let cookie = cookie(line, http_only);
            cookies.push(cookie.map_err(|why| BadCookieLine { line: number, why })?);
        }
        Ok(CookieFile(cookies))
    }

    /// Returns the domains of the cookies, each once, in the order of the file.
    #[must_use]
    pub fn domains(&self) -> Vec<&str> {
        let mut domains: Vec<&str> = Vec::new();
        for cookie in &self.0 {
            if !domains.contains(&&*cookie.domain) {
                domains.push(&cookie.domain);
            }
        }
        domains
    }
}

impl std::fmt::Debug for CookieFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CookieFile({})", self.0.len())
    }
}

fn cookie(line: &str, http_only: bool) -> Result<StoredCookie, String> {
    let fields: Vec<&str> = line.splitn(7, '\t').collect();
    let [domain, subdomains, path, secure, expires, name, ..] = fields[..] else {
        return Err(format!(
            "{} fields between tabs where 7 are expected: domain, subdomains, path, secure, \
             expiry, name, value",
            fields.len()
        ));
    };
    let flag = |text: &str, what: &str| match text {
        "TRUE" | "true" => Ok(true),
        "FALSE" | "false" => Ok(false),
        _ => Err(format!("`{what}` must be TRUE or FALSE")),
    };
    // Browsers write fractions of a second, and some programs write -1 for a session cookie.
    let seconds = expires.split('.').next().unwrap_or_default().parse::<i64>();
    let seconds = seconds.map_err(|_| "the expiry isn't a number of seconds".to_owned())?;
    let bare = domain.trim_start_matches('.');
    if bare.is_empty() || bare.contains(['/', ' ', '@']) {
        return Err(format!("`{domain}` isn't a domain"));
    }
    if !path.starts_with('/') {
        return Err(format!("the path `{path}` doesn't begin with `/`"));
    }
    let value = fields.get(6).copied().unwrap_or_default();
    if [name, value]
        .iter()
        .any(|text| text.contains([';', '\r', '\n', '\0']))
    {
        return Err("the name or value contains a character that separates cookies".to_owned());
    }
    Ok(StoredCookie {
        name: name.to_owned(),
        value: value.to_owned(),
        domain: bare.to_ascii_lowercase(),
        host_only: !flag(subdomains, "subdomains")?,
        path: path.to_owned(),
        expires: (seconds > 0).then_some(seconds),
        secure: flag(secure, "secure")?,
        http_only,
    })
}

#[cfg(test)]
mod tests {
    use super::CookieFile;

    #[test]
    fn each_line_is_a_cookie() {
        let file = CookieFile::parse(
            "# Netscape HTTP Cookie File\n\n\
             .example.org\tTRUE\t/\tTRUE\t1900000000.5\tsid\ta\tb\n\
             #HttpOnly_www.example.org\tFALSE\t/a\tFALSE\t0\tid\t\r\n\
             #HttpOnly_www.example.org\tFALSE\t/a\tFALSE\t-1\tname",
        )
        .unwrap();
        let shown: Vec<_> = file
            .0
            .iter()
            .map(|one| {
                let flags = (one.host_only, one.secure, one.http_only);
                (&*one.domain, &*one.name, &*one.value, one.expires, flags)
            })
            .collect();
        assert_eq!(
            shown,
            [
                (
                    "example.org",
                    "sid",
                    "a\tb",
                    Some(1_900_000_000),
                    (false, true, false)
                ),
                ("www.example.org", "id", "", None, (true, false, true)),
                ("www.example.org", "name", "", None, (true, false, true)),
            ]
        );
        assert_eq!(file.domains(), ["example.org", "www.example.org"]);
        assert_eq!(format!("{file:?}"), "CookieFile(3)");
    }

    #[test]
    fn errors_name_the_line_but_not_the_value() {
        for (line, expected) in [
            (
                "sid=s3cret",
                "line 2: 1 fields between tabs where 7 are expected: domain, subdomains, path, secure, expiry, name, value",
            ),
            (
                "a.example\tyes\t/\tTRUE\t0\tn\ts3cret",
                "line 2: `subdomains` must be TRUE or FALSE",
            ),
            (
                "a.example\tTRUE\t/\tTRUE\tnever\tn\ts3cret",
                "line 2: the expiry isn't a number of seconds",
            ),
            (
                "a b\tTRUE\t/\tTRUE\t0\tn\ts3cret",
                "line 2: `a b` isn't a domain",
            ),
            (
                "a.example\tTRUE\tx\tTRUE\t0\tn\ts3cret",
                "line 2: the path `x` doesn't begin with `/`",
            ),
            (
                "a.example\tTRUE\t/\tTRUE\t0\tn\ts3;cret",
                "line 2: the name or value contains a character that separates cookies",
            ),
        ] {
            let error = CookieFile::parse(&format!("#\n{line}\n")).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
