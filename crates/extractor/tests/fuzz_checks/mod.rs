//! Properties that must hold for any input: the bodies of the fuzz targets, which the tests also
//! run on random inputs.

use crawl_extractor::{
    CharsetSource, ContentKind, DocumentOddity, ExtractedPage, Link, LinkKind, MAX_SNIFF_BYTES,
    ReadingLimits, document_kind, is_html, link_header, read_css, read_feed, read_html,
    read_sitemap, refresh_header,
};
use crawl_weburl::canonicalize;

/// Reads any bytes as a page. Checks that results stay within bounds, and that smaller limits only
/// remove results.
pub(crate) fn html(data: &[u8]) {
    let (first, rest) = data.split_first().unwrap_or((&0, &[]));
    let content_type = [
        "text/html; charset=utf-8",
        "text/html",
        "text/html; charset=utf-16le",
        "application/xhtml+xml; charset=utf-8",
        "text/html; charset=gbk",
    ];
    let content_type = content_type.get(usize::from(*first) % 6).copied();
    let page = read_html(rest, content_type, &ReadingLimits::default());
    links(&page.links, rest.len());
    oddities(&page.oddities, rest.len());
    let small = small();
    let less = read_html(rest, content_type, &small);
    let resources = less
        .links
        .iter()
        .filter(|link| link.kind == LinkKind::Resource)
        .count();
    assert!(resources <= small.resources && less.links.len() - resources <= small.links);
    assert!(
        less.links
            .iter()
            .all(|link| link.href.len() <= small.href_bytes)
    );
    assert!(
        less.links
            .iter()
            .all(|link| link.text.as_ref().is_none_or(|text| text.len() <= 3))
    );
    assert!(less.metas.len() <= small.metas);
    unchanged_by_appended_text(&page, rest, content_type);
}

/// Appends a tag to a page. Checks that at most one link is lost, and that the title still begins
/// with the same text.
fn unchanged_by_appended_text(page: &ExtractedPage, body: &[u8], content_type: Option<&str>) {
    // If the charset is guessed, the appended bytes may change the guess. So check only pages whose
    // header declares UTF-8.
    if content_type.is_none_or(|content_type| !content_type.ends_with("utf-8")) {
        return;
    }
    let more = read_html(
        &[body, b"<p>"].concat(),
        content_type,
        &ReadingLimits::default(),
    );
    let title = page.title.as_deref().unwrap_or_default();
    assert!(more.title.unwrap_or_default().starts_with(title));
    assert!(more.links.len() >= page.links.len().saturating_sub(1));
}

/// Reads any bytes as a style sheet. Checks that all links are resources, and that their URLs occur
/// in the style sheet.
pub(crate) fn css(data: &[u8]) {
    let css = read_css(data, None, &ReadingLimits::default());
    links(&css.links, data.len());
    oddities(&css.oddities, data.len());
    assert!(css.links.iter().all(|link| link.kind == LinkKind::Resource));
    assert!(
        css.links
            .iter()
            .all(|link| matches!(link.attribute, "url" | "@import"))
    );
    assert!(
        read_css(data, Some("text/css; charset=big5"), &small())
            .links
            .len()
            <= 2
    );
    // Read the same CSS in a `style` element of a page.
    let text = String::from_utf8_lossy(data);
    if !text.contains('<')
        && !text.contains('\r')
        && !text.contains('\0')
        && !text.contains('\u{feff}')
    {
        let page = format!("<style>{text}</style>");
        let page = read_html(
            page.as_bytes(),
            Some("text/html; charset=utf-8"),
            &ReadingLimits::default(),
        );
        let alone = read_css(
            text.as_bytes(),
            Some("text/css; charset=utf-8"),
            &ReadingLimits::default(),
        );
        let hrefs = |links: &[Link]| -> Vec<String> {
            links.iter().map(|link| link.href.clone()).collect()
        };
        assert_eq!(hrefs(&page.links), hrefs(&alone.links));
    }
}

/// Reads any bytes as a sitemap, and checks that each entry has a URL.
pub(crate) fn sitemap(data: &[u8]) {
    let sitemap = read_sitemap(data, None, &ReadingLimits::default());
    oddities(&sitemap.oddities, data.len());
    assert!(sitemap.entries.iter().all(|entry| !entry.loc.is_empty()));
    assert!(sitemap.entries.len() <= data.len());
    let less = read_sitemap(data, Some("text/xml; charset=utf-16be"), &small());
    assert!(less.entries.len() <= 2);
    let less = read_sitemap(data, None, &small());
    let extras = less
        .entries
        .iter()
        .map(|entry| entry.alternates.len() + entry.images.len() + entry.videos.len());
    assert!(extras.sum::<usize>() <= small().sitemap_links);
}

/// Reads any bytes as a feed, and checks that each entry has a URL, a title or an id.
pub(crate) fn feed(data: &[u8]) {
    let at = canonicalize(None, "https://example.org/feed").unwrap();
    let feed = read_feed(data, None, &ReadingLimits::default());
    oddities(&feed.oddities, data.len());
    for entry in &feed.entries {
        assert!(entry.url.is_some() || entry.title.is_some() || entry.id.is_some());
        assert!(entry.enclosures.len() <= 16);
        let urls = entry.url.iter().chain(&entry.enclosures);
        for url in urls {
            assert!(!url.href.is_empty());
            let _ = url.resolve(&at);
        }
    }
    assert!(
        read_feed(data, Some("text/xml; charset=gbk"), &small())
            .entries
            .len()
            <= 2
    );
}

/// Reads any bytes as a header, and checks that the URLs of links occur in the header.
pub(crate) fn header(data: &[u8]) {
    let value = String::from_utf8_lossy(data);
    let links = link_header(&value, &ReadingLimits::default());
    assert!(links.len() <= value.matches('<').count());
    assert!(links.iter().all(|link| value.contains(&link.href)));
    let twice = link_header(
        &format!("<first>; rel=next, {value}"),
        &ReadingLimits::default(),
    );
    assert_eq!(twice.first().map(|link| link.href.as_str()), Some("first"));
    assert!(link_header(&value, &small()).len() <= 4);
    if let Some(link) = refresh_header(&value, &ReadingLimits::default()) {
        assert!(value.contains(&link.href));
    }
}

/// Checks that a charset and a document kind are determined for any bytes.
pub(crate) fn charset(data: &[u8]) {
    let page = read_html(data, None, &ReadingLimits::default());
    assert!(page.charset_source != CharsetSource::Header);
    let label = format!("text/html; charset={}", page.charset);
    let again = read_html(data, Some(&label), &ReadingLimits::default());
    // A header that declares the determined charset must lead to the same charset. A byte order
    // mark is an exception, because it overrides the header.
    if page.charset != "replacement" {
        assert_eq!(again.charset, page.charset);
        assert_eq!(again.links.len(), page.links.len());
    }
    let text = String::from_utf8_lossy(data);
    let _ = read_html(b"<a href=x>", Some(&text), &ReadingLimits::default());
    for content_type in [
        None,
        Some("text/html"),
        Some("text/plain"),
        Some(text.as_ref()),
    ] {
        let kind = document_kind(content_type, data);
        assert_eq!(is_html(content_type, data), kind == ContentKind::Html);
        let head = &data[..data.len().min(MAX_SNIFF_BYTES)];
        assert_eq!(document_kind(content_type, head), kind);
    }
}

fn links(links: &[Link], bytes: usize) {
    // Even the shortest tag with a link has more than four bytes, so there can't be more links than
    // this.
    assert!(links.len() <= bytes / 4);
    for link in links {
        assert!(!link.href.starts_with([' ', '\n']) && !link.href.ends_with([' ', '\n']));
        if link.kind == LinkKind::Resource {
            assert!(!link.href.is_empty() && !link.href.starts_with('#'));
        }
    }
}

fn oddities(found: &[DocumentOddity], bytes: usize) {
    for (place, oddity) in found.iter().enumerate() {
        assert!(found[..place].iter().all(|other| other.what != oddity.what));
        assert!((1..=bytes as u64 + 1).contains(&oddity.line) && oddity.count > 0);
        assert!(!oddity.what.to_string().is_empty());
    }
}

fn small() -> ReadingLimits {
    let mut limits = ReadingLimits::default();
    (
        limits.links,
        limits.resources,
        limits.href_bytes,
        limits.text_bytes,
    ) = (2, 2, 8, 3);
    (
        limits.title_bytes,
        limits.metas,
        limits.meta_bytes,
        limits.attributes,
    ) = (3, 1, 3, 2);
    (
        limits.sitemap_entries,
        limits.sitemap_links,
        limits.feed_entries,
    ) = (2, 1, 2);
    limits
}
