//! Visits and rounds: what is stored of a page's last visit, what changed since then, and when the
//! next visit is due. This module reads no clock and does no I/O.
//!
//! The first round of a crawl visits everything it finds. `--recrawl` begins another round, which
//! makes due URLs pending again. A URL is visited once per round, however many runs the round
//! takes.

use crawl_fetcher::Validators;
use crawl_frontier::{Exclusion, UrlKind, Visit};
use crawl_weburl::{CanonicalUrl, canonicalize};
use serde::{Deserialize, Serialize};

use crate::config::Revisits;
use crate::revisit::document_state::DocumentState;
use crate::time::whole_seconds;
use crate::totals::{Change, Totals};

/// If a round's beginning is more than this many seconds in the future, the clock was ahead when it
/// began. A smaller difference is normal, since rounds that follow each other within seconds get
/// times slightly ahead of the clock.
const MAX_ROUND_AHEAD: u32 = 60 * 60;

/// The due time of a URL that is visited in each round.
pub(crate) const EACH_ROUND: u32 = 0;

/// A pass over the pages of the crawl. Stored in the frontier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Round {
    /// The number of the round, from 1.
    pub(crate) number: u32,
    /// When the round began, in seconds since the Unix epoch.
    pub(crate) began: u32,
    /// Whether all URLs that were due at the round's beginning are pending or were visited.
    pub(crate) is_open: bool,
    /// Whether a run ended with nothing left to do in this round.
    pub(crate) is_over: bool,
    /// The totals of the crawl when the round began.
    pub(crate) before: Totals,
    /// When the first round began. No page was visited before that.
    pub(crate) first_began: u32,
}

impl Round {
    pub(crate) fn first(now: u32) -> Round {
        Round {
            number: 1,
            began: now,
            is_open: true,
            is_over: false,
            before: Totals::default(),
            first_began: now,
        }
    }

    /// Returns the next round.
    pub(crate) fn next(&self, now: u32, totals: Totals) -> Round {
        let began = match self.was_begun_ahead_of(now) {
            true => now,
            // Rounds stay in order even if the clock was set back slightly since the last one
            // began.
            false => now.max(self.began.saturating_add(1)),
        };
        Round {
            number: self.number.saturating_add(1),
            began,
            is_open: false,
            is_over: false,
            before: totals,
            first_began: self.first_began.min(began),
        }
    }

    /// Whether the round began when the clock was far ahead of `now`.
    pub(crate) fn was_begun_ahead_of(&self, now: u32) -> bool {
        self.began > now.saturating_add(MAX_ROUND_AHEAD)
    }
}

/// The state that a visit of a page stores for the next visit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PreviousVisit {
    // The serialized names of fields are short, because a visit is stored for each URL.
    /// When the last round began that revealed something about the page, in seconds since the Unix
    /// epoch.
    #[serde(rename = "r")]
    round_began: u32,
    /// The page as last fetched. `None` if there is no known page.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    page: Option<KnownPage>,
    /// How often the page changes according to its own statement.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    declared: Option<DocumentState>,
    /// Why the URL was not fetched. `None` if it was fetched.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    excluded: Option<String>,
}

/// A page as it was last fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownPage {
    #[serde(rename = "s")]
    pub(crate) status: u16,
    /// Digest of the payload or, for a redirect, of its target.
    #[serde(rename = "d")]
    pub(crate) digest: String,
    /// Digest of the main text, if it was computed. Begins with the [`TEXT_RULES`] that were used.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub(crate) text_digest: Option<String>,
    /// Digest of the decoded payload. `None` if the payload had no content coding.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub(crate) decoded_digest: Option<String>,
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub(crate) etag: Option<String>,
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_modified: Option<String>,
    /// The target of a redirect.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub(crate) redirect: Option<String>,
    /// The `WARC-Date` of the record that contains the page's payload, in microseconds since the
    /// Unix epoch.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub(crate) archived: Option<u64>,
}

/// The prefix of main text digests. It names the version of the rules for finding and digesting a
/// main text, and must change whenever the rules do. A digest of another version can't be compared,
/// so the text is read from the archive again.
pub(crate) const TEXT_RULES: &str = "3:";

/// Maximum length of a validator (ETag or Last-Modified). A longer one is not sent back to the
/// server.
const MAX_VALIDATOR_BYTES: usize = 512;

impl KnownPage {
    /// Whether the next request for the page can be conditional.
    pub(crate) fn is_conditional(&self) -> bool {
        self.etag.is_some() || self.last_modified.is_some()
    }

    /// Returns the difference between this page and the earlier page `before`.
    pub(crate) fn difference(&self, before: &KnownPage) -> Difference {
        if self.status != before.status || self.redirect != before.redirect {
            return Difference::Answer;
        }
        if self.digest == before.digest {
            return Difference::Nothing;
        }
        if self.content_digest() == before.content_digest() {
            return Difference::Coding;
        }
        match (self.comparable_text(), before.comparable_text()) {
            (Some(now), Some(then)) if now == then => Difference::Markup,
            (Some(_), Some(_)) => Difference::Text,
            _ => Difference::Bytes,
        }
    }

    /// Returns the digest of the page's main text. `None` if the digest is missing or was computed
    /// by another version's rules.
    pub(crate) fn comparable_text(&self) -> Option<&str> {
        let digest = self.text_digest.as_deref();
        digest.filter(|digest| digest.starts_with(TEXT_RULES))
    }

    /// Whether the page has this payload, or this content once decoded.
    pub(crate) fn has_content(&self, digest: &str, content_digest: &str) -> bool {
        self.digest == digest || self.content_digest() == content_digest
    }

    fn content_digest(&self) -> &str {
        self.decoded_digest.as_ref().unwrap_or(&self.digest)
    }

    pub(crate) fn new(status: u16, digest: String, validators: Validators) -> KnownPage {
        let short = |text: &String| text.len() <= MAX_VALIDATOR_BYTES;
        KnownPage {
            status,
            digest,
            text_digest: None,
            decoded_digest: None,
            etag: validators.etag.filter(short),
            last_modified: validators.last_modified.filter(short),
            redirect: None,
            archived: None,
        }
    }
}

/// The part of a page that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// Nothing changed: the page is identical byte for byte.
    Nothing,
    /// The content coding of the body changed, but not the content.
    Coding,
    /// The body changed, but not the main text: for example a token, a counter, or a date at the
    /// end.
    Markup,
    /// The main text changed.
    Text,
    /// The body changed, and the page has no comparable main text.
    Bytes,
    /// The status or the target of a redirect changed.
    Answer,
}

impl Difference {
    /// Whether the page is the same for a human reader.
    pub(crate) fn is_same(self) -> bool {
        matches!(
            self,
            Difference::Nothing | Difference::Coding | Difference::Markup
        )
    }

    /// Returns the name of the difference in rows. `None` if there is no difference.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Difference::Nothing | Difference::Answer => None,
            Difference::Coding | Difference::Bytes => Some("bytes"),
            Difference::Markup => Some("markup"),
            Difference::Text => Some("text"),
        }
    }
}

impl PreviousVisit {
    /// Stores the digest of the page's main text, unless the page already has one of this version.
    pub(crate) fn note_text(&mut self, digest: Option<String>) {
        if let Some(page) = &mut self.page {
            page.text_digest = page.comparable_text().map(str::to_owned).or(digest);
        }
    }

    pub(crate) fn read(visit: &Visit) -> Option<PreviousVisit> {
        serde_json::from_slice(&visit.bytes).ok()
    }

    fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(crate) fn page(&self) -> Option<&KnownPage> {
        self.page.as_ref()
    }

    /// Returns the target that the URL redirected to.
    pub(crate) fn redirect(&self) -> Option<CanonicalUrl> {
        let target = self.page.as_ref()?.redirect.as_deref()?;
        canonicalize(None, target).ok()
    }

    /// Whether the last visit excluded the URL for the same reason, by the same rule.
    pub(crate) fn was_excluded_by(&self, exclusion: &Exclusion) -> bool {
        self.excluded.as_deref() == Some(&reason_and_rule(exclusion))
    }

    /// Returns the validators for a conditional request.
    pub(crate) fn validators(&self) -> Validators {
        self.page
            .as_ref()
            .map_or_else(Validators::default, |page| Validators {
                etag: page.etag.clone(),
                last_modified: page.last_modified.clone(),
            })
    }
}

/// Removes the redirect target from an encoded visit if the target `is_forgotten`.
pub(crate) fn without_redirect_to(bytes: Vec<u8>, is_forgotten: &dyn Fn(&str) -> bool) -> Vec<u8> {
    let Ok(mut past) = serde_json::from_slice::<PreviousVisit>(&bytes) else {
        return bytes;
    };
    let redirect = past.page.as_mut().map(|page| &mut page.redirect);
    match redirect {
        Some(redirect) if redirect.as_deref().is_some_and(is_forgotten) => {
            *redirect = None;
            past.bytes()
        }
        _ => bytes,
    }
}

/// Identifies an exclusion by its reason and rule, without the line number of the rule: lines move
/// when others are inserted.
fn reason_and_rule(exclusion: &Exclusion) -> String {
    match &exclusion.rule {
        Some(rule) => format!("{}: {rule}", exclusion.reason),
        None => exclusion.reason.to_string(),
    }
}

/// The result of a visit.
#[derive(Clone, Debug)]
pub(crate) enum VisitResult {
    /// The page is unchanged.
    Same,
    /// A page, or a redirect.
    Page(KnownPage),
    /// The server answered 404 or 410.
    Nothing,
    /// The answer reveals nothing about the page, for example because it is a failure or a refusal.
    Unknown,
    /// Reading the page crashed the process repeatedly.
    Deadly,
    /// The URL was not fetched.
    Excluded(Exclusion),
}

/// Makes the next visit fetch the page in full. A page that was left out of the index because of
/// its answer's header fields may be indexable with other header fields. A 304 would not deliver
/// the page then.
pub(crate) fn fetch_in_full_next_time(past: Option<&mut PreviousVisit>, result: &mut VisitResult) {
    let previous = past.and_then(|past| past.page.as_mut());
    let result = match result {
        VisitResult::Page(page) => Some(page),
        _ => None,
    };
    for page in previous.into_iter().chain(result) {
        page.etag = None;
        page.last_modified = None;
    }
}

/// The dates of a round, and the rules for scheduling the next visits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RevisitSchedule {
    pub(crate) round: Round,
    pub(crate) revisits: Revisits,
}

impl RevisitSchedule {
    /// Returns how the page changed since the last visit. `None` if nothing is known.
    pub(crate) fn change(past: Option<&PreviousVisit>, result: &VisitResult) -> Option<Change> {
        let before = past.and_then(|past| past.page.as_ref());
        match (result, before) {
            (VisitResult::Same, _) => Some(Change::Same),
            (VisitResult::Page(_), None) => Some(Change::New),
            (VisitResult::Page(page), Some(before)) => match page.difference(before).is_same() {
                true => Some(Change::Same),
                false => Some(Change::Changed),
            },
            (VisitResult::Nothing, Some(_)) => Some(Change::Gone),
            (VisitResult::Nothing, None)
            | (VisitResult::Unknown | VisitResult::Deadly | VisitResult::Excluded(_), _) => None,
        }
    }

    /// Returns the part that differs from the page of the last visit.
    pub(crate) fn difference(
        past: Option<&PreviousVisit>,
        result: &VisitResult,
    ) -> Option<Difference> {
        match (result, past?.page.as_ref()?) {
            (VisitResult::Page(page), before) => Some(page.difference(before)),
            _ => None,
        }
    }

    /// Returns the visit to store, including the time when the next visit is due. `at` is in
    /// seconds since the Unix epoch.
    pub(crate) fn after(
        &self,
        at: u32,
        kind: UrlKind,
        past: Option<PreviousVisit>,
        result: VisitResult,
        declared: Option<DocumentState>,
    ) -> Visit {
        let change = RevisitSchedule::change(past.as_ref(), &result);
        let learnt = !matches!(
            result,
            VisitResult::Unknown | VisitResult::Deadly | VisitResult::Excluded(_)
        );
        let declared = match (&result, &past) {
            (VisitResult::Page(_), _) | (_, None) => declared,
            (_, Some(past)) => past.declared,
        };
        let round_began = match &past {
            Some(past) if !learnt => past.round_began,
            _ => self.round.began,
        };
        let due = match kind {
            UrlKind::Sitemap => EACH_ROUND,
            UrlKind::Page | UrlKind::Resource => {
                let interval = self.interval(past.as_ref(), change, &result, declared);
                self.round.began.saturating_add(interval)
            }
        };
        let before = past.and_then(|past| past.page);
        let mut excluded = None;
        let page = match result {
            VisitResult::Same | VisitResult::Unknown | VisitResult::Deadly => before,
            // If the content is repeated, the stored page keeps the archive record and the digests
            // of the original.
            VisitResult::Page(page) => {
                let same = before.filter(|before| {
                    matches!(
                        page.difference(before),
                        Difference::Nothing | Difference::Coding
                    )
                });
                match same.filter(|before| before.archived.is_some()) {
                    Some(original) => Some(KnownPage {
                        etag: page.etag,
                        last_modified: page.last_modified,
                        text_digest: page.text_digest.or(original.text_digest),
                        ..original
                    }),
                    None => Some(page),
                }
            }
            VisitResult::Nothing => None,
            VisitResult::Excluded(exclusion) => {
                excluded = Some(reason_and_rule(&exclusion));
                before
            }
        };
        let past = PreviousVisit {
            round_began,
            page,
            declared,
            excluded,
        };
        Visit {
            // If the clock was set back, the visit still counts as within its round.
            at: at.max(self.round.began),
            due,
            bytes: past.bytes(),
        }
    }

    /// Returns the time from the beginning of this round to the next visit, in seconds.
    ///
    /// The interval of an unchanged page grows by half, and that of a changed page is halved. A
    /// page that was visited only once or that failed is due in the next round, since nothing is
    /// known about how often it changes. Sitemaps are due in each round.
    fn interval(
        &self,
        past: Option<&PreviousVisit>,
        change: Option<Change>,
        result: &VisitResult,
        declared: Option<DocumentState>,
    ) -> u32 {
        let min = whole_seconds(self.revisits.least);
        let max = self.revisits.longest();
        let elapsed = past.map_or(0, |past| self.round.began.saturating_sub(past.round_began));
        let is_unchanged = change == Some(Change::Same) || matches!(result, VisitResult::Nothing);
        let wanted = match (change, declared) {
            _ if matches!(result, VisitResult::Deadly) => max,
            (Some(Change::Same), Some(DocumentState::Static)) => max,
            (_, Some(DocumentState::Dynamic)) => 0,
            _ if is_unchanged => elapsed.saturating_add(elapsed / 2),
            (Some(Change::Changed), _) => elapsed / 2,
            _ => 0,
        };
        wanted.clamp(min, max)
    }

    /// A site reports that a page changed at `modified`. Returns the time before which the page's
    /// last visit must have been, so that this round visits it again. `None` if no page was visited
    /// before that time.
    pub(crate) fn changed_since(&self, modified: u32) -> Option<u32> {
        let least = whole_seconds(self.revisits.least);
        let before = modified.min(self.round.began.saturating_sub(least));
        (before > self.round.first_began).then_some(before)
    }
}

#[cfg(test)]
mod tests;
