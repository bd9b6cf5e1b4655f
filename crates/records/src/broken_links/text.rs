//! Formats broken links as text.

use std::fmt::{self, Display};

use crawl_weburl::safe_line;

use super::{BrokenLink, BrokenLinkReport, BrokenPage};
use crate::number_format::{counted, grouped};
use crate::row_token_wording::failure_words;

/// Maximum characters of a link's text to show.
const MAX_SHOWN_CHARS: usize = 48;
/// Maximum linking pages to show on the line of a broken page.
const MAX_SHOWN_PAGES: usize = 3;

/// Formats one line per broken page: the response, the URL, and the first pages that link to it.
impl Display for BrokenLinkReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head(f)?;
        for page in &self.pages {
            let links = links_in_short(page);
            writeln!(f, "{}  {links}", answer_and_url(page))?;
        }
        if self.links > 0 {
            writeln!(f, "\nrun with --all to list every link with its text")?;
        }
        self.foot(f)
    }
}

/// Formats every link individually: the page that contains it, its text, relation and redirects.
#[derive(Clone, Copy, Debug)]
pub struct EveryLinkDisplay<'a>(pub &'a BrokenLinkReport);

impl Display for EveryLinkDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.head(f)?;
        for (at, page) in self.0.pages.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            writeln!(f, "{}", answer_and_url(page))?;
            if page.links.is_empty() {
                writeln!(f, "     {}", no_link(page))?;
            }
            for link in &page.links {
                link_lines(f, link)?;
            }
        }
        self.0.foot(f)
    }
}

impl BrokenLinkReport {
    /// Writes the number of broken pages and links.
    fn head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pages.is_empty() {
            return writeln!(f, "no broken pages");
        }
        let pages = counted(self.pages.len() as u64, "broken page", "broken pages");
        let links = counted(self.links, "link", "links");
        let them = if self.pages.len() == 1 { "it" } else { "them" };
        let of_unreachable = match self.unreachable {
            0 => String::new(),
            all if all == self.pages.len() as u64 => {
                " (all on hosts that could not be reached)".to_owned()
            }
            some => format!(" ({} on hosts that could not be reached)", grouped(some)),
        };
        writeln!(f, "{pages}{of_unreachable}, {links} to {them}\n")
    }

    /// Writes why links may be missing from the list.
    fn foot(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.source == "via" && !self.pages.is_empty() {
            writeln!(
                f,
                "\nneither links nor an archive were kept, so only the page that first led to each \
                 is listed"
            )?;
        }
        if self.unread > 0 {
            let pages = counted(self.unread, "page", "pages");
            writeln!(
                f,
                "\n{pages} can't be read from the archive and may contain more links"
            )?;
        }
        Ok(())
    }
}

fn answer_and_url(page: &BrokenPage) -> String {
    let status = page.status.map(|status| status.to_string());
    let status = status.as_deref().unwrap_or("---");
    // A status of 400 or above explains itself, so don't show the error with it.
    match page
        .error
        .as_ref()
        .filter(|_| page.status.is_none_or(|status| status < 400))
    {
        Some(error) => {
            let error = failure_words(error);
            format!("{status}  {} ({})", page.url, safe_line(&error))
        }
        None => format!("{status}  {}", page.url),
    }
}

fn links_in_short(page: &BrokenPage) -> String {
    let mut pages: Vec<&str> = page.links.iter().map(|link| link.page.as_str()).collect();
    // The links are sorted by page, so `dedup` removes all duplicates.
    pages.dedup();
    let links = counted(page.links.len() as u64, "link", "links");
    match pages[..] {
        [] => no_link(page),
        [only] => format!("{links} on {only}"),
        _ => {
            let named = pages
                .iter()
                .take(MAX_SHOWN_PAGES)
                .copied()
                .collect::<Vec<_>>();
            let more = pages.len() - named.len();
            let more = match more {
                0 => String::new(),
                more => format!(" and {} more", grouped(more as u64)),
            };
            let on = counted(pages.len() as u64, "page", "pages");
            format!("{links} on {on}: {}{more}", named.join(", "))
        }
    }
}

fn no_link(page: &BrokenPage) -> String {
    match &page.via {
        None => "no page links to it; it was a seed".to_owned(),
        Some(via) => format!("no page links to it any more; first found on {via}"),
    }
}

fn link_lines(f: &mut fmt::Formatter<'_>, link: &BrokenLink) -> fmt::Result {
    write!(f, "     on {}", link.page)?;
    if let Some(text) = &link.text {
        write!(f, "  \"{}\"", shortened(&safe_line(text)))?;
    }
    if let Some(rel) = &link.rel {
        write!(f, "  ({})", safe_line(rel))?;
    }
    writeln!(f)?;
    for redirect in &link.through {
        writeln!(f, "        via {redirect}")?;
    }
    Ok(())
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}..", text[..end].trim_end()),
        None => text.to_owned(),
    }
}
