//! Names, traps and actions in the crawl loop: what a link is called, when its turn is, and what is
//! put aside.
//!
//! The level of a URL (see there) stands in its priority, so that the frontier keeps it and puts
//! URLs found on pages that said nothing new behind all others.

use std::collections::HashMap;

use crawl_frontier::{Exclusion, FrontierError, KnownState, Lease, Reason, UrlKind};
use crawl_policy::traps::Disposition;
use crawl_weburl::{CanonicalUrl, Origin};

use super::Coordinator;
use crate::config::TrapRules;
use crate::messages::WriterMessage;
use crate::messages::page::FetchContext;
use crate::priority::Priority;
use crate::shared_traps::{SharedTraps, put_aside};

/// The coordinator's view of traps.
#[derive(Debug)]
pub(crate) struct TrapGate {
    rules: TrapRules,
    shared: SharedTraps,
    /// Leases of each origin whose end was not committed yet: what came of them is not known to
    /// `shared`.
    out: HashMap<Origin, u32>,
}

/// The next step for a URL that was leased and may be asked for.
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
    Later(Lease, Priority),
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

    /// Leases of all origins whose end was not committed yet.
    #[cfg(test)]
    pub(super) fn all_leases(&self) -> u64 {
        self.out.values().map(|count| u64::from(*count)).sum()
    }

    /// The spelling under which the page of a leased URL is asked for, by its site's own word.
    fn cleaned(&self, lease: &Lease, context: &FetchContext) -> Option<(CanonicalUrl, Exclusion)> {
        let cleaned = context.rules.robots.clean(&lease.url);
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

    /// Returns whether a leased URL is asked for now. A seed always is, and so is what was visited
    /// before.
    pub(crate) fn turn(
        &self,
        lease: Lease,
        context: &FetchContext,
    ) -> Result<LeaseDisposition, FrontierError> {
        if lease.is_seed || lease.kind != UrlKind::Page || context.past.is_some() {
            return Ok(LeaseDisposition::Fetch(lease));
        }
        // A redirect insists on its target as it is.
        if lease.redirects == 0
            && let Some((url, exclusion)) = self.traps.cleaned(&lease, context)
        {
            return Ok(LeaseDisposition::Settle(WriterMessage::SameAs {
                lease,
                url,
                exclusion,
            }));
        }
        let mut traps = self.traps.shared.lock();
        let at = Priority::of(&lease);
        let out = self.traps.out.get(&lease.origin).copied().unwrap_or(0);
        let most = match at.level() {
            0 if at.is_late() => 1,
            0 => u32::MAX,
            // What came of them is to be known soon, and their host is to be as busy as it may be.
            _ => self.config.politeness.per_host.saturating_mul(2),
        };
        if out >= most || out > 0 && traps.needs_care(&lease.url, at.level()) {
            return Ok(LeaseDisposition::Wait(lease));
        }
        let course = traps.disposition(&lease.url, lease.via.as_ref(), at.level());
        drop(traps);
        Ok(match course {
            Disposition::Fetch => LeaseDisposition::Fetch(lease),
            // What comes after all else is late already.
            Disposition::Later(_) if at.is_late() => LeaseDisposition::Fetch(lease),
            Disposition::Later(level) => LeaseDisposition::Later(lease, Priority::at_level(level)),
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

    /// Returns whether a page was fetched, or will be.
    fn is_had(&self, url: &CanonicalUrl) -> Result<bool, FrontierError> {
        let known = self.frontier.known(url)?;
        Ok(known.is_some_and(|known| match known.state {
            KnownState::Fetched { status } => (200..300).contains(&status),
            KnownState::Pending { .. } | KnownState::Leased { .. } => true,
            _ => false,
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crawl_frontier::{Admission, Frontier, MemoryFrontier, Outcome};
    use crawl_policy::ProductToken;
    use crawl_policy::scope::{Scope, ScopeMode};
    use crawl_scheduler::Tick;
    use crawl_weburl::{CanonicalUrl, canonicalize};

    use super::Coordinator;
    use crate::config::Config;
    use crate::totals::Totals;

    fn url(path: &str) -> CanonicalUrl {
        canonicalize(None, &format!("http://a.example{path}")).unwrap()
    }

    fn admit(frontier: &dyn Frontier, path: &str) {
        let mut transaction = frontier.begin().unwrap();
        transaction.admit(Admission::seed(url(path))).unwrap();
        transaction.commit().unwrap();
    }

    #[test]
    fn ours_a_mirror_gives_way_to_a_page_that_was_fetched_or_will_be() {
        let frontier: Arc<dyn Frontier> = Arc::new(MemoryFrontier::new());
        for (path, status) in [("/page", 200), ("/moved", 301), ("/gone", 404)] {
            admit(&*frontier, path);
            let lease = frontier.lease(&url(path).origin()).unwrap().unwrap();
            let mut transaction = frontier.begin().unwrap();
            transaction
                .settle(lease, Outcome::Fetched { status })
                .unwrap();
            transaction.commit().unwrap();
        }
        admit(&*frontier, "/waiting");
        let agent = ProductToken::new("crawl").unwrap();
        let config = Arc::new(Config::new(agent, "0.0", None, vec![url("/")], "c"));
        let scope = Scope::new(ScopeMode::Any, &[], &[], None).unwrap();
        let now = Tick::from_micros(1);
        let coordinator = Coordinator::new(config, frontier, scope, Totals::default(), now, 1);
        for (path, had) in [
            ("/page", true),
            ("/waiting", true),
            ("/moved", false),
            ("/gone", false),
            ("/unknown", false),
        ] {
            assert_eq!(coordinator.is_had(&url(path)).unwrap(), had, "{path}");
        }
    }
}
