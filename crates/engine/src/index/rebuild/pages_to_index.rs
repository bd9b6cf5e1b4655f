//! Lists the pages for a rebuilt index, from the last state of each URL in `pages.jsonl`.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use crawl_archive::rows::{PageRow, READER_PANICKED, RequestRow, WarcRecordLocation};
use crawl_archive::{ReadError, RowReader};
use crawl_extractor::is_html;
use crawl_fetcher::Interstitial;
use crawl_frontier::{Frontier, KnownState};
use crawl_index::lead_to_login;
use crawl_weburl::canonicalize;

use super::IndexRebuildSettings;
use crate::document_conversion::DocumentIndexingSettings;
use crate::error::EngineError;
use crate::index::redirect_and_interstitial_answers::answers_of;

/// A page to index: the last page that a URL answered with, and the archive position of its body.
#[derive(Clone, Debug)]
pub(super) struct PageToIndex {
    pub(super) url: String,
    /// When the page was last visited, in seconds since 1970 UTC.
    pub(super) visited_at: i64,
    /// When its body was last fetched. A 304 response doesn't count, because it has no body and
    /// leaves the page in the index as it is.
    pub(super) at: i64,
    /// When the last new body was fetched. Answers that repeat the body don't count.
    pub(super) in_full_at: i64,
    pub(super) place: Option<WarcRecordLocation>,
    /// The length of the page's body as sent.
    pub(super) bytes: u64,
    /// The archive position and size of the page's DOM, if it was rendered.
    pub(super) dom: Option<(WarcRecordLocation, u64)>,
    pub(super) refused: Option<String>,
    /// Later responses that repeated the body, in order: at most a 200 and then a 304. Their header
    /// fields apply to the page too.
    pub(super) later_heads: Vec<RevisitResponseHead>,
    /// The target of a redirect that replaced the page. The page stays in the index if the redirect
    /// leads to a login.
    redirect: Option<String>,
    /// Whether the page is kept out of the index, as decided by the last row that states it.
    is_out: bool,
}

/// The time, place and extent of the header fields of a later response for an archived body.
#[derive(Clone, Debug)]
pub(super) struct RevisitResponseHead {
    /// When the response came, in seconds since 1970 UTC.
    pub(super) at: i64,
    pub(super) place: WarcRecordLocation,
    /// Whether the response has all header fields of the page, unlike a 304.
    pub(super) replaces_all: bool,
}

/// Lists the pages to index, in the order of the archive. These are the URLs whose last answer was
/// a page, not counting errors, and that are not excluded now. Also returns the number of
/// unreadable rows. `None` if stopped.
pub(super) fn kept_pages(
    (dir, committed, frontier): (&Path, Option<u64>, Option<&dyn Frontier>),
    rules: &IndexRebuildSettings,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Option<(Vec<PageToIndex>, u64)>, EngineError> {
    let Some(others) = others_than_pages(dir, is_stopped)? else {
        return Ok(None);
    };
    let mut unreadable = 0;
    let mut answers = LastPages {
        rules,
        others,
        kept: HashMap::new(),
    };
    for row in RowReader::<PageRow>::open(&dir.join("pages.jsonl"), committed)? {
        if is_stopped() {
            return Ok(None);
        }
        match row {
            Ok(row) => answers.note(row),
            Err(ReadError::Row { .. }) => unreadable += 1,
            Err(why) => return Err(why.into()),
        }
    }
    let mut by_url = answers.kept;
    let targets = by_url.values().filter_map(|page| page.redirect.clone());
    let look_up = |urls: &BTreeSet<String>| answers_of(dir, committed, urls);
    let logins = lead_to_login(&targets.collect(), &look_up)?;
    by_url.retain(|_, page| {
        let redirect = page.redirect.as_ref();
        !page.is_out && redirect.is_none_or(|to| logins.contains(to))
    });
    let mut pages = Vec::with_capacity(by_url.len());
    for page in by_url.into_values() {
        if is_stopped() {
            return Ok(None);
        }
        if !is_barred_now(frontier, &page.url)? {
            pages.push(page);
        }
    }
    let place = |page: &PageToIndex| {
        page.place
            .as_ref()
            .map(|place| (place.file.clone(), place.offset))
    };
    pages.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| a.url.cmp(&b.url)));
    Ok(Some((pages, unreadable)))
}

/// Returns whether a URL was excluded after its page was fetched.
fn is_barred_now(frontier: Option<&dyn Frontier>, url: &str) -> Result<bool, EngineError> {
    let url = canonicalize(None, url).ok();
    let record = frontier
        .zip(url)
        .map(|(frontier, url)| frontier.known(&url));
    let record = record.transpose()?.flatten();
    Ok(record.is_some_and(|record| matches!(record.state, KnownState::Excluded(_))))
}

/// The last page of each URL, from the rows of `pages.jsonl` in order.
struct LastPages<'a> {
    rules: &'a IndexRebuildSettings,
    /// URLs that were fetched as sitemaps or as parts of pages.
    others: HashSet<String>,
    kept: HashMap<String, PageToIndex>,
}

impl LastPages<'_> {
    /// Adds the next row. A page replaces the URL's previous page, a repeated body confirms it, and
    /// a missing page removes it. A redirect removes it unless it leads to a login. Errors and
    /// interstitials change nothing.
    fn note(&mut self, mut row: PageRow) {
        let error = row.error.as_deref().unwrap_or_default();
        let is_passing = Interstitial::named(error).is_some() || error == READER_PANICKED;
        // Prefer the page's previous body to a new body that broke off.
        let broke_off = row.change.is_none() && self.kept.contains_key(&row.url);
        let is_page = matches!(row.status, Some(200..=299));
        if self.others.contains(&row.url) || is_page && (is_passing || broke_off) {
            return;
        }
        let documents = &self.rules.documents;
        let bars = |word: &str| word != "yes" && !is_judged_anew(word, &row, documents);
        let is_out = row.indexed.as_deref().map(bars);
        match row.status {
            Some(300..=303 | 307 | 308) if row.status != Some(300) || row.redirect.is_some() => {
                if let Some(page) = self.kept.get_mut(&row.url) {
                    page.redirect = row.redirect;
                    page.is_out |= page.redirect.is_none();
                }
            }
            _ if row.repeats_body() => self.confirm(row, is_out),
            Some(200..=299) => {
                let at = fetched_at(&row);
                let page = PageToIndex {
                    url: row.url.clone(),
                    visited_at: at,
                    at,
                    in_full_at: at,
                    refused: refusal(&row),
                    bytes: row.bytes,
                    dom: row.dom(),
                    later_heads: Vec::new(),
                    redirect: None,
                    is_out: is_out.unwrap_or(false),
                    place: self.place(&mut row),
                };
                self.kept.insert(row.url, page);
            }
            Some(404 | 410) => drop(self.kept.remove(&row.url)),
            _ => {}
        }
    }

    /// Adds a row that repeats an earlier body of the same page.
    fn confirm(&mut self, mut row: PageRow, is_out: Option<bool>) {
        let dom = row.dom();
        let replaces_all = row.status != Some(304);
        let later_head = row.warc.clone().map(|place| RevisitResponseHead {
            at: fetched_at(&row),
            place,
            replaces_all,
        });
        let place = self.place(&mut row);
        if let Some(known) = self.kept.get_mut(&row.url) {
            known.visited_at = fetched_at(&row);
            if replaces_all {
                known.at = known.visited_at;
            }
            known
                .later_heads
                .retain(|head| head.replaces_all && !replaces_all);
            known.later_heads.extend(later_head);
            if replaces_all || row.usage.is_some() {
                known.refused = refusal(&row);
            }
            // The headers of a 304 response may bar the page from the index, and the headers of a
            // 200 response may allow it again.
            known.is_out = is_out.unwrap_or(known.is_out);
            if row.status == Some(200) && known.place.is_none() {
                known.place = place;
                known.dom = dom;
                known.bytes = row.bytes;
            }
        }
    }

    /// Returns the archive position of a row's record. `None` if its body must not be indexed.
    fn place(&self, row: &mut PageRow) -> Option<WarcRecordLocation> {
        // The archived body contains a secret that can't be redacted, since no secrets are
        // configured now.
        let is_unredacted = row.echoes_secret && self.rules.secrets.is_empty();
        let is_out = is_unredacted || row.is_body_omitted();
        row.warc.take().filter(|_| !is_out)
    }
}

/// Returns when a page was fetched, in seconds since the Unix epoch.
fn fetched_at(row: &PageRow) -> i64 {
    i64::try_from(row.fetched_at.as_micros() / 1_000_000).unwrap_or(i64::MAX)
}

/// Returns whether to judge a page again that was left out of the index. True if the reason was its
/// canonical URL, or if documents of its type were not indexed at that time but are now.
fn is_judged_anew(word: &str, row: &PageRow, documents: &DocumentIndexingSettings) -> bool {
    let content_type = row.content_type.as_deref();
    let path = row.url.splitn(4, '/').nth(3).unwrap_or_default();
    let is_html = documents.html && is_html(content_type, &[]);
    // Judge a page again if it names a canonical URL. Whether that URL replaces the page is known
    // only once all pages are read.
    let names_another = word.split(':').next() == Some("canonical");
    names_another
        || (word == "no_page" || word.starts_with("document_"))
            && (is_html || documents.may_be_read(content_type, path))
}

/// Lists the URLs that were fetched as sitemaps or as parts of pages. `None` if stopped.
fn others_than_pages(
    dir: &Path,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Option<HashSet<String>>, EngineError> {
    let mut not_pages = HashSet::new();
    let path = dir.join("requests.jsonl");
    if path.exists() {
        for row in RowReader::<RequestRow>::open(&path, None)? {
            if is_stopped() {
                return Ok(None);
            }
            match row {
                Ok(row) if matches!(row.purpose.as_str(), "sitemap" | "resource") => {
                    not_pages.insert(row.url);
                }
                Ok(_) | Err(ReadError::Row { .. }) => {}
                Err(why) => return Err(why.into()),
            }
        }
    }
    Ok(Some(not_pages))
}

/// Returns the site's statement that refuses indexing, if the row has one.
fn refusal(row: &PageRow) -> Option<String> {
    let usage = row.usage.as_ref()?;
    let refuses = usage.search.as_deref() == Some("refused");
    let raw = usage.said.first().map(|said| said.raw.clone());
    refuses.then(|| raw.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use crawl_archive::rows::PageRow;
    use crawl_fetcher::Secrets;
    use crawl_policy::{ProductToken, RobotsProfile};

    use super::LastPages;
    use crate::document_conversion::DocumentIndexingSettings;
    use crate::index::rebuild::IndexRebuildSettings;

    #[test]
    fn a_304_response_moves_the_visit_and_not_the_fetch() {
        let rules = IndexRebuildSettings {
            agent: ProductToken::new("crawl").unwrap(),
            profile: RobotsProfile::default(),
            secrets: Secrets::of(&[]),
            documents: DocumentIndexingSettings::default(),
        };
        let mut answers = LastPages {
            rules: &rules,
            others: HashSet::new(),
            kept: HashMap::new(),
        };
        let url = "http://e.example/";
        let mut times = Vec::new();
        for (second, status, change) in [(1, 200, "new"), (2, 200, "same"), (3, 304, "same")] {
            let row = serde_json::json!({"url": url, "status": status, "change": change,
                "fetched_at": format!("1970-01-01T00:00:0{second}.000Z"), "ms": 1, "bytes": 3,
                "content_type": "text/html", "digest": null, "depth": 0, "via": null,
                "title": null, "robots": null, "warc": null, "error": null});
            answers.note(serde_json::from_value::<PageRow>(row).unwrap());
            let page = &answers.kept[url];
            times.push((page.visited_at, page.at, page.in_full_at));
        }
        assert_eq!(times, [(1, 1, 1), (2, 2, 1), (3, 2, 1)]);
    }
}
