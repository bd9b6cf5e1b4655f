#![expect(
    clippy::needless_pass_by_value,
    reason = "expectations are written where they are passed"
)]

use expect_test::{Expect, expect};

use super::{
    TdmReservationList, UsagePurpose, UsageStance, UsageStatementInputs, UsageStatementSource,
    UsageStatements, UsageVocabulary,
};
use crate::page_directives::PageDirectives;
use crate::product_token::{ProductToken, RobotsProfile};
use crate::robots::AgentRules;

fn shown(statements: &UsageStatements) -> String {
    let verdicts = UsagePurpose::ALL.iter().filter_map(|&purpose| {
        let verdict = statements.verdict(purpose);
        let by = verdict.by.map(|by| match by.channel {
            UsageStatementSource::Robots(line) => format!("robots line {line}"),
            other => format!("{other:?}").to_lowercase(),
        });
        Some(format!("{purpose} {} by {}", verdict.stance?, by?))
    });
    verdicts.collect::<Vec<_>>().join(", ")
}

fn robots(file: &str, agent: &str) -> AgentRules {
    let agent = ProductToken::new(agent).unwrap();
    AgentRules::parse(file.as_bytes(), &agent, RobotsProfile::Rfc9309)
}

fn from_robots(file: &str, agent: &str, path: &str, expect: Expect) {
    let robots = robots(file, agent);
    let statements = UsageStatements::read(&UsageStatementInputs {
        robots: Some(&robots),
        path_and_query: path,
        ..UsageStatementInputs::default()
    });
    expect.assert_eq(&shown(&statements));
}

fn from_headers(headers: &[(&str, &str)], expect: Expect) {
    let statements = UsageStatements::read(&UsageStatementInputs {
        headers,
        path_and_query: "/",
        ..UsageStatementInputs::default()
    });
    expect.assert_eq(&shown(&statements));
}

#[test]
fn aipref_vocab_content_usage_header() {
    let check = |value, expect| from_headers(&[("Content-Usage", value)], expect);
    check(
        "train-ai=y, search=n",
        expect!["search refused by header, train-ai allowed by header"],
    );
    check(
        "train-ai;allow=n, train-ai=y",
        expect!["train-ai allowed by header"],
    );
    check(
        "train-ai=y, train-ai=n;x",
        expect!["train-ai refused by header"],
    );
    check("ai-use=n, unknown=n", expect!["ai-input refused by header"]);
    check("ai-input=n", expect!["ai-input refused by header"]);
    check(
        "a=\"x\\\"\";b, c=?1, d=:aGk=:, e=(y n);q=1, f=-1.5, g=@5, h=%\"f%c3%bc\"\t,\tsearch=n",
        expect!["search refused by header"],
    );
    for nothing in [
        "",
        "Train-AI=n",
        "train-ai=no",
        "train-ai",
        "train-ai=\"n\"",
        "train-ai=(n)",
        // A syntax error invalidates the whole value.
        "train-ai=n,",
        "train-ai=n search=n",
        "train-ai= n",
        "train-ai=n, a=\"x",
        "train-ai=n, a=1.2345",
        "train-ai=n, a=é",
    ] {
        check(nothing, expect![""]);
    }
    from_headers(
        &[
            ("content-usage", "search=y"),
            ("CONTENT-USAGE", "train-ai=n"),
        ],
        expect!["search allowed by header, train-ai refused by header"],
    );
}

const USAGE: &str = "User-agent: *\nDisallow: /never\nContent-Usage: train-ai=n\nContent-Usage: /open/ train-ai=y\nContent-Usage: /o* search=n\n\nUser-agent: named\nAllow: /\nContent-Usage: train-ai=y\nContent-Usage: /p train-ai=n\nContent-Usage: /p search=n\nContent-Usage: /p train-ai=y\n";

#[test]
fn aipref_attach_the_longest_path_speaks() {
    from_robots(
        USAGE,
        "other",
        "/x",
        expect!["train-ai refused by robots line 3"],
    );
    from_robots(
        USAGE,
        "other",
        "/open/x",
        expect!["train-ai allowed by robots line 4"],
    );
    from_robots(
        USAGE,
        "other",
        "/ox",
        expect!["search refused by robots line 5"],
    );
    from_robots(
        USAGE,
        "named",
        "/x",
        expect!["train-ai allowed by robots line 9"],
    );
}

#[test]
fn aipref_attach_of_equal_paths_each_applies() {
    from_robots(
        USAGE,
        "named",
        "/p/q",
        expect!["search refused by robots line 11, train-ai refused by robots line 10"],
    );
}

#[test]
fn content_signals_of_the_group() {
    let file = "User-agent: *\nContent-Signal: search=yes, AI-train=no, use=reference\nAllow: /\n\nUser-agent: named\nDisallow: /x\n";
    from_robots(
        file,
        "other",
        "/",
        expect!["search allowed by robots line 2, train-ai refused by robots line 2"],
    );
    from_robots(file, "named", "/", expect![""]);
}

#[test]
fn signals_before_any_group_apply_to_groups_without_signals() {
    let file = "Content-Signal: ai-input=no\nUser-agent: *\nDisallow: /x\n";
    from_robots(
        file,
        "other",
        "/",
        expect!["ai-input refused by robots line 1"],
    );
}

#[test]
fn older_profiles_use_the_signals_of_the_file_and_of_the_group_that_applies() {
    let before = "Content-Signal: ai-input=no\n\nUser-agent: *\nDisallow: /x\n";
    let within = "User-agent: *\nContent-Signal: ai-input=no\nDisallow: /x\n";
    let elsewhere = "User-agent: named\nContent-Signal: ai-input=no\nDisallow: /x\n\nUser-agent: *\nDisallow: /x\n";
    for profile in [RobotsProfile::Koster1994, RobotsProfile::Extended1997] {
        for (file, expected) in [
            (before, "ai-input refused by robots line 1"),
            (within, "ai-input refused by robots line 2"),
            (elsewhere, ""),
        ] {
            let agent = ProductToken::new("other").unwrap();
            let robots = AgentRules::parse(file.as_bytes(), &agent, profile);
            let statements = UsageStatements::read(&UsageStatementInputs {
                robots: Some(&robots),
                path_and_query: "/",
                ..UsageStatementInputs::default()
            });
            assert_eq!(shown(&statements), expected, "{profile:?} {file}");
        }
    }
}

#[test]
fn rsl_1_0_a_group_s_licenses_replace_the_file_s() {
    let file = "License: https://a.example/g.xml\nUser-agent: named\nLicense: https://a.example/n.xml\nDisallow: /\n\nUser-agent: *\nDisallow:\n";
    let of = |agent| {
        let robots = robots(file, agent);
        let statements = UsageStatements::read(&UsageStatementInputs {
            robots: Some(&robots),
            path_and_query: "/",
            ..UsageStatementInputs::default()
        });
        assert!(statements.list.iter().all(|s| s.says.is_empty()));
        let raw = statements.list.iter().map(|s| s.raw.clone());
        raw.collect::<Vec<_>>()
    };
    assert_eq!(of("named"), ["https://a.example/n.xml"]);
    assert_eq!(of("other"), ["https://a.example/g.xml"]);
}

#[test]
fn tdmrep_meta_before_header_before_file() {
    let json = br#"[{"location":"/a/","tdm-reservation":1},
        {"location":"/b/*.jpg","tdm-reservation":0},
        {"location":"/b/","tdm-reservation":1,"tdm-policy":"https://p.example/p.json"},
        {"location":"/c"}, 5]"#;
    let file = TdmReservationList::parse(json).unwrap();
    let check = |path, headers: &[(&str, &str)], metas: &[(&str, &str)], expect: Expect| {
        let statements = UsageStatements::read(&UsageStatementInputs {
            path_and_query: path,
            tdmrep: Some(&file),
            headers,
            metas,
            ..UsageStatementInputs::default()
        });
        let stances: Vec<_> = statements.list.iter().map(|s| s.says.first()).collect();
        let raw = statements.list.iter().zip(stances);
        let raw =
            raw.map(|(s, says)| format!("{}{}", s.raw, if says.is_some() { "!" } else { "" }));
        let raw = raw.collect::<Vec<_>>().join(" | ");
        expect.assert_eq(&format!("{raw} => {}", shown(&statements)));
    };
    check(
        "/b/x.jpg",
        &[],
        &[],
        expect![
            "/b/*.jpg: tdm-reservation: 0! => ai-input allowed by tdmrep, train-ai allowed by tdmrep"
        ],
    );
    check(
        "/b/x",
        &[],
        &[],
        expect![
            "/b/: tdm-reservation: 1; tdm-policy: https://p.example/p.json! => ai-input refused by tdmrep, train-ai refused by tdmrep"
        ],
    );
    check("/c", &[], &[], expect![" => "]);
    check(
        "/a/x",
        &[("TDM-Reservation", "0")],
        &[],
        expect![
            "/a/: tdm-reservation: 1 | tdm-reservation: 0! => ai-input allowed by header, train-ai allowed by header"
        ],
    );
    check(
        "/a/x",
        &[("tdm-reservation", "0")],
        &[
            ("tdm-reservation", "1"),
            ("tdm-policy", "https://p.example/"),
        ],
        expect![
            "/a/: tdm-reservation: 1 | tdm-reservation: 0 | tdm-reservation: 1; tdm-policy: https://p.example/! => ai-input refused by meta, train-ai refused by meta"
        ],
    );
    check(
        "/a/x",
        &[("tdm-reservation", "maybe")],
        &[],
        expect![
            "/a/: tdm-reservation: 1! | tdm-reservation: maybe => ai-input refused by tdmrep, train-ai refused by tdmrep"
        ],
    );
}

#[test]
fn tdmrep_entries_that_are_read() {
    for (entry, reserved) in [
        (r#"{"location":"/","tdm-reservation":1}"#, Some(true)),
        (r#"{"location":"/","tdm-reservation":" 0 "}"#, Some(false)),
        (r#"{"location":"/","tdm-reservation":2}"#, None),
        (r#"{"location":"/","tdm-reservation":"yes"}"#, None),
        (r#"{"location":"/","tdm-reservation":true}"#, None),
        (r#"{"location":7,"tdm-reservation":1}"#, None),
        (r#"{"tdm-reservation":1}"#, None),
    ] {
        let file = TdmReservationList::parse(format!("[{entry}]").as_bytes()).unwrap();
        let actual = file.entry("/a").map(|entry| entry.reserved);
        assert_eq!(actual, reserved, "{entry}");
    }
    let entry = r#"{"location":"/","tdm-reservation":1}"#;
    let many = format!("[{}]", [entry; 1001].join(","));
    assert_eq!(
        TdmReservationList::parse(many.as_bytes())
            .unwrap()
            .entries
            .len(),
        1000
    );
}

#[test]
fn an_invalid_tdmrep_is_rejected() {
    assert_eq!(TdmReservationList::parse(b"{\"location\":\"/\"}"), None);
    assert_eq!(TdmReservationList::parse(b"x"), None);
    let with_mark = b"\xEF\xBB\xBF[]";
    assert_eq!(
        TdmReservationList::parse(with_mark),
        Some(TdmReservationList::default())
    );
}

#[test]
fn words_of_the_page() {
    let agent = ProductToken::new("ourbot").unwrap();
    let metas = [("robots", "noai, noarchive")];
    let page = PageDirectives::read([], metas, &agent, RobotsProfile::Rfc9309);
    let statements = UsageStatements::read(&UsageStatementInputs {
        page: Some(&page),
        headers: &[("Content-Usage", "train-ai=y")],
        metas: &metas,
        ..UsageStatementInputs::default()
    });
    expect!["ai-input refused by meta, train-ai refused by meta, archive refused by meta"]
        .assert_eq(&shown(&statements));
    assert_eq!(statements.verdict(UsagePurpose::Search).stance, None);
    assert!(statements.verdict(UsagePurpose::Archive).is_refused());
    assert!(!statements.verdict(UsagePurpose::Search).is_refused());
    assert_eq!(UsageStance::Allowed.to_string(), "allowed");
}

#[test]
fn names_match_the_rows() {
    let channels = [
        UsageStatementSource::Robots(3),
        UsageStatementSource::Header,
        UsageStatementSource::Meta,
        UsageStatementSource::TdmRep,
    ];
    assert_eq!(
        channels.map(|channel| channel.to_string()),
        ["robots", "header", "meta", "tdmrep"]
    );
    let vocabularies = [
        UsageVocabulary::ContentUsage,
        UsageVocabulary::ContentSignal,
        UsageVocabulary::RslLicense,
        UsageVocabulary::TdmReservation,
        UsageVocabulary::NoAi,
        UsageVocabulary::NoArchive,
    ];
    assert_eq!(
        vocabularies.map(|vocabulary| vocabulary.to_string()),
        [
            "content-usage",
            "content-signal",
            "license",
            "tdm-reservation",
            "noai",
            "noarchive"
        ]
    );
    assert_eq!(
        UsagePurpose::ALL.map(|purpose| purpose.to_string()),
        ["search", "ai-input", "train-ai", "archive"]
    );
    assert_eq!(UsageStance::Refused.to_string(), "refused");
}
