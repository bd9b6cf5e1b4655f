//! Visits and rounds: what a page's last visit left, what came of this one, and when the
//! next is due. Knows no clock and no I/O.
//!
//! A crawl's first round visits what it finds. `--recrawl` begins another one: what is due is
//! pending again, and a URL is visited once in a round however many runs that takes.

use crawl_fetcher::Validators;
use crawl_frontier::{Exclusion, UrlKind, Visit};
use crawl_weburl::{CanonicalUrl, canonicalize};
use serde::{Deserialize, Serialize};

use crate::config::Revisits;
use crate::revisit::document_state::DocumentState;
use crate::time::whole_seconds;
use crate::totals::{Change, Totals};

/// A round that began so much later than now, in seconds, was begun by a clock that was ahead.
/// Rounds that follow each other within seconds are numbered ahead of the clock a little.
const MAX_ROUND_AHEAD: u32 = 60 * 60;

/// When something is due that is due in each round.
pub(crate) const EACH_ROUND: u32 = 0;

/// A passage through the crawl's pages; durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Round {
    /// From 1.
    pub(crate) number: u32,
    /// When it began, in seconds since the Unix epoch.
    pub(crate) began: u32,
    /// True if all that was due then is pending, or was visited.
    pub(crate) is_open: bool,
    /// True if a run ended that had nothing more to do in it.
    pub(crate) is_over: bool,
    /// Sums as they were when it began.
    pub(crate) before: Totals,
    /// When the first round began: no page was visited before.
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

    /// The round behind this one.
    pub(crate) fn next(&self, now: u32, totals: Totals) -> Round {
        let began = match self.was_begun_ahead_of(now) {
            true => now,
            // A clock that was set back a little makes no visit younger than it is.
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

    /// Returns whether it was begun by a clock that was ahead of what is `now`.
    pub(crate) fn was_begun_ahead_of(&self, now: u32) -> bool {
        self.began > now.saturating_add(MAX_ROUND_AHEAD)
    }
}

/// The state that a visit leaves for the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PreviousVisit {
    // Names are short: one is kept for each URL.
    /// When the round began in which something was learnt of the page last, in seconds since the
    /// Unix epoch.
    #[serde(rename = "r")]
    round_began: u32,
    /// The page that was there last.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    page: Option<KnownPage>,
    /// That page's word on how often it changes.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    said: Option<DocumentState>,
    /// Why the URL was not asked for, if it was not.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    excluded: Option<String>,
}

/// A page as it was when it was fetched last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownPage {
    #[serde(rename = "s")]
    pub(crate) status: u16,
    /// Of the payload; of the target for a redirect.
    #[serde(rename = "d")]
    pub(crate) digest: String,
    /// Of its main text, where that was asked for; begins with the [`TEXT_RULES`] it was taken by.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub(crate) text_digest: Option<String>,
    /// Of the payload without its content coding, where it had one.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub(crate) decoded_digest: Option<String>,
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub(crate) etag: Option<String>,
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_modified: Option<String>,
    /// The target of a redirect.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub(crate) redirect: Option<String>,
    /// The `WARC-Date` of the record that holds its payload, in microseconds since the Unix epoch.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub(crate) archived: Option<u64>,
}

/// The beginning of each digest of a main text: a name for the rules by which a main text is told
/// and put into a digest, to be changed with them. What another version kept can't be compared: the
/// text is read from the archive again.
pub(crate) const TEXT_RULES: &str = "3:";

/// A validator that is longer is not sent back.
const MAX_VALIDATOR_BYTES: usize = 512;

impl KnownPage {
    /// Returns whether a request for it asks only for what is not this.
    pub(crate) fn is_conditional(&self) -> bool {
        self.etag.is_some() || self.last_modified.is_some()
    }

    /// The difference between this page, as it is now, and the one that was there `before`.
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

    /// The digest of its main text, where that was taken by the rules of this version.
    pub(crate) fn comparable_text(&self) -> Option<&str> {
        let digest = self.text_digest.as_deref();
        digest.filter(|digest| digest.starts_with(TEXT_RULES))
    }

    /// Returns whether the page has this payload, or this content without its coding.
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

/// The part of a page that is not as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// None: it came byte for byte.
    Nothing,
    /// The content coding of its body: the same came packed otherwise.
    Coding,
    /// The body, and not the main text: a token, a counter, a date at its end.
    Markup,
    /// The main text.
    Text,
    /// The body of what has no text that could be compared.
    Bytes,
    /// The status, or where it redirects to.
    Answer,
}

impl Difference {
    /// Returns whether the page is as it was for a reader.
    pub(crate) fn is_same(self) -> bool {
        matches!(
            self,
            Difference::Nothing | Difference::Coding | Difference::Markup
        )
    }

    /// As rows name it.
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
    /// Notes the digest of its page's main text, where that was not taken then, or by the rules of
    /// another version.
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

    /// The target that the URL led to.
    pub(crate) fn redirect(&self) -> Option<CanonicalUrl> {
        let target = self.page.as_ref()?.redirect.as_deref()?;
        canonicalize(None, target).ok()
    }

    /// Returns whether the URL was excluded for the same reason then, by the same rule.
    pub(crate) fn was_excluded_by(&self, exclusion: &Exclusion) -> bool {
        self.excluded.as_deref() == Some(&reason_and_rule(exclusion))
    }

    /// The validators that make a request conditional.
    pub(crate) fn validators(&self) -> Validators {
        self.page
            .as_ref()
            .map_or_else(Validators::default, |page| Validators {
                etag: page.etag.clone(),
                last_modified: page.last_modified.clone(),
            })
    }
}

/// The bytes of a visit without the target of its redirect, where that `is_forgotten`.
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

/// Lines move when others are put before them, and rules stay.
fn reason_and_rule(exclusion: &Exclusion) -> String {
    match &exclusion.rule {
        Some(rule) => format!("{}: {rule}", exclusion.reason),
        None => exclusion.reason.to_string(),
    }
}

/// The result of a visit.
#[derive(Clone, Debug)]
pub(crate) enum VisitResult {
    /// The page is as it was.
    Same,
    /// A page, or a redirect.
    Page(KnownPage),
    /// 404 or 410.
    Nothing,
    /// Something that says nothing of the page: a failure, a refusal.
    Unknown,
    /// The process died of it, time and again.
    Deadly,
    /// It was not asked for.
    Excluded(Exclusion),
}

/// Has the next visit ask for the page in full: what an index left out because of an answer's
/// fields may come back with others, and a 304 would not bring it.
pub(crate) fn ask_in_full(past: Option<&mut PreviousVisit>, found: &mut VisitResult) {
    let known = past.and_then(|past| past.page.as_mut());
    let found = match found {
        VisitResult::Page(page) => Some(page),
        _ => None,
    };
    for page in known.into_iter().chain(found) {
        page.etag = None;
        page.last_modified = None;
    }
}

/// The dates of a round, and the rules for the next visits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RevisitSchedule {
    pub(crate) round: Round,
    pub(crate) revisits: Revisits,
}

impl RevisitSchedule {
    /// The difference between what was found and what was there; none where nothing is known.
    pub(crate) fn change(past: Option<&PreviousVisit>, found: &VisitResult) -> Option<Change> {
        let before = past.and_then(|past| past.page.as_ref());
        match (found, before) {
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

    /// The part that differs between the page that was found and the one that was there.
    pub(crate) fn difference(
        past: Option<&PreviousVisit>,
        found: &VisitResult,
    ) -> Option<Difference> {
        match (found, past?.page.as_ref()?) {
            (VisitResult::Page(page), before) => Some(page.difference(before)),
            _ => None,
        }
    }

    /// The visit at `at`, in seconds since the Unix epoch, as it is kept, with the time at which
    /// the next is due.
    pub(crate) fn after(
        &self,
        at: u32,
        kind: UrlKind,
        past: Option<PreviousVisit>,
        found: VisitResult,
        said: Option<DocumentState>,
    ) -> Visit {
        let change = RevisitSchedule::change(past.as_ref(), &found);
        let learnt = !matches!(
            found,
            VisitResult::Unknown | VisitResult::Deadly | VisitResult::Excluded(_)
        );
        let said = match (&found, &past) {
            (VisitResult::Page(_), _) | (_, None) => said,
            (_, Some(past)) => past.said,
        };
        let round_began = match &past {
            Some(past) if !learnt => past.round_began,
            _ => self.round.began,
        };
        let due = match kind {
            UrlKind::Sitemap => EACH_ROUND,
            UrlKind::Page | UrlKind::Resource => {
                let interval = self.interval(past.as_ref(), change, &found, said);
                self.round.began.saturating_add(interval)
            }
        };
        let before = past.and_then(|past| past.page);
        let mut excluded = None;
        let page = match found {
            VisitResult::Same | VisitResult::Unknown | VisitResult::Deadly => before,
            // What is archived stays the original of what came as it was, and its digests those of
            // the original.
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
            said,
            excluded,
        };
        Visit {
            // A clock that was set back takes no visit out of its round.
            at: at.max(self.round.began),
            due,
            bytes: past.bytes(),
        }
    }

    /// The time from this round's beginning to the next visit, in seconds.
    ///
    /// A page that is as it was is left alone for half as long again as it was just now, one that
    /// changed for half as long. One that was visited once is due in the next round: nothing is
    /// known of how often it changes. So is what could not be had. What names other URLs and their
    /// changes (sitemaps) is due in each round.
    fn interval(
        &self,
        past: Option<&PreviousVisit>,
        change: Option<Change>,
        found: &VisitResult,
        said: Option<DocumentState>,
    ) -> u32 {
        let least = whole_seconds(self.revisits.least);
        let most = self.revisits.longest();
        let elapsed = past.map_or(0, |past| self.round.began.saturating_sub(past.round_began));
        let was_as_it_is = change == Some(Change::Same) || matches!(found, VisitResult::Nothing);
        let wanted = match (change, said) {
            _ if matches!(found, VisitResult::Deadly) => most,
            (Some(Change::Same), Some(DocumentState::Static)) => most,
            (_, Some(DocumentState::Dynamic)) => 0,
            _ if was_as_it_is => elapsed.saturating_add(elapsed / 2),
            (Some(Change::Changed), _) => elapsed / 2,
            _ => 0,
        };
        wanted.clamp(least, most)
    }

    /// Before when a page must have been visited last to be visited again in this round, where
    /// its site says that it changed at `modified`. None where no page was.
    pub(crate) fn changed_since(&self, modified: u32) -> Option<u32> {
        let least = whole_seconds(self.revisits.least);
        let before = modified.min(self.round.began.saturating_sub(least));
        (before > self.round.first_began).then_some(before)
    }
}

#[cfg(test)]
mod tests;
