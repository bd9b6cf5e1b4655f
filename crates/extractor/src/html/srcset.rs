//! The addresses in a `srcset`.

use crate::text::is_space;

/// The addresses of the image candidates in `value`: "parse a srcset attribute" of the HTML
/// Standard (4.8.4.2.1, sizes and densities are passed over). A candidate whose descriptors
/// are wrong counts too.
pub(super) fn addresses(value: &str) -> impl Iterator<Item = &str> {
    let mut rest = value;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c == ',' || is_white(c));
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(is_white).unwrap_or(rest.len());
        let (address, behind) = rest.split_at(end);
        let bare = address.trim_end_matches(',');
        rest = if bare.len() < address.len() {
            behind
        } else {
            behind_descriptors(behind)
        };
        Some(bare)
    })
}

/// The rest behind the comma that ends the descriptors; one in parentheses does not.
fn behind_descriptors(text: &str) -> &str {
    let mut within = false;
    let end = text.bytes().position(|byte| {
        match byte {
            b'(' => within = true,
            b')' => within = false,
            _ => {}
        }
        byte == b',' && !within
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
        assert_eq!(addresses(value).collect::<Vec<_>>(), expected, "{value}");
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
