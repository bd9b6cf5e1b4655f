//! Computes from the header fields of a robots.txt response how long it is fresh. This code is
//! independent of the code that the crawl uses.

use std::time::{Duration, SystemTime};

use crate::header_fields::HeaderFields;

/// Minimum lifetime of a response in milliseconds, even if its header fields define a shorter one
/// or forbid to store it. With no lifetime, robots.txt would be fetched before each page.
const MIN_AGE: u64 = 60_000;
/// Maximum wait that a response can demand, in milliseconds. If a response demands more, this wait
/// applies.
pub(super) const MAX_WAIT: u64 = 24 * 3600 * 1000;

/// Returns the lifetime in milliseconds of a response that ended at `end`, in milliseconds since
/// 1970. The lifetime is `most` if the header fields define none, and never longer; it is at least
/// [`MIN_AGE`], unless `most` is shorter. `Cache-Control` takes precedence over `Expires` (RFC 9111
/// section 5.3), and `Age` is subtracted.
pub(super) fn life(fields: &HeaderFields, end: u64, most: u64) -> u64 {
    let stated = cache_control(fields).or_else(|| expires(fields, end));
    let remaining = stated.map(|stated| stated.saturating_sub(age(fields)));
    remaining.map_or(most, |time| time.max(MIN_AGE).min(most))
}

/// Returns whether any header field defines the lifetime.
pub(super) fn says_life(fields: &HeaderFields) -> bool {
    fields.first("cache-control").is_some() || fields.first("expires").is_some()
}

/// Returns the wait demanded by `Retry-After` in milliseconds, at most a day. 0 if no wait is
/// demanded.
pub(super) fn retry_after(fields: &HeaderFields, end: u64) -> u64 {
    let waits = fields.all("retry-after").filter_map(|value| {
        let text = std::str::from_utf8(value).ok()?.trim();
        match seconds(text) {
            Some(wait) => Some(wait),
            None => Some(until(text, fields, end)?.unwrap_or(0)),
        }
    });
    waits.max().unwrap_or(0).min(MAX_WAIT)
}

/// Returns the lifetime in `Cache-Control`, in milliseconds. If several directives define a
/// lifetime, the shortest counts. `None` if no directive defines one.
fn cache_control(fields: &HeaderFields) -> Option<u64> {
    let mut shortest: Option<u64> = None;
    for value in fields.all("cache-control") {
        let value = String::from_utf8_lossy(value).to_ascii_lowercase();
        for directive in value.split(',') {
            let (name, argument) = directive.split_once('=').unwrap_or((directive, ""));
            let stated = match name.trim() {
                "no-store" | "no-cache" => 0,
                // An unreadable value counts as stale (RFC 9111 section 4.2.1).
                "max-age" => seconds(argument.trim().trim_matches('"')).unwrap_or(0),
                _ => continue,
            };
            shortest = Some(shortest.map_or(stated, |shortest| shortest.min(stated)));
        }
    }
    shortest
}

/// Returns the lifetime that `Expires` defines, in milliseconds. `None` if the response doesn't
/// have this field. An invalid date counts as past (RFC 9111 section 5.3).
fn expires(fields: &HeaderFields, end: u64) -> Option<u64> {
    let value = fields.first("expires")?;
    let text = std::str::from_utf8(value).unwrap_or_default().trim();
    Some(until(text, fields, end).flatten().unwrap_or(0))
}

fn age(fields: &HeaderFields) -> u64 {
    let text = fields.first("age").map(std::str::from_utf8);
    text.and_then(Result::ok).and_then(seconds).unwrap_or(0)
}

/// Returns the milliseconds from the `Date` of the response (or from `end`) to the date in `text`.
/// Returns `Some(None)` if the date is past, and `None` if `text` isn't a date.
fn until(text: &str, fields: &HeaderFields, end: u64) -> Option<Option<u64>> {
    let until = httpdate::parse_http_date(text).ok()?;
    let date = fields.first("date").map(std::str::from_utf8);
    let date = date.and_then(Result::ok);
    let date = date.and_then(|date| httpdate::parse_http_date(date.trim()).ok());
    let from = date.unwrap_or(SystemTime::UNIX_EPOCH + Duration::from_millis(end));
    let remaining = until.duration_since(from).ok();
    Some(remaining.map(|remaining| u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX)))
}

/// Parses a number of seconds and converts it to milliseconds, saturating. `None` if the text isn't
/// a number.
fn seconds(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::{MAX_WAIT, life, retry_after};
    use crate::header_fields::HeaderFields;

    /// 1994-11-15 08:12:31 UTC.
    const NOW: u64 = 784_887_151_000;

    fn check(fields: &[(&str, &str)], seconds: u64) {
        let millis = life(&HeaderFields::of(fields), NOW, 86_400_000);
        assert_eq!(millis, seconds * 1000, "{fields:?}");
    }

    #[test]
    fn rfc9111_5_2_2_1_max_age_and_5_3_expires() {
        check(&[], 86_400);
        check(&[("cache-control", "public, Max-Age=\"600\"")], 600);
        check(&[("cache-control", "max-age=600"), ("age", "100")], 500);
        check(&[("cache-control", "max-age=9999999")], 86_400);
        check(&[("cache-control", "no-cache, max-age=600")], 60);
        check(&[("cache-control", "max-age=x")], 60);
        check(&[("cache-control", "max-age=1")], 60);
        check(&[("expires", "Tue, 15 Nov 1994 08:12:41 GMT")], 60);
        let date = ("date", "Tue, 15 Nov 1994 05:00:00 GMT");
        check(&[date, ("expires", "Tue, 15 Nov 1994 05:01:30 GMT")], 90);
        check(&[("expires", "0")], 60);
    }

    #[test]
    fn rfc9110_10_2_3_retry_after() {
        let check = |value: &str| retry_after(&HeaderFields::of(&[("retry-after", value)]), NOW);
        assert_eq!(check("120"), 120_000);
        assert_eq!(check("Tue, 15 Nov 1994 08:13:31 GMT"), 60_000);
        assert_eq!(check("99999999"), MAX_WAIT);
        assert_eq!(check("soon"), 0);
    }
}
