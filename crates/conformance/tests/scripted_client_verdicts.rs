//! Tests with scripted clients. For each clause, a client that keeps it must pass, and a client
//! that breaks it must fail. The clients only write logs, so no process is started and no test
//! waits.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::collections::BTreeSet;
use std::time::Duration;

use crawl_conformance::{
    Clause, ClauseOutcome, CommandRun, CommandRuns, CrawlTrace, RequirementLevel, RunEnd, clauses,
};
use crawl_testweb::LogEntry;

const TOKEN: &str = "testbot";
const USER_AGENT: &str = "testbot/1.0 (+https://bot.example/)";
const SECOND: u64 = 1_000_000;

/// A client that writes its requests directly into the log. By default, a request starts one second
/// after the end of the previous one and takes ten milliseconds.
struct Client {
    trace: CrawlTrace,
    now: u64,
    user_agent: &'static str,
}

impl Client {
    fn of(clause: &Clause) -> Client {
        Client {
            trace: CrawlTrace {
                authorities: (1..=clause.hosts)
                    .map(|host| format!("127.0.0.{host}:80"))
                    .collect(),
                token: TOKEN.to_owned(),
                gap: Duration::from_secs(1),
                ..CrawlTrace::default()
            },
            now: SECOND,
            user_agent: USER_AGENT,
        }
    }

    fn get(&mut self, path: &str) -> &mut LogEntry {
        self.answered(path, 200)
    }

    fn answered(&mut self, path: &str, status: u16) -> &mut LogEntry {
        self.after(1000, path, status)
    }

    /// Adds a request that starts `millis` after the end of the previous one.
    fn after(&mut self, millis: u64, path: &str, status: u16) -> &mut LogEntry {
        let (host, path) = match path.split_once(":/") {
            Some((host, rest)) => (host.parse().unwrap(), format!("/{rest}")),
            None => (0, path.to_owned()),
        };
        let start_us = self.now + millis * 1000;
        self.now = start_us + 10_000;
        let headers = [
            ("host", self.trace.authorities[host as usize].as_str()),
            ("user-agent", self.user_agent),
        ];
        self.trace.log.push(LogEntry {
            host,
            connection: start_us,
            peer: "127.0.0.1:9".parse().unwrap(),
            method: "GET".to_owned(),
            path,
            headers: headers
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            start_us,
            end_us: Some(self.now),
            status: Some(status),
            sent: 500,
        });
        self.trace.log.last_mut().unwrap()
    }

    /// Ends a run, which started at the end of the previous run or at time 0.
    fn end(&mut self, end: RunEnd) {
        let start_us = self.trace.runs.last().map_or(0, |run| run.end_us);
        let end_us = self.now + SECOND / 2;
        self.now = end_us;
        self.trace.runs.push(CommandRun {
            start_us,
            end_us,
            end,
        });
    }

    /// Creates a client that has requested robots.txt of each host, and then all paths that the
    /// clause requires.
    fn polite(clause: &Clause) -> Client {
        let mut client = Client::of(clause);
        client.rules(clause);
        client.pages(clause);
        client.end(RunEnd::Exited(Some(0)));
        client
    }

    fn rules(&mut self, clause: &Clause) {
        for host in 0..clause.hosts {
            self.get(&format!("{host}:/robots.txt"));
        }
    }

    fn pages(&mut self, clause: &Clause) {
        if !clause.never.contains(&"/") {
            self.get("/");
        }
        let paths: Vec<&str> = clause.shows.iter().chain(clause.always).copied().collect();
        for path in paths
            .into_iter()
            .filter(|path| !["/", "/robots.txt"].contains(path))
        {
            self.get(path);
        }
    }
}

type Write = fn(&mut Client, &Clause);

/// Two scripts for a clause: one keeps the clause, and one breaks it. `keeps` is `None` for a
/// clause that [`Client::polite`] keeps.
struct Pair {
    id: &'static str,
    keeps: Option<Write>,
    breaks: Write,
}

const fn pair(id: &'static str, keeps: Write, breaks: Write) -> Pair {
    Pair {
        id,
        keeps: Some(keeps),
        breaks,
    }
}

/// Creates the pair of a clause that [`Client::polite`] keeps.
const fn broken_by(id: &'static str, breaks: Write) -> Pair {
    Pair {
        id,
        keeps: None,
        breaks,
    }
}

const ONLY_RULES: Write = |client, _| {
    client.answered("/robots.txt", 500);
    client.end(RunEnd::Exited(Some(1)));
};
const GOES_ON: Write = |client, clause| {
    client.answered("/robots.txt", 500);
    client.pages(clause);
};
const SKIPS_RULES_OF_LINKED_HOST: Write = |client, clause| {
    client.get("/robots.txt");
    client.pages(clause);
};
const HURRIES: Write = |client, clause| {
    client.rules(clause);
    client.get("/");
    for path in clause.shows {
        client.after(500, path, 200);
    }
};
const IS_ONE_SECOND_APART: Write = |client, clause| {
    client.rules(clause);
    client.pages(clause);
};
const IS_TWO_SECONDS_APART: Write = |client, clause| {
    client.rules(clause);
    for path in ["/", "/open", "/1", "/2"] {
        client.after(2000, path, 200);
    }
};
const DOES_NOT_WAIT: Write = |client, clause| busy(client, clause, 1000);
const WAITS: Write = |client, clause| busy(client, clause, 3000);

fn busy(client: &mut Client, clause: &Clause, pause: u64) {
    let status = if clause.id == "retry-after-429" {
        429
    } else {
        503
    };
    client.rules(clause);
    client.get("/");
    client.answered("/busy", status);
    client.after(pause, "/1", 200);
    client.get("/2");
}

fn restarted(client: &mut Client, first: (&str, u16), pause: u64) {
    client.get("/robots.txt");
    client.answered(first.0, first.1);
    client.end(RunEnd::Killed);
    client.after(pause, "/", 200);
    client.end(RunEnd::Exited(Some(0)));
}

fn second_visit(client: &mut Client, header: Option<(&str, &str)>) {
    client.get("/robots.txt");
    client.get("/open");
    client.end(RunEnd::Exited(Some(0)));
    let entry = client.get("/open");
    if let Some((name, value)) = header {
        entry.headers.push((name.to_owned(), value.to_owned()));
    }
    client.end(RunEnd::Exited(Some(0)));
}

fn trapped(client: &mut Client, clause: &Clause, page: &str, count: u32) {
    client.rules(clause);
    client.pages(clause);
    for number in 2..=count {
        client.get(&format!("{page}{number}"));
    }
    client.end(RunEnd::Exited(Some(0)));
}

const PAIRS: &[Pair] = &[
    broken_by("robots-first", |client, clause| {
        client.get("/");
        client.rules(clause);
        client.pages(clause);
    }),
    pair("robots-500", ONLY_RULES, GOES_ON),
    pair("robots-503", ONLY_RULES, GOES_ON),
    pair("robots-silent", ONLY_RULES, GOES_ON),
    pair("robots-reset", ONLY_RULES, GOES_ON),
    pair("robots-closed", ONLY_RULES, GOES_ON),
    pair("robots-redirect-500", ONLY_RULES, GOES_ON),
    pair(
        "robots-429",
        |client, clause| {
            client.answered("/robots.txt", 429);
            client.after(3000, "/robots.txt", 200);
            client.pages(clause);
        },
        |client, clause| {
            client.answered("/robots.txt", 429);
            client.pages(clause);
        },
    ),
    broken_by("robots-redirect-loop", |client, _| {
        for _ in 0..61 {
            client.answered("/robots.txt", 302);
        }
    }),
    broken_by("robots-kept", |client, clause| {
        for _ in 0..3 {
            client.rules(clause);
        }
        client.rules(clause);
        client.pages(clause);
    }),
    broken_by("each-host", SKIPS_RULES_OF_LINKED_HOST),
    broken_by("each-port", SKIPS_RULES_OF_LINKED_HOST),
    broken_by("redirect-host-rules", SKIPS_RULES_OF_LINKED_HOST),
    broken_by("user-agent", |client, clause| {
        client.user_agent = "";
        client.rules(clause);
        client.pages(clause);
    }),
    broken_by("user-agent-token", |client, clause| {
        client.user_agent = "Mozilla/5.0 (+https://bot.example/)";
        client.rules(clause);
        client.pages(clause);
    }),
    broken_by("contact", |client, clause| {
        client.user_agent = "testbot/1.0";
        client.rules(clause);
        client.pages(clause);
    }),
    broken_by("one-name", |client, clause| {
        client.rules(clause);
        client.user_agent = "Mozilla/5.0";
        client.pages(clause);
    }),
    broken_by("host-header", |client, clause| {
        client.rules(clause);
        client.pages(clause);
        client.trace.log[1].headers[0].1 = "127.0.0.1".to_owned();
    }),
    broken_by("safe-methods", |client, clause| {
        client.rules(clause);
        client.pages(clause);
        client.get("/post").method = "POST".to_owned();
    }),
    broken_by("fragment", |client, clause| {
        client.rules(clause);
        client.pages(clause);
        client.get("/page#part");
    }),
    broken_by("redirect-loop", |client, clause| {
        client.rules(clause);
        client.pages(clause);
        for _ in 0..61 {
            client.answered("/round", 302);
            client.answered("/about", 302);
        }
    }),
    pair(
        "redirect-endless",
        |client, clause| trapped(client, clause, "/chain/", 10),
        |client, clause| trapped(client, clause, "/chain/", 101),
    ),
    pair("retry-after-429", WAITS, DOES_NOT_WAIT),
    pair("retry-after-503", WAITS, DOES_NOT_WAIT),
    pair("retry-after-date", WAITS, DOES_NOT_WAIT),
    broken_by("retries", |client, clause| {
        client.rules(clause);
        client.pages(clause);
        for _ in 0..10 {
            client.answered("/broken", 500);
        }
    }),
    pair(
        "etag",
        |client, _| second_visit(client, Some(("If-None-Match", "\"first-edition\""))),
        |client, _| second_visit(client, None),
    ),
    pair(
        "last-modified",
        |client, _| {
            second_visit(
                client,
                Some(("If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT")),
            );
        },
        |client, _| {
            second_visit(
                client,
                Some(("If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT")),
            );
        },
    ),
    broken_by("body-without-end", |client, clause| {
        client.rules(clause);
        client.pages(clause);
        client.get("/endless").sent = 257 << 20;
    }),
    broken_by("slow-body", |client, clause| {
        client.rules(clause);
        client.pages(clause);
        client.trace.log.last_mut().unwrap().end_us = None;
        client.now += 123 * SECOND;
        client.end(RunEnd::TimeLimit);
    }),
    broken_by("gap", HURRIES),
    broken_by("gap-slow-server", HURRIES),
    broken_by("gap-redirects", HURRIES),
    broken_by("gap-errors", HURRIES),
    broken_by("gap-resources", HURRIES),
    broken_by("one-at-a-time", |client, clause| {
        client.rules(clause);
        client.pages(clause);
        let start = client.trace.log[2].start_us;
        client.trace.log[3].start_us = start + 1000;
    }),
    pair("crawl-delay", IS_TWO_SECONDS_APART, IS_ONE_SECOND_APART),
    pair("crawl-delay-own", IS_TWO_SECONDS_APART, IS_ONE_SECOND_APART),
    pair(
        "restart-retry-after",
        |client, _| restarted(client, ("/busy", 429), 4000),
        |client, _| restarted(client, ("/busy", 429), 100),
    ),
    pair(
        "restart-crawl-delay",
        |client, _| restarted(client, ("/", 200), 4000),
        |client, _| restarted(client, ("/", 200), 100),
    ),
    pair(
        "trap-calendar",
        |client, clause| trapped(client, clause, "/calendar/", 20),
        |client, clause| trapped(client, clause, "/calendar/", 101),
    ),
    pair(
        "trap-session",
        |client, clause| trapped(client, clause, "/shop?sid=", 20),
        |client, clause| trapped(client, clause, "/shop?sid=", 101),
    ),
    pair(
        "trap-deep",
        |client, clause| trapped(client, clause, "/deeper/again/", 20),
        |client, clause| trapped(client, clause, "/deeper/again/", 101),
    ),
];

fn pair_of(clause: &Clause) -> Option<&'static Pair> {
    PAIRS.iter().find(|pair| pair.id == clause.id)
}

fn written(clause: &Clause, write: Write) -> CrawlTrace {
    let mut client = Client::of(clause);
    write(&mut client, clause);
    client.trace
}

#[test]
fn a_client_that_keeps_a_clause_passes() {
    for clause in clauses() {
        let keeps = pair_of(&clause).and_then(|pair| pair.keeps);
        let mut trace = match keeps {
            Some(keeps) => written(&clause, keeps),
            None => Client::polite(&clause).trace,
        };
        if clause.always.is_empty() && clause.never == ["/behind"] {
            // Request a page that only `/open` links to, which shows that the client follows links.
            let mut client = Client::polite(&clause);
            client.get("/deep");
            trace = client.trace;
        }
        let verdict = clause.verdict(&trace);
        assert_eq!(
            verdict.outcome,
            ClauseOutcome::Pass,
            "{}: {verdict:?}",
            clause.id
        );
    }
}

#[test]
fn a_client_that_breaks_a_clause_is_caught() {
    let mut caught = BTreeSet::new();
    for clause in clauses() {
        for path in clause.never {
            let mut client = Client::polite(&clause);
            client.get(path);
            let verdict = clause.verdict(&client.trace);
            assert_eq!(verdict.outcome, ClauseOutcome::Fail, "{} {path}", clause.id);
            assert!(!verdict.evidence.is_empty(), "{} {path}", clause.id);
            caught.insert(clause.id);
        }
        for path in clause.always {
            let mut client = Client::polite(&clause);
            client.trace.log.retain(|entry| {
                entry.path != *path && !path.ends_with(&format!(":{}", entry.path))
            });
            let due = match (clause.level, clause.shows.contains(path)) {
                (RequirementLevel::May, _) | (_, true) => ClauseOutcome::NotShown,
                _ => ClauseOutcome::Fail,
            };
            assert_eq!(
                clause.verdict(&client.trace).outcome,
                due,
                "{} {path}",
                clause.id
            );
            caught.insert(clause.id);
        }
        if let Some(pair) = pair_of(&clause) {
            let verdict = clause.verdict(&written(&clause, pair.breaks));
            assert_eq!(
                verdict.outcome,
                ClauseOutcome::Fail,
                "{}: {verdict:?}",
                clause.id
            );
            assert!(!verdict.evidence.is_empty(), "{}", clause.id);
            caught.insert(clause.id);
        }
    }
    let all: BTreeSet<&str> = clauses().map(|clause| clause.id).collect();
    assert_eq!(caught, all);
}

#[test]
fn a_clause_with_a_judge_has_its_own_scripted_clients() {
    for clause in clauses() {
        let is_about_links = clause.never == ["/behind"];
        assert!(
            clause.judge.is_none() || is_about_links || pair_of(&clause).is_some(),
            "{}",
            clause.id
        );
    }
    let ids: BTreeSet<&str> = clauses().map(|clause| clause.id).collect();
    for pair in PAIRS {
        assert!(ids.contains(pair.id), "{}", pair.id);
    }
}

#[test]
fn a_client_that_does_nothing_shows_nothing() {
    for clause in clauses() {
        let verdict = clause.verdict(&CrawlTrace::default());
        assert_eq!(verdict.outcome, ClauseOutcome::NotShown, "{}", clause.id);
        let mut client = Client::of(&clause);
        client.answered("/favicon.ico", 404);
        let verdict = clause.verdict(&client.trace);
        let shows_pages = clause.shows.iter().any(|path| *path != "/robots.txt");
        assert!(
            verdict.outcome == ClauseOutcome::NotShown || !shows_pages,
            "{}: {verdict:?}",
            clause.id
        );
    }
}

#[test]
fn the_time_limit_turns_missing_requests_into_not_shown() {
    for clause in clauses().filter(|clause| !clause.always.is_empty()) {
        let mut client = Client::of(&clause);
        client.rules(&clause);
        client.get("/");
        for path in clause.shows.iter().filter(|path| **path != "/robots.txt") {
            client.get(path);
        }
        client.end(RunEnd::TimeLimit);
        let verdict = clause.verdict(&client.trace);
        let has_all = clause.always.iter().all(|path| clause.shows.contains(path));
        assert!(
            verdict.outcome == ClauseOutcome::NotShown || has_all,
            "{}",
            clause.id
        );
    }
}

/// The crawler may have given up just before the time limit, or may give up later.
#[test]
fn a_slow_body_that_is_read_until_time_is_up_shows_nothing() {
    let clause = clauses().find(|clause| clause.id == "slow-body").unwrap();
    for end in [None, Some(60 * SECOND)] {
        let mut client = Client::of(&clause);
        client.rules(&clause);
        client.pages(&clause);
        client.trace.log.last_mut().unwrap().end_us = end;
        client.now = 61 * SECOND;
        client.end(RunEnd::TimeLimit);
        let verdict = clause.verdict(&client.trace);
        assert_eq!(verdict.outcome, ClauseOutcome::NotShown, "{verdict:?}");
        assert!(verdict.reason.ends_with("allow more time"), "{verdict:?}");
    }
}

#[test]
fn names_are_unique_and_sources_are_given() {
    let ids: Vec<&str> = clauses().map(|clause| clause.id).collect();
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(unique.len(), ids.len());
    assert!(ids.len() >= 60, "{}", ids.len());
    let hosts: u32 = clauses().map(|clause| clause.hosts).sum();
    assert!(hosts >= 60, "{hosts}");
    for clause in clauses() {
        assert!(
            !clause.source.is_empty() && !clause.title.is_empty(),
            "{}",
            clause.id
        );
        let is_restart = matches!(clause.plan, CommandRuns::Killed(_));
        assert_eq!(
            is_restart,
            clause.id.starts_with("restart-"),
            "{}",
            clause.id
        );
    }
}
