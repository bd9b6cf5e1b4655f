//! Lines other than allow and disallow (RFC 9309 section 2.2.4). Such lines are kept with their
//! line number. They neither begin nor end a group.

use std::borrow::Cow;
use std::time::Duration;

use super::line_parser::RobotsFieldName;

/// Maximum lines about the use of pages to keep per group and per file. The first ones are kept.
/// Beyond the limit: ignored.
const MAX_PREFERENCES: usize = 1000;

/// A `Sitemap:` line, which applies to the whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitemapLine {
    /// The URL as written. It should be absolute.
    pub url: String,
    /// The number of the line in the robots.txt, from 1.
    pub line: u32,
}

/// A `Request-rate:` line: a maximum number of requests in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRateLine {
    /// The number of requests, at least one.
    pub requests: u32,
    /// The period for which `requests` is the maximum; longer than zero.
    pub per: Duration,
    /// The times of day to which the line applies; `None` for always.
    pub during: Option<VisitHours>,
    /// The number of the line in the robots.txt, from 1.
    pub line: u32,
}

impl RequestRateLine {
    /// Returns the gap between requests that corresponds to the rate.
    #[must_use]
    pub fn gap(&self) -> Duration {
        self.per / self.requests.max(1)
    }
}

/// A `Visit-time:` line: hours in which robots may visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisitTimeLine {
    /// The daily hours in which visits are welcome.
    pub hours: VisitHours,
    /// The number of the line in the robots.txt, from 1.
    pub line: u32,
}

/// A span of the day in UTC. Crosses midnight if `from` is later than `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisitHours {
    /// The first minute of the span, in minutes since midnight.
    pub from: u16,
    /// The last minute of the span, in minutes since midnight, inclusive.
    pub to: u16,
}

impl VisitHours {
    /// Returns whether the span contains a minute of the day (0 to 1439, UTC).
    #[must_use]
    pub fn contain(&self, minute: u16) -> bool {
        match self.from <= self.to {
            true => (self.from..=self.to).contains(&minute),
            false => minute >= self.from || minute <= self.to,
        }
    }
}

/// A `Clean-param:` line: query parameters that don't change the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CleanParamLine {
    /// The names of the parameters.
    pub params: Vec<String>,
    /// The path prefix to which the line applies, with `*` allowed. Empty for every path.
    pub path: String,
    /// The number of the line in the robots.txt, from 1.
    pub line: u32,
}

/// Lines other than rules in a group, which apply to the group's robots.
#[derive(Debug, Default)]
pub(super) struct NonRuleGroupLines {
    pub(super) crawl_delay: Option<(Duration, u32)>,
    pub(super) request_rates: Vec<RequestRateLine>,
    pub(super) visit_times: Vec<VisitTimeLine>,
    pub(super) preferences: Vec<UsageLine>,
}

/// Lines that apply to the whole file.
#[derive(Debug, Default)]
pub(super) struct NonGroupLines {
    pub(super) sitemaps: Vec<SitemapLine>,
    pub(super) hosts: Vec<(String, u32)>,
    pub(super) clean_params: Vec<CleanParamLine>,
    /// Lines about the use of pages that come before any group.
    pub(super) preferences: Vec<UsageLine>,
}

impl NonRuleGroupLines {
    pub(super) fn memory_bytes(&self) -> usize {
        self.request_rates.capacity() * size_of::<RequestRateLine>()
            + self.visit_times.capacity() * size_of::<VisitTimeLine>()
            + usage_bytes(&self.preferences)
    }
}

impl NonGroupLines {
    pub(super) fn memory_bytes(&self) -> usize {
        let sitemaps = self.sitemaps.iter().map(|line| line.url.capacity());
        let hosts = self.hosts.iter().map(|(host, _)| host.capacity());
        let clean_params = self.clean_params.iter().map(|line| {
            let params = line.params.iter().map(String::capacity);
            let list = line.params.capacity() * size_of::<String>();
            params.sum::<usize>() + list + line.path.capacity()
        });
        sitemaps.chain(hosts).chain(clean_params).sum::<usize>()
            + self.sitemaps.capacity() * size_of::<SitemapLine>()
            + self.hosts.capacity() * size_of::<(String, u32)>()
            + self.clean_params.capacity() * size_of::<CleanParamLine>()
            + usage_bytes(&self.preferences)
    }
}

fn usage_bytes(lines: &Vec<UsageLine>) -> usize {
    let values = lines.iter().map(|line| line.value.capacity());
    values.sum::<usize>() + lines.capacity() * size_of::<UsageLine>()
}

/// An uninterpreted line about the use of pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UsageLine {
    pub(crate) kind: UsageLineVocabulary,
    pub(crate) value: String,
    pub(crate) line: u32,
}

/// The vocabulary of a line about the use of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsageLineVocabulary {
    ContentUsage,
    ContentSignal,
    License,
}

impl UsageLineVocabulary {
    pub(super) fn of(key: RobotsFieldName) -> Option<UsageLineVocabulary> {
        match key {
            RobotsFieldName::ContentUsage => Some(UsageLineVocabulary::ContentUsage),
            RobotsFieldName::ContentSignal => Some(UsageLineVocabulary::ContentSignal),
            RobotsFieldName::License => Some(UsageLineVocabulary::License),
            _ => None,
        }
    }
}

impl NonRuleGroupLines {
    /// Adds the lines of another group.
    pub(super) fn append(&mut self, mut other: NonRuleGroupLines) {
        if other.crawl_delay > self.crawl_delay {
            self.crawl_delay = other.crawl_delay;
        }
        self.request_rates.append(&mut other.request_rates);
        self.visit_times.append(&mut other.visit_times);
        for preference in other.preferences {
            keep(&mut self.preferences, preference);
        }
    }

    /// Adds a line from one of the agent's groups. Returns false if the value is invalid.
    pub(super) fn take(&mut self, key: RobotsFieldName, value: &[u8], line: u32) -> bool {
        let text = text(value);
        match key {
            RobotsFieldName::CrawlDelay => match seconds(&text) {
                // Keep the longest of several delays, because the longest delay also satisfies the
                // shorter ones.
                Some(delay) => {
                    if self.crawl_delay.is_none_or(|(kept, _)| delay > kept) {
                        self.crawl_delay = Some((delay, line));
                    }
                }
                None => return false,
            },
            RobotsFieldName::RequestRate => match request_rate(&text, line) {
                Some(rate) => self.request_rates.push(rate),
                None => return false,
            },
            RobotsFieldName::VisitTime => match hours(&text) {
                Some(hours) => self.visit_times.push(VisitTimeLine { hours, line }),
                None => return false,
            },
            _ => {
                if let Some(kind) = UsageLineVocabulary::of(key) {
                    let value = text.into_owned();
                    keep(&mut self.preferences, UsageLine { kind, value, line });
                }
            }
        }
        true
    }
}

impl NonGroupLines {
    /// Adds a line that applies to the whole file, or a line about the use of pages before any
    /// group. Returns false if its value is invalid.
    pub(super) fn take(&mut self, key: RobotsFieldName, value: &[u8], line: u32) -> bool {
        let text = text(value).into_owned();
        if text.is_empty() {
            return false;
        }
        match key {
            RobotsFieldName::Sitemap => self.sitemaps.push(SitemapLine { url: text, line }),
            RobotsFieldName::Host => self.hosts.push((text, line)),
            RobotsFieldName::CleanParam => {
                let mut words = text.split_ascii_whitespace();
                let params = words.next().unwrap_or_default();
                self.clean_params.push(CleanParamLine {
                    params: params.split('&').map(str::to_owned).collect(),
                    path: words.next().unwrap_or_default().to_owned(),
                    line,
                });
            }
            _ => {
                if let Some(kind) = UsageLineVocabulary::of(key) {
                    let value = text;
                    keep(&mut self.preferences, UsageLine { kind, value, line });
                }
            }
        }
        true
    }
}

/// Adds a preference if there is room. The number of preferences is limited, because each look-up
/// for a path scans all preferences.
fn keep(preferences: &mut Vec<UsageLine>, preference: UsageLine) {
    if preferences.len() < MAX_PREFERENCES {
        preferences.push(preference);
    }
}

/// Replaces invalid UTF-8 by U+FFFD. Checks first whether the text is valid, which is much faster
/// than always converting.
fn text(value: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(value),
    }
}

/// The longest delay that a line can ask for: a hundred years. Larger numbers mean the same.
const LONGEST_DELAY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Parses seconds, or a number with a unit: `10`, `1.5`, `1,5`, `+2`, `10s`, `2 sec.`, `1 minute`,
/// `5;`.
/// Authors write all of these. Other text is not guessed at: `500 x` could be a wait of any length.
fn seconds(text: &str) -> Option<Duration> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let is_in_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
    let end = text.find(|c| !is_in_number(c)).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit
        .trim_matches([' ', '\t', '.', ';'])
        .to_ascii_lowercase();
    let unit = match unit.as_str() {
        "" | "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "ms" | "msec" | "millisecond" | "milliseconds" => 0.001,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86400.0,
        _ => return None,
    };
    let number: f64 = number.replace(',', ".").parse().ok()?;
    let delay = Duration::try_from_secs_f64(number * unit).unwrap_or(LONGEST_DELAY);
    Some(delay.min(LONGEST_DELAY))
}

/// Parses `requests/time[unit] [HHMM-HHMM]`, with or without spaces around the slash. The time is
/// written like a `Crawl-delay`, or without a number (`1/m`). A bare number means one request in
/// that many seconds.
fn request_rate(text: &str, line: u32) -> Option<RequestRateLine> {
    let (requests, rest) = text.split_once('/').unwrap_or(("1", text));
    let (requests, rest) = (requests.trim(), rest.trim_start());
    let (time, hours_text) = match rest.split_once(|c: char| c.is_ascii_whitespace()) {
        Some((time, hours_text)) => (time, Some(hours_text)),
        None => (rest, None),
    };
    let time = time.trim_end_matches(';');
    let unit = hours_text.and_then(|text| text.split_ascii_whitespace().next());
    let unit = unit.filter(|unit| unit.bytes().all(|byte| byte.is_ascii_alphabetic()));
    let with_unit = unit.and_then(|unit| seconds(&format!("{time}{unit}")));
    let per = match time.starts_with(|c: char| c.is_ascii_alphabetic()) {
        true => seconds(&format!("1{time}"))?,
        false => with_unit.or_else(|| seconds(time))?,
    };
    let hours_text = match (hours_text, unit) {
        (Some(text), Some(unit)) if with_unit.is_some() => text.trim_start().strip_prefix(unit),
        (text, _) => text,
    };
    // A rate whose hours can't be read always applies.
    let during = hours_text.and_then(hours);
    Some(RequestRateLine {
        requests: digits(requests).filter(|&n: &u32| n > 0)?,
        per: per.max(Duration::from_millis(1)),
        during,
        line,
    })
    .filter(|_| !per.is_zero())
}

/// Parses `HHMM-HHMM`, in UTC. The name of this time zone may follow.
fn hours(text: &str) -> Option<VisitHours> {
    let text = text.trim().to_ascii_lowercase();
    let zones = ["utc", "gmt", "z"];
    let text = zones
        .iter()
        .find_map(|zone| text.strip_suffix(zone))
        .unwrap_or(&text);
    let (from, to) = text.split_once('-')?;
    Some(VisitHours {
        from: minute(from.trim())?,
        to: minute(to.trim())?,
    })
}

fn minute(text: &str) -> Option<u16> {
    let text = text.replace(':', "");
    let number: u16 = digits(&text).filter(|_| text.len() == 4)?;
    let (hour, minute) = (number / 100, number % 100);
    match (hour, minute) {
        (24, 0) => Some(24 * 60 - 1),
        (0..=23, 0..=59) => Some(hour * 60 + minute),
        _ => None,
    }
}

fn digits<N: std::str::FromStr>(text: &str) -> Option<N> {
    let plain = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{LONGEST_DELAY, hours, request_rate, seconds};

    #[expect(
        clippy::needless_pass_by_value,
        reason = "expectations are written in place"
    )]
    fn check(text: &str, expect: Expect) {
        let rate = request_rate(text, 1).map(|r| (r.requests, r.per, r.during, r.gap()));
        expect.assert_eq(&format!("{rate:?}"));
    }

    #[test]
    fn request_rate_lines() {
        check("1/10s", expect!["Some((1, 10s, None, 10s))"]);
        check(
            "30/1m 0600-0845",
            expect!["Some((30, 60s, Some(VisitHours { from: 360, to: 525 }), 2s))"],
        );
        check("1/d", expect!["Some((1, 86400s, None, 86400s))"]);
        check("5", expect!["Some((1, 5s, None, 5s))"]);
        check("0/5", expect!["None"]);
        check("1/0", expect!["None"]);
        check("1/2M", expect!["Some((1, 120s, None, 120s))"]);
        check("4/2h", expect!["Some((4, 7200s, None, 1800s))"]);
        check("1/2w", expect!["None"]);
        check("1/3min", expect!["Some((1, 180s, None, 180s))"]);
        check("1/3 min", expect!["Some((1, 180s, None, 180s))"]);
        check(
            "1/3 min 0600-0845",
            expect!["Some((1, 180s, Some(VisitHours { from: 360, to: 525 }), 180s))"],
        );
        check("1/3sec", expect!["Some((1, 3s, None, 3s))"]);
        check("1/2.5", expect!["Some((1, 2.5s, None, 2.5s))"]);
        check("1 / 5", expect!["Some((1, 5s, None, 5s))"]);
        check("1/5;", expect!["Some((1, 5s, None, 5s))"]);
        check("1/5 soon", expect!["Some((1, 5s, None, 5s))"]);
        check("1/5 0600-0845 EST", expect!["Some((1, 5s, None, 5s))"]);
        check(
            "1/5 0600-0845 GMT",
            expect!["Some((1, 5s, Some(VisitHours { from: 360, to: 525 }), 5s))"],
        );
        check("x/5", expect!["None"]);
        check("", expect!["None"]);
    }

    #[test]
    fn crawl_delay_is_seconds_or_has_a_unit() {
        let millis = |text: &str| seconds(text).map(|delay| delay.as_millis());
        assert_eq!(millis("10"), Some(10_000));
        assert_eq!(millis("0.25"), Some(250));
        assert_eq!(millis(".5"), Some(500));
        for (text, expected) in [
            ("10 s", 10_000),
            ("10S", 10_000),
            ("10;", 10_000),
            ("2 sec", 2000),
            ("2 Seconds.", 2000),
            ("1,5", 1500),
            ("+2", 2000),
            ("500 ms", 500),
            ("2m", 120_000),
            ("1 minute", 60_000),
            ("1 hour", 3_600_000),
            ("1d", 86_400_000),
            ("99999999999999999999999", LONGEST_DELAY.as_millis()),
        ] {
            assert_eq!(millis(text), Some(expected), "{text}");
        }
        for bad in [
            "", "-1", "inf", "NaN", "1e3", "ten", "sec", "1,000,5", "10 x", "10-20", "+-2",
        ] {
            assert_eq!(millis(bad), None, "{bad}");
        }
    }

    #[test]
    fn visit_time_may_span_midnight() {
        let night = hours("2200-0400").unwrap();
        assert!(night.contain(23 * 60) && night.contain(0) && !night.contain(12 * 60));
        assert!(hours("00:00 - 24:00").unwrap().contain(1439));
        assert_eq!(hours("2200-0400 UTC"), Some(night));
        assert_eq!(hours("2200-0400 EST"), None);
        let edges = |text: &str, inside: [u16; 2], outside: [u16; 2]| {
            let hours = hours(text).unwrap();
            assert!(inside.iter().all(|minute| hours.contain(*minute)), "{text}");
            assert!(
                !outside.iter().any(|minute| hours.contain(*minute)),
                "{text}"
            );
        };
        edges("0600-0845", [360, 525], [359, 526]);
        edges("2200-0400", [1320, 240], [1319, 241]);
        edges("1230-1230", [750, 750], [749, 751]);
        for bad in ["2500-0100", "2401-0100", "1260-1300", "600-700", "0600"] {
            assert!(hours(bad).is_none(), "{bad}");
        }
    }
}
