//! Faults of a site that its owner can fix: links to missing pages or missing places in a page,
//! links to moved pages, and resources loaded without encryption.

mod broken_link_elements;
mod broken_link_faults;
mod csv;
mod fault_baseline;
mod formats;
mod fragment_links;
mod text_fragment;
mod unchecked_links;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use crawl_archive::rows::{NOT_A_SITEMAP, PageRow};
use crawl_extractor::{Link, LinkElement, LinkKind};
use crawl_weburl::{CanonicalUrl, UnusableUrlError, canonicalize};
use serde::{Deserialize, Serialize};

use crate::broken_links::{ArchivedPageReader, LatestRows, broken_links, key};
use crate::error::RecordsError;
use crate::link_spelling_rules::LinkSpellingRules;
use crate::reported_crawl::ReportedCrawlSummary;
use crate::row_file_reader::pages;
use crate::row_token_wording::{failure_words, status_words};

use broken_link_elements::{TextlessBrokenLinks, element_words};
use broken_link_faults::{broken_faults, unreachable_words};
pub use fault_baseline::FaultBaseline;
use fragment_links::FragmentLinks;
pub use unchecked_links::UncheckedLink;
use unchecked_links::{UnfetchedReason, UnfetchedUrls};

/// The beginning of [`PageFault::why`] for a moved page; the new address follows.
pub(crate) const MOVED_TO: &str = "moved to ";
/// Maximum number of consecutive redirects to follow.
const MAX_CHAIN: usize = 256;
/// Maximum number of characters to show of a link that isn't a URL.
const MAX_SHOWN_CHARS: usize = 2_000;

/// The faults of a crawl's pages, as of the last row of each URL.
///
/// Field names are stable; later versions of the program may add fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteFaultReport {
    /// Version of this format: 1.
    pub format: u32,
    /// The last round of the crawl, starting at 1.
    pub round: u32,
    /// Where the links come from: `archive`, or, without an archive, a value of
    /// [`BrokenLinkReport::source`](crate::BrokenLinkReport::source). Without an archive, only
    /// links to broken pages are found.
    pub source: String,
    /// The number of faults of each kind.
    pub counts: BTreeMap<FaultKind, u64>,
    /// The faults, in page order.
    pub faults: Vec<PageFault>,
    /// Number of faults skipped because the baseline lists them.
    pub known: u64,
    /// Number of faults that the baseline lists but that were not found again.
    pub mended: u64,
    /// Links whose target was not checked, in page order.
    #[serde(default)]
    pub unchecked: Vec<UncheckedLink>,
    /// Number of known URLs that the crawl has not visited yet, because it was interrupted or a
    /// budget ended it. URLs of unreachable hosts are not counted.
    #[serde(default)]
    pub pending: u64,
    /// Number of pages whose links could not be checked, because their body is not archived.
    pub unread: u64,
    /// Number of pages whose end was not read ([`PageRow::is_incomplete`]), so that only a part of
    /// their links was checked.
    #[serde(default)]
    pub incomplete: u64,
    /// The crawl in which the faults were found.
    #[serde(default)]
    pub crawl: ReportedCrawlSummary,
    /// Keys of the HTML pages whose links were checked. The grades in the HTML report are relative
    /// to their number. Empty without an archive.
    #[serde(skip)]
    pub(crate) graded: HashSet<u64>,
    /// The kinds of faults that were searched for. Empty if all kinds were.
    #[serde(skip)]
    pub(crate) kinds: Vec<FaultKind>,
}

/// A fault on a page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PageFault {
    /// The page to fix; `None` for a broken seed, and for a page that is named as a sitemap.
    pub page: Option<String>,
    /// The target of the link, with its fragment.
    pub to: String,
    /// The kind of the fault.
    pub kind: FaultKind,
    /// The problem in words: `not found (404)`, `connection refused`, or the address to link to
    /// instead.
    pub why: String,
    /// The status of the response, if the target is broken and there was a response.
    #[serde(default)]
    pub status: Option<u16>,
    /// The error as in the records, if the target is broken and its row has an error.
    #[serde(default)]
    pub error: Option<String>,
    /// The link's text, if it has one.
    pub text: Option<String>,
    /// The kind of element that contains the link, if the link has no text: `image`, `style sheet`,
    /// `script`, or the name of another element. `None` if the element is unknown.
    #[serde(default)]
    pub element: Option<String>,
}

/// A kind of fault.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::Display,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum FaultKind {
    /// A link or page resource with a status of 400 or above, or a redirect that leads nowhere.
    /// Also a page that the site named as a sitemap.
    Broken,
    /// A link to a server that didn't respond.
    Unreachable,
    /// A link with a fragment that isn't an id in its target page.
    Fragment,
    /// A link with a text fragment (`#:~:text=`) that its target page doesn't contain.
    TextFragment,
    /// A link to a permanently moved page (301, 308).
    Redirect,
    /// An http resource, frame or form target of an https page.
    Mixed,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [FaultKind; 6] = [
        FaultKind::Broken,
        FaultKind::Unreachable,
        FaultKind::Fragment,
        FaultKind::TextFragment,
        FaultKind::Redirect,
        FaultKind::Mixed,
    ];
}

/// Finds faults of the given kinds in the crawl in `dir`.
///
/// Reads `pages.jsonl` several times, and each archived page once. Reads all archived pages again
/// to find the links to broken pages, if `links.jsonl` is missing or the crawl has several rounds.
/// Reads a page again if a link with a fragment leads to it. Memory: about 100 bytes per URL, and
/// each link with a fragment.
///
/// # Errors
/// The errors of [`broken_links()`].
pub fn faults(dir: &Path, kinds: &[FaultKind]) -> Result<SiteFaultReport, RecordsError> {
    let broken = broken_links(dir)?;
    let latest = LatestRows::read(dir)?;
    let mut result = SiteFaultReport {
        format: 1,
        round: broken.round,
        unread: broken.unread,
        kinds: kinds.to_vec(),
        crawl: ReportedCrawlSummary::read(dir, &latest)?,
        ..SiteFaultReport::default()
    };
    result.pending = result.crawl.pending;
    let (mut faults, mut unchecked) = broken_faults(&broken, &latest);
    result.source = match ArchivedPageReader::open(dir)? {
        Some(archived) => {
            let mut search = SiteFaultSearch {
                redirects: redirects(dir, &latest, &archived)?,
                replacement_rules: LinkSpellingRules::read(dir)?,
                latest: &latest,
                unfetched: UnfetchedUrls::read(dir, &broken.outages)?,
                unnamed: TextlessBrokenLinks::of(&faults),
                fragments: FragmentLinks::default(),
                faults: Vec::new(),
                unchecked: Vec::new(),
            };
            search.read_pages(dir, &archived, &mut result)?;
            let fragments = std::mem::take(&mut search.fragments);
            search.unnamed.write_to(&mut faults);
            faults.append(&mut search.faults);
            unchecked.append(&mut search.unchecked);
            fragments.check(dir, &latest, &archived, (&mut faults, &mut unchecked))?;
            "archive".to_owned()
        }
        None => broken.source,
    };
    faults.retain(|fault| kinds.contains(&fault.kind));
    faults.sort_unstable();
    // Equal links on one page are one fault.
    faults.dedup_by(|one, other| {
        (&one.page, &one.to, one.kind) == (&other.page, &other.to, other.kind)
    });
    unchecked.sort_unstable();
    unchecked.dedup_by(|one, other| (&one.page, &one.to) == (&other.page, &other.to));
    result.faults = faults;
    result.unchecked = unchecked;
    result.count();
    Ok(result)
}

impl SiteFaultReport {
    fn count(&mut self) {
        self.counts.clear();
        for fault in &self.faults {
            *self.counts.entry(fault.kind).or_default() += 1;
        }
    }

    /// Returns the number of faults that make a link check fail. A redirect still works, so it
    /// doesn't count.
    #[must_use]
    pub fn failing(&self) -> usize {
        let faults = self.faults.iter();
        faults
            .filter(|fault| fault.kind != FaultKind::Redirect)
            .count()
    }

    /// Removes the faults that a baseline lists, and counts them.
    pub fn leave_out(&mut self, baseline: &FaultBaseline) {
        let before = self.faults.len();
        self.faults.retain(|fault| !baseline.holds(fault));
        let known_count = (before - self.faults.len()) as u64;
        // Count only baseline faults of the kinds that were searched for. Faults of other kinds
        // can't be found, but that doesn't mean that they are mended.
        let listed_count = baseline.count(&self.kinds);
        (self.known, self.mended) = (known_count, listed_count.saturating_sub(known_count));
        self.count();
    }
}

/// Returns the fault of a page that the site named as a sitemap.
fn not_a_sitemap(row: &PageRow) -> PageFault {
    PageFault {
        page: None,
        to: row.url.clone(),
        kind: FaultKind::Broken,
        why: failure_words(NOT_A_SITEMAP),
        status: row.status,
        error: row.error.clone(),
        text: None,
        element: None,
    }
}

/// The latest redirect of a URL.
struct LatestRedirect {
    is_permanent: bool,
    to: String,
    /// The fragment of `Location`, if there is one.
    fragment: Option<String>,
}

/// Returns the redirects of a crawl, by URL.
fn redirects(
    dir: &Path,
    latest: &LatestRows,
    archived: &ArchivedPageReader,
) -> Result<HashMap<String, LatestRedirect>, RecordsError> {
    let mut redirects = HashMap::new();
    let mut rows = pages(dir)?;
    while let Some(row) = rows.next() {
        let row = row?;
        if !latest.is_last(&row, rows.line()) || row.broken_redirect().is_some() {
            continue;
        }
        let Some(to) = row.redirect.clone() else {
            continue;
        };
        if let Some(status @ 300..=399) = row.status {
            let redirect = LatestRedirect {
                is_permanent: matches!(status, 301 | 308),
                to,
                fragment: archived.location_fragment(&row),
            };
            redirects.insert(row.url, redirect);
        }
    }
    Ok(redirects)
}

/// A search of the archived pages for faults.
struct SiteFaultSearch<'a> {
    redirects: HashMap<String, LatestRedirect>,
    replacement_rules: LinkSpellingRules,
    latest: &'a LatestRows,
    unfetched: UnfetchedUrls,
    unnamed: TextlessBrokenLinks,
    fragments: FragmentLinks,
    faults: Vec<PageFault>,
    unchecked: Vec<UncheckedLink>,
}

impl SiteFaultSearch<'_> {
    /// Searches all current pages in scope. Adds to `result` which HTML pages were read, and how
    /// many pages were not read or not completely.
    fn read_pages(
        &mut self,
        dir: &Path,
        archived: &ArchivedPageReader,
        result: &mut SiteFaultReport,
    ) -> Result<(), RecordsError> {
        result.unread = 0;
        let mut rows = pages(dir)?;
        while let Some(row) = rows.next() {
            let row = row?;
            let is_own = self.latest.is_body(&row, rows.line()) && row.hops_off_scope == 0;
            if !is_own || !archived.may_be_read(&row) {
                continue;
            }
            if row.error.as_deref() == Some(NOT_A_SITEMAP) {
                self.faults.push(not_a_sitemap(&row));
            }
            let links = archived.each_link(&row, &mut |page, to, link, text| match (to, link) {
                (Ok(to), _) => self.link(page, to, link, text),
                (Err(why), Some(link)) => self.unusable(page, why, link),
                (Err(_), None) => {}
            });
            match links {
                Some(()) if row.charset.is_some() => {
                    result.graded.insert(key(&row.url));
                    result.incomplete += u64::from(row.is_incomplete());
                }
                Some(()) => {}
                None => result.unread += 1,
            }
        }
        Ok(())
    }

    /// Adds a link whose address can't be fetched, if the address is probably a mistake.
    fn unusable(&mut self, page: &CanonicalUrl, why: &UnusableUrlError, link: &Link) {
        let why = match why {
            UnusableUrlError::Malformed(why) => format!("not a URL: {why}"),
            UnusableUrlError::Scheme(scheme) if is_misspelt(scheme) => {
                format!("misspelt scheme `{scheme}`")
            }
            UnusableUrlError::Scheme(scheme) if scheme == "file" => {
                "a file on the visitor's own computer".to_owned()
            }
            _ => return,
        };
        let to: String = link.href.chars().take(MAX_SHOWN_CHARS).collect();
        self.faults.push(PageFault {
            page: Some(page.to_string()),
            to,
            kind: FaultKind::Broken,
            why,
            status: None,
            error: Some("malformed_url".to_owned()),
            element: link.text.is_none().then(|| element_words(link)),
            text: link.text.as_deref().map(str::to_owned),
        });
    }

    /// Adds a link to a URL that the crawl did not fetch. `name` is the URL that the link leads to
    /// after all redirects.
    fn unfetched(&mut self, to: &CanonicalUrl, name: &str, fault: PageFault) {
        let url = match name == to.as_str() {
            true => Ok(to.clone()),
            false => canonicalize(None, name),
        };
        let Some(reason) = url.ok().and_then(|url| self.unfetched.of(&url, name)) else {
            return;
        };
        let is_redirect = self.redirects.contains_key(&fault.to);
        let after = match is_redirect {
            true => format!(", after a redirect to {name}"),
            false => String::new(),
        };
        match reason {
            UnfetchedReason::Unreachable(error) => self.faults.push(PageFault {
                kind: FaultKind::Unreachable,
                why: unreachable_words(error) + &after,
                error: Some(error.to_owned()),
                ..fault
            }),
            UnfetchedReason::Answered(status) => self.faults.push(PageFault {
                kind: FaultKind::Broken,
                why: status_words(status) + &after,
                status: Some(status),
                ..fault
            }),
            UnfetchedReason::Unchecked(reason) => self.unchecked.push(UncheckedLink {
                page: fault.page.unwrap_or_default(),
                to: to.to_string(),
                reason: reason.to_owned(),
                text: fault.text,
            }),
        }
    }

    fn link(
        &mut self,
        page: &CanonicalUrl,
        to: &CanonicalUrl,
        link: Option<&Link>,
        text: Option<&str>,
    ) {
        let fault = |kind, why: String| PageFault {
            page: Some(page.to_string()),
            to: to.to_string(),
            kind,
            why,
            status: None,
            error: None,
            text: text.map(str::to_owned),
            element: link.filter(|_| text.is_none()).map(element_words),
        };
        if link.is_some_and(is_loaded_or_sent) && page.scheme() == "https" && to.scheme() == "http"
        {
            let element = link.map(|link| link.element.to_string());
            let element = element.unwrap_or_default();
            self.faults.push(PageFault {
                element: None,
                ..fault(FaultKind::Mixed, element)
            });
        }
        if link.is_some_and(|link| link.kind == LinkKind::PostForm) {
            // The answer to a GET request doesn't show whether the form works.
            return;
        }
        let replacement = self
            .replacement_rules
            .fetched_as(to, |url| self.latest.knows(url));
        let first = replacement.as_ref().unwrap_or(to).as_str();
        if text.is_none() {
            self.unnamed.found(page.as_str(), first, link);
        }
        if !self.latest.knows(first) {
            let fault = PageFault {
                to: first.to_owned(),
                ..fault(FaultKind::Unreachable, String::new())
            };
            return self.unfetched(to, first, fault);
        }
        let Some(target) = end_of(&self.redirects, self.latest, first) else {
            let last = last_of(&self.redirects, first);
            if !self.latest.knows(last) {
                let (last, fault) = (
                    last.to_owned(),
                    fault(FaultKind::Unreachable, String::new()),
                );
                self.unfetched(to, &last, fault);
            }
            return;
        };
        let redirected = redirected_fragment(&self.redirects, first, target);
        if self
            .redirects
            .get(first)
            .is_some_and(|first| first.is_permanent)
        {
            // A link should not lead to the target of a temporary redirect (RFC 9110, section
            // 15.4.3).
            let moved = permanent_end_of(&self.redirects, first);
            let fragment = redirected_fragment(&self.redirects, first, moved);
            let fragment = fragment.filter(|fragment| !fragment.is_empty());
            let fragment = fragment.map_or(String::new(), |fragment| format!("#{fragment}"));
            let reason = format!("{MOVED_TO}{moved}{fragment}");
            self.faults.push(fault(FaultKind::Redirect, reason));
        }
        let Some(link) = link.filter(|link| is_followed(link)) else {
            return;
        };
        let fragment = link.fragment();
        let sought = redirected.or(fragment.as_deref());
        if let Some(sought) = sought.filter(|sought| !sought.is_empty()) {
            let to = match &fragment {
                Some(fragment) => format!("{to}#{fragment}"),
                None => to.to_string(),
            };
            self.fragments.add(page, to, target, sought, text);
        }
    }
}

/// Returns the page at the end of a redirect chain. `None` if the end was not fetched, or is not a
/// page.
fn end_of<'s>(
    redirects: &'s HashMap<String, LatestRedirect>,
    latest: &LatestRows,
    url: &'s str,
) -> Option<&'s str> {
    let next = |url: &&'s str| redirects.get(*url).map(|redirect| redirect.to.as_str());
    let mut chain = std::iter::successors(Some(url), next).take(MAX_CHAIN);
    chain.find(|url| !redirects.contains_key(*url) && latest.is_page(url))
}

/// Returns the last URL that `url` leads to through permanent redirects alone.
fn permanent_end_of<'s>(redirects: &'s HashMap<String, LatestRedirect>, url: &'s str) -> &'s str {
    let permanent = |url: &str| redirects.get(url).filter(|redirect| redirect.is_permanent);
    let next = |url: &&'s str| permanent(url).map(|redirect| redirect.to.as_str());
    let chain = std::iter::successors(Some(url), next).take(MAX_CHAIN);
    chain.last().unwrap_or(url)
}

/// Returns the last URL of a redirect chain, whether it was fetched or not.
fn last_of<'s>(redirects: &'s HashMap<String, LatestRedirect>, url: &'s str) -> &'s str {
    let next = |url: &&'s str| redirects.get(*url).map(|redirect| redirect.to.as_str());
    let chain = std::iter::successors(Some(url), next).take(MAX_CHAIN);
    chain.last().unwrap_or(url)
}

/// Returns whether a scheme is a misspelling of a common one: one letter is wrong, missing or
/// added, or two letters are swapped.
fn is_misspelt(scheme: &str) -> bool {
    ["http", "https", "mailto", "javascript"]
        .iter()
        .any(|right| strsim::damerau_levenshtein(scheme, right) == 1)
}

/// Returns the fragment that a redirect chain adds to `url`: the last fragment in a `Location` of
/// the chain. A `Location` without a fragment keeps the previous fragment (RFC 9110, section
/// 10.2.2).
fn redirected_fragment<'s>(
    redirects: &'s HashMap<String, LatestRedirect>,
    url: &str,
    end: &str,
) -> Option<&'s str> {
    let first = redirects.get(url).filter(|_| url != end);
    let next =
        |redirect: &&LatestRedirect| redirects.get(&redirect.to).filter(|_| redirect.to != end);
    let chain = std::iter::successors(first, next).take(MAX_CHAIN);
    chain
        .filter_map(|redirect| redirect.fragment.as_deref())
        .last()
}

/// Returns whether a browser requests the link's target without a click, or sends the data of a
/// form to it.
fn is_loaded_or_sent(link: &Link) -> bool {
    let kind_is_loaded = matches!(
        link.kind,
        LinkKind::Resource | LinkKind::Form | LinkKind::PostForm
    );
    kind_is_loaded || matches!(link.element, LinkElement::Iframe | LinkElement::Frame)
}

/// Returns whether a reader of the page can follow the link.
fn is_followed(link: &Link) -> bool {
    matches!(
        link.element,
        LinkElement::A | LinkElement::Area | LinkElement::Math
    )
}

#[cfg(test)]
mod tests;
