//! A document between reading and the encoding of its exchange.

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
    /// Whether the reading was stopped or is left to other threads. Nothing in it may be used then.
    pub(crate) is_given_up: bool,
    pub(crate) title: Option<String>,
    /// The page's canonical URL, if it differs from the page's own.
    pub(crate) canonical: Option<CanonicalUrl>,
    /// The media type detected from its bytes.
    pub(crate) detected_type: Option<&'static str>,
    pub(crate) charset: Option<&'static str>,
    /// The tag of its language, if it was detected.
    pub(crate) language: Option<String>,
    /// The site's preferences about the page's use, including its METAs, if it has any.
    pub(crate) usage: Option<UsageStatements>,
    /// Why none of its links are followed.
    pub(crate) bar: Option<Exclusion>,
    pub(crate) error: Option<DocumentError>,
    /// Whether one of the operator's secrets is in the body or in its visible text.
    pub(crate) echoes_secret: bool,
    /// Why the document is not kept.
    pub(crate) unwanted: Option<Unwanted>,
    /// The labelled digest of the body without its content coding. `None` if the body has none, or
    /// if decoding failed.
    pub(crate) decoded_digest: Option<String>,
    /// The digest of the body, if change detection needed it.
    pub(crate) body_digest: Option<String>,
    /// The digest of the main text, if it was computed.
    pub(crate) text_digest: Option<String>,
    /// The digest of the main text at the last visit, if it was recomputed.
    pub(crate) past_text_digest: Option<String>,
    /// The page's own statement of how often it changes.
    pub(crate) declared_state: Option<DocumentState>,
    /// Whether it lists other pages and their changes, as sitemaps and feeds do.
    pub(crate) is_list: bool,
    /// The part for the writer.
    pub(crate) findings: PageFindings,
}

impl ReadDocument {
    /// Returns an empty document with its error.
    pub(crate) fn with_error(error: DocumentError) -> ReadDocument {
        ReadDocument {
            error: Some(error),
            ..ReadDocument::default()
        }
    }

    /// Returns a document whose reading was stopped.
    pub(crate) fn given_up() -> ReadDocument {
        ReadDocument {
            is_given_up: true,
            ..ReadDocument::default()
        }
    }

    /// Drops the title and the link texts, which quote the page.
    pub(crate) fn drop_own_words(&mut self) {
        self.title = None;
        let rows = &mut self.findings.link_rows;
        rows.iter_mut().for_each(|row| row.text = None);
    }
}

/// A page that was read and is not encoded yet.
#[derive(Debug)]
pub(crate) struct ReadPage {
    pub(crate) lease: Lease,
    pub(crate) past: Option<Box<PreviousVisit>>,
    pub(crate) host: HostState,
    pub(crate) exchange: Box<Exchange>,
    /// The row for `pages.jsonl`, still without digest and archive position.
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
    pub(crate) declared_state: Option<DocumentState>,
    /// As in [`ReadDocument`].
    pub(crate) is_list: bool,
    pub(crate) findings: PageFindings,
}

/// The error of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DocumentError {
    /// A parser panicked on it.
    Panicked,
    /// An interstitial was served instead.
    InPlace(Interstitial),
    /// The content coding could not be decoded completely.
    Coding(DecodeEnd),
    /// Some URLs of a sitemap were dropped.
    SitemapLimit,
    /// A redirect beyond `--max-redirects`.
    TooManyRedirects,
    /// A redirect to a URL that contains a secret.
    RedirectSecret,
    /// A redirect to something that is not a fetchable URL.
    RedirectUnusable(Unusable),
}

impl DocumentError {
    /// Whether the error is temporary and reveals nothing about the page.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, DocumentError::Panicked | DocumentError::InPlace(_))
    }

    /// Whether decoding failed, so that the result is not the page.
    pub(crate) fn is_undecoded(&self) -> bool {
        use DecodeEnd::{Broken, Short, UnknownCoding};
        let DocumentError::Coding(end) = self else {
            return false;
        };
        matches!(end, Short | Broken { .. } | UnknownCoding { .. })
    }

    /// Whether the body ended before its coding did. Not a separate error if the body was cut.
    pub(crate) fn is_cut_short(&self) -> bool {
        *self == DocumentError::Coding(DecodeEnd::Short)
    }

    /// Returns its name in rows.
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
