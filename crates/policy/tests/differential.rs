//! Against another reader of robots.txt, on random files that use only what both take from
//! RFC 9309: paths begin with a slash, reserved octets are not escaped, no other record stands
//! in a group's header, names have nothing behind them, no index page is allowed.
#![allow(missing_docs, clippy::unwrap_used)]

use crawl_policy::{ProductToken, Profile, Robots};
use proptest::prelude::*;

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "User-agent: (ourbot|other|\\*)\n",
        9 => "(Disallow|Allow|disallow|Dissallow): (/[abx]{0,3}([*][ab.]{0,2}){0,2}[$]?|)\n",
        3 => "(Disallow|Allow): /[ab]{0,2}(ü|%c3%bc|%61|~)[*ab]{0,2}\n",
        1 => "(# comment|Sitemap: https://a.example/s.xml|Disallow /ab|)\n",
    ]
}

proptest! {
    #[test]
    fn ours_and_another_reader_agree(
        lines in prop::collection::vec(line(), 0..24),
        paths in prop::collection::vec("/[abx.]{0,5}(%C3%BC|~|)[ab]{0,3}(\\?[ab]{0,2})?", 1..8),
    ) {
        let file = lines.concat();
        let agent = ProductToken::new("ourbot").unwrap();
        let robots = Robots::parse(file.as_bytes(), &agent, Profile::Rfc9309);
        let other = robotxt::Robots::parse(file.as_bytes(), "ourbot");
        for path in &paths {
            let verdict = robots.judge(path);
            prop_assert_eq!(verdict.is_allowed(), other.is_allowed(path), "{} {:?}\n{}", path, verdict, file);
        }
    }
}
