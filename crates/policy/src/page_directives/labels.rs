//! Labels that a page gives itself for an index: the METAs of 1997 besides ROBOTS.

/// The labels of a page. Of several METAs with one name the first with a content counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageLabels {
    /// `DOCUMENT-STATE: DYNAMIC`: the content changes, so come back and don't keep it. The
    /// default is static.
    pub dynamic: bool,
    /// `URL`: the absolute URL of the master copy of a mirrored or generated page, as written.
    pub master_url: Option<String>,
    /// `KEYWORDS`: the phrases that the page is to be found by.
    pub keywords: Vec<String>,
    /// `DESCRIPTION`: the text to show for the page in a list of results.
    pub description: Option<String>,
}

impl PageLabels {
    /// Reads the `(name, content)` pairs of a page's METAs, in their order.
    #[must_use]
    pub fn read<'a>(metas: impl IntoIterator<Item = (&'a str, &'a str)>) -> PageLabels {
        let mut found = PageLabels::default();
        let mut state = None;
        for (name, content) in metas {
            let content = content.trim();
            if content.is_empty() {
                continue;
            }
            match name.trim().to_ascii_lowercase().as_str() {
                "document-state" => {
                    state.get_or_insert(content.eq_ignore_ascii_case("dynamic"));
                }
                "url" => {
                    found.master_url.get_or_insert_with(|| content.to_owned());
                }
                "description" => {
                    found.description.get_or_insert_with(|| content.to_owned());
                }
                "keywords" if found.keywords.is_empty() => {
                    let phrases = content.split(',').map(str::trim);
                    let phrases = phrases.filter(|phrase| !phrase.is_empty());
                    found.keywords = phrases.map(str::to_owned).collect();
                }
                _ => {}
            }
        }
        found.dynamic = state.unwrap_or(false);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::PageLabels;

    #[test]
    fn labels_of_1997() {
        let found = PageLabels::read([
            ("Keywords", "robots, , exclusion standard"),
            ("keywords", "later"),
            ("DESCRIPTION", ""),
            ("description", " What it is about "),
            ("document-state", "Dynamic"),
            ("document-state", "static"),
            ("URL", "http://master.example/page"),
        ]);
        assert_eq!(found.keywords, ["robots", "exclusion standard"]);
        assert_eq!(found.description.as_deref(), Some("What it is about"));
        assert_eq!(
            found.master_url.as_deref(),
            Some("http://master.example/page")
        );
        assert!(found.dynamic);
        assert_eq!(PageLabels::read([("robots", "all")]), PageLabels::default());
    }
}
