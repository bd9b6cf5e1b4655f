//! The visits that are kept, and the times at which the next are due.
//!
//! | table | key | value |
//! |---|---|---|
//! | `visits` | fingerprint | URL, place, via, times, the caller's bytes |
//! | `due` | due time, fingerprint | nothing |
//!
//! A row of `due` stands for each URL that is settled until a visit, so its key is known from the
//! row of `visits`. It goes when the URL is pending again.

use fjall::{OwnedWriteBatch, Readable as _, Snapshot};

use crawl_weburl::{CanonicalUrl, canonicalize};

use super::primitives::{
    ByteReader, DueKey, TIME_BYTES, VISIT_DUE, put_number, put_place, put_text, put_via, via_flags,
};
use super::record_codec::State;
use super::tables::Tables;
use super::transaction::FjallTransaction;
use super::url_changes::{Change, StoredState};
use crate::error::FrontierError;
use crate::fingerprint::Fingerprint;
use crate::visit::{StoredVisit, Visit};

impl StoredVisit {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(96 + self.visit.bytes.len());
        let due = if self.is_settled { VISIT_DUE } else { 0 };
        let flags = via_flags(&self.url, self.via.as_ref());
        put_place(&mut out, &self.place, flags | due);
        put_number(&mut out, self.visit.at.into());
        put_number(&mut out, self.visit.due.into());
        put_text(&mut out, self.url.as_str());
        put_via(&mut out, &self.url, self.via.as_ref());
        out.extend_from_slice(&self.visit.bytes);
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<StoredVisit> {
        let mut from = ByteReader(bytes);
        let (flags, place) = from.place()?;
        let (at, due) = (from.number32()?, from.number32()?);
        let url = canonicalize(None, from.text()?).ok()?;
        let via = from.via(flags, &url)?;
        Some(StoredVisit {
            url,
            via,
            place,
            visit: Visit {
                at,
                due,
                bytes: from.0.to_vec(),
            },
            is_settled: flags & VISIT_DUE != 0,
        })
    }
}

fn sort_by_due(visits: &mut [(Fingerprint, StoredVisit)]) {
    visits.sort_by(|(_, a), (_, b)| (a.visit.due, &a.url).cmp(&(b.visit.due, &b.url)));
}

fn due_key(due: u32, key: Fingerprint) -> DueKey {
    let mut out = [0; TIME_BYTES + 16];
    out[..TIME_BYTES].copy_from_slice(&due.to_be_bytes());
    out[TIME_BYTES..].copy_from_slice(&key.bytes());
    out
}

impl Tables {
    /// The last visit of a URL that is kept.
    pub(super) fn kept(
        &self,
        from: &Snapshot,
        key: Fingerprint,
    ) -> Result<Option<StoredVisit>, FrontierError> {
        let bytes = self.get(from, &self.visits, &key.bytes())?;
        let kept = bytes.map(|bytes| {
            let kept = StoredVisit::decode(&bytes);
            kept.ok_or_else(|| self.corrupt("what is kept of a visit"))
        });
        kept.transpose()
    }

    /// When the first visit is due that is due after `after`.
    pub(super) fn next_due(
        &self,
        from: &Snapshot,
        after: u32,
    ) -> Result<Option<u32>, FrontierError> {
        let Some(start) = after.checked_add(1) else {
            return Ok(None);
        };
        let Some(row) = from.range(&self.due, start.to_be_bytes()..).next() else {
            return Ok(None);
        };
        let bytes = row.key().map_err(|why| self.failed(why))?;
        Ok(Some(self.read_due(&bytes)?.0))
    }

    fn read_due(&self, bytes: &[u8]) -> Result<(u32, Fingerprint), FrontierError> {
        let read = || {
            let (time, key) = bytes.split_first_chunk::<TIME_BYTES>()?;
            let key = Fingerprint::from_bytes(key.try_into().ok()?);
            Some((u32::from_be_bytes(*time), key))
        };
        read().ok_or_else(|| self.corrupt("a key in due"))
    }
}

impl FjallTransaction<'_> {
    /// The visit that is kept, as this transaction sees it.
    fn kept(&self, key: Fingerprint) -> Result<Option<StoredVisit>, FrontierError> {
        match self.visits.get(&key) {
            Some(kept) => Ok(Some(kept.clone())),
            None => self.frontier.tables.kept(&self.base, key),
        }
    }

    /// The visits that are due at `until`, the longest due first; none but these are before
    /// `due_from` afterwards.
    pub(super) fn due(
        &mut self,
        until: u32,
        most: usize,
    ) -> Result<Vec<(Fingerprint, StoredVisit)>, FrontierError> {
        let tables = &self.frontier.tables;
        let mut due = Vec::new();
        let mut read = self.due_from;
        let is_due = |kept: &StoredVisit| kept.is_settled && kept.visit.due <= until;
        for (key, kept) in &self.visits {
            if is_due(kept) {
                due.push((*key, kept.clone()));
            }
        }
        due.truncate(most);
        let end = due_key(until, Fingerprint::MAX);
        let range = self.due_from..=end;
        let rows = (!range.is_empty()).then(|| self.base.range(&tables.due, range));
        for row in rows.into_iter().flatten() {
            if due.len() >= most {
                break;
            }
            let (time, key, kept) = self.due_row(row)?;
            read = due_key(time, key);
            due.extend(kept.map(|kept| (key, kept)));
        }
        self.due_from = read;
        sort_by_due(&mut due);
        Ok(due)
    }

    /// The visits that are due later than they can be, as of `now`.
    pub(super) fn misdated(
        &self,
        now: u32,
        longest: u32,
        most: usize,
    ) -> Result<Vec<(Fingerprint, StoredVisit)>, FrontierError> {
        let is_misdated =
            |kept: &StoredVisit| kept.is_settled && kept.visit.is_misdated(now, longest);
        let own = self.visits.iter().filter(|(_, kept)| is_misdated(kept));
        let mut found: Vec<_> = own.map(|(key, kept)| (*key, kept.clone())).collect();
        found.truncate(most);
        let Some(first) = now.saturating_add(longest).checked_add(1) else {
            return Ok(found);
        };
        let rows = self
            .base
            .range(&self.frontier.tables.due, first.to_be_bytes()..);
        for row in rows {
            if found.len() >= most {
                break;
            }
            let (_, key, kept) = self.due_row(row)?;
            found.extend(kept.filter(is_misdated).map(|kept| (key, kept)));
        }
        sort_by_due(&mut found);
        Ok(found)
    }

    /// A row of the table of due visits; without the visit where this transaction has another.
    fn due_row(
        &self,
        row: fjall::Guard,
    ) -> Result<(u32, Fingerprint, Option<StoredVisit>), FrontierError> {
        let tables = &self.frontier.tables;
        let bytes = row.key().map_err(|why| tables.failed(why))?;
        let (time, key) = tables.read_due(&bytes)?;
        if self.visits.contains_key(&key) {
            return Ok((time, key, None));
        }
        let kept = tables.kept(&self.base, key)?;
        let kept = kept.filter(|kept| kept.is_settled && kept.visit.due == time);
        let missing = || tables.corrupt("a visit that is due is not kept");
        Ok((time, key, Some(kept.ok_or_else(missing)?)))
    }

    /// Makes settled URLs pending again; how many.
    pub(super) fn revisit_all(
        &mut self,
        all: Vec<(Fingerprint, StoredVisit)>,
    ) -> Result<usize, FrontierError> {
        let count = all.len();
        for (key, kept) in all {
            self.revisit(key, kept)?;
        }
        Ok(count)
    }

    /// Makes a settled URL pending again.
    fn revisit(&mut self, key: Fingerprint, mut kept: StoredVisit) -> Result<(), FrontierError> {
        let before = self.state(key)?;
        if !matches!(
            before,
            Some(State::Fetched { .. } | State::Failed { .. } | State::Excluded { .. })
        ) {
            let tables = &self.frontier.tables;
            return Err(tables.corrupt(&format!("`{}` is due and not settled", kept.url)));
        }
        self.reopens = true;
        kept.is_settled = false;
        let queued = kept.queued(self.next_sequence());
        self.changes.put(Change {
            key,
            origin: kept.url.origin(),
            before,
            now: StoredState::Pending(queued),
        });
        self.visits.insert(key, kept);
        Ok(())
    }

    /// As [`crate::Transaction::visit_again`].
    pub(super) fn revisit_older(
        &mut self,
        url: &CanonicalUrl,
        before: u32,
    ) -> Result<bool, FrontierError> {
        let key = self.frontier.tables.key.fingerprint(url);
        match self.kept(key)? {
            Some(kept) if kept.is_settled && kept.url == *url && kept.visit.at < before => {
                self.revisit(key, kept)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    pub(super) fn write_visits(
        &mut self,
        batch: &mut OwnedWriteBatch,
    ) -> Result<(), FrontierError> {
        let tables = &self.frontier.tables;
        for (key, kept) in std::mem::take(&mut self.visits) {
            // What was leased was pending, and what is pending has no row in `due`.
            let old = match self.settled.contains(&key) {
                true => None,
                false => tables.kept(&self.base, key)?.filter(|old| old.is_settled),
            };
            let old = old.map(|old| old.visit.due);
            let new = kept.is_settled.then_some(kept.visit.due);
            if let Some(due) = old.filter(|_| old != new) {
                batch.remove(&tables.due, due_key(due, key));
            }
            if let Some(due) = new {
                let due = due_key(due, key);
                self.due_from = self.due_from.min(due);
                if old != new {
                    batch.insert(&tables.due, due, []);
                }
            }
            batch.insert(&tables.visits, key.bytes(), kept.encode());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crawl_weburl::canonicalize;

    use super::StoredVisit;
    use crate::admission::UrlKind;
    use crate::admit_rule::QueuePlace;
    use crate::visit::Visit;

    proptest! {
        #[test]
        fn visits_lead_back(
            at: u32, due: u32, bytes: Vec<u8>, is_settled: bool, depth: u32, priority: u8,
            redirects: u8, is_seed: bool, sitemap: bool, near in prop::option::of(any::<bool>()),
        ) {
            let url = |text| canonicalize(None, text).unwrap();
            let kept = StoredVisit {
                url: url("http://a.example/x?y"),
                via: near.map(|near| url(if near { "http://a.example/" } else { "http://b.example/" })),
                place: QueuePlace {
                    retried: false,
                    priority,
                    depth,
                    redirects,
                    is_seed,
                    kind: if sitemap { UrlKind::Sitemap } else { UrlKind::Page },
                    seq: 0,
                },
                visit: Visit { at, due, bytes },
                is_settled,
            };
            prop_assert_eq!(StoredVisit::decode(&kept.encode()), Some(kept));
        }

        #[test]
        fn foreign_bytes_never_panic(bytes: Vec<u8>) {
            let _ = StoredVisit::decode(&bytes);
        }
    }
}
