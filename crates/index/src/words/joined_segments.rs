//! Joins segments that UAX 29 separates, but that people read and type as one word.

use super::is_paired;

/// Maximum number of letters before a raised digit that belongs to the word, as in `km²`. After a
/// longer word, the digit refers to a footnote.
const MAX_LETTERS_BEFORE_POWER: usize = 2;

/// Returns whether a segment and the text after it are parts of one word: chemical formulas
/// (`CO₂`), units with a power (`km²`), and Hebrew abbreviations with typographic quotation marks.
pub(super) fn are_joined(segment: &str, rest: &str) -> bool {
    let (Some(before), Some(after)) = (segment.chars().next_back(), rest.chars().next()) else {
        return false;
    };
    // Most boundaries are at spaces and ASCII punctuation.
    if before.is_ascii() && after.is_ascii() {
        return false;
    }
    let is_letter = |c: char| c.is_alphabetic() && !is_paired(c);
    match (before, after) {
        (before, '\u{2080}'..='\u{2089}') => {
            is_letter(before) || is_lowered_digit(before) && !segment.starts_with(is_lowered_digit)
        }
        ('\u{2080}'..='\u{2089}', after) => {
            after.is_alphanumeric() && !is_paired(after) && !segment.starts_with(is_lowered_digit)
        }
        (_, '\u{B2}' | '\u{B3}' | '\u{B9}' | '\u{2070}' | '\u{2074}'..='\u{2079}') => {
            segment.chars().all(is_letter) && segment.chars().count() <= MAX_LETTERS_BEFORE_POWER
        }
        (before, '\u{201C}' | '\u{201D}') => {
            is_hebrew_letter(before) && rest.chars().nth(1).is_some_and(is_hebrew_letter)
        }
        // Such a quotation mark is at the end of a segment only if it was joined to its start.
        ('\u{201C}' | '\u{201D}', after) => {
            is_hebrew_letter(after) && segment.chars().rev().nth(1).is_some_and(is_hebrew_letter)
        }
        _ => false,
    }
}

fn is_lowered_digit(c: char) -> bool {
    matches!(c, '\u{2080}'..='\u{2089}')
}

/// Returns whether a character is a Hebrew letter, as UAX 29 defines it.
pub(crate) fn is_hebrew_letter(c: char) -> bool {
    matches!(c,
        '\u{5D0}'..='\u{5EA}' | '\u{5EF}'..='\u{5F2}' | '\u{FB1D}' | '\u{FB1F}'..='\u{FB28}'
        | '\u{FB2A}'..='\u{FB4F}')
}
