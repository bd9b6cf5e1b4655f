//! A document that was read: what the reader knows of it until its exchange is encoded.

use crawl_archive::rows::{PageRow, READER_PANICKED, TOO_MANY_REDIRECTS};
use crawl_coding::{DecodeEnd, DecodeLimit};
use crawl_fetcher::{Exchange, Interstitial};
use crawl_frontier::{Exclusion, Lease};
use crawl_policy::usage::UsageStatements;
use crawl_scope::Unwanted;
use crawl_weburl::{CanonicalUrl, Unusable};

use super::sitemap_budget::SITEMAP_LIMIT;
use crate::messages::HostState;
use crate::messages::page::PageFindings;
use crate::revisit::document_state::DocumentState;
use crate::revisit::visit::PreviousVisit;
use crate::secrets::REDIRECT_SECRET;

/// The result of reading a document.
#[derive(Debug, Default)]
pub(crate) struct ReadDocument {
    /// True if its reading was stopped or is left to other threads: nothing of it is to be used.
    pub(crate) is_given_up: bool,
    pub(crate) title: Option<String>,
    /// The canonical URL that the page names, where that is another.
    pub(crate) canonical: Option<CanonicalUrl>,
    /// The media type that its bytes look like.
    pub(crate) detected_type: Option<&'static str>,
    pub(crate) charset: Option<&'static str>,
    /// The tag of its language, where that was asked for.
    pub(crate) language: Option<String>,
    /// The site's preferences about the page's use, METAs included; for a page that has them.
    pub(crate) usage: Option<UsageStatements>,
    /// The reason why none of its links is followed.
    pub(crate) bar: Option<Exclusion>,
    pub(crate) error: Option<DocumentError>,
    /// True if a secret of the operator's is in the body or in the text that it shows.
    pub(crate) echoes_secret: bool,
    /// The reason why it is not kept.
    pub(crate) unwanted: Option<Unwanted>,
    /// The labelled digest of the body without its content coding; nothing where it has none, or
    /// where that can't be undone.
    pub(crate) decoded_digest: Option<String>,
    /// The digest of its body, where that was needed to tell whether it is another.
    pub(crate) body_digest: Option<String>,
    /// The digest of its main text, where that was read.
    pub(crate) text_digest: Option<String>,
    /// The digest of the main text that it had at the last visit, where that was read again.
    pub(crate) past_text_digest: Option<String>,
    /// The page's word on how often it changes.
    pub(crate) said: Option<DocumentState>,
    /// True if it is a list of other pages and their changes: a sitemap, a feed.
    pub(crate) is_list: bool,
    /// The part that the writer needs.
    pub(crate) findings: PageFindings,
}

impl ReadDocument {
    /// Nothing, and why.
    pub(crate) fn with_error(why: DocumentError) -> ReadDocument {
        ReadDocument {
            error: Some(why),
            ..ReadDocument::default()
        }
    }

    /// A document whose reading was stopped.
    pub(crate) fn given_up() -> ReadDocument {
        ReadDocument {
            is_given_up: true,
            ..ReadDocument::default()
        }
    }

    /// Drops the title and the link texts, which are the page's own words.
    pub(crate) fn drop_own_words(&mut self) {
        self.title = None;
        let rows = &mut self.findings.link_rows;
        rows.iter_mut().for_each(|row| row.text = None);
    }
}

/// A page that was read; its exchange is to be encoded for the archive.
#[derive(Debug)]
pub(crate) struct ReadPage {
    pub(crate) lease: Lease,
    pub(crate) past: Option<Box<PreviousVisit>>,
    pub(crate) host: HostState,
    pub(crate) exchange: Box<Exchange>,
    /// The row for `pages.jsonl`, without digest and place in the archive.
    pub(crate) row: PageRow,
    pub(crate) error: Option<DocumentError>,
    pub(crate) charset: Option<&'static str>,
    /// As in [`ReadDocument`].
    pub(crate) decoded_digest: Option<String>,
    /// As in [`ReadDocument`].
    pub(crate) body_digest: Option<String>,
    /// As in [`ReadDocument`].
    pub(crate) text_digest: Option<String>,
    /// As in [`ReadDocument`].
    pub(crate) said: Option<DocumentState>,
    /// As in [`ReadDocument`].
    pub(crate) is_list: bool,
    pub(crate) findings: PageFindings,
}

/// The fault of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DocumentError {
    /// A parser panicked over it.
    Panicked,
    /// Something stands in the page's place.
    InPlace(Interstitial),
    /// Its content coding was not undone to the end.
    Coding(DecodeEnd),
    /// Not all URLs of a sitemap were taken in.
    SitemapLimit,
    /// A redirect beyond `--max-redirects`.
    TooManyRedirects,
    /// A redirect to a URL with a secret in it.
    RedirectSecret,
    /// A redirect to nothing that can be asked for.
    RedirectUnusable(Unusable),
}

impl DocumentError {
    /// Returns whether it says nothing of the page: another time it may be there.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, DocumentError::Panicked | DocumentError::InPlace(_))
    }

    /// Returns whether the content coding could not be undone, so that what came out is not the page.
    pub(crate) fn is_undecoded(&self) -> bool {
        use DecodeEnd::{Broken, Short, UnknownCoding};
        let DocumentError::Coding(end) = self else {
            return false;
        };
        matches!(end, Short | Broken { .. } | UnknownCoding { .. })
    }

    /// Returns whether the body ended before its coding did. That is no fault of its own where the
    /// body was cut.
    pub(crate) fn is_cut_short(&self) -> bool {
        *self == DocumentError::Coding(DecodeEnd::Short)
    }

    /// As rows name it.
    pub(crate) fn name(&self) -> String {
        let name = match self {
            DocumentError::Panicked => READER_PANICKED,
            DocumentError::InPlace(obstacle) => obstacle.name(),
            DocumentError::Coding(DecodeEnd::Broken { what }) => {
                return format!("encoding_broken: {what}");
            }
            DocumentError::Coding(DecodeEnd::UnknownCoding { name }) => {
                return format!("encoding_unknown: {name}");
            }
            DocumentError::Coding(DecodeEnd::Truncated { limit, .. }) => match limit {
                DecodeLimit::Bytes => "decoded_too_large",
                DecodeLimit::Ratio => "decompression_bomb",
            },
            DocumentError::Coding(DecodeEnd::Short | DecodeEnd::Whole) => "encoding_cut_short",
            DocumentError::SitemapLimit => SITEMAP_LIMIT,
            DocumentError::TooManyRedirects => TOO_MANY_REDIRECTS,
            DocumentError::RedirectSecret => REDIRECT_SECRET,
            DocumentError::RedirectUnusable(why) => return format!("redirect_{}", why.name()),
        };
        name.to_owned()
    }
}
