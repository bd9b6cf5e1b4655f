//! html5lib's cases of tokens: the tags and attributes that a consumer sees are those expected.

use std::collections::{BTreeMap, BTreeSet};

use html5ever::tokenizer::Tag;
use serde::Deserialize;

use super::consumer::{At, Consumer};
use super::tokenizer_input::Pump;

/// Cases that are knowingly seen otherwise.
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
struct File {
    tests: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
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

/// A tag: its name, with a slash for an end tag, and its attributes.
type Seen = (String, BTreeMap<String, String>);

#[derive(Default)]
struct Recorder(Vec<Seen>);

impl Consumer for Recorder {
    fn start(&mut self, tag: &Tag, _at: At) {
        let attributes = tag.attrs.iter();
        let attributes = attributes.map(|one| (one.name.local.to_string(), one.value.to_string()));
        self.0.push((tag.name.to_string(), attributes.collect()));
    }

    fn end(&mut self, tag: &Tag, _at: At) {
        self.0.push((format!("/{}", &*tag.name), BTreeMap::new()));
    }

    fn wants_text(&self, _at: At) -> bool {
        false
    }

    fn text(&mut self, _text: &str, _at: At) {}

    fn tag_was_cut(&mut self) {
        panic!("no case has so many attributes");
    }
}

fn seen<'t>(before: &'t str, parts: impl Iterator<Item = &'t str>) -> Vec<Seen> {
    let mut pump = Pump::new(Recorder::default(), 1_000);
    pump.push(before);
    parts.for_each(|part| pump.push(part));
    let mut seen = pump.finish().0;
    seen.drain(..before.matches('<').count().min(1));
    seen
}

/// `\u0041` as `A`.
fn unescaped(text: &str) -> String {
    let mut parts = text.split("\\u");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let code = u32::from_str_radix(&part[..4], 16).unwrap();
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        format!("{text}{character}{}", &part[4..])
    })
}

/// `text` with each `name` in it, in any letter case, replaced.
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

impl Case {
    fn expected(&self) -> Vec<Seen> {
        let text = |value: &serde_json::Value| {
            let text = value.as_str().unwrap().to_owned();
            if self.double_escaped {
                unescaped(&text)
            } else {
                text
            }
        };
        let tags = self.output.iter().filter_map(|token| {
            let token = token.as_array()?;
            match token[0].as_str()? {
                "StartTag" => {
                    let attributes = token[2].as_object().unwrap().iter();
                    let attributes = attributes.map(|(name, value)| {
                        let name = serde_json::Value::from(name.clone());
                        (text(&name), text(value))
                    });
                    Some((text(&token[1]), attributes.collect()))
                }
                "EndTag" => Some((format!("/{}", text(&token[1])), BTreeMap::new())),
                _ => None,
            }
        });
        tags.collect()
    }

    /// The text that must stand before the input to bring a page's reader into `state`, and the
    /// name of the element that it opens.
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

    /// Whether the case is seen as expected in `state`, however its text is cut.
    fn holds_in(&self, state: &str) -> bool {
        let (before, open) = self.before(state);
        let mut input = self.input.clone();
        let mut expected = self.expected();
        if self.double_escaped {
            input = unescaped(&input);
        }
        // Which element it is makes no difference to the tokenizer.
        if !self.last_start_tag.is_empty() && !open.is_empty() {
            input = renamed(&input, &self.last_start_tag, &open);
            for (name, _) in &mut expected {
                *name = renamed(name, &self.last_start_tag, &open);
            }
        }
        let whole = seen(&before, [input.as_str()].into_iter());
        let singly = input.split_inclusive(|_: char| true);
        assert_eq!(whole, seen(&before, singly), "{}", self.description);
        whole == expected
    }
}

#[test]
fn html5lib_tokens_are_seen_as_tags_and_attributes() {
    let (mut run, mut different) = (0, BTreeSet::new());
    for (name, file) in FILES {
        let file: File = serde_json::from_str(file).unwrap_or_else(|e| panic!("{name}: {e}"));
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
    let known = KNOWN
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let known: BTreeSet<String> = known.map(str::to_owned).collect();
    let unlisted: Vec<_> = different.difference(&known).collect();
    let mended: Vec<_> = known.difference(&different).collect();
    assert!(
        unlisted.is_empty() && mended.is_empty(),
        "{run} cases; known-tokenizer.txt lacks {unlisted:#?} and has too much: {mended:#?}"
    );
}

#[test]
fn two_consumers_of_one_pass_see_the_same() {
    let mut pump = Pump::new((Recorder::default(), Recorder::default()), 1_000);
    pump.push("<p class=a>text<br></p><svg><a href=b/></svg>");
    let (first, second) = pump.finish();
    assert_eq!(first.0.len(), 6);
    assert_eq!(first.0, second.0);
}
