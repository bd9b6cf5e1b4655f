//! Broken links as text.

use std::fmt::{self, Display};

use super::{BrokenLink, BrokenLinks, BrokenPage};
use crate::text::{number, plain};

/// Characters of a link's text that are shown.
const TEXT_SHOWN: usize = 48;

/// Lines for a person.
impl Display for BrokenLinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pages, links) = (self.pages.len() as u64, self.links);
        match pages {
            0 => return writeln!(f, "no page is broken"),
            1 => write!(f, "1 page is broken")?,
            pages => write!(f, "{} pages are broken", number(pages))?,
        }
        match links {
            1 => writeln!(f, ", 1 link leads there")?,
            links => writeln!(f, ", {} links lead there", number(links))?,
        }
        for page in &self.pages {
            page_lines(f, page)?;
        }
        if self.source == "via" {
            writeln!(
                f,
                "\nneither links nor an archive were kept: of each page the one that led there \
                 first is named"
            )?;
        }
        if self.unread > 0 {
            let pages = match self.unread {
                1 => "1 page is".to_owned(),
                unread => format!("{} pages are", number(unread)),
            };
            writeln!(f, "\n{pages} not in the archive, and may hold more links")?;
        }
        Ok(())
    }
}

fn page_lines(f: &mut fmt::Formatter<'_>, page: &BrokenPage) -> fmt::Result {
    match (page.status, &page.error) {
        (Some(status), _) => writeln!(f, "\n{status}  {}", page.url)?,
        (None, Some(error)) => writeln!(f, "\n---  {} ({})", page.url, plain(error))?,
        (None, None) => writeln!(f, "\n---  {}", page.url)?,
    }
    match &page.via {
        _ if !page.links.is_empty() => {}
        None => writeln!(f, "     no page links to it: it was a seed")?,
        Some(via) => {
            writeln!(
                f,
                "     no page links to it any more; {via} led there first"
            )?;
        }
    }
    for link in &page.links {
        link_lines(f, link)?;
    }
    Ok(())
}

fn link_lines(f: &mut fmt::Formatter<'_>, link: &BrokenLink) -> fmt::Result {
    write!(f, "     on {}", link.page)?;
    if let Some(text) = &link.text {
        write!(f, "  \"{}\"", shortened(&plain(text)))?;
    }
    if let Some(rel) = &link.rel {
        write!(f, "  ({})", plain(rel))?;
    }
    writeln!(f)?;
    for redirect in &link.through {
        writeln!(f, "        by way of {redirect}")?;
    }
    Ok(())
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(TEXT_SHOWN) {
        Some((end, _)) => format!("{}..", text[..end].trim_end()),
        None => text.to_owned(),
    }
}
