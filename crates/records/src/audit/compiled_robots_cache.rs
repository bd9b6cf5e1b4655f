//! A cache of compiled robots.txt copies, in bounded memory. Evicted copies are read again when
//! they are needed.

use std::collections::HashMap;
use std::rc::Rc;

use bytes::Bytes;
use crawl_policy::AgentRules;

use super::audited_settings::RobotsInterpretation;
use super::robots_exchanges::RobotsExchangeLocation;
use crate::error::RecordsError;

/// Maximum bytes of compiled copies.
const MAX_BYTES: usize = 64 * 1024 * 1024;

pub(super) struct CompiledRobotsCache {
    /// All distinct interpretations so far. Their indexes are a part of the keys in `copies`.
    readers: Vec<RobotsInterpretation>,
    none: Rc<AgentRules>,
    /// Each copy, with the value of `uses` at its last use. The least recently used copies are
    /// evicted first.
    copies: HashMap<(RobotsExchangeLocation, usize), (u64, Rc<AgentRules>)>,
    bytes: usize,
    uses: u64,
}

impl CompiledRobotsCache {
    pub(super) fn new() -> CompiledRobotsCache {
        CompiledRobotsCache {
            readers: Vec::new(),
            none: Rc::new(AgentRules::allow_all()),
            copies: HashMap::new(),
            bytes: 0,
            uses: 0,
        }
    }

    /// Returns the rules that apply if there is no robots.txt.
    pub(super) fn none(&self) -> Rc<AgentRules> {
        Rc::clone(&self.none)
    }

    /// Returns the rules in the robots.txt at `place` in the archive, as interpreted by `reader`.
    /// Calls `read` to load the file if the rules aren't cached.
    pub(super) fn get(
        &mut self,
        place: RobotsExchangeLocation,
        reader: &RobotsInterpretation,
        read: impl FnOnce() -> Result<Bytes, RecordsError>,
    ) -> Result<Rc<AgentRules>, RecordsError> {
        self.uses += 1;
        let position = self.readers.iter().position(|earlier| earlier == reader);
        let number = position.unwrap_or_else(|| {
            self.readers.push(reader.clone());
            self.readers.len() - 1
        });
        let key = (place, number);
        if let Some((used, robots)) = self.copies.get_mut(&key) {
            *used = self.uses;
            return Ok(Rc::clone(robots));
        }
        let robots = Rc::new(AgentRules::parse(&read()?, &reader.agent, reader.profile));
        self.bytes += robots.memory_bytes();
        if self.bytes > MAX_BYTES {
            self.forget_half();
            self.bytes += robots.memory_bytes();
        }
        self.copies.insert(key, (self.uses, Rc::clone(&robots)));
        Ok(robots)
    }

    /// Evicts the least recently used half of the copies.
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
