//! Other spellings of a URL that usually name the same page.
//!
//! The WHATWG form never changes what a URL names, but the steps here might: no standard says that
//! `?b&a` and `?a&b` are the same. So each step has its own [`SpellingStepPolicy`], and a step
//! without evidence is off unless the operator enables it.

mod session_id;
mod tracking_parameters;

pub use self::session_id::SessionId;
use crate::canonical::CanonicalUrl;
use crate::query::{name_of, parts, retain, value_of, with_query};

/// A step that turns a URL into another spelling of it, such as removing tracking parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SpellingStep {
    /// Removes the file name of a folder's page: `/a/index.html` becomes `/a/`.
    DefaultDocument,
    /// Removes parameters that track where a reader came from: `utm_source`, `fbclid`.
    Tracking,
    /// Removes parameters and parts of the path that identify the reader: `PHPSESSID`,
    /// `;jsessionid`.
    SessionId,
    /// Sorts the parameters by name.
    Order,
    /// Removes parameters with an empty value (`a=`), and a trailing question mark.
    Empty,
}

/// When a step is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SpellingStepPolicy {
    /// The step is never taken.
    #[default]
    Off,
    /// The step is taken if pages of the host had the same text under both spellings.
    Evidence,
    /// The step is always taken.
    On,
}

/// The policy of each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpellingStepPolicies {
    /// When to take [`SpellingStep::DefaultDocument`].
    pub default_documents: SpellingStepPolicy,
    /// When to take [`SpellingStep::Tracking`].
    pub tracking: SpellingStepPolicy,
    /// When to take [`SpellingStep::SessionId`].
    pub session_ids: SpellingStepPolicy,
    /// When to take [`SpellingStep::Order`].
    pub order: SpellingStepPolicy,
    /// When to take [`SpellingStep::Empty`].
    pub empty: SpellingStepPolicy,
}

/// Another spelling of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlternativeSpelling {
    /// The other spelling, which is shorter or has its parameters in order.
    pub url: CanonicalUrl,
    /// The step that yields the other spelling.
    pub step: SpellingStep,
    /// The part of the URL that the step changes: the file name, the parameter name, or the path
    /// whose parameters were sorted. Evidence is kept separately for each such part.
    pub about: String,
}

/// File names that servers use for the page of a folder.
const DEFAULT_DOCUMENTS: [&str; 13] = [
    "index.html",
    "index.htm",
    "index.php",
    "index.xhtml",
    "index.shtml",
    "index.asp",
    "index.aspx",
    "index.jsp",
    "index.cgi",
    "default.html",
    "default.htm",
    "default.asp",
    "default.aspx",
];

impl Default for SpellingStepPolicies {
    /// Returns policies that always remove tracking parameters, because servers ignore them. All
    /// other steps require evidence.
    fn default() -> SpellingStepPolicies {
        SpellingStepPolicies {
            default_documents: SpellingStepPolicy::Evidence,
            tracking: SpellingStepPolicy::On,
            session_ids: SpellingStepPolicy::Evidence,
            order: SpellingStepPolicy::Evidence,
            empty: SpellingStepPolicy::Evidence,
        }
    }
}

impl SpellingStep {
    /// All steps, in the order of [`SpellingStepPolicies::apply`].
    pub const ALL: [SpellingStep; 5] = [
        SpellingStep::Tracking,
        SpellingStep::SessionId,
        SpellingStep::DefaultDocument,
        SpellingStep::Empty,
        SpellingStep::Order,
    ];

    /// Returns a short fixed name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SpellingStep::DefaultDocument => "default-document",
            SpellingStep::Tracking => "tracking-parameter",
            SpellingStep::SessionId => "session-id",
            SpellingStep::Order => "parameter-order",
            SpellingStep::Empty => "empty-parameter",
        }
    }

    /// Returns the spelling that this step alone yields, or `None` if the step changes nothing.
    #[must_use]
    pub fn take(self, url: &CanonicalUrl) -> Option<AlternativeSpelling> {
        let (url, about) = match self {
            SpellingStep::DefaultDocument => without_default_document(url)?,
            SpellingStep::Tracking => without_tracking(url)?,
            SpellingStep::SessionId => {
                let session_id = SessionId::find(url)?;
                (session_id.removed(url)?, session_id.name)
            }
            SpellingStep::Order => (ordered(url)?, url.path().to_owned()),
            SpellingStep::Empty => (without_empty(url)?, String::new()),
        };
        Some(AlternativeSpelling {
            url,
            step: self,
            about,
        })
    }
}

impl SpellingStepPolicies {
    /// Policies that never take any step.
    pub const OFF: SpellingStepPolicies = SpellingStepPolicies {
        default_documents: SpellingStepPolicy::Off,
        tracking: SpellingStepPolicy::Off,
        session_ids: SpellingStepPolicy::Off,
        order: SpellingStepPolicy::Off,
        empty: SpellingStepPolicy::Off,
    };

    /// Returns whether any step requires evidence.
    #[must_use]
    pub fn learns(&self) -> bool {
        SpellingStep::ALL
            .into_iter()
            .any(|step| self.when(step) == SpellingStepPolicy::Evidence)
    }

    /// Returns when a step is taken.
    #[must_use]
    pub fn when(&self, step: SpellingStep) -> SpellingStepPolicy {
        match step {
            SpellingStep::DefaultDocument => self.default_documents,
            SpellingStep::Tracking => self.tracking,
            SpellingStep::SessionId => self.session_ids,
            SpellingStep::Order => self.order,
            SpellingStep::Empty => self.empty,
        }
    }

    /// Returns the URL after all steps that are always taken, or `None` if they change nothing.
    /// Repeats the steps until no step changes the URL.
    ///
    /// ```
    /// use crawl_weburl::{SpellingStepPolicies, canonicalize};
    ///
    /// let link = canonicalize(None, "http://a.example/x?utm_source=mail&id=3").unwrap();
    /// let named = SpellingStepPolicies::default().apply(&link).unwrap();
    /// assert_eq!(named.as_str(), "http://a.example/x?id=3");
    /// assert_eq!(SpellingStepPolicies::default().apply(&named), None);
    /// ```
    #[must_use]
    pub fn apply(&self, url: &CanonicalUrl) -> Option<CanonicalUrl> {
        if !may_have_spellings(url) {
            return None;
        }
        let mut named: Option<CanonicalUrl> = None;
        let mut is_changed = true;
        // A step may enable an earlier one. The loop ends, because each change shortens the URL or
        // sorts its parameters, and no other step undoes the order.
        while is_changed {
            is_changed = false;
            for step in SpellingStep::ALL {
                if self.when(step) == SpellingStepPolicy::On
                    && let Some(spelling) = step.take(named.as_ref().unwrap_or(url))
                {
                    named = Some(spelling.url);
                    is_changed = true;
                }
            }
        }
        named
    }

    /// Returns the other spellings of a URL, one for each step that requires evidence and changes
    /// the URL.
    #[must_use]
    pub fn candidates(&self, url: &CanonicalUrl) -> Vec<AlternativeSpelling> {
        if !may_have_spellings(url) {
            return Vec::new();
        }
        let wanting = |step: &SpellingStep| self.when(*step) == SpellingStepPolicy::Evidence;
        let steps = SpellingStep::ALL.into_iter().filter(wanting);
        steps.filter_map(|step| step.take(url)).collect()
    }
}

/// Checks quickly whether a URL may have other spellings. Returns false for most URLs that have
/// none.
fn may_have_spellings(url: &CanonicalUrl) -> bool {
    let text = url.path_and_query();
    let leaf = url.path().rsplit('/').next().unwrap_or_default();
    text.bytes().any(|byte| matches!(byte, b'?' | b';' | b'(')) || is_default_document(leaf)
}

fn is_default_document(leaf: &str) -> bool {
    DEFAULT_DOCUMENTS
        .iter()
        .any(|known| known.eq_ignore_ascii_case(leaf))
}

/// Removes the default document at the end of a path. URLs with a query are left alone:
/// `index.php?id=3` is a program and its argument.
fn without_default_document(url: &CanonicalUrl) -> Option<(CanonicalUrl, String)> {
    let leaf = url.path().rsplit('/').next()?;
    if url.as_url().query().is_some() || !is_default_document(leaf) {
        return None;
    }
    let folder = url.as_str().strip_suffix(leaf)?;
    let folder = crate::canonicalize(None, folder).ok()?;
    Some((folder, leaf.to_ascii_lowercase()))
}

fn without_tracking(url: &CanonicalUrl) -> Option<(CanonicalUrl, String)> {
    let name = parts(url)
        .map(name_of)
        .find(|name| tracking_parameters::is_tracking(name))?;
    let about = name.to_ascii_lowercase();
    let url = retain(url, |part| !tracking_parameters::is_tracking(name_of(part)))?;
    Some((url, about))
}

fn without_empty(url: &CanonicalUrl) -> Option<CanonicalUrl> {
    retain(url, |part| {
        let valueless = part.ends_with('=') && value_of(part).is_empty();
        !part.is_empty() && !valueless
    })
}

/// Sorts parameters by name. Parameters with the same name keep their order, because the order of
/// their values may matter.
fn ordered(url: &CanonicalUrl) -> Option<CanonicalUrl> {
    let query = url.as_url().query()?;
    let mut sorted: Vec<&str> = query.split('&').collect();
    if sorted.is_sorted_by_key(|part| name_of(part)) {
        return None;
    }
    sorted.sort_by_key(|part| name_of(part));
    with_query(url, &sorted.join("&"))
}

#[cfg(test)]
mod tests;
