//! Tests of the limits: each limit is reported by its name, and steps are counted.
#![cfg(feature = "tree")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crawl_fields::{CompiledRules, ExtractedFields, PageToMatch, RuleConfig};

fn extract(field: &str, html: &str) -> ExtractedFields {
    let rule = format!("name = \"r\"\nfields = {{ a = {field} }}");
    let rule: RuleConfig = toml::from_str(&rule).unwrap();
    let facts = PageToMatch {
        url: "http://a.example/",
        ..PageToMatch::default()
    };
    let rules = CompiledRules::compile(&[rule]).unwrap();
    rules.extract(html, &facts).pop().unwrap()
}

fn count(extract: &ExtractedFields) -> usize {
    extract.fields["a"].as_array().unwrap().len()
}

#[test]
fn nesting_of_100_000_ends_the_tree() {
    let html = format!("<h1>a</h1>{}<h2>deep</h2>", "<div>".repeat(100_000));
    let extracted = extract("\"h1\"", &html);
    assert_eq!(
        (&extracted.fields["a"], extracted.cut),
        (&"a".into(), Some("depth"))
    );
    assert_eq!(extract("\"h2\"", &html).missing, ["a"]);
    // In each block, the parser reopens all formatting elements (`b`, `i`, `u`).
    let html = "<b a><i><u>".repeat(30_000) + &"<p>".repeat(100_000);
    assert_eq!(extract("\"p\"", &html).cut, Some("depth"));
}

#[test]
fn a_million_matches_end_at_the_limits() {
    let html = "<p>x".repeat(1_000_000);
    let extracted = extract("{ select = \"p\", all = true }", &html);
    assert_eq!((count(&extracted), extracted.cut), (10_000, Some("nodes")));
    let html = "<p>x".repeat(20_000);
    let extracted = extract("{ select = \"p\", all = true }", &html);
    assert_eq!((count(&extracted), extracted.cut), (10_000, Some("values")));
}

#[test]
fn a_page_of_50_mb_is_parsed_to_a_limit() {
    let html = "lorem ipsum ".repeat(50_000_000 / 12) + "<h1>end</h1>";
    let extracted = extract("\"h1\"", &html);
    assert_eq!(
        (extracted.missing, extracted.cut),
        (vec!["a".to_owned()], Some("bytes"))
    );
    let extracted = extract("\"body\"", &html);
    assert_eq!(extracted.fields["a"].as_str().unwrap().len(), 2 << 20);
}

#[test]
fn selectors_that_search_all_siblings_run_out_of_steps() {
    let html = "<p>".repeat(100_000);
    for selector in [
        "h2 ~ p",
        "p:nth-last-of-type(1) ~ p",
        "p:not(i ~ p ~ b) ~ h1 ~ p",
    ] {
        let extracted = extract(&format!("{{ select = \"{selector}\", all = true }}"), &html);
        assert_eq!(
            (count(&extracted), extracted.cut),
            (0, Some("steps")),
            "{selector}"
        );
    }
}

#[test]
fn long_values_end_at_the_limit_of_a_rule() {
    let html = format!("<div>{}</div>", "é ".repeat(2_000_000));
    for field in ["\"div\"", "{ select = \"div\", content = \"html\" }"] {
        let extracted = extract(field, &html);
        assert_eq!(extracted.cut, Some("size"), "{field}");
        assert!(extracted.fields["a"].as_str().unwrap().len() <= 2 << 20);
    }
    // With nested elements, the same text belongs to each of them, so the text counts several
    // times.
    let html = format!("{}{}", "<div>".repeat(400), "word ".repeat(100_000));
    let extracted = extract("{ select = \"div\", all = true }", &html);
    assert_eq!(extracted.cut, Some("size"));
}

#[test]
fn large_and_deep_json_ld_is_ignored() {
    let field = "{ json-ld = \"Product.name\" }";
    let page = |data: &str| {
        let small = r#"{"@type": "Product", "name": "Tea"}"#;
        let begin = "<script type=application/ld+json>";
        format!("{begin}{data}</script>{begin}{small}</script>")
    };
    let many = format!("[{}0]", "{\"a\":0},".repeat(10_000_000 / 8));
    let extracted = extract(field, &page(&many));
    assert_eq!(
        (&extracted.fields["a"], extracted.cut),
        (&"Tea".into(), Some("size"))
    );
    for deep in ["[".repeat(100_000), "{\"a\":".repeat(100_000)] {
        let extracted = extract(field, &page(&deep));
        assert_eq!(
            (&extracted.fields["a"], extracted.cut),
            (&"Tea".into(), None)
        );
    }
}

#[test]
fn broken_markup_is_read_as_browsers_read_it() {
    let html = "<p class=a class=b>one<div>two</p><table><b>three</b><tr><td>four</table><!-- <h1>no</h1> -->\
        <svg><title>five</title><h1>six\0</svg><ul><li>seven<li id='x>eight</li>' >nine</x></b><h2 ";
    for (selector, expected) in [
        ("p.a", "one"),
        ("div > b", "three"),
        ("tbody > tr > td", "four"),
        ("svg > title", "five"),
        ("h1", "six seven nine"),
        ("li[id]", "nine"),
    ] {
        let extracted = extract(&format!("\"{selector}\""), html);
        assert_eq!(extracted.fields["a"], expected, "{selector}");
    }
    assert_eq!(extract("\".b\"", html).missing, ["a"]);
    assert_eq!(extract("\"h2\"", html).missing, ["a"]);
}

#[test]
fn rules_that_would_cost_too_much_are_refused() {
    let refusal = |field: &str| {
        let rule = format!("name = \"r\"\nfields = {{ a = {field} }}");
        let rule: RuleConfig = toml::from_str(&rule).unwrap();
        let mut errors = CompiledRules::compile(&[rule]).unwrap_err();
        errors.pop().unwrap().message
    };
    let regex = refusal("{ select = \"p\", regex = '(?:a{100}){100}{100}' }");
    assert!(regex.contains("4194304"), "{regex}");
    let selector = format!("\"{}\"", ":not(".repeat(100_000));
    assert!(refusal(&selector).ends_with("brackets nested more than 32 deep"));
    // Takes linear time. A regex engine that backtracks would take years.
    let html = format!("<p>{}", "a".repeat(1 << 20));
    let extracted = extract("{ select = \"p\", regex = '(a*)*b' }", &html);
    assert_eq!(extracted.missing, ["a"]);
}

proptest::proptest! {
    #[test]
    fn any_page_and_selector_give_a_result(html in "[<>/a-d =\"'&;!\\-\\[\\]]{0,200}", selector in ".{0,30}") {
        let field = crawl_fields::FieldConfig::Select(selector);
        let fields = crawl_fields::FieldConfigList(vec![("a".to_owned(), field)]);
        let config = RuleConfig { name: "r".to_owned(), fields, ..RuleConfig::default() };
        if let Ok(rules) = CompiledRules::compile(&[config]) {
            let facts = PageToMatch { url: "http://a.example/", ..PageToMatch::default() };
            proptest::prop_assert_eq!(rules.extract(&html, &facts).len(), 1);
        }
    }
}
