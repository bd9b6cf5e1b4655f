//! Makes untrusted text safe to display.

use std::borrow::Cow;

/// Returns whether a character changes the direction of the text around it, as characters with the
/// property `Bidi_Control` do (Unicode, UAX #9 section 2). Such characters can make `exe.txt` look
/// like `txt.exe`.
#[must_use]
pub fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}')
}

/// Removes characters that change the direction of text, so that it is shown in written order.
#[must_use]
pub fn without_bidi_controls(text: &str) -> Cow<'_, str> {
    match text.contains(is_bidi_control) {
        true => Cow::Owned(text.replace(is_bidi_control, "")),
        false => Cow::Borrowed(text),
    }
}

/// Makes a line of text safe to display on a terminal or in a page: removes bidi controls, and
/// replaces each control character, including line breaks, by U+FFFD.
#[must_use]
pub fn safe_line(line: &str) -> Cow<'_, str> {
    let line = without_bidi_controls(line);
    match line.contains(char::is_control) {
        true => Cow::Owned(line.replace(char::is_control, "\u{fffd}")),
        false => line,
    }
}

/// Makes several lines safe to display, as [`safe_line`] does for one. Line breaks and tabs stay.
#[must_use]
pub fn safe_lines(lines: &str) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    let lines = without_bidi_controls(lines);
    match lines.contains(steers) {
        true => Cow::Owned(lines.replace(steers, "\u{fffd}")),
        false => lines,
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::{is_bidi_control, safe_line, safe_lines};

    #[test]
    fn uax9_2_every_directional_formatting_character_is_left_out() {
        let all: String = ('\0'..=char::MAX).filter(|c| is_bidi_control(*c)).collect();
        assert_eq!(all.chars().count(), 12);
        assert_eq!(safe_line(&format!("a{all}b")), "ab");
        assert_eq!(safe_line("report\u{202e}gpj.exe"), "reportgpj.exe");
    }

    #[test]
    fn terminal_control_characters_are_replaced() {
        assert_eq!(
            safe_line("\u{1b}[2Ja\nb\u{9b}"),
            "\u{fffd}[2Ja\u{fffd}b\u{fffd}"
        );
        assert_eq!(safe_lines("a\tb\r\n\u{7}"), "a\tb\u{fffd}\n\u{fffd}");
        // Joiners stay, because they give letters and emoji their shape.
        let plain = "مرحبا می\u{200c}خواهم";
        assert!(matches!(safe_line(plain), Cow::Borrowed(text) if text == plain));
    }
}
