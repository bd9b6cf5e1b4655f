//! The elements at which the words of a text end.

use super::name::{self, Name};

/// Elements that begin a new line, or a new cell: the words around them are two.
pub(super) fn separates_words(name: Name) -> bool {
    matches!(
        name,
        name::BR
            | name::P
            | name::DIV
            | name::LI
            | name::UL
            | name::OL
            | name::DL
            | name::DT
            | name::DD
            | name::TD
            | name::TH
            | name::TR
            | name::TABLE
            | name::H1
            | name::H2
            | name::H3
            | name::H4
            | name::H5
            | name::H6
            | name::HR
            | name::SECTION
            | name::ARTICLE
            | name::HEADER
            | name::FOOTER
            | name::BLOCKQUOTE
            | name::PRE
            | name::FIGURE
            | name::FIGCAPTION
            | name::OPTION
    )
}
