#![expect(
    clippy::needless_pass_by_value,
    reason = "expectations are written where they are passed"
)]

use expect_test::{Expect, expect};

use url::Url;

use super::{AgentRules, MAX_ROBOTS_BYTES, RequestPath, Robots, RobotsAccess, RuleVerdict};
use crate::product_token::{ProductToken, RobotsProfile};

fn parse(file: &str) -> AgentRules {
    Robots::parse(file.as_bytes()).for_agent("ourbot")
}

fn judge<'r>(robots: &'r AgentRules, path: &str) -> RuleVerdict<'r> {
    robots.judge_path(&RequestPath::new(path).unwrap())
}

fn check(file: &str, paths: &[&str], expect: Expect) {
    let robots = parse(file);
    let mut verdicts = String::new();
    for path in paths {
        let verdict = judge(&robots, path);
        let rule = verdict.rule.map(|r| format!(" by {}: {}", r.line, r.text));
        let group = verdict
            .group
            .map(|g| format!(" of {}: {}", g.line, g.agent));
        let (rule, group) = (rule.unwrap_or_default(), group.unwrap_or_default());
        verdicts += &format!("{path} {:?}{rule}{group}\n", verdict.access);
    }
    expect.assert_eq(&verdicts);
}

#[test]
fn a_url_is_judged_by_its_path_and_query() {
    let robots = parse("User-agent: *\nDisallow: /private\nDisallow: /*?id=\n");
    for (url, line) in [
        ("https://e.example/private/a", Some(2)),
        ("http://u:p@e.example:80/private#x", Some(2)),
        ("https://e.example?id=1", Some(3)),
        ("https://e.example", None),
        ("https://e.example//private", None),
        ("https://private.example/?q#?id=", None),
        ("https://e.example/robots.txt", None),
    ] {
        let url = Url::parse(url).unwrap();
        let verdict = robots.judge(&url);
        assert_eq!(verdict, robots.judge_path(&RequestPath::of(&url)));
        assert_eq!(verdict.rule.map(|rule| rule.line), line, "{url}");
    }
    // URLs with schemes that need no host or path.
    for url in ["mailto:private", "other://host?id=1"] {
        let url = Url::parse(url).unwrap();
        assert!(!robots.judge(&url).is_allowed(), "{url}");
    }
}

#[test]
fn a_file_has_rules_for_any_agent_and_its_verdicts_outlive_it() {
    let robots = Robots::parse(b"User-agent: a\nDisallow: /x # no\n\nUser-agent: *\nAllow: /\n");
    let [a, other, none] = ["A/2.1 (+https://a.example)", "b", "(a)"].map(|name| {
        let rules = robots.clone().for_agent(name);
        judge(&rules, "/x").into_owned()
    });
    assert_eq!(a.access, RobotsAccess::Disallowed);
    let (rule, group) = (a.rule.unwrap(), a.group.unwrap());
    assert_eq!((&*rule.text, rule.line), ("Disallow: /x", 2));
    assert_eq!((&*group.agent, group.line), ("a", 1));
    assert_eq!(a.profile, RobotsProfile::Rfc9309);
    assert_eq!(other.group.as_ref().unwrap().agent, "*");
    assert_eq!(other, none);
}

#[test]
fn for_token_and_parse_return_the_same_rules() {
    let file = "\u{feff}User-agent: ourb\nDisallow: /a\nUser-agent: *\nDisallow: /b\n";
    let utf16: Vec<u8> = file.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let token = ProductToken::new("ourbot").unwrap();
    for bytes in [file.as_bytes(), &utf16] {
        for profile in [
            RobotsProfile::Rfc9309,
            RobotsProfile::Koster1994,
            RobotsProfile::Strictest,
        ] {
            let shared = Robots::parse(bytes).for_token(&token, profile);
            let direct = AgentRules::parse(bytes, &token, profile);
            for path in ["/a", "/b", "/c"] {
                assert_eq!(
                    judge(&shared, path),
                    judge(&direct, path),
                    "{profile} {path}"
                );
            }
            assert_eq!(shared.oddities(), direct.oddities());
        }
    }
}

#[test]
fn rfc9309_2_3_1_allow_all_and_disallow_all() {
    let (open, closed) = (Robots::allow_all(), Robots::disallow_all());
    let (open, closed) = (open.for_agent("ourbot"), closed.for_agent("ourbot"));
    for path in ["/", "/a?b"] {
        assert!(judge(&open, path).is_allowed());
        assert!(judge(&AgentRules::allow_all(), path).is_allowed());
        assert!(!judge(&closed, path).is_allowed());
    }
    assert!(judge(&closed, "/robots.txt").is_allowed());
}

#[test]
fn rfc9309_2_2_1_groups_of_one_name_merge_and_star_is_the_fallback() {
    check(
        "User-agent: *\nDisallow: /star\n\nUser-Agent: OURBOT\nDisallow: /one # x\n\nUser-agent: other\nDisallow: /\nUser-agent: ourbot/2.0\nDisallow:/two\n",
        &["/star", "/one", "/two/x"],
        expect![[r#"
            /star Allowed of 4: OURBOT
            /one Disallowed by 5: Disallow: /one of 4: OURBOT
            /two/x Disallowed by 10: Disallow:/two of 9: ourbot/2.0
        "#]],
    );
    check(
        "User-agent: *\nDisallow: /a\nUser-agent: b\nDisallow: /b\nUser-agent: *\nDisallow: /c\n",
        &["/a", "/b", "/c"],
        expect![[r#"
            /a Disallowed by 2: Disallow: /a of 1: *
            /b Allowed of 1: *
            /c Disallowed by 6: Disallow: /c of 5: *
        "#]],
    );
}

#[test]
fn rfc9309_2_2_2_longest_match_wins_and_allow_on_ties() {
    check(
        "user-agent: *\ndisallow: /d\nallow: /d/p\ndisallow: /d/p\ndisallow: /*.html\nallow: /page\ndisallow:\n",
        &["/d/x", "/d/p", "/page.html", "/e", "/robots.txt"],
        expect![[r#"
            /d/x Disallowed by 2: disallow: /d of 1: *
            /d/p Allowed by 3: allow: /d/p of 1: *
            /page.html Disallowed by 5: disallow: /*.html of 1: *
            /e Allowed of 1: *
            /robots.txt Allowed of 1: *
        "#]],
    );
}

#[test]
fn rfc9309_2_2_4_other_records_end_no_header() {
    let robots = parse(
        "User-agent: ourbot\nCrawl-delay: 10\nSitemap: /s.xml\nNoindex: /\n\nUser-agent: other\nCrawl-delay: 3\nDisallow: /x\nHost: h.example\nClean-param: a&b /p\n",
    );
    assert!(!judge(&robots, "/x").is_allowed());
    assert_eq!(robots.crawl_delay().unwrap().0.as_secs(), 10);
    assert_eq!(robots.crawl_delay().unwrap().1, 2);
    assert_eq!(robots.sitemaps()[0].url, "/s.xml");
    assert_eq!(robots.host(), Some(("h.example", 9)));
    assert_eq!(robots.clean_params()[0].params, ["a", "b"]);
}

#[test]
fn records_of_groups_with_the_same_name_add_up() {
    let slow = "Crawl-delay: 10\nRequest-rate: 1/20\nVisit-time: 0600-0845\nDisallow: /a\n";
    let quick =
        "Crawl-delay: 3\nRequest-rate: 2/1m 1200-1300\nVisit-time: 2200-2300\nDisallow: /b\n";
    for (groups, of_slow) in [([slow, quick], 3), ([quick, slow], 8)] {
        let [one, other] = groups;
        let robots = parse(&format!(
            "#\nUser-agent: ourbot\n{one}User-agent: ourbot\n{other}"
        ));
        assert_eq!(
            robots.group().map(|g| (g.agent.into_owned(), g.line)),
            Some(("ourbot".to_owned(), 2))
        );
        assert_eq!(robots.reading.rules.len(), 2);
        let delay = robots
            .crawl_delay()
            .map(|(delay, line)| (delay.as_secs(), line));
        assert_eq!(delay, Some((10, of_slow)));
        let mut gaps = robots
            .request_rates()
            .iter()
            .map(|rate| rate.gap().as_secs());
        assert_eq!(gaps.clone().sum::<u64>(), 50);
        assert_eq!(gaps.next(), Some(if of_slow == 3 { 20 } else { 30 }));
        let begins: Vec<u16> = robots
            .visit_times()
            .iter()
            .map(|time| time.hours.from)
            .collect();
        let (early, late) = (6 * 60, 22 * 60);
        assert_eq!(
            begins,
            if of_slow == 3 {
                [early, late]
            } else {
                [late, early]
            }
        );
    }
}

#[test]
fn memory_includes_all_lines() {
    let rules: String = (0..500).map(|n| format!("Disallow: /{n}/*/x\n")).collect();
    let sitemaps: String = (0..100).map(|n| format!("Sitemap: /{n}.xml\n")).collect();
    let few = parse("User-agent: *\nDisallow: /a\n").memory_bytes();
    let many = parse(&format!("User-agent: *\n{rules}")).memory_bytes();
    let more = parse(&format!("User-agent: *\n{rules}{sitemaps}")).memory_bytes();
    assert!((100..2_000).contains(&few), "{few}");
    assert!((20_000..400_000).contains(&many), "{many}");
    assert!(
        (100 * 32..100 * 200).contains(&(more - many)),
        "{}",
        more - many
    );
    assert!(parse("").memory_bytes() < few);
    for line in [
        "Clean-param: a&b&c /x",
        "Host: www.example.org",
        "Request-rate: 1/5",
        "Visit-time: 0100-0200",
        "Content-Usage: ai=n",
    ] {
        let file = format!(
            "User-agent: *\nDisallow: /a\n{}",
            format!("{line}\n").repeat(500)
        );
        let bytes = parse(&file).memory_bytes();
        assert!(bytes >= few + 500 * 8, "{line}: {bytes}");
    }
    let odd = parse(&format!(
        "User-agent: *\nDisallow: /a\n{}",
        "odd: 1\n".repeat(500)
    ));
    assert!(odd.memory_bytes() >= few + 500 * size_of::<super::RobotsOddity>());
}

#[test]
fn a_record_applies_to_the_names_above_it() {
    let robots = parse("User-agent: other\nCrawl-delay: 10\nUser-agent: ourbot\nDisallow: /x\n");
    assert_eq!(robots.crawl_delay(), None);
    assert!(!judge(&robots, "/x").is_allowed());
}

#[test]
fn an_allowed_index_page_allows_its_folder() {
    check(
        "User-agent: *\nAllow: /dir/index.html\nAllow: /*/index.htm\nDisallow: /\n",
        &["/dir/", "/dir/index.html", "/a/", "/a/b"],
        expect![[r#"
            /dir/ Allowed by 2: Allow: /dir/index.html of 1: *
            /dir/index.html Allowed by 2: Allow: /dir/index.html of 1: *
            /a/ Allowed by 3: Allow: /*/index.htm of 1: *
            /a/b Disallowed by 4: Disallow: / of 1: *
        "#]],
    );
}

#[test]
fn a_record_is_cited_by_the_first_name_that_matches() {
    let file = "User-agent: nobody\nUser-agent: *\nUser-agent: other\nDisallow: /a\n";
    let agent = ProductToken::new("ourbot").unwrap();
    for profile in [
        RobotsProfile::Rfc9309,
        RobotsProfile::Koster1994,
        RobotsProfile::Extended1997,
    ] {
        let robots = AgentRules::parse(file.as_bytes(), &agent, profile);
        for path in ["/a", "/b"] {
            let group = judge(&robots, path).group.unwrap();
            assert_eq!((&*group.agent, group.line), ("*", 2), "{profile} {path}");
        }
    }
}

#[test]
fn the_strictest_profile_keeps_every_record_of_1994() {
    let file = "User-agent: ourbot\nDisallow: /the-first%7e\n\n\
        User-agent: ourbot\nAllow: /the-second%7e/c\nDisallow: /the-second%7e\n\n\
        User-agent: *\nUser-agent: ourbot/3\nDisallow: /the-third\n";
    let agent = ProductToken::new("ourbot").unwrap();
    let robots = AgentRules::parse(file.as_bytes(), &agent, RobotsProfile::Strictest);
    for (path, line, group) in [
        ("/the-first~", 2, ("ourbot", 1)),
        ("/the-second~", 6, ("ourbot", 4)),
        ("/the-second~/c", 6, ("ourbot", 4)),
        ("/the-third", 10, ("ourbot/3", 9)),
    ] {
        let verdict = judge(&robots, path);
        assert!(!verdict.is_allowed(), "{path}");
        assert_eq!(verdict.rule.map(|rule| rule.line), Some(line), "{path}");
        let by = verdict.group.unwrap();
        assert_eq!((&*by.agent, by.line), group, "{path}");
    }
    assert_eq!(
        judge(&robots, "/the-second~/c").profile,
        RobotsProfile::Koster1994
    );
    assert!(judge(&robots, "/c").is_allowed());
}

#[test]
fn names_with_digits() {
    let of = |file: &str, agent: &str| {
        let agent = ProductToken::new(agent).unwrap();
        let robots = AgentRules::parse(file.as_bytes(), &agent, RobotsProfile::Rfc9309);
        judge(&robots, "/x").is_allowed()
    };
    let file = "User-agent: MJ12bot/1.4\nDisallow: /\n";
    assert!(!of(file, "mj12bot"));
    assert!(!of(file, "mj"));
    assert!(of(file, "mj1"));
    assert!(of(file, "mj12"));
    assert!(of("User-agent: alphabot\nDisallow: /\n", "alpha"));
}

#[test]
fn oddities_name_their_line() {
    let robots = parse(
        "<html>\nDisallow: /\nUser-agent: *\ndisalow /a\nDisallow: a\nhm\nCrawl-delay: x\nFoo: bar\n",
    );
    let lines: Vec<_> = robots
        .oddities()
        .iter()
        .map(|oddity| format!("{} {}", oddity.line, oddity.what.name()))
        .collect();
    expect!["1 no_field, 2 rule_without_group, 4 no_colon, 4 misspelt, 5 no_leading_slash, 6 no_field, 7 bad_value, 8 unknown_field, 1 markup"].assert_eq(&lines.join(", "));
}

fn oddities(file: &[u8], profile: RobotsProfile) -> String {
    let agent = ProductToken::new("ourbot").unwrap();
    let robots = AgentRules::parse(file, &agent, profile);
    let shown = robots.oddities().iter();
    let shown = shown.map(|oddity| format!("{} {}", oddity.line, oddity.what.name()));
    shown.collect::<Vec<_>>().join(", ")
}

#[test]
fn oddities_of_older_profiles_name_their_line() {
    let file = b"Disallow: /\n\nUser-agent: /1.0 ,\nDisallow: a /b\n\nUser-agent: other\n\n\
        Disallow: /\nUser-agent: ourbot\nAllow: /x\nDisallow /y\nCrawl-delay: x\nfoo: bar\n\
        hm\nDisallow: c\0\nSitemap:\n";
    for (profile, expect) in [
        (
            RobotsProfile::Koster1994,
            expect![
                "1 rule_without_group, 3 names_nobody, 6 incomplete_record, 8 split_record, 10 unknown_field, 11 no_field, 12 bad_value, 13 unknown_field, 14 no_field, 15 nul, 15 no_leading_slash, 16 bad_value"
            ],
        ),
        (
            RobotsProfile::Extended1997,
            expect![
                "1 rule_without_group, 3 names_nobody, 8 split_record, 10 unknown_field, 11 no_field, 12 bad_value, 13 unknown_field, 14 no_field, 15 nul, 15 no_leading_slash, 16 bad_value"
            ],
        ),
    ] {
        let listed = oddities(file, profile);
        expect.assert_eq(&listed);
    }
}

#[test]
fn oddities_of_a_whole_file() {
    let cut = [&b"User-agent: *\n"[..], &b"# a line\n".repeat(100_000)].concat();
    let line = 2 + (MAX_ROBOTS_BYTES - 14) / 9;
    assert_eq!(
        oddities(&cut, RobotsProfile::Rfc9309),
        format!("{line} cut")
    );
    let utf16: Vec<u8> = "\u{feff}User-agent: *\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(oddities(&utf16, RobotsProfile::Rfc9309), "1 utf16");
    assert_eq!(
        oddities(b" \n<p>", RobotsProfile::Rfc9309),
        "2 no_field, 1 markup"
    );
    let many = oddities(&b"hm\n".repeat(1001), RobotsProfile::Rfc9309);
    assert_eq!(many.split(", ").count(), 1000);
}

#[test]
fn the_first_line_of_equal_delays_is_cited() {
    for profile in [
        RobotsProfile::Rfc9309,
        RobotsProfile::Koster1994,
        RobotsProfile::Extended1997,
        RobotsProfile::Strictest,
    ] {
        let agent = ProductToken::new("ourbot").unwrap();
        let file = b"User-agent: ourbot\nCrawl-delay: 5\nCrawl-delay: 5\nDisallow: /x\n";
        let delay = AgentRules::parse(file, &agent, profile).crawl_delay();
        assert_eq!(
            delay.map(|(delay, line)| (delay.as_secs(), line)),
            Some((5, 2))
        );
    }
}

#[test]
fn only_a_name_without_a_robot_is_an_oddity() {
    let named = |name: &str| {
        let file = format!("User-agent: {name}\nDisallow: /\n");
        oddities(file.as_bytes(), RobotsProfile::Rfc9309)
    };
    for name in ["otherbot", "other/2.0", "ourbot", "*"] {
        assert_eq!(named(name), "", "{name}");
    }
    for name in ["(all)", "@x", ""] {
        assert_eq!(named(name), "1 names_nobody", "{name}");
    }
}

#[test]
fn the_longest_delay_of_merged_groups_wins() {
    // In the older standards, a user-agent value also names all robots whose names contain it.
    for (profile, name) in [
        (RobotsProfile::Rfc9309, "ourbot"),
        (RobotsProfile::Strictest, "ourb"),
    ] {
        for delays in [[2, 5], [5, 2]] {
            let group = |delay: u64| {
                format!("User-agent: {name}\nCrawl-delay: {delay}\nDisallow: /{delay}\n\n")
            };
            let file = delays.map(group).concat();
            let agent = ProductToken::new("ourbot").unwrap();
            let robots = AgentRules::parse(file.as_bytes(), &agent, profile);
            let delay = robots.crawl_delay().map(|(delay, _)| delay.as_secs());
            assert_eq!(delay, Some(5), "{delays:?} {profile:?}");
        }
    }
}
