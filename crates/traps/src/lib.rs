//! Traps: endless sets of URLs that bring nothing new, recognised by the pages fetched so far.
//!
//! A trap is recognised by several signs together: its pages have nothing new, were found on pages
//! with nothing new, and lead to more of their kind, and their URLs look like calendars, sessions
//! or selections. A single sign neither delays nor defers anything.
//!
//! Pass each fetched page to [`TrapDetector::observe`], and the URLs first found on it to
//! [`TrapDetector::record_children`]. [`TrapDetector::disposition`] then decides whether a URL is
//! fetched or deferred. The **level** of a URL is the number of consecutive pages with nothing new
//! on the way to it. The owner of the queues stores the level with the URL, and fetches URLs of
//! higher levels later.
//!
//! All memory is bounded (see the constants). The deferred kinds can be stored and restored
//! ([`TrapDetector::stored`]); everything else is learned again from the next pages.

mod deferred_url_kinds;
mod deferred_url_kinds_format;
mod host_history;
mod learned_spellings;
mod mirrored_origins;
mod novelty;
mod page_fingerprint;
mod recent_map;
mod simhash;
mod stable_hash;
mod template_history;
mod word_scan;

use std::collections::HashSet;

use crawl_weburl::{CanonicalUrl, HostKey, SpellingStepPolicies, UrlShape};

use self::deferred_url_kinds::{DeferredUrlKind, DeferredUrlKinds};
use self::host_history::{HostHistories, HostHistory, TextOccurrences, UrlsFromBarrenPages};
pub use self::learned_spellings::{
    SpellingRulesFromRecords, fetched_instead, is_about_session_ids,
};
use self::mirrored_origins::MirrorTracker;
pub use self::mirrored_origins::mirrored_page;
pub use self::novelty::HostWords;
pub use self::page_fingerprint::{PageFingerprint, PageFingerprintBuilder};
pub use self::template_history::TrapKind;
use self::template_history::{PageYield, TemplateHistory};

/// The maximum level of a URL (the number of consecutive pages with nothing new on the way to it).
pub const MAX_LEVEL: u8 = 30;

/// Maximum number of pages with the same text that are remembered. Only URLs found on remembered
/// pages can be deferred because of this text.
const MAX_MEMBERS: usize = 16;
/// Maximum number of deferred kinds of URLs, over all hosts.
const MAX_DEFERRED_KINDS: usize = 16_384;
/// A page has something new if more than `MIN_NEW_WORDS` of its words are new, and more than one in
/// `WORDS_A_NEW_ONE`.
const MIN_NEW_WORDS: usize = 5;
const WORDS_A_NEW_ONE: usize = 12;
/// Pages with fewer words than this are always compared word by word, because that is cheap and
/// such pages are often stubs.
const FEW_WORDS: u32 = 50;
/// After this many URLs of a deferred kind, one URL is fetched as a probe. Each probe multiplies
/// the number by `PROBE_FACTOR`: 128, 512, 2,048 and so on.
const FIRST_PROBE: u64 = 128;
const PROBE_FACTOR: u64 = 4;
/// Pages with the same text that lead to further URLs count as a trap if there are at least
/// `TEXT_ROW` such pages, and one of them has at least the level `TEXT_LEVEL`. If their URLs have
/// trap signs, level 1 is enough.
const TEXT_ROW: u32 = 3;
const TEXT_LEVEL: u8 = 2;
/// From this number on, pages with the same text are a trap even if each leads to only one further
/// URL. A few such pages may be a gallery without captions.
const TEXT_CHAIN: u32 = 32;

/// A fetched page, as evidence of traps.
#[derive(Clone, Copy, Debug)]
pub struct PageEvidence<'a> {
    /// The page's URL.
    pub url: &'a CanonicalUrl,
    /// The level of the page's URL: the number of consecutive pages with nothing new on the way to
    /// it.
    pub level: u8,
    /// The response to the request for the URL.
    pub answer: AnswerEvidence<'a>,
}

/// The evidence about traps and mirrors in the response to a request for a page.
#[derive(Clone, Copy, Debug)]
pub enum AnswerEvidence<'a> {
    /// A text page.
    Text(&'a PageFingerprint),
    /// A redirect to this URL, which is not followed because it is one too many in a row. Any other
    /// redirect is [`AnswerEvidence::Nothing`].
    CutRedirect(&'a CanonicalUrl),
    /// Other content that is kept, such as an image or a document.
    Other,
    /// An error, a redirect that is followed, or no response at all.
    Nothing,
}

/// The assessment of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageJudgement {
    /// The level of URLs first found on the page: the number of consecutive pages with nothing new.
    pub level: u8,
    /// Whether the page had nothing new.
    pub is_barren: bool,
    /// Whether deferred URLs have to be judged again. True if the page belongs to a deferred kind
    /// of URLs and had something new, so that the kind is no longer deferred.
    pub traps_changed: bool,
    /// The number of words of the page that are new on its host. `None` if the page was not
    /// compared.
    pub new_words: Option<u32>,
}

/// How to treat a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UrlDisposition {
    /// Fetch the URL.
    Fetch,
    /// Queue the URL behind the host's other URLs, at this level (the number of consecutive pages
    /// with nothing new).
    Later(u8),
    /// Defer the URL. Contains the rule and its evidence.
    Defer(String),
    /// Fetch another spelling of the URL, which has the same page. Contains that spelling and the
    /// reason.
    SameAs(CanonicalUrl, String),
    /// The URL's origin mirrors another origin. Contains the URL of the same page on the other
    /// origin, and the reason. If the URL on the other origin is already known, defer the judged
    /// URL.
    Mirror(CanonicalUrl, String),
}

/// Detects traps, mirrors and alternative spellings.
///
/// Call [`TrapDetector::observe`] for each fetched page and [`TrapDetector::record_children`] for
/// the URLs first found on a page with nothing new. Call [`TrapDetector::disposition`] for each URL
/// before it is fetched.
#[derive(Debug)]
pub struct TrapDetector {
    naming: SpellingStepPolicies,
    defers: bool,
    hosts: HostHistories,
    deferred: DeferredUrlKinds,
    /// Whether the deferred kinds of URLs have changed since they were last stored.
    has_changed: bool,
    /// Whether alternative spellings may have been learned for any host.
    may_rename: bool,
    mirrors: MirrorTracker,
    /// Hosts whose URLs may now be treated differently than at the last call of
    /// [`TrapDetector::settled`].
    changing: HashSet<HostKey>,
}

/// Returns the keys for evidence about a URL: the key of its pattern ([`UrlShape::pattern`]) and,
/// if it has a family ([`UrlShape::family`]), the key of the family.
fn keys(host: &HostKey, shape: &UrlShape) -> (u64, Option<u64>) {
    let template = stable_hash::of_all(&[host.as_str(), &shape.pattern]);
    let family = shape.family();
    let family = family.map(|family| stable_hash::of_all(&[host.as_str(), family, "family"]));
    (template, family)
}

/// Returns the key of the URLs that were found on `via`.
fn via_key(via: &CanonicalUrl) -> u64 {
    stable_hash::of_all(&[via.as_str(), "via"])
}

impl TrapDetector {
    /// Creates a trap detector that knows nothing yet. Spellings are learned according to `naming`.
    /// If `defers` is false, nothing is delayed or deferred.
    #[must_use]
    pub fn new(naming: SpellingStepPolicies, defers: bool) -> TrapDetector {
        TrapDetector {
            naming,
            defers,
            hosts: HostHistories::default(),
            deferred: DeferredUrlKinds::default(),
            has_changed: false,
            may_rename: false,
            mirrors: MirrorTracker::default(),
            changing: HashSet::new(),
        }
    }

    /// Returns whether observations since the last call of [`TrapDetector::settled`] may have
    /// changed the treatment of `url`, which was found on `via`. Meant for callers whose decisions
    /// must depend on settled pages only.
    #[must_use]
    pub fn is_changing(&self, url: &CanonicalUrl, via: Option<&CanonicalUrl>) -> bool {
        let holds = |url: &CanonicalUrl| self.changing.contains(&url.host_key());
        !self.changing.is_empty() && (holds(url) || via.is_some_and(holds))
    }

    /// Marks all observations so far as settled, so that [`TrapDetector::is_changing`] is false for
    /// every URL.
    pub fn settled(&mut self) {
        self.changing.clear();
    }

    /// Returns the known words of the page's host, or `None` if the page does not have to be
    /// compared with them. The caller can use the words to compare the page without blocking the
    /// trap detector. If the caller doesn't compare the page, [`TrapDetector::observe`] does.
    #[must_use]
    pub fn words_to_compare(
        &self,
        url: &CanonicalUrl,
        level: u8,
        gist: &PageFingerprint,
    ) -> Option<HostWords> {
        let key = url.host_key();
        let host = self.hosts.get(&key).filter(|_| self.defers)?;
        let shape = url.shape();
        let (template, _) = keys(&key, shape);
        let is_wanted = !host.names.has_met(url) && is_doubtful(host, gist, level, (url, template));
        is_wanted.then(|| host.words.clone())
    }

    /// Records a fetched page. A page that was seen before changes nothing.
    pub fn observe(&mut self, visit: &PageEvidence<'_>) -> PageJudgement {
        let PageEvidence { url, level, answer } = *visit;
        let level = if self.defers { level } else { 0 };
        let unjudged = PageJudgement {
            level,
            is_barren: false,
            traps_changed: false,
            new_words: None,
        };
        if matches!(answer, AnswerEvidence::Nothing) {
            return unjudged;
        }
        let key = url.host_key();
        let host = self.hosts.for_page(&key);
        let mut is_changed = false;
        if let AnswerEvidence::Text(gist) = answer {
            if host.names.has_met(url) {
                return unjudged;
            }
            let before = host.names.compared();
            host.names.learn(&self.naming, url, gist.words, gist.text);
            is_changed = host.names.compared() != before;
            self.may_rename |= is_changed;
        }
        if !self.defers {
            if is_changed {
                self.changing.insert(key);
            }
            return unjudged;
        }
        let shape = url.shape();
        let (template, family) = keys(&key, shape);
        let mut new_words = None;
        let page_yield = match answer {
            AnswerEvidence::Nothing => None,
            AnswerEvidence::Other => Some(PageYield::New),
            AnswerEvidence::CutRedirect(to) => redirected(url, shape, to),
            AnswerEvidence::Text(gist) => {
                is_changed |= self.mirrors.learn(url, gist);
                let is_doubtful = is_doubtful(host, gist, level, (url, template));
                let compared = || is_doubtful.then(|| host.words.new_words(gist));
                new_words = gist.new_words.or_else(compared);
                Some(read(host, gist, new_words.filter(|_| is_doubtful)))
            }
        };
        let Some(page_yield) = page_yield else {
            if is_changed {
                self.changing.insert(key);
            }
            return unjudged;
        };
        let mut traps_changed = false;
        for place in std::iter::once(template).chain(family) {
            let is_template = Some(place) != family;
            let pattern = shape
                .family()
                .filter(|_| !is_template)
                .unwrap_or(&shape.pattern);
            let account = host
                .templates
                .entry(place, || TemplateHistory::new(pattern, shape.signs));
            let (was_watched, was_proven) = (account.is_watched(), account.is_proven());
            // After a cut redirect the level is at least 1, because the redirects that led to the
            // cut redirect were not recorded but brought nothing new either.
            let level = level.max(u8::from(matches!(page_yield, PageYield::Onwards)));
            account.take(url, shape, level, page_yield);
            is_changed |= was_watched != account.is_watched();
            is_changed |= was_proven != account.is_proven();
            match (was_watched, account.is_watched()) {
                (false, true) => host.watched = host.watched.saturating_add(1),
                (true, false) => host.watched = host.watched.saturating_sub(1),
                _ => {}
            }
            if matches!(page_yield, PageYield::New) && self.deferred.remove(place) {
                traps_changed = true;
                is_changed = true;
                self.has_changed = true;
                account.had_been_misjudged();
            }
        }
        if is_changed {
            self.changing.insert(key);
        }
        let one_more = (level + 1).min(MAX_LEVEL);
        let (level, is_barren) = match page_yield {
            PageYield::New => (0, false),
            _ => (one_more, true),
        };
        PageJudgement {
            level,
            is_barren,
            traps_changed,
            new_words,
        }
    }

    /// Counts the URLs on the same host that were first found on this page, which has nothing new,
    /// for the page's kinds of URLs. Returns true if that defers a kind of URLs that was not
    /// deferred before.
    pub fn record_children<'a>(
        &mut self,
        visit: &PageEvidence<'_>,
        new: impl Iterator<Item = &'a CanonicalUrl>,
    ) -> bool {
        let host = visit.url.host_key();
        let shape = visit.url.shape();
        let (template, family) = keys(&host, shape);
        let (mut of_template, mut of_family, mut of_host) = (0, 0, 0);
        for url in new.filter(|url| url.host_key() == host) {
            let (own, wide) = keys(&host, url.shape());
            of_host += 1;
            of_template += u32::from(own == template);
            of_family += u32::from(wide.is_some() && wide == family);
        }
        let counts = std::iter::once((template, of_template));
        let mut defers = false;
        for (place, count) in counts.chain(family.map(|family| (family, of_family))) {
            let history = self.hosts.get_mut(&host);
            let Some(account) = history.and_then(|history| history.templates.get_mut(place)) else {
                continue;
            };
            account.count_children(count);
            if let Some(trap) = account.verdict() {
                let is_of_selections =
                    Some(place) == family && shape.family().is_some_and(|f| f.ends_with('?'));
                let names = is_of_selections.then(|| account.idle_names());
                let by_looks = !matches!(trap, TrapKind::SoftMissing | TrapKind::Endless);
                let rule = account.evidence(trap);
                defers |= self.defer((&host, place), rule, by_looks, names);
            }
        }
        defers | self.defer_by_text(visit, shape, of_host)
    }

    /// Decides how to treat the next URL, which has this level (number of consecutive pages with
    /// nothing new on the way to it). Call once each time that the URL is due, because some calls
    /// let a deferred URL through as a probe of its kind.
    pub fn disposition(
        &mut self,
        url: &CanonicalUrl,
        via: Option<&CanonicalUrl>,
        level: u8,
    ) -> UrlDisposition {
        let disposition = self.standing(url, via, level);
        if let UrlDisposition::Defer(_) = &disposition
            && let Some((place, _)) = self.deferred_place(url, via, level)
            && let Some(deferred) = self.deferred.get_mut(place)
        {
            deferred.put_aside += 1;
            if deferred.put_aside >= deferred.next_probe {
                deferred.next_probe = deferred.next_probe.saturating_mul(PROBE_FACTOR);
                return UrlDisposition::Fetch;
            }
        }
        disposition
    }

    /// Decides like [`TrapDetector::disposition`], but lets no deferred URL through as a probe.
    #[must_use]
    pub fn standing(
        &self,
        url: &CanonicalUrl,
        via: Option<&CanonicalUrl>,
        level: u8,
    ) -> UrlDisposition {
        let key = url.host_key();
        let host = self.hosts.get(&key);
        let same_page = host.and_then(|host| host.names.same_as(&self.naming, url));
        if let Some((same_page, why)) = same_page {
            return UrlDisposition::SameAs(same_page, why);
        }
        if let Some((_, deferred)) = self.deferred_place(url, via, level) {
            return UrlDisposition::Defer(deferred.rule.clone());
        }
        if let Some((twin, why)) = self.mirrors.twin(url).filter(|_| self.defers) {
            return UrlDisposition::Mirror(twin, why);
        }
        let is_watched = |host: &HostHistory| {
            let (template, family) = keys(&key, url.shape());
            let mut places = std::iter::once(template).chain(family);
            places.any(|place| {
                host.templates
                    .get(place)
                    .is_some_and(TemplateHistory::is_watched)
            })
        };
        let may_be_watched = self.defers && level == 0;
        let watching = host.filter(|host| may_be_watched && host.watched > 0);
        match watching.is_some_and(is_watched) {
            true => UrlDisposition::Later(1),
            false => UrlDisposition::Fetch,
        }
    }

    /// Keeps the spelling of a URL: from now on, [`TrapDetector::disposition`] doesn't replace it
    /// by another spelling. `has_other_failed` is true if the other spelling did not give a page.
    /// The rule for that spelling then ends once [`TrapDetector::observe`] gets a page from the
    /// kept URL. Rules also end if too many URLs are kept.
    pub fn keep_spelling(&mut self, url: &CanonicalUrl, has_other_failed: bool) {
        let key = url.host_key();
        if let Some(host) = self.hosts.get_mut(&key) {
            host.names.keep(&self.naming, url, has_other_failed);
            self.changing.insert(key);
        }
    }

    /// Returns true if a URL must wait until the earlier pages of its host were read. Only a URL
    /// with trap signs must wait: if pages with nothing new led to it, or if its kind has not yet
    /// proven useful.
    #[must_use]
    pub fn needs_care(&self, url: &CanonicalUrl, level: u8) -> bool {
        if !self.defers || !url.shape().signs.any() {
            return false;
        }
        if level > 0 {
            return true;
        }
        let key = url.host_key();
        let (template, family) = keys(&key, url.shape());
        let Some(host) = self.hosts.get(&key) else {
            return true;
        };
        let mut places = std::iter::once(template).chain(family);
        !places.any(|place| {
            host.templates
                .get(place)
                .is_some_and(TemplateHistory::is_proven)
        })
    }

    /// Returns true if the treatment of a host's URLs, or of URLs found on its pages, may have
    /// changed because of learned evidence. If false, [`TrapDetector::standing`] returns
    /// [`UrlDisposition::Fetch`] for all these URLs, apart from queue levels and mirrors.
    #[must_use]
    pub fn knows_of(&self, host: &HostKey) -> bool {
        if self.knows_of_none() {
            return false;
        }
        let learned = |host: &HostHistory| host.names.has_rules();
        self.deferred.speak_of(host) || self.hosts.get(host).is_some_and(learned)
    }

    /// Returns true if [`TrapDetector::knows_of`] is certainly false for every host.
    #[must_use]
    pub fn knows_of_none(&self) -> bool {
        !self.may_rename && self.deferred.is_empty()
    }

    /// Defers the URLs that were found on pages with the same text, if these pages lead to each
    /// other. Returns whether this defers a kind of URLs that was not deferred before.
    fn defer_by_text(&mut self, visit: &PageEvidence<'_>, shape: &UrlShape, new: u32) -> bool {
        let AnswerEvidence::Text(gist) = visit.answer else {
            return false;
        };
        let host = visit.url.host_key();
        let history = self.hosts.get_mut(&host);
        let Some(text) = history.and_then(|history| history.texts.get_mut(gist.said)) else {
            return false;
        };
        let pages = text.pages;
        let followed = text.followed.get_or_insert_default();
        followed.level = followed.level.max(visit.level);
        followed.children = followed.children.saturating_add(new);
        if new > 0 && followed.members.len() < MAX_MEMBERS {
            followed.members.push(via_key(visit.url));
        }
        let UrlsFromBarrenPages {
            level,
            children,
            members,
        } = &**followed;
        let has_signs = shape.signs.any() || shape.has_repeats();
        let min_level = if has_signs { 1 } else { TEXT_LEVEL };
        // The first page with this text is no duplicate, so its links aren't counted. A chain of
        // pages therefore has one child less than pages.
        let is_chain = pages >= TEXT_CHAIN && children.saturating_add(1) == pages;
        if pages < TEXT_ROW || *level < min_level || *children < pages && !is_chain {
            return false;
        }
        let trap = match () {
            () if shape.has_repeats() => TrapKind::RepeatedPath,
            () if shape.signs.date => TrapKind::Calendar,
            () if shape.signs.token => TrapKind::SessionIds,
            () => TrapKind::SoftMissing,
        };
        let of = visit.url;
        let rule = format!(
            "{trap} {}: {pages} pages have the same text, {level} in a row found on each other; \
             {children} more URLs first found on them; such as {of}",
            shape.pattern
        );
        let mut members = members.clone();
        // Deferring the only URL that this page leads to ends the chain.
        if is_chain && new > 0 {
            members.push(via_key(of));
        }
        members.into_iter().fold(false, |defers, member| {
            self.defer((&host, member), rule.clone(), true, None) | defers
        })
    }

    fn defer(
        &mut self,
        (host, place): (&HostKey, u64),
        rule: String,
        by_looks: bool,
        names: Option<Vec<String>>,
    ) -> bool {
        if let Some(deferred) = self.deferred.get_mut(place) {
            // The kind is deferred already, so keep its rule and evidence. Limit the kind to the
            // new parameter names only if the kind was limited to parameter names before.
            deferred.names = deferred.names.take().and(names);
            self.changing.insert(host.clone());
            return false;
        }
        if self.deferred.len() >= MAX_DEFERRED_KINDS {
            return false;
        }
        let deferred = DeferredUrlKind {
            host: Some(host.clone()),
            rule,
            by_looks,
            names,
            put_aside: 0,
            next_probe: FIRST_PROBE,
        };
        self.deferred.insert(place, deferred);
        self.changing.insert(host.clone());
        self.has_changed = true;
        true
    }

    /// Returns the deferred kind that a URL belongs to, with the key of the kind. `None` if the URL
    /// belongs to no deferred kind.
    fn deferred_place(
        &self,
        url: &CanonicalUrl,
        via: Option<&CanonicalUrl>,
        level: u8,
    ) -> Option<(u64, &DeferredUrlKind)> {
        if self.deferred.is_empty() {
            return None;
        }
        let shape = url.shape();
        let (template, family) = keys(&url.host_key(), shape);
        let applies = |deferred: &&DeferredUrlKind| {
            let of_names = |names: &Vec<String>| shape.names.iter().any(|n| names.contains(n));
            (deferred.by_looks || level > 0) && deferred.names.as_ref().is_none_or(of_names)
        };
        let by_via = via.map(via_key);
        std::iter::once(template)
            .chain(family)
            .chain(by_via)
            .find_map(|place| Some((place, self.deferred.get(place).filter(applies)?)))
    }
}

/// Returns true if a page's words have to be compared with the known words of its host. If pages of
/// its URL pattern have proven useful and nothing looks suspicious, only one page in eight is
/// compared.
fn is_doubtful(
    host: &HostHistory,
    gist: &PageFingerprint,
    level: u8,
    (url, template): (&CanonicalUrl, u64),
) -> bool {
    let shape = url.shape();
    let url_hash = || stable_hash::of(url.as_str().as_bytes());
    level > 0
        || gist.words < FEW_WORDS
        || shape.signs.any()
        || shape.family().is_some()
        || host
            .templates
            .get(template)
            .is_none_or(|template| template.is_doubtful(url_hash()))
}

/// Compares a page with earlier pages of its host. A page whose text was seen before has nothing
/// new. Otherwise `new_words` decides, if the page's words were compared.
fn read(host: &mut HostHistory, gist: &PageFingerprint, new_words: Option<u32>) -> PageYield {
    let threshold = MIN_NEW_WORDS.max(gist.words as usize / WORDS_A_NEW_ONE);
    let has_new_words = new_words.is_none_or(|words| words as usize > threshold);
    let pages = host.texts.entry(gist.said, TextOccurrences::default);
    pages.pages = pages.pages.saturating_add(1);
    match pages.pages == 1 && has_new_words {
        true => PageYield::New,
        false if pages.pages == 1 && new_words.is_some_and(|words| words > 0) => {
            PageYield::Little(gist.said)
        }
        false => PageYield::Nothing(gist.said),
    }
}

/// Judges a cut redirect. A redirect to another URL of the same pattern has nothing new. `None` for
/// a redirect to another host or to a URL of another pattern.
fn redirected(url: &CanonicalUrl, shape: &UrlShape, to: &CanonicalUrl) -> Option<PageYield> {
    let leads_on = to != url
        && to.host_key() == url.host_key()
        && to.path_and_query() != url.path_and_query()
        && to.shape().pattern == shape.pattern;
    leads_on.then_some(PageYield::Onwards)
}

#[cfg(test)]
mod tests;
