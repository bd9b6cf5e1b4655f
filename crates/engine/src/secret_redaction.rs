//! Redacts the secrets configured in `[site]` in everything kept from responses, except the
//! archive.

use crawl_archive::rows::PageRow;
use crawl_fetcher::Secrets;
use crawl_index_entry::{IndexLogEntry, IndexedPage};
use crawl_weburl::{CanonicalUrl, canonicalize};

/// The reason under which links that contain a secret are counted. Such links are not followed.
pub(crate) const SECRET_IN_URL: &str = "secret";

/// The error of a redirect whose target contains a secret.
pub(crate) const REDIRECT_SECRET: &str = "redirect_secret";

/// Returns a URL with secrets redacted, for rows.
pub(crate) fn redacted_url(secrets: &Secrets, url: &CanonicalUrl) -> String {
    match secrets.are_in_url(url) {
        false => url.to_string(),
        true => secrets.redacted(url.as_str()).into_owned(),
    }
}

/// Redacts secrets in the columns of a `pages.jsonl` row that contain text from the server. Records
/// in the row whether there were any.
pub(crate) fn redact_row(secrets: &Secrets, row: &mut PageRow) {
    if secrets.is_empty() {
        return;
    }
    let usage = row.usage.iter_mut().flat_map(|usage| &mut usage.said);
    let statements = usage.map(|statement| &mut statement.raw);
    let fields = [
        &mut row.title,
        &mut row.content_type,
        &mut row.indexed,
        &mut row.error,
    ];
    for text in statements.chain(fields.into_iter().flatten()) {
        row.echoes_secret |= secrets.redact(text);
    }
    let canonical = row.canonical.take_if(|url| are_in(secrets, url));
    row.echoes_secret |= canonical.is_some();
}

pub(crate) fn redacted_entry(secrets: &Secrets, mut entry: IndexLogEntry) -> IndexLogEntry {
    if !secrets.is_empty() {
        match &mut entry {
            IndexLogEntry::Put(page) => redact_page(secrets, page),
            IndexLogEntry::Drop { why, .. } => drop(secrets.redact(why)),
        }
    }
    entry
}

fn redact_page(secrets: &Secrets, page: &mut IndexedPage) {
    let moved = secrets.moved(&page.text);
    for heading in &mut page.headings {
        heading.at = moved(heading.at);
    }
    page.links.retain(|link| !are_in(secrets, &link.url));
    let headings = page.headings.iter_mut().flat_map(|heading| {
        let id = heading.id.iter_mut();
        id.chain([&mut heading.text])
    });
    let links = page.links.iter_mut().map(|link| &mut link.text);
    let own = [
        &mut page.title,
        &mut page.text,
        &mut page.beside,
        &mut page.withheld,
        &mut page.description,
    ];
    for text in own
        .into_iter()
        .chain(&mut page.keywords)
        .chain(&mut page.authors)
        .chain(&mut page.section)
        .chain(headings)
        .chain(links)
    {
        secrets.redact(text);
    }
}

fn are_in(secrets: &Secrets, url: &str) -> bool {
    canonicalize(None, url).is_ok_and(|url| secrets.are_in_url(&url))
}
