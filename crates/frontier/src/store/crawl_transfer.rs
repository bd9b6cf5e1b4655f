//! Moves a crawl to or from another frontier in parts. Everything in a store is read except settled
//! URLs, because the store has only their fingerprints.

use std::sync::PoisonError;

use crawl_weburl::{CanonicalUrl, HostKey, Origin};
use fjall::{Keyspace, Readable as _, UserKey, UserValue};

use super::FjallFrontier;
use super::meta_keys;
use super::record_codec::FailureOrExclusionNote;
use super::transaction::FjallTransaction;
use super::url_changes::{FullUrlState, UrlStateChange};
use crate::admit_rule::{DeferredUrl, PendingUrlFields, QueuedUrl, capped, capped_exclusion};
use crate::crawl_transfer_item::CrawlTransferItem;
use crate::error::FrontierError;
use crate::last_visit::StoredVisit;
use crate::transaction::Transaction as _;
use crate::url_record::{UrlRecord, UrlRecordState};

impl FjallFrontier {
    /// Passes to `show` everything that is stored, except settled URLs, because the store has only
    /// their fingerprints. A caller that knows the text of a settled URL can create its record with
    /// [`UrlRecord::settled`]. Pending URLs come in queue order, and leased URLs count as pending.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails, and errors of `show`.
    pub fn each_part<E: From<FrontierError>>(
        &self,
        show: &mut dyn FnMut(CrawlTransferItem) -> Result<(), E>,
    ) -> Result<(), E> {
        self.each_waiting(show)?;
        let tables = &self.tables;
        self.each_row(&tables.hosts, |key, value| {
            let host = text(key).and_then(|text| HostKey::parse(text).ok());
            let host = host.ok_or_else(|| tables.corrupt("a key in hosts"))?;
            let (wake, bytes) = tables.host_value(host.as_str(), value)?;
            show(CrawlTransferItem::Host { host, wake, bytes })
        })?;
        self.each_row(&tables.robots, |key, value| {
            let origin = text(key).and_then(|text| Origin::parse(text).ok());
            let origin = origin.ok_or_else(|| tables.corrupt("a key in robots"))?;
            let bytes = value.to_vec();
            show(CrawlTransferItem::Robots { origin, bytes })
        })?;
        self.each_row(&tables.visits, |_, value| {
            let visit = StoredVisit::decode(value);
            let visit = visit.ok_or_else(|| tables.corrupt("what is kept of a visit"))?;
            show(CrawlTransferItem::Visit(visit))
        })?;
        self.each_row(&tables.meta, |key, value| {
            let name = text(key).and_then(|key| key.strip_prefix(meta_keys::CALLER));
            let Some(name) = name.map(str::to_owned) else {
                return Ok(());
            };
            let bytes = value.to_vec();
            show(CrawlTransferItem::Meta { name, bytes })
        })
    }

    /// Adds parts of another frontier in one commit. Each part replaces what is stored for the same
    /// URL, host, origin or name. Pending URLs of one origin must come in queue order, within a
    /// call and from call to call.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails. Nothing is added then.
    pub fn put_parts(
        &self,
        parts: impl IntoIterator<Item = CrawlTransferItem>,
    ) -> Result<(), FrontierError> {
        self.sieve.make_room()?;
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut transaction = Box::new(FjallTransaction::new(self, writer));
        for part in parts {
            transaction.put_part(part)?;
        }
        transaction.commit().map(drop)
    }

    fn each_waiting<E: From<FrontierError>>(
        &self,
        show: &mut dyn FnMut(CrawlTransferItem) -> Result<(), E>,
    ) -> Result<(), E> {
        let tables = &self.tables;
        let mut queues = self.leases().queues();
        queues.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let snapshot = tables.snapshot();
        for (origin, id, _) in queues {
            let mut failed = None;
            let walk = tables.walk_queue(&snapshot, (&origin, id), None, |_, read| {
                let queued = read()?;
                let record = UrlRecord {
                    state: UrlRecordState::Pending {
                        attempt: queued.attempt,
                    },
                    place: queued.place,
                    via: queued.via,
                };
                let shown = show(CrawlTransferItem::Url {
                    url: queued.url,
                    record,
                });
                failed = shown.err();
                Ok(match failed {
                    None => std::ops::ControlFlow::Continue(()),
                    Some(_) => std::ops::ControlFlow::Break(()),
                })
            });
            let _ = walk?;
            failed.map_or(Ok(()), Err)?;
        }
        self.each_row(&tables.deferred, |_, value| {
            let deferred = tables.decode_deferred(value)?;
            let record = UrlRecord {
                state: UrlRecordState::Deferred(deferred.exclusion),
                place: PendingUrlFields {
                    redirects: deferred.redirects,
                    ..PendingUrlFields::at(deferred.depth)
                },
                via: deferred.via,
            };
            show(CrawlTransferItem::Url {
                url: deferred.url,
                record,
            })
        })
    }

    fn each_row<E: From<FrontierError>>(
        &self,
        table: &Keyspace,
        mut show: impl FnMut(&UserKey, &UserValue) -> Result<(), E>,
    ) -> Result<(), E> {
        for row in self.tables.snapshot().iter(table) {
            let (key, value) = row.into_inner().map_err(|why| self.tables.failed(why))?;
            show(&key, &value)?;
        }
        Ok(())
    }
}

impl FjallTransaction<'_> {
    fn put_part(&mut self, part: CrawlTransferItem) -> Result<(), FrontierError> {
        match part {
            CrawlTransferItem::Url { url, record } => self.put_url(url, record)?,
            CrawlTransferItem::Host { host, wake, bytes } => self.keep_host(&host, wake, &bytes),
            CrawlTransferItem::Robots { origin, bytes } => self.keep_robots(&origin, &bytes),
            CrawlTransferItem::Visit(visit) => {
                let key = self.frontier.tables.key.fingerprint(&visit.url);
                self.visits.insert(key, visit);
            }
            CrawlTransferItem::Meta { name, bytes } => self.keep_meta(&name, &bytes),
        }
        Ok(())
    }

    fn put_url(&mut self, url: CanonicalUrl, record: UrlRecord) -> Result<(), FrontierError> {
        let key = self.frontier.tables.key.fingerprint(&url);
        let (origin, before) = (url.origin(), self.state(key)?);
        let UrlRecord { state, place, via } = record;
        let depth = place.depth;
        let now = match state {
            UrlRecordState::Pending { attempt } => FullUrlState::Pending(QueuedUrl {
                place: PendingUrlFields {
                    seq: self.next_sequence(),
                    ..place
                },
                attempt,
                url,
                via,
            }),
            UrlRecordState::Deferred(exclusion) => FullUrlState::Deferred(DeferredUrl {
                url,
                via,
                depth,
                redirects: place.redirects,
                exclusion: capped_exclusion(exclusion),
            }),
            UrlRecordState::Fetched { status } => FullUrlState::Fetched { depth, status },
            UrlRecordState::Failed { why } => FullUrlState::Noted {
                depth,
                note: FailureOrExclusionNote::Why(capped(why)),
            },
            UrlRecordState::Excluded(exclusion) => FullUrlState::Noted {
                depth,
                note: FailureOrExclusionNote::Exclusion(capped_exclusion(exclusion)),
            },
        };
        self.changes.put(UrlStateChange {
            key,
            origin,
            before,
            now,
        });
        Ok(())
    }
}

fn text(bytes: &UserKey) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}
