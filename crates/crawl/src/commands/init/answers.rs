//! The answers to the questions of `crawl init`.

use crawl_weburl::CanonicalUrl;

use crate::settings::typed_seed::ParsedSeed;
use crate::settings::{HostNetworkClass, reach};

/// The purpose of a crawl, which determines which data the crawl keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InitPurpose {
    /// To build a search index of the pages.
    Search,
    /// To find broken links and other faults.
    Check,
    /// To keep complete responses and links for a study.
    Research,
}

impl InitPurpose {
    /// The purposes that this build can serve, in the order of their numbers.
    pub(super) const OFFERED: &'static [InitPurpose] = match cfg!(feature = "search") {
        true => &[
            InitPurpose::Search,
            InitPurpose::Check,
            InitPurpose::Research,
        ],
        false => &[InitPurpose::Check, InitPurpose::Research],
    };

    /// Returns the purpose's name, and a description of the data that the crawl keeps.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            InitPurpose::Search => ("search index", "pages that visitors can search"),
            InitPurpose::Check => ("site check", "broken links, images and other faults"),
            InitPurpose::Research => ("research archive", "complete responses and links"),
        }
    }

    /// Parses the number of a purpose, its name, or one word of the name.
    pub(super) fn read(text: &str) -> Option<InitPurpose> {
        let number: Option<usize> = text.parse().ok();
        let text = text.to_lowercase();
        let is_meant = |purpose: &InitPurpose| {
            let name = purpose.words().0;
            name == text || name.split(' ').any(|word| word == text)
        };
        match number {
            Some(number) => InitPurpose::OFFERED.get(number.checked_sub(1)?).copied(),
            None => InitPurpose::OFFERED.iter().copied().find(is_meant),
        }
    }
}

/// The user's answers so far to the questions of `crawl init`.
#[derive(Clone, Debug, Default)]
pub(super) struct InitAnswers {
    /// The seed as typed, and parsed.
    pub(super) seed: Option<(String, ParsedSeed)>,
    /// Whether to crawl only the seed's folder.
    pub(super) is_folder_only: Option<bool>,
    /// The contact. May be empty if the seed's host is not public.
    pub(super) contact: Option<String>,
    pub(super) purpose: Option<InitPurpose>,
    /// Whether the user runs the seed's host.
    pub(super) is_own_site: Option<bool>,
    /// The URL of the page that describes a study. Empty if there is none.
    pub(super) study_page: Option<String>,
    pub(super) operator_name: Option<String>,
    pub(super) institution: Option<String>,
    /// The subject of the study, in a sentence.
    pub(super) study: Option<String>,
    /// The maximum number of pages. `Some(None)` stands for no limit.
    pub(super) max_pages: Option<Option<u64>>,
    pub(super) output: Option<String>,
}

impl InitAnswers {
    /// Returns the URL where the crawl starts.
    pub(super) fn url(&self) -> Option<&CanonicalUrl> {
        self.seed.as_ref().map(|(_, seed)| &seed.url)
    }

    /// Returns whether the user named a page that describes the study. If so, the other facts about
    /// the study are required too.
    pub(super) fn has_study_page(&self) -> bool {
        self.study_page
            .as_ref()
            .is_some_and(|page| !page.is_empty())
    }

    /// Returns whether the seed's host is public, so that a contact is required.
    pub(super) fn needs_contact(&self) -> bool {
        self.url()
            .is_some_and(|url| reach(url, &[]) == HostNetworkClass::Public)
    }
}
