//! The stored visits, and the times at which the next visits are due.
//!
//! | table | key | value |
//! |---|---|---|
//! | `visits` | fingerprint | URL, place, via, times, the caller's bytes |
//! | `due` | due time, commit number | fingerprints of URLs that the commit settled |

use std::collections::BTreeMap;
use std::ops::Bound;

use fjall::{OwnedWriteBatch, Readable as _, Snapshot, UserKey};
use foldhash::{HashSet, HashSetExt as _};

use crawl_weburl::{CanonicalUrl, canonicalize};

use super::due_visit_rows::{DueVisitRow, due_key, due_value};
use super::record_codec::SieveUrlState;
use super::record_primitives::{
    ByteReader, VIA_FLAGS, VISIT_SETTLED, put_number, put_place, put_text, put_via, via_flags,
};
use super::tables::StoreTables;
use super::transaction::FjallTransaction;
use super::url_changes::{FullUrlState, UrlStateChange};
use crate::error::FrontierError;
use crate::fingerprint::Fingerprint;
use crate::last_visit::{LastVisit, StoredVisit};

/// The number of bytes reserved for the numbers and flags of an encoded visit. Few visits need
/// more.
const NUMBERS_BYTES: usize = 48;

impl StoredVisit {
    pub(super) fn encode(&self) -> Vec<u8> {
        let via = self.via.as_ref().map_or(0, |via| via.as_str().len());
        let texts = self.url.as_str().len() + via + self.visit.bytes.len();
        let mut out = Vec::with_capacity(NUMBERS_BYTES + texts);
        let due = if self.is_settled { VISIT_SETTLED } else { 0 };
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
        let (flags, place) = from.place(VIA_FLAGS | VISIT_SETTLED)?;
        let (at, due) = (from.number32()?, from.number32()?);
        let url = canonicalize(None, from.text()?).ok()?;
        let via = from.via(flags, &url)?;
        Some(StoredVisit {
            url,
            via,
            place,
            visit: LastVisit {
                at,
                due,
                bytes: from.0.to_vec(),
            },
            is_settled: flags & VISIT_SETTLED != 0,
        })
    }
}

fn sort_by_due(visits: &mut [(Fingerprint, StoredVisit)]) {
    visits.sort_by(|(_, a), (_, b)| (a.visit.due, &a.url).cmp(&(b.visit.due, &b.url)));
}

impl StoreTables {
    /// Returns the stored visit of the URL with fingerprint `key`.
    pub(super) fn stored_visit(
        &self,
        from: &Snapshot,
        key: Fingerprint,
    ) -> Result<Option<StoredVisit>, FrontierError> {
        let bytes = self.get(from, &self.visits, &key.bytes())?;
        let visit = bytes.map(|bytes| {
            let visit = StoredVisit::decode(&bytes);
            visit.ok_or_else(|| self.corrupt("what is kept of a visit"))
        });
        visit.transpose()
    }

    /// Returns the earliest time after `after` at which the visit of a settled URL is due.
    pub(super) fn next_due(
        &self,
        from: &Snapshot,
        after: u32,
    ) -> Result<Option<u32>, FrontierError> {
        let Some(start) = after.checked_add(1) else {
            return Ok(None);
        };
        for row in from.range(&self.due, start.to_be_bytes()..) {
            let (_, DueVisitRow { due, urls }) = self.due_row(row)?;
            for url in urls {
                if self.kept_until(from, url, due)?.is_some() {
                    return Ok(Some(due));
                }
            }
        }
        Ok(None)
    }

    /// Parses a row of the table `due`. Returns its key and the parsed row.
    fn due_row(&self, row: fjall::Guard) -> Result<(UserKey, DueVisitRow), FrontierError> {
        let (key, value) = row.into_inner().map_err(|why| self.failed(why))?;
        let row = DueVisitRow::parse(&key, &value).ok_or_else(|| self.corrupt("a row of due"))?;
        Ok((key, row))
    }

    /// Returns the stored visit of a URL if the URL is settled and that visit is due at `due`.
    /// Returns `None` if the URL is pending again, or another visit has replaced the one that was
    /// due then.
    fn kept_until(
        &self,
        from: &Snapshot,
        key: Fingerprint,
        due: u32,
    ) -> Result<Option<StoredVisit>, FrontierError> {
        let visit = self.stored_visit(from, key)?;
        let visit = visit.ok_or_else(|| self.corrupt("a visit that is due is not kept"))?;
        Ok((visit.is_settled && visit.visit.due == due).then_some(visit))
    }
}

impl FjallTransaction<'_> {
    /// Returns the stored visit of a URL, as this transaction sees it.
    pub(super) fn stored_visit(
        &self,
        key: Fingerprint,
    ) -> Result<Option<StoredVisit>, FrontierError> {
        match self.visits.get(&key) {
            Some(kept) => Ok(Some(kept.clone())),
            None => self.frontier.tables.stored_visit(&self.base, key),
        }
    }

    /// Returns up to `most` visits that are due at `until`, the longest overdue first. Also sets
    /// `due_from` to the due time of the last row read: all remaining visits are due then or later.
    pub(super) fn due(
        &mut self,
        until: u32,
        most: usize,
    ) -> Result<Vec<(Fingerprint, StoredVisit)>, FrontierError> {
        let is_due = |kept: &StoredVisit| kept.is_settled && kept.visit.due <= until;
        let own = self.visits.iter().filter(|(_, kept)| is_due(kept));
        let mut due: Vec<_> = own.map(|(key, kept)| (*key, kept.clone())).collect();
        due.truncate(most);
        let end = until
            .checked_add(1)
            .map_or(Bound::Unbounded, |end| Bound::Excluded(end.to_be_bytes()));
        let range = (Bound::Included(self.due_from.to_be_bytes()), end);
        let rows =
            (self.due_from <= until).then(|| self.base.range(&self.frontier.tables.due, range));
        let mut seen = HashSet::new();
        for row in rows.into_iter().flatten() {
            if due.len() >= most {
                break;
            }
            let (key, row) = self.frontier.tables.due_row(row)?;
            self.due_from = row.due;
            let mut remaining = Vec::new();
            for url in row.urls {
                if due.len() >= most {
                    remaining.push(url);
                } else if let Some(kept) = self.until(url, row.due)?
                    && seen.insert(url)
                {
                    due.push((url, kept));
                }
            }
            // Keep only the remaining entries in the row. The dropped ones are invalid, or this
            // call returns their visits, or this transaction replaces their visits.
            self.due_left.insert(key, remaining);
        }
        sort_by_due(&mut due);
        Ok(due)
    }

    /// Returns up to `most` visits whose due time can't be right, as
    /// [`crate::Transaction::visit_misdated`] defines it.
    pub(super) fn misdated(
        &mut self,
        now: u32,
        longest: Option<u32>,
        most: usize,
    ) -> Result<Vec<(Fingerprint, StoredVisit)>, FrontierError> {
        let is_misdated =
            |kept: &StoredVisit| kept.is_settled && kept.visit.is_misdated(now, longest);
        let own = self.visits.iter().filter(|(_, kept)| is_misdated(kept));
        let mut misdated: Vec<_> = own.map(|(key, kept)| (*key, kept.clone())).collect();
        misdated.truncate(most);
        let Some(first) = now.saturating_add(longest.unwrap_or(0)).checked_add(1) else {
            return Ok(misdated);
        };
        let rows = self
            .base
            .range(&self.frontier.tables.due, first.to_be_bytes()..);
        let mut seen = HashSet::new();
        for row in rows {
            if misdated.len() >= most {
                break;
            }
            let (key, row) = self.frontier.tables.due_row(row)?;
            let (all, mut remaining) = (row.urls.len(), Vec::new());
            for url in row.urls {
                match self.until(url, row.due)? {
                    // Ignore the entry: its URL is pending again, or was settled by another visit.
                    None => {}
                    Some(kept) if misdated.len() < most && is_misdated(&kept) => {
                        misdated.extend(seen.insert(url).then_some((url, kept)));
                    }
                    Some(_) => remaining.push(url),
                }
            }
            // Remove the entries of the visits that this call returns. The due time of this row may
            // never come, so no later scan would remove them.
            if remaining.len() < all {
                self.due_left.insert(key, remaining);
            }
        }
        sort_by_due(&mut misdated);
        Ok(misdated)
    }

    /// Like [`StoreTables::kept_until`], but returns `None` if this transaction has stored another
    /// visit of the URL.
    fn until(&self, key: Fingerprint, due: u32) -> Result<Option<StoredVisit>, FrontierError> {
        match self.visits.contains_key(&key) {
            true => Ok(None),
            false => self.frontier.tables.kept_until(&self.base, key, due),
        }
    }

    /// Makes the URLs of these visits pending again, and returns their number.
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

    /// Makes the settled URL with fingerprint `key` pending again. Fails if it is not settled.
    fn revisit(&mut self, key: Fingerprint, mut kept: StoredVisit) -> Result<(), FrontierError> {
        let before = self.state(key)?;
        if !matches!(
            before,
            Some(
                SieveUrlState::Fetched { .. }
                    | SieveUrlState::Failed { .. }
                    | SieveUrlState::Excluded { .. }
            )
        ) {
            let tables = &self.frontier.tables;
            return Err(tables.corrupt(&format!("`{}` is due and not settled", kept.url)));
        }
        self.reopens = true;
        kept.is_settled = false;
        let queued = kept.queued(self.next_sequence());
        self.changes.put(UrlStateChange {
            key,
            origin: kept.url.origin(),
            before,
            now: FullUrlState::Pending(queued),
        });
        self.visits.insert(key, kept);
        Ok(())
    }

    /// Implements [`crate::Transaction::visit_again`].
    pub(super) fn revisit_older(
        &mut self,
        url: &CanonicalUrl,
        before: u32,
    ) -> Result<bool, FrontierError> {
        let key = self.frontier.tables.key.fingerprint(url);
        match self.stored_visit(key)? {
            Some(kept) if kept.is_settled && kept.url == *url && kept.visit.at < before => {
                self.revisit(key, kept)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    pub(super) fn write_visits(&mut self, batch: &mut OwnedWriteBatch) {
        let tables = &self.frontier.tables;
        for (key, left) in std::mem::take(&mut self.due_left) {
            match left.is_empty() {
                true => batch.remove(&tables.due, key),
                false => batch.insert(&tables.due, key, due_value(&left)),
            }
        }
        let mut due: BTreeMap<u32, Vec<Fingerprint>> = BTreeMap::new();
        for (key, kept) in std::mem::take(&mut self.visits) {
            if kept.is_settled {
                due.entry(kept.visit.due).or_default().push(key);
            }
            batch.insert(&tables.visits, key.bytes(), kept.encode());
        }
        // Rows of the table `due` need a new commit number for their keys. A commit that changes no
        // URL has none yet: for example, a commit that adds only the visits of another frontier.
        self.sequence.commit += u64::from(!due.is_empty());
        let commit = self.sequence.commit;
        for (due, urls) in due {
            self.due_from = self.due_from.min(due);
            batch.insert(&tables.due, due_key(due, commit), due_value(&urls));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crawl_weburl::canonicalize;

    use fjall::Readable as _;

    use super::StoredVisit;
    use crate::admit_rule::PendingUrlFields;
    use crate::conformance::helpers::{admit, lease, link, settle_until, url, visit_due};
    use crate::crawl_transfer_item::CrawlTransferItem;
    use crate::last_visit::LastVisit;
    use crate::url_record::UrlRecord;
    use crate::url_to_admit::UrlKind;
    use crate::{FjallFrontier, FjallFrontierOptions, Frontier as _, FrontierError};

    proptest! {
        #[test]
        fn visits_round_trip(
            at: u32, due: u32, bytes: Vec<u8>, is_settled: bool, depth: u32, priority: u8,
            redirects: u8, is_seed: bool, sitemap: bool, near in prop::option::of(any::<bool>()),
        ) {
            let url = |text| canonicalize(None, text).unwrap();
            let visit = StoredVisit {
                url: url("http://a.example/x?y"),
                via: near.map(|near| url(if near { "http://a.example/" } else { "http://b.example/" })),
                place: PendingUrlFields {
                    retried: false,
                    priority,
                    depth,
                    redirects,
                    is_seed,
                    kind: if sitemap { UrlKind::Sitemap } else { UrlKind::Page },
                    seq: 0,
                },
                visit: LastVisit { at, due, bytes },
                is_settled,
            };
            prop_assert_eq!(StoredVisit::decode(&visit.encode()), Some(visit));
        }

        #[test]
        fn foreign_bytes_never_panic(bytes: Vec<u8>) {
            let _ = StoredVisit::decode(&bytes);
        }
    }

    #[test]
    fn visits_added_one_by_one_from_another_frontier_are_due() {
        let (dir, from_dir) = (tempfile::TempDir::new(), tempfile::TempDir::new());
        let open = |dir: &tempfile::TempDir| {
            FjallFrontier::open(dir.path(), &FjallFrontierOptions::default()).unwrap()
        };
        let (from, to) = (open(&from_dir.unwrap()), open(&dir.unwrap()));
        admit(&from, ["/a", "/b", "/c"].map(|path| link(path, 1)));
        let mut parts = Vec::new();
        for path in ["/a", "/b", "/c"] {
            settle_until(&from, lease(&from), 10, 50);
            let record = from.known(&url(path)).unwrap().and_then(UrlRecord::settled);
            let (url, record) = (url(path), record.unwrap());
            parts.push(CrawlTransferItem::Url { url, record });
        }
        from.each_part::<FrontierError>(&mut |part| {
            parts.push(part);
            Ok(())
        })
        .unwrap();
        for part in parts {
            to.put_parts([part]).unwrap();
        }
        admit(&to, [link("/d", 1)]);
        settle_until(&to, lease(&to), 10, 50);
        assert_eq!(visit_due(&to, 50, 9), 4);
    }

    #[test]
    fn rows_written_by_earlier_versions_are_due() {
        let dir = tempfile::TempDir::new().unwrap();
        let frontier = FjallFrontier::open(dir.path(), &FjallFrontierOptions::default()).unwrap();
        admit(&frontier, [link("/a", 1), link("/b", 1)]);
        settle_until(&frontier, lease(&frontier), 10, 50);
        settle_until(&frontier, lease(&frontier), 10, 50);
        let tables = &frontier.tables;
        for row in tables.snapshot().iter(&tables.due) {
            tables.due.remove(row.key().unwrap()).unwrap();
        }
        for path in ["/a", "/b"] {
            let key = [
                &50_u32.to_be_bytes()[..],
                &tables.key.fingerprint(&url(path)).bytes(),
            ];
            tables.due.insert(key.concat(), []).unwrap();
        }
        assert_eq!(frontier.next_due(0).unwrap(), Some(50));
        assert_eq!(visit_due(&frontier, 50, 1), 1);
        assert_eq!(visit_due(&frontier, 50, 9), 1);
        assert_eq!(frontier.next_due(0).unwrap(), None);
        assert!(tables.snapshot().iter(&tables.due).next().is_none());
    }
}
