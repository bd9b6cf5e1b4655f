//! Rules applied to pages.
#![cfg(feature = "tree")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crawl_fields::{CompiledRules, ExtractedFields, PageToMatch, RuleConfig};
use expect_test::{Expect, expect};

const URL: &str = "https://shop.example/item/7?q=1";

fn rule(text: &str) -> RuleConfig {
    toml::from_str(&format!("name = \"r\"\n{text}")).unwrap()
}

fn extract(rule_text: &str, html: &str) -> ExtractedFields {
    let rules = CompiledRules::compile(&[rule(rule_text)]).unwrap();
    let facts = PageToMatch {
        url: URL,
        ..PageToMatch::default()
    };
    rules.extract(html, &facts).pop().unwrap()
}

fn shown(extract: &ExtractedFields) -> String {
    let mut lines: Vec<_> = extract
        .fields
        .iter()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    if !extract.missing.is_empty() {
        lines.push(format!("missing: {}", extract.missing.join(", ")));
    }
    lines.extend(
        extract
            .failed
            .iter()
            .map(|(name, why)| format!("failed: {name}: {why}")),
    );
    lines.extend(extract.cut.map(|limit| format!("cut: {limit}")));
    lines.join("\n")
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "an `expect!` is written in the call"
)]
fn check(rule: &str, html: &str, expected: Expect) {
    expected.assert_eq(&shown(&extract(rule, html)));
}

#[test]
fn the_form_of_the_issue_gives_its_row() {
    let html = "<!doctype html><h1> Thing\n 7 </h1><p class=price>1.207,50 €</p>\
        <ul><li>red<li>blue</ul><a class=more href='../list?p=2'>more</a>\
        <time datetime=2026-03-08>8. März</time>";
    check(
        r#"
        path = "/item/"
        [fields]
        title = "h1"
        price = { select = ".price", type = "number", locale = "de" }
        next = { select = "a.more", attr = "href", type = "url" }
        colours = { select = "li", all = true }
        day = { select = "time", attr = "datetime", type = "date" }
        "#,
        html,
        expect![[r#"
            colours = ["red","blue"]
            day = "2026-03-08"
            next = "https://shop.example/list?p=2"
            price = 1207.5
            title = "Thing 7""#]],
    );
}

#[test]
fn a_field_takes_text_own_text_markup_or_an_attribute() {
    check(
        r#"
        [fields]
        text = "div"
        own = { select = "div", content = "own-text" }
        html = { select = "b", content = "html" }
        id = { select = "div", attr = "ID" }
        script = "script"
        "#,
        "<div id=' a  b '>one<p>two</p>th<b x=1>r&amp;ee</b> <style>no</style><br>four</div>\
         <script>let a  = 1;</script>",
        expect![[r#"
            html = "<b x=\"1\">r&amp;ee</b>"
            id = "a b"
            own = "one th four"
            script = "let a = 1;"
            text = "one two thr&ee four""#]],
    );
}

#[test]
fn groups_give_one_object_for_each_element() {
    check(
        r#"
        [fields.products]
        select = ".product"
        all = true
        fields = { id = { attr = "data-id" }, name = "h2", price = { select = "b", type = "number" } }
        [fields.shop]
        select = "header"
        fields = { name = "b" }
        "#,
        "<header><b>Shop</b></header><div class=product data-id=1><h2>A</h2><b>5</b></div>\
         <div class=product data-id=2><h2>B</h2><b>ask</b></div><div class=product></div>",
        expect![[r#"
            products = [{"id":"1","name":"A","price":5},{"id":"2","name":"B","price":null},{"id":null,"name":null,"price":null}]
            shop = {"name":"Shop"}
            missing: products.id, products.name
            failed: products.price: not a number: "ask""#]],
    );
}

#[test]
fn structured_data_is_read_by_path() {
    check(
        r#"
        [fields]
        headline = { json-ld = "NewsArticle.headline" }
        authors = { json-ld = "NewsArticle.author.name", all = true }
        price = { json-ld = "Offer.price", type = "number" }
        name = { microdata = "Product.name" }
        rating = { microdata = "Product.aggregateRating.ratingValue", type = "number" }
        image = { microdata = "Product.image" }
        title = { open-graph = "og:title" }
        "#,
        r#"<meta property="og:title" content=" A  title">
        <script type="application/ld+json">{"@graph": [{"@type": ["Thing", "http://schema.org/NewsArticle"],
          "headline": "News", "author": [{"name": "Ada"}, {"name": "Bob"}]}]}</script>
        <script type="application/ld+json">{ broken</script>
        <script type="application/LD+json">{"@type": "Product", "offers": {"@type": "Offer", "price": 12.5}}</script>
        <div itemscope itemtype="https://schema.org/Product"><i itemprop=name>Kettle</i><img itemprop=image src=k.png>
        <p itemprop=aggregateRating itemscope itemtype="https://schema.org/AggregateRating"><b itemprop=name>not it</b>
        <meta itemprop=ratingValue content=4.5></p></div>"#,
        expect![[r#"
            authors = ["Ada","Bob"]
            headline = "News"
            image = "https://shop.example/item/k.png"
            name = "Kettle"
            price = 12.5
            rating = 4.5
            title = "A title""#]],
    );
}

#[test]
fn a_json_number_has_no_locale() {
    check(
        r#"
        [fields]
        prices = { json-ld = "Offer.price", type = "number", locale = "de", all = true }
        text = { json-ld = "Offer.price", all = true }
        "#,
        r#"<script type="application/ld+json">[{"@type": "Offer", "price": 1.234},
          {"@type": "Offer", "price": 39.5}, {"@type": "Offer", "price": 25e20},
          {"@type": "Offer", "price": "1.234,50"}]</script>"#,
        expect![[r#"
            prices = [1.234,39.5,2.5e+21,1234.5]
            text = ["1.234","39.5","2.5e+21","1.234,50"]"#]],
    );
}

#[test]
fn a_regex_takes_its_first_group_or_its_match() {
    check(
        r#"
        [fields]
        isbn = { select = "p", regex = 'ISBN ([0-9-]+)' }
        words = { select = "p", regex = '\w+', all = true }
        none = { select = "p", regex = 'x{9}' }
        pages = { select = "p", regex = '(\d+) pages', type = "number" }
        "#,
        "<p>ISBN 3-16-1, 320 pages</p><p>two</p>",
        expect![[r#"
            isbn = "3-16-1"
            none = null
            pages = 320
            words = ["ISBN","two"]
            missing: none"#]],
    );
}

#[test]
fn missing_required_and_failed_fields_are_distinguished() {
    check(
        r#"
        [fields]
        empty = "i"
        absent = "nav"
        list = { select = "nav", all = true }
        needed = { select = "nav", required = true }
        price = { select = "b", type = "number", locale = "de" }
        link = { select = "a", attr = "href", type = "url" }
        stock = { select = ".stock", type = "bool" }
        sold = { select = ".sold", type = "bool" }
        flag = { select = "u", type = "bool" }
        "#,
        "<i> </i><b>1.5</b><a href='http://['>x</a><span class=stock></span><u>False</u>",
        expect![[r#"
            absent = null
            empty = null
            flag = false
            link = null
            list = []
            needed = null
            price = null
            sold = false
            stock = true
            missing: absent, empty, list
            failed: link: not a URL: "http://["
            failed: needed: required, but nothing matches
            failed: price: not a number in locale de: "1.5""#]],
    );
}

#[test]
fn urls_are_resolved_against_the_base() {
    check(
        "fields = { a = { select = \"a\", attr = \"href\", type = \"url\", all = true } }",
        "<base href='/shop/'><a href='x#y'>1</a><a href='javascript:f()'>2</a>",
        expect![[r#"
            a = ["https://shop.example/shop/x#y",null]
            failed: a: not a URL: "javascript:f()""#]],
    );
}

#[test]
fn broken_markup_is_repaired_as_browsers_repair_it() {
    check(
        "fields = { rows = { select = \"tbody > tr > td\", all = true }, p = { select = \"p\", all = true } }",
        "<p>a<p>b<table><tr><td>1<td>2</table></div></p>&nosuch;<h1",
        expect![[r#"
            p = ["a","b 1 2"]
            rows = ["1","2"]"#]],
    );
}

#[test]
fn a_rule_reads_only_the_pages_that_meet_its_conditions() {
    let facts = PageToMatch {
        url: URL,
        content_type: Some("text/HTML; charset=utf-8"),
        language: None,
        label: Some("shops"),
    };
    let check = |conditions: &str, is_read: bool| {
        let rule = rule(&format!("{conditions}\nfields = {{ a = \"p\" }}"));
        let rules = CompiledRules::compile(&[rule]).unwrap();
        let extracts = rules.extract("<html lang=de-AT><p>a", &facts);
        assert_eq!(extracts.len(), usize::from(is_read), "{conditions}");
    };
    check("", true);
    check("host = \"Example\"", true);
    check("host = \"shop.example\"\npath = \"/item/\"", true);
    check("host = \"op.example\"", false);
    check("path = \"/items/\"", false);
    check("match = '/item/\\d+\\?'", true);
    check("match = '^/item/'", false);
    check("label = \"shops\"", true);
    check("label = \"news\"", false);
    check("content-type = \"text/html\"", true);
    check("content-type = \"application/xhtml+xml\"", false);
    check("language = \"de\"", true);
    check("language = \"d\"", false);
    check("language = \"en\"", false);
}

#[test]
fn mistakes_in_rules_have_their_place() {
    let rule = rule(
        r#"
        path = "item"
        match = "["
        [fields]
        a = "h1..x"
        b = { select = "p::text" }
        c = { type = "number" }
        d = { select = "p", json-ld = "A.b" }
        e = { select = "p", locale = "de" }
        f = { select = "p", type = "number", locale = "xx" }
        g = { select = "p", regex = "(" }
        h = { select = "p", attr = "x", content = "html" }
        i = { json-ld = "A" }
        j = { select = "p", type = "url", fields = { x = "a:nope" } }
        "k.l" = "p"
        "#,
    );
    let errors = CompiledRules::compile(&[rule.clone(), rule]).unwrap_err();
    let lines = errors
        .iter()
        .filter(|error| error.rule == 0)
        .map(|error| match error.offset {
            Some(at) => format!("{error} (at {at})"),
            None => error.to_string(),
        });
    expect![[r#"
        path: `path` is `item`, but a path begins with `/`
        match: bad regular expression `[`: unclosed character class
        fields.a: bad selector `h1..x`: this is not a CSS selector (at 4)
        fields.b.select: bad selector `p::text`: this pseudo-class or pseudo-element is not supported (at 6)
        fields.c: the field has no selector or other source
        fields.d: the field has more than one source
        fields.e.locale: `locale` of the field `e` has no effect
        fields.f.locale: unknown locale `xx`: known are bg, ca, cs, da, de, de-at, de-ch, de-li, el, en, es, es-mx, es-pr, es-us, et, fi, fr, he, hr, hu, id, it, it-ch, ja, ko, lt, lv, nb, nl, nn, no, pl, pt, ro, ru, sk, sl, sr, sv, th, tr, uk, vi, zh
        fields.g.regex: bad regular expression `(`: unclosed group
        fields.h.content: the field `h` has both `attr` and `content`
        fields.i.json-ld: `json-ld` is `A`, but needs a type and a property
        fields.j.type: the group `j` can't have `type`
        fields.j.fields.x: bad selector `a:nope`: this pseudo-class or pseudo-element is not supported (at 5)
        fields.k.l: unusable name of a field: `k.l`"#]].assert_eq(&lines.collect::<Vec<_>>().join("\n"));
    assert!(
        errors
            .iter()
            .any(|error| error.message == "there are two rules named `r`")
    );
}

#[test]
fn an_unknown_key_is_named() {
    let read = |text: &str| toml::from_str::<RuleConfig>(text).unwrap_err().to_string();
    let message = read("name = \"r\"\n[fields]\na = { select = \"p\", typ = \"number\" }\n");
    assert!(message.contains("unknown field `typ`"), "{message}");
    assert!(message.contains("line 3"), "{message}");
}

#[test]
fn a_selector_that_matches_nothing_is_explained() {
    let rules = CompiledRules::compile(&[rule(
        r##"
        [fields]
        price = "div.list > .item .price.now"
        name = ".none"
        group = { select = ".item", fields = { x = "b > i", cost = "#Price7 b" } }
        data = { json-ld = "Product.name" }
        "##,
    )])
    .unwrap();
    let html = "<div class='list md:flex'><p class=item><b class='price no' id=price-7>5</b></p></div>\
        <p class='none-left'>";
    let fields = ["price", "name", "group.x", "group.cost", "data"];
    let extracted = rules.nearest(html, "r", &fields);
    let texts = extracted.iter().map(|nearest| {
        let Some(nearest) = nearest else {
            return "-".to_owned();
        };
        let parts = [&nearest.beginning, &nearest.lacking, &nearest.similar];
        parts.map(|part| part.as_deref().unwrap_or("-")).join(" | ")
    });
    expect![[r#"
        div.list > .item .price | .now | .no
        - | .none | .none-left
        b | i | -
        - | #Price7 | #price-7
        -"#]]
    .assert_eq(&texts.collect::<Vec<_>>().join("\n"));
}

#[test]
fn xpath_is_refused_with_the_same_in_css() {
    let config = rule("fields = { a = { xpath = \"//ul/li[2]\" } }");
    let errors = CompiledRules::compile(&[config]).unwrap_err();
    let problems: Vec<_> = errors
        .iter()
        .map(|error| (error.to_string(), error.hint))
        .collect();
    let [(message, hint)] = &problems[..] else {
        panic!("{problems:?}");
    };
    assert_eq!(
        message,
        "fields.a.xpath: XPath is not supported: `//ul/li[2]`"
    );
    assert!(hint.contains("ul > li:nth-of-type(2)"), "{hint}");
}

#[test]
fn a_written_rule_has_its_fields_in_the_same_order() {
    let text = "name = \"r\"\n[fields]\nz = { select = \"a\", all = true }\ny = \"b\"\n\
                x = { select = \"c\", fields = { n = { select = \"d\", attr = \"e\" }, m = \"f\" } }\n\
                w = \"g\"\n";
    let mut rule: RuleConfig = toml::from_str(text).unwrap();
    // Sort the fields, because the TOML parser loses their order. In the program, the reader of
    // settings files restores the order.
    rule.fields.0.sort_by(|one, other| other.0.cmp(&one.0));
    let written = toml::to_string(&rule).unwrap();
    let at = |line: &str| written.find(line).unwrap_or_else(|| panic!("{written}"));
    let places = ["[fields.z]", "[fields.y]", "[fields.x]", "[fields.w]"].map(at);
    assert!(places.is_sorted(), "{written}");
    let mut read: RuleConfig = toml::from_str(&written).unwrap();
    read.fields.0.sort_by(|one, other| other.0.cmp(&one.0));
    assert_eq!(read, rule);
}
