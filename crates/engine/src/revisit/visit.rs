//! Visits and rounds: what is stored about a page's last visit, what changed since then, and when
//! the next visit is due. This module reads no clock and does no I/O.
//!
//! The first round of a crawl visits all URLs that it finds. `--recrawl` begins another round,
//! which makes due URLs pending again. A URL is visited once per round, even if the round takes
//! several runs.

use crawl_fetcher::Validators;
use crawl_frontier::{LastVisit, NotFetchedReason, UrlKind};
use crawl_weburl::{CanonicalUrl, canonicalize};
use serde::{Deserialize, Serialize};

use crate::config::RevisitIntervals;
use crate::crawl_totals::{CrawlTotals, PageChange};
use crate::revisit::document_state_meta_tag::DocumentStateMeta;
use crate::revisit::unread_link_kinds::UnreadLinkKinds;
use crate::time_conversions::whole_seconds;

/// If a round began more than this many seconds in the future, the clock was wrong when the round
/// began. A smaller difference is normal: if rounds follow each other within seconds, their
/// recorded start times run ahead of the clock.
const MAX_ROUND_AHEAD: u32 = 60 * 60;

/// The due time of a URL that must be visited in each round.
pub(crate) const EACH_ROUND: u32 = 0;

/// A pass over the pages of the crawl. Stored in the frontier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Round {
    /// The number of the round, from 1.
    pub(crate) number: u32,
    /// When the round began, in seconds since the Unix epoch.
    pub(crate) began: u32,
    /// Whether all URLs that were due when the round began have been made pending.
    pub(crate) is_open: bool,
    /// Whether a run of this round ended without being interrupted. URLs of unreachable hosts, and
    /// URLs that a budget kept from being fetched, may still be pending.
    pub(crate) is_over: bool,
    /// The totals of the crawl when the round began.
    pub(crate) before: CrawlTotals,
    /// When the first round began, before any page was visited.
    pub(crate) first_began: u32,
}

impl Round {
    pub(crate) fn first(now: u32) -> Round {
        Round {
            number: 1,
            began: now,
            is_open: true,
            is_over: false,
            before: CrawlTotals::default(),
            first_began: now,
        }
    }

    pub(crate) fn next(&self, now: u32, totals: CrawlTotals) -> Round {
        let began = match self.was_begun_ahead_of(now) {
            true => now,
            // Keep rounds in order even if the clock was set back slightly.
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

    /// Returns whether the round began when the clock was far ahead of `now`.
    pub(crate) fn was_begun_ahead_of(&self, now: u32) -> bool {
        self.began > now.saturating_add(MAX_ROUND_AHEAD)
    }
}

/// The state that is stored after a visit of a page, for the next visit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PreviousVisit {
    // The serialized names of fields are short, because a visit is stored for each URL.
    /// The start of the last round with a visit that showed what became of the page, in seconds
    /// since the Unix epoch.
    #[serde(rename = "r")]
    round_began: u32,
    /// The page as last fetched. `None` if no page is known.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    page: Option<KnownPage>,
    /// How often the page changes, according to the page itself.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    declared: Option<DocumentStateMeta>,
    /// Why the URL was not fetched. `None` if it was fetched.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    excluded: Option<String>,
    /// Whether the last visit that fetched the URL did not show what became of the page.
    #[serde(rename = "f", default, skip_serializing_if = "std::ops::Not::not")]
    is_failed: bool,
}

/// A page as it was last fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownPage {
    #[serde(rename = "s")]
    pub(crate) status: u16,
    /// Digest of the payload. For a redirect, digest of the target.
    #[serde(rename = "d")]
    pub(crate) digest: String,
    /// Digest of the payload that the server sent last, if it differs from `digest`. The content is
    /// then that of the archived payload, but in another content coding.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub(crate) sent_digest: Option<String>,
    /// Digest of the main text, if computed. Begins with the value that [`TEXT_RULES`] had when the
    /// digest was computed.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub(crate) text_digest: Option<String>,
    /// Digest of the decoded payload. `None` if the payload had no content coding.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub(crate) decoded_digest: Option<String>,
    /// Digest of the DOM, if the page was rendered.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub(crate) dom_digest: Option<String>,
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub(crate) etag: Option<String>,
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_modified: Option<String>,
    /// The target of a redirect.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub(crate) redirect: Option<String>,
    /// The `WARC-Date` of the record with the page's payload, in microseconds since the Unix epoch.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub(crate) archived: Option<u64>,
    /// Digest of the header fields that decide how the page is indexed. `None` if there are none.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub(crate) indexing_fields: Option<String>,
    /// Whether the page needs a browser. Used only if the page was not rendered.
    #[serde(rename = "n", default, skip_serializing_if = "RenderNeed::is_default")]
    pub(crate) render_need: RenderNeed,
    /// The kinds of links that this visit left unread.
    #[serde(
        rename = "k",
        default,
        skip_serializing_if = "UnreadLinkKinds::are_none"
    )]
    pub(crate) unread_link_kinds: UnreadLinkKinds,
}

/// Whether a page that was read as the server sent it needs to be rendered in a later round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RenderNeed {
    /// The document is not rendered in any mode, for example because it is not HTML.
    #[serde(rename = "n")]
    Never,
    /// An HTML page that shows enough as sent, and is rendered only if all pages are.
    #[default]
    #[serde(rename = "h")]
    IfAll,
    /// Scripts seem to build the page.
    #[serde(rename = "s")]
    IfScripted,
}

impl RenderNeed {
    pub(crate) fn of_html(is_scripted: bool) -> RenderNeed {
        match is_scripted {
            true => RenderNeed::IfScripted,
            false => RenderNeed::IfAll,
        }
    }

    fn is_default(&self) -> bool {
        *self == RenderNeed::default()
    }
}

/// The prefix of main text digests: the version of the rules for finding and digesting a main text.
/// Change it whenever the rules change. Since digests of different versions can't be compared, the
/// text is then read from the archive again.
pub(crate) const TEXT_RULES: &str = "3:";

/// Maximum length of a validator (ETag or Last-Modified) to send back to the server.
const MAX_VALIDATOR_BYTES: usize = 512;

impl KnownPage {
    /// Returns whether the next request for the page can be conditional, which needs a validator.
    pub(crate) fn is_conditional(&self) -> bool {
        self.etag.is_some() || self.last_modified.is_some()
    }

    fn drop_validators(&mut self) {
        self.etag = None;
        self.last_modified = None;
    }

    /// Returns how this page differs from its earlier state `before`.
    pub(crate) fn difference(&self, before: &KnownPage) -> ChangedPagePart {
        // Compare the digests of redirect targets, because `crawl forget` erases the targets.
        let is_redirect = self.redirect.is_some() || before.redirect.is_some();
        if self.status != before.status || is_redirect && self.digest != before.digest {
            return ChangedPagePart::Answer;
        }
        if self.dom_digest == before.dom_digest {
            if self.digest == before.digest {
                return ChangedPagePart::Nothing;
            }
            if self.content_digest() == before.content_digest() {
                return ChangedPagePart::Coding;
            }
        }
        match (self.comparable_text(), before.comparable_text()) {
            (Some(now), Some(then)) if now == then => ChangedPagePart::Markup,
            (Some(_), Some(_)) => ChangedPagePart::Text,
            _ => ChangedPagePart::Bytes,
        }
    }

    /// Returns the digest of the page's main text. `None` if it is missing, or was computed by the
    /// rules of another version.
    pub(crate) fn comparable_text(&self) -> Option<&str> {
        let digest = self.text_digest.as_deref();
        digest.filter(|digest| digest.starts_with(TEXT_RULES))
    }

    /// Returns whether the page has this payload, or has this content after decoding.
    pub(crate) fn has_content(&self, digest: &str, content_digest: &str) -> bool {
        self.digest == digest || self.content_digest() == content_digest
    }

    /// Returns the digest of the payload that the server sent last.
    pub(crate) fn sent_digest(&self) -> &str {
        self.sent_digest.as_ref().unwrap_or(&self.digest)
    }

    /// Returns whether a 304 changes how the page is indexed. `fields` is the digest of its header
    /// fields for the index; fields that it lacks stay as they were (RFC 9111 section 3.2).
    pub(crate) fn differs_in_indexing_fields(&self, fields: Option<&str>) -> bool {
        fields.is_some() && fields != self.indexing_fields.as_deref()
    }

    fn content_digest(&self) -> &str {
        self.decoded_digest.as_ref().unwrap_or(&self.digest)
    }

    pub(crate) fn new(status: u16, digest: String, validators: Validators) -> KnownPage {
        let short = |text: &String| text.len() <= MAX_VALIDATOR_BYTES;
        KnownPage {
            status,
            digest,
            sent_digest: None,
            text_digest: None,
            decoded_digest: None,
            dom_digest: None,
            etag: validators.etag.filter(short),
            last_modified: validators.last_modified.filter(short),
            redirect: None,
            archived: None,
            indexing_fields: None,
            render_need: RenderNeed::default(),
            unread_link_kinds: UnreadLinkKinds::default(),
        }
    }
}

/// The part of a page that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangedPagePart {
    /// Nothing changed: the page is identical byte for byte.
    Nothing,
    /// The content coding of the body changed, but not the content.
    Coding,
    /// The body changed, but the main text didn't. For example, a token or a counter changed.
    Markup,
    /// The main text changed.
    Text,
    /// The body changed, and there is no comparable digest of the main text.
    Bytes,
    /// The status changed, or a redirect leads to another target.
    Answer,
}

impl ChangedPagePart {
    /// Returns whether a human reader would see the same page.
    pub(crate) fn is_same(self) -> bool {
        matches!(
            self,
            ChangedPagePart::Nothing | ChangedPagePart::Coding | ChangedPagePart::Markup
        )
    }

    /// Returns the name of the difference in rows. `None` if rows don't name it.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            ChangedPagePart::Nothing | ChangedPagePart::Answer => None,
            ChangedPagePart::Coding | ChangedPagePart::Bytes => Some("bytes"),
            ChangedPagePart::Markup => Some("markup"),
            ChangedPagePart::Text => Some("text"),
        }
    }
}

impl PreviousVisit {
    /// Stores the digest of the page's main text, unless there is one by the current rules already.
    pub(crate) fn note_text(&mut self, digest: Option<String>) {
        if let Some(page) = &mut self.page {
            page.text_digest = page.comparable_text().map(str::to_owned).or(digest);
        }
    }

    pub(crate) fn read(visit: &LastVisit) -> Option<PreviousVisit> {
        serde_json::from_slice(&visit.bytes).ok()
    }

    fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(crate) fn page(&self) -> Option<&KnownPage> {
        self.page.as_ref()
    }

    /// Returns whether the last visit that fetched the URL did not show what became of the page, for
    /// example because the server answered 500.
    pub(crate) fn is_failed(&self) -> bool {
        self.is_failed
    }

    /// Returns the target of the URL's redirect at the last visit. `None` if the URL did not
    /// redirect.
    pub(crate) fn redirect(&self) -> Option<CanonicalUrl> {
        let target = self.page.as_ref()?.redirect.as_deref()?;
        canonicalize(None, target).ok()
    }

    /// Returns whether the last visit excluded the URL for the same reason, by the same rule.
    pub(crate) fn was_excluded_by(&self, exclusion: &NotFetchedReason) -> bool {
        self.excluded.as_deref() == Some(&reason_and_rule(exclusion))
    }

    /// Returns whether a visit that leaves `now` unread would read links that the last visit left
    /// unread.
    pub(crate) fn has_left_links(&self, now: UnreadLinkKinds) -> bool {
        let page = self.page.as_ref();
        page.is_some_and(|page| page.unread_link_kinds.are_wanted(now))
    }

    /// Makes the next request fetch the page in full, by removing its validators.
    pub(crate) fn fetch_in_full(&mut self) {
        if let Some(page) = &mut self.page {
            page.drop_validators();
        }
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

/// Removes the redirect target from an encoded visit if `is_forgotten` returns true for it.
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

/// Identifies an exclusion by its reason and rule, without the line number of the rule, because
/// inserted lines move a rule.
fn reason_and_rule(exclusion: &NotFetchedReason) -> String {
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
    /// The server answered with a page or a redirect.
    Page(KnownPage),
    /// The server answered 404 or 410.
    Nothing,
    /// The answer does not show what became of the page, for example because it is an error.
    Unknown,
    /// Reading the page crashed the process repeatedly.
    Deadly,
    /// The URL was not fetched.
    Excluded(NotFetchedReason),
}

/// Makes the next visit fetch the page in full. Header fields may have kept the page out of the
/// index. If these fields change, the index needs the whole page, which a 304 would not deliver.
pub(crate) fn fetch_in_full_next_time(past: Option<&mut PreviousVisit>, result: &mut VisitResult) {
    let previous = past.and_then(|past| past.page.as_mut());
    let result = match result {
        VisitResult::Page(page) => Some(page),
        _ => None,
    };
    for page in previous.into_iter().chain(result) {
        page.drop_validators();
    }
}

/// The current round, and the rules for scheduling next visits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RevisitRules {
    pub(crate) round: Round,
    pub(crate) revisits: RevisitIntervals,
}

impl RevisitRules {
    /// Returns how the page changed since the last visit. `None` if this is not known.
    pub(crate) fn change(past: Option<&PreviousVisit>, result: &VisitResult) -> Option<PageChange> {
        let before = past.and_then(|past| past.page.as_ref());
        match (result, before) {
            (VisitResult::Same, _) => Some(PageChange::Same),
            (VisitResult::Page(_), None) => Some(PageChange::New),
            (VisitResult::Page(page), Some(before)) => match page.difference(before).is_same() {
                true => Some(PageChange::Same),
                false => Some(PageChange::Changed),
            },
            (VisitResult::Nothing, Some(_)) => Some(PageChange::Gone),
            (VisitResult::Nothing, None)
            | (VisitResult::Unknown | VisitResult::Deadly | VisitResult::Excluded(_), _) => None,
        }
    }

    /// Returns what differs from the page of the last visit. `None` if the visits can't be
    /// compared.
    pub(crate) fn difference(
        past: Option<&PreviousVisit>,
        result: &VisitResult,
    ) -> Option<ChangedPagePart> {
        match (result, past?.page.as_ref()?) {
            (VisitResult::Page(page), before) => Some(page.difference(before)),
            _ => None,
        }
    }

    /// Returns the visit to store, including when the next visit is due. This visit was at `at`, in
    /// seconds since the Unix epoch.
    pub(crate) fn after(
        &self,
        at: u32,
        kind: UrlKind,
        past: Option<PreviousVisit>,
        result: VisitResult,
        declared: Option<DocumentStateMeta>,
    ) -> LastVisit {
        let change = RevisitRules::change(past.as_ref(), &result);
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
        let is_failed = match &result {
            VisitResult::Unknown | VisitResult::Deadly => true,
            VisitResult::Excluded(_) => past.as_ref().is_some_and(PreviousVisit::is_failed),
            VisitResult::Same | VisitResult::Page(_) | VisitResult::Nothing => false,
        };
        let before = past.and_then(|past| past.page);
        let mut excluded = None;
        let page = match result {
            VisitResult::Same | VisitResult::Unknown | VisitResult::Deadly => before,
            // Repeated content keeps the archive record and the digests of the original.
            VisitResult::Page(page) => {
                let same = before.filter(|before| {
                    matches!(
                        page.difference(before),
                        ChangedPagePart::Nothing | ChangedPagePart::Coding
                    )
                });
                match same.filter(|before| before.archived.is_some()) {
                    Some(original) => Some(KnownPage {
                        sent_digest: page.sent_digest,
                        etag: page.etag,
                        last_modified: page.last_modified,
                        indexing_fields: page.indexing_fields,
                        render_need: page.render_need,
                        unread_link_kinds: page.unread_link_kinds.both(original.unread_link_kinds),
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
            is_failed,
        };
        LastVisit {
            // If the clock was set back, the visit must still count as part of its round.
            at: at.max(self.round.began),
            due,
            bytes: past.bytes(),
        }
    }

    /// Returns the seconds from the beginning of this round until the next visit is due, within the
    /// limits of `revisits`:
    ///
    /// - the longest interval, if reading the page crashed the process, or if an unchanged page
    ///   declares that it never changes;
    /// - the shortest interval, if the page declares that it changes at every visit;
    /// - one and a half times the time since the last visit, if the page is unchanged or absent;
    /// - half of that time, if the page changed;
    /// - the shortest interval, if the page was visited only once or failed, because nothing is
    ///   known about how often it changes.
    fn interval(
        &self,
        past: Option<&PreviousVisit>,
        change: Option<PageChange>,
        result: &VisitResult,
        declared: Option<DocumentStateMeta>,
    ) -> u32 {
        let min = whole_seconds(self.revisits.least);
        let max = self.revisits.longest();
        let elapsed = past.map_or(0, |past| self.round.began.saturating_sub(past.round_began));
        let is_unchanged =
            change == Some(PageChange::Same) || matches!(result, VisitResult::Nothing);
        let wanted = match (change, declared) {
            _ if matches!(result, VisitResult::Deadly) => max,
            (Some(PageChange::Same), Some(DocumentStateMeta::Static)) => max,
            (_, Some(DocumentStateMeta::Dynamic)) => 0,
            _ if is_unchanged => elapsed.saturating_add(elapsed / 2),
            (Some(PageChange::Changed), _) => elapsed / 2,
            _ => 0,
        };
        wanted.clamp(min, max)
    }

    /// Converts `modified`, the time of a change that a site states, to a limit for the page's last
    /// visit. This round visits the page again if its last visit was before the limit. `None` if no
    /// page was visited that early.
    pub(crate) fn changed_since(&self, modified: u32) -> Option<u32> {
        let least = whole_seconds(self.revisits.least);
        let before = modified.min(self.round.began.saturating_sub(least));
        (before > self.round.first_began).then_some(before)
    }
}

#[cfg(test)]
mod tests;
