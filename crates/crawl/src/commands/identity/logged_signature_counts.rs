//! Counts the verdicts on signatures, and prints them.

use std::collections::BTreeMap;

use crawl_identity::{SignatureBaseError, SignatureFault, SignatureVerdict};
use crawl_weburl::safe_lines;
use serde_json::json;

use super::logged_request::LoggedRequest;
use crate::error::CommandError;
use crate::terminal::print;

/// Maximum invalid signatures listed one by one.
/// Beyond the limit: only counted; `--json` prints all.
const MAX_LISTED: u64 = 100;
/// Number of bytes of JSON lines to collect before they are printed.
const PRINT_AT: usize = 1 << 16;
/// Maximum signers listed one by one.
/// Beyond the limit: counted together.
const MAX_SIGNERS: usize = 1000;

/// Numbers of requests and signatures in the logs, by verdict.
#[derive(Default)]
pub(super) struct LoggedSignatureCounts {
    pub(super) requests: u64,
    unsigned: u64,
    /// Number of signatures that hold, by agent and key.
    valid: BTreeMap<(String, String), u64>,
    /// Number of signatures that don't hold.
    pub(super) invalid: u64,
    /// Number of signatures that don't hold, by the name of the fault.
    faults: BTreeMap<&'static str, u64>,
    /// Number of signatures that can't be judged, by reason. For example, the signer's key is not
    /// in `--keys`.
    unknown: BTreeMap<String, u64>,
    /// Number of signatures of unknown age, because the log has no time for their request.
    undated: u64,
    /// Number of lines that don't describe a request.
    pub(super) skipped: u64,
    /// With `--json`, lines of JSON that are not printed yet. Otherwise, a line for each invalid
    /// signature.
    lines: String,
    as_json: bool,
    /// Whether `--host` was given. Without it, signatures for any host are valid.
    hosts_given: bool,
}

impl LoggedSignatureCounts {
    pub(super) fn new(as_json: bool, hosts_given: bool) -> LoggedSignatureCounts {
        LoggedSignatureCounts {
            as_json,
            hosts_given,
            ..LoggedSignatureCounts::default()
        }
    }

    /// Returns the number of signatures that hold.
    pub(super) fn valid(&self) -> u64 {
        self.valid.values().sum()
    }

    /// Counts a request and the verdicts on its signatures.
    pub(super) fn note(
        &mut self,
        request: &LoggedRequest,
        verdicts: &[SignatureVerdict],
    ) -> Result<(), CommandError> {
        self.requests += 1;
        self.unsigned += u64::from(verdicts.is_empty());
        if request.at.is_none() {
            self.undated += verdicts.len() as u64;
        }
        for verdict in verdicts {
            self.note_signature(request, verdict);
        }
        if self.as_json && self.lines.len() >= PRINT_AT {
            print(std::mem::take(&mut self.lines).as_bytes())?;
        }
        Ok(())
    }

    fn note_signature(&mut self, request: &LoggedRequest, verdict: &SignatureVerdict) {
        let agent = verdict.agent.clone().unwrap_or_default();
        let keyid = verdict.keyid.clone().unwrap_or_default();
        let fault = verdict.result.as_ref().err();
        let is_undecided = |fault: &SignatureFault| match fault {
            // A missing field is not a fault if the log lacks some fields: the request itself may
            // have had the field.
            SignatureFault::Base(SignatureBaseError::Missing(_)) => !request.is_whole,
            fault => fault.is_undecided(),
        };
        let outcome = match fault {
            None => "valid",
            Some(fault) if is_undecided(fault) => "unknown",
            Some(_) => "invalid",
        };
        let target = format!("{}{}", request.message.authority, request.message.target);
        if self.as_json {
            let line = json!({
                "url": target, "at": request.at, "agent": agent, "keyid": keyid,
                "created": verdict.created, "valid": fault.is_none(), "outcome": outcome,
                "reason": fault.map(SignatureFault::name), "fault": fault.map(ToString::to_string),
            });
            self.lines.push_str(&format!("{line}\n"));
        }
        match (outcome, fault) {
            (_, None) => {
                let signer = match self.valid.len() < MAX_SIGNERS {
                    true => (agent, keyid),
                    false => ("other signers".to_owned(), "..".to_owned()),
                };
                *self.valid.entry(signer).or_default() += 1;
            }
            ("unknown", Some(fault)) => {
                let missing = match self.unknown.len() < MAX_SIGNERS {
                    true => fault.to_string(),
                    false => "other reasons".to_owned(),
                };
                *self.unknown.entry(missing).or_default() += 1;
            }
            (_, Some(fault)) => {
                self.invalid += 1;
                *self.faults.entry(fault.name()).or_default() += 1;
                if !self.as_json && self.invalid <= MAX_LISTED {
                    let line = format!("invalid    {target}: {fault}\n");
                    self.lines.push_str(&safe_lines(&line));
                }
            }
        }
    }

    /// Returns the rest of the output: lines of JSON, or a summary.
    pub(super) fn text(&self) -> String {
        if self.as_json || self.requests == 0 {
            return self.lines.clone();
        }
        let mut text = format!(
            "requests   {}\nunsigned   {}\nvalid      {}\n",
            self.requests,
            self.unsigned,
            self.valid()
        );
        let mut push = |line: String| text.push_str(&safe_lines(&format!("{line}\n")));
        for ((agent, keyid), count) in &self.valid {
            push(format!("           {count} by {agent}, key {keyid}"));
        }
        push(format!("invalid    {}", self.invalid));
        for (name, count) in &self.faults {
            push(format!("           {count} {name}"));
        }
        push(format!("unknown    {}", self.unknown.values().sum::<u64>()));
        for (missing, count) in &self.unknown {
            push(format!("           {count}: {missing}"));
        }
        if self.undated > 0 {
            push(format!(
                "undated    {} signatures on requests without a time: their age wasn't checked",
                self.undated
            ));
        }
        if self.skipped > 0 {
            push(format!(
                "skipped    {} lines that aren't requests",
                self.skipped
            ));
        }
        let signed = self.valid() + self.invalid;
        if !self.hosts_given && signed > 0 {
            push("hosts      not checked: give your host names with --host".to_owned());
        }
        text += &self.lines;
        match self.invalid.saturating_sub(MAX_LISTED) {
            0 => text,
            more => text + &format!("and {more} more; --json prints all\n"),
        }
    }
}
