//! The report as one page that needs nothing else: no script, no font, no request.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write as _};

use crawl_weburl::safe_line;

use crate::numbers::{counted, grouped, size};
use crate::report::{BrokenCounts, BrokenRow, Report};
use crate::text::{gaps, kept, robots_line, unasked_line, waits};

const STYLE: &str = "\
:root{color-scheme:light dark;--page:#fff;--text:#1b1b1b;--line:#999;--link:#0b57d0}\
@media(prefers-color-scheme:dark){:root{--page:#16181c;--text:#e4e4e4;--line:#5a5e66;--link:#8ab4f8}}\
body{font:16px/1.5 sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;\
background:var(--page);color:var(--text)}\
h1,p,.t{overflow-wrap:anywhere}a{color:var(--link)}\
.t{overflow-x:auto;margin:1rem 0}table{border-collapse:collapse}\
td,th{border:1px solid var(--line);padding:.2rem .6rem;text-align:left;vertical-align:top}\
th,td.n{white-space:nowrap}td.n{text-align:right}.w td{min-width:10rem}.w td.n{min-width:0}";

/// Hosts that the page lists, those with most requests first.
const MAX_LISTED_HOSTS: usize = 1000;

impl Report {
    /// The report as a self-contained HTML page. Whatever came from a server is escaped.
    #[must_use]
    pub fn to_html(&self) -> String {
        let mut page = String::new();
        // Writing to a String can't fail.
        let _ = self.write_html(&mut page);
        page
    }

    fn write_html(&self, page: &mut String) -> fmt::Result {
        let title = match self.crawl.seeds.first() {
            Some(seed) => format!("Crawl of {seed}"),
            None => "Crawl".to_owned(),
        };
        let title = Text(&title);
        writeln!(
            page,
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n<h1>{title}</h1>"
        )?;
        if let Some(started) = &self.crawl.started {
            writeln!(page, "<p>Started {}.</p>", Text(started))?;
        }
        writeln!(
            page,
            "<p>{}, {}; {} failed; {} excluded; {}. Gaps: {}. Waits: {}.</p>",
            counted(self.pages.total, "page", "pages"),
            size(self.pages.bytes),
            grouped(self.pages.failed),
            grouped(self.excluded.total),
            counted(self.requests.total, "request", "requests"),
            kept(self.requests.short_gaps),
            kept(self.requests.short_waits)
        )?;
        for flaw in &self.flaws {
            writeln!(page, "<p><strong>Flaw: {}</strong></p>", Text(flaw))?;
        }
        counts(page, "Pages by outcome", &self.pages.by_outcome)?;
        counts(page, "Pages by status", &self.pages.by_status)?;
        counts(page, "Pages by type", &self.pages.by_type)?;
        counts(page, "Pages by depth", &self.pages.by_depth)?;
        table(page, "Rounds", &self.pages.rounds, ToString::to_string)?;
        self.write_broken(page)?;
        counts(page, "Excluded by reason", &self.excluded.by_reason)?;
        let put_aside = &self.excluded.put_aside;
        counts(page, "Put aside, with the evidence", put_aside)?;
        counts(page, "Requests by purpose", &self.requests.by_purpose)?;
        let failures = &self.requests.by_failure;
        counts(page, "Requests without an answer", failures)?;
        self.write_hosts(page)
    }

    fn write_broken(&self, page: &mut String) -> fmt::Result {
        let BrokenCounts { pages, first } = &self.broken;
        if *pages == 0 {
            return Ok(());
        }
        begin(page, "Broken pages", "t w")?;
        writeln!(page, "<tr><th>page<th>answer<th>first link to it")?;
        for broken in first {
            let (url, answer) = (Link(&broken.url), answer(broken));
            let answer = Text(&answer);
            write!(page, "<tr><td>{url}<td>{answer}<td>")?;
            match &broken.via {
                Some(via) => writeln!(page, "{}", Link(via))?,
                None => writeln!(page, "a seed")?,
            }
        }
        writeln!(page, "</table></div>")?;
        match pages.saturating_sub(first.len() as u64) {
            0 => Ok(()),
            more => {
                let more = counted(more, "more broken page", "more broken pages");
                writeln!(page, "<p>And {more}.</p>")
            }
        }
    }

    fn write_hosts(&self, page: &mut String) -> fmt::Result {
        let (hosts, unasked) = self.hosts_asked();
        begin(page, "Hosts", "t w")?;
        writeln!(
            page,
            "<tr><th>host<th>pages<th>received<th>requests<th>excluded<th>gaps<th>waits<th>robots.txt"
        )?;
        for host in hosts.iter().take(MAX_LISTED_HOSTS) {
            let robots = host.robots.iter();
            let robots =
                robots.map(|(origin, robots)| format!("{origin}: {}", robots_line(robots)));
            let robots = robots.collect::<Vec<_>>().join("; ");
            writeln!(
                page,
                "<tr><td>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td>{}<td>{}<td>{}",
                Text(&host.host),
                grouped(host.pages),
                size(host.bytes),
                grouped(host.requests),
                grouped(host.excluded),
                Text(&gaps(host)),
                Text(&waits(host)),
                Text(&robots)
            )?;
        }
        writeln!(page, "</table></div>")?;
        if hosts.len() > MAX_LISTED_HOSTS {
            let more = (hosts.len() - MAX_LISTED_HOSTS) as u64;
            let more = counted(more, "more host", "more hosts");
            writeln!(page, "<p>And {more}.</p>")?;
        }
        match unasked_line(unasked) {
            Some(line) => writeln!(page, "<p>And {line}.</p>"),
            None => Ok(()),
        }
    }
}

fn answer(broken: &BrokenRow) -> String {
    match (broken.status, &broken.error) {
        (Some(status), Some(error)) if status < 400 => format!("{status} ({error})"),
        (Some(status), _) => status.to_string(),
        (None, Some(error)) => error.clone(),
        (None, None) => "none".to_owned(),
    }
}

fn counts<K: Display>(page: &mut String, title: &str, counts: &BTreeMap<K, u64>) -> fmt::Result {
    table(page, title, counts, |count| grouped(*count))
}

fn table<K: Display, V>(
    page: &mut String,
    title: &str,
    rows: &BTreeMap<K, V>,
    show: impl Fn(&V) -> String,
) -> fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    begin(page, title, "t")?;
    for (name, value) in rows {
        let name = name.to_string();
        writeln!(page, "<tr><td>{}<td class=n>{}", Text(&name), show(value))?;
    }
    writeln!(page, "</table></div>")
}

/// A heading, and a table in a box that scrolls by itself where the screen is narrower.
fn begin(page: &mut String, title: &str, class: &str) -> fmt::Result {
    writeln!(
        page,
        "<h2>{title}</h2>\n<div class=\"{class}\" role=\"region\" aria-label=\"{title}\" \
         tabindex=\"0\"><table>"
    )
}

/// A page's URL, as a link that gives it no credit and tells it nothing. What no browser fetches is
/// text.
struct Link<'a>(&'a str);

impl Display for Link<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = Text(self.0);
        match self.0.starts_with("http://") || self.0.starts_with("https://") {
            true => write!(
                f,
                "<a href=\"{url}\" rel=\"nofollow noopener noreferrer\">{url}</a>"
            ),
            false => write!(f, "{url}"),
        }
    }
}

/// Text as it stands in HTML.
struct Text<'a>(&'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in safe_line(self.0).chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}
