//! `crawl robots --batch`: reads JSON lines and prints their verdicts in order.

use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Write};

use crawl_policy::{AgentRules, ProductToken, RequestPath, RobotsProfile};
use data_encoding::BASE64;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{CommandError, FINISHED, USAGE};

/// A line of input: the robots.txt, the agent and the URL to judge.
#[derive(Debug, Deserialize)]
struct RobotsBatchLine {
    /// The content of robots.txt, as text or as base64. Null if the site has no robots.txt.
    robots: Option<RobotsContent>,
    /// A product token. Anything after the token, such as a version, is ignored. Null selects the
    /// agent of the command line.
    agent: Option<String>,
    /// A URL or a path.
    url: String,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum RobotsContent {
    Text(String),
    Bytes { base64: String },
}

/// Judges each line of stdin. `agent` applies to lines that don't name an agent.
pub(super) fn run(agent: &ProductToken, profile: RobotsProfile) -> Result<u8, CommandError> {
    let mut lines = BufReader::new(io::stdin().lock());
    let mut answers = BufWriter::new(io::stdout().lock());
    match answer_all(&mut lines, &mut answers, agent, profile) {
        Ok(all_sound) => Ok(if all_sound { FINISHED } else { USAGE }),
        Err(why) if why.kind() == ErrorKind::BrokenPipe => Ok(FINISHED),
        Err(why) => Err(CommandError::disk(format!(
            "can't judge the remaining lines: {why}"
        ))),
    }
}

/// Answers all lines. Returns false if any line could not be judged.
fn answer_all(
    lines: &mut BufReader<impl io::Read>,
    answers: &mut impl Write,
    agent: &ProductToken,
    profile: RobotsProfile,
) -> io::Result<bool> {
    let mut line = Vec::new();
    let mut all_sound = true;
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line)? == 0 {
            answers.flush()?;
            return Ok(all_sound);
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let answer = answer(&line, agent, profile).unwrap_or_else(|why| {
            all_sound = false;
            json!({ "error": why })
        });
        writeln!(answers, "{answer}")?;
        // Flush the output if no further line has arrived: the client may wait for this answer
        // before it sends the next line.
        if lines.buffer().is_empty() {
            answers.flush()?;
        }
    }
}

fn answer(line: &[u8], agent: &ProductToken, profile: RobotsProfile) -> Result<Value, String> {
    let question: RobotsBatchLine = serde_json::from_slice(line).map_err(|why| why.to_string())?;
    let agent = match &question.agent {
        Some(name) => &ProductToken::leading(name),
        None => agent,
    };
    let robots = match &question.robots {
        None => AgentRules::allow_all(),
        Some(RobotsContent::Text(text)) => AgentRules::parse(text.as_bytes(), agent, profile),
        Some(RobotsContent::Bytes { base64 }) => {
            let bytes = BASE64.decode(base64.as_bytes());
            let bytes = bytes.map_err(|why| format!("robots: not base64: {why}"))?;
            AgentRules::parse(&bytes, agent, profile)
        }
    };
    let verdict = robots.judge_path(&RequestPath::of_unparsed(&question.url));
    let rule = verdict.rule.as_ref();
    Ok(json!({
        "allowed": verdict.is_allowed(),
        "line": rule.map(|rule| rule.line),
        "rule": rule.map(|rule| &rule.text),
    }))
}
