use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::{SessionId, SpellingStep, SpellingStepPolicies, SpellingStepPolicy};
use crate::{CanonicalUrl, canonicalize};

/// Checks the spelling that each step yields for a URL.
#[expect(
    clippy::needless_pass_by_value,
    reason = "expectations are written in place"
)]
fn check(url: &str, expect: Expect) {
    let url = canonicalize(None, url).unwrap();
    let spellings = SpellingStep::ALL
        .into_iter()
        .filter_map(|step| step.take(&url));
    let lines =
        spellings.map(|s| format!("{} {}: {}", s.step.name(), s.about, s.url.path_and_query()));
    expect.assert_eq(&lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn default_documents_without_a_query() {
    check(
        "http://a.example/x/index.html",
        expect!["default-document index.html: /x/"],
    );
    check(
        "http://a.example/Default.ASP",
        expect!["default-document default.asp: /"],
    );
    check("http://a.example/index.php?id=3", expect![""]);
    check("http://a.example/x/my-index.html", expect![""]);
    check("http://a.example/index.html/x", expect![""]);
}

#[test]
fn tracking_parameters() {
    check(
        "http://a.example/x?utm_source=m&a=1&fbclid=IwAR0&b",
        expect![[r#"
            tracking-parameter utm_source: /x?a=1&b
            parameter-order /x: /x?a=1&b&fbclid=IwAR0&utm_source=m"#]],
    );
    check(
        "http://a.example/x?gclid=abc",
        expect!["tracking-parameter gclid: /x"],
    );
    check(
        "http://a.example/x?source=m&ref=b",
        expect!["parameter-order /x: /x?ref=b&source=m"],
    );
}

#[test]
fn session_ids_in_queries_and_paths() {
    check(
        "http://a.example/x?a=1&PHPSESSID=0a1b2c3d4e5f6a7b&c=2",
        expect![[r#"
            session-id phpsessid: /x?a=1&c=2
            parameter-order /x: /x?PHPSESSID=0a1b2c3d4e5f6a7b&a=1&c=2"#]],
    );
    check(
        "http://a.example/x?sid=0a1b2c3d4e5f6a7b",
        expect!["session-id sid: /x"],
    );
    check("http://a.example/x?sid=3", expect![""]);
    check("http://a.example/x?sid=internationalisation", expect![""]);
    check(
        "http://a.example/x;jsessionid=AB12CD34EF56AB78.node1/y;v=2?q=1",
        expect!["session-id jsessionid: /x/y;v=2?q=1"],
    );
    check(
        "http://a.example/shop/(S(lit3py55t21z5v55vlm25s55))/a.aspx",
        expect!["session-id (s()): /shop/a.aspx"],
    );
    check("http://a.example/wiki/Foo_(S(x))/y", expect![""]);
}

#[test]
fn values_that_look_like_session_ids() {
    // ColdFusion numbers its visitors, so its ids are short. ASP randomizes the parameter's name as
    // well as the id.
    check("http://a.example/x?CFID=17", expect!["session-id cfid: /x"]);
    check(
        "http://a.example/x?ASPSESSIONIDQQBC=GFEDCBA12345",
        expect!["session-id aspsessionidqqbc: /x"],
    );
    check(
        "http://a.example/x?sid=abcdefghijk1",
        expect!["session-id sid: /x"],
    );
    check("http://a.example/x?sid=abcdefghij1", expect![""]);
    check("http://a.example/x?sid=abcdefghijkl", expect![""]);
    check("http://a.example/x?sid=abcdefghijk/1", expect![""]);
    check("http://a.example/x?CFTOKEN=abc", expect![""]);
    check("http://a.example/x?CFID=", expect!["empty-parameter : /x"]);
    for (path, is_one) in [
        ("(S(lit3py55t21z))/a", true),
        ("(A(lit3py55t21z))/a", true),
        ("(S(lit3py55t21z))", false),
        ("(S(lit3py55t21))/a", false),
        ("(X(lit3py55t21z))/a", false),
        ("(S(lit3py55t21z!))/a", false),
    ] {
        let url = canonicalize(None, &format!("http://a.example/{path}")).unwrap();
        assert_eq!(SessionId::find(&url).is_some(), is_one, "{path}");
    }
}

#[test]
fn order_and_empty_parameters() {
    check(
        "http://a.example/x?b=1&a=2&a=1",
        expect!["parameter-order /x: /x?a=2&a=1&b=1"],
    );
    check("http://a.example/x?a=1&b=2", expect![""]);
    check("http://a.example/x?", expect!["empty-parameter : /x"]);
    check(
        "http://a.example/x?a=&b=1&&c",
        expect![[r#"
        empty-parameter : /x?b=1&c
        parameter-order /x: /x?&a=&b=1&c"#]],
    );
    check("http://a.example/x?edit", expect![""]);
    check("http://a.example/x?a==", expect![""]);
}

#[test]
fn rules_learn_if_a_step_requires_evidence() {
    assert!(SpellingStepPolicies::default().learns());
    assert!(!SpellingStepPolicies::OFF.learns());
    let always = SpellingStepPolicies {
        order: SpellingStepPolicy::On,
        ..SpellingStepPolicies::OFF
    };
    assert!(!always.learns());
}

#[test]
fn every_kind_of_url_is_checked() {
    let rules = SpellingStepPolicies {
        default_documents: SpellingStepPolicy::On,
        session_ids: SpellingStepPolicy::On,
        ..SpellingStepPolicies::default()
    };
    for (path, plain) in [
        ("/x/index.html", Some("/x/")),
        ("/x;jsessionid=0a1b2c3d4e5f6a7b", Some("/x")),
        ("/(S(0a1b2c3d4e5f6a7b))/x", Some("/x")),
        ("/x?utm_source=m", Some("/x")),
        ("/x/about.html", None),
    ] {
        let url = canonicalize(None, &format!("http://a.example{path}")).unwrap();
        let spellings = rules.apply(&url);
        assert_eq!(spellings.as_ref().map(CanonicalUrl::path_and_query), plain);
        let wanting = SpellingStepPolicies {
            tracking: SpellingStepPolicy::Evidence,
            ..SpellingStepPolicies::default()
        };
        let candidates = wanting.candidates(&url).into_iter();
        let spellings: Vec<_> = candidates.map(|spelling| spelling.url).collect();
        let spellings: Vec<_> = spellings.iter().map(CanonicalUrl::path_and_query).collect();
        assert_eq!(spellings, plain.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn an_id_is_replaced_in_place() {
    for url in [
        "http://a.example/x?a=1&sid=0a1b2c3d4e5f6a7b&c=2",
        "http://a.example/x;jsessionid=0a1b2c3d4e5f6a7b",
        "http://a.example/(S(0a1b2c3d4e5f6a7b))/x",
    ] {
        let url = canonicalize(None, url).unwrap();
        let session_id = SessionId::find(&url).unwrap();
        assert_eq!(session_id.id, "0a1b2c3d4e5f6a7b");
        let replaced = session_id.replaced(&url, "1111111111111111").unwrap();
        assert_eq!(SessionId::find(&replaced).unwrap().id, "1111111111111111");
        assert_eq!(
            session_id.removed(&url),
            SessionId::find(&replaced).unwrap().removed(&replaced)
        );
    }
}

/// Returns policies that always take the steps whose flag in `steps` is true, and never the others.
/// The flags are in the order of the fields.
fn always(steps: [bool; 5]) -> SpellingStepPolicies {
    let [default_documents, tracking, session_ids, order, empty] = steps.map(|step| match step {
        true => SpellingStepPolicy::On,
        false => SpellingStepPolicy::Off,
    });
    SpellingStepPolicies {
        default_documents,
        tracking,
        session_ids,
        order,
        empty,
    }
}

#[test]
fn a_step_may_enable_an_earlier_one() {
    for (path, plain) in [
        ("/index.html?", "/"),
        ("/index.html?a=", "/"),
        (
            "/x?PHPSESSID=0a1b2c3d4e5f6a7b&sid=0a1b2c3d4e5f6a7b&a=1",
            "/x?a=1",
        ),
        (
            "/index.html;jsessionid=0a1b2c3d4e5f6a7b?sid=0a1b2c3d4e5f6a7b",
            "/",
        ),
    ] {
        let url = canonicalize(None, &format!("http://a.example{path}")).unwrap();
        let named = always([true; 5]).apply(&url).unwrap();
        assert_eq!(named.path_and_query(), plain, "{path}");
    }
}

#[test]
fn by_default_only_tracking_parameters_go() {
    let text = "http://a.example/index.html?b=&utm_id=3&PHPSESSID=0a1b2c3d4e5f6a7b&a=1";
    let url = canonicalize(None, text).unwrap();
    let named = SpellingStepPolicies::default().apply(&url).unwrap();
    assert_eq!(
        named.path_and_query(),
        "/index.html?b=&PHPSESSID=0a1b2c3d4e5f6a7b&a=1"
    );
    assert_eq!(SpellingStepPolicies::OFF.apply(&url), None);
    let all = always([true; 5]);
    assert_eq!(all.apply(&url).unwrap().path_and_query(), "/index.html?a=1");
    assert!(all.candidates(&url).is_empty());
    assert_eq!(SpellingStepPolicies::default().candidates(&url).len(), 3);
}

fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-cA-C]?=?[a-c]?",
        "(sid|PHPSESSID)=[0-9a-f]{11,13}",
        "(utm_|gclid)[ab]?=?",
    ]
}

proptest! {
    #[test]
    fn steps_that_are_always_taken_change_a_named_url_no_more(
        steps: [bool; 5],
        path in "[a-b/.]{0,3}(/\\(S\\([0-9a-f]{12}\\)\\)/)?(index\\.html)?(;jsessionid=[0-9a-f]{12})?",
        parts in proptest::option::of(proptest::collection::vec(part(), 0..6)),
    ) {
        let query = parts.map_or_else(String::new, |parts| format!("?{}", parts.join("&")));
        let url = canonicalize(None, &format!("http://a.example/{path}{query}")).unwrap();
        let rules = always(steps);
        if let Some(named) = rules.apply(&url) {
            prop_assert_ne!(&named, &url);
            prop_assert_eq!(rules.apply(&named), None);
        }
    }

    #[test]
    fn a_step_taken_is_never_taken_again(path in "[a-z;/().=]{0,20}(index.html)?", query in "(\\?[a-zA-Z0-9&=_]{0,60})?") {
        let url = canonicalize(None, &format!("http://a.example/{path}{query}")).unwrap();
        for step in SpellingStep::ALL {
            let mut url = url.clone();
            // Remove several ids one by one, and check that each removal shortens the URL.
            let mut length = url.as_str().len() + 1;
            while let Some(spelling) = step.take(&url) {
                prop_assert!(spelling.url != url && spelling.url.origin() == url.origin());
                prop_assert!(step == SpellingStep::SessionId || length > url.as_str().len());
                length = if step == SpellingStep::SessionId { length } else { 0 };
                url = spelling.url;
            }
        }
    }
}
