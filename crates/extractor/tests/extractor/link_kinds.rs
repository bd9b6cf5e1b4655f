//! Tests of every kind of link that an element can contain.

use expect_test::{Expect, expect};

use crate::read;

fn check(html: &str, expected: &Expect) {
    let page = read(html);
    let lines = page.links.iter().map(|link| {
        let (element, attribute) = (link.element, link.attribute);
        format!("{element} {attribute} {:?} {}\n", link.kind, link.href)
    });
    expected.assert_eq(&lines.collect::<String>());
}

#[test]
fn resources_that_a_browser_loads_to_show_a_page() {
    check(
        "<img src=1 srcset='2, 3 2x' lowsrc=4 longdesc=5.html><image src=6><picture><source srcset='7 1x'></picture>
         <video src=8 poster=9><source src=10><track src=11></video><audio src=12></audio><bgsound src=13>
         <embed src=14><script src=15></script><input type=IMAGE src=16><body background=17>
         <table background=18><thead background=19><tr background=20><th background=21><tbody background=22>
         <td background=23><tfoot background=24></table><link rel=preload as=image href=25 imagesrcset='26 1x'>",
        &expect![[r#"
            img src Resource 1
            img srcset Resource 2
            img srcset Resource 3
            img lowsrc Resource 4
            img longdesc Page 5.html
            img src Resource 6
            source srcset Resource 7
            video src Resource 8
            video poster Resource 9
            source src Resource 10
            track src Resource 11
            audio src Resource 12
            bgsound src Resource 13
            embed src Resource 14
            script src Resource 15
            input src Resource 16
            body background Resource 17
            table background Resource 18
            thead background Resource 19
            tr background Resource 20
            th background Resource 21
            tbody background Resource 22
            td background Resource 23
            tfoot background Resource 24
            link href Resource 25
            link imagesrcset Resource 26
        "#]],
    );
}

#[test]
fn objects_and_applets() {
    check(
        "<object data=1.swf></object><object data=2.html type='text/html; charset=x'></object>
         <embed src=3.html type=text/html><object codebase=/c data=4 archive='5 /6 http://e.org/7'></object>
         <applet codebase=c/ code=8.class archive='9.jar, 10.jar' object=11></applet><applet code=12></applet>
         <object codebase=c></object><object data=''></object>",
        &expect![[r#"
            object data Resource 1.swf
            object data Page 2.html
            embed src Page 3.html
            object data Resource /c/4
            object archive Resource /c/5
            object archive Resource /6
            object archive Resource http://e.org/7
            applet code Resource c/8.class
            applet object Resource c/11
            applet archive Resource c/9.jar
            applet archive Resource c/10.jar
            applet code Resource 12
        "#]],
    );
}

#[test]
fn html_4_10_18_forms_that_are_sent_by_get_and_by_post() {
    check(
        "<form action=1><input formaction=2><button formaction=3 formmethod=post></button><form action=no>
         <input formaction=''></form></form><form method=POST action=no><button formaction=no></button>
         <button formaction=4 formmethod=Get></button></form><form method=dialog action=no></form>
         <form method=nonsense action=5></form><form></form><form action=' '></form><button formaction=no>",
        &expect![[r#"
            form action Form 1
            input formaction Form 2
            button formaction PostForm 3
            form action PostForm no
            button formaction PostForm no
            button formaction Form 4
            form action Form 5
        "#]],
    );
}

#[test]
fn sources_of_quotations_are_neither_page_nor_resource() {
    check(
        "<blockquote cite=1></blockquote><q cite=2></q><del cite=3></del><ins cite=4></ins><cite cite=no></cite>",
        &expect![[r#"
            blockquote cite Other 1
            q cite Other 2
            del cite Other 3
            ins cite Other 4
        "#]],
    );
}

#[test]
fn drawings_and_formulas() {
    check(
        "<svg><a href=1 xlink:href=no></a><a xlink:href=2></a><image href=3 xlink:href=4></image><use href='#no'/>
         <use xlink:href='5#x'/><filter><feImage href=6 /></filter><script href=7></script><linearGradient href=no />
         <img src=8></svg><math href=9><mi href=10>x</mi><mrow xlink:href=11></mrow></math><use href=no>",
        &expect![[r#"
            a href Page 1
            a xlink:href Page 2
            image href Resource 3
            image xlink:href Resource 4
            use xlink:href Resource 5#x
            feimage href Resource 6
            script href Resource 7
            img src Resource 8
            math href Page 9
            math href Page 10
            math xlink:href Page 11
        "#]],
    );
}

#[test]
fn content_in_the_page_itself_is_not_a_resource() {
    check(
        "<img src='data:image/gif;base64,AA=='><img src=DATA:x><img src='#x'><img src=''><img src=' '>
         <script src='javascript:x'></script><video src='blob:x' poster='about:blank'></video>
         <p style='a:url(data:x) url(#y)'><link rel=icon href='data:,'><a href='data:x'>kept, and unusable</a>",
        &expect![[r#"
            a href Page data:x
        "#]],
    );
}

#[test]
fn frames_and_their_descriptions() {
    check(
        "<iframe src=1 longdesc=/2></iframe><iframe src=no srcdoc='<a href=no>' longdesc=3.txt></iframe>
         <frameset><frame src=4 longdesc='?5'></frameset>",
        &expect![[r#"
            iframe src Page 1
            iframe longdesc Page /2
            iframe longdesc Page 3.txt
            frame src Page 4
            frame longdesc Page ?5
        "#]],
    );
}

#[test]
fn a_longdesc_that_is_prose_is_not_a_url() {
    for url in [
        "desc.html",
        "chart-1.txt#a",
        "a/b",
        "#d",
        "?d=1",
        "../d",
        "HTTP://e.org/a b",
        " /a b.html ",
    ] {
        let page = read(&format!("<img src=i longdesc='{url}'>"));
        assert_eq!(page.links.len(), 2, "{url}");
    }
    for prose in [
        "A cup of tea.",
        "Tea. Pour it.",
        "Logo",
        "Logo.",
        "See tea.example for more",
        "and/or what follows",
        "茶の写真",
        "",
    ] {
        for element in ["img", "iframe", "frame"] {
            let page = read(&format!("<{element} src=i longdesc='{prose}'></{element}>"));
            assert_eq!(page.links.len(), 1, "{element}: {prose}");
        }
    }
}

#[test]
fn html_13_2_markup_ignored_by_browsers_has_no_links() {
    check(
        "<template><img src=0><style>@import 'no'</style></template>
         <!-- <img src=no> --><script>'<img src=no>'</script><noscript><img src=1></noscript>
         <textarea><img src=no></textarea><noframes><img src=no></noframes><svg><style><image href=no /></style>
         <script><use href=no /></script></svg><style media=print>a{b:url(2)}</style><xmp><img src=no></xmp>",
        &expect![[r#"
            img src Resource 0
            img src Resource 1
            style url Resource 2
        "#]],
    );
}
