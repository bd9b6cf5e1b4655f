//! Assigns files to URLs, and finds the file that a link leads to.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crawl_archive::UrlFilePathAssigner;
use crawl_extractor::essence;
use crawl_records::{
    CurrentRow, CurrentRowSelector, LinkSpellingRules, PageRow, RecordsError, location_fragment,
};
use crawl_weburl::{CanonicalUrl, canonicalize};

use crate::file_path::{origin_folder, scheme_and_authority, wanted_path};

/// Maximum number of redirects to follow from the target of a link.
const MAX_REDIRECTS: usize = 32;

/// The file of each exported URL, and the redirects of the crawl.
#[derive(Debug)]
pub(crate) struct MirrorFileMap {
    names: UrlFilePathAssigner,
    redirects: HashMap<Box<str>, RedirectTarget>,
    replacement_rules: LinkSpellingRules,
}

#[derive(Debug)]
struct RedirectTarget {
    target: Box<str>,
    /// The fragment of `Location`, if there is one.
    fragment: Option<Box<str>>,
}

/// The file that a link leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkedFile<'a> {
    pub(crate) path: &'a str,
    /// The fragment to use instead of the link's own. `None` if no redirect between the link and
    /// the file has a fragment in `Location`; otherwise the last such fragment (RFC 9110 section
    /// 10.2.2).
    pub(crate) fragment: Option<&'a str>,
}

/// The number of current pages and resources without a file, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOutCounts {
    pub(crate) withheld: u64,
    pub(crate) unwanted: u64,
    pub(crate) secret: u64,
    pub(crate) without_body: u64,
    /// The number of rows without a usable URL.
    pub(crate) unreadable: u64,
}

impl MirrorFileMap {
    /// Reads the rows of the crawl in `dir` and assigns a file name to each page and resource that
    /// may be exported. Also returns the numbers of pages and resources without a file, by reason.
    pub(crate) fn read(
        dir: &Path,
        current: &CurrentRowSelector,
    ) -> Result<(MirrorFileMap, LeftOutCounts), RecordsError> {
        let mut left_out = LeftOutCounts::default();
        let mut files: Vec<(CanonicalUrl, Option<String>)> = Vec::new();
        let mut redirects = HashMap::new();
        current.each(|row| {
            match row {
                CurrentRow::Redirect(row) => {
                    let fragment = location_fragment(dir, &row).map(Into::into);
                    if let Some(target) = row.redirect {
                        let target = target.into();
                        redirects.insert(row.url.into(), RedirectTarget { target, fragment });
                    }
                }
                CurrentRow::Page { row, may_export } => match canonicalize(None, &row.url) {
                    Err(_) => left_out.unreadable += 1,
                    Ok(url) if left_out.admits(&row, may_export) => {
                        files.push((url, media_type(&row)));
                    }
                    Ok(_) => {}
                },
            }
            Ok::<_, RecordsError>(())
        })?;
        let secure: HashSet<String> = files
            .iter()
            .map(|(url, _)| scheme_and_authority(url))
            .filter(|(scheme, _)| *scheme == "https")
            .map(|(_, authority)| authority.to_owned())
            .collect();
        let mut names = UrlFilePathAssigner::default();
        for (url, media_type) in files {
            let (_, authority) = scheme_and_authority(&url);
            let folder = origin_folder(&url, secure.contains(authority));
            names.add(
                url.as_str(),
                wanted_path(&url, &folder, media_type.as_deref()),
            );
        }
        names.settle();
        let replacement_rules = current.link_replacement_rules()?;
        let files = MirrorFileMap {
            names,
            redirects,
            replacement_rules,
        };
        Ok((files, left_out))
    }

    /// Returns the file of a URL. Does not follow redirects.
    pub(crate) fn own(&self, url: &str) -> Option<&str> {
        self.names.get(url)
    }

    /// Returns the file that a link to `url` leads to, directly or through redirects. If there is
    /// no such file, tries the URL that the crawl fetched instead of `url`, such as one without
    /// the parameters of a `Clean-param` rule.
    pub(crate) fn of_link(&self, url: &CanonicalUrl) -> Option<LinkedFile<'_>> {
        self.after_redirects(url.as_str()).or_else(|| {
            let is_known =
                |url: &str| self.names.get(url).is_some() || self.redirects.contains_key(url);
            let spelling = self.replacement_rules.fetched_as(url, is_known)?;
            self.after_redirects(spelling.as_str())
        })
    }

    fn after_redirects(&self, url: &str) -> Option<LinkedFile<'_>> {
        let mut fragment = None;
        let mut target = url;
        for _ in 0..=MAX_REDIRECTS {
            if let Some(path) = self.own(target) {
                return Some(LinkedFile { path, fragment });
            }
            let redirect = self.redirects.get(target)?;
            fragment = redirect.fragment.as_deref().or(fragment);
            target = &redirect.target;
        }
        None
    }

    /// Unassigns the file of a URL whose body can't be read, so that no link leads to it.
    pub(crate) fn remove(&mut self, url: &str) {
        self.names.remove(url);
    }
}

impl LeftOutCounts {
    /// Returns whether a page gets a file. If not, counts the reason.
    fn admits(&mut self, row: &PageRow, may_export: bool) -> bool {
        let is_without_body = matches!(row.status, Some(204 | 205)) || row.warc.is_none();
        let counter = if row.unwanted.is_some() {
            &mut self.unwanted
        } else if row.echoes_secret {
            &mut self.secret
        } else if !may_export {
            &mut self.withheld
        } else if is_without_body {
            &mut self.without_body
        } else {
            return true;
        };
        *counter += 1;
        false
    }
}

/// Returns the declared media type of a page, or if none was declared, the detected one.
fn media_type(row: &PageRow) -> Option<String> {
    essence(row.content_type.as_deref()).or_else(|| row.detected_type.clone())
}
