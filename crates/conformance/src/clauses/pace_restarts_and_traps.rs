//! Clauses about pace, restarts and traps. No standard covers these, so all are conventions.

use std::time::Duration;

use crawl_testweb::{HttpAnswer, LogEntry, ScriptedReply};

use super::rule;
use crate::clause::{Clause, CommandRuns, RequirementLevel};
use crate::judges::{
    keeps_own_gap, keeps_two_seconds, leaves_after, one_at_a_time, waits_over_restart,
};

const PACE: &str = "convention: pace";
const CRAWL_DELAY: &str = "convention: Crawl-delay";
const TRAPS: &str = "convention: traps";
const PAGES: &[&str] = &["/open", "/1", "/2", "/3", "/4"];

/// Maximum number of pages that a crawler may fetch from a trap.
const MAX_TRAP_PAGES: usize = 100;

/// How long the web asks crawlers to wait, by Retry-After and by Crawl-delay. A crawler must keep
/// waiting after a restart.
const OVER_RESTART: Duration = Duration::from_secs(4);

pub(super) const CLAUSES: &[Clause] = &[
    custom("gap", "keeps its gap between requests to a host", PACE)
        .shown_by(PAGES)
        .judged_by(keeps_own_gap),
    custom("gap-slow-server", "keeps its gap after slow answers too", PACE)
        .shown_by(PAGES)
        .special(|ask| {
            let is_page = ask.request.path.len() == 2;
            let page = || HttpAnswer::html(&format!("<title>Slow page {}</title>", ask.request.path));
            is_page.then(|| ScriptedReply::from(page()).after(Duration::from_millis(700)))
        })
        .judged_by(keeps_own_gap),
    custom("gap-redirects", "keeps its gap over redirects", PACE)
        .shown_by(&["/open", "/old", "/new/home"])
        .hiding(&["/new/home"])
        .special(|ask| {
            let to = match ask.request.path.as_str() {
                "/old" => "/moved-again",
                "/moved-again" => "/new/",
                "/new/" => "/new/home",
                _ => return None,
            };
            Some(HttpAnswer::redirect(302, to).into())
        })
        .judged_by(keeps_own_gap),
    custom("gap-errors", "keeps its gap after errors", PACE)
        .shown_by(PAGES)
        .special(|ask| match ask.request.path.as_str() {
            "/1" => Some(HttpAnswer::of(404).into()),
            "/2" => Some(HttpAnswer::of(500).into()),
            "/3" => Some(ScriptedReply::close()),
            _ => None,
        })
        .judged_by(keeps_own_gap),
    custom("gap-resources", "keeps its gap before resources of a page", PACE)
        .shown_by(&["/open", "/a.css", "/b.png", "/c.js"])
        .special(|ask| match ask.request.path.as_str() {
            "/" => Some(
                HttpAnswer::html(
                    "<title>Front</title><link rel='stylesheet' href='/a.css'><img src='/b.png'>\
                     <script src='/c.js'></script><a href='/open'>open</a>",
                )
                .into(),
            ),
            "/a.css" => Some(HttpAnswer::text("p{}").header("x", "y").into()),
            _ => None,
        })
        .judged_by(keeps_own_gap),
    custom("one-at-a-time", "sends a host one request at a time", PACE)
        .shown_by(PAGES)
        .special(|ask| {
            let page = || HttpAnswer::html(&format!("<title>Page {}</title>", ask.request.path));
            (ask.request.path.len() == 2)
                .then(|| ScriptedReply::from(page()).after(Duration::from_millis(500)))
        })
        .judged_by(one_at_a_time),
    Clause {
        robots: "User-agent: *\nCrawl-delay: 2\nDisallow: /closed\n",
        ..custom("crawl-delay", "keeps a Crawl-delay", CRAWL_DELAY)
    }
    .shown_by(&["/open", "/1", "/2"])
    .judged_by(keeps_two_seconds),
    Clause {
        robots: "User-agent: *\nCrawl-delay: 0\n\nUser-agent: {token}\nDisallow: /closed\nCrawl-delay: 2\n",
        ..custom("crawl-delay-own", "keeps the Crawl-delay of its own group", CRAWL_DELAY)
    }
    .shown_by(&["/open", "/1", "/2"])
    .judged_by(keeps_two_seconds),
    Clause {
        plan: CommandRuns::Killed(|log| log.iter().any(|entry| is_busy(entry) && entry.end_us.is_some())),
        ..custom("restart-retry-after", "keeps Retry-After over kill -9", "convention: restarts")
    }
    .shown_by(&["/busy"])
    .special(|ask| {
        let is_first = ask.request.path == "/busy" && ask.earlier == 0;
        is_first.then(|| HttpAnswer::of(429).header("retry-after", "4").into())
    })
    .judged_by(|trace| waits_over_restart(trace, OVER_RESTART, is_busy)),
    Clause {
        robots: "User-agent: *\nCrawl-delay: 4\n",
        plan: CommandRuns::Killed(|log| log.iter().any(|entry| is_page(entry) && entry.end_us.is_some())),
        ..custom("restart-crawl-delay", "keeps Crawl-delay over kill -9", "convention: restarts")
    }
    .shown_by(&["/robots.txt", "/"])
    .judged_by(|trace| waits_over_restart(trace, OVER_RESTART, is_page)),
    custom("trap-calendar", "leaves a calendar without end", TRAPS)
        .shown_by(&["/open", "/calendar/1"])
        .special(|ask| {
            let month: u32 = ask.request.path.strip_prefix("/calendar/")?.parse().ok()?;
            let page = format!(
                "<title>Calendar</title><h1>No events</h1><p>There is nothing on in this month.</p>\
                 <a href='/calendar/{}'>next month</a>",
                month + 1
            );
            Some(HttpAnswer::html(&page).into())
        })
        .judged_by(|trace| leaves_after(trace, "/calendar/", MAX_TRAP_PAGES)),
    custom("trap-session", "leaves links with new session ids", TRAPS)
        .shown_by(&["/open", "/shop?sid=1"])
        .special(|ask| {
            let session: u32 = ask.request.path.strip_prefix("/shop?sid=")?.parse().ok()?;
            let page = format!(
                "<title>Shop</title><h1>Our shop</h1><p>Tea and cake, every day from nine to five.</p>\
                 <a href='/shop?sid={}'>shop</a> <a href='/shop?sid={}'>cart</a>",
                session * 2,
                session * 2 + 1
            );
            Some(HttpAnswer::html(&page).into())
        })
        .judged_by(|trace| leaves_after(trace, "/shop", MAX_TRAP_PAGES)),
    custom("trap-deep", "leaves relative links that lead deeper and deeper", TRAPS)
        .shown_by(&["/open", "/deeper/"])
        .special(|ask| {
            ask.request.path.starts_with("/deeper/").then(|| {
                HttpAnswer::html("<title>Deeper</title><p>The same folder again.</p><a href='again/'>on</a>")
                    .into()
            })
        })
        .judged_by(|trace| leaves_after(trace, "/deeper/", MAX_TRAP_PAGES)),
];

const fn custom(id: &'static str, title: &'static str, source: &'static str) -> Clause {
    rule((id, title, source), Clause::BASE.robots, &[], &[]).level(RequirementLevel::Custom)
}

fn is_busy(entry: &LogEntry) -> bool {
    entry.status == Some(429)
}

fn is_page(entry: &LogEntry) -> bool {
    entry.path != "/robots.txt"
}
