//! Buckets that workers of one crawl hand to each other, and the counts of all workers.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crawl_frontier::parts::Totals;
use crawl_frontier::{Frontier as _, FrontierError};
use crawl_weburl::{HostKey, Origin};
use tokio_postgres::types::ToSql;

use super::{Memory, SharedFrontier, Writer};
use crate::engine_tables::params;
use crate::open::{TakenBuckets, origins_of, take_buckets};
use crate::ownership::Ownership;
use crate::rows::{Reader, sum};
use crate::sql::Sql;

/// The part of a lease, counted from its end, in which nothing more is sent: a tenth.
const MARGIN_PARTS: u32 = 10;

/// The name under which a worker keeps which buckets it has listed.
const LISTED: &str = "listed";

/// Until when requests may be sent to the hosts of a worker.
#[derive(Clone)]
pub struct SendGuard(Arc<Ownership>);

impl SendGuard {
    /// The moment from which nothing more may be sent, and nothing be under way, unless a heartbeat
    /// comes before: some time before the leases end.
    #[must_use]
    pub fn ends_at(&self) -> Instant {
        let ends_at = self.0.until() - self.0.term / MARGIN_PARTS;
        match self.0.is_lost() {
            true => ends_at.min(Instant::now()),
            false => ends_at,
        }
    }
}

/// The facts that a worker has to know of all others, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Workers that live and were not asked to end, this one among them.
    pub living: u64,
    /// Buckets that nobody owns.
    pub free_buckets: u64,
    /// URLs that are pending or leased, but for those of workers that have nothing to do until
    /// something comes.
    pub pending_open: u64,
    /// Those of them in buckets that nobody owns.
    pub pending_unowned: u64,
    /// True if links wait for their owners, or for that of a bucket that nobody owns, or URLs that
    /// are to be reopened.
    pub links_wait: bool,
    /// True if links wait for this worker, or URLs that are to be reopened.
    pub own_links_wait: bool,
    /// True if this worker was asked to hand its buckets over, and to end.
    pub is_drained: bool,
    /// How much is kept of the crawl ([`SharedFrontier::crawl_meta`]).
    pub crawl_meta: u64,
    /// Rows of `pages.jsonl` of all workers.
    pub pages: u64,
    /// Bytes of bodies of all other workers.
    pub others_bytes: u64,
}

impl SharedFrontier {
    /// The id of this life of the worker, which no other has.
    #[must_use]
    pub fn life(&self) -> &str {
        &self.tables.owned.owner
    }

    /// Until when requests may be sent.
    #[must_use]
    pub fn send_guard(&self) -> SendGuard {
        SendGuard(Arc::clone(&self.tables.owned))
    }

    /// Fails where the leases of this worker ended, or another took some of them over.
    ///
    /// # Errors
    /// [`FrontierError::LeaseLost`].
    pub fn check(&self) -> Result<(), FrontierError> {
        self.tables.owned.check(Instant::now())
    }

    /// How many buckets the crawl has.
    #[must_use]
    pub fn all_buckets(&self) -> u64 {
        u64::try_from(self.tables.keys.buckets).unwrap_or(1)
    }

    /// The buckets that this worker owns, in their order.
    #[must_use]
    pub fn owned_buckets(&self) -> Vec<i32> {
        self.tables.owned.buckets()
    }

    /// The bucket of a host.
    #[must_use]
    pub fn bucket_of(&self, host: &HostKey) -> i32 {
        self.tables.keys.bucket(&host.site())
    }

    /// Returns whether this worker owns a host.
    #[must_use]
    pub fn owns(&self, host: &HostKey) -> bool {
        self.tables.owned.bucket(self.bucket_of(host)).is_some()
    }

    /// How long ago this worker took a host over from another, which may have asked it until then.
    /// None where nobody owned it before.
    #[must_use]
    pub fn taken_over_for(&self, host: &HostKey) -> Option<Duration> {
        let bucket = self.tables.owned.bucket(self.bucket_of(host))?;
        (bucket.epoch > 1).then(|| bucket.taken.elapsed())
    }

    /// The buckets of URLs that are leased.
    #[must_use]
    pub fn leased_buckets(&self) -> BTreeSet<i32> {
        let memory = self.memory();
        let origins = memory.leases.leased_origins();
        origins
            .map(|origin| self.tables.keys.bucket(&origin.site()))
            .collect()
    }

    /// Takes buckets that nobody owns, `most` of them at most. Gives the origins in them that have
    /// pending URLs, each with how many, and the number of buckets.
    ///
    /// # Errors
    /// [`FrontierError`] where the engine fails, or the leases of this worker ended.
    pub fn take_free(&self, most: u64) -> Result<(usize, Vec<(Origin, u64)>), FrontierError> {
        // No transaction is open meanwhile: what is owned stays the same within one.
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.check()?;
        let tables = &self.tables;
        let TakenBuckets {
            buckets,
            asked,
            seq,
            totals,
        } = take_buckets(tables, most)?;
        if buckets.is_empty() {
            return Ok((0, Vec::new()));
        }
        let (count, numbers) = (buckets.len(), buckets.keys().copied().collect());
        let queues = origins_of(tables, numbers)?;
        let origins = queues.iter();
        let origins = origins.map(|(origin, _, pending)| (origin.clone(), *pending));
        let origins = origins.collect();
        let totals = sum(writer.totals, totals);
        self.change(&mut writer, totals, |memory| {
            tables.owned.add(buckets, asked);
            memory.leases.join(queues, totals);
        });
        writer.seq = writer.seq.max(seq);
        tracing::info!(buckets = count, "took hosts over");
        Ok((count, origins))
    }

    /// Hands buckets over: others may take them at once. No URL in them is leased, no request to
    /// their hosts is under way, and what their hosts are to be asked next is committed.
    ///
    /// # Errors
    /// [`FrontierError`] where the engine fails. Then their leases end by themselves.
    pub fn hand_over(&self, buckets: &[i32]) -> Result<(), FrontierError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let tables = &self.tables;
        let owned = &tables.owned;
        // Before others can take them: no heartbeat is to miss them.
        owned.remove(buckets);
        let params = params![owned.crawl, owned.owner.clone(), buckets.to_vec()];
        let rows = tables.read(Sql::HandOver, params);
        let rows_or_none = rows.as_deref().unwrap_or_default();
        let gone = rows_or_none
            .iter()
            .filter_map(|row| Reader::new(row).bucket());
        let gone = gone.fold(Totals::default(), |all, (_, _, totals)| sum(all, totals));
        let totals = difference(writer.totals, gone);
        let left: BTreeSet<i32> = buckets.iter().copied().collect();
        let is_gone = |origin: &Origin| left.contains(&tables.keys.bucket(&origin.site()));
        self.change(&mut writer, totals, |memory| {
            memory.leases.leave(is_gone, totals);
        });
        tracing::info!(buckets = rows?.len(), "handed hosts over");
        Ok(())
    }

    /// Other buckets are owned from now on. What is known of URLs of other workers is what they were
    /// told, which is not what they have.
    fn change(&self, writer: &mut Writer, totals: Totals, change: impl FnOnce(&mut Memory)) {
        writer.totals = totals;
        let mut memory = self.memory();
        memory.recent.clear();
        change(&mut memory);
    }

    /// Reads the facts that this worker has to know of all others.
    ///
    /// # Errors
    /// [`FrontierError`] where the engine fails.
    pub fn survey(&self) -> Result<Survey, FrontierError> {
        let owned = &self.tables.owned;
        let params = params![owned.crawl, owned.owner.clone(), owned.buckets()];
        let rows = self.tables.read(Sql::Survey, params)?;
        let survey = rows.first().and_then(|row| {
            let mut reader = Reader::new(row);
            Some(Survey {
                living: reader.count()?,
                free_buckets: reader.count()?,
                pending_open: reader.count()?,
                pending_unowned: reader.count()?,
                links_wait: reader.next()?,
                own_links_wait: reader.next()?,
                is_drained: reader.next()?,
                crawl_meta: reader.count()?,
                pages: reader.count()?,
                others_bytes: reader.count()?,
            })
        });
        survey.ok_or_else(|| self.tables.corrupt("worker"))
    }

    /// Notes whether this worker has nothing to do until something comes, and that it needs no more
    /// pages than so many.
    ///
    /// # Errors
    /// [`FrontierError`] where the engine fails.
    pub fn rest(&self, rests: bool, pages: Option<u64>) -> Result<(), FrontierError> {
        let owned = &self.tables.owned;
        let pages = pages.map(|pages| pages as i64);
        let params = params![owned.crawl, owned.owner.clone(), rests, pages];
        self.tables.read(Sql::Rest, params).map(drop)
    }

    /// Asks for leave to have so many more pages than `pages`, of those that the crawl may have.
    /// Gives how many this worker may have in all: no more are had by all workers together.
    ///
    /// # Errors
    /// [`FrontierError`] where the engine fails.
    pub fn allow(&self, pages: u64, more: u64, of: u64) -> Result<u64, FrontierError> {
        // No commit is under way meanwhile: the connection is theirs.
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let (owned, session) = (&self.tables.owned, self.tables.writing_session()?);
        let (crawl, owner) = (owned.crawl, owned.owner.clone());
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let (pages, more, of) = (number(pages), number(more), number(of));
        let allowed = self.tables.thread.run(async move {
            let client = session.client();
            let locks: [&(dyn ToSql + Sync); 1] = [&crawl];
            let allows: [&(dyn ToSql + Sync); 5] = [&crawl, &owner, &pages, &more, &of];
            // In this order on the wire. Where one fails, the engine refuses those behind it.
            let (begun, locked, allowed, ended) = tokio::join!(
                biased;
                client.batch_execute("BEGIN"),
                session.query(Sql::LockCrawl, &locks),
                session.query(Sql::Allow, &allows),
                client.batch_execute("COMMIT"),
            );
            begun?;
            locked?;
            let allowed = allowed?;
            ended?;
            allowed
                .first()
                .map(|row| row.try_get::<_, i64>(0))
                .transpose()
        })?;
        let allowed = allowed.ok_or_else(|| self.tables.owned.lose("its name is another's"))?;
        Ok(u64::try_from(allowed).unwrap_or_default())
    }

    /// The buckets of this worker whose URLs no other worker has listed in its records as put aside.
    /// It takes those first that nobody owns: nobody may be left who would list them.
    ///
    /// # Errors
    /// [`FrontierError`] where the engine fails, or the leases of this worker ended.
    pub fn buckets_to_list(&self) -> Result<BTreeSet<i32>, FrontierError> {
        self.take_free(self.all_buckets())?;
        let owned = &self.tables.owned;
        let params = params![owned.crawl, owned.worker.clone(), LISTED.to_owned()];
        let mut buckets: BTreeSet<i32> = owned.buckets().into_iter().collect();
        for row in self.tables.read(Sql::OthersMeta, params)? {
            let listed: Option<&[u8]> = Reader::new(&row).next();
            let listed = listed.ok_or_else(|| self.tables.corrupt("meta"))?;
            for bytes in listed.as_chunks().0 {
                buckets.remove(&i32::from_le_bytes(*bytes));
            }
        }
        Ok(buckets)
    }

    /// Notes the buckets whose URLs this worker has listed in its records as put aside; none where
    /// it took that back.
    ///
    /// # Errors
    /// [`FrontierError`] where the engine fails.
    pub fn note_listed(&self, buckets: &BTreeSet<i32>) -> Result<(), FrontierError> {
        let bytes: Vec<u8> = buckets.iter().flat_map(|b| b.to_le_bytes()).collect();
        let mut transaction = self.begin()?;
        transaction.keep_meta(LISTED, &bytes);
        transaction.commit().map(drop)
    }

    /// All that is kept of the crawl, whichever worker kept it.
    ///
    /// # Errors
    /// [`FrontierError`] where the engine fails.
    pub fn crawl_meta(&self) -> Result<Vec<(String, Vec<u8>)>, FrontierError> {
        let rows = self
            .tables
            .read(Sql::CrawlMeta, params![self.tables.owned.crawl])?;
        let kept = rows.iter().map(|row| {
            let mut reader = Reader::new(row);
            Some((reader.next()?, reader.next()?))
        });
        let kept: Option<Vec<_>> = kept.collect();
        kept.ok_or_else(|| self.tables.corrupt("meta"))
    }
}

fn difference(one: Totals, other: Totals) -> Totals {
    Totals {
        pending: one.pending.saturating_sub(other.pending),
        deferred: one.deferred.saturating_sub(other.deferred),
        fetched: one.fetched.saturating_sub(other.fetched),
        failed: one.failed.saturating_sub(other.failed),
        excluded: one.excluded.saturating_sub(other.excluded),
    }
}
