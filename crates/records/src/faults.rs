//! Faults of a site that its owner can mend: links that lead nowhere or to no such place in a page,
//! redirects that links should pass by, and parts that a page loads without encryption.

mod baseline;
mod formats;
mod fragments;
mod text_fragment;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crawl_extractor::{Element, Link, LinkKind, may_be_read};
use crawl_weburl::{CanonicalUrl, SpellingRules};
use serde::{Deserialize, Serialize};

use crate::broken::{Archived, BrokenLinks, LatestRows, broken, naming};
use crate::error::RecordsError;
use crate::rows::pages;

pub use baseline::Baseline;
use fragments::Fragments;

/// Redirects in a row that are followed.
const MAX_CHAIN: usize = 256;

/// The faults of a crawl's pages, as of the last row of each URL.
///
/// Field names stay; a later version of the program may add fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Faults {
    /// The layout of this object: 1.
    pub format: u32,
    /// The last round of the crawl, from 1.
    pub round: u32,
    /// The source of the pages: `archive`, or what [`BrokenLinks`] names: then only links to
    /// broken pages are known.
    pub source: String,
    /// The number of faults of each kind.
    pub counts: BTreeMap<FaultKind, u64>,
    /// In the order of the pages.
    pub faults: Vec<Fault>,
    /// Faults that were left out, since the baseline lists them.
    pub known: u64,
    /// Faults of the baseline that are gone.
    pub mended: u64,
    /// Pages whose own links could not be looked at, since the archive has no body of them.
    pub unread: u64,
}

/// A fault on a page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fault {
    /// The page that is to be mended; null for a broken seed.
    pub page: Option<String>,
    /// Where the link leads, with its fragment.
    pub to: String,
    /// The kind.
    pub kind: FaultKind,
    /// The finding: a status, an error, or where it should lead.
    pub why: String,
    /// The link's text, where it has one.
    pub text: Option<String>,
}

/// A kind of fault.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::Display,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum FaultKind {
    /// A link or a part of a page that has a status of 400 and above, or a redirect without an end.
    Broken,
    /// A link to a server that did not answer.
    Unreachable,
    /// A link with a fragment that is the id of nothing in its page.
    Fragment,
    /// A link with a text fragment (`#:~:text=`) that its page does not say.
    TextFragment,
    /// A link to what has moved for good (301, 308).
    Redirect,
    /// A page by https loads a part by http.
    Mixed,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [FaultKind; 6] = [
        FaultKind::Broken,
        FaultKind::Unreachable,
        FaultKind::Fragment,
        FaultKind::TextFragment,
        FaultKind::Redirect,
        FaultKind::Mixed,
    ];
}

/// Finds the faults of the crawl in `dir`, of these kinds.
///
/// Goes through `pages.jsonl` a few times, and reads the archived pages once, those that a fragment
/// leads into twice. Memory: some 100 bytes for each URL, and each link with a fragment.
///
/// # Errors
/// Those of [`broken()`].
pub fn faults(dir: &Path, kinds: &[FaultKind]) -> Result<Faults, RecordsError> {
    let broken = broken(dir)?;
    let mut found = Faults {
        format: 1,
        round: broken.round,
        unread: broken.unread,
        ..Faults::default()
    };
    let mut faults = broken_faults(&broken);
    found.source = match Archived::open(dir) {
        Some(archived) => {
            let latest = LatestRows::read(dir)?;
            let mut search = Search {
                redirects: redirects(dir, &latest, &archived)?,
                naming: naming(dir),
                latest: &latest,
                fragments: Fragments::default(),
                faults: Vec::new(),
            };
            found.unread = search.read_pages(dir, &archived)?;
            let fragments = std::mem::take(&mut search.fragments);
            faults.append(&mut search.faults);
            fragments.check(dir, &latest, &archived, &mut faults)?;
            "archive".to_owned()
        }
        None => broken.source,
    };
    faults.retain(|fault| kinds.contains(&fault.kind));
    faults.sort_unstable();
    // A link that stands twice on a page is one fault.
    faults.dedup_by(|one, other| {
        (&one.page, &one.to, one.kind) == (&other.page, &other.to, other.kind)
    });
    found.faults = faults;
    found.count();
    Ok(found)
}

impl Faults {
    fn count(&mut self) {
        self.counts.clear();
        for fault in &self.faults {
            *self.counts.entry(fault.kind).or_default() += 1;
        }
    }

    /// Leaves out what a baseline lists, and counts it.
    pub fn leave_out(&mut self, baseline: &Baseline) {
        let before = self.faults.len();
        self.faults.retain(|fault| !baseline.holds(fault));
        let known = (before - self.faults.len()) as u64;
        (self.known, self.mended) = (known, baseline.len().saturating_sub(known));
        self.count();
    }
}

/// The links to pages that are broken. A page that no link leads to any more is no fault, a seed is.
fn broken_faults(broken: &BrokenLinks) -> Vec<Fault> {
    let mut faults = Vec::new();
    for page in &broken.pages {
        let kind = match page.status {
            None => FaultKind::Unreachable,
            Some(_) => FaultKind::Broken,
        };
        let status = page.status.map(|status| status.to_string());
        let error = page
            .error
            .clone()
            .filter(|_| page.status.is_none_or(|status| status < 400));
        let why = [status, error]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" ");
        let fault = |page_of: Option<&str>, to: &str, why: String, text: Option<String>| Fault {
            page: page_of.map(str::to_owned),
            to: to.to_owned(),
            kind,
            why,
            text,
        };
        if page.links.is_empty() && page.via.is_none() {
            faults.push(fault(None, &page.url, why.clone(), None));
        }
        for link in &page.links {
            let to = link.through.first().unwrap_or(&page.url);
            let why = match link.through.is_empty() {
                true => why.clone(),
                false => format!("{why}, by way of a redirect to {}", page.url),
            };
            faults.push(fault(Some(&link.page), to, why, link.text.clone()));
        }
    }
    faults
}

/// A redirect that was seen last for its URL.
struct Redirect {
    is_permanent: bool,
    to: String,
    /// The fragment of `Location`, if there is one.
    fragment: Option<String>,
}

/// The redirects of a crawl, by their URLs.
fn redirects(
    dir: &Path,
    latest: &LatestRows,
    archived: &Archived,
) -> Result<HashMap<String, Redirect>, RecordsError> {
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
            let redirect = Redirect {
                is_permanent: matches!(status, 301 | 308),
                to,
                fragment: archived.location_fragment(&row),
            };
            redirects.insert(row.url, redirect);
        }
    }
    Ok(redirects)
}

/// The faults that are told by the pages themselves.
struct Search<'a> {
    redirects: HashMap<String, Redirect>,
    naming: SpellingRules,
    latest: &'a LatestRows,
    fragments: Fragments,
    faults: Vec<Fault>,
}

impl Search<'_> {
    /// Reads all pages as they are now; gives the number of those that could not be read.
    fn read_pages(&mut self, dir: &Path, archived: &Archived) -> Result<u64, RecordsError> {
        let mut unread = 0;
        let mut rows = pages(dir)?;
        while let Some(row) = rows.next() {
            let row = row?;
            if !self.latest.is_body(&row, rows.line()) || !may_be_read(row.content_type.as_deref())
            {
                continue;
            }
            let read = archived.each_link(&row, &mut |page, to, link, text| {
                self.link(page, to, link, text);
            });
            unread += u64::from(read.is_none());
        }
        Ok(unread)
    }

    fn link(
        &mut self,
        page: &CanonicalUrl,
        to: &CanonicalUrl,
        link: Option<&Link>,
        text: Option<&str>,
    ) {
        let fault = |kind, why: String| Fault {
            page: Some(page.to_string()),
            to: to.to_string(),
            kind,
            why,
            text: text.map(str::to_owned),
        };
        if link.is_some_and(is_loaded) && page.scheme() == "https" && to.scheme() == "http" {
            let why = link
                .map(|link| link.element.to_string())
                .unwrap_or_default();
            self.faults.push(fault(FaultKind::Mixed, why));
        }
        let known = match self.latest.knows(to.as_str()) {
            true => None,
            false => self.naming.apply(to).map(|named| named.to_string()),
        };
        let first = known.as_deref().unwrap_or(to.as_str());
        let Some(target) = end_of(&self.redirects, self.latest, first) else {
            return;
        };
        if self
            .redirects
            .get(first)
            .is_some_and(|first| first.is_permanent)
        {
            let why = format!("moved to {target}");
            self.faults.push(fault(FaultKind::Redirect, why));
        }
        let Some(link) = link.filter(|link| is_followed(link)) else {
            return;
        };
        let fragment = fragment_of(link);
        let redirected = redirected_fragment(&self.redirects, first, target);
        if let Some(sought) = redirected.or(fragment).filter(|sought| !sought.is_empty()) {
            let to = match fragment {
                Some(fragment) => format!("{to}#{fragment}"),
                None => to.to_string(),
            };
            self.fragments.add(page, to, target, sought, text);
        }
    }
}

/// The page at the end of the redirects from a URL; none where that is none that was fetched.
fn end_of<'s>(
    redirects: &'s HashMap<String, Redirect>,
    latest: &LatestRows,
    url: &'s str,
) -> Option<&'s str> {
    let next = |url: &&'s str| redirects.get(*url).map(|redirect| redirect.to.as_str());
    let mut chain = std::iter::successors(Some(url), next).take(MAX_CHAIN);
    chain.find(|url| !redirects.contains_key(*url) && latest.is_page(url))
}

/// Returns the last fragment that a `Location` has between a URL and the end of its redirects. A
/// `Location` without one keeps the fragment before it (RFC 9110, section 10.2.2).
fn redirected_fragment<'s>(
    redirects: &'s HashMap<String, Redirect>,
    url: &str,
    end: &str,
) -> Option<&'s str> {
    let first = redirects.get(url).filter(|_| url != end);
    let next = |redirect: &&Redirect| redirects.get(&redirect.to).filter(|_| redirect.to != end);
    let chain = std::iter::successors(first, next).take(MAX_CHAIN);
    chain
        .filter_map(|redirect| redirect.fragment.as_deref())
        .last()
}

/// Returns whether a browser that shows a page asks for a link by itself, or sends what a reader
/// typed there.
fn is_loaded(link: &Link) -> bool {
    matches!(link.kind, LinkKind::Resource | LinkKind::Form)
        || matches!(link.element, Element::Iframe | Element::Frame)
}

/// Returns whether a reader follows a link.
fn is_followed(link: &Link) -> bool {
    matches!(link.element, Element::A | Element::Area | Element::Math)
}

/// Returns the fragment of a link, unless it is empty.
fn fragment_of(link: &Link) -> Option<&str> {
    let (_, fragment) = link.href.split_once('#')?;
    (!fragment.is_empty()).then_some(fragment)
}

#[cfg(test)]
mod tests;
