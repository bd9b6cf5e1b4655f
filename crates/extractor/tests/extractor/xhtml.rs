//! Tests of pages in XML syntax.

use crawl_extractor::{
    ContentLimits, DecodedPage, PageContext, ReadingLimits, read_anchors, read_content, read_html,
    read_markdown,
};

const XHTML: &str = "application/xhtml+xml; charset=utf-8";

/// Returns an XHTML page with the given head and body.
fn document(head: &str, body: &str) -> String {
    format!(
        "<?xml version='1.0' encoding='UTF-8'?>\n<!DOCTYPE html [ <!ENTITY tea 'tea'> ]>\n\
         <html xmlns='http://www.w3.org/1999/xhtml'><head>{head}</head><body>{body}</body></html>"
    )
}

/// Returns the results of all readers for a page: its title, the URLs of its links, its visible
/// text and its Markdown.
fn read_all(page: &str, content_type: &str) -> (Option<String>, Vec<String>, String, String) {
    let read = read_html(
        page.as_bytes(),
        Some(content_type),
        &ReadingLimits::default(),
    );
    let context = PageContext {
        content_type: Some(content_type),
        ..PageContext::default()
    };
    let limits = ContentLimits::default();
    let content = read_content(page.as_bytes(), &context, &limits);
    assert_eq!(content.title, read.title);
    let mut link = |href: &str| Some(href.to_owned());
    let (_, markdown) = read_markdown(page.as_bytes(), &context, &limits, &mut link);
    let hrefs = read.links.into_iter().map(|link| link.href).collect();
    (
        read.title,
        hrefs,
        content.visible_text().to_owned(),
        markdown,
    )
}

#[test]
fn xml_3_1_an_empty_tag_ends_its_element() {
    const AFTER: &str = "<p>Water the leaves.</p><a href='next'>Next</a>";
    for empty in [
        "<script src='s.js'/>",
        "<style type='text/css'/>",
        "<textarea name='a'/>",
        "<iframe src='frame'/>",
        "<noscript/>",
        "<noframes/>",
        "<xmp/>",
        "<plaintext/>",
        "<template/>",
        "<select/>",
        "<button/>",
        "<h1/>",
        "<nav/>",
        "<div class='sidebar'/>",
        "<div hidden='hidden'/>",
        "<span style='display:none'/>",
        "<p/>",
        "<a id='top'/>",
        "<pre/>",
        "<svg xmlns='http://www.w3.org/2000/svg'/>",
        "<title/>",
    ] {
        let page = document("<title>Tea</title>", &format!("{empty}{AFTER}"));
        let (title, hrefs, text, markdown) = read_all(&page, XHTML);
        assert_eq!(title.as_deref(), Some("Tea"), "{empty}");
        assert_eq!(hrefs.last().map(String::as_str), Some("next"), "{empty}");
        assert_eq!(text, "Water the leaves.\nNext", "{empty}");
        assert!(
            markdown.starts_with("Water the leaves."),
            "{empty}: {markdown}"
        );
    }
}

#[test]
fn xml_3_1_text_follows_an_empty_title() {
    let page = document(
        "<title/><script src='s.js'/>",
        "<p>Tea</p><a href='next'>Next</a>",
    );
    let (title, hrefs, text, _) = read_all(&page, XHTML);
    assert_eq!(title, None);
    assert_eq!(hrefs, ["s.js", "next"]);
    assert_eq!(text, "Tea\nNext");
}

#[test]
fn html_13_2_5_the_same_bytes_as_html_stay_html() {
    let page = document("<title/>", "<p>Tea</p><a href='next'>Next</a>");
    let (title, hrefs, ..) = read_all(&page, "text/html");
    assert!(title.unwrap_or_default().contains("Tea"));
    assert!(hrefs.is_empty());
}

#[test]
fn any_xml_type_with_an_xhtml_root_is_xhtml() {
    let page = document("<title/>", "<a href='next'>Next</a>");
    for content_type in [
        "application/xml",
        "text/xml; charset=utf-8",
        "application/vnd.wap.xhtml+xml",
    ] {
        assert_eq!(read_all(&page, content_type).1, ["next"], "{content_type}");
    }
    let read = read_html(page.as_bytes(), None, &ReadingLimits::default());
    assert_eq!(read.links.len(), 1);
}

#[test]
fn xml_2_7_cdata_sections_are_text() {
    let page = document(
        "<title>T<![CDATA[ & <b>]]> &amp; U<!-- no --></title>\
         <script>//<![CDATA[\n a = '</script><a href=\"no\">' \n//]]></script>\
         <style><![CDATA[ p { background: url(bg.png) } ]]></style>\
         <script type='application/ld+json'><![CDATA[{\"@type\": \"Article\", \
         \"headline\": \"</script>\"}]]></script>",
        "<p>a<![CDATA[ <a href='no'> & b]]></p><!-- > --!> <a href='no'>--><?x > <a href='no'> ?>\
         <a href='next?a&amp;b'>Next</a>",
    );
    let (title, hrefs, text, _) = read_all(&page, XHTML);
    assert_eq!(title.as_deref(), Some("T & <b> & U"));
    assert_eq!(hrefs, ["bg.png", "next?a&b"]);
    assert_eq!(text, "a <a href='no'> & b\nNext");
}

#[test]
fn xml_names_prefixes_name_the_vocabulary() {
    let page = "<?xml version='1.0'?><h:html xmlns:h='http://www.w3.org/1999/xhtml' \
        xmlns:dc='http://purl.org/dc/elements/1.1/'><h:head><dc:title>No</dc:title>\
        <h:title>Tea</h:title><h:base href='/b/'/></h:head><h:body>\
        <metadata xmlns='http://purl.org/dc/elements/1.1/'><title>No</title><a href='no'/>\
        <metadata/></metadata>\
        <h:h1 id='t'>Kinds</h:h1><h:p>One<h:br></h:br>two</h:p><h:script src='s.js'/>\
        <s:svg xmlns:s='http://www.w3.org/2000/svg'><s:title>Leaf</s:title>\
        <s:a xlink:href='leaf'/></s:svg>\
        <h:a href='next'>Next</h:a><x:a href='no'/></h:body></h:html>";
    let (title, hrefs, text, _) = read_all(page, XHTML);
    assert_eq!(title.as_deref(), Some("Tea"));
    assert_eq!(hrefs, ["s.js", "leaf", "next"]);
    assert!(text.ends_with("Kinds\nOne two\nNext"), "{text}");
    let anchors = read_anchors(&DecodedPage::decode(page.as_bytes(), Some(XHTML)));
    assert!(anchors.contains("t"));
}

#[test]
fn a_page_that_is_not_well_formed_is_read_to_its_end() {
    let page = document(
        "<title>Tea</title><meta name='robots' content='noindex'>",
        "<p>One<br>two<p>three & four <script>for (i=0;i<n;i++) { a = \"x\"; }</script>\
         <A HREF=next>Next</A><textarea>never closed",
    );
    let read = read_html(page.as_bytes(), Some(XHTML), &ReadingLimits::default());
    assert_eq!(read.metas.len(), 1);
    let (_, hrefs, text, _) = read_all(&page, XHTML);
    assert_eq!(hrefs, ["next"]);
    assert_eq!(text, "One two\nthree & four Next");
}

#[test]
fn rfc_7303_3_without_a_header_the_xml_declaration_names_the_charset() {
    let page = |declared: &str, meta: &str| {
        let text = format!(
            "<?xml version='1.0'{declared}?><html xmlns='http://www.w3.org/1999/xhtml'><head>\
             <meta charset='{meta}'/><title>th\u{e9}</title></head></html>"
        );
        let latin: Vec<u8> = text.chars().map(|c| c as u32 as u8).collect();
        (text, latin)
    };
    let read = |body: &[u8]| {
        let page = read_html(
            body,
            Some("application/xhtml+xml"),
            &ReadingLimits::default(),
        );
        (page.charset, page.title.unwrap_or_default())
    };
    let (utf_8, latin) = page(" encoding='iso-8859-1'", "utf-8");
    assert_eq!(read(&latin), ("windows-1252", "th\u{e9}".to_owned()));
    assert_eq!(read(utf_8.as_bytes()).0, "windows-1252");
    let (utf_8, latin) = page("", "windows-1252");
    assert_eq!(read(utf_8.as_bytes()), ("UTF-8", "th\u{e9}".to_owned()));
    // These bytes are not UTF-8, so the `meta` decides.
    assert_eq!(read(&latin), ("windows-1252", "th\u{e9}".to_owned()));
}
