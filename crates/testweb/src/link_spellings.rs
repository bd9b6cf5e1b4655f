//! The many ways to write the same link.

use crate::random::SeededRandom;

/// The page that a link leads to: its host and its path.
pub(crate) struct LinkTarget<'a> {
    pub(crate) authority: &'a str,
    /// The canonical path and query.
    pub(crate) path: &'a str,
    pub(crate) same_host: bool,
}

/// Returns an `href` value in a random spelling that resolves to `target` against the path `base`.
/// The value is escaped, and in quotes unless it needs none.
pub(crate) fn write(base: &str, target: &LinkTarget<'_>, dice: &mut SeededRandom) -> String {
    let LinkTarget {
        authority,
        path,
        same_host,
    } = target;
    let mut href = match dice.below(if *same_host { 8 } else { 3 }) {
        0 => format!("http://{authority}{path}"),
        1 => format!("//{authority}{path}"),
        2 => format!("HTTP://{authority}{path}"),
        3 | 4 => (*path).to_owned(),
        _ => relative(base, path),
    };
    if dice.below(2) == 0 {
        href = href.replace("%C3%A9", "\u{e9}");
    }
    if dice.below(3) == 0 {
        href.push_str("#part-2");
    }
    match dice.below(4) {
        0 => format!("'{}'", href.replace('&', "&#38;")),
        1 => format!("\" {}\n\"", href.replace('&', "&amp;")),
        2 if !href.contains(['=', '&']) => href,
        _ => format!("\"{}\"", href.replace('&', "&amp;")),
    }
}

/// Returns a relative reference from `base` to `path`. Both are absolute paths with an optional
/// query.
fn relative(base: &str, path: &str) -> String {
    let base_dir = dir(base);
    let path_dir = dir(path);
    let shared = base_dir
        .split_inclusive('/')
        .zip(path_dir.split_inclusive('/'))
        .take_while(|(left, right)| left == right)
        .map(|(left, _)| left.len())
        .sum::<usize>();
    let mut reference = "../".repeat(base_dir[shared..].matches('/').count());
    reference.push_str(&path[shared..]);
    if reference.is_empty() || reference.starts_with('?') {
        reference.insert_str(0, "./");
    }
    reference
}

fn dir(path: &str) -> &str {
    let path = path.split('?').next().unwrap_or("/");
    &path[..=path.rfind('/').unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::relative;

    #[test]
    fn rfc3986_5_2_relative_references_lead_back() {
        for (base, path, reference) in [
            ("/", "/", "./"),
            ("/", "/p1", "p1"),
            ("/a/b/c.html", "/a/b/d.html", "d.html"),
            ("/a/b/c.html", "/a/x/d.html", "../x/d.html"),
            ("/a/b/c.html", "/", "../../"),
            ("/a/b/", "/a/b/", "./"),
            ("/list?page=1/2", "/list?page=3", "list?page=3"),
            ("/p1", "/d1/e1/5/", "d1/e1/5/"),
        ] {
            assert_eq!(relative(base, path), reference, "from {base} to {path}");
        }
    }
}
