//! What a page says: links, base, charset, directives, title; and what a sitemap lists.
//!
//! [`read_html`] turns the octets of a page into a [`Page`], [`read_sitemap`] those of a
//! sitemap into a [`Sitemap`]. Neither ever fails: whatever the octets are, a value comes
//! back, with an [`Oddity`] for each thing that was wrong or was left out. Time is linear
//! in the input, memory is bounded by [`Limits`], and nothing recurses. The crate never
//! does I/O, reads no clock, runs no script and resolves no link: an `href` is handed on
//! as it stands in the page, without the white space around it.
//!
//! HTML is read as a crawler without script sees it: `noscript` is markup, comments,
//! scripts, styles and `template` are not. Names of the tokenizer beneath never appear
//! in the interface.
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
mod content_type;
mod html;
mod limits;
mod page;
mod prescan;
mod refresh;
mod rel;
mod sitemap;
mod text;

pub use charset::CharsetSource;
pub use content_type::is_html;
pub use html::read_html;
pub use limits::{Limits, Oddity, What};
pub use page::{Element, Link, LinkKind, Meta, Page};
pub use rel::Rel;
pub use sitemap::{ChangeFreq, Sitemap, SitemapEntry, SitemapKind, read_sitemap};
