//! A crawl of a site with a thousand faults, which finds exactly these faults.

use std::collections::BTreeSet;

use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};
use serde_json::Value;

use crate::harness::setup;

const PAGES: usize = 250;
const PLANTED: usize = 1_000;

/// The page of a fault, the link on it, and the kind of the fault.
type Planted = (String, String, &'static str);

/// Returns a pseudo-random page number.
fn drawn(at: usize, salt: usize) -> usize {
    (at * 7_919 + salt * 104_729) / 13 % PAGES
}

/// Returns the faults, and what is served at each path.
fn planted() -> (BTreeSet<Planted>, Vec<(String, HttpAnswer)>) {
    let words = [
        "kettle", "leaf", "spout", "caddy", "whisk", "steam", "saucer",
    ];
    let mut bodies: Vec<String> = (0..PAGES)
        .map(|at| {
            let next = (at + 1) % PAGES;
            let text: Vec<_> = (0..40)
                .map(|word| format!("{}{}", words[(at + word) % 7], at * 40 + word))
                .collect();
            format!(
                "<title>Page {at}</title><h1 id=top-{at}>Page {at}</h1><p>The story of {at}: {}.\
                 <a href=/p{next}>next</a> <a href='/p{next}#top-{next}'>its top</a>\
                 <a href=#>up</a> <a href=#top>up</a> <a href='#/route'>route</a>\
                 <a href='/p{next}#:~:text=story%20of%20{next}'>its words</a>\
                 <a href='/short#top-0'>short</a> <img src=/good.png alt=''>",
                text.join(" ")
            )
        })
        .collect();
    let mut served = vec![
        ("/short".to_owned(), HttpAnswer::redirect(302, "/p0")),
        (
            "/good.png".to_owned(),
            HttpAnswer::of(200)
                .header("content-type", "image/png")
                .body("\u{89}PNG"),
        ),
    ];
    let mut planted = BTreeSet::new();
    for at in 0..PLANTED {
        let (from, to) = (drawn(at, 1), drawn(at, 2));
        let (html, link, kind) = match at % 6 {
            0 => {
                let link = format!("/gone{at}");
                let status = if at % 12 == 0 { 404 } else { 410 };
                served.push((link.clone(), HttpAnswer::of(status)));
                (format!("<a href={link}>gone</a>"), link, "broken")
            }
            1 => {
                let link = format!("/p{to}#no-{at}");
                (format!("<a href='{link}'>no id</a>"), link, "fragment")
            }
            2 => {
                let link = format!("/p{to}#:~:text=milk%20{at}");
                (
                    format!("<a href='{link}'>no words</a>"),
                    link,
                    "text-fragment",
                )
            }
            3 => {
                let link = format!("/old{at}");
                let status = if at % 12 == 3 { 301 } else { 308 };
                served.push((
                    link.clone(),
                    HttpAnswer::redirect(status, &format!("/p{to}")),
                ));
                (format!("<a href={link}>moved</a>"), link, "redirect")
            }
            4 => {
                let link = format!("/style{at}.css");
                served.push((link.clone(), HttpAnswer::of(404)));
                (format!("<link rel=stylesheet href={link}>"), link, "broken")
            }
            _ => {
                let before = format!("/now{at}");
                served.push((
                    before.clone(),
                    HttpAnswer::redirect(302, &format!("/p{to}")),
                ));
                let link = format!("{before}#no-{at}");
                (format!("<a href='{link}'>there</a>"), link, "fragment")
            }
        };
        bodies[from].push_str(&html);
        planted.insert((format!("/p{from}"), link, kind));
    }
    let pages = bodies.iter().enumerate();
    served.extend(pages.map(|(at, body)| (format!("/p{at}"), HttpAnswer::html(body))));
    let all: String = (0..PAGES)
        .map(|at| format!("<a href=/p{at}>{at}</a> "))
        .collect();
    served.push(("/".to_owned(), HttpAnswer::html(&all)));
    (planted, served)
}

#[test]
fn exactly_the_planted_thousand_faults_are_reported() {
    let (planted, served) = planted();
    let web = TestWeb::builder().pages(1).mix(LinkMix::plain());
    let web = served
        .into_iter()
        .fold(web.sitemap(false), |web, (path, answer)| {
            web.script(0, &path, answer)
        });
    let web = web.start();
    let (_dir, cmd) = setup("planted");
    let seed = web.url(0, "/");
    let mut args = vec!["--seed", &seed, "--output", "c", "--resources", "all"];
    args.extend(["--delay", "0s", "--delay-factor", "0", "--progress", "off"]);
    let ran = cmd.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let reported = cmd
        .run(&["report", "c", "--faults", "--format", "jsonl"])
        .ok();
    let root = web.url(0, "");
    let path = |fault: &Value, name: &str| fault[name].as_str().unwrap().replacen(&root, "", 1);
    let reported: Vec<Value> = reported
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let found_faults: BTreeSet<_> = reported
        .iter()
        .map(|fault| {
            let kind = fault["kind"].as_str().unwrap();
            (path(fault, "page"), path(fault, "to"), kind)
        })
        .collect();
    assert_eq!(planted.len(), PLANTED);
    let missed: Vec<_> = planted.difference(&found_faults).take(5).collect();
    let invented: Vec<_> = found_faults.difference(&planted).take(5).collect();
    assert!(
        missed.is_empty() && invented.is_empty() && reported.len() == PLANTED,
        "{} told; missed {missed:#?}; invented {invented:#?}",
        reported.len()
    );
}
