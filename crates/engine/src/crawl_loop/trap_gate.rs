//! Names, traps and actions in the crawl loop: what a link is called, when its turn is, and what is
//! put aside.
//!
//! What is known of traps is one value, [`Traps`](crawl_policy::traps::Traps), behind a lock: the
//! writer tells it of each page as it settles it, in the order of the commits, and the coordinator asks
//! it of each URL that it leases. Both hold the lock for microseconds and nothing else meanwhile.
//!
//! The level of a URL (see there) stands in its priority, so that the frontier keeps it and puts
//! URLs found on pages that said nothing new behind all others.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crawl_frontier::{
    Admission, Exclusion, FrontierError, KnownState, Lease, NewState, Reason, UrlKind,
};
use crawl_policy::Robots;
use crawl_policy::action;
use crawl_policy::traps::{
    Disposition, FetchedPage, MAX_LEVEL, PageAnswer, PageFingerprint, Trap, Traps,
};
use crawl_weburl::{CanonicalUrl, Origin, SpellingRules};

use super::Coordinator;
use crate::messages::{Effect, FetchContext, WriterMessage};
use crate::read::links::{PRIORITY_ACTION, PRIORITY_LAST_LINK, PRIORITY_LINK, PRIORITY_RESOURCE};

/// The name that what is parked is kept under.
pub(crate) const META_TRAPS: &str = "traps";

/// Which URLs are taken for others, and which are not asked for though they may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrapRules {
    /// Whether spaces of URLs that bring nothing new are put aside.
    pub traps: bool,
    /// Whether what looks like an action is not asked for at all.
    pub skip_actions: bool,
    /// Whether parameters go that a site's robots.txt says change nothing (`Clean-param`).
    pub clean_params: bool,
    /// Which spellings name the same page.
    pub naming: SpellingRules,
}

impl Default for TrapRules {
    fn default() -> TrapRules {
        TrapRules {
            traps: true,
            skip_actions: false,
            clean_params: true,
            naming: SpellingRules::default(),
        }
    }
}

impl TrapRules {
    /// Nothing is put aside, and each URL names itself.
    pub const OFF: TrapRules = TrapRules {
        traps: false,
        skip_actions: false,
        clean_params: false,
        naming: SpellingRules::OFF,
    };

    /// The URL that a link to `url` asks for; `robots` are the rules of its origin, where they are
    /// known.
    pub(crate) fn named(&self, url: CanonicalUrl, robots: Option<&Robots>) -> CanonicalUrl {
        let named = self.naming.apply(&url).unwrap_or(url);
        let robots = robots.filter(|_| self.clean_params);
        match robots.and_then(|robots| robots.clean(&named)) {
            Some(cleaned) => cleaned.url,
            None => named,
        }
    }

    /// Whether anything is learned from what pages say.
    pub(crate) fn watches(&self) -> bool {
        self.traps || self.naming.learns()
    }

    /// What becomes of a link that looks like an action, besides its priority.
    pub(crate) fn action(&self, url: &CanonicalUrl) -> Option<Option<Exclusion>> {
        let action = action(url)?;
        let exclusion = Exclusion {
            rule: Some(action.to_string()),
            ..Exclusion::of(Reason::Action)
        };
        Some(self.skip_actions.then_some(exclusion))
    }
}

/// What came of a page, as far as traps go.
#[derive(Debug, Default)]
pub(crate) enum TrapSignal {
    /// A page of text.
    Text(Box<PageFingerprint>),
    /// A redirect.
    Redirect(CanonicalUrl),
    /// Something else that was kept.
    Other,
    /// An error, nothing, or no page that counts.
    #[default]
    Nothing,
}

/// What is known of traps, for the coordinator and the writer.
#[derive(Clone, Debug)]
pub(crate) struct SharedTraps(Arc<Mutex<Traps>>);

impl SharedTraps {
    pub(crate) fn new(rules: &TrapRules, stored: Option<&[u8]>) -> SharedTraps {
        let mut traps = Traps::new(rules.naming, rules.traps);
        if let Some(stored) = stored.filter(|_| rules.traps) {
            traps.restore(stored);
        }
        SharedTraps(Arc::new(Mutex::new(traps)))
    }

    /// It is whole between any two calls, so a panic elsewhere leaves nothing half done.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Traps> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The level that stands in a priority.
pub(crate) fn level(priority: u8) -> u8 {
    match priority.checked_sub(PRIORITY_LAST_LINK) {
        Some(level) if level <= MAX_LEVEL => level,
        _ => 0,
    }
}

/// A level has a place behind all other links, and before what pages are shown with.
fn priority(level: u8) -> u8 {
    const { assert!(PRIORITY_LAST_LINK + MAX_LEVEL < PRIORITY_RESOURCE) }
    match level {
        0 => PRIORITY_LINK,
        level => PRIORITY_LAST_LINK + level.min(MAX_LEVEL),
    }
}

fn put_aside(reason: Reason, rule: String) -> Exclusion {
    Exclusion {
        rule: Some(rule),
        ..Exclusion::of(reason)
    }
}

/// What the writer thinks of a page that it settles.
pub(crate) struct Verdict {
    pub(crate) is_barren: bool,
    pub(crate) has_turned: bool,
}

/// Tells of a page, and gives its links their places: those of one that said nothing new go
/// behind, those of a kind that is parked are put aside.
pub(crate) fn weigh(
    shared: &SharedTraps,
    lease: &Lease,
    signal: &TrapSignal,
    links: &mut [Admission],
) -> Verdict {
    let mut traps = shared.lock();
    let opinion = traps.observe(&visit(lease, signal));
    for link in links.iter_mut().filter(|link| link.kind == UrlKind::Page) {
        if opinion.level > 0 {
            link.priority = link.priority.max(priority(opinion.level));
        }
        if link.state != NewState::Pending || !traps.knows_of(&link.url.host_key()) {
            continue;
        }
        let way = link.via.as_ref();
        match traps.standing(&link.url, way, level(link.priority)) {
            Disposition::SameAs(url, _) if link.redirects == 0 => link.url = url,
            Disposition::Defer(rule) if !link.is_seed => {
                link.state = NewState::Deferred(put_aside(Reason::Trap, rule));
            }
            _ => {}
        }
    }
    Verdict {
        is_barren: opinion.is_barren,
        has_turned: opinion.has_turned,
    }
}

/// Tells which URLs were met first on a page that said nothing new.
pub(crate) fn bred<'a>(
    shared: &SharedTraps,
    lease: &Lease,
    signal: &TrapSignal,
    new: impl Iterator<Item = &'a CanonicalUrl>,
) {
    shared.lock().record_children(&visit(lease, signal), new);
}

fn visit<'a>(lease: &'a Lease, signal: &'a TrapSignal) -> FetchedPage<'a> {
    FetchedPage {
        url: &lease.url,
        level: level(lease.priority),
        answer: match signal {
            TrapSignal::Text(gist) => PageAnswer::Text(gist),
            TrapSignal::Redirect(to) => PageAnswer::Redirect(to, lease.redirects),
            TrapSignal::Other => PageAnswer::Other,
            TrapSignal::Nothing => PageAnswer::Nothing,
        },
    }
}

/// What the coordinator knows of traps.
#[derive(Debug)]
pub(crate) struct TrapGate {
    rules: TrapRules,
    shared: SharedTraps,
    /// Leases of each origin whose end was not committed yet: what came of them is not known to
    /// `shared`.
    out: HashMap<Origin, u32>,
}

/// What the coordinator does with a URL that it leased and that may be asked for.
#[expect(
    clippy::large_enum_variant,
    reason = "a lease is moved once, and a box would be an allocation more"
)]
pub(crate) enum LeaseDisposition {
    /// It asks for it.
    Fetch(Lease),
    /// It waits until what is under way at its origin is read.
    Wait(Lease),
    /// It goes behind others of its queue.
    Later(Lease, u8),
    /// The writer has it.
    Settle(WriterMessage),
}

impl TrapGate {
    pub(crate) fn new(rules: TrapRules) -> TrapGate {
        TrapGate {
            rules,
            shared: SharedTraps::new(&TrapRules::OFF, None),
            out: HashMap::new(),
        }
    }

    pub(crate) fn leased(&mut self, origin: &Origin) {
        *self.out.entry(origin.clone()).or_default() += 1;
    }

    pub(crate) fn ended(&mut self, origin: &Origin) {
        if let Some(count) = self.out.get_mut(origin) {
            *count -= 1;
            if *count == 0 {
                self.out.remove(origin);
            }
        }
    }

    /// The spelling under which the page of a leased URL is asked for, by its site's own word.
    fn cleaned(&self, lease: &Lease, judged: &FetchContext) -> Option<(CanonicalUrl, Exclusion)> {
        let cleaned = judged.rules.robots.clean(&lease.url);
        let cleaned = cleaned.filter(|_| self.rules.clean_params)?;
        let exclusion = Exclusion {
            line: Some(cleaned.line),
            ..put_aside(Reason::Duplicate, cleaned.rule)
        };
        Some((cleaned.url, exclusion))
    }
}

impl Coordinator {
    /// Shares what is known of traps with the writer from now on.
    pub(crate) fn share_traps(&mut self, shared: SharedTraps) {
        self.traps.shared = shared;
    }

    /// Whether a leased URL is asked for now. A seed always is, and so is what was visited
    /// before.
    pub(crate) fn turn(
        &self,
        lease: Lease,
        judged: &FetchContext,
    ) -> Result<LeaseDisposition, FrontierError> {
        if lease.is_seed || lease.kind != UrlKind::Page || judged.past.is_some() {
            return Ok(LeaseDisposition::Fetch(lease));
        }
        // A redirect insists on its target as it is.
        if lease.redirects == 0
            && let Some((url, exclusion)) = self.traps.cleaned(&lease, judged)
        {
            return Ok(LeaseDisposition::Settle(WriterMessage::SameAs {
                lease,
                url,
                exclusion,
            }));
        }
        let mut traps = self.traps.shared.lock();
        let at = level(lease.priority);
        let is_late = lease.priority > PRIORITY_LAST_LINK;
        if self.traps.out.contains_key(&lease.origin)
            && (is_late || traps.needs_care(&lease.url, at))
        {
            return Ok(LeaseDisposition::Wait(lease));
        }
        let course = traps.disposition(&lease.url, lease.via.as_ref(), at);
        drop(traps);
        Ok(match course {
            Disposition::Fetch => LeaseDisposition::Fetch(lease),
            // What comes after all else is late already.
            Disposition::Later(_) if is_late => LeaseDisposition::Fetch(lease),
            Disposition::Later(level) => LeaseDisposition::Later(lease, priority(level)),
            Disposition::Defer(rule) => LeaseDisposition::Settle(WriterMessage::PutAside {
                lease,
                exclusion: put_aside(Reason::Trap, rule),
            }),
            Disposition::SameAs(url, why) if lease.redirects == 0 => {
                LeaseDisposition::Settle(WriterMessage::SameAs {
                    lease,
                    url,
                    exclusion: put_aside(Reason::Duplicate, why),
                })
            }
            Disposition::Mirror(twin, why) if self.is_had(&twin)? => {
                LeaseDisposition::Settle(WriterMessage::PutAside {
                    lease,
                    exclusion: put_aside(Reason::Duplicate, why),
                })
            }
            Disposition::SameAs(..) | Disposition::Mirror(..) => LeaseDisposition::Fetch(lease),
        })
    }

    /// Whether a page was fetched, or will be.
    fn is_had(&self, url: &CanonicalUrl) -> Result<bool, FrontierError> {
        let known = self.frontier.known(url)?;
        Ok(known.is_some_and(|known| match known.state {
            KnownState::Fetched { status } => (200..300).contains(&status),
            KnownState::Pending { .. } | KnownState::Leased { .. } => true,
            _ => false,
        }))
    }

    /// Admits what was put aside and is not what it was taken for, or may be asked for in this
    /// run.
    pub(crate) fn take_back_parked(&mut self, out: &mut Vec<Effect>) -> Result<(), FrontierError> {
        let mut again = Vec::new();
        let rules = self.traps.rules;
        let traps = self.traps.shared.lock();
        self.frontier.each_deferred(&mut |waiting| {
            let rule = waiting.exclusion.and_then(|why| why.rule.as_deref());
            let place = match waiting.exclusion.map(|why| why.reason) {
                Some(Reason::Trap) if rule.and_then(Trap::of_rule).is_some() => {
                    match traps.standing(waiting.url, waiting.via, 1) {
                        Disposition::Defer(_) => None,
                        _ => Some(priority(1)),
                    }
                }
                Some(Reason::Duplicate) if !rules.traps => Some(priority(0)),
                Some(Reason::Action) if !rules.skip_actions => Some(PRIORITY_ACTION),
                _ => None,
            };
            if let Some(priority) = place {
                let via = waiting.via.unwrap_or(waiting.url).clone();
                again.push(Admission {
                    priority,
                    ..Admission::link(waiting.url.clone(), waiting.depth, via)
                });
            }
            ControlFlow::Continue(())
        })?;
        drop(traps);
        if !again.is_empty() {
            self.write(WriterMessage::Admit(again), out);
        }
        Ok(())
    }
}

/// The admission that takes a leased URL back at another place, or under another name.
pub(crate) fn admission_of(lease: &Lease, url: CanonicalUrl, priority: u8) -> Admission {
    Admission {
        url,
        depth: lease.depth,
        redirects: lease.redirects,
        via: lease.via.clone(),
        priority,
        state: NewState::Pending,
        is_seed: false,
        kind: lease.kind,
    }
}
