//! The bodies of the fuzz targets. They check properties of any settings file and of any line on
//! the control socket.

#![allow(clippy::unwrap_used, reason = "a check that fails should panic")]
#![allow(unreachable_pub, reason = "public in the library, for fuzz targets")]

#[cfg(test)]
#[path = "../../fuzz/src/run_without_fuzzer.rs"]
mod run_without_fuzzer;

use crate::control::protocol::{ControlCommand, ControlResponse};
use crate::error::ErrorCollector;
use crate::settings::{parse, usable};

const FILE: &str = "study.toml";

/// Parses any text as a settings file in two ways: all of it, and only its usable parts. If the
/// text has no problems, both ways must give the same settings. The line and the column in each
/// message must be within the text.
pub fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut problems = ErrorCollector::default();
    let layer = usable(&text, FILE, &mut problems);
    let refused = problems.or(());
    let whole = parse(&text, FILE);
    if let Ok(whole) = &whole {
        assert!(refused.is_err() || *whole == layer);
    } else {
        assert!(refused.is_err());
    }
    let lines = text.matches('\n').count() + 1;
    for error in [refused.err(), whole.err()].into_iter().flatten() {
        for error in std::iter::once(&error).chain(&error.others) {
            let Some(place) = error.message.strip_prefix(FILE) else {
                continue;
            };
            let mut numbers = place.split(':').skip(1);
            let mut number = || numbers.next().and_then(|text| text.parse::<usize>().ok());
            if let (Some(line), Some(column)) = (number(), number()) {
                assert!((1..=lines).contains(&line), "{place}");
                assert!((1..=text.len() + 1).contains(&column), "{place}");
            }
        }
    }
}

/// Parses any line as a command and as an answer of the control socket. A parsed message must stay
/// the same when it is written and parsed again.
pub fn control(data: &[u8]) {
    match ControlCommand::read(data) {
        Ok(command) => {
            let line = serde_json::to_vec(&command).unwrap();
            assert!(!line.contains(&b'\n'));
            assert_eq!(ControlCommand::read(&line).unwrap(), command);
        }
        Err(refused) => {
            let answer = serde_json::to_vec(&ControlResponse::Refused(refused.clone())).unwrap();
            let read: ControlResponse = serde_json::from_slice(&answer).unwrap();
            assert_eq!(read, ControlResponse::Refused(refused));
        }
    }
    if let Ok(answer) = serde_json::from_slice::<ControlResponse>(data) {
        let line = serde_json::to_vec(&answer).unwrap();
        let again: ControlResponse = serde_json::from_slice(&line).unwrap();
        assert_eq!(again, answer);
        if let (ControlResponse::State(state), ControlResponse::State(other)) = (&answer, &again) {
            assert!(!state.is_news(other));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::run_without_fuzzer::run_without_fuzzer;

    #[test]
    fn any_settings_file_is_read() {
        run_without_fuzzer("config", 500, super::config);
    }

    #[test]
    fn any_line_on_the_socket_is_read() {
        run_without_fuzzer("control", 2_000, super::control);
    }
}
