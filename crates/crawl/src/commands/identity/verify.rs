//! `crawl identity verify`: lists the signed requests in a log and their signers.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;

use crawl_archive::{ReadError, WarcReader};
use crawl_identity::{Directory, Message, PublicKey, Verdict, verify, verify_document};
use crawl_records::signed_message;
use serde_json::json;

use super::log_line::{self, LoggedRequest};
use crate::error::{BREACH, CommandError, FINISHED, NOTHING_DONE, unreadable};
use crate::identity::{KeysOf, published_keys};
use crate::terminal::print;

/// Seconds by which the clocks of crawler and server may differ, and by which a log may be late.
const LEEWAY: u64 = 60;
/// Number of bytes at the start of a file that show its kind.
const MAGIC_BYTES: usize = 16;
/// Maximum bytes of a line.
/// Beyond the limit: the line is skipped.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// Counts of the requests and signatures in the logs.
#[derive(Default)]
struct Found {
    requests: u64,
    unsigned: u64,
    /// Number of signatures that hold, by agent and key.
    valid: BTreeMap<(String, String), u64>,
    invalid: u64,
    /// Number of signatures whose request has no time, so that their age isn't known.
    undated: u64,
    /// Number of lines that aren't requests.
    skipped: u64,
    /// With `--json`, a line per signature. Otherwise, a line per invalid signature.
    lines: String,
    as_json: bool,
    keys: Vec<Directory>,
}

pub(super) fn run(
    logs: &[impl AsRef<Path>],
    keys: &[KeysOf],
    as_json: bool,
) -> Result<u8, CommandError> {
    let mut found = Found {
        as_json,
        ..Found::default()
    };
    found.keys = published_keys(keys)?;
    let all: Vec<PublicKey> = found
        .keys
        .iter()
        .flat_map(Directory::keys)
        .cloned()
        .collect();
    let mut documents = Vec::new();
    for log in logs {
        documents.extend(found.read(log.as_ref(), &all)?);
    }
    let is_broken = documents.iter().any(|document| !document.holds);
    let signed = found.valid.values().sum::<u64>() + found.invalid;
    let words: String = documents
        .into_iter()
        .map(|document| document.words)
        .collect();
    print((words + &found.text()).as_bytes())?;
    Ok(match (found.invalid > 0 || is_broken, signed) {
        (true, _) => BREACH,
        (false, 0) if found.requests > 0 => NOTHING_DONE,
        _ => FINISHED,
    })
}

/// A signed document and whether its signature holds.
struct Document {
    holds: bool,
    words: String,
}

impl Found {
    /// Reads a log, or verifies a document.
    fn read(&mut self, path: &Path, keys: &[PublicKey]) -> Result<Option<Document>, CommandError> {
        let failed = |why: std::io::Error| unreadable(path, &why);
        let input: Box<dyn Read> = match path.as_os_str() == "-" {
            true => Box::new(std::io::stdin()),
            false => Box::new(File::open(path).map_err(failed)?),
        };
        let mut input = BufReader::new(input);
        let magic = input.fill_buf().map_err(failed)?;
        let magic = magic[..magic.len().min(MAGIC_BYTES)].trim_ascii_start();
        if magic.starts_with(&[0x1f, 0x8b]) {
            self.read_warc(path)?;
            return Ok(None);
        }
        if magic.starts_with(b"<") {
            let mut text = String::new();
            input.read_to_string(&mut text).map_err(failed)?;
            return Ok(Some(document(path, &text, keys)));
        }
        let before = self.requests;
        let mut line = Vec::new();
        // A line that is longer than the maximum is read as several lines, none of which is JSON.
        while (&mut input)
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)
            .map_err(failed)?
            > 0
        {
            match log_line::read(&String::from_utf8_lossy(&line)) {
                Some(request) => self.judge(&request),
                None => self.skipped += 1,
            }
            line.clear();
        }
        match self.requests == before && self.skipped > 0 {
            false => Ok(None),
            true => Err(CommandError::usage(format!(
                "`{}` has no line that is a request in JSON",
                path.display()
            ))
            .hint("log the header fields of requests as JSON: see docs/identity.md")),
        }
    }

    fn read_warc(&mut self, path: &Path) -> Result<(), CommandError> {
        let failed =
            |why: ReadError| CommandError::disk(format!("can't read `{}`: {why}", path.display()));
        for record in WarcReader::open(path).map_err(failed)? {
            let record = match record {
                Err(ReadError::TooLong { .. }) => continue,
                record => record.map_err(failed)?,
            };
            if let Some(message) = signed_message(&record) {
                let at = record.date().map(|date| date.as_millis() / 1000);
                self.judge(&LoggedRequest { message, at });
            }
        }
        Ok(())
    }

    fn judge(&mut self, request: &LoggedRequest) {
        self.requests += 1;
        // A request without a time is judged as of the time of its signature.
        let mut verdicts = verify(
            &request.message,
            &self.keys,
            request.at.unwrap_or(0),
            LEEWAY,
        );
        if request.at.is_none() {
            let created = verdicts.iter().filter_map(|verdict| verdict.created).max();
            verdicts = verify(&request.message, &self.keys, created.unwrap_or(0), LEEWAY);
            self.undated += verdicts.len() as u64;
        }
        self.unsigned += u64::from(verdicts.is_empty());
        for verdict in verdicts {
            self.note(&request.message, request.at, &verdict);
        }
    }

    fn note(&mut self, message: &Message, at: Option<u64>, verdict: &Verdict) {
        let agent = verdict.agent.clone().unwrap_or_default();
        let keyid = verdict.keyid.clone().unwrap_or_default();
        let target = format!("{}{}", message.authority, message.target);
        let fault = verdict.result.as_ref().err().map(ToString::to_string);
        if self.as_json {
            let line = json!({
                "url": target, "at": at, "agent": agent, "keyid": keyid,
                "created": verdict.created, "valid": fault.is_none(), "fault": fault,
            });
            self.lines.push_str(&format!("{line}\n"));
        }
        match fault {
            None => *self.valid.entry((agent, keyid)).or_default() += 1,
            Some(fault) => {
                self.invalid += 1;
                if !self.as_json {
                    let line = format!("invalid    {target}: {fault}\n");
                    self.lines.push_str(&crawl_weburl::safe_lines(&line));
                }
            }
        }
    }

    /// Returns the output: lines of JSON, or a summary.
    fn text(&self) -> String {
        if self.as_json || self.requests == 0 {
            return self.lines.clone();
        }
        let valid = self.valid.values().sum::<u64>();
        let mut text = format!(
            "requests   {}\nunsigned   {}\nvalid      {valid}\n",
            self.requests, self.unsigned
        );
        for ((agent, keyid), count) in &self.valid {
            let line = format!("           {count} by {agent}, key {keyid}\n");
            text.push_str(&crawl_weburl::safe_lines(&line));
        }
        text.push_str(&format!("invalid    {}\n", self.invalid));
        if self.undated > 0 {
            text.push_str(&format!(
                "undated    {} signatures on requests without a time: their age wasn't checked\n",
                self.undated
            ));
        }
        if self.skipped > 0 {
            text.push_str(&format!(
                "skipped    {} lines that aren't requests\n",
                self.skipped
            ));
        }
        text + &self.lines
    }
}

fn document(path: &Path, text: &str, keys: &[PublicKey]) -> Document {
    let verdict = verify_document(text, keys);
    let words = match &verdict {
        Ok((keyid, created)) => {
            let at = i64::try_from(*created).ok();
            let at = at.and_then(|at| jiff::Timestamp::from_second(at).ok());
            let at = at.map(|at| at.to_string()).unwrap_or_default();
            format!("signed on {at} with the key {keyid}, and unchanged")
        }
        Err(fault) => fault.to_string(),
    };
    Document {
        holds: verdict.is_ok(),
        words: format!("{}: {words}\n", path.display()),
    }
}
