//! Properties that must hold for any input: the bodies of the fuzz targets, which the tests also
//! run on random inputs.

mod reference_matcher;

use crawl_policy::usage_statements::{
    TdmReservationList, UsagePurpose, UsageStatementInputs, UsageStatements,
};
use crawl_policy::{AgentRules, PageDirectives, ProductToken, RequestPath, RobotsProfile};
use strum::VariantArray as _;

/// Checks that every profile parses any file, and that the result stays within its limits.
pub(crate) fn parse(data: &[u8]) {
    let agent = ProductToken::new("ourbot").unwrap();
    for &profile in RobotsProfile::VARIANTS {
        let robots = AgentRules::parse(data, &agent, profile);
        let lines = u32::try_from(data.len()).unwrap() + 1;
        assert!(
            robots
                .oddities()
                .iter()
                .all(|o| (1..=lines).contains(&o.line))
        );
        assert!(robots.sitemaps().iter().all(|s| !s.url.is_empty()));
        assert!(robots.judge_path(&path_of("/robots.txt")).is_allowed());
        assert!(robots.memory_bytes() <= 4096 + 256 * data.len());
        for rate in robots.request_rates() {
            assert!(rate.requests > 0 && !rate.per.is_zero());
        }
        let _ = (robots.crawl_delay(), robots.host(), robots.clean_params());
    }
}

/// Checks that this crate judges a path as the reference does. The first bytes of `data` are the
/// path, the rest is the robots.txt.
pub(crate) fn matching(data: &[u8]) {
    let (path, file) = split(data);
    // The reference does not convert UTF-16.
    if file.starts_with(&[0xFF, 0xFE]) || file.starts_with(&[0xFE, 0xFF]) {
        return;
    }
    for agent in ["ourbot", "bot2"] {
        let agent = ProductToken::new(agent).unwrap();
        let robots = AgentRules::parse(file, &agent, RobotsProfile::Rfc9309);
        let verdict = robots.judge_path(&path_of(&path));
        let actual = (verdict.is_allowed(), verdict.rule.map(|rule| rule.line));
        let expect = reference_matcher::judge(file, &agent, &path);
        let file = String::from_utf8_lossy(file);
        assert_eq!(actual, expect, "{path:?} {file:?}");
    }
}

/// Checks that any header and META can be parsed, and that additional words never lift a
/// restriction.
pub(crate) fn headers(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (one, other) = text.split_once('\n').unwrap_or((&text, ""));
    let agent = ProductToken::new("ourbot").unwrap();
    let alone = PageDirectives::read([one], [], &agent, RobotsProfile::Rfc9309);
    let metas = [("robots", other), ("ourbot", one)];
    let both = PageDirectives::read([one, other], metas, &agent, RobotsProfile::Rfc9309);
    assert!(alone.noindex.is_none() || both.noindex.is_some());
    assert!(alone.nofollow.is_none() || both.nofollow.is_some());
    let limit = |page: &PageDirectives| page.max_snippet.as_ref().map(|v| v.value as u32);
    if let Some(alone) = limit(&alone) {
        assert!(limit(&both).is_some_and(|both| both <= alone));
    }
    let cut = RequestPath::of_unparsed(one);
    assert_eq!(RequestPath::new(cut.as_str()).as_ref(), Ok(&cut));
    let file = TdmReservationList::parse(other.as_bytes());
    let fields = [
        ("content-usage", one),
        ("content-signal", other),
        ("tdm-reservation", one),
    ];
    let statements = UsageStatements::read(&UsageStatementInputs {
        path_and_query: other,
        tdmrep: file.as_ref(),
        headers: &fields,
        metas: &fields,
        page: Some(&both),
        ..UsageStatementInputs::default()
    });
    for purpose in UsagePurpose::ALL {
        let verdict = statements.verdict(purpose);
        assert_eq!(verdict.stance.is_some(), verdict.by.is_some());
    }
}

/// Checks that the strictest profile allows a path only if every other profile does.
pub(crate) fn dialects(data: &[u8]) {
    let (path, file) = split(data);
    let agent = ProductToken::new("ourbot").unwrap();
    let allows = |profile| {
        let robots = AgentRules::parse(file, &agent, profile);
        robots.judge_path(&path_of(&path)).is_allowed()
    };
    let each = [
        RobotsProfile::Rfc9309,
        RobotsProfile::Koster1994,
        RobotsProfile::Extended1997,
    ]
    .map(allows);
    if allows(RobotsProfile::Strictest) {
        assert_eq!(
            each,
            [true; 3],
            "{path:?} {:?}",
            String::from_utf8_lossy(file)
        );
    }
}

fn path_of(text: &str) -> RequestPath<'_> {
    RequestPath::new(text).unwrap()
}

/// Splits fuzz input into a URL path and the text of a robots.txt. The first byte, modulo 64, is
/// the length of the path.
fn split(data: &[u8]) -> (String, &[u8]) {
    let Some((&len, rest)) = data.split_first() else {
        return ("/".to_owned(), data);
    };
    let (path, file) = rest.split_at(rest.len().min(len as usize % 64));
    (format!("/{}", String::from_utf8_lossy(path)), file)
}
