//! The report as one page that needs nothing else: no script, no font, no request.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write as _};

use crate::report::{Broken, Report};
use crate::text::{gaps, kept, robots_line, waits};

const STYLE: &str = "body{font:16px/1.5 sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}\
table{border-collapse:collapse;margin:1rem 0}td,th{border:1px solid #999;padding:.2rem .6rem;\
text-align:left;vertical-align:top}td.n{text-align:right}";

/// Hosts that the page lists, those with most requests first.
const LISTED_HOSTS: usize = 1000;

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
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
             <style>{STYLE}</style>\n<h1>{title}</h1>"
        )?;
        if let Some(started) = &self.crawl.started {
            writeln!(page, "<p>Started {}.</p>", Text(started))?;
        }
        writeln!(
            page,
            "<p>{} pages, {} octets; {} failed; {} excluded; {} requests. Gaps: {}. Waits: {}.</p>",
            self.pages.total,
            self.pages.bytes,
            self.pages.failed,
            self.excluded.total,
            self.requests.total,
            kept(self.requests.short_gaps),
            kept(self.requests.short_waits)
        )?;
        for flaw in &self.flaws {
            writeln!(page, "<p><strong>Flaw: {}</strong></p>", Text(flaw))?;
        }
        table(page, "Pages by outcome", &self.pages.by_outcome)?;
        table(page, "Pages by status", &self.pages.by_status)?;
        table(page, "Pages by type", &self.pages.by_type)?;
        table(page, "Pages by depth", &self.pages.by_depth)?;
        table(page, "Rounds", &self.pages.rounds)?;
        self.write_broken(page)?;
        table(page, "Excluded by reason", &self.excluded.by_reason)?;
        if !self.excluded.put_aside.is_empty() {
            table(
                page,
                "Put aside, with the evidence",
                &self.excluded.put_aside,
            )?;
        }
        table(page, "Requests by purpose", &self.requests.by_purpose)?;
        table(
            page,
            "Requests without an answer",
            &self.requests.by_failure,
        )?;
        self.write_hosts(page)
    }

    fn write_broken(&self, page: &mut String) -> fmt::Result {
        let Broken { pages, first } = &self.broken;
        if *pages == 0 {
            return Ok(());
        }
        writeln!(
            page,
            "<h2>Broken pages</h2>\n<table><tr><th>page<th>answer<th>first link to it"
        )?;
        for broken in first {
            let answer = match (broken.status, &broken.error) {
                (Some(status), _) => status.to_string(),
                (None, Some(error)) => error.clone(),
                (None, None) => "none".to_owned(),
            };
            let (url, answer) = (Text(&broken.url), Text(&answer));
            let via = Text(broken.via.as_deref().unwrap_or("a seed"));
            writeln!(page, "<tr><td>{url}<td>{answer}<td>{via}")?;
        }
        writeln!(page, "</table>")?;
        let more = pages.saturating_sub(first.len() as u64);
        if more > 0 {
            writeln!(page, "<p>And {more} more broken pages.</p>")?;
        }
        Ok(())
    }

    fn write_hosts(&self, page: &mut String) -> fmt::Result {
        let mut hosts: Vec<_> = self.hosts.iter().collect();
        hosts.sort_by_key(|host| std::cmp::Reverse(host.requests));
        writeln!(
            page,
            "<h2>Hosts</h2>\n<table><tr><th>host<th>pages<th>octets<th>requests<th>excluded\
             <th>gaps<th>waits<th>robots.txt"
        )?;
        for host in hosts.iter().take(LISTED_HOSTS) {
            let robots = host.robots.iter();
            let robots =
                robots.map(|(origin, robots)| format!("{origin}: {}", robots_line(robots)));
            let robots = robots.collect::<Vec<_>>().join("; ");
            writeln!(
                page,
                "<tr><td>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td>{}<td>{}<td>{}",
                Text(&host.host),
                host.pages,
                host.bytes,
                host.requests,
                host.excluded,
                Text(&gaps(host)),
                Text(&waits(host)),
                Text(&robots)
            )?;
        }
        writeln!(page, "</table>")?;
        if hosts.len() > LISTED_HOSTS {
            writeln!(
                page,
                "<p>And {} more hosts.</p>",
                hosts.len() - LISTED_HOSTS
            )?;
        }
        Ok(())
    }
}

fn table<K: Display, V: Display>(
    page: &mut String,
    title: &str,
    counts: &BTreeMap<K, V>,
) -> fmt::Result {
    if counts.is_empty() {
        return Ok(());
    }
    writeln!(page, "<h2>{title}</h2>\n<table>")?;
    for (name, count) in counts {
        let name = name.to_string();
        writeln!(page, "<tr><td>{}<td class=n>{count}", Text(&name))?;
    }
    writeln!(page, "</table>")
}

/// Text as it stands in HTML.
struct Text<'a>(&'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c if c.is_control() => f.write_char('\u{fffd}')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}
