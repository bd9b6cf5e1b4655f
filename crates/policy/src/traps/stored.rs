//! What is parked, as bytes: a line for each.

use std::collections::HashMap;

use super::{FIRST_PROBE, MOST_PARKED, Parked, Traps};

/// The first line.
const LAYOUT: &str = "parked 1";

impl Traps {
    /// What is parked, if that is other than it was when this was last asked.
    pub fn stored(&mut self) -> Option<Vec<u8>> {
        if !std::mem::take(&mut self.has_changed) {
            return None;
        }
        let mut places: Vec<_> = self.parked.iter().collect();
        places.sort_unstable_by_key(|(place, _)| **place);
        let lines = places.into_iter().map(|(place, parked)| {
            let names = parked.names.as_ref().map(|names| names.join("&"));
            let names = names.map_or("-".to_owned(), |names| format!("={names}"));
            let looks = u8::from(parked.by_looks);
            format!("{place:016x}\t{looks}\t{names}\t{}", parked.rule)
        });
        let lines: Vec<String> = std::iter::once(LAYOUT.to_owned()).chain(lines).collect();
        Some(lines.join("\n").into_bytes())
    }

    /// Takes up what was parked. Lines that can't be read are passed over: what they parked is
    /// judged anew.
    pub fn restore(&mut self, stored: &[u8]) {
        let text = String::from_utf8_lossy(stored);
        let mut lines = text.split('\n');
        if lines.next() == Some(LAYOUT) {
            self.parked = lines
                .take(MOST_PARKED)
                .filter_map(read)
                .collect::<HashMap<_, _>>();
        }
    }
}

fn read(line: &str) -> Option<(u64, Parked)> {
    let mut fields = line.splitn(4, '\t');
    let mut next = || fields.next();
    let place = u64::from_str_radix(next()?, 16).ok()?;
    let by_looks = next()? == "1";
    let names = next()?.strip_prefix('=');
    let names = names.map(|names| names.split('&').map(str::to_owned).collect());
    let parked = Parked {
        rule: next()?.to_owned(),
        by_looks,
        names,
        put_aside: 0,
        next_probe: FIRST_PROBE,
    };
    Some((place, parked))
}
