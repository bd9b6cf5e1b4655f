//! The search box of other people's pages: the snippet of a server and the static search have the
//! same one.
//!
//! Its parts are texts to be put together, scripts within a block or a function of their own.
//! `box.js` asks whatever it is given: a server, or the files of a static search.

/// Draws results, and asks for them while one types.
pub const RESULTS: &str = include_str!("search_box/results.js");
/// The searches that a reader's browser keeps. Comes after [`RESULTS`].
pub const RECENT: &str = include_str!("search_box/recent.js");
/// The style that the box and a server's own search page have in common.
pub const SHARED_STYLE: &str = include_str!("search_box/shared.css");
/// The style of the box. Comes after [`SHARED_STYLE`].
pub const BOX_STYLE: &str = include_str!("search_box/box.css");

/// The box and the dialog, whole, with their style in a template literal.
pub const BOX: [&str; 7] = [
    "const STYLE = `",
    SHARED_STYLE,
    BOX_STYLE,
    "`;\n",
    RESULTS,
    RECENT,
    include_str!("search_box/box.js"),
];

#[cfg(test)]
mod tests {
    use super::{BOX, BOX_STYLE, SHARED_STYLE};

    #[test]
    fn the_style_may_stand_in_a_template_literal() {
        let style = [SHARED_STYLE, BOX_STYLE].concat();
        assert!(!style.contains(['`', '\\']) && !style.contains("${"));
    }

    #[test]
    fn the_box_runs_and_loads_nothing_from_elsewhere() {
        let text = BOX.concat();
        for word in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "eval(",
            "url(",
            "@import",
            "://",
        ] {
            assert!(!text.contains(word), "{word}");
        }
    }
}
