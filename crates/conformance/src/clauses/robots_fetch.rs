//! Clauses about fetching robots.txt: redirects, errors, size and caching (RFC 9309, sections 2.3
//! to 2.5).

use std::time::Duration;

use crawl_testweb::{HttpAnswer, ScriptedReply};

use super::rule;
use crate::clause::{Clause, RequirementLevel, ScriptedReplyInput};
use crate::crawl_trace::{ClauseVerdict, CrawlTrace};
use crate::judges::{only_robots, repeats_at_most, since_robots, waits_after};

const UNREACHABLE: &str = "RFC 9309 section 2.3.1.4";
const UNAVAILABLE: &str = "RFC 9309 section 2.3.1.3";
const REDIRECTS: &str = "RFC 9309 section 2.3.1.2";

/// Length of robots.txt, in bytes, that every crawler must parse.
const MUST_PARSE_BYTES: usize = 500 * 1024;

/// Maximum requests for robots.txt during a crawl of ten pages.
const MAX_COPIES: usize = 3;

pub(super) const CLAUSES: &[Clause] = &[
    rule(
        (
            "robots-first",
            "requests robots.txt before anything else",
            "RFC 9309 section 2.3.1.1",
        ),
        Clause::BASE.robots,
        &[],
        &[],
    )
    .shown_by(&["/"])
    .judged_by(robots_first),
    unreachable(
        "robots-500",
        "takes robots.txt with status 500 as: nothing is allowed",
        |ask| at_robots(ask, || HttpAnswer::of(500).into()),
    ),
    unreachable(
        "robots-503",
        "takes robots.txt with status 503 as: nothing is allowed",
        |ask| at_robots(ask, || HttpAnswer::of(503).into()),
    ),
    unreachable(
        "robots-silent",
        "takes a robots.txt that never comes as: nothing is allowed",
        |ask| at_robots(ask, ScriptedReply::silence),
    ),
    unreachable(
        "robots-reset",
        "takes a reset of the connection as: nothing is allowed",
        |ask| at_robots(ask, ScriptedReply::reset),
    ),
    unreachable(
        "robots-closed",
        "takes an empty answer as: nothing is allowed",
        |ask| at_robots(ask, ScriptedReply::close),
    ),
    unreachable(
        "robots-redirect-500",
        "takes a redirect of robots.txt to status 500 as: nothing is allowed",
        |ask| match ask.request.path.as_str() {
            "/robots.txt" => Some(HttpAnswer::redirect(302, "/rules").into()),
            "/rules" => Some(HttpAnswer::of(500).into()),
            _ => None,
        },
    )
    .judged_by(only_rules),
    available(
        "robots-404",
        "may crawl if robots.txt has status 404",
        |ask| at_robots(ask, || HttpAnswer::of(404).into()),
    ),
    available(
        "robots-410",
        "may crawl if robots.txt has status 410",
        |ask| at_robots(ask, || HttpAnswer::of(410).into()),
    ),
    available(
        "robots-403",
        "may crawl if robots.txt has status 403",
        |ask| at_robots(ask, || HttpAnswer::of(403).into()),
    ),
    rule(
        (
            "robots-429",
            "waits for Retry-After of a robots.txt with status 429",
            "RFC 6585 section 4",
        ),
        "",
        &[],
        &[],
    )
    .level(RequirementLevel::Custom)
    .shown_by(&["/robots.txt"])
    .special(|ask| match (ask.request.path.as_str(), ask.earlier) {
        ("/robots.txt", 0) => Some(HttpAnswer::of(429).header("retry-after", "3").into()),
        ("/robots.txt", _) => Some(HttpAnswer::text(Clause::BASE.robots).into()),
        _ => None,
    })
    .judged_by(|trace| waits_after(trace, 429, Duration::from_secs(3))),
    rule(
        (
            "robots-redirects",
            "follows five redirects of robots.txt",
            REDIRECTS,
        ),
        "",
        &["/closed"],
        &[],
    )
    .level(RequirementLevel::Should)
    .special(|ask| redirected_robots(ask, 5, 0)),
    rule(
        (
            "robots-redirect-host",
            "obeys a robots.txt on another host, for the host that redirects there",
            REDIRECTS,
        ),
        "",
        &["/closed"],
        &[],
    )
    .level(RequirementLevel::Should)
    .on_hosts(2)
    .special(|ask| redirected_robots(ask, 1, 1)),
    rule(
        (
            "robots-redirect-loop",
            "ends an endless redirect of robots.txt",
            REDIRECTS,
        ),
        "",
        &[],
        &[],
    )
    .level(RequirementLevel::Custom)
    .shown_by(&["/robots.txt"])
    .special(|ask| at_robots(ask, || HttpAnswer::redirect(302, "/robots.txt").into()))
    .judged_by(|trace| repeats_at_most(trace, "/robots.txt", 60)),
    rule(
        (
            "robots-500-kib",
            "parses the first 500 KiB of robots.txt",
            "RFC 9309 section 2.5",
        ),
        "",
        &["/closed"],
        &[],
    )
    .special(|ask| at_robots(ask, || HttpAnswer::text(&long_robots()).into())),
    rule(
        (
            "robots-not-utf8",
            "obeys the lines that are UTF-8 in a file that isn't",
            "RFC 9309 section 2.3.1.5",
        ),
        "",
        &["/first", "/second"],
        &["/third"],
    )
    .special(|ask| {
        let body = b"User-agent: *\nDisallow: /first\nDisallow: /\xff\xfe\nDisallow: /second\n";
        at_robots(ask, || HttpAnswer::text("").body(&body[..]).into())
    }),
    rule(
        (
            "robots-html",
            "finds no rules in a page that comes as robots.txt",
            "RFC 9309 section 2.3.1.5",
        ),
        "",
        &[],
        &["/any"],
    )
    .level(RequirementLevel::May)
    .special(|ask| {
        at_robots(ask, || {
            HttpAnswer::html(
                "<!doctype html>\n<title>Welcome</title>\n<p>There is no such file.</p>\n",
            )
            .into()
        })
    }),
    rule(
        (
            "robots-gzip",
            "decodes a robots.txt with Content-Encoding",
            "RFC 9110 section 8.4",
        ),
        "User-agent: *\nDisallow: /closed\n",
        &["/closed"],
        &[],
    )
    .special(|ask| {
        let rules = || HttpAnswer::text("User-agent: *\nDisallow: /closed\n");
        match ask.accepts_gzip() {
            true => at_robots(ask, || rules().gzip().into()),
            false => at_robots(ask, || rules().into()),
        }
    }),
    rule(
        (
            "robots-kept",
            "keeps robots.txt for the pages of a short crawl",
            "RFC 9309 section 2.4",
        ),
        Clause::BASE.robots,
        &[],
        &["/1", "/2", "/3", "/4", "/5", "/6", "/7", "/8", "/9"],
    )
    .level(RequirementLevel::Custom)
    .judged_by(|trace| repeats_at_most(trace, "/robots.txt", MAX_COPIES)),
    rule(
        (
            "robots-path",
            "reads rules at /robots.txt only",
            "RFC 9309 section 2.3",
        ),
        Clause::BASE.robots,
        &[],
        &["/folder/page"],
    )
    .special(|ask| match ask.request.path.as_str() {
        "/folder/robots.txt" => Some(HttpAnswer::text("User-agent: *\nDisallow: /\n").into()),
        _ => None,
    }),
];

const fn unreachable(
    id: &'static str,
    title: &'static str,
    special: fn(&ScriptedReplyInput<'_>) -> Option<ScriptedReply>,
) -> Clause {
    rule((id, title, UNREACHABLE), "", &["/page"], &[])
        .shown_by(&[])
        .special(special)
        .judged_by(only_robots)
}

const fn available(
    id: &'static str,
    title: &'static str,
    special: fn(&ScriptedReplyInput<'_>) -> Option<ScriptedReply>,
) -> Clause {
    rule((id, title, UNAVAILABLE), "", &[], &["/any"])
        .shown_by(&["/robots.txt"])
        .level(RequirementLevel::May)
        .special(special)
}

fn at_robots(
    ask: &ScriptedReplyInput<'_>,
    reply: impl FnOnce() -> ScriptedReply,
) -> Option<ScriptedReply> {
    (ask.request.path == "/robots.txt").then(reply)
}

fn robots_first(trace: &CrawlTrace) -> ClauseVerdict {
    let entries = trace.of_host(0);
    match entries.first() {
        Some(first) if first.path == "/robots.txt" => {
            let pages = entries[1..].iter().copied();
            let early: Vec<_> = pages
                .filter(|entry| first.end_us.is_none_or(|end| entry.start_us < end))
                .collect();
            match early.is_empty() {
                true => {
                    ClauseVerdict::pass("the first request was for /robots.txt", trace, &[*first])
                }
                false => {
                    ClauseVerdict::fail("requested pages before it had the rules", trace, &early)
                }
            }
        }
        Some(first) => ClauseVerdict::fail("the first request was for a page", trace, &[*first]),
        None => ClauseVerdict::not_shown("the command sent no request"),
    }
}

/// Checks that only robots.txt and the target of its redirect were requested.
fn only_rules(trace: &CrawlTrace) -> ClauseVerdict {
    let pages: Vec<_> = since_robots(trace)
        .into_iter()
        .filter(|entry| !["/robots.txt", "/rules"].contains(&entry.path.as_str()))
        .collect();
    match pages.is_empty() {
        true => ClauseVerdict::pass("requested no page", trace, &trace.all()),
        false => ClauseVerdict::fail("requested pages without rules", trace, &pages),
    }
}

/// Serves robots.txt after `count` redirects, the last of which leads to host `to`.
fn redirected_robots(ask: &ScriptedReplyInput<'_>, count: u32, to: u32) -> Option<ScriptedReply> {
    let path = ask.request.path.as_str();
    let step = match path.strip_prefix("/rules-") {
        Some(step) => step.parse().ok()?,
        None if path == "/robots.txt" && ask.request.host == 0 => 0,
        None if path == "/robots.txt" => return Some(HttpAnswer::text(Clause::BASE.robots).into()),
        None => return None,
    };
    if step >= count {
        return Some(HttpAnswer::text("User-agent: *\nDisallow: /closed\n").into());
    }
    let host = if step + 1 == count {
        to
    } else {
        ask.request.host
    };
    let authority = ask.authorities.get(host as usize)?;
    let location = format!("http://{authority}/rules-{}", step + 1);
    Some(HttpAnswer::redirect(302, &location).into())
}

/// Returns a robots.txt whose `Disallow` line ends just before byte `MUST_PARSE_BYTES`. An `Allow`
/// line follows.
fn long_robots() -> String {
    let (group, rule) = ("User-agent: *\n", "Disallow: /closed\n");
    let line = format!("# {}\n", "-".repeat(61));
    let mut text = group.to_owned();
    while text.len() + line.len() + rule.len() <= MUST_PARSE_BYTES {
        text.push_str(&line);
    }
    text + rule + "Allow: /\n"
}
