//! Values that flags and config keys share: durations, sizes, limits, switches.
//!
//! Each is parsed by `FromStr`, and the output of `Display` parses back to the same value. In TOML
//! they are strings, or plain numbers and booleans with the same meaning.

mod address_override;
mod browser_settings;
mod byte_size;
mod day_hours;
mod duration_setting;
mod file_path;
mod frontier_connection_string;
mod host_list_entry;
mod indexed_document_types;
mod language_pattern;
mod listen_address;
mod media_type_pattern;
mod name_server_address;
mod number;
mod number_with_unit;
mod repeat_interval;
mod schema;
mod surt_prefix_setting;
mod switch;
mod text_serde;

pub(crate) use address_override::AddressOverride;
pub(crate) use browser_settings::BrowserSettings;
pub(crate) use byte_size::ByteSize;
pub(crate) use day_hours::DayHours;
pub(crate) use duration_setting::DurationSetting;
pub(crate) use file_path::FilePath;
pub(crate) use frontier_connection_string::FrontierConnectionString;
pub(crate) use host_list_entry::HostListEntry;
pub(crate) use indexed_document_types::{DocumentReadingLimits, IndexedDocumentTypes};
pub(crate) use language_pattern::LanguagePattern;
pub(crate) use listen_address::ListenAddress;
pub(crate) use media_type_pattern::MediaTypePattern;
pub(crate) use name_server_address::NameServerAddress;
pub(crate) use number::{CountSetting, NonNegativeNumber, OptionalLimit};
pub(crate) use repeat_interval::RepeatInterval;
pub(crate) use schema::{JsonSchema, words};
pub(crate) use surt_prefix_setting::SurtPrefixSetting;
pub(crate) use switch::Switch;

/// The error for a value that can't be parsed. The message is in lower case and quotes the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ValueParseError(String);

impl ValueParseError {
    pub(crate) fn new(what: String) -> ValueParseError {
        ValueParseError(what)
    }
}

#[cfg(test)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "an expectation is written where it is used"
)]
mod tests {
    use std::fmt::Display;
    use std::str::FromStr;

    use expect_test::{Expect, expect};

    use super::{
        AddressOverride, ByteSize, CountSetting, DurationSetting, NonNegativeNumber, OptionalLimit,
        Switch, ValueParseError,
    };

    fn check<T: FromStr<Err = ValueParseError> + Display>(inputs: &str, expect: Expect) {
        let read = |text: &str| match text.parse::<T>() {
            Ok(value) => format!("{text} = {value}\n"),
            Err(why) => format!("{why}\n"),
        };
        expect.assert_eq(&inputs.split(' ').map(read).collect::<String>());
    }

    #[test]
    fn durations_have_a_unit() {
        check::<DurationSetting>(
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
                `20` isn't a duration: add a unit, as in `500ms`, `2s` or `1h`
                `1s30` isn't a duration: add a unit, as in `500ms`, `2s` or `1h`
                `s` isn't a duration: it looks like `500ms`, `2s`, `1m30s`, `1h` or `1d`
                `1x` isn't a duration: unknown unit `x`, use us, ms, s, m, h or d
                `.5s` isn't a duration: not a number
                `1.s` isn't a duration: not a number
                `1.2.3s` isn't a duration: not a number
                `-1s` isn't a duration: it looks like `500ms`, `2s`, `1m30s`, `1h` or `1d`
                `36501d` isn't a duration: more than a hundred years
                `99999999999999999999s` isn't a duration: not a number
            "#]],
        );
        assert!("".parse::<DurationSetting>().is_err());
    }

    #[test]
    fn crawl_and_its_audit_read_the_same_durations() {
        for line in include_str!("../../../records/src/audit/durations.tsv").lines() {
            let (text, millis) = line.split_once('\t').unwrap();
            let millis_read = text.parse::<DurationSetting>().ok();
            let millis_read =
                millis_read.map(|span| u64::try_from(span.get().as_millis()).unwrap());
            assert_eq!(millis_read, millis.parse().ok(), "{text}");
        }
    }

    #[test]
    fn sizes_count_bytes() {
        check::<ByteSize>(
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
                `5M` isn't a size: unknown unit `M`, use B, kB, MB, GB, TB, KiB, MiB, GiB or TiB
                `MB` isn't a size: it looks like `5MiB`, `10MB`, `512KiB` or `4096`
                `1e3` isn't a size: unknown unit `e3`, use B, kB, MB, GB, TB, KiB, MiB, GiB or TiB
                `99999999999999TiB` isn't a size: not a number, or too large
            "#]],
        );
    }

    #[test]
    fn written_values_are_read_back() {
        for micros in [0, 1, 999, 1_000, 1_500_000, 59_999_999, 86_400_000_001] {
            let span = DurationSetting::from_micros(micros);
            assert_eq!(span.to_string().parse(), Ok(span));
        }
        for bytes in [0, 1, 1_000, 1_024, 1_536, 5 << 20, 10_000_000, u64::MAX] {
            let size = ByteSize(bytes);
            assert_eq!(size.to_string().parse(), Ok(size));
        }
    }

    #[test]
    fn limits_switches_numbers() {
        check::<OptionalLimit<CountSetting>>(
            "unlimited 10 0 -1 9223372036854775808 none",
            expect![[r#"
                unlimited = unlimited
                10 = 10
                0 = 0
                `-1` isn't a whole number of 0 or more
                `9223372036854775808` isn't a whole number of 0 or more
                `none` isn't a whole number of 0 or more
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
        check::<NonNegativeNumber>(
            "2 0.5 0 -1 inf NaN x",
            expect![[r#"
                2 = 2
                0.5 = 0.5
                0 = 0
                `-1` isn't a number of 0 or more
                `inf` isn't a number of 0 or more
                `NaN` isn't a number of 0 or more
                `x` isn't a number of 0 or more
            "#]],
        );
    }

    #[test]
    fn resolve_is_as_curl_has_it() {
        check::<AddressOverride>(
            "Example.org:443:192.0.2.7 e.example:80:[::1] e.example:80:::1 e:443:1.2.3.4,[::1] e.example:80 :80:1.2.3.4 e:x:1.2.3.4 e:1:f",
            expect![[r#"
                Example.org:443:192.0.2.7 = example.org:443:192.0.2.7
                e.example:80:[::1] = e.example:80:[::1]
                e.example:80:::1 = e.example:80:[::1]
                e:443:1.2.3.4,[::1] = e:443:1.2.3.4,[::1]
                `e.example:80` isn't HOST:PORT:ADDR: it looks like `example.org:443:192.0.2.7`
                `:80:1.2.3.4` isn't HOST:PORT:ADDR: `` isn't a host name
                `e:x:1.2.3.4` isn't HOST:PORT:ADDR: `x` isn't a port
                `e:1:f` isn't HOST:PORT:ADDR: `f` isn't an IP address
            "#]],
        );
    }
}
