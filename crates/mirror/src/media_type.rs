//! Media types, and the file extensions that browsers derive them from.

/// Media types, each with the extensions that a file of the type may have. If a URL has none of the
/// extensions, its file gets the first one.
const EXTENSIONS: [(&str, &[&str]); 56] = [
    ("application/atom+xml", &["xml", "atom"]),
    ("application/epub+zip", &["epub"]),
    ("application/feed+json", &["json"]),
    ("application/font-woff", &["woff"]),
    ("application/gzip", &["gz", "tgz"]),
    ("application/javascript", &["js", "mjs"]),
    ("application/json", &["json", "map", "webmanifest"]),
    ("application/ld+json", &["jsonld", "json"]),
    ("application/manifest+json", &["webmanifest", "json"]),
    ("application/msword", &["doc"]),
    ("application/ogg", &["ogx", "ogg"]),
    ("application/pdf", &["pdf"]),
    ("application/postscript", &["ps", "eps"]),
    ("application/rss+xml", &["xml", "rss"]),
    ("application/rtf", &["rtf"]),
    ("application/vnd.ms-excel", &["xls"]),
    ("application/vnd.ms-fontobject", &["eot"]),
    ("application/vnd.ms-powerpoint", &["ppt"]),
    ("application/wasm", &["wasm"]),
    ("application/x-javascript", &["js", "mjs"]),
    ("application/xhtml+xml", &["xhtml", "xht"]),
    (
        "application/xml",
        &["xml", "xsl", "xslt", "rss", "atom", "rdf"],
    ),
    ("application/zip", &["zip"]),
    ("audio/flac", &["flac"]),
    ("audio/mp4", &["m4a", "mp4"]),
    ("audio/mpeg", &["mp3"]),
    ("audio/ogg", &["ogg", "oga", "opus"]),
    ("audio/wav", &["wav"]),
    ("audio/webm", &["webm", "weba"]),
    ("audio/x-wav", &["wav"]),
    ("font/otf", &["otf"]),
    ("font/ttf", &["ttf"]),
    ("font/woff", &["woff"]),
    ("font/woff2", &["woff2"]),
    ("image/avif", &["avif"]),
    ("image/bmp", &["bmp"]),
    ("image/gif", &["gif"]),
    ("image/jpeg", &["jpg", "jpeg", "jpe", "jfif"]),
    ("image/png", &["png", "apng"]),
    ("image/svg+xml", &["svg"]),
    ("image/tiff", &["tif", "tiff"]),
    ("image/vnd.microsoft.icon", &["ico"]),
    ("image/webp", &["webp"]),
    ("image/x-icon", &["ico"]),
    ("text/calendar", &["ics"]),
    ("text/css", &["css"]),
    ("text/csv", &["csv"]),
    ("text/html", &["html", "htm"]),
    ("text/javascript", &["js", "mjs"]),
    ("text/markdown", &["md", "markdown"]),
    ("text/vtt", &["vtt"]),
    ("text/xml", &["xml", "xsl", "xslt", "rss", "atom", "rdf"]),
    ("video/mp4", &["mp4", "m4v"]),
    ("video/mpeg", &["mpeg", "mpg"]),
    ("video/ogg", &["ogv", "ogg"]),
    ("video/webm", &["webm"]),
];

/// Extensions of files that a browser opens as pages, which may run scripts. XML is included,
/// because it may contain XHTML elements. A file keeps such an extension only if the extension fits
/// its media type.
const PAGES: [&str; 13] = [
    "ehtml", "htm", "html", "mht", "mhtml", "shtm", "shtml", "svg", "xht", "xhtml", "xml", "xsl",
    "xslt",
];

/// Maximum bytes of a file name's extension.
/// Beyond the limit: the text after the last dot is a part of the name.
const MAX_EXTENSION_BYTES: usize = 12;

/// Splits the last segment of a URL's path into a file name and an extension that fits the media
/// type. If the extension in `last` doesn't fit, returns the usual extension of the type, with the
/// whole of `last` as the name: `tea.php` becomes `tea.php` and `html` if the type is `text/html`.
/// The extension is empty if the type is unknown and `last` has none.
pub(crate) fn name_and_extension<'a>(last: &'a str, media_type: Option<&str>) -> (&'a str, String) {
    let (stem, written) = match last.rsplit_once('.') {
        Some((stem, written)) if !stem.is_empty() && is_extension(written) => (stem, written),
        _ => (last, ""),
    };
    let is_written = |extension: &&str| extension.eq_ignore_ascii_case(written);
    let is_text = media_type == Some("text/plain");
    let mut types = EXTENSIONS.iter();
    let fitting = types.find(|(known, _)| Some(*known) == media_type);
    let (is_fitting, usual) = match fitting {
        Some((_, extensions)) => (extensions.iter().any(is_written), extensions[0]),
        None if is_text => (!written.is_empty() && !PAGES.iter().any(is_written), "txt"),
        None => (!PAGES.iter().any(is_written), "bin"),
    };
    match is_fitting {
        true => (stem, written.to_owned()),
        false => (last, usual.to_owned()),
    }
}

fn is_extension(text: &str) -> bool {
    (1..=MAX_EXTENSION_BYTES).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::{EXTENSIONS, name_and_extension};

    #[test]
    fn a_file_has_an_extension_of_its_type() {
        for (last, media_type, expected) in [
            ("tea.html", "text/html", ("tea", "html")),
            ("tea.HTM", "text/html", ("tea", "HTM")),
            ("tea.php", "text/html", ("tea.php", "html")),
            ("tea", "text/html", ("tea", "html")),
            ("v1.2", "text/html", ("v1.2", "html")),
            ("a.jpeg", "image/jpeg", ("a", "jpeg")),
            ("a.jpeg", "image/webp", ("a.jpeg", "webp")),
            ("style.css", "text/css", ("style", "css")),
            ("a.html", "text/plain", ("a.html", "txt")),
            ("a.xml", "text/plain", ("a.xml", "txt")),
            ("a.xml", "application/xml", ("a", "xml")),
            ("a.rs", "text/plain", ("a", "rs")),
            ("LICENSE", "text/plain", ("LICENSE", "txt")),
            ("a.html", "application/octet-stream", ("a.html", "bin")),
            ("a.iso", "application/octet-stream", ("a", "iso")),
            ("a", "application/octet-stream", ("a", "")),
            (".htaccess", "x/y", (".htaccess", "")),
            ("a.b c", "x/y", ("a.b c", "")),
        ] {
            let (stem, extension) = name_and_extension(last, Some(media_type));
            assert_eq!((stem, &*extension), expected, "{last} {media_type}");
        }
        assert_eq!(
            name_and_extension("a.svg", None),
            ("a.svg", "bin".to_owned())
        );
        assert_eq!(name_and_extension("a.css", None), ("a", "css".to_owned()));
    }

    #[test]
    fn types_are_sorted_and_unique() {
        assert!(EXTENSIONS.is_sorted_by(|one, other| one.0 < other.0));
    }
}
