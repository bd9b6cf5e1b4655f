//! Converts the rate-limit fields of an answer to a gap between requests and a wait.

use std::time::Duration;

use crawl_scheduler::{PaceFromRateLimit, Tick};
use http::HeaderMap;

/// Maximum fields of the same name to read. Further fields are ignored.
const MAX_FIELDS: usize = 8;
/// Maximum list items of one field to read. Further items are ignored.
const MAX_ITEMS: usize = 16;
/// Maximum bytes of a field. A longer field is ignored.
const MAX_FIELD_BYTES: usize = 1024;
/// A `Reset` of at least this many seconds is a time since the epoch (after the year 2001). A
/// smaller one is a duration.
const EPOCH_SECONDS: u64 = 1_000_000_000;
/// A `Reset` of at least this value is a time in milliseconds since the epoch.
const EPOCH_MILLIS: u64 = 1_000_000_000_000;

/// The remaining quota and when it resets.
#[derive(Clone, Copy, Debug, Default)]
struct RemainingQuota {
    left: Option<u64>,
    /// Seconds until the reset.
    reset: Option<u64>,
}

/// Parses `RateLimit` and `RateLimit-Policy`, and the older `RateLimit-Limit`, `-Remaining` and
/// `-Reset`. Each of the older names may also start with `X-RateLimit-` or `X-Rate-Limit-`.
///
/// If the quota is used up, the result is a wait until the reset. Otherwise each field sets a gap
/// between requests: the remaining quota is spread over the time until the reset, and a policy's
/// quota is spread over its window. The longest gap applies. Quotas of anything but requests, such
/// as bytes, are ignored. So are invalid fields. Returns `None` if no field sets a limit.
///
/// The newest form is `RateLimit-Policy: "name";q=100;w=60` with `RateLimit: "name";r=50;t=30`
/// (draft-ietf-httpapi-ratelimit-headers-08 and later). Older forms are `RateLimit: limit=100,
/// remaining=50, reset=30` with `RateLimit-Policy: 100;w=60` (-07), and `RateLimit-Limit: 100,
/// 100;w=60` (-03). `X-RateLimit-Reset` is the number of seconds from now on some servers, and a
/// time since the epoch on others; the size of the number shows which.
#[must_use]
pub fn rate_limit(headers: &HeaderMap, now: Tick) -> Option<PaceFromRateLimit> {
    let is_of_these = |name: &str| name.starts_with("ratelimit") || name.starts_with("x-rate");
    if !headers.keys().any(|name| is_of_these(name.as_str())) {
        return None;
    }
    let mut limits = RateLimitBuilder::default();
    for text in fields(headers, "ratelimit") {
        limits.current(text, now);
    }
    for text in fields(headers, "ratelimit-policy") {
        limits.policies(text);
    }
    for family in ["ratelimit", "x-ratelimit", "x-rate-limit"] {
        let first = |name: &str| {
            let name = format!("{family}-{name}");
            fields(headers, &name).find_map(|text| number(text.split([',', ';']).next()?))
        };
        limits.window(RemainingQuota {
            left: first("remaining"),
            reset: first("reset").map(|reset| seconds_to(reset, now)),
        });
        for text in fields(headers, &format!("{family}-limit")) {
            limits.policies(text);
        }
    }
    limits.answer()
}

/// The limits from the fields read so far.
#[derive(Default)]
struct RateLimitBuilder {
    is_set: bool,
    gap: Duration,
    lasts: Duration,
    wait: Duration,
}

impl RateLimitBuilder {
    /// Reads `RateLimit`: list items with parameters `r` and `t`, or a dictionary in the old form.
    fn current(&mut self, text: &str, now: Tick) {
        let mut old = RemainingQuota::default();
        for item in split(text, ',').take(MAX_ITEMS) {
            let mut parts = split(item, ';');
            let name = parts.next().unwrap_or_default();
            if let Some((key, value)) = name.split_once('=')
                && !name.starts_with('"')
            {
                let value = number(value);
                match key.trim() {
                    "remaining" => old.left = value,
                    "reset" => old.reset = value.map(|reset| seconds_to(reset, now)),
                    _ => {}
                }
                continue;
            }
            let mut window = RemainingQuota::default();
            for (key, value) in parts.filter_map(|part| part.split_once('=')) {
                match key.trim() {
                    "r" => window.left = number(value),
                    "t" => window.reset = number(value),
                    _ => {}
                }
            }
            self.window(window);
        }
        self.window(old);
    }

    /// Reads `RateLimit-Policy`, and the items after the first number of `RateLimit-Limit`. Both
    /// are lists: an item's quota is the parameter `q` or the item itself, and its window is the
    /// parameter `w`.
    fn policies(&mut self, text: &str) {
        for item in split(text, ',').take(MAX_ITEMS) {
            let mut parts = split(item, ';');
            let mut quota = parts.next().and_then(number);
            let (mut window, mut requests) = (None, true);
            for (key, value) in parts.filter_map(|part| part.split_once('=')) {
                match key.trim() {
                    "q" => quota = number(value),
                    "w" => window = number(value),
                    "qu" => requests = matches!(unquoted(value), "requests" | "request"),
                    _ => {}
                }
            }
            if let (Some(quota @ 1..), Some(window), true) = (quota, window, requests) {
                self.is_set = true;
                self.spread(quota, window);
            }
        }
    }

    fn window(&mut self, window: RemainingQuota) {
        let RemainingQuota { left, reset } = window;
        match (left, reset) {
            (Some(0), Some(reset)) => {
                self.is_set = true;
                self.wait = self.wait.max(Duration::from_secs(reset));
            }
            (Some(left), Some(reset)) => {
                self.is_set = true;
                self.spread(left, reset);
            }
            _ => {}
        }
    }

    /// Sets the gap that spreads this many requests evenly over a number of seconds, unless the gap
    /// set before is longer.
    fn spread(&mut self, requests: u64, seconds: u64) {
        let whole = Duration::from_secs(seconds);
        let requests = u32::try_from(requests).unwrap_or(u32::MAX).max(1);
        let gap = whole / requests;
        if gap > self.gap {
            (self.gap, self.lasts) = (gap, whole);
        }
    }

    fn answer(self) -> Option<PaceFromRateLimit> {
        self.is_set.then(|| PaceFromRateLimit {
            gap: (!self.gap.is_zero()).then_some(self.gap),
            lasts: self.lasts,
            wait: (!self.wait.is_zero()).then_some(self.wait),
        })
    }
}

/// Returns the values of a field, at most [`MAX_FIELDS`].
fn fields<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).into_iter().take(MAX_FIELDS);
    values.filter_map(|value| {
        value
            .to_str()
            .ok()
            .filter(|text| text.len() <= MAX_FIELD_BYTES)
    })
}

/// Splits a text at separators that are not inside quotation marks.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |c| {
        match c {
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = quoted && c == '\\' && !escaped;
        c == separator && !quoted
    })
    .map(str::trim)
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches('"')
}

/// Parses an unsigned number. A fraction is truncated, because some servers send fractions of a
/// second.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (digits(whole) && digits(fraction) && text.len() <= 20)
        .then(|| whole.parse().ok())
        .flatten()
}

/// Returns the seconds until a reset. The value `reset` may be a duration or a time.
fn seconds_to(reset: u64, now: Tick) -> u64 {
    let now = now.as_millis();
    match reset {
        EPOCH_MILLIS.. => reset.saturating_sub(now).div_ceil(1000),
        EPOCH_SECONDS.. => reset
            .saturating_mul(1000)
            .saturating_sub(now)
            .div_ceil(1000),
        _ => reset,
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};
    use proptest::prelude::*;

    use super::*;

    /// 2026-09-21 14:13:20 UTC.
    const NOW: Tick = Tick::from_micros(1_790_000_000_000_000);

    fn read(lines: &str) -> Option<PaceFromRateLimit> {
        let mut headers = HeaderMap::new();
        for line in lines.lines() {
            let (name, value) = line.split_once(": ").unwrap();
            let name = HeaderName::try_from(name).unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        rate_limit(&headers, NOW)
    }

    /// Checks the limit that these header lines set. `gap` and `wait` are in milliseconds. `lasts`
    /// is how many seconds the gap applies.
    fn check(lines: &str, gap: u64, lasts: u64, wait: u64) {
        let some = |millis: u64| (millis > 0).then(|| Duration::from_millis(millis));
        let expected = PaceFromRateLimit {
            gap: some(gap),
            lasts: Duration::from_secs(lasts),
            wait: some(wait),
        };
        assert_eq!(read(lines), Some(expected), "{lines}");
    }

    #[test]
    fn ratelimit_draft_08_items_with_parameters() {
        check("RateLimit: \"default\";r=50;t=30", 600, 30, 0);
        check("RateLimit: \"default\";r=0;t=30", 0, 0, 30_000);
        check("RateLimit: default;r=1;t=7", 7000, 7, 0);
        check("RateLimit: \"d\"; r=10; t=50 ; pk=:YWJj:", 5000, 50, 0);
        check("RateLimit-Policy: \"burst\";q=100;w=60", 600, 60, 0);
        check(
            "RateLimit-Policy: \"burst\";q=10;w=10, \"daily\";q=5000;w=86400\n\
             RateLimit: \"burst\";r=8;t=1, \"daily\";r=4998;t=69076",
            17_280,
            86_400,
            0,
        );
        check(
            "RateLimit-Policy: \"peer\";q=10;w=1\nRateLimit: \"peer\";r=0;t=1",
            100,
            1,
            1000,
        );
        // Two policies whose fields are hard to split: the first is spelled in a way that some
        // servers use, and the second has separators in its name.
        check(
            "RateLimit-Policy: \"fixed window\";\"api\";q=500;w=300",
            600,
            300,
            0,
        );
        check("RateLimit: \"a,b;r=0;t=9\\\"\";r=5;t=10", 2000, 10, 0);
        // Two fields of the same name form one list.
        check(
            "RateLimit: \"a\";r=10;t=10\nRateLimit: \"b\";r=0;t=60",
            1000,
            10,
            60_000,
        );
    }

    #[test]
    fn ratelimit_draft_08_units_other_than_requests_are_ignored() {
        let bytes = "RateLimit-Policy: \"peruser\";q=65535;qu=\"content-bytes\";w=10";
        assert_eq!(read(bytes), None);
        check(
            "RateLimit-Policy: \"a\";q=1;w=2;qu=\"requests\"",
            2000,
            2,
            0,
        );
    }

    #[test]
    fn ratelimit_draft_07_one_dictionary() {
        check("RateLimit: limit=100, remaining=50, reset=30", 600, 30, 0);
        check("RateLimit: limit=100,remaining=0,reset=30", 0, 0, 30_000);
        check("RateLimit-Policy: 100;w=60, 1000;w=3600", 3600, 3600, 0);
    }

    #[test]
    fn ratelimit_draft_03_three_fields() {
        let three = "RateLimit-Limit: 100\nRateLimit-Remaining: 20\nRateLimit-Reset: 40";
        check(three, 2000, 40, 0);
        check("RateLimit-Limit: 100, 100;w=10", 100, 10, 0);
        check(
            "RateLimit-Limit: 10, 10;w=1, 50;w=60, 1000;w=3600",
            3600,
            3600,
            0,
        );
        check("RateLimit-Remaining: 0\nRateLimit-Reset: 5", 0, 0, 5000);
    }

    #[test]
    fn fields_with_an_x_prefix() {
        check(
            "X-RateLimit-Remaining: 4\nX-RateLimit-Reset: 10",
            2500,
            10,
            0,
        );
        check(
            "X-Rate-Limit-Remaining: 0\nX-Rate-Limit-Reset: 15",
            0,
            0,
            15_000,
        );
        check(
            "X-RateLimit-Limit: 100, 100;w=60\nX-RateLimit-Remaining: 87\nX-RateLimit-Reset: 0",
            600,
            60,
            0,
        );
    }

    #[test]
    fn a_large_reset_is_a_time() {
        let reset = |reset: &str| format!("X-RateLimit-Remaining: 0\nX-RateLimit-Reset: {reset}");
        check(&reset("1790000060"), 0, 0, 60_000);
        check(&reset("1790000060000"), 0, 0, 60_000);
        check(&reset("1789999000"), 0, 0, 0);
        check(&reset("2.5"), 0, 0, 2000);
    }

    #[test]
    fn invalid_fields_are_ignored() {
        let long = format!("RateLimit: \"{}\";r=0;t=9", "x".repeat(1100));
        for lines in [
            "Retry-After: 5",
            "RateLimit: ",
            "RateLimit: \"default\";r=-1;t=5",
            "RateLimit: \"default\";r=5",
            "RateLimit: \"default;r=0;t=5",
            "RateLimit-Policy: \"default\";q=0;w=5",
            "RateLimit-Policy: 100",
            "RateLimit-Limit: 60",
            "X-RateLimit-Remaining: 0",
            "X-RateLimit-Remaining: lots\nX-RateLimit-Reset: 5",
            "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 99999999999999999999999",
            &long,
        ] {
            assert_eq!(read(lines), None, "{lines}");
        }
    }

    proptest! {
        #[test]
        fn any_field_parses_without_panic(
            name in "(x-)?rate-?limit(-(policy|limit|remaining|reset))?",
            value in "[ -~]{0,60}|(\"[a-z]\"|[0-9]{1,20})(;[a-z]{1,2}=[0-9]{1,20}){0,4}",
        ) {
            if let Some(asked) = read(&format!("{name}: {value}")) {
                prop_assert!(asked.gap.is_none_or(|gap| gap <= asked.lasts));
            }
        }
    }
}
