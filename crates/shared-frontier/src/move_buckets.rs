//! Moving buckets from one group of a crawl to another, while the crawl runs.
//!
//! Each step is a transaction of one group, and each may be the last of a command that is cut: the
//! same command goes on from there.
//!
//! 1. At the source the bucket is marked as moving, so its owner hands it over, and nobody takes it.
//! 2. Once it is free the mover becomes its owner there: no commit of an owner before can take effect.
//!    Its epoch stays: it must not come to the one by which another mover has the target serve it.
//! 3. At the target the mover claims the bucket's row, then looks whether the source is as it was,
//!    removes what an earlier try left, and copies the rows, part by part. It writes only while the
//!    row is its own, so of two movers the one that claimed last is heard.
//! 4. At the target the bucket gets its counts, an epoch above both, and the target as home: from
//!    here on it is served there.
//! 5. All other groups learn of that, the rows at the source are removed, and links that came there
//!    meanwhile are sent on.
//!
//! Where groups contradict each other, the one that says of itself that it serves the bucket, with
//! the highest epoch, is right.

mod copied_tables;
mod move_group;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crawl_frontier::parts::Totals;

use self::move_group::{BucketRow, MoveGroup, Taken};
use crate::connection_string::ConnectionString;
use crate::credentials::Credentials;
use crate::error::OpenError;
use crate::open::new_life;
use crate::open_groups::find_groups;

/// Buckets that are moved at a time: nobody asks their hosts meanwhile.
const BUCKETS_AT_ONCE: usize = 64;

/// How often it is looked whether the owners handed their buckets over, and how often it is told
/// that they did not.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
const TELL_INTERVAL: Duration = Duration::from_secs(10);

/// How often groups are asked again who serves a bucket.
const MAX_LOOKS: usize = 10;

/// Stands for a group in `moving_to` where a move is being taken back.
const TAKEN_BACK: i32 = -1;

/// The buckets that are to be moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BucketChoice {
    /// Those of these numbers.
    Numbers(BTreeSet<i32>),
    /// All that a group serves.
    AllOf(GroupName),
}

/// A group of a crawl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupName {
    /// By its number, from 0.
    Number(i32),
    /// By its connection string.
    Url(String),
}

/// The progress of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveStep {
    /// So many buckets were marked at their source.
    Marked(usize),
    /// So many are waited for, since their owners have not handed them over.
    Waiting(usize),
    /// A bucket was taken from its source.
    Taken(i32),
    /// Its rows are at the target, and nobody serves them.
    Copied(i32),
    /// It is served at the target, and the others do not know yet.
    Served(i32),
    /// It was moved.
    Moved {
        /// Its number.
        bucket: i32,
        /// Its URLs.
        urls: u64,
    },
}

/// Counts of a move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MovedBuckets {
    /// The number of the group that they were moved to.
    pub to: i32,
    /// Buckets that were moved.
    pub moved: u64,
    /// Buckets that were there already.
    pub were_there: u64,
    /// URLs of those that were moved.
    pub urls: u64,
}

/// Moves buckets of a crawl to another of its groups; all of these are named. `told` hears of each
/// step, and may have the move end there: the same call goes on with it.
///
/// # Errors
/// [`OpenError`] says what stands in the way. What was moved until then stays so.
pub fn move_buckets(
    urls: &[String],
    credentials: &Credentials,
    crawl: &str,
    (wanted, to): (&BucketChoice, &GroupName),
    told: &mut dyn FnMut(MoveStep) -> ControlFlow<()>,
) -> Result<MovedBuckets, OpenError> {
    let groups = find_groups(urls, credentials, crawl)?;
    let buckets = groups.first().map_or(0, |group| group.crawl.buckets);
    let groups = groups.into_iter().map(MoveGroup::open);
    let groups: Vec<MoveGroup> = groups.collect::<Result<_, _>>()?;
    let to = number_of(&groups, to, crawl)?;
    let mut mover = Mover {
        life: new_life("crawl frontier move"),
        groups,
        to,
        told,
        moved: MovedBuckets {
            to,
            ..MovedBuckets::default()
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

fn number_of(groups: &[MoveGroup], name: &GroupName, crawl: &str) -> Result<i32, OpenError> {
    let found = match name {
        GroupName::Number(number) => groups.iter().find(|it| it.number == *number),
        GroupName::Url(url) => {
            let address = ConnectionString::parse(url)?.address();
            groups.iter().find(|it| *it.address() == address)
        }
    };
    found
        .map(|it| it.number)
        .ok_or_else(|| OpenError::NoSuchGroup {
            crawl: crawl.to_owned(),
            group: match name {
                GroupName::Number(number) => number.to_string(),
                GroupName::Url(url) => ConnectionString::parse(url)
                    .map(|url| url.address())
                    .unwrap_or_default(),
            },
        })
}

struct Mover<'a> {
    /// Nobody else has it.
    life: String,
    groups: Vec<MoveGroup>,
    to: i32,
    told: &'a mut dyn FnMut(MoveStep) -> ControlFlow<()>,
    moved: MovedBuckets,
}

/// The rows of a bucket by group.
type Rows = BTreeMap<i32, BucketRow>;

impl Mover<'_> {
    fn group(&self, number: i32) -> Result<&MoveGroup, OpenError> {
        let found = self.groups.iter().find(|it| it.number == number);
        found.ok_or_else(|| OpenError::NoSuchGroup {
            crawl: String::new(),
            group: number.to_string(),
        })
    }

    fn tell(&mut self, step: MoveStep) -> ControlFlow<()> {
        (self.told)(step)
    }

    /// The rows of buckets in all groups.
    fn rows(&self, buckets: &[i32]) -> Result<BTreeMap<i32, Rows>, OpenError> {
        let mut all: BTreeMap<i32, Rows> = BTreeMap::new();
        for group in &self.groups {
            for row in group.rows(buckets)? {
                all.entry(row.b).or_default().insert(group.number, row);
            }
        }
        Ok(all)
    }

    /// The same, read anew where no group says that it serves a bucket: groups are asked one after
    /// the other, and it may have been moved between.
    fn settled_rows(&self, buckets: &[i32]) -> Result<BTreeMap<i32, Rows>, OpenError> {
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

    /// The buckets that are meant, in their order.
    fn wanted(
        &self,
        wanted: &BucketChoice,
        crawl: &str,
        buckets: i32,
    ) -> Result<Vec<i32>, OpenError> {
        match wanted {
            BucketChoice::Numbers(numbers) => {
                let missing = numbers.iter().find(|b| !(0..buckets).contains(*b));
                match missing {
                    None => Ok(numbers.iter().copied().collect()),
                    Some(bucket) => Err(OpenError::NoSuchBucket {
                        crawl: crawl.to_owned(),
                        bucket: *bucket,
                        last: buckets - 1,
                    }),
                }
            }
            BucketChoice::AllOf(group) => {
                let group = number_of(&self.groups, group, crawl)?;
                let all: Vec<i32> = (0..buckets).collect();
                let rows = self.rows(&all)?;
                // Those too that were moved, where this group does not know it yet.
                let its = |rows: &Rows| rows.get(&group).is_some_and(|row| row.home == group);
                let its = rows.into_iter().filter(|(_, rows)| its(rows));
                Ok(its.map(|(b, _)| b).collect())
            }
        }
    }

    /// Moves some buckets together.
    fn move_part(&mut self, buckets: &[i32]) -> Result<ControlFlow<()>, OpenError> {
        let mut of_sources: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for (b, rows) in self.settled_rows(buckets)? {
            let Some((home, epoch)) = served_by(&rows) else {
                let first = self.group(self.to)?;
                return Err(first.corrupt().into());
            };
            let is_known = rows.values().all(|row| row.home == home);
            if !is_known || home == self.to {
                // A move before was cut short, or this one was.
                self.finish(b, home, epoch)?;
            }
            let moving_to = rows.get(&home).and_then(|row| row.moving_to);
            if home != self.to {
                if moving_to == Some(TAKEN_BACK) {
                    // That was cut short.
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

    fn move_from(&mut self, from: i32, buckets: &[i32]) -> Result<ControlFlow<()>, OpenError> {
        self.group(from)?.mark(buckets, self.to)?;
        if self.tell(MoveStep::Marked(buckets.len())).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let mut left: Vec<i32> = buckets.to_vec();
        let mut told_at: Option<Instant> = None;
        while !left.is_empty() {
            let taken = self.group(from)?.take(&left, self.to, &self.life)?;
            left.retain(|b| taken.iter().all(|it| it.b != *b));
            if taken.is_empty() {
                self.group(from)?.check_marked(&left, self.to)?;
                if told_at.is_none_or(|at| at.elapsed() >= TELL_INTERVAL) {
                    told_at = Some(Instant::now());
                    if self.tell(MoveStep::Waiting(left.len())).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                std::thread::sleep(LOOK_INTERVAL);
            }
            for bucket in taken {
                if self.move_one(from, &bucket)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Moves a bucket that was taken from its source.
    fn move_one(&mut self, from: i32, bucket: &Taken) -> Result<ControlFlow<()>, OpenError> {
        let (b, to) = (bucket.b, self.to);
        if self.tell(MoveStep::Taken(b)).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let (source, target) = (self.group(from)?, self.group(to)?);
        if !target.claim(b, &self.life)? || !source.is_as_taken(bucket, to, &self.life)? {
            return Err(OpenError::BucketMoves {
                bucket: b,
                to: None,
            });
        }
        target.remove_rows(b, &self.life)?;
        source.copy_rows(target, b, &self.life)?;
        let found = target.count(b)?;
        if found != bucket.totals && !target.is_claimed(b, &self.life)? {
            // Another claimed it meanwhile, so nothing was copied.
            return Err(OpenError::BucketMoves {
                bucket: b,
                to: None,
            });
        }
        if found != bucket.totals {
            return Err(OpenError::BucketDiffers {
                bucket: b,
                from,
                to,
                expected: bucket.totals,
                found,
            });
        }
        if self.tell(MoveStep::Copied(b)).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let served = self.group(to)?.serve(bucket, &self.life)?;
        let Some(epoch) = served else {
            return Err(OpenError::BucketMoves {
                bucket: b,
                to: None,
            });
        };
        if self.tell(MoveStep::Served(b)).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        self.finish(b, to, epoch)?;
        let urls = sum_of(bucket.totals);
        self.moved.moved += 1;
        self.moved.urls += urls;
        Ok(self.tell(MoveStep::Moved { bucket: b, urls }))
    }

    /// Has all groups know who serves a bucket, and none keep rows of it but that one.
    fn finish(&self, b: i32, home: i32, epoch: i64) -> Result<(), OpenError> {
        for group in self.groups.iter().filter(|it| it.number != home) {
            group.learn_home(b, home, epoch)?;
        }
        let target = self.group(home)?;
        for group in self.groups.iter().filter(|it| it.number != home) {
            group.remove_rows(b, "")?;
            group.forward_links(b, target)?;
        }
        Ok(())
    }

    /// Has a bucket stay where it is, that was to be moved away from there.
    fn take_back(&self, b: i32, home: i32) -> Result<(), OpenError> {
        let home = self.group(home)?;
        // First the mark, then the claims: a mover that claims later finds the mark, and one that
        // claimed before has lost its claim.
        home.mark_back(b)?;
        for group in self.groups.iter().filter(|it| it.number != home.number) {
            if !group.claim(b, &self.life)? {
                return Err(OpenError::BucketMoves {
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

/// The group that serves a bucket, and the epoch by which it does.
fn served_by(rows: &Rows) -> Option<(i32, i64)> {
    let serving = rows.iter().filter(|(group, row)| row.home == **group);
    let serving = serving.max_by_key(|(_, row)| row.epoch)?;
    Some((*serving.0, serving.1.epoch))
}

fn sum_of(totals: Totals) -> u64 {
    totals.pending + totals.deferred + totals.fetched + totals.failed + totals.excluded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[(i32, i32, i64)]) -> Rows {
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
    fn of_groups_that_contradict_each_other_the_one_of_the_highest_epoch_serves() {
        for (found, expected) in [
            (vec![(0, 0, 3), (1, 0, 1)], Some((0, 3))),
            // It was moved from 0 to 1, which 0 does not know.
            (vec![(0, 0, 3), (1, 1, 4)], Some((1, 4))),
            // And back to 0, which 1 does not know.
            (vec![(0, 0, 8), (1, 1, 7), (2, 1, 4)], Some((0, 8))),
            (vec![(0, 1, 8), (1, 0, 7)], None),
        ] {
            assert_eq!(served_by(&rows(&found)), expected, "{found:?}");
        }
    }
}
