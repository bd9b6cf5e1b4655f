//! Reads documents: the links, base, charset, directives and title of a page; the entries of a
//! sitemap or a feed; the resources that a style sheet loads.
//!
//! [`document_kind`] detects the kind of a document. [`read_html`] turns a page into an
//! [`ExtractedPage`]; [`read_sitemap`], [`read_feed`] and [`read_css`] read the other kinds; and
//! [`link_header`] reads the links in a header. [`rewrite_html`] and [`rewrite_css`] give the
//! references of a document new URLs. None of these ever fails: any bytes give a value, with a
//! [`DocumentOddity`] for each defect or omission. Time is linear in the input, memory is bounded
//! by [`ReadingLimits`], and nothing recurses. The crate does no I/O, reads no clock, runs no
//! script, and resolves links only to rewrite them: a URL is returned as written, without
//! surrounding white space. There is one exception: if a page is in a legacy charset, the queries
//! of its URLs are percent-encoded here, because later code doesn't know the charset.
//!
//! A page served as XML is read in XML syntax: `<title/>` is empty, `CDATA` sections are text, and
//! prefixes refer to namespaces. HTML is read as by a browser without scripts: the content of
//! `noscript` is markup, and comments and scripts are ignored. A `template` is read only for its
//! links, because a script may insert it into the page. A `style` is read only for the resources
//! that its CSS loads.
//!
//! ```
//! use crawl_extractor::{LinkElement, ReadingLimits, Rel, read_html};
//!
//! let html = br#"<title>Tea</title><a rel=nofollow href=" /green ">Green tea</a>"#;
//! let page = read_html(html, Some("text/html; charset=utf-8"), &ReadingLimits::default());
//! assert_eq!(page.title.as_deref(), Some("Tea"));
//! assert_eq!(page.charset, "UTF-8");
//! let link = &page.links[0];
//! assert_eq!((link.element, link.href.as_str()), (LinkElement::A, "/green"));
//! assert_eq!(link.text.as_deref(), Some("Green tea"));
//! assert!(link.rel.contains(Rel::NOFOLLOW));
//! ```

mod charset;
mod charset_guess;
mod charset_prescan;
mod collapsed_text_builder;
mod content;
mod content_type;
mod css;
mod document_kind;
mod document_reference_rewriter;
mod extracted_page;
mod feed;
mod head_end;
mod html;
mod link;
mod link_header;
mod link_rel;
mod meta_refresh;
mod oddities;
mod query_encoding;
mod reading_limits;
mod sitemap;
mod text_edits;
mod unresolved_feed_url;
mod url_rewriter;
mod xml;

pub use charset::CharsetSource;
pub use content::{
    Block, BlockKind, BlockRole, ContentLimits, ContentOddity, ContentOddityKind, DateKind,
    DatePrecision, DateSource, DeclaredLanguage, DetectedLanguage, JsonLdItem, LanguageSource,
    OpenGraph, PageContent, PageContext, PageDate, PageLanguage, Section, TimeWithPrecision,
    escape_markdown, read_content, read_markdown, read_page, read_page_text,
};
pub use content_type::{effective_content_type, essence};
pub use css::{StyleSheetLinks, read_css};
pub use document_kind::{
    ContentKind, MAX_SNIFF_BYTES, document_kind, is_html, may_be_read, sniff_media_type,
};
pub use document_reference_rewriter::{rewrite_css, rewrite_html};
pub use extracted_page::{ExtractedPage, NamedMeta, VisibleContentCounts};
pub use feed::{Feed, FeedEntry, FeedKind, UnresolvedFeedUrl, read_feed};
#[cfg(fuzzing)]
pub use html::compare_with_html5ever;
pub use html::{
    DecodedPage, ImageAndLanguageAudit, PostForm, VisibleTextObserver, audit_elements,
    read_anchors, read_html, read_post_forms, read_text, walk_tokens,
};
pub use link::{Link, LinkElement, LinkKind};
pub use link_header::{link_header, refresh_header};
pub use link_rel::Rel;
pub use oddities::Oddity;
pub use reading_limits::{DocumentOddity, DocumentOddityKind, ReadingLimits};
pub use sitemap::{
    ChangeFrequency, Sitemap, SitemapAlternate, SitemapEntry, SitemapKind, SitemapNewsArticle,
    SitemapVideo, read_sitemap,
};
