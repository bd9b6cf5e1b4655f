//! Tests of all date formats.

use crawl_dates::TimeWithPrecision;
use expect_test::{Expect, expect};
use proptest::prelude::*;

fn check(texts: &[&str], expected: Expect) {
    let show = |text: &&str| match TimeWithPrecision::parse(text) {
        Some(moment) => format!("{text} = {moment} {:?}\n", moment.precision),
        None => format!("{text} = none\n"),
    };
    expected.assert_eq(&texts.iter().map(show).collect::<String>());
}

#[test]
fn iso_8601_year_first() {
    check(
        &[
            "2024",
            "2024-03",
            "2024-03-05",
            "2024/3/5",
            "2024.03.05",
            "20240305",
            "20240305T101112Z",
            "2024-03-05T10:11:12.5+02:00",
            "2024-03-05 10:11",
            "2024-03-05T10:11:12-0530",
            "2024-03-05T24:00:00Z",
            "2024年3月5日",
            "2024-02-29",
            "2023-02-29",
            "2024-13-01",
            "2024-03-05T25:00",
            "2024-03-05 soon",
            "05/03/2024",
            "",
        ],
        expect![[r#"
            2024 = 2024-01-01T00:00:00Z Year
            2024-03 = 2024-03-01T00:00:00Z Month
            2024-03-05 = 2024-03-05T00:00:00Z Day
            2024/3/5 = 2024-03-05T00:00:00Z Day
            2024.03.05 = 2024-03-05T00:00:00Z Day
            20240305 = 2024-03-05T00:00:00Z Day
            20240305T101112Z = 2024-03-05T10:11:12Z Time
            2024-03-05T10:11:12.5+02:00 = 2024-03-05T08:11:12Z Time
            2024-03-05 10:11 = 2024-03-05T10:11:00Z Time
            2024-03-05T10:11:12-0530 = 2024-03-05T15:41:12Z Time
            2024-03-05T24:00:00Z = 2024-03-06T00:00:00Z Time
            2024年3月5日 = 2024-03-05T00:00:00Z Day
            2024-02-29 = 2024-02-29T00:00:00Z Day
            2023-02-29 = none
            2024-13-01 = none
            2024-03-05T25:00 = none
            2024-03-05 soon = none
            05/03/2024 = none
             = none
        "#]],
    );
}

#[test]
fn rfc5322_rfc850_asctime_and_english() {
    check(
        &[
            "Tue, 05 Mar 2024 10:00:00 GMT",
            "Tue, 05 Mar 2024 10:00:00 -0800",
            "tue, 05 mar 2024 10:00:00 gmt",
            "5 Mar 2024 12:00:00 CEST",
            "5 Mar 2024 12:00 PST",
            "2024-03-05 12:00:00 EST",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "March 5, 2024",
            "5th of March 2024 at 10:30 pm",
            "25th of June 2030",
            "Sept. 3, 2021",
            "12:05 am, 1 May 2020",
            "May 2020",
            "March 5",
            "5 Foo 2024",
            "Mar 5 6 7 2024",
            "Wed",
            "1:2:3",
            "32 Jan 2030",
            "1 1 1 1",
            "-",
            "+",
            "25 Jun 2030 25:00 GMT",
            "2030-06-25Tx",
        ],
        expect![[r#"
            Tue, 05 Mar 2024 10:00:00 GMT = 2024-03-05T10:00:00Z Time
            Tue, 05 Mar 2024 10:00:00 -0800 = 2024-03-05T18:00:00Z Time
            tue, 05 mar 2024 10:00:00 gmt = 2024-03-05T10:00:00Z Time
            5 Mar 2024 12:00:00 CEST = 2024-03-05T10:00:00Z Time
            5 Mar 2024 12:00 PST = 2024-03-05T20:00:00Z Time
            2024-03-05 12:00:00 EST = 2024-03-05T17:00:00Z Time
            Sunday, 06-Nov-94 08:49:37 GMT = 1994-11-06T08:49:37Z Time
            Sun Nov  6 08:49:37 1994 = 1994-11-06T08:49:37Z Time
            March 5, 2024 = 2024-03-05T00:00:00Z Day
            5th of March 2024 at 10:30 pm = 2024-03-05T22:30:00Z Time
            25th of June 2030 = 2030-06-25T00:00:00Z Day
            Sept. 3, 2021 = 2021-09-03T00:00:00Z Day
            12:05 am, 1 May 2020 = 2020-05-01T00:05:00Z Time
            May 2020 = 2020-05-01T00:00:00Z Month
            March 5 = none
            5 Foo 2024 = none
            Mar 5 6 7 2024 = none
            Wed = none
            1:2:3 = none
            32 Jan 2030 = none
            1 1 1 1 = none
            - = none
            + = none
            25 Jun 2030 25:00 GMT = none
            2030-06-25Tx = none
        "#]],
    );
}

#[test]
fn latest_is_the_end_of_the_known_period() {
    let check = |text: &str, end: &str| {
        let end = TimeWithPrecision::parse(end).unwrap().unix_seconds;
        assert_eq!(
            TimeWithPrecision::parse(text).unwrap().latest(),
            end,
            "{text}"
        );
    };
    check("2024-03-05T10:00:00Z", "2024-03-05T10:00:00Z");
    check("2024-03-05", "2024-03-06");
    check("2024-03", "2024-04-01");
    check("2024", "2025-01-01");
}

proptest! {
    #[test]
    fn rfc3339_of_any_second_reads_back(seconds in -62_135_596_800i64..253_402_300_800) {
        let mut moment = TimeWithPrecision::parse("2000-01-01").unwrap();
        moment.unix_seconds = seconds;
        prop_assert_eq!(TimeWithPrecision::parse(&moment.to_string()).map(|read| read.unix_seconds), Some(seconds));
    }

    #[test]
    fn any_text_is_a_date_or_none(text in "\\PC{0,40}") {
        let _ = TimeWithPrecision::parse(&text);
    }

    #[test]
    fn any_text_of_digits_is_a_date_or_none(text in "[0-9T:+. /年月日Zapmth-]{0,30}") {
        let _ = TimeWithPrecision::parse(&text);
    }
}
