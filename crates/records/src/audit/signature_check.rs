//! Verifies the signatures of archived requests.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use crawl_archive::{FOLDER, ReadError, Timestamp, WarcReader, WarcRecord, strip_warc_suffix};
use crawl_identity::{
    KeyDirectory, LIFETIME, SeenNonces, SignableMessage, SignatureConditions, SignatureFault,
    SignatureVerdict, verify,
};
use crawl_weburl::canonicalize;

use super::audit_findings::{AuditCheckResult, AuditFindings, CitedRowFile};
use super::readable;
use super::robots_exchanges::key;
use crate::error::RecordsError;
use crate::row_file_reader::requests;

/// Maximum seconds from the start of a request, as in its row, to its signature. The crawl looks up
/// the host's address in between.
const DELAY: u64 = 60;
/// A key of [`AuditReport::undecided`](super::AuditReport::undecided).
pub(super) const UNKNOWN_SIGNER: &str = "a signature whose key is not known";
/// A key of [`AuditReport::undecided`](super::AuditReport::undecided).
pub(super) const CLOCK_STEP: &str = "a signature whose time differs from that of its row";

/// Returns the request in a WARC record in the form that its signature covers. `None` if the record
/// is not an HTTP request.
#[must_use]
pub fn signed_message(record: &WarcRecord) -> Option<SignableMessage> {
    if record.kind() != "request" {
        return None;
    }
    let http = record.http()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let line = text(http.start_line);
    let mut words = line.split(' ');
    let scheme = record.url()?.split_once(':')?.0;
    let fields = http.fields.iter();
    Some(SignableMessage {
        method: words.next()?.to_owned(),
        target: words.next()?.to_owned(),
        scheme: scheme.to_owned(),
        authority: text(http.field("host")?),
        fields: fields
            .map(|(name, value)| (text(name), text(value)))
            .collect(),
        is_response: false,
    })
}

/// Verifies the signatures of the archived requests whose rows say that they were signed. Returns
/// the number of requests by the key that their signature names. If `known` is empty, only counts
/// the requests.
pub(super) fn check(
    dir: &Path,
    known: &[KeyDirectory],
    findings: &mut AuditFindings,
) -> Result<BTreeMap<String, u64>, RecordsError> {
    let mut signers = BTreeMap::new();
    let mut signed: HashMap<u64, (u64, u64)> = HashMap::new();
    let mut rows = requests(dir)?;
    while let Some(row) = rows.next() {
        if let Some(row) = readable(row)?.filter(|row| row.signed) {
            signed.insert(key(&row.url, row.start), (row.start, rows.line()));
        }
    }
    let folder = dir.join(FOLDER);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) if !signed.is_empty() => entries,
        _ => return Ok(signers),
    };
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.retain(|path| strip_warc_suffix(&path.to_string_lossy()).is_some());
    files.sort();
    let mut seen = SeenNonces::default();
    for path in files {
        for record in WarcReader::open(&path)? {
            let record = match record {
                Ok(record) => record,
                Err(why @ ReadError::Io { .. }) => return Err(why.into()),
                Err(ReadError::TooLong { .. }) => continue,
                // Don't report damaged records here, because `crawl verify` reports them.
                Err(_) => break,
            };
            let begun = record.date().map(Timestamp::as_millis);
            let (Some(url), Some(begun)) = (record.url(), begun) else {
                continue;
            };
            let row = signed
                .get(&key(url, begun))
                .filter(|(start, _)| *start == begun);
            if let (Some((_, line)), Some(message)) = (row, signed_message(&record)) {
                let verdicts = verdicts(&message, url, known, begun / 1000, &mut seen);
                for keyid in verdicts.iter().filter_map(|verdict| verdict.keyid.clone()) {
                    *signers.entry(keyid).or_default() += 1;
                }
                if !known.is_empty() {
                    let rows = [(CitedRowFile::Requests, *line)];
                    findings.settle("signatures", &message.authority, judge(&verdicts), &rows);
                }
            }
        }
    }
    Ok(signers)
}

/// Verifies the signatures of a request for `url` that began at `at`, in seconds since 1970.
fn verdicts(
    message: &SignableMessage,
    url: &str,
    known: &[KeyDirectory],
    at: u64,
    seen: &mut SeenNonces,
) -> Vec<SignatureVerdict> {
    let terms = SignatureConditions {
        at,
        before: 1,
        after: DELAY,
        max_lifetime: LIFETIME,
    };
    let mut verdicts = verify(message, known, &terms);
    let url = canonicalize(None, url).ok();
    let authority = message.authority();
    let is_own = url.is_none_or(|url| url.as_url().authority() == authority);
    for verdict in &mut verdicts {
        if !is_own {
            verdict.reject_host(&authority);
        }
        seen.judge(verdict);
    }
    verdicts
}

fn judge(verdicts: &[SignatureVerdict]) -> AuditCheckResult {
    let mut faults = verdicts
        .iter()
        .filter_map(|verdict| verdict.result.as_ref().err());
    match (verdicts.is_empty(), faults.next()) {
        (true, _) => {
            AuditCheckResult::Broke("signature", "the archived request isn't signed".to_owned())
        }
        (_, None) => AuditCheckResult::Kept,
        (_, Some(SignatureFault::UnknownAgent(_) | SignatureFault::UnknownKey { .. })) => {
            AuditCheckResult::Undecided(UNKNOWN_SIGNER)
        }
        // The times of rows come from a clock that ignores changes of the system clock during a
        // run, but the times of signatures come from the system clock. So such a change makes valid
        // signatures seem too early or too late.
        (_, Some(SignatureFault::Future(_) | SignatureFault::Expired(_))) => {
            AuditCheckResult::Undecided(CLOCK_STEP)
        }
        (_, Some(fault)) => {
            AuditCheckResult::Broke("signature", format!("the signature doesn't hold: {fault}"))
        }
    }
}
