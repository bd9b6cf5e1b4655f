//! Represents the names of elements as numbers, which are cheap to compare and to store.

/// The name of an element, ignoring case. A name of up to [`MAX_EXACT_BYTES`] bytes is stored
/// unchanged. A longer name is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElementName(u64);

/// Maximum bytes of a name that is stored exactly.
pub(super) const MAX_EXACT_BYTES: usize = 7;

/// The top byte of each hashed name. The top byte of an exact name is its length.
const HASHED: u64 = 0xff;

impl ElementName {
    /// Creates a name from its bytes in a page.
    pub(crate) const fn of(name: &[u8]) -> ElementName {
        let (mut at, mut hash, mut eight) = (0, 0, 0);
        while at < name.len() {
            // Hash a NUL as 0xff, which never occurs in text. Otherwise a NUL at the end of a name
            // wouldn't change the hash.
            let byte = match name[at] {
                0 if name.len() > MAX_EXACT_BYTES => 0xff,
                byte => byte,
            };
            eight |= (byte as u64) << (8 * (at % 8));
            at += 1;
            if at % 8 == 0 {
                hash = mix(hash, lower_case(eight));
                eight = 0;
            }
        }
        match name.len() {
            0..=MAX_EXACT_BYTES => ElementName::exact(lower_case(eight), name.len()),
            _ => ElementName(mix(hash, lower_case(eight)) >> 8 | HASHED << 56),
        }
    }

    /// Creates a name from the bytes `from..to` of a page.
    #[inline]
    pub(crate) fn at(page: &[u8], from: usize, to: usize) -> ElementName {
        let name = &page[from..];
        match name.first_chunk() {
            // The usual case: read eight bytes at once, which include the name and bytes after it.
            Some(eight) if (1..=MAX_EXACT_BYTES).contains(&(to - from)) => {
                ElementName::beginning(*eight, to - from)
            }
            _ => ElementName::of(&name[..to - from]),
        }
    }

    /// Creates a name from the first `length` of eight bytes. `length` is from 1 to
    /// [`MAX_EXACT_BYTES`].
    #[inline]
    pub(super) fn beginning(eight: [u8; 8], length: usize) -> ElementName {
        let unused = 64 - 8 * length as u32;
        let name = u64::from_le_bytes(eight) << unused >> unused;
        ElementName::exact(lower_case(name), length)
    }

    /// Stores the length of the name in the top byte. Without the length, a NUL at the end of a
    /// name wouldn't change the result.
    #[inline]
    const fn exact(name: u64, length: usize) -> ElementName {
        ElementName(name | (length as u64) << 56)
    }

    /// Returns whether two names are equal. Unlike `==`, it can be used in `const` code.
    pub(crate) const fn is(self, other: ElementName) -> bool {
        self.0 == other.0
    }

    /// Returns the number that represents the name.
    #[inline]
    pub(crate) const fn number(self) -> u64 {
        self.0
    }
}

/// Mixes eight bytes of a name into a hash.
const fn mix(hash: u64, eight: u64) -> u64 {
    let mixed = (hash ^ eight ^ 0x51_7c_c1_b7_27_22_0a_95).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// Converts the ASCII letters in eight bytes to lower case.
#[inline]
const fn lower_case(bytes: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    // The high bit of each byte shows whether the byte is at least `A` (`from_a`), or greater than
    // `Z` (`past_z`).
    let low = bytes & !HIGH;
    let from_a = low + (0x80 - b'A' as u64) * EACH;
    let past_z = low + (0x7f - b'Z' as u64) * EACH;
    let is_upper = (from_a ^ past_z) & !bytes & HIGH;
    bytes | is_upper >> 2
}

macro_rules! names {
    ($($constant:ident $name:literal)*) => {
        $(pub(crate) const $constant: ElementName = ElementName::of($name);)*
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
    KBD b"kbd"
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
    RB b"rb"
    RP b"rp"
    RT b"rt"
    RTC b"rtc"
    RUBY b"ruby"
    S b"s"
    SAMP b"samp"
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

/// Returns whether elements with this name never have content, such as `br`.
pub(crate) fn is_void(name: ElementName) -> bool {
    matches!(
        name,
        AREA | BASE | BR | COL | EMBED | HR | IMG | INPUT | LINK | META | SOURCE | TRACK | WBR
    )
}

#[cfg(test)]
mod tests {
    use super::ElementName;

    #[test]
    fn a_name_is_the_same_at_any_place() {
        for byte in 0..=255 {
            for length in 1..20 {
                let name: Vec<_> = [b'T', byte, b'z']
                    .into_iter()
                    .cycle()
                    .take(length)
                    .collect();
                for suffix in [&b""[..], b">", b" href=ABCDEFGHIJKLMNOPQRSTUVWXYZ>"] {
                    let page = [b"</", &name[..], suffix].concat();
                    let actual = ElementName::at(&page, 2, 2 + length);
                    assert_eq!(actual, ElementName::of(&name), "{name:?}");
                    let same = ElementName::of(&name.to_ascii_lowercase());
                    assert_eq!(actual, same, "{name:?}");
                }
                assert_ne!(
                    ElementName::of(&name),
                    ElementName::of(&name[1..]),
                    "{name:?}"
                );
            }
        }
    }

    #[test]
    fn names_differ_by_more_than_letter_case() {
        assert_eq!(ElementName::of(b"DiV"), super::DIV);
        assert_ne!(ElementName::of(b"a\0"), super::A);
        let (long, padding) = (b"a-name-of-an-element", [0; 16]);
        assert_eq!(
            ElementName::of(long),
            ElementName::of(&long.to_ascii_uppercase())
        );
        assert_ne!(ElementName::of(long), ElementName::of(&long[1..]));
        // NULs before or after a name change the name, even if they make it too long to be stored
        // exactly.
        assert_ne!(ElementName::of(&[&padding[..], b"a"].concat()), super::A);
        for name in [&b"td"[..], b"section", b"textarea", b"blockquote"] {
            for nuls in 1..=padding.len() {
                let longer = [name, &padding[..nuls]].concat();
                assert_ne!(
                    ElementName::of(&longer),
                    ElementName::of(name),
                    "{longer:?}"
                );
            }
        }
    }
}
