//! Runs html5lib's tokenizer cases: a consumer must get the expected tags, attributes and text.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::decoded_page::with_line_feeds;
use super::html5ever_agreement::{ContentRecorder, RecordedPiece};
use super::tag_dispatcher::walk_html;

/// The cases in which our tokenizer is known to differ from the expected tokens.
const KNOWN: &str = include_str!("../../tests/html5lib/known-tokenizer.txt");

macro_rules! files {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../tests/html5lib/tokenizer/", $name, ".test"))),)*]
    };
}

const FILES: [(&str, &str); 9] = files![
    "contentModelFlags" "domjs" "entities" "escapeFlag" "pendingSpecChanges" "test1" "test2"
    "test3" "test4"
];

#[derive(Deserialize)]
struct TokenizerTestFile {
    tests: Vec<TokenizerTestCase>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TokenizerTestCase {
    description: String,
    input: String,
    output: Vec<serde_json::Value>,
    #[serde(default)]
    initial_states: Vec<String>,
    #[serde(default)]
    last_start_tag: String,
    #[serde(default)]
    double_escaped: bool,
}

/// Returns the tags and text that our tokenizer reads from `html` if it follows `before` in a page.
fn seen(before: &str, html: &str) -> Vec<RecordedPiece> {
    let html = format!("{before}{html}");
    let text = with_line_feeds(html.into());
    let mut seen = walk_html(&text, 1_000, ContentRecorder::default()).0;
    seen.drain(..before.matches('<').count().min(1));
    seen
}

/// Replaces escapes such as `\u0041` by their characters.
fn unescaped(text: &str) -> String {
    let mut parts = text.split("\\u");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let code = u32::from_str_radix(&part[..4], 16).unwrap();
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        format!("{text}{character}{}", &part[4..])
    })
}

/// Replaces each `name` in `text` by `instead`, ignoring the case of `name`.
fn renamed(text: &str, name: &str, instead: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut renamed = String::new();
    let mut at = 0;
    for (start, _) in lower.match_indices(name) {
        renamed.push_str(&text[at..start]);
        renamed.push_str(instead);
        at = start + name.len();
    }
    renamed + &text[at..]
}

impl TokenizerTestCase {
    fn expected(&self) -> Vec<RecordedPiece> {
        let text = |value: &serde_json::Value| {
            let text = value.as_str().unwrap().to_owned();
            if self.double_escaped {
                unescaped(&text)
            } else {
                text
            }
        };
        let mut expected = Vec::new();
        for token in self.output.iter().filter_map(serde_json::Value::as_array) {
            match token[0].as_str() {
                Some("StartTag") => {
                    let attributes = token[2].as_object().unwrap().iter();
                    let attributes = attributes.map(|(name, value)| {
                        let name = serde_json::Value::from(name.clone());
                        (text(&name), text(value))
                    });
                    let mut attributes: Vec<_> = attributes.collect();
                    attributes.sort();
                    expected.push(RecordedPiece::Tag(text(&token[1]), attributes));
                }
                Some("EndTag") => {
                    expected.push(RecordedPiece::Tag(
                        format!("/{}", text(&token[1])),
                        Vec::new(),
                    ));
                }
                Some("Character") => {
                    // Drop NULs: no consumer needs them, and html5ever drops them when it builds a
                    // tree.
                    let text = text(&token[1]).replace('\0', "");
                    match expected.last_mut() {
                        _ if text.is_empty() => {}
                        Some(RecordedPiece::Text(before)) => before.push_str(&text),
                        _ => expected.push(RecordedPiece::Text(text)),
                    }
                }
                _ => {}
            }
        }
        expected
    }

    /// Returns the text to put before the input of the case, so that the tokenizer reads the input
    /// in `state`. Also returns the name of the element that this text opens.
    fn before(&self, state: &str) -> (String, String) {
        let open = match state {
            "Data state" => return (String::new(), String::new()),
            "CDATA section state" => return ("<svg><![CDATA[".to_owned(), String::new()),
            "PLAINTEXT state" => "plaintext",
            "RCDATA state" => "title",
            "RAWTEXT state" => "xmp",
            "Script data state" => "script",
            other => panic!("unknown state {other}"),
        };
        (format!("<{open}>"), open.to_owned())
    }

    /// Returns whether reading the input in `state` gives the tokens that the case expects.
    fn holds_in(&self, state: &str) -> bool {
        let (before, open) = self.before(state);
        let mut input = self.input.clone();
        let mut expected = self.expected();
        if self.double_escaped {
            input = unescaped(&input);
        }
        // The case may be about another element than the one that `before` opens. Rename the case's
        // element, because the tokenizer treats the two elements alike.
        if !self.last_start_tag.is_empty() && !open.is_empty() {
            input = renamed(&input, &self.last_start_tag, &open);
            for seen in &mut expected {
                let (RecordedPiece::Tag(text, _) | RecordedPiece::Text(text)) = seen;
                *text = renamed(text, &self.last_start_tag, &open);
            }
        }
        seen(&before, &input) == expected
    }
}

#[test]
fn html5lib_tokens_are_seen_as_tags_and_text() {
    let (mut run, mut different) = (0, BTreeSet::new());
    for (name, file) in FILES {
        let file: TokenizerTestFile =
            serde_json::from_str(file).unwrap_or_else(|e| panic!("{name}: {e}"));
        for case in &file.tests {
            let states = case.initial_states.iter().map(String::as_str);
            let data = case.initial_states.is_empty().then_some("Data state");
            for state in states.chain(data) {
                run += 1;
                if !case.holds_in(state) {
                    different.insert(format!("{name}: {} ({state})", case.description));
                }
            }
        }
    }
    assert!(run > 1_500, "{run} cases");
    let listed = KNOWN
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let listed: BTreeSet<String> = listed.map(str::to_owned).collect();
    let unlisted: Vec<_> = different.difference(&listed).collect();
    let fixed: Vec<_> = listed.difference(&different).collect();
    assert!(
        unlisted.is_empty() && fixed.is_empty(),
        "{run} cases; known-tokenizer.txt lacks {unlisted:#?} and has too much: {fixed:#?}"
    );
}

#[test]
fn two_consumers_of_one_pass_see_the_same() {
    let html = "<p class=a>text<br></p><svg><a href=b/></svg>";
    let (first, second) = walk_html(
        html,
        1_000,
        (ContentRecorder::default(), ContentRecorder::default()),
    );
    assert_eq!(first.0.len(), 7);
    assert_eq!(first.0, second.0);
}
