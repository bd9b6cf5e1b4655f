//! Values that flags and config keys share: durations, sizes, limits, switches.
//!
//! Each is read from text by `FromStr`, and what `Display` writes is read back as the
//! same value. In TOML they are strings, or plain numbers and booleans where those say
//! the same.

pub(crate) mod day_hours;
pub(crate) mod name_server;
pub(crate) mod period;

use std::ffi::OsString;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crawl_weburl::canonicalize;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// Why a value can't be read; lower case, with the value in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadValue(String);

/// A length of time: `500ms`, `2s`, `1m30s`, `1h`, `1d`; `0` needs no unit.
/// Whole microseconds, at most a hundred years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span(Duration);

/// A path as the system has it, of whatever bytes; empty where none is given. In files of settings
/// it is text, and what is no UTF-8 is replaced there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FilePath(pub(crate) PathBuf);

/// A number of bytes: `5MiB`, `10MB`, `512KiB`, or plain bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Size(pub(crate) u64);

/// A count of things; at most 2^63 - 1, as TOML's integers are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Count(pub(crate) u64);

/// A finite number, zero or more.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub(crate) struct Factor(pub(crate) f64);

/// A bound that may be absent: `unlimited`, or the bound itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit<T>(pub(crate) Option<T>);

/// `on` or `off`; in TOML `true` and `false` as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Switch {
    /// Yes.
    On,
    /// No.
    #[default]
    Off,
}

/// Addresses to use in place of asking for a name, as curl has it: `HOST:PORT:ADDR[,ADDR]..`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resolve {
    /// Host name, lower case.
    pub(crate) host: String,
    /// Port of the requests that this holds for.
    pub(crate) port: u16,
    /// Where they go; at least one.
    pub(crate) addresses: Vec<IpAddr>,
}

const MICROS: &[(&str, u64)] = &[
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];
const LONGEST_MICROS: u64 = 36_500 * 86_400_000_000;

impl BadValue {
    pub(crate) fn new(what: String) -> BadValue {
        BadValue(what)
    }
}

impl FilePath {
    /// Whether none is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.as_os_str().is_empty()
    }
}

impl From<OsString> for FilePath {
    fn from(path: OsString) -> FilePath {
        FilePath(path.into())
    }
}

impl Serialize for FilePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.display())
    }
}

impl<'de> Deserialize<'de> for FilePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FilePath, D::Error> {
        PathBuf::deserialize(deserializer).map(FilePath)
    }
}

impl Span {
    pub(crate) const ZERO: Span = Span(Duration::ZERO);

    pub(crate) const fn from_secs(secs: u64) -> Span {
        Span(Duration::from_secs(secs))
    }

    pub(crate) const fn get(self) -> Duration {
        self.0
    }
}

impl FromStr for Span {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Span, BadValue> {
        let bad = |why: &str| BadValue(format!("`{text}` is no duration: {why}"));
        if text == "0" {
            return Ok(Span::ZERO);
        }
        let mut rest = text;
        let mut micros: u64 = 0;
        while !rest.is_empty() {
            let (number, after) = split_at(rest, |c| !c.is_ascii_digit() && c != '.');
            let (unit, after) = split_at(after, |c| !c.is_ascii_alphabetic());
            if number.is_empty() {
                return Err(bad("it looks like `500ms`, `2s`, `1m30s`, `1h` or `1d`"));
            }
            if unit.is_empty() {
                return Err(bad("a number needs a unit, as in `500ms`, `2s` or `1h`"));
            }
            let Some((_, scale)) = MICROS.iter().find(|(name, _)| *name == unit) else {
                return Err(bad(&format!(
                    "the unit `{unit}` is none of us, ms, s, m, h, d"
                )));
            };
            let part = scaled(number, *scale).ok_or_else(|| bad("not a number"))?;
            micros = micros
                .checked_add(part)
                .filter(|sum| *sum <= LONGEST_MICROS)
                .ok_or_else(|| bad("more than a hundred years"))?;
            rest = after;
        }
        match text {
            "" => Err(bad("it looks like `500ms`, `2s`, `1m30s`, `1h` or `1d`")),
            _ => Ok(Span(Duration::from_micros(micros))),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = u64::try_from(self.0.as_micros()).unwrap_or(LONGEST_MICROS);
        if rest == 0 {
            return f.write_str("0s");
        }
        for (unit, scale) in MICROS {
            if rest >= *scale {
                write!(f, "{}{unit}", rest / scale)?;
                rest %= scale;
            }
        }
        Ok(())
    }
}

const BYTES: &[(&str, u64)] = &[
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

impl FromStr for Size {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Size, BadValue> {
        let bad = |why: &str| BadValue(format!("`{text}` is no size: {why}"));
        let (number, unit) = split_at(text, |c| !c.is_ascii_digit() && c != '.');
        let unit = unit.trim();
        let scale = match BYTES
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit))
        {
            _ if number.is_empty() => {
                return Err(bad("it looks like `5MiB`, `10MB`, `512KiB` or `4096`"));
            }
            Some((_, scale)) => *scale,
            None if unit.is_empty() => 1,
            None => {
                return Err(bad(&format!(
                    "the unit `{unit}` is none of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB"
                )));
            }
        };
        scaled(number, scale)
            .map(Size)
            .ok_or_else(|| bad("not a number, or too large"))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match BYTES
            .iter()
            .find(|(_, scale)| *scale > 1 && self.0 > 0 && self.0.is_multiple_of(*scale))
        {
            Some((unit, scale)) => write!(f, "{}{unit}", self.0 / scale),
            None => write!(f, "{}", self.0),
        }
    }
}

impl FromStr for Count {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Count, BadValue> {
        match text.parse::<u64>() {
            Ok(count) if i64::try_from(count).is_ok() => Ok(Count(count)),
            _ => Err(BadValue(format!(
                "`{text}` is no whole number of zero or more"
            ))),
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for Factor {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Factor, BadValue> {
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(Factor(number)),
            _ => Err(BadValue(format!("`{text}` is no number of zero or more"))),
        }
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl<T> Limit<T> {
    pub(crate) const UNLIMITED: Limit<T> = Limit(None);
}

impl<T: FromStr<Err = BadValue>> FromStr for Limit<T> {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Limit<T>, BadValue> {
        match text {
            "unlimited" => Ok(Limit(None)),
            _ => text.parse().map(Some).map(Limit),
        }
    }
}

impl<T: fmt::Display> fmt::Display for Limit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(bound) => bound.fmt(f),
            None => f.write_str("unlimited"),
        }
    }
}

impl Switch {
    pub(crate) fn is_on(self) -> bool {
        self == Switch::On
    }
}

impl FromStr for Switch {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Switch, BadValue> {
        match text {
            "on" | "true" => Ok(Switch::On),
            "off" | "false" => Ok(Switch::Off),
            _ => Err(BadValue(format!("`{text}` is neither `on` nor `off`"))),
        }
    }
}

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_on() { "on" } else { "off" })
    }
}

impl FromStr for Resolve {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Resolve, BadValue> {
        let bad = |why: &str| BadValue(format!("`{text}` is no HOST:PORT:ADDR: {why}"));
        if text.contains("://") {
            return Err(bad("the host stands without a scheme"));
        }
        let mut parts = text.splitn(3, ':');
        let (Some(host), Some(port), Some(addresses)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(bad("it looks like `example.org:443:192.0.2.7`"));
        };
        let port = port
            .parse()
            .map_err(|_| bad(&format!("`{port}` is no port")))?;
        let address = |text: &str| {
            let bare = text
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'));
            bare.unwrap_or(text)
                .parse()
                .map_err(|_| bad(&format!("`{text}` is no IP address")))
        };
        let addresses = addresses
            .split(',')
            .map(address)
            .collect::<Result<_, _>>()?;
        let host = host_name(host).ok_or_else(|| bad(&format!("`{host}` is no host name")))?;
        Ok(Resolve {
            host,
            port,
            addresses,
        })
    }
}

/// A host's name as URLs have it: in lower case, and in Punycode. None for an address, which is
/// not looked up.
fn host_name(text: &str) -> Option<String> {
    let url = canonicalize(None, &format!("http://{text}/")).ok()?;
    let name = url.host().trim_end_matches('.');
    let is_name = !text.contains(['@', '*', '/', '?', '#']) && name.parse::<IpAddr>().is_err();
    is_name.then(|| name.to_owned())
}

impl fmt::Display for Resolve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:", self.host, self.port)?;
        for (position, address) in self.addresses.iter().enumerate() {
            let comma = if position > 0 { "," } else { "" };
            match address {
                IpAddr::V4(v4) => write!(f, "{comma}{v4}")?,
                IpAddr::V6(v6) => write!(f, "{comma}[{v6}]")?,
            }
        }
        Ok(())
    }
}

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl Serialize for Factor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<T: Serialize> Serialize for Limit<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(bound) => bound.serialize(serializer),
            None => serializer.serialize_str("unlimited"),
        }
    }
}

macro_rules! written_as_text {
    ($($value:ident),*) => {$(
        impl Serialize for $value {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
}
written_as_text!(Span, Size, Switch, Resolve);

macro_rules! read_from_text {
    ($($value:ident),*) => {$(
        impl<'de> Deserialize<'de> for $value {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$value, D::Error> {
                read(deserializer)
            }
        }
    )*};
}
read_from_text!(Span, Size, Count, Factor, Switch, Resolve);

impl<'de, T: FromStr<Err = BadValue>> Deserialize<'de> for Limit<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Limit<T>, D::Error> {
        read(deserializer)
    }
}

/// Reads a value from whatever scalar TOML holds, through its written form.
fn read<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err = BadValue>,
    D: Deserializer<'de>,
{
    struct Scalar<T>(std::marker::PhantomData<T>);

    impl<T: FromStr<Err = BadValue>> Visitor<'_> for Scalar<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string, a number or a boolean")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(E::custom)
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
            self.visit_str(&number.to_string())
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
            self.visit_str(&number.to_string())
        }

        fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
            self.visit_str(&number.to_string())
        }

        fn visit_bool<E: de::Error>(self, yes: bool) -> Result<T, E> {
            self.visit_str(if yes { "true" } else { "false" })
        }
    }

    deserializer.deserialize_any(Scalar(std::marker::PhantomData))
}

fn split_at(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

/// `number` (digits with at most one point) times `scale`, rounded down.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || number.ends_with('.') {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    // Nine digits are finer than any unit's smallest part.
    let digits = &fraction[..fraction.len().min(9)];
    let part = match digits {
        "" => 0,
        _ => {
            let parts = u128::from(digits.parse::<u64>().ok()?) * u128::from(scale);
            let divisor = 10_u128.pow(u32::try_from(digits.len()).ok()?);
            u64::try_from(parts / divisor).ok()?
        }
    };
    whole.checked_mul(scale)?.checked_add(part)
}

#[cfg(test)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "an expectation is written where it is used"
)]
mod tests {
    use std::fmt::Display;
    use std::str::FromStr;
    use std::time::Duration;

    use expect_test::{Expect, expect};

    use super::{BadValue, Count, Factor, Limit, Resolve, Size, Span, Switch};

    fn check<T: FromStr<Err = BadValue> + Display>(inputs: &str, expect: Expect) {
        let read = |text: &str| match text.parse::<T>() {
            Ok(value) => format!("{text} = {value}\n"),
            Err(why) => format!("{why}\n"),
        };
        expect.assert_eq(&inputs.split(' ').map(read).collect::<String>());
    }

    #[test]
    fn durations_have_a_unit() {
        check::<Span>(
            "500ms 2s 1h 1m30s 90s 1d 0 0s 1.5s 36h 250us 1d2h3m4s5ms 20 1s30 s 1x .5s 1.s 1.2.3s -1s 36501d 99999999999999999999s",
            expect![[r#"
                500ms = 500ms
                2s = 2s
                1h = 1h
                1m30s = 1m30s
                90s = 1m30s
                1d = 1d
                0 = 0s
                0s = 0s
                1.5s = 1s500ms
                36h = 1d12h
                250us = 250us
                1d2h3m4s5ms = 1d2h3m4s5ms
                `20` is no duration: a number needs a unit, as in `500ms`, `2s` or `1h`
                `1s30` is no duration: a number needs a unit, as in `500ms`, `2s` or `1h`
                `s` is no duration: it looks like `500ms`, `2s`, `1m30s`, `1h` or `1d`
                `1x` is no duration: the unit `x` is none of us, ms, s, m, h, d
                `.5s` is no duration: not a number
                `1.s` is no duration: not a number
                `1.2.3s` is no duration: not a number
                `-1s` is no duration: it looks like `500ms`, `2s`, `1m30s`, `1h` or `1d`
                `36501d` is no duration: more than a hundred years
                `99999999999999999999s` is no duration: not a number
            "#]],
        );
        assert!("".parse::<Span>().is_err());
    }

    #[test]
    fn sizes_count_bytes() {
        check::<Size>(
            "5MiB 10MB 512KiB 4096 5mib 1.5KiB 0 1GB 1024 1000 7 5M MB 1e3 99999999999999TiB",
            expect![[r#"
                5MiB = 5MiB
                10MB = 10MB
                512KiB = 512KiB
                4096 = 4KiB
                5mib = 5MiB
                1.5KiB = 1536
                0 = 0
                1GB = 1GB
                1024 = 1KiB
                1000 = 1kB
                7 = 7
                `5M` is no size: the unit `M` is none of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB
                `MB` is no size: it looks like `5MiB`, `10MB`, `512KiB` or `4096`
                `1e3` is no size: the unit `e3` is none of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB
                `99999999999999TiB` is no size: not a number, or too large
            "#]],
        );
    }

    #[test]
    fn what_is_written_is_read_back() {
        for micros in [0, 1, 999, 1_000, 1_500_000, 59_999_999, 86_400_000_001] {
            let span = Span(Duration::from_micros(micros));
            assert_eq!(span.to_string().parse(), Ok(span));
        }
        for bytes in [0, 1, 1_000, 1_024, 1_536, 5 << 20, 10_000_000, u64::MAX] {
            let size = Size(bytes);
            assert_eq!(size.to_string().parse(), Ok(size));
        }
    }

    #[test]
    fn limits_switches_numbers() {
        check::<Limit<Count>>(
            "unlimited 10 0 -1 9223372036854775808 none",
            expect![[r#"
                unlimited = unlimited
                10 = 10
                0 = 0
                `-1` is no whole number of zero or more
                `9223372036854775808` is no whole number of zero or more
                `none` is no whole number of zero or more
            "#]],
        );
        check::<Switch>(
            "on off true false yes",
            expect![[r#"
                on = on
                off = off
                true = on
                false = off
                `yes` is neither `on` nor `off`
            "#]],
        );
        check::<Factor>(
            "2 0.5 0 -1 inf NaN x",
            expect![[r#"
                2 = 2
                0.5 = 0.5
                0 = 0
                `-1` is no number of zero or more
                `inf` is no number of zero or more
                `NaN` is no number of zero or more
                `x` is no number of zero or more
            "#]],
        );
    }

    #[test]
    fn ours_resolve_is_as_curl_has_it() {
        check::<Resolve>(
            "Example.org:443:192.0.2.7 e.example:80:[::1] e.example:80:::1 e:443:1.2.3.4,[::1] e.example:80 :80:1.2.3.4 e:x:1.2.3.4 e:1:f",
            expect![[r#"
                Example.org:443:192.0.2.7 = example.org:443:192.0.2.7
                e.example:80:[::1] = e.example:80:[::1]
                e.example:80:::1 = e.example:80:[::1]
                e:443:1.2.3.4,[::1] = e:443:1.2.3.4,[::1]
                `e.example:80` is no HOST:PORT:ADDR: it looks like `example.org:443:192.0.2.7`
                `:80:1.2.3.4` is no HOST:PORT:ADDR: `` is no host name
                `e:x:1.2.3.4` is no HOST:PORT:ADDR: `x` is no port
                `e:1:f` is no HOST:PORT:ADDR: `f` is no IP address
            "#]],
        );
    }
}
