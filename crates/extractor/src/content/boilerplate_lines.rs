//! Boilerplate lines that occur on pages of any kind.

/// Maximum bytes of a boilerplate line. Longer blocks are not boilerplate, however they begin.
const MAX_PHRASE_BYTES: usize = 160;

/// Maximum bytes of a Texinfo navigation line.
const MAX_TEXINFO_BYTES: usize = 480;

/// The beginnings of boilerplate lines, in lower case.
const BEGINNINGS: [&str; 26] = [
    "©",
    "(c) ",
    "copyright ",
    "all rights reserved",
    "skip to ",
    "jump to ",
    "back to top",
    "this site uses cookies",
    "we use cookies",
    "this website uses cookies",
    "accept cookies",
    "accept all",
    "advertisement",
    "sponsored",
    "share this",
    "share on ",
    "follow us",
    "sign up for ",
    "subscribe to ",
    "read more",
    "continue reading",
    "powered by ",
    "please enable javascript",
    "javascript is ",
    "you need javascript",
    "leave a comment",
];

/// Returns whether a block is a boilerplate line, such as `Skip to main content`.
pub(super) fn is_phrase(text: &str) -> bool {
    let Some(first) = text
        .bytes()
        .next()
        .filter(|_| text.len() <= MAX_PHRASE_BYTES)
    else {
        return false;
    };
    // Compare the first letter first, because it rules out most blocks.
    let may_begin = |beginning: &&&str| beginning.as_bytes()[0] == first.to_ascii_lowercase();
    let mut candidates = BEGINNINGS.iter().filter(may_begin);
    candidates.any(|beginning| begins(text, beginning))
}

/// Returns whether a block is Texinfo's line of links to the previous, next and upper pages.
pub(super) fn is_texinfo_navigation(text: &str) -> bool {
    let begins = ["Next: ", "Previous: ", "Prev: ", "Up: "];
    let continuations = [
        ", Previous: ",
        ", Prev: ",
        ", Up: ",
        "[Contents]",
        "[Index]",
    ];
    text.len() <= MAX_TEXINFO_BYTES
        && begins.iter().any(|label| text.starts_with(label))
        && continuations.iter().any(|label| text.contains(label))
}

fn begins(text: &str, beginning: &str) -> bool {
    text.get(..beginning.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(beginning))
        || text.eq_ignore_ascii_case(beginning.trim_end())
}

#[cfg(test)]
mod tests {
    use super::{is_phrase, is_texinfo_navigation};

    #[test]
    fn a_boilerplate_line_is_recognised_by_its_beginning() {
        for line in [
            "© 2026",
            "(C) Example",
            "Copyright 2026",
            "COPYRIGHT",
            "Skip to main content",
        ] {
            assert!(is_phrase(line), "{line}");
        }
        assert!(is_texinfo_navigation(
            "Next: Loops, Previous: Lists, Up: Top [Contents][Index]"
        ));
        assert!(is_texinfo_navigation("Up: Top [Contents]"));
        assert!(!is_texinfo_navigation("Next: boil the water."));
        let long = format!("Copyright {}", "of a very long story ".repeat(10));
        for line in ["", "Copyrighted", "Skipping", "A copyright", &long] {
            assert!(!is_phrase(line), "{line}");
        }
    }
}
