//! Compiled copies of robots.txt in bounded memory; what falls out is read again.

use std::collections::HashMap;
use std::rc::Rc;

use bytes::Bytes;
use crawl_policy::{AgentRules, ProductToken, Profile};

use super::exchange::ArchivePlace;
use crate::error::RecordsError;

/// Bytes that compiled copies may take.
const MAX_BYTES: usize = 64 * 1024 * 1024;

pub(super) struct Compiled {
    agent: ProductToken,
    profile: Profile,
    none: Rc<AgentRules>,
    /// Each with the count of uses at its last one.
    copies: HashMap<ArchivePlace, (u64, Rc<AgentRules>)>,
    bytes: usize,
    uses: u64,
}

impl Compiled {
    pub(super) fn new(agent: ProductToken, profile: Profile) -> Compiled {
        Compiled {
            agent,
            profile,
            none: Rc::new(AgentRules::allow_all()),
            copies: HashMap::new(),
            bytes: 0,
            uses: 0,
        }
    }

    /// The rules where there is no file.
    pub(super) fn none(&self) -> Rc<AgentRules> {
        Rc::clone(&self.none)
    }

    /// The file at a place, which `read` gives where it is not at hand.
    pub(super) fn get(
        &mut self,
        place: ArchivePlace,
        read: impl FnOnce() -> Result<Bytes, RecordsError>,
    ) -> Result<Rc<AgentRules>, RecordsError> {
        self.uses += 1;
        if let Some((used, robots)) = self.copies.get_mut(&place) {
            *used = self.uses;
            return Ok(Rc::clone(robots));
        }
        let robots = Rc::new(AgentRules::parse(&read()?, &self.agent, self.profile));
        self.bytes += robots.memory_bytes();
        if self.bytes > MAX_BYTES {
            self.forget_half();
            self.bytes += robots.memory_bytes();
        }
        self.copies.insert(place, (self.uses, Rc::clone(&robots)));
        Ok(robots)
    }

    /// Drops the half that was used longest ago.
    fn forget_half(&mut self) {
        let mut uses: Vec<u64> = self.copies.values().map(|(used, _)| *used).collect();
        uses.sort_unstable();
        let middle = uses.get(uses.len() / 2).copied().unwrap_or(u64::MAX);
        self.copies.retain(|_, (used, _)| *used > middle);
        let bytes = self
            .copies
            .values()
            .map(|(_, robots)| robots.memory_bytes());
        self.bytes = bytes.sum();
    }
}
