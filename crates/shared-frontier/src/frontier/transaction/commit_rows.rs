//! The rows that a transaction commits, and the changes that its commit makes to the lease table.

use std::collections::BTreeMap;

use crawl_frontier::Fingerprint;
use crawl_frontier::parts::{
    CommittedUrlCounts, LeaseChanges, OriginQueueChanges, QueueEntryChange, QueuedUrl,
};
use crawl_weburl::Origin;

use super::{SharedTransaction, UrlChange};
use crate::commit_statements::{StateCountChanges, TransactionColumns};
use crate::row_codec::state_columns;

/// A transaction's changes, ready to be committed.
pub(super) struct CommitRows {
    pub(super) batch: TransactionColumns,
    /// The changes for the lease table.
    pub(super) merge: LeaseChanges,
}

/// The changes of all counts in a transaction: for each bucket, in total, and for each queue.
#[derive(Default)]
struct CountChanges {
    /// The changes of counts, for each changed bucket.
    buckets: BTreeMap<i32, StateCountChanges>,
    totals: StateCountChanges,
    /// The queue changes of each origin. An origin with an unchanged queue has an entry too, if the
    /// database may lack the origin's row.
    queues: BTreeMap<Origin, OriginQueueChanges>,
}

impl SharedTransaction<'_> {
    pub(super) fn rows(&mut self) -> CommitRows {
        let mut batch = TransactionColumns::new(self.writer.commits + 1, self.spent);
        let mut sums = CountChanges::default();
        let settler = self.frontier.tables.owned.number;
        // Sort the changes in the order of the table's rows, so that two transactions never
        // deadlock.
        let mut changes: Vec<(Fingerprint, UrlChange)> = self.changed.drain().collect();
        changes.sort_unstable_by_key(|(_, change)| change.key);
        for (fingerprint, change) in changes {
            batch.record(change.key, &change.url, &change.now, settler);
            self.writer
                .changed_states
                .push((fingerprint, change.now.now(false)));
            self.sum_up(&mut sums, fingerprint, change);
        }
        let keys = self.frontier.tables.keys;
        for queue in sums.queues.values() {
            let b = keys.bucket(&queue.origin.site());
            batch.origin(b, queue.id as i64, &queue.origin, queue.queued);
        }
        self.put_kept(&mut batch, &mut sums);
        self.put_links(&mut batch, &mut sums);
        let owned = &self.frontier.tables.owned;
        batch.fence(sums.buckets, self.seq, owned);
        let queues = sums.queues.into_values();
        let merge = LeaseChanges {
            settled: self.settled.iter().copied().collect(),
            queues: queues.filter(|queue| !queue.moves.is_empty()).collect(),
            totals: changed_totals(self.writer.totals, sums.totals),
        };
        CommitRows { batch, merge }
    }

    fn sum_up(&self, sums: &mut CountChanges, fingerprint: Fingerprint, change: UrlChange) {
        let UrlChange {
            url,
            key,
            before,
            now,
        } = change;
        let state = state_columns(&now.state).state;
        let bucket = sums.buckets.entry(key.b).or_default();
        for counts in [bucket, &mut sums.totals] {
            counts[state as usize] += 1;
            if let Some(before) = before {
                counts[before.state as usize] -= 1;
            }
        }
        let (old, new) = (before.and_then(|before| before.rank), now.rank());
        let is_queued = old.is_some() || new.is_some();
        if !is_queued && before.is_some() {
            return;
        }
        let origin = url.origin();
        let queued = || self.frontier.memory().leases.origin_queue(&origin);
        let new_queue = || OriginQueueChanges {
            queued: queued().map_or(0, |(_, queued)| queued),
            id: key.origin as u64,
            origin: origin.clone(),
            moves: Vec::new(),
        };
        let queue = sums.queues.entry(origin.clone());
        let queue = queue.or_insert_with(new_queue);
        if !is_queued {
            return;
        }
        queue.queued += u64::from(new.is_some());
        queue.queued = queue.queued.saturating_sub(u64::from(old.is_some()));
        let attempt = now.attempt();
        queue.moves.push(QueueEntryChange {
            fingerprint,
            old,
            new: new.map(|_| QueuedUrl {
                place: now.place,
                attempt,
                url,
                via: now.via,
            }),
        });
    }

    /// Adds the visits, hosts, copies of robots.txt, file lengths and named values of the
    /// transaction.
    fn put_kept(&mut self, batch: &mut TransactionColumns, sums: &mut CountChanges) {
        let keys = self.frontier.tables.keys;
        for (fingerprint, stored) in self.visits.drain() {
            let key = keys.url(&stored.url, fingerprint);
            sums.buckets.entry(key.b).or_default();
            batch.visit(key, &stored);
        }
        for (host, state) in std::mem::take(&mut self.hosts) {
            let b = keys.bucket(&host.site());
            sums.buckets.entry(b).or_default();
            batch.host(b, keys.number(host.as_str()), host.as_str(), state);
        }
        for (origin, bytes) in std::mem::take(&mut self.robots) {
            let b = keys.bucket(&origin.site());
            if self.frontier.tables.owned.epoch(b).is_none() {
                // This robots.txt copy was fetched before its host was handed over, so it is not
                // stored. The new owner fetches the robots.txt again.
                continue;
            }
            sums.buckets.entry(b).or_default();
            batch.robots(b, keys.number(origin.as_str()), &origin, bytes);
        }
        for (file, length) in std::mem::take(&mut self.marks) {
            batch.mark(file, length);
        }
        for (name, value) in std::mem::take(&mut self.meta) {
            batch.meta(name, value);
        }
    }

    /// Adds the links to hosts of other workers, the keys of the admitted links from other workers,
    /// and the progress of reopening.
    fn put_links(&mut self, batch: &mut TransactionColumns, sums: &mut CountChanges) {
        let groups = &self.frontier.tables.groups;
        for (b, admission) in std::mem::take(&mut self.links) {
            self.writer.links += 1;
            batch.link(groups.elsewhere(b), b, self.writer.links, admission);
        }
        self.writer.changed_states.extend(self.sent_states.drain());
        for key in std::mem::take(&mut self.taken) {
            sums.buckets.entry(key.b).or_default();
            batch.taken(key);
        }
        for bucket in std::mem::take(&mut self.to_reopen) {
            sums.buckets.entry(bucket.last.b).or_default();
            batch.bucket_to_reopen(bucket);
        }
        for key in std::mem::take(&mut self.dropped_visits) {
            batch.drop_visit(key);
        }
        for (b, number) in std::mem::take(&mut self.dropped_robots) {
            batch.drop_robots(b, number);
        }
    }
}

fn changed_totals(totals: CommittedUrlCounts, changes: StateCountChanges) -> CommittedUrlCounts {
    let [pending, deferred, fetched, failed, excluded] = changes;
    CommittedUrlCounts {
        pending: totals.pending.saturating_add_signed(pending),
        deferred: totals.deferred.saturating_add_signed(deferred),
        fetched: totals.fetched.saturating_add_signed(fetched),
        failed: totals.failed.saturating_add_signed(failed),
        excluded: totals.excluded.saturating_add_signed(excluded),
    }
}
