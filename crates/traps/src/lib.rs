//! Is there any end to it? Spaces of URLs that bring nothing new, recognised by what came of
//! the pages that were fetched.
//!
//! A trap is known by several signs together: pages that say nothing new, found on pages that
//! said nothing new, each of which leads to more of its kind, with URLs that look as those of
//! calendars, sessions or selections do. One sign alone slows nothing and defers nothing.
//!
//! [`Traps::observe`] is told of each page, [`Traps::record_children`] which URLs were met on it
//! first, and [`Traps::disposition`] says of a URL whether it is asked for or deferred. The
//! **level** of a URL is the number of pages in a row, on the way to it, that said nothing new;
//! who keeps queues keeps it with the URL, and puts URLs of higher levels behind.
//!
//! All memory is bounded (see the constants). What is deferred can be stored and restored
//! ([`Traps::stored`]); the rest is learned anew from the next pages.

mod deferred_format;
mod deferred_kinds;
mod host_memory;
mod learned_spellings;
mod mirrors;
mod novelty;
mod page_fingerprint;
mod recent_map;
mod simhash;
mod stable_hash;
mod template;
mod word_scan;

use std::collections::HashSet;

use crawl_weburl::{CanonicalUrl, HostKey, Shape, SpellingRules};

use self::deferred_kinds::{DeferredKind, DeferredKinds};
use self::host_memory::{Followed, HostMemories, HostMemory, Text};
use self::mirrors::Mirrors;
pub use self::novelty::HostWords;
pub use self::page_fingerprint::{FingerprintReader, PageFingerprint};
pub use self::template::Trap;
use self::template::{Template, Yield};

/// A level is counted up to this.
pub const MAX_LEVEL: u8 = 30;

/// Pages with one text that are known by name.
const MAX_MEMBERS: usize = 16;
/// Kinds of URLs that are deferred, over all hosts.
const MAX_PARKED: usize = 16_384;
/// A page says something new if it has more new words than this, and more than one in
/// `WORDS_A_NEW_ONE`.
const MIN_NEW_WORDS: usize = 5;
const WORDS_A_NEW_ONE: usize = 12;
/// Pages of fewer words are all looked at word for word: that costs little, and they are often stubs.
const FEW_WORDS: u32 = 50;
/// Of a deferred kind, the 128th URL is asked for all the same, then the 512th, the 2,048th ..
const FIRST_PROBE: u64 = 128;
const PROBE_FACTOR: u64 = 4;
/// Pages with the same text, each found on another of them.
const TEXT_ROW: u32 = 3;
const TEXT_LEVEL: u8 = 2;

/// A page that was fetched.
#[derive(Clone, Copy, Debug)]
pub struct PageEvidence<'a> {
    /// Its URL.
    pub url: &'a CanonicalUrl,
    /// Its level.
    pub level: u8,
    /// The answer that came.
    pub answer: PageAnswer<'a>,
}

/// The answer to a request for a page.
#[derive(Clone, Copy, Debug)]
pub enum PageAnswer<'a> {
    /// A page of text.
    Text(&'a PageFingerprint),
    /// A redirect, and how many of them in a row led here.
    Redirect(&'a CanonicalUrl, u8),
    /// Something else that is kept: an image, a document.
    Other,
    /// An error, or nothing.
    Nothing,
}

/// The judgement of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageJudgement {
    /// The level of what is met on it first.
    pub level: u8,
    /// It said nothing new.
    pub is_barren: bool,
    /// It was asked for to see whether what is deferred still brings nothing new, and it did bring
    /// something: what is deferred is to be judged again.
    pub has_turned: bool,
    /// The words that its host had not said before, where it was compared with them.
    pub new_words: Option<u32>,
}

/// The treatment of a URL that is next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// It is asked for.
    Fetch,
    /// It goes behind others, at this level.
    Later(u8),
    /// It is put aside; the rule that says so, with its evidence.
    Defer(String),
    /// Its page is asked for under another spelling, and why.
    SameAs(CanonicalUrl, String),
    /// Its origin mirrors another. If the twin is known, it is put aside, and why.
    Mirror(CanonicalUrl, String),
}

/// The evidence of traps, mirrors and spellings.
#[derive(Debug)]
pub struct Traps {
    naming: SpellingRules,
    defers: bool,
    hosts: HostMemories,
    deferred: DeferredKinds,
    /// True if the deferred kinds changed since they were last stored.
    has_changed: bool,
    /// True once spellings of some host may have been learned.
    may_rename: bool,
    mirrors: Mirrors,
    /// Hosts whose URLs may be treated otherwise than when [`Traps::settled`] was called last.
    changing: HashSet<HostKey>,
}

/// The places where accounts of a URL are kept: its template, and its family where it has one.
fn keys(host: &HostKey, shape: &Shape) -> (u64, Option<u64>) {
    let template = stable_hash::of_all(&[host.as_str(), &shape.pattern]);
    let family = shape.family();
    let family = family.map(|family| stable_hash::of_all(&[host.as_str(), family, "family"]));
    (template, family)
}

/// The place of pages that were found on one.
fn key_of_via(via: &CanonicalUrl) -> u64 {
    stable_hash::of_all(&[via.as_str(), "via"])
}

impl Traps {
    /// Nothing known yet. Spellings are learned as `naming` says; without `defers` nothing is put
    /// behind and nothing is put aside.
    #[must_use]
    pub fn new(naming: SpellingRules, defers: bool) -> Traps {
        Traps {
            naming,
            defers,
            hosts: HostMemories::default(),
            deferred: DeferredKinds::default(),
            has_changed: false,
            may_rename: false,
            mirrors: Mirrors::default(),
            changing: HashSet::new(),
        }
    }

    /// Returns whether what was taken in since [`Traps::settled`] was called last may have changed
    /// what is said of a URL that was found there. For a caller whose answers are to follow from
    /// what is settled alone.
    #[must_use]
    pub fn is_changing(&self, url: &CanonicalUrl, via: Option<&CanonicalUrl>) -> bool {
        let holds = |url: &CanonicalUrl| self.changing.contains(&url.host_key());
        !self.changing.is_empty() && (holds(url) || via.is_some_and(holds))
    }

    /// All that was taken in is settled.
    pub fn settled(&mut self) {
        self.changing.clear();
    }

    /// The words that were said before on a page's host, where the page is to be compared with
    /// them. Who compares it holds these traps up for nobody; [`Traps::observe`] compares what was
    /// not compared before.
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

    /// Takes a page in that was fetched. One that is visited again tells nothing.
    pub fn observe(&mut self, visit: &PageEvidence<'_>) -> PageJudgement {
        let PageEvidence { url, level, answer } = *visit;
        let level = if self.defers { level } else { 0 };
        let unjudged = PageJudgement {
            level,
            is_barren: false,
            has_turned: false,
            new_words: None,
        };
        if matches!(answer, PageAnswer::Nothing) {
            return unjudged;
        }
        let key = url.host_key();
        let host = self.hosts.of_page(&key);
        let mut is_changed = false;
        if let PageAnswer::Text(gist) = answer {
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
        let found = match answer {
            PageAnswer::Nothing => None,
            PageAnswer::Other => Some(Yield::New),
            PageAnswer::Redirect(to, _) => redirected(url, shape, to),
            PageAnswer::Text(gist) => {
                is_changed |= self.mirrors.learn(url, gist);
                let is_doubtful = is_doubtful(host, gist, level, (url, template));
                let compared = || is_doubtful.then(|| host.words.new_words(gist));
                new_words = gist.new_words.or_else(compared);
                Some(read(host, gist, new_words.filter(|_| is_doubtful)))
            }
        };
        let Some(found) = found else {
            if is_changed {
                self.changing.insert(key);
            }
            return unjudged;
        };
        let mut has_turned = false;
        for place in std::iter::once(template).chain(family) {
            let whole = Some(place) != family;
            let pattern = shape.family().filter(|_| !whole).unwrap_or(&shape.pattern);
            let account = host
                .templates
                .entry(place, || Template::new(pattern, shape.signs));
            let (was_watched, was_proven) = (account.is_watched(), account.is_proven());
            account.take(url, shape, level, found);
            is_changed |= was_watched != account.is_watched();
            is_changed |= was_proven != account.is_proven();
            match (was_watched, account.is_watched()) {
                (false, true) => host.watched = host.watched.saturating_add(1),
                (true, false) => host.watched = host.watched.saturating_sub(1),
                _ => {}
            }
            if matches!(found, Yield::New) && self.deferred.remove(place) {
                has_turned = true;
                is_changed = true;
                self.has_changed = true;
                account.had_been_misjudged();
            }
        }
        if is_changed {
            self.changing.insert(key);
        }
        let one_more = (level + 1).min(MAX_LEVEL);
        let (level, is_barren) = match (found, answer) {
            (Yield::New, _) => (0, false),
            // A redirect or two are nothing.
            (Yield::Onwards, PageAnswer::Redirect(_, 0)) => (level, true),
            _ => (one_more, true),
        };
        PageJudgement {
            level,
            is_barren,
            has_turned,
            new_words,
        }
    }

    /// Those URLs were met first on a page that said nothing new. Whether that was enough of its
    /// kind, which then is deferred.
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
            let memory = self.hosts.get_mut(&host);
            let Some(account) = memory.and_then(|memory| memory.templates.get_mut(place)) else {
                continue;
            };
            account.count_children(count);
            if let Some(trap) = account.verdict() {
                let of_selections =
                    Some(place) == family && shape.family().is_some_and(|f| f.ends_with('?'));
                let names = of_selections.then(|| account.idle_names());
                let by_looks = !matches!(trap, Trap::SoftMissing | Trap::Endless);
                let rule = account.evidence(trap);
                defers |= self.defer((&host, place), rule, by_looks, names);
            }
        }
        defers | self.text_bred(visit, shape, of_host)
    }

    /// Decides the treatment of a URL of this level that is next. Asked once for each
    /// turn: of what is deferred it lets some through.
    pub fn disposition(
        &mut self,
        url: &CanonicalUrl,
        via: Option<&CanonicalUrl>,
        level: u8,
    ) -> Disposition {
        let disposition = self.standing(url, via, level);
        if let Disposition::Defer(_) = &disposition
            && let Some((place, _)) = self.deferred_place(url, via, level)
            && let Some(deferred) = self.deferred.get_mut(place)
        {
            deferred.put_aside += 1;
            if deferred.put_aside >= deferred.next_probe {
                deferred.next_probe = deferred.next_probe.saturating_mul(PROBE_FACTOR);
                return Disposition::Fetch;
            }
        }
        disposition
    }

    /// The same, but nothing is let through.
    #[must_use]
    pub fn standing(
        &self,
        url: &CanonicalUrl,
        via: Option<&CanonicalUrl>,
        level: u8,
    ) -> Disposition {
        let key = url.host_key();
        let host = self.hosts.get(&key);
        let other = host.and_then(|host| host.names.same_as(&self.naming, url));
        if let Some((other, why)) = other {
            return Disposition::SameAs(other, why);
        }
        if let Some((_, deferred)) = self.deferred_place(url, via, level) {
            return Disposition::Defer(deferred.rule.clone());
        }
        if let Some((twin, why)) = self.mirrors.twin(url).filter(|_| self.defers) {
            return Disposition::Mirror(twin, why);
        }
        let is_watched = |host: &HostMemory| {
            let (template, family) = keys(&key, url.shape());
            let mut places = std::iter::once(template).chain(family);
            places.any(|place| host.templates.get(place).is_some_and(Template::is_watched))
        };
        let may_be_watched = self.defers && level == 0;
        let watching = host.filter(|host| may_be_watched && host.watched > 0);
        match watching.is_some_and(is_watched) {
            true => Disposition::Later(1),
            false => Disposition::Fetch,
        }
    }

    /// Returns whether a URL is asked for only when what came before it from its host was read: it
    /// looks like one of a kind that may not end, and that kind has not shown that it brings
    /// something, or the way to it said nothing new.
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
        !places.any(|place| host.templates.get(place).is_some_and(Template::is_proven))
    }

    /// Returns whether [`Traps::standing`] may say anything but [`Disposition::Fetch`] of a host's
    /// URLs or those found on its pages, their place in a queue and mirrors aside.
    #[must_use]
    pub fn knows_of(&self, host: &HostKey) -> bool {
        if self.knows_of_none() {
            return false;
        }
        let learned = |host: &HostMemory| host.names.has_rules();
        self.deferred.speak_of(host) || self.hosts.get(host).is_some_and(learned)
    }

    /// Returns true only if [`Traps::knows_of`] is false for each host.
    #[must_use]
    pub fn knows_of_none(&self) -> bool {
        !self.may_rename && self.deferred.is_empty()
    }

    /// A text that comes again and again, each time found on a page with that text.
    fn text_bred(&mut self, visit: &PageEvidence<'_>, shape: &Shape, new: u32) -> bool {
        let PageAnswer::Text(gist) = visit.answer else {
            return false;
        };
        let host = visit.url.host_key();
        let memory = self.hosts.get_mut(&host);
        let Some(text) = memory.and_then(|host| host.texts.get_mut(gist.said)) else {
            return false;
        };
        let pages = text.pages;
        let followed = text.followed.get_or_insert_default();
        followed.level = followed.level.max(visit.level);
        followed.children = followed.children.saturating_add(new);
        if new > 0 && followed.members.len() < MAX_MEMBERS {
            followed.members.push(key_of_via(visit.url));
        }
        let Followed {
            level,
            children,
            members,
        } = &**followed;
        let looks = shape.signs.any() || shape.has_repeats();
        let enough = if looks { 1 } else { TEXT_LEVEL };
        if pages < TEXT_ROW || *level < enough || *children < pages {
            return false;
        }
        let trap = match () {
            () if shape.has_repeats() => Trap::RepeatedPath,
            () if shape.signs.date => Trap::Calendar,
            () if shape.signs.token => Trap::SessionIds,
            () => Trap::SoftMissing,
        };
        let of = visit.url;
        let rule = format!(
            "{trap} {}: {pages} pages said the same, {level} in a row found on each other; \
             {children} more first met on them; such as {of}",
            shape.pattern
        );
        let members = members.clone();
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
            // One more selection that brings nothing; the evidence stays as it was.
            deferred.names = deferred.names.take().and(names);
            self.changing.insert(host.clone());
            return false;
        }
        if self.deferred.len() >= MAX_PARKED {
            return false;
        }
        let deferred = DeferredKind {
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

    /// Under which place a URL is deferred.
    fn deferred_place(
        &self,
        url: &CanonicalUrl,
        via: Option<&CanonicalUrl>,
        level: u8,
    ) -> Option<(u64, &DeferredKind)> {
        if self.deferred.is_empty() {
            return None;
        }
        let shape = url.shape();
        let (template, family) = keys(&url.host_key(), shape);
        let speaks = |deferred: &&DeferredKind| {
            let of_names = |names: &Vec<String>| shape.names.iter().any(|n| names.contains(n));
            (deferred.by_looks || level > 0) && deferred.names.as_ref().is_none_or(of_names)
        };
        let of_via = via.map(key_of_via);
        std::iter::once(template)
            .chain(family)
            .chain(of_via)
            .find_map(|place| Some((place, self.deferred.get(place).filter(speaks)?)))
    }
}

/// Returns whether the words of a page are to be compared with those that its host said before.
fn is_doubtful(
    host: &HostMemory,
    gist: &PageFingerprint,
    level: u8,
    (url, template): (&CanonicalUrl, u64),
) -> bool {
    let shape = url.shape();
    let of_url = || stable_hash::of(url.as_str().as_bytes());
    level > 0
        || gist.words < FEW_WORDS
        || shape.signs.any()
        || shape.family().is_some()
        || host
            .templates
            .get(template)
            .is_none_or(|template| template.is_doubtful(of_url()))
}

/// Compares a page's text with what its host said before: by the words that were new where the page
/// is doubtful, and else as a whole.
fn read(host: &mut HostMemory, gist: &PageFingerprint, new_words: Option<u32>) -> Yield {
    let enough = MIN_NEW_WORDS.max(gist.words as usize / WORDS_A_NEW_ONE);
    let says_new_words = new_words.is_none_or(|words| words as usize > enough);
    let pages = host.texts.entry(gist.said, Text::default);
    pages.pages = pages.pages.saturating_add(1);
    match pages.pages == 1 && says_new_words {
        true => Yield::New,
        false if pages.pages == 1 && new_words.is_some_and(|words| words > 0) => {
            Yield::Little(gist.said)
        }
        false => Yield::Nothing(gist.said),
    }
}

/// A redirect is nothing new where it leads to another URL of its own template.
fn redirected(url: &CanonicalUrl, shape: &Shape, to: &CanonicalUrl) -> Option<Yield> {
    let onwards = to != url
        && to.host_key() == url.host_key()
        && to.path_and_query() != url.path_and_query()
        && to.shape().pattern == shape.pattern;
    onwards.then_some(Yield::Onwards)
}

#[cfg(test)]
mod tests;
