//! Finds the round of a capture by its time. Rounds don't overlap in time.

use std::collections::BTreeMap;
use std::path::Path;

use crawl_archive::Timestamp;
use crawl_records::{RecordsError, pages, round_of_last_run};

use crate::error::WaczError;

/// The fetch time of each round's last page, in milliseconds since 1970 UTC.
pub(crate) struct RoundEndTimes {
    ends: BTreeMap<u32, u64>,
    /// The crawl's last round, even if no page was visited in it. 0 if no round has begun.
    last: u32,
}

/// The time span whose captures are packaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PackagedTimeSpan {
    /// Captures up to and including this millisecond (since 1970 UTC) belong to earlier rounds.
    after: Option<u64>,
    /// Captures after this millisecond (since 1970 UTC) belong to later rounds.
    until: Option<u64>,
}

impl RoundEndTimes {
    /// Reads the times of all rounds from the page rows.
    pub(crate) fn read(dir: &Path) -> Result<RoundEndTimes, WaczError> {
        let mut ends = BTreeMap::new();
        for row in pages(dir)? {
            match row {
                Ok(row) => {
                    let end = ends.entry(row.round).or_default();
                    *end = row.fetched_at.as_millis().max(*end);
                }
                Err(RecordsError::Row { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let visited = ends.keys().last().copied().unwrap_or(0);
        let last = round_of_last_run(dir)?.unwrap_or(0).max(visited);
        Ok(RoundEndTimes { ends, last })
    }

    /// Returns the numbers of the packaged rounds: `wanted` if the crawl has this round, or all
    /// rounds if `wanted` is `None`.
    pub(crate) fn numbers(&self, wanted: Option<u32>) -> Vec<u32> {
        let is_wanted = |round: &&u32| wanted.is_none_or(|wanted| wanted == **round);
        self.ends.keys().filter(is_wanted).copied().collect()
    }

    /// Returns the time span of a round. Requests after the round's last page, for example for a
    /// robots.txt, belong to the next round, if there is one.
    pub(crate) fn span(&self, round: u32) -> Result<PackagedTimeSpan, WaczError> {
        let until = self.ends.get(&round).ok_or(match self.last {
            last if (1..=last).contains(&round) => WaczError::EmptyRound(round),
            last => WaczError::NoRound { round, last },
        })?;
        let has_next = self.ends.range(round + 1..).next().is_some();
        Ok(PackagedTimeSpan {
            after: self.ends.range(..round).next_back().map(|(_, end)| *end),
            until: has_next.then_some(*until),
        })
    }

    /// Returns the round that a capture belongs to. `None` if the capture is later than the last
    /// page.
    pub(crate) fn of(&self, date: Timestamp) -> Option<u32> {
        let mut rounds = self.ends.iter();
        let round = rounds.find(|(_, end)| date.as_millis() <= **end);
        round.map(|(number, _)| *number)
    }
}

impl PackagedTimeSpan {
    /// Returns true if the span includes a capture of this time.
    pub(crate) fn holds(self, date: Timestamp) -> bool {
        let millis = date.as_millis();
        self.after.is_none_or(|after| after < millis)
            && self.until.is_none_or(|until| millis <= until)
    }

    /// Returns true if the span covers only a part of the crawl.
    pub(crate) fn is_limited(self) -> bool {
        self != PackagedTimeSpan::default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crawl_archive::Timestamp;

    use super::{PackagedTimeSpan, RoundEndTimes};

    #[test]
    fn rounds_divide_the_time_of_a_crawl() {
        let rounds = RoundEndTimes {
            ends: BTreeMap::from([(1, 10), (3, 30), (4, 40)]),
            last: 5,
        };
        let at = |millis: u64| Timestamp::from_micros(millis * 1000 + 999);
        let check = |millis: u64, round: Option<u32>| {
            assert_eq!(rounds.of(at(millis)), round, "{millis}");
            for wanted in [1, 3, 4] {
                // After the last page, `of` returns `None`, but the span of the last round includes
                // the captures.
                let holds = round.unwrap_or(4) == wanted;
                assert_eq!(rounds.span(wanted).unwrap().holds(at(millis)), holds);
            }
        };
        check(0, Some(1));
        check(10, Some(1));
        check(11, Some(3));
        check(30, Some(3));
        check(40, Some(4));
        check(41, None);
        assert_eq!(rounds.numbers(None), [1, 3, 4]);
        for (round, expected) in [
            (0, "there is no round 0: the last one is round 5"),
            (2, "no page was visited in round 2"),
            (5, "no page was visited in round 5"),
            (6, "there is no round 6: the last one is round 5"),
        ] {
            assert_eq!(rounds.span(round).unwrap_err().to_string(), expected);
        }
        assert!(!PackagedTimeSpan::default().is_limited() && rounds.span(1).unwrap().is_limited());
    }
}
