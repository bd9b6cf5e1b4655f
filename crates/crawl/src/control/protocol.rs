//! Messages of the control socket: a JSON object on each line.

use std::fmt::Display;

use clap::Subcommand;
use crawl_engine::CrawlPhase;
use serde::{Deserialize, Serialize};

use crate::error::CommandError;
use crate::values::DurationSetting;

/// Maximum length of a line on the control socket, in bytes.
/// Beyond the limit: disconnected.
pub(crate) const MAX_COMMAND_BYTES: usize = 64 * 1024;

/// A command to a running crawl, as typed on the command line and as sent over the socket.
#[derive(Clone, Debug, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum ControlCommand {
    /// Print the state of the crawl as a JSON object
    State {},
    /// Print the state as JSON objects, at most one per second, until the crawl ends
    Watch {},
    /// Send no new requests; those in flight finish
    Pause {},
    /// Resume the crawl, or start its next round if it is waiting for it
    Resume {},
    /// Fetch a URL as if it were a seed
    Add {
        /// A whole URL
        #[arg(value_name = "URL")]
        url: String,
    },
    /// Set the delay between requests to a host, until the program ends
    Delay {
        /// Only this host, on loopback with its port [default: every host]
        #[arg(long, value_name = "HOST")]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
        /// The delay, such as 2s
        #[arg(value_name = "DURATION")]
        delay: DurationSetting,
    },
    /// Reload politeness, exclusions and budgets from the file of --config
    Reload {},
    /// Stop fetching from a host, in later runs too
    Park {
        /// Name of the host, on loopback with its port
        #[arg(value_name = "HOST")]
        host: String,
    },
    /// Resume fetching from a parked host
    Unpark {
        /// Name of the host, on loopback with its port
        #[arg(value_name = "HOST")]
        host: String,
    },
}

impl ControlCommand {
    /// Parses a line.
    ///
    /// # Errors
    /// Why the line is not a command, in words for the sender.
    pub(crate) fn read(line: &[u8]) -> Result<ControlCommand, ControlRefusal> {
        let hint = "send a JSON object on one line, such as {\"do\":\"pause\"}";
        let refused =
            |why: &dyn Display| ControlRefusal::new(format!("not a command: {why}"), hint);
        // Only an object can be a command. Serde would also accept an array, and read the fields by
        // position.
        if line.trim_ascii_start().first() != Some(&b'{') {
            return Err(refused(&"not a JSON object"));
        }
        serde_json::from_slice(line).map_err(|why| refused(&why))
    }
}

/// Why a command was refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ControlRefusal {
    /// The cause, including the offending value.
    pub(crate) error: String,
    /// How to fix the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// Further problems, if a reload of the settings was refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) others: Vec<ControlRefusal>,
}

impl ControlRefusal {
    /// Creates a refusal with a hint.
    pub(crate) fn new(error: impl Into<String>, hint: impl Into<String>) -> ControlRefusal {
        ControlRefusal {
            error: error.into(),
            hint: Some(hint.into()),
            others: Vec::new(),
        }
    }

    /// Converts an error, with its hint and with the other errors that were reported together with
    /// it.
    pub(crate) fn of(error: CommandError) -> ControlRefusal {
        ControlRefusal {
            error: error.message,
            hint: error.hint,
            others: error.others.into_iter().map(ControlRefusal::of).collect(),
        }
    }
}

/// A message from the crawl.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum ControlResponse {
    /// The state of the crawl.
    State(Box<CrawlStateSnapshot>),
    Refused(ControlRefusal),
    /// A command was carried out.
    Done {
        /// Always true. No other message has this field.
        ok: bool,
        /// Notes to the user on the command's effect, if it isn't obvious.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        told: Vec<String>,
    },
}

/// The state of a crawl at one moment: its phase, counts, latest pages and host queues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CrawlStateSnapshot {
    /// The phase of the crawl.
    pub(crate) phase: CrawlPhase,
    /// Whether a `pause` command is in effect.
    pub(crate) paused: bool,
    /// The round's number, from 1.
    pub(crate) round: u32,
    /// Rows of `pages.jsonl` in this round.
    pub(crate) pages: u64,
    /// Pages of this round without an answer or with a status of 400 or above.
    pub(crate) failed: u64,
    /// Known URLs that are excluded, e.g. by robots.txt or the scope.
    pub(crate) barred: u64,
    /// URLs waiting to be fetched.
    pub(crate) waiting: u64,
    /// In-flight requests.
    pub(crate) in_flight: u32,
    /// Bytes of bodies in this round.
    #[serde(rename = "octets")]
    pub(crate) bytes: u64,
    /// Pages per second in this run.
    pub(crate) pages_per_second: f64,
    /// Duration of this run so far, in milliseconds.
    pub(crate) elapsed_ms: u64,
    /// When the next round begins (RFC 3339), while the crawl waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next_round: Option<String>,
    /// The last settled pages, latest first.
    pub(crate) latest: Vec<SettledPage>,
    /// Up to fifty hosts with waiting URLs, most URLs first.
    pub(crate) hosts: Vec<HostQueueReport>,
    /// Parked hosts, sorted by name.
    pub(crate) parked: Vec<String>,
}

impl CrawlStateSnapshot {
    /// Returns whether another state differs from this one in more than times and rates.
    pub(crate) fn is_news(&self, other: &CrawlStateSnapshot) -> bool {
        let steady = |state: &CrawlStateSnapshot| CrawlStateSnapshot {
            pages_per_second: 0.0,
            elapsed_ms: 0,
            hosts: state.hosts.iter().map(HostQueueReport::steady).collect(),
            ..state.clone()
        };
        steady(self) != steady(other)
    }
}

/// A page that the crawl has just settled: its URL, its HTTP status, and when the exchange ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SettledPage {
    pub(crate) url: String,
    /// The HTTP status. `None` without an answer.
    pub(crate) status: Option<u16>,
    /// When the exchange ended (RFC 3339).
    pub(crate) at: String,
}

/// The state of a host's queue: how many URLs wait, and when the next request is due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostQueueReport {
    /// The host's name, with the port on loopback.
    pub(crate) host: String,
    /// The number of waiting URLs.
    pub(crate) waiting: u64,
    /// Milliseconds until the next request may be sent. `None` while that depends on a response in
    /// flight, or while the host is parked.
    pub(crate) next_in_ms: Option<u64>,
    /// The gap between two requests, in milliseconds.
    pub(crate) gap_ms: u64,
    /// Whether the host is parked.
    pub(crate) parked: bool,
}

impl HostQueueReport {
    fn steady(&self) -> HostQueueReport {
        HostQueueReport {
            next_in_ms: None,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::{ControlCommand, ControlResponse};

    /// Returns the command as JSON, or why the line is not a command.
    fn read(line: &str) -> String {
        match ControlCommand::read(line.as_bytes()) {
            Ok(command) => serde_json::to_string(&command).unwrap(),
            Err(refused) => refused.error,
        }
    }

    #[test]
    fn commands_are_read_to_the_letter() {
        let lines = [
            r#"{"do":"pause"}"#,
            r#"{"do":"add","url":"http://a.example/"}"#,
            r#"{"do":"delay","delay":"1500ms"}"#,
            r#"{"host":"a.example","delay":"2s","do":"delay"}"#,
            r#"{"do":"park","host":"127.0.0.1:8080"}"#,
            r#"{"do":"reload"}"#,
            r#"{"do":"stop"}"#,
            r#"{"do":"pause","now":true}"#,
            r#"{"do":"add"}"#,
            r#"{"do":"delay","delay":"2"}"#,
            r#"{"do":["pause"]}"#,
            r#"["pause"]"#,
            " {",
            "pause",
            "",
        ];
        expect![[r#"
            {"do":"pause"}
            {"do":"add","url":"http://a.example/"}
            {"do":"delay","delay":"1s500ms"}
            {"do":"delay","host":"a.example","delay":"2s"}
            {"do":"park","host":"127.0.0.1:8080"}
            {"do":"reload"}
            not a command: unknown variant `stop`, expected one of `state`, `watch`, `pause`, `resume`, `add`, `delay`, `reload`, `park`, `unpark` at line 1 column 12
            not a command: unknown field `now`, there are no fields
            not a command: missing field `url`
            not a command: `2` isn't a duration: add a unit, as in `500ms`, `2s` or `1h`
            not a command: invalid type: sequence, expected variant identifier at line 1 column 6
            not a command: not a JSON object
            not a command: EOF while parsing an object at line 1 column 2
            not a command: not a JSON object
            not a command: not a JSON object
        "#]]
        .assert_eq(&lines.map(|line| read(line) + "\n").concat());
    }

    #[test]
    fn an_answer_is_recognised_by_its_keys() {
        let check = |line: &str, is: fn(&ControlResponse) -> bool| {
            let answer: ControlResponse = serde_json::from_str(line).unwrap();
            assert!(is(&answer), "{answer:?}");
            assert_eq!(serde_json::to_string(&answer).unwrap(), line);
        };
        check(r#"{"ok":true}"#, |answer| {
            matches!(answer, ControlResponse::Done { ok: true, .. })
        });
        check(
            r#"{"ok":true,"told":["a"]}"#,
            |answer| matches!(answer, ControlResponse::Done { told, .. } if told == &["a"]),
        );
        check(r#"{"error":"no","hint":"yes"}"#, |answer| {
            matches!(answer, ControlResponse::Refused(_))
        });
        check(
            r#"{"phase":"waiting","paused":false,"round":2,"pages":3,"failed":0,"barred":0,"waiting":0,"in_flight":0,"octets":9,"pages_per_second":0.5,"elapsed_ms":8,"next_round":"2026-11-21T00:00:00Z","latest":[{"url":"http://a.example/","status":null,"at":"2026-11-20T00:00:00Z"}],"hosts":[],"parked":["a.example"]}"#,
            |answer| matches!(answer, ControlResponse::State(_)),
        );
    }
}
