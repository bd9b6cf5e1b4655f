//! Pages that are rendered, and the requests that they make.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use bytes::Bytes;
use crawl_archive::rows::RenderStatistics;
use crawl_extractor::{DecodedPage, ExtractedPage, LinkElement, ReadingLimits, read_text};
use crawl_fetcher::{FetchRequest, PostBody};
use crawl_weburl::CanonicalUrl;
use memchr::{memchr_iter, memchr2_iter, memmem};

use crate::render::{ResourceAnswerSender, ResourceRequest};

/// Maximum bytes of a resource of a page.
/// Beyond the limit: cut off.
const MAX_RESOURCE_BODY: u64 = 10 << 20;

/// A page with a script and fewer letters than this looks empty.
const FEW_LETTERS: usize = 200;

/// A page with fewer letters than this looks empty if its source shows that scripts fill it.
const SOME_LETTERS: usize = 1_000;

/// Maximum bytes to search for the end of a tag or of a `noscript` element.
const EXCERPT_BYTES: usize = 2_000;

/// The number of a page that is being rendered, unique in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RenderId(pub(crate) u64);

/// The source that a fetched page is read from: the body as sent, or the DOM from a browser.
#[derive(Clone, Debug, Default)]
pub(crate) enum PageSourceToRead {
    /// The body as sent.
    #[default]
    Unneeded,
    /// The body as sent, unless scripts seem to build the page. In that case the reader returns the
    /// page, to be rendered.
    IfScripted,
    /// The body as sent, unless the page turns out to be HTML. In that case the reader returns the
    /// page, to be rendered.
    IfHtml,
    /// The body as sent. Scripts seem to build the page, but rendering similar pages was useless.
    Skipped,
    /// The DOM from a browser.
    Done {
        /// The serialized DOM.
        dom: String,
        /// The URL that the page's scripts tried to move to.
        navigation: Option<String>,
        /// A screenshot (PNG), if one was taken.
        screenshot: Option<Bytes>,
        row: RenderStatistics,
    },
    /// The body as sent, because the page could not be rendered.
    Failed(RenderStatistics),
}

impl PageSourceToRead {
    /// Returns the columns about rendering for the page's row. `None` if the page needed no
    /// rendering.
    pub(crate) fn row(&self) -> Option<&RenderStatistics> {
        match self {
            PageSourceToRead::Unneeded
            | PageSourceToRead::IfScripted
            | PageSourceToRead::IfHtml
            | PageSourceToRead::Skipped => None,
            PageSourceToRead::Done { row, .. } | PageSourceToRead::Failed(row) => Some(row),
        }
    }

    /// Returns the URL that the page's scripts tried to move to.
    pub(crate) fn navigation(&self) -> Option<&str> {
        match self {
            PageSourceToRead::Done { navigation, .. } => navigation.as_deref(),
            _ => None,
        }
    }

    /// Returns the parts that the archive keeps. `None` if the page was not rendered.
    pub(crate) fn into_kept(self) -> Option<RenderingToArchive> {
        match self {
            PageSourceToRead::Done {
                dom, screenshot, ..
            } => Some(RenderingToArchive { dom, screenshot }),
            _ => None,
        }
    }

    /// Returns the serialized DOM. `None` if the page is read as it was sent.
    pub(crate) fn dom(&self) -> Option<&str> {
        match self {
            PageSourceToRead::Done { dom, .. } => Some(dom),
            _ => None,
        }
    }
}

/// The parts of a rendered page that the archive keeps.
#[derive(Clone, Debug)]
pub(crate) struct RenderingToArchive {
    /// The serialized DOM.
    pub(crate) dom: String,
    /// A screenshot (PNG), if one was taken.
    pub(crate) screenshot: Option<Bytes>,
}

/// A resource that a page requests while it is rendered.
#[derive(Debug)]
pub(crate) struct PageResourceRequest {
    pub(crate) page: RenderId,
    pub(crate) request: ResourceRequest,
    pub(crate) answer: ResourceAnswerSender,
}

/// The key under which the answer for a resource is shared: the URL, and whether its request
/// carries secrets. Pages share an answer if their keys are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ResourceKey {
    pub(crate) url: CanonicalUrl,
    /// Whether the request carries the operator's header fields and the site's session. If so,
    /// only pages of the same site get the answer.
    pub(crate) is_own: bool,
    /// The number of a POST, unique in a run, so that pages never share its answer. 0 for a GET.
    pub(crate) post: u64,
}

/// A request for a resource of a page that is being rendered.
#[derive(Clone, Debug)]
pub(crate) struct ResourceFetchRequest {
    pub(crate) key: ResourceKey,
    /// The page that requested the resource first.
    pub(crate) page: CanonicalUrl,
    /// How many times the request was sent before.
    pub(crate) tries: u32,
    /// The body of a POST. `None` for a GET.
    pub(crate) post: Option<PostBody>,
}

impl ResourceFetchRequest {
    /// Returns the HTTP request.
    pub(crate) fn fetch(&self) -> FetchRequest {
        FetchRequest {
            max_body: Some(MAX_RESOURCE_BODY),
            found_on: Some(self.page.clone()),
            is_filtered: false,
            is_anonymous: !self.key.is_own,
            post: self.post.clone().map(Box::new),
            ..FetchRequest::page(self.key.url.clone())
        }
    }
}

/// How much text and how many links a page shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VisibleContentSize {
    /// The number of characters that are not white space, counted up to a limit.
    pub(crate) letters: usize,
    /// The number of `a` elements.
    pub(crate) links: usize,
}

impl VisibleContentSize {
    /// Measures a page from its bytes.
    pub(crate) fn of(bytes: &[u8], content_type: Option<&str>) -> VisibleContentSize {
        let text = DecodedPage::decode(bytes, content_type);
        let mut limits = ReadingLimits::default();
        limits.text_bytes = 0;
        VisibleContentSize::of_page(&read_text(&text, &limits, &mut ()))
    }

    /// Measures a serialized DOM.
    pub(crate) fn of_dom(dom: &str) -> VisibleContentSize {
        VisibleContentSize::of(dom.as_bytes(), Some("text/html; charset=utf-8"))
    }

    pub(crate) fn of_page(page: &ExtractedPage) -> VisibleContentSize {
        VisibleContentSize {
            letters: page.outline.shown_letters,
            links: page.outline.links,
        }
    }

    /// Returns whether a page shows more than `before`: a tenth more text, or more links.
    pub(crate) fn exceeds(&self, before: VisibleContentSize) -> bool {
        self.letters > before.letters + before.letters / 10 + 20 || self.links > before.links
    }
}

/// A description of a page as sent, before its scripts run: how much it shows, and which scripts it
/// has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnrenderedPageSummary {
    pub(crate) size: VisibleContentSize,
    /// A hash of the addresses of the page's scripts. Pages with the same scripts mostly use them
    /// for the same purpose.
    pub(crate) scripts: u64,
}

impl UnrenderedPageSummary {
    pub(crate) fn of_page(page: &ExtractedPage) -> UnrenderedPageSummary {
        let links = page.links.iter();
        let scripts = links.filter(|link| link.element == LinkElement::Script);
        // Ignore queries, since they often differ from page to page.
        let path = |href: &str| href.split(['?', '#']).next().unwrap_or_default().to_owned();
        let addresses: BTreeSet<String> = scripts.map(|link| path(&link.href)).collect();
        let mut hasher = DefaultHasher::new();
        addresses.hash(&mut hasher);
        UnrenderedPageSummary {
            size: VisibleContentSize::of_page(page),
            scripts: hasher.finish(),
        }
    }
}

/// Returns whether a page looks as if scripts build it: it shows little text, and has a script.
pub(crate) fn is_built_by_scripts(page: &ExtractedPage, source: &str) -> bool {
    let letters = page.outline.shown_letters;
    page.outline.has_scripts
        && letters < SOME_LETTERS
        && (letters < FEW_LETTERS || (says_that_scripts_fill_it(source) && !is_search_page(source)))
}

/// Returns whether a page is its site's search page. Such pages need JavaScript, but show nothing
/// until a visitor searches.
fn is_search_page(source: &str) -> bool {
    tags(source, "<link").any(|tag| contains(tag, "rel=\"search\"") && contains(tag, "href=\"#\""))
}

/// Returns the tags that begin with `start`, which is in lower case.
fn tags<'a>(source: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    positions(source, start).map(|at| {
        let tag = excerpt(source, at);
        tag.split('>').next().unwrap_or_default()
    })
}

/// Returns the text from `at` on, cut to [`EXCERPT_BYTES`]. Without this limit, searching a page
/// with unclosed tags would take too long.
fn excerpt(source: &str, at: usize) -> &str {
    let end = source.floor_char_boundary(at.saturating_add(EXCERPT_BYTES));
    source.get(at..end).unwrap_or_default()
}

/// Returns whether a page's source shows that scripts fill the page: it has an element that
/// well-known libraries fill, or says that it needs JavaScript.
fn says_that_scripts_fill_it(source: &str) -> bool {
    // Search for bytes that are rare in scripts and data first, because scripts and data make up
    // most of a long page. Libraries write the names of their own attributes in lower case.
    let bytes = source.as_bytes();
    let mut equal_signs = memchr_iter(b'=', bytes);
    equal_signs.any(|at| is_id_of_place(bytes, at))
        || contains(source, "<app-root")
        || [&b"data-reactroot"[..], b"data-sveltekit"]
            .iter()
            .any(|name| memmem::find(bytes, name).is_some())
        || positions(source, "<noscript").any(|at| {
            let text = excerpt(source, at);
            let end = positions(text, "</noscript").next();
            let text = text.get(..end.unwrap_or(text.len()));
            text.is_some_and(|text| contains(text, "javascript"))
        })
}

/// Returns whether the equal sign at `at` belongs to an attribute such as `id="root"` or `id=app`.
/// Well-known libraries fill the element with this id.
fn is_id_of_place(source: &[u8], at: usize) -> bool {
    let (name, value) = source.split_at(at);
    let name = name.trim_ascii_end().last_chunk::<2>();
    if !name.is_some_and(|name| name.eq_ignore_ascii_case(b"id")) {
        return false;
    }
    let value = value.get(1..).unwrap_or_default().trim_ascii_start();
    let (quote, value) = match value {
        [quote @ (b'"' | b'\''), value @ ..] => (Some(quote), value),
        value => (None, value),
    };
    let ends = |rest: &[u8]| match (quote, rest.first()) {
        (Some(quote), next) => next == Some(quote),
        (None, next) => next.is_none_or(|next| next.is_ascii_whitespace() || *next == b'>'),
    };
    let places: [&[u8]; 4] = [b"root", b"app", b"__next", b"__nuxt"];
    places.into_iter().any(|place| {
        let name = value.split_at_checked(place.len());
        name.is_some_and(|(name, rest)| name.eq_ignore_ascii_case(place) && ends(rest))
    })
}

/// Returns whether `source` contains `wanted`, ignoring ASCII case. `wanted` must be in lower case.
fn contains(source: &str, wanted: &str) -> bool {
    positions(source, wanted).next().is_some()
}

/// Returns each position of `wanted` in `source`, ignoring ASCII case. `wanted` must be in lower
/// case.
fn positions<'a>(source: &'a str, wanted: &'a str) -> impl Iterator<Item = usize> {
    let (source, wanted) = (source.as_bytes(), wanted.as_bytes());
    let first = wanted.first().copied().unwrap_or_default();
    memchr2_iter(first, first.to_ascii_uppercase(), source).filter(move |at| {
        let part = source.get(*at..*at + wanted.len());
        part.is_some_and(|part| part.eq_ignore_ascii_case(wanted))
    })
}

#[cfg(test)]
mod tests {
    use crawl_extractor::{DecodedPage, ExtractedPage, ReadingLimits, read_text};

    use super::{UnrenderedPageSummary, VisibleContentSize, is_built_by_scripts};

    fn read(source: &str) -> ExtractedPage {
        let text = DecodedPage::decode(source.as_bytes(), None);
        read_text(&text, &ReadingLimits::default(), &mut ())
    }

    fn is_scripted(source: &str) -> bool {
        is_built_by_scripts(&read(source), source)
    }

    #[test]
    fn app_shells_are_distinguished_from_pages() {
        let words = "tea and cake ".repeat(40);
        let script = "<script src=\"/a.js\"></script>";
        for (source, is) in [
            (format!("<div id=\"root\"></div>{script}"), true),
            (format!("<DIV ID=app>{words}</DIV>{script}"), true),
            (format!("<div id='app'></div>{words}{script}"), true),
            (format!("<div id = \"app\"></div>{words}{script}"), true),
            (format!("<div id=__next></div>{words}{script}"), true),
            (format!("<div id=apple></div>{words}{script}"), false),
            (format!("<div id='app\"></div>{words}{script}"), false),
            (format!("<div hidden>{words}</div><p>tea{script}"), true),
            (format!("<p>{words}{script}"), false),
            (
                format!("<noscript>You need JavaScript.</noscript><p>{words}{script}"),
                true,
            ),
            ("<p>tea".to_owned(), false),
            ("<p>tea<SCRIPT>draw()</SCRIPT>".to_owned(), true),
            (
                format!(
                    "<link rel=\"search\" href=\"#\"><noscript>Search needs JavaScript.\
                     </noscript><p>{words}{script}"
                ),
                false,
            ),
            (
                "<p>tea<script type=\"application/LD+json\">{}</script>".to_owned(),
                false,
            ),
            (
                "<p>tea<script data-format=\"json\">draw()</script>".to_owned(),
                true,
            ),
            (
                "<p>é<script type=speculationrules>{}</script><script>draw()</script>".to_owned(),
                true,
            ),
            (
                format!("<div id=\"root\">{}</div>{script}", words.repeat(4)),
                false,
            ),
        ] {
            assert_eq!(is_scripted(&source), is, "{source}");
        }
    }

    #[test]
    fn unclosed_tags_are_searched_in_linear_time() {
        let words = "tea and cake ".repeat(40);
        for tag in [
            "<script json ",
            "<noscript ",
            "<noscript>",
            "<link rel=\"search\" ",
        ] {
            let source = format!("<p>{words}{}", tag.repeat(50_000));
            let page = read(&format!("<p>{words}<script src=a.js></script>"));
            assert!(!is_built_by_scripts(&page, &source), "{tag}");
        }
    }

    #[test]
    fn pages_are_alike_if_their_scripts_are() {
        let scripts = |source| UnrenderedPageSummary::of_page(&read(source)).scripts;
        let one = scripts("<script src=a.js?1></script><p>tea<script src=b.js></script>");
        let same = scripts("<script src=b.js></script><script src=a.js?2></script>");
        assert_eq!(one, same);
        assert_ne!(one, scripts("<script src=a.js></script>"));
        assert_ne!(one, scripts("<script>draw()</script>"));
    }

    #[test]
    fn a_rendered_page_must_show_clearly_more() {
        let size = |letters, links| VisibleContentSize { letters, links };
        assert!(size(121, 0).exceeds(size(90, 0)));
        assert!(!size(119, 0).exceeds(size(90, 0)));
        assert!(size(5, 1).exceeds(size(90, 0)));
        assert_eq!(
            VisibleContentSize::of(b"<p>a b <a href=x>c</a>", None),
            size(3, 1)
        );
    }
}
