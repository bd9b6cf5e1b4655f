//! The scripts and styles of the search box that other web pages embed.
//!
//! The script `dialog.js` of `crawl serve` and the script `search.js` of a static search contain
//! [`BOX`]. The server's own search page uses some of its parts. `box.js` gets the results from a
//! source that the surrounding script defines: a server, or the files of a static search.

/// The script that requests results as the user types, and renders them.
pub const RESULTS: &str = include_str!("search_box/results.js");
/// The script for the searches stored in the user's browser. Must come after [`RESULTS`].
pub const RECENT: &str = include_str!("search_box/recent.js");
/// The style that the box shares with the server's search page.
pub const SHARED_STYLE: &str = include_str!("search_box/shared.css");
/// The style of the box. Must come after [`SHARED_STYLE`].
pub const BOX_STYLE: &str = include_str!("search_box/box.css");

/// The parts of the complete script of the search box and its dialog, in order. The script contains
/// the styles in a template literal.
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
    fn the_style_fits_in_a_template_literal() {
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
