//! `crawl frontier move`: moves buckets of hosts to another server group (a primary database server
//! with its standbys).

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crawl_shared_frontier::{
    BucketMoveProgress, BucketMoveResult, BucketsToMove, ServerGroupSelector, move_buckets,
};
use serde_json::json;

use super::place_of_crawl;
use crate::cli::args::FrontierPlaceArgs;
use crate::error::shared_frontier::of_shared;
use crate::error::{CommandError, FINISHED};
use crate::shared_frontier::{check_url, credentials};
use crate::terminal::{note, print};

/// Prefix of an argument that selects all buckets of hosts in a server group.
const ALL_OF: &str = "all-of:";

/// Maximum number of buckets of a crawl.
const MAX_BUCKETS: i32 = u16::MAX as i32;

pub(super) fn run(
    buckets: &str,
    to: &str,
    args: &FrontierPlaceArgs,
    as_json: bool,
) -> Result<u8, CommandError> {
    let (urls, crawl) = place_of_crawl(args)?;
    let (wanted, to) = (choice(buckets)?, group(to)?);
    let mut moved = 0_u64;
    let mut report_step = |step| {
        match step {
            BucketMoveProgress::Waiting(buckets) => {
                note(&format!(
                    "waiting for workers to hand over {buckets} buckets"
                ));
            }
            BucketMoveProgress::Moved { .. } => moved += 1,
            _ => {}
        }
        if let (BucketMoveProgress::Moved { .. }, true) = (step, moved.is_multiple_of(64)) {
            note(&format!("{moved} buckets moved so far"));
        }
        ControlFlow::Continue(())
    };
    let done = move_buckets(
        &urls,
        &credentials(),
        &crawl,
        (&wanted, &to),
        &mut report_step,
    );
    let done = done.map_err(|why| of_shared(&why))?;
    let code = match as_json {
        true => print(format!("{:#}\n", object(&done, &crawl)).as_bytes())?,
        false => FINISHED,
    };
    note(&format!(
        "moved {} buckets with {} URLs to group {} ({} were already there)",
        done.moved, done.urls, done.to, done.were_there
    ));
    Ok(code)
}

fn object(done: &BucketMoveResult, crawl: &str) -> serde_json::Value {
    json!({
        "crawl": crawl,
        "group": done.to,
        "buckets_moved": done.moved,
        "buckets_there_before": done.were_there,
        "urls": done.urls,
    })
}

/// Parses a server group, given by its number or by its connection string.
fn group(text: &str) -> Result<ServerGroupSelector, CommandError> {
    match text.parse() {
        Ok(number) => Ok(ServerGroupSelector::Number(number)),
        Err(_) if text.contains("://") => {
            check_url(text)?;
            Ok(ServerGroupSelector::Url(text.to_owned()))
        }
        Err(_) => Err(CommandError::usage(format!("`{text}` isn't a group"))
            .hint("give its URL, or its number in `crawl frontier status`, such as 1")),
    }
}

/// Parses the buckets of hosts to move: numbers and ranges, or all buckets of a server group.
fn choice(text: &str) -> Result<BucketsToMove, CommandError> {
    if let Some(of) = text.strip_prefix(ALL_OF) {
        return Ok(BucketsToMove::AllOf(group(of)?));
    }
    let mut numbers = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.trim().parse(), last.trim().parse()) {
            (Ok(first), Ok(last)) if 0 <= first && first <= last && last < MAX_BUCKETS => {
                numbers.extend(first..=last);
            }
            _ => {
                return Err(CommandError::usage(format!(
                    "`{part}` isn't a bucket or a range of buckets"
                ))
                .hint("give numbers and ranges, such as 0-99,512, or all-of:GROUP"));
            }
        }
    }
    Ok(BucketsToMove::Numbers(numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_named_by_numbers_ranges_or_their_group() {
        let numbers = |of: &[i32]| BucketsToMove::Numbers(of.iter().copied().collect());
        assert_eq!(choice("7").unwrap(), numbers(&[7]));
        assert_eq!(choice("0-2, 9,1-3").unwrap(), numbers(&[0, 1, 2, 3, 9]));
        let all = BucketsToMove::AllOf(ServerGroupSelector::Number(1));
        assert_eq!(choice("all-of:1").unwrap(), all);
        let by_url = BucketsToMove::AllOf(ServerGroupSelector::Url("postgres://db/c".to_owned()));
        assert_eq!(choice("all-of:postgres://db/c").unwrap(), by_url);
        for text in ["", "x", "3-1", "-1", "1-", "0-99999999", "1,,2", "all-of:x"] {
            let refused = choice(text).unwrap_err();
            assert!(refused.hint.is_some(), "{text}");
        }
    }
}
