//! The time limits for copies of robots.txt, and how long an answer is valid by its header fields.

use std::time::Duration;

use crawl_scheduler::Tick;
use http::HeaderMap;
use http::header::{AGE, CACHE_CONTROL, DATE, EXPIRES};

use crate::retry_after::date;

/// The time limits for copies of robots.txt: how long they are valid, and when to retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RobotsTimeLimits {
    /// Maximum time for which a copy is valid (RFC 9309 section 2.4: 24 hours). Also used if the
    /// server states no time.
    pub most: Duration,
    /// Minimum time for which a copy is valid, even if the server states a shorter one or wants no
    /// copy kept (`no-store`, `no-cache`, or an `Expires` in the past). Without this, robots.txt
    /// would be fetched before each page.
    pub least: Duration,
    /// The first wait before an unreachable robots.txt is retried, if the answer has no Retry-After.
    /// Doubles each time.
    pub first_wait: Duration,
    /// Maximum wait between retries.
    pub longest_wait: Duration,
    /// Upper bound for a Retry-After.
    pub longest_asked: Duration,
    /// How long a copy may be used while the file is unreachable, counted from when the copy was
    /// last good (RFC 9309 section 2.3.1.4: 30 days).
    pub last_good: Duration,
}

impl Default for RobotsTimeLimits {
    fn default() -> RobotsTimeLimits {
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        RobotsTimeLimits {
            most: hours(24),
            least: Duration::from_secs(60),
            first_wait: Duration::from_secs(5 * 60),
            longest_wait: hours(6),
            longest_asked: hours(24),
            last_good: hours(30 * 24),
        }
    }
}

/// Returns how long the answer with these headers is valid after its end at `now`: by
/// `Cache-Control` or else `Expires` (RFC 9111 section 5.3), less its `Age`, within `times`.
///
/// Ignores `s-maxage` and `private`, which address shared caches.
#[must_use]
pub fn lifetime(headers: &HeaderMap, times: &RobotsTimeLimits, now: Tick) -> Duration {
    let stated = match cache_control(headers) {
        Some(stated) => Some(stated),
        None => expires(headers, now),
    };
    let remaining = stated.map(|stated| stated.saturating_sub(age(headers)));
    remaining.map_or(times.most, |time| time.max(times.least).min(times.most))
}

/// Returns `max-age`, or zero for a directive against caching. The strictest of several directives
/// wins.
fn cache_control(headers: &HeaderMap) -> Option<Duration> {
    let mut shortest: Option<Duration> = None;
    for value in headers.get_all(CACHE_CONTROL) {
        let value = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
        for directive in value.split(',') {
            let (name, argument) = directive.split_once('=').unwrap_or((directive, ""));
            let argument = argument.trim().trim_matches('"');
            let stated = match name.trim() {
                "no-store" | "no-cache" => Duration::ZERO,
                "max-age" if !argument.is_empty() && is_digits(argument) => {
                    Duration::from_secs(argument.parse().unwrap_or(u64::MAX))
                }
                // RFC 9111 section 4.2.1: an invalid value counts as stale.
                "max-age" => Duration::ZERO,
                _ => continue,
            };
            shortest = Some(shortest.map_or(stated, |shortest| shortest.min(stated)));
        }
    }
    shortest
}

/// Returns the lifetime by `Expires`: the time from the answer's `Date` (or `now` if it has none)
/// to its `Expires`. A value that is not a date, such as `0`, is in the past (RFC 9111 section
/// 5.3).
fn expires(headers: &HeaderMap, now: Tick) -> Option<Duration> {
    headers.get(EXPIRES)?;
    let now = std::time::SystemTime::UNIX_EPOCH + Duration::from_micros(now.as_micros());
    let from = date(headers, &DATE).unwrap_or(now);
    let until = date(headers, &EXPIRES).unwrap_or(from);
    Some(until.duration_since(from).unwrap_or_default())
}

fn age(headers: &HeaderMap) -> Duration {
    let text = headers.get(AGE).and_then(|value| value.to_str().ok());
    let seconds = text.filter(|text| is_digits(text)).map(str::parse);
    Duration::from_secs(seconds.and_then(Result::ok).unwrap_or(0))
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::HeaderName;

    use super::*;

    /// Checks the lifetime in seconds by these fields, at 1994-11-15 08:12:31 UTC.
    fn check(fields: &[(&'static str, &'static str)], seconds: u64) {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        let now = Tick::from_micros(784_887_151_000_000);
        let actual = lifetime(&headers, &RobotsTimeLimits::default(), now);
        assert_eq!(actual, Duration::from_secs(seconds), "{fields:?}");
    }

    const DAY: u64 = 24 * 3600;

    #[test]
    fn rfc9309_2_4_no_longer_than_24_hours() {
        check(&[], DAY);
        check(&[("cache-control", "max-age=31536000")], DAY);
        check(&[("cache-control", "max-age=99999999999999999999999")], DAY);
        check(&[("expires", "Mon, 15 Nov 2094 08:12:31 GMT")], DAY);
        check(&[("cache-control", "public, must-revalidate")], DAY);
    }

    #[test]
    fn rfc9111_5_2_2_1_max_age_to_the_second() {
        check(&[("cache-control", "public, Max-Age=600")], 600);
        check(&[("cache-control", "max-age=\"62\"")], 62);
        check(&[("cache-control", "max-age=600"), ("age", "100")], 500);
        check(
            &[
                ("cache-control", "max-age=600"),
                ("expires", "Tue, 15 Nov 1994 08:14:41 GMT"),
            ],
            600,
        );
        check(&[("cache-control", "s-maxage=90, max-age=600")], 600);
    }

    #[test]
    fn rfc9111_5_3_expires() {
        check(&[("expires", "Tue, 15 Nov 1994 08:14:41 GMT")], 130);
        check(
            &[
                ("date", "Tue, 15 Nov 1994 05:00:00 GMT"),
                ("expires", "Tue, 15 Nov 1994 05:01:30 GMT"),
            ],
            90,
        );
    }

    #[test]
    fn an_answer_is_valid_for_at_least_a_minute() {
        check(&[("cache-control", "no-store")], 60);
        check(
            &[
                ("cache-control", "no-cache"),
                ("cache-control", "max-age=9"),
            ],
            60,
        );
        check(&[("cache-control", "max-age=0")], 60);
        check(&[("cache-control", "max-age=1")], 60);
        check(&[("cache-control", "max-age=600"), ("age", "590")], 60);
        check(&[("expires", "Tue, 15 Nov 1994 08:12:41 GMT")], 60);
        check(&[("cache-control", "max-age=soon")], 60);
        check(&[("cache-control", "max-age=10"), ("age", "10")], 60);
        check(&[("expires", "0")], 60);
        check(&[("expires", "Tue, 15 Nov 1994 08:00:00 GMT")], 60);
    }
}
