//! Tests of the Markdown of pages.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use regex::Regex;

use super::read_markdown;
use crate::content::{ContentLimits, PageContext};

fn markdown(html: &str) -> String {
    let mut link = |href: &str| (!href.starts_with("javascript:")).then(|| href.to_owned());
    let context = PageContext::default();
    read_markdown(
        html.as_bytes(),
        &context,
        &ContentLimits::default(),
        &mut link,
    )
    .1
}

#[track_caller]
fn check(html: &str, expected: Expect) {
    expected.assert_eq(&markdown(&format!("<main>{html}</main>")));
}

#[test]
fn words_keep_their_style() {
    check(
        "<p>Pour <em> slowly </em> on, <b>never <i>fast</i></b>. Use <code>x*y</code> and \
         <code>a`b</code>, <s>old</s><b></b>.",
        expect!["Pour *slowly* on, **never *fast***. Use `x*y` and ``a`b``, ~~old~~."],
    );
}

#[test]
fn text_that_snippets_must_not_contain_is_left_out() {
    check(
        "<h1>Lamps</h1><p>From <span data-nosnippet>4711 <b>euros</b></span> on.</p>\
         <div data-nosnippet><h2>Deal</h2><p>Secret <img src=a.png></p><pre>code</pre><ruby>a<rt>b</ruby></div>\
         <p>Public.</p>",
        expect![[r#"
            # Lamps

            From on.

            Public."#]],
    );
}

#[test]
fn emphasis_that_delimiters_cannot_mark_is_an_element() {
    check(
        "<p>これは<strong>「重要」</strong>です。「<b>重要</b>」<b>。</b><p>The <b>(optional)</b>s, (<b>see</b>) \
         <b>(c)</b>. <i>\"x\"</i>y, d<s>-e</s>, <b><code>f</code></b>s<p><i>a</i><b>b</b> \
         c<b><i>(d)</i> e</b> <b>f<strong>g</b>h</strong> <i>✓</i> ✓<i>✓</i> <s>~</s> ~<s>a</s>",
        expect![[r#"
            これは<strong>「重要」</strong>です。「**重要**」**。**

            The <strong>(optional)</strong>s, (**see**) **(c)**. <em>"x"</em>y, d<del>-e</del>, <strong>`f`</strong>s

            <em>a</em><strong>b</strong> c<strong><em>(d)</em> e</strong> <strong>fg</strong><strong>h</strong> *✓* ✓<em>✓</em> <del>\~</del> ~<del>a</del>"#]],
    );
    check(
        "<h2><b>Tea<br></b>pots</h2><dl><dt>a <b>b</b> c<dd>d<dt><b>e</b><dd>f</dl>",
        expect![[r#"
            ## <strong>Tea </strong>pots

            <strong>a **b** c</strong>

            d

            **e**

            f"#]],
    );
}

#[test]
fn special_characters_in_words_are_escaped() {
    check(
        "<p>1. a_b _c_ *d* [e] &lt;f> &amp;amp; \\ `g`<p>- h<p># i<p>1) j<p>k < l & m",
        expect![[r"
            1\. a_b \_c\_ \*d\* \[e\] \<f> \&amp; \\ \`g\`

            \- h

            \# i

            1\) j

            k < l & m"]],
    );
}

#[test]
fn links_and_images_have_targets() {
    check(
        "<h2>Tea <a href='#tea'>¶</a></h2><p>Of all that was ever written on tea, these are the best: <a href='a b'>one</a>, <a href='/c_(d)'>two</a>, \
         <a href='javascript:x'>three</a>, <img src=cup.png alt='A [cup]'>, <a href=e><img \
         src=f.png alt=g></a>.<p>Text<br>goes on<br>",
        expect![[r"
            ## Tea

            Of all that was ever written on tea, these are the best: [one](<a b>), [two](</c_(d)>), three, ![A \[cup\]](cup.png), [![g](f.png)](e).

            Text\
            goes on"]],
    );
}

#[test]
fn lists_nest_and_count() {
    check(
        "<ul><li>a<ul><li>b<li>c<p>more of c</ul><li>d</ul><p>between<ol start=9><li>e<pre>f\n  g\
         </pre><li>h</ol>",
        expect![[r"
            - a
              - b
              - c

                more of c
            - d

            between

            9. e

               ```
               f
                 g
               ```
            10. h"]],
    );
}

#[test]
fn quotes_and_definitions() {
    check(
        "<blockquote><p>a<p>b<ul><li>c</ul></blockquote><dl><dt>Tea<dd>A drink.<dt><code>x</code>\
         <dd>A letter.</dl>",
        expect![[r"
            > a
            >
            > b
            >
            > - c

            **Tea**

            A drink.

            **`x`**

            A letter."]],
    );
}

#[test]
fn code_is_verbatim() {
    check(
        "<pre class='language-rust'><code>fn main() {\n    a::&lt;T>();\n}\n</code></pre><div \
         class=highlight-python><pre>x = 1\n```\n</pre></div><p>after",
        expect![[r"
            ```rust
            fn main() {
                a::<T>();
            }
            ```

            ````python
            x = 1
            ```
            ````

            after"]],
    );
}

#[test]
fn a_table_has_rows() {
    check(
        "<table><thead><tr><th>Tea<th>Minutes</thead><tr><td>Green<td>2<tr><td>a|b<td><p>3<p>4\
         </table><p>after<table><tr><td>one<td>two</table>",
        expect![[r"
            | Tea | Minutes |
            | --- | --- |
            | Green | 2 |
            | a\|b | 3<br>4 |

            after

            |  |  |
            | --- | --- |
            | one | two |"]],
    );
}

#[test]
fn cells_that_span_rows_or_columns_keep_other_cells_in_place() {
    check(
        "<table><tr><th>Day<th>Hall<th>Film<tr><td rowspan=2>Monday<td>One<td>Alien<tr><td>Two\
         <td>Brazil<tr><td>Tuesday<td>One<td>Cube<tr><td colspan=2>Closed<td>None\
         <tbody><tr><td rowspan=0>Later<td rowspan=' +1x'>One<td rowspan=9>Dune<tr><td>Two\
         <tfoot><tr><td>a<td>b<td>c</table>",
        expect![[r#"
            | Day | Hall | Film |
            | --- | --- | --- |
            | Monday | One | Alien |
            |  | Two | Brazil |
            | Tuesday | One | Cube |
            | Closed |  | None |
            | Later | One | Dune |
            |  | Two |  |
            | a | b | c |"#]],
    );
}

#[test]
fn number_signs_at_the_end_of_a_heading_are_escaped() {
    check(
        "<h2>Programming in C #</h2><p>a<h3>Track <i>##</i> ##</h3><p>b<h4>C#</h4><p>c",
        expect![[r#"
            ## Programming in C \#

            a

            ### Track *##* \##

            b

            #### C#

            c"#]],
    );
}

#[test]
fn cells_beyond_the_last_column_are_joined_to_it() {
    let cells: String = (1..=66).map(|cell| format!("<td>c{cell}")).collect();
    let row = format!("<tr>{cells}");
    let markdown = markdown(&format!("<main><table>{row}{row}</table></main>"));
    assert!(
        markdown.contains("| c63 | c64<br>c65<br>c66 |\n"),
        "{markdown}"
    );
}

#[test]
fn a_layout_table_is_not_a_table() {
    check(
        "<table><tr><td><h2>a</h2><p>b<td><ul><li>c</ul></table>",
        expect![[r"
            ## a

            b

            - c"]],
    );
}

#[test]
fn surroundings_of_the_main_text_are_dropped() {
    let page = "<nav><ul><li><a href=/>Home</a><li><a href=/b>More</a></ul></nav><main><h1>Tea</h1>\
        <p>Water the leaves, wait for two minutes, and pour.</main><footer><p>2026</footer>";
    expect![[r"
        # Tea

        Water the leaves, wait for two minutes, and pour."]]
    .assert_eq(&markdown(page));
}

#[test]
fn deep_nesting_ends_at_sixteen() {
    let html = format!("{}deep", "<ul><li>".repeat(10_000));
    let text = markdown(&format!("<main>{html}</main>"));
    assert_eq!(text, format!("{}deep", "- ".repeat(16)));
}

proptest! {
    #[test]
    fn any_bytes_give_markdown_with_the_words_of_the_main_text(
        html in "(<(/?(b|i|a href=x|code|p|h2|ul|ol|li|table|tr|td|th|pre|blockquote|br|img src=y|\
                 main|div|dl|dt|dd|script|title))>| |[a-z]{1,4}|[*_`#|\\\\-]){0,60}",
    ) {
        let mut link = |_: &str| Some(String::new());
        let context = PageContext::default();
        let limits = ContentLimits::default();
        let (content, markdown) = read_markdown(html.as_bytes(), &context, &limits, &mut link);
        prop_assert_eq!(&content, &crate::read_content(html.as_bytes(), &context, &limits));
        let letters = |text: &str| text.chars().filter(char::is_ascii_lowercase).collect::<String>();
        let elements = Regex::new("</?(br|em|strong)>").unwrap();
        let markdown = elements.replace_all(&markdown, "");
        prop_assert_eq!(letters(&markdown), letters(&content.main_text()));
    }
}
