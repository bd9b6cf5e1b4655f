//! Errors of a shared frontier as user-facing messages.

use std::error::Error as _;

use crawl_shared_frontier::SharedCrawlError;

use super::CommandError;

/// Converts the error of a shared frontier, whose message contains its hint.
pub(crate) fn of_shared(error: &SharedCrawlError) -> CommandError {
    let text = error.to_string();
    let (what, hint) = match text.split_once("\nhint: ") {
        Some((what, hint)) => (what.to_owned(), Some(hint.to_owned())),
        None => (text, None),
    };
    let mut message = what;
    let mut cause = error.source();
    while let Some(why) = cause {
        message = format!("{message}: {why}");
        cause = why.source();
    }
    let refusal = match error {
        SharedCrawlError::Unreachable { .. }
        | SharedCrawlError::ReadOnly { .. }
        | SharedCrawlError::Frontier(_) => CommandError::disk(message),
        _ => CommandError::usage(message),
    };
    CommandError { hint, ..refusal }
}
