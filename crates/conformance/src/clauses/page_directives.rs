//! Clauses about directives in pages (robots meta tags, X-Robots-Tag, rel) and about sitemaps.

use crawl_testweb::{HttpAnswer, ScriptedReply};

use super::{html, rule};
use crate::clause::{Clause, ClausePage, RequirementLevel, ScriptedReplyInput};
use crate::crawl_trace::{ClauseVerdict, CrawlTrace};

const META: &str = "HTML 4.01 section B.4.1";
const NAMED: &str = "convention: robots meta tag";
const HEADER: &str = "convention: X-Robots-Tag";
const SITEMAPS: &str = "sitemaps.org protocol";

const BEHIND: &[&str] = &["/behind"];
/// The page `/open`. No other page links to `/deep`, so a request for `/deep` shows that the
/// crawler follows links of pages other than the front page.
const OPEN: &str =
    "<title>Open</title><p>A page that says nothing to crawlers.</p><a href='/deep'>on</a>";
const CARRIER: &[&str] = &["/open", "/carrier"];

/// Builds the page `/carrier`, which has the given tags in its head and a link to `/behind`.
macro_rules! carrier {
    ($head:literal) => {
        &[html(
            "/carrier",
            concat!($head, "<title>C</title><a href='/behind'>on</a>"),
        )]
    };
}

pub(super) const CLAUSES: &[Clause] = &[
    closed(
        (
            "meta-nofollow",
            "follows no link of a page with `nofollow`",
            META,
        ),
        carrier!("<meta name='robots' content='nofollow'>"),
    ),
    closed(
        ("meta-none", "follows no link of a page with `none`", NAMED),
        carrier!("<meta name='robots' content='none'>"),
    ),
    closed(
        ("meta-case", "reads the robots meta tag in any case", META),
        carrier!("<META CONTENT='NOINDEX, NOFOLLOW' NAME='ROBOTS'>"),
    ),
    closed(
        ("meta-several", "combines several robots meta tags", NAMED),
        carrier!("<meta name='robots' content='noindex'><meta name='robots' content='nofollow'>"),
    ),
    closed(
        ("meta-named", "obeys a meta tag with its own name", NAMED),
        carrier!("<meta name='{token}' content='nofollow'>"),
    ),
    open(
        (
            "meta-named-other",
            "ignores a meta tag with another crawler's name",
            NAMED,
        ),
        carrier!("<meta name='otherbot' content='nofollow'>"),
    ),
    open(
        (
            "meta-noindex",
            "follows links of a page with `noindex` alone",
            META,
        ),
        carrier!("<meta name='robots' content='noindex'>"),
    ),
    open(
        ("meta-comment", "ignores a meta tag in a comment", META),
        carrier!("<!-- <meta name='robots' content='nofollow'> -->"),
    ),
    closed(
        (
            "header-nofollow",
            "follows no link of a page with the header `nofollow`",
            HEADER,
        ),
        &[ClausePage {
            path: "/carrier",
            status: 200,
            headers: &[("content-type", "text/html"), ("x-robots-tag", "nofollow")],
            body: "<title>C</title><a href='/behind'>on</a>",
        }],
    ),
    closed(
        (
            "header-list",
            "reads lists and several lines of the header",
            HEADER,
        ),
        &[ClausePage {
            path: "/carrier",
            status: 200,
            headers: &[
                ("content-type", "text/html"),
                ("X-Robots-Tag", "noarchive"),
                ("X-Robots-Tag", "noindex, NoFollow"),
            ],
            body: "<title>C</title><a href='/behind'>on</a>",
        }],
    ),
    closed(
        ("header-named", "obeys the header for its own name", HEADER),
        &[ClausePage {
            path: "/carrier",
            status: 200,
            headers: &[
                ("content-type", "text/html"),
                ("x-robots-tag", "{token}: nofollow"),
            ],
            body: "<title>C</title><a href='/behind'>on</a>",
        }],
    ),
    open(
        (
            "header-named-other",
            "ignores the header for another crawler's name",
            HEADER,
        ),
        &[ClausePage {
            path: "/carrier",
            status: 200,
            headers: &[
                ("content-type", "text/html"),
                ("x-robots-tag", "otherbot: nofollow"),
            ],
            body: "<title>C</title><a href='/behind'>on</a>",
        }],
    ),
    closed(
        (
            "rel-nofollow",
            "doesn't follow a link with rel=nofollow",
            "convention: rel=nofollow",
        ),
        &[html(
            "/carrier",
            "<title>C</title><a rel='external nofollow' href='/behind'>on</a> <a href='/open'>back</a>",
        )],
    ),
    sitemap(
        "sitemap",
        "fetches what the sitemap of robots.txt lists",
        |ask| {
            sitemap_at(
                ask,
                "/sitemap.xml",
                entries("url", &format!("http://{}/listed", ask.authorities[0])),
            )
        },
    )
    .always(&["/listed"]),
    sitemap(
        "sitemap-gzip",
        "reads a sitemap that is a gzip file",
        |ask| {
            let xml = entries("url", &format!("http://{}/listed", ask.authorities[0]));
            let file = HttpAnswer::of(200).body(xml).gzip().body;
            let answer = HttpAnswer::of(200)
                .header("content-type", "application/x-gzip")
                .body(file);
            (ask.request.path == "/sitemap.xml").then(|| answer.into())
        },
    )
    .always(&["/listed"]),
    sitemap("sitemap-index", "reads an index of sitemaps", |ask| {
        let host = &ask.authorities[0];
        match ask.request.path.as_str() {
            "/sitemap-2.xml" => xml(&entries("url", &format!("http://{host}/listed"))),
            _ => sitemap_at(
                ask,
                "/sitemap.xml",
                entries("sitemap", &format!("http://{host}/sitemap-2.xml")),
            ),
        }
    })
    .always(&["/listed"]),
    Clause {
        robots: "User-agent: *\nDisallow: /listed\n\nSitemap: http://{0}/sitemap.xml\n",
        source: "RFC 9309 section 2.2.2",
        level: RequirementLevel::Must,
        never: &["/listed"],
        ..sitemap(
            "sitemap-disallowed",
            "fetches nothing disallowed that a sitemap lists",
            |ask| {
                sitemap_at(
                    ask,
                    "/sitemap.xml",
                    entries("url", &format!("http://{}/listed", ask.authorities[0])),
                )
            },
        )
    },
    Clause {
        never: &["1:/listed"],
        ..sitemap(
            "sitemap-foreign",
            "takes no page of a host that doesn't name the sitemap",
            |ask| match (ask.request.host, ask.request.path.as_str()) {
                (1, "/robots.txt") => Some(HttpAnswer::text(Clause::BASE.robots).into()),
                (1, _) => None,
                _ => sitemap_at(
                    ask,
                    "/sitemap.xml",
                    entries("url", &format!("http://{}/listed", ask.authorities[1])),
                ),
            },
        )
    }
    .on_hosts(2),
];

/// Returns a clause whose page `/carrier` forbids following its link to `/behind`.
const fn closed(
    about: (&'static str, &'static str, &'static str),
    pages: &'static [ClausePage],
) -> Clause {
    rule(about, Clause::BASE.robots, BEHIND, &[])
        .level(RequirementLevel::Custom)
        .shown_by(CARRIER)
        .with(pages)
        .hiding(BEHIND)
        .special(|ask| (ask.request.path == "/open").then(|| HttpAnswer::html(OPEN).into()))
        .judged_by(follows_others)
}

/// Returns a clause whose page `/carrier` allows following its link to `/behind`.
const fn open(
    about: (&'static str, &'static str, &'static str),
    pages: &'static [ClausePage],
) -> Clause {
    rule(about, Clause::BASE.robots, &[], BEHIND)
        .level(RequirementLevel::Custom)
        .shown_by(&["/open", "/carrier", "/deep"])
        .with(pages)
        .hiding(&["/behind", "/deep"])
        .special(|ask| (ask.request.path == "/open").then(|| HttpAnswer::html(OPEN).into()))
}

const fn sitemap(
    id: &'static str,
    title: &'static str,
    special: fn(&ScriptedReplyInput<'_>) -> Option<ScriptedReply>,
) -> Clause {
    let robots = "User-agent: *\nDisallow:\n\nSitemap: http://{0}/sitemap.xml\n";
    rule((id, title, SITEMAPS), robots, &[], &[])
        .level(RequirementLevel::Custom)
        .shown_by(&["/open", "/sitemap.xml"])
        .hiding(&["/sitemap.xml", "/listed", "1:/listed"])
        .special(special)
}

impl Clause {
    const fn always(self, always: &'static [&'static str]) -> Clause {
        Clause { always, ..self }
    }
}

/// Passes a crawler that followed a link on another page. Such a crawler follows links, so it must
/// have skipped the link on `/carrier` because of the directive.
fn follows_others(trace: &CrawlTrace) -> ClauseVerdict {
    match (trace.first("/deep"), trace.first("/carrier")) {
        (Some(deep), Some(carrier)) => ClauseVerdict::pass(
            "followed links of other pages, but not this one",
            trace,
            &[carrier, deep],
        ),
        _ => ClauseVerdict::not_shown("follows no links of pages behind the front page"),
    }
}

fn sitemap_at(ask: &ScriptedReplyInput<'_>, path: &str, content: String) -> Option<ScriptedReply> {
    match ask.request.path == path {
        true => xml(&content),
        false => None,
    }
}

fn xml(content: &str) -> Option<ScriptedReply> {
    let answer = HttpAnswer::of(200).header("content-type", "application/xml");
    Some(answer.body(content).into())
}

/// Returns a sitemap (`url`) or an index of sitemaps (`sitemap`) with one entry.
fn entries(kind: &str, location: &str) -> String {
    let root = if kind == "url" {
        "urlset"
    } else {
        "sitemapindex"
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <{root} xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n\
         <{kind}><loc>{location}</loc></{kind}>\n</{root}>\n"
    )
}
