//! Splits a word into parts that people also type separately.

use std::ops::Range;

/// Returns the parts of `word`, split at punctuation such as dots, underscores and apostrophes, and
/// at capitals that start a new part. A word without such places is one part.
pub(super) fn parts(word: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut chars = word.char_indices().peekable();
    let mut before: Option<char> = None;
    while let Some((at, c)) = chars.next() {
        let after = chars.peek().map(|(_, c)| *c);
        if is_joint(c) {
            if start < at {
                parts.push(start..at);
            }
            start = at + c.len_utf8();
        } else if start < at && starts_part(before, c, after) {
            parts.push(start..at);
            start = at;
        }
        before = Some(c);
    }
    if start < word.len() {
        parts.push(start..word.len());
    }
    parts
}

fn is_joint(c: char) -> bool {
    matches!(
        c,
        '.' | '_'
            | '\''
            | '\u{2019}'
            | ':'
            | ','
            | '\u{B7}'
            | '\u{5F3}'
            | '\u{66B}'
            | '\u{66C}'
            | '\u{FF0E}'
    )
}

/// Returns true if a part of a word starts at the capital `c`. For example, `parseHtml` is split at
/// `H`, and `HTTPServer` at `S`, because a lower-case letter follows.
fn starts_part(before: Option<char>, c: char, after: Option<char>) -> bool {
    c.is_uppercase()
        && before.is_some_and(|before| {
            before.is_lowercase() || before.is_uppercase() && after.is_some_and(char::is_lowercase)
        })
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[track_caller]
    fn check(word: &str, expected: &[&str]) {
        let parts_found: Vec<_> = parts(word).into_iter().map(|part| &word[part]).collect();
        assert_eq!(parts_found, expected);
    }

    #[test]
    fn at_joints_and_capitals() {
        check("word", &["word"]);
        check("os.path", &["os", "path"]);
        check("__init__", &["init"]);
        check("parseHTMLPage", &["parse", "HTML", "Page"]);
        check("3.14", &["3", "14"]);
        check("iPhone", &["i", "Phone"]);
        check("HTTP", &["HTTP"]);
    }
}
