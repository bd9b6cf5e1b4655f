//! Exports a shared crawl part by part, to be moved into a directory.

use std::collections::BTreeMap;
use std::sync::Arc;

use crawl_frontier::parts::{CommittedUrlCounts, CrawlTransferItem};
use crawl_frontier::worker_frontier::{BoxError, ExportedWorker, OutgoingCrawl};
use crawl_frontier::{FrontierError, UrlToAdmit};
use crawl_weburl::{HostKey, Origin};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::connection::{
    DatabaseResult, DatabaseThread, StatementParameter, connect_for_rows, params,
};
use crate::database_password::PasswordSources;
use crate::error::SharedCrawlError;
use crate::open_groups::{ServerGroup, find_groups};
use crate::row_codec::{ColumnReader, LinkFromWorkerKey, sum, url_at};
use crate::sql_statements::export;

/// The name of the note that each server group stores once the crawl was moved into a directory.
/// The note names the directory. No worker continues a crawl that has this note.
pub(crate) const EXPORTED: &str = "exported";

/// The name of the value in which a worker stores the buckets whose deferred URLs it has listed in
/// its records. The value is not exported, because nothing outside the shared frontier uses it.
pub(crate) const LISTED: &str = "listed";

/// Exports a crawl from its database servers. [`CrawlExporter::finish`] fails if the crawl changed
/// since [`CrawlExporter::begin`].
pub struct CrawlExporter {
    groups: Vec<ExportedServerGroup>,
    name: String,
    /// The directory that the crawl is moved to.
    to: String,
    workers: Vec<ExportedWorker>,
}

struct ExportedServerGroup {
    /// The crawl's number in this server group.
    crawl: i32,
    thread: DatabaseThread,
    client: Arc<Client>,
    /// The group's number.
    number: i32,
    /// The number of URLs in each state, in the buckets that the server group serves.
    totals: CommittedUrlCounts,
    facts: ChangeCounters,
}

/// The outcome of storing the note with the directory that a crawl was moved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoteOutcome {
    Now,
    Before,
    /// The note was not stored, because the crawl has changed since the export began.
    Changed,
}

/// Numbers that show whether the crawl changed in a server group. Any change increases or decreases
/// at least one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ChangeCounters {
    /// The number of commits by all workers.
    commits: i64,
    /// The last number assigned to a worker.
    workers: i64,
    /// The number of changes to the map of buckets.
    map: i64,
    /// The number of buckets that are being moved.
    moving: i64,
    to_reopen: i64,
}

impl CrawlExporter {
    /// Begins moving a crawl out of its database servers into the directory `to`. `urls` must name
    /// all server groups of the crawl.
    ///
    /// # Errors
    /// [`SharedCrawlError`] gives the reason: a worker is alive, a bucket is being moved, URLs have
    /// to be reopened, or the crawl was moved to another directory.
    pub fn begin(
        urls: &[String],
        credentials: &PasswordSources,
        crawl: &str,
        to: &str,
    ) -> Result<CrawlExporter, SharedCrawlError> {
        let mut export = CrawlExporter {
            groups: Vec::new(),
            name: crawl.to_owned(),
            to: to.to_owned(),
            workers: Vec::new(),
        };
        for group in find_groups(urls, credentials, crawl)? {
            let (group, workers) = ExportedServerGroup::open(group)?;
            export.groups.push(group);
            export.workers.extend(workers);
        }
        for group in &export.groups {
            if let Some(before) = group.exported_to()?.filter(|before| before != to) {
                return Err(SharedCrawlError::Exported {
                    crawl: crawl.to_owned(),
                    to: before,
                });
            }
            if let Some(worker) = group.living()? {
                let crawl = crawl.to_owned();
                return Err(SharedCrawlError::StillAtWork { crawl, worker });
            }
            if group.facts.moving > 0 {
                let crawl = crawl.to_owned();
                return Err(SharedCrawlError::BucketsMove { crawl });
            }
            if group.facts.to_reopen > 0 {
                return Err(SharedCrawlError::ToReopen {
                    crawl: crawl.to_owned(),
                    buckets: u64::try_from(group.facts.to_reopen).unwrap_or(u64::MAX),
                });
            }
        }
        Ok(export)
    }

    /// Records that the crawl is in its new directory now, so that no worker continues it.
    ///
    /// # Errors
    /// [`SharedCrawlError::WentOn`] if the crawl was changed or moved elsewhere in the meantime,
    /// and errors of the database servers. After an error, workers may continue the crawl.
    pub fn finish(&self) -> Result<(), SharedCrawlError> {
        let mut noted = Vec::new();
        for group in &self.groups {
            let done = group.note(&self.to);
            match done {
                Ok(NoteOutcome::Now) => noted.push(group),
                // The note was stored by an earlier, interrupted run of this command.
                Ok(NoteOutcome::Before) => {}
                Ok(NoteOutcome::Changed) | Err(_) => {
                    for group in noted {
                        group.remove_note(&self.to)?;
                    }
                    done?;
                    return Err(SharedCrawlError::WentOn {
                        crawl: self.name.clone(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Undoes [`CrawlExporter::finish`], so that workers can continue the crawl. Call it if
    /// renaming the new directory to its final name fails.
    pub fn take_back(&self) -> Result<(), SharedCrawlError> {
        for group in &self.groups {
            group.remove_note(&self.to)?;
        }
        Ok(())
    }
}

impl OutgoingCrawl for CrawlExporter {
    fn workers(&self) -> &[ExportedWorker] {
        &self.workers
    }

    fn totals(&self) -> CommittedUrlCounts {
        let each = self.groups.iter().map(|group| group.totals);
        each.fold(CommittedUrlCounts::default(), sum)
    }

    fn each_part(
        &self,
        show: &mut dyn FnMut(CrawlTransferItem) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        for group in &self.groups {
            for part in [&export::PENDING, &export::NOT_PENDING] {
                group.each_row(part, &mut |reader| {
                    let origin = Origin::parse(reader.next()?).ok()?;
                    let url = url_at(&origin, reader.next()?)?;
                    let record = reader.record()?;
                    Some(show(CrawlTransferItem::Url { url, record }))
                })?;
            }
            group.each_row(&export::HOSTS, &mut |reader| {
                let host = HostKey::parse(reader.next()?).ok()?;
                let wake: i64 = reader.next()?;
                let (wake, bytes) = (wake as u64, reader.next()?);
                Some(show(CrawlTransferItem::Host { host, wake, bytes }))
            })?;
            group.each_row(&export::ROBOTS, &mut |reader| {
                let origin = Origin::parse(reader.next()?).ok()?;
                let bytes = reader.next()?;
                Some(show(CrawlTransferItem::Robots { origin, bytes }))
            })?;
            group.each_row(&export::VISITS, &mut |reader| {
                let (_, visit, _) = reader.visit()?;
                Some(show(CrawlTransferItem::Visit(visit)))
            })?;
        }
        Ok(())
    }

    fn each_link(
        &self,
        show: &mut dyn FnMut(UrlToAdmit) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        for group in &self.groups {
            let mut last = LinkFromWorkerKey {
                b: -1,
                sender: String::new(),
                number: -1,
            };
            loop {
                let (b, sender, number) = (last.b, last.sender.clone(), last.number);
                let params = params![group.crawl, export::ROWS, b, sender, number];
                let rows = group.query(export::LINKS, params)?;
                for row in &rows {
                    let link = ColumnReader::new(row).link();
                    let (key, link) = link.ok_or_else(|| group.corrupt("link"))?;
                    last = key;
                    show(link)?;
                }
                if (rows.len() as i64) < export::ROWS {
                    break;
                }
            }
        }
        Ok(())
    }
}

impl ExportedServerGroup {
    fn open(
        group: ServerGroup,
    ) -> Result<(ExportedServerGroup, Vec<ExportedWorker>), SharedCrawlError> {
        let ServerGroup { server, crawl } = group;
        let config = server.config;
        let client = server
            .thread
            .run(async move { connect_for_rows(&config).await })?;
        let (number, crawl) = (crawl.group, crawl.number);
        let mut group = ExportedServerGroup {
            crawl,
            thread: server.thread,
            client: Arc::new(client),
            number,
            totals: CommittedUrlCounts::default(),
            facts: ChangeCounters::default(),
        };
        // Read the change counters before the totals. If the crawl changes later, the counters will
        // differ at the end of the export, which then fails.
        let client = Arc::clone(&group.client);
        group.facts = group
            .thread
            .run(async move { facts(&client, crawl).await })?;
        for row in group.query(export::TOTALS, params![crawl, number])? {
            let totals = ColumnReader::new(&row).totals();
            group.totals = totals.ok_or_else(|| group.corrupt("bucket"))?;
        }
        let workers = group.workers()?;
        Ok((group, workers))
    }

    fn query(
        &self,
        text: &'static str,
        params: Vec<StatementParameter>,
    ) -> Result<Vec<Row>, FrontierError> {
        let client = Arc::clone(&self.client);
        self.thread.run(async move {
            let refs = params.iter().map(|value| &**value as &(dyn ToSql + Sync));
            client.query(text, &refs.collect::<Vec<_>>()).await
        })
    }

    fn corrupt(&self, table: &str) -> FrontierError {
        self.thread
            .corrupt(&format!("a row of crawl_frontier.{table}"))
    }

    fn workers(&self) -> Result<Vec<ExportedWorker>, FrontierError> {
        let rows = self.query(export::WORKERS, params![self.crawl])?;
        let workers = rows.iter().map(|row| {
            let mut reader = ColumnReader::new(row);
            let worker = reader.next::<String>().zip(reader.count());
            let (name, pages) = worker.ok_or_else(|| self.corrupt("worker"))?;
            let files = self.query(export::FILES, params![self.crawl, name.clone()])?;
            let marks = files.iter().map(|row| {
                let mut reader = ColumnReader::new(row);
                reader.next().zip(reader.count())
            });
            let marks: Option<BTreeMap<String, u64>> = marks.collect();
            let mut meta = self.meta(&name)?;
            meta.retain(|(name, _)| name != LISTED);
            Ok(ExportedWorker {
                name,
                pages,
                marks: marks.ok_or_else(|| self.corrupt("row_file"))?,
                meta,
            })
        });
        workers.collect()
    }

    /// Returns the named values that a worker stored.
    fn meta(&self, worker: &str) -> Result<Vec<(String, Vec<u8>)>, FrontierError> {
        let rows = self.query(export::META, params![self.crawl, worker.to_owned()])?;
        let meta = rows.iter().map(|row| {
            let mut reader = ColumnReader::new(row);
            reader.next().zip(reader.next())
        });
        let meta: Option<Vec<_>> = meta.collect();
        meta.ok_or_else(|| self.corrupt("meta"))
    }

    /// Returns the name of a living worker, or `None` if no worker is alive.
    fn living(&self) -> Result<Option<String>, FrontierError> {
        let rows = self.query(export::LIVING, params![self.crawl])?;
        let worker = rows.first().map(|row| ColumnReader::new(row).next());
        worker.map_or(Ok(None), |name| {
            name.map(Some).ok_or_else(|| self.corrupt("worker"))
        })
    }

    /// Returns the directory that the crawl was moved to, or `None` if it was not moved.
    fn exported_to(&self) -> Result<Option<String>, FrontierError> {
        let rows = self.query(export::NOTED, params![self.crawl, EXPORTED])?;
        let to: Option<Vec<u8>> = match rows.first() {
            Some(row) => Some(
                ColumnReader::new(row)
                    .next()
                    .ok_or_else(|| self.corrupt("meta"))?,
            ),
            None => None,
        };
        Ok(to.map(|to| String::from_utf8_lossy(&to).into_owned()))
    }

    /// Passes rows to `show` in key order. `show` reads all columns after those of the key, and
    /// returns `None` if a column can't be read.
    fn each_row<E: From<FrontierError>>(
        &self,
        part: &export::BucketPartQuery,
        show: &mut dyn FnMut(&mut ColumnReader<'_>) -> Option<Result<(), E>>,
    ) -> Result<(), E> {
        let buckets = self.query(part.buckets, params![self.crawl, self.number])?;
        for row in &buckets {
            let b = ColumnReader::new(row).next();
            let b = b.ok_or_else(|| self.corrupt("bucket"))?;
            self.each_row_of_bucket(part, b, show)?;
        }
        Ok(())
    }

    fn each_row_of_bucket<E: From<FrontierError>>(
        &self,
        part: &export::BucketPartQuery,
        b: i32,
        show: &mut dyn FnMut(&mut ColumnReader<'_>) -> Option<Result<(), E>>,
    ) -> Result<(), E> {
        let mut last = vec![i64::MIN; part.keys];
        loop {
            let mut params = params![self.crawl, b, part.rows];
            params.extend(last.iter().map(|key| Box::new(*key) as StatementParameter));
            let rows = self.query(part.text, params)?;
            for row in &rows {
                let mut reader = ColumnReader::new(row);
                let keys: Option<Vec<i64>> = (0..part.keys).map(|_| reader.next()).collect();
                let shown = keys.zip(show(&mut reader));
                let (key, shown) = shown.ok_or_else(|| self.corrupt(part.table))?;
                shown?;
                last = key;
            }
            if (rows.len() as i64) < part.rows {
                return Ok(());
            }
        }
    }

    /// Stores the note with the directory that the crawl was moved to. Stores nothing if the crawl
    /// has changed since the export began.
    fn note(&self, to: &str) -> Result<NoteOutcome, FrontierError> {
        let (client, crawl, before) = (Arc::clone(&self.client), self.crawl, self.facts);
        let to = to.as_bytes().to_vec();
        self.thread.run(async move {
            client.batch_execute("BEGIN").await?;
            // A worker that takes its name at this moment waits for these locks. After that it
            // finds the note, and stops.
            for text in export::LOCKS {
                client.query(text, &[&crawl]).await?;
            }
            let living = client.query(export::LIVING, &[&crawl]).await?;
            let is_as_before = living.is_empty() && facts(&client, crawl).await? == before;
            let stored_note = client
                .query_opt(export::NOTED, &[&crawl, &EXPORTED])
                .await?;
            let stored_note: Option<Vec<u8>> = stored_note.map(|row| row.try_get(0)).transpose()?;
            let noted = match stored_note {
                Some(stored_note) if stored_note == to => NoteOutcome::Before,
                None if is_as_before => {
                    let params: [&(dyn ToSql + Sync); 3] = [&crawl, &EXPORTED, &to];
                    client.execute(export::NOTE, &params).await?;
                    client.execute(export::END_LIVES, &[&crawl]).await?;
                    NoteOutcome::Now
                }
                _ => NoteOutcome::Changed,
            };
            client.batch_execute("COMMIT").await?;
            Ok(noted)
        })
    }

    /// Removes the note, so that workers can continue the crawl.
    fn remove_note(&self, to: &str) -> Result<(), FrontierError> {
        let (client, crawl, to) = (Arc::clone(&self.client), self.crawl, to.as_bytes().to_vec());
        let removed = self.thread.run(async move {
            let params: [&(dyn ToSql + Sync); 3] = [&crawl, &EXPORTED, &to];
            client.execute(export::REMOVE_NOTE, &params).await
        });
        removed.map(drop)
    }
}

async fn facts(client: &Client, crawl: i32) -> DatabaseResult<ChangeCounters> {
    let row = client.query_one(export::FACTS, &[&crawl]).await?;
    Ok(ChangeCounters {
        commits: row.try_get(0)?,
        workers: row.try_get(1)?,
        map: row.try_get(2)?,
        moving: row.try_get(3)?,
        to_reopen: row.try_get(4)?,
    })
}
