//! Implements `WorkerFrontier` for `SharedFrontier`: the handover of buckets between workers,
//! surveys of the crawl, links between server groups, and the page budget.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crawl_frontier::parts::CommittedUrlCounts;
use crawl_frontier::worker_frontier::{
    SendDeadline, SharedCrawlStatus, WorkerFrontier, WorkerTransaction,
};
use crawl_frontier::{Frontier as _, FrontierError};
use crawl_weburl::{HostKey, Origin};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::{LeasesAndRecentUrls, OpenTransactionState, SharedFrontier};
use crate::bucket_ownership::BucketOwnership;
use crate::connection::params;
use crate::crawl_exporter::LISTED;
use crate::open::{TakenBuckets, origins_of, take_buckets};
use crate::row_codec::{ColumnReader, LinksToOtherServerGroups, sum};
use crate::sql_statements::SqlStatement;
use crate::worker_home_groups::{self, FIRST_GROUP, lower_allowed, read_map};

/// No request is sent in the safety margin at the end of a lease. The margin is the duration of the
/// lease divided by this number.
const MARGIN_PARTS: u32 = 10;

/// The deadline of a worker's requests: the end of its leases, minus a safety margin.
struct LeaseDeadline(Arc<BucketOwnership>);

impl SendDeadline for LeaseDeadline {
    fn ends_at(&self) -> Instant {
        let ends_at = self.0.until() - self.0.term / MARGIN_PARTS;
        match self.0.is_lost() {
            true => ends_at.min(Instant::now()),
            false => ends_at,
        }
    }
}

/// Maximum number of links forwarded to another server group at a time.
const MAX_FORWARDED: i64 = 4_096;

/// The result of [`SqlStatement::Survey`] in one server group. The doc of the statement explains
/// the columns.
struct GroupSurvey {
    group: i32,
    living: u64,
    free_buckets: u64,
    pending_open: u64,
    pending_unowned: u64,
    has_unqueued_work: bool,
    has_own_unqueued_work: bool,
    is_drained: bool,
    crawl_meta: u64,
    pages: u64,
    others_bytes: u64,
    /// The number of commits by all workers.
    commits: u64,
    /// The version of the map of buckets in this server group.
    map: i64,
    groups: i32,
    moving: Vec<i32>,
    foreign_links_wait: bool,
}

impl GroupSurvey {
    fn of(group: i32, row: &Row) -> Option<GroupSurvey> {
        let mut reader = ColumnReader::new(row);
        Some(GroupSurvey {
            group,
            living: reader.count()?,
            free_buckets: reader.count()?,
            pending_open: reader.count()?,
            pending_unowned: reader.count()?,
            has_unqueued_work: reader.next()?,
            has_own_unqueued_work: reader.next()?,
            is_drained: reader.next()?,
            crawl_meta: reader.count()?,
            pages: reader.count()?,
            others_bytes: reader.count()?,
            commits: reader.count()?,
            map: reader.next()?,
            groups: reader.next()?,
            moving: reader.array()?,
            foreign_links_wait: reader.next()?,
        })
    }
}

impl WorkerFrontier for SharedFrontier {
    fn begin_worker(&self) -> Result<Box<dyn WorkerTransaction + '_>, FrontierError> {
        Ok(Box::new(self.transaction()?))
    }

    fn life(&self) -> &str {
        &self.tables.owned.owner
    }

    fn send_deadline(&self) -> Arc<dyn SendDeadline> {
        Arc::new(LeaseDeadline(Arc::clone(&self.tables.owned)))
    }

    fn check(&self) -> Result<(), FrontierError> {
        self.tables.owned.check(Instant::now())
    }

    fn owned_buckets(&self) -> Vec<i32> {
        self.tables.owned.buckets()
    }

    fn bucket_epochs(&self) -> BTreeMap<i32, i64> {
        self.tables.owned.epochs()
    }

    fn bucket_of(&self, host: &HostKey) -> i32 {
        self.tables.keys.bucket(&host.site())
    }

    fn owns(&self, host: &HostKey) -> bool {
        self.tables.owned.bucket(self.bucket_of(host)).is_some()
    }

    fn taken_over_for(&self, host: &HostKey) -> Option<Duration> {
        let bucket = self.tables.owned.bucket(self.bucket_of(host))?;
        (bucket.epoch > 1).then(|| bucket.taken.elapsed())
    }

    fn leased_buckets(&self) -> BTreeSet<i32> {
        let memory = self.memory();
        let origins = memory.leases.leased_origins();
        origins
            .map(|origin| self.tables.keys.bucket(&origin.site()))
            .collect()
    }

    fn take_free(&self, most: u64) -> Result<(usize, Vec<(Origin, u64)>), FrontierError> {
        // This lock ensures that no transaction is open, because ownership must not change during
        // one.
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.check()?;
        let tables = &self.tables;
        let TakenBuckets {
            buckets,
            sent_at,
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
            tables.owned.add(buckets, sent_at);
            memory.leases.join(queues, totals);
        });
        writer.seq = writer.seq.max(seq);
        tracing::info!(buckets = count, "took hosts over");
        Ok((count, origins))
    }

    fn hand_over(&self, buckets: &[i32]) -> Result<(), FrontierError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let tables = &self.tables;
        let owned = &tables.owned;
        // Remove the buckets here before other workers can take them. Otherwise a heartbeat that
        // does not renew these buckets would report them as lost.
        owned.remove(buckets);
        let params = params![owned.crawl, owned.owner.clone(), buckets.to_vec()];
        let rows = tables.read(SqlStatement::HandOver, params);
        let rows_or_none = rows.as_deref().unwrap_or_default();
        let handed_over = rows_or_none
            .iter()
            .filter_map(|row| ColumnReader::new(row).bucket());
        let handed_over = handed_over.fold(CommittedUrlCounts::default(), |all, (_, _, totals)| {
            sum(all, totals)
        });
        let totals = difference(writer.totals, handed_over);
        let buckets_handed_over: BTreeSet<i32> = buckets.iter().copied().collect();
        let is_gone =
            |origin: &Origin| buckets_handed_over.contains(&tables.keys.bucket(&origin.site()));
        self.change(&mut writer, totals, |memory| {
            memory.leases.leave(is_gone, totals);
        });
        tracing::info!(buckets = rows?.len(), "handed hosts over");
        Ok(())
    }

    fn survey(&self) -> Result<SharedCrawlStatus, FrontierError> {
        let groups = &self.tables.groups;
        let first = self.survey_groups()?;
        for group in &first {
            if usize::try_from(group.groups).is_ok_and(|count| count > groups.count()) {
                return Err(self
                    .tables
                    .owned
                    .lose("the crawl has a new server group, which must be listed too"));
            }
            if group.group == groups.own && groups.count() > 1 && group.map != groups.map().version
            {
                self.learn_map(group.map)?;
            }
        }
        let mut survey = self.sum_up(&first);
        let is_quiet =
            |survey: &SharedCrawlStatus| !survey.has_unqueued_work && survey.pending_open == 0;
        if groups.count() > 1 && is_quiet(&survey) {
            // The server groups were queried at different moments, and a link reaches its group
            // before its page is settled in another group. So a single survey may miss work. If two
            // surveys find no work, and no group committed anything between the two surveys, no
            // work is left.
            let second = self.survey_groups()?;
            let commits =
                |of: &[GroupSurvey]| -> Vec<u64> { of.iter().map(|group| group.commits).collect() };
            let is_same = commits(&first) == commits(&second);
            survey = self.sum_up(&second);
            survey.has_unqueued_work |= !is_same;
        }
        Ok(survey)
    }

    fn forward_links(&self, group: i32) -> Result<(), FrontierError> {
        let tables = &self.tables;
        let buckets = tables.groups.map().foreign_to(group);
        let rows = tables.read_in(group, SqlStatement::ForeignLinks, |crawl| {
            params![crawl, buckets, group, MAX_FORWARDED]
        })?;
        for row in &rows {
            let links = ColumnReader::new(row).foreign_links();
            let links = links.ok_or_else(|| tables.corrupt("link"))?;
            if links.home != tables.groups.own && tables.groups.other(links.home).is_none() {
                // This worker does not know the server group of these links. The next survey
                // reports that group.
                continue;
            }
            let LinksToOtherServerGroups {
                home,
                json,
                b,
                sender,
                number,
            } = links;
            tables.read_in(home, SqlStatement::ForwardLinks, |crawl| {
                params![crawl, json]
            })?;
            tables.read_in(group, SqlStatement::TakeLinks, |crawl| {
                params![crawl, b, sender, number]
            })?;
        }
        Ok(())
    }

    fn served_buckets(&self) -> u64 {
        self.tables.served_buckets()
    }

    fn set_idle(&self, is_idle: bool, pages: Option<u64>) -> Result<(), FrontierError> {
        let owned = &self.tables.owned;
        let pages = pages.map(|pages| pages as i64);
        let params = params![owned.crawl, owned.owner.clone(), is_idle, pages];
        self.tables.read(SqlStatement::Rest, params)?;
        match pages {
            Some(pages) if self.tables.groups.count() > 1 => lower_allowed(&self.tables, pages),
            _ => Ok(()),
        }
    }

    fn allow(&self, pages: u64, more: u64, of: u64) -> Result<u64, FrontierError> {
        if self.tables.groups.count() > 1 {
            return worker_home_groups::allow(&self.tables, pages, more, of);
        }
        // While this lock is held, no commit can begin, so the connection for commits is free.
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let (owned, session) = (&self.tables.owned, self.tables.writing_session()?);
        let (crawl, owner) = (owned.crawl, owned.owner.clone());
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let (pages, more, of) = (number(pages), number(more), number(of));
        let allowed = self.tables.thread.run(async move {
            let client = session.client();
            let locks: [&(dyn ToSql + Sync); 1] = [&crawl];
            let allows: [&(dyn ToSql + Sync); 5] = [&crawl, &owner, &pages, &more, &of];
            // The statements are sent in this order, as one transaction. If one statement fails,
            // the database server refuses the statements after it.
            let (begun, locked, allowed, ended) = tokio::join!(
                biased;
                client.batch_execute("BEGIN"),
                session.query(SqlStatement::LockCrawl, &locks),
                session.query(SqlStatement::Allow, &allows),
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
        let allowed =
            allowed.ok_or_else(|| self.tables.owned.lose("another worker uses its name"))?;
        Ok(u64::try_from(allowed).unwrap_or_default())
    }

    fn buckets_to_list(&self) -> Result<BTreeSet<i32>, FrontierError> {
        self.take_free(self.all_buckets())?;
        let owned = &self.tables.owned;
        let params = params![owned.crawl, owned.worker.clone(), LISTED.to_owned()];
        let mut buckets: BTreeSet<i32> = owned.buckets().into_iter().collect();
        let mut rows = self.tables.read(SqlStatement::OthersMeta, params)?;
        for group in &self.tables.groups.others {
            // Read the lists in all server groups, because another group may have served a bucket
            // when a worker listed it.
            let (worker, name) = (owned.worker.clone(), LISTED.to_owned());
            rows.extend(group.read(SqlStatement::OthersMeta, params![group.crawl, worker, name])?);
        }
        for row in rows {
            let listed: Option<&[u8]> = ColumnReader::new(&row).next();
            let listed = listed.ok_or_else(|| self.tables.corrupt("meta"))?;
            for bytes in listed.as_chunks().0 {
                buckets.remove(&i32::from_le_bytes(*bytes));
            }
        }
        Ok(buckets)
    }

    fn note_listed(&self, buckets: &BTreeSet<i32>) -> Result<(), FrontierError> {
        let bytes: Vec<u8> = buckets.iter().flat_map(|b| b.to_le_bytes()).collect();
        let mut transaction = self.begin()?;
        transaction.keep_meta(LISTED, &bytes);
        transaction.commit().map(drop)
    }

    fn replace_settings(&self, settings: &str) -> Result<(), FrontierError> {
        self.check()?;
        let settings = settings.to_owned();
        let stored = |crawl: i32| params![crawl, settings];
        self.tables
            .read_in(FIRST_GROUP, SqlStatement::ReplaceSettings, stored)?;
        Ok(())
    }

    fn crawl_meta(&self) -> Result<Vec<(String, Vec<u8>)>, FrontierError> {
        let mut rows = self
            .tables
            .read(SqlStatement::CrawlMeta, params![self.tables.owned.crawl])?;
        // Read all server groups. A commit stores values of the whole crawl in all groups that
        // exist at that time, but a group that joins later lacks these values.
        for group in &self.tables.groups.others {
            rows.extend(group.read(SqlStatement::CrawlMeta, params![group.crawl])?);
        }
        let meta = rows.iter().map(|row| {
            let mut reader = ColumnReader::new(row);
            Some((reader.next()?, reader.next()?))
        });
        let meta: Option<BTreeMap<_, _>> = meta.collect();
        let meta = meta.ok_or_else(|| self.tables.corrupt("meta"))?;
        Ok(meta.into_iter().collect())
    }

    fn give_up(&self) -> Result<(), FrontierError> {
        self.tables.end_leases()
    }
}

impl SharedFrontier {
    /// Returns the number of buckets of the crawl.
    #[must_use]
    pub fn all_buckets(&self) -> u64 {
        u64::try_from(self.tables.keys.buckets).unwrap_or(1)
    }

    /// Applies a change of the owned buckets, and clears the cached states of recent URLs. For a
    /// URL of another worker, the cached state follows from the links that this worker sent, and
    /// may differ from the stored state. So the cached state must not be used once this worker owns
    /// the URL.
    fn change(
        &self,
        writer: &mut OpenTransactionState,
        totals: CommittedUrlCounts,
        change: impl FnOnce(&mut LeasesAndRecentUrls),
    ) {
        writer.totals = totals;
        let mut memory = self.memory();
        memory.recent.clear();
        change(&mut memory);
    }

    /// Surveys all server groups concurrently. The first result is this worker's group.
    fn survey_groups(&self) -> Result<Vec<GroupSurvey>, FrontierError> {
        let tables = &self.tables;
        let (groups, owned) = (&tables.groups, &tables.owned);
        let map = groups.map();
        let life = &owned.owner;
        let params = |group: i32, crawl: i32, buckets: Vec<i32>| {
            params![crawl, life.clone(), buckets, group, map.foreign_to(group)]
        };
        let params_by_group = groups.others.iter().map(|group| {
            let params = Arc::new(params(group.number, group.crawl, Vec::new()));
            (group, params)
        });
        let requests: Vec<_> = params_by_group
            .map(|(group, params)| {
                let request = group.query(SqlStatement::Survey, &params);
                (group, params, request)
            })
            .collect();
        let own = params(groups.own, owned.crawl, owned.buckets());
        let rows = tables.read(SqlStatement::Survey, own)?;
        let read = |group: i32, rows: &[Row]| {
            let survey = rows.first().and_then(|row| GroupSurvey::of(group, row));
            survey.ok_or_else(|| tables.corrupt("worker"))
        };
        let mut surveys = vec![read(groups.own, &rows)?];
        for (group, params, request) in requests {
            let rows = group.wait(request, SqlStatement::Survey, &params)?;
            surveys.push(read(group.number, &rows)?);
        }
        Ok(surveys)
    }

    fn sum_up(&self, groups: &[GroupSurvey]) -> SharedCrawlStatus {
        let own = self.tables.groups.own;
        let mut survey = SharedCrawlStatus::default();
        for group in groups {
            survey.living += group.living;
            survey.pending_open += group.pending_open;
            survey.has_unqueued_work |= group.has_unqueued_work;
            survey.crawl_meta += group.crawl_meta;
            survey.pages += group.pages;
            survey.others_bytes += group.others_bytes;
            let is_served = group.living > 0;
            if !is_served && (group.pending_unowned > 0 || group.has_unqueued_work) {
                survey.unserved_group.get_or_insert(group.group);
            }
            if group.foreign_links_wait && (group.group == own || !is_served) {
                survey.to_forward.push(group.group);
            }
            if group.group == own {
                survey.group_living = group.living;
                survey.free_buckets = group.free_buckets;
                survey.has_own_unqueued_work = group.has_own_unqueued_work;
                survey.is_drained = group.is_drained;
                survey.moving.clone_from(&group.moving);
            }
        }
        survey
    }

    /// Reads the map of buckets from this worker's home group.
    fn learn_map(&self, version: i64) -> Result<(), FrontierError> {
        let rows = self
            .tables
            .read(SqlStatement::Map, params![self.tables.owned.crawl])?;
        let map = read_map(&rows, version).ok_or_else(|| self.tables.corrupt("bucket"))?;
        self.tables.groups.learn(map);
        Ok(())
    }

    /// Returns the number of the server group that this worker works in.
    #[must_use]
    pub fn home(&self) -> i32 {
        self.tables.groups.own
    }
}

fn difference(totals: CommittedUrlCounts, subtrahend: CommittedUrlCounts) -> CommittedUrlCounts {
    CommittedUrlCounts {
        pending: totals.pending.saturating_sub(subtrahend.pending),
        deferred: totals.deferred.saturating_sub(subtrahend.deferred),
        fetched: totals.fetched.saturating_sub(subtrahend.fetched),
        failed: totals.failed.saturating_sub(subtrahend.failed),
        excluded: totals.excluded.saturating_sub(subtrahend.excluded),
    }
}
