//! Teasers of other pages, which no name tells apart from the text that they follow.

use crate::read;

/// A paragraph of some forty words.
const PARAGRAPH: &str = "The harbour master counted eleven boats at dawn, two fewer than on the \
    evening before, and wrote their names into the book that his father had begun. Nobody in the \
    village remembered a winter in which the ice had come so early.";

/// A page whose text is followed by what stands in `after`.
fn page(after: &str) -> String {
    let text = format!("<p>{PARAGRAPH}</p>").repeat(5);
    format!("<title>Ice</title><div id=page><h1>Ice in the harbour</h1>{text}{after}</div>")
}

/// The lines of the main text behind the paragraphs.
fn behind(html: &str) -> Vec<String> {
    let main = read(html).main_text();
    let lines = main.lines().filter(|line| *line != PARAGRAPH).skip(1);
    lines.map(str::to_owned).collect()
}

/// Cards with a title that leads elsewhere, a date and a line.
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
fn ours_cards_that_lead_to_other_pages_are_not_of_the_text() {
    let html = page(&format!(
        "<div><h2>More from the coast</h2>{}</div>",
        cards(4)
    ));
    assert_eq!(behind(&html), Vec::<String>::new());
    // They stay findable: their titles lead on, the lines stand beside the text.
    let content = read(&html);
    assert!(content.visible_text().contains("Ferry number 3"));
}

#[test]
fn ours_two_cards_or_a_list_of_other_pages_stay() {
    assert_eq!(behind(&page(&format!("<div>{}</div>", cards(2)))).len(), 6);
    // Without a text of its own a page is there for its cards.
    let html = format!("<h1>News</h1><div>{}</div>", cards(9));
    assert_eq!(behind(&html).len(), 27);
}

#[test]
fn ours_references_and_links_with_a_word_on_each_stay() {
    let item = |n: usize| match n % 2 {
        0 => format!("<li><a href=/{n}>A history of the harbour, volume {n}</a>"),
        _ => format!("<li>Harbour board, <i>Minutes</i>, 19{n}, p. {n}."),
    };
    let items: String = (10..18).map(item).collect();
    let html = page(&format!("<div><h2>References</h2><ol>{items}</ol></div>"));
    assert_eq!(
        behind(&html)
            .iter()
            .filter(|line| line.contains("Minutes"))
            .count(),
        4
    );
}

#[test]
fn ours_a_main_keeps_cards_that_its_text_goes_on_after() {
    let text = |cards: &str, after: &str| {
        let paragraphs = format!("<p>{PARAGRAPH}</p>").repeat(5);
        format!("<main><h1>Ice</h1>{paragraphs}<div>{cards}</div>{after}</main>")
    };
    assert_eq!(behind(&text(&cards(4), "")).len(), 0);
    let goes_on = format!("<h2>How thick it was</h2><p>{PARAGRAPH}</p>");
    assert_eq!(behind(&text(&cards(4), &goes_on)).len(), 13);
}

#[test]
fn ours_markup_that_a_saved_noscript_shows_as_text_is_none() {
    let html = page(
        "<p>One<noscript>&lt;img src=\"/pixel.gif\" alt=\"\"&gt;</noscript> two</p>\
         <p><noscript>Three</noscript></p><p><noscript>&lt;b&gt;gone<i>four</i></noscript></p>",
    );
    assert_eq!(behind(&html), ["One two", "Three", "four"]);
}

#[test]
fn ours_comments_are_known_by_their_name_in_other_languages() {
    for name in ["comentarios", "commentaires", "kommentare", "reacties"] {
        let html = page(&format!(
            "<div id={name}><h3>15 {name}</h3><ul><li><h4>Jo</h4><p>I was there, and there was no ice.</ul></div>"
        ));
        assert_eq!(behind(&html), Vec::<String>::new(), "{name}");
    }
}
