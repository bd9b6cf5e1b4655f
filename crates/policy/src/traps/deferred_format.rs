//! The deferred kinds as bytes: a line for each.

use std::collections::HashMap;

use super::{DeferredKind, FIRST_PROBE, MAX_PARKED, Traps};

/// The first line.
const LAYOUT: &str = "parked 1";

impl Traps {
    /// The deferred kinds, if they changed since this was last asked.
    pub fn stored(&mut self) -> Option<Vec<u8>> {
        if !std::mem::take(&mut self.has_changed) {
            return None;
        }
        let mut places: Vec<_> = self.deferred.iter().collect();
        places.sort_unstable_by_key(|(place, _)| **place);
        let lines = places.into_iter().map(|(place, deferred)| {
            let names = deferred.names.as_ref().map(|names| names.join("&"));
            let names = names.map_or("-".to_owned(), |names| format!("={names}"));
            let looks = u8::from(deferred.by_looks);
            format!("{place:016x}\t{looks}\t{names}\t{}", deferred.rule)
        });
        let lines: Vec<String> = std::iter::once(LAYOUT.to_owned()).chain(lines).collect();
        Some(lines.join("\n").into_bytes())
    }

    /// Takes up what was deferred. Lines that can't be read are passed over: what they parked is
    /// judged anew.
    pub fn restore(&mut self, stored: &[u8]) {
        let text = String::from_utf8_lossy(stored);
        let mut lines = text.split('\n');
        if lines.next() == Some(LAYOUT) {
            self.deferred = lines
                .take(MAX_PARKED)
                .filter_map(read)
                .collect::<HashMap<_, _>>();
        }
    }
}

fn read(line: &str) -> Option<(u64, DeferredKind)> {
    let mut fields = line.splitn(4, '\t');
    let mut next = || fields.next();
    let place = u64::from_str_radix(next()?, 16).ok()?;
    let by_looks = next()? == "1";
    let names = next()?.strip_prefix('=');
    let names = names.map(|names| names.split('&').map(str::to_owned).collect());
    let deferred = DeferredKind {
        rule: next()?.to_owned(),
        by_looks,
        names,
        put_aside: 0,
        next_probe: FIRST_PROBE,
    };
    Some((place, deferred))
}
