//! Formats the site report as text.

use std::fmt::{self, Display};

use crawl_weburl::safe_line;

use super::{ImageOccurrences, PageWithMeasurement, PageWithoutAltTexts, SharedText, SiteReport};
use crate::number_format::{counted, grouped, size};

/// Maximum lines shown per list.
const MAX_SHOWN: usize = 10;

/// Formats the first lines of each list. The option `--json` shows all lines.
impl Display for SiteReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", counted(self.pages, "page", "pages"))?;
        if self.unread > 0 {
            let pages = counted(self.unread, "page", "pages");
            writeln!(
                f,
                "{pages} can't be read from the archive: titles and links are unknown"
            )?;
        }
        for (title, lines) in self.lists() {
            if lines.is_empty() {
                continue;
            }
            writeln!(f, "\n{title}: {}", grouped(lines.len() as u64))?;
            for line in lines.iter().take(MAX_SHOWN) {
                writeln!(f, "  {line}")?;
            }
            if lines.len() > MAX_SHOWN {
                let more = grouped((lines.len() - MAX_SHOWN) as u64);
                writeln!(f, "  and {more} more (--json lists all)")?;
            }
        }
        Ok(())
    }
}

impl SiteReport {
    /// Returns the lists of findings, each with its heading and one line per entry.
    pub(super) fn lists(&self) -> Vec<(String, Vec<String>)> {
        let deep = format!(
            "more than {} from the start",
            counted(u64::from(self.max_clicks), "click", "clicks")
        );
        let chains = self.redirect_chains.iter().map(|chain| {
            let links = counted(chain.links, "link", "links");
            format!("{} -> {}  {links}", chain.url, chain.to.join(" -> "))
        });
        let barred = self.barred.iter().map(|barred| {
            let rule = barred.rule.as_deref().map(safe_line).unwrap_or_default();
            format!(
                "{}  `{rule}`  {}",
                barred.url,
                counted(barred.links, "link", "links")
            )
        });
        let noindex = self
            .noindex
            .iter()
            .map(|page| format!("{}  {}", page.url, counted(page.links, "link", "links")));
        let vague = self.vague_links.iter().map(|link| {
            let links = counted(link.links, "link", "links");
            format!(
                "\"{}\"  {links}  {}",
                safe_line(&link.text),
                link.pages.join(", ")
            )
        });
        vec![
            ("without a title".to_owned(), self.without_title.clone()),
            (
                "titles shared by several pages".to_owned(),
                shared(&self.double_titles),
            ),
            (
                "without a description".to_owned(),
                self.without_description.clone(),
            ),
            (
                "descriptions shared by several pages".to_owned(),
                shared(&self.double_descriptions),
            ),
            ("without an h1".to_owned(), self.without_heading.clone()),
            (
                "h1 shared by several pages".to_owned(),
                shared(&self.double_headings),
            ),
            (
                "images without alternative text".to_owned(),
                self.without_alt.iter().map(image_line).collect(),
            ),
            (
                "orphans: in the sitemap or a feed, but not linked from any page".to_owned(),
                self.orphans.clone(),
            ),
            (
                deep,
                numbers(&self.deep, |clicks| counted(clicks, "click", "clicks")),
            ),
            ("redirect chains".to_owned(), chains.collect()),
            (
                "excluded by robots.txt, but linked".to_owned(),
                barred.collect(),
            ),
            (
                "slowest".to_owned(),
                numbers(&self.slow, |ms| {
                    format!("{} ms{}", grouped(ms), multiple(ms, self.median_ms))
                }),
            ),
            (
                "largest".to_owned(),
                numbers(&self.large, |bytes| {
                    format!("{}{}", size(bytes), multiple(bytes, self.median_bytes))
                }),
            ),
            (
                "slowest files of pages".to_owned(),
                numbers(&self.files.slow, |ms| {
                    format!("{} ms{}", grouped(ms), multiple(ms, self.files.median_ms))
                }),
            ),
            (
                "largest files of pages".to_owned(),
                numbers(&self.files.large, |bytes| {
                    format!(
                        "{}{}",
                        size(bytes),
                        multiple(bytes, self.files.median_bytes)
                    )
                }),
            ),
            ("sent uncompressed".to_owned(), self.uncompressed.clone()),
            (
                "without a viewport".to_owned(),
                self.without_viewport.clone(),
            ),
            (
                "without a language".to_owned(),
                self.without_language.clone(),
            ),
            ("noindex, but linked".to_owned(), noindex.collect()),
            (
                "link texts that say nothing (English only)".to_owned(),
                vague.collect(),
            ),
            (
                "images without width and height".to_owned(),
                images(&self.images_without_size),
            ),
        ]
    }
}

fn images(images: &[ImageOccurrences]) -> Vec<String> {
    let lines = images.iter().map(|image| {
        let pages = counted(image.pages.len() as u64, "page", "pages");
        format!("{}  {pages}", image.shown())
    });
    lines.collect()
}

fn image_line(page: &PageWithoutAltTexts) -> String {
    let images = counted(page.without_alt, "image", "images");
    format!("{images}  {}", page.url)
}

/// Describes by how much a number exceeds the median: `, 12.3 times the median`. Empty if the
/// number is less than twice the median, or the median is zero.
fn multiple(number: u64, median: Option<u64>) -> String {
    match times_median(number, median) {
        Some(times) => format!(", {times} times the median"),
        None => String::new(),
    }
}

/// Returns how many times the median a number is: `12.3`. `None` if the number is less than twice
/// the median, or the median is zero.
pub(crate) fn times_median(number: u64, median: Option<u64>) -> Option<String> {
    let median = median.filter(|median| *median > 0)?;
    let tenths = number.saturating_mul(10) / median;
    match tenths {
        ..20 => None,
        20..1000 => Some(format!("{}.{}", tenths / 10, tenths % 10)),
        _ => Some(grouped(tenths / 10)),
    }
}

fn shared(texts: &[SharedText]) -> Vec<String> {
    let lines = texts.iter().map(|text| {
        let pages = counted(text.pages.len() as u64, "page", "pages");
        format!(
            "\"{}\"  {pages}: {}",
            safe_line(&text.text),
            text.pages.join(", ")
        )
    });
    lines.collect()
}

fn numbers(pages: &[PageWithMeasurement], show: impl Fn(u64) -> String) -> Vec<String> {
    let lines = pages.iter();
    lines
        .map(|page| format!("{}  {}", show(page.number), page.url))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::times_median;

    #[test]
    fn a_number_is_compared_with_the_median_if_it_is_at_least_twice_as_large() {
        let shown = [199, 200, 1_234, 12_345_600].map(|number| times_median(number, Some(100)));
        let shown = shown.map(Option::unwrap_or_default);
        assert_eq!(shown, ["", "2.0", "12.3", "123,456"]);
        assert_eq!(times_median(7, Some(0)), None);
        assert_eq!(times_median(7, None), None);
    }
}
