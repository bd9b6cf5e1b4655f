//! Names of elements, as numbers that are cheap to compare and to keep.

/// The name of an element, letter case aside. Names of up to [`MAX_EXACT_BYTES`] are exact;
/// longer ones, which no standard has, are told apart by a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name(u128);

/// The longest name that is its own number.
const MAX_EXACT_BYTES: usize = 15;

impl Name {
    /// The number of a name as it stands in a page.
    #[inline]
    pub(crate) const fn of(name: &[u8]) -> Name {
        let (mut at, mut short) = (0, 0_u64);
        // Most names are this short.
        while at < name.len() && at < 8 {
            short = short << 8 | name[at].to_ascii_lowercase() as u64;
            at += 1;
        }
        let mut number = short as u128;
        while at < name.len() {
            number = number.rotate_left(8) ^ name[at].to_ascii_lowercase() as u128;
            at += 1;
        }
        // The first byte of an exact name is 0 here, so that no long name is taken for it.
        if name.len() > MAX_EXACT_BYTES {
            number |= 0xff << 120;
        }
        Name(number)
    }
}

macro_rules! names {
    ($($constant:ident $name:literal)*) => {
        $(pub(crate) const $constant: Name = Name::of($name);)*
    };
}

names! {
    A b"a"
    ADDRESS b"address"
    ANNOTATION b"annotation"
    ANNOTATION_XML b"annotation-xml"
    APPLET b"applet"
    AREA b"area"
    ARTICLE b"article"
    ASIDE b"aside"
    AUDIO b"audio"
    B b"b"
    BASE b"base"
    BASEFONT b"basefont"
    BGSOUND b"bgsound"
    BIG b"big"
    BLOCKQUOTE b"blockquote"
    BODY b"body"
    BR b"br"
    BUTTON b"button"
    CAPTION b"caption"
    CENTER b"center"
    CODE b"code"
    COL b"col"
    DATALIST b"datalist"
    DD b"dd"
    DEFS b"defs"
    DEL b"del"
    DESC b"desc"
    DETAILS b"details"
    DIALOG b"dialog"
    DIR b"dir"
    DIV b"div"
    DL b"dl"
    DT b"dt"
    EM b"em"
    EMBED b"embed"
    FEIMAGE b"feimage"
    FIELDSET b"fieldset"
    FIGCAPTION b"figcaption"
    FIGURE b"figure"
    FONT b"font"
    FOOTER b"footer"
    FOREIGNOBJECT b"foreignobject"
    FORM b"form"
    FRAME b"frame"
    H1 b"h1"
    H2 b"h2"
    H3 b"h3"
    H4 b"h4"
    H5 b"h5"
    H6 b"h6"
    HEAD b"head"
    HEADER b"header"
    HGROUP b"hgroup"
    HR b"hr"
    HTML b"html"
    I b"i"
    IFRAME b"iframe"
    IMAGE b"image"
    IMG b"img"
    INPUT b"input"
    INS b"ins"
    LABEL b"label"
    LEGEND b"legend"
    LI b"li"
    LINK b"link"
    LISTING b"listing"
    MAIN b"main"
    MATH b"math"
    MENU b"menu"
    META b"meta"
    METADATA b"metadata"
    MI b"mi"
    MN b"mn"
    MO b"mo"
    MS b"ms"
    MTEXT b"mtext"
    NAV b"nav"
    NOBR b"nobr"
    NOEMBED b"noembed"
    NOFRAMES b"noframes"
    NOSCRIPT b"noscript"
    OBJECT b"object"
    OL b"ol"
    OPTGROUP b"optgroup"
    OPTION b"option"
    P b"p"
    PLAINTEXT b"plaintext"
    PRE b"pre"
    Q b"q"
    RT b"rt"
    RUBY b"ruby"
    S b"s"
    SCRIPT b"script"
    SECTION b"section"
    SELECT b"select"
    SMALL b"small"
    SOURCE b"source"
    SPAN b"span"
    STRIKE b"strike"
    STRONG b"strong"
    STYLE b"style"
    SUB b"sub"
    SUMMARY b"summary"
    SUP b"sup"
    SVG b"svg"
    SYMBOL b"symbol"
    TABLE b"table"
    TBODY b"tbody"
    TD b"td"
    TEMPLATE b"template"
    TEXTAREA b"textarea"
    TFOOT b"tfoot"
    TH b"th"
    THEAD b"thead"
    TIME b"time"
    TITLE b"title"
    TR b"tr"
    TRACK b"track"
    TT b"tt"
    U b"u"
    UL b"ul"
    USE b"use"
    VAR b"var"
    VIDEO b"video"
    WBR b"wbr"
    XMP b"xmp"
}

#[cfg(test)]
mod tests {
    use super::Name;

    #[test]
    fn names_differ_by_more_than_letter_case() {
        assert_eq!(Name::of(b"DiV"), super::DIV);
        assert_ne!(Name::of(b"a\0"), super::A);
        let (long, padding) = (b"a-name-of-an-element", [0; 16]);
        assert_eq!(Name::of(long), Name::of(&long.to_ascii_uppercase()));
        assert_ne!(Name::of(long), Name::of(&long[1..]));
        // What folds to the number of a short name is none for all that.
        assert_ne!(Name::of(&[&padding[..], b"a"].concat()), super::A);
    }
}
