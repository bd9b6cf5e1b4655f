//! Tests of blocks, headings and sections.

use std::fmt::Write as _;

use crawl_extractor::BlockRole;
use expect_test::{Expect, expect};

use crate::read;

/// Compares the blocks of a page with `expected`. Each line has the role of a block (`*` main text,
/// `+` beside the main text, `-` navigation), its kind, its `#id` and its text.
fn check(html: &str, expected: Expect) {
    let content = read(html);
    let mut shown = String::new();
    for block in &content.blocks {
        let mark = match block.place {
            BlockRole::Main => '*',
            BlockRole::Beside => '+',
            _ => '-',
        };
        let _ = write!(shown, "{mark} {}", block.kind);
        if let Some(level) = block.kind.level() {
            let _ = write!(shown, "{level}");
        }
        if let Some(id) = &block.id {
            let _ = write!(shown, " #{id}");
        }
        let _ = writeln!(shown, " {:?}", content.text_of(block));
    }
    expected.assert_eq(&shown);
}

#[test]
fn kinds_of_blocks() {
    check(
        "<main><h1>One</h1><p>Two <b>and</b> more<ul><li>Three<li><p>Four</ul>\
         <dl><dt id=t>Five<dd>Six</dl><table><caption>Seven</caption><tr><th>Eight<td>Nine</table>\
         <blockquote>Ten</blockquote><figure><figcaption>Eleven</figcaption></figure>\
         <pre>\nlet  x;\n  y\n</pre>Twelve</main>",
        expect![[r#"
            * heading1 "One"
            * paragraph "Two and more"
            * list_item "Three"
            * list_item "Four"
            * term #t "Five"
            * definition "Six"
            * caption "Seven"
            * cell "Eight"
            * cell "Nine"
            * quote "Ten"
            * caption "Eleven"
            * code "let  x;\n  y"
            * paragraph "Twelve"
        "#]],
    );
}

#[test]
fn ids_of_headings() {
    check(
        "<main><h1 id=own>Own</h1>a\
         <h2><a name=within></a>Within</h2>b\
         <a id=before></a><h2>Before</h2>c\
         <section id=opened><h2>Opened</h2>d</section>\
         <div class=section id=old><h2>Old way</h2>e</div>\
         <div id=grid><div><h2>Grid</h2></div>f</div>\
         <h2><span id=span>Span</span></h2>g<p id=far>h<h2>Not far</h2>i</main>",
        expect![[r##"
            * heading1 #own "Own"
            * paragraph "a"
            * heading2 #within "Within"
            * paragraph "b"
            * heading2 #before "Before"
            * paragraph "c"
            * heading2 #opened "Opened"
            * paragraph "d"
            * heading2 #old "Old way"
            * paragraph "e"
            * heading2 #grid "Grid"
            * paragraph "f"
            * heading2 #span "Span"
            * paragraph "g"
            * paragraph #far "h"
            * heading2 "Not far"
            * paragraph "i"
        "##]],
    );
}

#[test]
fn headings_by_role_and_without_an_end_tag() {
    check(
        "<main><div role=heading aria-level=3>Role</div><p>a<h2>Open<p>b<h3><div>Block</div></h3><p>c</main>",
        expect![[r#"
            * heading3 "Role"
            * paragraph "a"
            * heading2 "Open"
            * paragraph "b"
            * heading3 "Block"
            * paragraph "c"
        "#]],
    );
}

#[test]
fn white_space_is_collapsed_and_invisible_characters_are_dropped() {
    check(
        "<p> a\n\t b&nbsp;&nbsp;c\u{3000}d </p><p>Dampf&shy;schiff zero&#8203;width \u{feff}x\u{2060}y a\0b</p>\
         <p>می\u{200c}خواهم</p><p>e\u{301} \u{fb01}</p>",
        expect![[r#"
            * paragraph "a b c d"
            * paragraph "Dampfschiff zerowidth xy ab"
            * paragraph "می\u{200c}خواهم"
            * paragraph "e\u{301} ﬁ"
        "#]],
    );
}

#[test]
fn a_line_break_separates_words_and_two_separate_paragraphs() {
    check(
        "<p>a<br>b<br><br>c<br> <br>d<p>e<pre>f<br>g</pre>",
        expect![[r#"
            * paragraph "a b"
            * paragraph "c"
            * paragraph "d"
            * paragraph "e"
            * code "f\ng"
        "#]],
    );
}

#[test]
fn hidden_text_is_dropped() {
    check(
        "<p>a<span hidden>b<span>c</span>d</span>e<p hidden>f<p>g<div style='color:red; DISPLAY : none'>h<p>i</div>\
         <div style='display:block'>j</div><ul><li hidden>k<li>l</ul><template>m</template>\
         <svg><title>n</title><text>o</text></svg><math><mi>p</mi><annotation>q</annotation></math>\
         <textarea>r</textarea><script>s</script><noscript>t</noscript><iframe>u</iframe>",
        expect![[r#"
            * paragraph "ae"
            * paragraph "g"
            * paragraph "j"
            * list_item "l"
            * paragraph "opt"
        "#]],
    );
}

#[test]
fn cells_and_items_end_the_previous_ones() {
    check(
        "<main><table><tr><td>a<td>b<table><tr><td>c</table>d<tr><td>e</table>f</div></td></main>",
        expect![[r#"
            * cell "a"
            * cell "b"
            * cell "c"
            * cell "d"
            * cell "e"
            * paragraph "f"
        "#]],
    );
}

#[test]
fn sections_have_their_heading_and_its_id() {
    let content = read(
        "<nav><a href=/>Home</a></nav><main><p>Before<h2 id=a>A</h2><p>one<p>two<h3 id=b>B</h3><pre>x</pre></main>",
    );
    let mut shown = String::new();
    for section in content.sections() {
        let texts: Vec<&str> = section
            .blocks
            .iter()
            .map(|block| content.text_of(block))
            .collect();
        let _ = writeln!(
            shown,
            "{} {:?} {:?} {texts:?}",
            section.level, section.heading, section.id
        );
    }
    expect![[r#"
        0 None None ["Before"]
        2 Some("A") Some("a") ["one", "two"]
        3 Some("B") Some("b") ["x"]
    "#]]
    .assert_eq(&shown);
    assert_eq!(content.visible_text(), "Home\nBefore\nA\none\ntwo\nB\nx");
    assert_eq!(content.main_text(), "Before\nA\none\ntwo\nB\nx");
}

#[test]
fn one_pass_gives_the_same_results() {
    let html = "<title>T</title><a href=x>l</a><main><p>Text</main>";
    let context = crawl_extractor::PageContext::default();
    let (limits, content_limits) = Default::default();
    let (page, content) =
        crawl_extractor::read_page(html.as_bytes(), &context, &limits, &content_limits);
    assert_eq!(
        content,
        crawl_extractor::read_content(html.as_bytes(), &context, &content_limits)
    );
    assert_eq!(
        page.links,
        crawl_extractor::read_html(html.as_bytes(), None, &limits).links
    );
    assert_eq!(page.links.len(), 1);
}

#[test]
fn sections_with_ids_derived_from_headings_stay() {
    let text = "Some of the main text of the page, which goes on for a good while. ".repeat(8);
    let main = |html: &str| {
        let content = read(&format!("<title>T</title>{html}"));
        let blocks = content.blocks.iter().filter(|block| block.is_main());
        let blocks: Vec<_> = blocks
            .map(|block| content.text_of(block).to_owned())
            .collect();
        blocks.join("|")
    };
    let check = |html: &str, is_in: bool| {
        let actual = main(&html.replace("TEXT", &text));
        assert_eq!(
            actual.contains("This is said of it"),
            is_in,
            "{html}: {actual}"
        );
    };
    let remark = "<p>This is said of it, in a few words.</p>";
    for (id, heading) in [
        ("sharing-state", "Sharing state"),
        ("comments", "Comments"),
        ("cookies", "3.2 Cookies\u{b6}"),
        ("menu-1", "Menu"),
        ("skip-links", "Skip links"),
        ("user_content.popup", "User content: popup"),
    ] {
        for around in ["main", "article", "div class=content"] {
            let end = around.split(' ').next().unwrap();
            let in_text = |tag: &str| {
                format!(
                    "<{around}><h1>Title</h1><p>TEXT</p><{tag} id='{id}'><h2>{heading}</h2>{remark}\
                     </{tag}></{end}>"
                )
            };
            check(&in_text("section"), true);
            check(&in_text("div"), true);
        }
    }
    // In the main text, the id of a `section` never marks surroundings. The id of another element
    // does, unless it is derived from a heading.
    check(
        &format!("<main><p>TEXT</p><section id=how-to-skip>{remark}</section></main>"),
        true,
    );
    check(
        &format!("<main><p>TEXT</p><div id=share>{remark}</div></main>"),
        false,
    );
    // If no element is marked as main text, an id that is derived from a heading is ignored only if
    // the heading has several words.
    check(
        &format!("<p>TEXT</p><div id=sharing-state><h2>Sharing state</h2>{remark}</div>"),
        true,
    );
    check(
        &format!("<p>TEXT</p><div id=related><h2>Related</h2>{remark}</div>"),
        false,
    );
    // The ids of a cookie notice and of readers' comments are never ignored, even if they could be
    // derived from a heading.
    check(
        &format!("<p>TEXT</p><div id=cookie-notice><h2>Cookie notice</h2>{remark}</div>"),
        false,
    );
    for class in ["comments", "comments-area"] {
        let comments = format!("<section id=comments class={class}><h2>2 Comments</h2>{remark}");
        check(
            &format!("<main><p>TEXT</p>{comments}</section></main>"),
            false,
        );
    }
}

#[test]
fn a_large_table_keeps_its_heading_and_introduction() {
    let row = "<tr><td>A name of some thing<td>What this thing is there for, said in one line.";
    let table = format!("<table>{}</table>", row.repeat(40));
    let intro = "<p>The following table lists all things that are known here.</p>";
    let note = "<p>Things marked so are gone.</p>";
    for page in [
        format!("<div><h2>All things</h2>{intro}{table}{note}</div>"),
        format!("<h1>All things</h1>{intro}<div class=scroll>{table}</div>"),
        format!("<div><h1>All things</h1>{intro}<div class=content>{table}{note}</div></div>"),
    ] {
        let text = read(&format!("<title>T</title><body>{page}")).main_text();
        assert!(
            text.starts_with("All things\nThe following table"),
            "{page}"
        );
        assert!(text.contains("What this thing is there for"), "{page}");
    }
}

#[test]
fn text_outside_navigation_and_main_text_is_kept() {
    let text = "Some of the main text of the page, which goes on for a good while. ".repeat(8);
    check(
        &format!(
            "<nav><a href=/>Home</a> You are here</nav>\
             <div role=navigation><p>Go on</div>\
             <main><h1>Title</h1><p>{text}\
             <aside class=footnote><p>1. Said by a footnote</aside>\
             <div class=sidebar><p>Said in a box</div>\
             <div class=sidebar><a href=/b>Other</a></div><button>Press</button></main>\
             <div id=cookie-notice><p>We use cookies</div>\
             <footer><p>Company Street 1<p><a href=/legal>Legal</a></footer>"
        ),
        expect![[r#"
            - paragraph "Home You are here"
            - paragraph "Go on"
            * heading1 "Title"
            * paragraph "Some of the main text of the page, which goes on for a good while. Some of the main text of the page, which goes on for a good while. Some of the main text of the page, which goes on for a good while. Some of the main text of the page, which goes on for a good while. Some of the main text of the page, which goes on for a good while. Some of the main text of the page, which goes on for a good while. Some of the main text of the page, which goes on for a good while. Some of the main text of the page, which goes on for a good while."
            + paragraph "1. Said by a footnote"
            + paragraph "Said in a box"
            - paragraph "Other"
            - paragraph "Press"
            + paragraph "We use cookies"
            + paragraph "Company Street 1"
            - paragraph "Legal"
        "#]],
    );
}

#[test]
fn only_marked_text_is_withheld_from_snippets() {
    let content = read(
        "<main><p>Open <span data-nosnippet>secret</span> text.<h2></h2><pre></pre>\
         <h2>Half <b>a</b> <span data-nosnippet>heading</span></h2>\
         <p><span data-nosnippet> </span><p>More.<h3><span data-nosnippet> </span></h3></main>",
    );
    let blocks = content.blocks.iter();
    let texts: Vec<_> = blocks
        .map(|block| content.quotable_text_of(block))
        .collect();
    assert_eq!(texts, ["Open text.", "", "More."]);
}
