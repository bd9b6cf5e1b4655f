//! Compares our tokenizer with html5ever's: both must pass the same tags and text to a consumer.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

use super::decoded_page::with_line_feeds;
use super::element_name::ElementName;
use super::page_builder::PageBuilder;
use super::tag_consumer::{TagConsumer, TagContext};
use super::tag_dispatcher::{TagDispatcher, walk_html};
use super::tag_kinds::TagKinds;
use super::tokenizer::{
    AttributeOffsetList, Tag, TagAttributes, TextBetweenTags, TokenizerTextState,
};
use crate::content::{ContentLimits, PageContext};
use crate::reading_limits::ReadingLimits;

/// Maximum attributes of a tag in these comparisons.
const MAX_ATTRIBUTES: usize = 100_000;

/// Records the contents of a page: each tag with its attributes, and the text between tags.
#[derive(Debug, Default)]
pub(super) struct ContentRecorder(pub(super) Vec<RecordedPiece>);

/// A tag or a text that [`ContentRecorder`] recorded.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RecordedPiece {
    /// A tag: the name, with a slash for an end tag, and the attributes.
    Tag(String, Vec<(String, String)>),
    Text(String),
}

impl ContentRecorder {
    fn tag(&mut self, slash: &str, tag: &Tag<'_>) {
        let name = tag.source().trim_start_matches(['<', '/']);
        let name = name.split(['\t', '\n', '\u{c}', ' ', '/', '>']).next();
        let written = |name: &str| name.to_ascii_lowercase().replace('\0', "\u{fffd}");
        let all = tag.attributes.iter().filter(|_| slash.is_empty());
        let first = all.filter(|one| tag.attributes.is_first(*one));
        let mut attributes: Vec<_> = first
            .map(|one| (written(one.name()), one.value().to_owned()))
            .collect();
        attributes.sort_by(|one, other| one.0.cmp(&other.0));
        let name = format!("{slash}{}", written(name.unwrap_or_default()));
        self.0.push(RecordedPiece::Tag(name, attributes));
    }
}

impl TagConsumer for ContentRecorder {
    fn start(&mut self, tag: &Tag<'_>, _at: TagContext) {
        self.tag("", tag);
    }

    fn end(&mut self, tag: &Tag<'_>, _at: TagContext) {
        self.tag("/", tag);
    }

    fn text(&mut self, text: &TextBetweenTags<'_>, _at: TagContext) {
        text.parts(|part| match self.0.last_mut() {
            Some(RecordedPiece::Text(text)) => text.push_str(part),
            _ => self.0.push(RecordedPiece::Text(part.to_owned())),
        });
    }
}

/// Passes html5ever's tokens to our consumers.
struct Html5everTokenSink<C>(RefCell<TagDispatcher<C>>);

impl<C: TagConsumer> TokenSink for Html5everTokenSink<C> {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut walk = self.0.borrow_mut();
        match token {
            Token::CharacterTokens(text) => walk.text(&TextBetweenTags::decoded(&text)),
            Token::TagToken(tag) => {
                let slash = if tag.kind == TagKind::EndTag { "/" } else { "" };
                let mut page = format!("<{slash}{}>", tag.name);
                let end = page.len();
                let mut all = AttributeOffsetList::default();
                for one in &tag.attrs {
                    all.push_decoded(&mut page, &one.name.local, &one.value);
                }
                let name = ElementName::of(tag.name.as_bytes());
                let ours = Tag {
                    name,
                    kinds: TagKinds::of(name),
                    offset: 0,
                    end,
                    page: &page,
                    self_closing: tag.self_closing,
                    was_cut: false,
                    attributes: TagAttributes::new(&page, &all),
                };
                if tag.kind == TagKind::EndTag {
                    walk.end_tag(&ours);
                    return TokenSinkResult::Continue;
                }
                return match walk.start_tag(&ours) {
                    TokenizerTextState::Markup => TokenSinkResult::Continue,
                    TokenizerTextState::Rcdata => TokenSinkResult::RawData(RawKind::Rcdata),
                    TokenizerTextState::Rawtext => TokenSinkResult::RawData(RawKind::Rawtext),
                    TokenizerTextState::Script => TokenSinkResult::RawData(RawKind::ScriptData),
                    TokenizerTextState::Plaintext | TokenizerTextState::XmlText => {
                        TokenSinkResult::Plaintext
                    }
                };
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.0.borrow().is_foreign()
    }
}

/// Passes html5ever's tokens of `html` to `consumer`, and returns the consumer.
fn by_html5ever<C: TagConsumer>(html: &str, consumer: C) -> C {
    let options = TokenizerOpts {
        discard_bom: false,
        ..TokenizerOpts::default()
    };
    let sink = Html5everTokenSink(RefCell::new(TagDispatcher::new(consumer)));
    let tokenizer = Tokenizer::new(sink, options);
    let queue = BufferQueue::default();
    queue.push_back(StrTendril::from_slice(html));
    let _ = tokenizer.feed(&queue);
    tokenizer.end();
    tokenizer.sink.0.into_inner().consumer
}

/// Passes our tokens of `html` to `consumer`, and returns the consumer.
fn by_ours<C: TagConsumer>(html: &str, consumer: C) -> C {
    walk_html(&with_line_feeds(html.into()), MAX_ATTRIBUTES, consumer)
}

/// Returns the results of the page reader and the content reader for a page, without oddities.
/// `read` passes the page's tags and text to both readers.
fn results(html: &str, read: impl Fn(&str, Both) -> Both) -> [String; 2] {
    let content = crate::content::ContentReader::new(&ContentLimits::default());
    let (page, content) = read(html, (PageBuilder::new(&ReadingLimits::default()), content));
    let (mut page, mut content) = (page.finish(""), content.finish(&PageContext::default(), ""));
    page.oddities.clear();
    content.oddities.clear();
    [format!("{page:?}"), format!("{content:?}")]
}

type Both = (PageBuilder, crate::content::ContentReader);

/// Compares our tokens of a page with html5ever's tokens. Also compares the results that the page
/// reader and the content reader produce from each.
///
/// # Panics
/// If the tokens or the results differ.
pub(crate) fn compare(html: &str) {
    assert_eq!(
        by_ours(html, ContentRecorder::default()).0,
        by_html5ever(html, ContentRecorder::default()).0,
        "{html:?}"
    );
    assert_eq!(
        results(html, by_ours),
        results(html, by_html5ever),
        "{html:?}"
    );
}

#[cfg(test)]
#[path = "../../../fuzz/src/run_without_fuzzer.rs"]
mod run_without_fuzzer;

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the pages lie in files")]
mod tests {
    use std::path::{Path, PathBuf};

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::compare;

    /// Parts of pages that together put a tokenizer into each of its states.
    const PARTS: &[&str] = &[
        "<",
        ">",
        "</",
        "<!",
        "<!-",
        "<!--",
        "-->",
        "--!>",
        "--",
        "-",
        "!",
        "<!-->",
        "<!--->",
        "<?",
        "?>",
        "<![CDATA[",
        "]]>",
        "]]",
        "&",
        "&amp",
        "&amp;",
        "&ampx=",
        "&not",
        "&notit;",
        "&notin;",
        "&#x41;",
        "&#65",
        "&#",
        "&#x",
        "&#x80;",
        "&#0;",
        "&#xD800;",
        "&#x110000;",
        "&NotEqualTilde;",
        "&nbsp;",
        ";",
        "\"",
        "'",
        "=",
        "/",
        " ",
        "\n",
        "\r",
        "\r\n",
        "\t",
        "\u{c}",
        "\0",
        "a",
        "A",
        "z",
        "href",
        "HREF",
        "<a href=",
        "<a href='",
        "<A HREF=\"",
        "<a",
        "</a>",
        "</a",
        "</A x='>'>",
        "<br/>",
        "<title>",
        "</title>",
        "</TITLE ",
        "<textarea>",
        "</textarea>",
        "<script>",
        "</script>",
        "</script",
        "</scripty>",
        "<script",
        "<script/",
        "<!--<script>",
        "<!--<script ",
        "<style>",
        "</style>",
        "<svg>",
        "</svg>",
        "<math>",
        "</math>",
        "<mi>",
        "<desc>",
        "</desc>",
        "<template>",
        "</template>",
        "<meta name=a content=b>",
        "<base href=b>",
        "<p>",
        "<xmp>",
        "</xmp>",
        "<noframes>",
        "</noframes>",
        "<plaintext>",
        "<iframe src=i>",
        "</iframe>",
        "<!doctype html>",
        "<!DOCTYPE x PUBLIC '>",
        "<a b b=c b='d'>",
        "<img src=s srcset='t 2x'>",
        "<main>",
        "<h1>",
        "\u{e9}",
        "\u{1F600}",
        "\u{feff}",
    ];

    fn soup() -> impl Strategy<Value = String> {
        vec(prop::sample::select(PARTS), 0..40).prop_map(|parts| parts.concat())
    }

    /// Generates an ordinary page with some characters changed, doubled or removed.
    fn mutated() -> impl Strategy<Value = String> {
        const PAGE: &str = "<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>A &amp; b</title>\
        <base href='/x/'><link rel=\"canonical\" href=\"/c?a=1&amp;b=2\"><style>a{b:url(c)}</style>\
        <script>if (a<b) { '<!-- <script>' } </script></head>\n<body class=x><!-- c --><h1 id=h>H</h1>\
        <p>Text &eacute;&nbsp;<a href='l?x&y=z' title=\"t>\">link</a> 1 < 2<br/><svg><title>t</title>\
        <![CDATA[<a href=n>]]></svg><textarea><a href=n></textarea><img src=i.png alt=''></body></html>";
        let change = (
            any::<prop::sample::Index>(),
            0..3_u8,
            prop::sample::select(PARTS),
        );
        vec(change, 0..12).prop_map(|changes| {
            let mut page: Vec<char> = PAGE.chars().collect();
            for (at, change, part) in changes {
                let at = at.index(page.len());
                match change {
                    0 => drop(page.remove(at)),
                    1 => page.insert(at, page[at]),
                    _ => drop(page.splice(at..at, part.chars())),
                }
            }
            page.into_iter().collect()
        })
    }

    #[test]
    fn inputs_of_the_fuzzer_give_the_tokens_of_html5ever() {
        super::run_without_fuzzer::run_without_fuzzer("html_tokenizer", 1_000, |html| {
            compare(&String::from_utf8_lossy(html));
        });
    }

    proptest! {
        #[test]
        fn tag_soup_gives_the_tokens_of_html5ever(html in soup()) {
            compare(&html);
        }

        #[test]
        fn mutated_pages_give_the_tokens_of_html5ever(html in mutated()) {
            compare(&html);
        }
    }

    #[test]
    #[ignore = "needs openjdk's and Python's documentation: cargo xtask test sets it up"]
    fn real_pages_give_the_tokens_of_html5ever() {
        // By default, compare only every twelfth page. This finds frequent differences in a
        // reasonable time.
        let step = match std::env::var_os("CRAWL_WHOLE_CORPUS") {
            Some(_) => 1,
            None => 12,
        };
        let mut paths = Vec::new();
        for variable in ["CRAWL_JAVA_DOC", "CRAWL_PYTHON_DOC"] {
            let folder = std::env::var_os(variable)
                .unwrap_or_else(|| panic!("{variable} is not set: cargo xtask test sets it"));
            pages(Path::new(&folder), &mut paths);
        }
        let mut compared = 0;
        for path in paths.iter().step_by(step) {
            let html = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
            println!("{}", path.display());
            compare(&html);
            compared += 1;
        }
        assert!(compared >= 10_000 / step, "{compared} pages");
    }

    /// Collects the HTML files below `folder`, ordered by name.
    fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() && !path.is_symlink() {
                pages(&path, found);
            } else if path.is_file() && path.extension().is_some_and(|end| end == "html") {
                found.push(path);
            }
        }
    }
}
