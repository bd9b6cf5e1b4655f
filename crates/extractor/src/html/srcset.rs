//! The URLs in a `srcset`.

use crate::collapsed_text_builder::is_space;

/// Returns the URLs of the image candidates in `value`, without sizes and densities ("parse a
/// srcset attribute", HTML Standard 4.8.4.2.1). Unlike in the standard, candidates with invalid
/// descriptors are included.
pub(super) fn urls(value: &str) -> impl Iterator<Item = &str> {
    let mut rest = value;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c == ',' || is_white(c));
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(is_white).unwrap_or(rest.len());
        let (url, after) = rest.split_at(end);
        let bare = url.trim_end_matches(',');
        rest = if bare.len() < url.len() {
            after
        } else {
            after_descriptors(after)
        };
        Some(bare)
    })
}

/// Returns the text after the comma that ends the descriptors. A comma in parentheses doesn't end
/// the descriptors.
fn after_descriptors(text: &str) -> &str {
    let mut in_parentheses = false;
    let end = text.bytes().position(|byte| {
        match byte {
            b'(' => in_parentheses = true,
            b')' => in_parentheses = false,
            _ => {}
        }
        byte == b',' && !in_parentheses
    });
    end.map_or("", |end| &text[end + 1..])
}

fn is_white(c: char) -> bool {
    c.is_ascii() && is_space(c as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, expected: &[&str]) {
        assert_eq!(urls(value).collect::<Vec<_>>(), expected, "{value}");
    }

    #[test]
    fn html_4_8_4_2_1_srcset() {
        check("", &[]);
        check(" , ,", &[]);
        check("a", &["a"]);
        check("a 1x, b 2x", &["a", "b"]);
        check("a, b 2x,c", &["a", "b", "c"]);
        check("a,b 1x", &["a,b"]);
        check("a,, b", &["a", "b"]);
        check("\n a  100w 50h ,\tb", &["a", "b"]);
        check("a (x, y) z, b", &["a", "b"]);
        check("a (x, b", &["a"]);
        check(
            "data:image/gif;base64,AA== 1x, b 2x",
            &["data:image/gif;base64,AA==", "b"],
        );
        check("a 1x b, c", &["a", "c"]);
    }
}
