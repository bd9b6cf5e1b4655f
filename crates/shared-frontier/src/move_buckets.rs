//! Moves buckets from one server group of a crawl to another while the crawl runs.
//!
//! Each step is a transaction in one group. A command may be interrupted after any step, and the
//! same command then continues from there.
//!
//! 1. At the source the bucket is marked as moving, so its owner hands it over and no other worker
//!    takes it.
//! 2. Once the bucket is free, the mover becomes its owner there, so that no commit of an earlier
//!    owner can take effect. This does not increase the epoch at the source, which must stay below
//!    the epoch that step 4 sets at the target.
//! 3. At the target the mover claims the bucket's row. Then it checks that the source is unchanged,
//!    removes rows of earlier attempts, and copies the rows part by part. The mover writes only
//!    while it has the claim, so if there are two movers, the last to claim wins.
//! 4. At the target the bucket gets its counts, an epoch above the epochs at source and target, and
//!    the target as its home. From here on the target serves the bucket.
//! 5. All other groups record the new home, the rows at the source are removed, and links that
//!    arrived at the source in the meantime are forwarded.
//!
//! If groups contradict each other, the bucket's home is the group with the highest epoch that
//! considers itself the home.

mod copied_tables;
mod server_group_move_steps;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crawl_frontier::parts::CommittedUrlCounts;

use self::server_group_move_steps::{BucketBetweenServerGroups, BucketRow, ServerGroupConnection};
use crate::connection_string::ConnectionString;
use crate::database_password::PasswordSources;
use crate::error::SharedCrawlError;
use crate::open::new_life;
use crate::open_groups::find_groups;

/// The number of buckets moved at a time. While a bucket is being moved, its hosts get no requests.
const BUCKETS_AT_ONCE: usize = 64;

/// How often to check whether owners have handed over their buckets.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum attempts to find the server group that serves a bucket.
const MAX_LOOKS: usize = 10;

/// The value of the column `moving_to` while a move is being undone.
const TAKEN_BACK: i32 = -1;

/// The choice of buckets to move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BucketsToMove {
    /// The buckets with these numbers.
    Numbers(BTreeSet<i32>),
    /// All buckets that a server group serves.
    AllOf(ServerGroupSelector),
}

/// Selects a server group of a crawl by its number or by its connection string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerGroupSelector {
    /// The server group's number, from 0.
    Number(i32),
    /// The group's connection string.
    Url(String),
}

/// A progress report of a move: the step that was just made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketMoveProgress {
    /// This many buckets were marked as moving at their source.
    Marked(usize),
    /// The mover waits for the owners of this many buckets to hand them over.
    Waiting(usize),
    /// The mover took the bucket with this number from its source.
    Taken(i32),
    /// The rows of this bucket were copied to the target. No server group serves the bucket now.
    Copied(i32),
    /// The target serves this bucket, but the other server groups don't know it yet.
    Served(i32),
    /// The bucket was moved.
    Moved {
        /// The bucket's number.
        bucket: i32,
        /// The number of URLs in the bucket.
        urls: u64,
    },
}

/// The result of moving buckets to another server group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketMoveResult {
    /// The number of the target server group.
    pub to: i32,
    /// The number of moved buckets.
    pub moved: u64,
    /// The number of buckets that were already at the target.
    pub were_there: u64,
    /// The number of URLs in the moved buckets.
    pub urls: u64,
}

/// Moves buckets of a crawl to another of its server groups. `urls` must name all groups of the
/// crawl. Calls `on_step` after each step. If `on_step` breaks, the move stops after that step, and
/// a later call with the same arguments continues it.
///
/// # Errors
/// [`SharedCrawlError`] gives the reason. Buckets moved so far stay at the target.
pub fn move_buckets(
    urls: &[String],
    credentials: &PasswordSources,
    crawl: &str,
    (wanted, to): (&BucketsToMove, &ServerGroupSelector),
    on_step: &mut dyn FnMut(BucketMoveProgress) -> ControlFlow<()>,
) -> Result<BucketMoveResult, SharedCrawlError> {
    let groups = find_groups(urls, credentials, crawl)?;
    let buckets = groups.first().map_or(0, |group| group.crawl.buckets);
    let groups = groups.into_iter().map(ServerGroupConnection::open);
    let groups: Vec<ServerGroupConnection> = groups.collect::<Result<_, _>>()?;
    let to = number_of(&groups, to, crawl)?;
    let mut mover = BucketMover {
        life: new_life("crawl frontier move"),
        groups,
        to,
        on_step,
        moved: BucketMoveResult {
            to,
            ..BucketMoveResult::default()
        },
    };
    let wanted = mover.wanted(wanted, crawl, buckets)?;
    for part in wanted.chunks(BUCKETS_AT_ONCE) {
        if mover.move_part(part)?.is_break() {
            break;
        }
    }
    Ok(mover.moved)
}

fn number_of(
    groups: &[ServerGroupConnection],
    name: &ServerGroupSelector,
    crawl: &str,
) -> Result<i32, SharedCrawlError> {
    let group = match name {
        ServerGroupSelector::Number(number) => {
            groups.iter().find(|candidate| candidate.number == *number)
        }
        ServerGroupSelector::Url(url) => {
            let address = ConnectionString::parse(url)?.address();
            groups
                .iter()
                .find(|candidate| *candidate.address() == address)
        }
    };
    group
        .map(|candidate| candidate.number)
        .ok_or_else(|| SharedCrawlError::NoSuchGroup {
            crawl: crawl.to_owned(),
            group: match name {
                ServerGroupSelector::Number(number) => number.to_string(),
                ServerGroupSelector::Url(url) => ConnectionString::parse(url)
                    .map(|url| url.address())
                    .unwrap_or_default(),
            },
        })
}

struct BucketMover<'a> {
    /// The unique id of this move.
    life: String,
    groups: Vec<ServerGroupConnection>,
    to: i32,
    on_step: &'a mut dyn FnMut(BucketMoveProgress) -> ControlFlow<()>,
    moved: BucketMoveResult,
}

/// A bucket's row in each server group, by the group's number.
type RowsByGroup = BTreeMap<i32, BucketRow>;

impl BucketMover<'_> {
    fn group(&self, number: i32) -> Result<&ServerGroupConnection, SharedCrawlError> {
        let group = self.groups.iter().find(|group| group.number == number);
        group.ok_or_else(|| SharedCrawlError::NoSuchGroup {
            crawl: String::new(),
            group: number.to_string(),
        })
    }

    fn report(&mut self, step: BucketMoveProgress) -> ControlFlow<()> {
        (self.on_step)(step)
    }

    /// Returns the rows of buckets in all server groups.
    fn rows(&self, buckets: &[i32]) -> Result<BTreeMap<i32, RowsByGroup>, SharedCrawlError> {
        let mut all: BTreeMap<i32, RowsByGroup> = BTreeMap::new();
        for group in &self.groups {
            for row in group.rows(buckets)? {
                all.entry(row.b).or_default().insert(group.number, row);
            }
        }
        Ok(all)
    }

    /// Like [`BucketMover::rows`], but reads again if no server group serves a bucket. Groups are
    /// read one after the other, so a bucket that is moved at the same time may seem to have no
    /// home.
    fn settled_rows(
        &self,
        buckets: &[i32],
    ) -> Result<BTreeMap<i32, RowsByGroup>, SharedCrawlError> {
        let mut rows = self.rows(buckets)?;
        for _ in 0..MAX_LOOKS {
            if rows.values().all(|rows| served_by(rows).is_some()) {
                break;
            }
            std::thread::sleep(LOOK_INTERVAL);
            rows = self.rows(buckets)?;
        }
        Ok(rows)
    }

    /// Returns the chosen buckets, in ascending order.
    fn wanted(
        &self,
        wanted: &BucketsToMove,
        crawl: &str,
        buckets: i32,
    ) -> Result<Vec<i32>, SharedCrawlError> {
        match wanted {
            BucketsToMove::Numbers(numbers) => {
                let missing = numbers.iter().find(|b| !(0..buckets).contains(*b));
                match missing {
                    None => Ok(numbers.iter().copied().collect()),
                    Some(bucket) => Err(SharedCrawlError::NoSuchBucket {
                        crawl: crawl.to_owned(),
                        bucket: *bucket,
                        last: buckets - 1,
                    }),
                }
            }
            BucketsToMove::AllOf(group) => {
                let group = number_of(&self.groups, group, crawl)?;
                let all: Vec<i32> = (0..buckets).collect();
                let rows = self.rows(&all)?;
                // Choose each bucket whose row in this server group names the group as its home,
                // even if another group serves the bucket by now.
                let its =
                    |rows: &RowsByGroup| rows.get(&group).is_some_and(|row| row.home == group);
                let its = rows.into_iter().filter(|(_, rows)| its(rows));
                Ok(its.map(|(b, _)| b).collect())
            }
        }
    }

    /// Moves buckets to the target. First completes or undoes earlier, interrupted moves of these
    /// buckets.
    fn move_part(&mut self, buckets: &[i32]) -> Result<ControlFlow<()>, SharedCrawlError> {
        let mut of_sources: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for (b, rows) in self.settled_rows(buckets)? {
            let Some((home, epoch)) = served_by(&rows) else {
                let first = self.group(self.to)?;
                return Err(first.corrupt().into());
            };
            let is_known = rows.values().all(|row| row.home == home);
            if !is_known || home == self.to {
                // An earlier move, perhaps by another command, was interrupted at its last step.
                // Finish that move.
                self.finish(b, home, epoch)?;
            }
            let moving_to = rows.get(&home).and_then(|row| row.moving_to);
            if home != self.to {
                if moving_to == Some(TAKEN_BACK) {
                    // An earlier attempt to undo a move was interrupted.
                    self.take_back(b, home)?;
                }
                of_sources.entry(home).or_default().push(b);
                continue;
            }
            if moving_to.is_some() {
                self.take_back(b, home)?;
            }
            self.moved.were_there += 1;
        }
        for (from, buckets) in of_sources {
            if self.move_from(from, &buckets)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn move_from(
        &mut self,
        from: i32,
        buckets: &[i32],
    ) -> Result<ControlFlow<()>, SharedCrawlError> {
        self.group(from)?.mark(buckets, self.to)?;
        if self
            .report(BucketMoveProgress::Marked(buckets.len()))
            .is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
        let mut waiting_for: Vec<i32> = buckets.to_vec();
        let mut reported_at: Option<Instant> = None;
        while !waiting_for.is_empty() {
            let taken_buckets = self.group(from)?.take(&waiting_for, self.to, &self.life)?;
            waiting_for.retain(|b| taken_buckets.iter().all(|bucket| bucket.b != *b));
            if taken_buckets.is_empty() {
                self.group(from)?.check_marked(&waiting_for, self.to)?;
                if reported_at.is_none_or(|at| at.elapsed() >= REPORT_INTERVAL) {
                    reported_at = Some(Instant::now());
                    if self
                        .report(BucketMoveProgress::Waiting(waiting_for.len()))
                        .is_break()
                    {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                std::thread::sleep(LOOK_INTERVAL);
            }
            for bucket in taken_buckets {
                if self.move_one(from, &bucket)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Moves a bucket that was taken from its source.
    fn move_one(
        &mut self,
        from: i32,
        bucket: &BucketBetweenServerGroups,
    ) -> Result<ControlFlow<()>, SharedCrawlError> {
        let (b, to) = (bucket.b, self.to);
        if self.report(BucketMoveProgress::Taken(b)).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let (source, target) = (self.group(from)?, self.group(to)?);
        if !target.claim(b, &self.life)? || !source.is_as_taken(bucket, to, &self.life)? {
            return Err(SharedCrawlError::BucketMoves {
                bucket: b,
                to: None,
            });
        }
        target.remove_rows(b, &self.life)?;
        source.copy_rows(target, b, &self.life)?;
        let copied = target.count(b)?;
        if copied != bucket.totals && !target.is_claimed(b, &self.life)? {
            // The rows were not copied, because another mover has claimed the bucket's row in the
            // meantime.
            return Err(SharedCrawlError::BucketMoves {
                bucket: b,
                to: None,
            });
        }
        if copied != bucket.totals {
            return Err(SharedCrawlError::BucketDiffers {
                bucket: b,
                from,
                to,
                expected: bucket.totals,
                found: copied,
            });
        }
        if self.report(BucketMoveProgress::Copied(b)).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let served = self.group(to)?.serve(bucket, &self.life)?;
        let Some(epoch) = served else {
            return Err(SharedCrawlError::BucketMoves {
                bucket: b,
                to: None,
            });
        };
        if self.report(BucketMoveProgress::Served(b)).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        self.finish(b, to, epoch)?;
        let urls = sum_of(bucket.totals);
        self.moved.moved += 1;
        self.moved.urls += urls;
        Ok(self.report(BucketMoveProgress::Moved { bucket: b, urls }))
    }

    /// Records in every server group that the group `home` serves a bucket, and removes the
    /// bucket's rows from the other groups.
    fn finish(&self, b: i32, home: i32, epoch: i64) -> Result<(), SharedCrawlError> {
        for group in self.groups.iter().filter(|group| group.number != home) {
            group.learn_home(b, home, epoch)?;
        }
        let target = self.group(home)?;
        for group in self.groups.iter().filter(|group| group.number != home) {
            group.remove_rows(b, "")?;
            group.forward_links(b, target)?;
        }
        Ok(())
    }

    /// Undoes a move, so that the bucket stays at its source.
    fn take_back(&self, b: i32, home: i32) -> Result<(), SharedCrawlError> {
        let home = self.group(home)?;
        // Mark the bucket before claiming its row. A mover that claims the row later sees the mark,
        // and a mover that claimed it earlier loses its claim.
        home.mark_back(b)?;
        for group in self
            .groups
            .iter()
            .filter(|group| group.number != home.number)
        {
            if !group.claim(b, &self.life)? {
                return Err(SharedCrawlError::BucketMoves {
                    bucket: b,
                    to: Some(group.number),
                });
            }
            group.remove_rows(b, &self.life)?;
        }
        home.unmark(b)?;
        Ok(())
    }
}

/// Returns the server group that serves a bucket, with the bucket's epoch, or `None` if no group
/// serves it.
fn served_by(rows: &RowsByGroup) -> Option<(i32, i64)> {
    let serving = rows.iter().filter(|(group, row)| row.home == **group);
    let serving = serving.max_by_key(|(_, row)| row.epoch)?;
    Some((*serving.0, serving.1.epoch))
}

fn sum_of(totals: CommittedUrlCounts) -> u64 {
    totals.pending + totals.deferred + totals.fetched + totals.failed + totals.excluded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[(i32, i32, i64)]) -> RowsByGroup {
        let row = |(group, home, epoch): &(i32, i32, i64)| {
            let row = BucketRow {
                b: 5,
                home: *home,
                moving_to: None,
                epoch: *epoch,
            };
            (*group, row)
        };
        rows.iter().map(row).collect()
    }

    #[test]
    fn of_contradicting_groups_the_one_with_the_highest_epoch_serves() {
        for (found, expected) in [
            (vec![(0, 0, 3), (1, 0, 1)], Some((0, 3))),
            // The bucket was moved from server group 0 to group 1, which group 0 does not know yet.
            (vec![(0, 0, 3), (1, 1, 4)], Some((1, 4))),
            // The bucket was moved back to server group 0, which group 1 does not know yet.
            (vec![(0, 0, 8), (1, 1, 7), (2, 1, 4)], Some((0, 8))),
            (vec![(0, 1, 8), (1, 0, 7)], None),
        ] {
            assert_eq!(served_by(&rows(&found)), expected, "{found:?}");
        }
    }
}
