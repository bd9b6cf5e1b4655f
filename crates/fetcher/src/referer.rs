//! The `Referer` field (RFC 9110 section 10.1.3), following strict-origin-when-cross-origin of W3C
//! Referrer Policy section 3.6, which is also the browsers' default.

use crawl_weburl::CanonicalUrl;
use http::HeaderValue;

/// Maximum length of a `Referer`. A longer URL is cut to its origin (Referrer Policy section 8.3,
/// step 4).
const MAX_REFERER_BYTES: usize = 4096;

/// Returns the `Referer` of a request for `url` that was found on `found_on`. `None` if it would
/// reveal an https URL over http.
pub(crate) fn referer(found_on: &CanonicalUrl, url: &CanonicalUrl) -> Option<HeaderValue> {
    let is_downgrade = found_on.scheme() == "https" && url.scheme() != "https";
    let is_whole =
        found_on.origin() == url.origin() && found_on.as_str().len() <= MAX_REFERER_BYTES;
    let text = match is_whole {
        // A canonical URL has neither fragment nor userinfo.
        true => found_on.to_string(),
        false if is_downgrade => return None,
        false => format!("{}/", found_on.origin()),
    };
    HeaderValue::try_from(text).ok()
}

#[cfg(test)]
mod tests {
    use crawl_weburl::canonicalize;

    use super::*;

    #[test]
    fn referrer_policy_3_6_strict_origin_when_cross_origin() {
        let long = format!("http://a.example/{}", "a".repeat(MAX_REFERER_BYTES));
        for (from, to, expect) in [
            (
                "http://me:pw@a.example/x?y#z",
                "http://a.example/b",
                "http://a.example/x?y",
            ),
            (
                "https://a.example:444/x",
                "https://a.example:444/b",
                "https://a.example:444/x",
            ),
            (
                "https://a.example/x",
                "https://a.example:444/b",
                "https://a.example/",
            ),
            (
                "http://a.example/x",
                "http://b.example/",
                "http://a.example/",
            ),
            (
                "http://a.example/x",
                "https://a.example/",
                "http://a.example/",
            ),
            (
                "https://a.example/x",
                "https://b.example/",
                "https://a.example/",
            ),
            ("https://a.example/x", "http://a.example/", ""),
            ("https://a.example/x", "http://b.example/", ""),
            (&long, "http://a.example/b", "http://a.example/"),
        ] {
            let url = |text| canonicalize(None, text).unwrap();
            let field = referer(&url(from), &url(to));
            let field = field.as_ref().map_or("", |value| value.to_str().unwrap());
            assert_eq!(field, expect, "{from} to {to}");
        }
    }
}
