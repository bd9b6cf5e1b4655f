//! Clauses about references to a disallowed page other than links: resources, scripts, refreshes.

use super::{html, rule};
use crate::clause::{Clause, ClausePage};

const RULES: &str = "RFC 9309 section 2.2.2";
const ROBOTS: &str = "User-agent: *\nDisallow: /closed/\n";
const SHOWS: &[&str] = &["/open", "/carrier"];

pub(super) const CLAUSES: &[Clause] = &[
    way(
        (
            "closed-resources",
            "fetches no disallowed image, script or style sheet",
        ),
        &[
            "/closed/a.png",
            "/closed/a.js",
            "/closed/a.css",
            "/closed/b.png",
            "/closed/c.svg",
        ],
        &[html(
            "/carrier",
            "<title>C</title><link rel='stylesheet' href='/closed/a.css'><script src='/closed/a.js'></script>\
             <img src='/closed/a.png' srcset='/closed/b.png 2x'><object data='/closed/c.svg'></object>",
        )],
    ),
    way(
        (
            "closed-style",
            "fetches nothing disallowed that a style sheet names",
        ),
        &["/closed/d.png", "/closed/e.css"],
        &[html(
            "/carrier",
            "<title>C</title><style>@import '/closed/e.css'; body{background:url(/closed/d.png)}</style><p>Text",
        )],
    ),
    way(
        ("closed-frame", "fetches no disallowed frame"),
        &["/closed/frame"],
        &[html(
            "/carrier",
            "<title>C</title><iframe src='/closed/frame'></iframe><p>Text",
        )],
    ),
    way(
        ("closed-refresh", "follows no refresh to a disallowed page"),
        &["/closed/refresh", "/closed/header"],
        &[ClausePage {
            path: "/carrier",
            status: 200,
            headers: &[
                ("content-type", "text/html"),
                ("refresh", "0; url=/closed/header"),
            ],
            body: "<meta http-equiv='refresh' content='0; url=/closed/refresh'><title>C</title><p>Text",
        }],
    ),
    way(
        ("closed-canonical", "fetches no disallowed canonical page"),
        &["/closed/canonical", "/closed/next", "/closed/alternate"],
        &[ClausePage {
            path: "/carrier",
            status: 200,
            headers: &[
                ("content-type", "text/html"),
                ("link", "</closed/next>; rel=next"),
            ],
            body: "<title>C</title><link rel='canonical' href='/closed/canonical'>\
                   <link rel='alternate' hreflang='de' href='/closed/alternate'><p>Text",
        }],
    ),
    way(
        ("closed-preload", "fetches nothing disallowed ahead of time"),
        &["/closed/preload.js", "/closed/prefetch", "/closed/icon.ico"],
        &[html(
            "/carrier",
            "<title>C</title><link rel='preload' as='script' href='/closed/preload.js'>\
             <link rel='prefetch' href='/closed/prefetch'><link rel='icon' href='/closed/icon.ico'><p>Text",
        )],
    ),
    way(
        ("closed-feed", "fetches no disallowed feed or manifest"),
        &["/closed/feed.xml", "/closed/app.webmanifest"],
        &[html(
            "/carrier",
            "<title>C</title><link rel='alternate' type='application/rss+xml' href='/closed/feed.xml'>\
             <link rel='manifest' href='/closed/app.webmanifest'><p>Text",
        )],
    ),
    way(
        ("closed-base", "obeys the rules of a link's resolved URL"),
        &["/closed/based", "/closed/dots"],
        &[html(
            "/carrier",
            "<title>C</title><base href='/closed/folder/'><a href='../based'>on</a> <a href='/x/../closed/dots'>on</a>",
        )],
    ),
    way(
        ("closed-form", "fetches no disallowed target of a form"),
        &["/closed/search", "/closed/search?q=", "/closed/search?q=x"],
        &[html(
            "/carrier",
            "<title>C</title><form action='/closed/search'><input name='q' value='x'><button>Go</button></form>",
        )],
    ),
    Clause {
        shows: &["/open", "/carrier", "/app.js", "/data.json"],
        hidden: &[
            "/app.js",
            "/data.json",
            "/closed/fetched",
            "/closed/image.png",
        ],
        ..way(
            (
                "closed-script",
                "lets no script of a page request what is disallowed",
            ),
            &["/closed/fetched", "/closed/image.png"],
            &[
                html(
                    "/carrier",
                    "<title>C</title><script src='/app.js'></script><p>Text",
                ),
                ClausePage {
                    path: "/app.js",
                    status: 200,
                    headers: &[("content-type", "text/javascript")],
                    body: "fetch('/data.json'); fetch('/closed/fetched'); new Image().src = '/closed/image.png';",
                },
            ],
        )
    },
];

const fn way(
    (id, title): (&'static str, &'static str),
    never: &'static [&'static str],
    pages: &'static [ClausePage],
) -> Clause {
    rule((id, title, RULES), ROBOTS, never, &[])
        .shown_by(SHOWS)
        .hiding(never)
        .with(pages)
}
