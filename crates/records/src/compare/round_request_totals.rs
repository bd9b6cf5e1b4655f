//! The requests of one round or of all rounds.

use std::path::Path;

use super::request_order::RequestOrderHashes;
use crate::error::RecordsError;
use crate::row_file_reader::{pages, requests};

/// The totals of a round's requests, and their order.
#[derive(Default)]
pub(super) struct RoundRequestTotals {
    pub(super) orders: RequestOrderHashes,
    pub(super) count: u64,
    /// Bytes of the bodies of the round's pages, as received.
    pub(super) page_bytes: u64,
    /// The sum of the response times, in milliseconds.
    pub(super) busy_ms: u64,
    first_start: Option<u64>,
    last_end: u64,
}

impl RoundRequestTotals {
    pub(super) fn read(dir: &Path, round: Option<u32>) -> Result<RoundRequestTotals, RecordsError> {
        let mut result = RoundRequestTotals::default();
        // A round sends no request before all pages of the previous round have arrived. So the
        // times of requests show which round they belong to.
        let (mut after, mut last, mut has_next) = (0, 0, false);
        let mut rows = pages(dir)?;
        while let Some(row) = rows.next_sound() {
            let row = row?;
            let end = row.fetched_at.as_millis().saturating_add(row.ms);
            match round {
                Some(round) if row.round < round => after = after.max(end),
                Some(round) if row.round > round => has_next = true,
                _ => {
                    last = last.max(end);
                    result.page_bytes += row.bytes;
                }
            }
        }
        let until = if has_next { last } else { u64::MAX };
        let mut rows = requests(dir)?;
        while let Some(row) = rows.next_sound() {
            let row = row?;
            let is_within =
                round.is_none() || (after == 0 || row.start > after) && row.start <= until;
            if !is_within {
                continue;
            }
            result.orders.add(&row);
            if row.is_sent() {
                result.count += 1;
                result.busy_ms += row.end.saturating_sub(row.start);
                let first = result.first_start.get_or_insert(row.start);
                *first = row.start.min(*first);
                result.last_end = result.last_end.max(row.end);
            }
        }
        Ok(result)
    }

    /// Returns the milliseconds from the start of the first request to the end of the last.
    pub(super) fn took_ms(&self) -> u64 {
        let first = self.first_start.unwrap_or(self.last_end);
        self.last_end.saturating_sub(first)
    }
}
