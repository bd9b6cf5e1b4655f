//! Checks of the elements of pages: images, link texts, viewport and language.

use maud::{Markup, html};

use super::{MAX_ROWS, left_out, page_links, template_note, url_table};
use crate::number_format::counted;
use crate::self_contained_report_page::{
    HtmlTable, ProblemShare, SiteCheckResult, SiteOrigin, TableCell,
};
use crate::site_report::{ImageOccurrences, SiteReport};

pub(super) fn images_without_text(site: &SiteReport) -> SiteCheckResult {
    let affected = site.without_alt.iter().map(|page| page.without_alt).sum();
    let images = &site.images_without_alt;
    let all_images = images.len() as u64 + u64::from(images.is_empty());
    SiteCheckResult {
        id: "images",
        title: "Images",
        measure: Some(ProblemShare {
            affected,
            items: site.images,
            other_documents: 0,
            of: "images",
            have: "have no alternative text",
            causes: None,
        }),
        advice: "Describe what the image shows in its alt attribute, or write alt=\"\" if it is decoration.",
        summary: format!(
            "{} without text on {}",
            counted(all_images, "image", "images"),
            counted(site.without_alt.len() as u64, "page", "pages"),
        ),
        findings: (!site.without_alt.is_empty())
            .then(|| image_table("Images without alternative text", images, site)),
    }
}

pub(super) fn images_without_size(site: &SiteReport) -> SiteCheckResult {
    let images = &site.images_without_size;
    SiteCheckResult {
        id: "image-sizes",
        title: "Images without width and height",
        measure: None,
        advice: "Give each image a width and a height, so that text doesn't move while the page loads. If a style \
                 sheet already sets both, nothing needs a fix.",
        summary: String::new(),
        findings: (!images.is_empty())
            .then(|| image_table("Images without width and height", images, site)),
    }
}

/// Renders images with the pages that show them.
fn image_table(name: &str, images: &[ImageOccurrences], site: &SiteReport) -> Markup {
    let origin = site.crawl.origin();
    let rows = images.iter().take(MAX_ROWS).map(|image| {
        let pages = image.pages.len() as u64;
        let note = template_note(pages, site.read_pages());
        let links = page_links(&image.pages, &origin, note);
        vec![
            TableCell::Markup(image_link(image, &origin)),
            TableCell::count(pages),
            TableCell::Markup(links),
        ]
    });
    HtmlTable {
        name,
        columns: &["image", "pages", "pages to fix"],
        rows: rows.collect(),
        more: left_out(images.len()),
    }
    .draw()
}

/// Renders the address of an image. If the address is unusable, it is shown as written.
fn image_link(image: &ImageOccurrences, origin: &SiteOrigin) -> Markup {
    html! {
        @if image.image.starts_with("http") { (origin.link(&image.image)) }
        @else { code { (image.shown()) } }
    }
}

pub(super) fn compression(site: &SiteReport) -> SiteCheckResult {
    missing_element(
        site,
        &site.uncompressed,
        &MissingElementCheck {
            id: "compression",
            title: "Compression",
            have: "of 1.4 kB or more were sent uncompressed",
            problem: "sent uncompressed",
            table: "pages sent uncompressed",
            advice: "Let the server compress text with gzip, Brotli or zstd, so that pages arrive sooner.",
        },
    )
}

pub(super) fn viewport(site: &SiteReport) -> SiteCheckResult {
    missing_element(
        site,
        &site.without_viewport,
        &MissingElementCheck {
            id: "viewport",
            title: "Phones",
            have: "have no viewport",
            problem: "without a viewport",
            table: "pages without a viewport",
            advice: "Add <meta name=viewport content=\"width=device-width\"> to the head: without it, phones show the \
                     page as wide as on a desk, with tiny text.",
        },
    )
}

pub(super) fn language(site: &SiteReport) -> SiteCheckResult {
    missing_element(
        site,
        &site.without_language,
        &MissingElementCheck {
            id: "language",
            title: "Language",
            have: "have no language",
            problem: "without a language",
            table: "pages without a language",
            advice: "Name the language of the page (html lang): screen readers choose their voice by it.",
        },
    )
}

/// A check that lists the pages without some element that every page should have.
struct MissingElementCheck {
    id: &'static str,
    title: &'static str,
    have: &'static str,
    /// The problem, as words after the number of pages: `without a viewport`.
    problem: &'static str,
    table: &'static str,
    advice: &'static str,
}

fn missing_element(
    site: &SiteReport,
    pages: &[String],
    check: &MissingElementCheck,
) -> SiteCheckResult {
    let affected = pages.len() as u64;
    let note = template_note(affected, site.read_pages());
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
        findings: (!pages.is_empty()).then(|| {
            html! {
                @if let Some(note) = note { p { strong { (note) } } }
                (url_table(check.table, pages, &site.crawl.origin()))
            }
        }),
    }
}

pub(super) fn vague_links(site: &SiteReport) -> SiteCheckResult {
    let origin = site.crawl.origin();
    let rows = site.vague_links.iter().take(MAX_ROWS).map(|link| {
        let note = template_note(link.pages.len() as u64, site.read_pages());
        vec![
            TableCell::text(&link.text),
            TableCell::count(link.links),
            TableCell::Markup(page_links(&link.pages, &origin, note)),
        ]
    });
    let table = HtmlTable {
        name: "Link texts that say nothing",
        columns: &["link text", "links", "pages to fix"],
        rows: rows.collect(),
        more: left_out(site.vague_links.len()),
    };
    SiteCheckResult {
        id: "link-texts",
        title: "Link texts that say nothing",
        measure: None,
        advice: "Name the target in the link's text: many readers jump from link to link. Only English texts are \
                 known, such as “click here”.",
        summary: String::new(),
        findings: (!site.vague_links.is_empty()).then(|| table.draw()),
    }
}
