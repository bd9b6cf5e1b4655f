//! The main text of a page as Markdown (CommonMark 0.31, with GitHub's tables).

mod block_containers;
mod block_joining;
mod emphasis;
mod inline_markdown_writer;
mod markdown_builder;

use super::page_content::PageContent;
use super::{ContentLimits, PageContext};
use crate::html::{DecodedPage, pass_over};
use crate::query_encoding::encode_query;
use markdown_builder::MarkdownBuilder;

pub use inline_markdown_writer::escape_markdown;

/// Reads the content of a page like [`read_content`](super::read_content), and also returns its
/// main text as Markdown, without a final line end. `link` converts the value of an attribute to
/// the target of a link or image. If `link` returns `None`, the link becomes plain text, and the
/// image is omitted.
///
/// Never fails. Takes linear time in the length of `body`. Lists and quotes nested deeper than
/// sixteen levels are flattened to that depth.
///
/// ```
/// use crawl_extractor::{ContentLimits, PageContext, read_markdown};
///
/// let html = b"<title>Tea</title><main><h1>Tea</h1><p>Pour <em>slowly</em>, \
///     as <a href=how.html>shown</a>.<ol><li>Boil<li>Wait</ol></main>";
/// let (content, markdown) = read_markdown(
///     html,
///     &PageContext::default(),
///     &ContentLimits::default(),
///     &mut |href| Some(format!("https://tea.example/{href}")),
/// );
/// assert_eq!(content.title.as_deref(), Some("Tea"));
/// assert_eq!(
///     markdown,
///     "# Tea\n\nPour *slowly*, as [shown](https://tea.example/how.html).\n\n1. Boil\n2. Wait"
/// );
/// ```
#[must_use]
pub fn read_markdown(
    body: &[u8],
    context: &PageContext<'_>,
    limits: &ContentLimits,
    link: &mut dyn FnMut(&str) -> Option<String>,
) -> (PageContent, String) {
    let text = DecodedPage::decode(body, context.content_type);
    let charset = text.charset.encoding;
    let mut link = |href: &str| link(&encode_query(href, charset));
    let reader = MarkdownBuilder::new(limits, &mut link);
    let (content, blocks) =
        pass_over(&text, limits.attributes, reader).finish(context, text.as_str());
    let markdown = block_joining::render(&content, &blocks);
    (content, markdown)
}

#[cfg(test)]
mod tests;
