//! Checks of single pages: texts, speed, size, reach and exclusions.

use crawl_weburl::safe_line;
use maud::{Markup, html};

use super::element_checks::{
    compression, images_without_size, images_without_text, language, vague_links, viewport,
};
use super::{MAX_ROWS, left_out, page_links, url_table};
use crate::number_format::{counted, grouped, size};
use crate::self_contained_report_page::{
    HtmlTable, ProblemShare, SiteCheckResult, SiteOrigin, TableCell,
};
use crate::site_report::{
    LARGE_FROM, PageWithMeasurement, SLOW_FROM, SharedText, SiteReport, times_median,
};

/// Returns the checks of a crawl's pages.
pub(crate) fn of_pages(site: &SiteReport) -> Vec<SiteCheckResult> {
    vec![
        text_check(site, &TITLES),
        text_check(site, &DESCRIPTIONS),
        text_check(site, &HEADINGS),
        images_without_text(site),
        slow(site),
        large(site),
        reach(site),
        compression(site),
        viewport(site),
        language(site),
        barred(site),
        noindex(site),
        vague_links(site),
        images_without_size(site),
    ]
}

/// A check for a title, description or heading: each page should have one, and no two pages should
/// share one.
struct PageTextCheck {
    id: &'static str,
    title: &'static str,
    have: &'static str,
    /// The problem, as words after the number of pages: `with a missing or shared title`.
    problem: &'static str,
    advice: &'static str,
    /// The name of the table of shared texts: `shared title`.
    text: &'static str,
    without: &'static str,
    of: fn(&SiteReport) -> (&[String], &[SharedText]),
}

const TITLES: PageTextCheck = PageTextCheck {
    id: "titles",
    title: "Titles",
    have: "have no title, or share it with another page",
    problem: "with a missing or shared title",
    advice: "Give each page a title of its own: search engines and browser tabs show it.",
    text: "shared title",
    without: "pages without a title",
    of: |site| (&site.without_title, &site.double_titles),
};

const DESCRIPTIONS: PageTextCheck = PageTextCheck {
    id: "descriptions",
    title: "Descriptions",
    have: "have no description, or share it with another page",
    problem: "with a missing or shared description",
    advice: "Describe each page in its own words (meta name=description): search engines may show it.",
    text: "shared description",
    without: "pages without a description",
    of: |site| (&site.without_description, &site.double_descriptions),
};

const HEADINGS: PageTextCheck = PageTextCheck {
    id: "headings",
    title: "Headings",
    have: "have no h1, or share it with another page",
    problem: "with a missing or shared h1",
    advice: "Begin each page with an h1 that says what the page is about.",
    text: "shared h1",
    without: "pages without an h1",
    of: |site| (&site.without_heading, &site.double_headings),
};

fn text_check(site: &SiteReport, check: &PageTextCheck) -> SiteCheckResult {
    let origin = site.crawl.origin();
    let (without, shared) = (check.of)(site);
    let sharing: usize = shared.iter().map(|text| text.pages.len()).sum();
    let findings = (!without.is_empty() || !shared.is_empty()).then(|| {
        html! {
            @if !without.is_empty() { (url_table(check.without, without, &origin)) }
            @if !shared.is_empty() { (shared_table(check.text, shared, &origin)) }
        }
    });
    let affected = (without.len() + sharing) as u64;
    SiteCheckResult {
        id: check.id,
        title: check.title,
        measure: Some(ProblemShare {
            affected,
            items: site.read_pages(),
            other_documents: 0,
            of: "pages",
            have: check.have,
            causes: None,
        }),
        advice: check.advice,
        summary: format!("{} {}", counted(affected, "page", "pages"), check.problem),
        findings,
    }
}

fn shared_table(name: &str, texts: &[SharedText], origin: &SiteOrigin) -> Markup {
    let rows = texts.iter().take(MAX_ROWS).map(|text| {
        vec![
            TableCell::text(&text.text),
            TableCell::count(text.pages.len() as u64),
            TableCell::Markup(page_links(&text.pages, origin, None)),
        ]
    });
    HtmlTable {
        name,
        columns: &[name, "pages", "which"],
        rows: rows.collect(),
        more: left_out(texts.len()),
    }
    .draw()
}

fn slow(site: &SiteReport) -> SiteCheckResult {
    let milliseconds = |ms: u64| format!("{} ms", grouped(ms));
    let files = &site.files;
    let slow_files = files.slow_files();
    let tables = [
        HighestValuesTable {
            name: "Slow pages",
            columns: ["page", "time"],
            items: &site.slow,
            from: SLOW_FROM,
            median: site.median_ms,
            all: site.slow_pages(),
        },
        HighestValuesTable {
            name: "Slow files of pages",
            columns: ["file", "time"],
            items: &files.slow,
            from: SLOW_FROM,
            median: files.median_ms,
            all: slow_files,
        },
    ];
    SiteCheckResult {
        id: "slow-pages",
        title: "Slow pages and files",
        measure: Some(ProblemShare {
            affected: site.slow_pages() + slow_files,
            items: site.pages + files.timed,
            other_documents: 0,
            of: "pages and files",
            have: "took a second or longer, from request to end of response",
            causes: None,
        }),
        advice: "Find out what these URLs wait for: they keep visitors waiting too.",
        summary: format!("{} slow", counted_both(site.slow_pages(), slow_files)),
        findings: extreme_tables(&tables, &site.crawl.origin(), milliseconds),
    }
}

fn large(site: &SiteReport) -> SiteCheckResult {
    let files = &site.files;
    let large_files = files.large_files();
    let tables = [
        HighestValuesTable {
            name: "Large pages",
            columns: ["page", "size"],
            items: &site.large,
            from: LARGE_FROM,
            median: site.median_bytes,
            all: site.large_pages(),
        },
        HighestValuesTable {
            name: "Large files of pages",
            columns: ["file", "size"],
            items: &files.large,
            from: LARGE_FROM,
            median: files.median_bytes,
            all: large_files,
        },
    ];
    SiteCheckResult {
        id: "large-pages",
        title: "Large pages and files",
        measure: Some(ProblemShare {
            affected: site.large_pages() + large_files,
            items: site.pages + files.files,
            other_documents: 0,
            of: "pages and files",
            have: "have 500 kB or more, each counted alone",
            causes: None,
        }),
        advice: "Split these pages, shrink these images and scripts, or compress them in transfer.",
        summary: format!("{} large", counted_both(site.large_pages(), large_files)),
        findings: extreme_tables(&tables, &site.crawl.origin(), size),
    }
}

/// Formats the numbers of pages and files: `1 page and 2 files`. A number that is zero is left out.
fn counted_both(pages: u64, files: u64) -> String {
    let pages_words = counted(pages, "page", "pages");
    let files_words = counted(files, "file", "files");
    match (pages, files) {
        (_, 0) => pages_words,
        (0, _) => files_words,
        _ => format!("{pages_words} and {files_words}"),
    }
}

/// The pages or files with the highest numbers.
struct HighestValuesTable<'a> {
    name: &'a str,
    /// The names of the two columns: the URL and the number.
    columns: [&'a str; 2],
    items: &'a [PageWithMeasurement],
    /// The lower limit of the table: pages or files with a lower number are not listed.
    from: u64,
    median: Option<u64>,
    /// Total number of pages or files that reach `from`, including those that are not in `items`.
    all: u64,
}

/// Renders the tables that have rows. Returns `None` if all are empty.
fn extreme_tables(
    tables: &[HighestValuesTable<'_>],
    origin: &SiteOrigin,
    show: impl Fn(u64) -> String,
) -> Option<Markup> {
    let tables: Vec<Markup> = tables
        .iter()
        .filter_map(|extremes| extremes.table(origin, &show))
        .collect();
    (!tables.is_empty()).then(|| html! { @for table in tables { (table) } })
}

impl HighestValuesTable<'_> {
    fn table(&self, origin: &SiteOrigin, show: impl Fn(u64) -> String) -> Option<Markup> {
        let rows = self.items.iter().filter(|item| item.number >= self.from);
        let rows: Vec<_> = rows
            .map(|item| {
                let times = match times_median(item.number, self.median) {
                    Some(times) => TableCell::Number(item.number, format!("{times} ×")),
                    None => TableCell::Empty,
                };
                vec![
                    origin.cell(&item.url),
                    TableCell::Number(item.number, show(item.number)),
                    times,
                ]
            })
            .collect();
        let more = self.all.saturating_sub(rows.len() as u64);
        let [item, number] = self.columns;
        let columns = &[item, number, "times the median"];
        (!rows.is_empty()).then(|| {
            html! {
                @if let Some(median) = self.median { p.soft { "The median of all " (item) "s is " (show(median)) "." } }
                (HtmlTable { name: self.name, columns, rows, more }.draw())
            }
        })
    }
}

fn reach(site: &SiteReport) -> SiteCheckResult {
    let origin = site.crawl.origin();
    let deep = site.deep.iter().take(MAX_ROWS);
    let deep = HtmlTable {
        name: "Pages far from the start",
        columns: &["page", "clicks from the start"],
        rows: deep
            .map(|page| vec![origin.cell(&page.url), TableCell::count(page.number)])
            .collect(),
        more: left_out(site.deep.len()),
    };
    let orphans = "in a sitemap or feed, but linked from no page";
    let affected = (site.deep.len() + site.orphans.len()) as u64;
    let has_findings = !site.deep.is_empty() || !site.orphans.is_empty();
    SiteCheckResult {
        id: "reach",
        title: "Pages hard to reach",
        measure: Some(ProblemShare {
            affected,
            items: site.read_pages(),
            other_documents: 0,
            of: "pages",
            have: "are far from the start, or linked from no page",
            causes: None,
        }),
        summary: format!("{} hard to reach", counted(affected, "page", "pages")),
        advice: "Link to these pages from pages that visitors find, or remove them.",
        findings: has_findings.then(|| {
            html! {
                @if !site.orphans.is_empty() { (url_table(orphans, &site.orphans, &origin)) }
                @if !site.deep.is_empty() { (deep.draw()) }
            }
        }),
    }
}

fn barred(site: &SiteReport) -> SiteCheckResult {
    let origin = site.crawl.origin();
    let rows = site.barred.iter().take(MAX_ROWS).map(|barred| {
        let line = barred.line.map(|line| format!(" (line {line})"));
        let rule = html! {
            @if let Some(rule) = &barred.rule { code { (safe_line(rule)) } (line.unwrap_or_default()) }
        };
        let pages = page_links(&barred.linked_from, &origin, None);
        vec![
            origin.cell(&barred.url),
            TableCell::Markup(rule),
            TableCell::count(barred.links),
            TableCell::Markup(pages),
        ]
    });
    let table = HtmlTable {
        name: "Blocked by robots.txt",
        columns: &["URL", "rule", "links", "linked from"],
        rows: rows.collect(),
        more: left_out(site.barred.len()),
    };
    SiteCheckResult {
        id: "robots",
        title: "Blocked by robots.txt",
        measure: None,
        advice: "Pages link to these URLs, but your robots.txt blocks crawlers: they can't be found by search. \
                 If that is intended, nothing needs a fix.",
        summary: String::new(),
        findings: (!site.barred.is_empty()).then(|| table.draw()),
    }
}

fn noindex(site: &SiteReport) -> SiteCheckResult {
    let origin = site.crawl.origin();
    let rows = site.noindex.iter().take(MAX_ROWS).map(|page| {
        vec![
            origin.cell(&page.url),
            TableCell::Markup(html! { code { (safe_line(&page.directive)) } }),
            TableCell::count(page.links),
            TableCell::Markup(page_links(&page.linked_from, &origin, None)),
        ]
    });
    let table = HtmlTable {
        name: "Linked pages with noindex",
        columns: &["page", "directive", "links", "linked from"],
        rows: rows.collect(),
        more: left_out(site.noindex.len()),
    };
    SiteCheckResult {
        id: "noindex",
        title: "Linked pages with noindex",
        measure: None,
        advice: "Pages link to these pages, but noindex keeps them out of search engines. \
                 If that is intended, nothing needs a fix.",
        summary: String::new(),
        findings: (!site.noindex.is_empty()).then(|| table.draw()),
    }
}
