//! Tests of removing permalinks, edit links and buttons from headings.

use crate::{markdown, read};

/// Returns the first heading of a page, as text and as Markdown.
fn heading(html: &str) -> (String, String) {
    let page = format!("<main><h1>Tea</h1>{html}<p>Water the leaves and wait.</main>");
    let content = read(&page);
    let headings: Vec<_> = content
        .sections()
        .iter()
        .map(|section| section.heading.unwrap_or_default())
        .collect();
    let markdown = markdown(&page);
    let lines: Vec<_> = markdown
        .lines()
        .filter(|line| line.starts_with("## "))
        .collect();
    assert_eq!(
        (headings.len(), lines.len()),
        (2, 1),
        "{html}: {headings:?} {markdown}"
    );
    (headings[1].to_owned(), lines[0][3..].to_owned())
}

#[test]
fn marks_of_a_heading_are_removed() {
    for html in [
        "<h2>Kinds of tea<a class=headerlink href=#kinds title='Link'>¶</a></h2>",
        "<h2>Kinds of tea <a href='/tea.html#kinds'>#</a></h2>",
        "<h2><a class=doc-anchor href=#kinds>§</a>Kinds of tea</h2>",
        "<h2><a href=#kinds>🔗</a> Kinds of tea</h2>",
        "<h2><a href=#kinds>#</a> Kinds <a href=#kinds>⚓\u{fe0f}</a> of tea</h2>",
        "<h2>Kinds of tea<a href=#kinds class=hash-link>\u{200b}</a></h2>",
        "<h2>Kinds of tea <a class='x permalink' href=#kinds>Link to this part</a></h2>",
        "<h2><a href=#kinds>Permalink</a> Kinds of tea</h2>",
        "<h2><span aria-hidden=true>☕ icon</span> Kinds of tea</h2>",
        "<h2><a href=#kinds aria-hidden=true><span>link</span></a>Kinds of tea</h2>",
        "<h2>Kinds of tea<span class=mw-editsection><span>[</span><a href=/e>edit</a><span>]\
         </span></span></h2>",
        "<h2>Kinds of tea <a class=edit-link href=/edit>Edit this section</a></h2>",
        "<h2>Kinds of tea <button type=button>Copy link</button></h2>",
        "<h2>Kinds <button>?</button> of tea</h2>",
        "<h2>Kinds of tea <span hidden>secret</span></h2>",
        "<div role=heading aria-level=2>Kinds of tea <a href=#kinds>#</a></div>",
    ] {
        let expected = ("Kinds of tea".to_owned(), "Kinds of tea".to_owned());
        assert_eq!(heading(html), expected, "{html}");
    }
}

#[test]
fn a_heading_that_is_a_link_or_button_stays() {
    for (html, expected) in [
        ("<h2><a class=header href=#kinds>Kinds</a></h2>", "Kinds"),
        (
            "<h2><a class=header-anchor href=#k><span>Kinds</span></a></h2>",
            "Kinds",
        ),
        (
            "<h2><button aria-expanded=false>What is tea?</button></h2>",
            "What is tea?",
        ),
        (
            "<h2><span aria-hidden=true>T</span><span aria-hidden=true>ea</span></h2>",
            "Tea",
        ),
        ("<h2>In C#, see <a href=/c>C</a></h2>", "In C#, see C"),
        ("<h2>See <a href=#kinds>kinds</a></h2>", "See kinds"),
        ("<h2><a href=/edit>Edit</a> a page</h2>", "Edit a page"),
        ("<h2>#</h2>", "#"),
    ] {
        assert_eq!(heading(html).0, expected, "{html}");
    }
}

#[test]
fn a_heading_with_a_sign_keeps_its_emphasis() {
    let html = "<h2>The <code>pour</code> method<a class=headerlink href=#pour>¶</a></h2>";
    let (text, markdown) = heading(html);
    assert_eq!(text, "The pour method");
    assert_eq!(markdown, "The `pour` method");
}

#[test]
fn line_numbers_are_dropped() {
    for html in [
        "<table><tr><td class=linenos><pre>1\n2</pre><td class=code><pre>pour\nwait</pre></table>",
        "<pre><span class=lineno>1 </span>pour\n<span class=lineno>2 </span>wait</pre>",
        "<div class=linenodiv><pre>1\n2</pre></div><pre class='line-numbers'>pour\nwait</pre>",
        "<table><tr><td class='hljs-ln-line hljs-ln-numbers'>1<td>pour\nwait</table>",
        "<pre class=lineno>1\n2</pre><pre class='python linenos'>pour\nwait</pre>",
    ] {
        let content = read(&format!("<main><p>Tea{html}</main>"));
        let text = content
            .visible_text()
            .split_whitespace()
            .collect::<Vec<_>>();
        assert_eq!(text, ["Tea", "pour", "wait"], "{html}");
    }
}
