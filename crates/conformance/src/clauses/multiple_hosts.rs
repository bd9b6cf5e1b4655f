//! Clauses about several hosts: each host's own robots.txt, and redirects between hosts.

use super::{html, rule};
use crate::clause::{Clause, ClausePage};
use crate::crawl_trace::{ClauseVerdict, CrawlTrace};

const ACCESS: &str = "RFC 9309 section 2.3";

pub(super) const CLAUSES: &[Clause] = &[
    rule(
        (
            "each-host",
            "reads robots.txt of each host before its pages",
            ACCESS,
        ),
        Clause::BASE.robots,
        &[],
        &[],
    )
    .on_hosts(2)
    .shown_by(&["/open", "1:/page"])
    .judged_by(rules_of_each_host),
    rule(
        (
            "each-port",
            "reads robots.txt of each port before its pages",
            ACCESS,
        ),
        Clause::BASE.robots,
        &[],
        &[],
    )
    .on_ports(2)
    .shown_by(&["/open", "1:/page"])
    .judged_by(rules_of_each_host),
    rule(
        (
            "other-host-rules",
            "obeys the rules of a linked host",
            ACCESS,
        ),
        Clause::BASE.robots,
        &["1:/closed"],
        &[],
    )
    .on_hosts(2)
    .shown_by(&["/open", "1:/page"])
    .with(&[ClausePage {
        path: "1:/robots.txt",
        status: 200,
        headers: &[("content-type", "text/plain")],
        body: "User-agent: *\nDisallow: /closed\n",
    }]),
    rule(
        (
            "rules-stay-home",
            "applies rules to their own host only",
            ACCESS,
        ),
        Clause::BASE.robots,
        &["/closed"],
        &["1:/closed"],
    )
    .on_hosts(2)
    .shown_by(&["/open", "1:/page"])
    .with(&[ClausePage {
        path: "/robots.txt",
        status: 200,
        headers: &[("content-type", "text/plain")],
        body: "User-agent: *\nDisallow: /closed\n",
    }]),
    rule(
        (
            "redirect-closed",
            "doesn't follow a redirect to a disallowed page",
            "RFC 9309 section 2.2.2",
        ),
        "User-agent: *\nDisallow: /closed\n",
        &["/closed"],
        &[],
    )
    .shown_by(&["/open", "/moved"])
    .hiding(&["/closed"])
    .with(&[moved("/moved", &[("location", "/closed")])]),
    rule(
        (
            "redirect-host-closed",
            "doesn't follow a redirect to what another host disallows",
            ACCESS,
        ),
        Clause::BASE.robots,
        &["1:/closed"],
        &[],
    )
    .on_hosts(2)
    .shown_by(&["/open", "/moved"])
    .hiding(&["1:/closed"])
    .with(&[
        moved("/moved", &[("location", "http://{1}/closed")]),
        ClausePage {
            path: "1:/robots.txt",
            status: 200,
            headers: &[("content-type", "text/plain")],
            body: "User-agent: *\nDisallow: /closed\n",
        },
    ]),
    rule(
        (
            "redirect-host-rules",
            "reads robots.txt of the host that a redirect leads to",
            ACCESS,
        ),
        Clause::BASE.robots,
        &[],
        &[],
    )
    .on_hosts(2)
    .shown_by(&["/open", "/moved", "1:/target"])
    .hiding(&["1:/target"])
    .with(&[
        moved("/moved", &[("location", "http://{1}/target")]),
        html("1:/target", "<title>Target</title><p>Moved here from {0}."),
    ])
    .judged_by(rules_of_each_host),
];

const fn moved(path: &'static str, headers: &'static [(&'static str, &'static str)]) -> ClausePage {
    ClausePage {
        path,
        status: 302,
        headers,
        body: "",
    }
}

impl Clause {
    pub(super) const fn on_hosts(self, hosts: u32) -> Clause {
        Clause { hosts, ..self }
    }

    const fn on_ports(self, hosts: u32) -> Clause {
        Clause {
            hosts,
            shares_address: true,
            ..self
        }
    }
}

/// Checks that the first request to each host was for robots.txt.
fn rules_of_each_host(trace: &CrawlTrace) -> ClauseVerdict {
    let hosts = (0..).take(trace.authorities.len());
    let firsts: Vec<_> = hosts
        .filter_map(|host| trace.of_host(host).first().copied())
        .collect();
    let early: Vec<_> = firsts
        .iter()
        .filter(|entry| entry.path != "/robots.txt")
        .copied()
        .collect();
    match early.is_empty() {
        true => ClauseVerdict::pass(
            "the first request to each host was for /robots.txt",
            trace,
            &firsts,
        ),
        false => ClauseVerdict::fail("requested a page of a host before its rules", trace, &early),
    }
}
