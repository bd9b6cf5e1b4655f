//! Prepares the batch that a transaction writes at its commit.

use crawl_weburl::Origin;
use fjall::OwnedWriteBatch;
use foldhash::{HashMap, HashMapExt};

use super::FjallTransaction;
use crate::admit_rule::{QueueRank, QueuedUrl};
use crate::error::FrontierError;
use crate::lease_table::{LeaseChanges, OriginQueueChanges, QueueEntryChange};
use crate::sieve::SieveRecord;
use crate::store::meta_keys;
use crate::store::queue_block::{MAX_BLOCK, QueueBlock, row_of, seq_of};
use crate::store::record_codec::{SieveUrlState, encode_origin};
use crate::store::tables::queue_key;
use crate::store::url_changes::{FullUrlState, UrlStateChange};

/// The changes of a transaction, encoded for the commit.
pub(super) struct CommitBatch {
    pub(super) batch: OwnedWriteBatch,
    /// The records to add to the sieve (the set of known URLs). Also in `batch`.
    pub(super) records: Vec<SieveRecord>,
    /// The notes that the batch adds, each with its number.
    pub(super) notes: Vec<(Vec<u8>, u64)>,
    /// The changes to merge into the lease table after the commit.
    pub(super) merge: LeaseChanges,
}

/// The changes to one origin's queue. Each is a rank and the index of a URL's change in the
/// transaction.
#[derive(Default)]
struct QueueEdit {
    /// Ranks of entries to remove, or to rewrite at the same rank.
    edits: Vec<(QueueRank, usize)>,
    /// Provisional ranks of entries to add. An entry that moves to another rank is also in `edits`.
    arrivals: Vec<(QueueRank, usize)>,
}

impl FjallTransaction<'_> {
    pub(super) fn write(&mut self) -> Result<CommitBatch, FrontierError> {
        let tables = &self.frontier.tables;
        let mut changes = self.changes.take();
        let mut writing = CommitBatch {
            batch: tables.db.batch().durability(Some(tables.persist)),
            records: Vec::with_capacity(changes.len()),
            notes: Vec::new(),
            merge: LeaseChanges::default(),
        };
        let (edits, places) = by_origin(&changes);
        for (origin, edit) in edits {
            let change = self.write_queue(&mut writing.batch, origin, edit, &mut changes)?;
            writing.merge.queues.push(change);
        }
        for change in &changes {
            self.write_state(&mut writing, change);
        }
        for (change, place) in changes.into_iter().zip(places) {
            if let Some(place) = place {
                writing.merge.queues[place].moves.push(moved(change));
            }
        }
        self.write_visits(&mut writing.batch);
        self.write_kept(&mut writing);
        writing.merge.settled = self.settled.iter().copied().collect();
        writing.merge.totals = self.sequence.totals;
        Ok(writing)
    }

    /// Writes the changed blocks of an origin's queue, and gives the added entries their final
    /// sequence numbers.
    fn write_queue(
        &mut self,
        batch: &mut OwnedWriteBatch,
        origin: Origin,
        edit: QueueEdit,
        changes: &mut [UrlStateChange],
    ) -> Result<OriginQueueChanges, FrontierError> {
        let (id, before) = self.line_or_new(&origin)?;
        let removed = self.write_edits(batch, id, edit.edits, changes)?;
        let added = edit.arrivals.len() as u64;
        self.write_arrivals(batch, id, edit.arrivals, changes)?;
        let queued = (before + added).saturating_sub(removed);
        let tables = &self.frontier.tables;
        let value = encode_origin(id, queued, origin.as_str());
        batch.insert(&tables.origins, tables.key.origin(&origin), value);
        Ok(OriginQueueChanges {
            origin,
            id,
            queued,
            moves: Vec::new(),
        })
    }

    /// Rewrites the blocks in which entries are removed or rewritten. Returns the number of removed
    /// entries.
    fn write_edits(
        &self,
        batch: &mut OwnedWriteBatch,
        id: u64,
        mut edits: Vec<(QueueRank, usize)>,
        changes: &[UrlStateChange],
    ) -> Result<u64, FrontierError> {
        let tables = &self.frontier.tables;
        edits.sort_unstable();
        let mut removed = 0;
        for edits in edits.chunk_by(|a, b| row_of(a.0) == row_of(b.0)) {
            let row = row_of(edits[0].0);
            let bytes = tables.block(&self.base, id, row)?.unwrap_or_default();
            let missing = || tables.corrupt(&format!("block {} of queue {id}", row.seq));
            let mut block = QueueBlock::parse(&bytes).ok_or_else(missing)?;
            for &(rank, at) in edits {
                match &changes[at].now {
                    FullUrlState::Pending(queued) if queued.place.rank() == rank => {
                        block.put(queued);
                    }
                    _ if !block.remove(rank) => return Err(missing()),
                    _ => removed += 1,
                }
            }
            match block.is_empty() {
                true => batch.remove(&tables.queue, queue_key(id, row)),
                false => batch.insert(&tables.queue, queue_key(id, row), block.encode()),
            }
        }
        Ok(removed)
    }

    /// Puts added entries into new blocks. All entries of a block have the same priority and depth.
    fn write_arrivals(
        &mut self,
        batch: &mut OwnedWriteBatch,
        id: u64,
        mut arrivals: Vec<(QueueRank, usize)>,
        changes: &mut [UrlStateChange],
    ) -> Result<(), FrontierError> {
        arrivals.sort_unstable();
        let alike =
            |a: QueueRank, b: QueueRank| QueueRank { seq: 0, ..a } == QueueRank { seq: 0, ..b };
        let mut arrivals = arrivals.into_iter().peekable();
        while let Some(&(kind, _)) = arrivals.peek() {
            self.sequence.block += 1;
            if self.sequence.block >= MAX_BLOCK {
                return Err(self.frontier.tables.corrupt("the number of the last block"));
            }
            let number = self.sequence.block;
            let mut block = QueueBlock::default();
            let mut place = 0;
            while !block.is_full()
                && let Some((_, at)) = arrivals.next_if(|(rank, _)| alike(*rank, kind))
            {
                if let FullUrlState::Pending(queued) = &mut changes[at].now {
                    queued.place.seq = seq_of(number, place);
                    block.put(queued);
                    place += 1;
                }
            }
            let row = QueueRank {
                seq: seq_of(number, 0),
                ..kind
            };
            batch.insert(
                &self.frontier.tables.queue,
                queue_key(id, row),
                block.encode(),
            );
        }
        Ok(())
    }

    /// Adds the URL's record for the sieve and its row in `deferred` to the batch, and updates the
    /// counts.
    fn write_state(&mut self, writing: &mut CommitBatch, change: &UrlStateChange) {
        let tables = &self.frontier.tables;
        let state = match &change.now {
            FullUrlState::Noted { depth, note } => {
                let last = &mut self.sequence.note;
                let id = self.writer.note_ids.id(note, last, &mut writing.notes);
                note.state(*depth, id)
            }
            other => other.state(),
        };
        writing.records.push(SieveRecord {
            key: change.key,
            state: state.packed(),
        });
        if let Some(before) = &change.before {
            self.sequence.totals.decrement(before);
        }
        self.sequence.totals.increment(&state);
        let key = change.key.bytes();
        if let FullUrlState::Deferred(deferred) = &change.now {
            writing
                .batch
                .insert(&tables.deferred, key, deferred.encode());
        } else if let Some(SieveUrlState::Deferred { .. }) = change.before {
            writing.batch.remove(&tables.deferred, key);
        }
    }

    fn write_kept(&mut self, writing: &mut CommitBatch) {
        let tables = &self.frontier.tables;
        let batch = &mut writing.batch;
        for (host, value) in std::mem::take(&mut self.hosts) {
            batch.insert(&tables.hosts, host.as_str(), value);
        }
        for (origin, value) in std::mem::take(&mut self.robots) {
            batch.insert(&tables.robots, origin.as_str(), value);
        }
        for (name, value) in std::mem::take(&mut self.meta) {
            batch.insert(&tables.meta, name, value);
        }
        for (bytes, id) in &writing.notes {
            batch.insert(&tables.notes, id.to_be_bytes(), bytes.as_slice());
        }
        if !writing.records.is_empty() {
            self.sequence.commit += 1;
            let mut fresh = Vec::with_capacity(writing.records.len() * 32);
            for record in &writing.records {
                record.put(&mut fresh);
            }
            batch.insert(&tables.fresh, self.sequence.commit.to_be_bytes(), fresh);
        }
        if !batch.is_empty() {
            // Write `meta` with each commit. On opening, a table that is newer than `meta` means
            // that the journal has lost a commit.
            batch.insert(&tables.meta, meta_keys::SEQUENCE, self.sequence.encode());
        }
    }

    fn line_or_new(&mut self, origin: &Origin) -> Result<(u64, u64), FrontierError> {
        let line = self.frontier.leases().origin_queue(origin);
        if let Some(line) = line {
            return Ok(line);
        }
        let line = self.frontier.tables.origin_queue(&self.base, origin)?;
        Ok(line.unwrap_or_else(|| {
            self.sequence.origin += 1;
            (self.sequence.origin, 0)
        }))
    }
}

fn rank_before(change: &UrlStateChange) -> Option<QueueRank> {
    match change.before {
        Some(SieveUrlState::Pending(place)) => Some(place.rank()),
        _ => None,
    }
}

/// Converts a change of a URL to the change of its queue entry in the lease table.
fn moved(change: UrlStateChange) -> QueueEntryChange {
    QueueEntryChange {
        fingerprint: change.key,
        old: rank_before(&change),
        new: match change.now {
            FullUrlState::Pending(queued) => Some(queued),
            _ => None,
        },
    }
}

/// Groups the changes by the origin whose queue they affect. Also returns, for each change, the
/// index of its group, or `None` if it affects no queue.
fn by_origin(changes: &[UrlStateChange]) -> (Vec<(Origin, QueueEdit)>, Vec<Option<usize>>) {
    let mut edits: Vec<(Origin, QueueEdit)> = Vec::new();
    let mut indexes: HashMap<&Origin, usize> = HashMap::new();
    let mut places = Vec::with_capacity(changes.len());
    for (at, change) in changes.iter().enumerate() {
        let old = rank_before(change);
        let new = match &change.now {
            FullUrlState::Pending(QueuedUrl { place, .. }) => Some(place.rank()),
            _ => None,
        };
        if old.is_none() && new.is_none() {
            places.push(None);
            continue;
        }
        let place = *indexes.entry(&change.origin).or_insert_with(|| {
            edits.push((change.origin.clone(), QueueEdit::default()));
            edits.len() - 1
        });
        places.push(Some(place));
        let edit = &mut edits[place].1;
        edit.edits.extend(old.map(|rank| (rank, at)));
        edit.arrivals
            .extend(new.filter(|_| new != old).map(|rank| (rank, at)));
    }
    (edits, places)
}
