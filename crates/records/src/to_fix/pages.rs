//! Checks of the pages themselves.

use crawl_weburl::safe_line;
use maud::{Markup, html};

use super::{MAX_ROWS, left_out, page_links};
use crate::html::{Cell, Check, Measure, Table, link};
use crate::numbers::{counted, grouped, size};
use crate::site::{LARGE_FROM, PageNumber, SLOW_FROM, SharedText, SiteReport, times_median};

/// Returns the checks of a crawl's pages.
pub(crate) fn of_pages(site: &SiteReport) -> Vec<Check> {
    vec![
        texts(site, &TITLES),
        texts(site, &DESCRIPTIONS),
        texts(site, &HEADINGS),
        images(site),
        slow(site),
        large(site),
        reach(site),
        barred(site),
    ]
}

/// A check of a text that each page should have, and no two pages should share.
struct Texts {
    id: &'static str,
    title: &'static str,
    have: &'static str,
    advice: &'static str,
    /// The name of the text in tables.
    text: &'static str,
    without: &'static str,
    of: fn(&SiteReport) -> (&[String], &[SharedText]),
}

const TITLES: Texts = Texts {
    id: "titles",
    title: "Titles",
    have: "have no title, or share it with another page",
    advice: "Give each page a title of its own: search engines and browser tabs show it.",
    text: "shared title",
    without: "pages without a title",
    of: |site| (&site.without_title, &site.double_titles),
};

const DESCRIPTIONS: Texts = Texts {
    id: "descriptions",
    title: "Descriptions",
    have: "have no description, or share it with another page",
    advice: "Describe each page in its own words (meta name=description): search engines may show it.",
    text: "shared description",
    without: "pages without a description",
    of: |site| (&site.without_description, &site.double_descriptions),
};

const HEADINGS: Texts = Texts {
    id: "headings",
    title: "Headings",
    have: "have no h1, or share it with another page",
    advice: "Begin each page with an h1 that says what the page is about.",
    text: "shared h1",
    without: "pages without an h1",
    of: |site| (&site.without_heading, &site.double_headings),
};

fn texts(site: &SiteReport, texts: &Texts) -> Check {
    let (without, shared) = (texts.of)(site);
    let sharing: usize = shared.iter().map(|text| text.pages.len()).sum();
    let findings = (!without.is_empty() || !shared.is_empty()).then(|| {
        html! {
            @if !without.is_empty() { (url_table(texts.without, without)) }
            @if !shared.is_empty() { (shared_table(texts.text, shared)) }
        }
    });
    Check {
        id: texts.id,
        title: texts.title,
        measure: Some(Measure {
            affected: (without.len() + sharing) as u64,
            items: read_pages(site),
            of: "pages",
            have: texts.have,
        }),
        advice: texts.advice,
        findings,
    }
}

/// Returns the number of pages whose body was read.
fn read_pages(site: &SiteReport) -> u64 {
    site.pages.saturating_sub(site.unread)
}

fn url_table(name: &str, urls: &[String]) -> Markup {
    Table {
        name,
        columns: &[name],
        rows: urls
            .iter()
            .take(MAX_ROWS)
            .map(|url| vec![Cell::link(url)])
            .collect(),
        more: left_out(urls.len()),
    }
    .draw()
}

fn shared_table(name: &str, texts: &[SharedText]) -> Markup {
    let rows = texts.iter().take(MAX_ROWS).map(|text| {
        vec![
            Cell::text(&text.text),
            Cell::count(text.pages.len() as u64),
            Cell::Markup(page_links(&text.pages, text.pages.len())),
        ]
    });
    Table {
        name,
        columns: &[name, "pages", "which"],
        rows: rows.collect(),
        more: left_out(texts.len()),
    }
    .draw()
}

fn images(site: &SiteReport) -> Check {
    let affected = site.without_alt.iter().map(|page| page.without_alt).sum();
    let rows = site.without_alt.iter().take(MAX_ROWS).map(|page| {
        let unlisted = page.without_alt.saturating_sub(page.sources.len() as u64);
        let sources = html! {
            ul {
                @for source in &page.sources { li { code { (safe_line(source)) } } }
                @if unlisted > 0 { li { "and " (counted(unlisted, "other", "others")) } }
            }
        };
        vec![
            Cell::link(&page.url),
            Cell::count(page.without_alt),
            Cell::Markup(sources),
        ]
    });
    let table = Table {
        name: "Images without alternative text",
        columns: &["page to fix", "images", "which"],
        rows: rows.collect(),
        more: left_out(site.without_alt.len()),
    };
    Check {
        id: "images",
        title: "Images",
        measure: Some(Measure {
            affected,
            items: site.images,
            of: "images",
            have: "have no alternative text",
        }),
        advice: "Describe what the image shows in its alt attribute, or write alt=\"\" if it is decoration.",
        findings: (!site.without_alt.is_empty()).then(|| table.draw()),
    }
}

fn slow(site: &SiteReport) -> Check {
    let milliseconds = |ms: u64| format!("{} ms", grouped(ms));
    Check {
        id: "slow-pages",
        title: "Slow pages",
        measure: Some(Measure {
            affected: site.slow_pages(),
            items: site.pages,
            of: "pages",
            have: "took a second or longer, from request to end of response",
        }),
        advice: "Find out what these pages wait for: they keep visitors waiting too.",
        findings: number_table(
            "Slow pages",
            "time",
            &site.slow,
            SLOW_FROM,
            (site.median_ms, site.slow_pages()),
            milliseconds,
        ),
    }
}

fn large(site: &SiteReport) -> Check {
    Check {
        id: "large-pages",
        title: "Large pages",
        measure: Some(Measure {
            affected: site.large_pages(),
            items: site.pages,
            of: "pages",
            have: "have 500 kB or more, without images and other resources",
        }),
        advice: "Split these pages, compress them in transfer, or move embedded data out of them.",
        findings: number_table(
            "Large pages",
            "size",
            &site.large,
            LARGE_FROM,
            (site.median_bytes, site.large_pages()),
            size,
        ),
    }
}

/// Renders the pages whose number is at least `from`. `all` is the number of these pages.
fn number_table(
    name: &str,
    column: &str,
    pages: &[PageNumber],
    from: u64,
    (median, all): (Option<u64>, u64),
    show: impl Fn(u64) -> String,
) -> Option<Markup> {
    let rows = pages.iter().filter(|page| page.number >= from);
    let rows: Vec<_> = rows
        .map(|page| {
            let times = match times_median(page.number, median) {
                Some(times) => Cell::Number(page.number, format!("{times} ×")),
                None => Cell::Empty,
            };
            vec![
                Cell::link(&page.url),
                Cell::Number(page.number, show(page.number)),
                times,
            ]
        })
        .collect();
    let more = all.saturating_sub(rows.len() as u64);
    let median = median.map(show);
    (!rows.is_empty()).then(|| {
        html! {
            @if let Some(median) = median { p.soft { "The median of all pages is " (median) "." } }
            (Table { name, columns: &["page", column, "times the median"], rows, more }.draw())
        }
    })
}

fn reach(site: &SiteReport) -> Check {
    let deep = site.deep.iter().take(MAX_ROWS);
    let deep = Table {
        name: "Pages far from the start",
        columns: &["page", "clicks from the start"],
        rows: deep
            .map(|page| vec![Cell::link(&page.url), Cell::count(page.number)])
            .collect(),
        more: left_out(site.deep.len()),
    };
    let orphans = "in a sitemap or feed, but linked from no page";
    let has_findings = !site.deep.is_empty() || !site.orphans.is_empty();
    Check {
        id: "reach",
        title: "Pages hard to reach",
        measure: Some(Measure {
            affected: (site.deep.len() + site.orphans.len()) as u64,
            items: read_pages(site),
            of: "pages",
            have: "are far from the start, or linked from no page",
        }),
        advice: "Link to these pages from pages that visitors find, or remove them.",
        findings: has_findings.then(|| {
            html! {
                @if !site.orphans.is_empty() { (url_table(orphans, &site.orphans)) }
                @if !site.deep.is_empty() { (deep.draw()) }
            }
        }),
    }
}

fn barred(site: &SiteReport) -> Check {
    let rows = site.barred.iter().take(MAX_ROWS).map(|barred| {
        let line = barred.line.map(|line| format!(" (line {line})"));
        let rule = html! {
            @if let Some(rule) = &barred.rule { code { (safe_line(rule)) } (line.unwrap_or_default()) }
        };
        let pages = page_links(&barred.linked_from, barred.linked_from.len());
        vec![
            Cell::Markup(link(&barred.url)),
            Cell::Markup(rule),
            Cell::count(barred.links),
            Cell::Markup(pages),
        ]
    });
    let table = Table {
        name: "Blocked by robots.txt",
        columns: &["URL", "rule", "links", "linked from"],
        rows: rows.collect(),
        more: left_out(site.barred.len()),
    };
    Check {
        id: "robots",
        title: "Blocked by robots.txt",
        measure: None,
        advice: "Pages link to these URLs, but your robots.txt blocks crawlers: they can't be found by search. \
                 If that is intended, nothing needs a fix.",
        findings: (!site.barred.is_empty()).then(|| table.draw()),
    }
}
