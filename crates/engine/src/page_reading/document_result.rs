//! The result of reading a document. The exchange is encoded for the archive later.

use crawl_archive::rows::{PageRow, READER_PANICKED, TOO_MANY_REDIRECTS, UNEXPECTED_304};
use crawl_coding::DecodeEnd;
use crawl_fetcher::{Exchange, Interstitial};
use crawl_frontier::{Lease, NotFetchedReason};
use crawl_policy::usage_statements::UsageStatements;
use crawl_scope::UnwantedReason;
use crawl_weburl::{CanonicalUrl, UnusableUrlError};

use super::sitemap_budget::SITEMAP_LIMIT;
use crate::messages::HostState;
use crate::messages::page_pipeline_stages::PageFindings;
use crate::messages::render::{RenderingToArchive, UnrenderedPageSummary};
use crate::revisit::document_state_meta_tag::DocumentStateMeta;
use crate::revisit::unread_link_kinds::UnreadLinkKinds;
use crate::revisit::visit::{PreviousVisit, RenderNeed};
use crate::secret_redaction::REDIRECT_SECRET;

/// The result of reading a document.
#[derive(Debug, Default)]
pub(crate) struct ReadDocument {
    /// Whether reading was stopped, or is left to another thread. If true, ignore all other fields.
    pub(crate) is_given_up: bool,
    /// A description of the page before its scripts run, if the page is rendered before it is read.
    /// If set, ignore all other fields.
    pub(crate) scripted: Option<UnrenderedPageSummary>,
    pub(crate) title: Option<String>,
    /// The canonical URL that the page declares, if it differs from the page's URL.
    pub(crate) canonical: Option<CanonicalUrl>,
    /// The media type detected from the document's bytes.
    pub(crate) detected_type: Option<&'static str>,
    pub(crate) charset: Option<&'static str>,
    /// The tag of the document's language, if a language was detected.
    pub(crate) language: Option<String>,
    /// The site's statements about the use of the page, including the statements in the page's META
    /// elements. `None` if the site makes no statement.
    pub(crate) usage: Option<UsageStatements>,
    /// Why no link of the document is followed; `None` if links are followed.
    pub(crate) bar: Option<NotFetchedReason>,
    pub(crate) error: Option<DocumentError>,
    /// Whether one of the operator's secrets is in the body or in the visible text.
    pub(crate) echoes_secret: bool,
    /// Why the document is not kept; `None` if it is kept.
    pub(crate) unwanted: Option<UnwantedReason>,
    /// The labelled digest of the body after content decoding. `None` if the body has no content
    /// coding, or if decoding failed.
    pub(crate) decoded_digest: Option<String>,
    /// The digest of the body, if change detection needs it.
    pub(crate) body_digest: Option<String>,
    /// The digest of the main text, if it was computed.
    pub(crate) text_digest: Option<String>,
    /// The digest of the main text at the last visit, if it was recomputed from the archive.
    pub(crate) past_text_digest: Option<String>,
    /// Whether a later round needs to render the page.
    pub(crate) render_need: RenderNeed,
    /// How often the page changes, as stated in the page.
    pub(crate) declared_state: Option<DocumentStateMeta>,
    /// Whether the document lists other pages and their changes, as sitemaps and feeds do.
    pub(crate) is_list: bool,
    /// The links and other findings that the writer stores.
    pub(crate) findings: PageFindings,
}

impl ReadDocument {
    pub(crate) fn with_error(error: DocumentError) -> ReadDocument {
        ReadDocument {
            error: Some(error),
            ..ReadDocument::default()
        }
    }

    /// Returns whether the document was read now.
    pub(crate) fn is_read(&self) -> bool {
        !self.is_given_up && self.scripted.is_none()
    }

    /// Returns the result for a page that is rendered before it is read.
    pub(crate) fn scripted(shell: UnrenderedPageSummary) -> ReadDocument {
        ReadDocument {
            scripted: Some(shell),
            ..ReadDocument::default()
        }
    }

    /// Returns the result for a document whose reading was stopped, or left to another thread.
    pub(crate) fn given_up() -> ReadDocument {
        ReadDocument {
            is_given_up: true,
            ..ReadDocument::default()
        }
    }

    /// Drops the title, the link texts and the fields, because they quote the page.
    pub(crate) fn drop_own_words(&mut self) {
        self.title = None;
        let rows = &mut self.findings.link_rows;
        rows.iter_mut().for_each(|row| row.text = None);
        self.findings.extract_rows.clear();
    }
}

/// A page that was read, and whose exchange is encoded for the archive later.
#[derive(Debug)]
pub(crate) struct ReadPage {
    pub(crate) lease: Lease,
    pub(crate) past: Option<Box<PreviousVisit>>,
    pub(crate) host: HostState,
    pub(crate) exchange: Box<Exchange>,
    /// The row for `pages.jsonl`. The digest and the archive position are added when the exchange
    /// is encoded.
    pub(crate) row: PageRow,
    pub(crate) error: Option<DocumentError>,
    pub(crate) charset: Option<&'static str>,
    /// The parts for the archive, if the page was rendered.
    pub(crate) rendered: Option<RenderingToArchive>,
    /// See [`ReadDocument::decoded_digest`].
    pub(crate) decoded_digest: Option<String>,
    /// See [`ReadDocument::body_digest`].
    pub(crate) body_digest: Option<String>,
    /// See [`ReadDocument::text_digest`].
    pub(crate) text_digest: Option<String>,
    /// See [`ReadDocument::render_need`].
    pub(crate) render_need: RenderNeed,
    pub(crate) unread_link_kinds: UnreadLinkKinds,
    /// See [`ReadDocument::declared_state`].
    pub(crate) declared_state: Option<DocumentStateMeta>,
    /// See [`ReadDocument::is_list`].
    pub(crate) is_list: bool,
    pub(crate) findings: PageFindings,
}

/// Why a document could not be read, or not completely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DocumentError {
    /// A parser panicked while reading the document.
    Panicked,
    /// The server sent an interstitial instead of the page.
    InPlace(Interstitial),
    /// The content coding could not be decoded completely.
    Coding(DecodeEnd),
    /// The server answered 304 to a request without a condition.
    UnexpectedNotModified,
    /// Some URLs of a sitemap were dropped.
    SitemapLimit,
    /// There were more redirects in a row than `--max-redirects` allows.
    TooManyRedirects,
    /// The document redirects to a URL that contains a secret.
    RedirectSecret,
    /// The document redirects to something that is not a fetchable URL.
    RedirectUnusable(UnusableUrlError),
}

impl DocumentError {
    /// Returns whether the error is temporary. A temporary error says nothing about the page's
    /// content.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, DocumentError::Panicked | DocumentError::InPlace(_))
    }

    /// Returns whether decoding failed. If true, the decoded bytes must not be treated as the page.
    pub(crate) fn is_undecoded(&self) -> bool {
        use DecodeEnd::{Broken, Short, UnknownCoding};
        let DocumentError::Coding(end) = self else {
            return false;
        };
        matches!(end, Short | Broken { .. } | UnknownCoding { .. })
    }

    /// Returns whether the body ended before its content coding was complete. If the crawl itself
    /// truncated the body, this isn't reported as a separate error.
    pub(crate) fn is_cut_short(&self) -> bool {
        *self == DocumentError::Coding(DecodeEnd::Short)
    }

    /// Returns the name of the error in rows.
    pub(crate) fn name(&self) -> String {
        let name = match self {
            DocumentError::Panicked => READER_PANICKED,
            DocumentError::InPlace(obstacle) => obstacle.name(),
            DocumentError::Coding(end) => return end.error().unwrap_or_default(),
            DocumentError::UnexpectedNotModified => UNEXPECTED_304,
            DocumentError::SitemapLimit => SITEMAP_LIMIT,
            DocumentError::TooManyRedirects => TOO_MANY_REDIRECTS,
            DocumentError::RedirectSecret => REDIRECT_SECRET,
            DocumentError::RedirectUnusable(why) => return format!("redirect_{}", why.name()),
        };
        name.to_owned()
    }
}
