//! The digest of a page's main text, which shows whether the text changed since the last visit.
//!
//! The digest ignores text that may differ between two visits although the page is the same. Such
//! text is outside the main text, as identified by the extractor, or in short lines with a number
//! that people ignore, such as a visitor counter or the time when the page was generated.

use crawl_archive::{DigestAlgorithm, Timestamp, find_response};
use crawl_coding::{DecodedBody, decode};
use crawl_extractor::{
    ContentKind, ContentLimits, PageContent, PageContext, document_kind, effective_content_type,
    read_content,
};
use crawl_frontier::UrlKind;
use http::HeaderValue;
use http::header::CONTENT_ENCODING;

use super::PageReader;
use crate::messages::page_pipeline_stages::FetchedPage;
use crate::revisit::visit::{PreviousVisit, TEXT_RULES};

/// Number of characters to store of each digest (80 bits), after the prefix [`TEXT_RULES`].
const MAX_DIGEST_CHARS: usize = 16;

/// Maximum length in bytes of a line that may be skipped. A longer line is running text, even if it
/// contains a listed word.
const MAX_LINE_BYTES: usize = 160;

/// Words that mark a short line as irrelevant if the line also contains a number. Examples of such
/// lines: a visitor counter, a token, or the time when the page was generated.
const PASSING_WORDS: [&str; 15] = [
    "captcha",
    "copyright",
    "counter",
    "csrf",
    "generated",
    "hits",
    "nonce",
    "pageviews",
    "rendered",
    "token",
    "views",
    "visitor",
    "visitors",
    "visits",
    "©",
];

/// The words for visitors, visits and views in other languages. Only words that are hardly used in
/// another sense are listed.
const VISITOR_WORDS: [&str; 45] = [
    // German, Dutch.
    "besucher",
    "besucherzähler",
    "seitenaufrufe",
    "zugriffe",
    "bezoekers",
    "paginaweergaven",
    // Danish, Norwegian, Swedish, Finnish.
    "besøgende",
    "besøkende",
    "sidevisninger",
    "besökare",
    "sidvisningar",
    "kävijää",
    // French, Spanish, Portuguese, Catalan, Italian, Romanian.
    "visiteurs",
    "visiteur",
    "visitantes",
    "visitante",
    "visitas",
    "visualizações",
    "visualizaciones",
    "visitants",
    "visitatori",
    "visualizzazioni",
    "vizitatori",
    "vizualizări",
    // Polish, Czech, Slovak, Hungarian.
    "odwiedzin",
    "odwiedzających",
    "wyświetleń",
    "návštěv",
    "návštěvníků",
    "zobrazení",
    "návštevníkov",
    "zobrazenia",
    "látogató",
    "látogatók",
    "megtekintés",
    // Russian, Ukrainian, Bulgarian.
    "посетителей",
    "просмотров",
    "відвідувачів",
    "переглядів",
    "посетители",
    "посещения",
    // Greek, Turkish.
    "επισκέπτες",
    "επισκέψεις",
    "ziyaretçi",
    "görüntülenme",
];

/// Phrases that mark a short line as irrelevant if the line also contains a number. Includes
/// single words of languages that put no spaces between words.
const PASSING_PHRASES: [&str; 17] = [
    "current time",
    "it is now",
    "loaded in",
    "local time",
    "request id",
    "server time",
    "served by",
    "session id",
    "trace id",
    "アクセスカウンター",
    "アクセス数",
    "閲覧数",
    "访问量",
    "浏览量",
    "瀏覽次數",
    "방문자",
    "조회수",
];

/// The facts for comparing a page with its last visit, determined before the page is read.
#[derive(Debug, Default)]
pub(super) struct TextComparisonInputs {
    /// Whether to compute the digest of the main text.
    pub(super) is_wanted: bool,
    /// The digests of the body and of the decoded body, if they were computed.
    pub(super) body_digest: Option<String>,
    pub(super) decoded_digest: Option<String>,
    /// The digest of the main text at the last visit, if it was read from the archive.
    pub(super) past_text_digest: Option<String>,
}

impl PageReader {
    /// Determines how to compare a page with its last visit. The main text is not compared if the
    /// body is the same.
    pub(super) fn compared(
        &self,
        page: &FetchedPage,
        decoded: Option<&DecodedBody>,
    ) -> TextComparisonInputs {
        let exchange = &page.exchange;
        let is_page = (200..300).contains(&exchange.status) && page.lease.kind != UrlKind::Sitemap;
        let past = page.context.past.as_deref().and_then(PreviousVisit::page);
        let Some(known) = past.filter(|known| is_page && known.status == exchange.status) else {
            return TextComparisonInputs {
                is_wanted: is_page && (self.keeps_texts || page.rendering.dom().is_some()),
                ..TextComparisonInputs::default()
            };
        };
        if page.rendering.dom().is_some() {
            // The archived body lacks the text that scripts added, so compare stored digests only.
            return TextComparisonInputs {
                is_wanted: true,
                ..TextComparisonInputs::default()
            };
        }
        let body_digest = DigestAlgorithm::default().of(&[&exchange.body]);
        let decoded_digest = self.decoded_digest(exchange, decoded);
        let content = decoded_digest.as_ref().unwrap_or(&body_digest);
        let is_wanted = !known.has_content(&body_digest, content);
        let past_text_digest = match (is_wanted, known.comparable_text(), known.archived) {
            (true, None, Some(at)) => self.archived_text(page, Timestamp::from_micros(at)),
            _ => None,
        };
        TextComparisonInputs {
            is_wanted,
            body_digest: Some(body_digest),
            decoded_digest,
            past_text_digest,
        }
    }

    /// Returns the digest of the main text that the page had at the time `at`, computed from the
    /// archive. `None` if the archived page can't be read; the caller then compares bytes instead.
    fn archived_text(&self, page: &FetchedPage, at: Timestamp) -> Option<String> {
        let dir = self.archive.as_deref()?;
        let record = find_response(dir, &page.lease.url, at).ok()??;
        let http = record.http()?;
        let mut headers = http::HeaderMap::new();
        let codings = http.fields.iter();
        for (_, coding) in
            codings.filter(|(name, _)| name.eq_ignore_ascii_case(b"content-encoding"))
        {
            headers.append(CONTENT_ENCODING, HeaderValue::from_bytes(coding).ok()?);
        }
        let body = bytes::Bytes::copy_from_slice(http.body);
        let decoded = decode(headers.get_all(CONTENT_ENCODING), &body, &self.decode);
        let content_type = effective_content_type(http.fields_named("content-type"));
        let content_type = content_type.as_deref();
        if !matches!(
            document_kind(content_type, &decoded.bytes),
            ContentKind::Html
        ) {
            return None;
        }
        let context = PageContext {
            content_type,
            ..PageContext::default()
        };
        let content = read_content(&decoded.bytes, &context, &ContentLimits::default());
        text_digest(&content)
    }
}

/// Returns the digest of a page's title and main text, or of all its text if no main text was
/// identified. `None` if the page has no text, since it can't be compared then.
pub(super) fn text_digest(content: &PageContent) -> Option<String> {
    let mut blocks: Vec<_> = content.main_blocks().collect();
    if blocks.is_empty() {
        blocks = content.blocks.iter().collect();
    }
    let lines = blocks.iter().map(|block| (block, content.text_of(block)));
    let lines = lines.filter(|(block, line)| block.kind.level().is_some() || !is_passing(line));
    let mut text = content.title.clone().unwrap_or_default();
    let title_bytes = text.len();
    for (_, line) in lines {
        text.push('\n');
        text.push_str(line);
    }
    let digest = DigestAlgorithm::default().of(&[text.as_bytes()]);
    let digits = digest
        .split_once(':')
        .map_or(&*digest, |(_, digits)| digits);
    let digits = &digits[..digits.len().min(MAX_DIGEST_CHARS)];
    (text.len() > title_bytes).then(|| format!("{TEXT_RULES}{digits}"))
}

/// Returns whether a line is short and contains a number that people ignore, such as a visitor
/// counter.
fn is_passing(line: &str) -> bool {
    if line.len() > MAX_LINE_BYTES || !line.contains(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let line = line.to_lowercase();
    let is_part = |c: char| c.is_alphanumeric() || c == '©';
    let mut words = line.split(|c| !is_part(c));
    words.any(|word| PASSING_WORDS.contains(&word) || VISITOR_WORDS.contains(&word))
        || PASSING_PHRASES.iter().any(|phrase| line.contains(phrase))
}

#[cfg(test)]
mod tests {
    use crawl_extractor::{ContentLimits, PageContext, read_content};

    use super::{is_passing, text_digest};

    fn digest(html: &str) -> Option<String> {
        let content = PageContext::default();
        text_digest(&read_content(
            html.as_bytes(),
            &content,
            &ContentLimits::default(),
        ))
    }

    #[test]
    fn lines_with_a_passing_number_are_distinguished_from_text() {
        for passing in [
            "You are visitor number 12,345.",
            "Page generated in 0.023 s",
            "Generated 2026-11-23 10:20:11 by a generator",
            "Server time: 12:03:05",
            "© 2026 The tea house",
            "CSRF token 8f1c77",
            "1,024 views",
            "Request ID: 8f3ac-12",
            "Sie sind der 12345. Besucher",
            "Déjà 1 024 visiteurs",
            "Просмотров: 1024",
            "Navštívilo nás 300 návštěvníků",
            "アクセスカウンター：12345",
            "浏览量 1024",
        ] {
            assert!(is_passing(passing), "{passing}");
        }
        for text in [
            "Opening times: 9:00 to 17:00",
            "Price: 12 euro",
            "Version 2.1 was released on 2026-11-23",
            "The next train leaves at 10:20:11",
            "You are a visitor",
            "Last updated: 2026-11-23",
            "Besuchen Sie uns ab 9:00",
        ] {
            assert!(!is_passing(text), "{text}");
        }
        let long = format!("{} It had 12 visitors.", "A long story. ".repeat(20));
        assert!(!is_passing(&long));
    }

    /// If you must change the expected values, change [`TEXT_RULES`] too. Otherwise a crawl resumed
    /// by a new version would report unchanged pages as changed.
    #[test]
    fn the_rules_of_a_digest_have_a_name_that_changes_with_them() {
        let teaser = "<div><h3><a href=/1>A title of another page</a></h3><p>A line on it.</div>";
        let paragraph = format!("<p>{}", "The kettle sings and nobody hears it. ".repeat(20));
        let page = format!(
            "<title>Tea</title><nav><a href=/>Home</a></nav><div id=page><h1>Tea</h1>{paragraph}\
             {paragraph}<table><tr><td>Water<td>90</table><p>You are visitor 12.\
             <div>{}</div></div><div id=kommentare><p>I drink coffee.</div><footer>12:00</footer>",
            teaser.repeat(4)
        );
        assert_eq!(digest(&page).as_deref(), Some("3:RZMDZ5KVYFNWX4GW"));
    }

    #[test]
    fn the_digest_is_that_of_title_and_text() {
        let page = "<title>Tea</title><nav>1</nav><main><p>Pour the water.</p></main>\
            <footer>12:00</footer>";
        let same = page.replace("12:00", "13:00").replace("<nav>1", "<nav>2");
        assert!(digest(page).is_some());
        assert_eq!(digest(page), digest(&same));
        assert_ne!(digest(page), digest(&page.replace("Pour", "Drink")));
        assert_ne!(digest(page), digest(&page.replace("Tea", "Coffee")));
        assert_eq!(digest("<title>Tea</title><img src=a.png>"), None);
    }
}
