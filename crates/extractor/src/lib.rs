//! Reading of documents: the links, base, charset, directives and title of a page; what a
//! sitemap or a feed lists; what a style sheet loads.
//!
//! [`what_is`] tells what bytes are, [`read_html`] turns those of a page into a [`Page`],
//! [`read_sitemap`], [`read_feed`] and [`read_css`] do the same for theirs, and
//! [`link_header`] reads the links in a header. None ever fails: whatever the bytes are, a
//! value comes back, with an [`DocumentOddity`] for each thing that was wrong or was left out.
//! Time is linear in the input, memory is bounded by [`Limits`], and nothing recurses. The
//! crate never does I/O, reads no clock, runs no script and resolves no link: an address is
//! handed on as it stands in the document, without the white space around it. Only the query of an
//! address in a page of a legacy charset is encoded already, since no reader of a link knows that
//! charset.
//!
//! A page that is served as XML is read in XML's syntax: `<title/>` is empty, `CDATA` sections are
//! text, and prefixes name vocabularies. HTML is read as a crawler without script sees it: `noscript` is markup; comments and scripts
//! are not; of a `template`, which a script may show, the links are taken and nothing else; and
//! a `style` holds what its CSS loads. Names of the tokenizer
//! beneath never appear in the interface.
//!
//! ```
//! use crawl_extractor::{Element, Limits, Rel, read_html};
//!
//! let html = br#"<title>Tea</title><a rel=nofollow href=" /green ">Green tea</a>"#;
//! let page = read_html(html, Some("text/html; charset=utf-8"), &Limits::default());
//! assert_eq!(page.title.as_deref(), Some("Tea"));
//! assert_eq!(page.charset, "UTF-8");
//! let link = &page.links[0];
//! assert_eq!((link.element, link.href.as_str()), (Element::A, "/green"));
//! assert_eq!(link.text.as_deref(), Some("Green tea"));
//! assert!(link.rel.contains(Rel::NOFOLLOW));
//! ```

mod charset;
mod charset_guess;
mod content;
mod content_type;
mod css;
mod document_kind;
mod feed;
mod feed_url;
mod head_end;
mod html;
mod limits;
mod link;
mod link_header;
mod oddities;
mod page;
mod prescan;
mod query_encoding;
mod refresh;
mod rel;
mod sitemap;
mod text;
mod xml;

pub use charset::CharsetSource;
pub use content::{
    Block, BlockKind, BlockPlace, Content, ContentLimits, ContentOddity, ContentOddityKind,
    DateKind, DateSource, DeclaredBy, DeclaredLanguage, DetectedLanguage, JsonLd, Language, Moment,
    OpenGraph, PageContext, PageDate, Precision, Section, escape_markdown, read_content,
    read_markdown, read_page, read_page_text,
};
pub use css::{Css, read_css};
pub use document_kind::{Document, MAX_SNIFF_BYTES, is_html, looks_like, may_be_read, what_is};
pub use feed::{Feed, FeedEntry, FeedKind, FeedUrl, read_feed};
#[cfg(fuzzing)]
pub use html::compare_with_html5ever;
pub use html::{PageObserver, PageText, pass_over_tokens, read_anchors, read_html, read_text};
pub use limits::{DocumentOddity, DocumentOddityKind, Limits};
pub use link::{Element, Link, LinkKind};
pub use link_header::{link_header, refresh_header};
pub use oddities::Oddity;
pub use page::{Meta, Outline, Page};
pub use rel::Rel;
pub use sitemap::{
    Alternate, ChangeFreq, NewsEntry, Sitemap, SitemapEntry, SitemapKind, Video, read_sitemap,
};
