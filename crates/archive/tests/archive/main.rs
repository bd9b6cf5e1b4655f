//! Tests of records as bytes, and of the archive folder across crashes and restarts.

#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test that panics fails the test"
)]
#![allow(
    clippy::needless_pass_by_value,
    reason = "`expect![..]` is written in the call"
)]

mod archive_folder;
mod sample_captures;
mod warc_record_bytes;
