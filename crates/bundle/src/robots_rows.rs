//! Lists the archived responses to requests for robots.txt with their texts. They document the
//! rules in force during the crawl.

use std::path::Path;

use crawl_archive::rows::WarcRecordLocation;
use crawl_archive::{FOLDER, ReadError, Timestamp, WarcReader, WarcRecord};
use crawl_records::decoded_body;
use serde::Serialize;

use crate::archive_check::warc_names;
use crate::error::VerificationRunError;

/// Maximum bytes of a robots.txt's text in a bundle: twice the maximum that is fetched.
/// Beyond the limit: its end is left out.
const MAX_TEXT_BYTES: usize = 2 << 20;

/// A row of `robots.jsonl`: an archived response to a request for robots.txt, with its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RobotsRow {
    /// The requested URL.
    pub(crate) url: String,
    /// The origin whose rules the response contains. `None` if it is the origin of `url`.
    pub(crate) of: Option<String>,
    pub(crate) fetched_at: Timestamp,
    pub(crate) status: Option<u16>,
    /// `robots` (a robots.txt), `hop` (a redirect on the way to a robots.txt) or `tdmrep`.
    pub(crate) purpose: String,
    /// The decoded text of the response; `None` if its body can't be decoded.
    pub(crate) text: Option<String>,
    pub(crate) warc: WarcRecordLocation,
}

/// Calls `each` for every archived response to a request for robots.txt or `tdmrep.json`, in the
/// order of the archive.
pub(crate) fn each_robots_row<E: From<VerificationRunError>>(
    dir: &Path,
    mut each: impl FnMut(&RobotsRow) -> Result<(), E>,
) -> Result<(), E> {
    for name in warc_names(dir)? {
        let path = dir.join(FOLDER).join(&name);
        let records =
            WarcReader::open(&path).map_err(|error| VerificationRunError::of(&path, error))?;
        let mut response: Option<WarcRecord> = None;
        for record in records {
            let record = match record {
                Ok(record) => record,
                Err(ReadError::Io { file, source }) => {
                    return Err(VerificationRunError::Read { path: file, source }.into());
                }
                // Skip a damaged record, which the archive check reports.
                Err(_) => continue,
            };
            match (record.kind(), &response) {
                ("response", _) => response = Some(record),
                ("metadata", Some(answer)) => {
                    if let Some(row) = row_of(&name, answer, &record) {
                        each(&row)?;
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Returns the row of a response, or `None` if its metadata record does not mark it as a response
/// to a request for rules.
fn row_of(name: &str, answer: &WarcRecord, metadata: &WarcRecord) -> Option<RobotsRow> {
    if metadata.field("WARC-Concurrent-To") != answer.field("WARC-Record-ID") {
        return None;
    }
    let fields = String::from_utf8_lossy(&metadata.block);
    let field = |name: &str| {
        let mut fields = fields.lines().filter_map(|line| line.split_once(": "));
        fields
            .find(|(found, _)| *found == name)
            .map(|(_, value)| value.to_owned())
    };
    let purpose = field("purpose")?;
    if !matches!(purpose.as_str(), "robots" | "hop" | "tdmrep") {
        return None;
    }
    let http = answer.http()?;
    let text = decoded_body(&http).map(|body| {
        let body = &body[..body.len().min(MAX_TEXT_BYTES)];
        String::from_utf8_lossy(body).into_owned()
    });
    Some(RobotsRow {
        url: answer.url()?.to_owned(),
        of: field("of"),
        fetched_at: answer.date()?,
        status: http.status(),
        purpose,
        text,
        warc: WarcRecordLocation {
            file: name.to_owned(),
            offset: answer.offset,
        },
    })
}
