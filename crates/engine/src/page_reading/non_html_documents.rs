//! Reads documents other than HTML, only to index them. Runs on reader threads.

use crawl_documents::DocumentKind;
use crawl_extractor::DecodedPage;
use crawl_fetcher::Exchange;
use crawl_fetcher::robots::CompiledRobots;
use http::header::LAST_MODIFIED;

use super::PageReader;
use super::document_links::DocumentLinkCollector;
use super::document_result::ReadDocument;
use crate::content_type::content_type;
use crate::document_conversion::{ConversionFailure, DocumentToConvert, HTML_IN_UTF8};
use crate::index::entry_creation::{left_out, read_both};
use crate::messages::page_pipeline_stages::{PageFindings, TrapEvidence};
use crate::time_conversions::seconds_of;

impl PageReader {
    /// Reads a text, Markdown, DOCX or PDF document. Indexes its links, but does not follow them,
    /// so that a crawl sends the same requests with and without an index.
    pub(super) fn other_document(
        &self,
        links: &mut DocumentLinkCollector<'_>,
        rules: &CompiledRobots,
        exchange: &Exchange,
        bytes: &[u8],
        kind: DocumentKind,
    ) -> ReadDocument {
        if kind.needs_process(bytes.len()) && self.hands_off_documents {
            return ReadDocument::given_up();
        }
        let lease = links.from();
        let headers = &exchange.headers;
        let at = seconds_of(exchange.started);
        let last_modified = headers.get(LAST_MODIFIED);
        let last_modified = last_modified.map(|value| String::from_utf8_lossy(value.as_bytes()));
        let said_type = content_type(&exchange.headers);
        let document = DocumentToConvert {
            kind,
            content_type: said_type.as_deref(),
            last_modified: last_modified.as_deref(),
            bytes,
        };
        let html = match self.documents.to_html(document, &self.gives_back) {
            Ok(html) => html,
            Err(ConversionFailure::GivenUp) => return ReadDocument::given_up(),
            Err(why) => {
                return ReadDocument {
                    findings: PageFindings {
                        signal: TrapEvidence::Other,
                        entry: Some(left_out(&lease.url, why.name())),
                        ..PageFindings::default()
                    },
                    ..ReadDocument::default()
                };
            }
        };
        let text = DecodedPage::decode(html.as_bytes(), Some(HTML_IN_UTF8));
        let (page, content) = read_both(&text, headers, at, &self.limits, &mut ());
        let directives = self.directives(exchange, &page.metas);
        let usage = self.usage(rules, exchange, lease, &directives, &page.metas);
        let entry = self.page_entry(links, exchange, (&page, &content), &directives, &usage);
        let secrets = &self.policy.secrets;
        let texts = [text.as_str(), content.visible_text()];
        let mut texts = texts.into_iter();
        ReadDocument {
            echoes_secret: texts.any(|text| secrets.are_in(text.as_bytes())),
            title: page.title,
            language: content.language.tag(),
            usage: Some(usage),
            findings: PageFindings {
                signal: TrapEvidence::Other,
                entry: Some(entry),
                ..PageFindings::default()
            },
            ..ReadDocument::default()
        }
    }
}
