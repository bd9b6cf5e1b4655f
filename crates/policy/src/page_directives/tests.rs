#![expect(
    clippy::needless_pass_by_value,
    reason = "expectations are written where they are passed"
)]

use expect_test::{Expect, expect};

use super::PageDirectives;
use crate::product_token::{ProductToken, RobotsProfile};

fn shown(directives: &PageDirectives) -> String {
    let mut lines = Vec::new();
    for (name, source) in [
        ("noindex", &directives.noindex),
        ("nofollow", &directives.nofollow),
        ("noarchive", &directives.noarchive),
        ("nosnippet", &directives.nosnippet),
        ("noai", &directives.noai),
        ("noimageai", &directives.noimageai),
    ] {
        if let Some(source) = source {
            lines.push(format!("{name} by {source}"));
        }
    }
    for (name, value) in [
        (
            "max-snippet",
            directives.max_snippet.as_ref().map(|v| v.value.to_string()),
        ),
        (
            "after",
            directives
                .unavailable_after
                .as_ref()
                .map(|v| v.value.to_string()),
        ),
    ] {
        lines.extend(value.map(|value| format!("{name} {value}")));
    }
    lines.join("; ")
}

fn check(profile: RobotsProfile, headers: &[&str], metas: &[(&str, &str)], expect: Expect) {
    let agent = ProductToken::new("ourbot").unwrap();
    let directives = PageDirectives::read(
        headers.iter().copied(),
        metas.iter().copied(),
        &agent,
        profile,
    );
    expect.assert_eq(&shown(&directives));
}

fn header(values: &[&str], expect: Expect) {
    check(RobotsProfile::Rfc9309, values, &[], expect);
}

fn meta(metas: &[(&str, &str)], expect: Expect) {
    check(RobotsProfile::Rfc9309, &[], metas, expect);
}

#[test]
fn header_words_for_all() {
    header(&["noindex"], expect!["noindex by X-Robots-Tag: noindex"]);
    header(
        &["None"],
        expect!["noindex by X-Robots-Tag: None; nofollow by X-Robots-Tag: None"],
    );
    header(&["all", "", "foo, bar=baz", ", ,"], expect![""]);
    header(
        &["foo, bar=baz, NOFOLLOW"],
        expect!["nofollow by X-Robots-Tag: foo, bar=baz, NOFOLLOW"],
    );
}

#[test]
fn usage_words_of_a_page_apply() {
    for (said, index, follow) in [
        ("", true, true),
        ("noindex", false, true),
        ("nofollow", true, false),
        ("none", false, false),
    ] {
        let agent = ProductToken::new("ourbot").unwrap();
        let directives = PageDirectives::read([said], [], &agent, RobotsProfile::Rfc9309);
        assert_eq!(
            (directives.noindex.is_none(), directives.nofollow.is_none()),
            (index, follow)
        );
    }
}

#[test]
fn header_words_for_one_robot() {
    header(&["otherbot: noindex, nofollow"], expect![""]);
    header(
        &["nofollow, otherbot: noindex, OURBOT: noarchive"],
        expect![
            "nofollow by X-Robots-Tag: nofollow, otherbot: noindex, OURBOT: noarchive; noarchive by X-Robots-Tag: nofollow, otherbot: noindex, OURBOT: noarchive"
        ],
    );
    header(
        &[
            "ourbot: max-snippet: 3",
            "ourbot: unavailable_after: 25 Jun 2030 15:00:00 GMT",
        ],
        expect!["max-snippet 3; after 1908630000"],
    );
    header(
        &["otherbot: unavailable_after: Wed, 03 Dec 2025 13:09:53 GMT"],
        expect![""],
    );
}

#[test]
fn header_values() {
    header(
        &["unavailable_after: Wed, 03 Dec 2025 13:09:53 GMT, noarchive"],
        expect![
            "noarchive by X-Robots-Tag: unavailable_after: Wed, 03 Dec 2025 13:09:53 GMT, noarchive; after 1764767393"
        ],
    );
    header(
        &["unavailable_after: 25th of June 2030"],
        expect!["after 1908576000"],
    );
    header(&["unavailable_after: June 2030"], expect![""]);
    for date in [
        "June 25, 2030",
        "Tuesday, June 25, 2030",
        "Tuesday, June 25, 2030, 00:00:00 GMT",
        "25 June 2030, 00:00 GMT",
    ] {
        header(
            &[&format!("unavailable_after: {date}")],
            expect!["after 1908576000"],
        );
        let more = format!("unavailable_after: {date}, max-snippet: 3");
        meta(
            &[("robots", &more)],
            expect!["max-snippet 3; after 1908576000"],
        );
    }
    // A value that isn't a date ends at its comma.
    header(
        &["unavailable_after: Tuesday, max-snippet: 3"],
        expect!["max-snippet 3"],
    );
    header(
        &["unavailable_after: someday, max-snippet:abc, max-snippet:-2"],
        expect![""],
    );
    header(
        &["max-snippet:-1", "max-snippet:20", "max-snippet:50"],
        expect!["max-snippet 20"],
    );
    // The value of an unsupported directive is not a robot's name.
    header(
        &["max-image-preview: large, max-video-preview: 0, noai"],
        expect!["noai by X-Robots-Tag: max-image-preview: large, max-video-preview: 0, noai"],
    );
}

#[test]
fn metas_for_all_and_for_one_add_up() {
    meta(
        &[
            ("robots", "nofollow"),
            ("OurBot", "noindex"),
            ("otherbot", "noarchive"),
        ],
        expect![[
            r#"noindex by <meta name="OurBot" content="noindex">; nofollow by <meta name="robots" content="nofollow">"#
        ]],
    );
    meta(
        &[("ROBOTS", "noindex nofollow")],
        expect![[
            r#"noindex by <meta name="ROBOTS" content="noindex nofollow">; nofollow by <meta name="ROBOTS" content="noindex nofollow">"#
        ]],
    );
    meta(&[("robots", ""), ("description", "noindex")], expect![""]);
}

#[test]
fn the_stricter_wins() {
    meta(
        &[("robots", "all, index, noindex")],
        expect![[r#"noindex by <meta name="robots" content="all, index, noindex">"#]],
    );
}

#[test]
fn extended1997_all_outweighs_the_others() {
    let check_1997 = |content, expect: Expect| {
        check(
            RobotsProfile::Extended1997,
            &[],
            &[("robots", content)],
            expect,
        );
    };
    check_1997("all, none, noindex", expect![""]);
    check_1997("index, noindex", expect![""]);
    check_1997("none, index, follow", expect![""]);
    check_1997(
        "none, index",
        expect![[
            r#"noindex by <meta name="robots" content="none, index">; nofollow by <meta name="robots" content="none, index">"#
        ]],
    );
    check_1997(
        "follow, nofollow, noindex",
        expect![[r#"noindex by <meta name="robots" content="follow, nofollow, noindex">"#]],
    );
    check(
        RobotsProfile::Extended1997,
        &["noindex"],
        &[("robots", "all")],
        expect!["noindex by X-Robots-Tag: noindex"],
    );
}

#[test]
fn the_stricter_of_two_values_wins_and_the_first_of_equal_ones_is_cited() {
    let agent = ProductToken::new("ourbot").unwrap();
    for (headers, value, source) in [
        (["max-snippet: 5", "max-snippet:5"], 5, "max-snippet: 5"),
        (["max-snippet: 5", "max-snippet: 4"], 4, "max-snippet: 4"),
        (["max-snippet: 4", "max-snippet: 5"], 4, "max-snippet: 4"),
        (["max-snippet: 4", "max-snippet: -1"], 4, "max-snippet: 4"),
    ] {
        let directives = PageDirectives::read(headers, [], &agent, RobotsProfile::Rfc9309);
        let snippet = directives.max_snippet.unwrap();
        assert_eq!(snippet.value, value, "{headers:?}");
        assert_eq!(
            snippet.source.to_string(),
            format!("X-Robots-Tag: {source}")
        );
    }
}
