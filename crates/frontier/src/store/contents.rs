//! All that a store holds, part by part, for one that moves it elsewhere.

use crawl_weburl::{HostKey, Origin};
use fjall::{Keyspace, Readable as _, UserKey, UserValue};

use super::FjallFrontier;
use super::meta_keys;
use crate::admit_rule::QueuePlace;
use crate::contents::StoredPart;
use crate::error::FrontierError;
use crate::record::{RecordState, UrlRecord};
use crate::visit::StoredVisit;

impl FjallFrontier {
    /// Shows all that is stored but settled URLs, of which the store has no text: a reader that
    /// knows a URL asks for it by [`UrlRecord::settled`]. Pending URLs come in the order of their queues; one
    /// that is leased is pending.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails, and those of `show`.
    pub fn each_part<E: From<FrontierError>>(
        &self,
        show: &mut dyn FnMut(StoredPart) -> Result<(), E>,
    ) -> Result<(), E> {
        self.each_waiting(show)?;
        let tables = &self.tables;
        self.each_row(&tables.hosts, |key, value| {
            let host = text(key).and_then(|text| HostKey::parse(text).ok());
            let host = host.ok_or_else(|| tables.corrupt("a key in hosts"))?;
            let (wake, bytes) = tables.host_value(host.as_str(), value)?;
            show(StoredPart::Host { host, wake, bytes })
        })?;
        self.each_row(&tables.robots, |key, value| {
            let origin = text(key).and_then(|text| Origin::parse(text).ok());
            let origin = origin.ok_or_else(|| tables.corrupt("a key in robots"))?;
            let bytes = value.to_vec();
            show(StoredPart::Robots { origin, bytes })
        })?;
        self.each_row(&tables.visits, |_, value| {
            let visit = StoredVisit::decode(value);
            let visit = visit.ok_or_else(|| tables.corrupt("what is kept of a visit"))?;
            show(StoredPart::Visit(visit))
        })?;
        self.each_row(&tables.meta, |key, value| {
            let name = text(key).and_then(|key| key.strip_prefix(meta_keys::CALLER));
            let Some(name) = name.map(str::to_owned) else {
                return Ok(());
            };
            let bytes = value.to_vec();
            show(StoredPart::Meta { name, bytes })
        })
    }

    fn each_waiting<E: From<FrontierError>>(
        &self,
        show: &mut dyn FnMut(StoredPart) -> Result<(), E>,
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
                    state: RecordState::Pending {
                        attempt: queued.attempt,
                    },
                    place: queued.place,
                    via: queued.via,
                };
                let shown = show(StoredPart::Url {
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
                state: RecordState::Deferred(deferred.exclusion),
                place: QueuePlace {
                    redirects: deferred.redirects,
                    ..QueuePlace::at(deferred.depth)
                },
                via: deferred.via,
            };
            show(StoredPart::Url {
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

fn text(bytes: &UserKey) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}
