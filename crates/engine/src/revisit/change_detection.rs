//! Change detection: whether a page changed since the last visit. This module does no I/O.
//!
//! A [`ChangeDetector`] processes an answer in two steps, before and after its archive record is
//! encoded. First, [`repeat`](ChangeDetector::repeat) returns the earlier page that the answer
//! repeats, so that the record can refer to it. Then [`finish`](ChangeDetector::finish) takes the
//! record, and returns the change and the digest for the page's row ([`DetectedChange`]).

use crawl_archive::DigestAlgorithm;
use crawl_archive::rows::PageRow;
use crawl_fetcher::{Exchange, TruncationReason, Validators};
use crawl_weburl::{CanonicalUrl, UnusableUrlError};

use super::unread_link_kinds::UnreadLinkKinds;
use super::visit::{
    ChangedPagePart, KnownPage, PreviousVisit, RenderNeed, RevisitRules, VisitResult,
};
use crate::crawl_totals::PageChange;

/// An answer that was read, with the stored state from the page's last visit.
pub(crate) struct ChangeDetectionInput<'a> {
    pub(crate) exchange: &'a Exchange,
    /// The row of the answer. The columns about the change are added later.
    pub(crate) row: &'a PageRow,
    pub(crate) past: Option<&'a PreviousVisit>,
    /// The target of a redirect. `None` if the answer is not a redirect.
    pub(crate) redirect: Option<Result<CanonicalUrl, UnusableUrlError>>,
    /// The digest of the body, if it was already computed.
    pub(crate) body_digest: Option<&'a str>,
    /// The digest of the decoded body. `None` if the body had no content coding, or could not be
    /// decoded.
    pub(crate) decoded_digest: Option<&'a str>,
    /// The digest of the main text, if it was already computed.
    pub(crate) text_digest: Option<&'a str>,
    /// The digest of the header fields that decide how the page is indexed. `None` if there are
    /// none.
    pub(crate) indexing_fields: Option<&'a str>,
    pub(crate) fault: IncomparableAnswer,
    /// Whether a later round needs to render the page.
    pub(crate) render_need: RenderNeed,
    pub(crate) unread_link_kinds: UnreadLinkKinds,
    /// Whether the crawl guessed the URL, such as `/sitemap.xml`.
    pub(crate) is_guess: bool,
    /// Whether the document lists other pages and their changes, as sitemaps and feeds do.
    pub(crate) is_list: bool,
}

/// Why an answer does not show whether its page changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IncomparableAnswer {
    None,
    /// The answer is an interstitial (such as a login form) in place of the page.
    InPlace,
    /// The content coding of the body could not be decoded.
    Undecoded,
}

/// How an answer repeats the page of an earlier visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerRepetition<'a> {
    /// The server answered 304 (Not Modified).
    NotModified(&'a KnownPage),
    /// The body is identical to the earlier one, byte for byte.
    Payload(&'a KnownPage),
    /// The content is the same, but its content coding differs.
    Content(&'a KnownPage),
}

/// The digest of an answer's archive record, and whether it is a revisit record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerRecordSummary<'a> {
    pub(crate) digest: &'a str,
    /// Whether the record refers to an earlier record instead of containing a body, because of an
    /// [`AnswerRepetition`].
    pub(crate) is_revisit: bool,
}

/// The change that an answer shows, and the state to store about the page.
#[derive(Debug)]
pub(crate) struct DetectedChange {
    /// The status to settle the URL with. For a 304, this is the status of the page that it
    /// confirms.
    pub(crate) status: u16,
    /// The digest of the payload. `None` if the body was not read.
    pub(crate) digest: Option<String>,
    /// The part that differs from the page of the last visit, as named in rows.
    pub(crate) differs: Option<&'static str>,
    pub(crate) change: Option<PageChange>,
    /// Whether the URL is a guessed sitemap that does not exist.
    pub(crate) is_absent: bool,
    /// Whether the URL is a guessed sitemap that the server refused, for example with 403 or 429,
    /// so that it may exist.
    pub(crate) is_refused: bool,
    /// Whether the next request must not be conditional: the page can't be decoded now, although
    /// an earlier visit could read it, or the server may refuse conditional requests.
    pub(crate) needs_full_fetch: bool,
    /// Whether a 304 has other header fields for the index than the stored page.
    pub(crate) has_new_indexing_fields: bool,
    /// The result of this visit, to be stored for the next one.
    pub(crate) result: VisitResult,
}

/// Compares one answer with the page that the last visit found.
///
/// Call [`repeat`](Self::repeat) first, encode the record, then call [`finish`](Self::finish).
pub(crate) struct ChangeDetector<'a> {
    answer: ChangeDetectionInput<'a>,
    /// The page of the last visit.
    known: Option<&'a KnownPage>,
    /// The digest of the body, once computed.
    digest: Option<String>,
    repeat: Option<AnswerRepetition<'a>>,
}

impl<'a> ChangeDetector<'a> {
    pub(crate) fn new(answer: ChangeDetectionInput<'a>) -> ChangeDetector<'a> {
        let mut detector = ChangeDetector {
            known: answer.past.and_then(PreviousVisit::page),
            answer,
            digest: None,
            repeat: None,
        };
        detector.repeat = detector.compare();
        detector
    }

    /// Returns how the answer repeats the known page. `None` if it doesn't.
    pub(crate) fn repeat(&self) -> Option<AnswerRepetition<'a>> {
        self.repeat
    }

    fn compare(&mut self) -> Option<AnswerRepetition<'a>> {
        let status = self.answer.exchange.status;
        let known = self.known?;
        if status == 304 && known.is_conditional() {
            return Some(AnswerRepetition::NotModified(known));
        }
        if status != known.status || self.answer.row.is_body_omitted() {
            return None;
        }
        let digest = self.answer.body_digest.map(str::to_owned);
        let digest = digest.unwrap_or_else(|| self.body_digest());
        let content = self.answer.decoded_digest.unwrap_or(&digest);
        let is_repeated = known.has_content(&digest, content);
        let is_payload = digest == known.digest;
        self.digest = Some(digest);
        is_repeated.then_some(match is_payload {
            true => AnswerRepetition::Payload(known),
            false => AnswerRepetition::Content(known),
        })
    }

    /// Returns the change that the answer shows. `record` is the answer's archive record; `None` if
    /// the crawl has no archive.
    pub(crate) fn finish(mut self, record: Option<AnswerRecordSummary<'_>>) -> DetectedChange {
        let needs_full_fetch = self.is_unreadable() || self.may_refuse_conditions();
        let is_recoded = record.is_some_and(|record| record.is_revisit) && self.is_recoded();
        let (status, digest, mut result) = match self.repeat {
            Some(AnswerRepetition::NotModified(known)) => {
                (known.status, known.digest.clone(), VisitResult::Same)
            }
            _ => {
                let is_withheld = self.answer.row.is_body_omitted();
                let digest = match record {
                    Some(record) if !is_withheld => record.digest.to_owned(),
                    _ => self.digest.take().unwrap_or_else(|| self.body_digest()),
                };
                let is_archived = record.is_some_and(|record| !record.is_revisit) && !is_withheld;
                let result = match self.is_inconclusive() {
                    true => VisitResult::Unknown,
                    false => self.result(&digest, is_archived),
                };
                (self.answer.exchange.status, digest, result)
            }
        };
        let past = self.answer.past;
        let difference = match RevisitRules::difference(past, &result) {
            // For a revisit record, the stored digest stays the digest of the archived original. A
            // comparison of digests therefore finds no difference, so name the difference here.
            Some(ChangedPagePart::Nothing) if is_recoded => Some(ChangedPagePart::Coding),
            difference => difference,
        };
        let is_absent = self.is_absent();
        let is_refused = self.answer.is_guess
            && !is_absent
            && (400..=499).contains(&self.answer.exchange.status);
        // A refused guess has no row, so it is not a failure. An earlier failure has a row, which
        // stays until the server shows whether the sitemap exists.
        let was_failed = past.is_some_and(PreviousVisit::is_failed);
        if is_absent || is_refused && self.known.is_none() && !was_failed {
            result = VisitResult::Nothing;
        }
        let has_new_indexing_fields = match self.repeat {
            Some(AnswerRepetition::NotModified(known)) => {
                known.differs_in_indexing_fields(self.answer.indexing_fields)
            }
            _ => false,
        };
        let is_read = self.answer.exchange.truncated != Some(TruncationReason::Unwanted);
        DetectedChange {
            status,
            digest: is_read.then_some(digest),
            differs: difference.and_then(ChangedPagePart::name),
            change: RevisitRules::change(past, &result),
            is_absent,
            is_refused,
            needs_full_fetch,
            has_new_indexing_fields,
            result,
        }
    }

    /// Returns whether the content is that of the last visit, but the payload differs, for example
    /// because of another content coding.
    fn is_recoded(&self) -> bool {
        let sent = self.digest.as_deref();
        match self.repeat {
            Some(AnswerRepetition::Payload(known) | AnswerRepetition::Content(known)) => {
                sent.is_some_and(|sent| sent != known.sent_digest())
            }
            Some(AnswerRepetition::NotModified(_)) | None => false,
        }
    }

    fn body_digest(&self) -> String {
        DigestAlgorithm::default().of(&[&self.answer.exchange.body])
    }

    /// Returns whether the URL is a guessed sitemap, and the answer shows that it does not exist.
    fn is_absent(&self) -> bool {
        let answer = &self.answer;
        answer.is_guess
            && match answer.exchange.status {
                // Some servers answer any URL with a page. So if a guessed sitemap URL answers
                // with a page that is not a list, treat the sitemap as absent. A document that
                // couldn't be read may be a list.
                200..=299 => !answer.is_list && !self.is_inconclusive() && !answer.row.is_failed(),
                404 | 410 => true,
                _ => false,
            }
    }

    fn is_unreadable(&self) -> bool {
        self.answer.fault == IncomparableAnswer::Undecoded && self.known.is_some()
    }

    /// Returns whether the server may have failed because the request was conditional. Other
    /// statuses, such as 429 and 503, don't suggest that.
    fn may_refuse_conditions(&self) -> bool {
        self.known.is_some_and(KnownPage::is_conditional)
            && matches!(self.answer.exchange.status, 400 | 412 | 500 | 501)
    }

    /// Returns whether the answer does not show the page's current state. True if the answer is an
    /// interstitial, if its body broke off, or if it can't be decoded although an earlier visit
    /// could read the page.
    fn is_inconclusive(&self) -> bool {
        let is_broken_off = (self.answer.exchange.truncated)
            .is_some_and(|truncation| truncation != TruncationReason::Length);
        is_broken_off || self.answer.fault == IncomparableAnswer::InPlace || self.is_unreadable()
    }

    /// Returns the state of the page that this answer shows, to be stored for the next visit.
    fn result(&self, digest: &str, is_archived: bool) -> VisitResult {
        let ChangeDetectionInput {
            exchange, redirect, ..
        } = &self.answer;
        let status = exchange.status;
        if let Some(target) = redirect {
            let text = match target {
                Ok(url) => url.to_string(),
                Err(why) => why.name().to_owned(),
            };
            let digest = DigestAlgorithm::default().of(&[text.as_bytes()]);
            return VisitResult::Page(KnownPage {
                redirect: target.is_ok().then_some(text),
                ..KnownPage::new(status, digest, Validators::default())
            });
        }
        match status {
            200..=299 => {
                let validators = match self.may_be_conditional() {
                    true => Validators::of(&exchange.headers),
                    false => Validators::default(),
                };
                let started = exchange.started.as_micros();
                let sent = self.digest.clone().filter(|sent| sent != digest);
                VisitResult::Page(KnownPage {
                    sent_digest: sent,
                    decoded_digest: self.answer.decoded_digest.map(str::to_owned),
                    text_digest: self.answer.text_digest.map(str::to_owned),
                    dom_digest: self.dom_digest(),
                    archived: is_archived.then_some(started),
                    indexing_fields: self.answer.indexing_fields.map(str::to_owned),
                    render_need: self.answer.render_need,
                    unread_link_kinds: self.answer.unread_link_kinds,
                    ..KnownPage::new(status, digest.to_owned(), validators)
                })
            }
            404 | 410 => VisitResult::Nothing,
            _ => VisitResult::Unknown,
        }
    }

    /// Returns whether the next visit may send a conditional request. The following must be fetched
    /// in full instead:
    ///
    /// - pages that could not be read, or were withheld, at this visit;
    /// - documents that must be read in each round: sitemaps, feeds, pages with their own usage
    ///   preferences, and pages that scripts build.
    fn may_be_conditional(&self) -> bool {
        let row = self.answer.row;
        let usage = row.usage.iter().flat_map(|usage| &usage.said);
        let has_own_usage = usage.into_iter().any(|said| said.channel == "meta");
        let is_as_sent = row.render.is_none();
        let is_kept = row.error.is_none() && !row.is_body_omitted();
        is_kept && is_as_sent && !self.answer.is_list && !has_own_usage
    }

    /// Returns the digest of the DOM of a rendered page.
    fn dom_digest(&self) -> Option<String> {
        self.answer.row.render.as_ref()?.dom_digest.clone()
    }
}

#[cfg(test)]
mod tests;
