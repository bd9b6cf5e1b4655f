//! Writes a small HTML page, part by part.

/// Maximum bytes of a title, an author or another field in the head of a page.
/// Beyond the limit: cut.
pub(crate) const MAX_FIELD_BYTES: usize = 4096;

/// The metadata to write to the head of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageHead {
    pub(crate) title: Option<String>,
    pub(crate) author: Option<String>,
    pub(crate) description: Option<String>,
    /// Keywords, separated by commas.
    pub(crate) keywords: Option<String>,
    /// The publication date, in any of the formats that `crawl_dates` parses.
    pub(crate) published: Option<String>,
    pub(crate) modified: Option<String>,
    /// A language tag.
    pub(crate) language: Option<String>,
}

/// Writes an HTML page. Add elements in order, then call `finish`.
#[derive(Debug)]
pub(crate) struct HtmlPageWriter {
    body: String,
    max_bytes: usize,
}

impl HtmlPageWriter {
    /// Creates an empty page whose body may have about `max_bytes` bytes. Further content is
    /// dropped.
    pub(crate) fn new(max_bytes: usize) -> HtmlPageWriter {
        HtmlPageWriter {
            body: String::new(),
            max_bytes,
        }
    }

    /// Returns whether the body has reached its maximum size.
    pub(crate) fn is_full(&self) -> bool {
        self.body.len() >= self.max_bytes
    }

    /// Writes an element with `text` as its content. Writes nothing if the text is blank or the
    /// page is full.
    pub(crate) fn element(&mut self, name: &str, id: Option<&str>, text: &str) {
        let text = text.trim();
        if text.is_empty() || self.is_full() {
            return;
        }
        let room = text.floor_char_boundary(self.max_bytes - self.body.len());
        self.body.push('<');
        self.body.push_str(name);
        if let Some(id) = id {
            self.body.push_str(" id=\"");
            escape(&mut self.body, id);
            self.body.push('"');
        }
        self.body.push('>');
        escape(&mut self.body, &text[..room]);
        self.body.push_str("</");
        self.body.push_str(name);
        self.body.push_str(">\n");
    }

    /// Writes a heading of level 1 to 6.
    pub(crate) fn heading(&mut self, level: usize, id: Option<&str>, text: &str) {
        let names = ["h1", "h2", "h3", "h4", "h5", "h6"];
        self.element(names[level.clamp(1, 6) - 1], id, text);
    }

    /// Writes HTML unchanged, up to the maximum size of the body.
    #[cfg(feature = "markdown")]
    pub(crate) fn raw(&mut self, html: &str) {
        let room = self.max_bytes.saturating_sub(self.body.len());
        self.body.push_str(&html[..html.floor_char_boundary(room)]);
    }

    /// Returns the page as HTML. Writes the texts in `beside`, such as footnotes, to a footer,
    /// because they don't belong to the main text.
    pub(crate) fn finish(self, head: &PageHead, beside: &[String]) -> String {
        let mut html = String::from("<!doctype html>\n<html");
        if let Some(language) = field(&head.language) {
            html.push_str(" lang=\"");
            escape(&mut html, language);
            html.push('"');
        }
        html.push_str(">\n<meta charset=\"utf-8\">\n");
        if let Some(title) = field(&head.title) {
            html.push_str("<title>");
            escape(&mut html, title);
            html.push_str("</title>\n");
        }
        let metas = [
            ("name", "author", &head.author),
            ("name", "description", &head.description),
            ("name", "keywords", &head.keywords),
            ("property", "article:published_time", &head.published),
            ("property", "article:modified_time", &head.modified),
        ];
        for (kind, name, value) in metas {
            if let Some(value) = field(value) {
                html.push_str(&format!("<meta {kind}=\"{name}\" content=\""));
                escape(&mut html, value);
                html.push_str("\">\n");
            }
        }
        html.push_str("<main>\n");
        html.push_str(&self.body);
        html.push_str("</main>\n");
        if !beside.is_empty() {
            let mut footer = HtmlPageWriter::new(self.max_bytes);
            for line in beside {
                footer.element("p", None, line);
            }
            html.push_str("<footer>\n");
            html.push_str(&footer.body);
            html.push_str("</footer>\n");
        }
        html
    }
}

/// Returns a field's text without surrounding white space, cut at [`MAX_FIELD_BYTES`]. `None` if
/// the text is blank.
fn field(text: &Option<String>) -> Option<&str> {
    let text = text.as_deref()?.trim();
    (!text.is_empty()).then(|| &text[..text.floor_char_boundary(MAX_FIELD_BYTES)])
}

fn escape(html: &mut String, text: &str) {
    for letter in text.chars() {
        match letter {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\n' | '\t' => html.push(letter),
            control if control.is_control() => html.push(' '),
            other => html.push(other),
        }
    }
}
