//! Formats the site report as text.

use std::fmt::{self, Display};

use crawl_weburl::safe_line;

use super::{PageNumber, SharedText, SiteReport};
use crate::numbers::{counted, grouped, size};

/// Maximum lines shown per list.
const MAX_SHOWN: usize = 10;

/// Formats the first lines of each list. The option `--json` shows all lines.
impl Display for SiteReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", counted(self.pages, "page", "pages"))?;
        if self.unread > 0 {
            let pages = counted(self.unread, "page is", "pages are");
            writeln!(
                f,
                "{pages} not in the archive: their titles and links are unknown"
            )?;
        }
        for (title, lines) in self.lists() {
            if lines.is_empty() {
                continue;
            }
            writeln!(f, "\n{title}: {}", grouped(lines.len() as u64))?;
            for line in lines.iter().take(MAX_SHOWN) {
                writeln!(f, "  {line}")?;
            }
            if lines.len() > MAX_SHOWN {
                let more = grouped((lines.len() - MAX_SHOWN) as u64);
                writeln!(f, "  and {more} more (--json lists all)")?;
            }
        }
        Ok(())
    }
}

impl SiteReport {
    /// Returns the lists with their headings, one line per entry.
    pub(super) fn lists(&self) -> [(String, Vec<String>); 10] {
        let deep = format!(
            "more than {} from the start",
            counted(u64::from(self.max_clicks), "click", "clicks")
        );
        let chains = self.redirect_chains.iter().map(|chain| {
            let links = counted(chain.links, "link", "links");
            format!("{} -> {}  {links}", chain.url, chain.to.join(" -> "))
        });
        let barred = self.barred.iter().map(|barred| {
            let rule = barred.rule.as_deref().map(safe_line).unwrap_or_default();
            format!(
                "{}  `{rule}`  {}",
                barred.url,
                counted(barred.links, "link", "links")
            )
        });
        [
            ("without a title".to_owned(), self.without_title.clone()),
            (
                "titles shared by several pages".to_owned(),
                shared(&self.double_titles),
            ),
            (
                "without a description".to_owned(),
                self.without_description.clone(),
            ),
            (
                "descriptions shared by several pages".to_owned(),
                shared(&self.double_descriptions),
            ),
            (
                "orphans: in the sitemap or a feed, but not linked from any page".to_owned(),
                self.orphans.clone(),
            ),
            (
                deep,
                numbers(&self.deep, |clicks| counted(clicks, "click", "clicks")),
            ),
            ("redirect chains".to_owned(), chains.collect()),
            (
                "excluded by robots.txt, but linked".to_owned(),
                barred.collect(),
            ),
            (
                "slowest".to_owned(),
                numbers(&self.slow, |ms| format!("{} ms", grouped(ms))),
            ),
            ("largest".to_owned(), numbers(&self.large, size)),
        ]
    }
}

fn shared(texts: &[SharedText]) -> Vec<String> {
    let lines = texts.iter().map(|text| {
        let pages = counted(text.pages.len() as u64, "page", "pages");
        format!(
            "\"{}\"  {pages}: {}",
            safe_line(&text.text),
            text.pages.join(", ")
        )
    });
    lines.collect()
}

fn numbers(pages: &[PageNumber], show: impl Fn(u64) -> String) -> Vec<String> {
    let lines = pages.iter();
    lines
        .map(|page| format!("{}  {}", show(page.number), page.url))
        .collect()
}
