//! Tests of `<ruby>` annotations, and of words with invisible breaks, such as `<wbr>`.

use crawl_extractor::ReadingLimits;

use crate::{markdown, read};

fn text(html: &str) -> String {
    read(&format!("<main>{html}</main>"))
        .visible_text()
        .to_owned()
}

#[test]
fn html_4_5_10_base_text_makes_words_and_readings_follow() {
    for (html, expected) in [
        (
            "<p>私は<ruby>東<rt>とう</rt>京<rt>きょう</rt></ruby>に住む。",
            "私は東京に住む。 とうきょう",
        ),
        (
            "<p>表<ruby>表<rp>(</rp><rt>ひょう</rt><rp>)</rp>示<rp>(</rp><rt>じ</rt><rp>)</rp></ruby>",
            "表表示 ひょうじ",
        ),
        // The end tags of the ruby's parts are omitted here, as HTML allows.
        (
            "<p><ruby>茶<rp>(<rt>ちゃ<rp>)<rb>道<rt>どう</ruby>の",
            "茶道の ちゃどう",
        ),
        (
            "<p>あ<ruby>\n 短 <rt>たん</rt>\n 槍 <rt>そう</rt>\n</ruby>い",
            "あ短槍い たんそう",
        ),
        (
            "<p><ruby><rb>茶</rb> <rb>道</rb> <rtc><rt>さ</rt> <rt>どう</rt></rtc></ruby>",
            "茶道 さどう",
        ),
        ("<p><ruby>汉<rt>hàn</rt>字<rt>zì</rt></ruby>", "汉字 hàn zì"),
        (
            "<p>A <ruby>New <rt>nyū</rt>York<rt>yōku</rt></ruby> tea",
            "A New York tea nyū yōku",
        ),
        (
            "<p><ruby><ruby>茶<rt>ちゃ</rt></ruby><rt>tea</rt></ruby>の<p>次",
            "茶の ちゃ tea\n次",
        ),
        // A word that comes in pieces stays one word.
        (
            "<p><ruby>東京<rt>tō<!-- c -->kyō<b>to</b></rt></ruby>",
            "東京 tōkyōto",
        ),
        (
            "<p><ruby>東京<rt>tō<!-- c --> kyō<br>to</rt></ruby>",
            "東京 tō kyō to",
        ),
        ("<p><ruby>東 <!-- c -->a</ruby>", "東 a"),
        ("<pre><ruby>a <!-- c -->  <!-- c --> b</ruby>", "a b"),
        ("<p>日<ruby> 東</ruby>", "日東"),
        ("<p>日<ruby> <!-- c -->東</ruby>", "日東"),
        ("<p>i<ruby> 東</ruby>", "i 東"),
        ("<p>i<ruby> <!-- c -->東</ruby>", "i 東"),
        // The readings in a heading move to the text after the heading.
        ("<h1><ruby>茶<rt>ちゃ</rt></ruby></h1><p>次", "茶\n次 ちゃ"),
        ("<p>次<h1><ruby>茶<rt>ちゃ</rt></ruby></h1>", "次\n茶\nちゃ"),
        // An `rt` outside of a ruby is ordinary text.
        ("<p>茶<rt>ちゃ</rt>道", "茶 ちゃ道"),
        ("<p><ruby>茶<rt>ちゃ", "茶 ちゃ"),
        ("<p><ruby>茶<rt>ちゃ<p>次", "茶 ちゃ\n次"),
    ] {
        assert_eq!(text(html), expected, "{html}");
    }
}

#[test]
fn the_text_of_a_link_has_no_readings() {
    let html = "<a href=1><ruby>東<rp>(</rp><rt>とう</rt><rp>)</rp>京<rt>きょう</ruby>へ</a>\
        <rt><a href=2>茶";
    let page = crawl_extractor::read_html(html.as_bytes(), None, &ReadingLimits::default());
    let texts: Vec<_> = page.links.iter().map(|link| link.text.as_deref()).collect();
    assert_eq!(texts, [Some("東京へ"), Some("茶")]);
}

#[test]
fn markdown_has_readings_in_parentheses() {
    let html = "<main><p>私は<ruby>東<rp>(</rp><rt>とう</rt><rp>)</rp> 京<rt>きょう</rt></ruby>に\
        <b><ruby>茶<rt>ちゃ</rt></ruby></b>。</main>";
    assert_eq!(markdown(html), "私は東京(とうきょう)に**茶(ちゃ)**。");
}

#[test]
fn an_invisible_break_splits_no_word() {
    let html = "<p>Dar<wbr>jee<wbr/>ling, Ge&shy;samt\u{ad}kon&#x200b;zept \u{2060}x<br>y";
    assert_eq!(text(html), "Darjeeling, Gesamtkonzept x y");
    assert_eq!(
        markdown(&format!("<main>{html}</main>")),
        "Darjeeling, Gesamtkonzept x\\\ny"
    );
}
