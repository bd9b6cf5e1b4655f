//! The random walk of a crawl: the positions of its walkers, which the crawl loop and the writer
//! share.
//!
//! A step depends only on the seed of the random numbers, the walker, the number of the step, and
//! the links of the current page when it was first read. So the walk depends neither on the order
//! of answers nor on interruptions.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crawl_frontier::{Frontier, RequestedState, UrlKind, UrlToAdmit};
use crawl_sample::WalkDesign;
use crawl_weburl::{CanonicalUrl, canonicalize};
use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::frontier_meta_keys::{META_WALK, META_WALKED, META_WALKER};

/// Maximum consecutive redirects for a walker to follow in a step.
const MAX_HOPS: u8 = 20;

/// The random walk that samples a crawl: its design and its walkers.
#[derive(Clone, Debug)]
pub(crate) struct RandomWalk {
    design: WalkDesign,
    walkers: Arc<Mutex<Walkers>>,
}

/// The walkers of a walk, and the URLs that they start from.
#[derive(Debug, Default)]
pub(crate) struct Walkers {
    /// The seeds of the walk, sorted and distinct.
    pub(crate) seeds: Arc<[CanonicalUrl]>,
    /// All walkers, ordered by number.
    pub(crate) each: Vec<Walker>,
    /// The URLs that walkers wait for.
    awaited: HashSet<CanonicalUrl>,
}

/// A walker, which waits at its current URL until that URL is settled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Walker {
    /// The number of the walker's last step. 0 before the first step.
    pub(crate) step: u64,
    /// The number of redirects followed since the last step.
    hops: u8,
    /// The URL that the walker waits for. `None` before the first step, or if the operator made the
    /// crawl forget the URL.
    pub(crate) at: Option<String>,
    /// Whether the walker has taken all its steps and its last URL is settled.
    pub(crate) is_done: bool,
}

/// The stored design of a walk, with its seeds.
#[derive(Debug, Serialize, Deserialize)]
struct StoredWalk {
    design: WalkDesign,
    seeds: Vec<String>,
}

/// Where a walker can go from a settled URL: the links of its page, or its redirect.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NextWalkerTargets {
    depth: u32,
    redirects: u8,
    is_seed: bool,
    leads_to: WalkDestinations,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WalkDestinations {
    /// The walker can go to each of these links, which are sorted and distinct.
    Links(Vec<String>),
    Redirect(String),
    /// The walker can't go anywhere, for this reason, as named in rows.
    Nothing(String),
}

/// A walker's step, or a redirect that it follows between two steps.
#[derive(Debug)]
pub(crate) struct WalkerMove {
    pub(crate) how: &'static str,
    pub(crate) why: Option<String>,
    pub(crate) links: Option<u64>,
    pub(crate) to: UrlToAdmit,
}

impl NextWalkerTargets {
    /// Creates the choices of a walker at a settled page from its status and links. `is_kept`
    /// returns whether a link may be followed.
    pub(crate) fn read(
        (depth, redirects, is_seed): (u32, u8, bool),
        status: Option<u16>,
        links: &[UrlToAdmit],
        is_kept: impl Fn(&CanonicalUrl) -> bool,
    ) -> NextWalkerTargets {
        let wanted = links.iter().filter(|link| {
            link.kind == UrlKind::Page
                && link.state == RequestedState::Pending
                && is_kept(&link.url)
        });
        let leads_to = match status {
            Some(200..=299) => {
                let mut links: Vec<_> = wanted.map(|link| link.url.to_string()).collect();
                links.sort_unstable();
                links.dedup();
                WalkDestinations::Links(links)
            }
            Some(300..=399) => match wanted.map(|link| link.url.to_string()).next() {
                Some(target) => WalkDestinations::Redirect(target),
                None => WalkDestinations::Nothing("redirects".to_owned()),
            },
            _ => WalkDestinations::Nothing("no page".to_owned()),
        };
        NextWalkerTargets {
            depth,
            redirects,
            is_seed,
            leads_to,
        }
    }

    /// Creates the choices at a URL that leads nowhere. `why` is the reason, as named in rows.
    pub(crate) fn dead_end(why: &str) -> NextWalkerTargets {
        NextWalkerTargets {
            depth: 0,
            redirects: 0,
            is_seed: false,
            leads_to: WalkDestinations::Nothing(why.to_owned()),
        }
    }

    /// Reads the choices that are stored for a URL. `None` if none are stored.
    pub(crate) fn stored(
        frontier: &dyn Frontier,
        url: &str,
    ) -> Result<Option<NextWalkerTargets>, EngineError> {
        let stored = frontier.meta(&walked_key(url))?;
        Ok(stored.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    /// Removes links that lead to forgotten pages.
    fn without(self, is_gone: &dyn Fn(&str) -> bool) -> NextWalkerTargets {
        let leads_to = match self.leads_to {
            WalkDestinations::Links(mut links) => {
                links.retain(|link| !is_gone(link));
                WalkDestinations::Links(links)
            }
            WalkDestinations::Redirect(target) if is_gone(&target) => {
                WalkDestinations::Nothing("excluded".to_owned())
            }
            other => other,
        };
        NextWalkerTargets { leads_to, ..self }
    }
}

/// Returns the key under which the [`NextWalkerTargets`] at a URL are stored.
pub(crate) fn walked_key(url: &str) -> String {
    format!("{META_WALKED}{url}")
}

/// Returns the key under which a walker is stored. Walkers are numbered from 1.
pub(crate) fn walker_key(number: u32) -> String {
    format!("{META_WALKER}{number}")
}

impl RandomWalk {
    /// Opens the walk with this design, in the state that earlier runs stored.
    ///
    /// # Errors
    /// The store failed, or the stored walk has another design.
    pub(super) fn open(
        design: &WalkDesign,
        frontier: &dyn Frontier,
    ) -> Result<RandomWalk, EngineError> {
        let mut walkers = Walkers::default();
        if let Some(bytes) = frontier.meta(META_WALK)? {
            let stored: Option<StoredWalk> = serde_json::from_slice(&bytes).ok();
            let stored = stored.filter(|stored| stored.design == *design);
            let stored = stored.ok_or(EngineError::SampleDrawn)?;
            walkers.seeds = urls(&stored.seeds).into();
            for number in 1..=design.walkers {
                let bytes = frontier.meta(&walker_key(number))?;
                let walker = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
                walkers.each.push(walker.unwrap_or_default());
            }
            walkers.note_awaited();
        }
        Ok(RandomWalk {
            design: design.clone(),
            walkers: Arc::new(Mutex::new(walkers)),
        })
    }

    /// Returns whether a walker waits for a URL.
    pub(crate) fn awaits(&self, url: &CanonicalUrl) -> bool {
        self.lock().awaited.contains(url)
    }

    /// Locks the walkers. Only the writer may move them.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Walkers> {
        self.walkers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the seeds of the walk. Returns the walk in its stored form. `None` if the walk had
    /// seeds already, or if `seeds` is empty.
    pub(crate) fn begin(&self, mut seeds: Vec<CanonicalUrl>) -> Option<Vec<u8>> {
        let mut walkers = self.lock();
        if !walkers.seeds.is_empty() || seeds.is_empty() {
            return None;
        }
        seeds.sort_unstable();
        seeds.dedup();
        let stored = StoredWalk {
            design: self.design.clone(),
            seeds: seeds.iter().map(ToString::to_string).collect(),
        };
        walkers.seeds = seeds.into();
        let count = usize::try_from(self.design.walkers).unwrap_or(usize::MAX);
        walkers.each.resize_with(count, Walker::default);
        serde_json::to_vec(&stored).ok()
    }

    /// Moves a walker on from its current URL. `page` contains the choices at that URL. Returns
    /// `None` if the walker has taken all its steps, or if the walk has no seeds.
    pub(crate) fn go_on(
        &self,
        number: u32,
        walker: &mut Walker,
        page: Option<&NextWalkerTargets>,
        seeds: &[CanonicalUrl],
    ) -> Option<WalkerMove> {
        if let Some(moved) = walker.redirect(page) {
            return Some(moved);
        }
        if walker.step >= self.design.steps || seeds.is_empty() {
            walker.is_done = true;
            return None;
        }
        walker.step += 1;
        walker.hops = 0;
        let from = walker
            .at
            .as_deref()
            .and_then(|at| canonicalize(None, at).ok());
        let links = match page.map(|page| &page.leads_to) {
            Some(WalkDestinations::Links(links)) => &links[..],
            _ => &[],
        };
        let next = self.design.link(number, walker.step, links.len());
        let next = next.and_then(|place| canonicalize(None, links.get(place)?).ok());
        let count = page.and(Some(links.len() as u64));
        let moved = match (from, next, page) {
            (Some(from), Some(url), Some(page)) => WalkerMove {
                how: "link",
                why: None,
                links: count,
                to: UrlToAdmit::link(url, page.depth.saturating_add(1), from),
            },
            (from, ..) => {
                let seed = self.design.start(number, walker.step, seeds.len());
                let reason = match page.map(|page| &page.leads_to) {
                    Some(WalkDestinations::Nothing(reason)) => Some(reason.clone()),
                    Some(WalkDestinations::Redirect(_)) => Some("redirects".to_owned()),
                    Some(WalkDestinations::Links(links)) if links.is_empty() => {
                        Some("no links".to_owned())
                    }
                    Some(WalkDestinations::Links(_)) => Some("chance".to_owned()),
                    None if walker.step > 1 => Some("excluded".to_owned()),
                    None => None,
                };
                WalkerMove {
                    how: match from.is_some() || walker.step > 1 {
                        true => "restart",
                        false => "start",
                    },
                    why: reason,
                    links: count,
                    to: UrlToAdmit::seed(seeds.get(seed)?.clone()),
                }
            }
        };
        walker.at = Some(moved.to.url.to_string());
        Some(moved)
    }
}

impl Walkers {
    /// Recomputes which URLs the walkers wait for. Call this after moving walkers.
    pub(crate) fn note_awaited(&mut self) {
        let waiting = self.each.iter().filter(|walker| !walker.is_done);
        let waiting: Vec<_> = waiting.filter_map(|walker| walker.at.clone()).collect();
        self.awaited = urls(&waiting).into_iter().collect();
    }
}

impl Walker {
    /// Follows the redirect of the walker's page. `None` if the page is not a redirect, or too many
    /// redirects were followed in a row.
    fn redirect(&mut self, page: Option<&NextWalkerTargets>) -> Option<WalkerMove> {
        let page = page?;
        let WalkDestinations::Redirect(target) = &page.leads_to else {
            return None;
        };
        if self.hops >= MAX_HOPS {
            return None;
        }
        let from = canonicalize(None, self.at.as_deref()?).ok()?;
        let url = canonicalize(None, target).ok()?;
        self.hops += 1;
        self.at = Some(url.to_string());
        Some(WalkerMove {
            how: "redirect",
            why: None,
            links: None,
            to: UrlToAdmit {
                redirects: page.redirects.saturating_add(1),
                is_seed: page.is_seed,
                ..UrlToAdmit::link(url, page.depth, from)
            },
        })
    }
}

/// Removes forgotten URLs from a stored value. `None` if the whole value must be removed.
pub(crate) fn without_forgotten(
    name: &str,
    bytes: Vec<u8>,
    is_gone: &dyn Fn(&str) -> bool,
) -> Option<Vec<u8>> {
    if let Some(url) = name.strip_prefix(META_WALKED) {
        let page: NextWalkerTargets = serde_json::from_slice(&bytes).ok()?;
        return match is_gone(url) {
            true => None,
            false => serde_json::to_vec(&page.without(is_gone)).ok(),
        };
    }
    if name.starts_with(META_WALKER) {
        let mut walker: Walker = serde_json::from_slice(&bytes).ok()?;
        walker.at = walker.at.filter(|at| !is_gone(at));
        return serde_json::to_vec(&walker).ok();
    }
    if name == META_WALK {
        let mut walk: StoredWalk = serde_json::from_slice(&bytes).ok()?;
        walk.seeds.retain(|seed| !is_gone(seed));
        return serde_json::to_vec(&walk).ok();
    }
    Some(bytes)
}

fn urls(texts: &[String]) -> Vec<CanonicalUrl> {
    let urls = texts.iter().map(|text| canonicalize(None, text));
    urls.filter_map(Result::ok).collect()
}
