//! Tests of the scope: tables of URLs and their verdicts.

use crawl_weburl::{HostKey, HostPatternMap, canonicalize};
use expect_test::{Expect, expect};

use super::{Scope, ScopeMode, ScopeVerdict};
use crate::seed_settings::{SeedAreaKind, SeedSettings};

fn scope(mode: ScopeMode, include: &[&str], exclude: &[&str], depth: Option<u32>) -> Scope {
    let owned = |list: &[&str]| list.iter().map(|&p| p.to_owned()).collect::<Vec<_>>();
    let mut scope = Scope::new(mode, &owned(include), &owned(exclude), depth).unwrap();
    scope.add_seed(&canonicalize(None, "http://www.example.org/docs/start?x=/y").unwrap());
    scope
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "expectations are written in place"
)]
fn check(scope: &Scope, expect: Expect) {
    let mut actual = String::new();
    for url in [
        "http://www.example.org/docs/start?x=/y",
        "https://www.example.org/docs/a/b",
        "http://www.example.org:8080/docs/",
        "http://www.example.org/other",
        "http://example.org/docs/",
        "http://elsewhere.example/docs/",
    ] {
        let verdict = match scope.judge(&canonicalize(None, url).unwrap(), 3) {
            ScopeVerdict::In => "in".to_owned(),
            ScopeVerdict::Out { reason, rule } => format!("{reason:?}: {rule}"),
        };
        actual += &format!("{url} {verdict}\n");
    }
    expect.assert_eq(&actual);
}

#[test]
fn host() {
    check(
        &scope(ScopeMode::Host, &[], &[], None),
        expect![[r#"
            http://www.example.org/docs/start?x=/y in
            https://www.example.org/docs/a/b in
            http://www.example.org:8080/docs/ in
            http://www.example.org/other in
            http://example.org/docs/ Scope: host
            http://elsewhere.example/docs/ Scope: host
        "#]],
    );
}

#[test]
fn domain_with_exclude() {
    check(
        &scope(ScopeMode::Domain, &[], &["x=", r"/other$"], None),
        expect![[r#"
            http://www.example.org/docs/start?x=/y Scope: exclude x=
            https://www.example.org/docs/a/b in
            http://www.example.org:8080/docs/ in
            http://www.example.org/other Scope: exclude /other$
            http://example.org/docs/ in
            http://elsewhere.example/docs/ Scope: domain
        "#]],
    );
}

#[test]
fn prefix() {
    check(
        &scope(ScopeMode::Prefix, &[], &[], None),
        expect![[r#"
            http://www.example.org/docs/start?x=/y in
            https://www.example.org/docs/a/b in
            http://www.example.org:8080/docs/ in
            http://www.example.org/other Scope: prefix
            http://example.org/docs/ Scope: prefix
            http://elsewhere.example/docs/ Scope: prefix
        "#]],
    );
}

#[test]
fn a_seed_directly_below_the_root_is_the_prefix_of_urls_below_it() {
    let check = |seed: &str, inside: &[&str], outside: &[&str]| {
        let seed = canonicalize(None, &format!("http://a.example{seed}")).unwrap();
        let mut scope = Scope::new(ScopeMode::Prefix, &[], &[], None).unwrap();
        scope.add_seed(&seed);
        for (paths, expected) in [(inside, true), (outside, false)] {
            for path in paths {
                let url = canonicalize(None, &format!("http://a.example{path}")).unwrap();
                let is_in = matches!(scope.judge(&url, 1), ScopeVerdict::In);
                assert_eq!(is_in, expected, "{path}");
            }
        }
    };
    let below = ["/products", "/products/", "/products/1", "/products?page=2"];
    check(
        "/products",
        &below,
        &["/", "/about", "/productsale", "/products.html"],
    );
    check("/products/", &below, &["/", "/productsale"]);
    check("/", &["/", "/about"], &[]);
    check("/index.html", &["/", "/about"], &[]);
    check(
        "/news/start",
        &["/news/", "/news/other", "/news"],
        &["/", "/about"],
    );
}

#[test]
fn a_surt_prefix_widens_the_scope_of_the_seeds() {
    let mut scope = scope(ScopeMode::Prefix, &[], &["/b$"], None);
    for prefix in ["example,elsewhere,", "org,example)/docs/"] {
        scope.add_prefix(prefix.parse().unwrap());
    }
    check(
        &scope,
        expect![[r#"
            http://www.example.org/docs/start?x=/y in
            https://www.example.org/docs/a/b Scope: exclude /b$
            http://www.example.org:8080/docs/ in
            http://www.example.org/other Scope: prefix
            http://example.org/docs/ in
            http://elsewhere.example/docs/ in
        "#]],
    );
}

#[test]
fn new_exclusions_apply_to_seeds_added_before() {
    let mut scope = scope(ScopeMode::Domain, &["docs"], &["x="], None);
    let mut hosts = HostPatternMap::default();
    hosts.insert("www.example.org", ()).unwrap();
    let bad = scope.set_exclusions(&[], &["(".to_owned()], hosts.clone());
    assert!(bad.is_err());
    let docs = canonicalize(None, "https://www.example.org/docs/a/b").unwrap();
    assert_eq!(scope.judge(&docs, 1), ScopeVerdict::In, "nothing changed");
    scope
        .set_exclusions(&[], &["/docs/$".to_owned()], hosts)
        .unwrap();
    check(
        &scope,
        expect![[r#"
            http://www.example.org/docs/start?x=/y Scope: exclude-host www.example.org
            https://www.example.org/docs/a/b Scope: exclude-host www.example.org
            http://www.example.org:8080/docs/ Scope: exclude-host www.example.org
            http://www.example.org/other Scope: exclude-host www.example.org
            http://example.org/docs/ Scope: exclude /docs/$
            http://elsewhere.example/docs/ Scope: exclude /docs/$
        "#]],
    );
}

#[test]
fn a_listed_host_joins_like_that_of_a_seed_and_an_excluded_host_is_out() {
    let with = |mode, listed: &str, excluded: &[&str]| {
        let mut scope = scope(mode, &[], &[], None);
        scope.add_host(&HostKey::parse(listed).unwrap());
        let mut hosts = HostPatternMap::default();
        for name in excluded {
            hosts.insert(name, ()).unwrap();
        }
        scope.exclude_hosts(hosts);
        scope
    };
    check(
        &with(ScopeMode::Host, "elsewhere.example", &[]),
        expect![[r#"
            http://www.example.org/docs/start?x=/y in
            https://www.example.org/docs/a/b in
            http://www.example.org:8080/docs/ in
            http://www.example.org/other in
            http://example.org/docs/ Scope: host
            http://elsewhere.example/docs/ in
        "#]],
    );
    check(
        &with(
            ScopeMode::Domain,
            "www.elsewhere.example",
            &["www.example.org"],
        ),
        expect![[r#"
            http://www.example.org/docs/start?x=/y Scope: exclude-host www.example.org
            https://www.example.org/docs/a/b Scope: exclude-host www.example.org
            http://www.example.org:8080/docs/ Scope: exclude-host www.example.org
            http://www.example.org/other Scope: exclude-host www.example.org
            http://example.org/docs/ in
            http://elsewhere.example/docs/ in
        "#]],
    );
    check(
        &with(ScopeMode::Prefix, "elsewhere.example", &["example"]),
        expect![[r#"
            http://www.example.org/docs/start?x=/y in
            https://www.example.org/docs/a/b in
            http://www.example.org:8080/docs/ in
            http://www.example.org/other Scope: prefix
            http://example.org/docs/ Scope: prefix
            http://elsewhere.example/docs/ Scope: exclude-host example
        "#]],
    );
}

#[test]
fn hops_off_the_scope_respect_patterns_and_depth() {
    let mut scope = scope(ScopeMode::Host, &["/docs/|start"], &["/b$"], Some(3));
    scope.allow_hops_off(2);
    check(
        &scope,
        expect![[r#"
            http://www.example.org/docs/start?x=/y in
            https://www.example.org/docs/a/b Scope: exclude /b$
            http://www.example.org:8080/docs/ in
            http://www.example.org/other Scope: include
            http://example.org/docs/ Beyond: host
            http://elsewhere.example/docs/ Beyond: host
        "#]],
    );
    let url = canonicalize(None, "http://elsewhere.example/docs/").unwrap();
    let verdict = |depth, hops| match scope.judge_at(&url, depth, hops) {
        ScopeVerdict::In => "in".to_owned(),
        ScopeVerdict::Out { reason, rule } => format!("{reason:?}: {rule}"),
    };
    assert_eq!(verdict(3, 0), "Scope: host");
    assert_eq!([verdict(3, 1), verdict(3, 2)], ["in", "in"]);
    assert_eq!(verdict(3, 3), "Scope: host");
    assert_eq!(verdict(4, 1), "Depth: max-depth 3");
}

#[test]
fn any_with_include_and_depth() {
    check(
        &scope(ScopeMode::Any, &["/docs/$"], &[], Some(2)),
        expect![[r#"
            http://www.example.org/docs/start?x=/y in
            https://www.example.org/docs/a/b Scope: include
            http://www.example.org:8080/docs/ Depth: max-depth 2
            http://www.example.org/other Scope: include
            http://example.org/docs/ Depth: max-depth 2
            http://elsewhere.example/docs/ Depth: max-depth 2
        "#]],
    );
}

#[test]
fn a_seed_has_its_own_area_and_depth() {
    let mut scope = Scope::new(ScopeMode::Host, &[], &[], Some(1)).unwrap();
    let url = |text: &str| canonicalize(None, text).unwrap();
    let terms = |scope, max_depth| SeedSettings {
        scope,
        max_depth,
        label: None,
    };
    let mut add = |seed: &str, terms: &SeedSettings| {
        scope.add_seed_with(&url(seed), terms).unwrap();
    };
    let docs = terms(Some(SeedAreaKind::Prefix), Some(3));
    add("http://www.example.org/docs/start?x=/y", &docs);
    add("http://example.org/", &terms(None, Some(2)));
    check(
        &scope,
        expect![[r#"
            http://www.example.org/docs/start?x=/y in
            https://www.example.org/docs/a/b in
            http://www.example.org:8080/docs/ in
            http://www.example.org/other Scope: host
            http://example.org/docs/ Depth: depth 2 of seed http://example.org/
            http://elsewhere.example/docs/ Scope: host
        "#]],
    );
    scope.add_seed(&url("http://elsewhere.example/"));
    assert_eq!(
        [
            "http://www.example.org/docs/a",
            "http://example.org/a",
            "http://elsewhere.example/a"
        ]
        .map(|at| scope.max_depth(&url(at))),
        [Some(3), Some(2), Some(1)]
    );
    // The redirect target of a seed gets the settings of the seed's area.
    scope.add_target(
        &url("http://www.example.org/docs/start?x=/y"),
        &url("http://elsewhere.example/docs/new"),
    );
    scope.add_target(
        &url("http://plain.example/"),
        &url("http://other.example/x"),
    );
    assert_eq!(
        scope.max_depth(&url("http://elsewhere.example/docs/b")),
        Some(3)
    );
    assert_eq!(
        scope.judge(&url("http://other.example/y"), 1),
        ScopeVerdict::In
    );
}

#[test]
fn a_page_at_the_maximum_depth_is_in() {
    let scope = scope(ScopeMode::Any, &[], &[], Some(2));
    let url = canonicalize(None, "http://www.example.org/a").unwrap();
    assert_eq!(scope.judge(&url, 2), ScopeVerdict::In);
    assert_ne!(scope.judge(&url, 3), ScopeVerdict::In);
}

#[test]
fn a_mode_displays_its_name() {
    for (name, mode) in [
        ("host", ScopeMode::Host),
        ("domain", ScopeMode::Domain),
        ("prefix", ScopeMode::Prefix),
        ("any", ScopeMode::Any),
    ] {
        assert_eq!(mode.to_string(), name);
    }
}

#[test]
fn a_seeds_redirect_target_joins() {
    let mut scope = scope(ScopeMode::Host, &[], &[], None);
    let url = canonicalize(None, "https://example.org/docs/").unwrap();
    assert_ne!(scope.judge(&url, 0), ScopeVerdict::In);
    scope.add_seed(&url);
    assert_eq!(scope.judge(&url, 0), ScopeVerdict::In);
}

#[test]
fn on_loopback_the_port_counts() {
    let mut scope = scope(ScopeMode::Host, &[], &[], None);
    scope.add_seed(&canonicalize(None, "http://127.0.0.1:81/").unwrap());
    let judge = |url| scope.judge(&canonicalize(None, url).unwrap(), 0);
    assert_eq!(judge("http://127.0.0.1:81/a"), ScopeVerdict::In);
    assert_ne!(judge("http://127.0.0.1:82/a"), ScopeVerdict::In);
}

#[test]
fn a_bad_pattern_is_named() {
    let bad = Scope::new(ScopeMode::Any, &["(".to_owned()], &[], None).unwrap_err();
    assert_eq!(
        bad.to_string(),
        "`(` isn't a regular expression: unclosed group"
    );
}
