//! Tests with a real process: the check starts a client that ignores all rules, and must catch it.
//! The client is the test program itself.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::collections::{BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crawl_conformance::{
    CheckError, CheckOptions, Clause, ClauseOutcome, CrawlerUnderTest, JudgedClause, check, clauses,
};

/// The environment variable that makes this program run as the client.
const IS_CLIENT: &str = "CONFORMANCE_TEST_CLIENT";

/// Maximum number of requests that the client sends.
const MAX_REQUESTS: usize = 30;

fn main() {
    if std::env::var_os(IS_CLIENT).is_some() {
        return follow_everything(&std::env::var("CRAWL_URL").unwrap());
    }
    a_client_without_rules_is_caught();
    a_program_that_does_not_exist_is_an_error();
    a_command_without_a_directory_is_not_judged_by_restarts();
    a_client_that_hangs_is_ended();
}

/// Requests a page and everything that its attributes link to, without pauses and without a
/// User-Agent.
fn follow_everything(start: &str) {
    let mut queue = VecDeque::from([start.to_owned()]);
    let mut seen = BTreeSet::new();
    while let Some(url) = queue.pop_front() {
        if seen.len() == MAX_REQUESTS || !seen.insert(url.clone()) {
            continue;
        }
        let rest = url.strip_prefix("http://").unwrap();
        let (host, path) = rest.split_at(rest.find('/').unwrap());
        let mut stream = TcpStream::connect(host).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // Ignore errors: if the server resets the connection, the page ends there.
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        for name in ["href=", "src=", "url=", "location: ", "<loc>"] {
            for part in answer.split(name).skip(1) {
                let end = part.trim_start_matches(['"', '\'']);
                let target = end
                    .split(['"', '\'', '>', '<', ' ', '\r', '\n'])
                    .next()
                    .unwrap();
                match target.split_once('#').map_or(target, |(page, _)| page) {
                    page if page.starts_with("http://127.") => queue.push_back(page.to_owned()),
                    page if page.starts_with('/') => {
                        queue.push_back(format!("http://{host}{page}"));
                    }
                    _ => {}
                }
            }
        }
    }
}

fn run(
    words: &[OsString],
    clauses: &[Clause],
    timeout: Duration,
) -> Result<Vec<JudgedClause>, CheckError> {
    let subject = CrawlerUnderTest {
        words,
        again: &[],
        token: "testbot",
        command: |program: &OsStr| {
            let mut command = Command::new(program);
            command.env(IS_CLIENT, "1");
            command
        },
    };
    let setup = CheckOptions {
        clauses,
        gap: Duration::from_secs(1),
        timeout,
        jobs: 8,
        stop: &AtomicBool::new(false),
    };
    check(&subject, &setup, &|_| {})
}

fn itself() -> Vec<OsString> {
    vec![
        std::env::current_exe().unwrap().into_os_string(),
        "{dir}".into(),
    ]
}

fn a_client_without_rules_is_caught() {
    // Skip clauses whose answers are slow. Then only a client that hangs reaches the time limit.
    let is_quick = |clause: &Clause| {
        !["robots-silent", "body-without-end", "slow-body"].contains(&clause.id)
            && !clause.plan.needs_dir()
    };
    let clauses: Vec<Clause> = clauses().filter(is_quick).collect();
    let judged = run(&itself(), &clauses, Duration::from_secs(120)).unwrap();
    let ids: Vec<&str> = judged.iter().map(|judged| judged.id).collect();
    assert_eq!(
        ids,
        clauses.iter().map(|clause| clause.id).collect::<Vec<_>>()
    );
    let failed: BTreeSet<&str> = judged
        .iter()
        .filter(|judged| judged.verdict.outcome == ClauseOutcome::Fail)
        .map(|judged| judged.id)
        .collect();
    for clause in &clauses {
        // The client requests every linked path, so it must fail each clause whose forbidden path
        // is linked.
        let is_linked = clause
            .never
            .iter()
            .any(|path| !clause.hidden.contains(path));
        assert!(!is_linked || failed.contains(clause.id), "{}", clause.id);
    }
    for id in [
        "robots-first",
        "robots-500",
        "robots-reset",
        "redirect-closed",
        "each-port",
        "user-agent",
        "contact",
        "retry-after-429",
        "retry-after-date",
        "gap",
        "closed-resources",
        "crawl-delay",
    ] {
        assert!(failed.contains(id), "{id}");
    }
    for judged in &judged {
        let is_proven = !judged.verdict.evidence.is_empty();
        assert_eq!(
            is_proven,
            judged.verdict.outcome != ClauseOutcome::NotShown,
            "{}",
            judged.id
        );
    }
}

fn a_program_that_does_not_exist_is_an_error() {
    let clauses: Vec<Clause> = clauses().take(1).collect();
    let error = run(
        &["./no-such-crawler".into()],
        &clauses,
        Duration::from_secs(60),
    )
    .unwrap_err();
    assert!(matches!(error, CheckError::Start { .. }), "{error}");
}

fn a_command_without_a_directory_is_not_judged_by_restarts() {
    let clauses: Vec<Clause> = clauses().filter(|clause| clause.plan.needs_dir()).collect();
    let words = itself()[..1].to_vec();
    for judged in run(&words, &clauses, Duration::from_secs(60)).unwrap() {
        assert_eq!(
            judged.verdict.outcome,
            ClauseOutcome::NotShown,
            "{}",
            judged.id
        );
        assert!(
            judged.verdict.reason.contains("{dir}"),
            "{}",
            judged.verdict.reason
        );
    }
}

/// The client keeps reading a body that arrives a byte at a time, so the check must kill it.
fn a_client_that_hangs_is_ended() {
    let clauses: Vec<Clause> = clauses()
        .filter(|clause| clause.id == "slow-body")
        .collect();
    let judged = run(&itself(), &clauses, Duration::from_secs(4)).unwrap();
    let verdict = &judged[0].verdict;
    assert_eq!(verdict.outcome, ClauseOutcome::NotShown, "{verdict:?}");
    assert!(
        verdict.reason.starts_with("still read /slow"),
        "{verdict:?}"
    );
}
