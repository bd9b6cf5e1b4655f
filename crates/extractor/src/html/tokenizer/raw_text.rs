//! Finds the end of text without markup: `title`, `style`, `script` and the like.

use memchr::{memchr, memchr_iter, memchr2};

use crate::collapsed_text_builder::is_space;

/// Returns the offset of the first end tag of the element `name` at or after `from`.
pub(super) fn end_of_text(bytes: &[u8], from: usize, name: &[u8]) -> Option<usize> {
    let mut tags = memchr_iter(b'<', &bytes[from..]).map(|at| from + at);
    tags.find(|at| is_end_tag(&bytes[*at..], name))
}

/// The state at a position in a script's text, which depends on the comments and tags before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScriptDataState {
    Plain,
    /// After `<!--`: an end tag still ends the script.
    Escaped,
    /// After `<!-- <script>`: the next end tag ends this inner script, not the whole script.
    DoubleEscaped,
}

/// Returns the offset of the end tag of the script element `name`, at or after `from` (HTML
/// Standard 13.2.5.15 to 13.2.5.31).
pub(super) fn end_of_script(bytes: &[u8], from: usize, name: &[u8]) -> Option<usize> {
    let (mut at, mut state, mut dashes) = (from, ScriptDataState::Plain, from);
    loop {
        let rest = &bytes[at..];
        at += match state {
            ScriptDataState::Plain => memchr(b'<', rest)?,
            ScriptDataState::Escaped | ScriptDataState::DoubleEscaped => memchr2(b'<', b'>', rest)?,
        };
        let rest = &bytes[at..];
        if rest[0] == b'>' {
            // The two dashes of `<!--` may also be the first two of `-->`, as in `<!-->`.
            if bytes[dashes..at].ends_with(b"--") {
                state = ScriptDataState::Plain;
            }
            at += 1;
            continue;
        }
        match state {
            ScriptDataState::Plain | ScriptDataState::Escaped if is_end_tag(rest, name) => {
                return Some(at);
            }
            ScriptDataState::Plain if rest.starts_with(b"<!--") => {
                (state, dashes) = (ScriptDataState::Escaped, at + 2);
                at += 4;
            }
            ScriptDataState::Escaped if is_script(&rest[1..]) => {
                state = ScriptDataState::DoubleEscaped;
                at += b"<script>".len();
            }
            ScriptDataState::DoubleEscaped
                if rest.get(1) == Some(&b'/') && is_script(&rest[2..]) =>
            {
                state = ScriptDataState::Escaped;
                at += b"</script>".len();
            }
            _ => at += 1,
        }
    }
}

/// Returns whether `rest` begins with `</`, then `name`, then a character that ends a tag name.
pub(super) fn is_end_tag(rest: &[u8], name: &[u8]) -> bool {
    rest.get(1) == Some(&b'/') && is_name(&rest[2..], name)
}

fn is_script(rest: &[u8]) -> bool {
    is_name(rest, b"script")
}

fn is_name(rest: &[u8], name: &[u8]) -> bool {
    rest.get(..name.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(name))
        && rest
            .get(name.len())
            .is_some_and(|byte| is_space(*byte) || matches!(byte, b'/' | b'>'))
}
