//! The wait that a server requests with `Retry-After`.

use std::time::{Duration, SystemTime};

use crawl_scheduler::Tick;
use http::HeaderMap;
use http::header::{DATE, HeaderName, RETRY_AFTER};

/// The longest wait that an answer can ask for: a hundred years. Tables store it in signed 64-bit
/// milliseconds.
const LONGEST_WAIT: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Returns the wait in `Retry-After` (RFC 9110 section 10.2.3), given in seconds or as an HTTP
/// date. `None` if no field is valid.
///
/// The wait until a date counts from the answer's own `Date` if there is one, so that a server with
/// a wrong clock gets the wait it meant. Otherwise it counts from `now`. A date in the past means
/// zero. A wait of more than a hundred years is cut to that. The longest of several
/// fields wins. An invalid field is ignored.
#[must_use]
pub fn retry_after(headers: &HeaderMap, now: Tick) -> Option<Duration> {
    let now = SystemTime::UNIX_EPOCH + Duration::from_micros(now.as_micros());
    let from = date(headers, &DATE).unwrap_or(now);
    let waits = headers.get_all(RETRY_AFTER).iter().filter_map(|value| {
        let text = value.to_str().ok()?.trim();
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            let wait = text.parse().map_or(LONGEST_WAIT, Duration::from_secs);
            return Some(wait.min(LONGEST_WAIT));
        }
        let until = httpdate::parse_http_date(text).ok()?;
        Some(until.duration_since(from).unwrap_or_default())
    });
    waits.max()
}

/// Parses the first field with this name as an HTTP date (RFC 9110 section 5.6.7).
pub(crate) fn date(headers: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    let text = headers.get(name)?.to_str().ok()?;
    httpdate::parse_http_date(text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// Checks the wait in seconds that these fields set at 1994-11-15 08:12:31 UTC.
    fn check(fields: &[(&'static str, &'static str)], wait: Option<u64>) {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_static(value));
        }
        let now = Tick::from_micros(784_887_151_000_000);
        assert_eq!(
            retry_after(&headers, now),
            wait.map(Duration::from_secs),
            "{fields:?}"
        );
    }

    #[test]
    fn rfc9110_10_2_3_seconds() {
        check(&[("retry-after", "120")], Some(120));
        check(&[("retry-after", " 0 ")], Some(0));
        check(
            &[("retry-after", "99999999999999999999999")],
            Some(LONGEST_WAIT.as_secs()),
        );
        check(&[], None);
    }

    #[test]
    fn rfc9110_10_2_3_date() {
        check(
            &[("retry-after", "Tue, 15 Nov 1994 08:13:31 GMT")],
            Some(60),
        );
        check(&[("retry-after", "Tue, 15 Nov 1994 08:00:00 GMT")], Some(0));
        check(
            &[("retry-after", "Tuesday, 15-Nov-94 08:13:31 GMT")],
            Some(60),
        );
    }

    #[test]
    fn a_date_is_measured_from_the_servers_own_clock() {
        check(
            &[
                ("retry-after", "Tue, 15 Nov 1994 03:00:30 GMT"),
                ("date", "Tue, 15 Nov 1994 03:00:00 GMT"),
            ],
            Some(30),
        );
    }

    #[test]
    fn the_longest_of_several_wins() {
        check(&[("retry-after", "5"), ("retry-after", "60")], Some(60));
    }

    #[test]
    fn invalid_fields_are_ignored() {
        for value in ["", "soon", "-5", "1.5", "120, 5"] {
            check(&[("retry-after", value)], None);
        }
    }
}
