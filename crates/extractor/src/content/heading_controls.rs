//! Removes controls from headings: permalinks, edit links and buttons.

use super::block_builder::{BlockBuilder, HeadingControl, TextPositionWithWeights};
use super::role_hints::RoleHints;
use crate::html::element_name::{self, ElementName};
use crate::html::tokenizer::Tag;

/// Maximum number of controls to remove from one heading.
const MAX_CONTROLS: usize = 16;

/// Classes of links that lead to the heading itself.
const PERMALINKS: [&str; 16] = [
    "anchor-link",
    "anchorjs-link",
    "autolink",
    "direct-link",
    "doc-anchor",
    "hash-link",
    "header-anchor",
    "header-link",
    "headerlink",
    "heading-anchor",
    "heading-link",
    "heading-permalink",
    "headinglink",
    "permalink",
    "section-link",
    "self-link",
];

/// Classes of other controls in a heading, such as a link for editing the section or a copy button.
const TOOLS: [&str; 8] = [
    "btn-copy",
    "copy-button",
    "copybtn",
    "edit-link",
    "edit-section",
    "editsection",
    "mw-editsection",
    "mw-editsection-like",
];

/// Texts of links that point to their own heading.
const LINK_WORDS: [&str; 7] = [
    "copy link",
    "direct link",
    "link to this heading",
    "link to this section",
    "permalink",
    "permanent link",
    "self-link",
];

/// Tracks the controls (permalinks, edit links, buttons) found so far in the open heading.
#[derive(Debug, Default)]
pub(super) struct HeadingControlTracker {
    open: Option<OpenHeadingControl>,
    found: Vec<HeadingControl>,
}

/// An open element within a heading that may be a control.
#[derive(Debug)]
struct OpenHeadingControl {
    name: ElementName,
    /// Number of open elements with this name: the control itself, and elements within it.
    count: u32,
    from: TextPositionWithWeights,
    kind: HeadingControlKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadingControlKind {
    /// An element that is always a control.
    Element,
    /// A link to a fragment, which is removed from the heading if its text is a sign or one of
    /// [`LINK_WORDS`].
    Fragment,
    /// Any other link, which is removed from the heading if its text is only a sign, such as `#`.
    Link,
}

/// What was removed from a heading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RemovedHeadingControlKind {
    #[default]
    Nothing,
    /// Every removed control was a link whose text is only a permalink sign, such as `#`.
    Signs,
    /// At least one removed control had other text, such as `edit`.
    Words,
}

impl HeadingControlTracker {
    /// Records the start tag of an element within a heading.
    pub(super) fn start(&mut self, tag: &Tag<'_>, traits: &RoleHints<'_>, flow: &BlockBuilder) {
        if let Some(open) = &mut self.open {
            open.count += u32::from(open.name == tag.name);
            return;
        }
        if let Some(kind) = kind_of(tag, traits)
            && self.found.len() < MAX_CONTROLS
        {
            self.open = Some(OpenHeadingControl {
                name: tag.name,
                count: 1,
                from: flow.place(),
                kind,
            });
        }
    }

    /// Records an end tag within a heading.
    pub(super) fn end(&mut self, tag: ElementName, flow: &BlockBuilder) {
        let Some(open) = self.open.as_mut().filter(|open| open.name == tag) else {
            return;
        };
        open.count -= 1;
        if open.count > 0 {
            return;
        }
        let Some(open) = self.open.take() else { return };
        let to = flow.place();
        let text = flow.text[open.from.text..to.text].trim();
        let is_sign = tag == element_name::A && is_sign(text);
        let is_control = match open.kind {
            HeadingControlKind::Element => true,
            HeadingControlKind::Fragment => is_sign || is_link_word(text),
            HeadingControlKind::Link => is_sign,
        };
        if is_control && !text.is_empty() {
            self.found.push(HeadingControl {
                from: open.from,
                to,
                is_sign,
            });
        }
    }

    /// Removes the controls (such as permalinks) from the finished heading. Removes nothing if no
    /// words would be left.
    pub(super) fn finish(&mut self, flow: &mut BlockBuilder) -> RemovedHeadingControlKind {
        self.open = None;
        let controls = std::mem::take(&mut self.found);
        if controls.is_empty() || !flow.has_letters_outside(&controls) {
            return RemovedHeadingControlKind::Nothing;
        }
        flow.remove_controls(&controls);
        match controls.iter().all(|control| control.is_sign) {
            true => RemovedHeadingControlKind::Signs,
            false => RemovedHeadingControlKind::Words,
        }
    }
}

fn kind_of(tag: &Tag<'_>, traits: &RoleHints<'_>) -> Option<HeadingControlKind> {
    let has_class = |names: &[&str]| {
        let classes = traits.class.unwrap_or_default().split_ascii_whitespace();
        classes
            .take(16)
            .any(|class| names.iter().any(|name| class.eq_ignore_ascii_case(name)))
    };
    let is_hidden = tag.attributes.has_value("aria-hidden", "true");
    if tag.name == element_name::BUTTON || is_hidden || has_class(&TOOLS) {
        return Some(HeadingControlKind::Element);
    }
    if tag.name != element_name::A {
        return None;
    }
    let href = tag.attributes.get("href")?;
    Some(match href.trim_start().starts_with('#') {
        true if has_class(&PERMALINKS) => HeadingControlKind::Element,
        true => HeadingControlKind::Fragment,
        false => HeadingControlKind::Link,
    })
}

/// Returns whether the text of a link is only a permalink sign, or empty.
pub(super) fn is_sign(text: &str) -> bool {
    let is_sign_char = |c: char| {
        matches!(
            c,
            '#' | '¶' | '§' | '🔗' | '⚓' | '∞' | '⁋' | '☍' | '\u{fe0e}' | '\u{fe0f}' | '\u{200b}'
                ..='\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{e000}'..='\u{f8ff}'
        ) || c.is_whitespace()
    };
    text.chars().all(is_sign_char)
}

fn is_link_word(text: &str) -> bool {
    LINK_WORDS
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word))
}
