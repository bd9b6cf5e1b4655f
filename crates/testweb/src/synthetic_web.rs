//! The answers of a synthetic host: pages, robots.txt, sitemap.

use crate::link_spellings;
use crate::random::SeededRandom;
use crate::scripted_reply::HttpAnswer;
use crate::web_plan::{PlannedUrl, PlannedUrlKind, WebParameters};

/// A rule in the robots.txt of every synthetic host, for all crawlers.
pub(crate) const DISALLOW_PRIVATE: &str = "Disallow: /private/";
pub(crate) const DISALLOW_ACTION: &str = "Disallow: /*?action=";

/// Minimum bytes of filler paragraphs on each page, including their tags.
const TEXT_BYTES: usize = 600;

/// The hosts of a web: what they serve and their names.
#[derive(Debug)]
pub(crate) struct SyntheticWeb {
    pub(crate) shape: WebParameters,
    /// The address and port (such as `127.16.0.1:40123`) or name and port of each host.
    pub(crate) authorities: Vec<String>,
    pub(crate) crawl_delay: Option<String>,
    pub(crate) sitemap: bool,
}

impl SyntheticWeb {
    pub(crate) fn url(&self, place: PlannedUrl) -> String {
        self.url_of(place.host, &self.shape.path(place))
    }

    pub(crate) fn url_of(&self, host: u32, path: &str) -> String {
        let authority = self
            .authorities
            .get(host as usize)
            .map_or("", String::as_str);
        format!("http://{authority}{path}")
    }

    pub(crate) fn answer(&self, host: u32, path: &str) -> HttpAnswer {
        match path {
            "/robots.txt" => return HttpAnswer::text(&self.robots_txt(host)),
            "/sitemap.xml" if self.sitemap => {
                return HttpAnswer::of(200)
                    .header("content-type", "application/xml")
                    .body(self.sitemap_xml(host));
            }
            _ => {}
        }
        let Some(place) = self.shape.find(host, path) else {
            return HttpAnswer::of(404)
                .header("content-type", "text/html; charset=utf-8")
                .body("<!doctype html><title>Not found</title><p>There is no such page.");
        };
        if let Some((status, to)) = self.shape.redirect(place) {
            return HttpAnswer::redirect(status, &self.location(place, to));
        }
        let html = self.html(place);
        let mut answer = HttpAnswer::html(&html)
            .header(
                "etag",
                &format!("\"{:016x}\"", self.shape.dice(place, 30).next()),
            )
            .header("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT");
        if place.kind == PlannedUrlKind::DeadEnd && !says_by_meta(place) {
            answer = answer.header("x-robots-tag", "nofollow");
        }
        answer
    }

    fn robots_txt(&self, host: u32) -> String {
        let mut text = format!(
            "# Host {host} of a synthetic web\nUser-agent: somebody-else\nDisallow: /\n\n\
             User-agent: *\n{DISALLOW_PRIVATE}\nAllow: /private/open/\n{DISALLOW_ACTION}\n"
        );
        if let Some(delay) = &self.crawl_delay {
            text.push_str(&format!("Crawl-delay: {delay}\n"));
        }
        if self.sitemap {
            text.push_str(&format!(
                "\nSitemap: {}\n",
                self.url_of(host, "/sitemap.xml")
            ));
        }
        text
    }

    fn sitemap_xml(&self, host: u32) -> String {
        let mut xml = String::from(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
        );
        for place in self.shape.sitemap(host) {
            let loc = self.url(place).replace('&', "&amp;");
            xml.push_str(&format!("<url><loc>{loc}</loc></url>\n"));
        }
        xml.push_str("</urlset>\n");
        xml
    }

    fn location(&self, from: PlannedUrl, to: PlannedUrl) -> String {
        if from.host == to.host && from.number.is_multiple_of(2) {
            self.shape.path(to)
        } else {
            self.url(to)
        }
    }

    fn html(&self, place: PlannedUrl) -> String {
        let mut dice = self.shape.dice(place, 31);
        let path = self.shape.path(place);
        let mut html = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <title>{} &amp; page {} of host {}</title>\n",
            words(&mut dice, 2),
            place.number,
            place.host,
        );
        if self.shape.noindex(place) {
            html.push_str("<meta name=\"robots\" content=\"noindex\">\n");
        }
        if place.kind == PlannedUrlKind::DeadEnd && says_by_meta(place) {
            html.push_str("<META NAME=\"ROBOTS\" CONTENT=\"index, NOFOLLOW\">\n");
        }
        let mut base = path.clone();
        if place.number > 0 && dice.below(16) == 0 {
            base = "/d1/e1/".to_owned();
            html.push_str(&format!(
                "<base href=\"{}\">\n",
                self.url_of(place.host, &base)
            ));
        }
        html.push_str(
            "<script>var a = '<a href=\"/never/script.html\">';</script>\n</head>\n<body>\n",
        );
        html.push_str("<!-- <a href=\"/never/comment.html\">never</a> -->\n<h1>");
        html.push_str(&words(&mut dice, 3));
        html.push_str("</h1>\n");
        for edge in self.shape.links(place) {
            let rel = if edge.shunned {
                " rel=\"nofollow\""
            } else {
                ""
            };
            let to = link_spellings::LinkTarget {
                authority: &self.authorities[edge.to.host as usize],
                path: &self.shape.path(edge.to),
                same_host: edge.to.host == place.host,
            };
            let href = link_spellings::write(&base, &to, &mut dice);
            let (before, text) = (words(&mut dice, 4), words(&mut dice, 2));
            html.push_str(&format!(
                "<p>{before} <a{rel} href={href}>{text}</a>.</p>\n"
            ));
        }
        html.push_str("<p><a href=\"mailto:owner@host.test\">mail</a> <a href=\"javascript:go(1)\">go</a></p>\n");
        let end = html.len() + TEXT_BYTES;
        while html.len() < end {
            html.push_str(&format!("<p>{}.</p>\n", words(&mut dice, 12)));
        }
        html.push_str("</body>\n</html>\n");
        html
    }
}

fn says_by_meta(place: PlannedUrl) -> bool {
    place.number.is_multiple_of(2)
}

fn words(dice: &mut SeededRandom, count: usize) -> String {
    const WORDS: [&str; 16] = [
        "river",
        "stone",
        "lantern",
        "harbour",
        "copper",
        "meadow",
        "signal",
        "winter",
        "orchard",
        "ladder",
        "quiet",
        "market",
        "thread",
        "island",
        "caf\u{e9}",
        "violet",
    ];
    let mut text = String::new();
    for at in 0..count {
        if at > 0 {
            text.push(' ');
        }
        text.push_str(WORDS[usize::try_from(dice.below(16)).unwrap_or(0)]);
    }
    text
}
