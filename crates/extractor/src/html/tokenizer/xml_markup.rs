//! XML markup other than tags: comments, processing instructions and document types.

use memchr::{memchr, memchr3, memmem};

/// Returns the offset after the comment, processing instruction or declaration that begins at `at`
/// (XML 1.0, sections 2.5, 2.6 and 2.8). Unterminated markup extends to the end of the page.
pub(super) fn end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let end = if rest.starts_with(b"<!--") {
        after(rest, 4, b"-->")
    } else if rest.starts_with(b"<?") {
        after(rest, 2, b"?>")
    } else if rest.starts_with(b"<!") {
        end_of_declaration(rest)
    } else {
        memchr(b'>', rest).map(|end| end + 1)
    };
    end.map_or(bytes.len(), |end| at + end)
}

fn after(rest: &[u8], from: usize, mark: &[u8]) -> Option<usize> {
    let at = memmem::find(rest.get(from..)?, mark)?;
    Some(from + at + mark.len())
}

/// Returns the end of a document type. If it contains declarations in brackets, it ends after the
/// brackets.
fn end_of_declaration(rest: &[u8]) -> Option<usize> {
    let (mut at, mut is_in_subset) = (2, false);
    loop {
        at += memchr3(b'>', b'[', b']', &rest[at..])?;
        match rest[at] {
            b'[' => is_in_subset = true,
            b']' => is_in_subset = false,
            _ if !is_in_subset => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::end;

    #[test]
    fn xml_2_8_markup_ends() {
        for (markup, rest) in [
            ("<!-- a > b --!> c -->", "<p>"),
            ("<!--> c -->", "<p>"),
            ("<?php if (a > b) ?>", "<p>"),
            ("<!DOCTYPE html PUBLIC 'a' \"b\">", "<p>"),
            ("<!DOCTYPE html [ <!ENTITY a 'b'> <!ENTITY c 'd'> ]>", "<p>"),
            ("</>", "<p>"),
            ("<!-- never", ""),
            ("<?never >", ""),
            ("<!DOCTYPE html [ <!ENTITY a 'b'>", ""),
        ] {
            let page = format!("x{markup}{rest}");
            assert_eq!(end(page.as_bytes(), 1), 1 + markup.len(), "{markup}");
        }
    }
}
