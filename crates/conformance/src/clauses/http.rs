//! Clauses about HTTP: requests, redirects, Retry-After, second visits, bodies (RFC 9110, RFC
//! 9111).

use std::time::{Duration, SystemTime};

use crawl_testweb::{HttpAnswer, LogEntry, RawReplyStep, ScriptedReply};

use super::{html, rule};
use crate::clause::{Clause, ClausePage, CommandRuns, RequirementLevel, ScriptedReplyInput};
use crate::crawl_trace::{ClauseVerdict, CrawlTrace};
use crate::judges::{
    EndlessBodyLimit, every_request, gives_up, leaves_after, repeats_at_most, waits_after,
};

const ETAG: &str = "\"first-edition\"";
const LAST_MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const RETRY_AFTER: &str = "RFC 9110 section 10.2.3";

/// Maximum bytes of an endless body that a crawler may read.
const MAX_BODY_BYTES: u64 = 256 << 20;
/// Maximum time that a crawler may read a body that comes a byte at a time. This is twice the usual
/// timeout of a minute, so a crawler with such a timeout passes.
const MAX_BODY_TIME: Duration = Duration::from_secs(120);

pub(super) const CLAUSES: &[Clause] = &[
    simple("user-agent", "sends User-Agent", "RFC 9110 section 10.1.5")
        .level(RequirementLevel::Should)
        .judged_by(|trace| {
            every_request(trace, "User-Agent in each request", "no User-Agent", |entry| {
                !entry.user_agent().is_empty()
            })
        }),
    simple("user-agent-token", "has its product token in User-Agent", "RFC 9309 section 2.2.1")
        .level(RequirementLevel::Should)
        .judged_by(names_its_token),
    simple("contact", "says how to reach its operator, in From or User-Agent", "RFC 9110 section 10.1.2")
        .level(RequirementLevel::Should)
        .judged_by(|trace| {
            every_request(trace, "a contact in each request", "no contact", |entry| {
                let names_one = |text: &str| ["http://", "https://", "@"].iter().any(|sign| text.contains(sign));
                entry.header("from").is_some_and(|from| from.contains('@'))
                    || names_one(entry.user_agent())
            })
        }),
    simple("one-name", "has the same User-Agent for robots.txt and pages", "convention")
        .level(RequirementLevel::Custom)
        .judged_by(|trace| {
            let first = trace.log.first().map(LogEntry::user_agent);
            every_request(trace, "one User-Agent", "another User-Agent", |entry| {
                Some(entry.user_agent()) == first
            })
        }),
    simple("host-header", "sends Host with the port", "RFC 9110 section 7.2").judged_by(|trace| {
        let due = |entry: &LogEntry| trace.authorities.get(entry.host as usize).cloned();
        let is_right = |entry: &LogEntry| entry.header("host") == due(entry).as_deref();
        let wrong = trace.log.iter().find(|entry| !is_right(entry));
        let sent = wrong.and_then(|entry| entry.header("host")).unwrap_or("nothing");
        let broken = format!("sent {sent} as Host");
        every_request(trace, "Host in each request", &broken, is_right)
    }),
    rule(
        ("safe-methods", "sends no POST, PUT or DELETE", "RFC 9110 section 9.2.1"),
        Clause::BASE.robots,
        &[],
        &[],
    )
    .level(RequirementLevel::Custom)
    .shown_by(&["/open", "/forms"])
    .with(&[html(
        "/forms",
        "<title>Forms</title><form method='post' action='/post'><input name='q' value='x'><input type='submit'></form>\
         <form method='POST' action='/order'><button>Order</button></form><p>Forms above.",
    )])
    .judged_by(|trace| {
        every_request(trace, "only safe methods", "an unsafe method", |entry| {
            matches!(entry.method.as_str(), "GET" | "HEAD" | "OPTIONS")
        })
    }),
    rule(
        ("fragment", "leaves the fragment out of the request", "RFC 9110 section 7.1"),
        Clause::BASE.robots,
        &["/page%23part"],
        &["/page"],
    )
    .with(&[html(
        "/list",
        "<title>List</title><a href='/page#part'>page</a> <a href='/other'>other</a>",
    )])
    .shown_by(&["/open", "/list", "/other"])
    .hiding(&["/page", "/page%23part", "/other"])
    .judged_by(|trace| {
        every_request(trace, "no fragment", "a fragment was sent", |entry| {
            !entry.path.contains('#')
        })
    }),
    rule(
        ("relative-location", "resolves a relative Location", "RFC 9110 section 10.2.2"),
        Clause::BASE.robots,
        &[],
        &["/folder/target"],
    )
    .shown_by(&["/open", "/folder/moved", "/moved", "/arrived"])
    .hiding(&["/folder/target", "/arrived"])
    .with(&[
        redirect("/folder/moved", &[("location", "target")]),
        redirect("/moved", &[("location", "http://{0}/arrived")]),
    ]),
    rule(
        ("redirect-loop", "ends a loop of redirects", "RFC 9110 section 15.4"),
        Clause::BASE.robots,
        &[],
        &[],
    )
    .level(RequirementLevel::Should)
    .shown_by(&["/open", "/round"])
    .with(&[redirect("/round", &[("location", "/about")]), redirect("/about", &[("location", "/round")])])
    .judged_by(|trace| repeats_at_most(trace, "/round", 60)),
    rule(
        ("redirect-endless", "ends a chain of redirects that never arrives", "RFC 9110 section 15.4"),
        Clause::BASE.robots,
        &[],
        &[],
    )
    .level(RequirementLevel::Custom)
    .shown_by(&["/open", "/chain/1"])
    .special(|ask| {
        let step: u32 = ask.request.path.strip_prefix("/chain/")?.parse().ok()?;
        Some(HttpAnswer::redirect(302, &format!("/chain/{}", step + 1)).into())
    })
    .judged_by(|trace| leaves_after(trace, "/chain/", 100)),
    busy("retry-after-429", "waits for Retry-After of status 429", "RFC 6585 section 4", |ask| {
        first_busy(ask, || HttpAnswer::of(429).header("retry-after", "3"))
    })
    .judged_by(|trace| waits_after(trace, 429, Duration::from_secs(3))),
    busy("retry-after-503", "waits for Retry-After of status 503", RETRY_AFTER, |ask| {
        first_busy(ask, || HttpAnswer::of(503).header("retry-after", "3"))
    })
    .judged_by(|trace| waits_after(trace, 503, Duration::from_secs(3))),
    busy("retry-after-date", "waits for a Retry-After that is a date", RETRY_AFTER, |ask| {
        // The judge demands three seconds. The date is six seconds ahead, because dates have whole
        // seconds and a busy server may answer late.
        let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(6));
        first_busy(ask, || HttpAnswer::of(503).header("retry-after", &date))
    })
    .judged_by(|trace| waits_after(trace, 503, Duration::from_secs(3))),
    simple("retries", "stops retrying a page with status 500", "convention")
        .level(RequirementLevel::Custom)
        .shown_by(&["/open", "/broken"])
        .special(|ask| (ask.request.path == "/broken").then(|| HttpAnswer::of(500).into()))
        .judged_by(|trace| repeats_at_most(trace, "/broken", 10)),
    second_visit("etag", "sends If-None-Match on a second visit", "RFC 9110 section 13.1.2", |ask| {
        edition(ask, "if-none-match", ("etag", ETAG))
    })
    .judged_by(|trace| is_conditional(trace, "if-none-match", ETAG)),
    second_visit(
        "last-modified",
        "sends If-Modified-Since on a second visit",
        "RFC 9110 section 13.1.3",
        |ask| edition(ask, "if-modified-since", ("last-modified", LAST_MODIFIED)),
    )
    .judged_by(|trace| is_conditional(trace, "if-modified-since", LAST_MODIFIED)),
    rule(
        ("content-coding", "decodes a coding that it accepts", "RFC 9110 section 8.4"),
        Clause::BASE.robots,
        &[],
        &["/behind-gzip"],
    )
    .level(RequirementLevel::Custom)
    .shown_by(&["/open", "/coded", "/list", "/other"])
    .hiding(&["/behind-gzip", "/other"])
    .with(&[html("/list", "<title>List</title><a href='/other'>other</a>")])
    .special(|ask| {
        let page = HttpAnswer::html("<title>Coded</title><p><a href='/behind-gzip'>on</a> and on</p>");
        match ask.request.path == "/coded" {
            true if ask.accepts_gzip() => Some(page.gzip().into()),
            true => Some(page.into()),
            false => None,
        }
    }),
    simple("body-without-end", "reads at most 256 MiB of a body without end", "convention")
        .level(RequirementLevel::Custom)
        .shown_by(&["/open", "/endless"])
        .special(|ask| (ask.request.path == "/endless").then(endless))
        .judged_by(|trace| gives_up(trace, "/endless", EndlessBodyLimit::Bytes(MAX_BODY_BYTES))),
    simple("slow-body", "gives up a body that comes a byte at a time within two minutes", "convention")
        .level(RequirementLevel::Custom)
        .shown_by(&["/open", "/slow"])
        .special(|ask| {
            let page = HttpAnswer::html("<title>slow</title>").body(vec![b'.'; 100_000]);
            let drip = || ScriptedReply::drip(page, 1, Duration::from_millis(500));
            (ask.request.path == "/slow").then(drip)
        })
        .judged_by(|trace| gives_up(trace, "/slow", EndlessBodyLimit::Time(MAX_BODY_TIME))),
];

/// Returns a clause whose paths are ordinary pages. The caller can add other pages.
const fn simple(id: &'static str, title: &'static str, source: &'static str) -> Clause {
    rule((id, title, source), Clause::BASE.robots, &[], &[])
}

/// Returns a clause about a busy server. Its level is `Custom`, because RFC 9110 says only that
/// clients ought to wait.
const fn busy(
    id: &'static str,
    title: &'static str,
    source: &'static str,
    special: fn(&ScriptedReplyInput<'_>) -> Option<ScriptedReply>,
) -> Clause {
    rule((id, title, source), Clause::BASE.robots, &[], &[])
        .level(RequirementLevel::Custom)
        .shown_by(&["/busy", "/1", "/2"])
        .special(special)
}

const fn second_visit(
    id: &'static str,
    title: &'static str,
    source: &'static str,
    special: fn(&ScriptedReplyInput<'_>) -> Option<ScriptedReply>,
) -> Clause {
    let clause = rule((id, title, source), Clause::BASE.robots, &[], &[])
        .level(RequirementLevel::Custom)
        .special(special);
    Clause {
        plan: CommandRuns::Twice,
        ..clause
    }
}

const fn redirect(
    path: &'static str,
    headers: &'static [(&'static str, &'static str)],
) -> ClausePage {
    ClausePage {
        path,
        status: 302,
        headers,
        body: "",
    }
}

/// Returns `answer` for the first request for `/busy`. Returns `None` for later requests, which get
/// a page.
fn first_busy(
    ask: &ScriptedReplyInput<'_>,
    answer: impl FnOnce() -> HttpAnswer,
) -> Option<ScriptedReply> {
    (ask.request.path == "/busy" && ask.earlier == 0).then(|| answer().into())
}

/// Answers a request for `/open` with a page and the given header field, which is a validator.
/// Answers with 304 if the header field `condition` of the request contains this validator.
fn edition(
    ask: &ScriptedReplyInput<'_>,
    condition: &str,
    (name, value): (&str, &str),
) -> Option<ScriptedReply> {
    if ask.request.path != "/open" {
        return None;
    }
    let is_same = ask.request.header(condition) == Some(value);
    let answer = match is_same {
        true => HttpAnswer::of(304),
        false => HttpAnswer::html("<title>Edition</title><p>The first edition of this page."),
    };
    Some(answer.header(name, value).into())
}

fn is_conditional(trace: &CrawlTrace, condition: &str, value: &str) -> ClauseVerdict {
    let Some(restart) = trace.second_start_us() else {
        return ClauseVerdict::not_shown("the command was run only once");
    };
    let visits = trace.requests_of("/open");
    let Some(second) = visits.iter().find(|entry| entry.start_us >= restart) else {
        return ClauseVerdict::not_shown("the second run didn't request the page again");
    };
    match second.header(condition) {
        Some(sent) if sent == value => {
            ClauseVerdict::pass(format!("sent {condition}: {sent}"), trace, &[*second])
        }
        Some(sent) => ClauseVerdict::fail(format!("sent {condition}: {sent}"), trace, &[*second]),
        None => ClauseVerdict::fail(format!("sent no {condition}"), trace, &[*second]),
    }
}

fn names_its_token(trace: &CrawlTrace) -> ClauseVerdict {
    let token = trace.token.to_lowercase();
    every_request(
        trace,
        "the token in each User-Agent",
        "a User-Agent without the token",
        |entry| entry.user_agent().to_lowercase().contains(&token),
    )
}

fn endless() -> ScriptedReply {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n";
    let body = b"<p>and so on, and so on</p>\n".repeat(2000);
    let parts = usize::try_from(MAX_BODY_BYTES).unwrap_or(usize::MAX) / body.len() + 2;
    let steps = [
        RawReplyStep::Send(head.to_vec()),
        RawReplyStep::Repeat(body, parts),
        RawReplyStep::Silence,
    ];
    ScriptedReply::raw(steps)
}
