//! Tests of removing teasers of other pages from the main text. In these pages, no class or id
//! marks the teasers.

use crate::read;

/// A paragraph of about forty words.
const PARAGRAPH: &str = "The harbour master counted eleven boats at dawn, two fewer than on the \
    evening before, and wrote their names into the book that his father had begun. Nobody in the \
    village remembered a winter in which the ice had come so early.";

/// Returns a page with a text of several paragraphs, and then `after`.
fn page(after: &str) -> String {
    let text = format!("<p>{PARAGRAPH}</p>").repeat(5);
    format!("<title>Ice</title><div id=page><h1>Ice in the harbour</h1>{text}{after}</div>")
}

/// Returns the lines of the main text that follow its paragraphs.
fn lines_after(html: &str) -> Vec<String> {
    let main = read(html).main_text();
    let lines = main.lines().filter(|line| *line != PARAGRAPH).skip(1);
    lines.map(str::to_owned).collect()
}

/// Returns teaser cards: each has a title that links to another page, a date, and a line of text.
fn cards(count: usize) -> String {
    (0..count)
        .map(|n| {
            format!(
                "<div class=x{n}><h3><a href=/{n}>Ferry number {n} stays in port</a></h3>\
                 <p>{n} March</p><p>Passengers were told to take the bus, which left an hour late.</p></div>"
            )
        })
        .collect()
}

#[test]
fn cards_that_link_to_other_pages_are_not_main_text() {
    let html = page(&format!(
        "<div><h2>More from the coast</h2>{}</div>",
        cards(4)
    ));
    assert_eq!(lines_after(&html), Vec::<String>::new());
    // The cards are outside the main text, but they can still be searched, with a lower weight.
    let content = read(&html);
    assert!(content.visible_text().contains("Ferry number 3"));
}

#[test]
fn two_cards_or_a_list_of_other_pages_stay() {
    assert_eq!(
        lines_after(&page(&format!("<div>{}</div>", cards(2)))).len(),
        6
    );
    // If a page has no text but its cards, the cards are the main text.
    let html = format!("<h1>News</h1><div>{}</div>", cards(9));
    assert_eq!(lines_after(&html).len(), 27);
}

#[test]
fn references_and_annotated_links_stay() {
    let item = |n: usize| match n % 2 {
        0 => format!("<li><a href=/{n}>A history of the harbour, volume {n}</a>"),
        _ => format!("<li>Harbour board, <i>Minutes</i>, 19{n}, p. {n}."),
    };
    let items: String = (10..18).map(item).collect();
    let html = page(&format!("<div><h2>References</h2><ol>{items}</ol></div>"));
    assert_eq!(
        lines_after(&html)
            .iter()
            .filter(|line| line.contains("Minutes"))
            .count(),
        4
    );
}

#[test]
fn a_main_keeps_cards_that_its_text_continues_after() {
    let text = |cards: &str, after: &str| {
        let paragraphs = format!("<p>{PARAGRAPH}</p>").repeat(5);
        format!("<main><h1>Ice</h1>{paragraphs}<div>{cards}</div>{after}</main>")
    };
    assert_eq!(lines_after(&text(&cards(4), "")).len(), 0);
    let goes_on = format!("<h2>How thick it was</h2><p>{PARAGRAPH}</p>");
    assert_eq!(lines_after(&text(&cards(4), &goes_on)).len(), 13);
}

#[test]
fn markup_in_a_saved_noscript_is_not_text() {
    let html = page(
        "<p>One<noscript>&lt;img src=\"/pixel.gif\" alt=\"\"&gt;</noscript> two</p>\
         <p><noscript>Three</noscript></p><p><noscript>&lt;b&gt;gone<i>four</i></noscript></p>",
    );
    assert_eq!(lines_after(&html), ["One two", "Three", "four"]);
    let markdown = crate::markdown(&html);
    assert!(
        markdown.contains("One two") && !markdown.contains("pixel.gif"),
        "{markdown}"
    );
    // White space before the markup separates words, however the text is split into pieces.
    for split in ["", "<!-- c -->"] {
        let html = page(&format!(
            "<p>One<noscript> {split}&lt;i&gt;</noscript>two</p>"
        ));
        assert_eq!(lines_after(&html), ["One two"], "{split}");
    }
}

#[test]
fn comments_are_recognised_by_their_name_in_other_languages() {
    for name in ["comentarios", "commentaires", "kommentare", "reacties"] {
        let html = page(&format!(
            "<div id={name}><h3>15 {name}</h3><ul><li><h4>Jo</h4><p>I was there, and there was no ice.</ul></div>"
        ));
        assert_eq!(lines_after(&html), Vec::<String>::new(), "{name}");
    }
}
