//! Finds the round of a capture by its place in the archive. Times don't show it, because the clock
//! may have been wrong in a round.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::path::Path;

use crawl_archive::Timestamp;
use crawl_records::{PageRow, RecordsError, pages, round_of_last_run};

use crate::error::WaczError;

/// The rounds of a crawl's captures, from its page rows. Takes about 20 bytes per page row if one
/// round is packaged.
#[derive(Debug, Default)]
pub(crate) struct CaptureRounds {
    /// The round to package; `None` for all rounds.
    wanted: Option<u32>,
    /// For each WARC file, the offset of each round's last page in it.
    ends: HashMap<String, BTreeMap<u32, u64>>,
    /// The round of each page row, by the hash of its URL and time. Empty unless one round is
    /// packaged.
    visits: HashMap<u64, u32>,
    /// The rounds with visited pages.
    visited: BTreeSet<u32>,
    /// The crawl's last round, even if no page was visited in it. 0 if no round has begun.
    last: u32,
}

impl CaptureRounds {
    /// Reads the rounds of all page rows. `wanted` is the round to package; `None` packages all.
    ///
    /// # Errors
    /// [`WaczError::EmptyRound`] or [`WaczError::NoRound`] if no page was visited in the round
    /// `wanted`; I/O errors.
    pub(crate) fn read(dir: &Path, wanted: Option<u32>) -> Result<CaptureRounds, WaczError> {
        let mut rounds = CaptureRounds {
            wanted,
            ..CaptureRounds::default()
        };
        for row in pages(dir)? {
            match row {
                Ok(row) => rounds.add(&row),
                Err(RecordsError::Row { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let visited = rounds.visited.last().copied().unwrap_or(0);
        rounds.last = round_of_last_run(dir)?.unwrap_or(0).max(visited);
        rounds.check_wanted()?;
        Ok(rounds)
    }

    fn add(&mut self, row: &PageRow) {
        self.visited.insert(row.round);
        if self.wanted.is_some() {
            let visit = visit_key(&row.url, row.fetched_at);
            self.visits.insert(visit, row.round);
        }
        if let Some(place) = &row.warc {
            let ends = match self.ends.get_mut(&place.file) {
                Some(ends) => ends,
                None => self.ends.entry(place.file.clone()).or_default(),
            };
            let end = ends.entry(row.round).or_default();
            *end = place.offset.max(*end);
        }
    }

    fn check_wanted(&self) -> Result<(), WaczError> {
        match self.wanted.filter(|round| !self.visited.contains(round)) {
            None => Ok(()),
            Some(round) if (1..=self.last).contains(&round) => Err(WaczError::EmptyRound(round)),
            Some(round) => Err(WaczError::NoRound {
                round,
                last: self.last,
            }),
        }
    }

    /// Returns the numbers of the packaged rounds.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        let visited = self.visited.iter().copied();
        visited.filter(|round| self.includes(*round)).collect()
    }

    /// Returns whether the captures of a round are packaged.
    pub(crate) fn includes(&self, round: u32) -> bool {
        self.wanted.is_none_or(|wanted| wanted == round)
    }

    /// Returns whether the package contains only one round.
    pub(crate) fn is_limited(&self) -> bool {
        self.wanted.is_some()
    }

    /// Returns the round of the response at `offset` of a WARC file: the round of the next page in
    /// the file. A request for robots.txt thus belongs to the round of the pages after it. If no
    /// page follows, returns `previous`, the round of the capture before. If there is none either,
    /// returns the first round with visited pages. `None` if no page was visited.
    pub(crate) fn of(&self, file: &str, offset: u64, previous: Option<u32>) -> Option<u32> {
        let mut ends = self.ends.get(file).into_iter().flatten();
        let next = ends.find(|(_, end)| offset <= **end);
        let next = next.map(|(round, _)| *round);
        next.or(previous).or(self.visited.first().copied())
    }

    /// Returns the round of a visit, given its URL and its time to the millisecond. `None` if no
    /// row has this visit.
    pub(crate) fn of_visit(&self, url: &str, at: Timestamp) -> Option<u32> {
        self.visits.get(&visit_key(url, at)).copied()
    }
}

fn visit_key(url: &str, at: Timestamp) -> u64 {
    BuildHasherDefault::<DefaultHasher>::new().hash_one((url, at.as_millis()))
}

#[cfg(test)]
mod tests {
    use crawl_archive::Timestamp;
    use crawl_records::PageRow;
    use serde_json::json;

    use super::CaptureRounds;

    const URL: &str = "http://e.example/";

    /// Returns the rounds of a crawl whose clock was ahead in round 3.
    fn rounds(wanted: Option<u32>) -> CaptureRounds {
        let mut rounds = CaptureRounds {
            wanted,
            last: 5,
            ..CaptureRounds::default()
        };
        for (round, hour, file, offset) in [
            (1, 1, "a", 10),
            (1, 1, "a", 20),
            (3, 9, "a", 40),
            (3, 9, "b", 10),
            (4, 2, "b", 30),
        ] {
            let row = json!({"url": URL, "fetched_at": format!("2026-11-20T0{hour}:00:00Z"),
                "status": 200, "ms": 1, "bytes": 0, "depth": 0, "round": round,
                "warc": {"file": file, "offset": offset}});
            let row: PageRow = serde_json::from_value(row).unwrap();
            rounds.add(&row);
        }
        rounds
    }

    #[test]
    fn the_place_of_a_capture_decides_its_round() {
        let rounds = rounds(Some(3));
        for (file, offset, previous, round) in [
            ("a", 0, None, 1),
            ("a", 20, Some(1), 1),
            ("a", 21, Some(1), 3),
            ("a", 41, Some(3), 3),
            ("b", 0, Some(3), 3),
            ("b", 30, Some(3), 4),
            ("b", 31, Some(4), 4),
            ("c", 0, Some(4), 4),
            ("c", 0, None, 1),
        ] {
            let actual = rounds.of(file, offset, previous);
            assert_eq!(actual, Some(round), "{file} {offset} {previous:?}");
        }
        assert_eq!(CaptureRounds::default().of("a", 0, None), None);
        let visit = |time: &str| rounds.of_visit(URL, Timestamp::parse(time).unwrap());
        assert_eq!(visit("2026-11-20T09:00:00.000123Z"), Some(3));
        assert_eq!(visit("2026-11-20T02:00:00Z"), Some(4));
        assert_eq!(visit("2026-11-20T08:00:00Z"), None);
    }

    #[test]
    fn a_packaged_round_has_pages() {
        assert_eq!(rounds(None).numbers(), [1, 3, 4]);
        assert_eq!(rounds(Some(3)).numbers(), [3]);
        rounds(Some(4)).check_wanted().unwrap();
        for (round, expected) in [
            (0, "there is no round 0: the last one is round 5"),
            (2, "no page was visited in round 2"),
            (5, "no page was visited in round 5"),
            (6, "there is no round 6: the last one is round 5"),
        ] {
            let error = rounds(Some(round)).check_wanted().unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
