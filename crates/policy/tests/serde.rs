//! The serialized form of verdicts, with the feature `serde`.
#![allow(missing_docs, clippy::unwrap_used)]

use crawl_policy::{ProductToken, RequestPath, Robots, RobotsProfile, RobotsStatus, RuleVerdict};
use strum::VariantArray as _;

#[test]
fn a_verdict_is_read_back_from_its_json() {
    let robots = Robots::parse(b"User-agent: *\nDisallow: /a\n");
    let (path, other) = (
        RequestPath::new("/a").unwrap(),
        RequestPath::new("/b").unwrap(),
    );
    let rules = robots.for_agent("ourbot");
    let verdict = rules.judge_path(&path);
    let json = serde_json::to_string(&verdict).unwrap();
    assert_eq!(
        json,
        r#"{"access":"disallowed","rule":{"text":"Disallow: /a","line":2},"group":{"agent":"*","line":1},"profile":"rfc9309"}"#
    );
    let read: RuleVerdict<'static> = serde_json::from_str(&json).unwrap();
    assert_eq!(read, verdict);

    let verdict = rules.judge_path(&other);
    let json = serde_json::to_string(&verdict).unwrap();
    let read: RuleVerdict<'static> = serde_json::from_str(&json).unwrap();
    assert_eq!(read, verdict);
}

#[test]
fn a_profile_is_written_as_it_is_displayed() {
    for profile in RobotsProfile::VARIANTS {
        let json = serde_json::to_string(profile).unwrap();
        assert_eq!(json, format!("\"{profile}\""));
        assert_eq!(
            serde_json::from_str::<RobotsProfile>(&json).unwrap(),
            *profile
        );
    }
    // Under the strictest profile, a verdict names the profile that refused.
    let robots = Robots::parse(b"User-agent: our\nDisallow: /a\n");
    let agent = ProductToken::new("ourbot").unwrap();
    let rules = robots.for_token(&agent, RobotsProfile::Strictest);
    let verdict = rules.judge_path(&RequestPath::new("/a").unwrap());
    let json = serde_json::to_value(&verdict).unwrap();
    assert_eq!(json["profile"], "koster1994");
}

#[test]
fn a_status_has_the_words_of_the_rfc() {
    let words =
        [200, 301, 404, 503].map(|status| serde_json::to_value(RobotsStatus::of(status)).unwrap());
    assert_eq!(
        words,
        ["successful", "redirect", "unavailable", "unreachable"]
    );
}
