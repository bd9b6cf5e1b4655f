#![expect(
    clippy::needless_pass_by_value,
    reason = "expectations are written where they are passed"
)]

use expect_test::{Expect, expect};

use super::PageDirectives;
use crate::agent::{ProductToken, Profile};

fn shown(found: &PageDirectives) -> String {
    let mut lines = Vec::new();
    for (name, source) in [
        ("noindex", &found.noindex),
        ("nofollow", &found.nofollow),
        ("noarchive", &found.noarchive),
        ("nosnippet", &found.nosnippet),
        ("noai", &found.noai),
        ("noimageai", &found.noimageai),
    ] {
        if let Some(source) = source {
            lines.push(format!("{name} by {source}"));
        }
    }
    for (name, value) in [
        (
            "max-snippet",
            found.max_snippet.as_ref().map(|v| v.value.to_string()),
        ),
        (
            "after",
            found
                .unavailable_after
                .as_ref()
                .map(|v| v.value.to_string()),
        ),
    ] {
        lines.extend(value.map(|value| format!("{name} {value}")));
    }
    lines.join("; ")
}

fn check(profile: Profile, headers: &[&str], metas: &[(&str, &str)], expect: Expect) {
    let agent = ProductToken::new("ourbot").unwrap();
    let found = PageDirectives::read(
        headers.iter().copied(),
        metas.iter().copied(),
        &agent,
        profile,
    );
    expect.assert_eq(&shown(&found));
}

fn header(values: &[&str], expect: Expect) {
    check(Profile::Rfc9309, values, &[], expect);
}

fn meta(metas: &[(&str, &str)], expect: Expect) {
    check(Profile::Rfc9309, &[], metas, expect);
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
fn what_a_page_allows_follows_from_its_words() {
    for (said, index, follow) in [
        ("", true, true),
        ("noindex", false, true),
        ("nofollow", true, false),
        ("none", false, false),
    ] {
        let agent = ProductToken::new("ourbot").unwrap();
        let found = PageDirectives::read([said], [], &agent, Profile::Rfc9309);
        assert_eq!(
            (found.noindex.is_none(), found.nofollow.is_none()),
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
    header(
        &["unavailable_after: someday, max-snippet:abc, max-snippet:-2"],
        expect![""],
    );
    header(
        &["max-snippet:-1", "max-snippet:20", "max-snippet:50"],
        expect!["max-snippet 20"],
    );
    // A value of a directive that nothing here goes by is no robot's name.
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
fn ours_the_stricter_wins() {
    meta(
        &[("robots", "all, index, noindex")],
        expect![[r#"noindex by <meta name="robots" content="all, index, noindex">"#]],
    );
}

#[test]
fn extended1997_all_outweighs_the_others() {
    let check_1997 = |content, expect: Expect| {
        check(Profile::Extended1997, &[], &[("robots", content)], expect);
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
        Profile::Extended1997,
        &["noindex"],
        &[("robots", "all")],
        expect!["noindex by X-Robots-Tag: noindex"],
    );
}

#[test]
fn ours_of_two_values_the_stricter_counts_and_of_equal_ones_the_first_is_named() {
    let agent = ProductToken::new("ourbot").unwrap();
    for (headers, value, source) in [
        (["max-snippet: 5", "max-snippet:5"], 5, "max-snippet: 5"),
        (["max-snippet: 5", "max-snippet: 4"], 4, "max-snippet: 4"),
        (["max-snippet: 4", "max-snippet: 5"], 4, "max-snippet: 4"),
        (["max-snippet: 4", "max-snippet: -1"], 4, "max-snippet: 4"),
    ] {
        let found = PageDirectives::read(headers, [], &agent, Profile::Rfc9309);
        let found = found.max_snippet.unwrap();
        assert_eq!(found.value, value, "{headers:?}");
        assert_eq!(found.source.to_string(), format!("X-Robots-Tag: {source}"));
    }
}
