//! Where the words of a text end.

use html5ever::{LocalName, local_name};

/// Elements that begin a new line, or a new cell: the words around them are two.
pub(super) fn separates_words(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("br")
            | local_name!("p")
            | local_name!("div")
            | local_name!("li")
            | local_name!("ul")
            | local_name!("ol")
            | local_name!("dl")
            | local_name!("dt")
            | local_name!("dd")
            | local_name!("td")
            | local_name!("th")
            | local_name!("tr")
            | local_name!("table")
            | local_name!("h1")
            | local_name!("h2")
            | local_name!("h3")
            | local_name!("h4")
            | local_name!("h5")
            | local_name!("h6")
            | local_name!("hr")
            | local_name!("section")
            | local_name!("article")
            | local_name!("header")
            | local_name!("footer")
            | local_name!("blockquote")
            | local_name!("pre")
            | local_name!("figure")
            | local_name!("figcaption")
            | local_name!("option")
    )
}
